//! Who meets at a processor as a thread there replies and takes up the next request.
//!
//! Caller and thread go on at the same moment: the caller, whose next slice is at the same processor, and the thread with the first slice of a request that has waited for it. Which
//! of them goes first a coin decides, and the other waits for a whole slice; where the processor is shared each is slowed until the shorter is done. Of `n` slices of the caller `y_c`
//! follow a call `c`, and of those of the entry one is the first; with chance `w` that a request has waited,
//!
//! ```text
//! W_caller += Σ_c y_c/n · Σ_k λ_k w_k d(s_caller, s_k) / Σ_k λ_k          W_e += w_e/n · Σ_k λ_k d(s_e, t_k) / Σ_k λ_k           w = W / (W + s/m)
//! d(s, t) = t/2, of shared processors s t / (s + t)
//! ```
//!
//! over the calls `k` to the task, with `s_k` the first slices there and `t_k` those of the callers, of callers at the processor. None where the thread goes on after its reply, and at
//! several cores.

use super::{
    super::net::{Discipline, Net, Node},
    At, COIN, Scratch,
    layout::Layout,
};
use crate::model::Scalar;

/// Of a row, whom its slices meet.
#[derive(Clone, Debug, Default)]
pub(super) struct Met {
    /// As those of callers: the calls and their tasks' queues.
    returns: Vec<(usize, usize)>,
    /// As the first ones of an entry, the queue of its task and the calls that wait for it.
    begins: Option<(usize, Vec<usize>)>,
}

/// Who meets at a station, by row; nobody but at processors of one server, shared or in order of arrival.
pub(super) fn find_met<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Vec<Met> {
    let it = &net.stations[station];
    if station >= net.n_processors || it.servers != 1.0 || !matches!(it.discipline, Discipline::Fcfs | Discipline::Sharing) {
        return Vec::new();
    }
    let is_here = |node: usize| layout.groups.contains(&node);
    let queue_of = |entry: usize| {
        let task = &net.tasks[net.entries[entry].task];
        let goes_on = task.entries.iter().any(|&entry| net.goes_on_after_reply(entry));
        let first = |&entry: &usize| net.phases(entry)[0].is_some_and(is_here);
        task.station.filter(|_| !goes_on && task.threads.is_finite() && task.entries.iter().all(first))
    };
    let of_row = |group: Option<usize>| {
        let Some(node) = group.map(|group| &net.nodes[layout.groups[group]]) else { return Met::default() };
        let back = node.calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc);
        let returns = back.filter_map(|call| Some((call, queue_of(net.arcs[call].target?)?))).collect();
        let begins = Some(node.entry).filter(|_| node.phase == 0 && net.tasks[node.task].class.is_none());
        let begins = begins.and_then(|entry| Some((queue_of(entry)?, calls[entry].clone())));
        Met { returns, begins }
    };
    layout.rows.iter().map(|row| of_row(row.group)).collect()
}

impl<S: Scalar> At<'_, S> {
    /// Adds what the slices of all rows wait for whom they meet.
    pub(super) fn add_met(&self, scratch: &mut Scratch<S>) {
        let net = self.sweep.net;
        for (r, met) in self.layout.met.iter().enumerate() {
            let Some(node) = self.layout.rows[r].group.map(|group| &net.nodes[self.layout.groups[group]]) else { continue };
            let own = slice(node);
            let mut wait = S::from(0.0);
            for &(call, queue) in &met.returns {
                wait += net.arcs[call].visits
                    * self.mean_of_calls(&net.stations[queue].arcs, |call| {
                        let first = net.arcs[call].target.and_then(|entry| net.phases(entry)[0]);
                        first.map_or(S::from(0.0), |node| self.chance_to_wait(call) * self.delay(own, slice(&net.nodes[node])))
                    });
            }
            if let Some((queue, calls)) = &met.begins {
                wait += self.mean_of_calls(calls, |call| self.chance_to_wait(call))
                    * self.mean_of_calls(&net.stations[*queue].arcs, |call| {
                        let caller = net.arcs[call].source.held().map(|node| &net.nodes[node]);
                        let here = caller.filter(|node| node.host_arc.is_some_and(|host| net.arcs[host].station == self.station));
                        here.map_or(S::from(0.0), |caller| self.delay(own, slice(caller)))
                    });
            }
            scratch.own[r] += wait / node.slices;
        }
    }

    /// `d`.
    fn delay(&self, own: S, other: S) -> S {
        match self.is_shared() {
            false => other * COIN,
            true if own > 0.0 && other > 0.0 => own * other / (own + other),
            true => S::from(0.0),
        }
    }

    /// The mean over calls, by how often they are made; 0 of none.
    fn mean_of_calls(&self, calls: &[usize], of: impl Fn(usize) -> S) -> S {
        let zero = S::from(0.0);
        let (sum, all) = calls.iter().fold((zero, zero), |(sum, all), &call| {
            let rate = self.sweep.flow.arc_rate[call];
            (sum + rate * of(call), all + rate)
        });
        if all > 0.0 { sum / all } else { zero }
    }

    /// `w` of the requests of a call.
    fn chance_to_wait(&self, call: usize) -> S {
        let (wait, (_, served)) = (self.sweep.unknowns[call], self.sweep.service(call));
        let each = served / self.sweep.net.stations[self.sweep.net.arcs[call].station].servers;
        if wait > 0.0 { wait / (wait + each) } else { S::from(0.0) }
    }
}

/// A mean slice of a node.
fn slice<S: Scalar>(node: &Node<S>) -> S {
    node.demand / node.slices
}
