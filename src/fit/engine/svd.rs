//! Singular values of small matrices by one-sided Jacobi rotations.
//!
//! `A = U diag(s) Vᵀ` for `A` of shape `(n_rows, n_cols)` with `n_rows ≥ n_cols`. Pairs of columns are rotated until all
//! are orthogonal; the rotations make `V`, the lengths of the columns are `s`, the columns over their lengths are `U`.
//!
//! One-sided Jacobi finds small singular values to high *relative* accuracy when the columns are well scaled, which
//! bidiagonalisation does not; rank and covariance hang on exactly those. Source: G. Golub and C. Van Loan, Matrix
//! Computations, 4th ed., section 8.6.3; J. Demmel and K. Veselić, SIAM J. Matrix Anal. Appl. 13 (1992).

use nalgebra::{DMatrix, DVector};

/// Sweeps after which rotations stop; quadratic convergence needs about ten.
const MAX_SWEEPS: usize = 60;

/// Cosine between two columns below which they count as orthogonal.
const ORTHOGONAL: f64 = 4.0 * f64::EPSILON;

/// Singular value decomposition, singular values descending.
#[derive(Clone, Debug)]
pub struct Svd {
    /// Left vectors, `(n_rows, n_cols)`; the column of a zero singular value is zero.
    pub u: DMatrix<f64>,
    /// Singular values, `(n_cols)`, descending.
    pub s: DVector<f64>,
    /// Right vectors, `(n_cols, n_cols)`.
    pub v: DMatrix<f64>,
}

/// Decomposes `a`, `(n_rows, n_cols)`; rows of zeros are added where `n_rows < n_cols`.
pub fn svd(a: &DMatrix<f64>) -> Svd {
    let n = a.ncols();
    let mut u = a.clone().resize_vertically(a.nrows().max(n), 0.0);
    let mut v = DMatrix::identity(n, n);
    for _ in 0..MAX_SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                rotated |= orthogonalise(&mut u, &mut v, p, q);
            }
        }
        if !rotated {
            break;
        }
    }
    sorted(&u, &v)
}

/// Rotates columns `p` and `q` of `u` until they are orthogonal; whether that was needed.
fn orthogonalise(u: &mut DMatrix<f64>, v: &mut DMatrix<f64>, p: usize, q: usize) -> bool {
    let (alpha, beta) = (u.column(p).norm_squared(), u.column(q).norm_squared());
    let gamma = u.column(p).dot(&u.column(q));
    if gamma == 0.0 || gamma.abs() <= ORTHOGONAL * (alpha.sqrt() * beta.sqrt()) {
        return false;
    }
    let zeta = (beta - alpha) / (2.0 * gamma);
    let t = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    rotate(u, p, q, c, c * t);
    rotate(v, p, q, c, c * t);
    true
}

fn rotate(a: &mut DMatrix<f64>, p: usize, q: usize, c: f64, s: f64) {
    for i in 0..a.nrows() {
        let (x, y) = (a[(i, p)], a[(i, q)]);
        a[(i, p)] = c * x - s * y;
        a[(i, q)] = s * x + c * y;
    }
}

fn sorted(u: &DMatrix<f64>, v: &DMatrix<f64>) -> Svd {
    let norms: Vec<f64> = u.column_iter().map(|column| column.norm()).collect();
    let mut order: Vec<usize> = (0..norms.len()).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let left = |j: usize| if norms[j] > 0.0 { u.column(j) / norms[j] } else { u.column(j).into_owned() };
    let u_columns: Vec<DVector<f64>> = order.iter().map(|&j| left(j)).collect();
    let v_columns: Vec<DVector<f64>> = order.iter().map(|&j| v.column(j).into_owned()).collect();
    if order.is_empty() {
        return Svd { u: u.clone(), s: DVector::zeros(0), v: v.clone() };
    }
    Svd {
        u: DMatrix::from_columns(&u_columns),
        s: DVector::from_iterator(order.len(), order.iter().map(|&j| norms[j])),
        v: DMatrix::from_columns(&v_columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding of a few dozen operations on numbers of size one.
    const ROUNDING: f64 = 1e-13;

    fn check(rows: usize, cols: usize, entries: &[f64]) -> Svd {
        let a = DMatrix::from_row_slice(rows, cols, entries);
        let d = svd(&a);
        let back = &d.u * DMatrix::from_diagonal(&d.s) * d.v.transpose();
        assert!((back.rows(0, rows) - &a).norm() <= ROUNDING * a.norm().max(1.0), "{back} is not {a}");
        assert!((d.v.transpose() * &d.v - DMatrix::identity(cols, cols)).norm() < ROUNDING);
        assert!(d.s.as_slice().windows(2).all(|w| w[0] >= w[1]));
        d
    }

    #[test]
    fn the_factors_multiply_back() {
        check(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
        check(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
        check(4, 4, &[4.0, 1.0, 0.0, 2.0, 1.0, 3.0, 7.0, 0.1, 0.0, 2.0, 1.0, 5.0, 9.0, 8.0, 2.0, 1.0]);
        check(1, 1, &[-3.0]);
    }

    #[test]
    fn a_dependent_column_has_singular_value_zero() {
        let d = check(3, 2, &[1.0, 2.0, 2.0, 4.0, 3.0, 6.0]);
        assert!(d.s[1] <= ROUNDING * d.s[0], "{}", d.s);
        let zero = check(3, 2, &[1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        assert_eq!(zero.s[1], 0.0);
    }

    #[test]
    fn a_small_singular_value_keeps_its_digits() {
        // [[1, 1], [0, e]] has singular values with product e and sum of squares 2 + e².
        let e = 1e-9;
        let d = check(2, 2, &[1.0, 1.0, 0.0, e]);
        assert!((d.s[0] * d.s[1] / e - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_columns_are_no_singular_values() {
        assert_eq!(svd(&DMatrix::zeros(3, 0)).s.len(), 0);
    }
}
