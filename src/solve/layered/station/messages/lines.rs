//! Through which threads requests come that others wait for, too.
//!
//! Where a thread takes up the next request as it ends one, what it sent for the one is there for the other, and all that the threads of a pool of `m` send is
//! theirs: of what is found of it at any time a thread's own is `π/m`, with `π` the chance that a request waited for it.

use super::super::{super::net::Net, Sweep};
use crate::model::Scalar;

/// The shares of executions that come through pools of few threads.
#[derive(Debug)]
pub(in super::super::super) struct Lines<S> {
    /// Tasks whose threads may be waited for; none where nothing goes on that nobody waits for.
    pools: Vec<usize>,
    /// The arcs that the nodes of each entry send requests over.
    arcs: Vec<Vec<usize>>,
    /// `π/m` of each pool.
    parts: Vec<S>,
    /// The shares, by entry and pool, and room for the requests that come so.
    shares: Vec<S>,
    requests: Vec<S>,
}

impl<S: Scalar> Lines<S> {
    pub fn new(net: &Net<S>) -> Self {
        let goes_on =
            net.nodes.iter().any(|node| !node.sends.is_empty()) || (0..net.entries.len()).any(|entry| net.entries[entry].is_followed);
        let may_be_waited_for = |task: &usize| net.tasks[*task].class.is_none() && net.tasks[*task].threads < net.tasks[*task].at_once;
        let pools: Vec<usize> = (0..net.tasks.len()).filter(|task| goes_on && may_be_waited_for(task)).collect();
        let mut arcs = vec![Vec::new(); net.entries.len()];
        for (a, arc) in net.arcs.iter().enumerate().filter(|(_, arc)| arc.target.is_some()) {
            arc.source.node().iter().for_each(|&node| arcs[net.nodes[node].entry].push(a));
        }
        Self { pools, arcs, parts: Vec::new(), shares: Vec::new(), requests: Vec::new() }
    }

    pub fn update(&mut self, sweep: &Sweep<'_, S>) {
        let Sweep { net, flow, .. } = sweep;
        let n = self.pools.len();
        self.parts.clear();
        self.parts.extend(self.pools.iter().map(|&task| sweep.taken_up_at_once(task) / net.tasks[task].threads));
        for room in [&mut self.shares, &mut self.requests] {
            room.clear();
            room.resize(net.entries.len() * n, S::from(0.0));
        }
        for &task in net.order.iter().filter(|_| n > 0) {
            let own = self.pools.iter().position(|&pool| pool == task);
            for &entry in &net.tasks[task].entries {
                let places = entry * n..(entry + 1) * n;
                let rate = flow.entry_rate[entry];
                if rate > 0.0 {
                    let requests = self.shares[places.clone()].iter_mut().zip(&self.requests[places.clone()]);
                    requests.for_each(|(share, &requests)| *share = requests / rate);
                }
                if let Some(own) = own {
                    self.shares[entry * n + own] = S::from(1.0);
                }
                for &arc in &self.arcs[entry] {
                    let Some(target) = net.arcs[arc].target else { continue };
                    for pool in 0..n {
                        self.requests[target * n + pool] += flow.arc_rate[arc] * self.shares[entry * n + pool];
                    }
                }
            }
        }
    }

    /// The part of what one of two entries finds of the other's, at any time, that the same thread has begun.
    pub fn own_part(&self, one: usize, other: usize) -> S {
        let n = self.pools.len();
        let shares = self.shares[one * n..(one + 1) * n].iter().zip(&self.shares[other * n..(other + 1) * n]);
        let parts = shares.zip(&self.parts).map(|((&one, &other), &part)| one * other * part);
        parts.fold(S::from(0.0), |most, part| if part > most { part } else { most })
    }
}
