//! What comes to a processor of its customers, where tasks which work for them share it, or to one thread ([`super::super::customers`]).
//!
//! Whichever task runs it, a customer's next slice may follow at once ([`super::super::previous`]), behind those who came during the
//! last one. Where these take longer, many of them are met while they wait by whoever comes at any time, and few by who was here a
//! moment ago; where they are shorter, it is the reverse. Equations of mean values know of neither. So each class of customers is a
//! kind, back at once as often as
//!
//! ```text
//! r_c = Σ_b λ_b ρ_b(c) σ_b / Σ_b λ_b ρ_b(c)
//! σ_b = Σ_k p_bk R_b/(R_b + a_bk) + Π_b (1/n_b - first slices among these)        R_b = W_b + s_b
//! ```
//!
//! the last, of a first slice, since a request that has waited for its thread begins when another one ends. Tasks whose threads are
//! nowhere else are a part of the processor's queue: who waits for one of them waits for the processor, is there, and comes once,
//! however few the threads are. Where threads are fewer than customers, and some also elsewhere, the sources are pools with those that
//! work for them, no more than can be here at once ([`super::super::super::at_once`]).
//!
//! Before a task of one thread that classes call from tasks with a thread for each of their customers it is these customers, too, who come, and
//! not the callers' threads: each class has its own time away and services.
//!
//! | symbol | is |
//! |---|---|
//! | `λ_b`, `W_b`, `s_b` | slices of row `b` a unit of time, the wait for one, and how long it is served |
//! | `ρ_b(c)`, `n_b` | share of the class in them, and how many an execution has |
//! | `p_bk`, `a_bk` | part of them that come after a slice `k`, and how long after |
//! | `Π_b` | chance that a request waits for its thread |

use super::{
    super::{
        super::{flow::Flow, net::Net},
        customers::{Set, Sources},
        layout::Layout,
        previous::Courses,
    },
    mixed::Varied,
    visitors::{Pool, Visitors, again_of_held, rest_over, services_over},
};
use crate::model::Scalar;

/// Shares of classes in what is done, by kin and class.
#[derive(Clone, Copy)]
pub(in super::super::super) struct Classes<'a, S> {
    pub shares: &'a [S],
    pub layouts: &'a [Layout],
}

impl Layout {
    /// Mean service of the sources of what comes over each arc, where `visits` are the rates and services and `shares_of` a row the classes in it.
    pub(in super::super) fn services_of_sources<'s, S: Scalar>(
        &'s self,
        sources: Sources,
        visits: &[(S, S)],
        shares_of: impl Fn(usize) -> &'s [S],
    ) -> Vec<S> {
        let zero = S::from(0.0);
        let mut sums: Vec<(S, S)> = Vec::new();
        for (&(rate, service), &r) in visits.iter().zip(&self.row_of) {
            for (of, part) in self.parts(sources, r, shares_of(r)).enumerate() {
                sums.resize(sums.len().max(of + 1), (zero, zero));
                sums[of].0 += rate * part;
                sums[of].1 += rate * part * service;
            }
        }
        let means: Vec<S> = sums.into_iter().map(|(rate, busy)| if rate > 0.0 { busy / rate } else { zero }).collect();
        let of_arc = |&r: &usize| self.parts(sources, r, shares_of(r)).zip(&means).fold(zero, |sum, (part, &mean)| sum + part * mean);
        self.row_of.iter().map(of_arc).collect()
    }
}

/// What comes to a station of its sources; none where nothing comes.
pub(super) fn by_source<S: Scalar>(
    net: &Net<S>,
    (flow, unknowns): (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    (caps, sources): (&[f64], Sources),
    station: usize,
) -> Option<Visitors<S>> {
    let layout = &classes.layouts[station];
    let n = net.classes.len();
    let shares_of = |kin: Option<usize>| kin.map_or(&[][..], |kin| &classes.shares[kin * n..(kin + 1) * n]);
    let (tasks, most): (Vec<Vec<usize>>, Vec<f64>) = match sources {
        Sources::Classes => net.classes.iter().zip(&layout.most_of_classes).map(|(&class, &most)| (vec![class], most)).unzip(),
        Sources::Sets => layout.sets.iter().map(|set| (set.pools.iter().map(|&pool| layout.pools[pool]).collect(), set.most)).unzip(),
    };
    let mut pools = vec![Pool::new(0.0); tasks.len()];
    let mut shares = Vec::with_capacity(layout.arcs.len() * tasks.len());
    let mut services = Vec::with_capacity(layout.arcs.len());
    let courses = Courses { net, flow, waits: unknowns, layout };
    let waits = |entry: usize| {
        if layout.inside[net.entries[entry].task] { S::from(0.0) } else { chance_of_wait(net, (flow, unknowns), classes, entry) }
    };
    // Between two calls a thread does what it does elsewhere.
    let of_callers = (station >= net.n_processors).then(|| again_of_held(net, (flow, unknowns), station));
    for (x, (&arc, &r)) in layout.arcs.iter().zip(&layout.row_of).enumerate() {
        let (rate, wait, (held, _)) = (flow.arc_rate[arc], unknowns[arc], services_over(net, flow, arc));
        let again = of_callers.as_ref().map_or_else(|| again(courses, r, wait + held, waits) * rate, |again| again[x]);
        for (pool, part) in pools.iter_mut().zip(layout.parts(sources, r, shares_of(layout.rows[r].kin))) {
            pool.add(rate * part, wait, held);
            pool.again += part * again;
            shares.push(part);
        }
        services.push((rate, Varied::new(held, rest_over(net, flow, arc), net.arcs[arc].target.is_some())));
    }
    add_waits_inside(net, (flow, unknowns), layout, sources, (&shares_of, &mut pools));
    let mut it = Visitors {
        levels: vec![0.0; pools.len()],
        of_stream: vec![false; pools.len()],
        tasks,
        pools,
        place_of: Vec::new(),
        most,
        shares,
        services,
    };
    it.leave_out_who_never_comes();
    let numbers = it.sources(net, caps);
    it.pools.iter_mut().zip(numbers).for_each(|(pool, sources)| pool.sources = sources);
    (!it.pools.is_empty()).then_some(it)
}

/// Adds those who wait for threads that are nowhere else than at a station to who is there of its sources.
fn add_waits_inside<'s, S: Scalar>(
    net: &Net<S>,
    (flow, unknowns): (&Flow<S>, &[S]),
    layout: &Layout,
    sources: Sources,
    (shares_of, pools): (&impl Fn(Option<usize>) -> &'s [S], &mut [Pool<S>]),
) {
    let place = |task: usize| layout.pools.iter().position(|&pool| pool == task);
    for task in (0..net.tasks.len()).filter(|&task| layout.inside[task]) {
        let bounding = place(net.tasks[task].bounded_by);
        for &arc in net.tasks[task].station.iter().flat_map(|&station| &net.stations[station].arcs) {
            let waiting = flow.arc_rate[arc] * unknowns[arc];
            if sources == Sources::Classes {
                pools.iter_mut().zip(shares_of(net.kin_of_arc(arc))).for_each(|(pool, &share)| pool.there += waiting * share);
                continue;
            }
            let sender = net.arcs[arc].source.held().and_then(|node| place(net.tasks[net.nodes[node].task].bounded_by));
            let is_of = |set: &Set| [bounding, sender].iter().all(|it| it.is_some_and(|pool| set.pools.contains(&pool)));
            layout.sets.iter().zip(&mut *pools).filter(|(set, _)| is_of(set)).for_each(|(_, pool)| pool.there += waiting);
        }
    }
}

/// Part of the slices of a row, with such a stay, that come at once after another one: of the same request, or of one for which this has waited, with such a chance
/// before a thread of an entry's task.
fn again<S: Scalar>(courses: Courses<'_, S>, r: usize, stay: S, waits: impl Fn(usize) -> S) -> S {
    let (mut inside, mut first) = (S::from(0.0), S::from(0.0));
    courses.for_each_way(r, |part, _, away, begins| {
        let part = if stay > 0.0 { part * stay / (stay + away) } else { part };
        *(if begins { &mut first } else { &mut inside }) += part;
    });
    let node = courses.layout.rows[r].group.map(|group| &courses.net.nodes[courses.layout.groups[group]]);
    let Some(node) = node.filter(|node| node.phase == 0) else { return inside };
    let waited = waits(node.entry);
    inside + first + waited * (node.slices.recip() - first)
}

/// The chance that a request to an entry waits for a thread.
fn chance_of_wait<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), classes: Classes<'_, S>, entry: usize) -> S {
    let is_of = |arc: usize| net.arcs[arc].target == Some(entry);
    let (rate, waited) = that_wait(net, solved, classes, net.entries[entry].task, is_of);
    if rate > 0.0 { waited / rate } else { rate }
}

/// Executions of a task a unit of time that begin at once when another one ends, as their requests have waited for the thread.
pub(super) fn that_waited<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), classes: Classes<'_, S>, task: usize) -> S {
    that_wait(net, solved, classes, task, |_| true).1
}

/// Requests a unit of time to a task over such arcs, and those of them that wait for a thread.
fn that_wait<S: Scalar>(
    net: &Net<S>,
    (flow, unknowns): (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    task: usize,
    is_of: impl Fn(usize) -> bool,
) -> (S, S) {
    let layout = net.tasks[task].station.map(|station| &classes.layouts[station]);
    let arcs = layout.into_iter().flat_map(|it| it.arcs.iter().zip(&it.row_of).map(|(&arc, &row)| (arc, it.places().probability + row)));
    arcs.filter(|&(arc, _)| is_of(arc)).fold((S::from(0.0), S::from(0.0)), |(rate, waited), (arc, chance)| {
        (rate + flow.arc_rate[arc], waited + flow.arc_rate[arc] * unknowns[chance])
    })
}
