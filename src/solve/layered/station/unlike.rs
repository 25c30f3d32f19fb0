//! Sources of a station that are not alike: how many more may come when some are there.
//!
//! Two threads that are nearly always at a processor and one that is seldom there are not three that are each there two thirds of their time: all of
//! two cores are busy far less often. Of pools `p` of `K_p` threads, each served for `x_p` of the time that it is away, a closed network of one queue has
//!
//! ```text
//! p(n) ∝ e_n n! / Π_{j ≤ n} min(j, m)              Σ e_n y^n = Π_p (1 + x_p y)^{K_p}
//! ```
//!
//! (Baskett, Chandy, Muntz and Palacios 1975, of equal service), which is the distribution of [`super::busy`] with
//!
//! ```text
//! c_n = n e_n / e_{n-1}        in place of K - n + 1, times (K - n + 1) / (ΣK_p - n + 1)
//! ```
//!
//! since a customer less may leave `K` sources, fewer than there are threads (where all customers are fewer than the threads, who comes is not told by pools). Only the ratios of
//! the `x_p` count, since the mean of `p` is that of the load seen. With equal ones `c_n` is `K - n + 1`.
//!
//! | symbol | field |
//! |---|---|
//! | `K_p` | `Pool::threads`, without the arrival's own |
//! | `x_p` | `Pool::served` over `Pool::away` |

use num_traits::clamp;

use super::busy::MANY;
use crate::model::Scalar;

/// Sources beyond which they count as alike, none of which are as many as count as Poisson: their distribution takes the square of their number.
pub(super) const MOST: f64 = MANY;
/// How far the `x_p` may be from the mean one, as a factor: of idle pools, and of threads that are never away, the load seen says too little.
const FURTHEST: f64 = 20.0;
/// Least that threads are away, of their time.
const LEAST_AWAY: f64 = 0.05;

/// The threads of a pool that an arrival may meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool<S> {
    pub threads: f64,
    /// How many of them are served, and how many are away, in the mean.
    pub served: S,
    pub away: S,
}

impl<S: Scalar> Pool<S> {
    /// That of so many threads, of which so many are served and wait in the mean.
    pub fn new(threads: f64, served: S, waiting: S) -> Self {
        let (away, least) = (-(served + waiting) + threads, threads * LEAST_AWAY);
        Self { threads, served, away: if away > least { away } else { S::from(least) } }
    }
}

/// Sets `coming` to `c_1`, `c_2` … `c_K` of whole numbers of threads and sources, to none where one pool has all; `room` is for the `e_n`.
pub(super) fn coming<S: Scalar>(pools: &[Pool<S>], sources: f64, coming: &mut Vec<S>, room: &mut Vec<S>) {
    coming.clear();
    let zero = S::from(0.0);
    let (threads, served, away) =
        pools.iter().fold((0.0, zero, zero), |(n, served, away), pool| (n + pool.threads, served + pool.served, away + pool.away));
    if pools.len() < 2 || served <= 0.0 {
        return;
    }
    let mean = served / away;
    room.clear();
    room.push(S::from(1.0));
    for pool in pools {
        let odds = clamp(pool.served / (pool.away * mean), S::from(FURTHEST.recip()), S::from(FURTHEST));
        multiply(room, odds, pool.threads);
    }
    let mut n = 1.0;
    for pair in room.windows(2) {
        if n > sources {
            break;
        }
        let fewer = if sources < threads { (sources - n + 1.0) / (threads - n + 1.0) } else { 1.0 };
        coming.push(pair[1] / pair[0] * (n * fewer));
        n += 1.0;
    }
}

/// Multiplies a polynomial by `(1 + x y)^k`.
fn multiply<S: Scalar>(polynomial: &mut Vec<S>, x: S, k: f64) {
    let mut i = 0.0;
    while i < k {
        let mut before = S::from(0.0);
        for term in polynomial.iter_mut() {
            before = std::mem::replace(term, *term + before * x);
        }
        polynomial.push(before * x);
        i += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pools: &[(f64, f64, f64)], sources: f64) -> Vec<f64> {
        let pools: Vec<Pool<f64>> = pools.iter().map(|&(threads, served, waiting)| Pool::new(threads, served, waiting)).collect();
        let (mut found, mut room) = (Vec::new(), Vec::new());
        coming(&pools, sources, &mut found, &mut room);
        found
    }

    #[test]
    fn of_equal_threads_those_that_are_away_may_come() {
        for (found, n) in of(&[(3.0, 0.6, 0.3), (4.0, 0.8, 0.4)], 7.0).iter().zip(1..) {
            assert!((found - (8.0 - f64::from(n))).abs() < 1e-12, "{n}: {found}");
        }
        for (found, n) in of(&[(3.0, 0.6, 0.3), (4.0, 0.8, 0.4)], 6.0).iter().zip(1..) {
            assert!((found - (7.0 - f64::from(n))).abs() < 1e-12, "{n}: {found}");
        }
    }

    /// The generating function of three threads of odds 2, 2 and 1/2, over their mean: 1 + 4.5 y + 6 y² + 2 y³.
    #[test]
    fn seldom_ones_come_last() {
        let found = of(&[(2.0, 4.0 / 3.0, 0.0), (1.0, 1.0 / 3.0, 0.0)], 3.0);
        let mean = (5.0 / 3.0) / (4.0 / 3.0);
        for (found, expected) in found.iter().zip([4.5, 2.0 * 6.0 / 4.5, 3.0 * 2.0 / 6.0]) {
            assert!((found - expected / mean).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn one_pool_has_no_others() {
        assert!(of(&[(5.0, 1.0, 1.0)], 5.0).is_empty());
        assert!(of(&[(5.0, 0.0, 0.0), (2.0, 0.0, 0.0)], 7.0).is_empty());
    }

    #[test]
    fn idle_pools_and_busy_ones_stay_numbers() {
        let found = of(&[(24.0, 23.9, 0.4), (24.0, 0.0, 0.0)], MOST);
        assert_eq!(found.len(), 48);
        assert!(found.iter().all(|c| c.is_finite() && *c > 0.0), "{found:?}");
    }
}
