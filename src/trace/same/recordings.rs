//! The recordings of a log while it is read: what arrives to steps, in bounded memory.
//!
//! Input: what the rows say ([`super::arrivals`]); output: of every recording its steps in order of time ([`super::steps`]), and its beginning and end. Two
//! windows hold back what may not be in order: one of the ends of messages before they are paired, one of the messages.
//! A log that fits in is put in order as a whole; what comes later than a window allows is counted and taken when it comes.
//!
//! | bound | of |
//! |---|---|
//! | [`Windows::events`] | each window of a recording, and the ends that wait for the other end |
//! | [`Windows::all_events`] | all of these together: the recording that was quiet longest gives up half of what it holds |
//! | [`Windows::recordings`] | recordings at once: the one that was quiet longest is closed; if it goes on, it does so anew |

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};

use super::{
    LogStep, ReadOptions, Sink, Step, Times, What, Windows,
    arrivals::{Arrival, Label},
    recording::{Recording, Shared},
};
use crate::trace::{
    hashed::{HashMap, HashSet},
    names::Names,
    units::Units,
};

/// Closed recordings that are remembered, at the least.
const CLOSED_REMEMBERED: usize = 1 << 18;

/// The names that stand in logs, by number.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// The sequential units that exchange messages.
    pub units: Units,
    /// Message types.
    pub operations: Names,
    /// Scenarios, in order of first appearance.
    pub scenarios: Names,
}

/// Recordings that were closed, of late.
#[derive(Debug, Default)]
struct Closed {
    hasher: RandomState,
    newer: HashSet<u64>,
    older: HashSet<u64>,
}

impl Closed {
    fn add(&mut self, key: &str) {
        if self.newer.len() >= CLOSED_REMEMBERED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(self.hasher.hash_one(key));
    }

    fn contains(&self, key: &str) -> bool {
        let hash = self.hasher.hash_one(key);
        self.newer.contains(&hash) || self.older.contains(&hash)
    }

    fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }
}

/// All that is held of logs while they are read.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    windows: Windows,
    times: Times,
    pub(super) shared: Shared,
    slots: Vec<Option<Box<Recording>>>,
    free: Vec<usize>,
    by_key: HashMap<Box<str>, usize>,
    closed: Closed,
    /// What the sources at hand are called.
    label: Label,
    /// What the next messages and events name their recording by, and what that is of.
    key: String,
    scenario: String,
    /// Recordings by their last row: all, and those that hold something in their windows.
    by_last_row: BTreeMap<u64, usize>,
    holding: BTreeMap<u64, usize>,
    n_switches: u64,
    /// The recording at hand, if it is among those that hold something.
    current: Option<usize>,
    n_held: usize,
    /// Which of the keys "" and the source's stem was seen first: both name a recording after its source.
    first_plain: Option<Box<str>>,
}

impl Recordings {
    pub(super) fn new(options: &ReadOptions) -> Self {
        let Windows { events, all_events, recordings } = options.windows;
        let windows = Windows { events: events.max(1), all_events, recordings: recordings.max(1) };
        Self { windows, times: options.times, ..Self::default() }
    }

    /// Takes what comes next.
    pub(crate) fn take<T: AsRef<str>>(&mut self, arrival: &Arrival<T>, sink: &mut Sink<'_>) {
        let Vocabulary { units, operations, .. } = &mut self.shared.vocabulary;
        match arrival {
            Arrival::Message(message, seq, mark) => self.add(sink, |recording, shared| recording.message(*message, *seq, *mark, shared)),
            Arrival::Event(event) => self.add(sink, |recording, shared| recording.event(*event, shared)),
            Arrival::Unit { process, thread } => _ = units.intern(process.as_ref(), thread.as_ref()),
            Arrival::Process(name) => _ = units.processes.intern(name.as_ref()),
            Arrival::Operation(name) => _ = operations.intern(name.as_ref()),
            Arrival::Recording { key, scenario } => {
                key.as_ref().clone_into(&mut self.key);
                scenario.as_ref().clone_into(&mut self.scenario);
                self.current = None;
            }
            Arrival::Odd { code, message, example } => self.shared.diagnostics.add(code, message, || example.as_ref().to_owned()),
            Arrival::Begin(label) => self.label = label.clone(),
            Arrival::End => self.close_all(sink),
        }
    }

    /// Adds something to the recording at hand, and makes room where too much is held after.
    fn add(&mut self, sink: &mut Sink<'_>, add: impl FnOnce(&mut Recording, &mut Shared)) {
        let (slot, most) = (self.at_hand(sink), self.windows.events);
        self.with(slot, |recording, shared| {
            add(recording, shared);
            recording.release(most, most, most, shared, &mut steps_of(slot, sink));
        });
        while self.n_held > self.windows.all_events {
            self.give_up_some(sink);
        }
    }

    /// Ends all recordings, in the order in which they began.
    pub(super) fn close_all(&mut self, sink: &mut Sink<'_>) {
        let mut open: Vec<(u64, usize)> =
            self.slots.iter().enumerate().filter_map(|(slot, recording)| Some((recording.as_ref()?.opened, slot))).collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.close(slot, sink);
        }
        self.closed.clear();
        self.first_plain = None;
    }

    /// Does something with a recording, and counts what it holds after.
    fn with(&mut self, slot: usize, act: impl FnOnce(&mut Recording, &mut Shared)) {
        if let Some(recording) = &mut self.slots[slot] {
            let before = recording.n_held();
            act(recording, &mut self.shared);
            self.n_held = self.n_held + recording.n_held() - before;
        }
    }

    /// Makes room: the recording that was quiet longest gives up half of what it holds, or is closed.
    fn give_up_some(&mut self, sink: &mut Sink<'_>) {
        let Some((row, slot)) = self.holding.first_key_value().map(|(row, slot)| (*row, *slot)) else {
            if let Some(slot) = self.by_last_row.first_key_value().map(|(_, slot)| *slot) {
                self.close(slot, sink);
            }
            return;
        };
        let (limit, mut is_empty) = (self.windows.events, false);
        self.with(slot, |recording, shared| {
            recording.release_half(limit, shared, &mut steps_of(slot, sink));
            is_empty = recording.n_in_windows() == 0;
        });
        if is_empty {
            self.holding.remove(&row);
            self.current = self.current.filter(|current| *current != slot);
        }
    }

    fn close(&mut self, slot: usize, sink: &mut Sink<'_>) {
        let limit = self.windows.events;
        self.with(slot, |recording, shared| {
            recording.end(limit, shared, &mut steps_of(slot, sink));
        });
        let Some(recording) = self.slots[slot].take() else { return };
        self.n_held -= recording.n_held();
        self.free.push(slot);
        self.by_key.remove(&recording.key);
        self.by_last_row.remove(&recording.last_row);
        self.holding.remove(&recording.last_row);
        self.closed.add(&recording.key);
        self.current = self.current.filter(|current| *current != slot);
        sink(&self.shared.vocabulary, LogStep { recording: slot, what: What::End });
    }

    /// The slot of the recording at hand, which is opened if need be.
    fn at_hand(&mut self, sink: &mut Sink<'_>) -> usize {
        if let Some(current) = self.current {
            return current;
        }
        self.n_switches += 1;
        let slot = match self.by_key.get(self.key.as_str()) {
            Some(slot) => *slot,
            None => self.open(sink),
        };
        if let Some(recording) = &mut self.slots[slot] {
            for map in [&mut self.by_last_row, &mut self.holding] {
                map.remove(&recording.last_row);
                map.insert(self.n_switches, slot);
            }
            recording.last_row = self.n_switches;
        }
        self.current = Some(slot);
        slot
    }

    fn open(&mut self, sink: &mut Sink<'_>) -> usize {
        while self.by_key.len() >= self.windows.recordings
            && let Some((_, quiet)) = self.by_last_row.first_key_value()
        {
            self.close(*quiet, sink);
        }
        let name = self.name();
        let scenario = if self.scenario.is_empty() { &self.label.stem } else { &self.scenario };
        let scenario = self.shared.vocabulary.scenarios.intern(scenario);
        let continued = self.closed.contains(&self.key);
        if continued {
            let text = "recordings went on after so many others that they had been closed: what was open in them was cut";
            self.shared.diagnostics.add("recording_cut", text, || name.clone());
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        sink(&self.shared.vocabulary, LogStep { recording: slot, what: What::Begin { name: &name, scenario, continued } });
        self.slots[slot] = Some(Box::new(Recording::new(&self.key, name, self.n_switches, self.times)));
        self.by_key.insert(self.key.as_str().into(), slot);
        slot
    }

    fn name(&mut self) -> String {
        let (label, key) = (&self.label, self.key.as_str());
        if !key.is_empty() && key != label.stem {
            return if label.is_one_of_several { format!("{}/{key}", label.unique) } else { key.to_owned() };
        }
        let first = self.first_plain.get_or_insert_with(|| key.into());
        if **first == *key { label.unique.clone() } else { format!("{}#2", label.unique) }
    }
}

/// What takes the steps of one recording.
fn steps_of<'s>(slot: usize, sink: &'s mut Sink<'_>) -> impl FnMut(&Vocabulary, Step<'_>) + 's {
    move |names, step| sink(names, LogStep { recording: slot, what: What::Step(step) })
}
