//! Quantiles of Student's t and of F, to the precision of their tails.
//!
//! Input a probability and degrees of freedom, output the quantile. Each is the root of the upper tail found
//! within a bracket, because closed approximations lose digits where degrees of freedom are few. Tails are regularised
//! incomplete beta functions, from `statrs`.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// Most steps; halving alone takes a bracket to the spacing of floating-point numbers in fewer.
const MOST_STEPS: usize = 120;

/// Quantile of Student's t: the `q` with `P(|T| ≤ q) = confidence`, for `confidence` in (0, 1) and `dof` ≥ 1.
/// `None` outside those ranges.
pub fn t_two_sided(confidence: f64, dof: usize) -> Option<f64> {
    t_two_sided_at(confidence, as_f64(dof))
}

/// The same for degrees of freedom that need not be whole, > 0.
pub fn t_two_sided_at(confidence: f64, dof: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, dof).ok()?;
    in_unit_interval(confidence).then(|| upper_root(|x| t.sf(x), (1.0 - confidence) / 2.0))
}

/// Quantile of F: the `q` with `P(F ≤ q) = confidence`, for `confidence` in (0, 1) and both degrees of freedom ≥ 1.
/// `None` outside those ranges.
pub fn f_quantile(confidence: f64, numerator_dof: usize, denominator_dof: usize) -> Option<f64> {
    f_quantile_at(confidence, numerator_dof, as_f64(denominator_dof))
}

/// The same for denominator degrees of freedom that need not be whole, > 0.
pub fn f_quantile_at(confidence: f64, numerator_dof: usize, denominator_dof: f64) -> Option<f64> {
    let f = FisherSnedecor::new(as_f64(numerator_dof), denominator_dof).ok()?;
    in_unit_interval(confidence).then(|| upper_root(|x| f.sf(x), 1.0 - confidence))
}

/// `P(F > x)` for `x` ≥ 0. `None` when a degree of freedom is 0 or `x` is negative or not finite.
pub fn f_upper_tail(x: f64, numerator_dof: usize, denominator_dof: usize) -> Option<f64> {
    f_upper_tail_at(x, numerator_dof, as_f64(denominator_dof))
}

/// The same for denominator degrees of freedom that need not be whole, > 0.
pub fn f_upper_tail_at(x: f64, numerator_dof: usize, denominator_dof: f64) -> Option<f64> {
    let f = FisherSnedecor::new(as_f64(numerator_dof), denominator_dof).ok()?;
    (x >= 0.0 && x.is_finite()).then(|| f.sf(x))
}

/// Quantile of the normal distribution: the `q` with `P(|Z| ≤ q) = confidence`. `None` for a `confidence` outside (0, 1).
pub fn normal_two_sided(confidence: f64) -> Option<f64> {
    let normal = Normal::new(0.0, 1.0).ok()?;
    in_unit_interval(confidence).then(|| upper_root(|x| normal.sf(x), (1.0 - confidence) / 2.0))
}

/// Quantile of chi-square: the `q` with `P(X ≤ q) = confidence`, for `dof` ≥ 1. `None` outside the ranges.
pub fn chi_square_quantile(confidence: f64, dof: usize) -> Option<f64> {
    let chi_square = ChiSquared::new(as_f64(dof)).ok()?;
    in_unit_interval(confidence).then(|| upper_root(|x| chi_square.sf(x), 1.0 - confidence))
}

/// `P(|Z| > |x|)` of the normal distribution. `None` when `x` is not finite.
pub fn normal_two_sided_tail(x: f64) -> Option<f64> {
    let normal = Normal::new(0.0, 1.0).ok()?;
    x.is_finite().then(|| (2.0 * normal.sf(x.abs())).min(1.0))
}

/// `P(|T| > |x|)` of Student's t. `None` when `dof` is 0 or `x` is not finite.
pub fn t_two_sided_tail(x: f64, dof: usize) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, as_f64(dof)).ok()?;
    x.is_finite().then(|| (2.0 * t.sf(x.abs())).min(1.0))
}

/// `P(X > x)` of chi-square for `x` ≥ 0. `None` when `dof` is 0 or `x` is negative or not finite.
pub fn chi_square_upper_tail(x: f64, dof: usize) -> Option<f64> {
    let chi_square = ChiSquared::new(as_f64(dof)).ok()?;
    (x >= 0.0 && x.is_finite()).then(|| chi_square.sf(x))
}

fn in_unit_interval(p: f64) -> bool {
    p > 0.0 && p < 1.0
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "numbers of observations are far below 2^53")]
pub(crate) fn as_f64(count: usize) -> f64 {
    count as f64
}

/// The `x` ≥ 0 at which the falling function `tail` equals `probability`: Chandrupatla 1997, inverse quadratic interpolation where
/// three points allow it and bisection where not.
fn upper_root(tail: impl Fn(f64) -> f64, probability: f64) -> f64 {
    let excess = |x: f64| tail(x) - probability;
    let (mut behind, mut at) = ((0.0, excess(0.0)), (1.0, excess(1.0)));
    while at.1 > 0.0 && at.0 < 1e300 {
        (behind, at) = (at, (2.0 * at.0, excess(2.0 * at.0)));
    }
    let mut fraction = 0.5;
    for _ in 0..MOST_STEPS {
        let x = at.0 + fraction * (behind.0 - at.0);
        let here = (x, excess(x));
        let third = if (here.1 > 0.0) == (at.1 > 0.0) { at } else { std::mem::replace(&mut behind, at) };
        at = here;
        let best = if at.1.abs() < behind.1.abs() { at } else { behind };
        let least = f64::EPSILON * best.0.abs() / (behind.0 - at.0).abs();
        if best.1 == 0.0 || least >= 0.5 || !least.is_finite() {
            return best.0;
        }
        fraction = interpolated(behind, at, third).unwrap_or(0.5).clamp(least, 1.0 - least);
    }
    0.5 * (behind.0 + at.0)
}

/// Where from `at` to `behind` the inverse quadratic through both and a `third` point has its root, if it can be trusted there.
fn interpolated(behind: (f64, f64), at: (f64, f64), third: (f64, f64)) -> Option<f64> {
    let (a, b, c) = (at, behind, third);
    let x = (a.0 - b.0) / (c.0 - b.0);
    let y = (a.1 - b.1) / (c.1 - b.1);
    let trusted = y * y < x && (1.0 - y).powi(2) < 1.0 - x;
    let t = a.1 / (b.1 - a.1) * c.1 / (b.1 - c.1) + (c.0 - a.0) / (b.0 - a.0) * a.1 / (c.1 - a.1) * b.1 / (c.1 - b.1);
    (trusted && t.is_finite()).then_some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of scipy 1.17.1, `scipy.stats.t.ppf` and `scipy.stats.f`.
    const SCIPY_DIGITS: f64 = 1e-10;

    fn check(found: Option<f64>, expected: f64) {
        let found = found.expect("a quantile");
        assert!((found / expected - 1.0).abs() < SCIPY_DIGITS, "{found} is not {expected}");
    }

    #[test]
    fn student_quantiles() {
        check(t_two_sided(0.95, 1), 12.706204736174694);
        check(t_two_sided(0.6, 2), 1.0606601717798214);
        check(t_two_sided(0.95, 36), 2.0280940009804502);
        check(t_two_sided(0.95, 397), 1.9659574279668237);
        check(t_two_sided(0.9999, 3), 28.000130010948972);
    }

    #[test]
    fn fisher_quantiles_and_tails() {
        check(f_quantile(0.95, 1, 36), 4.113165276812891);
        check(f_quantile(0.95, 1, 35), 4.1213382003448995);
        check(f_quantile(0.99, 3, 7), 8.451285053079983);
        check(f_upper_tail(2.5, 3, 7), 0.14350945627893932);
    }

    #[test]
    fn normal_and_chi_square() {
        check(normal_two_sided(0.95), 1.959963984540054);
        check(chi_square_quantile(0.95, 3), 7.814727903251179);
        check(chi_square_upper_tail(7.814727903251179, 3), 0.05);
        check(t_two_sided_tail(2.0280940009804502, 36), 0.05);
        check(normal_two_sided_tail(-1.959963984540054), 0.05);
    }

    #[test]
    fn nothing_outside_the_ranges() {
        assert_eq!(t_two_sided(0.95, 0), None);
        assert_eq!(t_two_sided(1.0, 5), None);
        assert_eq!(f_quantile(0.95, 0, 5), None);
        assert_eq!(f_upper_tail(-1.0, 1, 5), None);
    }
}
