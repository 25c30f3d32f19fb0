//! `layerfit serve`.

use std::{io, num::NonZeroUsize, time::Duration};

use clap::ValueEnum;
use tokio::{net::TcpListener, runtime::Runtime, signal};
use tracing::{info, warn};
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use super::Failure;
use crate::{
    api::{self, AppState, Ended, Limits},
    jobs::{self, Jobs},
    store::{Store, StoreError},
};

/// Longest time from the signal to the end of the process, for each of: requests, jobs, threads.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Most jobs that run at the same time: each has a thread.
const MOST_WORKERS: usize = 256;

/// Arguments of `layerfit serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// SQLite database; created when there is none.
    #[arg(long, default_value = "sqlite://layerfit.db", value_name = "URL")]
    database: String,
    /// Address to listen on; port 0 takes a free one, and the log says which.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "HOST:PORT")]
    listen: String,
    /// Jobs that run at the same time, 256 at most; by default one for each core.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Form of the log on standard error; the environment variable `RUST_LOG` filters it.
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object on each line.
    Json,
}

/// Runs `layerfit serve` until SIGINT or SIGTERM.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    start_log(args.log);
    let runtime = Runtime::new().map_err(|e| Failure::internal(&e))?;
    let ended = runtime.block_on(serve(args));
    // Blocking threads that do not end in time are left behind: their jobs are queued again at the next start.
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    ended
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    // A line that cannot be written is lost: telling of it on standard error, too, would end in a panic.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_span_events(FmtSpan::NONE)
        .log_internal_errors(false);
    // A log that was started before stays: that is no reason not to serve.
    let _ = match format {
        LogFormat::Text => log.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
    };
}

async fn serve(args: Args) -> Result<(), Failure> {
    if let Some(n) = args.workers.filter(|n| n.get() > MOST_WORKERS) {
        return Err(Failure::input_text(format!("--workers {n}: expected 1 to {MOST_WORKERS}")));
    }
    // Before the database, so that there is none where nothing could be served.
    let listener = TcpListener::bind(&args.listen)
        .await
        .map_err(|e| Failure::with_hint(format!("cannot listen on {}: {e}", args.listen), "--listen 127.0.0.1:0 takes a free port"))?;
    let store = Store::open(&args.database).await.map_err(|e| store_failure(&e))?;
    let address = listener.local_addr().map_err(|e| Failure::internal(&e))?;
    // Before the workers start, so that a signal finds the service able to stop.
    let shutdown = shutdown_signal().map_err(|e| Failure::internal(&e))?;
    let mut options = jobs::Options::default();
    options.n_workers = args.workers.map_or(options.n_workers, NonZeroUsize::get);
    let jobs = Jobs::start(store.clone(), options).await.map_err(|e| Failure::internal(&e))?;
    let state = AppState::new(store, jobs, Limits::default());
    info!(%address, database = args.database, "listening on http://{address}");
    match api::serve_on(listener, state, shutdown, SHUTDOWN_GRACE).await.map_err(|e| Failure::internal(&e))? {
        Ended::Gracefully => info!("stopped"),
        Ended::OutOfTime => warn!("stopped before everything had ended"),
    }
    Ok(())
}

fn store_failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Address { .. } | StoreError::File { .. } | StoreError::Unusable { .. } | StoreError::ReadOnly { .. } => {
            Failure::input(error)
        }
        StoreError::InUse { .. } => Failure::with_hint(error.to_string(), "stop the other service, or give this one another --database"),
        _ => Failure::internal(error),
    }
}

/// Completes at the first SIGINT (ctrl-C) or SIGTERM.
#[cfg(unix)]
fn shutdown_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    use signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Completes at the first ctrl-C.
#[cfg(not(unix))]
fn shutdown_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async {
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
