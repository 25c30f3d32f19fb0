//! Recordings that are complete to sub-models: to batches of interactions, and to the sums of the report.

use super::{
    TlcOptions, TlcReport,
    collect::{Collector, Complete, Key, New, News, NumbersHere},
    control::Control,
    emit::{Batch, Header, NameTables},
    report::{Renumbered, Resources},
    tasks::Tasks,
    templates::Template,
    toeg::Toeg,
};
use crate::{structure::interactions::Interactions, trace::names::Names};

/// What was found in recordings so far.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Analysis {
    options: TlcOptions,
    tasks: Tasks,
    operations: Names,
    scenarios: Names,
    /// Recordings of each scenario that were named after it, shape `(n_scenarios,)`.
    n_runs: Vec<u64>,
    batch: Batch,
    resources: Resources,
    toeg: Toeg,
    control: Control,
}

impl Analysis {
    pub(super) fn new(options: TlcOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes a recording, in the order in which they were collected; `sink` takes several at a time.
    pub(in crate::structure) fn take(&mut self, complete: Complete, sink: &mut dyn FnMut(Interactions)) {
        let Complete { key, mut live, news } = complete;
        self.learn(news);
        let n_nodes = live.nodes.len();
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
        let header = Header { name: self.recording_name(&key, live.scenario), scenario: live.scenario, weight: live.weight.unwrap_or(1.0) };
        let names = NameTables { tasks: &self.tasks, operations: &self.operations, scenarios: &self.scenarios };
        self.batch.add(&self.toeg, &self.control, header, &names, self.options.task_counters);
        self.batch.add_resources(&self.toeg, &self.control, &self.tasks, &mut self.resources);
        self.hand_over_if_full(sink);
    }

    /// Numbers names that were met, and notes what was odd.
    pub(super) fn learn(&mut self, news: News) {
        for new in news.names {
            match new {
                New::Task(task, service) => _ = self.tasks.add(&task, &service),
                New::Operation(operation) => _ = self.operations.intern(&operation),
                New::Scenario(scenario) => _ = self.scenarios.intern(&scenario),
            }
        }
        self.batch.interactions.diagnostics.merge(news.diagnostics);
    }

    /// Adds what another found, after what is here; `collector` has the names of both.
    pub(super) fn merge(&mut self, mut other: Self, numbers: &NumbersHere, collector: &Collector) {
        self.tasks = collector.tasks.clone();
        self.operations = collector.operations.clone();
        self.scenarios = collector.scenarios.clone();
        let NumbersHere { processes, operations, activities, .. } = numbers;
        self.resources.merge(other.resources, &Renumbered { processes, operations, activities });
        self.n_runs.resize(self.scenarios.len(), 0);
        for (scenario, more) in numbers.scenarios.iter().zip(&other.n_runs) {
            self.n_runs[*scenario as usize] += more;
        }
        self.batch.interactions.merge(other.batch.take());
    }

    /// Hands over, if it is time.
    pub(super) fn hand_over_if_full(&mut self, sink: &mut dyn FnMut(Interactions)) {
        if self.batch.is_full() {
            sink(self.batch.take());
        }
    }

    /// Hands over the rest, and reports; `collector` has the counters of tasks, and the names of activities.
    pub(super) fn finish(mut self, collector: &Collector, sink: &mut dyn FnMut(Interactions)) -> TlcReport {
        let diagnostics = &mut self.batch.interactions.diagnostics;
        collector.tasks.check(diagnostics);
        for activity in self.options.resource_functions.keys().filter(|activity| collector.activities.get(activity).is_none()) {
            let message = "resource functions are of activities that are not in the trace";
            diagnostics.add("function_of_nothing", message, || activity.clone());
        }
        self.resources.note_spread([&self.tasks.processes, &self.operations], diagnostics);
        let rest = self.batch.take();
        if !rest.traces.is_empty() || rest.diagnostics != Default::default() {
            sink(rest);
        }
        self.resources.events.read += collector.events.read;
        self.resources.events.duplicate += collector.events.duplicate;
        self.resources.finish(&self.tasks.processes, &self.operations, &collector.activities)
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
