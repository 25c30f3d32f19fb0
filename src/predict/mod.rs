//! Predicting: `(Fit, scenarios) → values with bands`.
//!
//! | file | is |
//! |---|---|
//! | [`scenario`] | the operating points asked for: `users=10`, `users=1..100:5` |
//! | [`bands`] | values, confidence bands, notes on extrapolation |
//! | `write` | the result as CSV and as a table |
//! | [`plot`] | one measure against one controlled value, as SVG |

pub mod bands;
pub mod plot;
pub mod scenario;
mod write;

pub use bands::{PredictError, PredictOptions, PredictedMeasure, PredictedRow, Predictions, SolverError, predict, predict_with};
pub use scenario::{ScenarioError, Scenarios};
