//! Comparisons of nested fits, computed when asked.

use axum::{Json, body::Body, extract::State, http::HeaderMap, response::IntoResponse};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AppState, Code, Error,
    body::read_json,
    error::{WriteProblems, chain},
    predictions::require_report,
};
use crate::{
    fit::{self, report::Fit},
    store::FitId,
};

/// Two fits to be compared.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewComparison {
    /// Two fits of nested models to the same trials, in any order.
    #[schema(value_type = Vec<String>, min_items = 2, max_items = 2)]
    fits: Vec<String>,
}

/// Compares two fits of nested models by the extra-sum-of-squares F-test, as `layerfit compare --format json` prints it.
#[utoipa::path(post, path = "/v1/comparisons", tag = "fits", request_body = NewComparison,
    responses((status = OK, description = "The comparison", body = Object), WriteProblems))]
pub(super) async fn compare_fits(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<impl IntoResponse, Error> {
    let asked: NewComparison = read_json(&headers, body, &state).await?;
    let [first, second] = asked.fits.as_slice() else {
        return Err(Error::new(Code::InvalidBody, format!("fits: expected two fits, not {}", asked.fits.len())));
    };
    let (first, second) = (referenced(&state, first).await?, referenced(&state, second).await?);
    let comparison =
        state.compute(move || fit::compare(&first, &second).map_err(|error| Error::new(Code::NotComparable, chain(&error)))).await?;
    Ok(Json(comparison))
}

/// The report of a fit that a body names.
pub(super) async fn referenced(state: &AppState, id: &str) -> Result<Fit, Error> {
    let unknown = || Error::new(Code::UnknownReference, format!("fits: there is no fit {id}"));
    let id: FitId = id.parse().map_err(|_| unknown())?;
    require_report(state, id).await.map_err(|error| if error.code() == Code::NotFound { unknown() } else { error })
}
