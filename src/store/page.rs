//! Keyset pages: a list is walked by the id of the last item seen, so that pages stay right while items are added.

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
