//! Half-widths at the confidences that the LQN tools write, from those of the solution.
//!
//! A half-width `h` at confidence `c` from `B` batches is `t(c, B - 1)` standard errors, so that the one at `c'` is
//! `h t(c', B - 1) / t(c, B - 1)`, with `t(c, n)` the two-sided quantile of Student's distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::solve::Solution;

/// Factors from the solution's half-widths to those written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Intervals {
    /// To 95 %.
    pub(super) to_95: f64,
    /// To 99 %.
    pub(super) to_99: f64,
}

impl Intervals {
    /// For the half-widths of `solution` at `confidence`; factors that cannot be known are not finite.
    pub(super) fn new(solution: &Solution, confidence: f64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a count of batches")]
        let freedom = solution.iterations as f64 - 1.0;
        let quantile = |c: f64| StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(0.5 + 0.5 * c));
        let factor = |to: f64| if to.to_bits() == confidence.to_bits() { 1.0 } else { quantile(to) / quantile(confidence) };
        Self { to_95: factor(0.95), to_99: factor(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_the_tables() {
        let solution = Solution { iterations: 11, ..Solution::default() };
        // Two-sided quantiles of Student's distribution with 10 degrees of freedom: 2.228 at 95 %, 3.169 at 99 %.
        let from_95 = Intervals::new(&solution, 0.95);
        assert!((from_95.to_95 - 1.0).abs() < 1e-12 && (from_95.to_99 - 3.169_27 / 2.228_14).abs() < 1e-5, "{from_95:?}");
        let from_99 = Intervals::new(&solution, 0.99);
        assert!((from_99.to_95 - 2.228_14 / 3.169_27).abs() < 1e-5 && (from_99.to_99 - 1.0).abs() < 1e-12, "{from_99:?}");
        let one = Intervals::new(&Solution { iterations: 1, ..Solution::default() }, 0.95);
        assert!((one.to_95 - 1.0).abs() < 1e-12 && one.to_99.is_nan());
    }
}
