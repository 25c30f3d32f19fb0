//! From a [`Model`] and its parameter values to the [`Net`] over which the layered solver iterates.

mod arcs;
mod order;
mod strands;
mod uncalled;

use std::collections::HashMap;

use super::{
    super::{
        SolveError,
        activities::{self, ActivityWork, PhaseWork},
        bind::unusable,
        visits::entry_shares,
    },
    net::{Discipline, EntryNode, Kin, Net, Node, Part, Station, TaskNode, Work},
};
use crate::model::{Activity, Bindings, CallKind, CallOrder, Model, Number, Processor, ProcessorScheduling, Scalar, Task, TaskScheduling};

const NAME: &str = "layered";

fn unsupported(construct: &'static str, element: String) -> SolveError {
    SolveError::Unsupported { solver: NAME, construct, element }
}

/// Compiles `model` under `values`.
pub(super) fn compile<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Net<S>, SolveError> {
    Compiler::new(model, values).compile()
}

struct Compiler<'a, S> {
    model: &'a Model,
    values: &'a Bindings<S>,
    net: Net<S>,
    entry_index: HashMap<&'a str, usize>,
    processor_index: HashMap<&'a str, usize>,
    forwarding: Vec<Vec<(usize, S)>>,
}

impl<'a, S: Scalar> Compiler<'a, S> {
    fn new(model: &'a Model, values: &'a Bindings<S>) -> Self {
        let net = Net {
            tasks: Vec::new(),
            entries: Vec::new(),
            nodes: Vec::new(),
            arcs: Vec::new(),
            stations: Vec::new(),
            kins: Vec::new(),
            order: Vec::new(),
            classes: Vec::new(),
            n_processors: model.processors.len(),
            circular: false,
            rotation: None,
            narrow: HashMap::new(),
        };
        let processor_index = model.processors.iter().enumerate().map(|(i, p)| (p.name.as_str(), i)).collect();
        Self { model, values, net, entry_index: HashMap::new(), processor_index, forwarding: Vec::new() }
    }

    fn compile(mut self) -> Result<Net<S>, SolveError> {
        self.processors()?;
        for task in &self.model.tasks {
            self.task(task)?;
        }
        self.kins();
        self.forwarding_of_entries()?;
        self.works()?;
        self.open_arrivals();
        self.find_who_comes();
        self.refuse_bounded_queues()?;
        self.order()?;
        self.narrow();
        self.caps();
        self.take_alike_in_order();
        self.find_followed();
        Ok(self.net)
    }

    /// What one of several threads does after a reply is followed where it calls others, and of threads without number but where one task with few of them calls
    /// (`left_behind`).
    fn find_followed(&mut self) {
        let net = &mut self.net;
        for entry in 0..net.entries.len() {
            let late: Vec<usize> = net.phases(entry)[1..].iter().copied().flatten().collect();
            if late.is_empty() {
                continue;
            }
            let calls = late.iter().any(|&node| !net.nodes[node].calls.is_empty());
            let to_it = net.arcs.iter().filter(|arc| arc.target == Some(entry)).filter_map(|arc| arc.source.node());
            let callers: Vec<usize> = to_it.map(|node| net.nodes[node].task).collect();
            let are_several = callers.iter().any(|&task| task != callers[0] || net.tasks[task].threads.is_infinite());
            let threads = net.tasks[net.entries[entry].task].threads;
            net.entries[entry].is_followed = calls && threads > 1.0 || threads.is_infinite() && are_several;
        }
    }

    /// Where all are as urgent, who comes first goes first.
    fn take_alike_in_order(&mut self) {
        let arcs = &self.net.arcs;
        for station in &mut self.net.stations {
            let is_by_urgency = matches!(station.discipline, Discipline::HeadOfLine | Discipline::Preemptive);
            let level = |arc: usize| arcs[arc].priority.to_bits();
            if is_by_urgency && station.arcs.windows(2).all(|pair| level(pair[0]) == level(pair[1])) {
                station.discipline = Discipline::Fcfs;
            }
        }
    }

    fn number(&self, number: &Number, what: impl Fn() -> String) -> Result<S, SolveError> {
        let value = number.eval(self.values)?;
        if value.value().is_finite() && value.value() >= 0.0 {
            Ok(value)
        } else {
            Err(unusable(what(), format!("{} is {}, expected a number ≥ 0", number, value.value())))
        }
    }

    /// A count of servers, threads or customers.
    fn count(&self, number: &Number, what: impl Fn() -> String) -> Result<f64, SolveError> {
        let value = number.eval(self.values)?.value();
        if value == f64::INFINITY || (value >= 1.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX)) {
            Ok(value)
        } else {
            Err(unusable(what(), format!("the multiplicity {number} is {value}, expected an integer ≥ 1")))
        }
    }

    fn processors(&mut self) -> Result<(), SolveError> {
        for processor in &self.model.processors {
            let element = || format!("processor \"{}\"", processor.name);
            let servers = if processor.scheduling == ProcessorScheduling::Inf {
                f64::INFINITY
            } else {
                self.count(&processor.multiplicity, element)?
            };
            if processor.groups.iter().any(|group| group.cap) {
                return Err(unsupported("a group that may have no more than its share", element()));
            }
            let discipline = if servers.is_infinite() { Discipline::Delay } else { discipline(processor) };
            self.net.stations.push(Station { name: processor.name.clone(), servers, discipline, arcs: Vec::new() });
        }
        Ok(())
    }

    fn task(&mut self, task: &'a Task) -> Result<(), SolveError> {
        let element = || format!("task \"{}\"", task.name);
        refuse_unsupported(task)?;
        let processor =
            *self.processor_index.get(task.processor.as_str()).ok_or_else(|| unusable(element(), "its processor does not exist"))?;
        let reference = task.scheduling.is_reference();
        let threads = if task.scheduling == TaskScheduling::Inf { f64::INFINITY } else { self.count(&task.multiplicity, element)? };
        if reference && threads.is_infinite() {
            return Err(unusable(element(), "a reference task needs a finite number of customers"));
        }
        let think_time = self.number(&task.think_time, || format!("think time of {}", element()))?;
        let priority = task.priority.eval(self.values)?.value();
        let index = self.net.tasks.len();
        let class = reference.then_some(self.net.classes.len());
        if reference {
            self.net.classes.push(index);
        }
        let station = (!reference).then(|| self.task_station(task, threads));
        let entries = self.entries_of(task, index, reference)?;
        self.net.tasks.push(TaskNode {
            name: task.name.clone(),
            threads,
            cap: threads,
            at_once: f64::INFINITY,
            bounded_by: self.net.tasks.len(),
            class,
            think_time,
            processor,
            station,
            entries,
            position: 0,
            priority,
            width: 1.0,
            of_classes: Vec::new(),
        });
        Ok(())
    }

    fn task_station(&mut self, task: &Task, threads: f64) -> usize {
        let discipline = match task.scheduling {
            _ if threads.is_infinite() => Discipline::Delay,
            TaskScheduling::Hol => Discipline::HeadOfLine,
            _ => Discipline::Fcfs,
        };
        self.net.stations.push(Station { name: task.name.clone(), servers: threads, discipline, arcs: Vec::new() });
        self.net.stations.len() - 1
    }

    fn entries_of(&mut self, task: &'a Task, index: usize, reference: bool) -> Result<Vec<usize>, SolveError> {
        let mut entries = Vec::new();
        let given = task.entries.iter().map(|entry| {
            let said = entry.visit_probability.as_ref().filter(|_| reference);
            said.map(|p| self.number(p, || format!("visit probability of entry \"{}\"", entry.name))).transpose()
        });
        let no_shares = || unusable(format!("task \"{}\"", task.name), "the visit probabilities of its entries sum to 0");
        let shares = entry_shares(&given.collect::<Result<Vec<_>, _>>()?).ok_or_else(no_shares)?;
        for (entry, visit_share) in task.entries.iter().zip(shares) {
            let open_rate = match &entry.open_arrival_rate {
                Some(rate) => Some(self.number(rate, || format!("open arrival rate of entry \"{}\"", entry.name))?),
                None => None,
            };
            let priority = match &entry.priority {
                Some(p) => p.eval(self.values)?.value(),
                None => 0.0,
            };
            self.entry_index.insert(&entry.name, self.net.entries.len());
            entries.push(self.net.entries.len());
            self.net.entries.push(EntryNode {
                name: entry.name.clone(),
                task: index,
                work: Work::Phases([None; 3]),
                visit_share,
                open_rate,
                priority,
                n_phases: 1,
                is_reached: true,
                is_followed: false,
            });
        }
        Ok(entries)
    }

    /// One kin for every entry, then one for the later phases of every task.
    fn kins(&mut self) {
        for (e, entry) in self.net.entries.iter().enumerate() {
            self.net.kins.push(Kin { task: entry.task, entry: Some(e), strand: None });
        }
        for task in 0..self.net.tasks.len() {
            self.net.kins.push(Kin { task, entry: None, strand: None });
        }
    }

    fn forwarding_of_entries(&mut self) -> Result<(), SolveError> {
        for entry in self.model.tasks.iter().flat_map(|t| &t.entries) {
            let mut legs = Vec::new();
            for forward in &entry.forwarding {
                let element = || format!("forwarding of entry \"{}\"", entry.name);
                let dest = self.destination(&forward.dest, element)?;
                legs.push((dest, self.number(&forward.probability, element)?));
            }
            self.forwarding.push(legs);
        }
        Ok(())
    }

    fn destination(&self, name: &str, element: impl Fn() -> String) -> Result<usize, SolveError> {
        let entry = self.entry_index.get(name).copied().ok_or_else(|| unusable(element(), format!("entry \"{name}\" does not exist")))?;
        if self.net.tasks[self.net.entries[entry].task].class.is_some() {
            return Err(unusable(element(), format!("entry \"{name}\" belongs to a reference task, which cannot be called")));
        }
        Ok(entry)
    }

    fn works(&mut self) -> Result<(), SolveError> {
        let model = self.model;
        let mut entry_index = 0;
        for task in &model.tasks {
            for entry in &task.entries {
                if entry.start_activity.is_some() {
                    match activities::as_phases(task, entry, self.values, NAME) {
                        Ok(phases) => {
                            for (phase, work) in phases {
                                self.add_phase(entry_index, phase, &work)?;
                            }
                        }
                        Err(SolveError::Unsupported { .. }) => self.add_graph(entry_index, task, entry)?,
                        Err(error) => return Err(error),
                    }
                }
                for phase in &entry.phases {
                    self.phase(entry_index, usize::from(phase.phase.clamp(1, 3)) - 1, &phase.activity)?;
                }
                entry_index += 1;
            }
        }
        Ok(())
    }

    /// Requests that no thread waits for are lost at a full queue, which no equation here counts.
    fn refuse_bounded_queues(&self) -> Result<(), SolveError> {
        for (task, it) in self.model.tasks.iter().zip(&self.net.tasks) {
            let unbounded = |&a: &usize| self.net.arcs[a].source.held().is_none();
            if !task.queue_length.is(0.0) && it.station.is_some_and(|s| self.net.stations[s].arcs.iter().any(unbounded)) {
                return Err(unsupported("a queue of bounded length", format!("task \"{}\"", task.name)));
            }
        }
        Ok(())
    }

    fn phase(&mut self, entry: usize, phase: usize, activity: &Activity) -> Result<(), SolveError> {
        let what = |quantity: &str| format!("{quantity} of phase {} of entry \"{}\"", phase + 1, self.net.entries[entry].name);
        let mut calls = Vec::new();
        for call in activity.counted_calls().filter(|c| !c.mean.is(0.0)) {
            let element = || format!("call from entry \"{}\" to \"{}\"", self.net.entries[entry].name, call.dest);
            calls.push((call.kind, call.dest.clone(), self.number(&call.mean, element)?));
        }
        let work = PhaseWork {
            name: activity.name.clone(),
            demand: self.number(&activity.host_demand, || what("host demand"))?,
            uses_processor: !activity.host_demand.is(0.0),
            think_time: self.number(&activity.think_time, || what("think time"))?,
            cvsq: self.number(&activity.host_demand_cvsq, || what("squared coefficient of variation"))?,
            deterministic: activity.call_order == CallOrder::Deterministic,
            in_sequence: None,
            pieces: S::from(1.0),
            calls,
            parts: Vec::new(),
        };
        self.add_phase(entry, phase, &work)
    }

    fn add_phase(&mut self, entry: usize, phase: usize, work: &PhaseWork<S>) -> Result<(), SolveError> {
        if self.net.phases(entry)[phase].is_some() {
            return Err(unusable(format!("activity \"{}\"", work.name), "the entry has this phase twice"));
        }
        let task = self.net.entries[entry].task;
        let late = phase > 0 || self.net.tasks[task].class.is_some();
        let kin = if late { self.net.entries.len() + task } else { entry };
        let node = self.add_node(entry, work)?;
        self.net.nodes[node].phase = phase;
        self.net.nodes[node].kin = kin;
        let entry = &mut self.net.entries[entry];
        entry.n_phases = entry.n_phases.max(phase + 1);
        if let Work::Phases(phases) = &mut entry.work {
            phases[phase] = Some(node);
        }
        Ok(())
    }

    /// Adds a node of the first phase.
    fn add_node(&mut self, entry: usize, work: &PhaseWork<S>) -> Result<usize, SolveError> {
        let task = self.net.entries[entry].task;
        let processor = &self.model.processors[self.net.tasks[task].processor];
        let speed = self.number(&processor.speed_factor, || format!("speed factor of processor \"{}\"", processor.name))?;
        if speed <= 0.0 {
            return Err(unusable(format!("processor \"{}\"", processor.name), "the speed factor must be > 0"));
        }
        let parts = work.parts.iter().map(|part| self.part(part, speed)).collect::<Result<_, _>>()?;
        let index = self.net.nodes.len();
        self.net.nodes.push(Node {
            entry,
            task,
            phase: 0,
            kin: entry,
            weight: S::from(1.0),
            demand: work.demand / speed,
            uses_processor: work.uses_processor,
            begins_at_processor: false,
            begins_with: None,
            think_time: work.think_time,
            cvsq: work.cvsq,
            deterministic: work.deterministic,
            slices: work.pieces,
            n_sync: S::from(0.0),
            no_sync: S::from(1.0),
            n_sync_variance: S::from(0.0),
            host_arc: None,
            calls: Vec::new(),
            sends: Vec::new(),
            parts,
        });
        self.add_calls(index, &work.calls)?;
        let node = &mut self.net.nodes[index];
        let exact = (S::from(0.0), S::from(0.0));
        let geometric = ((node.n_sync + 1.0).recip(), node.n_sync * (node.n_sync + 1.0));
        (node.no_sync, node.n_sync_variance) = work.in_sequence.unwrap_or(if work.deterministic { exact } else { geometric });
        Ok(index)
    }

    fn part(&self, part: &ActivityWork<S>, speed: S) -> Result<Part<S>, SolveError> {
        let call = |(kind, dest, mean): &(CallKind, String, S)| {
            let target = self.destination(dest, || format!("call from activity \"{}\"", part.name))?;
            Ok::<_, SolveError>((*kind, target, *mean))
        };
        Ok(Part {
            activity: part.name.clone(),
            visits: part.visits,
            demand: part.demand / speed,
            uses_processor: part.uses_processor,
            think_time: part.think_time,
            calls: part.calls.iter().map(call).collect::<Result<_, _>>()?,
        })
    }
}

fn discipline(processor: &Processor) -> Discipline {
    match processor.scheduling {
        ProcessorScheduling::Inf => Discipline::Delay,
        ProcessorScheduling::Fcfs | ProcessorScheduling::Rand | ProcessorScheduling::Lcfs => Discipline::Fcfs,
        ProcessorScheduling::Ps | ProcessorScheduling::Rr => Discipline::Sharing,
        ProcessorScheduling::Hol => Discipline::HeadOfLine,
        ProcessorScheduling::Pri => Discipline::Preemptive,
        ProcessorScheduling::Cfs => Discipline::Groups,
    }
}

fn refuse_unsupported(task: &Task) -> Result<(), SolveError> {
    let element = || format!("task \"{}\"", task.name);
    match task.scheduling {
        TaskScheduling::Semaphore => return Err(unsupported("a semaphore task", element())),
        TaskScheduling::RwLock => return Err(unsupported("a read-write-lock task", element())),
        _ => {}
    }
    Ok(())
}
