//! Requests from outside as they come to a pool: first, or from tasks that have as many threads as will, or more than the pool.
//!
//! What such tasks call comes whenever their requests do, and how many wait is told by the same chain ([`super::held_up`]), with two differences:
//!
//! ```text
//! n ≤ Σ_b m_b                      most of them that are there at once, of the tasks b that bound them
//! c² - 1, times 1 - r              how much more than exponential services vary
//! ```
//!
//! where the next follows at once after a share `r` of them ([`super::super::visit`]). Who comes back to a queue at once finds it as it was left, and
//! where all come back until they are done, the queue is one of whole requests, whoever is served next: before one server `ρ²(1 + q (c² - 1)/2)/(1 - ρ)` wait in the mean, of
//! whom a share `q` leaves after each service (L. Takács, Bell Syst. Tech. J. 42 (1963)).
//!
//! Where the threads of such a task are all busy, no more come: what the chain says counts as far as one of them mostly is idle.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `Σ m` | `places` | threads of all that may call |
//! | `r` | `at_once` | share of visits that are followed by another at once |

use super::{
    super::pool::LARGEST_POOL,
    sources::{number, ramp},
    visitors::again_of_held,
};
use crate::{
    model::Scalar,
    solve::{
        erlang::erlang_c,
        layered::{
            flow::Flow,
            net::{Discipline, Net},
        },
    },
};

/// Requests to a pool at most, over its threads, from which it is as if as many came as will.
const MOST_PLACES: f64 = 8.0;

/// Chances that one who sends is idle: up to the one they are as many sources, from the other requests come whenever they will. Six threads before three, 4.4 of them busy (.41), are within .8 % by the former and 22 % long by the latter; chosen.
const IDLE: [f64; 2] = [0.5, 0.95];

/// Requests from outside to a pool.
pub(super) struct Coming<S> {
    pub station: usize,
    /// Most of them at once; none where as many come as will.
    pub places: Option<usize>,
    /// `r`.
    pub at_once: S,
    /// How far it counts that they come whenever they will.
    pub counts: S,
}

impl<S: Scalar> Coming<S> {
    /// What comes to the pool of a task; none where customers come, too, or threads of a task that has no more than the pool.
    pub fn find(net: &Net<S>, solved: (&Flow<S>, &[S]), task: usize) -> Option<Self> {
        let it = &net.tasks[task];
        let station = it.station?;
        let pool = &net.stations[station];
        if !((2.0..=LARGEST_POOL).contains(&pool.servers) && it.width <= 1.0 && pool.discipline == Discipline::Fcfs) {
            return None;
        }
        let (mut bounding, mut is_bounded) = (Vec::new(), !pool.arcs.is_empty());
        let senders = pool.arcs.iter().map(|&arc| net.arcs[arc].source.node().map(|node| (arc, net.nodes[node].task)));
        for (arc, sender) in senders.clone().flatten() {
            let bound = net.tasks[sender].bounded_by;
            let is_endless = net.arcs[arc].source.held().is_none() || net.tasks[bound].cap.is_infinite();
            if net.tasks[sender].is_of_customers() || !is_endless && net.tasks[bound].cap <= pool.servers {
                return None;
            }
            is_bounded &= !is_endless;
            if !is_endless && !bounding.contains(&bound) {
                bounding.push(bound);
            }
        }
        is_bounded &= senders.into_iter().all(|sender| sender.is_some());
        let places: f64 = bounding.iter().map(|&task| net.tasks[task].cap).sum();
        let places = (is_bounded && places < pool.servers * MOST_PLACES).then(|| number(places));
        Some(Self { station, places, at_once: at_once(net, solved, station), counts: ramp(idle(net, solved.0, station), IDLE) })
    }
}

/// Chance that of the threads which bound who sends a request to a station one is idle, in the mean over requests.
fn idle<S: Scalar>(net: &Net<S>, flow: &Flow<S>, station: usize) -> S {
    let (zero, one) = (S::from(0.0), S::from(1.0));
    let of_task = |task: usize| {
        let cap = net.tasks[task].cap;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of threads, checked when compiled")]
        if cap.is_finite() { -erlang_c(cap as u32, flow.busy_threads(net, task)) + 1.0 } else { one }
    };
    let (mut all, mut sum) = (zero, zero);
    for &arc in &net.stations[station].arcs {
        let rate = flow.arc_rate[arc];
        all += rate;
        sum += rate * net.arcs[arc].source.held().map_or(one, |node| of_task(net.tasks[net.nodes[node].task].bounded_by));
    }
    if all > 0.0 { sum / all } else { one }
}

/// Share of visits to a station after which the next of the same execution follows at once.
fn at_once<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), station: usize) -> S {
    let zero = S::from(0.0);
    let again = again_of_held(net, solved, station).into_iter().fold(zero, |sum, again| sum + again);
    let all = net.stations[station].arcs.iter().fold(zero, |sum, &arc| sum + solved.0.arc_rate[arc]);
    if all > 0.0 { again / all } else { zero }
}
