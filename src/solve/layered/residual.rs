//! The rest of a service that an arrival finds in progress, when its own thread was away for only a while.
//!
//! In a closed model the thread that arrives was away for a gap `z`, so it sees a service `b` in progress only if that
//! service began before the thread came back. For an exponential gap of mean `z` the expected rest, relative to that seen
//! by Poisson arrivals, `r = b (1 + c²)/2`, is
//!
//! ```text
//! κ = 2 z (b - z (1 - B*(1/z))) / (b² (1 + c²))  ≈  z / (z + r)
//! ```
//!
//! with `B*` the transform of the service's law. The right side is exact for exponential service and for the rational law
//! `B*(x) = (1 + a x b) / (1 + (1+a) x b)`, `a = (c² - 1)/2`, which has the mean and the variation asked for; it has the right
//! limits: 1 for long gaps, `z/r` for short ones. It is used relative to its value for the mean exponential service `s̄`, so that
//! product-form networks are left as they are:
//!
//! ```text
//! rest = r κ(z, r) / κ(z, s̄) = r (z + s̄) / (z + r)
//! ```

use crate::model::Scalar;

/// The rest of a service of mean rest `rest` after a gap `z`, `mean` the mean service of the station.
pub(super) fn rest_after_gap<S: Scalar>(z: S, rest: S, mean: S) -> S {
    let sum = z + rest;
    if sum > 0.0 { rest * (z + mean) / sum } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_service_of_the_mean_is_left_as_it_is() {
        for z in [1e-9, 0.3, 50.0] {
            assert!((rest_after_gap(z, 2.0, 2.0_f64) - 2.0).abs() < 1e-12, "{z}");
        }
    }

    /// Constant service `b = 1`: `κ = 2 z (1 - z (1 - e^(-1/z)))`, relative to `z/(z+1)` for the exponential one.
    #[test]
    fn constant_service_is_near_its_closed_form() {
        for z in [0.2_f64, 1.0, 5.0] {
            let exact = z * (1.0 - z * (1.0 - (-1.0 / z).exp())) / (z / (z + 1.0));
            let rest = rest_after_gap(z, 0.5, 1.0);
            assert!((rest - exact).abs() < 0.12 * exact, "{z}: {rest} {exact}");
        }
    }

    #[test]
    fn the_limits_are_those_of_the_law() {
        assert!((rest_after_gap(1e12, 3.0, 1.0_f64) - 3.0).abs() < 1e-9);
        assert!((rest_after_gap(1e-12, 3.0, 1.0_f64) - 1.0).abs() < 1e-9);
    }
}
