//! Why a problem cannot be fitted as it stands.

use super::{Prior, trials::TrialsError};
use crate::{model::Measure, solve::SolveError};

/// Why a problem cannot be fitted as it stands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// The trials themselves.
    #[error("the trials cannot be used")]
    Trials(#[from] TrialsError),
    /// Nothing to estimate.
    #[error("nothing to estimate: name at least one $parameter of the model{}", listed(.available))]
    NothingToEstimate {
        /// Parameters of the model that could be.
        available: Vec<String>,
    },
    /// A name that the model does not use.
    #[error("{part} parameter \"{name}\" is not used in the model{}", listed(.available))]
    NotInModel {
        /// `estimated`, `controlled`, `assumed` or `tied`.
        part: &'static str,
        /// The name.
        name: String,
        /// Names that the model uses.
        available: Vec<String>,
    },
    /// Given values with which the model is none.
    #[error("with the values given the model cannot be: {reason}")]
    AssumedValue {
        /// What is wrong with it.
        reason: String,
    },
    /// A parameter named twice.
    #[error("parameter \"{name}\" is to be estimated twice")]
    EstimatedTwice {
        /// The name.
        name: String,
    },
    /// A parameter with two parts.
    #[error("parameter \"{name}\" is both {first} and {second}: it can be one")]
    TwoParts {
        /// The name.
        name: String,
        /// One part.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A trial lacks a controlled value that others have.
    #[error("trial \"{trial}\" has no value of ${name}, which other trials have")]
    ControlledMissing {
        /// The trial.
        trial: String,
        /// The name.
        name: String,
    },
    /// A controlled value that the model cannot have.
    #[error("row {row} of the trials (trial \"{trial}\"), column {column}: {reason}")]
    ControlledValue {
        /// The row, from 1.
        row: usize,
        /// The trial.
        trial: String,
        /// The columns: one, or those that do not go together.
        column: String,
        /// The element of the model and what is wrong with it.
        reason: String,
    },
    /// A parameter without a value.
    #[error("parameter ${name} has no value: it is neither estimated nor assumed, and the trials have no column ${name}")]
    Unbound {
        /// The name.
        name: String,
    },
    /// Bounds that leave no room.
    #[error("parameter \"{name}\": the bounds {min} to {max} leave no room")]
    Bounds {
        /// The name.
        name: String,
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// A start outside the bounds, or no number.
    #[error("parameter \"{name}\": the start {start} is not between {min} and {max}")]
    Start {
        /// The name.
        name: String,
        /// The start.
        start: f64,
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// An assumed value that is no number.
    #[error("parameter \"{name}\": the value {value} is not a finite number")]
    Assumed {
        /// The name.
        name: String,
        /// The value.
        value: f64,
    },
    /// A confidence level outside (0, 1).
    #[error("confidence {0} is not between 0 and 1")]
    Confidence(f64),
    /// A measure of something that the model does not have.
    #[error(transparent)]
    Measure(#[from] SolveError),
    /// A fraction for a parameter that counts servers, threads or copies.
    #[error("parameter \"{name}\" counts servers, threads or copies: its {part} {value} is not a whole number")]
    NotWhole {
        /// The name.
        name: String,
        /// `start`, `lower bound` or `upper bound`.
        part: &'static str,
        /// The value.
        value: f64,
    },
    /// A parameter searched by its logarithm that may be 0 or less, or that counts something.
    #[error("parameter \"{name}\" cannot be searched by its logarithm: {reason}")]
    Logarithm {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A prior range that is none.
    #[error("parameter \"{name}\": the prior [{}, {}, {}] must be finite numbers [least, most likely, most] in ascending order, the first below the last", .prior.min, .prior.most_likely, .prior.max)]
    Prior {
        /// The name.
        name: String,
        /// The prior.
        prior: Prior,
    },
    /// A tie that cannot be read.
    #[error("parameter \"{name}\" cannot be tied: {reason}")]
    Tie {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A threshold of a loss, or a number of starts or resamples, that is none.
    #[error("{what} is {value}: expected {expected}")]
    Method {
        /// What it is.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What was expected.
        expected: &'static str,
    },
    /// Something else asked that intervals from what trials scatter by do not go with.
    #[error("sandwich intervals do not go with {what}: ask for one of the two")]
    NotWithSandwich {
        /// What.
        what: &'static str,
    },
    /// A measured value without an error variance beside others that have covariances.
    #[error("trial \"{trial}\": {measure} has neither a standard error nor a variance, which the covariances of the trials ask for")]
    VarianceMissing {
        /// The trial.
        trial: String,
        /// The measure.
        measure: Measure,
    },
    /// No replicates to estimate errors from.
    #[error("no operating point was measured twice: the errors cannot be estimated from replicates")]
    NoReplicates,
    /// Replicates without any scatter, from which errors were to be estimated.
    #[error("trials at one operating point are equal in every measure: the errors cannot be estimated from replicates")]
    EqualReplicates,
    /// Fewer measurements than parameters.
    #[error("{n_obs} measured values cannot determine {n_params} parameters")]
    TooFewMeasurements {
        /// Measured values that count (present, weight above 0).
        n_obs: usize,
        /// Parameters.
        n_params: usize,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { " (it has no $parameters)".into() } else { format!(" (it uses ${})", names.join(", $")) }
}
