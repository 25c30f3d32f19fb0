//! What entries need of resources other than their processors: synchronous calls to tasks there.
//!
//! ```text
//! entry e, visits (r, D)        task r on processor r, any number of threads: entry r.e with host demand D
//!                               e ── 1 call, from its first phase (of a graph its first activity) ──▶ r.e
//! ```

use std::collections::BTreeMap;

use super::{Assembly, TakenNames, model_name};
use crate::{
    model::{Activity, Call, CallKind, CallOrder, Entry, Number, Phase, ProcessorScheduling, Task, TaskScheduling},
    structure::{
        entries::{Accepts, ArcKind, MergedEntry},
        extraction::{CallReport, EntryReport, TaskReport},
        interactions::{ProcessHints, ResourceVisit},
    },
    trace::diagnostics::Diagnostics,
};

/// An entry's visit: its index in the merged ones, and its name, or that of the one for what arrives.
type Caller = (usize, String);

/// Adds the visits of another process of a task: of an operation to a resource the first that is said.
pub(super) fn join(known: &mut Vec<ResourceVisit>, more: &[ResourceVisit]) {
    for visit in more {
        if !known.iter().any(|k| (&k.operation, &k.resource) == (&visit.operation, &visit.resource)) {
            known.push(visit.clone());
        }
    }
}

impl Assembly<'_> {
    /// What an entry needs of resources other than its processor.
    pub(super) fn visits<'h>(&self, entry: &MergedEntry, hints: &'h [ProcessHints]) -> impl Iterator<Item = &'h ResourceVisit> {
        let operation = entry.operation.map(|o| self.parts.summary.operations.name(o).to_owned());
        hints[entry.task as usize].visits.iter().filter(move |visit| operation.as_ref() == Some(&visit.operation))
    }

    /// Adds a task for each resource that entries visit, and their calls.
    pub(super) fn add_visits(&mut self, hints: &[ProcessHints], names: &mut TakenNames) {
        let mut visits: BTreeMap<&str, Vec<(Caller, &ResourceVisit)>> = BTreeMap::new();
        for (index, entry) in self.parts.merged.entries.iter().enumerate().filter(|(_, entry)| entry.accepts != Accepts::Nothing) {
            for visit in self.visits(entry, hints) {
                let callers = std::iter::once(&self.entry_names[index]).chain(self.arrival_names.get(&index));
                visits.entry(&visit.resource).or_default().extend(callers.map(|name| ((index, name.clone()), visit)));
            }
        }
        for (resource, visits) in visits {
            let name = names.task(resource);
            let processor = visits.iter().find_map(|(_, visit)| visit.processor.as_deref()).unwrap_or(resource);
            let processor = model_name(processor);
            self.add_processor(&processor, ProcessorScheduling::Fcfs);
            let mut task = Task::new(name.clone(), processor.clone());
            task.scheduling = TaskScheduling::Inf;
            let mut entries = Vec::with_capacity(visits.len());
            for ((index, caller), visit) in visits {
                let entry = names.entry(&name, Some(&caller), entries.len());
                task.entries.push(entry_of(&entry, visit.demand_s));
                entries.push(self.visit_report(&entry, index));
                self.add_visit(&caller, &entry, self.parts.merged.entries[index].n_occurrences);
                note(&mut self.out.diagnostics, &caller, &name);
            }
            self.out.model.tasks.push(task);
            self.out.tasks.push(TaskReport { name, reference: false, processor, threads: 1, is_infinite: true, entries });
        }
    }

    /// Adds the call of the entry `caller` to `entry`.
    fn add_visit(&mut self, caller: &str, entry: &str, n_occurrences: u64) {
        let own = |task: &&mut Task| task.entries.iter().any(|known| known.name == *caller);
        if let Some(activity) = self.out.model.tasks.iter_mut().find(own).and_then(|task| first_activity(task, caller)) {
            if activity.calls.is_empty() {
                activity.call_order = CallOrder::Deterministic;
            }
            activity.calls.push(Call { kind: CallKind::Sync, dest: entry.to_owned(), mean: Number::Value(1.0) });
        }
        let report = self.out.tasks.iter_mut().flat_map(|task| &mut task.entries).find(|known| known.name == *caller);
        report.into_iter().for_each(|report| {
            report.calls.push(CallReport {
                to: entry.to_owned(),
                kind: ArcKind::Sync,
                phase: 1,
                mean: 1.0,
                variance: 0.0,
                occurrences: n_occurrences,
                distribution: vec![(1, n_occurrences)],
            });
        });
    }

    /// What is said of an entry that only the entry `caller` visits; no recording shows its time.
    fn visit_report(&self, name: &str, caller: usize) -> EntryReport {
        let caller = &self.parts.merged.entries[caller];
        EntryReport {
            name: name.to_owned(),
            operation: None,
            accepts: Accepts::Sync,
            occurrences: caller.n_occurrences,
            first: self.parts.summary.name(caller.first),
            self_times: vec![None],
            self_time_variations: Vec::new(),
            calls: Vec::new(),
            examples: caller.examples.clone(),
        }
    }
}

fn entry_of(name: &str, demand_s: f64) -> Entry {
    let mut entry = Entry::new(name.to_owned());
    entry.phases.push(Phase { phase: 1, activity: Activity::new(format!("{name}_ph1"), demand_s) });
    entry
}

/// The activity that an execution of an entry begins with.
fn first_activity<'t>(task: &'t mut Task, entry: &str) -> Option<&'t mut Activity> {
    let entry = task.entries.iter_mut().find(|known| known.name == entry)?;
    match &entry.start_activity {
        Some(start) => task.activities.iter_mut().find(|activity| activity.name == *start),
        None => entry.phases.iter_mut().find(|phase| phase.phase == 1).map(|phase| &mut phase.activity),
    }
}

fn note(diagnostics: &mut Diagnostics, caller: &str, resource: &str) {
    let message = "demands at resources other than the one that a task runs on are calls to these: each has a task of its own";
    diagnostics.add("resource_visited", message, || format!("{caller} at {resource}"));
}
