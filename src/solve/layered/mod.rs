//! The layered approximation: one global fixed point over the waits of all calls.
//!
//! Input: a model with its parameters bound. Output: [`Results`], with derivatives when the scalar carries them.
//! The unknown is the mean wait `W_a` of every *arc* `a`: the requests that one node (a phase of an entry, or a strand of its
//! activity graph) sends to one entry, or its visits to its processor. A sweep computes
//!
//! 1. elapsed times and flows from the waits ([`flow`]; forks and joins: [`graph`], [`completion`]),
//! 2. which jobs can meet ([`exclusion`]),
//! 3. the wait of every arc at its station from what it finds there ([`station`], [`residual`]), and where these lead ([`onward`]),
//!
//! and is repeated until no wait changes ([`fixed_point`]); around it stands a Linearizer over the customers ([`linearizer`]).
//! There are no submodels, and so no choice of layering and no surrogate delays to keep consistent.
//!
//! Derivatives: a sweep over dual numbers is, at given values, a linear map of their derivatives. Every stage is solved in plain numbers until
//! the values are near, and then together with the derivatives ([`together`]); a stage that does not settle so is solved in plain numbers,
//! and the derivatives at that solution are found by minimal residuals ([`derivatives`]), as are those in more directions than one
//! pass takes, and all where a stage has to be kept within the capacities ([`stages`]). The values are not differentiated through their transient.
//!
//! Assumptions and what is left: second phases at processors are up to a few per cent optimistic. Not taken here: locks, joins of
//! branches from different requests, bounded queues; they are refused by name.
//!
//! Sources: Reiser & Lavenberg 1980 (arrival theorem); Chandy & Neuse 1982 (Linearizer); Rolia & Sevcik 1995, Woodside et al.
//! 1995, Franks 1999 (layers, second phases); Schweitzer 1979. Path exclusion, gap-limited rests and thread removal are
//! derived where they stand.

mod activities;
mod anderson;
mod at_once;
mod compile;
mod completion;
mod derivatives;
mod exclusion;
mod fixed_point;
mod flow;
mod graph;
mod invariants;
mod linearizer;
mod moving;
mod net;
mod onward;
mod open_load;
mod outcome;
mod residual;
mod rotation;
mod stages;
mod station;
mod structure;
mod together;
mod trust;
mod turns;
mod variants;
mod vectors;

use std::sync::Arc;

use self::{
    compile::compile,
    fixed_point::{Record, Stage},
    linearizer::{Changes, Presence},
    net::Net,
    rotation::Rotation,
    stages::{Alone, Asked, NotTogether, Stages, Together, caps},
    station::{Classes, Corrections, Manner, Unlike},
    structure::Structure,
};
use super::{
    SolveError, SolveOptions,
    copies::{self, Copies},
    results::Results,
};
use crate::model::{Bindings, Model, Scalar};

/// Rounds of the Linearizer: one is Schweitzer's estimate, a third changes the mean error by less than 0.1 per cent.
const ROUNDS: usize = 2;
/// Most times that waits by urgency are corrected.
const CORRECTIONS: usize = 12;
/// Of these, most one after the other that leave no less to correct.
const FAILED_CORRECTIONS: usize = 4;
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

impl Trace {
    /// The stage of this number, if it is of this structure and was solved.
    fn stage(&self, number: usize, structure: &Structure) -> Option<&Settled> {
        self.stages.get(number).filter(|stage| stage.unknowns.len() == structure.n_unknowns && !stage.has_failed)
    }
}

/// A stage that is solved: its unknowns, and how it was found.
#[derive(Clone, Debug)]
struct Settled {
    unknowns: Vec<f64>,
    manner: Manner,
    tells_strands: bool,
    /// Whether what is held is what no thread changes, and not what another stage found.
    is_anew: bool,
    /// Whether it was only tried, and did not settle.
    has_failed: bool,
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
    with_variants(model, values, |model, copies| solve_single(model, copies, values, options, start))
}

/// Solves `model` under `values`, which are `plain` with derivatives, in the same sweeps as these; none where that is not as easily
/// done as mostly.
pub(super) fn solve_together<S: Scalar>(
    model: &Model,
    values: &Bindings<S>,
    plain: &Bindings,
    options: &SolveOptions,
) -> Result<Option<Solved<S>>, SolveError> {
    let solved = with_variants(model, values, |model, copies| {
        let mut net = compile(model, values)?;
        net.rotation = copies.and_then(|copies| Rotation::new(copies, &net));
        let plain = compile(model, plain)?;
        let mut stages = Together::new(&net, &plain, options);
        let last = linearized(&net, &mut stages, options.tolerance)?;
        let (record, trace) = stages.finish();
        Ok(solved(&net, &last, options.tolerance, &record, trace)?)
    });
    match solved {
        Ok(solved) => Ok(Some(solved)),
        Err(NotTogether::Hard) => Ok(None),
        Err(NotTogether::Refused(error)) => Err(error),
    }
}

/// Solves `model` as [`with_copies`] does, with entries for each class and each caller where these are few ([`variants`]).
fn with_variants<S: Scalar, E: From<SolveError>>(
    model: &Model,
    values: &Bindings<S>,
    solve: impl FnOnce(&Model, Option<&Copies>) -> Result<Solved<S>, E>,
) -> Result<Solved<S>, E> {
    let Some(variants) = variants::tell_apart(model, values) else { return with_copies(model, values, solve) };
    let Solved { results, trace } = with_copies(&variants.model, values, solve)?;
    Ok(Solved { results: variants.fold(results), trace })
}

/// Solves `model` by a way for models without replication, with all its copies where it has some.
fn with_copies<S: Scalar, E: From<SolveError>>(
    model: &Model,
    values: &Bindings<S>,
    solve: impl FnOnce(&Model, Option<&Copies>) -> Result<Solved<S>, E>,
) -> Result<Solved<S>, E> {
    if !copies::is_replicated(model) {
        return solve(model, None);
    }
    let copies = copies::lay_out(model, values, ("layered", MOST_COPIES))?;
    let references = copies.single.tasks.iter().zip(&copies.tasks).filter(|(task, _)| task.scheduling.is_reference());
    let stages = if copies.rotation().is_some() { 1.0 } else { references.map(|(_, &n)| f64::from(n)).sum::<f64>() };
    if copies.meetings() * stages > MOST_MEETINGS {
        let element = "too many streams of requests meet".into();
        return Err(SolveError::Unsupported { solver: "layered", construct: "so many copies", element }.into());
    }
    let Solved { results, trace } = solve(&copies.all, Some(&copies))?;
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
    let mut stages = Alone::new(&net, options, structure, start);
    let Ok(last) = linearized(&net, &mut stages, options.tolerance);
    let (record, trace) = stages.finish();
    solved(&net, &last, options.tolerance, &record, trace)
}

/// What a solution to a relative `tolerance` says, from its last stage.
fn solved<S: Scalar>(net: &Net<S>, last: &Stage<S>, tolerance: f64, record: &Record, trace: Trace) -> Result<Solved<S>, SolveError> {
    let remarks = open_load::check(net, last)?;
    outcome::check_cycles(net, &last.flow)?;
    let mut results = outcome::results(net, last, record);
    results.diagnostics.extend(remarks);
    if trace.stages.iter().any(|stage| stage.is_anew) {
        results
            .diagnostics
            .push("near saturation: what one thread less changes at a station was left out, as no solution with it was found".into());
    }
    invariants::check(net, last, tolerance, &mut results);
    Ok(Solved { results, trace })
}

/// The Linearizer around the stages of a model.
fn linearized<S: Scalar, W: Stages<S>>(net: &Net<S>, stages: &mut W, tolerance: f64) -> Result<Stage<S>, W::Failure> {
    let full: Vec<f64> = net.classes.iter().map(|&t| net.tasks[t].threads).collect();
    let mut changes = Changes::none(net.arcs.len(), net.classes.len());
    let rough = tolerance * INTERMEDIATE_SLACK;
    let first = if net.classes.is_empty() { tolerance } else { rough };
    let (customers, manner) = (full.as_slice(), Manner::FREE);
    let mut at_full = stages.stage(&Asked { customers, changes: &changes, like: None, manner, tolerance: first })?;
    for round in 1..ROUNDS {
        let before = unlike_at(net, stages, &at_full, (&full, &full), &Unlike::none());
        if net.classes.is_empty() && before.is_none() {
            break;
        }
        let mut unlike = before.clone();
        if !before.is_none() {
            changes.take(&before, before.by_arc.clone());
            at_full = stages.stage(&Asked { customers, changes: &changes, like: Some(&at_full), manner, tolerance: rough })?;
            unlike = unlike_at(net, stages, &at_full, (&full, &full), &Unlike::none());
        }
        let mut next = changes.clone();
        next.take(&unlike, unlike.led_on(&before));
        let present = presence(net, &at_full);
        let mut is_set = vec![false; net.classes.len()];
        for c in 0..net.classes.len() {
            if is_set[c] {
                continue;
            }
            let mut less = full.clone();
            less[c] -= 1.0;
            if !unlike.is_none() {
                // As those of all customers with which this stage is compared.
                let of_less = unlike_at(net, stages, &at_full, (&full, &less), &unlike);
                changes.take(&of_less, of_less.as_before(&unlike, &before));
            }
            let stage = stages.stage(&Asked {
                customers: &less,
                changes: &changes,
                like: Some(&at_full),
                manner: Manner::WITHOUT_ONE,
                tolerance: rough,
            })?;
            let (mut class, mut without) = (c, presence(net, &stage));
            while !std::mem::replace(&mut is_set[class], true) {
                next.set(net, &at_full.class_shares, class, full[class], &present, &without);
                let Some(rotation) = &net.rotation else { break };
                (class, without) = (rotation.classes[class], rotation.turn(&without));
            }
        }
        changes = next;
        let tolerance = if round + 1 == ROUNDS { tolerance } else { rough };
        at_full = stages.stage(&Asked { customers, changes: &changes, like: Some(&at_full), manner, tolerance })?;
    }
    at_full = corrected(net, stages, (&full, tolerance), &mut changes, at_full)?;
    if is_fuller(net, &at_full, 1.0 + CAPACITY_TOLERANCE) {
        let manner = Manner::HELD;
        at_full = stages.stage(&Asked { customers, changes: &changes, like: Some(&at_full), manner, tolerance })?;
    }
    Ok(at_full)
}

/// The last stage with what is corrected of waits by urgency ([`Corrections`]), the best of those that settle.
fn corrected<S: Scalar, W: Stages<S>>(
    net: &Net<S>,
    stages: &mut W,
    (customers, tolerance): (&[f64], f64),
    changes: &mut Changes<S>,
    last: Stage<S>,
) -> Result<Stage<S>, W::Failure> {
    let (mut corrections, mut failed) = (Corrections::none(), 0);
    let layouts = Arc::clone(stages.structure());
    let next = |corrections: &mut Corrections<S>, stage: &Stage<S>, unlike: &[S]| {
        let classes = Classes { shares: &stage.class_shares, layouts: &layouts.layouts };
        corrections.next(net, (&stage.flow, &stage.unknowns), classes, &caps(net, customers), unlike)
    };
    let mut best = (next(&mut corrections, &last, &changes.unlike), last);
    if best.0.is_last() {
        return Ok(best.1);
    }
    let mut asked = changes.clone();
    asked.unlike.clone_from(&best.0.by_arc);
    for _ in 0..CORRECTIONS {
        let like = Some(&best.1);
        let tried = stages.tried(&Asked { customers, changes: &asked, like, manner: Manner::FREE, tolerance })?;
        let Some(stage) = tried else { break };
        let next = next(&mut corrections, &stage, &asked.unlike);
        let is_nearer = next.is_nearer_than(&best.0);
        failed = if is_nearer { 0 } else { failed + 1 };
        let is_over = next.is_last() || failed > FAILED_CORRECTIONS;
        let by_arc = next.by_arc.clone();
        if is_nearer {
            changes.clone_from(&asked);
            best = (next, stage);
        }
        if is_over {
            break;
        }
        asked.unlike = by_arc;
    }
    Ok(best.1)
}

/// How much longer requests wait since others have unlike services, from a stage of `full` customers, for `less` of them; `same` was found of it.
fn unlike_at<S: Scalar, W: Stages<S>>(
    net: &Net<S>,
    stages: &W,
    stage: &Stage<S>,
    (full, less): (&[f64], &[f64]),
    same: &Unlike<S>,
) -> Unlike<S> {
    let classes = Classes { shares: &stage.class_shares, layouts: &stages.structure().layouts };
    Unlike::new(net, (&stage.flow, &stage.unknowns), classes, (&caps(net, full), &caps(net, less)), same)
}

/// Whether a station of a stage serves more than this share of what its servers can.
fn is_fuller<S: Scalar>(net: &Net<S>, stage: &Stage<S>, share: f64) -> bool {
    (0..net.stations.len()).any(|s| {
        let servers = net.stations[s].servers;
        servers.is_finite() && outcome::station_load(net, &stage.flow, s) > servers * share
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
