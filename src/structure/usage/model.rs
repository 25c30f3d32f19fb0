//! The usage model: classes of behaviour with their shares, think times, and the intensity of the workload.
//!
//! Input: a [`UsageSummary`]; output: a [`UsageModel`].
//!
//! ```text
//! p(i, j) = (c(i, j) + s) / (c(i) + s (n + 1))        over all services j and Exit, in rows with c(i) > 0
//! z₀(i)   = c(start, i) / sessions                    not smoothed: services that never come first never do
//! v(i)    = visits to i / sessions                    = z₀ (I - P)⁻¹ of the chain without smoothing, exactly
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | c(i, j), c(i) | how often j followed i; how often i was left |
//! | s | smoothing, 0.5 by default |
//! | n | number of services |
//!
//! The chain is smoothed, so that generated sessions may do what was not seen; the mean visits, from which a layered model's
//! mix is taken, are not, as with few sessions smoothing would shift them. In a row that a class never left, Exit is certain.
//! With one class the sums over all sessions are used, else the sessions kept whole (searched for classes: up to 400 000
//! requests of them), each in its classes by probability.

use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::{
    behaviour::Behaviour,
    checks::{GuardCandidate, OrderCheck, guard_candidates, order_check},
    classes::{Classes, by_label, cluster},
    intensity::Window,
    summary::{KeptSession, Step, UsageSummary, steps},
    think::ThinkLaw,
};
use crate::{
    structure::{
        OptionError,
        profile::{Sample, SampleSummary},
    },
    trace::diagnostics::Diagnostic,
};

/// How many classes of behaviour there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassChoice {
    /// One.
    One,
    /// Those that sessions are labelled with.
    Given,
    /// As many as the sessions show, up to a cap.
    Clustered {
        /// Most classes.
        most: usize,
    },
}

/// How a usage model is made of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageOptions {
    /// Classes of behaviour.
    pub classes: ClassChoice,
    /// What each possible step counts beyond those seen, ≥ 0.
    pub smoothing: f64,
}

impl Default for UsageOptions {
    fn default() -> Self {
        Self { classes: ClassChoice::Clustered { most: 8 }, smoothing: 0.5 }
    }
}

/// Most classes of behaviour that may be looked for.
pub const MOST_CLASSES: usize = 16;

impl UsageOptions {
    /// Checks what can be checked without sessions.
    ///
    /// # Errors
    /// [`OptionError`] for a number out of its range.
    pub fn check(&self) -> Result<(), OptionError> {
        let error = |option: &str, found: String, expected| OptionError { option: option.to_owned(), found, expected };
        match self.classes {
            ClassChoice::Clustered { most } if !(1..=MOST_CLASSES).contains(&most) => {
                Err(error("behaviour.classes", most.to_string(), "a number of classes, 1 to 16"))
            }
            _ if !(self.smoothing.is_finite() && self.smoothing >= 0.0) => {
                Err(error("behaviour.smoothing", self.smoothing.to_string(), "a number, 0 or more"))
            }
            _ => Ok(()),
        }
    }
}

/// Think time of one transition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransitionThink {
    /// The service before.
    pub from: String,
    /// The service after.
    pub to: String,
    /// The times.
    pub times: SampleSummary,
}

/// How often a step was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCount {
    /// From which service; `None` for the start of a session.
    pub from: Option<String>,
    /// To which service; `None` for the end of a session.
    pub to: Option<String>,
    /// How often: a sum of probabilities of the class.
    pub count: f64,
    /// Its part of the steps from there, as seen: not smoothed.
    pub share: f64,
}

/// A class of behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BehaviourClass {
    /// Its chain, smoothed, with its law of think times.
    pub behaviour: Behaviour,
    /// Probability that a new session is of this class.
    pub share: f64,
    /// Number of sessions behind it (a sum of probabilities).
    pub n_sessions: f64,
    /// The steps that were taken, from the start on in order of services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepCount>,
    /// Mean visits to each service in a session, shape `(n_services,)`.
    pub visits: Vec<f64>,
    /// Mean requests in a session.
    pub mean_length: f64,
    /// Mean time from the first request to the last answer, seconds.
    pub mean_duration_s: f64,
    /// Think times; `None` where all sessions have one request.
    pub think: Option<SampleSummary>,
    /// Kolmogorov distance of the law of think times.
    pub think_distance: Option<f64>,
    /// Whether its sessions behave as a first-order chain.
    pub order: OrderCheck,
}

/// A usage model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageModel {
    /// Services, in order of first appearance.
    pub services: Vec<String>,
    /// Classes; shares sum to 1.
    pub classes: Vec<BehaviourClass>,
    /// BIC by number of classes, from 1, where classes were searched for.
    pub bic: Vec<f64>,
    /// Number of sessions.
    pub n_sessions: u64,
    /// Number of requests.
    pub n_requests: u64,
    /// How many requests one of them stands for in the mean, where traces were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<f64>,
    /// From the first request to the last answer, seconds.
    pub span_s: f64,
    /// Sessions started a second; 0 without a span.
    pub session_rate: f64,
    /// Requests in a session.
    pub lengths: SampleSummary,
    /// Durations of sessions.
    pub durations: SampleSummary,
    /// Think times of all sessions.
    pub think: Option<SampleSummary>,
    /// Think times by transition, the most frequent first.
    pub think_by_transition: Vec<TransitionThink>,
    /// Response times by service, in order of `services`.
    pub responses: Vec<Option<SampleSummary>>,
    /// Mean number of active sessions.
    pub mean_active: f64,
    /// Most active sessions in a window, in the mean over the window.
    pub peak_active: f64,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// n(t).
    pub intensity: Vec<Window>,
    /// Services that seem to need others before them, to be reviewed.
    pub guard_candidates: Vec<GuardCandidate>,
    /// What was odd.
    pub diagnostics: Vec<Diagnostic>,
}

/// There is nothing to make a usage model of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sessions were found, expected requests with a session or a client")]
pub struct NoSessions;

/// Sums over the sessions of one class.
#[derive(Default)]
struct ClassSums {
    n: f64,
    steps: std::collections::BTreeMap<Step, f64>,
    think: Sample,
    length: f64,
    duration_s: f64,
}

impl ClassSums {
    fn of_all(summary: &UsageSummary) -> Self {
        Self {
            n: summary.n_sessions as f64,
            steps: summary.steps.iter().map(|(step, n)| (*step, *n as f64)).collect(),
            think: summary.think.clone(),
            length: summary.n_requests as f64,
            duration_s: summary.durations.mean().unwrap_or(0.0) * summary.n_sessions as f64,
        }
    }

    fn add(&mut self, session: &KeptSession, weight: f64) {
        self.n += weight;
        steps(&session.services).for_each(|step| *self.steps.entry(step).or_insert(0.0) += weight);
        for think_s in &session.thinks_s {
            self.think.add(*think_s, weight);
        }
        self.length += weight * session.services.len() as f64;
        self.duration_s += weight * session.duration_s;
    }
}

/// Most requests of the sessions that classes are searched in: bounds the time it takes.
const MOST_REQUESTS_CLUSTERED: usize = 400_000;

/// A session's part in a class below which it is not counted there.
const NEGLIGIBLE: f64 = 1e-9;

impl UsageModel {
    /// Makes the usage model of `summary`.
    ///
    /// # Errors
    /// [`NoSessions`].
    pub fn of(summary: &UsageSummary, options: &UsageOptions) -> Result<Self, NoSessions> {
        let kept = classified(summary, options.classes);
        let (Some(lengths), Some(durations)) = (summary.lengths.summary(), summary.durations.summary()) else { return Err(NoSessions) };
        let one = || Classes { memberships: vec![vec![1.0]; kept.len()], bic: Vec::new() };
        let (names, classes) = match options.classes {
            ClassChoice::One => (Vec::new(), one()),
            ClassChoice::Given if !kept.is_empty() => by_label(&kept),
            ClassChoice::Clustered { most } if !kept.is_empty() => (Vec::new(), cluster(&kept, most)),
            _ => (Vec::new(), one()),
        };
        let k = classes.memberships.first().map_or(1, Vec::len);
        let services: Vec<String> = summary.services.iter().map(str::to_owned).collect();
        let total: f64 = if k == 1 { 1.0 } else { kept.len() as f64 };
        let class = |c: usize| {
            let members = || kept.iter().zip(&classes.memberships).map(|(s, row)| (*s, row[c])).filter(|(_, weight)| *weight > NEGLIGIBLE);
            let mut sums = ClassSums::default();
            if k == 1 {
                sums = ClassSums::of_all(summary);
            } else {
                members().for_each(|(session, weight)| sums.add(session, weight));
            }
            let name = names.get(c).cloned().unwrap_or_else(|| if k == 1 { "all".to_owned() } else { format!("class{}", c + 1) });
            let share = if k == 1 { 1.0 } else { sums.n / total };
            let class = || behaviour_class(name, share, &services, &sums, options.smoothing, order_check(members()));
            (sums.n > NEGLIGIBLE).then(class)
        };
        let intensity = summary.intensity.series();
        let span_s = summary.intensity.span_s();
        Ok(Self {
            classes: (0..k).filter_map(class).collect(),
            bic: classes.bic.clone(),
            n_sessions: summary.n_sessions,
            n_requests: summary.n_requests,
            stands_for: Some(summary.stands_for()).filter(|n| *n > 1.0),
            span_s,
            session_rate: if span_s > 0.0 { summary.n_sessions as f64 / span_s } else { 0.0 },
            lengths,
            durations,
            think: summary.think.summary(),
            think_by_transition: think_by_transition(summary),
            responses: (0..services.len() as u32).map(|s| summary.responses.get(&s).and_then(Sample::summary)).collect(),
            mean_active: summary.intensity.mean_active(),
            peak_active: summary.intensity.peak_active(),
            window_s: summary.intensity.window_s(),
            intensity,
            guard_candidates: guard_candidates(&kept, &summary.services),
            diagnostics: summary.diagnostics.clone().into_vec(),
            services,
        })
    }

    /// Mean think time that a request comes with, seconds: the think times of all sessions over their requests. A session of
    /// L requests has L - 1 of them, so that this is below the mean think time.
    pub fn think_per_request_s(class: &BehaviourClass) -> f64 {
        let think_s = class.think.map_or(0.0, |think| think.mean_s);
        if class.mean_length > 0.0 { think_s * (class.mean_length - 1.0).max(0.0) / class.mean_length } else { 0.0 }
    }

    /// Mean response time of a request of a class, seconds: of services by their visits; 0 where none is known.
    pub fn mean_response_s(&self, class: &BehaviourClass) -> f64 {
        let known = || self.responses.iter().zip(&class.visits).filter_map(|(times, visits)| Some((times.as_ref()?.mean_s, *visits)));
        let visits: f64 = known().map(|(_, visits)| visits).sum();
        if visits > 0.0 { known().map(|(mean_s, visits)| mean_s * visits).sum::<f64>() / visits } else { 0.0 }
    }

    /// How often each service is asked for, as parts of all requests: weights of a usage profile whose scenarios are services.
    pub fn usage_profile(&self) -> indexmap::IndexMap<String, f64> {
        let visits = |i: usize| self.classes.iter().map(|class| class.share * class.visits[i]).sum::<f64>();
        let all: f64 = (0..self.services.len()).map(visits).sum();
        self.services.iter().enumerate().map(|(i, service)| (service.clone(), visits(i) / all)).collect()
    }

    /// Each class's part of the active sessions: shares weighted with mean durations; with mean lengths where no session lasts.
    pub fn active_shares(&self) -> Vec<f64> {
        let weigh = |of: fn(&BehaviourClass) -> f64| self.classes.iter().map(|class| class.share * of(class)).collect::<Vec<f64>>();
        let mut weights = weigh(|class| class.mean_duration_s);
        if weights.iter().sum::<f64>() <= 0.0 {
            weights = weigh(|class| class.mean_length);
        }
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }
}

/// The sessions that are put into classes. They are in order of their hashes, so that the first of them are a sample too.
fn classified(summary: &UsageSummary, classes: ClassChoice) -> Vec<&KeptSession> {
    let most = if matches!(classes, ClassChoice::Clustered { .. }) { MOST_REQUESTS_CLUSTERED } else { usize::MAX };
    let mut n_requests = 0;
    let within = |session: &&KeptSession| {
        n_requests += session.services.len();
        n_requests <= most.max(session.services.len())
    };
    summary.kept.values().take_while(within).collect()
}

fn behaviour_class(name: String, share: f64, services: &[String], sums: &ClassSums, smoothing: f64, order: OrderCheck) -> BehaviourClass {
    let n = services.len();
    let smoothing = if smoothing.is_finite() { smoothing.max(0.0) } else { 0.0 };
    let mut counts = DMatrix::zeros(n, n + 1);
    let (mut start, mut visits) = (vec![0.0; n], vec![0.0; n]);
    for ((from, to), count) in &sums.steps {
        match (from, to) {
            (None, Some(to)) => start[*to as usize] += count / sums.n,
            (Some(from), to) => counts[(*from as usize, to.map_or(n, |to| to as usize))] += count,
            (None, None) => {}
        }
        if let Some(to) = to {
            visits[*to as usize] += count / sums.n;
        }
    }
    for i in 0..n {
        let left: f64 = counts.row(i).sum();
        if left > NEGLIGIBLE {
            let all = left + smoothing * (n + 1) as f64;
            counts.row_mut(i).iter_mut().for_each(|count| *count = (*count + smoothing) / all);
        } else {
            counts.row_mut(i).fill(0.0);
            counts[(i, n)] = 1.0;
        }
    }
    let fitted = ThinkLaw::fit(&sums.think);
    BehaviourClass {
        behaviour: Behaviour {
            name,
            services: services.to_vec(),
            start,
            transitions: counts.columns(0, n).into_owned(),
            exit: counts.column(n).iter().copied().collect(),
            think: fitted.map(|(law, _)| law),
        },
        share,
        n_sessions: sums.n,
        steps: step_counts(services, sums),
        visits,
        mean_length: sums.length / sums.n,
        mean_duration_s: sums.duration_s / sums.n,
        think: sums.think.summary(),
        think_distance: fitted.map(|(_, distance)| distance),
        order,
    }
}

fn step_counts(services: &[String], sums: &ClassSums) -> Vec<StepCount> {
    let mut from_there: std::collections::BTreeMap<Option<u32>, f64> = std::collections::BTreeMap::new();
    sums.steps.iter().for_each(|((from, _), count)| *from_there.entry(*from).or_insert(0.0) += count);
    let name = |service: Option<u32>| service.and_then(|service| services.get(service as usize).cloned());
    let step = |((from, to), count): (&Step, &f64)| StepCount {
        from: name(*from),
        to: name(*to),
        count: *count,
        share: count / from_there.get(from).copied().unwrap_or(1.0),
    };
    sums.steps.iter().map(step).collect()
}

fn think_by_transition(summary: &UsageSummary) -> Vec<TransitionThink> {
    let think = |((from, to), sample): (&(u32, u32), &Sample)| {
        let name = |service: u32| summary.services.name(service).to_owned();
        Some(TransitionThink { from: name(*from), to: name(*to), times: sample.summary()? })
    };
    let mut all: Vec<TransitionThink> = summary.think_by_step.iter().filter_map(think).collect();
    all.sort_by(|a, b| b.times.n.cmp(&a.times.n).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    all
}
