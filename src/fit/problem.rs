//! A problem: a model, what is estimated, what is controlled, what is measured, and the trials.

use serde::{Deserialize, Serialize};

use super::trials::Trials;
use crate::model::{Bindings, Model};

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

/// How residuals are weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weighting {
    /// By the standard errors or weights of the file; where it gives none, each measure by its own residual variance.
    #[default]
    Auto,
    /// Plain least squares.
    None,
}
