//! Losses that bound the pull of outliers.
//!
//! A fit minimises `Σ σ² ρ(u_i)`, `u_i = r_i / σ`, with `r` the weighted residuals and `σ` their scale. Every loss here is
//! a concave function of `u²`, so that minimising `Σ w_i r_i²` with `w_i = ψ(u_i) / u_i`, `ψ = ρ'/2`, over and over descends to
//! its minimum (iteratively reweighted least squares).
//!
//! | loss | `ρ(u)` | `ψ(u)` | `c` for 95 % efficiency at normal errors |
//! |---|---|---|---|
//! | squared | `u²` | `u` | |
//! | Huber | `u²`, beyond `c`: `2c\|u\| - c²` | `u` clipped at `±c` | 1.345 |
//! | soft-L1 | `2c² (√(1 + u²/c²) - 1)` | `u / √(1 + u²/c²)` | 1.287 |
//! | Cauchy | `c² ln(1 + u²/c²)` | `u / (1 + u²/c²)` | 2.385 |
//!
//! The covariance of the estimates is `κ (JᵀJ)⁻¹` with `κ = K² σ² (Σ ψ² / (n_obs - n)) / mean(ψ')²`,
//! `K = 1 + (n / n_obs) var(ψ') / mean(ψ')²`. Source: P. Huber and E. Ronchetti, Robust Statistics, 2nd ed. (2009), section
//! 7.6; P. Holland and R. Welsch, Commun. Statist. A6 (1977), for the constants; that of soft-L1 is computed here.

use serde::{Deserialize, Serialize};

/// Ratio of a normal standard deviation to its median absolute deviation.
const NORMAL_MEDIAN_RATIO: f64 = 1.482_602_218_505_602;

/// What is summed over the residuals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Loss {
    /// Their squares: least squares.
    #[default]
    Squared,
    /// Squares, beyond a threshold absolute values.
    Huber {
        /// Threshold in standard deviations, > 0; 1.345 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
    },
    /// A smooth passage from squares to absolute values.
    SoftL1 {
        /// Threshold in standard deviations, > 0; 1.287 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
    },
    /// Logarithms: large residuals count less the larger they are.
    Cauchy {
        /// Threshold in standard deviations, > 0; 2.385 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
    },
}

impl Loss {
    /// Whether this is least squares.
    pub fn is_squared(&self) -> bool {
        *self == Self::Squared
    }

    /// `c`, in standard deviations; infinite for squares.
    pub fn threshold(self) -> f64 {
        match self {
            Self::Squared => f64::INFINITY,
            Self::Huber { threshold } => threshold.unwrap_or(1.345),
            Self::SoftL1 { threshold } => threshold.unwrap_or(1.287),
            Self::Cauchy { threshold } => threshold.unwrap_or(2.385),
        }
    }

    /// `ψ(u) / u`, in (0, 1].
    pub fn weight(self, u: f64) -> f64 {
        let z = (u / self.threshold()).powi(2);
        match self {
            Self::Squared => 1.0,
            Self::Huber { .. } => 1.0 / z.sqrt().max(1.0),
            Self::SoftL1 { .. } => 1.0 / (1.0 + z).sqrt(),
            Self::Cauchy { .. } => 1.0 / (1.0 + z),
        }
    }

    /// `ψ'(u)`.
    pub fn slope(self, u: f64) -> f64 {
        let z = (u / self.threshold()).powi(2);
        match self {
            Self::Squared => 1.0,
            Self::Huber { .. } => f64::from(u8::from(z <= 1.0)),
            Self::SoftL1 { .. } => (1.0 + z).powf(-1.5),
            Self::Cauchy { .. } => (1.0 - z) / (1.0 + z).powi(2),
        }
    }

    /// `κ`, the factor of `(JᵀJ)⁻¹`, from standardised residuals `u` of scale `sigma` and `n_params` parameters; `None`
    /// without degrees of freedom, or where so many residuals are beyond the threshold that nothing is left to learn from.
    #[expect(clippy::cast_precision_loss, reason = "numbers of observations are far below 2^53")]
    pub fn covariance_factor(self, u: &[f64], sigma: f64, n_params: usize) -> Option<f64> {
        let dof = u.len().checked_sub(n_params).filter(|d| *d > 0)? as f64;
        let n = u.len() as f64;
        let squares: f64 = u.iter().map(|u| (self.weight(*u) * u).powi(2)).sum();
        let mean = u.iter().map(|u| self.slope(*u)).sum::<f64>() / n;
        let variance = u.iter().map(|u| (self.slope(*u) - mean).powi(2)).sum::<f64>() / n;
        let correction = 1.0 + n_params as f64 / n * variance / mean.powi(2);
        (mean > 0.0).then(|| correction.powi(2) * sigma.powi(2) * (squares / dof) / mean.powi(2))
    }
}

/// The standard deviation of normal numbers with the median absolute value of `values`; 0 of nothing.
pub fn median_deviation(values: impl Iterator<Item = f64>) -> f64 {
    let mut sizes: Vec<f64> = values.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.len() / 2;
    let median = match sizes.len() {
        0 => 0.0,
        n if n % 2 == 1 => sizes[middle],
        _ => 0.5 * (sizes[middle - 1] + sizes[middle]),
    };
    NORMAL_MEDIAN_RATIO * median
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [Loss; 4] =
        [Loss::Squared, Loss::Huber { threshold: None }, Loss::SoftL1 { threshold: None }, Loss::Cauchy { threshold: None }];

    #[test]
    fn small_residuals_count_in_full_and_large_ones_less() {
        for loss in LOSSES {
            assert!((loss.weight(1e-6) - 1.0).abs() < 1e-9);
            assert!((loss.slope(1e-6) - 1.0).abs() < 1e-9);
            assert_eq!(loss.weight(10.0) < 0.2, !loss.is_squared());
        }
    }

    #[test]
    fn slopes_are_those_of_the_influence() {
        for loss in LOSSES {
            for u in [0.3_f64, 1.0, 1.7, 4.0] {
                let psi = |u: f64| loss.weight(u) * u;
                let difference = (psi(u + 1e-6) - psi(u - 1e-6)) / 2e-6;
                assert!((difference - loss.slope(u)).abs() < 1e-8, "{loss:?} at {u}");
            }
        }
    }

    #[test]
    fn squares_have_the_mean_square_error_as_their_factor() {
        let u = [1.0, -2.0, 0.5, 0.25];
        let squares: f64 = u.iter().map(|u| u * u).sum();
        assert!((Loss::Squared.covariance_factor(&u, 1.0, 2).unwrap() - squares / 2.0).abs() < 1e-15);
        assert_eq!(Loss::Squared.covariance_factor(&u, 1.0, 4), None);
    }

    #[test]
    fn the_median_is_not_moved_by_one_outlier() {
        assert!((median_deviation([1.0, -1.0, 2.0, 0.5, 1e9].into_iter()) - NORMAL_MEDIAN_RATIO).abs() < 1e-12);
        assert_eq!(median_deviation(std::iter::empty()), 0.0);
    }
}
