//! The stack-contexts as a tree of calls: who calls whom on which path, with the times of each.
//!
//! Input: a [`Profile`] and the time that is looked at; output: nodes in preorder, siblings by their time, longest first. A
//! node is a path from a root: all executions of its last operation that were called on it. What a bound folded into coarser
//! contexts has no path, and is not here.
//!
//! ```text
//! share = count × mean / Σ count × mean of the roots        of response times: the part of all requests' time
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Metric, Profile, Sample, SampleSummary, text};

/// Bounds of what is shown of trees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallBounds {
    /// Most levels of calls.
    pub depth: usize,
    /// Calls with a smaller part of all time are left out, with all below them, and counted.
    pub least_share: f64,
}

impl Default for CallBounds {
    fn default() -> Self {
        Self { depth: 12, least_share: 0.001 }
    }
}

/// An operation on a path of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// The operation.
    pub operation: String,
    /// The node of its caller (index in the list); `None` of what is called from outside.
    pub parent: Option<usize>,
    /// Callers above it.
    pub depth: usize,
    /// Its part of all time.
    pub share: f64,
    /// Its executions on this path; `None` where none of them has times.
    pub times: Option<SampleSummary>,
    /// Further callees that a bound left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_left_out: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[derive(Default)]
struct Node {
    operation: u32,
    children: Vec<usize>,
    sample: Sample,
    time: f64,
}

/// The tree while it is made; the first node is the world outside.
struct Paths<'p> {
    profile: &'p Profile,
    nodes: Vec<Node>,
    child_of: HashMap<(usize, u32), usize>,
}

impl Paths<'_> {
    fn node(&mut self, path: &[u32]) -> usize {
        let mut at = 0;
        for operation in path.iter().rev() {
            let next = self.nodes.len();
            let node = *self.child_of.entry((at, *operation)).or_insert(next);
            if node == next {
                self.nodes.push(Node { operation: *operation, ..Node::default() });
                self.nodes[at].children.push(next);
            }
            at = node;
        }
        at
    }

    fn sort(&mut self) {
        for index in 0..self.nodes.len() {
            let sample = &self.nodes[index].sample;
            self.nodes[index].time = sample.weight() * sample.mean().unwrap_or(0.0);
        }
        for index in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[index].children);
            let name = |node: usize| self.profile.names.name(self.nodes[node].operation);
            children.sort_by(|a, b| self.nodes[*b].time.total_cmp(&self.nodes[*a].time).then_with(|| name(*a).cmp(name(*b))));
            self.nodes[index].children = children;
        }
    }
}

impl Profile {
    /// The calls on each path, within `bounds`.
    pub fn calls(&self, metric: Metric, bounds: &CallBounds) -> Vec<Calls> {
        let mut paths = Paths { profile: self, nodes: vec![Node::default()], child_of: HashMap::new() };
        let mut node_of = HashMap::with_capacity(self.stacks.len());
        for (digest, stack) in &self.stacks {
            let node = paths.node(&stack.path);
            paths.nodes[node].sample.merge(stack.remainder.of(metric));
            node_of.insert(*digest, node);
        }
        let mut contexts: Vec<_> = self.contexts.iter().collect();
        contexts.sort_by_key(|(key, _)| **key);
        for (_, context) in contexts {
            if let Some(node) = node_of.get(&context.stack) {
                paths.nodes[*node].sample.merge(context.observed.of(metric));
            }
        }
        paths.sort();
        let whole: f64 = match metric {
            Metric::Response => paths.nodes[0].children.iter().map(|root| paths.nodes[*root].time).sum(),
            Metric::SelfTime => paths.nodes.iter().map(|node| node.time).sum(),
        };
        let share = |node: usize| if whole > 0.0 { paths.nodes[node].time / whole } else { 0.0 };
        let mut found: Vec<Calls> = Vec::new();
        let mut next: Vec<(usize, Option<usize>, usize)> = paths.nodes[0].children.iter().rev().map(|root| (*root, None, 0)).collect();
        while let Some((node, parent, depth)) = next.pop() {
            if share(node) < bounds.least_share || depth >= bounds.depth {
                if let Some(parent) = parent {
                    found[parent].n_left_out += 1;
                }
                continue;
            }
            let Node { operation, children, sample, .. } = &paths.nodes[node];
            let index = found.len();
            found.push(Calls {
                operation: self.names.name(*operation).to_owned(),
                parent,
                depth,
                share: share(node),
                times: sample.summary(),
                n_left_out: 0,
            });
            next.extend(children.iter().rev().map(|child| (*child, Some(index), depth + 1)));
        }
        found
    }
}

/// Whether a sibling, or what was left out of them, follows each node.
fn later_siblings(calls: &[Calls]) -> Vec<bool> {
    let mut follows = vec![false; calls.len()];
    let mut seen: Vec<bool> = Vec::new();
    for (index, node) in calls.iter().enumerate().rev() {
        seen.resize(node.depth + 1, false);
        let left_out = node.parent.is_some_and(|parent| calls[parent].n_left_out > 0);
        follows[index] = std::mem::replace(&mut seen[node.depth], true) || left_out;
    }
    follows
}

/// Calls as indented lines, each with a bar as long as its part of all time.
pub fn draw_calls(calls: &[Calls]) -> String {
    let has_later_sibling = later_siblings(calls);
    let mut lines: Vec<(String, Option<&Calls>)> = Vec::with_capacity(calls.len());
    let mut open: Vec<usize> = Vec::new();
    let below =
        |open: &[usize]| -> String { open.iter().skip(1).map(|node| if has_later_sibling[*node] { "│ " } else { "  " }).collect() };
    let close = |open: &mut Vec<usize>, depth: usize, lines: &mut Vec<(String, Option<&Calls>)>| {
        while open.len() > depth {
            let n = open.last().map_or(0, |node| calls[*node].n_left_out);
            if n > 0 {
                lines.push((format!("{}└ … and {n} smaller or deeper", below(open)), None));
            }
            open.pop();
        }
    };
    for (index, node) in calls.iter().enumerate() {
        close(&mut open, node.depth, &mut lines);
        let mark = match (node.depth, has_later_sibling[index]) {
            (0, _) => "",
            (_, true) => "├ ",
            (_, false) => "└ ",
        };
        lines.push((format!("{}{mark}{}", below(&open), node.operation), Some(node)));
        open.push(index);
    }
    close(&mut open, 0, &mut lines);
    let width = lines.iter().filter(|(_, node)| node.is_some()).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, node) in lines {
        match node {
            Some(node) => {
                text::write_line(&mut text, (&name, width), node.share, node.times.as_ref());
                text::write_quantiles(&mut text, node.times.as_ref());
            }
            None => _ = writeln!(text, "{name}"),
        }
    }
    text
}
