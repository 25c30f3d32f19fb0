//! Structures of a flow to a tree of actions.

use serde::{Deserialize, Serialize};

use super::{
    labels::{CallKind, Label, Labels, SubKind},
    stats::{Flow, FlowKey, FlowStats, Flows, Pmf, SlotSums, Structure},
};

/// Longest structure that becomes part of a tree, steps.
const LONGEST_STRUCTURE: usize = 256;
/// Deepest nesting of marked actions.
const DEEPEST_ACTION: usize = 32;

/// How often a loop is run for each execution that reaches it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopCount {
    /// Observed counts, as value → how often.
    pub pmf: Pmf,
    /// Mean count.
    pub mean: f64,
    /// Standard deviation / mean: what is lost where only the mean is used.
    pub coefficient_of_variation: f64,
}

impl From<Pmf> for LoopCount {
    fn from(pmf: Pmf) -> Self {
        Self { mean: pmf.mean(), coefficient_of_variation: pmf.coefficient_of_variation(), pmf }
    }
}

/// One of the ways that a branch can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Taken / reached.
    pub probability: f64,
    /// How often it was taken.
    pub n: u64,
    /// Its index, where the branch is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its actions.
    pub body: Vec<FlowNode>,
}

/// An action of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowNode {
    /// Computation.
    Internal {
        /// Its method, where it is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Mean duration each time that it is reached, nanoseconds.
        mean_ns: f64,
        /// How often it was reached.
        n: u64,
    },
    /// A call of another component's service.
    Call {
        /// The component.
        component: String,
        /// The method.
        method: String,
        /// Whether no reply is waited for.
        asynchronous: bool,
        /// How often it was reached.
        n: u64,
    },
    /// Actions that are repeated.
    Loop {
        /// Its method, where it is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// How often.
        count: LoopCount,
        /// One iteration.
        body: Vec<FlowNode>,
    },
    /// Actions of which one alternative is taken.
    Branch {
        /// Its method, where it is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The alternatives.
        alternatives: Vec<Alternative>,
    },
}

/// Names of services.
pub(in super::super) trait Naming {
    /// Component and method of a service.
    fn service(&self, location: u32) -> (&str, &str);
}

/// A tree, and what it leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct FlowTree {
    pub(in super::super) nodes: Vec<FlowNode>,
    /// Whether any loop or branch was inferred.
    pub(in super::super) inferred: bool,
    /// Executions that are not part of it.
    pub(in super::super) n_left_out: u64,
}

/// The tree of the flow of `key`.
pub(in super::super) fn flow_tree(flows: &Flows, key: FlowKey, names: &dyn Naming) -> FlowTree {
    let mut builder = Builder { flows, names, inferred: false, n_left_out: 0 };
    let nodes = flows.get(&key).map_or_else(Vec::new, |(flow, stats)| builder.flow(flow, stats, 0));
    FlowTree { nodes, inferred: builder.inferred, n_left_out: builder.n_left_out }
}

/// Steps, and how many executions took them.
type Counted = (u64, Vec<Step>);

/// A step of merged structures.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    One { label: u32, slots: Vec<SlotSums> },
    Branch(Vec<(u64, Vec<Step>)>),
}

impl Step {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One { label: a, .. }, Self::One { label: b, .. }) => a == b,
            (Self::Branch(a), Self::Branch(b)) => {
                let alike = |a: &[Self], b: &[Self]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b));
                a.len() == b.len() && a.iter().zip(b).all(|((_, a), (_, b))| alike(a, b))
            }
            _ => false,
        }
    }

    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::One { slots, .. }, Self::One { slots: more, .. }) => slots.iter_mut().zip(&more).for_each(|(a, b)| a.merge(b)),
            (Self::Branch(alternatives), Self::Branch(more)) => {
                for ((n, body), (n_more, more)) in alternatives.iter_mut().zip(more) {
                    *n += n_more;
                    body.iter_mut().zip(more).for_each(|(a, b)| a.merge(b));
                }
            }
            _ => {}
        }
    }
}

struct Builder<'f> {
    flows: &'f Flows,
    names: &'f dyn Naming,
    inferred: bool,
    n_left_out: u64,
}

impl Builder<'_> {
    fn flow(&mut self, flow: Flow, stats: &FlowStats, depth: usize) -> Vec<FlowNode> {
        self.n_left_out += stats.n_unstructured;
        let mut sequences = Vec::new();
        let (mut n, mut tail_ns) = (0, 0);
        for (labels, structure) in unified(stats, &self.flows.labels) {
            if labels.len() > LONGEST_STRUCTURE {
                self.n_left_out += structure.n;
                continue;
            }
            n += structure.n;
            tail_ns += structure.tail_ns;
            sequences.push((structure.n, steps(&labels, structure.slots, &self.flows.labels)));
        }
        let steps = self.merged(sequences);
        let mut nodes = Vec::new();
        steps.into_iter().for_each(|step| self.nodes_of(step, flow, depth, &mut nodes));
        push_internal(tail_ns, n, &mut nodes);
        nodes
    }

    /// One sequence of steps for all: a prefix trie, with common suffixes taken out of its branches.
    fn merged(&mut self, mut sequences: Vec<(u64, Vec<Step>)>) -> Vec<Step> {
        let mut merged = Vec::new();
        // Sequences are taken from their front.
        sequences.iter_mut().for_each(|(_, steps)| steps.reverse());
        loop {
            let mut n_ended = 0;
            let mut groups: Vec<(Step, u64, Vec<Counted>)> = Vec::new();
            for (n, mut rest) in std::mem::take(&mut sequences) {
                let Some(first) = rest.pop() else {
                    n_ended += n;
                    continue;
                };
                match groups.iter_mut().find(|(known, ..)| known.is_like(&first)) {
                    Some((known, total, rests)) => {
                        known.merge(first);
                        *total += n;
                        rests.push((n, rest));
                    }
                    None => groups.push((first, n, vec![(n, rest)])),
                }
            }
            let Some(only) = groups.pop_if(|_| true) else { return merged };
            if groups.is_empty() && n_ended == 0 {
                merged.push(only.0);
                sequences = only.2;
                continue;
            }
            groups.push(only);
            let mut alternatives: Vec<(u64, Vec<Step>)> = groups
                .into_iter()
                .map(|(first, n, mut rests)| {
                    rests.iter_mut().for_each(|(_, rest)| rest.reverse());
                    (n, [first].into_iter().chain(self.merged(rests)).collect())
                })
                .collect();
            alternatives.sort_by_cached_key(|(_, body)| body.first().map(|step| self.sort_key(step)));
            if n_ended > 0 {
                alternatives.push((n_ended, Vec::new()));
            }
            let suffix = take_common_suffix(&mut alternatives);
            merged.push(self.branch(alternatives));
            merged.extend(suffix);
            return merged;
        }
    }

    /// A branch; one between a loop and nothing is a loop that may have no iteration.
    fn branch(&mut self, mut alternatives: Vec<(u64, Vec<Step>)>) -> Step {
        alternatives.sort_by_key(|(_, body)| body.is_empty());
        let n_none = alternatives.last().filter(|(_, body)| body.is_empty()).map_or(0, |(n, _)| *n);
        if let (2, true, Some((_, body))) = (alternatives.len(), n_none > 0, alternatives.first_mut())
            && let [Step::One { label, slots }] = body.as_mut_slice()
        {
            let marked = matches!(self.flows.labels.get(*label), Some(Label::Sub { kind: SubKind::Iteration, .. }));
            if let Some(slot) = slots.first_mut().filter(|slot| marked || !slot.pmf.is_one()) {
                slot.pmf.add(0, n_none);
                return body.swap_remove(0);
            }
        }
        self.inferred = true;
        Step::Branch(alternatives)
    }

    fn sort_key(&self, step: &Step) -> String {
        match step {
            Step::One { label, .. } => self.label_text(*label),
            Step::Branch(alternatives) => {
                let first = alternatives.iter().find_map(|(_, body)| body.first());
                first.map_or_else(String::new, |step| self.sort_key(step))
            }
        }
    }

    fn label_text(&self, label: u32) -> String {
        match self.flows.labels.get(label) {
            Some(Label::Call { location, kind }) => format!("{:?} {kind:?}", self.names.service(*location)),
            Some(Label::Sub { kind, location }) => format!("{:?} {kind:?}", self.names.service(*location)),
            Some(Label::Block(steps)) => steps.iter().map(|step| self.label_text(*step)).collect::<Vec<_>>().join("+"),
            None => String::new(),
        }
    }

    fn nodes_of(&mut self, step: Step, flow: Flow, depth: usize, nodes: &mut Vec<FlowNode>) {
        match step {
            Step::One { label, slots } => self.label_nodes(label, &slots, flow, depth, nodes),
            Step::Branch(alternatives) => {
                let n_all: u64 = alternatives.iter().map(|(n, _)| n).sum();
                let alternatives = alternatives.into_iter().map(|(n, steps)| {
                    let mut body = Vec::new();
                    steps.into_iter().for_each(|step| self.nodes_of(step, flow, depth, &mut body));
                    Alternative { probability: n as f64 / n_all as f64, n, index: None, body }
                });
                let alternatives = alternatives.collect();
                nodes.push(FlowNode::Branch { name: None, alternatives });
            }
        }
    }

    fn label_nodes(&mut self, label: u32, slots: &[SlotSums], flow: Flow, depth: usize, nodes: &mut Vec<FlowNode>) {
        let Some(own) = slots.first() else { return };
        let flows = self.flows;
        let mut body = Vec::new();
        match flows.labels.get(label) {
            None => return,
            Some(Label::Block(steps)) => {
                let mut at = 1;
                for step in steps {
                    let n_slots = flows.labels.n_slots(*step);
                    if let Some(slots) = slots.get(at..at + n_slots) {
                        self.label_nodes(*step, slots, flow, depth, &mut body);
                    }
                    at += n_slots;
                }
            }
            Some(Label::Call { location, kind }) => {
                push_internal(own.gap_ns, own.n_gaps, &mut body);
                let (component, method) = self.names.service(*location);
                let (component, method) = (component.to_owned(), method.to_owned());
                body.push(FlowNode::Call { component, method, asynchronous: *kind == CallKind::Async, n: own.n_gaps });
            }
            Some(Label::Sub { kind, location }) => {
                push_internal(own.gap_ns, own.n_gaps, &mut body);
                self.marked(*kind, *location, own.n_gaps, flow, depth, &mut body);
            }
        }
        let marked = match flows.labels.get(label) {
            Some(Label::Sub { kind: SubKind::Iteration, location }) => Some(self.names.service(*location).1.to_owned()),
            _ => None,
        };
        if own.pmf.is_one() && marked.is_none() {
            nodes.extend(body);
            return;
        }
        self.inferred |= marked.is_none();
        nodes.push(FlowNode::Loop { name: marked, count: own.pmf.clone().into(), body });
    }

    fn marked(&mut self, kind: SubKind, location: u32, n: u64, flow: Flow, depth: usize, nodes: &mut Vec<FlowNode>) {
        let name = self.names.service(location).1.to_owned();
        let key = |index| FlowKey::Sub { of: flow, kind, location, index };
        let flows = self.flows;
        if depth >= DEEPEST_ACTION {
            return;
        }
        match kind {
            SubKind::Branch => {
                let mut taken: Vec<(u32, Flow, &FlowStats)> = Vec::new();
                for (found, _) in flows.iter() {
                    if let FlowKey::Sub { of, kind: SubKind::Branch, location: method, index } = found
                        && (*of, *method) == (flow, location)
                    {
                        taken.extend(flows.get(found).map(|(flow, stats)| (*index, flow, stats)));
                    }
                }
                // Transitions of which every execution is truncated say nothing.
                taken.retain(|(_, _, stats)| stats.n > 0);
                if taken.is_empty() {
                    return;
                }
                taken.sort_by_key(|(index, ..)| *index);
                let n_all: u64 = taken.iter().map(|(_, _, stats)| stats.n).sum();
                let alternative = |(index, flow, stats): (u32, Flow, &FlowStats)| Alternative {
                    probability: stats.n as f64 / n_all as f64,
                    n: stats.n,
                    index: Some(index),
                    body: self.flow(flow, stats, depth + 1),
                };
                let alternatives = taken.into_iter().map(alternative).collect();
                nodes.push(FlowNode::Branch { name: Some(name), alternatives });
            }
            SubKind::Internal => {
                let Some((inner, stats)) = flows.get(&key(0)) else { return };
                let mut body = self.flow(inner, stats, depth + 1);
                if let [FlowNode::Internal { name: unnamed, .. }] = body.as_mut_slice() {
                    *unnamed = Some(name);
                } else if body.is_empty() {
                    body.push(FlowNode::Internal { name: Some(name), mean_ns: 0.0, n });
                }
                nodes.extend(body);
            }
            SubKind::Loop | SubKind::Iteration => {
                if let Some((inner, stats)) = flows.get(&key(0)) {
                    nodes.extend(self.flow(inner, stats, depth + 1));
                }
            }
        }
    }
}

fn push_internal(sum_ns: i128, n: u64, nodes: &mut Vec<FlowNode>) {
    if sum_ns > 0 && n > 0 {
        nodes.push(FlowNode::Internal { name: None, mean_ns: sum_ns as f64 / n as f64, n });
    }
}

/// Structures in which blocks that are loops elsewhere are such blocks too, run once.
fn unified(stats: &FlowStats, labels: &Labels) -> Vec<(Vec<u32>, Structure)> {
    let mut blocks: Vec<(u32, &[u32])> = Vec::new();
    for label in stats.structures.keys().flatten() {
        if let Some(Label::Block(steps)) = labels.get(*label)
            && !blocks.iter().any(|(known, _)| known == label)
        {
            blocks.push((*label, steps));
        }
    }
    blocks.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.len()));
    let mut unified: Vec<(Vec<u32>, Structure)> = Vec::new();
    for (key, structure) in &stats.structures {
        let (key, structure) = with_blocks(key, structure, &blocks, labels);
        match unified.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.merge(&structure),
            None => unified.push((key, structure)),
        }
    }
    unified
}

fn with_blocks(key: &[u32], structure: &Structure, blocks: &[(u32, &[u32])], labels: &Labels) -> (Vec<u32>, Structure) {
    let (mut new_key, mut slots) = (Vec::new(), Vec::new());
    let (mut at, mut slot) = (0, 0);
    while at < key.len() {
        let block = blocks.iter().find(|(_, steps)| key[at..].starts_with(steps));
        let (label, n_steps) = block.map_or((key[at], 1), |(label, steps)| (*label, steps.len()));
        if block.is_some() {
            let mut once = SlotSums::default();
            once.pmf.add(1, structure.n);
            slots.push(once);
        }
        let n_slots: usize = key[at..at + n_steps].iter().map(|label| labels.n_slots(*label)).sum();
        slots.extend(structure.slots.iter().skip(slot).take(n_slots).cloned());
        new_key.push(label);
        at += n_steps;
        slot += n_slots;
    }
    (new_key, Structure { n: structure.n, slots, tail_ns: structure.tail_ns })
}

fn steps(key: &[u32], slots: Vec<SlotSums>, labels: &Labels) -> Vec<Step> {
    let mut slots = slots.into_iter();
    key.iter().map(|label| Step::One { label: *label, slots: slots.by_ref().take(labels.n_slots(*label)).collect() }).collect()
}

/// Takes off what all alternatives end with.
fn take_common_suffix(alternatives: &mut [(u64, Vec<Step>)]) -> Vec<Step> {
    let mut suffix = Vec::new();
    while let Some((first, others)) = alternatives.split_first_mut() {
        let Some(last) = first.1.last() else { break };
        if !others.iter().all(|(_, body)| body.last().is_some_and(|other| other.is_like(last))) {
            break;
        }
        let Some(mut common) = first.1.pop() else { break };
        others.iter_mut().filter_map(|(_, body)| body.pop()).for_each(|other| common.merge(other));
        suffix.push(common);
    }
    suffix.reverse();
    suffix
}
