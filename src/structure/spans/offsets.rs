//! How far one host's clock is ahead of another's, from the requests that both saw, in each of the periods in which it stays the same.
//!
//! Input: for each request from a client on host A that was served on host B, the four times c₀ ≤ c₁ (sent, reply received;
//! A's clock) and s₀ ≤ s₁ (began, ended; B's clock); output: θ(A, B), how far B's clock is ahead of A's, with its bounds.
//!
//! A request is served after its sending, and its reply received after it began to be served, so that (as in the exchange of
//! time stamps of the network time protocol)
//!
//! | bound | holds |
//! |---|---|
//! | s₀ − c₁ ≤ θ ≤ s₀ − c₀ | for every request |
//! | s₁ − c₁ ≤ θ | unless the server works on after its reply: a second phase |
//!
//! Over the requests of a period, those made from B to A with the signs turned round:
//!
//! - The bounds of the first kind are the extremes, where these leave room for any θ; else, as a time is wrong, the quantiles of
//!   5 % and 95 %.
//! - A bound of the second kind beyond the opposite one of the first kind is that of a second phase. Bounds of the second kind are used of those entries (of
//!   [`TRUSTED`] requests or more; the others together) that have no second phases as a rule: not more than 5 % of their
//!   bounds are of second phases, and they end sharply, as a reply is under way for a time that is short and seldom long, or as often
//!   short as long, whereas second phases begin at 0, where clocks agree, and have their tail the other way. So, of the quantiles of 5, 50 and 95 %,
//!   either the last is at most [`LOPSIDED`] times as far from the middle as the first, and the first not between 0 and one of [`AT_ZERO`]
//!   parts of what is between first and last; or the bounds follow time, as a clock does that drifts ([`DRIFTS`]; then [`DRIFTED`] may seem to
//!   be of second phases); or the last is as near to the middle as one of [`ALIKE`] parts of what bounds of the first kind leave open.
//!   Of these bounds the quantile of 5 % or 95 % counts.
//! - L is the largest lower bound, U the least upper one; their *gaps* are their distances to the bounds that 5 % more of the requests are
//!   beyond: the smaller, the nearer to θ. θ̂ = 0 where L ≤ 0 ≤ U. Otherwise, and where clocks do not agree ([`super::skew`]), it is the
//!   middle of L and U, each moved towards the other by [`GAPS`] gaps, or, if these are more than U − L, divides it as they are to
//!   each other. Where only first bounds of one direction are there (each request has a second phase), it is the one that
//!   waits tell, as the shortest of many is short, unless their gap shows that all requests wait: if U − L is no more than
//!   [`LONG_WAITS`] gaps, and the two shortest do not differ by less than one of [`ALIKE`] parts of it.
//! - Where the bounds of the first kind contradict one another, θ̂ = 0 if servers do not begin before they are asked, else that
//!   of L and U that says so.
//!
//! - Such requests are *one-way*, begun to be served after their clients went on, where θ̂ = 0 by this rule and
//!   s₀ − c₀, which does not rest on how long they take, comes in no order: the mean squared difference of successive values is more than
//!   their variance (von Neumann's ratio, 2 of independent values, near 0 of a clock that was set or drifts). These are not divided into
//!   periods.
//!
//! **Periods.** A request admits θ in [s₁ − c₁, s₀ − c₀] if its serving half is no longer than its requesting one, else in
//! [s₀ − c₁, s₀ − c₀]. The requests of a period that admit no θ which most of them admit are its *misfits*. Requests in order of time are divided
//! where that leaves the fewest misfits in both parts, and these again, if a division spares at least half of the misfits, and
//! [`SURE`] by bounds of the first kind alone, or [`TRUSTED`] by both: clocks that were set, or drift, make many misfits that lie on one side
//! in time; second phases are spread over all of it. Where more than half are misfits by bounds of the first kind, and no one division spares so many, the clock
//! drifts: the requests are halved. So they are where [`SURE`] are misfits by both, and their ends follow time ([`DRIFTS`]).
//!
//! Requests are a sample of at most [`CELLS`] × [`KEPT`]: time is divided into cells of equal length (a power of two), as short as
//! leaves no more than [`CELLS`] of them with requests; of each those with the smallest digests of their ids are kept. So the sample
//! depends neither on the order of the spans nor on how the input was divided, and short recordings count beside long ones.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    ops::Range,
};

/// Cells of time that requests are kept of.
const CELLS: usize = 32;
/// Requests that are kept of each.
const KEPT: usize = 16;
/// Requests from which on an estimate is trusted.
pub const TRUSTED: u64 = 10;
/// Requests from which on an estimate is used.
pub const USABLE: u64 = 3;
/// Misfits that have to be spared for bounds that hold for every request to tell that a clock changed.
const SURE: usize = 3;
/// Misfits that have to be spared for bounds to tell it that hold as a rule only.
const MANY: usize = TRUSTED as usize;
/// Von Neumann's ratio up to which the ends of requests follow time: the clock drifts. Ten independent values are so in 0.4 % of cases.
const DRIFTS: f64 = 0.5;
/// Part of the ends that a drift within a period takes beyond the bound of the first kind at most; long second phases take nearly all.
const DRIFTED: f64 = 0.25;
/// Most periods of one pair of hosts.
const MAX_PERIODS: usize = 16;
/// The quantile of the bounds, and the share of them that a gap spans.
const QUANTILE: f64 = 0.05;
/// Gaps by which θ may be within a bound.
const GAPS: f64 = 2.0;
/// Gaps of waits to which the shortest wait may be wrong.
const LONG_WAITS: f64 = 6.0;
/// How many times as far the latest ends are from the middle as the earliest where they have the tail of second phases.
/// Symmetric delays are so by chance in a hundredth of samples of 100 and a tenth of 20; second phases with a coefficient of variation of 0.7 are not in 2 and 17 %.
const LOPSIDED: f64 = 1.5;
/// Part of their spread, one in so many, within which the earliest ends begin at 0.
const AT_ZERO: i64 = 5;
/// Part of a gap, one in so many, by which the two shortest waits differ less if nothing was waited for.
const ALIKE: u64 = 50;

/// How far a host's clock is ahead of another's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// θ̂ in nanoseconds.
    pub offset_ns: i64,
    /// θ̂ where clocks do not agree.
    pub corrected_ns: i64,
    /// Least that fits, by bounds that hold for every request.
    pub lower_ns: i64,
    /// Most that fits, by such bounds.
    pub upper_ns: i64,
    /// L and U.
    pub narrowed_ns: [i64; 2],
    /// The smaller of the gaps that θ̂ rests on.
    pub gap_ns: u64,
    /// Requests it rests on.
    pub n_requests: u64,
    /// Whether clocks agree but for requests that nobody waits for.
    pub has_one_way: bool,
}

impl Offset {
    /// U − L, of bounds that contradict one another more than of any that do not.
    fn width_ns(&self) -> u64 {
        let width = self.narrowed_ns[1].saturating_sub(self.narrowed_ns[0]);
        u64::try_from(width).unwrap_or_else(|_| (1 << 63) | width.unsigned_abs())
    }

    /// How much is left open, to be compared with that of others: a gap, or U − L if that is less; then U − L.
    pub fn is_open_by(&self) -> (u64, u64) {
        let width = self.width_ns();
        let is_empty = width >= 1 << 63;
        (if is_empty { width } else { width.min(self.gap_ns) }, width)
    }

    /// Whether the bounds that hold for every request contradict one another.
    pub fn contradicts(&self) -> bool {
        self.lower_ns > self.upper_ns
    }

    /// The same from the other host.
    pub fn reversed(self) -> Self {
        Self {
            offset_ns: -self.offset_ns,
            corrected_ns: -self.corrected_ns,
            lower_ns: -self.upper_ns,
            upper_ns: -self.lower_ns,
            narrowed_ns: [-self.narrowed_ns[1], -self.narrowed_ns[0]],
            ..self
        }
    }
}

/// What one request says of θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// Decides which requests are kept.
    pub digest: u64,
    /// When it was, by any clock.
    pub at_ns: i64,
    /// s₀ − c₁, or c₀ − s₀ of one from the second host to the first.
    pub lower_ns: i64,
    /// s₀ − c₀, or c₁ − s₀.
    pub upper_ns: i64,
    /// s₁ − c₁, or c₁ − s₁.
    pub ended_ns: i64,
    /// Digest of the entry that served it.
    pub entry: u32,
    /// Whether it was made from the second host of the pair to the first.
    pub is_reversed: bool,
}

impl Said {
    /// Whether its serving half is no longer than its requesting one.
    fn fits(&self) -> bool {
        if self.is_reversed { self.ended_ns >= self.lower_ns } else { self.ended_ns <= self.upper_ns }
    }

    /// Which θ it admits by bounds of the first kind, or of both.
    fn admits(&self, both: bool) -> [i64; 2] {
        match (both && self.fits(), self.is_reversed) {
            (false, _) => [self.lower_ns, self.upper_ns],
            (true, false) => [self.ended_ns.max(self.lower_ns), self.upper_ns],
            (true, true) => [self.lower_ns, self.ended_ns.min(self.upper_ns)],
        }
    }
}

/// A sample of the requests of a pair of hosts.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Logarithm of the length of a cell.
    shift: u32,
    cells: BTreeMap<i64, BinaryHeap<Said>>,
}

fn keep(cell: &mut BinaryHeap<Said>, request: Said) {
    if cell.len() < KEPT {
        cell.push(request);
    } else if let Some(mut largest) = cell.peek_mut()
        && request < *largest
    {
        *largest = request;
    }
}

impl Sample {
    /// Takes a request.
    pub fn add(&mut self, request: Said) {
        keep(self.cells.entry(request.at_ns >> self.shift).or_default(), request);
        while self.cells.len() > CELLS && self.shift < 62 {
            self.shift += 1;
            for (number, cell) in std::mem::take(&mut self.cells) {
                let coarser = self.cells.entry(number >> 1).or_default();
                cell.into_iter().for_each(|request| keep(coarser, request));
            }
        }
    }

    /// Takes over the requests of `other`.
    pub fn absorb(&mut self, other: Self) {
        other.cells.into_values().flatten().for_each(|request| self.add(request));
    }

    /// The requests in order of time.
    pub fn requests(&self) -> Vec<Said> {
        let mut requests: Vec<Said> = self.cells.values().flatten().copied().collect();
        requests.sort_unstable_by_key(|request| (request.at_ns, request.digest));
        requests
    }
}

/// The value at the rank that `share` of the values are beyond, seen from the end; `None` of none.
fn at_share(values: &mut [i64], share: f64, from_top: bool) -> Option<i64> {
    values.sort_unstable();
    at_rank(values, rank(values.len(), share), from_top)
}

fn rank(n: usize, share: f64) -> usize {
    (n.saturating_sub(1) as f64 * share) as usize
}

fn at_rank(sorted: &[i64], rank: usize, from_top: bool) -> Option<i64> {
    let rank = if from_top { sorted.len().checked_sub(rank + 1)? } else { rank };
    sorted.get(rank).copied()
}

/// A bound of θ.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at_ns: i64,
    /// How far the bounds near it are spread.
    gap_ns: u64,
    /// How far the next one is.
    step_ns: u64,
}

impl Bound {
    /// The bound that `share` of the values are beyond; `None` of none.
    fn of(values: &mut [i64], share: f64, from_top: bool) -> Option<Self> {
        let at_ns = at_share(values, share, from_top)?;
        let n = values.len();
        let next = (rank(n, share) + 1).min(n - 1);
        let [step_ns, gap_ns] = [next, next.max(rank(n, share + QUANTILE))].map(|rank| at_rank(values, rank, from_top));
        Some(Self { at_ns, gap_ns: at_ns.abs_diff(gap_ns?), step_ns: at_ns.abs_diff(step_ns?) })
    }

    fn negative(self) -> Self {
        Self { at_ns: self.at_ns.saturating_neg(), ..self }
    }

    /// The middle of two bounds, each moved by [`GAPS`] gaps; where these are more than there is between, what divides it as the gaps are
    /// to each other.
    fn between(lower: Self, upper: Self) -> i64 {
        let width = upper.at_ns.saturating_sub(lower.at_ns) as f64;
        let [below, above] = [lower.gap_ns, upper.gap_ns].map(|gap| GAPS * gap as f64);
        let share = if below + above > width { below / (below + above) } else { (1.0 + (below - above) / width.max(1.0)) / 2.0 };
        lower.at_ns.saturating_add((width * share) as i64)
    }
}

/// Bounds that hold for every request, by extremes (`share` 0) or quantiles.
fn sure(requests: &[Said], share: f64) -> Option<[Bound; 2]> {
    let mut lower: Vec<i64> = requests.iter().map(|request| request.lower_ns).collect();
    let mut upper: Vec<i64> = requests.iter().map(|request| request.upper_ns).collect();
    Some([Bound::of(&mut lower, share, true)?, Bound::of(&mut upper, share, false)?])
}

/// The lower bound of the second kind that requests of the first host to the second say, where θ is at most `most_ns`; those the other way, with the signs turned
/// round, if `is_reversed`.
fn ended(requests: &[Said], most_ns: i64, is_reversed: bool) -> Option<Bound> {
    let sign = if is_reversed { -1 } else { 1 };
    let mut of_entries: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.is_reversed == is_reversed) {
        of_entries.entry(request.entry).or_default().push(sign * request.ended_ns);
    }
    let n: usize = of_entries.values().map(Vec::len).sum();
    if (n as u64) < TRUSTED {
        let mut within: Vec<i64> = of_entries.into_values().flatten().filter(|bound| *bound <= most_ns).collect();
        return Bound::of(&mut within, QUANTILE, true);
    }
    let (of_many, of_few): (Vec<_>, Vec<_>) = of_entries.into_values().partition(|bounds| bounds.len() as u64 >= TRUSTED);
    let groups = of_many.into_iter().chain([of_few.concat()]).filter(|bounds| bounds.len() as u64 >= TRUSTED);
    groups.filter_map(|bounds| without_second_phases(bounds, most_ns)).max_by_key(|bound| (bound.at_ns, Reverse(bound.gap_ns)))
}

/// The bound that requests of one entry say, if it has no second phases as a rule.
fn without_second_phases(mut bounds: Vec<i64>, most_ns: i64) -> Option<Bound> {
    let n_beyond = bounds.iter().filter(|bound| **bound > most_ns).count();
    let follow_time = von_neumann(bounds.iter().map(|bound| *bound as f64)) <= DRIFTS;
    let [early, middle] = [(QUANTILE, false), (0.5, true)].map(|(share, top)| at_share(&mut bounds, share, top));
    let (early, middle, late) = (early?, middle?, Bound::of(&mut bounds, QUANTILE, true)?);
    let [above, below] = [late.at_ns.saturating_sub(middle), middle.saturating_sub(early)];
    let begins_at_zero = (0..=above.saturating_add(below) / AT_ZERO).contains(&early);
    let has_no_tail = above as f64 <= LOPSIDED * below as f64 && !begins_at_zero;
    let is_sharp = has_no_tail || follow_time || above <= most_ns.saturating_sub(middle) / ALIKE as i64;
    let bound = Bound { at_ns: late.at_ns.min(most_ns), ..late };
    let most_beyond = if follow_time { DRIFTED } else { QUANTILE };
    (n_beyond as f64 <= most_beyond * bounds.len() as f64 && is_sharp).then_some(bound)
}

/// θ of the requests of a period, `n_requests` in all.
pub fn estimate(requests: &[Said], n_requests: u64) -> Offset {
    let is_empty = |[lower, upper]: &[Bound; 2]| lower.at_ns > upper.at_ns;
    let bounds = sure(requests, 0.0).filter(|bounds| !is_empty(bounds)).or_else(|| sure(requests, QUANTILE));
    let Some([lower, upper]) = bounds else { return Offset { n_requests, ..Offset::default() } };
    let (is_asked, is_asked_back) = (requests.iter().any(|r| !r.is_reversed), requests.iter().any(|r| r.is_reversed));
    let told = ended(requests, upper.at_ns, false);
    let told_back = ended(requests, lower.at_ns.saturating_neg(), true).map(Bound::negative);
    let largest = told.filter(|bound| bound.at_ns > lower.at_ns).unwrap_or(lower);
    let least = told_back.filter(|bound| bound.at_ns < upper.at_ns).unwrap_or(upper);
    let waits = if is_asked { upper } else { lower };
    let are_alike = waits.step_ns.saturating_mul(ALIKE) <= waits.gap_ns;
    let are_short = are_alike || upper.at_ns.saturating_sub(lower.at_ns) as f64 > LONG_WAITS * waits.gap_ns as f64;
    let is_of_waits = told.or(told_back).is_none() && !(is_asked && is_asked_back) && are_short;
    let mut has_one_way = false;
    let corrected_ns = if is_empty(&[lower, upper]) {
        // Servers begin before they are asked, by the one direction or the other.
        if is_asked && upper.at_ns < 0 {
            upper.at_ns
        } else if is_asked_back && lower.at_ns > 0 {
            lower.at_ns
        } else {
            has_one_way = requests.len() as u64 >= TRUSTED && !have_order(requests);
            0
        }
    } else if is_of_waits {
        waits.at_ns
    } else {
        Bound::between(largest, least)
    };
    let is_same = !is_empty(&[lower, upper]) && largest.at_ns <= 0 && 0 <= least.at_ns;
    let gap_ns = if is_of_waits { waits.gap_ns } else { largest.gap_ns.min(least.gap_ns) };
    Offset {
        gap_ns,
        offset_ns: if is_same { 0 } else { corrected_ns },
        corrected_ns,
        lower_ns: lower.at_ns,
        upper_ns: upper.at_ns,
        narrowed_ns: [largest.at_ns, least.at_ns],
        n_requests,
        has_one_way,
    }
}

/// Whether the times from sendings to beginnings change with time: successive ones differ less than any two do.
fn have_order(requests: &[Said]) -> bool {
    von_neumann(requests.iter().map(|request| if request.is_reversed { request.lower_ns } else { request.upper_ns } as f64)) <= 1.0
}

/// The mean squared difference of successive values, by their variance: 2 of independent values, near 0 of those that follow time, 0 of equal ones;
/// of fewer than [`TRUSTED`] no number.
fn von_neumann(values: impl Iterator<Item = f64>) -> f64 {
    let said: Vec<f64> = values.collect();
    if said.len() < TRUSTED as usize {
        return f64::NAN;
    }
    let n = said.len() as f64;
    let mean = said.iter().sum::<f64>() / n;
    let variance = said.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let successive = said.windows(2).map(|two| (two[1] - two[0]).powi(2)).sum::<f64>() / (n - 1.0);
    if successive > 0.0 { successive / variance } else { 0.0 }
}

/// Misfits of each leading part: `misfits[n]` of the first n, shape `(n_requests + 1,)`.
fn misfits(admitted: impl Iterator<Item = [i64; 2]> + Clone) -> Vec<usize> {
    let mut ends: Vec<i64> = admitted.clone().map(|[lower, _]| lower).collect();
    ends.sort_unstable();
    ends.dedup();
    // How many admit each lower end: where most admit a value, they admit one of these.
    let mut n_admit = vec![0_usize; ends.len()];
    let (mut most, mut misfits) = (0, vec![0]);
    for (n, [lower, upper]) in (1..).zip(admitted) {
        let within = ends.partition_point(|end| *end < lower)..ends.partition_point(|end| *end <= upper);
        for count in n_admit.get_mut(within).into_iter().flatten() {
            *count += 1;
            most = most.max(*count);
        }
        misfits.push(n - most);
    }
    misfits
}

/// Where to divide requests so that fewest are misfits, and if that spares enough of them.
fn division(requests: &[Said], both: bool, enough: usize) -> Option<usize> {
    let n = requests.len();
    let first = misfits(requests.iter().map(|request| request.admits(both)));
    let all = first[n];
    if all < enough {
        return None;
    }
    let last = misfits(requests.iter().rev().map(|request| request.admits(both)));
    let at = (1..n).min_by_key(|at| first[*at] + last[n - at])?;
    let left = first[at] + last[n - at];
    // Where more than half are misfits by bounds that hold for all, the clock drifts.
    let drifting = (!both && 2 * all > n).then_some(n / 2);
    (2 * left <= all && all - left >= enough).then_some(at).or(drifting)
}

/// Where to divide requests of which some are misfits as the clock drifts: in the middle, as no change tells a better place.
fn halved(requests: &[Said]) -> Option<usize> {
    let ends = requests.iter().filter(|request| request.fits()).map(|request| request.ended_ns as f64);
    let n_misfits = || misfits(requests.iter().map(|request| request.admits(true))).last().copied().unwrap_or(0);
    (von_neumann(ends) <= DRIFTS && n_misfits() >= SURE).then_some(requests.len() / 2)
}

/// The periods of requests in order of time, as ranges of them.
pub fn periods(requests: &[Said]) -> Vec<Range<usize>> {
    if estimate(requests, requests.len() as u64).has_one_way {
        return divided(requests, |_| None);
    }
    divided(requests, |of| division(of, false, SURE).or_else(|| division(of, true, MANY)).or_else(|| halved(of)))
}

/// As [`periods`], of requests whose bounds hold as a rule only.
pub fn periods_of_windows(requests: &[Said]) -> Vec<Range<usize>> {
    divided(requests, |of| division(of, true, MANY))
}

/// Ranges of requests that `division` divides no further.
fn divided(requests: &[Said], division: impl Fn(&[Said]) -> Option<usize>) -> Vec<Range<usize>> {
    let mut whole: Vec<Range<usize>> = Vec::new();
    let all = 0..requests.len();
    let mut open = vec![all];
    while let Some(range) = open.pop() {
        let of = &requests[range.clone()];
        let room = whole.len() + open.len() + 1 < MAX_PERIODS;
        match division(of).filter(|_| room) {
            Some(at) => open.extend([range.start + at..range.end, range.start..range.start + at]),
            None => whole.push(range),
        }
    }
    whole
}
