//! Weights: what makes seconds and requests per second comparable.
//!
//! The weighted sum of squares is `E = Σ w_i (z_i - h_i)²`, `w_i = 1 / R_ii` with the error variances `R` known up to a
//! scale that the fit estimates (`mse`). Per measure `k`:
//!
//! | the trials give | `w` |
//! |---|---|
//! | standard errors `se` | `1 / se²`; a missing one is the root mean square of the measure's others |
//! | weights | as given; a missing one is the mean of the measure's others |
//! | covariances of a trial's errors | `R_t`, whole ([`super::whitening`]); a trial without any takes the mean of the others |
//! | trials at one operating point, under [`Weighting::Replicates`] | their covariance `R`, pooled over operating points; its diagonal where replicates are few |
//! | these for some measures, and nothing for others | as given but for a factor, `f² = Σ e²/se² / n` over all of them, iterated likewise, unless errors are known |
//! | neither, or anything under [`Weighting::Residual`] | `1 / s_k²`, `s_k² = Σ e² / n_k` the measure's own residual variance, iterated to a fixpoint |
//! | anything, under [`Weighting::None`] | 1 |
//!
//! The third is the maximum-likelihood estimate of a diagonal `R` with one variance a measure (D. Bates and D. Watts,
//! Nonlinear Regression Analysis, 1988, section 4.1). A measure with no more values than there are parameters could be
//! fitted exactly and take all the weight; such measures share one variance relative to their own size. No `s_k` falls
//! below [`SMALLEST_RELATIVE_ERROR`] of the measure's size. Under a loss that bounds outliers `s_k` is the median absolute
//! deviation instead, and each row of the weighted residuals has a factor `√(ψ(u) / u)` besides ([`crate::fit::engine::loss`]).

use std::ops::Range;

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

pub use super::covariances::PooledErrors;
use super::{
    covariances::{CovarianceOf, Replicates, given, mean, measures_without_scatter, pooled_replicates, replicated, root_mean_square},
    solver::Observation,
    whitening::Whitening,
};
use crate::{
    fit::{
        engine::loss::median_deviation,
        problem::{ErrorScale, Problem, ProblemError, Weighting, trials::Measured},
    },
    model::{Measure, Model, Number, Task, TaskScheduling},
};

/// Error of a measure, relative to its size, below which no residual variance is believed.
pub const SMALLEST_RELATIVE_ERROR: f64 = 1e-6;

/// Where the weights of a measure come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightSource {
    /// Standard errors of the trials.
    StandardErrors,
    /// Weights of the trials.
    Weights,
    /// The measure's own residual variance.
    ResidualVariance,
    /// The residual variance, relative to size, that measures with few values share.
    SharedResidualVariance,
    /// All weights are 1.
    Unit,
    /// Covariances of the errors within each trial.
    Covariances,
    /// Differences between trials at one operating point.
    Replicates,
    /// None: no value of the measure counts.
    LeftOut,
}

/// Weights of a problem's observations, and the state of their estimation.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Source, by measure.
    pub sources: Vec<WeightSource>,
    /// Root mean square of the measured values, by measure; 1 where all are zero or missing.
    pub sizes: Vec<f64>,
    /// Typical standard deviation of one measurement before `mse`, by measure.
    pub deviations: Vec<f64>,
    /// The observations that count, with the roots of their weights.
    pub observations: Vec<Observation>,
    /// The observations of each trial and what makes them independent, in order of the rows of the residuals.
    pub blocks: Vec<Block>,
    /// Factor of each row of the residuals under a loss that bounds outliers, in (0, 1]; empty for least squares.
    pub factors: Vec<f64>,
    /// How many times their given standard errors, or roots of variances, errors are taken to be of measures that have some, beside others whose
    /// variances are estimated.
    pub given_factor: f64,
    /// Factor of the prior's rows: the root of the mean square error where `R` is known up to a scale.
    pub prior_factor: f64,
    /// Under [`Weighting::Replicates`], what these told of the errors.
    pub replicates: Option<PooledErrors>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The observations of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Index of the trial.
    pub trial_idx: usize,
    /// Its observations.
    pub observations: Range<usize>,
    /// Its rows among the residuals.
    pub rows: Range<usize>,
    /// What makes its errors independent; `None` where the roots of the weights do.
    pub whitening: Option<Whitening>,
}

/// How often a column counts that has the values of an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Once,
    Again,
}

/// Whether a measure is 0 in the model whatever the parameters, and was always 0: such values agree with any parameters, and counted as data
/// would make all errors look smaller.
fn is_always_zero(problem: &Problem, measure_idx: usize, measured: &[Measured]) -> bool {
    let says_something = || problem.trials.trials.iter().flat_map(|t| t.measured.iter().flatten()).any(|m| m.value != 0.0);
    let is_nothing = match &problem.trials.measures[measure_idx] {
        Measure::Utilization(name) => is_idle(&problem.model, name),
        Measure::Waiting { to, .. } => {
            let serves = |t: &&Task| t.entries.iter().any(|e| e.name == *to);
            problem.model.tasks.iter().find(serves).is_some_and(|t| t.scheduling == TaskScheduling::Inf)
        }
        _ => false,
    };
    is_nothing && measured.iter().all(|m| m.value == 0.0) && says_something()
}

/// Whether `name` is a processor on which nothing takes time.
fn is_idle(model: &Model, name: &str) -> bool {
    let is_nothing = |demand: &Number| matches!(demand, Number::Value(value) if *value == 0.0);
    let is_processor = model.processor(name).is_some() && model.task(name).is_none() && model.entry(name).is_none();
    let served = model.tasks.iter().filter(|task| task.processor == name);
    let mut demands = served.flat_map(|task| {
        let of_phases = task.entries.iter().flat_map(|entry| entry.phases.iter().map(|phase| &phase.activity.host_demand));
        of_phases.chain(task.activities.iter().map(|activity| &activity.host_demand))
    });
    is_processor && demands.all(is_nothing)
}

/// Fewest trials in which two measures have the same values and are not two measurements.
const FEWEST_ALIKE: usize = 3;

impl Weights {
    /// First weights of `problem`: residual variances start from the size of each measure.
    ///
    /// # Errors
    /// [`ProblemError::VarianceMissing`], [`ProblemError::NoReplicates`] and [`ProblemError::EqualReplicates`].
    pub fn of(problem: &Problem) -> Result<Self, ProblemError> {
        Self::counting(problem, Repeated::Once)
    }

    /// Weights of planned trials, whose values are predicted: measures that are the same at some estimates need not be so at others, and all count.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn of_plan(problem: &Problem) -> Result<Self, ProblemError> {
        Self::counting(problem, Repeated::Again)
    }

    fn counting(problem: &Problem, repeated: Repeated) -> Result<Self, ProblemError> {
        let n = problem.trials.measures.len();
        let mut weights = Self {
            sources: Vec::new(),
            sizes: Vec::new(),
            deviations: vec![1.0; n],
            observations: Vec::new(),
            blocks: Vec::new(),
            factors: Vec::new(),
            given_factor: 1.0,
            prior_factor: 1.0,
            replicates: None,
            notes: Vec::new(),
        };
        let replicates: Option<Replicates> = (problem.weighting == Weighting::Replicates).then(|| pooled_replicates(problem));
        let alike = replicates.as_ref().map_or(Ok(Vec::new()), measures_without_scatter)?;
        for measure_idx in 0..n {
            weights.add_measure(problem, measure_idx, alike.contains(&measure_idx), repeated);
        }
        weights.observations.sort_by_key(|o| (o.trial_idx, o.measure_idx));
        weights.replicates = replicates.map(|pooled| replicated(&pooled, &mut weights.notes)).transpose()?;
        weights.add_blocks(problem)?;
        Ok(weights)
    }

    fn add_blocks(&mut self, problem: &Problem) -> Result<(), ProblemError> {
        let covariances: Option<CovarianceOf<'_>> = match self.replicates.clone() {
            Some(pooled) => Some(Box::new(move |_, of| pooled.among(of))),
            None if problem.weighting == Weighting::Auto && problem.trials.have_covariances() => {
                let counts: Vec<bool> = self.sources.iter().map(|s| *s != WeightSource::LeftOut).collect();
                Some(given(problem, &counts, &mut self.notes)?)
            }
            None => None,
        };
        let mut start = 0;
        let mut row = 0;
        while start < self.observations.len() {
            let trial_idx = self.observations[start].trial_idx;
            let n = self.observations[start..].iter().take_while(|o| o.trial_idx == trial_idx).count();
            let measures: Vec<usize> = self.observations[start..start + n].iter().map(|o| o.measure_idx).collect();
            let whitening = covariances.as_ref().map(|of| Whitening::of(&of(trial_idx, &measures)));
            let n_rows = whitening.as_ref().map_or(n, |w| w.matrix.nrows());
            if n_rows < n {
                let id = &problem.trials.trials[trial_idx].id;
                self.notes.push(format!("trial \"{id}\": {} exact relations between its measured values are left out", n - n_rows));
            }
            self.blocks.push(Block { trial_idx, observations: start..start + n, rows: row..row + n_rows, whitening });
            (start, row) = (start + n, row + n_rows);
        }
        if let Some(of) = covariances {
            let source = if problem.weighting == Weighting::Replicates { WeightSource::Replicates } else { WeightSource::Covariances };
            self.sources.iter_mut().filter(|s| **s != WeightSource::LeftOut).for_each(|s| *s = source);
            let mut squares = vec![(0.0, 0.0); self.sources.len()];
            for o in &mut self.observations {
                let variance = of(o.trial_idx, &[o.measure_idx])[(0, 0)];
                o.root_weight = variance.sqrt().recip();
                squares[o.measure_idx].0 += variance;
                squares[o.measure_idx].1 += 1.0;
            }
            for (deviation, (sum, n)) in self.deviations.iter_mut().zip(squares).filter(|(_, (_, n))| *n > 0.0) {
                *deviation = (sum / n).sqrt();
            }
        }
        Ok(())
    }

    /// Number of weighted residuals: of the observations, less exact relations between them.
    pub fn n_residuals(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.rows.end)
    }

    /// `ln det R` over all trials, `R` up to its scale.
    pub fn log_determinant(&self) -> f64 {
        let of = |b: &Block| match &b.whitening {
            Some(w) => w.log_determinant,
            None => self.observations[b.observations.clone()].iter().map(|o| -2.0 * o.root_weight.ln()).sum(),
        };
        self.blocks.iter().map(of).sum()
    }

    /// Weighted residuals, `(n_residuals)`, of raw errors by observation, before the factors of a loss.
    pub fn whiten(&self, raw: &[f64]) -> DVector<f64> {
        let columns = self.whiten_rows(&DMatrix::from_column_slice(raw.len(), 1, raw));
        columns.column(0).into_owned()
    }

    /// The same of several columns, `(n_observations, n)` to `(n_residuals, n)`.
    pub fn whiten_rows(&self, raw: &DMatrix<f64>) -> DMatrix<f64> {
        let mut found = DMatrix::zeros(self.n_residuals(), raw.ncols());
        for b in &self.blocks {
            let rows = raw.rows(b.observations.start, b.observations.len());
            match &b.whitening {
                Some(w) => found.rows_mut(b.rows.start, b.rows.len()).copy_from(&(&w.matrix * rows)),
                None => {
                    for (k, o) in self.observations[b.observations.clone()].iter().enumerate() {
                        found.row_mut(b.rows.start + k).copy_from(&(rows.row(k) * o.root_weight));
                    }
                }
            }
        }
        found
    }

    fn add_measure(&mut self, problem: &Problem, measure_idx: usize, is_alike: bool, repeated: Repeated) {
        let cells: Vec<(usize, Measured)> =
            problem.trials.trials.iter().enumerate().filter_map(|(t, trial)| Some((t, (*trial.measured.get(measure_idx)?)?))).collect();
        let measured: Vec<Measured> = cells.iter().map(|(_, m)| *m).collect();
        let left_out = reason_to_leave_out(problem, measure_idx, &measured, is_alike, repeated);
        let source = if left_out.is_some() || measured.is_empty() { WeightSource::LeftOut } else { source(problem, &measured) };
        let size = Some(root_mean_square(measured.iter().map(|m| m.value))).filter(|s| *s > 0.0).unwrap_or(1.0);
        let typical_error = root_mean_square(measured.iter().filter_map(|m| m.std_error));
        let typical_weight = mean(measured.iter().filter_map(|m| m.weight));
        let root_weight = |m: &Measured| match source {
            WeightSource::StandardErrors => 1.0 / m.std_error.unwrap_or(typical_error),
            WeightSource::Weights => m.weight.unwrap_or(typical_weight).sqrt(),
            WeightSource::ResidualVariance | WeightSource::SharedResidualVariance => 1.0 / size,
            WeightSource::Unit | WeightSource::Covariances | WeightSource::Replicates | WeightSource::LeftOut => 1.0,
        };
        let observations = cells.iter().map(|(trial_idx, m)| Observation {
            trial_idx: *trial_idx,
            measure_idx,
            value: m.value,
            root_weight: root_weight(m),
        });
        let counted: Vec<Observation> = observations.filter(|o| left_out.is_none() && o.root_weight > 0.0).collect();
        self.notes.extend(left_out);
        self.deviations[measure_idx] = root_mean_square(counted.iter().map(|o| 1.0 / o.root_weight));
        self.note_missing(problem, measure_idx, source, &measured);
        self.sources.push(source);
        self.sizes.push(size);
        self.observations.extend(counted);
    }

    fn note_missing(&mut self, problem: &Problem, measure_idx: usize, source: WeightSource, measured: &[Measured]) {
        let (what, missing) = match source {
            WeightSource::StandardErrors => ("standard error", measured.iter().filter(|m| m.std_error.is_none()).count()),
            WeightSource::Weights => ("weight", measured.iter().filter(|m| m.weight.is_none()).count()),
            _ => return,
        };
        if missing > 0 {
            let measure = &problem.trials.measures[measure_idx];
            self.notes.push(format!("{measure}: {missing} values without a {what} are given the typical one of the others"));
        }
    }

    /// Whether the scale of the errors is estimated from the residuals of `problem`.
    pub fn has_free_scale(&self, problem: &Problem) -> bool {
        problem.method.error_scale == ErrorScale::Estimated || self.are_estimated()
    }

    /// Whether some weights are estimated from residuals.
    pub fn are_estimated(&self) -> bool {
        self.sources.iter().any(|s| s.is_estimated())
    }

    /// Measures that share one variance, or one factor of given ones, which is estimated from their residuals; those without one are in no group.
    pub fn variance_groups(&self, problem: &Problem) -> Vec<Vec<usize>> {
        let counts = |k: usize| self.observations.iter().any(|o| o.measure_idx == k);
        let of = |is_one: &dyn Fn(WeightSource) -> bool| -> Vec<usize> {
            (0..self.sources.len()).filter(|&k| is_one(self.sources[k]) && counts(k)).collect()
        };
        let mut groups: Vec<Vec<usize>> = of(&|s| s == WeightSource::ResidualVariance).into_iter().map(|k| vec![k]).collect();
        groups.push(of(&|s| s == WeightSource::SharedResidualVariance));
        if problem.method.error_scale == ErrorScale::Estimated {
            groups.push(of(&|s| matches!(s, WeightSource::StandardErrors | WeightSource::Weights)));
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Re-estimates the residual variances from `raw` errors, `(n_observations)`. Returns the largest relative change of a
    /// standard deviation.
    pub fn update(&mut self, raw: &[f64], problem: &Problem) -> f64 {
        let n = self.sources.len();
        let robust = !problem.method.loss.is_squared();
        let (mut squares, mut counts) = (vec![0.0; n], vec![0.0; n]);
        for (o, error) in self.observations.iter().zip(raw) {
            squares[o.measure_idx] += error.powi(2);
            counts[o.measure_idx] += 1.0;
        }
        if robust {
            let of = |k: usize| self.observations.iter().zip(raw).filter(move |(o, _)| o.measure_idx == k).map(|(_, error)| *error);
            squares = (0..n).map(|k| counts[k] * median_deviation(of(k)).powi(2)).collect();
        }
        let shared: Vec<usize> = (0..n).filter(|&k| self.sources[k] == WeightSource::SharedResidualVariance).collect();
        let shared_squares: f64 = shared.iter().map(|&k| squares[k] / self.sizes[k].powi(2)).sum();
        let shared_counts: f64 = shared.iter().map(|&k| counts[k]).sum();
        let mut largest_change = 0.0_f64;
        for k in (0..n).filter(|&k| self.sources[k].is_estimated() && counts[k] > 0.0) {
            let relative = match self.sources[k] {
                WeightSource::SharedResidualVariance => (shared_squares / shared_counts).sqrt(),
                _ => (squares[k] / counts[k]).sqrt() / self.sizes[k],
            };
            let deviation = relative.max(SMALLEST_RELATIVE_ERROR) * self.sizes[k];
            largest_change = largest_change.max((deviation / self.deviations[k] - 1.0).abs());
            self.deviations[k] = deviation;
        }
        for o in self.observations.iter_mut().filter(|o| self.sources[o.measure_idx].is_estimated()) {
            o.root_weight = 1.0 / self.deviations[o.measure_idx];
        }
        if problem.method.error_scale == ErrorScale::Estimated {
            largest_change = largest_change.max(self.scale_given(raw, robust));
        }
        largest_change
    }

    /// Estimates the factor of given errors: like the variances of the others, from their own residuals, so that one scale is right for all.
    fn scale_given(&mut self, raw: &[f64], robust: bool) -> f64 {
        let is_given = |o: &Observation| matches!(self.sources[o.measure_idx], WeightSource::StandardErrors | WeightSource::Weights);
        let relative: Vec<f64> = self.observations.iter().zip(raw).filter(|(o, _)| is_given(o)).map(|(o, e)| e * o.root_weight).collect();
        let by = if robust { median_deviation(relative.iter().copied()) } else { root_mean_square(relative.iter().copied()) };
        if relative.is_empty() || !(by > SMALLEST_RELATIVE_ERROR && by.is_finite()) {
            return 0.0;
        }
        self.given_factor *= by;
        for k in 0..self.sources.len() {
            if matches!(self.sources[k], WeightSource::StandardErrors | WeightSource::Weights) {
                self.deviations[k] *= by;
                self.observations.iter_mut().filter(|o| o.measure_idx == k).for_each(|o| o.root_weight /= by);
            }
        }
        (by - 1.0).abs()
    }
}

/// Why the values of a measure do not count, if they do not.
fn reason_to_leave_out(problem: &Problem, measure_idx: usize, measured: &[Measured], is_alike: bool, repeated: Repeated) -> Option<String> {
    let measure = &problem.trials.measures[measure_idx];
    let n = measured.len();
    if is_always_zero(problem, measure_idx, measured) {
        let why = if matches!(measure, Measure::Waiting { .. }) { "nothing waits there" } else { "nothing is served there" };
        return Some(format!("{measure} is 0 in the model whatever the parameters, as {why}: its {n} zeros tell nothing and are left out"));
    }
    if is_alike {
        // What says nothing of its error cannot be weighed, however exact it looks.
        return Some(format!("{measure} is left out: its replicates do not differ, and so nothing is known of its error"));
    }
    let counts_twice = repeated == Repeated::Once && problem.weighting != Weighting::None && !problem.trials.have_covariances();
    let same = same_column(problem, measure_idx).filter(|_| counts_twice)?;
    Some(format!("{measure} is left out: it has the values of {same} in all trials, and would be counted twice"))
}

/// An earlier measure with the same values in all trials, of which there are several that differ.
pub(crate) fn same_column(problem: &Problem, measure_idx: usize) -> Option<&Measure> {
    let trials = &problem.trials.trials;
    let column = |k: usize| trials.iter().map(move |t| t.measured.get(k).copied().flatten().map(|m| m.value.to_bits()));
    let own: Vec<u64> = column(measure_idx).flatten().collect();
    let varies = own.iter().any(|v| *v != own[0]);
    let place = (0..measure_idx).find(|&k| varies && own.len() >= FEWEST_ALIKE && column(k).eq(column(measure_idx)))?;
    Some(&problem.trials.measures[place])
}

impl WeightSource {
    /// Whether the weights come from residuals.
    pub fn is_estimated(self) -> bool {
        matches!(self, Self::ResidualVariance | Self::SharedResidualVariance)
    }
}

fn source(problem: &Problem, measured: &[Measured]) -> WeightSource {
    match problem.weighting {
        Weighting::None => WeightSource::Unit,
        Weighting::Replicates => WeightSource::Replicates,
        Weighting::Auto if measured.iter().any(|m| m.std_error.is_some()) => WeightSource::StandardErrors,
        Weighting::Auto if measured.iter().any(|m| m.weight.is_some()) => WeightSource::Weights,
        _ if measured.len() > problem.estimate.len() => WeightSource::ResidualVariance,
        _ => WeightSource::SharedResidualVariance,
    }
}
