//! What extraction from spans can be asked for.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{structure::OptionError, trace::spans::LARGEST_COUNT};

/// What becomes of internal spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InternalSpans {
    /// Their time and their requests are those of the entry that they are part of.
    #[default]
    Fold,
    /// They become entries of a task `SERVICE(internal)` without limit of threads on the service's processor.
    Keep,
}

/// A user's rule for entry names: whatever matches the pattern is one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryRule {
    /// Compared with the whole text (route, name or statement) before it is generalised; `*` stands for any text.
    pub pattern: String,
    /// The entry's name.
    pub name: String,
}

impl FromStr for EntryRule {
    type Err = OptionError;

    /// Reads `PATTERN=NAME`; the last `=` separates.
    fn from_str(text: &str) -> Result<Self, OptionError> {
        match text.rsplit_once('=') {
            Some((pattern, name)) if !pattern.is_empty() && !name.trim().is_empty() => {
                Ok(Self { pattern: pattern.to_owned(), name: name.trim().to_owned() })
            }
            _ => Err(OptionError { option: "entry rule".to_owned(), found: format!("\"{text}\""), expected: "PATTERN=NAME" }),
        }
    }
}

impl EntryRule {
    /// Whether `text` matches the pattern; time in the product of the lengths at worst.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.pattern.split('*');
        let first = parts.next().unwrap_or("");
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// Options of the extraction from spans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpanOptions {
    /// What becomes of internal spans.
    pub internal: InternalSpans,
    /// Most entries of one task, ≥ 1; further ones are its entry `(other)`.
    pub entries_per_task: usize,
    /// Most tasks that are known from their clients only, ≥ 1; further ones are `(other databases)`, `(other queues)` and
    /// `(other third parties)`.
    pub peer_tasks: usize,
    /// Rules for entry names; the first that matches names the entry.
    pub entry_rules: Vec<EntryRule>,
    /// Share of traces that were recorded, in [2⁻⁵⁶, 1] as a `tracestate` can say it, where the spans do not say it themselves.
    pub sampling_rate: Option<f64>,
    /// A trace is complete when the stream has gone on for this long after its last span, nanoseconds of span time, ≥ 0.
    pub idle_timeout_ns: i64,
    /// Nothing is completed while no more spans than this are held, a trace counting as three at least, so that smaller inputs are seen as a whole; 0 for a
    /// stream without end.
    pub hold_spans: usize,
    /// Most spans that are held, a trace counting as three at least; beyond it the oldest unfinished traces are completed early.
    pub max_open_spans: usize,
    /// Most spans of one trace, or of traces joined by links, ≥ 1; beyond it the trace is completed early.
    pub max_trace_spans: usize,
    /// How many completed traces are remembered, so that their late spans are known as such.
    pub completed_remembered: usize,
    /// Name of the reference task above root spans.
    pub client: String,
    /// Attributes that name the session of a request, beside `session.id` and its like.
    pub session_keys: Vec<String>,
}

impl Default for SpanOptions {
    fn default() -> Self {
        Self {
            internal: InternalSpans::Fold,
            entries_per_task: 100,
            peer_tasks: 200,
            entry_rules: Vec::new(),
            sampling_rate: None,
            idle_timeout_ns: 60_000_000_000,
            hold_spans: 500_000,
            max_open_spans: 2_000_000,
            max_trace_spans: 100_000,
            completed_remembered: 100_000,
            client: "Client".to_owned(),
            session_keys: Vec::new(),
        }
    }
}

impl SpanOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`OptionError`] for a value out of its range.
    pub fn check(&self) -> Result<(), OptionError> {
        let error = |option: &str, found: String, expected| Err(OptionError { option: option.to_owned(), found, expected });
        if self.entries_per_task == 0 {
            return error("entries_per_task", "0".to_owned(), "1 or more");
        }
        if self.peer_tasks == 0 {
            return error("peer_tasks", "0".to_owned(), "1 or more");
        }
        if self.max_open_spans == 0 || self.max_trace_spans == 0 {
            return error("max_open_spans or max_trace_spans", "0".to_owned(), "1 or more");
        }
        if self.idle_timeout_ns < 0 {
            return error("idle_timeout_ns", self.idle_timeout_ns.to_string(), "0 or more");
        }
        if let Some(rule) = self.entry_rules.iter().find(|rule| rule.pattern.is_empty() || rule.name.trim().is_empty()) {
            return error("entry rule", format!("\"{}={}\"", rule.pattern, rule.name), "PATTERN=NAME");
        }
        if self.client.trim().is_empty() {
            return error("client", "empty".to_owned(), "a task name");
        }
        match self.sampling_rate {
            Some(rate) if !(1.0 / LARGEST_COUNT..=1.0).contains(&rate) => {
                error("sampling_rate", rate.to_string(), "a share above 0 (of one trace in 2^56 or more), up to 1")
            }
            _ => Ok(()),
        }
    }
}
