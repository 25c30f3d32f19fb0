//! What techniques and forms of trace do not tell apart by their nature, put together before structures are compared.

use layerfit::structure::Accepts;

use super::structure::{Arc, Calls, Counts, Kind, Node, Structure};

/// Name of what a second phase is in a form that has it as a service of its own, after that of its entry.
const SECOND_PHASE: &str = "second_phase";

/// Of a branch of a fork, before its number.
const BRANCH: &str = "branch_";

/// What is not told apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blind {
    /// Forwarding is a call inside the forwarder.
    pub forwarding_is_a_call: bool,
    /// Second phases and branches of forks are messages of a task to services of its own, named after the entry.
    pub parts_are_messages: bool,
}

impl Structure {
    /// Puts together what a technique cannot tell apart.
    pub fn seen_by(&self, blind: Blind) -> Self {
        let whole = if blind.parts_are_messages { self.with_parts() } else { self.clone() };
        let mut seen = Self::default();
        for (node, calls) in whole.entries {
            let mut arcs = Counts::new();
            for ((kind, phase, to), moments) in calls.arcs {
                let kind = if blind.forwarding_is_a_call && kind == Kind::Forward { Kind::Sync } else { kind };
                let sum = arcs.entry((kind, phase, to)).or_default();
                *sum = sum.plus(moments);
            }
            seen.entries.insert(node, Calls { n: calls.n, arcs });
        }
        seen
    }

    /// Entries with what their second phases and branches do, that are services of their own.
    fn with_parts(&self) -> Self {
        let mut whole = Self::default();
        for (node, calls) in self.entries.iter().filter(|(node, _)| !node.is_part()) {
            let mut arcs = Counts::new();
            for ((kind, phase, to), moments) in &calls.arcs {
                let Some(phase_of_part) = node.phase_of_part(*kind, to) else {
                    let sum = arcs.entry((*kind, *phase, to.clone())).or_default();
                    *sum = sum.plus(*moments);
                    continue;
                };
                for ((kind, _, to), of_part) in self.entries.get(to).into_iter().flat_map(|part| &part.arcs) {
                    let mut of_part = *of_part;
                    of_part.mean *= moments.mean;
                    let sum = arcs.entry((*kind, phase_of_part, to.clone())).or_default();
                    *sum = sum.plus(of_part);
                }
            }
            whole.entries.insert(node.clone(), Calls { n: calls.n, arcs });
        }
        // A part of what nothing of its name begins stays, and so is told.
        let orphans = self.entries.iter().filter(|(node, _)| node.is_part());
        for (node, calls) in orphans {
            let is_begun = |(by, calls): (&Node, &Calls)| {
                calls.arcs.keys().any(|(kind, _, to): &Arc| to == node && by.phase_of_part(*kind, to).is_some())
            };
            if !self.entries.iter().any(is_begun) {
                whole.entries.insert(node.clone(), calls.clone());
            }
        }
        whole
    }
}

impl Node {
    fn is_part(&self) -> bool {
        let part = self.entry.split_once('.').map_or("", |(_, part)| part);
        part == SECOND_PHASE || part.starts_with(BRANCH)
    }

    /// The phase of what `to` does, if it is a part of this entry that it sends a message to.
    fn phase_of_part(&self, kind: Kind, to: &Self) -> Option<u8> {
        let is_own = kind == Kind::Async && to.accepts == Accepts::Async && to.task == self.task && to.is_part();
        let part = to.entry.strip_prefix(&self.entry)?.strip_prefix('.')?;
        is_own.then_some(if part == SECOND_PHASE { 2 } else { 1 })
    }
}
