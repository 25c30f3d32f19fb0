//! What the residuals say: of their distribution, of single trials, of the model.
//!
//! | file | is |
//! |---|---|
//! | [`residuals`] | leverage, studentised residuals, Cook's distance, outliers; which trials pull the fit |
//! | [`normality`] | are the errors normal? |
//! | [`pattern`] | runs of signs, spread that grows |
//! | [`covariance`] | are the errors what the weights say? |
//! | `little` | do the errors of delays and throughput cancel as Little's law says? |
//! | [`lack_of_fit`] | is the model's misfit more than the error of measurement? |
//! | [`leave_out`] | each trial predicted by a fit to the others |
//! | `report` | all of it for a fit |

pub mod covariance;
pub mod lack_of_fit;
pub mod leave_out;
mod little;
pub mod normality;
pub mod pattern;
mod report;
pub mod residuals;

pub use report::{Diagnosis, MeasureDiagnosis, Outlier, PointDiagnosis, TestResult, TrialDiagnosis};
pub(crate) use report::{diagnose, leverages};
