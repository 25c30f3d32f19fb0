//! The chain of up to three kinds of sources, each of which goes before the next.
//!
//! Before `m` servers, those of a kind in order of arrival, services and times away exponential:
//!
//! ```text
//! states        n_k of each kind are there; head of line, and where more are there than servers, i_k of them are served
//! comes         (N_k - n_k)/y_k; of a Poisson stream, 1/y_k
//! goes          i_k/s_k; next is one of the first kind of which one waits             preemptive: i_k = min(n_k, m - Σ_{j<k} i_j)
//! back          with chance r_k at once, after the server has taken up another, if one waits
//! ```
//!
//! which is all there is to know: who waits is of no order, since those of a kind are alike. A kind of no sources is none.

use super::{
    eliminated, reached,
    sources::{Cause, Kind, There, count, number, plain},
};
use crate::model::Scalar;

/// Kinds of a chain.
pub(super) const KINDS: usize = 3;
/// Levels of the first kind, and of streams, are left out that are reached with less than this chance.
const LEAST_CHANCE: f64 = 1e-10;
/// Levels that are begun with are those with less than this part of it, were nobody else there.
const FIRST_PART: f64 = 0.1;
/// Levels that are begun with of a stream behind others, or one that would be too much alone.
const FIRST_LEVELS: f64 = 20.0;
/// Levels that are taken in where the last of them count.
const MORE_LEVELS: f64 = 1.4;
/// Most products of an elimination: more than who asks is ready for by [`work`], since levels may have to be taken in.
const MOST_WORK: f64 = 4_000_000.0;

/// Who is there of each kind; none where that is too much work, as of streams without a steady state.
pub(super) fn there<S: Scalar>(kinds: [Kind<S>; KINDS], servers: f64, interrupts: bool) -> Option<There<S, KINDS>> {
    let plain = plain(&kinds);
    let mut last = last_levels(&plain, servers);
    while work_of(last, servers, interrupts) <= MOST_WORK {
        let chain = Urgent::new(plain, last, number(servers), interrupts);
        let solved = eliminated::Solved::new(&chain);
        let chances = chain.chances_of_last(&solved.weights);
        let mut is_cut = false;
        for (last, (kind, chance)) in last.iter_mut().zip(plain.iter().zip(chances)) {
            if *last < kind.sources && chance >= LEAST_CHANCE {
                *last = (*last * MORE_LEVELS).ceil().min(kind.sources);
                is_cut = true;
            }
        }
        if !is_cut {
            return solved.there(&chain, &kinds);
        }
    }
    None
}

/// How many of each kind are there at most, but for next to no chance where nobody else is there.
fn last_levels(kinds: &[Kind<f64>; KINDS], servers: f64) -> [f64; KINDS] {
    std::array::from_fn(|kind| {
        let &Kind { sources, away, service, again } = &kinds[kind];
        let odds = service / (away * (1.0 - again));
        let least = LEAST_CHANCE * FIRST_PART;
        match kind {
            _ if sources.is_infinite() && odds < servers && kind == 0 => (servers + least.ln() / (odds / servers).ln()).ceil(),
            _ if sources.is_infinite() => servers + FIRST_LEVELS,
            0 => count(reached::last_level(sources, odds, number(servers), least)),
            _ => sources,
        }
    })
}

/// What the elimination of a chain's states multiplies, about.
pub(super) fn work(kinds: &[Kind<f64>; KINDS], servers: f64, interrupts: bool) -> f64 {
    work_of(last_levels(kinds, servers), servers, interrupts)
}

/// The same, of so many of each kind at most.
fn work_of(last: [f64; KINDS], servers: f64, interrupts: bool) -> f64 {
    let ways = match last.iter().filter(|&&last| last > 0.0).count() {
        0 | 1 => 1.0,
        _ if interrupts => 1.0,
        2 => servers + 1.0,
        _ => (servers + 1.0) * (servers + 2.0) / 2.0,
    };
    let states = last.iter().fold(ways, |states, last| states * (last + 1.0));
    let reach = states / (last.iter().fold(0.0, |most: f64, last| most.max(*last)) + 1.0) + ways;
    states * reach * reach
}

/// The chain in a band: by how many are there of the most numerous kind, of the next, of the last, and then by how many of each are served, where that is not told
/// by how many are there.
struct Urgent {
    kinds: [Kind<f64>; KINDS],
    servers: usize,
    interrupts: bool,
    /// Most of each kind that are there.
    most: [usize; KINDS],
    /// How far states are apart with one more of each.
    strides: [usize; KINDS],
    /// Ways in which servers are busy that are told apart.
    ways: usize,
}

impl Urgent {
    /// With so many of each kind at most.
    fn new(kinds: [Kind<f64>; KINDS], last: [f64; KINDS], servers: usize, interrupts: bool) -> Self {
        let most = last.map(number);
        let ways = match most.iter().filter(|&&most| most > 0).count() {
            0 | 1 => 1,
            _ if interrupts => 1,
            2 => servers + 1,
            _ => (servers + 1) * (servers + 2) / 2,
        };
        let mut order: [usize; KINDS] = std::array::from_fn(|kind| kind);
        order.sort_by_key(|&kind| most[kind]);
        let (mut strides, mut stride) = ([0; KINDS], ways);
        for kind in order {
            strides[kind] = stride;
            stride *= most[kind] + 1;
        }
        Self { kinds, servers, interrupts, most, strides, ways }
    }

    /// The number of a state with so many there, of whom so many are served.
    fn state(&self, n: [usize; KINDS], served: [usize; KINDS]) -> usize {
        let of_level: usize = n.iter().zip(self.strides).map(|(n, stride)| n * stride).sum();
        let way = match self.ways {
            1 => 0,
            // Of two kinds, how many of the first of them are.
            ways if ways == self.servers + 1 => {
                if self.most[0] > 0 {
                    served[0]
                } else {
                    served[1]
                }
            }
            _ => served[0] + served[1] * (2 * self.servers + 3 - served[1]) / 2,
        };
        of_level + way
    }

    /// Who is served of so many, where the first go first.
    fn first_of(&self, n: [usize; KINDS]) -> [usize; KINDS] {
        let mut free = self.servers;
        n.map(|n| {
            let served = n.min(free);
            free -= served;
            served
        })
    }

    /// Calls `each` with how many of each kind may be served of so many.
    fn for_each_way(&self, n: [usize; KINDS], mut each: impl FnMut([usize; KINDS])) {
        if self.interrupts || n.iter().sum::<usize>() <= self.servers {
            return each(self.first_of(n));
        }
        for first in 0..=n[0].min(self.servers) {
            for second in 0..=n[1].min(self.servers - first) {
                let third = self.servers - first - second;
                if third <= n[2] {
                    each([first, second, third]);
                }
            }
        }
    }

    /// Calls `each` for every state, with how many are there and how many are served.
    fn for_each_state(&self, mut each: impl FnMut([usize; KINDS], [usize; KINDS])) {
        for a in 0..=self.most[0] {
            for b in 0..=self.most[1] {
                for c in 0..=self.most[2] {
                    self.for_each_way([a, b, c], |served| each([a, b, c], served));
                }
            }
        }
    }

    /// That as many of each kind are there as may be.
    fn chances_of_last(&self, weights: &[f64]) -> [f64; KINDS] {
        let mut chances = [0.0; KINDS];
        self.for_each_state(|n, served| {
            for (kind, chance) in chances.iter_mut().enumerate().filter(|(kind, _)| n[*kind] == self.most[*kind]) {
                *chance += if self.most[kind] > 0 { weights[self.state(n, served)] } else { 0.0 };
            }
        });
        chances
    }

    fn for_each_from(&self, n: [usize; KINDS], served: [usize; KINDS], each: &mut impl FnMut(usize, usize, f64, Cause)) {
        let from = self.state(n, served);
        let is_free = n.iter().sum::<usize>() < self.servers;
        let after = |n: [usize; KINDS], served: [usize; KINDS]| self.state(n, if self.interrupts { self.first_of(n) } else { served });
        for kind in (0..KINDS).filter(|&kind| n[kind] < self.most[kind]) {
            let (mut more, mut with) = (n, served);
            more[kind] += 1;
            with[kind] += usize::from(is_free);
            let Kind { sources, away, .. } = self.kinds[kind];
            let rate = if sources.is_finite() { (sources - count(n[kind])) / away } else { away.recip() };
            each(from, after(more, with), rate, Cause::Comes(kind));
        }
        let next = (0..KINDS).find(|&kind| n[kind] > served[kind]);
        for kind in (0..KINDS).filter(|&kind| served[kind] > 0) {
            let (mut fewer, mut with) = (n, served);
            fewer[kind] -= 1;
            with[kind] -= 1;
            next.iter().for_each(|&next| with[next] += 1);
            let rate = count(served[kind]) / self.kinds[kind].service;
            let again = self.kinds[kind].again;
            each(from, after(fewer, with), rate * (1.0 - again), Cause::Goes(kind));
            // A server does not wait for whoever is back at once: it takes up another, if one waits.
            if next.is_some_and(|next| next != kind) && !self.interrupts && again > 0.0 {
                each(from, self.state(n, with), rate * again, Cause::Stays(kind));
            }
        }
    }
}

impl eliminated::Chain<KINDS> for Urgent {
    fn n_states(&self) -> usize {
        self.most.iter().fold(self.ways, |states, most| states * (most + 1))
    }

    fn reach(&self) -> usize {
        let furthest = (0..KINDS).filter(|&kind| self.most[kind] > 0).map(|kind| self.strides[kind]).max();
        furthest.unwrap_or(0) + self.ways - 1
    }

    fn for_each(&self, mut each: impl FnMut(usize, usize, f64, Cause)) {
        self.for_each_state(|n, served| self.for_each_from(n, served, &mut each));
    }

    fn sums(&self, weights: &[f64]) -> There<f64, KINDS> {
        let mut there = There { waiting: [0.0; KINDS], busy: [0.0; KINDS] };
        self.for_each_state(|n, served| {
            let weight = weights[self.state(n, served)];
            for kind in 0..KINDS {
                there.busy[kind] += weight * count(served[kind]);
                there.waiting[kind] += weight * count(n[kind] - served[kind]);
            }
        });
        there
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{chain::tests::kind, eliminated::Chain},
        *,
    };
    use crate::model::Tangent;

    /// Two kinds, and a third of no sources.
    fn two<S: Scalar>(first: Kind<S>, second: Kind<S>) -> [Kind<S>; KINDS] {
        [first, second, Kind { sources: 0.0, ..first }]
    }

    /// Machine repair: `p(n) ∝ N!/(N-n)! x^n / Π min(j, m)`; how many of them wait and are served.
    fn alike(sources: f64, odds: f64, servers: f64) -> (f64, f64) {
        let (mut chance, mut sum, mut waiting, mut busy, mut n) = (1.0, 1.0, 0.0, 0.0, 0.0_f64);
        while n < sources {
            chance *= (sources - n) * odds / f64::min(n + 1.0, servers);
            n += 1.0;
            sum += chance;
            busy += chance * n.min(servers);
            waiting += chance * (n - n.min(servers));
        }
        (waiting / sum, busy / sum)
    }

    #[test]
    fn the_urgent_do_not_know_of_those_whom_they_interrupt() {
        for servers in [1.0, 3.0] {
            let (urgent, other) = (kind(7.0, 2.0, 0.6), kind(4.0, 0.5, 3.0));
            let found = there([urgent, other, kind(3.0, 1.0, 0.7)], servers, true).unwrap();
            let (waiting, busy) = alike(7.0, 0.3, servers);
            assert!((found.waiting[0] - waiting).abs() < 1e-9 && (found.busy[0] - busy).abs() < 1e-9, "{found:?}");
        }
    }

    /// Whoever goes first, as many are there and served; the urgent wait less.
    #[test]
    fn of_alike_services_and_times_away_as_many_wait_in_any_order() {
        for servers in [1.0, 2.0] {
            let (waiting, busy) = alike(9.0, 0.5, servers);
            for interrupts in [false, true] {
                let found = there([kind(4.0, 1.0, 0.5), kind(3.0, 1.0, 0.5), kind(2.0, 1.0, 0.5)], servers, interrupts).unwrap();
                assert!((found.waiting.iter().sum::<f64>() - waiting).abs() < 1e-9, "{found:?} {waiting}");
                assert!((found.busy.iter().sum::<f64>() - busy).abs() < 1e-9, "{found:?} {busy}");
                let waits: Vec<f64> = found.waiting.iter().zip(found.busy).map(|(waiting, busy)| waiting / busy).collect();
                assert!(waits[0] < 0.8 * waits[1] && waits[1] < 0.8 * waits[2], "{found:?}");
            }
        }
    }

    /// Nearly all of many are there: chances are scaled down time and again.
    #[test]
    fn many_sources_that_are_hardly_away_are_there() {
        let found = there(two(kind(20_000.0, 0.1, 1.2), kind(2.0, 0.1, 1.0)), 1.0, true).unwrap();
        assert!((found.waiting[0] + 1.0 - 20_000.0 + 0.1 / 1.2).abs() < 1e-6 && (found.busy[0] - 1.0).abs() < 1e-9, "{found:?}");
        assert!(work(&two(kind(4e9, 0.0, 1.2), kind(2.0, 0.1, 1.0)), 1.0, false) > 1e12);
    }

    /// Cobham's waits.
    #[test]
    fn streams_wait_as_is_known() {
        let (loads, services) = ([0.3, 0.2], [0.5, 1.5]);
        let [first, second] = [0, 1].map(|of| kind(f64::INFINITY, services[of] / loads[of], services[of]));
        let rest = loads[0] * services[0] + loads[1] * services[1];
        for (interrupts, expected) in
            [(false, [rest / 0.7, rest / (0.7 * 0.5)]), (true, [0.15 / 0.7, rest / (0.7 * 0.5) + 1.5 / 0.7 - 1.5])]
        {
            let found = there(two(first, second), 1.0, interrupts).unwrap();
            for of in 0..2 {
                let wait = found.waiting[of] * services[of] / found.busy[of];
                assert!((wait / expected[of] - 1.0).abs() < 1e-6, "{of}: {wait} {}", expected[of]);
            }
        }
        assert!(there(two(kind(f64::INFINITY, 0.4, 0.5), second), 1.0, false).is_none(), "no steady state");
    }

    /// One urgent source and one other, by their five states; the urgent one is back at once in one of three times, and the server does not wait for it.
    #[test]
    fn a_server_does_not_wait_for_whoever_is_back_at_once() {
        let (again, urgent, other) = (1.0 / 3.0, kind(1.0, 0.7, 0.3), kind(1.0, 1.1, 2.0));
        let found = there(two(Kind { again, ..urgent }, other), 1.0, false).unwrap();
        let mut p = [0.2; 5];
        for _ in 0..20_000 {
            // Nobody, one alone, one before the other.
            let [none, only_urgent, only_other, urgent_first, other_first] = p;
            let step = 0.05;
            let goes = (1.0 - again) / 0.3;
            p = [
                none + step * (only_urgent * goes + only_other / 2.0 - none * (1.0 / 0.7 + 1.0 / 1.1)),
                only_urgent + step * (none / 0.7 + other_first / 2.0 - only_urgent * (goes + 1.0 / 1.1)),
                only_other + step * (none / 1.1 + urgent_first * goes - only_other * (1.0 / 2.0 + 1.0 / 0.7)),
                urgent_first + step * (only_urgent / 1.1 - urgent_first / 0.3),
                other_first + step * (only_other / 0.7 + urgent_first * again / 0.3 - other_first / 2.0),
            ];
        }
        let expected = [p[4], p[3], p[1] + p[3], p[2] + p[4]];
        for (found, expected) in found.waiting.into_iter().take(2).chain(found.busy.into_iter().take(2)).zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn levels_that_nobody_reaches_are_left_out() {
        let kinds = |many: f64| two(kind(many, 3.0 * many, 0.9), kind(3.0, 4.0, 2.0));
        assert!(last_levels(&kinds(400.0), 1.0)[0] < 40.0);
        let all = there(kinds(30.0), 1.0, false).unwrap();
        let cut = {
            let chain = Urgent::new(kinds(30.0), last_levels(&kinds(30.0), 1.0), 1, false);
            chain.sums(&eliminated::Solved::new(&chain).weights)
        };
        assert!((all.waiting[1] / cut.waiting[1] - 1.0).abs() < 1e-5, "{all:?} {cut:?}");
    }

    #[test]
    fn slopes_are_those_of_differences() {
        fn at<S: Scalar>(x: [S; 6], servers: f64, interrupts: bool) -> There<S, KINDS> {
            let kinds = [
                Kind { sources: 5.0, away: x[0], service: x[1], again: x[2] },
                Kind { sources: 3.0, away: x[3], service: x[4], again: x[5] },
                Kind { sources: 2.0, away: x[3] * 1.3, service: x[0] * 0.2, again: x[2] },
            ];
            there(kinds, servers, interrupts).unwrap()
        }
        let x = [2.0, 0.4, 0.2, 1.5, 0.9, 0.3];
        for (servers, interrupts) in [(1.0, false), (1.0, true), (2.0, false), (2.0, true)] {
            let found = at(std::array::from_fn(|i| Tangent::<6>::variable(x[i], i)), servers, interrupts);
            for direction in 0..6 {
                let moved = |by: f64| {
                    let mut x = x;
                    x[direction] += by;
                    at(x, servers, interrupts)
                };
                let (more, less) = (moved(1e-5), moved(-1e-5));
                for of in 0..KINDS {
                    let difference = (more.waiting[of] - less.waiting[of]) / 2e-5;
                    let slope = found.waiting[of].derivatives()[direction];
                    assert!((slope - difference).abs() < 1e-6, "{servers} {interrupts} {direction}: {slope} {difference}");
                }
            }
        }
    }
}
