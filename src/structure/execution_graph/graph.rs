//! The events of one operation: its threads, while they are collected and when they are whole.

use crate::trace::hashed::IndexMap;

use crate::trace::{
    event_trace::{Event, EventKind},
    names::Names,
};

/// Pairs of task and entry, numbered in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    /// `task`, U+0000, `entry`.
    pairs: Names,
    /// Length of the task's name in the pair, bytes, shape `(n_keys,)`.
    task_bytes: Vec<usize>,
    tasks: Names,
    /// The task of each key (number in `tasks`), shape `(n_keys,)`.
    task_of: Vec<u32>,
    buffer: String,
    /// The last key: many events in a row are of one.
    last: u32,
}

impl Keys {
    pub(super) fn intern(&mut self, task: &str, entry: &str) -> u32 {
        if !self.task_of.is_empty() && self.names(self.last) == (task, entry) {
            return self.last;
        }
        self.buffer.clear();
        self.buffer.push_str(task);
        self.buffer.push('\0');
        self.buffer.push_str(entry);
        let key = self.pairs.intern(&self.buffer);
        if key as usize == self.task_bytes.len() {
            self.task_bytes.push(task.len());
            self.task_of.push(self.tasks.intern(task));
        }
        self.last = key;
        key
    }

    /// Takes over those of another; what its numbers are here.
    pub(super) fn merge(&mut self, other: &Self) -> Vec<u32> {
        let number = |key: usize| {
            let (task, entry) = other.names(u32::try_from(key).unwrap_or(u32::MAX));
            self.intern(task, entry)
        };
        (0..other.len()).map(number).collect()
    }

    /// Task and entry of a key.
    pub(super) fn names(&self, key: u32) -> (&str, &str) {
        let (pair, split) = (self.pairs.name(key), self.task_bytes.get(key as usize).copied().unwrap_or(0));
        (&pair[..split], pair.get(split + 1..).unwrap_or(""))
    }

    /// `task.entry`, for people.
    pub(super) fn shown(&self, key: u32) -> String {
        let (task, entry) = self.names(key);
        format!("{task}.{entry}")
    }

    pub(super) fn same_task(&self, a: u32, b: u32) -> bool {
        self.task_of.get(a as usize) == self.task_of.get(b as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.task_of.len()
    }
}

/// An event, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// Index within its thread, from 1.
    pub(super) index: u64,
    /// The spawned thread; of forks only.
    next_thread: u64,
    /// In ticks; not a number where the trace does not say it.
    cpu_ticks: f64,
    /// Task and entry (number in [`Keys`]).
    pub(super) key: u32,
    pub(super) kind: EventKind,
    pub(super) ack: Option<bool>,
}

impl Node {
    pub(super) fn of(event: &Event<'_>, key: u32) -> Self {
        Self {
            index: event.index,
            next_thread: event.next_thread.unwrap_or(0),
            cpu_ticks: event.cpu_ticks.unwrap_or(f64::NAN),
            key,
            kind: event.kind,
            ack: event.ack.filter(|_| event.kind == EventKind::Fork),
        }
    }

    /// The thread that it spawned.
    pub(super) fn next_thread(&self) -> Option<u64> {
        (self.kind == EventKind::Fork).then_some(self.next_thread)
    }

    pub(super) fn cpu_ticks(&self) -> Option<f64> {
        (!self.cpu_ticks.is_nan()).then_some(self.cpu_ticks)
    }

    /// An order of events of the same index that does not depend on the order of the file.
    fn content<'k>(&self, keys: &'k Keys) -> (EventKind, (&'k str, &'k str), u64, Option<bool>, u64) {
        (self.kind, keys.names(self.key), self.next_thread, self.ack, self.cpu_ticks.to_bits())
    }
}

/// What leads from an event to the next one of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arc {
    /// It stays in the entry.
    Continue,
    /// A request.
    Request,
    /// A reply.
    Reply,
    /// To another entry, by neither.
    Jump,
}

impl Arc {
    /// The arc, and whether both of its events say so.
    pub(super) fn between(from: &Node, to: &Node) -> (Self, bool) {
        let sends = match from.kind {
            EventKind::Send => Some(Self::Request),
            EventKind::SendAck => Some(Self::Reply),
            _ => None,
        };
        let receives = match to.kind {
            EventKind::Receive => Some(Self::Request),
            EventKind::ReceiveAck => Some(Self::Reply),
            _ => None,
        };
        match (sends, receives) {
            (None, None) if from.key == to.key => (Self::Continue, true),
            (None, None) => (Self::Jump, false),
            (Some(sent), Some(received)) if sent == received => (sent, true),
            _ if from.key == to.key => (Self::Continue, false),
            (Some(arc), _) | (None, Some(arc)) => (arc, false),
        }
    }
}

/// A thread of an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) nodes: Vec<Node>,
    /// Index of its End.
    end: Option<u64>,
}

impl Thread {
    /// Whether there are as many events as the index of its End says.
    fn is_full(&self) -> bool {
        self.end.is_some_and(|end| end == self.nodes.len() as u64)
    }

    /// Whether the sorted events are numbered 1, 2, ….
    fn is_contiguous(&self) -> bool {
        self.nodes.iter().zip(1..).all(|(node, index)| node.index == index)
    }
}

/// The events of one operation so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// By their numbers; a thread that is only known from its fork has no events.
    pub(super) threads: IndexMap<u64, Thread>,
    /// The place of the thread that was asked for last.
    last: usize,
    pub(super) n_events: usize,
    n_not_full: usize,
    has_external: bool,
    /// Whether an index was met twice: then it can only be taken as it is.
    has_repeated: bool,
}

impl Graph {
    pub(super) fn add(&mut self, thread: u64, node: Node) {
        self.n_events += 1;
        self.has_external |= node.kind == EventKind::External;
        let known = self.thread(thread);
        let was_full = known.is_full();
        known.nodes.push(node);
        if node.kind == EventKind::End {
            known.end = known.end.max(Some(node.index));
        }
        match (was_full, known.is_full()) {
            (false, true) => self.n_not_full -= 1,
            (true, false) => self.n_not_full += 1,
            _ => {}
        }
        if let Some(next) = node.next_thread() {
            self.thread(next);
        }
    }

    fn thread(&mut self, number: u64) -> &mut Thread {
        if self.threads.get_index(self.last).is_none_or(|(known, _)| *known != number) {
            let entry = self.threads.entry(number);
            self.last = entry.index();
            let n_not_full = &mut self.n_not_full;
            entry.or_insert_with(|| {
                *n_not_full += 1;
                Thread::default()
            });
        }
        &mut self.threads[self.last]
    }

    /// Adds the events of another part of the operation, whose keys are renumbered by `key_of`.
    pub(super) fn merge(&mut self, other: Self, key_of: &[u32]) {
        for (number, thread) in other.threads {
            self.thread(number);
            for node in thread.nodes {
                self.add(number, Node { key: key_of[node.key as usize], ..node });
            }
        }
    }

    /// Whether nothing is missing: it was started, every thread runs from 1 to its End, and every spawned thread is there.
    pub(super) fn is_whole(&mut self, keys: &Keys) -> bool {
        if !self.has_external || self.n_not_full > 0 || self.has_repeated {
            return false;
        }
        self.sort(keys);
        self.has_repeated = !self.threads.values().all(Thread::is_contiguous);
        !self.has_repeated
    }

    /// Puts the events of each thread, and the threads, in order of their numbers.
    pub(super) fn sort(&mut self, keys: &Keys) {
        if !self.threads.keys().is_sorted() {
            self.threads.sort_unstable_keys();
        }
        for thread in self.threads.values_mut() {
            if !thread.is_contiguous() {
                thread.nodes.sort_unstable_by(|a, b| a.index.cmp(&b.index).then_with(|| a.content(keys).cmp(&b.content(keys))));
            }
        }
    }

    /// Takes away all but the first of the events with the same index in a sorted thread, and tells of each.
    pub(super) fn drop_repeated(&mut self, mut tell: impl FnMut(u64, &Node)) {
        for (number, thread) in &mut self.threads {
            thread.nodes.dedup_by(|node, kept| {
                let repeated = node.index == kept.index;
                if repeated {
                    tell(*number, node);
                }
                repeated
            });
        }
    }
}
