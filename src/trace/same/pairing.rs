//! Which reception belongs to which sending.
//!
//! In order of time (ties by `seq`, then as in the log) a reception takes the earliest sending that is not yet taken and
//! agrees with it: in `msg_id` where the row has one; otherwise in message type, and in sender and receiver as far as
//! the rows name their peers. Every sending stands in two queues, by `(type, sender, receiver?)` and by
//! `(type, receiver?)`, so that a reception looks at two queue heads whether or not it names its peer.
//!
//! Only ends that wait for the other one are held. A queue's head that was taken through another queue is skipped when it
//! is met; queues in which such heads are never met are swept when they have become the greater part.

use std::{
    cmp::Ordering,
    collections::{VecDeque, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::Time;
use crate::trace::hashed::HashMap;

/// Entries of queues that are left alone, however few of them still wait.
const FEW_ENTRIES: usize = 1024;

/// Ends of one id among which the other end is looked for: an id is that of a message, perhaps also of its reply.
const MOST_OF_ID: usize = 64;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The sending of a message.
    Send,
    /// Its reception.
    Receive,
    /// No end of a message, but something that a unit did on its own.
    Local,
}

/// One end of a message, or a local event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(super) time: Time,
    pub(super) seq: u64,
    /// The place in the log: source, then row.
    pub(super) arrival: u64,
    pub(super) id: Id,
    pub(super) unit: u32,
    pub(super) process: u32,
    pub(super) peer: Option<u32>,
    pub(super) operation: Option<u32>,
    pub(super) side: Side,
}

impl Event {
    /// What puts events in order.
    pub(super) fn key(&self) -> (Time, u64, u64) {
        (self.time, self.seq, self.arrival)
    }

    /// Whether the ends may belong to one message, as far as they name processes.
    fn agrees(&self, other: &Self) -> bool {
        let names = |end: &Self, other: &Self| end.peer.is_none_or(|peer| peer == other.process);
        names(self, other) && names(other, self)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A message id as a number, of which nothing needs to stand at a multiple of 16 bytes: 0 without one, else the text itself up to
/// 15 bytes, of a longer one 120 bits of hash (of a billion ids two are alike with a probability of 10⁻¹⁸).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Id([u64; 2]);

impl Id {
    pub(super) const NONE: Self = Self([0; 2]);

    pub(super) fn of(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::NONE;
        }
        let mut bytes = [0; 16];
        if text.len() < bytes.len() {
            bytes[..text.len()].copy_from_slice(text);
            bytes[15] = text.len() as u8;
        } else {
            for (salt, half) in bytes.chunks_mut(8).enumerate() {
                let mut hasher = DefaultHasher::new();
                (salt, text).hash(&mut hasher);
                half.copy_from_slice(&hasher.finish().to_le_bytes());
            }
            bytes[15] = u8::MAX;
        }
        let number = u128::from_le_bytes(bytes);
        Self([number as u64, (number >> 64) as u64])
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from(self.0[0]) | u128::from(self.0[1]) << 64);
    }
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Paired {
    /// It waits for the other end.
    Waits,
    /// It completes a message: the sending, the reception.
    Message(Event, Event),
    /// It is a reception that nothing was sent for.
    Alone,
}

/// A place in [`Pairing::slots`], and the number of the event that it was given to.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    slot: u32,
}

type Queue = VecDeque<Place>;

/// Ends of one id, in order: the first, and (seldom) others.
#[derive(Clone, Debug)]
struct OfId {
    first: Place,
    more: Vec<Place>,
}

/// Ends that still wait for the other one.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairing {
    slots: Vec<Option<(u64, Event)>>,
    free: Vec<u32>,
    /// Events numbered so far.
    n_events: u64,
    /// Entries of all queues.
    n_entries: usize,
    /// Ends that have an id, by that id.
    by_id: HashMap<Id, OfId>,
    /// Sendings without id, by type, sender and receiver.
    by_sender: HashMap<(Option<u32>, u32, Option<u32>), Queue>,
    /// Sendings without id, by type and receiver.
    by_receiver: HashMap<(Option<u32>, Option<u32>), Queue>,
    /// All ends, in order.
    in_order: Queue,
}

impl Pairing {
    /// Takes the next end of a message.
    pub(super) fn add(&mut self, event: Event) -> Paired {
        let partner = match (event.id, event.side) {
            (Id::NONE, Side::Receive) => match self.earliest_send(&event) {
                None => return Paired::Alone,
                partner => partner,
            },
            (Id::NONE, _) => None,
            (id, _) => self.partner_by_id(&event, id),
        };
        match partner.and_then(|place| self.take(place)) {
            None => {
                self.wait(event);
                Paired::Waits
            }
            Some(send) if event.side == Side::Receive => Paired::Message(send, event),
            Some(receive) => Paired::Message(event, receive),
        }
    }

    /// How many ends wait.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Gives up the end that has waited longest.
    pub(super) fn give_up(&mut self) -> Option<Event> {
        while let Some(place) = self.in_order.pop_front() {
            self.n_entries -= 1;
            if let Some(event) = self.take(place) {
                return Some(event);
            }
        }
        None
    }

    fn take(&mut self, place: Place) -> Option<Event> {
        let slot = self.slots.get_mut(place.slot as usize)?;
        let (_, event) = slot.take_if(|(number, _)| *number == place.number)?;
        self.free.push(place.slot);
        if self.n_entries > FEW_ENTRIES + 8 * self.len() {
            self.sweep();
        }
        Some(event)
    }

    fn wait(&mut self, event: Event) {
        let number = self.n_events;
        self.n_events += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some((number, event));
        let place = Place { number, slot };
        self.in_order.push_back(place);
        if event.id == Id::NONE {
            self.by_sender.entry((event.operation, event.process, event.peer)).or_default().push_back(place);
            self.by_receiver.entry((event.operation, event.peer)).or_default().push_back(place);
            self.n_entries += 3;
        } else {
            match self.by_id.entry(event.id) {
                Entry::Occupied(known) => known.into_mut().more.push(place),
                Entry::Vacant(new) => drop(new.insert(OfId { first: place, more: Vec::new() })),
            }
            self.n_entries += 2;
        }
    }

    /// By id the reception may come first: clocks may differ.
    fn partner_by_id(&mut self, event: &Event, id: Id) -> Option<Place> {
        let slots = &self.slots;
        let waiting = self.by_id.get_mut(&id)?;
        let fits = |place: &Place| {
            waits(slots, *place).is_some_and(|other| other.side != event.side && other.unit != event.unit && other.agrees(event))
        };
        let position = [waiting.first].iter().chain(&waiting.more).take(MOST_OF_ID).position(fits)?;
        self.n_entries -= 1;
        if position > 0 {
            return Some(waiting.more.remove(position - 1));
        }
        let partner = waiting.first;
        if waiting.more.is_empty() {
            self.by_id.remove(&id);
        } else {
            waiting.first = waiting.more.remove(0);
        }
        Some(partner)
    }

    fn earliest_send(&mut self, receive: &Event) -> Option<Place> {
        let (slots, n_entries) = (&self.slots, &mut self.n_entries);
        let mut head = |queue: Option<&mut Queue>| -> Option<Place> {
            let queue = queue?;
            while queue.front().is_some_and(|place| waits(slots, *place).is_none()) {
                queue.pop_front();
                *n_entries -= 1;
            }
            queue.front().copied()
        };
        let named = Some(receive.process);
        let candidates = match receive.peer {
            Some(sender) => [None, named].map(|to| head(self.by_sender.get_mut(&(receive.operation, sender, to)))),
            None => [None, named].map(|to| head(self.by_receiver.get_mut(&(receive.operation, to)))),
        };
        candidates.into_iter().flatten().min_by_key(|place| place.number)
    }

    /// Drops the entries of ends that wait no longer.
    fn sweep(&mut self) {
        let slots = &self.slots;
        let mut n_entries = 0;
        let mut keeps = |queue: &mut Queue| {
            queue.retain(|place| waits(slots, *place).is_some());
            queue.shrink_to_fit();
            n_entries += queue.len();
            !queue.is_empty()
        };
        self.by_id.retain(|_, of_id| {
            let mut left: Queue = [of_id.first].into_iter().chain(of_id.more.drain(..)).collect();
            let is_kept = keeps(&mut left);
            if let Some(first) = left.pop_front() {
                (of_id.first, of_id.more) = (first, left.into());
            }
            is_kept
        });
        self.by_sender.retain(|_, queue| keeps(queue));
        self.by_receiver.retain(|_, queue| keeps(queue));
        keeps(&mut self.in_order);
        self.n_entries = n_entries;
    }

    /// Places ever used, and entries of queues.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.slots.len(), self.n_entries)
    }
}

/// The end at a place, if it still waits.
fn waits(slots: &[Option<(u64, Event)>], place: Place) -> Option<&Event> {
    let (number, event) = slots.get(place.slot as usize)?.as_ref()?;
    (*number == place.number).then_some(event)
}
