//! The results of every element by the attributes of the format.

use std::collections::HashMap;

use super::interval::Intervals;
use crate::{
    model::{
        Activity, CallKind, Entry, Model, Number, Observed, Processor, ProcessorScheduling, RwLockRole, SemaphoreRole, Task,
        TaskScheduling, lqnx::ResultElement,
    },
    solve::{
        AskedTimes, CallResult, EntryResult, ResultCallKind, Solution,
        visits::{Visits, visits},
    },
};

/// Attributes of a phase, by phase.
const PHASE_UTILIZATION: [&str; 3] = ["phase1-utilization", "phase2-utilization", "phase3-utilization"];
const PHASE_SERVICE_TIME: [&str; 3] = ["phase1-service-time", "phase2-service-time", "phase3-service-time"];
const PHASE_VARIANCE: [&str; 3] = ["phase1-service-time-variance", "phase2-service-time-variance", "phase3-service-time-variance"];
const PHASE_PROC_WAITING: [&str; 3] = ["phase1-proc-waiting", "phase2-proc-waiting", "phase3-proc-waiting"];

/// Attributes of the two sides of a read-write lock: waits and times held with their variances, busy tokens.
const READER: [&str; 5] = [
    "rwlock-reader-waiting",
    "rwlock-reader-waiting-variance",
    "rwlock-reader-holding",
    "rwlock-reader-holding-variance",
    "rwlock-reader-utilization",
];
const WRITER: [&str; 5] = [
    "rwlock-writer-waiting",
    "rwlock-writer-waiting-variance",
    "rwlock-writer-holding",
    "rwlock-writer-holding-variance",
    "rwlock-writer-utilization",
];

/// Difference of times, relative to their sum, that rounding explains.
const ROUNDING: f64 = 1e-12;

/// All results of a solution.
pub(super) struct Elements<'a> {
    model: &'a Model,
    solution: &'a Solution,
    intervals: Intervals,
    /// Calls by calling entry.
    calls: HashMap<&'a str, Vec<&'a CallResult>>,
    /// Time from the acceptance of a request to its reply, by entry, forwarding included.
    responses: HashMap<&'a str, f64>,
    elements: HashMap<Observed, ResultElement>,
}

/// Where work is done: what is the same for all phases and activities of a task.
struct Place<'a> {
    task: &'a Task,
    speed: f64,
    /// Whether nothing waits for the processor.
    is_delay: bool,
}

/// The attributes of an element as they are gathered.
struct Gathered {
    element: ResultElement,
    intervals: Intervals,
}

impl Gathered {
    fn value(&mut self, name: &'static str, value: f64) -> &mut Self {
        self.element.values.push((name, value));
        self
    }

    /// A value with its half-width, where it has one.
    fn measured(&mut self, name: &'static str, value: f64, half_width: Option<f64>) -> &mut Self {
        let half_width = half_width.unwrap_or(f64::NAN);
        let mut keep = |list: fn(&mut ResultElement) -> &mut Vec<(&'static str, f64)>, factor: f64| {
            let scaled = half_width * factor;
            if scaled.is_finite() {
                list(&mut self.element).push((name, scaled));
            }
        };
        keep(|e| &mut e.half_widths_95, self.intervals.to_95);
        keep(|e| &mut e.half_widths_99, self.intervals.to_99);
        self.value(name, value)
    }

    /// How often the limit that is asked for is exceeded.
    fn exceedance<'a>(&mut self, asked: impl IntoIterator<Item = &'a AskedTimes>) {
        if let Some(exceeds) = asked.into_iter().find_map(|asked| asked.exceeds) {
            self.measured("prob-exceed-max-service-time", exceeds.probability, exceeds.probability_half_width);
        }
    }

    fn optional(&mut self, name: &'static str, value: Option<f64>) -> &mut Self {
        match value {
            Some(value) => self.value(name, value),
            None => self,
        }
    }
}

/// A number of a model bound to values.
fn literal(number: &Number) -> f64 {
    number.literal().unwrap_or_default()
}

impl<'a> Elements<'a> {
    /// The results of `solution`, of a `model` that is bound to values.
    pub(super) fn new(model: &'a Model, solution: &'a Solution, intervals: Intervals) -> Self {
        let mut calls: HashMap<&str, Vec<&CallResult>> = HashMap::new();
        solution.calls.iter().for_each(|c| calls.entry(&c.from).or_default().push(c));
        let mut this = Self { model, solution, intervals, calls, responses: HashMap::new(), elements: HashMap::new() };
        for entry in model.tasks.iter().flat_map(|t| &t.entries) {
            this.find_response(&entry.name, model.tasks.len());
        }
        this
    }

    /// The results by element.
    pub(super) fn all(mut self) -> HashMap<Observed, ResultElement> {
        for processor in &self.model.processors {
            self.processor(processor);
        }
        for task in &self.model.tasks {
            let processor = self.model.processor(&task.processor);
            let is_delay = processor.is_some_and(|p| p.scheduling == ProcessorScheduling::Inf || p.multiplicity.is(f64::INFINITY));
            let place = Place { task, speed: processor.map_or(1.0, |p| literal(&p.speed_factor)), is_delay };
            self.task(&place);
        }
        self.joins();
        self.elements
    }

    fn gather(&self) -> Gathered {
        Gathered { element: ResultElement::default(), intervals: self.intervals }
    }

    fn entry_result(&self, name: &str) -> Option<&'a EntryResult> {
        self.solution.entries.get(name)
    }

    /// Finds the response of an entry; forwarding deeper than there are tasks is cut.
    fn find_response(&mut self, entry: &'a str, depth: usize) -> f64 {
        if let Some(&known) = self.responses.get(entry) {
            return known;
        }
        let mut response = self.entry_result(entry).and_then(|e| e.service_times.first()).copied().flatten().unwrap_or(0.0);
        let forwards: Vec<&'a CallResult> =
            self.calls.get(entry).into_iter().flatten().copied().filter(|c| c.kind == ResultCallKind::Forward).collect();
        for call in forwards {
            if depth > 0 && call.mean > 0.0 {
                response += call.mean * connections(call) * (call.waiting.unwrap_or(0.0) + self.find_response(&call.to, depth - 1));
            }
        }
        self.responses.insert(entry, response);
        response
    }

    fn processor(&mut self, processor: &Processor) {
        if let Some(result) = self.solution.processors.get(&processor.name) {
            let mut gathered = self.gather();
            gathered.measured("utilization", result.utilization, result.utilization_half_width);
            self.elements.insert(Observed::Processor(processor.name.clone()), gathered.element);
        }
        for group in &processor.groups {
            let members = self.model.tasks.iter().filter(|t| t.processor == processor.name && t.group.as_ref() == Some(&group.name));
            let speed = literal(&processor.speed_factor);
            let busy = members.map(|task| self.host_load(&Place { task, speed, is_delay: false })).sum();
            let mut gathered = self.gather();
            gathered.value("utilization", busy);
            self.elements.insert(Observed::Group(group.name.clone()), gathered.element);
        }
    }

    fn joins(&mut self) {
        for join in &self.solution.joins {
            let (Some(first), Some(delay)) = (join.activities.first(), join.delay) else { continue };
            let mut gathered = self.gather();
            gathered.measured("join-waiting", delay, join.delay_half_width);
            gathered.optional("join-variance", join.delay_variance);
            self.elements.insert(Observed::Join { task: join.task.clone(), activity: first.clone() }, gathered.element);
        }
    }

    /// Servers that a task keeps busy.
    fn host_load(&self, place: &Place<'_>) -> f64 {
        let entries: f64 = place.task.entries.iter().map(|e| self.entry_host_load(place, e)).sum();
        let activities = place.task.activities.iter();
        entries + activities.map(|a| self.activity_rate(place.task, &a.name) * literal(&a.host_demand) / place.speed).sum::<f64>()
    }

    /// Servers that the phases of an entry keep busy.
    fn entry_host_load(&self, place: &Place<'_>, entry: &Entry) -> f64 {
        let rate = self.entry_result(&entry.name).map_or(0.0, |e| e.throughput);
        entry.phases.iter().map(|p| rate * literal(&p.activity.host_demand) / place.speed).sum()
    }

    /// Executions of an activity a unit of time.
    fn activity_rate(&self, task: &Task, activity: &str) -> f64 {
        let counted = self.solution.activities.get(&task.name).and_then(|a| a.get(activity));
        counted.map_or_else(
            || {
                let rate = |e: &Entry| {
                    let visits = visits(task, e);
                    let executions = (0..2).filter_map(|phase| visits.get(&(activity, phase))).sum::<f64>();
                    executions * self.entry_result(&e.name).map_or(0.0, |r| r.throughput)
                };
                task.entries.iter().map(rate).sum()
            },
            |result| result.throughput,
        )
    }

    fn task(&mut self, place: &Place<'a>) {
        let task = place.task;
        if let Some(result) = self.solution.tasks.get(&task.name) {
            let mut gathered = self.gather();
            gathered.measured("throughput", result.throughput, result.throughput_half_width);
            gathered.measured("utilization", result.utilization, result.utilization_half_width);
            for (phase, name) in PHASE_UTILIZATION.into_iter().enumerate() {
                let of = |e: &Entry| {
                    self.entry_result(&e.name).map_or(0.0, |r| r.throughput * r.service_times.get(phase).copied().flatten().unwrap_or(0.0))
                };
                let busy: f64 = task.entries.iter().map(of).sum();
                gathered.optional(name, (busy > 0.0).then_some(busy));
            }
            gathered.value("proc-utilization", self.host_load(place));
            self.lock(task, &mut gathered);
            self.elements.insert(Observed::Task(task.name.clone()), gathered.element);
        }
        for entry in &task.entries {
            self.entry(place, entry);
        }
        for activity in &task.activities {
            self.activity(place, activity);
        }
    }

    /// What is kept of a lock: the times that its tokens are held.
    fn lock(&self, task: &'a Task, gathered: &mut Gathered) {
        let taking = |entry: Option<&'a Entry>| entry.and_then(|e| Some((e, self.entry_result(&e.name)?)));
        let entries = || task.entries.iter();
        match task.scheduling {
            TaskScheduling::Semaphore => {
                if let Some((_, wait)) = taking(entries().find(|e| e.semaphore == Some(SemaphoreRole::Wait)))
                    && let Some(holding) = wait.holding_time
                {
                    gathered.measured("semaphore-waiting", holding, wait.holding_time_half_width);
                    gathered.optional("semaphore-waiting-variance", wait.holding_time_variance);
                    gathered.value("semaphore-utilization", wait.throughput * holding);
                }
            }
            TaskScheduling::RwLock => {
                for (role, [waiting, waiting_variance, holding, holding_variance, utilization]) in
                    [(RwLockRole::RLock, READER), (RwLockRole::WLock, WRITER)]
                {
                    let Some((entry, result)) = taking(entries().find(|e| e.rwlock == Some(role))) else { continue };
                    gathered.value(waiting, self.mean_wait(&entry.name));
                    gathered.optional(waiting_variance, self.variance_of_wait(&entry.name));
                    if let Some(held) = result.holding_time {
                        gathered.measured(holding, held, result.holding_time_half_width);
                        gathered.optional(holding_variance, result.holding_time_variance);
                        gathered.value(utilization, result.throughput * held);
                    }
                }
            }
            _ => {}
        }
    }

    /// Mean wait of the requests to an entry, over its callers.
    fn mean_wait(&self, entry: &str) -> f64 {
        self.mean_over_calls(entry, |c| Some(c.waiting.unwrap_or(0.0))).unwrap_or(0.0)
    }

    /// Variance of the waits of the requests to an entry, over its callers, where it is known.
    fn variance_of_wait(&self, entry: &str) -> Option<f64> {
        let mean = self.mean_wait(entry);
        let square = self.mean_over_calls(entry, |c| Some(c.waiting_variance? + c.waiting?.powi(2)))?;
        Some((square - mean * mean).max(0.0))
    }

    /// Mean of a value of the requests to an entry, over its callers; `None` without requests, and where one of them has no value.
    fn mean_over_calls(&self, entry: &str, of: impl Fn(&CallResult) -> Option<f64>) -> Option<f64> {
        let rate = |c: &CallResult| c.mean * connections(c) * self.entry_result(&c.from).map_or(0.0, |e| e.throughput);
        let calls = || self.solution.calls.iter().filter(|c| c.to == entry && rate(c) > 0.0);
        let total: f64 = calls().map(rate).sum();
        let sum = calls().map(|c| Some(rate(c) * of(c)?)).sum::<Option<f64>>()?;
        (total > 0.0).then_some(sum / total)
    }

    fn entry(&mut self, place: &Place<'a>, entry: &'a Entry) {
        let Some(result) = self.entry_result(&entry.name) else { return };
        let reached = visits(place.task, entry);
        let mut gathered = self.gather();
        gathered.measured("utilization", result.utilization, result.utilization_half_width);
        gathered.measured("throughput", result.throughput, result.throughput_half_width);
        gathered.optional("squared-coeff-variation", squared_variation(result));
        gathered.value("proc-utilization", self.entry_host_load(place, entry) + result.throughput * host_time(place, &reached));
        if let Some(wait) = result.open_wait_time {
            gathered.measured("open-wait-time", wait, result.open_wait_time_half_width);
        }
        gathered.optional("loss-probability", result.loss_probability);
        if entry.start_activity.is_some() {
            self.graph_phases(place, &reached, result, &mut gathered);
        }
        self.elements.insert(Observed::Entry(entry.name.clone()), gathered.element);
        for forwarding in &entry.forwarding {
            let call = self.calls.get(entry.name.as_str()).into_iter().flatten();
            let call = call.copied().find(|c| c.kind == ResultCallKind::Forward && c.to == forwarding.dest);
            if let Some(call) = call {
                let mut gathered = self.gather();
                if let Some(waiting) = call.waiting {
                    gathered.measured("waiting", waiting, call.waiting_half_width);
                }
                gathered.optional("waiting-variance", call.waiting_variance);
                let of = Observed::Forwarding { entry: entry.name.clone(), dest: forwarding.dest.clone() };
                self.elements.insert(of, gathered.element);
            }
        }
        for phase in &entry.phases {
            self.phase(place, entry, result, phase.phase, &phase.activity);
        }
    }

    /// The phases of an entry whose work is a graph, which stand on the entry itself.
    fn graph_phases(&self, place: &Place<'a>, reached: &Visits<'_>, result: &EntryResult, gathered: &mut Gathered) {
        let half_widths = result.service_times_half_width.as_deref().unwrap_or_default();
        let variances = result.service_time_variances.as_deref().unwrap_or_default();
        let times =
            || result.service_times.iter().take(3).enumerate().filter_map(|(phase, time)| Some((phase, time.filter(|t| *t > 0.0)?)));
        for (phase, time) in times() {
            gathered.measured(PHASE_SERVICE_TIME[phase], time, half_widths.get(phase).copied().flatten());
        }
        for (phase, _) in times() {
            gathered.optional(PHASE_VARIANCE[phase], variances.get(phase).copied().flatten());
        }
        for (phase, _) in times() {
            gathered.optional(PHASE_PROC_WAITING[phase], self.graph_host_wait(place, reached, phase));
        }
        for (phase, time) in times() {
            gathered.value(PHASE_UTILIZATION[phase], result.throughput * time);
        }
    }

    /// Queueing at the processor of all activities of a phase of a graph, where their times are known.
    fn graph_host_wait(&self, place: &Place<'a>, reached: &Visits<'_>, phase: usize) -> Option<f64> {
        let of = |a: &Activity| {
            let executions = reached.get(&(a.name.as_str(), phase)).copied().unwrap_or(0.0);
            let time = self.solution.activities.get(&place.task.name)?.get(&a.name)?.service_time?;
            Some(executions * self.host_wait(place, a, time, &self.calls_of(place.task, a)))
        };
        place.task.activities.iter().map(of).sum()
    }

    fn phase(&mut self, place: &Place<'a>, entry: &'a Entry, result: &EntryResult, phase: u8, work: &'a Activity) {
        let position = usize::from(phase).saturating_sub(1);
        let time = result.service_times.get(position).copied().unwrap_or(Some(0.0));
        let half_width = result.service_times_half_width.as_ref().and_then(|h| h.get(position)).copied().flatten();
        let calls: Vec<&'a CallResult> = self.calls.get(entry.name.as_str()).into_iter().flatten().copied().collect();
        let calls: Vec<Option<&CallResult>> = work
            .calls
            .iter()
            .map(|call| {
                let is_it = |c: &&&CallResult| c.phase == phase && c.to == call.dest && c.kind == ResultCallKind::from(call.kind);
                calls.iter().find(is_it).copied()
            })
            .collect();
        let mut gathered = self.gather();
        if let Some(time) = time {
            gathered.value("proc-waiting", self.host_wait(place, work, time, &calls));
            gathered.measured("service-time", time, half_width);
        }
        gathered.value("utilization", result.throughput * time.unwrap_or(0.0));
        gathered.optional("service-time-variance", result.service_time_variances.as_ref().and_then(|v| v.get(position)).copied().flatten());
        gathered.exceedance(result.asked_times.iter().filter(|asked| asked.phase == Some(phase)));
        self.elements.insert(Observed::Phase { entry: entry.name.clone(), phase }, gathered.element);
        for (call, found) in work.calls.iter().zip(calls) {
            let Some(found) = found else { continue };
            let of = Observed::PhaseCall { entry: entry.name.clone(), phase, dest: call.dest.clone() };
            let gathered = self.call(call.kind, found);
            self.elements.entry(of).or_insert(gathered.element);
        }
    }

    fn activity(&mut self, place: &Place<'a>, activity: &'a Activity) {
        let task = place.task;
        let rate = self.activity_rate(task, &activity.name);
        let result = self.solution.activities.get(&task.name).and_then(|a| a.get(&activity.name));
        let calls = self.calls_of(task, activity);
        let mut gathered = self.gather();
        if let Some(result) = result {
            if let Some(time) = result.service_time {
                gathered.value("proc-waiting", self.host_wait(place, activity, time, &calls));
                gathered.measured("service-time", time, result.service_time_half_width);
            }
            gathered.value("utilization", rate * result.service_time.unwrap_or(0.0));
            gathered.exceedance(&result.asked_times);
        }
        gathered.measured("throughput", rate, result.and_then(|r| r.throughput_half_width));
        gathered.value("proc-utilization", rate * literal(&activity.host_demand) / place.speed);
        self.elements.insert(Observed::Activity { task: task.name.clone(), activity: activity.name.clone() }, gathered.element);
        for (call, found) in activity.calls.iter().zip(calls) {
            let Some(found) = found else { continue };
            let (task, activity, dest) = (task.name.clone(), activity.name.clone(), call.dest.clone());
            let gathered = self.call(call.kind, found);
            self.elements.entry(Observed::ActivityCall { task, activity, dest }).or_insert(gathered.element);
        }
    }

    /// The results of the calls of an activity: its own, or those of any of the task's entries to the same destination.
    fn calls_of(&self, task: &Task, activity: &Activity) -> Vec<Option<&'a CallResult>> {
        let of_task: Vec<&'a CallResult> = task.entries.iter().filter_map(|e| self.calls.get(e.name.as_str())).flatten().copied().collect();
        let find = |call: &crate::model::Call| {
            let to_it = || of_task.iter().copied().filter(|c| c.to == call.dest && c.kind == ResultCallKind::from(call.kind));
            to_it().find(|c| c.activity.as_ref() == Some(&activity.name)).or_else(|| to_it().find(|c| c.activity.is_none()))
        };
        activity.calls.iter().map(find).collect()
    }

    fn call(&self, kind: CallKind, call: &CallResult) -> Gathered {
        let first_phase = self.entry_result(&call.to).and_then(|e| e.service_times.first()).copied().flatten().unwrap_or(0.0);
        let mut gathered = self.gather();
        if let Some(waiting) = call.waiting {
            let waiting = if kind == CallKind::Async { waiting + first_phase } else { waiting };
            gathered.measured("waiting", waiting, call.waiting_half_width);
        }
        if kind == CallKind::Sync {
            gathered.optional("waiting-variance", call.waiting_variance);
        }
        gathered.optional("loss-probability", call.loss_probability);
        gathered
    }

    /// Queueing at the processor in one execution of `work` that takes `time`.
    fn host_wait(&self, place: &Place<'a>, work: &Activity, time: f64, calls: &[Option<&CallResult>]) -> f64 {
        if place.is_delay {
            return 0.0;
        }
        let blocked = work.calls.iter().zip(calls).filter(|(call, _)| call.kind == CallKind::Sync).map(|(call, found)| {
            let wait = found.and_then(|c| c.waiting).unwrap_or(0.0);
            literal(&call.mean) * found.map_or(1.0, connections) * (wait + self.responses.get(call.dest.as_str()).copied().unwrap_or(0.0))
        });
        let wait = time - literal(&work.think_time) - literal(&work.host_demand) / place.speed - blocked.sum::<f64>();
        if wait > time * ROUNDING { wait } else { 0.0 }
    }
}

/// Copies to which one copy of the caller sends.
fn connections(call: &CallResult) -> f64 {
    call.fan_out.map_or(1.0, f64::from)
}

/// Time at the processor without queueing in one execution of an entry's graph.
fn host_time(place: &Place<'_>, reached: &Visits<'_>) -> f64 {
    let demand = |name: &str| place.task.activities.iter().find(|a| a.name == name).map_or(0.0, |a| literal(&a.host_demand));
    reached.iter().map(|((name, _), executions)| executions * demand(name)).sum::<f64>() / place.speed
}

/// Squared coefficient of variation of the whole service, where the variances of the phases are known.
fn squared_variation(result: &EntryResult) -> Option<f64> {
    let variance: f64 = result.service_time_variances.as_ref()?.iter().flatten().sum();
    let mean: f64 = result.service_times.iter().flatten().sum();
    (mean > 0.0).then_some(variance / (mean * mean))
}
