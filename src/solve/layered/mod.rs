//! The layered approximation: one global fixed point over the waits of all calls.
//!
//! Input: a model with its parameters bound. Output: [`Results`], with derivatives when the scalar carries them.
//! The unknown is the mean wait `W_a` of every *arc* `a`: the requests that one node (a phase of an entry) sends to one
//! entry, or its visits to its processor. A sweep computes
//!
//! 1. elapsed times and flows from the waits ([`flow`]),
//! 2. which jobs can meet ([`exclusion`]),
//! 3. the wait of every arc at its station from what it finds there ([`station`], [`residual`]),
//!
//! and is repeated until no wait changes; around it stands a Linearizer over the customers ([`linearizer`]).
//! There are no submodels, and so no choice of layering and no surrogate delays to keep consistent.
//!
//! Derivatives: every stage is first solved in plain numbers; the same sweep over dual numbers, started from that solution,
//! then converges in its derivatives at the rate at which the values converged (the tangent of a fixed point is a fixed point).
//! The values are not differentiated through their transient.
//!
//! Assumptions and what is left: second phases at processors are up to a few per cent optimistic; pools of two to four threads at
//! middle load likewise. Not taken here: and-forks, priorities, replication, locks, fair-share scheduling; they are refused by name.
//!
//! Sources: Reiser & Lavenberg 1980 (arrival theorem); Chandy & Neuse 1982 (Linearizer); Rolia & Sevcik 1995, Woodside et al.
//! 1995, Franks 1999 (layers, second phases); Schweitzer 1979. Path exclusion, gap-limited rests and thread removal are
//! derived where they stand.

mod anderson;
mod compile;
mod exclusion;
mod flow;
mod linear;
mod linearizer;
mod outcome;
mod residual;
mod station;
mod visit;

use self::{
    anderson::Anderson,
    compile::{Net, compile},
    exclusion::{Exclusion, exclusion},
    flow::{Flow, Waits, first_phase, flow},
    linearizer::{Changes, Populations, Presence},
    station::{Capacity, Layout, StationState, Sweep, station_waits},
};
use super::{SolveError, SolveOptions, results::Results};
use crate::model::{Bindings, Model, Scalar};

/// Rounds of the Linearizer: one is Schweitzer's estimate, a third changes nothing that is measurable.
const ROUNDS: usize = 3;
/// Short plain steps before a fresh start is accelerated.
const CAUTIOUS_STEPS: usize = 6;
/// The same, from a point that is near already.
const CAUTIOUS_STEPS_WARM: usize = 1;
/// The same, after an extrapolation that led nowhere.
const CAUTIOUS_STEPS_AGAIN: usize = 40;
/// Sweeps after which acceleration is given up for plain steps, and these for shorter ones.
const PATIENCE: usize = 300;
/// How much shorter.
const STEP_REDUCTION: f64 = 0.25;
/// Load over capacity that rounding explains.
const CAPACITY_TOLERANCE: f64 = 1e-9;
/// How far an extrapolated unknown may be from its image, as a factor.
const TRUST_FACTOR: f64 = 2.0;
/// Waits above this fraction of the longest one decide whether an extrapolation was held back.
const CONSIDERABLE_WAIT: f64 = 1e-2;
/// Waits below this fraction of their cycle count as zero in the test for convergence.
const NEGLIGIBLE_WAIT: f64 = 1e-7;

/// The plain-number solution of every stage, from which the same stages over dual numbers start.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    stages: Vec<Settled>,
}

/// Where a stage's fixed point settled.
#[derive(Clone, Debug)]
struct Settled {
    wait: Vec<f64>,
    probability: Vec<f64>,
    stations: Vec<(Vec<f64>, Vec<f64>, f64)>,
}

/// The result with the trace that a run over dual numbers can start from.
pub(super) struct Solved<S> {
    pub results: Results<S>,
    pub trace: Trace,
}

/// Solves `model` under `values`. With a `warm` trace (of the same model under the same values) only derivatives are left to iterate.
pub(super) fn solve<S: Scalar>(
    model: &Model,
    values: &Bindings<S>,
    options: &SolveOptions,
    warm: Option<&Trace>,
) -> Result<Solved<S>, SolveError> {
    let net = compile(model, values)?;
    let mut solver = LayeredSolver::new(&net, options, warm);
    let last = solver.run();
    outcome::check_open_load(&net, &last.flow)?;
    let results = outcome::results(&net, &last, &solver.record);
    Ok(Solved { results, trace: solver.trace })
}

/// How the fixed points went.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub sweeps: usize,
    pub converged: bool,
    pub residual: f64,
}

struct LayeredSolver<'a, S> {
    net: &'a Net<S>,
    options: &'a SolveOptions,
    warm: Option<&'a Trace>,
    layouts: Vec<Layout>,
    trace: Trace,
    record: Record,
}

/// A solved stage.
pub(super) struct Stage<S> {
    waits: Waits<S>,
    flow: Flow<S>,
    exclusion: Exclusion<S>,
    stations: Vec<StationState<S>>,
}

impl<'a, S: Scalar> LayeredSolver<'a, S> {
    fn new(net: &'a Net<S>, options: &'a SolveOptions, warm: Option<&'a Trace>) -> Self {
        let layouts = (0..net.stations.len()).map(|s| Layout::new(net, s)).collect();
        let record = Record { sweeps: 0, converged: true, residual: 0.0 };
        Self { net, options, warm, layouts, trace: Trace::default(), record }
    }

    fn run(&mut self) -> Stage<S> {
        let net = self.net;
        let full: Vec<f64> = net.classes.iter().map(|&t| net.tasks[t].threads).collect();
        let mut changes = Changes::none(net.arcs.len(), net.classes.len());
        let mut at_full = self.stage(&full, &changes, None, Capacity::Free);
        let mut at_less: Vec<Option<Stage<S>>> = net.classes.iter().map(|_| None).collect();
        for _ in 1..ROUNDS {
            let mut next = changes.clone();
            let present = presence(net, &at_full);
            for c in 0..net.classes.len() {
                let mut less = full.clone();
                less[c] -= 1.0;
                let stage = self.stage(&less, &changes, Some(at_less[c].as_ref().unwrap_or(&at_full)), Capacity::Free);
                next.set(net, &at_full.exclusion, c, full[c], &present, &presence(net, &stage));
                at_less[c] = Some(stage);
            }
            changes = next;
            at_full = self.stage(&full, &changes, Some(&at_full), Capacity::Free);
        }
        if exceeds_capacity(net, &at_full) {
            at_full = self.stage(&full, &changes, Some(&at_full), Capacity::Kept);
        }
        at_full
    }

    /// The fixed point at `customers`, started from the warm trace, from `like` or from no waits.
    fn stage(&mut self, customers: &[f64], changes: &Changes<S>, like: Option<&Stage<S>>, capacity: Capacity) -> Stage<S> {
        let caps = caps(self.net, customers);
        let populations = Populations { customers, changes, caps: &caps };
        let settled = self.warm.and_then(|w| w.stages.get(self.trace.stages.len()));
        let mut point = Point::start(self.net, &self.layouts, settled, like);
        let mut acceleration = Anderson::new(if settled.is_some() || like.is_some() { CAUTIOUS_STEPS_WARM } else { CAUTIOUS_STEPS });
        let (mut converged, mut step) = (false, 1.0);
        for sweep in 0..self.options.max_iterations {
            if sweep > 0 && sweep % PATIENCE == 0 {
                step *= STEP_REDUCTION;
                acceleration = Anderson::plain(step);
            }
            let image = self.sweep(&point, &populations, capacity);
            let change = point.distance(&image);
            self.record.sweeps += 1;
            self.record.residual = change;
            if !change.is_finite() {
                point = Point::start(self.net, &self.layouts, None, None);
                acceleration = Anderson::new(CAUTIOUS_STEPS_AGAIN);
                continue;
            }
            if change < self.options.tolerance {
                converged = true;
                point = image;
                break;
            }
            let next = acceleration.next(&point.unknowns(), &image.unknowns(), change);
            if point.set(&next, &image) == Held::Back {
                acceleration.forget();
            }
        }
        self.record.converged &= converged;
        self.trace.stages.push(point.settled());
        let flow = flow(self.net, &point.waits, customers);
        let exclusion = exclusion(self.net, &flow);
        Stage { waits: point.waits, flow, exclusion, stations: point.stations }
    }

    fn sweep(&self, point: &Point<S>, populations: &Populations<'_, S>, capacity: Capacity) -> Point<S> {
        let flow = flow(self.net, &point.waits, populations.customers);
        let exclusion = exclusion(self.net, &flow);
        let sweep = Sweep { net: self.net, flow: &flow, exclusion: &exclusion, waits: &point.waits, populations };
        let mut next = Point { waits: Waits::none(self.net.arcs.len()), stations: Vec::with_capacity(self.layouts.len()) };
        for (s, layout) in self.layouts.iter().enumerate() {
            let new = station_waits(&sweep, s, layout, &point.stations[s], capacity);
            for (i, &a) in self.net.stations[s].arcs.iter().enumerate() {
                next.waits.wait[a] = new.wait[i];
                next.waits.probability[a] = new.probability[i];
            }
            next.stations.push(new.state);
        }
        next
    }
}

/// The unknowns of the fixed point.
struct Point<S> {
    waits: Waits<S>,
    stations: Vec<StationState<S>>,
}

impl<S: Scalar> Point<S> {
    fn start(net: &Net<S>, layouts: &[Layout], settled: Option<&Settled>, like: Option<&Stage<S>>) -> Self {
        let lift = |values: &[f64]| values.iter().map(|&v| S::from(v)).collect::<Vec<S>>();
        if let Some(s) = settled {
            let stations = s
                .stations
                .iter()
                .map(|(removal, boost, excess)| StationState { removal: lift(removal), boost: lift(boost), excess: S::from(*excess) })
                .collect();
            return Self { waits: Waits { wait: lift(&s.wait), probability: lift(&s.probability) }, stations };
        }
        if let Some(stage) = like {
            return Self { waits: stage.waits.clone(), stations: stage.stations.clone() };
        }
        Self { waits: Waits::none(net.arcs.len()), stations: layouts.iter().map(StationState::new).collect() }
    }

    fn settled(&self) -> Settled {
        let lower = |values: &[S]| values.iter().map(Scalar::value).collect::<Vec<f64>>();
        Settled {
            wait: lower(&self.waits.wait),
            probability: lower(&self.waits.probability),
            stations: self.stations.iter().map(|s| (lower(&s.removal), lower(&s.boost), s.excess.value())).collect(),
        }
    }

    /// Largest change of an unknown: relative for waits, absolute for ratios; derivatives relative to the steepest of their kind.
    fn distance(&self, next: &Self) -> f64 {
        let longest = next.waits.wait.iter().fold(0.0_f64, |m, w| m.max(w.value()));
        let of_waits = change(&self.waits.wait, &next.waits.wait, |w| w.max(NEGLIGIBLE_WAIT * longest).max(f64::MIN_POSITIVE));
        let mut most = of_waits.max(change(&self.waits.probability, &next.waits.probability, |_| 1.0));
        for (old, new) in self.stations.iter().zip(&next.stations) {
            let excess = change(&[old.excess], &[new.excess], |e| e.max(NEGLIGIBLE_WAIT * longest).max(f64::MIN_POSITIVE));
            most = most.max(excess);
            most = most.max(change(&old.removal, &new.removal, |_| 1.0)).max(change(&old.boost, &new.boost, |_| 1.0));
        }
        most
    }

    /// All unknowns in one row.
    fn unknowns(&self) -> Vec<S> {
        let stations = self.stations.iter().flat_map(|s| s.removal.iter().chain(&s.boost).chain([&s.excess]));
        self.waits.wait.iter().chain(&self.waits.probability).chain(stations).copied().collect()
    }

    /// Sets all unknowns from one row, held near the `image` from which it was extrapolated.
    fn set(&mut self, row: &[S], image: &Self) -> Held {
        let stations = self.stations.iter_mut().flat_map(|s| s.removal.iter_mut().chain(&mut s.boost).chain([&mut s.excess]));
        let unknowns = self.waits.wait.iter_mut().chain(&mut self.waits.probability).chain(stations);
        let longest = image.waits.wait.iter().fold(0.0_f64, |m, w| m.max(w.value()));
        let mut held = Held::Not;
        for (i, ((unknown, &value), near)) in unknowns.zip(row).zip(image.unknowns()).enumerate() {
            let (least, most) = (near / TRUST_FACTOR, near * TRUST_FACTOR);
            let inside = value >= least && value <= most;
            *unknown = if value < least {
                least
            } else if value > most {
                most
            } else {
                value
            };
            if !inside && i < image.waits.wait.len() && near > CONSIDERABLE_WAIT * longest {
                held = Held::Back;
            }
        }
        held
    }
}

/// Whether an extrapolation was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Back,
    Not,
}

/// Largest change from `old` to `new`, each value over its `scale`, each derivative over the steepest one (or 1).
fn change<S: Scalar>(old: &[S], new: &[S], scale: impl Fn(f64) -> f64) -> f64 {
    let steepest = new.iter().flat_map(|v| v.derivatives()).fold(0.0_f64, |m, d| m.max(d.abs()));
    let mut most = 0.0_f64;
    for (&old, &new) in old.iter().zip(new) {
        let difference = new - old;
        most = most.max(difference.value().abs() / scale(new.value()));
        for d in difference.derivatives() {
            most = most.max(d.abs() / steepest.max(f64::MIN_POSITIVE));
        }
    }
    most
}

/// Largest numbers of busy threads when there are so many `customers`.
fn caps<S: Scalar>(net: &Net<S>, customers: &[f64]) -> Vec<f64> {
    net.tasks.iter().map(|t| t.class.map_or(t.cap, |c| customers[c])).collect()
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
    let mut present = Presence { waiting: Vec::new(), first: Vec::new(), late: Vec::new() };
    for (a, arc) in net.arcs.iter().enumerate() {
        let rate = stage.flow.arc_rate[a];
        present.waiting.push(rate * stage.waits.wait[a]);
        let Some(entry) = arc.target else {
            let demand = arc.source.node().map_or(S::from(0.0), |n| net.nodes[n].demand / net.nodes[n].slices);
            present.first.push(rate * demand);
            present.late.push(S::from(0.0));
            continue;
        };
        present.first.push(rate * first_phase(net, &stage.flow.elapsed, a));
        let late = net.entries[entry].phases[1..].iter().flatten().fold(S::from(0.0), |sum, &n| sum + stage.flow.elapsed[n]);
        present.late.push(rate * late);
    }
    present
}
