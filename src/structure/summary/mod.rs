//! Summaries: what is kept of any number of recordings, in memory bounded by the size of the model.
//!
//! Input: batches of [`Interactions`] from whatever technique; output: entries ([`Merged`]) and what the reference tasks are
//! made of. A batch is folded into sums over *classes* of occurrences (the entries to be) and forgotten. Two summaries can
//! be merged: halves of a stream, on several cores, give what the whole gives.
//!
//! A class is told from others by its signature ([`MergeKey`] says of what it is made): task, manner of acceptance,
//! operation and, by behaviour, the multiset of requests (kind, phase, parallel branch, class of the target). A target is
//! created after its requester, so one pass from a batch's last occurrence to its first sees the classes of all targets
//! before they are needed; a map from signatures to classes then gives the coarsest merging, which repeated pairwise
//! merging (Part D of SAME, the paper's way) also ends at, in time linear in the number of requests.
//!
//! | symbol | is |
//! |---|---|
//! | s | a scenario; fₛ its factor: 1, or by a usage profile pₛ / rₛ |
//! | wₒ | weight of occurrence o: how many recordings its own stands for; 1 of what was requested in one that does not weigh means |
//! | n(o, k, p, d) | requests of kind k from phase p of o to class d |
//! | y(e, k, p, d) = Σₛ fₛ Σₒ wₒ n(o, k, p, d) / Σₛ fₛ Σₒ wₒ | mean calls of an invocation of e, over the occurrences o of e in s that are known whole ([`Interactions::partial`]); over all for requests that no such makes |

mod arcs;
mod forks;
mod merged;
mod signature;
mod sums;

use indexmap::IndexMap;

pub use merged::{Start, Starters};

use arcs::Arcs;
use signature::{Look, N_RECENT, Request, Signature, put_requests, renamed_requests};
pub(super) use sums::MOST_COUNTS;
use sums::Sums;

use super::{
    MergeKey,
    interactions::{Hints, InteractionKind, Interactions, Recording, Tasks, Times},
};
use crate::trace::{diagnostics::Diagnostics, hashed, names::Names, units::Units};

/// Classes by behaviour beyond which new ones are told apart by operation alone.
const MOST_BEHAVIOURS: usize = 20_000;

/// Recordings named as examples of a class.
const EXAMPLES_KEPT: usize = 3;

/// What a summary is to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryOptions {
    /// Which occurrences become one entry.
    pub merge: MergeKey,
    /// Names of processes → names of their tasks.
    pub task_names: IndexMap<String, String>,
    /// Most interactions that are kept one by one, the first ones.
    pub records_kept: usize,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self { merge: MergeKey::default(), task_names: IndexMap::new(), records_kept: 100_000 }
    }
}

/// The name of an occurrence, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its recording (number in the summary's names of recordings).
    trace: u32,
    /// Its unit.
    unit: u32,
    /// Which of the unit's occurrences in its recording it is, from 1.
    number: u32,
}

/// An interaction that is kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) kind: InteractionKind,
    pub(super) phase: u8,
    /// Requester, forwarders, replier.
    pub(super) chain: Vec<Label>,
    pub(super) times: Times,
}

/// Occurrences that become one entry.
#[derive(Clone, Debug, PartialEq)]
struct Class {
    /// The operation of all of them, where it is one.
    operation: Option<u32>,
    first: Label,
    /// The place of the first one in the order of all occurrences.
    place: u64,
    /// Recordings that show it.
    examples: Vec<u32>,
    /// By scenario.
    sums: Vec<(u32, Sums)>,
}

/// The sums over recordings so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    options: SummaryOptions,
    pub(super) units: Units,
    pub(super) operations: Names,
    pub(super) scenarios: Names,
    pub(super) tasks: Tasks,
    /// Whether a unit served a request, shape `(n_units,)`.
    served: Vec<bool>,
    /// Number of recordings of each scenario, shape `(n_scenarios,)`.
    pub(super) n_traces: Vec<u64>,
    /// The recordings they stand for.
    pub(super) traces_weight: Vec<f64>,
    trace_names: Names,
    n_occurrences: u64,
    classes: hashed::IndexMap<Signature, Class>,
    /// Classes that were found last, by [`Look::place`].
    recent: Vec<usize>,
    starters: Starters,
    /// Interactions by kind: sync, async, forward.
    pub(super) counts: [u64; 3],
    pub(super) kept: Vec<Kept>,
    /// What a user or the traces say beside.
    pub hints: Hints,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Numbers of one set of names → numbers of another.
struct Renumbered {
    units: Vec<u32>,
    operations: Vec<u32>,
    scenarios: Vec<u32>,
    /// Of recordings that are named somewhere.
    traces: Vec<Option<u32>>,
}

impl Summary {
    /// Nothing so far.
    pub fn new(options: SummaryOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The summary of recordings that are all at hand.
    pub fn of(interactions: &Interactions, options: SummaryOptions) -> Self {
        let mut summary = Self::new(options);
        summary.absorb(interactions);
        summary
    }

    /// How many interactions were found.
    pub fn n_interactions(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Interactions that are not kept one by one.
    pub fn n_records_left_out(&self) -> u64 {
        self.n_interactions() - self.kept.len() as u64
    }

    /// Adds recordings; returns the class of each occurrence, shape `(n_occurrences,)`.
    ///
    /// What belongs together (an occurrence and those that it requested) has to be in one batch.
    pub fn absorb(&mut self, batch: &Interactions) -> Vec<usize> {
        let mut renumbered = self.renumber(&batch.units, &batch.operations, &batch.scenarios);
        renumbered.traces = vec![None; batch.traces.len()];
        self.count_traces(batch, &renumbered);
        let arcs = Arcs::of(batch);
        let class_of = self.classify(batch, &mut renumbered, &arcs);
        let mut trace = None;
        for (index, class) in class_of.iter().enumerate() {
            let number = batch.occurrences[index].trace;
            if trace != Some(number) {
                let Recording { name, continued, .. } = &batch.traces[number as usize];
                self.starters.begin(name, *continued || trace.is_some_and(|last| last > number));
                trace = Some(number);
            }
            self.add(batch, &mut renumbered, &arcs, &class_of, (index, *class));
        }
        self.n_occurrences += batch.occurrences.len() as u64;
        self.keep(batch, &mut renumbered);
        self.hints.overlay(&batch.hints);
        self.diagnostics.merge(batch.diagnostics.clone());
        class_of
    }

    /// Adds occurrence `index` to its class.
    fn add(&mut self, batch: &Interactions, renumbered: &mut Renumbered, arcs: &Arcs, class_of: &[usize], (index, number): (usize, usize)) {
        let occurrence = &batch.occurrences[index];
        let trace = &batch.traces[occurrence.trace as usize];
        let scenario = renumbered.scenarios[trace.scenario as usize];
        let unit = renumbered.units[occurrence.unit as usize];
        if occurrence.originator {
            self.starters.add(unit, self.tasks.of_unit[unit as usize]);
        } else {
            self.served[unit as usize] = true;
        }
        let weight = if occurrence.originator || trace.weighs_means { trace.weight } else { 1.0 };
        let by_operation = self.is_by_operation(number);
        let operation = occurrence.operation.map(|o| renumbered.operations[o as usize]);
        let class = &mut self.classes[number];
        class.operation = class.operation.filter(|o| Some(*o) == operation);
        if class.examples.len() < EXAMPLES_KEPT {
            let name = renumbered.trace(&mut self.trace_names, batch, occurrence.trace);
            if !class.examples.contains(&name) {
                class.examples.push(name);
            }
        }
        let is_whole = batch.partial.binary_search(&index).is_err();
        let sums = class.sums_of(scenario);
        sums.add(occurrence.self_time_ticks, weight);
        // By behaviour all occurrences are alike: the first one's counts are the means, without rounding.
        if by_operation {
            sums.add_requests(arcs.from(index), class_of, weight, is_whole);
        } else if sums.n == 1 {
            sums.add_requests(arcs.from(index), class_of, 1.0, true);
        }
    }

    /// Adds what `later` sums up, after what is here: units, operations, scenarios and recordings are joined by name.
    pub fn merge(&mut self, later: Self) {
        let renumbered = self.renumber(&later.units, &later.operations, &later.scenarios);
        for (scenario, (n, weight)) in renumbered.scenarios.iter().zip(later.n_traces.iter().zip(&later.traces_weight)) {
            self.n_traces[*scenario as usize] += n;
            self.traces_weight[*scenario as usize] += weight;
        }
        let trace_numbers: Vec<u32> = later.trace_names.iter().map(|name| self.trace_names.intern(name)).collect();
        let relabelled =
            |label: Label| Label { trace: trace_numbers[label.trace as usize], unit: renumbered.units[label.unit as usize], ..label };
        for (unit, served) in renumbered.units.iter().zip(&later.served) {
            self.served[*unit as usize] |= served;
        }
        let mut class_of = Vec::with_capacity(later.classes.len());
        let mut moved = Vec::with_capacity(later.classes.len());
        for (signature, class) in later.classes {
            let renamed = Signature {
                task: self.tasks.names.get(later.tasks.names.name(signature.task)).unwrap_or_default(),
                operation: signature.operation.map(|o| renumbered.operations[o as usize]),
                requests: signature.requests.map(|requests| renamed_requests(requests, &class_of)),
                ..signature
            };
            let operation = class.operation.map(|o| renumbered.operations[o as usize]);
            let (first, place) = (relabelled(class.first), self.n_occurrences + class.place);
            let is_new = !self.classes.contains_key(&renamed);
            let number = self.class(renamed, operation, first, place);
            let known = &mut self.classes[number];
            known.operation = known.operation.filter(|o| is_new || Some(*o) == operation);
            let room = EXAMPLES_KEPT - known.examples.len().min(EXAMPLES_KEPT);
            let new: Vec<u32> = class.examples.iter().map(|e| trace_numbers[*e as usize]).filter(|e| !known.examples.contains(e)).collect();
            known.examples.extend(new.into_iter().take(room));
            class_of.push(number);
            moved.push(class.sums);
        }
        for (number, sums) in class_of.iter().zip(moved) {
            let by_operation = self.is_by_operation(*number);
            for (scenario, sums) in sums {
                let scenario = renumbered.scenarios[scenario as usize];
                self.classes[*number].sums_of(scenario).merge(sums, &class_of, by_operation);
            }
        }
        self.n_occurrences += later.n_occurrences;
        self.starters.merge(&later.starters, |task| self.tasks.names.get(later.tasks.names.name(task)).unwrap_or_default());
        for (here, there) in self.counts.iter_mut().zip(later.counts) {
            *here += there;
        }
        let room = self.options.records_kept - self.kept.len().min(self.options.records_kept);
        let renamed = |kept: Kept| Kept { chain: kept.chain.into_iter().map(relabelled).collect(), ..kept };
        self.kept.extend(later.kept.into_iter().take(room).map(renamed));
        self.hints.overlay(&later.hints);
        self.diagnostics.merge(later.diagnostics);
    }

    /// The name of an occurrence: `Server.1`; with several recordings `browse:Server.1`.
    pub(super) fn name(&self, label: Label) -> String {
        let several = self.n_traces.iter().sum::<u64>() > 1;
        let recording = if several { self.trace_names.name(label.trace) } else { "" };
        let unit = self.units.names.name(label.unit);
        // Put together by hand: a hundred thousand interactions have their occurrences named.
        let mut name = String::with_capacity(recording.len() + unit.len() + 12);
        name.push_str(recording);
        name.push_str(if several { ":" } else { "" });
        name.push_str(unit);
        name.push('.');
        push_number(&mut name, label.number);
        name
    }

    fn renumber(&mut self, units: &Units, operations: &Names, scenarios: &Names) -> Renumbered {
        let unit = |(name, process): (&str, &u32)| {
            let process = units.processes.name(*process);
            let thread = name.strip_prefix(process).and_then(|rest| rest.strip_prefix('@')).unwrap_or("");
            let number = self.units.intern(process, thread);
            if number as usize == self.tasks.of_unit.len() {
                let task = self.options.task_names.get(process).map_or(process, String::as_str);
                self.tasks.of_unit.push(self.tasks.names.intern(task));
                self.served.push(false);
            }
            number
        };
        let units = units.names.iter().zip(&units.process_of).map(unit).collect();
        let operations = operations.iter().map(|name| self.operations.intern(name)).collect();
        let scenarios: Vec<u32> = scenarios.iter().map(|name| self.scenarios.intern(name)).collect();
        self.n_traces.resize(self.scenarios.len(), 0);
        self.traces_weight.resize(self.scenarios.len(), 0.0);
        Renumbered { units, operations, scenarios, traces: Vec::new() }
    }

    fn count_traces(&mut self, batch: &Interactions, renumbered: &Renumbered) {
        for trace in batch.traces.iter().filter(|trace| !trace.continued) {
            let scenario = renumbered.scenarios[trace.scenario as usize] as usize;
            self.n_traces[scenario] += 1;
            self.traces_weight[scenario] += trace.weight;
        }
    }

    /// The class of each occurrence of a batch.
    fn classify(&mut self, batch: &Interactions, renumbered: &mut Renumbered, arcs: &Arcs) -> Vec<usize> {
        let mut class_of = vec![usize::MAX; batch.occurrences.len()];
        let mut requests = Vec::new();
        self.recent.resize(N_RECENT, 0);
        for (index, occurrence) in batch.occurrences.iter().enumerate().rev() {
            let unit = renumbered.units[occurrence.unit as usize];
            let operation = occurrence.operation.map(|o| renumbered.operations[o as usize]);
            let by_operation = self.options.merge == MergeKey::Operation || self.classes.len() >= MOST_BEHAVIOURS;
            if by_operation && self.options.merge != MergeKey::Operation {
                let message = "behaviours differ so much that further ones were told apart by operation alone";
                self.diagnostics.add("too_many_behaviours", message, || self.units.names.name(unit).to_owned());
            }
            if !by_operation {
                put_requests(&mut requests, arcs.from(index), &class_of);
            }
            let look = Look {
                task: self.tasks.of_unit[unit as usize],
                accepts: arcs.accepts[index],
                operation: operation.filter(|_| self.options.merge != MergeKey::BehaviourOnly),
                requests: (!by_operation).then_some(&requests[..]),
            };
            let place = self.n_occurrences + index as u64;
            class_of[index] = match self.known(&look, place) {
                Some(number) => number,
                None => {
                    let trace = renumbered.trace(&mut self.trace_names, batch, occurrence.trace);
                    self.class(look.signature(), operation, Label { trace, unit, number: occurrence.number }, place)
                }
            };
        }
        class_of
    }

    /// The class that is looked for, if it was seen at `place` or before.
    fn known(&mut self, look: &Look<'_>, place: u64) -> Option<usize> {
        let recent = &mut self.recent[look.place()];
        let known = match self.classes.get_index(*recent) {
            Some((signature, class)) if look.is(signature) => Some((*recent, class)),
            _ => self.classes.get_full(&look.signature()).map(|(number, _, class)| (number, class)),
        };
        let (number, _) = known.filter(|(_, class)| class.place <= place)?;
        *recent = number;
        Some(number)
    }

    /// The class of a signature: a new one, or the known one, with `first` if that comes before the one known.
    fn class(&mut self, signature: Signature, operation: Option<u32>, first: Label, place: u64) -> usize {
        let entry = self.classes.entry(signature);
        let number = entry.index();
        let class = entry.or_insert_with(|| Class { operation, first, place, examples: Vec::new(), sums: Vec::new() });
        if place < class.place {
            (class.place, class.first) = (place, first);
        }
        number
    }

    /// Whether the occurrences of a class differ in their requests.
    fn is_by_operation(&self, class: usize) -> bool {
        self.classes.get_index(class).is_some_and(|(signature, _)| signature.requests.is_none())
    }

    fn keep(&mut self, batch: &Interactions, renumbered: &mut Renumbered) {
        for interaction in &batch.interactions {
            self.counts[interaction.kind as usize] += 1;
        }
        let room = self.options.records_kept - self.kept.len().min(self.options.records_kept);
        for interaction in batch.interactions.iter().take(room) {
            let chain = [interaction.from].into_iter().chain(interaction.via.iter().copied()).chain([interaction.to]);
            let chain = chain.map(|occurrence| {
                let occurrence = &batch.occurrences[occurrence];
                let trace = renumbered.trace(&mut self.trace_names, batch, occurrence.trace);
                Label { trace, unit: renumbered.units[occurrence.unit as usize], number: occurrence.number }
            });
            self.kept.push(Kept {
                kind: interaction.kind,
                phase: interaction.phase,
                chain: chain.collect(),
                times: interaction.times.clone(),
            });
        }
    }
}

/// Appends the digits of `number`.
fn push_number(text: &mut String, number: u32) {
    let n_digits = number.checked_ilog10().unwrap_or(0);
    text.extend((0..=n_digits).rev().map(|place| char::from(b'0' + (number / 10_u32.pow(place) % 10) as u8)));
}

impl Renumbered {
    /// The number of a recording's name: given only to recordings that are named somewhere.
    fn trace(&mut self, names: &mut Names, batch: &Interactions, trace: u32) -> u32 {
        *self.traces[trace as usize].get_or_insert_with(|| names.intern(&batch.traces[trace as usize].name))
    }
}

impl Class {
    fn sums_of(&mut self, scenario: u32) -> &mut Sums {
        let position = match self.sums.iter().position(|(known, _)| *known == scenario) {
            Some(position) => position,
            None => {
                self.sums.push((scenario, Sums::default()));
                self.sums.len() - 1
            }
        };
        &mut self.sums[position].1
    }
}

#[cfg(test)]
mod tests;
