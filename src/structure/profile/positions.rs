//! The contexts of the executions of one recording.
//!
//! Input: a [`CallTree`]; output: of each execution its path, the tree of the trace it is in, and its position in that tree.
//!
//! Siblings are in the order in which they start, those without times after the one that they were given after; where their times overlap they ran in parallel and their order is chance,
//! so that those are sorted by their trees. A position is the index of the node in preorder, the root's being 0. With
//! [`Siblings::CollapseRuns`] a run of neighbouring equal trees counts as one child that is marked as a run, whatever its
//! length, and all its members have the position of the first.
//!
//! ```text
//! position(child j) = position(parent) + 1 + Σ size of the children (runs counted once) before j
//! ```

use std::collections::HashMap;

use super::{
    CallForm, CallTree,
    contexts::{Child, Digest, Paths, Trees},
};
use crate::trace::{Time, names::Names};

/// Whether neighbouring equal sub-trees are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Siblings {
    /// Each has its own position, as in the paper: first and repeated calls are told apart.
    #[default]
    Exact,
    /// A run of them is one, so that loops do not multiply contexts.
    CollapseRuns,
}

/// What is known of one execution beside its times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// Its operation, as the profile numbers it.
    pub(super) operation: u32,
    /// The caller's; `None` outside.
    pub(super) caller: Option<u32>,
    /// Number in [`Paths`].
    pub(super) path: u32,
    /// Number in [`Trees`] of the whole trace.
    pub(super) trace: u32,
    /// Digest of the whole trace's tree.
    pub(super) digest: Digest,
    /// Preorder index in it.
    pub(super) position: u32,
    /// The caller's.
    pub(super) caller_position: u32,
    /// Which call of this operation by its caller it is, from 1; members of a run are counted as one.
    pub(super) nth: u32,
    /// Whether it is the root of a trace.
    pub(super) root: bool,
    /// Self time, ticks, where its own times are known.
    pub(super) self_ticks: Option<f64>,
}

/// The synchronous children of each execution: those of `i` are `children[starts[i]..starts[i + 1]]`.
struct Family {
    starts: Vec<usize>,
    children: Vec<usize>,
}

impl Family {
    fn of(tree: &CallTree) -> Self {
        let executions = tree.executions();
        let parent = |index: usize| executions[index].parent.filter(|_| executions[index].form == CallForm::Sync);
        let mut starts = vec![0; executions.len() + 1];
        (0..executions.len()).filter_map(parent).for_each(|parent| starts[parent + 1] += 1);
        for index in 0..executions.len() {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut children = vec![0; starts[executions.len()]];
        for index in 0..executions.len() {
            if let Some(parent) = parent(index) {
                children[next[parent]] = index;
                next[parent] += 1;
            }
        }
        Self { starts, children }
    }

    fn of_execution(&self, index: usize) -> &[usize] {
        &self.children[self.starts[index]..self.starts[index + 1]]
    }
}

/// Finds the places of all executions; `operations`, shape `(n_operations,)`, are the profile's numbers of the tree's.
pub(super) fn places(
    tree: &CallTree,
    operations: &[u32],
    names: &Names,
    siblings: Siblings,
    (trees, paths): (&mut Trees, &mut Paths),
) -> Vec<Place> {
    let executions = tree.executions();
    let operation = |index: usize| operations[executions[index].operation as usize];
    let mut family = Family::of(tree);
    let mut tree_of = vec![0; executions.len()];
    let mut places = vec![Place::default(); executions.len()];
    let mut shape = Vec::new();
    for index in (0..executions.len()).rev() {
        let children = &mut family.children[family.starts[index]..family.starts[index + 1]];
        order(children, |child| executions[child].times, |child| trees.digest(tree_of[child]));
        places[index].self_ticks = self_ticks(executions[index].times, children.iter().filter_map(|c| executions[*c].times));
        shape.clear();
        for child in children.iter() {
            match shape.last_mut() {
                Some(Child { tree, run }) if siblings == Siblings::CollapseRuns && *tree == tree_of[*child] => *run = true,
                _ => shape.push(Child { tree: tree_of[*child], run: false }),
            }
        }
        tree_of[index] = trees.number(operation(index), names.name(operation(index)), &shape);
    }
    for index in 0..executions.len() {
        let Place { self_ticks, nth, .. } = places[index];
        let parent = executions[index].parent.filter(|_| executions[index].form == CallForm::Sync);
        let caller = parent.map(|parent| places[parent]);
        places[index].operation = operation(index);
        places[index].path = paths.number(caller.map(|c| c.path), operation(index), names.name(operation(index)));
        if caller.is_none() {
            let (trace, digest) = (tree_of[index], trees.digest(tree_of[index]));
            places[index] = Place { operation: operation(index), trace, digest, nth: 1, root: true, ..places[index] };
        }
        debug_assert!(caller.is_none() || nth > 0, "parents are placed before their children");
        places[index].self_ticks = self_ticks;
        place_children(index, family.of_execution(index), &tree_of, siblings, trees, &mut places, operation);
    }
    places
}

fn place_children(
    parent: usize,
    children: &[usize],
    tree_of: &[u32],
    siblings: Siblings,
    trees: &Trees,
    places: &mut [Place],
    operation: impl Fn(usize) -> u32,
) {
    let above = places[parent];
    let mut next = above.position.saturating_add(1);
    let mut calls: HashMap<u32, u32> = HashMap::new();
    let mut last: Option<(u32, u32)> = None;
    for child in children {
        let in_run = siblings == Siblings::CollapseRuns && last.is_some_and(|(tree, _)| tree == tree_of[*child]);
        let nth = calls.entry(operation(*child)).or_insert(0);
        let position = match last {
            Some((_, position)) if in_run => position,
            _ => {
                *nth += 1;
                let position = next;
                next = next.saturating_add(trees.size(tree_of[*child]));
                position
            }
        };
        last = Some((tree_of[*child], position));
        let place = &mut places[*child];
        (place.caller, place.caller_position, place.position) = (Some(above.operation), above.position, position);
        (place.trace, place.digest, place.nth) = (above.trace, above.digest, *nth);
    }
}

/// By start, one without times after the one that it came after; those that overlap by their trees.
fn order(children: &mut [usize], times: impl Fn(usize) -> Option<[Time; 2]>, digest: impl Fn(usize) -> Digest) {
    let mut last = None;
    let mut by_start: Vec<(Option<Time>, usize)> = Vec::with_capacity(children.len());
    for child in children.iter() {
        last = times(*child).map(|[start, _]| start).or(last);
        by_start.push((last, *child));
    }
    by_start.sort_by_key(|(start, _)| *start);
    children.iter_mut().zip(by_start).for_each(|(place, (_, child))| *place = child);
    let mut from = 0;
    while from < children.len() {
        let mut end = times(children[from]).map(|[_, end]| end);
        let mut to = from + 1;
        while let Some((known, [start, child_end])) = end.zip(children.get(to).and_then(|child| times(*child))) {
            if start >= known {
                break;
            }
            end = Some(known.max(child_end));
            to += 1;
        }
        children[from..to].sort_by_key(|child| digest(*child));
        from = to;
    }
}

/// Duration without the union of the intervals of the children, which are in order of their starts but where they overlap.
fn self_ticks(times: Option<[Time; 2]>, children: impl Iterator<Item = [Time; 2]>) -> Option<f64> {
    let [start, end] = times?;
    let mut intervals: Vec<[Time; 2]> = children.collect();
    intervals.sort_unstable();
    let (mut busy, mut until) = (0.0, start);
    for [from, to] in intervals {
        let (from, to) = (from.max(until), to.min(end));
        if to > from {
            busy += to.ticks_since(from);
            until = to;
        }
    }
    Some(end.ticks_since(start) - busy)
}
