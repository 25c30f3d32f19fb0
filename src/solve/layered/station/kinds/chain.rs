//! The chain of how many of two kinds of sources are there, and which is served.
//!
//! States and transitions are those at the head of [`super`]; they are taken out one by one ([`super::eliminated`]).

use super::{
    eliminated::{self, Solved},
    sources::{Cause, Kind, There, count, number, plain},
};
use crate::model::Scalar;

/// Who is there of both kinds.
pub(super) fn there<S: Scalar>(kinds: [Kind<S>; 2]) -> Option<There<S>> {
    // The more numerous kind is that of the levels.
    let order = if kinds[0].sources >= kinds[1].sources { [0, 1] } else { [1, 0] };
    let kinds = order.map(|of| kinds[of]);
    let chain = Chain::new(plain(&kinds));
    let found = Solved::new(&chain).there(&chain, &kinds)?;
    Some(There { waiting: order.map(|of| found.waiting[of]), busy: order.map(|of| found.busy[of]) })
}

/// What the elimination of a chain's states multiplies.
pub(super) fn work([a, b]: [f64; 2]) -> f64 {
    let (levels, width) = (a.max(b) + 1.0, 2.0 * a.min(b) + 1.0);
    levels * width * (width + 1.0) * (width + 1.0)
}

/// The chain in a band. In each of its levels, by how many are there of the first kind, the state of `b` of the second with one of the
/// first in service is number `2 b`, with one of the second `2 b - 1`; nobody is there in number 0 of level 0, of which no other even number is one.
struct Chain {
    kinds: [Kind<f64>; 2],
    /// Most of each kind.
    most: [usize; 2],
    width: usize,
}

impl Chain {
    fn new(kinds: [Kind<f64>; 2]) -> Self {
        let most = kinds.map(|kind| number(kind.sources));
        Self { kinds, most, width: 2 * most[1] + 1 }
    }

    /// The number of the state of a service of kind `of` with so many there; that of nobody there.
    fn state(&self, of: usize, [a, b]: [usize; 2]) -> usize {
        a * self.width + 2 * b - usize::from(of == 1 && b > 0)
    }

    fn is_state(&self, state: usize) -> bool {
        state == 0 || state >= self.width || !state.is_multiple_of(2)
    }

    fn for_each_from(&self, n: [usize; 2], each: &mut impl FnMut(usize, usize, f64, Cause)) {
        let nobody = n == [0, 0];
        for of in [0, 1].into_iter().filter(|&of| n[of] > 0 || nobody && of == 0) {
            let from = self.state(of, n);
            for next in [0, 1].into_iter().filter(|&next| n[next] < self.most[next]) {
                let mut more = n;
                more[next] += 1;
                let to = self.state(if nobody { next } else { of }, more);
                each(from, to, (self.kinds[next].sources - count(n[next])) / self.kinds[next].away, Cause::Comes(next));
            }
            if nobody {
                continue;
            }
            let mut left = n;
            left[of] -= 1;
            let (rate, again) = (self.kinds[of].service.recip(), self.kinds[of].again);
            if left == [0, 0] {
                each(from, 0, rate * (1.0 - again), Cause::Goes(of));
            }
            for next in [0, 1].into_iter().filter(|&next| left[next] > 0) {
                let rate = rate * (count(left[next]) / count(left[0] + left[1]));
                each(from, self.state(next, left), rate * (1.0 - again), Cause::Goes(of));
                if next != of && again > 0.0 {
                    each(from, self.state(next, n), rate * again, Cause::Stays(of));
                }
            }
        }
    }
}

impl eliminated::Chain<2> for Chain {
    fn n_states(&self) -> usize {
        (self.most[0] + 1) * self.width
    }

    fn reach(&self) -> usize {
        self.width + 1
    }

    fn for_each(&self, mut each: impl FnMut(usize, usize, f64, Cause)) {
        for a in 0..=self.most[0] {
            for b in 0..=self.most[1] {
                self.for_each_from([a, b], &mut each);
            }
        }
    }

    fn sums(&self, weights: &[f64]) -> There<f64> {
        let mut there = There { waiting: [0.0; 2], busy: [0.0; 2] };
        for (state, &weight) in weights.iter().enumerate().filter(|&(state, _)| state > 0 && self.is_state(state)) {
            let (a, b) = (state / self.width, (state % self.width).div_ceil(2));
            let of = (state % self.width) % 2;
            there.busy[of] += weight;
            let mut waiting = [a, b];
            waiting[of] -= 1;
            for (all, n) in there.waiting.iter_mut().zip(waiting) {
                *all += weight * count(n);
            }
        }
        there
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn kind(sources: f64, away: f64, service: f64) -> Kind<f64> {
        Kind { sources, away, service, again: 0.0 }
    }

    /// Waits in order of arrival, by the chain of all orders.
    #[test]
    fn waits_are_near_those_in_order_of_arrival() {
        for (a, b, waits) in [
            (kind(12.0, 3.0, 0.2), kind(2.0, 4.0, 1.0), [1.10973, 0.91097]),
            (kind(2.0, 0.42, 0.2), kind(4.0, 15.46, 3.0), [0.85458, 2.27612]),
            (kind(4.0, 1.0, 0.2), kind(2.0, 6.0, 3.0), [1.41606, 1.48283]),
            (kind(3.0, 2.0, 1.0), kind(3.0, 1.0, 0.3), [1.53544, 1.66800]),
        ] {
            let found = there([a, b]).unwrap();
            for (of, service) in [a.service, b.service].into_iter().enumerate() {
                let wait = found.waiting[of] * service / found.busy[of];
                assert!((wait / waits[of] - 1.0).abs() < 0.054, "{a:?} {b:?}: {wait} {}", waits[of]);
            }
        }
    }

    /// Of one source each there is no order to choose.
    #[test]
    fn two_sources_wait_as_their_chain_says() {
        let (a, b) = (kind(1.0, 0.7, 0.3), kind(1.0, 1.1, 2.0));
        let found = there([a, b]).unwrap();
        // Nobody, one alone, one before the other.
        let mut p = [0.2; 5];
        for _ in 0..20_000 {
            let [none, only_a, only_b, a_first, b_first] = p;
            let step = 0.05;
            p = [
                none + step * (only_a / 0.3 + only_b / 2.0 - none * (1.0 / 0.7 + 1.0 / 1.1)),
                only_a + step * (none / 0.7 + b_first / 2.0 - only_a * (1.0 / 0.3 + 1.0 / 1.1)),
                only_b + step * (none / 1.1 + a_first / 0.3 - only_b * (1.0 / 2.0 + 1.0 / 0.7)),
                a_first + step * (only_a / 1.1 - a_first / 0.3),
                b_first + step * (only_b / 0.7 - b_first / 2.0),
            ];
        }
        let expected = [p[4], p[3], p[1] + p[3], p[2] + p[4]];
        for (found, expected) in found.waiting.into_iter().chain(found.busy).zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }
}
