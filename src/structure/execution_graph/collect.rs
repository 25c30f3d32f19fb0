//! Events to operations that are whole.
//!
//! What is handed over stands for itself: with what was met since the operation before, in its order. Who takes operations in
//! their order gives every pair of task and entry the number that nodes have for it.

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

/// What was met since the operation before.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// Tasks and entries.
    pub(super) keys: Vec<(Box<str>, Box<str>)>,
    pub(super) diagnostics: Diagnostics,
}

/// An operation that is whole, or that there is no more room for.
#[derive(Debug)]
pub(in crate::structure) struct Complete {
    pub(super) number: u64,
    pub(super) graph: Graph,
    pub(super) news: News,
}

impl Whole for Complete {
    fn n_events(&self) -> usize {
        self.graph.n_events
    }
}

/// The operations that are not whole yet.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Collector {
    max_live_events: usize,
    pub(super) keys: Keys,
    live: HashMap<u64, Graph>,
    n_live_events: usize,
    /// Live operations by their first event, among others that are over.
    by_age: VecDeque<u64>,
    over: OperationSet,
    /// Events that came in, and those that came too late.
    pub(super) events: EventCounts,
    news: News,
}

impl Collector {
    pub(super) fn new(max_live_events: usize) -> Self {
        Self { max_live_events, ..Self::default() }
    }

    /// Events held.
    pub(super) fn n_live_events(&self) -> usize {
        self.n_live_events
    }

    /// Takes the next event; an operation that it makes whole goes to `out`.
    pub(in crate::structure) fn feed(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Complete)) {
        self.events.fed += 1;
        let n_known = self.keys.len();
        let key = self.keys.intern(event.task, event.entry);
        if self.keys.len() > n_known {
            self.news.keys.push((event.task.into(), event.entry.into()));
        }
        let number = event.operation;
        let graph = match self.live.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if self.over.contains(number) => {
                let Event { thread, index, .. } = *event;
                return self.note_late(number, thread, index);
            }
            Entry::Vacant(new) => {
                self.by_age.push_back(number);
                new.insert(Graph::default())
            }
        };
        graph.add(event.thread, Node::of(event, key));
        self.n_live_events += 1;
        if graph.is_whole(&self.keys) {
            self.complete(number, out);
        }
        self.make_room(out);
    }

    fn note_late(&mut self, operation: u64, thread: u64, index: u64) {
        self.events.late += 1;
        let message = "events of operations that were whole, or had been cut, were left out";
        self.news.diagnostics.add("late_event", message, || format!("operation {operation}, thread {thread}, event {index}"));
    }

    /// Hands an operation over and forgets it.
    fn complete(&mut self, number: u64, out: &mut dyn FnMut(Complete)) {
        let Some(graph) = self.live.remove(&number) else { return };
        self.n_live_events -= graph.n_events;
        self.over.insert(number);
        out(Complete { number, graph, news: self.take_news() });
    }

    /// What no operation has told yet.
    pub(super) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Cuts the oldest operations until no more events are kept than may be.
    fn make_room(&mut self, out: &mut dyn FnMut(Complete)) {
        while self.n_live_events > self.max_live_events {
            let Some(oldest) = self.by_age.pop_front() else { break };
            if self.live.contains_key(&oldest) {
                let message = "operations were taken as they were, to make room: more events were incomplete than are kept";
                self.news.diagnostics.add("operation_cut", message, || format!("operation {oldest}"));
                self.complete(oldest, out);
            }
        }
        if self.by_age.len() > 2 * self.live.len() + 1024 {
            let live = &self.live;
            self.by_age.retain(|number| live.contains_key(number));
        }
    }

    /// Hands over what is left as it is.
    pub(in crate::structure) fn complete_all(&mut self, out: &mut dyn FnMut(Complete)) {
        let mut left: Vec<u64> = self.live.keys().copied().collect();
        left.sort_unstable();
        for number in left {
            self.complete(number, out);
        }
    }

    /// Takes over the keys of another; what its numbers are here.
    pub(super) fn merge_keys(&mut self, other: &Self) -> Vec<u32> {
        let number = |key: usize| {
            let (task, entry) = other.keys.names(u32::try_from(key).unwrap_or(u32::MAX));
            self.keys.intern(task, entry)
        };
        (0..other.keys.len()).map(number).collect()
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
