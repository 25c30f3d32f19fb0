//! Fitting: `(Problem, start) → Fit`.
//!
//! | folder | is |
//! |---|---|
//! | [`problem`] | a model, what is estimated, the trials; what is known beforehand; the checks of it |
//! | [`engine`] | bounded Gauss-Newton on any residual function, and what it stands on |
//! | [`search`] | weights, start, solver as a residual function; the fit, all of it in order |
//! | [`inference`] | rank, covariance, intervals, profiles, bootstrap, regions |
//! | [`diagnosis`] | what the residuals say: of their distribution, of single trials, of the model |
//! | [`comparison`] | structures against each other: nested pairs, families |
//! | [`baseline`] | black boxes fitted to the same trials |
//! | [`stepwise`] | additions to a model that the data ask for |
//! | [`tracking`] | parameters that drift, followed over trials in time |
//! | [`correction`] | the solver's error: simulation against the analytic solver, and fits corrected by it |
//! | [`design`] | what to measure next; what trials will tell before they are run |
//! | [`report`] | the result, in JSON and in words |

pub mod baseline;
pub mod comparison;
pub mod correction;
pub mod design;
pub mod diagnosis;
pub mod engine;
pub mod inference;
pub mod problem;
pub mod report;
pub mod search;
pub mod stepwise;
pub mod tracking;

pub use comparison::{
    compare::{self, CompareError, Comparison, compare},
    f_test,
};
pub use correction::{CorrectionOptions, fit_corrected, fit_corrected_with};
pub use design::{Design, DesignError, DesignOptions, design};
pub use engine::{finite_difference, least_squares, svd, trust_region};
pub use inference::distribution;
pub(crate) use problem::places::shares as interpolated;
pub use problem::{
    Estimated, Method, Prior, Problem, ProblemError, Transform, Weighting, parameter_uses,
    trials::{self, Measured, Trial, Trials, TrialsError},
};
pub use report::{Fit, ParameterEstimate, ParameterStatus, utilization};
pub(crate) use report::{digits, new_errors};
pub use search::{
    run::{self, FitError, FitOptions, Progress, fit, fit_with},
    solver, start, weights,
};
