//! How to track, and why there is no track.

use indexmap::IndexMap;

use crate::fit::search::{
    run::{FitError, FitOptions},
    solver::TrialSolveError,
};

/// What is known of the drift of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    /// Its standard deviation over one unit of time (one trial where trials have no times), ≥ 0; relative on the logarithmic scale.
    Given(f64),
    /// Nothing: the data decide.
    Estimated,
}

/// How to track.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackOptions {
    /// Drifts by parameter; those not named are estimated.
    pub drifts: IndexMap<String, Drift>,
    /// Trials in the running window of the innovations test, ≥ 1.
    pub window: usize,
    /// Options of the fit that the track starts from, and of the solver.
    pub fit: FitOptions,
}

impl Default for TrackOptions {
    fn default() -> Self {
        Self { drifts: IndexMap::new(), window: 5, fit: FitOptions::default() }
    }
}

/// Why there is no track.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrackError {
    /// The fit to all trials, from which the track starts, failed.
    #[error("the fit to all trials, where the track starts, failed")]
    Fit(#[from] FitError),
    /// A drift of a parameter that is not estimated.
    #[error("drift of {name}: it is not estimated (estimated: {})", .estimated.join(", "))]
    NotEstimated {
        /// The parameter.
        name: String,
        /// What is.
        estimated: Vec<String>,
    },
    /// A drift that is negative or not finite.
    #[error("drift of {name}: {value} is not a finite number, 0 or more")]
    Drift {
        /// The parameter.
        name: String,
        /// Its drift.
        value: f64,
    },
    /// A parameter that takes whole numbers only.
    #[error("{name} counts servers, threads or copies: it cannot drift; give it a value")]
    WholeNumber {
        /// The parameter.
        name: String,
    },
    /// Times for some trials only.
    #[error("trial \"{trial}\" has no time, others have: give one for every trial or for none")]
    TimeMissing {
        /// The trial.
        trial: String,
    },
    /// A window of no trials.
    #[error("the window must have at least one trial")]
    Window,
    /// A loss that bounds outliers.
    #[error("a filter takes squared errors only: leave out the loss")]
    Loss,
    /// The trials do not determine the parameters.
    #[error("the trials do not determine all tracked parameters{}", not_determined(.directions))]
    Undetermined {
        /// Combinations that no measured value depends on, in words.
        directions: Vec<String>,
    },
    /// The model has no solution on the track.
    #[error("the model has no solution on the track")]
    Solution(#[from] TrialSolveError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

fn not_determined(directions: &[String]) -> String {
    if directions.is_empty() { String::new() } else { format!(": {} changes no measured value to first order", directions.join("; ")) }
}
