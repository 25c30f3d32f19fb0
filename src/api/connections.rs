//! Connections: taken while the service runs, each with a bound on how long a request's head may take.

use std::{io, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, time};
use tracing::{debug, warn};

/// How long to wait where no connection can be taken, as when too many files are open.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests with `app` until `stop` completes; then no connection is taken any more, and those that are there end after the
/// requests that they have begun.
pub(super) async fn answer(listener: TcpListener, app: Router, head_time: Duration, stop: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_time);
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_of_the_client(&error) {
                    warn!(%error, "no connection can be taken");
                    time::sleep(PAUSE).await;
                }
                continue;
            }
        };
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()));
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// Whether the client has gone before its connection was taken.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
