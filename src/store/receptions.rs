//! What was received as a stream of spans: structures without the spans.
//!
//! A reception is stored as a trace whose bytes were not kept (an empty content, the number and hash of what was received
//! since the last one), with the structure that all spans received so far give. The latest few are kept, and those that a
//! model was derived from.

use sqlx::FromRow;

use super::{
    Store, StoreError, StructureId, SystemId, Timestamp, TraceId, jobs,
    systems::{self, System},
};
use crate::structure::{ExtractOptions, Extraction};

/// A structure to be stored with what it was received from.
#[derive(Clone, Debug)]
pub struct NewReception<'a> {
    /// The system it is of.
    pub system: SystemId,
    /// How the structure was extracted.
    pub options: &'a ExtractOptions,
    /// Bytes received since the last reception was stored, > 0.
    pub received_bytes: i64,
    /// Hex SHA-256 of them.
    pub sha256: String,
    /// What all spans so far give.
    pub extraction: &'a Extraction,
}

#[derive(FromRow)]
struct Old {
    structure: StructureId,
    trace: TraceId,
}

impl Store {
    /// The oldest system called `name`; a new one where there is none, and only one however many ask at a time.
    ///
    /// # Errors
    /// What the database says.
    pub async fn system_called(&self, name: &str) -> Result<System, StoreError> {
        let mut transaction = self.begin().await?;
        let known: Option<System> = sqlx::query_as("SELECT id, name, created_at_ms FROM systems WHERE name = ? ORDER BY id LIMIT 1")
            .bind(name)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(system) = known {
            transaction.rollback().await?;
            return Ok(system);
        }
        let system = systems::insert(&mut transaction, name).await?;
        transaction.commit().await?;
        Ok(system)
    }

    /// Adds the structure of a reception, and drops all but the latest `n_kept` of the system that no model was derived
    /// from.
    ///
    /// # Errors
    /// [`StoreError::MissingReference`] when there is no such system.
    pub async fn insert_reception(&self, new: NewReception<'_>, n_kept: u32) -> Result<StructureId, StoreError> {
        let (trace, now) = (TraceId::generate(), Timestamp::now());
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO traces (id, system_id, format, options, content_gzip, content_bytes, sha256, created_at_ms)
             VALUES (?, ?, 'otlp', ?, ?, ?, ?, ?)",
        )
        .bind(trace)
        .bind(new.system)
        .bind(serde_json::to_string(new.options)?)
        .bind([].as_slice())
        .bind(new.received_bytes)
        .bind(&new.sha256)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        let job = jobs::insert(&mut transaction, new.system, jobs::Subject::Extraction(trace)).await?;
        sqlx::query("UPDATE jobs SET state = 'succeeded', attempts = 1, started_at_ms = ?1, finished_at_ms = ?1 WHERE id = ?2")
            .bind(now)
            .bind(job)
            .execute(&mut *transaction)
            .await?;
        let structure = jobs::insert_structure(&mut transaction, new.system, trace, new.extraction).await?;
        let old: Vec<Old> = sqlx::query_as(
            "SELECT s.id AS structure, t.id AS trace FROM structures s JOIN traces t ON t.id = s.trace_id
             WHERE s.system_id = ? AND length(t.content_gzip) = 0
               AND NOT EXISTS (SELECT 1 FROM models m WHERE m.structure_id = s.id)
             ORDER BY s.id DESC LIMIT -1 OFFSET ?",
        )
        .bind(new.system)
        .bind(n_kept)
        .fetch_all(&mut *transaction)
        .await?;
        for Old { structure, trace } in old {
            sqlx::query("DELETE FROM structures WHERE id = ?").bind(structure).execute(&mut *transaction).await?;
            sqlx::query("DELETE FROM jobs WHERE trace_id = ?").bind(trace).execute(&mut *transaction).await?;
            sqlx::query("DELETE FROM traces WHERE id = ?").bind(trace).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(structure)
    }
}
