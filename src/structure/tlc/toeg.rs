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
    /// Nodes whose task has the same counter at the next one, in order by task.
    repeated: Vec<u32>,
    /// First and last of each thread among the descendants of its fork tree; see [`Toeg::descends`].
    family: Vec<(u32, u32)>,
    /// Whether the thread goes back to a waiting task after each node; empty while nobody asked.
    returns: Vec<bool>,
}

impl Toeg {
    /// The graph of a recording.
    pub(super) fn build(&mut self, live: &mut Live) {
        self.take_threads(live);
        self.fork_of.clear();
        self.fork_of.resize(self.thread_ids.len(), NONE);
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.child != NONE) {
            if let Some(fork) = self.fork_of.get_mut(node.child as usize).filter(|fork| **fork == NONE) {
                *fork = index as u32;
            }
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
        self.task_order.clear();
        self.repeated.clear();
        let n_tasks = self.nodes.iter().map(|node| node.task as usize + 1).max().unwrap_or(0);
        if self.nodes.len() >= MANY_NODES_PER_TASK * n_tasks {
            return self.count_out(n_tasks);
        }
        let Self { nodes, task_order, repeated, .. } = self;
        let counter = |node: &u32| (nodes[*node as usize].task, nodes[*node as usize].task_node);
        task_order.extend(0..nodes.len() as u32);
        task_order.sort_unstable_by_key(|node| (counter(node), *node));
        repeated.extend(task_order.windows(2).filter(|pair| counter(&pair[0]) == counter(&pair[1])).map(|pair| pair[0]));
    }

    /// The same, where every task has many nodes.
    fn count_out(&mut self, n_tasks: usize) {
        let mut starts = vec![0_usize; n_tasks + 1];
        self.nodes.iter().for_each(|node| starts[node.task as usize + 1] += 1);
        (0..n_tasks).for_each(|task| starts[task + 1] += starts[task]);
        // Counters of the tasks one after the other, each with its node.
        let (mut counters, mut next) = (vec![(0, 0); self.nodes.len()], starts.clone());
        for (node, index) in self.nodes.iter().zip(0_u32..) {
            let place = &mut next[node.task as usize];
            counters[*place] = (node.task_node, index);
            *place += 1;
        }
        for own in starts.windows(2) {
            let own = &mut counters[own[0]..own[1]];
            if !own.is_sorted() {
                own.sort_unstable();
            }
            self.repeated.extend(own.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].1));
        }
        self.task_order.extend(counters.iter().map(|(_, node)| *node));
    }

    /// Numbers threads by their ids and puts the nodes in their order.
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
        self.count_threads();
        self.order_by_thread();
    }

    /// Finds where the nodes of each thread begin.
    fn count_threads(&mut self) {
        let n_threads = self.thread_ids.len();
        self.starts.clear();
        self.starts.resize(n_threads + 1, 0);
        self.nodes.iter().for_each(|node| self.starts[node.thread as usize + 1] += 1);
        (0..n_threads).for_each(|thread| self.starts[thread + 1] += self.starts[thread]);
    }

    /// Puts nodes in order of their threads and the counters of these, of which hardly any is out of its place.
    fn order_by_thread(&mut self) {
        let key = |node: &Node| (node.thread, node.thread_node);
        if self.nodes.is_sorted_by_key(key) {
            return;
        }
        let mut next = self.starts.clone();
        let mut place_of = |node: &Node| {
            let place = &mut next[node.thread as usize];
            *place += 1;
            *place - 1
        };
        let mut order = vec![0; self.nodes.len()];
        for (node, index) in self.nodes.iter().zip(0_u32..) {
            order[place_of(node) as usize] = index;
        }
        let mut nodes: Vec<Node> = order.iter().map(|index| self.nodes[*index as usize]).collect();
        for own in self.starts.windows(2) {
            let own = &mut nodes[own[0] as usize..own[1] as usize];
            if !own.is_sorted_by_key(key) {
                own.sort_unstable_by_key(key);
            }
        }
        self.nodes = nodes;
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
        let later = *self.task_order.get((self.place[index as usize] + ahead) as usize)?;
        self.is_next_in_task(index, later, ahead, counters).then_some(later)
    }

    /// Whether a node `ahead` places later in the order by task is of the same task, with nothing of another scenario between.
    fn is_next_in_task(&self, index: u32, later: u32, ahead: u32, counters: TaskCounters) -> bool {
        let (node, later) = (self.node(index), self.node(later));
        let follows = counters == TaskCounters::WithinRecording || later.task_node == node.task_node.saturating_add(u64::from(ahead));
        later.task == node.task && follows
    }

    /// The node that the task recorded just before, with nothing of another scenario between.
    pub(super) fn earlier_in_task(&self, index: u32, counters: TaskCounters) -> Option<u32> {
        let earlier = self.task_order[self.place[index as usize].checked_sub(1)? as usize];
        self.is_next_in_task(earlier, index, 1, counters).then_some(earlier)
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
        for node in self.repeated.iter().map(|node| self.node(*node)) {
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
