//! One operation's execution graph to its exchanges: the stack form of the identification.

use smallvec::{SmallVec, smallvec};

use crate::trace::hashed::HashMap;

use super::{
    AsyncRpc, CpuStamps,
    graph::{Graph, Keys, Node, Thread},
    stack::{Frame, Stack},
    thread,
    workload::ClassKind,
};
use crate::trace::{diagnostics::Diagnostics, event_trace::EventKind};

/// One execution of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    /// Task and entry.
    pub(super) key: u32,
    /// Whether it was started from outside.
    pub(super) originator: bool,
    /// CPU time in each phase, where the trace tells.
    pub(super) cpu_ticks: [Option<f64>; 2],
    /// Highest phase seen.
    pub(super) phases: u8,
    /// Threads that ended in it.
    pub(super) n_ends: u32,
}

/// The executions of an operation, in order of creation.
#[derive(Clone, Debug, Default)]
pub(super) struct Occurrences(pub(super) Vec<Execution>);

impl Occurrences {
    pub(super) fn key(&self, occurrence: usize) -> u32 {
        self.0[occurrence].key
    }

    fn create(&mut self, key: u32, originator: bool) -> usize {
        self.0.push(Execution { key, originator, cpu_ticks: [None; 2], phases: 1, n_ends: 0 });
        self.0.len() - 1
    }
}

/// An interaction.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) kind: ClassKind,
    /// Phase of the requester.
    pub(super) phase: u8,
    /// The requester, those that forwarded, the one that replied or received.
    pub(super) chain: SmallVec<[usize; 3]>,
    /// Index, within its thread, of the event with which each sent its message; of an asynchronous request the one.
    pub(super) sent: SmallVec<[u64; 3]>,
}

/// What was found in an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) occurrences: Occurrences,
    pub(super) exchanges: Vec<Exchange>,
    /// Events that were walked over.
    pub(super) n_walked: u64,
    /// Events in threads that nothing leads to.
    pub(super) n_unreachable: u64,
}

impl Found {
    /// Drops those of the `unasked` executions that have no part in any exchange.
    fn drop_idle(&mut self, unasked: &[usize]) {
        if unasked.is_empty() {
            return;
        }
        let mut stays = vec![true; self.occurrences.0.len()];
        unasked.iter().for_each(|occurrence| stays[*occurrence] = false);
        self.exchanges.iter().flat_map(|exchange| &exchange.chain).for_each(|occurrence| stays[*occurrence] = true);
        let mut new_of = Vec::with_capacity(stays.len());
        let mut n_before = 0;
        for stays in &stays {
            new_of.push(n_before);
            n_before += usize::from(*stays);
        }
        self.exchanges.iter_mut().flat_map(|exchange| &mut exchange.chain).for_each(|occurrence| *occurrence = new_of[*occurrence]);
        let mut stays = stays.into_iter();
        self.occurrences.0.retain(|_| stays.next().unwrap_or(true));
    }
}

/// What a walk needs to know beside the graph.
pub(super) struct Context<'a> {
    pub(super) keys: &'a Keys,
    pub(super) async_rpc: AsyncRpc,
    pub(super) cpu: CpuStamps,
    pub(super) operation: u64,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl Context<'_> {
    /// Notes an oddity at an event.
    pub(super) fn note(&mut self, code: &'static str, message: &'static str, place: Place) {
        let (operation, keys) = (self.operation, self.keys);
        self.diagnostics.add(code, message, || {
            let Place { thread, index, key } = place;
            format!("operation {operation}, thread {thread}, event {index} ({})", keys.shown(key))
        });
    }
}

/// Where an event stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) thread: u64,
    pub(super) index: u64,
    pub(super) key: u32,
}

/// A thread that is still to be walked.
pub(super) struct Strand {
    /// Index into [`Graph::threads`].
    pub(super) thread: usize,
    pub(super) stack: Stack,
    /// Phase of the occurrence that runs.
    pub(super) phase: u8,
}

/// Walks over `graph`, whose threads are sorted and without repetitions.
pub(super) fn walk(graph: &Graph, context: Context<'_>) -> Found {
    let mut walk = Walk {
        graph,
        context,
        found: Found::default(),
        last_of_key: None,
        unasked: Vec::new(),
        claimed: smallvec![false; graph.threads.len()],
        pending: SmallVec::new(),
    };
    walk.begin();
    while let Some(strand) = walk.pending.pop() {
        thread::walk(&mut walk, strand);
    }
    walk.end();
    walk.found.drop_idle(&walk.unasked);
    walk.found
}

/// A walk over all threads of an operation.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a Graph,
    pub(super) context: Context<'a>,
    pub(super) found: Found,
    /// The occurrence of each key that was created last; `None` until a reply without a request asks for one.
    last_of_key: Option<HashMap<u32, usize>>,
    /// Executions that only a reply without a request led to.
    unasked: Vec<usize>,
    /// Threads that something led to, shape `(n_threads,)`.
    pub(super) claimed: SmallVec<[bool; 16]>,
    pub(super) pending: SmallVec<[Strand; 2]>,
}

impl Walk<'_> {
    pub(super) fn create(&mut self, key: u32, originator: bool) -> usize {
        let occurrence = self.found.occurrences.create(key, originator);
        if let Some(last_of_key) = &mut self.last_of_key {
            last_of_key.insert(key, occurrence);
        }
        occurrence
    }

    /// The execution that a reply goes to which nobody waits for: the last one of the entry, else a new one, of which nothing
    /// tells who started it.
    pub(super) fn receiver_of_unmatched(&mut self, key: u32) -> usize {
        let created = &self.found.occurrences.0;
        let last_of_key = self.last_of_key.get_or_insert_with(|| created.iter().map(|execution| execution.key).zip(0..).collect());
        if let Some(known) = last_of_key.get(&key) {
            return *known;
        }
        let receiver = self.create(key, true);
        self.unasked.push(receiver);
        receiver
    }

    /// Finds the threads that an operation starts with: those that begin with Ex, else the one numbered 1.
    fn begin(&mut self) {
        let graph = self.graph;
        let first = |kind: Option<EventKind>| {
            let begins = move |nodes: &[Node]| nodes.first().is_some_and(|node| kind.is_none_or(|kind| node.kind == kind));
            graph.threads.iter().enumerate().filter(move |(_, (_, thread))| begins(&thread.nodes))
        };
        let mut roots: Vec<usize> = first(Some(EventKind::External)).map(|(position, _)| position).collect();
        if roots.is_empty() {
            let starts_whole = |thread: &Thread| thread.nodes.first().is_some_and(|node| node.index == 1);
            roots =
                first(None).filter(|(_, (number, thread))| **number == 1 && starts_whole(thread)).map(|(position, _)| position).collect();
            let operation = self.context.operation;
            let message = "operations without an External event: those whose thread 1 has its first event start there, others are left out";
            self.context.diagnostics.add("no_external", message, || format!("operation {operation}"));
        }
        if roots.len() > 1 {
            let operation = self.context.operation;
            let message = "operations were started by several External events: each counts as one cycle of a customer";
            self.context.diagnostics.add("several_externals", message, || format!("operation {operation}"));
        }
        for position in roots.into_iter().rev() {
            let Some(node) = graph.threads[position].nodes.first() else { continue };
            self.claimed[position] = true;
            let base = self.create(node.key, true);
            self.pending.push(Strand { thread: position, stack: Stack::new(base), phase: 1 });
        }
    }

    /// Threads that nothing led to.
    fn end(&mut self) {
        for ((number, thread), claimed) in self.graph.threads.iter().zip(&self.claimed) {
            let Some(first) = thread.nodes.first().filter(|_| !claimed) else { continue };
            self.found.n_unreachable += thread.nodes.len() as u64;
            let message = "threads without the fork that spawned them, or forks without their thread, were left out";
            self.context.note("missing_thread", message, Place { thread: *number, index: first.index, key: first.key });
        }
        let mut joined: Vec<u32> = self.found.occurrences.0.iter().filter(|o| o.n_ends > 1).map(|o| o.key).collect();
        joined.sort_unstable();
        let (operation, keys) = (self.context.operation, self.context.keys);
        for key in joined {
            let message = "several threads ended in one execution of an entry: that they join is not modelled";
            let place = || format!("operation {operation} ({})", keys.shown(key));
            self.context.diagnostics.add("join_not_modelled", message, place);
        }
    }

    pub(super) fn record(&mut self, kind: ClassKind, phase: u8, chain: SmallVec<[usize; 3]>, sent: SmallVec<[u64; 3]>) -> usize {
        self.found.exchanges.push(Exchange { kind, phase, chain, sent });
        self.found.exchanges.len() - 1
    }

    /// Requests that were answered together: one is a synchronous request, more were forwarded.
    pub(super) fn answered(&mut self, frames: &[Frame], reply: u64) {
        let Some(first) = frames.first() else { return };
        let one = frames.len() == 1;
        let chain = || std::iter::once(first.client).chain(frames.iter().map(|frame| frame.server)).collect::<SmallVec<_>>();
        let sent = || frames.iter().map(|frame| frame.sent).chain([reply]).collect::<SmallVec<_>>();
        let blocking = if one { ClassKind::Sync } else { ClassKind::Forward };
        match (first.deferred, self.context.async_rpc) {
            (None, _) => {
                self.record(blocking, first.phase, chain(), sent());
            }
            (Some(exchange), AsyncRpc::Paper) => {
                let (phase, chain, sent) = (first.phase, chain(), sent());
                self.found.exchanges[exchange] = Exchange { kind: blocking, phase, chain, sent };
            }
            (Some(exchange), AsyncRpc::Asynchronous) => {
                self.found.exchanges[exchange].kind = if one { ClassKind::AsyncRpc } else { ClassKind::AsyncForward };
                for frame in &frames[1..] {
                    self.record(ClassKind::Async, frame.phase, smallvec![frame.client, frame.server], smallvec![frame.sent]);
                }
            }
        }
    }

    /// Requests that nobody answers.
    pub(super) fn abandoned(&mut self, frames: &[Frame], thread: u64) {
        for frame in frames.iter().filter(|frame| frame.deferred.is_none()) {
            self.record(ClassKind::Async, frame.phase, smallvec![frame.client, frame.server], smallvec![frame.sent]);
            let place = Place { thread, index: frame.sent, key: self.found.occurrences.key(frame.server) };
            self.context.note("no_reply", "requests without a reply count as asynchronous", place);
        }
    }
}
