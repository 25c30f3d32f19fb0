//! The fit itself: problem in, report out.
//!
//! 1. The problem is checked; weights and start are chosen ([`super::weights`], [`super::start`]).
//! 2. The engine minimises the weighted sum of squares, with whole numbers by a search over neighbours ([`super::whole`]).
//!    Where that ends without a minimum, or where the data then seem not to determine the parameters, it is tried once
//!    more from a searched start, and the lower end is kept; where more starts are asked for, from each of them
//!    ([`super::multistart`]).
//! 3. Where weights come from residual variances, a loss bounds outliers, or a prior stands against errors of unknown scale,
//!    those are estimated anew and step 2 is repeated from its end, until they settle; on the data alone, with priors beside them
//!    at last.
//! 4. The report is made ([`crate::fit::report`]).

use std::ops::ControlFlow;

use nalgebra::DMatrix;

use super::{
    multistart::{self, StartsReport},
    solver::{Derivatives, ProblemResiduals, SolveFn, TrialPredictions, TrialSolveError, solve_trials},
    start::{self, StartOrigin},
    weights::Weights,
    whole::{self, WholeNumber},
};
use crate::{
    fit::{
        correction::{OwnError, fit_corrected_with},
        design::Cures,
        engine::{
            least_squares::{Bounds, EvaluationError, Iterate, Jacobians, LeastSquaresOptions, Minimum, Start, StartError, StopReason},
            view::{Coordinates, Scale, minimise_in_from},
        },
        inference::identify,
        problem::{Problem, ProblemError, Transform},
        report::{
            Fit,
            assemble::{Ending, OptionalMatrix, assemble, covariance_without_bounds},
            extras,
        },
    },
    solve::{self, Near, SolveError, SolveOptions},
};

/// Relative difference of two sums of squares below which both are of one end.
const SAME_END: f64 = 1e-6;

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
    /// Whether the report lists what would settle directions that the data hardly see.
    pub cures: Cures,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            least_squares: LeastSquaresOptions { max_iterations: 500, ..LeastSquaresOptions::default() },
            solve: SolveOptions::default(),
            derivatives: Derivatives::Solver,
            max_weighting_rounds: 200,
            rank_tolerance: 1e-7,
            cures: Cures::LeftOut,
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
    /// The model cannot be simulated where the solver's error is to be taken.
    #[error("trial \"{trial}\" cannot be simulated")]
    Simulation {
        /// The trial.
        trial: String,
        /// Why.
        #[source]
        source: SolveError,
    },
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
    fit_as_asked(problem, options, &solve::sensitivities, progress)
}

/// As [`fit`], with another solver.
///
/// # Errors
/// As [`fit`].
pub(crate) fn fit_as_asked(
    problem: &Problem,
    options: &FitOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    match &problem.method.correct_solver {
        Some(correction) => fit_corrected_with(problem, options, correction, solver, progress),
        None => fit_with(problem, options, solver, progress),
    }
}

/// As [`fit`], with another solver, and not corrected for its error.
///
/// # Errors
/// As [`fit`].
pub fn fit_with(
    problem: &Problem,
    options: &FitOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    fit_corrected_by(problem, options, solver, None, progress).map(|found| found.fit)
}

/// A fit, and what a correction wants to know of it.
pub(crate) struct FitFound {
    pub(crate) fit: Fit,
    /// Covariance of the estimates as if no bound held them.
    pub(crate) covariance: OptionalMatrix,
    /// Sum of squares that the simulation's own error adds to be expected.
    pub(crate) own_squares: f64,
}

/// As [`fit_with`]; where `solver` is corrected, with the errors of that in the intervals.
///
/// # Errors
/// As [`fit`].
pub(crate) fn fit_corrected_by(
    problem: &Problem,
    options: &FitOptions,
    solver: &SolveFn<'_>,
    own_error: Option<&OwnError>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<FitFound, FitError> {
    problem.check()?;
    let mut weights = Weights::of(problem)?;
    let mut search = Search::new(problem, options, solver, progress);
    let (start, origins) = search.choose_start(&weights)?;
    let mut minimum = search.minimise_twice(&weights, &start)?;
    let starts = search.more_starts(&weights, &mut minimum)?;
    let settled = search.settle(&mut weights, &mut minimum)?;
    let (solved, complete) = search.at_the_end(&weights, &minimum)?;
    let ending = Ending {
        minimum: &complete,
        weights: &weights,
        solved: &solved,
        start: &start,
        origins: &origins,
        rounds: search.round,
        settled,
        iterations: search.iterations,
        evaluations: search.evaluations,
        rank_tolerance: options.rank_tolerance,
        whole: search.whole_found.clone(),
        starts,
        own_error,
        notes: std::mem::take(&mut search.notes),
    };
    let (fit, covariance) = (assemble(problem, &ending), covariance_without_bounds(problem, &ending));
    let own_squares = own_error.map_or(0.0, |own| own.squares(&ending.fitted(problem)));
    let mut step = Progress {
        round: search.round,
        iteration: search.iterations,
        parameters: complete.x.clone(),
        sum_of_squares: complete.sum_of_squares,
    };
    let mut keep = || {
        step.iteration += 1;
        (search.progress)(&step)
    };
    let fit = extras::add(fit, &weights, &complete, options, solver, &mut keep)?;
    Ok(FitFound { fit, covariance, own_squares })
}

/// Minimises the sum of squares of `problem` with given `weights` from `start`: for comparisons, profiles, resampled data.
///
/// # Errors
/// As [`fit`].
pub(crate) fn minimise_weighted(
    problem: &Problem,
    weights: &Weights,
    start: &[f64],
    options: &FitOptions,
    solver: &SolveFn<'_>,
) -> Result<Minimum, FitError> {
    Search::new(problem, options, solver, &mut |_| ControlFlow::Continue(())).minimise(weights, start)
}

/// How closely a minimum is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Effort {
    /// To the precision of the options.
    Full,
    /// Closely enough to compare sums of squares.
    Coarse,
    /// Until it is clear about where the sum of squares ends, or that it ends above this one.
    Screening(f64),
    /// The same, by derivatives that were evaluated at the end.
    Checking,
}

/// Relative offset at which a sum of squares is known to about its sixth digit.
const COARSE_OFFSET: f64 = 1e-3;

/// Relative offset at which it is known to about one in a hundred.
const SCREENING_OFFSET: f64 = 0.1;

/// The solver's tolerance then.
const COARSE_TOLERANCE: f64 = 1e-7;

/// And where it is known to about one in a hundred.
const SCREENING_TOLERANCE: f64 = 1e-5;

impl Effort {
    fn options(self, options: &LeastSquaresOptions) -> LeastSquaresOptions {
        let to = |offset: f64, jacobians: Jacobians| LeastSquaresOptions {
            offset_tolerance: options.offset_tolerance.max(offset),
            jacobians,
            ..options.clone()
        };
        match self {
            // Over the last small steps a secant is the solver's rounding.
            Self::Full => options.clone(),
            Self::Coarse => to(COARSE_OFFSET, Jacobians::Secant),
            Self::Screening(beyond) => LeastSquaresOptions { beyond: Some(beyond), ..to(SCREENING_OFFSET, Jacobians::SecantToTheEnd) },
            Self::Checking => to(SCREENING_OFFSET, Jacobians::Secant),
        }
    }

    /// The solver is to be a hundred times closer than the sum of squares, of which the error enters twice.
    fn solve_options(self, options: &SolveOptions) -> SolveOptions {
        let tolerance = match self {
            Self::Full => options.tolerance,
            Self::Coarse => options.tolerance.max(COARSE_TOLERANCE),
            Self::Screening(_) | Self::Checking => options.tolerance.max(SCREENING_TOLERANCE),
        };
        SolveOptions { tolerance, ..options.clone() }
    }
}

pub(super) struct Search<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a FitOptions,
    solver: &'a SolveFn<'a>,
    progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    /// Which parameters are whole numbers.
    pub(super) whole: Vec<bool>,
    /// The others, each on its scale.
    pub(super) coordinates: Coordinates,
    pub(super) whole_found: Vec<WholeNumber>,
    pub(super) round: usize,
    iterations: usize,
    evaluations: usize,
    notes: Vec<String>,
    /// Solutions of the trials at the last parameters of a search that was not to the full precision.
    near: Vec<Option<Near>>,
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem,
        options: &'a FitOptions,
        solver: &'a SolveFn<'a>,
        progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Self {
        let whole = problem.whole_numbers();
        let coordinates = coordinates(problem, &whole);
        Self {
            problem,
            options,
            solver,
            progress,
            whole,
            coordinates,
            whole_found: Vec::new(),
            round: 0,
            iterations: 0,
            evaluations: 0,
            notes: Vec::new(),
            near: Vec::new(),
        }
    }

    pub(super) fn residuals<'b>(&'b self, weights: &'b Weights) -> ProblemResiduals<'b> {
        ProblemResiduals::new(self.problem, weights, self.options, self.solver)
    }

    fn choose_start(&mut self, weights: &Weights) -> Result<(Vec<f64>, Vec<StartOrigin>), FitError> {
        let mut residuals = self.residuals(weights);
        // Points of a grid are far from each other.
        let is_given = self.problem.estimate.iter().all(|e| e.start.is_some());
        residuals.near = is_given.then(Vec::new);
        let chosen = start::choose(self.problem, &mut residuals);
        let (near, last_error) = (residuals.near.take(), residuals.last_error.take());
        self.near = near.unwrap_or_default();
        match chosen {
            Some((start, origins)) => {
                let moved = self.problem.estimate.iter().zip(&start).any(|(e, s)| e.start.is_some_and(|given| given != *s));
                if moved {
                    self.notes.push("the model has no solution at the given start; a multiple of it was taken".into());
                }
                Ok((start, origins))
            }
            None => Err(last_error.map_or(FitError::StartNotFinite, FitError::Start)),
        }
    }

    /// Minimises from `start`, and again from a searched start where the first end is doubtful.
    fn minimise_twice(&mut self, weights: &Weights, start: &[f64]) -> Result<Minimum, FitError> {
        let first = self.minimise(weights, start)?;
        let free = first.jacobian.select_columns(&self.coordinates.free);
        let seen = identify(&free, self.options.rank_tolerance).rank == free.ncols();
        if first.stop.converged() && seen {
            return Ok(first);
        }
        let searched = start::search_all(self.problem, &mut self.residuals(weights));
        let Some(second_start) = searched else { return Ok(first) };
        let of_first = self.whole_found.clone();
        let second = self.minimise(weights, &second_start)?;
        if is_better(&second, &first) {
            let how = if first.stop.converged() { "where parameters cannot be told apart" } else { "without a minimum" };
            self.notes.push(format!("the search from the start ended {how}; one from a searched start ended lower and was kept"));
            return Ok(second);
        }
        self.whole_found = of_first;
        Ok(first)
    }

    /// Minimises from every start of a Latin hypercube where that is asked for; keeps the lowest end.
    fn more_starts(&mut self, weights: &Weights, minimum: &mut Minimum) -> Result<Option<StartsReport>, FitError> {
        let Some(starts) = self.problem.method.starts else { return Ok(None) };
        let mut ends = vec![multistart::End::of(minimum)];
        let mut of_best = self.whole_found.clone();
        for start in multistart::latin_hypercube(&multistart::ranges(self.problem, &minimum.x), &self.whole, starts) {
            match self.minimise(weights, &start) {
                Ok(found) => {
                    ends.push(multistart::End::of(&found));
                    if is_better(&found, minimum) {
                        *minimum = found;
                        of_best.clone_from(&self.whole_found);
                    }
                }
                Err(FitError::Cancelled) => return Err(FitError::Cancelled),
                Err(_) => ends.push(multistart::End::without_solution()),
            }
        }
        self.whole_found = of_best;
        Ok(Some(multistart::summary(starts, &ends)))
    }

    /// Minimises over all parameters, whole numbers included.
    pub(super) fn minimise(&mut self, weights: &Weights, start: &[f64]) -> Result<Minimum, FitError> {
        if self.whole.contains(&true) {
            return whole::minimise(self, weights, start);
        }
        self.minimise_with(weights, &Start { x: start, jacobian: None }, Effort::Full)
    }

    /// Minimises over the parameters that are not whole numbers with the given effort.
    pub(super) fn minimise_with(&mut self, weights: &Weights, start: &Start<'_>, effort: Effort) -> Result<Minimum, FitError> {
        let options = effort.options(&self.options.least_squares);
        let solve_options = effort.solve_options(&self.options.solve);
        let (lower, upper) = self.problem.bounds().into_iter().unzip();
        let round = self.round;
        let mut residuals = ProblemResiduals::new(self.problem, weights, self.options, self.solver);
        residuals.solve_options = &solve_options;
        residuals.near = (effort != Effort::Full).then(|| std::mem::take(&mut self.near));
        let progress = &mut self.progress;
        let mut report =
            |i: &Iterate| progress(&Progress { round, iteration: i.iteration, parameters: i.x.clone(), sum_of_squares: i.sum_of_squares });
        let bounds = Bounds { lower, upper };
        let ended = minimise_in_from(&mut residuals, &self.coordinates, start, &bounds, &options, &mut report);
        self.near = residuals.near.take().unwrap_or_default();
        let minimum = match ended {
            Ok(minimum) => minimum,
            Err(StartError::NotFinite) => return Err(FitError::StartNotFinite),
            Err(StartError::Evaluation(_)) => return Err(residuals.last_error.map_or(FitError::StartNotFinite, FitError::Start)),
        };
        self.iterations += minimum.iterations;
        self.evaluations += minimum.evaluations;
        if minimum.stop == StopReason::Cancelled { Err(FitError::Cancelled) } else { Ok(minimum) }
    }

    /// Solutions of all trials at the minimum, and the minimum with the derivatives by every parameter.
    fn at_the_end(&mut self, weights: &Weights, minimum: &Minimum) -> Result<(TrialPredictions, Minimum), FitError> {
        let solved = solve_trials(self.problem, &minimum.x, &[], &self.options.solve, self.solver).map_err(FitError::Solution)?;
        if !self.whole.contains(&true) {
            return Ok((solved, minimum.clone()));
        }
        let mut residuals = self.residuals(weights);
        match self.with_differences(&mut residuals, minimum) {
            Ok(jacobian) => Ok((solved, Minimum { jacobian, ..minimum.clone() })),
            Err(_) => Err(residuals.last_error.map_or(FitError::StartNotFinite, FitError::Solution)),
        }
    }

    /// The Jacobian of a minimum over the other parameters, with differences over their neighbours for the whole numbers.
    fn with_differences(&self, residuals: &mut ProblemResiduals<'_>, minimum: &Minimum) -> Result<DMatrix<f64>, EvaluationError> {
        let (lower, upper) = self.problem.bounds().into_iter().unzip();
        let bounds = Bounds { lower, upper };
        let mut jacobian = minimum.jacobian.clone();
        for j in (0..minimum.x.len()).filter(|&j| self.whole[j]) {
            jacobian.set_column(j, &whole::difference(residuals, minimum, j, &bounds)?);
        }
        Ok(jacobian)
    }
}

/// Whether a search ended clearly lower than another; or as low, at a minimum where the other is none. A minimum that is higher may be a
/// saddle between two ends that parameters which cannot be told apart have in common.
fn is_better(found: &Minimum, than: &Minimum) -> bool {
    let is_lower = found.sum_of_squares < than.sum_of_squares * (1.0 - SAME_END);
    let is_as_low = found.sum_of_squares <= than.sum_of_squares * (1.0 + SAME_END);
    is_lower || is_as_low && found.stop.converged() && !than.stop.converged()
}

/// The parameters that the engine moves, each on its scale.
pub(crate) fn coordinates(problem: &Problem, whole: &[bool]) -> Coordinates {
    let scale = |t: Transform| if t == Transform::Log { Scale::Log } else { Scale::Natural };
    Coordinates {
        free: (0..whole.len()).filter(|&j| !whole[j]).collect(),
        scales: problem.estimate.iter().map(|e| scale(e.transform)).collect(),
    }
}
