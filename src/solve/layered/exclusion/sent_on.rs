//! What one thread less leaves of the work that the threads of a pool send on.
//!
//! `f_t` says how many other threads of a pool `t` there are, but takes each of them to be as often in a task below as with all of them. A full pool of
//! `n` strands before one slow task has nearly all of them there, and they serve the other tasks below at the same pace without one:
//!
//! ```text
//! K^u_qp = K_qp [1 + min(1, n (1 - K_qp)) (X(n-1)/X(n) · n/(n-1) - 1)]              at most 1
//! ```
//!
//! with `X` of mean value analysis of the pool alone ([`super::super::station`], `pool`), for the factors on those in service that follow from the pair of two
//! nodes `q`, `p` of the pool by the recursion over parents. Those who wait are left as they are: how long they do depends on the number of threads, too,
//! and what the arrival's own thread has to do with it is known otherwise (`removal`). Nor are requests of the pool itself concerned, for which the same is
//! known by station; pairs of strands of one fork are left as they are.
//!
//! | symbol | is |
//! |---|---|
//! | `K`, `f_t` | exclusion of the parent module |
//! | `n`, `X(n)` | strands of the pool that exclude each other, and the pace of so many |

use super::{Exclusion, Pairs, Rule};
use crate::{model::Scalar, solve::layered::net::Net};

/// The pace of a pool with one strand less, beside that with all.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pace<S> {
    /// `n`.
    pub strands: S,
    /// `X(n-1)/X(n) · n/(n-1)`.
    pub of_each: S,
}

impl<S: Scalar> Pace<S> {
    /// `K^u` of a `K` between two nodes of the pool.
    fn kept(&self, keep: S) -> S {
        let kept = keep * with_one_less(self.strands, keep, self.of_each);
        if kept > 1.0 { S::from(1.0) } else { kept }
    }
}

/// The factor on a `K` of two requests of `strands`, where each of the others leaves `left` of itself when one is taken away; not negative.
pub(in super::super) fn with_one_less<S: Scalar>(strands: S, keep: S, left: S) -> S {
    let bound = (-keep + 1.0) * strands;
    let bound = if bound > 1.0 { S::from(1.0) } else { bound };
    let factor = bound * (left - 1.0) + 1.0;
    if factor > 0.0 { factor } else { S::from(0.0) }
}

impl Pairs {
    /// Finds the pairs whose factors follow from one of two nodes of a pool.
    pub(super) fn find_sent_on<S>(&mut self, net: &Net<S>) {
        let mut is_sent_on = vec![false; self.pairs.len()];
        for p in 0..self.pairs.len() {
            is_sent_on[p] = self
                .terms_of(super::pairs::to_u32(p))
                .iter()
                .any(|&(_, q)| is_sent_on[q as usize] || self.pool_of(q).is_some_and(|t| net.tasks[t].threads > 1.0));
        }
        let numbers = (0..).zip(is_sent_on);
        self.sent_on = numbers.filter_map(|(p, is_sent_on)| is_sent_on.then_some(p)).collect();
    }

    /// Whether the factor of a pair follows from one of two nodes of a pool.
    pub fn is_sent_on(&self, pair: u32) -> bool {
        self.sent_on.binary_search(&pair).is_ok()
    }

    /// The task both of whose nodes a pair is of.
    fn pool_of(&self, pair: u32) -> Option<usize> {
        match self.pairs[pair as usize].rule {
            Rule::Threads(task) | Rule::SameTask(task, _) => Some(task),
            Rule::Free | Rule::Parents(_) | Rule::Strands(..) => None,
        }
    }
}

impl<S: Scalar> Exclusion<S> {
    /// `K^u` by pair, given the paces of pools by task.
    pub fn find_served(&self, net: &Net<S>, pairs: &Pairs, paces: &[Option<Pace<S>>], served: &mut Vec<S>) {
        served.clone_from(&self.factors);
        for &p in &pairs.sent_on {
            let sum = pairs.terms_of(p).iter().fold(S::from(0.0), |sum, &(share, q)| {
                let keep = served[q as usize];
                let kept = pairs.pool_of(q).and_then(|task| paces[task]).map_or(keep, |pace| pace.kept(keep));
                sum + self.shares[share as usize] * kept
            });
            served[p as usize] = self.factor(net, pairs, p, sum);
        }
    }
}
