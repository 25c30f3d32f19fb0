//! From a model and its parameter values to a [`Network`].
//!
//! A task of `R` copies on a processor of `P` copies runs copy `r` on processor copy `ceil(r P / R)`. Copy `s` of a caller
//! calls copies `((s-1) O + k-1 mod R) + 1`, `k = 1..O`, of a task of `R` copies to which its fan-out is `O`, each with the
//! full mean number of calls.

use std::{collections::HashMap, ops::Range};

use super::{
    bind::{Binder, Count, unusable},
    graph::{Graph, Step},
    law::{Family, Law},
    network::{
        Activity, Call, Discipline, Entry, Fork, Forwarding, Group, Join, Loop, Network, Next, OriginCall, OriginEntry, OriginTask,
        Processor, Role, Source, Task, TaskKind,
    },
};
use crate::{
    model::{self, CallOrder, Model, ProcessorScheduling, RwLockRole, SemaphoreRole, TaskScheduling},
    solve::{ResultCallKind, SolveError},
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
    /// Sum and number of the mean slices on each processor.
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
        let (placements, processor_copies, first_processor, first_origin) = Default::default();
        Ok(Self { model, binder, network, placements, processor_copies, first_processor, entries, priorities, slices, first_origin })
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
            self.origin(task, f64::from(copies));
        }
        Ok(())
    }

    /// Registers a task and its entries for results.
    fn origin(&mut self, task: &model::Task, copies: f64) {
        let number = self.network.origins.tasks.len();
        let is_reference = task.scheduling.is_reference();
        self.network.origins.tasks.push(OriginTask { name: task.name.clone(), copies, is_reference });
        for entry in &task.entries {
            let n_phases = entry.phases.iter().map(|p| usize::from(p.phase)).max().unwrap_or(1).max(1);
            self.network.origins.entries.push(OriginEntry {
                name: entry.name.clone(),
                task: number,
                n_phases: if entry.start_activity.is_some() { 2 } else { n_phases },
                is_open: entry.open_arrival_rate.is_some(),
                is_bounded: !task.queue_length.is(0.0),
                is_taking: matches!(role(entry), Role::Wait | Role::ReadLock | Role::WriteLock),
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
        let p = self.model.processors.iter().position(|p| p.name == task.processor);
        let p = p.ok_or_else(|| unusable(&element, format!("its processor \"{}\" does not exist", task.processor)))?;
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
            TaskScheduling::Hol | TaskScheduling::Pri => TaskKind::Priority,
            TaskScheduling::Rand => TaskKind::Random,
            TaskScheduling::Poll => {
                self.network.notes.push(format!("{element}: polling is simulated as first come, first served"));
                TaskKind::Fifo
            }
            TaskScheduling::Fcfs | TaskScheduling::Inf => TaskKind::Fifo,
        })
    }

    /// Group on processor `p` and number in the group.
    fn group(&self, p: usize, t: usize, task: &model::Task) -> Result<(u32, u32), SolveError> {
        let processor = &self.model.processors[p];
        if processor.scheduling != ProcessorScheduling::Cfs {
            return Ok((0, 0));
        }
        let group = task.group.as_ref().and_then(|name| processor.groups.iter().position(|g| &g.name == name));
        let group = group.ok_or_else(|| unusable(task_element(task), format!("it needs a group of processor \"{}\"", processor.name)))?;
        let copies_of = |t: usize| self.placements[t].copies / self.processor_copies[p];
        let before: u32 = (0..t).filter(|&other| self.shares_group(other, task)).map(copies_of).sum();
        let here = index(self.network.tasks.len()) - self.placements[t].first_task;
        Ok((index(group), before + here % copies_of(t)))
    }

    fn shares_group(&self, other: usize, task: &model::Task) -> bool {
        let other = &self.model.tasks[other];
        other.processor == task.processor && other.group == task.group
    }

    /// Cumulative probabilities of the entries of customers.
    fn visits(&self, task: &model::Task) -> Result<Vec<f64>, SolveError> {
        let mut weights = Vec::new();
        for entry in &task.entries {
            let weight = entry.visit_probability.as_ref();
            weights.push(weight.map(|w| self.binder.amount(w, &format!("entry \"{}\"", entry.name), "visit probability")).transpose()?);
        }
        let given: f64 = weights.iter().flatten().sum();
        let absent = weights.iter().filter(|w| w.is_none()).count();
        #[expect(clippy::cast_precision_loss, reason = "a count of entries")]
        let rest = if absent == weights.len() { 1.0 } else { (1.0 - given).max(0.0) / absent.max(1) as f64 };
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = Vec::new();
        for weight in weights {
            sum += weight.unwrap_or(rest);
            cumulative.push(sum);
        }
        if sum <= 0.0 {
            return Err(unusable(task_element(task), "the visit probabilities of its entries sum to 0"));
        }
        cumulative.iter_mut().for_each(|c| *c /= sum);
        Ok(cumulative)
    }

    /// Registers calls and forwardings for results: by entry and phase, by activity, and the forwardings by entry.
    fn call_origins(&mut self, t: usize, task: &model::Task, graph: &Graph) -> Result<CallOrigins, SolveError> {
        let mut origins = CallOrigins::default();
        for (e, entry) in task.entries.iter().enumerate() {
            let from = self.first_origin[t] + e;
            for phase in &entry.phases {
                let ids = self.calls_of(from, phase.phase, None, &phase.activity)?;
                origins.phases.insert((e, phase.phase), ids);
            }
            origins.forwardings.push(self.network.origins.calls.len());
            for forwarding in &entry.forwarding {
                let mean = self.binder.amount(&forwarding.probability, &format!("entry \"{}\"", entry.name), "forwarding probability")?;
                let (to, kind) = (self.entry_origin(&forwarding.dest, &entry.name)?, ResultCallKind::Forward);
                self.network.origins.calls.push(OriginCall { from, to, phase: 1, activity: None, kind, mean });
            }
        }
        origins.first_activity = self.network.origins.activities.len();
        for (a, activity) in task.activities.iter().enumerate() {
            self.network.origins.activities.push((t, activity.name.clone()));
            let (entry, phase) = graph.reached[a].unwrap_or((0, 1));
            let ids = self.calls_of(self.first_origin[t] + entry, phase, Some(activity.name.clone()), activity)?;
            origins.activities.push(ids);
        }
        Ok(origins)
    }

    fn calls_of(&mut self, from: usize, phase: u8, name: Option<String>, activity: &model::Activity) -> Result<usize, SolveError> {
        let first = self.network.origins.calls.len();
        for call in &activity.calls {
            let mean = self.binder.amount(&call.mean, &format!("activity \"{}\"", activity.name), "mean number of calls")?;
            let to = self.entry_origin(&call.dest, &activity.name)?;
            let activity = name.clone();
            self.network.origins.calls.push(OriginCall { from, to, phase, activity, kind: call.kind.into(), mean });
        }
        Ok(first)
    }

    fn entry_origin(&self, name: &str, caller: &str) -> Result<usize, SolveError> {
        let found = self.entries.get(name).map(|&(t, e)| self.first_origin[t] + e);
        found.ok_or_else(|| unusable(format!("\"{caller}\""), format!("it calls entry \"{name}\", which does not exist")))
    }

    fn processor(&mut self, p: usize, processor: &model::Processor) -> Result<(), SolveError> {
        let element = format!("processor \"{}\"", processor.name);
        let servers = self.binder.count(&processor.multiplicity, &element, "multiplicity")?;
        let speed = self.binder.positive(&processor.speed_factor, &element, "speed factor")?;
        let quantum = self.binder.amount(&processor.quantum, &element, "quantum")?;
        let (sum, number) = self.slices[p];
        let mean_slice = if number > 0.0 { sum / number } else { 1.0 };
        let discipline = match processor.scheduling {
            _ if servers == Count::Infinite => Discipline::Infinite,
            ProcessorScheduling::Inf => Discipline::Infinite,
            ProcessorScheduling::Fcfs => Discipline::Fifo,
            ProcessorScheduling::Hol => Discipline::HeadOfLine,
            ProcessorScheduling::Pri => Discipline::Preemptive,
            ProcessorScheduling::Rand => Discipline::Random,
            ProcessorScheduling::Lcfs => Discipline::Lifo,
            ProcessorScheduling::Ps | ProcessorScheduling::Rr if quantum == 0.0 => Discipline::Sharing,
            ProcessorScheduling::Ps | ProcessorScheduling::Rr if quantum < NEGLIGIBLE_QUANTUM * mean_slice => {
                let part = quantum / mean_slice;
                self.network
                    .notes
                    .push(format!("{element}: its quantum is {part:.1e} of a mean slice and is taken in the limit, as true sharing"));
                Discipline::Sharing
            }
            ProcessorScheduling::Ps | ProcessorScheduling::Rr => Discipline::RoundRobin(quantum),
            ProcessorScheduling::Cfs => self.fair(processor, &element, if quantum == 0.0 { FAIR_QUANTUM * mean_slice } else { quantum })?,
        };
        for _ in 0..self.processor_copies[p] {
            let discipline = discipline.clone();
            self.network.processors.push(Processor { origin: index(p), servers, discipline, speed });
        }
        Ok(())
    }

    fn fair(&self, processor: &model::Processor, element: &str, quantum: f64) -> Result<Discipline, SolveError> {
        let copies = self.processor_copies.get(self.network.origins.processors.iter().position(|p| p.0 == processor.name).unwrap_or(0));
        let mut groups = Vec::new();
        for group in &processor.groups {
            let share = self.binder.positive(&group.share, &format!("group \"{}\"", group.name), "share")?;
            let member = |t: &&(usize, &model::Task)| t.1.processor == processor.name && t.1.group.as_ref() == Some(&group.name);
            let tasks: Vec<_> = self.model.tasks.iter().enumerate().collect();
            let n_tasks: u32 = tasks.iter().filter(member).map(|(t, _)| self.placements[*t].copies / copies.copied().unwrap_or(1)).sum();
            groups.push(Group { share, cap: group.cap, n_tasks: n_tasks as usize });
        }
        let sum: f64 = groups.iter().map(|g| g.share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(unusable(element, format!("the shares of its groups sum to {sum}, expected at most 1")));
        }
        Ok(Discipline::Fair { quantum, groups })
    }

    fn entries_of(
        &mut self,
        t: usize,
        task: &model::Task,
        copy: u32,
        graph: &Graph,
        origins: &CallOrigins,
        family: Family,
    ) -> Result<(), SolveError> {
        let first_activity = index(self.network.activities.len());
        let number = self.placements[t].first_task + copy;
        for (a, activity) in task.activities.iter().enumerate() {
            let site = Site { t, copy, number, family, phase: 0, origin: index(origins.first_activity + a) };
            self.activity(&site, activity, origins.activities[a])?;
        }
        self.link(graph, t, copy, first_activity);
        for (e, entry) in task.entries.iter().enumerate() {
            let mut first = graph.first[e].map(|a| first_activity + index(a));
            let mut phases: Vec<_> = entry.phases.iter().collect();
            phases.sort_by_key(|p| p.phase);
            for (i, phase) in phases.iter().enumerate() {
                let this = index(self.network.activities.len());
                let site = Site { t, copy, number, family, phase: phase.phase, origin: u32::MAX };
                self.activity(&site, &phase.activity, origins.phases[&(e, phase.phase)])?;
                if i + 1 < phases.len() {
                    self.network.activities[this as usize].next = Next::Activity(this + 1);
                }
                first = first.or(Some(this));
            }
            self.entry(t, e, copy, first, origins)?;
        }
        Ok(())
    }

    fn entry(&mut self, t: usize, e: usize, copy: u32, first: Option<u32>, origins: &CallOrigins) -> Result<(), SolveError> {
        let entry = &self.model.tasks[t].entries[e];
        let element = format!("entry \"{}\"", entry.name);
        let number = index(self.network.entries.len());
        if let Some(rate) = &entry.open_arrival_rate {
            let rate = self.binder.amount(rate, &element, "open arrival rate")?;
            if rate > 0.0 {
                self.network.sources.push(Source { entry: number, mean_gap: 1.0 / rate });
            }
        }
        let first_forwarding = index(self.network.forwardings.len());
        let mut cumulative = 0.0;
        for (f, forwarding) in entry.forwarding.iter().enumerate() {
            let origin = origins.forwardings[e] + f;
            for to in self.targets(t, copy, &forwarding.dest)? {
                cumulative += self.network.origins.calls[origin].mean;
                self.network.forwardings.push(Forwarding { origin: index(origin), entry: to, cumulative });
            }
        }
        if cumulative > 1.0 + 1e-9 {
            return Err(unusable(element, format!("its forwarding probabilities sum to {cumulative}, expected at most 1")));
        }
        let priority = entry.priority.as_ref().map(|p| self.binder.finite(p, &element, "priority")).transpose()?;
        self.network.entries.push(Entry {
            origin: index(self.first_origin[t] + e),
            task: self.placements[t].first_task + copy,
            role: role(entry),
            priority: priority.unwrap_or(0.0),
            first,
            has_phases: entry.start_activity.is_none(),
            forwardings: first_forwarding..index(self.network.forwardings.len()),
        });
        Ok(())
    }

    /// The entries over all copies that a call of copy `copy` of task `t` to `name` reaches.
    fn targets(&self, t: usize, copy: u32, name: &str) -> Result<Vec<u32>, SolveError> {
        let task = &self.model.tasks[t];
        let Some(&(d, e)) = self.entries.get(name) else {
            return Err(unusable(task_element(task), format!("it calls entry \"{name}\", which does not exist")));
        };
        let called = &self.model.tasks[d];
        let fan = |list: &[model::Fan], other: &str, what: &str| -> Result<u32, SolveError> {
            let value = list.iter().find(|f| f.task == other).map(|f| &f.value);
            value.map_or(Ok(1), |v| self.binder.whole(v, &task_element(task), what, 1.0))
        };
        let out = fan(&task.fan_out, &called.name, "fan-out")?;
        let fan_in = fan(&called.fan_in, &task.name, "fan-in")?;
        let (copies, there) = (self.placements[t].copies, &self.placements[d]);
        if u64::from(copies) * u64::from(out) != u64::from(there.copies) * u64::from(fan_in) {
            let reason = format!(
                "its {copies} copies with fan-out {out} make another number of connections than the {} copies of task \"{}\" with fan-in {fan_in}",
                there.copies, called.name
            );
            return Err(unusable(task_element(task), reason));
        }
        let to = |k: u32| there.first_entry + (copy * out + k) % there.copies * there.n_entries + index(e);
        Ok((0..out).map(to).collect())
    }

    fn activity(&mut self, site: &Site, activity: &model::Activity, origin: usize) -> Result<(), SolveError> {
        let element = format!("activity \"{}\"", activity.name);
        let deterministic = activity.call_order == CallOrder::Deterministic;
        let first_call = index(self.network.calls.len());
        let mut n_calls = 0.0;
        for (i, call) in activity.calls.iter().enumerate() {
            let what = "number of deterministic calls";
            let count = if deterministic { self.binder.whole(&call.mean, &element, what, 0.0)? } else { 0 };
            let mean = self.network.origins.calls[origin + i].mean;
            for entry in self.targets(site.t, site.copy, &call.dest)? {
                n_calls += mean;
                let is_sync = call.kind == model::CallKind::Sync;
                self.network.calls.push(Call { origin: index(origin + i), entry, is_sync, cumulative: n_calls, count });
            }
        }
        let demand = self.binder.amount(&activity.host_demand, &element, "host demand")?;
        let cvsq = self.binder.amount(&activity.host_demand_cvsq, &element, "squared coefficient of variation")?;
        let mean = demand / (1.0 + n_calls);
        let slice = Law::new(site.family, mean, cvsq).map_err(|reason| unusable(&element, reason))?;
        if demand > 0.0 {
            let p = self.model.processors.iter().position(|p| p.name == self.model.tasks[site.t].processor).unwrap_or_default();
            self.slices[p].0 += mean;
            self.slices[p].1 += 1.0;
        }
        self.network.activities.push(Activity {
            origin: site.origin,
            task: site.number,
            phase: site.phase,
            think: self.binder.amount(&activity.think_time, &element, "think time")?,
            has_demand: demand > 0.0,
            slice,
            order: activity.call_order,
            calls: first_call..index(self.network.calls.len()),
            n_calls,
            replies: Vec::new(),
            next: Next::End,
        });
        Ok(())
    }

    /// Numbers a task's graph over all copies.
    fn link(&mut self, graph: &Graph, t: usize, copy: u32, first_activity: u32) {
        let network = &mut self.network;
        let first_fork = index(network.forks.len());
        let first_join = index(network.joins.len());
        let entry = self.placements[t].first_entry + copy * self.placements[t].n_entries;
        let shift = Shift { first_activity, first_fork, first_join };
        for branches in &graph.forks {
            network.forks.push(Fork { branches: branches.iter().map(|&b| first_activity + index(b)).collect() });
        }
        network.joins_of_a_task = network.joins_of_a_task.max(graph.joins.len());
        for (slot, join) in graph.joins.iter().enumerate() {
            let next = shift.step(&join.next, network);
            network.joins.push(Join { is_external: join.is_external, slot: index(slot), needed: index(join.needed), next });
        }
        for (a, step) in graph.next.iter().enumerate() {
            let this = first_activity + index(a);
            let next = shift.step(step, network);
            let activity = &mut network.activities[this as usize];
            activity.next = next;
            activity.replies = graph.replies[a].iter().map(|&e| entry + index(e)).collect();
        }
    }
}

/// Origins of the calls of a task.
#[derive(Default)]
struct CallOrigins {
    phases: HashMap<(usize, u8), usize>,
    forwardings: Vec<usize>,
    activities: Vec<usize>,
    first_activity: usize,
}

/// Where an activity belongs.
struct Site {
    t: usize,
    copy: u32,
    number: u32,
    family: Family,
    phase: u8,
    origin: u32,
}

/// Offsets of one copy's graph.
struct Shift {
    first_activity: u32,
    first_fork: u32,
    first_join: u32,
}

impl Shift {
    /// Cumulative weights of a list.
    fn list(&self, from: &[(f64, usize)], network: &mut Network) -> (Range<u32>, f64) {
        let first = index(network.choices.len());
        let mut sum = 0.0;
        for &(weight, activity) in from {
            sum += weight;
            network.choices.push((sum, self.first_activity + index(activity)));
        }
        (first..index(network.choices.len()), sum)
    }

    fn step(&self, step: &Step, network: &mut Network) -> Next {
        match step {
            Step::End => Next::End,
            Step::Activity(a) => Next::Activity(self.first_activity + index(*a)),
            Step::Fork(f) => Next::Fork(self.first_fork + index(*f)),
            Step::Or(branches) => Next::Or(self.list(branches, network).0),
            Step::Loop(bodies, end) => {
                let (bodies, total) = self.list(bodies, network);
                network.loops.push(Loop { bodies, total, end: end.map(|a| self.first_activity + index(a)) });
                Next::Loop(index(network.loops.len() - 1))
            }
            Step::Join(j) => Next::Join(self.first_join + index(*j)),
        }
    }
}

fn role(entry: &model::Entry) -> Role {
    match (entry.semaphore, entry.rwlock) {
        (Some(SemaphoreRole::Wait), _) => Role::Wait,
        (Some(SemaphoreRole::Signal), _) => Role::Signal,
        (None, Some(RwLockRole::RLock)) => Role::ReadLock,
        (None, Some(RwLockRole::RUnlock)) => Role::ReadUnlock,
        (None, Some(RwLockRole::WLock)) => Role::WriteLock,
        (None, Some(RwLockRole::WUnlock)) => Role::WriteUnlock,
        (None, None) => Role::Plain,
    }
}
