//! The chain of how many are there and which of two kinds are served, who waits being known in the mean.
//!
//! Of `m` servers the states of a chain with all who wait told apart are too many. Here a state is `(n, i)`: how many are there, and how many of kind `a`
//! are served, `i`, with `j = min(n, m) - i` of kind `b`. Of the `w = n - i - j` that wait, `v` are of kind `a`: a number of which each state has the mean, in
//!
//! ```text
//! p = P(n, i)      M = E[v; n, i]      Q = E[v²; n, i]      A = N_a - i      B = N_b - j
//! come       kind a   A p - M   over y_a, with them  A M - Q            kind b   (B - w) p + M   over y_b, with them  (B - w) M + Q
//! goes       i/s_a + j/s_b; who is next, if somebody waits, is of kind a:   M/w, with them Q/w (then one less)
//!                                                                        of kind b:   p - M/w, with them  M - Q/w
//! ```
//!
//! Balance of `p` and of `M` in all states is exact, for whoever waits may be next with the same chance, and linear but for `Q`, which is taken to be that of
//! the law of `v` when `w` of `A + B` sources are drawn, those of one kind each with a weight of its own (Fisher's noncentral hypergeometric law):
//!
//! ```text
//! Q = p (x² + V(x))     x = M/p     1/V = (R - 1)/R [1/x + 1/(w - x) + 1/(A - x) + 1/(B - w + x)]     R = A + B
//! ```
//!
//! (Cornfield 1956, corrected so that it is that of equal weights), and exact where `v` or what is not drawn is one of two numbers: `w = 1`, `A = 1`, `B = 1`,
//! `w = R - 1`. Newton's method takes `Q` as `g M + h p` at the `x` of the last step. It begins where those who wait came in proportion to who were away,
//!
//! ```text
//! x/(w - x) = (A - x) y_b / ((B - w + x) y_a)
//! ```
//!
//! The levels `n` are taken out from the last to the first: `z_n = G_n z_{n-1}` of the vectors `z` of all `p` and `M` of a level, with
//!
//! ```text
//! G_n = (D_n - L_{n+1} G_{n+1})⁻¹ U_{n-1}        D what leaves, L what goes to the level before, U to the next
//! ```
//!
//! Of 24 drawn stations of two to four servers and up to eleven sources, services in ratios of 2 to 50, the responses of short and long requests are .4 and .6 %
//! off in the mean, 3.6 and 4.2 at worst (those of the order of arrival, as in [`super::chain`], and those of the law); in two or three steps.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `s` | [`Kind`] | sources of a kind, how long each is away, and its mean service |
//! | `m` | `servers` | servers |
//! | `x`, `A`, `B`, `w` | [`Waiting`] | mean number of kind `a` that wait, sources of each kind that are not served, and all that wait |
//! | `g`, `h` | [`Waiting::square`] | `Q` by `M` and `p` |

use super::{
    chain::{Kind, There},
    levels::{Block, Levels},
};
use crate::model::Scalar;

/// Steps of Newton's method: where it is not done by then, the next would change little.
const MOST_STEPS: usize = 4;
/// Mean change of `x` that is none.
const NO_CHANGE: f64 = 1e-7;
/// `x` is no nearer to the least and the most that there can be, as a share of what is between.
const NEAREST_END: f64 = 1e-6;

/// Who is there of both kinds, before so many servers.
pub(super) fn there<T: Scalar>(kinds: [Kind<T>; 2], servers: f64) -> There<T> {
    let chain = Chain { kinds, most: kinds.map(|kind| number(kind.sources)), servers: number(servers) };
    let mut means = chain.first_means();
    let mut there = None;
    for _ in 0..MOST_STEPS {
        let vectors = chain.solve(&means);
        there = Some(chain.sums(&means, &vectors));
        if chain.renew(&mut means, &vectors) < NO_CHANGE {
            break;
        }
    }
    let nobody = [T::from(0.0); 2];
    there.unwrap_or(There { waiting: nobody, busy: nobody })
}

/// What the elimination of a chain's levels multiplies.
pub(super) fn work(sources: [f64; 2], servers: f64) -> f64 {
    let width = 2.0 * (servers.min(sources[0]).min(sources[1]) + 1.0);
    (sources[0] + sources[1]) * width * width * width
}

/// Those that wait in a state.
#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    /// All of them.
    all: f64,
    /// Sources of each kind that are not in service.
    left: [f64; 2],
    /// Mean number of the first kind.
    mean: T,
}

impl<T: Scalar> Waiting<T> {
    /// The least and the most of the first kind.
    fn ends(&self) -> [f64; 2] {
        [(self.all - self.left[1]).max(0.0), self.all.min(self.left[0])]
    }

    /// Whether there can be more of the first kind or fewer.
    fn is_free(&self) -> bool {
        let [least, most] = self.ends();
        most > least
    }

    /// A mean within what can be.
    fn within(&self, mean: T) -> T {
        let [least, most] = self.ends();
        let margin = NEAREST_END * (most - least);
        if mean > least + margin { if mean < most - margin { mean } else { T::from(most - margin) } } else { T::from(least + margin) }
    }

    /// `x`, where those who wait came as sources are away.
    fn in_proportion(&self, away: [T; 2]) -> T {
        let [a, b] = self.left;
        let square = away[0] - away[1];
        let linear = away[0] * (b - self.all) + away[1] * (self.all + a);
        let product = away[1] * (self.all * a);
        let root = (linear * linear + square * product * 4.0).sqrt();
        product * 2.0 / (linear + root)
    }

    /// `h` and `g`.
    fn square(&self) -> [T; 2] {
        let Self { all: w, left: [a, b], mean: x } = *self;
        let sources = a + b;
        let linear = |constant: f64, slope: f64| [T::from(constant), T::from(slope)];
        if w == 1.0 || a == 1.0 {
            return linear(0.0, 1.0);
        }
        if b == 1.0 {
            return linear(w - w * w, 2.0 * w - 1.0);
        }
        if w == sources - 1.0 {
            return linear(a - a * a, 2.0 * a - 1.0);
        }
        let parts = [x.recip(), (-x + w).recip(), (-x + a).recip(), (x + (b - w)).recip()];
        let sum = parts[0] + parts[1] + parts[2] + parts[3];
        let slope = parts[1] * parts[1] + parts[2] * parts[2] - parts[0] * parts[0] - parts[3] * parts[3];
        let fewer = (sources - 1.0) / sources;
        let variance = (sum * fewer).recip();
        let g = x * 2.0 - variance * variance * slope * fewer;
        [x * x + variance - g * x, g]
    }
}

/// A linear form of `p` and `M` of a state.
type Form<T> = [T; 2];

fn scaled<T: Scalar>(form: Form<T>, by: T) -> Form<T> {
    form.map(|part| part * by)
}

/// What a transition takes along: chance, what leaves of `M`, and what of it arrives.
#[derive(Clone, Copy)]
struct Taken<T> {
    chance: Form<T>,
    leaves: Form<T>,
    arrives: Form<T>,
}

struct Chain<T> {
    kinds: [Kind<T>; 2],
    /// Most of each kind.
    most: [usize; 2],
    servers: usize,
}

impl<T: Scalar> Chain<T> {
    fn last(&self) -> usize {
        self.most[0] + self.most[1]
    }

    /// The least and the most of the first kind that are served with so many there.
    fn served(&self, n: usize) -> [usize; 2] {
        let busy = n.min(self.servers);
        [busy.saturating_sub(self.most[1]), busy.min(self.most[0])]
    }

    /// The numbers of a level's states: how many of the first kind are served.
    fn states(&self, n: usize) -> std::ops::RangeInclusive<usize> {
        let [least, most] = self.served(n);
        least..=most
    }

    fn waiting(&self, n: usize, i: usize) -> Waiting<T> {
        let busy = n.min(self.servers);
        let left = [count(self.most[0] - i), count(self.most[1] - (busy - i))];
        Waiting { all: count(n - busy), left, mean: T::from(0.0) }
    }

    /// Those that wait, by level and state, as they come first.
    fn first_means(&self) -> Vec<Vec<Waiting<T>>> {
        let away = self.kinds.map(|kind| kind.away);
        let of_state = |n: usize, i: usize| {
            let it = self.waiting(n, i);
            let mean = if it.is_free() { it.within(it.in_proportion(away)) } else { T::from(it.ends()[1]) };
            Waiting { mean, ..it }
        };
        (0..=self.last()).map(|n| self.states(n).map(|i| of_state(n, i)).collect()).collect()
    }

    /// Where `p` and `M` of a level's states stand; `M` of those where it is free.
    fn places(waiting: &[Waiting<T>]) -> (Vec<[Option<usize>; 2]>, usize) {
        let mut next = 0;
        let mut take = || {
            next += 1;
            Some(next - 1)
        };
        let places = waiting.iter().map(|it| [take(), if it.is_free() { take() } else { None }]).collect();
        (places, next)
    }

    /// `p` and `M` of all levels, `p` of nobody there being 1 or less.
    fn solve(&self, means: &[Vec<Waiting<T>>]) -> Vec<Vec<T>> {
        let places: Vec<_> = means.iter().map(|level| Self::places(level)).collect();
        let mut levels = Levels::new();
        for n in (0..means.len()).rev() {
            let size = |n: Option<usize>| n.and_then(|n| places.get(n)).map_or(0, |(_, size)| *size);
            let own = size(Some(n));
            let mut block = Block::new(own, size(n.checked_sub(1)), size(Some(n + 1)));
            for (i, (it, &from)) in self.states(n).zip(means[n].iter().zip(&places[n].0)) {
                self.for_each(n, i, it, |to, taken| {
                    let level = if to[0] > n { &mut block.up } else { &mut block.down };
                    let into = places[to[0]].0[to[1] - self.served(to[0])[0]];
                    for (column, at) in from.into_iter().enumerate().filter_map(|(column, at)| Some((column, at?))) {
                        for (row, leaves) in from.into_iter().zip([&taken.chance, &taken.leaves]) {
                            row.into_iter().for_each(|row| block.own.add(row, at, leaves[column]));
                        }
                        for (row, arrives) in into.into_iter().zip([&taken.chance, &taken.arrives]) {
                            row.into_iter().for_each(|row| level.add(row, at, arrives[column]));
                        }
                    }
                });
            }
            levels.take_out(block);
        }
        levels.vectors()
    }

    /// `E[v]` and `E[v²]` of a state by `p` and `M`.
    fn moments_of(it: &Waiting<T>) -> [Form<T>; 2] {
        let zero = T::from(0.0);
        if it.is_free() { [[zero, T::from(1.0)], it.square()] } else { [[it.mean, zero], [it.mean * it.mean, zero]] }
    }

    /// Calls `each` for every transition from a state: the level and the state it leads to, and what it takes along.
    fn for_each(&self, n: usize, i: usize, it: &Waiting<T>, mut each: impl FnMut([usize; 2], Taken<T>)) {
        let one: Form<T> = [T::from(1.0), T::from(0.0)];
        let [mean, square] = Self::moments_of(it);
        let combined = |a: Form<T>, by: f64, b: Form<T>, sign: f64| std::array::from_fn(|k| a[k] * by + b[k] * sign);
        let taken = |rate: T, chance: Form<T>, with: Form<T>, more: f64| {
            let (chance, leaves) = (scaled(chance, rate), scaled(with, rate));
            Taken { chance, leaves, arrives: combined(leaves, 1.0, chance, more) }
        };
        let [a, b] = it.left;
        let all_busy = n >= self.servers;
        let come = self.kinds.map(|kind| kind.away.recip());
        if comes(it, 0) {
            let more = if all_busy { 1.0 } else { 0.0 };
            each(
                [n + 1, if all_busy { i } else { i + 1 }],
                taken(come[0], combined(one, a, mean, -1.0), combined(mean, a, square, -1.0), more),
            );
        }
        if comes(it, 1) {
            each([n + 1, i], taken(come[1], combined(one, b - it.all, mean, 1.0), combined(mean, b - it.all, square, 1.0), 0.0));
        }
        let served = [i, n.min(self.servers) - i];
        for (of, &number) in served.iter().enumerate().filter(|(_, number)| **number > 0) {
            let rate = self.kinds[of].service.recip() * count(number);
            // How many of the first kind are served when one of this kind has gone.
            let after = if of == 0 { i - 1 } else { i };
            if it.all == 0.0 {
                each([n - 1, after], taken(rate, one, mean, 0.0));
                continue;
            }
            let rate = rate / it.all;
            if it.ends()[1] > 0.0 {
                each([n - 1, after + 1], taken(rate, mean, square, -1.0));
            }
            if it.ends()[0] < it.all {
                each([n - 1, after], taken(rate, combined(one, it.all, mean, -1.0), combined(mean, it.all, square, -1.0), 0.0));
            }
        }
    }

    /// Those who wait and are served, over all states.
    fn sums(&self, means: &[Vec<Waiting<T>>], vectors: &[Vec<T>]) -> There<T> {
        let zero = T::from(0.0);
        let (mut all, mut waiting, mut busy) = (zero, [zero; 2], [zero; 2]);
        self.for_each_state(means, vectors, |n, i, it, p, v| {
            let j = n.min(self.servers) - i;
            all += p;
            waiting[0] += v;
            waiting[1] += p * it.all - v;
            busy[0] += p * count(i);
            busy[1] += p * count(j);
        });
        There { waiting: waiting.map(|sum| sum / all), busy: busy.map(|sum| sum / all) }
    }

    /// Sets the means to those found; returns how far they were from them.
    fn renew(&self, means: &mut [Vec<Waiting<T>>], vectors: &[Vec<T>]) -> f64 {
        let (mut all, mut change) = (0.0, 0.0);
        let mut renewed = Vec::new();
        self.for_each_state(means, vectors, |_, _, it, p, v| {
            let mean = if it.is_free() && p > f64::MIN_POSITIVE { it.within(v / p) } else { it.mean };
            all += p.value();
            change += p.value().abs() * (mean.value() - it.mean.value()).abs();
            renewed.push(mean);
        });
        means.iter_mut().flatten().zip(renewed).for_each(|(it, mean)| it.mean = mean);
        change / all
    }

    /// Calls `each` with every state, those who wait there, `p` and `M`.
    fn for_each_state(&self, means: &[Vec<Waiting<T>>], vectors: &[Vec<T>], mut each: impl FnMut(usize, usize, &Waiting<T>, T, T)) {
        for (n, (level, vector)) in means.iter().zip(vectors).enumerate() {
            let (places, _) = Self::places(level);
            for (i, (it, [p, v])) in self.states(n).zip(level.iter().zip(places)) {
                let Some(p) = p.map(|p| vector[p]) else { continue };
                each(n, i, it, p, v.map_or(it.mean * p, |v| vector[v]));
            }
        }
    }
}

/// Whether one of a kind may be away.
fn comes<T: Scalar>(it: &Waiting<T>, of: usize) -> bool {
    let [least, most] = it.ends();
    it.left[of] > if of == 0 { least } else { it.all - most }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of sources and of servers are few here")]
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

    fn waits(kinds: [Kind<f64>; 2], servers: f64) -> [f64; 2] {
        let found = there(kinds, servers);
        [0, 1].map(|of| found.waiting[of] * kinds[of].service / found.busy[of])
    }

    /// Nothing but those who are served is left to tell apart where one source of the second kind is all.
    #[test]
    fn of_one_source_of_a_kind_it_is_the_chain_of_all_states() {
        let kinds = [kind(4.0, 0.7, 0.3), kind(1.0, 1.1, 2.0)];
        let all = super::super::chain::there(kinds);
        let found = there(kinds, 1.0);
        for (found, all) in found.waiting.into_iter().chain(found.busy).zip(all.waiting.into_iter().chain(all.busy)) {
            assert!((found - all).abs() < 1e-9, "{found} {all}");
        }
    }

    /// `p(n) ∝ N!/(N-n)! x^n / Π min(j, m)`: services alike.
    #[test]
    fn services_alike_have_the_queue_of_machine_repair() {
        for (sources, servers) in [([3.0, 4.0], 1.0), ([3.0, 4.0], 2.0), ([6.0, 2.0], 3.0), ([40.0, 30.0], 4.0)] {
            let (away, service) = (2.0, 0.5);
            let found = there(sources.map(|n| kind(n, away, service)), servers);
            let all = sources[0] + sources[1];
            let (mut chance, mut sum, mut waiting, mut n) = (1.0, 1.0, 0.0, 0.0);
            while n < all {
                chance *= (all - n) * service / away / f64::min(n + 1.0, servers);
                n += 1.0;
                sum += chance;
                waiting += chance * f64::max(n - servers, 0.0);
            }
            for of in 0..2 {
                let expected = waiting / sum * sources[of] / all;
                assert!((found.waiting[of] / expected - 1.0).abs() < 1e-6, "{sources:?} {servers}: {} {expected}", found.waiting[of]);
            }
        }
    }

    /// Throughput follows from waits, as all have to be somewhere.
    #[test]
    fn sources_are_there_or_away() {
        for (kinds, servers) in [([kind(5.0, 0.9, 0.2), kind(4.0, 34.4, 10.0)], 2.0), ([kind(30.0, 5.0, 0.2), kind(9.0, 20.0, 3.0)], 4.0)] {
            let found = there(kinds, servers);
            for (of, kind) in kinds.into_iter().enumerate() {
                let throughput = found.busy[of] / kind.service;
                let somewhere = found.waiting[of] + found.busy[of] + throughput * kind.away;
                assert!((somewhere / kind.sources - 1.0).abs() < 0.01, "{kind:?}: {somewhere}");
            }
        }
    }

    /// Waits in order of arrival, by the exact chain of a pool with such customers.
    #[test]
    fn waits_are_near_those_in_order_of_arrival() {
        for (a, b, servers, responses) in [
            (kind(4.0, 0.68889, 0.2), kind(5.0, 45.55556, 10.0), 2.0, [0.580_444, 11.249_993]),
            (kind(4.0, 0.24444, 0.2), kind(5.0, 17.77778, 10.0), 4.0, [0.300_204, 10.159_397]),
            (kind(2.0, 0.1, 0.2), kind(4.0, 6.2, 3.0), 2.0, [0.516_707, 3.743_401]),
        ] {
            let found = waits([a, b], servers);
            for (wait, (kind, response)) in found.into_iter().zip([a, b].into_iter().zip(responses)) {
                assert!(((wait + kind.service) / response - 1.0).abs() < 0.05, "{kind:?}: {} {response}", wait + kind.service);
            }
        }
    }
}
