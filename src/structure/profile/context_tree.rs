//! The calling-context tree: all observations, by operation, caller, stack and trace (Rohr et al., Section 4.2).
//!
//! Input: a [`Profile`] and the time that is looked at; output: a tree of contexts, each with its sample, in which the
//! children of a node partition its observations. What a bound folded is a child `(other)` of the node it was folded into,
//! so that the nodes of any level, with the leaves above it, are a timing model: a partition of all observations.
//!
//! ```text
//! sd reduction of a level = 1 - Σ share × sd / Σ (share × sd of the operation)         over its contexts
//! explained by a level    = 1 - Σ share × variance / Σ (share × variance of the operation)
//! ```
//!
//! The first is the paper's metric (for one operation the denominator is its sd; for all it is the mean sd without contexts).
//! The second is the part of the variance that lies between the contexts' means, which unlike the first never falls from a
//! level to the next by more than rounding. 0 where there is no spread to explain.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Metric, Profile, Sample, contexts::Digest, record::OTHER};

/// A level of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Level 0: everything.
    All,
    /// Level 1: the operation.
    Operation,
    /// Level 2: the name of the caller.
    Caller,
    /// Level 3: the path to the root.
    Stack,
    /// Level 4: the whole trace and the position in it.
    Trace,
}

/// The levels that tell executions of one operation apart.
pub const CONTEXT_LEVELS: [Level; 3] = [Level::Caller, Level::Stack, Level::Trace];

/// A trace-context: which trace, where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceContext {
    /// Digest of the trace's tree.
    pub trace: Digest,
    /// Preorder index in it.
    pub position: u32,
    /// The caller's.
    pub caller_position: u32,
    /// Which call of the operation by that caller it is, from 1.
    pub nth: u32,
}

/// One context.
#[derive(Clone, Debug)]
pub struct ContextNode {
    /// Its level.
    pub level: Level,
    /// What it is called: an operation, a caller (`$` outside), a path from the root, or a position in a trace.
    pub name: String,
    /// Its coarser context.
    pub parent: Option<usize>,
    /// Its finer contexts.
    pub children: Vec<usize>,
    /// Of a trace-context: which.
    pub context: Option<TraceContext>,
    /// Its observations.
    pub sample: Sample,
}

/// The calling-context tree of one metric.
#[derive(Clone, Debug)]
pub struct ContextTree {
    /// The time looked at.
    pub metric: Metric,
    /// Contexts, coarser ones first; the first is all observations.
    pub nodes: Vec<ContextNode>,
}

/// What a level explains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpread {
    /// The level.
    pub level: Level,
    /// Its contexts.
    pub n_contexts: usize,
    /// Mean standard deviation within them by share, seconds.
    pub mean_sd_s: f64,
    /// Standard-deviation reduction, at most 1; negative where contexts raise the mean standard deviation.
    pub sd_reduction: f64,
    /// Part of the variance within operations that lies between the means of the contexts, in \[0, 1\].
    pub explained: f64,
}

/// Weighted sums over a partition.
#[derive(Clone, Copy, Debug, Default)]
struct Within {
    n: usize,
    weight: f64,
    sd: f64,
    variance: f64,
}

impl Within {
    fn add(&mut self, sample: &Sample) {
        self.n += 1;
        self.weight += sample.weight();
        self.sd += sample.weight() * sample.sd();
        self.variance += sample.weight() * sample.variance();
    }

    fn spread(&self, level: Level, without: &Self) -> LevelSpread {
        let part = |within: f64, whole: f64| if whole > 0.0 { 1.0 - within / whole } else { 0.0 };
        LevelSpread {
            level,
            n_contexts: self.n,
            mean_sd_s: if self.weight > 0.0 { self.sd / self.weight } else { 0.0 },
            sd_reduction: part(self.sd, without.sd),
            explained: part(self.variance, without.variance).clamp(0.0, 1.0),
        }
    }
}

impl Profile {
    /// The calling-context tree of `metric`; siblings in order of their names, so that equal profiles give equal trees.
    pub fn context_tree(&self, metric: Metric) -> ContextTree {
        let mut tree = ContextTree { metric, nodes: Vec::new() };
        let root = tree.push(None, Level::All, "all".to_owned(), None);
        let mut operations: HashMap<u32, usize> = HashMap::new();
        let mut callers: HashMap<(u32, Option<u32>), usize> = HashMap::new();
        let mut stacks: HashMap<Digest, usize> = HashMap::new();
        let mut paths: Vec<(&Digest, &[u32])> = self.stacks.iter().map(|(digest, stack)| (digest, &*stack.path)).collect();
        paths.sort_by_cached_key(|(digest, path)| (path.iter().map(|o| self.names.name(*o)).collect::<Vec<_>>(), **digest));
        let mut known: Vec<(u32, Option<u32>)> = paths.iter().map(|(_, p)| (p.first().copied().unwrap_or(0), p.get(1).copied())).collect();
        known.extend(self.callers.keys());
        known.extend(self.operations.keys().map(|o| (*o, None)).filter(|(o, _)| !self.callers.contains_key(&(*o, None))));
        known.sort_by_key(|(o, caller)| (self.names.name(*o), caller.map(|c| self.names.name(c))));
        for (operation, caller) in known {
            let above = *operations
                .entry(operation)
                .or_insert_with(|| tree.push(Some(root), Level::Operation, self.names.name(operation).to_owned(), None));
            let name = caller.map_or("$", |caller| self.names.name(caller));
            callers.entry((operation, caller)).or_insert_with(|| tree.push(Some(above), Level::Caller, name.to_owned(), None));
        }
        for (digest, path) in paths {
            let above = callers[&(path.first().copied().unwrap_or(0), path.get(1).copied())];
            let name: Vec<&str> = path.iter().rev().map(|o| self.names.name(*o)).collect();
            stacks.insert(*digest, tree.push(Some(above), Level::Stack, name.join(" > "), None));
        }
        self.add_contexts(&mut tree, &stacks);
        self.add_remainders(&mut tree, (&operations, &callers, &stacks));
        tree.sum_up();
        tree
    }

    fn add_contexts(&self, tree: &mut ContextTree, stacks: &HashMap<Digest, usize>) {
        let metric = tree.metric;
        let mut contexts: Vec<_> = self.contexts.iter().collect();
        contexts.sort_by_key(|(key, _)| **key);
        for ((digest, position), context) in contexts {
            let Some(above) = stacks.get(&context.stack) else { continue };
            let shape = self.kinds.get(digest).map_or("", |kind| kind.shape.as_str());
            let name = format!("#{position} of {shape} [{:08x}]", digest >> 96);
            let found = TraceContext { trace: *digest, position: *position, caller_position: context.caller_position, nth: context.nth };
            let node = tree.push(Some(*above), Level::Trace, name, Some(found));
            tree.nodes[node].sample = context.observed.of(metric).clone();
        }
    }

    #[expect(clippy::type_complexity, reason = "the three maps of the levels above")]
    fn add_remainders(
        &self,
        tree: &mut ContextTree,
        (operations, callers, stacks): (&HashMap<u32, usize>, &HashMap<(u32, Option<u32>), usize>, &HashMap<Digest, usize>),
    ) {
        let metric = tree.metric;
        let folded = self.operations.iter().filter_map(|(o, observed)| Some((*operations.get(o)?, Level::Caller, observed)));
        let folded = folded.chain(self.callers.iter().filter_map(|(c, observed)| Some((*callers.get(c)?, Level::Stack, observed))));
        let folded = folded.chain(self.stacks.iter().filter_map(|(s, stack)| Some((*stacks.get(s)?, Level::Trace, &stack.remainder))));
        for (above, level, observed) in folded.filter(|(_, _, observed)| observed.of(metric).n() > 0) {
            let node = tree.push(Some(above), level, OTHER.to_owned(), None);
            tree.nodes[node].sample = observed.of(metric).clone();
        }
    }
}

impl ContextTree {
    fn push(&mut self, parent: Option<usize>, level: Level, name: String, context: Option<TraceContext>) -> usize {
        let index = self.nodes.len();
        self.nodes.push(ContextNode { level, name, parent, children: Vec::new(), context, sample: Sample::default() });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(index);
        }
        index
    }

    /// Fills the samples above from those below, and takes out contexts without observations.
    fn sum_up(&mut self) {
        for index in (1..self.nodes.len()).rev() {
            let sample = std::mem::take(&mut self.nodes[index].sample);
            if let Some(parent) = self.nodes[index].parent {
                self.nodes[parent].sample.merge(&sample);
            }
            self.nodes[index].sample = sample;
        }
        for index in 0..self.nodes.len() {
            let children = std::mem::take(&mut self.nodes[index].children);
            self.nodes[index].children = children.into_iter().filter(|child| self.nodes[*child].sample.n() > 0).collect();
        }
    }

    /// The operations' nodes, by name.
    pub fn operations(&self) -> &[usize] {
        self.nodes.first().map_or(&[], |root| &root.children)
    }

    /// The contexts of `level` below `node`, with the leaves above that level: a partition of its observations.
    pub fn partition(&self, node: usize, level: Level) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = vec![node];
        while let Some(index) = next.pop() {
            let node = &self.nodes[index];
            if node.level >= level || node.children.is_empty() {
                found.push(index);
            } else {
                next.extend(node.children.iter().rev());
            }
        }
        found
    }

    /// What each level of context explains of the spread below `node`: of one operation, or of all for the first node.
    pub fn spread(&self, node: usize) -> Vec<LevelSpread> {
        let within = |level| {
            let mut sums = Within::default();
            self.partition(node, level).into_iter().for_each(|index| sums.add(&self.nodes[index].sample));
            sums
        };
        let without = within(Level::Operation);
        [Level::Operation].into_iter().chain(CONTEXT_LEVELS).map(|level| within(level).spread(level, &without)).collect()
    }
}
