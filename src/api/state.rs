//! What every handler shares.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, watch},
    task,
};

use super::{Error, Limits, telemetry::Telemetry};
use crate::{
    jobs::{Jobs, ReceptionOptions, Receptions},
    store::Store,
};

/// The service's parts: cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    jobs: Jobs,
    receptions: Receptions,
    limits: Limits,
    telemetry: Telemetry,
    computations: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
}

impl AppState {
    /// A service on a database and its queue.
    pub fn new(store: Store, jobs: Jobs, limits: Limits) -> Self {
        let computations = Arc::new(Semaphore::new(limits.n_computations));
        let receptions = Receptions::new(store.clone(), ReceptionOptions::default());
        let shared =
            Shared { store, jobs, receptions, limits, telemetry: Telemetry::new(), computations, stopping: watch::Sender::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// The database.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The queue.
    pub fn jobs(&self) -> &Jobs {
        &self.shared.jobs
    }

    /// The streams of spans.
    pub fn receptions(&self) -> &Receptions {
        &self.shared.receptions
    }

    /// Bounds on requests.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(super) fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    /// Ends what would stay open for ever: event streams.
    pub(super) fn begin_stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Becomes `true` when the service stops.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.shared.stopping.subscribe()
    }

    /// Runs a computation off the async threads, no more of them at a time than [`Limits::n_computations`].
    ///
    /// # Errors
    /// What `compute` says; an internal error when it panics.
    pub(super) async fn compute<T: Send + 'static>(&self, compute: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
        let permit = Arc::clone(&self.shared.computations).acquire_owned().await.map_err(Error::internal)?;
        let computation = task::spawn_blocking(move || {
            // Held here, not by the request: a request that gives up does not end the computation.
            let _permit = permit;
            compute()
        });
        computation.await.map_err(Error::internal)?
    }
}
