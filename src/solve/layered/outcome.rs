//! From the solved fixed point to results, and the check that open arrivals can be served at all.

use super::{
    super::{
        ResultCallKind, SolveError,
        results::{CallValues, EntryValues, Results},
    },
    Record, Stage,
    net::{Net, Node, Part, Source, Station, Work},
};
use super::{
    activities::{activity_values, join_values},
    flow::Flow,
};
use crate::model::Scalar;

/// Load at which an open queue counts as saturated, as a share of its servers.
const SATURATION: f64 = 1.0 - 1e-9;

/// Share of its servers from which the load of an open queue, where it rests on estimated waits, is remarked: one of .97 is known that in truth would be
/// 1.1.
const NEAR_SATURATION: f64 = 0.95;

/// Share of such a load that is waits, from which it rests on them.
const RESTS_ON_WAITS: f64 = 0.05;

/// Refuses a model whose open or asynchronous requests, or others that nobody waits for, exceed what a task or processor can serve. Returns remarks on
/// those that are near that by waits which are estimated.
pub(super) fn check_open_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Result<Vec<String>, SolveError> {
    let mut remarks = Vec::new();
    let outside = outside_shares(net, flow);
    let load_of = |station: &Station, of_arc: &dyn Fn(usize) -> f64| {
        let share = |a: usize| waited_for(net, a).map_or(1.0, |node| outside[net.nodes[node].entry]);
        station.arcs.iter().map(|&a| share(a) * of_arc(a)).sum::<f64>()
    };
    for (s, station) in net.stations.iter().enumerate() {
        if station.servers.is_infinite() {
            continue;
        }
        let load = load_of(station, &|a| arc_load(net, flow, a));
        if load < station.servers * NEAR_SATURATION {
            continue;
        }
        let kind = if s < net.n_processors { "processor" } else { "task" };
        let resource = format!("{kind} \"{}\"", station.name);
        let without = flow.without_waits(net);
        let at_least = load_of(station, &|a| flow.arc_rate[a].value() * held_by(net, &without, a));
        if load >= station.servers * SATURATION {
            return Err(SolveError::Saturated { resource, utilization: load, capacity: station.servers, at_least });
        }
        if at_least < (1.0 - RESTS_ON_WAITS) * load {
            remarks.push(format!(
                "{resource} is {:.0} % busy with requests from outside, of which {:.0} % are waits that are estimated: whether it keeps up, a simulation tells",
                100.0 * load / station.servers,
                100.0 * (load - at_least) / station.servers
            ));
        }
    }
    Ok(remarks)
}

/// Refuses customers whose cycle takes no time in any first phase or wait: what bounds their rate is not in the equations.
pub(super) fn check_cycles<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Result<(), SolveError> {
    let stands = |(class, _): &(usize, &usize)| flow.class_rate[*class].value() == 0.0;
    match net.classes.iter().enumerate().find(stands) {
        None => Ok(()),
        Some((_, &task)) => {
            let element = format!("task \"{}\"", net.tasks[task].name);
            Err(SolveError::Unsupported { solver: "layered", construct: "customers whose cycle takes no time", element })
        }
    }
}

/// The node whose thread an arc holds, where threads are limited: second phases of an infinite server wait for their calls, and
/// nobody waits for them.
fn waited_for<S>(net: &Net<S>, arc: usize) -> Option<usize> {
    net.arcs[arc].source.held().filter(|&node| net.nodes[node].phase == 0 || net.tasks[net.nodes[node].task].cap.is_finite())
}

/// Share of each entry's invocations for which no customer and no thread of theirs waits: a queue cannot hold these up.
fn outside_shares<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Vec<f64> {
    let mut arriving = vec![0.0; net.entries.len()];
    let mut held: Vec<(usize, usize, usize)> = Vec::new();
    for (a, arc) in net.arcs.iter().enumerate() {
        let Some(target) = arc.target else { continue };
        match waited_for(net, a) {
            Some(node) => held.push((net.tasks[net.nodes[node].task].position, a, target)),
            None => arriving[target] += flow.arc_rate[a].value(),
        }
    }
    // Callers before callees: all that reaches an entry is known before what it sends.
    held.sort_unstable();
    let share = |arriving: &[f64], entry: usize| {
        let rate = flow.entry_rate[entry].value();
        if rate > 0.0 { (arriving[entry] / rate).min(1.0) } else { 0.0 }
    };
    for (_, a, target) in held {
        let from = waited_for(net, a).map_or(0.0, |node| share(&arriving, net.nodes[node].entry));
        arriving[target] += from * flow.arc_rate[a].value();
    }
    (0..net.entries.len()).map(|entry| share(&arriving, entry)).collect()
}

/// Mean busy servers of a station.
pub(super) fn station_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>, station: usize) -> f64 {
    net.stations[station].arcs.iter().map(|&a| arc_load(net, flow, a)).sum()
}

fn arc_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> f64 {
    flow.arc_rate[arc].value() * held_by(net, flow, arc)
}

/// Time that a server is held for a request over an arc.
fn held_by<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> f64 {
    match (net.arcs[arc].target, net.arcs[arc].source.node()) {
        (Some(entry), _) => flow.held(entry).value(),
        (None, Some(node)) => (net.nodes[node].demand / net.nodes[node].slices).value(),
        (None, None) => 0.0,
    }
}

/// The results of the last stage.
pub(super) fn results<S: Scalar>(net: &Net<S>, stage: &Stage<S>, record: &Record) -> Results<S> {
    let zero = S::from(0.0);
    let flow = &stage.flow;
    let mut processor_utilization = vec![zero; net.n_processors];
    let mut task_throughput = vec![zero; net.tasks.len()];
    let mut task_utilization = vec![zero; net.tasks.len()];
    for node in 0..net.nodes.len() {
        let it = &net.nodes[node];
        let rate = flow.entry_rate[it.entry] * it.weight;
        processor_utilization[net.tasks[it.task].processor] += rate * it.demand;
    }
    for (e, entry) in net.entries.iter().enumerate() {
        task_throughput[entry.task] += flow.entry_rate[e];
        task_utilization[entry.task] += flow.entry_rate[e] * flow.held(e);
    }
    let mut diagnostics = Vec::new();
    if !record.converged {
        diagnostics.push(format!(
            "the fixed point was not reached: waits still changed by {:.1e} after {} sweeps",
            record.residual, record.sweeps
        ));
    }
    Results {
        solver: "layered",
        converged: record.converged,
        iterations: record.sweeps,
        residual: record.residual,
        diagnostics,
        processor_utilization,
        task_throughput,
        task_utilization,
        entries: (0..net.entries.len()).map(|e| entry_values(net, stage, e)).collect(),
        calls: call_values(net, stage),
        activities: activity_values(net, stage),
        joins: join_values(net, stage),
        copies: None,
    }
}

fn entry_values<S: Scalar>(net: &Net<S>, stage: &Stage<S>, e: usize) -> EntryValues<S> {
    let entry = &net.entries[e];
    let service_times = stage.flow.phases[e][..entry.n_phases].to_vec();
    let mut host_times = vec![S::from(0.0); entry.n_phases];
    let nodes: Vec<usize> = match &entry.work {
        Work::Phases(phases) => phases.iter().flatten().copied().collect(),
        Work::Graph(graph) => (0..graph.vertices.len()).flat_map(|v| graph.nodes_of(v)).collect(),
    };
    for node in nodes {
        let it = &net.nodes[node];
        let queued = it.host_arc.map_or(S::from(0.0), |a| it.slices * stage.unknowns[a]);
        if let Some(time) = host_times.get_mut(it.phase) {
            *time += it.weight * (it.demand + queued);
        }
    }
    let open = net.arcs.iter().position(|arc| arc.source == Source::Open && arc.target == Some(e));
    EntryValues {
        name: entry.name.clone(),
        throughput: stage.flow.entry_rate[e],
        open_wait_time: open.map(|a| stage.unknowns[a] + service_times[0]),
        service_times,
        host_times,
        is_reached: entry.is_reached,
    }
}

/// The activities of a node that call entry `to`, with the mean number of calls in one execution of each.
fn calling_activities<S: Scalar>(node: &Node<S>, to: usize, kind: ResultCallKind) -> Vec<(String, S)> {
    let of = |part: &Part<S>| {
        let mut calls = part.calls.iter().filter(|(k, target, _)| *target == to && ResultCallKind::from(*k) == kind).peekable();
        calls.peek()?;
        Some((part.activity.clone(), calls.fold(S::from(0.0), |sum, (_, _, mean)| sum + *mean)))
    };
    node.parts.iter().filter_map(of).collect()
}

fn call_values<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<CallValues<S>> {
    let mut calls: Vec<CallValues<S>> = Vec::new();
    for (a, arc) in net.arcs.iter().enumerate() {
        let (Some(to), Some(node)) = (arc.target, arc.source.node()) else { continue };
        let (wait, rate) = (stage.unknowns[a], stage.flow.arc_rate[a]);
        let Some(via) = arc.via else {
            let kind = if arc.source.held().is_some() { ResultCallKind::Sync } else { ResultCallKind::Async };
            let (from, phase) = (net.nodes[node].entry, net.nodes[node].phase);
            let mean = arc.visits * net.nodes[node].weight;
            let activities = calling_activities(&net.nodes[node], to, kind);
            calls.push(CallValues { from, to, phase, kind, fan_out: 1, mean, activities, waiting: wait, rate });
            continue;
        };
        // One entry's forwarding is spread over the arcs of all who call it: the mean over their requests.
        match calls.iter_mut().find(|c| c.kind == ResultCallKind::Forward && c.from == via && c.to == to) {
            Some(call) => {
                let total = call.rate + rate;
                if total > 0.0 {
                    call.waiting = (call.waiting * call.rate + wait * rate) / total;
                }
                call.rate = total;
            }
            None => {
                let (kind, mean) = (ResultCallKind::Forward, S::from(0.0));
                let activities = Vec::new();
                calls.push(CallValues { from: via, to, phase: 0, kind, fan_out: 1, mean, activities, waiting: wait, rate });
            }
        }
    }
    for call in calls.iter_mut().filter(|c| c.kind == ResultCallKind::Forward) {
        let through = stage.flow.entry_rate[call.from];
        if through > 0.0 {
            call.mean = call.rate / through;
        }
    }
    calls
}
