//! The chain of how many of two kinds of sources are there, and which is served.
//!
//! States and transitions are those at the head of [`super`]. It is solved by taking its states out one by one, from the last to the first (Grassmann,
//! Taksar and Heyman 1985), which subtracts nothing:
//!
//! ```text
//! out_n = Σ_{j<n} q_nj        q_ij += q_in q_nj / out_n   (i, j < n)        p_0 = 1    p_n = Σ_{i<n} p_i q_in / out_n
//! ```
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `q_ij` | `rates` | from a state to another, in a band as wide as two levels |
//! | `p_n` | `weights` | how often the chain is there |

use crate::model::Scalar;

/// States whose weight is above this are scaled down.
const LARGE: f64 = 1e100;

/// Sources of a kind.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Kind<S> {
    pub sources: f64,
    pub away: S,
    pub service: S,
}

/// How many of each kind wait, and the chances that they are in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct There<S> {
    pub waiting: [S; 2],
    pub busy: [S; 2],
}

/// Who is there of both kinds.
pub(super) fn there<S: Scalar>([a, b]: [Kind<S>; 2]) -> There<S> {
    if a.sources >= b.sources {
        return Chain::new(a, b).solve();
    }
    let There { waiting: [wait_b, wait_a], busy: [busy_b, busy_a] } = Chain::new(b, a).solve();
    There { waiting: [wait_a, wait_b], busy: [busy_a, busy_b] }
}

/// The chain's rates in a band. In each of its levels, by how many are there of the first kind, the state of `b` of the second with one of the
/// first in service is number `2 b`, with one of the second `2 b - 1`; nobody is there in number 0 of level 0, of which no other even number is one.
struct Chain<S> {
    kinds: [Kind<S>; 2],
    /// Most of each kind.
    most: [usize; 2],
    width: usize,
    /// From each state to those as far before and after as one level and one state.
    rates: Vec<S>,
}

impl<S: Scalar> Chain<S> {
    fn new(levels: Kind<S>, inner: Kind<S>) -> Self {
        let most = [levels, inner].map(|kind| number(kind.sources));
        let width = 2 * most[1] + 1;
        let states = (most[0] + 1) * width;
        let mut chain = Self { kinds: [levels, inner], most, width, rates: vec![S::from(0.0); states * (2 * width + 3)] };
        for a in 0..=most[0] {
            for b in 0..=most[1] {
                chain.set_rates([a, b]);
            }
        }
        chain
    }

    /// How far transitions go.
    fn reach(&self) -> usize {
        self.width + 1
    }

    /// The number of the state of a service of kind `of` with so many there; that of nobody there.
    fn state(&self, of: usize, [a, b]: [usize; 2]) -> usize {
        a * self.width + 2 * b - if of == 1 && b > 0 { 1 } else { 0 }
    }

    fn is_state(&self, state: usize) -> bool {
        state == 0 || state >= self.width || !state.is_multiple_of(2)
    }

    fn place(&self, from: usize, to: usize) -> usize {
        from * (2 * self.reach() + 1) + to + self.reach() - from
    }

    /// The rates from the states with so many there.
    fn set_rates(&mut self, n: [usize; 2]) {
        let comes = [0, 1].map(|of| self.kinds[of].away.recip() * (self.kinds[of].sources - count(n[of])));
        let nobody = n == [0, 0];
        for of in [0, 1].into_iter().filter(|&of| n[of] > 0 || nobody && of == 0) {
            let from = self.state(of, n);
            for (next, rate) in comes.into_iter().enumerate().filter(|&(next, _)| n[next] < self.most[next]) {
                let mut more = n;
                more[next] += 1;
                let place = self.place(from, self.state(if nobody { next } else { of }, more));
                self.rates[place] += rate;
            }
            if nobody {
                continue;
            }
            let mut left = n;
            left[of] -= 1;
            let rate = self.kinds[of].service.recip();
            if left == [0, 0] {
                let place = self.place(from, 0);
                self.rates[place] += rate;
            }
            for next in [0, 1].into_iter().filter(|&next| left[next] > 0) {
                let place = self.place(from, self.state(next, left));
                self.rates[place] += rate * (count(left[next]) / count(left[0] + left[1]));
            }
        }
    }

    fn solve(mut self) -> There<S> {
        let weights = self.weights();
        let zero = S::from(0.0);
        let (mut there, mut sum) = (There { waiting: [zero; 2], busy: [zero; 2] }, zero);
        for (state, &weight) in weights.iter().enumerate() {
            sum += weight;
            if state == 0 || !self.is_state(state) {
                continue;
            }
            let (a, b) = (state / self.width, (state % self.width).div_ceil(2));
            let of = (state % self.width) % 2;
            there.busy[of] += weight;
            let mut waiting = [a, b];
            waiting[of] -= 1;
            for (all, n) in there.waiting.iter_mut().zip(waiting) {
                *all += weight * count(n);
            }
        }
        There { waiting: there.waiting.map(|n| n / sum), busy: there.busy.map(|chance| chance / sum) }
    }

    /// How often each state is, over any of them.
    fn weights(&mut self) -> Vec<S> {
        let (reach, states) = (self.reach(), (self.most[0] + 1) * self.width);
        let stride = 2 * reach + 1;
        let mut left = vec![S::from(1.0); states];
        for state in (1..states).rev() {
            if !self.is_state(state) {
                continue;
            }
            let first = state.saturating_sub(reach);
            let (before, its) = self.rates.split_at_mut(state * stride);
            let its = &its[first + reach - state..reach];
            let out = its.iter().fold(S::from(0.0), |sum, &rate| sum + rate);
            left[state] = out;
            for from in first..state {
                let place = from * stride + state + reach - from;
                let rate = before[place];
                if rate == 0.0 {
                    continue;
                }
                let share = rate / out;
                let row = from * stride + first + reach - from;
                for (rate, &its) in before[row..row + state - first].iter_mut().zip(its) {
                    *rate += share * its;
                }
            }
        }
        let mut weights = vec![S::from(0.0); states];
        weights[0] = S::from(1.0);
        for state in (1..states).filter(|&state| self.is_state(state)) {
            let came = (state.saturating_sub(reach)..state)
                .fold(S::from(0.0), |sum, from| sum + weights[from] * self.rates[self.place(from, state)]);
            weights[state] = came / left[state];
            if weights[state] > LARGE {
                let by = weights[state].value().recip();
                weights[..=state].iter_mut().for_each(|weight| *weight *= by);
            }
        }
        weights
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of sources are few here")]
fn number(sources: f64) -> usize {
    sources as usize
}

#[expect(clippy::cast_precision_loss, reason = "numbers of sources are few here")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sources: f64, away: f64, service: f64) -> Kind<f64> {
        Kind { sources, away, service }
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
            let found = there([a, b]);
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
        let found = there([a, b]);
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
