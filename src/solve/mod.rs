//! Solving: `(Model, parameter values) → Solution` of named measures, with derivatives.
//!
//! Every solver is generic over [`crate::model::Scalar`], so that one pass yields values and their sensitivities.

mod activities;
pub mod amva;
mod distribution;
pub mod erlang;
mod exact;
mod layered;
pub mod lqnx;
pub mod markov;
pub mod measure;
pub mod mva;
mod results;
pub mod simulate;
mod solution;

use std::collections::BTreeSet;

use nalgebra::DMatrix;

pub use distribution::*;
pub use markov::{MarkovOptions, solve_markov};
pub use simulate::{SimulateOptions, simulate};
pub use solution::*;

use self::results::Results;
use crate::model::{Bindings, Measure, Model, Scalar, Tangent, UnboundParameter};

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
    /// Seed of the simulator.
    pub seed: u64,
    /// How to simulate, save for the seed.
    pub simulation: SimulateOptions,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self { solver: Solver::Auto, tolerance: 1e-9, max_iterations: 2000, seed: 1, simulation: SimulateOptions::default() }
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
pub fn solve(model: &Model, values: &Bindings, options: &SolveOptions) -> Result<Solution, SolveError> {
    let simulated = || simulate(model, values, &simulation_of(options));
    if options.solver == Solver::Simulate {
        return simulated();
    }
    if options.solver == Solver::Markov {
        return solve_markov(model, values, &MarkovOptions::default());
    }
    let bound = bind(model, values)?;
    let planned = match plan(model, &bound, options)? {
        Planned::Exact(results) => return Ok(results.solution(model)),
        Planned::Layered => layered::solve(model, &bound, options, None),
    };
    match planned {
        Ok(solved) => Ok(solved.results.solution(model)),
        Err(SolveError::Unsupported { construct, element, .. }) if options.solver == Solver::Auto => {
            let mut solution = simulated()?;
            solution.diagnostics.push(format!("simulated: the analytic solvers do not take {construct} ({element})"));
            Ok(solution)
        }
        Err(error) => Err(error),
    }
}

/// Solves `model` and returns the asked measures with their derivatives with respect to the parameters `wrt`.
///
/// Derivatives are exact (dual numbers through the recursion, or through the converged fixed point), except with respect to
/// parameters that are a multiplicity: those are differences over ±1. Of a simulation, also where [`Solver::Auto`] falls back to
/// it, they are differences between runs with the same random numbers ([`simulate::sensitivities`]).
///
/// # Errors
/// As [`solve`], and [`SolveError::UnknownMeasure`].
pub fn sensitivities(
    model: &Model,
    values: &Bindings,
    wrt: &[String],
    measures: &[Measure],
    options: &SolveOptions,
) -> Result<Sensitivities, SolveError> {
    let simulated = || simulate::sensitivities(model, values, wrt, measures, &simulation_of(options));
    if options.solver == Solver::Simulate {
        return simulated();
    }
    let bound = bind(model, values)?;
    let planned = plan(model, &bound, options)?;
    let mut jacobian = DMatrix::zeros(measures.len(), wrt.len());
    let counts = multiplicity_parameters(model);
    let (integer, real): (Vec<usize>, Vec<usize>) = (0..wrt.len()).partition(|&j| counts.contains(&wrt[j]));
    let (results, trace) = match planned {
        Planned::Exact(results) => (results, None),
        Planned::Layered => {
            let solved = match layered::solve(model, &bound, options, None) {
                Err(SolveError::Unsupported { .. }) if options.solver == Solver::Auto => return simulated(),
                solved => solved?,
            };
            (solved.results, Some(solved.trace))
        }
    };
    let directions = Directions { model, values, names: wrt, measures, options, trace: trace.as_ref() };
    let mut rest = real.as_slice();
    let mut doubts = Vec::new();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(MOST_DIRECTIONS));
        doubts.extend(match now.len() {
            1 => directions.columns::<1>(now, &mut jacobian)?,
            2 => directions.columns::<2>(now, &mut jacobian)?,
            3 | 4 => directions.columns::<4>(now, &mut jacobian)?,
            _ => directions.columns::<MOST_DIRECTIONS>(now, &mut jacobian)?,
        });
        rest = later;
    }
    for &j in &integer {
        integer_differences(model, values, &wrt[j], measures, options, &mut jacobian.column_mut(j))?;
    }
    let values = measures.iter().map(|m| measure::evaluate(model, &results, m)).collect::<Result<Vec<f64>, _>>()?;
    let mut solution = results.solution(model);
    solution.diagnostics.extend(doubts);
    Ok(Sensitivities { values, jacobian, solution })
}

enum Planned {
    Exact(Results<f64>),
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

fn exact_again<S: Scalar>(model: &Model, bound: &Bindings<S>) -> Result<Results<S>, SolveError> {
    match exact::solve(model, bound)? {
        exact::Attempt::Solved(results) => Ok(results),
        exact::Attempt::Refused(construct, element) => Err(SolveError::Unsupported { solver: "exact", construct, element }),
    }
}

/// Parameters that one pass over dual numbers takes at most.
const MOST_DIRECTIONS: usize = 8;

/// What derivatives with respect to several parameters at once are found from.
struct Directions<'a> {
    model: &'a Model,
    values: &'a Bindings,
    names: &'a [String],
    measures: &'a [Measure],
    options: &'a SolveOptions,
    /// Of the layered solution; none where the exact one is taken.
    trace: Option<&'a layered::Trace>,
}

impl Directions<'_> {
    /// Fills the `columns` of the Jacobian, at most `N`; says what is doubtful about them.
    fn columns<const N: usize>(&self, columns: &[usize], jacobian: &mut DMatrix<f64>) -> Result<Option<String>, SolveError> {
        let duals = self.seed::<N>(columns)?;
        let results = match self.trace {
            None => exact_again(self.model, &duals)?,
            Some(trace) => layered::solve(self.model, &duals, self.options, Some(trace))?.results,
        };
        for (i, measure) in self.measures.iter().enumerate() {
            let value = measure::evaluate(self.model, &results, measure)?;
            for (&j, &slope) in columns.iter().zip(&value.derivatives) {
                jacobian[(i, j)] = slope;
            }
        }
        let left =
            format!("derivatives were not reached: {:.1e} of the steepest is left after {} sweeps", results.residual, results.iterations);
        Ok((!results.converged).then_some(left))
    }

    /// All parameters of the model, those of the `columns` each as the variable of a direction.
    fn seed<const N: usize>(&self, columns: &[usize]) -> Result<Bindings<Tangent<N>>, SolveError> {
        let bound = bind(self.model, self.values)?;
        let mut overrides: Bindings<Tangent<N>> = self.values.iter().map(|(name, v)| (name, Tangent::from(v))).collect();
        for (direction, &j) in columns.iter().enumerate() {
            let name = &self.names[j];
            let value = bound.get(name).ok_or_else(|| UnboundParameter { name: name.clone() })?;
            overrides.set(name, Tangent::variable(value, direction));
        }
        bind(self.model, &overrides)
    }
}

/// Differences over ±1, one-sided at 1.
fn integer_differences(
    model: &Model,
    values: &Bindings,
    name: &str,
    measures: &[Measure],
    options: &SolveOptions,
    column: &mut nalgebra::DVectorViewMut<'_, f64>,
) -> Result<(), SolveError> {
    let at = bind(model, values)?.get(name).ok_or_else(|| UnboundParameter { name: name.to_owned() })?;
    let below = if at > 1.0 { at - 1.0 } else { at };
    let above = at + 1.0;
    let solve_at = |value: f64| -> Result<Solution, SolveError> {
        let mut moved = values.clone();
        moved.set(name, value);
        solve(model, &moved, options)
    };
    let (low, high) = (solve_at(below)?, solve_at(above)?);
    for (i, m) in measures.iter().enumerate() {
        column[i] = (measure::value(model, &high, m)? - measure::value(model, &low, m)?) / (above - below);
    }
    Ok(())
}

/// Names of the parameters that are a number of servers, threads, customers or copies.
pub fn multiplicity_parameters(model: &Model) -> BTreeSet<String> {
    let processors = model.processors.iter().flat_map(|p| [&p.multiplicity, &p.replication]);
    let tasks = model.tasks.iter().flat_map(|t| [&t.multiplicity, &t.replication]);
    processors.chain(tasks).filter_map(|n| n.parameter().map(str::to_owned)).collect()
}

/// Values of all parameters: those given, and the model's own definitions for the rest.
fn bind<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Bindings<S>, SolveError> {
    model.bindings(values).map_err(|e| SolveError::Unusable { element: "parameters".into(), reason: e.to_string() })
}
