//! A problem: a model, what is estimated, what is controlled, what is measured, and the trials; and the checks that it
//! must pass before anything is solved.

use serde::{Deserialize, Serialize};

use super::{
    parameter_uses::{Role, parameter_uses},
    trials::{Trials, TrialsError},
};
use crate::{
    model::{Bindings, Model},
    solve::{self, SolveError},
};

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
}

impl Estimated {
    /// A parameter whose start and bounds are chosen for it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), start: None, min: None, max: None }
    }

    /// The same with a start.
    #[must_use]
    pub fn starting_at(self, start: f64) -> Self {
        Self { start: Some(start), ..self }
    }
}

/// How residuals are weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weighting {
    /// By the standard errors or weights of the file; where it gives none, each measure by its own residual variance.
    #[default]
    Auto,
    /// Each measure by its own residual variance, whatever the file says of its errors: right where standard errors within a
    /// trial say little of the differences between trials, as on a machine whose speed drifts.
    Residual,
    /// Plain least squares.
    None,
}

/// Why a problem cannot be fitted as it stands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// The trials themselves.
    #[error("the trials cannot be used")]
    Trials(#[from] TrialsError),
    /// Nothing to estimate.
    #[error("nothing to estimate: name at least one $parameter of the model{}", listed(.available))]
    NothingToEstimate {
        /// Parameters of the model that could be.
        available: Vec<String>,
    },
    /// A name that the model does not use.
    #[error("{part} parameter \"{name}\" is not used in the model{}", listed(.available))]
    NotInModel {
        /// `estimated`, `controlled` or `assumed`.
        part: &'static str,
        /// The name.
        name: String,
        /// Names that the model uses.
        available: Vec<String>,
    },
    /// A parameter named twice.
    #[error("parameter \"{name}\" is to be estimated twice")]
    EstimatedTwice {
        /// The name.
        name: String,
    },
    /// A parameter with two parts.
    #[error("parameter \"{name}\" is both {first} and {second}: it can be one")]
    TwoParts {
        /// The name.
        name: String,
        /// One part.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A trial lacks a controlled value that others have.
    #[error("trial \"{trial}\" has no value of ${name}, which other trials have")]
    ControlledMissing {
        /// The trial.
        trial: String,
        /// The name.
        name: String,
    },
    /// A parameter without a value.
    #[error("parameter ${name} has no value: estimate it, give it a column ${name} in the trials, or set it")]
    Unbound {
        /// The name.
        name: String,
    },
    /// Bounds that leave no room.
    #[error("parameter \"{name}\": the bounds {min} to {max} leave no room")]
    Bounds {
        /// The name.
        name: String,
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// A start outside the bounds, or no number.
    #[error("parameter \"{name}\": the start {start} is not between {min} and {max}")]
    Start {
        /// The name.
        name: String,
        /// The start.
        start: f64,
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// An assumed value that is no number.
    #[error("parameter \"{name}\": the value {value} is not a finite number")]
    Assumed {
        /// The name.
        name: String,
        /// The value.
        value: f64,
    },
    /// A confidence level outside (0, 1).
    #[error("confidence {0} is not between 0 and 1")]
    Confidence(f64),
    /// A measure of something that the model does not have.
    #[error(transparent)]
    Measure(#[from] SolveError),
    /// A parameter that takes whole numbers only.
    #[error("parameter \"{name}\" is a number of servers, threads or copies: give it a value, and compare fits with several")]
    WholeNumber {
        /// The name.
        name: String,
    },
    /// Fewer measurements than parameters.
    #[error("{n_obs} measured values cannot determine {n_params} parameters")]
    TooFewMeasurements {
        /// Measured values that count (present, weight above 0).
        n_obs: usize,
        /// Parameters.
        n_params: usize,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { " (it has no $parameters)".into() } else { format!(" (it uses ${})", names.join(", $")) }
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

    /// Checks everything that can be checked without solving the model.
    ///
    /// # Errors
    /// The first [`ProblemError`] found.
    pub fn check(&self) -> Result<(), ProblemError> {
        self.trials.check()?;
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(ProblemError::Confidence(self.confidence));
        }
        self.check_names()?;
        self.check_ranges()?;
        for measure in &self.trials.measures {
            solve::measure::check(&self.model, measure)?;
        }
        let (n_obs, n_params) = (self.n_observations(), self.estimate.len());
        if n_obs < n_params { Err(ProblemError::TooFewMeasurements { n_obs, n_params }) } else { Ok(()) }
    }

    fn check_names(&self) -> Result<(), ProblemError> {
        let uses = parameter_uses(&self.model);
        let available: Vec<String> = uses.keys().cloned().collect();
        if self.estimate.is_empty() {
            return Err(ProblemError::NothingToEstimate { available });
        }
        let controlled = self.trials.controlled_names();
        let not_in_model = |part, name: &str| ProblemError::NotInModel { part, name: name.to_owned(), available: available.clone() };
        let is_defined = |name: &str| self.model.parameters.iter().any(|p| p.name == name);
        for (index, estimated) in self.estimate.iter().enumerate() {
            let name = estimated.name.as_str();
            if !uses.contains_key(name) {
                return Err(not_in_model("estimated", name));
            }
            if uses[name].contains(&Role::Count) {
                return Err(ProblemError::WholeNumber { name: name.to_owned() });
            }
            if self.estimate[..index].iter().any(|e| e.name == name) {
                return Err(ProblemError::EstimatedTwice { name: name.to_owned() });
            }
            if controlled.contains(&name) {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "estimated", second: "controlled by the trials" });
            }
            if self.assumed.get(name).is_some() {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "estimated", second: "given a value" });
            }
        }
        if let Some(name) = controlled.iter().find(|n| !uses.contains_key(**n)) {
            return Err(not_in_model("controlled", name));
        }
        for (name, value) in self.assumed.iter() {
            if !uses.contains_key(name) && !is_defined(name) {
                return Err(not_in_model("assumed", name));
            }
            if controlled.contains(&name) {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "given a value", second: "controlled by the trials" });
            }
            if !value.is_finite() {
                return Err(ProblemError::Assumed { name: name.to_owned(), value });
            }
        }
        self.check_bound(&controlled, &available, is_defined)
    }

    fn check_bound(&self, controlled: &[&str], used: &[String], is_defined: impl Fn(&str) -> bool) -> Result<(), ProblemError> {
        for name in controlled {
            if let Some(trial) = self.trials.trials.iter().find(|t| t.controlled.get(name).is_none()) {
                return Err(ProblemError::ControlledMissing { trial: trial.id.clone(), name: (*name).to_owned() });
            }
        }
        let is_bound = |name: &String| {
            controlled.contains(&name.as_str())
                || self.assumed.get(name).is_some()
                || self.estimate.iter().any(|e| e.name == *name)
                || is_defined(name)
        };
        match used.iter().find(|name| !is_bound(name)) {
            Some(name) => Err(ProblemError::Unbound { name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), ProblemError> {
        for (estimated, (min, max)) in self.estimate.iter().zip(self.bounds()) {
            let name = estimated.name.clone();
            let is_number = |bound: Option<f64>| bound.is_none_or(|b| !b.is_nan());
            if !(min < max && is_number(estimated.min) && is_number(estimated.max)) {
                return Err(ProblemError::Bounds { name, min: estimated.min.unwrap_or(min), max: estimated.max.unwrap_or(max) });
            }
            if let Some(start) = estimated.start.filter(|s| !(s.is_finite() && min <= *s && *s <= max)) {
                return Err(ProblemError::Start { name, start, min, max });
            }
        }
        Ok(())
    }
}
