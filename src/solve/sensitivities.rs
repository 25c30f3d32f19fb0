//! Measures with their derivatives with respect to parameters.
//!
//! In: a model, its parameters, the measures and the names to differentiate by. Out: `h(x)` and `dh/dx`.
//! The exact solver is run once over dual numbers, which carry values and derivatives together. The layered one is iterated in
//! plain numbers until it is near, and then over dual numbers until both have settled ([`super::layered`]); derivatives in more directions than
//! one pass takes are found at that fixed point. Multiplicities are differences over ±1.

use std::collections::BTreeSet;

use nalgebra::DMatrix;

use super::{
    Near, Planned, Solution, SolveError, SolveOptions, Solver,
    bind::{bindings, checked_bindings},
    exact, layered, measure, plan, remarks, simulate, simulation_of, solve_analytically,
};
use crate::model::{Bindings, Measure, Model, Tangent, UnboundParameter};

/// Values of measures and their derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivities {
    /// Values, `(n_measures)`.
    pub values: Vec<f64>,
    /// Derivatives `d value / d parameter`, `(n_measures, n_parameters)`.
    pub jacobian: DMatrix<f64>,
    /// How the values were got.
    pub solution: Solution,
    /// What a solution nearby can start from; none where the solver does not iterate.
    pub near: Option<Near>,
}

/// Solves `model` and returns the asked measures with their derivatives with respect to the parameters `wrt`.
///
/// Derivatives are exact (dual numbers through the recursion, or through the converged fixed point), except with respect to
/// parameters that are a multiplicity: those are differences over ±1. Of a simulation, also where [`Solver::Auto`] falls back to
/// it, they are differences between runs with the same random numbers ([`simulate::sensitivities`]).
///
/// # Errors
/// As [`super::solve`], and [`SolveError::UnknownMeasure`].
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
    let bound = checked_bindings(model, values)?;
    let counts = multiplicity_parameters(model);
    let (integer, real): (Vec<usize>, Vec<usize>) = (0..wrt.len()).partition(|&j| counts.contains(&wrt[j]));
    let directions = Directions { model, values, bound: &bound, names: wrt, measures, options };
    let mut jacobian = DMatrix::zeros(measures.len(), wrt.len());
    let Values { values: found, mut solution, near } = match directions.exact(&real, &mut jacobian)? {
        Some(found) => found,
        None => match directions.layered(&real, &mut jacobian) {
            Err(SolveError::Unsupported { .. }) if options.solver == Solver::Auto => return simulated(),
            Err(error @ SolveError::Saturated { capacity, at_least, .. }) if options.solver == Solver::Auto && at_least < capacity => {
                return simulated().ok().filter(|found| simulate::has_settled(&found.solution)).ok_or(error);
            }
            found => found?,
        },
    };
    solution.diagnostics.extend(remarks(model, &bound));
    for &j in &integer {
        integer_differences(model, values, &wrt[j], measures, options, &mut jacobian.column_mut(j))?;
    }
    Ok(Sensitivities { values: found, jacobian, solution, near })
}

/// Names of the parameters that are a number of servers, threads, customers, copies or connections.
pub fn multiplicity_parameters(model: &Model) -> BTreeSet<String> {
    let processors = model.processors.iter().flat_map(|p| [&p.multiplicity, &p.replication]);
    let tasks = model.tasks.iter().flat_map(|t| [&t.multiplicity, &t.replication]);
    let fans = model.tasks.iter().flat_map(|t| t.fan_out.iter().chain(&t.fan_in)).map(|fan| &fan.value);
    processors.chain(tasks).chain(fans).filter_map(|n| n.parameter().map(str::to_owned)).collect()
}

/// Parameters that one pass over dual numbers takes at most.
const MOST_DIRECTIONS: usize = 8;

/// Calls `$method::<N>` for the narrowest dual numbers that hold `$columns`. Each width is another copy of the solvers to compile:
/// with debug assertions there are but three.
macro_rules! narrowest {
    ($self:ident . $method:ident ( $columns:expr $(, $argument:expr)* )) => {
        match $columns.len() {
            1 => $self.$method::<1>($columns $(, $argument)*),
            #[cfg(not(debug_assertions))]
            2 => $self.$method::<2>($columns $(, $argument)*),
            #[cfg(not(debug_assertions))]
            3 => $self.$method::<3>($columns $(, $argument)*),
            2..=4 => $self.$method::<4>($columns $(, $argument)*),
            #[cfg(not(debug_assertions))]
            5 => $self.$method::<5>($columns $(, $argument)*),
            #[cfg(not(debug_assertions))]
            6 => $self.$method::<6>($columns $(, $argument)*),
            _ => $self.$method::<MOST_DIRECTIONS>($columns $(, $argument)*),
        }
    };
}

/// [`Sensitivities`] without the derivatives.
struct Values {
    values: Vec<f64>,
    solution: Solution,
    near: Option<Near>,
}

/// What derivatives with respect to several parameters at once are found from.
struct Directions<'a> {
    model: &'a Model,
    values: &'a Bindings,
    /// `values` with the model's own definitions.
    bound: &'a Bindings,
    names: &'a [String],
    measures: &'a [Measure],
    options: &'a SolveOptions,
}

impl Directions<'_> {
    /// The exact solution with the columns `real` of the Jacobian; none where another solver is to take the model.
    fn exact(&self, real: &[usize], jacobian: &mut DMatrix<f64>) -> Result<Option<Values>, SolveError> {
        if real.is_empty() || !matches!(self.options.solver, Solver::Auto | Solver::Exact) {
            return match plan(self.model, self.bound, self.options)? {
                Planned::Layered => Ok(None),
                Planned::Exact(results) => {
                    let values = self.measures.iter().map(|m| measure::evaluate(self.model, &results, m)).collect::<Result<_, _>>()?;
                    Ok(Some(Values { values, solution: results.solution(self.model), near: None }))
                }
            };
        }
        let mut found = None;
        for columns in real.chunks(MOST_DIRECTIONS) {
            match narrowest!(self.exact_columns(columns, jacobian))? {
                None => return Ok(None),
                some => found = found.or(some),
            }
        }
        Ok(found)
    }

    fn exact_columns<const N: usize>(&self, columns: &[usize], jacobian: &mut DMatrix<f64>) -> Result<Option<Values>, SolveError> {
        let results = match exact::solve(self.model, &self.seed::<N>(columns)?)? {
            exact::Attempt::Solved(results) => results,
            exact::Attempt::Refused(construct, element) if self.options.solver == Solver::Exact => {
                return Err(SolveError::Unsupported { solver: "exact", construct, element });
            }
            exact::Attempt::Refused(..) => return Ok(None),
        };
        let values = self.take(&results, columns, jacobian)?;
        Ok(Some(Values { values, solution: results.solution(self.model), near: None }))
    }

    /// The layered solution with the columns `real` of the Jacobian.
    fn layered(&self, real: &[usize], jacobian: &mut DMatrix<f64>) -> Result<Values, SolveError> {
        let (first, mut others) = real.split_at(real.len().min(MOST_DIRECTIONS));
        let together = if first.is_empty() { None } else { narrowest!(self.together(first, jacobian))? };
        let (values, mut solution, trace) = match together {
            Some(found) => found,
            None => {
                others = real;
                let solved = layered::solve(self.model, self.bound, self.options, layered::Start::near(self.options))?;
                let values = self.measures.iter().map(|m| measure::evaluate(self.model, &solved.results, m)).collect::<Result<_, _>>()?;
                (values, solved.results.solution(self.model), solved.trace)
            }
        };
        for columns in others.chunks(MOST_DIRECTIONS) {
            solution.diagnostics.extend(narrowest!(self.layered_columns(columns, &trace, jacobian))?);
        }
        Ok(Values { values, solution, near: Some(Near::from(trace)) })
    }

    /// The layered solution, with the `columns` of the Jacobian from the same sweeps; none where that is not easily done.
    fn together<const N: usize>(
        &self,
        columns: &[usize],
        jacobian: &mut DMatrix<f64>,
    ) -> Result<Option<(Vec<f64>, Solution, layered::Trace)>, SolveError> {
        let solved = layered::solve_together(self.model, &self.seed::<N>(columns)?, self.bound, self.options)?;
        let Some(layered::Solved { results, trace }) = solved else { return Ok(None) };
        let values = self.take(&results, columns, jacobian)?;
        Ok(Some((values, results.solution(self.model), trace)))
    }

    /// Fills the `columns` of the Jacobian, at most `N`, at a layered solution; says what is doubtful about them.
    fn layered_columns<const N: usize>(
        &self,
        columns: &[usize],
        trace: &layered::Trace,
        jacobian: &mut DMatrix<f64>,
    ) -> Result<Option<String>, SolveError> {
        let results = layered::solve(self.model, &self.seed::<N>(columns)?, self.options, layered::Start::Solved(trace))?.results;
        self.take(&results, columns, jacobian)?;
        let left =
            format!("derivatives were not reached: {:.1e} of the steepest is left after {} sweeps", results.residual, results.iterations);
        Ok((!results.converged).then_some(left))
    }

    /// Fills the `columns` of the Jacobian from dual results; returns the values.
    fn take<const N: usize>(
        &self,
        results: &super::results::Results<Tangent<N>>,
        columns: &[usize],
        jacobian: &mut DMatrix<f64>,
    ) -> Result<Vec<f64>, SolveError> {
        let mut values = Vec::with_capacity(self.measures.len());
        for (i, measure) in self.measures.iter().enumerate() {
            let value = measure::evaluate(self.model, results, measure)?;
            for (&j, &slope) in columns.iter().zip(&value.derivatives) {
                jacobian[(i, j)] = slope;
            }
            values.push(value.value);
        }
        Ok(values)
    }

    /// All parameters of the model, those of the `columns` each as the variable of a direction.
    fn seed<const N: usize>(&self, columns: &[usize]) -> Result<Bindings<Tangent<N>>, SolveError> {
        let mut overrides: Bindings<Tangent<N>> = self.values.iter().map(|(name, v)| (name, Tangent::from(v))).collect();
        for (direction, &j) in columns.iter().enumerate() {
            let name = &self.names[j];
            let value = self.bound.get(name).ok_or_else(|| UnboundParameter { name: name.clone() })?;
            overrides.set(name, Tangent::variable(value, direction));
        }
        bindings(self.model, &overrides)
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
    let at = bindings(model, values)?.get(name).ok_or_else(|| UnboundParameter { name: name.to_owned() })?;
    let below = if at > 1.0 { at - 1.0 } else { at };
    let above = at + 1.0;
    let solve_at = |value: f64| -> Result<Solution, SolveError> {
        let mut moved = values.clone();
        moved.set(name, value);
        solve_analytically(model, &moved, options)
    };
    let (low, high) = (solve_at(below)?, solve_at(above)?);
    for (i, m) in measures.iter().enumerate() {
        column[i] = (measure::value(model, &high, m)? - measure::value(model, &low, m)?) / (above - below);
    }
    Ok(())
}
