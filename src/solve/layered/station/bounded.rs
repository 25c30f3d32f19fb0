//! The part of a pool that waiting callers bound, where others come to its task without bound.
//!
//! A thread that no caller waits for can be any number of threads; one that a caller waits for is there no more often than the caller. So
//! the requests of a task that both come to are of two pools: how long those that are waited for were away ([`super::visit`]) follows from the
//! threads of their callers.

use super::{super::net::Net, layout::Layout};

/// Arcs of the pool of a task whose requests are waited for by threads of the callers.
#[derive(Clone, Debug)]
pub(in super::super) struct Bounded {
    pub task: usize,
    /// By position at the station, ascending.
    pub arcs: Vec<usize>,
    pub callers: Vec<usize>,
}

/// By entry, the tasks whose threads wait for it; none where others come too, threads go on after the reply, or nobody calls. None at all of a
/// network without requests from outside or asynchronous ones.
pub(super) fn callers_by_entry<S>(net: &Net<S>) -> Vec<Option<Vec<usize>>> {
    if net.is_closed() {
        return vec![None; net.entries.len()];
    }
    let mut callers: Vec<Option<Vec<usize>>> =
        (0..net.entries.len()).map(|entry| Some(Vec::new()).filter(|_| !net.goes_on_after_reply(entry))).collect();
    for arc in &net.arcs {
        let Some(entry) = arc.target else { continue };
        match (arc.source.held(), &mut callers[entry]) {
            (Some(node), Some(callers)) => callers.push(net.nodes[node].task),
            (Some(_), None) => {}
            (None, of_entry) => *of_entry = None,
        }
    }
    callers.into_iter().map(|callers| callers.filter(|callers| !callers.is_empty())).collect()
}

/// Those of a station's pools, by the callers of each entry ([`callers_by_entry`]).
pub(super) fn find_bounded<S>(net: &Net<S>, layout: &Layout, callers: &[Option<Vec<usize>>]) -> Vec<Bounded> {
    let of_pool = |(pool, &task): (usize, &usize)| {
        let mut bounded = Bounded { task, arcs: Vec::new(), callers: Vec::new() };
        for (x, &arc) in layout.arcs.iter().enumerate().filter(|&(x, _)| layout.pool_of[x] == Some(pool)) {
            let entry = net.arcs[arc].source.held().map(|node| net.nodes[node].entry);
            if let Some(callers) = entry.and_then(|entry| callers[entry].as_ref()) {
                bounded.arcs.push(x);
                bounded.callers.extend(callers);
            }
        }
        bounded.callers.sort_unstable();
        bounded.callers.dedup();
        let strands = |task: usize| net.tasks[task].cap * net.tasks[task].width;
        let of_callers: f64 = bounded.callers.iter().map(|&caller| strands(caller)).sum();
        Some(bounded).filter(|bounded| !bounded.arcs.is_empty() && of_callers < strands(task))
    };
    layout.pools.iter().enumerate().filter_map(of_pool).collect()
}
