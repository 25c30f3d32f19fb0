//! What a running job reads (go on, cancel, stop) and reports (progress).

use std::{
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use tokio::sync::{Notify, broadcast};

use super::JobEvent;
use crate::store::{JobId, jobs::Progress};

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const CANCEL: u8 = 2;

/// The line between a job's blocking thread and the rest of the service.
#[derive(Debug)]
pub struct Control {
    job: JobId,
    order: AtomicU8,
    /// Whether a step has been answered with `Break`, so that what the work returns is not its result.
    broken_off: AtomicBool,
    /// The latest progress that is not stored yet.
    unsaved: Mutex<Option<Progress>>,
    events: broadcast::Sender<JobEvent>,
    /// Tells who waits for it that the job was cancelled.
    cancelled: Notify,
}

/// Why a job was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The service stops.
    Stop,
    /// A client cancelled the job.
    Cancel,
}

impl Control {
    pub(super) fn new(job: JobId, events: broadcast::Sender<JobEvent>) -> Self {
        Self {
            job,
            order: AtomicU8::new(GO_ON),
            broken_off: AtomicBool::new(false),
            unsaved: Mutex::new(None),
            events,
            cancelled: Notify::new(),
        }
    }

    /// Orders the job to end because a client cancelled it.
    pub fn cancel(&self) {
        self.order.store(CANCEL, Ordering::Relaxed);
        self.cancelled.notify_one();
    }

    /// Orders the job to end because the service stops; a cancelled job stays cancelled.
    pub fn stop(&self) {
        // An error only says that there was an order already.
        let _ = self.order.compare_exchange(GO_ON, STOP, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Reports a step and reads the order: `Break` when the job is to end.
    pub fn step(&self, progress: Progress) -> ControlFlow<()> {
        let _ = self.events.send(JobEvent::Progress(self.job, progress.clone()));
        *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        if self.interruption().is_none() {
            return ControlFlow::Continue(());
        }
        self.broken_off.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    }

    /// Has the job end without a result, to be queued again.
    pub(super) fn break_off(&self) {
        self.stop();
        self.broken_off.store(true, Ordering::Relaxed);
    }

    /// Waits until the job is cancelled; for one at a time.
    pub(super) async fn cancelled(&self) {
        while self.interruption() != Some(Interruption::Cancel) {
            self.cancelled.notified().await;
        }
    }

    pub(super) fn is_broken_off(&self) -> bool {
        self.broken_off.load(Ordering::Relaxed)
    }

    pub(super) fn interruption(&self) -> Option<Interruption> {
        match self.order.load(Ordering::Relaxed) {
            GO_ON => None,
            STOP => Some(Interruption::Stop),
            _ => Some(Interruption::Cancel),
        }
    }

    pub(super) fn take_unsaved(&self) -> Option<Progress> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_reports_and_obeys() {
        let events = broadcast::Sender::new(4);
        let mut listener = events.subscribe();
        let id = JobId::generate();
        let control = Control::new(id, events);
        let step = Progress { round: 0, iteration: 1, sum_of_squares: Some(2.0) };
        assert_eq!(control.step(step.clone()), ControlFlow::Continue(()));
        assert_eq!(listener.try_recv(), Ok(JobEvent::Progress(id, step.clone())));
        assert_eq!((control.take_unsaved(), control.take_unsaved()), (Some(step.clone()), None));
        control.cancel();
        control.stop();
        assert_eq!(control.step(step), ControlFlow::Break(()));
        assert_eq!(control.interruption(), Some(Interruption::Cancel), "a stop does not undo a cancellation");
    }
}
