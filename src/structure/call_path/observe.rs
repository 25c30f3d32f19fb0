//! What a request shows beside its structure: its executions as a call tree, and what a user asked for.
//!
//! Every frame is an execution, `CLASS.METHOD`, also inside one component; a frame without an exit is part of the tree but has
//! no times. What another path began is its child: waited for or not, as that says.

use super::{
    frames::FrameKind,
    links::Request,
    live::NONE,
    places::Places,
    walk::{Execution, Walk},
};
use crate::{
    structure::{
        interactions::InteractionKind,
        observations::{Asked, Completeness, Observations, UserKey},
        profile::{CallForm, CallTree},
    },
    trace::Time,
};

/// Hands the executions and requests of `request` over, as far as they are wanted.
pub(super) fn observe(request: &Request, walk: &Walk, weight: f64, places: &Places, observations: &mut Observations) {
    if observations.wants_executions() {
        let complete = if request.partial || request.cut { Completeness::Partial } else { Completeness::Whole };
        observations.executions(&call_tree(request, weight, places), complete);
    }
    if observations.wants_requests() {
        let from_outside = |e: &&Execution| e.requester.occurrence.is_none() && e.requester.kind == InteractionKind::Sync && e.measured;
        for execution in walk.executions.iter().filter(from_outside) {
            let service = format!("{}.{}", places.process(execution.instance), places.operations.name(execution.operation));
            let times = [execution.start_ns, execution.end_ns].map(Time::from_ticks);
            let user = request.session.as_deref().map(|session| (UserKey::Session, session));
            observations.request(&Asked { user, service: &service, times, weight });
        }
    }
}

fn call_tree(request: &Request, weight: f64, places: &Places) -> CallTree {
    let mut tree = CallTree::with_weight(weight);
    let mut visited = vec![false; request.paths.len()];
    let mut node_of: Vec<Option<usize>> = Vec::new();
    let mut next: Vec<(usize, Option<usize>, CallForm)> = Vec::new();
    // Paths that nothing began, then those in circles of paths that began each other.
    let in_circles = 0..request.paths.len();
    let first = in_circles.clone().filter(|path| !request.begun.get(*path).is_some_and(|begun| *begun)).chain(in_circles);
    for root in first.collect::<Vec<_>>() {
        next.push((root, None, CallForm::Sync));
        while let Some((number, caller, form)) = next.pop() {
            let Some(path) = request.paths.get(number).filter(|_| !std::mem::replace(&mut visited[number], true)) else { continue };
            node_of.clear();
            for frame in &path.frames {
                let (parent, form) = match frame.parent {
                    NONE => (caller, form),
                    parent => (node_of.get(parent as usize).copied().flatten(), CallForm::Sync),
                };
                let times = Some([frame.start_ns, frame.end_ns].map(Time::from_ticks));
                let times = match frame.kind {
                    FrameKind::Service => times.filter(|_| !frame.truncated),
                    FrameKind::Uninstrumented { timed } => times.filter(|_| timed),
                    FrameKind::Fork { transaction, waits } => {
                        let form = if waits { CallForm::Sync } else { CallForm::Async };
                        next.push((transaction as usize, parent, form));
                        node_of.push(None);
                        continue;
                    }
                    FrameKind::Elsewhere => {
                        node_of.push(parent);
                        continue;
                    }
                    FrameKind::Send { .. } | FrameKind::Gone => {
                        node_of.push(None);
                        continue;
                    }
                };
                let (class, method) = places.texts.service(frame.location);
                node_of.push(tree.push(parent, &format!("{class}.{method}"), form, times).ok());
            }
        }
    }
    tree
}
