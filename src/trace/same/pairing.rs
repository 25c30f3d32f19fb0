//! Which reception belongs to which sending.
//!
//! In order of time (ties by `seq`, then as in the log) a reception takes the earliest sending that is not yet taken and
//! agrees with it: in `msg_id` where the row has one; otherwise in message type, and in sender and receiver as far as
//! the rows name their peers. Every sending stands in two queues, by `(type, sender, receiver?)` and by
//! `(type, receiver?)`, so that a reception looks at two queue heads whether or not it names its peer.

use std::collections::{HashMap, VecDeque};

use super::{Message, MessageLog, OpenTrace, Time};

/// Which end of a message an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Send,
    Receive,
}

/// One end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) time: Time,
    pub(super) seq: u64,
    pub(super) side: Side,
    pub(super) unit: u32,
    pub(super) process: u32,
    pub(super) peer: Option<u32>,
    pub(super) operation: Option<u32>,
    pub(super) id: Option<u32>,
}

impl Event {
    /// Whether the ends may belong to one message, as far as they name processes.
    fn agrees(&self, other: &Self) -> bool {
        let names = |end: &Self, other: &Self| end.peer.is_none_or(|peer| peer == other.process);
        names(self, other) && names(other, self)
    }
}

/// Pairs the events of a recording into messages; events that remain are counted and dropped.
pub(super) fn pair(open: &mut OpenTrace, log: &mut MessageLog) {
    let mut events = std::mem::take(&mut open.events);
    for pair in events.windows(2).filter(|pair| pair[1].time < pair[0].time) {
        log.diagnostics.add("unordered_time", "messages were not in order of their time and have been sorted", || {
            format!("{}: {} after {}", open.log.name, pair[1].time, pair[0].time)
        });
    }
    events.sort_by_key(|event| (event.time, event.seq));
    let mut pairing = Pairing { taken: vec![false; events.len()], events: &events, ..Pairing::default() };
    for (index, event) in events.iter().enumerate() {
        let (send, receive) = match pairing.partner(index) {
            None => continue,
            Some(other) if event.side == Side::Receive => (other, index),
            Some(other) => (index, other),
        };
        pairing.taken[send] = true;
        pairing.taken[receive] = true;
        let (send, receive) = (&events[send], &events[receive]);
        if send.id.is_none() {
            log.diagnostics.add("no_msg_id_fifo_assumed", "without message ids, messages were paired first in, first out", || {
                format!("{}: {} at {}", open.log.name, log.units.names.name(receive.unit), receive.time)
            });
        }
        open.log.messages.push(Message {
            sender: send.unit,
            receiver: receive.unit,
            sent: Some(send.time),
            received: receive.time,
            operation: receive.operation.or(send.operation),
        });
        open.seq.push(receive.seq);
    }
    let taken = pairing.taken;
    count_unpaired(&events, &taken, open, log);
}

fn count_unpaired(events: &[Event], taken: &[bool], open: &OpenTrace, log: &mut MessageLog) {
    for (event, _) in events.iter().zip(taken).filter(|(_, taken)| !**taken) {
        let (code, message) = match event.side {
            Side::Send => ("unpaired_send", "sends without a reception were dropped"),
            Side::Receive => ("unpaired_receive", "receptions without a send were dropped"),
        };
        let (units, operations) = (&log.units, &log.operations);
        log.diagnostics.add(code, message, || {
            let operation = event.operation.map_or("", |o| operations.name(o));
            format!("{}: {} {operation} at {}", open.log.name, units.names.name(event.unit), event.time)
        });
    }
}

type Queue = VecDeque<usize>;

/// Ends that still wait for the other one.
#[derive(Default)]
struct Pairing<'e> {
    events: &'e [Event],
    taken: Vec<bool>,
    /// Ends that have an id, by that id.
    by_id: HashMap<u32, Queue>,
    /// Sendings without id, by type, sender and receiver.
    by_sender: HashMap<(Option<u32>, u32, Option<u32>), Queue>,
    /// Sendings without id, by type and receiver.
    by_receiver: HashMap<(Option<u32>, Option<u32>), Queue>,
}

impl Pairing<'_> {
    /// The event that belongs to event `index` among those before it; if there is none, the event waits for it.
    fn partner(&mut self, index: usize) -> Option<usize> {
        let event = &self.events[index];
        match (event.id, event.side) {
            (Some(id), _) => self.partner_by_id(index, id),
            (None, Side::Receive) => self.earliest_send(event),
            (None, Side::Send) => {
                self.by_sender.entry((event.operation, event.process, event.peer)).or_default().push_back(index);
                self.by_receiver.entry((event.operation, event.peer)).or_default().push_back(index);
                None
            }
        }
    }

    /// By id the reception may come first: clocks may differ.
    fn partner_by_id(&mut self, index: usize, id: u32) -> Option<usize> {
        let event = &self.events[index];
        let waiting = self.by_id.entry(id).or_default();
        let fits = |other: &Event| other.side != event.side && other.unit != event.unit && other.agrees(event);
        let partner = waiting.iter().position(|other| fits(&self.events[*other])).and_then(|position| waiting.remove(position));
        if partner.is_none() {
            waiting.push_back(index);
        } else if waiting.is_empty() {
            self.by_id.remove(&id);
        }
        partner
    }

    fn earliest_send(&mut self, receive: &Event) -> Option<usize> {
        let named = Some(receive.process);
        let (events, taken) = (self.events, &self.taken);
        let head = |queue: Option<&mut Queue>| -> Option<usize> {
            let queue = queue?;
            while queue.front().is_some_and(|i| taken[*i]) {
                queue.pop_front();
            }
            queue.front().copied()
        };
        let candidates = match receive.peer {
            Some(sender) => [None, named].map(|to| head(self.by_sender.get_mut(&(receive.operation, sender, to)))),
            None => [None, named].map(|to| head(self.by_receiver.get_mut(&(receive.operation, to)))),
        };
        debug_assert!(candidates.iter().flatten().all(|i| events[*i].agrees(receive)));
        candidates.into_iter().flatten().min()
    }
}
