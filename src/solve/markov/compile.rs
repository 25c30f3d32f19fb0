//! From a model and its parameter values to a [`Network`], refusing by name what has no finite chain of states.

use std::collections::HashMap;

use super::{
    graph,
    network::{Activity, Discipline, Entry, Law, Lock, Network, Next, Processor, QueueOrder, Route, Task},
    refused,
};
use crate::{
    model::{self, CallKind, CallOrder, Model, ProcessorScheduling, TaskScheduling},
    solve::{
        ResultCallKind, SolveError,
        bind::{Binder, unusable},
        orders,
        role::Role,
        visits::entry_shares,
    },
};

/// A quantum below this part of a processor's mean slice is taken as true sharing.
const NEGLIGIBLE_QUANTUM: f64 = 0.01;

/// Compiles `model`, of which every element has one copy.
pub(super) fn compile(model: &Model, binder: &Binder) -> Result<Network, SolveError> {
    let mut compiler = Compiler::new(model, binder)?;
    for t in 0..model.tasks.len() {
        compiler.task(t)?;
    }
    for t in 0..model.tasks.len() {
        compiler.work(t)?;
    }
    for processor in &model.processors {
        compiler.processor(processor)?;
    }
    compiler.check_finite()?;
    Ok(compiler.network)
}

struct Compiler<'a> {
    model: &'a Model,
    binder: &'a Binder,
    network: Network,
    entries: HashMap<&'a str, u32>,
    /// Distinct task priorities, most urgent first.
    ranks: Vec<f64>,
    /// Priority of every task, and of every entry.
    task_priorities: Vec<f64>,
    entry_priorities: Vec<f64>,
    speeds: Vec<f64>,
    /// Sum and number of the mean slices on each processor.
    slices: Vec<(f64, f64)>,
}

/// An index as it is kept.
#[expect(clippy::cast_possible_truncation, reason = "a model's elements are far fewer than 2^32")]
pub(super) fn index(n: usize) -> u32 {
    n as u32
}

fn task_element(task: &model::Task) -> String {
    format!("task \"{}\"", task.name)
}

impl<'a> Compiler<'a> {
    fn new(model: &'a Model, binder: &'a Binder) -> Result<Self, SolveError> {
        let names = model.tasks.iter().flat_map(|t| &t.entries).map(|e| e.name.as_str());
        let mut compiler = Self {
            model,
            binder,
            network: Network::default(),
            entries: names.enumerate().map(|(i, name)| (name, index(i))).collect(),
            ranks: Vec::new(),
            task_priorities: Vec::new(),
            entry_priorities: Vec::new(),
            speeds: Vec::new(),
            slices: vec![(0.0, 0.0); model.processors.len()],
        };
        for task in &model.tasks {
            compiler.task_priorities.push(compiler.binder.finite(&task.priority, &task_element(task), "priority")?);
            for entry in &task.entries {
                let priority = entry.priority.as_ref().map(|p| compiler.binder.finite(p, &format!("entry \"{}\"", entry.name), "priority"));
                compiler.entry_priorities.push(priority.transpose()?.unwrap_or(0.0));
            }
        }
        compiler.ranks.clone_from(&compiler.task_priorities);
        compiler.ranks.sort_by(|a, b| b.total_cmp(a));
        compiler.ranks.dedup();
        for processor in &model.processors {
            let element = format!("processor \"{}\"", processor.name);
            let speed = compiler.binder.amount(&processor.speed_factor, &element, "speed factor")?;
            if speed <= 0.0 {
                return Err(unusable(element, "its speed factor is 0, expected more than 0"));
            }
            compiler.speeds.push(speed);
        }
        Ok(compiler)
    }

    /// A task and its entries, without their work.
    fn task(&mut self, t: usize) -> Result<(), SolveError> {
        let task = &self.model.tasks[t];
        let element = task_element(task);
        if task.entries.is_empty() {
            return Err(unusable(element, "it has no entries"));
        }
        let p = self.model.processors.iter().position(|p| p.name == task.processor);
        let p = p.ok_or_else(|| unusable(&element, format!("its processor \"{}\" does not exist", task.processor)))?;
        let threads = self.binder.count(&task.multiplicity, &element, "multiplicity")?.number();
        let order = self.order(task)?;
        let is_reference = task.scheduling.is_reference();
        if (is_reference || task.scheduling.is_lock()) && threads == usize::MAX {
            return Err(unusable(element, "its multiplicity is infinite, which a reference task or a lock cannot have"));
        }
        let (lock, lent) = self.lock(task, threads)?;
        let places = match self.binder.whole(&task.queue_length, &element, "queue length", 0.0)? {
            0 => u32::MAX,
            places => places,
        };
        let first = index(self.network.entries.len());
        let visits = if is_reference { self.visits(task)? } else { Vec::new() };
        self.network.tasks.push(Task {
            name: task.name.clone(),
            processor: index(p),
            is_reference,
            order,
            lock,
            lent,
            threads: if task.scheduling == TaskScheduling::Inf { usize::MAX } else { threads },
            rank: index(self.ranks.iter().position(|r| r.total_cmp(&self.task_priorities[t]).is_eq()).unwrap_or_default()),
            places,
            entries: first..first + index(task.entries.len()),
            think: self.binder.amount(&task.think_time, &element, "think time")?,
            visits,
            n_joins: 0,
        });
        for entry in &task.entries {
            let n_phases = entry.phases.iter().map(|p| usize::from(p.phase)).max().unwrap_or(1).max(1);
            self.network.entries.push(Entry {
                task: index(t),
                role: Role::of(entry),
                first: None,
                has_phases: entry.start_activity.is_none(),
                n_phases: if entry.start_activity.is_some() { 2 } else { n_phases },
                forwardings: 0..0,
                priority: self.entry_priorities[self.network.entries.len()],
            });
        }
        Ok(())
    }

    fn order(&mut self, task: &model::Task) -> Result<QueueOrder, SolveError> {
        let element = task_element(task);
        match task.scheduling {
            TaskScheduling::Ref | TaskScheduling::Fcfs | TaskScheduling::Inf => Ok(QueueOrder::Fifo),
            TaskScheduling::Semaphore | TaskScheduling::RwLock => Ok(QueueOrder::Fifo),
            TaskScheduling::Hol => Ok(QueueOrder::Priority),
            TaskScheduling::Rand => Ok(QueueOrder::Random),
            TaskScheduling::Poll | TaskScheduling::Pri => {
                self.network.notes.extend(orders::note(task));
                Ok(QueueOrder::Fifo)
            }
            TaskScheduling::Burst | TaskScheduling::Uniform => Err(refused("customers whose think time is not exponential", element)),
        }
    }

    /// What a task lends, and how much of it is lent at the start.
    fn lock(&self, task: &model::Task, threads: usize) -> Result<(Lock, u32), SolveError> {
        match task.scheduling {
            TaskScheduling::RwLock => Ok((Lock::ReadWrite, 0)),
            TaskScheduling::Semaphore => {
                let element = task_element(task);
                let free = task.initial_tokens.as_ref().map(|n| self.binder.whole(n, &element, "initial number of tokens", 0.0));
                let free = free.transpose()?.map_or(threads, |n| n as usize);
                if free > threads {
                    return Err(unusable(element, format!("it starts with {free} of its {threads} tokens")));
                }
                Ok((Lock::Semaphore, index(threads - free)))
            }
            _ => Ok((Lock::None, 0)),
        }
    }

    /// Probabilities of the entries of customers.
    fn visits(&self, task: &model::Task) -> Result<Vec<f64>, SolveError> {
        let mut weights = Vec::new();
        for entry in &task.entries {
            let weight = entry.visit_probability.as_ref();
            let element = format!("entry \"{}\"", entry.name);
            weights.push(weight.map(|w| self.binder.amount(w, &element, "visit probability")).transpose()?);
        }
        entry_shares(&weights).ok_or_else(|| unusable(task_element(task), "the visit probabilities of its entries sum to 0"))
    }

    /// The phases, activities, calls and forwardings of a task.
    fn work(&mut self, t: usize) -> Result<(), SolveError> {
        let task = &self.model.tasks[t];
        let first_entry = self.network.tasks[t].entries.start;
        for (e, entry) in task.entries.iter().enumerate() {
            let number = first_entry + index(e);
            let mut phases: Vec<_> = entry.phases.iter().collect();
            phases.sort_by_key(|p| p.phase);
            for (i, phase) in phases.iter().enumerate() {
                let this = self.activity(t, number, phase.phase, false, &phase.activity)?;
                self.network.entries[number as usize].first.get_or_insert(this);
                if i + 1 < phases.len() {
                    self.network.activities[this as usize].next = Next::Activity(this + 1);
                }
            }
            self.entry(t, number, entry)?;
        }
        if task.activities.is_empty() {
            return Ok(());
        }
        let first_activity = index(self.network.activities.len());
        let graph = graph::read(task, self.binder, &mut self.network, first_activity, first_entry)?;
        for (a, activity) in task.activities.iter().enumerate() {
            let (entry, phase) = graph.reached[a].unwrap_or((first_entry, 1));
            self.activity(t, entry, phase, true, activity)?;
        }
        for (a, (next, replies)) in graph.next.into_iter().zip(graph.replies).enumerate() {
            let activity = &mut self.network.activities[first_activity as usize + a];
            activity.next = next;
            activity.replies = replies;
        }
        Ok(())
    }

    /// Open arrivals and forwardings of an entry.
    fn entry(&mut self, t: usize, number: u32, entry: &model::Entry) -> Result<(), SolveError> {
        let element = format!("entry \"{}\"", entry.name);
        if let Some(rate) = &entry.open_arrival_rate {
            let rate = self.binder.amount(rate, &element, "open arrival rate")?;
            if rate > 0.0 {
                self.network.sources.push((number, rate));
            }
        }
        let first = index(self.network.routes.len());
        let mut sum = 0.0;
        for forwarding in &entry.forwarding {
            let mean = self.binder.amount(&forwarding.probability, &element, "forwarding probability")?;
            sum += mean;
            let to = self.destination(&forwarding.dest, &element)?;
            let urgency = self.task_priorities[t] + self.entry_priorities[to as usize];
            let kind = ResultCallKind::Forward;
            self.network.routes.push(Route { from: number, to, phase: 1, activity: None, kind, mean, count: 0, urgency });
        }
        if sum > 1.0 + 1e-9 {
            return Err(unusable(element, format!("its forwarding probabilities sum to {sum}, expected at most 1")));
        }
        self.network.entries[number as usize].forwardings = first..index(self.network.routes.len());
        Ok(())
    }

    fn destination(&self, name: &str, element: &str) -> Result<u32, SolveError> {
        let to = self.entries.get(name).copied();
        let to = to.ok_or_else(|| unusable(element, format!("it calls entry \"{name}\", which does not exist")))?;
        if self.network.tasks[self.network.entries[to as usize].task as usize].is_reference {
            return Err(unusable(element, format!("it calls entry \"{name}\" of a reference task")));
        }
        Ok(to)
    }

    fn activity(&mut self, t: usize, entry: u32, phase: u8, is_graph: bool, activity: &model::Activity) -> Result<u32, SolveError> {
        let element = format!("activity \"{}\"", activity.name);
        let number = index(self.network.activities.len());
        let first = index(self.network.routes.len());
        let mut n_calls = 0.0;
        for call in activity.counted_calls() {
            let mean = self.binder.amount(&call.mean, &element, "mean number of calls")?;
            n_calls += mean;
            let count = match activity.call_order {
                CallOrder::Deterministic => self.binder.whole(&call.mean, &element, "number of deterministic calls", 0.0)?,
                CallOrder::Stochastic => 0,
            };
            let to = self.destination(&call.dest, &element)?;
            if call.kind == CallKind::Async && mean > 0.0 {
                self.check_bounded(to, "asynchronous requests to a queue without bound")?;
            }
            let urgency = self.task_priorities[t] + self.entry_priorities[to as usize];
            let (kind, sender) = (call.kind.into(), is_graph.then_some(number));
            self.network.routes.push(Route { from: entry, to, phase, activity: sender, kind, mean, count, urgency });
        }
        let think = self.binder.amount(&activity.think_time, &element, "think time")?;
        let slice = self.slice(t, activity, n_calls, element)?;
        self.network.activities.push(Activity {
            name: activity.name.clone(),
            task: index(t),
            phase: if is_graph { 0 } else { phase },
            think,
            slice,
            order: activity.call_order,
            calls: first..index(self.network.routes.len()),
            replies: Vec::new(),
            next: Next::End,
        });
        Ok(number)
    }

    fn slice(&mut self, t: usize, activity: &model::Activity, n_calls: f64, element: String) -> Result<Option<Law>, SolveError> {
        let demand = self.binder.amount(&activity.host_demand, &element, "host demand")?;
        let cvsq = self.binder.amount(&activity.host_demand_cvsq, &element, "squared coefficient of variation")?;
        if demand <= 0.0 {
            return Ok(None);
        }
        let p = self.network.tasks[t].processor as usize;
        let mean = demand / (1.0 + n_calls) / self.speeds[p];
        self.slices[p].0 += mean;
        self.slices[p].1 += 1.0;
        let construct = "a demand whose squared coefficient of variation is below 1 and not one over an integer";
        Law::of_slices(mean, cvsq).map(Some).ok_or_else(|| refused(construct, element))
    }

    fn processor(&mut self, processor: &model::Processor) -> Result<(), SolveError> {
        let element = format!("processor \"{}\"", processor.name);
        let servers = self.binder.count(&processor.multiplicity, &element, "multiplicity")?.number();
        let quantum = self.binder.amount(&processor.quantum, &element, "quantum")?;
        let (sum, number) = self.slices[self.network.processors.len()];
        let discipline = match processor.scheduling {
            _ if servers == usize::MAX => Discipline::Infinite,
            ProcessorScheduling::Inf => Discipline::Infinite,
            ProcessorScheduling::Fcfs => Discipline::Fifo,
            ProcessorScheduling::Hol => Discipline::HeadOfLine,
            ProcessorScheduling::Pri => Discipline::Preemptive,
            ProcessorScheduling::Rand => Discipline::Random,
            ProcessorScheduling::Lcfs => Discipline::Lifo,
            ProcessorScheduling::Ps | ProcessorScheduling::Rr if quantum * number.max(1.0) <= NEGLIGIBLE_QUANTUM * sum => {
                if quantum > 0.0 {
                    self.network.notes.push(format!("{element}: its quantum is taken in the limit, as true sharing"));
                }
                Discipline::Sharing
            }
            ProcessorScheduling::Ps | ProcessorScheduling::Rr => return Err(refused("a quantum", element)),
            ProcessorScheduling::Cfs => return Err(refused("fair-share scheduling", element)),
        };
        let servers = if discipline == Discipline::Infinite { usize::MAX } else { servers };
        self.network.processors.push(Processor { discipline, servers });
        Ok(())
    }

    /// Refuses requests that may pile up without end.
    fn check_bounded(&self, entry: u32, construct: &'static str) -> Result<(), SolveError> {
        let task = self.network.entries[entry as usize].task as usize;
        if self.network.tasks[task].places < u32::MAX {
            return Ok(());
        }
        Err(refused(construct, task_element(&self.model.tasks[task])))
    }

    fn check_finite(&self) -> Result<(), SolveError> {
        for &(entry, _) in &self.network.sources {
            self.check_bounded(entry, "open arrivals at a queue without bound")?;
        }
        if self.network.sources.is_empty() && !self.network.tasks.iter().any(|t| t.is_reference) {
            return Err(unusable("model", "it has no load: expected a reference task or open arrivals"));
        }
        Ok(())
    }
}
