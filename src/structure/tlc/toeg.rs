//! The task and operation event graph (TOEG) of one recording, indexed by thread and by task.
//!
//! Nodes are sorted by thread and its counter, so that the arc to the next node of a thread is the next index. A second
//! order, by task and its counter, has the nodes of each task in sequence.

use super::{
    TaskCounters,
    live::{Label, Live, NONE, Node},
};
use crate::trace::diagnostics::Diagnostics;

/// Nodes for each task from which on they are first counted out to their tasks.
const MANY_NODES_PER_TASK: usize = 8;

/// The graph; its buffers are used again for the next recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Toeg {
    /// By thread and counter.
    pub(super) nodes: Vec<Node>,
    /// Threads, ascending by id.
    pub(super) thread_ids: Vec<u64>,
    /// Nodes of thread `k` are `starts[k]..starts[k + 1]`, shape `(n_threads + 1,)`.
    pub(super) starts: Vec<u32>,
    /// The fork that starts each thread, [`NONE`] where there is none, shape `(n_threads,)`.
    pub(super) fork_of: Vec<u32>,
    /// Nodes by task and its counter, shape `(n_nodes,)`.
    pub(super) task_order: Vec<u32>,
    /// Where each node stands in `task_order`, shape `(n_nodes,)`.
    pub(super) place: Vec<u32>,
    /// First and last of each thread among the descendants of its fork tree; see [`Toeg::descends`].
    family: Vec<(u32, u32)>,
    /// Whether the thread goes back to a waiting task after each node; empty while nobody asked.
    returns: Vec<bool>,
}

impl Toeg {
    /// The graph of a recording.
    pub(super) fn build(&mut self, live: &mut Live) {
        self.take_threads(live);
        let n_threads = self.thread_ids.len();
        self.starts.clear();
        self.starts.resize(n_threads + 1, 0);
        self.fork_of.clear();
        self.fork_of.resize(n_threads, NONE);
        for (index, node) in self.nodes.iter().enumerate() {
            self.starts[node.thread as usize + 1] += 1;
            if let Some(fork) = self.fork_of.get_mut(node.child as usize).filter(|fork| **fork == NONE) {
                *fork = index as u32;
            }
        }
        for thread in 0..n_threads {
            self.starts[thread + 1] += self.starts[thread];
        }
        self.order_by_task();
        self.place.clear();
        self.place.resize(self.nodes.len(), 0);
        for (place, node) in self.task_order.iter().enumerate() {
            self.place[*node as usize] = place as u32;
        }
        self.family.clear();
        self.returns.clear();
    }

    /// Puts nodes in order of their tasks and the counters of these.
    fn order_by_task(&mut self) {
        let nodes = &self.nodes;
        self.task_order.clear();
        let n_tasks = nodes.iter().map(|node| node.task as usize + 1).max().unwrap_or(0);
        if nodes.len() < MANY_NODES_PER_TASK * n_tasks {
            self.task_order.extend(0..nodes.len() as u32);
            self.task_order.sort_unstable_by_key(|node| {
                let Node { task, task_node, .. } = nodes[*node as usize];
                (task, task_node, *node)
            });
            return;
        }
        let mut ends = vec![0_usize; n_tasks];
        nodes.iter().for_each(|node| ends[node.task as usize] += 1);
        let mut n_before = 0;
        for end in &mut ends {
            (*end, n_before) = (n_before, n_before + *end);
        }
        self.task_order.resize(nodes.len(), 0);
        for (index, node) in nodes.iter().enumerate() {
            self.task_order[ends[node.task as usize]] = index as u32;
            ends[node.task as usize] += 1;
        }
        // The nodes of one task stay together while they are sorted.
        let (mut start, mut counters) = (0, Vec::new());
        for end in ends {
            let own = &mut self.task_order[start..end];
            counters.clear();
            counters.extend(own.iter().map(|node| (nodes[*node as usize].task_node, *node)));
            counters.sort_unstable();
            own.iter_mut().zip(&counters).for_each(|(slot, (_, node))| *slot = *node);
            start = end;
        }
    }

    /// Numbers threads by their ids and sorts the nodes.
    fn take_threads(&mut self, live: &mut Live) {
        self.nodes = std::mem::take(&mut live.nodes);
        self.thread_ids.clear();
        self.thread_ids.extend(live.thread_ids());
        if !self.thread_ids.is_sorted() {
            let mut by_id: Vec<u32> = (0..self.thread_ids.len() as u32).collect();
            by_id.sort_unstable_by_key(|thread| self.thread_ids[*thread as usize]);
            let mut rank = vec![0; by_id.len()];
            for (position, thread) in by_id.iter().enumerate() {
                rank[*thread as usize] = position as u32;
            }
            for node in &mut self.nodes {
                node.thread = rank[node.thread as usize];
                node.child = rank.get(node.child as usize).copied().unwrap_or(NONE);
            }
            self.thread_ids.sort_unstable();
        }
        let key = |node: &Node| (node.thread, node.thread_node);
        if !self.nodes.is_sorted_by_key(key) {
            self.nodes.sort_unstable_by_key(key);
        }
    }

    pub(super) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub(super) fn n_threads(&self) -> u32 {
        self.fork_of.len() as u32
    }

    /// Nodes of a thread.
    pub(super) fn thread(&self, thread: u32) -> std::ops::Range<u32> {
        self.starts[thread as usize]..self.starts[thread as usize + 1]
    }

    /// The first node of a thread, if it was recorded and is its begin.
    pub(super) fn begin_of(&self, thread: u32) -> Option<u32> {
        let first = self.thread(thread).next()?;
        let node = self.node(first);
        (node.thread_node == 1 && node.label == Label::Begin).then_some(first)
    }

    /// The node that follows in the thread, if its counter is the next.
    pub(super) fn next_in_thread(&self, index: u32) -> Option<u32> {
        let (node, next) = (self.node(index), self.nodes.get(index as usize + 1)?);
        (next.thread == node.thread && next.thread_node == node.thread_node + 1).then_some(index + 1)
    }

    /// The node before in the thread, if its counter is the one before.
    pub(super) fn previous_in_thread(&self, index: u32) -> Option<u32> {
        let previous = index.checked_sub(1)?;
        (self.next_in_thread(previous) == Some(index)).then_some(previous)
    }

    /// The node that the task recorded `ahead` nodes later, with nothing of another scenario between.
    pub(super) fn later_in_task(&self, index: u32, ahead: u32, counters: TaskCounters) -> Option<u32> {
        let node = self.node(index);
        let later = *self.task_order.get((self.place[index as usize] + ahead) as usize)?;
        let found = self.node(later);
        let follows = counters == TaskCounters::WithinRecording || found.task_node == node.task_node.saturating_add(u64::from(ahead));
        (found.task == node.task && follows).then_some(later)
    }

    /// The node that the task recorded just before, with nothing of another scenario between.
    pub(super) fn earlier_in_task(&self, index: u32, counters: TaskCounters) -> Option<u32> {
        let earlier = self.task_order[self.place[index as usize].checked_sub(1)? as usize];
        (self.later_in_task(earlier, 1, counters) == Some(index)).then_some(earlier)
    }

    /// The begin of the first thread, and whether that had to be assumed: thread 1, else the first that nothing forked.
    pub(super) fn first_node(&self) -> Option<(u32, bool)> {
        let begin = |thread: u32| self.begin_of(thread);
        let named = self.thread_ids.iter().position(|id| *id == 1).and_then(|thread| begin(thread as u32));
        let unforked = || (0..self.n_threads()).filter(|thread| self.fork_of[*thread as usize] == NONE).find_map(begin);
        named.map(|node| (node, false)).or_else(|| Some((unforked()?, true)))
    }

    /// Whether thread `descendant` comes from `ancestor` by forks (is not itself).
    pub(super) fn descends(&mut self, descendant: u32, ancestor: u32) -> bool {
        if self.family.is_empty() {
            self.number_families();
        }
        let (of, within) = (self.family[descendant as usize], self.family[ancestor as usize]);
        of.0 != NONE && within.0 < of.0 && of.1 <= within.1
    }

    /// Numbers threads so that descendants are numbered after their ancestor and up to the last of it. Threads that fork one
    /// another in a circle stay without.
    fn number_families(&mut self) {
        let n_threads = self.fork_of.len();
        self.family = vec![(NONE, 0); n_threads];
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); n_threads];
        let mut open = Vec::new();
        for (thread, fork) in self.fork_of.iter().enumerate() {
            match self.nodes.get(*fork as usize) {
                Some(fork) => children[fork.thread as usize].push(thread as u32),
                None => open.push(thread as u32),
            }
        }
        let mut number = 0;
        while let Some(thread) = open.last().copied() {
            let family = &mut self.family[thread as usize];
            if family.0 == NONE {
                family.0 = number;
                number += 1;
            }
            match children[thread as usize].pop() {
                Some(child) => open.push(child),
                None => {
                    family.1 = number - 1;
                    open.pop();
                }
            }
        }
    }

    /// Whether the thread goes from this node back to the task that it came from (and not on to another).
    pub(super) fn is_return(&mut self, index: u32) -> bool {
        if self.returns.is_empty() {
            self.find_returns();
        }
        self.returns[index as usize]
    }

    fn find_returns(&mut self) {
        self.returns = vec![false; self.nodes.len()];
        let mut waiting: Vec<u32> = Vec::new();
        for index in 1..self.nodes.len() {
            let (node, next) = (&self.nodes[index - 1], &self.nodes[index]);
            if node.thread != next.thread {
                waiting.clear();
            } else if node.task != next.task {
                if waiting.last() == Some(&next.task) {
                    waiting.pop();
                    self.returns[index - 1] = true;
                } else {
                    waiting.push(node.task);
                }
            }
        }
    }

    /// Tells what the counters and labels of the recording `name` say that they should not.
    pub(super) fn check(&self, name: &str, task_names: &dyn Fn(u32) -> String, diagnostics: &mut Diagnostics) {
        let first = self.first_node().map(|(node, _)| self.node(node).thread);
        for thread in 0..self.n_threads() {
            let id = self.thread_ids[thread as usize];
            let nodes = &self.nodes[self.thread(thread).start as usize..self.thread(thread).end as usize];
            let at = || format!("{name}: thread {id}");
            let Some(last) = nodes.last() else {
                diagnostics.add("missing_thread", "threads were forked, but nothing of them was recorded", at);
                continue;
            };
            if last.thread_node as usize != nodes.len() {
                let message = "counters of threads have gaps: events are missing";
                diagnostics.add("counter_gap", message, || format!("{}: {} of {} nodes", at(), nodes.len(), last.thread_node));
            }
            if last.label != Label::End {
                let at = || format!("{} stops in {} at {}", at(), task_names(last.task), last.task_node);
                diagnostics.add("thread_without_end", "threads do not end: they were cut off, or wait for ever", at);
            }
            if self.fork_of[thread as usize] == NONE && first != Some(thread) {
                diagnostics.add("orphan_thread", "threads were forked by nothing that was recorded", at);
            }
            let misplaced = |node: &&Node| (node.label == Label::Begin) != (node.thread_node == 1);
            if let Some(node) = nodes.iter().find(misplaced) {
                let message = "threads have their begin elsewhere than at node 1";
                diagnostics.add("misplaced_begin", message, || format!("{}, node {}", at(), node.thread_node));
            }
            if let Some(node) = nodes[..nodes.len() - 1].iter().find(|node| node.label == Label::End) {
                diagnostics.add("events_after_end", "threads go on after their end", || format!("{}, node {}", at(), node.thread_node));
            }
        }
        self.check_tasks(name, task_names, diagnostics);
    }

    fn check_tasks(&self, name: &str, task_names: &dyn Fn(u32) -> String, diagnostics: &mut Diagnostics) {
        let pairs = self.task_order.windows(2).map(|pair| (self.node(pair[0]), self.node(pair[1])));
        for (node, _) in pairs.filter(|(a, b)| (a.task, a.task_node) == (b.task, b.task_node)) {
            let example = || format!("{name}: {} at {}", task_names(node.task), node.task_node);
            diagnostics.add("repeated_task_node", "several nodes of a task have the same counter", example);
        }
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.label == Label::Fork) {
            if self.fork_of.get(node.child as usize) != Some(&(index as u32)) {
                let example = || format!("{name}: thread {}", self.thread_ids[node.child as usize]);
                diagnostics.add("thread_forked_twice", "threads were forked more than once: the first fork counts", example);
            }
        }
    }
}
