//! How much longer requests of each level of urgency wait than by equations of mean values: `ψ`, from the chain of who is there ([`super::urgent`]).
//!
//! Those equations ([`super::super::discipline`]) have the urgent come while one waits as if there were as many away as ever. But while a less urgent one
//! waits, they are gathered before it, and fewer are left to come; and who comes less urgent finds the server free only if all of them are away. With `L(j)` waiting
//! and `U(j)` in service of level `j`, the first the most urgent, and `L⁻`, `U⁻` where one of level `a` is not there,
//!
//! ```text
//! W_a  = L(a) s_a/U(a)
//! W_a° = Σ_j [L⁻(j) s_j (j ≤ a) + Π/û U⁻(j) R_j] σ_j b_j / m + [s_a (σ_a - 1) f]         ψ_a = W_a/W_a°
//! σ_j  = 1/(1 - Σ_{i<a} U⁻(i)/m), of who is there where one of level j is not
//! R_j  = (1 - r_a) (y_a + s̄) s_j/(y_a + s_j) + r_a s̄
//! b_j  = (1 - r_a) y_a/(y_a + (L(j) + U(j)) s_j/U(j) (1 - (L(j) + U(j))/N_j))        b_a = 1
//! ```
//!
//! `b` and the bracket are those of preemption, under which the less urgent are not there for `a`; head of line `b` is 1 and the bracket 0.
//!
//! Of more than three levels, those above the one and its next, or below it, are one kind. Those above have the mean service of all; those below are as many in service
//! as in the network, with the mean rest of all, which is what others wait for.
//!
//! In the last network `ψ` is corrected for what is found of a customer less ([`super::corrections`]), with rests by the laws of services there: `R_j` of a law that
//! leaves `ρ_j s_j` of a service in the mean is [`rest_after_gap`].

use super::{
    super::{
        super::{
            flow::Flow,
            net::{Discipline, Net},
            residual::rest_after_gap,
        },
        busy::{Sources, all_busy},
        discipline::{share_interrupted, stretch},
    },
    ratio::{Known, at_least, of_fewer, of_servers, sum, waits_of},
    sources::{Kind, There, of_sources, plain},
    urgent::{self, KINDS},
    visitors::{Pool, Visitors, goes_on, visitors},
};
use crate::model::Scalar;

/// Most products of an elimination, but for levels that have to be taken in.
const MOST_WORK: f64 = 150_000.0;

/// How a station takes levels of urgency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    pub servers: f64,
    /// Whether the more urgent interrupt services.
    pub interrupts: bool,
}

impl Order {
    /// That of a station at which some requests are more urgent than others.
    fn of<S>(net: &Net<S>, station: usize) -> Option<Self> {
        let it = &net.stations[station];
        match it.discipline {
            _ if it.servers.is_infinite() => None,
            Discipline::HeadOfLine => Some(Self { servers: it.servers, interrupts: false }),
            Discipline::Preemptive => Some(Self { servers: it.servers, interrupts: true }),
            _ => None,
        }
    }
}

/// The order of a station that goes by urgency, and what comes to it, of a network with such flow and waits and at most `caps` busy threads of each task; none where
/// that is not all that may come, or something goes on after the reply: who goes first then no chain tells.
pub(super) fn by_level<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), caps: &[f64], station: usize) -> Option<(Order, Visitors<S>)> {
    let order = Order::of(net, station).filter(|_| !goes_on(net, solved.0, station))?;
    let visitors = visitors(net, solved, caps, station, true).filter(|visitors| visitors.are_all(net, caps))?;
    Some((order, visitors))
}

/// Chains that are solved.
pub(super) type Chains<S> = Known<S, [Kind<f64>; KINDS], KINDS>;

/// `ψ` of each of the pools of which so many sources are there.
pub(super) fn ratios<S: Scalar>(visitors: &Visitors<S>, sources: &[f64], order: Order, known: &mut Chains<S>) -> Vec<S> {
    let one = S::from(1.0);
    let mut ratio = |(pool, &level): (&Pool<S>, &f64)| {
        let counts = pool.counts();
        let told = if counts > 0.0 { Told::new(visitors, sources, level, order) } else { None };
        told.and_then(|told| told.longer(order, known)).map_or(one, |longer| (longer - 1.0) * counts + 1.0)
    };
    visitors.pools.iter().zip(&visitors.levels).map(&mut ratio).collect()
}

/// The kinds of sources by which the waits of a level are told, each of which goes before the next.
pub(super) struct Told<S> {
    pub kinds: [Kind<S>; KINDS],
    /// Who is there in the network.
    pub there: There<S, KINDS>,
    /// `ρ` there: mean rests of services over the means.
    pub rests: [S; KINDS],
    /// Which of them the level is.
    pub of: usize,
}

impl<S: Scalar> Told<S> {
    /// Those of a level; none where there are no more sources than servers.
    pub fn new(visitors: &Visitors<S>, sources: &[f64], level: f64, order: Order) -> Option<Self> {
        let mut levels: Vec<(f64, f64, Pool<S>)> =
            visitors.levels.iter().zip(sources).zip(&visitors.pools).map(|((&level, &n), &pool)| (level, n, pool)).collect();
        levels.retain(|&(_, n, _)| n > 0.0);
        levels.sort_by(|a, b| b.0.total_cmp(&a.0));
        let of = levels.iter().position(|it| it.0 == level)?;
        if order.interrupts {
            levels.truncate(of + 1);
        }
        let mut kinds: Vec<(f64, Pool<S>)> = levels.into_iter().map(|(_, n, pool)| (n, pool)).collect();
        let n_below = if kinds.len() > KINDS && of + 1 < kinds.len() { (kinds.len() - KINDS + 1).min(kinds.len() - of - 1) } else { 1 };
        let below = kinds.split_off(kinds.len() - n_below);
        kinds.push(as_left(&below));
        let n_above = (kinds.len() + 1).saturating_sub(KINDS).max(1);
        let above = kinds.drain(..n_above).fold((0.0, Pool::new(0.0)), |(n, all), (more, pool)| (n + more, all.with(&pool)));
        kinds.insert(0, above);
        let of = of.saturating_sub(n_above - 1);
        let n: f64 = kinds.iter().map(|(n, _)| n).sum();
        let nobody = (0.0, kinds[0].1);
        let all: [(f64, Pool<S>); KINDS] = std::array::from_fn(|kind| kinds.get(kind).copied().unwrap_or(nobody));
        let there = |of: fn(&Pool<S>) -> S| all.map(|(n, pool)| if n > 0.0 { of(&pool) } else { S::from(0.0) });
        let there = There { waiting: there(|pool| pool.there - pool.busy), busy: there(|pool| pool.busy) };
        let rests = all.map(|(_, pool)| pool.left * pool.rate / (pool.busy * pool.busy));
        let kinds = all.map(|(sources, pool)| {
            let kind = pool.kind();
            Kind { sources, away: at_least(kind.away, kind.service), ..kind }
        });
        (n > order.servers).then_some(Self { kinds, there, rests, of })
    }

    /// `ψ`; none where no chain tells it.
    fn longer(&self, order: Order, known: &mut Chains<S>) -> Option<S> {
        let plain = plain(&self.kinds);
        let work = |sources| urgent::work(&of_sources(&plain, sources), order.servers, order.interrupts);
        let sources = self.kinds.map(|kind| kind.sources);
        let [longer] = of_fewer(sources, order.servers, (work, MOST_WORK), |fewer| {
            let kinds = of_sources(&self.kinds, fewer);
            let it = ByMeans::new(kinds, self.of, order, known)?;
            Some([waits_of(&it.all, kinds.map(|kind| kind.service), self.of, it.wait())])
        })?;
        Some(longer)
    }
}

/// Less urgent ones as one kind, of which as many are in service, with the mean rest of all.
fn as_left<S: Scalar>(below: &[(f64, Pool<S>)]) -> (f64, Pool<S>) {
    if let &[one] = below {
        return one;
    }
    let none = (0.0, Pool::new(0.0), S::from(0.0));
    let (n, mut all, rests) =
        below.iter().fold(none, |(n, all, rests), (more, pool)| (n + more, all.with(pool), rests + pool.busy * pool.busy / pool.rate));
    let fewer = all.busy * all.busy / (rests * all.rate);
    all.rate *= fewer;
    all.again *= fewer;
    (n, all)
}

/// What equations of mean values say of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByMeans<S> {
    pub kinds: [Kind<S>; KINDS],
    pub of: usize,
    pub order: Order,
    /// Who is there of all.
    pub all: There<S, KINDS>,
    /// Who is there without one of each kind.
    pub found: [There<S, KINDS>; KINDS],
    /// `ρ`.
    pub rests: [S; KINDS],
}

impl<S: Scalar> ByMeans<S> {
    /// Of who is there by the chain, of exponential services.
    pub fn new(kinds: [Kind<S>; KINDS], of: usize, order: Order, known: &mut Chains<S>) -> Option<Self> {
        let mut there = |less: Option<usize>| {
            let mut kinds = kinds;
            less.iter().for_each(|&of| kinds[of].sources -= 1.0);
            known.there(plain(&kinds), || urgent::there(kinds, order.servers, order.interrupts))
        };
        let all = there(None)?;
        let mut found = [all; KINDS];
        for (kind, found) in found.iter_mut().enumerate().filter(|(kind, _)| kinds[*kind].sources > 0.0) {
            *found = there(Some(kind))?;
        }
        Some(Self { kinds, of, order, all, found, rests: [S::from(1.0); KINDS] })
    }

    /// `W°`.
    pub fn wait(&self) -> S {
        let Order { servers, interrupts } = self.order;
        let (of, found) = (self.of, &self.found[self.of]);
        let services = self.kinds.map(|kind| kind.service);
        let served = services.iter().zip(self.all.busy).fold(S::from(0.0), |sum, (&service, busy)| sum + busy / service);
        let mean = sum(&self.all.busy) / served;
        let mut sources = self.kinds.map(|kind| kind.sources);
        sources[of] -= 1.0;
        let share = of_servers(found, sources, servers);
        let part = |j: usize| {
            let waiting = if j <= of { found.waiting[j] * services[j] } else { S::from(0.0) };
            let regained = if interrupts && j < of { self.regained(j) } else { S::from(1.0) };
            (waiting + found.busy[j] * self.rest(j, mean) * share) * self.stretch(j) * regained
        };
        let wait = (0..KINDS).filter(|&j| sources[j] > 0.0 || j == of).map(part).fold(S::from(0.0), |sum, part| sum + part) / servers;
        if interrupts { wait + services[of] * (self.stretch(of) - 1.0) * self.interrupted(share) } else { wait }
    }

    /// `R`, `mean` the mean service of all.
    fn rest(&self, j: usize, mean: S) -> S {
        let Kind { sources, away, again, .. } = self.kinds[self.of];
        let service = self.kinds[j].service;
        let rest = service * self.rests[j];
        // Who comes as it will was away for long.
        if sources.is_infinite() {
            return rest;
        }
        let after_gap = rest_after_gap(away, (service, rest), mean);
        after_gap + again * (mean - after_gap)
    }

    /// `σ` of those of a kind.
    fn stretch(&self, j: usize) -> S {
        stretch(sum(&self.found[j].busy[..self.of]) / self.order.servers)
    }

    /// `b`.
    fn regained(&self, j: usize) -> S {
        let Kind { sources, away, again, .. } = self.kinds[self.of];
        if sources.is_infinite() {
            return S::from(1.0);
        }
        let there = self.all.waiting[j] + self.all.busy[j];
        let share = there / self.kinds[j].sources;
        let relaxes = there * self.kinds[j].service / self.all.busy[j] * (-share + 1.0);
        away / (away + relaxes) * (-again + 1.0)
    }

    /// `f`.
    fn interrupted(&self, share: S) -> S {
        let servers = self.order.servers;
        if servers <= 1.0 || self.of == 0 {
            return S::from(1.0);
        }
        let busy = &self.found[self.of].busy;
        let (urgent, own) = (sum(&busy[..self.of]), busy[self.of]);
        let urgent_sources: f64 = self.kinds[..self.of].iter().map(|kind| kind.sources).sum();
        let chance = |number: f64, load: S| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "servers of a chain that is solved")]
            all_busy(servers as u32, Sources { number, coming: &[] }, load, &[], &mut None)
        };
        let all_sources = urgent_sources + self.kinds[self.of].sources - 1.0;
        share_interrupted((urgent, own), (chance(urgent_sources, urgent), (urgent + own) * share), |load| chance(all_sources, load))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::chain::tests::kind, *};
    use crate::model::Tangent;

    /// One of two kinds, of which the first goes first.
    fn told<S: Scalar>([first, second]: [Kind<S>; 2], of: usize) -> Told<S> {
        let none = [S::from(0.0); KINDS];
        Told { kinds: [first, second, Kind { sources: 0.0, ..first }], there: There { waiting: none, busy: none }, rests: none, of }
    }

    /// Mean values are right of streams at one server (Cobham); of ten sources the urgent gather before one who waits, and are missing from those who might come.
    #[test]
    fn the_less_urgent_wait_less_where_the_urgent_are_few() {
        for interrupts in [false, true] {
            let ratio = |sources: f64, [first, second]: [f64; 2]| {
                let kinds = [kind(sources, first, 1.6), kind(sources, second, 0.3)];
                told(kinds, 1).longer(Order { servers: 1.0, interrupts }, &mut Known::nothing()).unwrap()
            };
            let few = ratio(10.0, [40.0, 10.0]);
            assert!((0.7..0.92).contains(&few), "{interrupts}: {few}");
            let streams = ratio(f64::INFINITY, [8.0, 2.0]);
            assert!((streams - 1.0).abs() < 1e-6, "{interrupts}: {streams}");
        }
    }

    #[test]
    fn slopes_are_those_of_differences() {
        fn at<S: Scalar>(x: [S; 4], of: usize, order: Order) -> S {
            let kinds = [
                Kind { sources: 6.0, away: x[0], service: x[1], again: x[0] * 0.1 },
                Kind { sources: 3.0, away: x[2], service: x[3], again: x[3] * 0.3 },
            ];
            told(kinds, of).longer(order, &mut Known::nothing()).unwrap()
        }
        let x = [2.0, 0.3, 5.0, 1.2];
        for (of, servers, interrupts) in
            [(0, 1.0, false), (1, 1.0, false), (1, 1.0, true), (0, 2.0, false), (1, 2.0, false), (1, 2.0, true)]
        {
            let order = Order { servers, interrupts };
            let found = at(std::array::from_fn(|i| Tangent::<4>::variable(x[i], i)), of, order);
            assert_eq!(found.value(), at(x, of, order), "to the last bit");
            for (direction, &slope) in found.derivatives().iter().enumerate() {
                let moved = |by: f64| {
                    let mut x = x;
                    x[direction] += by;
                    at(x, of, order)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - difference).abs() < 1e-6, "{of} {servers} {interrupts} {direction}: {slope} {difference}");
            }
        }
    }
}
