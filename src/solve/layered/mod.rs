//! The layered approximation: one global fixed point over the waits of all calls.
//!
//! Input: a model with its parameters bound. Output: [`Results`], with derivatives when the scalar carries them.
//! The unknown is the mean wait `W_a` of every *arc* `a`: the requests that one node (a phase of an entry, or a strand of its
//! activity graph) sends to one entry, or its visits to its processor. A sweep computes
//!
//! 1. elapsed times and flows from the waits ([`flow`]; forks and joins: [`graph`], [`completion`]),
//! 2. which jobs can meet ([`exclusion`]),
//! 3. the wait of every arc at its station from what it finds there ([`station`], [`residual`]),
//!
//! and is repeated until no wait changes ([`fixed_point`]); around it stands a Linearizer over the customers ([`linearizer`]).
//! There are no submodels, and so no choice of layering and no surrogate delays to keep consistent.
//!
//! Derivatives: every stage is first solved in plain numbers; the same sweep over dual numbers at that solution is then a linear map
//! of their derivatives, whose fixed point is found by minimal residuals ([`derivatives`]). The values are not differentiated
//! through their transient.
//!
//! Assumptions and what is left: second phases at processors are up to a few per cent optimistic. Not taken here: locks, joins of
//! branches from different requests, bounded queues; they are refused by name.
//!
//! Sources: Reiser & Lavenberg 1980 (arrival theorem); Chandy & Neuse 1982 (Linearizer); Rolia & Sevcik 1995, Woodside et al.
//! 1995, Franks 1999 (layers, second phases); Schweitzer 1979. Path exclusion, gap-limited rests and thread removal are
//! derived where they stand.

mod activities;
mod anderson;
mod compile;
mod completion;
mod derivatives;
mod exclusion;
mod fixed_point;
mod flow;
mod graph;
mod invariants;
mod linearizer;
mod net;
mod outcome;
mod residual;
mod rotation;
mod station;

use std::sync::Arc;

use self::{
    compile::compile,
    fixed_point::{From, Record, Stage, Structure, Sweeper},
    linearizer::{Changes, Populations, Presence},
    net::Net,
    rotation::Rotation,
    station::Capacity,
};
use super::{
    SolveError, SolveOptions,
    copies::{self, Copies},
    results::Results,
};
use crate::model::{Bindings, Model, Scalar};

/// Rounds of the Linearizer: one is Schweitzer's estimate, a third changes the mean error by less than 0.1 per cent.
const ROUNDS: usize = 2;
/// How much less exactly all stages but the last are solved.
const INTERMEDIATE_SLACK: f64 = 100.0;
/// Most processors and tasks of a replicated model, with all copies.
const MOST_COPIES: usize = 1_000;
/// Most pairs of streams that meet at the queues of all copies, over the stages of the Linearizer that are each solved.
const MOST_MEETINGS: f64 = 4e6;
/// Load over capacity that rounding explains.
const CAPACITY_TOLERANCE: f64 = 1e-9;

/// The model's structure, and the plain-number solution of every stage, from which the same stages over dual numbers start.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    structure: Option<Arc<Structure>>,
    stages: Vec<Settled>,
}

/// A stage that is solved: its unknowns, and whether they had to be kept within the capacities.
#[derive(Clone, Debug)]
struct Settled {
    unknowns: Vec<f64>,
    capacity: Capacity,
    tells_strands: bool,
    /// Whether what is held is what no thread changes, and not what another stage found.
    is_anew: bool,
}

/// The result with the trace that a run over dual numbers can start from.
pub(super) struct Solved<S> {
    pub results: Results<S>,
    pub trace: Trace,
}

/// Where the iteration of a solution starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start<'a> {
    /// From no waits.
    Cold,
    /// From another solution of the model; one of another structure is passed over.
    Near(&'a Trace),
    /// At the solution in plain numbers: only derivatives are left to iterate.
    Solved(&'a Trace),
}

impl<'a> Start<'a> {
    /// As the options say.
    pub fn near(options: &'a SolveOptions) -> Self {
        options.near.as_ref().map_or(Self::Cold, |near| Self::Near(near.trace()))
    }

    fn solved(self) -> Option<&'a Trace> {
        if let Self::Solved(trace) = self { Some(trace) } else { None }
    }
}

/// Solves `model` under `values`.
pub(super) fn solve<S: Scalar>(
    model: &Model,
    values: &Bindings<S>,
    options: &SolveOptions,
    start: Start<'_>,
) -> Result<Solved<S>, SolveError> {
    if !copies::is_replicated(model) {
        return solve_single(model, None, values, options, start);
    }
    let copies = copies::lay_out(model, values, ("layered", MOST_COPIES))?;
    let references = copies.single.tasks.iter().zip(&copies.tasks).filter(|(task, _)| task.scheduling.is_reference());
    let stages = if copies.rotation().is_some() { 1.0 } else { references.map(|(_, &n)| f64::from(n)).sum::<f64>() };
    if copies.meetings() * stages > MOST_MEETINGS {
        let element = "too many streams of requests meet".into();
        return Err(SolveError::Unsupported { solver: "layered", construct: "so many copies", element });
    }
    let Solved { results, trace } = solve_single(&copies.all, Some(&copies), values, options, start)?;
    Ok(Solved { results: copies.fold(results), trace })
}

/// Solves a model without replication, all of `copies` where it is one of copies.
fn solve_single<S: Scalar>(
    model: &Model,
    copies: Option<&Copies>,
    values: &Bindings<S>,
    options: &SolveOptions,
    start: Start<'_>,
) -> Result<Solved<S>, SolveError> {
    let mut net = compile(model, values)?;
    net.rotation = copies.and_then(|copies| Rotation::new(copies, &net));
    let structure = start.solved().and_then(|w| w.structure.clone()).unwrap_or_else(|| Arc::new(Structure::new(&net)));
    let trace = Trace { structure: Some(Arc::clone(&structure)), stages: Vec::new() };
    let sweeper = Sweeper::new(&net, options, structure);
    let mut solver = LayeredSolver { net: &net, sweeper, tolerance: options.tolerance, start, trace, needed: None, unsettled: None };
    let last = solver.run();
    outcome::check_open_load(&net, &last.flow)?;
    outcome::check_cycles(&net, &last.flow)?;
    let mut record = solver.sweeper.record;
    record.residual = solver.unsettled.unwrap_or(record.residual);
    let mut results = outcome::results(&net, &last, &record);
    if solver.trace.stages.iter().any(|stage| stage.is_anew) {
        results
            .diagnostics
            .push("near saturation: what one thread less changes at a station was left out, as no solution with it was found".into());
    }
    invariants::check(&net, &last, &mut results);
    Ok(Solved { results, trace: solver.trace })
}

struct LayeredSolver<'a, S> {
    net: &'a Net<S>,
    sweeper: Sweeper<'a, S>,
    tolerance: f64,
    start: Start<'a>,
    trace: Trace,
    /// How a stage had to be kept within the capacities to be solved, if one had to.
    needed: Option<Capacity>,
    /// What still changed of the stage that was furthest from its solution, if one was not solved.
    unsettled: Option<f64>,
}

impl<S: Scalar> LayeredSolver<'_, S> {
    fn run(&mut self) -> Stage<S> {
        let net = self.net;
        let full: Vec<f64> = net.classes.iter().map(|&t| net.tasks[t].threads).collect();
        let mut changes = Changes::none(net.arcs.len(), net.classes.len());
        let rough = self.tolerance * INTERMEDIATE_SLACK;
        let mut at_full = self.stage(&full, &changes, None, Capacity::Free, if net.classes.is_empty() { self.tolerance } else { rough });
        for round in 1..ROUNDS {
            if net.classes.is_empty() {
                break;
            }
            let mut next = changes.clone();
            let present = presence(net, &at_full);
            let mut is_set = vec![false; net.classes.len()];
            for c in 0..net.classes.len() {
                if is_set[c] {
                    continue;
                }
                let mut less = full.clone();
                less[c] -= 1.0;
                let stage = self.stage(&less, &changes, Some(&at_full), Capacity::Free, rough);
                let (mut class, mut without) = (c, presence(net, &stage));
                while !std::mem::replace(&mut is_set[class], true) {
                    next.set(net, &at_full.class_shares, class, full[class], &present, &without);
                    let Some(rotation) = &net.rotation else { break };
                    (class, without) = (rotation.classes[class], rotation.turn(&without));
                }
            }
            changes = next;
            let tolerance = if round + 1 == ROUNDS { self.tolerance } else { rough };
            at_full = self.stage(&full, &changes, Some(&at_full), Capacity::Free, tolerance);
        }
        if exceeds_capacity(net, &at_full) {
            at_full = self.stage(&full, &changes, Some(&at_full), Capacity::Held, self.tolerance);
        }
        at_full
    }

    /// The fixed point at `customers`, started from the warm trace, from `like` or from no waits.
    fn stage(&mut self, customers: &[f64], changes: &Changes<S>, like: Option<&Stage<S>>, capacity: Capacity, tolerance: f64) -> Stage<S> {
        let caps: Vec<f64> = self.net.tasks.iter().map(|t| t.class.map_or(t.cap, |c| customers[c])).collect();
        let populations = Populations { customers, changes, caps: &caps };
        let stage = self.trace.stages.len();
        let settled = self.start.solved().and_then(|w| w.stages.get(stage));
        let asked = self.needed.unwrap_or(capacity);
        // What is held comes from this solution and no other.
        let near = match self.start {
            Start::Near(near) if asked != Capacity::Held => {
                near.stages.get(stage).filter(|s| s.unknowns.len() == self.sweeper.structure.n_unknowns())
            }
            Start::Cold | Start::Near(_) | Start::Solved(_) => None,
        };
        let from = match (settled, near, like) {
            (Some(settled), _, like) => {
                From::Settled(&settled.unknowns, like.filter(|_| !settled.is_anew).map(|stage| stage.unknowns.as_slice()))
            }
            (None, Some(near), _) => From::Near(&near.unknowns),
            (None, None, Some(stage)) if self.needed == Some(Capacity::Held) => From::Without(&stage.unknowns),
            (None, None, Some(stage)) => From::Like(&stage.unknowns),
            (None, None, None) => From::Nothing,
        };
        let mut capacity = settled.map_or(asked, |s| s.capacity);
        let mut is_anew = settled.map_or(self.needed == Some(Capacity::Held), |s| s.is_anew);
        self.sweeper.tells_strands = settled.map_or(self.sweeper.tells_strands, |s| s.tells_strands);
        let mut solved = self.sweeper.solve(&populations, &from, capacity, tolerance);
        if !solved.converged && matches!(from, From::Near(_)) {
            let from = like.map_or(From::Nothing, |stage| From::Like(&stage.unknowns));
            solved = self.sweeper.solve(&populations, &from, capacity, tolerance);
        }
        if settled.is_none() {
            // Beyond capacity the approximations need not have a solution; within it they do. Later stages are compared with
            // this one, and so are solved alike.
            let ways: &[Capacity] = match capacity {
                Capacity::Free => &[Capacity::Kept, Capacity::Held],
                Capacity::Held if is_anew => &[],
                Capacity::Kept | Capacity::Held => &[Capacity::Held],
            };
            if !solved.converged && self.sweeper.tells_strands && capacity != Capacity::Held {
                self.sweeper.tells_strands = false;
                solved = self.sweeper.solve(&populations, &From::Nothing, capacity, tolerance);
            }
            for &way in ways {
                if !solved.converged {
                    capacity = way;
                    is_anew = way == Capacity::Held;
                    self.needed = Some(way);
                    solved = self.sweeper.solve(&populations, &From::Nothing, capacity, tolerance);
                }
            }
        }
        if !solved.converged {
            self.sweeper.record.converged = false;
            self.unsettled = Some(self.unsettled.unwrap_or(0.0).max(self.sweeper.record.residual));
        }
        self.trace.stages.push(Settled {
            unknowns: solved.stage.unknowns.iter().map(Scalar::value).collect(),
            capacity,
            tells_strands: self.sweeper.tells_strands,
            is_anew,
        });
        solved.stage
    }
}

/// Whether a station of a stage serves more than its servers can.
fn exceeds_capacity<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> bool {
    (0..net.stations.len()).any(|s| {
        let servers = net.stations[s].servers;
        servers.is_finite() && outcome::station_load(net, &stage.flow, s) > servers * (1.0 + CAPACITY_TOLERANCE)
    })
}

/// Mean requests waiting and in service at the arcs.
fn presence<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Presence<S> {
    let mut present = Presence { waiting: Vec::new(), first: Vec::new(), late: Vec::new(), held: Vec::new() };
    for (a, arc) in net.arcs.iter().enumerate() {
        let rate = stage.flow.arc_rate[a];
        present.waiting.push(rate * stage.unknowns[a]);
        let Some(entry) = arc.target else {
            let demand = arc.source.node().map_or(S::from(0.0), |n| net.nodes[n].demand / net.nodes[n].slices);
            present.first.push(rate * demand);
            present.late.push(S::from(0.0));
            present.held.push(S::from(1.0));
            continue;
        };
        let [first, second, third] = stage.flow.phases[entry];
        present.first.push(rate * first);
        present.late.push(rate * (second + third));
        present.held.push(first + second + third);
    }
    present
}
