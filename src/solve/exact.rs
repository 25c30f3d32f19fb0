//! The exact solver: recognises a model that is a product-form queueing network and solves it by [`super::mva`].
//!
//! A model is one when its reference tasks call tasks that call nobody, by synchronous calls, with one phase, and every
//! queue is one of
//!
//! - a task alone on its processor, FCFS, exponential, all its entries with the same demand: `min(threads, servers)` servers;
//! - infinite tasks on one processor: `servers` servers, FCFS with the same exponential demand throughout, or
//!   processor sharing with any demands (of one server, or of one mean);
//! - anything on an infinite processor that never queues for threads: a delay.
//!
//! How many calls a cycle makes, and in which order, does not matter in product form, only their mean.

use super::{
    ResultCallKind, SolveError,
    bind::unusable,
    copies,
    mva::{Class, MeanValues, MvaError, Network, Station, solve_exact},
    results::{CallValues, EntryValues, Results},
};
use crate::model::{Bindings, CallKind, Entry, Model, Number, ProcessorScheduling, Scalar, Task, TaskScheduling};

/// Most processors and tasks of a replicated model, with all copies.
const MOST_COPIES: usize = 1_000;

/// What the exact solver makes of a model.
pub(super) enum Attempt<S> {
    /// Solved.
    Solved(Box<Results<S>>),
    /// Not a product-form network, or too large a one: why, and where.
    Refused(&'static str, String),
}

/// Solves `model` exactly if it is a product-form network.
pub(super) fn solve<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Attempt<S>, SolveError> {
    if !copies::is_replicated(model) {
        return solve_single(model, values);
    }
    let copies = match copies::lay_out(model, values, ("exact", MOST_COPIES)) {
        Err(SolveError::Unsupported { construct, element, .. }) => return Ok(Attempt::Refused(construct, element)),
        laid_out => laid_out?,
    };
    Ok(match solve_single(&copies.all, values)? {
        Attempt::Solved(results) => Attempt::Solved(Box::new(copies.fold(*results))),
        refused @ Attempt::Refused(..) => refused,
    })
}

/// Solves a model without replication.
fn solve_single<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Attempt<S>, SolveError> {
    match Plan::new(model, values)? {
        Err(refusal) => Ok(Attempt::Refused(refusal.0, refusal.1)),
        Ok(plan) => {
            if let Some(class) = plan.without_time() {
                let customers = task_name(&model.tasks[plan.references[class]]);
                return Ok(Attempt::Refused("customers whose cycle takes no time", customers));
            }
            Ok(match solve_exact(&plan.network) {
                Ok(means) => Attempt::Solved(Box::new(plan.results(model, &means))),
                Err(MvaError::TooLarge(_)) => Attempt::Refused("so large a population", "the model".into()),
                Err(MvaError::TooMuchHeld(_)) => Attempt::Refused("so many customers and servers", "the model".into()),
                Err(MvaError::TooManyMultiservers(_)) => Attempt::Refused("so many multi-server stations", "the model".into()),
            })
        }
    }
}

struct Refusal(&'static str, String);

/// A model as a product-form network.
struct Plan<S> {
    network: Network<S>,
    /// Reference tasks, by class.
    references: Vec<usize>,
    /// Station of each task that is called.
    station_of: Vec<Option<usize>>,
    /// Whether its requests queue for its threads, and not for the processor.
    waits_for_thread: Vec<bool>,
    /// Mean calls of a class's cycle to every entry, `[class][entry]`.
    visits: Vec<Vec<S>>,
    /// Demand of every entry, in time.
    demand: Vec<S>,
    /// Calls of the classes' entries.
    calls: Vec<PlannedCall<S>>,
}

/// A call of a class.
struct PlannedCall<S> {
    class: usize,
    from: usize,
    to: usize,
    mean: S,
}

type Checked<T> = Result<Result<T, Refusal>, SolveError>;

macro_rules! check {
    ($e:expr) => {
        match $e? {
            Ok(value) => value,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

fn task_name(task: &Task) -> String {
    format!("task \"{}\"", task.name)
}

impl<S: Scalar> Plan<S> {
    /// The first class whose customers neither think nor are served: nothing bounds their rate.
    fn without_time(&self) -> Option<usize> {
        let time = |(class, demands): (&Class<S>, &Vec<S>)| demands.iter().fold(class.think_time.value(), |sum, d| sum + d.value());
        let classes = self.network.classes.iter().zip(&self.network.demands);
        classes.enumerate().find(|(_, pair)| pair.0.population > 0 && time(*pair) == 0.0).map(|(class, _)| class)
    }

    fn new(model: &Model, values: &Bindings<S>) -> Checked<Self> {
        let entries: Vec<(usize, &Entry)> =
            model.tasks.iter().enumerate().flat_map(|(t, task)| task.entries.iter().map(move |e| (t, e))).collect();
        let mut plan = Self {
            network: Network { classes: Vec::new(), stations: Vec::new(), demands: Vec::new() },
            references: Vec::new(),
            station_of: vec![None; model.tasks.len()],
            waits_for_thread: vec![false; model.tasks.len()],
            visits: Vec::new(),
            demand: Vec::new(),
            calls: Vec::new(),
        };
        for &(t, entry) in &entries {
            plan.demand.push(check!(plain_demand(model, &model.tasks[t], entry, values)));
        }
        for (t, task) in model.tasks.iter().enumerate() {
            if task.scheduling.is_reference() {
                check!(plan.add_class(model, values, t, &entries));
            }
        }
        if plan.references.is_empty() {
            return Ok(Err(Refusal("a model without customers", "the model".into())));
        }
        for (p, processor) in model.processors.iter().enumerate() {
            let speed = processor.speed_factor.eval(values)?;
            if speed <= 0.0 {
                return Ok(Err(Refusal("a processor without speed", format!("processor \"{}\"", processor.name))));
            }
            check!(plan.add_station(model, values, p, &entries));
        }
        Ok(Ok(plan))
    }

    fn add_class(&mut self, model: &Model, values: &Bindings<S>, t: usize, entries: &[(usize, &Entry)]) -> Checked<()> {
        let task = &model.tasks[t];
        let infinite = model.processor(&task.processor).is_some_and(|p| p.scheduling == ProcessorScheduling::Inf);
        let class = self.references.len();
        let ([entry], Some(from)) = (task.entries.as_slice(), entries.iter().position(|(owner, _)| *owner == t)) else {
            return Ok(Err(Refusal("customers with several entries", task_name(task))));
        };
        let mut visits = vec![S::from(0.0); entries.len()];
        let mut own = self.demand[from];
        if !infinite && entry.phases.iter().any(|p| !p.activity.host_demand.is(0.0)) {
            return Ok(Err(Refusal("customers with demand on a queueing processor", task_name(task))));
        }
        for phase in &entry.phases {
            own += phase.activity.think_time.eval(values)?;
            for call in phase.activity.counted_calls() {
                if call.kind == CallKind::Async {
                    return Ok(Err(Refusal("an asynchronous call", task_name(task))));
                }
                let Some(to) = entries.iter().position(|(owner, e)| e.name == call.dest && !model.tasks[*owner].scheduling.is_reference())
                else {
                    return Err(unusable(task_name(task), format!("entry \"{}\" cannot be called", call.dest)));
                };
                let mean = call.mean.eval(values)?;
                visits[to] += mean;
                self.calls.push(PlannedCall { class, from, to, mean });
            }
        }
        let Some(population) = count(&task.multiplicity, values)? else {
            return Ok(Err(Refusal("an infinite population", task_name(task))));
        };
        self.references.push(t);
        self.network.classes.push(Class { population, think_time: task.think_time.eval(values)? + own });
        self.visits.push(visits);
        self.network.demands.push(Vec::new());
        Ok(Ok(()))
    }

    /// Makes the station of processor `p` and the tasks on it.
    fn add_station(&mut self, model: &Model, values: &Bindings<S>, p: usize, entries: &[(usize, &Entry)]) -> Checked<()> {
        let processor = &model.processors[p];
        let name = || format!("processor \"{}\"", processor.name);
        let tasks: Vec<usize> = (0..model.tasks.len())
            .filter(|&t| model.tasks[t].processor == processor.name && !model.tasks[t].scheduling.is_reference())
            .collect();
        if tasks.is_empty() {
            return Ok(Ok(()));
        }
        let used: Vec<usize> =
            (0..entries.len()).filter(|&e| tasks.contains(&entries[e].0) && self.visits.iter().any(|v| v[e] > 0.0)).collect();
        let demand_of = |e: usize| entries[e].1.phase(1).map_or(Number::Value(0.0), |a| a.host_demand.clone());
        let same_mean = used.windows(2).all(|pair| demand_of(pair[0]) == demand_of(pair[1]));
        let exponential = used.iter().all(|&e| entries[e].1.phase(1).is_none_or(|a| a.host_demand_cvsq.is(1.0)));
        let servers = match processor.scheduling {
            ProcessorScheduling::Inf => None,
            ProcessorScheduling::Fcfs | ProcessorScheduling::Ps => count(&processor.multiplicity, values)?,
            _ => return Ok(Err(Refusal("this processor scheduling", name()))),
        };
        let customers: u64 = self.network.classes.iter().map(|c| u64::from(c.population)).sum();
        let mut never_short = true;
        for &t in &tasks {
            let threads = count(&model.tasks[t].multiplicity, values)?;
            let enough = model.tasks[t].scheduling == TaskScheduling::Inf || threads.is_none_or(|m| u64::from(m) >= customers);
            never_short &= enough;
        }
        let kind = if never_short {
            let sharing = processor.scheduling == ProcessorScheduling::Ps;
            match servers {
                None => Station::Delay,
                Some(m) if same_mean && (exponential || sharing) || sharing && m == 1 => Station::Servers(m),
                Some(_) => return Ok(Err(Refusal("different or non-exponential demands at one FCFS queue", name()))),
            }
        } else {
            let [task] = tasks.as_slice() else { return Ok(Err(Refusal("several tasks with limited threads on one processor", name()))) };
            let threads = count(&model.tasks[*task].multiplicity, values)?;
            let Some(threads) = threads.filter(|&m| servers.is_none_or(|s| m <= s)) else {
                return Ok(Err(Refusal("more threads than processors", task_name(&model.tasks[*task]))));
            };
            if !same_mean || !exponential {
                return Ok(Err(Refusal("different or non-exponential demands at one FCFS queue", task_name(&model.tasks[*task]))));
            }
            Station::Servers(threads)
        };
        let index = self.network.stations.len();
        self.network.stations.push(kind);
        for &t in &tasks {
            self.station_of[t] = Some(index);
            self.waits_for_thread[t] = !never_short;
        }
        for c in 0..self.references.len() {
            let demand = (0..entries.len())
                .filter(|&e| tasks.contains(&entries[e].0))
                .fold(S::from(0.0), |sum, e| sum + self.visits[c][e] * self.demand[e]);
            self.network.demands[c].push(demand);
        }
        Ok(Ok(()))
    }

    fn results(&self, model: &Model, means: &MeanValues<S>) -> Results<S> {
        let zero = S::from(0.0);
        let owner: Vec<usize> = model.tasks.iter().enumerate().flat_map(|(t, task)| task.entries.iter().map(move |_| t)).collect();
        let mut rate = vec![zero; owner.len()];
        for (c, visits) in self.visits.iter().enumerate() {
            for (e, &v) in visits.iter().enumerate() {
                rate[e] += means.throughputs[c] * v;
            }
        }
        let classes: Vec<usize> = (0..self.visits.len()).collect();
        let split: Vec<Split<S>> = (0..owner.len()).map(|e| self.split(means, owner[e], e, &classes)).collect();
        let calls = self.call_values(means, &owner);
        let mut entries: Vec<EntryValues<S>> = Vec::new();
        for (e, entry) in model.tasks.iter().flat_map(|t| &t.entries).enumerate() {
            let throughput = match self.references.iter().position(|&t| t == owner[e]) {
                Some(c) => means.throughputs[c],
                None => rate[e],
            };
            let mut service = split[e].service;
            for call in self.calls.iter().filter(|c| c.from == e) {
                let time = self.split(means, owner[call.to], call.to, &[call.class]);
                service += call.mean * (time.waiting + time.service);
            }
            entries.push(EntryValues {
                name: entry.name.clone(),
                throughput,
                service_times: vec![service],
                host_times: vec![split[e].service],
                open_wait_time: None,
                is_reached: true,
            });
        }
        let mut processor_utilization = vec![zero; model.processors.len()];
        let mut task_throughput = vec![zero; model.tasks.len()];
        let mut task_utilization = vec![zero; model.tasks.len()];
        for (e, entry) in entries.iter().enumerate() {
            task_throughput[owner[e]] += entry.throughput;
            task_utilization[owner[e]] += entry.throughput * entry.service_times[0];
            if let Some(p) = model.processors.iter().position(|p| p.name == model.tasks[owner[e]].processor) {
                processor_utilization[p] += entry.throughput * self.demand[e];
            }
        }
        Results {
            solver: "exact",
            converged: true,
            iterations: 1,
            residual: 0.0,
            diagnostics: Vec::new(),
            processor_utilization,
            task_throughput,
            task_utilization,
            entries,
            calls,
            activities: Vec::new(),
            joins: Vec::new(),
            copies: None,
        }
    }

    /// Splits the time of some classes at an entry's station into waiting for the task and service by it, which waits for the
    /// processor.
    fn split(&self, means: &MeanValues<S>, task: usize, e: usize, classes: &[usize]) -> Split<S> {
        let zero = S::from(0.0);
        let demand = self.demand[e];
        let Some(station) = self.station_of[task] else { return Split { waiting: zero, service: demand } };
        let (mut time, mut offered) = (zero, zero);
        for &c in classes {
            if self.network.demands[c][station] > 0.0 {
                let weight = means.throughputs[c] * self.visits[c][e];
                time += weight * means.residence_times[c][station] / self.network.demands[c][station];
                offered += weight;
            }
        }
        let waiting = if offered > 0.0 { time / offered * demand - demand } else { zero };
        if self.waits_for_thread[task] { Split { waiting, service: demand } } else { Split { waiting: zero, service: demand + waiting } }
    }

    fn call_values(&self, means: &MeanValues<S>, owner: &[usize]) -> Vec<CallValues<S>> {
        let value = |call: &PlannedCall<S>| CallValues {
            from: call.from,
            to: call.to,
            phase: 0,
            kind: ResultCallKind::Sync,
            fan_out: 1,
            mean: call.mean,
            activities: Vec::new(),
            waiting: self.split(means, owner[call.to], call.to, &[call.class]).waiting,
            rate: means.throughputs[call.class] * call.mean,
        };
        self.calls.iter().map(value).collect()
    }
}

/// Time at a task: waiting for a thread, and the thread's time, waiting for the processor included.
#[derive(Clone, Copy, Debug)]
struct Split<S> {
    waiting: S,
    service: S,
}

/// A count, `None` for infinity; not a count is left to the layered solver's words.
fn count<S: Scalar>(number: &Number, values: &Bindings<S>) -> Result<Option<u32>, SolveError> {
    let value = number.eval(values)?.value();
    if value == f64::INFINITY {
        return Ok(None);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be an integer in range")]
    if value >= 1.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX) {
        Ok(Some(value as u32))
    } else {
        Err(unusable(format!("multiplicity {number}"), format!("is {value}, expected an integer ≥ 1")))
    }
}

/// The demand of an entry that has at most one phase and calls nobody (a reference task's may call).
fn plain_demand<S: Scalar>(model: &Model, task: &Task, entry: &Entry, values: &Bindings<S>) -> Checked<S> {
    let refuse = |what: &'static str| Ok(Err(Refusal(what, format!("entry \"{}\"", entry.name))));
    let reference = task.scheduling.is_reference();
    if !reference && !matches!(task.scheduling, TaskScheduling::Fcfs | TaskScheduling::Inf) {
        return refuse("this task scheduling");
    }
    if matches!(task.scheduling, TaskScheduling::Burst | TaskScheduling::Uniform) && !reference {
        return refuse("this task scheduling");
    }
    if entry.start_activity.is_some() {
        return refuse("an activity graph");
    }
    if entry.open_arrival_rate.is_some() {
        return refuse("open arrivals");
    }
    if !entry.forwarding.is_empty() {
        return refuse("forwarding");
    }
    if entry.phases.iter().any(|p| p.phase > 1) {
        return refuse("a second phase");
    }
    let Some(activity) = entry.phase(1) else { return Ok(Ok(S::from(0.0))) };
    if !reference && activity.calls.iter().any(|c| !c.mean.is(0.0)) {
        return refuse("a call from a called task");
    }
    if !reference && !activity.think_time.is(0.0) {
        return refuse("think time of a called entry");
    }
    let Some(processor) = model.processor(&task.processor) else {
        return Err(unusable(task_name(task), format!("processor \"{}\" does not exist", task.processor)));
    };
    let demand = activity.host_demand.eval(values)?;
    if !(demand.value().is_finite() && demand.value() >= 0.0) {
        return Err(unusable(
            format!("entry \"{}\"", entry.name),
            format!("the host demand {} is {}, expected a number ≥ 0", activity.host_demand, demand.value()),
        ));
    }
    Ok(Ok(demand / processor.speed_factor.eval(values)?))
}
