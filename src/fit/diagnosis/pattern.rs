//! Patterns in the residuals of one measure: runs of signs, and spread that grows with the value.
//!
//! **Runs.** Of `n₊` positive and `n₋` negative residuals in the order of the operating points, the number of runs of one
//! sign has mean `μ = 1 + 2 n₊ n₋ / n` and variance `(μ - 1)(μ - 2) / (n - 1)`; few runs are a misfit that bends, many an
//! alternation. The p-value is exact. Source: A. Wald and J. Wolfowitz, Ann. Math. Statist. 11 (1940).
//!
//! **Spread.** The squares of the residuals are regressed on the predicted values: `n R²` is chi-square with one degree of freedom
//! where the variance does not depend on them. Source: T. Breusch and A. Pagan, Econometrica 47 (1979), in the form of R.
//! Koenker, J. Econometrics 17 (1981), which does not ask that errors be normal.

use serde::{Deserialize, Serialize};

use super::TestResult;
use crate::fit::inference::distribution::chi_square_upper_tail;

/// Fewest values of either test.
const FEWEST: usize = 5;

/// Number of runs of one sign against chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunsTest {
    /// Runs found.
    pub runs: usize,
    /// Runs expected of independent errors.
    pub expected: f64,
    /// Probability of a number of runs as far out, on both sides.
    pub p_value: f64,
}

/// The runs of `residuals` in their order; `None` for fewer than five that are not zero, or all of one sign.
pub fn runs_test(residuals: &[f64]) -> Option<RunsTest> {
    let signs: Vec<bool> = residuals.iter().filter(|r| **r != 0.0).map(|r| *r > 0.0).collect();
    let positive = signs.iter().filter(|s| **s).count();
    let negative = signs.len() - positive;
    if signs.len() < FEWEST || positive == 0 || negative == 0 {
        return None;
    }
    let runs = 1 + signs.windows(2).filter(|w| w[0] != w[1]).count();
    let size = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let expected = 1.0 + 2.0 * size(positive) * size(negative) / size(signs.len());
    let below: f64 = (2..=runs).map(|r| probability(r, positive, negative)).sum();
    let above: f64 = (runs..=signs.len()).map(|r| probability(r, positive, negative)).sum();
    Some(RunsTest { runs, expected, p_value: (2.0 * below.min(above)).min(1.0) })
}

/// Probability of `runs` runs of `a` and `b` signs in random order.
fn probability(runs: usize, a: usize, b: usize) -> f64 {
    let half = runs / 2;
    let log = match runs % 2 {
        0 => 2.0_f64.ln() + log_choose(a - 1, half - 1) + log_choose(b - 1, half - 1),
        _ => {
            let one = log_choose(a - 1, half) + log_choose(b - 1, half - 1);
            let other = log_choose(a - 1, half - 1) + log_choose(b - 1, half);
            one.max(other) + (one.min(other) - one.max(other)).exp().ln_1p()
        }
    };
    if log.is_finite() { (log - log_choose(a + b, a)).exp() } else { 0.0 }
}

/// `ln (n over k)`; `-∞` for `k > n`.
fn log_choose(n: usize, k: usize) -> f64 {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    if k > n { f64::NEG_INFINITY } else { statrs::function::factorial::ln_binomial(count(n), count(k)) }
}

/// Whether the size of `residuals` hangs on the `predicted` values; `None` for fewer than five, or predictions that are all one.
pub fn spread_test(residuals: &[f64], predicted: &[f64]) -> Option<TestResult> {
    let n = residuals.len();
    let size = f64::from(u32::try_from(n).ok()?);
    let squares: Vec<f64> = residuals.iter().map(|r| r * r).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / size;
    let (x_mean, y_mean) = (mean(predicted), mean(&squares));
    let product = |a: &dyn Fn(usize) -> f64, b: &dyn Fn(usize) -> f64| (0..n).map(|i| a(i) * b(i)).sum::<f64>();
    let (x, y) = (|i: usize| predicted[i] - x_mean, |i: usize| squares[i] - y_mean);
    let (xx, xy, yy) = (product(&x, &x), product(&x, &y), product(&y, &y));
    let usable = n >= FEWEST && xx > 1e-20 * x_mean * x_mean && yy > 0.0;
    usable.then_some(())?;
    let statistic = size * xy * xy / (xx * yy);
    Some(TestResult { statistic, p_value: chi_square_upper_tail(statistic, 1)?, n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_against_all_orders() {
        // Of the 20 orders of three and three signs, 2 have two runs and 2 have six.
        let two = runs_test(&[1.0, 2.0, 1.0, -1.0, -1.0, -3.0]).unwrap();
        assert_eq!((two.runs, two.expected), (2, 4.0));
        assert!((two.p_value - 0.2).abs() < 1e-12, "{two:?}");
        let six = runs_test(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap();
        assert!((six.p_value - 0.2).abs() < 1e-12, "{six:?}");
        assert_eq!(runs_test(&[1.0; 8]), None);
    }

    #[test]
    fn all_numbers_of_runs_have_probability_one() {
        let total: f64 = (2..=11).map(|r| probability(r, 5, 6)).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }

    #[test]
    fn spread_that_grows_is_found() {
        let predicted: Vec<f64> = (1..=30).map(f64::from).collect();
        let wave = |i: usize| [1.3, -0.9, -0.4][i % 3];
        let growing: Vec<f64> = (0..30).map(|i| wave(i) * predicted[i]).collect();
        let even: Vec<f64> = (0..30).map(wave).collect();
        assert!(spread_test(&growing, &predicted).unwrap().p_value < 0.01);
        assert!(spread_test(&even, &predicted).unwrap().p_value > 0.5);
        assert_eq!(spread_test(&even, &[2.0; 30]), None);
    }
}
