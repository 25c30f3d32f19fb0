//! What goes into a search and what comes out of it: a residual function, a start, bounds and options; a minimum and why it ended.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// What an evaluation should return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Residuals; a Jacobian that comes for free is welcome.
    Residuals,
    /// Residuals and the Jacobian, where the function has one.
    Jacobian,
}

/// The function at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Weighted residuals, `(n_obs)`.
    pub residuals: DVector<f64>,
    /// Their derivatives, `(n_obs, n_params)`; `None` lets the engine take differences.
    pub jacobian: Option<DMatrix<f64>>,
}

/// The function has no value at a point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(pub String);

/// A residual function.
pub trait ResidualModel {
    /// Number of residuals.
    fn n_obs(&self) -> usize;

    /// Number of parameters.
    fn n_params(&self) -> usize;

    /// The function at `x`, `(n_params)`, always inside the box.
    ///
    /// # Errors
    /// [`EvaluationError`] where it has no value; the engine then tries nearer points.
    fn evaluate(&mut self, x: &[f64], wanted: Wanted) -> Result<Evaluation, EvaluationError>;

    /// Says which parameters will move from here on; derivatives by the others may be left zero.
    fn set_free(&mut self, free: &[usize]) {
        let _ = free;
    }

    /// Length of the weighted observations, the yardstick of a perfect fit; 0 when unknown.
    fn magnitude(&self) -> f64 {
        0.0
    }

    /// Error of a value at the point last evaluated, relative to the observation, where values are found by iteration; 0 where they are known to rounding.
    fn error(&self) -> f64 {
        0.0
    }
}

/// How the engine comes by Jacobians after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jacobians {
    /// Evaluated at every point that is accepted.
    #[default]
    Evaluated,
    /// Carried along by secants; evaluated where a step fails, and at the minimum.
    Secant,
    /// Carried along by secants and evaluated where a step fails only: the minimum is approximate.
    SecantToTheEnd,
}

/// Where a search begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The point, `(n_params)`.
    pub x: &'a [f64],
    /// A Jacobian near it, `(n_obs, n_params)`, that spares an evaluation where secants are allowed.
    pub jacobian: Option<&'a DMatrix<f64>>,
}

/// Options of [`super::least_squares::minimise`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeastSquaresOptions {
    /// Most accepted or refused steps.
    pub max_iterations: usize,
    /// Most evaluations of the function, those of differences included.
    pub max_evaluations: usize,
    /// Relative offset at which a minimum counts as found.
    pub offset_tolerance: f64,
    /// Relative change of every parameter by an undamped step at which a minimum counts as found.
    pub step_tolerance: f64,
    /// Relative offset below which a stop for want of progress counts as the precision of the function, and a search ends where the sum of squares cannot tell more.
    pub precision_tolerance: f64,
    /// First radius, in multiples of the scaled start's length.
    pub initial_radius: f64,
    /// How Jacobians are come by.
    pub jacobians: Jacobians,
    /// Least sum of squares of interest elsewhere: the search is broken off where it is clear that it will end above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<f64>,
}

impl Default for LeastSquaresOptions {
    fn default() -> Self {
        Self {
            max_iterations: 2000,
            max_evaluations: 100_000,
            offset_tolerance: 1e-9,
            step_tolerance: 1e-13,
            precision_tolerance: 1e-5,
            initial_radius: 1.0,
            jacobians: Jacobians::Evaluated,
            beyond: None,
        }
    }
}

/// A box, `(n_params)` each; infinite where there is no bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Lower bounds.
    pub lower: Vec<f64>,
    /// Upper bounds.
    pub upper: Vec<f64>,
}

impl Bounds {
    /// No bounds on `n_params` parameters.
    pub fn unbounded(n_params: usize) -> Self {
        Self { lower: vec![f64::NEG_INFINITY; n_params], upper: vec![f64::INFINITY; n_params] }
    }
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The residuals are orthogonal to the tangent plane: a minimum.
    RelativeOffset,
    /// An undamped step no longer changes the parameters: a minimum.
    StepSize,
    /// A minimum to the precision with which the function is evaluated, or next to it where a kink lets no step lead nearer.
    Precision,
    /// The residuals are zero to rounding.
    PerfectFit,
    /// The minimum is above [`LeastSquaresOptions::beyond`], and was not searched to its end.
    Beyond,
    /// No shorter step lowers the sum of squares, and yet the point is not a minimum.
    Stalled,
    /// [`LeastSquaresOptions::max_iterations`] reached.
    MaxIterations,
    /// [`LeastSquaresOptions::max_evaluations`] reached.
    MaxEvaluations,
    /// The caller asked to stop.
    Cancelled,
}

impl StopReason {
    /// Whether a minimum was found.
    pub fn converged(self) -> bool {
        matches!(self, Self::RelativeOffset | Self::StepSize | Self::Precision | Self::PerfectFit)
    }
}

/// Where the search stands, after every step tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterate {
    /// Steps tried so far.
    pub iteration: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// Best point so far, `(n_params)`.
    pub x: Vec<f64>,
    /// Its weighted sum of squares.
    pub sum_of_squares: f64,
}

/// Where the search ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// The best point, `(n_params)`.
    pub x: Vec<f64>,
    /// Weighted residuals there, `(n_obs)`.
    pub residuals: DVector<f64>,
    /// Their Jacobian, `(n_obs, n_params)`.
    pub jacobian: DMatrix<f64>,
    /// Weighted sum of squares.
    pub sum_of_squares: f64,
    /// Relative offset, ≥ 0: 0 at an exact minimum.
    pub relative_offset: f64,
    /// Why the search ended.
    pub stop: StopReason,
    /// Steps tried.
    pub iterations: usize,
    /// Evaluations made.
    pub evaluations: usize,
}

/// Why there was no descent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The function has no value at the start.
    #[error("the function cannot be evaluated at the start")]
    Evaluation(#[from] EvaluationError),
    /// A residual or derivative at the start is not a number or infinite.
    #[error("a residual or derivative at the start is not finite")]
    NotFinite,
}
