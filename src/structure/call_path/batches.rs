//! Executions to batches of interactions.

use super::{
    flow::Naming,
    links::Request,
    options::{CallPathOptions, Partial},
    places::Places,
    walk::Walk,
};
use smallvec::smallvec;

use crate::{
    structure::interactions::{Interaction, InteractionKind, Interactions, Occurrence, Recording, ScenariosBy},
    trace::{Time, diagnostics::Diagnostics},
};

/// Most occurrences of incomplete requests that are kept in case there are no others.
const MOST_RESERVED: usize = 1 << 17;

/// Requests on their way out.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    pending: Interactions,
    /// Incomplete requests, for when there are no others.
    reserve: Interactions,
    /// Incomplete requests, those in the reserve too, and those for which that has no room.
    incomplete: Diagnostics,
    dropped: Diagnostics,
    /// Whether complete requests were handed over.
    has_complete: bool,
    /// Occurrences of each unit in the request at hand.
    n_of_unit: Vec<u32>,
}

impl Batches {
    /// Adds a request; hands a batch over when it is full.
    pub(super) fn add(
        &mut self,
        mut request: Request,
        walk: &Walk,
        weight: f64,
        places: &Places,
        options: &CallPathOptions,
        out: &mut dyn FnMut(Interactions),
    ) {
        if walk.executions.is_empty() {
            return;
        }
        let keep = !request.partial || request.cut || options.partial == Partial::Keep;
        if !keep {
            note_left_out(&mut self.incomplete, &request);
            if self.has_complete || self.reserve.occurrences.len() > MOST_RESERVED {
                note_left_out(&mut self.dropped, &request);
                return;
            }
        }
        let batch = if keep { &mut self.pending } else { &mut self.reserve };
        self.n_of_unit.clear();
        self.n_of_unit.resize(places.units.process_of.len(), 0);
        let scenario = scenario(batch, walk, places, options);
        append(batch, (std::mem::take(&mut request.name), scenario), walk, weight, &mut self.n_of_unit);
        if keep && !self.has_complete {
            self.has_complete = true;
            self.reserve = Interactions::default();
        }
        if self.pending.occurrences.len() >= options.batch_occurrences {
            self.flush(places, out);
        }
    }

    /// Hands over what is pending.
    pub(super) fn flush(&mut self, places: &Places, out: &mut dyn FnMut(Interactions)) {
        if !self.pending.occurrences.is_empty() {
            out(named(std::mem::take(&mut self.pending), places));
        }
    }

    /// Hands over the rest; incomplete requests if there were no others. Returns what is to be said of incomplete ones.
    pub(super) fn finish(mut self, places: &Places, out: &mut dyn FnMut(Interactions)) -> Diagnostics {
        let only_partial = !self.has_complete && !self.reserve.occurrences.is_empty();
        let mut said = if only_partial { std::mem::take(&mut self.dropped) } else { std::mem::take(&mut self.incomplete) };
        if only_partial {
            self.pending = std::mem::take(&mut self.reserve);
            let message = "every request has records missing: they were used as they stand";
            said.add("only_partial_paths", message, String::new);
        }
        self.flush(places, out);
        said
    }

    /// Takes over what another handed over or kept, named by its own places.
    pub(super) fn merge(&mut self, other: Self, theirs: &Places, places: &mut Places) {
        self.has_complete |= other.has_complete;
        self.incomplete.merge(other.incomplete);
        self.dropped.merge(other.dropped);
        for (batch, more) in [(&mut self.pending, other.pending), (&mut self.reserve, other.reserve)] {
            let mut here = named(std::mem::take(batch), places);
            here.merge(named(more, theirs));
            // Numbers of units and operations are again those of the places.
            let unit_of: Vec<u32> = (here.units.names.iter().zip(&here.units.process_of))
                .map(|(unit, process)| {
                    let process = here.units.processes.name(*process);
                    let thread = unit.strip_prefix(process).and_then(|rest| rest.strip_prefix('@')).unwrap_or("");
                    places.units.intern(process, thread)
                })
                .collect();
            let operation_of: Vec<u32> = here.operations.iter().map(|name| places.operations.intern(name)).collect();
            for occurrence in &mut here.occurrences {
                occurrence.unit = unit_of[occurrence.unit as usize];
                occurrence.operation = occurrence.operation.map(|operation| operation_of[operation as usize]);
            }
            *batch = here;
        }
        if self.has_complete {
            self.reserve = Interactions::default();
        }
    }
}

fn note_left_out(diagnostics: &mut Diagnostics, request: &Request) {
    let message = "requests of which records are missing were left out of the model";
    diagnostics.add("requests_left_out", message, || request.name.clone());
}

/// Gives a batch the names that its numbers are of.
fn named(mut batch: Interactions, places: &Places) -> Interactions {
    batch.units = places.units.clone();
    batch.operations = places.operations.clone();
    batch
}

/// The number in the batch of the scenario of a request.
fn scenario(batch: &mut Interactions, walk: &Walk, places: &Places, options: &CallPathOptions) -> u32 {
    let first = walk.executions.first().filter(|_| options.scenarios == ScenariosBy::Root);
    let Some(first) = first else { return batch.scenarios.intern(&options.scenario) };
    let (component, method) = places.service(first.location);
    batch.scenarios.intern(&format!("{component}.{method}"))
}

fn append(batch: &mut Interactions, (name, scenario): (String, u32), walk: &Walk, weight: f64, n_of_unit: &mut [u32]) {
    let trace = batch.traces.len() as u32;
    batch.traces.push(Recording { weight, weighs_means: false, ..Recording::new(name, scenario) });
    let client = batch.occurrences.len();
    // The client is unit 0.
    let outside = Occurrence { unit: 0, number: 1, trace, operation: None, originator: true, self_time_ticks: [Some(0.0), None] };
    batch.occurrences.push(outside);
    let first = batch.occurrences.len();
    for execution in &walk.executions {
        let number = &mut n_of_unit[execution.unit as usize];
        *number += 1;
        let known = execution.measured && !execution.truncated;
        batch.occurrences.push(Occurrence {
            unit: execution.unit,
            number: *number,
            trace,
            operation: Some(execution.operation),
            originator: false,
            self_time_ticks: [known.then(|| execution.self_ns.max(0) as f64), None],
        });
    }
    for (index, execution) in walk.executions.iter().enumerate() {
        let requester = execution.requester;
        let (start, end) = (Time::from_ticks(execution.start_ns), Time::from_ticks(execution.end_ns));
        batch.interactions.push(Interaction {
            kind: requester.kind,
            phase: 1,
            from: requester.occurrence.map_or(client, |caller| first + caller as usize),
            via: Vec::new(),
            to: first + index,
            branch: None,
            times: if requester.kind == InteractionKind::Async { smallvec![start] } else { smallvec![start, end] },
        });
    }
}
