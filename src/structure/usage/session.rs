//! Requests to sessions.
//!
//! Input: requests with a session's key or a client's, in about the order in which they start; output: finished sessions.
//! A client's requests are cut into sessions where nothing happened for longer than the idle gap; what carries a session's
//! own key is cut after a longer one only, as the key says that it is one session.
//!
//! A session is finished once the latest start seen is more than its gap and the allowed lateness past its last end. Open
//! sessions are the only state; two states merge, also where a session is open in both. What began within its gap of the
//! earliest request may go on with what another part has: it stays open till the end.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{
    structure::profile::OTHER,
    trace::{Time, diagnostics::Diagnostics, names::Names},
};

/// Who made a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum User<'a> {
    /// A session's own key: a cookie, a session attribute.
    Session(&'a str),
    /// A client's address or a user's name, with any number of sessions after one another.
    Client(&'a str),
}

/// One request of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<'a> {
    /// Who made it.
    pub user: User<'a>,
    /// The class of behaviour that its session is known to be of, where it is.
    pub class: Option<&'a str>,
    /// What was asked for: the name of the root operation.
    pub service: &'a str,
    /// When it was made, ticks.
    pub start: Time,
    /// When it was answered, ticks.
    pub end: Time,
}

/// One request of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// Number of the service ([`Sessions::services`]).
    pub service: u32,
    /// When it was made, ticks.
    pub start: Time,
    /// When it was answered, ticks; not before `start`.
    pub end: Time,
}

/// A finished session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its key, or its client's.
    pub user: String,
    /// Its class, where it is known.
    pub class: Option<String>,
    /// Its requests by start; at least one.
    pub visits: Vec<Visit>,
}

/// How requests become sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionOptions {
    /// Seconds that a tick lasts, > 0; anything else counts as 10⁻⁹.
    pub seconds_per_tick: f64,
    /// Longest time without a request within a client's session, seconds.
    pub idle_gap_s: f64,
    /// Longest time without a request within a session that has a key of its own, seconds.
    pub session_gap_s: f64,
    /// How much later than others requests may be fed, seconds.
    pub lateness_s: f64,
    /// Most requests of one session, ≥ 1; a longer one is cut.
    pub max_requests: usize,
    /// Most services; further ones are taken together as `(other)`.
    pub max_services: usize,
    /// Most open sessions, ≥ 1; beyond, the older half is finished early.
    pub max_open: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            seconds_per_tick: 1e-9,
            idle_gap_s: 1800.0,
            session_gap_s: 43_200.0,
            lateness_s: 60.0,
            max_requests: 1000,
            max_services: 256,
            max_open: 1 << 18,
        }
    }
}

impl SessionOptions {
    pub(super) fn tick_s(&self) -> f64 {
        if self.seconds_per_tick.is_finite() && self.seconds_per_tick > 0.0 { self.seconds_per_tick } else { 1e-9 }
    }

    fn gap_ticks(&self, own_key: bool) -> f64 {
        (if own_key { self.session_gap_s } else { self.idle_gap_s }) / self.tick_s()
    }
}

#[derive(Clone, Debug)]
struct Open {
    class: Option<String>,
    visits: Vec<Visit>,
    first_start: Time,
    last_end: Time,
}

/// Takes finished sessions, with the names of their services.
pub type SessionSink<'s> = dyn FnMut(&Names, Session) + 's;

/// Sessions in the making.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    options: SessionOptions,
    /// Names of the services.
    pub services: Names,
    open: HashMap<(bool, String), Open>,
    earliest: Option<Time>,
    latest: Option<Time>,
    swept: Option<Time>,
    diagnostics: Diagnostics,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(options: SessionOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes one request; sessions that are finished by now go to `sink`.
    pub fn feed(&mut self, request: &Request<'_>, sink: &mut SessionSink<'_>) {
        let (own_key, user) = match request.user {
            User::Session(key) => (true, key),
            User::Client(client) => (false, client),
        };
        let end = request.end.max(request.start);
        if request.end < request.start {
            let message = "requests end before they start: counted with no duration";
            self.diagnostics.add("negative_request", message, || format!("{} at {}", request.service, request.start));
        }
        let visit = Visit { service: self.service(request.service), start: request.start, end };
        let opened = || Open { class: None, visits: Vec::new(), first_start: visit.start, last_end: end };
        let open = self.open.entry((own_key, user.to_owned())).or_insert_with(opened);
        open.visits.push(visit);
        open.first_start = open.first_start.min(visit.start);
        open.last_end = open.last_end.max(end);
        if open.class.is_none() {
            open.class = request.class.map(str::to_owned);
        }
        if open.visits.len() > self.options.max_requests {
            self.cut((own_key, user.to_owned()), sink);
        }
        self.latest = self.latest.max(Some(request.start));
        self.earliest = Some(self.earliest.map_or(request.start, |earliest| earliest.min(request.start)));
        let gap = self.options.gap_ticks(false);
        if self.swept.zip(self.latest).is_none_or(|(swept, latest)| latest.ticks_since(swept) > gap) {
            self.sweep(sink);
        }
        if self.open.len() > self.options.max_open {
            self.finish_older_half(sink);
        }
    }

    fn service(&mut self, name: &str) -> u32 {
        if self.services.get(name).is_none() && self.services.len() >= self.options.max_services {
            self.diagnostics.add("many_services", "services beyond the most that are told apart: taken together", || name.to_owned());
            return self.services.intern(OTHER);
        }
        self.services.intern(name)
    }

    /// Hands over what is full of one user's requests; the rest stays open.
    fn cut(&mut self, key: (bool, String), sink: &mut SessionSink<'_>) {
        let Some(open) = self.open.remove(&key) else { return };
        let mut pieces = self.pieces(&key, open.visits);
        let rest = pieces.pop().unwrap_or_default();
        for visits in pieces {
            sink(&self.services, Session { user: key.1.clone(), class: open.class.clone(), visits });
        }
        let first_start = rest.first().map_or(open.first_start, |visit| visit.start);
        self.open.insert(key, Open { visits: rest, first_start, ..open });
    }

    /// Finishes what has been idle for long enough.
    fn sweep(&mut self, sink: &mut SessionSink<'_>) {
        let (Some(earliest), Some(latest)) = (self.earliest, self.latest) else { return };
        self.swept = Some(latest);
        let late = self.options.lateness_s / self.options.tick_s();
        let is_over = |key: &(bool, String), open: &Open| {
            let apart = self.options.gap_ticks(key.0) + late;
            latest.ticks_since(open.last_end) > apart && open.first_start.ticks_since(earliest) > apart
        };
        let mut over: Vec<_> = self.open.iter().filter(|(key, open)| is_over(key, open)).map(|(key, _)| key.clone()).collect();
        over.sort_unstable();
        for key in over {
            if let Some(open) = self.open.remove(&key) {
                self.close(key, open, sink);
            }
        }
    }

    fn finish_older_half(&mut self, sink: &mut SessionSink<'_>) {
        let mut all: Vec<_> = self.open.iter().map(|(key, open)| (open.last_end, key.clone())).collect();
        all.sort_unstable();
        all.truncate(all.len() / 2);
        for (_, key) in all {
            self.diagnostics.add("many_open_sessions", "too many open sessions: the longest idle were finished early", || key.1.clone());
            if let Some(open) = self.open.remove(&key) {
                self.close(key, open, sink);
            }
        }
    }

    /// Hands over the sessions of one user.
    fn close(&mut self, key: (bool, String), open: Open, sink: &mut SessionSink<'_>) {
        for visits in self.pieces(&key, open.visits) {
            sink(&self.services, Session { user: key.1.clone(), class: open.class.clone(), visits });
        }
    }

    /// Cuts the requests of one user into sessions.
    fn pieces(&mut self, key: &(bool, String), mut visits: Vec<Visit>) -> Vec<Vec<Visit>> {
        let gap = self.options.gap_ticks(key.0);
        visits.sort_by_key(|visit| (visit.start, visit.end));
        let mut pieces: Vec<Vec<Visit>> = Vec::new();
        let mut last_end: Option<Time> = None;
        for visit in visits {
            let idle = last_end.is_none_or(|end| visit.start.ticks_since(end) > gap);
            let full = pieces.last().is_some_and(|piece| piece.len() >= self.options.max_requests.max(1));
            if full && !idle {
                self.diagnostics.add("long_session", "sessions with too many requests were cut", || key.1.clone());
            }
            last_end = if idle || full { Some(visit.end) } else { last_end.max(Some(visit.end)) };
            match pieces.last_mut() {
                Some(piece) if !idle && !full => piece.push(visit),
                _ => pieces.push(vec![visit]),
            }
        }
        pieces
    }

    /// Takes over the open sessions of another part of the requests.
    pub fn merge(&mut self, other: Self) {
        for (key, open) in other.open {
            let visits: Vec<Visit> =
                open.visits.iter().map(|visit| Visit { service: self.service(other.services.name(visit.service)), ..*visit }).collect();
            let opened = || Open { class: None, visits: Vec::new(), first_start: open.first_start, last_end: open.last_end };
            let known = self.open.entry(key).or_insert_with(opened);
            known.visits.extend(visits);
            known.first_start = known.first_start.min(open.first_start);
            known.last_end = known.last_end.max(open.last_end);
            known.class = known.class.take().or(open.class);
        }
        self.latest = self.latest.max(other.latest);
        self.earliest = [self.earliest, other.earliest].into_iter().flatten().min();
        self.diagnostics.merge(other.diagnostics);
    }

    /// Finishes all sessions and says what was odd.
    pub fn finish(mut self, sink: &mut SessionSink<'_>) -> Diagnostics {
        let mut all: Vec<_> = self.open.drain().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, open) in all {
            self.close(key, open, sink);
        }
        self.diagnostics
    }
}
