//! Anderson acceleration of a fixed-point iteration `x = T(x)`.
//!
//! ```text
//! f_k = T(x_k) - x_k
//! γ   = argmin ‖ w (f_k - ΔF γ) ‖₂            ΔF: last differences of f,  ΔG: of T(x)
//! x_{k+1} = T(x_k) - ΔG γ
//! ```
//!
//! (Anderson 1965; Walker & Ni 2011.) Over dual numbers whose values have converged, the least squares is over the derivatives, whose
//! iteration is linear, so one `γ` serves all of them.

use std::collections::VecDeque;

use nalgebra::{DMatrix, DVector};

use crate::model::Scalar;

/// Differences kept.
const DEPTH: usize = 6;
/// Singular values below this share of the largest are left out of the least squares.
const RANK_TOLERANCE: f64 = 1e-9;
/// Growth of the residual over the best one at which the memory is dropped.
const GROWTH_LIMIT: f64 = 4.0;
/// Step after the memory was dropped.
const CAUTIOUS_STEP: f64 = 0.4;
/// Such steps after the memory was first dropped; they double each time, since where the map expands, as it does far from the
/// solution, extrapolation leads back and only plain steps lead out.
const FIRST_CAUTION: usize = 1;
/// Doublings of their number.
const LAST_DOUBLING: usize = 6;

/// The memory of an accelerated iteration.
pub(super) struct Anderson<S> {
    last: Option<(Vec<S>, Vec<S>)>,
    differences: VecDeque<(Vec<S>, Vec<S>)>,
    best: f64,
    cautious: usize,
    step: f64,
    n_forgotten: usize,
}

impl<S: Scalar> Anderson<S> {
    /// An empty memory; the first `cautious` steps are short and plain.
    pub fn new(cautious: usize) -> Self {
        Self { last: None, differences: VecDeque::new(), best: f64::INFINITY, cautious, step: CAUTIOUS_STEP, n_forgotten: 0 }
    }

    /// No acceleration at all: plain steps of this length.
    pub fn plain(step: f64) -> Self {
        Self { step, ..Self::new(usize::MAX) }
    }

    /// The next point after `x`, whose image is `image`; `residual` is their distance in the caller's measure.
    pub fn next(&mut self, x: &[S], image: &[S], residual: f64) -> Vec<S> {
        let f: Vec<S> = image.iter().zip(x).map(|(&g, &x)| g - x).collect();
        if residual > GROWTH_LIMIT * self.best {
            self.forget();
            self.best = residual;
        }
        self.best = self.best.min(residual);
        if let Some((last_f, last_g)) = &self.last {
            let df = f.iter().zip(last_f).map(|(&a, &b)| a - b).collect();
            let dg = image.iter().zip(last_g).map(|(&a, &b)| a - b).collect();
            self.differences.push_back((df, dg));
            if self.differences.len() > DEPTH {
                self.differences.pop_front();
            }
        }
        self.last = Some((f.clone(), image.to_vec()));
        if self.cautious > 0 {
            self.cautious -= 1;
            return x.iter().zip(&f).map(|(&x, &f)| x + f * self.step).collect();
        }
        let mut next = image.to_vec();
        let Some(gamma) = self.coefficients(&f, image) else { return next };
        for ((_, dg), &g) in self.differences.iter().zip(gamma.iter()) {
            next.iter_mut().zip(dg).for_each(|(n, &d)| *n -= d * g);
        }
        next
    }

    /// Drops the memory after an extrapolation that was not followed: what it would learn from the next step would be wrong.
    pub fn forget(&mut self) {
        self.differences.clear();
        self.last = None;
        self.n_forgotten += 1;
        self.cautious = self.cautious.max(FIRST_CAUTION << self.n_forgotten.min(LAST_DOUBLING));
    }

    fn coefficients(&self, f: &[S], image: &[S]) -> Option<DVector<f64>> {
        if self.differences.is_empty() {
            return None;
        }
        let n_lanes = f.iter().map(|v| v.derivatives().len()).max().unwrap_or(0);
        let lanes = if n_lanes == 0 { vec![None] } else { (0..n_lanes).map(Some).collect() };
        let mut rows = Vec::new();
        for lane in lanes {
            let weights = weights(image, lane);
            for (i, &w) in weights.iter().enumerate() {
                if w > 0.0 {
                    rows.push((i, lane, w));
                }
            }
        }
        if rows.is_empty() {
            return None;
        }
        let matrix = DMatrix::from_fn(rows.len(), self.differences.len(), |r, c| {
            let (i, lane, w) = rows[r];
            part(&self.differences[c].0[i], lane) * w
        });
        let target = DVector::from_fn(rows.len(), |r, _| {
            let (i, lane, w) = rows[r];
            part(&f[i], lane) * w
        });
        if !matrix.iter().chain(target.iter()).all(|v| v.is_finite()) {
            return None;
        }
        let svd = matrix.svd(true, true);
        let largest = svd.singular_values.max();
        if !largest.is_finite() || largest <= 0.0 {
            return None;
        }
        svd.solve(&target, largest * RANK_TOLERANCE).ok().filter(|g| g.iter().all(|v| v.is_finite()))
    }
}

fn part<S: Scalar>(value: &S, lane: Option<usize>) -> f64 {
    match lane {
        None => value.value(),
        Some(lane) => value.derivatives().get(lane).copied().unwrap_or(0.0),
    }
}

/// Values are weighed relatively; derivatives by the largest of their lane, since many of them are next to nothing.
fn weights<S: Scalar>(image: &[S], lane: Option<usize>) -> Vec<f64> {
    let largest = image.iter().map(|v| part(v, lane).abs()).fold(0.0, f64::max);
    let floor = if lane.is_none() { 1e-6 } else { 1.0 } * largest;
    image.iter().map(|v| if largest > 0.0 { part(v, lane).abs().max(floor).recip() } else { 0.0 }).collect()
}
