//! What a station's waits are made of: how long each request is served, how long its sender was away.
//!
//! A thread of node `i` that visits a station `y` times an execution was away either for a short gap inside the execution,
//! with probability `y/(1+y)` (`(y-1)/y` where their number is always the same; for slices at the processor, `(n-1)/n`), or for a long one
//! between executions, such that the mean over both is the mean time that a thread of its pool is away: `M/ℓ_pool - (W + s)`.

use super::{
    super::net::{Arc, Source},
    Sweep,
    bounded::Bounded,
    layout::Layout,
};
use crate::{model::Scalar, solve::erlang::erlang_c};

/// Gaps shorter than this fraction of the mean service count as this long.
pub(super) const SHORTEST_GAP: f64 = 1e-6;

/// One arc as its station sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<S> {
    pub rate: S,
    pub wait: S,
    /// Service until the reply.
    pub first: S,
    /// Service after it.
    pub late: S,
    /// Mean rest of a service until the reply, and of one after it, as found by threads that come back ([`super::scarce`]).
    pub first_rest: S,
    pub late_rest: S,
    /// The same, as found by Poisson arrivals: `s (1 + c²)/2`.
    pub full_first_rest: S,
    pub full_late_rest: S,
    pub gap: Gap<S>,
    /// Whether no customer has a part in it, and no number of threads bounds it.
    pub from_outside: bool,
    /// At processors in which part it is as if from outside: in what chance one of the threads that bound it is idle. 1 and 0 where it is, or is of customers.
    pub as_from_outside: S,
}

/// How long an arriving thread was away: a mixture of short gaps inside an execution and long ones between executions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap<S> {
    pub short_share: S,
    pub short: S,
    /// None for arrivals that no number of threads bounds.
    pub long: Option<S>,
}

impl<S: Scalar> Gap<S> {
    /// The mean of `after` a gap, its long ones of mean `long`.
    pub fn mean(&self, long: S, after: impl Fn(S) -> S) -> S {
        let of_long = after(long);
        if self.short_share > 0.0 { of_long + self.short_share * (after(self.short) - of_long) } else { of_long }
    }
}

/// The visit over arc `a`, its gaps not yet known.
pub(super) fn visit<S: Scalar>(sweep: &Sweep<'_, S>, a: usize, wait: S) -> Visit<S> {
    let net = sweep.net;
    let arc = &net.arcs[a];
    let zero = S::from(0.0);
    let gap = Gap { short_share: zero, short: zero, long: None };
    let rate = sweep.flow.arc_rate[a];
    let (from_outside, as_from_outside) = from_outside(sweep, arc);
    let Some(entry) = arc.target else {
        let Source::Held(node) = arc.source else { unreachable!("only a thread runs on a processor") };
        let it = &net.nodes[node];
        let first = it.demand / it.slices;
        let rest = first * (it.cvsq + 1.0) * 0.5;
        return Visit {
            rate,
            wait,
            first,
            late: zero,
            first_rest: rest,
            late_rest: zero,
            full_first_rest: rest,
            full_late_rest: zero,
            gap,
            from_outside,
            as_from_outside,
        };
    };
    let rest = |mean: S, variance: S| if mean > 0.0 { (mean + variance / mean) * 0.5 } else { zero };
    let ([first, second, third], [v1, v2, v3]) = (sweep.flow.phases[entry], sweep.flow.phase_variances[entry]);
    let late = second + third;
    let (first_rest, late_rest) = (rest(first, v1), rest(late, v2 + v3));
    Visit {
        rate,
        wait,
        first,
        late,
        first_rest,
        late_rest,
        full_first_rest: first_rest,
        full_late_rest: late_rest,
        gap,
        from_outside,
        as_from_outside,
    }
}

/// Whether what comes over an arc is from outside, and in which part it is as if.
fn from_outside<S: Scalar>(sweep: &Sweep<'_, S>, arc: &Arc<S>) -> (bool, S) {
    let net = sweep.net;
    let [none, all] = [S::from(0.0), S::from(1.0)];
    let Some(node) = arc.source.node() else { return (true, all) };
    let it = &net.nodes[node];
    let n = net.classes.len();
    let shares = &sweep.exclusion.class_shares[it.kin * n..(it.kin + 1) * n];
    if shares.iter().any(|share| share.value() != 0.0) {
        return (false, none);
    }
    let bounding = arc.source.held().map(|_| net.tasks[it.task].bounded_by).filter(|&task| sweep.populations.caps[task].is_finite());
    let Some(bounding) = bounding else { return (true, all) };
    // At the only task of a processor it is told by how many threads are busy.
    let is_of_this_task = |&other: &usize| net.arcs[other].source.node().is_some_and(|node| net.nodes[node].task == it.task);
    if arc.target.is_some() || net.stations[arc.station].arcs.iter().all(is_of_this_task) {
        return (false, none);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of threads, checked when compiled")]
    let threads = sweep.populations.caps[bounding] as u32;
    (false, -erlang_c(threads, sweep.flow.busy_threads(net, bounding)) + 1.0)
}

/// What an execution of a node does at the station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside<S> {
    visits: S,
    time: S,
    host: bool,
}

impl<S: Scalar> Inside<S> {
    pub fn none() -> Self {
        Self { visits: S::from(0.0), time: S::from(0.0), host: false }
    }

    /// So many visits, to the node's processor or elsewhere, of such a time each.
    pub fn add(&mut self, visits: S, time: S, host: bool) {
        self.visits += visits;
        self.time += visits * time;
        self.host = host;
    }

    /// The share of gaps that are inside an execution of the node, which takes so long, and their mean.
    pub fn gaps(&self, elapsed: S, deterministic: bool) -> (S, S) {
        let &Self { visits: y, time, host } = self;
        let zero = S::from(0.0);
        let away = elapsed - time;
        let away = if away > 0.0 { away } else { zero };
        let (share, gaps) = match (host, deterministic) {
            (true, _) => ((y - 1.0) / y, y - 1.0),
            (false, true) => ((y - 1.0) / y, y + 1.0),
            (false, false) => (y / (y + 1.0), y + 1.0),
        };
        (if share > 0.0 { share } else { zero }, if gaps > 0.0 { away / gaps } else { zero })
    }

    /// Chance that one of these visits is followed by another at once: a gap that is short beside the time of a visit is none.
    pub fn again(&self, elapsed: S, deterministic: bool) -> S {
        let (share, short) = self.gaps(elapsed, deterministic);
        let stay = self.time / self.visits;
        if stay > 0.0 { share * stay / (stay + short) } else { share }
    }
}

/// Sets the gaps of all visits of a station.
pub(super) fn set_gaps<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, visits: &mut [Visit<S>], groups: &mut Vec<Inside<S>>) {
    let net = sweep.net;
    groups.clear();
    groups.resize(layout.groups.len(), Inside::none());
    for ((v, &a), group) in visits.iter().zip(&layout.arcs).zip(&layout.group_of) {
        let (arc, Some(group)) = (&net.arcs[a], *group) else { continue };
        groups[group].add(arc.visits, v.wait + v.first, arc.target.is_none());
    }
    for (v, group) in visits.iter_mut().zip(&layout.group_of) {
        let Some(group) = *group else { continue };
        let node = layout.groups[group];
        (v.gap.short_share, v.gap.short) = groups[group].gaps(sweep.flow.elapsed[node], net.nodes[node].deterministic);
    }
    for (pool, &task) in layout.pools.iter().enumerate() {
        set_long_gap(sweep.populations.strands_at(net, task, layout.station), visits, |x| layout.pool_of[x] == Some(pool));
    }
    for Bounded { task, arcs, callers } in &layout.bounded {
        let threads = callers.iter().map(|&task| sweep.populations.strands(net, task)).sum::<f64>();
        let threads = threads.min(sweep.populations.strands(net, *task));
        set_long_gap(threads, visits, |x| arcs.binary_search(&x).is_ok());
    }
}

/// Sets the long gaps of the visits `among` all that are of so many threads.
fn set_long_gap<S: Scalar>(threads: f64, visits: &mut [Visit<S>], among: impl Fn(usize) -> bool) {
    let zero = S::from(0.0);
    let (mut rate, mut inside, mut short, mut short_time) = (zero, zero, zero, zero);
    let mut service = zero;
    for (_, v) in visits.iter().enumerate().filter(|(x, _)| among(*x)) {
        rate += v.rate;
        inside += v.rate * (v.wait + v.first);
        service += v.rate * v.first;
        short += v.rate * v.gap.short_share;
        short_time += v.rate * v.gap.short_share * v.gap.short;
    }
    if threads.is_infinite() || rate <= 0.0 {
        return;
    }
    let least = service / rate * SHORTEST_GAP + f64::MIN_POSITIVE;
    let floor = |z: S| if z > least { z } else { least };
    let away = (S::from(threads) - inside) / rate;
    let long_share = S::from(1.0) - short / rate;
    let long = if long_share > SHORTEST_GAP { (away - short_time / rate) / long_share } else { away };
    for (_, v) in visits.iter_mut().enumerate().filter(|(x, _)| among(*x)) {
        v.gap.long = Some(floor(long));
        v.gap.short = floor(v.gap.short);
    }
}
