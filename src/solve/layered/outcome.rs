//! From the solved fixed point to results.

use super::{
    super::{
        ResultCallKind, SolveError,
        results::{CallValues, EntryValues, Results},
    },
    Record, Stage,
    net::{Net, Node, Part, Source, Work},
};
use super::{
    activities::{activity_values, join_values},
    flow::Flow,
};
use crate::model::Scalar;

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

/// Mean busy servers of a station.
pub(super) fn station_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>, station: usize) -> f64 {
    net.stations[station].arcs.iter().map(|&a| arc_load(net, flow, a)).sum()
}

fn arc_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> f64 {
    flow.arc_rate[arc].value() * held_by(net, flow, arc)
}

/// Time that a server is held for a request over an arc.
pub(super) fn held_by<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> f64 {
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
