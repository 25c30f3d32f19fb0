//! Traces: the wire formats.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod angio;
mod event_trace;
mod call_path;
mod kieker;
mod same;
