//! The result of an extraction.

use serde::{Deserialize, Serialize};

use super::{
    entries::{Accepts, ArcKind},
    interactions::InteractionKind,
    spans::Quality,
    summary::{Kept, Summary},
    usage::UsageModel,
};
use crate::{
    model::Model,
    trace::{Time, diagnostics::Diagnostic},
};

/// What was extracted from traces: the model, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// The model's tasks, reference tasks first.
    pub tasks: Vec<TaskReport>,
    /// How many interactions were found.
    pub interactions: InteractionCounts,
    /// The scenarios that were recorded.
    pub scenarios: Vec<ScenarioReport>,
    /// The interactions in the order found; of very many only the first.
    pub records: Vec<Record>,
    /// How many interactions are not among the records.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub records_left_out: u64,
    /// The model.
    pub model: Model,
    /// What was odd in the traces, and what a reader of the model should know.
    pub diagnostics: Vec<Diagnostic>,
    /// How well the traces bear the model, where the technique tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Box<Quality>>,
    /// What the technique found that a layered queueing network cannot say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<serde_json::Value>,
    /// The sessions that reference tasks are made of, where that was asked for and there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<UsageModel>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Numbers of interactions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionCounts {
    /// Synchronous.
    pub sync: u64,
    /// Asynchronous.
    #[serde(rename = "async")]
    pub asynchronous: u64,
    /// Forwarded.
    pub forward: u64,
}

/// A task of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// Whether it is a reference task.
    pub reference: bool,
    /// The processor it runs on.
    pub processor: String,
    /// Sequential units seen; of a reference task the most at once.
    pub threads: u64,
    /// Whether it has any number of threads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_infinite: bool,
    /// Its entries.
    pub entries: Vec<EntryReport>,
}

/// An entry of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryReport {
    /// Its name.
    pub name: String,
    /// The operation (message type) that it stands for, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How it is accepted.
    pub accepts: Accepts,
    /// How many occurrences were merged into it (its weight).
    pub occurrences: u64,
    /// The first of these.
    pub first: String,
    /// Mean self time of each phase in seconds; `null` where the trace does not tell.
    pub self_times: Vec<Option<f64>>,
    /// Its coefficient of variation, by phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub self_time_variations: Vec<Option<f64>>,
    /// What it requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallReport>,
    /// Recordings that show it, a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Requests of an entry to another, over the invocations seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    /// The entry requested.
    pub to: String,
    /// How.
    pub kind: ArcKind,
    /// The requester's phase.
    pub phase: u8,
    /// Mean number for each invocation; of a forwarding its probability.
    pub mean: f64,
    /// Variance of the number over invocations.
    pub variance: f64,
    /// Invocations that made at least one.
    pub occurrences: u64,
    /// How many invocations made how many, by number; the greatest number stands for it and more.
    pub distribution: Vec<(u64, u64)>,
}

/// A recorded scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioReport {
    /// Its name.
    pub name: String,
    /// Number of its traces.
    pub traces: u64,
    /// Its share of the runs in the model.
    pub probability: f64,
}

/// One interaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How the occurrences interact.
    pub kind: InteractionKind,
    /// The requester: `A.1` is the first occurrence of task A; with several traces `TRACE:A.1`.
    pub from: String,
    /// The one that replied; of an asynchronous message its receiver.
    pub to: String,
    /// Those that passed the request on, in order.
    pub via: Vec<String>,
    /// The requester's phase.
    pub phase: u8,
    /// In ticks: when the messages of `from`, `via` and `to` were received; of an asynchronous message when it was.
    pub times: Vec<Time>,
}

impl InteractionCounts {
    /// Of all kinds.
    pub fn total(&self) -> u64 {
        self.sync + self.asynchronous + self.forward
    }

    pub(super) fn of(summary: &Summary) -> Self {
        let [sync, asynchronous, forward] = summary.counts;
        Self { sync, asynchronous, forward }
    }
}

impl Record {
    pub(super) fn of(kept: &Kept, summary: &Summary) -> Self {
        let mut names: Vec<String> = kept.chain.iter().map(|label| summary.name(*label)).collect();
        let to = names.pop().unwrap_or_default();
        let mut names = names.into_iter();
        Self {
            kind: kept.kind,
            from: names.next().unwrap_or_default(),
            to,
            via: names.collect(),
            phase: kept.phase,
            times: kept.times.to_vec(),
        }
    }
}
