//! From the solved fixed point to results, and the check that open arrivals can be served at all.

use super::flow::Flow;
use super::{
    super::{
        ResultCallKind, SolveError,
        results::{CallValues, EntryValues, Results},
    },
    Record, Stage,
    net::{Net, Source, Work},
};
use crate::model::Scalar;

/// Load at which an open queue counts as saturated, as a share of its servers.
const SATURATION: f64 = 1.0 - 1e-9;

/// Refuses a model whose open or asynchronous requests exceed what a task or processor can serve.
pub(super) fn check_open_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Result<(), SolveError> {
    for (s, station) in net.stations.iter().enumerate() {
        let unlimited = station.arcs.iter().any(|&a| net.arcs[a].source.held().is_none());
        let driven = unlimited || s < net.n_processors && driven_from_outside(net, s);
        if station.servers.is_infinite() || !driven {
            continue;
        }
        let load = station_load(net, flow, s);
        if load >= station.servers * SATURATION {
            let kind = if s < net.n_processors { "processor" } else { "task" };
            let resource = format!("{kind} \"{}\"", station.name);
            return Err(SolveError::Saturated { resource, utilization: load, capacity: station.servers });
        }
    }
    Ok(())
}

/// Whether a processor runs work that no waiting customer bounds.
fn driven_from_outside<S: Scalar>(net: &Net<S>, station: usize) -> bool {
    net.stations[station].arcs.iter().any(|&a| {
        let task = net.arcs[a].source.node().map(|n| net.nodes[n].task);
        task.and_then(|t| net.tasks[t].station).is_some_and(|s| net.stations[s].arcs.iter().any(|&b| net.arcs[b].source == Source::Open))
    })
}

/// Mean busy servers of a station.
pub(super) fn station_load<S: Scalar>(net: &Net<S>, flow: &Flow<S>, station: usize) -> f64 {
    net.stations[station].arcs.iter().fold(0.0, |sum, &a| {
        let rate = flow.arc_rate[a].value();
        let held: f64 = match (net.arcs[a].target, net.arcs[a].source.node()) {
            (Some(entry), _) => flow.held(entry).value(),
            (None, Some(node)) => (net.nodes[node].demand / net.nodes[node].slices).value(),
            (None, None) => 0.0,
        };
        sum + rate * held
    })
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
    }
}

fn call_values<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<CallValues<S>> {
    let mut calls: Vec<CallValues<S>> = Vec::new();
    for (a, arc) in net.arcs.iter().enumerate() {
        let (Some(to), Some(node)) = (arc.target, arc.source.node()) else { continue };
        let (wait, rate) = (stage.unknowns[a], stage.flow.arc_rate[a]);
        let Some(via) = arc.via else {
            let kind = if arc.source.held().is_some() { ResultCallKind::Sync } else { ResultCallKind::Async };
            let (from, phase) = (net.nodes[node].entry, net.nodes[node].phase);
            calls.push(CallValues { from, to, phase, kind, mean: arc.visits * net.nodes[node].weight, waiting: wait, rate });
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
                calls.push(CallValues { from: via, to, phase: 0, kind: ResultCallKind::Forward, mean: S::from(0.0), waiting: wait, rate })
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
