//! What must hold in every solution, whatever the approximation: checked on each, and said where it does not.
//!
//! ```text
//! flow:         λ_j = Σ_i λ_i y_ij (+ open arrivals)              every entry
//! Little:       N_c = X_c (Z_c + S_c)                              every class
//! capacity:     Σ_j λ_j S_j ≤ m                                    every task;  Σ_i λ_i D_i ≤ m  every processor
//! work:         E min(n, m) ≥ E n · min(m/C, 1), n ≤ C             every station, of requests of no more than C threads or customers
//! no rest:      Σ E busy servers + Σ E delays ≥ E n_c / N_c         every class, n_c of its customers not thinking
//! ```
//!
//! Work is said where the busy servers are fewer than half of that, rest where they are fewer than [`MOST_REST`] allows: approximations near
//! saturation miss these by some per cent.

use super::{
    Stage,
    net::{Discipline, Net, Node, Source},
    outcome::station_load,
    presence,
};
use crate::{model::Scalar, solve::results::Results};

/// Relative violation that is said, of a solution to a tolerance that is no wider.
const TOLERANCE: f64 = 1e-6;
/// Share of the busy servers that work asks for, below which it is said.
const FAR_BELOW: f64 = 0.5;
/// Share of the time in which nothing goes on, though something does, above which it is said.
const MOST_REST: f64 = 0.08;

/// Adds a diagnostic for every law that `results`, found to a relative `tolerance`, break, and takes back their convergence.
pub(super) fn check<S: Scalar>(net: &Net<S>, stage: &Stage<S>, tolerance: f64, results: &mut Results<S>) {
    // A rough solution is as near as the last of its sweeps says.
    let tolerance = if tolerance > TOLERANCE { tolerance.max(results.residual) } else { TOLERANCE };
    if !results.converged {
        return;
    }
    let mut broken = flow_balance(net, stage, tolerance);
    broken.extend(littles_law(net, stage, tolerance));
    broken.extend(capacity(net, results, tolerance));
    broken.extend(work_conservation(net, stage));
    broken.extend(no_rest(net, stage));
    results.converged = broken.is_empty();
    results.diagnostics.extend(broken);
}

fn flow_balance<S: Scalar>(net: &Net<S>, stage: &Stage<S>, tolerance: f64) -> Vec<String> {
    let mut received: Vec<f64> = vec![0.0; net.entries.len()];
    for arc in &net.arcs {
        let Some(target) = arc.target else { continue };
        received[target] += match arc.source {
            Source::Open => arc.visits.value(),
            Source::Held(n) | Source::Detached(n) => {
                let node = &net.nodes[n];
                (stage.flow.entry_rate[node.entry] * node.weight * arc.visits).value()
            }
        };
    }
    let mut broken = Vec::new();
    for (e, entry) in net.entries.iter().enumerate().filter(|(_, entry)| net.tasks[entry.task].class.is_none()) {
        let served = stage.flow.entry_rate[e].value();
        if (served - received[e]).abs() > tolerance * served.max(received[e]) {
            broken.push(format!("flow balance is broken: entry \"{}\" serves {served} and receives {}", entry.name, received[e]));
        }
    }
    broken
}

fn littles_law<S: Scalar>(net: &Net<S>, stage: &Stage<S>, tolerance: f64) -> Vec<String> {
    let mut broken = Vec::new();
    for (c, &task) in net.classes.iter().enumerate() {
        let it = &net.tasks[task];
        let busy = stage.flow.busy_threads(net, task).value();
        let customers = stage.flow.class_rate[c].value() * it.think_time.value() + busy;
        if customers > 0.0 && (customers - it.threads).abs() > tolerance * it.threads {
            broken
                .push(format!("Little's law is broken: task \"{}\" has {} customers, of whom {customers} are found", it.name, it.threads));
        }
    }
    broken
}

fn capacity<S: Scalar>(net: &Net<S>, results: &Results<S>, tolerance: f64) -> Vec<String> {
    let tasks = net.tasks.iter().zip(&results.task_utilization).map(|(t, u)| ("task", &t.name, t.threads, u.value()));
    let processors = net.stations.iter().zip(&results.processor_utilization).map(|(p, u)| ("processor", &p.name, p.servers, u.value()));
    tasks
        .chain(processors)
        .filter(|(_, _, servers, load)| *load > servers * (1.0 + tolerance))
        .map(|(kind, name, servers, load)| format!("capacity is exceeded: {kind} \"{name}\" has {servers} servers and a load of {load}"))
        .collect()
}

fn work_conservation<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<String> {
    let present = presence(net, stage);
    let mut broken = Vec::new();
    // Where all work is for customers who wait, and none of it beside other work, there are no more requests at once than customers.
    let one_each =
        net.is_closed() && net.tasks.iter().all(|t| t.width <= 1.0) && (0..net.entries.len()).all(|e| !net.goes_on_after_reply(e));
    let customers = if one_each { net.classes.iter().map(|&t| net.tasks[t].threads).sum() } else { f64::INFINITY };
    let most_of = |task: usize| f64::min(net.tasks[task].threads * net.tasks[task].width, customers);
    for (s, it) in net.stations.iter().enumerate() {
        // Groups that are capped leave their processor idle.
        if !it.servers.is_finite() || matches!(it.discipline, Discipline::Delay | Discipline::Groups) {
            continue;
        }
        let bounded = |a: &&usize| net.arcs[**a].source.held().is_some_and(|n| most_of(net.nodes[n].task).is_finite());
        let mut tasks: Vec<usize> =
            it.arcs.iter().filter(bounded).filter_map(|&a| Some(net.nodes[net.arcs[a].source.held()?].task)).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let most = f64::min(tasks.iter().map(|&t| most_of(t)).sum(), customers);
        let number: f64 = it.arcs.iter().filter(bounded).map(|&a| (present.waiting[a] + present.first[a]).value()).sum();
        let busy = station_load(net, &stage.flow, s);
        if busy < FAR_BELOW * number * it.servers / most.max(it.servers) {
            broken.push(format!(
                "work is not conserved: \"{}\" has {number} requests, {most} at most, and only {busy} of {} servers busy; simulate instead",
                it.name, it.servers
            ));
        }
    }
    broken
}

/// A customer that does not think is served or delayed, or waits for one who is: while any is there, something goes on.
fn no_rest<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Option<String> {
    let there = |(c, &task): (usize, &usize)| {
        let thinking = stage.flow.class_rate[c].value() * net.tasks[task].think_time.value();
        (net.tasks[task].threads >= 1.0).then(|| 1.0 - thinking / net.tasks[task].threads)
    };
    let there = net.classes.iter().enumerate().filter_map(there).fold(0.0, f64::max);
    let is_limited = |s: &usize| net.stations[*s].servers.is_finite() && !matches!(net.stations[*s].discipline, Discipline::Delay);
    let busy: f64 = (0..net.n_processors).filter(is_limited).map(|s| station_load(net, &stage.flow, s)).sum();
    let delay = |node: &Node<S>| {
        let is_delayed = node.host_arc.is_none_or(|arc| !is_limited(&net.arcs[arc].station));
        let time = node.think_time.value() + if is_delayed { node.demand.value() } else { 0.0 };
        (stage.flow.entry_rate[node.entry] * node.weight).value() * time
    };
    let active = busy + net.nodes.iter().map(delay).sum::<f64>();
    (active < there * (1.0 - MOST_REST)).then(|| {
        format!(
            "customers that wait or are served for {there:.3} of the time keep servers busy for {active:.3} of it only; simulate instead"
        )
    })
}
