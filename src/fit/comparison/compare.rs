//! Two fits of nested structures on the same trials: does the larger one explain more than chance would?
//!
//! Both sums of squares are taken with one set of weights, those of the larger fit: where weights are estimated from
//! residuals, each fit alone has a sum of squares near its number of measurements whatever its structure. The smaller
//! structure is therefore minimised again with them; and where the larger one then fits worse, it is minimised again
//! from the smaller one's solution, since a minimum cannot be worse.
//!
//! Nesting is checked on numbers: the smaller fit's parameters must be among the larger's, and holding the others at
//! the value that the smaller problem gives them, or at a bound, 0 or 1, must make the two predict the same.

use serde::{Deserialize, Serialize};

use super::f_test::{DofRule, ExtraSumOfSquares, FTest, FTestError, Preferred};
use crate::{
    fit::{
        engine::least_squares::Minimum,
        inference::variances::JointFreedom,
        problem::{ErrorScale, Problem, ProblemError},
        report::Fit,
        search::{
            reweigh::robust_scale,
            run::{FitError, FitOptions, minimise_weighted},
            solver::{SolveFn, solve_trials},
            weights::Weights,
        },
    },
    model::{Bindings, Measure, Model},
    solve::{self, SolveOptions},
};

/// Relative difference of predictions below which two structures are the same function.
const SAME_PREDICTION: f64 = 1e-6;

/// Relative excess of a sum of squares that calls for another minimisation.
const EXCESS: f64 = 1e-10;

/// Relative difference of two minima that may be that of the solver's tolerance.
const SAME_MINIMUM: f64 = 1e-5;

/// How to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// How degrees of freedom are counted.
    pub dof_rule: DofRule,
    /// Options of the minimisations.
    pub fit: FitOptions,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The test: `f`, `numerator_dof`, `denominator_dof`, `critical_value`, `p_value`, `preferred`.
    #[serde(flatten)]
    pub test: FTest,
    /// The preferred fit, by its place among the arguments, 1 or 2.
    pub preferred_fit: usize,
    /// Level of the decision.
    pub confidence: f64,
    /// How degrees of freedom were counted.
    pub dof_rule: DofRule,
    /// The structure with fewer parameters.
    pub smaller: Contender,
    /// The structure with more.
    pub larger: Contender,
    /// What makes the larger structure the smaller one: `d4 = 0`.
    pub restriction: Vec<Restriction>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Its place among the arguments, 1 or 2.
    pub fit: usize,
    /// Its model's name.
    pub model: String,
    /// Its estimated parameters.
    pub parameters: Vec<String>,
    /// Its weighted sum of squares, with the weights of the larger fit.
    pub sum_of_squares: f64,
}

/// A parameter of the larger structure held at a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restriction {
    /// The parameter.
    pub parameter: String,
    /// The value at which the structures are one.
    pub value: f64,
}

/// Why two fits cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A fit without a minimum.
    #[error("fit {fit} did not converge: its sum of squares is not a minimum")]
    NotConverged {
        /// Its place, 1 or 2.
        fit: usize,
    },
    /// Other data.
    #[error("the fits are of different trials: fit both structures to the same ones")]
    DifferentTrials,
    /// Other weights.
    #[error("one fit is weighted, the other is not: fit both with the same --weighting")]
    DifferentWeighting,
    /// One corrected for the solver's error, the other not.
    #[error("one fit is corrected for the solver's error, the other is not: fit both with --correct-solver, or both without")]
    DifferentCorrection,
    /// Neither contains the other.
    #[error("the structures are not nested, or not by values that parameters may be held at: {reason}")]
    NotNested {
        /// Why not.
        reason: String,
    },
    /// The larger structure, minimised from the smaller one's solution, does not get as low.
    #[error(
        "the larger structure fits worse ({larger} against {smaller}) even from the smaller one's solution: the solver does not quite take it \
         for the smaller one there"
    )]
    LargerFitsWorse {
        /// Its least sum of squares.
        larger: f64,
        /// That of the smaller one.
        smaller: f64,
    },
    /// A minimisation failed.
    #[error("a structure could not be minimised again under the common weights")]
    Fit(#[from] FitError),
    /// The test refuses.
    #[error("no F-test")]
    Test(#[from] FTestError),
}

/// Compares fits `a` and `b`, in either order, by the extra-sum-of-squares F-test.
///
/// # Errors
/// [`CompareError`].
pub fn compare(a: &Fit, b: &Fit) -> Result<Comparison, CompareError> {
    compare_with(a, b, &CompareOptions::default(), &solve::sensitivities)
}

/// As [`compare`], with options and another solver. Fits that are corrected for the solver's error are both minimised under the
/// correction of the larger one: where its parameters make it the smaller structure it then predicts the same, and the test is of the
/// structures and not of two corrections.
///
/// # Errors
/// As [`compare`].
pub fn compare_with(a: &Fit, b: &Fit, options: &CompareOptions, solver: &SolveFn<'_>) -> Result<Comparison, CompareError> {
    check_alike(a, b)?;
    let a_is_smaller = a.parameters.len() <= b.parameters.len();
    let (smaller, larger, places) = if a_is_smaller { (a, b, (1, 2)) } else { (b, a, (2, 1)) };
    let restriction = nesting(smaller, larger, options, solver)?;
    let mut notes = Vec::new();
    let weights = weights_of(larger).map_err(FitError::from)?;
    let corrected = larger.correction.as_ref().map(|c| c.correction.around(solver));
    let solver = corrected.as_deref().unwrap_or(solver);
    if corrected.is_some() {
        notes.push("both sums of squares are taken with the larger fit's correction for the solver's error".into());
    }
    let mut sums = sums_of_squares(smaller, larger, &weights, &restriction, options, solver, &mut notes)?;
    if sums.1 > sums.0 {
        if sums.1 > sums.0 * (1.0 + SAME_MINIMUM) {
            return Err(CompareError::LargerFitsWorse { larger: sums.1, smaller: sums.0 });
        }
        // As low as the smaller one, to what a minimum and the solver are known to.
        sums.1 = sums.0;
    }
    let confidence = larger.problem.confidence;
    if smaller.problem.confidence != confidence {
        notes.push(format!("the fits have different confidence levels; {confidence} of the larger one is used"));
    }
    let test = ExtraSumOfSquares {
        smaller_sum_of_squares: sums.0,
        larger_sum_of_squares: sums.1,
        n_obs: weights.n_residuals(),
        smaller_n_params: smaller.parameters.len(),
        larger_n_params: larger.parameters.len(),
        dof_rule: options.dof_rule,
        errors_known: [smaller, larger].iter().all(|fit| fit.error_scale == ErrorScale::Known),
        by_variances: by_variances(larger, &restriction),
        confidence,
    }
    .test()?;
    notes.extend(test.estimated_variances.map(|_| "F and its degrees of freedom allow for weights that are estimated".to_owned()));
    notes.extend(on_a_bound(larger, &restriction));
    let contender = |fit: &Fit, place, sum_of_squares| Contender {
        fit: place,
        model: fit.problem.model.name.clone(),
        parameters: fit.parameters.keys().cloned().collect(),
        sum_of_squares,
    };
    Ok(Comparison {
        test,
        preferred_fit: if test.preferred == Preferred::Smaller { places.0 } else { places.1 },
        confidence,
        dof_rule: options.dof_rule,
        smaller: contender(smaller, places.0, sums.0),
        larger: contender(larger, places.1, sums.1),
        restriction,
        notes,
    })
}

fn check_alike(a: &Fit, b: &Fit) -> Result<(), CompareError> {
    for (fit, place) in [(a, 1), (b, 2)] {
        if !fit.converged {
            return Err(CompareError::NotConverged { fit: place });
        }
    }
    if a.problem.trials != b.problem.trials {
        return Err(CompareError::DifferentTrials);
    }
    if a.problem.weighting != b.problem.weighting || a.problem.method.loss != b.problem.method.loss {
        return Err(CompareError::DifferentWeighting);
    }
    if a.correction.is_some() != b.correction.is_some() {
        return Err(CompareError::DifferentCorrection);
    }
    Ok(())
}

/// The parameter values that make the larger structure the smaller one.
///
/// # Errors
/// [`CompareError::NotNested`].
pub(crate) fn nesting(
    smaller: &Fit,
    larger: &Fit,
    options: &CompareOptions,
    solver: &SolveFn<'_>,
) -> Result<Vec<Restriction>, CompareError> {
    let not_nested = |reason: String| Err(CompareError::NotNested { reason });
    if smaller.parameters.len() == larger.parameters.len() {
        return not_nested(format!("both have {} parameters", smaller.parameters.len()));
    }
    if let Some(name) = smaller.parameters.keys().find(|name| !larger.parameters.contains_key(*name)) {
        return not_nested(format!("parameter \"{name}\" of the smaller one is not among those of the larger"));
    }
    let extra: Vec<&String> = larger.parameters.keys().filter(|name| !smaller.parameters.contains_key(*name)).collect();
    let found = candidates(&extra, smaller, larger).into_iter().find(|values| is_same(smaller, larger, &extra, values, options, solver));
    match found {
        Some(values) => Ok(extra.into_iter().zip(values).map(|(name, value)| Restriction { parameter: name.clone(), value }).collect()),
        None => {
            let names = extra.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
            not_nested(format!("no value tried for {names} (the smaller fit's own, bounds, 0, 1) makes the two predict the same"))
        }
    }
}

/// Values of the extra parameters that might restrict the larger structure to the smaller.
fn candidates(extra: &[&String], smaller: &Fit, larger: &Fit) -> Vec<Vec<f64>> {
    let held = |name: &str| smaller.problem.assumed.get(name).or_else(|| smaller.problem.defined_value(name));
    let otherwise =
        |value: &dyn Fn(&str) -> Option<f64>| -> Option<Vec<f64>> { extra.iter().map(|n| held(n).or_else(|| value(n))).collect() };
    let parameter = |name: &str| larger.parameters.get(name);
    [otherwise(&|name| parameter(name)?.min), otherwise(&|_| Some(0.0)), otherwise(&|_| Some(1.0)), otherwise(&|name| parameter(name)?.max)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether the larger structure with `extra` at `values` predicts what the smaller does, at its solution and beside it; with later phases that do
/// nothing there in its model, or without them.
fn is_same(smaller: &Fit, larger: &Fit, extra: &[&String], values: &[f64], options: &CompareOptions, solver: &SolveFn<'_>) -> bool {
    let (bounds, whole) = (smaller.problem.bounds(), smaller.problem.whole_numbers());
    let mut entries = larger.problem.model.tasks.iter().flat_map(|task| &task.entries);
    let has_later_phases = entries.any(|entry| entry.phases.iter().any(|it| it.phase > 1));
    [1.0, 1.1].into_iter().all(|factor| {
        let beside = |j: usize, v: f64| if whole[j] { v } else { (v * factor).clamp(bounds[j].0, bounds[j].1) };
        let x: Vec<f64> = smaller.estimates().enumerate().map(|(j, (_, v))| beside(j, v)).collect();
        let embedded = embed(smaller, larger, &x, |name| extra.iter().position(|e| e.as_str() == name).map(|i| values[i]));
        let solve = |problem: &Problem, x: &[f64], solver: &SolveFn<'_>| solve_trials(problem, x, &[], &options.fit.solve, solver).ok();
        let Some(one) = solve(&smaller.problem, &x, solver) else { return false };
        let predicts_it = |solver: &SolveFn<'_>| {
            let Some(two) = solve(&larger.problem, &embedded, solver) else { return false };
            let mut pairs = one.values.iter().flatten().zip(two.values.iter().flatten());
            pairs.all(|(a, b)| (a - b).abs() <= SAME_PREDICTION * a.abs().max(b.abs()))
        };
        let without = |model: &Model, values: &Bindings, wrt: &[String], measures: &[Measure], options: &SolveOptions| {
            solver(&model.without_idle_phases(values), values, wrt, measures, options)
        };
        predicts_it(solver) || has_later_phases && predicts_it(&without)
    })
}

/// Parameters of the larger structure: those of the smaller at `x`, the others from `extra`.
pub(crate) fn embed(smaller: &Fit, larger: &Fit, x: &[f64], extra: impl Fn(&str) -> Option<f64>) -> Vec<f64> {
    let value = |name: &str| smaller.parameters.get_index_of(name).map(|i| x[i]).or_else(|| extra(name)).unwrap_or(0.0);
    larger.parameters.keys().map(|name| value(name)).collect()
}

/// The weights with which a fit ended.
pub(crate) fn weights_of(fit: &Fit) -> Result<Weights, ProblemError> {
    let mut weights = Weights::of(&fit.problem)?;
    let raw = raw_residuals(fit, &weights);
    if weights.are_estimated() {
        weights.update(&raw, &fit.problem);
    }
    let loss = fit.problem.method.loss;
    if !loss.is_squared() {
        let plain: Vec<f64> = weights.whiten(&raw).iter().copied().collect();
        let sigma = robust_scale(&fit.problem, &weights, &plain);
        weights.factors = plain.iter().map(|r| loss.weight(r / sigma).sqrt()).collect();
    }
    Ok(weights)
}

fn raw_residuals(fit: &Fit, weights: &Weights) -> Vec<f64> {
    let residual = |trial_idx: usize, measure_idx: usize| {
        let measure = fit.problem.trials.measures.get(measure_idx)?;
        fit.residuals.get(trial_idx)?.get(measure).copied().flatten()
    };
    weights.observations.iter().map(|o| residual(o.trial_idx, o.measure_idx).unwrap_or(0.0)).collect()
}

fn weighted_sum_of_squares(fit: &Fit, weights: &Weights) -> f64 {
    let mut weighted = weights.whiten(&raw_residuals(fit, weights));
    weighted.iter_mut().zip(&weights.factors).for_each(|(r, factor)| *r *= factor);
    weighted.norm_squared()
}

fn sums_of_squares(
    smaller: &Fit,
    larger: &Fit,
    weights: &Weights,
    restriction: &[Restriction],
    options: &CompareOptions,
    solver: &SolveFn<'_>,
    notes: &mut Vec<String>,
) -> Result<(f64, f64), CompareError> {
    let start: Vec<f64> = smaller.estimates().map(|(_, v)| v).collect();
    let of_data = |m: &Minimum| m.residuals.rows(0, weights.n_residuals()).norm_squared();
    let small = minimise_weighted(&smaller.problem, weights, &start, &options.fit, solver)?;
    let smaller_sum = of_data(&small);
    if weights.are_estimated() {
        notes.push("both sums of squares are taken with the weights of the larger fit".into());
    }
    let large = weighted_sum_of_squares(larger, weights);
    if large <= smaller_sum * (1.0 + EXCESS) {
        return Ok((smaller_sum, large));
    }
    let embedded = embed(smaller, larger, &small.x, |name| restriction.iter().find(|r| r.parameter == name).map(|r| r.value));
    let again = minimise_weighted(&larger.problem, weights, &embedded, &options.fit, solver)?;
    notes.push("the larger fit was not at its minimum; it was minimised again from the smaller one's solution".into());
    Ok((smaller_sum, of_data(&again).min(large)))
}

/// What the test loses by variances of the larger fit's that are estimated, over the restricted parameters that have an interval.
fn by_variances(larger: &Fit, restriction: &[Restriction]) -> Option<JointFreedom> {
    let id = &larger.identifiability;
    let place =
        |r: &Restriction| Some((id.free.iter().position(|f| *f == r.parameter)?, r.value - larger.parameters[&r.parameter].estimate));
    let (places, away): (Vec<usize>, Vec<f64>) = restriction.iter().filter_map(place).unzip();
    let variances = id.estimated_variances.as_ref().filter(|_| !places.is_empty())?;
    variances.of_test(id.covariance.as_ref()?, &places, &away)
}

fn on_a_bound(larger: &Fit, restriction: &[Restriction]) -> Option<String> {
    let bounded = restriction
        .iter()
        .find(|r| larger.parameters.get(&r.parameter).is_some_and(|p| p.min == Some(r.value) || p.max == Some(r.value)))?;
    Some(format!(
        "{} = {} lies on a bound: the test then rejects a true smaller structure less often than its level says",
        bounded.parameter, bounded.value
    ))
}
