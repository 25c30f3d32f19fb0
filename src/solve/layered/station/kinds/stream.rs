//! A stream of requests of two lengths from outside, before several servers in order of arrival.
//!
//! As many may come as will, so the chain of [`super::mixed`] has no last level; above some level all are alike, and it is solved at once. Which service a request
//! has need not be known before it is served:
//!
//! ```text
//! states     how many are there, n, and how many of those in service, min(n, m), are long, i
//! comes      λ
//! goes       p(n) e [(min(n, m) - i)/s_a + i/s_b]                      whoever begins to be served is short with chance q
//! goes on    p(n) (1 - e) [...] as above, and another one that is there, or the same, is served by that server, short with chance q
//! ```
//!
//! or, where those in service hold each other up, at rates `X_a`, `X_b` by how many of each are served, in place of `p(n) [..]/s` ([`super::held_up`]).
//!
//! With `A⁺_n`, `A_n` and `A⁻_n` the rates from level `n` to the next, within it, and to the one before, `G_n` where the level before is reached first,
//! and `R_n` the time that is spent in level `n` before the one before is reached again, for each unit of time in that (M. Neuts, *Matrix-Geometric Solutions in Stochastic Models*, 1981,
//! chapter 1; G. Latouche and V. Ramaswami, J. Appl. Prob. 30 (1993), for `G` of levels that are alike):
//!
//! ```text
//! A⁻ + A G + A⁺ G² = 0        G_n = -(A_n + A⁺_n G_{n+1})⁻¹ A⁻_n        R_n = -A⁺_{n-1} (A_n + A⁺_n G_{n+1})⁻¹        π_n = π_{n-1} R_n
//! ```
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `λ`, `m` | `rate`, `servers` | requests a unit of time; servers |
//! | `s_a`, `s_b`, `q` | `services`, `short` | mean times of a service at the full pace, of the short and the long ones; share of the short ones |
//! | `e` | `leaves` | chance that a service is the last one of a request |
//! | `p(n)` | `paces` | pace of the servers while `n` are there: by `n - 1`, and from its last on the same |

mod matrix;

use smallvec::SmallVec;

use self::matrix::Matrix;
use super::sources::count;
use crate::model::Scalar;

/// Most products of numbers that a solution may take, about.
const MOST_WORK: f64 = 600_000.0;
/// Products of matrices to find `G`, about.
const PRODUCTS_OF_LIMIT: f64 = 70.0;
/// Steps to it: each doubles the number of levels that are counted.
const MOST_DOUBLINGS: usize = 50;
/// Most rates at which so many servers as are asked are looked for, how near they must come, and by how much a rate is changed to see what that changes.
const MOST_RATES: usize = 40;
const NEAR: f64 = 1e-9;
const STEP: f64 = 1e-5;
/// Paths through so many levels that are less likely do not count, nor do derivatives of such.
const LEAST_PATH: f64 = 1e-18;

/// What comes to which servers.
#[derive(Clone, Debug)]
pub(super) struct Stream<'a, S> {
    pub rate: S,
    pub services: [S; 2],
    pub short: S,
    pub leaves: S,
    pub servers: usize,
    pub paces: &'a [S],
    /// How often services of either kind end, by how many short and long ones there are; empty where `services` and `paces` tell.
    pub ends: &'a [Vec<[S; 2]>],
}

/// How many are served in the mean, are beyond the servers, up to as many as there are places for, and beyond these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beyond<S> {
    pub busy: S,
    pub servers: S,
    pub places: S,
}

impl Beyond<f64> {
    fn lifted<S: Scalar>(self) -> Beyond<S> {
        let [busy, servers, places] = [self.busy, self.servers, self.places].map(S::from);
        Beyond { busy, servers, places }
    }
}

impl<S: Scalar> Beyond<S> {
    fn over(self, sum: S) -> Self {
        let Self { busy, servers, places } = self;
        Self { busy: busy / sum, servers: servers / sum, places: places / sum }
    }
}

impl<S: Scalar> Stream<'_, S> {
    /// Who is there, with so many `places`, at least as many as servers; none where there is no steady state, or it is too much work.
    pub fn beyond(&self, places: usize) -> Option<Beyond<S>> {
        let top = self.paces.len().max(self.servers).max(places);
        let size = count(self.servers + 1);
        if size.powi(3) * (PRODUCTS_OF_LIMIT + 3.0 * count(top)) > MOST_WORK {
            return None;
        }
        let up = Matrix::diagonal(self.servers + 1, self.rate);
        let down = self.down(top + 1);
        let limit = self.first_passage(&down, top + 1)?;
        let rate_above = up.times(&self.inverse_without(top + 1, &limit)?);
        let mut passage = limit;
        let mut visits = Vec::with_capacity(top);
        for n in (1..=top).rev() {
            let inverse = self.inverse_without(n, &passage)?;
            visits.push(self.up(n - 1).times(&inverse));
            passage = inverse.times(&self.down(n));
        }
        let zero = S::from(0.0);
        let mut sums = (S::from(1.0), Beyond { busy: zero, servers: zero, places: zero });
        let mut level = Matrix { columns: 1, of: SmallVec::from_elem(S::from(1.0), 1) };
        for (n, visits) in (1..=top).zip(visits.iter().rev()) {
            level = level.times(visits);
            let chance = level.sum();
            sums.0 += chance;
            sums.1.busy += chance * count(n.min(self.servers));
            sums.1.servers += chance * count(n.min(places).saturating_sub(self.servers));
            sums.1.places += chance * count(n.saturating_sub(places));
        }
        // Σ_{k ≥ 1} π R^k = π R Z, and Σ k π R^k = π R Z², with Z = (1 - R)⁻¹.
        let endless = Matrix::diagonal(self.servers + 1, S::from(1.0)).minus(&rate_above).inverse()?;
        let above = level.times(&rate_above).times(&endless);
        let (chance, levels) = (above.sum(), above.times(&endless).sum());
        sums.0 += chance;
        sums.1.busy += chance * count(self.servers);
        sums.1.servers += chance * count(places - self.servers);
        sums.1.places += levels + chance * count(top - places);
        let found = sums.1.over(sums.0);
        (found.servers >= 0.0 && found.places > 0.0 && found.places.value().is_finite()).then_some(found)
    }

    /// The same, at such a rate that so many servers are `busy` in the mean.
    pub fn beyond_while_busy(&self, busy: S, places: usize) -> Option<Beyond<S>> {
        let ends: Vec<Vec<[f64; 2]>> = self.ends.iter().map(|of| of.iter().map(|ends| ends.map(|it| it.value())).collect()).collect();
        let paces: Vec<f64> = self.paces.iter().map(Scalar::value).collect();
        let [services, [short, leaves]] = [self.services, [self.short, self.leaves]].map(|pair| pair.map(|it| it.value()));
        let plain = |rate: f64| Stream { rate, services, short, leaves, servers: self.servers, paces: &paces, ends: &ends }.beyond(places);
        let asked = busy.value();
        if asked >= count(self.servers) {
            return None;
        }
        let (mut rate, mut between, mut before) = (self.rate.value(), [0.0, f64::INFINITY], None);
        for _ in 0..MOST_RATES {
            let Some(found) = plain(rate) else {
                between[1] = rate;
                rate = (between[0] + rate) * 0.5;
                continue;
            };
            let left = asked - found.busy;
            if left.abs() <= NEAR * asked {
                if busy.derivatives().is_empty() {
                    return Some(found.lifted());
                }
                let slope = (plain(rate * (1.0 + STEP))?.busy - plain(rate * (1.0 - STEP))?.busy) / (2.0 * STEP * rate);
                let at = |rate: S| Stream { rate, ..self.clone() }.beyond(places);
                let rate = S::from(rate) + (busy - at(S::from(rate))?.busy) / slope;
                return at(rate);
            }
            between[usize::from(left < 0.0)] = rate;
            let steep = before.map_or(found.busy / rate, |(other, busy)| (found.busy - busy) / (rate - other));
            before = Some((rate, found.busy));
            let next = rate + left / steep;
            rate = match () {
                () if between[0] < next && next < between[1] => next,
                () if between[1].is_finite() => (between[0] + between[1]) * 0.5,
                () => rate * 2.0,
            };
        }
        None
    }

    /// The same, where all services are of the mean.
    pub fn beyond_of_one_length(&self, places: usize) -> Option<Beyond<S>> {
        let service = self.service() / self.leaves;
        let top = self.paces.len().max(self.servers).max(places);
        let odds = |n: usize| self.rate * service / (self.pace(n) * count(n.min(self.servers)));
        let zero = S::from(0.0);
        let mut sums = (S::from(1.0), Beyond { busy: zero, servers: zero, places: zero });
        let mut chance = S::from(1.0);
        for n in 1..=top {
            chance *= odds(n);
            sums.0 += chance;
            sums.1.busy += chance * count(n.min(self.servers));
            sums.1.servers += chance * count(n.min(places).saturating_sub(self.servers));
            sums.1.places += chance * count(n.saturating_sub(places));
        }
        let left = -odds(top + 1) + 1.0;
        if left <= 0.0 {
            return None;
        }
        let above = chance * odds(top + 1) / left;
        sums.0 += above;
        sums.1.busy += above * count(self.servers);
        sums.1.servers += above * count(places - self.servers);
        sums.1.places += above / left + above * count(top - places);
        Some(sums.1.over(sums.0))
    }

    /// Mean service.
    fn service(&self) -> S {
        self.services[1] + (self.services[0] - self.services[1]) * self.short
    }

    fn pace(&self, n: usize) -> S {
        self.paces.get(n - 1).or(self.paces.last()).copied().unwrap_or(S::from(1.0))
    }

    /// How often services of level `n` with so many long ones end, of either kind.
    fn ends(&self, n: usize, long: usize) -> [S; 2] {
        if !self.ends.is_empty() {
            return self.ends[n.min(self.servers) - long][long];
        }
        let pace = self.pace(n);
        let short = n.min(self.servers) - long;
        [pace * count(short) / self.services[0], pace * count(long) / self.services[1]]
    }

    fn up(&self, n: usize) -> Matrix<S> {
        let (size, next) = (n.min(self.servers), (n + 1).min(self.servers));
        let mut up = Matrix::none(size + 1, next + 1);
        for i in 0..=size {
            if next > size {
                *up.at(i, i) = self.rate * self.short;
                *up.at(i, i + 1) = self.rate * (-self.short + 1.0);
            } else {
                *up.at(i, i) = self.rate;
            }
        }
        up
    }

    fn down(&self, n: usize) -> Matrix<S> {
        let (size, next) = (n.min(self.servers), (n - 1).min(self.servers));
        let mut down = Matrix::none(size + 1, next + 1);
        for i in 0..=size {
            let [short, long] = self.ends(n, i).map(|ends| ends * self.leaves);
            if next < size {
                if i <= next {
                    *down.at(i, i) += short;
                }
                if i > 0 {
                    *down.at(i, i - 1) += long;
                }
            } else {
                self.begin(&mut down, i, [short, long]);
            }
        }
        down
    }

    /// Services end as often in a state with `i` long ones, and others begin.
    fn begin(&self, rates: &mut Matrix<S>, i: usize, [short, long]: [S; 2]) {
        let begins_long = -self.short + 1.0;
        *rates.at(i, i) += short * self.short + long * begins_long;
        if i + 1 < rates.columns {
            *rates.at(i, i + 1) += short * begins_long;
        }
        if i > 0 {
            *rates.at(i, i - 1) += long * self.short;
        }
    }

    /// `-A_n`.
    fn out(&self, n: usize) -> Matrix<S> {
        let size = n.min(self.servers);
        let mut within = Matrix::none(size + 1, size + 1);
        let mut all = Matrix::none(size + 1, size + 1);
        for i in 0..=size {
            let ends = self.ends(n, i);
            self.begin(&mut within, i, ends.map(|ends| ends * (-self.leaves + 1.0)));
            *all.at(i, i) = self.rate + ends[0] + ends[1];
        }
        all.minus(&within)
    }

    /// `-(A_n + A⁺_n G_{n+1})⁻¹`.
    fn inverse_without(&self, n: usize, passage: &Matrix<S>) -> Option<Matrix<S>> {
        self.out(n).minus(&self.up(n).times(passage)).inverse()
    }

    /// `G` of levels that are alike, by ever longer paths.
    fn first_passage(&self, down: &Matrix<S>, n: usize) -> Option<Matrix<S>> {
        let one = Matrix::diagonal(self.servers + 1, S::from(1.0));
        let first = self.out(n).inverse()?;
        let (mut higher, mut lower) = (first.times(&self.up(n)), first.times(down));
        let (mut passage, mut path) = (lower.clone(), higher.clone());
        for _ in 0..MOST_DOUBLINGS {
            let back = one.clone().minus(&higher.times(&lower)).minus(&lower.times(&higher)).inverse()?;
            (higher, lower) = (back.times(&higher.times(&higher)), back.times(&lower.times(&lower)));
            passage = passage.plus(&path.times(&lower));
            path = path.times(&higher);
            if path.is_less_than(LEAST_PATH) {
                return Some(passage);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use num_dual::Dual64;

    use super::*;

    fn stream(paces: &[f64]) -> Stream<'_, f64> {
        Stream { rate: 0.9, services: [0.4, 3.0], short: 0.8, leaves: 1.0, servers: 2, paces, ends: &[] }
    }

    /// Pollaczek and Khinchine.
    #[test]
    fn one_server_has_the_queue_of_its_moments() {
        let it = Stream { servers: 1, ..stream(&[1.0]) };
        let [first, second] = [1, 2].map(|power| 0.8 * 0.4_f64.powi(power) + 0.2 * 3.0_f64.powi(power));
        let wait = 0.9 * second / (1.0 - 0.9 * first);
        let found = it.beyond(1).unwrap();
        assert!((found.places / 0.9 - wait).abs() < 1e-9 && found.servers == 0.0, "{found:?} {wait}");
        let with_places = it.beyond(6).unwrap();
        assert!((with_places.places + with_places.servers - found.places).abs() < 1e-9 && with_places.servers > 0.5, "{with_places:?}");
    }

    #[test]
    fn services_of_one_length_have_the_queue_of_the_mean() {
        let paces = [0.7, 0.9, 1.0, 1.1];
        let it = Stream { services: [0.9, 0.9 + 1e-9], ..stream(&paces) };
        for (places, leaves) in [(2, 1.0), (3, 0.7), (6, 1.0)] {
            let it = Stream { leaves, ..it.clone() };
            let (found, expected) = (it.beyond(places).unwrap(), it.beyond_of_one_length(places).unwrap());
            assert!((found.servers - expected.servers).abs() < 1e-7 && (found.places / expected.places - 1.0).abs() < 1e-7);
        }
        assert!(Stream { rate: 3.0, ..it.clone() }.beyond(2).is_none() && Stream { rate: 3.0, ..it }.beyond_of_one_length(2).is_none());
    }

    /// The same chain with a last level, by many small steps of time.
    #[test]
    fn who_is_there_is_who_the_chain_says() {
        let paces = [0.8, 0.9, 1.1];
        let it = Stream { rate: 0.7, leaves: 0.6, ..stream(&paces) };
        let (last, places, step) = (60, 4, 0.08);
        let mut chance: Vec<Vec<f64>> = (0..=last).map(|n: usize| vec![0.1; n.min(2) + 1]).collect();
        for _ in 0..60_000 {
            let mut next = chance.clone();
            for n in 0..=last {
                let (mut up, mut down) = (it.up(n), if n > 0 { it.down(n) } else { Matrix::none(1, 1) });
                for i in 0..chance[n].len() {
                    let now = chance[n][i] * step;
                    let mut go = |to: usize, j: usize, rate: f64| {
                        next[to][j] += now * rate;
                        next[n][i] -= now * rate;
                    };
                    if n < last {
                        (0..up.columns).for_each(|j| go(n + 1, j, *up.at(i, j)));
                    }
                    if n > 0 {
                        (0..down.columns).for_each(|j| go(n - 1, j, *down.at(i, j)));
                        let (short, long) = (it.ends(n, i)[0] * 0.4, it.ends(n, i)[1] * 0.4);
                        if i + 1 < chance[n].len() {
                            go(n, i + 1, short * 0.2);
                        }
                        if i > 0 {
                            go(n, i - 1, long * 0.8);
                        }
                    }
                }
            }
            chance = next;
        }
        let levels: Vec<f64> = chance.iter().map(|level| level.iter().sum::<f64>()).collect();
        let all: f64 = levels.iter().sum();
        let mean = |of: &dyn Fn(usize) -> usize| levels.iter().enumerate().map(|(n, p)| p / all * count(of(n))).sum::<f64>();
        let found = it.beyond(places).unwrap();
        let expected = (mean(&|n| n.min(places).saturating_sub(2)), mean(&|n| n.saturating_sub(places)));
        assert!((found.servers - expected.0).abs() < 1e-6 && (found.places - expected.1).abs() < 1e-6, "{found:?} {expected:?}");
    }

    /// Whatever the rate is, with derivatives of what is busy.
    #[test]
    fn so_many_are_busy_as_are_asked() {
        let paces = [0.8, 0.9, 1.1];
        let it = Stream { rate: 0.7, ..stream(&paces) };
        let [found, more] = [0.7, 0.7 + 1e-5].map(|rate| Stream { rate, ..it.clone() }.beyond(4).unwrap());
        for rate in [0.01, 0.7, 1.2, 40.0] {
            let again = Stream { rate, ..it.clone() }.beyond_while_busy(found.busy, 4).unwrap();
            assert!(
                (again.servers - found.servers).abs() < 1e-7 && (again.places - found.places).abs() < 1e-7,
                "{rate}: {again:?} {found:?}"
            );
        }
        let number = Dual64::from;
        let paces = paces.map(number);
        let services = it.services.map(number);
        let it = Stream { rate: number(0.9), services, short: number(0.8), leaves: number(1.0), servers: 2, paces: &paces, ends: &[] };
        let of_dual = it.beyond_while_busy(Dual64::new(found.busy, 1.0), 4).unwrap();
        let slope = (more.places - found.places) / (more.busy - found.busy);
        assert!((of_dual.places.eps / slope - 1.0).abs() < 1e-4 && (of_dual.busy.eps - 1.0).abs() < 1e-7, "{of_dual:?} {slope}");
        assert!(it.beyond_while_busy(number(2.0), 4).is_none());
    }

    #[test]
    fn derivatives_are_those_of_differences() {
        let at = |moved: usize, by: f64| {
            let of = |i: usize| if i == moved { by } else { 0.0 };
            let paces = [0.8 + of(4), 0.9, 1.1];
            let services = [0.4 + of(1), 3.0];
            let it = Stream { rate: 0.7 + of(0), services, short: 0.8 + of(2), leaves: 0.6 + of(3), servers: 2, paces: &paces, ends: &[] };
            let Beyond { servers, places, .. } = it.beyond(4).unwrap();
            [servers, places]
        };
        let h = 1e-5;
        for moved in 0..5 {
            let number = |i: usize, value: f64| Dual64::new(value, if i == moved { 1.0 } else { 0.0 });
            let paces = [number(4, 0.8), number(9, 0.9), number(9, 1.1)];
            let services = [number(1, 0.4), number(9, 3.0)];
            let it = Stream {
                rate: number(0, 0.7),
                services,
                short: number(2, 0.8),
                leaves: number(3, 0.6),
                servers: 2,
                paces: &paces,
                ends: &[],
            };
            let Beyond { servers, places, .. } = it.beyond(4).unwrap();
            for (exact, (more, less)) in [servers, places].iter().zip(at(moved, h).iter().zip(&at(moved, -h))) {
                let difference = (more - less) / (2.0 * h);
                assert!((exact.eps - difference).abs() < 1e-6 * (1.0 + difference.abs()), "{moved}: {exact}, not {difference}");
            }
        }
    }
}
