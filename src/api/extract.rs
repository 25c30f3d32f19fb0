//! Path and query of a request, with this service's errors.

use axum::{
    extract::{FromRequestParts, Path, Query, rejection::QueryRejection},
    http::request::Parts,
};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::IntoParams;

use super::{AppState, Code, Error, error::chain};
use crate::store::{FitId, JobId, ModelId, Page, PageRequest, StructureId, SystemId, TraceId, TrialsId};

/// An id in a path: what it is the id of, in words.
pub(super) trait PathId: std::str::FromStr + Send {
    /// `system`, `trace` …
    const WHAT: &'static str;
}

macro_rules! path_ids {
    ($($id:ty = $what:literal),*) => {$(
        impl PathId for $id {
            const WHAT: &'static str = $what;
        }
    )*};
}
path_ids!(
    SystemId = "system",
    TraceId = "trace",
    StructureId = "structure",
    ModelId = "model",
    TrialsId = "set of trials",
    FitId = "fit",
    JobId = "job"
);

/// The id in a path with one parameter; a text that is no id is the id of nothing.
pub(super) struct Id<T>(pub(super) T);

impl<T: PathId> FromRequestParts<AppState> for Id<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let Path(text): Path<String> =
            Path::from_request_parts(parts, state).await.map_err(|_| Error::new(Code::NotFound, "the path is not UTF-8 text"))?;
        text.parse().map(Self).map_err(|_| Error::not_found(T::WHAT, &text))
    }
}

/// The error of a parameter that is given twice.
pub(super) fn twice(name: &str) -> Error {
    Error::new(Code::InvalidQuery, format!("{name} is given twice"))
}

/// The query of a request; what is read into a structure has every parameter at most once.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Params<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let Query(params) = Query::from_request_parts(parts, state)
            .await
            .map_err(|rejection: QueryRejection| Error::new(Code::InvalidQuery, chain(&rejection)))?;
        Ok(Self(params))
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParams {
    /// Most items wanted.
    #[param(minimum = 1, maximum = 500, default = 50)]
    pub limit: Option<u32>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

/// Checks a page's bounds.
///
/// # Errors
/// [`Code::InvalidQuery`] for a limit out of range or an `after` that is no id.
pub(super) fn page_request<Id: std::str::FromStr>(
    state: &AppState,
    limit: Option<u32>,
    after: Option<&str>,
) -> Result<PageRequest<Id>, Error> {
    let limit = limit.unwrap_or(state.limits().page_default);
    let largest = state.limits().page_max;
    if !(1..=largest).contains(&limit) {
        return Err(Error::new(Code::InvalidQuery, format!("limit={limit}: expected 1 to {largest}")));
    }
    let after = after
        .map(|text| text.parse().map_err(|_| Error::new(Code::InvalidQuery, format!("after={text}: expected the next of a page"))))
        .transpose()?;
    Ok(PageRequest { after, limit })
}

/// A page as it leaves.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(super) struct PageBody<T> {
    /// The items, in order of creation.
    pub items: Vec<T>,
    /// What to pass as `after` for the page that follows; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> PageBody<T> {
    /// The page with its rows turned into what leaves; `id` tells an item's id.
    pub(super) fn from_page<R, I: std::fmt::Display>(page: Page<R>, id: impl Fn(&R) -> I, body: impl Fn(R) -> T) -> Self {
        let next = page.has_more.then(|| page.items.last().map(|row| id(row).to_string())).flatten();
        Self { items: page.items.into_iter().map(body).collect(), next }
    }
}
