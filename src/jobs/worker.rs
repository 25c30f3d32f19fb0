//! One worker: takes a job, runs it on a blocking thread, stores its progress and its end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{task, time};
use tracing::{error, info};

use super::{
    Control, EndedJob, JobEvent, Shared,
    control::Interruption,
    work::{Work, failed},
};
use crate::store::{
    StoreError,
    jobs::{Ending, Failure, Job, State},
};

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
            Err(failure) => error!(error = &failure as &dyn std::error::Error, "the queue cannot be read"),
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
    let ending = match Work::load(&shared.store, &job).await {
        Ok(work) => compute(shared, &job, &control, work).await,
        Err(failure) => failed("internal", &failure),
    };
    let outcome = outcome(&control, &ending);
    let stored = store_end(shared, &job, ending, outcome).await;
    shared.running().remove(&job.id);
    let (kind, duration) = (job.subject.kind(), begun.elapsed());
    if let Some(state) = outcome.state().map(|state| if stored.is_ok() { state } else { State::Failed }) {
        shared.count_end(EndedJob { kind, state, duration });
    }
    log_end(&job, outcome, duration, stored);
    shared.publish(JobEvent::Changed(job.id));
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

/// Runs the work on a blocking thread and stores its progress meanwhile.
async fn compute(shared: &Shared, job: &Job, control: &Arc<Control>, work: Work) -> Ending {
    let mut computation = task::spawn_blocking({
        let control = Arc::clone(control);
        move || work.run(&control)
    });
    let mut ticks = time::interval(shared.options.progress_interval);
    loop {
        tokio::select! {
            joined = &mut computation => return joined.unwrap_or_else(|_| panicked()),
            _ = ticks.tick() => {
                if let Some(progress) = control.take_unsaved()
                    && let Err(failure) = shared.store.record_progress(job.id, &progress).await
                {
                    error!(job = %job.id, error = &failure as &dyn std::error::Error, "progress cannot be stored");
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

async fn store_end(shared: &Shared, job: &Job, ending: Ending, outcome: Outcome) -> Result<(), StoreError> {
    match outcome {
        Outcome::QueuedAgain => shared.store.requeue_job(job.id).await,
        Outcome::Cancelled => shared.store.finish_job(job, &Ending::Cancelled).await,
        Outcome::Succeeded | Outcome::Failed => {
            let stored = shared.store.finish_job(job, &ending).await;
            if stored.is_err() {
                // The result will not go in; that the job is over still may. Else the next start finds it running.
                let message = "the result cannot be stored".into();
                let _ = shared.store.finish_job(job, &Ending::Failed(Failure { code: "internal".into(), message })).await;
            }
            stored
        }
    }
}

fn log_end(job: &Job, outcome: Outcome, duration: Duration, stored: Result<(), StoreError>) {
    let (kind, duration_ms) = (job.subject.kind(), duration.as_secs_f64() * 1e3);
    match stored {
        Ok(()) => info!(job = %job.id, kind, ?outcome, attempt = job.attempts, duration_ms, "job ended"),
        Err(failure) => {
            error!(job = %job.id, kind, ?outcome, error = &failure as &dyn std::error::Error, "the end of a job cannot be stored");
        }
    }
}
