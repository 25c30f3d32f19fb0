//! What is done around every request: its id, one line in the log, its metrics, its time-out, the form of its error.

use std::time::Instant;

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{Instrument, info, info_span, warn};
use uuid::Uuid;

use super::{
    AppState, Code, Error,
    error::{Unsigned, problem_response},
    reception,
    rpc_status::{self, Encoding},
    unread::Rest,
};

/// Header that carries a request's id in and out.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id taken from a client, characters.
const REQUEST_ID_MAX: usize = 128;

/// Counts a request as answered, or as given up when it is dropped before.
struct InFlight<'a> {
    state: &'a AppState,
    is_answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.state.telemetry().abandon_request();
        }
    }
}

/// The middleware around every request.
pub(super) async fn observe(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let request_id = request_id(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());
    let encoding =
        (method == Method::POST && route == reception::PATH).then(|| rpc_status::encoding_of_errors(request.headers())).flatten();
    let span = info_span!("request", request_id, %method, route);
    state.telemetry().begin_request();
    let mut in_flight = InFlight { state: &state, is_answered: false };

    let response = answer_in_time(&state, request, next).instrument(span.clone()).await;
    note_writes(&state, &response);
    let response = sign(response, &request_id, encoding);

    in_flight.is_answered = true;
    let (duration, status) = (begun.elapsed(), response.status().as_u16());
    state.telemetry().end_request(known_method(&method), &route, status, duration);
    let duration_ms = duration.as_secs_f64() * 1e3;
    span.in_scope(|| match status {
        500.. => warn!(status, duration_ms, "request answered"),
        _ => info!(status, duration_ms, "request answered"),
    });
    response
}

/// The method's name where it is one of HTTP's: what a client invents is one for all.
fn known_method(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PATCH", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// Notes whether the database could be written, for who asks whether the service takes work.
fn note_writes(state: &AppState, response: &Response) {
    match (response.status(), response.extensions().get::<Unsigned>()) {
        (_, Some(Unsigned(problem))) if problem.code == Code::DatabaseFull.name() => state.note_write(false),
        (StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => state.note_write(true),
        _ => {}
    }
}

async fn answer_in_time(state: &AppState, request: Request, next: Next) -> Response {
    let limit = state.limits().request_time;
    let (request, rest) = Rest::of(request);
    let response = match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("no answer within {} s; nothing was stored by the request unless a list shows it", limit.as_secs_f64());
            Error::new(Code::RequestTimeout, detail).into_response()
        }
    };
    if let Some(rest) = rest.filter(|_| response.status().is_client_error() || response.status().is_server_error()) {
        rest.discard().await;
    }
    response
}

/// The client's id where it is printable and short, otherwise a new one.
fn request_id(request: &Request) -> String {
    let sent = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_usable = |id: &&str| (1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    sent.filter(is_usable).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned)
}

/// Puts the request's id into the response, and into its problem document where it is one; that leaves as a `google.rpc.Status` where it is to
/// have an encoding of OTLP.
fn sign(response: Response, request_id: &str, encoding: Option<Encoding>) -> Response {
    let unsigned = response.extensions().get::<Unsigned>().cloned();
    let mut response = match unsigned {
        None => response,
        Some(Unsigned(problem)) => {
            let status = response.status();
            let problem = problem.of_request(request_id);
            let mut signed = match encoding {
                Some(encoding) => rpc_status::response(status, &problem, encoding),
                None => problem_response(status, &problem),
            };
            // What a router said beside the problem: the methods that a path takes.
            for (name, value) in response.headers() {
                if !signed.headers().contains_key(name) && name != axum::http::header::CONTENT_LENGTH {
                    signed.headers_mut().insert(name, value.clone());
                }
            }
            signed
        }
    };
    if let Ok(value) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}
