//! Second phases: which of them an arrival finds in service.
//!
//! Those of other threads are there as often as their load says, at one server as the chain of the pool says ([`super::second_phase`]). The own thread's last one is
//! there if the thread comes back before it ends, with chance `H` ([`super::comes_again`]).
//!
//! At `m` servers, those of earlier requests may be there as well, if they last through the last one's stay, but for what that itself waits for them:
//!
//! ```text
//! E = Σ_{n<m} (H s₂ / (s₂ + B + (1 - v³) W))^n            found in all: H E
//! ```
//!
//! None are where the last request was served after them at their processor. The cube is fitted: a thread alone waits for its own second phases, of
//! which one has ended then, as the number of terms says. Where requests come from outside the chance to wait is that of many sources, too high for these
//! few, and only the last is looked for.
//!
//! | symbol | is |
//! |---|---|
//! | `B`, `v` | time from the first service to the reply, forwarded or not; the thread's share of all requests |

use super::{
    At,
    comes_again::{ComesAgain, FoundOfLast},
    layout::Row,
};
use crate::model::Scalar;

/// Second phases of the own thread's requests that it finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken<S> {
    pub all: S,
    /// The chance, once the last request was for this arc.
    pub chance: S,
    /// What is left of the last one, where that is not what is left of any.
    pub rest: Option<S>,
    /// The share of its time that counts in what is left of it.
    pub counted: S,
}

/// Chances that are none.
const NEGLIGIBLE: f64 = 1e-9;

impl<S: Scalar> At<'_, S> {
    /// Second-phase load of arc `x` that a row's arrivals see: that of other threads, and the own thread's.
    pub(super) fn late_load(&self, row: &Row, x: usize, seen: S) -> (S, Overtaken<S>) {
        let it = &self.visits[x];
        let none = Overtaken { all: S::from(0.0), chance: S::from(0.0), rest: None, counted: S::from(1.0) };
        let load = it.rate * it.late;
        let (Some(mine), Some(theirs), Some(group)) = (row.pool, self.layout.pool_of[x], row.group) else { return (load * seen, none) };
        if mine != theirs {
            let of_all = self.late_of(row, Some(theirs)).map_or(seen, |late| late.others * self.share_of_others(row, Some(theirs)));
            return (load * of_all, none);
        }
        let threads = ComesAgain { sweep: self.sweep, layout: self.layout }.sources(mine);
        if threads.is_infinite() {
            return (load * seen, none);
        }
        let left = &self.left[mine];
        let others = if left.is_less() || left.late.is_known() {
            load * left.late.others * self.share_of_others(row, Some(mine))
        } else {
            load * (1.0 - threads.recip()).max(0.0)
        };
        let pool_rate = self.pool_rate(mine);
        if pool_rate <= 0.0 {
            return (others, none);
        }
        let FoundOfLast { chance: found, rest, counted, .. } =
            self.sweep.overtakes.map_or_else(FoundOfLast::none, |overtakes| overtakes.found(self.layout, x, group));
        let last = it.rate / pool_rate * found;
        let own = pool_rate / self.visits.iter().fold(S::from(0.0), |sum, v| sum + v.rate) / threads;
        (others, Overtaken { all: last * self.earlier(x, found, own), chance: found, rest, counted })
    }

    /// `E`, of a thread with such a share of all requests.
    fn earlier(&self, x: usize, found: S, own: S) -> S {
        let one = S::from(1.0);
        if self.layout.late_goes_first || self.sources.is_infinite() {
            return one;
        }
        let it = &self.visits[x];
        let stay = it.first + self.forwarded(x) + it.wait * if own < 1.0 { -own.powi(3) + 1.0 } else { S::from(0.0) };
        let stays = found * it.late / (it.late + stay);
        let (mut sum, mut term, mut server) = (one, one, 1.0);
        while server < self.servers && term > NEGLIGIBLE {
            term *= stays;
            sum += term;
            server += 1.0;
        }
        sum
    }

    /// How long a request over arc `x` is at those to whom it is forwarded.
    fn forwarded(&self, x: usize) -> S {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let call = self.layout.arcs[x];
        let mut calls = net.arcs[call].source.held().into_iter().flat_map(|node| &net.nodes[node].calls);
        let legs = calls.find(|group| group.arc == call).map_or(&[][..], |group| &group.legs);
        legs.iter().fold(zero, |sum, &leg| sum + net.arcs[leg].leg_probability * (self.sweep.unknowns[leg] + self.sweep.service(leg).0))
    }

    pub(super) fn pool_rate(&self, pool: usize) -> S {
        self.visits.iter().zip(&self.layout.pool_of).filter(|(_, p)| **p == Some(pool)).fold(S::from(0.0), |sum, (v, _)| sum + v.rate)
    }
}
