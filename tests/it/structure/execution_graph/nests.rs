//! Random operations with what they are made of: nests of synchronous requests, loops, forwards, asynchronous requests with
//! and without replies, and second phases.

use layerfit::trace::event_trace::EventKind;

use super::OwnedEvent;

/// Whether the operation is to be told apart by forks that say if they are replies; if not, nothing is requested
/// asynchronously of a client that waits in the same thread. The events have the flags in both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    Said,
    Unsaid,
}

/// An operation's events, and its interactions as in [`super::segments::Identified`].
pub struct Nest {
    pub events: Vec<OwnedEvent>,
    pub interactions: Vec<String>,
}

/// The operation that `choices` make; any bytes make one.
pub fn nest(operation: u64, choices: &[u8], flags: Flags) -> Nest {
    let mut builder = Builder { operation, choices: choices.iter(), flags, events: Vec::new(), next_index: vec![0], found: Vec::new() };
    let thread = builder.spawn();
    let root = builder.choice(N_KEYS);
    builder.event(thread, root, EventKind::External);
    let mut at = At { thread, key: root, phase: 1 };
    builder.body(&mut at, &mut Vec::new(), 0);
    builder.event(at.thread, root, EventKind::End);
    builder.found.sort();
    Nest { events: builder.events, interactions: builder.found }
}

const N_KEYS: u8 = 7;
const DEEPEST: usize = 5;

/// Where an entry runs.
#[derive(Clone, Copy)]
struct At {
    thread: u64,
    key: u8,
    phase: u8,
}

struct Builder<'c> {
    operation: u64,
    choices: std::slice::Iter<'c, u8>,
    flags: Flags,
    events: Vec<OwnedEvent>,
    /// By thread; thread 0 is not used.
    next_index: Vec<u64>,
    found: Vec<String>,
}

impl Builder<'_> {
    /// A number below `n`; 0 once the choices are used up.
    fn choice(&mut self, n: u8) -> u8 {
        self.choices.next().map_or(0, |byte| byte % n)
    }

    fn spawn(&mut self) -> u64 {
        self.next_index.push(1);
        self.next_index.len() as u64 - 1
    }

    fn event(&mut self, thread: u64, key: u8, kind: EventKind) {
        let index = self.next_index[thread as usize];
        self.next_index[thread as usize] += 1;
        let (task, entry) = names(key);
        self.events.push(OwnedEvent {
            operation: self.operation,
            thread,
            next_thread: None,
            index,
            kind,
            task,
            entry,
            ack: None,
            cpu: None,
        });
    }

    fn fork(&mut self, at: At, ack: bool) -> u64 {
        let spawned = self.spawn();
        self.event(at.thread, at.key, EventKind::Fork);
        let event = self.events.last_mut().unwrap();
        (event.next_thread, event.ack) = (Some(spawned), Some(ack));
        spawned
    }

    fn found(&mut self, kind: &str, phase: u8, keys: &[u8]) {
        let names: Vec<String> = keys.iter().map(|key| names(*key)).map(|(task, entry)| format!("{task}.{entry}")).collect();
        self.found.push(format!("{kind}/{phase} {}", names.join(" ")));
    }

    /// A key other than those of `not`.
    fn other(&mut self, not: &[u8]) -> Option<u8> {
        let first = self.choice(N_KEYS);
        (0..N_KEYS).map(|offset| (first + offset) % N_KEYS).find(|key| !not.contains(key))
    }

    /// What an entry does; `open` are the clients of the requests that its thread carries.
    fn body(&mut self, at: &mut At, open: &mut Vec<u8>, depth: usize) {
        for _ in 0..self.choice(4) {
            match self.choice(5) {
                0 => self.event(at.thread, at.key, EventKind::Activity),
                1 | 2 if depth < DEEPEST => {
                    for _ in 0..=self.choice(3) {
                        self.call(at, open, depth);
                    }
                }
                3 | 4 if depth < DEEPEST => self.request_async(*at, open, depth),
                _ => {}
            }
        }
    }

    /// A blocking request, perhaps forwarded, answered by Sa or by a fork.
    fn call(&mut self, at: &mut At, open: &mut Vec<u8>, depth: usize) {
        let Some(server) = self.other(&[at.key]) else { return };
        self.event(at.thread, at.key, EventKind::Send);
        open.push(at.key);
        self.event(at.thread, server, EventKind::Receive);
        self.serve(at, vec![at.key, server], open, depth);
        open.pop();
    }

    /// The last of `chain` serves its first, in the thread of `client`, which goes on in the thread that the reply came in.
    fn serve(&mut self, client: &mut At, mut chain: Vec<u8>, open: &mut Vec<u8>, depth: usize) {
        let n_open = open.len();
        let mut server = At { thread: client.thread, key: chain[1], phase: 1 };
        self.body(&mut server, open, depth + 1);
        while self.choice(4) == 1 {
            let Some(next) = self.other(&chain) else { break };
            self.event(server.thread, server.key, EventKind::Send);
            open.push(server.key);
            self.event(server.thread, next, EventKind::Receive);
            server.key = next;
            chain.push(next);
            self.body(&mut server, open, depth + 1);
        }
        open.truncate(n_open);
        self.found(if chain.len() == 2 { "sync" } else { "forward" }, client.phase, &chain);
        if self.choice(3) == 1 {
            let thread = self.fork(server, true);
            self.event(thread, client.key, EventKind::Begin);
            client.thread = thread;
            server.phase = 2;
            self.body(&mut server, &mut Vec::new(), depth + 1);
            self.event(server.thread, server.key, EventKind::End);
        } else {
            self.event(server.thread, server.key, EventKind::SendAck);
            self.event(server.thread, client.key, EventKind::ReceiveAck);
            client.thread = server.thread;
        }
    }

    /// A request that is not waited for; its reply, if any, arrives in a thread of its own.
    fn request_async(&mut self, client: At, open: &[u8], depth: usize) {
        let mut not = vec![client.key];
        if self.flags == Flags::Unsaid {
            not.extend(open);
        }
        let Some(key) = self.other(&not) else { return };
        let thread = self.fork(client, false);
        self.event(thread, key, EventKind::Begin);
        let mut open = vec![client.key];
        if self.choice(3) == 1 {
            let mut waiting = At { thread, ..client };
            self.serve(&mut waiting, vec![client.key, key], &mut open, depth);
            self.body(&mut waiting, &mut Vec::new(), depth + 1);
            self.event(waiting.thread, client.key, EventKind::End);
        } else {
            self.found("async", client.phase, &[client.key, key]);
            let mut server = At { thread, key, phase: 1 };
            self.body(&mut server, &mut open, depth + 1);
            self.event(server.thread, key, EventKind::End);
        }
    }
}

fn names(key: u8) -> (String, String) {
    // Two entries of one task among them.
    let task = if key == 6 { "F".to_owned() } else { char::from(b'A' + key).to_string() };
    (task, format!("e{key}"))
}
