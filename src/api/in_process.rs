//! The service called within its own process: the same router, no socket.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, header},
};
use tower::ServiceExt;

use super::{AppState, app};

/// Largest answer that is read, bytes: far above any of the service's.
const ANSWER_LIMIT_BYTES: usize = 256 << 20;

/// A client of a service in this process.
#[derive(Clone, Debug)]
pub struct InProcess {
    router: Router,
}

/// A request to a service in this process.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Media type of the body.
    pub content_type: &'a str,
    /// Media type asked for.
    pub accept: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// A service's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    /// The request is not one.
    #[error("the request cannot be made")]
    Request(#[from] axum::http::Error),
    /// The answer cannot be read.
    #[error("the answer cannot be read")]
    Answer(#[from] axum::Error),
}

impl InProcess {
    /// A client of a service in `state`.
    pub fn new(state: AppState) -> Self {
        Self { router: app(state) }
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub async fn send(&self, call: Call<'_>) -> Result<Answer, InProcessError> {
        let request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::CONTENT_TYPE, call.content_type)
            .header(header::ACCEPT, call.accept)
            .body(Body::from(call.body.to_vec()))?;
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), ANSWER_LIMIT_BYTES).await?.to_vec();
        Ok(Answer { status, body })
    }
}
