//! What the innovations say: of each trial, of jumps, of the filter itself.
//!
//! An innovation `v_t = z_t - h(x_t|t-1, u_t)`, `(m_t)`, has the covariance `S_t = H P_t|t-1 Hᵀ + R_t` if model and noise are right:
//!
//! | question | statistic | if nothing is the matter |
//! |---|---|---|
//! | Does trial `t` fit what came before? | `v_tᵀ S_t⁻¹ v_t` (normalised innovation squared, NIS) | chi-square of `m_t` |
//! | Do the last `w` trials? | its sum over a running window | chi-square of the sum of `m_t` |
//! | Does the noise have the right size? | its sum over all trials | chi-square, between both quantiles |
//! | Do the errors follow one another? | G. Ljung and G. Box's `Q = N (N + 2) Σ ρ_k² / (N - k)` of each measure | chi-square of the lags |
//! | Has a measure moved for good? | E. Page's sums `C⁺ = max(0, C⁺ + e - ½)`, `C⁻` likewise | below `h` |
//! | Has a parameter jumped? | `rᵀ N⁺ r` of the smoother ([`super::linear`]) | chi-square, the largest of all trials by Bonferroni |
//!
//! `e` are the innovations of one measure by their own standard deviations. `h` is chosen so that a false alarm in any of the sums over all trials
//! has at most the asked probability, by D. Siegmund's mean run length `(exp b - b - 1) / ½`, `b = h + 1.166`. Sources: Y. Bar-Shalom, X. Li and T.
//! Kirubarajan (2001), section 5.4; G. Ljung and G. Box, Biometrika 65 (1978); E. Page, Biometrika 41 (1954); D. Siegmund, Sequential Analysis (1985), section 2.4.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use crate::fit::inference::distribution::{as_f64, chi_square_quantile, chi_square_upper_tail};

/// Drift that Page's sums forgive in each trial, in standard deviations: half the shift of one that they are best at.
const ALLOWANCE: f64 = 0.5;

/// Siegmund's correction for the overshoot.
const OVERSHOOT: f64 = 1.166;

/// Fewest innovations of a measure that are tested for whiteness.
const FEWEST_FOR_WHITENESS: usize = 8;

/// One trial against what came before.
#[derive(Clone, Debug, PartialEq)]
pub struct Innovation {
    /// Normalised innovation squared.
    pub squared: f64,
    /// Its degrees of freedom.
    pub dof: usize,
    /// Standardised innovation of each measure that has one row of its own: position of the measure, value.
    pub standardised: Vec<(usize, f64)>,
    /// Values that were predicted, by measure.
    pub predicted: Vec<f64>,
}

impl Innovation {
    /// Of errors of unit variance `errors`, `(m)`, with `design`, `(m, n)`, before which the state had `covariance`, `(n, n)`.
    pub(super) fn of(
        errors: &DVector<f64>,
        design: &DMatrix<f64>,
        covariance: &DMatrix<f64>,
        measures: Vec<Option<usize>>,
        predicted: Vec<f64>,
    ) -> Option<Self> {
        let m = errors.len();
        let total = design * covariance * design.transpose() + DMatrix::identity(m, m);
        let solved = total.clone().cholesky()?.solve(errors);
        let one = |(row, measure): (usize, &Option<usize>)| Some(((*measure)?, errors[row] / total[(row, row)].sqrt()));
        let standardised = measures.iter().enumerate().filter_map(one).collect();
        Some(Self { squared: errors.dot(&solved), dof: m, standardised, predicted })
    }
}

/// Whether the filter's innovations are as large as it says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consistency {
    /// Mean of the normalised innovations squared by their degrees of freedom; 1 is expected.
    pub mean: f64,
    /// Degrees of freedom of all.
    pub dof: usize,
    /// Lower end of where the mean lies with the asked probability if the noise is right.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Whether it lies there.
    pub consistent: bool,
}

/// The innovations of all trials against their size; `None` without any.
pub fn consistency(innovations: &[(f64, usize)], confidence: f64) -> Option<Consistency> {
    let sum: f64 = innovations.iter().map(|(squared, _)| squared).sum();
    let dof: usize = innovations.iter().map(|(_, dof)| dof).sum();
    let n = as_f64(dof);
    let lower = chi_square_quantile(0.5 * (1.0 - confidence), dof)? / n;
    let upper = chi_square_quantile(0.5 * (1.0 + confidence), dof)? / n;
    let mean = sum / n;
    Some(Consistency { mean, dof, lower, upper, consistent: lower <= mean && mean <= upper })
}

/// A test of one series of innovations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whiteness {
    /// Ljung and Box's statistic.
    pub statistic: f64,
    /// Lags, its degrees of freedom.
    pub lags: usize,
    /// Probability of one as large if the errors do not follow one another.
    pub p_value: f64,
}

/// Ljung and Box's test of `series`; `None` where it is too short or constant.
pub fn whiteness(series: &[f64]) -> Option<Whiteness> {
    let n = series.len();
    if n < FEWEST_FOR_WHITENESS {
        return None;
    }
    let lags = (n / 5).clamp(1, 10);
    let mean = series.iter().sum::<f64>() / as_f64(n);
    let squares: f64 = series.iter().map(|e| (e - mean).powi(2)).sum();
    let correlation = |k: usize| (k..n).map(|t| (series[t] - mean) * (series[t - k] - mean)).sum::<f64>() / squares;
    let statistic = as_f64(n) * (as_f64(n) + 2.0) * (1..=lags).map(|k| correlation(k).powi(2) / as_f64(n - k)).sum::<f64>();
    Some(Whiteness { statistic, lags, p_value: chi_square_upper_tail(statistic, lags)? })
}

/// Where Page's sums of a series crossed their limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm {
    /// Position at which the sum began to rise.
    pub onset: usize,
    /// Position at which it crossed the limit.
    pub at: usize,
    /// Whether the values rose.
    pub rose: bool,
    /// The limit.
    pub limit: f64,
}

/// The limit of Page's sums for a false alarm with probability `alpha` in any of `n_series` series of `n` values.
pub fn cusum_limit(n: usize, n_series: usize, alpha: f64) -> f64 {
    let run_length = 2.0 * as_f64(n) * as_f64(n_series.max(1)) / alpha;
    let goal = 2.0 * ALLOWANCE * ALLOWANCE * run_length;
    // exp b - b - 1 = goal, by fixed point.
    let mut b = (goal + 1.0).ln();
    for _ in 0..50 {
        b = (goal + 1.0 + b).ln();
    }
    b / (2.0 * ALLOWANCE) - OVERSHOOT
}

/// The first crossing of `limit` by Page's sums of `series`.
pub fn cusum(series: &[f64], limit: f64) -> Option<Alarm> {
    let mut sums = [(0.0, 0_usize); 2];
    for (at, e) in series.iter().enumerate() {
        for (side, sign) in [(0, 1.0), (1, -1.0)] {
            let (sum, onset) = sums[side];
            let onset = if sum == 0.0 { at } else { onset };
            let next = (sum + sign * e - ALLOWANCE).max(0.0);
            sums[side] = (next, onset);
            if next > limit {
                return Some(Alarm { onset, at, rose: sign > 0.0, limit });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_gives_the_run_length_that_it_is_chosen_by() {
        // Known: h = 4 at k = 0.5 has a one-sided mean run length of 336 (Siegmund's formula: 335.3).
        let h = 4.0_f64;
        let b = h + OVERSHOOT;
        let run_length = (b.exp() - b - 1.0) / 0.5;
        assert!((run_length - 336.0).abs() < 10.0, "{run_length}");
        let limit = cusum_limit(100, 1, 200.0 / run_length);
        assert!((limit - h).abs() < 1e-9, "{limit}");
    }

    #[test]
    fn a_shift_is_found_with_its_onset() {
        let series: Vec<f64> = (0..40).map(|t| if t < 20 { if t % 2 == 0 { 0.4 } else { -0.4 } } else { -2.0 }).collect();
        let alarm = cusum(&series, 5.0).unwrap();
        assert!(!alarm.rose && (19..=20).contains(&alarm.onset) && alarm.at == 23, "{alarm:?}");
        assert_eq!(cusum(&series[..20], 5.0), None);
    }

    #[test]
    fn alternating_errors_are_not_white() {
        let alternating: Vec<f64> = (0..30).map(|t| if t % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(whiteness(&alternating).unwrap().p_value < 1e-6);
        assert_eq!(whiteness(&alternating[..5]), None);
    }

    #[test]
    fn innovations_of_the_right_size_are_consistent() {
        let right = consistency(&[(1.8, 2), (2.5, 2), (1.2, 2), (2.9, 2)], 0.95).unwrap();
        assert!(right.consistent && right.dof == 8, "{right:?}");
        assert!(!consistency(&[(18.0, 2), (25.0, 2)], 0.95).unwrap().consistent);
        assert_eq!(consistency(&[], 0.95), None);
    }
}
