//! What trials will tell, before any value is measured.
//!
//! The sensitivities need no measured values: at the starts (or the model's own values, or the most likely ones of experts) every
//! planned value is predicted, given the standard error that the plan states or a relative error that is assumed, and the weighted
//! Jacobian is analysed as after a fit ([`crate::fit::inference`]).

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    DesignError,
    ground::Ground,
    weak::{Cures, WeakDirection, weak_directions},
};
use crate::{
    fit::{
        inference::Identification,
        problem::Problem,
        report::digits::four_digits,
        search::{run::FitOptions, solver::SolveFn},
    },
    solve,
};

/// Trials below which it matters that variances are estimated.
const FEW_TRIALS: usize = 15;

/// How to look ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifyOptions {
    /// Relative error of a measured value without a standard error, > 0.
    pub relative_error: f64,
    /// Options of the solver, the derivatives and the rank.
    pub fit: FitOptions,
}

impl Default for IdentifyOptions {
    fn default() -> Self {
        Self { relative_error: 0.05, fit: FitOptions::default() }
    }
}

/// What a fit to planned trials could tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedFit {
    /// Level of the half-widths.
    pub confidence: f64,
    /// Relative error assumed of values without a standard error.
    pub relative_error: f64,
    /// Measured values that the plan has.
    pub n_observations: usize,
    /// Directions in parameter space that they see.
    pub rank: usize,
    /// By parameter.
    pub parameters: IndexMap<String, Expected>,
    /// Singular values of the weighted, column-scaled Jacobian, descending.
    pub singular_values: Vec<f64>,
    /// Largest over smallest; absent where the smallest is zero.
    pub condition_number: Option<f64>,
    /// What cannot be told apart, or hardly, and what would settle it.
    pub weak: Vec<WeakDirection>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What is expected of one estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The value at which sensitivities were taken.
    pub value: f64,
    /// Expected standard error; absent where the parameter will not be determined.
    pub std_error: Option<f64>,
    /// Expected half-width of the confidence interval.
    pub half_width: Option<f64>,
    /// The half-width relative to the value; absent for a value of 0.
    pub relative_half_width: Option<f64>,
    /// Why it will not be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

/// What a fit of `problem` could tell, whether its trials have values or not.
///
/// # Errors
/// [`DesignError`].
pub fn identify(problem: &Problem, options: &IdentifyOptions) -> Result<ExpectedFit, DesignError> {
    identify_with(problem, options, &solve::sensitivities)
}

/// As [`identify`], with another solver.
///
/// # Errors
/// As [`identify`].
pub fn identify_with(problem: &Problem, options: &IdentifyOptions, solver: &SolveFn<'_>) -> Result<ExpectedFit, DesignError> {
    problem.check_plan().map_err(DesignError::Problem)?;
    let share = options.relative_error;
    if !(share.is_finite() && share > 0.0) {
        return Err(DesignError::Option { what: "the relative error", value: share, expected: "a number above 0" });
    }
    let ground = Ground::assumed(problem, values(problem)?, share, &options.fit, solver)?;
    let n_observations = ground.rows.nrows() - problem.priors().count();
    let found = ground.with(&[]);
    let half_widths = ground.half_widths(&found, 0);
    let parameters = half_widths.iter().enumerate().map(|(k, (name, width))| {
        let value = ground.values[k];
        let expected = Expected {
            value,
            std_error: found.is_estimable(k).then(|| found.unscaled_covariance[(k, k)].sqrt()),
            half_width: *width,
            relative_half_width: width.filter(|_| value != 0.0).map(|w| w / value.abs()),
            explanation: explanation(&found, k, &ground.names),
        };
        (name.clone(), expected)
    });
    let mut notes = ground.notes.clone();
    notes.push(format!("sensitivities are those at the values listed; values without a standard error are taken to be off by {} %", {
        four_digits(100.0 * share)
    }));
    notes.push(match ground.dof.map(|dof| dof.after(0)) {
        Some(0) => "no more values than parameters: a fit that estimates the scale of the errors has nothing left to estimate it from, and no intervals".into(),
        Some(dof) => {
            format!("half-widths are by Student's t with {dof} degrees of freedom, as of a fit that estimates the scale of the errors")
        }
        None => "half-widths take the errors for known".into(),
    });
    let trials = &problem.trials.trials;
    let has_errors =
        trials.iter().any(|t| t.measured.iter().flatten().any(|m| m.std_error.is_some()) || t.planned_errors.iter().any(Option::is_some));
    if !has_errors && problem.trials.measures.len() > 1 && trials.len() < FEW_TRIALS {
        notes.push(
            "a fit without standard errors estimates the variance of each measure from few trials, and has wider intervals than these (of three parameters by a third \
             with four trials, by a tenth with ten)"
                .into(),
        );
    }
    Ok(ExpectedFit {
        confidence: problem.confidence,
        relative_error: share,
        n_observations,
        rank: found.rank,
        parameters: parameters.collect(),
        singular_values: found.singular_values.clone(),
        condition_number: found.condition_number.filter(|c| c.is_finite()),
        weak: weak_directions(&ground, Cures::Listed, solver),
        notes,
    })
}

/// Where sensitivities are taken: the starts, else the model's own values, else the most likely ones of experts.
pub(super) fn values(problem: &Problem) -> Result<Vec<f64>, DesignError> {
    let value = |e: &crate::fit::problem::Estimated| {
        let found = e.start.or_else(|| problem.defined_value(&e.name)).or(e.prior.map(|p| p.most_likely));
        found.ok_or_else(|| DesignError::NoStart { name: e.name.clone() })
    };
    problem.estimate.iter().map(value).collect()
}

fn explanation(found: &Identification, k: usize, names: &[String]) -> Option<String> {
    if found.is_estimable(k) {
        return None;
    }
    let companions: Vec<&str> = found.companions(k).iter().map(|&c| names[c].as_str()).collect();
    Some(match companions.is_empty() || found.unseen[k] {
        true => "no planned value depends on it".into(),
        false => format!("the trials will not tell it from {}", companions.join(", ")),
    })
}
