//! Versions of a system's model.

use sqlx::FromRow;

use super::{ModelId, Page, PageRequest, Store, StoreError, StructureId, SystemId, Timestamp, content_hash, database::decode};
use crate::model::Model;

/// What a client sent for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "lowercase")]
pub enum ModelSource {
    /// XML of the LQN tools.
    Lqnx,
    /// Text grammar of the LQN tools.
    Lqn,
    /// The project's JSON.
    Json,
    /// A structure, and what is set in its model.
    Structure,
}

/// A model to be stored.
#[derive(Clone, Debug)]
pub struct NewModel<'a> {
    /// The system it is of.
    pub system: SystemId,
    /// What the client sent.
    pub source: ModelSource,
    /// The text that the client sent.
    pub content: &'a str,
    /// The structure that it is derived from: present exactly under [`ModelSource::Structure`].
    pub structure: Option<StructureId>,
    /// The model, validated.
    pub model: &'a Model,
}

/// A model version without the model.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ModelHeader {
    /// Its id.
    pub id: ModelId,
    /// The system it is of.
    pub system_id: SystemId,
    /// 1, 2, 3 … within the system.
    pub version: i64,
    /// What the client sent.
    pub source: ModelSource,
    /// The structure that it is derived from.
    pub structure_id: Option<StructureId>,
    /// Hex SHA-256 of what the client sent.
    pub sha256: String,
    /// When it was stored.
    #[sqlx(rename = "created_at_ms")]
    pub created_at: Timestamp,
}

/// A model version with the model.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredModel {
    /// Which one.
    pub header: ModelHeader,
    /// The model.
    pub model: Model,
}

#[derive(FromRow)]
struct ModelRow {
    #[sqlx(flatten)]
    header: ModelHeader,
    model: String,
}

impl Store {
    /// Adds the next version of a system's model.
    ///
    /// # Errors
    /// [`StoreError::MissingReference`] when there is no such system or structure.
    pub async fn insert_model(&self, new: NewModel<'_>) -> Result<ModelHeader, StoreError> {
        // A statement that returns rows gives them before it is committed: what fails after that would be lost without a transaction.
        let mut transaction = self.begin().await?;
        let header = sqlx::query_as(
            "INSERT INTO models (id, system_id, version, source, content, structure_id, model, sha256, created_at_ms)
             VALUES (?1, ?2, (SELECT coalesce(max(version), 0) + 1 FROM models WHERE system_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8)
             RETURNING id, system_id, version, source, structure_id, sha256, created_at_ms",
        )
        .bind(ModelId::generate())
        .bind(new.system)
        .bind(new.source)
        .bind(new.content)
        .bind(new.structure)
        .bind(serde_json::to_string(new.model)?)
        .bind(content_hash(new.content.as_bytes()))
        .bind(Timestamp::now())
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(header)
    }

    /// The model version of that id.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read back.
    pub async fn load_model(&self, id: ModelId) -> Result<Option<StoredModel>, StoreError> {
        let row: Option<ModelRow> =
            sqlx::query_as("SELECT id, system_id, version, source, structure_id, sha256, created_at_ms, model FROM models WHERE id = ?")
                .bind(id)
                .fetch_optional(self.read())
                .await?;
        row.map(|row| Ok(StoredModel { header: row.header, model: decode(&row.model, || format!("model {id}"))? })).transpose()
    }

    /// The model versions of a system, in order of creation.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_models(&self, system: SystemId, page: PageRequest<ModelId>) -> Result<Page<ModelHeader>, StoreError> {
        let sql = "SELECT id, system_id, version, source, structure_id, sha256, created_at_ms FROM models
             WHERE system_id = ?1 AND (?2 IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
        self.page_of_system(sql, system, page).await
    }
}
