//! n(t): how many sessions are active, window by window.
//!
//! Input: beginning and end of each session in seconds; output: starts, ends and the mean number active in each window.
//!
//! ```text
//! active at the beginning of w:  A(w) = Σ_{v<w} (starts(v) - ends(v))
//! mean active in w:              (A(w) L + Σ (end of w - start) - Σ (end of w - end)) / L   over starts and ends in w
//! ```
//!
//! A session touches two windows only, however long it is. Windows are multiples of L seconds; where they would be too many,
//! L doubles and neighbours are joined, so that the summary is bounded and two summaries merge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most windows between the first and the last.
pub const MOST_WINDOWS: i64 = 1 << 16;

/// Times further from the clock's zero are no times: 30 million years, seconds.
pub const LATEST_S: f64 = 1e15;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    starts: u64,
    ends: u64,
    /// Σ (end of the window - start), seconds.
    after_starts_s: f64,
    /// Σ (end of the window - end), seconds.
    after_ends_s: f64,
}

/// Sums over sessions by window.
#[derive(Clone, Debug, PartialEq)]
pub struct Intensity {
    length_s: f64,
    windows: BTreeMap<i64, Sums>,
    whole: Option<(f64, f64)>,
    active_s: f64,
}

/// One window of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its beginning, seconds of the recordings' clock.
    pub begin_s: f64,
    /// Sessions that start in it.
    pub starts: u64,
    /// Starts a second.
    pub start_rate: f64,
    /// Sessions active at its beginning.
    pub active_at_begin: u64,
    /// Mean number of active sessions over it.
    pub active: f64,
}

impl Intensity {
    /// No sessions, in windows of `length_s` seconds (> 0, else 60).
    pub fn new(length_s: f64) -> Self {
        let length_s = if length_s.is_finite() && length_s > 0.0 { length_s } else { 60.0 };
        Self { length_s, windows: BTreeMap::new(), whole: None, active_s: 0.0 }
    }

    /// Counts a session from `start_s` to `end_s` (≥ `start_s`), both within ±[`LATEST_S`]; others are not counted.
    pub fn add(&mut self, start_s: f64, end_s: f64) {
        if !(start_s.abs() <= LATEST_S && end_s.abs() <= LATEST_S && end_s >= start_s) {
            return;
        }
        let (first, last) = self.whole.unwrap_or((start_s, end_s));
        self.whole = Some((first.min(start_s), last.max(end_s)));
        self.active_s += end_s - start_s;
        self.make_room();
        let (from, to) = (self.window(start_s), self.window(end_s));
        let after = |window: i64, time: f64| (window + 1) as f64 * self.length_s - time;
        let (after_start, after_end) = (after(from, start_s), after(to, end_s));
        let window = self.windows.entry(from).or_default();
        window.starts += 1;
        window.after_starts_s += after_start;
        let window = self.windows.entry(to).or_default();
        window.ends += 1;
        window.after_ends_s += after_end;
    }

    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
    fn window(&self, time_s: f64) -> i64 {
        (time_s / self.length_s).floor() as i64
    }

    fn make_room(&mut self) {
        let Some((first, last)) = self.whole else { return };
        while (last - first) / self.length_s > MOST_WINDOWS as f64 {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        let mut coarse: BTreeMap<i64, Sums> = BTreeMap::new();
        for (index, sums) in std::mem::take(&mut self.windows) {
            let later_s = if index.rem_euclid(2) == 0 { self.length_s } else { 0.0 };
            let joined = coarse.entry(index.div_euclid(2)).or_default();
            joined.starts += sums.starts;
            joined.ends += sums.ends;
            joined.after_starts_s += sums.after_starts_s + later_s * sums.starts as f64;
            joined.after_ends_s += sums.after_ends_s + later_s * sums.ends as f64;
        }
        self.windows = coarse;
        self.length_s *= 2.0;
    }

    /// Adds the sessions of another summary that began with windows of the same length.
    pub fn merge(&mut self, mut other: Self) {
        let Some((first, last)) = other.whole else { return };
        let whole = self.whole.unwrap_or((first, last));
        self.whole = Some((whole.0.min(first), whole.1.max(last)));
        self.make_room();
        while self.length_s < other.length_s {
            self.coarsen();
        }
        while other.length_s < self.length_s {
            other.coarsen();
        }
        self.active_s += other.active_s;
        for (index, sums) in other.windows {
            let known = self.windows.entry(index).or_default();
            known.starts += sums.starts;
            known.ends += sums.ends;
            known.after_starts_s += sums.after_starts_s;
            known.after_ends_s += sums.after_ends_s;
        }
    }

    /// Length of a window, seconds.
    pub fn window_s(&self) -> f64 {
        self.length_s
    }

    /// From the first start to the last end, seconds.
    pub fn span_s(&self) -> f64 {
        self.whole.map_or(0.0, |(first, last)| last - first)
    }

    /// Mean number of active sessions from the first start to the last end; 0 without a span.
    pub fn mean_active(&self) -> f64 {
        if self.span_s() > 0.0 { self.active_s / self.span_s() } else { 0.0 }
    }

    /// Largest mean number of active sessions in a window, over the part of it that is from the first start to the last end.
    pub fn peak_active(&self) -> f64 {
        let Some((first, last)) = self.whole else { return 0.0 };
        let of_window = |window: Window| {
            let covered = last.min(window.begin_s + self.length_s) - first.max(window.begin_s);
            if covered > 0.0 { window.active * self.length_s / covered } else { 0.0 }
        };
        self.series().into_iter().map(of_window).fold(0.0, f64::max)
    }

    /// n(t): all windows from the first start to the last end.
    pub fn series(&self) -> Vec<Window> {
        let Some((first, last)) = self.whole else { return Vec::new() };
        let mut active = 0_u64;
        let window = |index: i64| {
            let sums = self.windows.get(&index).copied().unwrap_or_default();
            let at_begin = active;
            active = (active + sums.starts).saturating_sub(sums.ends);
            Window {
                begin_s: index as f64 * self.length_s,
                starts: sums.starts,
                start_rate: sums.starts as f64 / self.length_s,
                active_at_begin: at_begin,
                active: (at_begin as f64 + (sums.after_starts_s - sums.after_ends_s) / self.length_s).max(0.0),
            }
        };
        (self.window(first)..=self.window(last)).map(window).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(sessions: &[(f64, f64)]) -> Intensity {
        let mut all = Intensity::new(60.0);
        sessions.iter().for_each(|(start, duration)| all.add(*start, start + duration));
        all
    }

    #[test]
    fn a_session_over_three_windows() {
        let series = of(&[(30.0, 120.0), (70.0, 20.0)]).series();
        let found: Vec<_> = series.iter().map(|w| (w.begin_s, w.starts, w.active_at_begin, w.active)).collect();
        assert_eq!(found, [(0.0, 1, 0, 0.5), (60.0, 1, 1, 1.0 + 20.0 / 60.0), (120.0, 0, 1, 0.5)]);
    }

    #[test]
    fn clocks_far_apart_stay_within_the_bound() {
        let all = of(&[(0.0, 10.0), (1.7e9, 10.0)]);
        assert!(all.series().len() <= MOST_WINDOWS as usize + 2);
        assert_eq!(all.series().iter().map(|w| w.starts).sum::<u64>(), 2);
    }

    proptest! {
        /// The windows' means are those of the definition; parts merge to the whole.
        #[test]
        fn means_are_time_averages(sessions in prop::collection::vec((0.0..900.0_f64, 0.0..400.0_f64), 1..30), cut in 0..30_usize) {
            let whole = of(&sessions);
            let overlap = |from: f64, (start, duration): (f64, f64)| ((from + 60.0).min(start + duration) - from.max(start)).max(0.0);
            for window in whole.series() {
                let active: f64 = sessions.iter().map(|s| overlap(window.begin_s, *s)).sum::<f64>() / 60.0;
                prop_assert!((window.active - active).abs() < 1e-9);
            }
            prop_assert!(whole.peak_active() >= whole.mean_active() * (1.0 - 1e-9));
            let (first, second) = sessions.split_at(cut.min(sessions.len()));
            let mut merged = of(first);
            merged.merge(of(second));
            prop_assert_eq!(merged.series().len(), whole.series().len());
            for (merged, whole) in merged.series().iter().zip(whole.series()) {
                prop_assert_eq!(merged.starts, whole.starts);
                prop_assert!((merged.active - whole.active).abs() < 1e-9);
            }
        }
    }
}
