//! Coordinates in which what a Jacobian tells is one.
//!
//! With `J D⁻¹ = U Σ Vᵀ`, columns of length one by `D`, and `T = D⁻¹ V Σ⁻¹` over the directions that are seen, `z = T⁻¹ x = Σ Vᵀ D x` has
//! `Tᵀ Jᵀ J T = 1`.

use nalgebra::{DMatrix, DVector};

use crate::fit::engine::svd::svd;

/// The coordinates of a Jacobian, `(n_rows, n)`, of which `rank` directions are seen.
pub(crate) struct UnitCoordinates {
    /// `T`, `(n, rank)`.
    pub(crate) to: DMatrix<f64>,
    /// `Σ Vᵀ D`, `(rank, n)`.
    pub(crate) from: DMatrix<f64>,
    /// `D`, `(n)`; 1 for a column of zeros.
    pub(crate) lengths: DVector<f64>,
}

impl UnitCoordinates {
    /// Those of `jacobian`; directions with singular values at most `rank_tolerance` of the largest are not seen.
    pub(crate) fn of(jacobian: &DMatrix<f64>, rank_tolerance: f64) -> Self {
        let n = jacobian.ncols();
        let lengths = jacobian.column_iter().map(|c| Some(c.norm()).filter(|l| *l > 0.0).unwrap_or(1.0));
        let lengths = DVector::from_iterator(n, lengths);
        let found = svd(&(jacobian * DMatrix::from_diagonal(&lengths.map(f64::recip))));
        let largest = found.s.iter().copied().fold(0.0, f64::max);
        let seen: Vec<usize> = (0..found.s.len()).filter(|&i| found.s[i] > rank_tolerance * largest).collect();
        let to = DMatrix::from_fn(n, seen.len(), |j, i| found.v[(j, seen[i])] / (lengths[j] * found.s[seen[i]]));
        let from = DMatrix::from_fn(seen.len(), n, |i, j| found.s[seen[i]] * found.v[(j, seen[i])] * lengths[j]);
        Self { to, from, lengths }
    }

    /// Number of directions that are seen.
    pub(crate) fn rank(&self) -> usize {
        self.to.ncols()
    }
}

/// `V diag(values) Vᵀ` of the eigenvectors `V`.
pub(crate) fn on_eigenvalues(vectors: &DMatrix<f64>, values: &DVector<f64>) -> DMatrix<f64> {
    vectors * DMatrix::from_diagonal(values) * vectors.transpose()
}
