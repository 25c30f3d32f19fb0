//! Systems under study.

use sqlx::{FromRow, Sqlite, Transaction};

use super::{Page, PageRequest, Store, StoreError, SystemId, Timestamp};

/// A system under study: the folder that traces, models, trials and fits lie in.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct System {
    /// Its id.
    pub id: SystemId,
    /// Its name, 1 to 200 characters; not necessarily unique.
    pub name: String,
    /// When it was created.
    #[sqlx(rename = "created_at_ms")]
    pub created_at: Timestamp,
}

/// Adds a system within a transaction.
pub(super) async fn insert(transaction: &mut Transaction<'static, Sqlite>, name: &str) -> Result<System, StoreError> {
    let system = System { id: SystemId::generate(), name: name.to_owned(), created_at: Timestamp::now() };
    sqlx::query("INSERT INTO systems (id, name, created_at_ms) VALUES (?, ?, ?)")
        .bind(system.id)
        .bind(&system.name)
        .bind(system.created_at)
        .execute(&mut **transaction)
        .await?;
    Ok(system)
}

impl Store {
    /// Adds a system.
    ///
    /// # Errors
    /// What the database says.
    pub async fn insert_system(&self, name: &str) -> Result<System, StoreError> {
        let mut transaction = self.begin().await?;
        let system = insert(&mut transaction, name).await?;
        transaction.commit().await?;
        Ok(system)
    }

    /// The system of that id.
    ///
    /// # Errors
    /// What the database says.
    pub async fn load_system(&self, id: SystemId) -> Result<Option<System>, StoreError> {
        Ok(sqlx::query_as("SELECT id, name, created_at_ms FROM systems WHERE id = ?").bind(id).fetch_optional(self.read()).await?)
    }

    /// Systems in order of creation; with `name`, those of that name.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list_systems(&self, name: Option<&str>, page: PageRequest<SystemId>) -> Result<Page<System>, StoreError> {
        let rows = sqlx::query_as(
            "SELECT id, name, created_at_ms FROM systems
             WHERE (?1 IS NULL OR id > ?1) AND (?2 IS NULL OR name = ?2) ORDER BY id LIMIT ?3",
        )
        .bind(page.after)
        .bind(name)
        .bind(page.fetch_limit())
        .fetch_all(self.read())
        .await?;
        Ok(page.page(rows))
    }

    /// Deletes a system with everything in it; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::UnfinishedJobs`] while a job of the system is queued or running.
    pub async fn delete_system(&self, id: SystemId) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let n_unfinished: i64 = sqlx::query_scalar("SELECT count(*) FROM jobs WHERE system_id = ? AND state IN ('queued', 'running')")
            .bind(id)
            .fetch_one(&mut *transaction)
            .await?;
        if n_unfinished > 0 {
            return Err(StoreError::UnfinishedJobs);
        }
        let deleted = sqlx::query("DELETE FROM systems WHERE id = ?").bind(id).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(deleted.rows_affected() > 0)
    }
}
