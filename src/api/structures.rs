//! Structures: what was extracted from traces.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    AppState, Error, accept,
    error::ReadProblems,
    extract::{Id, PageBody, PageParams, Params, page_request},
    systems::require_system,
};
use crate::{
    model::lqnx,
    store::{StructureId, SystemId, Timestamp, TraceId, structures::StructureHeader},
    structure::Extraction,
};

/// A structure without what was extracted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StructureHeaderBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: StructureId,
    /// The system it is of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// The trace it was extracted from.
    #[schema(value_type = String, format = Uuid)]
    trace: TraceId,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A structure: its header, and what was extracted as `layerfit extract --format json` prints it: `tasks`, `interactions`,
/// `records`, `model`, `diagnostics`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StructureBody {
    /// Its header.
    #[serde(flatten)]
    header: StructureHeaderBody,
    /// What was extracted.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    extraction: Extraction,
}

impl From<StructureHeader> for StructureHeaderBody {
    fn from(header: StructureHeader) -> Self {
        Self { id: header.id, system: header.system_id, trace: header.trace_id, created_at: header.created_at }
    }
}

/// Lists the structures of a system in order of extraction.
#[utoipa::path(get, path = "/v1/systems/{system_id}/structures", tag = "traces", params(("system_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of structures", body = PageBody<StructureHeaderBody>), ReadProblems))]
pub(super) async fn list_structures(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<StructureHeaderBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    require_system(&state, system).await?;
    let page = state.store().list_structures(system, page).await?;
    Ok(Json(PageBody::from_page(page, |structure| structure.id, StructureHeaderBody::from)))
}

/// A structure as JSON, or its model alone as LQNX.
#[utoipa::path(get, path = "/v1/structures/{structure_id}", tag = "traces", params(("structure_id" = String, Path)),
    responses(
        (status = OK, description = "The structure", content((StructureBody = "application/json"), (String = "application/xml"))),
        ReadProblems
    ))]
pub(super) async fn get_structure(State(state): State<AppState>, Id(id): Id<StructureId>, headers: HeaderMap) -> Result<Response, Error> {
    let media_type = accept::choose(&headers, &["application/json", "application/xml"])?;
    let structure = state.store().load_structure(id).await?.ok_or_else(|| Error::not_found("structure", id))?;
    Ok(match media_type {
        "application/xml" => ([(header::CONTENT_TYPE, media_type)], lqnx::write(&structure.extraction.model)).into_response(),
        _ => Json(StructureBody { header: structure.header.into(), extraction: structure.extraction }).into_response(),
    })
}
