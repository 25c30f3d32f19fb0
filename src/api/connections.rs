//! Connections: taken while the service runs, each with a bound on how long a request's head may take, and how long its client may
//! take nothing of a response.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::Request,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{self, Sleep},
};
use tower::ServiceExt;
use tracing::{debug, warn};

use super::Limits;

/// How long to wait where no connection can be taken, as when too many files are open.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests with `app` until `stop` completes; then no connection is taken any more, and those that are there end after the
/// requests that they have begun: at once where there is none, and half a head is none. Dropped, it cuts them all off.
pub(super) async fn answer(listener: TcpListener, app: Router, limits: Limits, under_way: UnderWay, stop: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let mut connections = JoinSet::new();
    let stopping = watch::Sender::new(false);
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = Connection { app: app.clone(), under_way: under_way.clone(), stopping: stopping.subscribe() };
                connections.spawn(connection.serve(http.clone(), stream, limits.write_time));
            }
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                warn!(%error, "no connection can be taken");
                time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while connections.join_next().await.is_some() {}
}

/// Whether the client has gone before its connection was taken.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

/// How many requests are under way: from their head to the end of their response.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    /// Their number.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn begin(&self) -> Begun {
        self.0.fetch_add(1, Ordering::Relaxed);
        Begun(self.clone())
    }
}

/// A request under way.
struct Begun(UnderWay);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the requests of a connection are answered with.
struct Connection {
    app: Router,
    /// The requests of all connections.
    under_way: UnderWay,
    stopping: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, http: http1::Builder, stream: TcpStream, write_time: Duration) {
        let Self { app, under_way: of_all, mut stopping } = self;
        let (of_this, is_flushed) = (UnderWay::default(), Arc::new(AtomicBool::new(true)));
        let stream = TokioIo::new(Paced { stream, write_time, out_of_time: None, is_flushed: Arc::clone(&is_flushed) });
        let requests = service_fn(|request: Request<Incoming>| {
            let begun = [of_all.begin(), of_this.begin()];
            let answered = app.clone().oneshot(request);
            async move { answered.await.map(|response| response.map(|body| Counted { body, _begun: begun })) }
        });
        let mut connection = pin!(http.serve_connection(stream, requests));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop_ordered(&mut stopping) => {
                connection.as_mut().graceful_shutdown();
                // A request that has not come whole as far as its head is not waited for.
                let is_idle = || of_this.count() == 0 && is_flushed.load(Ordering::Relaxed);
                poll_fn(|cx| match connection.as_mut().poll(cx) {
                    Poll::Pending if is_idle() => Poll::Ready(Ok(())),
                    polled => polled,
                })
                .await
            }
        };
        if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        }
    }
}

/// Completes when the service stops, or has gone.
async fn stop_ordered(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// The body of a response, which is under way as long as it is there.
struct Counted {
    body: Body,
    _begun: [Begun; 2],
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket on which a write that makes no headway for `write_time` is an error.
struct Paced {
    stream: TcpStream,
    write_time: Duration,
    /// There while a write waits.
    out_of_time: Option<Pin<Box<Sleep>>>,
    /// Whether everything has been written that there was to write.
    is_flushed: Arc<AtomicBool>,
}

impl Paced {
    fn paced<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.out_of_time = None;
            return written;
        }
        let write_time = self.write_time;
        let out_of_time = self.out_of_time.get_or_insert_with(|| Box::pin(time::sleep(write_time)));
        out_of_time.as_mut().poll(cx).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of the response")))
    }
}

impl AsyncRead for Paced {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.is_flushed.store(false, Ordering::Relaxed);
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.paced(cx, written)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.is_flushed.store(false, Ordering::Relaxed);
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.paced(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once what was to be written has been.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.is_flushed.store(true, Ordering::Relaxed);
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
