//! Joint confidence: the ellipsoid, and boxes that hold all parameters at once.
//!
//! With estimates `x̂`, covariance `P`, standard errors `s_k`, correlation `C = V diag(λ) Vᵀ`, `n` parameters and `d`
//! degrees of freedom:
//!
//! ```text
//! ellipsoid:   (x - x̂)ᵀ P⁻¹ (x - x̂) ≤ n F(1 - α; n, d)        half-axes √(n F λ_i) along V_i, in standard errors
//! Bonferroni:  x̂_k ± t(1 - α/(2n); d) s_k                      holds jointly with at least 1 - α, whatever the correlation
//! Šidák:       x̂_k ± t(1 - (1 - (1 - α)^(1/n)) / 2; d) s_k     the same for normal estimates, and narrower
//! Scheffé:     x̂_k ± √(n F(1 - α; n, d)) s_k                   the box around the ellipsoid
//! ```
//!
//! Where the error covariance is known, chi-square and the normal distribution stand for `n F` and `t`; where all of `P` is estimated from
//! `d` degrees of freedom, not its scale alone, Hotelling's `T² = n d / (d - n + 1) F(1 - α; n, d - n + 1)` for `n F`; where several variances
//! are estimated, each parameter has degrees of freedom of its own, and the ellipsoid `n F(1 - α; n, m) / λ` ([`super::variances`]). Source: G. Seber and C.
//! Wild, Nonlinear Regression (1989), section 5.1; M. Woodside, SIPEW 2008, section 3, calls the second "Bonferroni" but
//! multiplies levels, which is the third.

use indexmap::IndexMap;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::{
    distribution::{chi_square_quantile, f_quantile, f_quantile_at, normal_two_sided, t_two_sided, t_two_sided_at},
    variances::JointFreedom,
};
use crate::fit::problem::Transform;

/// What is known of the covariance of estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CovarianceKnown {
    /// All of it.
    Whole,
    /// All but a factor, which is estimated with these degrees of freedom.
    UpToScale(usize),
    /// Nothing: all of it is estimated, with these degrees of freedom.
    FromScatter(usize),
    /// It is made of variances that are estimated: degrees of freedom of all together; each estimate has its own.
    UpToVariances(JointFreedom),
}

impl CovarianceKnown {
    /// Half the width of an interval of `estimate` in standard errors.
    fn two_sided(self, confidence: f64, estimate: &Estimate) -> Option<f64> {
        match self {
            _ if let Some(dof) = estimate.degrees_of_freedom => t_two_sided_at(confidence, dof),
            Self::UpToVariances(JointFreedom { degrees_of_freedom: dof, .. }) => t_two_sided_at(confidence, dof),
            Self::Whole => normal_two_sided(confidence),
            Self::UpToScale(dof) | Self::FromScatter(dof) => t_two_sided(confidence, dof),
        }
    }

    /// Square of the radius of the ellipsoid of `n` estimates.
    fn radius_squared(self, confidence: f64, n: usize) -> Option<f64> {
        let real = |count: usize| u32::try_from(count).ok().map(f64::from);
        match self {
            Self::Whole => chi_square_quantile(confidence, n),
            Self::UpToScale(dof) => Some(real(n)? * f_quantile(confidence, n, dof)?),
            Self::UpToVariances(JointFreedom { degrees_of_freedom: dof, factor }) => {
                Some(real(n)? * f_quantile_at(confidence, n, dof)? / factor)
            }
            Self::FromScatter(dof) => {
                let left = (dof + 1).checked_sub(n).filter(|left| *left > 0)?;
                Some(real(n)? * real(dof)? / real(left)? * f_quantile(confidence, n, left)?)
            }
        }
    }
}

/// A pair of limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Lower limit.
    pub lower: f64,
    /// Upper limit.
    pub upper: f64,
}

impl Limits {
    /// `estimate ± q · std_error`, by a factor up and down for a parameter on the logarithmic scale.
    pub fn around(estimate: f64, std_error: f64, q: f64, transform: Transform) -> Self {
        match transform {
            Transform::Log if estimate > 0.0 => {
                let factor = (q * std_error / estimate).exp();
                Self { lower: estimate / factor, upper: estimate * factor }
            }
            _ => Self { lower: estimate - q * std_error, upper: estimate + q * std_error },
        }
    }
}

/// Joint confidence of several parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointRegion {
    /// Level at which each region holds all parameters.
    pub confidence: f64,
    /// The parameters: those with an interval of their own.
    pub parameters: Vec<String>,
    /// `n F(1 - α; n, d)`: points with a smaller `(x - x̂)ᵀ P⁻¹ (x - x̂)` lie inside the ellipsoid.
    pub radius_squared: f64,
    /// Axes of the ellipsoid, longest first.
    pub axes: Vec<EllipsoidAxis>,
    /// Bonferroni's box.
    pub bonferroni: IndexMap<String, Limits>,
    /// Šidák's box.
    pub sidak: IndexMap<String, Limits>,
    /// The box around the ellipsoid.
    pub scheffe: IndexMap<String, Limits>,
}

/// An axis of the joint ellipsoid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EllipsoidAxis {
    /// Half its length, in standard errors.
    pub half_length: f64,
    /// Its direction over the parameters, in standard errors, of length 1.
    pub direction: Vec<f64>,
}

/// An estimate with its standard error.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The parameter.
    pub name: String,
    /// The estimate.
    pub value: f64,
    /// Its standard error, > 0.
    pub std_error: f64,
    /// Scale of its interval.
    pub transform: Transform,
    /// Degrees of freedom of its standard error, where they are its own.
    pub degrees_of_freedom: Option<f64>,
}

/// The regions of `estimates` with `correlation`, `(n, n)`, at level `confidence`. `None` without estimates or enough degrees of freedom.
pub fn joint_region(estimates: &[Estimate], correlation: &DMatrix<f64>, known: CovarianceKnown, confidence: f64) -> Option<JointRegion> {
    let n = estimates.len();
    let count = u32::try_from(n).ok().filter(|n| *n > 0)?;
    let alpha = 1.0 - confidence;
    let radius_squared = known.radius_squared(confidence, n)?;
    let box_of = |quantile: &dyn Fn(&Estimate) -> Option<f64>| -> Option<IndexMap<String, Limits>> {
        estimates.iter().map(|e| Some((e.name.clone(), Limits::around(e.value, e.std_error, quantile(e)?, e.transform)))).collect()
    };
    let eigen = correlation.clone().symmetric_eigen();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    let axis = |i: usize| EllipsoidAxis {
        half_length: (radius_squared * eigen.eigenvalues[i].max(0.0)).sqrt(),
        direction: eigen.eigenvectors.column(i).iter().copied().collect(),
    };
    Some(JointRegion {
        confidence,
        parameters: estimates.iter().map(|e| e.name.clone()).collect(),
        radius_squared,
        axes: order.into_iter().map(axis).collect(),
        bonferroni: box_of(&|e| known.two_sided(1.0 - alpha / f64::from(count), e))?,
        sidak: box_of(&|e| known.two_sided(confidence.powf(1.0 / f64::from(count)), e))?,
        scheffe: box_of(&|_| Some(radius_squared.sqrt()))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates() -> Vec<Estimate> {
        let of =
            |n: &&str| Estimate { name: (*n).into(), value: 2.0, std_error: 0.5, transform: Transform::None, degrees_of_freedom: None };
        ["a", "b", "c"].iter().map(of).collect()
    }

    #[test]
    fn boxes_lie_inside_one_another() {
        let found = joint_region(&estimates(), &DMatrix::identity(3, 3), CovarianceKnown::UpToScale(37), 0.95).unwrap();
        let half = |limits: &IndexMap<String, Limits>| (limits["a"].upper - 2.0) / 0.5;
        // scipy 1.17.1: t.ppf(1 - .05/6, 37), t.ppf(1 - (1 - .95**(1/3))/2, 37), sqrt(3 f.ppf(.95, 3, 37)).
        assert!((half(&found.bonferroni) - 2.5077).abs() < 5e-4, "{}", half(&found.bonferroni));
        assert!((half(&found.sidak) - 2.5007).abs() < 5e-4, "{}", half(&found.sidak));
        assert!((half(&found.scheffe) - 2.9287).abs() < 5e-4, "{}", half(&found.scheffe));
    }

    #[test]
    fn of_a_covariance_from_scatter_the_ellipsoid_is_hotellings() {
        let of = |known: CovarianceKnown, n: usize| known.radius_squared(0.95, n);
        // 3 · 7 / 5 F(.95; 3, 5), F = 5.4095 as tabulated; of one parameter the square of t(.975; 7) = 2.3646.
        assert!((of(CovarianceKnown::FromScatter(7), 3).unwrap() - 4.2 * 5.4095).abs() < 1e-3);
        assert!((of(CovarianceKnown::FromScatter(7), 1).unwrap() - 2.3646 * 2.3646).abs() < 1e-3);
        assert_eq!(of(CovarianceKnown::FromScatter(2), 3), None);
    }

    #[test]
    fn axes_are_those_of_the_correlation() {
        let correlation = DMatrix::from_row_slice(2, 2, &[1.0, 0.8, 0.8, 1.0]);
        let found = joint_region(&estimates()[..2], &correlation, CovarianceKnown::Whole, 0.95).unwrap();
        let ratio = found.axes[0].half_length / found.axes[1].half_length;
        assert!((ratio - (1.8_f64 / 0.2).sqrt()).abs() < 1e-12);
        assert!((found.radius_squared - 5.991_464_547).abs() < 1e-8);
    }

    #[test]
    fn a_logarithmic_interval_is_a_factor() {
        let limits = Limits::around(4.0, 2.0, 2.0, Transform::Log);
        assert!((limits.lower * limits.upper - 16.0).abs() < 1e-12 && limits.lower > 0.0);
    }
}
