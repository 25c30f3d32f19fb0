//! Operations that are whole to exchanges: to batches of interactions, and to the sums of the report.

use super::{
    ExecutionGraphOptions, Sink, WorkloadReport,
    batch::Batch,
    collect::{Collector, Complete, News},
    graph::Keys,
    walk::{self, Context},
    workload::Workload,
};
use crate::trace::diagnostics::Diagnostics;

/// What was found in operations so far.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Analysis {
    options: ExecutionGraphOptions,
    keys: Keys,
    batch: Batch,
    workload: Workload,
    diagnostics: Diagnostics,
}

impl Analysis {
    pub(super) fn new(options: ExecutionGraphOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Walks over an operation: in the order in which they were collected.
    pub(in crate::structure) fn take(&mut self, complete: Complete, sink: Sink<'_>) {
        let Complete { number, mut graph, news } = complete;
        self.learn(news);
        graph.sort(&self.keys);
        let (events, diagnostics) = (&mut self.workload.events, &mut self.diagnostics);
        graph.drop_repeated(|thread, node| {
            events.repeated += 1;
            let message = "events with the thread and index of another were left out";
            diagnostics.add("repeated_event", message, || format!("operation {number}, thread {thread}, event {}", node.index));
        });
        let context = Context {
            keys: &self.keys,
            async_rpc: self.options.async_rpc,
            cpu: self.options.cpu,
            operation: number,
            diagnostics: &mut self.diagnostics,
        };
        let found = walk::walk(&graph, context);
        self.workload.add(&found);
        self.batch.add(number, &found, &self.keys, &self.options);
        if self.batch.is_full() {
            self.hand_over(sink);
        }
    }

    fn hand_over(&mut self, sink: Sink<'_>) {
        let mut interactions = self.batch.take();
        interactions.diagnostics = std::mem::take(&mut self.diagnostics);
        sink(interactions);
    }

    /// Numbers tasks and entries that were met, and notes what was odd.
    pub(super) fn learn(&mut self, news: News) {
        for (task, entry) in news.keys {
            self.keys.intern(&task, &entry);
        }
        self.diagnostics.merge(news.diagnostics);
    }

    /// Adds what another found, after what is here; `collector` has the keys of both.
    pub(super) fn merge(&mut self, other: Self, key_of: &[u32], collector: &Collector) {
        self.keys = collector.keys.clone();
        self.workload.merge(other.workload, key_of);
        self.diagnostics.merge(other.diagnostics);
        self.batch.merge(other.batch);
    }

    /// Hands over the rest, and reports; `collector` counted the events.
    pub(super) fn finish(mut self, collector: &Collector, sink: Sink<'_>) -> WorkloadReport {
        self.hand_over(sink);
        self.workload.events.fed += collector.events.fed;
        self.workload.events.late += collector.events.late;
        self.workload.report(&self.keys)
    }
}
