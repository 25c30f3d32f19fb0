//! The rest of a service that an arrival finds in progress, when its own thread was away for only a while.
//!
//! In a closed model the thread that arrives was away for a gap `z`, so it sees a service `b` in progress only if that
//! service began before the thread came back. For an exponential gap of mean `z` the expected rest, relative to that seen
//! by Poisson arrivals, is
//!
//! ```text
//! κ(z, b, c²) = 2 z (b - z (1 - B*(1/z))) / (b² (1 + c²)),   B*(x) = (1 + x b c²)^(-1/c²)
//! ```
//!
//! with `B*` the transform of a gamma law (`e^(-x b)` for `c² → 0`). `κ → 1` for long gaps; for short ones the rest tends to
//! the whole of a fresh service. It is used relative to its value for the mean exponential service, so that product-form
//! networks are left as they are.

use crate::model::Scalar;

/// Beyond this ratio of gap to service, the first two terms of the series are exact to double precision's needs, and the
/// closed form would cancel.
const LONG_GAP: f64 = 1e4;
/// Below this, a squared coefficient of variation counts as zero.
const LEAST_CVSQ: f64 = 1e-6;

/// `κ` for gap `z`, service `b` and squared coefficient of variation `cvsq`; 1 for an infinite gap or no service.
pub(super) fn gap_factor<S: Scalar>(z: S, b: S, cvsq: S) -> S {
    let one = S::from(1.0);
    if !z.value().is_finite() || b <= 0.0 {
        return one;
    }
    let ratio = b / z;
    if ratio < LONG_GAP.recip() {
        return one - ratio * (cvsq * 2.0 + 1.0) / 3.0;
    }
    // z (1 - B*(1/z)) / b and the rest in units of b.
    let transform = if cvsq < LEAST_CVSQ { (-ratio).exp() } else { (-((ratio * cvsq).ln_1p() / cvsq)).exp() };
    let away = (one - transform) / ratio;
    (one - away) * 2.0 / ratio / (one + cvsq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_service_has_its_closed_form() {
        for (z, b) in [(0.01, 1.0), (1.0, 1.0), (50.0, 1.0), (3.0, 0.2)] {
            assert!((gap_factor(z, b, 1.0) - z / (z + b)).abs() < 1e-9, "{z} {b}");
        }
    }

    #[test]
    fn the_series_joins_the_closed_form() {
        let (below, above) = (gap_factor(9999.0, 1.0, 3.0), gap_factor(10001.0, 1.0, 3.0));
        assert!((below - above).abs() < 1e-6, "{below} {above}");
    }

    #[test]
    fn constant_service_is_the_limit_of_small_variation() {
        assert!((gap_factor(0.7, 1.0, 0.0) - gap_factor(0.7, 1.0, 1e-5)).abs() < 1e-4);
    }
}
