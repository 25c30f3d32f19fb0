//! Is the model's misfit more than the error of measurement?
//!
//! Where operating points were measured more than once, the error of measurement shows without any model: with one free
//! mean `μ_g` for each group `g` of replicates,
//!
//! ```text
//! S_pe = Σ_g min_μ Σ_{t ∈ g} |A_t (z_t - μ)|²        d_pe = values in groups less means fitted
//! F = ((E - S_pe) / (d - d_pe)) / (S_pe / d_pe)       ~ F(d - d_pe, d_pe) for a model that is right
//! ```
//!
//! `A_t` makes the errors of a trial independent ([`crate::fit::search::whitening`]), `E` and `d` are the sum of squares and the
//! degrees of freedom of the fit. Source: D. Bates and D. Watts, Nonlinear Regression Analysis (1988), section 1.3.2.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use crate::fit::{
    engine::svd::svd,
    inference::distribution::f_upper_tail,
    problem::trials::Trials,
    search::weights::{Block, WeightSource, Weights},
};

/// Singular value, relative to the largest, below which a mean is not determined.
const NEGLIGIBLE: f64 = 1e-12;

/// Misfit against pure error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// Sum of squares of replicates around their means.
    pub pure_error: f64,
    /// Its degrees of freedom.
    pub pure_error_dof: usize,
    /// What the model misses beyond that.
    pub misfit: f64,
    /// Its degrees of freedom.
    pub misfit_dof: usize,
    /// Ratio of the two, each by its degrees of freedom.
    pub f: f64,
    /// Probability of a ratio as large for a right model.
    pub p_value: f64,
}

/// The test for a fit with weighted sum of squares `sum_of_squares` and `dof` degrees of freedom; `None` where nothing was
/// measured twice, nothing is left to compare, or the weights are of the same replicates, so that `S_pe` is `d_pe` whatever they are.
pub fn lack_of_fit(trials: &Trials, weights: &Weights, sum_of_squares: f64, dof: usize) -> Option<LackOfFit> {
    if weights.sources.contains(&WeightSource::Replicates) {
        return None;
    }
    let (mut pure_error, mut pure_error_dof) = (0.0, 0);
    for group in trials.replicates() {
        let blocks: Vec<&Block> = weights.blocks.iter().filter(|b| group.contains(&b.trial_idx)).collect();
        let (squares, free) = within(&blocks, weights);
        pure_error += squares;
        pure_error_dof += free;
    }
    let misfit_dof = dof.checked_sub(pure_error_dof).filter(|d| *d > 0)?;
    let misfit = (sum_of_squares - pure_error).max(0.0);
    let per = |squares: f64, dof: usize| squares / f64::from(u32::try_from(dof).unwrap_or(u32::MAX));
    if pure_error_dof == 0 || pure_error <= 0.0 {
        return None;
    }
    let f = per(misfit, misfit_dof) / per(pure_error, pure_error_dof);
    let p_value = f_upper_tail(f, misfit_dof, pure_error_dof)?;
    Some(LackOfFit { pure_error, pure_error_dof, misfit, misfit_dof, f, p_value })
}

/// Sum of squares and degrees of freedom of one group around its means.
fn within(blocks: &[&Block], weights: &Weights) -> (f64, usize) {
    let mut measures: Vec<usize> = Vec::new();
    for o in blocks.iter().flat_map(|b| &weights.observations[b.observations.clone()]) {
        if !measures.contains(&o.measure_idx) {
            measures.push(o.measure_idx);
        }
    }
    let n_rows: usize = blocks.iter().map(|b| b.rows.len()).sum();
    let (mut design, mut values) = (DMatrix::zeros(n_rows, measures.len()), DVector::zeros(n_rows));
    let mut row = 0;
    for b in blocks {
        let observations = &weights.observations[b.observations.clone()];
        let transform = match &b.whitening {
            Some(w) => w.matrix.clone(),
            None => DMatrix::from_diagonal(&DVector::from_iterator(observations.len(), observations.iter().map(|o| o.root_weight))),
        };
        let measured = DVector::from_iterator(observations.len(), observations.iter().map(|o| o.value));
        values.rows_mut(row, b.rows.len()).copy_from(&(&transform * measured));
        for (k, o) in observations.iter().enumerate() {
            if let Some(column) = measures.iter().position(|m| *m == o.measure_idx) {
                design.view_mut((row, column), (b.rows.len(), 1)).copy_from(&transform.column(k));
            }
        }
        row += b.rows.len();
    }
    let d = svd(&design);
    let largest = d.s.iter().copied().fold(0.0, f64::max);
    let kept: Vec<usize> = (0..d.s.len()).filter(|&i| d.s[i] > NEGLIGIBLE * largest).collect();
    let padded = values.clone().resize_vertically(d.u.nrows(), 0.0);
    let explained: f64 = kept.iter().map(|&i| d.u.column(i).dot(&padded).powi(2)).sum();
    ((values.norm_squared() - explained).max(0.0), n_rows.saturating_sub(kept.len()))
}
