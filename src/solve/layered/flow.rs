//! Elapsed times from the bottom up, flows from the top down (steps 1 and 2 of the sweep).
//!
//! ```text
//! A_i = D_i/n_i + W_host                    one slice                 n_i = pieces + Y_i
//! B_j = W_ij + S_j1 + Σ_legs p (W + S_1)    one blocking call, forwarded legs included
//! S_i = Z_i + n_i A_i + Σ_j y_ij B_j        elapsed time of a node
//! V_i = Z_i² + n_i Var A + Y Var B + Var N (A + B̄)²                    N calls, of mean Y; Var N = Y (Y+1) for a geometric number
//! X_c = N_c / (Z_c + Σ share S),   λ_j = Σ_i λ_i y_ij
//! ```
//!
//! Who makes one call in any case is done as soon as that is, also where that makes no call, as it may ([`super::completion`]). The last term of `V` is absent for deterministic calls; for activities in sequence the variances of their calls add up. The variance of a wait that happens with probability `p` and is
//! then exponential is `2 W²/p - W²`. Where asynchronous sends lead back up, the flows are repeated until they settle.

use num_traits::clamp;

use super::{
    completion::{Moments, WithoutCalls, at_most},
    net::{Discipline, Net, Node, Source, Work},
    station::Contention,
    turns::Strand,
};
use crate::model::Scalar;

/// Times and rates of nodes, entries and tasks for given waits.
#[derive(Clone, Debug)]
pub(super) struct Flow<S> {
    /// Elapsed time `S_i` of a node.
    pub elapsed: Vec<S>,
    /// Its variance `V_i`.
    pub variance: Vec<S>,
    /// Nodes of graphs as their strands; nothing to do for others.
    pub strands: Vec<Strand<S>>,
    /// By entry, what its first phase waits for what works for other strands of the fork that it works for; no more of a strand.
    contended: Vec<Strand<S>>,
    /// Elapsed time of an entry's phases.
    pub phases: Vec<[S; 3]>,
    /// Their variances.
    pub phase_variances: Vec<[S; 3]>,
    /// By entry, the time of a first phase that makes no call, where it may, or whose only call is to one that then makes none.
    without_calls: Vec<Option<WithoutCalls<S>>>,
    /// Invocations of an entry a unit of time.
    pub entry_rate: Vec<S>,
    /// Requests over an arc a unit of time.
    pub arc_rate: Vec<S>,
    /// Cycles of a class a unit of time.
    pub class_rate: Vec<S>,
}

/// What an arc's requests wait, and with what probability they wait at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits<'a, S> {
    pub wait: &'a [S],
    /// By arc, the place of its probability.
    pub row: &'a [usize],
    /// By arc, the place of the share that other strands of the same fork cause; empty where none meet.
    pub contention: &'a [Option<Contention>],
    pub ratios: &'a [S],
    /// Whether variances leave out what is waited where joins leave strands behind.
    pub leaves_out: bool,
}

impl<S: Scalar> Waits<'_, S> {
    fn variance(&self, arc: usize) -> S {
        let wait = if self.leaves_out { self.wait[arc] - self.left(arc) } else { self.wait[arc] };
        if wait <= 0.0 {
            return S::from(0.0);
        }
        let p = chance_of_any(self.ratios[self.row[arc]]);
        wait * wait * (p.recip() * 2.0 - 1.0)
    }

    /// Wait for other strands of the same fork, before joins that leave any behind.
    fn contended(&self, arc: usize) -> S {
        self.contention.get(arc).copied().flatten().map_or(S::from(0.0), |it| self.wait[arc] * self.ratios[it.place])
    }

    /// The same, after these.
    fn left(&self, arc: usize) -> S {
        let place = self.contention.get(arc).copied().flatten().and_then(|it| it.left);
        place.map_or(S::from(0.0), |place| self.wait[arc] * self.ratios[place])
    }

    /// Whether joins leave strands behind that meet there.
    fn leaves(&self, arc: usize) -> bool {
        self.contention.get(arc).copied().flatten().is_some_and(|it| it.left.is_some())
    }
}

/// Waits that happen less often count as so often, lest one be longer than any: they add nothing that matters to a variance.
const LEAST_WAIT_PROBABILITY: f64 = 1e-3;
/// Rounds of a circular flow, and the relative change at which it has settled.
const MAX_ROUNDS: usize = 1000;
const SETTLED: f64 = 1e-14;

/// The chance that there is a wait at all, of what was found for it.
pub(super) fn chance_of_any<S: Scalar>(found: S) -> S {
    clamp(found, S::from(LEAST_WAIT_PROBABILITY), S::from(1.0))
}

impl<S> Node<S> {
    /// Whether its number of slices is.
    fn is_random(&self) -> bool {
        !self.deterministic && !self.calls.is_empty()
    }
}

impl<S: Scalar> Flow<S> {
    pub fn new(net: &Net<S>) -> Self {
        let zero = S::from(0.0);
        Self {
            elapsed: vec![zero; net.nodes.len()],
            variance: vec![zero; net.nodes.len()],
            strands: vec![Strand::none(); net.nodes.len()],
            contended: vec![Strand::none(); net.entries.len()],
            phases: vec![[zero; 3]; net.entries.len()],
            phase_variances: vec![[zero; 3]; net.entries.len()],
            without_calls: vec![None; net.entries.len()],
            entry_rate: vec![zero; net.entries.len()],
            arc_rate: vec![zero; net.arcs.len()],
            class_rate: vec![zero; net.classes.len()],
        }
    }

    /// Computes all at `population` customers in each class.
    pub fn update(&mut self, net: &Net<S>, waits: &Waits<'_, S>, population: &[f64]) {
        for &task in net.order.iter().rev() {
            for &entry in &net.tasks[task].entries {
                self.entry_times(net, waits, entry);
            }
        }
        self.all_rates(net, population);
    }

    /// Takes what [`Self::follow`] leaves as it is of another flow.
    pub fn start_at(&mut self, at: &Self) {
        self.phase_variances.clone_from(&at.phase_variances);
        self.without_calls.clone_from(&at.without_calls);
        self.contended.clone_from(&at.contended);
    }

    /// Computes mean times and the rates again for waits that have changed, `V_i` as they were but in graphs.
    pub fn follow(&mut self, net: &Net<S>, waits: &Waits<'_, S>, population: &[f64]) {
        for &task in net.order.iter().rev() {
            for &entry in &net.tasks[task].entries {
                let Work::Phases(phases) = &net.entries[entry].work else {
                    self.entry_times(net, waits, entry);
                    continue;
                };
                for (phase, node) in phases.iter().enumerate() {
                    let Some(node) = *node else { continue };
                    self.phases[entry][phase] = self.mean_time(net, waits.wait, &net.nodes[node]);
                }
            }
        }
        self.all_rates(net, population);
    }

    fn all_rates(&mut self, net: &Net<S>, population: &[f64]) {
        if net.circular {
            self.circular_rates(net, population);
        } else {
            self.rates(net, population);
        }
    }

    /// The same rates, with the times that they would take if nothing ever waited.
    pub fn without_waits(&self, net: &Net<S>) -> Self {
        let mut flow = self.clone();
        let nothing = vec![S::from(0.0); net.arcs.len()];
        let waits = Waits { wait: &nothing, row: &vec![0; net.arcs.len()], contention: &[], ratios: &[S::from(1.0)], leaves_out: false };
        for &task in net.order.iter().rev() {
            net.tasks[task].entries.iter().for_each(|&entry| flow.entry_times(net, &waits, entry));
        }
        flow
    }

    /// Rates that depend on themselves: round and round until they settle, and their derivatives after them at the same values.
    fn circular_rates(&mut self, net: &Net<S>, population: &[f64]) {
        self.arc_rate.fill(S::from(0.0));
        self.entry_rate.fill(S::from(0.0));
        let mut settled: Option<[Vec<S>; 3]> = None;
        for _ in 0..MAX_ROUNDS {
            let before = self.entry_rate.clone();
            self.rates(net, population);
            if self.entry_rate.iter().any(|r| !r.value().is_finite()) {
                break;
            }
            let changes = before.iter().zip(&self.entry_rate).map(|(&before, &now)| (now - before, now));
            let is_settled = changes.clone().all(|(change, now)| change.value().abs() <= SETTLED * now.value().abs());
            if settled.is_none() && is_settled {
                settled = Some([self.entry_rate.clone(), self.arc_rate.clone(), self.class_rate.clone()]);
            }
            let is_flat = |(change, now): (S, S)| {
                let slopes = change.derivatives().iter().zip(now.derivatives());
                slopes.into_iter().all(|(change, whole)| change.abs() <= SETTLED * (1.0 + whole.abs()))
            };
            if settled.is_some() && changes.into_iter().all(is_flat) {
                break;
            }
        }
        let rates = [&mut self.entry_rate, &mut self.arc_rate, &mut self.class_rate];
        for (now, then) in rates.into_iter().flatten().zip(settled.iter().flatten().flatten()) {
            let mut rate = S::from(then.value());
            rate.derivatives_mut().copy_from_slice(now.derivatives());
            *now = rate;
        }
    }

    fn rates(&mut self, net: &Net<S>, population: &[f64]) {
        self.entry_rate.fill(S::from(0.0));
        for (a, arc) in net.arcs.iter().enumerate() {
            let Some(target) = arc.target else { continue };
            match arc.source {
                Source::Open => {
                    self.arc_rate[a] = arc.visits;
                    self.entry_rate[target] += arc.visits;
                }
                // Sent in the last round by a task further down.
                Source::Detached(node) if net.circular && self.leads_back(net, node, target) => {
                    self.entry_rate[target] += self.arc_rate[a];
                }
                _ => {}
            }
        }
        for &task in &net.order {
            if let Some(class) = net.tasks[task].class {
                self.class_rates(net, task, class, population[class]);
            }
            for &entry in &net.tasks[task].entries {
                match &net.entries[entry].work {
                    Work::Phases(phases) => phases.iter().flatten().for_each(|&node| self.send_on(net, node)),
                    Work::Graph(graph) => {
                        for v in 0..graph.vertices.len() {
                            graph.nodes_of(v).into_iter().for_each(|node| self.send_on(net, node));
                        }
                    }
                }
            }
        }
    }

    #[expect(clippy::unused_self, reason = "reads beside its siblings")]
    fn leads_back(&self, net: &Net<S>, node: usize, target: usize) -> bool {
        net.tasks[net.nodes[node].task].position >= net.tasks[net.entries[target].task].position
    }

    fn class_rates(&mut self, net: &Net<S>, task: usize, class: usize, population: f64) {
        let mut cycle = net.tasks[task].think_time;
        for &entry in &net.tasks[task].entries {
            let [first, second, third] = self.phases[entry];
            cycle += (first + second + third) * net.entries[entry].visit_share;
        }
        let rate = if population > 0.0 && cycle > 0.0 { cycle.recip() * population } else { S::from(0.0) };
        self.class_rate[class] = rate;
        for &entry in &net.tasks[task].entries {
            self.entry_rate[entry] = rate * net.entries[entry].visit_share;
        }
    }

    fn send_on(&mut self, net: &Net<S>, node: usize) {
        let it = &net.nodes[node];
        let rate = self.entry_rate[it.entry] * it.weight;
        for group in &it.calls {
            self.send(net, group.arc, rate, true);
            group.legs.iter().for_each(|&leg| self.send(net, leg, rate, true));
        }
        for &a in &it.sends {
            let forward = !net.circular || net.arcs[a].target.is_some_and(|t| !self.leads_back(net, node, t));
            self.send(net, a, rate, forward);
        }
        if let Some(a) = it.host_arc {
            self.arc_rate[a] = rate * net.arcs[a].visits;
        }
    }

    fn send(&mut self, net: &Net<S>, a: usize, rate: S, forward: bool) {
        let sent = rate * net.arcs[a].visits;
        self.arc_rate[a] = sent;
        if let (Some(target), true) = (net.arcs[a].target, forward) {
            self.entry_rate[target] += sent;
        }
    }

    fn entry_times(&mut self, net: &Net<S>, waits: &Waits<'_, S>, entry: usize) {
        match &net.entries[entry].work {
            Work::Phases(phases) => {
                for (phase, node) in phases.iter().enumerate() {
                    let Some(node) = *node else { continue };
                    let Moments { mean, variance, without_calls } = node_times(net, waits, self, node);
                    (self.elapsed[node], self.variance[node]) = (mean, variance);
                    if phase == 0 {
                        self.without_calls[entry] = without_calls;
                    }
                    (self.phases[entry][phase], self.phase_variances[entry][phase]) = (mean, variance);
                }
                if let (Some(node), true) = (phases[0], !waits.contention.is_empty()) {
                    self.contended[entry] = self.contended(net, waits, node);
                }
            }
            Work::Graph(graph) => {
                for v in 0..graph.vertices.len() {
                    for node in graph.nodes_of(v) {
                        let time = node_times(net, waits, self, node);
                        (self.elapsed[node], self.variance[node]) = (time.mean, time.variance);
                        self.strands[node] = self.strand(net, waits, node, time);
                    }
                }
                let times = graph.times(&|node| self.strands[node]);
                self.phases[entry] = [times.first.mean, times.late.mean, S::from(0.0)];
                self.phase_variances[entry] = [times.first.variance, times.late.variance, S::from(0.0)];
            }
        }
    }

    /// A node as a strand of its graph: how long it waits for others of it, and with them for all else.
    fn strand(&self, net: &Net<S>, waits: &Waits<'_, S>, node: usize, time: Moments<S>) -> Strand<S> {
        let it = &net.nodes[node];
        let mut strand = Strand { time, last_slice: it.slices.recip(), ..self.contended(net, waits, node) };
        if strand.left > 0.0 {
            strand.left_variance = node_times(net, &Waits { leaves_out: true, ..*waits }, self, node).variance;
        }
        let Some(host) = it.host_arc else { return strand };
        let (wait, by_strands) = (waits.wait[host], waits.contended(host) + waits.left(host));
        let queues = !matches!(net.stations[net.arcs[host].station].discipline, Discipline::Sharing | Discipline::Groups);
        if queues && it.begins_at_processor && wait > by_strands {
            let share = -(by_strands / wait) + 1.0;
            let first = Moments::new(wait * share, waits.variance(host) * share * share);
            let counted = self.shared(net, waits, host, S::from(1.0));
            if it.is_random() {
                strand.shared_by_chance = strand.shared_by_chance.without(counted);
                strand.shared = strand.shared + first;
            } else {
                strand.shared = strand.shared + first.without(counted);
            }
        }
        strand
    }

    /// How long a node waits, itself and below, for other strands of the fork that it is of or works for.
    fn contended(&self, net: &Net<S>, waits: &Waits<'_, S>, node: usize) -> Strand<S> {
        let it = &net.nodes[node];
        let mut strand = Strand::none();
        if waits.contention.is_empty() {
            return strand;
        }
        let servers = |arc: usize| net.stations[net.arcs[arc].station].servers;
        let (mut always, mut by_chance) = (Moments::zero(), Moments::zero());
        if let Some(host) = it.host_arc {
            strand.contend(it.slices * waits.contended(host), servers(host));
            always = self.shared(net, waits, host, it.slices);
            strand.left += it.slices * waits.left(host);
        }
        for call in &it.calls {
            let mut one = |arc: usize, times: S| {
                strand.contend(times * waits.contended(arc), servers(arc));
                always = always + self.shared(net, waits, arc, times);
                strand.left += times * waits.left(arc);
                if let Some(entry) = net.arcs[arc].target {
                    let below = &self.contended[entry];
                    strand.contend(times * below.contended, below.servers);
                    always = always + below.shared.times(times);
                    by_chance = by_chance + below.shared_by_chance.times(times);
                    strand.left += times * below.left;
                }
            };
            let times = net.arcs[call.arc].visits;
            one(call.arc, times);
            call.legs.iter().for_each(|&leg| one(leg, times * net.arcs[leg].leg_probability));
        }
        (strand.shared, strand.shared_by_chance) = if it.is_random() { (Moments::zero(), always + by_chance) } else { (always, by_chance) };
        strand
    }

    /// What so many requests over an arc wait for others than strands of their fork, as far as they meet these there ([`super::turns`]).
    fn shared(&self, net: &Net<S>, waits: &Waits<'_, S>, arc: usize, times: S) -> Moments<S> {
        let it = &net.arcs[arc];
        let (wait, by_strands) = (waits.wait[arc], waits.contended(arc));
        let rest = wait - by_strands - waits.left(arc);
        let service = match (it.target, it.source.held()) {
            (None, Some(node)) => net.nodes[node].demand / net.nodes[node].slices,
            _ => self.first_phase(net, arc),
        };
        let queues = !matches!(net.stations[it.station].discipline, Discipline::Sharing | Discipline::Groups);
        if !queues || waits.leaves(arc) || by_strands <= 0.0 || rest <= 0.0 || service <= 0.0 {
            return Moments::zero();
        }
        let (share, met) = (rest / wait, at_most(by_strands / service, 1.0));
        let of_all = times * met * (-met + 2.0);
        Moments::new(rest * of_all, waits.variance(arc) * share * share * of_all)
    }

    /// `S_i` alone.
    fn mean_time(&self, net: &Net<S>, wait: &[S], it: &Node<S>) -> S {
        let mut mean = it.think_time;
        if let Some(host) = it.host_arc {
            mean += it.demand + it.slices * wait[host];
        }
        for group in &it.calls {
            let one = |arc: usize| wait[arc] + self.first_phase(net, arc);
            let legs = group.legs.iter().fold(one(group.arc), |sum, &leg| sum + net.arcs[leg].leg_probability * one(leg));
            mean += net.arcs[group.arc].visits * legs;
        }
        mean
    }

    /// Time that a thread is held for one request to an entry.
    pub fn held(&self, entry: usize) -> S {
        let [first, second, third] = self.phases[entry];
        first + second + third
    }

    /// The part of it after the reply.
    pub fn late(&self, entry: usize) -> S {
        let [_, second, third] = self.phases[entry];
        second + third
    }

    /// Mean busy threads of a task.
    pub fn busy_threads(&self, net: &Net<S>, task: usize) -> S {
        net.tasks[task].entries.iter().fold(S::from(0.0), |sum, &e| sum + self.entry_rate[e] * self.held(e))
    }

    /// Elapsed time of phase 1 of the entry that `arc` calls.
    pub fn first_phase(&self, net: &Net<S>, arc: usize) -> S {
        net.arcs[arc].target.map_or(S::from(0.0), |e| self.phases[e][0])
    }
}

fn node_times<S: Scalar>(net: &Net<S>, waits: &Waits<'_, S>, flow: &Flow<S>, node: usize) -> Moments<S> {
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
    let mean = it.think_time + it.slices * slice + calls;
    let mut variance = it.think_time * it.think_time + it.slices * slice_variance;
    if it.n_sync > 0.0 {
        let call = calls / it.n_sync;
        let call_variance = second_moment / it.n_sync - call * call;
        variance += it.n_sync * call_variance;
        let step = slice + call;
        variance += it.n_sync_variance * step * step;
        if let Some((entry, quick)) = only_call(net, flow, it) {
            // But for what the reply takes longer where calls are made for it.
            let without_calls = WithoutCalls {
                chance: quick.chance,
                mean: mean - flow.phases[entry][0] + quick.mean,
                variance: variance - flow.phase_variances[entry][0] + quick.variance,
            };
            return Moments { mean, variance, without_calls: Some(without_calls) };
        }
        let slices = it.slices - it.n_sync;
        let think = it.think_time * it.think_time;
        let without_calls =
            WithoutCalls { chance: it.no_sync, mean: it.think_time + slices * slice, variance: think + slices * slice_variance };
        return Moments { mean, variance, without_calls: Some(without_calls) };
    }
    if !it.deterministic {
        // None, but for the slopes where calls begin with a parameter: Var N and Y are as one there.
        variance += second_moment + it.n_sync_variance * slice * slice + calls * slice * 2.0;
    }
    Moments::new(mean, variance)
}

/// The entry that a node calls once, if it calls no other, and the time that takes where it makes no call in its turn.
fn only_call<S: Scalar>(net: &Net<S>, flow: &Flow<S>, it: &Node<S>) -> Option<(usize, WithoutCalls<S>)> {
    let [only] = &it.calls[..] else { return None };
    let is_one = it.n_sync == 1.0 && it.n_sync_variance == 0.0 && only.legs.is_empty();
    let entry = net.arcs[only.arc].target.filter(|_| is_one)?;
    Some((entry, flow.without_calls[entry]?))
}

/// Mean and variance of one blocking call over `arc`, with the forwarded `legs` that follow it.
fn call_times<S: Scalar>(net: &Net<S>, waits: &Waits<'_, S>, flow: &Flow<S>, arc: usize, legs: &[usize]) -> (S, S) {
    let one = |a: usize| {
        let served = net.arcs[a].target.map_or(S::from(0.0), |e| flow.phase_variances[e][0]);
        (waits.wait[a] + flow.first_phase(net, a), waits.variance(a) + served)
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
