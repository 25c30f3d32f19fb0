//! The result of an extraction.

use serde::{Deserialize, Serialize};

use super::{
    interactions::{Interaction, InteractionKind, Interactions},
    merge::Accepts,
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
    /// Every interaction, in the order found.
    pub records: Vec<Record>,
    /// The model.
    pub model: Model,
    /// What was odd in the traces, and what a reader of the model should know.
    pub diagnostics: Vec<Diagnostic>,
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
    pub(super) fn of(interactions: &Interactions) -> Self {
        Self {
            sync: interactions.count(InteractionKind::Sync),
            asynchronous: interactions.count(InteractionKind::Async),
            forward: interactions.count(InteractionKind::Forward),
        }
    }
}

impl Record {
    pub(super) fn of(interaction: &Interaction, all: &Interactions) -> Self {
        Self {
            kind: interaction.kind,
            from: all.occurrence_name(interaction.from),
            to: all.occurrence_name(interaction.to),
            via: interaction.via.iter().map(|o| all.occurrence_name(*o)).collect(),
            phase: interaction.phase,
            times: interaction.times.clone(),
        }
    }
}
