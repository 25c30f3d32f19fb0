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
//!            whoever was served is back at once with chance r of its kind, and waits if somebody is next
//! ```
//!
//! Balance of `p` and of `M` in all states is exact, for whoever waits may be next with the same chance, and linear but for `Q`, which is taken to be that of
//! the law of `v` when `w` of `A + B` sources are drawn, those of one kind each with a weight of its own (Fisher's noncentral hypergeometric law):
//!
//! ```text
//! Q = p (x² + V(x))     x = M/p     P(v) ∝ C(A, v) C(B, w - v) ω^v, with the ω for which x is its mean
//! ```
//!
//! ([`Waiting::square`]; of very many Cornfield 1956), and exact where `v` or what is not drawn is one of two numbers: `w = 1`, `A = 1`, `B = 1`,
//! `w = R - 1`, with `R = A + B`. Newton's method takes `Q` as `g M + h p` at the `x` of the last step. It begins where those who wait came in proportion
//! to who were away,
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
//! and levels above one that is reached with a chance of less than 1e-8 when all servers are busy are left out. What is left of the balance when `Q` is
//! that of the new `x`, or what a change of a number of a kind asks for of the flows ([`Along`](super::sources::Along)), is answered by the same levels:
//!
//! ```text
//! c_n = (D_n - L_{n+1} G_{n+1})⁻¹ (r_n + L_{n+1} c_{n+1})        z'_0 = 0     z'_n = G_n z'_{n-1} + c_n
//! ```
//!
//! with `r` the part that is asked for. Steps of this kind cost little beside the `G`, which are found anew where the steps do not become short quickly, and for
//! slopes.
//!
//! Of 24 drawn stations of one to four servers and up to twelve sources, services in ratios of 2 to 50, the responses of short and long requests are .6 and .4 %
//! off in the mean, 4.4 and 1.6 at worst (those of the order of arrival, as in [`super::chain`], and those of the law). By Cornfield's law they were .8 and 1.1 %,
//! 6.4 and 9.8: near its ends it has less than the variance of the two numbers next to `x`, and where long services are back at once chances became negative.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `s` | [`Kind`] | sources of a kind, how long each is away, and its mean service |
//! | `m` | `servers` | servers |
//! | `x`, `A`, `B`, `w` | [`Waiting`] | mean number of kind `a` that wait, sources of each kind that are not served, and all that wait |
//! | `g`, `h` | [`Waiting::square`] | `Q` by `M` and `p` |

use std::ops::Range;

use nalgebra::DVector;

use super::{
    levels::Levels,
    sources::{Cause, Kind, There, count, number, plain},
    waiting::Waiting,
};
use crate::model::Scalar;

/// Steps in which the means are found.
const MOST_STEPS: usize = 20;
/// Mean change of `x` that is none.
const NO_CHANGE: f64 = 1e-8;
/// A step at the same levels is to leave less than this part of the change before.
const SLOW: f64 = 0.25;
/// Levels above one that is reached with less than this chance, once all servers are busy, are left out.
const LEAST_CHANCE: f64 = 1e-8;

/// Who is there of both kinds, before so many servers; none where the chain has no solution.
pub(super) fn there<S: Scalar>(kinds: [Kind<S>; 2], servers: f64) -> Option<There<S>> {
    let (kinds_alone, servers) = (plain(&kinds), number(servers));
    let all = kinds_alone.iter().map(|kind| number(kind.sources)).sum::<usize>();
    let mut last = last_level(&kinds_alone, servers);
    let (chain, found) = loop {
        let chain = Chain::new(&kinds_alone, servers, last);
        let found = chain.solve()?;
        if last == all || chain.chance(&found.vector, servers, last) <= LEAST_CHANCE {
            break (chain, found);
        }
        last = all.min(2 * last);
    };
    let (sums, all) = chain.sums(&found.vector);
    let values = sums.map(|sum| sum / all);
    let mut levels = None;
    There::with_slopes(values, &kinds, |along| {
        let levels = if let Some(levels) = &levels { levels } else { levels.insert(chain.take_out(&found.means)?) };
        let asked = chain.balance(&found, |by| along.weight(by));
        let (slopes, more) = chain.sums(&levels.answers(asked)?);
        Some(slopes.zip(values, |slope, value| (slope - value * more) / all))
    })
}

/// A level that next to nothing of what waits seems to reach, or the last: as sources of one kind of that load reach it.
fn last_level(kinds: &[Kind<f64>; 2], servers: usize) -> usize {
    let all = kinds[0].sources + kinds[1].sources;
    let load: f64 = kinds.iter().map(|kind| kind.sources * kind.service / (kind.service + kind.away * (1.0 - kind.again))).sum();
    let odds = load / (all - load);
    let (mut n, mut chance) = (count(servers).min(all), 1.0);
    let mut most: f64 = chance;
    while n < all && chance > LEAST_CHANCE * most {
        n += 1.0;
        chance *= (all - n + 1.0) * odds / count(servers);
        most = chance.max(most);
    }
    number(n)
}

/// What the elimination of a chain's levels multiplies.
pub(super) fn work(sources: [f64; 2], servers: f64) -> f64 {
    let width = 2.0 * (servers.min(sources[0]).min(sources[1]) + 1.0);
    (sources[0] + sources[1]) * width * width * width
}

/// A transition from a state: of `α p + β M` a unit of time and, of those of the first kind that wait, `α M + β Q`, of whom there are so many more then.
#[derive(Clone, Copy, Debug)]
struct Transition {
    to: usize,
    alpha: f64,
    beta: f64,
    more: f64,
    by: Cause,
}

/// Who is there in a state.
#[derive(Clone, Debug)]
struct State {
    served: [f64; 2],
    waiting: Waiting,
    transitions: Range<usize>,
}

/// A chain, of which `p` and `M` of all states stand one after the other, by level and then by how many of the first kind are served.
struct Chain {
    away: [f64; 2],
    states: Vec<State>,
    transitions: Vec<Transition>,
    /// Where the states of each level begin, and where the last ones end.
    starts: Vec<usize>,
}

/// What is known of the first kind that waits in a state: its mean number `x`, `h` and `g`, and the odds of the law.
#[derive(Clone, Copy, Debug)]
struct Mean {
    x: f64,
    square: [f64; 2],
    odds: Option<f64>,
}

/// The means of all states, and `p` and `M` from which they are.
struct Found {
    means: Vec<Mean>,
    vector: DVector<f64>,
}

impl Chain {
    /// Of such kinds, with so many there at most.
    fn new(kinds: &[Kind<f64>; 2], servers: usize, last: usize) -> Self {
        let most = kinds.map(|kind| number(kind.sources));
        // How many of the first kind may be served with so many there.
        let served = |n: usize| n.min(servers).saturating_sub(most[1])..=n.min(servers).min(most[0]);
        let mut starts = vec![0];
        for n in 0..=last {
            starts.push(starts[n] + served(n).count());
        }
        let mut it =
            Self { away: kinds.map(|kind| kind.away), states: Vec::with_capacity(starts[last + 1]), transitions: Vec::new(), starts };
        for n in 0..=last {
            for i in served(n) {
                let j = n.min(servers) - i;
                let waiting = Waiting { all: count(n - i - j), left: [count(most[0] - i), count(most[1] - j)] };
                let first = it.transitions.len();
                for_each_transition(kinds, [i, j], &waiting, (n < last, n >= servers), |level, more_served, transition| {
                    let (level, i) = (n.wrapping_add_signed(level), i.wrapping_add_signed(more_served));
                    let to = it.starts[level] + i - served(level).start();
                    it.transitions.push(Transition { to, ..transition });
                });
                it.states.push(State { served: [count(i), count(j)], waiting, transitions: first..it.transitions.len() });
            }
        }
        it
    }

    fn solve(&self) -> Option<Found> {
        let first = |State { waiting, .. }: &State| {
            let (x, mut odds) = (waiting.first_mean(self.away), None);
            Mean { x, square: waiting.square(x, &mut odds), odds }
        };
        let means: Vec<Mean> = self.states.iter().map(first).collect();
        let mut levels = self.take_out(&means)?;
        let mut found = Found { means, vector: levels.vector() };
        let mut change = self.renew(&mut found);
        for _ in 1..MOST_STEPS {
            if change < NO_CHANGE {
                break;
            }
            found.vector += levels.answers(self.balance(&found, |_| 1.0))?;
            let before = std::mem::replace(&mut change, self.renew(&mut found));
            if change > before * SLOW {
                levels = self.take_out(&found.means)?;
                found.vector = levels.vector();
                change = self.renew(&mut found);
            }
        }
        Some(found)
    }

    /// The levels of the equations at such means.
    fn take_out(&self, means: &[Mean]) -> Option<Levels> {
        let mut levels = Levels::new(self.starts.iter().map(|start| 2 * start).collect());
        for n in (0..self.starts.len() - 1).rev() {
            let mut block = levels.block(n);
            let (first, end) = (self.starts[n], self.starts[n + 1]);
            for (k, state) in (first..end).zip(&self.states[first..end]) {
                let from = 2 * (k - first);
                let Mean { x, square: [h, g], .. } = means[k];
                let is_free = state.waiting.is_free();
                if !is_free {
                    block.own[(from + 1, from)] = -x;
                    block.own[(from + 1, from + 1)] = 1.0;
                }
                for &Transition { to, alpha, beta, more, .. } in &self.transitions[state.transitions.clone()] {
                    let leaves = [beta * h, alpha + beta * g];
                    let arrives = [leaves[0] + more * alpha, leaves[1] + more * beta];
                    block.own[(from, from)] += alpha;
                    block.own[(from, from + 1)] += beta;
                    if is_free {
                        block.own[(from + 1, from)] += leaves[0];
                        block.own[(from + 1, from + 1)] += leaves[1];
                    }
                    let (level, into, sign) = if to >= end {
                        (&mut block.up, 2 * (to - end), 1.0)
                    } else if to >= first {
                        (&mut block.own, 2 * (to - first), -1.0)
                    } else {
                        (&mut block.down, 2 * (to - self.starts[n - 1]), 1.0)
                    };
                    level[(into, from)] += sign * alpha;
                    level[(into, from + 1)] += sign * beta;
                    if self.states[to].waiting.is_free() {
                        level[(into + 1, from)] += sign * arrives[0];
                        level[(into + 1, from + 1)] += sign * arrives[1];
                    }
                }
            }
            levels.take_out(block)?;
        }
        Some(levels)
    }

    /// What comes less what goes, by `p` and `M` of each state, where each transition counts with a weight.
    fn balance(&self, found: &Found, weight: impl Fn(Cause) -> f64) -> DVector<f64> {
        let mut balance = DVector::zeros(2 * self.states.len());
        for (k, state) in self.states.iter().enumerate() {
            let [p, v] = [found.vector[2 * k], found.vector[2 * k + 1]];
            let [h, g] = found.means[k].square;
            let square = h * p + g * v;
            let is_free = state.waiting.is_free();
            for &Transition { to, alpha, beta, more, by } in &self.transitions[state.transitions.clone()] {
                let weight = weight(by);
                let (chance, leaves) = ((alpha * p + beta * v) * weight, (alpha * v + beta * square) * weight);
                balance[2 * k] -= chance;
                balance[2 * to] += chance;
                if is_free {
                    balance[2 * k + 1] -= leaves;
                }
                if self.states[to].waiting.is_free() {
                    balance[2 * to + 1] += leaves + more * chance;
                }
            }
        }
        balance
    }

    /// Those who wait and are served, over all states, by their `p` and `M`; and the sum of `p`.
    fn sums(&self, vector: &DVector<f64>) -> (There<f64>, f64) {
        let (mut all, mut waiting, mut busy) = (0.0, [0.0; 2], [0.0; 2]);
        for (k, state) in self.states.iter().enumerate() {
            let [p, v] = [vector[2 * k], vector[2 * k + 1]];
            all += p;
            waiting[0] += v;
            waiting[1] += p * state.waiting.all - v;
            busy[0] += p * state.served[0];
            busy[1] += p * state.served[1];
        }
        (There { waiting, busy }, all)
    }

    /// The chance that so many are there when all servers are busy.
    fn chance(&self, vector: &DVector<f64>, servers: usize, level: usize) -> f64 {
        let of_states = |states: Range<usize>| states.map(|k| vector[2 * k]).sum::<f64>();
        of_states(self.starts[level]..self.starts[level + 1]) / of_states(self.starts[servers.min(level)]..self.states.len())
    }

    /// Sets the means to those of the vector; returns how far they were from them, where they are not the same always.
    fn renew(&self, found: &mut Found) -> f64 {
        let (mut all, mut change) = (0.0, 0.0);
        for (k, (state, mean)) in self.states.iter().zip(&mut found.means).enumerate() {
            let [p, v] = [found.vector[2 * k], found.vector[2 * k + 1]];
            if state.waiting.is_free() && p > f64::MIN_POSITIVE {
                all += p;
                let x = state.waiting.within(v / p);
                change += p * (x - mean.x).abs();
                mean.x = x;
                mean.square = state.waiting.square(x, &mut mean.odds);
            }
        }
        if all > 0.0 { change / all } else { 0.0 }
    }
}

/// Calls `each` for every transition from a state of such numbers in service: how many more are there and how many more of the first kind are served
/// then, and what it is but for where it leads. Others may come or not, and find all servers busy or not.
fn for_each_transition(
    kinds: &[Kind<f64>; 2],
    served: [usize; 2],
    waiting: &Waiting,
    (may_come, all_busy): (bool, bool),
    mut each: impl FnMut(isize, isize, Transition),
) {
    let &Waiting { all: w, left: [a, b] } = waiting;
    let [least, most] = waiting.ends();
    let of =
        |rate: f64, [alpha, beta]: [f64; 2], more: f64, by: Cause| Transition { to: 0, alpha: rate * alpha, beta: rate * beta, more, by };
    if may_come && a > least {
        let (served, more) = if all_busy { (0, 1.0) } else { (1, 0.0) };
        each(1, served, of(kinds[0].away.recip(), [a, -1.0], more, Cause::Comes(0)));
    }
    if may_come && b > w - most {
        each(1, 0, of(kinds[1].away.recip(), [b - w, 1.0], 0.0, Cause::Comes(1)));
    }
    for (kind, &number) in served.iter().enumerate().filter(|(_, number)| **number > 0) {
        let (rate, again) = (count(number) / kinds[kind].service, kinds[kind].again);
        // One of the first kind less is served, and waits if it is back at once.
        let (fewer, back) = if kind == 0 { (-1, 1.0) } else { (0, 0.0) };
        if w == 0.0 {
            each(-1, fewer, of(rate * (1.0 - again), [1.0, 0.0], 0.0, Cause::Goes(kind)));
            continue;
        }
        for (next, can_be, form) in [(0, most > 0.0, [0.0, 1.0]), (1, least < w, [w, -1.0])] {
            if !can_be {
                continue;
            }
            let (taken_up, picked) = if next == 0 { (1, -1.0) } else { (0, 0.0) };
            each(-1, fewer + taken_up, of(rate * (1.0 - again) / w, form, picked, Cause::Goes(kind)));
            if next != kind && again > 0.0 {
                each(0, fewer + taken_up, of(rate * again / w, form, picked + back, Cause::Stays(kind)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::chain::tests::kind, *};

    fn waits(kinds: [Kind<f64>; 2], servers: f64) -> [f64; 2] {
        let found = there(kinds, servers).unwrap();
        [0, 1].map(|of| found.waiting[of] * kinds[of].service / found.busy[of])
    }

    /// Nothing but those who are served is left to tell apart where one source of the second kind is all.
    #[test]
    fn of_one_source_of_a_kind_it_is_the_chain_of_all_states() {
        let kinds = [kind(4.0, 0.7, 0.3), kind(1.0, 1.1, 2.0)];
        let all = super::super::chain::there(kinds).unwrap();
        let found = there(kinds, 1.0).unwrap();
        for (found, all) in found.waiting.into_iter().chain(found.busy).zip(all.waiting.into_iter().chain(all.busy)) {
            assert!((found - all).abs() < 1e-9, "{found} {all}");
        }
    }

    /// `p(n) ∝ N!/(N-n)! x^n / Π min(j, m)`: services alike.
    #[test]
    fn services_alike_have_the_queue_of_machine_repair() {
        for (sources, servers) in [([3.0, 4.0], 1.0), ([3.0, 4.0], 2.0), ([6.0, 2.0], 3.0), ([40.0, 30.0], 4.0)] {
            let (away, service) = (2.0, 0.5);
            let found = there(sources.map(|n| kind(n, away, service)), servers).unwrap();
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
            let found = there(kinds, servers).unwrap();
            for (of, kind) in kinds.into_iter().enumerate() {
                let throughput = found.busy[of] / kind.service;
                let somewhere = found.waiting[of] + found.busy[of] + throughput * kind.away;
                assert!((somewhere / kind.sources - 1.0).abs() < 0.01, "{kind:?}: {somewhere}");
            }
        }
    }

    /// Threads of a pool, sources, time away and service of each kind, and responses by the exact chain of who came when.
    type Case = (f64, [(f64, f64, f64); 2], [f64; 2]);

    /// Drawn pools of 1 to 4 threads.
    const POOLS: [Case; 24] = [
        (1.0, [(5.0, 2.92464, 0.2), (1.0, 1.50679, 0.90914)], [0.64893, 1.03064]),
        (3.0, [(4.0, 0.54382, 0.2), (1.0, 2.24001, 7.09355)], [0.21626, 7.09838]),
        (1.0, [(6.0, 2.02476, 0.2), (4.0, 8.43562, 0.9427)], [0.91128, 1.71055]),
        (1.0, [(3.0, 6.61822, 0.2), (1.0, 0.15765, 0.4298)], [0.54599, 0.46010]),
        (3.0, [(6.0, 0.66993, 0.2), (2.0, 5.2861, 9.0515)], [0.35374, 9.11109]),
        (3.0, [(4.0, 1.80046, 0.2), (5.0, 3.17048, 0.84703)], [0.23798, 0.87468]),
        (3.0, [(3.0, 0.0311, 0.2), (1.0, 1.50994, 1.52705)], [0.23129, 1.57034]),
        (1.0, [(2.0, 1.85822, 0.2), (6.0, 64.04763, 9.76284)], [3.56972, 20.40784]),
        (2.0, [(6.0, 0.90393, 0.2), (6.0, 9.33932, 2.00515)], [0.74816, 2.74324]),
        (1.0, [(3.0, 0.56765, 0.2), (3.0, 32.79786, 2.65132)], [0.54174, 3.38681]),
        (4.0, [(4.0, 0.22061, 0.2), (5.0, 31.11672, 6.23599)], [0.21999, 6.26960]),
        (3.0, [(4.0, 0.3447, 0.2), (6.0, 4.8984, 0.69809)], [0.24732, 0.76646]),
        (2.0, [(1.0, 0.9207, 0.2), (4.0, 19.41842, 3.38808)], [0.28994, 3.52061]),
        (3.0, [(3.0, 0.65374, 0.2), (4.0, 8.55517, 4.2308)], [0.31291, 4.34462]),
        (4.0, [(5.0, 0.94196, 0.2), (5.0, 6.74624, 1.42)], [0.20900, 1.42803]),
        (1.0, [(2.0, 1.07847, 0.2), (5.0, 83.06136, 7.73189)], [0.99869, 11.29853]),
        (2.0, [(5.0, 1.60179, 0.2), (3.0, 9.30148, 1.75347)], [0.30112, 1.83624]),
        (1.0, [(4.0, 2.54705, 0.2), (6.0, 109.28238, 2.08211)], [0.42158, 2.40981]),
        (1.0, [(4.0, 2.28718, 0.2), (1.0, 5.08468, 1.88196)], [0.65634, 1.98529]),
        (4.0, [(4.0, 2.92722, 0.2), (4.0, 4.17779, 5.48374)], [0.33206, 5.49692]),
        (4.0, [(5.0, 0.23106, 0.2), (5.0, 6.10013, 1.16137)], [0.22996, 1.20576]),
        (1.0, [(5.0, 4.75346, 0.2), (5.0, 20.16463, 0.71579)], [0.39009, 0.90561]),
        (2.0, [(1.0, 0.01747, 0.2), (6.0, 2.31411, 0.50182)], [0.27157, 0.69102]),
        (2.0, [(2.0, 0.46584, 0.2), (3.0, 1.13983, 0.56901)], [0.31836, 0.67492]),
    ];

    #[test]
    fn waits_are_near_those_in_order_of_arrival() {
        let (mut sums, mut most) = ([0.0; 2], [0.0_f64; 2]);
        for (servers, kinds, responses) in POOLS {
            let kinds = kinds.map(|(sources, away, service)| kind(sources, away, service));
            let found = waits(kinds, servers);
            for of in 0..2 {
                let error = ((found[of] + kinds[of].service) / responses[of] - 1.0).abs();
                sums[of] += error / count(POOLS.len());
                most[of] = most[of].max(error);
            }
        }
        assert!(sums[0] < 0.0065 && sums[1] < 0.004 && most[0] < 0.045 && most[1] < 0.016, "{sums:?} {most:?}");
    }

    /// The same, where sources are back at once with some chance: customers with so many visits in the mean, one after the other.
    #[test]
    fn who_is_back_at_once_is_behind_all_who_are_there() {
        for (servers, classes, responses) in [
            (1.0, [(4.0, 3.4, 0.2, 2.0), (4.0, 48.0, 5.2, 1.0)], [1.06666, 7.54885]),
            (1.0, [(5.0, 37.0, 0.2, 8.0), (3.0, 32.0, 9.3, 1.0)], [2.48968, 14.69508]),
            (2.0, [(3.0, 9.4, 0.2, 8.0), (3.0, 10.7, 7.0, 2.0)], [1.32076, 8.41460]),
            (3.0, [(3.0, 1.3, 0.2, 2.0), (4.0, 92.0, 9.8, 5.0)], [0.34298, 10.07091]),
        ] {
            let kinds = classes.map(|(sources, think, service, visits)| {
                let again = visits / (1.0 + visits);
                Kind { again, ..kind(sources, think / again, service) }
            });
            let found = waits(kinds, servers);
            for of in 0..2 {
                let response = found[of] + kinds[of].service;
                assert!((response / responses[of] - 1.0).abs() < 0.03, "{:?}: {response} {}", kinds[of], responses[of]);
            }
        }
    }

    /// Levels that are left out are those that next to nothing of what waits reaches, also where hardly anything does.
    #[test]
    fn levels_that_are_left_out_change_nothing() {
        for (kinds, servers) in [
            ([kind(30.0, 40.0, 0.2), kind(12.0, 300.0, 4.0)], 1),
            ([kind(30.0, 4.0, 0.2), kind(12.0, 60.0, 4.0)], 4),
            ([kind(1.0, 0.294, 0.0937), kind(19.0, 43.4, 0.0574)], 8),
        ] {
            let all = number(kinds[0].sources + kinds[1].sources);
            let last = last_level(&kinds, servers);
            assert!(last < all, "{last}");
            let chain = Chain::new(&kinds, servers, all);
            let (sums, sum) = chain.sums(&chain.solve().unwrap().vector);
            let (all, few) = (sums.map(|it| it / sum), there(kinds, count(servers)).unwrap());
            for (all, few) in all.waiting.into_iter().chain(all.busy).zip(few.waiting.into_iter().chain(few.busy)) {
                assert!((few / all - 1.0).abs() < 1e-5, "{few} {all}, up to {last}");
            }
        }
    }
}
