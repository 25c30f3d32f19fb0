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
//! An arrival sees each state in proportion to `(N - n)` times its probability. What it sees waiting, in the first and in the
//! second phase, over the mean of each, are the factors returned; without a second phase they are those of exact
//! mean value analysis.

use crate::model::Scalar;

/// What an arrival sees relative to the mean over time: of those waiting, of first phases, of second phases; and the cycles a
/// unit of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenOnArrival<S> {
    pub waiting: S,
    pub first: S,
    pub late: S,
}

/// Beyond this, unnormalized probabilities are scaled down.
const LARGE: f64 = 1e200;

/// Solves the chain of `threads` threads; `gap`, `first` > 0.
pub(super) fn seen_on_arrival<S: Scalar>(threads: u32, gap: S, first: S, late: S) -> SeenOnArrival<S> {
    let zero = S::from(0.0);
    let n_threads = f64::from(threads);
    let mut all = Sums { total: zero, arrivals: zero, waiting: zero, first: zero, late: zero, mean_waiting: zero, mean_first: zero };
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
    let over = |seen: S, mean: S| if mean > 0.0 { seen / all.arrivals / (mean / all.total) } else { zero };
    let mean_late = if first > 0.0 { all.mean_first / first * late } else { zero };
    SeenOnArrival { waiting: over(all.waiting, all.mean_waiting), first: over(all.first, all.mean_first), late: over(all.late, mean_late) }
}

/// Unnormalized sums over the states.
struct Sums<S> {
    total: S,
    arrivals: S,
    waiting: S,
    first: S,
    late: S,
    mean_waiting: S,
    mean_first: S,
}

impl<S: Scalar> Sums<S> {
    /// States with `n` threads at the station: idle, in the first phase, in the second.
    fn add(&mut self, n: f64, threads: f64, idle: S, first: S, late: S) {
        let away = threads - n;
        self.total += idle + first + late;
        self.arrivals += (idle + first + late) * away;
        let waiting = late * n + first * (n - 1.0).max(0.0);
        self.waiting += waiting * away;
        self.mean_waiting += waiting;
        self.first += first * away;
        self.mean_first += first;
        self.late += late * away;
    }

    fn scale(&mut self, down: f64) {
        for sum in [
            &mut self.total,
            &mut self.arrivals,
            &mut self.waiting,
            &mut self.first,
            &mut self.late,
            &mut self.mean_waiting,
            &mut self.mean_first,
        ] {
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
        assert!((seen.late * 0.4 - 0.5).abs() < 1e-12, "{seen:?}");
        assert!(seen.waiting.abs() < 1e-12 && seen.first.abs() < 1e-12);
    }

    /// Against the chain's equations solved as a linear system: 3 threads, `z` = 0.62, `s₁` = 0.428, `s₂` = 0.24.
    #[test]
    fn three_threads_agree_with_the_solved_chain() {
        let seen = seen_on_arrival(3, 0.62_f64, 0.428, 0.24);
        let (throughput, wait) = (1.467_760_436_5, 0.995_930_280_0);
        assert!((seen.waiting * throughput * wait - 0.855_219_289_6).abs() < 1e-8, "{seen:?}");
        assert!((seen.first * throughput * 0.428 - 0.467_524_946_6).abs() < 1e-8);
        assert!((seen.late * throughput * 0.24 - 0.468_071_375_9).abs() < 1e-8);
    }

    /// Without a second phase: machine repair, where an arrival of `N` sees the mean of `N - 1`.
    #[test]
    fn without_second_phase_an_arrival_sees_one_less() {
        let seen = seen_on_arrival(2, 1.0_f64, 1.0, 0.0);
        // Busy for N = 1: 1/2; for N = 2: 4/5.
        assert!((seen.first - 0.5 / 0.8).abs() < 1e-12 && seen.waiting.abs() < 1e-12, "{seen:?}");
    }

    #[test]
    fn many_threads_do_not_overflow() {
        let seen = seen_on_arrival(128, 1e-3_f64, 1.0, 0.5);
        assert!(seen.waiting.is_finite() && seen.waiting > 0.9 && seen.waiting <= 1.0 + 1e-9, "{seen:?}");
    }
}
