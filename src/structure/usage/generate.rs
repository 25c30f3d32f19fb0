//! Sessions drawn from a usage specification (van Hoorn et al., Sections 3.1 and 3.2).
//!
//! Input: behaviours with probabilities, an application model, n(t), response times and a seed; output: the requests that
//! such users make, in order of their starts, and how many sessions were active after each start and end of one.
//!
//! A session starts as soon as fewer than n(t) are active; it follows one behaviour, drawn by its probability. After the
//! requests of a service, the next service is drawn among the transitions whose guards hold, by their probabilities divided
//! by their sum (the paper leaves open what is done where guards exclude some); where none holds, the session ends. Exit has
//! no guard. A session does not end because n(t) falls. Think times lie between two requests, also within a service.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use indexmap::IndexMap;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    behaviour::{Behaviour, BehaviourError},
    think::ThinkLaw,
};

/// A transition with a guard and an action on boolean variables, all of them false at the start of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The service before; `None` for all.
    #[serde(default)]
    pub from: Option<String>,
    /// The service after.
    pub to: String,
    /// The guard: variables and the values that they must have.
    #[serde(default)]
    pub requires: IndexMap<String, bool>,
    /// The action: variables and the values that they get.
    #[serde(default)]
    pub assigns: IndexMap<String, bool>,
}

/// What users can do: guards and actions of transitions, and the requests that make up each service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Application {
    /// Rules; a transition is allowed where all that apply to it hold.
    pub rules: Vec<Rule>,
    /// Requests of a service, in order; by default one with the service's name.
    pub requests: IndexMap<String, Vec<String>>,
}

/// What is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageSpec {
    /// Behaviours and their probabilities, which sum to 1.
    pub mix: Vec<(Behaviour, f64)>,
    /// What users can do.
    pub application: Application,
    /// n(t): from each time (seconds, ascending, the first 0) how many sessions may be active.
    pub intensity: Vec<(f64, u64)>,
    /// Response times of services, where they differ from `response`.
    pub responses: IndexMap<String, ThinkLaw>,
    /// Response times.
    pub response: ThinkLaw,
    /// Sessions to be started.
    pub n_sessions: u64,
}

/// Why nothing can be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A behaviour is none.
    #[error(transparent)]
    Behaviour(#[from] BehaviourError),
    /// The mix is none.
    #[error("the probabilities of the behaviours sum to {sum}, expected 1, each at least 0")]
    Mix {
        /// Their sum.
        sum: f64,
    },
    /// The intensity is none.
    #[error("step {step} of the intensity is not after the one before, or sessions never may start")]
    Intensity {
        /// Which, from 0.
        step: usize,
    },
}

/// A request of a generated session.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated<'a> {
    /// The session, from 0 in order of their starts.
    pub session: u64,
    /// Name of the behaviour that it follows.
    pub behaviour: &'a str,
    /// The request.
    pub request: &'a str,
    /// When it is made, seconds.
    pub start_s: f64,
    /// When it is answered, seconds.
    pub end_s: f64,
}

/// A start or end of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// When, seconds.
    pub time_s: f64,
    /// Whether a session started; else one ended.
    pub enters: bool,
    /// Sessions active after it.
    pub active: u64,
}

/// How far probabilities may be from a sum of 1.
const SUM_TOLERANCE: f64 = 1e-9;

/// A time on the heap, by `f64::total_cmp`.
#[derive(Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A session under way.
struct Running<'s> {
    behaviour: usize,
    /// The service it is in; `None` once it is to end.
    service: Option<usize>,
    /// Requests of the service made so far.
    made: usize,
    variables: BTreeSet<&'s str>,
}

impl UsageSpec {
    fn check(&self) -> Result<(), SpecError> {
        self.mix.iter().try_for_each(|(behaviour, _)| behaviour.check())?;
        let sum: f64 = self.mix.iter().map(|(_, p)| p).sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE || self.mix.iter().any(|(_, p)| *p < 0.0) {
            return Err(SpecError::Mix { sum });
        }
        let ascending = |pair: &[(f64, u64)]| pair[0].0 < pair[1].0;
        if let Some(step) = self.intensity.windows(2).position(|pair| !ascending(pair)) {
            return Err(SpecError::Intensity { step: step + 1 });
        }
        let starts = self.intensity.first().is_some_and(|(time_s, _)| *time_s == 0.0);
        if !starts || self.intensity.last().is_some_and(|(_, n)| *n == 0) {
            return Err(SpecError::Intensity { step: if starts { self.intensity.len() - 1 } else { 0 } });
        }
        Ok(())
    }

    /// n(t).
    pub fn allowed(&self, time_s: f64) -> u64 {
        self.intensity.iter().take_while(|(from_s, _)| *from_s <= time_s).last().map_or(0, |(_, n)| *n)
    }

    /// Generates the sessions; the same for equal seeds. Requests go to `sink` in order of their starts.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn generate(&self, seed: u64, sink: &mut dyn FnMut(&Generated<'_>)) -> Result<Vec<Passage>, SpecError> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut running: IndexMap<u64, Running<'_>> = IndexMap::new();
        let mut events: BinaryHeap<Reverse<(At, u64)>> = BinaryHeap::new();
        let mut passages = Vec::new();
        let (mut started, mut now) = (0, 0.0);
        loop {
            while started < self.n_sessions && (running.len() as u64) < self.allowed(now) {
                let behaviour = draw(self.mix.iter().map(|(_, p)| *p), &mut rng).unwrap_or(0);
                let service = draw(self.mix[behaviour].0.start.iter().copied(), &mut rng);
                running.insert(started, Running { behaviour, service, made: 0, variables: BTreeSet::new() });
                events.push(Reverse((At(now), started)));
                started += 1;
                passages.push(Passage { time_s: now, enters: true, active: running.len() as u64 });
            }
            let change = self.intensity.iter().map(|(time_s, _)| *time_s).find(|time_s| *time_s > now && started < self.n_sessions);
            let event = events.peek().map(|Reverse((At(time_s), _))| *time_s);
            match (event, change) {
                (None, None) => return Ok(passages),
                (None, Some(change)) => now = change,
                (Some(event), Some(change)) if change < event => now = change,
                (Some(event), _) => {
                    now = event;
                    let Some(Reverse((_, session))) = events.pop() else { continue };
                    match running.get_mut(&session).and_then(|state| self.step(session, state, now, &mut rng, sink)) {
                        Some(next_s) => events.push(Reverse((At(next_s), session))),
                        None => {
                            running.swap_remove(&session);
                            passages.push(Passage { time_s: now, enters: false, active: running.len() as u64 });
                        }
                    }
                }
            }
        }
    }

    /// Makes the next request of a session; returns when it goes on, or `None` where it has ended.
    fn step<'s>(
        &'s self,
        session: u64,
        state: &mut Running<'s>,
        now: f64,
        rng: &mut ChaCha8Rng,
        sink: &mut dyn FnMut(&Generated<'_>),
    ) -> Option<f64> {
        let behaviour = &self.mix[state.behaviour].0;
        let service = state.service?;
        let name = &behaviour.services[service];
        let requests = self.application.requests.get(name).map_or(std::slice::from_ref(name), Vec::as_slice);
        let law = self.responses.get(name).unwrap_or(&self.response);
        let end_s = now + law.draw(rng);
        if let Some(request) = requests.get(state.made) {
            sink(&Generated { session, behaviour: &behaviour.name, request, start_s: now, end_s });
        }
        state.made += 1;
        if state.made >= requests.len() {
            state.made = 0;
            state.service = self.next(behaviour, service, &mut state.variables, rng);
        }
        let think_s = if state.service.is_some() { behaviour.think.map_or(0.0, |law| law.draw(rng)) } else { 0.0 };
        Some(end_s + think_s)
    }

    fn next<'s>(
        &'s self,
        behaviour: &'s Behaviour,
        service: usize,
        variables: &mut BTreeSet<&'s str>,
        rng: &mut ChaCha8Rng,
    ) -> Option<usize> {
        let from = &behaviour.services[service];
        let rules = |to: usize| {
            let applies = move |rule: &&Rule| rule.to == behaviour.services[to] && rule.from.as_ref().is_none_or(|f| f == from);
            self.application.rules.iter().filter(applies)
        };
        let allowed =
            |to: usize| rules(to).all(|rule| rule.requires.iter().all(|(name, value)| variables.contains(name.as_str()) == *value));
        let n = behaviour.services.len();
        let enabled = (0..n).map(|to| if allowed(to) { behaviour.transitions[(service, to)] } else { 0.0 });
        let to = draw(enabled.chain([behaviour.exit[service]]), rng).filter(|to| *to < n)?;
        for (name, value) in rules(to).flat_map(|rule| &rule.assigns) {
            if *value {
                variables.insert(name);
            } else {
                variables.remove(name.as_str());
            }
        }
        Some(to)
    }
}

/// An index with probability proportional to its weight; `None` where all are 0.
fn draw<R: Rng + ?Sized>(weights: impl Iterator<Item = f64> + Clone, rng: &mut R) -> Option<usize> {
    let mut left = rng.random::<f64>() * weights.clone().sum::<f64>();
    let mut last = None;
    for (index, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        last = Some(index);
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    last
}
