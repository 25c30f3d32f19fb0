//! Entries: what occurrences that do the same become, whatever the technique.

use serde::{Deserialize, Serialize};

use super::summary::{Label, MOST_COUNTS};

/// How an entry is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accepts {
    /// Not at all: it starts on its own.
    Nothing,
    /// With a reply, its own or that of the one it forwards to.
    Sync,
    /// Without a reply.
    Async,
}

/// What an arc asks of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArcKind {
    /// A request with a reply.
    Sync,
    /// A request without.
    Async,
    /// To reply in place of its source.
    Forward,
}

/// Requests of one kind from an entry to another.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedArc {
    /// Kind of the requests.
    pub kind: ArcKind,
    /// Phase of the requesting entry, 1 or 2; a forwarding is of phase 1.
    pub phase: u8,
    /// The other entry (index into [`Merged::entries`]).
    pub target: usize,
    /// Mean number for each invocation; of a forwarding its probability.
    pub mean: f64,
    /// How many invocations made how many requests, from one on; empty where that is not known.
    pub counts: Vec<(u64, u64)>,
}

impl MergedArc {
    /// How many requests each of `n` invocations made, where all made as many.
    pub fn each_time(&self, n: u64) -> Option<u64> {
        match self.counts[..] {
            [(calls, times)] if times == n && calls < MOST_COUNTS => Some(calls),
            _ => None,
        }
    }
}

/// Requests that an entry makes at once, and waits for together.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedFork {
    /// Forks for each invocation of the entry.
    pub mean: f64,
    /// The requests of each branch; means are for each invocation of the entry, counts for each fork.
    pub branches: Vec<Vec<MergedArc>>,
}

/// A mean of times, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedTime {
    /// Its mean.
    pub mean_ticks: f64,
    /// Standard deviation over mean; `None` of fewer than two times, or of a mean of 0.
    pub variation: Option<f64>,
}

/// An entry: occurrences that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedEntry {
    /// Its task (number in [`super::interactions::Tasks::names`]).
    pub task: u32,
    /// How it is accepted.
    pub accepts: Accepts,
    /// Its operation, where all its occurrences have the same.
    pub operation: Option<u32>,
    /// Number of occurrences.
    pub n_occurrences: u64,
    /// The first of them.
    pub first: Label,
    /// Names of recordings that show it, a few.
    pub examples: Vec<String>,
    /// Its requests, by kind, phase and target; those of forks are among them.
    pub arcs: Vec<MergedArc>,
    /// Requests made at once.
    pub forks: Vec<MergedFork>,
    /// Self time of phases 1 and 2, where it is known.
    pub self_times: [Option<MergedTime>; 2],
}

/// The entries of a summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The entries, by their first occurrence.
    pub entries: Vec<MergedEntry>,
    /// Which of them each class of the summary is, shape `(n_classes,)`.
    pub entry_of: Vec<usize>,
}
