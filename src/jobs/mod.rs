//! Background work: extractions and fits, off the request threads.
//!
//! The queue is the `jobs` table. A fixed number of workers take from it in order of arrival and run each job on a
//! blocking thread, where it reads a [`Control`] at every iteration. What the queue promises:
//!
//! - a job's result and its new state are committed together, and tried to be for as long as the service runs;
//! - a job that was running when the process died is started again at the next start, at most [`Options::max_attempts`]
//!   times in all, so that a job that takes the process down with it cannot do so for ever;
//! - a panic fails the one job that it happened in;
//! - a job that is cancelled ends as soon as its worker sees it; what it computes ends at a fit's next iteration or with the extraction, and its worker takes
//!   no other job before;
//! - on shutdown running fits stop, and all that does not end in time goes back into the queue; the attempt does not count.
//!
//! | file | is |
//! |---|---|
//! | `control` | what a running job reads and reports |
//! | `reception` | streams of spans: not jobs, but work in the background all the same |
//! | `work` | the work itself, synchronous |
//! | `worker` | the loop of one worker |

mod control;
mod reception;
mod work;
mod worker;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, broadcast, watch},
    task::JoinSet,
};
use tracing::{error, info, warn};

pub use control::Control;
pub use reception::{HeldReceptions, Options as ReceptionOptions, ReceptionError, Receptions, Refresh};

use crate::{
    error_chain::chain,
    store::{
        JobId, Store, StoreError,
        jobs::{Job, Progress, Recovered, State},
    },
};

/// Events that a slow listener may lag behind before it has to read the job again.
const EVENT_BACKLOG: usize = 1024;

/// How the queue is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Jobs that run at the same time, ≥ 1.
    pub n_workers: usize,
    /// Starts of one job before it counts as the cause of the crashes that ended it, ≥ 1.
    pub max_attempts: u32,
    /// How often the progress of a running job is stored.
    pub progress_interval: Duration,
    /// How long an idle worker waits before it looks into the queue without having been called.
    pub idle_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // One worker for each core: the work is computation. The request threads are mostly idle.
            n_workers: std::thread::available_parallelism().map_or(1, usize::from),
            // Once for the crash that was not the job's fault, once more to be sure.
            max_attempts: 3,
            // Every store of it waits for the disk; live listeners get every step as an event anyway.
            progress_interval: Duration::from_secs(1),
            // Submitting calls a worker, so this only matters for a call that was lost to a failing database.
            idle_interval: Duration::from_secs(5),
        }
    }
}

/// Something happened to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEvent {
    /// It took a step.
    Progress(JobId, Progress),
    /// Its stored state has changed.
    Changed(JobId),
}

impl JobEvent {
    /// The job that it happened to.
    pub fn job(&self) -> JobId {
        match self {
            Self::Progress(id, _) | Self::Changed(id) => *id,
        }
    }
}

/// A job whose work has ended, for whoever counts them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedJob {
    /// `extraction` or `fit`.
    pub kind: &'static str,
    /// How it ended: [`State::Succeeded`], [`State::Failed`] or [`State::Cancelled`].
    pub state: State,
    /// How long a worker was at it.
    pub duration: Duration,
}

/// Most ended jobs that are held for who counts them.
const ENDED_HELD: usize = 100_000;

/// The queue and its workers: cheap to clone, shared by all.
#[derive(Clone, Debug)]
pub struct Jobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    options: Options,
    /// Calls an idle worker.
    wake: Notify,
    events: broadcast::Sender<JobEvent>,
    /// The controls of the jobs that are running.
    running: Mutex<HashMap<JobId, Arc<Control>>>,
    stopping: watch::Sender<bool>,
    n_alive: AtomicUsize,
    workers: Mutex<JoinSet<()>>,
    /// Jobs that ended since they were asked for last.
    ended: Mutex<Vec<EndedJob>>,
}

impl Jobs {
    /// Sets right what a crash left in the queue, then starts the workers on the current runtime.
    ///
    /// # Errors
    /// What the database says.
    pub async fn start(store: Store, options: Options) -> Result<Self, StoreError> {
        let Recovered { n_requeued, given_up } = store.recover_jobs(options.max_attempts).await?;
        for job in given_up {
            error!(%job, attempts = options.max_attempts, "the service ended too often while a job was running: it has failed");
        }
        if n_requeued > 0 {
            info!(n_requeued, "jobs that were running when the service ended are queued again");
        }
        let shared = Arc::new(Shared {
            store,
            wake: Notify::new(),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            running: Mutex::default(),
            stopping: watch::Sender::new(false),
            n_alive: AtomicUsize::new(0),
            workers: Mutex::default(),
            ended: Mutex::default(),
            options,
        });
        let mut workers = shared.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..shared.options.n_workers {
            shared.n_alive.fetch_add(1, Ordering::Relaxed);
            workers.spawn(worker::run(Arc::clone(&shared)));
        }
        drop(workers);
        Ok(Self { shared })
    }

    /// Tells the workers that a job was queued.
    pub fn wake(&self) {
        self.shared.wake.notify_one();
    }

    /// Everything that happens to jobs from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<JobEvent> {
        self.shared.events.subscribe()
    }

    /// Cancels a job; see [`Store::request_cancel`]. The job as it then is, `None` when there is none of that id.
    ///
    /// # Errors
    /// What the database says.
    pub async fn cancel(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let job = self.shared.store.request_cancel(id).await?;
        match job.as_ref().map(|job| job.state) {
            Some(State::Running) => {
                if let Some(control) = self.shared.running().get(&id) {
                    control.cancel();
                }
            }
            Some(State::Cancelled) => self.shared.publish(JobEvent::Changed(id)),
            _ => {}
        }
        Ok(job)
    }

    /// Whether every worker is alive and none has been told to stop.
    pub fn is_ready(&self) -> bool {
        !*self.shared.stopping.borrow() && self.shared.n_alive.load(Ordering::Relaxed) == self.shared.options.n_workers
    }

    /// Number of workers that are alive.
    pub fn n_alive(&self) -> usize {
        self.shared.n_alive.load(Ordering::Relaxed)
    }

    /// The jobs that have ended since this was asked last; those beyond a hundred thousand are not held.
    pub fn take_ended(&self) -> Vec<EndedJob> {
        std::mem::take(&mut *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops: no new job is begun, running fits go back into the queue at their next iteration. Waits for the workers at
    /// most `grace`; whether all ended in that time. What did not end is queued again, and the attempt does not count.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        self.shared.stopping.send_replace(true);
        for control in self.shared.running().values() {
            control.stop();
        }
        let mut workers = std::mem::take(&mut *self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner));
        let all_ended = tokio::time::timeout(grace, async { while workers.join_next().await.is_some() {} }).await.is_ok();
        if !all_ended {
            warn!(grace_s = grace.as_secs_f64(), "jobs did not stop in time; they are queued again");
            drop(workers);
            let left: Vec<JobId> = self.shared.running().keys().copied().collect();
            for job in left {
                if let Err(failure) = self.shared.store.requeue_job(job).await {
                    error!(%job, error = chain(&failure), "a job is not queued again before the next start");
                }
            }
        }
        all_ended
    }
}

impl Shared {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Arc<Control>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_end(&self, job: EndedJob) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() < ENDED_HELD {
            ended.push(job);
        }
    }

    /// Tells the listeners, if there are any.
    fn publish(&self, event: JobEvent) {
        // An error only says that nobody listens.
        let _ = self.events.send(event);
    }
}
