//! What every handler shares.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, watch},
    task,
};

use super::{Error, Limits, body::Room, telemetry::Telemetry};
use crate::{
    jobs::{Jobs, ReceptionOptions, Receptions},
    model::{Bindings, Measure, Model},
    solve::{self, Sensitivities, SolveError, SolveOptions},
    store::Store,
};

/// How long after a failed write the service takes no work: then another one may show that there is room again.
const UNWRITABLE_TIME: Duration = Duration::from_secs(30);

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
    long_computations: Arc<Semaphore>,
    /// Computations that read a whole trace: each holds much memory, and takes long.
    observations: Arc<Semaphore>,
    sent_bodies: Room,
    decompressed_bodies: Room,
    stopping: watch::Sender<bool>,
    /// When the database could not be written, where no write has succeeded since.
    unwritten_at: Mutex<Option<Instant>>,
}

impl AppState {
    /// A service on a database and its queue.
    pub fn new(store: Store, jobs: Jobs, limits: Limits) -> Self {
        let [computations, long_computations] = [(); 2].map(|()| Arc::new(Semaphore::new(limits.n_computations)));
        let receptions = Receptions::new(store.clone(), ReceptionOptions::default());
        let (telemetry, stopping) = (Telemetry::new(), watch::Sender::new(false));
        let shared = Shared {
            store,
            jobs,
            receptions,
            telemetry,
            computations,
            long_computations,
            observations: Arc::new(Semaphore::new(1)),
            sent_bodies: Room::new(limits.sent_bodies_bytes),
            decompressed_bodies: Room::new(limits.decompressed_bodies_bytes),
            limits,
            stopping,
            unwritten_at: Mutex::default(),
        };
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

    /// Room for bodies as sent.
    pub(super) fn sent_bodies(&self) -> &Room {
        &self.shared.sent_bodies
    }

    /// Room for bodies that were compressed.
    pub(super) fn decompressed_bodies(&self) -> &Room {
        &self.shared.decompressed_bodies
    }

    /// Ends what would stay open for ever: event streams.
    pub(super) fn begin_stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Becomes `true` when the service stops.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.shared.stopping.subscribe()
    }

    /// Notes that the database could be written, or not.
    pub(super) fn note_write(&self, is_written: bool) {
        *self.shared.unwritten_at.lock().unwrap_or_else(PoisonError::into_inner) = (!is_written).then(Instant::now);
    }

    /// Whether the last write failed, a little while ago.
    pub(super) fn is_unwritable(&self) -> bool {
        let unwritten_at = *self.shared.unwritten_at.lock().unwrap_or_else(PoisonError::into_inner);
        unwritten_at.is_some_and(|at| at.elapsed() < UNWRITABLE_TIME)
    }

    /// Runs a computation off the async threads, no more of them at a time than [`Limits::n_computations`].
    ///
    /// # Errors
    /// What `compute` says; an internal error when it panics.
    pub(super) async fn compute<T: Send + 'static>(&self, compute: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
        self.compute_while(|_| compute()).await
    }

    /// As [`AppState::compute`], with a sign by which the computation learns that nobody waits for it any more.
    ///
    /// # Errors
    /// As [`AppState::compute`].
    pub(super) async fn compute_while<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Awaited) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        run(&self.shared.computations, compute).await
    }

    /// As [`AppState::compute_while`], for what may take seconds or minutes: such computations wait for each other, not short ones for them.
    ///
    /// # Errors
    /// As [`AppState::compute`].
    pub(super) async fn compute_long_while<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Awaited) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        run(&self.shared.long_computations, compute).await
    }

    /// As [`AppState::compute_while`], for what reads a whole trace: one at a time, and nothing else waits for it.
    ///
    /// # Errors
    /// As [`AppState::compute`].
    pub(super) async fn observe_while<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Awaited) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        run(&self.shared.observations, compute).await
    }
}

/// Runs a computation off the async threads, once there is room.
async fn run<T: Send + 'static>(
    room: &Arc<Semaphore>,
    compute: impl FnOnce(&Awaited) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(Error::internal)?;
    let awaited = Awaited(Arc::new(AtomicBool::new(true)));
    let _waiting = Waiting(awaited.clone());
    let computation = task::spawn_blocking(move || {
        // Held here, not by the request: a request that gives up does not end the computation at once.
        let _permit = permit;
        compute(&awaited)
    });
    computation.await.map_err(Error::internal)?
}

/// Whether the request that a computation is for still waits for it.
#[derive(Clone, Debug)]
pub(super) struct Awaited(Arc<AtomicBool>);

impl Awaited {
    /// Whether anybody waits: to be asked between the steps of a long computation.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`solve::sensitivities`] as long as anybody waits for them.
    pub(super) fn solver(
        &self,
    ) -> impl Fn(&Model, &Bindings, &[String], &[Measure], &SolveOptions) -> Result<Sensitivities, SolveError> + Sync + '_ {
        |model, values, wrt, measures, options| {
            if self.is_awaited() { solve::sensitivities(model, values, wrt, measures, options) } else { Err(SolveError::Abandoned) }
        }
    }
}

/// The request: when it is answered, or given up because the client has gone or the time is over, nobody waits any more.
struct Waiting(Awaited);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::{sync::oneshot, time::timeout};

    use super::*;
    use crate::jobs::Options;

    #[tokio::test]
    async fn what_nobody_waits_for_ends() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options::default()).await.unwrap();
        let state = AppState::new(store, jobs, Limits::default());
        let (started, has_started) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let endless = state.compute_while(move |awaited| {
            let _ = started.send(());
            while awaited.is_awaited() {
                thread::sleep(Duration::from_millis(1));
            }
            let _ = ended.send(awaited.solver()(&Model::default(), &Bindings::new(), &[], &[], &SolveOptions::default()));
            Ok(())
        });
        // The client hangs up as soon as the computation runs.
        tokio::select! {
            _ = endless => panic!("it ended while it was waited for"),
            begun = has_started => begun.unwrap(),
        }
        let refused = timeout(Duration::from_secs(60), has_ended).await.expect("the computation ends").unwrap();
        assert!(matches!(refused, Err(SolveError::Abandoned)));
        assert!(state.compute_while(|awaited| Ok(awaited.is_awaited())).await.unwrap());
    }

    #[tokio::test]
    async fn short_computations_do_not_wait_for_long_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options::default()).await.unwrap();
        let state = AppState::new(store, jobs, Limits { n_computations: 1, ..Limits::default() });
        let endless = |awaited: &Awaited| {
            while awaited.is_awaited() {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let short = async { timeout(Duration::from_secs(60), state.compute(|| Ok(7))).await.expect("it is not held up").unwrap() };
        tokio::select! {
            biased;
            _ = state.compute_long_while(endless) => panic!("it ended while it was waited for"),
            found = short => assert_eq!(found, 7),
        }
    }
}
