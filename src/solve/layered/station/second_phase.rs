//! Threads of one pool at a server that goes on after the reply, solved exactly.
//!
//! `N` threads come back at once with chance `1 - u`, else after an exponential time of mean `z/u`, `z = z(N - n)` by how many are away, wait in order of arrival for an exponential first phase
//! `s₁`, go, and leave the server to a second phase `s₂`. State: `n` threads at the station, and the server's phase. Cutting between
//! `n` and `n + 1` threads, and around a second phase with `n` waiting, gives the chain's probabilities one after the other:
//!
//! ```text
//! p₁(n+1) / s₁ = r_n (p₁(n) + p₂(n)),        p₀ for p₁(0),        r_n = (N - n)/z
//! p₂(n) / s₂   = u r_n p₁(n) + (1 - u) p₁(n)/s₁ + u r_{n-1} p₂(n-1),        p₂(0) / s₂ = u r_0 p₀
//! ```
//!
//! Those who were away see each state in proportion to `u r_n`, those who come back at once a second phase with `n - 1` waiting in proportion to
//! `(1 - u) p₁(n)/s₁`. An arrival waits
//!
//! ```text
//! W = (w + f) (s₁ + s₂) + l s₂          X = N / (z + W + s₁)
//! ```
//!
//! for what it sees waiting, `w`, in the first and in the second phase, `f` and `l`. Without a second phase that is exact mean value analysis. A thread finds its own
//! second phase with chance `H` ([`super::comes_again`]), and `u` is such that it does:
//!
//! ```text
//! u = z (1 - H) / (z - s₂ (1 - H))
//! ```
//!
//! It is 1 for exponential times, and up to 1.2 where `H` is less.

use num_traits::clamp;

use super::{At, layout::Row, pool::Late, visit::SHORTEST_GAP};
use crate::model::Scalar;

/// What an arrival sees: how many wait, and are in first and second phases.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenOnArrival<S> {
    pub waiting: S,
    pub first: S,
    pub late: S,
    /// How long a thread is away.
    pub gap: S,
}

impl<S: Scalar> SeenOnArrival<S> {
    /// What it sees waiting and in the first phase over the means of these, of so many threads.
    pub fn over_means(&self, threads: f64, first: S, late: S) -> Ratios<S> {
        let wait = (self.waiting + self.first) * (first + late) + self.late * late;
        let throughput = (self.gap + wait + first).recip() * threads;
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

/// How gaps are scaled: the power with which their mean grows, at first and at most; how often, how far at once, and how near.
const STEEP: f64 = 2.0;
const MOST_STEEP: f64 = 50.0;
const SCALINGS: usize = 20;
const LONGEST_SCALING: f64 = 2.0;
const NEAR_MEAN: f64 = 1e-7;

/// Bounds on `u`: where all are back at once they are never away, and where `H` is less than of exponential times.
const SELDOM: f64 = 1e-6;
const MOST_OFTEN: f64 = 1.2;

/// A gap that is not too short for the chain, of so long a service.
pub(super) fn gap<S: Scalar>(away: S, service: S) -> S {
    let least = service * SHORTEST_GAP;
    if away > least { away } else { least }
}

/// `u`, of sources that are away for `gap` in the mean and find their own second phase, of mean `late`, with chance `own`.
pub(super) fn away_at_all<S: Scalar>(own: S, gap: S, late: S) -> S {
    let missed = -own + 1.0;
    let rest = gap - missed * late;
    let often = if rest > 0.0 { gap * missed / rest } else { S::from(MOST_OFTEN) };
    clamp(often, S::from(SELDOM), S::from(MOST_OFTEN))
}

/// Scales gaps until the mean of a chain is as asked; none where that has none, and no number. It grows faster than they do, as more are away then: by a
/// power that is found on the way.
pub(super) fn scale_to_mean<S: Scalar>(gaps: &mut [S], mean: S, mut mean_of: impl FnMut(&[S]) -> Option<S>) -> Option<()> {
    let mut power = STEEP;
    let mut last: Option<(f64, f64)> = None;
    let mut near = 0;
    for _ in 0..SCALINGS {
        let off = (mean / mean_of(gaps)?).ln();
        let left = off.value();
        if !left.is_finite() {
            return None;
        }
        if near == 0 {
            power = last.map_or(power, |(step, before)| num_traits::clamp((before - left) / step, 0.5, MOST_STEEP));
        }
        if left.abs() < NEAR_MEAN {
            near += 1;
        }
        let step = off / power;
        let by = if step > LONGEST_SCALING {
            S::from(LONGEST_SCALING)
        } else if step < -LONGEST_SCALING {
            S::from(-LONGEST_SCALING)
        } else {
            step
        }
        .exp();
        last = Some((by.value().ln(), left));
        gaps.iter_mut().for_each(|gap| *gap *= by);
        if near > 1 || left == 0.0 {
            break;
        }
    }
    Some(())
}

/// Solves the chain of `threads` threads, which are away for `gaps` by how many are away, at all so `often` (`u`); `gaps`, `first` > 0.
pub(super) fn seen_on_arrival<S: Scalar>(threads: u32, (gaps, often): (&[S], S), first: S, late: S) -> SeenOnArrival<S> {
    let zero = S::from(0.0);
    let n_threads = f64::from(threads);
    // `(N - n)/z`.
    let comes = |n: u32| if n < threads { gaps[(threads - n - 1) as usize].recip() * f64::from(threads - n) } else { zero };
    let mut all = Sums { arrivals: zero, waiting: zero, first: zero, late: zero, away: zero, back: zero };
    let mut idle_or_first = S::from(1.0);
    let mut second = late * comes(0) * often;
    all.add(0.0, (n_threads, comes(0), often), (idle_or_first, zero, second));
    for n in 1..=threads {
        let (earlier, now) = (comes(n - 1), comes(n));
        let n = f64::from(n);
        let begins = (idle_or_first + second) * earlier;
        let before = second;
        idle_or_first = first * begins;
        let at_once = (-often + 1.0) * begins;
        second = late * (at_once + often * (idle_or_first * now + before * earlier));
        all.add(n, (n_threads - n, now, often), (zero, idle_or_first, second));
        all.arrivals += at_once;
        all.waiting += at_once * (n - 1.0);
        all.late += at_once;
        if idle_or_first > LARGE {
            let down = LARGE.recip();
            idle_or_first *= down;
            second *= down;
            all.scale(down);
        }
    }
    let seen = |sum: S| sum / all.arrivals;
    SeenOnArrival { waiting: seen(all.waiting), first: seen(all.first), late: seen(all.late), gap: all.away / all.back }
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
    away: S,
    back: S,
}

impl<S: Scalar> Sums<S> {
    /// States with `n` threads at the station, to which others come at a rate: idle, in the first phase, in the second.
    fn add(&mut self, n: f64, (away, comes, often): (f64, S, S), (idle, first, late): (S, S, S)) {
        let rate = comes * often;
        self.away += (idle + first + late) * away;
        self.back += (idle + first + late) * comes;
        self.arrivals += (idle + first + late) * rate;
        self.waiting += (late * n + first * (n - 1.0).max(0.0)) * rate;
        self.first += first * rate;
        self.late += late * rate;
    }

    fn scale(&mut self, down: f64) {
        for sum in [&mut self.arrivals, &mut self.waiting, &mut self.first, &mut self.late, &mut self.away, &mut self.back] {
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
        let seen = seen_on_arrival(1, (&[1.0_f64; 1], 1.0), 1.0, 1.0);
        assert!((seen.late - 0.5).abs() < 1e-12, "{seen:?}");
        assert!(seen.waiting.abs() < 1e-12 && seen.first.abs() < 1e-12);
        let Ratios { means: (_, first), .. } = seen.over_means(1.0, 1.0, 1.0);
        assert!((first - 0.4).abs() < 1e-12, "{first}");
    }

    /// Against the chain's equations solved as a linear system: 3 threads, `z` = 0.62, `s₁` = 0.428, `s₂` = 0.24.
    #[test]
    fn three_threads_agree_with_the_solved_chain() {
        let seen = seen_on_arrival(3, (&[0.62_f64; 3], 1.0), 0.428, 0.24);
        assert!((seen.waiting - 0.855_219_289_6).abs() < 1e-8, "{seen:?}");
        assert!((seen.first - 0.467_524_946_6).abs() < 1e-8);
        assert!((seen.late - 0.468_071_375_9).abs() < 1e-8);
        let (throughput, wait) = (1.467_760_436_5, 0.995_930_280_0);
        let Ratios { means: (waiting, first), .. } = seen.over_means(3.0, 0.428, 0.24);
        assert!((waiting - throughput * wait).abs() < 1e-8 && (first - throughput * 0.428).abs() < 1e-8, "{waiting} {first}");
    }

    /// Without a second phase: machine repair, where an arrival of `N` sees the mean of `N - 1`.
    #[test]
    fn without_second_phase_an_arrival_sees_one_less() {
        let seen = seen_on_arrival(2, (&[1.0_f64; 2], 1.0), 1.0, 0.0);
        // Busy for N = 1: 1/2.
        assert!((seen.first - 0.5).abs() < 1e-12 && seen.waiting.abs() < 1e-12, "{seen:?}");
    }

    /// Against a chain with two kinds of gaps: 4 threads, `s₁` = 0.572, `s₂` = 0.408, gaps of 0.07525 with chance 3/4, else of 6.84233 (mean 1.767).
    #[test]
    fn threads_that_come_back_soon_find_their_own() {
        let (gap, first, late) = (1.767, 0.572, 0.408);
        let own = 0.75 * late / (late + 0.07525) + 0.25 * late / (late + 6.84233);
        let seen = seen_on_arrival(4, (&[gap; 4], away_at_all(own, gap, late)), first, late);
        for (seen, solved) in [(seen.waiting, 1.3394), (seen.first, 0.2086), (seen.late, 0.7381)] {
            assert!((seen - solved).abs() < 0.03, "{seen} {solved}");
        }
    }

    /// One thread that is always back at once finds its second phase each time; one that is so with chance 1/2 each other time, and else as after `z/u`.
    #[test]
    fn one_thread_that_is_back_at_once_finds_its_own() {
        let seen = seen_on_arrival(1, (&[2.0_f64; 1], 0.5), 1.0, 1.0);
        assert!((seen.late - (0.5 + 0.5 / (1.0 + 4.0))).abs() < 1e-12, "{seen:?}");
        assert!((away_at_all(seen.late, 2.0, 1.0) - 0.5).abs() < 1e-12);
    }

    /// Gaps of one to four that are away in proportion to their number: the mean is that which is asked, also where it takes more than one step.
    #[test]
    fn gaps_are_scaled_until_their_mean_is_right() {
        for mean in [0.01_f64, 0.4253, 30.0] {
            let mut gaps = [1.0, 2.0, 3.0, 4.0].map(|growth| growth * mean);
            let mean_of = |gaps: &[f64]| Some(seen_on_arrival(4, (gaps, 0.8), 0.5, 0.3).gap);
            scale_to_mean(&mut gaps, mean, mean_of).unwrap();
            assert!((mean_of(&gaps).unwrap() / mean - 1.0).abs() < 1e-10, "{gaps:?}");
            assert!((gaps[3] / gaps[0] - 4.0).abs() < 1e-12);
        }
        assert!(scale_to_mean(&mut [1.0], 1.0, |_| Some(f64::NAN)).is_none());
    }

    #[test]
    fn many_threads_do_not_overflow() {
        let seen = seen_on_arrival(128, (&[1e-3_f64; 128], 1.0), 1.0, 0.5);
        assert!(seen.waiting.is_finite() && seen.waiting > 120.0 && seen.waiting <= 127.0 + 1e-9, "{seen:?}");
    }
}
