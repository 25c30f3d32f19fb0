//! Elapsed times from the bottom up, flows from the top down (steps 1 and 2 of the sweep).
//!
//! ```text
//! A_i = D_i/n_i + W_host                    one slice                 n_i = 1 + Y_i
//! B_j = W_ij + S_j1 + Σ_legs p (W + S_1)    one blocking call, forwarded legs included
//! S_i = Z_i + n_i A_i + Σ_j y_ij B_j        elapsed time of a node
//! V_i = Z_i² + n_i Var A + Y Var B + Y (Y+1) (A + B̄)²                  (geometric number of calls)
//! X_c = N_c / (Z_c + Σ share S),   λ_j = Σ_i λ_i y_ij
//! ```
//!
//! The last term of `V` is absent for deterministic calls. The variance of a wait that happens with probability `p` and is
//! then exponential is `2 W²/p - W²`.

use super::compile::{Net, Node};
use crate::model::Scalar;

/// Times and rates of nodes, entries and tasks for given waits.
#[derive(Clone, Debug)]
pub(super) struct Flow<S> {
    /// Elapsed time `S_i` of a node.
    pub elapsed: Vec<S>,
    /// Its variance `V_i`.
    pub variance: Vec<S>,
    /// Invocations of an entry a unit of time.
    pub entry_rate: Vec<S>,
    /// Requests over an arc a unit of time.
    pub arc_rate: Vec<S>,
    /// Cycles of a class a unit of time.
    pub class_rate: Vec<S>,
}

/// What an arc's requests wait, and with what probability they wait at all.
#[derive(Clone, Debug)]
pub(super) struct Waits<S> {
    pub wait: Vec<S>,
    pub probability: Vec<S>,
}

impl<S: Scalar> Waits<S> {
    pub fn none(n_arcs: usize) -> Self {
        Self { wait: vec![S::from(0.0); n_arcs], probability: vec![S::from(0.0); n_arcs] }
    }

    fn variance(&self, arc: usize) -> S {
        let wait = self.wait[arc];
        if wait <= 0.0 {
            return S::from(0.0);
        }
        let p = self.probability[arc];
        let p = if p < LEAST_WAIT_PROBABILITY {
            S::from(LEAST_WAIT_PROBABILITY)
        } else if p > 1.0 {
            S::from(1.0)
        } else {
            p
        };
        wait * wait * (p.recip() * 2.0 - 1.0)
    }
}

/// A wait that happens less often than this adds nothing that matters to a variance.
const LEAST_WAIT_PROBABILITY: f64 = 1e-3;

/// Computes the flow at `population` customers in each class.
pub(super) fn flow<S: Scalar>(net: &Net<S>, waits: &Waits<S>, population: &[f64]) -> Flow<S> {
    let zero = S::from(0.0);
    let mut flow = Flow {
        elapsed: vec![zero; net.nodes.len()],
        variance: vec![zero; net.nodes.len()],
        entry_rate: vec![zero; net.entries.len()],
        arc_rate: vec![zero; net.arcs.len()],
        class_rate: vec![zero; net.classes.len()],
    };
    for &task in net.order.iter().rev() {
        for &entry in &net.tasks[task].entries {
            for node in net.entries[entry].phases.into_iter().flatten() {
                let (elapsed, variance) = node_times(net, waits, &flow, node);
                flow.elapsed[node] = elapsed;
                flow.variance[node] = variance;
            }
        }
    }
    for entry in 0..net.entries.len() {
        if let Some(rate) = net.entries[entry].open_rate {
            flow.entry_rate[entry] += rate;
        }
    }
    for &task in &net.order {
        if let Some(class) = net.tasks[task].class {
            class_flow(net, &mut flow, task, class, population[class]);
        }
        for &entry in &net.tasks[task].entries {
            for node in net.entries[entry].phases.into_iter().flatten() {
                send_on(net, &mut flow, node);
            }
        }
    }
    for (a, arc) in net.arcs.iter().enumerate() {
        if arc.source.node().is_none() {
            flow.arc_rate[a] = arc.visits;
        }
    }
    flow
}

fn class_flow<S: Scalar>(net: &Net<S>, flow: &mut Flow<S>, task: usize, class: usize, population: f64) {
    let mut cycle = net.tasks[task].think_time;
    for &entry in &net.tasks[task].entries {
        let time = net.entries[entry].phases.into_iter().flatten().fold(S::from(0.0), |sum, node| sum + flow.elapsed[node]);
        cycle += time * net.entries[entry].visit_share;
    }
    let rate = if population > 0.0 && cycle > 0.0 { cycle.recip() * population } else { S::from(0.0) };
    flow.class_rate[class] = rate;
    for &entry in &net.tasks[task].entries {
        flow.entry_rate[entry] = rate * net.entries[entry].visit_share;
    }
}

fn send_on<S: Scalar>(net: &Net<S>, flow: &mut Flow<S>, node: usize) {
    let rate = flow.entry_rate[net.nodes[node].entry];
    let arcs = net.nodes[node].calls.iter().flat_map(|group| std::iter::once(&group.arc).chain(&group.legs)).chain(&net.nodes[node].sends);
    for &a in arcs {
        let sent = rate * net.arcs[a].visits;
        flow.arc_rate[a] = sent;
        if let Some(target) = net.arcs[a].target {
            flow.entry_rate[target] += sent;
        }
    }
    if let Some(a) = net.nodes[node].host_arc {
        flow.arc_rate[a] = rate * net.arcs[a].visits;
    }
}

/// Elapsed time of phase 1 of the entry that `arc` calls.
pub(super) fn first_phase<S: Scalar>(net: &Net<S>, elapsed: &[S], arc: usize) -> S {
    net.arcs[arc].target.and_then(|e| net.entries[e].phases[0]).map_or(S::from(0.0), |node| elapsed[node])
}

fn node_times<S: Scalar>(net: &Net<S>, waits: &Waits<S>, flow: &Flow<S>, node: usize) -> (S, S) {
    let it: &Node<S> = &net.nodes[node];
    let (mut slice, mut slice_variance) = (S::from(0.0), S::from(0.0));
    if let Some(host) = it.host_arc {
        let own = it.demand / it.slices;
        slice = own + waits.wait[host];
        slice_variance = own * own * it.cvsq + waits.variance(host);
    }
    let mut calls = S::from(0.0);
    let mut second_moment = S::from(0.0);
    for group in &it.calls {
        let (mean, variance) = call_times(net, waits, flow, group.arc, &group.legs);
        let visits = net.arcs[group.arc].visits;
        calls += visits * mean;
        second_moment += visits * (variance + mean * mean);
    }
    let elapsed = it.think_time + it.slices * slice + calls;
    let mut variance = it.think_time * it.think_time + it.slices * slice_variance;
    if it.n_sync > 0.0 {
        let mean = calls / it.n_sync;
        let call_variance = second_moment / it.n_sync - mean * mean;
        variance += it.n_sync * call_variance;
        if !it.deterministic {
            let step = slice + mean;
            variance += it.n_sync * (it.n_sync + 1.0) * step * step;
        }
    }
    (elapsed, variance)
}

/// Mean and variance of one blocking call over `arc`, with the forwarded `legs` that follow it.
fn call_times<S: Scalar>(net: &Net<S>, waits: &Waits<S>, flow: &Flow<S>, arc: usize, legs: &[usize]) -> (S, S) {
    let one = |a: usize| {
        let served = net.arcs[a].target.and_then(|e| net.entries[e].phases[0]);
        let mean = waits.wait[a] + first_phase(net, &flow.elapsed, a);
        (mean, waits.variance(a) + served.map_or(S::from(0.0), |n| flow.variance[n]))
    };
    let (mut mean, mut variance) = one(arc);
    for &leg in legs {
        let p = net.arcs[leg].leg_probability;
        let (m, v) = one(leg);
        mean += p * m;
        variance += p * (v + m * m) - p * m * p * m;
    }
    (mean, variance)
}
