//! Sums over the occurrences of a class.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::trace::hashed::IndexMap;

use super::{
    arcs::Arc,
    forks::{self, ForkShape},
};
use crate::structure::entries::ArcKind;

/// Numbers of calls of one invocation that are told apart; greater ones are counted together.
pub(in crate::structure) const MOST_COUNTS: u64 = 64;

/// Forks of different shape that are kept of one class; requests of further ones are counted as made one after another.
const MOST_FORKS: usize = 16;

/// Sums of a quantity and its square.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TimeSums {
    /// Occurrences of which it is known.
    pub(super) n: u64,
    /// What they stand for.
    pub(super) weight: f64,
    pub(super) sum: f64,
    pub(super) sum_of_squares: f64,
}

impl TimeSums {
    fn add(&mut self, value: f64, weight: f64) {
        self.n += 1;
        self.weight += weight;
        self.sum += weight * value;
        self.sum_of_squares += weight * value * value;
    }

    /// Adds `factor` times what `other` sums up.
    pub(super) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.n += other.n;
        self.weight += factor * other.weight;
        self.sum += factor * other.sum;
        self.sum_of_squares += factor * other.sum_of_squares;
    }
}

/// Sums over requests of one kind to one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestSums {
    /// Weighted number of requests, and of these of invocations that are known whole.
    pub(super) sum: f64,
    pub(super) whole: f64,
    /// Invocations by how many requests they make; those that make none are not counted.
    pub(super) counts: BTreeMap<u64, u64>,
}

impl RequestSums {
    fn add(&mut self, n: u64, weight: f64, is_whole: bool) {
        self.sum += weight * n as f64;
        self.whole += if is_whole { weight * n as f64 } else { 0.0 };
        *self.counts.entry(n.min(MOST_COUNTS)).or_insert(0) += 1;
    }

    /// Adds `factor` times what `other` sums up, and its counts.
    pub(super) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.sum += factor * other.sum;
        self.whole += factor * other.whole;
        other.counts.iter().for_each(|(n, times)| *self.counts.entry(*n).or_insert(0) += times);
    }
}

/// Sums over the requests of forks, by branch and request in the order of the shape.
pub(super) type BranchSums = Vec<Vec<RequestSums>>;

/// Forks of one shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ForkSums {
    /// Weighted number of them.
    pub(super) weight: f64,
    /// Their requests; counts are of forks.
    pub(super) requests: BranchSums,
}

/// Sums over occurrences of a class in recordings of one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) n: u64,
    pub(super) weight: f64,
    /// Of this, that of occurrences that may have made more requests than are known.
    pub(super) partial: f64,
    /// Self times of phases 1 and 2, in ticks.
    pub(super) self_time: [TimeSums; 2],
    /// By kind, phase and class. By behaviour, those of one occurrence.
    pub(super) requests: IndexMap<(ArcKind, u8, usize), RequestSums>,
    pub(super) forks: BTreeMap<ForkShape, ForkSums>,
}

impl Sums {
    pub(super) fn add(&mut self, self_time_ticks: [Option<f64>; 2], weight: f64) {
        self.n += 1;
        self.weight += weight;
        for (sums, ticks) in self.self_time.iter_mut().zip(self_time_ticks) {
            if let Some(ticks) = ticks {
                sums.add(ticks, weight);
            }
        }
    }

    /// Adds the requests of an occurrence; of one that is not known whole, forks are not.
    pub(super) fn add_requests(&mut self, arcs: &[Arc], class_of: &[usize], weight: f64, is_whole: bool) {
        self.partial += if is_whole { 0.0 } else { weight };
        if arcs.is_empty() {
            return;
        }
        let mut keys: SmallVec<[(ArcKind, u8, usize); 8]> = arcs.iter().map(|arc| (arc.kind, arc.phase, class_of[arc.target])).collect();
        keys.sort_unstable();
        for (place, same) in keys.chunk_by(|a, b| a == b).enumerate() {
            // Most occurrences of a class make the requests that the first one made.
            let sums = match self.requests.get_index_mut(place) {
                Some((known, sums)) if *known == same[0] => sums,
                _ => self.requests.entry(same[0]).or_default(),
            };
            sums.add(same.len() as u64, weight, is_whole);
        }
        if is_whole && arcs.iter().any(|arc| arc.branch.is_some()) {
            for (shape, counts) in forks::forks(arcs, class_of) {
                if self.forks.contains_key(&shape) || self.forks.len() < MOST_FORKS {
                    let sums = self.forks.entry(shape).or_default();
                    sums.weight += weight;
                    sums.requests.resize_with(counts.len(), Vec::new);
                    for (branch, counts) in sums.requests.iter_mut().zip(counts) {
                        branch.resize_with(counts.len(), RequestSums::default);
                        branch.iter_mut().zip(counts).for_each(|(request, n)| request.add(n, weight, true));
                    }
                }
            }
        }
    }

    /// Adds what `later` sums up, whose classes have the numbers `class_of` here. By behaviour only occurrences are added:
    /// the requests are alike.
    pub(super) fn merge(&mut self, later: Self, class_of: &[usize], by_operation: bool) {
        let is_first = self.n == 0;
        self.n += later.n;
        self.weight += later.weight;
        self.partial += later.partial;
        for (here, there) in self.self_time.iter_mut().zip(&later.self_time) {
            here.add_scaled(there, 1.0);
        }
        if !by_operation && !is_first {
            return;
        }
        for ((kind, phase, class), sums) in later.requests {
            self.requests.entry((kind, phase, class_of[class])).or_default().add_scaled(&sums, 1.0);
        }
        for (shape, sums) in later.forks {
            let mut branches: Vec<Vec<((ArcKind, usize), RequestSums)>> = Vec::with_capacity(shape.len());
            for (branch, requests) in shape.into_iter().zip(sums.requests) {
                let mut renamed: Vec<_> = branch.into_iter().map(|(kind, class)| (kind, class_of[class])).zip(requests).collect();
                renamed.sort_by_key(|(request, _)| *request);
                branches.push(renamed);
            }
            branches.sort_by(|a, b| a.iter().map(|(r, _)| r).cmp(b.iter().map(|(r, _)| r)));
            let (shape, requests): (ForkShape, BranchSums) = branches.into_iter().map(|branch| branch.into_iter().unzip()).unzip();
            if self.forks.contains_key(&shape) || self.forks.len() < MOST_FORKS {
                self.forks.entry(shape).or_default().add_scaled(&ForkSums { weight: sums.weight, requests }, 1.0);
            }
        }
    }
}

impl ForkSums {
    /// Adds `factor` times what `other`, of the same shape, sums up.
    pub(super) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.weight += factor * other.weight;
        if self.requests.is_empty() {
            self.requests = other.requests.iter().map(|branch| vec![RequestSums::default(); branch.len()]).collect();
        }
        for (here, there) in self.requests.iter_mut().flatten().zip(other.requests.iter().flatten()) {
            here.add_scaled(there, factor);
        }
    }
}
