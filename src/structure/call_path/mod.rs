//! Call paths: entries and exits of building blocks to components, control flow, parameters and demands.
//!
//! Input: call-path events ([`crate::trace::call_path`], [`crate::trace::kieker`]); output: [`Interactions`], components being
//! processes and their services operations, and a [`CallPathReport`] with what an LQN cannot say. Source: Brosig, Huber, Kounev,
//! *Automated extraction of architecture-level performance models of distributed component-based systems*, ASE 2011.
//!
//! ```text
//!  events ─▶ live ─────▶ frames ──▶ links ───▶ walk ─────────▶ batches ─▶ Interactions
//!            (contexts)  (stacks)   (async)    (occurrences,  ─▶ summary ─▶ report: flows, dependencies, demands
//!                                               regions)
//! ```
//!
//! - *Call paths*: records with one context are one system request, a recording; those with one transaction in it are one call
//!   path, ordered by record id. Transactions that others began are joined by asynchronous interactions.
//! - *Components*: frames inside one component instance are one occurrence. Services of a component that are entered from
//!   another or from outside are provided, those it calls are required. What is entered from outside is requested by the
//!   process [`CallPathOptions::client`].
//! - *Control flow*: [`flow`]; *parametric dependencies*: [`dependencies`]; *demands* and calibration: [`demand`].
//! - *Overhead control*: whole contexts are sampled, by a hash of their identity; a sampled recording has a weight of
//!   1 / rate, which scales throughputs; probabilities are of the recordings as they are.
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | self time | time in a component's occurrence less the calls of others: from call to return where the caller's side is recorded, else from entry to exit | ns |
//! | y(x → y_j) = Σ_{s ∈ S_x} freq(s) count_j(s) | mean calls of a service by another | |
//!
//! Where the paper is silent: a request of which records are missing is not handed over, unless there are only such; its complete
//! executions still count in the report. A component on several servers is as many processes. Where records name no threads,
//! a process is said not to limit them, as the paper's models do.

mod batches;
mod delays;
pub mod demand;
pub mod dependencies;
mod flow;
mod frames;
mod links;
mod live;
mod observe;
mod options;
mod places;
mod report;
mod summary;
mod walk;

pub use delays::DelayReport;
pub use flow::{Alternative, FlowNode, LoopCount, Pmf};
pub use options::{
    CallPathOptionError, CallPathOptions, Characterisation, DependencySpec, DependentAction, Instances, Partial, Slot, is_sampled,
};
pub use report::{CallPathReport, CallReport, ComponentReport, ConnectionReport, PathClass, SequenceReport, ServiceReport};
pub use summary::{PathCounts, RecordCounts};

use batches::Batches;
use links::{Request, UNMATCHED};
use live::{Begun, Live, LiveSet, NONE, OwnedKey, Record, What};
use places::Places;
use summary::Summary;
use walk::Walk;

use crate::{
    structure::{
        interactions::{Hints, Interactions},
        observations::Observations,
    },
    trace::{
        call_path::{Event, Kind, Texts},
        diagnostics::Diagnostics,
    },
};

/// What batches of complete recordings are handed to.
pub type Out<'o> = dyn FnMut(Interactions) + 'o;

/// The technique while events come in.
#[derive(Clone, Debug)]
pub struct CallPaths {
    options: CallPathOptions,
    places: Places,
    live: LiveSet,
    summary: Summary,
    batches: Batches,
    diagnostics: Diagnostics,
    walk: Walk,
    observations: Observations,
    /// Numbers here of the reader's services and names; [`NONE`] where not yet looked up.
    location_of: Vec<u32>,
    name_of: Vec<u32>,
}

/// What is known at the end.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Components, services, flows, dependencies, demands, diagnostics.
    pub report: CallPathReport,
    /// Processors, threads and demands of the processes.
    pub hints: Hints,
    /// What was odd; the same as the report's.
    pub diagnostics: Diagnostics,
    /// What was observed beside.
    pub observations: Observations,
}

impl CallPaths {
    /// A technique that has seen nothing.
    ///
    /// # Errors
    /// [`CallPathOptionError`] for options out of range.
    pub fn new(options: CallPathOptions) -> Result<Self, CallPathOptionError> {
        options.check()?;
        let places = Places::new(&options);
        let (live, summary, batches, diagnostics, walk) = Default::default();
        let (observations, location_of, name_of) = Default::default();
        Ok(Self { options, places, live, summary, batches, diagnostics, walk, observations, location_of, name_of })
    }

    /// The same, which also hands over to `observations` what is wanted there.
    #[must_use]
    pub fn observing(self, observations: Observations) -> Self {
        Self { observations, ..self }
    }

    /// Takes an event. All events that one technique is fed are of the same `texts`, which may grow.
    pub fn feed(&mut self, texts: &Texts, event: &Event<'_>, out: &mut Out<'_>) {
        self.summary.records.seen += 1;
        if self.options.sample < 1.0 && !is_sampled(&event.context.to_string(), self.options.sample) {
            self.summary.records.not_sampled += 1;
            return;
        }
        let number = self.live.next_number();
        let (server, thread) = (self.name(texts, event.server), self.name(texts, event.thread));
        if let Kind::Begin { parent } = event.kind {
            self.summary.records.begins += 1;
            let begun =
                parent.map(|parent| (parent.context, Begun { by: parent.context.into(), order: parent.order, waits: parent.waits }));
            self.live.begin(event.context, event.transaction, (server, thread), begun);
        } else {
            let what = self.what(texts, &event.kind);
            let record = Record { order: event.order.unwrap_or(u64::MAX), number, time_ns: event.time_ns, server, thread, what };
            self.live.push(event.context, event.transaction, record);
        }
        if let Some(session) = event.session.filter(|_| self.observations.wants_requests()) {
            self.live.name_session(event.context, session);
        }
        while let Some(live) = self.live.pop_complete(self.options.quiet_records) {
            self.complete(live, out);
        }
        for live in self.live.cut(self.options.most_live_records) {
            let (code, message) = if live.cut {
                ("context_cut", "requests were cut where they stood, as too many were unfinished")
            } else {
                (
                    "context_not_awaited",
                    "requests were taken for complete while other files were still to be read: what those have of them counts apart",
                )
            };
            self.diagnostics.add(code, message, String::new);
            self.complete(live, out);
        }
    }

    /// Goes on with what another has seen, too: requests that are unfinished in both are joined.
    pub fn merge(&mut self, mut other: Self, out: &mut Out<'_>) {
        let location = self.places.renumber(&other.places, &self.options);
        let name = self.places.renumber_names(&other.places);
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
        other.live.renumber(&location, &name);
        self.live.merge(other.live);
        self.summary.merge(other.summary, &location, &name, &instance);
        self.batches.merge(other.batches, &other.places, &mut self.places);
        self.diagnostics.merge(other.diagnostics);
        self.observations.merge(other.observations);
        self.batches.flush(&self.places, out);
    }

    /// Completes what is unfinished, and reports.
    pub fn finish(mut self, out: &mut Out<'_>) -> Finished {
        for live in self.live.drain() {
            self.complete(live, out);
        }
        let of_incomplete = std::mem::take(&mut self.batches).finish(&self.places, out);
        self.diagnostics.merge(of_incomplete);
        let finished = report::finished(&self.summary, &self.places, &self.options, self.diagnostics);
        Finished { observations: self.observations, ..finished }
    }

    fn complete(&mut self, live: Live, out: &mut Out<'_>) {
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
        self.batches.add(&request, &self.walk, weight, &self.places, &self.options, out);
    }

    fn what(&mut self, texts: &Texts, kind: &Kind<'_>) -> What {
        let owned = |key: &crate::trace::call_path::Key<'_>| Box::new(OwnedKey::from(*key));
        match kind {
            Kind::Entry { location, action, params } => {
                let location = self.location(texts, *location);
                let wanted = self.places.dependencies(location).iter().filter_map(|dependency| {
                    let spec = self.options.dependencies.get(*dependency as usize)?;
                    let (_, rendering) = params.iter().find(|(name, _)| *name == spec.parameter)?;
                    Some((*dependency, rendering.as_str().into()))
                });
                let params: Box<[(u32, Box<str>)]> = wanted.collect();
                What::Entry { location, action: *action, params: (!params.is_empty()).then_some(params) }
            }
            Kind::Exit { location } => What::Exit { location: self.location(texts, *location) },
            Kind::Call { location, returns } => What::Call { location: self.location(texts, *location), returns: *returns },
            Kind::Return { location } => What::Return { location: self.location(texts, *location) },
            Kind::Send { location, message } => {
                What::Send { location: self.location(texts, *location), message: message.as_ref().map(owned) }
            }
            Kind::Receive { location, message } => {
                What::Receive { location: self.location(texts, *location), message: message.as_ref().map(owned) }
            }
            Kind::Execution { location, until_ns, order_index, depth, is_elsewhere } => {
                let location = self.location(texts, *location);
                let (order_index, depth, is_elsewhere) = (*order_index, *depth, *is_elsewhere);
                What::Execution { location, until_ns: *until_ns, order_index, depth, is_elsewhere }
            }
            // Begins are not records of their own.
            Kind::Begin { .. } => What::Fork { transaction: NONE, waits: false },
        }
    }

    fn location(&mut self, texts: &Texts, number: u32) -> u32 {
        let at = number as usize;
        if let Some(known) = self.location_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let (class, method) = texts.service(number);
        let location = self.places.location(class, method, &self.options);
        self.location_of.resize(self.location_of.len().max(at + 1), NONE);
        self.location_of[at] = location;
        location
    }

    fn name(&mut self, texts: &Texts, number: Option<u32>) -> u32 {
        let Some(number) = number else { return NONE };
        let at = number as usize;
        if let Some(known) = self.name_of.get(at).filter(|known| **known != NONE) {
            return *known;
        }
        let name = self.places.texts.names.intern(texts.names.name(number));
        self.name_of.resize(self.name_of.len().max(at + 1), NONE);
        self.name_of[at] = name;
        name
    }
}
