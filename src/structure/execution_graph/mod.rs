//! Execution graphs: event traces with thread and event indices to interactions.
//!
//! Input: events ([`crate::trace::event_trace`]) of any number of operations in any order; output: for each operation one
//! recording of [`Interactions`], and a [`WorkloadReport`]. Source: Mizan & Franks, *An automatic trace based performance
//! evaluation model building for parallel distributed systems*, ICPE 2011, sections 3 and 4.
//!
//! No clock is needed: events of a thread follow one another by their indices, a fork leads to the first event of the
//! thread that it spawned, and that is all that an *execution graph* is. A thread of an operation passes through tasks:
//! a blocking request and its reply stay in one thread. A thread is spawned only where a client does not wait, or where a
//! server works on after its reply (a second phase; then the new thread carries the reply).
//!
//! The paper finds interactions by cutting threads into segments, matching a segment with its anti-parallel, and bridging
//! what was found, layer by layer. What follows is the same as one pass with a stack, in time linear in the events
//! (but for sorting): each thread carries the open requests *(client, server, phase)*, the last server runs in phase `ph`.
//!
//! | met | is done |
//! |---|---|
//! | Se → Re in an entry | push (who runs, a new execution of the entry, `ph`); `ph` = 1 |
//! | Sa → Ra in entry c | pop down to the youngest request by a client in c: one popped is a synchronous interaction, several a forwarded request; `ph` = that of the oldest popped. None: `unmatched_ack`, no interaction; what the entry does then is of its last execution, else of one started from outside |
//! | Fo → Be in entry c, a reply | as Sa, for the new thread, which keeps what is left of the stack; the old thread goes on with an empty stack and `ph` = 2 |
//! | Fo → Be in another entry, else | an asynchronous request; the new thread begins with it as its one open request, so that a reply to it is seen (`async_rpc`; `async_fwd` if it was forwarded) |
//! | Fo → Be in the same entry, no reply | the new thread is of the same execution |
//! | end of a thread | requests that are open are asynchronous, `no_reply` |
//!
//! A fork is a reply if its `ack` says so. If it does not say, it is one where the child begins in c ≠ the forking entry,
//! some open request has a client in c, and no later Sa of the thread answers that request, the thread read as if none of
//! its forks without a word were replies.
//!
//! | where the paper is silent or inconsistent | here |
//! |---|---|
//! | step 6 of 4.4.2 goes on at step 3 | the pass has no steps; of its two readings that which finds pairs again |
//! | a reply by Fo → Be looks like a request | the `ack` flag and the rule above |
//! | resource demand (4.7.3) is a ratio to the target's total | both are reported: calls for each invocation of the requester (`y`), and the target's share |
//! | total demand of a reference task is 0 | its External events count |
//! | non-blocking client that gets its reply (Table 1, case 3) | asynchronous, or synchronous as its two segments say: [`AsyncRpc`] |
//!
//! Operations do not wait for the end of the trace: one that is whole (every thread from 1 to its End, every spawned thread
//! there) is walked over and forgotten. Others are walked over at the end, or when too many events wait, as they are.

mod analysis;
mod batch;
mod collect;
mod graph;
mod operations;
mod stack;
mod thread;
mod walk;
mod workload;

use serde::{Deserialize, Serialize};

use super::{
    OptionError,
    interactions::{Interactions, ScenariosBy},
};
use crate::trace::event_trace::Event;
use analysis::Analysis;
use collect::Collector;
pub(in crate::structure) use collect::{Intake, Met};
use graph::Keys;
pub use workload::{ClassKind, EntryDemand, EventCounts, InteractionClass, WorkloadReport};

/// What a request is whose client goes on, and gets the reply in another thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsyncRpc {
    /// Asynchronous: nobody is blocked.
    #[default]
    Asynchronous,
    /// Synchronous, or forwarded: its segments match, as in the paper.
    Paper,
}

/// What the CPU stamps of events are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuStamps {
    /// The CPU time that the entry used for the event.
    #[default]
    Used,
    /// Readings of a CPU clock: the entry used what the clock advanced by from one event of a thread to the next, where both
    /// are of the same execution.
    Counter,
}

/// Options of the technique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionGraphOptions {
    /// What the trace is a recording of: the scenario of every operation, unless `scenarios` tells them apart.
    pub scenario: String,
    /// Whether operations that start with different entries are of different scenarios, `TASK.ENTRY`. A usage profile that names
    /// these asks for it, too.
    pub scenarios: ScenariosBy,
    /// What a request is whose client does not wait and yet gets a reply.
    pub async_rpc: AsyncRpc,
    /// What CPU stamps are.
    pub cpu: CpuStamps,
    /// Most events that are kept of operations that are not whole (≥ 1; some 40 bytes each). Beyond it the operation that
    /// began longest ago is taken as it is (`operation_cut`).
    pub max_live_events: usize,
}

impl Default for ExecutionGraphOptions {
    fn default() -> Self {
        Self {
            scenario: "operation".to_owned(),
            scenarios: ScenariosBy::default(),
            async_rpc: AsyncRpc::default(),
            cpu: CpuStamps::default(),
            max_live_events: 1 << 24,
        }
    }
}

impl ExecutionGraphOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`OptionError`] for a number out of its range, or an empty name.
    pub fn check(&self) -> Result<(), OptionError> {
        OptionError::unless_named("execution_graph.scenario", &self.scenario)?;
        OptionError::unless_above_0("execution_graph.max_live_events", self.max_live_events)
    }
}

/// Where recordings go.
pub type Sink<'s> = &'s mut dyn FnMut(Interactions);

/// The operations that are not whole yet, and sums over those that were.
#[derive(Clone, Debug, Default)]
pub struct ExecutionGraphs {
    intake: Intake,
    operations: Operations,
}

/// What collects events to operations, and analyses these.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Operations {
    keys: Keys,
    collector: Collector,
    analysis: Analysis,
}

impl Operations {
    /// Takes what the next event tells; operations that it makes whole are handed to `sink`, several at a time.
    pub(in crate::structure) fn take(&mut self, met: Met, sink: Sink<'_>) {
        let Self { keys, collector, analysis } = self;
        match met {
            Met::Key(task, entry) => _ = keys.intern(&task, &entry),
            Met::Event(event) => collector.add(event, keys, &mut |operation| analysis.take(operation, keys, sink)),
        }
    }

    /// Takes what is left as it is.
    pub(in crate::structure) fn complete_all(&mut self, sink: Sink<'_>) {
        let Self { keys, collector, analysis } = self;
        collector.complete_all(&mut |operation| analysis.take(operation, keys, sink));
    }
}

impl ExecutionGraphs {
    /// Nothing seen yet.
    pub fn new(options: ExecutionGraphOptions) -> Self {
        let (collector, analysis) = (Collector::new(options.max_live_events), Analysis::new(options));
        Self { intake: Intake::default(), operations: Operations { keys: Keys::default(), collector, analysis } }
    }

    /// Takes the next event; operations that it makes whole are handed to `sink`, several at a time.
    pub fn feed(&mut self, event: &Event<'_>, sink: Sink<'_>) {
        let Self { intake, operations } = self;
        intake.feed(event, &mut |met| operations.take(met, sink));
    }

    /// What numbers events, and what takes them: the second may run beside the first, if it takes what that hands over in its order.
    pub(in crate::structure) fn parts(&mut self) -> (&mut Intake, &mut Operations) {
        (&mut self.intake, &mut self.operations)
    }

    /// Joins what another part of the same trace held. Operations that become whole by it are handed over later.
    pub fn merge(&mut self, other: Self) {
        let mut other = other.operations;
        let Operations { keys, collector, analysis } = &mut self.operations;
        analysis.note(collector.take_diagnostics());
        other.analysis.note(other.collector.take_diagnostics());
        let key_of = keys.merge(&other.keys);
        self.intake.keys = keys.clone();
        analysis.merge(other.analysis, &key_of);
        collector.merge(other.collector, &key_of);
    }

    /// The trace is over: what is left is taken as it is, and everything not handed over yet goes to `sink`.
    pub fn finish(self, sink: Sink<'_>) -> WorkloadReport {
        let mut operations = self.operations;
        operations.complete_all(sink);
        let Operations { keys, mut collector, mut analysis } = operations;
        analysis.note(collector.take_diagnostics());
        analysis.finish(&collector, &keys, sink)
    }

    /// Events kept of operations that are not whole.
    pub fn n_live_events(&self) -> usize {
        self.operations.collector.n_live_events()
    }
}

#[cfg(test)]
mod tests;
