//! Traces: the wire formats.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod angio;
mod event_trace;
mod call_path;
mod kieker;
mod jaeger;
mod otlp;
mod same;
mod span_input;
mod spans;
mod spans_hostile;
mod zipkin;
