//! What traces say beside the structure: the times of executions in their contexts, and the sessions of users.
//!
//! Input, from a technique at work: the executions of each complete recording as a [`CallTree`], and each request from
//! outside with who made it; output: a [`Profile`] and a [`UsageSummary`]. Both are sums within bounds, and the observations
//! of parts merge.
//!
//! | technique | executions | requests |
//! |---|---|---|
//! | call paths | frames, also those inside one component | paths that nothing began, of requests with a session |
//! | spans | occurrences of entries | roots; of a root that only requests, what it requests |
//! | SAME | occurrences with the times of their replies | none: messages name no users |
//!
//! In a recording with parts missing contexts are wrong. Such are observed apart, and used only if there are no others.

use serde::{Deserialize, Serialize};

use super::{
    OptionError,
    interactions::Interactions,
    profile::{CallTree, Profile, ProfileOptions, call_trees},
    usage::{Request, SessionOptions, Sessions, SummaryOptions, UsageSummary, User},
};
use crate::trace::{Time, diagnostics::Diagnostics};

/// What joins requests to sessions, from the surest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserKey {
    /// A session's own key.
    Session,
    /// A session's key, else a user's name.
    #[default]
    User,
    /// These, else the address that a request came from. Behind a proxy or a load balancer all users have one address.
    Address,
}

/// How requests become sessions, and what is kept of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserOptions {
    /// What joins requests to sessions.
    pub key: UserKey,
    /// Where sessions end.
    pub sessions: SessionOptions,
    /// What is kept of them.
    pub summary: SummaryOptions,
}

/// Most services that may be told apart: a chain over them has as many transitions as their square.
const MOST_SERVICES: usize = 1024;

impl UserOptions {
    /// Checks what can be checked without a trace.
    ///
    /// # Errors
    /// [`OptionError`] for a number out of its range.
    pub fn check(&self) -> Result<(), OptionError> {
        let error = |option: &str, found: String, expected| OptionError { option: option.to_owned(), found, expected };
        let Self { sessions, summary, .. } = self;
        let seconds = [
            ("users.sessions.idle_gap_s", sessions.idle_gap_s),
            ("users.sessions.session_gap_s", sessions.session_gap_s),
            ("users.summary.window_s", summary.window_s),
        ];
        if let Some((option, value)) = seconds.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
            return Err(error(option, value.to_string(), "a number of seconds above 0"));
        }
        if !(sessions.lateness_s.is_finite() && sessions.lateness_s >= 0.0) {
            return Err(error("users.sessions.lateness_s", sessions.lateness_s.to_string(), "a number of seconds, 0 or more"));
        }
        let services = [("users.sessions.max_services", sessions.max_services), ("users.summary.max_services", summary.max_services)];
        if let Some((option, n)) = services.into_iter().find(|(_, n)| !(1..=MOST_SERVICES).contains(n)) {
            return Err(error(option, n.to_string(), "a number of services, 1 to 1024"));
        }
        OptionError::unless_above_0("users.sessions.max_requests", sessions.max_requests)?;
        OptionError::unless_above_0("users.sessions.max_open", sessions.max_open)?;
        OptionError::unless_above_0("users.summary.max_sessions", summary.max_sessions)
    }
}

/// What is to be observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Times by context.
    pub profile: Option<ProfileOptions>,
    /// Sessions.
    pub users: Option<UserOptions>,
}

impl Wanted {
    /// This of a log in `n_parts` files, of which any may go on with a session of another: none is over before all are read, as long as there
    /// is room, of which each part has its share.
    #[must_use]
    pub(in crate::structure) fn of_parts(self, n_parts: usize) -> Self {
        let mut wanted = self;
        if let (Some(users), true) = (&mut wanted.users, n_parts > 1) {
            users.sessions.lateness_s = f64::INFINITY;
            users.sessions.max_open = (users.sessions.max_open / n_parts).max(1);
        }
        wanted
    }
}

/// What was observed.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Times by context, if they were wanted.
    pub profile: Option<Box<Profile>>,
    /// Sessions, if they were wanted.
    pub usage: Option<Box<UsageSummary>>,
}

/// A request from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked<'a> {
    /// What names its user, and the name; `None` where nothing does.
    pub user: Option<(UserKey, &'a str)>,
    /// The service: `PROCESS.OPERATION`.
    pub service: &'a str,
    /// When it was made and when it was answered, ticks.
    pub times: [Time; 2],
    /// How many requests it stands for.
    pub weight: f64,
}

#[derive(Clone, Debug)]
struct Profiles {
    complete: Profile,
    incomplete: Profile,
}

#[derive(Clone, Debug)]
struct Users {
    key: UserKey,
    sessions: Sessions,
    summary: UsageSummary,
    diagnostics: Diagnostics,
}

/// Observations while they are made; nothing is kept of what was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    profiles: Option<Box<Profiles>>,
    users: Option<Box<Users>>,
}

impl Observations {
    /// Nothing observed yet.
    pub fn new(wanted: &Wanted) -> Self {
        let profiles = |options: ProfileOptions| {
            let profile = Profile::new(options);
            Box::new(Profiles { complete: profile.clone(), incomplete: profile })
        };
        let users = |options: UserOptions| {
            Box::new(Users {
                key: options.key,
                sessions: Sessions::new(options.sessions),
                summary: UsageSummary::new(options.summary),
                diagnostics: Diagnostics::default(),
            })
        };
        Self { profiles: wanted.profile.map(profiles), users: wanted.users.map(users) }
    }

    /// Whether executions are to be handed over.
    pub fn wants_executions(&self) -> bool {
        self.profiles.is_some()
    }

    /// Whether requests are to be handed over.
    pub fn wants_requests(&self) -> bool {
        self.users.is_some()
    }

    /// Takes the executions of a recording, of which nothing is missing if it is `complete`.
    pub fn executions(&mut self, tree: &CallTree, complete: Completeness) {
        if let Some(profiles) = &mut self.profiles {
            match complete {
                Completeness::Whole => profiles.complete.absorb(tree),
                Completeness::Partial => profiles.incomplete.absorb(tree),
            }
        }
    }

    /// Takes the executions that interactions show.
    pub fn interactions(&mut self, batch: &Interactions) {
        if self.wants_executions() {
            call_trees(batch).iter().for_each(|tree| self.executions(tree, Completeness::Whole));
        }
    }

    /// Takes a request from outside.
    pub fn request(&mut self, asked: &Asked<'_>) {
        let Some(users) = &mut self.users else { return };
        let service = || asked.service.to_owned();
        let user = match asked.user {
            None => {
                let message = "requests name no user: they are in no session";
                users.diagnostics.add("requests_without_user", message, service);
                return;
            }
            Some((key, _)) if key > users.key => {
                let (code, message) = match key {
                    UserKey::Address => ("only_address", "requests name an address, but neither session nor user: they are in no session"),
                    _ => ("only_user", "requests name a user, but no session: they are in no session"),
                };
                users.diagnostics.add(code, message, service);
                return;
            }
            Some((UserKey::Session, name)) => User::Session(name),
            Some((_, name)) => User::Client(name),
        };
        if asked.weight > 1.0 {
            let message = "traces were sampled, which leaves requests of sessions out: think times are too long, and steps skip some";
            users.diagnostics.add("sampled_sessions", message, service);
            users.summary.note_sampled(asked.weight);
        }
        let [start, end] = asked.times;
        let summary = &mut users.summary;
        let request = Request { user, class: None, service: asked.service, start, end };
        users.sessions.feed(&request, &mut |names, session| summary.absorb(names, &session));
    }

    /// Takes over what was observed of another part of the traces, with the same wishes.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.profiles, other.profiles) {
            (Some(here), Some(there)) => {
                here.complete.merge(there.complete);
                here.incomplete.merge(there.incomplete);
            }
            (here @ None, there) => *here = there,
            (Some(_), None) => {}
        }
        match (&mut self.users, other.users) {
            (Some(here), Some(there)) => {
                here.sessions.merge(there.sessions);
                here.summary.merge(there.summary);
                here.diagnostics.merge(there.diagnostics);
            }
            (here @ None, there) => *here = there,
            (Some(_), None) => {}
        }
    }

    /// What was observed; sessions that are open end here.
    pub fn finish(self) -> Observed {
        let profile = self.profiles.map(|profiles| Box::new(profiles.finish()));
        let usage = self.users.map(|users| {
            let Users { sessions, mut summary, diagnostics, .. } = *users;
            let noted = sessions.finish(&mut |names, session| summary.absorb(names, &session));
            summary.note(noted);
            summary.note(diagnostics);
            Box::new(summary)
        });
        Observed { profile, usage }
    }
}

/// Whether all of a recording is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It is.
    Whole,
    /// Some of it is missing, so that executions may be in other contexts than they seem to be in.
    Partial,
}

impl Profiles {
    fn finish(self) -> Profile {
        let Self { mut complete, mut incomplete } = self;
        let mut noted = Diagnostics::default();
        if complete.n_executions() > 0 {
            let message = "recordings with parts missing are not in the profile, as their contexts are not sure";
            noted.add_times("incomplete_recordings", message, incomplete.n_recordings(), []);
            complete.note(noted);
            return complete;
        }
        let message = "every recording has parts missing: they were profiled as they stand, and contexts may be wrong";
        noted.add_times("only_incomplete_recordings", message, incomplete.n_recordings(), []);
        incomplete.note(noted);
        incomplete
    }
}
