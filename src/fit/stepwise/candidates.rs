//! Additions to a model, made mechanically.
//!
//! | addition | on the model | parameter |
//! |---|---|---|
//! | a pure delay | think time of the entry's first phase, off its processor; at customers, a call to an infinite server | mean delay, time |
//! | one more queue | a new processor and a task of one thread on it, called once by the entry's first phase | its demand, time |
//! | a second phase | a share of the first phase's demand moves behind the reply | the share, 0 to 1 |
//! | one more thread, one more server | a literal number of a task or processor, raised by one | none |
//!
//! At 0 (or without the one more) each is the model as it was.

use serde::{Deserialize, Serialize};

use crate::{
    fit::problem::{Estimated, Problem},
    model::{
        Activity, Call, CallKind, Entry, Model, Number, Parameter, ParameterValue, Phase, Processor, ProcessorScheduling, Task,
        TaskScheduling,
    },
};

/// What is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdditionKind {
    /// A pure delay.
    Delay,
    /// A queue.
    Queue,
    /// A second phase.
    SecondPhase,
    /// A thread of a task.
    Thread,
    /// A server of a processor.
    Server,
}

/// A problem with something added to its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Addition {
    /// What is added.
    pub kind: AdditionKind,
    /// The same in words.
    pub description: String,
    /// The new parameter; `None` where a whole number was raised by one.
    pub parameter: Option<String>,
    /// Unit of the new parameter, in words.
    pub unit: &'static str,
    /// The problem with the addition; the new parameter comes last and starts at 0.
    pub problem: Problem,
}

const TIME: &str = "the model's unit of time";
const SHARE: &str = "a share, 0 to 1";
const WHOLE: &str = "one more";

/// Everything that can be added to `problem`, of the kinds in `kinds`.
pub fn additions(problem: &Problem, kinds: &[AdditionKind]) -> Vec<Addition> {
    let mut found = Vec::new();
    for (t, task) in problem.model.tasks.iter().enumerate() {
        for (e, entry) in task.entries.iter().enumerate() {
            let Some(p) = entry.phases.iter().position(|p| p.phase == 1) else { continue };
            let place = Place { problem, task, entry, at: (t, e, p) };
            let of = [place.delay(), place.queue(), place.second_phase()];
            found.extend(of.into_iter().flatten());
        }
        found.extend(thread(problem, t));
    }
    found.extend((0..problem.model.processors.len()).filter_map(|p| server(problem, p)));
    found.retain(|a| kinds.contains(&a.kind));
    found
}

/// The first phase of an entry.
struct Place<'a> {
    problem: &'a Problem,
    task: &'a Task,
    entry: &'a Entry,
    at: (usize, usize, usize),
}

impl Place<'_> {
    fn activity<'m>(&self, model: &'m mut Model) -> &'m mut Activity {
        let (t, e, p) = self.at;
        &mut model.tasks[t].entries[e].phases[p].activity
    }

    fn added(&self, kind: AdditionKind, parameter: &str, max: Option<f64>, description: String, model: Model) -> Addition {
        let mut problem = Problem { model, ..self.problem.clone() };
        problem.estimate.push(Estimated { start: Some(0.0), min: Some(0.0), max, ..Estimated::new(parameter) });
        let unit = if kind == AdditionKind::SecondPhase { SHARE } else { TIME };
        Addition { kind, description, parameter: Some(parameter.to_owned()), unit, problem }
    }

    fn delay(&self) -> Option<Addition> {
        let name = free_name(&self.problem.model, &format!("delay_{}", self.entry.name));
        let mut model = self.problem.model.clone();
        let description = if self.task.scheduling.is_reference() {
            self.call_new(&mut model, "delay", &name, ProcessorScheduling::Inf);
            format!("a pure delay in every cycle of {} (entry {}), for what was left out of its response", self.task.name, self.entry.name)
        } else {
            let activity = self.activity(&mut model);
            if !activity.think_time.is(0.0) {
                return None;
            }
            activity.think_time = Number::Parameter(name.clone());
            format!(
                "a pure delay in the service of entry {} (task {}), which holds its thread but not its processor",
                self.entry.name, self.task.name
            )
        };
        Some(self.added(AdditionKind::Delay, &name, None, description, model))
    }

    fn queue(&self) -> Option<Addition> {
        let name = free_name(&self.problem.model, &format!("queue_{}", self.entry.name));
        let mut model = self.problem.model.clone();
        self.call_new(&mut model, "queue", &name, ProcessorScheduling::Fcfs);
        let description = format!("one more queue, visited once by every request to entry {} (task {})", self.entry.name, self.task.name);
        Some(self.added(AdditionKind::Queue, &name, None, description, model))
    }

    /// Adds a task of demand `$parameter` on a processor of its own, called once.
    fn call_new(&self, model: &mut Model, what: &str, parameter: &str, scheduling: ProcessorScheduling) {
        let name = new_element(model, &format!("{what}_{}", self.entry.name));
        let mut processor = Processor::new(&name);
        processor.scheduling = scheduling;
        let mut task = Task::new(&name, &name);
        if scheduling == ProcessorScheduling::Inf {
            task.scheduling = TaskScheduling::Inf;
        }
        let mut entry = Entry::new(format!("{name}_entry"));
        let work = Activity::new(format!("{name}_entry_ph1"), Number::Parameter(parameter.to_owned()));
        entry.phases.push(Phase { phase: 1, activity: work });
        let call = Call { kind: CallKind::Sync, dest: entry.name.clone(), mean: Number::Value(1.0) };
        self.activity(model).calls.push(call);
        task.entries.push(entry);
        model.processors.push(processor);
        model.tasks.push(task);
    }

    fn second_phase(&self) -> Option<Addition> {
        let replies =
            !self.task.scheduling.is_reference() && self.entry.phase(2).is_none() && is_called(&self.problem.model, &self.entry.name);
        let demand = self.entry.phase(1)?.host_demand.clone();
        if !replies || demand.literal().is_some_and(|d| d <= 0.0) {
            return None;
        }
        let share = free_name(&self.problem.model, &format!("after_{}", self.entry.name));
        let mut model = self.problem.model.clone();
        let (before, after) = (format!("{share}_ph1"), format!("{share}_ph2"));
        let text = match &demand {
            Number::Value(value) => value.to_string(),
            Number::Parameter(name) => format!("${name}"),
        };
        let define = |name: &str, expression: String| Parameter { name: name.to_owned(), value: ParameterValue::Expression(expression) };
        model.parameters.push(define(&before, format!("{text} * (1 - ${share})")));
        model.parameters.push(define(&after, format!("{text} * ${share}")));
        self.activity(&mut model).host_demand = Number::Parameter(before);
        let (t, e, p) = self.at;
        let second = Activity::new(format!("{}_ph2", self.entry.name), Number::Parameter(after));
        model.tasks[t].entries[e].phases.insert(p + 1, Phase { phase: 2, activity: second });
        let description =
            format!("a second phase of entry {} (task {}): a share of its demand comes after the reply", self.entry.name, self.task.name);
        let mut addition = self.added(AdditionKind::SecondPhase, &share, Some(1.0), description, model);
        // Inside an expression a demand loses the bound that its place in the model gave it.
        for estimated in addition.problem.estimate.iter_mut().filter(|e| demand.parameter() == Some(&e.name)) {
            estimated.min = Some(estimated.min.unwrap_or(0.0).max(0.0));
        }
        Some(addition)
    }
}

fn thread(problem: &Problem, t: usize) -> Option<Addition> {
    let task = &problem.model.tasks[t];
    let queues = !task.scheduling.is_reference() && !task.scheduling.is_lock() && task.scheduling != TaskScheduling::Inf;
    let (count, more) = one_more(&task.multiplicity).filter(|_| queues)?;
    let mut changed = problem.clone();
    changed.model.tasks[t].multiplicity = more;
    let description = format!("one more thread of task {}: {} instead of {count}", task.name, count + 1.0);
    Some(Addition { kind: AdditionKind::Thread, description, parameter: None, unit: WHOLE, problem: changed })
}

fn server(problem: &Problem, p: usize) -> Option<Addition> {
    let processor = &problem.model.processors[p];
    let (count, more) = one_more(&processor.multiplicity).filter(|_| processor.scheduling != ProcessorScheduling::Inf)?;
    let mut changed = problem.clone();
    changed.model.processors[p].multiplicity = more;
    let description = format!("one more server of processor {}: {} instead of {count}", processor.name, count + 1.0);
    Some(Addition { kind: AdditionKind::Server, description, parameter: None, unit: WHOLE, problem: changed })
}

fn one_more(number: &Number) -> Option<(f64, Number)> {
    let count = number.literal().filter(|v| v.is_finite())?;
    Some((count, Number::Value(count + 1.0)))
}

fn is_called(model: &Model, entry: &str) -> bool {
    let phases = model.tasks.iter().flat_map(|t| t.entries.iter().flat_map(|e| e.phases.iter().map(|p| &p.activity)).chain(&t.activities));
    let mut calls = phases.flat_map(|a| &a.calls);
    calls.any(|c| c.dest == entry && c.kind == CallKind::Sync)
}

/// `wanted` with what a parameter's name may not hold replaced, and a number where it is taken.
fn free_name(model: &Model, wanted: &str) -> String {
    let plain: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let uses = crate::fit::problem::parameter_uses::parameter_uses(model);
    let is_free = |name: &String| !uses.contains_key(name) && !model.parameters.iter().any(|p| p.name == *name);
    numbered(&plain, is_free)
}

/// `wanted`, or `wanted_2` …, as no processor, task or entry is called.
fn new_element(model: &Model, wanted: &str) -> String {
    let is_free = |name: &String| {
        let entry = format!("{name}_entry");
        model.task(name).is_none() && model.processor(name).is_none() && model.entry(&entry).is_none()
    };
    numbered(wanted, is_free)
}

fn numbered(wanted: &str, is_free: impl Fn(&String) -> bool) -> String {
    let names = std::iter::once(wanted.to_owned()).chain((2_u32..).map(|k| format!("{wanted}_{k}")));
    names.into_iter().find(is_free).unwrap_or_else(|| wanted.to_owned())
}
