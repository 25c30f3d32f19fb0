//! The socket, and how the service ends.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    time,
};
use tracing::{info, warn};

use super::{
    AppState, app,
    connections::{UnderWay, answer},
};

/// How often what the metrics have gathered is folded.
const FOLD_INTERVAL: Duration = Duration::from_secs(10);

/// How the service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every request was answered and every worker has ended.
    Gracefully,
    /// The time given for that ran out.
    OutOfTime,
}

/// Serves on `listener` until `shutdown` completes. Then no connection is taken any more, event streams end, requests are
/// answered, running fits go back into the queue and the database is closed: all of it within `grace`.
///
/// # Errors
/// What the socket says.
pub async fn serve_on(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<Ended> {
    let (begin_drain, drain_begun) = oneshot::channel::<Instant>();
    let stop = {
        let state = state.clone();
        async move {
            shutdown.await;
            info!("stopping");
            state.begin_stop();
            // An error only says that the server has ended by itself.
            let _ = begin_drain.send(Instant::now());
        }
    };
    let folding = tokio::spawn(fold_metrics(state.clone()));
    // Spans are received until the last request has ended, not only until the service is told to stop.
    let end_reception = watch::Sender::new(false);
    let receiving = tokio::spawn(state.receptions().clone().run(end_reception.subscribe()));
    let under_way = UnderWay::default();
    let mut server = tokio::spawn(answer(listener, app(state.clone()), state.limits().clone(), under_way.clone(), stop));
    let served = tokio::select! {
        ended = &mut server => Some(ended),
        () = out_of_time(drain_begun, grace) => None,
    };
    folding.abort();
    let is_drained = served.is_some();
    if let Some(ended) = served {
        ended.map_err(io::Error::other)?;
    } else {
        warn!(grace_s = grace.as_secs_f64(), n_requests = under_way.count(), "requests were cut off");
        server.abort();
        // An error only says that it was aborted.
        let _ = server.await;
    }
    // What was received last is stored before the database is closed.
    end_reception.send_replace(true);
    let is_received = time::timeout(grace, receiving).await.is_ok();
    let have_workers_ended = state.jobs().shutdown(grace).await;
    state.store().close().await;
    Ok(if is_drained && is_received && have_workers_ended { Ended::Gracefully } else { Ended::OutOfTime })
}

/// Completes `grace` after the drain has begun; never, where it does not begin.
async fn out_of_time(drain_begun: oneshot::Receiver<Instant>, grace: Duration) {
    match drain_begun.await {
        Ok(begun) => time::sleep_until(time::Instant::from_std(begun + grace)).await,
        Err(_) => std::future::pending().await,
    }
}

async fn fold_metrics(state: AppState) {
    let mut ticks = time::interval(FOLD_INTERVAL);
    loop {
        ticks.tick().await;
        state.telemetry().count_jobs(&state.jobs().take_ended());
        state.telemetry().fold();
    }
}
