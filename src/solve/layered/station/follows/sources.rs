//! Whose slices come to a processor, and how many of these are elsewhere.

use super::{super::At, Followed, Follows, OfSource, ways::Led};
use crate::{model::Scalar, solve::erlang::NEGLIGIBLE};

/// Of the number of `others` at a station that have so much work there for each unit of time that one is away, the mean and the variance. The
/// weights go from the likeliest number to both sides.
fn number_there<S: Scalar>(others: f64, work: S) -> (S, S) {
    let likeliest = f64::max((others - work.value().recip()).ceil(), 0.0);
    let (mut all, mut first, mut second) = (S::from(1.0), S::from(0.0), S::from(0.0));
    let mut count = |weight: S, n: f64| {
        let far = n - likeliest;
        all += weight;
        first += weight * far;
        second += weight * (far * far);
        weight > all * NEGLIGIBLE
    };
    let (mut n, mut weight) = (likeliest, S::from(1.0));
    while n < others {
        weight *= work * (others - n);
        n += 1.0;
        if !count(weight, n) {
            break;
        }
    }
    (n, weight) = (likeliest, S::from(1.0));
    while n > 0.0 {
        n -= 1.0;
        weight /= work * (others - n);
        if !count(weight, n) {
            break;
        }
    }
    let beyond = first / all;
    (beyond + likeliest, second / all - beyond * beyond)
}

impl<S: Scalar> At<'_, S> {
    /// `ρ`.
    pub(super) fn find_shares(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = follows.sources.len();
        let Followed { led, shares, .. } = room;
        led.clear();
        led.resize(follows.entries.len() * n, S::from(0.0));
        let rates = &self.sweep.flow.arc_rate;
        for (at, entry) in follows.entries.iter().enumerate() {
            match entry {
                Led::By(source) => led[at * n + source] = S::from(1.0),
                Led::Through(callers) => {
                    let all = callers.iter().fold(S::from(0.0), |sum, &(call, _)| sum + rates[call]);
                    for &(call, caller) in callers.iter().filter(|_| all > 0.0) {
                        for source in 0..n {
                            let part = led[caller * n + source] * rates[call] / all;
                            led[at * n + source] += part;
                        }
                    }
                }
            }
        }
        shares.clear();
        let entries = follows.in_order.row_of.iter().map(|&row| follows.entry_of[row]);
        entries.for_each(|entry| shares.extend_from_slice(&led[entry * n..(entry + 1) * n]));
    }

    /// What is known of each source beside the station.
    pub(super) fn find_sources(&self, follows: &Follows, room: &mut Followed<S>) {
        let zero = S::from(0.0);
        let n = follows.sources.len();
        room.sources.clear();
        for (source, &task) in follows.sources.iter().enumerate() {
            let number = self.sweep.populations.threads(self.sweep.net, task);
            let mut it = OfSource { number, comes: zero, stays: zero, begin: zero, end: zero, away: S::from(number), blocked: zero };
            for &(call, caller, strands) in &follows.blocked {
                it.blocked += self.sweep.flow.arc_rate[call] * self.sweep.unknowns[call] * room.led[caller * n + source] * strands;
            }
            it.away -= it.blocked;
            for (k, slice) in room.slices.iter().enumerate() {
                let rate = slice.rate * room.shares[k * n + source] * slice.strands;
                it.away -= rate * self.stay_of(follows, room, k);
                it.begin += rate * room.others[k];
                it.end += rate * room.out[k];
            }
            let least = number * f64::EPSILON;
            if it.away < least {
                it.away = S::from(least);
            }
            if number > 0.0 {
                it.comes = it.begin / it.away;
                it.stays = (-it.away + number) / (-it.away + 2.0 * number);
            }
            room.sources.push(it);
        }
    }

    /// The mean and the variance of how many others are there, as of exponential services of one mean.
    pub(super) fn number_of_others(&self, room: &Followed<S>) -> (S, S) {
        let zero = S::from(0.0);
        let number: f64 = room.sources.iter().map(|it| it.number).sum();
        let away = room.all_away();
        let load = self.visits.iter().fold(zero, |sum, v| sum + v.rate * v.first);
        if number <= 1.0 || away <= 0.0 { (zero, zero) } else { number_there(number - 1.0, load / away) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody waits for anybody where one customer is all: a binomial number. Of many and little work each, a geometric one.
    #[test]
    fn the_number_that_is_there_is_that_of_exponential_services() {
        let (_, one) = number_there(1.0, 0.5);
        assert!((one - 0.5 / 1.5 * (1.0 / 1.5)).abs() < 1e-14, "{one}");
        // P(n) ∝ 1, 2r, 2r².
        let (all, first, second) = (1.0 + 0.6 + 0.18, 0.6 + 0.36, 0.6 + 0.72);
        let (_, two) = number_there(2.0, 0.3);
        assert!((two - (second / all - (first / all) * (first / all))).abs() < 1e-14, "{two}");
        let (_, many) = number_there(1e5, 0.6e-5);
        assert!((many / (0.6 / 0.16) - 1.0).abs() < 1e-3, "{many}");
        // Where nearly all are there, those that are away are Poisson.
        for away in [1.0, 1e3] {
            let (mean, variance): (f64, f64) = number_there(1e6, 1.0 / away);
            assert!((1e6 - mean - away).abs() < 1e-9 * away && (variance - away).abs() < 1e-9 * away, "{away}: {mean}, {variance}");
        }
    }
}
