//! Each trial predicted by a fit to the others.
//!
//! Trial `t` is given no weight, the fit is repeated from where it stood, and the raw errors of trial `t` at the new estimates
//! are those of a prediction that did not see it. Structures that are not nested can be ranked by them. Weights stay as the
//! fit left them, whole numbers are held. Source: D. Allen, Technometrics 16 (1974).

use std::ops::ControlFlow;

use indexmap::IndexMap;
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

use crate::{
    fit::{
        engine::{
            least_squares::{Bounds, LeastSquaresOptions, Minimum, ResidualModel, Wanted},
            view::{Coordinates, minimise_in},
        },
        inference::bootstrap::Altered,
        search::weights::Weights,
    },
    model::Measure,
};

/// Errors of predicting each trial from the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaveOneOut {
    /// Weighted sum of squares of the errors of prediction: like the fit's own, but honest.
    pub sum_of_squares: f64,
    /// Trials predicted.
    pub n_trials: usize,
    /// Trials without which no minimum was found.
    pub failed: Vec<String>,
    /// Root mean square error of prediction by measure, in its units.
    pub rms_errors: IndexMap<Measure, f64>,
}

/// What is left out of what.
pub(crate) struct LeaveOutTask<'a> {
    pub(crate) weights: &'a Weights,
    pub(crate) minimum: &'a Minimum,
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) bounds: &'a Bounds,
    pub(crate) options: &'a LeastSquaresOptions,
    pub(crate) ids: Vec<&'a str>,
    pub(crate) measures: &'a [Measure],
}

/// Leaves out each trial in turn; `make` gives the residual function of all trials. `keep` is asked at every step of every search; `None`
/// when it breaks off.
pub(crate) fn leave_one_out<M: ResidualModel>(
    task: &LeaveOutTask<'_>,
    make: &dyn Fn() -> M,
    keep: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<LeaveOneOut> {
    let n_measures = task.measures.len();
    let (mut squares, mut counts) = (vec![0.0; n_measures], vec![0.0; n_measures]);
    let (mut sum_of_squares, mut n_trials, mut failed) = (0.0, 0, Vec::new());
    for block in &task.weights.blocks {
        let mut broken_off = false;
        let mut keep_on = || {
            let answer = keep();
            broken_off |= answer.is_break();
            answer
        };
        let found = without(task, block.rows.clone(), make, &mut keep_on);
        if broken_off {
            return None;
        }
        let Some(rows) = found else {
            failed.push(task.ids[block.trial_idx].to_owned());
            continue;
        };
        n_trials += 1;
        sum_of_squares += rows.norm_squared();
        let raw = match &block.whitening {
            Some(w) => w.matrix.clone().pseudo_inverse(1e-12).map(|inverse| inverse * &rows).unwrap_or(rows),
            None => {
                let observations = &task.weights.observations[block.observations.clone()];
                DVector::from_iterator(rows.len(), rows.iter().zip(observations).map(|(r, o)| r / o.root_weight))
            }
        };
        for (error, o) in raw.iter().zip(&task.weights.observations[block.observations.clone()]) {
            squares[o.measure_idx] += error * error;
            counts[o.measure_idx] += 1.0;
        }
    }
    let rms = |k: usize| (counts[k] > 0.0).then(|| (task.measures[k].clone(), (squares[k] / counts[k]).sqrt()));
    Some(LeaveOneOut { sum_of_squares, n_trials, failed, rms_errors: (0..n_measures).filter_map(rms).collect() })
}

/// Weighted errors of one trial, predicted by a fit to the others.
fn without<M: ResidualModel>(
    task: &LeaveOutTask<'_>,
    rows: std::ops::Range<usize>,
    make: &dyn Fn() -> M,
    keep: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<DVector<f64>> {
    let n = task.minimum.residuals.len();
    let mut factors = DVector::from_element(n, 1.0);
    factors.rows_mut(rows.start, rows.len()).fill(0.0);
    let mut model = Altered { inner: make(), factors, shifts: DVector::zeros(n) };
    let report = &mut |_: &_| keep();
    let found = minimise_in(&mut model, task.coordinates, &task.minimum.x, task.bounds, task.options, report).ok()?;
    if !found.stop.converged() {
        return None;
    }
    let all = make().evaluate(&found.x, Wanted::Residuals).ok()?.residuals;
    // The factors of a loss are for the fit, not for the error.
    let factor = |i: usize| task.weights.factors.get(i).copied().unwrap_or(1.0);
    Some(DVector::from_iterator(rows.len(), rows.map(|i| all[i] / factor(i))))
}
