//! The requests of a batch, by the occurrence that makes them.
//!
//! An arc is one request: a synchronous interaction is one arc; an asynchronous one is one; a forwarded one is a
//! synchronous arc to the first of the chain and a forwarding arc from each to the next.

use crate::structure::{
    entries::{Accepts, ArcKind},
    interactions::{Branch, InteractionKind, Interactions},
};

/// One request of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arc {
    pub(super) kind: ArcKind,
    pub(super) phase: u8,
    pub(super) branch: Option<Branch>,
    /// The requested occurrence.
    pub(super) target: usize,
}

/// The arcs of a forest by their source.
#[derive(Clone, Debug)]
pub(super) struct Arcs {
    /// Arcs of occurrence `o` are `arcs[starts[o]..starts[o + 1]]`.
    starts: Vec<usize>,
    arcs: Vec<Arc>,
    pub(super) accepts: Vec<Accepts>,
}

impl Arcs {
    pub(super) fn of(interactions: &Interactions) -> Self {
        let n = interactions.occurrences.len();
        let mut starts = vec![0; n + 1];
        let mut accepts = vec![Accepts::Nothing; n];
        for_each_arc(interactions, |source, arc| {
            starts[source + 1] += 1;
            accepts[arc.target] = if arc.kind == ArcKind::Async { Accepts::Async } else { Accepts::Sync };
        });
        for o in 0..n {
            starts[o + 1] += starts[o];
        }
        let mut next = starts.clone();
        let mut arcs = vec![Arc { kind: ArcKind::Sync, phase: 1, branch: None, target: 0 }; starts[n]];
        for_each_arc(interactions, |source, arc| {
            arcs[next[source]] = arc;
            next[source] += 1;
        });
        Self { starts, arcs, accepts }
    }

    pub(super) fn from(&self, occurrence: usize) -> &[Arc] {
        &self.arcs[self.starts[occurrence]..self.starts[occurrence + 1]]
    }
}

fn for_each_arc(interactions: &Interactions, mut visit: impl FnMut(usize, Arc)) {
    for interaction in &interactions.interactions {
        let kind = if interaction.kind == InteractionKind::Async { ArcKind::Async } else { ArcKind::Sync };
        let first = interaction.via.first().copied().unwrap_or(interaction.to);
        visit(interaction.from, Arc { kind, phase: interaction.phase, branch: interaction.branch, target: first });
        let next = interaction.via.iter().skip(1).chain([&interaction.to]);
        for (source, target) in interaction.via.iter().zip(next) {
            visit(*source, Arc { kind: ArcKind::Forward, phase: 1, branch: None, target: *target });
        }
    }
}
