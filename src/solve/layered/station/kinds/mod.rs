//! Sources of two kinds before the same servers: short services and long ones.
//!
//! While long services last, those that have short ones come and wait behind them, and so are not away, as they would have to be to find them;
//! whoever had a long one finds them when it comes back, as they have not all gone yet. No product form knows of this: with services of one length and of
//! fifteen times that, waits are twice or half as long. Of a station of `m` servers in order of arrival, with `N_a` sources of services `s_a`, each
//! away for `y_a`, and `N_b` of `s_b` and `y_b`, all exponential, a chain tells them:
//!
//! ```text
//! states     how many of each kind are served and wait
//! come       (N_a - n_a)/y_a, (N_b - n_b)/y_b         n of the kind there, with those served
//! goes       1/s_k each; who is next is of kind a with chance w_a/(w_a + w_b), of those that wait
//! back       with chance r_k at once, behind those who wait
//! ```
//!
//! where who is next stands for the order of arrival, of which states would be too many: of four stations of one server waits are up to 3.5 % long where
//! services are short, and up to 5 % short where they are long. Of one server and few sources this is the chain ([`chain`]); of more, who waits is known in
//! the mean ([`moments`]). By it ([`ratio`]) the waits of a kind are `ψ` times as long as by equations of mean values.
//!
//! Who comes several times in an execution is back soon, while those that it met are still there. A short gap `g` between two visits of time `R` is none with
//! chance `R/(R + g)`, and one as all others otherwise: with the share `σ` of gaps that are short, `r = σ R/(R + g)`, and sources are away for `y` so that
//! `(1 - r) y` is the mean over all gaps. That is chosen, not derived.
//!
//! `ψ_a` multiplies all that arrivals of the kind wait for. It is 1 where services are alike, however long sources are away: that is a product form, and where
//! requests of the kind hardly wait, which is most servers of several, and saves their chains. Of more kinds, all but that which comes are one. What services
//! differ within pools, and vary beyond exponential times where threads do not hold each other up, is, at several servers, a `ψ` of its own, of all as one pool ([`mixed`]) over that of one service for each pool, by which the others are
//! multiplied; at one server it is [`super::scarce`]'s.
//!
//! A processor that one pool has for itself has such a `ψ`, too. Whoever was replied to may call again at once, and finds another thread: sources are back at once as
//! often as callers are, though the threads are not, whose gaps mean values have. At fewer cores than threads these find the chance that all are busy from how
//! many threads are ([`super::pool`]), and so does what `ψ` stands beside ([`Threads`]).
//!
//! Where some requests are more urgent than others, a chain of up to three kinds, each of which goes before the next, tells `ψ` of each level ([`by_urgency`], [`urgent`]).
//!
//! Before requests from outside alone, as many as will, the chain has no last level, and waits themselves are told ([`open`]; [`held_up`], where threads hold each other up).
//!
//! `ψ` is a number of the Linearizer's: it follows from how long sources are away in a network that is solved, which it changes little. It is `ψ_0` of a network
//! with 1 for it, `ψ_1` of one with `ψ_0`, and in the last one
//!
//! ```text
//! ψ = ψ_1 + (ψ_1 - ψ_0)²/((ψ_0 - 1) - (ψ_1 - ψ_0))
//! ```
//!
//! as if each difference were the same part of the one before. Networks of a customer less, which are compared with the one with `ψ_0`, have theirs times `ψ_0/ψ_1`.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `N`, `y`, `s`, `r` | [`Kind`] | sources of a kind, how long each is away, its mean service, and the chance that it is back at once |

mod band;
mod by_number;
mod by_source;
mod by_urgency;
mod chain;
mod coming;
mod corrections;
mod eliminated;
mod few_threads;
mod held_up;
mod kept_busy;
mod mixed;
mod moments;
mod open;
mod ratio;
mod reached;
mod sources;
mod states;
mod stream;
mod urgent;
mod visitors;
mod waiting;

pub(in super::super) use self::{by_source::Classes, corrections::Corrections, open::Told};
use self::{
    by_source::{by_source, that_waited},
    by_urgency::{Chains, by_level},
    mixed::{Mixed, Varied},
    ratio::{Known, Means, RATIOS, longer_waits, of_mixed, within},
    sources::Kind,
    visitors::{Pool, Threads, Visitors, goes_on, threads_of, visitors},
};
pub(super) use self::{open::Wait, ratio::are_told};
use super::{
    super::{
        flow::Flow,
        net::{Discipline, Net},
    },
    At, Scratch,
    layout::Layout,
};
use crate::model::Scalar;

/// Shares of their responses that requests wait: up to the one, waits are as by equations of mean values, from the other their `ψ` counts in full.
const WAITS: [f64; 2] = [0.002, 0.006];
/// Part of a difference that the next one is taken to be at most.
const MOST_LEFT: f64 = 0.5;

/// A pool and all others as one.
pub(super) fn apart<S: Scalar>(pools: &[Pool<S>], mine: usize) -> [Kind<S>; 2] {
    let others = pools.iter().enumerate().filter(|&(pool, _)| pool != mine).fold(Pool::new(0.0), |all, (_, pool)| all.with(pool));
    [pools[mine].kind(), others.kind()]
}

impl<S: Scalar> At<'_, S> {
    /// What comes of each pool; none where there is one, where two sources are all ([`super::super::residual`]), where nobody waits, or where they are not
    /// all there are.
    pub(super) fn kinds(&self) -> Option<Vec<Pool<S>>> {
        let (Layout { pools, pool_of, .. }, populations) = (self.layout, self.sweep.populations);
        if pools.len() < 2 || self.sources <= self.servers.max(2.0) || self.discipline != Discipline::Fcfs {
            return None;
        }
        let mut found: Vec<Pool<S>> =
            pools.iter().map(|&task| Pool::new(populations.strands_at(self.sweep.net, task, self.station))).collect();
        if found.iter().map(|pool| pool.sources).sum::<f64>() > self.layout.begun(self.sweep) {
            return None;
        }
        for (v, &pool) in self.visits.iter().zip(pool_of) {
            found[pool?].add(v.rate, v.wait, v.first + v.late);
        }
        found.iter().all(|pool| pool.busy > 0.0).then_some(found)
    }

    /// Whether the sources of what comes are others than its pools.
    pub(super) fn has_other_sources(&self) -> bool {
        self.layout.sources_apart(self.sweep.net, self.sweep.populations.caps).is_some()
    }

    /// Mean service of the sources of what comes over each arc, where these are not its pools.
    pub(super) fn services_of_sources(&self) -> Option<Vec<S>> {
        let sources = self.layout.sources_apart(self.sweep.net, self.sweep.populations.caps)?;
        let visits: Vec<(S, S)> = self.visits.iter().map(|v| (v.rate, v.first + v.late)).collect();
        Some(self.layout.services_of_sources(sources, &visits, |r| self.class_shares(self.layout.rows[r].kin)))
    }

    /// Takes what a row waits for times its `ψ`.
    pub(super) fn lengthen(&self, r: usize, scratch: &mut Scratch<S>) {
        if !self.has_kinds {
            return;
        }
        let longer = self.sweep.populations.changes.unlike[self.layout.arcs[self.layout.rows[r].arc]];
        let n = self.visits.len();
        let terms = r * n..(r + 1) * n;
        scratch.alpha[terms.clone()].iter_mut().for_each(|part| *part *= longer);
        scratch.beta[terms].iter_mut().for_each(|part| *part *= longer);
    }

    /// The same, where others are more urgent or less.
    pub(super) fn lengthen_by_urgency(&self, r: usize, scratch: &mut Scratch<S>) {
        let arc = self.layout.arcs[self.layout.rows[r].arc];
        let Some(&longer) = self.sweep.populations.changes.unlike.get(arc) else { return };
        let n = self.visits.len();
        let terms = r * n..(r + 1) * n;
        scratch.alpha[terms.clone()].iter_mut().chain(&mut scratch.beta[terms]).for_each(|part| *part *= longer);
        scratch.own[r] *= longer;
    }
}

/// `ψ` at the stations of a network.
#[derive(Clone, Debug)]
pub(in super::super) struct Unlike<S> {
    /// By arc; empty where it is 1 for all.
    pub by_arc: Vec<S>,
    /// Of stations before requests from outside.
    pub told: Vec<Told<S>>,
    /// Of each station at which pools may have one.
    found: Vec<Found<S>>,
}

/// What is found at a station.
#[derive(Clone, Debug)]
struct Found<S> {
    station: usize,
    /// Sources of each pool, and its `ψ`.
    sources: Vec<f64>,
    ratios: Vec<S>,
    /// Chains of two kinds in order of arrival, and by urgency.
    known: Known<S>,
    chains: Chains<S>,
}

impl<S: Scalar> Unlike<S> {
    /// Where nothing is known.
    pub fn none() -> Self {
        Self { by_arc: Vec::new(), told: Vec::new(), found: Vec::new() }
    }

    /// From how long each pool is away from each station and is served there, of a network with such flow and waits and at most `caps` busy threads
    /// of each task, for at most `less` of them; `same` is what was found of the same network, and holds where its sources were as many.
    pub fn new(
        net: &Net<S>,
        (flow, waits): (&Flow<S>, &[S]),
        classes: Classes<'_, S>,
        (caps, less): (&[f64], &[f64]),
        same: &Self,
    ) -> Self {
        let mut it = Self::none();
        if same.told.is_empty() {
            it.told.extend((0..net.tasks.len()).flat_map(|task| open::waits(net, (flow, waits), task)));
        } else {
            it.told.clone_from(&same.told);
        }
        for (s, station) in net.stations.iter().enumerate() {
            let (one, is_told) = (station.servers == 1.0, it.told.iter().any(|told| told.station == s));
            let found = match station.discipline {
                _ if is_told || station.servers.is_infinite() => None,
                // Of several servers a source whose service goes on after the reply may be back before it is done.
                Discipline::Fcfs if one || !goes_on(net, flow, s) => {
                    let layout = &classes.layouts[s];
                    let sources = layout.sources_apart(net, caps).filter(|_| layout.pools.len() > 1 || net.classes.len() > 1);
                    let found = match sources {
                        Some(sources) => by_source(net, (flow, waits), classes, (caps, sources), s).filter(|it| it.pools.len() > 1),
                        None => of_threads(net, (flow, waits), classes, caps, s),
                    };
                    found.map(|it| (None, it))
                }
                Discipline::HeadOfLine | Discipline::Preemptive => {
                    by_level(net, (flow, waits), caps, s).map(|(order, it)| (Some(order), it))
                }
                _ => None,
            };
            let Some((order, mut visitors)) = found else { continue };
            if !classes.layouts[s].tells_variation {
                visitors.services.iter_mut().for_each(|(_, service)| *service = Varied::exponential(service.mean));
            }
            // Of one pool at one server the rest of its services is known ([`super::scarce`]).
            if one && visitors.pools.len() == 1 {
                continue;
            }
            let sources = visitors.sources(net, less);
            let found = match same.found.iter().find(|found| found.station == s) {
                Some(found) if found.sources == sources => found.clone(),
                found => {
                    let mut known = found.map_or_else(Known::nothing, |found| found.known.clone());
                    let mut chains = found.map_or_else(Known::nothing, |found| found.chains.clone());
                    let ratios = if let Some(order) = order {
                        by_urgency::ratios(&visitors, &sources, order, &mut chains)
                    } else {
                        let comes = threads_of(net, (flow, waits), less, s, &visitors.tasks);
                        ratios(&visitors, &sources, (station.servers, comes), &mut known)
                    };
                    Found { station: s, sources, ratios, known, chains }
                }
            };
            if found.ratios.iter().any(|ratio| *ratio != 1.0) {
                it.by_arc.resize(net.arcs.len(), S::from(1.0));
                station.arcs.iter().zip(visitors.by_arc(&found.ratios)).for_each(|(&arc, ratio)| it.by_arc[arc] = ratio);
            }
            it.found.push(found);
        }
        it
    }

    /// Whether all wait as mean values say.
    pub fn is_none(&self) -> bool {
        self.by_arc.is_empty() && self.told.is_empty()
    }

    fn at(&self, arc: usize) -> S {
        self.by_arc.get(arc).copied().unwrap_or(S::from(1.0))
    }

    /// Where `ψ` lead, by arc, that were 1 in a first network, in a second one what was found `before` of it, and for which of that these were found: the
    /// difference becomes less by the same part again and again.
    pub fn led_on(&self, before: &Self) -> Vec<S> {
        let arcs = 0..self.by_arc.len().max(before.by_arc.len());
        arcs.map(|arc| {
            let (now, before) = (self.at(arc), before.at(arc));
            let first = before - 1.0;
            let most = if first < 0.0 { first * -MOST_LEFT } else { first * MOST_LEFT };
            let second = now - before;
            let second = if second > most {
                most
            } else if second < -most {
                -most
            } else {
                second
            };
            if second == 0.0 { now } else { within(now + second * second / (first - second), RATIOS) }
        })
        .collect()
    }

    /// By arc, what would be found of fewer customers in the network in which `before` was found of all, where `now` is found of all in this one.
    pub fn as_before(&self, now: &Self, before: &Self) -> Vec<S> {
        let arcs = 0..self.by_arc.len().max(now.by_arc.len()).max(before.by_arc.len());
        arcs.map(|arc| within(self.at(arc) * before.at(arc) / now.at(arc), RATIOS)).collect()
    }
}

/// What comes of each pool, whose threads are back at once where requests wait for them.
fn of_threads<S: Scalar>(
    net: &Net<S>,
    solved: (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    caps: &[f64],
    station: usize,
) -> Option<Visitors<S>> {
    let mut it = visitors(net, solved, caps, station, false)?;
    if station < net.n_processors && it.pools.len() > 1 {
        for (tasks, pool) in it.tasks.iter().zip(&mut it.pools) {
            for &task in tasks {
                pool.again += that_waited(net, solved, classes, task);
            }
        }
    }
    Some(it)
}

/// A pool and all others as one, of so many sources each.
fn apart_of<S: Scalar>(pools: &[Pool<S>], sources: &[f64], mine: usize) -> [Kind<S>; 2] {
    let others = sources.iter().enumerate().filter(|&(pool, _)| pool != mine).map(|(_, sources)| sources).sum();
    let [a, b] = apart(pools, mine);
    let b = if pools.len() > 1 { b } else { a };
    [Kind { sources: sources[mine], ..a }, Kind { sources: others, ..b }]
}

/// `ψ` of each of the pools, of so many sources each, before so many servers.
fn ratios<S: Scalar>(
    Visitors { pools, services, .. }: &Visitors<S>,
    sources: &[f64],
    (servers, comes): (f64, Threads<S>),
    known: &mut Known<S>,
) -> Vec<S> {
    let one = S::from(1.0);
    // Of two sources the rests are known ([`super::super::residual`]).
    let tell = |kinds: &[Kind<S>; 2]| kinds.iter().all(|kind| kind.sources >= 1.0) && kinds[0].sources + kinds[1].sources > 2.0;
    let kinds = |mine: usize| Some(apart_of(pools, sources, mine)).filter(tell);
    let counts: Vec<S> = pools.iter().map(Pool::counts).collect();
    if counts.iter().all(|count| *count <= 0.0) {
        return vec![one; pools.len()];
    }
    let found: Vec<S> = match sources.len() {
        1 => vec![one],
        // All chains of the one are those of the other.
        2 => kinds(0).map_or([one; 2], |kinds| longer_waits(kinds, servers, known)).to_vec(),
        n => (0..n)
            .map(|mine| match kinds(mine).filter(|_| counts[mine] > 0.0) {
                Some(kinds) => longer_waits::<S, 1>(kinds, servers, known)[0],
                None => one,
            })
            .collect(),
    };
    let within = if servers > 1.0 { within_pools(pools, services, sources.iter().sum(), (servers, comes), known) } else { one };
    found.into_iter().zip(counts).map(|(ratio, counts)| (ratio * within - 1.0) * counts + 1.0).collect()
}

/// What services that differ within pools are more than such as differ between them: `ψ` of all as one pool, over that of one service for each pool.
fn within_pools<S: Scalar>(
    pools: &[Pool<S>],
    services: &[(S, Varied<S>)],
    sources: f64,
    (servers, comes): (f64, Threads<S>),
    known: &mut Known<S>,
) -> S {
    let mut all = pools.iter().fold(Pool::new(0.0), |all, pool| all.with(pool));
    let of_threads = all.again / all.rate;
    all.again += comes.at_once;
    let means = Means { by_number: comes.by_number, again: if comes.are_told { all.again / all.rate } else { of_threads } };
    let Kind { away, again, .. } = all.kind();
    let mut of = |services: &[(S, Varied<S>)]| {
        let mixed = Mixed::new((sources, away, again), services.iter().copied());
        mixed.map_or(S::from(1.0), |mixed| of_mixed(&mixed, (servers, means), known))
    };
    let between: Vec<(S, Varied<S>)> = pools.iter().map(|pool| (pool.rate, Varied::exponential(pool.busy / pool.rate))).collect();
    of(services) / of(&between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unlike(by_arc: Vec<f64>) -> Unlike<f64> {
        Unlike { by_arc, told: Vec::new(), found: Vec::new() }
    }

    #[test]
    fn differences_that_become_less_are_followed_to_their_end() {
        let (before, now) = (unlike(vec![1.2, 0.6, 1.0, 1.1, 1.1]), unlike(vec![1.26, 0.72, 1.0, 1.1, 2.1]));
        let led = now.led_on(&before);
        let nothing = unlike(vec![0.001]).led_on(&unlike(vec![0.1]));
        assert!(nothing[0] > 0.0, "{nothing:?}");
        for (found, end) in led.iter().zip([1.2 + 0.06 / 0.7, 0.6 + 0.12 / 1.3, 1.0, 1.1, 2.15]) {
            assert!((found - end).abs() < 1e-12, "{led:?}");
        }
        assert_eq!(unlike(Vec::new()).led_on(&unlike(vec![1.5])).len(), 1);
        let less = unlike(vec![1.3]).as_before(&now, &before);
        assert!((less[0] - 1.3 * 1.2 / 1.26).abs() < 1e-12 && (less[1] - 0.6 / 0.72).abs() < 1e-12, "{less:?}");
    }

    /// A short class of services behind a long one, on four servers.
    #[test]
    fn who_hardly_waits_waits_as_by_mean_values() {
        let pools = |waits: f64| {
            [(4.0, 0.2, 2.0), (6.0, 3.0, 0.3)].map(|(sources, service, rate)| {
                let mut pool = Pool::new(sources);
                pool.add(rate, waits * service, service);
                pool
            })
        };
        let found = |waits: f64| {
            let visitors = Visitors {
                tasks: vec![vec![0], vec![1]],
                pools: pools(waits).to_vec(),
                levels: vec![0.0; 2],
                of_stream: vec![false; 2],
                place_of: vec![0, 1],
                most: Vec::new(),
                shares: Vec::new(),
                services: vec![(2.0, Varied::exponential(0.2)), (0.3, Varied::exponential(3.0))],
            };
            ratios(&visitors, &[4.0, 6.0], (4.0, Threads { at_once: 0.0, are_told: false, by_number: false }), &mut Known::nothing())
        };
        assert_eq!(found(WAITS[0] / 2.0), [1.0, 1.0]);
        let [some, full] = [found(0.004), found(0.05)];
        assert!((0.2..0.8).contains(&((some[0] - 1.0) / (full[0] - 1.0))), "{some:?} {full:?}");
    }
}
