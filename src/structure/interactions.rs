//! Interactions: what every technique finds in a trace, and all that the road to a model needs of it.
//!
//! An *occurrence* is one execution of an operation by a sequential unit (an "execution occurrence" of SAME). Interactions
//! join occurrences into a forest: each is requested by at most one other, so an occurrence is created after the one that
//! requests it. Finished traces are summaries that can be merged.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::trace::{Time, diagnostics::Diagnostics, names::Names, units::Units};

/// How units interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InteractionKind {
    /// The requester is blocked until the reply.
    Sync,
    /// No reply is waited for.
    Async,
    /// The requester is blocked until the last of a chain replies.
    Forward,
}

/// One execution of an operation by a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The unit (number in [`Interactions::units`]).
    pub unit: u32,
    /// Which of the unit's occurrences in its trace this is, from 1.
    pub number: u32,
    /// The trace (index into [`Interactions::traces`]).
    pub trace: u32,
    /// The type of the message that started it (number in [`Interactions::operations`]), where it is known.
    pub operation: Option<u32>,
    /// Whether nothing requested it.
    pub originator: bool,
    /// Time that it worked, neither waiting for replies nor for work, in ticks, for phases 1 and 2; `None` where the
    /// trace does not tell.
    pub self_time_ticks: [Option<f64>; 2],
}

/// A place in an occurrence's forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Branch {
    /// The fork (with its join) within the occurrence, from 0 in order of time.
    pub fork: u16,
    /// The branch within the fork, from 0.
    pub branch: u16,
}

/// Times of an interaction: nearly all have one or two.
pub type Times = SmallVec<[Time; 2]>;

/// One interaction between occurrences (indices into [`Interactions::occurrences`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// How they interact.
    pub kind: InteractionKind,
    /// The phase of the requester, 1 or 2.
    pub phase: u8,
    /// The requester.
    pub from: usize,
    /// Those that passed the request on, in order; empty but for [`InteractionKind::Forward`].
    pub via: Vec<usize>,
    /// The one that replied; of an asynchronous message its receiver.
    pub to: usize,
    /// The parallel branch of the requester that it was made in; `None` outside forks.
    pub branch: Option<Branch>,
    /// When each of `from`, `via` and `to` sent its message of this interaction (time of its reception); of an asynchronous
    /// message the one time of its reception.
    pub times: Times,
}

/// What the scenarios of recordings are that do not name any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScenariosBy {
    /// All are of one scenario.
    #[default]
    One,
    /// The service that the recording starts with.
    Root,
}

/// A recording that interactions were found in.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Its name.
    pub name: String,
    /// What it is a recording of (number in [`Interactions::scenarios`]).
    pub scenario: u32,
    /// How many recordings it stands for (> 0): 1, but 1 / probability where recordings were sampled.
    pub weight: f64,
    /// Whether means over executions (of calls, of self times) weigh it too. Else only how often what is requested from outside
    /// does.
    pub weighs_means: bool,
    /// Whether this goes on with a recording whose beginning was handed over before (under the same name).
    pub continued: bool,
}

impl Recording {
    /// A recording that stands for itself alone.
    pub fn new(name: impl Into<String>, scenario: u32) -> Self {
        Self { name: name.into(), scenario, weight: 1.0, weighs_means: true, continued: false }
    }
}

/// What a trace, or the user, says of a process beyond its interactions; `None` where nothing does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessHints {
    /// Name of the processor it runs on.
    pub processor: Option<String>,
    /// Threads (a task's multiplicity), where they are not the units seen.
    pub threads: Option<u64>,
    /// Where `threads` are not said: what was seen of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_threads: Option<SeenThreads>,
    /// Queueing discipline of its requests.
    pub scheduling: Option<crate::model::TaskScheduling>,
    /// Whether a request never waits for a thread: third parties, delays.
    pub infinite: bool,
    /// Host demand of its operations in seconds, for phases 1 and 2.
    pub demands: IndexMap<String, [Option<f64>; 2]>,
    /// What its operations need of resources other than the processor that it runs on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<ResourceVisit>,
    /// Of a process that starts on its own: its workload.
    pub workload: Option<Workload>,
    /// Of a process that starts on its own: what was seen of the load that it makes, whatever its workload is said to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenLoad>,
    /// Of a process whose workload is as many customers as had a request open at once: these requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_at_once: Option<OpenAtOnce>,
}

/// What each execution of an operation needs of a resource that its process does not run on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceVisit {
    /// The operation.
    pub operation: String,
    /// The resource: a processor of this name.
    pub resource: String,
    /// The processor that the resource is, where that has a name of its own, as other processes run on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Demand in seconds, > 0.
    pub demand_s: f64,
}

/// What was seen of the threads of a process, as many as are said to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenThreads {
    /// Mean time from the sending of a request until a thread took it, in seconds; `None` where nothing tells.
    pub wait_s: Option<f64>,
}

/// The load that a process was seen to make.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenLoad {
    /// Cycles a second, > 0.
    pub rate: f64,
    /// What its workload is concluded from; `None` where that is said.
    pub evidence: Option<Evidence>,
}

/// Requests of which several were open at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAtOnce {
    /// How many a second, where there is time between them.
    pub rate: Option<f64>,
}

/// What a workload is concluded from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// So many sessions, of which each makes its next request after a reply: customers.
    Sessions(u64),
    /// The number of cycles under way has a variance of so many times its mean, where random arrivals have 1: customers.
    Steady(f64),
    /// Gaps between starts vary by so much (standard deviation over mean), less than what would follow replies: arrivals by a clock.
    Clock(f64),
    /// None of these: random arrivals.
    Arrivals,
}

/// What is known of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorHints {
    /// Number of cores.
    pub cores: Option<u64>,
    /// Machines that it stands for: it has as many cores at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<u64>,
    /// Scheduling.
    pub scheduling: Option<crate::model::ProcessorScheduling>,
}

/// Name of the processor of a task of which none is said.
pub(super) fn processor_name(task: &str) -> String {
    format!("{task}_cpu")
}

/// Who makes the initial requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// A number of customers, each thinking between cycles.
    Closed {
        /// Customers, > 0.
        customers: f64,
        /// Mean think time in seconds, ≥ 0.
        think_time: f64,
    },
    /// Cycles arrive from outside.
    Open {
        /// Cycles a second, > 0.
        rate: f64,
    },
}

/// Part of the requests under way that customers may lack.
const LACKING: f64 = 0.05;

impl Workload {
    /// `customers` (> 0) with the think time, N/X − R, with which they make `rate` requests a second of `response_s` each.
    pub fn at_rate(customers: f64, rate: f64, response_s: f64) -> Self {
        Self::Closed { customers, think_time: (customers / rate - response_s).max(0.0) }
    }

    /// As many of them, but enough to have so many requests under way.
    pub fn enough(customers: f64, rate: f64, response_s: f64) -> f64 {
        let under_way = rate * response_s;
        if customers < (1.0 - LACKING) * under_way { under_way.ceil() } else { customers }
    }
}

/// What is known beside the interactions, by the names of processes and processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hints {
    /// Of processes (names in [`Units::processes`]).
    pub processes: IndexMap<String, ProcessHints>,
    /// Of processors.
    pub processors: IndexMap<String, ProcessorHints>,
}

/// The interactions of any number of finished traces.
#[derive(Clone, Debug, Default)]
pub struct Interactions {
    /// The units.
    pub units: Units,
    /// Operations.
    pub operations: Names,
    /// Scenarios.
    pub scenarios: Names,
    /// The traces.
    pub traces: Vec<Recording>,
    /// Occurrences, in order of creation within each trace.
    pub occurrences: Vec<Occurrence>,
    /// Interactions, in the order found.
    pub interactions: Vec<Interaction>,
    /// Occurrences whose own records are lost, so that they may have made more requests than are known, in order: they do not count in mean
    /// numbers of calls.
    pub partial: Vec<usize>,
    /// What was odd.
    pub diagnostics: Diagnostics,
    /// What is known beside the interactions.
    pub hints: Hints,
}

impl Hints {
    /// Puts what `other` says over what is said here.
    pub fn overlay(&mut self, other: &Self) {
        for (name, hints) in &other.processes {
            let here = self.processes.entry(name.clone()).or_default();
            here.processor = hints.processor.clone().or(here.processor.take());
            if hints.threads.is_some() {
                (here.threads, here.seen_threads) = (hints.threads, hints.seen_threads);
            }
            here.infinite |= hints.infinite;
            here.scheduling = hints.scheduling.or(here.scheduling);
            here.demands.extend(hints.demands.iter().map(|(operation, demands)| (operation.clone(), *demands)));
            if !hints.visits.is_empty() {
                here.visits.clone_from(&hints.visits);
            }
            here.seen = hints.seen.or(here.seen);
            if hints.workload.is_some() {
                (here.workload, here.open_at_once) = (hints.workload, hints.open_at_once);
                here.seen = here.seen.map(|seen| SeenLoad { evidence: hints.seen.and_then(|seen| seen.evidence), ..seen });
            }
        }
        for (name, hints) in &other.processors {
            let here = self.processors.entry(name.clone()).or_default();
            here.cores = hints.cores.or(here.cores);
            here.machines = hints.machines.or(here.machines);
            here.scheduling = hints.scheduling.or(here.scheduling);
        }
    }
}

impl Interactions {
    /// Joins what was found in other traces to what was found in these: tasks, operations and scenarios are joined by name.
    pub fn merge(&mut self, other: Self) {
        let units: Vec<u32> = other
            .units
            .names
            .iter()
            .zip(&other.units.process_of)
            .map(|(name, process)| self.unit(name, other.units.processes.name(*process)))
            .collect();
        let operations: Vec<u32> = other.operations.iter().map(|name| self.operations.intern(name)).collect();
        let scenarios: Vec<u32> = other.scenarios.iter().map(|name| self.scenarios.intern(name)).collect();
        let (first_trace, first) = (self.traces.len() as u32, self.occurrences.len());
        self.traces.extend(other.traces.into_iter().map(|t| Recording { scenario: scenarios[t.scenario as usize], ..t }));
        self.occurrences.extend(other.occurrences.into_iter().map(|o| Occurrence {
            unit: units[o.unit as usize],
            trace: first_trace + o.trace,
            operation: o.operation.map(|operation| operations[operation as usize]),
            ..o
        }));
        self.interactions.extend(other.interactions.into_iter().map(|i| Interaction {
            from: first + i.from,
            via: i.via.into_iter().map(|o| first + o).collect(),
            to: first + i.to,
            ..i
        }));
        self.partial.extend(other.partial.into_iter().map(|occurrence| first + occurrence));
        self.diagnostics.merge(other.diagnostics);
        self.hints.overlay(&other.hints);
    }

    fn unit(&mut self, name: &str, process: &str) -> u32 {
        let thread = name.strip_prefix(process).and_then(|rest| rest.strip_prefix('@')).unwrap_or("");
        self.units.intern(process, thread)
    }

    /// How many interactions of `kind` there are.
    pub fn count(&self, kind: InteractionKind) -> u64 {
        self.interactions.iter().filter(|i| i.kind == kind).count() as u64
    }

    /// The occurrence's name: `Server.1`; with several traces `browse:Server.1`.
    pub fn occurrence_name(&self, index: usize) -> String {
        let Some(occurrence) = self.occurrences.get(index) else { return String::new() };
        let (unit, number) = (self.units.names.name(occurrence.unit), occurrence.number);
        match self.traces.get(occurrence.trace as usize) {
            Some(trace) if self.traces.len() > 1 => format!("{}:{unit}.{number}", trace.name),
            _ => format!("{unit}.{number}"),
        }
    }

    /// Number of traces of each scenario, shape `(n_scenarios,)`.
    pub fn traces_of_scenarios(&self) -> Vec<u64> {
        let mut n_traces = vec![0; self.scenarios.len()];
        for trace in &self.traces {
            n_traces[trace.scenario as usize] += 1;
        }
        n_traces
    }
}

/// The tasks of a model: units under the names that the model is to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// Names of the tasks, in order of first appearance.
    pub names: Names,
    /// The task of each unit, shape `(n_units,)`.
    pub of_unit: Vec<u32>,
}

impl Tasks {
    /// One task for each process; `renamed` maps names of processes to the names of their tasks (as from instances to
    /// their class).
    pub fn of_processes(units: &Units, renamed: &IndexMap<String, String>) -> Self {
        let mut names = Names::default();
        let task = |process: &u32| {
            let process = units.processes.name(*process);
            names.intern(renamed.get(process).map_or(process, String::as_str))
        };
        let of_unit = units.process_of.iter().map(task).collect();
        Self { names, of_unit }
    }
}
