//! Are the errors normal? The test of S. Shapiro and M. Wilk.
//!
//! For ordered values `x_1 ≤ … ≤ x_n`: `W = (Σ a_i x_i)² / Σ (x_i - x̄)²`, near 1 for normal ones. Coefficients `a` from normal
//! scores `m_i = Φ⁻¹((i - 3/8) / (n + 1/4))`, the two largest corrected by polynomials in `1/√n`; `ln(1 - W)` is close to
//! normal with mean and deviation that are polynomials in `ln n` (or `n` below 12). Source: P. Royston, Applied Statistics 44
//! (1995), algorithm AS R94.

use statrs::distribution::{ContinuousCDF, Normal};

use super::TestResult;

/// Fewest values of a test.
const FEWEST: usize = 3;

/// Most values for which the approximation was made.
const MOST: usize = 5000;

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// The test of `values`; `None` for fewer than 3 or more than 5000, or for values that are all one.
pub fn shapiro_wilk(values: &[f64]) -> Option<TestResult> {
    let n = values.len();
    let normal = Normal::new(0.0, 1.0).ok()?;
    if !(FEWEST..=MOST).contains(&n) {
        return None;
    }
    let mut x = values.to_vec();
    x.sort_by(f64::total_cmp);
    let size = f64::from(u32::try_from(n).ok()?);
    let mean = x.iter().sum::<f64>() / size;
    let spread: f64 = x.iter().map(|v| (v - mean).powi(2)).sum();
    let range = x[n - 1] - x[0];
    if !(spread.is_finite() && range > 1e-14 * x[0].abs().max(x[n - 1].abs())) {
        return None;
    }
    let a = coefficients(n, size, &normal);
    let statistic = (a.iter().zip(&x).map(|(a, v)| a * v).sum::<f64>().powi(2) / spread).min(1.0);
    let p_value = p_value(statistic, n, size, &normal)?;
    Some(TestResult { statistic, p_value, n })
}

fn coefficients(n: usize, size: f64, normal: &Normal) -> Vec<f64> {
    if n == 3 {
        return vec![-0.5_f64.sqrt(), 0.0, 0.5_f64.sqrt()];
    }
    let scores: Vec<f64> = (1_u32..).take(n).map(|i| normal.inverse_cdf((f64::from(i) - 0.375) / (size + 0.25))).collect();
    let squares: f64 = scores.iter().map(|m| m * m).sum();
    let u = size.sqrt().recip();
    let last = polynomial(&[scores[n - 1] / squares.sqrt(), 0.221157, -0.147981, -2.071190, 4.434685, -2.706056], u);
    let mut a = vec![0.0; n];
    let (first_inner, phi) = if n > 5 {
        let second = polynomial(&[scores[n - 2] / squares.sqrt(), 0.042981, -0.293762, -1.752461, 5.682633, -3.582633], u);
        (a[n - 2], a[1]) = (second, -second);
        let outer = scores[n - 1].powi(2) + scores[n - 2].powi(2);
        (2, (squares - 2.0 * outer) / (1.0 - 2.0 * last.powi(2) - 2.0 * second.powi(2)))
    } else {
        (1, (squares - 2.0 * scores[n - 1].powi(2)) / (1.0 - 2.0 * last.powi(2)))
    };
    (a[n - 1], a[0]) = (last, -last);
    for i in first_inner..n - first_inner {
        a[i] = scores[i] / phi.sqrt();
    }
    a
}

fn p_value(w: f64, n: usize, size: f64, normal: &Normal) -> Option<f64> {
    if n == 3 {
        let exact = 6.0 / std::f64::consts::PI * (w.sqrt().asin() - 0.75_f64.sqrt().asin());
        return Some(exact.clamp(0.0, 1.0));
    }
    let less = (1.0 - w).max(f64::MIN_POSITIVE).ln();
    let (y, mean, deviation) = if n <= 11 {
        let gamma = polynomial(&[-2.273, 0.459], size);
        if less >= gamma {
            return Some(0.0);
        }
        let mean = polynomial(&[0.5440, -0.39978, 0.025054, -6.714e-4], size);
        (-(gamma - less).ln(), mean, polynomial(&[1.3822, -0.77857, 0.062767, -0.0020322], size).exp())
    } else {
        let x = size.ln();
        let mean = polynomial(&[-1.5861, -0.31082, -0.083751, 0.0038915], x);
        (less, mean, polynomial(&[-0.4803, -0.082676, 0.0030302], x).exp())
    };
    Some(normal.sf((y - mean) / deviation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits of the figures of scipy 1.17.1, `scipy.stats.shapiro`.
    const DIGITS: f64 = 1e-5;

    fn check(values: &[f64], statistic: f64, p_value: f64) {
        let found = shapiro_wilk(values).unwrap();
        assert!((found.statistic - statistic).abs() < DIGITS, "{found:?}");
        assert!((found.p_value - p_value).abs() < DIGITS, "{found:?}");
    }

    #[test]
    fn agrees_with_scipy() {
        check(&[1.0, 2.0, 4.0], 0.964_285_714, 0.636_886_845);
        check(&[2.0, 1.0, 5.0, 3.0], 0.971_373_665, 0.849_970_819);
        check(&[148.0, 154.0, 158.0, 160.0, 161.0, 162.0, 166.0, 170.0, 182.0, 195.0, 236.0], 0.788_814_695, 0.006_703_814);
        let values = [0.1, 0.5, -1.2, 0.3, 2.2, -0.4, 1.1, -0.8, 0.05, -2.5, 0.9, 0.2, -0.1, 1.6, -1.4];
        check(&values, 0.986_079_563, 0.995_204_409);
    }

    #[test]
    fn what_cannot_be_tested_is_not() {
        assert_eq!(shapiro_wilk(&[1.0, 2.0]), None);
        assert_eq!(shapiro_wilk(&[3.0; 10]), None);
        assert_eq!(shapiro_wilk(&[1.0, f64::NAN, 2.0]), None);
    }
}
