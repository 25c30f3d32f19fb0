//! From a model and its parameter values to a [`Network`].
//!
//! A task of `R` copies on a processor of `P` copies runs copy `r` on processor copy `ceil(r P / R)`. Copy `s` of a caller
//! calls copies `((s-1) O + k-1 mod R) + 1`, `k = 1..O`, of a task of `R` copies to which its fan-out is `O`, each with the
//! full mean number of calls.

mod processor;
mod watch;
mod work;

use std::collections::HashMap;

use super::{
    graph::Graph,
    law::Law,
    network::{Network, OriginEntry, OriginTask, Task, TaskKind},
};
use crate::{
    model::{self, Model, TaskScheduling},
    solve::{
        SolveError,
        bind::{Binder, Count, unusable},
        orders,
        role::Role,
        visits::entry_shares,
    },
};

/// Most elements over all copies.
const ELEMENT_LIMIT: usize = 4_000_000;

/// A quantum below this part of a processor's mean slice is simulated as true sharing.
const NEGLIGIBLE_QUANTUM: f64 = 0.01;

/// Slices of this part of the mean stand for the limit of small quanta under fair shares.
const FAIR_QUANTUM: f64 = 0.02;

/// Compiles `model`.
///
/// # Errors
/// [`SolveError::Unbound`] and [`SolveError::Unusable`] for numbers and references that cannot be used,
/// [`SolveError::Unsupported`] for a construct without a meaning here.
pub(super) fn compile(model: &Model, binder: &Binder) -> Result<Network, SolveError> {
    let mut compiler = Compiler::new(model, binder)?;
    compiler.lay_out()?;
    for (t, task) in model.tasks.iter().enumerate() {
        compiler.task(t, task)?;
    }
    for (p, processor) in model.processors.iter().enumerate() {
        compiler.processor(p, processor)?;
    }
    compiler.watches()?;
    if compiler.network.sources.is_empty() && !compiler.network.tasks.iter().any(|t| t.kind == TaskKind::Reference) {
        return Err(unusable("model", "it has no load: expected a reference task or open arrivals"));
    }
    Ok(compiler.network)
}

/// Where the copies of a task are.
struct Placement {
    copies: u32,
    first_task: u32,
    first_entry: u32,
    n_entries: u32,
}

struct Compiler<'a> {
    model: &'a Model,
    binder: &'a Binder,
    network: Network,
    placements: Vec<Placement>,
    processor_copies: Vec<u32>,
    first_processor: Vec<u32>,
    /// Entry name to task and number in the task.
    entries: HashMap<&'a str, (usize, usize)>,
    /// Distinct task priorities, most urgent first.
    priorities: Vec<f64>,
    /// Speed factor of each processor.
    speeds: Vec<f64>,
    /// Processor of each task.
    hosts: Vec<usize>,
    /// Sum and number of the mean slices on each processor, in time.
    slices: Vec<(f64, f64)>,
    /// First origin of the entries of each task.
    first_origin: Vec<usize>,
}

fn task_element(task: &model::Task) -> String {
    format!("task \"{}\"", task.name)
}

#[expect(clippy::cast_possible_truncation, reason = "bounded by the limit of elements")]
fn index(n: usize) -> u32 {
    n as u32
}

impl<'a> Compiler<'a> {
    fn new(model: &'a Model, binder: &'a Binder) -> Result<Self, SolveError> {
        let mut entries = HashMap::new();
        for (t, task) in model.tasks.iter().enumerate() {
            for (e, entry) in task.entries.iter().enumerate() {
                entries.insert(entry.name.as_str(), (t, e));
            }
        }
        let mut priorities = Vec::new();
        for task in &model.tasks {
            priorities.push(binder.finite(&task.priority, &task_element(task), "priority")?);
        }
        priorities.sort_by(|a, b| b.total_cmp(a));
        priorities.dedup();
        let slices = vec![(0.0, 0.0); model.processors.len()];
        let network = Network::default();
        let mut speeds = Vec::new();
        for processor in &model.processors {
            speeds.push(binder.positive(&processor.speed_factor, &format!("processor \"{}\"", processor.name), "speed factor")?);
        }
        let (placements, processor_copies, first_processor, first_origin, hosts) = Default::default();
        Ok(Self {
            model,
            binder,
            network,
            placements,
            processor_copies,
            first_processor,
            entries,
            priorities,
            speeds,
            hosts,
            slices,
            first_origin,
        })
    }

    /// Numbers the copies of processors, tasks and entries.
    fn lay_out(&mut self) -> Result<(), SolveError> {
        let (mut processors, mut tasks, mut entries) = (0, 0, 0);
        for processor in &self.model.processors {
            let copies = self.binder.whole(&processor.replication, &format!("processor \"{}\"", processor.name), "replication", 1.0)?;
            self.processor_copies.push(copies);
            self.first_processor.push(processors);
            processors += copies;
            self.network.origins.processors.push((processor.name.clone(), f64::from(copies)));
        }
        let mut elements = 0_usize;
        for task in &self.model.tasks {
            let copies = self.binder.whole(&task.replication, &task_element(task), "replication", 1.0)?;
            let n_entries = index(task.entries.len());
            self.placements.push(Placement { copies, first_task: tasks, first_entry: entries, n_entries });
            elements += copies as usize * (1 + task.entries.len() * 4 + task.activities.len());
            if elements > ELEMENT_LIMIT {
                return Err(unusable(task_element(task), format!("with all copies the model has more than {ELEMENT_LIMIT} elements")));
            }
            tasks += copies;
            entries += copies * n_entries;
            self.first_origin.push(self.network.origins.entries.len());
            self.origin(task, copies);
        }
        Ok(())
    }

    /// Registers a task and its entries for results.
    fn origin(&mut self, task: &model::Task, copies: u32) {
        let number = self.network.origins.tasks.len();
        let is_reference = task.scheduling.is_reference();
        self.network.origins.tasks.push(OriginTask { name: task.name.clone(), copies, is_reference, sums_levels: true, sums_cycles: true });
        for entry in &task.entries {
            let n_phases = entry.phases.iter().map(|p| usize::from(p.phase)).max().unwrap_or(1).max(1);
            self.network.origins.entries.push(OriginEntry {
                name: entry.name.clone(),
                task: number,
                n_phases: if entry.start_activity.is_some() { 2 } else { n_phases },
                has_phases: entry.start_activity.is_none(),
                is_open: entry.open_arrival_rate.is_some(),
                is_bounded: !task.queue_length.is(0.0),
                is_taking: matches!(Role::of(entry), Role::Wait | Role::ReadLock | Role::WriteLock),
                is_immediate: matches!(Role::of(entry), Role::ReadUnlock | Role::WriteUnlock),
                takes_time: [entry.start_activity.is_some(); 3],
            });
        }
    }

    fn task(&mut self, t: usize, task: &model::Task) -> Result<(), SolveError> {
        let element = task_element(task);
        if task.entries.is_empty() {
            return Err(unusable(element, "it has no entries"));
        }
        let graph = Graph::new(task, self.binder)?;
        let threads = self.binder.count(&task.multiplicity, &element, "multiplicity")?;
        let threads = if task.scheduling == TaskScheduling::Inf { Count::Infinite } else { threads };
        let kind = self.task_kind(task, threads, &graph)?;
        let origin = &mut self.network.origins.tasks[t];
        origin.sums_levels = kind != TaskKind::Synchronizing;
        origin.sums_cycles = !kind.is_open_ended();
        if threads == Count::Infinite {
            let first = self.first_origin[t];
            self.network.origins.entries[first..first + task.entries.len()].iter_mut().for_each(|e| e.is_immediate = true);
        }
        let p = self.model.processors.iter().position(|p| p.name == task.processor);
        let p = p.ok_or_else(|| unusable(&element, format!("its processor \"{}\" does not exist", task.processor)))?;
        self.hosts.push(p);
        let (copies, hosts) = (self.placements[t].copies, self.processor_copies[p]);
        if !copies.is_multiple_of(hosts) {
            return Err(unusable(element, format!("its {copies} copies are not a multiple of the {hosts} copies of its processor")));
        }
        let family = Network::family(task.scheduling);
        let think = self.binder.amount(&task.think_time, &element, "think time")?;
        let think = Law::new(family, think, 1.0).map_err(|reason| unusable(&element, reason))?;
        let places = match self.binder.whole(&task.queue_length, &element, "queue length", 0.0)? {
            0 => u32::MAX,
            places => places,
        };
        let priority = self.binder.finite(&task.priority, &element, "priority")?;
        let rank = self.priorities.iter().position(|p| p.total_cmp(&priority).is_eq()).unwrap_or_default();
        let origins = self.call_origins(t, task, &graph)?;
        for copy in 0..copies {
            let first_entry = self.placements[t].first_entry + copy * self.placements[t].n_entries;
            self.network.tasks.push(Task {
                origin: index(t),
                processor: self.first_processor[p] + copy / (copies / hosts),
                kind,
                threads,
                rank: index(rank),
                priority,
                group: self.group(p, t, task)?,
                places,
                entries: first_entry..first_entry + self.placements[t].n_entries,
                think: think.clone(),
                visits: self.visits(task)?,
            });
            self.entries_of(t, task, copy, &graph, &origins, family)?;
        }
        Ok(())
    }

    fn task_kind(&mut self, task: &model::Task, threads: Count, graph: &Graph) -> Result<TaskKind, SolveError> {
        let element = task_element(task);
        let finite = |what: &str| match threads {
            Count::Finite(n) => Ok(n),
            Count::Infinite => Err(unusable(&element, format!("its multiplicity is infinite, which a {what} cannot have"))),
        };
        if graph.is_synchronizing() {
            if threads != Count::Finite(1) || task.scheduling.is_lock() || task.scheduling.is_reference() {
                return Err(unusable(
                    &element,
                    "it joins activities of several entries, which only a server task of multiplicity 1 can do",
                ));
            }
            return Ok(TaskKind::Synchronizing);
        }
        Ok(match task.scheduling {
            TaskScheduling::Ref | TaskScheduling::Burst | TaskScheduling::Uniform => {
                finite("reference task")?;
                TaskKind::Reference
            }
            TaskScheduling::Semaphore => {
                let tokens = finite("semaphore")?;
                let free = task.initial_tokens.as_ref().map(|n| self.binder.whole(n, &element, "initial number of tokens", 0.0));
                let free = free.transpose()?.unwrap_or(tokens);
                if free > tokens {
                    return Err(unusable(element, format!("it starts with {free} of its {tokens} tokens")));
                }
                TaskKind::Semaphore { free }
            }
            TaskScheduling::RwLock => {
                finite("read-write lock")?;
                TaskKind::RwLock
            }
            TaskScheduling::Hol => TaskKind::Priority,
            TaskScheduling::Rand => TaskKind::Random,
            TaskScheduling::Poll | TaskScheduling::Pri => {
                self.network.notes.extend(orders::note(task));
                TaskKind::Fifo
            }
            TaskScheduling::Fcfs | TaskScheduling::Inf => TaskKind::Fifo,
        })
    }

    /// Cumulative probabilities of the entries of customers.
    fn visits(&self, task: &model::Task) -> Result<Vec<f64>, SolveError> {
        let mut weights = Vec::new();
        for entry in &task.entries {
            let weight = entry.visit_probability.as_ref();
            weights.push(weight.map(|w| self.binder.amount(w, &format!("entry \"{}\"", entry.name), "visit probability")).transpose()?);
        }
        let shares =
            entry_shares(&weights).ok_or_else(|| unusable(task_element(task), "the visit probabilities of its entries sum to 0"))?;
        let cumulative = shares.into_iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        Ok(cumulative.collect())
    }
}
