//! The interaction trees of one recording.

mod hand_over;
mod settle;
mod units;

use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use super::notes::{Notes, Oddity, Place};
use crate::{
    structure::{
        SecondPhase,
        interactions::{Interaction, InteractionKind, Occurrence, Times},
    },
    trace::{
        Time,
        same::{LocalEvent, Message},
    },
};
use settle::asynchronous;
use units::UnitStates;

/// Most arcs from an occurrence up that are looked at: longer paths are cut there.
const MOST_DEPTH: usize = 1_000;

/// A slot of [`Forest::nodes`].
type NodeId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// May send, and receive replies.
    Live,
    /// Ended, but part of an interaction that is not resolved.
    Zombie,
    /// The slot is free.
    Gone,
}

/// An occurrence in a tree.
#[derive(Clone, Debug)]
struct Node {
    occurrence: usize,
    unit: u32,
    phase: u8,
    state: State,
    originator: bool,
    parent: Option<NodeId>,
    /// Reception of the message from `parent`.
    arc_time: Time,
    /// Whether the parent is known to have gone on without a reply.
    arc_nonblocking: bool,
    /// Which message, in order of sending, the arc from `parent` is.
    arc_number: u64,
    /// In the order in which their messages were sent.
    children: Vec<NodeId>,
    /// Messages sent and not yet received.
    n_in_flight: u32,
    n_local_events: u32,
    /// Interactions that it began and that were found, since it was last cut.
    n_requests: u32,
    /// Since when it works, where that is known.
    busy_since: Option<Time>,
}

/// A message between its sending and its reception.
#[derive(Clone, Debug)]
struct Transit {
    sender: NodeId,
    occurrence: usize,
    phase: u8,
    n_local_events: u32,
    number: u64,
}

/// What lies above the sender of a message.
#[derive(Debug)]
enum Path {
    /// Not the receiver.
    None,
    /// The receiver, and what is between: from top to bottom.
    Cycle(SmallVec<[NodeId; 8]>),
    /// More than is looked at: the arc where that ends.
    Deep { parent: NodeId, child: NodeId },
}

/// The trees, and what was found so far and not handed over.
#[derive(Clone, Debug)]
pub(super) struct Forest {
    second_phase: SecondPhase,
    units: UnitStates,
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    work: VecDeque<NodeId>,
    /// Messages on their way, by number.
    transits: Vec<Option<Transit>>,
    /// Messages sent so far.
    n_sent: u64,
    occurrences: Vec<Occurrence>,
    interactions: Vec<Interaction>,
    /// Occurrences that the last handing over left.
    n_left: usize,
    /// Requests after which an occurrence is cut.
    most_requests: u32,
    /// Oddities so far.
    pub(super) notes: Notes,
}

impl Forest {
    /// No trees yet.
    pub(super) fn new(second_phase: SecondPhase) -> Self {
        Self {
            second_phase,
            units: UnitStates::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            work: VecDeque::new(),
            transits: Vec::new(),
            n_sent: 0,
            occurrences: Vec::new(),
            interactions: Vec::new(),
            n_left: 0,
            most_requests: u32::MAX,
            notes: Notes::default(),
        }
    }

    /// A message, at the time of its reception.
    pub(super) fn message(&mut self, message: &Message) {
        if let Some(transit) = self.depart(message) {
            self.arrive(transit, message);
        }
    }

    /// The sending of a message that has this number until it is received.
    pub(super) fn send(&mut self, number: u32, message: &Message) {
        let transit = self.depart(message);
        let n_transits = self.transits.len().max(number as usize + 1);
        self.transits.resize_with(n_transits, || None);
        self.transits[number as usize] = transit;
    }

    /// The reception of the message of this number.
    pub(super) fn receive(&mut self, number: u32, message: &Message) {
        if let Some(transit) = self.transits.get_mut(number as usize).and_then(Option::take) {
            self.arrive(transit, message);
        }
    }

    /// The sending of a message: closes a cycle if it can, else the message is on its way.
    fn depart(&mut self, message: &Message) -> Option<Transit> {
        let path = self.path(message.sender, message.receiver);
        if let Path::Cycle(cycle) = path {
            self.account_send(*cycle.last()?, message.sent);
            self.close(&cycle, message);
            return None;
        }
        if let Path::Deep { parent, child } = path {
            self.give_up_above(parent, child);
        }
        let sender = self.bind_sender(message.sender);
        self.account_send(sender, message.sent);
        self.n_sent += 1;
        let node = &mut self.nodes[sender];
        node.n_in_flight += 1;
        let Node { occurrence, phase, n_local_events, .. } = *node;
        Some(Transit { sender, occurrence, phase, n_local_events, number: self.n_sent })
    }

    /// The reception of a message that closed no cycle.
    fn arrive(&mut self, transit: Transit, message: &Message) {
        let sender = self.still_there(&transit);
        let receiver = self.units.at(message.receiver);
        receiver.ended = None;
        if let Some(old) = receiver.live.take() {
            self.note_displaced(old, sender);
            self.nodes[old].state = State::Zombie;
            self.work.push_back(old);
        }
        let new = self.create(message.receiver, message.operation, false);
        self.nodes[new].busy_since = Some(message.received);
        if let Some(operation) = message.operation {
            self.units.request(message.receiver, operation);
        }
        match sender {
            Some(sender) => {
                let sent_before = |child: &NodeId| self.nodes[*child].arc_number < transit.number;
                let place = self.nodes[sender].children.partition_point(sent_before);
                let node = &mut self.nodes[sender];
                node.n_in_flight -= 1;
                node.children.insert(place, new);
                let nonblocking = node.n_local_events != transit.n_local_events;
                let node = &mut self.nodes[new];
                (node.parent, node.arc_time, node.arc_nonblocking) = (Some(sender), message.received, nonblocking);
                node.arc_number = transit.number;
                self.work.push_back(sender);
            }
            None => {
                let to = self.nodes[new].occurrence;
                self.interactions.push(asynchronous(transit.phase, transit.occurrence, to, message.received));
            }
        }
        self.settle();
    }

    /// A unit did something on its own: it waits for no reply.
    pub(super) fn local_event(&mut self, event: &LocalEvent) {
        let Some(node) = self.live(event.unit) else { return };
        self.account_send(node, Some(event.time));
        self.nodes[node].n_local_events += 1;
        for index in 0..self.nodes[node].children.len() {
            let child = self.nodes[node].children[index];
            self.nodes[child].arc_nonblocking = true;
        }
    }

    fn live(&self, unit: u32) -> Option<NodeId> {
        self.units.get(unit)?.live
    }

    /// The way from the sender's live occurrence up to the receiver's, if a message would close it to a cycle.
    fn path(&self, sender: u32, receiver: u32) -> Path {
        let (Some(top), Some(bottom)) = (self.live(receiver), self.live(sender)) else { return Path::None };
        let (mut child, mut length) = (bottom, 1);
        while let Some(parent) = self.nodes[child].parent {
            if length > MOST_DEPTH {
                return Path::Deep { parent, child };
            }
            length += 1;
            if parent == top {
                let is_open = !self.nodes[child].arc_nonblocking;
                return if is_open { Path::Cycle(self.path_between(top, bottom, length)) } else { Path::None };
            }
            child = parent;
        }
        Path::None
    }

    /// The occurrences from `top` down to `bottom`, of which there are `length`.
    fn path_between(&self, top: NodeId, bottom: NodeId, length: usize) -> SmallVec<[NodeId; 8]> {
        let mut path = smallvec![top; length];
        let mut node = bottom;
        for place in path[1..].iter_mut().rev() {
            *place = node;
            node = self.nodes[node].parent.unwrap_or(top);
        }
        path
    }

    /// The occurrence that sends: the live one, the second phase of the last one, or a new originator.
    fn bind_sender(&mut self, unit: u32) -> NodeId {
        if let Some(node) = self.live(unit) {
            self.cut_if_due(node);
            return node;
        }
        let state = self.units.at(unit);
        match state.ended.take() {
            Some((occurrence, ended)) => {
                let node = self.insert(unit, occurrence, 2, false);
                self.nodes[node].busy_since = ended;
                self.units.at(unit).live = Some(node);
                node
            }
            None => self.create(unit, None, true),
        }
    }

    /// A new occurrence, live and without arcs.
    fn create(&mut self, unit: u32, operation: Option<u32>, originator: bool) -> NodeId {
        let occurrence = self.add_occurrence(unit, operation, originator);
        let number = self.occurrences[occurrence].number;
        if originator && number > 1 {
            self.notes.add(Oddity::OriginatorSplit, Place::Occurrence(unit, number));
        }
        let node = self.insert(unit, occurrence, 1, originator);
        self.units.at(unit).live = Some(node);
        node
    }

    fn add_occurrence(&mut self, unit: u32, operation: Option<u32>, originator: bool) -> usize {
        let state = self.units.at(unit);
        state.n_occurrences += 1;
        let number = state.n_occurrences;
        self.occurrences.push(Occurrence { unit, number, trace: 0, operation, originator, self_time_ticks: [None; 2] });
        self.occurrences.len() - 1
    }

    fn insert(&mut self, unit: u32, occurrence: usize, phase: u8, originator: bool) -> NodeId {
        let node = Node {
            occurrence,
            unit,
            phase,
            state: State::Live,
            originator,
            parent: None,
            arc_time: Time::default(),
            arc_nonblocking: false,
            arc_number: 0,
            children: Vec::new(),
            n_in_flight: 0,
            n_local_events: 0,
            n_requests: 0,
            busy_since: None,
        };
        match self.free.pop() {
            Some(slot) => {
                // Room for children is used again.
                let mut children = std::mem::take(&mut self.nodes[slot].children);
                children.clear();
                self.nodes[slot] = Node { children, ..node };
                slot
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    fn remove(&mut self, node: NodeId) {
        let unit = self.units.at(self.nodes[node].unit);
        if unit.live == Some(node) {
            unit.live = None;
        }
        self.nodes[node].state = State::Gone;
        self.free.push(node);
    }

    /// The sender of a message on its way, unless it has left the forest.
    fn still_there(&self, transit: &Transit) -> Option<NodeId> {
        let node = &self.nodes[transit.sender];
        (node.state != State::Gone && node.occurrence == transit.occurrence && node.phase == transit.phase).then_some(transit.sender)
    }

    /// A sending or local event of `node` ends a stretch of work, and starts the next unless it is waited for.
    fn account_send(&mut self, node: NodeId, time: Option<Time>) {
        let node = &mut self.nodes[node];
        if let (Some(since), Some(time)) = (node.busy_since, time) {
            let self_time = &mut self.occurrences[node.occurrence].self_time_ticks[usize::from(node.phase - 1)];
            *self_time = Some(self_time.unwrap_or(0.0) + time.ticks_since(since).max(0.0));
        }
        node.busy_since = time;
    }

    fn note_displaced(&mut self, old: NodeId, sender: Option<NodeId>) {
        let Some(parent) = self.nodes[old].parent.filter(|parent| Some(*parent) != sender) else { return };
        let Node { unit, occurrence, .. } = self.nodes[old];
        let place = Place::Occurrence(unit, self.occurrences[occurrence].number);
        let meets_its_own_flow = sender.is_some_and(|sender| self.root(sender) == self.root(old) && !self.is_above(sender, old));
        if meets_its_own_flow {
            self.notes.add(Oddity::JoinNotDetected, place);
        } else if self.nodes[parent].state == State::Live {
            self.notes.add(Oddity::ZombieOnPending, place);
        }
    }

    fn root(&self, mut node: NodeId) -> NodeId {
        while let Some(parent) = self.nodes[node].parent {
            node = parent;
        }
        node
    }

    fn is_above(&self, upper: NodeId, mut node: NodeId) -> bool {
        while let Some(parent) = self.nodes[node].parent {
            if parent == upper {
                return true;
            }
            node = parent;
        }
        false
    }

    /// Records the interaction that `message` completes, and takes its cycle out of the forest.
    fn close(&mut self, cycle: &[NodeId], message: &Message) {
        self.note_callback(message);
        let occurrence = |node: &NodeId| self.nodes[*node].occurrence;
        let mut times = Times::new();
        cycle[1..].iter().for_each(|node| times.push(self.nodes[*node].arc_time));
        times.push(message.received);
        let (top, last) = (cycle[0], cycle.len() - 1);
        self.interactions.push(Interaction {
            kind: if cycle.len() == 2 { InteractionKind::Sync } else { InteractionKind::Forward },
            phase: self.nodes[top].phase,
            from: occurrence(&top),
            via: cycle[1..last].iter().map(occurrence).collect(),
            to: occurrence(&cycle[last]),
            branch: None,
            times,
        });
        for pair in cycle.windows(2) {
            self.detach(pair[0], pair[1]);
            self.end(pair[1]);
        }
        let node = &mut self.nodes[top];
        node.busy_since = Some(message.received);
        node.n_requests = node.n_requests.saturating_add(1);
        let isolated = node.parent.is_none() && node.children.is_empty() && node.n_in_flight == 0;
        if isolated && node.originator {
            self.remove(top);
        }
        self.work.extend(cycle);
        self.settle();
    }

    fn note_callback(&mut self, message: &Message) {
        if message.operation.is_some_and(|operation| self.units.was_requested(message.receiver, operation)) {
            self.notes.add(Oddity::CallbackAsReply, Place::Reception(message.receiver, message.received));
        }
    }

    /// The occurrence replied or forwarded; it may come back in a second phase.
    fn end(&mut self, node: NodeId) {
        let Node { occurrence, unit, busy_since, .. } = self.nodes[node];
        let unit = self.units.at(unit);
        if unit.live == Some(node) {
            unit.live = None;
            unit.ended = (self.second_phase == SecondPhase::Detect).then_some((occurrence, busy_since));
        }
        self.nodes[node].state = State::Zombie;
    }

    fn detach(&mut self, parent: NodeId, child: NodeId) {
        let children = &mut self.nodes[parent].children;
        if children.last() == Some(&child) {
            children.pop();
        } else if let Some(position) = children.iter().rposition(|c| *c == child) {
            children.remove(position);
        }
        self.nodes[child].parent = None;
    }
}
