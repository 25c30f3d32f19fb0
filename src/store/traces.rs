//! Uploaded traces.

use std::io::{Read, Write};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sqlx::FromRow;

use super::{JobId, Page, PageRequest, Store, StoreError, StructureId, SystemId, Timestamp, TraceId, database::decode, jobs};
use crate::structure::ExtractOptions;

/// A trace to be stored.
#[derive(Clone, Debug)]
pub struct NewTrace<'a> {
    /// The system it is of.
    pub system: SystemId,
    /// Wire format by its public name.
    pub format: &'a str,
    /// How the structure is extracted.
    pub options: &'a ExtractOptions,
    /// The bytes as [`compress`] makes them.
    pub content: &'a Compressed,
}

/// A trace without its bytes, with what became of it.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its id.
    pub id: TraceId,
    /// The system it is of.
    pub system_id: SystemId,
    /// Wire format by its public name.
    pub format: String,
    /// How the structure is extracted.
    pub options: ExtractOptions,
    /// Size before compression, bytes.
    pub content_bytes: i64,
    /// Hex SHA-256 of the bytes.
    pub sha256: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// The job that extracts from it.
    pub job_id: JobId,
    /// That job's state.
    pub state: jobs::State,
    /// Why it failed.
    pub failure: Option<jobs::Failure>,
    /// What was extracted; `None` until the job has succeeded.
    pub structure_id: Option<StructureId>,
}

#[derive(FromRow)]
struct TraceRow {
    id: TraceId,
    system_id: SystemId,
    format: String,
    options: String,
    content_bytes: i64,
    sha256: String,
    created_at_ms: Timestamp,
    job_id: JobId,
    state: jobs::State,
    error_code: Option<String>,
    error_message: Option<String>,
    structure_id: Option<StructureId>,
}

impl TryFrom<TraceRow> for Trace {
    type Error = StoreError;

    fn try_from(row: TraceRow) -> Result<Self, StoreError> {
        Ok(Self {
            options: decode(&row.options, || format!("options of trace {}", row.id))?,
            id: row.id,
            system_id: row.system_id,
            format: row.format,
            content_bytes: row.content_bytes,
            sha256: row.sha256,
            created_at: row.created_at_ms,
            job_id: row.job_id,
            state: row.state,
            failure: jobs::Failure::from_columns(row.error_code, row.error_message),
            structure_id: row.structure_id,
        })
    }
}

/// A trace's bytes, compressed, with what is known of them.
#[derive(Clone, Debug)]
pub struct Compressed {
    gzip: Vec<u8>,
    content_bytes: i64,
    sha256: String,
}

/// Compresses a trace's bytes for storing. Takes CPU time in proportion to the size: not for the async threads.
///
/// # Errors
/// None that comes of the bytes.
pub fn compress(content: &[u8]) -> Result<Compressed, std::io::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content)?;
    let content_bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
    Ok(Compressed { gzip: encoder.finish()?, content_bytes, sha256: super::content_hash(content) })
}

/// The bytes of a trace as they were before [`compress`].
///
/// # Errors
/// [`StoreError::Corrupt`] when the stored bytes are damaged.
pub fn decompress(gzip: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut content).map_err(|e| StoreError::Corrupt { what: "trace content".into(), source: e.into() })?;
    Ok(content)
}

macro_rules! select_trace {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, t.system_id, t.format, t.options, t.content_bytes, t.sha256, t.created_at_ms,
                    j.id AS job_id, j.state, j.error_code, j.error_message, s.id AS structure_id
             FROM traces t JOIN jobs j ON j.trace_id = t.id LEFT JOIN structures s ON s.trace_id = t.id ",
            $rest
        )
    };
}

impl Store {
    /// Adds a trace and queues the job that extracts from it.
    ///
    /// # Errors
    /// [`StoreError::MissingReference`] when there is no such system.
    pub async fn insert_trace(&self, new: NewTrace<'_>) -> Result<Trace, StoreError> {
        let (id, created_at) = (TraceId::generate(), Timestamp::now());
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO traces (id, system_id, format, options, content_gzip, content_bytes, sha256, created_at_ms)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(new.system)
        .bind(new.format)
        .bind(serde_json::to_string(new.options)?)
        .bind(new.content.gzip.as_slice())
        .bind(new.content.content_bytes)
        .bind(&new.content.sha256)
        .bind(created_at)
        .execute(&mut *transaction)
        .await?;
        let job_id = jobs::insert(&mut transaction, new.system, jobs::Subject::Extraction(id)).await?;
        transaction.commit().await?;
        Ok(Trace {
            id,
            system_id: new.system,
            format: new.format.to_owned(),
            options: new.options.clone(),
            content_bytes: new.content.content_bytes,
            sha256: new.content.sha256.clone(),
            created_at,
            job_id,
            state: jobs::State::Queued,
            failure: None,
            structure_id: None,
        })
    }

    /// The trace of that id.
    ///
    /// # Errors
    /// What the database says.
    pub async fn load_trace(&self, id: TraceId) -> Result<Option<Trace>, StoreError> {
        let row: Option<TraceRow> = sqlx::query_as(select_trace!("WHERE t.id = ?")).bind(id).fetch_optional(self.read()).await?;
        row.map(Trace::try_from).transpose()
    }

    /// The compressed bytes of a trace, for [`decompress`].
    ///
    /// # Errors
    /// What the database says.
    pub async fn load_trace_gzip(&self, id: TraceId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(sqlx::query_scalar("SELECT content_gzip FROM traces WHERE id = ?").bind(id).fetch_optional(self.read()).await?)
    }

    /// The traces of a system, in order of creation.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_traces(&self, system: SystemId, page: PageRequest<TraceId>) -> Result<Page<Trace>, StoreError> {
        let rows: Vec<TraceRow> =
            sqlx::query_as(select_trace!("WHERE t.system_id = ?1 AND (?2 IS NULL OR t.id > ?2) ORDER BY t.id LIMIT ?3"))
                .bind(system)
                .bind(page.after)
                .bind(page.fetch_limit())
                .fetch_all(self.read())
                .await?;
        Ok(page.page(rows.into_iter().map(Trace::try_from).collect::<Result<_, _>>()?))
    }
}
