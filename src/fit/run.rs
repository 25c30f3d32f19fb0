//! The fit itself: problem in, report out.
//!
//! 1. The problem is checked; weights and start are chosen ([`super::weights`], [`super::start`]).
//! 2. The engine minimises the weighted sum of squares. Where that ends without a minimum, or where the data then seem
//!    not to determine the parameters, it is tried once more from a searched start, and the lower end is kept.
//! 3. Where weights come from residual variances, those are estimated anew and step 2 is repeated, until they settle.
//! 4. The report is made ([`super::assemble`]).

use std::ops::ControlFlow;

use super::{
    assemble::{Ending, assemble},
    inference::identify,
    least_squares::{Bounds, Iterate, LeastSquaresOptions, Minimum, StartError, StopReason, minimise},
    problem::{Problem, ProblemError},
    report::Fit,
    solver::{Derivatives, ProblemResiduals, SolveFn, TrialSolveError, solve_trials},
    start::{self, StartOrigin},
    weights::Weights,
};
use crate::solve::{self, SolveOptions};

/// Relative change of a residual standard deviation at which the weights count as settled.
const SETTLED: f64 = 1e-10;

/// How to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Options of the engine.
    pub least_squares: LeastSquaresOptions,
    /// Options of the solver.
    pub solve: SolveOptions,
    /// Where derivatives come from.
    pub derivatives: Derivatives,
    /// Most rounds of estimating residual variances.
    pub max_weighting_rounds: usize,
    /// Singular value, relative to the largest, below which a direction counts as not seen by the data. The precision
    /// of the solver's derivatives sets it.
    pub rank_tolerance: f64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            least_squares: LeastSquaresOptions { max_iterations: 500, ..LeastSquaresOptions::default() },
            solve: SolveOptions::default(),
            derivatives: Derivatives::Solver,
            max_weighting_rounds: 200,
            rank_tolerance: 1e-7,
        }
    }
}

/// Where a fit stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Round of weighting, from 0.
    pub round: usize,
    /// Steps tried in this round.
    pub iteration: usize,
    /// Best parameters so far, in the problem's order.
    pub parameters: Vec<f64>,
    /// Their weighted sum of squares.
    pub sum_of_squares: f64,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The problem cannot be fitted as it stands.
    #[error("the problem cannot be fitted as it stands")]
    Problem(#[from] ProblemError),
    /// The model has no solution where the search should start, nor near it.
    #[error("the model has no solution at the start or near it: try other starts or bounds")]
    Start(#[source] TrialSolveError),
    /// The residuals at the start are too large for floating-point numbers.
    #[error("the residuals at the start are not finite: try other starts")]
    StartNotFinite,
    /// The model has no solution at the best parameters found.
    #[error("the model has no solution at the best parameters found")]
    Solution(#[source] TrialSolveError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Fits `problem`, reporting every step to `progress`, which may cancel.
///
/// # Errors
/// [`FitError`] when there is nothing to report. A search without a minimum, a parameter at its bound, parameters that
/// the data cannot tell apart are not errors but said in the [`Fit`].
pub fn fit(problem: &Problem, options: &FitOptions, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Fit, FitError> {
    fit_with(problem, options, &solve::sensitivities, progress)
}

/// As [`fit`], with another solver.
///
/// # Errors
/// As [`fit`].
pub fn fit_with(
    problem: &Problem,
    options: &FitOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    problem.check()?;
    let mut weights = Weights::of(problem);
    let mut search = Search { problem, options, solver, progress, round: 0, iterations: 0, evaluations: 0, notes: Vec::new() };
    let (start, origins) = search.choose_start(&weights)?;
    let mut minimum = search.minimise_twice(&weights, &start)?;
    let settled = search.settle_weights(&mut weights, &mut minimum)?;
    let solved = solve_trials(problem, &minimum.x, &[], &options.solve, solver).map_err(FitError::Solution)?;
    let ending = Ending {
        minimum: &minimum,
        weights: &weights,
        solved: &solved,
        start: &start,
        origins: &origins,
        rounds: search.round,
        settled,
        iterations: search.iterations,
        evaluations: search.evaluations,
        rank_tolerance: options.rank_tolerance,
        notes: search.notes,
    };
    Ok(assemble(problem, &ending))
}

/// Minimises the sum of squares of `problem` with given `weights` from `start`; for comparisons.
///
/// # Errors
/// As [`fit`].
pub(super) fn minimise_weighted(
    problem: &Problem,
    weights: &Weights,
    start: &[f64],
    options: &FitOptions,
    solver: &SolveFn<'_>,
) -> Result<Minimum, FitError> {
    let progress = &mut |_: &Progress| ControlFlow::Continue(());
    Search { problem, options, solver, progress, round: 0, iterations: 0, evaluations: 0, notes: Vec::new() }.minimise(weights, start)
}

struct Search<'a> {
    problem: &'a Problem,
    options: &'a FitOptions,
    solver: &'a SolveFn<'a>,
    progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    round: usize,
    iterations: usize,
    evaluations: usize,
    notes: Vec<String>,
}

impl Search<'_> {
    fn residuals<'b>(&'b self, weights: &'b Weights) -> ProblemResiduals<'b> {
        ProblemResiduals {
            problem: self.problem,
            observations: &weights.observations,
            derivatives: self.options.derivatives,
            solve_options: &self.options.solve,
            solver: self.solver,
            last_error: None,
        }
    }

    fn choose_start(&mut self, weights: &Weights) -> Result<(Vec<f64>, Vec<StartOrigin>), FitError> {
        let mut residuals = self.residuals(weights);
        match start::choose(self.problem, &mut residuals) {
            Some((start, origins)) => {
                let moved = self.problem.estimate.iter().zip(&start).any(|(e, s)| e.start.is_some_and(|given| given != *s));
                if moved {
                    self.notes.push("the model has no solution at the given start; a multiple of it was taken".into());
                }
                Ok((start, origins))
            }
            None => Err(residuals.last_error.map_or(FitError::StartNotFinite, FitError::Start)),
        }
    }

    /// Minimises from `start`, and again from a searched start where the first end is doubtful.
    fn minimise_twice(&mut self, weights: &Weights, start: &[f64]) -> Result<Minimum, FitError> {
        let first = self.minimise(weights, start)?;
        let seen = identify(&first.jacobian, self.options.rank_tolerance).rank == start.len();
        if first.stop.converged() && seen {
            return Ok(first);
        }
        let searched = start::search_all(self.problem, &mut self.residuals(weights));
        let Some(second_start) = searched else { return Ok(first) };
        let second = self.minimise(weights, &second_start)?;
        let better = second.sum_of_squares < first.sum_of_squares * (1.0 - 1e-6);
        if better || (second.stop.converged() && !first.stop.converged() && second.sum_of_squares <= first.sum_of_squares) {
            self.notes.push("the search from the start ended without a minimum; one from a searched start ended lower and was kept".into());
            return Ok(second);
        }
        Ok(first)
    }

    fn minimise(&mut self, weights: &Weights, start: &[f64]) -> Result<Minimum, FitError> {
        let (lower, upper) = self.problem.bounds().into_iter().unzip();
        let round = self.round;
        let mut residuals = ProblemResiduals {
            problem: self.problem,
            observations: &weights.observations,
            derivatives: self.options.derivatives,
            solve_options: &self.options.solve,
            solver: self.solver,
            last_error: None,
        };
        let progress = &mut self.progress;
        let mut report =
            |i: &Iterate| progress(&Progress { round, iteration: i.iteration, parameters: i.x.clone(), sum_of_squares: i.sum_of_squares });
        let ended = minimise(&mut residuals, start, &Bounds { lower, upper }, &self.options.least_squares, &mut report);
        let minimum = match ended {
            Ok(minimum) => minimum,
            Err(StartError::NotFinite) => return Err(FitError::StartNotFinite),
            Err(StartError::Evaluation(_)) => return Err(residuals.last_error.map_or(FitError::StartNotFinite, FitError::Start)),
        };
        self.iterations += minimum.iterations;
        self.evaluations += minimum.evaluations;
        if minimum.stop == StopReason::Cancelled { Err(FitError::Cancelled) } else { Ok(minimum) }
    }

    /// Estimates residual variances and minimises by turns; whether the variances settled.
    fn settle_weights(&mut self, weights: &mut Weights, minimum: &mut Minimum) -> Result<bool, FitError> {
        if !weights.are_estimated() {
            return Ok(true);
        }
        while self.round < self.options.max_weighting_rounds {
            self.round += 1;
            let change = weights.update(minimum.residuals.as_slice());
            *minimum = self.minimise(weights, &minimum.x)?;
            if change <= SETTLED {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
