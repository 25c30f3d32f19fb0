//! The chain of sources of one kind whose services are of two lengths, before several servers in order of arrival.
//!
//! A long service that is in progress does not keep the other servers from short ones, so that the next of the servers is done sooner than by a mean of what is
//! left of all services, and who is in service is mostly not as who comes. Which service a request has need not be known before it is served, so that who
//! waits has no kinds, and the chain is exact:
//!
//! ```text
//! states     how many are there, n, and how many of them have short services, i, and long ones, j, with i + j = min(n, m)
//! comes      (N - n)/y
//! goes       i/s_a + j/s_b; whoever begins to be served has a short service with chance q
//! back       with chance r at once, behind those who wait
//! ```
//!
//! Of more than two lengths, `s_a`, `s_b` and `q` are those for which the first three moments are right: with `M_k` the mean of the `k`th power of the mean
//! services of what comes, `s_a < s_b` are the roots of (Gauss's quadrature with two nodes)
//!
//! ```text
//! s² - c s + c M_1 - M_2 = 0        c = (M_3 - M_1 M_2)/(M_2 - M_1²)        q = (s_b - M_1)/(s_b - s_a)
//! ```
//!
//! Services that vary more than exponential ones are as if of several means, of which `M_k` is `E[S^k]/k!`: with mean rest `ρ M_1` it is `ρ` and, of a random number of exponential calls, `ρ²` for the
//! third (none, or an exponential time of `ρ`, with chance `1/ρ`), else that of [`Law`].
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `r` | `sources`, `away`, `again` | as of a [`Kind`](super::sources::Kind) |
//! | `s_a`, `s_b`, `q` | `services`, `short` | mean services, and the share of the short ones |
//! | `m` | `servers` | servers |

use super::{
    super::super::residual::Law,
    band::{Band, TakenOut},
    reached,
    sources::{Causes, There, Weigh, count, number, with_slopes},
};
use crate::model::Scalar;

/// Levels above one that is reached with less than this chance, once all servers are busy, are left out.
const LEAST_CHANCE: f64 = 1e-10;
/// The same, where it is guessed as of services of one length.
const SEEMING_CHANCE: f64 = 1e-12;
/// How long executions without a call are, of the mean, for twice the mean rest: those of no time at all would end at once.
const NO_CALL: f64 = 0.1;
/// Services that vary less than this part of the square of their mean are alike.
const ALIKE: f64 = 1e-9;

/// Sources with services of two lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mixed<S> {
    pub sources: f64,
    pub away: S,
    pub again: S,
    pub services: [S; 2],
    pub short: S,
}

/// Services of one kind: their mean, and by how much they vary beyond exponential ones, as if they were of several means: the second and third central moments of
/// these, over the powers of their mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Varied<S> {
    pub mean: S,
    beyond: [S; 2],
}

impl<S: Scalar> Varied<S> {
    /// Exponential ones.
    pub fn exponential(mean: S) -> Self {
        Self { mean, beyond: [S::from(0.0); 2] }
    }

    /// Those of such a mean rest: by the law of [`Law`], or of a random number of exponential calls, of which the third moment over six times the cube of the mean is
    /// `ρ²` (none, or an exponential time). As exponential ones where they vary less.
    pub fn new(mean: S, rest: S, of_calls: bool) -> Self {
        if mean <= 0.0 || rest <= mean {
            return Self::exponential(mean);
        }
        let rest = rest / mean;
        let third = if of_calls { rest * rest + (rest - 1.0) * NO_CALL } else { Law::third(rest) };
        Self { mean, beyond: [rest - 1.0, third - rest * 3.0 + 2.0] }
    }
}

/// What makes a rate: who comes or goes, whether it is back at once, and what whoever begins to be served is.
#[derive(Clone, Copy, Debug, Default)]
struct Cause {
    goes: Option<usize>,
    is_back: bool,
    begins: Option<usize>,
}

/// A number of the sources.
#[derive(Clone, Copy, Debug)]
enum Along {
    Away(f64),
    Again(f64),
    Service(usize, f64),
    Short(f64),
}

impl Causes for Cause {
    fn all() -> impl Iterator<Item = Self> {
        let some = [None, Some(0), Some(1)];
        let back = move |goes| [false, true].into_iter().flat_map(move |is_back| some.map(|begins| Self { goes, is_back, begins }));
        some.into_iter().flat_map(back)
    }

    fn number(self) -> usize {
        let place = |of: Option<usize>| of.map_or(0, |of| of + 1);
        (place(self.goes) * 2 + usize::from(self.is_back)) * 3 + place(self.begins)
    }
}

impl Weigh for Along {
    type By = Cause;

    fn weight(self, by: Cause) -> f64 {
        match (self, by) {
            (Self::Away(time), Cause { goes: None, .. }) => -time.recip(),
            (Self::Again(chance), Cause { goes: Some(_), is_back, .. }) => {
                if is_back {
                    chance.recip()
                } else {
                    -(1.0 - chance).recip()
                }
            }
            (Self::Service(of, time), Cause { goes: Some(goes), .. }) if goes == of => -time.recip(),
            (Self::Short(share), Cause { begins: Some(of), .. }) => {
                if of == 0 {
                    share.recip()
                } else {
                    -(1.0 - share).recip()
                }
            }
            _ => 0.0,
        }
    }
}

impl<S: Scalar> Mixed<S> {
    /// Those whose requests have such services, each with its weight; none where these are alike.
    pub fn new((sources, away, again): (f64, S, S), services: impl Iterator<Item = (S, Varied<S>)> + Clone) -> Option<Self> {
        let zero = S::from(0.0);
        let (weights, times) =
            services.clone().fold((zero, zero), |(weights, times), (weight, it)| (weights + weight, times + weight * it.mean));
        let mean = times / weights;
        // Of what is more or less than the mean, over it.
        let [second, third] = services.fold([zero; 2], |[second, third], (weight, it)| {
            let (part, scale) = (weight / weights, it.mean / mean);
            let (more, [own, skew]) = (scale - 1.0, it.beyond);
            let (own, skew) = (own * scale * scale, skew * scale * scale * scale);
            [second + part * (more * more + own), third + part * (more * more * more + more * own * 3.0 + skew)]
        });
        if second.value().is_nan() || second <= ALIKE {
            return None;
        }
        // x² - skew x - second = 0
        let skew = third / second;
        let root = (skew * skew + second * 4.0).sqrt();
        let [less, more] = [(skew - root) * 0.5, (skew + root) * 0.5];
        Some(Self { sources, away, again, services: [mean * (less + 1.0), mean * (more + 1.0)], short: more / root })
    }

    /// Without derivatives.
    pub fn plain(&self) -> Mixed<f64> {
        Mixed {
            sources: self.sources,
            away: self.away.value(),
            again: self.again.value(),
            services: self.services.map(|it| it.value()),
            short: self.short.value(),
        }
    }

    /// Mean service.
    pub fn service(&self) -> S {
        self.services[1] + (self.services[0] - self.services[1]) * self.short
    }
}

/// Who is there, before so many servers; those who wait by what services they will have.
pub(super) fn there<S: Scalar>(mixed: &Mixed<S>, servers: f64) -> Option<There<S>> {
    let (alone, servers) = (mixed.plain(), number(servers));
    let all = number(alone.sources);
    // As with services of one length.
    let odds = alone.service() / (alone.away * (1.0 - alone.again));
    let mut last = reached::last_level(alone.sources, odds, servers, SEEMING_CHANCE);
    let (chain, equations, vector) = loop {
        let chain = Chain::new(&alone, servers, last);
        let equations = chain.take_out()?;
        let vector = equations.vector();
        if last == all || reached::chance(&chain.levels, servers, last, |state| vector[state]) <= LEAST_CHANCE {
            break (chain, equations, vector);
        }
        last = all.min(2 * last);
    };
    let (sums, all) = chain.sums(&vector);
    let values = sums.map(|sum| sum / all);
    let numbers = [
        (mixed.away, Along::Away(alone.away)),
        (mixed.again, Along::Again(alone.again)),
        (mixed.services[0], Along::Service(0, alone.services[0])),
        (mixed.services[1], Along::Service(1, alone.services[1])),
        (mixed.short, Along::Short(alone.short)),
    ];
    let queue = with_slopes(values, numbers, |weights| {
        let (slopes, more) = chain.sums(&equations.answers(chain.balance(&vector, |by| weights.of(by))));
        Some(slopes.zip(values, |slope, value| (slope - value * more) / all))
    })?;
    let waiting = queue.waiting[0];
    Some(There { waiting: [waiting * mixed.short, waiting * (-mixed.short + 1.0)], ..queue })
}

/// What the elimination of such a chain multiplies.
pub(super) fn work(sources: f64, servers: f64) -> f64 {
    let width = servers.min(sources) + 1.0;
    sources * width * width * width
}

/// A chain, by how many are there and then by how many have short services.
struct Chain {
    /// Where the states of each level begin, and where the last ones end.
    levels: Vec<usize>,
    /// How many are in service at most.
    servers: usize,
    /// From which state to which other, and the rate.
    flows: Vec<(usize, usize, f64, Cause)>,
}

impl Chain {
    /// With so many there at most.
    fn new(mixed: &Mixed<f64>, servers: usize, last: usize) -> Self {
        let mut levels = vec![0];
        for n in 0..=last {
            levels.push(levels[n] + n.min(servers) + 1);
        }
        let mut it = Self { levels, servers, flows: Vec::new() };
        for n in 0..=last {
            for i in 0..=n.min(servers) {
                it.add_flows(mixed, (n, last), i);
            }
        }
        it
    }

    /// What leads from the state with `n` there of whom `i` have short services.
    fn add_flows(&mut self, mixed: &Mixed<f64>, (n, last): (usize, usize), i: usize) {
        let from = self.levels[n] + i;
        let begins = [mixed.short, 1.0 - mixed.short];
        if n < last {
            let rate = (mixed.sources - count(n)) / mixed.away;
            if n < self.servers {
                for of in [0, 1] {
                    let to = self.levels[n + 1] + i + 1 - of;
                    self.flows.push((from, to, rate * begins[of], Cause { begins: Some(of), ..Cause::default() }));
                }
            } else {
                self.flows.push((from, self.levels[n + 1] + i, rate, Cause::default()));
            }
        }
        let served = [i, n.min(self.servers) - i];
        for goes in [0, 1].into_iter().filter(|&of| served[of] > 0) {
            let rate = count(served[goes]) / mixed.services[goes];
            let stays = i + goes - 1;
            if n > self.servers {
                for of in [0, 1] {
                    let by = Cause { goes: Some(goes), is_back: false, begins: Some(of) };
                    self.flows.push((from, self.levels[n - 1] + stays + 1 - of, rate * (1.0 - mixed.again) * begins[of], by));
                }
            } else {
                let by = Cause { goes: Some(goes), ..Cause::default() };
                self.flows.push((from, self.levels[n - 1] + stays, rate * (1.0 - mixed.again), by));
            }
            // Who has the same service as whoever went leaves the state as it is.
            let of = 1 - goes;
            if mixed.again > 0.0 {
                let by = Cause { goes: Some(goes), is_back: true, begins: Some(of) };
                self.flows.push((from, self.levels[n] + stays + 1 - of, rate * mixed.again * begins[of], by));
            }
        }
    }

    fn n_states(&self) -> usize {
        self.levels[self.levels.len() - 1]
    }

    /// The equations of balance, taken out.
    fn take_out(&self) -> Option<TakenOut> {
        let reach = self.flows.iter().map(|&(from, to, ..)| from.abs_diff(to)).max().unwrap_or(0);
        let mut band = Band::new((0..=self.n_states()).collect(), reach);
        for &(from, to, rate, _) in &self.flows {
            band.add(from, from, rate);
            band.add(to, from, -rate);
        }
        band.take_out()
    }

    /// What comes less what goes, by state, where each rate counts with a weight.
    fn balance(&self, vector: &[f64], weight: impl Fn(Cause) -> f64) -> Vec<f64> {
        let mut balance = vec![0.0; self.n_states()];
        for &(from, to, rate, by) in &self.flows {
            let flow = vector[from] * rate * weight(by);
            balance[from] -= flow;
            balance[to] += flow;
        }
        balance
    }

    /// Those who wait, all as of the first kind, and are served, over all states; and the sum of these.
    fn sums(&self, vector: &[f64]) -> (There<f64>, f64) {
        let (mut all, mut waiting, mut busy) = (0.0, 0.0, [0.0; 2]);
        for (n, states) in self.levels.windows(2).enumerate() {
            let served = n.min(self.servers);
            for (i, &p) in vector[states[0]..states[1]].iter().enumerate() {
                all += p;
                waiting += p * count(n - served);
                busy[0] += p * count(i);
                busy[1] += p * count(served - i);
            }
        }
        (There { waiting: [waiting, 0.0], busy }, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [(f64, Mixed<f64>); 4] = [
        (2.0, Mixed { sources: 5.0, away: 1.0, again: 0.0, services: [0.2, 3.0], short: 0.8 }),
        (4.0, Mixed { sources: 30.0, away: 2.0, again: 0.3, services: [0.2, 9.0], short: 0.9 }),
        (3.0, Mixed { sources: 60.0, away: 50.0, again: 0.6, services: [1.0, 5.0], short: 0.4 }),
        (7.0, Mixed { sources: 8.0, away: 0.1, again: 0.0, services: [0.01, 4.0], short: 0.99 }),
    ];

    #[test]
    fn who_is_served_is_as_who_comes_and_all_are_somewhere() {
        for (servers, it) in SOME {
            let found = there(&it, servers).unwrap();
            let [short, long] = [0, 1].map(|of| found.busy[of] / it.services[of]);
            assert!((short / (short + long) - it.short).abs() < 1e-9, "{it:?}");
            let waiting = found.waiting[0] + found.waiting[1];
            let all = waiting + found.busy[0] + found.busy[1] + (short + long) * (1.0 - it.again) * it.away;
            assert!((all / it.sources - 1.0).abs() < 1e-8, "{it:?}: {all}");
            assert!(waiting > 0.0 && found.busy[0] + found.busy[1] < servers, "{it:?}: {found:?}");
        }
    }

    /// `p(n) ∝ N!/(N-n)! x^n / Π min(j, m)`, whatever the share.
    #[test]
    fn services_alike_have_the_queue_of_machine_repair() {
        let (servers, it) = (3.0, Mixed { sources: 9.0, away: 2.0, again: 0.0, services: [0.7, 0.7], short: 0.3 });
        let found = there(&it, servers).unwrap();
        let (mut chance, mut sum, mut waiting, mut n) = (1.0, 1.0, 0.0, 0.0);
        while n < it.sources {
            chance *= (it.sources - n) * 0.7 / 2.0 / f64::min(n + 1.0, servers);
            n += 1.0;
            sum += chance;
            waiting += chance * f64::max(n - servers, 0.0);
        }
        assert!(((found.waiting[0] + found.waiting[1]) / (waiting / sum) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_lengths_have_the_moments_of_more() {
        let services = [(1.0, 0.2), (3.0, 1.0), (0.5, 4.0), (0.1, 9.0)];
        let it = Mixed::new((5.0, 1.0, 0.0), services.into_iter().map(|(weight, time)| (weight, Varied::exponential(time)))).unwrap();
        let weights: f64 = services.iter().map(|(weight, _)| weight).sum();
        for power in 0..4 {
            let all = services.iter().map(|&(weight, time)| weight / weights * f64::powi(time, power)).sum::<f64>();
            let of_two = it.short * it.services[0].powi(power) + (1.0 - it.short) * it.services[1].powi(power);
            assert!((of_two / all - 1.0).abs() < 1e-12, "{power}: {of_two} {all}");
        }
        assert!(it.services[0] > 0.0 && it.services[0] < it.services[1]);
        let alike = [1.0, 2.0].map(|weight| (weight, Varied::exponential(0.3)));
        assert!(Mixed::new((5.0, 1.0, 0.0), alike.into_iter()).is_none());
    }

    /// `E[S^k]/k!` of services of which one kind varies more than exponential ones.
    #[test]
    fn two_lengths_have_the_moments_of_services_that_vary_more() {
        let (plain, mean, rest) = (0.3, 1.5, 4.0);
        let services = [(2.0, Varied::exponential(plain)), (1.0, Varied::new(mean, rest, false))];
        let it = Mixed::new((5.0, 1.0, 0.0), services.into_iter()).unwrap();
        let third = mean * mean * mean * Law::third(rest / mean);
        for (power, varied) in [(0, 1.0), (1, mean), (2, mean * rest), (3, third)] {
            let all = (2.0 * f64::powi(plain, power) + varied) / 3.0;
            let of_two = it.short * it.services[0].powi(power) + (1.0 - it.short) * it.services[1].powi(power);
            assert!((of_two / all - 1.0).abs() < 1e-12, "{power}: {of_two} {all}");
        }
        assert!(it.services[0] > 0.0 && it.short > 0.0 && it.short < 1.0, "{it:?}");
        // Next to none of half of them, and of the others twice as long.
        let of_calls = Mixed::new((5.0, 1.0, 0.0), [(1.0, Varied::new(mean, 2.0 * mean, true))].into_iter()).unwrap();
        let [none, twice] = of_calls.services.map(|service| service / mean);
        assert!((0.0..0.06).contains(&none) && (2.0..2.06).contains(&twice) && (of_calls.short - 0.5).abs() < 0.03, "{of_calls:?}");
        // What varies less is as exponential.
        assert!(Mixed::new((5.0, 1.0, 0.0), [(1.0, Varied::new(mean, 0.5 * mean, true))].into_iter()).is_none());
    }
}
