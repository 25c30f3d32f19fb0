//! Likelihood and what structures are ranked by.
//!
//! With normal errors of covariance `σ² R`, `E = Σ eᵀ R⁻¹ e`, `n_obs` independent values:
//!
//! ```text
//! ln L = -½ (n_obs ln 2π + ln det R + n_obs ln σ² + E / σ²)      σ² = E / n_obs, or 1 where R is known or estimated itself
//! AIC  = 2 k - 2 ln L       AICc = AIC + 2 k (k + 1) / (n_obs - k - 1)       BIC = k ln n_obs - 2 ln L
//! ```
//!
//! `k` counts the model's parameters and those of the errors: one for `σ²`, or one a variance estimated from residuals. Lower
//! is better; differences mean something only between structures fitted to the same measured values with weights from the same source.
//! Source: K. Burnham and D. Anderson, Model Selection and Multimodel Inference, 2nd ed. (2002), sections 2.2 to 2.4.

use serde::{Deserialize, Serialize};

/// Likelihood and information criteria of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Information {
    /// `ln L`.
    pub log_likelihood: f64,
    /// `k`.
    pub n_parameters: usize,
    /// Akaike's criterion.
    pub aic: f64,
    /// Akaike's criterion for few measured values; absent where there are too few.
    pub aicc: Option<f64>,
    /// Schwarz' criterion.
    pub bic: f64,
}

/// What the errors have of parameters of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorParameters {
    /// None: `R` is known.
    None,
    /// `σ²`.
    Scale,
    /// So many variances estimated from residuals.
    Variances(usize),
}

impl Information {
    /// Of `n_obs` values with weighted sum of squares `sum_of_squares` and `ln det R` `log_determinant`. `None` where the
    /// likelihood has no bound, the residuals being zero.
    #[expect(clippy::cast_precision_loss, reason = "numbers of observations are far below 2^53")]
    pub fn of(sum_of_squares: f64, log_determinant: f64, n_obs: usize, n_params: usize, errors: ErrorParameters) -> Option<Self> {
        let n = n_obs as f64;
        let (variance, own) = match errors {
            ErrorParameters::None => (1.0, 0),
            ErrorParameters::Scale => (sum_of_squares / n, 1),
            ErrorParameters::Variances(count) => (1.0, count),
        };
        let log_likelihood = -0.5 * (n * (std::f64::consts::TAU.ln() + variance.ln()) + log_determinant + sum_of_squares / variance);
        let n_parameters = n_params + own;
        let k = n_parameters as f64;
        let aic = 2.0 * k - 2.0 * log_likelihood;
        (n_obs > 0 && variance > 0.0 && log_likelihood.is_finite()).then(|| Self {
            log_likelihood,
            n_parameters,
            aic,
            aicc: (n > k + 1.0).then(|| aic + 2.0 * k * (k + 1.0) / (n - k - 1.0)),
            bic: k * n.ln() - 2.0 * log_likelihood,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likelihood_of_independent_normal_values() {
        // Errors 1, -1, 2 with variance 2 each: Σ -½ (ln 4π + e²/2).
        let expected = -0.5 * (3.0 * (2.0 * std::f64::consts::TAU).ln() + 6.0 / 2.0);
        let known = Information::of(3.0, 3.0 * 2.0_f64.ln(), 3, 1, ErrorParameters::None).unwrap();
        assert!((known.log_likelihood - expected).abs() < 1e-12);
        // The scale at its best is that of E / n = 2.
        let scaled = Information::of(6.0, 0.0, 3, 1, ErrorParameters::Scale).unwrap();
        assert!((scaled.log_likelihood - expected).abs() < 1e-12);
        assert_eq!((known.n_parameters, scaled.n_parameters), (1, 2));
        assert_eq!((known.aicc.is_some(), scaled.aicc), (true, None));
    }

    #[test]
    fn a_perfect_fit_has_no_likelihood() {
        assert_eq!(Information::of(0.0, 0.0, 5, 2, ErrorParameters::Scale), None);
    }
}
