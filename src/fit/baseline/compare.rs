//! What is compared with black boxes, on which trials.

use std::ops::ControlFlow;

use super::{
    questions::{BaselineOptions, Questions},
    report::Baselines,
};
use crate::{
    fit::{
        correction::Correction,
        new_errors::NewErrors,
        problem::{
            Method, Problem,
            parameter_uses::{Role, parameter_uses},
        },
        report::Fit,
        search::{
            run::{FitError, fit_with},
            solver::SolveFn,
        },
    },
    model::Bindings,
    solve,
};

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// No controlled value, or not that one.
    #[error("no controlled value{} takes at least two values in the trials", .0.as_ref().map_or_else(String::new, |name| format!(" \"{name}\"")))]
    Load(Option<String>),
    /// A share outside [0, 1).
    #[error("the share of loads to hold out is {0}: expected 0 or more and less than 1")]
    HoldOut(f64),
    /// The fit to the comparison found no minimum.
    #[error("the fit found no minimum: there is nothing to compare")]
    NotConverged,
    /// The model could not be fitted again with trials left out in turn.
    #[error("the model could not be fitted again with each trial left out")]
    Fit(#[from] FitError),
}

/// Fewest loads that an extrapolation is fitted to.
const FEWEST_LOADS: usize = 3;

/// Compares `fit` with black boxes on its own trials.
///
/// # Errors
/// [`BaselineError`]; a curve that cannot be fitted is left out.
pub fn baselines(fit: &Fit, options: &BaselineOptions) -> Result<Baselines, BaselineError> {
    baselines_with(fit, options, &solve::sensitivities)
}

/// As [`baselines`], with another solver.
///
/// # Errors
/// As [`baselines`].
pub fn baselines_with(fit: &Fit, options: &BaselineOptions, solver: &SolveFn<'_>) -> Result<Baselines, BaselineError> {
    if !(0.0..1.0).contains(&options.hold_out) {
        return Err(BaselineError::HoldOut(options.hold_out));
    }
    if !fit.converged {
        return Err(BaselineError::NotConverged);
    }
    let load = load_of(&fit.problem, options.load.as_deref())?;
    let mut notes = Vec::new();
    let correction = fit.correction.as_ref().map(|c| &c.correction);
    let corrected = correction.map(|c| c.around(solver));
    let solver_of_all = corrected.as_deref().unwrap_or(solver);
    let left_out = match &fit.diagnosis.leave_one_out {
        Some(found) => Some(found.clone()),
        None => refitted(&fit.problem, fit, true, options, solver_of_all)?.diagnosis.leave_one_out,
    };
    let split = split(&fit.problem, &load, options.hold_out);
    let known = correction.zip(split.as_ref()).map(|(c, split)| taken_at(c, &split.problem));
    let corrected_rest = known.as_ref().map(|c| c.around(solver));
    let solver_of_rest = corrected_rest.as_deref().unwrap_or(solver);
    let rest = split.as_ref().and_then(|split| match refitted(&split.problem, fit, false, options, solver_of_rest) {
        Ok(rest) if rest.converged => Some(rest),
        _ => {
            notes.push("the model could not be fitted without the trials held out".to_owned());
            None
        }
    });
    if split.is_none() && options.hold_out > 0.0 {
        notes.push(format!("too few values of {load} to hold some out: at least {} are needed", FEWEST_LOADS + 1));
    }
    if correction.is_some() {
        notes.push(HELD_CORRECTION.to_owned());
    }
    let others: Vec<&str> = fit.problem.trials.controlled_names().into_iter().filter(|n| *n != load && varies(&fit.problem, n)).collect();
    if !others.is_empty() {
        notes.push(format!("the curves know nothing of {}, which varied too", others.join(", ")));
    }
    let shown = rest.as_ref().unwrap_or(fit);
    let solver = if rest.is_some() { solver_of_rest } else { solver_of_all };
    let questions = Questions {
        fit,
        left_out: left_out.as_ref().filter(|o| o.failed.is_empty()),
        shown,
        errors: NewErrors::of(shown),
        is_extrapolated: rest.is_some(),
        held_out: split.as_ref().map(|s| s.held_out.as_slice()).unwrap_or_default(),
        load: &load,
        options,
        solver,
    };
    let measures = fit.problem.trials.measures.iter().enumerate().map(|(k, m)| (m.clone(), questions.measure(k, m))).collect();
    Ok(Baselines {
        confidence: fit.problem.confidence,
        fitted_up_to: split.as_ref().map(|s| s.up_to),
        held_out: split.as_ref().map(|s| s.held_out.iter().map(|&t| fit.problem.trials.trials[t].id.clone()).collect()).unwrap_or_default(),
        load,
        measures,
        notes,
    })
}

/// What holds for the model's row of a corrected fit.
const HELD_CORRECTION: &str = "the model is corrected for the solver's error, in every fit to some of the trials by the ratios of the fit to all at those trials, which \
                               were not simulated anew; its bands are without the simulation's own error";

/// The part of a correction that was taken at trials of `problem`.
fn taken_at(correction: &Correction, problem: &Problem) -> Correction {
    let is_kept = |controlled: &Bindings| problem.trials.trials.iter().any(|t| t.controlled == *controlled);
    Correction { points: correction.points.iter().filter(|p| is_kept(&p.controlled)).cloned().collect(), at: correction.at.clone() }
}

fn varies(problem: &Problem, name: &str) -> bool {
    problem.trials.controlled_range(name).is_some_and(|(low, high)| low < high)
}

fn load_of(problem: &Problem, asked: Option<&str>) -> Result<String, BaselineError> {
    if let Some(asked) = asked {
        return if varies(problem, asked) { Ok(asked.to_owned()) } else { Err(BaselineError::Load(Some(asked.to_owned()))) };
    }
    let uses = parameter_uses(&problem.model);
    let customers: Vec<&str> =
        problem.model.tasks.iter().filter(|t| t.scheduling.is_reference()).filter_map(|t| t.multiplicity.parameter()).collect();
    let rank = |name: &str| match () {
        () if customers.contains(&name) => 2,
        () if uses.get(name).is_some_and(|roles| roles.contains(&Role::Rate)) => 1,
        () => 0,
    };
    let n_values = |name: &str| {
        let mut values: Vec<f64> = problem.trials.trials.iter().filter_map(|t| t.controlled.get(name)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    let names = problem.trials.controlled_names().into_iter().filter(|n| varies(problem, n));
    names.max_by_key(|n| (rank(n), n_values(n))).map(str::to_owned).ok_or(BaselineError::Load(None))
}

/// `problem` fitted from the estimates of `fit`.
fn refitted(problem: &Problem, fit: &Fit, leave_out: bool, options: &BaselineOptions, solver: &SolveFn<'_>) -> Result<Fit, FitError> {
    let mut problem = problem.clone();
    let method = problem.method;
    problem.method = Method { loss: method.loss, error_scale: method.error_scale, leave_one_trial_out: leave_out, ..Method::default() };
    problem.estimate.iter_mut().zip(fit.estimates()).for_each(|(e, (_, x))| e.start = Some(x));
    fit_with(&problem, &options.fit, solver, &mut |_| ControlFlow::Continue(()))
}

/// Trials held out, and the problem of the others.
struct Split {
    problem: Problem,
    held_out: Vec<usize>,
    up_to: f64,
}

fn split(problem: &Problem, load: &str, share: f64) -> Option<Split> {
    let mut loads: Vec<f64> = problem.trials.trials.iter().filter_map(|t| t.controlled.get(load)).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a number of loads")]
    #[expect(clippy::cast_precision_loss, reason = "numbers of loads are far below 2^53")]
    let n_held = ((share * loads.len() as f64).round() as usize).max(1).min(loads.len().checked_sub(FEWEST_LOADS)?);
    if n_held == 0 || share == 0.0 {
        return None;
    }
    let up_to = loads[loads.len() - n_held - 1];
    let is_held = |t: &crate::fit::Trial| t.controlled.get(load).is_some_and(|v| v > up_to);
    let mut rest = problem.clone();
    rest.trials.trials.retain(|t| !is_held(t));
    let held_out = (0..problem.trials.trials.len()).filter(|&t| is_held(&problem.trials.trials[t])).collect();
    Some(Split { problem: rest, held_out, up_to })
}
