//! Operations that are whole to exchanges: to batches of interactions, and to the sums of the report.

use super::{
    ExecutionGraphOptions, Sink, WorkloadReport,
    batch::Batch,
    collect::{Collector, Complete},
    graph::Keys,
    walk::{self, Context},
    workload::Workload,
};
use crate::trace::diagnostics::Diagnostics;

/// What was found in operations so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Analysis {
    options: ExecutionGraphOptions,
    batch: Batch,
    workload: Workload,
    diagnostics: Diagnostics,
}

impl Analysis {
    pub(super) fn new(options: ExecutionGraphOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Walks over an operation, in the order in which they were collected.
    pub(super) fn take(&mut self, complete: Complete, keys: &Keys, sink: Sink<'_>) {
        let Complete { number, mut graph, diagnostics } = complete;
        self.note(diagnostics);
        graph.sort(keys);
        let (events, diagnostics) = (&mut self.workload.events, &mut self.diagnostics);
        graph.drop_repeated(|thread, node| {
            events.repeated += 1;
            let message = "events with the thread and index of another were left out";
            diagnostics.add("repeated_event", message, || format!("operation {number}, thread {thread}, event {}", node.index));
        });
        let context = Context {
            keys,
            async_rpc: self.options.async_rpc,
            cpu: self.options.cpu,
            operation: number,
            diagnostics: &mut self.diagnostics,
        };
        let found = walk::walk(&graph, context);
        self.workload.add(&found);
        self.batch.add(number, &found, keys, &self.options);
        if self.batch.is_full() {
            self.hand_over(sink);
        }
    }

    fn hand_over(&mut self, sink: Sink<'_>) {
        let mut interactions = self.batch.take();
        interactions.diagnostics = std::mem::take(&mut self.diagnostics);
        sink(interactions);
    }

    /// Notes what was odd.
    pub(super) fn note(&mut self, diagnostics: Diagnostics) {
        self.diagnostics.merge(diagnostics);
    }

    /// Adds what another found, after what is here, with its keys renumbered by `key_of`.
    pub(super) fn merge(&mut self, other: Self, key_of: &[u32]) {
        self.workload.merge(other.workload, key_of);
        self.diagnostics.merge(other.diagnostics);
        self.batch.merge(other.batch);
    }

    /// Hands over the rest, and reports; `collector` counted the events.
    pub(super) fn finish(mut self, collector: &Collector, keys: &Keys, sink: Sink<'_>) -> WorkloadReport {
        self.hand_over(sink);
        self.workload.events.fed += collector.events.fed;
        self.workload.events.late += collector.events.late;
        self.workload.report(keys)
    }
}
