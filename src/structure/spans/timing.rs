//! Phases, asynchronous calls, forks and self times of the occurrences of a forest.
//!
//! Input: a [`Forest`] with corrected times; output: the same with `reply_ns`, `work_end_ns`, `self_ns` of occurrences and
//! `is_async`, `phase`, `branch` of calls.
//!
//! Of an occurrence with span [s, e], requested by a call [c₀, c₁]:
//!
//! - its reply is at r = c₁ if the requesting half was seen, did not give up (time-out, cancellation, or an error
//!   where the server's span ended well), and c₁ < e by more than the clock's resolution; else at r = e. Work after r is phase 2: a span that outlasts its client's, internal spans
//!   that outlast the span, and calls that start at r or later. A call that starts and ends at r, as far as the clock shows, is
//!   of the phase that such calls are of as a rule.
//! - A call whose serving half starts after its requesting half has ended well, by more than the clock's resolution, is not waited for: asynchronous, if
//!   both are by one clock, or by clocks that tell the order ([`super::skew`]), and such calls (caller and entry called) are so in one of ten or more.
//! - A message whose sending was not seen (a consumer without producer, a link) is of phase 1, whenever it was received.
//! - A call that starts before r and ends after it is not waited for: asynchronous. But where r is the end of the requester's own span, a
//!   call whose requesting half was seen and ends later by no more than 5 % of its own time is waited for if most calls of its kind (caller and entry called) end in
//!   time: spans are not closed in the order in which things end. If r is the client's, whose clock may be off
//!   by [δ₋, δ₊] ([`super::skew`]), that is so only if the call contains all of [r + δ₋, r + δ₊]. Otherwise it is waited for, on
//!   the side of the reply that such calls are on as a rule, else on the nearer one, and r moves to its end or start.
//!   So does r where a call is on one side of it, but may be on the other, and such calls are hardly ever on this side (one in ten,
//!   and of those hardly one where clocks leave nothing open). Where clocks are the same, the reply was sent before c₁, by as long as it is
//!   under way: it may have been that early, also where the span ends before c₁. A call within the requester's span that begins earlier,
//!   but seems to be under way at r, as such calls do as a rule ([`Habits::is_second`]), is of phase 2 as well: the reply would have
//!   waited for one of phase 1, and what is left to itself outlasts the span now and then.
//! - Two calls of a phase overlap if min(ends) − max(starts) > max(3 × resolution, 5 % of the shorter). Calls that overlap,
//!   directly or in a chain, are one fork; its branches are the fewest such that calls of a branch do not overlap. Each
//!   branch may hold several calls, one after the other.
//! - Overlaps of two entries called by a third are counted over all its occurrences (calls matched by rank). With
//!   [`ENOUGH`] or more, entries that overlap in less than a tenth do not make a fork (that was jitter), and those that
//!   overlap in more than half do even where they did not this once. Of those between, no call waits for the other: where one of a pair overlaps a third
//!   call that the other comes after, or before, this once, the pair is parallel as well (chains side by side: a, b and then c beside; the fork does not end
//!   before b because c was short).
//! - Self time of phase 1 is r − s less the union of the waits of phase 1, so that parallel children count once; of phase 2
//!   the time after r covered by its own or internal spans less the union of waits.
//! - What a consumer does that lies in the span of another occurrence, but is requested by its producer, is no time of that one.
//! - Unfinished and ill-timed occurrences have no self time, nor do those that failed, unless none of their entry ended well. One that ended well has its self time
//!   whether or not its client had given up.

use crate::trace::hashed::{HashMap, HashSet};

use super::{
    catalog::{Catalog, PeerKind, Renumbered},
    forest::{Call, Forest, Occ, Origin},
    habits::Habits,
    tree::NOBODY,
};
use crate::{structure::interactions::Branch, trace::span::SpanStatus};

/// Pairs from which on what was seen of others decides.
pub const ENOUGH: u64 = 5;
/// Overlaps are measured in this many resolutions of the clock.
const RESOLUTIONS: i64 = 3;
/// Part of the shorter call that an overlap must be larger than, and of a call that it may end late by: one in so many.
const SHARE: i64 = 20;
/// Calls of one occurrence beyond which pairs are neither counted nor compared with others.
const MOST_PAIRED: usize = 48;

/// How often two entries called by a third overlapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlaps {
    /// At the same time.
    pub together: u64,
    /// One after the other.
    pub apart: u64,
}

impl Overlaps {
    /// Whether they do not wait for one another, though most often one comes after the other.
    fn now_and_then(self) -> bool {
        self.together + self.apart >= ENOUGH && self.says().is_none()
    }

    fn says(self) -> Option<bool> {
        let n = self.together + self.apart;
        if n < ENOUGH {
            None
        } else if self.together * 2 > n {
            Some(true)
        } else if self.together * 10 < n {
            Some(false)
        } else {
            None
        }
    }
}

/// Caller and two called entries, the smaller number first.
pub type Triple = (u32, u32, u32);

/// Overlaps seen so far.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// By caller and called entries.
    pub pairs: HashMap<Triple, Overlaps>,
}

/// Most pairs of entries that are counted.
const MAX_TRIPLES: usize = 100_000;

impl Evidence {
    fn add(&mut self, triple: Triple, together: bool) {
        if self.pairs.len() >= MAX_TRIPLES && !self.pairs.contains_key(&triple) {
            return;
        }
        let pair = self.pairs.entry(triple).or_default();
        *(if together { &mut pair.together } else { &mut pair.apart }) += 1;
    }

    /// Takes over what `other` counted; `numbers` are those here of its entries.
    pub fn absorb(&mut self, other: Self, numbers: &Renumbered) {
        for ((caller, a, b), theirs) in other.pairs {
            let here = triple(numbers.entry(caller), numbers.entry(a), numbers.entry(b));
            let pair = self.pairs.entry(here).or_default();
            pair.together += theirs.together;
            pair.apart += theirs.apart;
        }
    }
}

fn triple(caller: u32, a: u32, b: u32) -> Triple {
    (caller, a.min(b), a.max(b))
}

/// Numbers the entries of all occurrences.
pub fn name_entries(forest: &mut Forest, catalog: &mut Catalog, entries_per_task: usize) {
    for occ in forest.occs.iter_mut().filter(|occ| !occ.is_gone && occ.origin != Origin::Originator) {
        occ.entry = catalog.entry(occ.task, occ.name, entries_per_task);
    }
}

/// Phases and asynchronous calls; `resolution_ns` is the clock's. Of occurrences whose reply is not known, and calls whose
/// sending is not, `habits` tell.
pub fn divide_phases(forest: &mut Forest, habits: &Habits, resolution_ns: i64) {
    find_one_way(forest, habits, resolution_ns);
    for o in 0..forest.occs.len() {
        set_reply(forest, o, resolution_ns);
        let mut occ = forest.occs[o];
        let said_ns = occ.reply_ns;
        let mut work_end = occ.end_ns.max(occ.reply_ns);
        for c in forest.calls_of(o) {
            let called = forest.occs[forest.calls[c].to as usize].entry;
            let call = &mut forest.calls[c];
            let is_by_habit = occ.is_partial || call.is_restored;
            let is_open = is_by_habit || call.is_at(occ.reply_ns, resolution_ns);
            let habit = if is_open { habits.phase(occ.entry, called, call.is_async) } else { None };
            let after = call.start_ns >= occ.reply_ns && (call.end_ns > call.start_ns || call.start_ns > occ.reply_ns);
            let possible =
                |open_ns: [i64; 2]| if is_by_habit { [false; 2] } else { phases_left_open(&occ, call, said_ns, open_ns, resolution_ns) };
            let (by_clocks, by_halves) = (possible(occ.open_ns), possible(occ.admitted_ns));
            if let Some(phase) = habit {
                call.phase = phase;
            } else if after && call.start_ns > occ.start_ns && (call.has_client || !call.is_async) {
                (call.phase, call.is_open) = (2, by_halves[0]);
            } else if !is_by_habit && call.end_ns > occ.reply_ns.saturating_add(resolution_ns) {
                let usual = habits.phase(occ.entry, called, false);
                let ends_within = !call.is_async && call.start_ns > occ.start_ns && ends_within(call, &occ, resolution_ns);
                match nearer_phase(call, said_ns, usual, by_halves) {
                    Some(phase) => (call.phase, call.is_open) = (phase, true),
                    None if ends_just_after(call, &occ) && habits.is_waited_for(occ.entry, called) => call.ends_late = true,
                    None if ends_within && habits.is_second(occ.entry, called) => (call.phase, call.is_open) = (2, true),
                    None => (call.is_async, call.ends_within) = (true, ends_within),
                }
            } else {
                call.is_open = by_clocks[1];
            }
            if call.is_open {
                let by_time = call.phase;
                let is_odd = habits.is_hardly_ever(by_time, occ.entry, called, call.is_async);
                call.phase = if is_odd && by_halves[usize::from(2 - by_time)] { 3 - by_time } else { by_time };
                let (is_before, is_after) = (call.end_ns <= occ.reply_ns, call.start_ns >= occ.reply_ns);
                match call.phase {
                    1 if !is_before => occ.reply_ns = call.end_ns.min(occ.end_ns),
                    2 if !is_after => occ.reply_ns = call.start_ns.max(said_ns.saturating_add(occ.admitted_ns[0])),
                    _ => {}
                }
            }
            if !call.is_async {
                work_end = work_end.max(call.end_ns);
            }
        }
        (forest.occs[o].reply_ns, forest.occs[o].work_end_ns) = (occ.reply_ns, work_end);
    }
    for (occ, _, end) in &forest.late_work {
        let occ = &mut forest.occs[*occ as usize];
        occ.work_end_ns = occ.work_end_ns.max(*end);
    }
}

/// Calls that are served after their clients have gone on.
fn find_one_way(forest: &mut Forest, habits: &Habits, resolution_ns: i64) {
    let Forest { calls, occs, .. } = forest;
    for call in calls.iter_mut().filter(|call| call.has_client && call.has_server && !call.is_async && call.is_timed) {
        let (from, to) = (&occs[call.from as usize], &occs[call.to as usize]);
        let is_after = to.is_in_order && to.is_measured && to.start_ns > call.end_ns.saturating_add(resolution_ns);
        if is_after && call.status == SpanStatus::Ok && habits.may_be_async(from.entry, to.entry) {
            (call.is_async, call.is_one_way) = (true, true);
        }
    }
}

/// In which phases a call may be, where the reply that the client's clock puts at `said_ns` may be off, or have been under way; neither where it
/// is the span's own end, which is by the clock of the calls, and was not, or clocks leave nothing open.
fn phases_left_open(occ: &Occ, call: &Call, said_ns: i64, open_ns: [i64; 2], resolution_ns: i64) -> [bool; 2] {
    let is_clients = said_ns < occ.end_ns || occ.under_way_ns > 0;
    if open_ns == [0; 2] || !is_clients || !ends_within(call, occ, resolution_ns) {
        return [false; 2];
    }
    let (later, earlier) = (call.end_ns.saturating_sub(said_ns), said_ns.saturating_sub(call.start_ns));
    let is_first = later <= open_ns[1].saturating_add(resolution_ns);
    let is_second = earlier <= open_ns[0].saturating_neg().saturating_add(resolution_ns) && call.start_ns > occ.start_ns;
    [is_first, is_second]
}

/// Whether a call, whose requesting half was seen, ends within the span that makes it.
fn ends_within(call: &Call, occ: &Occ, resolution_ns: i64) -> bool {
    call.has_client && call.end_ns <= occ.end_ns.saturating_add(resolution_ns)
}

/// Whether clocks leave the phase of a call open where there may be two: replies at the ends of spans are under way, too, but nothing says that work
/// went on after them.
pub fn is_open(forest: &Forest, call: &Call) -> bool {
    let from = &forest.occs[call.from as usize];
    call.is_open && (from.reply_ns < from.end_ns || from.under_way_ns == 0)
}

/// The phase of a call that seems to be under way at the reply: the `usual` one, else the nearer, of those that are possible.
fn nearer_phase(call: &Call, said_ns: i64, usual: Option<u8>, possible: [bool; 2]) -> Option<u8> {
    let nearer = if call.end_ns.saturating_sub(said_ns) < said_ns.saturating_sub(call.start_ns) { 1 } else { 2 };
    let candidates = [usual.unwrap_or(nearer), nearer, 3 - nearer];
    candidates.into_iter().find(|phase| !call.is_async && possible[usize::from(*phase) - 1])
}

/// Whether a call ends after the span that makes it, which replies at its end, by a small part of its own time.
fn ends_just_after(call: &Call, occ: &Occ) -> bool {
    let late = call.end_ns.saturating_sub(occ.end_ns);
    let is_slight = late <= call.end_ns.saturating_sub(call.start_ns) / SHARE;
    !call.is_async && call.has_client && occ.reply_ns == occ.end_ns && is_slight
}

fn set_reply(forest: &mut Forest, o: usize, resolution_ns: i64) {
    let occ = forest.occs[o];
    if occ.origin == Origin::Implied {
        return;
    }
    let mut reply = occ.reply_ns.min(occ.end_ns);
    let request = (occ.requested_by != NOBODY).then(|| forest.calls[occ.requested_by as usize]);
    if let Some(call) = request.filter(|call| call.has_client && !call.is_async) {
        let outlasts = occ.end_ns > call.end_ns.saturating_add(resolution_ns);
        // Who fails while the server goes on, and well, did not hear from it.
        let failed_alone = outlasts && call.status == SpanStatus::Error && occ.status == SpanStatus::Ok;
        let gave_up = failed_alone || matches!(call.status, SpanStatus::Timeout | SpanStatus::Cancelled);
        if gave_up && forest.occs[o].status == SpanStatus::Ok {
            (forest.occs[o].status, forest.occs[o].is_given_up) = (call.status, true);
        }
        if outlasts && !gave_up && call.end_ns >= occ.start_ns {
            reply = reply.min(call.end_ns);
        }
        if !gave_up && occ.under_way_ns > 0 {
            let earliest = call.end_ns.saturating_sub(occ.under_way_ns).max(occ.start_ns);
            let open_ns = [earliest.saturating_sub(reply).min(0), 0];
            (forest.occs[o].open_ns, forest.occs[o].admitted_ns) = (open_ns, open_ns);
        }
    }
    forest.occs[o].reply_ns = reply;
}

fn overlap(a: &Call, b: &Call, resolution_ns: i64) -> bool {
    let common = a.end_ns.min(b.end_ns).saturating_sub(a.start_ns.max(b.start_ns));
    let shorter = a.end_ns.saturating_sub(a.start_ns).min(b.end_ns.saturating_sub(b.start_ns));
    common > (RESOLUTIONS * resolution_ns).max(shorter / SHARE)
}

/// Waits of one phase that may be parallel (indices into [`Forest::calls`]).
fn waits(forest: &Forest, o: usize, phase: u8) -> Vec<usize> {
    let is_wait = |call: &Call| !call.is_async && !call.is_nested && call.phase == phase;
    forest.calls_of(o).filter(|c| is_wait(&forest.calls[*c])).collect()
}

/// Pairs of calls that belong together by rank: the i-th of one entry and the i-th of another, and neighbours of one entry.
fn ranked_pairs(forest: &Forest, calls: &[usize]) -> Vec<(usize, usize, Triple)> {
    let mut rank: HashMap<u32, u32> = HashMap::default();
    let entry = |c: usize| forest.occs[forest.calls[c].to as usize].entry;
    let ranks: Vec<u32> = calls
        .iter()
        .map(|c| {
            let rank = rank.entry(entry(*c)).or_insert(0);
            *rank += 1;
            *rank
        })
        .collect();
    let mut pairs = Vec::new();
    for (i, a) in calls.iter().enumerate() {
        for (j, b) in calls.iter().enumerate().skip(i + 1) {
            let same = entry(*a) == entry(*b);
            if (same && ranks[j] == ranks[i] + 1) || (!same && ranks[i] == ranks[j]) {
                let caller = forest.occs[forest.calls[*a].from as usize].entry;
                pairs.push((i, j, triple(caller, entry(*a), entry(*b))));
            }
        }
    }
    pairs
}

/// Counts the overlaps of a forest.
pub fn learn_overlaps(forest: &Forest, evidence: &mut Evidence, resolution_ns: i64) {
    for o in 0..forest.occs.len() {
        if forest.calls_of(o).len() < 2 {
            continue;
        }
        for phase in [1, 2] {
            let calls = waits(forest, o, phase);
            if calls.len() < 2 || calls.len() > MOST_PAIRED {
                continue;
            }
            for (i, j, triple) in ranked_pairs(forest, &calls) {
                evidence.add(triple, overlap(&forest.calls[calls[i]], &forest.calls[calls[j]], resolution_ns));
            }
        }
    }
}

/// Forks and their branches.
pub fn find_forks(forest: &mut Forest, evidence: &Evidence, resolution_ns: i64) {
    for o in 0..forest.occs.len() {
        if forest.calls_of(o).len() < 2 {
            continue;
        }
        let mut n_forks = 0;
        for phase in [1, 2] {
            let calls = waits(forest, o, phase);
            if calls.len() < 2 {
                continue;
            }
            let parallel = parallel_pairs(forest, &calls, evidence, resolution_ns);
            if !parallel.is_empty() {
                mark_branches(forest, &calls, &parallel, &mut n_forks);
            }
        }
    }
}

/// Pairs (positions in `calls`, the earlier first, sorted) that are parallel.
fn parallel_pairs(forest: &Forest, calls: &[usize], evidence: &Evidence, resolution_ns: i64) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let entry = |c: usize| forest.occs[forest.calls[c].to as usize].entry;
    for (j, b) in calls.iter().enumerate() {
        // Of very many calls, only those near one another are compared.
        for (i, a) in calls.iter().enumerate().take(j).skip(j.saturating_sub(MOST_PAIRED)) {
            let (first, second) = (&forest.calls[*a], &forest.calls[*b]);
            let caller = forest.occs[first.from as usize].entry;
            let says = evidence.pairs.get(&triple(caller, entry(*a), entry(*b))).and_then(|pair| pair.says());
            if says != Some(false) && overlap(first, second, resolution_ns) {
                pairs.push((i, j));
            }
        }
    }
    if calls.len() <= MOST_PAIRED {
        let usual = |triple: &Triple| evidence.pairs.get(triple).and_then(|pair| pair.says()) == Some(true);
        let ranked = ranked_pairs(forest, calls);
        pairs.extend(ranked.iter().filter(|(_, _, triple)| usual(triple)).map(|(i, j, _)| (*i, *j)));
        let now_and_then = |triple: &Triple| evidence.pairs.get(triple).is_some_and(|pair| pair.now_and_then());
        let open = ranked.into_iter().filter(|(_, _, triple)| now_and_then(triple)).map(|(i, j, _)| (i, j)).collect();
        add_side_by_side(forest, calls, &mut pairs, open);
        pairs.sort_unstable();
        pairs.dedup();
    }
    pairs
}

/// Adds to the parallel `pairs` those of `open`, which overlap now and then, of which one is parallel to what the other follows, or is followed by.
fn add_side_by_side(forest: &Forest, calls: &[usize], pairs: &mut Vec<(usize, usize)>, mut open: Vec<(usize, usize)>) {
    let follows = |j: usize, k: usize| forest.calls[calls[j]].start_ns >= forest.calls[calls[k]].end_ns;
    loop {
        let is_parallel = |a: usize, b: usize| pairs.contains(&(a.min(b), a.max(b)));
        let is_beside = |(i, j): &(usize, usize)| {
            (0..calls.len()).any(|k| is_parallel(*i, k) && follows(*j, k) || is_parallel(*j, k) && follows(k, *i))
        };
        let (found, left): (Vec<_>, Vec<_>) = open.into_iter().partition(is_beside);
        if found.is_empty() {
            return;
        }
        pairs.extend(found);
        open = left;
    }
}

fn mark_branches(forest: &mut Forest, calls: &[usize], parallel: &[(usize, usize)], n_forks: &mut u16) {
    let n = calls.len();
    let mut fork_of: Vec<usize> = (0..n).collect();
    fn root(fork_of: &mut [usize], mut at: usize) -> usize {
        while fork_of[at] != at {
            fork_of[at] = fork_of[fork_of[at]];
            at = fork_of[at];
        }
        at
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut is_parallel = vec![false; n];
    for (i, j) in parallel {
        before[*j].push(*i);
        (is_parallel[*i], is_parallel[*j]) = (true, true);
        let (a, b) = (root(&mut fork_of, *i), root(&mut fork_of, *j));
        fork_of[a.max(b)] = a.min(b);
    }
    let mut numbers: HashMap<usize, u16> = HashMap::default();
    let mut branches: Vec<u16> = vec![0; n];
    for j in (0..n).filter(|j| is_parallel[*j]) {
        let fork = root(&mut fork_of, j);
        let number = *numbers.entry(fork).or_insert_with(|| {
            let number = *n_forks;
            *n_forks = n_forks.saturating_add(1);
            number
        });
        let taken: Vec<u16> = before[j].iter().map(|i| branches[*i]).collect();
        branches[j] = (0..u16::MAX).find(|branch| !taken.contains(branch)).unwrap_or(0);
        forest.calls[calls[j]].branch = Some(Branch { fork: number, branch: branches[j] });
    }
}

/// Self times of all occurrences; of those that failed where their entry is not among those that `succeeded`.
pub fn measure(forest: &mut Forest, succeeded: &HashSet<u32>) {
    let mut late: HashMap<u32, Vec<(i64, i64)>> = HashMap::default();
    for (occ, start, end) in &forest.late_work {
        late.entry(*occ).or_default().push((*start, *end));
    }
    let mut elsewhere: HashMap<u32, Vec<(i64, i64)>> = HashMap::default();
    for (occ, start, end) in &forest.elsewhere {
        elsewhere.entry(*occ).or_default().push((*start, *end));
    }
    let (mut waits, mut both) = (Vec::new(), Vec::new());
    for o in 0..forest.occs.len() {
        let occ = forest.occs[o];
        let counts = occ.ended_well() || !succeeded.contains(&occ.entry);
        if occ.is_gone || !occ.is_measured || !counts || occ.origin == Origin::Originator {
            continue;
        }
        // When a message that nobody handled was taken is not seen; whoever waits for the broker sees how long that took.
        let is_waited_for = occ.requested_by != NOBODY && !forest.calls[occ.requested_by as usize].is_async;
        if occ.origin == Origin::Client(PeerKind::Queue) && !is_waited_for {
            continue;
        }
        let calls = &forest.calls[forest.calls_of(o)];
        let clipped = |call: &Call, from: i64, to: i64| (call.start_ns.clamp(from, to), call.end_ns.clamp(from, to));
        let first_end = occ.reply_ns.max(occ.start_ns);
        waits.clear();
        waits.extend(calls.iter().filter(|c| !c.is_async && c.phase == 1).map(|c| clipped(c, occ.start_ns, first_end)));
        let apart = || elsewhere.get(&(o as u32)).into_iter().flatten();
        waits.extend(apart().map(|(start, end)| (*start.max(&occ.start_ns), *end.min(&first_end))));
        let first = first_end.saturating_sub(occ.start_ns).saturating_sub(union_ns(&mut waits)) as f64;
        waits.clear();
        let second = |c: &&Call| !c.is_async && c.phase == 2;
        waits.extend(calls.iter().filter(second).map(|c| (c.start_ns, c.end_ns)));
        waits.extend(apart().filter(|(_, end)| *end > first_end).map(|(start, end)| (*start.max(&first_end), *end)));
        both.clear();
        both.extend_from_slice(&waits);
        if occ.end_ns > first_end {
            both.push((first_end, occ.end_ns));
        }
        let after = |(start, end): &(i64, i64)| ((*start).max(first_end), (*end).max(first_end));
        both.extend(late.get(&(o as u32)).into_iter().flatten().map(after).filter(|(start, end)| end > start));
        let has_second = !both.is_empty() || calls.iter().any(|c| c.phase == 2);
        let second = has_second.then(|| union_ns(&mut both).saturating_sub(union_ns(&mut waits)) as f64);
        // A wait of which the end is not known leaves open what was no wait.
        let is_known = |phase: u8| calls.iter().all(|c| c.is_async || c.phase != phase || c.is_timed);
        forest.occs[o].self_ns = [Some(first).filter(|_| is_known(1)), second.filter(|_| is_known(2))];
    }
}

/// Length of the union of intervals.
pub(super) fn union_ns(intervals: &mut [(i64, i64)]) -> i64 {
    intervals.sort_unstable();
    let mut covered = 0_i64;
    let mut end = i64::MIN;
    for (from, to) in intervals.iter() {
        let from = (*from).max(end);
        if *to > from {
            covered = covered.saturating_add(to.saturating_sub(from));
            end = *to;
        }
    }
    covered
}
