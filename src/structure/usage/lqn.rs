//! The usage model's part of a layered queueing network: who asks for what, how often, and how many of them there are.
//!
//! Input: a model with a reference task that stands for the users, and a [`UsageModel`]; output: the model with one reference
//! task for each class of behaviour (closed), or with arrivals at the services' entries (open).
//!
//! | | one cycle is a request | one cycle is a session |
//! |---|---|---|
//! | calls to service i | vᵢ / Σ v | vᵢ |
//! | think time | Z (L - 1) / L | Z (L - 1) |
//! | customers of class c | n a_c | n a_c |
//!
//! a_c = p_c D_c / Σ p D is the class's part of the active sessions, D_c the mean duration of its sessions, L = Σ v their mean
//! length, Z the mean think time. Arrivals at service i, open: session starts a second × Σ p_c v_i(c).
//!
//! A session of L requests lasts L R + (L - 1) Z, so that by Little's law n active sessions make n / (R + Z (L - 1) / L)
//! requests a second: that is the think time taken. [`Thinking::AfterEvery`] takes Z for each request instead, which is
//! right for users who also think between sessions and count as active then.
//!
//! Numbers of customers are whole: n is rounded, and shared out by largest remainder, at least one for each class.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::model::{BehaviourClass, UsageModel};
use crate::{
    model::{Activity, Call, CallKind, Entry, Model, Number, Phase, Task},
    structure::interactions::{Hints, ProcessHints, Workload},
};

/// Whether users wait for one another's turn or arrive regardless. The results differ strongly: it is for the user to say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageWorkload {
    /// A number of sessions is always active.
    Closed {
        /// How many, ≥ 1; by default the mean that was seen.
        customers: Option<f64>,
    },
    /// Sessions start at a rate.
    Open {
        /// Sessions a second, > 0; by default the rate that was seen.
        rate: Option<f64>,
    },
}

/// What one cycle of a customer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cycle {
    /// One request, of the service drawn from the mix.
    #[default]
    Request,
    /// One session.
    Session,
}

/// When users think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thinking {
    /// Between the requests of a session.
    #[default]
    Between,
    /// After every request, the last of a session too.
    AfterEvery,
}

/// What becomes of services that no entry stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unmatched {
    /// They are an error.
    #[default]
    Reject,
    /// Their requests are left out.
    Drop,
}

/// How a usage model goes into a layered model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LqnOptions {
    /// Closed or open.
    pub workload: UsageWorkload,
    /// What one cycle is.
    pub cycle: Cycle,
    /// When users think.
    pub thinking: Thinking,
    /// The reference task that stands for the users; by default the only one.
    pub client: Option<String>,
    /// Service → entry, where an entry is not called as its service, or `TASK.service`.
    pub entries: IndexMap<String, String>,
    /// What becomes of services without an entry.
    pub unmatched: Unmatched,
}

impl Default for LqnOptions {
    fn default() -> Self {
        Self {
            workload: UsageWorkload::Closed { customers: None },
            cycle: Cycle::default(),
            thinking: Thinking::default(),
            client: None,
            entries: IndexMap::new(),
            unmatched: Unmatched::default(),
        }
    }
}

/// Why a usage model does not fit a layered model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UsageError {
    /// No task stands for the users.
    #[error("{found}, expected the name of the reference task that stands for the users (one of {known})")]
    Client {
        /// What is wrong.
        found: String,
        /// The reference tasks.
        known: String,
    },
    /// The task's work is a graph, which has no single list of calls.
    #[error("reference task \"{task}\" works by an activity graph, expected phases")]
    Graph {
        /// The task.
        task: String,
    },
    /// A service has no entry, or several.
    #[error("service \"{service}\" is {found}, expected the name of one entry: {hint}")]
    Entry {
        /// The service.
        service: String,
        /// What was found.
        found: String,
        /// What may help.
        hint: &'static str,
    },
    /// A number cannot be used.
    #[error("{what} is {value}, expected {expected}")]
    Value {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What was expected.
        expected: &'static str,
    },
}

/// The calls, customers and think time of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassCustomers {
    /// The class.
    pub class: String,
    /// Mean calls in a cycle by service, shape `(n_services,)`.
    pub calls: Vec<f64>,
    /// Think time of a cycle, seconds.
    pub think_s: f64,
    /// Number of customers.
    pub n: u64,
}

impl UsageModel {
    /// The model with the mix, customers and think times of this usage (or its arrivals) in place of what its reference task
    /// has. The reference task's own demand goes, as what users do between requests is their think time.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn apply_to(&self, model: &Model, options: &LqnOptions) -> Result<Model, UsageError> {
        let at = client(model, options)?;
        let task = &model.tasks[at];
        if task.entries.iter().any(|entry| entry.start_activity.is_some()) || !task.activities.is_empty() {
            return Err(UsageError::Graph { task: task.name.clone() });
        }
        let entries = self.entries(model, at, options)?;
        match options.workload {
            UsageWorkload::Closed { customers } => {
                let classes = self.customers(customers, options)?;
                Ok(closed(model, at, &entries, &classes))
            }
            UsageWorkload::Open { rate } => {
                let rate = checked("the rate of sessions", rate.unwrap_or(self.session_rate), 0.0, "a number above 0")?;
                Ok(self.open(model, at, &entries, rate))
            }
        }
    }

    /// What the usage says of process `client` beside a trace's interactions: customers and mean think time of a request
    /// over all classes, or the rate of requests.
    ///
    /// # Errors
    /// [`UsageError::Value`].
    pub fn hints(&self, client: &str, options: &LqnOptions) -> Result<Hints, UsageError> {
        let cycle_of = |class: &BehaviourClass| if options.cycle == Cycle::Request { class.mean_length } else { 1.0 };
        let workload = match options.workload {
            UsageWorkload::Closed { customers } => {
                let classes = self.customers(customers, options)?;
                // Classes contribute cycles in proportion to their sessions times the cycles of a session.
                let cycles: Vec<f64> = self.classes.iter().map(|class| class.share * cycle_of(class)).collect();
                let think: f64 = classes.iter().zip(&cycles).map(|(class, cycles)| class.think_s * cycles).sum();
                Workload::Closed {
                    customers: classes.iter().map(|class| class.n as f64).sum(),
                    think_time: think / cycles.iter().sum::<f64>(),
                }
            }
            UsageWorkload::Open { rate } => {
                let rate = checked("the rate of sessions", rate.unwrap_or(self.session_rate), 0.0, "a number above 0")?;
                Workload::Open { rate: rate * self.classes.iter().map(|class| class.share * cycle_of(class)).sum::<f64>() }
            }
        };
        let mut hints = Hints::default();
        hints.processes.insert(client.to_owned(), ProcessHints { workload: Some(workload), ..ProcessHints::default() });
        Ok(hints)
    }

    /// The customers of each class: `customers` of them in all, by default as many as sessions are active in the mean.
    ///
    /// # Errors
    /// [`UsageError::Value`] for less than one customer.
    pub fn customers(&self, customers: Option<f64>, options: &LqnOptions) -> Result<Vec<ClassCustomers>, UsageError> {
        let n = match customers {
            Some(n) => checked("the number of customers", n, 0.5, "a number, 1 or more")?,
            None => self.mean_active.max(1.0),
        };
        let of_class = |(class, n): (&BehaviourClass, u64)| {
            let length: f64 = class.visits.iter().sum();
            let per_cycle = if options.cycle == Cycle::Request { 1.0 } else { length };
            let think_s = match options.thinking {
                Thinking::Between => Self::think_per_request_s(class),
                Thinking::AfterEvery => class.think.map_or(0.0, |think| think.mean_s),
            };
            let calls = class.visits.iter().map(|visits| visits / length * per_cycle).collect();
            ClassCustomers { class: class.behaviour.name.clone(), calls, think_s: think_s * per_cycle, n }
        };
        Ok(self.classes.iter().zip(shared_out(n, &self.active_shares())).map(of_class).collect())
    }

    /// Customers of each class.
    pub(super) fn customers_of_classes(&self, options: &LqnOptions) -> Result<Vec<u64>, UsageError> {
        let UsageWorkload::Closed { customers } = options.workload else { return Ok(Vec::new()) };
        Ok(self.customers(customers, options)?.into_iter().map(|class| class.n).collect())
    }

    /// The entry of each service; `None` where its requests are left out.
    fn entries(&self, model: &Model, client: usize, options: &LqnOptions) -> Result<Vec<Option<String>>, UsageError> {
        let others = model.tasks.iter().enumerate().filter(|(at, task)| *at != client && !task.scheduling.is_reference());
        let known: Vec<&str> = others.flat_map(|(_, task)| &task.entries).map(|entry| entry.name.as_str()).collect();
        let visited = |i: usize| self.classes.iter().any(|class| class.visits[i] > 0.0);
        let entry = |(i, service): (usize, &String)| {
            if !visited(i) {
                return Ok(None);
            }
            let wanted = options.entries.get(service).unwrap_or(service);
            if known.contains(&wanted.as_str()) {
                return Ok(Some(wanted.clone()));
            }
            let ending = format!(".{}", model_name(wanted));
            let fitting: Vec<&&str> = known.iter().filter(|name| name.ends_with(&ending) || **name == model_name(wanted)).collect();
            match (fitting.as_slice(), options.unmatched) {
                ([one], _) => Ok(Some((**one).to_owned())),
                ([], Unmatched::Drop) => Ok(None),
                ([], Unmatched::Reject) => {
                    let found = format!("not among the entries ({})", known.join(", "));
                    Err(UsageError::Entry { service: service.clone(), found, hint: "map it to an entry, or drop unmatched services" })
                }
                (several, _) => {
                    let found = several.iter().map(|name| **name).collect::<Vec<_>>().join(" or ");
                    Err(UsageError::Entry { service: service.clone(), found, hint: "map it to one of them" })
                }
            }
        };
        self.services.iter().enumerate().map(entry).collect()
    }

    fn open(&self, model: &Model, client: usize, entries: &[Option<String>], rate: f64) -> Model {
        let mut rates: IndexMap<&str, f64> = IndexMap::new();
        for (i, entry) in entries.iter().enumerate() {
            let visits: f64 = self.classes.iter().map(|class| class.share * class.visits[i]).sum();
            if let Some(entry) = entry {
                *rates.entry(entry).or_insert(0.0) += rate * visits;
            }
        }
        let mut open = model.clone();
        let gone = open.tasks.remove(client);
        if !open.tasks.iter().any(|task| task.processor == gone.processor) {
            open.processors.retain(|processor| processor.name != gone.processor);
        }
        for entry in open.tasks.iter_mut().flat_map(|task| &mut task.entries) {
            if let Some(rate) = rates.get(entry.name.as_str()).filter(|rate| **rate > 0.0) {
                entry.open_arrival_rate = Some(Number::Value(*rate));
            }
        }
        open
    }
}

fn checked(what: &'static str, value: f64, above: f64, expected: &'static str) -> Result<f64, UsageError> {
    if value.is_finite() && value > above { Ok(value) } else { Err(UsageError::Value { what, value, expected }) }
}

/// Position of the reference task that stands for the users.
fn client(model: &Model, options: &LqnOptions) -> Result<usize, UsageError> {
    let references = || model.tasks.iter().enumerate().filter(|(_, task)| task.scheduling.is_reference());
    let known = || references().map(|(_, task)| format!("\"{}\"", task.name)).collect::<Vec<_>>().join(", ");
    let found = match &options.client {
        Some(name) => references().find(|(_, task)| task.name == *name).ok_or_else(|| format!("client \"{name}\" is no reference task")),
        None => {
            let mut all = references();
            match (all.next(), all.next()) {
                (Some(one), None) => Ok(one),
                (None, _) => Err("the model has no reference task".to_owned()),
                (Some(_), Some(_)) => Err("the model has several reference tasks".to_owned()),
            }
        }
    };
    found.map(|(at, _)| at).map_err(|found| UsageError::Client { found, known: known() })
}

fn closed(model: &Model, client: usize, entries: &[Option<String>], classes: &[ClassCustomers]) -> Model {
    let old = &model.tasks[client];
    let old_entry = old.entries.first().map_or_else(|| format!("{}.1", old.name), |entry| entry.name.clone());
    let kind_of = |dest: &str| {
        let calls = old.entries.iter().flat_map(|entry| &entry.phases).flat_map(|phase| &phase.activity.calls);
        calls.filter(|call| call.dest == dest).map(|call| call.kind).next().unwrap_or(CallKind::Sync)
    };
    let task = |class: &ClassCustomers| {
        let mark = if classes.len() > 1 { format!("({})", model_name(&class.class)) } else { String::new() };
        let mut calls: IndexMap<&str, f64> = IndexMap::new();
        for (entry, mean) in entries.iter().zip(&class.calls).filter(|(_, mean)| **mean > 0.0) {
            if let Some(entry) = entry {
                *calls.entry(entry).or_insert(0.0) += mean;
            }
        }
        let name = format!("{old_entry}{mark}");
        let mut work = Activity::new(format!("{name}_ph1"), 0.0);
        let call = |(dest, mean): (&str, f64)| Call { kind: kind_of(dest), dest: dest.to_owned(), mean: Number::Value(mean) };
        work.calls = calls.into_iter().map(call).collect();
        let mut entry = Entry::new(name);
        entry.phases.push(Phase { phase: 1, activity: work });
        Task {
            name: format!("{}{mark}", old.name),
            multiplicity: Number::Value(class.n as f64),
            think_time: Number::Value(class.think_s),
            entries: vec![entry],
            ..old.clone()
        }
    };
    let mut closed = model.clone();
    closed.tasks.splice(client..=client, classes.iter().map(task));
    closed
}

/// Whole numbers near `n × share`, at least 1, that sum to `n` rounded where that is possible.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn shared_out(n: f64, shares: &[f64]) -> Vec<u64> {
    let n = n.round().max(shares.len() as f64);
    let mut whole: Vec<u64> = shares.iter().map(|share| ((n * share).floor() as u64).max(1)).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| (n * shares[*b]).fract().total_cmp(&(n * shares[*a]).fract()).then(a.cmp(b)));
    let missing = (n as u64).saturating_sub(whole.iter().sum());
    order.iter().cycle().take(missing.min(shares.len() as u64) as usize).for_each(|c| whole[*c] += 1);
    while whole.iter().sum::<u64>() > n as u64 {
        let Some(most) = (0..whole.len()).filter(|c| whole[*c] > 1).max_by_key(|c| whole[*c]) else { break };
        whole[most] -= 1;
    }
    whole
}

/// As the names of extracted models: no blanks, no separators of the LQN tools.
fn model_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "_-.:/@#()".contains(c) { c } else { '_' }).collect()
}
