//! What a reader of a fit should know besides its numbers.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{
    Fit, ParameterEstimate, ParameterStatus,
    assemble::{Ending, OptionalMatrix, bindings},
    digits::{four_digits, two_digits},
    impossible::impossible_values,
    utilization::utilizations,
};
use crate::{
    fit::{
        engine::least_squares::StopReason,
        problem::{ErrorScale, Intervals, Method, Problem, trials::Trial},
        search::weights::{WeightSource, Weights},
    },
    model::Measure,
};

/// Relative size of residuals below which they are rounding of the model.
const PERFECT: f64 = 1e-9;

/// Utilization per server above which a solution breaks capacity: 1, with the tolerance of a fixed point.
const CAPACITY: f64 = 1.005;

/// How many times residuals may exceed given standard errors before that is remarked.
const FAR_BEYOND_ERRORS: f64 = 5.0;

/// Fewest trials from which variances of residuals are estimated without a remark.
const FEW_TRIALS: usize = 8;

/// The same of covariances from replicates.
const MANY_REPLICATES: usize = 40;

/// How many times what is predicted all values of a measure are, from which a unit is doubted.
const MANY_TIMES: f64 = 8.0;

/// Correlation above which two parameters are named together.
const HIGH_CORRELATION: f64 = 0.95;

/// Half-width of an interval, relative to the estimate, below which the error of the layered solver may be what matters.
const NARROW: f64 = 0.03;

/// How many times as wide an interval would be without the bound of another parameter, from which that is remarked.
const WORTH_OF_A_BOUND: f64 = 3.0;

/// The remarks on `fit`, which is the end of `ending`.
pub(super) fn notes(fit: &Fit, ending: &Ending<'_>) -> Vec<String> {
    let mut notes = ending.notes.clone();
    notes.extend(ending.weights.notes.iter().cloned());
    if !ending.settled {
        notes.push(format!("the residual variances did not settle in {} rounds: the weights are approximate", ending.rounds));
    }
    for direction in &fit.identifiability.unidentified {
        notes.push(format!("not determined by these trials: {direction} changes no measured value to first order"));
    }
    match fit.is_perfect() {
        true if fit.error_scale == ErrorScale::Known => notes.push("the residuals are zero to rounding".into()),
        true => notes.push("the residuals are zero to rounding: intervals and bands say nothing about the error of measurement".into()),
        false => notes.extend(narrower_than_the_solver(fit, ending)),
    }
    if fit.problem.method.intervals != Intervals::Sandwich {
        notes.extend(taken_as_independent(ending.weights, &fit.problem.method));
    }
    if fit.interval_degrees_of_freedom.is_some() && fit.joint.is_none() && fit.covariance.is_some() {
        notes.push("no joint region: by what trials scatter one takes twice as many trials as parameters".into());
    }
    if fit.problem.method.error_scale == ErrorScale::Known && ending.weights.has_free_scale(&fit.problem) {
        notes.push(
            "errors are to be taken as known, and not all of them are given: their scale is estimated from the residuals all the same"
                .into(),
        );
    }
    if ending.weights.are_estimated() && ending.weights.given_factor != 1.0 {
        notes.push(format!(
            "beside measures whose variances are estimated from residuals, the errors given for others are taken to be {} times as large, as their own residuals are",
            four_digits(ending.weights.given_factor)
        ));
    }
    notes.extend(few_residuals(fit, ending.weights));
    notes.extend(few_replicates(fit, ending.weights));
    notes.extend(copied_trials(&fit.problem));
    if !fit.converged && fit.stop == StopReason::Stalled && fit.identifiability.rank < fit.identifiability.free.len() {
        notes.push(
            "the search stopped where parameters cannot be told apart to first order: what tells a minimum is not met there, though it may be one".into(),
        );
    }
    notes.extend(other_units(fit));
    notes.extend(beyond_errors(fit, ending.weights));
    notes.extend(beyond_capacity(&fit.problem, ending));
    notes.extend(impossible_values(&fit.problem));
    notes.extend(high_correlations(fit));
    notes.extend(diagnostics(ending));
    notes
}

impl Fit {
    /// Whether nothing but rounding is left of the residuals.
    pub(in crate::fit) fn is_perfect(&self) -> bool {
        self.weighting.measures.values().all(|m| m.relative_residual.is_none_or(|r| r < PERFECT))
    }
}

/// That intervals are narrower than what the layered solver may be off by, and how to have that out of them.
fn narrower_than_the_solver(fit: &Fit, ending: &Ending<'_>) -> Option<String> {
    let is_layered = ending.solved.solutions.iter().any(|s| s.solver == "layered");
    if !is_layered || ending.own_error.is_some() {
        return None;
    }
    let is_narrow = |p: &ParameterEstimate| p.upper.zip(p.lower).is_some_and(|(u, l)| u - l < 2.0 * NARROW * p.estimate.abs());
    let narrow: Vec<&str> = fit.parameters.iter().filter(|(_, p)| is_narrow(p)).map(|(name, _)| name.as_str()).collect();
    (!narrow.is_empty()).then(|| {
        format!(
            "intervals within {} % of the estimate ({}): the layered solver's own error, in the mean of many models 1 % of a throughput and in \
             some several, is not in them; a fit corrected for it (--correct-solver, correct_solver) takes longer",
            four_digits(100.0 * NARROW),
            narrow.join(", ")
        )
    })
}

/// That standard errors without covariances leave out what measures of one trial have in common.
fn taken_as_independent(weights: &Weights, method: &Method) -> Option<String> {
    let several = weights.blocks.iter().any(|b| b.observations.len() > 1);
    (several && weights.sources.contains(&WeightSource::StandardErrors)).then(|| {
        format!(
            "the measures of a trial are weighed as if their errors were independent: where they are not, as with delays and throughput, intervals \
             cover less often than they say. Give covariances within the trials{}",
            method.or_sandwich()
        )
    })
}

/// That variances are estimated from few residuals, and with what consequence.
fn few_residuals(fit: &Fit, weights: &Weights) -> Option<String> {
    let n_trials = weights.blocks.len();
    let is_few =
        n_trials < FEW_TRIALS.max(2 * fit.parameters.len()) && weights.are_estimated() && fit.interval_degrees_of_freedom.is_none();
    (is_few && !fit.is_perfect()).then(|| {
        let of_intervals = match fit.identifiability.estimated_variances {
            Some(_) => {
                "intervals, bands and tests of nested structures allow for that, as far as it can be told (simulated, three parameters: 95 % intervals covered 95 % \
                 with five trials, 92 % with four, bands 92 and 90 %, tests at 5 % rejected a true smaller structure in 6 to 9 % with five, 9 to 11 % with four), but \
                 profiles' curves are as if they were known, and too sharp"
            }
            None => "intervals, bands and tests are then too sharp (simulated, three parameters: 95 % intervals covered 90 % with five trials, 88 % with four)",
        };
        format!("the variances of the measures are estimated from the residuals of {n_trials} trials: {of_intervals}. Give standard errors")
    })
}

/// The same of a covariance that few replicates tell.
fn few_replicates(fit: &Fit, weights: &Weights) -> Option<String> {
    let told = weights.replicates.as_ref().filter(|_| weights.blocks.len() < MANY_REPLICATES)?;
    let of_intervals = match fit.identifiability.estimated_variances {
        Some(_) if told.is_whole => {
            "intervals, bands and tests allow for that, as far as it can be told (simulated: 95 % intervals covered 93 to 97 % with twelve trials of five measures whose errors are alike at all loads, 84 to 92 % with twelve of four \
             measures at four loads, least where each load has errors of its own)"
        }
        Some(_) => {
            "intervals, bands and tests allow for that, as far as it can be told, but not for errors within a trial that depend on each other (simulated, nine trials: \
             95 % intervals covered 94 to 97 %, with correlations of .6 between three measures from six trials 89 to 95 %)"
        }
        None => {
            "intervals and tests are too sharp (simulated: 95 % intervals covered 85 % with nine trials, 58 to 84 % with twelve at four loads)"
        }
    };
    Some(format!(
        "the errors of the measures are estimated from {} trials: {of_intervals}, and misfit cannot be told from the same replicates",
        weights.blocks.len()
    ))
}

/// Trials that are copies of others: their errors are not independent.
fn copied_trials(problem: &Problem) -> Option<String> {
    let mut known: HashMap<Vec<Option<u64>>, Vec<&Trial>> = HashMap::new();
    let mut copies: Vec<&str> = Vec::new();
    for trial in problem.trials.trials.iter().filter(|t| t.measured.iter().flatten().count() > 1) {
        let alike = known.entry(trial.measured.iter().map(|cell| cell.map(|m| m.value.to_bits())).collect()).or_default();
        if alike.iter().any(|other| other.controlled == trial.controlled && other.measured == trial.measured) {
            copies.push(&trial.id);
        } else {
            alike.push(trial);
        }
    }
    (!copies.is_empty()).then(|| {
        let shown = copies.iter().take(5).map(|id| format!("\"{id}\"")).collect::<Vec<_>>().join(", ");
        let more = if copies.len() > 5 { " and others" } else { "" };
        format!("trials {shown}{more} are the same as earlier ones to the last digit: if they are copies, intervals are too narrow")
    })
}

/// Measures of which every value is many times what the model gives, or a small part: as in another unit.
fn other_units(fit: &Fit) -> Vec<String> {
    let note = |(k, measure): (usize, &Measure)| {
        let ratio = |(trial, predicted): (&Trial, &IndexMap<Measure, f64>)| {
            let (value, predicted) = (trial.measured.get(k).copied().flatten()?.value, *predicted.get(measure)?);
            Some(value / predicted).filter(|r| *r > 0.0 && r.is_finite())
        };
        let ratios: Vec<f64> = fit.problem.trials.trials.iter().zip(&fit.predicted).filter_map(ratio).collect();
        let (least, most) = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
        (ratios.len() > 1 && (least > MANY_TIMES || most < MANY_TIMES.recip())).then(|| {
            format!(
                "{measure} is measured {} to {} times what the fitted model gives, in every trial: is it, or what is given beside it, in another unit than the \
                 model's times?",
                four_digits(least),
                four_digits(most)
            )
        })
    };
    fit.problem.trials.measures.iter().enumerate().filter_map(note).collect()
}

/// That residuals are far from what the standard errors given would make them.
fn beyond_errors(fit: &Fit, weights: &Weights) -> Option<String> {
    let counted = || weights.sources.iter().filter(|s| **s != WeightSource::LeftOut);
    let are_given = counted().all(|s| matches!(s, WeightSource::StandardErrors | WeightSource::Covariances));
    let times = fit.mean_square_error.filter(|_| are_given)?.sqrt();
    (times > FAR_BEYOND_ERRORS).then(|| {
        format!(
            "the residuals are {} times as large as the standard errors given: the model does not describe these trials, or not with these \
             estimates (other starts may end lower), or the standard errors are too small",
            four_digits(times)
        )
    })
}

/// Resources that the fitted model has busier than they can be: its solution, and so the estimates, cannot be trusted.
fn beyond_capacity(problem: &Problem, ending: &Ending<'_>) -> Vec<String> {
    let mut worst: IndexMap<String, f64> = IndexMap::new();
    for (trial_idx, solution) in ending.solved.solutions.iter().enumerate() {
        let values = bindings(problem, &ending.minimum.x, trial_idx);
        for (resource, share) in utilizations(&problem.model, &values, solution).into_iter().filter(|(_, u)| *u > CAPACITY) {
            let entry = worst.entry(resource).or_insert(share);
            *entry = entry.max(share);
        }
    }
    let words = |(resource, share): (String, f64)| {
        format!("the solver has {resource} {} % busy, more than it can be: the estimates are tight but wrong", four_digits(100.0 * share))
    };
    worst.into_iter().map(words).collect()
}

/// That a parameter on its bound makes the others look better known than they are: what the bound is worth, where
/// `covariance_without_bounds` gives that of all estimates without it.
pub(super) fn held_by_bounds(fit: &Fit, covariance_without_bounds: impl FnOnce() -> OptionalMatrix) -> Option<String> {
    let is_held = |p: &ParameterEstimate| matches!(p.status, ParameterStatus::AtLowerBound | ParameterStatus::AtUpperBound);
    let held: Vec<&str> = fit.parameters.iter().filter(|(_, p)| is_held(p)).map(|(name, _)| name.as_str()).collect();
    if held.is_empty() || fit.interval_degrees_of_freedom.is_some() {
        return None;
    }
    let variances = covariance_without_bounds().map(|c| (0..c.len()).map(|j| c[j][j]).collect::<Vec<_>>());
    let times = |j: usize, p: &ParameterEstimate| {
        let without = variances.as_ref().and_then(|v| v[j]).map_or(f64::INFINITY, f64::sqrt);
        Some(without / p.std_error.filter(|s| *s > 0.0)?).filter(|times| *times > WORTH_OF_A_BOUND)
    };
    let each: Vec<String> = fit
        .parameters
        .iter()
        .enumerate()
        .filter_map(|(j, (name, p))| {
            let times = times(j, p)?;
            Some(if times.is_finite() { format!("{name} {} times", two_digits(times)) } else { format!("{name} without end") })
        })
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "intervals take {} for known at the bound: without it they would be wider ({}), since the data hardly tell these apart",
            held.join(", "),
            each.join(", ")
        )
    })
}

fn high_correlations(fit: &Fit) -> Vec<String> {
    let Some(correlation) = &fit.correlation else { return Vec::new() };
    let names: Vec<&String> = fit.parameters.keys().collect();
    let mut notes = Vec::new();
    for (i, row) in correlation.iter().enumerate() {
        for (j, entry) in row.iter().enumerate().skip(i + 1) {
            if let Some(r) = entry.filter(|r| r.abs() > HIGH_CORRELATION) {
                notes.push(format!("{} and {} are correlated {r:.3}: the data hardly tell them apart", names[i], names[j]));
            }
        }
    }
    notes
}

/// What the solver said about the trials, each remark once.
fn diagnostics(ending: &Ending<'_>) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for remark in ending.solved.solutions.iter().flat_map(|s| &s.diagnostics) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    const MOST_REMARKS: usize = 20;
    remarks.truncate(MOST_REMARKS);
    remarks.into_iter().map(|remark| format!("solver: {remark}")).collect()
}
