//! The one error type of the service, and the only place that knows status codes.
//!
//! Every error leaves as `application/problem+json` (RFC 9457): `type`, `title`, `status` and `detail` as there, the stable
//! `code` that a program tests, the `request_id` under which the log has the rest, and members of the code's own
//! (`line` and `column` of a model that cannot be read, `errors` of one that is not valid).

use std::{collections::BTreeMap, error::Error as StdError};

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::error;
use utoipa::{
    IntoResponses, ToSchema,
    openapi::{self, RefOr},
};

pub(super) use crate::error_chain::chain;
use crate::store::StoreError;

/// Media type of every error.
pub const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! codes {
    ($($variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// What went wrong, for programs: the names never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in `code`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The status of the response.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// What it means, whatever the request.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    MalformedBody = "malformed_body", BAD_REQUEST, "The body cannot be decoded or is not of the type it is said to be";
    EmptyBody = "empty_body", BAD_REQUEST, "A body is needed";
    InvalidQuery = "invalid_query", BAD_REQUEST, "A query parameter is missing, unknown or out of range";
    UnknownFormat = "unknown_format", BAD_REQUEST, "The format is not one that is read here";
    NotFound = "not_found", NOT_FOUND, "There is no such resource";
    RouteNotFound = "route_not_found", NOT_FOUND, "There is nothing at this path";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The path does not take this method";
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "The resource has no representation of an accepted type";
    BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body took too long to arrive";
    SystemBusy = "system_busy", CONFLICT, "The system has unfinished jobs";
    FitNotReady = "fit_not_ready", CONFLICT, "The fit has no report";
    JobFinished = "job_finished", CONFLICT, "The job has ended";
    Conflict = "conflict", CONFLICT, "The resource was changed by another request";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is larger than is taken here";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body's type is not one that is read here";
    UnsupportedEncoding = "unsupported_content_encoding", UNSUPPORTED_MEDIA_TYPE, "The body's content encoding is not one that is read here";
    InvalidBody = "invalid_body", UNPROCESSABLE_ENTITY, "The body is read, but says something that cannot be done";
    UnreadableModel = "unreadable_model", UNPROCESSABLE_ENTITY, "The model cannot be read";
    InvalidModel = "invalid_model", UNPROCESSABLE_ENTITY, "The model is read, but cannot be solved";
    InvalidTrials = "invalid_trials", UNPROCESSABLE_ENTITY, "The trials cannot be used";
    InvalidFit = "invalid_fit", UNPROCESSABLE_ENTITY, "The fit cannot be done as asked";
    UnknownReference = "unknown_reference", UNPROCESSABLE_ENTITY, "The body names something that is not there";
    InvalidPrediction = "invalid_prediction", UNPROCESSABLE_ENTITY, "The prediction cannot be made as asked";
    InvalidDesign = "invalid_design", UNPROCESSABLE_ENTITY, "The design cannot be made as asked";
    NotComparable = "not_comparable", UNPROCESSABLE_ENTITY, "The fits cannot be compared";
    NotObserved = "not_observed", UNPROCESSABLE_ENTITY, "The trace does not say what is asked for";
    TooManySystems = "too_many_systems", TOO_MANY_REQUESTS, "Spans of as many systems as can be are being received already";
    Internal = "internal", INTERNAL_SERVER_ERROR, "An error of the service";
    DatabaseBusy = "database_busy", SERVICE_UNAVAILABLE, "The database is busy";
    DatabaseFull = "database_full", SERVICE_UNAVAILABLE, "The database cannot be written: the disk is full or out of order";
    RequestTimeout = "request_timeout", SERVICE_UNAVAILABLE, "The request took too long";
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Other requests take up the room that this one needs";
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "The service does not take work";
}

/// Why a request was not done.
#[derive(Debug)]
pub struct Error {
    code: Code,
    detail: String,
    members: Map<String, Value>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// An error as it leaves (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Reference to what the code means.
    #[serde(rename = "type")]
    #[schema(example = "/v1/problems/not_found")]
    kind: String,
    /// What the code means.
    title: String,
    /// Status of the response.
    #[schema(example = 404)]
    status: u16,
    /// What went wrong with this request and what was expected.
    pub(super) detail: String,
    /// Stable code, for programs.
    #[schema(example = "not_found")]
    pub(super) code: String,
    /// The request, as the log names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
    /// Members of the code's own.
    #[serde(flatten)]
    #[schema(value_type = Option<Object>)]
    members: Map<String, Value>,
}

impl Error {
    /// An error; `detail` says what went wrong with this request and what was expected.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), members: Map::new(), source: None }
    }

    /// Adds a member to the problem document.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// The same under another code.
    pub(super) fn with_code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// There is no `what` of that `id`.
    pub fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("there is no {what} {id}"))
    }

    /// The service is at fault: the cause goes to the log, not to the client.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let detail = "the request could not be completed because of an error of the service; the log has it under the request id";
        Self { source: Some(source.into()), ..Self::new(Code::Internal, detail) }
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::MissingReference => Self::new(Code::NotFound, "what the request refers to was deleted meanwhile"),
            StoreError::Duplicate => Self::new(Code::Conflict, "another request came between; try again"),
            StoreError::UnfinishedJobs => {
                Self::new(Code::SystemBusy, "the system has queued or running jobs: wait for them or cancel them, then try again")
            }
            busy if busy.is_busy() => {
                Self { source: Some(busy.into()), ..Self::new(Code::DatabaseBusy, "the database did not answer in time; try again") }
            }
            full if full.is_disk_at_fault() => Self {
                source: Some(full.into()),
                ..Self::new(Code::DatabaseFull, "the database cannot be written, as when the disk is full; try again once there is room")
            },
            other => Self::internal(other),
        }
    }
}

impl Problem {
    /// The same with the request's id.
    pub(super) fn of_request(self, request_id: &str) -> Self {
        Self { request_id: Some(request_id.to_owned()), ..self }
    }
}

/// A problem document without the request's id, left in a response for the middleware that knows the id.
#[derive(Clone)]
pub(super) struct Unsigned(pub(super) Problem);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if let Some(source) = &self.source {
            error!(code = self.code.name(), error = chain(source.as_ref()), "request failed");
        }
        let problem = Problem {
            kind: format!("/v1/problems/{}", self.code.name()),
            title: self.code.title().to_owned(),
            status: self.code.status().as_u16(),
            detail: self.detail,
            code: self.code.name().to_owned(),
            request_id: None,
            members: self.members,
        };
        let mut response = problem_response(self.code.status(), &problem);
        response.extensions_mut().insert(Unsigned(problem));
        response
    }
}

/// The response that carries a problem document.
pub(super) fn problem_response(status: StatusCode, problem: &Problem) -> Response {
    let mut response = (status, Json(problem)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    // What took too long takes as long again.
    if problem.code == Code::RequestTimeout.name() { response } else { with_retry_after(response) }
}

/// The response with the seconds after which the same request may succeed, where time alone can make it so.
pub(super) fn with_retry_after(mut response: Response) -> Response {
    let seconds = match response.status() {
        StatusCode::SERVICE_UNAVAILABLE => "5",
        // Room is made by whoever deletes what takes it.
        StatusCode::TOO_MANY_REQUESTS => "60",
        _ => return response,
    };
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
    response
}

macro_rules! documented_problems {
    ($document:ident, $(#[$doc:meta])* $name:ident: $($status:ident),*) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
                let statuses = [$(StatusCode::$status),*];
                statuses.into_iter().map(|status| (status.as_str().to_owned(), $document(status).into())).collect()
            }
        }
    };
}

documented_problems! {
    problem_document,
    /// How an operation that reads can fail.
    ReadProblems: BAD_REQUEST, NOT_FOUND, NOT_ACCEPTABLE, CONFLICT, UNPROCESSABLE_ENTITY, INTERNAL_SERVER_ERROR, SERVICE_UNAVAILABLE
}
documented_problems! {
    problem_document,
    /// How an operation that takes a body can fail.
    WriteProblems: BAD_REQUEST, NOT_FOUND, REQUEST_TIMEOUT, CONFLICT, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE,
        UNPROCESSABLE_ENTITY, INTERNAL_SERVER_ERROR, SERVICE_UNAVAILABLE
}

documented_problems! {
    status_document,
    /// How the receiver of OTLP can fail.
    ReceptionProblems: BAD_REQUEST, CONFLICT, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, TOO_MANY_REQUESTS, INTERNAL_SERVER_ERROR,
        SERVICE_UNAVAILABLE
}

/// A `google.rpc.Status` or a problem document, as the client accepts.
fn status_document(status: StatusCode) -> openapi::Response {
    let mut response = problem_document(status);
    response.description += "; a google.rpc.Status whose one detail, a google.rpc.ErrorInfo, has the code in upper case as its reason";
    for (media_type, kind) in [("application/json", openapi::Type::Object), ("application/x-protobuf", openapi::Type::String)] {
        let schema: RefOr<openapi::Schema> = openapi::ObjectBuilder::new().schema_type(kind).into();
        response.content.insert(media_type.to_owned(), openapi::ContentBuilder::new().schema(Some(schema)).build().into());
    }
    response
}

/// A status in the OpenAPI document: the codes that go with it.
fn problem_document(status: StatusCode) -> openapi::Response {
    let names: Vec<&str> = Code::ALL.iter().filter(|code| code.status() == status).map(|code| code.name()).collect();
    let schema = openapi::Ref::from_schema_name(Problem::name());
    openapi::ResponseBuilder::new()
        .description(format!("`code`: {}", names.join(", ")))
        .content(PROBLEM_JSON, openapi::ContentBuilder::new().schema(Some(schema)).build())
        .build()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_errors() {
        let names: HashSet<_> = Code::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|c| c.status().is_client_error() || c.status().is_server_error()));
    }

    #[test]
    fn causes_stay_inside() {
        let response = Error::internal("password=hunter2").into_response();
        let Unsigned(problem) = response.extensions().get().expect("a problem");
        assert!(!serde_json::to_string(problem).unwrap().contains("hunter2"));
    }
}
