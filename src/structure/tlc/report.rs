//! What TLC tells beside interactions: activities, their demands and order in each entry (its *resource functions*), and what
//! became of the events.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    control::{EntryKind, N_TEMPLATES},
    live::NONE,
    templates::Template,
};
use crate::trace::{
    diagnostics::Diagnostics,
    hashed::{self, alike},
    names::Names,
};

/// Most different sequences of activities that are kept of an entry's phase.
const SEQUENCES_KEPT: usize = 64;

/// Longest sequence of activities that is kept.
const LONGEST_SEQUENCE: usize = 256;

/// Names of activities kept of an entry's phase; what comes later is counted under [`OTHER`].
const ACTIVITIES_KEPT: usize = 1024;

/// Activities without a name.
const UNNAMED: &str = "(unnamed)";

/// Activities beyond those that are kept.
const OTHER: &str = "(other)";

/// Demands of one entry that differ by more than this part of their mean are told when they are merged.
const SPREAD_TOLD: f64 = 0.1;

/// What became of the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// All that came in: the sum of those below.
    pub read: u64,
    /// Held by a template.
    pub used: u64,
    /// Held by none.
    pub unmatched: u64,
    /// Of a node that was there already.
    pub duplicate: u64,
}

/// Sums of a number that was observed some times; mergeable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How often.
    pub n: u64,
    /// Sum.
    pub sum: f64,
    /// Least; 0 where `n` is.
    pub min: f64,
    /// Greatest; 0 where `n` is.
    pub max: f64,
}

impl Spread {
    /// Counts one observation.
    pub fn add(&mut self, value: f64) {
        self.merge(Self { n: 1, sum: value, min: value, max: value });
    }

    /// Counts what `other` counted.
    pub fn merge(&mut self, other: Self) {
        if self.n == 0 || other.n == 0 {
            if self.n == 0 {
                *self = other;
            }
            return;
        }
        *self = Self { n: self.n + other.n, sum: self.sum + other.sum, min: self.min.min(other.min), max: self.max.max(other.max) };
    }

    /// The mean; `None` without observations.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    /// Range over mean; 0 where all are alike.
    fn relative(&self) -> f64 {
        let range = self.max - self.min;
        self.mean().filter(|_| range > 0.0).map_or(0.0, |mean| range / mean.abs())
    }
}

/// An activity of an entry's phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityUse {
    /// Its name; `(unnamed)` where events have none.
    pub activity: String,
    /// How often it was done.
    pub count: u64,
    /// Its demands in ticks, where they are known.
    pub demand: Spread,
}

/// A sequence of activities that an entry's phase consisted of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivitySequence {
    /// Their names in order.
    pub activities: Vec<String>,
    /// How often.
    pub count: u64,
    /// Their demand together in ticks, where it is known.
    pub demand: Spread,
}

/// One phase of an entry: consecutive demands are one sum, as queueing knows no order within a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseActivities {
    /// Demand of an invocation in ticks, over those of which it is known.
    pub demand: Spread,
    /// Activities, most frequent first.
    pub activities: Vec<ActivityUse>,
    /// Sequences of activities, most frequent first; of those seen first as many as are kept.
    pub sequences: Vec<ActivitySequence>,
    /// Invocations with sequences that were not kept.
    pub other_sequences: u64,
}

/// What an entry did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryActivities {
    /// Its task (service).
    pub task: String,
    /// Its operation, where events name it.
    pub operation: Option<String>,
    /// How it was requested.
    pub kind: EntryKind,
    /// Its invocations.
    pub invocations: u64,
    /// Requests that an invocation made, forwardings too.
    pub requests: Spread,
    /// Phases 1 and 2.
    pub phases: [PhaseActivities; 2],
}

/// What TLC tells beside interactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlcReport {
    /// What became of the events.
    pub events: EventCounts,
    /// Recordings that interactions were found in.
    pub recordings: u64,
    /// How often each template was found.
    pub templates: IndexMap<Template, u64>,
    /// Activities of each entry, by task, operation and kind.
    pub entries: Vec<EntryActivities>,
}

/// Sums for one activity.
#[derive(Clone, Copy, Debug, Default)]
struct ActivitySums {
    count: u64,
    demand: Spread,
}

/// Sums for a phase; activities by number.
#[derive(Clone, Debug, Default)]
struct PhaseSums {
    demand: Spread,
    activities: hashed::IndexMap<u32, ActivitySums>,
    sequences: hashed::IndexMap<Box<[u32]>, ActivitySums>,
    other_sequences: u64,
    /// The places of the last activity and sequence: the next are often the same.
    last_activity: usize,
    last_sequence: usize,
}

/// Sums for an entry.
#[derive(Clone, Debug, Default)]
struct EntrySums {
    invocations: u64,
    requests: Spread,
    phases: [PhaseSums; 2],
}

/// Task (process), operation and kind of an entry, as numbers.
pub(super) type EntryKey = (u32, u32, EntryKind);

/// One activity of an invocation: its name's number, and its demand (NaN where it is not known).
pub(super) type Step = (u32, f64);

/// The report while it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources {
    pub(super) events: EventCounts,
    pub(super) recordings: u64,
    pub(super) templates: [u64; N_TEMPLATES],
    entries: hashed::IndexMap<EntryKey, EntrySums>,
    /// The place of the last entry of each process, shape `(n_processes,)` or shorter.
    last_entry: Vec<usize>,
    labels: Vec<u32>,
}

/// How one set of numbers becomes another.
pub(super) struct Renumbered<'m> {
    pub(super) processes: &'m [u32],
    pub(super) operations: &'m [u32],
    pub(super) activities: &'m [u32],
}

impl Resources {
    /// Counts an invocation of an entry: its requests, and the steps of phases 1 and 2.
    pub(super) fn add(&mut self, key: EntryKey, n_requests: u32, steps: [&[Step]; 2]) {
        let process = key.0 as usize;
        if process >= self.last_entry.len() {
            self.last_entry.resize(process + 1, 0);
        }
        let last = &mut self.last_entry[process];
        let sums = match self.entries.get_index_mut(*last) {
            Some((known, sums)) if *known == key => sums,
            _ => {
                let entry = self.entries.entry(key);
                *last = entry.index();
                entry.or_default()
            }
        };
        sums.invocations += 1;
        sums.requests.add(f64::from(n_requests));
        for (phase, steps) in sums.phases.iter_mut().zip(steps) {
            phase.add(steps, &mut self.labels);
        }
    }

    pub(super) fn merge(&mut self, other: Self, renumbered: &Renumbered<'_>) {
        self.events.read += other.events.read;
        self.events.used += other.events.used;
        self.events.unmatched += other.events.unmatched;
        self.events.duplicate += other.events.duplicate;
        self.recordings += other.recordings;
        for (count, more) in self.templates.iter_mut().zip(other.templates) {
            *count += more;
        }
        let new = |numbers: &[u32], number: u32| numbers.get(number as usize).copied().unwrap_or(number);
        for ((process, operation, kind), more) in other.entries {
            let key = (new(renumbered.processes, process), new(renumbered.operations, operation), kind);
            let sums = self.entries.entry(key).or_default();
            sums.invocations += more.invocations;
            sums.requests.merge(more.requests);
            for (phase, more) in sums.phases.iter_mut().zip(more.phases) {
                phase.merge(more, |activity| new(renumbered.activities, activity));
            }
        }
    }

    /// Tells which entries were merged of unlike invocations.
    pub(super) fn note_spread(&self, names: [&Names; 2], diagnostics: &mut Diagnostics) {
        for ((process, operation, _), sums) in &self.entries {
            let demand = sums.phases.iter().map(|phase| phase.demand.relative()).fold(0.0, f64::max);
            if demand > SPREAD_TOLD || sums.requests.min < sums.requests.max {
                let message = "entries differ between invocations in their demand or requests: merged by operation, they are means";
                diagnostics.add("merge_spread", message, || {
                    let name = [names[0].name(*process), names[1].name(*operation)].join(" ").trim_end().to_owned();
                    format!("{name}: {} to {} requests, demands within {:.0} %", sums.requests.min, sums.requests.max, 100.0 * demand)
                });
            }
        }
    }

    /// The report, with names in place of numbers.
    pub(super) fn finish(self, processes: &Names, operations: &Names, activities: &Names) -> TlcReport {
        let entries = self.entries.into_iter().map(|((process, operation, kind), sums)| EntryActivities {
            task: processes.name(process).to_owned(),
            operation: (operation != NONE).then(|| operations.name(operation).to_owned()),
            kind,
            invocations: sums.invocations,
            requests: sums.requests,
            phases: sums.phases.map(|phase| phase.finish(activities)),
        });
        let mut entries: Vec<EntryActivities> = entries.collect();
        entries.sort_by(|a, b| (&a.task, &a.operation, a.kind).cmp(&(&b.task, &b.operation, b.kind)));
        let templates = ALL_TEMPLATES.into_iter().map(|template| (template, self.templates[template as usize]));
        TlcReport {
            events: self.events,
            recordings: self.recordings,
            templates: templates.filter(|(_, count)| *count > 0).collect(),
            entries,
        }
    }
}

const ALL_TEMPLATES: [Template; N_TEMPLATES] = [
    Template::Rpc,
    Template::Async,
    Template::RpcWithSecondPhase,
    Template::Forwarding,
    Template::AsyncRpc,
    Template::NestedAsyncRpc,
    Template::Activity,
    Template::End,
    Template::Begin,
    Template::AsyncForwarding,
    Template::Unanswered,
];

/// The number that activities beyond those kept are counted under.
const OTHER_NUMBER: u32 = NONE - 1;

impl PhaseSums {
    fn add(&mut self, steps: &[Step], labels: &mut Vec<u32>) {
        if steps.is_empty() {
            return;
        }
        labels.clear();
        let mut total: Option<f64> = None;
        for (label, demand) in steps {
            labels.push(*label);
            let sums = self.activity(*label);
            sums.count += 1;
            if !demand.is_nan() {
                sums.demand.add(*demand);
                total = Some(total.unwrap_or(0.0) + demand);
            }
        }
        if let Some(total) = total {
            self.demand.add(total);
        }
        if !self.sequences.get_index(self.last_sequence).is_some_and(|(last, _)| alike(last, labels)) {
            self.last_sequence = self.sequences.get_index_of(labels.as_slice()).unwrap_or(usize::MAX);
        }
        if let Some((_, known)) = self.sequences.get_index_mut(self.last_sequence) {
            known.count += 1;
            total.into_iter().for_each(|total| known.demand.add(total));
        } else if self.sequences.len() < SEQUENCES_KEPT && labels.len() <= LONGEST_SEQUENCE {
            let mut sums = ActivitySums { count: 1, demand: Spread::default() };
            total.into_iter().for_each(|total| sums.demand.add(total));
            self.sequences.insert(labels.as_slice().into(), sums);
        } else {
            self.other_sequences += 1;
        }
    }

    fn activity(&mut self, label: u32) -> &mut ActivitySums {
        if self.activities.get_index(self.last_activity).is_none_or(|(last, _)| *last != label) {
            let is_kept = self.activities.len() < ACTIVITIES_KEPT || self.activities.contains_key(&label);
            let entry = self.activities.entry(if is_kept { label } else { OTHER_NUMBER });
            self.last_activity = entry.index();
            entry.or_default();
        }
        &mut self.activities[self.last_activity]
    }

    fn merge(&mut self, other: Self, renumbered: impl Fn(u32) -> u32) {
        self.demand.merge(other.demand);
        self.other_sequences += other.other_sequences;
        for (label, more) in other.activities {
            let sums = self.activity(renumbered(label));
            sums.count += more.count;
            sums.demand.merge(more.demand);
        }
        for (labels, more) in other.sequences {
            let labels: Box<[u32]> = labels.iter().map(|label| renumbered(*label)).collect();
            if self.sequences.len() >= SEQUENCES_KEPT && !self.sequences.contains_key(&labels) {
                self.other_sequences += more.count;
                continue;
            }
            let sums = self.sequences.entry(labels).or_default();
            sums.count += more.count;
            sums.demand.merge(more.demand);
        }
    }

    fn finish(self, names: &Names) -> PhaseActivities {
        let name = |label: u32| match label {
            NONE => UNNAMED.to_owned(),
            OTHER_NUMBER => OTHER.to_owned(),
            label => names.name(label).to_owned(),
        };
        let uses = self.activities.into_iter();
        let uses = uses.map(|(label, sums)| ActivityUse { activity: name(label), count: sums.count, demand: sums.demand });
        let mut activities: Vec<ActivityUse> = uses.collect();
        activities.sort_by(|a, b| (b.count, &a.activity).cmp(&(a.count, &b.activity)));
        let sequences = self.sequences.into_iter().map(|(labels, sums)| ActivitySequence {
            activities: labels.iter().map(|label| name(*label)).collect(),
            count: sums.count,
            demand: sums.demand,
        });
        let mut sequences: Vec<ActivitySequence> = sequences.collect();
        sequences.sort_by(|a, b| (b.count, &a.activities).cmp(&(a.count, &b.activities)));
        PhaseActivities { demand: self.demand, activities, sequences, other_sequences: self.other_sequences }
    }
}
