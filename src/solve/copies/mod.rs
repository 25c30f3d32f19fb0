//! Replicated models: every copy laid out as an element of its own, and results put together per copy ([`fold`]).
//!
//! A task of `R` copies on a processor of `P` copies runs copy `r` on processor copy `ceil(r P / R)`. Copy `s` of a caller
//! calls copies `((s-1) O + k-1 mod R) + 1`, `k = 1..O`, of a task of `R` copies to which its fan-out is `O`, each with the
//! full mean number of calls. Where `O > R`, one copy is reached several times, by one call of the sum.

mod fold;
mod rotation;

use std::collections::HashMap;

use super::{
    Solution, SolveError,
    bind::{self, unusable},
    results::several,
};
use crate::model::{Activity, Bindings, Call, Fan, Forwarding, Model, Number, Processor, Scalar, Task};

/// Most connections of all copies.
const MOST_CONNECTIONS: f64 = 2e5;

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
    /// What stands before the number of a copy in its name, so that no name of the model is that of a copy.
    word: String,
}

/// Whether anything of `model` is said to have copies.
pub(super) fn is_replicated(model: &Model) -> bool {
    let is_one = |number: &Number| number.is(1.0);
    !model.processors.iter().all(|p| is_one(&p.replication))
        || model.tasks.iter().any(|t| !is_one(&t.replication) || !t.fan_in.is_empty() || !t.fan_out.is_empty())
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
    let word = free_word(model, "copy");
    let mut laid = Layout { model, values, copies: Copies { all, single, processors, tasks, fans: HashMap::new(), word } };
    if laid.connect()? > MOST_CONNECTIONS {
        let element = format!("the model has more than {MOST_CONNECTIONS} connections between them");
        return Err(SolveError::Unsupported { solver, construct: "so many copies", element });
    }
    laid.add_processors();
    for t in 0..model.tasks.len() {
        laid.add_task(t)?;
    }
    Ok(laid.copies)
}

/// The entries to which a task sends or forwards requests, as often as it says so.
fn destinations(task: &Task) -> impl Iterator<Item = &String> {
    let phases = task.entries.iter().flat_map(|e| &e.phases).map(|p| &p.activity);
    let calls = phases.chain(&task.activities).flat_map(|a| &a.calls).map(|c| &c.dest);
    calls.chain(task.entries.iter().flat_map(|e| &e.forwarding).map(|f| &f.dest))
}

/// Whether copies of a caller and of the `called` task, each with its fan to the other, make the same connections.
///
/// # Errors
/// [`SolveError::Unusable`] that names the `caller`.
pub(super) fn check_connections(caller: &str, called: &str, (from, out): (u32, u32), (to, into): (u32, u32)) -> Result<(), SolveError> {
    if u64::from(from) * u64::from(out) == u64::from(to) * u64::from(into) {
        return Ok(());
    }
    let reason = format!(
        "its {from} copies with fan-out {out} make another number of connections than the {to} copies of task \"{called}\" with fan-in {into}"
    );
    Err(unusable(format!("task \"{caller}\""), reason))
}

/// The word, with stars where it has to be told apart, with which no name of the model ends in `(word ...)`.
pub(super) fn free_word(model: &Model, word: &str) -> String {
    let entries = model.tasks.iter().flat_map(|t| &t.entries).map(|e| &e.name);
    let activities = model.tasks.iter().flat_map(|t| &t.activities).map(|it| &it.name);
    let others = model.processors.iter().map(|p| &p.name).chain(model.tasks.iter().map(|t| &t.name));
    let names: Vec<&String> = entries.chain(activities).chain(others).collect();
    let mut word = word.to_owned();
    while names.iter().any(|name| name.contains(&format!(" ({word} "))) {
        word.push('*');
    }
    word
}

/// An integer of at least 1.
fn whole<S: Scalar>(values: &Bindings<S>, number: &Number, element: &str, what: &str) -> Result<u32, SolveError> {
    bind::whole(number.eval(values)?.value(), element, what, 1.0)
}

impl Copies {
    /// Whether anything has more than one copy, or is reached more than once.
    pub(super) fn has_several(&self) -> bool {
        self.processors.iter().chain(&self.tasks).chain(self.fans.values()).any(|&n| n > 1)
    }

    /// Says in a solution of [`Copies::single`] how many copies there are.
    pub(super) fn annotate(&self, solution: &mut Solution) {
        for (task, &copies) in self.single.tasks.iter().zip(&self.tasks) {
            if let Some(result) = solution.tasks.get_mut(&task.name) {
                result.copies = several(copies);
            }
        }
        for call in &mut solution.calls {
            if let (Some(caller), Some(called)) = (self.owner(&call.from), self.owner(&call.to)) {
                call.fan_out = several(self.fan_out(caller, called));
            }
        }
    }

    /// The name of copy number `copy`, from 0.
    fn name(&self, name: &str, copy: u32) -> String {
        if copy == 0 { name.to_owned() } else { format!("{name} ({} {})", self.word, copy + 1) }
    }

    /// Pairs of streams that can meet, `Σ n²` over the queues of all copies, of `n` streams each: what a sweep costs.
    pub(super) fn meetings(&self) -> f64 {
        let mut streams = vec![0.0; self.tasks.len()];
        for (t, task) in self.single.tasks.iter().enumerate() {
            for dest in destinations(task) {
                let Some(d) = self.owner(dest) else { continue };
                let connections = f64::from(self.tasks[t]) * f64::from(self.fan_out(t, d).min(self.tasks[d]));
                streams[d] += connections / f64::from(self.tasks[d]);
            }
        }
        let of_tasks = streams.iter().zip(&self.tasks).map(|(n, &copies)| f64::from(copies) * n * n);
        let hosted = self.single.processors.iter().zip(&self.processors).map(|(processor, &copies)| {
            let tasks = self.single.tasks.iter().zip(&self.tasks).filter(|(t, _)| t.processor == processor.name);
            let pieces = |t: &Task| t.activities.len() + t.entries.iter().map(|e| e.phases.len()).sum::<usize>();
            #[expect(clippy::cast_precision_loss, reason = "a count of phases")]
            let n: f64 = tasks.map(|(t, &n)| f64::from(n) * pieces(t) as f64).sum::<f64>() / f64::from(copies);
            f64::from(copies) * n * n
        });
        of_tasks.chain(hosted).sum()
    }

    /// The task of an entry.
    fn owner(&self, entry: &str) -> Option<usize> {
        self.single.tasks.iter().position(|t| t.entries.iter().any(|e| e.name == entry))
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
        for p in 0..self.copies.processors.len() {
            let processor = self.copies.single.processors[p].clone();
            for copy in 0..self.copies.processors[p] {
                let name = self.copies.name(&processor.name, copy);
                self.copies.all.processors.push(Processor { name, ..processor.clone() });
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
            let mut laid = Task { name: self.copies.name(&task.name, copy), ..task.clone() };
            laid.processor = self.copies.name(&task.processor, copy / (copies / hosts));
            for entry in &mut laid.entries {
                entry.name = self.copies.name(&entry.name, copy);
                for phase in &mut entry.phases {
                    self.spread(t, copy, &mut phase.activity)?;
                }
                let mut forwarding = Vec::new();
                for f in &entry.forwarding {
                    for (dest, times) in self.destinations(t, copy, &f.dest) {
                        forwarding.push(Forwarding { dest, probability: self.multiple(&f.probability, times)? });
                    }
                }
                self.check_forwarding(&entry.name, &forwarding)?;
                entry.forwarding = forwarding;
            }
            for activity in &mut laid.activities {
                self.spread(t, copy, activity)?;
            }
            laid.replies.iter_mut().for_each(|reply| reply.entry = self.copies.name(&reply.entry, copy));
            self.copies.all.tasks.push(laid);
        }
        Ok(())
    }

    /// Lets the calls of an activity of copy `copy` of task `t` go to the copies that they reach.
    fn spread(&mut self, t: usize, copy: u32, activity: &mut Activity) -> Result<(), SolveError> {
        let mut calls = Vec::new();
        for call in &activity.calls {
            for (dest, times) in self.destinations(t, copy, &call.dest) {
                calls.push(Call { dest, mean: self.multiple(&call.mean, times)?, ..call.clone() });
            }
        }
        activity.calls = calls;
        Ok(())
    }

    /// `times` a number; the number itself, a parameter or not, for one.
    fn multiple(&self, number: &Number, times: u32) -> Result<Number, SolveError> {
        if times == 1 {
            return Ok(number.clone());
        }
        match number {
            Number::Value(value) => Ok(Number::Value(value * f64::from(times))),
            other => {
                let value = other.eval(self.values)?;
                if value.derivatives().iter().any(|&d| d != 0.0) {
                    return Err(unusable(
                        format!("{other}"),
                        "its derivative is asked for where a fan-out is larger than the number of copies",
                    ));
                }
                Ok(Number::Value(value.value() * f64::from(times)))
            }
        }
    }

    /// What is forwarded to all copies is no more than one request.
    fn check_forwarding(&self, entry: &str, forwarding: &[Forwarding]) -> Result<(), SolveError> {
        let mut sum = 0.0;
        for f in forwarding {
            sum += f.probability.eval(self.values)?.value();
        }
        let reason = || format!("its forwarding probabilities to all copies sum to {sum}, expected at most 1");
        if sum > 1.0 + 1e-9 { Err(unusable(format!("entry \"{entry}\""), reason())) } else { Ok(()) }
    }

    /// Notes the fans of all calls; the number of connections.
    fn connect(&mut self) -> Result<f64, SolveError> {
        let mut connections = 0.0;
        for (t, task) in self.model.tasks.iter().enumerate() {
            for dest in destinations(task) {
                let Some(d) = self.copies.owner(dest) else { continue };
                let out = self.fan_out(t, d)?;
                self.copies.fans.insert((t, d), out);
                connections += f64::from(self.copies.tasks[t]) * f64::from(out.min(self.copies.tasks[d]));
            }
        }
        Ok(connections)
    }

    /// The fan-out of task `t` to task `d`, which fits the fan-in there.
    fn fan_out(&self, t: usize, d: usize) -> Result<u32, SolveError> {
        let (task, called) = (&self.model.tasks[t], &self.model.tasks[d]);
        let element = format!("task \"{}\"", task.name);
        let fan = |list: &[Fan], other: &str, what: &str| {
            list.iter().find(|f| f.task == other).map_or(Ok(1), |f| whole(self.values, &f.value, &element, what))
        };
        let (out, into) = (fan(&task.fan_out, &called.name, "fan-out")?, fan(&called.fan_in, &task.name, "fan-in")?);
        let (from, to) = (self.copies.tasks[t], self.copies.tasks[d]);
        check_connections(&task.name, &called.name, (from, out), (to, into))?;
        Ok(out)
    }

    /// The copies of entry `name` that copy `copy` of task `t` calls, each with how often it is one of them.
    fn destinations(&self, t: usize, copy: u32, name: &str) -> Vec<(String, u32)> {
        let Some(d) = self.copies.owner(name) else { return vec![(name.to_owned(), 1)] };
        let (out, to) = (self.copies.fan_out(t, d), self.copies.tasks[d]);
        let first = u64::from(copy) * u64::from(out) % u64::from(to);
        let reached = (0..out.min(to)).map(|k| {
            let place = u32::try_from((first + u64::from(k)) % u64::from(to)).unwrap_or(0);
            (self.copies.name(name, place), out / to + u32::from(k < out % to))
        });
        reached.collect()
    }
}
