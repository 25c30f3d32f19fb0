//! Sums over the executions of a service, and of its marked actions.

use std::collections::BTreeMap;

use crate::trace::hashed::{IndexMap, Slice, alike};
use serde::{Deserialize, Serialize};

use super::{
    Labels,
    collapse::{Item, collapse},
    labels::CallKind,
};

/// Counts up to here are kept as they are; larger ones to three digits.
const LARGEST_EXACT_COUNT: u64 = 4096;
/// Most structures of one flow.
const MOST_STRUCTURES: usize = 512;
/// Most counts that the structures of all flows may hold: some 250 bytes each.
const MOST_SLOTS: usize = 1 << 18;
/// Most steps that are looked at for likeness one by one.
const MOST_PLAIN: usize = 8;
/// Most different sequences of one flow that are reported, and the longest of them.
const MOST_SEQUENCES: usize = 256;
const LONGEST_SEQUENCE: usize = 64;

/// A probability mass function, as counts: value → how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pmf(pub BTreeMap<u64, u64>);

impl Pmf {
    /// Counts `value` `n` times. Values above 4096 are kept to three digits, so that there are never many.
    pub fn add(&mut self, value: u64, n: u64) {
        let mut kept = value;
        if value > LARGEST_EXACT_COUNT {
            let step = 10_u64.pow(value.ilog10() - 2);
            kept = value / step * step;
        }
        *self.0.entry(kept).or_insert(0) += n;
    }

    /// Counts what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(value, n)| *self.0.entry(*value).or_insert(0) += n);
    }

    /// How often anything was counted.
    pub fn n(&self) -> u64 {
        self.0.values().sum()
    }

    /// Probability of `value`.
    pub fn probability(&self, value: u64) -> f64 {
        self.0.get(&value).map_or(0.0, |n| *n as f64 / self.n() as f64)
    }

    /// Mean value, 0 of nothing.
    pub fn mean(&self) -> f64 {
        let n = self.n() as f64;
        if n > 0.0 { self.0.iter().map(|(value, n)| *value as f64 * *n as f64).sum::<f64>() / n } else { 0.0 }
    }

    /// Standard deviation / mean, 0 where the mean is 0.
    pub fn coefficient_of_variation(&self) -> f64 {
        let (n, mean) = (self.n() as f64, self.mean());
        if mean <= 0.0 {
            return 0.0;
        }
        let square = |(value, n): (&u64, &u64)| (*value as f64 - mean).powi(2) * *n as f64;
        (self.0.iter().map(square).sum::<f64>() / n).sqrt() / mean
    }

    /// Whether every value is 1.
    pub fn is_one(&self) -> bool {
        self.0.keys().all(|value| *value == 1)
    }
}

/// Counts of a label at one place of a structure, over all executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct SlotSums {
    pub(in super::super) pmf: Pmf,
    pub(in super::super) gap_ns: i128,
    pub(in super::super) n_gaps: u64,
}

impl SlotSums {
    pub(in super::super) fn merge(&mut self, other: &Self) {
        self.pmf.merge(&other.pmf);
        self.gap_ns += other.gap_ns;
        self.n_gaps += other.n_gaps;
    }
}

/// Executions with the same labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Structure {
    pub(in super::super) n: u64,
    /// Counts of its labels and, after each, those of its steps.
    pub(in super::super) slots: Vec<SlotSums>,
    /// Time after the last step.
    pub(in super::super) tail_ns: i128,
}

impl Structure {
    pub(in super::super) fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.tail_ns += other.tail_ns;
        self.slots.resize_with(self.slots.len().max(other.slots.len()), SlotSums::default);
        self.slots.iter_mut().zip(&other.slots).for_each(|(sums, more)| sums.merge(more));
    }
}

/// What a flow is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum FlowKey {
    /// A service.
    Service(u32),
    /// A marked action inside the flow `of`; of a branch, one of its transitions.
    Sub { of: u32, kind: super::SubKind, location: u32, index: u32 },
}

/// All executions of a service, or of a marked action.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FlowStats {
    /// Complete executions.
    pub(in super::super) n: u64,
    /// By their labels.
    pub(in super::super) structures: IndexMap<Box<[u32]>, Structure>,
    /// Sequences as they were, while there are few.
    pub(in super::super) sequences: IndexMap<Box<[u32]>, u64>,
    /// Calls of each service.
    pub(in super::super) calls: IndexMap<(u32, CallKind), u64>,
    /// Executions whose structure is not known: too long, or too many.
    pub(in super::super) n_unstructured: u64,
    /// The places of the last structure, the last sequence and the last call: the next structure and sequence are often alike, and
    /// the next call often follows as it did before.
    last_structure: usize,
    last_sequence: usize,
    last_call: usize,
    /// The places of the sequences that are structures as they are, shape `(n_structures,)` or shorter.
    sequence_of: Vec<Option<usize>>,
}

impl FlowStats {
    /// Adds an execution: its steps, with the time before each, and the time after the last.
    /// `n_kept` is how many counts all flows hold.
    pub(in super::super) fn add(&mut self, steps: &[(u32, i64)], tail_ns: i64, labels: &mut Labels, n_kept: &mut usize) {
        self.n += 1;
        if is_plain(steps) {
            return self.add_plain(steps, tail_ns, n_kept);
        }
        self.add_sequence(steps);
        let mut items: Vec<Item> = steps.iter().map(|(label, gap_ns)| Item::single(*label, *gap_ns)).collect();
        if !collapse(&mut items, labels) {
            self.n_unstructured += 1;
            return;
        }
        let key: Vec<u32> = items.iter().map(|item| item.label).collect();
        let n_slots = key.iter().map(|label| labels.n_slots(*label)).sum();
        let Some(structure) = self.structure(&key, n_slots, n_kept) else { return };
        structure.n += 1;
        structure.tail_ns += i128::from(tail_ns);
        let mut slots = structure.slots.iter_mut();
        for item in items {
            if let Some(slot) = slots.next() {
                slot.pmf.add(item.count, 1);
                slot.gap_ns += i128::from(item.gap_ns);
                slot.n_gaps += item.n_gaps;
            }
            for (inner, slot) in item.inner.iter().zip(slots.by_ref()) {
                inner.counts.iter().for_each(|(count, times)| slot.pmf.add(*count, *times));
                slot.gap_ns += i128::from(inner.gap_ns);
                slot.n_gaps += inner.n_gaps;
            }
        }
    }

    /// The same of steps with nothing to collapse: they are their own structure.
    fn add_plain(&mut self, steps: &[(u32, i64)], tail_ns: i64, n_kept: &mut usize) {
        let mut key = [0; MOST_PLAIN];
        key.iter_mut().zip(steps).for_each(|(slot, (label, _))| *slot = *label);
        let Some(structure) = self.structure(&key[..steps.len()], steps.len(), n_kept) else {
            self.add_sequence(steps);
            return;
        };
        structure.n += 1;
        structure.tail_ns += i128::from(tail_ns);
        for (slot, (_, gap_ns)) in structure.slots.iter_mut().zip(steps) {
            slot.pmf.add(1, 1);
            slot.gap_ns += i128::from(*gap_ns);
            slot.n_gaps += 1;
        }
        let place = self.last_structure;
        if place >= self.sequence_of.len() {
            self.sequence_of.resize(place + 1, None);
        }
        match self.sequence_of[place].and_then(|sequence| self.sequences.get_index_mut(sequence)) {
            Some((_, n)) => *n += 1,
            None => self.sequence_of[place] = self.add_sequence(steps),
        }
    }

    /// Counts a sequence; its place, if it is kept.
    fn add_sequence(&mut self, steps: &[(u32, i64)]) -> Option<usize> {
        if steps.len() > LONGEST_SEQUENCE {
            return None;
        }
        if let Some((last, n)) = self.sequences.get_index_mut(self.last_sequence)
            && last.len() == steps.len()
            && last.iter().zip(steps).all(|(known, (label, _))| known == label)
        {
            *n += 1;
            return Some(self.last_sequence);
        }
        let mut key = [0; LONGEST_SEQUENCE];
        key.iter_mut().zip(steps).for_each(|(slot, (label, _))| *slot = *label);
        let key = &key[..steps.len()];
        if let Some((place, _, n)) = self.sequences.get_full_mut(&Slice(key)) {
            *n += 1;
            self.last_sequence = place;
            Some(place)
        } else if self.sequences.len() < MOST_SEQUENCES {
            Some(self.sequences.insert_full(key.into(), 1).0)
        } else {
            None
        }
    }

    /// Counts a call of a service.
    pub(in super::super) fn add_call(&mut self, call: (u32, CallKind)) {
        for place in [self.last_call + 1, self.last_call, 0] {
            if let Some((known, n)) = self.calls.get_index_mut(place)
                && *known == call
            {
                *n += 1;
                self.last_call = place;
                return;
            }
        }
        let entry = self.calls.entry(call);
        self.last_call = entry.index();
        *entry.or_insert(0) += 1;
    }

    fn structure(&mut self, key: &[u32], n_slots: usize, n_kept: &mut usize) -> Option<&mut Structure> {
        let is_last = self.structures.get_index(self.last_structure).is_some_and(|(last, _)| alike(last, key));
        if !is_last {
            self.last_structure = match self.structures.get_index_of(&Slice(key)) {
                Some(place) => place,
                None if self.structures.len() >= MOST_STRUCTURES || *n_kept + n_slots > MOST_SLOTS => {
                    self.n_unstructured += 1;
                    return None;
                }
                None => {
                    *n_kept += n_slots;
                    let slots = vec![SlotSums::default(); n_slots];
                    self.structures.insert_full(key.into(), Structure { slots, ..Structure::default() }).0
                }
            };
        }
        self.structures.get_index_mut(self.last_structure).map(|(_, structure)| structure)
    }

    /// Adds the executions of `other`, whose labels and services are renumbered.
    fn merge(&mut self, other: Self, label: &[u32], location: &[u32], n_kept: &mut usize) {
        self.n += other.n;
        self.n_unstructured += other.n_unstructured;
        let relabelled = |key: &[u32]| key.iter().map(|l| label[*l as usize]).collect::<Vec<u32>>();
        for (key, structure) in other.structures {
            let n = structure.n;
            match self.structure(&relabelled(&key), structure.slots.len(), n_kept) {
                Some(here) => here.merge(&structure),
                None => self.n_unstructured += n - 1,
            }
        }
        for (key, n) in other.sequences {
            let key = relabelled(&key);
            if self.sequences.len() < MOST_SEQUENCES || self.sequences.contains_key(key.as_slice()) {
                *self.sequences.entry(key.into()).or_insert(0) += n;
            }
        }
        for ((called, kind), n) in other.calls {
            *self.calls.entry((location[called as usize], kind)).or_insert(0) += n;
        }
    }
}

/// Whether no two of a few steps are alike: nothing to collapse.
fn is_plain(steps: &[(u32, i64)]) -> bool {
    steps.len() <= MOST_PLAIN && steps.iter().enumerate().all(|(i, (label, _))| steps[..i].iter().all(|(earlier, _)| earlier != label))
}

/// A flow by its number.
pub(in super::super) type Flow = u32;

/// All flows.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Flows {
    pub(in super::super) labels: Labels,
    flows: IndexMap<FlowKey, FlowStats>,
    /// The flow of each service; `u32::MAX` where there is none.
    of_service: Vec<Flow>,
    /// Counts that the structures hold.
    n_kept: usize,
}

impl Flows {
    /// The flow of `key`; a marked action's has a higher number than the one that it is in.
    pub(in super::super) fn flow(&mut self, key: FlowKey) -> Flow {
        let FlowKey::Service(location) = key else { return self.number(key) };
        let at = location as usize;
        if at >= self.of_service.len() {
            self.of_service.resize(at + 1, Flow::MAX);
        }
        if self.of_service[at] == Flow::MAX {
            self.of_service[at] = self.number(key);
        }
        self.of_service[at]
    }

    fn number(&mut self, key: FlowKey) -> Flow {
        let entry = self.flows.entry(key);
        let index = entry.index() as u32;
        entry.or_default();
        index
    }

    /// The sums of a flow, with the labels, and how many counts all flows hold.
    pub(in super::super) fn stats(&mut self, flow: Flow) -> Option<(&mut FlowStats, &mut Labels, &mut usize)> {
        Some((self.flows.get_index_mut(flow as usize)?.1, &mut self.labels, &mut self.n_kept))
    }

    pub(in super::super) fn get(&self, key: &FlowKey) -> Option<(Flow, &FlowStats)> {
        self.flows.get_full(key).map(|(flow, _, stats)| (flow as u32, stats))
    }

    pub(in super::super) fn iter(&self) -> impl Iterator<Item = (&FlowKey, &FlowStats)> {
        self.flows.iter()
    }

    /// Adds the flows of `other`; `location` renumbers its services.
    pub(in super::super) fn merge(&mut self, other: Self, location: &[u32]) {
        let mut label_of: Vec<u32> = Vec::new();
        for label in other.labels.iter() {
            let renumbered = match label {
                super::Label::Call { location: called, kind } => super::Label::Call { location: location[*called as usize], kind: *kind },
                super::Label::Sub { kind, location: method } => super::Label::Sub { kind: *kind, location: location[*method as usize] },
                super::Label::Block(steps) => super::Label::Block(steps.iter().map(|step| label_of[*step as usize]).collect()),
            };
            // Where there is no room for a block it counts as its first step.
            let first = match &renumbered {
                super::Label::Block(steps) => steps.first().copied().unwrap_or(0),
                _ => 0,
            };
            label_of.push(self.labels.intern(renumbered).unwrap_or(first));
        }
        let mut flow_of: Vec<u32> = Vec::new();
        for (key, stats) in other.flows {
            let key = match key {
                FlowKey::Service(service) => FlowKey::Service(location[service as usize]),
                FlowKey::Sub { of, kind, location: method, index } => {
                    FlowKey::Sub { of: flow_of[of as usize], kind, location: location[method as usize], index }
                }
            };
            let flow = self.flow(key);
            flow_of.push(flow);
            if let Some((here, _, n_kept)) = self.stats(flow) {
                here.merge(stats, &label_of, location, n_kept);
            }
        }
    }
}
