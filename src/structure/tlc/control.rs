//! The control algorithm (Figure 5 of the paper): a graph to a sub-model.
//!
//! 1. E₀ is the customer's entry, named after the scenario; E₁ serves the first node's task; E₀ requests E₁. The list of
//!    triggers holds the first node.
//! 2. Take the first trigger; for each node from there to the end of its thread that is in no template yet: find a template
//!    and do what it asks, which may append triggers.
//! 3. Repeat until the list is empty. Nodes that no template holds are told.
//!
//! What templates ask (with E the entry of e₁, Eₙ new entries):
//!
//! | template | new entries and requests | reply | triggers |
//! |---|---|---|---|
//! | (i) | E → Eₙ at e₂ | e₃ | |
//! | (iii) | E → Eₙ at e₂ | e₃ | e₃'s thread if it is not e₂'s, after e₄ |
//! | (v), (vi) | E → Eₙ at e₃ | e₄ | after e₃, e₄'s thread if it is not e₃'s, after e₅ |
//! | (iv), (iv′) | E → E₀ at e₂ or e₃, forwarded to E₁ … Eₙ at each Be | each Fk | after each Be, each Fk's thread if it is not its Be's, after the last Be |
//! | (ii) | E → Eₙ at e₂ | | after e₂ |
//! | (i°) | E → Eₙ at e₂, unless its task waits for E | | |
//!
//! The entry of a node is that which its task accepted last, at or before the node. A node is of *phase 2* if it comes after
//! the reply (or forwarding) of its entry; so are the requests it makes.
//!
//! Where this differs from the paper: the trigger for what the first sender of (iv) does next, missing in Table 1; the task
//! of a forwarder's entry is that of its own Be (Table 1 has that of the one before); triggers are taken first in, first out
//! (Figure 5, not "depth-first" of section 5.2), which only numbers entries differently; a trigger on a node that a template
//! holds starts at the next free node of the thread; the trigger on the thread in which a service replies (e₄'s of (vi)) is taken
//! when there is no other, as it would come before the request that leads there where a service asks several times. The paper's `phase2` marks what the replying thread does in the task
//! after the reply; here it is what the *service* does then (section 3: "any work that occurs after the reply but before the
//! acceptance of the next request"), which is the same except where the service goes on in another thread, as after a
//! request built from messages.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    TlcOptions,
    live::NONE,
    marks::Marks,
    templates::{FORWARDERS_LIMIT, Finder, Match, Template},
    toeg::Toeg,
};
use crate::structure::interactions::InteractionKind;

/// How an entry is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EntryKind {
    /// Cu: not at all; the source of a scenario.
    #[serde(rename = "Cu")]
    Customer,
    /// R: with a reply.
    #[serde(rename = "R")]
    Rpc,
    /// A: without one.
    #[serde(rename = "A")]
    Async,
    /// F: by one that hands its request on.
    #[serde(rename = "F")]
    Forwarding,
}

/// An entry of a sub-model: one execution of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    /// [`NONE`] of the customer.
    pub(super) task: u32,
    /// The node that received the request.
    pub(super) node: u32,
    /// The entry that requested it, [`NONE`] of the customer.
    pub(super) requester: u32,
    /// Place (in the order by task) of the reply or forwarding, [`NONE`] without.
    pub(super) replied: u32,
}

/// A request from an entry to `first`, which is forwarded up to `last` (the entries between have the indices between).
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) kind: InteractionKind,
    pub(super) phase: u8,
    pub(super) from: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Where the reply was received, [`NONE`] without.
    pub(super) reply: u32,
}

/// Oddities met on the way, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Oddities {
    pub(super) busy_elsewhere: u64,
    pub(super) chained_forwarding: u64,
    pub(super) ambiguous_reply: u64,
    pub(super) too_long: u64,
}

/// Number of templates.
pub(super) const N_TEMPLATES: usize = Template::Unanswered as usize + 1;

/// The state of the algorithm, and the sub-model that it leaves; buffers are used again for the next graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    pub(super) entries: Vec<Entry>,
    pub(super) requests: Vec<Request>,
    /// The entry of each node, [`NONE`] of those that no template holds; shape `(n_nodes,)`.
    pub(super) entry_of: Vec<u32>,
    /// Whether a template holds the node, shape `(n_nodes,)`.
    pub(super) processed: Vec<bool>,
    /// Whether the task waits from this node to its next, shape `(n_nodes,)`.
    pub(super) waits: Vec<bool>,
    /// Templates found, by [`Template`].
    pub(super) counts: [u64; N_TEMPLATES],
    pub(super) oddities: Oddities,
    /// The templates found with their nodes, where they are asked for.
    pub(super) log: Option<Vec<(Template, Vec<u32>)>>,
    /// Places (in the order by task) of acceptances.
    accepted: Marks,
    /// The entry accepted at each of these, shape `(n_nodes,)`.
    entry_of_place: Vec<u32>,
    triggers: VecDeque<u32>,
    /// Taken only when there are no others.
    late_triggers: VecDeque<u32>,
    /// From where on each thread was walked, shape `(n_threads,)`.
    walked_from: Vec<u32>,
}

impl Control {
    /// One that keeps the templates found with their nodes.
    pub(super) fn logging() -> Self {
        Self { log: Some(Vec::new()), ..Self::default() }
    }

    /// Finds the sub-model of a graph with the given first node.
    pub(super) fn run(&mut self, toeg: &mut Toeg, first: u32, options: &TlcOptions) {
        self.reset(toeg);
        self.entries.push(Entry { kind: EntryKind::Customer, task: NONE, node: NONE, requester: NONE, replied: NONE });
        let served = self.new_entry(toeg, EntryKind::Rpc, first, 0);
        self.requests.push(Request { kind: InteractionKind::Sync, phase: 1, from: 0, first: served, last: served, reply: NONE });
        self.triggers.push_back(first);
        let mut found = Match::default();
        while let Some(trigger) = self.triggers.pop_front().or_else(|| self.late_triggers.pop_front()) {
            let thread = toeg.node(trigger).thread as usize;
            let end = self.walked_from[thread];
            self.walked_from[thread] = end.min(trigger);
            for node in trigger..end {
                if !self.processed[node as usize] {
                    self.step(toeg, node, options, &mut found);
                }
            }
        }
        let served_last = toeg.task_order.iter().rev().find(|node| self.entry_of[**node as usize] == served);
        self.requests[0].reply = served_last.copied().unwrap_or(NONE);
    }

    fn reset(&mut self, toeg: &Toeg) {
        let n_nodes = toeg.nodes.len();
        self.entries.clear();
        self.requests.clear();
        for flags in [&mut self.processed, &mut self.waits] {
            flags.clear();
            flags.resize(n_nodes, false);
        }
        self.entry_of.clear();
        self.entry_of.resize(n_nodes, NONE);
        self.counts = [0; N_TEMPLATES];
        self.oddities = Oddities::default();
        self.accepted.reset(n_nodes);
        self.entry_of_place.resize(self.entry_of_place.len().max(n_nodes), NONE);
        self.triggers.clear();
        self.late_triggers.clear();
        self.walked_from.clear();
        self.walked_from.extend(toeg.starts.iter().skip(1));
    }

    /// Finds a template for one node and does what it asks.
    fn step(&mut self, toeg: &mut Toeg, node: u32, options: &TlcOptions, found: &mut Match) {
        let mut finder = Finder {
            toeg: &mut *toeg,
            processed: &self.processed,
            counters: options.task_counters,
            async_forwarding: options.async_forwarding,
            unanswered: options.unanswered,
        };
        finder.find(node, found);
        self.oddities.busy_elsewhere += u64::from(found.busy_elsewhere);
        self.oddities.chained_forwarding += u64::from(found.chained_forwarding);
        self.oddities.ambiguous_reply += u64::from(found.ambiguous_reply);
        self.oddities.too_long += u64::from(found.too_long);
        let Some(template) = found.template else { return };
        let from = self.entry_at(toeg, node);
        if from == NONE && !matches!(template, Template::Begin | Template::End) {
            return;
        }
        let template = self.request_or_return(toeg, template, found, from);
        self.apply(toeg, template, &found.nodes, from);
        self.counts[template as usize] += 1;
        for index in &found.nodes {
            self.processed[*index as usize] = true;
        }
        for index in &found.nodes {
            self.entry_of[*index as usize] = self.entry_at(toeg, *index);
        }
        if let Some(log) = &mut self.log {
            log.push((template, found.nodes.clone()));
        }
    }

    /// A thread that goes back to a task which still waits for it is no request, even if what it left there does not show how.
    fn request_or_return(&self, toeg: &Toeg, template: Template, found: &mut Match, from: u32) -> Template {
        let (Template::Unanswered, [_, e2]) = (template, found.nodes.as_slice()) else { return template };
        let requesters = std::iter::successors(self.entries.get(from as usize), |entry| self.entries.get(entry.requester as usize));
        if requesters.take(FORWARDERS_LIMIT).all(|entry| entry.task != toeg.node(*e2).task) {
            return template;
        }
        found.nodes.truncate(1);
        Template::Activity
    }

    fn apply(&mut self, toeg: &Toeg, template: Template, nodes: &[u32], from: u32) {
        let phase = self.phase(toeg, nodes[0], from);
        let sync = |first: u32, reply: u32| Request { kind: InteractionKind::Sync, phase, from, first, last: first, reply };
        match (template, nodes) {
            (Template::Activity | Template::End | Template::Begin, _) => {}
            (Template::Rpc | Template::RpcWithSecondPhase, [e1, e2, e3, e4]) => {
                let served = self.new_entry(toeg, EntryKind::Rpc, *e2, from);
                self.replied(toeg, served, *e3);
                self.waits[*e1 as usize] = true;
                self.requests.push(sync(served, *e4));
                if template == Template::RpcWithSecondPhase {
                    self.trigger_elsewhere(toeg, *e2, *e3);
                    self.trigger_after(toeg, *e4);
                }
            }
            (Template::AsyncRpc | Template::NestedAsyncRpc, [_, e2, e3, e4, e5]) => {
                let served = self.new_entry(toeg, EntryKind::Rpc, *e3, from);
                self.replied(toeg, served, *e4);
                self.waits[*e2 as usize] = true;
                self.requests.push(sync(served, *e5));
                self.trigger_after(toeg, *e3);
                self.trigger_elsewhere(toeg, *e3, *e4);
                self.trigger_after(toeg, *e5);
            }
            (Template::Forwarding, [e1, e2, e3, chain @ ..]) => self.forward(toeg, *e1, [*e2, *e3], chain, (from, phase)),
            (Template::AsyncForwarding, [_, e2, e3, e4, chain @ ..]) => {
                self.trigger_after(toeg, *e3);
                self.forward(toeg, *e2, [*e3, *e4], chain, (from, phase));
            }
            (Template::Async, [_, e2]) => {
                let served = self.new_entry(toeg, EntryKind::Async, *e2, from);
                let kind = InteractionKind::Async;
                self.requests.push(Request { kind, phase, from, first: served, last: served, reply: NONE });
                self.trigger_after(toeg, *e2);
            }
            (Template::Unanswered, [e1, e2]) => {
                let served = self.new_entry(toeg, EntryKind::Rpc, *e2, from);
                self.waits[*e1 as usize] = true;
                self.requests.push(sync(served, NONE));
            }
            (_, other) => debug_assert!(false, "{template:?} has {} nodes", other.len()),
        }
    }

    /// A forwarding: the sender waits from `wait`; the first server accepts and hands on at `server`; `chain` has the Be and
    /// Fk of each forwarder and the Be where the sender goes on.
    fn forward(&mut self, toeg: &Toeg, wait: u32, server: [u32; 2], chain: &[u32], (from, phase): (u32, u8)) {
        self.waits[wait as usize] = true;
        let first = self.new_entry(toeg, EntryKind::Rpc, server[0], from);
        self.replied(toeg, first, server[1]);
        self.trigger_elsewhere(toeg, server[0], server[1]);
        let (mut last, mut reply) = (first, NONE);
        for forwarder in chain.chunks(2) {
            self.trigger_after(toeg, forwarder[0]);
            match forwarder {
                [begin, fork] => {
                    last = self.new_entry(toeg, EntryKind::Forwarding, *begin, last);
                    self.replied(toeg, last, *fork);
                    self.trigger_elsewhere(toeg, *begin, *fork);
                }
                _ => reply = forwarder[0],
            }
        }
        self.requests.push(Request { kind: InteractionKind::Forward, phase, from, first, last, reply });
    }

    fn new_entry(&mut self, toeg: &Toeg, kind: EntryKind, node: u32, requester: u32) -> u32 {
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { kind, task: toeg.node(node).task, node, requester, replied: NONE });
        let place = toeg.place[node as usize];
        self.accepted.insert(place);
        self.entry_of_place[place as usize] = entry;
        entry
    }

    fn replied(&mut self, toeg: &Toeg, entry: u32, node: u32) {
        self.entries[entry as usize].replied = toeg.place[node as usize];
    }

    /// A trigger on what follows a begin in its thread, if anything does.
    fn trigger_after(&mut self, toeg: &Toeg, begin: u32) {
        let next = begin + 1;
        if toeg.thread(toeg.node(begin).thread).contains(&next) {
            self.triggers.push_back(next);
        }
    }

    /// A trigger on the thread in which a service replied, if that is not the one in which it was accepted.
    fn trigger_elsewhere(&mut self, toeg: &Toeg, accepted: u32, replied: u32) {
        let thread = toeg.node(replied).thread;
        if thread != toeg.node(accepted).thread {
            self.late_triggers.push_back(toeg.thread(thread).start);
        }
    }

    /// The entry that the node's task accepted last, [`NONE`] if it accepted nothing yet.
    fn entry_at(&self, toeg: &Toeg, node: u32) -> u32 {
        let last = self.accepted.last_up_to(toeg.place[node as usize]).map(|place| self.entry_of_place[place as usize]);
        last.filter(|entry| self.entries[*entry as usize].task == toeg.node(node).task).unwrap_or(NONE)
    }

    /// Phase of a node in its entry, 1 or 2.
    pub(super) fn phase(&self, toeg: &Toeg, node: u32, entry: u32) -> u8 {
        let replied = self.entries.get(entry as usize).map_or(NONE, |entry| entry.replied);
        if toeg.place[node as usize] > replied { 2 } else { 1 }
    }
}
