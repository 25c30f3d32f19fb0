//! Anderson acceleration of a fixed-point iteration `x = T(x)`.
//!
//! ```text
//! f_k = T(x_k) - x_k
//! γ   = argmin ‖ w (f_k - ΔF γ) ‖₂            ΔF: last differences of f,  ΔG: of T(x)
//! x_{k+1} = T(x_k) - ΔG γ
//! ```
//!
//! (Anderson 1965; Walker & Ni 2011.) The norm is over the leading unknowns, the waits; the others follow them. The few normal equations
//! are solved by Cholesky's method with a ridge that stands for the rounding of the differences.

use std::{collections::VecDeque, ops::Range};

use super::vectors::dot;
use crate::model::Scalar;

/// Differences kept.
pub(super) const DEPTH: usize = 6;
/// Unknowns below this share of the largest are weighed as if they were that large.
const LEAST_WEIGHED: f64 = 1e-6;
/// Ridge on the normal equations, relative to their largest diagonal.
const RIDGE: f64 = 1e-13;
/// Differences for which weights stay, so that only the newest has to be weighed and multiplied with the others.
const SAME_WEIGHTS: usize = DEPTH;
/// Growth of the residual over the best one at which the memory is dropped.
const GROWTH_LIMIT: f64 = 4.0;
/// Such steps after the memory was first dropped; they double each time, since where the map expands, as it does far from the
/// solution, extrapolation leads back and only plain steps lead out.
const FIRST_CAUTION: usize = 1;
/// Doublings of their number.
const LAST_DOUBLING: usize = 6;

/// Of `f` and of `T(x)`.
pub(super) type Difference<S> = (Vec<S>, Vec<S>);

/// The memory of an accelerated iteration.
pub(super) struct Anderson<S> {
    /// Leading unknowns over which the norm is.
    n_leading: usize,
    /// Those among them that may come from nothing, and are weighed as the largest is.
    small: Range<usize>,
    /// The last `f` and `T(x)`, if any.
    last: Option<(Vec<S>, Vec<S>)>,
    /// Last differences of `f` and of `T(x)`, oldest first.
    differences: VecDeque<Difference<S>>,
    /// Room that is not used any more.
    spare: Vec<Difference<S>>,
    best: f64,
    cautious: usize,
    step: f64,
    n_forgotten: usize,
    n_learned: usize,
    weights: Vec<f64>,
    /// For how many more differences these stay.
    n_same: usize,
    /// The differences of `f`, weighed, oldest first, and their products; room for `f` itself.
    columns: VecDeque<Vec<f64>>,
    normal: [[f64; DEPTH]; DEPTH],
    weighed: Vec<f64>,
}

impl<S: Scalar> Anderson<S> {
    /// An empty memory; the first `cautious` steps, and those after it was dropped, are plain and of length `step`.
    pub fn new(n_leading: usize, small: Range<usize>, cautious: usize, step: f64) -> Self {
        let differences = VecDeque::with_capacity(DEPTH);
        Self {
            n_leading,
            small,
            last: None,
            differences,
            spare: Vec::new(),
            best: f64::INFINITY,
            cautious,
            step,
            n_forgotten: 0,
            n_learned: 0,
            weights: Vec::new(),
            n_same: 0,
            columns: VecDeque::with_capacity(DEPTH),
            normal: [[0.0; DEPTH]; DEPTH],
            weighed: Vec::new(),
        }
    }

    /// The same as [`Self::new`], in the room of this one.
    pub fn begin(&mut self, n_leading: usize, small: Range<usize>, cautious: usize, step: f64) {
        self.clear();
        (self.n_leading, self.small, self.cautious, self.step) = (n_leading, small, cautious, step);
        (self.best, self.n_forgotten, self.n_learned) = (f64::INFINITY, 0, 0);
    }

    /// Forgets all differences.
    fn clear(&mut self) {
        self.spare.extend(self.differences.drain(..).chain(self.last.take()));
        self.n_same = 0;
    }

    /// Sets `next` to the point after `x`, whose image is `image`; `residual` is their distance in the caller's measure.
    pub fn next(&mut self, x: &[S], image: &[S], residual: f64, next: &mut [S]) {
        if residual > GROWTH_LIMIT * self.best {
            self.forget();
            self.best = residual;
        }
        self.best = self.best.min(residual);
        self.remember(x, image);
        if self.cautious > 0 {
            self.cautious -= 1;
            for ((n, &x), &g) in next.iter_mut().zip(x).zip(image) {
                *n = x + (g - x) * self.step;
            }
            return;
        }
        next.copy_from_slice(image);
        if let Some(gamma) = self.coefficients(image) {
            for ((_, dg), &g) in self.differences.iter().zip(&gamma) {
                next.iter_mut().zip(dg).for_each(|(n, &d)| *n -= d * g);
            }
        }
    }

    /// Makes `x` and its image the last ones, and their differences from those before the newest.
    fn remember(&mut self, x: &[S], image: &[S]) {
        let Some((last_f, last_g)) = &mut self.last else {
            let (mut f, mut g) = self.spare.pop().unwrap_or_default();
            f.clear();
            f.extend(image.iter().zip(x).map(|(&g, &x)| g - x));
            image.clone_into(&mut g);
            self.last = Some((f, g));
            return;
        };
        let oldest = if self.differences.len() == DEPTH { self.differences.pop_front() } else { self.spare.pop() };
        let (mut df, mut dg) = oldest.unwrap_or_else(|| (last_f.clone(), last_g.clone()));
        let differences = df.iter_mut().zip(&mut dg);
        let last = last_f.iter_mut().zip(last_g.iter_mut());
        for (((df, dg), (last_f, last_g)), (&g, &x)) in differences.zip(last).zip(image.iter().zip(x)) {
            let f = g - x;
            (*df, *dg) = (f - *last_f, g - *last_g);
            (*last_f, *last_g) = (f, g);
        }
        self.differences.push_back((df, dg));
        self.n_learned += 1;
    }

    /// Drops the memory after an extrapolation that was not followed: what it would learn from the next step would be wrong.
    pub fn forget(&mut self) {
        self.clear();
        self.n_forgotten += 1;
        self.cautious = self.cautious.max(FIRST_CAUTION << self.n_forgotten.min(LAST_DOUBLING));
    }

    /// How many differences there have been, and the last ones of `f` and of `T(x)`, oldest first.
    pub fn learned(&self) -> (usize, &VecDeque<Difference<S>>) {
        (self.n_learned, &self.differences)
    }

    /// `γ`; none, if nothing can be learned from the differences.
    fn coefficients(&mut self, image: &[S]) -> Option<[f64; DEPTH]> {
        let (n, k) = (self.n_leading, self.differences.len());
        if k == 0 || n == 0 {
            return None;
        }
        self.multiply(&image[..n]);
        let (last_f, _) = self.last.as_ref()?;
        weigh(last_f, &self.weights, &mut self.weighed);
        let mut right = [0.0; DEPTH];
        right.iter_mut().zip(&self.columns).for_each(|(right, column)| *right = dot(column, &self.weighed));
        let mut normal = self.normal;
        let largest = (0..k).map(|a| normal[a][a]).fold(0.0, f64::max);
        if !(largest > 0.0 && largest.is_finite()) {
            return None;
        }
        (0..k).for_each(|a| normal[a][a] += RIDGE * largest);
        solve_in_place(&mut normal, &mut right, k);
        right.iter().all(|v| v.is_finite()).then_some(right)
    }

    /// Brings the weighed differences and their products up to date: with the newest alone, or all by new weights.
    fn multiply(&mut self, image: &[S]) {
        let k = self.differences.len();
        let is_next = self.n_same > 0 && (self.columns.len() + 1).min(DEPTH) == k;
        if is_next {
            self.n_same -= 1;
        } else {
            set_weights(image, &self.small, &mut self.weights);
            self.n_same = SAME_WEIGHTS;
        }
        let first_new = if is_next { k - 1 } else { 0 };
        if is_next && self.columns.len() == DEPTH {
            self.columns.rotate_left(1);
            for a in 1..DEPTH {
                for b in 1..=a {
                    self.normal[a - 1][b - 1] = self.normal[a][b];
                }
            }
        }
        self.columns.resize_with(k, Vec::new);
        for a in first_new..k {
            weigh(&self.differences[a].0, &self.weights, &mut self.columns[a]);
            for b in 0..=a {
                self.normal[a][b] = dot(&self.columns[a], &self.columns[b]);
            }
        }
    }
}

/// Leading values, weighed.
fn weigh<S: Scalar>(values: &[S], weights: &[f64], weighed: &mut Vec<f64>) {
    weighed.clear();
    weighed.extend(values.iter().zip(weights).map(|(v, &w)| v.value() * w));
}

/// Cholesky's method on the lower half of the first `k` rows and columns; not finite, where they are not positive definite.
fn solve_in_place(matrix: &mut [[f64; DEPTH]; DEPTH], right: &mut [f64; DEPTH], k: usize) {
    for i in 0..k {
        for j in 0..=i {
            let sum = (0..j).fold(matrix[i][j], |sum, l| sum - matrix[i][l] * matrix[j][l]);
            matrix[i][j] = if i == j { sum.sqrt() } else { sum / matrix[j][j] };
        }
        right[i] = (0..i).fold(right[i], |sum, l| sum - matrix[i][l] * right[l]) / matrix[i][i];
    }
    for i in (0..k).rev() {
        right[i] = (i + 1..k).fold(right[i], |sum, l| sum - matrix[l][i] * right[l]) / matrix[i][i];
    }
}

/// Values are weighed relatively.
fn set_weights<S: Scalar>(image: &[S], small: &Range<usize>, weights: &mut Vec<f64>) {
    let largest = image.iter().map(|v| v.value().abs()).fold(0.0, f64::max);
    let floor = |i: usize| if small.contains(&i) { largest } else { LEAST_WEIGHED * largest };
    weights.clear();
    weights.extend(image.iter().enumerate().map(|(i, v)| if largest > 0.0 { v.value().abs().max(floor(i)).recip() } else { 0.0 }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a map of so many unknowns, each of which follows from its neighbours; where that leads, and how often it was asked.
    fn followed(acceleration: &mut Anderson<f64>, n: usize) -> (Vec<f64>, usize) {
        let mut x = vec![1.0; n];
        let (mut image, mut next) = (x.clone(), x.clone());
        for asked in 1..100 {
            for i in 0..n {
                image[i] = 1.0 + 0.3 * x[(i + 1) % n] + 0.2 * (x[(i + n - 1) % n] + i as f64).sqrt();
            }
            let change = image.iter().zip(&x).map(|(image, x)| (image - x).abs()).fold(0.0, f64::max);
            if change < 1e-12 {
                return (x, asked);
            }
            acceleration.next(&x, &image, change, &mut next);
            std::mem::swap(&mut x, &mut next);
        }
        panic!("not reached");
    }

    #[test]
    fn what_begins_in_the_room_of_another_goes_as_a_new_one() {
        let begun = || Anderson::new(9, 0..0, 1, 0.7);
        let (alone, asked) = followed(&mut begun(), 9);
        let mut acceleration = Anderson::new(5, 0..0, 0, 1.0);
        followed(&mut acceleration, 9);
        for _ in 0..2 {
            acceleration.begin(9, 0..0, 1, 0.7);
            assert_eq!(followed(&mut acceleration, 9), (alone.clone(), asked));
        }
        assert!(acceleration.spare.len() <= DEPTH + 1);
    }
}
