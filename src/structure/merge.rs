//! Occurrences to entries: merging those that do the same (Part D of SAME, for every technique).
//!
//! Input: [`Interactions`] (a forest) and the task of each unit; output: entries with their mean numbers of requests. The
//! key is said by [`MergeKey`]; how an occurrence is accepted (with a reply, without, not at all) is always part of it,
//! as an entry cannot accept both kinds.
//!
//! An arc of the forest is one request: a synchronous interaction is one arc; an asynchronous one is one; a forwarded one is
//! a synchronous arc to the first of the chain and a forwarding arc from each to the next. By behaviour, two occurrences
//! are identical if their multisets of arcs (kind, phase, entry of the target) are equal. Since a target is created after
//! its requester, one pass from the last occurrence to the first sees the entries of all targets before they are needed;
//! a map from signatures to entries then gives the coarsest merging, which repeated pairwise merging (the paper's way)
//! also ends at, in time linear in the number of arcs.
//!
//! | symbol | is |
//! |---|---|
//! | fₒ | weight of occurrence o: that of its trace |
//! | y(e, k, p, d) = Σ fₒ nₒ(k, p, d) / Σ fₒ | mean number of arcs of kind k from phase p of entry e to entry d, over the occurrences o of e |

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    MergeKey,
    interactions::{InteractionKind, Interactions, Tasks},
};

/// How an entry is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accepts {
    /// Not at all: it starts on its own.
    Nothing,
    /// With a reply, its own or that of the one it forwards to.
    Sync,
    /// Without a reply.
    Async,
}

/// What an arc asks of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArcKind {
    /// A request with a reply.
    Sync,
    /// A request without.
    Async,
    /// To reply in place of its source.
    Forward,
}

/// Requests of one kind from an entry to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedArc {
    /// Kind of the requests.
    pub kind: ArcKind,
    /// Phase of the requesting entry, 1 or 2; a forwarding is of phase 1.
    pub phase: u8,
    /// The other entry (index into [`Merged::entries`]).
    pub target: usize,
    /// Mean number for each invocation; of a forwarding its probability.
    pub mean: f64,
}

/// An entry: occurrences that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedEntry {
    /// Its task (number in [`Tasks::names`]).
    pub task: u32,
    /// How it is accepted.
    pub accepts: Accepts,
    /// Its operation (number in [`Interactions::operations`]), where all its occurrences have the same.
    pub operation: Option<u32>,
    /// Number of occurrences.
    pub n_occurrences: u64,
    /// The first of them (index into [`Interactions::occurrences`]).
    pub first: usize,
    /// Its requests, by kind, phase and target.
    pub arcs: Vec<MergedArc>,
    /// Mean self time of phases 1 and 2 in ticks, where it is known.
    pub self_time_ticks: [Option<f64>; 2],
}

/// Entries, and which of them each occurrence belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The entries, by their first occurrence.
    pub entries: Vec<MergedEntry>,
    /// The entry of each occurrence, shape `(n_occurrences,)`.
    pub entry_of: Vec<usize>,
}

/// One request of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arc {
    pub(super) kind: ArcKind,
    pub(super) phase: u8,
    /// The requested occurrence.
    pub(super) target: usize,
}

/// The arcs of the forest by their source.
#[derive(Clone, Debug)]
pub(super) struct Arcs {
    /// Arcs of occurrence `o` are `arcs[starts[o]..starts[o + 1]]`.
    starts: Vec<usize>,
    arcs: Vec<Arc>,
    pub(super) accepts: Vec<Accepts>,
}

impl Arcs {
    pub(super) fn of(interactions: &Interactions) -> Self {
        let n = interactions.occurrences.len();
        let mut starts = vec![0; n + 1];
        let mut accepts = vec![Accepts::Nothing; n];
        for_each_arc(interactions, |source, arc| {
            starts[source + 1] += 1;
            accepts[arc.target] = if arc.kind == ArcKind::Async { Accepts::Async } else { Accepts::Sync };
        });
        for o in 0..n {
            starts[o + 1] += starts[o];
        }
        let mut next = starts.clone();
        let mut arcs = vec![Arc { kind: ArcKind::Sync, phase: 1, target: 0 }; starts[n]];
        for_each_arc(interactions, |source, arc| {
            arcs[next[source]] = arc;
            next[source] += 1;
        });
        Self { starts, arcs, accepts }
    }

    pub(super) fn from(&self, occurrence: usize) -> &[Arc] {
        &self.arcs[self.starts[occurrence]..self.starts[occurrence + 1]]
    }
}

fn for_each_arc(interactions: &Interactions, mut visit: impl FnMut(usize, Arc)) {
    for interaction in &interactions.interactions {
        let kind = if interaction.kind == InteractionKind::Async { ArcKind::Async } else { ArcKind::Sync };
        let first = interaction.via.first().copied().unwrap_or(interaction.to);
        visit(interaction.from, Arc { kind, phase: interaction.phase, target: first });
        let next = interaction.via.iter().skip(1).chain([&interaction.to]);
        for (source, target) in interaction.via.iter().zip(next) {
            visit(*source, Arc { kind: ArcKind::Forward, phase: 1, target: *target });
        }
    }
}

/// What tells entries apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Signature {
    task: u32,
    accepts: Accepts,
    operation: Option<u32>,
    /// Kind, phase, entry and number of requests, sorted; empty where behaviour is not part of the key.
    requests: Vec<(ArcKind, u8, usize, u64)>,
}

/// Merges occurrences into entries; `trace_weights`, shape `(n_traces,)`, are the fₒ of the module's equations.
pub fn merge(interactions: &Interactions, tasks: &Tasks, key: MergeKey, trace_weights: &[f64]) -> Merged {
    let arcs = Arcs::of(interactions);
    let entry_of = in_order_of_first(classes(interactions, tasks, key, &arcs));
    let entries = summarize(interactions, tasks, key, &arcs, &entry_of, trace_weights);
    Merged { entries, entry_of }
}

/// The class of each occurrence, numbered as they are met from the last occurrence to the first.
fn classes(interactions: &Interactions, tasks: &Tasks, key: MergeKey, arcs: &Arcs) -> Vec<usize> {
    let mut class_of = vec![usize::MAX; interactions.occurrences.len()];
    let mut known: IndexMap<Signature, ()> = IndexMap::new();
    for (index, occurrence) in interactions.occurrences.iter().enumerate().rev() {
        let requests = if key == MergeKey::Operation { Vec::new() } else { requests(arcs.from(index), &class_of) };
        let signature = Signature {
            task: tasks.of_unit[occurrence.unit as usize],
            accepts: arcs.accepts[index],
            operation: occurrence.operation.filter(|_| key != MergeKey::BehaviourOnly),
            requests,
        };
        class_of[index] = known.insert_full(signature, ()).0;
    }
    class_of
}

fn requests(arcs: &[Arc], class_of: &[usize]) -> Vec<(ArcKind, u8, usize, u64)> {
    let mut targets: Vec<_> = arcs.iter().map(|arc| (arc.kind, arc.phase, class_of[arc.target])).collect();
    debug_assert!(targets.iter().all(|(_, _, class)| *class != usize::MAX), "targets are created after their requesters");
    targets.sort_unstable();
    targets.chunk_by(|a, b| a == b).map(|same| (same[0].0, same[0].1, same[0].2, same.len() as u64)).collect()
}

/// Renumbers classes by their first occurrence.
fn in_order_of_first(mut class_of: Vec<usize>) -> Vec<usize> {
    let mut order: IndexMap<usize, ()> = IndexMap::new();
    for class in &mut class_of {
        *class = order.insert_full(*class, ()).0;
    }
    class_of
}

/// Sums over the occurrences of an entry.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// Over all occurrences.
    weight: f64,
    /// Over those whose self time is known, by phase.
    measured_weight: [f64; 2],
    self_time: [f64; 2],
    /// Over those whose requests are counted.
    counted_weight: f64,
    requests: IndexMap<(ArcKind, u8, usize), f64>,
}

fn summarize(
    interactions: &Interactions,
    tasks: &Tasks,
    key: MergeKey,
    arcs: &Arcs,
    entry_of: &[usize],
    trace_weights: &[f64],
) -> Vec<MergedEntry> {
    let mut entries: Vec<MergedEntry> = Vec::new();
    let mut sums: Vec<Sums> = Vec::new();
    for (index, occurrence) in interactions.occurrences.iter().enumerate() {
        let entry = entry_of[index];
        if entry == entries.len() {
            entries.push(MergedEntry {
                task: tasks.of_unit[occurrence.unit as usize],
                accepts: arcs.accepts[index],
                operation: occurrence.operation,
                n_occurrences: 0,
                first: index,
                arcs: Vec::new(),
                self_time_ticks: [None; 2],
            });
            sums.push(Sums::default());
        }
        let (entry, sum) = (&mut entries[entry], &mut sums[entry]);
        entry.n_occurrences += 1;
        entry.operation = entry.operation.filter(|_| entry.operation == occurrence.operation);
        let weight = trace_weights[occurrence.trace as usize];
        sum.add_self_time(occurrence.self_time_ticks, weight);
        // By behaviour all occurrences are alike: the first one's counts are the means, without rounding.
        let counts = if key == MergeKey::Operation { weight } else { 1.0 };
        if key == MergeKey::Operation || entry.n_occurrences == 1 {
            sum.add_requests(arcs.from(index), entry_of, counts);
        }
    }
    for (entry, sum) in entries.iter_mut().zip(sums) {
        sum.means_into(entry);
    }
    entries
}

impl Sums {
    fn add_self_time(&mut self, ticks: [Option<f64>; 2], weight: f64) {
        self.weight += weight;
        for (phase, ticks) in ticks.into_iter().enumerate() {
            self.self_time[phase] += weight * ticks.unwrap_or(0.0);
            self.measured_weight[phase] += if ticks.is_some() { weight } else { 0.0 };
        }
    }

    fn add_requests(&mut self, arcs: &[Arc], entry_of: &[usize], weight: f64) {
        self.counted_weight += weight;
        for arc in arcs {
            *self.requests.entry((arc.kind, arc.phase, entry_of[arc.target])).or_insert(0.0) += weight;
        }
    }

    /// An occurrence without a second phase counts as zero in its mean; one whose first phase is not known does not count.
    fn means_into(self, entry: &mut MergedEntry) {
        let second = if self.measured_weight[1] > 0.0 { self.weight } else { 0.0 };
        entry.self_time_ticks =
            [(0, self.measured_weight[0]), (1, second)].map(|(phase, weight)| (weight > 0.0).then(|| self.self_time[phase] / weight));
        entry.arcs = self
            .requests
            .iter()
            .map(|((kind, phase, target), sum)| MergedArc { kind: *kind, phase: *phase, target: *target, mean: sum / self.counted_weight })
            .collect();
        entry.arcs.sort_by_key(|arc| (arc.kind, arc.phase, arc.target));
    }
}

#[cfg(test)]
mod tests;
