//! What is kept of finished sessions, mergeable.
//!
//! Sums over all sessions are exact: transitions, think times, response times, lengths, durations, n(t). For classes of
//! behaviour, guards and the check of the Markov property whole sessions are needed: of these at most
//! [`SummaryOptions::max_sessions`] are kept, those with the smallest hash of user and start. That is a uniform sample
//! which does not depend on the order, so that the summaries of two halves merge to the summary of the whole; it is all of
//! them as long as there are not more.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{intensity::Intensity, session::Session};
use crate::{
    structure::profile::{OTHER, Sample},
    trace::{diagnostics::Diagnostics, names::Names},
};

/// From where (`None`: the start of a session) to where (`None`: its exit).
pub type Step = (Option<u32>, Option<u32>);

/// What is kept of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryOptions {
    /// Seconds that a tick lasts, > 0; anything else counts as 10⁻⁹.
    pub seconds_per_tick: f64,
    /// Length of a window of n(t), seconds.
    pub window_s: f64,
    /// Most sessions kept whole, ≥ 1.
    pub max_sessions: usize,
    /// Most services; further ones are taken together as `(other)`.
    pub max_services: usize,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self { seconds_per_tick: 1e-9, window_s: 60.0, max_sessions: 20_000, max_services: 256 }
    }
}

/// A session kept whole.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptSession {
    /// Its class, where it is known.
    pub class: Option<String>,
    /// Its services, in order.
    pub services: Vec<u32>,
    /// Think times between them, seconds; one fewer.
    pub thinks_s: Vec<f64>,
    /// From its first start to its last end, seconds.
    pub duration_s: f64,
}

/// Sums over sessions.
#[derive(Clone, Debug)]
pub struct UsageSummary {
    pub(super) options: SummaryOptions,
    pub(super) services: Names,
    pub(super) n_sessions: u64,
    pub(super) n_requests: u64,
    /// Requests of sampled traces, and how many more they stand for.
    n_sampled: u64,
    not_recorded: f64,
    pub(super) steps: BTreeMap<Step, u64>,
    pub(super) think: Sample,
    pub(super) think_by_step: BTreeMap<(u32, u32), Sample>,
    pub(super) responses: IndexMap<u32, Sample>,
    pub(super) lengths: Sample,
    pub(super) durations: Sample,
    pub(super) intensity: Intensity,
    pub(super) kept: BTreeMap<(u64, String), KeptSession>,
    pub(super) diagnostics: Diagnostics,
}

impl UsageSummary {
    /// No sessions yet.
    pub fn new(options: SummaryOptions) -> Self {
        Self {
            options,
            services: Names::default(),
            n_sessions: 0,
            n_requests: 0,
            n_sampled: 0,
            not_recorded: 0.0,
            steps: BTreeMap::new(),
            think: Sample::default(),
            think_by_step: BTreeMap::new(),
            responses: IndexMap::new(),
            lengths: Sample::default(),
            durations: Sample::default(),
            intensity: Intensity::new(options.window_s),
            kept: BTreeMap::new(),
            diagnostics: Diagnostics::default(),
        }
    }

    fn tick_s(&self) -> f64 {
        let tick_s = self.options.seconds_per_tick;
        if tick_s.is_finite() && tick_s > 0.0 { tick_s } else { 1e-9 }
    }

    /// Counts a finished session; `services` are the names of its services. A session without visits is not counted.
    pub fn absorb(&mut self, services: &Names, session: &Session) {
        let Some(first) = session.visits.first() else { return };
        let tick_s = self.tick_s();
        let numbers: Vec<u32> = session.visits.iter().map(|visit| self.service(services.name(visit.service))).collect();
        let mut thinks_s = Vec::with_capacity(numbers.len());
        let mut last_end = first.end;
        for (position, visit) in session.visits.iter().enumerate() {
            self.responses.entry(numbers[position]).or_default().add((visit.end.ticks_since(visit.start) * tick_s).max(0.0), 1.0);
            if position > 0 {
                let think_s = visit.start.ticks_since(last_end) * tick_s;
                if think_s < 0.0 {
                    let message = "requests made before the one before was answered: no think time between them";
                    self.diagnostics.add("overlapping_requests", message, || format!("{} at {}", session.user, visit.start));
                }
                thinks_s.push(think_s.max(0.0));
                self.think.add(think_s.max(0.0), 1.0);
                self.think_by_step.entry((numbers[position - 1], numbers[position])).or_default().add(think_s.max(0.0), 1.0);
            }
            last_end = last_end.max(visit.end);
        }
        for step in steps(&numbers) {
            *self.steps.entry(step).or_insert(0) += 1;
        }
        let duration_s = last_end.ticks_since(first.start) * tick_s;
        self.n_sessions += 1;
        self.n_requests += numbers.len() as u64;
        self.lengths.add(numbers.len() as f64, 1.0);
        self.durations.add(duration_s, 1.0);
        self.intensity.add(first.start.as_f64() * tick_s, last_end.as_f64() * tick_s);
        let id = format!("{}@{}", session.user, first.start);
        self.keep((hash(&id), id), KeptSession { class: session.class.clone(), services: numbers, thinks_s, duration_s });
    }

    fn keep(&mut self, key: (u64, String), session: KeptSession) {
        self.kept.insert(key, session);
        while self.kept.len() > self.options.max_sessions {
            self.kept.pop_last();
        }
    }

    fn service(&mut self, name: &str) -> u32 {
        if self.services.get(name).is_none() && self.services.len() >= self.options.max_services {
            self.diagnostics.add("many_services", "services beyond the most that are told apart: taken together", || name.to_owned());
            return self.services.intern(OTHER);
        }
        self.services.intern(name)
    }

    /// A request of a sampled trace stands for `weight` ≥ 1 of them.
    pub fn note_sampled(&mut self, weight: f64) {
        self.n_sampled += 1;
        self.not_recorded += weight - 1.0;
    }

    /// How many requests one that was recorded stands for in the mean; 1 where all were.
    pub fn stands_for(&self) -> f64 {
        1.0 + self.not_recorded / self.n_requests.max(self.n_sampled).max(1) as f64
    }

    /// Counts what went on beside sessions: what was odd in making them.
    pub fn note(&mut self, diagnostics: Diagnostics) {
        self.diagnostics.merge(diagnostics);
    }

    /// Adds the sessions of another summary; its options are forgotten.
    pub fn merge(&mut self, other: Self) {
        let numbers: Vec<u32> = other.services.iter().map(|name| self.service(name)).collect();
        let number = |service: u32| numbers[service as usize];
        for ((from, to), count) in other.steps {
            *self.steps.entry((from.map(number), to.map(number))).or_insert(0) += count;
        }
        for ((from, to), sample) in &other.think_by_step {
            self.think_by_step.entry((number(*from), number(*to))).or_default().merge(sample);
        }
        for (service, sample) in &other.responses {
            self.responses.entry(number(*service)).or_default().merge(sample);
        }
        self.n_sessions += other.n_sessions;
        self.n_requests += other.n_requests;
        self.n_sampled += other.n_sampled;
        self.not_recorded += other.not_recorded;
        self.think.merge(&other.think);
        self.lengths.merge(&other.lengths);
        self.durations.merge(&other.durations);
        self.intensity.merge(other.intensity);
        for (key, session) in other.kept {
            let services = session.services.iter().map(|service| number(*service)).collect();
            self.keep(key, KeptSession { services, ..session });
        }
        self.diagnostics.merge(other.diagnostics);
    }

    /// What was odd.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Number of sessions.
    pub fn n_sessions(&self) -> u64 {
        self.n_sessions
    }

    /// Number of requests.
    pub fn n_requests(&self) -> u64 {
        self.n_requests
    }

    /// Names of the services, in order of their numbers.
    pub fn services(&self) -> &Names {
        &self.services
    }

    /// How often each step was taken.
    pub fn steps(&self) -> &BTreeMap<Step, u64> {
        &self.steps
    }

    /// The sessions kept whole.
    pub fn kept(&self) -> impl Iterator<Item = &KeptSession> {
        self.kept.values()
    }

    /// n(t).
    pub fn intensity(&self) -> &Intensity {
        &self.intensity
    }
}

/// The steps of a session: from its start through its services to its exit.
pub(super) fn steps(services: &[u32]) -> impl Iterator<Item = Step> + '_ {
    let from = std::iter::once(None).chain(services.iter().map(|service| Some(*service)));
    let to = services.iter().map(|service| Some(*service)).chain(std::iter::once(None));
    from.zip(to)
}

fn hash(id: &str) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(id)[..8]);
    u64::from_be_bytes(first)
}
