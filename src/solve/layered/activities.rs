//! Results of the activities of a graph, of which several may run as one strand, and of its joins.
//!
//! ```text
//! S_a = Z_a + D_a + n_a W_p + Σ_calls y (W + s + Σ_legs p (W_leg + s_leg))       X_a = Σ_nodes λ_e w_n v_na
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `Z_a`, `D_a` | think time and demand, at the processor's speed |
//! | `n_a` | slices: its own, where it has demand, and one after each call that is waited for |
//! | `W_p`, `W` | waits at the processor and for the called entry, the same for all activities of a strand |
//! | `s` | first phase of the called entry |
//! | `λ_e`, `w_n`, `v_na` | throughput of the entry, executions of the strand in one of the entry, of the activity in one of the strand |
//!
//! The sum over a strand's activities is the strand's time of [`super::flow`].

use super::{
    Stage,
    net::{Net, Node, Part, Work},
};
use crate::{
    model::{CallKind, Scalar},
    solve::results::{ActivityValues, JoinValues},
};

/// Times and throughputs of all activities that are executed, in the order of the nodes.
pub(super) fn activity_values<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<ActivityValues<S>> {
    let zero = S::from(0.0);
    let mut values: Vec<ActivityValues<S>> = Vec::new();
    for node in &net.nodes {
        for part in &node.parts {
            let rate = stage.flow.entry_rate[node.entry] * node.weight * part.visits;
            let time = service_time(net, stage, node, part);
            let place = values.iter().position(|v| v.task == node.task && v.name == part.activity).unwrap_or_else(|| {
                values.push(ActivityValues { task: node.task, name: part.activity.clone(), service_time: zero, throughput: zero });
                values.len() - 1
            });
            let it = &mut values[place];
            let total = it.throughput + rate;
            // Of an activity in two strands, the mean over its executions.
            it.service_time = if total > 0.0 { (it.service_time * it.throughput + time * rate) / total } else { time };
            it.throughput = total;
        }
    }
    values
}

/// Delays of all joins, in the order of the entries.
pub(super) fn join_values<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<JoinValues<S>> {
    let mut values = Vec::new();
    for (e, entry) in net.entries.iter().enumerate() {
        let Work::Graph(graph) = &entry.work else { continue };
        for (activities, times, delay) in graph.joins(&|node| stage.flow.strands[node]) {
            values.push(JoinValues {
                task: entry.task,
                activities: activities.to_vec(),
                delay: delay.mean,
                variance: delay.variance,
                throughput: stage.flow.entry_rate[e] * times,
            });
        }
    }
    values
}

fn service_time<S: Scalar>(net: &Net<S>, stage: &Stage<S>, node: &Node<S>, part: &Part<S>) -> S {
    let mut time = part.think_time + part.demand;
    let mut slices = S::from(if part.uses_processor { 1.0 } else { 0.0 });
    for (kind, target, mean) in &part.calls {
        let group = node.calls.iter().find(|g| *kind == CallKind::Sync && net.arcs[g.arc].target == Some(*target));
        let Some(group) = group else { continue };
        slices += *mean;
        let one = |a: usize| stage.unknowns[a] + stage.flow.first_phase(net, a);
        let legs = group.legs.iter().fold(one(group.arc), |sum, &leg| sum + net.arcs[leg].leg_probability * one(leg));
        time += *mean * legs;
    }
    node.host_arc.map_or(time, |host| time + slices * stage.unknowns[host])
}
