//! From the end of a search to the report.

use indexmap::IndexMap;

use super::{
    Fit, IntervalMethod, MeasureFit, WeightingReport,
    extras::{Scales, scales},
    intervals::{Inference, SEEN_ALREADY, plain_jacobian},
    notes::{held_by_bounds, notes},
    utilization::{measured_resource, utilizations},
};
use crate::{
    fit::{
        correction::{Fitted, OwnError},
        diagnosis::Diagnosis,
        engine::least_squares::{Minimum, StopReason},
        inference::{distribution::as_f64, identify},
        problem::{ErrorScale, Problem, trials::Trial},
        search::{multistart::StartsReport, solver::TrialPredictions, start::StartOrigin, weights::Weights, whole::WholeNumber},
    },
    model::{Bindings, Measure},
};

/// Everything known at the end of a search.
pub(crate) struct Ending<'a> {
    pub(crate) minimum: &'a Minimum,
    pub(crate) weights: &'a Weights,
    pub(crate) solved: &'a TrialPredictions,
    pub(crate) start: &'a [f64],
    pub(crate) origins: &'a [StartOrigin],
    pub(crate) rounds: usize,
    pub(crate) settled: bool,
    pub(crate) iterations: usize,
    pub(crate) evaluations: usize,
    pub(crate) rank_tolerance: f64,
    pub(crate) whole: Vec<WholeNumber>,
    pub(crate) starts: Option<StartsReport>,
    /// Errors that the solver's correction has from its simulations.
    pub(crate) own_error: Option<&'a OwnError>,
    pub(crate) notes: Vec<String>,
}

/// The report of `problem` fitted to `ending`, without what is made from it ([`super::extras`]).
pub(crate) fn assemble(problem: &Problem, ending: &Ending<'_>) -> Fit {
    let minimum = ending.minimum;
    let SumOfSquares { sum_of_squares, degrees_of_freedom, mean_square_error } = left(problem, ending);
    let scales = scales(problem, ending.weights, minimum, mean_square_error);
    let inference = Inference::new(problem, ending, &scales, degrees_of_freedom);
    let parameters = inference.parameters();
    let (covariance, correlation) = inference.matrices(&parameters);
    let mut fit = Fit {
        converged: minimum.stop.converged(),
        stop: minimum.stop,
        covariance,
        correlation,
        identifiability: inference.identifiability(),
        joint: inference.joint(),
        parameters,
        sum_of_squares,
        degrees_of_freedom,
        mean_square_error,
        error_scale: if scales.is_known { ErrorScale::Known } else { ErrorScale::Estimated },
        n_observations: ending.weights.observations.len(),
        confidence: problem.confidence,
        interval_method: if inference.by_trials.is_some() { IntervalMethod::Sandwich } else { IntervalMethod::Wald },
        interval_degrees_of_freedom: inference.by_trials,
        iterations: ending.iterations,
        evaluations: ending.evaluations,
        relative_offset: minimum.relative_offset,
        weighting: weighting_report(problem, ending, &scales),
        residuals: residuals(problem, ending.solved),
        predicted: predicted(problem, ending.solved),
        largest_utilizations: largest_utilizations(problem, ending),
        information: None,
        derived: IndexMap::new(),
        priors: IndexMap::new(),
        whole_numbers: ending.whole.clone(),
        starts: ending.starts.clone(),
        profiles: IndexMap::new(),
        bootstrap: None,
        correction: None,
        diagnosis: Diagnosis::default(),
        notes: Vec::new(),
        problem: problem.clone(),
    };
    fit.notes = notes(&fit, ending);
    fit.notes.extend(inference.lost_in_simulation);
    fit.notes.extend(held_by_bounds(&fit, || covariance_without_bounds(problem, ending)));
    fit
}

impl<'a> Ending<'a> {
    /// The minimum with what belongs to it.
    pub(crate) fn fitted(&self, problem: &'a Problem) -> Fitted<'a> {
        Fitted { problem, weights: self.weights, minimum: self.minimum, solved: self.solved }
    }
}

/// Covariance of all estimates as if no bound held them; none of those that the data do not tell then, and none without a minimum.
pub(crate) fn covariance_without_bounds(problem: &Problem, ending: &Ending<'_>) -> OptionalMatrix {
    let scale = scales(problem, ending.weights, ending.minimum, left(problem, ending).mean_square_error).covariance;
    let scale = scale.filter(|_| ending.minimum.stop.converged())?;
    let n = problem.estimate.len();
    let plain = plain_jacobian(ending.weights, ending.minimum);
    let found = match ending.own_error {
        Some(own) => {
            let all: Vec<usize> = (0..n).collect();
            identify(&own.purge(&ending.fitted(problem), &plain, &all, scale, ending.rank_tolerance).jacobian, SEEN_ALREADY)
        }
        None => identify(&plain, ending.rank_tolerance),
    };
    let entry = |i: usize, j: usize| (found.is_estimable(i) && found.is_estimable(j)).then(|| scale * found.unscaled_covariance[(i, j)]);
    Some((0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect())
}

/// What a fit left.
struct SumOfSquares {
    sum_of_squares: f64,
    degrees_of_freedom: usize,
    /// Absent without degrees of freedom.
    mean_square_error: Option<f64>,
}

fn left(problem: &Problem, ending: &Ending<'_>) -> SumOfSquares {
    let n_residuals = ending.weights.n_residuals();
    let degrees_of_freedom = n_residuals.saturating_sub(problem.estimate.len());
    let sum_of_squares = ending.minimum.residuals.rows(0, n_residuals).norm_squared();
    let mean_square_error = (degrees_of_freedom > 0).then(|| sum_of_squares / as_f64(degrees_of_freedom));
    SumOfSquares { sum_of_squares, degrees_of_freedom, mean_square_error }
}

/// A symmetric matrix over parameters, of which some have no entries.
pub(crate) type OptionalMatrix = Option<Vec<Vec<Option<f64>>>>;

/// Why a search ended, as a sentence.
pub(super) fn stop_in_words(stop: StopReason) -> &'static str {
    match stop {
        StopReason::RelativeOffset => "a minimum: the residuals are orthogonal to the tangent plane",
        StopReason::StepSize => "a minimum: steps no longer change the parameters",
        StopReason::Precision => "a minimum, to the precision of the solver",
        StopReason::PerfectFit => "the model fits the measurements exactly",
        StopReason::Beyond => "no minimum: it would be above another sum of squares",
        StopReason::Stalled => "no minimum: no shorter step lowers the sum of squares",
        StopReason::MaxIterations => "no minimum: the limit of iterations was reached",
        StopReason::MaxEvaluations => "no minimum: the limit of evaluations was reached",
        StopReason::Cancelled => "cancelled",
    }
}

fn residuals(problem: &Problem, solved: &TrialPredictions) -> Vec<IndexMap<Measure, Option<f64>>> {
    let trials = problem.trials.trials.iter().zip(&solved.values);
    let row = |(trial, values): (&Trial, &Vec<f64>)| {
        let cells = problem.trials.measures.iter().zip(&trial.measured).zip(values);
        cells.map(|((measure, cell), value)| (measure.clone(), cell.map(|m| m.value - value))).collect()
    };
    trials.map(row).collect()
}

fn predicted(problem: &Problem, solved: &TrialPredictions) -> Vec<IndexMap<Measure, f64>> {
    let row = |values: &Vec<f64>| problem.trials.measures.iter().cloned().zip(values.iter().copied()).collect();
    solved.values.iter().map(row).collect()
}

fn weighting_report(problem: &Problem, ending: &Ending<'_>, scales: &Scales) -> WeightingReport {
    let weights = ending.weights;
    let measures = problem.trials.measures.iter().enumerate().map(|(k, measure)| {
        let (n, squares) = weights
            .observations
            .iter()
            .filter(|o| o.measure_idx == k)
            .fold((0, 0.0), |(n, squares), o| (n + 1, squares + (o.value - ending.solved.values[o.trial_idx][k]).powi(2)));
        let rms_residual = if n > 0 { (squares / as_f64(n)).sqrt() } else { 0.0 };
        let report = MeasureFit {
            n,
            weighted_by: weights.sources[k],
            rms_residual,
            relative_residual: (n > 0).then(|| rms_residual / weights.sizes[k]),
            deviation: scales.error.filter(|_| n > 0).map(|variance| variance.sqrt() * weights.deviations[k]),
        };
        (measure.clone(), report)
    });
    WeightingReport {
        rounds: ending.rounds,
        settled: ending.settled,
        scaled_by_mean_square_error: !scales.is_known,
        measures: measures.collect(),
    }
}

/// Values of all parameters in trial `trial_idx` at the solution.
pub(super) fn bindings(problem: &Problem, x: &[f64], trial_idx: usize) -> Bindings {
    let mut values = problem.bindings_of(trial_idx);
    problem.estimate.iter().zip(x).for_each(|(e, x)| values.set(e.name.clone(), *x));
    values
}

fn largest_utilizations(problem: &Problem, ending: &Ending<'_>) -> IndexMap<String, f64> {
    let mut largest: IndexMap<String, f64> = IndexMap::new();
    for (trial_idx, (trial, solution)) in problem.trials.trials.iter().zip(&ending.solved.solutions).enumerate() {
        let values = bindings(problem, &ending.minimum.x, trial_idx);
        let measured = problem.trials.measures.iter().zip(&trial.measured).filter_map(|(measure, cell)| {
            let (resource, servers) = measured_resource(&problem.model, &values, measure)?;
            Some((resource, cell.as_ref()?.value / servers))
        });
        for (resource, value) in utilizations(&problem.model, &values, solution).into_iter().chain(measured) {
            let entry = largest.entry(resource).or_insert(value);
            *entry = entry.max(value);
        }
    }
    largest
}
