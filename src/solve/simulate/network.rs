//! A model compiled for simulation: names resolved, numbers bound, copies of replicated elements laid out, dense indices.
//!
//! Everything that a run reads and never changes is here. Elements are numbered over all copies; `origin` is the number
//! of the element in the model, under which results are collected.

use std::ops::Range;

use super::law::{Family, Law};
use crate::{
    model::CallOrder,
    solve::{ResultCallKind, bind::Count, role::Role},
};

/// A compiled model.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// Processors.
    pub(super) processors: Vec<Processor>,
    /// Tasks.
    pub(super) tasks: Vec<Task>,
    /// Entries, those of a task together.
    pub(super) entries: Vec<Entry>,
    /// Phases and activities.
    pub(super) activities: Vec<Activity>,
    /// Calls, those of an activity together.
    pub(super) calls: Vec<Call>,
    /// Forwardings, those of an entry together.
    pub(super) forwardings: Vec<Forwarding>,
    /// And-forks.
    pub(super) forks: Vec<Fork>,
    /// And-joins.
    pub(super) joins: Vec<Join>,
    /// Loops.
    pub(super) loops: Vec<Loop>,
    /// Branches of or-forks and bodies of loops, with cumulative weights.
    pub(super) choices: Vec<(f64, u32)>,
    /// Streams of open arrivals.
    pub(super) sources: Vec<Source>,
    /// Most joins of any one task.
    pub(super) joins_of_a_task: usize,
    /// What results are collected about.
    pub(super) origins: Origins,
    /// The least mean time of a slice, if any takes time.
    pub(super) shortest_slice: Option<f64>,
    /// What a reader of the results should know.
    pub(super) notes: Vec<String>,
}

/// The elements of the model, in the order of their origins.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// Processors: name, copies.
    pub(super) processors: Vec<(String, f64)>,
    /// Tasks.
    pub(super) tasks: Vec<OriginTask>,
    /// Entries.
    pub(super) entries: Vec<OriginEntry>,
    /// Activities of graphs.
    pub(super) activities: Vec<OriginActivity>,
    /// Calls and forwardings.
    pub(super) calls: Vec<OriginCall>,
    /// And-joins.
    pub(super) joins: Vec<OriginJoin>,
    /// Histograms and limits that the model asks for.
    pub(super) watches: Vec<Watch>,
}

/// Of what the model asks for a histogram or a limit, by origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// Service times of a phase.
    Phase { entry: usize, phase: u8 },
    /// Service times of an activity of a graph.
    Activity { activity: usize },
    /// Times that the tokens of a semaphore are held.
    Holding { task: usize },
    /// Delays of an and-join.
    Join { join: usize },
}

/// A histogram of equal bins between two ends, or a limit: no bins, and both ends the limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Watch {
    pub(super) of: Watched,
    pub(super) begin: f64,
    pub(super) end: f64,
    pub(super) bins: u32,
}

/// A task of the model.
#[derive(Debug)]
pub(super) struct OriginTask {
    pub(super) name: String,
    pub(super) copies: u32,
    pub(super) is_reference: bool,
    /// Whether its busy threads are those of its entries.
    pub(super) sums_levels: bool,
    /// Whether its cycles are the completions of its entries.
    pub(super) sums_cycles: bool,
}

/// An entry of the model.
#[derive(Debug)]
pub(super) struct OriginEntry {
    pub(super) name: String,
    pub(super) task: usize,
    /// Phases that results have.
    pub(super) n_phases: usize,
    /// Whether it has all of them: a graph has a second one where it replies before its end.
    pub(super) has_phases: bool,
    pub(super) is_open: bool,
    pub(super) is_bounded: bool,
    /// Whether requests to it take a token or lock.
    pub(super) is_taking: bool,
    /// Whether every request to it is accepted at once, by the kind of its task.
    pub(super) is_immediate: bool,
    /// By phase, whether it can take time; all of them in a graph.
    pub(super) takes_time: [bool; 3],
}

/// An activity of a graph of the model.
#[derive(Debug)]
pub(super) struct OriginActivity {
    pub(super) task: usize,
    pub(super) name: String,
    /// Whether it can take time.
    pub(super) takes_time: bool,
}

/// A call or forwarding of the model.
#[derive(Debug)]
pub(super) struct OriginCall {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) phase: u8,
    pub(super) activity: Option<String>,
    pub(super) kind: ResultCallKind,
    /// Copies of the called task to which one copy of the caller sends.
    pub(super) fan_out: u32,
    pub(super) mean: f64,
}

/// An and-join of the model.
#[derive(Debug)]
pub(super) struct OriginJoin {
    pub(super) task: usize,
    /// The joined activities.
    pub(super) activities: Vec<String>,
    /// Whether it is known when its delays begin: at a fork, or at the first arrival where it joins several entries.
    pub(super) is_timed: bool,
}

/// A processor.
#[derive(Debug)]
pub(super) struct Processor {
    pub(super) origin: u32,
    pub(super) servers: Count,
    pub(super) discipline: Discipline,
}

/// How a processor serves.
#[derive(Clone, Debug)]
pub(super) enum Discipline {
    /// No queue.
    Infinite,
    /// First come, first served.
    Fifo,
    /// Last come, first served; a service once begun is not interrupted.
    Lifo,
    /// Random order.
    Random,
    /// Non-preemptive priority.
    HeadOfLine,
    /// Preemptive-resume priority.
    Preemptive,
    /// True sharing.
    Sharing,
    /// Round robin with this quantum.
    RoundRobin(f64),
    /// Fair shares with this quantum.
    Fair {
        /// Time slice.
        quantum: f64,
        /// Groups.
        groups: Vec<Group>,
    },
}

/// A group of a fair-share processor.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Guaranteed share of the processor.
    pub(super) share: f64,
    /// Whether the share bounds the rate.
    pub(super) cap: bool,
    /// Tasks in the group.
    pub(super) n_tasks: usize,
}

/// What kind of server a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// Customers.
    Reference,
    /// Threads before one queue.
    Fifo,
    /// Threads before a priority queue.
    Priority,
    /// Threads that take requests in random order.
    Random,
    /// One thread that joins activities of several entries.
    Synchronizing,
    /// Counting semaphore starting with this many free tokens.
    Semaphore {
        /// Free tokens at the start.
        free: u32,
    },
    /// Read-write lock.
    RwLock,
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) origin: u32,
    pub(super) processor: u32,
    pub(super) kind: TaskKind,
    pub(super) threads: Count,
    /// Rank at the processor; 0 is most urgent.
    pub(super) rank: u32,
    /// Priority that requests of this task carry; larger is more urgent.
    pub(super) priority: f64,
    /// Group and task within it, under fair shares.
    pub(super) group: (u32, u32),
    /// Places for asynchronous requests; `u32::MAX` for no bound.
    pub(super) places: u32,
    pub(super) entries: Range<u32>,
    /// Think time between the cycles of customers.
    pub(super) think: Law,
    /// Cumulative probabilities of the entries of customers.
    pub(super) visits: Vec<f64>,
}

/// An entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) origin: u32,
    pub(super) task: u32,
    pub(super) role: Role,
    /// Added to the sender's priority in a priority queue; larger is more urgent.
    pub(super) priority: f64,
    /// The first phase or activity.
    pub(super) first: Option<u32>,
    /// Whether the work is phases.
    pub(super) has_phases: bool,
    pub(super) forwardings: Range<u32>,
}

/// A phase or activity.
#[derive(Debug)]
pub(super) struct Activity {
    /// Where its service times are collected; `u32::MAX` for phases.
    pub(super) origin: u32,
    pub(super) task: u32,
    /// 1 to 3 of a phase, 0 of an activity in a graph.
    pub(super) phase: u8,
    /// Mean own think time.
    pub(super) think: f64,
    /// Whether there is demand.
    pub(super) has_demand: bool,
    /// Law of a slice, in time on one server.
    pub(super) slice: Law,
    pub(super) order: CallOrder,
    pub(super) calls: Range<u32>,
    /// Mean number of calls of all kinds.
    pub(super) n_calls: f64,
    /// Entries replied to at its end.
    pub(super) replies: Vec<u32>,
    pub(super) next: Next,
}

/// What follows an activity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// The branch ends.
    End,
    /// One activity.
    Activity(u32),
    /// All branches of a fork.
    Fork(u32),
    /// One of the choices.
    Or(Range<u32>),
    /// A loop.
    Loop(u32),
    /// An arrival at a join.
    Join(u32),
}

/// A call of one activity to one entry.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) origin: u32,
    pub(super) entry: u32,
    pub(super) is_sync: bool,
    /// Mean number of this and the calls before it.
    pub(super) cumulative: f64,
    /// Number, where exact.
    pub(super) count: u32,
}

/// A forwarding of one entry to another.
#[derive(Debug)]
pub(super) struct Forwarding {
    pub(super) origin: u32,
    pub(super) entry: u32,
    /// Probability of this and the forwardings before it.
    pub(super) cumulative: f64,
}

/// A loop: one of the bodies again and again, then the end.
#[derive(Debug)]
pub(super) struct Loop {
    /// Bodies, as choices whose weights are mean counts.
    pub(super) bodies: Range<u32>,
    /// Mean number of all bodies.
    pub(super) total: f64,
    /// What follows.
    pub(super) end: Option<u32>,
}

/// An and-fork.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) branches: Vec<u32>,
    /// The joins, by number in the task, whose delays begin here.
    pub(super) joins: Vec<u32>,
}

/// An and-join.
#[derive(Debug)]
pub(super) struct Join {
    /// Where its delays are collected.
    pub(super) origin: u32,
    /// Whether it joins activities of several entries.
    pub(super) is_external: bool,
    /// Its number among the joins of its task.
    pub(super) slot: u32,
    /// Arrivals it waits for.
    pub(super) needed: u32,
    pub(super) next: Next,
}

/// Open arrivals at an entry.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) entry: u32,
    pub(super) mean_gap: f64,
}

impl Network {
    /// The family of laws of the demands of a task's kind of customers.
    pub(super) fn family(scheduling: crate::model::TaskScheduling) -> Family {
        match scheduling {
            crate::model::TaskScheduling::Burst => Family::Pareto,
            crate::model::TaskScheduling::Uniform => Family::Uniform,
            _ => Family::ByVariation,
        }
    }

    /// The name of task number `task` (over all copies).
    pub(super) fn task_name(&self, task: u32) -> &str {
        &self.origins.tasks[self.tasks[task as usize].origin as usize].name
    }
}

impl TaskKind {
    /// Whether what waits at the task can be let in by requests that nothing tells of beforehand.
    pub(super) fn is_open_ended(self) -> bool {
        matches!(self, Self::Synchronizing | Self::Semaphore { .. } | Self::RwLock)
    }
}
