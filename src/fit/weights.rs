//! Weights: what makes seconds and requests per second comparable.
//!
//! The weighted sum of squares is `E = Σ w_i (z_i - h_i)²`, `w_i = 1 / R_ii` with the error variances `R` known up to a
//! scale that the fit estimates (`mse`). Per measure `k`:
//!
//! | the trials give | `w` |
//! |---|---|
//! | standard errors `se` | `1 / se²`; a missing one is the root mean square of the measure's others |
//! | weights | as given; a missing one is the mean of the measure's others |
//! | neither, or anything under [`Weighting::Residual`] | `1 / s_k²`, `s_k² = Σ e² / n_k` the measure's own residual variance, iterated to a fixpoint |
//! | anything, under [`Weighting::None`] | 1 |
//!
//! The third is the maximum-likelihood estimate of a diagonal `R` with one variance a measure (D. Bates and D. Watts,
//! Nonlinear Regression Analysis, 1988, section 4.1). A measure with no more values than there are parameters could be
//! fitted exactly and take all the weight; such measures share one variance relative to their own size. No `s_k` falls
//! below [`SMALLEST_RELATIVE_ERROR`] of the measure's size.

use serde::{Deserialize, Serialize};

use super::{
    problem::{Problem, Weighting},
    solver::Observation,
    trials::Measured,
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
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Weights {
    /// First weights of `problem`: residual variances start from the size of each measure.
    pub fn of(problem: &Problem) -> Self {
        let n = problem.trials.measures.len();
        let mut weights =
            Self { sources: Vec::new(), sizes: Vec::new(), deviations: vec![1.0; n], observations: Vec::new(), notes: Vec::new() };
        for measure_idx in 0..n {
            weights.add_measure(problem, measure_idx);
        }
        weights.observations.sort_by_key(|o| (o.trial_idx, o.measure_idx));
        weights
    }

    fn add_measure(&mut self, problem: &Problem, measure_idx: usize) {
        let cells: Vec<(usize, Measured)> =
            problem.trials.trials.iter().enumerate().filter_map(|(t, trial)| Some((t, (*trial.measured.get(measure_idx)?)?))).collect();
        let measured: Vec<Measured> = cells.iter().map(|(_, m)| *m).collect();
        let source = source(problem, &measured);
        let size = Some(root_mean_square(measured.iter().map(|m| m.value))).filter(|s| *s > 0.0).unwrap_or(1.0);
        let typical_error = root_mean_square(measured.iter().filter_map(|m| m.std_error));
        let typical_weight = mean(measured.iter().filter_map(|m| m.weight));
        let root_weight = |m: &Measured| match source {
            WeightSource::StandardErrors => 1.0 / m.std_error.unwrap_or(typical_error),
            WeightSource::Weights => m.weight.unwrap_or(typical_weight).sqrt(),
            WeightSource::ResidualVariance | WeightSource::SharedResidualVariance => 1.0 / size,
            WeightSource::Unit => 1.0,
        };
        let observations = cells.iter().map(|(trial_idx, m)| Observation {
            trial_idx: *trial_idx,
            measure_idx,
            value: m.value,
            root_weight: root_weight(m),
        });
        let counted: Vec<Observation> = observations.filter(|o| o.root_weight > 0.0).collect();
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

    /// Whether some weights are estimated from residuals.
    pub fn are_estimated(&self) -> bool {
        self.sources.iter().any(|s| s.is_estimated())
    }

    /// Re-estimates the residual variances from `weighted` residuals, `(n_obs)`, made with the present weights. Returns
    /// the largest relative change of a standard deviation.
    pub fn update(&mut self, weighted: &[f64]) -> f64 {
        let n = self.sources.len();
        let (mut squares, mut counts) = (vec![0.0; n], vec![0.0; n]);
        for (o, residual) in self.observations.iter().zip(weighted) {
            squares[o.measure_idx] += (residual / o.root_weight).powi(2);
            counts[o.measure_idx] += 1.0;
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
        largest_change
    }
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
        Weighting::Auto if measured.iter().any(|m| m.std_error.is_some()) => WeightSource::StandardErrors,
        Weighting::Auto if measured.iter().any(|m| m.weight.is_some()) => WeightSource::Weights,
        _ if measured.len() > problem.estimate.len() => WeightSource::ResidualVariance,
        _ => WeightSource::SharedResidualVariance,
    }
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    mean(values.map(|v| v * v)).sqrt()
}

/// Mean; 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
