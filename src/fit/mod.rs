//! Fitting: `(Problem, start) → Fit`.
//!
//! | file | is |
//! |---|---|
//! | [`trials`], `trials_csv` | measured operating points, in JSON and CSV |
//! | [`problem`], [`parameter_uses`] | a model, what is estimated, the trials; the checks of it |
//! | [`solver`] | the solver as a function from parameters to measures; residuals of a problem |
//! | [`weights`] | what makes measures comparable |
//! | [`start`] | where the search starts when nobody says |
//! | [`least_squares`], [`trust_region`], [`svd`], [`finite_difference`] | the engine: bounded Gauss-Newton on any residual function |
//! | [`inference`], [`distribution`] | rank, covariance, intervals |
//! | [`run`], `assemble` | the fit: all of it in order |
//! | [`report`], `report_text` | the result, in JSON and in words |
//! | [`f_test`], [`compare`] | nested structures against each other |

mod assemble;
pub mod compare;
pub(crate) mod digits;
pub mod distribution;
pub mod f_test;
pub mod finite_difference;
pub mod inference;
pub mod least_squares;
pub mod parameter_uses;
pub mod problem;
pub mod report;
mod report_text;
pub mod run;
pub mod solver;
pub mod start;
pub mod svd;
pub mod trials;
mod trials_csv;
pub mod trust_region;
pub mod utilization;
pub mod weights;

pub use compare::{CompareError, Comparison, compare};
pub use problem::{Estimated, Problem, ProblemError, Weighting};
pub use report::{Fit, ParameterEstimate, ParameterStatus};
pub use run::{FitError, FitOptions, Progress, fit, fit_with};
pub use trials::{Measured, Trial, Trials, TrialsError};
