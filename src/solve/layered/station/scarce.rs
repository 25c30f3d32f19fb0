//! Services that vary before sources that run out.
//!
//! While a long service lasts, those that are away come, and wait: fewer and fewer are left to find what is left of it. With `N` sources that are
//! away for exponential times of mean `y`, before one server in order of arrival, the load is (Takács, *Introduction to the Theory of Queues*,
//! 1962, chapter 5)
//!
//! ```text
//! U/(1 - U) = N x T_N        T_N = Σ_{k<N} (N-1)…(N-k)/k! Π_{j≤k} (1/B*(j x) - 1)        x = s/y
//! W_N/s = N/U_N - 1/x - 1 = (N-1) (1 - (T_N - 1) / ((N-1) x T_N))
//! ```
//!
//! with `B*(u)` the transform at `u/s` of the law of [`super::super::residual`]; it makes a factor of the product over `j` a ratio of polynomials, and
//! the difference of `T` and 1 is taken by its terms. The mean rest `r'` that makes the equations of mean values give this wait follows from it
//! and from the same of a source less, which is what an arrival sees of them:
//!
//! ```text
//! W_N = s (L_{N-1} - U_{N-1}) + r' U_{N-1}
//! φ = r' / [(y + s) R(y)]
//! ```
//!
//! `φ` is what the sources beside the two that meet change, and multiplies each rest that is found in services of a row. The bracket is what the gap of one
//! leaves; it is all there is where there are but two. `φ` is 1 for exponential services, and towards endless sources; where all
//! others are always there, `r' = s`: who waits behind all of them waits for no rest. The law is that of the services which those of the row find
//! before their own, since it is these that make others come before it begins. Of a single pool what exponential phases before and after
//! the reply do is known ([`super::second_phase`]): there `φ` is relative to theirs. Of several pools what an exponential time of each one's mean
//! does is known ([`super::kinds`]), and `φ` relative to these.
//!
//! With several servers, or other orders, long services keep less from coming, and nothing as simple is known. In order of arrival, services that vary more than exponential ones, of threads that do not
//! hold each other up, are those of two lengths, whose chain has a `ψ` ([`super::kinds`], `mixed`), and rests are in full. Elsewhere a rest is
//!
//! ```text
//! r' = s + A (r - s)        A = 1 - (sources that are there) / N
//! ```
//!
//! which is chosen, not derived: right for endless sources, and where all are there. Services that vary less than exponential ones are left so at several servers, too.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y` | `sources`, `away` | the sources of all that comes, and how long each is away in the mean |
//! | `s`, `r`, `B*`, `R` | [`Law`] | mean service, phases after the reply included, its mean rest, its transform, what a gap leaves of it |
//! | `U`, `L`, `W` | [`queues`] | load, number there, wait |

use super::{
    super::{net::Discipline, residual::Law},
    At,
    kinds::apart,
    visit::Visit,
};
use crate::model::Scalar;

/// Beyond such a ratio of busy to idle time all others are there but for rounding.
const FULL: f64 = 1e13;
/// Terms below this part of their sum do not count.
const NEGLIGIBLE: f64 = 1e-17;

/// Sets the rests that are found in services before so many sources, at several servers or in another order than that of arrival; where a chain tells what services
/// change that vary more than exponential ones ([`super::kinds`], `mixed`), of the others.
pub(super) fn weigh_rests<S: Scalar>(sources: f64, is_told: bool, visits: &mut [Visit<S>]) {
    let there = visits.iter().fold(S::from(0.0), |sum, v| sum + v.rate * (v.wait + v.first + v.late));
    let away = -there / sources + 1.0;
    let away = if away > 0.0 { away } else { S::from(0.0) };
    for v in visits {
        if is_told && v.full_first_rest > v.first {
            continue;
        }
        v.first_rest = v.first + (v.full_first_rest - v.first) * away;
        v.late_rest = v.late + (v.full_late_rest - v.late) * away;
    }
}

/// Sums over services: their number, their times, and the second and third moments of these over 2 and 6.
#[derive(Clone, Copy, Debug)]
pub(super) struct Services<S> {
    number: S,
    time: S,
    second: S,
    third: S,
}

impl<S: Scalar> Services<S> {
    /// Those of visits that keep a server busy for so long in sum until their replies, to their ends.
    pub fn whole(load: &[S], visits: &[Visit<S>]) -> Self {
        Self::of(load, visits, |it| (it.first + it.late, it.first * (it.first_rest + it.late) + it.late * it.late_rest))
    }

    /// The same, with exponential phases.
    fn of_exponential_phases(load: &[S], visits: &[Visit<S>]) -> Self {
        Self::of(load, visits, |it| {
            let whole = it.first + it.late;
            (whole, it.first * whole + it.late * it.late)
        })
    }

    /// The same, with an exponential time of such a mean each.
    fn of_kinds(load: &[S], visits: &[Visit<S>], service: impl Fn(usize) -> S) -> Self {
        let zero = S::from(0.0);
        let mut sum = Self { number: zero, time: zero, second: zero, third: zero };
        for (x, (&load, it)) in load.iter().zip(visits).enumerate().filter(|(_, (load, it))| **load >= 0.0 && it.first > 0.0) {
            let number = load / it.first;
            let time = service(x);
            sum.number += number;
            sum.time += number * time;
            sum.second += number * time * time;
            sum.third += number * time * time * time;
        }
        sum
    }

    /// The same as of [`Self::whole`], as far as the replies.
    pub fn until_reply(load: &[S], visits: &[Visit<S>]) -> Self {
        Self::of(load, visits, |it| (it.first, it.first * it.first_rest))
    }

    fn of(load: &[S], visits: &[Visit<S>], moments: impl Fn(&Visit<S>) -> (S, S)) -> Self {
        let zero = S::from(0.0);
        let mut sum = Self { number: zero, time: zero, second: zero, third: zero };
        for (&load, it) in load.iter().zip(visits).filter(|(load, it)| **load >= 0.0 && it.first > 0.0) {
            let number = load / it.first;
            let (time, second) = moments(it);
            sum.number += number;
            sum.time += number * time;
            sum.second += number * second;
            sum.third += number * time * time * time * Law::third(second / (time * time));
        }
        sum
    }

    /// Their mean, and the law of any of them; none where there are none.
    pub fn law(&self) -> Option<(S, Law<S>)> {
        if self.number <= 0.0 {
            return None;
        }
        let service = self.time / self.number;
        let all = self.time * service;
        Some((service, Law::of_third(self.second / all, self.third / (all * service))))
    }
}

impl<S: Scalar> At<'_, S> {
    /// Whether one server takes requests in order of arrival.
    pub(super) fn is_in_order(&self) -> bool {
        self.servers == 1.0 && self.discipline == Discipline::Fcfs
    }

    /// Sets `scarcity` to `φ` of what is served of each row, of what its arrivals `found` in service; to none where it is 1.
    pub(super) fn find_scarcity(&self, found: &[S], scarcity: &mut Vec<S>) {
        scarcity.clear();
        if !self.is_in_order() || self.sources <= 2.0 || self.sources.is_infinite() {
            return;
        }
        let (mut busy, mut there) = (S::from(0.0), S::from(0.0));
        for v in self.visits {
            let held = v.first + v.late;
            busy += v.rate * held;
            there += v.rate * (v.wait + held);
        }
        let away = -there + self.sources;
        let of_law = |law: Law<S>| {
            if law.is_exponential() {
                S::from(1.0)
            } else if away > 0.0 {
                let x = busy / away;
                rest_of_sources(self.sources, x, &law) / ((x.recip() + 1.0) * law.left(x))
            } else {
                law.rest.recip()
            }
        };
        // What the threads of one pool find of exponential phases is known (`second_phase`).
        let is_known = self.late && self.layout.pools.len() == 1;
        let (of_sources, kinds) = (self.services_of_sources(), self.kinds());
        scarcity.extend(found.chunks_exact(self.visits.len()).zip(&self.layout.rows).map(|(found, row)| {
            let of = |services: Services<S>| services.law().map_or(S::from(1.0), |(_, law)| of_law(law));
            let all = of(Services::whole(found, self.visits));
            if let Some(services) = &of_sources {
                return all / of(Services::of_kinds(found, self.visits, |x| services[x]));
            }
            if let (Some(kinds), Some(pool)) = (&kinds, row.pool) {
                let [mine, others] = apart(kinds, pool);
                let service = |x: usize| if self.layout.pool_of[x] == Some(pool) { mine.service } else { others.service };
                return all / of(Services::of_kinds(found, self.visits, service));
            }
            if is_known { all / of(Services::of_exponential_phases(found, self.visits)) } else { all }
        }));
    }
}

/// `r'/s`.
fn rest_of_sources<S: Scalar>(sources: f64, x: S, law: &Law<S>) -> S {
    let Some([(wait, _), (wait_less, load_less)]) = queues(sources, x, law) else { return S::from(1.0) };
    wait / load_less - wait_less
}

/// Mean wait over the service, and load, with so many sources and with one less; none where all sources are there but for rounding.
fn queues<S: Scalar>(sources: f64, x: S, law: &Law<S>) -> Option<[(S, S); 2]> {
    let factor = |j: f64| x * law.odds(x * j);
    let zero = S::from(0.0);
    // T = 1 + (N-1) f_1 (1 + H), where H are the terms beyond, over the first.
    let (mut beyond, mut beyond_less) = (zero, zero);
    let (mut term, mut term_less) = (S::from(1.0), S::from(1.0));
    let mut k = 2.0;
    while k < sources {
        let next = factor(k);
        term *= next * (sources - k);
        term_less *= next * (sources - 1.0 - k);
        beyond += term;
        beyond_less += term_less;
        if term < NEGLIGIBLE * beyond.value() {
            break;
        }
        if beyond > FULL {
            return None;
        }
        k += 1.0;
    }
    let first = factor(1.0);
    let over = x / first;
    let of = |sources: f64, beyond: S| {
        let total = first * (sources - 1.0) * (beyond + 1.0) + 1.0;
        let busy = x * total * sources;
        let all = over * total;
        ((all - 1.0 - beyond) / all * (sources - 1.0), busy / (busy + 1.0))
    };
    Some([of(sources, beyond), of(sources - 1.0, beyond_less)])
}

#[cfg(test)]
mod tests {
    use super::{super::super::residual::NEARLY_EXPONENTIAL, *};

    /// Machine repair: `p(n) ∝ N!/(N-n)! x^n`.
    #[test]
    fn exponential_services_have_the_queue_of_machine_repair() {
        for (sources, x) in [(2.0, 0.4_f64), (3.0, 1.7), (12.0, 0.05), (40.0, 0.03), (5.0, 1e-7)] {
            let [(wait, load), (_, less)] = queues(sources, x, &Law::new(1.0)).unwrap();
            let of = |sources: f64| {
                let (mut chance, mut busy, mut waiting, mut n) = (1.0, 0.0, 0.0, 0.0);
                while n < sources {
                    chance *= (sources - n) * x;
                    busy += chance;
                    waiting += chance * n;
                    n += 1.0;
                }
                (waiting / busy, busy / (1.0 + busy))
            };
            let expected = of(sources);
            assert!(
                (load - expected.1).abs() < 1e-12 && (wait - expected.0).abs() < 1e-8 * expected.0.max(1e-3),
                "{sources} {x}: {wait} {expected:?}"
            );
            assert!((less - of(sources - 1.0).1).abs() < 1e-12);
            assert!((rest_of_sources(sources, x, &Law::new(1.0)) - 1.0).abs() < 1e-9);
        }
    }

    /// Services of none at all or, with chance `1/ρ`, of an exponential time, by the chain of how many are there.
    #[test]
    fn services_that_vary_have_the_queue_of_their_chain() {
        let (sources, x, rest) = (4.0, 0.6_f64, 2.5);
        let law = Law::of_third(rest, rest * rest - rest * NEARLY_EXPONENTIAL / 3.0);
        let [(wait, load), _] = queues(sources, x, &law).unwrap();
        // Of those that wait when a long service ends, each is gone at once with chance `none`, until one has a long one.
        let none = 1.0 - 1.0 / rest;
        let n = 4;
        let mut rates = vec![vec![0.0; n + 1]; n + 1];
        for (i, row) in rates.iter_mut().enumerate() {
            if i < n {
                let comes = (n - i) as f64 * x;
                row[i + 1] += if i == 0 { comes * (1.0 - none) } else { comes };
            }
            let mut stay = 1.0 / rest;
            for to in (0..i).rev() {
                row[to] += if to == 0 { stay } else { stay * (1.0 - none) };
                stay *= none;
            }
        }
        let mut chance = vec![1.0; n + 1];
        for _ in 0..200_000 {
            let out = |i: usize| rates[i].iter().sum::<f64>();
            let next: Vec<f64> = (0..=n)
                .map(|to| chance[to] + 0.05 * ((0..=n).map(|i| chance[i] * rates[i][to]).sum::<f64>() - chance[to] * out(to)))
                .collect();
            let sum: f64 = next.iter().sum();
            chance = next.into_iter().map(|p| p / sum).collect();
        }
        let there: f64 = chance.iter().enumerate().map(|(i, p)| p * i as f64).sum();
        assert!((load - (1.0 - chance[0])).abs() < 1e-9, "{load} {chance:?}");
        assert!((wait - (there / load - 1.0)).abs() < 1e-9, "{wait} {there}");
    }

    #[test]
    fn few_sources_find_less_of_a_long_service() {
        let law = Law::new(2.5);
        let weight = |sources: f64, load: f64| rest_of_sources(sources, load / sources, &law);
        assert!((weight(100_000.0, 0.5) - 2.5).abs() < 1e-3, "{}", weight(100_000.0, 0.5));
        let rests: Vec<f64> = [0.3, 0.6, 0.9, 1.5, 4.0].iter().map(|&load| weight(10.0, load)).collect();
        assert!(rests.windows(2).all(|pair| pair[1] < pair[0]), "{rests:?}");
        assert!((rest_of_sources(10.0, 1e3, &law) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn constant_services_are_near_their_closed_form() {
        for (sources, x) in [(3.0, 0.3_f64), (8.0, 0.12), (8.0, 0.5)] {
            let [(_, load), _] = queues(sources, x, &Law::new(0.5)).unwrap();
            let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
            while k < sources {
                term *= (sources - k) / k * ((k * x).exp() - 1.0);
                sum += term;
                k += 1.0;
            }
            let busy = sources * x * sum;
            let exact = busy / (1.0 + busy);
            assert!((load - exact).abs() < 0.01 * exact, "{sources} {x}: {load} {exact}");
        }
    }
}
