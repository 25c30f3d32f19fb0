//! TLC: angio traces to interactions by matching templates of communication.
//!
//! Input: the events `(j, k, m, l / i, v)` of distributed operations ([`crate::trace::angio`]), in any order; output: for each
//! recording its [`Interactions`], and beside them a [`TlcReport`] on activities and their demands. Source: Hrischuk, Woodside,
//! Rolia, Iversen, *Trace-based load characterization for generating software performance models*, IEEE Trans. Software Eng. 25
//! (1999), sections 3 to 6.
//!
//! ```text
//! events ─▶ collect, live (until a recording is complete) ─▶ analysis: toeg (graph) ─▶ control + templates (sub-model) ─▶ emit (interactions)
//! ```
//!
//! | symbol | is | where |
//! |---|---|---|
//! | j | scenario | `Live::scenario`; a recording is one run of it |
//! | k, m | thread and its node counter: a chain of causes, across tasks | `Node::thread`, `Node::thread_node` |
//! | l | label: begin, activity, fork of a thread, end | `Node::label`, `Node::child` |
//! | i, v | task and its node counter, over all scenarios | `Node::task`, `Node::task_node` |
//! | Eₙ | entry: one execution of a service, by type Cu, R, A or F | `control::Entry`; an `Occurrence` |
//!
//! Only causes count: no clock is needed, messages may overtake one another, rows may be in any order. A blocking sending, its
//! reception and its reply are activities of one thread; a sending that is not waited for is a fork. That a task *waited*
//! is seen by its counter: between sending and reply it did nothing, for any scenario.
//!
//! A sub-model holds one occurrence for each execution; merging them to entries with mean numbers of requests, weighted by how
//! often each scenario runs, is the shared road's (and [`merge_entries`], on its own). The reference task is the scenario.
//!
//! Where this goes beyond the paper: recordings of one scenario are told apart by the column `trace`, or one after another;
//! recordings that are cut off are analysed as far as they go ([`Unanswered`]); forwarding from messages that are not waited
//! for ([`AsyncForwarding`]); second phases go on in other threads (see `control`); self times from the times of nodes where no
//! demand was recorded. Memory is that of recordings that are not complete, up to a limit.

mod analysis;
mod average;
mod collect;
mod control;
mod emit;
mod live;
mod marks;
mod options;
mod report;
mod sub_model;
mod tasks;
mod templates;
mod toeg;

pub(in crate::structure) use analysis::Analysis;
pub use average::{WeightedEntry, merge_entries};
pub(in crate::structure) use collect::Collector;
pub use control::EntryKind;
pub use options::{AsyncForwarding, TaskCounters, TlcOptions, Unanswered};
pub use report::{ActivitySequence, ActivityUse, EntryActivities, EventCounts, PhaseActivities, Spread, TlcReport};
pub use sub_model::{SubEntry, SubModel, SubNode, SubRequest, sub_model};
pub use templates::Template;

use super::interactions::Interactions;
use crate::trace::angio::AngioEvent;

/// The technique over a stream of events: holds recordings that are not complete, and hands over those that are.
#[derive(Clone, Debug, Default)]
pub struct Tlc {
    collector: Collector,
    analysis: Analysis,
}

impl Tlc {
    /// The technique before any event.
    pub fn new(options: TlcOptions) -> Self {
        Self { collector: Collector::new(options.clone()), analysis: Analysis::new(options) }
    }

    /// Events held of recordings that are not complete.
    pub fn n_live_events(&self) -> usize {
        self.collector.n_live_events()
    }

    /// Takes an event; recordings that it completes go to `sink`, several at a time.
    pub fn feed(&mut self, event: &AngioEvent<'_>, sink: &mut dyn FnMut(Interactions)) {
        let Self { collector, analysis } = self;
        collector.feed(event, &mut |recording| analysis.take(recording, sink));
    }

    /// What collects events to recordings, and what analyses these: the second may run beside the first, if it takes what that
    /// hands over in its order.
    pub(in crate::structure) fn parts(&mut self) -> (&mut Collector, &mut Analysis) {
        (&mut self.collector, &mut self.analysis)
    }

    /// Joins what another instance, with the same options, has seen: as if its events had come in here.
    pub fn merge(&mut self, mut other: Self, sink: &mut dyn FnMut(Interactions)) {
        for half in [&mut *self, &mut other] {
            half.analysis.learn(half.collector.take_news());
        }
        let Self { collector, analysis } = self;
        let numbers = collector.merge_names(&other.collector);
        analysis.merge(other.analysis, &numbers, collector);
        collector.merge(other.collector, &numbers, &mut |recording| analysis.take(recording, sink));
        analysis.learn(collector.take_news());
        analysis.hand_over_if_full(sink);
    }

    /// The stream is over: recordings that are not complete are analysed as they stand, and all that is left goes to `sink`.
    pub fn finish(self, sink: &mut dyn FnMut(Interactions)) -> TlcReport {
        let Self { mut collector, mut analysis } = self;
        collector.complete_all(&mut |recording| analysis.take(recording, sink));
        analysis.learn(collector.take_news());
        analysis.finish(&collector, sink)
    }
}

#[cfg(test)]
mod tests;
