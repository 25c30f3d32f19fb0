//! Cleanup of the interaction trees, and what bounds them.

use smallvec::smallvec;

use super::{Forest, Node, NodeId, State};
use crate::{
    structure::{
        SecondPhase,
        interactions::{Interaction, InteractionKind},
        same::notes::{Oddity, Place},
    },
    trace::Time,
};

impl Forest {
    /// Cleanup: applies the rules of step 3 to all nodes that were touched until none applies.
    pub(super) fn settle(&mut self) {
        while let Some(node) = self.work.pop_front() {
            let Node { state, parent, ref children, n_in_flight, .. } = self.nodes[node];
            match (state, parent) {
                (State::Gone, _) => {}
                (State::Zombie, None) => self.drop_root(node),
                (State::Live, None) if children.len() > 1 => self.keep_candidate(node),
                (State::Zombie, Some(parent)) if children.is_empty() && n_in_flight == 0 => {
                    self.send_off(parent, node);
                    self.remove(node);
                    self.work.push_back(parent);
                }
                _ => {}
            }
        }
    }

    fn drop_root(&mut self, root: NodeId) {
        let mut children = self.nodes[root].children.clone();
        children.sort_by_key(|child| self.nodes[*child].arc_time);
        for child in children {
            self.send_off(root, child);
            self.work.push_back(child);
        }
        self.remove(root);
    }

    /// Leaves a root only the arc to the child whose message was sent last, which alone it can be blocked by. It need not be
    /// the one attached last, where messages wait before they are accepted; nor be live, where it has forwarded. To the letter of
    /// the paper it is the last one that is live.
    fn keep_candidate(&mut self, root: NodeId) {
        let children = self.nodes[root].children.clone();
        let may_stay = |child: &NodeId| self.second_phase == SecondPhase::Detect || self.nodes[*child].state == State::Live;
        let candidate = children.iter().copied().rfind(may_stay);
        for child in children.into_iter().filter(|child| Some(*child) != candidate) {
            if self.nodes[child].state == State::Live {
                self.notes.add(Oddity::RootFanoutAsync, Place::Unit(self.nodes[root].unit));
            }
            self.send_off(root, child);
            self.work.push_back(child);
        }
    }

    /// The arc between the two is an asynchronous message.
    pub(super) fn send_off(&mut self, parent: NodeId, child: NodeId) {
        self.nodes[parent].n_requests = self.nodes[parent].n_requests.saturating_add(1);
        let (from, to) = (&self.nodes[parent], &self.nodes[child]);
        self.interactions.push(asynchronous(from.phase, from.occurrence, to.occurrence, to.arc_time));
        self.detach(parent, child);
    }

    /// Gives up an arc so far above that no cycle is looked for there.
    pub(super) fn give_up_above(&mut self, parent: NodeId, child: NodeId) {
        self.notes.add(Oddity::DeepTree, Place::Unit(self.nodes[parent].unit));
        self.send_off(parent, child);
        self.work.extend([child, parent]);
        self.settle();
    }

    /// Goes on with a new occurrence if this one has made so many requests that its tree cannot be kept.
    ///
    /// Only where nothing hangs below it; what a root sent before its next message is given up at its reception anyway.
    pub(super) fn cut_if_due(&mut self, node: NodeId) {
        if self.nodes[node].n_requests < self.most_requests {
            return;
        }
        let is_root = self.nodes[node].parent.is_none();
        if is_root {
            for child in self.nodes[node].children.clone() {
                self.send_off(node, child);
                self.work.push_back(child);
            }
            self.settle();
        } else if !self.nodes[node].children.is_empty() || self.nodes[node].n_in_flight > 0 {
            return;
        }
        let Node { unit, occurrence, .. } = self.nodes[node];
        let old = &mut self.occurrences[occurrence];
        let (number, operation) = (old.number, old.operation);
        // Whoever waits for it is to get the reply of what goes on.
        old.originator |= !is_root;
        self.notes.add(Oddity::OccurrenceCut, Place::Occurrence(unit, number));
        let new = self.add_occurrence(unit, operation, is_root);
        let node = &mut self.nodes[node];
        (node.occurrence, node.phase, node.originator, node.n_in_flight, node.n_requests) = (new, 1, is_root, 0, 0);
    }
}

pub(super) fn asynchronous(phase: u8, from: usize, to: usize, time: Time) -> Interaction {
    Interaction { kind: InteractionKind::Async, phase, from, via: Vec::new(), to, branch: None, times: smallvec![time] }
}

#[cfg(test)]
impl Forest {
    /// What must hold after every step, as text if it does not.
    pub(in super::super) fn broken_invariant(&self) -> Option<String> {
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.state != State::Gone) {
            let zombie = node.state == State::Zombie;
            if zombie && node.parent.is_none() {
                return Some(format!("zombie root {node:?}"));
            }
            if zombie && node.children.is_empty() && node.n_in_flight == 0 {
                return Some(format!("zombie leaf {node:?}"));
            }
            if node.parent.is_none() && node.children.len() > 1 {
                return Some(format!("improper root {node:?}"));
            }
            if zombie == (self.live(node.unit) == Some(index)) {
                return Some(format!("live mark {node:?}"));
            }
        }
        None
    }

    /// Nodes in the trees, and slots ever used.
    pub(in super::super) fn size(&self) -> (usize, usize) {
        (self.nodes.len() - self.free.len(), self.nodes.len())
    }

    /// Interactions found so far.
    pub(in super::super) fn found(&self) -> &[Interaction] {
        &self.interactions
    }
}
