//! Jobs: how far the work in the background has come.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast::error::RecvError, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState, Code, Error,
    error::ReadProblems,
    extract::{Id, PageBody, Params, page_request},
    fits::FailureBody,
};
use crate::{
    jobs::JobEvent,
    store::{
        FitId, JobId, StructureId, SystemId, Timestamp, TraceId,
        jobs::{Job, JobFilter, Progress, State as JobState, Subject},
    },
};

/// Events that are made ahead of a slow reader; beyond that it misses steps, never the end.
const EVENTS_AHEAD: usize = 16;
/// How often an event stream looks at the stored job, in case that an event was missed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JobBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: JobId,
    /// The system it is of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// `extraction` or `fit`.
    kind: &'static str,
    /// The trace that is extracted from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    trace: Option<TraceId>,
    /// The fit that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    fit: Option<FitId>,
    /// `queued`, `running`, `succeeded`, `failed` or `cancelled`; the last three are final.
    #[schema(value_type = String, example = "running")]
    state: JobState,
    /// How often the work was started.
    attempts: i64,
    /// Whether a client has asked for it to be cancelled.
    cancel_requested: bool,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressBody>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody>,
    /// The structure that was extracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    structure: Option<StructureId>,
    /// When it was queued.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its latest attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    finished_at: Option<Timestamp>,
}

/// How far a job has come.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProgressBody {
    /// Round of weighting, from 0.
    round: usize,
    /// Steps tried in this round.
    iteration: usize,
    /// Smallest weighted sum of squared residuals of the round so far.
    sum_of_squares: Option<f64>,
}

impl From<Progress> for ProgressBody {
    fn from(progress: Progress) -> Self {
        Self { round: progress.round, iteration: progress.iteration, sum_of_squares: progress.sum_of_squares }
    }
}

impl From<Job> for JobBody {
    fn from(job: Job) -> Self {
        let (trace, fit) = match job.subject {
            Subject::Extraction(trace) => (Some(trace), None),
            Subject::Fit(fit) => (None, Some(fit)),
        };
        Self {
            id: job.id,
            system: job.system_id,
            kind: job.subject.kind(),
            trace,
            fit,
            state: job.state,
            attempts: job.attempts,
            cancel_requested: job.cancel_requested,
            progress: job.progress.map(Into::into),
            error: job.failure.map(Into::into),
            structure: job.structure_id,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
        }
    }
}

/// Which jobs are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JobsParams {
    /// Those of this system.
    system: Option<String>,
    /// Those in this state: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    #[param(value_type = Option<String>)]
    state: Option<JobState>,
    /// Most items wanted.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Lists jobs in order of creation.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(JobsParams),
    responses((status = OK, description = "A page of jobs", body = PageBody<JobBody>), ReadProblems))]
pub(super) async fn list_jobs(State(state): State<AppState>, Params(params): Params<JobsParams>) -> Result<Json<PageBody<JobBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    let system = params.system.map(|text| text.parse::<SystemId>());
    let system = system.transpose().map_err(|e| Error::new(Code::InvalidQuery, format!("system: {e}")))?;
    let page = state.store().list_jobs(JobFilter { system, state: params.state }, page).await?;
    Ok(Json(PageBody::from_page(page, |job| job.id, JobBody::from)))
}

/// A job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = OK, description = "The job", body = JobBody), ReadProblems))]
pub(super) async fn get_job(State(state): State<AppState>, Id(id): Id<JobId>) -> Result<Json<JobBody>, Error> {
    Ok(Json(require_job(&state, id).await?.into()))
}

async fn require_job(state: &AppState, id: JobId) -> Result<Job, Error> {
    state.store().load_job(id).await?.ok_or_else(|| Error::not_found("job", id))
}

/// Cancels a job. A queued one is cancelled at once (200); a running one stops at its next iteration (202). Cancelling a
/// cancelled job again changes nothing; a job that has ended otherwise is refused.
#[utoipa::path(delete, path = "/v1/jobs/{job_id}", tag = "jobs", params(("job_id" = String, Path)),
    responses(
        (status = OK, description = "The job, cancelled", body = JobBody),
        (status = ACCEPTED, description = "The job, which ends as soon as its worker sees the order", body = JobBody),
        ReadProblems
    ))]
pub(super) async fn cancel_job(State(state): State<AppState>, Id(id): Id<JobId>) -> Result<Response, Error> {
    let job = state.jobs().cancel(id).await?.ok_or_else(|| Error::not_found("job", id))?;
    let status = match job.state {
        JobState::Cancelled => StatusCode::OK,
        JobState::Queued | JobState::Running => StatusCode::ACCEPTED,
        JobState::Succeeded | JobState::Failed => {
            let detail = format!("job {id} has {} and cannot be cancelled any more", job.state.name());
            return Err(Error::new(Code::JobFinished, detail).with("state", job.state.name()));
        }
    };
    Ok((status, Json(JobBody::from(job))).into_response())
}

/// Server-sent events of a job: `progress` with the job whenever it takes a step or changes, `done` with it when it has
/// ended; then the stream ends. A job that has ended already yields `done` at once. The stream ends without `done` when the job
/// is deleted with its system before it was told, and when the service stops.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/events", tag = "jobs", params(("job_id" = String, Path)),
    responses((status = OK, description = "The events", body = String, content_type = "text/event-stream"), ReadProblems))]
pub(super) async fn stream_job_events(State(state): State<AppState>, Id(id): Id<JobId>) -> Result<Response, Error> {
    // Subscribed before the job is read, so that no change falls between the two.
    let listener = Listener { events: state.jobs().subscribe(), job: require_job(&state, id).await? };
    let (sender, receiver) = mpsc::channel(EVENTS_AHEAD);
    let keep_alive = KeepAlive::new().interval(state.limits().event_keep_alive);
    tokio::spawn(async move {
        let mut stopping = state.stopping();
        tokio::select! {
            () = listener.send_to(&state, &sender) => {}
            () = sender.closed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(keep_alive).into_response())
}

/// Follows one job.
struct Listener {
    events: tokio::sync::broadcast::Receiver<JobEvent>,
    job: Job,
}

impl Listener {
    async fn send_to(mut self, state: &AppState, sender: &mpsc::Sender<Result<Event, Infallible>>) {
        loop {
            let is_final = self.job.state.is_final();
            let name = if is_final { "done" } else { "progress" };
            let Ok(event) = Event::default().event(name).json_data(JobBody::from(self.job.clone())) else { return };
            if sender.send(Ok(event)).await.is_err() || is_final {
                return;
            }
            loop {
                match self.advance(state).await {
                    Step::Nothing => {}
                    Step::Changed => break,
                    Step::Gone => return,
                }
            }
        }
    }

    /// Waits for the next event.
    async fn advance(&mut self, state: &AppState) -> Step {
        let event = tokio::select! {
            event = self.events.recv() => Some(event),
            () = tokio::time::sleep(RELOAD_INTERVAL) => None,
        };
        match event {
            Some(Ok(event)) if event.job() != self.job.id => Step::Nothing,
            Some(Ok(JobEvent::Progress(_, progress))) => {
                self.job.progress = Some(progress);
                Step::Changed
            }
            Some(Ok(JobEvent::Changed(_)) | Err(RecvError::Lagged(_))) | None => self.reload(state).await,
            Some(Err(RecvError::Closed)) => {
                // The queue has ended; what is stored is the last word.
                tokio::time::sleep(RELOAD_INTERVAL).await;
                self.reload(state).await
            }
        }
    }

    async fn reload(&mut self, state: &AppState) -> Step {
        match state.store().load_job(self.job.id).await {
            Ok(Some(job)) if job != self.job => {
                self.job = job;
                Step::Changed
            }
            Ok(None) => Step::Gone,
            Ok(Some(_)) | Err(_) => Step::Nothing,
        }
    }
}

/// What became of a job that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing that is known.
    Nothing,
    /// It changed.
    Changed,
    /// It was deleted, with its system.
    Gone,
}
