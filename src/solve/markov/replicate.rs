//! Replicated models: every copy laid out as an element of its own, and the results put together per copy.
//!
//! A task of `R` copies on a processor of `P` copies runs copy `r` on processor copy `ceil(r P / R)`. Copy `s` of a caller
//! calls copies `((s-1) O + k-1 mod R) + 1`, `k = 1..O`, of a task of `R` copies to which its fan-out is `O`, each with the
//! full mean number of calls.

use std::collections::HashMap;

use super::{
    compile::{Numbers, index},
    network::Network,
    rewards::Layout,
    unusable,
};
use crate::{
    model::{Activity, Bindings, Call, Fan, Forwarding, Model, Number, Task},
    solve::SolveError,
};

/// Most copies of all elements together.
const COPIES_LIMIT: usize = 10_000;

/// A model with its copies.
pub(super) struct Copies {
    /// The model in which every copy is an element.
    pub(super) all: Model,
    /// The model with one copy of each element, in whose terms results are given.
    pub(super) single: Model,
    processors: Vec<u32>,
    tasks: Vec<u32>,
    /// Copies of a task that one copy of another calls: by caller and called task.
    fans: HashMap<(usize, usize), u32>,
}

/// The name of copy number `copy`, from 0.
fn copy_name(name: &str, copy: u32) -> String {
    if copy == 0 { name.to_owned() } else { format!("{name} (copy {})", copy + 1) }
}

/// Lays out the copies of `model`.
///
/// # Errors
/// [`SolveError::Unusable`] for numbers of copies and fans that do not fit.
pub(super) fn lay_out(model: &Model, values: &Bindings) -> Result<Copies, SolveError> {
    let numbers = Numbers(values);
    let one = Number::Value(1.0);
    let mut single = model.clone();
    single.processors.iter_mut().for_each(|p| p.replication = one.clone());
    for task in &mut single.tasks {
        task.replication = one.clone();
        (task.fan_out, task.fan_in) = (Vec::new(), Vec::new());
    }
    let copies = |number: &Number, kind: &str, name: &str| numbers.whole(number, &format!("{kind} \"{name}\""), "replication", 1.0);
    let processors = model.processors.iter().map(|p| copies(&p.replication, "processor", &p.name)).collect::<Result<Vec<_>, _>>()?;
    let tasks = model.tasks.iter().map(|t| copies(&t.replication, "task", &t.name)).collect::<Result<Vec<_>, _>>()?;
    if processors.iter().chain(&tasks).map(|&n| n as usize).sum::<usize>() > COPIES_LIMIT {
        return Err(unusable("model", format!("with all copies it has more than {COPIES_LIMIT} processors and tasks")));
    }
    let all = Model { processors: Vec::new(), tasks: Vec::new(), ..single.clone() };
    let mut laid = Copies { all, single, processors, tasks, fans: HashMap::new() };
    laid.add_processors();
    for t in 0..model.tasks.len() {
        laid.add_task(model, &numbers, t)?;
    }
    Ok(laid)
}

impl Copies {
    /// Whether anything has more than one copy.
    pub(super) fn has_several(&self) -> bool {
        self.processors.iter().chain(&self.tasks).any(|&n| n > 1)
    }

    fn add_processors(&mut self) {
        for (processor, &copies) in self.single.processors.iter().zip(&self.processors) {
            for copy in 0..copies {
                self.all.processors.push(crate::model::Processor { name: copy_name(&processor.name, copy), ..processor.clone() });
            }
        }
    }

    fn add_task(&mut self, model: &Model, numbers: &Numbers<'_>, t: usize) -> Result<(), SolveError> {
        let task = self.single.tasks[t].clone();
        let p = model.processors.iter().position(|p| p.name == task.processor);
        let hosts = p.map_or(1, |p| self.processors[p]);
        if !self.tasks[t].is_multiple_of(hosts) {
            let reason = format!("its {} copies are not a multiple of the {hosts} copies of its processor", self.tasks[t]);
            return Err(unusable(format!("task \"{}\"", task.name), reason));
        }
        for copy in 0..self.tasks[t] {
            let mut laid = Task { name: copy_name(&task.name, copy), ..task.clone() };
            laid.processor = copy_name(&task.processor, copy / (self.tasks[t] / hosts));
            for entry in &mut laid.entries {
                entry.name = copy_name(&entry.name, copy);
                for phase in &mut entry.phases {
                    self.spread(model, numbers, t, copy, &mut phase.activity)?;
                }
                let mut forwarding = Vec::new();
                for f in &entry.forwarding {
                    let dests = self.destinations(model, numbers, t, copy, &f.dest)?;
                    forwarding.extend(dests.into_iter().map(|dest| Forwarding { dest, ..f.clone() }));
                }
                entry.forwarding = forwarding;
            }
            for activity in &mut laid.activities {
                self.spread(model, numbers, t, copy, activity)?;
            }
            laid.replies.iter_mut().for_each(|reply| reply.entry = copy_name(&reply.entry, copy));
            self.all.tasks.push(laid);
        }
        Ok(())
    }

    /// Lets the calls of an activity of copy `copy` of task `t` go to the copies that they reach.
    fn spread(&mut self, model: &Model, numbers: &Numbers<'_>, t: usize, copy: u32, activity: &mut Activity) -> Result<(), SolveError> {
        let mut calls = Vec::new();
        for call in &activity.calls {
            let dests = self.destinations(model, numbers, t, copy, &call.dest)?;
            calls.extend(dests.into_iter().map(|dest| Call { dest, ..call.clone() }));
        }
        activity.calls = calls;
        Ok(())
    }

    /// The copies of entry `name` that copy `copy` of task `t` calls.
    fn destinations(&mut self, model: &Model, numbers: &Numbers<'_>, t: usize, copy: u32, name: &str) -> Result<Vec<String>, SolveError> {
        let d = model.tasks.iter().position(|task| task.entries.iter().any(|e| e.name == name));
        let Some(d) = d else { return Ok(vec![name.to_owned()]) };
        let (task, called) = (&model.tasks[t], &model.tasks[d]);
        let element = format!("task \"{}\"", task.name);
        let fan = |list: &[Fan], other: &str, what: &str| {
            list.iter().find(|f| f.task == other).map_or(Ok(1), |f| numbers.whole(&f.value, &element, what, 1.0))
        };
        let (out, into) = (fan(&task.fan_out, &called.name, "fan-out")?, fan(&called.fan_in, &task.name, "fan-in")?);
        let (from, to) = (self.tasks[t], self.tasks[d]);
        if u64::from(from) * u64::from(out) != u64::from(to) * u64::from(into) {
            let reason = format!(
                "its {from} copies with fan-out {out} make another number of connections than the {to} copies of task \"{}\" with fan-in {into}",
                called.name
            );
            return Err(unusable(element, reason));
        }
        self.fans.insert((t, d), out);
        Ok((0..out).map(|k| copy_name(name, (copy * out + k) % to)).collect())
    }

    /// Rewards of the network of all copies as those of the network of single ones: the means over copies.
    pub(super) fn per_copy(&self, all: &Network, single: &Network, means: &[f64]) -> Vec<f64> {
        let (from, to) = (Layout::new(all), Layout::new(single));
        let mut result = vec![0.0; to.width];
        let mut add = |source: std::ops::Range<usize>, target: std::ops::Range<usize>, copies: u32| {
            source.zip(target).for_each(|(s, t)| result[t] += means[s] / f64::from(copies));
        };
        let mut processor = 0;
        for (p, &copies) in self.processors.iter().enumerate() {
            for _ in 0..copies {
                add(processor..processor + 1, p..p + 1, copies);
                processor += 1;
            }
        }
        let (mut entry, mut activity, mut route) = (0, 0, 0);
        for (t, &copies) in self.tasks.iter().enumerate() {
            for _ in 0..copies {
                for e in single.tasks[t].entries.clone() {
                    add(from.of_entry(entry), to.of_entry(e), copies);
                    entry += 1;
                }
                for (a, _) in single.activities.iter().enumerate().filter(|a| a.1.task == index(t)) {
                    add(from.of_activity(activity), to.of_activity(index(a)), copies);
                    activity += 1;
                }
                for (r, spec) in single.routes.iter().enumerate().filter(|r| single.entries[r.1.from as usize].task == index(t)) {
                    let called = single.entries[spec.to as usize].task as usize;
                    for _ in 0..self.fans.get(&(t, called)).copied().unwrap_or(1) {
                        add(from.of_route(route), to.of_route(index(r)), copies);
                        route += 1;
                    }
                }
            }
        }
        result
    }
}
