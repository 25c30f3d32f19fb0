//! Predicting: `(Fit, scenarios) → values with bands`.
//!
//! | file | is |
//! |---|---|
//! | [`scenario`] | the operating points asked for: `users=10`, `users=1..100:5` |
//! | [`bands`] | values, confidence bands, notes on extrapolation |
//! | `bend` | whether predictions bend within their bands |
//! | `outside`, `hull` | whether an operating point lies among those of the trials |
//! | `write` | the result as CSV and as a table |
//! | [`plot`], `design_plot` | one measure against one controlled value, and what one trial there would bring, as SVG |
//! | [`chart`] | a model beside black boxes, parameters over time, as SVG |

pub mod bands;
mod bend;
pub mod chart;
mod design_plot;
mod hull;
mod outside;
pub mod plot;
pub mod scenario;
mod write;

pub use bands::{PredictError, PredictOptions, PredictedMeasure, PredictedRow, Predictions, SolverError, predict, predict_with};
pub use design_plot::plot_design;
pub use scenario::{ScenarioError, Scenarios};
