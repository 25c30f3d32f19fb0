//! The result of a fit: everything that a reader, a comparison or a prediction needs.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{least_squares::StopReason, problem::Problem, start::StartOrigin, weights::WeightSource};
use crate::model::Measure;

/// The result of a fit. It holds the whole problem, so that it can be stored and predicted from by itself; no number in
/// it is NaN or infinite: what does not exist is absent, with the reason beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Whether a minimum was found.
    pub converged: bool,
    /// Why the search ended.
    pub stop: StopReason,
    /// The estimated parameters, in the problem's order.
    pub parameters: IndexMap<String, ParameterEstimate>,
    /// `E`, the weighted sum of squared residuals.
    pub sum_of_squares: f64,
    /// Measured values that count, less the number of parameters.
    pub degrees_of_freedom: usize,
    /// `E / degrees_of_freedom`, the fitted scale of the error variances; absent without degrees of freedom.
    pub mean_square_error: Option<f64>,
    /// Measured values that count.
    pub n_observations: usize,
    /// Level of all intervals, in (0, 1).
    pub confidence: f64,
    /// How the intervals were made.
    pub interval_method: IntervalMethod,
    /// Covariance of the estimates, in the order of `parameters`, scaled by `mean_square_error`; `null` for a pair with a
    /// parameter that has none; absent altogether when no parameter has.
    pub covariance: Option<Vec<Vec<Option<f64>>>>,
    /// Correlations, likewise.
    pub correlation: Option<Vec<Vec<Option<f64>>>>,
    /// What the data can and cannot tell apart.
    pub identifiability: Identifiability,
    /// Steps of the search, over all rounds of weighting.
    pub iterations: usize,
    /// Solutions of all trials, over all rounds of weighting.
    pub evaluations: usize,
    /// Projection of the residuals on the tangent plane relative to the residuals; 0 at an exact minimum.
    pub relative_offset: f64,
    /// How the measures were weighed.
    pub weighting: WeightingReport,
    /// Measured less predicted, by trial and measure, in the measures' units; `null` where nothing was measured.
    pub residuals: Vec<IndexMap<Measure, Option<f64>>>,
    /// Predicted values, by trial and measure.
    pub predicted: Vec<IndexMap<Measure, f64>>,
    /// Largest fitted or measured utilization over the trials, per server, by `processor NAME` or `task NAME`.
    pub largest_utilizations: IndexMap<String, f64>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What was fitted, whole, so that the result stands by itself.
    pub problem: Problem,
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
    /// Where the search started.
    pub start: f64,
    /// How the start was found.
    pub start_from: StartOrigin,
    /// Lower bound of the search, where there is one.
    pub min: Option<f64>,
    /// Upper bound of the search, where there is one.
    pub max: Option<f64>,
    /// Whether it has an interval, or why not.
    pub status: ParameterStatus,
    /// `status` in words, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

/// Whether a parameter has an interval, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterStatus {
    /// Estimated, with an interval.
    Free,
    /// The best value is the lower bound.
    AtLowerBound,
    /// The best value is the upper bound.
    AtUpperBound,
    /// The data do not determine it, alone or apart from others.
    RankDeficient,
    /// No minimum was found.
    NotConverged,
    /// As many parameters as measurements: nothing is left to estimate the error from.
    NoDegreesOfFreedom,
}

/// How intervals are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// `estimate ± t · std_error`, from the linear approximation at the minimum.
    Wald,
}

/// What the data can and cannot tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identifiability {
    /// Number of directions in parameter space that the data see.
    pub rank: usize,
    /// Parameters that are not at a bound, in order: the rows and columns of everything below.
    pub free: Vec<String>,
    /// Singular values of the weighted, column-scaled Jacobian, descending.
    pub singular_values: Vec<f64>,
    /// Largest over smallest singular value; absent when the smallest is zero.
    pub condition_number: Option<f64>,
    /// The combination of parameters that the data tell least about.
    pub weakest_direction: Option<String>,
    /// Combinations that the data do not see at all, in words.
    pub unidentified: Vec<String>,
    /// The same as vectors over `free`, in steps relative to `scale`.
    pub null_directions: Vec<Vec<f64>>,
    /// Length of each free parameter's column of the weighted Jacobian; 1 where it is zero.
    pub scale: Vec<f64>,
    /// Covariance on what is seen, over `free`, scaled by the mean square error; absent with `no_covariance`.
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Why there is no covariance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_covariance: Option<String>,
}

/// How the measures were weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightingReport {
    /// Rounds of estimating residual variances; 0 where none is estimated.
    pub rounds: usize,
    /// Whether the residual variances settled.
    pub settled: bool,
    /// Always true: weights count up to a common scale, which the mean square error estimates.
    pub scaled_by_mean_square_error: bool,
    /// By measure.
    pub measures: IndexMap<Measure, MeasureFit>,
}

/// How well one measure was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureFit {
    /// Values that count.
    pub n: usize,
    /// Where its weights come from.
    pub weighted_by: WeightSource,
    /// Root mean square of its residuals, in its units.
    pub rms_residual: f64,
    /// Root mean square of the residuals relative to that of the measured values.
    pub relative_residual: Option<f64>,
    /// Typical standard deviation of one measurement: of the error of a new one. Absent without degrees of freedom.
    pub deviation: Option<f64>,
}

impl Fit {
    /// The estimates by name, in order.
    pub fn estimates(&self) -> impl Iterator<Item = (&str, f64)> {
        self.parameters.iter().map(|(name, p)| (name.as_str(), p.estimate))
    }

    /// Reads a fit that was stored as JSON, and checks that it belongs together.
    ///
    /// # Errors
    /// [`FitFileError`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, FitFileError> {
        let fit: Self = serde_json::from_slice(bytes).map_err(|e| FitFileError::Json(e.to_string()))?;
        fit.problem.check()?;
        let expected = fit.problem.estimated_names();
        if !fit.parameters.keys().eq(expected.iter()) {
            return Err(FitFileError::Inconsistent("its parameters are not those of its problem"));
        }
        let id = &fit.identifiability;
        let n = id.free.len();
        let square = id.covariance.as_ref().is_none_or(|c| c.len() == n && c.iter().all(|row| row.len() == n));
        let sized = id.scale.len() == n && id.null_directions.iter().all(|d| d.len() == n);
        if !(square && sized && id.free.iter().all(|name| fit.parameters.contains_key(name))) {
            return Err(FitFileError::Inconsistent("its covariance has another size than its parameters"));
        }
        Ok(fit)
    }
}

/// A stored fit that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitFileError {
    /// Not JSON, or JSON of another shape.
    #[error("not a fit report: {0}")]
    Json(String),
    /// Its problem is not one.
    #[error("the problem inside the fit report cannot be used")]
    Problem(#[from] super::problem::ProblemError),
    /// Its parts do not belong together.
    #[error("not a fit report: {0}")]
    Inconsistent(&'static str),
}
