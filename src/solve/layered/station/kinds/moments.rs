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
//! the law of `v` when `w` of `A + B` sources are drawn, those of one kind each with a weight of its own:
//!
//! ```text
//! Q = p (x² + V(x))     x = M/p
//! ```
//!
//! ([`super::waiting`]), exact where `v` is one of two numbers. Newton's method takes `Q` as `g M + h p` at the `x` of the last step. It begins where those who
//! wait came in proportion to who were away, of whom there are fewer where they are back at once,
//!
//! ```text
//! x/(w - x) = (A - x) (1 - r_b) y_b / ((B - w + x) (1 - r_a) y_a)
//! ```
//!
//! The equations are taken out from the last state to the first ([`super::band`]). Levels above one that is reached with a chance of less than 1e-6 when all
//! servers are busy are left out. What is left of the balance when `Q` is that of the new `x`, or what a change of numbers of the kinds asks for of the flows
//! ([`Along`](super::sources::Along)), is answered by the same equations. Steps of this kind cost little; the equations are taken out anew where they do not become
//! short quickly enough, and for slopes. A chain that does not settle, or in which chances are negative, has no solution: 4 of
//! 16,504 drawn with up to 60 sources of a kind and services in a ratio of up to 50, and 40 of 16,638 where sources are back at once with chances up to .6, mostly
//! of loads far beyond the servers.
//!
//! Of 24 drawn stations of one to four servers and up to twelve sources, services in ratios of 2 to 50, the responses of short and long requests are .6 and .4 %
//! off in the mean, 4.4 and 1.6 at worst (those of the order of arrival, as in [`super::chain`], and those of the law). With Cornfield's variance they were .8 and
//! 1.1 %, 6.4 and 9.8: near its ends it is less than that of the two numbers next to `x`, and where long services are back at once chances became negative.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `s` | [`Kind`] | sources of a kind, how long each is away, and its mean service |
//! | `m` | `servers` | servers |
//! | `x`, `A`, `B`, `w` | [`super::waiting`] | mean number of kind `a` that wait, sources of each kind that are not served, and all that wait |
//! | `g`, `h` | [`Waiting::square`](super::waiting::Waiting::square) | `Q` by `M` and `p` |

use super::{
    band::{Band, TakenOut},
    reached,
    sources::{Cause, Kind, There, number, numbers, plain, with_slopes},
    states::{Chain, Flow, State},
};
use crate::model::Scalar;

/// Steps in which the means are found.
const MOST_STEPS: usize = 20;
/// Mean change of `x` that is none.
const NO_CHANGE: f64 = 1e-7;
/// What the mean change of `x` is at most where it does not become less.
const SETTLED: f64 = 1e-5;
/// Share of all chances that may be negative.
const NEGATIVE: f64 = 1e-6;
/// More steps at the same equations than so many take longer than to take them out and what follows, nearly.
const WORTH_STEPS: f64 = 5.0;
/// Levels above one that is reached with less than this chance, once all servers are busy, are left out.
const LEAST_CHANCE: f64 = 1e-6;
/// The same, where it is guessed as of sources of one kind.
const SEEMING_CHANCE: f64 = 1e-8;

/// Who is there of both kinds, before so many servers; none where the chain has no solution.
pub(super) fn there<S: Scalar>(kinds: [Kind<S>; 2], servers: f64) -> Option<There<S>> {
    let (kinds_alone, servers) = (plain(&kinds), number(servers));
    let all = kinds_alone.iter().map(|kind| number(kind.sources)).sum::<usize>();
    let mut last = last_level(&kinds_alone, servers);
    let (chain, found) = loop {
        let chain = Chain::new(&kinds_alone, servers, last);
        let reaches = |found: &Found| last == all || chain.chance(&found.vector, servers, last) <= LEAST_CHANCE;
        let begun = chain.begin()?;
        if reaches(&begun.found) {
            let found = chain.settle(begun)?;
            if reaches(&found) {
                break (chain, found);
            }
        }
        last = all.min(2 * last);
    };
    let (sums, all) = chain.sums(&found.vector);
    let values = sums.map(|sum| sum / all);
    let mut equations = None;
    with_slopes(values, numbers(&kinds), |weights| {
        let equations = if let Some(equations) = &equations { equations } else { equations.insert(chain.take_out(&found.means)?) };
        let asked = chain.balance(&found, |by| weights.of(by));
        let (slopes, more) = chain.sums(&equations.answers(asked));
        Some(slopes.zip(values, |slope, value| (slope - value * more) / all))
    })
}

/// A level that next to nothing of what waits seems to reach, or the last.
fn last_level(kinds: &[Kind<f64>; 2], servers: usize) -> usize {
    let all = kinds[0].sources + kinds[1].sources;
    let load: f64 = kinds.iter().map(|kind| kind.sources * kind.service / (kind.service + kind.away * (1.0 - kind.again))).sum();
    reached::last_level(all, load / (all - load), servers, SEEMING_CHANCE)
}

/// What the elimination of a chain's levels multiplies.
pub(super) fn work(sources: [f64; 2], servers: f64) -> f64 {
    let width = 2.0 * (servers.min(sources[0]).min(sources[1]) + 1.0);
    (sources[0] + sources[1]) * width * width * width
}

/// What is known of the first kind that waits in a state: its mean number `x`, and `h` and `g`.
#[derive(Clone, Copy, Debug)]
struct Mean {
    x: f64,
    square: [f64; 2],
}

/// Where the means are sought from.
struct Begun {
    found: Found,
    equations: TakenOut,
}

/// The means of all states, and `p` and `M` from which they are.
struct Found {
    means: Vec<Mean>,
    vector: Vec<f64>,
}

impl Chain {
    /// From where those who wait come as those who were away.
    fn begin(&self) -> Option<Begun> {
        let first = |State { waiting, .. }: &State| {
            let x = waiting.first_mean(self.away);
            Mean { x, square: waiting.square(x) }
        };
        let means: Vec<Mean> = self.states.iter().map(first).collect();
        let equations = self.take_out(&means)?;
        Some(Begun { found: Found { means, vector: equations.vector() }, equations })
    }

    /// Until the means are those of the numbers.
    fn settle(&self, begun: Begun) -> Option<Found> {
        let Begun { mut found, mut equations } = begun;
        let mut change = self.renew(&mut found);
        for _ in 1..MOST_STEPS {
            if change < NO_CHANGE {
                break;
            }
            let more = equations.answers(self.balance(&found, |_| 1.0));
            found.vector.iter_mut().zip(more).for_each(|(number, more)| *number += more);
            let before = std::mem::replace(&mut change, self.renew(&mut found));
            let steps_left = (change / NO_CHANGE).ln() / (before / change).ln();
            if change >= NO_CHANGE && !(0.0..WORTH_STEPS).contains(&steps_left) {
                equations = self.take_out(&found.means)?;
                found.vector = equations.vector();
                change = self.renew(&mut found);
            }
        }
        (change < SETTLED && self.negative(&found.vector) < NEGATIVE).then_some(found)
    }

    /// The share of all chances that are negative.
    fn negative(&self, vector: &[f64]) -> f64 {
        let chances = self.states.iter().map(|state| vector[state.place]);
        let (negative, all) = chances.fold((0.0, 0.0), |(negative, all), p| (negative - p.min(0.0), all + p.abs()));
        negative / all
    }

    /// The equations at such means, taken out.
    fn take_out(&self, means: &[Mean]) -> Option<TakenOut> {
        let mut band = Band::new(self.places.clone(), self.reach);
        for (state, &Mean { x, square: [h, g] }) in self.states.iter().zip(means) {
            let from = state.place;
            for (to, Flow { alpha, beta, more, .. }) in self.flows(state) {
                if !state.is_free() {
                    let chance = alpha + beta * x;
                    band.add(from, from, chance);
                    band.add(to.place, from, -chance);
                    if to.is_free() {
                        band.add(to.place + 1, from, -(x + more) * chance);
                    }
                    continue;
                }
                for (column, chance, leaves) in [(from, alpha, beta * h), (from + 1, beta, alpha + beta * g)] {
                    band.add(from, column, chance);
                    band.add(from + 1, column, leaves);
                    band.add(to.place, column, -chance);
                    if to.is_free() {
                        band.add(to.place + 1, column, -(leaves + more * chance));
                    }
                }
            }
        }
        band.take_out()
    }

    /// What comes less what goes, by `p` and `M` of each state, where each flow counts with a weight.
    fn balance(&self, found: &Found, weight: impl Fn(Cause) -> f64) -> Vec<f64> {
        let mut balance = vec![0.0; found.vector.len()];
        for (state, mean) in self.states.iter().zip(&found.means) {
            let [p, v] = state.pair(&found.vector);
            let [h, g] = mean.square;
            let square = h * p + g * v;
            for (to, Flow { alpha, beta, more, by }) in self.flows(state) {
                let weight = weight(by);
                let (chance, leaves) = ((alpha * p + beta * v) * weight, (alpha * v + beta * square) * weight);
                balance[state.place] -= chance;
                balance[to.place] += chance;
                if state.is_free() {
                    balance[state.place + 1] -= leaves;
                }
                if to.is_free() {
                    balance[to.place + 1] += leaves + more * chance;
                }
            }
        }
        balance
    }

    /// Those who wait and are served, over all states, by their `p` and `M`; and the sum of `p`.
    fn sums(&self, vector: &[f64]) -> (There<f64>, f64) {
        let (mut all, mut waiting, mut busy) = (0.0, [0.0; 2], [0.0; 2]);
        for state in &self.states {
            let [p, v] = state.pair(vector);
            all += p;
            waiting[0] += v;
            waiting[1] += p * state.waiting.all - v;
            busy[0] += p * state.served[0];
            busy[1] += p * state.served[1];
        }
        (There { waiting, busy }, all)
    }

    /// Sets the means to those of the vector; returns how far they were from them, where they are not the same always.
    fn renew(&self, found: &mut Found) -> f64 {
        let (mut all, mut change) = (0.0, 0.0);
        for (state, mean) in self.states.iter().zip(&mut found.means).filter(|(state, _)| state.is_free()) {
            let [p, v] = state.pair(&found.vector);
            if p > f64::MIN_POSITIVE {
                all += p;
                let x = state.waiting.within(v / p);
                change += p * (x - mean.x).abs();
                *mean = Mean { x, square: state.waiting.square(x) };
            }
        }
        if all > 0.0 { change / all } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{chain::tests::kind, sources::count},
        *,
    };

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
            let (sums, sum) = chain.sums(&chain.settle(chain.begin().unwrap()).unwrap().vector);
            let (all, few) = (sums.map(|it| it / sum), there(kinds, count(servers)).unwrap());
            for (all, few) in all.waiting.into_iter().chain(all.busy).zip(few.waiting.into_iter().chain(few.busy)) {
                assert!((few / all - 1.0).abs() < 1e-5, "{few} {all}, up to {last}");
            }
        }
    }
}
