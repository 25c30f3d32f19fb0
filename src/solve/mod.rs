//! Solving: `(Model, parameter values) → Solution` of named measures, with derivatives.
//!
//! Every solver is generic over [`crate::model::Scalar`], so that one pass yields values and their sensitivities.

mod solution;

pub use solution::*;

use crate::model::{Bindings, Measure, Model, UnboundParameter};

/// Which algorithm solves the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// The best one that takes the model, said in the solution.
    #[default]
    Auto,
    /// Exact mean value analysis; product-form networks only.
    Exact,
    /// The layered approximation.
    Layered,
    /// Discrete-event simulation.
    Simulate,
}

/// How to solve.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveOptions {
    /// The algorithm.
    pub solver: Solver,
    /// Relative change of every waiting time at which the fixed point counts as reached.
    pub tolerance: f64,
    /// Largest number of sweeps.
    pub max_iterations: usize,
    /// Seed of the simulator.
    pub seed: u64,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self { solver: Solver::Auto, tolerance: 1e-9, max_iterations: 2000, seed: 1 }
    }
}

/// Why a model has no solution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// A `$name` without a value.
    #[error(transparent)]
    Unbound(#[from] UnboundParameter),
    /// A parameter's expression or value that cannot be used.
    #[error("{element}: {reason}")]
    Unusable {
        /// The element of the model.
        element: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The model uses a construct that the asked solver does not take.
    #[error("the {solver} solver does not take {construct} ({element})")]
    Unsupported {
        /// The solver asked.
        solver: &'static str,
        /// The construct, in the field's words.
        construct: &'static str,
        /// Where in the model.
        element: String,
    },
    /// Open arrivals exceed what a resource can serve: there is no steady state.
    #[error("no steady state: {resource} is offered {utilization:.3} of its {capacity} servers by open arrivals")]
    Saturated {
        /// The resource.
        resource: String,
        /// Offered load, in servers.
        utilization: f64,
        /// Servers there are.
        capacity: f64,
    },
    /// A measure names something that the model does not have.
    #[error("measure {measure}: {reason}")]
    UnknownMeasure {
        /// The measure.
        measure: Measure,
        /// What is missing.
        reason: String,
    },
}

/// Values of measures and their derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivities {
    /// Values, `(n_measures)`.
    pub values: Vec<f64>,
    /// Derivatives `d value / d parameter`, `(n_measures, n_parameters)`.
    pub jacobian: nalgebra::DMatrix<f64>,
    /// How the values were got.
    pub solution: Solution,
}

/// Solves `model` with its `$parameters` bound to `values` (the model's own definitions fill what `values` leaves out).
///
/// # Errors
/// [`SolveError`] when the model cannot be solved; non-convergence is not an error but said in the [`Solution`].
pub fn solve(_model: &Model, _values: &Bindings, _options: &SolveOptions) -> Result<Solution, SolveError> {
    Err(SolveError::Unusable { element: "model".into(), reason: "no solver yet".into() })
}

/// Solves `model` and returns the asked measures with their derivatives with respect to the parameters `wrt`.
///
/// # Errors
/// As [`solve`], and [`SolveError::UnknownMeasure`].
pub fn sensitivities(
    _model: &Model,
    _values: &Bindings,
    _wrt: &[String],
    _measures: &[Measure],
    _options: &SolveOptions,
) -> Result<Sensitivities, SolveError> {
    Err(SolveError::Unusable { element: "model".into(), reason: "no solver yet".into() })
}
