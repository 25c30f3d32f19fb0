//! Residuals whose errors are correlated, made independent and of equal size.
//!
//! For a trial with errors of covariance `R`, `(m, m)`, standardised by their deviations `D`, `D⁻¹ R D⁻¹ = V Λ Vᵀ`:
//!
//! ```text
//! A = V Λ^(-1/2) Vᵀ D⁻¹        A R Aᵀ = I, the i-th row nearest to the i-th measure alone
//! A = Λ₊^(-1/2) V₊ᵀ D⁻¹        where directions have no error (λ ≤ 10⁻⁸ λ_max) and are left out
//! ```
//!
//! The second form is the pseudo-inverse: an exact relation between measured values, such as Little's law without think
//! time, holds for the model too and says nothing of its parameters. Source: M. Woodside, SIPEW 2008, section 2;
//! A. Kessy, A. Lewin and K. Strimmer, The American Statistician 72 (2018), for the choice of `A`.

use nalgebra::{DMatrix, DVector};

/// Variance of a direction, relative to the largest, below which it has no error.
const NO_ERROR: f64 = 1e-8;

/// What makes one trial's errors independent.
#[derive(Clone, Debug, PartialEq)]
pub struct Whitening {
    /// `A`, `(n_rows, m)`, `n_rows ≤ m`.
    pub matrix: DMatrix<f64>,
    /// `ln det R` over the directions that are kept.
    pub log_determinant: f64,
}

impl Whitening {
    /// The whitening of errors with `covariance`, `(m, m)`, of positive diagonal.
    pub fn of(covariance: &DMatrix<f64>) -> Self {
        let m = covariance.nrows();
        if m == 0 {
            return Self { matrix: DMatrix::zeros(0, 0), log_determinant: 0.0 };
        }
        let deviations: DVector<f64> = covariance.diagonal().map(f64::sqrt);
        let scaled = DMatrix::from_fn(m, m, |i, j| covariance[(i, j)] / (deviations[i] * deviations[j]));
        let eigen = scaled.symmetric_eigen();
        let largest = eigen.eigenvalues.max();
        let kept: Vec<usize> = (0..m).filter(|&i| eigen.eigenvalues[i] > NO_ERROR * largest).collect();
        let vectors = eigen.eigenvectors.select_columns(&kept);
        let inverse_roots = DVector::from_iterator(kept.len(), kept.iter().map(|&i| eigen.eigenvalues[i].sqrt().recip()));
        let mut matrix = DMatrix::from_diagonal(&inverse_roots) * vectors.transpose();
        if kept.len() == m {
            matrix = &vectors * matrix;
        }
        for (mut column, deviation) in matrix.column_iter_mut().zip(&deviations) {
            column.unscale_mut(*deviation);
        }
        let directions: f64 = kept.iter().map(|&i| eigen.eigenvalues[i].ln()).sum();
        let log_determinant = directions + 2.0 * deviations.iter().map(|d| d.ln()).sum::<f64>();
        Self { matrix, log_determinant }
    }

    /// `A⁺ = R Aᵀ`, `(m, n_rows)`: the right inverse of `A`, with `A⁺ A⁺ᵀ = R` but for directions without an error; of the `covariance` `R`, `(m, m)`.
    pub fn inverse(&self, covariance: &DMatrix<f64>) -> DMatrix<f64> {
        covariance * self.matrix.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitened_errors_are_independent_and_of_size_one() {
        let r = DMatrix::from_row_slice(3, 3, &[4.0, 1.0, -0.5, 1.0, 9.0, 2.0, -0.5, 2.0, 1.0]);
        let w = Whitening::of(&r);
        assert!((&w.matrix * &r * w.matrix.transpose() - DMatrix::identity(3, 3)).norm() < 1e-12);
        assert!((w.log_determinant - r.determinant().ln()).abs() < 1e-12);
        let back = w.inverse(&r);
        assert!((&w.matrix * &back - DMatrix::identity(3, 3)).norm() < 1e-12 && (&back * back.transpose() - r).norm() < 1e-12);
    }

    #[test]
    fn no_errors_have_no_rows() {
        let w = Whitening::of(&DMatrix::zeros(0, 0));
        assert_eq!((w.matrix.shape(), w.log_determinant), ((0, 0), 0.0));
    }

    #[test]
    fn an_exact_relation_is_left_out() {
        // The third error is the sum of the others.
        let r = DMatrix::from_row_slice(3, 3, &[1.0, 0.0, 1.0, 0.0, 4.0, 4.0, 1.0, 4.0, 5.0]);
        let w = Whitening::of(&r);
        assert_eq!(w.matrix.shape(), (2, 3));
        assert!((&w.matrix * &r * w.matrix.transpose() - DMatrix::identity(2, 2)).norm() < 1e-10);
    }
}
