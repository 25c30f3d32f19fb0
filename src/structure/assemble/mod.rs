//! Entries and customers to a model.
//!
//! One task for each process (or class of processes), one processor for each task, `NAME_cpu`: a single first-come,
//! first-served server, or infinite for reference tasks. A task has as many threads as sequential units were seen of it.
//! Numbers of calls are means for each invocation; demands are as [`super::Demands`] says, in seconds.
//!
//! A task of which some occurrences start on their own and others are requested is both: the former become the reference
//! task `NAME(client)`. A task in a circle of blocking calls is taken apart ([`super::layers`]).

mod cores;
mod entry;
mod names;
mod threads;
mod visits;
mod workload;

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use super::{
    Demands, ExtractOptions, MergeKey,
    customers::Customers,
    entries::{Accepts, ArcKind, Merged, MergedArc, MergedEntry},
    extraction::{CallReport, EntryReport, TaskReport},
    interactions::{ProcessHints, ProcessorHints, SeenThreads, Workload, processor_name},
    layers,
    summary::Summary,
};
use crate::{
    model::{Model, Number, Processor, ProcessorScheduling, Task, TaskScheduling},
    trace::diagnostics::Diagnostics,
};
use entry::EntryBody;
use names::{TakenNames, model_name};

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
    pub summary: &'p Summary,
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
            let operation = parts.merged.entries[*entry].operation.map(|o| parts.summary.operations.name(o));
            entry_names[*entry] = names.entry(&server.name, operation, position);
        }
    }
    let mut assembly = Assembly {
        parts,
        entry_names,
        arrivals: IndexMap::new(),
        load: IndexMap::new(),
        called: HashSet::new(),
        server_tasks: Vec::new(),
        arrival_names: HashMap::new(),
        out: Assembled::default(),
    };
    assembly.out.model.name = model_name(name);
    let hints = task_hints(&parts);
    for customers in parts.customers {
        let name = assembly.customer_name(customers);
        // What is said of a task that also serves is said of its serving part.
        let said = customers.task.filter(|task| parts.summary.tasks.names.name(*task) == name).map(|task| &hints[task as usize]);
        let task = names.task(&name);
        let entry = names.entry(&task, None, 0);
        assembly.add_customers(customers, task, entry, said);
    }
    assembly.called = assembly.called_entries();
    for server in &servers {
        for (position, entry) in server.entries.iter().enumerate() {
            if assembly.arrivals.contains_key(entry) && assembly.called.contains(entry) {
                let operation = parts.merged.entries[*entry].operation.map(|o| parts.summary.operations.name(o));
                assembly.arrival_names.insert(*entry, names.entry(&server.name, operation, position));
            }
        }
    }
    let mut processors: HashMap<u32, String> = HashMap::new();
    for server in servers {
        let hints = &hints[server.task as usize];
        let named = || hints.processor.as_deref().map_or_else(|| processor_name(&server.name), model_name);
        let processor = processors.entry(server.task).or_insert_with(named).clone();
        assembly.add_server(server, processor, hints);
    }
    assembly.add_arrivals();
    assembly.add_visits(&hints, &mut names);
    assembly.lift_threads(&hints);
    assembly.assume_cores(&hints);
    assembly.note_many_behaviours();
    assembly.note_mixed_acceptance();
    assembly.out
}

/// What the traces or the user say of the processes of each task, shape `(n_tasks,)`: threads are summed, of the rest the
/// first that is said counts.
fn task_hints(parts: &Parts<'_>) -> Vec<ProcessHints> {
    let Parts { summary, .. } = *parts;
    let mut of_tasks = vec![ProcessHints::default(); summary.tasks.names.len()];
    let mut seen = HashSet::new();
    for (process, task) in summary.units.process_of.iter().zip(&summary.tasks.of_unit) {
        let name = summary.units.processes.name(*process);
        let (true, Some(hints)) = (seen.insert(*process), summary.hints.processes.get(name)) else { continue };
        let known = &mut of_tasks[*task as usize];
        known.processor = known.processor.take().or_else(|| hints.processor.clone());
        known.seen_threads = joined_threads(known, hints);
        known.threads = known.threads.map_or(hints.threads, |n| Some(n + hints.threads.unwrap_or(0)));
        known.infinite |= hints.infinite;
        known.scheduling = known.scheduling.or(hints.scheduling);
        for (operation, demands) in &hints.demands {
            known.demands.entry(operation.clone()).or_insert(*demands);
        }
        visits::join(&mut known.visits, &hints.visits);
    }
    let units = summary.serving_units();
    of_tasks.iter_mut().zip(units).for_each(|(hints, n)| hints.threads = Some(hints.threads.unwrap_or(n).max(1)));
    of_tasks
}

/// What was seen of the threads of two processes that are one task, if none of them is said.
fn joined_threads(a: &ProcessHints, b: &ProcessHints) -> Option<SeenThreads> {
    match (a.threads, b.threads) {
        (None, _) => b.seen_threads,
        (_, None) => a.seen_threads,
        _ => {
            let (a, b) = (a.seen_threads?, b.seen_threads?);
            Some(SeenThreads { wait_s: a.wait_s.zip(b.wait_s).map(|(a, b)| a.max(b)) })
        }
    }
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
    let depths = layers::depths(&parts.merged.entries, parts.summary.tasks.names.len());
    let mut servers: IndexMap<(u32, usize), Server> = IndexMap::new();
    let mut n_parts = vec![0; parts.summary.tasks.names.len()];
    let mut called: Vec<usize> = (0..depths.len()).filter(|entry| parts.merged.entries[*entry].accepts != Accepts::Nothing).collect();
    called.sort_by_key(|entry| depths[*entry]);
    for index in called {
        let task = parts.merged.entries[index].task;
        let server = servers.entry((task, depths[index])).or_insert_with(|| {
            n_parts[task as usize] += 1;
            let (name, part) = (parts.summary.tasks.names.name(task), n_parts[task as usize]);
            let name = if part == 1 { name.to_owned() } else { format!("{name}#{part}") };
            Server { task, name, first_part: part == 1, entries: Vec::new() }
        });
        server.entries.push(index);
    }
    servers.into_values().collect()
}

/// Entries, in all and for each operation, from which it is said that they can be merged.
const MANY_ENTRIES: usize = 50;
const MANY_OF_ONE: usize = 5;

impl Assembly<'_> {
    /// Says so where entries are many for that each differs in what it calls.
    fn note_many_behaviours(&mut self) {
        let Parts { merged, options, .. } = self.parts;
        let of_operations: Vec<(u32, u32)> = merged.entries.iter().filter_map(|e| Some((e.task, e.operation?))).collect();
        let n_operations = of_operations.iter().collect::<HashSet<_>>().len();
        let is_many = of_operations.len() >= MANY_ENTRIES && of_operations.len() >= MANY_OF_ONE * n_operations;
        if is_many && options.merge != MergeKey::Operation {
            let message = "executions of one operation are many entries, as they differ in what they call: merged by operation (--merge operation, \
                           merge) they are one, with mean numbers of calls";
            let example = format!("{} entries of {n_operations} operations", of_operations.len());
            self.out.diagnostics.add("many_behaviours", message, || example);
        }
    }
}

struct Assembly<'p> {
    parts: Parts<'p>,
    /// Names of [`Merged::entries`]; empty for those of originators.
    entry_names: Vec<String>,
    /// Entries that requests arrive at from outside, where nobody waits for a reply, with their rates.
    arrivals: IndexMap<usize, f64>,
    /// Requests of entries a second by what starts, arrivals and customers alike, at the load seen.
    load: IndexMap<usize, f64>,
    /// Places in the model of the tasks that accept requests, with their numbers.
    server_tasks: Vec<(usize, u32)>,
    /// Entries that other entries or reference tasks call.
    called: HashSet<usize>,
    /// Names of the entries for what arrives from outside, of those that are called, too: one entry takes one kind of request.
    arrival_names: HashMap<usize, String>,
    out: Assembled,
}

impl Assembly<'_> {
    fn customer_name(&mut self, customers: &Customers) -> String {
        let Parts { summary, merged, options, .. } = self.parts;
        let name = customers.task.map_or(options.client.as_str(), |task| summary.tasks.names.name(task)).to_owned();
        let mark = customers.class.as_deref().filter(|class| !class.is_empty()).map_or_else(String::new, |class| format!("({class})"));
        let number = summary.tasks.names.get(&name);
        let is_called = merged.entries.iter().any(|entry| Some(entry.task) == number && entry.accepts != Accepts::Nothing);
        if !is_called {
            return name + &mark;
        }
        let message = "tasks both start interactions and are requested: a reference task cannot, so their start is one of its own";
        self.out.diagnostics.add("reference_task_split", message, || format!("{name}(client)"));
        format!("{name}(client){mark}")
    }

    /// Cycles a second of what arrives from outside, whatever the number of customers. A number can be asked for instead, but not of
    /// what arrives beside sessions.
    fn rate_from_outside(&self, customers: &Customers) -> Option<f64> {
        let arrives = self.parts.options.customers.is_none() || customers.class.is_some();
        if let (Some(Workload::Open { rate }), true) = (customers.workload, arrives) { Some(rate) } else { None }
    }

    fn add_customers(&mut self, customers: &Customers, name: String, entry_name: String, hints: Option<&ProcessHints>) {
        self.note_load(customers);
        if let Some(rate) = self.rate_from_outside(customers) {
            for arc in &customers.arcs {
                *self.arrivals.entry(arc.target).or_insert(0.0) += rate * arc.mean;
            }
            self.note_open(customers, &name, rate);
            return;
        }
        self.note_closed(customers, &name);
        let shared = hints.and_then(|hints| hints.processor.as_deref());
        let processor = shared.map_or_else(|| processor_name(&name), model_name);
        // Their one entry stands for all that they begin.
        let said = hints.and_then(|hints| hints.demands.values().next()).copied();
        let mut task = Task::new(name.clone(), processor.clone());
        task.scheduling = TaskScheduling::Ref;
        (task.multiplicity, task.think_time) = self.population(customers);
        let paced = !task.think_time.is(0.0);
        let own = [Self::own_time(customers, paced), None];
        let demands = self.demands(own, said);
        self.note_default(&entry_name, own, said);
        let (name_of_entry, n_occurrences) = (entry_name.clone(), customers.n_occurrences);
        let body = EntryBody { name: name_of_entry, accepts: Accepts::Nothing, n_occurrences, arcs: &customers.arcs, forks: &[], demands };
        self.add_entry(&mut task, &body);
        if !paced && customers.arcs.iter().all(|arc| arc.kind == ArcKind::Async) {
            let message = "customers wait for no reply and do not think, so that their rate is bounded by their own demand only: \
                           give them a think time";
            self.out.diagnostics.add("unpaced_customers", message, || name.clone());
        }
        self.add_processor(&processor, if shared.is_some() { ProcessorScheduling::Fcfs } else { ProcessorScheduling::Inf });
        self.out.model.tasks.push(task);
        let report = EntryReport {
            name: entry_name,
            operation: None,
            accepts: Accepts::Nothing,
            occurrences: customers.n_occurrences,
            first: self.parts.summary.name(customers.first),
            self_times: vec![customers.self_time_ticks.map(|t| t * self.parts.options.seconds_per_tick)],
            self_time_variations: Vec::new(),
            calls: self.call_reports(&customers.arcs, customers.n_occurrences),
            examples: Vec::new(),
        };
        self.out.tasks.push(TaskReport {
            name,
            reference: true,
            processor,
            threads: customers.n_units,
            is_infinite: false,
            entries: vec![report],
        });
    }

    /// Self time of a cycle in ticks; what customers do by themselves is part of a think time that was seen. A cycle without any, that
    /// waits for nothing and is not `paced` either, would take no time: then it is not known.
    fn own_time(customers: &Customers, paced: bool) -> Option<f64> {
        let thinks = matches!(customers.workload, Some(Workload::Closed { think_time, .. }) if think_time > 0.0);
        let waits = customers.arcs.iter().any(|arc| arc.kind != ArcKind::Async);
        let known = customers.self_time_ticks.or((thinks && customers.seen.is_some()).then_some(0.0));
        known.filter(|ticks| *ticks > 0.0 || waits || paced)
    }

    /// Number of customers and their think time: as asked for, else as the traces say, else as many as were seen at once.
    fn population(&self, customers: &Customers) -> (Number, Number) {
        let options = self.parts.options;
        let (seen, thinking) = match customers.workload {
            Some(Workload::Closed { customers, think_time }) => (customers.round().max(1.0), think_time),
            _ => (customers.n_units as f64, 0.0),
        };
        // Of classes of behaviour, a number that was asked for is shared out already.
        let whole = options.customers.clone().filter(|n| customers.class.is_none() || n.literal().is_none());
        let multiplicity = whole.unwrap_or(Number::Value(seen));
        let asked = !options.think_time.is(0.0);
        (multiplicity, if asked { options.think_time.clone() } else { Number::Value(thinking) })
    }

    fn add_server(&mut self, server: Server, processor: String, hints: &ProcessHints) {
        let Server { name, .. } = server;
        self.server_tasks.push((self.out.model.tasks.len(), server.task));
        let threads = hints.threads.unwrap_or(1);
        let mut task = Task::new(name.clone(), processor.clone());
        task.multiplicity = Number::Value(threads as f64);
        task.scheduling = hints.scheduling.unwrap_or_default();
        if hints.infinite {
            (task.scheduling, task.multiplicity) = (TaskScheduling::Inf, Number::Value(1.0));
        }
        let mut entries = Vec::new();
        for index in &server.entries {
            let merged = &self.parts.merged.entries[*index];
            let said = merged.operation.and_then(|o| hints.demands.get(self.parts.summary.operations.name(o))).copied();
            let called = self.entry_names[*index].clone();
            let only_arrives = self.arrivals.contains_key(index) && !self.called.contains(index);
            let accepts = if only_arrives { Accepts::Async } else { merged.accepts };
            let arriving = self.arrival_names.get(index).map(|name| (name.clone(), Accepts::Async));
            let self_times = merged.self_times.map(|time| time.map(|t| t.mean_ticks));
            for (entry_name, accepts) in std::iter::once((called, accepts)).chain(arriving) {
                let demands = self.demands(self_times, said);
                self.note_default(&entry_name, self_times, said);
                let (arcs, forks, n_occurrences) = (&merged.arcs, &merged.forks, merged.n_occurrences);
                let body = EntryBody { name: entry_name.clone(), accepts, n_occurrences, arcs, forks, demands };
                self.add_entry(&mut task, &body);
                entries.push(self.entry_report(entry_name, merged));
            }
        }
        if server.first_part {
            self.add_processor(&processor, ProcessorScheduling::Fcfs);
        } else {
            let message = "tasks call one another in a circle, which may deadlock and cannot be solved: they were taken apart, \
                           each part with threads of its own";
            self.out.diagnostics.add("cyclic_calls", message, || name.clone());
        }
        self.out.model.tasks.push(task);
        let is_infinite = hints.infinite;
        self.out.tasks.push(TaskReport { name, reference: false, processor, threads, is_infinite, entries });
    }

    fn called_entries(&self) -> HashSet<usize> {
        let entries = self.parts.merged.entries.iter().filter(|source| source.accepts != Accepts::Nothing);
        let customers = self.parts.customers.iter().filter(|customers| self.rate_from_outside(customers).is_none());
        entries.flat_map(|source| &source.arcs).chain(customers.flat_map(|customers| &customers.arcs)).map(|arc| arc.target).collect()
    }

    /// Puts the arrivals into the model.
    fn add_arrivals(&mut self) {
        for (entry, rate) in &self.arrivals {
            let name = self.arrival_names.get(entry).unwrap_or(&self.entry_names[*entry]);
            let known = self.out.model.tasks.iter_mut().flat_map(|task| &mut task.entries).find(|entry| entry.name == *name);
            if let Some(entry) = known {
                entry.open_arrival_rate = Some(Number::Value(*rate));
            }
        }
    }

    fn entry_report(&self, name: String, merged: &MergedEntry) -> EntryReport {
        let means = merged.self_times.map(|time| time.map(|t| t.mean_ticks * self.parts.options.seconds_per_tick));
        let variations = merged.self_times.map(|time| time.and_then(|t| t.variation));
        let n_phases = if means[1].is_some() { 2 } else { 1 };
        EntryReport {
            name,
            operation: merged.operation.map(|o| self.parts.summary.operations.name(o).to_owned()),
            accepts: merged.accepts,
            occurrences: merged.n_occurrences,
            first: self.parts.summary.name(merged.first),
            self_times: means[..n_phases].to_vec(),
            self_time_variations: if variations[0].is_some() { variations[..n_phases].to_vec() } else { Vec::new() },
            calls: self.call_reports(&merged.arcs, merged.n_occurrences),
            examples: merged.examples.clone(),
        }
    }

    fn call_reports(&self, arcs: &[MergedArc], n_occurrences: u64) -> Vec<CallReport> {
        let report = |arc: &MergedArc| {
            let n = n_occurrences as f64;
            let moment = |power: i32| arc.counts.iter().map(|(calls, times)| (*calls as f64).powi(power) * *times as f64).sum::<f64>() / n;
            let (mean, square) = (moment(1), moment(2));
            CallReport {
                to: self.entry_names[arc.target].clone(),
                kind: arc.kind,
                phase: arc.phase,
                mean: arc.mean,
                variance: (square - mean * mean).max(0.0),
                occurrences: arc.counts.iter().map(|(_, times)| times).sum(),
                distribution: arc.counts.clone(),
            }
        };
        arcs.iter().map(report).collect()
    }

    /// A processor, with what is known of it; one that several tasks share is there once.
    fn add_processor(&mut self, name: &str, scheduling: ProcessorScheduling) {
        if self.out.model.processors.iter().any(|processor| processor.name == name) {
            return;
        }
        let hints = self.processor_hints(name);
        let mut processor = Processor::new(name);
        processor.scheduling = hints.and_then(|hints| hints.scheduling).unwrap_or(scheduling);
        if let Some(cores) = hints.and_then(|hints| hints.cores.or(hints.machines)) {
            processor.multiplicity = Number::Value(cores as f64);
        }
        self.out.model.processors.push(processor);
    }

    /// What is known of the processor of this name in the model.
    fn processor_hints(&self, name: &str) -> Option<ProcessorHints> {
        self.parts.summary.hints.processors.iter().find(|(known, _)| model_name(known) == name).map(|(_, hints)| *hints)
    }

    /// Demands of phases 1 and 2 in seconds: what is said of the entry, else as the options want it.
    fn demands(&self, self_time_ticks: [Option<f64>; 2], said: Option<[Option<f64>; 2]>) -> [f64; 2] {
        let [first, second] = self.known_demands(self_time_ticks, said);
        [first.unwrap_or(self.parts.options.default_demand), second.unwrap_or(0.0)]
    }

    fn known_demands(&self, self_time_ticks: [Option<f64>; 2], said: Option<[Option<f64>; 2]>) -> [Option<f64>; 2] {
        let options = self.parts.options;
        let measured = |ticks: Option<f64>| ticks.filter(|_| options.demands == Demands::SelfTimes).map(|t| t * options.seconds_per_tick);
        let said = said.unwrap_or_default();
        [0, 1].map(|phase| said[phase].or(measured(self_time_ticks[phase])))
    }

    fn note_default(&mut self, entry: &str, self_time_ticks: [Option<f64>; 2], said: Option<[Option<f64>; 2]>) {
        if self.known_demands(self_time_ticks, said)[0].is_none() {
            let message = "entries have the default host demand";
            self.out.diagnostics.add("host_demand_defaulted", message, || entry.to_owned());
        }
    }

    fn note_mixed_acceptance(&mut self) {
        let mut kinds: IndexMap<(u32, Option<u32>), IndexSet<Accepts>> = IndexMap::new();
        for entry in self.parts.merged.entries.iter().filter(|entry| entry.accepts != Accepts::Nothing) {
            kinds.entry((entry.task, entry.operation)).or_default().insert(entry.accepts);
        }
        for entry in self.arrival_names.keys().map(|entry| &self.parts.merged.entries[*entry]) {
            kinds.entry((entry.task, entry.operation)).or_default().extend([entry.accepts, Accepts::Async]);
        }
        let Parts { summary, .. } = self.parts;
        for ((task, operation), _) in kinds.iter().filter(|(_, kinds)| kinds.len() > 1) {
            let message = "operations were requested with and without a reply: each kind has its own entry";
            let operation = operation.map_or("", |o| summary.operations.name(o));
            self.out
                .diagnostics
                .add("entry_mixed_accept", message, || format!("{} {operation}", summary.tasks.names.name(*task)).trim().to_owned());
        }
    }
}
