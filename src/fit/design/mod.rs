//! Experiment design: what to measure next, and what the trials can and cannot tell before they are run.
//!
//! One trial at controlled values `u` with measures of error covariance `R` adds to what is known of the parameters:
//!
//! ```text
//! M(u) = ℓ H(u)ᵀ R⁻¹ H(u)                 information of a trial of length ℓ
//! M = M₀ + Σ n_j M(u_j)                    information after n_j trials at u_j
//! P = M⁻¹          half-width_k = q √P_kk  q = t(1 - α/2; d), or the normal quantile where errors are known
//! ```
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `H(u)` | sensitivities `dh/dx` of the measures at the estimates | `(n_measures, n_free)` |
//! | `R` | error covariance of one trial of length 1, scaled by the mean square error | `(n_measures, n_measures)` |
//! | `ℓ` | length of a trial, in multiples of those there are; repeating it counts likewise | scalar |
//! | `M₀` | information there is: the inverse of the fit's covariance, priors included | `(n_free, n_free)` |
//! | `c` | sensitivities of a prediction | `(n_free)` |
//!
//! | criterion | least | in words |
//! |---|---|---|
//! | D | `det P^(1/n)` | the volume of the joint ellipsoid |
//! | A | `Σ P_kk / x_k²` | the mean square relative error of the parameters |
//! | c | `cᵀ P c` | the variance of one prediction, even of what cannot be measured |
//!
//! The model is taken as linear around the estimates: designs are as good as the estimates are, and are made anew after each trial.
//! Where `M₀` is singular a millionth of a millionth of the largest information is added to every direction, so that what settles a
//! direction that is not seen outweighs everything else; intervals are computed without it. Sources: V. Fedorov, Theory of Optimal
//! Experiments (1972); A. Atkinson and A. Donev, Optimum Experimental Designs (1992), chapters 10 to 12; M. Woodside, SIPEW 2008,
//! section 4, for the use of it.
//!
//! | file | is |
//! |---|---|
//! | [`candidate`] | operating points that could be measured, from CSV or made from the trials |
//! | [`mod@choose`] | the next trial, or the best set |
//! | `criterion`, `exchange` | D, A and c; the search for the best set |
//! | `ground`, `errors` | what is known before; how well each measure can be measured |
//! | [`mod@identify`] | what trials will tell, before any value is measured |
//! | [`weak`] | combinations of parameters that cannot be told apart, and what would settle them |
//! | [`observable`] | everything of a model that could be measured |
//! | `report`, `text` | the result, and in words |

pub mod candidate;
pub mod choose;
mod criterion;
mod errors;
mod exchange;
mod ground;
pub mod identify;
pub mod observable;
mod report;
mod text;
pub mod weak;

pub use candidate::{Candidate, CandidateError};
pub use choose::{Criterion, DesignOptions, MOST_CHOSEN, Repeats, Target, design, design_while, design_with, plan};
pub use errors::mean_duration;
pub use identify::{Expected, ExpectedFit, IdentifyOptions, identify, identify_with};
pub use report::{Chosen, Design, RankChange, RankedMeasure, RankedPoint, Search, TargetReport, WidthChange};
pub(crate) use text::{directions_in_words, write_table};
pub use weak::{Cure, Cures, KnownCombination, WeakDirection};

use crate::{
    fit::{problem::ProblemError, search::solver::TrialSolveError},
    model::Measure,
    solve::SolveError,
};

/// Why there is no design.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// The problem cannot be used.
    #[error("the problem cannot be used as it stands")]
    Problem(#[from] ProblemError),
    /// The fit has no minimum.
    #[error("the fit has no minimum to design around: fit again with other starts or bounds")]
    NotConverged,
    /// All estimated parameters are at their bounds.
    #[error("every estimated parameter is at its bound: there is nothing to learn more about")]
    NothingFree,
    /// A measure that the model does not have.
    #[error(transparent)]
    Measure(#[from] SolveError),
    /// A name in an operating point that the model does not use.
    #[error("\"{name}\" is not a parameter of the model (it uses ${})", .available.join(", $"))]
    UnknownName {
        /// The name.
        name: String,
        /// Names that the model uses.
        available: Vec<String>,
    },
    /// A parameter that is estimated and yet set by an operating point.
    #[error("{name} is estimated: an operating point cannot set it")]
    Estimated {
        /// The name.
        name: String,
    },
    /// A controlled value that an operating point leaves open.
    #[error("{}{name} must be given: it is controlled and not the same in all trials", placed(.point))]
    Missing {
        /// The operating point; empty where nothing is given.
        point: String,
        /// The name.
        name: String,
    },
    /// A parameter without a value to take sensitivities at.
    #[error("parameter {name} has no value to take sensitivities at: give it a start")]
    NoStart {
        /// The name.
        name: String,
    },
    /// No measures to plan with.
    #[error("no measures: name what a trial would measure")]
    NoMeasures,
    /// A number outside its range.
    #[error("{what} is {value}: expected {expected}")]
    Option {
        /// What it is.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What was expected.
        expected: &'static str,
    },
    /// The model has no solution at an operating point of the trials, or where a prediction is asked for.
    #[error("the model has no solution where it is needed")]
    Solution(#[from] TrialSolveError),
    /// No candidate has a solution.
    #[error("the model has no solution at any candidate: {0}")]
    NoCandidate(String),
    /// The budget does not pay for any candidate.
    #[error("the budget {budget} does not pay for any candidate: the cheapest costs {least}")]
    Budget {
        /// The budget.
        budget: f64,
        /// Cost of the cheapest candidate.
        least: f64,
    },
    /// No parameter affects the prediction.
    #[error("no estimated parameter affects {0} there: there is nothing to design for")]
    Certain(Measure),
    /// The caller asked to stop.
    #[error("the search was given up before it ended")]
    Abandoned,
}

fn placed(point: &str) -> String {
    if point.is_empty() { String::new() } else { format!("operating point {point}: ") }
}
