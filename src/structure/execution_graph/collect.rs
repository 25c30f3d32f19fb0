//! Events to operations that are whole.

use std::collections::{VecDeque, hash_map::Entry};

use super::{
    graph::{Graph, Keys, Node},
    operations::OperationSet,
    workload::EventCounts,
};
use crate::{
    structure::steps::Whole,
    trace::{diagnostics::Diagnostics, event_trace::Event, hashed::HashMap},
};

/// What events tell, in their order.
#[derive(Debug)]
pub(in crate::structure) enum Met {
    /// Task and entry of the next event, which were not met before: they get the next number.
    Key(Box<str>, Box<str>),
    Event(Numbered),
}

impl Whole for Met {}

/// An event with the number of its task and entry.
#[derive(Clone, Copy, Debug)]
pub(in crate::structure) struct Numbered {
    operation: u64,
    thread: u64,
    node: Node,
}

/// Numbers tasks and entries as they are met.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Intake {
    pub(super) keys: Keys,
}

impl Intake {
    /// Hands on what an event tells.
    pub(in crate::structure) fn feed(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Met)) {
        let n_known = self.keys.len();
        let key = self.keys.intern(event.task, event.entry);
        if self.keys.len() > n_known {
            out(Met::Key(event.task.into(), event.entry.into()));
        }
        out(Met::Event(Numbered { operation: event.operation, thread: event.thread, node: Node::of(event, key) }));
    }
}

/// An operation that is whole, or that there is no more room for.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) number: u64,
    pub(super) graph: Graph,
    /// What was odd since the operation before.
    pub(super) diagnostics: Diagnostics,
}

/// The operations that are not whole yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    max_live_events: usize,
    live: HashMap<u64, Graph>,
    n_live_events: usize,
    /// Live operations by their first event, among others that are over.
    by_age: VecDeque<u64>,
    over: OperationSet,
    /// Events that came in, and those that came too late.
    pub(super) events: EventCounts,
    diagnostics: Diagnostics,
}

impl Collector {
    pub(super) fn new(max_live_events: usize) -> Self {
        Self { max_live_events, ..Self::default() }
    }

    /// Events held.
    pub(super) fn n_live_events(&self) -> usize {
        self.n_live_events
    }

    /// Takes the next event, of one of `keys`; an operation that it makes whole goes to `out`.
    pub(super) fn add(&mut self, event: Numbered, keys: &Keys, out: &mut dyn FnMut(Complete)) {
        self.events.fed += 1;
        let Numbered { operation: number, thread, node } = event;
        let graph = match self.live.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if self.over.contains(number) => return self.note_late(number, thread, node.index),
            Entry::Vacant(new) => {
                self.by_age.push_back(number);
                new.insert(Graph::default())
            }
        };
        graph.add(thread, node);
        self.n_live_events += 1;
        if graph.is_whole(keys) {
            self.complete(number, out);
        }
        self.make_room(out);
    }

    fn note_late(&mut self, operation: u64, thread: u64, index: u64) {
        self.events.late += 1;
        let message = "events of operations that were whole, or had been cut, were left out";
        self.diagnostics.add("late_event", message, || format!("operation {operation}, thread {thread}, event {index}"));
    }

    /// Hands an operation over and forgets it.
    fn complete(&mut self, number: u64, out: &mut dyn FnMut(Complete)) {
        let Some(graph) = self.live.remove(&number) else { return };
        self.n_live_events -= graph.n_events;
        self.over.insert(number);
        out(Complete { number, graph, diagnostics: self.take_diagnostics() });
    }

    /// What no operation has told yet.
    pub(super) fn take_diagnostics(&mut self) -> Diagnostics {
        std::mem::take(&mut self.diagnostics)
    }

    /// Cuts the oldest operations until no more events are kept than may be.
    fn make_room(&mut self, out: &mut dyn FnMut(Complete)) {
        while self.n_live_events > self.max_live_events {
            let Some(oldest) = self.by_age.pop_front() else { break };
            if self.live.contains_key(&oldest) {
                let message = "operations were taken as they were, to make room: more events were incomplete than are kept";
                self.diagnostics.add("operation_cut", message, || format!("operation {oldest}"));
                self.complete(oldest, out);
            }
        }
        if self.by_age.len() > 2 * self.live.len() + 1024 {
            let live = &self.live;
            self.by_age.retain(|number| live.contains_key(number));
        }
    }

    /// Hands over what is left as it is.
    pub(super) fn complete_all(&mut self, out: &mut dyn FnMut(Complete)) {
        let mut left: Vec<u64> = self.live.keys().copied().collect();
        left.sort_unstable();
        for number in left {
            self.complete(number, out);
        }
    }

    /// Goes on with the operations of another, whose keys were taken over.
    pub(super) fn merge(&mut self, other: Self, key_of: &[u32]) {
        self.events.fed += other.events.fed;
        self.events.late += other.events.late;
        let mut live = other.live;
        for number in other.by_age {
            let Some(graph) = live.remove(&number) else { continue };
            if self.over.contains(number) {
                self.note_all_late(number, &graph);
                continue;
            }
            self.n_live_events += graph.n_events;
            if !self.live.contains_key(&number) {
                self.by_age.push_back(number);
            }
            self.live.entry(number).or_default().merge(graph, key_of);
        }
        let over_there: Vec<u64> = self.live.keys().copied().filter(|number| other.over.contains(*number)).collect();
        for number in over_there {
            if let Some(graph) = self.live.remove(&number) {
                self.n_live_events -= graph.n_events;
                self.note_all_late(number, &graph);
            }
        }
        self.over.merge(other.over);
    }

    fn note_all_late(&mut self, operation: u64, graph: &Graph) {
        for (thread, known) in &graph.threads {
            known.nodes.iter().for_each(|node| self.note_late(operation, *thread, node.index));
        }
    }
}
