//! Requests under way, as every writer needs them: who sent them, and who serves them.

use std::collections::HashMap;

use crate::solve::simulate::record::{Event, Legend, Place, RecordedEvent, RequestKind};

/// A request, from its sending until its execution has ended and its sender has its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) kind: RequestKind,
    pub(super) by: Option<Place>,
    /// Entry and thread that sent it, which may have ended since.
    pub(super) sender: Option<(u32, u32)>,
    pub(super) chain: u64,
    pub(super) cycle: u64,
    pub(super) entry: u32,
    pub(super) sent: f64,
    /// Its thread, once it is accepted.
    pub(super) thread: u32,
    /// Whether it came in a thread of causes of its own.
    pub(super) came_forked: bool,
    has_ended: bool,
    awaits_reply: bool,
    gave_back: bool,
}

/// All that are under way.
#[derive(Debug, Default)]
pub(super) struct Requests {
    under_way: HashMap<u64, Request>,
}

impl Requests {
    pub(super) fn get(&self, request: u64) -> Option<&Request> {
        self.under_way.get(&request)
    }

    /// Before an event is written: what it adds.
    pub(super) fn before(&mut self, event: &RecordedEvent) {
        match event.event {
            Event::Sent { kind, by, chain, cycle, entry, .. } => {
                let awaits_reply = kind == RequestKind::Sync;
                let sender = by.and_then(|by| self.get(by.request)).map(|s| (s.entry, s.thread));
                let (has_ended, gave_back, came_forked) = (false, false, false);
                let sent = event.time;
                let request =
                    Request { kind, by, sender, chain, cycle, entry, sent, thread: 0, came_forked, has_ended, awaits_reply, gave_back };
                self.under_way.insert(event.request, request);
            }
            Event::Accepted { thread } => {
                if let Some(request) = self.under_way.get_mut(&event.request) {
                    request.thread = thread;
                }
            }
            _ => {}
        }
    }

    /// After an event was written: what it ends.
    pub(super) fn after(&mut self, event: &RecordedEvent) {
        match event.event {
            Event::Lost => {
                self.under_way.remove(&event.request);
            }
            Event::Replied { chain, .. } => self.settle(chain, |request| request.awaits_reply = false),
            Event::Ended => self.settle(event.request, |request| request.has_ended = true),
            _ => {}
        }
    }

    /// The thread of causes that an execution ran on has gone on without it.
    pub(super) fn give_back(&mut self, number: u64) {
        self.under_way.entry(number).and_modify(|request| request.gave_back = true);
    }

    pub(super) fn gave_back(&self, number: u64) -> bool {
        self.get(number).is_some_and(|request| request.gave_back)
    }

    /// A request came in a thread of causes of its own.
    pub(super) fn come_forked(&mut self, number: u64) {
        self.under_way.entry(number).and_modify(|request| request.came_forked = true);
    }

    fn settle(&mut self, number: u64, what: impl FnOnce(&mut Request)) {
        if let Some(request) = self.under_way.get_mut(&number) {
            what(request);
            if request.has_ended && !request.awaits_reply {
                self.under_way.remove(&number);
            }
        }
    }
}

/// Name of the task of an entry, and of the copy of it.
pub(super) fn task_name(legend: &Legend, entry: u32) -> String {
    let task = legend.task_of(entry);
    match task.copy {
        None => task.name.clone(),
        Some(copy) => format!("{}#{copy}", task.name),
    }
}

/// What a cycle is a cycle of: a reference task, or arrivals at an entry.
pub(super) fn scenario(legend: &Legend, kind: RequestKind, entry: u32) -> String {
    if kind == RequestKind::Open { format!("open:{}", legend.entry(entry)) } else { legend.task_of(entry).name.clone() }
}
