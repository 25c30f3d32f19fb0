//! The course of requests past a station, slice by slice and call by call.

use super::{
    super::{
        super::{
            graph::Start,
            net::{CallGroup, Discipline, Work},
        },
        At, COIN,
    },
    HALF, Message, NEGLIGIBLE,
    outline::Errand,
    presence::Presence,
    step::{Kept, Step, There},
};
use crate::model::Scalar;

/// Passes in which it is found how many can be in service beside a slice.
const PASSES: usize = 2;

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

/// The course of requests past a station, by one errand.
pub(super) struct Course<'a, 'b, S> {
    pub(super) at: &'a At<'b, S>,
    pub(super) message: &'a Message,
    pub(super) it: &'a Presence<S>,
    /// The share of the slices of each row that follow no other at once, where requests go by urgency.
    from_elsewhere: &'a [S],
    pub(super) room: &'a mut Room<S>,
    /// Whether it is passed again, and what no pass changes is known.
    is_again: bool,
}

/// Room to follow it.
#[derive(Debug)]
pub(in super::super) struct Room<S> {
    /// By node, as far as it is of one that is passed through.
    ways: Vec<Ways<S>>,
    /// By arc of a call, what is left after the wait for a thread, and after the execution where that is of an entry without a step.
    called: Vec<Kept<S>>,
    served: Vec<Kept<S>>,
    /// By entry, an execution until the reply; none of entries where it neither begins nor is met, and of all between courses.
    steps: Vec<Option<Step<S>>>,
    /// By entry on the way, `o` where it begins, times its rate.
    begun: Vec<There<S>>,
    /// By row, the share of those that its slices find that can be in service beside them.
    pub(super) held: Vec<S>,
    tried: Vec<S>,
}

impl<S> Room<S> {
    pub fn new() -> Self {
        Self {
            ways: Vec::new(),
            called: Vec::new(),
            served: Vec::new(),
            steps: Vec::new(),
            begun: Vec::new(),
            held: Vec::new(),
            tried: Vec::new(),
        }
    }
}

impl<S> Default for Room<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, 'b, S: Scalar> Course<'a, 'b, S> {
    pub fn new(at: &'a At<'b, S>, message: &'a Message, it: &'a Presence<S>, from_elsewhere: &'a [S], room: &'a mut Room<S>) -> Self {
        let net = at.sweep.net;
        let nothing = Ways { slice: Step::none(), calls: Step::none(), is_last: S::from(1.0) };
        room.ways.resize(net.nodes.len(), nothing);
        room.called.resize(net.arcs.len(), Kept::all());
        room.served.resize(net.arcs.len(), Kept::all());
        room.steps.resize(net.entries.len(), None);
        room.begun.resize(net.entries.len(), There::none());
        room.held.clear();
        room.held.resize(at.layout.rows.len(), S::from(1.0));
        Self { at, message, it, from_elsewhere, room, is_again: false }
    }
}

impl<S: Scalar> Course<'_, '_, S> {
    /// Adds `o` before slices at the station.
    pub fn follow(mut self, found: &mut [S]) {
        let n = self.at.visits.len();
        if self.at.servers > 1.0 && !self.at.is_shared() {
            let mut tried = std::mem::take(&mut self.room.tried);
            for _ in 0..PASSES {
                tried.clear();
                tried.resize(found.len(), S::from(0.0));
                self.pass_all(&mut tried);
                self.is_again = true;
                for (row, held) in self.room.held.iter_mut().enumerate() {
                    let all = self.it.slices.iter().fold(S::from(0.0), |sum, it| sum + tried[row * n + it.arc]);
                    *held = share_served(all, S::from(self.at.servers - 1.0));
                }
            }
            self.room.tried = tried;
        }
        self.pass_all(found);
        self.message.path.iter().for_each(|&(entry, _)| self.room.steps[entry] = None);
    }

    fn pass_all(&mut self, found: &mut [S]) {
        let net = self.at.sweep.net;
        let path = &self.message.path;
        for &(entry, _) in path.iter().rev() {
            self.room.steps[entry] = Some(self.step_of(entry));
            self.room.begun[entry] = There::none();
        }
        for &(entry, _) in path.iter().filter(|(_, is_met)| *is_met) {
            let task = net.entries[entry].task;
            let rate = self.at.sweep.flow.entry_rate[entry];
            let Some(execution) = self.room.steps[entry] else { continue };
            let begins = match net.tasks[task].class {
                Some(_) => {
                    let idle = self.it.after(net.tasks[task].think_time);
                    execution.kept.then(idle).again_and_again().of(idle.of(execution.added))
                }
                None if rate > 0.0 => {
                    let meanwhile = self.kept_between(task);
                    let left = self.room.begun[entry].times(rate.recip()) + meanwhile.of(execution.added);
                    execution.kept.then(meanwhile).again_and_again().of(left)
                }
                None => continue,
            };
            self.pass(entry, begins, found);
        }
    }

    /// Whether a node's slices are here, after what was here before.
    fn is_here_in_order(&self, node: usize) -> bool {
        let (at, net) = (self.at, self.at.sweep.net);
        let Some(host) = net.nodes[node].host_arc.map(|host| &net.arcs[host]) else { return false };
        let goes_first = || !at.has_priorities() || self.it.slices.iter().all(|it| at.priority_of(it.arc) >= host.priority);
        host.station == at.station && !at.is_shared() && goes_first()
    }

    /// Whether a node's slices are at a single server here before which all of these go.
    fn is_behind_urgent(&self, node: usize) -> bool {
        self.is_beside_all(node, |it, own| it > own)
    }

    /// Whether a node's slices are at a single server here and go before all of these.
    fn is_before_all(&self, node: usize) -> bool {
        self.is_beside_all(node, |it, own| it < own)
    }

    /// Whether a node's slices are at a single server here that goes by urgency, with that of all of these related so to their own.
    fn is_beside_all(&self, node: usize, is_so: impl Fn(f64, f64) -> bool) -> bool {
        let at = self.at;
        let Some(host) = at.sweep.net.nodes[node].host_arc.map(|host| &at.sweep.net.arcs[host]) else { return false };
        let are_so = || at.has_priorities() && self.it.slices.iter().all(|it| is_so(at.priority_of(it.arc), host.priority));
        host.station == at.station && at.servers <= 1.0 && are_so()
    }

    fn row_of(&self, node: usize) -> Option<usize> {
        self.at.layout.messages.row_of(node)
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
            if self.is_sent_over(send) {
                such += number;
            }
        }
        (such, all)
    }

    fn is_sent_over(&self, send: usize) -> bool {
        self.at.sweep.net.arcs[send].target.is_some_and(|target| self.message.errand == Errand::Sent(target))
    }

    /// Service of a slice of a node, and its time.
    fn slice_time(&self, node: usize) -> (S, S) {
        let it = &self.at.sweep.net.nodes[node];
        let service = (it.demand + it.think_time) / it.slices;
        (service, it.host_arc.map_or(service, |host| service + self.at.sweep.unknowns[host]))
    }

    fn ways_of(&mut self, node: usize) -> Ways<S> {
        let at = self.at;
        let net = at.sweep.net;
        let it = &net.nodes[node];
        let is_known = self.is_again && !self.is_here_in_order(node);
        let mut slice = if is_known { self.room.ways[node].slice } else { self.slice_of(node, self.sent_in_slice(node).0) };
        let mut calls = Step::nothing();
        for CallGroup { arc: call, legs } in &it.calls {
            let call = *call;
            let Some(target) = net.arcs[call].target else { continue };
            let part = net.arcs[call].visits / it.slices;
            let Step { kept, added } = self.step_over(call, target);
            let legs = self.past_legs(legs);
            let step = Step { kept: kept.then(legs), added: legs.of(added) };
            calls = calls.or(step.times(part));
            if self.message.errand == Errand::AfterReply(target) {
                let begun = self.it.begun();
                // Of two that come at the same time the one goes first.
                let behind = if self.is_here_in_order(node) && !self.is_behind_urgent(node) { begun.here * COIN } else { S::from(0.0) };
                calls.added = calls.added + There { here: begun.here - behind, away: begun.away }.times(part);
                slice.added.here += behind * part;
            }
        }
        Ways { slice, calls, is_last: it.slices.recip() }
    }

    /// What a call to an entry does, with the wait for its thread.
    fn step_over(&mut self, call: usize, entry: usize) -> Step<S> {
        let service = self.at.sweep.flow.phases[entry][0];
        let passed = self.passed_in_queue(call, service);
        let is_new = !self.is_again || passed.is_some();
        if is_new {
            self.room.called[call] = passed.map_or_else(|| self.it.after(self.at.sweep.unknowns[call]), |(called, _)| called);
        }
        let called = self.room.called[call];
        if let Some(Step { kept, added }) = self.room.steps[entry] {
            return Step { kept: called.then(kept), added };
        }
        if is_new {
            self.room.served[call] = passed.map_or_else(|| called.then(self.it.after(service)), |(_, served)| served);
        }
        Step { kept: self.room.served[call], added: There::none() }
    }

    /// What a slice does, in which so many are sent.
    fn slice_of(&self, node: usize, such: S) -> Step<S> {
        let (at, it) = (self.at, self.it);
        let (net, begun) = (at.sweep.net, it.begun());
        let left = left_of_slice(net.nodes[node].deterministic);
        let (service, time) = self.slice_time(node);
        if self.is_behind_urgent(node) && at.interrupts() {
            let kept = Kept { here: it.go_before(one_here()), away: it.go_before(it.gather(time)) };
            return Step { kept, added: it.go_before(begun).times(such) };
        }
        let one_served = match () {
            () if self.is_behind_urgent(node) => {
                let meanwhile = |before: There<S>| it.gather(service).times(it.go_before(before).away);
                Some(Kept { here: meanwhile(one_here()), away: meanwhile(it.gather(time - service)) })
            }
            () if self.is_before_all(node) => Some(Kept { here: one_here(), away: it.gather(time) }),
            () if self.is_behind_all(node) => Some(Kept { here: it.ended((time + service) * 0.5), away: it.gather(time) }),
            () => None,
        };
        if let Some(kept) = one_served {
            let later = it.gather(service * left).times(begun.away);
            return Step { kept, added: There { here: begun.here + later.here, away: later.away }.times(such) };
        }
        let is_shared = net.nodes[node].host_arc.is_some_and(|host| net.stations[net.arcs[host].station].discipline == Discipline::Sharing);
        let whole = if is_shared { time } else { service };
        let added = it.after(whole * left).of(begun).times(such);
        if !self.is_here_in_order(node) {
            return Step { kept: it.after(time), added };
        }
        let held = self.row_of(node).map_or(S::from(1.0), |row| self.room.held[row]);
        let beside = it.service / (it.service + service) * held;
        let here = There { here: beside, away: S::from(0.0) } + it.ended(service).times(-beside + 1.0);
        Step { kept: Kept { here, away: it.gather(time) }, added }
    }

    /// Sets what a node does, and returns what an execution of it does.
    fn find_ways(&mut self, node: usize) -> Step<S> {
        self.room.ways[node] = self.ways_of(node);
        self.step_of_node(node)
    }

    fn step_of_node(&self, node: usize) -> Step<S> {
        let Ways { slice, calls, is_last } = self.room.ways[node];
        if let Some(number) = self.number_of_calls(node) {
            return slice.then(calls.times((-is_last + 1.0).recip()).then(slice).repeated(number).0);
        }
        let all = calls.kept.then(slice.kept).again_and_again();
        Step { kept: slice.kept.then(all).times(is_last), added: all.of(slice.kept.of(calls.added) + slice.added) }
    }

    /// How many calls a node waits for, where their number is always the same and not 0.
    fn number_of_calls(&self, node: usize) -> Option<S> {
        let it = &self.at.sweep.net.nodes[node];
        let number = it.slices - 1.0;
        (it.deterministic && number > 0.0).then_some(number)
    }

    /// `o` before and after a slice of an execution that begins with so many, in the mean; the latter of those that a call follows.
    fn around_slices(&self, node: usize, begins: There<S>) -> (There<S>, There<S>) {
        let Ways { slice, calls, is_last } = self.room.ways[node];
        let Some(number) = self.number_of_calls(node) else {
            let before = slice.kept.then(calls.kept).again_and_again().of(begins.times(is_last) + calls.of(slice.added));
            return (before, slice.of(before));
        };
        let follow = -is_last + 1.0;
        let call = calls.times(follow.recip());
        // Before the first call, and after each but the last.
        let (_, mean) = call.then(slice).repeated(number - 1.0);
        let first = slice.of(begins);
        let after = if number > 1.0 { (first + mean.of(first).times(number - 1.0)).times(number.recip()) } else { first };
        (begins.times(is_last) + call.of(after).times(follow), after)
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
    fn pass(&mut self, entry: usize, begins: There<S>, found: &mut [S]) {
        let net = self.at.sweep.net;
        match &net.entries[entry].work {
            Work::Phases(phases) => {
                let mut begins = begins;
                for &node in phases.iter().flatten() {
                    if net.nodes[node].phase > 0 {
                        self.room.ways[node] = self.ways_of(node);
                    }
                    self.pass_node(node, begins, found);
                    begins = self.step_of_node(node).of(begins);
                }
            }
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

    fn pass_node(&mut self, node: usize, begins: There<S>, found: &mut [S]) {
        let at = self.at;
        let (net, flow, waits) = (at.sweep.net, at.sweep.flow, at.sweep.unknowns);
        let it = &net.nodes[node];
        let (before, after) = self.around_slices(node, begins);
        let n = at.visits.len();
        let here = self.row_of(node);
        if let Some(row) = here {
            let pool = at.layout.rows[row].pool;
            let here = if self.is_behind_urgent(node) {
                let sent = if at.interrupts() { self.it.begun().here * self.sent_in_slice(node).0 } else { S::from(0.0) };
                (before.here + sent) * self.it.slices_together()
            } else if self.is_before_all(node) {
                // One of them may be in service, but for where a slice has ended just then.
                before.here / (before.here + 1.0) * self.from_elsewhere[row]
            } else {
                before.here
            };
            for it in &self.it.slices {
                // Some of them less urgent: these let it pass.
                if at.has_priorities() && at.priority_of(it.arc) < at.layout.rows[row].priority && !self.is_before_all(node) {
                    continue;
                }
                let taken = if pool.is_some() && at.layout.pool_of[it.arc] == pool { 1.0 } else { 0.0 };
                found[row * n + it.arc] += it.of(here, taken);
            }
        }
        for call in &it.calls {
            self.come_with_call(call, after, found);
            for arc in call.arcs() {
                let Some(target) = self.on_the_way(arc) else { continue };
                let called = if arc == call.arc { self.room.called[arc] } else { self.it.after(waits[arc]) };
                self.room.begun[target] = self.room.begun[target] + called.of(after).times(flow.arc_rate[arc]);
            }
        }
        let left = left_of_slice(it.deterministic);
        let (such, all) = self.sent_in_slice(node);
        let (service, _) = self.slice_time(node);
        let Ways { slice, .. } = self.room.ways[node];
        for &send in &it.sends {
            let is_such = self.is_sent_over(send);
            let earlier = match (is_such, it.deterministic) {
                (true, true) if net.arcs[send].visits > 1.0 => such - it.slices.recip(),
                (true, true) => S::from(0.0),
                _ => such,
            };
            let sent = if self.is_behind_urgent(node) && at.interrupts() {
                slice.kept.of(before) + self.it.go_before(self.it.begun()).times(earlier * left)
            } else if self.is_behind_all(node) {
                slice.kept.of(before) + self.it.begun().times(earlier * left)
            } else {
                let again = self.it.outlasts(service / (all + 1.0));
                let together = earlier * again * left / (all * (-again + 1.0) + 1.0);
                self.come_to_queue(send, together, found);
                slice.kept.of(before) + self.it.begun().times(together)
            };
            if let Some(target) = self.on_the_way(send) {
                let begins = self.it.after(waits[send]).of(sent);
                self.room.begun[target] = self.room.begun[target] + begins.times(flow.arc_rate[send]);
            }
            if let (true, Some(sender)) = (is_such, here) {
                self.meet_sender(send, sender, left, found);
            }
        }
    }

    /// The entry that an arc leads to, if these may begin or be met there.
    fn on_the_way(&self, arc: usize) -> Option<usize> {
        self.at.sweep.net.arcs[arc].target.filter(|&target| self.room.steps[target].is_some())
    }

    /// Who sends meets what is sent, where both are here.
    fn meet_sender(&self, send: usize, sender: usize, left: f64, found: &mut [S]) {
        let at = self.at;
        let n = at.visits.len();
        let (rows, flow) = (&at.layout.rows, at.sweep.flow);
        let service = at.visits[rows[sender].arc].first;
        let (rate, received) = (flow.arc_rate[send], at.sweep.net.arcs[send].target.map_or(S::from(0.0), |entry| flow.entry_rate[entry]));
        let Some(first) = self.message.first.filter(|_| received > 0.0 && service > 0.0) else { return };
        let row = at.layout.row_of[first];
        let Some(group) = rows[row].group else { return };
        if at.interrupts() && rows[sender].priority < rows[row].priority {
            return;
        }
        let slices = at.sweep.net.nodes[at.layout.groups[group]].slices;
        let stays = service / (service + at.sweep.unknowns[send]) * left;
        found[row * n + rows[sender].arc] += rate / received / slices * stays;
        let slices = at.visits[rows[sender].arc].rate;
        if at.is_shared() && slices > 0.0 {
            found[sender * n + first] += rate / slices * self.it.outlasts(at.sweep.unknowns[send]) * left;
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

fn one_here<S: Scalar>() -> There<S> {
    There { here: S::from(1.0), away: S::from(0.0) }
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
            let part = S::from(before.len() as f64).recip();
            before.iter().fold(Step::nothing(), |all, &end| {
                let Step { kept, added } = ends[end];
                all.or(Step { kept: kept.times(part), added })
            })
        }
    }
}
