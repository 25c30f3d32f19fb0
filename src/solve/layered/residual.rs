//! The rest of a service that an arrival finds in progress, when its own thread was away for only a while.
//!
//! In a closed model the thread that arrives was away for a gap `z`, so it sees a service in progress only if that
//! service began before the thread came back. Of a service of mean `s` that begins when the thread leaves, an exponential gap leaves
//!
//! ```text
//! s R(z) = E max(S - Z, 0) = s - z (1 - B*(u))        u = s/z
//! ```
//!
//! with `B*(u)` the transform of the service's law at `1/z`. The rest that is found, relative to what is in service when a thread comes that was away
//! for long, is `z R`; it is used relative to its value for exponential service of the station's mean `s̄`, so that product-form networks
//! are left as they are:
//!
//! ```text
//! rest = (z + s̄) R(z)
//! ```
//!
//! with the right limits: for long gaps `r = s (1 + c²)/2`, as Poisson arrivals find it.
//!
//! Only mean and variation of a service are known, or `ρ = r/s`. The law is that of a gamma time as far as its third moment, which sums of a random
//! number of calls are near to (a third moment that is known may be given, as for services of several kinds):
//!
//! ```text
//! 1/B*(u) - 1 = (u + e u² + g u³) / (1 + n u)
//! ρ ≥ 3/4:   e = ρ/3         n = 4ρ/3 - 1    g = 0                  (Padé; exact for exponential services, and for two equal stages)
//! ρ < 3/4:   e = 1 - ρ       n = 0           g = e (4e - 1)/3       (the series of 1/B*)
//! third moment m:  e = (m/(6 s³) - ρ² + δ ρ/3)/(ρ - 1 + δ)   n = ρ + e - 1      (exact but for δ, .01, as the moments say nothing at ρ = 1)
//! R(z) = u (ρ + (e - g) u + g u²) / (1 + (n + 1) u + e u² + g u³)
//! ```
//!
//! Where only two can come to a station, more is known. The other, of mean service `s` and mean time away `y`, is there with chance `U = s/(s + y)`
//! while the arrival's thread is away for long. Its times away are short with chance `q`, between calls of one execution, or long, exponential both.
//! When that thread left after its own service, the other was there with chance `a = 1 - E B_i*(s_i/y)`, at the beginning of its service; it
//! has been away for long, but that with chance `U` the thread had waited for it, and it had left only when that service began. A gap `z` ends
//! the service found with chance `b`, and a time away with chance `z/(z + y)`. Then
//!
//! ```text
//! f(z) = s R(z) [a + E (1 - a) z/(z + y)] / [(1 - b E z/(z + y)) U]           b = B*(1/z) = 1 - (1 - R(z)) s/z
//! rest = s E f / E f_exp
//! ```
//!
//! the last means over the gaps of the arrival, and `f_exp` with exponential services of mean `s`, which leaves product-form networks as
//! they are. With times away of one kind `f` is exact (for exponential services a Markov chain of two states). A thread whose services there are
//! of several calls left after one of these: `a` is the mean over them.

use crate::model::Scalar;

/// `ρ` of two equal stages.
const TWO_STAGES: f64 = 0.75;
/// Of services whose `ρ` is as little above 1 the third moment, which is divided by that, counts by half.
pub(super) const NEARLY_EXPONENTIAL: f64 = 0.01;
/// Rests that differ from those of exponential services by less than this do so by rounding.
const ROUNDING: f64 = 1e-12;
/// After a gap that is as much shorter than a service all of it is left, but for rounding.
const ALL_LEFT: f64 = 1e50;
/// Gaps are no shorter than this part of a service of the only other.
const SHORTEST_GAP: f64 = 1e-9;
/// One that is never away is there with this chance.
const MOST_BUSY: f64 = 0.999_999;

/// The law of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law<S> {
    /// `ρ`, the mean rest over the mean.
    pub rest: S,
    n: S,
    e: S,
    g: S,
}

impl<S: Scalar> Law<S> {
    /// That of a mean `rest` over the mean.
    pub fn new(rest: S) -> Self {
        let zero = S::from(0.0);
        if rest < TWO_STAGES {
            let e = -rest + 1.0;
            Self { rest, n: zero, e, g: e * (e * 4.0 - 1.0) / 3.0 }
        } else {
            let e = rest / 3.0;
            Self { rest, n: rest + e - 1.0, e, g: zero }
        }
    }

    /// That of a `third` moment too, over six times the cube of the mean. Where services vary no more than exponential ones it makes no
    /// difference.
    pub fn of_third(rest: S, third: S) -> Self {
        if rest <= 1.0 {
            return Self::new(rest);
        }
        let excess = rest - 1.0;
        let e = (third - rest * rest + rest * (NEARLY_EXPONENTIAL / 3.0)) / (excess + NEARLY_EXPONENTIAL);
        let e = if e < 0.0 {
            S::from(0.0)
        } else if e > rest {
            rest
        } else {
            e
        };
        Self { rest, n: rest + e - 1.0, e, g: S::from(0.0) }
    }

    /// The third moment of [`Self::new`] over six times the cube of the mean.
    pub fn third(rest: S) -> S {
        rest * (rest * 4.0 - 1.0) / 3.0
    }

    /// Whether it is exponential but for rounding, and stays so where its parameters change.
    pub fn is_exponential(&self) -> bool {
        (self.rest.value() - 1.0).abs() <= ROUNDING && self.rest.derivatives().iter().all(|slope| slope.abs() <= ROUNDING)
    }

    /// `(1/B*(u) - 1)/u`.
    pub fn odds(&self, u: S) -> S {
        (u * (u * self.g + self.e) + 1.0) / (u * self.n + 1.0)
    }

    /// `R` after a gap of the mean over `u`.
    pub fn left(&self, u: S) -> S {
        if u > ALL_LEFT {
            return S::from(1.0);
        }
        let grown = u * (u * self.g + self.e);
        let all = u * (grown + 1.0) + u * self.n + 1.0;
        u * (u * (u * self.g + self.e - self.g) + self.rest) / all
    }
}

/// The rest of a service of mean `service` and mean rest `rest` after a gap `z`, `mean` the mean service of the station.
pub(super) fn rest_after_gap<S: Scalar>(z: S, (service, rest): (S, S), mean: S) -> S {
    let sum = z + rest;
    if sum <= 0.0 {
        return rest;
    }
    if service <= 0.0 {
        return rest;
    }
    if z <= 0.0 {
        return mean;
    }
    let law = Law::new(rest / service);
    // To the last digit.
    let left = if law.is_exponential() { rest / sum } else { law.left(service / z) };
    (z + mean) * left
}

/// The only other that can be at a station, as a thread finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other<S> {
    /// Its mean service.
    service: S,
    law: Law<S>,
    /// `U`, below 1.
    busy: S,
    away: Away<S>,
}

/// Exponential times away: shares and means of the short ones and of the long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Away<S> {
    pub short_share: S,
    pub short: S,
    pub long: S,
}

impl<S: Scalar> Away<S> {
    /// The sum of a value for the short times and one for the long ones, by their shares.
    fn mean(&self, of: impl Fn(S) -> S) -> S {
        let long = of(self.long);
        if self.short_share > 0.0 { long + self.short_share * (of(self.short) - long) } else { long }
    }
}

/// That the other is there when the finder leaves: the chances where it was away for a short time, and for a long one.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtDeparture<S> {
    pub short: S,
    pub long: S,
}

impl<S: Scalar> Other<S> {
    /// One of mean `service` and such a law, in service with chance `busy` when a thread comes. Times `away` are scaled to that.
    pub fn new(service: S, law: Law<S>, busy: S, away: Away<S>) -> Self {
        let busy = if busy > MOST_BUSY { S::from(MOST_BUSY) } else { busy };
        let mean = away.mean(|y| y);
        let whole = service * (-busy + 1.0) / busy;
        let away = if mean > 0.0 {
            let scale = whole / mean;
            Away { short_share: away.short_share, short: away.short * scale, long: away.long * scale }
        } else {
            Away { short_share: S::from(0.0), short: whole, long: whole }
        };
        Self { service, law, busy, away }
    }

    /// `f_exp`, a gap `z` after a service of the finder's own.
    pub fn exponential_rest(&self, z: S) -> S {
        let it = Self { law: Law::new(S::from(1.0)), ..*self };
        it.rest(z, (it.service, it.service), &it.at_departure(it.service, it.service))
    }

    /// `s`.
    pub fn service(&self) -> S {
        self.service
    }

    /// `a`, when the finder leaves after its `own` service, of such rest.
    pub fn at_departure(&self, own: S, rest: S) -> AtDeparture<S> {
        if own <= 0.0 {
            return AtDeparture { short: own, long: own };
        }
        let law = Law::new(rest / own);
        let came = |y: S| {
            if y <= own * SHORTEST_GAP {
                return S::from(1.0);
            }
            let u = own / y;
            let odds = law.odds(u) * u;
            odds / (odds + 1.0)
        };
        let long = came(self.away.long);
        AtDeparture { short: if self.away.short_share > 0.0 { came(self.away.short) } else { long }, long }
    }

    /// `f` of its services of such mean and rest, a gap `z` after a departure with [`Self::at_departure`].
    // Not inlined: what does not change in a loop would be computed before it even if there is no other, of bytes that are no number
    // or a subnormal one, which takes a processor a hundred times as long.
    #[inline(never)]
    pub fn rest(&self, z: S, (service, rest): (S, S), at_departure: &AtDeparture<S>) -> S {
        if service <= 0.0 {
            return service;
        }
        let mean = self.service;
        let shortest = mean * SHORTEST_GAP;
        let z = if z > shortest { z } else { shortest };
        let still_away = self.away.mean(|y| y / (z + y));
        let ended = (-self.law.left(mean / z) + 1.0) * mean / z;
        let found = |came: S, y: S| came + (-came + 1.0) * z / (z + y);
        // It has only just left where the finder waited for it.
        let (short_share, long) = (self.away.short_share * self.busy, found(at_departure.long, self.away.long));
        let there = if short_share > 0.0 { long + short_share * (found(at_departure.short, self.away.short) - long) } else { long };
        mean * Law::new(rest / service).left(service / z) * there / ((still_away + ended * (-still_away + 1.0)) * self.busy)
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
            let other = Other::new(service, Law::new(1.0), busy, Away { short_share: 0.0, short: away, long: away });
            let rest = other.rest(z, (service, service), &other.at_departure(own, own));
            assert!((rest * busy - found * service).abs() < 1e-12, "{own} {service} {away} {z}: {rest}");
        }
    }

    /// The chance `f U/s` with which the finder meets the other, by the chain of the other's states at its own comings and goings: served, away
    /// for a short time or for a long one. The mean over what the waits are leaves an error; times away that are as long as each other have none.
    #[test]
    fn short_times_away_are_near_their_chain() {
        let (service, own, z, share) = (1.0, 0.6, 0.8, 0.4);
        for (short, long, allowed) in [(1.5, 1.5, 1e-3), (0.7, 2.0, 0.06), (0.2, 3.0, 0.02)] {
            // States after an exponential time of such mean, from others: `p (1 - t Q)⁻¹`, by its series in small steps.
            let after = |mut p: [f64; 3], time: f64, is_served: bool| {
                let (step, mut sum) = (1e-4, [0.0; 3]);
                let mut weight = step / time;
                while weight > 1e-9 {
                    (0..3).for_each(|i| sum[i] += p[i] * weight);
                    weight *= 1.0 - step / time;
                    let left = if is_served { p[0] * step / service } else { 0.0 };
                    let came = [p[1] * step / short, p[2] * step / long];
                    p = [p[0] - left + came[0] + came[1], p[1] + left * share - came[0], p[2] + left * (1.0 - share) - came[1]];
                }
                let all: f64 = sum.iter().sum();
                sum.map(|p| p / all)
            };
            let (mut departure, mut found) = ([0.5, 0.2, 0.3], 0.0);
            for _ in 0..12 {
                let [there, shortly, lately] = after(departure, z, true);
                found = there;
                departure = after([0.0, shortly + there * share, lately + there * (1.0 - share)], own, false);
            }
            let busy = service / (service + share * short + (1.0 - share) * long);
            let other = Other::new(service, Law::new(1.0), busy, Away { short_share: share, short, long });
            let chance = other.rest(z, (service, service), &other.at_departure(own, own)) * busy / service;
            assert!((chance / found - 1.0).abs() < allowed, "{short} {long}: {chance} {found}");
        }
    }

    #[test]
    fn exponential_service_of_the_mean_is_left_as_it_is() {
        for z in [1e-9, 0.3, 50.0] {
            assert!((rest_after_gap(z, (2.0, 2.0), 2.0_f64) - 2.0).abs() < 1e-12, "{z}");
        }
    }

    /// Constant service `b = 1`: `κ = 2 z (1 - z (1 - e^(-1/z)))`, relative to `z/(z+1)` for the exponential one.
    #[test]
    fn constant_service_is_near_its_closed_form() {
        for z in [0.2_f64, 1.0, 5.0] {
            let exact = (1.0 - z * (1.0 - (-1.0 / z).exp())) * (z + 1.0);
            let rest = rest_after_gap(z, (1.0, 0.5), 1.0);
            assert!((rest - exact).abs() < 0.03 * exact, "{z}: {rest} {exact}");
        }
    }

    /// `1/B*` of equal stages is `(1 + u/k)^k`; of a gamma time of `c² = 2`, `(1 + 2u)^½`.
    #[test]
    fn the_law_is_near_that_of_its_moments() {
        let close = |rest: f64, u: f64, whole: f64, by: f64| {
            let law = Law::new(rest);
            let (odds, left) = (law.odds(u) * u, law.left(u));
            assert!((odds - (whole - 1.0)).abs() < by * whole, "{rest} {u}: {odds} {whole}");
            assert!((left - (1.0 - (1.0 - 1.0 / (odds + 1.0)) / u)).abs() < 1e-9, "{rest} {u}: {left}");
        };
        for u in [0.1_f64, 1.0, 3.0] {
            close(0.75, u, (1.0 + u / 2.0).powi(2), 1e-12);
            close(2.0 / 3.0, u, (1.0 + u / 3.0).powi(3), 1e-12);
            close(1.0, u, 1.0 + u, 1e-12);
            close(1.5, u, (1.0 + 2.0 * u).sqrt(), 0.09);
        }
        // None at all or an exponential time: what is left is `r/(z + r)`.
        let law = Law::of_third(2.5, 6.25 - 2.5 * NEARLY_EXPONENTIAL / 3.0);
        assert!((law.left(0.8_f64) - 0.8 * 2.5 / (1.0 + 0.8 * 2.5)).abs() < 1e-12, "{}", law.left(0.8));
        let far = Law::of_third(1.0 + 1e-9, 1.0 + 4e-9);
        assert!((far.left(2.0_f64) - 2.0 / 3.0).abs() < 1e-8);
    }

    /// Of two customers, one of services of two equal stages: the chain of its states, served in one stage or the other, or away.
    #[test]
    fn of_two_the_rest_of_two_stages_is_exact() {
        let (away, z, own) = (0.7_f64, 0.4, 1.3);
        let busy = 1.0 / (1.0 + away);
        // What is left for a gap that ends at rate `1/z`, from the first stage, the second and away.
        let (stage, comes, begins) = (2.0, 1.0 / z, 1.0 / away);
        let (mut first, mut second, mut gone) = (0.0, 0.0, 0.0);
        for _ in 0..10_000 {
            first = (comes * 1.0 + stage * second) / (comes + stage);
            second = (comes * 0.5 + stage * gone) / (comes + stage);
            gone = begins * first / (comes + begins);
        }
        let at_departure: f64 = own / (own + away);
        let found = at_departure * first + (1.0 - at_departure) * gone;
        let other = Other::new(1.0, Law::new(0.75), busy, Away { short_share: 0.0, short: away, long: away });
        let rest = other.rest(z, (1.0, 0.75), &other.at_departure(own, own));
        assert!((rest * busy - found).abs() < 1e-9, "{} {found}", rest * busy);
    }

    #[test]
    fn the_limits_are_those_of_the_law() {
        assert!((rest_after_gap(1e12, (1.0, 3.0), 1.0_f64) - 3.0).abs() < 1e-9);
        assert!((rest_after_gap(1e-12, (1.0, 3.0), 1.0_f64) - 1.0).abs() < 1e-9);
    }

    /// What takes no time has limits.
    #[test]
    fn nothing_leaves_numbers() {
        assert_eq!(rest_after_gap(0.0, (2.0, 3.0), 1.5_f64), 1.5, "all of a service is left");
        assert_eq!(rest_after_gap(0.0, (0.0, 0.0), 1.5_f64), 0.0);
        assert_eq!(rest_after_gap(0.7, (0.0, 0.0), 1.5_f64), 0.0);
        for rest in [0.5, 1.0, 3.0_f64] {
            let law = Law::new(rest);
            assert!((law.left(0.1 * ALL_LEFT) - law.left(f64::INFINITY)).abs() < 1e-12 && law.left(f64::INFINITY) == 1.0, "{rest}");
        }
        // One that is never away is there, whole after no gap, whatever the finder was served.
        let other = Other::new(2.0, Law::new(1.5), 1.0, Away { short_share: 0.0, short: 0.0, long: 0.0 });
        let (at, at_once) = (other.at_departure(0.4, 0.4), other.at_departure(0.0, 0.0));
        assert!((at.long - 1.0).abs() < 1e-5 && at_once.long == 0.0, "{at:?} {at_once:?}");
        assert!((other.rest(0.0, (2.0, 3.0), &at) - 2.0).abs() < 1e-2);
        assert!((0.0..0.01).contains(&other.rest(0.0, (2.0, 3.0), &at_once)));
        assert_eq!(other.rest(0.0, (0.0, 0.0), &at), 0.0);
    }
}
