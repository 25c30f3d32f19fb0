//! Models with several entries for one, by whom that works for.
//!
//! An arc has one wait for all its requests. Where one entry works for some who find few or none of their own there, and all of the others, that is a mean over unlike
//! waits: so it is laid out for classes of few customers ([`by_class`]), and then for tasks of few threads ([`by_caller`]), with tasks, threads and processors in
//! common. Who has variants follows from the model's structure and whole numbers alone, so that solutions are as smooth in all else as without. Results are put
//! together in [`fold`]. What it buys stands in `docs/SOLVER.md`.

mod by_caller;
mod by_class;
mod fold;
mod graphs;

use std::collections::HashMap;

use crate::model::{Activity, Bindings, CallKind, Entry, Model, Number, Processor, ProcessorScheduling, Scalar, Task, TaskScheduling};

/// Most variants over entries: a bound on what they cost.
const MOST_TIMES: usize = 3;
/// The group of all who have none of their own.
const OTHERS: usize = 0;

/// A model with an entry for each group that uses it.
#[derive(Debug)]
pub(super) struct Variants {
    /// The model of all variants. Tasks and processors are those of the model that it is made from.
    pub model: Model,
    /// The entry that each of its entries is a variant of, by the place among all entries of the model.
    originals: Vec<usize>,
    /// What each task's activities are named after, by name, where they are of a variant.
    activities: HashMap<(usize, String), String>,
}

/// The variants of `model` under `values`; none where no entry has several, or where its numbers cannot be read.
pub(super) fn tell_apart<S: Scalar>(model: &Model, values: &Bindings<S>) -> Option<Variants> {
    let value = |number: &Number| number.eval(values).ok().map(|n| n.value());
    let of_classes = by_class::tell_apart(model, &value);
    let most = MOST_TIMES * model.tasks.iter().map(|task| task.entries.len()).sum::<usize>();
    let Some(of_callers) = by_caller::tell_apart(of_classes.as_ref().map_or(model, |it| &it.model), most, &value) else {
        return of_classes;
    };
    let Some(of_classes) = of_classes else { return Some(of_callers) };
    let originals = of_callers.originals.iter().map(|&of_class| of_classes.originals[of_class]).collect();
    Some(Variants { originals, activities: of_classes.activities, ..of_callers })
}

/// What a processor runs.
#[derive(Clone, Copy, Default)]
struct Hosted<'a> {
    processor: Option<&'a Processor>,
    n_tasks: usize,
}

/// An entry of a task.
#[derive(Clone, Copy)]
struct Place<'a> {
    task: &'a Task,
    entry: &'a Entry,
    /// Whether variants of it can differ: it calls something, or may wait for its processor.
    has_variants: bool,
}

/// All entries in order.
fn entries<'a>(model: &'a Model, value: &impl Fn(&Number) -> Option<f64>) -> Option<Vec<Place<'a>>> {
    let mut hosted: HashMap<&str, Hosted<'_>> = HashMap::new();
    for task in &model.tasks {
        hosted.entry(&task.processor).or_default().n_tasks += 1;
    }
    model.processors.iter().for_each(|processor| hosted.entry(&processor.name).or_default().processor = Some(processor));
    let mut entries = Vec::new();
    for task in &model.tasks {
        let Hosted { processor, n_tasks } = hosted[task.processor.as_str()];
        let waits = n_tasks > 1 || may_wait(task, processor?, value)?;
        entries.extend(task.entries.iter().map(|entry| {
            let has_graph = entry.start_activity.is_some();
            let differs = waits || has_graph || destinations(entry).next().is_some();
            Place { task, entry, has_variants: differs && (!has_graph || graphs::activities_of(task, entry).is_some()) }
        }));
    }
    Some(entries)
}

/// The entries that an activity calls.
fn called(activity: &Activity) -> impl Iterator<Item = (&str, CallKind)> {
    activity.calls.iter().map(|call| (call.dest.as_str(), call.kind))
}

/// The entries that the phases of an entry call, and those that it forwards to, whose reply is waited for likewise.
fn destinations(entry: &Entry) -> impl Iterator<Item = (&str, CallKind)> {
    let forwarded = entry.forwarding.iter().map(|f| (f.dest.as_str(), CallKind::Sync));
    entry.phases.iter().flat_map(|phase| called(&phase.activity)).chain(forwarded)
}

/// The group that a request of a group works for at its target.
fn served(group: usize, kind: CallKind) -> usize {
    match kind {
        CallKind::Sync => group,
        CallKind::Async => OTHERS,
    }
}

/// Sends an entry's calls to the variants that `to` says, and what it forwards to those of `forwarded`.
fn redirect_entry(entry: &mut Entry, to: &impl Fn(&str, CallKind) -> Option<String>, forwarded: &impl Fn(&str) -> Option<String>) {
    entry.phases.iter_mut().for_each(|phase| redirect(&mut phase.activity, to));
    for forwarding in &mut entry.forwarding {
        if let Some(name) = forwarded(&forwarding.dest) {
            forwarding.dest = name;
        }
    }
}

/// The same of an activity's calls.
fn redirect(activity: &mut Activity, to: &impl Fn(&str, CallKind) -> Option<String>) {
    for call in &mut activity.calls {
        if let Some(name) = to(&call.dest, call.kind) {
            call.dest = name;
        }
    }
}

/// Whether threads of the only task of a processor may have to wait for it.
fn may_wait(task: &Task, processor: &Processor, value: &impl Fn(&Number) -> Option<f64>) -> Option<bool> {
    if processor.scheduling == ProcessorScheduling::Inf {
        return Some(false);
    }
    let is_plain = task.scheduling != TaskScheduling::Inf && task.activities.is_empty();
    let is_single = value(&task.replication)? <= value(&processor.replication)?;
    Some(!(is_plain && is_single && value(&task.multiplicity)? <= value(&processor.multiplicity)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every entry with what it calls, tasks apart by `;`.
    pub fn wiring(model: &Model) -> String {
        let of_entry = |entry: &Entry| {
            let called: Vec<&str> = destinations(entry).map(|(dest, _)| dest).collect();
            if called.is_empty() { entry.name.clone() } else { format!("{} > {}", entry.name, called.join(" + ")) }
        };
        let of_task = |task: &Task| task.entries.iter().map(of_entry).collect::<Vec<_>>().join(", ");
        model.tasks.iter().map(of_task).collect::<Vec<_>>().join("; ")
    }
}
