//! Interaction classes and what they ask of entries (sections 4.6 and 4.7 of the paper).
//!
//! | symbol | is |
//! |---|---|
//! | P(c) | partial resource demand: number of interactions of class c |
//! | T(e) = Σ P(c) over the classes with target e, + starts of e from outside | total resource demand: invocations of e |
//! | y = P(Y→X) / T(Y) | resource demand, or visit ratio: interactions for each invocation of the requester Y |
//! | P(Y→X) / T(X) | share of the target's invocations |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{graph::Keys, walk::Found};
use crate::{
    structure::interactions::{Hints, processor_name},
    trace::{diagnostics::Diagnostics, hashed::HashMap},
};

/// What an interaction class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassKind {
    /// A blocking request with its reply; of a forwarded request the one to the first of the chain.
    Sync,
    /// From one of a chain to the next.
    Forward,
    /// A request without a reply.
    Async,
    /// A request by a client that goes on, and gets the reply in a thread of its own.
    AsyncRpc,
    /// As [`ClassKind::AsyncRpc`], but the request was forwarded.
    #[serde(rename = "async_fwd")]
    AsyncForward,
}

/// Interactions that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InteractionClass {
    /// Task and entry of the requester.
    pub from: [String; 2],
    /// Task and entry of the target.
    pub to: [String; 2],
    /// What they are.
    pub kind: ClassKind,
    /// Phase of the requester, 1 or 2.
    pub phase: u8,
    /// Number of interactions: the partial resource demand.
    pub n: u64,
    /// Interactions for each invocation of the requester: the visit ratio; of [`ClassKind::Forward`] the probability.
    pub y: f64,
    /// Their share of the target's invocations, in (0, 1].
    pub share: f64,
}

/// What an entry was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryDemand {
    /// Name of the task.
    pub task: String,
    /// Name of the entry.
    pub entry: String,
    /// Invocations: the total resource demand T.
    pub total: u64,
    /// Those of them that came from outside.
    pub external: u64,
    /// Highest phase seen, 1 or 2.
    pub phases: u8,
    /// Mean CPU time of an invocation in ticks for phases 1 and 2, over the invocations that have one.
    pub cpu_ticks: [Option<f64>; 2],
}

/// Where the events went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Handed over.
    pub fed: u64,
    /// Part of what was found.
    pub used: u64,
    /// Left out, as they repeat another.
    pub repeated: u64,
    /// Left out, as their operation was over.
    pub late: u64,
    /// Left out, as nothing leads to their thread.
    pub unreachable: u64,
}

/// The workload that operations put on entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Number of operations.
    pub operations: u64,
    /// Interaction classes, by requester, target, kind and phase.
    pub classes: Vec<InteractionClass>,
    /// Entries, by task and name.
    pub entries: Vec<EntryDemand>,
    /// Where the events went.
    pub events: EventCounts,
}

impl WorkloadReport {
    /// Notes what a resource database leaves open (`missing_resource_info`), and what it says of tasks, entries and processors
    /// that were not met (`unknown_resource`).
    pub fn note_resources(&self, resources: &Hints, diagnostics: &mut Diagnostics) {
        let mut entries_of: BTreeMap<&str, Vec<&EntryDemand>> = BTreeMap::new();
        for entry in &self.entries {
            entries_of.entry(&entry.task).or_default().push(entry);
        }
        for (task, entries) in &entries_of {
            let said = resources.processes.get(*task);
            let starts = entries.iter().any(|entry| entry.external > 0);
            let lacks = [
                ("a processor", said.is_none_or(|said| said.processor.is_none())),
                ("threads", !starts && said.is_none_or(|said| said.threads.is_none() && !said.infinite)),
                ("a workload", starts && said.is_none_or(|said| said.workload.is_none())),
            ];
            for (what, _) in lacks.iter().filter(|(_, lacks)| *lacks) {
                let message = "tasks of which the resource database does not say all; a default stands in";
                diagnostics.add("missing_resource_info", message, || format!("{task}: {what}"));
            }
        }
        note_unknown(resources, &entries_of, diagnostics);
    }
}

fn note_unknown(resources: &Hints, entries_of: &BTreeMap<&str, Vec<&EntryDemand>>, diagnostics: &mut Diagnostics) {
    let message = "the resource database speaks of tasks or entries that are not in the trace, or of processors without a task";
    for (task, said) in &resources.processes {
        let Some(entries) = entries_of.get(task.as_str()) else {
            diagnostics.add("unknown_resource", message, || format!("task {task}"));
            continue;
        };
        // The one entry of customers stands for all that they begin: whatever its demand is called, the first counts.
        let of_customers = usize::from(entries.iter().all(|entry| entry.external > 0));
        for entry in said.demands.keys().skip(of_customers).filter(|name| !entries.iter().any(|entry| entry.entry == **name)) {
            diagnostics.add("unknown_resource", message, || format!("entry {task}.{entry}"));
        }
    }
    for processor in resources.processors.keys() {
        let is_default = entries_of.keys().any(|task| processor_name(task) == *processor);
        if !is_default && !resources.processes.values().any(|said| said.processor.as_ref() == Some(processor)) {
            diagnostics.add("unknown_resource", message, || format!("processor {processor}"));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    from: u32,
    to: u32,
    kind: ClassKind,
    phase: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct EntrySums {
    external: u64,
    phases: u8,
    /// Over executions whose CPU time is known, by phase.
    n_measured: [u64; 2],
    cpu_ticks: [f64; 2],
}

/// Sums over operations; by the keys of their technique.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    operations: u64,
    classes: HashMap<Class, u64>,
    /// Shape `(n_keys,)`, or shorter.
    entries: Vec<EntrySums>,
    pub(super) events: EventCounts,
}

impl Workload {
    pub(super) fn add(&mut self, found: &Found) {
        self.operations += u64::from(!found.occurrences.0.is_empty());
        self.events.used += found.n_walked;
        self.events.unreachable += found.n_unreachable;
        for execution in &found.occurrences.0 {
            let sums = self.entry(execution.key);
            sums.external += u64::from(execution.originator);
            sums.phases = sums.phases.max(execution.phases);
            for (phase, ticks) in execution.cpu_ticks.into_iter().enumerate() {
                sums.cpu_ticks[phase] += ticks.unwrap_or(0.0);
                sums.n_measured[phase] += u64::from(ticks.is_some());
            }
        }
        let key = |occurrence: usize| found.occurrences.key(occurrence);
        for exchange in &found.exchanges {
            for (hop, pair) in exchange.chain.windows(2).enumerate() {
                let (kind, phase) = match (hop, exchange.kind) {
                    (0, ClassKind::Forward) => (ClassKind::Sync, exchange.phase),
                    (0, kind) => (kind, exchange.phase),
                    _ => (ClassKind::Forward, 1),
                };
                *self.classes.entry(Class { from: key(pair[0]), to: key(pair[1]), kind, phase }).or_default() += 1;
            }
        }
    }

    fn entry(&mut self, key: u32) -> &mut EntrySums {
        let key = key as usize;
        if key >= self.entries.len() {
            self.entries.resize(key + 1, EntrySums::default());
        }
        &mut self.entries[key]
    }

    /// Adds sums whose keys are renumbered by `key_of`.
    pub(super) fn merge(&mut self, other: Self, key_of: &[u32]) {
        self.operations += other.operations;
        for (class, n) in other.classes {
            let class = Class { from: key_of[class.from as usize], to: key_of[class.to as usize], ..class };
            *self.classes.entry(class).or_default() += n;
        }
        for (key, sums) in other.entries.into_iter().enumerate() {
            let known = self.entry(key_of[key]);
            known.external += sums.external;
            known.phases = known.phases.max(sums.phases);
            for phase in 0..2 {
                known.n_measured[phase] += sums.n_measured[phase];
                known.cpu_ticks[phase] += sums.cpu_ticks[phase];
            }
        }
        let (events, more) = (&mut self.events, other.events);
        events.fed += more.fed;
        events.used += more.used;
        events.repeated += more.repeated;
        events.late += more.late;
        events.unreachable += more.unreachable;
    }

    #[expect(clippy::cast_precision_loss, reason = "ratios of counts are rounded to the precision of f64")]
    pub(super) fn report(&self, keys: &Keys) -> WorkloadReport {
        let mut totals: Vec<u64> = self.entries.iter().map(|sums| sums.external).collect();
        for (class, n) in &self.classes {
            totals[class.to as usize] += n;
        }
        let names = |key: u32| {
            let (task, entry) = keys.names(key);
            [task.to_owned(), entry.to_owned()]
        };
        let class = |(class, n): (&Class, &u64)| InteractionClass {
            from: names(class.from),
            to: names(class.to),
            kind: class.kind,
            phase: class.phase,
            n: *n,
            y: *n as f64 / totals[class.from as usize] as f64,
            share: *n as f64 / totals[class.to as usize] as f64,
        };
        let mut classes: Vec<InteractionClass> = self.classes.iter().map(class).collect();
        classes.sort_by(|a, b| (&a.from, &a.to, a.kind, a.phase).cmp(&(&b.from, &b.to, b.kind, b.phase)));
        let mut entries: Vec<EntryDemand> =
            (0..).zip(self.entries.iter().zip(&totals)).filter(|(_, (_, total))| **total > 0).map(entry_demand(keys)).collect();
        entries.sort_by(|a, b| (&a.task, &a.entry).cmp(&(&b.task, &b.entry)));
        WorkloadReport { operations: self.operations, classes, entries, events: self.events }
    }
}

/// The report on the entry of a key.
#[expect(clippy::cast_precision_loss, reason = "a mean over a count is rounded to the precision of f64")]
fn entry_demand(keys: &Keys) -> impl FnMut((u32, (&EntrySums, &u64))) -> EntryDemand + '_ {
    |(key, (sums, total))| {
        let (task, entry) = keys.names(key);
        let mean = |phase: usize| (sums.n_measured[phase] > 0).then(|| sums.cpu_ticks[phase] / sums.n_measured[phase] as f64);
        EntryDemand {
            task: task.to_owned(),
            entry: entry.to_owned(),
            total: *total,
            external: sums.external,
            phases: sums.phases,
            cpu_ticks: [mean(0), mean(1)],
        }
    }
}
