//! Customers at a processor that tasks which work for them share, or before one thread: what is fixed of whom its sources are.
//!
//! A source is a customer, or a thread with all that works for it, and not each pool of threads ([`super::kinds`], `by_source`). Tasks
//! whose threads are nowhere else are a part of the processor's queue: who waits for one of them waits for the processor, and is there.
//! Where threads are fewer than customers, and some also elsewhere, the sources are pools with those that work for them, no more than
//! can be here at once ([`super::super::at_once`]).

use super::{
    super::{
        at_once::most_at_once,
        exclusion::Pairs,
        net::{CallGroup, Net, Node},
    },
    layout::Layout,
};
use crate::model::Scalar;

/// Pools of a station of which some work for others.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub pools: Vec<usize>,
    /// Most requests of them that can be here at once.
    pub most: f64,
}

/// What the sources of a station are, where they are not its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sources {
    Classes,
    Sets,
}

/// Strands of a task's threads.
pub(super) fn strands<S>(net: &Net<S>, caps: &[f64], task: usize) -> f64 {
    caps[task] * net.tasks[task].width
}

/// The pools of a station, those together of which one works for another.
pub(super) fn find_sets<S>(net: &Net<S>, pairs: &Pairs, pools: &[usize], station: usize) -> Vec<Set> {
    let mut set_of: Vec<usize> = (0..pools.len()).collect();
    for (mine, &task) in pools.iter().enumerate() {
        let (mut open, mut is_met) = (vec![task], vec![false; net.tasks.len()]);
        while let Some(task) = open.pop() {
            if std::mem::replace(&mut is_met[task], true) {
                continue;
            }
            if let Some(other) = pools.iter().position(|&other| other == task) {
                let (from, to) = (set_of[mine], set_of[other]);
                set_of.iter_mut().filter(|set| **set == from).for_each(|set| *set = to);
            }
            open.extend(pairs.begun_by(net, task).into_iter().flatten());
        }
    }
    let sets = (0..pools.len()).map(|set| (0..pools.len()).filter(|&pool| set_of[pool] == set).collect::<Vec<usize>>());
    let strands = |task: usize| net.tasks[task].cap * net.width_at(task, station);
    sets.filter(|set| !set.is_empty())
        .map(|set| {
            let tasks: Vec<usize> = set.iter().map(|&pool| pools[pool]).collect();
            Set { most: most_at_once(&tasks, |task| pairs.begun_by(net, task), strands), pools: set }
        })
        .collect()
}

/// Tasks whose threads are at one processor for all of their executions: who waits for one waits for the processor.
pub(super) fn find_inside<S: Scalar>(net: &Net<S>, station: usize) -> Vec<bool> {
    let mut inside: Vec<bool> = net.tasks.iter().map(|task| task.class.is_none() && task.width <= 1.0).collect();
    for node in &net.nodes {
        let is_here = node.host_arc.is_some_and(|arc| net.arcs[arc].station == station) || node.demand.value() == 0.0;
        inside[node.task] &= is_here && node.think_time.value() == 0.0;
    }
    let mut may_wait: Vec<&Node<S>> = net.nodes.iter().filter(|node| inside[node.task]).collect();
    loop {
        let n_before = may_wait.len();
        for node in &may_wait {
            inside[node.task] = inside[node.task] && waits_inside(net, node, &inside);
        }
        may_wait.retain(|node| inside[node.task]);
        if may_wait.len() == n_before {
            return inside;
        }
    }
}

/// Whether all that a node waits for is done by tasks inside.
fn waits_inside<S>(net: &Net<S>, node: &Node<S>, inside: &[bool]) -> bool {
    node.calls.iter().flat_map(CallGroup::arcs).all(|arc| net.arcs[arc].target.is_none_or(|entry| inside[net.entries[entry].task]))
}

/// Whether the threads of all that comes are nowhere else, nor who waits for them but in no queue: the customers that come call nobody else.
pub(super) fn are_nowhere_else<S>(net: &Net<S>, layout: &Layout) -> bool {
    let calls_inside = |task: usize| net.nodes.iter().filter(|node| node.task == task).all(|node| waits_inside(net, node, &layout.inside));
    layout.pools.iter().all(|&task| layout.inside[task]) && layout.origins.iter().all(|&task| calls_inside(task))
}

/// Most requests of each class that can be at a station at once.
pub(super) fn most_of_classes<S>(net: &Net<S>, pairs: &Pairs, layout: &Layout, station: usize) -> Vec<f64> {
    let of_class = |class: usize| {
        if !layout.origins.contains(&class) {
            return 0.0;
        }
        let strands = |task: usize| match task {
            task if task != class && pairs.begun_by(net, task).is_none() => 0.0,
            // Who waits for these is here.
            task if layout.inside[task] => f64::INFINITY,
            task => net.tasks[task].cap * net.width_at(task, station),
        };
        most_at_once(&layout.pools, |task| pairs.begun_by(net, task), strands)
    };
    net.classes.iter().map(|&class| of_class(class)).collect()
}

impl Layout {
    /// What the sources are of what comes, at most `caps` busy threads of each task: classes of customers, where there are no more of these than of
    /// threads, or sets of pools; none where they are its pools.
    pub(super) fn sources_apart<S>(&self, net: &Net<S>, caps: &[f64]) -> Option<Sources> {
        let sum = |tasks: &[usize]| tasks.iter().map(|&task| strands(net, caps, task)).sum::<f64>();
        if !self.of_classes {
            return None;
        }
        // Where each customer has a thread of the callers.
        if self.station >= net.n_processors {
            return (sum(&self.pools) >= sum(&self.origins)).then_some(Sources::Classes);
        }
        let have_a_thread_each = self.pools.iter().all(|&task| net.tasks[task].threads.is_infinite());
        let are_inside = self.pools.iter().all(|&task| self.inside[task]);
        if have_a_thread_each || are_inside || self.pools.len() > 1 && sum(&self.pools) >= sum(&self.origins) {
            Some(Sources::Classes)
        } else if (2..self.pools.len()).contains(&self.sets.len()) {
            Some(Sources::Sets)
        } else {
            None
        }
    }

    /// Parts of what comes in a row that are of each of the sources, of classes that have such shares in it.
    pub(super) fn parts<'s, S: Scalar>(&'s self, sources: Sources, r: usize, shares: &'s [S]) -> impl Iterator<Item = S> + 's {
        let n = if sources == Sources::Classes { shares.len() } else { self.sets.len() };
        (0..n).map(move |of| match sources {
            Sources::Classes => shares[of],
            Sources::Sets => S::from(if self.rows[r].pool.is_some_and(|pool| self.sets[of].pools.contains(&pool)) { 1.0 } else { 0.0 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{compile::compile, structure::Structure};
    use crate::model::{Bindings, lqn_text};

    /// Customers that call a task on a core, which calls another one there; a third task is elsewhere.
    fn are_nowhere_else(statements: &str) -> bool {
        let text = format!(
            "P 0 p UU i p SS f p EE f -1
            T 0 t cc r ce -1 UU z 2 m 5 t aa n ae -1 SS m 2 t bb n be -1 SS t ee n ee -1 EE -1
            E 0 s ce 0.1 -1 s ae 0.2 -1 s be 0.3 -1 s ee 0.1 -1 y ce ae 1 -1 y ae be 2 -1 {statements} -1"
        );
        let model = lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let net = compile::<f64>(&model, &Bindings::new()).unwrap();
        let core = net.stations.iter().position(|station| station.name == "SS").unwrap();
        Structure::new(&net).layouts[core].are_nowhere_else
    }

    #[test]
    fn who_calls_or_is_forwarded_to_another_processor_is_elsewhere() {
        assert!(are_nowhere_else(""));
        for statement in ["y be ee 1 -1", "y ce ee 1 -1", "F ae ee 0.5 -1", "Z be 0.2 -1"] {
            assert!(!are_nowhere_else(statement), "{statement}");
        }
    }
}
