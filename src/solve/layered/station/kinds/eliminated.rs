//! Chains in a band, whose states are taken out one by one.
//!
//! From the last state to the first (Grassmann, Taksar and Heyman 1985), which subtracts nothing:
//!
//! ```text
//! out_n = Σ_{j<n} q_nj        q_ij += q_in q_nj / out_n   (i, j < n)        p_0 = 1    p_n = Σ_{i<n} p_i q_in / out_n
//! ```
//!
//! Slopes `p'` along a number `t` of a kind follow from the same rates, whatever the number of parameters:
//!
//! ```text
//! r_j = -Σ_i (p_i q_ij - p_j q_ji) d ln q/dt, with the slope of each rate        r_j += r_n q_nj / out_n  (j < n)
//! p'_0 = 0     p'_n = (Σ_{i<n} p'_i q_in - r_n) / out_n                less p Σ p'
//! ```
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `q_ij` | `rates` | from a state to another, in a band as wide as two levels |
//! | `out_n` | `out` | all from a state to those before it, when it is taken out; 0 of numbers that are no states |
//! | `p_n`, `r_n` | `weights`, `asked` | how often the chain is there, and what a longer time asks for |

use super::sources::{Cause, Kind, There, Weights, numbers, with_slopes};
use crate::model::Scalar;

/// States whose weight is above this are scaled down.
const LARGE: f64 = 1e100;
/// Weights that are scaled down as often are none.
const UNDERFLOW: usize = 7;

/// A chain of `K` kinds of sources. Nobody is there in its state 0.
pub(super) trait Chain<const K: usize> {
    fn n_states(&self) -> usize;

    /// How far transitions go.
    fn reach(&self) -> usize;

    /// Calls `each` for every transition: from and to which state, its rate and what it is by.
    fn for_each(&self, each: impl FnMut(usize, usize, f64, Cause));

    /// Who is there, where states have such weights; these are 0 where a number is no state.
    fn sums(&self, weights: &[f64]) -> There<f64, K>;
}

/// A chain with its states taken out.
pub(super) struct Solved {
    reach: usize,
    /// From each state to those as far before and after as one level and one state, of those before it when it was taken out.
    rates: Vec<f64>,
    /// The sum of these; 0 where there is no such state.
    out: Vec<f64>,
    /// Chances of the states.
    pub weights: Vec<f64>,
}

impl Solved {
    /// Who is there of both `kinds`, of which the `chain` is that of plain numbers.
    pub fn there<S: Scalar, const K: usize>(&self, chain: &impl Chain<K>, kinds: &[Kind<S>; K]) -> Option<There<S, K>> {
        with_slopes(chain.sums(&self.weights), numbers(kinds), |weights| Some(chain.sums(&self.slopes(chain, weights))))
    }

    pub fn new<const K: usize>(chain: &impl Chain<K>) -> Self {
        let (reach, states) = (chain.reach(), chain.n_states());
        let mut it = Self { reach, rates: vec![0.0; states * (2 * reach + 1)], out: vec![0.0; states], weights: vec![0.0; states] };
        chain.for_each(|from, to, rate, _| {
            let place = it.place(from, to);
            it.rates[place] += rate;
        });
        it.take_out();
        it.find_weights();
        it
    }

    fn place(&self, from: usize, to: usize) -> usize {
        from * (2 * self.reach + 1) + to + self.reach - from
    }

    fn take_out(&mut self) {
        let (reach, stride) = (self.reach, 2 * self.reach + 1);
        for state in (1..self.out.len()).rev() {
            let first = state.saturating_sub(reach);
            let (before, its) = self.rates.split_at_mut(state * stride);
            let its = &its[first + reach - state..reach];
            let out: f64 = its.iter().sum();
            if out <= 0.0 {
                continue;
            }
            self.out[state] = out;
            for from in first..state {
                let rate = before[from * stride + state + reach - from];
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
    }

    /// What comes to a state from those before it, of such weights.
    fn came(&self, weights: &[f64], state: usize) -> f64 {
        (state.saturating_sub(self.reach)..state).map(|from| weights[from] * self.rates[self.place(from, state)]).sum()
    }

    fn find_weights(&mut self) {
        self.weights[0] = 1.0;
        let mut sum = 1.0;
        // From where on weights were scaled down, each time: those before are not looked at any more until all are known.
        let mut scaled = Vec::new();
        for state in (1..self.weights.len()).filter(|&state| self.out[state] > 0.0) {
            let weight = self.came(&self.weights, state) / self.out[state];
            self.weights[state] = weight;
            sum += weight;
            if weight > LARGE {
                let first = state.saturating_sub(self.reach);
                self.weights[first..=state].iter_mut().for_each(|weight| *weight /= LARGE);
                sum /= LARGE;
                scaled.push(first);
            }
        }
        let mut later = scaled.as_slice();
        for (state, weight) in self.weights.iter_mut().enumerate() {
            while let [first, rest @ ..] = later
                && *first <= state
            {
                later = rest;
            }
            *weight = later.iter().take(UNDERFLOW).fold(*weight, |weight, _| weight / LARGE) / sum;
        }
    }

    /// How the weights change where the logarithms of rates change by so much.
    fn slopes<const K: usize>(&self, chain: &impl Chain<K>, weights: &Weights) -> Vec<f64> {
        let mut asked = vec![0.0; self.weights.len()];
        chain.for_each(|from, to, rate, by| {
            let more = self.weights[from] * rate * weights.of(by);
            asked[to] -= more;
            asked[from] += more;
        });
        let stride = 2 * self.reach + 1;
        for state in (1..asked.len()).rev().filter(|&state| self.out[state] > 0.0) {
            let first = state.saturating_sub(self.reach);
            let share = asked[state] / self.out[state];
            let its = &self.rates[state * stride + first + self.reach - state..state * stride + self.reach];
            for (asked, &rate) in asked[first..state].iter_mut().zip(its) {
                *asked += share * rate;
            }
        }
        let mut slopes = vec![0.0; asked.len()];
        for state in (1..asked.len()).filter(|&state| self.out[state] > 0.0) {
            slopes[state] = (self.came(&slopes, state) - asked[state]) / self.out[state];
        }
        let all: f64 = slopes.iter().sum();
        slopes.iter_mut().zip(&self.weights).for_each(|(slope, &weight)| *slope -= all * weight);
        slopes
    }
}
