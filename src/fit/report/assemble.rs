//! From the end of a search to the report.

use indexmap::IndexMap;
use nalgebra::DMatrix;

use super::{
    Fit, Identifiability, IntervalMethod, MeasureFit, ParameterEstimate, ParameterStatus, WeightingReport,
    digits::{four_digits, two_digits},
    extras::{Scales, scales},
    notes::{held_by_bounds, notes},
    utilization::{measured_resource, utilizations},
};
use crate::{
    fit::{
        correction::{Fitted, OwnError},
        diagnosis::Diagnosis,
        engine::least_squares::{Minimum, StopReason},
        inference::{
            Identification, direction_in_words,
            distribution::{normal_two_sided, t_two_sided},
            identify,
            regions::{CovarianceKnown, Estimate, Limits, joint_region},
            sandwich::sandwich,
        },
        problem::{ErrorScale, Intervals, Problem, Transform, trials::Trial},
        search::{
            multistart::StartsReport,
            solver::TrialPredictions,
            start::StartOrigin,
            weights::Weights,
            whole::{ABOVE, WholeNumber},
        },
    },
    model::{Bindings, Measure},
};

/// Singular value of a Jacobian that has only what is seen, relative to the largest, below which it is rounding.
const SEEN_ALREADY: f64 = 1e-13;

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

#[expect(clippy::cast_precision_loss, reason = "numbers of observations are far below 2^53")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

struct Inference<'a> {
    problem: &'a Problem,
    ending: &'a Ending<'a>,
    bounds: Vec<(f64, f64)>,
    /// Parameters that are not at a bound.
    free: Vec<usize>,
    names: Vec<String>,
    found: Identification,
    /// Factor of `(JᵀJ)⁻¹` in the covariance; absent without degrees of freedom.
    scale: Option<f64>,
    /// Degrees of freedom of the intervals; absent where the errors are known.
    interval_dof: Option<usize>,
    /// Quantile of Student's t, or of the normal distribution; absent without degrees of freedom.
    quantile: Option<f64>,
    /// Degrees of freedom of intervals that go by what trials scatter by; absent where they go by the weights.
    by_trials: Option<usize>,
    /// Why there are none of these, if they were asked for.
    not_by_trials: Option<String>,
    /// What the error of a correction takes from the estimates, where that is much.
    lost_in_simulation: Vec<String>,
}

impl<'a> Inference<'a> {
    fn new(problem: &'a Problem, ending: &'a Ending<'a>, scales: &Scales, dof: usize) -> Self {
        let bounds = problem.bounds();
        let (x, jacobian) = (&ending.minimum.x, &plain_jacobian(ending.weights, ending.minimum));
        // The least of a whole number, 1 of something, is a value like any other; other bounds of it stop the search.
        let whole = problem.whole_numbers();
        let is_least = |j: usize| whole[j] && bounds[j].0 <= 1.0;
        let at_bound = |j: usize| (x[j] == bounds[j].0 && !is_least(j) || x[j] == bounds[j].1) && jacobian.column(j).norm() > 0.0;
        let free: Vec<usize> = (0..x.len()).filter(|&j| !at_bound(j)).collect();
        let names = free.iter().map(|&j| problem.estimate[j].name.clone()).collect();
        let plain = jacobian.select_columns(&free);
        let own_error = ending.own_error.filter(|_| !free.is_empty()).zip(scales.covariance);
        let purged = own_error.map(|(own, scale)| own.purge(&ending.fitted(problem), jacobian, &free, scale, ending.rank_tolerance));
        let by_trials = (problem.method.intervals == Intervals::Sandwich && !free.is_empty())
            .then(|| by_trials(problem, ending, &plain, scales.covariance))
            .transpose();
        let (by_trials, not_by_trials) = by_trials.map_or_else(|why| (None, Some(why)), |found| (found, None));
        let found = match (&by_trials, &purged) {
            // What is not seen is not in these.
            (Some((jacobian, _)), _) => identify(jacobian, SEEN_ALREADY),
            (None, Some(purged)) => identify(&purged.jacobian, SEEN_ALREADY),
            (None, None) => identify(&plain, ending.rank_tolerance),
        };
        let by_trials = by_trials.map(|(_, dof)| dof);
        let lost_in_simulation = purged.map_or_else(Vec::new, |p| p.notes(problem.method.intervals == Intervals::Profile));
        let interval_dof = by_trials.or_else(|| (!scales.is_known).then_some(dof));
        let quantile = interval_dof.map_or_else(|| normal_two_sided(problem.confidence), |d| t_two_sided(problem.confidence, d));
        let scale = scales.covariance.filter(|_| not_by_trials.is_none());
        Self { problem, ending, bounds, free, names, found, scale, interval_dof, quantile, by_trials, not_by_trials, lost_in_simulation }
    }

    /// Why no parameter has an interval, if none has.
    fn nothing(&self) -> Option<(ParameterStatus, String)> {
        match self.ending.minimum.stop {
            stop if !stop.converged() => Some((ParameterStatus::NotConverged, stop_in_words(stop).into())),
            _ if self.scale.is_none() => Some((
                ParameterStatus::NoDegreesOfFreedom,
                self.not_by_trials
                    .clone()
                    .unwrap_or_else(|| "as many parameters as measurements: nothing is left to estimate the error".into()),
            )),
            _ => None,
        }
    }

    fn parameters(&self) -> IndexMap<String, ParameterEstimate> {
        (0..self.problem.estimate.len()).map(|j| (self.problem.estimate[j].name.clone(), self.parameter(j))).collect()
    }

    fn parameter(&self, j: usize) -> ParameterEstimate {
        let estimate = self.ending.minimum.x[j];
        let (min, max) = self.bounds[j];
        let (status, mut explanation) = self.status(j);
        let position = self.free.iter().position(|&f| f == j).filter(|_| status == ParameterStatus::Free);
        let std_error = position.and_then(|k| Some((self.found.unscaled_covariance[(k, k)] * self.scale?).sqrt()));
        let transform = self.problem.estimate[j].transform;
        let mut limits = std_error.and_then(|s| Some(Limits::around(estimate, s, self.quantile?, transform)));
        let whole = self.ending.whole.iter().find(|w| w.parameter == self.problem.estimate[j].name);
        if let Some(l) = limits.filter(|l| l.lower < min && whole.is_none()) {
            explanation = Some(format!(
                "the interval (half-width {}) reaches below the bound {min}: the data do not show that the parameter is needed",
                four_digits(estimate - l.lower)
            ));
        }
        if let (Some(whole), Some(l)) = (whole, &mut limits) {
            let is_excluded = |offset: f64| whole.at(offset).is_none_or(|e| self.is_excluded(e));
            let beside = [-1.0, 1.0].map(is_excluded);
            // The linear difference may be steeper than what the sum of squares rises by to one side.
            if !beside[0] {
                l.lower = l.lower.min(estimate - 1.0);
            }
            if !beside[1] {
                l.upper = l.upper.max(estimate + 1.0);
            }
            let left = [-1.0, 1.0].map(|offset| (estimate + offset).clamp(min, max)).into_iter();
            let left = left.filter(|v| *v != estimate && l.lower <= *v && *v <= l.upper).collect::<Vec<f64>>();
            explanation = Some(whole_in_words(whole, &left, explanation.as_deref()));
        }
        ParameterEstimate {
            estimate,
            std_error,
            lower: limits.map(|l| l.lower),
            upper: limits.map(|l| l.upper),
            interval_method: limits.map(|_| match (self.by_trials, transform) {
                (None, Transform::None) => IntervalMethod::Wald,
                (None, Transform::Log) => IntervalMethod::WaldLog,
                (Some(_), Transform::None) => IntervalMethod::Sandwich,
                (Some(_), Transform::Log) => IntervalMethod::SandwichLog,
            }),
            start: self.ending.start[j],
            start_from: self.ending.origins[j],
            min: Some(min).filter(|b| b.is_finite()),
            max: Some(max).filter(|b| b.is_finite()),
            status,
            explanation,
        }
    }

    /// Whether a sum of squares is so far above the least that one parameter more does not explain it.
    fn is_excluded(&self, sum_of_squares: f64) -> bool {
        let rise = sum_of_squares - self.ending.minimum.sum_of_squares;
        let most = self.quantile.zip(self.scale).map(|(q, s)| q * q * s);
        most.is_some_and(|most| rise > most)
    }

    fn status(&self, j: usize) -> (ParameterStatus, Option<String>) {
        if let Some((status, text)) = self.nothing() {
            return (status, Some(text));
        }
        let Some(k) = self.free.iter().position(|&f| f == j) else { return self.bound_status(j) };
        if self.found.is_estimable(k) {
            return (ParameterStatus::Free, None);
        }
        let companions: Vec<&str> = self.found.companions(k).iter().map(|&c| self.names[c].as_str()).collect();
        let text = match companions.is_empty() || self.found.unseen[k] {
            true => "no measured value depends on it".to_owned(),
            false => format!("the data cannot tell it from {}", companions.join(", ")),
        };
        (ParameterStatus::RankDeficient, Some(text))
    }

    fn bound_status(&self, j: usize) -> (ParameterStatus, Option<String>) {
        let (min, max) = self.bounds[j];
        let (status, which, bound) = match self.ending.minimum.x[j] == min {
            true => (ParameterStatus::AtLowerBound, "lower", min),
            false => (ParameterStatus::AtUpperBound, "upper", max),
        };
        (status, Some(format!("the best value is the {which} bound {bound}: there is no interval, and the others are as if it were known")))
    }

    /// Covariance and correlation over all parameters.
    fn matrices(&self, parameters: &IndexMap<String, ParameterEstimate>) -> (OptionalMatrix, OptionalMatrix) {
        let position = |j: usize| self.free.iter().position(|&f| f == j).filter(|_| parameters[j].std_error.is_some());
        let n = parameters.len();
        let Some(scale) = self.scale.filter(|_| (0..n).any(|j| position(j).is_some())) else { return (None, None) };
        let unscaled = &self.found.unscaled_covariance;
        let matrix = |entry: &dyn Fn(usize, usize) -> f64| -> OptionalMatrix {
            let row = |i: usize| (0..n).map(|j| Some(entry(position(i)?, position(j)?))).collect();
            Some((0..n).map(row).collect())
        };
        let covariance = matrix(&|a, b| scale * unscaled[(a, b)]);
        let correlation = matrix(&|a, b| unscaled[(a, b)] / (unscaled[(a, a)] * unscaled[(b, b)]).sqrt());
        (covariance, correlation)
    }

    /// Joint regions of the parameters that have an interval.
    fn joint(&self) -> Option<super::JointRegion> {
        let usable: Vec<usize> = (0..self.free.len()).filter(|&k| self.found.is_estimable(k)).collect();
        if self.nothing().is_some() {
            return None;
        }
        let unscaled = &self.found.unscaled_covariance;
        let estimate = |&k: &usize| {
            let e = &self.problem.estimate[self.free[k]];
            let std_error = (unscaled[(k, k)] * self.scale?).sqrt();
            Some(Estimate { name: e.name.clone(), value: self.ending.minimum.x[self.free[k]], std_error, transform: e.transform })
        };
        let estimates: Vec<Estimate> = usable.iter().filter_map(estimate).collect();
        let correlation = DMatrix::from_fn(usable.len(), usable.len(), |a, b| {
            let (a, b) = (usable[a], usable[b]);
            unscaled[(a, b)] / (unscaled[(a, a)] * unscaled[(b, b)]).sqrt()
        });
        let known = match (self.by_trials, self.interval_dof) {
            (Some(dof), _) => CovarianceKnown::FromScatter(dof),
            (None, Some(dof)) => CovarianceKnown::UpToScale(dof),
            (None, None) => CovarianceKnown::Whole,
        };
        joint_region(&estimates, &correlation, known, self.problem.confidence)
    }

    fn identifiability(&self) -> Identifiability {
        let found = &self.found;
        let words = |direction: &[f64]| direction_in_words(direction, &self.names, &found.scale);
        let nothing = self.nothing();
        let covariance = self.scale.filter(|_| nothing.is_none()).map(|scale| rows(&(scale * &found.unscaled_covariance)));
        Identifiability {
            rank: found.rank,
            free: self.names.clone(),
            singular_values: found.singular_values.clone(),
            condition_number: found.condition_number.filter(|c| c.is_finite()),
            weakest_direction: (!self.free.is_empty()).then(|| words(found.weakest.as_slice())),
            unidentified: found.null_directions.iter().map(|d| words(d.as_slice())).collect(),
            null_directions: found.null_directions.iter().map(|d| d.iter().copied().collect()).collect(),
            scale: found.scale.clone(),
            covariance,
            weak: Vec::new(),
            no_covariance: nothing.map(|(_, text)| text),
        }
    }
}

/// The Jacobian that stands for what trials scatter by, and degrees of freedom; or why there is none.
fn by_trials(problem: &Problem, ending: &Ending<'_>, jacobian: &DMatrix<f64>, scale: Option<f64>) -> Result<(DMatrix<f64>, usize), String> {
    let blocks: Vec<_> = ending.weights.blocks.iter().filter(|b| !b.rows.is_empty()).collect();
    let dof = blocks.len().saturating_sub(problem.estimate.len());
    if dof == 0 {
        return Err("no more trials than parameters: what trials scatter by does not tell the error".into());
    }
    let rows: Vec<_> = blocks.iter().map(|b| b.rows.clone()).collect();
    // Of a perfect fit nothing scatters.
    let Some(scale) = scale.filter(|s| *s > 0.0) else { return Ok((jacobian.clone(), dof)) };
    let found = sandwich(jacobian, &ending.minimum.residuals, &rows, scale, ending.rank_tolerance).map_err(|alone| {
        let trial = &problem.trials.trials[blocks[alone.place].trial_idx].id;
        format!("without trial \"{trial}\" the others do not determine the parameters: what trials scatter by does not tell the error")
    })?;
    Ok((found, dof))
}

/// The weighted Jacobian without the factors of a loss.
fn plain_jacobian(weights: &Weights, minimum: &Minimum) -> DMatrix<f64> {
    let mut jacobian = minimum.jacobian.clone();
    jacobian.row_iter_mut().zip(&weights.factors).for_each(|(mut row, factor)| row /= *factor);
    jacobian
}

/// What is known of a whole number, of whose neighbours those `left` are not excluded.
fn whole_in_words(whole: &WholeNumber, left: &[f64], also: Option<&str>) -> String {
    let at = |offset: f64| whole.at(offset);
    let least = at(0.0).unwrap_or_default();
    let digits = |e: f64| if e > ABOVE * least { format!("about {}", two_digits(e)) } else { four_digits(e) };
    let side = |offset: f64| at(offset).map(|e| format!("{} with {}", digits(e), whole.value + offset));
    let beside: Vec<String> = [side(-1.0), side(1.0)].into_iter().flatten().collect();
    let mut text = format!(
        "a whole number: the sum of squares is {} here{}{}; {}",
        four_digits(least),
        if beside.is_empty() { "" } else { ", " },
        beside.join(" and "),
        match left {
            [] => "its neighbours are excluded".to_owned(),
            [one] => format!("{one} is not excluded"),
            _ => "its neighbours are not excluded".to_owned(),
        }
    );
    if let Some(also) = also {
        text.push_str("; ");
        text.push_str(also);
    }
    text
}

/// A symmetric matrix over parameters, of which some have no entries.
pub(crate) type OptionalMatrix = Option<Vec<Vec<Option<f64>>>>;

fn rows(matrix: &DMatrix<f64>) -> Vec<Vec<f64>> {
    matrix.row_iter().map(|row| row.iter().copied().collect()).collect()
}

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
