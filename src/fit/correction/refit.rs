//! The refits of a response correction.

use std::ops::ControlFlow;

use indexmap::IndexMap;

use super::{
    CorrectedPoint, Correction, CorrectionOptions, CorrectionOutcome, CorrectionReport, CorrectionRound, Factor, PlainEstimate,
    SimulationOptions,
    noise::{OwnError, Taken},
    reach::{held, keep_within, say_what_is_held},
    report::{explains_less, notes, own_share},
    simulated::Simulations,
    slopes::{Direction, Open, open_directions, reach},
};
use crate::{
    fit::{
        design::Cures,
        inference::distribution::normal_two_sided,
        problem::{Intervals, Method, Problem},
        report::{Fit, ParameterEstimate, assemble::OptionalMatrix, digits::two_digits},
        search::{
            run::{FitError, FitFound, FitOptions, Progress, fit_corrected_by},
            solver::{SolveFn, solve_trials},
        },
    },
    model::Bindings,
    solve,
};

/// Value, relative to the measure's size over the trials, below which a difference is added instead of a ratio.
const NEAR_ZERO: f64 = 1e-3;

/// Ratio beyond which, either way, it is no correction any more and the difference is added.
const FAR: f64 = 10.0;

/// Half-width, relative to a parameter, that one without an interval is held to.
const WITHOUT_INTERVAL: f64 = 0.01;

/// How far apart the seeds of operating points are: 2⁶⁴ over the golden ratio, so that those of neighbouring fits do not meet.
const SEEDS_APART: u64 = 0x9E37_79B9_7F4A_7C15;

/// How often slopes are simulated, at most.
const MOST_SLOPES: usize = 3;

/// Fits `problem` to what a simulation of the model would give, by response correction of the analytic solver.
///
/// # Errors
/// As [`crate::fit::fit`], and [`FitError::Simulation`]. A correction that does not settle is not an error but said in the [`Fit`].
pub fn fit_corrected(
    problem: &Problem,
    options: &FitOptions,
    correction: &CorrectionOptions,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    fit_corrected_with(problem, options, correction, &solve::sensitivities, progress)
}

/// As [`fit_corrected`], with another solver: it is that one's error that is corrected.
///
/// # Errors
/// As [`fit_corrected`].
pub fn fit_corrected_with(
    problem: &Problem,
    options: &FitOptions,
    correction: &CorrectionOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    problem.check()?;
    let lean = FitOptions { cures: Cures::LeftOut, ..options.clone() };
    let mut refit =
        Refit { options: &lean, correction, solver, quick: quick(problem), simulations: Simulations::default(), slopes: Slopes::default() };
    let FitFound { fit: plain, covariance, .. } = fit_corrected_by(&refit.quick, &lean, solver, None, progress)?;
    let mut report = CorrectionReport {
        outcome: CorrectionOutcome::NotSettled,
        rounds: Vec::new(),
        plain: plain_estimates(&plain),
        seed: correction.simulation.seed,
        precision: None,
        own_squares: None,
        slopes_along: Vec::new(),
        correction: Correction::default(),
    };
    let plain_left = plain.sum_of_squares;
    let mut last = End { fit: plain, covariance, held: Vec::new() };
    let mut own = OwnError::default();
    let mut lost = None;
    // A round without a minimum may still lead to where the next has one.
    while (last.fit.converged || !report.rounds.is_empty()) && report.rounds.len() < correction.max_rounds.max(1) {
        // In the first round, too: ratios that are held may lead a parameter to its bound, and stay there.
        let with_slopes = refit.slopes_are_wanted(&last);
        (report.correction, own) = match refit.factors(&last, with_slopes, progress) {
            // What the rounds before led to cannot be simulated: they end where it last could.
            Err(FitError::Simulation { trial, .. }) if !report.rounds.is_empty() => {
                lost = Some(trial);
                break;
            }
            found => found?,
        };
        let next = refit.round(&report.correction, &own, &last.fit, progress)?;
        let largest_move = largest_move(&last.fit, &next.fit);
        report.rounds.push(CorrectionRound { parameters: owned_estimates(&next.fit), largest_move, slopes: with_slopes });
        last = next;
        if last.fit.converged && last.held.is_empty() && largest_move <= correction.settled && !refit.slopes_are_wanted(&last) {
            report.outcome = CorrectionOutcome::Settled;
            break;
        }
    }
    report.slopes_along = refit.slopes.along.iter().map(|(direction, _)| direction.step(&problem.estimated_names())).collect();
    report.precision = Some(refit.simulations.precision).filter(|p| p.is_finite());
    if !last.fit.converged {
        report.outcome = CorrectionOutcome::NoMinimum;
    }
    let reached = (report.outcome != CorrectionOutcome::Settled).then(|| refit.reach(&report.correction));
    let mut fit = refit.finished((problem, options), &last.fit, report, (&own, reached.as_deref()), progress)?;
    fit.notes.extend(lost.map(|trial| {
        format!(
            "the correction for the solver's error ended early: trial \"{trial}\" could not be simulated at the estimates of its last round, which \
             may have gone far along a direction that the trials hardly determine"
        )
    }));
    // Variances estimated from the residuals make any sum of squares about as large as there are degrees of freedom.
    if fit.weighting.rounds == 0 {
        fit.notes.extend(explains_less(plain_left, fit.sum_of_squares));
    }
    Ok(fit)
}

/// The end of a round.
struct End {
    fit: Fit,
    /// Covariance of the estimates as if no bound held them: one that is on its bound for now may not belong there.
    covariance: OptionalMatrix,
    /// Names of those that are as far as the factors reach.
    held: Vec<String>,
}

impl End {
    fn std_error(&self, place: usize) -> Option<f64> {
        self.covariance.as_ref()?[place][place].map(f64::sqrt).filter(|s| *s > 0.0)
    }
}

struct Refit<'a> {
    options: &'a FitOptions,
    correction: &'a CorrectionOptions,
    /// What is corrected.
    solver: &'a SolveFn<'a>,
    /// The problem without what is only wanted of the last fit.
    quick: Problem,
    simulations: Simulations,
    slopes: Slopes,
}

/// Slopes of the factors as they were simulated last.
#[derive(Default)]
struct Slopes {
    /// The parameters between the ends; none before the first time.
    at: Option<Vec<f64>>,
    times: usize,
    /// The directions, with the factors at either end.
    along: Vec<(Direction, [Taken; 2])>,
}

impl Refit<'_> {
    /// Factors at the estimates, with their errors; or, with slopes simulated anew if that is asked, from where there is room for these.
    fn factors(
        &mut self,
        end: &End,
        with_slopes: bool,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Correction, OwnError), FitError> {
        let taken = match with_slopes {
            true => self.look_along(self.open(end), end, progress)?,
            false => self.factors_at(&estimates(&end.fit), end.fit.sum_of_squares, progress)?,
        };
        let (mut own, mut correction) = (taken.own_error(), taken.correction);
        let names = self.quick.estimated_names();
        let quantile = normal_two_sided(self.correction.simulation.confidence).unwrap_or(f64::NAN);
        self.slopes.along.iter().for_each(|(direction, ends)| direction.add(&names, ends, quantile, &mut correction, &mut own));
        Ok((correction, own))
    }

    /// Simulates the ends of the directions, and gives the factors between them. Where the model has no solution there: those at the
    /// estimates, and no slopes.
    fn look_along(&mut self, open: Open, end: &End, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Taken, FitError> {
        let sum_of_squares = end.fit.sum_of_squares;
        let x = open.centre;
        let (middle, directions) = match self.factors_at(&x, sum_of_squares, progress) {
            Err(error) if error != FitError::Cancelled && x != estimates(&end.fit) => {
                (self.factors_at(&estimates(&end.fit), sum_of_squares, progress)?, Vec::new())
            }
            found => (found?, open.directions),
        };
        self.slopes = Slopes { at: Some(x.clone()), times: self.slopes.times + 1, along: Vec::new() };
        for direction in directions {
            let [below, above] = direction.ends(&x);
            match [self.factors_at(&below, sum_of_squares, progress), self.factors_at(&above, sum_of_squares, progress)] {
                [Ok(below), Ok(above)] => self.slopes.along.push((direction, [below, above])),
                [Err(FitError::Cancelled), _] | [_, Err(FitError::Cancelled)] => return Err(FitError::Cancelled),
                // A model that has no solution a step away has no slope there.
                _ => {}
            }
        }
        Ok(middle)
    }

    fn open(&self, end: &End) -> Open {
        open_directions(&end.fit, &end.covariance, &self.quick.bounds())
    }

    /// Whether the estimates are open in some direction, and slopes along it are not known or from more than a standard error away.
    fn slopes_are_wanted(&self, end: &End) -> bool {
        let far = self.slopes.at.as_ref().is_none_or(|at| {
            let moves = end.fit.parameters.values().zip(at).enumerate();
            let moves = moves.filter_map(|(j, (p, at))| Some((p.estimate - at).abs() / end.std_error(j)?));
            moves.fold(0.0, f64::max) > 1.0
        });
        (far || !end.held.is_empty()) && self.slopes.times < MOST_SLOPES && !self.open(end).directions.is_empty()
    }

    /// Factors at `x`, for each operating point once; with random numbers of its own, the same every time.
    fn factors_at(
        &mut self,
        x: &[f64],
        sum_of_squares: f64,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Taken, FitError> {
        let problem = &self.quick;
        let solved = solve_trials(problem, x, &[], &self.options.solve, self.solver).map_err(FitError::Solution)?;
        let measures = &problem.trials.measures;
        let size = |k: usize| solved.values.iter().map(|row| row[k].abs()).fold(0.0, f64::max);
        let sizes: Vec<f64> = (0..measures.len()).map(size).collect();
        let mut points: Vec<CorrectedPoint> = Vec::new();
        let mut deviations = Vec::new();
        let at: Bindings = problem.estimated_names().into_iter().zip(x.iter().copied()).collect();
        for (index, trial) in problem.trials.trials.iter().enumerate() {
            if points.iter().any(|p| p.controlled == trial.controlled) {
                continue;
            }
            let step = Progress { round: 0, iteration: index, parameters: x.to_vec(), sum_of_squares };
            if progress(&step).is_break() {
                return Err(FitError::Cancelled);
            }
            let mut values = problem.bindings_of(index);
            at.iter().for_each(|(name, v)| values.set(name, v));
            let place = points.len();
            let failed = |source| FitError::Simulation { trial: trial.id.clone(), source };
            // Points with random numbers in common would err alike.
            let seed = self.correction.simulation.seed.wrapping_add(SEEDS_APART.wrapping_mul(place as u64));
            let how = SimulationOptions { seed, ..self.correction.simulation };
            let found = self.simulations.of(place, &problem.model, &values, measures, &how).map_err(failed)?;
            let factor = |k: usize| factor(solved.values[index][k], found.values[k], found.half_widths[k], sizes[k]);
            let factors = measures.iter().enumerate().map(|(k, m)| (m.clone(), factor(k))).collect();
            points.push(CorrectedPoint { controlled: trial.controlled.clone(), factors });
            deviations.push(found.deviations);
        }
        Ok(Taken { correction: Correction { points, at }, deviations })
    }

    /// The whole fit with the last factors and their errors, from the last estimates; within what the factors reach, where rounds have not
    /// settled.
    fn finished(
        &self,
        (problem, options): (&Problem, &FitOptions),
        last: &Fit,
        mut report: CorrectionReport,
        (own, reached): (&OwnError, Option<&[(f64, f64)]>),
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Fit, FitError> {
        let mut asked = started(problem, last);
        reached.into_iter().for_each(|reached| keep_within(&mut asked, reached));
        let solver = report.correction.around(self.solver);
        let FitFound { mut fit, own_squares, .. } = fit_corrected_by(&asked, options, &*solver, Some(own), progress)?;
        drop(solver);
        fit.problem = problem.clone();
        say_what_is_held(&mut fit, reached);
        report.own_squares = Some(own_squares).filter(|s| s.is_finite());
        fit.notes.extend(own_share(&report, fit.sum_of_squares).map(|share| {
            format!(
                "{} % of the sum of squares is to be expected from the simulation's own error alone: a smaller precision asked of it tells more of \
                 how well the model fits",
                two_digits(100.0 * share)
            )
        }));
        fit.notes.extend(notes(&report, problem.method.correct_solver.map(|c| c.simulation.precision)));
        fit.correction = Some(report);
        Ok(fit)
    }

    fn round(
        &self,
        correction: &Correction,
        own: &OwnError,
        from: &Fit,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<End, FitError> {
        let solver = correction.around(self.solver);
        let reach = self.reach(correction);
        let mut asked = started(&self.quick, from);
        keep_within(&mut asked, &reach);
        let FitFound { fit, covariance, .. } = fit_corrected_by(&asked, self.options, &*solver, Some(own), progress)?;
        let held = held(&fit, &self.quick.bounds(), &reach);
        Ok(End { fit, covariance, held })
    }

    /// Between what each parameter may be found with the factors of `correction`.
    fn reach(&self, correction: &Correction) -> Vec<(f64, f64)> {
        let directions: Vec<&Direction> = self.slopes.along.iter().map(|(direction, _)| direction).collect();
        let ways = reach(&directions, self.quick.estimate.len());
        let bounds = self.quick.bounds().into_iter().zip(correction.at.iter().zip(ways));
        bounds.map(|((low, high), ((_, at), way))| (low.max(at - way), high.min(at + way))).collect()
    }
}

fn factor(analytic: f64, simulated: f64, half_width: Option<f64>, size: f64) -> Factor {
    let ratio = simulated / analytic;
    let usable = analytic.abs() > NEAR_ZERO * size && (FAR.recip()..=FAR).contains(&ratio);
    Factor { analytic, simulated, half_width, ratio: usable.then_some(ratio), slopes: IndexMap::new() }
}

/// The problem with nothing asked but estimates.
fn quick(problem: &Problem) -> Problem {
    let method = Method { intervals: Intervals::Wald, bootstrap: None, leave_one_trial_out: false, correct_solver: None, ..problem.method };
    Problem { method, ..problem.clone() }
}

/// The problem started from the estimates of `fit`.
fn started(problem: &Problem, fit: &Fit) -> Problem {
    let mut started = problem.clone();
    started.method.starts = None;
    started.estimate.iter_mut().zip(fit.estimates()).for_each(|(e, (_, v))| e.start = Some(v));
    started
}

fn estimates(fit: &Fit) -> Vec<f64> {
    fit.estimates().map(|(_, v)| v).collect()
}

fn owned_estimates(fit: &Fit) -> IndexMap<String, f64> {
    fit.estimates().map(|(n, v)| (n.to_owned(), v)).collect()
}

fn plain_estimates(fit: &Fit) -> IndexMap<String, PlainEstimate> {
    let plain = |(name, p): (&String, &ParameterEstimate)| {
        (name.clone(), PlainEstimate { estimate: p.estimate, std_error: p.std_error, lower: p.lower, upper: p.upper })
    };
    fit.parameters.iter().map(plain).collect()
}

/// Largest difference between the estimates of two fits, in half-widths of the second.
fn largest_move(before: &Fit, after: &Fit) -> f64 {
    let moves = before.parameters.values().zip(after.parameters.values()).map(|(b, a)| {
        let half_width = a.upper.zip(a.lower).map(|(u, l)| 0.5 * (u - l)).filter(|w| *w > 0.0);
        let difference = (a.estimate - b.estimate).abs();
        let yardstick = half_width.unwrap_or(WITHOUT_INTERVAL * a.estimate.abs().max(b.estimate.abs()));
        if difference > 0.0 { difference / yardstick } else { 0.0 }
    });
    moves.fold(0.0, f64::max)
}
