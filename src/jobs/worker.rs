//! One worker: takes a job, runs it on a blocking thread, stores its progress and its end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{
    task::{self, JoinHandle},
    time,
};
use tracing::{error, info, warn};

use super::{
    Control, EndedJob, JobEvent, Shared,
    control::Interruption,
    work::{Work, failed},
};
use crate::{
    error_chain::chain,
    store::{
        JobId, StoreError,
        jobs::{Ending, Failure, Job, State},
    },
};

/// Before the end of a job is stored for the second time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Between two attempts to store it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What is told between two attempts.
const NOT_STORED_YET: &str = "the end of a job is not stored yet";

/// Counts the worker as dead when its task ends, however it ends.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.n_alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Works until the service stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let _alive = Alive(Arc::clone(&shared));
    let mut stopping = shared.stopping.subscribe();
    while !*stopping.borrow_and_update() {
        match shared.store.claim_job().await {
            Ok(Some(job)) => {
                // There may be more in the queue than calls for workers: pass the call on.
                shared.wake.notify_one();
                run_job(&shared, job).await;
                continue;
            }
            Ok(None) => {}
            Err(failure) => error!(error = chain(&failure), "the queue cannot be read"),
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            () = time::sleep(shared.options.idle_interval) => {}
            _ = stopping.changed() => {}
        }
    }
}

async fn run_job(shared: &Arc<Shared>, job: Job) {
    let begun = Instant::now();
    let control = Arc::new(Control::new(job.id, shared.events.clone()));
    shared.running().insert(job.id, Arc::clone(&control));
    obey_earlier_orders(shared, &job, &control).await;
    shared.publish(JobEvent::Changed(job.id));
    let mut computation = None;
    let ending = match insist(shared, job.id, "what a job works on is not read yet", None, || Work::load(&shared.store, &job)).await {
        Ok(work) => compute(shared, &job, &control, computation.insert(begin(&control, work))).await,
        Err(failure) if failure.may_pass() => {
            control.break_off();
            failed("internal", &failure)
        }
        Err(failure) => failed("internal", &failure),
    };
    let duration = begun.elapsed();
    let stored = store_end(shared, &job, ending, &control).await;
    shared.running().remove(&job.id);
    tell_end(shared, &job, stored, duration);
    shared.publish(JobEvent::Changed(job.id));
    // A cancelled computation may not have ended yet, and there are to be no more at a time than workers.
    if let Some(computation) = computation.filter(|computation| !computation.is_finished()) {
        let mut stopping = shared.stopping.subscribe();
        tokio::select! {
            // What came of it is of no interest any more.
            _ = computation => {}
            _ = stopping.wait_for(|stops| *stops) => {}
        }
    }
}

fn tell_end(shared: &Shared, job: &Job, stored: Result<Outcome, StoreError>, duration: Duration) {
    let kind = job.subject.kind();
    match stored {
        Ok(outcome) => {
            info!(job = %job.id, kind, ?outcome, attempt = job.attempts, duration_ms = duration.as_secs_f64() * 1e3, "job ended");
            if let Some(state) = outcome.state() {
                shared.count_end(EndedJob { kind, state, duration });
            }
        }
        Err(failure) => {
            error!(job = %job.id, kind, error = chain(&failure), "the end of a job is not stored: it is queued again at the next start");
        }
    }
}

/// An order that came between the claim of the job and the entry of its control among the running ones.
async fn obey_earlier_orders(shared: &Shared, job: &Job, control: &Control) {
    if *shared.stopping.borrow() {
        control.stop();
    }
    if shared.store.load_job(job.id).await.is_ok_and(|job| job.is_some_and(|job| job.cancel_requested)) {
        control.cancel();
    }
}

/// Begins the work on a blocking thread.
fn begin(control: &Arc<Control>, work: Work) -> JoinHandle<Ending> {
    let control = Arc::clone(control);
    task::spawn_blocking(move || work.run(&control))
}

/// Waits for the work to end or be cancelled, and stores its progress meanwhile.
async fn compute(shared: &Shared, job: &Job, control: &Control, computation: &mut JoinHandle<Ending>) -> Ending {
    let mut ticks = time::interval(shared.options.progress_interval);
    loop {
        tokio::select! {
            joined = &mut *computation => return joined.unwrap_or_else(|_| panicked()),
            () = control.cancelled() => return Ending::Cancelled,
            _ = ticks.tick() => {
                if let Some(progress) = control.take_unsaved()
                    && let Err(failure) = shared.store.record_progress(job.id, &progress).await
                {
                    error!(job = %job.id, error = chain(&failure), "progress cannot be stored");
                }
            }
        }
    }
}

/// The panic itself has been logged by the panic hook.
fn panicked() -> Ending {
    Ending::Failed(Failure { code: "internal".into(), message: "the computation broke off because of an error in layerfit".into() })
}

/// What becomes of a job whose work has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Succeeded,
    Failed,
    Cancelled,
    QueuedAgain,
}

impl Outcome {
    /// The state that the job ends in, if it does.
    fn state(self) -> Option<State> {
        match self {
            Self::Succeeded => Some(State::Succeeded),
            Self::Failed => Some(State::Failed),
            Self::Cancelled => Some(State::Cancelled),
            Self::QueuedAgain => None,
        }
    }
}

fn outcome(control: &Control, ending: &Ending) -> Outcome {
    match (control.interruption(), ending) {
        (Some(Interruption::Cancel), _) => Outcome::Cancelled,
        (Some(Interruption::Stop), _) if control.is_broken_off() => Outcome::QueuedAgain,
        (_, Ending::Extracted(..) | Ending::Fitted(..)) => Outcome::Succeeded,
        (_, Ending::Failed(_) | Ending::Cancelled) => Outcome::Failed,
    }
}

/// Stores the end of a job, as it then is: a result that will not go in leaves a failed job, and one that waits for room may be cancelled.
async fn store_end(shared: &Shared, job: &Job, ending: Ending, control: &Control) -> Result<Outcome, StoreError> {
    let attempt = async |ending: &Ending| {
        let outcome = outcome(control, ending);
        match outcome {
            Outcome::QueuedAgain => shared.store.requeue_job(job.id).await,
            Outcome::Cancelled => shared.store.finish_job(job, &Ending::Cancelled).await,
            Outcome::Succeeded | Outcome::Failed => shared.store.finish_job(job, ending).await,
        }
        .map(|()| outcome)
    };
    let stored = insist(shared, job.id, NOT_STORED_YET, Some(control), || attempt(&ending)).await;
    match stored {
        Err(failure) if !failure.may_pass() && outcome(control, &ending).state().is_some() => {
            error!(job = %job.id, error = chain(&failure), "the result of a job cannot be stored");
            let failed = Ending::Failed(Failure { code: "internal".into(), message: "the result cannot be stored".into() });
            insist(shared, job.id, NOT_STORED_YET, Some(control), || attempt(&failed)).await
        }
        stored => stored,
    }
}

/// Tries until the store has done it or cannot, with growing pauses that end when the job is cancelled; once the service stops, for a last time.
async fn insist<T, F: Future<Output = Result<T, StoreError>>>(
    shared: &Shared,
    job: JobId,
    not_yet: &'static str,
    control: Option<&Control>,
    attempt: impl Fn() -> F,
) -> Result<T, StoreError> {
    let mut stopping = shared.stopping.subscribe();
    let mut pause = FIRST_PAUSE;
    loop {
        let is_last = *stopping.borrow_and_update();
        match attempt().await {
            Err(failure) if failure.may_pass() && !is_last => {
                warn!(%job, error = chain(&failure), pause_s = pause.as_secs_f64(), "{not_yet}");
            }
            ended => return ended,
        }
        tokio::select! {
            () = time::sleep(pause) => {}
            () = cancelled(control) => {}
            _ = stopping.changed() => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits for a job that is not cancelled to be so.
async fn cancelled(control: Option<&Control>) {
    match control.filter(|control| control.interruption() != Some(Interruption::Cancel)) {
        Some(control) => control.cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::{
        jobs::{Jobs, Options},
        store::{
            Store,
            traces::{NewTrace, compress},
        },
        structure::ExtractOptions,
    };

    /// A trace's job that runs, and no worker.
    async fn running_job(folder: &tempfile::TempDir) -> (Jobs, Job) {
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options { n_workers: 0, ..Options::default() }).await.unwrap();
        let system = store.insert_system("shop").await.unwrap().id;
        let (options, content) = (ExtractOptions::default(), compress(b"x").unwrap());
        store.insert_trace(NewTrace { system, format: "same", options: &options, content: &content }).await.unwrap();
        let job = store.claim_job().await.unwrap().expect("the job is queued");
        (jobs, job)
    }

    /// Whatever its work does; here it waits for the end of the test.
    #[tokio::test]
    async fn a_cancelled_job_ends_before_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let (jobs, job) = running_job(&folder).await;
        let control = Control::new(job.id, jobs.shared.events.clone());
        let (release, released) = std::sync::mpsc::channel::<()>();
        let mut work = task::spawn_blocking(move || {
            let _ = released.recv();
            panicked()
        });
        let cancelled = async { tokio::join!(compute(&jobs.shared, &job, &control, &mut work), async { control.cancel() }).0 };
        let ending = time::timeout(Duration::from_secs(60), cancelled).await.expect("the job ends while its work waits");
        assert!(matches!(ending, Ending::Cancelled) && !work.is_finished());
        drop(release);
    }

    #[tokio::test]
    async fn a_job_whose_end_finds_no_room_can_be_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let (jobs, job) = running_job(&folder).await;
        let control = Control::new(job.id, jobs.shared.events.clone());
        jobs.shared.store.fill().await.unwrap();
        let large = Ending::Failed(Failure { code: "large".into(), message: "x".repeat(1 << 20) });
        let (stored, ()) = tokio::join!(store_end(&jobs.shared, &job, large, &control), async {
            time::sleep(FIRST_PAUSE / 5).await;
            assert_eq!(jobs.shared.store.load_job(job.id).await.unwrap().unwrap().state, State::Running);
            control.cancel();
        });
        assert_eq!(stored.unwrap(), Outcome::Cancelled);
        assert_eq!(jobs.shared.store.load_job(job.id).await.unwrap().unwrap().state, State::Cancelled);
    }

    #[tokio::test]
    async fn a_busy_database_is_tried_again_until_the_service_stops() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("busy.db").display())).await.unwrap();
        let jobs = Jobs::start(store, Options { n_workers: 0, ..Options::default() }).await.unwrap();
        let n_tried = AtomicU32::new(0);
        let busy_for = |n_busy: u32| {
            let n_tried = &n_tried;
            move || async move {
                let is_busy = n_tried.fetch_add(1, Ordering::Relaxed) < n_busy;
                if is_busy { Err(StoreError::busy()) } else { Ok(()) }
            }
        };
        insist(&jobs.shared, JobId::generate(), "not yet", None, busy_for(1)).await.unwrap();
        assert_eq!(n_tried.load(Ordering::Relaxed), 2);
        let lasting =
            insist(&jobs.shared, JobId::generate(), "not yet", None, || async { Err::<(), _>(StoreError::MissingReference) }).await;
        assert!(matches!(lasting, Err(StoreError::MissingReference)));
        let (never, stop) = tokio::join!(insist(&jobs.shared, JobId::generate(), "not yet", None, busy_for(u32::MAX)), async {
            tokio::task::yield_now().await;
            jobs.shutdown(Duration::from_secs(60)).await
        });
        assert!(never.unwrap_err().is_busy() && stop);
    }
}
