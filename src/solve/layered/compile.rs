//! From a [`Model`] and its parameter values to the dense network over which the layered solver iterates.

use std::collections::HashMap;

use super::super::{
    SolveError,
    activities::{self, PhaseWork},
};
use crate::model::{Activity, Bindings, CallKind, CallOrder, Model, Number, ProcessorScheduling, Scalar, TaskScheduling};

/// The compiled network.
#[derive(Clone, Debug)]
pub(super) struct Net<S> {
    pub tasks: Vec<TaskNode<S>>,
    pub entries: Vec<EntryNode<S>>,
    pub nodes: Vec<Node<S>>,
    pub arcs: Vec<Arc<S>>,
    pub stations: Vec<Station>,
    /// Tasks, callers before callees.
    pub order: Vec<usize>,
    /// Reference tasks, by class index.
    pub classes: Vec<usize>,
    /// Number of processors; stations `0..n_processors` are theirs.
    pub n_processors: usize,
}

/// A task of the network.
#[derive(Clone, Debug)]
pub(super) struct TaskNode<S> {
    pub name: String,
    /// Threads, or customers of a reference task; infinite for infinite servers.
    pub threads: f64,
    /// Largest number of its threads that can be busy, given its callers.
    pub cap: f64,
    /// Class index of a reference task.
    pub class: Option<usize>,
    pub think_time: S,
    pub processor: usize,
    /// Station of its request queue; none for a reference task.
    pub station: Option<usize>,
    pub entries: Vec<usize>,
    /// Position in [`Net::order`].
    pub position: usize,
}

/// An entry of the network.
#[derive(Clone, Debug)]
pub(super) struct EntryNode<S> {
    pub name: String,
    pub task: usize,
    /// Nodes of phases 1 to 3.
    pub phases: [Option<usize>; 3],
    /// Share of a reference task's cycles that pick this entry.
    pub visit_share: S,
    pub open_rate: Option<S>,
}

/// One phase of an entry.
#[derive(Clone, Debug)]
pub(super) struct Node<S> {
    pub entry: usize,
    pub task: usize,
    /// 0 for phase 1.
    pub phase: usize,
    /// Time on the processor for one execution, at the processor's speed.
    pub demand: S,
    /// Whether it visits its processor: a demand that is written as 0 does not, one of a parameter does, even at 0, so that
    /// the solution and its derivatives are continuous there.
    pub uses_processor: bool,
    pub think_time: S,
    pub cvsq: S,
    pub deterministic: bool,
    /// Host slices: one more than the mean number of calls.
    pub slices: S,
    /// Mean number of calls that block.
    pub n_sync: S,
    pub host_arc: Option<usize>,
    /// Blocking calls, each with the legs that forwarding adds to it.
    pub calls: Vec<CallGroup>,
    /// Calls that do not block.
    pub sends: Vec<usize>,
}

/// A blocking call: the arc to the called entry and the arcs of its forwarded legs.
#[derive(Clone, Debug)]
pub(super) struct CallGroup {
    pub arc: usize,
    pub legs: Vec<usize>,
}

/// Where an arc's requests come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A node whose thread waits, or runs the slice.
    Held(usize),
    /// A node whose thread goes on.
    Detached(usize),
    /// Outside.
    Open,
}

impl Source {
    /// The sending node, if any.
    pub fn node(self) -> Option<usize> {
        match self {
            Self::Held(i) | Self::Detached(i) => Some(i),
            Self::Open => None,
        }
    }

    /// The node whose thread is held meanwhile, if any.
    pub fn held(self) -> Option<usize> {
        match self {
            Self::Held(i) => Some(i),
            Self::Detached(_) | Self::Open => None,
        }
    }
}

/// A stream of requests from a node to a station.
#[derive(Clone, Debug)]
pub(super) struct Arc<S> {
    pub source: Source,
    pub station: usize,
    /// The called entry; none for a visit to the processor.
    pub target: Option<usize>,
    /// Mean requests in one execution of the source node (or the open rate).
    pub visits: S,
    /// The entry that forwarded, for a forwarded leg.
    pub via: Option<usize>,
    /// Probability with which the leg follows the call it belongs to.
    pub leg_probability: S,
}

/// A queue: a processor's or a task's.
#[derive(Clone, Debug)]
pub(super) struct Station {
    pub name: String,
    pub servers: f64,
    pub discipline: Discipline,
    pub arcs: Vec<usize>,
}

/// How a station serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    Delay,
    Fcfs,
    Sharing,
}

const NAME: &str = "layered";
/// Forwarding chains beyond this length are refused: they can only come from a cycle.
const MAX_FORWARDING_LEGS: usize = 10_000;

fn unusable(element: String, reason: &str) -> SolveError {
    SolveError::Unusable { element, reason: reason.into() }
}

fn unsupported(construct: &'static str, element: String) -> SolveError {
    SolveError::Unsupported { solver: NAME, construct, element }
}

/// Compiles `model` under `values`.
pub(super) fn compile<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Net<S>, SolveError> {
    Compiler::new(model, values)?.compile()
}

struct Compiler<'a, S> {
    model: &'a Model,
    values: &'a Bindings<S>,
    net: Net<S>,
    entry_index: HashMap<&'a str, usize>,
    forwarding: Vec<Vec<(usize, S)>>,
}

impl<'a, S: Scalar> Compiler<'a, S> {
    fn new(model: &'a Model, values: &'a Bindings<S>) -> Result<Self, SolveError> {
        let net = Net {
            tasks: Vec::new(),
            entries: Vec::new(),
            nodes: Vec::new(),
            arcs: Vec::new(),
            stations: Vec::new(),
            order: Vec::new(),
            classes: Vec::new(),
            n_processors: model.processors.len(),
        };
        Ok(Self { model, values, net, entry_index: HashMap::new(), forwarding: Vec::new() })
    }

    fn compile(mut self) -> Result<Net<S>, SolveError> {
        self.processors()?;
        self.tasks_and_entries()?;
        self.forwarding_of_entries()?;
        self.phases()?;
        self.open_arrivals();
        self.order()?;
        self.caps();
        Ok(self.net)
    }

    fn number(&self, number: &Number, what: impl Fn() -> String) -> Result<S, SolveError> {
        let value = number.eval(self.values)?;
        if value.value().is_finite() && value.value() >= 0.0 {
            Ok(value)
        } else {
            Err(SolveError::Unusable { element: what(), reason: format!("{} is {}, expected a number ≥ 0", number, value.value()) })
        }
    }

    /// A count of servers, threads or customers.
    fn count(&self, number: &Number, what: impl Fn() -> String) -> Result<f64, SolveError> {
        let value = number.eval(self.values)?.value();
        if value == f64::INFINITY || (value >= 1.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX)) {
            Ok(value)
        } else {
            Err(SolveError::Unusable {
                element: what(), reason: format!("the multiplicity {number} is {value}, expected an integer ≥ 1")
            })
        }
    }

    fn processors(&mut self) -> Result<(), SolveError> {
        for processor in &self.model.processors {
            let element = || format!("processor \"{}\"", processor.name);
            if !processor.replication.is(1.0) && self.count(&processor.replication, element)? > 1.0 {
                return Err(unsupported("replication", element()));
            }
            let (discipline, infinite) = match processor.scheduling {
                ProcessorScheduling::Inf => (Discipline::Delay, true),
                ProcessorScheduling::Fcfs | ProcessorScheduling::Rand | ProcessorScheduling::Lcfs => (Discipline::Fcfs, false),
                ProcessorScheduling::Ps | ProcessorScheduling::Rr => (Discipline::Sharing, false),
                ProcessorScheduling::Hol => return Err(unsupported("head-of-line priority", element())),
                ProcessorScheduling::Pri => return Err(unsupported("preemptive priority", element())),
                ProcessorScheduling::Cfs => return Err(unsupported("completely fair scheduling", element())),
            };
            let servers = if infinite { f64::INFINITY } else { self.count(&processor.multiplicity, element)? };
            let discipline = if servers.is_infinite() { Discipline::Delay } else { discipline };
            self.net.stations.push(Station { name: processor.name.clone(), servers, discipline, arcs: Vec::new() });
        }
        Ok(())
    }

    fn tasks_and_entries(&mut self) -> Result<(), SolveError> {
        let model = self.model;
        for task in &model.tasks {
            let element = || format!("task \"{}\"", task.name);
            refuse_unsupported(task)?;
            if !task.replication.is(1.0) && self.count(&task.replication, element)? > 1.0 {
                return Err(unsupported("replication", element()));
            }
            let processor = model
                .processors
                .iter()
                .position(|p| p.name == task.processor)
                .ok_or_else(|| unusable(element(), "its processor does not exist"))?;
            let reference = task.scheduling.is_reference();
            let threads = if task.scheduling == TaskScheduling::Inf { f64::INFINITY } else { self.count(&task.multiplicity, element)? };
            if reference && threads.is_infinite() {
                return Err(unusable(element(), "a reference task needs a finite number of customers"));
            }
            let think_time = self.number(&task.think_time, || format!("think time of {}", element()))?;
            let index = self.net.tasks.len();
            let class = reference.then_some(self.net.classes.len());
            if reference {
                self.net.classes.push(index);
            }
            let station = (!reference).then(|| {
                let discipline = if threads.is_infinite() { Discipline::Delay } else { Discipline::Fcfs };
                self.net.stations.push(Station { name: task.name.clone(), servers: threads, discipline, arcs: Vec::new() });
                self.net.stations.len() - 1
            });
            let mut entries = Vec::new();
            for entry in &task.entries {
                let visit_share = match (&entry.visit_probability, reference) {
                    (Some(p), true) => self.number(p, || format!("visit probability of entry \"{}\"", entry.name))?,
                    _ => S::from(1.0 / task.entries.len() as f64),
                };
                let open_rate = match &entry.open_arrival_rate {
                    Some(rate) => Some(self.number(rate, || format!("open arrival rate of entry \"{}\"", entry.name))?),
                    None => None,
                };
                self.entry_index.insert(&entry.name, self.net.entries.len());
                entries.push(self.net.entries.len());
                self.net.entries.push(EntryNode { name: entry.name.clone(), task: index, phases: [None; 3], visit_share, open_rate });
            }
            self.net.tasks.push(TaskNode {
                name: task.name.clone(),
                threads,
                cap: threads,
                class,
                think_time,
                processor,
                station,
                entries,
                position: 0,
            });
        }
        Ok(())
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
        let entry = self
            .entry_index
            .get(name)
            .copied()
            .ok_or_else(|| SolveError::Unusable { element: element(), reason: format!("entry \"{name}\" does not exist") })?;
        if self.net.tasks[self.net.entries[entry].task].class.is_some() {
            return Err(SolveError::Unusable {
                element: element(),
                reason: format!("entry \"{name}\" belongs to a reference task, which cannot be called"),
            });
        }
        Ok(entry)
    }

    fn phases(&mut self) -> Result<(), SolveError> {
        let model = self.model;
        let mut entry_index = 0;
        for task in &model.tasks {
            for entry in &task.entries {
                if entry.start_activity.is_some() {
                    for (phase, work) in activities::as_phases(task, entry, self.values, NAME)? {
                        self.add_node(entry_index, phase, &work)?;
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

    fn phase(&mut self, entry: usize, phase: usize, activity: &Activity) -> Result<(), SolveError> {
        let what = |quantity: &str| format!("{quantity} of phase {} of entry \"{}\"", phase + 1, self.net.entries[entry].name);
        let mut calls = Vec::new();
        for call in activity.calls.iter().filter(|c| !c.mean.is(0.0)) {
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
            calls,
        };
        self.add_node(entry, phase, &work)
    }

    fn add_node(&mut self, entry: usize, phase: usize, work: &PhaseWork<S>) -> Result<(), SolveError> {
        let task = self.net.entries[entry].task;
        let processor = &self.model.processors[self.net.tasks[task].processor];
        let speed = self.number(&processor.speed_factor, || format!("speed factor of processor \"{}\"", processor.name))?;
        if speed <= 0.0 {
            return Err(unusable(format!("processor \"{}\"", processor.name), "the speed factor must be > 0"));
        }
        if self.net.entries[entry].phases[phase].is_some() {
            return Err(unusable(format!("activity \"{}\"", work.name), "the entry has this phase twice"));
        }
        let index = self.net.nodes.len();
        self.net.entries[entry].phases[phase] = Some(index);
        self.net.nodes.push(Node {
            entry,
            task,
            phase,
            demand: work.demand / speed,
            uses_processor: work.uses_processor,
            think_time: work.think_time,
            cvsq: work.cvsq,
            deterministic: work.deterministic,
            slices: S::from(1.0),
            n_sync: S::from(0.0),
            host_arc: None,
            calls: Vec::new(),
            sends: Vec::new(),
        });
        self.add_calls(index, &work.calls)
    }

    /// Adds the node's calls and, once their number is known, its visits to the processor.
    fn add_calls(&mut self, node: usize, calls: &[(CallKind, String, S)]) -> Result<(), SolveError> {
        let mut total = S::from(0.0);
        let mut n_sync = S::from(0.0);
        for (kind, dest, mean) in calls {
            let from = self.net.entries[self.net.nodes[node].entry].name.clone();
            let target = self.destination(dest, || format!("call from entry \"{from}\""))?;
            total += *mean;
            if *kind == CallKind::Async {
                let arc = self.add_arc(Source::Detached(node), target, *mean, None, S::from(1.0))?;
                self.net.nodes[node].sends.push(arc);
                continue;
            }
            n_sync += *mean;
            let arc = self.add_arc(Source::Held(node), target, *mean, None, S::from(1.0))?;
            let legs = self.forwarded_legs(node, target, *mean)?;
            self.net.nodes[node].calls.push(CallGroup { arc, legs });
        }
        self.net.nodes[node].slices = total + 1.0;
        self.net.nodes[node].n_sync = n_sync;
        if self.net.nodes[node].uses_processor {
            let station = self.net.tasks[self.net.nodes[node].task].processor;
            let arc =
                Arc { source: Source::Held(node), station, target: None, visits: total + 1.0, via: None, leg_probability: S::from(1.0) };
            self.net.nodes[node].host_arc = Some(self.push_arc(arc));
        }
        Ok(())
    }

    /// The arcs by which a call of `mean` requests to `target` goes on through forwarding, probabilities multiplied.
    fn forwarded_legs(&mut self, node: usize, target: usize, mean: S) -> Result<Vec<usize>, SolveError> {
        let mut legs = Vec::new();
        let mut pending = vec![(target, S::from(1.0))];
        while let Some((entry, reached)) = pending.pop() {
            for (dest, probability) in self.forwarding[entry].clone() {
                if legs.len() >= MAX_FORWARDING_LEGS {
                    return Err(unusable(format!("entry \"{}\"", self.net.entries[target].name), "its forwarding never ends"));
                }
                let p = reached * probability;
                legs.push(self.add_arc(Source::Held(node), dest, mean * p, Some(entry), p)?);
                pending.push((dest, p));
            }
        }
        Ok(legs)
    }

    fn add_arc(&mut self, source: Source, target: usize, visits: S, via: Option<usize>, p: S) -> Result<usize, SolveError> {
        let entry = &self.net.entries[target];
        let station = self.net.tasks[entry.task]
            .station
            .ok_or_else(|| unusable(format!("entry \"{}\"", entry.name), "an entry of a reference task cannot be called"))?;
        Ok(self.push_arc(Arc { source, station, target: Some(target), visits, via, leg_probability: p }))
    }

    fn push_arc(&mut self, arc: Arc<S>) -> usize {
        let index = self.net.arcs.len();
        self.net.stations[arc.station].arcs.push(index);
        self.net.arcs.push(arc);
        index
    }

    fn open_arrivals(&mut self) {
        for entry in 0..self.net.entries.len() {
            let Some(rate) = self.net.entries[entry].open_rate else { continue };
            if let Some(station) = self.net.tasks[self.net.entries[entry].task].station {
                self.push_arc(Arc {
                    source: Source::Open,
                    station,
                    target: Some(entry),
                    visits: rate,
                    via: None,
                    leg_probability: S::from(1.0),
                });
            }
        }
    }

    /// Orders tasks so that callers come before callees.
    fn order(&mut self) -> Result<(), SolveError> {
        let n = self.net.tasks.len();
        let mut callees = vec![Vec::new(); n];
        let mut n_callers = vec![0usize; n];
        for arc in &self.net.arcs {
            if let (Some(node), Some(target)) = (arc.source.node(), arc.target) {
                let (from, to) = (self.net.nodes[node].task, self.net.entries[target].task);
                callees[from].push(to);
                n_callers[to] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..n).rev().filter(|&t| n_callers[t] == 0).collect();
        while let Some(task) = ready.pop() {
            self.net.tasks[task].position = self.net.order.len();
            self.net.order.push(task);
            for &callee in &callees[task] {
                n_callers[callee] -= 1;
                if n_callers[callee] == 0 {
                    ready.push(callee);
                }
            }
        }
        if self.net.order.len() < n {
            let stuck = (0..n).find(|&t| n_callers[t] > 0).unwrap_or(0);
            return Err(unsupported("a cycle of calls between tasks", format!("task \"{}\"", self.net.tasks[stuck].name)));
        }
        Ok(())
    }

    /// Bounds how many threads of a task can be busy by how many callers can wait for it.
    fn caps(&mut self) {
        for position in 0..self.net.order.len() {
            let task = self.net.order[position];
            let Some(station) = self.net.tasks[task].station else { continue };
            let late = self.net.tasks[task]
                .entries
                .iter()
                .any(|&e| self.net.entries[e].phases[1].is_some() || self.net.entries[e].phases[2].is_some());
            let mut callers: Vec<usize> = Vec::new();
            let mut unlimited = late;
            for &a in &self.net.stations[station].arcs {
                match self.net.arcs[a].source {
                    Source::Held(node) => callers.push(self.net.nodes[node].task),
                    Source::Detached(_) | Source::Open => unlimited = true,
                }
            }
            callers.sort_unstable();
            callers.dedup();
            let sum: f64 = callers.iter().map(|&t| self.net.tasks[t].cap).sum();
            if !unlimited {
                self.net.tasks[task].cap = self.net.tasks[task].threads.min(sum);
            }
        }
    }
}

fn refuse_unsupported(task: &crate::model::Task) -> Result<(), SolveError> {
    let element = || format!("task \"{}\"", task.name);
    match task.scheduling {
        TaskScheduling::Semaphore => return Err(unsupported("a semaphore task", element())),
        TaskScheduling::RwLock => return Err(unsupported("a read-write-lock task", element())),
        TaskScheduling::Hol => return Err(unsupported("a head-of-line task queue", element())),
        TaskScheduling::Burst => return Err(unsupported("bursty customers", element())),
        _ => {}
    }
    if !task.fan_in.is_empty() || !task.fan_out.is_empty() {
        return Err(unsupported("replication", element()));
    }
    Ok(())
}
