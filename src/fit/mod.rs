//! Fitting: `(Problem, start) → Fit`.
//!
//! | file | is |
//! |---|---|
//! | [`trials`] | measured operating points, and their CSV |
//! | [`problem`] | a model, what is estimated, the trials; residuals and Jacobian of it |
//! | `least_squares` | the engine: damped Gauss-Newton on any residual function |
//! | `inference` | covariance, intervals, F-tests |
//! | [`report`] | the result, in JSON and in words |

pub mod problem;
pub mod report;
pub mod trials;
