//! The walk over one thread of an execution graph.

use smallvec::smallvec;

use super::{
    CpuStamps,
    graph::{Arc, Node},
    stack::{Lookahead, Request, Stack},
    walk::{Place, Strand, Walk},
    workload::ClassKind,
};
use crate::trace::event_trace::EventKind;

/// Walks over a thread; threads that it spawns are added to those pending.
pub(super) fn walk(walk: &mut Walk<'_>, strand: Strand) {
    let Strand { thread, stack, phase } = strand;
    let graph = walk.graph;
    let Some((number, thread)) = graph.threads.get_index(thread) else { return };
    let n_inherited = stack.len();
    let mut step = ThreadWalk { walk, number: *number, nodes: &thread.nodes, stack, phase, n_inherited, lookahead: None };
    for position in 0..step.nodes.len() {
        step.event(position);
    }
    step.end();
}

struct ThreadWalk<'w, 'a> {
    walk: &'w mut Walk<'a>,
    number: u64,
    nodes: &'a [Node],
    stack: Stack,
    /// Phase of the occurrence that runs.
    phase: u8,
    /// How many of the open requests were open when `lookahead` was made.
    n_inherited: usize,
    lookahead: Option<Lookahead>,
}

impl ThreadWalk<'_, '_> {
    fn event(&mut self, position: usize) {
        let node = &self.nodes[position];
        let next = self.nodes.get(position + 1);
        self.walk.found.n_walked += 1;
        self.check_place(position);
        if self.walk.context.cpu == CpuStamps::Used {
            self.account_cpu(node.cpu_ticks());
        }
        if let Some(spawned) = node.next_thread() {
            self.fork(position, spawned);
        }
        let Some(next) = next else { return };
        let (arc, agreed) = Arc::between(node, next);
        if !agreed {
            let message =
                "neighbouring events do not fit: sent but not received, received but not sent, or in another entry without a message";
            self.note("types_disagree", message, node);
        }
        match arc {
            Arc::Continue if self.walk.context.cpu == CpuStamps::Counter => self.account_reading(node, next),
            Arc::Continue => {}
            Arc::Request => self.request(position, next.key),
            Arc::Reply => self.reply(node, next.key),
            Arc::Jump if self.stack.nearest(next.key).is_some() => self.reply(node, next.key),
            Arc::Jump => self.request(position, next.key),
        }
    }

    /// Gaps before an event, and kinds that do not belong where they stand.
    fn check_place(&mut self, position: usize) {
        let node = &self.nodes[position];
        let expected = position.checked_sub(1).map_or(1, |before| self.nodes[before].index + 1);
        if node.index != expected {
            self.note("index_gap", "events are missing: the indices of a thread do not follow one another", node);
        }
        let starts = matches!(node.kind, EventKind::External | EventKind::Begin);
        let is_last = position + 1 == self.nodes.len();
        if starts != (position == 0) || (node.kind == EventKind::End) != is_last {
            let message = "threads do not run from External or Begin to End, or have one of these in between";
            self.note("misplaced_event", message, node);
        }
    }

    fn note(&mut self, code: &'static str, message: &'static str, node: &Node) {
        self.walk.context.note(code, message, Place { thread: self.number, index: node.index, key: node.key });
    }

    fn account_cpu(&mut self, ticks: Option<f64>) {
        let execution = &mut self.walk.found.occurrences.0[self.stack.current()];
        execution.phases = execution.phases.max(self.phase);
        if let Some(ticks) = ticks {
            let used = &mut execution.cpu_ticks[usize::from(self.phase - 1)];
            *used = Some(used.unwrap_or(0.0) + ticks);
        }
    }

    /// What a processor's clock advanced by between two events of one execution.
    fn account_reading(&mut self, node: &Node, next: &Node) {
        let (Some(before), Some(after)) = (node.cpu_ticks(), next.cpu_ticks()) else { return };
        if after < before {
            self.note("cpu_went_back", "CPU stamps went back within an execution: that time is left out", next);
        } else {
            self.account_cpu(Some(after - before));
        }
    }

    fn request(&mut self, position: usize, key: u32) {
        let node = &self.nodes[position];
        self.note_own_task(node, key);
        let server = self.walk.create(key, false);
        let request = Request { phase: self.phase, sent: node.index, position, deferred: None };
        self.stack.push(server, request, &self.walk.found.occurrences);
        self.phase = 1;
    }

    fn note_own_task(&mut self, node: &Node, key: u32) {
        if self.walk.context.keys.same_task(node.key, key) {
            let message = "a task made requests of itself, which blocks for ever unless it has threads enough";
            self.note("self_entry_call", message, node);
        }
    }

    /// The thread goes back to `key` with a reply.
    fn reply(&mut self, node: &Node, key: u32) {
        match self.stack.nearest(key) {
            Some(position) => {
                self.note_outer(node, key, position);
                let popped = self.stack.pop(position);
                self.n_inherited = self.n_inherited.min(position);
                self.phase = popped.first().map_or(1, |frame| frame.phase);
                self.walk.answered(&popped, node.index);
            }
            None => {
                self.note_unmatched(node);
                let to = self.walk.receiver_of_unmatched(key);
                let left = self.stack.replace(to).into_frames();
                self.walk.abandoned(&left, self.number);
                (self.phase, self.n_inherited) = (1, 0);
            }
        }
    }

    fn note_outer(&mut self, node: &Node, key: u32, position: usize) {
        let forwarded = self.stack.len() - position > 1;
        if forwarded && self.stack.has_older(key, position) {
            let message = "forwarded requests could have been answered to several open requests of the client: the youngest was taken";
            self.note("forward_reply_to_outer", message, node);
        }
    }

    fn note_unmatched(&mut self, node: &Node) {
        self.note("unmatched_ack", "replies to an entry that has no open request", node);
    }

    /// A thread is spawned.
    fn fork(&mut self, position: usize, spawned: u64) {
        let node = &self.nodes[position];
        let graph = self.walk.graph;
        let child = graph.threads.get_full(&spawned).and_then(|(at, _, thread)| Some((at, thread.nodes.first()?.key)));
        let Some((child, key)) = child else {
            let message = "threads without the fork that spawned them, or forks without their thread, were left out";
            return self.note("missing_thread", message, node);
        };
        if std::mem::replace(&mut self.walk.claimed[child], true) {
            return self.note("forked_twice", "threads were spawned by several forks: only the first is followed", node);
        }
        let (stack, phase) = if self.is_reply(position, key) {
            self.fork_reply(node, key)
        } else if key == node.key {
            (Stack::new(self.stack.current()), self.phase)
        } else {
            (self.fork_request(position, key), 1)
        };
        self.walk.pending.push(Strand { thread: child, stack, phase });
    }

    /// Whether a spawned thread that begins in `key` carries a reply there.
    fn is_reply(&mut self, position: usize, key: u32) -> bool {
        let node = &self.nodes[position];
        if let Some(said) = node.ack {
            return said;
        }
        let Some(candidate) = self.stack.nearest(key).filter(|_| key != node.key) else { return false };
        if self.lookahead.is_none() {
            let graph = self.walk.graph;
            let child_key = |node: &Node| Some(graph.threads.get(&node.next_thread()?)?.nodes.first()?.key);
            self.lookahead = Some(Lookahead::of(self.nodes, position, &self.stack, child_key));
            self.n_inherited = self.stack.len();
        }
        let answered = self.lookahead.as_ref().is_some_and(|ahead| ahead.is_answered(&self.stack, candidate, self.n_inherited));
        if answered || self.stack.has_older(key, candidate) {
            let message = "forks to a client with open requests do not say whether they carry a reply: \
                           they do, for the youngest request, unless their own thread replies to it later";
            self.note("fork_ack_ambiguous", message, node);
        }
        !answered
    }

    /// The spawned thread carries a reply: what it begins with. This thread goes on in its second phase.
    fn fork_reply(&mut self, node: &Node, key: u32) -> (Stack, u8) {
        let current = self.stack.current();
        let Some(position) = self.stack.nearest(key) else {
            if key == node.key && self.stack.len() > 0 {
                // The thread begins where it was spawned, and will reply from there.
                let phase = std::mem::replace(&mut self.phase, 2);
                self.n_inherited = 0;
                return (self.stack.replace(current), phase);
            }
            self.note_unmatched(node);
            return (Stack::new(self.walk.receiver_of_unmatched(key)), 1);
        };
        self.note_outer(node, key, position);
        let popped = self.stack.pop(position);
        let phase = popped.first().map_or(1, |frame| frame.phase);
        self.walk.answered(&popped, node.index);
        (self.phase, self.n_inherited) = (2, 0);
        (self.stack.replace(current), phase)
    }

    /// The spawned thread is a request that is not waited for.
    fn fork_request(&mut self, position: usize, key: u32) -> Stack {
        let node = &self.nodes[position];
        self.note_own_task(node, key);
        let client = self.stack.current();
        let server = self.walk.create(key, false);
        let exchange = self.walk.record(ClassKind::Async, self.phase, smallvec![client, server], smallvec![node.index]);
        let mut stack = Stack::new(client);
        let request = Request { phase: self.phase, sent: node.index, position, deferred: Some(exchange) };
        stack.push(server, request, &self.walk.found.occurrences);
        stack
    }

    fn end(mut self) {
        let current = self.stack.current();
        self.walk.found.occurrences.0[current].n_ends += 1;
        let left = self.stack.replace(current).into_frames();
        self.walk.abandoned(&left, self.number);
    }
}
