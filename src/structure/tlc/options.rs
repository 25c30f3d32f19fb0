//! What TLC can be asked for.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::structure::OptionError;

/// What an asynchronous request is that others hand on, and whose answer comes back to a sender that did nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsyncForwarding {
    /// A chain of asynchronous requests, as in the paper; how many there are is told.
    #[default]
    Chained,
    /// A request that is forwarded (template iv′).
    Forwarded,
}

/// How the counters of tasks show that a task did nothing between two events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskCounters {
    /// By consecutive counters, over all scenarios: a task that worked for another scenario meanwhile did not wait.
    #[default]
    AsRecorded,
    /// By their order within the recording: for logs whose counters skip. A weaker test.
    WithinRecording,
}

/// What a blocking request is whose reply is not in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unanswered {
    /// A request with a reply all the same, and it is told: what was done for it is part of the model.
    #[default]
    Request,
    /// No request: what was done for it stays unmatched, as in the paper.
    Unmatched,
}

/// Options of the technique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlcOptions {
    /// What forwarding that starts from an asynchronous sending is.
    pub async_forwarding: AsyncForwarding,
    /// How waiting is told by the counters of tasks.
    pub task_counters: TaskCounters,
    /// What requests without a reply are.
    pub unanswered: Unanswered,
    /// Resource functions: name of an activity → its demand in ticks, ≥ 0, where its event has none.
    pub resource_functions: IndexMap<String, f64>,
    /// Most events that unfinished recordings may hold together, > 0: beyond it the oldest is analysed as it stands.
    pub live_events_limit: usize,
}

impl Default for TlcOptions {
    fn default() -> Self {
        Self {
            async_forwarding: AsyncForwarding::default(),
            task_counters: TaskCounters::default(),
            unanswered: Unanswered::default(),
            resource_functions: IndexMap::new(),
            live_events_limit: 10_000_000,
        }
    }
}

impl TlcOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`OptionError`] for a number out of its range.
    pub fn check(&self) -> Result<(), OptionError> {
        if let Some((activity, demand)) = self.resource_functions.iter().find(|(_, demand)| !(demand.is_finite() && **demand >= 0.0)) {
            let option = format!("tlc.resource_functions.{activity}");
            return Err(OptionError { option, found: demand.to_string(), expected: "a number of ticks, 0 or more" });
        }
        OptionError::unless_above_0("tlc.live_events_limit", self.live_events_limit)
    }
}
