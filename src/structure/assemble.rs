//! Entries and customers to a model.
//!
//! One task for each process (or class of processes), one processor for each task, `NAME_cpu`: a single first-come,
//! first-served server, or infinite for reference tasks. A task has as many threads as sequential units were seen of it.
//! Numbers of calls are means for each invocation; demands are as [`super::Demands`] says, in seconds.
//!
//! A task of which some occurrences start on their own and others are requested is both: the former become the reference
//! task `NAME(client)`. A task in a circle of blocking calls is taken apart ([`super::layers`]).

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use super::{
    Demands, ExtractOptions,
    customers::Customers,
    extraction::{EntryReport, TaskReport},
    interactions::{Interactions, Tasks},
    layers,
    merge::{Accepts, ArcKind, Merged, MergedArc, MergedEntry},
};
use crate::{
    model::{Activity, Call, CallKind, Entry, Forwarding, Model, Number, Phase, Processor, ProcessorScheduling, Task, TaskScheduling},
    trace::diagnostics::Diagnostics,
};

/// A model, and the report on its tasks.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The model.
    pub model: Model,
    /// Its tasks, reference tasks first.
    pub tasks: Vec<TaskReport>,
    /// What a reader of the model should know.
    pub diagnostics: Diagnostics,
}

/// What is put together.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'p> {
    /// What was found.
    pub interactions: &'p Interactions,
    /// The tasks of its units.
    pub tasks: &'p Tasks,
    /// Its entries.
    pub merged: &'p Merged,
    /// Its reference tasks.
    pub customers: &'p [Customers],
    /// How demands, customers and think time are chosen.
    pub options: &'p ExtractOptions,
}

/// Builds the model called `name`.
pub fn assemble(name: &str, parts: Parts<'_>) -> Assembled {
    let mut servers = server_tasks(&parts);
    let mut names = TakenNames::default();
    let mut entry_names = vec![String::new(); parts.merged.entries.len()];
    for server in &mut servers {
        server.name = names.task(&server.name);
        for (position, entry) in server.entries.iter().enumerate() {
            let operation = parts.merged.entries[*entry].operation.map(|o| parts.interactions.operations.name(o));
            entry_names[*entry] = names.entry(&server.name, operation, position);
        }
    }
    let mut assembly = Assembly { parts, entry_names, out: Assembled::default() };
    assembly.out.model.name = model_name(name);
    for customers in parts.customers {
        let task = names.task(&assembly.customer_name(customers));
        let entry = names.entry(&task, None, 0);
        assembly.add_customers(customers, task, entry);
    }
    let threads = threads(&parts);
    let mut processors: HashMap<u32, String> = HashMap::new();
    for server in servers {
        let processor = processors.entry(server.task).or_insert_with(|| processor_name(&server.name)).clone();
        assembly.add_server(server, processor, &threads);
    }
    assembly.note_mixed_acceptance();
    assembly.out
}

/// Sequential units that served requests of each task, shape `(n_tasks,)`.
fn threads(parts: &Parts<'_>) -> Vec<u64> {
    let mut served = vec![false; parts.tasks.of_unit.len()];
    for occurrence in parts.interactions.occurrences.iter().filter(|o| !o.originator) {
        served[occurrence.unit as usize] = true;
    }
    let mut threads = vec![0; parts.tasks.names.len()];
    for (task, _) in parts.tasks.of_unit.iter().zip(served).filter(|(_, served)| *served) {
        threads[*task as usize] += 1;
    }
    threads
}

/// A task that accepts requests, or its part at one depth of a circle.
#[derive(Clone, Debug)]
struct Server {
    /// Number in [`Tasks::names`].
    task: u32,
    name: String,
    /// Whether this is the part that the task's processor is named after.
    first_part: bool,
    /// Indices into [`Merged::entries`].
    entries: Vec<usize>,
}

fn server_tasks(parts: &Parts<'_>) -> Vec<Server> {
    let depths = layers::depths(&parts.merged.entries, parts.tasks.names.len());
    let mut servers: IndexMap<(u32, usize), Server> = IndexMap::new();
    let mut n_parts = vec![0; parts.tasks.names.len()];
    let mut called: Vec<usize> = (0..depths.len()).filter(|entry| parts.merged.entries[*entry].accepts != Accepts::Nothing).collect();
    called.sort_by_key(|entry| depths[*entry]);
    for index in called {
        let task = parts.merged.entries[index].task;
        let server = servers.entry((task, depths[index])).or_insert_with(|| {
            n_parts[task as usize] += 1;
            let (name, part) = (parts.tasks.names.name(task), n_parts[task as usize]);
            let name = if part == 1 { name.to_owned() } else { format!("{name}#{part}") };
            Server { task, name, first_part: part == 1, entries: Vec::new() }
        });
        server.entries.push(index);
    }
    servers.into_values().collect()
}

struct Assembly<'p> {
    parts: Parts<'p>,
    /// Names of [`Merged::entries`]; empty for those of originators.
    entry_names: Vec<String>,
    out: Assembled,
}

impl Assembly<'_> {
    fn customer_name(&mut self, customers: &Customers) -> String {
        let Parts { tasks, merged, options, .. } = self.parts;
        let name = customers.task.map_or(options.client.as_str(), |task| tasks.names.name(task)).to_owned();
        let number = tasks.names.get(&name);
        let is_called = merged.entries.iter().any(|entry| Some(entry.task) == number && entry.accepts != Accepts::Nothing);
        if !is_called {
            return name;
        }
        let message = "tasks both start interactions and are requested: a reference task cannot, so their start is one of its own";
        self.out.diagnostics.add("reference_task_split", message, || format!("{name}(client)"));
        format!("{name}(client)")
    }

    fn add_customers(&mut self, customers: &Customers, name: String, entry_name: String) {
        let options = self.parts.options;
        let self_time = [customers.self_time_ticks, None];
        let processor = processor_name(&name);
        let mut task = Task::new(name.clone(), processor.clone());
        task.scheduling = TaskScheduling::Ref;
        task.multiplicity = options.customers.clone().unwrap_or(Number::Value(customers.n_units as f64));
        task.think_time = options.think_time.clone();
        task.entries.push(self.entry(entry_name.clone(), &customers.arcs, self_time));
        if options.think_time.is(0.0) && customers.arcs.iter().all(|arc| arc.kind == ArcKind::Async) {
            let message = "customers wait for no reply and do not think, so that their rate is bounded by their own demand only: \
                           give them a think time";
            self.out.diagnostics.add("unpaced_customers", message, || name.clone());
        }
        self.add_processor(&processor, ProcessorScheduling::Inf);
        self.out.model.tasks.push(task);
        let report = EntryReport {
            name: entry_name,
            operation: None,
            accepts: Accepts::Nothing,
            occurrences: customers.n_occurrences,
            first: self.parts.interactions.occurrence_name(customers.first),
            self_times: self.self_times(self_time),
        };
        self.out.tasks.push(TaskReport { name, reference: true, processor, threads: customers.n_units, entries: vec![report] });
    }

    fn add_server(&mut self, server: Server, processor: String, threads: &[u64]) {
        let Server { name, .. } = server;
        let threads = threads[server.task as usize];
        let mut task = Task::new(name.clone(), processor.clone());
        task.multiplicity = Number::Value(threads as f64);
        let mut entries = Vec::new();
        for index in &server.entries {
            let merged = &self.parts.merged.entries[*index];
            let entry_name = self.entry_names[*index].clone();
            task.entries.push(self.entry(entry_name.clone(), &merged.arcs, merged.self_time_ticks));
            entries.push(self.entry_report(entry_name, merged));
        }
        if server.first_part {
            self.add_processor(&processor, ProcessorScheduling::Fcfs);
        } else {
            let message = "tasks call one another in a circle, which may deadlock and cannot be solved: they were taken apart, \
                           each part with threads of its own";
            self.out.diagnostics.add("cyclic_calls", message, || name.clone());
        }
        self.out.model.tasks.push(task);
        self.out.tasks.push(TaskReport { name, reference: false, processor, threads, entries });
    }

    fn entry_report(&self, name: String, merged: &MergedEntry) -> EntryReport {
        EntryReport {
            name,
            operation: merged.operation.map(|o| self.parts.interactions.operations.name(o).to_owned()),
            accepts: merged.accepts,
            occurrences: merged.n_occurrences,
            first: self.parts.interactions.occurrence_name(merged.first),
            self_times: self.self_times(merged.self_time_ticks),
        }
    }

    fn add_processor(&mut self, name: &str, scheduling: ProcessorScheduling) {
        let mut processor = Processor::new(name);
        processor.scheduling = scheduling;
        self.out.model.processors.push(processor);
    }

    fn self_times(&self, ticks: [Option<f64>; 2]) -> Vec<Option<f64>> {
        let seconds = ticks.map(|ticks| ticks.map(|t| t * self.parts.options.seconds_per_tick));
        if seconds[1].is_some() { seconds.to_vec() } else { vec![seconds[0]] }
    }

    fn entry(&self, name: String, arcs: &[MergedArc], self_time_ticks: [Option<f64>; 2]) -> Entry {
        let options = self.parts.options;
        let measured =
            self_time_ticks.map(|ticks| ticks.filter(|_| options.demands == Demands::SelfTimes).map(|t| t * options.seconds_per_tick));
        let mut first = Activity::new(format!("{name}_ph1"), measured[0].unwrap_or(options.default_demand));
        let mut second = Activity::new(format!("{name}_ph2"), measured[1].unwrap_or(0.0));
        let mut entry = Entry::new(name);
        for arc in arcs {
            let (dest, mean) = (self.entry_names[arc.target].clone(), Number::Value(arc.mean));
            let calls = if arc.phase == 2 { &mut second.calls } else { &mut first.calls };
            match arc.kind {
                ArcKind::Sync => calls.push(Call { kind: CallKind::Sync, dest, mean }),
                ArcKind::Async => calls.push(Call { kind: CallKind::Async, dest, mean }),
                ArcKind::Forward => entry.forwarding.push(Forwarding { dest, probability: mean }),
            }
        }
        let has_second = !second.calls.is_empty() || !second.host_demand.is(0.0);
        entry.phases.push(Phase { phase: 1, activity: first });
        if has_second {
            entry.phases.push(Phase { phase: 2, activity: second });
        }
        entry
    }

    fn note_mixed_acceptance(&mut self) {
        let mut kinds: IndexMap<(u32, Option<u32>), IndexSet<Accepts>> = IndexMap::new();
        for entry in self.parts.merged.entries.iter().filter(|entry| entry.accepts != Accepts::Nothing) {
            kinds.entry((entry.task, entry.operation)).or_default().insert(entry.accepts);
        }
        let Parts { tasks, interactions, .. } = self.parts;
        for ((task, operation), _) in kinds.iter().filter(|(_, kinds)| kinds.len() > 1) {
            let message = "operations were requested with and without a reply: each kind has its own entry";
            let operation = operation.map_or("", |o| interactions.operations.name(o));
            self.out
                .diagnostics
                .add("entry_mixed_accept", message, || format!("{} {operation}", tasks.names.name(*task)).trim().to_owned());
        }
    }
}

fn processor_name(task: &str) -> String {
    format!("{task}_cpu")
}

/// A name that measures and the LQN tools can hold: no blanks, no separators of theirs.
fn model_name(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "_-.:/@#()".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}

/// Names in use; tasks and entries have name spaces of their own.
#[derive(Default)]
struct TakenNames {
    tasks: HashSet<String>,
    entries: HashSet<String>,
}

impl TakenNames {
    fn task(&mut self, wanted: &str) -> String {
        take(&mut self.tasks, model_name(wanted))
    }

    /// `TASK.OPERATION`, or `TASK.1`, `TASK.2`, … where the operation is not known.
    fn entry(&mut self, task: &str, operation: Option<&str>, position: usize) -> String {
        match operation {
            Some(operation) => take(&mut self.entries, model_name(&format!("{task}.{operation}"))),
            None => take(&mut self.entries, format!("{task}.{}", position + 1)),
        }
    }
}

/// `name`, with a number appended where it is taken.
fn take(taken: &mut HashSet<String>, name: String) -> String {
    let mut candidate = name.clone();
    let mut n = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}#{n}");
        n += 1;
    }
    candidate
}
