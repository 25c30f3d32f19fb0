//! A recording while its events come in, in any order.
//!
//! A recording is complete once its first thread and every thread that is known of it (by an event, or as the child of a
//! fork) has all nodes from the first to an end, and was forked. Nothing that those threads caused can be missing then.

use std::collections::BTreeSet;

use crate::trace::{
    Time,
    angio::{AngioEvent, AngioKind},
    hashed::HashMap,
};

/// No index.
pub(super) const NONE: u32 = u32::MAX;

/// The first thread of a recording.
const FIRST_THREAD: u64 = 1;

/// Up to so many threads are searched one by one.
const FEW_THREADS: usize = 8;

/// What kind of event a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Begin,
    Activity,
    Fork,
    End,
}

/// A node of the graph: an event, its texts as numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Zero where `has_time` is not set.
    pub(super) time: Time,
    /// NaN where it is not known.
    pub(super) demand: f64,
    /// Node counter of the task.
    pub(super) task_node: u64,
    /// Index into the recording's threads.
    pub(super) thread: u32,
    /// Node counter of the thread.
    pub(super) thread_node: u32,
    /// The thread that a fork starts, else [`NONE`].
    pub(super) child: u32,
    pub(super) task: u32,
    pub(super) operation: u32,
    pub(super) activity: u32,
    pub(super) label: Label,
    pub(super) has_time: bool,
}

/// The texts of an event as numbers; [`NONE`] where the event has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) task: u32,
    pub(super) operation: u32,
    pub(super) activity: u32,
}

#[derive(Clone, Debug)]
struct Thread {
    id: u64,
    /// The first counter that was not seen.
    next_node: u32,
    /// Counters seen beyond it.
    ahead: BTreeSet<u32>,
    /// Counter of the last end, 0 without.
    end_node: u32,
    claimed: bool,
    open: bool,
}

/// The events of one recording so far.
#[derive(Clone, Debug)]
pub(super) struct Live {
    /// In order of their coming in.
    pub(super) nodes: Vec<Node>,
    pub(super) scenario: u32,
    /// Rank by which recordings began.
    pub(super) age: u64,
    /// Greatest weight that an event told, 1 if none did.
    pub(super) weight: Option<f64>,
    threads: Vec<Thread>,
    /// Used beyond [`FEW_THREADS`].
    thread_of: HashMap<u64, u32>,
    n_open: usize,
    has_first_thread: bool,
}

impl Live {
    pub(super) fn new(scenario: u32, age: u64) -> Self {
        Self {
            nodes: Vec::new(),
            scenario,
            age,
            weight: None,
            threads: Vec::new(),
            thread_of: HashMap::default(),
            n_open: 0,
            has_first_thread: false,
        }
    }

    /// Adds an event; `false` if a node of its thread with its counter is here already.
    pub(super) fn add(&mut self, event: &AngioEvent<'_>, numbers: Numbers) -> bool {
        let (label, child) = match event.kind {
            AngioKind::Begin => (Label::Begin, NONE),
            AngioKind::Activity => (Label::Activity, NONE),
            AngioKind::Fork { child_thread } => (Label::Fork, self.thread(child_thread)),
            AngioKind::End => (Label::End, NONE),
        };
        self.note_weight(event.weight);
        let thread = self.thread(event.thread);
        self.add_node(Node {
            time: event.time.unwrap_or_default(),
            demand: event.demand.unwrap_or(f64::NAN),
            task_node: event.task_node,
            thread,
            thread_node: event.thread_node,
            child,
            task: numbers.task,
            operation: numbers.operation,
            activity: numbers.activity,
            label,
            has_time: event.time.is_some(),
        })
    }

    /// Adds a node of `other`, with its texts' numbers made those of here.
    pub(super) fn add_of(&mut self, other: &Self, node: Node, numbers: Numbers) -> bool {
        let child = if node.child == NONE { NONE } else { self.thread(other.threads[node.child as usize].id) };
        let thread = self.thread(other.threads[node.thread as usize].id);
        let Numbers { task, operation, activity } = numbers;
        self.add_node(Node { thread, child, task, operation, activity, ..node })
    }

    pub(super) fn note_weight(&mut self, weight: Option<f64>) {
        if let Some(weight) = weight {
            self.weight = Some(self.weight.map_or(weight, |known| known.max(weight)));
        }
    }

    /// Whether nothing that belongs to it can be missing.
    pub(super) fn is_complete(&self) -> bool {
        self.n_open == 0 && self.has_first_thread
    }

    /// Ids of the threads, shape `(n_threads,)`.
    pub(super) fn thread_ids(&self) -> impl Iterator<Item = u64> {
        self.threads.iter().map(|thread| thread.id)
    }

    fn add_node(&mut self, node: Node) -> bool {
        let thread = &mut self.threads[node.thread as usize];
        if node.thread_node < thread.next_node || thread.ahead.contains(&node.thread_node) {
            return false;
        }
        if node.thread_node == thread.next_node {
            thread.next_node = thread.next_node.saturating_add(1);
            while thread.ahead.first() == Some(&thread.next_node) {
                thread.ahead.pop_first();
                thread.next_node = thread.next_node.saturating_add(1);
            }
        } else {
            thread.ahead.insert(node.thread_node);
        }
        if node.label == Label::End {
            thread.end_node = thread.end_node.max(node.thread_node);
        }
        self.reopen(node.thread);
        if node.child != NONE {
            self.threads[node.child as usize].claimed = true;
            self.reopen(node.child);
        }
        self.nodes.push(node);
        true
    }

    /// Finds out anew whether something of the thread is missing.
    fn reopen(&mut self, thread: u32) {
        let thread = &mut self.threads[thread as usize];
        let is_whole = thread.end_node > 0 && u64::from(thread.end_node) + 1 == u64::from(thread.next_node) && thread.ahead.is_empty();
        let open = !(is_whole && thread.claimed);
        self.n_open = if open { self.n_open + usize::from(!thread.open) } else { self.n_open - usize::from(thread.open) };
        thread.open = open;
    }

    fn thread(&mut self, id: u64) -> u32 {
        let known = match self.threads.len() {
            0..=FEW_THREADS => self.threads.iter().position(|thread| thread.id == id).map(|index| index as u32),
            _ => self.thread_of.get(&id).copied(),
        };
        known.unwrap_or_else(|| self.new_thread(id))
    }

    fn new_thread(&mut self, id: u64) -> u32 {
        let index = self.threads.len() as u32;
        let is_first = id == FIRST_THREAD;
        self.has_first_thread |= is_first;
        self.threads.push(Thread { id, next_node: 1, ahead: BTreeSet::new(), end_node: 0, claimed: is_first, open: true });
        self.n_open += 1;
        if self.threads.len() == FEW_THREADS + 1 {
            self.thread_of = self.threads.iter().zip(0..).map(|(thread, index)| (thread.id, index)).collect();
        } else if self.threads.len() > FEW_THREADS {
            self.thread_of.insert(id, index);
        }
        index
    }
}
