//! Systems: the folder that everything of one system lies in.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState, Code, Error,
    body::read_json,
    error::{ReadProblems, WriteProblems},
    extract::{Id, PageBody, Params, page_request},
};
use crate::store::{SystemId, Timestamp, systems::System};

/// Longest name of a system, characters.
pub(super) const NAME_MAX: usize = 200;

/// The name of a system in `text`, blanks around it left out; an error in words where it is none.
pub(super) fn system_name(text: &str) -> Result<&str, String> {
    let name = text.trim();
    if name.is_empty() || name.chars().count() > NAME_MAX {
        return Err(format!("expected 1 to {NAME_MAX} characters"));
    }
    if name.contains(char::is_control) {
        return Err("control characters are not taken".to_owned());
    }
    Ok(name)
}

/// A system to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSystem {
    /// Its name; two systems may have the same.
    #[schema(min_length = 1, max_length = 200, example = "bookstore")]
    name: String,
}

/// A system.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: SystemId,
    /// Its name.
    name: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<System> for SystemBody {
    fn from(system: System) -> Self {
        Self { id: system.id, name: system.name, created_at: system.created_at }
    }
}

/// Which systems are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SystemsParams {
    /// Those of this name.
    name: Option<String>,
    /// Most items wanted.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Creates a system.
#[utoipa::path(post, path = "/v1/systems", tag = "systems", request_body = NewSystem,
    responses((status = CREATED, description = "The system, stored", body = SystemBody, headers(("location" = String))), WriteProblems))]
pub(super) async fn create_system(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<Response, Error> {
    let new: NewSystem = read_json(&headers, body, &state).await?;
    let name = system_name(&new.name).map_err(|reason| Error::new(Code::InvalidBody, format!("name: {reason}")))?;
    let system = state.store().insert_system(name).await?;
    let location = format!("/v1/systems/{}", system.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(SystemBody::from(system))).into_response())
}

/// Lists systems in order of creation.
#[utoipa::path(get, path = "/v1/systems", tag = "systems", params(SystemsParams),
    responses((status = OK, description = "A page of systems", body = PageBody<SystemBody>), ReadProblems))]
pub(super) async fn list_systems(
    State(state): State<AppState>,
    Params(params): Params<SystemsParams>,
) -> Result<Json<PageBody<SystemBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    let page = state.store().list_systems(params.name.as_deref(), page).await?;
    Ok(Json(PageBody::from_page(page, |system| system.id, SystemBody::from)))
}

/// A system.
#[utoipa::path(get, path = "/v1/systems/{system_id}", tag = "systems", params(("system_id" = String, Path)),
    responses((status = OK, description = "The system", body = SystemBody), ReadProblems))]
pub(super) async fn get_system(State(state): State<AppState>, Id(id): Id<SystemId>) -> Result<Json<SystemBody>, Error> {
    Ok(Json(require_system(&state, id).await?.into()))
}

/// Deletes a system with all its traces, structures, models, trials, fits and jobs. Refused while a job of it is queued or
/// running. Nothing else deletes inputs or results: what a fit names is there as long as the fit. Of the structures of what
/// `/v1/traces` received, a system keeps the latest twenty and those that a model was derived from.
#[utoipa::path(delete, path = "/v1/systems/{system_id}", tag = "systems", params(("system_id" = String, Path)),
    responses((status = NO_CONTENT, description = "The system is deleted"), ReadProblems))]
pub(super) async fn delete_system(State(state): State<AppState>, Id(id): Id<SystemId>) -> Result<StatusCode, Error> {
    let is_deleted = state.store().delete_system(id).await?;
    // Spans that come for its name from now on are of a new system.
    state.receptions().forget(id);
    if is_deleted { Ok(StatusCode::NO_CONTENT) } else { Err(Error::not_found("system", id)) }
}

/// The system of that id.
///
/// # Errors
/// [`Code::NotFound`] when there is none.
pub(super) async fn require_system(state: &AppState, id: SystemId) -> Result<System, Error> {
    state.store().load_system(id).await?.ok_or_else(|| Error::not_found("system", id))
}
