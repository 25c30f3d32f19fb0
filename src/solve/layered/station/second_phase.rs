//! Threads of one pool at a server that goes on after the reply, solved exactly.
//!
//! `N` threads come back after an exponential time of mean `z`, wait in order of arrival for an exponential first phase
//! `s₁`, go, and leave the server to a second phase `s₂`. State: `n` threads at the station, and the server's phase. Cutting between
//! `n` and `n + 1` threads, and around a second phase with `n` waiting, gives the chain's probabilities one after the other:
//!
//! ```text
//! p₁(n+1) / s₁ = (N - n)/z (p₁(n) + p₂(n)),        p₀ for p₁(0)
//! p₂(n) / s₂   = (N - n)/z p₁(n) + (N - n + 1)/z p₂(n-1),        p₂(0) / s₂ = N/z p₀
//! ```
//!
//! An arrival sees each state in proportion to `(N - n)` times its probability. It waits
//!
//! ```text
//! W = (w + f) (s₁ + s₂) + l s₂          X = N / (z + W + s₁)
//! ```
//!
//! for what it sees waiting, `w`, in the first and in the second phase, `f` and `l`. Without a second phase that is exact mean value analysis.
//!
//! Threads that are away for times other than exponential find their own second phase with another chance `H` than `H̄ = s₂/(s₂ + z)`
//! ([`super::comes_again`]), the same of any number of threads. While it goes on nobody else is served. Of how many are at the station an arrival sees as many as
//! before, but for a few per cent (nine chains of two to eight threads with two kinds of gaps, solved: waits within 6 %, up to 26 % short as exponential times have them):
//!
//! ```text
//! f' = f (1 - H)/(1 - H̄)        w' = w + f - f'        l' = H + (l - H̄) (1 - H)/(1 - H̄)
//! ```
//!
//! (where `H` is less, by `x w / (w + x)` more in first phases for `x = f' - f`, so that no more are served than there are).

use super::{At, layout::Row, pool::Late};
use crate::model::Scalar;

/// What an arrival sees: how many wait, and are in first and second phases.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenOnArrival<S> {
    pub waiting: S,
    pub first: S,
    pub late: S,
}

impl<S: Scalar> SeenOnArrival<S> {
    /// The same of threads that find their own second phase with chance `own`, where these had `exponential`.
    pub fn with_own(&self, own: S, exponential: S) -> Self {
        let not_own = (-own + 1.0) / (-exponential + 1.0);
        // Of those that wait, so many more are served where it is lower, and no more than wait.
        let more = self.first * (not_own - 1.0);
        let more = if more > 0.0 { more * self.waiting / (self.waiting + more) } else { more };
        let first = self.first + more;
        Self { waiting: self.waiting + self.first - first, first, late: own + (self.late - exponential) * not_own }
    }

    /// What it sees waiting and in the first phase over the means of these, of so many threads.
    pub fn over_means(&self, threads: f64, gap: S, first: S, late: S) -> Ratios<S> {
        let wait = (self.waiting + self.first) * (first + late) + self.late * late;
        let throughput = (gap + wait + first).recip() * threads;
        let over = |seen: S, mean: S| if mean > 0.0 { seen / mean } else { S::from(0.0) };
        let (waiting, served) = (throughput * wait, throughput * first);
        Ratios { waiting: over(self.waiting, waiting), first: over(self.first, served), means: (waiting, served) }
    }
}

/// What an arrival sees relative to the mean over time, and these means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratios<S> {
    pub waiting: S,
    pub first: S,
    pub means: (S, S),
}

/// Beyond this, unnormalized probabilities are scaled down.
const LARGE: f64 = 1e200;

/// Solves the chain of `threads` threads; `gap`, `first` > 0.
pub(super) fn seen_on_arrival<S: Scalar>(threads: u32, gap: S, first: S, late: S) -> SeenOnArrival<S> {
    let zero = S::from(0.0);
    let n_threads = f64::from(threads);
    let mut all = Sums { arrivals: zero, waiting: zero, first: zero, late: zero };
    let mut idle_or_first = S::from(1.0);
    let mut second = late * n_threads / gap;
    all.add(0.0, n_threads, idle_or_first, zero, second);
    for n in 1..=threads {
        let n = f64::from(n);
        let up = (gap.recip() * (n_threads - n + 1.0)) * (idle_or_first + second);
        let before = second;
        idle_or_first = first * up;
        second = late * (idle_or_first * (n_threads - n) + before * (n_threads - n + 1.0)) / gap;
        all.add(n, n_threads, zero, idle_or_first, second);
        if idle_or_first > LARGE {
            let down = LARGE.recip();
            idle_or_first *= down;
            second *= down;
            all.scale(down);
        }
    }
    let seen = |sum: S| sum / all.arrivals;
    SeenOnArrival { waiting: seen(all.waiting), first: seen(all.first), late: seen(all.late) }
}

impl<S: Scalar> At<'_, S> {
    /// What second phases change of what a row's arrivals find of a pool, where it is known.
    pub(super) fn late_of(&self, row: &Row, pool: Option<usize>) -> Option<&Late<S>> {
        let (mine, theirs) = (row.pool?, pool?);
        let late = &self.left[mine].late;
        let are_one = mine == theirs || late.of_customers && self.left[theirs].late.of_customers;
        (late.is_known() && are_one).then_some(late)
    }

    /// How many of a pool an arrival can meet, over how many there are, relative to the same of all customers where these are taken together: of its own
    /// class there is one less.
    pub(super) fn share_of_others(&self, row: &Row, pool: Option<usize>) -> f64 {
        let (Some(mine), Some(theirs)) = (row.pool, pool) else { return 1.0 };
        if !self.left[mine].late.of_customers || self.layout.pools.len() == 1 {
            return 1.0;
        }
        let of = |pool: usize| self.sweep.populations.strands_at(self.sweep.net, self.layout.pools[pool], self.station);
        let of_customers = (0..self.layout.pools.len()).filter(|&pool| self.left[pool].late.of_customers);
        let (all, own) = (of_customers.map(of).sum::<f64>(), of(theirs));
        let met = if mine == theirs { (own - 1.0).max(0.0) / own } else { 1.0 };
        met * all / (all - 1.0)
    }
}

/// Unnormalized sums over the states.
struct Sums<S> {
    arrivals: S,
    waiting: S,
    first: S,
    late: S,
}

impl<S: Scalar> Sums<S> {
    /// States with `n` threads at the station: idle, in the first phase, in the second.
    fn add(&mut self, n: f64, threads: f64, idle: S, first: S, late: S) {
        let away = threads - n;
        self.arrivals += (idle + first + late) * away;
        self.waiting += (late * n + first * (n - 1.0).max(0.0)) * away;
        self.first += first * away;
        self.late += late * away;
    }

    fn scale(&mut self, down: f64) {
        for sum in [&mut self.arrivals, &mut self.waiting, &mut self.first, &mut self.late] {
            *sum *= down;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread finds its own second phase with probability `s₂/(s₂ + z)`; throughput 0.4 for `z = s₁ = s₂ = 1`.
    #[test]
    fn one_thread_overtakes_itself() {
        let seen = seen_on_arrival(1, 1.0_f64, 1.0, 1.0);
        assert!((seen.late - 0.5).abs() < 1e-12, "{seen:?}");
        assert!(seen.waiting.abs() < 1e-12 && seen.first.abs() < 1e-12);
        let Ratios { means: (_, first), .. } = seen.over_means(1.0, 1.0, 1.0, 1.0);
        assert!((first - 0.4).abs() < 1e-12, "{first}");
    }

    /// Against the chain's equations solved as a linear system: 3 threads, `z` = 0.62, `s₁` = 0.428, `s₂` = 0.24.
    #[test]
    fn three_threads_agree_with_the_solved_chain() {
        let seen = seen_on_arrival(3, 0.62_f64, 0.428, 0.24);
        assert!((seen.waiting - 0.855_219_289_6).abs() < 1e-8, "{seen:?}");
        assert!((seen.first - 0.467_524_946_6).abs() < 1e-8);
        assert!((seen.late - 0.468_071_375_9).abs() < 1e-8);
        let (throughput, wait) = (1.467_760_436_5, 0.995_930_280_0);
        let Ratios { means: (waiting, first), .. } = seen.over_means(3.0, 0.62, 0.428, 0.24);
        assert!((waiting - throughput * wait).abs() < 1e-8 && (first - throughput * 0.428).abs() < 1e-8, "{waiting} {first}");
    }

    /// Without a second phase: machine repair, where an arrival of `N` sees the mean of `N - 1`.
    #[test]
    fn without_second_phase_an_arrival_sees_one_less() {
        let seen = seen_on_arrival(2, 1.0_f64, 1.0, 0.0);
        // Busy for N = 1: 1/2.
        assert!((seen.first - 0.5).abs() < 1e-12 && seen.waiting.abs() < 1e-12, "{seen:?}");
    }

    /// Against a chain with two kinds of gaps: 4 threads, `s₁` = 0.572, `s₂` = 0.408, gaps of 0.07525 with chance 3/4, else of 6.84233 (mean 1.767).
    #[test]
    fn threads_that_come_back_soon_find_their_own() {
        let (gap, first, late) = (1.767, 0.572, 0.408);
        let exponential = late / (late + gap);
        let own = 0.75 * late / (late + 0.07525) + 0.25 * late / (late + 6.84233);
        let seen = seen_on_arrival(4, gap, first, late).with_own(own, exponential);
        for (seen, solved) in [(seen.waiting, 1.3394), (seen.first, 0.2086), (seen.late, 0.7381)] {
            assert!((seen - solved).abs() < 0.035, "{seen} {solved}");
        }
    }

    #[test]
    fn many_threads_do_not_overflow() {
        let seen = seen_on_arrival(128, 1e-3_f64, 1.0, 0.5);
        assert!(seen.waiting.is_finite() && seen.waiting > 120.0 && seen.waiting <= 127.0 + 1e-9, "{seen:?}");
    }
}
