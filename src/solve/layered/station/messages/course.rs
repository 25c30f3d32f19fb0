//! The course of requests past a station, slice by slice and call by call.

use super::{
    super::{
        super::{
            graph::Start,
            net::{Discipline, Work},
        },
        At,
        layout::Layout,
    },
    HALF, Message, NEGLIGIBLE,
    step::Step,
};
use crate::model::Scalar;

/// Passes in which it is found how many can be in service beside a slice.
const PASSES: usize = 3;

/// What a node does to `o`.
#[derive(Clone, Copy, Debug)]
struct Ways<S> {
    /// A slice.
    slice: Step<S>,
    /// `D` and `B`.
    calls: Step<S>,
    /// `1/n`.
    is_last: S,
}

/// The course of requests past a station, by what they sent to one entry.
pub(super) struct Course<'a, 'b, S> {
    at: &'a At<'b, S>,
    entry: usize,
    /// The place of what is sent.
    x: usize,
    /// `τ`, and the part of it for which a thread has been found.
    stay: S,
    here: S,
    /// By node, as far as it is of one that is passed through.
    ways: Vec<Ways<S>>,
    /// By entry, an execution until the reply.
    steps: Vec<Step<S>>,
    /// By entry, `o` where it begins, times its rate.
    begun: Vec<S>,
    /// By row, the share of those that its slices find that can be in service beside them.
    held: Vec<S>,
}

impl<'a, 'b, S: Scalar> Course<'a, 'b, S> {
    /// Past what is sent over `message`, which takes `stay` and is `here` for so much of it.
    pub fn new(at: &'a At<'b, S>, message: &Message, stay: S, here: S) -> Self {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let net = at.sweep.net;
        Self {
            at,
            entry: message.entry,
            x: message.arc,
            stay,
            here: here / stay,
            ways: vec![Ways { slice: Step::none(), calls: Step::none(), is_last: one }; net.nodes.len()],
            steps: vec![Step::none(); net.entries.len()],
            begun: vec![zero; net.entries.len()],
            held: vec![one; at.layout.rows.len()],
        }
    }
}

impl<S: Scalar> Course<'_, '_, S> {
    /// Sets `o` before slices at the station.
    pub fn follow(mut self, found: &mut [S]) {
        let (x, n) = (self.x, self.at.visits.len());
        if self.at.servers > 1.0 && !self.at.is_shared() {
            let mut tried = vec![S::from(0.0); found.len()];
            for _ in 0..PASSES {
                tried.fill(S::from(0.0));
                self.pass_all(&mut tried);
                for (row, held) in self.held.iter_mut().enumerate() {
                    *held = share_served(tried[row * n + x], S::from(self.at.servers - 1.0));
                }
            }
        }
        self.pass_all(found);
    }

    fn pass_all(&mut self, found: &mut [S]) {
        let net = self.at.sweep.net;
        self.begun.fill(S::from(0.0));
        for &task in net.order.iter().rev() {
            for &entry in &net.tasks[task].entries {
                self.steps[entry] = self.step_of(entry);
            }
        }
        for &task in &net.order {
            let it = &net.tasks[task];
            for &entry in &it.entries {
                let rate = self.at.sweep.flow.entry_rate[entry];
                let begins = match it.class {
                    Some(_) => self.of_last_cycle(self.steps[entry], it.think_time),
                    None if rate > 0.0 => {
                        let taken_up = self.at.sweep.taken_up_at_once(task);
                        let execution = self.steps[entry];
                        (self.begun[entry] / rate + taken_up * execution.added) / execution.taken(taken_up).forgotten()
                    }
                    None => continue,
                };
                self.pass(entry, begins, found);
            }
        }
    }

    /// What is left of what was there, after such a time.
    fn outlasts(&self, time: S) -> S {
        self.stay / (self.stay + time)
    }

    /// `o` where a customer's cycle begins.
    fn of_last_cycle(&self, cycle: Step<S>, think_time: S) -> S {
        let idle = self.outlasts(think_time);
        idle * cycle.added / cycle.taken(idle).forgotten()
    }

    /// Whether a node's slices are here, after the messages that were here before.
    fn is_here_in_order(&self, node: usize) -> bool {
        let (at, net) = (self.at, self.at.sweep.net);
        let Some(host) = net.nodes[node].host_arc.map(|host| &net.arcs[host]) else { return false };
        let goes_first = || !at.has_priorities() || at.priority_of(self.x) >= host.priority;
        host.station == at.station && !at.is_shared() && goes_first()
    }

    fn row_of(&self, node: usize) -> Option<usize> {
        self.at.layout.messages.row_of_node.get(node).copied().flatten()
    }

    /// Whether these are behind all that was here before.
    fn is_behind_all(&self, node: usize) -> bool {
        self.at.servers <= 1.0 && self.is_here_in_order(node)
    }

    /// `a` and `A` of a node.
    fn sent_in_slice(&self, node: usize) -> (S, S) {
        let net = self.at.sweep.net;
        let it = &net.nodes[node];
        let (mut such, mut all) = (S::from(0.0), S::from(0.0));
        for &send in &it.sends {
            let number = net.arcs[send].visits / it.slices;
            all += number;
            if net.arcs[send].target == Some(self.entry) {
                such += number;
            }
        }
        (such, all)
    }

    /// Service of a slice of a node, and its time.
    fn slice_time(&self, node: usize) -> (S, S) {
        let it = &self.at.sweep.net.nodes[node];
        let service = (it.demand + it.think_time) / it.slices;
        (service, it.host_arc.map_or(service, |host| service + self.at.sweep.unknowns[host]))
    }

    fn ways_of(&self, node: usize) -> Ways<S> {
        let at = self.at;
        let net = at.sweep.net;
        let it = &net.nodes[node];
        let (such, _) = self.sent_in_slice(node);
        let slice = if self.is_behind_all(node) {
            Step { kept: S::from(0.0), added: such }
        } else {
            let (service, time) = self.slice_time(node);
            let is_shared = it.host_arc.is_some_and(|host| net.stations[net.arcs[host].station].discipline == Discipline::Sharing);
            let whole = if is_shared { time } else { service };
            let left = whole * left_of_slice(it.deterministic);
            let kept = if self.is_here_in_order(node) {
                let its = at.visits[self.x].first;
                its / (its + service) * self.row_of(node).map_or(S::from(1.0), |row| self.held[row])
            } else {
                self.outlasts(time)
            };
            Step { kept, added: such * self.outlasts(left) }
        };
        let mut calls = Step { kept: S::from(0.0), added: S::from(0.0) };
        for call in it.calls.iter().map(|call| call.arc) {
            let Some(target) = net.arcs[call].target else { continue };
            let part = net.arcs[call].visits / it.slices;
            let step = self.steps[target];
            calls.kept += part * self.outlasts(at.sweep.unknowns[call]) * step.kept;
            calls.added += part * step.added;
        }
        Ways { slice, calls, is_last: it.slices.recip() }
    }

    /// Sets what a node does, and returns what an execution of it does.
    fn find_ways(&mut self, node: usize) -> Step<S> {
        self.ways[node] = self.ways_of(node);
        self.step_of_node(node)
    }

    fn step_of_node(&self, node: usize) -> Step<S> {
        let Ways { slice, calls, is_last } = self.ways[node];
        if let Some(number) = self.number_of_calls(node) {
            return slice.then(calls.over(-is_last + 1.0).then(slice).repeated(number));
        }
        let kept = slice.kept * is_last / (-(slice.kept * calls.kept) + 1.0);
        Step { kept, added: slice.added + kept * calls.of(slice.added) / is_last }
    }

    /// How many calls a node waits for, where their number is always the same and not 0.
    fn number_of_calls(&self, node: usize) -> Option<S> {
        let it = &self.at.sweep.net.nodes[node];
        let number = it.slices - 1.0;
        (it.deterministic && number > 0.0).then_some(number)
    }

    /// `o` before and after a slice of an execution that begins with so many, in the mean; the latter of those that a call follows.
    fn around_slices(&self, node: usize, begins: S) -> (S, S) {
        let Ways { slice, calls, is_last } = self.ways[node];
        let Some(number) = self.number_of_calls(node) else {
            let before = (begins * is_last + calls.of(slice.added)) / (-(calls.kept * slice.kept) + 1.0);
            return (before, slice.of(before));
        };
        let call = calls.over(-is_last + 1.0);
        let after = call.then(slice).mean_of(slice.of(begins), number);
        (begins * is_last + call.of(after) * (-is_last + 1.0), after)
    }

    fn step_of(&mut self, entry: usize) -> Step<S> {
        match &self.at.sweep.net.entries[entry].work {
            Work::Phases([Some(node), ..]) => self.find_ways(*node),
            Work::Phases(_) => Step::none(),
            Work::Graph(graph) => {
                let mut ends: Vec<Step<S>> = Vec::with_capacity(graph.vertices.len());
                for (v, vertex) in graph.vertices.iter().enumerate() {
                    let before = joined(&vertex.start, &ends);
                    ends.push(graph.leaf(v).map_or(before, |node| before.then(self.find_ways(node))));
                }
                graph.reply.and_then(|reply| ends.get(reply)).or(ends.last()).copied().unwrap_or(Step::none())
            }
        }
    }

    /// Passes through an execution that begins with so many.
    fn pass(&mut self, entry: usize, begins: S, found: &mut [S]) {
        let net = self.at.sweep.net;
        match &net.entries[entry].work {
            Work::Phases([Some(node), ..]) => self.pass_node(*node, begins, found),
            Work::Phases(_) => {}
            Work::Graph(graph) => {
                let mut ends: Vec<Step<S>> = Vec::with_capacity(graph.vertices.len());
                for (v, vertex) in graph.vertices.iter().enumerate() {
                    let before = joined(&vertex.start, &ends);
                    let Some(node) = graph.leaf(v) else {
                        ends.push(before);
                        continue;
                    };
                    self.pass_node(node, before.of(begins), found);
                    ends.push(before.then(self.step_of_node(node)));
                }
            }
        }
    }

    fn pass_node(&mut self, node: usize, begins: S, found: &mut [S]) {
        let at = self.at;
        let (net, flow, waits) = (at.sweep.net, at.sweep.flow, at.sweep.unknowns);
        let it = &net.nodes[node];
        let (before, after) = self.around_slices(node, begins);
        let n = at.visits.len();
        let here = self.row_of(node);
        if let Some(row) = here {
            found[row * n + self.x] += before * self.here;
        }
        for call in it.calls.iter().flat_map(|call| std::iter::once(&call.arc).chain(&call.legs)) {
            if let Some(target) = net.arcs[*call].target {
                let begins = self.outlasts(waits[*call]) * after;
                self.begun[target] += flow.arc_rate[*call] * begins;
            }
        }
        let left = left_of_slice(it.deterministic);
        let (such, all) = self.sent_in_slice(node);
        let (service, _) = self.slice_time(node);
        let Ways { slice, .. } = self.ways[node];
        for &send in &it.sends {
            let Some(target) = net.arcs[send].target else { continue };
            let is_such = target == self.entry;
            let earlier = match (is_such, it.deterministic) {
                (true, true) if net.arcs[send].visits > 1.0 => such - it.slices.recip(),
                (true, true) => S::from(0.0),
                _ => such,
            };
            let sent = if self.is_behind_all(node) {
                earlier * left
            } else {
                let again = self.outlasts(service / (all + 1.0));
                let together = earlier * again * left / (all * (-again + 1.0) + 1.0);
                self.come_to_queue(send, together, found);
                before * slice.kept + together
            };
            let begins = self.outlasts(waits[send]) * sent;
            self.begun[target] += flow.arc_rate[send] * begins;
            if let (true, Some(sender)) = (is_such, here) {
                self.meet_sender(send, sender, left, found);
            }
        }
    }

    /// So many are found over an arc, if that leads to the queue at hand: a part of what its row finds.
    fn come_to_queue(&self, arc: usize, number: S, found: &mut [S]) {
        let Layout { messages, row_of, arcs, .. } = self.at.layout;
        let Some(place) = messages.place_of_arc.get(arc).copied().flatten() else { return };
        let rates = &self.at.sweep.flow.arc_rate;
        let row = row_of[place];
        let of_row = arcs.iter().zip(row_of).filter(|(_, of)| **of == row);
        let all = of_row.fold(S::from(0.0), |sum, (&arc, _)| sum + rates[arc]);
        if all > 0.0 {
            found[row * arcs.len() + self.x] += number * rates[arc] / all;
        }
    }

    /// Who sends meets what is sent, where both are here.
    fn meet_sender(&self, send: usize, sender: usize, left: f64, found: &mut [S]) {
        let at = self.at;
        let n = at.visits.len();
        let (rows, flow) = (&at.layout.rows, at.sweep.flow);
        let service = at.visits[rows[sender].arc].first;
        let (rate, received) = (flow.arc_rate[send], flow.entry_rate[self.entry]);
        let row = at.layout.row_of[self.x];
        let Some(group) = rows[row].group.filter(|_| received > 0.0 && service > 0.0) else { return };
        let slices = at.sweep.net.nodes[at.layout.groups[group]].slices;
        let stays = service / (service + at.sweep.unknowns[send]) * left;
        found[row * n + rows[sender].arc] += rate / received / slices * stays;
        let slices = at.visits[rows[sender].arc].rate;
        if at.is_shared() && slices > 0.0 {
            found[sender * n + self.x] += rate / slices * self.outlasts(at.sweep.unknowns[send]) * left;
        }
    }
}

/// The share of so many messages, their number random, that can be in service at so many servers.
fn share_served<S: Scalar>(found: S, servers: S) -> S {
    let all = S::from(1.0);
    if found <= 0.0 {
        return all;
    }
    if servers <= found * NEGLIGIBLE {
        return S::from(0.0);
    }
    let each = found / servers;
    if each < NEGLIGIBLE { -each * 0.5 + 1.0 } else { (-(-each).exp() + 1.0) / each }
}

/// `η`.
pub(super) fn left_of_slice(deterministic: bool) -> f64 {
    if deterministic { HALF } else { 1.0 }
}

/// What has become of `o` where a vertex of a graph begins.
fn joined<S: Scalar>(start: &Start, ends: &[Step<S>]) -> Step<S> {
    match start {
        Start::First => Step::none(),
        Start::After(before) => ends[*before],
        Start::Join { before, .. } => {
            let zero = S::from(0.0);
            before.iter().fold(Step { kept: zero, added: zero }, |all, &end| Step {
                kept: all.kept + ends[end].kept / before.len() as f64,
                added: all.added + ends[end].added,
            })
        }
    }
}
