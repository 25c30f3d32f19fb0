//! Events to system requests that are complete.

use indexmap::Equivalent;

use super::{
    live::{Begun, Live, LiveSet, NONE, OwnedKey, Record, What},
    options::{CallPathOptions, is_sampled},
    places::Places,
    summary::RecordCounts,
};
use crate::{
    structure::steps::Whole,
    trace::call_path::{Event, Key, Kind, Texts},
};

/// What events tell, in their order.
#[derive(Debug)]
pub(in crate::structure) enum Met {
    /// A name that was not met before: it gets the next number of its kind.
    New(New),
    /// The context of what follows.
    Context(OwnedKey),
    /// The transaction of what follows.
    Transaction(Option<OwnedKey>),
    Record(Record),
    /// The call path begins, or what is known of it is told: server and thread, and what began it.
    Begin((u32, u32), Option<Box<Begun>>),
    /// Whose request it is.
    Session(Box<str>),
}

impl Whole for Met {}

/// A name that was given a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::structure) enum New {
    /// Class and method of a service.
    Service(Box<str>, Box<str>),
    /// A server or a thread.
    Name(Box<str>),
}

/// A request whose records are all there, or that is not awaited longer.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) live: Live,
    /// Whether it was not over as far as could be seen: there was no room.
    pub(super) made_room: bool,
}

/// Numbers what events name.
#[derive(Clone, Debug)]
pub(in crate::structure) struct Intake {
    options: CallPathOptions,
    /// Services and names as they are numbered in records; where they run is not asked here.
    pub(super) places: Places,
    /// Records that came in, those that are not to be used, and what is told of call paths; the rest is counted in paths.
    pub(super) records: RecordCounts,
    /// Whether the users' sessions are wanted.
    pub(super) wants_sessions: bool,
    /// Numbers here of the reader's services and names; [`NONE`] where not yet looked up.
    location_of: Vec<u32>,
    name_of: Vec<u32>,
    /// Those of the last event.
    context: OwnedKey,
    transaction: Option<OwnedKey>,
}

impl Intake {
    pub(super) fn new(options: CallPathOptions) -> Self {
        let places = Places::new(&options);
        let (records, location_of, name_of, context, transaction) = Default::default();
        Self { options, places, records, wants_sessions: false, location_of, name_of, context, transaction }
    }

    /// Hands on what an event tells.
    pub(in crate::structure) fn feed(&mut self, texts: &Texts, event: &Event<'_>, out: &mut dyn FnMut(Met)) {
        self.records.seen += 1;
        if self.options.sample < 1.0 && !is_sampled(&event.context.to_string(), self.options.sample) {
            self.records.not_sampled += 1;
            return;
        }
        if !event.context.equivalent(&self.context) {
            self.context = event.context.into();
            out(Met::Context(self.context.clone()));
        }
        if !is_same(event.transaction, self.transaction.as_ref()) {
            self.transaction = event.transaction.map(OwnedKey::from);
            out(Met::Transaction(self.transaction.clone()));
        }
        let (server, thread) = (self.name(texts, event.server, out), self.name(texts, event.thread, out));
        if let Kind::Begin { parent } = event.kind {
            self.records.begins += 1;
            let begun = parent.map(|parent| Box::new(Begun { by: parent.context.into(), order: parent.order, waits: parent.waits }));
            out(Met::Begin((server, thread), begun));
        } else {
            let what = self.what(texts, &event.kind, out);
            out(Met::Record(Record { order: event.order.unwrap_or(u64::MAX), number: 0, time_ns: event.time_ns, server, thread, what }));
        }
        if let Some(session) = event.session.filter(|_| self.wants_sessions) {
            out(Met::Session(session.into()));
        }
    }

    /// Goes on with what another has seen, too.
    pub(super) fn merge(&mut self, other: &Self) {
        self.places.renumber(&other.places, &self.options);
        self.places.renumber_names(&other.places);
        self.records.merge(&other.records);
    }

    fn what(&mut self, texts: &Texts, kind: &Kind<'_>, out: &mut dyn FnMut(Met)) -> What {
        let owned = |key: &Key<'_>| Box::new(OwnedKey::from(*key));
        match kind {
            Kind::Entry { location, action, params } => {
                let location = self.location(texts, *location, out);
                let wanted = self.places.dependencies(location).iter().filter_map(|dependency| {
                    let spec = self.options.dependencies.get(*dependency as usize)?;
                    let (_, rendering) = params.iter().find(|(name, _)| *name == spec.parameter)?;
                    Some((*dependency, rendering.as_str().into()))
                });
                let params: Box<[(u32, Box<str>)]> = wanted.collect();
                What::Entry { location, action: *action, params: (!params.is_empty()).then_some(params) }
            }
            Kind::Exit { location } => What::Exit { location: self.location(texts, *location, out) },
            Kind::Call { location, returns } => What::Call { location: self.location(texts, *location, out), returns: *returns },
            Kind::Return { location } => What::Return { location: self.location(texts, *location, out) },
            Kind::Send { location, message } => {
                What::Send { location: self.location(texts, *location, out), message: message.as_ref().map(owned) }
            }
            Kind::Receive { location, message } => {
                What::Receive { location: self.location(texts, *location, out), message: message.as_ref().map(owned) }
            }
            Kind::Execution { location, until_ns, order_index, depth, is_elsewhere } => {
                let location = self.location(texts, *location, out);
                let (order_index, depth, is_elsewhere) = (*order_index, *depth, *is_elsewhere);
                What::Execution { location, until_ns: *until_ns, order_index, depth, is_elsewhere }
            }
            // Begins are not records of their own.
            Kind::Begin { .. } => What::Fork { transaction: NONE, waits: false },
        }
    }

    fn location(&mut self, texts: &Texts, number: u32, out: &mut dyn FnMut(Met)) -> u32 {
        let at = number as usize;
        if let Some(known) = self.location_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let (class, method) = texts.service(number);
        let location = self.places.location(class, method, &self.options);
        out(Met::New(New::Service(class.into(), method.into())));
        self.location_of.resize(self.location_of.len().max(at + 1), NONE);
        self.location_of[at] = location;
        location
    }

    fn name(&mut self, texts: &Texts, number: Option<u32>, out: &mut dyn FnMut(Met)) -> u32 {
        let Some(number) = number else { return NONE };
        let at = number as usize;
        if let Some(known) = self.name_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let text = texts.names.name(number);
        let name = self.places.texts.names.intern(text);
        out(Met::New(New::Name(text.into())));
        self.name_of.resize(self.name_of.len().max(at + 1), NONE);
        self.name_of[at] = name;
        name
    }
}

/// Whether a transaction is the one that is kept.
fn is_same(transaction: Option<Key<'_>>, kept: Option<&OwnedKey>) -> bool {
    match (transaction, kept) {
        (Some(transaction), Some(kept)) => transaction.equivalent(kept),
        (transaction, kept) => transaction.is_none() && kept.is_none(),
    }
}

/// Unfinished requests.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    quiet_records: u64,
    most_live_records: usize,
    live: LiveSet,
    /// Those of what was met last.
    context: OwnedKey,
    transaction: Option<OwnedKey>,
}

impl Collector {
    pub(super) fn new(options: &CallPathOptions) -> Self {
        let (live, context, transaction) = Default::default();
        Self { quiet_records: options.quiet_records, most_live_records: options.most_live_records, live, context, transaction }
    }

    /// Takes what was met; requests that are complete with it go to `out`.
    pub(super) fn take(&mut self, met: Met, out: &mut dyn FnMut(Complete)) {
        let context = self.context.borrowed();
        let transaction = self.transaction.as_ref().map(OwnedKey::borrowed);
        match met {
            Met::Context(context) => self.context = context,
            Met::Transaction(transaction) => self.transaction = transaction,
            Met::Record(mut record) => {
                record.number = self.live.next_number();
                self.live.push(context, transaction, record);
                self.hand_over(out);
            }
            Met::Begin(place, begun) => {
                self.live.next_number();
                self.live.begin(context, transaction, place, begun.map(|begun| *begun));
                self.hand_over(out);
            }
            Met::Session(session) => self.live.name_session(context, session),
            Met::New(_) => {}
        }
    }

    /// Hands over what is complete, or that there is no room for.
    fn hand_over(&mut self, out: &mut dyn FnMut(Complete)) {
        while let Some(live) = self.live.pop_complete(self.quiet_records) {
            out(Complete { live, made_room: false });
        }
        for live in self.live.cut(self.most_live_records) {
            out(Complete { live, made_room: true });
        }
    }

    /// Hands over what is unfinished.
    pub(super) fn complete_all(&mut self, out: &mut dyn FnMut(Complete)) {
        for live in self.live.drain() {
            out(Complete { live, made_room: false });
        }
    }

    /// Goes on with what another has seen, too, whose services and names have the numbers `location` and `name` here.
    pub(super) fn merge(&mut self, mut other: Self, location: &[u32], name: &[u32]) {
        other.live.renumber(location, name);
        self.live.merge(other.live);
    }
}
