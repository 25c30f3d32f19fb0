//! Reading a measure from results: the words of [`crate::model::Measure`] as numbers.

use super::{
    ActivityResult, CallResult, ResultCallKind, Solution, SolveError,
    results::{CallValues, EntryValues, Results},
    visits::visits,
};
use crate::model::{Activity, Measure, Model, Scalar, Task};

fn unknown(measure: &Measure, reason: String) -> SolveError {
    SolveError::UnknownMeasure { measure: measure.clone(), reason }
}

/// The value of `measure` in `solution` of `model`.
///
/// # Errors
/// [`SolveError::UnknownMeasure`] when the model has no such element, or the element no such result.
pub fn value(model: &Model, solution: &Solution, measure: &Measure) -> Result<f64, SolveError> {
    evaluate(model, &Results::from_solution(model, solution), measure)
}

/// The value of `measure` in a simulation's `solution` of `model`; `None` of a time that was never observed.
///
/// # Errors
/// As [`value`].
pub(super) fn observed(model: &Model, solution: &Solution, measure: &Measure) -> Result<Option<f64>, SolveError> {
    check(model, measure)?;
    let results = Results::from_solution(model, solution);
    let is_served = |e: usize| results.entries[e].throughput > 0.0;
    let has_response = |e: usize| {
        let mut calls = results.calls.iter().filter(|c| c.to == e).peekable();
        let is_reached = results.entries[e].open_wait_time.is_some() || calls.peek().is_none() || calls.any(|c| c.rate > 0.0);
        is_reached && solution.entries.get(&results.entries[e].name).is_some_and(|r| r.service_times.first().is_some_and(Option::is_some))
    };
    let is_observed = match measure {
        Measure::Throughput(_) | Measure::Utilization(_) => true,
        Measure::ResponseTime(name) => match locate(model, name, measure)? {
            Element::Task(t) if model.tasks[t].scheduling.is_reference() => results.task_throughput[t] > 0.0,
            Element::Task(t) => {
                let mut entries = owners(model).into_iter().enumerate().filter(|(e, owner)| *owner == t && is_served(*e)).peekable();
                entries.peek().is_some() && entries.all(|(e, _)| has_response(e))
            }
            Element::Entry(e) => has_response(e),
            Element::Processor(_) => true,
        },
        Measure::ServiceTime { entry, phase } => match solution.entries.get(entry) {
            None => false,
            Some(result) => {
                result.service_times.get(usize::from(*phase).saturating_sub(1)).map_or(result.throughput > 0.0, Option::is_some)
            }
        },
        Measure::Waiting { from, to, phase } => {
            let is_it = |c: &&CallResult| c.from == *from && c.to == *to && (c.phase == *phase || c.kind == ResultCallKind::Forward);
            solution.calls.iter().find(is_it).is_none_or(|c| c.waiting.is_some())
        }
        Measure::ResidenceTime(_) => {
            (0..model.tasks.len()).any(|t| model.tasks[t].scheduling.is_reference() && results.task_throughput[t] > 0.0)
        }
    };
    if !is_observed {
        return Ok(None);
    }
    evaluate(model, &results, measure).map(Some)
}

/// Checks that `model` has what `measure` names.
///
/// # Errors
/// [`SolveError::UnknownMeasure`].
pub fn check(model: &Model, measure: &Measure) -> Result<(), SolveError> {
    let entry = |name: &str| model.entry(name).map(|_| ()).ok_or_else(|| unknown(measure, format!("the model has no entry \"{name}\"")));
    match measure {
        Measure::Throughput(name) | Measure::Utilization(name) | Measure::ResponseTime(name) | Measure::ResidenceTime(name) => {
            locate(model, name, measure).map(|_| ())
        }
        Measure::ServiceTime { entry: name, .. } => entry(name),
        Measure::Waiting { from, to, phase } => {
            entry(from).and_then(|()| entry(to))?;
            let words = || unknown(measure, format!("\"{from}\" does not call \"{to}\" in phase {phase}, nor forward to it"));
            calls(model, from, to, *phase).then_some(()).ok_or_else(words)
        }
    }
}

/// Whether entry `from` may call `to` in `phase`, or forward to it. In which phase an activity is, its graph says when it is solved.
fn calls(model: &Model, from: &str, to: &str, phase: u8) -> bool {
    let makes = |activity: &Activity| activity.counted_calls().any(|call| call.dest == *to);
    let Some(task) = model.tasks.iter().find(|t| t.entries.iter().any(|e| e.name == *from)) else { return false };
    let of_entry = task
        .entries
        .iter()
        .filter(|e| e.name == *from)
        .any(|e| e.phases.iter().any(|p| p.phase == phase && makes(&p.activity)) || e.forwarding.iter().any(|f| f.dest == *to));
    of_entry || task.activities.iter().any(makes)
}

/// The element that a measure's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Task(usize),
    Processor(usize),
    Entry(usize),
}

fn locate(model: &Model, name: &str, measure: &Measure) -> Result<Element, SolveError> {
    let (kind, bare) = name.split_once(':').unwrap_or(("", name));
    let task = || model.tasks.iter().position(|t| t.name == bare).map(Element::Task);
    let processor = || model.processors.iter().position(|p| p.name == bare).map(Element::Processor);
    let entry = || model.tasks.iter().flat_map(|t| &t.entries).position(|e| e.name == bare).map(Element::Entry);
    let found = match (kind, measure) {
        ("task", _) => task(),
        ("processor", Measure::Utilization(_) | Measure::ResidenceTime(_)) => processor(),
        ("entry", _) => entry(),
        (_, Measure::Utilization(_) | Measure::ResidenceTime(_)) => task().or_else(processor).or_else(entry),
        _ => task().or_else(entry),
    };
    found.ok_or_else(|| unknown(measure, format!("the model has no task, processor or entry \"{bare}\" that has this measure")))
}

/// The value of `measure` in `results`.
pub(super) fn evaluate<S: Scalar>(model: &Model, results: &Results<S>, measure: &Measure) -> Result<S, SolveError> {
    match measure {
        Measure::Throughput(name) => Ok(match locate(model, name, measure)? {
            Element::Task(t) => results.task_throughput[t],
            Element::Entry(e) => results.entries[e].throughput,
            Element::Processor(_) => return Err(unknown(measure, "a processor has no throughput".into())),
        }),
        Measure::Utilization(name) => Ok(match locate(model, name, measure)? {
            Element::Task(t) => results.task_utilization[t],
            Element::Processor(p) => results.processor_utilization[p],
            Element::Entry(e) => {
                let entry = &results.entries[e];
                entry.service_times.iter().fold(S::from(0.0), |sum, &s| sum + s) * entry.throughput
            }
        }),
        Measure::ResponseTime(name) => response_time(model, results, measure, name),
        Measure::ServiceTime { entry, phase } => {
            let e = entry_index(model, measure, entry)?;
            check_reached(results, e, measure)?;
            Ok(results.entries[e].service_times.get(usize::from(*phase) - 1).copied().unwrap_or(S::from(0.0)))
        }
        Measure::Waiting { from, to, phase } => waiting(model, results, measure, (from, to, usize::from(*phase) - 1)),
        Measure::ResidenceTime(name) => residence_time(model, results, measure, name),
    }
}

/// Refuses times of entries that nothing comes to.
fn check_reached<S>(results: &Results<S>, entry: usize, measure: &Measure) -> Result<(), SolveError> {
    let it = &results.entries[entry];
    let nothing_comes = || unknown(measure, format!("nothing comes to entry \"{}\"", it.name));
    it.is_reached.then_some(()).ok_or_else(nothing_comes)
}

fn entry_index(model: &Model, measure: &Measure, name: &str) -> Result<usize, SolveError> {
    model
        .tasks
        .iter()
        .flat_map(|t| &t.entries)
        .position(|e| e.name == name)
        .ok_or_else(|| unknown(measure, format!("the model has no entry \"{name}\"")))
}

fn response_time<S: Scalar>(model: &Model, results: &Results<S>, measure: &Measure, name: &str) -> Result<S, SolveError> {
    let over = |busy: S, rate: S| if rate > 0.0 { busy / rate } else { S::from(0.0) };
    match locate(model, name, measure)? {
        Element::Task(t) if model.tasks[t].scheduling.is_reference() => Ok(over(results.task_utilization[t], results.task_throughput[t])),
        Element::Task(t) => {
            let first: usize = model.tasks[..t].iter().map(|t| t.entries.len()).sum();
            let (mut time, mut rate) = (S::from(0.0), S::from(0.0));
            for e in first..first + model.tasks[t].entries.len() {
                time += entry_response_time(model, results, e) * results.entries[e].throughput;
                rate += results.entries[e].throughput;
            }
            Ok(over(time, rate))
        }
        Element::Entry(e) => {
            check_reached(results, e, measure)?;
            Ok(entry_response_time(model, results, e))
        }
        Element::Processor(_) => Err(unknown(measure, "a processor has no response time".into())),
    }
}

/// Waiting plus phase-1 service of one request, over all who send requests.
fn entry_response_time<S: Scalar>(model: &Model, results: &Results<S>, e: usize) -> S {
    let entry = &results.entries[e];
    let first = entry.service_times.first().copied().unwrap_or(S::from(0.0));
    let (mut waiting, mut rate) = (S::from(0.0), S::from(0.0));
    for call in results.calls.iter().filter(|c| c.to == e) {
        waiting += call.waiting * call.rate;
        rate += call.rate;
    }
    let open = entry.throughput * S::from(f64::from(results.copies_of(owners(model)[e]))) - rate;
    if let Some(time) = entry.open_wait_time
        && open > 0.0
    {
        waiting += (time - first) * open;
        rate += open;
    }
    if rate > 0.0 { first + waiting / rate } else { first }
}

fn waiting<S: Scalar>(model: &Model, results: &Results<S>, measure: &Measure, call: (&str, &str, usize)) -> Result<S, SolveError> {
    let (from, to) = (entry_index(model, measure, call.0)?, entry_index(model, measure, call.1)?);
    check_reached(results, from, measure)?;
    results
        .calls
        .iter()
        .find(|c| c.from == from && c.to == to && (c.phase == call.2 || c.kind == ResultCallKind::Forward))
        .map(|c| c.waiting)
        .ok_or_else(|| unknown(measure, format!("entry \"{}\" does not call \"{}\" in phase {}", call.0, call.1, call.2 + 1)))
}

/// Time of a request to `entry` from its acceptance to the reply, forwarded legs included; of entries in `known` as found before. A leg
/// back to where it came from counts nothing.
fn until_reply(calls: &[CallValues<f64>], first: &impl Fn(usize) -> f64, entry: usize, known: &mut [Option<f64>]) -> f64 {
    if let Some(time) = known[entry] {
        return time;
    }
    known[entry] = Some(0.0);
    let mut time = first(entry);
    for leg in calls.iter().filter(|c| c.from == entry && c.kind == ResultCallKind::Forward) {
        time += leg.mean * f64::from(leg.fan_out) * (leg.waiting + until_reply(calls, first, leg.to, known));
    }
    known[entry] = Some(time);
    time
}

/// Executions a unit of time, of one copy, of an activity on behalf of `entry`: where several entries lead to it, by how often each does,
/// or, where the probabilities of branches are not at hand, by how often each is invoked.
fn executions<'a>(task: &'a Task, solution: &Solution, entry: &str, activity: &'a str) -> Option<f64> {
    let total = solution.activities.get(&task.name)?.get(activity)?.throughput;
    let reaching = task.entries.iter().filter_map(|e| {
        let visits = visits(task, e);
        let of_phases: Vec<f64> = (0..2).filter_map(|phase| visits.get(&(activity, phase)).copied()).collect();
        let rate = solution.entries.get(&e.name).map_or(0.0, |r| r.throughput);
        (!of_phases.is_empty()).then(|| (e.name == entry, rate * of_phases.iter().sum::<f64>(), rate))
    });
    let reaching: Vec<(bool, f64, f64)> = reaching.collect();
    let share = |weight: fn(&(bool, f64, f64)) -> f64| {
        let all: f64 = reaching.iter().map(weight).sum();
        let mine: f64 = reaching.iter().filter(|r| r.0).map(weight).sum();
        (all > 0.0).then(|| mine / all)
    };
    Some(total * share(|r| r.1).or_else(|| share(|r| r.2)).unwrap_or(0.0))
}

/// Executions a unit of time, of one copy, of what makes a call of a solution. A solver that reports the calls of an activity once, whoever
/// leads to it, means all of them.
fn calling<'a>(task: &'a Task, solution: &'a Solution, call: &'a CallResult) -> f64 {
    let of_entry = solution.entries.get(&call.from).map_or(0.0, |r| r.throughput);
    let Some(activity) = call.activity.as_deref() else { return of_entry };
    let same = |c: &&CallResult| c.activity.as_deref() == Some(activity) && c.to == call.to && c.kind == call.kind;
    let same = solution.calls.iter().filter(same).filter(|c| task.entries.iter().any(|e| e.name == c.from));
    let (mine, others): (Vec<_>, Vec<_>) = same.partition(|c| c.from == call.from);
    let rate = if others.is_empty() {
        solution.activities.get(&task.name).and_then(|a| a.get(activity)).map(|a| a.throughput)
    } else {
        executions(task, solution, &call.from, activity)
    };
    // In two phases it is reported twice.
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    rate.map_or(of_entry, |rate| rate / mine.len().max(1) as f64)
}

/// The task of every entry.
fn owners(model: &Model) -> Vec<usize> {
    model.tasks.iter().enumerate().flat_map(|(t, task)| task.entries.iter().map(move |_| t)).collect()
}

/// Time that one cycle of the customers (of all classes, by their shares) spends at all copies of a task or processor.
fn residence_time<S: Scalar>(model: &Model, results: &Results<S>, measure: &Measure, name: &str) -> Result<S, SolveError> {
    let copies = |task: usize| S::from(f64::from(results.copies_of(task)));
    let references = (0..model.tasks.len()).filter(|&t| model.tasks[t].scheduling.is_reference());
    let cycles = references.fold(S::from(0.0), |sum, t| sum + results.task_throughput[t] * copies(t));
    if cycles <= 0.0 {
        return Err(unknown(measure, "there are no customers whose cycle it could be a part of".into()));
    }
    let owner = owners(model);
    let mut time = S::from(0.0);
    match locate(model, name, measure)? {
        Element::Task(t) => {
            for call in results.calls.iter().filter(|c| owner[c.to] == t) {
                let served = results.entries[call.to].service_times.first().copied().unwrap_or(S::from(0.0));
                time += call.rate * (call.waiting + served);
            }
        }
        Element::Processor(p) => {
            for (entry, &t) in results.entries.iter().zip(&owner).filter(|(_, t)| model.tasks[**t].processor == model.processors[p].name) {
                time += copies(t) * entry.throughput * entry.host_times.iter().fold(S::from(0.0), |sum, &h| sum + h);
            }
        }
        Element::Entry(e) => {
            for call in results.calls.iter().filter(|c| c.to == e) {
                time += call.rate * (call.waiting + results.entries[e].service_times.first().copied().unwrap_or(S::from(0.0)));
            }
        }
    }
    Ok(time / cycles)
}

impl Results<f64> {
    /// The results behind a plain solution (a simulation's, say). What a solution does not hold, time at processors, is
    /// what remains of service times when the calls are taken off.
    fn from_solution(model: &Model, solution: &Solution) -> Self {
        let names: Vec<&str> = model.tasks.iter().flat_map(|t| &t.entries).map(|e| e.name.as_str()).collect();
        let index = |name: &str| names.iter().position(|n| *n == name);
        let entry = |name: &str| solution.entries.get(name).cloned().unwrap_or_default();
        let owner = owners(model);
        let copies: Vec<u32> = model.tasks.iter().map(|t| solution.tasks.get(&t.name).and_then(|r| r.copies).unwrap_or(1)).collect();
        let calls: Vec<CallValues<f64>> = solution
            .calls
            .iter()
            .filter_map(|c| {
                let fan_out = c.fan_out.unwrap_or(1);
                let (from, to) = (index(&c.from)?, index(&c.to)?);
                let rate = calling(&model.tasks[owner[from]], solution, c) * c.mean * f64::from(fan_out) * f64::from(copies[owner[from]]);
                // Of what was never observed there is nothing to weigh.
                let (rate, waiting) = c.waiting.map_or((0.0, 0.0), |waiting| (rate, waiting));
                let phase = usize::from(c.phase).saturating_sub(1);
                let (kind, mean, activities) = (c.kind, c.mean, Vec::new());
                Some(CallValues { from, to, phase, kind, fan_out, mean, activities, waiting, rate })
            })
            .collect();
        let first = |e: usize| entry(names[e]).service_times.first().copied().flatten().unwrap_or(0.0);
        let mut known = vec![None; names.len()];
        let entries = names
            .iter()
            .enumerate()
            .map(|(e, name)| {
                let it = entry(name);
                let task = &model.tasks[owner[e]];
                // Strands of a graph may run side by side: the time of each of its activities counts.
                let graph = task.entries.iter().find(|entry| entry.name == *name && entry.start_activity.is_some());
                let mut time: f64 = match (graph, solution.activities.get(&task.name)) {
                    (Some(entry), Some(results)) if it.throughput > 0.0 => {
                        let time = |(name, a): (&'_ String, &ActivityResult)| {
                            executions(task, solution, &entry.name, name).unwrap_or(0.0) * a.service_time.unwrap_or(0.0)
                        };
                        results.iter().map(time).sum::<f64>() / it.throughput
                    }
                    _ => it.service_times.iter().flatten().sum(),
                };
                let copies = f64::from(copies[owner[e]]);
                for call in calls.iter().filter(|c| c.from == e && c.kind == ResultCallKind::Sync && it.throughput > 0.0) {
                    time -= call.rate / copies / it.throughput * (call.waiting + until_reply(&calls, &first, call.to, &mut known));
                }
                EntryValues {
                    name: (*name).to_owned(),
                    throughput: it.throughput,
                    service_times: it.service_times.iter().map(|s| s.unwrap_or(0.0)).collect(),
                    host_times: vec![time],
                    open_wait_time: it.open_wait_time,
                    is_reached: it.throughput > 0.0 || it.service_times.iter().any(Option::is_some),
                }
            })
            .collect();
        Self {
            solver: "",
            converged: solution.converged,
            iterations: solution.iterations,
            residual: solution.residual,
            diagnostics: Vec::new(),
            processor_utilization: model
                .processors
                .iter()
                .map(|p| solution.processors.get(&p.name).map_or(0.0, |r| r.utilization))
                .collect(),
            task_throughput: model.tasks.iter().map(|t| solution.tasks.get(&t.name).map_or(0.0, |r| r.throughput)).collect(),
            task_utilization: model.tasks.iter().map(|t| solution.tasks.get(&t.name).map_or(0.0, |r| r.utilization)).collect(),
            entries,
            calls,
            activities: Vec::new(),
            joins: Vec::new(),
            copies: Some(copies),
        }
    }
}
