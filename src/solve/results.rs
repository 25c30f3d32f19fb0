//! Results of a solver in model order, over any scalar: what measures are read from and the [`Solution`] is made of.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{ActivityResult, CallResult, EntryResult, JoinResult, ProcessorResult, ResultCallKind, Solution, TaskResult};
use crate::model::{Model, Scalar};

/// Results by index in the model: processors, tasks, and entries in the order of their tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Results<S> {
    pub solver: &'static str,
    pub converged: bool,
    pub iterations: usize,
    pub residual: f64,
    pub diagnostics: Vec<String>,
    /// Mean busy servers.
    pub processor_utilization: Vec<S>,
    /// Cycles a unit of time.
    pub task_throughput: Vec<S>,
    /// Mean busy threads.
    pub task_utilization: Vec<S>,
    pub entries: Vec<EntryValues<S>>,
    pub calls: Vec<CallValues<S>>,
    /// Of graphs.
    pub activities: Vec<ActivityValues<S>>,
    pub joins: Vec<JoinValues<S>>,
    /// Of how many copies of each task the values are means, where any has more than one.
    pub copies: Option<Vec<u32>>,
}

/// Values of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntryValues<S> {
    pub name: String,
    pub throughput: S,
    /// By phase, phase 1 first.
    pub service_times: Vec<S>,
    /// Time at the processor by phase, queueing included.
    pub host_times: Vec<S>,
    /// Arrival to end of phase 1 of open arrivals.
    pub open_wait_time: Option<S>,
    /// Whether anything comes to it; of others times mean nothing.
    pub is_reached: bool,
}

/// Values of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallValues<S> {
    /// Index of the calling entry.
    pub from: usize,
    /// Index of the called entry.
    pub to: usize,
    /// 0 for phase 1 (and for forwarding).
    pub phase: usize,
    pub kind: ResultCallKind,
    /// Copies of the called task to which one copy of the caller sends.
    pub fan_out: u32,
    /// Mean requests per execution of the calling phase, to each copy; a probability for forwarding.
    pub mean: S,
    /// In a graph, the activities that call, each with its mean requests in one execution.
    pub activities: Vec<(String, S)>,
    pub waiting: S,
    /// Requests a unit of time, over all copies.
    pub rate: S,
}

/// Where calls of a model are put together that are one call of a smaller model.
#[derive(Debug, Default)]
pub(super) struct CallPlaces {
    ranks: HashMap<CallKey, usize>,
    places: HashMap<(CallKey, usize), usize>,
}

/// Calling and called entry, phase and kind.
type CallKey = (usize, usize, usize, ResultCallKind);

impl CallPlaces {
    /// The place of the next `call`, between entries `from` and `to` of the smaller model: in the order in which places are first asked for. Several activities
    /// may call one entry in one phase: those of the same rank belong together.
    pub fn next<S>(&mut self, call: &CallValues<S>, (from, to): (usize, usize)) -> usize {
        let rank = self.ranks.entry((call.from, call.to, call.phase, call.kind)).or_default();
        *rank += 1;
        let new = self.places.len();
        *self.places.entry(((from, to, call.phase, call.kind), *rank)).or_insert(new)
    }
}

/// Values of an activity of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ActivityValues<S> {
    /// Index of its task.
    pub task: usize,
    pub name: String,
    /// Of one execution.
    pub service_time: S,
    /// Executions a unit of time.
    pub throughput: S,
}

/// Values of an and-join of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JoinValues<S> {
    /// Index of its task.
    pub task: usize,
    /// The joined activities.
    pub activities: Vec<String>,
    /// From the fork to the end of the last branch that is waited for, and its variance.
    pub delay: S,
    pub variance: S,
    /// Executions a unit of time.
    pub throughput: S,
}

impl<S: Scalar> ActivityValues<S> {
    /// Puts it together with those of the same activity among `folded`, if there are any, each counting by its throughput.
    pub fn fold_into(self, folded: &mut Vec<Self>) {
        let Some(sum) = folded.iter_mut().find(|sum| sum.task == self.task && sum.name == self.name) else {
            return folded.push(self);
        };
        let total = sum.throughput + self.throughput;
        if total > 0.0 {
            sum.service_time = (sum.service_time * sum.throughput + self.service_time * self.throughput) / total;
        }
        sum.throughput = total;
    }
}

impl<S: Scalar> JoinValues<S> {
    /// The same of joins; the variance is that of all delays.
    pub fn fold_into(self, folded: &mut Vec<Self>) {
        let Some(sum) = folded.iter_mut().find(|sum| sum.task == self.task && sum.activities == self.activities) else {
            return folded.push(self);
        };
        let total = sum.throughput + self.throughput;
        if total > 0.0 {
            let mean = |one: S, other: S| (one * sum.throughput + other * self.throughput) / total;
            let square = mean(sum.variance + sum.delay * sum.delay, self.variance + self.delay * self.delay);
            sum.delay = mean(sum.delay, self.delay);
            sum.variance = square - sum.delay * sum.delay;
        }
        sum.throughput = total;
    }
}

/// A number of copies as solutions say it: only where there is more than one.
pub(super) fn several(copies: u32) -> Option<u32> {
    (copies > 1).then_some(copies)
}

impl<S: Scalar> Results<S> {
    /// The solution in plain numbers.
    pub fn solution(&self, model: &Model) -> Solution {
        let mut solution = Solution {
            model: model.name.clone(),
            solver: self.solver.to_owned(),
            converged: self.converged,
            iterations: self.iterations,
            residual: self.residual,
            diagnostics: self.diagnostics.clone(),
            ..Solution::default()
        };
        for (processor, u) in model.processors.iter().zip(&self.processor_utilization) {
            solution.processors.insert(processor.name.clone(), ProcessorResult { utilization: u.value(), ..ProcessorResult::default() });
        }
        for (i, task) in model.tasks.iter().enumerate() {
            let result = TaskResult {
                throughput: self.task_throughput[i].value(),
                utilization: self.task_utilization[i].value(),
                copies: several(self.copies_of(i)),
                ..TaskResult::default()
            };
            solution.tasks.insert(task.name.clone(), result);
        }
        solution.entries = self.entries.iter().map(|e| (e.name.clone(), e.result())).collect::<IndexMap<_, _>>();
        solution.calls = self.calls.iter().flat_map(|c| self.call(c)).collect();
        for (t, task) in model.tasks.iter().enumerate() {
            for activity in &task.activities {
                let Some(values) = self.activities.iter().find(|v| v.task == t && v.name == activity.name) else { continue };
                let (service_time, throughput) = (Some(values.service_time.value()), values.throughput.value());
                let result = ActivityResult { service_time, throughput, ..ActivityResult::default() };
                solution.activities.entry(task.name.clone()).or_default().insert(activity.name.clone(), result);
            }
        }
        solution.joins = self.joins.iter().map(|join| join.result(&model.tasks[join.task].name)).collect();
        solution
    }

    /// Copies of task number `task`.
    pub fn copies_of(&self, task: usize) -> u32 {
        self.copies.as_ref().map_or(1, |copies| copies[task])
    }

    /// One result, or in a graph one for each activity that calls.
    fn call(&self, call: &CallValues<S>) -> Vec<CallResult> {
        let result = |activity: Option<&str>, mean: &S| CallResult {
            from: self.entries[call.from].name.clone(),
            to: self.entries[call.to].name.clone(),
            phase: u8::try_from(call.phase + 1).unwrap_or(u8::MAX),
            activity: activity.map(str::to_owned),
            kind: call.kind,
            fan_out: several(call.fan_out),
            mean: mean.value(),
            waiting: Some(call.waiting.value()),
            waiting_half_width: None,
            waiting_variance: None,
            loss_probability: None,
        };
        if call.activities.is_empty() {
            return vec![result(None, &call.mean)];
        }
        call.activities.iter().map(|(name, mean)| result(Some(name), mean)).collect()
    }
}

impl<S: Scalar> EntryValues<S> {
    fn result(&self) -> EntryResult {
        let busy = self.service_times.iter().fold(S::from(0.0), |sum, &s| sum + s) * self.throughput;
        EntryResult {
            throughput: self.throughput.value(),
            utilization: busy.value(),
            service_times: self.service_times.iter().map(|s| self.is_reached.then(|| s.value())).collect(),
            open_wait_time: self.open_wait_time.as_ref().map(Scalar::value),
            ..EntryResult::default()
        }
    }
}

impl<S: Scalar> JoinValues<S> {
    fn result(&self, task: &str) -> JoinResult {
        JoinResult {
            task: task.to_owned(),
            activities: self.activities.clone(),
            delay: Some(self.delay.value()),
            delay_variance: Some(self.variance.value()),
            ..JoinResult::default()
        }
    }
}
