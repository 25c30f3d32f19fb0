//! Who meets at a processor as a thread there replies and takes up the next request.
//!
//! Caller and thread go on at the same moment: the caller, whose next slice is at the same processor, and the thread with the first slice of a request that has waited for it. Which
//! of them goes first a coin decides, and the other waits for a whole slice. Of `n` slices of the caller `y_k` follow a call `k`, and of those of the entry one is the first. Requests
//! `j` to the task are taken up `Λ_jk` times a unit of time after the reply to `k`:
//!
//! ```text
//! W_caller += Σ_k y_k/n · Σ_j Λ_jk/λ_k s_j/2          W_e += 1/n · Σ_j Σ_k Λ_jk/λ_e t_k/2
//! Λ_jk = λ_j w_j λ_k f_jk / Σ_i λ_i f_ji              w = W / (W + s/m)
//! ```
//!
//! None where the thread goes on after its reply or may forward the request, at several cores, where processors are shared, and of callers of one thread: of these, models come out
//! nearer without (those of several are there in the mean, too, as others; what is met of them is not less for it).
//!
//! | symbol | is |
//! |---|---|
//! | `s_j`, `t_k` | first slices of the requests of a call, and slices of its caller where that is at the processor |
//! | `f_jk` | `1 - 1/K` where both are calls of one task of `K` strands, otherwise 1 |

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
    /// As the first ones of an entry.
    begins: Option<Begins>,
}

/// The requests to an entry at a processor.
#[derive(Clone, Debug)]
struct Begins {
    /// The queue of its task.
    queue: usize,
    /// The calls that wait for the entry.
    calls: Vec<usize>,
    /// The calls to the task from callers at the processor.
    callers: Vec<usize>,
}

/// Who meets at a station, by row; nobody but at processors of one server in order of arrival.
pub(super) fn find_met<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Vec<Met> {
    let it = &net.stations[station];
    if station >= net.n_processors || it.servers != 1.0 || it.discipline != Discipline::Fcfs {
        return Vec::new();
    }
    let is_here = |node: usize| layout.groups.contains(&node);
    let is_of_several = |node: usize| net.tasks[net.nodes[node].task].cap * net.tasks[net.nodes[node].task].width > 1.0;
    let forwards: Vec<usize> = net.arcs.iter().filter_map(|arc| arc.via).collect();
    let queue_of = |entry: usize| {
        let task = &net.tasks[net.entries[entry].task];
        let goes_on = task.entries.iter().any(|&entry| net.goes_on_after_reply(entry) || forwards.contains(&entry));
        let first = |&entry: &usize| net.phases(entry)[0].is_some_and(is_here);
        task.station.filter(|_| !goes_on && task.threads.is_finite() && task.entries.iter().all(first))
    };
    let of_row = |group: Option<usize>| {
        let Some(place) = group.map(|group| layout.groups[group]) else { return Met::default() };
        let node = &net.nodes[place];
        let back = node.calls.iter().filter(|call| call.legs.is_empty() && is_of_several(place)).map(|call| call.arc);
        let returns = back.filter_map(|call| Some((call, queue_of(net.arcs[call].target?)?))).collect();
        let begins = Some(node.entry).filter(|_| node.phase == 0 && net.tasks[node.task].class.is_none());
        let begins = begins.and_then(|entry| {
            let queue = queue_of(entry)?;
            let is_met = |&call: &usize| net.arcs[call].source.held().is_some_and(|node| is_here(node) && is_of_several(node));
            let callers: Vec<usize> = net.stations[queue].arcs.iter().copied().filter(is_met).collect();
            (!callers.is_empty()).then(|| Begins { queue, calls: calls[entry].clone(), callers })
        });
        Met { returns, begins }
    };
    layout.rows.iter().map(|row| of_row(row.group)).collect()
}

impl<S: Scalar> At<'_, S> {
    /// Adds what the slices of all rows wait for whom they meet.
    pub(super) fn add_met(&self, scratch: &mut Scratch<S>) {
        for (r, met) in self.layout.met.iter().enumerate() {
            let Some(node) = self.layout.rows[r].group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]]) else { continue };
            let mut slices = S::from(0.0);
            for &(call, queue) in &met.returns {
                slices += self.sweep.net.arcs[call].visits * self.found_as_it_returns(call, queue);
            }
            if let Some(begins) = &met.begins {
                slices += self.found_as_it_begins(begins);
            }
            scratch.own[r] += slices / node.slices * COIN;
        }
    }

    /// The slice of what is taken up as a call returns: `Σ_j Λ_jk/λ_k s_j`.
    fn found_as_it_returns(&self, call: usize, queue: usize) -> S {
        let net = self.sweep.net;
        let all = self.requests(queue);
        net.stations[queue].arcs.iter().fold(S::from(0.0), |sum, &other| {
            let first = net.arcs[other].target.and_then(|entry| net.phases(entry)[0]);
            let slice = first.map_or(S::from(0.0), |node| slice(&net.nodes[node]));
            sum + self.taken_up(other, all) * self.are_apart(other, call) * slice
        })
    }

    /// The slices of those to whom the thread has just replied that takes up an entry's request: `Σ_j Σ_k Λ_jk/λ_e t_k`.
    fn found_as_it_begins(&self, Begins { queue, calls, callers }: &Begins) -> S {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let all = self.requests(*queue);
        let (mut slices, mut received) = (zero, zero);
        for &call in calls {
            received += self.sweep.flow.arc_rate[call];
            let taken_up = self.taken_up(call, all);
            for &other in callers {
                let caller = net.arcs[other].source.held().map_or(zero, |node| slice(&net.nodes[node]));
                slices += taken_up * self.sweep.flow.arc_rate[other] * self.are_apart(call, other) * caller;
            }
        }
        if received > 0.0 { slices / received } else { zero }
    }

    /// All requests to a task that are waited for, a unit of time.
    fn requests(&self, queue: usize) -> S {
        self.sweep.net.stations[queue].arcs.iter().fold(S::from(0.0), |sum, &call| sum + self.sweep.flow.arc_rate[call])
    }

    /// `λ_j w_j / Σ_i λ_i f_ji`, of `all` requests to the task.
    fn taken_up(&self, call: usize, all: S) -> S {
        let (wait, (_, served)) = (self.sweep.unknowns[call], self.sweep.service(call));
        let each = served / self.sweep.net.stations[self.sweep.net.arcs[call].station].servers;
        let rate = self.sweep.flow.arc_rate[call];
        let others = all - rate / self.strands_of(call);
        if wait > 0.0 && others > 0.0 { rate * wait / (wait + each) / others } else { S::from(0.0) }
    }

    /// `f`.
    fn are_apart(&self, call: usize, other: usize) -> f64 {
        if self.are_of_one_task(call, other) { (1.0 - self.strands_of(call).recip()).max(0.0) } else { 1.0 }
    }

    fn are_of_one_task(&self, call: usize, other: usize) -> bool {
        let task = |call: usize| self.sweep.net.arcs[call].source.held().map(|node| self.sweep.net.nodes[node].task);
        task(call).is_some() && task(call) == task(other)
    }

    /// Strands of the task that calls, infinite where none does.
    fn strands_of(&self, call: usize) -> f64 {
        let net = self.sweep.net;
        net.arcs[call].source.held().map_or(f64::INFINITY, |node| self.sweep.populations.strands(net, net.nodes[node].task))
    }
}

/// A mean slice of a node.
fn slice<S: Scalar>(node: &Node<S>) -> S {
    node.demand / node.slices
}
