//! How busy several cores are with customers of whom some wait there for few threads.
//!
//! Where all of a customer's tasks are on the same cores, whoever waits for a thread waits beside the cores: while a database of one
//! thread is called by all that is there, one core of two has nothing to do. Of `j` customers there `f` are free and the others at such
//! a task, `b` of these with a thread:
//!
//! ```text
//! R_x = s_x + W        W: f s_f/R_f + b s_b/R_b = min(f + b, m)        b = min(j - f, n)        in order of arrival
//! R_x = s_x (f + b)/min(f + b, m)                                      of shared cores
//! f → f + 1            b/(k R_b)                                       its visit ends
//! f → f - 1            f v/R_f                                         it calls the task
//! U(j) = Σ_f π_j(f) min(f + b, m)                                      π_j the chain of f
//! ```
//!
//! as if all slices waited equally long, who is served next were not remembered, and who is replied to in one state were as in any
//! other: in order of arrival all who wait are served once in a round, so that the ones with short slices have less of the cores.
//! How many are there is told by [`super::by_number`].
//! Beside the exact chain and simulation it is up to 4 % high (two cores, callers with slices of .089 and 24 customers that keep one thread busy with
//! slices of .037: 1.95 for 1.89).
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `n`, `v` | `threads`, `visits` | threads of the task, and visits to it for each slice of a free one |
//! | `s` | `free`, `bound` | mean slice of the free, and of the bound with what works for them |
//! | `k` | `number` | slices of a bound one in a visit |
//! | `m` | `servers` | cores |

use super::by_number::Mean;
use crate::model::Scalar;

/// The most customers that chains of who is free are solved for.
const MOST_FREE: f64 = 400.0;
/// More customers change how busy the cores are by less than this part.
const SETTLED: f64 = 1e-10;

/// Cores, and a task of few threads there.
#[derive(Clone, Copy, Debug)]
pub(super) struct FewThreads<S> {
    pub servers: f64,
    /// Whether all who are there share the cores, and are not served in order of arrival.
    pub is_shared: bool,
    pub threads: f64,
    pub visits: S,
    pub free: S,
    pub bound: S,
    pub number: S,
}

impl<S: Scalar> FewThreads<S> {
    /// `U` of 1, 2 and so on, of which so many are there at most.
    pub fn by_number(self, most: f64) -> impl Iterator<Item = S> {
        let (mut at, mut is_settled) = (S::from(0.0), false);
        (1_u32..).map(move |j| {
            let j = f64::from(j);
            if j <= most && !is_settled {
                let last = at;
                at = self.busy_of(j);
                let change = (at - last).value().abs();
                is_settled = j >= self.servers && change < SETTLED * self.servers || j >= MOST_FREE;
            }
            at
        })
    }

    /// `U(j)`.
    fn busy_of(&self, j: f64) -> S {
        let bound = |f: f64| f64::min(j - f, self.threads);
        let busy = |f: f64| S::from(f64::min(f + bound(f), self.servers));
        let mut mean = Mean::of(busy(0.0));
        let mut f = 0.0;
        while f < j {
            let (up, _) = self.rates(f, bound(f));
            f += 1.0;
            let (_, down) = self.rates(f, bound(f));
            mean.add(up / down, busy(f));
            if up < down && mean.is_negligible() {
                break;
            }
        }
        mean.value()
    }

    /// How soon one of so many bound ones is free, and one of so many free ones bound.
    fn rates(&self, f: f64, b: f64) -> (S, S) {
        let (m, free, bound) = (self.servers, self.free, self.bound);
        let stays = |free: S, bound: S| ((self.number * bound).recip() * b, self.visits * f / free);
        if f + b <= m {
            return stays(free, bound);
        }
        if self.is_shared {
            let share = (f + b) / m;
            return stays(free * share, bound * share);
        }
        let wait = {
            let half = (free * (m - f) + bound * (m - b)) * 0.5;
            let root = (half * half + free * bound * (m * (f + b - m))).sqrt();
            // Either is the difference of two numbers only where it is the smaller one.
            if half > 0.0 { free * bound * (f + b - m) / (half + root) } else { (root - half) / m }
        };
        stays(free + wait, bound + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::by_number::{Customers, busy_servers},
        *,
    };

    /// Two cores, one thread with slices of .037 of which free ones with five call four in a stay.
    fn cores() -> FewThreads<f64> {
        FewThreads { servers: 2.0, is_shared: false, threads: 1.0, visits: 0.8, free: 0.089, bound: 0.037, number: 1.0 }
    }

    fn busy(number: f64, away: f64) -> f64 {
        busy_servers(&[Customers { number, busy: 0.593 / away, away: 1.0 }], cores().by_number(f64::INFINITY))
    }

    #[test]
    fn one_customer_is_there_or_away() {
        assert!((busy(1.0, 3.0) - 0.593 / 3.593).abs() < 1e-12);
    }

    #[test]
    fn waits_keep_all_cores_busy() {
        let it = cores();
        for (f, b) in [(2.0, 1.0), (5.0, 1.0), (0.0, 3.0), (40.0, 1.0)] {
            for it in [it, FewThreads { is_shared: true, ..it }] {
                let (up, down) = it.rates(f, b);
                assert!((up * 0.037 + down / 0.8 * 0.089 - 2.0).abs() < 1e-12, "{f} {b}");
            }
        }
        assert!((it.rates(1.0, 1.0).0 - 1.0 / 0.037).abs() < 1e-9);
    }

    /// With a thread for each all cores are used (here of like slices).
    #[test]
    fn with_a_thread_for_each_all_cores_are_used() {
        let it = FewThreads { threads: 9.0, visits: 0.7, free: 0.1, bound: 0.1, ..cores() };
        for (j, busy) in (1_u32..=6).zip(it.by_number(f64::INFINITY)) {
            assert!((busy - f64::from(j.min(2))).abs() < 1e-12);
        }
    }

    /// The chain of two cores in order of arrival has 1.893 busy with 24 customers who think for 3, and 1.9 with any more.
    #[test]
    fn one_thread_leaves_a_core_idle_at_times() {
        let few = busy(24.0, 3.0);
        assert!((1.88..1.97).contains(&few), "{few}");
        for many in [2_000.0, 50_000.0] {
            assert!((busy(many, 20.0) - few).abs() < 0.01);
        }
        // Of two: both at the task, one, or none.
        let (up, down) = (1.0 / 0.037, 0.8 / 0.089);
        let (one, none) = (up / down, up / down * up / (2.0 * down));
        let of_two = (1.0 + 2.0 * (one + none)) / (1.0 + one + none);
        assert!((cores().busy_of(2.0) - of_two).abs() < 1e-12);
        // No more than two are ever there.
        let bounded = busy_servers(&[Customers { number: 2_000.0, busy: 0.593 / 3.0, away: 1.0 }], cores().by_number(2.0));
        assert!((bounded - of_two).abs() < 1e-6, "{bounded} {of_two}");
    }
}
