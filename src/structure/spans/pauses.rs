//! Pauses: times between recordings that were made one after another, in which nothing was recorded.
//!
//! Input: starts and ends of occurrences and roots in order of time; output: the times in which nothing was open that are no quiet times of the
//! system, but pauses of the recording.
//!
//! Of all times without anything open the [`KEPT`] longest are kept. With g₁ ≥ g₂ ≥ … their lengths, n the number of roots and T the time from
//! the first event to the last, the first k of them are pauses for the largest k with
//!
//! ```text
//! Tₖ = T − Σᵢ≤ₖ gᵢ        gₖ > Tₖ        gₖ > 300 Tₖ / (n − 1 − k)        n − 1 − k ≥ 30
//! ```
//!
//! that is, each is longer than all that was recorded together, and than 300 of its mean gaps between roots. The longest of 10⁶ gaps of random
//! arrivals is 14 of their means, and a system that is idle for most of its time in many short stretches, as by a clock, has none so long.

use crate::trace::hashed::HashMap;

use super::quality::Moments;

/// Times without anything open that are kept.
const KEPT: usize = 64;
/// Mean gaps between roots that a pause is longer than.
const MEAN_GAPS: f64 = 300.0;
/// Fewest gaps between roots that tell their mean.
const FEWEST_GAPS: u64 = 30;

/// From the end of what was open last to the start of what came next, nanoseconds.
pub type Gap = (i64, i64);

fn length(gap: Gap) -> i64 {
    gap.1.saturating_sub(gap.0)
}

/// Times in which nothing was open.
#[derive(Clone, Debug, Default)]
pub struct Quiet {
    whole: Option<Gap>,
    open: i64,
    n_roots: u64,
    /// The longest, in order of time.
    gaps: Vec<Gap>,
    /// The shortest of them, once there are [`KEPT`].
    shortest_ns: i64,
}

impl Quiet {
    /// A start or an end, as a rule in order; gaps that are no longer kept as they were.
    pub fn event(&mut self, time_ns: i64, is_start: bool, is_root: bool) -> [Option<Gap>; 2] {
        let (first, last) = self.whole.unwrap_or((time_ns, time_ns));
        self.whole = Some((first.min(time_ns), last.max(time_ns)));
        let was_open = self.open > 0;
        self.open += if is_start { 1 } else { -1 };
        self.n_roots += u64::from(is_start && is_root);
        let is_next = is_start && !was_open;
        let divided = if time_ns < last { self.divide(time_ns, is_next) } else { None };
        if is_next && time_ns > last && length((last, time_ns)) > self.shortest_ns {
            self.gaps.push((last, time_ns));
        }
        [divided, if self.gaps.len() > KEPT { self.without_shortest() } else { None }]
    }

    /// Something was in a gap that another part of the input shows: the gap, of which the time after that is left, and that before if nothing was open.
    fn divide(&mut self, time_ns: i64, is_quiet_before: bool) -> Option<Gap> {
        let at = self.gaps.iter().position(|gap| gap.0 < time_ns && time_ns < gap.1)?;
        let gap = self.gaps[at];
        let parts = [(gap.0, time_ns), (time_ns, gap.1)].into_iter().skip(usize::from(!is_quiet_before));
        let kept: Vec<Gap> = parts.filter(|part| length(*part) > self.shortest_ns).collect();
        self.gaps.splice(at..=at, kept);
        Some(gap)
    }

    fn without_shortest(&mut self) -> Option<Gap> {
        let (at, _) = self.gaps.iter().enumerate().min_by_key(|(_, gap)| length(**gap))?;
        let gone = self.gaps.remove(at);
        self.shortest_ns = length(gone);
        Some(gone)
    }

    /// The longest gap that is kept within this time.
    pub fn within(&self, from_ns: i64, to_ns: i64) -> Option<Gap> {
        if self.gaps.last().is_none_or(|gap| gap.1 <= from_ns) {
            return None;
        }
        self.gaps.iter().filter(|gap| from_ns <= gap.0 && gap.1 <= to_ns).max_by_key(|gap| length(**gap)).copied()
    }

    /// Takes over what another part of the input shows: quiet is what is so in both.
    pub fn absorb(&mut self, other: &Self) {
        let Some(theirs) = other.whole else { return };
        let Some(here) = self.whole else {
            *self = other.clone();
            return;
        };
        let around = |whole: Gap, gaps: &[Gap]| -> Vec<Gap> {
            std::iter::once((i64::MIN, whole.0)).chain(gaps.iter().copied()).chain([(whole.1, i64::MAX)]).collect()
        };
        let (ours, others) = (around(here, &self.gaps), around(theirs, &other.gaps));
        let both = ours.iter().flat_map(|a| others.iter().map(|b| (a.0.max(b.0), a.1.min(b.1))));
        self.gaps = both.filter(|gap| gap.0 < gap.1 && gap.0 != i64::MIN && gap.1 != i64::MAX).collect();
        self.gaps.sort_unstable();
        while self.gaps.len() > KEPT {
            self.without_shortest();
        }
        self.whole = Some((here.0.min(theirs.0), here.1.max(theirs.1)));
        self.open += other.open;
        self.n_roots += other.n_roots;
        self.shortest_ns = self.shortest_ns.max(other.shortest_ns);
    }

    /// The gaps that are pauses, in order of time.
    pub fn pauses(&self) -> Vec<Gap> {
        let Some(whole) = self.whole else { return Vec::new() };
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable_by_key(|gap| (std::cmp::Reverse(length(*gap)), gap.0));
        let (mut recorded_ns, mut n_pauses) = (length(whole), 0);
        for (k, gap) in (1..).zip(&gaps) {
            recorded_ns -= length(*gap);
            let n_gaps = self.n_roots.saturating_sub(1 + k as u64);
            let is_long = length(*gap) > recorded_ns && length(*gap) as f64 * n_gaps as f64 > MEAN_GAPS * recorded_ns as f64;
            if is_long && n_gaps >= FEWEST_GAPS {
                n_pauses = k;
            }
        }
        gaps.truncate(n_pauses);
        gaps.sort_unstable();
        gaps
    }
}

/// Times between roots of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between {
    /// From the answer of a session to its next request, seconds.
    pub think_s: Moments,
    /// From one start to the next, seconds.
    pub gap_s: Moments,
    /// From the last end to a start, seconds.
    pub since_end_s: Moments,
}

impl Between {
    fn merge(&mut self, other: Self) {
        self.think_s.merge(other.think_s);
        self.gap_s.merge(other.gap_s);
        self.since_end_s.merge(other.since_end_s);
    }
}

/// Times between roots, apart by what may be a pause in them.
#[derive(Clone, Debug, Default)]
pub struct Betweens {
    without: Between,
    across: HashMap<Gap, Between>,
}

impl Betweens {
    /// Those that contain `gap`, or none that is kept.
    pub fn over(&mut self, gap: Option<Gap>) -> &mut Between {
        match gap {
            None => &mut self.without,
            Some(gap) => self.across.entry(gap).or_default(),
        }
    }

    /// `gap` is no longer kept as it was; what is left of it is in `quiet`.
    pub fn release(&mut self, gap: Gap, quiet: &Quiet) {
        if let Some(across) = self.across.remove(&gap) {
            self.over(quiet.within(gap.0, gap.1)).merge(across);
        }
    }

    /// Takes over those of another part.
    pub fn merge(&mut self, other: Self) {
        self.without.merge(other.without);
        other.across.into_iter().for_each(|(gap, across)| self.across.entry(gap).or_default().merge(across));
    }

    /// The gaps that are kept are those of `quiet` now.
    pub fn settle(&mut self, quiet: &Quiet) {
        let mut all: Vec<(Gap, Between)> = self.across.drain().collect();
        all.sort_unstable_by_key(|(gap, _)| *gap);
        for (gap, across) in all {
            self.over(quiet.within(gap.0, gap.1)).merge(across);
        }
    }

    /// Those without a pause.
    pub fn without(&self, pauses: &[Gap]) -> Between {
        let mut without = self.without;
        let mut others: Vec<(&Gap, &Between)> = self.across.iter().filter(|(gap, _)| !pauses.contains(gap)).collect();
        others.sort_unstable_by_key(|(gap, _)| **gap);
        others.into_iter().for_each(|(_, across)| without.merge(*across));
        without
    }
}
