//! Unfinished system requests: their records, until nothing of them is open any more.
//!
//! A context is *quiet* while every call path of it is closed: as many exits as entries, all executions there that the highest
//! order index asks for. It is complete once it was quiet for a number of records of the log.

use std::collections::VecDeque;

use indexmap::Equivalent;
use smallvec::{SmallVec, smallvec};

use super::transactions::Transactions;
use crate::trace::{
    call_path::{Action, Key},
    hashed::HashMap,
};

/// No server, no thread, no parent.
pub(super) const NONE: u32 = u32::MAX;

/// A [`Key`] that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::structure) enum OwnedKey {
    Number(i64),
    Text(Box<str>),
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> Self {
        match key {
            Key::Number(number) => Self::Number(number),
            Key::Text(text) => Self::Text(text.into()),
        }
    }
}

impl Default for OwnedKey {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl OwnedKey {
    pub(super) fn borrowed(&self) -> Key<'_> {
        match self {
            Self::Number(number) => Key::Number(*number),
            Self::Text(text) => Key::Text(text),
        }
    }
}

impl Equivalent<OwnedKey> for Key<'_> {
    fn equivalent(&self, key: &OwnedKey) -> bool {
        match (self, key) {
            (Self::Number(a), OwnedKey::Number(b)) => a == b,
            (Self::Text(a), OwnedKey::Text(b)) => **a == **b,
            _ => false,
        }
    }
}

impl std::fmt::Display for OwnedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Parameters of an entry that something depends on: numbers of names, and renderings.
pub(super) type Params = Option<Box<[(u32, Box<str>)]>>;

/// What a record says, in numbers of the technique's own.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::structure) enum What {
    Entry {
        location: u32,
        action: Option<Action>,
        params: Params,
    },
    Exit {
        location: u32,
    },
    Call {
        location: u32,
        returns: bool,
    },
    Return {
        location: u32,
    },
    Send {
        location: u32,
        message: Option<Box<OwnedKey>>,
    },
    Receive {
        location: u32,
        message: Option<Box<OwnedKey>>,
    },
    Execution {
        location: u32,
        until_ns: i64,
        order_index: u32,
        depth: u32,
        is_elsewhere: bool,
    },
    /// Here the transaction of this number in its context was begun.
    Fork {
        transaction: u32,
        waits: bool,
    },
}

/// A record of an unfinished request.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::structure) struct Record {
    /// The ordering key; `u64::MAX` where there is none.
    pub(super) order: u64,
    /// Which record of all it is.
    pub(super) number: u64,
    pub(super) time_ns: i64,
    pub(super) server: u32,
    pub(super) thread: u32,
    pub(super) what: What,
}

impl Record {
    /// Whether `other` is this record again, as a log that is written, or read, twice has it.
    pub(super) fn is_again(&self, other: &Self) -> bool {
        let place = |record: &Self| (record.order, record.time_ns, record.server, record.thread);
        self.order != u64::MAX && place(self) == place(other) && self.what == other.what
    }
}

/// What began a call path.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::structure) struct Begun {
    /// The transaction that did.
    pub(super) by: OwnedKey,
    /// The record of it that the beginning follows.
    pub(super) order: u64,
    pub(super) waits: bool,
}

/// A call path.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// Whether its records say that it is one.
    pub(super) named: bool,
    pub(super) begun: Option<Begun>,
    /// Where it runs, unless its records say so.
    pub(super) server: u32,
    pub(super) thread: u32,
    pub(super) records: Vec<Record>,
    n_open: u64,
    n_executions: u64,
    /// Executions that the highest order index asks for.
    n_expected: u64,
}

impl Default for Transaction {
    fn default() -> Self {
        let (n_open, n_executions, n_expected) = (0, 0, 0);
        Self { named: false, begun: None, server: NONE, thread: NONE, records: Vec::new(), n_open, n_executions, n_expected }
    }
}

impl Transaction {
    fn is_open(&self) -> bool {
        self.n_open > 0 || self.n_executions < self.n_expected
    }

    fn push(&mut self, record: Record) {
        match record.what {
            What::Entry { .. } => self.n_open += 1,
            What::Exit { .. } => self.n_open = self.n_open.saturating_sub(1),
            What::Execution { order_index, .. } => {
                self.n_executions += 1;
                self.n_expected = self.n_expected.max(u64::from(order_index) + 1);
            }
            _ => {}
        }
        self.records.push(record);
    }
}

/// An unfinished request.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// Its context, and those that were found to belong to it.
    pub(super) keys: SmallVec<[OwnedKey; 1]>,
    /// The session of the user who made it, where that is wanted and known.
    pub(super) session: Option<Box<str>>,
    pub(super) transactions: Transactions,
    n_open: usize,
    n_records: usize,
    last_number: u64,
    /// Whether it is completed because there is no room, not because it is over.
    pub(super) cut: bool,
}

/// The slot of each context.
#[derive(Clone, Debug, Default)]
struct SlotOf {
    numbers: HashMap<i64, u32>,
    texts: HashMap<Box<str>, u32>,
}

impl SlotOf {
    fn get(&self, key: Key<'_>) -> Option<u32> {
        match key {
            Key::Number(number) => self.numbers.get(&number).copied(),
            Key::Text(text) => self.texts.get(text).copied(),
        }
    }

    fn insert(&mut self, key: OwnedKey, slot: u32) {
        match key {
            OwnedKey::Number(number) => self.numbers.insert(number, slot),
            OwnedKey::Text(text) => self.texts.insert(text, slot),
        };
    }

    fn remove(&mut self, key: &OwnedKey) {
        match key {
            OwnedKey::Number(number) => self.numbers.remove(number),
            OwnedKey::Text(text) => self.texts.remove(text),
        };
    }
}

/// All unfinished requests.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveSet {
    slot_of: SlotOf,
    slots: Vec<Option<Live>>,
    free: Vec<u32>,
    quiet: VecDeque<(u32, u64)>,
    /// The slot of the last record: the next one is often of the same request.
    last: u32,
    /// Records seen.
    pub(super) n_seen: u64,
    n_live: usize,
}

impl LiveSet {
    fn slot(&mut self, context: Key<'_>) -> u32 {
        let of_last = self.slots.get(self.last as usize).and_then(|live| live.as_ref()?.keys.first());
        if of_last.is_some_and(|key| context.equivalent(key)) {
            return self.last;
        }
        if let Some(slot) = self.slot_of.get(context) {
            self.last = slot;
            return slot;
        }
        let live = Live { keys: smallvec![context.into()], ..Live::default() };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(live);
        self.slot_of.insert(context.into(), slot);
        self.last = slot;
        slot
    }

    /// The number of the next record.
    pub(super) fn next_number(&mut self) -> u64 {
        self.n_seen += 1;
        self.n_seen
    }

    /// Adds a record to its transaction.
    pub(super) fn push(&mut self, context: Key<'_>, transaction: Option<Key<'_>>, record: Record) {
        let slot = self.slot(context);
        let Some(live) = &mut self.slots[slot as usize] else { return };
        let place = live.transactions.place(transaction.unwrap_or(context));
        let open = &mut live.transactions[place];
        open.named |= transaction.is_some();
        let was_open = open.is_open();
        live.last_number = record.number;
        open.push(record);
        live.n_open = live.n_open + usize::from(open.is_open()) - usize::from(was_open);
        live.n_records += 1;
        self.n_live += 1;
        if live.n_open == 0 {
            self.quiet.push_back((slot, live.last_number));
        }
    }

    /// Notes where a transaction runs and what began it, which may have no records yet.
    pub(super) fn begin(&mut self, context: Key<'_>, transaction: Option<Key<'_>>, place: (u32, u32), begun: Option<Begun>) {
        let mut slot = self.slot(context);
        let mut begun_by = begun;
        if let Some(begun) = &begun_by {
            let parent = self.slot(begun.by.borrowed());
            self.join(slot, parent);
            slot = parent;
        }
        let number = self.n_seen;
        let Some(live) = &mut self.slots[slot as usize] else { return };
        live.last_number = number;
        let of_key = live.transactions.place(transaction.unwrap_or(context));
        let open = &mut live.transactions[of_key];
        open.named = true;
        open.server = if place.0 == NONE { open.server } else { place.0 };
        open.thread = if place.1 == NONE { open.thread } else { place.1 };
        // One that says that the caller waits knows more than one that does not say.
        if let (Some(new), Some(known)) = (&mut begun_by, &open.begun) {
            new.waits |= known.waits && known.by == new.by;
        }
        open.begun = begun_by.or(open.begun.take());
        if live.n_open == 0 {
            self.quiet.push_back((slot, number));
        }
    }

    /// Notes whose request an unfinished one is; the first word counts.
    pub(super) fn name_session(&mut self, context: Key<'_>, session: Box<str>) {
        let slot = self.slot_of.get(context);
        if let Some(live) = slot.and_then(|slot| self.slots[slot as usize].as_mut()) {
            live.session.get_or_insert(session);
        }
    }

    /// Makes the request in `slot` a part of that in `into`.
    fn join(&mut self, slot: u32, into: u32) {
        if slot == into {
            return;
        }
        let Some(moved) = self.slots[slot as usize].take() else { return };
        self.free.push(slot);
        for key in &moved.keys {
            self.slot_of.insert(key.clone(), into);
        }
        if let Some(live) = &mut self.slots[into as usize] {
            live.absorb(moved);
        }
    }

    /// Takes out a request that is over, if there is one.
    pub(super) fn pop_complete(&mut self, quiet_records: u64) -> Option<Live> {
        while let Some((slot, since)) = self.quiet.front().copied() {
            if self.n_seen.saturating_sub(since) < quiet_records {
                return None;
            }
            self.quiet.pop_front();
            let is_over = |live: &Live| live.n_open == 0 && live.last_number == since;
            if self.slots[slot as usize].as_ref().is_some_and(is_over) {
                return self.take(slot);
            }
        }
        None
    }

    /// Takes out the requests that have been silent for longest while there are too many records, an eighth at a time.
    pub(super) fn cut(&mut self, most_records: usize) -> Vec<Live> {
        if self.n_live <= most_records {
            return Vec::new();
        }
        let mut ages: Vec<(u64, u32)> =
            self.slots.iter().enumerate().filter_map(|(slot, live)| Some((live.as_ref()?.last_number, slot as u32))).collect();
        ages.sort_unstable();
        let mut cut = Vec::new();
        for (_, slot) in ages {
            if self.n_live <= most_records - most_records / 8 {
                break;
            }
            if let Some(mut live) = self.take(slot) {
                live.cut = live.n_open > 0;
                cut.push(live);
            }
        }
        cut
    }

    /// Takes out all requests, in order of their last records.
    pub(super) fn drain(&mut self) -> Vec<Live> {
        let mut all: Vec<Live> = self.slots.drain(..).flatten().collect();
        all.sort_by_key(|live| live.last_number);
        self.slot_of = SlotOf::default();
        self.free.clear();
        self.quiet.clear();
        self.n_live = 0;
        all
    }

    fn take(&mut self, slot: u32) -> Option<Live> {
        let live = self.slots[slot as usize].take()?;
        for key in &live.keys {
            self.slot_of.remove(key);
        }
        self.free.push(slot);
        self.n_live -= live.n_records.min(self.n_live);
        Some(live)
    }

    /// Goes on with the unfinished requests of `later` too, their records numbered after those seen here.
    pub(super) fn merge(&mut self, mut later: Self) {
        let offset = self.n_seen;
        self.n_seen += later.n_seen;
        for mut live in later.drain() {
            live.last_number += offset;
            for transaction in live.transactions.values_mut() {
                transaction.records.iter_mut().for_each(|record| record.number += offset);
            }
            let known = live.keys.iter().find_map(|key| self.slot_of.get(key.borrowed()));
            let Some(first) = live.keys.first() else { continue };
            let slot = known.unwrap_or_else(|| self.slot(first.borrowed()));
            self.n_live += live.n_records;
            for key in &live.keys {
                self.slot_of.insert(key.clone(), slot);
            }
            if let Some(here) = &mut self.slots[slot as usize] {
                here.absorb(live);
                if here.n_open == 0 {
                    self.quiet.push_back((slot, here.last_number));
                }
            }
        }
        self.quiet.make_contiguous().sort_by_key(|(_, since)| *since);
        self.last = NONE;
    }
}

impl Live {
    fn absorb(&mut self, other: Self) {
        for key in other.keys {
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
        self.n_records += other.n_records;
        self.session = self.session.take().or(other.session);
        self.last_number = self.last_number.max(other.last_number);
        for (key, more) in other.transactions.into_iter() {
            let place = self.transactions.place(key);
            let open = &mut self.transactions[place];
            let was_open = open.is_open();
            open.named |= more.named;
            open.begun = open.begun.take().or(more.begun);
            open.server = if open.server == NONE { more.server } else { open.server };
            open.thread = if open.thread == NONE { more.thread } else { open.thread };
            more.records.into_iter().for_each(|record| open.push(record));
            self.n_open = self.n_open + usize::from(open.is_open()) - usize::from(was_open);
        }
    }
}

impl LiveSet {
    /// Gives services, servers and threads other numbers.
    pub(super) fn renumber(&mut self, location: &[u32], name: &[u32]) {
        let renumbered = |numbers: &[u32], number: &mut u32| *number = numbers.get(*number as usize).copied().unwrap_or(*number);
        for transaction in self.slots.iter_mut().flatten().flat_map(|live| live.transactions.values_mut()) {
            renumbered(name, &mut transaction.server);
            renumbered(name, &mut transaction.thread);
            for record in &mut transaction.records {
                renumbered(name, &mut record.server);
                renumbered(name, &mut record.thread);
                match &mut record.what {
                    What::Entry { location: of, .. }
                    | What::Exit { location: of }
                    | What::Call { location: of, .. }
                    | What::Return { location: of }
                    | What::Send { location: of, .. }
                    | What::Receive { location: of, .. }
                    | What::Execution { location: of, .. } => renumbered(location, of),
                    What::Fork { .. } => {}
                }
            }
        }
    }
}
