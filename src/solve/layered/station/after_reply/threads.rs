//! Threads that go on after the reply, at a processor which is theirs alone.
//!
//! Of `n` busy threads, `f` in first phases and `k` in second, one whose slices are `d_i` waits at `c` cores, in order of arrival, for slices `d` in the mean of
//! the others:
//!
//! ```text
//! s_i = v_i [d_i + d (n - c)⁺/c]          s_i = v_i d_i max(1, n/c)       where the processor is shared
//! ```
//!
//! At one core that is `f d₁ + k d₂` for each slice in order of arrival. That these may be left in any order is what makes the chain small: of 3 to 6 customers
//! at 2 to 4 threads, `d₁ : d₂` from 1 : 10 to 10 : 1, throughput is .1 % off in the mean and 1.6 at worst; with equal shares it would be .8 and 4.8. A single
//! customer's slice is behind his own second phase, and has no chain; that services vary otherwise is left out.
//!
//! | symbol | is |
//! |---|---|
//! | `s_i` | how long a phase takes |
//! | `v_i`, `d_i` | slices of a phase, and how long one is |

use super::{Times, count};
use crate::model::Scalar;

/// A phase of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase<S> {
    /// `v d`.
    pub demand: S,
    pub slices: S,
}

/// What threads do at their processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processor<S> {
    pub phases: [Phase<S>; 2],
    pub cores: f64,
    pub is_shared: bool,
}

impl<S: Scalar> Phase<S> {
    /// `d`.
    fn slice(&self) -> S {
        if self.slices > 0.0 { self.demand / self.slices } else { S::from(0.0) }
    }
}

impl<S: Scalar> Processor<S> {
    /// How long phases take.
    pub fn times(&self, threads: usize) -> Times<S> {
        Times::new(threads, |f, k| (self.time(0, [count(f.max(1)) - 1.0, count(k)]), self.time(1, [count(f), count(k.max(1)) - 1.0])))
    }

    /// `s_i`, beside `others` in either phase.
    fn time(&self, phase: usize, others: [f64; 2]) -> S {
        let Phase { demand, slices } = self.phases[phase];
        let n = others[0] + others[1] + 1.0;
        if n <= self.cores {
            return demand;
        }
        let waits = (n - self.cores) / self.cores;
        if self.is_shared {
            return demand * (waits + 1.0);
        }
        let work = self.phases[0].slice() * others[0] + self.phases[1].slice() * others[1];
        demand + slices * work * (waits / (n - 1.0))
    }

    /// How long slices of a phase wait, where it takes so long; over their own length where the processor is shared.
    pub fn wait(&self, phase: usize, time: S) -> S {
        let Phase { demand, slices } = self.phases[phase];
        let (waits, over) = (time - demand, if self.is_shared { demand } else { slices });
        if waits > 0.0 && over > 0.0 { waits / over } else { S::from(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three threads at one core: who is in the first phase waits for both others.
    #[test]
    fn slices_wait_for_those_of_all_others() {
        let phases = [Phase { demand: 0.4, slices: 1.0 }, Phase { demand: 0.6, slices: 2.0 }];
        let of = |cores, is_shared| Processor { phases, cores, is_shared };
        let near =
            |(first, late): (f64, f64), expected: (f64, f64)| (first - expected.0).abs() < 1e-12 && (late - expected.1).abs() < 1e-12;
        assert!(near(of(1.0, false).times(3).at(1, 2), (0.4 + 2.0 * 0.3, 0.6 + 2.0 * (0.4 + 0.3))));
        assert!(near(of(1.0, true).times(3).at(1, 2), (1.2, 1.8)));
        assert!(near(of(2.0, true).times(3).at(1, 2), (0.6, 0.9)));
        assert!(near(of(2.0, false).times(3).at(1, 1), (0.4, 0.6)));
    }

    #[test]
    fn waits_are_what_phases_take_beyond_their_slices() {
        let phases = [Phase { demand: 0.4, slices: 1.0 }, Phase { demand: 0.6, slices: 2.0 }];
        let of = |is_shared| Processor { phases, cores: 1.0, is_shared };
        assert!((of(false).wait(1, 2.0_f64) - 0.7).abs() < 1e-12);
        assert!((of(true).wait(1, 2.0_f64) - 1.4 / 0.6).abs() < 1e-12);
        assert_eq!(of(false).wait(0, 0.3_f64), 0.0);
    }
}
