//! Refits to resampled data.
//!
//! At a minimum `x̂` with weighted residuals `r̂`, leverages `h` and blocks of rows by trial:
//!
//! | resampling | a replicate minimises |
//! |---|---|
//! | residuals | `\|r(x) - r̂ + u*\|²`, `u*_i` drawn from the centred `r̂_j / √(1 - h_j)` of the same measure |
//! | trials | `Σ_t c_t \|r_t(x)\|²`, `c_t` how often trial `t` was drawn |
//!
//! The first keeps the operating points and asks that errors of one measure be alike; the second asks nothing but that
//! trials be independent. Weights stay as the fit left them, whole numbers are held. Intervals are percentiles of the replicates. Each
//! replicate draws from its own stream of the seed, so that the result does not depend on the number of threads. Source: B. Efron and
//! R. Tibshirani, An Introduction to the Bootstrap (1993), chapters 9 and 13.

use std::{
    num::NonZero,
    ops::ControlFlow,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use indexmap::IndexMap;
use nalgebra::DVector;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::fit::{
    engine::{
        least_squares::{Bounds, Evaluation, EvaluationError, LeastSquaresOptions, Minimum, ResidualModel, Wanted},
        view::{Coordinates, minimise_in},
    },
    problem::{Bootstrap, Resampling},
};

/// Largest leverage at which a residual still says something of its error.
const FULL_LEVERAGE: f64 = 1.0 - 1e-9;

/// What refits to resampled data found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootstrapReport {
    /// Refits asked for.
    pub n: usize,
    /// Refits that found no minimum and are left out.
    pub failed: usize,
    /// What was drawn again.
    pub resampling: Resampling,
    /// Seed of the draws.
    pub seed: u64,
    /// By parameter; those that were held are left out.
    pub parameters: IndexMap<String, BootstrapEstimate>,
}

/// The replicates of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootstrapEstimate {
    /// Mean of the replicates less the estimate.
    pub bias: f64,
    /// Their standard deviation.
    pub std_error: f64,
    /// Lower percentile.
    pub lower: f64,
    /// Upper percentile.
    pub upper: f64,
}

/// What is drawn from.
#[derive(Clone, Debug)]
pub struct Resampled<'a> {
    /// The minimum; its residuals are followed by rows of priors, which stay.
    pub minimum: &'a Minimum,
    /// Rows of each trial.
    pub blocks: &'a [std::ops::Range<usize>],
    /// Leverage of each data row, `(n_rows)`.
    pub leverages: &'a [f64],
    /// Rows whose errors are alike, by data row: its measure.
    pub strata: &'a [usize],
    /// Parameters that move, each on its scale.
    pub coordinates: &'a Coordinates,
    /// The box.
    pub bounds: &'a Bounds,
    /// Options of the searches.
    pub options: &'a LeastSquaresOptions,
}

/// A residual function with its rows weighed and shifted: `c_i (r_i(x) + d_i)`.
pub(crate) struct Altered<M> {
    pub(crate) inner: M,
    pub(crate) factors: DVector<f64>,
    pub(crate) shifts: DVector<f64>,
}

impl<M: ResidualModel> ResidualModel for Altered<M> {
    fn n_obs(&self) -> usize {
        self.inner.n_obs()
    }

    fn n_params(&self) -> usize {
        self.inner.n_params()
    }

    fn set_free(&mut self, free: &[usize]) {
        self.inner.set_free(free);
    }

    fn evaluate(&mut self, x: &[f64], wanted: Wanted) -> Result<Evaluation, EvaluationError> {
        let mut found = self.inner.evaluate(x, wanted)?;
        found.residuals = (found.residuals + &self.shifts).component_mul(&self.factors);
        if let Some(jacobian) = &mut found.jacobian {
            jacobian.row_iter_mut().zip(&self.factors).for_each(|(mut row, factor)| row *= *factor);
        }
        Ok(found)
    }

    fn magnitude(&self) -> f64 {
        self.inner.magnitude()
    }

    fn error(&self) -> f64 {
        self.inner.error()
    }
}

/// Refits to `bootstrap.n` sets of resampled data; `make` gives a residual function for a thread of its own. The order of the
/// replicates is that of their streams; a replicate without a minimum is `None`. `keep` is asked at every step of every refit; `None`
/// altogether when it breaks off.
pub fn replicates<M: ResidualModel>(
    task: &Resampled<'_>,
    bootstrap: Bootstrap,
    make: &(dyn Fn() -> M + Sync),
    keep: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<Vec<Option<Vec<f64>>>> {
    let n_threads = thread::available_parallelism().map_or(1, NonZero::get).min(bootstrap.n);
    let errors = errors_by_stratum(task);
    let broken_off = AtomicBool::new(false);
    let run = |first: usize, steps: mpsc::SyncSender<()>| -> Vec<(usize, Option<Vec<f64>>)> {
        let mut step = || {
            // The receiver listens as long as there is a sender.
            let _ = steps.send(());
            if broken_off.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mine = (first..bootstrap.n).step_by(n_threads);
        mine.take_while(|_| !broken_off.load(Ordering::Relaxed))
            .map(|i| (i, replicate(task, bootstrap, i, &errors, make(), &mut step)))
            .collect()
    };
    let run = &run;
    let mut found: Vec<(usize, Option<Vec<f64>>)> = thread::scope(|scope| {
        let (steps, taken) = mpsc::sync_channel(n_threads);
        let spawn = |first: usize| {
            let steps = steps.clone();
            scope.spawn(move || run(first, steps))
        };
        let handles: Vec<_> = (0..n_threads).map(spawn).collect();
        drop(steps);
        for () in taken {
            if keep().is_break() {
                broken_off.store(true, Ordering::Relaxed);
            }
        }
        handles.into_iter().flat_map(|h| h.join().unwrap_or_default()).collect()
    });
    if broken_off.load(Ordering::Relaxed) {
        return None;
    }
    found.sort_by_key(|(i, _)| *i);
    Some(found.into_iter().map(|(_, x)| x).collect())
}

/// Residuals, their leverage taken out, centred, by stratum.
fn errors_by_stratum(task: &Resampled<'_>) -> Vec<Vec<f64>> {
    let n = task.strata.iter().max().map_or(0, |m| m + 1);
    let mut errors = vec![Vec::new(); n];
    for ((&stratum, &h), &r) in task.strata.iter().zip(task.leverages).zip(&task.minimum.residuals) {
        if h < FULL_LEVERAGE {
            errors[stratum].push(r / (1.0 - h).sqrt());
        }
    }
    for stratum in errors.iter_mut().filter(|s| !s.is_empty()) {
        let mean = stratum.iter().sum::<f64>() / f64::from(u32::try_from(stratum.len()).unwrap_or(u32::MAX));
        stratum.iter_mut().for_each(|e| *e -= mean);
    }
    errors
}

fn replicate<M: ResidualModel>(
    task: &Resampled<'_>,
    bootstrap: Bootstrap,
    i: usize,
    errors: &[Vec<f64>],
    inner: M,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(bootstrap.seed);
    rng.set_stream(u64::try_from(i).ok()?);
    let n_rows = task.minimum.residuals.len();
    let (mut factors, mut shifts) = (DVector::from_element(n_rows, 1.0), DVector::zeros(n_rows));
    match bootstrap.resampling {
        Resampling::Residuals => {
            for (row, &stratum) in task.strata.iter().enumerate() {
                let pool = &errors[stratum];
                let drawn = if pool.is_empty() { 0.0 } else { pool[rng.random_range(0..pool.len())] };
                shifts[row] = drawn - task.minimum.residuals[row];
            }
        }
        Resampling::Trials => {
            let mut counts = vec![0_u32; task.blocks.len()];
            (0..counts.len()).for_each(|_| counts[rng.random_range(0..task.blocks.len())] += 1);
            for (block, count) in task.blocks.iter().zip(counts) {
                factors.rows_mut(block.start, block.len()).fill(f64::from(count).sqrt());
            }
        }
    }
    let mut model = Altered { inner, factors, shifts };
    let keep = &mut |_: &_| step();
    let found = minimise_in(&mut model, task.coordinates, &task.minimum.x, task.bounds, task.options, keep).ok()?;
    found.stop.converged().then_some(found.x)
}

/// Bias, standard errors and percentiles at `confidence` of the replicates of the parameters `names` at positions
/// `free`; `None` when fewer than two succeeded.
pub fn summary(
    replicates: &[Option<Vec<f64>>],
    estimates: &[f64],
    names: &[String],
    free: &[usize],
    confidence: f64,
    bootstrap: Bootstrap,
) -> Option<BootstrapReport> {
    let found: Vec<&Vec<f64>> = replicates.iter().flatten().collect();
    if found.len() < 2 {
        return None;
    }
    let count = f64::from(u32::try_from(found.len()).unwrap_or(u32::MAX));
    let estimate = |j: usize| {
        let mut values: Vec<f64> = found.iter().map(|x| x[j]).collect();
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let tail = 0.5 * (1.0 - confidence);
        BootstrapEstimate {
            bias: mean - estimates[j],
            std_error: variance.sqrt(),
            lower: percentile(&values, tail),
            upper: percentile(&values, 1.0 - tail),
        }
    };
    let parameters = free.iter().map(|&j| (names[j].clone(), estimate(j))).collect();
    let Bootstrap { n, resampling, seed } = bootstrap;
    Some(BootstrapReport { n, failed: n - found.len(), resampling, seed, parameters })
}

/// The value below which a `share` of the ascending `values` lies, between neighbours in proportion.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
fn percentile(values: &[f64], share: f64) -> f64 {
    let position = share * (values.len() - 1) as f64;
    let below = (position.floor() as usize).min(values.len() - 1);
    let above = (below + 1).min(values.len() - 1);
    values[below] + (position - position.floor()) * (values[above] - values[below])
}
