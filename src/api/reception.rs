//! The OTLP/HTTP receiver: `POST /v1/traces` as OpenTelemetry exporters and collectors send it.
//!
//! Spans are filed under the system that the header `x-layerfit-system` names, else under that of their resource's
//! `service.namespace`, else under `default`; systems are made as they are named. What is answered follows the OTLP
//! specification: 200 with `partialSuccess` where some spans could not be taken, in the request's own encoding; errors as
//! [`super::rpc_status`] has them.

use std::ops::ControlFlow;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use indexmap::IndexMap;
use serde_json::json;

use super::{
    AppState, Code, Error,
    body::{self, Bound},
    error::{ReceptionProblems, chain},
    rpc_status::Encoding,
    systems::{NAME_MAX, system_name},
};
use crate::{
    jobs::ReceptionError,
    store::StoreError,
    trace::{
        BadRows,
        diagnostics::Diagnostics,
        otlp,
        span::{Span, SpanTexts},
        spans::SpanReadOptions,
    },
};

/// Header that names the system of all spans of a request.
const SYSTEM_HEADER: &str = "x-layerfit-system";

/// The system of spans that nothing files elsewhere.
const DEFAULT_SYSTEM: &str = "default";

/// Where exporters send to.
pub(super) const PATH: &str = "/v1/traces";

fn encoding_of(headers: &HeaderMap) -> Result<Encoding, Error> {
    let said = body::media_type(headers);
    said.as_deref().and_then(Encoding::of_media_type).ok_or_else(|| {
        let expected = [Encoding::Protobuf, Encoding::Json].map(Encoding::media_type);
        let detail = format!("the body's type is {}; expected {}", said.as_deref().unwrap_or("not said"), expected.join(" or "));
        Error::new(Code::UnsupportedMediaType, detail).with("expected", expected.to_vec())
    })
}

/// What a request held.
struct Received {
    /// Spans by the name of their system.
    spans: IndexMap<String, Vec<Span>>,
    texts: SpanTexts,
    n_rejected: u64,
    reasons: String,
}

/// Receives spans from an OpenTelemetry exporter or collector (OTLP/HTTP, protobuf or JSON, gzip). They are filed under the
/// system that the header `x-layerfit-system` or their resource's `service.namespace` names; a structure is stored as they
/// change it, from what has come since the service started.
#[utoipa::path(post, path = "/v1/traces", tag = "traces",
    params(("x-layerfit-system" = Option<String>, Header, description = "Name of the system that all spans are of")),
    request_body(content((String = "application/x-protobuf"), (Object = "application/json")),
        description = "ExportTraceServiceRequest"),
    responses((status = OK, description = "ExportTraceServiceResponse, in the request's encoding",
        content((String = "application/x-protobuf"), (Object = "application/json"))), ReceptionProblems))]
pub(super) async fn receive_spans(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<Response, Error> {
    let encoding = encoding_of(&headers)?;
    let system = system_header(&headers)?;
    let limits = state.limits();
    let bound = Bound { sent_bytes: limits.trace_sent_bytes, decompressed_bytes: limits.trace_bytes };
    let content = body::read_or_empty(&headers, body, bound, &state).await.map_err(to_be_sent_again)?;
    let limit_bytes = limits.trace_bytes as u64;
    let (received, content) =
        state.compute(move || decode(&content, encoding, system.as_deref(), limit_bytes).map(|received| (received, content))).await?;
    let n_taken = received.spans.values().map(Vec::len).sum::<usize>() as u64;
    let names: Vec<&str> = received.spans.keys().map(String::as_str).collect();
    let systems = state.receptions().systems_called(&names).await.map_err(reception_error)?;
    let (texts, spans) = (received.texts, received.spans);
    // Before the computation, so that nothing else waits for a structure that is being extracted.
    let mut held = state.receptions().hold(&systems).await;
    state
        .compute(move || {
            systems.iter().zip(spans.values()).for_each(|(system, spans)| held.receive(*system, spans, &texts, &content));
            Ok(())
        })
        .await?;
    state.telemetry().count_spans(n_taken, received.n_rejected);
    Ok(answer(encoding, received.n_rejected, &received.reasons))
}

fn system_header(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let Some(value) = headers.get(SYSTEM_HEADER) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| "expected UTF-8".to_owned());
    let name = text.and_then(system_name);
    name.map(|name| Some(name.to_owned()))
        .map_err(|reason| Error::new(Code::InvalidQuery, format!("{SYSTEM_HEADER}: the name of a system: {reason}")))
}

/// The system of spans with this namespace, as it could be named by hand: none where nothing is left of it.
fn system_of(namespace: &str) -> Option<String> {
    let printable = |c: char| if c.is_control() { '_' } else { c };
    let name: String = namespace.trim().chars().map(printable).take(NAME_MAX).collect();
    system_name(&name).ok().map(str::to_owned)
}

fn decode(content: &[u8], encoding: Encoding, system: Option<&str>, limit_bytes: u64) -> Result<Received, Error> {
    let mut received = Received { spans: IndexMap::new(), texts: SpanTexts::default(), n_rejected: 0, reasons: String::new() };
    if content.is_empty() {
        // An export of nothing is an empty protobuf message.
        return Ok(received);
    }
    if encoding == Encoding::Json {
        // Of a body that ends early nothing is taken, so that the sender may send it again.
        body::parse_json::<serde::de::IgnoredAny>(content)?;
    }
    let mut diagnostics = Diagnostics::default();
    let options = SpanReadOptions { bad_rows: BadRows::Count, limit_bytes, ..SpanReadOptions::default() };
    let spans = &mut received.spans;
    let mut sink = |span: Span, texts: &mut SpanTexts| {
        let namespace = || texts.resource(span.resource).and_then(|r| r.namespace).map(|n| texts.texts.name(n));
        let name = system.map(str::to_owned).or_else(|| system_of(namespace()?)).unwrap_or_else(|| DEFAULT_SYSTEM.to_owned());
        spans.entry(name).or_default().push(span);
        ControlFlow::Continue(())
    };
    let decode = if encoding == Encoding::Json { otlp::decode_otlp_json } else { otlp::decode_otlp_protobuf };
    let counts = decode("request body", content, &options, &mut received.texts, &mut diagnostics, &mut sink)
        .map_err(|error| Error::new(Code::MalformedBody, chain(&error)))?;
    received.n_rejected = counts.n_bad_spans;
    let reasons = diagnostics.into_vec().into_iter().map(|d| format!("{} ({} times): {}", d.message, d.count, d.examples.join("; ")));
    received.reasons = reasons.collect::<Vec<_>>().join(". ");
    if counts.n_spans == 0 && counts.n_bad_spans == 0 {
        if !received.reasons.is_empty() {
            return Err(Error::new(Code::MalformedBody, received.reasons));
        }
        if encoding == Encoding::Json {
            expect_request(content)?;
        }
    }
    Ok(received)
}

/// A JSON body without spans has to be a request all the same.
fn expect_request(content: &[u8]) -> Result<(), Error> {
    let request: serde_json::Value = body::parse_json(content)?;
    match (request.as_object(), request.get("resourceSpans")) {
        (Some(_), None | Some(serde_json::Value::Array(_) | serde_json::Value::Null)) => Ok(()),
        (Some(_), Some(_)) => Err(Error::new(Code::MalformedBody, "resourceSpans: expected an array")),
        (None, _) => Err(Error::new(Code::MalformedBody, "expected an ExportTraceServiceRequest: an object with resourceSpans")),
    }
}

/// Exporters send again what took too long if the status says that the service is not available, and lose it otherwise.
fn to_be_sent_again(error: Error) -> Error {
    if error.code() == Code::BodyTimeout { error.with_code(Code::RequestTimeout) } else { error }
}

fn reception_error(error: ReceptionError) -> Error {
    match error {
        ReceptionError::Store(StoreError::Duplicate) => {
            Error::new(Code::DatabaseBusy, "another request made the system meanwhile; send again")
        }
        ReceptionError::Store(error) => error.into(),
        ReceptionError::TooManySystems { .. } => Error::new(Code::TooManySystems, error.to_string()),
    }
}

/// The response of the OTLP specification: empty, or with what was not taken, or taken with remarks (then nothing is rejected).
fn answer(encoding: Encoding, n_rejected: u64, reasons: &str) -> Response {
    match encoding {
        Encoding::Json => {
            let body = if n_rejected == 0 && reasons.is_empty() {
                json!({})
            } else {
                // 64-bit integers are text in the JSON of protobuf.
                json!({"partialSuccess": {"rejectedSpans": n_rejected.to_string(), "errorMessage": reasons}})
            };
            (StatusCode::OK, axum::Json(body)).into_response()
        }
        Encoding::Protobuf => {
            let body = otlp::encode_response(n_rejected, reasons);
            (StatusCode::OK, [(header::CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()))], body).into_response()
        }
    }
}
