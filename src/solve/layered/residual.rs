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
//!
//! Where only two can come to a station, more is known. The other, of service `s` and mean time away `y`, is there with chance `U = s/(s + y)`
//! while the arrival's thread is away for long. When that thread left after its own service `s_i`, the other was there with chance
//! `a = s_i/(s_i + y)`, at the beginning of its service, and a gap `z` leaves of this
//!
//! ```text
//! rest = [ r (U + (a - U) w - a v) + s a v ] / U        v = s/(s + z)    w = 1/(1 + z (1/s + 1/y))
//! ```
//!
//! which for exponential times is exact (a Markov chain of two states). A thread whose services there are of several calls left after one of these: `a` is
//! the mean over them.

use crate::model::Scalar;

/// One that is never away is there with this chance.
const MOST_BUSY: f64 = 0.999_999;

/// The rest of a service of mean rest `rest` after a gap `z`, `mean` the mean service of the station.
pub(super) fn rest_after_gap<S: Scalar>(z: S, rest: S, mean: S) -> S {
    let sum = z + rest;
    if sum > 0.0 { rest * (z + mean) / sum } else { rest }
}

/// The only other that can be at a station, as a thread finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other<S> {
    /// Its mean service.
    service: S,
    /// `U`, below 1.
    busy: S,
}

impl<S: Scalar> Other<S> {
    /// One of mean `service`, in service with chance `busy` when a thread comes.
    pub fn new(service: S, busy: S) -> Self {
        let busy = if busy > MOST_BUSY { S::from(MOST_BUSY) } else { busy };
        Self { service, busy }
    }

    /// `a/U`: how much likelier it is there when the finder leaves after its `own` service.
    pub fn at_departure(&self, own: S) -> S {
        let longer = own / self.service;
        longer / (self.busy * (longer - 1.0) + 1.0)
    }

    /// The rest that is found of a service of mean rest `rest`, a gap `z` after a departure at which it was [`Self::at_departure`].
    // Not inlined: what does not change in a loop would be computed before it even if there is no other, of bytes that are no number
    // or a subnormal one, which takes a processor a hundred times as long.
    #[inline(never)]
    pub fn rest(&self, z: S, rest: S, at_departure: S) -> S {
        let service = self.service;
        let away = service * (-self.busy + 1.0) / self.busy;
        let begun = at_departure * service / (service + z);
        let remembered = service * away / (service * away + z * (service + away));
        rest * ((at_departure - 1.0) * remembered - begun + 1.0) + service * begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two customers of one server: `P(found)` from the chain of the other's states, served or away, over its chance `s/(s + y)`.
    #[test]
    fn of_two_the_rest_is_exact() {
        for (own, service, away, z) in
            [(0.331, 2.086, 0.171, 0.342), (2.086, 0.331, 0.342, 0.171), (1.0, 1.0, 0.5, 0.5), (0.2, 3.0, 40.0, 0.1)]
        {
            let busy = service / (service + away);
            let (begins, ends, comes) = (1.0 / away, 1.0 / service, 1.0 / z);
            let at_departure: f64 = own / (own + away);
            let found = (at_departure * comes + begins) / (comes + begins + ends);
            let other = Other::new(service, busy);
            let rest = other.rest(z, service, other.at_departure(own));
            assert!((rest * busy - found * service).abs() < 1e-12, "{own} {service} {away} {z}: {rest}");
        }
    }

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
