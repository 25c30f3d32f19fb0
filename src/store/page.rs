//! Keyset pages: a list is walked by the id of the last item seen, so that pages stay right while items are added.

use sqlx::{Encode, FromRow, Sqlite, Type, sqlite::SqliteRow};

use super::{Store, StoreError, SystemId};

/// Which part of a list is wanted: at most `limit` items whose id is greater than `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest<Id> {
    /// The last item already seen; `None` for the start of the list.
    pub after: Option<Id>,
    /// Largest number of items, ≥ 1.
    pub limit: u32,
}

/// A part of a list, in order of creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there are more after them.
    pub has_more: bool,
}

impl<Id> PageRequest<Id> {
    /// Rows to fetch: one more than asked, which tells whether there are more.
    pub(super) fn fetch_limit(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The page of the rows fetched with [`Self::fetch_limit`].
    pub(super) fn page<T>(&self, mut rows: Vec<T>) -> Page<T> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Page { items: rows, has_more }
    }
}

impl Store {
    /// The page of the rows that `sql` finds: those of the system `?1`, after the id `?2`, at most `?3` of them.
    ///
    /// # Errors
    /// What the database says.
    pub(super) async fn page_of_system<Row, Id>(
        &self,
        sql: &'static str,
        system: SystemId,
        page: PageRequest<Id>,
    ) -> Result<Page<Row>, StoreError>
    where
        Row: for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
        Id: for<'q> Encode<'q, Sqlite> + Type<Sqlite> + Copy + Send + 'static,
    {
        let rows = sqlx::query_as(sql).bind(system).bind(page.after).bind(page.fetch_limit()).fetch_all(self.read()).await?;
        Ok(page.page(rows))
    }
}
