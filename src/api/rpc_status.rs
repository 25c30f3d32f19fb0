//! Errors of the OTLP/HTTP receiver as exporters read them: messages `google.rpc.Status`.
//!
//! The OTLP specification (1.9, "Failures") asks that the body of an error be such a message in the encoding of the request; of a
//! request in none of the two it is JSON. Whoever accepts `application/problem+json` by name gets what every other route answers.
//!
//! | member | is |
//! |---|---|
//! | `code` | the number of `google.rpc.Code` that goes with the status |
//! | `message` | the problem's detail |
//! | `details` | one `google.rpc.ErrorInfo`: the problem's code as `reason`, `layerfit` as domain, the request's id among the metadata |
//!
//! Exporters send again after 429, 502, 503 and 504, and after no other status: what may succeed another time has one of these.

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{PROBLEM_JSON, Problem, accept, error::with_retry_after};
use crate::trace::otlp::{self, ErrorInfo};

/// Domain of the codes in `reason`.
const DOMAIN: &str = "layerfit";

/// The two encodings of OTLP/HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Protobuf's own.
    Protobuf,
    /// Its JSON mapping.
    Json,
}

impl Encoding {
    /// Media type of the answers.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    /// The encoding of a media type, if it is one of the two.
    pub(super) fn of_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "application/x-protobuf" | "application/protobuf" => Some(Self::Protobuf),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// How errors of the receiver leave; `None` as problem documents.
pub(super) fn encoding_of_errors(headers: &HeaderMap) -> Option<Encoding> {
    if accept::names(headers, PROBLEM_JSON) {
        return None;
    }
    let said = super::body::media_type(headers);
    Some(said.and_then(|media_type| Encoding::of_media_type(&media_type)).unwrap_or(Encoding::Json))
}

/// The response that tells a problem as a `google.rpc.Status`.
pub(super) fn response(status: StatusCode, problem: &Problem, encoding: Encoding) -> Response {
    let code = code_of(status);
    let reason = problem.code.to_ascii_uppercase();
    let response = match encoding {
        Encoding::Protobuf => {
            let info = ErrorInfo { reason: &reason, domain: DOMAIN, request_id: problem.request_id.as_deref() };
            let body = otlp::encode_status(code, &problem.detail, &info);
            (status, [(header::CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()))], body).into_response()
        }
        Encoding::Json => {
            let mut info = Map::new();
            info.insert("@type".to_owned(), json!(otlp::ERROR_INFO));
            info.insert("reason".to_owned(), json!(reason));
            info.insert("domain".to_owned(), json!(DOMAIN));
            info.extend(problem.request_id.as_ref().map(|id| ("metadata".to_owned(), json!({ "request_id": id }))));
            (status, Json(json!({ "code": code, "message": problem.detail, "details": [Value::Object(info)] }))).into_response()
        }
    };
    with_retry_after(response)
}

/// The number of `google.rpc.Code` for a status.
fn code_of(status: StatusCode) -> i32 {
    const INVALID_ARGUMENT: i32 = 3;
    const NOT_FOUND: i32 = 5;
    const RESOURCE_EXHAUSTED: i32 = 8;
    const ABORTED: i32 = 10;
    const INTERNAL: i32 = 13;
    const UNAVAILABLE: i32 = 14;
    match status {
        StatusCode::NOT_FOUND => NOT_FOUND,
        StatusCode::CONFLICT => ABORTED,
        StatusCode::TOO_MANY_REQUESTS => RESOURCE_EXHAUSTED,
        StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        status if status.is_server_error() => INTERNAL,
        _ => INVALID_ARGUMENT,
    }
}
