//! Traces: the wire formats.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod call_path;
mod kieker;
mod same;
