//! A model compiled for its Markov chain: names resolved, numbers bound, dense indices.

use std::ops::Range;

use crate::{
    model::CallOrder,
    solve::{ResultCallKind, role::Role},
};

/// No strand, instance, frame or route.
pub(super) const NONE: u32 = u32::MAX;

/// A compiled model.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) processors: Vec<Processor>,
    pub(super) tasks: Vec<Task>,
    /// Entries, those of a task together.
    pub(super) entries: Vec<Entry>,
    /// Phases and activities.
    pub(super) activities: Vec<Activity>,
    /// Calls, those of an activity together, and forwardings, those of an entry together.
    pub(super) routes: Vec<Route>,
    /// Branches of and-forks.
    pub(super) forks: Vec<Vec<u32>>,
    pub(super) joins: Vec<Join>,
    pub(super) loops: Vec<Loop>,
    /// Streams of open arrivals: entry, rate.
    pub(super) sources: Vec<(u32, f64)>,
    /// Most joins of any one task.
    pub(super) joins_of_a_task: usize,
    /// What a reader of the results should know.
    pub(super) notes: Vec<String>,
}

/// A processor.
#[derive(Debug)]
pub(super) struct Processor {
    pub(super) discipline: Discipline,
    /// `usize::MAX` for no bound.
    pub(super) servers: usize,
}

/// How a processor serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// No queue.
    Infinite,
    /// First come, first served.
    Fifo,
    /// Last come, first served, without preemption.
    Lifo,
    /// In random order.
    Random,
    /// By priority, without preemption.
    HeadOfLine,
    /// By priority, preemptive-resume.
    Preemptive,
    /// All at once, at equal rates.
    Sharing,
}

/// The order in which a task takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOrder {
    Fifo,
    Priority,
    Random,
}

/// Whether a task lends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// Threads that serve.
    None,
    /// Tokens.
    Semaphore,
    /// Read and write locks.
    ReadWrite,
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) processor: u32,
    pub(super) is_reference: bool,
    pub(super) order: QueueOrder,
    pub(super) lock: Lock,
    /// Tokens lent at the start.
    pub(super) lent: u32,
    /// Threads, customers, tokens or readers; `usize::MAX` for no bound.
    pub(super) threads: usize,
    /// Rank at the processor; 0 is most urgent.
    pub(super) rank: u32,
    /// Places for asynchronous requests; `u32::MAX` for no bound.
    pub(super) places: u32,
    pub(super) entries: Range<u32>,
    /// Mean think time between the cycles of customers.
    pub(super) think: f64,
    /// Probabilities of the entries of customers.
    pub(super) visits: Vec<f64>,
    pub(super) n_joins: usize,
}

/// An entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) task: u32,
    pub(super) role: Role,
    /// The first phase or activity.
    pub(super) first: Option<u32>,
    /// Whether the work is phases.
    pub(super) has_phases: bool,
    /// Phases that results have.
    pub(super) n_phases: usize,
    pub(super) forwardings: Range<u32>,
    /// Priority in a queue by priority, beside the sender's; larger is more urgent.
    pub(super) priority: f64,
}

/// A stage of a phase-type law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) rate: f64,
    /// Whether the law ends with it; else the next stage follows.
    pub(super) is_last: bool,
}

/// A phase-type law: starts in a stage by probability, and runs on to the first that is a last one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) start: Vec<f64>,
    pub(super) stages: Vec<Stage>,
}

/// A phase or activity.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) name: String,
    pub(super) task: u32,
    /// 1 to 3 of a phase, 0 of an activity in a graph.
    pub(super) phase: u8,
    /// Mean own think time.
    pub(super) think: f64,
    /// Law of a slice; `None` without demand.
    pub(super) slice: Option<Law>,
    pub(super) order: CallOrder,
    pub(super) calls: Range<u32>,
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
    /// One of these, with probabilities.
    Or(Vec<(f64, u32)>),
    /// A loop.
    Loop(u32),
    /// An arrival at a join.
    Join(u32),
}

/// A call of an activity, or a forwarding of an entry.
#[derive(Debug)]
pub(super) struct Route {
    /// The entry that sends.
    pub(super) from: u32,
    /// The entry that receives.
    pub(super) to: u32,
    /// The sending phase.
    pub(super) phase: u8,
    /// The sending activity, in a graph.
    pub(super) activity: Option<u32>,
    pub(super) kind: ResultCallKind,
    /// Mean number, or probability of a forwarding.
    pub(super) mean: f64,
    /// Number, where exact.
    pub(super) count: u32,
    /// Priority of the requests in a queue by priority; larger is more urgent.
    pub(super) urgency: f64,
}

/// A loop: one of the bodies again and again, then the end.
#[derive(Debug)]
pub(super) struct Loop {
    /// Bodies and their mean counts.
    pub(super) bodies: Vec<(f64, u32)>,
    pub(super) end: Option<u32>,
}

/// An and-join.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) inputs: Vec<u32>,
    /// Its number among the joins of its task.
    pub(super) slot: u32,
    /// Arrivals it waits for.
    pub(super) needed: u32,
    pub(super) next: Next,
}

/// Most stages of a slice's law.
const STAGES_LIMIT: f64 = 200.0;

/// Rounding allowed in the shape of an Erlang law.
const ROUNDING: f64 = 1e-9;

impl Network {
    /// The entry of a lock by which what is held was taken.
    pub(super) fn taker(&self, task: usize, role: Role) -> Option<u32> {
        self.tasks[task].entries.clone().find(|&e| self.entries[e as usize].role == role)
    }
}

impl Law {
    /// The law of slices with mean `mean` > 0 and squared coefficient of variation `cvsq` ≥ 0, where it is of phase type.
    pub(super) fn of_slices(mean: f64, cvsq: f64) -> Option<Self> {
        let one = |rate| Stage { rate, is_last: true };
        if (cvsq - 1.0).abs() <= f64::EPSILON {
            return Some(Self { start: vec![1.0], stages: vec![one(1.0 / mean)] });
        }
        if cvsq > 1.0 {
            let p = 0.5 * (1.0 - ((cvsq - 1.0) / (cvsq + 1.0)).sqrt());
            return Some(Self { start: vec![p, 1.0 - p], stages: vec![one(2.0 * p / mean), one(2.0 * (1.0 - p) / mean)] });
        }
        let shape = (1.0 / cvsq).round();
        if !(cvsq > 0.0 && shape <= STAGES_LIMIT && (1.0 / cvsq - shape).abs() <= ROUNDING * shape) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the limit of stages")]
        let n = shape as usize;
        let mut stages = vec![Stage { rate: shape / mean, is_last: false }; n];
        stages[n - 1].is_last = true;
        let mut start = vec![0.0; n];
        start[0] = 1.0;
        Some(Self { start, stages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and squared coefficient of variation of a law, by its moments from the last stage backwards.
    fn moments(law: &Law) -> (f64, f64) {
        let n = law.stages.len();
        let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
        for (i, stage) in law.stages.iter().enumerate().rev() {
            let (m, s) = if stage.is_last { (0.0, 0.0) } else { (first[i + 1], second[i + 1]) };
            first[i] = 1.0 / stage.rate + m;
            second[i] = 2.0 * first[i] / stage.rate + s;
        }
        let mean: f64 = law.start.iter().zip(&first).map(|(p, m)| p * m).sum();
        let square: f64 = law.start.iter().zip(&second).map(|(p, m)| p * m).sum();
        (mean, square / (mean * mean) - 1.0)
    }

    #[test]
    fn laws_have_the_moments_asked_for() {
        for cvsq in [0.1, 0.25, 0.5, 1.0, 1.5, 4.0] {
            let (mean, got) = moments(&Law::of_slices(3.0, cvsq).unwrap());
            assert!((mean - 3.0).abs() < 1e-12 && (got - cvsq).abs() < 1e-12, "{mean} {got} for {cvsq}");
        }
        assert!([0.0, 0.3, 0.9, 0.001].into_iter().all(|cvsq| Law::of_slices(3.0, cvsq).is_none()));
    }
}
