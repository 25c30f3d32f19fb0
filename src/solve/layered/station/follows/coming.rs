//! Who comes from elsewhere while a slice is at a processor: `a` of the parent module.

use super::OfSource;
use crate::model::Scalar;

/// Part of what would come by mean values alone, at least.
const LEAST_COMING: f64 = 0.2;
/// Part of those that are there at any time that is found at least, for the mean of their services: next to none have none.
const LEAST_FOUND: f64 = 0.1;

/// A slice's time at a processor, in which others may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay<S> {
    pub time: S,
    /// `V`, and the service.
    pub wait: S,
    pub service: S,
    /// `Σ w f`.
    pub found: S,
    /// The mean and the variance of how many others are there at any time.
    pub there: (S, S),
    /// `Σ E`.
    pub all_away: S,
}

/// What is found of a source where a slice begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<S> {
    /// `Σ w ρ f`, and what is waited for these.
    pub here: S,
    pub wait: S,
    /// `A` and `L`.
    pub away: S,
    pub leave: S,
}

impl<S: Scalar> Stay<S> {
    /// `a`, of customers who have a thread each wherever they call, or of others.
    pub fn come(&self, it: &OfSource<S>, found: &Found<S>, are_free: bool) -> S {
        let zero = S::from(0.0);
        if found.away + found.leave <= 0.0 || it.begin <= 0.0 {
            return zero;
        }
        let chance = |time: S| it.comes * time / (it.comes * time + 1.0);
        let (mean, variance) = self.there;
        if !are_free {
            let least = mean * LEAST_FOUND;
            let number = if self.found > least { self.found } else { least };
            let together = if number > 0.0 { self.time - self.wait / number * variance / self.all_away } else { self.time };
            return (found.away + found.leave) * chance(self.at_least(together));
        }
        let excess = if mean > 0.0 { (variance - mean) / (mean * mean) } else { zero };
        let together = if found.away > 0.0 { self.time - (found.wait + excess * found.here * self.wait) / found.away } else { zero };
        let together = self.at_least(together);
        found.away * chance(together) + found.leave * chance(together * self.left(excess))
    }

    fn at_least(&self, together: S) -> S {
        let least = self.time * LEAST_COMING;
        if together > least { together } else { least }
    }

    /// `η`.
    fn left(&self, excess: S) -> S {
        let later = self.wait * (excess + 1.0) * 0.5;
        let (left, all) = ((self.service + later) * self.found, later * self.found + self.wait);
        if left < all { left / all } else { S::from(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of customers of one class, whose slices are all alike, each finds the others as there are at any time with one customer less, wherever it comes from: with `q` the
    /// chance that a slice follows another at once, `(1 - q) F` come during a slice.
    #[test]
    fn as_many_come_as_are_there_of_slices_that_are_alike() {
        for (customers, load, again) in [(2.0, 0.2, 0.5), (3.0, 0.6, 0.8), (5.0, 0.05, 0.5), (10.0, 0.2, 0.8), (30.0, 0.6, 0.5)] {
            // One customer's work is `load` of the time that he is away.
            let time_away = 1.0 / (1.0 - again) / load;
            let others = customers - 1.0;
            let (mut weight, mut all, mut first, mut second, mut n) = (1.0, 1.0, 0.0, 0.0, 1.0);
            while n <= others {
                weight *= load * (others - n + 1.0);
                all += weight;
                first += weight * n;
                second += weight * n * n;
                n += 1.0;
            }
            let there = first / all;
            let stay = Stay {
                time: there + 1.0,
                wait: there,
                service: 1.0,
                found: there,
                there: (there, second / all - there * there),
                all_away: f64::NAN,
            };
            let it = OfSource { number: customers, comes: 1.0 / time_away, stays: 0.0, begin: 1.0, end: 1.0, away: f64::NAN, blocked: 0.0 };
            let leave = (1.0 - again) * there;
            let come = stay.come(&it, &Found { here: there, wait: there, away: others - there, leave }, true);
            assert!((come / leave - 1.0).abs() < 1e-9, "{customers} customers, {load}: {come}, not {leave}");
        }
    }
}
