//! What requests find at a processor of those that they sent themselves.
//!
//! Who sends a request and does not wait for it goes on with its slice, and then elsewhere, or to the same processor again. What it sent is there as long as
//! it takes, and so is found by the sender's next slices, by what is called next, and by what is sent next. Along the course of a request, slice by slice and
//! call by call, the number `o` of those that it has sent and that are still at a processor is
//!
//! ```text
//! o ← o τ/(τ + t) + a τ/(τ + η s)                          a slice elsewhere
//! o ← a                                                    one here, at a single server and in order of arrival: what was there goes first, what is sent is behind
//! o ← δ o + β                                              an execution: of n slices, C a call, 1/n the chance that a slice is the last,
//! δ = δ_s/n / (1 - δ_s D),  β = β_s + n δ (D β_s + B)      D = Σ_C y_C/n δ_C,  B = Σ_C y_C/n β_C
//! ō = (o/n + D β_s + B)/(1 - D δ_s)                        before a slice of it, in the mean
//! ```
//!
//! and of those that it is sent with
//!
//! ```text
//! i = a θ/(1 + A (1 - θ)),  θ = τ/(τ + s/(1 + A))          sent before, in the same slice;  at a single server here a η
//! η                                                        who sent it, where that is here, of whom so much of a slice is left
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `τ` | how long such a request takes, also until it has a thread; for the rest of it, it is here |
//! | `s`, `t` | service in a slice, and that with its wait |
//! | `a`, `A` | such requests that are sent in a slice, and all that are |
//! | `η` | of random numbers, which are without memory, 1: as much is left as a slice takes; of numbers that are always the same 1/2 |
//! | `δ`, `β` | what is left of `o` after an execution, and what is added; `_s` after a slice, `_C` after a call |
//!
//! Times are taken to be exponential. Where strands of a fork begin each finds what has been sent before; a join is as late as one of them, and all have sent.
//! A customer begins with what is left of his last cycle. What is found at any time of all requests has the own ones with it; that part is taken off.
//!
//! They make wait as others do: in order of arrival for their services, of several servers those that have none to themselves; a shared processor for
//! `s s_x/(s + s_x)`, until one of the two has ended.

use super::{
    super::{
        graph::Start,
        net::{Discipline, Net, Source, Work},
    },
    At, Scratch, Sweep,
    layout::Layout,
    removal::bounded,
};
use crate::model::Scalar;

/// What is left of a slice, or of what is sent in it, where a request of a number that is always the same is sent.
const HALF: f64 = 0.5;
/// Less than this of a cycle forgets nothing.
const NEVER_FORGOTTEN: f64 = 1e-9;

/// Passes in which it is found how many can be in service beside a slice.
const PASSES: usize = 3;
/// Of two numbers one that is as good as none.
const NEGLIGIBLE: f64 = 1e-6;

/// A row of requests that threads send and do not wait for.
#[derive(Clone, Debug)]
pub(super) struct Message {
    row: usize,
    entry: usize,
}

/// The rows of such requests at a processor, by their first slices.
pub(super) fn find_messages<S>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Vec<Message> {
    let is_told = !matches!(net.stations[station].discipline, Discipline::Delay | Discipline::Groups);
    if station >= net.n_processors || !is_told {
        return Vec::new();
    }
    let sent = |entry: usize| calls[entry].iter().any(|&call| matches!(net.arcs[call].source, Source::Detached(_)));
    let rows = layout.rows.iter().enumerate().filter_map(|(row, it)| {
        let node = &net.nodes[layout.groups[it.group?]];
        let is_first = node.phase == 0 && matches!(net.entries[node.entry].work, Work::Phases(_));
        (is_first && sent(node.entry)).then_some(Message { row, entry: node.entry })
    });
    rows.collect()
}

/// What becomes of `o`: `δ` and `β`.
#[derive(Clone, Copy, Debug)]
struct Step<S> {
    kept: S,
    added: S,
}

impl<S: Scalar> Step<S> {
    fn none() -> Self {
        Self { kept: S::from(1.0), added: S::from(0.0) }
    }

    fn of(self, found: S) -> S {
        self.kept * found + self.added
    }

    /// The same of each of a number of which this is the sum.
    fn over(self, number: S) -> Self {
        Self { kept: self.kept / number, added: self.added / number }
    }

    /// So many times.
    fn repeated(self, number: S) -> Self {
        let kept = if self.kept > 0.0 { (self.kept.ln() * number).exp() } else { S::from(0.0) };
        Self { kept, added: self.added * (-kept + 1.0) / self.forgotten() }
    }

    /// `o` in the mean where it begins with so many, after this, and so on, so many in all.
    fn mean_of(self, begins: S, number: S) -> S {
        let kept = (-self.repeated(number).kept + 1.0) / (self.forgotten() * number);
        kept * begins + self.added * (-kept + 1.0) / self.forgotten()
    }

    fn forgotten(self) -> S {
        let forgotten = -self.kept + 1.0;
        if forgotten > NEVER_FORGOTTEN { forgotten } else { S::from(NEVER_FORGOTTEN) }
    }

    fn then(self, next: Self) -> Self {
        Self { kept: self.kept * next.kept, added: next.of(self.added) }
    }
}

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
struct Course<'a, 'b, S> {
    at: &'a At<'b, S>,
    entry: usize,
    row: usize,
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

impl<S: Scalar> At<'_, S> {
    /// `o` before each row's slices, of each row.
    pub(super) fn find_messages(&self, scratch: &mut Scratch<S>) {
        let Layout { messages, rows, .. } = self.layout;
        let zero = S::from(0.0);
        scratch.messages.clear();
        if messages.is_empty() {
            return;
        }
        scratch.messages.resize(rows.len() * self.visits.len(), zero);
        for message in messages {
            let v = &self.visits[rows[message.row].arc];
            let after_senders = v.wait - self.waits_for_senders(message);
            let here = if after_senders > 0.0 { v.first + after_senders } else { v.first };
            let stay = here + self.waits_for_threads(message.entry);
            if v.rate > 0.0 && stay > 0.0 {
                let net = self.sweep.net;
                let (steps, begun) = (vec![Step::none(); net.entries.len()], vec![zero; net.entries.len()]);
                let ways = vec![Ways { slice: Step::none(), calls: Step::none(), is_last: S::from(1.0) }; net.nodes.len()];
                let held = vec![S::from(1.0); rows.len()];
                let course = Course { at: self, entry: message.entry, row: message.row, stay, here: here / stay, ways, steps, begun, held };
                course.follow(&mut scratch.messages);
            }
        }
        self.hold_messages_to_threads(&mut scratch.messages);
    }

    /// No more are here of a pool than it has threads, beside that of who finds them.
    fn hold_messages_to_threads(&self, messages: &mut [S]) {
        let n = self.visits.len();
        for (pool, &task) in self.layout.pools.iter().enumerate() {
            let threads = self.sweep.populations.strands_at(self.sweep.net, task, self.station);
            let places: Vec<usize> = (0..n).filter(|&x| self.layout.pool_of[x] == Some(pool)).collect();
            for (r, found) in messages.chunks_exact_mut(n).enumerate().filter(|_| threads.is_finite()) {
                let most = threads - if self.layout.rows[r].pool == Some(pool) { 1.0 } else { 0.0 };
                let all = places.iter().fold(S::from(0.0), |sum, &x| sum + found[x]);
                if all > most {
                    places.iter().for_each(|&x| found[x] *= all.recip() * most);
                }
            }
        }
    }

    /// How long what is sent to an entry waits for a thread.
    fn waits_for_threads(&self, entry: usize) -> S {
        let Sweep { net, flow, unknowns, .. } = self.sweep;
        let zero = S::from(0.0);
        let Some(station) = net.tasks[net.entries[entry].task].station else { return zero };
        let (mut wait, mut all) = (zero, zero);
        let sent = |arc: &&usize| net.arcs[**arc].target == Some(entry) && matches!(net.arcs[**arc].source, Source::Detached(_));
        for &arc in net.stations[station].arcs.iter().filter(sent) {
            wait += flow.arc_rate[arc] * unknowns[arc];
            all += flow.arc_rate[arc];
        }
        if all > 0.0 { wait / all } else { zero }
    }

    /// What the first slice of a message waits for those who send it.
    fn waits_for_senders(&self, message: &Message) -> S {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let its = &self.visits[self.layout.rows[message.row].arc];
        let received = flow.entry_rate[message.entry];
        let mut wait = S::from(0.0);
        if received <= 0.0 || self.servers > 1.0 {
            return wait;
        }
        for (&group, &row) in self.layout.groups.iter().zip(&self.layout.row_of_group) {
            let node = &net.nodes[group];
            let service = self.visits[self.layout.rows[row].arc].first * left_of_slice(node.deterministic);
            if service <= 0.0 {
                continue;
            }
            let each = if self.is_shared() { service * its.first / (service + its.first) } else { service };
            for &send in node.sends.iter().filter(|&&send| net.arcs[send].target == Some(message.entry)) {
                wait += flow.arc_rate[send] / received * each * service / (service + self.sweep.unknowns[send]);
            }
        }
        wait
    }

    /// The chance that a thread of a task begins an execution where it ended another.
    pub(super) fn taken_up_at_once(&self, task: usize) -> S {
        let Sweep { net, flow, unknowns, chance_of, .. } = self.sweep;
        let zero = S::from(0.0);
        let Some(station) = net.tasks[task].station else { return zero };
        if net.tasks[task].threads.is_infinite() {
            return zero;
        }
        let (mut waiting, mut all) = (zero, zero);
        for &arc in &net.stations[station].arcs {
            waiting += flow.arc_rate[arc] * unknowns[chance_of[arc]];
            all += flow.arc_rate[arc];
        }
        if all > 0.0 { bounded(waiting / all) } else { zero }
    }

    /// Takes off what is found of the own ones at any time, of which a row finds such a part.
    pub(super) fn take_off_any(&self, scratch: &mut Scratch<S>, part: impl Fn(usize) -> S) {
        let n = self.visits.len();
        let Scratch { messages, alpha, beta, load, .. } = scratch;
        let customers = self.sweep.populations.customers;
        for (at, found) in messages.iter_mut().enumerate().filter(|(_, found)| **found > 0.0) {
            let (row, x) = (&self.layout.rows[at / n], at % n);
            let it = &self.visits[x];
            let (waiting, served) = if self.is_shared() {
                let me = self.visits[row.arc].first;
                if me <= 0.0 {
                    continue;
                }
                *found *= it.first / (me + it.first);
                (alpha[at] * it.wait / me, beta[at] / me)
            } else {
                (if it.first > 0.0 { alpha[at] * it.wait / it.first } else { S::from(0.0) }, load[at])
            };
            let mut own = S::from(0.0);
            for (c, &n) in customers.iter().enumerate().filter(|(_, n)| **n >= 1.0) {
                let both = self.begun_for(row.arc, c) * self.begun_for(x, c);
                own += both * (waiting * (1.0 - n.recip()) + served) / n;
            }
            if let Some(&task) = row.group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]].task) {
                let taken_up = self.taken_up_at_once(task);
                if taken_up > 0.0 {
                    own += taken_up * ((waiting + served) / self.sweep.net.tasks[task].threads - own);
                }
            }
            let left = *found - own * part(at / n);
            *found = if left > 0.0 { left } else { S::from(0.0) };
        }
    }

    /// The share of a class in the requests over an arc, whether its customers wait for them or not.
    fn begun_for(&self, x: usize, class: usize) -> S {
        let (net, exclusion, arc) = (self.sweep.net, self.sweep.exclusion, self.layout.arcs[x]);
        let waits = net.kin_of_arc(arc).map_or(S::from(0.0), |kin| exclusion.class_shares[kin * net.classes.len() + class]);
        waits + exclusion.gone_on_over(net, arc, class).met
    }

    /// Adds them to the parts of the waits.
    pub(super) fn add_messages(&self, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let Scratch { messages, messages_wait, beta, load, .. } = scratch;
        messages_wait.clear();
        if messages.is_empty() {
            return;
        }
        messages_wait.resize(self.layout.rows.len(), S::from(0.0));
        let has_priorities = self.has_priorities();
        for (r, row) in self.layout.rows.iter().enumerate() {
            let me = self.visits[row.arc].first;
            let terms = r * n..(r + 1) * n;
            let mut idle = load[terms.clone()].iter().fold(S::from(self.servers), |idle, &load| idle - load);
            for (at, it) in terms.zip(self.visits) {
                let found = messages[at];
                let goes_first = !has_priorities || self.priority_of(at % n) >= row.priority;
                if found <= 0.0 || it.first <= 0.0 || !goes_first {
                    continue;
                }
                if self.is_shared() {
                    beta[at] += found * me;
                    load[at] += found;
                } else if self.servers <= 1.0 {
                    beta[at] += found * it.first;
                } else {
                    let served = if found < idle {
                        found
                    } else if idle > 0.0 {
                        idle
                    } else {
                        S::from(0.0)
                    };
                    idle -= served;
                    beta[at] += served * it.first;
                    load[at] += served;
                    messages_wait[r] += (found - served) * it.first / self.servers;
                }
            }
        }
    }
}

impl<S: Scalar> Course<'_, '_, S> {
    /// Sets `o` before slices at the station.
    fn follow(mut self, found: &mut [S]) {
        let x = self.at.layout.rows[self.row].arc;
        let n = self.at.visits.len();
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
                        let taken_up = self.at.taken_up_at_once(task);
                        (self.begun[entry] / rate + taken_up * self.steps[entry].added) / (-(taken_up * self.steps[entry].kept) + 1.0)
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
        idle * cycle.added / Step { kept: cycle.kept * idle, ..cycle }.forgotten()
    }

    /// Whether a node's slices are here, after the messages that were here before.
    fn is_here_in_order(&self, node: usize) -> bool {
        let (at, net) = (self.at, self.at.sweep.net);
        let Some(host) = net.nodes[node].host_arc.map(|host| &net.arcs[host]) else { return false };
        let goes_first = || !at.has_priorities() || at.layout.rows[self.row].priority >= host.priority;
        host.station == at.station && !at.is_shared() && goes_first()
    }

    fn row_of(&self, node: usize) -> Option<usize> {
        self.at.layout.row_of_node[node]
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
            let left = if is_shared { time } else { service } * left_of_slice(it.deterministic);
            let kept = if self.is_here_in_order(node) {
                let its = at.visits[at.layout.rows[self.row].arc].first;
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
        let x = at.layout.rows[self.row].arc;
        if let Some(row) = here {
            found[row * n + x] += before * self.here;
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
                before * slice.kept + earlier * again * left / (all * (-again + 1.0) + 1.0)
            };
            let begins = self.outlasts(waits[send]) * sent;
            self.begun[target] += flow.arc_rate[send] * begins;
            if let (true, Some(sender)) = (is_such, here) {
                self.meet_sender(send, sender, left, found);
            }
        }
    }

    /// Who sends meets what is sent, where both are here.
    fn meet_sender(&self, send: usize, sender: usize, left: f64, found: &mut [S]) {
        let at = self.at;
        let n = at.visits.len();
        let (rows, flow) = (&at.layout.rows, at.sweep.flow);
        let service = at.visits[rows[sender].arc].first;
        let (rate, received) = (flow.arc_rate[send], flow.entry_rate[self.entry]);
        if received <= 0.0 || service <= 0.0 {
            return;
        }
        let slices = at.sweep.net.nodes[at.layout.groups[rows[self.row].group.unwrap_or_default()]].slices;
        let stays = service / (service + at.sweep.unknowns[send]) * left;
        found[self.row * n + rows[sender].arc] += rate / received / slices * stays;
        let slices = at.visits[rows[sender].arc].rate;
        if at.is_shared() && slices > 0.0 {
            found[sender * n + rows[self.row].arc] += rate / slices * self.outlasts(at.sweep.unknowns[send]) * left;
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
fn left_of_slice(deterministic: bool) -> f64 {
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
