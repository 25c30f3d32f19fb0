//! What comes to a station of one pool and of all.

use super::super::{Layout, Sweep};
use crate::model::Scalar;

/// Load of other pools that is believed.
const MAX_OTHERS: f64 = 0.95;

/// The load of other pools, as far as it is believed.
pub(super) fn believed<S: Scalar>(others: S) -> S {
    if others > MAX_OTHERS { S::from(MAX_OTHERS) } else { others }
}

/// What comes to a station, all a unit of time: the services of all, of one pool and of those that no number of threads bounds, and of that pool the time in first phases and waiting, their number,
/// and by how much these make its executions longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests<S> {
    pub own: S,
    pub all: S,
    pub sent: S,
    pub first: S,
    pub wait: S,
    pub number: S,
    pub delaying: S,
}

impl<S: Scalar> Requests<S> {
    /// Second phases.
    pub fn late(&self) -> S {
        self.own - self.first
    }

    /// The phases of one, slowed by others at servers that are as fast as so many; none where there are none, or no second ones.
    pub fn phases(&self, as_fast_as: S) -> Option<(S, S)> {
        if self.number <= 0.0 || self.first <= 0.0 || self.late() <= 0.0 {
            return None;
        }
        let of_server = self.number * (-believed((self.all - self.own) / as_fast_as) + 1.0);
        Some((self.first / of_server, self.late() / of_server))
    }
}

/// Of the pools that are `is_own`, whose arcs delay their executions by so much of their time.
pub(super) fn requests_of<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layout: &Layout,
    is_own: impl Fn(usize) -> bool,
    delay_of: impl Fn(usize) -> S,
) -> Requests<S> {
    let zero = S::from(0.0);
    let mut sums = Requests { own: zero, all: zero, sent: zero, first: zero, wait: zero, number: zero, delaying: zero };
    for (i, &a) in layout.arcs.iter().enumerate() {
        let rate = sweep.flow.arc_rate[a];
        let (first, held) = sweep.service(a);
        sums.all += rate * held;
        if layout.pool_of[i].is_none_or(|pool| sweep.populations.caps[layout.pools[pool]].is_infinite()) {
            sums.sent += rate * held;
        }
        if layout.pool_of[i].is_some_and(&is_own) {
            sums.own += rate * held;
            sums.first += rate * first;
            sums.wait += rate * sweep.unknowns[a];
            sums.number += rate;
            sums.delaying += delay_of(a) * rate * (first + sweep.unknowns[a]);
        }
    }
    sums
}
