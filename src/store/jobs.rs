//! The queue of work and its history. A job's state is changed by [`crate::jobs`] alone.

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Sqlite, Transaction};

use super::{FitId, JobId, Page, PageRequest, Store, StoreError, StructureId, SystemId, Timestamp, TraceId, database::decode};
use crate::{fit::report::Fit as Report, structure::Extraction};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(rename_all = "lowercase")]
pub enum State {
    /// Waits for a worker.
    Queued,
    /// A worker is at it.
    Running,
    /// Done; its result is stored.
    Succeeded,
    /// Ended without a result; it says why.
    Failed,
    /// Ended because a client asked for it.
    Cancelled,
}

impl State {
    /// Every state, in the order a job goes through them.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Whether nothing more will happen to the job.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Extracting a structure from a trace.
    Extraction(TraceId),
    /// Doing a fit.
    Fit(FitId),
}

impl Subject {
    /// What kind of job it makes, as clients see it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Extraction(_) => "extraction",
            Self::Fit(_) => "fit",
        }
    }
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Round of weighting, from 0.
    pub round: usize,
    /// Steps tried in this round.
    pub iteration: usize,
    /// Smallest weighted sum of squared residuals of the round so far; `None` where it is not finite yet.
    pub sum_of_squares: Option<f64>,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable code: `extraction_failed`, `fit_failed`, `crashed`, `internal`.
    pub code: String,
    /// For a person.
    pub message: String,
}

/// What became of jobs that were running when the service ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Those that are queued again.
    pub n_requeued: u64,
    /// Those that have failed, as the service ended too often while they ran.
    pub given_up: Vec<JobId>,
}

impl Failure {
    pub(super) fn from_columns(code: Option<String>, message: Option<String>) -> Option<Self> {
        code.map(|code| Self { code, message: message.unwrap_or_default() })
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The system it is of.
    pub system_id: SystemId,
    /// What it works on.
    pub subject: Subject,
    /// Where it stands.
    pub state: State,
    /// How often the work was started.
    pub attempts: i64,
    /// Whether a client has asked for it to be cancelled.
    pub cancel_requested: bool,
    /// How far it has come.
    pub progress: Option<Progress>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The structure that it extracted.
    pub structure_id: Option<StructureId>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// Which jobs of a list are wanted; `None` is no restriction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Those of this system.
    pub system: Option<SystemId>,
    /// Those in this state.
    pub state: Option<State>,
}

/// How a job ended.
#[derive(Debug)]
pub enum Ending {
    /// A structure was extracted.
    Extracted(TraceId, Box<Extraction>),
    /// A fit was done.
    Fitted(FitId, Box<Report>),
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

#[derive(FromRow)]
struct JobRow {
    id: JobId,
    system_id: SystemId,
    trace_id: Option<TraceId>,
    fit_id: Option<FitId>,
    state: State,
    attempts: i64,
    cancel_requested: bool,
    progress: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    structure_id: Option<StructureId>,
    created_at_ms: Timestamp,
    started_at_ms: Option<Timestamp>,
    finished_at_ms: Option<Timestamp>,
}

impl TryFrom<JobRow> for Job {
    type Error = StoreError;

    fn try_from(row: JobRow) -> Result<Self, StoreError> {
        let subject = match (row.trace_id, row.fit_id) {
            (Some(trace), None) => Subject::Extraction(trace),
            (None, Some(fit)) => Subject::Fit(fit),
            _ => return Err(StoreError::Corrupt { what: format!("job {}", row.id), source: "it names no single subject".into() }),
        };
        Ok(Self {
            progress: row.progress.map(|text| decode(&text, || format!("progress of job {}", row.id))).transpose()?,
            id: row.id,
            system_id: row.system_id,
            subject,
            state: row.state,
            attempts: row.attempts,
            cancel_requested: row.cancel_requested,
            failure: Failure::from_columns(row.error_code, row.error_message),
            structure_id: row.structure_id,
            created_at: row.created_at_ms,
            started_at: row.started_at_ms,
            finished_at: row.finished_at_ms,
        })
    }
}

macro_rules! select_job {
    ($rest:literal) => {
        concat!(
            "SELECT j.id, j.system_id, j.trace_id, j.fit_id, j.state, j.attempts, j.cancel_requested, j.progress,
                    j.error_code, j.error_message, j.created_at_ms, j.started_at_ms, j.finished_at_ms, s.id AS structure_id
             FROM jobs j LEFT JOIN structures s ON s.trace_id = j.trace_id ",
            $rest
        )
    };
}

/// Queues a job within the transaction that stores its subject.
pub(super) async fn insert(
    transaction: &mut Transaction<'static, Sqlite>,
    system: SystemId,
    subject: Subject,
) -> Result<JobId, StoreError> {
    let id = JobId::generate();
    let (trace, fit) = match subject {
        Subject::Extraction(trace) => (Some(trace), None),
        Subject::Fit(fit) => (None, Some(fit)),
    };
    sqlx::query("INSERT INTO jobs (id, system_id, trace_id, fit_id, created_at_ms) VALUES (?, ?, ?, ?, ?)")
        .bind(id)
        .bind(system)
        .bind(trace)
        .bind(fit)
        .bind(Timestamp::now())
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}

impl Store {
    /// The job of that id.
    ///
    /// # Errors
    /// What the database says.
    pub async fn load_job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let row: Option<JobRow> = sqlx::query_as(select_job!("WHERE j.id = ?")).bind(id).fetch_optional(self.read()).await?;
        row.map(Job::try_from).transpose()
    }

    /// Jobs in order of creation.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_jobs(&self, filter: JobFilter, page: PageRequest<JobId>) -> Result<Page<Job>, StoreError> {
        let rows: Vec<JobRow> = sqlx::query_as(select_job!(
            "WHERE (?1 IS NULL OR j.system_id = ?1) AND (?2 IS NULL OR j.state = ?2) AND (?3 IS NULL OR j.id > ?3)
             ORDER BY j.id LIMIT ?4"
        ))
        .bind(filter.system)
        .bind(filter.state)
        .bind(page.after)
        .bind(page.fetch_limit())
        .fetch_all(self.read())
        .await?;
        Ok(page.page(rows.into_iter().map(Job::try_from).collect::<Result<_, _>>()?))
    }

    /// How many jobs are in each state; a state without jobs is left out.
    ///
    /// # Errors
    /// What the database says.
    pub async fn count_jobs(&self) -> Result<Vec<(State, i64)>, StoreError> {
        Ok(sqlx::query_as("SELECT state, count(*) FROM jobs GROUP BY state").fetch_all(self.read()).await?)
    }

    /// Takes the job that has been queued longest and marks it as running.
    ///
    /// # Errors
    /// What the database says.
    pub async fn claim_job(&self) -> Result<Option<Job>, StoreError> {
        let mut transaction = self.begin().await?;
        let id: Option<JobId> = sqlx::query_scalar(
            "UPDATE jobs SET state = 'running', attempts = attempts + 1, started_at_ms = ?, progress = NULL
             WHERE id = (SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 1) RETURNING id",
        )
        .bind(Timestamp::now())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(id) = id else { return Ok(None) };
        let row: JobRow = sqlx::query_as(select_job!("WHERE j.id = ?")).bind(id).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        Job::try_from(row).map(Some)
    }

    /// Notes how far a running job has come.
    ///
    /// # Errors
    /// What the database says.
    pub async fn record_progress(&self, id: JobId, progress: &Progress) -> Result<(), StoreError> {
        sqlx::query("UPDATE jobs SET progress = ? WHERE id = ? AND state = 'running'")
            .bind(serde_json::to_string(progress)?)
            .bind(id)
            .execute(self.write())
            .await?;
        Ok(())
    }

    /// Ends a running job: its result, where it has one, and its new state are committed together. One that runs no more stays as it is.
    ///
    /// # Errors
    /// What the database says; then nothing has changed.
    pub async fn finish_job(&self, job: &Job, ending: &Ending) -> Result<(), StoreError> {
        let (state, failure) = match ending {
            Ending::Extracted(..) | Ending::Fitted(..) => (State::Succeeded, None),
            Ending::Failed(failure) => (State::Failed, Some(failure)),
            Ending::Cancelled => (State::Cancelled, None),
        };
        let mut transaction = self.begin().await?;
        let ended = sqlx::query(
            "UPDATE jobs SET state = ?, error_code = ?, error_message = ?, finished_at_ms = ? WHERE id = ? AND state = 'running'",
        )
        .bind(state)
        .bind(failure.map(|f| f.code.as_str()))
        .bind(failure.map(|f| f.message.as_str()))
        .bind(Timestamp::now())
        .bind(job.id)
        .execute(&mut *transaction)
        .await?;
        if ended.rows_affected() == 0 {
            return Ok(transaction.rollback().await?);
        }
        match ending {
            Ending::Extracted(trace, extraction) => {
                insert_structure(&mut transaction, job.system_id, *trace, extraction).await?;
            }
            Ending::Fitted(fit, report) => {
                sqlx::query("UPDATE fits SET report = ? WHERE id = ?")
                    .bind(serde_json::to_string(report)?)
                    .bind(fit)
                    .execute(&mut *transaction)
                    .await?;
            }
            Ending::Failed(_) | Ending::Cancelled => {}
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Puts a running job back into the queue because the service stops; the attempt does not count. One that is to be cancelled is.
    ///
    /// # Errors
    /// What the database says.
    pub async fn requeue_job(&self, id: JobId) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE jobs SET state = CASE cancel_requested WHEN 1 THEN 'cancelled' ELSE 'queued' END,
                 finished_at_ms = CASE cancel_requested WHEN 1 THEN ?1 END, attempts = attempts - 1
             WHERE id = ?2 AND state = 'running'",
        )
        .bind(Timestamp::now())
        .bind(id)
        .execute(self.write())
        .await?;
        Ok(())
    }

    /// Asks for a job to be cancelled: a queued one is cancelled at once, a running one when its worker next looks, a
    /// finished one not at all. The job as it then is, `None` when there is none of that id.
    ///
    /// # Errors
    /// What the database says.
    pub async fn request_cancel(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(
            "UPDATE jobs SET cancel_requested = 1,
                 finished_at_ms = CASE state WHEN 'queued' THEN ?1 END,
                 state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END
             WHERE id = ?2 AND state IN ('queued', 'running')",
        )
        .bind(Timestamp::now())
        .bind(id)
        .execute(&mut *transaction)
        .await?;
        let row: Option<JobRow> = sqlx::query_as(select_job!("WHERE j.id = ?")).bind(id).fetch_optional(&mut *transaction).await?;
        transaction.commit().await?;
        row.map(Job::try_from).transpose()
    }

    /// Sets right what a crash left: jobs that were running are queued again, cancelled where that was asked, or failed
    /// after `max_attempts` starts. To be called before any worker runs.
    ///
    /// # Errors
    /// What the database says.
    pub async fn recover_jobs(&self, max_attempts: u32) -> Result<Recovered, StoreError> {
        let mut transaction = self.begin().await?;
        let now = Timestamp::now();
        sqlx::query("UPDATE jobs SET state = 'cancelled', finished_at_ms = ? WHERE state = 'running' AND cancel_requested = 1")
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        let given_up = sqlx::query_scalar(
            "UPDATE jobs SET state = 'failed', finished_at_ms = ?, error_code = 'crashed',
                 error_message = 'the service ended ' || attempts || ' times while this job was running'
             WHERE state = 'running' AND attempts >= ? RETURNING id",
        )
        .bind(now)
        .bind(max_attempts)
        .fetch_all(&mut *transaction)
        .await?;
        let requeued = sqlx::query("UPDATE jobs SET state = 'queued' WHERE state = 'running'").execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Recovered { n_requeued: requeued.rows_affected(), given_up })
    }
}

/// Adds what was extracted from a trace.
pub(super) async fn insert_structure(
    transaction: &mut Transaction<'static, Sqlite>,
    system: SystemId,
    trace: TraceId,
    extraction: &Extraction,
) -> Result<StructureId, StoreError> {
    let id = StructureId::generate();
    sqlx::query("INSERT INTO structures (id, system_id, trace_id, extraction, created_at_ms) VALUES (?, ?, ?, ?, ?)")
        .bind(id)
        .bind(system)
        .bind(trace)
        .bind(serde_json::to_string(extraction)?)
        .bind(Timestamp::now())
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}
