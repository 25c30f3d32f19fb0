//! How busy sources keep a processor that is all they share.
//!
//! One server is idle while nobody is there, and whoever waits for a task whose threads are there alone waits for the server
//! ([`super::super::customers`]). So of customers that do nothing else but think, the share `U` of time that the server is busy hardly
//! depends on who waits where: it is that of the chain of the kinds ([`super`]). Of several servers some are idle while few threads are
//! there and the others wait for them, which a chain of these tells ([`super::few_threads`]). Equations of mean values find who waits
//! for a thread and who waits for a server apart, as if the one could happen while the other does not, and count such times twice: of
//! seven customers who are all but always at one core, .19 of it was idle. With `L` that wait of `N` sources where the servers are as
//! busy as the chain says, `ψ` at the station goes on to
//!
//! ```text
//! ψ ← ψ (U°/U)^(N/L)        L = N - (N - n°) U/U° - U        U° and n° in the network, n there
//! ```
//!
//! until `U° = U`, where some wait for the servers themselves ([`HERE`]): by so much longer waits, with the rest as it is, it is as
//! busy. How the wait is shared is left to the network, where who is served next is known. Of demands that are not exponential nothing
//! is corrected.

use super::{
    super::{
        super::{
            flow::Flow,
            net::{CallGroup, Discipline, Net},
        },
        customers::Sources,
        layout::Layout,
    },
    WAITS, apart_of,
    by_source::{Classes, by_source},
    few_threads::{FewThreads, Slices},
    ratio::{Known, at_least, busy_with, within},
    sources::ramp,
    visitors::{Pool, Visitors, services_over},
};
use crate::model::Scalar;

/// The largest correction at once, as a logarithm.
const FURTHEST: f64 = 0.35;
/// Requests that wait for the servers themselves, over what is served: up to the one nothing is corrected, as longer waits there would change nothing, from the
/// other in full.
const HERE: [f64; 2] = [0.02, 0.1];
/// Of what is served, the least that is to be of those who are free of a task's threads.
const LEAST_FREE: f64 = 1e-6;

/// How far `ψ` of what comes to a station is from what it is to be, as a logarithm; none where no chain of all sources tells it.
pub(super) fn far_from_busy<S: Scalar>(
    net: &Net<S>,
    solved: (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    caps: &[f64],
    station: usize,
) -> Option<S> {
    let (it, layout) = (&net.stations[station], &classes.layouts[station]);
    let is_exponential = |&node: &usize| net.nodes[node].cvsq.value() == 1.0;
    if it.servers.is_infinite() || layout.most <= it.servers || !layout.are_nowhere_else || !layout.groups.iter().all(is_exponential) {
        return None;
    }
    let (all, busy) = if it.discipline == Discipline::Sharing {
        let all = all_there(net, solved, layout);
        (all, busy_cores(net, solved, layout, &all).filter(|_| it.servers > 1.0 || layout.origins.len() == 1)?)
    } else {
        let sources = layout.sources_apart(net, caps)?;
        let visitors = by_source(net, solved, classes, (caps, sources), station)?;
        let all = visitors.pools.iter().fold(Pool::new(0.0), |all, pool| all.with(pool));
        let busy = match sources {
            _ if it.servers == 1.0 => busy_server(&visitors, &visitors.sources(net, caps), all.busy)?,
            Sources::Classes => busy_cores(net, solved, layout, &all)?,
            Sources::Sets => return None,
        };
        (all, busy)
    };
    let longer = busy / all.busy;
    // Of those who are away, as many more come as the server is to be busier.
    let waiting = (all.there - all.sources) * longer - busy + all.sources;
    let waiting = if waiting > 0.0 { waiting } else { all.there - all.busy };
    let far = within(-longer.ln() * all.sources / waiting, [-FURTHEST, FURTHEST]);
    let here = it.arcs.iter().fold(S::from(0.0), |sum, &arc| sum + solved.0.arc_rate[arc] * solved.1[arc]);
    let far = far * ramp(waiting / (waiting + busy), WAITS) * ramp(here / all.busy, HERE);
    far.value().is_finite().then_some(far)
}

/// The customers of a shared processor, in a stay for each of their cycles.
fn all_there<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), layout: &Layout) -> Pool<S> {
    let mut all = Pool::new(0.0);
    for &arc in &layout.arcs {
        all.rate += flow.arc_rate[arc];
        all.busy += flow.arc_rate[arc] * services_over(net, flow, arc).0;
    }
    all.again = all.rate;
    for (&task, &cycles) in net.classes.iter().zip(&flow.class_rate).filter(|(task, _)| layout.origins.contains(task)) {
        all.sources += net.tasks[task].threads;
        all.again -= cycles;
        let calls = net.nodes.iter().filter(|node| node.task == task).flat_map(|node| &node.calls);
        for arc in calls.flat_map(CallGroup::arcs) {
            all.there += flow.arc_rate[arc] * (waits[arc] + flow.first_phase(net, arc));
        }
    }
    all
}

/// How busy one server is with what comes, of which so much is served in the network: the mean over its kinds; none where no chain of all sources tells it.
fn busy_server<S: Scalar>(visitors: &Visitors<S>, numbers: &[f64], all: S) -> Option<S> {
    let mut known = Known::nothing();
    let mut busy = S::from(0.0);
    for (mine, pool) in visitors.pools.iter().enumerate() {
        busy += pool.busy * busy_with(apart_of(&visitors.pools, numbers, mine), &mut known)?;
    }
    Some(busy / all)
}

/// How busy servers are with `all` that comes, where it waits for threads of one task there, and of others only on the way to it; none elsewhere.
fn busy_cores<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), layout: &Layout, all: &Pool<S>) -> Option<S> {
    let it = &net.stations[layout.station];
    let makes_wait = |&task: &usize| {
        let queue = net.tasks[task].station.filter(|_| layout.inside[task]);
        queue.is_some_and(|queue| net.stations[queue].arcs.iter().any(|&arc| flow.arc_rate[arc] * waits[arc] > 0.0))
    };
    let few: Vec<usize> = (0..net.tasks.len()).filter(makes_wait).collect();
    let is_last = |&task: &usize| {
        let lead = lead_to(net, task);
        few.iter().all(|&other| lead[other])
    };
    let task = few.iter().copied().find(is_last)?;
    let works = works(net);
    let zero = S::from(0.0);
    let (mut executions, mut number, mut work) = (zero, zero, zero);
    for &entry in &net.tasks[task].entries {
        let (of_number, of_work) = works[entry]?;
        executions += flow.entry_rate[entry];
        number += flow.entry_rate[entry] * of_number;
        work += flow.entry_rate[entry] * of_work;
    }
    let free = (all.rate - number, all.busy - work);
    if work <= 0.0 || free.1 <= all.busy * LEAST_FREE || free.0 <= all.rate * LEAST_FREE {
        return None;
    }
    let (stays, all_as_one) = (all.rate - all.again, all.kind());
    let it = FewThreads {
        servers: it.servers,
        is_shared: it.discipline == Discipline::Sharing,
        sources: all.sources,
        away: at_least(all_as_one.away, all_as_one.service),
        most: layout.most,
        threads: net.tasks[task].threads,
        visits: executions / stays,
        free: Slices { mean: free.1 / free.0, number: free.0 / stays },
        bound: Slices { mean: work / number, number: number / executions },
    };
    Some(it.busy())
}

/// Which tasks are a task or wait for it.
fn lead_to<S>(net: &Net<S>, to: usize) -> Vec<bool> {
    let mut lead = vec![false; net.tasks.len()];
    lead[to] = true;
    for &task in net.order.iter().rev() {
        let nodes = net.tasks[task].entries.iter().flat_map(|&entry| net.phases(entry)).flatten();
        let calls = nodes.flat_map(|node| &net.nodes[node].calls);
        let mut called = calls.flat_map(CallGroup::arcs).filter_map(|arc| net.arcs[arc].target);
        lead[task] |= called.any(|entry| lead[net.entries[entry].task]);
    }
    lead
}

/// Slices of an execution of each entry and of what works for it, and how long they are in sum; none of what is a graph.
fn works<S: Scalar>(net: &Net<S>) -> Vec<Option<(S, S)>> {
    let mut works = vec![None; net.entries.len()];
    for &entry in net.order.iter().rev().flat_map(|&task| &net.tasks[task].entries) {
        works[entry] = net.phases(entry)[0].and_then(|node| {
            let node = &net.nodes[node];
            let mut sum = if node.uses_processor { (node.slices, node.demand) } else { (S::from(0.0), S::from(0.0)) };
            for arc in node.calls.iter().flat_map(CallGroup::arcs) {
                let (number, work) = works[net.arcs[arc].target?]?;
                sum.0 += net.arcs[arc].visits * number;
                sum.1 += net.arcs[arc].visits * work;
            }
            Some(sum)
        });
    }
    works
}
