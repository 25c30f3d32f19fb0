//! Through which threads requests come that others wait for, too.
//!
//! Where a thread takes up the next request as it ends one, what it sent for the one is there for the other, and all that the threads of a pool of `m` send is
//! theirs: of what is found of it at any time a thread's own is `π/m`, with `π` the chance that a request waited for it; and `1/m` before the threads of a task, where what it sent is also known to be there after idle
//! times ([`super::queue`]).

use std::{collections::BTreeSet, ops::Range};

use super::{
    super::{super::net::Net, Sweep},
    behind::is_any,
};
use crate::model::Scalar;

/// The shares of executions that come through pools of few threads.
#[derive(Debug)]
pub(in super::super::super) struct Lines<S> {
    /// The arcs over which the nodes of each entry send requests to tasks below, and where these lead.
    arcs: Vec<Vec<(usize, usize)>>,
    /// Of each entry, where its shares stand.
    of: Vec<Range<usize>>,
    /// The tasks whose threads they are of, of each entry in order: those that may be waited for, and through which requests come to it. None where nothing goes on that nobody waits for.
    pools: Vec<usize>,
    /// `π/m` of each task.
    parts: Vec<S>,
    /// The shares, and room for the requests that come so.
    shares: Vec<S>,
    requests: Vec<S>,
}

impl<S: Scalar> Lines<S> {
    pub fn new(net: &Net<S>) -> Self {
        let goes_on = is_any(net);
        let may_be_waited_for =
            |task: usize| goes_on && net.tasks[task].class.is_none() && net.tasks[task].threads < net.tasks[task].at_once;
        let mut arcs = vec![Vec::new(); net.entries.len()];
        let level = |entry: usize| net.tasks[net.entries[entry].task].position;
        for (a, arc) in net.arcs.iter().enumerate() {
            let Some((entry, target)) = arc.source.node().map(|node| net.nodes[node].entry).zip(arc.target) else { continue };
            if level(entry) < level(target) {
                arcs[entry].push((a, target));
            }
        }
        let mut through = vec![BTreeSet::new(); net.entries.len()];
        for &task in &net.order {
            for &entry in &net.tasks[task].entries {
                if may_be_waited_for(task) {
                    through[entry].insert(task);
                }
                let on: Vec<usize> = through[entry].iter().copied().collect();
                arcs[entry].iter().for_each(|&(_, target)| through[target].extend(&on));
            }
        }
        let mut lines = Self { arcs, of: Vec::new(), pools: Vec::new(), parts: Vec::new(), shares: Vec::new(), requests: Vec::new() };
        for tasks in through {
            let from = lines.pools.len();
            lines.pools.extend(tasks);
            lines.of.push(from..lines.pools.len());
        }
        lines
    }

    pub fn update(&mut self, sweep: &Sweep<'_, S>) {
        let Sweep { net, flow, .. } = sweep;
        if self.pools.is_empty() {
            return;
        }
        let zero = S::from(0.0);
        self.parts.clear();
        self.parts.resize(net.tasks.len(), zero);
        self.shares.clear();
        self.shares.resize(self.pools.len(), zero);
        self.requests.clear();
        self.requests.resize(self.pools.len(), zero);
        for &task in &net.order {
            for &entry in &net.tasks[task].entries {
                let rate = flow.entry_rate[entry];
                for place in self.of[entry].clone() {
                    if self.pools[place] == task {
                        self.parts[task] = sweep.taken_up_at_once(task) / net.tasks[task].threads;
                        self.shares[place] = S::from(1.0);
                    } else if rate > 0.0 {
                        self.shares[place] = self.requests[place] / rate;
                    }
                }
                for at in 0..self.arcs[entry].len() {
                    let (arc, target) = self.arcs[entry][at];
                    self.send(entry, target, flow.arc_rate[arc]);
                }
            }
        }
    }

    /// Adds to what comes to one entry what another sends it: of pools that it comes through, all of which are known there.
    fn send(&mut self, from: usize, to: usize, rate: S) {
        let mut places = self.of[to].clone();
        for place in self.of[from].clone() {
            if let Some(at) = places.find(|&at| self.pools[at] == self.pools[place]) {
                self.requests[at] += rate * self.shares[place];
            }
        }
    }

    /// `π/m` of a task.
    pub fn taken_up_part(&self, task: usize) -> S {
        self.parts[task]
    }

    /// The part of what one of two entries finds of the other's, at any time, that the same thread has begun, if of those that come through a task that is its `part`.
    pub fn own_part(&self, one: usize, other: usize, part: impl Fn(usize) -> S) -> S {
        let (mut one, mut other) = (self.of[one].clone(), self.of[other].clone());
        let mut most = S::from(0.0);
        while let (Some(a), Some(b)) = (one.clone().next(), other.clone().next()) {
            let (pool, its) = (self.pools[a], self.pools[b]);
            if pool == its {
                let part = self.shares[a] * self.shares[b] * part(pool);
                most = if part > most { part } else { most };
            }
            if pool <= its {
                one.next();
            }
            if its <= pool {
                other.next();
            }
        }
        most
    }
}
