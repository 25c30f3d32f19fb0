//! The result of a fit: everything that a reader, a comparison or a prediction needs.
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | the result |
//! | `assemble`, `intervals`, `extras` | how it is made from the end of a search |
//! | `notes`, `impossible` | what a reader should know besides |
//! | `text` | the result in words |
//! | [`utilization`] | how busy each resource is |

pub(crate) mod assemble;
pub(crate) mod digits;
pub(crate) mod extras;
mod impossible;
mod intervals;
pub(crate) mod new_errors;
mod notes;
mod text;
pub mod utilization;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use crate::fit::inference::regions::JointRegion;
use crate::{
    fit::{
        correction::CorrectionReport,
        design::WeakDirection,
        diagnosis::Diagnosis,
        engine::least_squares::StopReason,
        inference::{
            bootstrap::BootstrapReport,
            distribution::{normal_two_sided, t_two_sided, t_two_sided_at},
            information::Information,
            profile::Profile,
            sees,
            variances::{EstimatedVariances, quadratic},
        },
        problem::{ErrorScale, Prior, Problem, ProblemError, trials::BYTE_ORDER_MARK},
        search::{
            multistart::StartsReport,
            start::StartOrigin,
            weights::{WeightSource, same_column},
            whole::WholeNumber,
        },
    },
    model::Measure,
};

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
    /// Whether the scale of the errors is estimated by `mean_square_error` or taken as known, 1.
    #[serde(default)]
    pub error_scale: ErrorScale,
    /// Measured values that count.
    pub n_observations: usize,
    /// Level of all intervals, in (0, 1).
    pub confidence: f64,
    /// How the intervals were made.
    pub interval_method: IntervalMethod,
    /// Degrees of freedom of Student's t where they are not those of the residuals: trials less parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_degrees_of_freedom: Option<usize>,
    /// Covariance of the estimates, in the order of `parameters`, scaled by `mean_square_error`; `null` for a pair with a
    /// parameter that has none; absent altogether when no parameter has.
    pub covariance: Option<Vec<Vec<Option<f64>>>>,
    /// Correlations, likewise.
    pub correlation: Option<Vec<Vec<Option<f64>>>>,
    /// What the data can and cannot tell apart.
    pub identifiability: Identifiability,
    /// Joint confidence of the parameters that have an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<JointRegion>,
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
    /// Likelihood, AIC, AICc and BIC; absent without a minimum, under a loss that bounds outliers, or at a perfect fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<Information>,
    /// Parameters that the model ties to estimated ones.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub derived: IndexMap<String, DerivedEstimate>,
    /// What the priors did, by parameter; `sum_of_squares` is the data's alone.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub priors: IndexMap<String, PriorReport>,
    /// Parameters that are whole numbers, with what their neighbours give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_numbers: Vec<WholeNumber>,
    /// Where several starts led.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartsReport>,
    /// Profiles of the sum of squares, by parameter.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub profiles: IndexMap<String, Profile>,
    /// Refits to resampled data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapReport>,
    /// How the fit was corrected for the solver's error, where that was asked for: values predicted are those of the analytic solver
    /// times the ratios in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<CorrectionReport>,
    /// What the residuals say.
    #[serde(default)]
    pub diagnosis: Diagnosis,
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
    /// Degrees of freedom of that, where variances are estimated from the residuals and each estimate has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degrees_of_freedom: Option<f64>,
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
    /// How its interval was made; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_method: Option<IntervalMethod>,
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
    /// The same on the logarithmic scale: a factor up and down.
    WaldLog,
    /// Where the profile of the sum of squares rises by what F allows.
    Profile,
    /// `estimate ± t · std_error`, from what the trials scatter by.
    Sandwich,
    /// The same on the logarithmic scale.
    SandwichLog,
}

/// A parameter that the model ties to estimated ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedEstimate {
    /// Its value at the estimates.
    pub estimate: f64,
    /// Its standard error, to first order; absent where the data do not determine it.
    pub std_error: Option<f64>,
    /// Lower end of its confidence interval.
    pub lower: Option<f64>,
    /// Upper end of its confidence interval.
    pub upper: Option<f64>,
}

/// What a prior did to an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorReport {
    /// The prior, `[least, most likely, most]`.
    pub prior: Prior,
    /// Its standard deviation on the side of the estimate.
    pub deviation: f64,
    /// How far the estimate is from the most likely value, in standard deviations of the prior.
    pub pull: f64,
    /// Share of what is known of the parameter that comes from the prior, 0 to 1: the variance of the estimate over that of the prior.
    pub share: Option<f64>,
    /// What the data say without any prior; absent where they do not determine the parameter.
    pub data_alone: Option<DataAlone>,
}

/// An estimate without priors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataAlone {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub std_error: Option<f64>,
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
    /// `unidentified` as vectors over `free`, in steps relative to `scale`.
    pub null_directions: Vec<Vec<f64>>,
    /// Length of each free parameter's column of the weighted Jacobian; 1 where it is zero.
    pub scale: Vec<f64>,
    /// Covariance on what is seen, over `free`, scaled by the mean square error; absent with `no_covariance`.
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Where several variances are estimated, from the residuals or by replicates: what makes `covariance` uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_variances: Option<EstimatedVariances>,
    /// Directions that the data hardly see or do not see, with what would settle them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weak: Vec<WeakDirection>,
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
    /// Whether weights count up to a common scale, which the mean square error estimates.
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

impl Identifiability {
    /// Variance `hᵀ P h` of what has the `gradient` by the free parameters, `(n_free)`. `None` where no error could be estimated, or where it
    /// depends on a combination of parameters that the data do not see.
    pub fn variance_along(&self, gradient: &[f64]) -> Option<f64> {
        let seen = sees(gradient, &self.scale, self.null_directions.iter().map(Vec::as_slice));
        self.covariance.as_ref().filter(|_| seen).map(|covariance| quadratic(covariance, gradient))
    }
}

impl Fit {
    /// The estimates by name, in order.
    pub fn estimates(&self) -> impl Iterator<Item = (&str, f64)> {
        self.parameters.iter().map(|(name, p)| (name.as_str(), p.estimate))
    }

    /// Half the width of an interval of level `confidence`, in standard errors: a quantile of Student's t, or of the normal
    /// distribution where the errors are known; with the degrees of freedom of the residuals, which is as if their variances were known up
    /// to one scale. `None` without degrees of freedom.
    pub fn quantile(&self, confidence: f64) -> Option<f64> {
        match (self.interval_degrees_of_freedom, self.error_scale) {
            (Some(dof), _) => t_two_sided(confidence, dof),
            (None, ErrorScale::Estimated) => t_two_sided(confidence, self.degrees_of_freedom),
            (None, ErrorScale::Known) => normal_two_sided(confidence),
        }
    }

    /// The same for what has the `gradient` by the free parameters, `(n_free)`: with degrees of freedom of its own where several variances are estimated.
    pub fn quantile_along(&self, confidence: f64, gradient: &[f64]) -> Option<f64> {
        match &self.identifiability.estimated_variances {
            Some(variances) => t_two_sided_at(confidence, variances.degrees_of_freedom(gradient)),
            None => self.quantile(confidence),
        }
    }

    /// The same for one new measurement of `measure` with an error of `variance` around what has the `gradient`.
    pub fn quantile_of_new(&self, confidence: f64, gradient: &[f64], measure: &Measure, variance: f64) -> Option<f64> {
        match &self.identifiability.estimated_variances {
            Some(variances) => {
                // What does not count because it has the values of another is measured as well as that.
                let place = self.problem.trials.measures.iter().position(|m| m == measure);
                let measure = place.and_then(|k| same_column(&self.problem, k)).unwrap_or(measure);
                t_two_sided_at(confidence, variances.degrees_of_freedom_of_new(gradient, measure, variance))
            }
            None => self.quantile(confidence),
        }
    }

    /// Reads a fit that was stored as JSON, and checks that it belongs together.
    ///
    /// # Errors
    /// [`FitFileError`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, FitFileError> {
        let fit: Self =
            serde_json::from_slice(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)).map_err(|e| FitFileError::Json(e.to_string()))?;
        fit.problem.check()?;
        let expected = fit.problem.estimated_names();
        if !fit.parameters.keys().eq(expected.iter()) {
            return Err(FitFileError::Inconsistent("its parameters are not those of its problem"));
        }
        let id = &fit.identifiability;
        let n = id.free.len();
        let square = id.covariance.as_ref().is_none_or(|c| c.len() == n && c.iter().all(|row| row.len() == n));
        let sized = id.scale.len() == n
            && id.null_directions.iter().all(|d| d.len() == n)
            && id.estimated_variances.as_ref().is_none_or(|v| v.is_over(n));
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
    Problem(#[from] ProblemError),
    /// Its parts do not belong together.
    #[error("not a fit report: {0}")]
    Inconsistent(&'static str),
}
