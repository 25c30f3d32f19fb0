//! Unfinished traces, held until they are complete, in bounded memory.
//!
//! A *group* is what is completed together: a trace, or traces that links join. A group is complete when the stream's time
//! (the latest start seen, but for single leaps of more than an hour) has passed its last span by the time-out, or when a
//! bound is reached (then early, which is counted). Spans without times count as of the stream's time. The order of
//! completion is that of the groups' last spans.
//!
//! Bounds are in spans, but a trace takes room beside them: a group counts as [`TRACE_COUNTS`] spans for each of its traces, or as its
//! links, where these are more than its spans.
//!
//! A trace whose id has 128 bits, and one whose id is the lower 64 of these, are the same while either is held: exporters that keep
//! the lower half only are mixed with others (as with Zipkin's `STRICT_TRACE_ID=false`).

use std::collections::VecDeque;

use super::{messages::MessageOperation, quality::Notes};
use crate::trace::{
    hashed::{HashMap, HashSet},
    span::{SpanId, SpanKind, SpanStatus, TraceId},
};

/// Leap of the stream's time that one span alone cannot make.
const LEAP_NS: i64 = 3_600_000_000_000;

/// Lower halves of ids below this were counted, not drawn at random: whole ids that share one are different traces.
const LEAST_DRAWN: u64 = 1 << 32;

/// Most traces that links join.
const MAX_JOINED_TRACES: usize = 1000;

/// Spans that a trace counts as in the bounds, if it has fewer: about what it takes beside them.
const TRACE_COUNTS: usize = 3;

/// Marks a duration that is not known.
pub const UNFINISHED: i64 = i64::MIN;

/// A span, compact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Its id.
    pub id: SpanId,
    /// Its parent's id, where `has_parent`.
    pub parent: SpanId,
    /// Start, nanoseconds.
    pub start_ns: i64,
    /// Duration as read, nanoseconds, or [`UNFINISHED`].
    pub duration_ns: i64,
    /// Number of its label.
    pub label: u32,
    /// Its trace (index into [`Group::traces`]).
    pub trace: u32,
    /// Digest of what names the user ([`super::observe`]), 0 for none.
    pub user: u32,
    /// Digest of the conversation, 0 for none.
    pub conversation: u32,
    /// How many it stands for; 0 where not said.
    pub weight: f32,
    /// Its kind.
    pub kind: SpanKind,
    /// What it does with a message.
    pub operation: MessageOperation,
    /// How it ended.
    pub status: SpanStatus,
    /// Whether there is a parent.
    pub has_parent: bool,
    /// Whether it is the server's half of a shared span.
    pub shared: bool,
    /// Whether nothing says when it was.
    pub is_timeless: bool,
}

/// A link from a piece to a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceLink {
    /// Trace of the piece (index into [`Group::traces`]).
    pub trace: u32,
    /// Its id.
    pub id: SpanId,
    /// Trace of the span linked to (index into [`Group::traces`]).
    pub to_trace: u32,
    /// Its id.
    pub to: SpanId,
}

/// Traces that are completed together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The traces.
    pub traces: Vec<TraceId>,
    /// Their spans.
    pub pieces: Vec<Piece>,
    /// Their links.
    pub links: Vec<PieceLink>,
    /// Whether a trace of it was completed before.
    pub continued: bool,
    /// Whether it was completed before its time.
    pub early: bool,
    last_seen_ns: i64,
}

impl Group {
    fn trace_number(&mut self, trace: TraceId) -> u32 {
        let known = self.traces.iter().position(|t| *t == trace);
        known.unwrap_or_else(|| {
            self.traces.push(trace);
            self.traces.len() - 1
        }) as u32
    }

    /// All of it; only how it was completed is left here.
    pub fn take_spans(&mut self) -> Self {
        let (continued, early) = (self.continued, self.early);
        std::mem::replace(self, Self { continued, early, ..Self::default() })
    }

    /// Spans that it counts as in the bounds.
    fn size(&self) -> usize {
        self.pieces.len().max(self.links.len()).max(TRACE_COUNTS * self.traces.len())
    }

    /// What groups are put in order by: the first start, then the smallest trace.
    pub fn key(&self) -> (i64, TraceId) {
        let start = self.pieces.iter().map(|p| p.start_ns).min().unwrap_or(0);
        (start, self.traces.iter().copied().min().unwrap_or_default())
    }
}

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Whether its trace had been completed before.
    pub late: bool,
    /// Spans of its group.
    pub size: usize,
}

/// Bounds of what is held.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// As [`super::SpanOptions::idle_timeout_ns`].
    pub idle_timeout_ns: i64,
    /// As [`super::SpanOptions::hold_spans`].
    pub hold_spans: usize,
    /// As [`super::SpanOptions::max_open_spans`].
    pub max_open_spans: usize,
    /// As [`super::SpanOptions::max_trace_spans`].
    pub max_trace_spans: usize,
    /// As [`super::SpanOptions::completed_remembered`].
    pub completed_remembered: usize,
}

/// The unfinished traces.
#[derive(Clone, Debug, Default)]
pub struct Live {
    groups: HashMap<u64, Group>,
    group_of: HashMap<TraceId, u64>,
    /// By the lower half of their ids: upper halves of traces held with ids of more, and whether spans had the lower half only.
    whole_ids: HashMap<u64, (u64, bool)>,
    /// Groups with the last span that they had when they were put here.
    queue: VecDeque<(u64, i64)>,
    next_group: u64,
    n_held: usize,
    /// What the groups count as in the bounds.
    size: usize,
    now_ns: Option<i64>,
    leaped: bool,
    /// Whether traces were completed while others were still to come.
    has_completed: bool,
    completed: HashSet<TraceId>,
    completed_order: VecDeque<TraceId>,
}

impl Live {
    /// Number of spans held.
    pub fn n_held(&self) -> usize {
        self.n_held
    }

    /// Whether traces were completed while others were still to come, here or where some of this came from.
    pub fn has_completed(&self) -> bool {
        self.has_completed
    }

    /// Whether the trace was completed before.
    pub fn is_completed(&self, trace: TraceId) -> bool {
        self.completed.contains(&trace)
    }

    /// Takes a span with the traces and spans it links to; `notes` takes the links that lead out of what is completed together.
    pub fn add(&mut self, trace: TraceId, mut piece: Piece, links: &[(TraceId, SpanId)], bounds: &Bounds, notes: &mut Notes) -> Added {
        if !piece.is_timeless {
            self.advance(piece.start_ns);
        }
        let (trace, mut number, late) = match self.group_of.get(&trace) {
            Some(number) => (trace, *number, false),
            None => {
                let trace = self.whole_id(trace, notes);
                let late = !self.group_of.contains_key(&trace) && self.is_completed(trace);
                (trace, self.group_number(trace), late)
            }
        };
        let links: Vec<(TraceId, SpanId)> = links.iter().map(|(target, id)| (self.whole_id(*target, notes), *id)).collect();
        for (target, _) in &links {
            if *target != trace && !self.completed.contains(target) {
                number = self.join(number, *target, bounds);
            }
        }
        let now = self.now_ns.unwrap_or(piece.start_ns);
        let start = if piece.is_timeless { now } else { piece.start_ns };
        let Some(group) = self.groups.get_mut(&number) else { return Added { late, size: 0 } };
        let size = group.size();
        group.continued |= late;
        group.last_seen_ns = group.last_seen_ns.max(start).min(now);
        piece.trace = group.trace_number(trace);
        for (target, id) in &links {
            let Some(to) = group.traces.iter().position(|t| t == target) else {
                let code = if self.completed.contains(target) { "late_link" } else { "link_not_joined" };
                notes.count(code, || format!("{trace}/{} to {target}/{id}", piece.id));
                continue;
            };
            group.links.push(PieceLink { trace: piece.trace, id: piece.id, to_trace: to as u32, to: *id });
        }
        if group.pieces.is_empty() {
            // Very many traces may have one span each.
            group.pieces.reserve_exact(1);
        }
        group.pieces.push(piece);
        self.n_held += 1;
        self.size += group.size() - size;
        Added { late, size: group.pieces.len() }
    }

    /// The id that a trace is held by: the whole one where a part of it is known by its lower half.
    fn whole_id(&mut self, trace: TraceId, notes: &mut Notes) -> TraceId {
        let lower = trace.0 as u64;
        if lower < LEAST_DRAWN || self.group_of.contains_key(&trace) {
            return trace;
        }
        let short = TraceId(u128::from(lower));
        if trace == short {
            let Some((upper, is_mixed)) = self.whole_ids.get_mut(&lower) else { return trace };
            let whole = TraceId(u128::from(*upper) << 64 | u128::from(lower));
            if !std::mem::replace(is_mixed, true) {
                notes.count("short_trace_id", || whole.to_string());
            }
            return whole;
        }
        if let Some(number) = self.group_of.remove(&short) {
            notes.count("short_trace_id", || trace.to_string());
            self.group_of.insert(trace, number);
            self.whole_ids.insert(lower, (upper_half(trace), true));
            let held = self.groups.get_mut(&number).into_iter().flat_map(|group| &mut group.traces);
            held.filter(|held| **held == short).for_each(|held| *held = trace);
        }
        trace
    }

    /// The stream's time: a span alone cannot put it forward by more than an hour, two in turn can.
    fn advance(&mut self, start_ns: i64) {
        let now = self.now_ns.get_or_insert(start_ns);
        let leap = start_ns.saturating_sub(*now) > LEAP_NS;
        if start_ns > *now && (!leap || self.leaped) {
            *now = start_ns;
        }
        self.leaped = leap;
    }

    /// Notes that a trace is of group `number`.
    fn hold(&mut self, trace: TraceId, number: u64) {
        self.group_of.insert(trace, number);
        let upper = upper_half(trace);
        if upper > 0 && trace.0 as u64 >= LEAST_DRAWN {
            self.whole_ids.entry(trace.0 as u64).or_insert((upper, false));
        }
    }

    fn group_number(&mut self, trace: TraceId) -> u64 {
        if let Some(number) = self.group_of.get(&trace) {
            return *number;
        }
        let number = self.next_group;
        self.next_group += 1;
        let now = self.now_ns.unwrap_or(0);
        let group = Group { traces: vec![trace], last_seen_ns: i64::MIN, ..Group::default() };
        self.size += group.size();
        self.groups.insert(number, group);
        self.hold(trace, number);
        self.queue.push_back((number, now));
        number
    }

    /// Joins the group of `target`, which need not be there yet, to group `number`; the number of the joint group.
    fn join(&mut self, number: u64, target: TraceId, bounds: &Bounds) -> u64 {
        let Some(other) = self.group_of.get(&target).copied() else {
            if let Some(group) = self.groups.get_mut(&number).filter(|g| g.traces.len() < MAX_JOINED_TRACES) {
                let size = group.size();
                group.traces.push(target);
                self.size += group.size() - size;
                self.hold(target, number);
            }
            return number;
        };
        let size = |n: u64| self.groups.get(&n).map_or(0, |g| g.pieces.len());
        let n_traces = |n: u64| self.groups.get(&n).map_or(0, |g| g.traces.len());
        let too_large = size(other) + size(number) > bounds.max_trace_spans || n_traces(other) + n_traces(number) > MAX_JOINED_TRACES;
        if other == number || too_large {
            return number;
        }
        let (keep, gone) = if size(other) > size(number) { (other, number) } else { (number, other) };
        if let Some(gone) = self.remove(gone) {
            self.append(keep, gone);
        }
        keep
    }

    fn remove(&mut self, number: u64) -> Option<Group> {
        let group = self.groups.remove(&number)?;
        self.size -= group.size();
        Some(group)
    }

    /// Puts all of `gone` into group `keep`.
    fn append(&mut self, keep: u64, gone: Group) {
        let Some(group) = self.groups.get_mut(&keep) else { return };
        let size = group.size();
        let numbers: Vec<u32> = gone.traces.iter().map(|trace| group.trace_number(*trace)).collect();
        group.pieces.extend(gone.pieces.into_iter().map(|p| Piece { trace: numbers[p.trace as usize], ..p }));
        let renumber = |l: PieceLink| PieceLink { trace: numbers[l.trace as usize], to_trace: numbers[l.to_trace as usize], ..l };
        group.links.extend(gone.links.into_iter().map(renumber));
        group.last_seen_ns = group.last_seen_ns.max(gone.last_seen_ns);
        group.continued |= gone.continued;
        group.early |= gone.early;
        self.size += group.size() - size;
        for trace in &gone.traces {
            self.hold(*trace, keep);
        }
    }

    /// The next group that is complete, if any.
    pub fn pop(&mut self, bounds: &Bounds) -> Option<Group> {
        while self.size > bounds.hold_spans.min(bounds.max_open_spans) {
            let (number, _) = *self.queue.front()?;
            let Some(group) = self.groups.get(&number) else {
                self.queue.pop_front();
                continue;
            };
            let last_seen = group.last_seen_ns;
            let is_idle = self.now_ns.is_some_and(|now| now.saturating_sub(last_seen) > bounds.idle_timeout_ns);
            if is_idle {
                return self.take_front(bounds);
            }
            let over = self.size > bounds.max_open_spans;
            // A group that was added to since it was put in the queue goes to its end once.
            if last_seen > self.queue.front()?.1 {
                self.queue.pop_front();
                self.queue.push_back((number, last_seen));
                continue;
            }
            if !over {
                return None;
            }
            let mut group = self.take_front(bounds)?;
            group.early = true;
            return Some(group);
        }
        None
    }

    /// The group of `trace` where it has grown too large.
    pub fn pop_large(&mut self, trace: TraceId, bounds: &Bounds) -> Option<Group> {
        let number = *self.group_of.get(&trace)?;
        if self.groups.get(&number)?.pieces.len() < bounds.max_trace_spans {
            return None;
        }
        let mut group = self.take(number, bounds)?;
        group.early = true;
        Some(group)
    }

    fn take_front(&mut self, bounds: &Bounds) -> Option<Group> {
        let (number, _) = self.queue.pop_front()?;
        self.has_completed = true;
        self.take(number, bounds)
    }

    fn take(&mut self, number: u64, bounds: &Bounds) -> Option<Group> {
        let group = self.remove(number)?;
        self.n_held -= group.pieces.len();
        let mut has_spans = vec![false; group.traces.len()];
        group.pieces.iter().for_each(|piece| has_spans[piece.trace as usize] = true);
        for (trace, has_spans) in group.traces.iter().zip(has_spans) {
            self.group_of.remove(trace);
            let lower = trace.0 as u64;
            if self.whole_ids.get(&lower).is_some_and(|(upper, _)| *upper == upper_half(*trace)) {
                self.whole_ids.remove(&lower);
            }
            if bounds.completed_remembered > 0 && has_spans && self.completed.insert(*trace) {
                self.completed_order.push_back(*trace);
            }
        }
        while self.completed_order.len() > bounds.completed_remembered {
            if let Some(oldest) = self.completed_order.pop_front() {
                self.completed.remove(&oldest);
            }
        }
        Some(group)
    }

    /// All groups, by their first start.
    pub fn take_all(&mut self, bounds: &Bounds) -> Vec<Group> {
        let mut numbers: Vec<u64> = self.groups.keys().copied().collect();
        numbers.sort_unstable();
        let groups = numbers.into_iter().filter_map(|number| self.take(number, bounds)).filter(|group| !group.pieces.is_empty());
        let mut groups: Vec<Group> = groups.collect();
        self.queue.clear();
        groups.sort_by_cached_key(Group::key);
        groups
    }

    /// Takes over what `other` holds; `labels` are the numbers here of its labels. The oldest are completed first thereafter.
    pub fn absorb(&mut self, other: Self, labels: &[u32], bounds: &Bounds, notes: &mut Notes) {
        if let Some(now) = other.now_ns {
            self.now_ns = Some(self.now_ns.map_or(now, |here| here.max(now)));
        }
        for trace in other.completed_order {
            if self.completed.insert(trace) {
                self.completed_order.push_back(trace);
            }
        }
        let mut groups: Vec<(u64, Group)> = other.groups.into_iter().collect();
        groups.sort_by_key(|(number, _)| *number);
        for (_, mut group) in groups {
            group.pieces.iter_mut().for_each(|piece| piece.label = labels[piece.label as usize]);
            for trace in &mut group.traces {
                *trace = self.whole_id(*trace, notes);
            }
            let Some(first) = group.traces.first().copied() else { continue };
            let mut number = self.group_number(first);
            for trace in group.traces.iter().skip(1) {
                number = self.join(number, *trace, bounds);
                if self.group_of.get(trace) != Some(&number) {
                    notes.count("link_not_joined", || format!("{first} to {trace}"));
                }
            }
            self.n_held += group.pieces.len();
            self.append(number, group);
        }
        self.has_completed |= other.has_completed;
        let mut queue: Vec<(u64, i64)> = self.groups.iter().map(|(number, group)| (*number, group.last_seen_ns)).collect();
        queue.sort_unstable_by_key(|(number, last_seen_ns)| (*last_seen_ns, *number));
        self.queue = queue.into();
    }
}

fn upper_half(trace: TraceId) -> u64 {
    (trace.0 >> 64) as u64
}
