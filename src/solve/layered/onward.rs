//! Where a sweep leads: waits and flows that go on while what arrivals find of each other stays.
//!
//! A sweep asks every station at the flows and waits of the last one, so that what changes at one queue is known to the task above only
//! in the next. Most of that is plain arithmetic: what the parts of a wait ([`station`](super::station)) are in proportion to. So a sweep ends with a few
//! steps in which
//!
//! ```text
//! S, λ ← means of times and rates at the waits W                                  (Flow::follow)
//! f_x = λ_x s_x / (λ_x⁰ s_x⁰)      g_x = f_x s_x / s_x⁰                           what was found at λ⁰, s⁰; of processors s is given
//! W_b ← Σ_x (α_bx f_x W_x + β_bx g_x) + own_b                                     (Parts::follow)
//! ```
//!
//! At a solution `f = g = 1` and the waits stay what they are: it is that of the sweeps without. Only there are fewer of
//! them, by a fifth to a third ([`STEPS`]), for about a twentieth of what each costs.

use super::{fixed_point::Structure, flow::Flow, net::Net, station::Parts};
use crate::model::Scalar;

/// Steps after each sweep: of 12 drawn models of 50 tasks one leaves 73 of 100 sweeps, two 65, three 65, five 63.
const STEPS: usize = 2;

/// Follows the waits at the head of `next`, whose `parts` were found at the flow `at`, for so many customers; `flow` is room.
pub(super) fn go_on<S: Scalar>(
    net: &Net<S>,
    structure: &Structure,
    parts: &mut [Parts<S>],
    (at, flow): (&Flow<S>, &mut Flow<S>),
    customers: &[f64],
    next: &mut [S],
) {
    flow.start_at(at);
    for _ in 0..STEPS {
        let waits = structure.waits(net, next);
        flow.follow(net, &waits, customers);
        let factors = |arc: usize| {
            let requests = ratio(flow.arc_rate[arc], at.arc_rate[arc]);
            let Some(entry) = net.arcs[arc].target else { return (requests, requests) };
            let service = ratio(flow.held(entry), at.held(entry));
            let work = requests * service;
            (work, work * service)
        };
        for (parts, layout) in parts.iter_mut().zip(structure.layouts()) {
            parts.follow(layout, factors, &mut next[..net.arcs.len()]);
        }
    }
}

/// How many times as much, where there is something.
fn ratio<S: Scalar>(now: S, then: S) -> S {
    if now > 0.0 && then > 0.0 { now / then } else { S::from(1.0) }
}
