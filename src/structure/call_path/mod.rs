//! Call paths: entries and exits of building blocks to components, control flow, parameters and demands.
//!
//! Input: call-path events ([`crate::trace::call_path`], [`crate::trace::kieker`]); output: [`Interactions`], components being
//! processes and their services operations, and a [`CallPathReport`] with what an LQN cannot say. Source: Brosig, Huber, Kounev,
//! *Automated extraction of architecture-level performance models of distributed component-based systems*, ASE 2011.
//!
//! ```text
//!  events ─▶ collect, live ─▶ analysis: frames ──▶ links ───▶ walk ─────────▶ batches ─▶ Interactions
//!            (contexts)                 (stacks)   (async)    (occurrences,  ─▶ summary ─▶ report: flows, dependencies, demands
//!                                                              regions)
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

mod analysis;
mod batches;
mod collect;
mod delays;
pub mod demand;
pub mod dependencies;
mod flow;
mod frames;
mod hints;
mod links;
mod live;
mod observe;
mod options;
mod outside;
mod places;
mod report;
mod summary;
mod transactions;
mod walk;

pub(in crate::structure) use collect::{Intake, Met};
pub use delays::DelayReport;
pub use flow::{Alternative, FlowNode, LoopCount, Pmf};
pub use options::{
    CallPathOptionError, CallPathOptions, Characterisation, DependencySpec, DependentAction, Instances, Partial, Slot, is_sampled,
};
pub use outside::OutsideReport;
pub use report::{CallPathReport, CallReport, ComponentReport, ConnectionReport, PathClass, SequenceReport, ServiceReport};
pub use summary::{PathCounts, RecordCounts};

use analysis::Analysis;
use collect::Collector;

use crate::{
    structure::{
        interactions::{Hints, Interactions},
        observations::Observations,
    },
    trace::{
        call_path::{Event, Texts},
        diagnostics::Diagnostics,
    },
};

/// What batches of complete recordings are handed to.
pub type Out<'o> = dyn FnMut(Interactions) + 'o;

/// The technique while events come in.
#[derive(Clone, Debug)]
pub struct CallPaths {
    intake: Intake,
    requests: Requests,
}

/// What collects records to requests, and analyses these.
#[derive(Clone, Debug)]
pub(in crate::structure) struct Requests {
    collector: Collector,
    analysis: Analysis,
}

impl Requests {
    /// Takes what the next event tells.
    pub(in crate::structure) fn take(&mut self, met: Met, out: &mut Out<'_>) {
        let Self { collector, analysis } = self;
        if let Met::New(new) = &met {
            return analysis.learn(new);
        }
        collector.take(met, &mut |request| analysis.take(request, out));
    }

    /// Completes what is unfinished.
    pub(in crate::structure) fn complete_all(&mut self, out: &mut Out<'_>) {
        let Self { collector, analysis } = self;
        collector.complete_all(&mut |request| analysis.take(request, out));
    }
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
        let requests = Requests { collector: Collector::new(&options), analysis: Analysis::new(options.clone()) };
        Ok(Self { intake: Intake::new(options), requests })
    }

    /// The same, which also hands over to `observations` what is wanted there.
    #[must_use]
    pub fn observing(mut self, observations: Observations) -> Self {
        self.intake.wants_sessions = observations.wants_requests();
        self.requests.analysis.observations = observations;
        self
    }

    /// Takes an event. All events that one technique is fed are of the same `texts`, which may grow.
    pub fn feed(&mut self, texts: &Texts, event: &Event<'_>, out: &mut Out<'_>) {
        let Self { intake, requests } = self;
        intake.feed(texts, event, &mut |met| requests.take(met, out));
    }

    /// What numbers events, and what takes them: the second may run beside the first, if it takes what that hands over in its order.
    pub(in crate::structure) fn parts(&mut self) -> (&mut Intake, &mut Requests) {
        (&mut self.intake, &mut self.requests)
    }

    /// Goes on with what another has seen, too: requests that are unfinished in both are joined.
    pub fn merge(&mut self, other: Self, out: &mut Out<'_>) {
        let Requests { collector, analysis } = &mut self.requests;
        let (location, name) = analysis.renumber(&other.requests.analysis);
        self.intake.merge(&other.intake);
        collector.merge(other.requests.collector, &location, &name);
        analysis.merge(other.requests.analysis, &location, &name, out);
    }

    /// Completes what is unfinished, and reports.
    pub fn finish(self, out: &mut Out<'_>) -> Finished {
        let Self { intake, mut requests } = self;
        requests.complete_all(out);
        requests.analysis.finish(&intake.records, out)
    }
}
