//! Which measured values and trials pull the fit.
//!
//! With weighted residuals `r`, Jacobian `J` of the free parameters, hat matrix `H = J (JᵀJ)⁺ Jᵀ`, leverage `h_i = H_ii`, mean
//! square error `s²`, `n` parameters and `d` degrees of freedom:
//!
//! ```text
//! standardised   r_i / (s √(1 - h_i))
//! studentised    t_i = r_i / (s_(i) √(1 - h_i)),   s_(i)² = (d s² - r_i² / (1 - h_i)) / (d - 1): without value i;   ~ t(d - 1)
//! Cook, value    D_i = r_i² h_i / (n s² (1 - h_i)²)
//! Cook, trial    D_t = r_tᵀ (I - H_tt)⁻¹ H_tt (I - H_tt)⁻¹ r_t / (n s²)
//! shift          Δx_t = (JᵀJ)⁺ J_tᵀ (I - H_tt)⁻¹ r_t: how far the estimates would move without trial t, in standard errors
//! ```
//!
//! Where the variance of each measure is estimated from its own residuals, `s_(i)²` is the mean of `r_k²/(1 - h_k)` over the other values that share that
//! variance, and `t_i` is judged with the share of the degrees of freedom that these have.
//! All are of the linear approximation at the minimum. A value is an outlier where `t_i` would be one in a hundred even as the
//! largest of all (Bonferroni). Source: R. Cook and S. Weisberg, Residuals and Influence in Regression (1982), chapters 2
//! and 3.

use nalgebra::{DMatrix, DVector};

use crate::fit::inference::{distribution::t_two_sided_tail, identify};

/// Largest leverage at which a residual still says something of its error.
const FULL_LEVERAGE: f64 = 1.0 - 1e-9;

/// Influence of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowInfluence {
    /// `h_i`, 0 to 1.
    pub leverage: f64,
    /// Standardised residual; absent at full leverage or without error.
    pub standardised: Option<f64>,
    /// Studentised residual; absent also with fewer than two degrees of freedom.
    pub studentised: Option<f64>,
    /// Probability of one as large, as the largest of all rows.
    pub outlier_p_value: Option<f64>,
    /// Cook's distance.
    pub cooks_distance: Option<f64>,
}

/// Influence of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialInfluence {
    /// Sum of the leverages of its rows: how many parameters it determines alone.
    pub leverage: f64,
    /// Cook's distance; absent where the fit hangs on the trial.
    pub cooks_distance: Option<f64>,
    /// Change of each free parameter without the trial, in standard errors.
    pub shifts: Option<Vec<f64>>,
}

/// Influence of rows and trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Influence {
    /// By row.
    pub rows: Vec<RowInfluence>,
    /// By trial, as the blocks came.
    pub trials: Vec<TrialInfluence>,
}

/// The influence of weighted `residuals`, `(n_rows)`, with `jacobian`, `(n_rows, n_free)`; rows beyond the last of `blocks` (those
/// of priors) count in the Jacobian and are not reported. `scale` is `s²`, `dof` is `d`; `groups` are the rows that share a variance
/// of their own, empty where all share one.
pub fn influence(
    residuals: &DVector<f64>,
    jacobian: &DMatrix<f64>,
    blocks: &[std::ops::Range<usize>],
    scale: Option<f64>,
    dof: usize,
    groups: &[usize],
    rank_tolerance: f64,
) -> Influence {
    let found = identify(jacobian, rank_tolerance);
    let inverse = &found.unscaled_covariance;
    let n_rows = blocks.last().map_or(0, |b| b.end);
    let scale = scale.filter(|s| *s > 0.0);
    let hat = |rows: &std::ops::Range<usize>| {
        let part = jacobian.rows(rows.start, rows.len());
        part * inverse * part.transpose()
    };
    let mut leverages = vec![0.0; n_rows];
    let mut trials = Vec::with_capacity(blocks.len());
    for block in blocks {
        let h = hat(block);
        block.clone().enumerate().for_each(|(k, row)| leverages[row] = h[(k, k)].clamp(0.0, 1.0));
        trials.push(trial(residuals, jacobian, block, &h, inverse, scale));
    }
    let n_params = f64::from(u32::try_from(found.rank.max(1)).unwrap_or(u32::MAX));
    let pool = |i: usize| {
        let mates: Vec<usize> = (0..n_rows).filter(|&k| groups.is_empty() || groups.get(k) == groups.get(i)).collect();
        if groups.is_empty() || mates.len() < 3 {
            return Pool { squares: scale.map_or(0.0, |s| s * count(dof)), n: dof, dof, n_rows };
        }
        // The group's share of the degrees of freedom, rounded down.
        let square = |k: usize| residuals[k] * residuals[k] / (1.0 - leverages[k]).max(1.0 - FULL_LEVERAGE);
        let seen: Vec<usize> = mates.into_iter().filter(|&k| leverages[k] < FULL_LEVERAGE).collect();
        let squares = seen.iter().map(|&k| square(k)).sum();
        Pool { squares, n: seen.len(), dof: seen.len() * dof / n_rows, n_rows }
    };
    let row = |i: usize| row(residuals[i], leverages[i], n_params, scale, &pool(i));
    Influence { rows: (0..n_rows).map(row).collect(), trials }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// What a row is studentised against.
struct Pool {
    /// Sum of squares, the row's own included.
    squares: f64,
    /// What it is to be divided by.
    n: usize,
    /// Its degrees of freedom.
    dof: usize,
    /// Rows among which it may be the largest.
    n_rows: usize,
}

fn row(residual: f64, leverage: f64, n_params: f64, scale: Option<f64>, pool: &Pool) -> RowInfluence {
    let rest = 1.0 - leverage;
    let usable = scale.filter(|_| leverage < FULL_LEVERAGE);
    let dof = pool.dof.checked_sub(1).filter(|d| *d > 0);
    let studentised = usable.and_then(|_| {
        let own = (residual * residual / rest).min(pool.squares * (1.0 - 1e-9));
        let without = (pool.squares - own) / count(pool.n.checked_sub(1).filter(|n| *n > 0)?);
        (without > 0.0).then(|| residual / (without * rest).sqrt())
    });
    RowInfluence {
        leverage,
        standardised: usable.map(|s| residual / (s * rest).sqrt()),
        studentised,
        outlier_p_value: studentised.and_then(|t| Some((t_two_sided_tail(t, dof?)? * count(pool.n_rows)).min(1.0))),
        cooks_distance: usable.map(|s| residual * residual * leverage / (n_params * s * rest * rest)),
    }
}

fn trial(
    residuals: &DVector<f64>,
    jacobian: &DMatrix<f64>,
    block: &std::ops::Range<usize>,
    hat: &DMatrix<f64>,
    inverse: &DMatrix<f64>,
    scale: Option<f64>,
) -> TrialInfluence {
    let leverage = hat.trace();
    let own = residuals.rows(block.start, block.len());
    let rest = DMatrix::identity(block.len(), block.len()) - hat;
    let hangs = rest.symmetric_eigenvalues().min() <= 1.0 - FULL_LEVERAGE;
    let solved = if hangs { None } else { rest.lu().solve(&own) };
    let (Some(solved), Some(scale)) = (solved, scale) else { return TrialInfluence { leverage, cooks_distance: None, shifts: None } };
    let n_params = f64::from(u32::try_from(inverse.nrows().max(1)).unwrap_or(u32::MAX));
    let change = inverse * jacobian.rows(block.start, block.len()).transpose() * &solved;
    let shifts = (0..change.len()).map(|k| change[k] / (scale * inverse[(k, k)]).sqrt());
    TrialInfluence {
        leverage,
        cooks_distance: Some((solved.transpose() * hat * &solved)[(0, 0)] / (n_params * scale)),
        shifts: Some(shifts.map(|s| if s.is_finite() { s } else { 0.0 }).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A straight line through five points, the last off by 3.
    fn line() -> (DVector<f64>, DMatrix<f64>) {
        let t = [0.0, 1.0, 2.0, 3.0, 4.0];
        let y = DVector::from_row_slice(&[1.0, 2.1, 2.9, 4.2, 8.0]);
        let j = DMatrix::from_fn(5, 2, |i, k| if k == 0 { 1.0 } else { t[i] });
        let inverse = (j.transpose() * &j).try_inverse().unwrap();
        (&y - &j * (inverse * j.transpose() * &y), j)
    }

    #[test]
    fn leaving_a_value_out_does_what_is_said() {
        let (r, j) = line();
        let blocks: Vec<_> = (0..5).map(|i| i..i + 1).collect();
        let scale = r.norm_squared() / 3.0;
        let found = influence(&r, &j, &blocks, Some(scale), 3, &[], 1e-10);
        assert!((found.rows.iter().map(|r| r.leverage).sum::<f64>() - 2.0).abs() < 1e-12);
        // The line through the first four points.
        let short = j.rows(0, 4).into_owned();
        let y = DVector::from_row_slice(&[1.0, 2.1, 2.9, 4.2, 8.0]);
        let solve = |j: &DMatrix<f64>, y: DVector<f64>| (j.transpose() * j).try_inverse().unwrap() * j.transpose() * y;
        let (all, without) = (solve(&j, y.clone()), solve(&short, y.rows(0, 4).into_owned()));
        let residual = y.rows(0, 4) - &short * &without;
        let inverse = (j.transpose() * &j).try_inverse().unwrap();
        for k in 0..2 {
            let shift = (all[k] - without[k]) / (scale * inverse[(k, k)]).sqrt();
            assert!((found.trials[4].shifts.as_ref().unwrap()[k] + (-shift)).abs() < 1e-9, "{shift} {:?}", found.trials[4].shifts);
        }
        let s_without = (residual.norm_squared() / 2.0).sqrt();
        let studentised = r[4] / (s_without * (1.0 - found.rows[4].leverage).sqrt());
        assert!((found.rows[4].studentised.unwrap() - studentised).abs() < 1e-9);
        assert!((found.rows[4].cooks_distance.unwrap() - found.trials[4].cooks_distance.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn a_value_that_the_fit_hangs_on_has_no_residual_to_judge() {
        let j = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        let found = influence(&DVector::from_row_slice(&[0.5, -0.5, 0.0]), &j, &[0..2, 2..3], Some(0.5), 1, &[], 1e-10);
        assert_eq!((found.rows[2].standardised, found.trials[1].cooks_distance), (None, None));
        assert!((found.rows[2].leverage - 1.0).abs() < 1e-12);
    }
}
