//! The compiled network: tasks, entries, nodes, arcs and stations as arrays, all shares and structure settled.

use std::collections::HashMap;

use super::{graph::Graph, rotation::Rotation};
use crate::model::{CallKind, Scalar};

/// The compiled network.
#[derive(Clone, Debug)]
pub(super) struct Net<S> {
    pub tasks: Vec<TaskNode<S>>,
    pub entries: Vec<EntryNode<S>>,
    pub nodes: Vec<Node<S>>,
    pub arcs: Vec<Arc<S>>,
    pub stations: Vec<Station>,
    /// Jobs that nobody needs to tell apart when asking who can meet whom.
    pub kins: Vec<Kin>,
    /// Tasks, callers before callees.
    pub order: Vec<usize>,
    /// Reference tasks, by class index.
    pub classes: Vec<usize>,
    /// Number of processors; stations `0..n_processors` are theirs.
    pub n_processors: usize,
    /// Whether asynchronous sends lead back to tasks further up.
    pub circular: bool,
    /// A turn that leaves the network as it is, where copies stand in a circle.
    pub rotation: Option<Rotation>,
    /// Strands that one thread of a task can have at a station at once, where these are fewer than it can have at all.
    pub narrow: HashMap<(usize, usize), f64>,
}

/// A task of the network.
#[derive(Clone, Debug)]
pub(super) struct TaskNode<S> {
    pub name: String,
    /// Threads, or customers of a reference task; infinite for infinite servers.
    pub threads: f64,
    /// Largest number of its threads that can be busy, given its callers.
    pub cap: f64,
    /// Most requests that others can wait for here at once ([`super::at_once`]).
    pub at_once: f64,
    /// The task whose threads bound what its own do: itself, or where that has no more threads the only one that calls it, also by others that it bounds.
    pub bounded_by: usize,
    /// Class index of a reference task.
    pub class: Option<usize>,
    pub think_time: S,
    pub processor: usize,
    /// Station of its request queue; none for a reference task.
    pub station: Option<usize>,
    pub entries: Vec<usize>,
    /// Position in [`Net::order`].
    pub position: usize,
    /// Priority at the processor.
    pub priority: f64,
    /// Strands that one thread can have at once.
    pub width: f64,
    /// The classes, in order, whose customers' requests lead to it.
    pub of_classes: Vec<usize>,
}

impl<S> TaskNode<S> {
    /// Whether any customers' requests lead to it.
    pub fn is_of_customers(&self) -> bool {
        !self.of_classes.is_empty()
    }
}

/// An entry of the network.
#[derive(Clone, Debug)]
pub(super) struct EntryNode<S> {
    pub name: String,
    pub task: usize,
    pub work: Work<S>,
    /// Share of a reference task's cycles that pick this entry.
    pub visit_share: S,
    pub open_rate: Option<S>,
    /// Priority in its task's queue.
    pub priority: f64,
    /// Number of phases that have work.
    pub n_phases: usize,
    /// Whether anything may come to it: of others nothing is left but this.
    pub is_reached: bool,
    /// Whether what a thread does after the reply is followed along its course ([`super::station`], `messages`).
    pub is_followed: bool,
}

/// What an entry does.
#[derive(Clone, Debug)]
pub(super) enum Work<S> {
    /// Nodes of phases 1 to 3, one after the other.
    Phases([Option<usize>; 3]),
    /// Nodes that run side by side.
    Graph(Graph<S>),
}

/// A piece of work that one strand does without forking: a phase, or a part of an activity graph.
#[derive(Clone, Debug)]
pub(super) struct Node<S> {
    pub entry: usize,
    pub task: usize,
    /// 0 for phase 1.
    pub phase: usize,
    pub kin: usize,
    /// Mean executions in one of the entry.
    pub weight: S,
    /// Time on the processor for one execution, at the processor's speed.
    pub demand: S,
    /// Whether it visits its processor: a demand that is written as 0 does not, one of a parameter does, even at 0, so that
    /// the solution and its derivatives are continuous there.
    pub uses_processor: bool,
    /// Whether, as a strand of a graph, it begins with a visit to its processor.
    pub begins_at_processor: bool,
    /// The first of the strands that begin there at the same time as it.
    pub begins_with: Option<usize>,
    pub think_time: S,
    pub cvsq: S,
    pub deterministic: bool,
    /// Host slices: one more than the mean number of calls that are waited for.
    pub slices: S,
    /// Mean number of calls that block.
    pub n_sync: S,
    /// Chance that there is none, and variance of their number.
    pub no_sync: S,
    pub n_sync_variance: S,
    pub host_arc: Option<usize>,
    /// Blocking calls, each with the legs that forwarding adds to it.
    pub calls: Vec<CallGroup>,
    /// Calls that do not block.
    pub sends: Vec<usize>,
    /// The activities that it consists of, in a graph.
    pub parts: Vec<Part<S>>,
}

/// An activity of a node.
#[derive(Clone, Debug)]
pub(super) struct Part<S> {
    pub activity: String,
    /// Mean executions in one of the node.
    pub visits: S,
    /// Of one execution, at the processor's speed.
    pub demand: S,
    pub uses_processor: bool,
    pub think_time: S,
    /// Called entries with the mean numbers of calls.
    pub calls: Vec<(CallKind, usize, S)>,
}

/// A blocking call: the arc to the called entry and the arcs of its forwarded legs.
#[derive(Clone, Debug)]
pub(super) struct CallGroup {
    pub arc: usize,
    pub legs: Vec<usize>,
}

/// Jobs with the same callers that exclude the same others: the first phase of an entry, the later phases of a task, or one
/// node of an entry that forks.
#[derive(Clone, Debug)]
pub(super) struct Kin {
    pub task: usize,
    /// The entry whose callers wait meanwhile; none for later phases and for customers.
    pub entry: Option<usize>,
    /// The node, for one that has siblings.
    pub strand: Option<usize>,
}

/// Where an arc's requests come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A node whose thread waits, or runs the slice.
    Held(usize),
    /// A node whose thread goes on.
    Detached(usize),
    /// Outside.
    Open,
}

impl Source {
    /// The sending node, if any.
    pub fn node(self) -> Option<usize> {
        match self {
            Self::Held(i) | Self::Detached(i) => Some(i),
            Self::Open => None,
        }
    }

    /// The node whose thread is held meanwhile, if any.
    pub fn held(self) -> Option<usize> {
        match self {
            Self::Held(i) => Some(i),
            Self::Detached(_) | Self::Open => None,
        }
    }
}

/// A stream of requests from a node to a station.
#[derive(Clone, Debug)]
pub(super) struct Arc<S> {
    pub source: Source,
    pub station: usize,
    /// The called entry; none for a visit to the processor.
    pub target: Option<usize>,
    /// Mean requests in one execution of the source node (or the open rate).
    pub visits: S,
    /// The entry that forwarded, for a forwarded leg.
    pub via: Option<usize>,
    /// Probability with which the leg follows the call it belongs to.
    pub leg_probability: S,
    /// Larger goes first, where the station looks at it.
    pub priority: f64,
    /// Share of the processor that its group is guaranteed, and the group, at a processor with groups.
    pub group: Option<(usize, S)>,
}

/// A queue: a processor's or a task's.
#[derive(Clone, Debug)]
pub(super) struct Station {
    pub name: String,
    pub servers: f64,
    pub discipline: Discipline,
    pub arcs: Vec<usize>,
}

/// How a station serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    Delay,
    Fcfs,
    /// Processor sharing.
    Sharing,
    /// The most urgent waits least; a service in progress is finished.
    HeadOfLine,
    /// The most urgent interrupts the others.
    Preemptive,
    /// Groups share the processor by their guaranteed shares.
    Groups,
}

impl CallGroup {
    /// All arcs over which its sender waits.
    pub fn arcs(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.arc).chain(self.legs.iter().copied())
    }
}

/// Of so many tasks or entries, whether each is one of the `open` ones or is led to from there; `next` adds where one leads to.
pub(super) fn reached(n: usize, mut open: Vec<usize>, mut next: impl FnMut(usize, &mut Vec<usize>)) -> Vec<bool> {
    let mut reached = vec![false; n];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            next(at, &mut open);
        }
    }
    reached
}

impl<S> Net<S> {
    /// The kin of the node whose thread an arc holds.
    pub fn kin_of_arc(&self, arc: usize) -> Option<usize> {
        self.arcs[arc].source.held().map(|node| self.nodes[node].kin)
    }

    /// The phases of an entry that does not fork.
    pub fn phases(&self, entry: usize) -> [Option<usize>; 3] {
        match self.entries[entry].work {
            Work::Phases(phases) => phases,
            Work::Graph(_) => [None; 3],
        }
    }

    /// All nodes of an entry.
    pub fn nodes_of(&self, entry: usize) -> Vec<usize> {
        match &self.entries[entry].work {
            Work::Phases(phases) => phases.iter().copied().flatten().collect(),
            Work::Graph(graph) => (0..graph.vertices.len()).flat_map(|v| graph.nodes_of(v)).collect(),
        }
    }

    /// The entries to which a node sends requests, whether it waits for them or not, also where they are forwarded.
    pub fn called_by(&self, node: usize) -> impl Iterator<Item = usize> {
        let node = &self.nodes[node];
        let arcs = node.calls.iter().flat_map(|call| call.arcs()).chain(node.sends.iter().copied());
        arcs.filter_map(|arc| self.arcs[arc].target)
    }

    /// Strands that one thread of a task can have at a station at once.
    pub fn width_at(&self, task: usize, station: usize) -> f64 {
        self.narrow.get(&(task, station)).copied().unwrap_or(self.tasks[task].width)
    }

    /// Whether all requests are waited for, and none come from outside.
    pub fn is_closed(&self) -> bool {
        self.entries.iter().all(|e| e.open_rate.is_none()) && self.nodes.iter().all(|n| n.sends.is_empty())
    }

    /// Share of an arc's requests that are not the first slice of a second phase at a processor, where it may be left behind for the next request of its
    /// customer ([`super::station`]).
    pub fn not_left_behind(&self, arc: usize) -> S
    where
        S: Scalar,
    {
        let it = &self.arcs[arc];
        let begins = |node: usize| {
            let node = &self.nodes[node];
            let is_taken =
                node.phase == 1 && matches!(self.entries[node.entry].work, Work::Phases(_)) && !self.entries[node.entry].is_followed;
            is_taken.then_some(node)
        };
        let is_looked_for = matches!(self.stations[it.station].discipline, Discipline::Fcfs | Discipline::Sharing);
        match it.source.held().and_then(begins) {
            Some(node) if it.target.is_none() && is_looked_for => -node.slices.recip() + 1.0,
            _ => S::from(1.0),
        }
    }

    /// Whether a thread works on for a request after it replied.
    pub fn goes_on_after_reply(&self, entry: usize) -> bool {
        match &self.entries[entry].work {
            Work::Phases(phases) => phases[1..].iter().any(Option::is_some),
            Work::Graph(graph) => graph.reply.is_some_and(|r| graph.ends.as_slice() != [r]),
        }
    }
}
