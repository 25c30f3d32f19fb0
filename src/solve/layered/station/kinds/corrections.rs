//! Corrections of `ψ` for what a network knows of a customer less.
//!
//! `ψ` is by how much waits are longer than equations of mean values say of those who are found where the own source is not there
//! ([`super::by_urgency`]). What the network finds of these is the Linearizer's, which is some per cent off where few urgent sources
//! are all but always there. Of who is there by the chain, `L` and `L⁻`, and in the network, `L°`, each source finds `L⁻ L°/L` but for
//! that error; so where it waits for `W`, the next network has
//!
//! ```text
//! ψ ← ψ_0 ψ W°(L⁻ L°/L) / W        ψ_0 of the chain, W° with the laws of services in the network
//! ```
//!
//! until that changes nothing; where a processor is all that customers share, `ψ` goes on until that is as busy as they keep it
//! ([`super::kept_busy`]). Of exponential services waits are then those of the chain. Nothing is corrected where the sources do not
//! come whatever the others do (threads of one task wait for those of another), or where services depend on who else is served (threads
//! that hold each other up).

use std::collections::VecDeque;

use super::{
    super::super::{flow::Flow, net::Net},
    by_source::Classes,
    by_urgency::{ByMeans, Chains, Order, Told, by_level},
    kept_busy::far_from_busy,
    ratio::{Known, RATIOS, within},
    sources::{There, plain},
    urgent::{self, KINDS},
    visitors::{Pool, Visitors},
};
use crate::model::Scalar;

/// Most products of an elimination, but for levels that have to be taken in.
const MOST_WORK: f64 = 2_000_000.0;
/// Logarithms of corrections that are left.
const LEFT: f64 = 1e-7;
/// The largest that are made, either way.
const MOST_CORRECTED: f64 = 0.7;
/// Where more is left, each goes on by so much of what it is to go, at least and at most: what is remembered from further away misleads.
const ROUGH: f64 = 0.03;
const LENGTHS: [f64; 2] = [0.3, 2.0];
/// Steps that are remembered.
const DEPTH: usize = 4;
/// Growth of what is left over the least at which they are forgotten.
const GROWTH_LIMIT: f64 = 4.0;
/// Squares of steps of which others leave less than this say nothing more.
const DEPENDENT: f64 = 1e-6;

/// Corrections of `ψ`, one after the other.
#[derive(Debug)]
pub(in super::super::super) struct Corrections<S> {
    /// Logarithms of `ψ` by arc, and how far they were to go.
    last: Option<(Vec<S>, Vec<S>)>,
    /// Their last differences, newest first.
    differences: VecDeque<(Vec<S>, Vec<S>)>,
    least: f64,
}

/// What is left to correct.
#[derive(Debug)]
pub(in super::super::super) struct Next<S> {
    /// `ψ` by arc to try.
    pub by_arc: Vec<S>,
    /// How far the next are at most, as a logarithm, of how many arcs that is known.
    furthest: f64,
    n_told: usize,
}

impl<S> Next<S> {
    /// Whether no more has to be corrected.
    pub fn is_last(&self) -> bool {
        self.furthest <= LEFT
    }

    /// Whether less is left than of others, of no fewer arcs.
    pub fn is_nearer_than(&self, other: &Self) -> bool {
        self.n_told >= other.n_told && self.furthest < other.furthest
    }
}

impl<S: Scalar> Corrections<S> {
    pub fn none() -> Self {
        Self { last: None, differences: VecDeque::new(), least: f64::INFINITY }
    }

    /// What follows of a network that was solved with `ψ` of `by_arc`, of such flow and waits and so many busy threads of each task.
    pub fn next(&mut self, net: &Net<S>, solved: (&Flow<S>, &[S]), classes: Classes<'_, S>, caps: &[f64], by_arc: &[S]) -> Next<S> {
        let (mut far, mut furthest, mut n_told) = (Vec::new(), 0.0, 0);
        for station in 0..net.stations.len() {
            let told = by_level(net, solved, caps, station).filter(|(_, visitors)| visitors.are_apart(net));
            let Some((order, visitors)) = told.filter(|_| !hold_each_other_up(net, station)) else { continue };
            let is_task = station >= net.n_processors;
            let by_place = by_place(&visitors, &visitors.sources(net, caps), (order, is_task));
            far.resize(net.arcs.len(), S::from(0.0));
            for (&arc, &place) in net.stations[station].arcs.iter().zip(&visitors.place_of) {
                let Some(by) = by_place[place] else { continue };
                n_told += 1;
                far[arc] = by;
                furthest = f64::max(furthest, by.value().abs());
            }
        }
        for station in 0..net.stations.len() {
            let Some(by) = far_from_busy(net, solved, classes, caps, station) else { continue };
            far.resize(net.arcs.len(), S::from(0.0));
            for &arc in &net.stations[station].arcs {
                n_told += 1;
                far[arc] = by;
            }
            furthest = f64::max(furthest, by.value().abs());
        }
        let mut now = by_arc.to_vec();
        if furthest > LEFT {
            now.resize(net.arcs.len(), S::from(1.0));
            let at: Vec<S> = now.iter().map(|ratio| ratio.ln()).collect();
            let step = self.step(at, far, furthest);
            let bounded = |step: S| within(step, [-MOST_CORRECTED, MOST_CORRECTED]);
            now.iter_mut().zip(step).for_each(|(now, step)| *now = within(*now * bounded(step).exp(), RATIOS));
        }
        Next { by_arc: now, furthest, n_told }
    }

    /// The step from where so `far` is to go: `f - Σ γ (Δx + Δf)`, with the `γ` for which the least is left of `f - Σ γ Δf` (D. G. Anderson, 1965). Its derivatives are those
    /// of the whole, so that they come as near as the step does.
    fn step(&mut self, at: Vec<S>, far: Vec<S>, furthest: f64) -> Vec<S> {
        if furthest > GROWTH_LIMIT * self.least {
            self.last = None;
            self.differences.clear();
        }
        self.least = self.least.min(furthest);
        let minus = |a: &[S], b: &[S]| a.iter().zip(b).map(|(&a, &b)| a - b).collect();
        if let Some((last_at, last_far)) = &self.last {
            self.differences.push_front((minus(&at, last_at), minus(&far, last_far)));
            self.differences.truncate(DEPTH);
        }
        let product = |a: &[S], b: &[S]| a.iter().zip(b).fold(S::from(0.0), |sum, (&a, &b)| sum + a * b);
        let normal = self.differences.iter().map(|(_, a)| self.differences.iter().map(|(_, b)| product(a, b)).collect()).collect();
        let right = self.differences.iter().map(|(_, a)| product(a, &far)).collect();
        let mut step = far.clone();
        for ((of_at, of_far), part) in self.differences.iter().zip(solve(normal, right)) {
            step.iter_mut().zip(of_at.iter().zip(of_far)).for_each(|(step, (&x, &f))| *step -= part * (x + f));
        }
        if furthest > ROUGH {
            step.iter_mut().zip(&far).filter(|(_, far)| **far != 0.0).for_each(|(step, &far)| *step = within(*step / far, LENGTHS) * far);
        }
        self.last = Some((at, far));
        step
    }
}

/// Solves normal equations by elimination, without unknowns that those before them leave nothing to.
fn solve<S: Scalar>(mut normal: Vec<Vec<S>>, mut right: Vec<S>) -> Vec<S> {
    let n = right.len();
    let least: Vec<f64> = (0..n).map(|i| normal[i][i].value() * DEPENDENT).collect();
    let is_free: Vec<bool> = (0..n)
        .map(|i| {
            let pivot = normal[i][i];
            let is_free = pivot > least[i];
            for below in i + 1..n {
                let part = if is_free { normal[below][i] / pivot } else { S::from(0.0) };
                for column in i..n {
                    let above = normal[i][column];
                    normal[below][column] -= part * above;
                }
                let above = right[i];
                right[below] -= part * above;
            }
            is_free
        })
        .collect();
    for i in (0..n).rev() {
        let known = (i + 1..n).fold(S::from(0.0), |sum, j| sum + normal[i][j] * right[j]);
        right[i] = if is_free[i] { (right[i] - known) / normal[i][i] } else { S::from(0.0) };
    }
    right
}

/// How far `ψ` of each level is from what it is to be, in logarithms; none where nothing is to be corrected.
fn by_place<S: Scalar>(visitors: &Visitors<S>, sources: &[f64], (order, is_task): (Order, bool)) -> Vec<Option<S>> {
    let mut known = Known::nothing();
    let mut far = |(pool, &level): (&Pool<S>, &f64)| {
        let told = Told::new(visitors, sources, level, order)?;
        Some(told.correction((order, is_task), &mut known)?.ln() * pool.counts())
    };
    visitors.pools.iter().zip(&visitors.levels).map(&mut far).collect()
}

impl<S: Scalar> Told<S> {
    /// By what `ψ` has to be multiplied; none where no chain of all sources tells it.
    fn correction(&self, (order, is_task): (Order, bool), known: &mut Chains<S>) -> Option<S> {
        if urgent::work(&plain(&self.kinds), order.servers, order.interrupts) > MOST_WORK {
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
        let rests = if is_task { self.weighed_rests() } else { self.rests };
        let network = ByMeans { all: self.there, found: chain.found.map(as_there), rests, ..chain };
        let [now, then] = [all, &self.there].map(|it| it.waiting[self.of] / it.busy[self.of]);
        let ratio = now / then * (network.wait() / chain.wait());
        (ratio > 0.0 && ratio.value().is_finite()).then_some(ratio)
    }

    /// `ρ` as threads find it that wait for others ([`super::super::scarce`]).
    fn weighed_rests(&self) -> [S; KINDS] {
        let sources: f64 = self.kinds.iter().map(|kind| kind.sources).sum();
        let there = self.there.waiting.iter().chain(&self.there.busy).fold(S::from(0.0), |sum, &n| sum + n);
        let away = -there / sources + 1.0;
        let away = if away > 0.0 { away } else { S::from(0.0) };
        self.rests.map(|rest| (rest - 1.0) * away + 1.0)
    }
}

/// Whether a station is a pool of threads that are more than the servers of some station that they come to.
fn hold_each_other_up<S>(net: &Net<S>, station: usize) -> bool {
    let Some(task) = net.tasks.iter().position(|task| task.station == Some(station)) else { return false };
    let is_own = |arc: &usize| net.arcs[*arc].source.held().is_some_and(|node| net.nodes[node].task == task);
    net.stations.iter().any(|it| it.servers < net.stations[station].servers && it.arcs.iter().any(is_own))
}

#[cfg(test)]
mod tests {
    use super::{super::chain::tests::kind, *};

    #[test]
    fn steps_end_where_nothing_is_left() {
        let (mut steps, mut at) = (Corrections::none(), vec![0.0; 3]);
        let far =
            |x: &[f64]| vec![0.4 - 1.3 * x[0] + 0.5 * x[1] + 0.1 * x[0] * x[0], 0.2 - 0.2 * x[0] - 0.4 * x[1], 0.1 * x[0] - 0.7 * x[2]];
        for _ in 0..9 {
            let f = far(&at);
            let furthest = f.iter().fold(0.0, |most, f| f64::max(most, f.abs()));
            let step = steps.step(at.clone(), f, furthest);
            at.iter_mut().zip(step).for_each(|(x, step)| *x += step);
        }
        assert!(far(&at).iter().all(|f| f.abs() < 1e-6), "{:?}", far(&at));
        // The second says what the first says.
        assert_eq!(solve(vec![vec![4.0, 2.0], vec![2.0, 1.0]], vec![2.0, 1.0]), [0.5, 0.0]);
    }

    /// Where the network is the chain there is nothing to correct; where it has half as many waiting, waits are twice as long with less than twice `ψ`, since
    /// who waits waits for others who do.
    #[test]
    fn corrections_lead_to_the_chain() {
        let kinds = [kind(4.0, 3.0, 0.5), kind(4.0, 2.0, 0.4), kind(0.0, 1.0, 1.0)];
        for order in [Order { servers: 1.0, interrupts: false }, Order { servers: 2.0, interrupts: true }] {
            let there = urgent::there(kinds, order.servers, order.interrupts).unwrap();
            let correction = |part: f64| {
                let there = There { waiting: there.waiting.map(|n| n * part), ..there };
                Told { kinds, there, rests: [1.0; KINDS], of: 1 }.correction((order, false), &mut Known::nothing()).unwrap()
            };
            assert!((correction(1.0) - 1.0).abs() < 1e-12);
            assert!((1.1..1.95).contains(&correction(0.5)), "{}", correction(0.5));
        }
    }
}
