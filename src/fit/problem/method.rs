//! How a problem is weighed, searched and inferred from, and what is known of a parameter beforehand.

use serde::{Deserialize, Serialize};

use super::ProblemError;
use crate::fit::correction::CorrectionOptions;
pub use crate::fit::engine::loss::Loss;

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
    /// By the covariance of trials at one operating point, pooled over all operating points measured more than once.
    Replicates,
    /// Plain least squares.
    None,
}

/// What is known of the scale of the error covariance `R`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorScale {
    /// `R` is known up to a factor, which the mean square error estimates.
    #[default]
    Estimated,
    /// `R` is known: standard errors or covariances are taken as they stand.
    Known,
}

/// How intervals of parameters are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Intervals {
    /// `estimate ± t · std_error`, from the linear approximation at the minimum.
    #[default]
    Wald,
    /// Where the profile of the sum of squares rises by what F allows; exact however curved the model is.
    Profile,
    /// `estimate ± t · std_error`, with standard errors from what the trials scatter by, whatever the weights say of their errors
    /// ([`crate::fit::inference::sandwich`]).
    Sandwich,
}

/// Several starts, where one may end in a minimum that is not the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// Their number beside the first, 1 to 10,000.
    pub n: usize,
    /// Seed of the Latin hypercube that they are drawn from.
    #[serde(default)]
    pub seed: u64,
}

/// What a bootstrap draws again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resampling {
    /// Residuals, added to the fitted values.
    #[default]
    Residuals,
    /// Whole trials.
    Trials,
}

/// Refits to resampled data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// Number of refits, 20 to 100,000.
    pub n: usize,
    /// What is drawn again.
    #[serde(default)]
    pub resampling: Resampling,
    /// Seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

/// What else is asked of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Method {
    /// What is summed over the residuals.
    #[serde(deserialize_with = "crate::model::unique::object")]
    pub loss: Loss,
    /// What is known of the scale of the errors.
    pub error_scale: ErrorScale,
    /// How intervals of parameters are made.
    pub intervals: Intervals,
    /// More starts than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<Starts>,
    /// Refits to resampled data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
    /// Whether each trial is also predicted by a fit to the others.
    pub leave_one_trial_out: bool,
    /// Correct the fit for the solver's error, by simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correct_solver: Option<CorrectionOptions>,
}

const MOST_STARTS: usize = 10_000;
const FEWEST_RESAMPLES: usize = 20;
const MOST_RESAMPLES: usize = 100_000;

impl Method {
    /// Advice to take intervals from what trials scatter by, where they go with the rest.
    pub(crate) fn or_sandwich(&self) -> &'static str {
        match self.check_sandwich() {
            Ok(()) => ", or ask for intervals from what trials scatter by (--intervals sandwich)",
            Err(_) => "",
        }
    }

    /// Whether intervals from what trials scatter by go with the rest.
    fn check_sandwich(&self) -> Result<(), ProblemError> {
        match (self.loss.is_squared(), self.correct_solver) {
            (false, _) => Err(ProblemError::NotWithSandwich { what: "a loss that bounds outliers" }),
            (true, Some(_)) => Err(ProblemError::NotWithSandwich { what: "a correction for the solver's error" }),
            (true, None) => Ok(()),
        }
    }

    /// Whether nothing special is asked.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    #[expect(clippy::cast_precision_loss, reason = "for an error text")]
    pub(super) fn check(&self) -> Result<(), ProblemError> {
        let threshold = self.loss.threshold();
        let usable = threshold > 0.0;
        if !usable {
            return Err(ProblemError::Method { what: "the threshold of the loss", value: threshold, expected: "a number above 0" });
        }
        if let Some((what, value, expected)) = self.correct_solver.and_then(|c| c.defect()) {
            return Err(ProblemError::Method { what, value, expected });
        }
        if self.intervals == Intervals::Sandwich {
            self.check_sandwich()?;
        }
        if let Some(n) = self.starts.map(|s| s.n).filter(|n| !(1..=MOST_STARTS).contains(n)) {
            return Err(ProblemError::Method { what: "the number of starts", value: n as f64, expected: "1 to 10000" });
        }
        match self.bootstrap.map(|b| b.n).filter(|n| !(FEWEST_RESAMPLES..=MOST_RESAMPLES).contains(n)) {
            Some(n) => Err(ProblemError::Method { what: "the number of resamples", value: n as f64, expected: "20 to 100000" }),
            None => Ok(()),
        }
    }
}

/// Scale on which a parameter is searched and its interval made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    /// Its own.
    #[default]
    None,
    /// Its logarithm: it stays above 0 and its interval is a factor up and down.
    Log,
}

impl Transform {
    /// Whether the parameter is searched on its own scale.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// What experts expect of a parameter, `[least, most likely, most]`: a normal density on either side of the most likely
/// value, with the ends three standard deviations away.
///
/// A third of each arm is the standard deviation of the three-point estimates of project planning (D. Malcolm et al.,
/// Operations Research 7 (1959)), taken for each side alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct Prior {
    /// Least value.
    pub min: f64,
    /// Most likely value.
    pub most_likely: f64,
    /// Most.
    pub max: f64,
}

/// Smallest arm of a prior, relative to its range: an expert who puts the most likely value at an end means "not beyond".
const SMALLEST_ARM: f64 = 1e-3;

impl Prior {
    /// Whether the three are finite, in order, and not all one.
    pub fn is_range(&self) -> bool {
        [self.min, self.most_likely, self.max].iter().all(|v| v.is_finite())
            && self.min <= self.most_likely
            && self.most_likely <= self.max
            && self.min < self.max
    }

    /// Standard deviation on the side of `x`, > 0.
    pub fn deviation(&self, x: f64) -> f64 {
        let arm = if x < self.most_likely { self.most_likely - self.min } else { self.max - self.most_likely };
        arm.max(SMALLEST_ARM * (self.max - self.min)) / 3.0
    }
}

impl From<[f64; 3]> for Prior {
    fn from([min, most_likely, max]: [f64; 3]) -> Self {
        Self { min, most_likely, max }
    }
}

impl From<Prior> for [f64; 3] {
    fn from(prior: Prior) -> Self {
        [prior.min, prior.most_likely, prior.max]
    }
}
