//! Models in few words.

use layerfit::model::{
    Activity, Call, CallKind, CallOrder, Entry, Forwarding, Model, Number, Phase, Post, Pre, Precedence, Processor, ProcessorScheduling,
    Reply, Task, TaskScheduling, Weighted,
};

/// Work of this demand.
pub fn work(name: &str, demand: f64) -> Activity {
    Activity::new(name, demand)
}

/// What else an activity does.
pub trait Does {
    /// Exactly `n` synchronous calls.
    fn calls(self, dest: &str, n: u32) -> Self;
    /// Synchronous calls, `mean` of them.
    fn calls_about(self, dest: &str, mean: f64) -> Self;
    /// Exactly `n` asynchronous calls.
    fn sends(self, dest: &str, n: u32) -> Self;
    /// Asynchronous calls, `mean` of them.
    fn sends_about(self, dest: &str, mean: f64) -> Self;
    /// Squared coefficient of variation of the slices.
    fn cvsq(self, cvsq: f64) -> Self;
    /// Own think time.
    fn thinks(self, time: f64) -> Self;
}

fn call(kind: CallKind, dest: &str, mean: f64) -> Call {
    Call { kind, dest: dest.into(), mean: mean.into() }
}

impl Does for Activity {
    fn calls(mut self, dest: &str, n: u32) -> Self {
        self.call_order = CallOrder::Deterministic;
        self.calls.push(call(CallKind::Sync, dest, f64::from(n)));
        self
    }

    fn calls_about(mut self, dest: &str, mean: f64) -> Self {
        self.calls.push(call(CallKind::Sync, dest, mean));
        self
    }

    fn sends(mut self, dest: &str, n: u32) -> Self {
        self.call_order = CallOrder::Deterministic;
        self.calls.push(call(CallKind::Async, dest, f64::from(n)));
        self
    }

    fn sends_about(mut self, dest: &str, mean: f64) -> Self {
        self.calls.push(call(CallKind::Async, dest, mean));
        self
    }

    fn cvsq(mut self, cvsq: f64) -> Self {
        self.host_demand_cvsq = cvsq.into();
        self
    }

    fn thinks(mut self, time: f64) -> Self {
        self.think_time = time.into();
        self
    }
}

/// An entry of phases.
pub fn entry(name: &str, phases: impl IntoIterator<Item = Activity>) -> Entry {
    let phases = (1..).zip(phases).map(|(phase, activity)| Phase { phase, activity }).collect();
    Entry { phases, ..Entry::new(name) }
}

/// An entry of one phase of this demand.
pub fn serves(name: &str, demand: f64) -> Entry {
    entry(name, [work(name, demand)])
}

/// An entry that starts a graph.
pub fn starts(name: &str, activity: &str) -> Entry {
    Entry { start_activity: Some(activity.into()), ..Entry::new(name) }
}

/// What else an entry or task is.
pub trait Is {
    /// With other scheduling.
    fn scheduled(self, scheduling: TaskScheduling) -> Self;
    /// With this many threads, customers or tokens.
    fn times(self, multiplicity: impl Into<Number>) -> Self;
    /// On this processor.
    fn on(self, processor: &str) -> Self;
    /// With this priority.
    fn priority(self, priority: f64) -> Self;
    /// With these activities, and what follows each.
    fn graph(self, activities: impl IntoIterator<Item = Activity>, precedences: impl IntoIterator<Item = Precedence>) -> Self;
    /// Replying to `entry` when `activity` ends.
    fn replies(self, entry: &str, activity: &str) -> Self;
}

impl Is for Task {
    fn scheduled(mut self, scheduling: TaskScheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    fn times(mut self, multiplicity: impl Into<Number>) -> Self {
        self.multiplicity = multiplicity.into();
        self
    }

    fn on(mut self, processor: &str) -> Self {
        self.processor = processor.into();
        self
    }

    fn priority(mut self, priority: f64) -> Self {
        self.priority = priority.into();
        self
    }

    fn graph(mut self, activities: impl IntoIterator<Item = Activity>, precedences: impl IntoIterator<Item = Precedence>) -> Self {
        self.activities = activities.into_iter().collect();
        self.precedences = precedences.into_iter().collect();
        self
    }

    fn replies(mut self, entry: &str, activity: &str) -> Self {
        self.replies.push(Reply { entry: entry.into(), activity: activity.into() });
        self
    }
}

/// A single-threaded task on a processor of its own name.
pub fn server(name: &str, entries: impl IntoIterator<Item = Entry>) -> Task {
    Task { entries: entries.into_iter().collect(), ..Task::new(name, name) }
}

/// `n` customers with think time on the processor `delay`, each cycle doing this work.
pub fn customers(name: &str, n: u32, think: f64, cycle: Activity) -> Task {
    reference(name, n, think, [entry(name, [cycle])])
}

/// `n` customers with think time on the processor `delay`.
pub fn reference(name: &str, n: u32, think: f64, entries: impl IntoIterator<Item = Entry>) -> Task {
    Task {
        scheduling: TaskScheduling::Ref,
        multiplicity: f64::from(n).into(),
        think_time: think.into(),
        entries: entries.into_iter().collect(),
        ..Task::new(name, "delay")
    }
}

/// A processor of this scheduling and number of servers.
pub fn processor(name: &str, scheduling: ProcessorScheduling, multiplicity: u32) -> Processor {
    Processor { scheduling, multiplicity: f64::from(multiplicity).into(), ..Processor::new(name) }
}

/// The model of these tasks and processors; processors that tasks name and are not given are FCFS, and `delay` is infinite.
pub fn model(processors: impl IntoIterator<Item = Processor>, tasks: impl IntoIterator<Item = Task>) -> Model {
    let mut model = Model { processors: processors.into_iter().collect(), tasks: tasks.into_iter().collect(), ..Model::default() };
    for task in &model.tasks {
        if !model.processors.iter().any(|p| p.name == task.processor) {
            let scheduling = if task.processor == "delay" { ProcessorScheduling::Inf } else { ProcessorScheduling::Fcfs };
            model.processors.push(processor(&task.processor, scheduling, 1));
        }
    }
    model
}

/// `from -> to`.
pub fn then(from: &str, to: &str) -> Precedence {
    Precedence { pre: Pre::Single(from.into()), post: Some(Post::Single(to.into())) }
}

/// `from -> a & b`.
pub fn forks(from: &str, to: &[&str]) -> Precedence {
    Precedence { pre: Pre::Single(from.into()), post: Some(Post::And(to.iter().map(|&a| a.into()).collect())) }
}

/// `a & b -> to`, for `quorum` of them or 0 for all.
pub fn joins(from: &[&str], quorum: u32, to: &str) -> Precedence {
    let activities = from.iter().map(|&a| a.into()).collect();
    Precedence { pre: Pre::And { activities, quorum: f64::from(quorum).into() }, post: Some(Post::Single(to.into())) }
}

fn weighted(list: &[(f64, &str)]) -> Vec<Weighted> {
    list.iter().map(|&(value, activity)| Weighted { activity: activity.into(), value: value.into() }).collect()
}

/// `from -> (p) a + (q) b`.
pub fn chooses(from: &str, to: &[(f64, &str)]) -> Precedence {
    Precedence { pre: Pre::Single(from.into()), post: Some(Post::Or(weighted(to))) }
}

/// `a + b -> to`.
pub fn merges(from: &[&str], to: &str) -> Precedence {
    Precedence { pre: Pre::Or(from.iter().map(|&a| a.into()).collect()), post: Some(Post::Single(to.into())) }
}

/// `from -> n * body, end`.
pub fn repeats(from: &str, bodies: &[(f64, &str)], end: &str) -> Precedence {
    Precedence { pre: Pre::Single(from.into()), post: Some(Post::Loop { bodies: weighted(bodies), end: Some(end.into()) }) }
}

/// `entry`, forwarding to `dest`.
pub fn forwards(mut entry: Entry, dest: &str, probability: f64) -> Entry {
    entry.forwarding.push(Forwarding { dest: dest.into(), probability: probability.into() });
    entry
}

/// `entry` with Poisson arrivals.
pub fn open(mut entry: Entry, rate: f64) -> Entry {
    entry.open_arrival_rate = Some(rate.into());
    entry
}
