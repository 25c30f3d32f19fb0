//! What a client still sends when its request is refused.
//!
//! Who refuses a body without reading it and closes the connection has the client's system throw the answer away: many clients look at it only
//! when all is sent, and then find the connection reset. So the rest is read for a short while, and discarded (RFC 9112, section 9.6).

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::header,
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// How long a rest is read for.
const LONGEST: Duration = Duration::from_secs(3);
/// How much of it, bytes.
const MOST_BYTES: usize = 64 << 20;

/// The body of a request that somebody else reads.
#[derive(Clone, Debug)]
pub(super) struct Rest(Arc<Mutex<Body>>);

impl Rest {
    /// The request as it was, and what will be left of its body; nothing of clients that wait to be told to send it.
    pub(super) fn of(request: Request) -> (Request, Option<Self>) {
        if request.headers().contains_key(header::EXPECT) || request.body().is_end_stream() {
            return (request, None);
        }
        let (parts, body) = request.into_parts();
        let rest = Self(Arc::new(Mutex::new(body)));
        (Request::from_parts(parts, Body::new(rest.clone())), Some(rest))
    }

    /// Reads what is left and forgets it, within bounds.
    pub(super) async fn discard(mut self) {
        let all = async {
            let mut n_bytes = 0;
            while let Some(Ok(frame)) = self.frame().await {
                n_bytes += frame.data_ref().map_or(0, Bytes::len);
                if n_bytes > MOST_BYTES {
                    break;
                }
            }
        };
        // An error says that the time is over, and it is as good as the end.
        let _ = tokio::time::timeout(LONGEST, all).await;
    }

    fn with<T>(&self, read: impl FnOnce(&mut Body) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpBody for Rest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}
