//! What comes to a station in a network that is solved: by pool, or by how urgent it is.

use super::{
    super::{
        super::{
            flow::Flow,
            net::{Net, reached},
        },
        customers::strands,
        pool::LARGEST_POOL,
        visit::Inside,
    },
    WAITS,
    mixed::Varied,
    sources::{Kind, ramp},
};
use crate::model::Scalar;

/// The largest chance that a source is back at once.
const MOST_AGAIN: f64 = 0.99;

/// What comes of a pool to a station.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pool<S> {
    pub sources: f64,
    pub rate: S,
    /// Services in progress in the mean, and requests there.
    pub busy: S,
    pub there: S,
    /// Visits a unit of time after which the next follows at once ([`Inside::again`]).
    pub again: S,
    /// What is left of the services in progress, in sum; 0 where nobody asks.
    pub left: S,
}

impl<S: Scalar> Pool<S> {
    pub fn new(sources: f64) -> Self {
        let zero = S::from(0.0);
        Self { sources, rate: zero, busy: zero, there: zero, again: zero, left: zero }
    }

    pub fn add(&mut self, rate: S, wait: S, held: S) {
        self.rate += rate;
        self.busy += rate * held;
        self.there += rate * (wait + held);
    }

    pub fn kind(&self) -> Kind<S> {
        let most = self.rate * MOST_AGAIN;
        let again = if self.again > most { most } else { self.again };
        let away = if self.sources.is_finite() { -self.there + self.sources } else { S::from(1.0) } / (self.rate - again);
        Kind { sources: self.sources, away, service: self.busy / self.rate, again: again / self.rate }
    }

    /// How far `ψ` of its requests counts.
    pub fn counts(&self) -> S {
        ramp((self.there - self.busy) / self.there, WAITS)
    }

    pub fn with(mut self, other: &Self) -> Self {
        self.sources += other.sources;
        self.rate += other.rate;
        self.busy += other.busy;
        self.there += other.there;
        self.again += other.again;
        self.left += other.left;
        self
    }
}

/// What is known of the threads of a pool that has a processor for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads<S> {
    /// Executions a unit of time that are followed at once by another of the same caller.
    pub at_once: S,
    /// Whether gaps tell of them: those of customers do ([`super::since`]), those of threads do not.
    pub are_told: bool,
    /// Whether how many are busy tells how many cores are ([`super::pool`]).
    pub by_number: bool,
}

/// Of the only one of a station's `visitors`, of which at most `caps` threads are busy.
pub(super) fn threads_of<S: Scalar>(
    net: &Net<S>,
    solved: (&Flow<S>, &[S]),
    caps: &[f64],
    station: usize,
    visitors: &[Vec<usize>],
) -> Threads<S> {
    let none = Threads { at_once: S::from(0.0), are_told: false, by_number: false };
    let (flow, [tasks]) = (solved.0, visitors) else { return none };
    let &[task] = &tasks[..] else { return none };
    let it = &net.tasks[task];
    let Some(pool) = it.station.filter(|_| station < net.n_processors && it.class.is_none() && it.width <= 1.0) else { return none };
    let Some(again) = again(net, solved, pool) else { return none };
    // Elsewhere they come after something else that is done between two executions.
    let is_own = |&arc: &usize| net.arcs[arc].source.held().is_some_and(|node| net.nodes[node].task == task);
    let are_own = net.stations[station].arcs.iter().all(is_own);
    let ends_at_reply = it.entries.iter().all(|&entry| flow.held(entry) <= flow.phases[entry][0]);
    let (threads, most) = (caps[task], f64::min(net.stations[pool].servers, LARGEST_POOL));
    Threads {
        at_once: again.into_iter().filter(|_| are_own).fold(none.at_once, |sum, again| sum + again),
        are_told: net.stations[pool].servers.is_infinite(),
        by_number: ends_at_reply && threads > net.stations[station].servers && threads == most,
    }
}

/// The task that bounds what sends over an arc.
fn pool_of<S>(net: &Net<S>, arc: usize) -> Option<usize> {
    net.arcs[arc].source.held().map(|node| net.tasks[net.nodes[node].task].bounded_by)
}

/// Whether something that is served at a station goes on after the reply.
pub(super) fn goes_on<S: Scalar>(net: &Net<S>, flow: &Flow<S>, station: usize) -> bool {
    let mut targets = net.stations[station].arcs.iter().filter_map(|&arc| net.arcs[arc].target);
    targets.any(|entry| flow.held(entry) > flow.phases[entry][0])
}

/// What comes to a station.
pub(super) struct Visitors<S> {
    /// The tasks that bound each pool, or all that is as urgent, and what comes of it.
    pub tasks: Vec<Vec<usize>>,
    pub pools: Vec<Pool<S>>,
    /// How urgent each is.
    pub levels: Vec<f64>,
    /// Whether as many come as will.
    pub of_stream: Vec<bool>,
    /// By arc of the station, which of them it is of; empty where arcs are of several.
    pub place_of: Vec<usize>,
    /// Most sources of each, however many its tasks have; empty where there are as many as these have.
    pub most: Vec<f64>,
    /// Share of each in what comes over an arc, by arc, where arcs are of several.
    pub shares: Vec<S>,
    /// Rate and services of each arc.
    pub services: Vec<(S, Varied<S>)>,
}

impl<S> Visitors<S> {
    /// Sources of each pool, of so many busy threads of each task.
    pub fn sources(&self, net: &Net<S>, caps: &[f64]) -> Vec<f64> {
        let of = |place: usize| {
            let sum: f64 = self.tasks[place].iter().map(|&task| strands(net, caps, task)).sum();
            self.most.get(place).map_or(sum, |&most| sum.min(most))
        };
        (0..self.tasks.len()).map(|place| if self.of_stream[place] { f64::INFINITY } else { of(place) }).collect()
    }

    /// Leaves out those of which nothing comes.
    pub fn leave_out_who_never_comes(&mut self)
    where
        S: Scalar,
    {
        let n = self.pools.len();
        let comes: Vec<bool> = self.pools.iter().map(|pool| pool.busy > 0.0).collect();
        let mut at = 0;
        self.shares.retain(|_| {
            at += 1;
            comes[(at - 1) % n]
        });
        fn keep<T>(list: &mut Vec<T>, comes: &[bool]) {
            let mut comes = comes.iter();
            list.retain(|_| comes.next().is_none_or(|comes| *comes));
        }
        keep(&mut self.tasks, &comes);
        keep(&mut self.pools, &comes);
        keep(&mut self.levels, &comes);
        keep(&mut self.of_stream, &comes);
        keep(&mut self.most, &comes);
    }

    /// Of `numbers` that each of them waits longer by, that of each arc: 1 where nothing comes.
    pub fn by_arc(&self, numbers: &[S]) -> Vec<S>
    where
        S: Scalar,
    {
        if self.shares.is_empty() {
            return self.place_of.iter().map(|&place| numbers[place]).collect();
        }
        let of_arc = |shares: &[S]| shares.iter().zip(numbers).fold(S::from(1.0), |sum, (&share, &number)| sum + share * (number - 1.0));
        self.shares.chunks_exact(numbers.len()).map(of_arc).collect()
    }

    /// Whether none of the tasks works for another, and so is not there while that waits for it.
    pub fn are_apart(&self, net: &Net<S>) -> bool {
        let tasks: Vec<usize> = self.tasks.iter().flatten().copied().collect();
        tasks.iter().all(|&task| {
            let below = below(net, task);
            tasks.iter().all(|&other| other == task || !below[other])
        })
    }

    /// Whether they are all sources that there are, as where customers are no fewer than threads, of so many of each.
    pub fn are_all(&self, net: &Net<S>, caps: &[f64]) -> bool {
        let leads_here = |class: usize| self.tasks.iter().flatten().any(|&task| net.tasks[task].of_classes.contains(&class));
        let customers: f64 = (0..net.classes.len()).filter(|&class| leads_here(class)).map(|class| caps[net.classes[class]]).sum();
        self.of_stream.contains(&true) || self.sources(net, caps).iter().sum::<f64>() <= customers
    }
}

/// Whether each task is this one, or its requests lead there.
fn below<S>(net: &Net<S>, task: usize) -> Vec<bool> {
    reached(net.tasks.len(), vec![task], |task, open| {
        let nodes = net.tasks[task].entries.iter().flat_map(|&entry| net.nodes_of(entry));
        open.extend(nodes.flat_map(|node| net.called_by(node)).map(|entry| net.entries[entry].task));
    })
}

/// What comes to a station, by pool or by urgency; none where others come, too, than from tasks' threads, or some of which a part is more urgent. By urgency, as
/// many may come from outside as will, but for what customers send on without waiting.
pub(super) fn visitors<S: Scalar>(
    net: &Net<S>,
    (flow, waits): (&Flow<S>, &[S]),
    caps: &[f64],
    station: usize,
    by_urgency: bool,
) -> Option<Visitors<S>> {
    let mut it = Visitors {
        tasks: Vec::new(),
        pools: Vec::new(),
        levels: Vec::new(),
        of_stream: Vec::new(),
        place_of: Vec::new(),
        most: Vec::new(),
        shares: Vec::new(),
        services: Vec::new(),
    };
    for &arc in &net.stations[station].arcs {
        let (bounding, level) = (pool_of(net, arc), net.arcs[arc].priority);
        let is_stream = bounding.is_none_or(|task| caps[task].is_infinite());
        let sender = net.arcs[arc].source.node().map(|node| net.nodes[node].task);
        if is_stream && (!by_urgency || sender.is_some_and(|task| net.tasks[task].is_of_customers())) {
            return None;
        }
        let is_of =
            |place: &usize| if by_urgency { it.levels[*place] == level } else { bounding.is_some_and(|task| it.tasks[*place] == [task]) };
        let place = (0..it.pools.len()).find(is_of).unwrap_or(it.pools.len());
        if place == it.pools.len() {
            it.tasks.push(Vec::new());
            it.pools.push(Pool::new(0.0));
            it.levels.push(level);
            it.of_stream.push(false);
        }
        it.of_stream[place] |= is_stream;
        if is_stream {
            it.pools[place].sources = f64::INFINITY;
        } else if let Some(task) = bounding.filter(|task| !it.tasks[place].contains(task)) {
            if it.tasks.iter().any(|tasks| tasks.contains(&task)) {
                return None;
            }
            it.tasks[place].push(task);
            it.pools[place].sources += strands(net, caps, task);
        }
        let (held, _) = services_over(net, flow, arc);
        it.pools[place].add(flow.arc_rate[arc], waits[arc], held);
        let rest = rest_over(net, flow, arc);
        it.pools[place].left += flow.arc_rate[arc] * held * rest;
        it.services.push((flow.arc_rate[arc], Varied::new(held, rest, net.arcs[arc].target.is_some())));
        it.place_of.push(place);
    }
    let again = again_of_held(net, (flow, waits), station);
    it.place_of.iter().zip(again).for_each(|(&place, again)| it.pools[place].again += again);
    let are_known = !it.pools.is_empty() && it.pools.iter().all(|pool| pool.busy > 0.0);
    are_known.then_some(it)
}

/// How long a request over an arc is served, and until its reply.
pub(super) fn services_over<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> (S, S) {
    let it = &net.arcs[arc];
    let slice = it.source.node().map_or(S::from(0.0), |node| net.nodes[node].demand / net.nodes[node].slices);
    it.target.map_or((slice, slice), |entry| (flow.held(entry), flow.phases[entry][0]))
}

/// Mean rest of a service over an arc that ends with the reply, as found at any time.
pub(super) fn rest_over<S: Scalar>(net: &Net<S>, flow: &Flow<S>, arc: usize) -> S {
    let it = &net.arcs[arc];
    let (mean, _) = services_over(net, flow, arc);
    if mean <= 0.0 {
        return mean;
    }
    match (it.target, it.source.node()) {
        (Some(entry), _) => (mean + flow.phase_variances[entry][0] / mean) * 0.5,
        (None, node) => mean * (node.map_or(S::from(1.0), |node| net.nodes[node].cvsq) + 1.0) * 0.5,
    }
}

/// Visits a unit of time over each arc of a station after which the next of the same execution follows at once; none where others come, too, than threads.
fn again<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), station: usize) -> Option<Vec<S>> {
    let is_held = |&arc: &usize| net.arcs[arc].source.held().is_some();
    net.stations[station].arcs.iter().all(is_held).then(|| again_of_held(net, solved, station))
}

/// The same of threads, 0 of others.
pub(super) fn again_of_held<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), station: usize) -> Vec<S> {
    let arcs = &net.stations[station].arcs;
    let mut nodes: Vec<(usize, Inside<S>)> = Vec::new();
    for &arc in arcs {
        let it = &net.arcs[arc];
        let Some(node) = it.source.held() else { continue };
        let inside = nodes.iter().position(|(other, _)| *other == node).unwrap_or_else(|| {
            nodes.push((node, Inside::none()));
            nodes.len() - 1
        });
        let (_, until_reply) = services_over(net, flow, arc);
        nodes[inside].1.add(it.visits, waits[arc] + until_reply, it.target.is_none());
    }
    let of_arc = |&arc: &usize| {
        let node = net.arcs[arc].source.held()?;
        let (_, inside) = nodes.iter().find(|(other, _)| *other == node)?;
        Some(flow.arc_rate[arc] * inside.again(flow.elapsed[node], net.nodes[node].deterministic))
    };
    arcs.iter().map(|arc| of_arc(arc).unwrap_or(S::from(0.0))).collect()
}
