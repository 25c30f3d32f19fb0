//! Open requests of a thread, and what the rest of the thread does to them.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::{
    graph::{Arc, Node},
    walk::Occurrences,
};

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The requesting occurrence.
    pub(super) client: usize,
    /// Task and entry of that.
    client_key: u32,
    /// The occurrence that was requested.
    pub(super) server: usize,
    /// Phase of the client when it made the request.
    pub(super) phase: u8,
    /// Index of the event that sent it.
    pub(super) sent: u64,
    /// Of a request by a client that did not wait: where it stands among the exchanges found.
    pub(super) deferred: Option<usize>,
    /// Position of the sending event, in the thread that pushed the frame.
    position: usize,
}

/// The open requests that a thread carries, oldest first. The client of each is the server of the one before, of the first
/// it is `base`; so the occurrence that runs is the last server.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    base: usize,
    frames: Vec<Frame>,
    /// (key of the client, position in `frames`), if there are more than a few.
    clients: BTreeSet<(u32, usize)>,
}

/// Open requests up to which they are looked through one by one.
const FEW: usize = 32;

impl Stack {
    /// No open requests: `base` runs.
    pub(super) fn new(base: usize) -> Self {
        Self { base, frames: Vec::new(), clients: BTreeSet::new() }
    }

    /// The occurrence that runs.
    pub(super) fn current(&self) -> usize {
        self.frames.last().map_or(self.base, |frame| frame.server)
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The current occurrence requests `server`.
    pub(super) fn push(&mut self, server: usize, request: Request, occurrences: &Occurrences) {
        let client = self.current();
        let Request { phase, sent, position, deferred } = request;
        let client_key = occurrences.key(client);
        self.frames.push(Frame { client, client_key, server, phase, sent, deferred, position });
        match self.frames.len() - 1 {
            0..FEW => {}
            FEW => self.clients = self.frames.iter().zip(0..).map(|(frame, position)| (frame.client_key, position)).collect(),
            last => _ = self.clients.insert((client_key, last)),
        }
    }

    /// The youngest open request of a client that runs in `key`.
    pub(super) fn nearest(&self, key: u32) -> Option<usize> {
        self.nearest_below(key, self.frames.len())
    }

    /// Whether `key` is also the client of a request older than the one at `position`.
    pub(super) fn has_older(&self, key: u32, position: usize) -> bool {
        self.nearest_below(key, position).is_some()
    }

    fn nearest_below(&self, key: u32, end: usize) -> Option<usize> {
        if self.frames.len() <= FEW {
            return self.frames[..end].iter().rposition(|frame| frame.client_key == key);
        }
        self.clients.range((key, 0)..(key, end)).next_back().map(|(_, position)| *position)
    }

    /// Takes the requests from `position` on away.
    pub(super) fn pop(&mut self, position: usize) -> SmallVec<[Frame; 2]> {
        let popped: SmallVec<[Frame; 2]> = self.frames.drain(position..).collect();
        if self.frames.len() <= FEW {
            self.clients.clear();
        } else {
            popped.iter().zip(position..).for_each(|(frame, position)| _ = self.clients.remove(&(frame.client_key, position)));
        }
        popped
    }

    /// Leaves the stack with `base` running and nothing open; returns what it was.
    pub(super) fn replace(&mut self, base: usize) -> Self {
        std::mem::replace(self, Self::new(base))
    }

    /// All open requests.
    pub(super) fn into_frames(self) -> Vec<Frame> {
        self.frames
    }
}

/// What is known of a request when it is pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) phase: u8,
    pub(super) sent: u64,
    /// Position of the sending event in its thread.
    pub(super) position: usize,
    pub(super) deferred: Option<usize>,
}

/// Which open requests a thread answers by itself, were none of its forks without a flag a reply.
#[derive(Clone, Debug)]
pub(super) struct Lookahead {
    /// Of the requests that were open when reading ahead began, those from here on are answered.
    n_inherited_left: usize,
    /// Whether the request sent at each position is answered, shape `(n_events,)`.
    answered: Vec<bool>,
}

impl Lookahead {
    /// Reads a thread ahead from position `from`, where it carries `stack`; `child_key` tells where the thread begins that a
    /// fork spawned.
    pub(super) fn of(events: &[Node], from: usize, stack: &Stack, child_key: impl Fn(&Node) -> Option<u32>) -> Self {
        let mut dry = DryRun {
            inherited: stack,
            n_inherited: stack.frames.len(),
            own: Vec::new(),
            own_clients: BTreeSet::new(),
            found: Self { n_inherited_left: stack.frames.len(), answered: vec![false; events.len()] },
        };
        for (position, event) in events.iter().enumerate().skip(from) {
            if event.ack == Some(true) && child_key(event).is_some_and(|key| dry.find(key).is_some()) {
                dry.clear();
            }
            let Some(next) = events.get(position + 1) else { break };
            match Arc::between(event, next).0 {
                Arc::Continue => {}
                Arc::Reply => dry.reply(next.key),
                Arc::Jump if dry.find(next.key).is_some() => dry.reply(next.key),
                Arc::Request | Arc::Jump => dry.request(event.key, position),
            }
        }
        dry.found
    }

    /// Whether the request at `position` of `stack` is answered; the first `n_inherited` of its requests were open when
    /// reading ahead began.
    pub(super) fn is_answered(&self, stack: &Stack, position: usize, n_inherited: usize) -> bool {
        if position < n_inherited {
            return position >= self.n_inherited_left;
        }
        stack.frames.get(position).and_then(|frame| self.answered.get(frame.position)).copied().unwrap_or(false)
    }
}

/// An open request in a [`DryRun`].
#[derive(Clone, Copy, Debug)]
enum Open {
    Inherited(usize),
    Own(usize),
}

/// The open requests while a thread is read ahead: the first of those that were open before, and its own.
struct DryRun<'s> {
    inherited: &'s Stack,
    n_inherited: usize,
    /// (key of the client, position of the sending event).
    own: Vec<(u32, usize)>,
    /// (key of the client, index into `own`).
    own_clients: BTreeSet<(u32, usize)>,
    found: Lookahead,
}

impl DryRun<'_> {
    fn find(&self, key: u32) -> Option<Open> {
        let own = self.own_clients.range((key, 0)..=(key, usize::MAX)).next_back();
        let inherited = || self.inherited.nearest_below(key, self.n_inherited).map(Open::Inherited);
        own.map(|(_, index)| Open::Own(*index)).or_else(inherited)
    }

    fn request(&mut self, client: u32, position: usize) {
        self.own_clients.insert((client, self.own.len()));
        self.own.push((client, position));
    }

    fn reply(&mut self, client: u32) {
        match self.find(client) {
            None => self.clear(),
            Some(Open::Own(index)) => self.answer_own(index),
            Some(Open::Inherited(position)) => {
                self.answer_own(0);
                self.n_inherited = position;
                self.found.n_inherited_left = self.found.n_inherited_left.min(position);
            }
        }
    }

    fn answer_own(&mut self, from: usize) {
        for (offset, (client, position)) in self.own.split_off(from).into_iter().enumerate() {
            self.own_clients.remove(&(client, from + offset));
            self.found.answered[position] = true;
        }
    }

    fn clear(&mut self) {
        self.own.clear();
        self.own_clients.clear();
        self.n_inherited = 0;
    }
}
