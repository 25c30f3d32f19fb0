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
//! In the last network `ψ` is corrected ([`Corrections`]) until waits are those of the chain.

use super::{
    super::{
        super::{
            flow::Flow,
            net::{Discipline, Net},
        },
        busy::{Sources, all_busy},
    },
    ratio::{Comes, Known, at_least, of_fewer, of_servers, rests, sum, waits_of},
    sources::{Kind, There, of_sources, plain, ramp},
    urgent::{self, KINDS},
    visitors::{Pool, Visitors, goes_on, visitors},
};
use crate::model::Scalar;

/// Most products of an elimination.
const MOST_WORK: f64 = 150_000.0;
/// The same, where waits are corrected.
const MOST_WORK_OF_LAST: f64 = 2_000_000.0;
/// Logarithms of corrections: up to the one they are none, from the other they count in full.
const LEFT: [f64; 2] = [1e-6, 1e-5];
/// The largest.
const MOST_CORRECTED: f64 = 0.7;
/// How far they go, over how far they seem to have to.
const LENGTHS: std::ops::Range<f64> = 0.3..2.0;
/// Load of more urgent requests beyond which the stretch is not believed.
pub(in super::super) const MAX_URGENT_LOAD: f64 = 0.999;
/// Load of an arrival's own urgency below which it counts as so much.
pub(in super::super) const LEAST_OWN_LOAD: f64 = 1e-3;

/// How a station takes levels of urgency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    pub servers: f64,
    /// Whether the more urgent interrupt services.
    pub interrupts: bool,
}

impl Order {
    /// That of a station at which some requests are more urgent than others.
    pub fn of<S>(net: &Net<S>, station: usize) -> Option<Self> {
        let it = &net.stations[station];
        match it.discipline {
            _ if it.servers.is_infinite() => None,
            Discipline::HeadOfLine => Some(Self { servers: it.servers, interrupts: false }),
            Discipline::Preemptive => Some(Self { servers: it.servers, interrupts: true }),
            _ => None,
        }
    }
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

/// Corrections of `ψ`, one after the other, to those with which waits are those of the chains, where these are of all sources that come and come whatever the others do.
#[derive(Debug)]
pub(in super::super::super) struct Corrections<S> {
    /// By arc, how far the logarithm of `ψ` was from that of the chain, and how far it was taken.
    last: Vec<Option<[S; 2]>>,
}

impl<S: Scalar> Corrections<S> {
    pub fn none() -> Self {
        Self { last: Vec::new() }
    }

    /// Corrects `ψ` `by_arc`, with which a network was solved, of such flow and waits and so many busy threads of each task; says how far it was at most, 0 where
    /// nothing is left to correct.
    pub fn correct(&mut self, net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), caps: &[f64], by_arc: &mut Vec<S>) -> f64 {
        let mut furthest = 0.0;
        for station in 0..net.stations.len() {
            let Some(order) = Order::of(net, station).filter(|_| !goes_on(net, flow, station)) else { continue };
            let visitors = visitors(net, (flow, waits), caps, station, true);
            let Some(visitors) = visitors.filter(|visitors| visitors.are_apart(net)) else { continue };
            let sources = visitors.sources(net, caps);
            let mut known = Known::nothing();
            let mut far = |(pool, &level): (&Pool<S>, &f64)| {
                let far = Told::new(&visitors, &sources, level, order)?.correction(order, &mut known)?.ln() * pool.counts();
                let left = ramp(if far < 0.0 { -far } else { far }, LEFT);
                (left > 0.0).then(|| far * left)
            };
            let far: Vec<Option<S>> = visitors.pools.iter().zip(&visitors.levels).map(&mut far).collect();
            for (&arc, &place) in net.stations[station].arcs.iter().zip(&visitors.place_of) {
                let Some(far) = far[place] else { continue };
                by_arc.resize(net.arcs.len(), S::from(1.0));
                by_arc[arc] *= self.step(net.arcs.len(), arc, far).exp();
                furthest = f64::max(furthest, far.value().abs());
            }
        }
        furthest
    }

    /// How far to go where a correction is so `far`: by the secant through the last one.
    fn step(&mut self, n_arcs: usize, arc: usize, far: S) -> S {
        self.last.resize(n_arcs, None);
        let length = self.last[arc].map_or(S::from(1.0), |[before, gone]| gone / (before - far));
        let length = if length > LENGTHS.end { S::from(LENGTHS.end) } else { length };
        let length = if length >= LENGTHS.start { length } else { S::from(LENGTHS.start) };
        let step = far * length;
        let step = if step > MOST_CORRECTED { S::from(MOST_CORRECTED) } else { step };
        let step = if step < -MOST_CORRECTED { S::from(-MOST_CORRECTED) } else { step };
        self.last[arc] = Some([far, step]);
        step
    }
}

/// The kinds of sources by which the waits of a level are told, each of which goes before the next.
struct Told<S> {
    kinds: [Kind<S>; KINDS],
    /// Who is there in the network.
    there: There<S, KINDS>,
    /// Which of them the level is.
    of: usize,
}

impl<S: Scalar> Told<S> {
    /// Those of a level; none where there are no more sources than servers.
    fn new(visitors: &Visitors<S>, sources: &[f64], level: f64, order: Order) -> Option<Self> {
        let mut levels: Vec<(f64, f64, Pool<S>)> =
            visitors.levels.iter().zip(sources).zip(&visitors.pools).map(|((&level, &n), &pool)| (level, n, pool)).collect();
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
        let kinds = all.map(|(sources, pool)| {
            let kind = pool.kind();
            Kind { sources, away: at_least(kind.away, kind.service), ..kind }
        });
        (n > order.servers).then_some(Self { kinds, there, of })
    }

    /// `ψ`; none where no chain tells it.
    fn longer(&self, order: Order, known: &mut Chains<S>) -> Option<S> {
        let Order { servers, interrupts } = order;
        let plain = plain(&self.kinds);
        let work = (|sources| urgent::work(&of_sources(&plain, sources), servers, interrupts), MOST_WORK);
        let [longer] = of_fewer(self.kinds.map(|kind| kind.sources), servers, work, |fewer| {
            let kinds = of_sources(&self.kinds, fewer);
            let it = ByMeans::new(kinds, self.of, order, known)?;
            Some([waits_of(&it.all, kinds.map(|kind| kind.service), self.of, it.wait())])
        })?;
        Some(longer)
    }

    /// How many times as large `ψ` has to be for the waits of the chain: by as much as these are longer, less what longer queues do by themselves. None where no
    /// chain of all sources tells it.
    fn correction(&self, order: Order, known: &mut Chains<S>) -> Option<S> {
        if urgent::work(&plain(&self.kinds), order.servers, order.interrupts) > MOST_WORK_OF_LAST {
            return None;
        }
        let chain = ByMeans::new(self.kinds, self.of, order, known)?;
        let all = &chain.all;
        let ratio = |there: S, all: S| if all > 0.0 { there / all } else { S::from(1.0) };
        let as_there = |mut it: There<S, KINDS>| {
            for of in 0..KINDS {
                it.waiting[of] *= ratio(self.there.waiting[of], all.waiting[of]);
                it.busy[of] *= ratio(self.there.busy[of], all.busy[of]);
            }
            it
        };
        let network = ByMeans { all: self.there, found: chain.found.map(as_there), ..chain };
        let [now, then] = [all, &self.there].map(|it| it.waiting[self.of] / it.busy[self.of]);
        let ratio = now / then * (network.wait() / chain.wait());
        (ratio > 0.0 && ratio.value().is_finite()).then_some(ratio)
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
struct ByMeans<S> {
    kinds: [Kind<S>; KINDS],
    of: usize,
    order: Order,
    /// Who is there of all.
    all: There<S, KINDS>,
    /// Who is there without one of each kind.
    found: [There<S, KINDS>; KINDS],
}

impl<S: Scalar> ByMeans<S> {
    /// Of who is there by the chain.
    fn new(kinds: [Kind<S>; KINDS], of: usize, order: Order, known: &mut Chains<S>) -> Option<Self> {
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
        Some(Self { kinds, of, order, all, found })
    }

    /// `W°`.
    fn wait(&self) -> S {
        let Order { servers, interrupts } = self.order;
        let (of, found) = (self.of, &self.found[self.of]);
        let services = self.kinds.map(|kind| kind.service);
        let served = services.iter().zip(self.all.busy).fold(S::from(0.0), |sum, (&service, busy)| sum + busy / service);
        let Kind { away, again, .. } = self.kinds[of];
        let mut sources = self.kinds.map(|kind| kind.sources);
        sources[of] -= 1.0;
        let share = of_servers(found, sources, servers);
        // Who comes as it will was away for long.
        let is_stream = sources[of].is_infinite();
        let rests = if is_stream {
            std::array::from_fn(|j| found.busy[j] * services[j])
        } else {
            rests(found, services, &Comes { away, again, mean: sum(&self.all.busy) / served })
        };
        let part = |j: usize| {
            let waiting = if j <= of { found.waiting[j] * services[j] } else { S::from(0.0) };
            let regained = if interrupts && j < of && !is_stream { self.regained(j) } else { S::from(1.0) };
            (waiting + rests[j] * share) * self.stretch(j) * regained
        };
        let wait = (0..KINDS).filter(|&j| sources[j] > 0.0 || j == of).map(part).fold(S::from(0.0), |sum, part| sum + part) / servers;
        if interrupts { wait + services[of] * (self.stretch(of) - 1.0) * self.interrupted(share) } else { wait }
    }

    /// `σ` of those of a kind.
    fn stretch(&self, j: usize) -> S {
        let load = sum(&self.found[j].busy[..self.of]) / self.order.servers;
        let load = if load > MAX_URGENT_LOAD { S::from(MAX_URGENT_LOAD) } else { load };
        (-load + 1.0).recip()
    }

    /// `b`.
    fn regained(&self, j: usize) -> S {
        let there = self.all.waiting[j] + self.all.busy[j];
        // Of a stream, none.
        let share = there / self.kinds[j].sources;
        let relaxes = there * self.kinds[j].service / self.all.busy[j] * (-share + 1.0);
        let Kind { away, again, .. } = self.kinds[self.of];
        away / (away + relaxes) * (-again + 1.0)
    }

    /// `f`.
    fn interrupted(&self, share: S) -> S {
        let one = S::from(1.0);
        let servers = self.order.servers;
        if servers <= 1.0 || self.of == 0 {
            return one;
        }
        let busy = &self.found[self.of].busy;
        let (urgent, own) = (sum(&busy[..self.of]), busy[self.of]);
        let urgent_sources: f64 = self.kinds[..self.of].iter().map(|kind| kind.sources).sum();
        let chance = |number: f64, load: S| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "servers of a chain that is solved")]
            all_busy(servers as u32, Sources { number, coming: &[] }, load, &[], &mut None)
        };
        let without = chance(urgent_sources, urgent);
        let found = if own > LEAST_OWN_LOAD {
            ((urgent + own) * share - without) / own
        } else {
            (chance(urgent_sources + self.kinds[self.of].sources - 1.0, urgent + LEAST_OWN_LOAD) - without) / LEAST_OWN_LOAD
        };
        if found > 1.0 {
            one
        } else if found > 0.0 {
            found
        } else {
            S::from(0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::chain::tests::kind, *};
    use crate::model::Tangent;

    const HEAD_OF_LINE: Order = Order { servers: 1.0, interrupts: false };

    /// One of two kinds, of which the first goes first.
    fn told<S: Scalar>([first, second]: [Kind<S>; 2], of: usize) -> Told<S> {
        let none = [S::from(0.0); KINDS];
        Told { kinds: [first, second, Kind { sources: 0.0, ..first }], there: There { waiting: none, busy: none }, of }
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

    /// Where the network is the chain there is nothing to correct; where it has half as many waiting, waits are twice as long with less than twice `ψ`, since
    /// who waits waits for others who do.
    #[test]
    fn corrections_lead_to_the_chain() {
        let kinds = [kind(4.0, 3.0, 0.5), kind(4.0, 2.0, 0.4), kind(0.0, 1.0, 1.0)];
        for order in [HEAD_OF_LINE, Order { servers: 2.0, interrupts: true }] {
            let there = urgent::there(kinds, order.servers, order.interrupts).unwrap();
            let correction = |part: f64| {
                let there = There { waiting: there.waiting.map(|n| n * part), ..there };
                Told { kinds, there, of: 1 }.correction(order, &mut Known::nothing()).unwrap()
            };
            assert!((correction(1.0) - 1.0).abs() < 1e-12);
            assert!((1.1..1.95).contains(&correction(0.5)), "{}", correction(0.5));
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
