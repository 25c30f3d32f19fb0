//! Does the larger of two nested structures explain the data better than chance would?
//!
//! Structure 1 is structure 2 with `n2 - n1` parameters held; both are fitted to the same observations with the same
//! weights, with weighted sums of squares `E1 ≥ E2`:
//!
//! ```text
//! F = ((E1 - E2) / (n2 - n1)) / (E2 / d),     d = n_obs - n2   (one less with an intercept that is not counted)
//! ```
//!
//! Structure 2 is preferred when `F > F(1 - α; n2 - n1, d)`. Source: G. Seber and C. Wild, Nonlinear Regression (1989),
//! section 5.3. Where the errors are known, `E1 - E2` itself is of the chi-square distribution with `n2 - n1` degrees of freedom, and `E2` need not have
//! any left: `F` is then that over `n2 - n1`, as with `d` without end. Where the weights are of several variances that are estimated, from the residuals or by
//! replicates, `F` is `μ` times as much, with `m` in place of `d` ([`variances`](crate::fit::inference::variances)). The form printed in M. Woodside, SIPEW 2008, appendix, has the sign of the numerator and the
//! preference the other way round and mixes two denominators; it is not used.

use serde::{Deserialize, Serialize};

use crate::fit::inference::{
    distribution::{as_f64, chi_square_quantile, chi_square_upper_tail, f_quantile_at, f_upper_tail_at},
    variances::JointFreedom,
};

/// Relative excess of `E2` over `E1` that two imperfect minimisations may leave.
const MINIMISATION_TOLERANCE: f64 = 1e-8;

/// How degrees of freedom are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DofRule {
    /// `n_obs - n2`.
    #[default]
    Plain,
    /// `n_obs - n2 - 1`: an intercept was fitted that is not among the parameters.
    Intercept,
}

/// What the test compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExtraSumOfSquares {
    /// `E1`, weighted sum of squares of the smaller structure, ≥ 0.
    pub smaller_sum_of_squares: f64,
    /// `E2`, of the larger, ≥ 0.
    pub larger_sum_of_squares: f64,
    /// Observations, the same for both.
    pub n_obs: usize,
    /// `n1`.
    pub smaller_n_params: usize,
    /// `n2` > `n1`.
    pub larger_n_params: usize,
    /// How degrees of freedom are counted.
    pub dof_rule: DofRule,
    /// Whether the weights are of known errors, and not up to a scale.
    pub errors_known: bool,
    /// What weights by several variances that are estimated make of it, `m` and `μ`; `None` where they are given or there is but one.
    pub by_variances: Option<JointFreedom>,
    /// Level `1 - α` of the decision, in (0, 1).
    pub confidence: f64,
}

/// Which structure the data ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preferred {
    /// The smaller structure: what the larger one adds is not told from noise.
    Smaller,
    /// The larger structure.
    Larger,
}

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FTest {
    /// The statistic, ≥ 0.
    pub f: f64,
    /// `n2 - n1`.
    pub numerator_dof: usize,
    /// `n_obs - n2`, perhaps less one.
    pub denominator_dof: usize,
    /// The statistic above which the larger structure is preferred.
    pub critical_value: f64,
    /// Probability of a statistic at least as large if the smaller structure were true.
    pub p_value: f64,
    /// The decision.
    pub preferred: Preferred,
    /// Whether the errors are known: the test is chi-square's of `f × numerator_dof`, whatever `denominator_dof`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_known: bool,
    /// Where the weights are of several variances that are estimated, from the residuals or by replicates: the degrees of freedom in place of `denominator_dof`, and what `f`
    /// was multiplied by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_variances: Option<JointFreedom>,
}

/// Why there is no test.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FTestError {
    /// The larger structure has no more parameters.
    #[error("the larger structure must have more parameters: it has {larger}, the smaller {smaller}")]
    NotLarger {
        /// `n2`.
        larger: usize,
        /// `n1`.
        smaller: usize,
    },
    /// Nothing left to estimate the error from.
    #[error("{n_obs} measurements leave no degrees of freedom beside {n_params} parameters")]
    NoDegreesOfFreedom {
        /// Observations.
        n_obs: usize,
        /// `n2`, and the intercept where it counts.
        n_params: usize,
    },
    /// The larger structure fits worse: its minimum was not found.
    #[error(
        "the larger structure fits worse ({larger} against {smaller}), which a minimum cannot: start it from the smaller structure's solution"
    )]
    LargerFitsWorse {
        /// `E2`.
        larger: f64,
        /// `E1`.
        smaller: f64,
    },
    /// A sum of squares is negative or not finite, or zero for the larger structure.
    #[error("a sum of squares of {0} cannot be tested")]
    SumOfSquares(f64),
    /// The level is outside (0, 1).
    #[error("confidence {0} is not between 0 and 1")]
    Confidence(f64),
}

impl FTest {
    /// What [`FTest::f`] is, with its degrees of freedom.
    pub(in crate::fit) fn name(&self) -> String {
        match (self.errors_known, self.estimated_variances) {
            (true, _) => format!("chi-square({0})/{0}", self.numerator_dof),
            (false, Some(of)) => format!("F({}, {:.1})", self.numerator_dof, of.degrees_of_freedom),
            (false, None) => format!("F({}, {})", self.numerator_dof, self.denominator_dof),
        }
    }
}

impl ExtraSumOfSquares {
    /// The test.
    ///
    /// # Errors
    /// [`FTestError`] where there is none.
    pub fn test(&self) -> Result<FTest, FTestError> {
        let (numerator_dof, denominator_dof) = self.degrees_of_freedom()?;
        let (smaller, larger) = (self.smaller_sum_of_squares, self.larger_sum_of_squares);
        if let Some(&bad) = [smaller, larger].iter().find(|e| !e.is_finite() || **e < 0.0) {
            return Err(FTestError::SumOfSquares(bad));
        }
        if larger > smaller * (1.0 + MINIMISATION_TOLERANCE) {
            return Err(FTestError::LargerFitsWorse { larger, smaller });
        }
        if larger == 0.0 && !self.errors_known {
            return Err(FTestError::SumOfSquares(larger));
        }
        let fall = (smaller - larger).max(0.0);
        let scale = if self.errors_known { 1.0 } else { larger / as_f64(denominator_dof) };
        let by_variances = self.by_variances.filter(|_| !self.errors_known);
        let f = fall / as_f64(numerator_dof) / scale * by_variances.map_or(1.0, |of| of.factor);
        let (critical_value, p_value) = if self.errors_known {
            let critical = chi_square_quantile(self.confidence, numerator_dof).map(|q| q / as_f64(numerator_dof));
            (critical, chi_square_upper_tail(fall, numerator_dof))
        } else {
            let dof = by_variances.map_or(as_f64(denominator_dof), |of| of.degrees_of_freedom);
            (f_quantile_at(self.confidence, numerator_dof, dof), f_upper_tail_at(f, numerator_dof, dof))
        };
        let critical_value = critical_value.ok_or(FTestError::Confidence(self.confidence))?;
        let p_value = p_value.ok_or(FTestError::SumOfSquares(larger))?;
        let preferred = if f > critical_value { Preferred::Larger } else { Preferred::Smaller };
        Ok(FTest {
            f,
            numerator_dof,
            denominator_dof,
            critical_value,
            p_value,
            preferred,
            errors_known: self.errors_known,
            estimated_variances: by_variances,
        })
    }

    fn degrees_of_freedom(&self) -> Result<(usize, usize), FTestError> {
        let (smaller, larger) = (self.smaller_n_params, self.larger_n_params);
        if larger <= smaller {
            return Err(FTestError::NotLarger { larger, smaller });
        }
        let n_params = larger + usize::from(self.dof_rule == DofRule::Intercept);
        match self.n_obs.checked_sub(n_params) {
            Some(denominator) if self.errors_known => Ok((larger - smaller, denominator)),
            None | Some(0) => Err(FTestError::NoDegreesOfFreedom { n_obs: self.n_obs, n_params }),
            Some(denominator) => Ok((larger - smaller, denominator)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fourth_queue() -> ExtraSumOfSquares {
        ExtraSumOfSquares {
            smaller_sum_of_squares: 2.578,
            larger_sum_of_squares: 2.577,
            n_obs: 40,
            smaller_n_params: 3,
            larger_n_params: 4,
            dof_rule: DofRule::Plain,
            errors_known: false,
            by_variances: None,
            confidence: 0.95,
        }
    }

    #[test]
    fn the_fourth_queue_is_not_needed() {
        let found = fourth_queue().test().unwrap();
        assert!((found.f - 0.0140).abs() < 5e-5, "{}", found.f);
        assert!((found.p_value - 0.907).abs() < 5e-4, "{}", found.p_value);
        assert!((found.critical_value - 4.113).abs() < 5e-4, "{}", found.critical_value);
        assert_eq!((found.numerator_dof, found.denominator_dof, found.preferred), (1, 36, Preferred::Smaller));
    }

    #[test]
    fn an_intercept_takes_one_more_degree_of_freedom() {
        let found = ExtraSumOfSquares { dof_rule: DofRule::Intercept, ..fourth_queue() }.test().unwrap();
        assert_eq!(found.denominator_dof, 35);
        assert!((found.critical_value - 4.121).abs() < 5e-4, "{}", found.critical_value);
    }

    #[test]
    fn a_large_fall_prefers_the_larger_structure() {
        let found = ExtraSumOfSquares { smaller_sum_of_squares: 5.0, ..fourth_queue() }.test().unwrap();
        assert_eq!(found.preferred, Preferred::Larger);
        assert!((found.f - (5.0 - 2.577) / (2.577 / 36.0)).abs() < 1e-9);
    }

    /// A fall of 11.42 with one parameter more: p = .0007, with no value left over to estimate the errors from.
    #[test]
    fn known_errors_need_no_estimate() {
        let known =
            ExtraSumOfSquares { smaller_sum_of_squares: 11.42, larger_sum_of_squares: 0.0, n_obs: 4, errors_known: true, ..fourth_queue() };
        let found = known.test().unwrap();
        assert!((found.p_value - 7.266e-4).abs() < 1e-6, "{}", found.p_value);
        assert!((found.f - 11.42).abs() < 1e-12 && (found.critical_value - 3.8415).abs() < 1e-4, "{found:?}");
        assert_eq!((found.numerator_dof, found.denominator_dof, found.preferred), (1, 0, Preferred::Larger));
    }

    /// P(F(1, 5.5) > .8 · 5): scipy 1.17.1, `stats.f.sf` and `stats.f.isf`.
    #[test]
    fn estimated_variances_take_from_it() {
        let freedom = JointFreedom { degrees_of_freedom: 5.5, factor: 0.8 };
        let of = ExtraSumOfSquares { smaller_sum_of_squares: 2.577 * (1.0 + 5.0 / 36.0), by_variances: Some(freedom), ..fourth_queue() };
        let found = of.test().unwrap();
        assert!((found.f - 4.0).abs() < 1e-9 && (found.p_value - 0.096_754_390_2).abs() < 1e-7, "{found:?}");
        assert!((found.critical_value - 6.259_296_542).abs() < 1e-6, "{}", found.critical_value);
        assert_eq!((found.preferred, found.denominator_dof, found.name()), (Preferred::Smaller, 36, "F(1, 5.5)".into()));
        // Where the errors are known there are none.
        assert_eq!(ExtraSumOfSquares { errors_known: true, ..of }.test().unwrap().estimated_variances, None);
    }

    #[test]
    fn what_cannot_be_tested_is_refused() {
        let base = fourth_queue();
        let refused = |changed: ExtraSumOfSquares| changed.test().unwrap_err();
        assert!(matches!(refused(ExtraSumOfSquares { larger_sum_of_squares: 2.6, ..base }), FTestError::LargerFitsWorse { .. }));
        assert!(matches!(refused(ExtraSumOfSquares { smaller_n_params: 4, ..base }), FTestError::NotLarger { .. }));
        assert!(matches!(refused(ExtraSumOfSquares { n_obs: 4, ..base }), FTestError::NoDegreesOfFreedom { n_obs: 4, n_params: 4 }));
        assert!(matches!(refused(ExtraSumOfSquares { confidence: 1.0, ..base }), FTestError::Confidence(_)));
        assert!(matches!(refused(ExtraSumOfSquares { larger_sum_of_squares: 0.0, ..base }), FTestError::SumOfSquares(_)));
        assert!(matches!(refused(ExtraSumOfSquares { smaller_sum_of_squares: f64::NAN, ..base }), FTestError::SumOfSquares(_)));
    }

    #[test]
    fn equal_sums_give_no_evidence() {
        let found = ExtraSumOfSquares { smaller_sum_of_squares: 2.577, ..fourth_queue() }.test().unwrap();
        assert_eq!((found.f, found.p_value), (0.0, 1.0));
    }
}
