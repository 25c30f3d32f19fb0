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

mod batch;
mod graph;
mod operations;
mod stack;
mod thread;
mod walk;
mod workload;

use std::collections::{VecDeque, hash_map::Entry};

use serde::{Deserialize, Serialize};

use super::interactions::{Interactions, ScenariosBy};
use crate::trace::{diagnostics::Diagnostics, event_trace::Event, hashed::HashMap};
use batch::Batch;
use graph::{Graph, Keys, Node};
use operations::OperationSet;
use walk::Context;
use workload::Workload;
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

/// Where recordings go.
pub type Sink<'s> = &'s mut dyn FnMut(Interactions);

/// The operations that are not whole yet, and sums over those that were.
#[derive(Clone, Debug, Default)]
pub struct ExecutionGraphs {
    options: ExecutionGraphOptions,
    keys: Keys,
    live: HashMap<u64, Graph>,
    n_live_events: usize,
    /// Live operations by their first event, among others that are over.
    by_age: VecDeque<u64>,
    over: OperationSet,
    batch: Batch,
    workload: Workload,
    diagnostics: Diagnostics,
}

impl ExecutionGraphs {
    /// Nothing seen yet.
    pub fn new(options: ExecutionGraphOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes the next event; operations that it makes whole are handed to `sink`, several at a time.
    pub fn feed(&mut self, event: &Event<'_>, sink: Sink<'_>) {
        self.workload.events.fed += 1;
        let key = self.keys.intern(event.task, event.entry);
        let number = event.operation;
        let graph = match self.live.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if self.over.contains(number) => return self.note_late(event),
            Entry::Vacant(new) => {
                self.by_age.push_back(number);
                new.insert(Graph::default())
            }
        };
        graph.add(event.thread, Node::of(event, key));
        self.n_live_events += 1;
        if graph.is_whole(&self.keys) {
            self.resolve(number, sink);
        }
        self.make_room(sink);
    }

    fn note_late(&mut self, event: &Event<'_>) {
        self.workload.events.late += 1;
        let Event { operation, thread, index, .. } = *event;
        let message = "events of operations that were whole, or had been cut, were left out";
        self.diagnostics.add("late_event", message, || format!("operation {operation}, thread {thread}, event {index}"));
    }

    /// Walks over an operation and forgets it.
    fn resolve(&mut self, number: u64, sink: Sink<'_>) {
        let Some(mut graph) = self.live.remove(&number) else { return };
        self.n_live_events -= graph.n_events;
        self.over.insert(number);
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

    /// Cuts the oldest operations until no more events are kept than may be.
    fn make_room(&mut self, sink: Sink<'_>) {
        while self.n_live_events > self.options.max_live_events {
            let Some(oldest) = self.by_age.pop_front() else { break };
            if self.live.contains_key(&oldest) {
                let message = "operations were taken as they were, to make room: more events were incomplete than are kept";
                self.diagnostics.add("operation_cut", message, || format!("operation {oldest}"));
                self.resolve(oldest, sink);
            }
        }
        if self.by_age.len() > 2 * self.live.len() + 1024 {
            let live = &self.live;
            self.by_age.retain(|number| live.contains_key(number));
        }
    }

    /// Joins what another part of the same trace held. Operations that become whole by it are handed over later.
    pub fn merge(&mut self, other: Self) {
        let key_of: Vec<u32> = (0..other.keys.len())
            .map(|key| {
                let (task, entry) = other.keys.names(u32::try_from(key).unwrap_or(u32::MAX));
                self.keys.intern(task, entry)
            })
            .collect();
        self.workload.merge(other.workload, &key_of);
        self.diagnostics.merge(other.diagnostics);
        self.batch.merge(other.batch);
        let mut live = other.live;
        for number in other.by_age {
            let Some(graph) = live.remove(&number) else { continue };
            if self.over.contains(number) {
                self.note_all_late(number, &graph);
                continue;
            }
            self.n_live_events += graph.n_events;
            if !self.live.contains_key(&number) {
                self.by_age.push_back(number);
            }
            self.live.entry(number).or_default().merge(graph, &key_of);
        }
        let over_there: Vec<u64> = self.live.keys().copied().filter(|number| other.over.contains(*number)).collect();
        for number in over_there {
            if let Some(graph) = self.live.remove(&number) {
                self.n_live_events -= graph.n_events;
                self.note_all_late(number, &graph);
            }
        }
        self.over.merge(other.over);
    }

    fn note_all_late(&mut self, operation: u64, graph: &Graph) {
        for (thread, known) in &graph.threads {
            for node in &known.nodes {
                self.workload.events.late += 1;
                let message = "events of operations that were whole, or had been cut, were left out";
                self.diagnostics.add("late_event", message, || format!("operation {operation}, thread {thread}, event {}", node.index));
            }
        }
    }

    /// The trace is over: what is left is taken as it is, and everything not handed over yet goes to `sink`.
    pub fn finish(mut self, sink: Sink<'_>) -> WorkloadReport {
        let mut left: Vec<u64> = self.live.keys().copied().collect();
        left.sort_unstable();
        for number in left {
            self.resolve(number, sink);
        }
        self.hand_over(sink);
        self.workload.report(&self.keys)
    }

    /// Events kept of operations that are not whole.
    pub fn n_live_events(&self) -> usize {
        self.n_live_events
    }
}

#[cfg(test)]
mod tests;
