//! Discrete-event simulation of every construct of the language.
//!
//! # What is simulated
//!
//! | element | behaviour | file |
//! |---|---|---|
//! | phase, activity | own think time, then slices of demand between calls | `strand` |
//! | processor | fcfs, hol, pri, ps, rr, rand, lcfs, cfs, inf; a slice queues afresh, save after an asynchronous send | `processor`, `sharing`, `fair` |
//! | task | threads before one queue (fcfs, hol and pri by priority, rand), bounded for asynchronous requests | `server` |
//! | rendezvous | blocks the caller until the reply at the end of phase 1; later phases overlap the caller | `server` |
//! | forwarding | drawn at the reply; the first caller stays blocked until the last entry of the chain replies | `server` |
//! | activity graph | and-fork, and-join, quorum, or-fork, or-join, loop, replies, second phases | `graph`, `strand` |
//! | semaphore, read-write lock | tokens lent and given back | `server` |
//! | join of several entries | the first to arrive wait, the last goes on and all get their replies | `server` |
//! | customers | think (exponential, Pareto, uniform), pick an entry, cycle | `server` |
//! | replication | every copy is simulated; results are per copy | `compile` |
//!
//! A priority task queue orders by the sending task's priority plus the entry's. Threads are never taken away from a
//! request, so that a `pri` task queue is a `hol` one. A quantum below a hundredth of a processor's mean slice is taken in
//! the limit, as true sharing; the solution says so.
//!
//! # What is estimated
//!
//! Means over time and over requests after the warm-up, with half-widths from batch means (`estimate`); distributions of
//! response times and of what the model asks for (`times`, `distribution`). Replications are
//! independent runs with streams of their own; the result depends on the seed and the number of replications and not on
//! how many of them run at the same time.
//!
//! Semantics: the LQN tools' user manuals (Franks et al.), sharpened by experiments with them. It differs from their
//! simulator where that one does not do what the language says: open arrivals are Poisson whatever the entry's own laws
//! are, speed factors count for every discipline, and activity graphs are accounted for on every processor.

mod calendar;
mod compile;
mod control;
mod deadlock;
mod differences;
mod distribution;
mod estimate;
mod fair;
mod graph;
mod law;
mod network;
mod processor;
mod queue;
pub mod record;
mod report;
mod run;
mod server;
mod sharing;
mod statistics;
mod strand;
mod times;
mod warm_up;

pub(super) use control::has_settled;
pub use differences::sensitivities;

use super::{
    Solution, SolveError,
    bind::{Binder, unusable},
};
use crate::model::{Bindings, Measure, Model};

/// How to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulateOptions {
    /// Seed of all streams of random numbers.
    pub seed: u64,
    /// Confidence of the half-widths, in (0, 1).
    pub confidence: f64,
    /// Model time of each replication, warm-up included; `None` to run until `precision`.
    pub run_time: Option<f64>,
    /// Relative half-width to reach for the throughput of every reference task and the response time of every entry with
    /// open arrivals. Where `run_time` is given too, whichever is first.
    pub precision: Option<f64>,
    /// Most events over all replications.
    pub max_events: u64,
    /// Independent runs, at least 1.
    pub replications: usize,
    /// Replications that run at the same time; 0 for as many as the machine has cores. Does not change the result.
    pub workers: usize,
    /// Probabilities of the quantiles of response times, in (0, 1).
    pub quantiles: Vec<f64>,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            confidence: 0.95,
            run_time: None,
            precision: Some(0.003),
            max_events: 40_000_000,
            replications: 4,
            workers: 0,
            quantiles: vec![0.5, 0.9, 0.95, 0.99],
        }
    }
}

impl SimulateOptions {
    /// Whether the options can be used.
    ///
    /// # Errors
    /// [`SolveError::Unusable`] saying which cannot.
    pub fn check(&self) -> Result<(), SolveError> {
        let element = "simulation options";
        let positive = |value: Option<f64>, what: &str| match value {
            Some(f64::INFINITY) => Err(unusable(element, format!("{what} is not finite"))),
            Some(v) if v.is_nan() || v <= 0.0 => Err(unusable(element, format!("{what} is {v}, expected more than 0"))),
            _ => Ok(()),
        };
        positive(self.run_time, "the run time")?;
        positive(self.precision, "the precision")?;
        if let Some(p) = self.quantiles.iter().find(|p| !(**p > 0.0 && **p < 1.0)) {
            return Err(unusable(element, format!("a quantile of probability {p} is asked for, expected a number between 0 and 1")));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(unusable(element, format!("the confidence is {}, expected a number between 0 and 1", self.confidence)));
        }
        if self.replications == 0 || self.replications > 10_000 {
            return Err(unusable(element, format!("there are {} replications, expected 1 to 10000", self.replications)));
        }
        if self.run_time.is_none() && self.precision.is_none() && self.max_events == u64::MAX {
            return Err(unusable(element, "neither a run time nor a precision nor a number of events ends the simulation"));
        }
        Ok(())
    }
}

/// Simulates `model` with its `$parameters` bound to `values` (the model's own definitions fill what `values` leaves out).
///
/// [`Solution::iterations`] is the number of batches, [`Solution::residual`] the largest relative half-width of those that
/// `precision` is asked of, and [`Solution::converged`] whether that is within the asked precision, of a run for a given time alone within
/// 0.1, in a steady state.
///
/// # Errors
/// [`SolveError::Unbound`], [`SolveError::Unusable`] for numbers and references that cannot be used,
/// [`SolveError::Deadlock`] where tasks wait for one another for ever, [`SolveError::Unbounded`] where requests pile up.
pub fn simulate(model: &Model, values: &Bindings, options: &SimulateOptions) -> Result<Solution, SolveError> {
    let mut solution = run(model, values, options, |simulation| Ok(simulation.solution()))?;
    solution.model.clone_from(&model.name);
    Ok(solution)
}

/// Measures got by simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// All results.
    pub solution: Solution,
    /// Values of the measures asked, `(n_measures)`; `None` of a time that was never observed.
    pub values: Vec<Option<f64>>,
    /// What each batch adds to their errors, `(n_measures)` of `(n_batches)`: the sum over batches of the products of two measures' is the
    /// covariance of their errors. `None` where there are too few batches, or one holds all that was observed.
    pub deviations: Vec<Option<Vec<f64>>>,
    /// Model time of a replication, warm-up included.
    pub run_time: f64,
    /// Events of all replications.
    pub events: u64,
}

impl Measured {
    /// Standard errors of the measures asked, `(n_measures)`; `None` as in `deviations`.
    pub fn std_errors(&self) -> Vec<Option<f64>> {
        let length = |d: &Vec<f64>| d.iter().map(|z| z * z).sum::<f64>().sqrt();
        self.deviations.iter().map(|d| d.as_ref().map(length)).collect()
    }

    /// The values of `measures`, which were asked.
    ///
    /// # Errors
    /// [`SolveError::NotObserved`].
    pub fn observed(&self, measures: &[Measure]) -> Result<Vec<f64>, SolveError> {
        let not_observed = |measure: &Measure| SolveError::NotObserved { measure: measure.clone() };
        self.values.iter().zip(measures).map(|(value, measure)| value.ok_or_else(|| not_observed(measure))).collect()
    }
}

/// Simulates as [`simulate`] and returns the asked measures with their standard errors.
///
/// A standard error is that of the jackknife over the `B` batches: with `m_b` the measure without batch `b`,
/// `sqrt(A (B-1)/B * sum (m_b - mean)^2)`; it holds for any smooth function of the results. `A` makes up for neighbours that resemble each
/// other, as in the half-widths.
///
/// # Errors
/// As [`simulate`], and [`SolveError::UnknownMeasure`].
pub fn measure(model: &Model, values: &Bindings, options: &SimulateOptions, measures: &[Measure]) -> Result<Measured, SolveError> {
    measures.iter().try_for_each(|m| super::measure::check(model, m))?;
    run(model, values, options, |simulation| {
        let mut solution = simulation.solution();
        solution.model.clone_from(&model.name);
        let value = |solution: &Solution, m| super::measure::observed(model, solution, m);
        let means = measures.iter().map(|m| value(&solution, m)).collect::<Result<Vec<_>, _>>()?;
        let mut without: Vec<Vec<Option<f64>>> = vec![Vec::new(); measures.len()];
        for b in 0..simulation.batches.count() {
            let rest = simulation.solution_without(b);
            for (values, m) in without.iter_mut().zip(measures) {
                values.push(value(&rest, m)?);
            }
        }
        let deviations = without.iter().map(|values| simulation.batches.jackknife(values)).collect();
        Ok(Measured { solution, values: means, deviations, run_time: simulation.run_time(), events: simulation.events })
    })
}

/// Whether `model` can be simulated at `values` and has the `measures`, as far as that is known before.
///
/// # Errors
/// As [`measure`].
pub fn check(model: &Model, values: &Bindings, measures: &[Measure]) -> Result<(), SolveError> {
    measures.iter().try_for_each(|m| super::measure::check(model, m))?;
    compile::compile(model, &Binder::new(model, values)?).map(drop)
}

/// Simulates and lets `read` take what it wants from the batches.
fn run<R>(
    model: &Model,
    values: &Bindings,
    options: &SimulateOptions,
    read: impl FnOnce(&control::Simulation<'_>) -> Result<R, SolveError>,
) -> Result<R, SolveError> {
    let binder = Binder::new(model, values)?;
    let network = compile::compile(model, &binder)?;
    read(&control::simulate(&network, options)?)
}
