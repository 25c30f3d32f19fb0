//! Events to recordings that are complete.
//!
//! What is handed over stands for itself: with what was met since the recording before, in its order. Who takes recordings in
//! their order gives every name the number that nodes have for it, and every task the service that it had at that time.

use std::collections::VecDeque;

use super::{
    TlcOptions,
    live::{Live, NONE, Numbers},
    report::EventCounts,
    tasks::Tasks,
};
use crate::{
    structure::steps::Whole,
    trace::{angio::AngioEvent, diagnostics::Diagnostics, hashed::HashMap, names::Names},
};

/// Which recording: whether it is named by its trace, and that name (else its scenario).
pub(super) type Key = (bool, Box<str>);

/// A name that was given a number, or what is newly known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum New {
    /// Task and service.
    Task(Box<str>, Box<str>),
    Operation(Box<str>),
    Scenario(Box<str>),
}

/// What was met since the recording before.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub(super) names: Vec<New>,
    pub(super) diagnostics: Diagnostics,
}

/// A recording that is complete, or that there is no more room for.
#[derive(Debug)]
pub(in crate::structure) struct Complete {
    pub(super) key: Key,
    pub(super) live: Live,
    pub(super) news: News,
}

impl Whole for Complete {
    fn n_events(&self) -> usize {
        self.live.nodes.len()
    }
}

/// What the numbers of another collector are here, shape `(n_names,)` each.
pub(super) struct NumbersHere {
    pub(super) tasks: Vec<u32>,
    pub(super) processes: Vec<u32>,
    pub(super) operations: Vec<u32>,
    pub(super) activities: Vec<u32>,
    pub(super) scenarios: Vec<u32>,
}

/// A recording that is not complete.
#[derive(Clone, Debug)]
struct Open {
    key: Key,
    live: Live,
}

/// Recordings that are not complete.
#[derive(Clone, Debug, Default)]
pub(in crate::structure) struct Collector {
    options: TlcOptions,
    pub(super) tasks: Tasks,
    pub(super) operations: Names,
    pub(super) activities: Names,
    pub(super) scenarios: Names,
    /// The last event's scenario and activity: the next one's are often the same.
    last_scenario: u32,
    last_activity: u32,
    /// Slots by scenario and by trace.
    slot_of: [HashMap<Box<str>, u32>; 2],
    slots: Vec<Option<Open>>,
    free: Vec<u32>,
    /// The slot of the last event.
    last: u32,
    /// Recordings in the order in which they began, with their ages and slots; those that are complete stay for a while.
    order: VecDeque<(u64, u32)>,
    next_age: u64,
    n_live_events: usize,
    /// Events that came in, and those that were there already.
    pub(super) events: EventCounts,
    news: News,
}

impl Collector {
    pub(super) fn new(options: TlcOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Events held.
    pub(super) fn n_live_events(&self) -> usize {
        self.n_live_events
    }

    /// Recordings whose order is remembered.
    #[cfg(test)]
    pub(super) fn n_ordered(&self) -> usize {
        self.order.len()
    }

    /// Takes an event; a recording that it completes goes to `out`.
    pub(in crate::structure) fn feed(&mut self, event: &AngioEvent<'_>, out: &mut dyn FnMut(Complete)) {
        self.events.read += 1;
        let demand = event.demand.or_else(|| self.options.resource_functions.get(event.activity).copied());
        let event = &AngioEvent { demand, ..*event };
        let (numbers, scenario) = self.numbers(event);
        let is_trace = !event.trace.is_empty();
        let name = if is_trace { event.trace } else { event.scenario };
        let slot = self.slot(is_trace, name).unwrap_or_else(|| self.begin((is_trace, name.into()), scenario));
        self.last = slot;
        let Some(Open { live, .. }) = &mut self.slots[slot as usize] else { return };
        let diagnostics = &mut self.news.diagnostics;
        if live.scenario != scenario {
            diagnostics.add("scenario_differs", "events of one trace name several scenarios: the first counts", || name.to_owned());
        }
        if !live.add(event, numbers) {
            self.events.duplicate += 1;
            let example = || format!("{name}: thread {}, node {}", event.thread, event.thread_node);
            diagnostics.add("duplicate_node", "nodes were recorded several times: the first counts", example);
            return;
        }
        self.n_live_events += 1;
        if live.is_complete() {
            self.complete(slot, out);
        } else if self.n_live_events > self.options.live_events_limit {
            self.complete_oldest(out);
        }
    }

    /// The numbers of an event's texts and of its scenario; what is new is noted.
    fn numbers(&mut self, event: &AngioEvent<'_>) -> (Numbers, u32) {
        let (task, is_news) = self.tasks.intern(event);
        if is_news {
            self.news.names.push(New::Task(event.task.into(), event.service.into()));
        }
        let known = (self.operations.len(), self.scenarios.len());
        let operation = if event.operation.is_empty() { NONE } else { self.operations.intern(event.operation) };
        let activity = if event.activity.is_empty() { NONE } else { number(&mut self.activities, event.activity, &mut self.last_activity) };
        let scenario = number(&mut self.scenarios, event.scenario, &mut self.last_scenario);
        if self.operations.len() > known.0 {
            self.news.names.push(New::Operation(event.operation.into()));
        }
        if self.scenarios.len() > known.1 {
            self.news.names.push(New::Scenario(event.scenario.into()));
        }
        (Numbers { task, operation, activity }, scenario)
    }

    /// What no recording has told yet.
    pub(super) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Takes over the names of another; what its numbers are here.
    pub(super) fn merge_names(&mut self, other: &Self) -> NumbersHere {
        let (tasks, processes) = self.tasks.merge(&other.tasks);
        let renumber = |names: &mut Names, other: &Names| -> Vec<u32> { other.iter().map(|name| names.intern(name)).collect() };
        NumbersHere {
            tasks,
            processes,
            operations: renumber(&mut self.operations, &other.operations),
            activities: renumber(&mut self.activities, &other.activities),
            scenarios: renumber(&mut self.scenarios, &other.scenarios),
        }
    }

    /// Goes on with the recordings of another, whose names were taken over.
    pub(super) fn merge(&mut self, mut other: Self, numbers: &NumbersHere, out: &mut dyn FnMut(Complete)) {
        self.events.read += other.events.read;
        self.events.duplicate += other.events.duplicate;
        for (age, slot) in std::mem::take(&mut other.order) {
            if !other.is_of_age(slot, age) {
                continue;
            }
            let Some(Open { key, live }) = other.take(slot) else { continue };
            let known = self.slot(key.0, &key.1);
            let slot = known.unwrap_or_else(|| self.begin(key.clone(), numbers.scenarios[live.scenario as usize]));
            let Some(Open { live: into, .. }) = &mut self.slots[slot as usize] else { continue };
            into.note_weight(live.weight);
            let new = |numbers: &[u32], number: u32| numbers.get(number as usize).copied().unwrap_or(NONE);
            for node in &live.nodes {
                let numbers = Numbers {
                    task: new(&numbers.tasks, node.task),
                    operation: new(&numbers.operations, node.operation),
                    activity: new(&numbers.activities, node.activity),
                };
                if into.add_of(&live, *node, numbers) {
                    self.n_live_events += 1;
                } else {
                    self.events.duplicate += 1;
                    let message = "nodes were recorded several times: the first counts";
                    self.news.diagnostics.add("duplicate_node", message, || key.1.to_string());
                }
            }
            if into.is_complete() {
                self.complete(slot, out);
            }
        }
        while self.n_live_events > self.options.live_events_limit && self.complete_oldest(out) {}
    }

    /// Hands over what is not complete as it stands.
    pub(in crate::structure) fn complete_all(&mut self, out: &mut dyn FnMut(Complete)) {
        for (age, slot) in std::mem::take(&mut self.order) {
            if self.is_of_age(slot, age) {
                let message = "recordings were not complete at the end: they were analysed as they stand";
                self.note(slot, "incomplete_recording", message);
                self.complete(slot, out);
            }
        }
    }

    /// The slot of a recording that was begun.
    fn slot(&self, is_trace: bool, name: &str) -> Option<u32> {
        let of_last = self.slots.get(self.last as usize).and_then(Option::as_ref);
        if of_last.is_some_and(|open| open.key.0 == is_trace && *open.key.1 == *name) {
            return Some(self.last);
        }
        self.slot_of[usize::from(is_trace)].get(name).copied()
    }

    fn begin(&mut self, key: Key, scenario: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slot_of[usize::from(key.0)].insert(key.1.clone(), slot);
        self.slots[slot as usize] = Some(Open { key, live: Live::new(scenario, self.next_age) });
        self.order.push_back((self.next_age, slot));
        self.next_age += 1;
        let n_live = self.slots.len() - self.free.len();
        if self.order.len() > 2 * n_live + 64 {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|(age, slot)| self.is_of_age(*slot, *age));
            self.order = order;
        }
        slot
    }

    fn is_of_age(&self, slot: u32, age: u64) -> bool {
        self.slots[slot as usize].as_ref().is_some_and(|open| open.live.age == age)
    }

    fn note(&mut self, slot: u32, code: &'static str, message: &'static str) {
        if let Some(open) = &self.slots[slot as usize] {
            self.news.diagnostics.add(code, message, || open.key.1.to_string());
        }
    }

    fn take(&mut self, slot: u32) -> Option<Open> {
        let open = self.slots[slot as usize].take()?;
        self.slot_of[usize::from(open.key.0)].remove(&open.key.1);
        self.free.push(slot);
        Some(open)
    }

    /// Hands the oldest recording over as it stands; `false` if there is none.
    fn complete_oldest(&mut self, out: &mut dyn FnMut(Complete)) -> bool {
        while let Some((age, slot)) = self.order.pop_front() {
            if self.is_of_age(slot, age) {
                let message = "recordings were analysed before they were complete, as too many events were held";
                self.note(slot, "live_events_limit", message);
                self.complete(slot, out);
                return true;
            }
        }
        false
    }

    /// Hands a recording over and forgets it.
    fn complete(&mut self, slot: u32, out: &mut dyn FnMut(Complete)) {
        let Some(Open { key, live }) = self.take(slot) else { return };
        self.n_live_events -= live.nodes.len();
        out(Complete { key, live, news: self.take_news() });
    }
}

/// The number of a text that is often the last one again.
fn number(names: &mut Names, text: &str, last: &mut u32) -> u32 {
    if names.is_empty() || names.name(*last) != text {
        *last = names.intern(text);
    }
    *last
}
