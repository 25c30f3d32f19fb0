//! Replicated models: every copy laid out as an element of its own, and results put together per copy ([`fold`]).
//!
//! A task of `R` copies on a processor of `P` copies runs copy `r` on processor copy `ceil(r P / R)`. Copy `s` of a caller
//! calls copies `((s-1) O + k-1 mod R) + 1`, `k = 1..O`, of a task of `R` copies to which its fan-out is `O`, each with the
//! full mean number of calls.

mod fold;
mod rotation;

use std::collections::HashMap;

use super::{Solution, SolveError, results::several};
use crate::model::{Activity, Bindings, Call, Fan, Forwarding, Model, Number, Processor, Scalar, Task};

/// Most copies of one element, and most connections of one.
const COUNT_LIMIT: f64 = 1e6;

/// A model with its copies.
pub(super) struct Copies {
    /// The model in which every copy is an element.
    pub(super) all: Model,
    /// The model with one copy of each element, in whose terms results are given.
    pub(super) single: Model,
    /// Copies of every processor.
    pub(super) processors: Vec<u32>,
    /// Copies of every task.
    pub(super) tasks: Vec<u32>,
    /// Copies of a task that one copy of another calls: by caller and called task.
    pub(super) fans: HashMap<(usize, usize), u32>,
}

/// Whether anything of `model` is said to have copies.
pub(super) fn is_replicated(model: &Model) -> bool {
    let is_one = |number: &Number| number.is(1.0);
    !model.processors.iter().all(|p| is_one(&p.replication))
        || model.tasks.iter().any(|t| !is_one(&t.replication) || !t.fan_in.is_empty() || !t.fan_out.is_empty())
}

/// The name of copy number `copy`, from 0.
fn copy_name(name: &str, copy: u32) -> String {
    if copy == 0 { name.to_owned() } else { format!("{name} (copy {})", copy + 1) }
}

fn unusable(element: impl Into<String>, reason: impl Into<String>) -> SolveError {
    SolveError::Unusable { element: element.into(), reason: reason.into() }
}

/// Lays out the copies of `model` for `solver`, which takes `most` processors and tasks with all copies.
///
/// # Errors
/// [`SolveError::Unusable`] for numbers of copies and fans that do not fit, [`SolveError::Unsupported`] for too many.
pub(super) fn lay_out<S: Scalar>(model: &Model, values: &Bindings<S>, (solver, most): (&'static str, usize)) -> Result<Copies, SolveError> {
    let one = Number::Value(1.0);
    let mut single = model.clone();
    single.processors.iter_mut().for_each(|p| p.replication = one.clone());
    for task in &mut single.tasks {
        task.replication = one.clone();
        (task.fan_out, task.fan_in) = (Vec::new(), Vec::new());
    }
    let copies = |number: &Number, kind: &str, name: &str| whole(values, number, &format!("{kind} \"{name}\""), "replication");
    let processors = model.processors.iter().map(|p| copies(&p.replication, "processor", &p.name)).collect::<Result<Vec<_>, _>>()?;
    let tasks = model.tasks.iter().map(|t| copies(&t.replication, "task", &t.name)).collect::<Result<Vec<_>, _>>()?;
    if processors.iter().chain(&tasks).map(|&n| n as usize).sum::<usize>() > most {
        let element = format!("the model has more than {most} processors and tasks with all of them");
        return Err(SolveError::Unsupported { solver, construct: "so many copies", element });
    }
    let all = Model { processors: Vec::new(), tasks: Vec::new(), ..single.clone() };
    let mut laid = Layout { model, values, copies: Copies { all, single, processors, tasks, fans: HashMap::new() } };
    laid.add_processors();
    for t in 0..model.tasks.len() {
        laid.add_task(t)?;
    }
    Ok(laid.copies)
}

/// An integer of at least 1.
fn whole<S: Scalar>(values: &Bindings<S>, number: &Number, element: &str, what: &str) -> Result<u32, SolveError> {
    let value = number.eval(values)?.value();
    if !value.is_finite() || value.fract() != 0.0 || !(1.0..=COUNT_LIMIT).contains(&value) {
        return Err(unusable(element, format!("its {what} is {value}, expected an integer from 1 to {COUNT_LIMIT}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    Ok(value as u32)
}

impl Copies {
    /// Whether anything has more than one copy.
    pub(super) fn has_several(&self) -> bool {
        self.processors.iter().chain(&self.tasks).any(|&n| n > 1)
    }

    /// Says in a solution of [`Copies::single`] how many copies there are.
    pub(super) fn annotate(&self, solution: &mut Solution) {
        for (task, &copies) in self.single.tasks.iter().zip(&self.tasks) {
            if let Some(result) = solution.tasks.get_mut(&task.name) {
                result.copies = several(copies);
            }
        }
        let owner = |name: &str| self.single.tasks.iter().position(|t| t.entries.iter().any(|e| e.name == name));
        for call in &mut solution.calls {
            if let (Some(caller), Some(called)) = (owner(&call.from), owner(&call.to)) {
                call.fan_out = several(self.fan_out(caller, called));
            }
        }
    }

    /// Copies of task `called` that a copy of task `caller` calls.
    pub(super) fn fan_out(&self, caller: usize, called: usize) -> u32 {
        self.fans.get(&(caller, called)).copied().unwrap_or(1)
    }
}

struct Layout<'a, S> {
    model: &'a Model,
    values: &'a Bindings<S>,
    copies: Copies,
}

impl<S: Scalar> Layout<'_, S> {
    fn add_processors(&mut self) {
        let Copies { all, single, processors, .. } = &mut self.copies;
        for (processor, &copies) in single.processors.iter().zip(&*processors) {
            for copy in 0..copies {
                all.processors.push(Processor { name: copy_name(&processor.name, copy), ..processor.clone() });
            }
        }
    }

    fn add_task(&mut self, t: usize) -> Result<(), SolveError> {
        let task = self.copies.single.tasks[t].clone();
        let p = self.model.processors.iter().position(|p| p.name == task.processor);
        let (copies, hosts) = (self.copies.tasks[t], p.map_or(1, |p| self.copies.processors[p]));
        if !copies.is_multiple_of(hosts) {
            let reason = format!("its {copies} copies are not a multiple of the {hosts} copies of its processor");
            return Err(unusable(format!("task \"{}\"", task.name), reason));
        }
        for copy in 0..copies {
            let mut laid = Task { name: copy_name(&task.name, copy), ..task.clone() };
            laid.processor = copy_name(&task.processor, copy / (copies / hosts));
            for entry in &mut laid.entries {
                entry.name = copy_name(&entry.name, copy);
                for phase in &mut entry.phases {
                    self.spread(t, copy, &mut phase.activity)?;
                }
                let mut forwarding = Vec::new();
                for f in &entry.forwarding {
                    let dests = self.destinations(t, copy, &f.dest)?;
                    forwarding.extend(dests.into_iter().map(|dest| Forwarding { dest, ..f.clone() }));
                }
                entry.forwarding = forwarding;
            }
            for activity in &mut laid.activities {
                self.spread(t, copy, activity)?;
            }
            laid.replies.iter_mut().for_each(|reply| reply.entry = copy_name(&reply.entry, copy));
            self.copies.all.tasks.push(laid);
        }
        Ok(())
    }

    /// Lets the calls of an activity of copy `copy` of task `t` go to the copies that they reach.
    fn spread(&mut self, t: usize, copy: u32, activity: &mut Activity) -> Result<(), SolveError> {
        let mut calls = Vec::new();
        for call in &activity.calls {
            let dests = self.destinations(t, copy, &call.dest)?;
            calls.extend(dests.into_iter().map(|dest| Call { dest, ..call.clone() }));
        }
        activity.calls = calls;
        Ok(())
    }

    /// The copies of entry `name` that copy `copy` of task `t` calls.
    fn destinations(&mut self, t: usize, copy: u32, name: &str) -> Result<Vec<String>, SolveError> {
        let d = self.model.tasks.iter().position(|task| task.entries.iter().any(|e| e.name == name));
        let Some(d) = d else { return Ok(vec![name.to_owned()]) };
        let (task, called) = (&self.model.tasks[t], &self.model.tasks[d]);
        let element = format!("task \"{}\"", task.name);
        let fan = |list: &[Fan], other: &str, what: &str| {
            list.iter().find(|f| f.task == other).map_or(Ok(1), |f| whole(self.values, &f.value, &element, what))
        };
        let (out, into) = (fan(&task.fan_out, &called.name, "fan-out")?, fan(&called.fan_in, &task.name, "fan-in")?);
        let (from, to) = (self.copies.tasks[t], self.copies.tasks[d]);
        if u64::from(from) * u64::from(out) != u64::from(to) * u64::from(into) {
            let reason = format!(
                "its {from} copies with fan-out {out} make another number of connections than the {to} copies of task \"{}\" with fan-in {into}",
                called.name
            );
            return Err(unusable(element, reason));
        }
        self.copies.fans.insert((t, d), out);
        Ok((0..out).map(|k| copy_name(name, (copy * out + k) % to)).collect())
    }
}
