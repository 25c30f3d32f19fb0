//! The refits of a response correction.

use std::ops::ControlFlow;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    CorrectedPoint, Correction, Factor, SimulationOptions,
    noise::{OwnError, Taken},
    simulated,
    slopes::{Direction, Open, open_directions},
};
use crate::{
    fit::{
        design::Cures,
        inference::distribution::normal_two_sided,
        problem::{Intervals, Method, Problem},
        report::{Fit, ParameterEstimate, assemble::OptionalMatrix, digits::four_digits},
        search::{
            run::{FitError, FitOptions, Progress, fit_and_covariance},
            solver::solve_trials,
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

/// How to correct a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorrectionOptions {
    /// How to simulate each operating point.
    pub simulation: SimulationOptions,
    /// Largest move of a parameter, in half-widths of its interval, at which the fit has settled.
    pub settled: f64,
    /// Most rounds, at least 1.
    pub max_rounds: usize,
}

impl Default for CorrectionOptions {
    fn default() -> Self {
        Self { simulation: SimulationOptions::default(), settled: 0.1, max_rounds: 10 }
    }
}

impl CorrectionOptions {
    /// The first option that cannot be used, its value, and what was expected.
    #[expect(clippy::cast_precision_loss, reason = "for an error text")]
    pub(crate) fn defect(&self) -> Option<(&'static str, f64, &'static str)> {
        let is_positive = |v: f64| v.is_finite() && v > 0.0;
        match self {
            Self { settled, .. } if !is_positive(*settled) => {
                Some(("the share of a half-width at which a correction settles", *settled, POSITIVE))
            }
            Self { max_rounds, .. } if !(1..=MOST_ROUNDS).contains(max_rounds) => {
                Some(("the number of rounds of a correction", *max_rounds as f64, "1 to 100"))
            }
            Self { simulation, .. } => simulation.defect(),
        }
    }
}

/// How much coarser than asked a simulation may be before that is remarked: how long it takes is estimated.
const SHORT_OF: f64 = 1.5;

/// How far apart the seeds of operating points are: 2⁶⁴ over the golden ratio, so that those of neighbouring fits do not meet.
const SEEDS_APART: u64 = 0x9E37_79B9_7F4A_7C15;

/// How often slopes are simulated, at most.
const MOST_SLOPES: usize = 3;

/// Most rounds that can be asked for.
const MOST_ROUNDS: usize = 100;

/// How much more a corrected fit may leave than the plain one before that is remarked: the simulation's own error is in both.
const MORE_LEFT: f64 = 1.1;

const POSITIVE: &str = "a number above 0";

/// How a correction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionOutcome {
    /// No parameter moved by more than the share of its half-width asked.
    Settled,
    /// The rounds were used up; the estimates are those of the last.
    NotSettled,
    /// A round found no minimum: the estimates are not corrected, or only as far as the rounds before went.
    NoMinimum,
}

/// One round of a correction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectionRound {
    /// Estimates at its end.
    pub parameters: IndexMap<String, f64>,
    /// Largest move of a parameter in half-widths of its interval.
    pub largest_move: f64,
    /// Whether slopes of the ratios were simulated in it.
    #[serde(default)]
    pub slopes: bool,
}

/// An estimate without the correction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainEstimate {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub std_error: Option<f64>,
    /// Lower end of its confidence interval.
    pub lower: Option<f64>,
    /// Upper end of its confidence interval.
    pub upper: Option<f64>,
}

/// What a correction did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectionReport {
    /// How it ended.
    pub outcome: CorrectionOutcome,
    /// Its rounds.
    pub rounds: Vec<CorrectionRound>,
    /// The estimates without it.
    pub plain: IndexMap<String, PlainEstimate>,
    /// Seed of the simulations.
    pub seed: u64,
    /// Largest relative half-width of a simulated value; absent where one is not known.
    pub precision: Option<f64>,
    /// Steps along which slopes of the ratios were simulated last, either way, by parameter: a standard error long, or as far as
    /// bounds allow; what the trials determine least first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes_along: Vec<IndexMap<String, f64>>,
    /// The factors of the last round.
    pub correction: Correction,
}

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
    problem.check()?;
    let lean = FitOptions { cures: Cures::LeftOut, ..options.clone() };
    let mut refit =
        Refit { options: &lean, correction, quick: quick(problem), lengths: Vec::new(), precision: 0.0, slopes: Slopes::default() };
    let (plain, covariance) = fit_and_covariance(&refit.quick, &lean, &solve::sensitivities, None, progress)?;
    let mut report = CorrectionReport {
        outcome: CorrectionOutcome::NotSettled,
        rounds: Vec::new(),
        plain: plain_estimates(&plain),
        seed: correction.simulation.seed,
        precision: None,
        slopes_along: Vec::new(),
        correction: Correction::default(),
    };
    let plain_left = plain.sum_of_squares;
    let mut last = End { fit: plain, covariance };
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
        if last.fit.converged && largest_move <= correction.settled && !refit.slopes_are_wanted(&last) {
            report.outcome = CorrectionOutcome::Settled;
            break;
        }
    }
    report.slopes_along = refit.slopes.along.iter().map(|(direction, _)| direction.step(&problem.estimated_names())).collect();
    report.precision = Some(refit.precision).filter(|p| p.is_finite());
    if !last.fit.converged {
        report.outcome = CorrectionOutcome::NoMinimum;
    }
    let mut fit = finished(problem, options, &last.fit, report, &own, progress)?;
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

/// Says that a correction left more than there was: where slopes are lost in the simulation's error, it may have been led away from
/// the best fit.
fn explains_less(plain: f64, corrected: f64) -> Option<String> {
    (corrected > MORE_LEFT * plain).then(|| {
        format!(
            "the correction for the solver's error explains the measurements no better (sum of squares {} with it, {} without): it may have gone \
             along a direction that the trials hardly determine",
            four_digits(corrected),
            four_digits(plain)
        )
    })
}

/// The whole fit with the last factors and their errors, from the last estimates.
fn finished(
    problem: &Problem,
    options: &FitOptions,
    last: &Fit,
    report: CorrectionReport,
    own: &OwnError,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    let solver = report.correction.around(&solve::sensitivities);
    let (mut fit, _) = fit_and_covariance(&started(problem, last), options, &*solver, Some(own), progress)?;
    drop(solver);
    fit.problem = problem.clone();
    fit.notes.extend(notes(&report, problem.method.correct_solver.map(|c| c.simulation.precision)));
    fit.correction = Some(report);
    Ok(fit)
}

/// The end of a round.
struct End {
    fit: Fit,
    /// Covariance of the estimates as if no bound held them: one that is on its bound for now may not belong there.
    covariance: OptionalMatrix,
}

impl End {
    fn std_error(&self, place: usize) -> Option<f64> {
        self.covariance.as_ref()?[place][place].map(f64::sqrt).filter(|s| *s > 0.0)
    }
}

struct Refit<'a> {
    options: &'a FitOptions,
    correction: &'a CorrectionOptions,
    /// The problem without what is only wanted of the last fit.
    quick: Problem,
    /// Length of the simulation of each operating point, once known.
    lengths: Vec<f64>,
    precision: f64,
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
        far && self.slopes.times < MOST_SLOPES && !self.open(end).directions.is_empty()
    }

    /// Factors at `x`, for each operating point once; with random numbers of its own, the same every time.
    fn factors_at(
        &mut self,
        x: &[f64],
        sum_of_squares: f64,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Taken, FitError> {
        let problem = &self.quick;
        let solved = solve_trials(problem, x, &[], &self.options.solve, &solve::sensitivities).map_err(FitError::Solution)?;
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
            let length = self.lengths.get(place).copied();
            // Points with random numbers in common would err alike.
            let seed = self.correction.simulation.seed.wrapping_add(SEEDS_APART.wrapping_mul(place as u64));
            let how = SimulationOptions { seed, ..self.correction.simulation };
            let found = simulated(&problem.model, &values, measures, &how, length).map_err(failed)?;
            if length.is_none() {
                self.lengths.push(found.run_time);
            }
            self.precision = self.precision.max(found.precision);
            let factor = |k: usize| factor(solved.values[index][k], found.values[k], found.half_widths[k], sizes[k]);
            let factors = measures.iter().enumerate().map(|(k, m)| (m.clone(), factor(k))).collect();
            points.push(CorrectedPoint { controlled: trial.controlled.clone(), factors });
            deviations.push(found.deviations);
        }
        Ok(Taken { correction: Correction { points, at }, deviations })
    }

    fn round(
        &self,
        correction: &Correction,
        own: &OwnError,
        from: &Fit,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<End, FitError> {
        let solver = correction.around(&solve::sensitivities);
        let (fit, covariance) = fit_and_covariance(&started(&self.quick, from), self.options, &*solver, Some(own), progress)?;
        Ok(End { fit, covariance })
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

/// Remarks on a correction of which `asked` was the precision.
fn notes(report: &CorrectionReport, asked: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let n = report.rounds.len();
    match report.outcome {
        CorrectionOutcome::Settled => {}
        CorrectionOutcome::NotSettled => {
            let last = report.rounds.last().map_or(0.0, |r| r.largest_move);
            notes.push(format!(
                "the correction for the solver's error did not settle in {n} rounds: a parameter still moved by {} half-widths",
                four_digits(last)
            ));
        }
        CorrectionOutcome::NoMinimum => notes.push("the correction for the solver's error ended without a minimum".into()),
    }
    if let Some((reached, asked)) = report.precision.zip(asked).filter(|(reached, asked)| *reached > SHORT_OF * asked) {
        notes.push(format!(
            "simulated to {} % for the {} % asked: more events of an operating point may get nearer (--correct-events, max_events)",
            four_digits(100.0 * reached),
            four_digits(100.0 * asked)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_that_leaves_more_is_remarked() {
        let said = explains_less(0.0176, 0.0206).unwrap();
        assert!(said.contains("0.0206 with it, 0.0176 without"), "{said}");
        assert_eq!(explains_less(0.0205, 0.002), None);
        assert_eq!(explains_less(1.0, 1.02), None);
    }
}
