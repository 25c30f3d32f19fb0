//! A problem: a model, what is estimated, what is controlled, what is measured, and the trials; and the checks that it
//! must pass before anything is solved.
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | the problem |
//! | [`method`] | how it is weighed, searched and inferred from; what is known of a parameter beforehand |
//! | `check`, `error` | the checks |
//! | [`parameter_uses`] | where a model uses its parameters |
//! | `places` | interpolation between operating points |
//! | [`trials`], `trials_csv`, `trials_json`, `covariance` | measured operating points |

use serde::{Deserialize, Serialize};

mod check;
mod covariance;
mod error;
pub mod method;
pub mod parameter_uses;
pub(crate) mod places;
pub mod trials;
mod trials_csv;
mod trials_json;

pub use error::ProblemError;
pub use method::{Bootstrap, ErrorScale, Intervals, Method, Prior, Resampling, Starts, Transform, Weighting};

use self::{
    parameter_uses::{Role, parameter_uses},
    trials::Trials,
};
use crate::model::{Bindings, Expression, Model, Number, Parameter, ParameterValue};

/// What is to be fitted to what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The model; `$parameters` are estimated, controlled by the trials, or assumed.
    pub model: Model,
    /// Parameters to be estimated.
    pub estimate: Vec<Estimated>,
    /// Known constants, by parameter name; they overrule the model's own definitions.
    #[serde(default)]
    pub assumed: Bindings,
    /// Measured operating points.
    pub trials: Trials,
    /// How residuals are weighed.
    #[serde(default)]
    pub weighting: Weighting,
    /// Level of intervals and tests, in (0, 1).
    pub confidence: f64,
    /// What else is asked: loss, starts, profiles, resampling.
    #[serde(default, skip_serializing_if = "Method::is_default")]
    pub method: Method,
}

/// A parameter to be estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// Name without `$`.
    pub name: String,
    /// Where the search starts; `None` lets the problem choose from the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// Lower bound; `None` for none (but a model's times and counts are never negative).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What experts expect of it; `None` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
    /// Scale on which it is searched and its interval made.
    #[serde(default, skip_serializing_if = "Transform::is_none")]
    pub transform: Transform,
}

impl Estimated {
    /// A parameter whose start and bounds are chosen for it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), start: None, min: None, max: None, prior: None, transform: Transform::None }
    }

    /// The same with a start.
    #[must_use]
    pub fn starting_at(self, start: f64) -> Self {
        Self { start: Some(start), ..self }
    }
}

impl Problem {
    /// Names of the estimated parameters, in order.
    pub fn estimated_names(&self) -> Vec<String> {
        self.estimate.iter().map(|e| e.name.clone()).collect()
    }

    /// Lower and upper bound of each estimated parameter: its own, narrowed to what its parts in the model allow.
    pub fn bounds(&self) -> Vec<(f64, f64)> {
        let uses = parameter_uses(&self.model);
        let natural = |name: &str| {
            let roles = uses.get(name).map_or(&[][..], Vec::as_slice);
            roles.iter().map(|r| r.range()).fold((f64::NEG_INFINITY, f64::INFINITY), |a, b| (a.0.max(b.0), a.1.min(b.1)))
        };
        let both = |e: &Estimated| {
            let (low, high) = natural(&e.name);
            (e.min.map_or(low, |min| min.max(low)), e.max.map_or(high, |max| max.min(high)))
        };
        self.estimate.iter().map(both).collect()
    }

    /// Values of all parameters that trial `trial` and the assumptions bind; estimated ones are left out.
    pub fn bindings_of(&self, trial: usize) -> Bindings {
        let mut values = self.assumed.clone();
        if let Some(trial) = self.trials.trials.get(trial) {
            trial.controlled.iter().for_each(|(name, value)| values.set(name, value));
        }
        values
    }

    /// The value that the model itself gives parameter `name` under the assumptions and the first trial's controlled
    /// values; `None` where it gives none or the value hangs on an estimated parameter.
    pub fn defined_value(&self, name: &str) -> Option<f64> {
        self.model.parameters.iter().find(|p| p.name == name)?;
        self.model.bindings(&self.bindings_of(0)).ok()?.get(name).filter(|v| v.is_finite())
    }

    /// Measured values that count: present, and not weighed with 0.
    pub fn n_observations(&self) -> usize {
        let cells = self.trials.trials.iter().flat_map(|t| t.measured.iter().flatten());
        cells.filter(|m| self.weighting != Weighting::Auto || m.weight != Some(0.0)).count()
    }

    /// Whether each estimated parameter counts servers, threads, customers or copies, and so takes whole numbers only.
    pub fn whole_numbers(&self) -> Vec<bool> {
        let uses = parameter_uses(&self.model);
        self.estimate.iter().map(|e| uses.get(&e.name).is_some_and(|roles| roles.contains(&Role::Count))).collect()
    }

    /// Ties parameter `name` to others: wherever the model uses it, it stands for `expression`, as in `2 * $d1`.
    ///
    /// # Errors
    /// [`ProblemError::Tie`] when the expression cannot be read or mentions `name`, or when `name` cannot be a parameter's name or has its
    /// value from elsewhere: estimated, given or controlled; [`ProblemError::NotInModel`] when the model has no such parameter.
    pub fn tie(&mut self, name: &str, expression: &str) -> Result<(), ProblemError> {
        let failed = |reason: String| ProblemError::Tie { name: name.to_owned(), reason };
        if Number::parse(&format!("${name}")).is_none() {
            return Err(failed("expected a parameter's name".into()));
        }
        let value = ParameterValue::parse(expression).map_err(|e| failed(e.to_string()))?;
        let mentions_itself = match &value {
            ParameterValue::Expression(text) => Expression::parse(text).is_ok_and(|e| e.parameters().iter().any(|p| p == name)),
            ParameterValue::Number(_) => false,
            _ => return Err(failed("expected an expression over other parameters, as in 2 * $d1".into())),
        };
        let elsewhere = [
            (self.estimate.iter().any(|e| e.name == name), "it is estimated itself"),
            (self.assumed.get(name).is_some(), "it is given a value"),
            (self.trials.controlled_names().contains(&name), "the trials control it"),
            (mentions_itself, "its expression mentions it"),
        ];
        if let Some((_, reason)) = elsewhere.into_iter().find(|(is_so, _)| *is_so) {
            return Err(failed(reason.into()));
        }
        let uses = parameter_uses(&self.model);
        if !uses.contains_key(name) && self.model.parameters.iter().all(|p| p.name != name) {
            return Err(ProblemError::NotInModel { part: "tied", name: name.to_owned(), available: uses.into_keys().collect() });
        }
        self.model.parameters.retain(|p| p.name != name);
        self.model.parameters.push(Parameter { name: name.to_owned(), value });
        Ok(())
    }

    /// Expert priors, by index of the estimated parameter.
    pub fn priors(&self) -> impl Iterator<Item = (usize, Prior)> {
        self.estimate.iter().enumerate().filter_map(|(j, e)| Some((j, e.prior?)))
    }
}
