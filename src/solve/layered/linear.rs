//! A small linear system over any scalar.

use crate::model::Scalar;

/// Solves `w = A w + c` by elimination; `None` where that has no positive solution, because the queue would not be stable.
pub(super) fn solve_fixed_point<S: Scalar>(n: usize, coefficient: impl Fn(usize, usize) -> S, constant: &[S]) -> Option<Vec<S>> {
    let one = S::from(1.0);
    let mut matrix: Vec<S> = (0..n * n)
        .map(|i| {
            let (b, x) = (i / n, i % n);
            if b == x { one - coefficient(b, x) } else { -coefficient(b, x) }
        })
        .collect();
    let mut w = constant.to_vec();
    // I - A is an M-matrix when the queue is stable: elimination needs no pivoting, and its pivots stay positive.
    for k in 0..n {
        let pivot = matrix[k * n + k];
        if pivot <= 0.0 {
            return None;
        }
        for i in k + 1..n {
            let factor = matrix[i * n + k] / pivot;
            if factor == 0.0 && factor.derivatives().is_empty() {
                continue;
            }
            for j in k + 1..n {
                let change = factor * matrix[k * n + j];
                matrix[i * n + j] -= change;
            }
            let change = factor * w[k];
            w[i] -= change;
        }
    }
    for k in (0..n).rev() {
        let sum = (k + 1..n).fold(w[k], |sum, j| sum - matrix[k * n + j] * w[j]);
        w[k] = sum / matrix[k * n + k];
    }
    Some(w)
}
