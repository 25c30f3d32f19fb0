//! How busy sources keep a processor that is all they share.
//!
//! One server is idle while nobody is there, and whoever waits for a task whose threads are there alone waits for the server
//! ([`super::super::customers`]). So of customers that do nothing else but think, the share `U` of time that the server is busy hardly
//! depends on who waits where: it is that of the chain of the kinds ([`super`]), or of their number, where there are too many for that. Several servers, and shared ones, are as busy as the
//! number of customers there makes them ([`super::by_number`]): in order of arrival as far as slices of a class are alike, or many in a stay ([`UNLIKE`], which is
//! chosen: of slices of .2 and 3 in a stay each, three cores are 1.4 % less busy than shared ones, which is a third of what is waited).
//! Some of them are idle while few threads are there and the others wait for these, which a chain tells
//! ([`super::few_threads`]). Equations of mean values find who waits for a thread and who waits for a server apart, as if the one could
//! happen while the other does not, and count such times twice: of seven customers who are all but always at one core, .19 of it was
//! idle. With `L` that wait of `N` sources where the servers are as busy as they are to be, `ψ` at the station goes on to
//!
//! ```text
//! ψ ← ψ (U°/U)^(N/L)        L = N - (N - n°) U/U° - U        U° and n° in the network, n there
//! ```
//!
//! until `U° = U`, where some wait for the servers themselves ([`HERE`]): by so much longer waits, with the rest as it is, it is as
//! busy. How the wait is shared is left to the network, where who is served next is known. Of demands that are not exponential nothing
//! is corrected in order of arrival, nor is one server where it is known who is behind whom ([`super::super::follows`]): five customers of slices of .01 and .1 keep it 2.8 % less busy than this says.

use super::{
    super::{
        super::{
            flow::Flow,
            net::{CallGroup, Discipline, Net},
        },
        layout::Layout,
    },
    WAITS, apart_of,
    by_number::{Customers, busy_servers},
    by_source::{Classes, by_source},
    few_threads::FewThreads,
    ratio::{Known, busy_with, within},
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
/// How unlike slices of a class may be, over how many a stay has, in order of arrival at several cores: up to the one, these are as busy as if
/// they were shared, from the other nothing is told.
const UNLIKE: [f64; 2] = [0.15, 0.5];

/// How far `ψ` of what comes to a station is from what it is to be, as a logarithm; none where no chain of all sources tells it.
pub(super) fn far_from_busy<S: Scalar>(
    net: &Net<S>,
    solved: (&Flow<S>, &[S]),
    classes: Classes<'_, S>,
    caps: &[f64],
    station: usize,
) -> Option<S> {
    let (it, layout) = (&net.stations[station], &classes.layouts[station]);
    // Shared cores are as busy, however services vary.
    let is_told = |&node: &usize| it.discipline == Discipline::Sharing || net.nodes[node].cvsq.value() == 1.0;
    let is_followed = it.servers <= 1.0 && layout.follows.is_some();
    if it.servers.is_infinite()
        || layout.most <= it.servers
        || is_followed
        || !layout.are_nowhere_else
        || !layout.groups.iter().all(is_told)
    {
        return None;
    }
    let by_number = || {
        let customers = customers(net, solved, classes, layout);
        let all = customers.iter().fold(Pool::new(0.0), |all, pool| all.with(pool));
        Some((all, busy_cores(net, solved, layout, &customers)?))
    };
    let (all, busy) = match it.discipline {
        Discipline::Fcfs if it.servers == 1.0 => {
            let sources = layout.sources_apart(net, caps)?;
            let visitors = by_source(net, solved, classes, (caps, sources), station)?;
            let all = visitors.pools.iter().fold(Pool::new(0.0), |all, pool| all.with(pool));
            // Of more customers than a chain tells apart some are there nearly always, or all are as good as alike.
            match busy_server(&visitors, &visitors.sources(net, caps), all.busy) {
                Some(busy) => (all, busy),
                None => by_number()?,
            }
        }
        Discipline::Fcfs | Discipline::Sharing => by_number()?,
        _ => return None,
    };
    let longer = busy / all.busy;
    // Of those who are away, as many more come as the server is to be busier.
    let waiting = (all.there - all.sources) * longer - busy + all.sources;
    let waiting = if waiting > 0.0 { waiting } else { all.there - all.busy };
    let far = within(-longer.ln() * all.sources / waiting, [-FURTHEST, FURTHEST]);
    let here = it.arcs.iter().fold(S::from(0.0), |sum, &arc| sum + solved.0.arc_rate[arc] * solved.1[arc]);
    let far = far * ramp(waiting / (waiting + busy), WAITS) * ramp(here / all.busy, HERE);
    let far = if it.discipline == Discipline::Fcfs && it.servers > 1.0 { far * are_alike(net, solved.0, classes, layout) } else { far };
    far.value().is_finite().then_some(far)
}

/// Slices of a class over an arc a unit of time, and how long one is.
fn of_class_over<S: Scalar>(net: &Net<S>, flow: &Flow<S>, classes: Classes<'_, S>, class: usize, arc: usize) -> (S, S) {
    let share = net.kin_of_arc(arc).map_or(S::from(0.0), |kin| classes.shares[kin * net.classes.len() + class]);
    (flow.arc_rate[arc] * share, services_over(net, flow, arc).0)
}

/// How far slices are served as if they were shared: what they vary within the classes, `c²` of their means, over their number in a stay.
fn are_alike<S: Scalar>(net: &Net<S>, flow: &Flow<S>, classes: Classes<'_, S>, layout: &Layout) -> S {
    let zero = S::from(0.0);
    let (mut busy, mut squares, mut stays) = (zero, zero, zero);
    for (class, _) in net.classes.iter().enumerate().filter(|(_, task)| layout.origins.contains(task)) {
        let (mut rate, mut served, mut of_squares) = (zero, zero, zero);
        for &arc in &layout.arcs {
            let (part, slice) = of_class_over(net, flow, classes, class, arc);
            rate += part;
            served += part * slice;
            of_squares += part * slice * slice;
        }
        busy += served;
        stays += flow.class_rate[class];
        squares += if rate > 0.0 { of_squares - served * served / rate } else { zero };
    }
    -ramp(squares / (busy * busy) * stays, UNLIKE) + 1.0
}

/// The customers of each class at a station, whether they wait for it or for a thread there.
fn customers<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), classes: Classes<'_, S>, layout: &Layout) -> Vec<Pool<S>> {
    let mut found = Vec::new();
    for (class, &task) in net.classes.iter().enumerate().filter(|(_, task)| layout.origins.contains(task)) {
        let mut pool = Pool::new(net.tasks[task].threads);
        for &arc in &layout.arcs {
            let (rate, slice) = of_class_over(net, flow, classes, class, arc);
            pool.rate += rate;
            pool.busy += rate * slice;
        }
        let calls = net.nodes.iter().filter(|node| node.task == task).flat_map(|node| &node.calls);
        for arc in calls.flat_map(CallGroup::arcs) {
            pool.there += flow.arc_rate[arc] * (waits[arc] + flow.first_phase(net, arc));
        }
        found.push(pool);
    }
    found
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

/// How busy cores are with customers of such classes, where they wait for threads of one task there, and of others only on the way to it, or for no thread; none
/// elsewhere.
fn busy_cores<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), layout: &Layout, customers: &[Pool<S>]) -> Option<S> {
    let servers = net.stations[layout.station].servers;
    let classes: Vec<Customers<S>> = customers
        .iter()
        .filter(|it| it.busy > 0.0)
        .map(|it| Customers { number: it.sources, busy: it.busy, away: -it.there + it.sources })
        .collect();
    // One is busy with whoever is there.
    let few = match who_waits(net, solved, layout) {
        _ if servers == 1.0 => None,
        Some(task) => few_threads(net, solved.0, layout, customers, task?)?,
        None => None,
    };
    Some(match few {
        Some(few) => busy_servers(&classes, few.by_number(layout.most)),
        None => busy_servers(&classes, (1_u32..).map(|j| S::from(servers.min(layout.most).min(j.into())))),
    })
}

/// The last task at cores for whose threads customers wait, which all others that they wait for lead to; none inside where there is no such one, none where
/// they wait for none.
fn who_waits<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), layout: &Layout) -> Option<Option<usize>> {
    let makes_wait = |&task: &usize| {
        let queue = net.tasks[task].station.filter(|_| layout.inside[task]);
        queue.is_some_and(|queue| net.stations[queue].arcs.iter().any(|&arc| flow.arc_rate[arc] * waits[arc] > 0.0))
    };
    let few: Vec<usize> = (0..net.tasks.len()).filter(makes_wait).collect();
    let is_last = |&task: &usize| {
        let lead = lead_to(net, task);
        few.iter().all(|&other| lead[other])
    };
    (!few.is_empty()).then(|| few.iter().copied().find(is_last))
}

/// What is known of those who are at such a task; none inside where all that they do is done there.
fn few_threads<S: Scalar>(
    net: &Net<S>,
    flow: &Flow<S>,
    layout: &Layout,
    customers: &[Pool<S>],
    task: usize,
) -> Option<Option<FewThreads<S>>> {
    let it = &net.stations[layout.station];
    let works = works(net);
    let zero = S::from(0.0);
    let (mut executions, mut number, mut work) = (zero, zero, zero);
    for &entry in &net.tasks[task].entries {
        let (of_number, of_work) = works[entry]?;
        executions += flow.entry_rate[entry];
        number += flow.entry_rate[entry] * of_number;
        work += flow.entry_rate[entry] * of_work;
    }
    let (rate, busy) = customers.iter().fold((zero, zero), |(rate, busy), pool| (rate + pool.rate, busy + pool.busy));
    let free = (rate - number, busy - work);
    if work <= 0.0 || free.1 <= busy * LEAST_FREE || free.0 <= rate * LEAST_FREE {
        return Some(None);
    }
    Some(Some(FewThreads {
        servers: it.servers,
        is_shared: it.discipline == Discipline::Sharing,
        threads: net.tasks[task].threads,
        visits: executions / free.0,
        free: free.1 / free.0,
        bound: work / number,
        number: number / executions,
    }))
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
