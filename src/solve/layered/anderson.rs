//! Anderson acceleration of a fixed-point iteration `x = T(x)`.
//!
//! ```text
//! f_k = T(x_k) - x_k
//! γ   = argmin ‖ w (f_k - ΔF γ) ‖₂            ΔF: last differences of f,  ΔG: of T(x)
//! x_{k+1} = T(x_k) - ΔG γ
//! ```
//!
//! (Anderson 1965; Walker & Ni 2011.) The norm is over the leading unknowns, the waits; the others follow them. The few normal equations
//! are solved by Cholesky's method with a ridge that stands for the rounding of the differences. Over dual numbers, whose values
//! have converged, only the derivatives are accelerated, each direction with a `γ` of its own: their iteration is linear.

use std::{collections::VecDeque, ops::Range};

use nalgebra::{DMatrix, DVector};

use crate::model::Scalar;

/// Differences kept.
const DEPTH: usize = 6;
/// The same, of derivatives: their iteration is linear, so that older ones are as true as new ones.
const LINEAR_DEPTH: usize = 12;
/// Ridge on the normal equations, relative to their largest diagonal.
const RIDGE: f64 = 1e-13;
/// Growth of the residual over the best one at which the memory is dropped.
const GROWTH_LIMIT: f64 = 4.0;
/// Such steps after the memory was first dropped; they double each time, since where the map expands, as it does far from the
/// solution, extrapolation leads back and only plain steps lead out.
const FIRST_CAUTION: usize = 1;
/// Doublings of their number.
const LAST_DOUBLING: usize = 6;

/// Last differences of `f` and of `T(x)`, oldest first.
pub(super) type Differences<S> = VecDeque<(Vec<S>, Vec<S>)>;

/// The memory of an accelerated iteration.
pub(super) struct Anderson<S> {
    /// Leading unknowns over which the norm is.
    n_leading: usize,
    /// Those among them that may come from nothing, and are weighed as the largest is.
    small: Range<usize>,
    last: Option<(Vec<S>, Vec<S>)>,
    differences: Differences<S>,
    best: f64,
    cautious: usize,
    step: f64,
    n_forgotten: usize,
}

impl<S: Scalar> Anderson<S> {
    /// An empty memory; the first `cautious` steps, and those after it was dropped, are plain and of length `step`.
    pub fn new(n_leading: usize, small: Range<usize>, cautious: usize, step: f64) -> Self {
        let differences = VecDeque::with_capacity(DEPTH + 1);
        Self { n_leading, small, last: None, differences, best: f64::INFINITY, cautious, step, n_forgotten: 0 }
    }

    /// Begins with the differences of another iteration that is much like this one.
    pub fn remembering(mut self, differences: Differences<S>) -> Self {
        self.differences = differences;
        self
    }

    /// The differences, for the next iteration that is much like this one.
    pub fn into_differences(self) -> Differences<S> {
        self.differences
    }

    /// No acceleration at all: plain steps of this length.
    pub fn plain(step: f64) -> Self {
        Self::new(0, 0..0, usize::MAX, step)
    }

    /// The next point after `x`, whose image is `image`; `residual` is their distance in the caller's measure.
    pub fn next(&mut self, x: &[S], image: &[S], residual: f64) -> Vec<S> {
        let f: Vec<S> = image.iter().zip(x).map(|(&g, &x)| g - x).collect();
        if !is_linear(&f) && residual > GROWTH_LIMIT * self.best {
            self.forget();
            self.best = residual;
        }
        self.best = self.best.min(residual);
        self.remember(&f, image);
        if self.cautious > 0 {
            self.cautious -= 1;
            let next = x.iter().zip(&f).map(|(&x, &f)| x + f * self.step).collect();
            self.last = Some((f, image.to_vec()));
            return next;
        }
        let mut next = image.to_vec();
        let n_lanes = image.first().map_or(0, |v| v.derivatives().len());
        let of_values = if n_lanes == 0 { self.coefficients(&f, image, None) } else { None };
        if let Some(gamma) = of_values {
            for ((_, dg), &g) in self.differences.iter().zip(gamma.iter()) {
                next.iter_mut().zip(dg).for_each(|(n, &d)| *n -= d * g);
            }
        }
        for lane in 0..n_lanes {
            let Some(gamma) = self.coefficients(&f, image, Some(lane)) else { continue };
            for ((_, dg), &g) in self.differences.iter().zip(gamma.iter()) {
                next.iter_mut().zip(dg).for_each(|(n, d)| n.derivatives_mut()[lane] -= d.derivatives()[lane] * g);
            }
        }
        self.last = Some((f, image.to_vec()));
        next
    }

    fn remember(&mut self, f: &[S], image: &[S]) {
        let Some((last_f, last_g)) = self.last.take() else { return };
        let subtract = |now: &[S], mut before: Vec<S>| {
            before.iter_mut().zip(now).for_each(|(b, &n)| *b = n - *b);
            before
        };
        self.differences.push_back((subtract(f, last_f), subtract(image, last_g)));
        if self.differences.len() > if is_linear(f) { LINEAR_DEPTH } else { DEPTH } {
            self.differences.pop_front();
        }
    }

    /// Drops the memory after an extrapolation that was not followed: what it would learn from the next step would be wrong.
    pub fn forget(&mut self) {
        self.differences.clear();
        self.last = None;
        self.n_forgotten += 1;
        self.cautious = self.cautious.max(FIRST_CAUTION << self.n_forgotten.min(LAST_DOUBLING));
    }

    /// `γ` over the values, or over the derivatives in one direction.
    fn coefficients(&self, f: &[S], image: &[S], lane: Option<usize>) -> Option<DVector<f64>> {
        let k = self.differences.len();
        if k == 0 || self.n_leading == 0 {
            return None;
        }
        let weights = weights(&image[..self.n_leading], lane, &self.small);
        let weighed = |values: &[S]| -> DVector<f64> {
            DVector::from_iterator(self.n_leading, values.iter().zip(&weights).map(|(v, &w)| part(v, lane) * w))
        };
        let columns: Vec<DVector<f64>> = self.differences.iter().map(|(df, _)| weighed(df)).collect();
        let target = weighed(f);
        let mut normal = DMatrix::from_fn(k, k, |a, b| if a >= b { columns[a].dot(&columns[b]) } else { 0.0 });
        let right = DVector::from_fn(k, |a, _| columns[a].dot(&target));
        let largest = (0..k).map(|a| normal[(a, a)]).fold(0.0, f64::max);
        if !(largest > 0.0 && largest.is_finite()) {
            return None;
        }
        (0..k).for_each(|a| normal[(a, a)] += RIDGE * largest);
        let gamma = normal.cholesky()?.solve(&right);
        gamma.iter().all(|v| v.is_finite()).then_some(gamma)
    }
}

/// Whether it is derivatives that are iterated.
fn is_linear<S: Scalar>(values: &[S]) -> bool {
    values.first().is_some_and(|v| !v.derivatives().is_empty())
}

fn part<S: Scalar>(value: &S, lane: Option<usize>) -> f64 {
    match lane {
        None => value.value(),
        Some(lane) => value.derivatives().get(lane).copied().unwrap_or(0.0),
    }
}

/// Values are weighed relatively; derivatives by the largest of their lane, since many of them are next to nothing.
fn weights<S: Scalar>(image: &[S], lane: Option<usize>, small: &Range<usize>) -> Vec<f64> {
    let largest = image.iter().map(|v| part(v, lane).abs()).fold(0.0, f64::max);
    let floor = if lane.is_none() { 1e-6 } else { 1.0 } * largest;
    let floor = |i: usize| if small.contains(&i) { largest } else { floor };
    image.iter().enumerate().map(|(i, v)| if largest > 0.0 { part(v, lane).abs().max(floor(i)).recip() } else { 0.0 }).collect()
}
