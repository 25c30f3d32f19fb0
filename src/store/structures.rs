//! Structures extracted from traces.

use sqlx::FromRow;

use super::{Page, PageRequest, Store, StoreError, StructureId, SystemId, Timestamp, TraceId, database::decode};
use crate::structure::Extraction;

/// A structure without what was extracted.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StructureHeader {
    /// Its id.
    pub id: StructureId,
    /// The system it is of.
    pub system_id: SystemId,
    /// The trace it was extracted from.
    pub trace_id: TraceId,
    /// When it was stored.
    #[sqlx(rename = "created_at_ms")]
    pub created_at: Timestamp,
}

/// A structure with what was extracted.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Which one.
    pub header: StructureHeader,
    /// What was extracted.
    pub extraction: Extraction,
}

#[derive(FromRow)]
struct StructureRow {
    #[sqlx(flatten)]
    header: StructureHeader,
    extraction: String,
}

impl Store {
    /// The structure of that id.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read back.
    pub async fn load_structure(&self, id: StructureId) -> Result<Option<Structure>, StoreError> {
        let row: Option<StructureRow> =
            sqlx::query_as("SELECT id, system_id, trace_id, created_at_ms, extraction FROM structures WHERE id = ?")
                .bind(id)
                .fetch_optional(self.read())
                .await?;
        row.map(|row| {
            let extraction = decode(&row.extraction, || format!("structure {id}"))?;
            Ok(Structure { header: row.header, extraction })
        })
        .transpose()
    }

    /// The structures of a system, in order of creation.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_structures(&self, system: SystemId, page: PageRequest<StructureId>) -> Result<Page<StructureHeader>, StoreError> {
        let sql = "SELECT id, system_id, trace_id, created_at_ms FROM structures
             WHERE system_id = ?1 AND (?2 IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
        self.page_of_system(sql, system, page).await
    }
}
