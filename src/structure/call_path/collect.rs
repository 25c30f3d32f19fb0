//! Events to system requests that are complete.
//!
//! What is handed over stands for itself: with the names that were met since the request before, in the order in which they were
//! numbered here, so that who takes requests in their order gives every name the number that records have for it.

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
pub(in crate::structure) struct Complete {
    pub(super) live: Live,
    /// Names that are new with it.
    pub(super) news: Vec<New>,
    /// Whether it was not over as far as could be seen: there was no room.
    pub(super) made_room: bool,
}

impl Whole for Complete {
    fn n_events(&self) -> usize {
        self.live.n_records()
    }
}

/// Unfinished requests.
#[derive(Clone, Debug)]
pub(in crate::structure) struct Collector {
    options: CallPathOptions,
    /// Services and names as they are numbered in records; where they run is not asked here.
    places: Places,
    live: LiveSet,
    /// Records that came in, those that are not to be used, and what is told of call paths; the rest is counted in paths.
    records: RecordCounts,
    /// Whether the users' sessions are wanted.
    pub(super) wants_sessions: bool,
    /// Numbers here of the reader's services and names; [`NONE`] where not yet looked up.
    location_of: Vec<u32>,
    name_of: Vec<u32>,
    news: Vec<New>,
}

impl Collector {
    pub(super) fn new(options: CallPathOptions) -> Self {
        let places = Places::new(&options);
        let (live, records, location_of, name_of, news) = Default::default();
        Self { options, places, live, records, wants_sessions: false, location_of, name_of, news }
    }

    /// Takes an event; requests that are complete with it go to `out`.
    pub(in crate::structure) fn feed(&mut self, texts: &Texts, event: &Event<'_>, out: &mut dyn FnMut(Complete)) {
        self.records.seen += 1;
        if self.options.sample < 1.0 && !is_sampled(&event.context.to_string(), self.options.sample) {
            self.records.not_sampled += 1;
            return;
        }
        let number = self.live.next_number();
        let (server, thread) = (self.name(texts, event.server), self.name(texts, event.thread));
        if let Kind::Begin { parent } = event.kind {
            self.records.begins += 1;
            let begun =
                parent.map(|parent| (parent.context, Begun { by: parent.context.into(), order: parent.order, waits: parent.waits }));
            self.live.begin(event.context, event.transaction, (server, thread), begun);
        } else {
            let what = self.what(texts, &event.kind);
            let record = Record { order: event.order.unwrap_or(u64::MAX), number, time_ns: event.time_ns, server, thread, what };
            self.live.push(event.context, event.transaction, record);
        }
        if let Some(session) = event.session.filter(|_| self.wants_sessions) {
            self.live.name_session(event.context, session);
        }
        while let Some(live) = self.live.pop_complete(self.options.quiet_records) {
            out(Complete { live, news: std::mem::take(&mut self.news), made_room: false });
        }
        for live in self.live.cut(self.options.most_live_records) {
            out(Complete { live, news: std::mem::take(&mut self.news), made_room: true });
        }
    }

    /// Hands over what is unfinished.
    pub(in crate::structure) fn complete_all(&mut self, out: &mut dyn FnMut(Complete)) {
        for live in self.live.drain() {
            out(Complete { live, news: std::mem::take(&mut self.news), made_room: false });
        }
    }

    /// Names that no request has told yet.
    pub(super) fn take_news(&mut self) -> Vec<New> {
        std::mem::take(&mut self.news)
    }

    /// Records as far as they are counted here.
    pub(super) fn records(&self) -> &RecordCounts {
        &self.records
    }

    /// Goes on with what another has seen, too.
    pub(super) fn merge(&mut self, mut other: Self) {
        let location = self.places.renumber(&other.places, &self.options);
        let name = self.places.renumber_names(&other.places);
        other.live.renumber(&location, &name);
        self.live.merge(other.live);
        self.records.merge(&other.records);
    }

    fn what(&mut self, texts: &Texts, kind: &Kind<'_>) -> What {
        let owned = |key: &Key<'_>| Box::new(OwnedKey::from(*key));
        match kind {
            Kind::Entry { location, action, params } => {
                let location = self.location(texts, *location);
                let wanted = self.places.dependencies(location).iter().filter_map(|dependency| {
                    let spec = self.options.dependencies.get(*dependency as usize)?;
                    let (_, rendering) = params.iter().find(|(name, _)| *name == spec.parameter)?;
                    Some((*dependency, rendering.as_str().into()))
                });
                let params: Box<[(u32, Box<str>)]> = wanted.collect();
                What::Entry { location, action: *action, params: (!params.is_empty()).then_some(params) }
            }
            Kind::Exit { location } => What::Exit { location: self.location(texts, *location) },
            Kind::Call { location, returns } => What::Call { location: self.location(texts, *location), returns: *returns },
            Kind::Return { location } => What::Return { location: self.location(texts, *location) },
            Kind::Send { location, message } => {
                What::Send { location: self.location(texts, *location), message: message.as_ref().map(owned) }
            }
            Kind::Receive { location, message } => {
                What::Receive { location: self.location(texts, *location), message: message.as_ref().map(owned) }
            }
            Kind::Execution { location, until_ns, order_index, depth, is_elsewhere } => {
                let location = self.location(texts, *location);
                let (order_index, depth, is_elsewhere) = (*order_index, *depth, *is_elsewhere);
                What::Execution { location, until_ns: *until_ns, order_index, depth, is_elsewhere }
            }
            // Begins are not records of their own.
            Kind::Begin { .. } => What::Fork { transaction: NONE, waits: false },
        }
    }

    fn location(&mut self, texts: &Texts, number: u32) -> u32 {
        let at = number as usize;
        if let Some(known) = self.location_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let (class, method) = texts.service(number);
        let location = self.places.location(class, method, &self.options);
        self.news.push(New::Service(class.into(), method.into()));
        self.location_of.resize(self.location_of.len().max(at + 1), NONE);
        self.location_of[at] = location;
        location
    }

    fn name(&mut self, texts: &Texts, number: Option<u32>) -> u32 {
        let Some(number) = number else { return NONE };
        let at = number as usize;
        if let Some(known) = self.name_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let text = texts.names.name(number);
        let name = self.places.texts.names.intern(text);
        self.news.push(New::Name(text.into()));
        self.name_of.resize(self.name_of.len().max(at + 1), NONE);
        self.name_of[at] = name;
        name
    }
}
