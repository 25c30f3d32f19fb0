//! The model linearised along its track until that settles; and the filter as it would have run.

use std::{collections::BTreeSet, ops::ControlFlow};

use nalgebra::{DMatrix, DVector};

use super::{
    change,
    linear::{Gaussian, Information, LinearPass, LinearTrack, LinearTrial, Undetermined},
    noise::{EstimatedNoise, FactorSearch, Noise, NoisyTrack, Rows},
    options::{Drift, TrackError, TrackOptions},
    report::{self, Track},
};
use crate::{
    fit::{
        comparison::compare::weights_of,
        engine::view::Scale,
        problem::{Problem, Transform},
        report::Fit,
        search::{
            run::{FitError, Progress, fit_with},
            solver::{SolveFn, solve_point},
            weights::{Block, WeightSource, Weights},
        },
    },
    solve,
};

/// Tracks the estimated parameters of `problem` over its trials, in the order of their times.
///
/// # Errors
/// [`TrackError`].
pub fn track(
    problem: &Problem,
    options: &TrackOptions,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Track, TrackError> {
    track_with(problem, options, &solve::sensitivities, progress)
}

/// As [`track`], with another solver.
///
/// # Errors
/// As [`track`].
pub fn track_with(
    problem: &Problem,
    options: &TrackOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Track, TrackError> {
    check(problem, options)?;
    let fit = fit_with(problem, &options.fit, solver, progress)?;
    if !fit.identifiability.unidentified.is_empty() {
        return Err(TrackError::Undetermined { directions: fit.identifiability.unidentified });
    }
    let weights = weights_of(&fit).map_err(FitError::from)?;
    let tracker = Tracker::new(problem, options, solver, &fit, &weights)?;
    let smoothed = tracker.smooth(progress)?;
    let filtered = tracker.filter(&smoothed.noise.noise)?;
    Ok(report::assemble(&tracker, &smoothed, &filtered))
}

fn check(problem: &Problem, options: &TrackOptions) -> Result<(), TrackError> {
    problem.check().map_err(FitError::from)?;
    for (name, drift) in &options.drifts {
        if !problem.estimate.iter().any(|e| e.name == *name) {
            return Err(TrackError::NotEstimated { name: name.clone(), estimated: problem.estimated_names() });
        }
        if let Drift::Given(value) = *drift
            && !(value.is_finite() && value >= 0.0)
        {
            return Err(TrackError::Drift { name: name.clone(), value });
        }
    }
    if let Some((e, _)) = problem.estimate.iter().zip(problem.whole_numbers()).find(|(_, whole)| *whole) {
        return Err(TrackError::WholeNumber { name: e.name.clone() });
    }
    if options.window == 0 {
        return Err(TrackError::Window);
    }
    if !problem.method.loss.is_squared() {
        return Err(TrackError::Loss);
    }
    Ok(())
}

/// A problem whose trials are in order.
pub(super) struct Tracker<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a TrackOptions,
    solver: &'a SolveFn<'a>,
    pub(super) fit: &'a Fit,
    weights: &'a Weights,
    names: Vec<String>,
    /// Positions of the trials in the order of time.
    pub(super) order: Vec<usize>,
    root_gaps: Vec<f64>,
    pub(super) scales: Vec<Scale>,
    pub(super) bounds: Vec<(f64, f64)>,
    /// The fit of all trials, `(n)`, on the scales.
    fitted: DVector<f64>,
    sizes: Vec<f64>,
    /// Factor of each measure's errors; `None` where they are known.
    factor_of: Vec<Option<usize>>,
    n_factors: usize,
}

/// The track given all trials.
pub(super) struct Smoothed {
    pub(super) pass: LinearPass,
    pub(super) noise: EstimatedNoise,
    pub(super) converged: bool,
    /// Evidence of shifts where nothing drifts, with its `ln L`; where drifts were estimated.
    pub(super) constant: Option<LinearPass>,
}

/// One trial as the filter met it.
pub(super) struct FilteredTrial {
    pub(super) filtered: Option<Gaussian>,
    pub(super) innovation: Option<change::Innovation>,
    pub(super) projected: bool,
}

/// Change of a track, relative to the sizes of its components, at which it has settled.
const SETTLED: f64 = 1e-10;
const MOST_ROUNDS: usize = 60;
/// Rounds in which the noise is estimated anew.
const MOST_NOISE_ROUNDS: usize = 8;
/// Change of `ln L` at which the noise has settled.
const NOISE_SETTLED: f64 = 1e-5;
const SHORTEST_STEP: f64 = 1.0 / 1024.0;
/// Iterations of one update of the filter.
const MOST_UPDATES: usize = 20;

impl<'a> Tracker<'a> {
    fn new(
        problem: &'a Problem,
        options: &'a TrackOptions,
        solver: &'a SolveFn<'a>,
        fit: &'a Fit,
        weights: &'a Weights,
    ) -> Result<Self, TrackError> {
        let (order, root_gaps) = in_time(problem)?;
        let scale = |t: Transform| if t == Transform::Log { Scale::Log } else { Scale::Natural };
        let scales: Vec<Scale> = problem.estimate.iter().map(|e| scale(e.transform)).collect();
        let bounds: Vec<(f64, f64)> = problem.bounds().iter().zip(&scales).map(|(b, s)| (s.bound(b.0), s.bound(b.1))).collect();
        let fitted = DVector::from_iterator(scales.len(), fit.estimates().zip(&scales).map(|((_, x), s)| s.to(x)));
        let size = |(theta, scale): (&f64, &Scale)| if *scale == Scale::Log || *theta == 0.0 { 1.0 } else { theta.abs() };
        let sizes = fitted.iter().zip(&scales).map(size).collect();
        let (factor_of, n_factors) = factors(problem, weights);
        let names = problem.estimated_names();
        Ok(Self { problem, options, solver, fit, weights, names, order, root_gaps, scales, bounds, fitted, sizes, factor_of, n_factors })
    }

    /// The drifts that are estimated, by position.
    pub(super) fn estimated_drifts(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|&j| self.drift(j) == Drift::Estimated).collect()
    }

    fn drift(&self, j: usize) -> Drift {
        self.options.drifts.get(&self.names[j]).copied().unwrap_or(Drift::Estimated)
    }

    /// The factor of the errors of measure `k`.
    pub(super) fn factor_of(&self, k: usize) -> Option<usize> {
        self.factor_of[k]
    }

    /// Where the errors of measure `k` come from, and their typical deviation before the factor.
    pub(super) fn error(&self, k: usize) -> (WeightSource, f64) {
        (self.weights.sources[k], self.weights.deviations[k])
    }

    /// Why no error can be estimated: nothing is left of the values when they have determined the parameters. `None` where errors are known, or enough is left.
    pub(super) fn no_error_left(&self) -> Option<String> {
        let (n_values, n_priors) = (self.weights.observations.len(), self.problem.priors().count());
        let estimated: BTreeSet<usize> = self.weights.observations.iter().filter_map(|o| self.factor_of[o.measure_idx]).collect();
        let (n_params, n_factors) = (self.names.len(), estimated.len());
        let is_left = n_factors == 0 || n_values + n_priors >= n_params + n_factors;
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let to_estimate = if n_factors > 1 { format!("{n_factors} errors") } else { "the errors".to_owned() };
        (!is_left).then(|| {
            format!(
                "no intervals and no tests: with {n_values} measured value{} for {n_params} parameter{} nothing is left to estimate {to_estimate} by",
                plural(n_values),
                plural(n_params)
            )
        })
    }

    /// Remarks of the weights.
    pub(super) fn weight_notes(&self) -> &[String] {
        &self.weights.notes
    }

    fn first_noise(&self) -> Noise {
        let drift = |j: usize| if let Drift::Given(value) = self.drift(j) { value } else { 0.0 };
        let factor = match self.weights.are_estimated() {
            true => 1.0,
            false => self.fit.mean_square_error.map_or(1.0, f64::sqrt).max(f64::MIN_POSITIVE.sqrt()),
        };
        Noise { drifts: (0..self.names.len()).map(drift).collect(), factors: vec![factor; self.n_factors] }
    }

    fn prior(&self) -> Vec<Option<(f64, f64)>> {
        let of = |(j, e): (usize, &crate::fit::Estimated)| {
            let prior = e.prior?;
            let likely = prior.most_likely;
            // The mean of the deviations on the two sides.
            let deviation = 0.5 * (prior.deviation(likely) + prior.deviation(likely - f64::EPSILON * likely.abs().max(f64::MIN_POSITIVE)));
            Some((self.scales[j].to(likely), deviation / self.scales[j].slope(likely)))
        };
        self.problem.estimate.iter().enumerate().map(of).collect()
    }

    pub(super) fn clamped(&self, theta: &DVector<f64>) -> DVector<f64> {
        DVector::from_iterator(theta.len(), theta.iter().zip(&self.bounds).map(|(v, (low, high))| v.clamp(*low, *high)))
    }

    fn block(&self, trial_idx: usize) -> Option<&Block> {
        self.weights.blocks.iter().find(|b| b.trial_idx == trial_idx)
    }

    /// Rows of the trial at `place` in the order of time, linearised at `theta`; its predicted values by measure.
    fn linearise(&self, place: usize, theta: &DVector<f64>) -> Result<(Rows, Vec<f64>), TrackError> {
        let trial_idx = self.order[place];
        let trial = &self.problem.trials.trials[trial_idx];
        let x: Vec<f64> = theta.iter().zip(&self.scales).map(|(v, s)| s.from(*v)).collect();
        let mut values = self.problem.bindings_of(trial_idx);
        self.names.iter().zip(&x).for_each(|(name, x)| values.set(name.clone(), *x));
        let (model, measures) = (&self.problem.model, &self.problem.trials.measures);
        let solved = solve_point(model, &values, &self.names, measures, &self.options.fit.solve, self.solver, &trial.id)?;
        let Some(block) = self.block(trial_idx) else { return Ok((self.no_rows(), solved.values)) };
        let observations = &self.weights.observations[block.observations.clone()];
        let (m, n) = (observations.len(), x.len());
        let raw_design = DMatrix::from_fn(m, n, |i, j| solved.jacobian[(observations[i].measure_idx, j)] * self.scales[j].slope(x[j]));
        let raw_errors = DVector::from_fn(m, |i, _| observations[i].value - solved.values[observations[i].measure_idx]);
        let transform = match &block.whitening {
            Some(whitening) => whitening.matrix.clone(),
            None => DMatrix::from_diagonal(&DVector::from_fn(m, |i, _| observations[i].root_weight)),
        };
        let log_determinant = match &block.whitening {
            Some(whitening) => whitening.log_determinant,
            None => observations.iter().map(|o| -2.0 * o.root_weight.ln()).sum(),
        };
        let design = &transform * raw_design;
        let values = &transform * raw_errors + &design * theta;
        let of_row = |row: usize| self.factor_of[observations[row.min(m - 1)].measure_idx];
        let factor_idx = (0..values.len()).map(of_row).collect();
        Ok((Rows { design, values, log_determinant, factor_idx }, solved.values))
    }

    fn no_rows(&self) -> Rows {
        Rows { design: DMatrix::zeros(0, self.names.len()), values: DVector::zeros(0), log_determinant: 0.0, factor_idx: Vec::new() }
    }

    /// Measures of the rows of the trial at `place`, where each row is one.
    fn row_measures(&self, place: usize) -> Vec<Option<usize>> {
        let Some(block) = self.block(self.order[place]) else { return Vec::new() };
        let observations = &self.weights.observations[block.observations.clone()];
        let one_to_one = block.rows.len() == observations.len();
        (0..block.rows.len()).map(|i| one_to_one.then(|| observations[i].measure_idx)).collect()
    }

    fn along(&self, path: &[DVector<f64>]) -> Result<NoisyTrack, TrackError> {
        let rows = path.iter().enumerate().map(|(place, theta)| Ok(self.linearise(place, theta)?.0)).collect::<Result<_, TrackError>>()?;
        Ok(NoisyTrack { rows, root_gaps: self.root_gaps.clone(), prior: self.prior(), scales: self.sizes.clone() })
    }

    /// Minus twice the logarithm of the density of `path` and the measured values, up to a constant; `track` is linearised along it.
    fn cost(&self, track: &NoisyTrack, path: &[DVector<f64>], noise: &Noise) -> f64 {
        let linear = track.with(noise);
        let errors: f64 = linear.trials.iter().zip(path).map(|(t, theta)| (&t.values - &t.design * theta).norm_squared()).sum();
        let walked = |(pair, step): (&[DVector<f64>], &DVector<f64>)| -> f64 {
            (0..step.len()).filter(|&j| step[j] > 0.0).map(|j| ((pair[1][j] - pair[0][j]) / step[j]).powi(2)).sum()
        };
        let walk: f64 = path.windows(2).zip(&linear.steps).map(walked).sum();
        let known =
            linear.prior.iter().enumerate().filter_map(|(j, p)| p.map(|(mean, deviation)| ((path[0][j] - mean) / deviation).powi(2)));
        errors + walk + known.sum::<f64>()
    }

    fn smooth(&self, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Smoothed, TrackError> {
        let drifts = self.estimated_drifts();
        let search = if self.n_factors > 0 { FactorSearch::All } else { FactorSearch::None };
        let mut path = vec![self.fitted.clone(); self.order.len()];
        let mut track = self.along(&path)?;
        let constant_track = track.clone();
        let mut noise = track.estimate(&self.first_noise(), &drifts, search);
        let mut noise_settled = drifts.is_empty() && self.n_factors == 0;
        let mut converged = false;
        for round in 1..=MOST_ROUNDS {
            let pass = track.with(&noise.noise).pass().map_err(undetermined)?;
            let goal: Vec<DVector<f64>> = pass.smoothed.iter().map(|g| self.clamped(&g.mean)).collect();
            let change = self.distance(&goal, &path);
            let report =
                Progress { round, iteration: round, parameters: Vec::new(), sum_of_squares: self.cost(&track, &path, &noise.noise) };
            if progress(&report).is_break() {
                return Err(TrackError::Cancelled);
            }
            if change <= SETTLED && noise_settled {
                converged = true;
                break;
            }
            let Some((next, next_track)) = self.towards(&goal, &path, &track, &noise.noise) else {
                converged = change <= SETTLED.sqrt();
                break;
            };
            (path, track) = (next, next_track);
            if !noise_settled {
                let again = track.estimate(&noise.noise, &drifts, search);
                noise_settled = (again.log_likelihood - noise.log_likelihood).abs() <= NOISE_SETTLED || round >= MOST_NOISE_ROUNDS;
                noise = again;
            }
        }
        let pass = track.with(&noise.noise).pass().map_err(undetermined)?;
        let constant = (!drifts.is_empty()).then(|| constant_pass(&constant_track, &noise.noise, &drifts, search)).flatten();
        Ok(Smoothed { pass, noise, converged, constant })
    }

    fn distance(&self, one: &[DVector<f64>], other: &[DVector<f64>]) -> f64 {
        let relative =
            |(a, b): (&DVector<f64>, &DVector<f64>)| (0..a.len()).map(|j| (a[j] - b[j]).abs() / self.sizes[j]).fold(0.0, f64::max);
        one.iter().zip(other).map(relative).fold(0.0, f64::max)
    }

    /// A step from `path` towards `goal` that does not cost more; `None` where there is none.
    fn towards(
        &self,
        goal: &[DVector<f64>],
        path: &[DVector<f64>],
        track: &NoisyTrack,
        noise: &Noise,
    ) -> Option<(Vec<DVector<f64>>, NoisyTrack)> {
        let cost = self.cost(track, path, noise);
        let mut length = 1.0;
        while length >= SHORTEST_STEP {
            let next: Vec<DVector<f64>> = path.iter().zip(goal).map(|(p, g)| p + (g - p) * length).collect();
            if let Ok(next_track) = self.along(&next)
                && self.cost(&next_track, &next, noise) <= cost * (1.0 + 1e-9) + 1e-12
            {
                return Some((next, next_track));
            }
            length *= 0.5;
        }
        None
    }

    fn filter(&self, noise: &Noise) -> Result<Vec<FilteredTrial>, TrackError> {
        let drifts = DVector::from_row_slice(&noise.drifts);
        let mut state = Information::of(&self.prior());
        let mut found = Vec::new();
        for place in 0..self.order.len() {
            if place > 0 {
                state = state.advanced(&(&drifts * self.root_gaps[place - 1]));
            }
            let (next, trial) = self.filter_one(place, &state, noise)?;
            state = next;
            found.push(trial);
        }
        Ok(found)
    }

    fn filter_one(&self, place: usize, before: &Information, noise: &Noise) -> Result<(Information, FilteredTrial), TrackError> {
        let predicted = before.gaussian();
        let start = self.clamped(predicted.as_ref().map_or(&self.fitted, |p| &p.mean));
        let before = if predicted.is_some() { before.with_mean(&start) } else { before.clone() };
        let (rows, values) = self.linearise(place, &start)?;
        let scaled =
            |rows: &Rows| NoisyTrack { rows: vec![rows.clone()], root_gaps: Vec::new(), prior: Vec::new(), scales: Vec::new() }.with(noise);
        let first = scaled(&rows);
        let Some(trial) = first.trials.first().filter(|t| !t.values.is_empty()) else {
            return Ok((before, FilteredTrial { filtered: predicted, innovation: None, projected: false }));
        };
        let innovation = predicted.as_ref().and_then(|p| {
            let errors = &trial.values - &trial.design * &start;
            change::Innovation::of(&errors, &trial.design, &p.covariance, self.row_measures(place), values)
        });
        let mut after = self.iterated(place, &before, trial.clone(), start, &scaled);
        let mut filtered = after.gaussian();
        let mut projected = false;
        if let Some(gaussian) = &mut filtered {
            let inside = self.clamped(&gaussian.mean);
            projected = inside != gaussian.mean;
            after = after.with_mean(&inside);
            gaussian.mean = inside;
        }
        Ok((after, FilteredTrial { filtered, innovation, projected }))
    }

    /// The update of the filter, linearised again where it ends until that no longer moves; steps that raise the squares are halved.
    fn iterated(
        &self,
        place: usize,
        before: &Information,
        first: LinearTrial,
        start: DVector<f64>,
        scaled: &dyn Fn(&Rows) -> LinearTrack,
    ) -> Information {
        let squares = |x: &DVector<f64>, trial: &LinearTrial| {
            (&before.root * x - &before.rhs).norm_squared() + (&trial.values - &trial.design * x).norm_squared()
        };
        let (mut at, mut trial) = (start, first);
        for _ in 0..MOST_UPDATES {
            let after = before.updated(&trial.design, &trial.values).0;
            let Some(goal) = after.gaussian().map(|g| self.clamped(&g.mean)) else { return after };
            if self.distance(std::slice::from_ref(&goal), std::slice::from_ref(&at)) <= SETTLED {
                return after;
            }
            let least = squares(&at, &trial);
            let halved = std::iter::successors(Some(1.0), |length| Some(0.5 * length)).take_while(|length| *length >= SHORTEST_STEP);
            let found = halved.into_iter().find_map(|length| {
                let x = &at + (&goal - &at) * length;
                let linear = scaled(&self.linearise(place, &x).ok()?.0).trials.into_iter().next()?;
                (squares(&x, &linear) <= least * (1.0 + 1e-9)).then_some((x, linear))
            });
            let Some(next) = found else { return after.with_mean(&at) };
            (at, trial) = next;
        }
        before.updated(&trial.design, &trial.values).0.with_mean(&at)
    }
}

fn undetermined(_: Undetermined) -> TrackError {
    TrackError::Undetermined { directions: Vec::new() }
}

/// The track of parameters that stay, linearised at the fit, with the factors of its errors.
fn constant_pass(track: &NoisyTrack, noise: &Noise, drifts: &[usize], search: FactorSearch) -> Option<LinearPass> {
    let mut still = noise.clone();
    drifts.iter().for_each(|&j| still.drifts[j] = 0.0);
    let found = track.estimate(&still, &[], search);
    track.with(&found.noise).pass().ok()
}

/// The trials in the order of their times, and the roots of the times between them.
fn in_time(problem: &Problem) -> Result<(Vec<usize>, Vec<f64>), TrackError> {
    let trials = &problem.trials.trials;
    let mut order: Vec<usize> = (0..trials.len()).collect();
    if trials.iter().all(|t| t.time.is_none()) {
        return Ok((order, vec![1.0; trials.len().saturating_sub(1)]));
    }
    let times: Vec<f64> =
        trials.iter().map(|t| t.time.ok_or_else(|| TrackError::TimeMissing { trial: t.id.clone() })).collect::<Result<_, _>>()?;
    order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    let gaps = order.windows(2).map(|pair| (times[pair[1]] - times[pair[0]]).sqrt()).collect();
    Ok((order, gaps))
}

/// The factor of each measure's errors, and their number: one for each residual variance, one shared by others of unknown scale.
fn factors(problem: &Problem, weights: &Weights) -> (Vec<Option<usize>>, usize) {
    let n = weights.sources.len();
    if !weights.are_estimated() {
        return if weights.has_free_scale(problem) { (vec![Some(0); n], 1) } else { (vec![None; n], 0) };
    }
    let mut n_factors = 0;
    let mut shared = None;
    let mut next = || {
        n_factors += 1;
        Some(n_factors - 1)
    };
    let of = weights.sources.iter().map(|source| match source {
        WeightSource::ResidualVariance => next(),
        WeightSource::SharedResidualVariance => {
            if shared.is_none() {
                shared = next();
            }
            shared
        }
        _ => None,
    });
    let of: Vec<Option<usize>> = of.collect();
    (of, n_factors)
}
