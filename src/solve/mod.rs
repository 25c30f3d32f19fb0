//! Solving: `(Model, parameter values) → Solution` of named measures, with derivatives.
//!
//! Every solver is generic over [`crate::model::Scalar`], so that one pass yields values and their sensitivities.

mod activities;
pub mod amva;
mod asked;
mod bind;
mod copies;
mod distribution;
pub mod erlang;
mod exact;
mod in_step;
mod layered;
pub mod lqnx;
pub mod markov;
pub mod measure;
pub mod mva;
mod near;
mod orders;
mod quantum;
mod results;
mod role;
mod sensitivities;
pub mod simulate;
mod solution;
mod visits;

pub use distribution::*;
pub use markov::{MarkovOptions, solve_markov};
pub use near::Near;
pub use sensitivities::*;
pub use simulate::{SimulateOptions, simulate};
pub use solution::*;

use self::{bind::checked_bindings, results::Results};
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
    /// The Markov chain of the model, exactly; small models only.
    Markov,
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
    /// A solution of the same model at parameters nearby, from which an iteration can start.
    pub near: Option<Near>,
    /// Seed of the simulator.
    pub seed: u64,
    /// How to simulate, save for the seed.
    pub simulation: SimulateOptions,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self { solver: Solver::Auto, tolerance: 1e-9, max_iterations: 2000, near: None, seed: 1, simulation: SimulateOptions::default() }
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
    /// Open arrivals, asynchronous sends or calls of second phases without a bound on their threads exceed what a resource can serve, or what more urgent
    /// customers leave of it: there is no steady state.
    #[error(
        "no steady state: {resource} is offered {utilization:.3} of its {capacity} servers by requests that nobody waits for and what goes before them{}",
        if at_least < capacity { ", as it is estimated" } else { "" }
    )]
    Saturated {
        /// The resource.
        resource: String,
        /// Offered load, in servers.
        utilization: f64,
        /// Servers there are.
        capacity: f64,
        /// Offered load if nothing ever waited, in servers: below the capacity, that there is no steady state rests on waits, or throughputs of customers who go before, that are estimated.
        at_least: f64,
    },
    /// Asynchronous requests or open arrivals pile up: there is no steady state.
    #[error("no steady state: {waiting} requests wait at {resource} and more keep coming")]
    Unbounded {
        /// The resource.
        resource: String,
        /// Requests that wait there.
        waiting: usize,
    },
    /// Tasks wait for one another for ever.
    #[error("deadlock at time {time}: {}", waits.join("; "))]
    Deadlock {
        /// Model time at which it was found.
        time: f64,
        /// Who waits for what.
        waits: Vec<String>,
    },
    /// Nobody waits for the solution any more.
    #[error("given up: nobody waits for it any more")]
    Abandoned,
    /// A time that a simulation never observed.
    #[error("measure {measure}: never observed in the simulation: allow more time or events")]
    NotObserved {
        /// The measure.
        measure: Measure,
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

/// How to simulate.
fn simulation_of(options: &SolveOptions) -> SimulateOptions {
    SimulateOptions { seed: options.seed, ..options.simulation.clone() }
}

/// Solves `model` with its `$parameters` bound to `values` (the model's own definitions fill what `values` leaves out).
///
/// [`Solver::Auto`] simulates what no analytic solver takes, and what the layered one does not converge on, finds to break a law or, by
/// what it estimates, to have no steady state; the solution's diagnostics say why.
///
/// # Errors
/// [`SolveError`] when the model cannot be solved; non-convergence is not an error but said in the [`Solution`].
pub fn solve(model: &Model, values: &Bindings, options: &SolveOptions) -> Result<Solution, SolveError> {
    match options.solver {
        Solver::Simulate => return simulate(model, values, &simulation_of(options)),
        Solver::Markov => return solve_markov(model, values, &MarkovOptions::default()),
        Solver::Auto | Solver::Exact | Solver::Layered => {}
    }
    let solved = solve_analytically(model, values, options);
    if options.solver != Solver::Auto {
        return solved;
    }
    let why = match &solved {
        Ok(solution) if !solution.converged => {
            format!("the layered solver is not to be relied on here ({})", solution.diagnostics.join("; "))
        }
        Err(SolveError::Unsupported { construct, element, .. }) => format!("the analytic solvers do not take {construct} ({element})"),
        Err(error @ SolveError::Saturated { capacity, at_least, .. }) if at_least < capacity => {
            format!("the layered solver finds {error}")
        }
        _ => return solved,
    };
    let mut solution = match (simulate(model, values, &simulation_of(options)), solved) {
        (Ok(simulated), Err(saturated @ SolveError::Saturated { .. })) if !simulate::has_settled(&simulated) => return Err(saturated),
        (Err(SolveError::Unbounded { .. }), Err(saturated @ SolveError::Saturated { .. })) => return Err(saturated),
        (Err(SolveError::Unusable { .. } | SolveError::Unsupported { .. }), Ok(approximate)) => return Ok(approximate),
        (simulated, _) => simulated?,
    };
    solution.diagnostics.push(format!("simulated: {why}"));
    Ok(solution)
}

/// The exact or the layered solution, whether it converged or not.
fn solve_analytically(model: &Model, values: &Bindings, options: &SolveOptions) -> Result<Solution, SolveError> {
    let bound = checked_bindings(model, values)?;
    let mut solution = match plan(model, &bound, options)? {
        Planned::Exact(results) => results.solution(model),
        Planned::Layered => layered::solve(model, &bound, options, layered::Start::near(options))?.results.solution(model),
    };
    solution.diagnostics.extend(remarks(model, &bound));
    Ok(solution)
}

/// What the analytic solvers take in a simpler way than the model has it, or do not find.
fn remarks(model: &Model, bound: &Bindings) -> impl Iterator<Item = String> {
    quantum::notes(model, bound).into_iter().chain(orders::notes(model)).chain(in_step::note(model, bound)).chain(asked::note(model, bound))
}

enum Planned {
    Exact(Box<Results<f64>>),
    Layered,
}

/// Decides between the exact and the layered solver.
fn plan(model: &Model, bound: &Bindings, options: &SolveOptions) -> Result<Planned, SolveError> {
    match options.solver {
        Solver::Layered => Ok(Planned::Layered),
        Solver::Auto | Solver::Exact => match exact::solve(model, bound)? {
            exact::Attempt::Solved(results) => Ok(Planned::Exact(results)),
            exact::Attempt::Refused(construct, element) if options.solver == Solver::Exact => {
                Err(SolveError::Unsupported { solver: "exact", construct, element })
            }
            exact::Attempt::Refused(..) => Ok(Planned::Layered),
        },
        Solver::Simulate => {
            Err(SolveError::Unsupported { solver: "simulate", construct: "derivatives", element: "measures of a simulation".into() })
        }
        Solver::Markov => {
            Err(SolveError::Unsupported { solver: "markov", construct: "derivatives", element: "measures of a Markov chain".into() })
        }
    }
}
