//! The profile as it is reported, and what a model can start from.
//!
//! Input: a [`TimingModel`] of a [`Profile`]; output: spread explained by level, operations with their leaves, sibling calls
//! that differ, and for each leaf a starting value of an entry's demand.
//!
//! Sibling calls: calls of one operation at several positions under one caller position in one trace whose medians differ
//! by more than the tolerance of similar leaves, each with enough observations. They show caches and first-call effects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Level, LevelSpread, Metric, OperatorOptions, Profile, SampleSummary, TimingModel,
    context_tree::{ContextTree, TraceContext},
};
use crate::trace::diagnostics::Diagnostic;

/// Sibling calls reported at most, of largest weight.
const MOST_SIBLING_CALLS: usize = 50;

/// Contexts named of one leaf at most.
const MOST_CONTEXTS_NAMED: usize = 5;

/// The report on a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileReport {
    /// The time that was looked at.
    pub metric: Metric,
    /// Number of recordings.
    pub n_recordings: u64,
    /// Number of traces in them, each asynchronous part being one.
    pub n_traces: u64,
    /// Number of executions observed.
    pub n_executions: u64,
    /// Executions in contexts that a bound folded into coarser ones.
    pub n_folded: u64,
    /// Distinct kinds of trace kept.
    pub n_kinds_of_trace: usize,
    /// What each level explains over all operations.
    pub levels: Vec<LevelSpread>,
    /// The operations, by name.
    pub operations: Vec<OperationProfile>,
    /// Calls of one operation by one caller that differ by their order.
    pub sibling_calls: Vec<SiblingCalls>,
    /// What was odd in the recordings.
    pub diagnostics: Vec<Diagnostic>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationProfile {
    /// Its name.
    pub operation: String,
    /// All its observations.
    pub times: SampleSummary,
    /// What each level explains.
    pub levels: Vec<LevelSpread>,
    /// The leaves of its timing model, largest first.
    pub leaves: Vec<LeafProfile>,
}

/// One leaf of a timing model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafProfile {
    /// The level of its contexts.
    pub level: Level,
    /// How many they are.
    pub n_contexts: usize,
    /// The first of them, by number of observations.
    pub contexts: Vec<String>,
    /// Part of the operation's executions.
    pub share: f64,
    /// Its observations.
    pub times: SampleSummary,
    /// The context whose observations are used in place of its own, which are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_to: Option<String>,
    /// Whether unlike contexts were merged to keep leaves few.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

/// Calls of one operation at several positions under one caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiblingCalls {
    /// The operation.
    pub operation: String,
    /// The path on which it is called.
    pub path: String,
    /// One of its contexts.
    pub context: String,
    /// Which call (from 1), number of observations, median in seconds.
    pub calls: Vec<(u32, u64, f64)>,
    /// Greatest median / least median; `None` where the least is 0.
    pub ratio: Option<f64>,
}

/// Where the demand of an entry can start from: one leaf of a timing model of self times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryStart {
    /// The operation.
    pub operation: String,
    /// Name of the entry: the operation, with `#2`, `#3`, … for further leaves.
    pub entry: String,
    /// The first of its contexts.
    pub context: String,
    /// Part of the operation's executions.
    pub share: f64,
    /// Number of observations behind the numbers that follow.
    pub n: u64,
    /// Starting value of the demand: the mean self time, seconds. Elapsed time, so from above.
    pub demand_s: f64,
    /// Standard deviation of a self time, seconds: how far the demand may be from its start.
    pub spread_s: f64,
    /// Squared coefficient of variation of a self time.
    pub cv_squared: f64,
}

/// One context of the calling-context tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextReport {
    /// Its level.
    pub level: Level,
    /// What it is called: an operation, a caller (`$` outside), a path from the root, or a position in a trace.
    pub name: String,
    /// Its coarser context (index in the list); `None` of the first, which is all.
    pub parent: Option<usize>,
    /// Its part of all time (count × mean).
    pub share: f64,
    /// Its observations.
    pub times: SampleSummary,
}

impl ContextTree {
    /// The contexts down to `level` with at least `least_share` of all time, coarser ones first.
    pub fn report(&self, level: Level, least_share: f64) -> Vec<ContextReport> {
        let mut place_of: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut found = Vec::new();
        let mut next: Vec<usize> = if self.nodes.is_empty() { Vec::new() } else { vec![0] };
        while let Some(index) = next.pop() {
            let node = &self.nodes[index];
            let share = self.time_share(index);
            let Some(times) = node.sample.summary().filter(|_| index == 0 || share >= least_share) else { continue };
            place_of[index] = Some(found.len());
            let parent = node.parent.and_then(|parent| place_of[parent]);
            found.push(ContextReport { level: node.level, name: node.name.clone(), parent, share, times });
            if node.level < level {
                next.extend(node.children.iter().rev());
            }
        }
        found
    }
}

impl Profile {
    /// The report on `metric` under `options`.
    pub fn report(&self, metric: Metric, options: &OperatorOptions) -> ProfileReport {
        let model = TimingModel::of(self.context_tree(metric), options);
        ProfileReport {
            metric,
            n_recordings: self.n_recordings,
            n_traces: self.n_traces,
            n_executions: self.n_executions,
            n_folded: self.n_folded,
            n_kinds_of_trace: self.kinds.len(),
            levels: model.tree.spread(0),
            operations: operations(&model),
            sibling_calls: sibling_calls(&model.tree, options),
            diagnostics: self.diagnostics.clone().into_vec(),
        }
    }
}

fn operations(model: &TimingModel) -> Vec<OperationProfile> {
    let tree = &model.tree;
    let operation = |node: &usize| {
        let times = tree.nodes[*node].sample.summary()?;
        let leaves = model.leaves.iter().filter(|leaf| leaf.operation == *node);
        let leaf = |leaf: &super::Leaf| {
            let first = tree.nodes.get(*leaf.members.first()?)?;
            let named = leaf.members.iter().take(MOST_CONTEXTS_NAMED);
            Some(LeafProfile {
                level: first.level,
                n_contexts: leaf.members.len(),
                contexts: named.map(|member| tree.nodes[*member].name.clone()).collect(),
                share: leaf.sample.weight() / times.weight,
                times: leaf.sample.summary()?,
                linked_to: leaf.linked_to.map(|node| tree.nodes[node].name.clone()),
                forced: leaf.forced,
            })
        };
        Some(OperationProfile {
            operation: tree.nodes[*node].name.clone(),
            times,
            levels: tree.spread(*node),
            leaves: leaves.filter_map(leaf).collect(),
        })
    };
    tree.operations().iter().filter_map(operation).collect()
}

fn sibling_calls(tree: &ContextTree, options: &OperatorOptions) -> Vec<SiblingCalls> {
    let mut siblings: BTreeMap<(usize, u128, u32), Vec<(usize, TraceContext)>> = BTreeMap::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        if let (Some(context), Some(stack)) = (node.context, node.parent)
            && context.position > 0
            && node.sample.n() >= options.enough
        {
            siblings.entry((stack, context.trace, context.caller_position)).or_default().push((index, context));
        }
    }
    let mut found: Vec<(f64, SiblingCalls)> = Vec::new();
    for ((stack, ..), mut calls) in siblings {
        calls.sort_by_key(|(_, context)| context.position);
        let medians: Vec<f64> = calls.iter().filter_map(|(index, _)| tree.nodes[*index].sample.quantile(0.5)).collect();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = medians.iter().copied().fold(0.0, f64::max);
        let weight: f64 = calls.iter().map(|(index, _)| tree.nodes[*index].sample.weight()).sum();
        let middle = calls.iter().zip(&medians).map(|((index, _), m)| tree.nodes[*index].sample.weight() * m).sum::<f64>() / weight;
        if calls.len() < 2 || greatest - least <= options.median_tolerance * middle {
            continue;
        }
        let operation = tree.nodes[stack].parent.and_then(|caller| tree.nodes[caller].parent);
        let called = SiblingCalls {
            operation: operation.map_or_else(String::new, |node| tree.nodes[node].name.clone()),
            path: tree.nodes[stack].name.clone(),
            context: tree.nodes[calls[0].0].name.clone(),
            calls: calls.iter().zip(&medians).map(|((index, c), m)| (c.nth, tree.nodes[*index].sample.n(), *m)).collect(),
            ratio: (least > 0.0).then(|| greatest / least),
        };
        found.push((weight, called));
    }
    found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (&x.path, &x.context).cmp(&(&y.path, &y.context))));
    found.truncate(MOST_SIBLING_CALLS);
    found.into_iter().map(|(_, calls)| calls).collect()
}

impl TimingModel {
    /// The entries that the leaves suggest, each with a starting value of its demand. Meant for models of
    /// [`Metric::SelfTime`]: of response times it would count the work of sub-calls too.
    pub fn entry_starts(&self) -> Vec<EntryStart> {
        let mut starts: Vec<EntryStart> = Vec::new();
        let mut of_operation = (usize::MAX, 0);
        for leaf in &self.leaves {
            of_operation = if of_operation.0 == leaf.operation { (leaf.operation, of_operation.1 + 1) } else { (leaf.operation, 1) };
            let operation = &self.tree.nodes[leaf.operation];
            let used = leaf.linked_to.map_or(&leaf.sample, |node| &self.tree.nodes[node].sample);
            let (Some(demand_s), Some(first)) = (used.mean(), leaf.members.first()) else { continue };
            let entry = if of_operation.1 == 1 { operation.name.clone() } else { format!("{}#{}", operation.name, of_operation.1) };
            starts.push(EntryStart {
                operation: operation.name.clone(),
                entry,
                context: self.tree.nodes[*first].name.clone(),
                share: leaf.sample.weight() / operation.sample.weight(),
                n: used.n(),
                demand_s,
                spread_s: used.sd(),
                cv_squared: used.cv_squared().unwrap_or(0.0),
            });
        }
        starts
    }
}
