//! How long what is left behind goes on, at whatever station.
//!
//! ```text
//! t_n = Σ_C y_C t_C + Σ_z y_z (W_z + s_z + t_z)        t_e = Σ_n t_n + s_e+ + t_e+        t_e+ = Σ_n+ t_n+
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `t_n`, `t_e` | what a node, and an execution of an entry, leaves behind |
//! | `n+`, `s_e+`, `t_e+` | nodes after the reply, how long they take, and what they leave behind |
//! | `y_C`, `y_z` | calls that are waited for, and requests that are sent and go on for `W_z + s_z` |

use super::super::{
    super::net::{Net, Work},
    Sweep,
};
use crate::model::Scalar;

/// `t` of executions, and `t+` of what they do after their reply, by entry.
#[derive(Debug)]
pub(in super::super::super) struct Behind<S> {
    /// Whether anything goes on that nobody waits for.
    is_any: bool,
    executions: Vec<S>,
    late: Vec<S>,
}

/// Whether anything goes on in a network that nobody waits for.
pub(super) fn is_any<S>(net: &Net<S>) -> bool {
    net.nodes.iter().any(|node| !node.sends.is_empty()) || net.entries.iter().any(|entry| entry.is_followed)
}

impl<S: Scalar> Behind<S> {
    pub fn new(net: &Net<S>) -> Self {
        let nothing = vec![S::from(0.0); net.entries.len()];
        Self { is_any: is_any(net), executions: nothing.clone(), late: nothing }
    }

    pub fn update(&mut self, sweep: &Sweep<'_, S>) {
        if !self.is_any {
            return;
        }
        let Sweep { net, flow, .. } = sweep;
        // What leads back up is not known yet.
        self.executions.fill(S::from(0.0));
        for &entry in net.order.iter().rev().flat_map(|&task| &net.tasks[task].entries) {
            let of = |nodes: &mut dyn Iterator<Item = usize>| nodes.fold(S::from(0.0), |sum, node| sum + self.of_node(sweep, node));
            let (execution, late) = match &net.entries[entry].work {
                Work::Phases(phases) => {
                    let late = of(&mut phases[1..].iter().copied().flatten());
                    let until_reply = of(&mut phases[0].into_iter());
                    let after = if net.entries[entry].is_followed { flow.late(entry) + late } else { S::from(0.0) };
                    (until_reply + after, late)
                }
                Work::Graph(graph) => (of(&mut (0..graph.vertices.len()).filter_map(|v| graph.leaf(v))), S::from(0.0)),
            };
            (self.executions[entry], self.late[entry]) = (execution, late);
        }
    }

    fn of_node(&self, sweep: &Sweep<'_, S>, node: usize) -> S {
        let Sweep { net, flow, unknowns, .. } = sweep;
        let it = &net.nodes[node];
        let of_calls = it.calls.iter().filter_map(|call| {
            let target = net.arcs[call.arc].target?;
            Some(self.executions[target] * net.arcs[call.arc].visits)
        });
        let of_sends = it.sends.iter().filter_map(|&send| {
            let target = net.arcs[send].target?;
            Some((unknowns[send] + flow.phases[target][0] + self.executions[target]) * net.arcs[send].visits)
        });
        of_calls.chain(of_sends).fold(S::from(0.0), |sum, time| sum + time)
    }

    /// What an execution of an entry leaves behind.
    pub(super) fn execution(&self, entry: usize) -> S {
        self.executions[entry]
    }

    /// What it leaves behind of that which it does after its reply.
    pub(super) fn after_reply(&self, entry: usize) -> S {
        self.late[entry]
    }
}
