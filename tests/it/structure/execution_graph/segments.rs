//! The identification of interactions as the paper has it (section 4.4): transitions, connectors, segments, matching of
//! anti-parallel segments and gap filling, in iterations. An independent second way to what the stack form finds.
//!
//! Each segment keeps the ordered chain of events of its connector; every event on it that a transition starts at is an
//! end of it. A fork to the client of an open request may be a request or a reply; with an `ack` flag it is what that says.

use std::collections::HashMap;

use layerfit::trace::event_trace::EventKind;

use super::OwnedEvent;

/// What was found, and in how many iterations.
pub struct Identified {
    /// `sync/1 A.a B.b`, `forward/1 A.a B.b C.c`, `async/2 A.a B.b`; sorted.
    pub interactions: Vec<String>,
    /// The same by iteration, from 1; asynchronous ones, which are what is left, in 0.
    pub by_iteration: Vec<(usize, String)>,
    /// Iterations that found something.
    pub iterations: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Request,
    Ack,
    Either,
}

struct Segment {
    role: Role,
    head: usize,
    target: usize,
    consumed: bool,
}

struct State<'e> {
    events: &'e [OwnedEvent],
    segments: Vec<Segment>,
    /// Connector of each segment, by its number; those after the segments' are chains that threads begin with.
    chains: Vec<Vec<usize>>,
    /// The chain that each event is on.
    chain_of: Vec<usize>,
    /// (iteration, requests, reply).
    found: Vec<(usize, Vec<usize>, usize)>,
}

/// Identifies the interactions of one operation.
pub fn identify(events: &[OwnedEvent]) -> Identified {
    let mut events = events.to_vec();
    events.sort_by_key(|event| (event.thread, event.index));
    let mut state = State::new(&events);
    let mut iterations = 0;
    while state.iterate(iterations + 1) {
        iterations += 1;
    }
    state.result(iterations)
}

impl<'e> State<'e> {
    fn new(events: &'e [OwnedEvent]) -> Self {
        let first_of: HashMap<u64, usize> =
            events.iter().enumerate().filter(|(_, event)| event.index == 1).map(|(id, event)| (event.thread, id)).collect();
        let next = |id: usize| events.get(id + 1).filter(|next| next.thread == events[id].thread).map(|_| id + 1);
        let mut segments = Vec::new();
        for (id, event) in events.iter().enumerate() {
            let spawned = event.next_thread.and_then(|thread| first_of.get(&thread).copied());
            for (target, forked) in next(id).map(|t| (t, false)).into_iter().chain(spawned.map(|t| (t, true))) {
                if events[target].key() == event.key() {
                    continue;
                }
                let role = match (event.kind, forked, event.ack) {
                    (EventKind::Send, false, _) | (_, true, Some(false)) => Role::Request,
                    (EventKind::SendAck, false, _) | (_, true, Some(true)) => Role::Ack,
                    (_, true, None) => Role::Either,
                    _ => panic!("an event without a message leads to another entry"),
                };
                segments.push(Segment { role, head: id, target, consumed: false });
            }
        }
        let mut starts: Vec<usize> = segments.iter().map(|segment| segment.target).collect();
        starts.extend(first_of.values().filter(|id| !segments.iter().any(|segment| segment.target == **id)));
        let mut chain_of = vec![usize::MAX; events.len()];
        let chains: Vec<Vec<usize>> = starts
            .iter()
            .enumerate()
            .map(|(chain, start)| {
                let connector: Vec<usize> =
                    std::iter::successors(Some(*start), |id| next(*id).filter(|n| events[*n].key() == events[*id].key())).collect();
                connector.iter().for_each(|id| chain_of[*id] = chain);
                connector
            })
            .collect();
        Self { events, segments, chains, chain_of, found: Vec::new() }
    }

    /// The open request whose connector `event` is on.
    fn open_request(&self, event: usize) -> Option<usize> {
        let chain = self.chain_of[event];
        self.segments.get(chain).filter(|segment| !segment.consumed && segment.role != Role::Ack).map(|_| chain)
    }

    /// The requests that segment `ack` would answer, if it is a reply: one, or a multi-segment.
    fn requests_of(&self, ack: usize) -> Option<Vec<usize>> {
        let client = self.events[self.segments[ack].target].key();
        let mut requests = vec![self.open_request(self.segments[ack].head)?];
        loop {
            let head = self.segments[requests[requests.len() - 1]].head;
            if self.events[head].key() == client {
                requests.reverse();
                return Some(requests);
            }
            let outer = self.open_request(head)?;
            assert!(requests.len() <= self.segments.len(), "segments form a circle");
            requests.push(outer);
        }
    }

    /// One iteration: matches, then fills the gaps. `false` if nothing matched.
    fn iterate(&mut self, iteration: usize) -> bool {
        let mut candidates: Vec<(usize, Vec<usize>)> = (0..self.segments.len())
            .filter(|ack| !self.segments[*ack].consumed && self.segments[*ack].role != Role::Request)
            .filter_map(|ack| Some((ack, self.requests_of(ack)?)))
            .collect();
        candidates.sort_by_key(|(ack, requests)| {
            let head = &self.events[self.segments[requests[0]].head];
            (requests.len(), self.segments[*ack].role == Role::Either, head.thread, head.index)
        });
        let mut matched = Vec::new();
        for (ack, requests) in candidates {
            if requests.iter().chain([&ack]).all(|segment| !self.segments[*segment].consumed) {
                requests.iter().chain([&ack]).for_each(|segment| self.segments[*segment].consumed = true);
                matched.push((requests, ack));
            }
        }
        for (requests, ack) in &matched {
            self.fill_gap(requests[0], *ack);
        }
        let productive = !matched.is_empty();
        self.found.extend(matched.into_iter().map(|(requests, ack)| (iteration, requests, ack)));
        productive
    }

    /// Splices the connector of the reply after the event that sent the request.
    fn fill_gap(&mut self, request: usize, ack: usize) {
        let head = self.segments[request].head;
        let into = self.chain_of[head];
        let connector = std::mem::take(&mut self.chains[ack]);
        connector.iter().for_each(|id| self.chain_of[*id] = into);
        let at = self.chains[into].iter().position(|id| *id == head).expect("an event is on its chain") + 1;
        self.chains[into].splice(at..at, connector);
    }

    /// 2 where the connector that `head` is on has a reply by a fork before it.
    fn phase(&self, head: usize) -> u8 {
        let chain = self.chain_of[head];
        let place = |id: usize| self.chains[chain].iter().position(|on| *on == id);
        let replied =
            self.found.iter().find(|(_, requests, _)| requests.last() == Some(&chain)).map(|(_, _, ack)| self.segments[*ack].head);
        let by_fork = replied.filter(|id| self.events[*id].kind == EventKind::Fork);
        if by_fork.is_some_and(|id| place(id) < place(head)) { 2 } else { 1 }
    }

    fn result(&self, iterations: usize) -> Identified {
        let shown = |requests: &[usize], kind: &str| {
            let head = self.segments[requests[0]].head;
            let ends = requests.iter().map(|segment| self.events[self.segments[*segment].target].key());
            let names: Vec<String> = std::iter::once(self.events[head].key()).chain(ends).map(|(t, e)| format!("{t}.{e}")).collect();
            format!("{kind}/{} {}", self.phase(head), names.join(" "))
        };
        let kind = |requests: &[usize]| if requests.len() == 1 { "sync" } else { "forward" };
        let mut by_iteration: Vec<(usize, String)> =
            self.found.iter().map(|(iteration, requests, _)| (*iteration, shown(requests, kind(requests)))).collect();
        let left = (0..self.segments.len()).filter(|segment| !self.segments[*segment].consumed);
        by_iteration.extend(left.map(|segment| (0, shown(&[segment], "async"))));
        by_iteration.sort();
        let mut interactions: Vec<String> = by_iteration.iter().map(|(_, shown)| shown.clone()).collect();
        interactions.sort();
        Identified { interactions, by_iteration, iterations }
    }
}
