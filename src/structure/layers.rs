//! Breaking cycles of blocking calls between tasks.
//!
//! Entries do not call one another in a circle ([`super::recursion`]), but their tasks may: A's first operation calls B, and
//! another operation of B calls A's second. A layered queueing network does not allow that (a blocked thread might wait for
//! itself), so a task in such a circle is taken apart by the depth of its entries below the circle's uppermost: calls go
//! from a depth to a greater one, hence no circle is left. The parts share the task's processor; each has threads of its
//! own, which is said in a diagnostic.

use petgraph::{
    algo::{tarjan_scc, toposort},
    graph::{DiGraph, NodeIndex},
};

use super::entries::{Accepts, ArcKind, MergedEntry};

/// The depth of each entry within the circle of tasks that it is in; 0 for all outside circles. Shape `(n_entries,)`.
///
/// Entries that themselves call in a circle would stay at depth 0; [`super::recursion`] has cut such circles before.
pub fn depths(entries: &[MergedEntry], n_tasks: usize) -> Vec<usize> {
    let component_of = cyclic_components(entries, n_tasks);
    let inside = |source: &MergedEntry, target: &MergedEntry| {
        let component = component_of[source.task as usize];
        component.is_some() && component == component_of[target.task as usize]
    };
    let mut graph = DiGraph::<(), ()>::with_capacity(entries.len(), 0);
    entries.iter().for_each(|_| {
        graph.add_node(());
    });
    for (source, target) in blocking_calls(entries) {
        if inside(&entries[source], &entries[target]) {
            graph.add_edge(NodeIndex::new(source), NodeIndex::new(target), ());
        }
    }
    let mut depths = vec![0; entries.len()];
    let Ok(order) = toposort(&graph, None) else { return depths };
    for source in order {
        for target in graph.neighbors(source) {
            depths[target.index()] = depths[target.index()].max(depths[source.index()] + 1);
        }
    }
    depths
}

/// Calls that block their source, between entries that are accepted (not those of customers).
fn blocking_calls(entries: &[MergedEntry]) -> impl Iterator<Item = (usize, usize)> {
    let called = entries.iter().enumerate().filter(|(_, entry)| entry.accepts != Accepts::Nothing);
    called.flat_map(|(source, entry)| entry.arcs.iter().filter(|arc| arc.kind != ArcKind::Async).map(move |arc| (source, arc.target)))
}

/// The circle that each task is in, if any.
fn cyclic_components(entries: &[MergedEntry], n_tasks: usize) -> Vec<Option<usize>> {
    let mut graph = DiGraph::<(), ()>::with_capacity(n_tasks, 0);
    (0..n_tasks).for_each(|_| {
        graph.add_node(());
    });
    let task = |entry: usize| NodeIndex::new(entries[entry].task as usize);
    for (source, target) in blocking_calls(entries) {
        graph.update_edge(task(source), task(target), ());
    }
    let mut component_of = vec![None; n_tasks];
    for (number, component) in tarjan_scc(&graph).into_iter().enumerate() {
        let cyclic = component.len() > 1 || component.iter().any(|task| graph.contains_edge(*task, *task));
        for task in component.into_iter().filter(|_| cyclic) {
            component_of[task.index()] = Some(number);
        }
    }
    component_of
}
