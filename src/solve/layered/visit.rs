//! What a station's waits are made of: how long each request is served, how long its sender was away, and whom it can meet.
//!
//! A thread of node `i` that visits a station `y` times an execution was away either for a short gap inside the execution,
//! with probability `y/(1+y)` (for slices at the processor, `(n-1)/n`), or for a long one between executions, such that the
//! mean over both is the mean time that a thread of its pool is away: `M/ℓ_pool - (W + s)`.

use super::{
    compile::Source,
    exclusion::kin_of,
    flow::first_phase,
    station::{Layout, Sweep},
};
use crate::model::Scalar;

/// Weight of the excess variation of a task's service in its rest. Fitted, not derived: with weight 1 the effect is
/// overestimated, since a slow service also slows the tasks that feed the queue.
const VARIATION_WEIGHT: f64 = 0.35;
/// Gaps shorter than this fraction of the mean service count as this long.
const SHORTEST_GAP: f64 = 1e-6;

/// One arc as its station sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<S> {
    pub arc: usize,
    pub rate: S,
    pub wait: S,
    /// Service until the reply.
    pub first: S,
    /// Service after it.
    pub late: S,
    pub first_cvsq: S,
    pub late_cvsq: S,
    pub gap: Gap<S>,
}

/// How long an arriving thread was away: a mixture of short gaps inside an execution and long ones between executions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap<S> {
    pub short_share: S,
    pub short: S,
    pub long: S,
}

/// The visit over arc `a`, its gaps not yet known.
pub(super) fn visit<S: Scalar>(sweep: &Sweep<'_, S>, a: usize) -> Visit<S> {
    let net = sweep.net;
    let arc = &net.arcs[a];
    let (zero, one) = (S::from(0.0), S::from(1.0));
    let gap = Gap { short_share: zero, short: zero, long: S::from(f64::INFINITY) };
    let (rate, wait) = (sweep.flow.arc_rate[a], sweep.waits.wait[a]);
    let Some(entry) = arc.target else {
        let Source::Held(node) = arc.source else { unreachable!("only a thread runs on a processor") };
        let it = &net.nodes[node];
        let first = it.demand / it.slices;
        return Visit { arc: a, rate, wait, first, late: zero, first_cvsq: it.cvsq, late_cvsq: one, gap };
    };
    let weighted = |mean: S, variance: S| {
        if mean > 0.0 { one + (variance / (mean * mean) - 1.0) * VARIATION_WEIGHT } else { one }
    };
    let phases = net.entries[entry].phases;
    let first = first_phase(net, &sweep.flow.elapsed, a);
    let first_variance = phases[0].map_or(zero, |n| sweep.flow.variance[n]);
    let (mut late, mut late_variance) = (zero, zero);
    for node in phases[1..].iter().flatten() {
        late += sweep.flow.elapsed[*node];
        late_variance += sweep.flow.variance[*node];
    }
    Visit { arc: a, rate, wait, first, late, first_cvsq: weighted(first, first_variance), late_cvsq: weighted(late, late_variance), gap }
}

/// Sets the gaps of all visits of a station.
pub(super) fn set_gaps<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, visits: &mut [Visit<S>]) {
    let net = sweep.net;
    let zero = S::from(0.0);
    for (group, &node) in layout.groups.iter().enumerate() {
        let (mut y, mut inside) = (zero, zero);
        let mut host = false;
        for (v, _) in visits.iter().zip(&layout.group_of).filter(|(_, g)| **g == Some(group)) {
            y += net.arcs[v.arc].visits;
            inside += net.arcs[v.arc].visits * (v.wait + v.first);
            host = net.arcs[v.arc].target.is_none();
        }
        let away = sweep.flow.elapsed[node] - inside;
        let away = if away > 0.0 { away } else { zero };
        let (share, gaps) = if host { ((y - 1.0) / y, y - 1.0) } else { (y / (y + 1.0), y + 1.0) };
        let short = if gaps > 0.0 { away / gaps } else { zero };
        for (v, _) in visits.iter_mut().zip(&layout.group_of).filter(|(_, g)| **g == Some(group)) {
            v.gap.short_share = share;
            v.gap.short = short;
        }
    }
    for (pool, &task) in layout.pools.iter().enumerate() {
        set_long_gap(sweep, layout, visits, pool, task);
    }
}

fn set_long_gap<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, visits: &mut [Visit<S>], pool: usize, task: usize) {
    let zero = S::from(0.0);
    let threads = sweep.populations.cap(sweep.net, task);
    let (mut rate, mut inside, mut short, mut short_time) = (zero, zero, zero, zero);
    let mut service = zero;
    for (v, _) in visits.iter().zip(&layout.pool_of).filter(|(_, p)| **p == Some(pool)) {
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
    for (v, _) in visits.iter_mut().zip(&layout.pool_of).filter(|(_, p)| **p == Some(pool)) {
        v.gap.long = floor(long);
        v.gap.short = floor(v.gap.short);
    }
}

/// `K` between the arcs of a station. The first slice of a second phase starts at the reply, so it meets what its first
/// phase could have met.
pub(super) fn keep_factors<S: Scalar>(sweep: &Sweep<'_, S>, visits: &[Visit<S>]) -> Vec<S> {
    let net = sweep.net;
    let one = S::from(1.0);
    let kin: Vec<Option<usize>> = visits.iter().map(|v| net.arcs[v.arc].source.held().map(|node| kin_of(net, node))).collect();
    let mut keep = Vec::with_capacity(visits.len() * visits.len());
    for (a, v) in visits.iter().enumerate() {
        let first_slice = net.arcs[v.arc].source.held().and_then(|node| {
            let it = &net.nodes[node];
            let late_slice = net.arcs[v.arc].target.is_none() && it.phase > 0 && net.tasks[it.task].class.is_none();
            late_slice.then(|| (it.entry, it.slices.recip()))
        });
        for other in &kin {
            keep.push(match (kin[a], *other) {
                (Some(i), Some(j)) => {
                    let k = sweep.exclusion.factor(i, j);
                    match first_slice {
                        Some((entry, weight)) => k * (one - weight) + sweep.exclusion.factor(entry, j) * weight,
                        None => k,
                    }
                }
                _ => one,
            });
        }
    }
    keep
}
