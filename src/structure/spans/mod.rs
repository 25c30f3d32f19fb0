//! Spans: distributed traces (OpenTelemetry, Jaeger, Zipkin) to interactions, with what they rest on.
//!
//! Input: spans one at a time in any order, whatever traces they are of; output: batches of [`Interactions`] of complete
//! recordings, and at the end a [`Quality`] and [`Hints`].
//!
//! ```text
//!  Span ─▶ catalog ─▶ live ─▶ tree ─▶ skew ─▶ restore ─▶ forest ─▶ replies ─▶ timing ─▶ emit ─▶ Interactions
//!          (label)   (group) (parents, (clocks) (losses) (calls)  (queues)  (phases,  (units)
//!                             kinds)                                        forks)      └─▶ load, account ─▶ Quality, Hints
//! ```
//!
//! | file | rules |
//! |---|---|
//! | [`options`](SpanOptions) | what can be asked for |
//! | `catalog`, `naming`, `generalize`, `statements`, `entries` | names of tasks and entries |
//! | `live` | which spans belong together, and when a trace is complete |
//! | `tree` | duplicates, parents, kinds, corrected times |
//! | `messages` | consumers and their producers, links |
//! | `nested` | requests inside requests |
//! | `offsets`, `skew`, `assume`, `correct` | differences between clocks in each period, times by one clock |
//! | `habits`, `restore` | what requests are like as a rule; lost spans |
//! | `forest` | occurrences and calls |
//! | `replies` | requests over queues |
//! | `timing` | phases, asynchronous calls, forks, self times |
//! | `emit` | recordings and units |
//! | `explain` | what the time of roots consists of |
//! | `load`, `pauses`, `hints` | threads, load, workload; what of it is said to the model |
//! | `observe` | call trees for profiles, requests of users |
//! | [`quality`], `account`, `text` | the quality report |
//!
//! What is learned from all traces (clocks, which calls overlap as a rule, which services have spans of their own) is learned
//! from a trace before it is used on it. While fewer spans are held than [`SpanOptions::hold_spans`], it is learned from all
//! of them before any is used, so that the result does not depend on the order of the spans nor on how they were divided
//! among several [`Spans`] that are merged.
//!
//! A group with a span that has no times ([`Span::is_timeless`]) is one without times: its entries and calls are those that
//! parents, kinds and links tell, in phase 1 unless such calls are of phase 2 as a rule; nothing else is learned from it.
//!
//! Assumptions beyond those of the specifications' mappings of spans (section 6 of each): only structure and means come from
//! spans; self time is elapsed time, hence a first estimate of demand from above.

mod account;
mod assume;
mod catalog;
mod correct;
mod emit;
mod entries;
mod explain;
mod forest;
mod generalize;
mod habits;
mod hints;
mod live;
mod load;
mod messages;
mod naming;
mod nested;
mod observe;
mod offsets;
mod options;
mod pauses;
pub mod quality;
mod replies;
mod restore;
mod skew;
mod statements;
mod text;
mod timing;
mod tree;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
};

pub use options::{EntryRule, InternalSpans, SpanOptions};
pub use quality::Quality;

use super::{
    interactions::{Hints, Interactions},
    observations::Observations,
};
use crate::trace::{
    hashed::HashSet,
    span::{Attribute, OTHER_TEXT, Span, SpanId, SpanKind, SpanStatus, SpanTexts, TraceId},
};
use account::Account;
use catalog::Catalog;
use emit::{Batch, Sums};
use entries::Entries;
use forest::{Forest, Occ, Origin};
use habits::Habits;
use live::{Bounds, Group, Live, Piece, UNFINISHED};
use load::Load;
use messages::MessageOperation;
use quality::{Notes, Reason, Sampling};
use skew::Skews;
use timing::Evidence;
use tree::{NOBODY, Role, Tree};

/// Links of one span that are followed.
const MAX_LINKS: usize = 128;
/// Times are kept within this of 1970 (about 73 years), so that no sum of them overflows.
const TIME_LIMIT_NS: i64 = 1 << 61;
/// The coarsest clock, nanoseconds.
const COARSEST_NS: i64 = 1_000_000;
/// Most trees that are kept from one look at all that is held to the next.
const TREES_KEPT: usize = 100_000;
/// Before anything is learned.
static NO_HABITS: LazyLock<Habits> = LazyLock::new(Habits::default);

/// What spans say beside the interactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What the model rests on.
    pub quality: Quality,
    /// Processors, threads and workloads.
    pub hints: Hints,
}

/// Occurrences and calls of a tree before phases are told, and what making them gave rise to.
struct Unphased {
    forest: Forest,
    notes: Notes,
}

impl Unphased {
    fn of(tree: &Tree, catalog: &mut Catalog, options: &SpanOptions) -> Self {
        let mut notes = Notes::default();
        let mut forest = Forest::of(tree, catalog, options, &mut notes);
        replies::join_replies(&mut forest, tree, &mut notes);
        timing::name_entries(&mut forest, catalog, options.entries_per_task);
        Self { forest, notes }
    }
}

/// Extraction from spans: unfinished traces, and sums over the finished ones.
#[derive(Clone, Debug)]
pub struct Spans {
    options: SpanOptions,
    bounds: Bounds,
    catalog: Catalog,
    live: Live,
    skews: Skews,
    evidence: Evidence,
    habits: Habits,
    /// Tasks with spans of their own.
    served: HashSet<u32>,
    /// Entries of which one occurrence ended well.
    succeeded: HashSet<u32>,
    load: Load,
    account: Account,
    notes: Notes,
    batch: Batch,
    /// Room for a forest with phases.
    divided: Forest,
    observations: Observations,
    /// Batches of others that were merged into this.
    waiting: Vec<Interactions>,
    n_read: u64,
    /// The largest of 1 ms, 1 µs, 1 ns that divides every start.
    resolution_ns: i64,
}

impl Default for Spans {
    fn default() -> Self {
        Self::new(SpanOptions::default())
    }
}

impl Spans {
    /// Nothing read yet. The options are to have been checked ([`SpanOptions::check`]).
    pub fn new(options: SpanOptions) -> Self {
        let bounds = Bounds {
            idle_timeout_ns: options.idle_timeout_ns,
            hold_spans: options.hold_spans,
            max_open_spans: options.max_open_spans,
            max_trace_spans: options.max_trace_spans,
            completed_remembered: options.completed_remembered,
        };
        Self {
            options,
            bounds,
            catalog: Catalog::new(),
            live: Live::default(),
            skews: Skews::default(),
            evidence: Evidence::default(),
            habits: Habits::default(),
            served: HashSet::default(),
            succeeded: HashSet::default(),
            load: Load::default(),
            account: Account::default(),
            notes: Notes::default(),
            batch: Batch::default(),
            divided: Forest::default(),
            observations: Observations::default(),
            waiting: Vec::new(),
            n_read: 0,
            resolution_ns: COARSEST_NS,
        }
    }

    /// The same, which also hands over to `observations` what is wanted there.
    #[must_use]
    pub fn observing(self, observations: Observations) -> Self {
        Self { observations, ..self }
    }

    /// What was observed of the traces completed so far.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// What was observed of the traces completed so far, to be had once.
    pub fn take_observations(&mut self) -> Observations {
        std::mem::take(&mut self.observations)
    }

    /// Takes a span, whose numbers are of `texts`; traces that are complete by now go to `sink`, in batches.
    ///
    /// The texts have to be those of the spans before, with more added at most; else call [`Self::forget_texts`] first.
    pub fn feed(&mut self, span: &Span, texts: &SpanTexts, sink: &mut dyn FnMut(Interactions)) {
        self.n_read += 1;
        let start_ns = span.start_ns.clamp(-TIME_LIMIT_NS, TIME_LIMIT_NS);
        while !span.is_timeless && start_ns % self.resolution_ns != 0 {
            self.resolution_ns /= 1000;
        }
        let label = self.catalog.label_of(span, texts, &self.options);
        // Texts beyond the bound are not known to be alike.
        let known =
            |attribute: Attribute| span.attribute(attribute).map(|number| texts.texts.name(number)).filter(|text| *text != OTHER_TEXT);
        let user = |(place, (attribute, _)): (usize, &(Attribute, _))| Some(observe::user_digest(digest(known(*attribute)?), place));
        let user = observe::USER_ATTRIBUTES.iter().enumerate().find_map(user).unwrap_or(0);
        let piece = Piece {
            id: span.id,
            parent: span.parent.unwrap_or_default(),
            start_ns,
            duration_ns: span.duration_ns.map_or(UNFINISHED, |ns| ns.clamp(-1, TIME_LIMIT_NS)),
            label,
            trace: 0,
            user,
            conversation: known(Attribute::MessagingConversation).map_or(0, digest),
            weight: span.adjusted_count.filter(|w| w.is_finite() && *w >= 1.0).unwrap_or(0.0) as f32,
            kind: span.kind,
            operation: known(Attribute::MessagingOperation).map_or(MessageOperation::Other, MessageOperation::of),
            status: span.status,
            has_parent: span.parent.is_some(),
            shared: span.shared,
            is_timeless: span.is_timeless,
        };
        let links: Vec<(TraceId, SpanId)> = span.links.iter().take(MAX_LINKS).map(|link| (link.trace, link.span)).collect();
        let name = || format!("{}/{}", span.trace, span.id);
        if span.links.len() > MAX_LINKS {
            self.notes.count("links_cut", name);
        }
        let added = self.live.add(span.trace, piece, &links, &self.bounds, &mut self.notes);
        if added.late {
            self.notes.count("late_span", name);
        }
        if added.size >= self.bounds.max_trace_spans
            && let Some(group) = self.live.pop_large(span.trace, &self.bounds)
        {
            self.complete(group, sink);
        }
        while let Some(group) = self.live.pop(&self.bounds) {
            self.complete(group, sink);
        }
    }

    /// The next spans' numbers are of other texts.
    pub fn forget_texts(&mut self) {
        self.catalog.forget_texts();
    }

    /// Number of spans that are held as their traces are not complete.
    pub fn n_held(&self) -> usize {
        self.live.n_held()
    }

    /// Takes over what `other`, with the same options, read: its unfinished traces are joined to those here. Nothing is completed, so
    /// that more may be held than the bounds allow until [`Self::complete_merged`].
    pub fn merge(&mut self, other: Self) {
        let numbers = self.catalog.absorb(&other.catalog, self.options.entries_per_task);
        self.live.absorb(other.live, &numbers.labels, &self.bounds, &mut self.notes);
        self.skews.absorb(other.skews, &numbers.names);
        self.evidence.absorb(other.evidence, &numbers);
        self.habits.absorb(other.habits, &numbers);
        self.served.extend(other.served.into_iter().map(|task| numbers.names[task as usize]));
        self.succeeded.extend(other.succeeded.into_iter().map(|entry| numbers.entry(entry)));
        self.load.absorb(other.load, &numbers);
        self.account.absorb(other.account, &numbers);
        self.notes.merge(other.notes);
        self.observations.merge(other.observations);
        let mut batch = other.batch;
        self.waiting.extend(other.waiting);
        self.waiting.push(batch.take());
        self.n_read += other.n_read;
        self.resolution_ns = self.resolution_ns.min(other.resolution_ns);
    }

    /// Completes what is over the bounds after a merge. While no part had to complete anything, traces may be divided among the
    /// parts, and up to [`SpanOptions::max_open_spans`] are held; after that a trace ends as it does in one stream.
    pub fn complete_merged(&mut self, sink: &mut dyn FnMut(Interactions)) {
        let bounds = match self.live.has_completed() {
            true => self.bounds,
            false => Bounds { hold_spans: self.bounds.max_open_spans, ..self.bounds },
        };
        while let Some(group) = self.live.pop(&bounds) {
            self.complete(group, sink);
        }
    }

    /// Completes all traces that are held.
    pub fn flush(&mut self, sink: &mut dyn FnMut(Interactions)) {
        let mut groups = self.live.take_all(&self.bounds);
        // A tree takes far more room than its group: of very many those beyond the bound are made again when they are wanted.
        let mut trees: Vec<Tree> = Vec::with_capacity(groups.len().min(TREES_KEPT));
        for group in &mut groups {
            let is_kept = trees.len() < TREES_KEPT;
            let whole = if is_kept { group.take_spans() } else { group.clone() };
            let tree = Tree::of(whole, &self.catalog, &mut self.notes);
            self.learn_clocks(&tree);
            if is_kept {
                trees.push(tree);
            }
        }
        self.skews.update(&self.catalog);
        self.catalog.make_room(trees.iter(), self.options.entries_per_task);
        for tree in &mut trees {
            tree.correct(&self.skews, &self.catalog, &mut self.notes);
            self.learn(tree);
        }
        for group in groups.iter().skip(TREES_KEPT) {
            let mut tree = Tree::of(group.clone(), &self.catalog, &mut Notes::default());
            tree.correct(&self.skews, &self.catalog, &mut self.notes);
            self.learn(&tree);
        }
        let mut trees = trees.into_iter();
        for group in groups {
            let (continued, early) = (group.continued, group.early);
            let tree = trees.next().unwrap_or_else(|| {
                let mut tree = Tree::of(group, &self.catalog, &mut Notes::default());
                tree.correct(&self.skews, &self.catalog, &mut Notes::default());
                tree
            });
            self.add(tree, None, continued, early);
            self.batch.hand_over(false, sink);
        }
        self.waiting.drain(..).filter(|batch| !batch.traces.is_empty()).for_each(&mut *sink);
        self.batch.hand_over(true, sink);
    }

    /// Completes all, and says what the interactions handed over rest on.
    pub fn finish(mut self, sink: &mut dyn FnMut(Interactions)) -> Outcome {
        self.flush(sink);
        Outcome { quality: self.quality(), hints: self.hints() }
    }

    /// What the traces completed so far rest on.
    pub fn quality(&self) -> Quality {
        let load = self.load.finished();
        let mut quality = self.account.quality(&self.catalog, &load, &self.skews, &self.evidence, &self.notes);
        self.note_load(&load, &mut quality);
        quality.spans.read = self.n_read;
        quality.spans.used = self.n_read - self.notes.n_set_aside() - self.live.n_held() as u64;
        let Sampling { said, recordings, .. } = quality.sampling;
        if said > 0 && said < recordings && self.options.sampling_rate.is_none() {
            let reason = Reason { count: recordings - said, examples: self.account.unsaid.clone() };
            quality.spans.remarks.insert("sampling_not_said".to_owned(), reason);
        }
        let Entries { over_bound, generalised, .. } = &self.catalog.entries;
        for (code, counts) in [("other_entries", over_bound), ("many_paths", generalised)] {
            let mut counts: Vec<(&str, u64)> = counts.iter().map(|(task, n)| (self.catalog.names.name(*task), *n)).collect();
            counts.sort_unstable();
            for (task, n) in counts {
                let reason = quality.spans.remarks.entry(code.to_owned()).or_default();
                reason.count += n;
                if reason.examples.len() < quality::EXAMPLES_KEPT {
                    reason.examples.push(task.to_owned());
                }
            }
        }
        quality
    }

    /// Remarks on what the workload rests on.
    fn note_load(&self, load: &Load, quality: &mut Quality) {
        let pause = |(from, to): &pauses::Gap| format!("{:.3} s from {:.3} s", (to - from) as f64 * 1e-9, *from as f64 * 1e-9);
        let pauses = load.pauses();
        let mut sampled: Vec<&str> = load.sampled_sessions().map(|process| self.catalog.names.name(process)).collect();
        sampled.sort_unstable();
        let (n_pauses, n_sampled) = (pauses.len() as u64, sampled.len() as u64);
        let longest_first = || {
            let mut pauses = pauses.clone();
            pauses.sort_unstable_by_key(|(from, to)| (from - to, *from));
            pauses.iter().take(quality::EXAMPLES_KEPT).map(pause).collect()
        };
        let sampled = sampled.into_iter().take(quality::EXAMPLES_KEPT).map(str::to_owned).collect();
        for (code, count, examples) in [("recording_pauses", n_pauses, longest_first()), ("sampled_sessions", n_sampled, sampled)] {
            if count > 0 {
                quality.spans.remarks.insert(code.to_owned(), Reason { count, examples });
            }
        }
    }

    fn complete(&mut self, group: Group, sink: &mut dyn FnMut(Interactions)) {
        let (continued, early) = (group.continued, group.early);
        let mut tree = Tree::of(group, &self.catalog, &mut self.notes);
        self.learn_clocks(&tree);
        self.skews.update_if_stale(&self.catalog);
        tree.correct(&self.skews, &self.catalog, &mut self.notes);
        let as_read = self.learn(&tree);
        self.add(tree, Some(as_read), continued, early);
        self.waiting.drain(..).filter(|batch| !batch.traces.is_empty()).for_each(&mut *sink);
        self.batch.hand_over(false, sink);
    }

    /// Learns from a tree as it was read.
    fn learn_clocks(&mut self, tree: &Tree) {
        for request in tree.requests(&self.catalog) {
            self.skews.learn(&request, &self.catalog);
        }
        self.skews.served_only.learn(tree, &self.catalog);
        for i in (0..tree.len()).filter(|i| tree.role[*i] == Role::Entry) {
            self.served.insert(self.catalog.label(tree.pieces[i].label).task);
        }
    }

    /// Learns from a tree with corrected clocks what is used on other traces, too; its occurrences and calls, without phases.
    fn learn(&mut self, tree: &Tree) -> Unphased {
        let as_read = Unphased::of(tree, &mut self.catalog, &self.options);
        let forest = &mut self.divided;
        forest.clone_from(&as_read.forest);
        timing::divide_phases(forest, &NO_HABITS, self.resolution_ns);
        if !tree.is_timeless {
            timing::learn_overlaps(forest, &mut self.evidence, self.resolution_ns);
        }
        let tells = |occ: &&Occ| !matches!(occ.origin, Origin::Client(_)) || !self.served.contains(&occ.task);
        let well = forest.occs.iter().filter(|occ| !occ.is_gone && occ.is_measured && occ.ended_well()).filter(tells);
        self.succeeded.extend(well.map(|occ| occ.entry));
        self.habits.learn(forest, tree, &self.catalog, self.resolution_ns);
        as_read
    }

    /// Adds the recordings of a tree to the batch; `as_read` is what [`Self::learn`] made of it, where that was kept.
    fn add(&mut self, mut tree: Tree, as_read: Option<Unphased>, continued: bool, early: bool) {
        let Self { catalog, account, load, options, observations, notes, habits, served, succeeded, evidence, .. } = self;
        if early {
            account.traces.early += 1;
            notes.count("completed_early", || tree.traces[0].to_string());
        }
        let is_as_read = !restore::restore(&mut tree, habits, catalog, notes);
        tree.count_unused(notes);
        let found = as_read.filter(|_| is_as_read).unwrap_or_else(|| Unphased::of(&tree, catalog, options));
        notes.merge(found.notes);
        let mut forest = found.forest;
        for occ in forest.occs.iter().filter(|occ| !occ.is_gone) {
            catalog.count_if_other(occ.entry, occ.task, occ.name);
        }
        timing::divide_phases(&mut forest, habits, self.resolution_ns);
        for call in &forest.calls {
            let piece = &tree.pieces[call.piece as usize];
            if call.is_one_way {
                notes.count("served_after_client", || tree.name(call.piece as usize));
            } else if call.is_async && !matches!(piece.kind, SpanKind::Producer | SpanKind::Consumer) && call.has_server {
                notes.count("outlives_caller", || tree.name(call.piece as usize));
            }
            if call.ends_late {
                notes.count("ends_after_caller", || tree.name(call.piece as usize));
            }
            if timing::is_open(&forest, call) {
                notes.count("clock_leaves_phase_open", || tree.name(call.piece as usize));
            }
        }
        for occ in forest.occs.iter_mut().filter(|occ| matches!(occ.origin, Origin::Client(_)) && served.contains(&occ.task)) {
            occ.is_measured = false;
        }
        for occ in forest.occs.iter_mut().filter(|occ| matches!(occ.origin, Origin::Client(_) | Origin::Implied)) {
            occ.is_lost = occ.status == SpanStatus::Ok && served.contains(&occ.task) && succeeded.contains(&occ.entry);
            if occ.is_lost && !occ.is_gone {
                notes.count("requests_not_known", || tree.name(occ.piece as usize));
            }
        }
        timing::find_forks(&mut forest, evidence, self.resolution_ns);
        timing::measure(&mut forest, succeeded);
        for occ in forest.occs.iter().filter(|occ| !occ.is_gone && !occ.ended_well() && occ.self_ns[0].is_some()) {
            notes.count("only_failures", || tree.name(occ.piece as usize));
        }
        debug_assert!(forest.occs.iter().all(|occ| occ.is_gone || occ.entry != NOBODY || occ.origin == Origin::Originator));
        let mut sums = Sums { catalog, account, load, options, observations };
        self.batch.add(&tree, &forest, continued, &mut sums);
    }
}

/// A digest of a text, never 0.
fn digest(text: &str) -> u32 {
    let mut digest = DefaultHasher::new();
    text.hash(&mut digest);
    (digest.finish() as u32).max(1)
}
