//! The profile: what is observed in each context, as sums that can be merged.
//!
//! Input: [`CallTree`]s, in any order; output: response and self times by trace-context, with a counted remainder at each
//! level for what was folded ([`ProfileOptions`]). Every execution with times is counted exactly once.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::{
    CallTree, Observed, ProfileOptions,
    contexts::{Digest, Paths, Trees},
    positions::{Place, places},
};
use crate::trace::{diagnostics::Diagnostics, names::Names};

/// Name of all operations beyond [`ProfileOptions::max_operations`].
pub const OTHER: &str = "(other)";

/// What is known of a stack-context.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// Operations from the node back to its root.
    pub(super) path: Box<[u32]>,
    /// What was folded into it.
    pub(super) remainder: Observed,
}

/// A trace-context.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) stack: Digest,
    pub(super) caller_position: u32,
    pub(super) nth: u32,
    pub(super) observed: Observed,
}

/// A kind of trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    pub(super) shape: String,
    /// How many traces of it there were, in weight.
    pub(super) weight: f64,
}

/// Times by context of any number of recordings.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(super) options: ProfileOptions,
    pub(super) names: Names,
    pub(super) operations: IndexMap<u32, Observed>,
    pub(super) callers: IndexMap<(u32, Option<u32>), Observed>,
    pub(super) stacks: IndexMap<Digest, Stack>,
    pub(super) contexts: IndexMap<(Digest, u32), Context>,
    pub(super) kinds: HashMap<Digest, Kind>,
    pub(super) n_recordings: u64,
    pub(super) n_traces: u64,
    pub(super) n_executions: u64,
    pub(super) n_folded: u64,
    pub(super) diagnostics: Diagnostics,
    trees: Trees,
    paths: Paths,
}

impl Profile {
    /// An empty profile.
    pub fn new(options: ProfileOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Counts the executions of one recording.
    pub fn absorb(&mut self, tree: &CallTree) {
        self.n_recordings += 1;
        let operations: Vec<u32> = tree.operations().iter().map(|name| self.operation(name)).collect();
        if self.trees.len() + self.paths.len() > self.options.max_contexts.saturating_add(self.options.max_stacks).saturating_mul(8) {
            self.trees.clear();
            self.paths.clear();
        }
        if tree.executions().len() > self.options.max_executions || depth(tree) > self.options.max_depth {
            self.absorb_without_context(tree, &operations);
            return;
        }
        let found = places(tree, &operations, &self.names, self.options.siblings, (&mut self.trees, &mut self.paths));
        for (index, place) in found.into_iter().enumerate() {
            if place.root {
                self.count_trace(&place, tree.weight());
            }
            let Some(observed) = self.observe(tree, index, place.self_ticks) else { continue };
            let (trees, paths) = (&self.trees, &self.paths);
            debug_assert!(trees.size(place.trace) > place.position, "a position is in its tree");
            let stack = paths.digest(place.path);
            self.stacks.entry(stack).or_insert_with(|| Stack { path: paths.operations(place.path), remainder: Observed::default() });
            let context = self.contexts.entry((place.digest, place.position)).or_insert_with(|| Context {
                stack,
                caller_position: place.caller_position,
                nth: place.nth,
                observed: Observed::default(),
            });
            context.observed.add(observed, tree.weight());
        }
        self.fold();
    }

    fn absorb_without_context(&mut self, tree: &CallTree, operations: &[u32]) {
        let n = tree.executions().len();
        self.diagnostics.add("tree_too_large", "recordings too large or too deep for contexts: counted by operation only", || {
            format!("{n} executions from {}", tree.operation(0))
        });
        for (index, execution) in tree.executions().iter().enumerate() {
            if let Some(observed) = self.observe(tree, index, None) {
                self.operations.entry(operations[execution.operation as usize]).or_default().add(observed, tree.weight());
                self.n_folded += 1;
            }
        }
    }

    /// The response time and self time of an execution in seconds; `None` where it has no usable times.
    fn observe(&mut self, tree: &CallTree, index: usize, self_ticks: Option<f64>) -> Option<(f64, Option<f64>)> {
        let [start, end] = tree.executions()[index].times?;
        let response_s = end.ticks_since(start) * self.options.tick_s();
        if response_s < 0.0 {
            let message = "executions end before they start: they are not observed";
            self.diagnostics.add("negative_response", message, || format!("{} at {start}", tree.operation(index)));
            return None;
        }
        self.n_executions += 1;
        Some((response_s, self_ticks.map(|ticks| (ticks * self.options.tick_s()).max(0.0))))
    }

    fn count_trace(&mut self, root: &Place, weight: f64) {
        self.n_traces += 1;
        let (names, trees) = (&self.names, &self.trees);
        let kind = self
            .kinds
            .entry(root.digest)
            .or_insert_with(|| Kind { shape: trees.draw(root.trace, |operation| names.name(operation)), weight: 0.0 });
        kind.weight += weight;
    }

    fn operation(&mut self, name: &str) -> u32 {
        if let Some(known) = self.names.get(name) {
            return known;
        }
        if self.names.len() < self.options.max_operations {
            return self.names.intern(name);
        }
        self.diagnostics.add("many_operations", "operations beyond the most that are told apart: taken together", || name.to_owned());
        self.names.intern(OTHER)
    }

    /// Adds what another profile observed; its options are forgotten.
    pub fn merge(&mut self, other: Self) {
        let operation: Vec<u32> = other.names.iter().map(|name| self.operation(name)).collect();
        let renamed = |number: u32| operation[number as usize];
        for (number, observed) in &other.operations {
            self.operations.entry(renamed(*number)).or_default().merge(observed);
        }
        for ((number, caller), observed) in &other.callers {
            self.callers.entry((renamed(*number), caller.map(renamed))).or_default().merge(observed);
        }
        for (digest, stack) in other.stacks {
            let path = || stack.path.iter().map(|number| renamed(*number)).collect();
            let known = self.stacks.entry(digest).or_insert_with(|| Stack { path: path(), remainder: Observed::default() });
            known.remainder.merge(&stack.remainder);
        }
        for (key, context) in other.contexts {
            match self.contexts.get_mut(&key) {
                Some(known) => known.observed.merge(&context.observed),
                None => {
                    self.contexts.insert(key, context);
                }
            }
        }
        for (digest, kind) in other.kinds {
            self.kinds.entry(digest).and_modify(|known| known.weight += kind.weight).or_insert(kind);
        }
        self.n_recordings += other.n_recordings;
        self.n_traces += other.n_traces;
        self.n_executions += other.n_executions;
        self.n_folded += other.n_folded;
        self.diagnostics.merge(other.diagnostics);
        self.fold();
    }

    /// What was odd.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Counts what was odd beside the executions: in reading them.
    pub fn note(&mut self, diagnostics: Diagnostics) {
        self.diagnostics.merge(diagnostics);
    }

    /// Number of recordings.
    pub fn n_recordings(&self) -> u64 {
        self.n_recordings
    }

    /// Number of executions observed.
    pub fn n_executions(&self) -> u64 {
        self.n_executions
    }

    /// Number of traces, each asynchronous part being one.
    pub fn n_traces(&self) -> u64 {
        self.n_traces
    }

    /// Number of distinct trace-contexts kept.
    pub fn n_contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Keeps the profile within its bounds.
    fn fold(&mut self) {
        let ProfileOptions { max_contexts, max_stacks, .. } = self.options;
        if self.contexts.len() / 2 > max_contexts {
            for (_, context) in fewest(&mut self.contexts, max_contexts, |c| c.observed.response.n()) {
                self.n_folded += context.observed.response.n();
                if let Some(stack) = self.stacks.get_mut(&context.stack) {
                    stack.remainder.merge(&context.observed);
                }
            }
        }
        if self.kinds.len() / 4 > max_contexts {
            let used: HashSet<Digest> = self.contexts.keys().map(|(digest, _)| *digest).collect();
            self.kinds.retain(|digest, _| used.contains(digest));
        }
        if self.stacks.len() / 2 > max_stacks {
            self.fold_stacks(max_stacks);
        }
        if self.callers.len() / 2 > max_stacks {
            for ((operation, _), observed) in fewest(&mut self.callers, max_stacks, |o| o.response.n()) {
                self.operations.entry(operation).or_default().merge(&observed);
            }
        }
    }

    /// A stack goes with its trace-contexts.
    fn fold_stacks(&mut self, keep: usize) {
        let mut n: HashMap<Digest, u64> = self.stacks.iter().map(|(digest, stack)| (*digest, stack.remainder.response.n())).collect();
        for context in self.contexts.values() {
            *n.entry(context.stack).or_insert(0) += context.observed.response.n();
        }
        let mut all: Vec<(Digest, Stack)> = self.stacks.drain(..).collect();
        all.sort_by_key(|(digest, _)| (std::cmp::Reverse(n.get(digest).copied()), *digest));
        let gone: HashMap<Digest, Stack> = all.split_off(keep.min(all.len())).into_iter().collect();
        self.stacks.extend(all);
        let caller = |stack: &Stack| (stack.path.first().copied().unwrap_or(0), stack.path.get(1).copied());
        let Self { callers, contexts, n_folded, .. } = self;
        for stack in gone.values() {
            callers.entry(caller(stack)).or_default().merge(&stack.remainder);
        }
        contexts.retain(|_, context| {
            let Some(stack) = gone.get(&context.stack) else { return true };
            *n_folded += context.observed.response.n();
            callers.entry(caller(stack)).or_default().merge(&context.observed);
            false
        });
    }
}

impl Observed {
    fn add(&mut self, (response_s, self_s): (f64, Option<f64>), weight: f64) {
        self.response.add(response_s, weight);
        if let Some(self_s) = self_s {
            self.self_time.add(self_s, weight);
        }
    }
}

/// Takes out all but the `keep` elements of largest count (equal ones: of smallest key).
fn fewest<K: Ord + Copy + std::hash::Hash, V>(map: &mut IndexMap<K, V>, keep: usize, n: impl Fn(&V) -> u64) -> Vec<(K, V)> {
    let mut all: Vec<(K, V)> = map.drain(..).collect();
    all.sort_by_key(|(key, value)| (std::cmp::Reverse(n(value)), *key));
    let gone = all.split_off(keep.min(all.len()));
    map.extend(all);
    gone
}

fn depth(tree: &CallTree) -> usize {
    let mut depths = vec![1; tree.executions().len()];
    for (index, execution) in tree.executions().iter().enumerate() {
        if let Some(parent) = execution.parent {
            depths[index] = depths[parent] + 1;
        }
    }
    depths.into_iter().max().unwrap_or(0)
}
