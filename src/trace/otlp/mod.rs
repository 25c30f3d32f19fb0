//! Spans of OpenTelemetry's protocol (OTLP), in JSON and in protobuf.
//!
//! In go messages `TracesData` or `ExportTraceServiceRequest` (opentelemetry-proto 1, `trace/v1/trace.proto`), out come spans.
//! A message holds resources (who sent), each scopes (which library), each spans.
//!
//! | JSON | |
//! |---|---|
//! | documents | one, several one after another, one a line (the collector's file exporter), or arrays of them |
//! | names of fields | `lowerCamelCase` as OTLP/JSON has them, and `snake_case` |
//! | scopes | `scopeSpans`, and `instrumentationLibrarySpans` of before 0.15 |
//! | wrappers | Tempo's `batches` and `trace`, Jaeger's `result` |
//! | ids | hexadecimal (OTLP/JSON), base64 (protobuf's own JSON mapping, as Tempo has it) |
//! | kinds, status codes | numbers or names |
//! | times | texts or numbers, nanoseconds since 1970; an end of 0 is none, and so is a start |
//!
//! | protobuf | |
//! |---|---|
//! | one message | told by its nesting |
//! | messages with their length before them | a varint, or 32 bits big-endian as the collector's file exporter writes; with `compression: zstd` each message is a frame of its own |
//!
//! Metrics, logs and profiles are skipped and counted. Of a span, events are skipped.

mod borrowed;
mod json;
mod messages;
mod protobuf;

use prost::Message;

use super::{
    span::{Link, Span, SpanId, SpanKind},
    spans::{BadSpan, Intake, Notes, Said, adjusted_count_of_tracestate},
};

pub(super) use json::read_json;
pub(super) use protobuf::read_protobuf;
pub use protobuf::{OtlpCounts, decode_otlp_json, decode_otlp_protobuf};

/// The answer to an export, an `ExportTraceServiceResponse` in protobuf: empty, or with the number of spans that were not
/// taken and why.
pub fn encode_response(n_rejected: u64, reasons: &str) -> Vec<u8> {
    let partial_success = (n_rejected > 0 || !reasons.is_empty()).then(|| messages::PartialSuccess {
        rejected_spans: i64::try_from(n_rejected).unwrap_or(i64::MAX),
        error_message: reasons.to_owned(),
    });
    messages::ExportResponse { partial_success }.encode_to_vec()
}

/// Type of an [`ErrorInfo`] among the details of a status.
pub const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// What went wrong, for programs: `google.rpc.ErrorInfo`.
#[derive(Clone, Copy, Debug)]
pub struct ErrorInfo<'a> {
    /// Name of the error.
    pub reason: &'a str,
    /// Whose name that is.
    pub domain: &'a str,
    /// The request, as the log names it.
    pub request_id: Option<&'a str>,
}

/// A `google.rpc.Status` in protobuf, with `info` as its one detail.
pub fn encode_status(code: i32, message: &str, info: &ErrorInfo<'_>) -> Vec<u8> {
    let metadata = info.request_id.map(|id| ("request_id".to_owned(), id.to_owned())).into_iter().collect();
    let info = messages::ErrorInfo { reason: info.reason.to_owned(), domain: info.domain.to_owned(), metadata };
    let detail = messages::Any { type_url: ERROR_INFO.to_owned(), value: info.encode_to_vec() };
    messages::RpcStatus { code, message: message.to_owned(), details: vec![detail] }.encode_to_vec()
}

/// What a span says beside its ids and attributes, whatever the encoding.
struct Body<'a> {
    name: &'a str,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    kind: SpanKind,
    status_code: i32,
    status_message: &'a str,
    trace_state: &'a str,
    links: Vec<Link>,
}

/// Puts a span together; `span` has its ids.
fn complete(intake: &mut Intake<'_>, mut span: Span, mut notes: Notes, body: Body<'_>) -> Result<Span, BadSpan> {
    let (trace, id) = (span.trace, span.id);
    let stamp = |ns: u64, what: &str| {
        i64::try_from(ns).map_err(|_| BadSpan::unread(format!("the {what} is {ns} ns: expected a time before the year 2262")).of(trace, id))
    };
    let is_said = |ns: &u64| *ns > 0;
    match body.start_ns.filter(is_said) {
        None => (span.is_timeless, span.duration_ns) = (true, Some(0)),
        Some(start) => {
            span.start_ns = stamp(start, "start")?;
            let end = body.end_ns.filter(is_said).map(|end| stamp(end, "end")).transpose()?;
            span.duration_ns = end.map(|end| end - span.start_ns);
        }
    }
    span.name = intake.name_text(body.name);
    span.kind = body.kind;
    span.links = body.links;
    match body.status_code {
        1 => notes.said = Said::Ok,
        2 => {
            notes.said = Said::Error;
            notes.note_words(body.status_message);
        }
        _ => {}
    }
    span.adjusted_count = adjusted_count_of_tracestate(body.trace_state);
    notes.complete(intake, &mut span);
    Ok(span)
}

/// The kind of a number of `Span.SpanKind`.
fn kind_of_number(number: u64) -> SpanKind {
    match number {
        1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Unspecified,
    }
}

/// The span's parent, unless that is the span itself.
fn parent_of(parent: Option<SpanId>, id: SpanId) -> Option<SpanId> {
    parent.filter(|parent| *parent != id)
}
