//! Requests from outside that wait for a reply: how many there were, how often, and how many were open at once.
//!
//! Input: starts and ends, in any order; output: the most that were open at once. Kept is by how much the number of open requests changes at each
//! time, of [`MOST_TIMES`] times at most: while there are more, times are rounded down to twice as many nanoseconds. So the number
//! is exact for up to half as many requests, else that of so many equally distant times; it is the same in whatever order and in
//! whatever parts they come.

use serde::{Deserialize, Serialize};

use crate::trace::hashed::HashMap;

/// Most times that are told apart.
const MOST_TIMES: usize = 1 << 17;

/// What was seen of the requests from outside that wait for a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutsideReport {
    /// How many.
    pub requests: u64,
    /// How many a second from the first start to the last, of all that they stand for; `None` where there is no time between these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Most open at once, of those recorded.
    pub most_at_once: u64,
}

/// Sums over requests from outside, mergeable.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    n: u64,
    weight: f64,
    /// First and last start.
    starts_ns: Option<(i64, i64)>,
    /// Change of the number of open requests at times in units of 2^`shift` ns.
    changes: HashMap<i64, i32>,
    shift: u32,
}

impl Outside {
    /// Adds a request that stands for `weight`; it is open for a nanosecond at least.
    pub(super) fn add(&mut self, start_ns: i64, end_ns: i64, weight: f64) {
        self.n += 1;
        self.weight += weight;
        self.starts_ns = Some(self.starts_ns.map_or((start_ns, start_ns), |(first, last)| (first.min(start_ns), last.max(start_ns))));
        self.change(start_ns >> self.shift, 1);
        self.change(end_ns.max(start_ns.saturating_add(1)) >> self.shift, -1);
        self.make_room();
    }

    fn change(&mut self, time: i64, by: i32) {
        *self.changes.entry(time).or_insert(0) += by;
    }

    fn make_room(&mut self) {
        while self.changes.len() > MOST_TIMES {
            self.round_to(self.shift + 1);
        }
    }

    fn round_to(&mut self, shift: u32) {
        let by = shift - self.shift;
        self.shift = shift;
        for (time, change) in std::mem::take(&mut self.changes) {
            self.change(time >> by, change);
        }
    }

    /// Adds what another saw.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.n += other.n;
        self.weight += other.weight;
        self.starts_ns = match (self.starts_ns, other.starts_ns) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
        let shift = self.shift.max(other.shift);
        self.round_to(shift);
        other.round_to(shift);
        other.changes.into_iter().for_each(|(time, change)| self.change(time, change));
        self.make_room();
    }

    /// What was seen; `None` where there was none.
    pub(super) fn report(&self) -> Option<OutsideReport> {
        let (first, last) = self.starts_ns?;
        let span_s = (i128::from(last) - i128::from(first)) as f64 / 1e9;
        let rate = (self.n - 1) as f64 / span_s * (self.weight / self.n as f64);
        Some(OutsideReport {
            requests: self.n,
            rate_per_s: (span_s > 0.0 && rate > 0.0 && rate.is_finite()).then_some(rate),
            most_at_once: self.most_at_once(),
        })
    }

    fn most_at_once(&self) -> u64 {
        let mut changes: Vec<(i64, i32)> = self.changes.iter().map(|(time, change)| (*time, *change)).collect();
        changes.sort_unstable();
        let (mut now, mut most) = (0_i64, 1_i64);
        for (_, change) in changes {
            now += i64::from(change);
            most = most.max(now);
        }
        most.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(requests: &[(i64, i64)]) -> Outside {
        let mut outside = Outside::default();
        requests.iter().for_each(|(start, end)| outside.add(*start, *end, 1.0));
        outside
    }

    #[test]
    fn one_that_starts_as_another_ends_is_not_open_with_it() {
        let report = of(&[(0, 10), (10, 20), (15, 15), (i64::MAX, i64::MAX)]).report().unwrap();
        assert_eq!((report.requests, report.most_at_once), (4, 2));
        assert_eq!(of(&[(5, 6), (5, 7)]).report().unwrap().rate_per_s, None);
        assert!(Outside::default().report().is_none());
    }

    /// Fifty at a time, for longer than times are told apart.
    #[test]
    fn times_of_many_requests_are_rounded_alike_in_any_order() {
        let requests: Vec<(i64, i64)> = (0..200_000).map(|i| (1_000 * i, 1_000 * (i + 50) - 1)).collect();
        let whole = of(&requests);
        assert!(whole.changes.len() <= MOST_TIMES && whole.shift > 0);
        let most = whole.report().unwrap().most_at_once;
        assert!((45..=50).contains(&most), "{most}");
        let (early, late) = requests.split_at(30_000);
        let mut parts = of(late);
        parts.merge(of(early));
        let backwards = of(&requests.iter().rev().copied().collect::<Vec<_>>());
        for other in [&parts, &backwards] {
            assert_eq!((other.shift, &other.changes, other.report()), (whole.shift, &whole.changes, whole.report()));
        }
    }

    proptest! {
        #[test]
        fn as_many_are_open_as_at_some_start(requests in prop::collection::vec((0..1_000_i64, 1..100_i64), 1..50)) {
            let requests: Vec<(i64, i64)> = requests.into_iter().map(|(start, length)| (start, start + length)).collect();
            let open_at = |time: i64| requests.iter().filter(|(start, end)| *start <= time && time < *end).count() as u64;
            let most = requests.iter().map(|(start, _)| open_at(*start)).max().unwrap();
            prop_assert_eq!(of(&requests).report().unwrap().most_at_once, most);
        }
    }
}
