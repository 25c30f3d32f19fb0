//! The interaction trees of one trace at a time.

use std::collections::{HashSet, VecDeque};

use crate::{
    structure::{
        SecondPhase,
        interactions::{Interaction, InteractionKind, Occurrence},
    },
    trace::{
        Time,
        diagnostics::Diagnostics,
        names::Names,
        same::{LocalEvent, Message},
    },
};

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
    /// Which message of the trace, in order of sending, the arc from `parent` is.
    arc_number: u64,
    /// In the order in which their messages were sent.
    children: Vec<NodeId>,
    /// Messages sent and not yet received.
    n_in_flight: u32,
    n_local_events: u32,
    /// Since when it works, where that is known.
    busy_since: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct UnitState {
    live: Option<NodeId>,
    /// Occurrences so far.
    n_occurrences: u32,
    /// The occurrence that ended last, if nothing was accepted since, and when it sent its last message.
    ended: Option<(usize, Option<Time>)>,
}

/// A message between its sending and its reception.
#[derive(Clone, Debug)]
pub(super) struct Transit {
    sender: NodeId,
    occurrence: usize,
    phase: u8,
    n_local_events: u32,
    number: u64,
}

/// The trees, and what was found so far.
#[derive(Debug)]
pub(super) struct Forest<'n> {
    names: &'n Names,
    second_phase: SecondPhase,
    trace: u32,
    trace_name: &'n str,
    units: Vec<UnitState>,
    touched_units: Vec<u32>,
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    work: VecDeque<NodeId>,
    /// Operations by which each unit was requested.
    requested: HashSet<(u32, u32)>,
    /// Messages sent so far.
    n_sent: u64,
    occurrences: Vec<Occurrence>,
    interactions: Vec<Interaction>,
    diagnostics: Diagnostics,
}

impl<'n> Forest<'n> {
    /// No trees yet; `names` are those of the units, for diagnostics.
    pub(super) fn new(names: &'n Names, second_phase: SecondPhase) -> Self {
        Self {
            names,
            second_phase,
            trace: 0,
            trace_name: "",
            units: vec![UnitState::default(); names.len()],
            touched_units: Vec::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            work: VecDeque::new(),
            requested: HashSet::new(),
            n_sent: 0,
            occurrences: Vec::new(),
            interactions: Vec::new(),
            diagnostics: Diagnostics::default(),
        }
    }

    /// A trace starts: its name is for diagnostics.
    pub(super) fn begin_trace(&mut self, name: &'n str) {
        self.trace_name = name;
    }

    /// A message, at the time of its reception.
    pub(super) fn message(&mut self, message: &Message) {
        if let Some(transit) = self.send(message) {
            self.receive(transit, message);
        }
    }

    /// The sending of a message: closes a cycle if it can, else the message is on its way.
    pub(super) fn send(&mut self, message: &Message) -> Option<Transit> {
        if let Some(cycle) = self.cycle(message.sender, message.receiver) {
            self.account_send(*cycle.last()?, message.sent);
            self.close(&cycle, message);
            return None;
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
    pub(super) fn receive(&mut self, transit: Transit, message: &Message) {
        let sender = self.still_there(&transit);
        let receiver = &mut self.units[message.receiver as usize];
        receiver.ended = None;
        if let Some(old) = receiver.live.take() {
            self.note_displaced(old, sender);
            self.nodes[old].state = State::Zombie;
            self.work.push_back(old);
        }
        let new = self.create(message.receiver, message.operation, false);
        self.nodes[new].busy_since = Some(message.received);
        if let Some(operation) = message.operation {
            self.requested.insert((message.receiver, operation));
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
        let Some(node) = self.units[event.unit as usize].live else { return };
        self.account_send(node, Some(event.time));
        self.nodes[node].n_local_events += 1;
        for index in 0..self.nodes[node].children.len() {
            let child = self.nodes[node].children[index];
            self.nodes[child].arc_nonblocking = true;
        }
    }

    /// The trace is over: arcs that are left are asynchronous, and the next trace starts afresh.
    pub(super) fn end_trace(&mut self) {
        let mut left: Vec<&Node> = self.nodes.iter().filter(|node| node.state != State::Gone && node.parent.is_some()).collect();
        left.sort_by_key(|node| (node.arc_time, node.occurrence));
        let arcs = left.iter().filter_map(|node| {
            let parent = &self.nodes[node.parent?];
            Some(asynchronous(parent.phase, parent.occurrence, node.occurrence, node.arc_time))
        });
        self.interactions.extend(arcs);
        self.nodes.clear();
        self.free.clear();
        for unit in self.touched_units.drain(..) {
            self.units[unit as usize] = UnitState::default();
        }
        self.trace += 1;
    }

    /// What was found in all traces.
    pub(super) fn finish(self) -> (Vec<Occurrence>, Vec<Interaction>, Diagnostics) {
        (self.occurrences, self.interactions, self.diagnostics)
    }

    /// The path from the receiver's live occurrence down to the sender's, if a message would close it to a cycle.
    fn cycle(&self, sender: u32, receiver: u32) -> Option<Vec<NodeId>> {
        let top = self.units[receiver as usize].live?;
        let mut path = vec![self.units[sender as usize].live?];
        loop {
            let node = &self.nodes[*path.last()?];
            let parent = node.parent?;
            path.push(parent);
            if parent == top {
                path.reverse();
                return (!node.arc_nonblocking).then_some(path);
            }
        }
    }

    /// The occurrence that sends: the live one, the second phase of the last one, or a new originator.
    fn bind_sender(&mut self, unit: u32) -> NodeId {
        let state = &mut self.units[unit as usize];
        if let Some(node) = state.live {
            return node;
        }
        match state.ended.take() {
            Some((occurrence, ended)) if self.second_phase == SecondPhase::Detect => {
                let node = self.insert(unit, occurrence, 2, false);
                self.nodes[node].busy_since = ended;
                self.units[unit as usize].live = Some(node);
                node
            }
            _ => self.create(unit, None, true),
        }
    }

    /// A new occurrence, live and without arcs.
    fn create(&mut self, unit: u32, operation: Option<u32>, originator: bool) -> NodeId {
        let state = &mut self.units[unit as usize];
        if state.n_occurrences == 0 {
            self.touched_units.push(unit);
        }
        state.n_occurrences += 1;
        let number = state.n_occurrences;
        if originator && number > 1 {
            let (names, trace) = (self.names, self.trace_name);
            self.diagnostics.add("originator_split", "tasks began several interactions: each counts as one cycle of a customer", || {
                format!("{trace}: {}.{number}", names.name(unit))
            });
        }
        let occurrence = self.occurrences.len();
        self.occurrences.push(Occurrence { unit, number, trace: self.trace, operation, originator, self_time_ticks: [None; 2] });
        let node = self.insert(unit, occurrence, 1, originator);
        self.units[unit as usize].live = Some(node);
        node
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
            busy_since: None,
        };
        match self.free.pop() {
            Some(slot) => {
                self.nodes[slot] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    fn remove(&mut self, node: NodeId) {
        let unit = &mut self.units[self.nodes[node].unit as usize];
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
        let (names, trace, unit) = (self.names, self.trace_name, self.nodes[old].unit);
        let number = self.occurrences[self.nodes[old].occurrence].number;
        let example = || format!("{trace}: {}.{number}", names.name(unit));
        let meets_its_own_flow = sender.is_some_and(|sender| self.root(sender) == self.root(old) && !self.is_above(sender, old));
        if meets_its_own_flow {
            let message = "branches of one flow met in a task; that they join is not seen, they are kept as parallel paths";
            self.diagnostics.add("join_not_detected", message, example);
        } else if self.nodes[parent].state == State::Live {
            let message = "tasks accepted a request while the client of the former one was unanswered: \
                           are the times those of arrival rather than acceptance, or threads not told apart?";
            self.diagnostics.add("zombie_on_pending", message, example);
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
        let occurrences: Vec<usize> = cycle.iter().map(|node| self.nodes[*node].occurrence).collect();
        let mut times: Vec<Time> = cycle[1..].iter().map(|node| self.nodes[*node].arc_time).collect();
        times.push(message.received);
        let (top, last) = (cycle[0], cycle.len() - 1);
        self.interactions.push(Interaction {
            kind: if cycle.len() == 2 { InteractionKind::Sync } else { InteractionKind::Forward },
            phase: self.nodes[top].phase,
            from: occurrences[0],
            via: occurrences[1..last].to_vec(),
            to: occurrences[last],
            branch: None,
            times,
        });
        for pair in cycle.windows(2) {
            self.detach(pair[0], pair[1]);
            self.end(pair[1]);
        }
        self.nodes[top].busy_since = Some(message.received);
        let node = &self.nodes[top];
        let isolated = node.parent.is_none() && node.children.is_empty() && node.n_in_flight == 0;
        if isolated && node.originator {
            self.remove(top);
        }
        self.work.extend(cycle);
        self.settle();
    }

    fn note_callback(&mut self, message: &Message) {
        if message.operation.is_some_and(|operation| self.requested.contains(&(message.receiver, operation))) {
            let (names, trace, received) = (self.names, self.trace_name, message.received);
            let text = "messages of a type that their receiver also takes as a request were read as replies";
            self.diagnostics.add("callback_as_reply", text, || format!("{trace}: to {} at {received}", names.name(message.receiver)));
        }
    }

    /// The occurrence replied or forwarded; it may come back in a second phase.
    fn end(&mut self, node: NodeId) {
        let Node { occurrence, unit, busy_since, .. } = self.nodes[node];
        let unit = &mut self.units[unit as usize];
        if unit.live == Some(node) {
            (unit.live, unit.ended) = (None, Some((occurrence, busy_since)));
        }
        self.nodes[node].state = State::Zombie;
    }

    fn detach(&mut self, parent: NodeId, child: NodeId) {
        let children = &mut self.nodes[parent].children;
        if let Some(position) = children.iter().rposition(|c| *c == child) {
            children.remove(position);
        }
        self.nodes[child].parent = None;
    }

    /// Cleanup: applies the rules of step 3 to all nodes that were touched until none applies.
    fn settle(&mut self) {
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
    /// the one attached last, where messages wait before they are accepted; nor be live, where it has forwarded.
    fn keep_candidate(&mut self, root: NodeId) {
        let children = self.nodes[root].children.clone();
        let candidate = children.last().copied();
        for child in children.into_iter().filter(|child| Some(*child) != candidate) {
            if self.nodes[child].state == State::Live {
                let (names, trace, unit) = (self.names, self.trace_name, self.nodes[root].unit);
                let message = "tasks that nothing requested sent to several others at once: all but the last are read as asynchronous";
                self.diagnostics.add("root_fanout_async", message, || format!("{trace}: {}", names.name(unit)));
            }
            self.send_off(root, child);
            self.work.push_back(child);
        }
    }

    /// The arc between the two is an asynchronous message.
    fn send_off(&mut self, parent: NodeId, child: NodeId) {
        let (from, to) = (&self.nodes[parent], &self.nodes[child]);
        self.interactions.push(asynchronous(from.phase, from.occurrence, to.occurrence, to.arc_time));
        self.detach(parent, child);
    }
}

fn asynchronous(phase: u8, from: usize, to: usize, time: Time) -> Interaction {
    Interaction { kind: InteractionKind::Async, phase, from, via: Vec::new(), to, branch: None, times: vec![time] }
}

#[cfg(test)]
impl Forest<'_> {
    /// What must hold after every step, as text if it does not.
    pub(super) fn broken_invariant(&self) -> Option<String> {
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
            if zombie == (self.units[node.unit as usize].live == Some(index)) {
                return Some(format!("live mark {node:?}"));
            }
        }
        None
    }

    /// Nodes in the trees, and slots ever used.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.nodes.len() - self.free.len(), self.nodes.len())
    }

    /// Interactions found so far.
    pub(super) fn found(&self) -> &[Interaction] {
        &self.interactions
    }
}
