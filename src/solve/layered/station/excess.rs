//! What requests wait longer for so that a station serves no more than it has servers for.
//!
//! `e` is the multiplier of that bound: zero, or such that `Σ ℓ h = m`. It is found by
//!
//! ```text
//! e ← [e + max(g s, η w) (Σ ℓ h / m - 1) - κ e (1 - Σ ℓ h / m - γ)⁺]⁺
//! ```
//!
//! where `η w` is what customers who are hardly anywhere else have to wait longer for a load beyond the servers: beside the wait of a hundred thousand of them
//! a few services would pass for nothing. The last term takes back what is far too much, however long it is beside a service: a wait of a million services that shrinks by
//! four at a time would pass for settled.
//!
//! Queues in order of arrival hold up all requests alike, shared servers each for as long as it is served, `c_i e` with `c_i = s_i / s`. Where the urgent
//! go first, `e` is for those who wait for all others: of level `i`, with what is as urgent or more in `L_i`, `c_i e` with
//!
//! ```text
//! c_i = [(L_i / m - 1) / δ + 1]³, within 0 and 1
//! ```
//!
//! so that the next level is held up the more, the less is left for the last.
//!
//! | symbol | is |
//! |---|---|
//! | `ℓ`, `h`, `s` | requests of an arc a unit of time, their service, mean service of all |
//! | `w` | mean wait |
//! | `m` | servers |
//! | `g`, `η`, `κ`, `γ`, `δ` | [`GAIN`], [`GAIN_OF_WAIT`], [`TAKEN_BACK`], [`FAR_BELOW`], [`LAST_SHARE`] |

use super::{super::net::Discipline, At, Sweep, layout::Layout};
use crate::model::Scalar;

/// Services by which a sweep raises the excess wait of a station for a load of twice its servers.
const GAIN: f64 = 4.0;
/// The same, of the wait there.
const GAIN_OF_WAIT: f64 = 0.5;
/// Share of the servers that is idle where a wait for them is far too long.
const FAR_BELOW: f64 = 0.1;
/// Part of such a wait that a sweep takes back.
const TAKEN_BACK: f64 = 0.1;
/// Share of the servers that is little for the least urgent. A smaller one leaves some full queues of three levels without a solution.
const LAST_SHARE: f64 = 0.2;

/// `c` of every arc, by position; none where it is 1 for all.
pub(super) fn held_up<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, servers: f64, discipline: Discipline) -> Vec<S> {
    match discipline {
        Discipline::Sharing => slowed(sweep, layout),
        Discipline::HeadOfLine | Discipline::Preemptive if layout.levels.len() > 1 => last_to_go(sweep, layout, servers),
        _ => Vec::new(),
    }
}

/// All go on at one pace.
fn slowed<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout) -> Vec<S> {
    let served: Vec<S> = layout.arcs.iter().map(|&a| sweep.service(a).0).collect();
    let (mut time, mut rate) = (S::from(0.0), S::from(0.0));
    for (&a, &first) in layout.arcs.iter().zip(&served) {
        time += sweep.flow.arc_rate[a] * first;
        rate += sweep.flow.arc_rate[a];
    }
    if time > 0.0 { served.into_iter().map(|first| first * rate / time).collect() } else { Vec::new() }
}

/// The most urgent go first.
fn last_to_go<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, servers: f64) -> Vec<S> {
    let priority = |x: usize| layout.rows[layout.row_of[x]].priority;
    let load: Vec<S> = layout.arcs.iter().map(|&a| sweep.flow.arc_rate[a] * sweep.service(a).1).collect();
    let of_arc = |x: usize| {
        let before = (0..load.len()).filter(|&y| priority(y) >= priority(x));
        let share = (before.fold(S::from(0.0), |sum, y| sum + load[y]) / servers - 1.0) / LAST_SHARE + 1.0;
        if share <= 0.0 {
            S::from(0.0)
        } else if share >= 1.0 {
            S::from(1.0)
        } else {
            share * share * share
        }
    };
    (0..load.len()).map(of_arc).collect()
}

impl<S: Scalar> At<'_, S> {
    /// The next `e`, where there are threads that it holds up.
    pub(super) fn next_excess(&self, load: S) -> S {
        let zero = S::from(0.0);
        let unbounded = self.visits.iter().zip(&self.layout.pool_of).filter(|(_, pool)| pool.is_none());
        let unbounded = unbounded.fold(zero, |sum, (v, _)| sum + v.rate * (v.first + v.late));
        if load <= 0.0 || unbounded >= self.servers {
            return zero;
        }
        let excess = self.sweep.unknowns[self.places.excess];
        let beyond = load / self.servers - 1.0;
        let far_below = -beyond - FAR_BELOW;
        let next = excess + beyond * self.gain();
        let next = if far_below > 0.0 { next - excess * far_below * TAKEN_BACK } else { next };
        if next > 0.0 { next } else { zero }
    }

    /// By how much more requests wait for a load of twice the servers.
    fn gain(&self) -> S {
        let zero = S::from(0.0);
        let (rate, waiting) = self.visits.iter().fold((zero, zero), |(rate, waiting), v| (rate + v.rate, waiting + v.rate * v.wait));
        let (of_service, of_wait) = (self.mean_service * GAIN, waiting * GAIN_OF_WAIT / rate);
        if of_wait > of_service { of_wait } else { of_service }
    }
}
