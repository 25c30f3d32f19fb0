//! Covariance of estimates whose weights are not what the errors are: the sandwich, by trials.
//!
//! Least squares with weights `W` finds the parameters whatever the errors are, but `mse (JᵀJ)⁻¹` is their covariance only where `W` is the
//! errors' inverse covariance. Where measures of a trial have something in common that the weights leave out, as delays and throughput do, what the
//! trials scatter by tells how far off the estimates are:
//!
//! ```text
//! g_t = J_tᵀ (1 - H_tt)⁻¹ r_t        H_tt = J_t (JᵀJ)⁻¹ J_tᵀ
//! C = (JᵀJ)⁻¹ ((n_t - 1)/n_t Σ_t g_t g_tᵀ + σ² Jₚᵀ Jₚ) (JᵀJ)⁻¹
//! ```
//!
//! `(JᵀJ)⁻¹ g_t` is what leaving trial `t` out moves the estimates by, to first order: `C` is the jackknife over trials. Intervals take Student's t
//! with `n_t - n` degrees of freedom. With `J D⁻¹ = U Σ Vᵀ` and `M_t = U_tᵀ U_t`, the rows of `U` of trial `t`,
//!
//! ```text
//! Σ Vᵀ D C D V Σ = (n_t - 1)/n_t Σ_t ĝ_t ĝ_tᵀ + σ² UₚᵀUₚ = G        ĝ_t = (1 - M_t)⁻¹ U_tᵀ r_t
//! K = σ G^(-1/2) Σ Vᵀ D                                               σ² (KᵀK)⁻¹ = C
//! ```
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `J`, `J_t`, `Jₚ` | weighted Jacobian, its rows of trial `t`, those of priors | `(n_rows, n)` |
//! | `r_t` | weighted residuals of trial `t` | `(n_rows_t)` |
//! | `n_t` | trials | scalar |
//! | `σ²` | variance of a weighted residual | scalar |
//! | `K` | Jacobian of a fit with covariance `C` | `(n, n)` |
//!
//! Source: R. Bell and D. McCaffrey, Survey Methodology 28 (2002), the jackknife estimator (CR3); K. Liang and S. Zeger, Biometrika 73 (1986).

use std::ops::Range;

use nalgebra::{DMatrix, DVector};

use super::unit::{UnitCoordinates, on_eigenvalues};

/// What of a direction a trial leaves to the others, below which it determines that direction alone.
const LEFT_TO_OTHERS: f64 = 1e-6;

/// Variance of a direction, relative to the largest, below which scatter is rounding.
const NO_SCATTER: f64 = 1e-12;

/// A trial without which a direction of the parameters is not determined, so that nothing tells how far off it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Its place among the trials.
    pub place: usize,
}

/// `K`, `(rank, n)`, from the weighted Jacobian `jacobian`, `(n_rows, n)`, the weighted residuals of its rows, the rows of each trial, of which
/// there are two or more (others are priors'), and the variance `scale` of a weighted residual, above 0. Directions with singular values below
/// `rank_tolerance` of the largest are not in it.
///
/// # Errors
/// [`Alone`].
pub fn sandwich(
    jacobian: &DMatrix<f64>,
    residuals: &DVector<f64>,
    trials: &[Range<usize>],
    scale: f64,
    rank_tolerance: f64,
) -> Result<DMatrix<f64>, Alone> {
    let unit = UnitCoordinates::of(jacobian, rank_tolerance);
    let (rank, from_unit) = (unit.rank(), unit.from);
    if rank == 0 {
        return Ok(from_unit);
    }
    let unit = jacobian * unit.to;
    let mut scatter = DMatrix::zeros(rank, rank);
    let mut of_others = unit.clone();
    for (place, rows) in trials.iter().enumerate() {
        let own = unit.rows(rows.start, rows.len());
        let left = (DMatrix::identity(rank, rank) - own.transpose() * own).symmetric_eigen();
        if left.eigenvalues.iter().any(|l| *l < LEFT_TO_OTHERS) {
            return Err(Alone { place });
        }
        let pulled = left.eigenvectors.transpose() * own.transpose() * residuals.rows(rows.start, rows.len());
        let moved = &left.eigenvectors * pulled.component_div(&left.eigenvalues);
        scatter += &moved * moved.transpose();
        of_others.rows_mut(rows.start, rows.len()).fill(0.0);
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n_trials = trials.len() as f64;
    let scatter = (scatter * ((n_trials - 1.0) / n_trials) + of_others.transpose() * &of_others * scale).symmetric_eigen();
    let most = scatter.eigenvalues.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(from_unit);
    }
    let root = scatter.eigenvalues.map(|l| (scale / l.max(NO_SCATTER * most)).sqrt());
    Ok(on_eigenvalues(&scatter.eigenvectors, &root) * from_unit)
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::fit::inference::distribution::t_two_sided;

    const N_TRIALS: usize = 10;
    const N_MEASURES: usize = 4;

    fn rows() -> Vec<Range<usize>> {
        (0..N_TRIALS).map(|t| N_MEASURES * t..N_MEASURES * (t + 1)).collect()
    }

    fn real(n: usize) -> f64 {
        f64::from(u32::try_from(n).unwrap())
    }

    /// Two parameters, of which one acts on all measures of a trial alike and the other on their differences.
    fn jacobian() -> DMatrix<f64> {
        DMatrix::from_fn(N_TRIALS * N_MEASURES, 2, |row, j| {
            let (t, k) = (real(row / N_MEASURES), real(row % N_MEASURES));
            if j == 0 { 1.0 + 0.2 * t } else { (k - 1.5) * (1.0 - 0.1 * t) }
        })
    }

    /// Shares of 2,000 data sets in which intervals by the sandwich and by `(JᵀJ)⁻¹` hold the parameters, where all measures of a trial have an
    /// error in common.
    #[test]
    fn intervals_cover_where_measures_of_a_trial_err_together() {
        let mut rng = StdRng::seed_from_u64(11);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let j = jacobian();
        let plain = (j.transpose() * &j).try_inverse().unwrap();
        let (mut by_trials, mut by_weights) = ([0; 2], [0; 2]);
        let n = 2000;
        for _ in 0..n {
            let mut errors = DVector::zeros(j.nrows());
            for rows in rows() {
                let common = normal();
                rows.for_each(|row| errors[row] = common + 0.5 * normal());
            }
            let moved = &plain * j.transpose() * &errors;
            let residuals = errors - &j * &moved;
            let scale = residuals.norm_squared() / real(j.nrows() - 2);
            let k = sandwich(&j, &residuals, &rows(), scale, 1e-9).unwrap();
            let covariance = (k.transpose() * k).try_inverse().unwrap() * scale;
            for i in 0..2 {
                let holds = |variance: f64, dof: usize| moved[i].abs() < t_two_sided(0.95, dof).unwrap() * variance.sqrt();
                by_trials[i] += u32::from(holds(covariance[(i, i)], N_TRIALS - 2));
                by_weights[i] += u32::from(holds(scale * plain[(i, i)], j.nrows() - 2));
            }
        }
        let shares = |held: [u32; 2]| held.map(|h| f64::from(h) / f64::from(n));
        assert!(shares(by_trials).iter().all(|s| (0.93..0.975).contains(s)), "{:?}", shares(by_trials));
        let [common, difference] = shares(by_weights);
        assert!(common < 0.75 && difference > 0.99, "{common} {difference}");
    }

    /// What it says is what leaving trials out one by one does, exactly where the model is linear.
    #[test]
    fn it_is_the_jackknife_over_trials() {
        let j = jacobian();
        let errors = DVector::from_fn(j.nrows(), |row, _| (7.3 * real(row)).sin());
        let solved = |keep: &dyn Fn(usize) -> bool| {
            let kept: Vec<usize> = (0..j.nrows()).filter(|&row| keep(row / N_MEASURES)).collect();
            let (j, e) = (j.select_rows(&kept), errors.select_rows(&kept));
            (j.transpose() * &j).try_inverse().unwrap() * j.transpose() * e
        };
        let all = solved(&|_| true);
        let mut expected = DMatrix::zeros(2, 2);
        for out in 0..N_TRIALS {
            let moved = solved(&|t| t != out) - &all;
            expected += &moved * moved.transpose() * ((real(N_TRIALS) - 1.0) / real(N_TRIALS));
        }
        let residuals = &errors - &j * &all;
        let k = sandwich(&j, &residuals, &rows(), 0.3, 1e-9).unwrap();
        let found = (k.transpose() * k).try_inverse().unwrap() * 0.3;
        assert!((&found - &expected).norm() < 1e-10 * expected.norm(), "{found} {expected}");
    }

    #[test]
    fn of_what_nothing_depends_on_nothing_is_seen() {
        let found = sandwich(&DMatrix::zeros(40, 2), &DVector::from_element(40, 0.1), &rows(), 1.0, 1e-9).unwrap();
        assert_eq!(found.shape(), (0, 2));
    }

    #[test]
    fn a_trial_that_determines_a_parameter_alone_is_named() {
        let mut j = jacobian();
        (0..j.nrows()).filter(|row| row / N_MEASURES != 3).for_each(|row| j[(row, 1)] = 0.0);
        let residuals = DVector::from_element(j.nrows(), 0.1);
        assert_eq!(sandwich(&j, &residuals, &rows(), 1.0, 1e-9), Err(Alone { place: 3 }));
    }
}
