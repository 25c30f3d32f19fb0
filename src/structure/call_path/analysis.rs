//! Requests that are complete to sums, and to batches of interactions.

use super::{
    Finished, Out,
    batches::Batches,
    collect::{Complete, New},
    links::{Request, UNMATCHED},
    live::NONE,
    observe,
    options::CallPathOptions,
    places::Places,
    report,
    summary::{RecordCounts, Summary},
    walk::Walk,
};
use crate::{structure::observations::Observations, trace::diagnostics::Diagnostics};

/// What was found in requests so far.
#[derive(Clone, Debug)]
pub(super) struct Analysis {
    options: CallPathOptions,
    places: Places,
    summary: Summary,
    batches: Batches,
    diagnostics: Diagnostics,
    walk: Walk,
    pub(super) observations: Observations,
}

impl Analysis {
    pub(super) fn new(options: CallPathOptions) -> Self {
        let places = Places::new(&options);
        let (summary, batches, diagnostics, walk, observations) = Default::default();
        Self { options, places, summary, batches, diagnostics, walk, observations }
    }

    /// Takes a request, in the order in which they were collected.
    pub(super) fn take(&mut self, complete: Complete, out: &mut Out<'_>) {
        let Complete { live, made_room } = complete;
        if made_room {
            let (code, message) = if live.cut {
                ("context_cut", "requests were cut where they stood, as too many were unfinished")
            } else {
                (
                    "context_not_awaited",
                    "requests were taken for complete while other files were still to be read: what those have of them counts apart",
                )
            };
            self.diagnostics.add(code, message, String::new);
        }
        let request = Request::of(live, &mut self.diagnostics);
        if request.is_elsewhere() {
            self.summary.add_records(&request);
            return;
        }
        self.walk.over(&request, &mut self.places, &mut self.summary.flows);
        for _ in 0..self.walk.n_unmatched {
            self.diagnostics.add("async_unmatched", UNMATCHED, || request.name.clone());
        }
        let start_ns = self.walk.executions.iter().map(|execution| execution.start_ns).min().unwrap_or_default();
        let weight = self.options.weight(start_ns);
        self.summary.add(&request, &self.walk, weight, &self.places, &self.options);
        observe::observe(&request, &self.walk, weight, &self.places, &mut self.observations);
        self.batches.add(request, &self.walk, weight, &self.places, &self.options, out);
    }

    /// Numbers a name that was met.
    pub(super) fn learn(&mut self, new: &New) {
        match new {
            New::Service(class, method) => _ = self.places.location(class, method, &self.options),
            New::Name(name) => _ = self.places.texts.names.intern(name),
        }
    }

    /// The numbers here of the services, and of the servers and threads, of another.
    pub(super) fn renumber(&mut self, other: &Self) -> (Vec<u32>, Vec<u32>) {
        (self.places.renumber(&other.places, &self.options), self.places.renumber_names(&other.places))
    }

    /// Adds what another found, after what is here; its services and names have the numbers `location` and `name`.
    pub(super) fn merge(&mut self, other: Self, location: &[u32], name: &[u32], out: &mut Out<'_>) {
        let instance: Vec<u32> = other
            .places
            .instances
            .iter()
            .map(|(component, server)| {
                let component = self.places.components.intern(other.places.components.name(*component));
                let server = name.get(*server as usize).copied().unwrap_or(NONE);
                self.places.instances.insert_full((component, server)).0 as u32
            })
            .collect();
        self.summary.merge(other.summary, location, name, &instance);
        self.batches.merge(other.batches, &other.places, &mut self.places);
        self.diagnostics.merge(other.diagnostics);
        self.observations.merge(other.observations);
        self.batches.flush(&self.places, out);
    }

    /// Hands over the rest, and reports; `records` are those that were counted before they were collected.
    pub(super) fn finish(mut self, records: &RecordCounts, out: &mut Out<'_>) -> Finished {
        self.summary.records.merge(records);
        let of_incomplete = self.batches.finish(&self.places, out);
        self.diagnostics.merge(of_incomplete);
        let texts = &self.places.texts;
        let services = (0..texts.n_locations() as u32).map(|location| texts.service(location));
        for pattern in self.options.boundaries.of_nothing(services) {
            let message = "boundaries are given of classes or methods that the records do not show";
            self.diagnostics.add("boundary_of_nothing", message, || pattern.to_owned());
        }
        let finished = report::finished(&self.summary, &self.places, &self.options, self.diagnostics);
        Finished { observations: self.observations, ..finished }
    }
}
