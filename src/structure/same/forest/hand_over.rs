//! Handing over what is complete.
//!
//! The interactions found so far join occurrences to trees. A tree is complete when none of its occurrences can take part in
//! another interaction: none is live, part of an open path, sender of a message on its way, or may come back in a second
//! phase. Every occurrence is requested at most once, by an earlier one, so that one pass in order of creation finds the root
//! of each.

use super::{Forest, State, UnitStates, asynchronous};
use crate::structure::interactions::{Interaction, Interactions, Occurrence};

/// Occurrences that are left before trees are cut.
const MANY_LEFT: usize = 1 << 17;

/// Requests after which an occurrence is cut then; and when that does not help.
const MANY_REQUESTS: u32 = 64;

impl Forest {
    /// Occurrences that are held.
    pub(in super::super) fn n_occurrences(&self) -> usize {
        self.occurrences.len()
    }

    /// Whether enough came since the last handing over: as much as that left, and `least`.
    pub(in super::super) fn may_hand_over(&self, least: usize) -> bool {
        self.occurrences.len() >= least.max(2 * self.n_left)
    }

    /// The recording is over: arcs that are left are asynchronous.
    pub(in super::super) fn end_recording(&mut self) {
        let mut left: Vec<_> = self.nodes.iter().filter(|node| node.state != State::Gone && node.parent.is_some()).collect();
        left.sort_by_key(|node| (node.arc_time, node.occurrence));
        let arcs = left.iter().filter_map(|node| {
            let parent = &self.nodes[node.parent?];
            Some(asynchronous(parent.phase, parent.occurrence, node.occurrence, node.arc_time))
        });
        self.interactions.extend(arcs);
        self.nodes.clear();
        self.free.clear();
        self.units = UnitStates::default();
        self.transits.clear();
    }

    /// Moves complete trees to `out`, as part of its recording number `trace`.
    pub(in super::super) fn hand_over(&mut self, trace: u32, out: &mut Interactions) {
        let root = self.roots();
        let mut is_open = vec![false; root.len()];
        let live = self.nodes.iter().filter(|node| node.state != State::Gone).map(|node| node.occurrence);
        let sending = self.transits.iter().flatten().map(|transit| transit.occurrence);
        let ended = self.units.iter().filter_map(|unit| unit.ended.map(|(occurrence, _)| occurrence));
        for occurrence in live.chain(sending).chain(ended) {
            is_open[root[occurrence]] = true;
        }
        let moved = Moved::of(&root, &is_open, out.occurrences.len());
        self.renumber(&moved);
        let mut roots = root.iter();
        let is_complete = |_: &mut Occurrence| roots.next().is_some_and(|root| !is_open[*root]);
        out.occurrences.reserve(moved.n_leaving);
        out.occurrences.extend(self.occurrences.extract_if(.., is_complete).map(|left| Occurrence { trace, ..left }));
        let leaves = |interaction: &mut Interaction| {
            let leaves = !is_open[root[interaction.from]];
            moved.renumber(interaction);
            leaves
        };
        out.interactions.reserve(self.interactions.len());
        out.interactions.extend(self.interactions.extract_if(.., leaves));
        self.n_left = self.occurrences.len();
        self.most_requests = match self.n_left {
            0..MANY_LEFT => u32::MAX,
            n if n < 4 * MANY_LEFT => MANY_REQUESTS,
            _ => 1,
        };
    }

    /// The root of each occurrence's tree, as far as it is found.
    fn roots(&self) -> Vec<usize> {
        let mut root: Vec<usize> = (0..self.occurrences.len()).collect();
        for interaction in &self.interactions {
            let mut requester = interaction.from;
            for target in interaction.via.iter().chain([&interaction.to]) {
                debug_assert!(requester < *target, "who is requested is created later");
                root[*target] = requester;
                requester = *target;
            }
        }
        for occurrence in 0..root.len() {
            root[occurrence] = root[root[occurrence]];
        }
        root
    }

    fn renumber(&mut self, moved: &Moved) {
        for node in self.nodes.iter_mut().filter(|node| node.state != State::Gone) {
            node.occurrence = moved.to[node.occurrence];
        }
        for transit in self.transits.iter_mut().flatten() {
            transit.occurrence = moved.to[transit.occurrence];
        }
        for (occurrence, _) in self.units.iter_mut().filter_map(|unit| unit.ended.as_mut()) {
            *occurrence = moved.to[*occurrence];
        }
    }
}

/// The new number of each occurrence, among those that stay or those that are handed over.
struct Moved {
    to: Vec<usize>,
    n_leaving: usize,
}

impl Moved {
    fn of(root: &[usize], is_open: &[bool], first: usize) -> Self {
        let (mut staying, mut leaving) = (0, first);
        let number = |root: &usize| {
            let next = if is_open[*root] { &mut staying } else { &mut leaving };
            *next += 1;
            *next - 1
        };
        let to = root.iter().map(number).collect();
        Self { to, n_leaving: leaving - first }
    }

    fn renumber(&self, interaction: &mut Interaction) {
        interaction.from = self.to[interaction.from];
        interaction.via.iter_mut().for_each(|occurrence| *occurrence = self.to[*occurrence]);
        interaction.to = self.to[interaction.to];
    }
}
