//! Traces: the wire formats.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod angio;
mod call_path;
mod event_trace;
mod jaeger;
mod kieker;
mod otlp;
mod same;
mod span_attributes;
mod span_input;
mod spans;
mod spans_hostile;
mod zipkin;
