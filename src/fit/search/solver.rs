//! The solver as fitting sees it: a function from parameters to measures with derivatives; and a whole problem as one
//! residual function over its trials.

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::{run::FitOptions, weights::Weights};
use crate::{
    fit::{
        engine::least_squares::{Evaluation, EvaluationError, ResidualModel, Wanted},
        problem::Problem,
    },
    model::{Bindings, Measure, Model},
    solve::{Near, Sensitivities, Solution, SolveError, SolveOptions},
};

/// A function of the kind of [`crate::solve::sensitivities`]: `(model, values, derivatives by, measures, options)`.
pub type SolveFn<'a> = dyn Fn(&Model, &Bindings, &[String], &[Measure], &SolveOptions) -> Result<Sensitivities, SolveError> + Sync + 'a;

/// Where derivatives come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Derivatives {
    /// From the solver.
    #[default]
    Solver,
    /// From differences of the solver's values.
    Differences,
}

/// Why a trial has no predicted values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrialSolveError {
    /// The solver refuses the model.
    #[error("trial \"{trial}\" cannot be solved")]
    Refused {
        /// The trial.
        trial: String,
        /// Why.
        #[source]
        source: SolveError,
    },
    /// The solver does not settle.
    #[error("trial \"{trial}\": {}", self.reason())]
    NotConverged {
        /// The trial.
        trial: String,
        /// The algorithm.
        solver: String,
        /// Its iterations.
        iterations: usize,
        /// Its last relative change.
        residual: f64,
    },
    /// A value or derivative is not a finite number.
    #[error("trial \"{trial}\": {}", self.reason())]
    NotFinite {
        /// The trial.
        trial: String,
        /// The measure.
        measure: Measure,
    },
}

impl TrialSolveError {
    /// Why, where what cannot be solved is named beside.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused { source, .. } => source.to_string(),
            Self::NotConverged { solver, iterations, residual, .. } => {
                format!("the {solver} solver has not converged after {iterations} iterations (residual {residual:.1e})")
            }
            Self::NotFinite { measure, .. } => format!("{measure} has no finite value"),
        }
    }
}

/// Predictions of all trials at one point.
#[derive(Clone, Debug)]
pub struct TrialPredictions {
    /// Values, by trial and measure.
    pub values: Vec<Vec<f64>>,
    /// Derivatives, by trial, `(n_measures, n_params)`.
    pub jacobians: Vec<DMatrix<f64>>,
    /// Solutions, by trial.
    pub solutions: Vec<Solution>,
}

/// Solves every trial of `problem` at the estimated parameters `x`.
///
/// # Errors
/// [`TrialSolveError`] of the first trial without a solution.
pub fn solve_trials(
    problem: &Problem,
    x: &[f64],
    wanted: &[String],
    options: &SolveOptions,
    solver: &SolveFn<'_>,
) -> Result<TrialPredictions, TrialSolveError> {
    solve_trials_near(problem, x, wanted, options, solver, None)
}

/// As [`solve_trials`], from the solutions of the trials at the last parameters, `near`, which those at `x` replace.
fn solve_trials_near(
    problem: &Problem,
    x: &[f64],
    wanted: &[String],
    options: &SolveOptions,
    solver: &SolveFn<'_>,
    near: Option<&mut Vec<Option<Near>>>,
) -> Result<TrialPredictions, TrialSolveError> {
    let mut none = Vec::new();
    let near = near.unwrap_or(&mut none);
    near.resize(problem.trials.trials.len(), options.near.clone());
    let from: &[Option<Near>] = near;
    let one = |index: usize| {
        let mut values = problem.bindings_of(index);
        problem.estimate.iter().zip(x).for_each(|(e, x)| values.set(e.name.clone(), *x));
        let id = &problem.trials.trials[index].id;
        let options = SolveOptions { near: from[index].clone(), ..options.clone() };
        solve_point(&problem.model, &values, wanted, &problem.trials.measures, &options, solver, id)
    };
    let solved = on_all_cores_where_it_pays(problem.trials.trials.len(), from.iter().any(Option::is_some), &one);
    let mut all = TrialPredictions { values: Vec::new(), jacobians: Vec::new(), solutions: Vec::new() };
    for (solved, near) in solved.into_iter().zip(near) {
        let solved = solved?;
        all.values.push(solved.values);
        all.jacobians.push(solved.jacobian);
        all.solutions.push(solved.solution);
        *near = solved.near.or(near.take());
    }
    Ok(all)
}

/// Error of a solution that is found by iteration, over the tolerance of the solver, by which nothing changes any more where it stops. Throughputs of
/// 300 drawn models by the layered solver to 1e-9: median 2e-9, nine in ten within 2e-8.
const ERROR_OVER_TOLERANCE: f64 = 10.0;
/// Fewest iterations of a solution that is found by them: others are known to rounding.
const FEWEST_ITERATIONS: usize = 2;

/// Fewest iterations of the first trial's solution for which it pays to solve the others on all cores: recursions of a few
/// microseconds do not.
const WORTH_THREADS: usize = 2;

type Solved = Result<Sensitivities, TrialSolveError>;

/// Results of `one` for 0 to `n - 1`, in that order: on all cores where each takes a while, which the first says if nobody else; otherwise
/// up to the first error.
fn on_all_cores_where_it_pays(n: usize, iterates: bool, one: &(impl Fn(usize) -> Solved + Sync)) -> Vec<Solved> {
    if iterates {
        return (0..n).into_par_iter().map(one).collect();
    }
    let mut found: Vec<Solved> = Vec::with_capacity(n);
    if n > 0 {
        found.push(one(0));
    }
    if found.iter().flatten().any(|s| s.solution.iterations >= WORTH_THREADS) {
        found.par_extend((1..n).into_par_iter().map(one));
    }
    while found.len() < n && found.iter().all(Result::is_ok) {
        found.push(one(found.len()));
    }
    found
}

/// Solves one operating point and refuses what is not a solution; `label` names the point in errors.
///
/// # Errors
/// [`TrialSolveError`].
pub fn solve_point(
    model: &Model,
    values: &Bindings,
    wanted: &[String],
    measures: &[Measure],
    options: &SolveOptions,
    solver: &SolveFn<'_>,
    label: &str,
) -> Result<Sensitivities, TrialSolveError> {
    let refused = |source| TrialSolveError::Refused { trial: label.to_owned(), source };
    let solved = solver(model, values, wanted, measures, options).map_err(refused)?;
    assert!(solved.values.len() == measures.len() && solved.jacobian.shape() == (measures.len(), wanted.len()));
    if !solved.solution.converged {
        let Solution { solver, iterations, residual, .. } = solved.solution;
        return Err(TrialSolveError::NotConverged { trial: label.to_owned(), solver, iterations, residual });
    }
    for (index, measure) in measures.iter().enumerate() {
        if !(solved.values[index].is_finite() && solved.jacobian.row(index).iter().all(|d| d.is_finite())) {
            return Err(TrialSolveError::NotFinite { trial: label.to_owned(), measure: measure.clone() });
        }
    }
    Ok(solved)
}

/// One measured value among all: its trial, its measure, and the square root of its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Index of the trial.
    pub trial_idx: usize,
    /// Index of the measure.
    pub measure_idx: usize,
    /// The measured value.
    pub value: f64,
    /// `√w`, > 0.
    pub root_weight: f64,
}

/// A problem as a residual function `√w (z - h(x, u))`, `(n_residuals)`, followed by a row `(m_j - x_j) / s_j` for each prior.
pub struct ProblemResiduals<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Its observations with their weights.
    pub weights: &'a Weights,
    /// Where derivatives come from.
    pub derivatives: Derivatives,
    /// Options of the solver.
    pub solve_options: &'a SolveOptions,
    /// The solver.
    pub solver: &'a SolveFn<'a>,
    /// Parameters that move; derivatives by the others are left 0.
    pub free: Vec<usize>,
    /// Why the last evaluation failed, if it did.
    pub last_error: Option<TrialSolveError>,
    /// Solutions of the trials at the last parameters, from which the next ones start. None where they are wanted to the full
    /// precision: what a start leaves within the tolerance of the solver is no smooth function of the parameters.
    pub near: Option<Vec<Option<Near>>>,
    /// Error of the values of the last evaluation, relative to them: 0 where the solver does not iterate.
    error: f64,
}

impl<'a> ProblemResiduals<'a> {
    /// The residuals of `problem` under `weights`, all parameters free.
    pub fn new(problem: &'a Problem, weights: &'a Weights, options: &'a FitOptions, solver: &'a SolveFn<'a>) -> Self {
        let (derivatives, solve_options) = (options.derivatives, &options.solve);
        let free = (0..problem.estimate.len()).collect();
        Self { problem, weights, derivatives, solve_options, solver, free, last_error: None, near: None, error: 0.0 }
    }

    fn n_rows(&self) -> usize {
        self.weights.n_residuals() + self.problem.priors().count()
    }

    fn residuals(&self, x: &[f64], solved: &TrialPredictions) -> DVector<f64> {
        let raw: Vec<f64> = self.weights.observations.iter().map(|o| o.value - solved.values[o.trial_idx][o.measure_idx]).collect();
        let mut residuals = self.weights.whiten(&raw).resize_vertically(self.n_rows(), 0.0);
        residuals.iter_mut().zip(&self.weights.factors).for_each(|(r, factor)| *r *= factor);
        for (row, (j, prior)) in (self.weights.n_residuals()..).zip(self.problem.priors()) {
            residuals[row] = self.weights.prior_factor * (prior.most_likely - x[j]) / prior.deviation(x[j]);
        }
        residuals
    }

    fn jacobian(&self, x: &[f64], solved: &TrialPredictions) -> DMatrix<f64> {
        let observations = &self.weights.observations;
        let mut raw = DMatrix::zeros(observations.len(), x.len());
        for (column, &j) in self.free.iter().enumerate() {
            for (i, o) in observations.iter().enumerate() {
                raw[(i, j)] = -solved.jacobians[o.trial_idx][(o.measure_idx, column)];
            }
        }
        let mut jacobian = self.weights.whiten_rows(&raw).resize_vertically(self.n_rows(), 0.0);
        jacobian.row_iter_mut().zip(&self.weights.factors).for_each(|(mut row, factor)| row *= *factor);
        for (row, (j, prior)) in (self.weights.n_residuals()..).zip(self.problem.priors()) {
            jacobian[(row, j)] = -self.weights.prior_factor / prior.deviation(x[j]);
        }
        jacobian
    }
}

impl ResidualModel for ProblemResiduals<'_> {
    fn n_obs(&self) -> usize {
        self.n_rows()
    }

    fn n_params(&self) -> usize {
        self.problem.estimate.len()
    }

    fn set_free(&mut self, free: &[usize]) {
        self.free = free.to_vec();
    }

    fn evaluate(&mut self, x: &[f64], wanted: Wanted) -> Result<Evaluation, EvaluationError> {
        let differentiate = wanted == Wanted::Jacobian && self.derivatives == Derivatives::Solver;
        let names: Vec<String> = match differentiate {
            true => self.free.iter().map(|&j| self.problem.estimate[j].name.clone()).collect(),
            false => Vec::new(),
        };
        let solved = match solve_trials_near(self.problem, x, &names, self.solve_options, self.solver, self.near.as_mut()) {
            Ok(solved) => solved,
            Err(error) => {
                let text = error.to_string();
                self.last_error = Some(error);
                return Err(EvaluationError(text));
            }
        };
        let iterates = solved.solutions.iter().any(|s| s.iterations >= FEWEST_ITERATIONS);
        self.error = if iterates { ERROR_OVER_TOLERANCE * self.solve_options.tolerance } else { 0.0 };
        let jacobian = differentiate.then(|| self.jacobian(x, &solved));
        Ok(Evaluation { residuals: self.residuals(x, &solved), jacobian })
    }

    fn magnitude(&self) -> f64 {
        let values: Vec<f64> = self.weights.observations.iter().map(|o| o.value).collect();
        self.weights.whiten(&values).norm()
    }

    fn error(&self) -> f64 {
        self.error
    }
}
