//! TLC: angio traces to interactions by matching templates of communication.
//!
//! Input: the events `(j, k, m, l / i, v)` of distributed operations ([`crate::trace::angio`]), in any order; output: for each
//! recording its [`Interactions`], and beside them a [`TlcReport`] on activities and their demands. Source: Hrischuk, Woodside,
//! Rolia, Iversen, *Trace-based load characterization for generating software performance models*, IEEE Trans. Software Eng. 25
//! (1999), sections 3 to 6.
//!
//! ```text
//! events ─▶ live (until a recording is complete) ─▶ toeg (graph) ─▶ control + templates (sub-model) ─▶ emit (interactions)
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

mod average;
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

use std::collections::VecDeque;

pub use average::{WeightedEntry, merge_entries};
pub use control::EntryKind;
pub use options::{AsyncForwarding, TaskCounters, TlcOptions, Unanswered};
pub use report::{ActivitySequence, ActivityUse, EntryActivities, EventCounts, PhaseActivities, Spread, TlcReport};
pub use sub_model::{SubEntry, SubModel, SubNode, SubRequest, sub_model};
pub use templates::Template;

use super::interactions::Interactions;
use crate::trace::{angio::AngioEvent, hashed::HashMap, names::Names};
use control::Control;
use emit::{Batch, Header, NameTables};
use live::{Live, NONE, Numbers};
use report::{Renumbered, Resources};
use tasks::Tasks;
use toeg::Toeg;

/// Which recording: whether it is named by its trace, and that name (else its scenario).
type Key = (bool, Box<str>);

/// The technique over a stream of events: holds recordings that are not complete, and hands over those that are.
#[derive(Clone, Debug, Default)]
pub struct Tlc {
    options: TlcOptions,
    tasks: Tasks,
    operations: Names,
    activities: Names,
    scenarios: Names,
    /// Recordings that are not complete, by scenario and by trace.
    live: [HashMap<Box<str>, Live>; 2],
    /// Recordings in the order in which they began, with their ages; those that are complete stay for a while.
    order: VecDeque<(u64, Key)>,
    next_age: u64,
    n_live_events: usize,
    /// Recordings of each scenario that were named after it, shape `(n_scenarios,)`.
    n_runs: Vec<u64>,
    batch: Batch,
    resources: Resources,
    toeg: Toeg,
    control: Control,
}

impl Tlc {
    /// The technique before any event.
    pub fn new(options: TlcOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Events held of recordings that are not complete.
    pub fn n_live_events(&self) -> usize {
        self.n_live_events
    }

    /// Takes an event; recordings that it completes go to `sink`, several at a time.
    pub fn feed(&mut self, event: &AngioEvent<'_>, sink: &mut dyn FnMut(Interactions)) {
        self.resources.events.read += 1;
        let demand = event.demand.or_else(|| self.options.resource_functions.get(event.activity).copied());
        let event = &AngioEvent { demand, ..*event };
        let number = |names: &mut Names, text: &str| if text.is_empty() { NONE } else { names.intern(text) };
        let numbers = Numbers {
            task: self.tasks.intern(event),
            operation: number(&mut self.operations, event.operation),
            activity: number(&mut self.activities, event.activity),
        };
        let scenario = self.scenarios.intern(event.scenario);
        let is_trace = !event.trace.is_empty();
        let name = if is_trace { event.trace } else { event.scenario };
        let live = match self.live[usize::from(is_trace)].get_mut(name) {
            Some(live) => live,
            None => {
                self.begin((is_trace, name.into()), scenario);
                let Some(live) = self.live[usize::from(is_trace)].get_mut(name) else { return };
                live
            }
        };
        let diagnostics = &mut self.batch.interactions.diagnostics;
        if live.scenario != scenario {
            diagnostics.add("scenario_differs", "events of one trace name several scenarios: the first counts", || name.to_owned());
        }
        if !live.add(event, numbers) {
            self.resources.events.duplicate += 1;
            let example = || format!("{name}: thread {}, node {}", event.thread, event.thread_node);
            diagnostics.add("duplicate_node", "nodes were recorded several times: the first counts", example);
            return;
        }
        self.n_live_events += 1;
        if live.is_complete() {
            self.complete(&(is_trace, name.into()), sink);
        } else if self.n_live_events > self.options.live_events_limit {
            self.complete_oldest(sink);
        }
    }

    /// Joins what another instance, with the same options, has seen: as if its events had come in here.
    pub fn merge(&mut self, mut other: Self, sink: &mut dyn FnMut(Interactions)) {
        let (tasks, processes) = self.tasks.merge(&other.tasks);
        let renumber = |names: &mut Names, other: &Names| -> Vec<u32> { other.iter().map(|name| names.intern(name)).collect() };
        let operations = renumber(&mut self.operations, &other.operations);
        let activities = renumber(&mut self.activities, &other.activities);
        let scenarios = renumber(&mut self.scenarios, &other.scenarios);
        let renumbered = Renumbered { processes: &processes, operations: &operations, activities: &activities };
        self.resources.merge(std::mem::take(&mut other.resources), &renumbered);
        self.n_runs.resize(self.scenarios.len(), 0);
        for (scenario, more) in scenarios.iter().zip(&other.n_runs) {
            self.n_runs[*scenario as usize] += more;
        }
        self.batch.interactions.merge(other.batch.take());
        for (age, key) in other.order {
            let Some(live) = take_if_of_age(&mut other.live, &key, age) else { continue };
            let slot = usize::from(key.0);
            if !self.live[slot].contains_key(&key.1) {
                self.begin(key.clone(), scenarios[live.scenario as usize]);
            }
            let Some(into) = self.live[slot].get_mut(&key.1) else { continue };
            into.note_weight(live.weight);
            let new = |numbers: &[u32], number: u32| numbers.get(number as usize).copied().unwrap_or(NONE);
            for node in &live.nodes {
                let numbers = Numbers {
                    task: new(&tasks, node.task),
                    operation: new(&operations, node.operation),
                    activity: new(&activities, node.activity),
                };
                if into.add_of(&live, *node, numbers) {
                    self.n_live_events += 1;
                } else {
                    self.resources.events.duplicate += 1;
                    let message = "nodes were recorded several times: the first counts";
                    self.batch.interactions.diagnostics.add("duplicate_node", message, || key.1.to_string());
                }
            }
            if into.is_complete() {
                self.complete(&key, sink);
            }
        }
        while self.n_live_events > self.options.live_events_limit && self.complete_oldest(sink) {}
        self.hand_over_if_full(sink);
    }

    /// The stream is over: recordings that are not complete are analysed as they stand, and all that is left goes to `sink`.
    pub fn finish(mut self, sink: &mut dyn FnMut(Interactions)) -> TlcReport {
        for (age, key) in std::mem::take(&mut self.order) {
            if self.live[usize::from(key.0)].get(&key.1).is_some_and(|live| live.age == age) {
                self.note_incomplete(&key.1);
                self.complete(&key, sink);
            }
        }
        let diagnostics = &mut self.batch.interactions.diagnostics;
        self.tasks.check(diagnostics);
        self.resources.note_spread([&self.tasks.processes, &self.operations], diagnostics);
        let rest = self.batch.take();
        if !rest.traces.is_empty() || rest.diagnostics != Default::default() {
            sink(rest);
        }
        self.resources.finish(&self.tasks.processes, &self.operations, &self.activities)
    }

    fn begin(&mut self, key: Key, scenario: u32) {
        self.order.push_back((self.next_age, key.clone()));
        self.live[usize::from(key.0)].insert(key.1, Live::new(scenario, self.next_age));
        self.next_age += 1;
        let n_live: usize = self.live.iter().map(HashMap::len).sum();
        if self.order.len() > 2 * n_live + 64 {
            let live = &self.live;
            self.order.retain(|(age, key)| live[usize::from(key.0)].get(&key.1).is_some_and(|live| live.age == *age));
        }
    }

    /// Analyses the oldest recording as it stands; `false` if there is none.
    fn complete_oldest(&mut self, sink: &mut dyn FnMut(Interactions)) -> bool {
        while let Some((age, key)) = self.order.pop_front() {
            if self.live[usize::from(key.0)].get(&key.1).is_some_and(|live| live.age == age) {
                let message = "recordings were analysed before they were complete, as too many events were held";
                self.batch.interactions.diagnostics.add("live_events_limit", message, || key.1.to_string());
                self.complete(&key, sink);
                return true;
            }
        }
        false
    }

    fn note_incomplete(&mut self, name: &str) {
        let message = "recordings were not complete at the end: they were analysed as they stand";
        self.batch.interactions.diagnostics.add("incomplete_recording", message, || name.to_owned());
    }

    /// Analyses a recording and forgets its events.
    fn complete(&mut self, key: &Key, sink: &mut dyn FnMut(Interactions)) {
        let Some(mut live) = self.live[usize::from(key.0)].remove(&key.1) else { return };
        let n_nodes = live.nodes.len();
        self.n_live_events -= n_nodes;
        self.toeg.build(&mut live);
        let tasks = &self.tasks;
        self.toeg.check(&key.1, &|task| tasks.name(task).to_owned(), &mut self.batch.interactions.diagnostics);
        let Some((first, assumed)) = self.toeg.first_node() else {
            let message = "recordings without the begin of their first thread were left out";
            self.batch.interactions.diagnostics.add("no_first_node", message, || format!("{} ({n_nodes} events)", key.1));
            self.resources.events.unmatched += n_nodes as u64;
            return;
        };
        if assumed {
            let message = "recordings have no thread 1: the first thread that nothing forks was taken";
            let example = || format!("{}: thread {}", key.1, self.toeg.thread_ids[self.toeg.node(first).thread as usize]);
            self.batch.interactions.diagnostics.add("assumed_first_node", message, example);
        }
        self.control.run(&mut self.toeg, first, &self.options);
        self.note_oddities(&key.1);
        self.count_nodes(&key.1);
        let header = Header { name: self.recording_name(key, live.scenario), scenario: live.scenario, weight: live.weight.unwrap_or(1.0) };
        let names = NameTables { tasks: &self.tasks, operations: &self.operations, scenarios: &self.scenarios };
        self.batch.add(&self.toeg, &self.control, header, &names, self.options.task_counters);
        self.batch.add_resources(&self.toeg, &self.control, &self.tasks, &mut self.resources);
        self.hand_over_if_full(sink);
    }

    fn hand_over_if_full(&mut self, sink: &mut dyn FnMut(Interactions)) {
        if self.batch.is_full() {
            sink(self.batch.take());
        }
    }

    /// A recording's name: its trace; else its scenario, numbered from the second run on.
    fn recording_name(&mut self, (is_trace, name): &Key, scenario: u32) -> String {
        if *is_trace {
            return name.to_string();
        }
        self.n_runs.resize(self.scenarios.len(), 0);
        let n_runs = &mut self.n_runs[scenario as usize];
        *n_runs += 1;
        if *n_runs == 1 { name.to_string() } else { format!("{name}#{n_runs}") }
    }

    fn count_nodes(&mut self, name: &str) {
        self.resources.recordings += 1;
        for (sum, count) in self.resources.templates.iter_mut().zip(self.control.counts) {
            *sum += count;
        }
        let (toeg, tasks) = (&self.toeg, &self.tasks);
        for (node, _) in toeg.nodes.iter().zip(&self.control.processed).filter(|(_, processed)| !**processed) {
            self.resources.events.unmatched += 1;
            let message = "nodes are in no template: what they belong to is not in the log";
            self.batch.interactions.diagnostics.add("unmatched_nodes", message, || {
                let thread = toeg.thread_ids[node.thread as usize];
                format!("{name}: thread {thread}, node {} ({} at {})", node.thread_node, tasks.name(node.task), node.task_node)
            });
        }
        self.resources.events.used += self.control.processed.iter().filter(|processed| **processed).count() as u64;
    }

    fn note_oddities(&mut self, name: &str) {
        let oddities = self.control.oddities;
        let unanswered = self.control.counts[Template::Unanswered as usize];
        let forwarded = self.control.counts[Template::AsyncForwarding as usize];
        let kinds = [
            (unanswered, "unanswered_request", "blocking requests have no reply in the log"),
            (
                oddities.busy_elsewhere,
                "task_busy_elsewhere",
                "tasks did something for another scenario where they would have waited for a reply: they were taken not to wait",
            ),
            (
                oddities.chained_forwarding,
                "async_forward_detected",
                "messages that are not waited for were handed on and came back to senders that did nothing between: read as messages, \
                 though they may be forwarded requests",
            ),
            (forwarded, "async_forward_used", "messages that are not waited for were read as forwarded requests"),
            (
                oddities.ambiguous_reply,
                "ambiguous_reply",
                "senders that did nothing else went on with a message of the task they had sent to, but of another service of it",
            ),
            (oddities.too_long, "long_forwarding", "chains of forwarders were too long to be followed"),
        ];
        for (count, code, message) in kinds {
            for _ in 0..count {
                self.batch.interactions.diagnostics.add(code, message, || name.to_owned());
            }
        }
    }
}

fn take_if_of_age(live: &mut [HashMap<Box<str>, Live>; 2], key: &Key, age: u64) -> Option<Live> {
    let live = &mut live[usize::from(key.0)];
    live.get(&key.1).is_some_and(|live| live.age == age).then(|| live.remove(&key.1)).flatten()
}

#[cfg(test)]
mod tests;
