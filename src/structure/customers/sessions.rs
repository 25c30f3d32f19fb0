//! Reference tasks from the sessions of users.
//!
//! Input: the reference tasks of the recordings, and a [`UsageModel`]; output: one reference task for each class of behaviour
//! in place of those whose requests are in sessions.
//!
//! ```text
//! y(d) = Σᵢ vᵢ / Σ v × m(i, d) / Σ_d m(i, d)        one cycle is a request
//! X    = w n a_c / (R + Z (L - 1) / L)              N = n a_c, whole, but X R at least where no number is asked for
//! Z'   = N / X - R                                  the rate is kept; not below 0
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | vᵢ, L | mean visits to service i in a session of the class; their sum | |
//! | m(i, d) | mean requests of entry d of service i in the cycles of the recordings: entries that behave differently | |
//! | Z, R | mean think time between requests; mean response time of the class's requests | s |
//! | X, w | requests of the class a second; how many a recorded one stands for | 1/s |
//! | N, Z' | customers and their think time | , s |
//! | n a_c | mean active sessions of the class ([`crate::structure::usage`]) | |
//!
//! Requests in no session arrive from outside, whatever the number of users: those that the recordings have of an entry beyond
//! what sessions ask of its services, over the time that sessions were seen for.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{
    super::{
        ExtractOptions,
        entries::{ArcKind, Merged, MergedArc},
        interactions::Workload,
        summary::Summary,
        usage::{BehaviourClass, LqnOptions, UsageModel, UsageWorkload},
    },
    Customers,
};
use crate::{model::Number, trace::diagnostics::Diagnostics};

/// Sessions below which their means are said to be unsure.
const FEW_SESSIONS: u64 = 30;
/// Fewer requests than this are rounding.
const HALF_A_REQUEST: f64 = 0.5;

/// Requests of a service in the recordings: their arcs.
type ArcsOf<'c> = HashMap<String, Vec<&'c MergedArc>>;

/// The reference tasks with those of the recordings' users replaced by the classes of `usage`.
pub fn of_sessions(
    recorded: Vec<Customers>,
    usage: &UsageModel,
    (summary, merged): (&Summary, &Merged),
    options: &ExtractOptions,
    diagnostics: &mut Diagnostics,
) -> Vec<Customers> {
    let is_visited = |service: &str| usage.services.iter().any(|known| known == service);
    let services = services_of(summary, merged);
    let visits = |arc: &MergedArc| services.get(&arc.target).is_some_and(|names| names.iter().any(|name| is_visited(name)));
    let (users, mut others): (Vec<Customers>, Vec<Customers>) =
        recorded.into_iter().partition(|customers| customers.arcs.iter().any(visits));
    let Some(first) = users.first() else {
        let message = "sessions were found, but what they ask for is no entry of the model: reference tasks are those of the recordings";
        diagnostics.add("sessions_without_entries", message, || usage.services.first().cloned().unwrap_or_default());
        return others;
    };
    note_quality(usage, diagnostics);
    let mut arcs: ArcsOf<'_> = HashMap::new();
    for arc in users.iter().flat_map(|customers| &customers.arcs) {
        for name in services.get(&arc.target).into_iter().flatten() {
            arcs.entry(name.clone()).or_default().push(arc);
        }
    }
    let asked = options.customers.as_ref().and_then(Number::literal);
    let lqn = LqnOptions { workload: UsageWorkload::Closed { customers: asked }, ..LqnOptions::default() };
    let Ok(population) = usage.customers(asked, &lqn) else { return others };
    let several = usage.classes.len() > 1;
    let active = usage.active_shares();
    let class = |(at, (class, population)): (usize, (&BehaviourClass, crate::structure::usage::ClassCustomers))| {
        let n_active = asked.unwrap_or(usage.mean_active) * active.get(at).copied().unwrap_or(1.0);
        let whole = (population.n as f64, asked.is_some());
        let workload = pace(usage, class, (population.think_s, n_active), whole, diagnostics);
        Customers {
            task: first.task,
            class: Some(if several { class.behaviour.name.clone() } else { String::new() }),
            n_occurrences: rounded(class.n_sessions * class.mean_length),
            first: first.first,
            n_units: rounded(usage.peak_active.ceil().max(1.0)),
            arcs: mix(usage, class, &arcs),
            self_time_ticks: Some(0.0),
            workload: Some(workload),
            seen: None,
            open_at_once: None,
        }
    };
    let mut all: Vec<Customers> = usage.classes.iter().zip(population).enumerate().map(class).collect();
    all.extend(background(usage, &users, &services, summary, diagnostics));
    all.append(&mut others);
    all
}

/// Requests in no session: of each entry those recorded beyond what its services are asked for in sessions. `None` where there are none.
fn background(
    usage: &UsageModel,
    users: &[Customers],
    services: &HashMap<usize, Vec<String>>,
    summary: &Summary,
    diagnostics: &mut Diagnostics,
) -> Option<Customers> {
    let first = users.first()?;
    let mut recorded: IndexMap<usize, f64> = IndexMap::new();
    for customers in users {
        let n_cycles = if customers.task.is_some() { customers.n_occurrences } else { summary.n_traces.iter().sum() };
        for arc in &customers.arcs {
            *recorded.entry(arc.target).or_insert(0.0) += arc.mean * n_cycles as f64;
        }
    }
    let mut of_service: HashMap<&str, f64> = HashMap::new();
    for (target, n) in &recorded {
        for name in services.get(target).into_iter().flatten() {
            *of_service.entry(name).or_insert(0.0) += n;
        }
    }
    let in_sessions = |service: usize| usage.classes.iter().map(|class| class.n_sessions * class.visits[service]).sum::<f64>();
    let asked: HashMap<&str, f64> = usage.services.iter().enumerate().map(|(i, name)| (name.as_str(), in_sessions(i))).collect();
    let outside = |target: usize, n: f64| {
        let inside = |name: &String| asked.get(name.as_str()).map_or(0.0, |asked| asked * n / of_service[name.as_str()]);
        n - services.get(&target).into_iter().flatten().map(inside).sum::<f64>()
    };
    let left = recorded.iter().map(|(target, n)| (*target, outside(*target, *n))).filter(|(_, n)| *n > HALF_A_REQUEST);
    let left: Vec<(usize, f64)> = left.collect();
    let n_left: f64 = left.iter().map(|(_, n)| n).sum();
    if n_left == 0.0 {
        return None;
    }
    let share = 100.0 * n_left / recorded.values().sum::<f64>();
    if usage.span_s <= 0.0 {
        let message = "requests are in no session, and how many come a second is not known: they are not in the model";
        diagnostics.add("requests_outside_sessions", message, || format!("{share:.2} % of the requests"));
        return None;
    }
    let rate = n_left / usage.span_s;
    let message = "requests are in no session: they arrive from outside, at the rate seen, whatever the number of users";
    diagnostics.add("requests_outside_sessions", message, || format!("{share:.2} % of the requests, {rate:.6} a second"));
    let arc = |(target, n): (usize, f64)| MergedArc { kind: ArcKind::Sync, phase: 1, target, mean: n / n_left, counts: Vec::new() };
    Some(Customers {
        task: first.task,
        class: Some("no session".to_owned()),
        n_occurrences: rounded(n_left),
        first: first.first,
        n_units: 1,
        arcs: left.into_iter().map(arc).collect(),
        self_time_ticks: None,
        workload: Some(Workload::Open { rate }),
        seen: None,
        open_at_once: None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn rounded(n: f64) -> u64 {
    n.round() as u64
}

/// The services that each entry is of, as observations name them: `PROCESS.OPERATION`.
fn services_of(summary: &Summary, merged: &Merged) -> HashMap<usize, Vec<String>> {
    let mut processes: HashMap<u32, Vec<u32>> = HashMap::new();
    for (process, task) in summary.units.process_of.iter().zip(&summary.tasks.of_unit) {
        let known = processes.entry(*task).or_default();
        if !known.contains(process) {
            known.push(*process);
        }
    }
    let names = |task: u32, operation: u32| {
        let operation = summary.operations.name(operation);
        let of_task = processes.get(&task).into_iter().flatten();
        of_task.map(|process| format!("{}.{operation}", summary.units.processes.name(*process))).collect::<Vec<String>>()
    };
    let named = merged.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, names(entry.task, entry.operation?))));
    named.collect()
}

/// Requests of one cycle of a class.
fn mix(usage: &UsageModel, class: &BehaviourClass, arcs: &ArcsOf<'_>) -> Vec<MergedArc> {
    let found = || usage.services.iter().zip(&class.visits).filter_map(|(service, visits)| Some((arcs.get(service)?, *visits)));
    let all: f64 = found().map(|(_, visits)| visits).sum();
    let mut means: IndexMap<(ArcKind, u8, usize), f64> = IndexMap::new();
    for (of_service, visits) in found().filter(|(_, visits)| *visits > 0.0) {
        let whole: f64 = of_service.iter().map(|arc| arc.mean).sum();
        for arc in of_service.iter().filter(|_| whole > 0.0) {
            *means.entry((arc.kind, arc.phase, arc.target)).or_insert(0.0) += visits / all * arc.mean / whole;
        }
    }
    let arc = |((kind, phase, target), mean)| MergedArc { kind, phase, target, mean, counts: Vec::new() };
    let mut arcs: Vec<MergedArc> = means.into_iter().map(arc).collect();
    arcs.sort_by_key(|arc| (arc.kind, arc.phase, arc.target));
    arcs
}

/// Customers and their think time, seconds, with which they make the requests that `n_active` sessions do: of whole customers, each thinks for longer or
/// shorter than a user; where customers are not `asked` for, there are enough to make them at all.
fn pace(
    usage: &UsageModel,
    class: &BehaviourClass,
    (think_s, n_active): (f64, f64),
    (n, asked): (f64, bool),
    diagnostics: &mut Diagnostics,
) -> Workload {
    let response_s = usage.mean_response_s(class);
    let rate = n_active / (response_s + think_s) * usage.stands_for.unwrap_or(1.0);
    if !(rate > 0.0 && rate.is_finite()) {
        return Workload::Closed { customers: n, think_time: think_s };
    }
    let paced = Workload::at_rate(if asked { n } else { Workload::enough(n, rate, response_s) }, rate, response_s);
    if let Workload::Closed { think_time, .. } = paced
        && n_active < 1.0
    {
        let message = "less than one session is active in the mean: one customer has a think time that keeps the rate of requests";
        let example = || format!("{}: {n_active:.4} active, think time {think_time:.4} s", class.behaviour.name);
        diagnostics.add("less_than_one_active", message, example);
    }
    paced
}

fn note_quality(usage: &UsageModel, diagnostics: &mut Diagnostics) {
    if usage.n_sessions < FEW_SESSIONS {
        let message = "there are few sessions: mix, think times and numbers of customers are unsure";
        diagnostics.add("few_sessions", message, || format!("{} sessions with {} requests", usage.n_sessions, usage.n_requests));
    }
    for class in usage.classes.iter().filter(|class| class.think.is_none()) {
        let message = "all sessions have one request: nothing is known of think times";
        diagnostics.add("no_think_times", message, || class.behaviour.name.clone());
    }
}
