//! Interactions to call trees, as far as they carry times.
//!
//! The target of a synchronous interaction begins when the request is received and ends when its reply is, which are the
//! first and last of [`Interaction::times`](crate::structure::interactions::Interaction). A forwarder begins where its
//! predecessor passed the request on and ends where it does so itself; what it forwards to is its child, as it is what
//! called it, though it starts when the forwarder ends. What nothing requested has no times in a trace of messages: it
//! stands for the external caller `$`, so that each of its requests begins a trace. Targets of asynchronous messages start
//! traces of their own, without times.

use super::{CallForm, CallTree};
use crate::{structure::interactions::InteractionKind, structure::interactions::Interactions, trace::Time};

/// Who requested an occurrence, how, and from when to when it worked on that.
#[derive(Clone, Copy)]
struct Requested {
    by: usize,
    form: CallForm,
    times: Option<[Time; 2]>,
}

/// The call trees of interactions, one for each recording, in its weight; operations are named `process.operation`, or as
/// the process where no operation is known.
pub fn call_trees(interactions: &Interactions) -> Vec<CallTree> {
    let requested = requests(interactions);
    let mut trees: Vec<CallTree> = interactions.traces.iter().map(|t| CallTree::with_weight(t.weight)).collect();
    let mut node_of: Vec<Option<usize>> = vec![None; interactions.occurrences.len()];
    for (index, occurrence) in interactions.occurrences.iter().enumerate() {
        let Some(Requested { by, form, times }) = requested[index] else { continue };
        let Some(tree) = trees.get_mut(occurrence.trace as usize) else { continue };
        let units = &interactions.units;
        let process = units.process_of.get(occurrence.unit as usize).map_or("", |process| units.processes.name(*process));
        let name = match occurrence.operation {
            Some(operation) => format!("{process}.{}", interactions.operations.name(operation)),
            None => process.to_owned(),
        };
        let parent = node_of.get(by).copied().flatten();
        node_of[index] = tree.push(parent, &name, form, times).ok();
    }
    trees
}

fn requests(interactions: &Interactions) -> Vec<Option<Requested>> {
    let mut requested = vec![None; interactions.occurrences.len()];
    let mut set = |target: usize, request: Requested| {
        if let Some(slot) = requested.get_mut(target) {
            *slot = Some(request);
        }
    };
    for interaction in &interactions.interactions {
        if interaction.kind == InteractionKind::Async {
            set(interaction.to, Requested { by: interaction.from, form: CallForm::Async, times: None });
            continue;
        }
        let mut by = interaction.from;
        for (step, target) in interaction.via.iter().chain([&interaction.to]).enumerate() {
            let times = interaction.times.get(step).zip(interaction.times.get(step + 1)).map(|(start, end)| [*start, *end]);
            set(*target, Requested { by, form: CallForm::Sync, times });
            by = *target;
        }
    }
    requested
}
