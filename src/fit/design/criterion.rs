//! What a design is judged by, on information matrices whose rows and columns are scaled.
//!
//! ```text
//! D:  v = ln det S / n            A:  v = -ln Σ w_k (S⁻¹)_kk            c:  v = -ln cᵀ S⁻¹ c
//! ```
//!
//! More is better; `exp(-(v - v₀) / 2)` is the factor by which a typical half-width shrinks.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// What is to be small.
#[derive(Clone, Debug)]
pub(super) enum Objective {
    /// The volume of the ellipsoid.
    Determinant,
    /// A weighted sum of variances; weights `(n)`.
    Variances(DVector<f64>),
    /// The variance of a linear combination; its coefficients `(n)`.
    Combination(DVector<f64>),
}

impl Objective {
    /// The value at information `s`, `(n, n)`; negative infinity where it is singular.
    pub(super) fn value(&self, s: &DMatrix<f64>) -> f64 {
        let Some(factor) = Cholesky::new(s.clone()) else { return f64::NEG_INFINITY };
        match self {
            Self::Determinant => 2.0 * factor.l_dirty().diagonal().iter().map(|d| d.ln()).sum::<f64>() / s.nrows().max(1) as f64,
            _ => -self.variance(&factor).ln(),
        }
    }

    fn variance(&self, factor: &Cholesky<f64, Dyn>) -> f64 {
        match self {
            Self::Determinant => f64::NAN,
            Self::Variances(weights) => factor.inverse().diagonal().dot(weights),
            Self::Combination(c) => factor.solve(c).dot(c),
        }
    }

    /// By how much, to first order, one more trial with each of `information` changes `v` (D) or lowers the variance relative to what it
    /// is (A, c); at least 0.
    pub(super) fn slopes(&self, s: &DMatrix<f64>, information: &[DMatrix<f64>]) -> Option<Vec<f64>> {
        let factor = Cholesky::new(s.clone())?;
        let inverse = factor.inverse();
        let direction = match self {
            Self::Determinant => inverse / s.nrows().max(1) as f64,
            Self::Variances(weights) => &inverse * DMatrix::from_diagonal(weights) * &inverse / self.variance(&factor),
            Self::Combination(c) => {
                let solved = factor.solve(c);
                &solved * solved.transpose() / self.variance(&factor)
            }
        };
        Some(information.iter().map(|m| direction.dot(m).max(0.0)).collect())
    }

    /// Share of the best possible that is reached at least, when no set of trials gains more than `excess` to first order.
    pub(super) fn efficiency(&self, excess: f64) -> f64 {
        match self {
            Self::Determinant => (-excess.max(0.0)).exp(),
            _ => (1.0 - excess.max(0.0)).clamp(0.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_known_matrix() {
        // S⁻¹ = [[2, -1], [-1, 2]] / 3, det S = 3.
        let s = DMatrix::from_row_slice(2, 2, &[2.0, 1.0, 1.0, 2.0]);
        assert!((Objective::Determinant.value(&s) - 3.0_f64.ln() / 2.0).abs() < 1e-14);
        let a = Objective::Variances(DVector::from_row_slice(&[1.0, 2.0]));
        assert!((a.value(&s) + 2.0_f64.ln()).abs() < 1e-14);
        let c = Objective::Combination(DVector::from_row_slice(&[1.0, 1.0]));
        assert!((c.value(&s) + (2.0_f64 / 3.0).ln()).abs() < 1e-14);
    }

    #[test]
    fn slopes_are_derivatives() {
        let s = DMatrix::from_row_slice(2, 2, &[2.0, 1.0, 1.0, 2.0]);
        let more = DMatrix::from_row_slice(2, 2, &[1.0, 0.5, 0.5, 3.0]);
        let step = 1e-6;
        for objective in [
            Objective::Determinant,
            Objective::Variances(DVector::from_row_slice(&[1.0, 2.0])),
            Objective::Combination(DVector::from_row_slice(&[1.0, -0.5])),
        ] {
            let found = objective.slopes(&s, std::slice::from_ref(&more)).unwrap()[0];
            let expected = (objective.value(&(&s + &more * step)) - objective.value(&(&s - &more * step))) / (2.0 * step);
            assert!((found / expected - 1.0).abs() < 1e-6, "{objective:?}: {found} {expected}");
        }
    }
}
