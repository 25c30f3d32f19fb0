//! Versions of a system's trials.

use sqlx::FromRow;

use super::{Page, PageRequest, Store, StoreError, SystemId, Timestamp, TrialsId, content_hash, database::decode};
use crate::fit::trials::Trials;

/// What a client sent for a set of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "lowercase")]
pub enum TrialsSource {
    /// CSV, one row a trial.
    Csv,
    /// JSON.
    Json,
}

/// Trials to be stored.
#[derive(Clone, Debug)]
pub struct NewTrials<'a> {
    /// The system they are of.
    pub system: SystemId,
    /// What the client sent.
    pub source: TrialsSource,
    /// The text that the client sent.
    pub content: &'a str,
    /// The trials; at least one.
    pub trials: &'a Trials,
}

/// A version of the trials without the trials.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct TrialsHeader {
    /// Its id.
    pub id: TrialsId,
    /// The system they are of.
    pub system_id: SystemId,
    /// 1, 2, 3 … within the system.
    pub version: i64,
    /// What the client sent.
    pub source: TrialsSource,
    /// Number of operating points.
    pub n_trials: i64,
    /// Hex SHA-256 of what the client sent.
    pub sha256: String,
    /// When they were stored.
    #[sqlx(rename = "created_at_ms")]
    pub created_at: Timestamp,
}

/// A version of the trials with the trials.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrials {
    /// Which one.
    pub header: TrialsHeader,
    /// The trials.
    pub trials: Trials,
}

#[derive(FromRow)]
struct TrialsRow {
    #[sqlx(flatten)]
    header: TrialsHeader,
    trials: String,
}

impl Store {
    /// Adds the next version of a system's trials.
    ///
    /// # Errors
    /// [`StoreError::MissingReference`] when there is no such system.
    pub async fn insert_trials(&self, new: NewTrials<'_>) -> Result<TrialsHeader, StoreError> {
        // A statement that returns rows gives them before it is committed: what fails after that would be lost without a transaction.
        let mut transaction = self.begin().await?;
        let header = sqlx::query_as(
            "INSERT INTO trials (id, system_id, version, source, content, trials, n_trials, sha256, created_at_ms)
             VALUES (?1, ?2, (SELECT coalesce(max(version), 0) + 1 FROM trials WHERE system_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8)
             RETURNING id, system_id, version, source, n_trials, sha256, created_at_ms",
        )
        .bind(TrialsId::generate())
        .bind(new.system)
        .bind(new.source)
        .bind(new.content)
        .bind(serde_json::to_string(new.trials)?)
        .bind(i64::try_from(new.trials.trials.len()).unwrap_or(i64::MAX))
        .bind(content_hash(new.content.as_bytes()))
        .bind(Timestamp::now())
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(header)
    }

    /// The version of the trials of that id.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read back.
    pub async fn load_trials(&self, id: TrialsId) -> Result<Option<StoredTrials>, StoreError> {
        let row: Option<TrialsRow> =
            sqlx::query_as("SELECT id, system_id, version, source, n_trials, sha256, created_at_ms, trials FROM trials WHERE id = ?")
                .bind(id)
                .fetch_optional(self.read())
                .await?;
        row.map(|row| Ok(StoredTrials { header: row.header, trials: decode(&row.trials, || format!("trials {id}"))? })).transpose()
    }

    /// The versions of a system's trials, in order of creation.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_trials(&self, system: SystemId, page: PageRequest<TrialsId>) -> Result<Page<TrialsHeader>, StoreError> {
        let sql = "SELECT id, system_id, version, source, n_trials, sha256, created_at_ms FROM trials
             WHERE system_id = ?1 AND (?2 IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
        self.page_of_system(sql, system, page).await
    }
}
