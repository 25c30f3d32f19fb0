//! Are the errors what the weights say?
//!
//! Under right weights the weighted residuals `u_t`, `(m)`, of trial `t` are independent with one variance. With
//! `S = Σ u_t u_tᵀ / T` over the `T` trials in which everything was measured, and `T' = T - n/m`, the parameters' share
//! taken off:
//!
//! ```text
//! sphericity:     -(T' - (2m² + m + 2) / (6m)) ln (det S / (tr S / m)^m)   ~ χ²(m(m+1)/2 - 1)
//! independence:   -(T' - (2m + 5) / 6) ln det C                             ~ χ²(m(m-1)/2)        C the correlation of S
//! ```
//!
//! The second is for weights that are themselves residual variances, which make all variances one. A small p-value says that
//! measures of one trial are correlated, or some are more exact than others, in a way the weights ignore: intervals
//! then do not cover as often as they say. Source: J. Mauchly, Ann. Math. Statist. 11 (1940); M. Bartlett, J. Royal Statist.
//! Soc. B 16 (1954); T. Anderson, Multivariate Statistical Analysis, 3rd ed., sections 9.2 and 10.7.

use nalgebra::DMatrix;

use super::TestResult;
use crate::fit::inference::distribution::chi_square_upper_tail;

/// Variance of a direction, relative to the largest, that is taken as none.
const NO_VARIANCE: f64 = 1e-12;

/// What the weights claim of the variances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// That they are all one.
    EqualVariances,
    /// Nothing: they were estimated from the residuals.
    Independence,
}

/// The test of weighted residuals `rows`, `(T, m)`, of a fit with `n_params` parameters; `None` for fewer than two measures or
/// too few trials.
pub fn error_covariance_test(rows: &DMatrix<f64>, n_params: usize, claim: Claim) -> Option<TestResult> {
    let (n_trials, m) = rows.shape();
    if m < 2 || n_trials <= m + 1 {
        return None;
    }
    let size = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let (width, trials) = (size(m), size(n_trials) - size(n_params) / size(m));
    let s = rows.transpose() * rows / size(n_trials);
    let (log_ratio, correction, dof) = match claim {
        Claim::EqualVariances => {
            let mean = s.trace() / width;
            (log_determinant(&(s / mean))?, (2.0 * width * width + width + 2.0) / (6.0 * width), m * (m + 1) / 2 - 1)
        }
        Claim::Independence => {
            let c = DMatrix::from_fn(m, m, |i, j| s[(i, j)] / (s[(i, i)] * s[(j, j)]).sqrt());
            (log_determinant(&c)?, (2.0 * width + 5.0) / 6.0, m * (m - 1) / 2)
        }
    };
    let statistic = (-(trials - correction) * log_ratio).max(0.0);
    (trials > correction).then_some(())?;
    Some(TestResult { statistic, p_value: chi_square_upper_tail(statistic, dof)?, n: n_trials })
}

/// `ln det`, with directions of no variance taken at the smallest that counts; `None` where the matrix is not finite.
fn log_determinant(matrix: &DMatrix<f64>) -> Option<f64> {
    if !matrix.iter().all(|v| v.is_finite()) {
        return None;
    }
    let values = matrix.symmetric_eigenvalues();
    let floor = NO_VARIANCE * values.max();
    (floor > 0.0).then(|| values.iter().map(|v| v.max(floor).ln()).sum())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    fn p_values(mix: &DMatrix<f64>, claim: Claim) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        (0..400)
            .map(|_| {
                let white = DMatrix::from_fn(12, 3, |_, _| draw());
                error_covariance_test(&(white * mix), 0, claim).unwrap().p_value
            })
            .collect()
    }

    fn rejected(p_values: &[f64], level: f64) -> usize {
        p_values.iter().filter(|p| **p < level).count()
    }

    #[test]
    fn right_weights_are_rejected_as_often_as_the_level_says() {
        for claim in [Claim::EqualVariances, Claim::Independence] {
            let found = rejected(&p_values(&DMatrix::identity(3, 3), claim), 0.05);
            // 400 draws at 5 %: 20 expected, standard deviation 4.4.
            assert!((7..=34).contains(&found), "{claim:?}: {found}");
        }
    }

    #[test]
    fn correlation_and_unequal_variances_are_seen() {
        let correlated = DMatrix::from_row_slice(3, 3, &[1.0, 0.9, 0.0, 0.0, 0.44, 0.0, 0.0, 0.0, 1.0]);
        let unequal = DMatrix::from_row_slice(3, 3, &[1.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 1.0]);
        assert!(rejected(&p_values(&correlated, Claim::EqualVariances), 0.01) > 300);
        assert!(rejected(&p_values(&correlated, Claim::Independence), 0.01) > 300);
        assert!(rejected(&p_values(&unequal, Claim::EqualVariances), 0.01) > 300);
        assert!(rejected(&p_values(&unequal, Claim::Independence), 0.05) < 40);
    }
}
