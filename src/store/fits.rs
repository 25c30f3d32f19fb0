//! Fits: which model, which trials, which options, and the report once it has come.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use super::{FitId, JobId, ModelId, Page, PageRequest, Store, StoreError, SystemId, Timestamp, TrialsId, database::decode, jobs};
use crate::{
    fit::{
        Trials,
        problem::{Estimated, Method, Problem, Weighting},
        report::Fit as Report,
    },
    model::{Bindings, Model},
};

/// What is asked of a fit beside model and trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Parameters to be estimated; at least one.
    pub estimate: Vec<Estimated>,
    /// Known constants by parameter name.
    pub assumed: Bindings,
    /// How residuals are weighed.
    pub weighting: Weighting,
    /// Level of intervals and tests, in (0, 1).
    pub confidence: f64,
    /// What else is asked: loss, starts, profiles, resampling.
    #[serde(default, skip_serializing_if = "Method::is_default")]
    pub method: Method,
}

impl Options {
    /// The problem that they make of a model and trials.
    pub fn problem(self, model: Model, trials: Trials) -> Problem {
        let Self { estimate, assumed, weighting, confidence, method } = self;
        Problem { model, trials, estimate, assumed, weighting, confidence, method }
    }
}

/// A fit to be stored.
#[derive(Clone, Debug)]
pub struct NewFit<'a> {
    /// The system it is of.
    pub system: SystemId,
    /// The model version that is fitted.
    pub model: ModelId,
    /// The version of the trials that it is fitted to.
    pub trials: TrialsId,
    /// What else was asked.
    pub options: &'a Options,
}

/// A fit without its report.
#[derive(Clone, Debug, PartialEq)]
pub struct FitHeader {
    /// Its id.
    pub id: FitId,
    /// The system it is of.
    pub system_id: SystemId,
    /// The model version that is fitted.
    pub model_id: ModelId,
    /// The version of the trials that it is fitted to.
    pub trials_id: TrialsId,
    /// What else was asked.
    pub options: Options,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// The job that does it.
    pub job_id: JobId,
    /// That job's state.
    pub state: jobs::State,
    /// Why it failed.
    pub failure: Option<jobs::Failure>,
}

/// A fit with its report.
#[derive(Clone, Debug)]
pub struct StoredFit {
    /// Which one.
    pub header: FitHeader,
    /// The report; `None` until the job has succeeded. Its members are kept in the order of the report.
    pub report: Option<IndexMap<String, serde_json::Value>>,
}

#[derive(FromRow)]
struct FitRow {
    id: FitId,
    system_id: SystemId,
    model_id: ModelId,
    trials_id: TrialsId,
    options: String,
    created_at_ms: Timestamp,
    job_id: JobId,
    state: jobs::State,
    error_code: Option<String>,
    error_message: Option<String>,
}

#[derive(FromRow)]
struct FitRowWithReport {
    #[sqlx(flatten)]
    row: FitRow,
    report: Option<String>,
}

impl FitRow {
    fn into_header(self) -> Result<FitHeader, StoreError> {
        Ok(FitHeader {
            options: decode(&self.options, || format!("options of fit {}", self.id))?,
            id: self.id,
            system_id: self.system_id,
            model_id: self.model_id,
            trials_id: self.trials_id,
            created_at: self.created_at_ms,
            job_id: self.job_id,
            state: self.state,
            failure: jobs::Failure::from_columns(self.error_code, self.error_message),
        })
    }
}

macro_rules! select_fit {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT f.id, f.system_id, f.model_id, f.trials_id, f.options, f.created_at_ms,
                    j.id AS job_id, j.state, j.error_code, j.error_message",
            $more,
            " FROM fits f JOIN jobs j ON j.fit_id = f.id ",
            $rest
        )
    };
}

impl Store {
    /// Adds a fit and queues the job that does it.
    ///
    /// # Errors
    /// [`StoreError::MissingReference`] when there is no such system, model or trials.
    pub async fn insert_fit(&self, new: NewFit<'_>) -> Result<FitHeader, StoreError> {
        let (id, created_at) = (FitId::generate(), Timestamp::now());
        let mut transaction = self.begin().await?;
        sqlx::query("INSERT INTO fits (id, system_id, model_id, trials_id, options, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)")
            .bind(id)
            .bind(new.system)
            .bind(new.model)
            .bind(new.trials)
            .bind(serde_json::to_string(new.options)?)
            .bind(created_at)
            .execute(&mut *transaction)
            .await?;
        let job_id = jobs::insert(&mut transaction, new.system, jobs::Subject::Fit(id)).await?;
        transaction.commit().await?;
        Ok(FitHeader {
            id,
            system_id: new.system,
            model_id: new.model,
            trials_id: new.trials,
            options: new.options.clone(),
            created_at,
            job_id,
            state: jobs::State::Queued,
            failure: None,
        })
    }

    /// The fit of that id, its report as the JSON that it is.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read back.
    pub async fn load_fit(&self, id: FitId) -> Result<Option<StoredFit>, StoreError> {
        let row: Option<FitRowWithReport> =
            sqlx::query_as(select_fit!(", f.report", "WHERE f.id = ?")).bind(id).fetch_optional(self.read()).await?;
        row.map(|FitRowWithReport { row, report }| {
            let report = report.map(|text| decode(&text, || format!("report of fit {id}"))).transpose()?;
            Ok(StoredFit { header: row.into_header()?, report })
        })
        .transpose()
    }

    /// The report of a fit for computing with; the inner `None` until the fit has succeeded.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read back.
    pub async fn load_report(&self, id: FitId) -> Result<Option<(jobs::State, Option<Report>)>, StoreError> {
        let row: Option<(jobs::State, Option<String>)> =
            sqlx::query_as("SELECT j.state, f.report FROM fits f JOIN jobs j ON j.fit_id = f.id WHERE f.id = ?")
                .bind(id)
                .fetch_optional(self.read())
                .await?;
        row.map(|(state, report)| Ok((state, report.map(|text| decode(&text, || format!("report of fit {id}"))).transpose()?))).transpose()
    }

    /// The fits of a system, in order of creation; with `model`, those of that model version.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when one cannot be read back.
    pub async fn list_fits(
        &self,
        system: SystemId,
        model: Option<ModelId>,
        page: PageRequest<FitId>,
    ) -> Result<Page<FitHeader>, StoreError> {
        let rows: Vec<FitRow> = sqlx::query_as(select_fit!(
            "",
            "WHERE f.system_id = ?1 AND (?2 IS NULL OR f.model_id = ?2) AND (?3 IS NULL OR f.id > ?3) ORDER BY f.id LIMIT ?4"
        ))
        .bind(system)
        .bind(model)
        .bind(page.after)
        .bind(page.fetch_limit())
        .fetch_all(self.read())
        .await?;
        Ok(page.page(rows.into_iter().map(FitRow::into_header).collect::<Result<_, _>>()?))
    }
}
