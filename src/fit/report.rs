//! The result of a fit.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// The result of a fit: everything that a reader, a comparison or a prediction needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Whether a minimum was found.
    pub converged: bool,
    /// What was fitted, whole, so that the file stands by itself.
    pub problem: Problem,
    /// The estimated parameters, in the problem's order.
    pub parameters: IndexMap<String, ParameterEstimate>,
}

/// The estimate of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterEstimate {
    /// The least-squares estimate.
    pub estimate: f64,
    /// Its standard error; absent with a reason in `status`.
    pub std_error: Option<f64>,
    /// Lower end of its confidence interval.
    pub lower: Option<f64>,
    /// Upper end of its confidence interval.
    pub upper: Option<f64>,
}
