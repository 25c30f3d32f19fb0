//! Non-negative least squares: min ‖A x − b‖² over x ≥ 0, by the active-set method.
//!
//! Input: rows of A, shape `(n_rows, n_columns)`, and b, shape `(n_rows,)`; output: x. Source: C. Lawson, R. Hanson, *Solving Least
//! Squares Problems*, 1974, chapter 23.
//!
//! Columns are in the passive set P (x free) or the active set (x = 0). While a column outside of P has a positive gradient
//! w = Aᵀ(b − A x), the one with the largest enters P; the unconstrained solution z over P is found, and as long as an
//! element of z is not positive, x goes towards z up to the first element that becomes 0, which leaves P. The unconstrained
//! problems are solved by SVD, so that columns that depend on each other (throughputs that always rise together) share the
//! load with the least norm instead of failing.

use nalgebra::{DMatrix, DVector};

/// A solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Nnls {
    /// x, shape `(n_columns,)`, all ≥ 0.
    pub solution: Vec<f64>,
    /// ‖A x − b‖.
    pub residual_norm: f64,
    /// Whether the conditions of a minimum were met.
    pub converged: bool,
    /// Rank of the columns in use.
    pub rank: usize,
}

/// Solves min ‖A x − b‖², x ≥ 0; rows shorter than the first are filled with zeros.
pub fn nnls(rows: &[Vec<f64>], b: &[f64]) -> Nnls {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let n_rows = rows.len().min(b.len());
    let a = DMatrix::from_fn(n_rows, n_columns, |row, column| rows[row].get(column).copied().unwrap_or(0.0));
    let b = DVector::from_fn(n_rows, |row, _| b[row]);
    // Columns of unit length: throughputs differ by orders of magnitude.
    let scale: Vec<f64> = (0..n_columns).map(|column| a.column(column).norm()).map(|norm| if norm > 0.0 { norm } else { 1.0 }).collect();
    let a = DMatrix::from_fn(n_rows, n_columns, |row, column| a[(row, column)] / scale[column]);
    let mut x = DVector::zeros(n_columns);
    let mut passive = vec![false; n_columns];
    let tolerance = 1e-12 * b.norm().max(f64::MIN_POSITIVE);
    let (mut converged, mut rank) = (n_columns == 0, 0);
    for _ in 0..3 * n_columns.max(1) {
        let gradient = a.transpose() * (&b - &a * &x);
        let best = (0..n_columns).filter(|column| !passive[*column] && gradient[*column] > tolerance);
        let Some(entering) = best.max_by(|i, j| gradient[*i].total_cmp(&gradient[*j])) else {
            converged = true;
            break;
        };
        passive[entering] = true;
        rank = solve_passive(&a, &b, &mut x, &mut passive);
        // What enters and cannot become positive would enter for ever.
        if !passive[entering] && x[entering] <= 0.0 && passive.iter().all(|p| !p) {
            break;
        }
    }
    let residual_norm = (&a * &x - &b).norm();
    let solution = (0..n_columns).map(|column| x[column] / scale[column]).collect();
    Nnls { solution, residual_norm, converged, rank }
}

/// The inner loop: moves `x` to the solution over the passive columns, dropping those that would become negative.
fn solve_passive(a: &DMatrix<f64>, b: &DVector<f64>, x: &mut DVector<f64>, passive: &mut [bool]) -> usize {
    for _ in 0..=passive.len() {
        let columns: Vec<usize> = (0..passive.len()).filter(|column| passive[*column]).collect();
        if columns.is_empty() {
            return 0;
        }
        let svd = a.select_columns(columns.iter()).svd(true, true);
        let cutoff = 1e-10 * svd.singular_values.max();
        let rank = svd.rank(cutoff);
        let Ok(z) = svd.solve(b, cutoff) else { return 0 };
        if z.iter().all(|value| *value > 0.0) {
            x.fill(0.0);
            columns.iter().zip(z.iter()).for_each(|(column, value)| x[*column] = *value);
            return rank;
        }
        let step = |(column, value): (&usize, &f64)| if *value <= 0.0 { x[*column] / (x[*column] - value) } else { 1.0 };
        let alpha = columns.iter().zip(z.iter()).map(step).fold(1.0, |least: f64, step| if step.is_nan() { 0.0 } else { least.min(step) });
        for (column, value) in columns.iter().zip(z.iter()) {
            x[*column] += alpha * (value - x[*column]);
            if *value <= 0.0 && x[*column] <= 1e-14 {
                x[*column] = 0.0;
                passive[*column] = false;
            }
        }
    }
    0
}
