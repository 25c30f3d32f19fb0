//! Model versions: uploaded in one of the model formats, or derived from a structure.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState, Code, Error, accept,
    body::{media_type, parse_json, read_text},
    error::{ReadProblems, WriteProblems},
    extract::{Id, PageBody, PageParams, Params, page_request},
    systems::require_system,
};
use crate::{
    model::{Defect, Model, Number, Severity, format, lqnx},
    store::{
        ModelId, StructureId, SystemId, Timestamp,
        models::{ModelHeader, ModelSource, NewModel, StoredModel},
    },
};

/// How a model is to be read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NewModelParams {
    /// `lqnx`, `lqn` or `json`; by default what `Content-Type` says, and what the text looks like where it says nothing.
    format: Option<String>,
}

/// A model to be derived from a structure.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Derivation {
    /// The structure whose model is taken.
    #[schema(value_type = String, format = Uuid)]
    structure: String,
    /// Numbers of the model to be changed: a parameter's name, `demand(ENTRY)`, `demand(ENTRY,PHASE)`,
    /// `demand(TASK.ACTIVITY)`, `think_time(TASK)`, `multiplicity(NAME)`, `speed_factor(PROCESSOR)` or `calls(FROM->TO)`, each
    /// with a number, or with `"$name"` to make it a parameter.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, example = json!({"demand(browse)": "$browse", "multiplicity(Client)": 20}))]
    #[serde(deserialize_with = "crate::model::unique::map")]
    set: IndexMap<String, Number>,
}

/// A model version without the model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelHeaderBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: ModelId,
    /// The system it is of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// 1, 2, 3 … within the system.
    version: i64,
    /// What was sent: `lqnx`, `lqn`, `json` or `structure`.
    source: &'static str,
    /// The structure that it was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    structure: Option<StructureId>,
    /// SHA-256 of what was sent, hexadecimal.
    sha256: String,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A model version.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelBody {
    /// Its header.
    #[serde(flatten)]
    header: ModelHeaderBody,
    /// The `$parameters` that the model itself gives no value.
    free_parameters: Vec<String>,
    /// What is probably not meant.
    warnings: Vec<String>,
    /// The model in the project's JSON.
    #[schema(value_type = Object)]
    model: Model,
}

impl From<ModelHeader> for ModelHeaderBody {
    fn from(header: ModelHeader) -> Self {
        Self {
            id: header.id,
            system: header.system_id,
            version: header.version,
            source: match header.source {
                ModelSource::Lqnx => "lqnx",
                ModelSource::Lqn => "lqn",
                ModelSource::Json => "json",
                ModelSource::Structure => "structure",
            },
            structure: header.structure_id,
            sha256: header.sha256,
            created_at: header.created_at,
        }
    }
}

impl From<StoredModel> for ModelBody {
    fn from(stored: StoredModel) -> Self {
        let warnings = stored.model.validate().iter().map(ToString::to_string).collect();
        Self { header: stored.header.into(), free_parameters: stored.model.free_parameters(), warnings, model: stored.model }
    }
}

/// Stores the next version of a system's model: LQNX, LQN text or JSON; or derives it from a structure.
#[utoipa::path(post, path = "/v1/systems/{system_id}/models", tag = "models",
    params(("system_id" = String, Path), NewModelParams),
    request_body(content((String = "application/xml"), (String = "text/plain"), (Derivation = "application/json"))),
    responses(
        (status = CREATED, description = "The model version, stored", body = ModelBody, headers(("location" = String))),
        WriteProblems
    ))]
pub(super) async fn create_model(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<NewModelParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let named = named_format(&params, &headers)?;
    require_system(&state, system).await?;
    let text = read_text(&headers, body, state.limits().model_bytes, &state).await?;
    let format = named.unwrap_or_else(|| looked_like(&text));
    let (source, structure, content, model) = match derivation(format, &text)? {
        Some(derivation) => {
            let (id, model) = derive(&state, system, derivation).await?;
            (ModelSource::Structure, Some(id), text, model)
        }
        None => {
            let (text, model) = state.compute(move || read_model(&text, format).map(|model| (text, model))).await?;
            (source_of(format), None, text, model)
        }
    };
    let new = NewModel { system, source, content: &content, structure, model: &model };
    let header = state.store().insert_model(new).await?;
    let location = format!("/v1/models/{}", header.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(ModelBody::from(StoredModel { header, model }))).into_response())
}

/// The format that the request names: in the query, else by the body's type.
fn named_format(params: &NewModelParams, headers: &HeaderMap) -> Result<Option<format::Format>, Error> {
    if let Some(name) = &params.format {
        return match name.as_str() {
            "lqnx" => Ok(Some(format::Format::Lqnx)),
            "lqn" => Ok(Some(format::Format::LqnText)),
            "json" => Ok(Some(format::Format::Json)),
            _ => Err(Error::new(Code::UnknownFormat, format!("format={name}: expected lqnx, lqn or json"))),
        };
    }
    match media_type(headers).as_deref() {
        Some("application/xml" | "text/xml") => Ok(Some(format::Format::Lqnx)),
        Some("application/json") => Ok(Some(format::Format::Json)),
        // The types that clients send when they are not told one: the text itself decides.
        None | Some("text/plain" | "application/octet-stream" | "application/x-www-form-urlencoded") => Ok(None),
        Some(other) => {
            let detail = format!("a model is application/xml (LQNX), text/plain (LQN text) or application/json, not {other}");
            Err(Error::new(Code::UnsupportedMediaType, detail))
        }
    }
}

/// The format by the first character that is not white space.
fn looked_like(text: &str) -> format::Format {
    match text.trim_start_matches('\u{feff}').trim_start().chars().next() {
        Some('<') => format::Format::Lqnx,
        Some('{') => format::Format::Json,
        _ => format::Format::LqnText,
    }
}

fn source_of(format: format::Format) -> ModelSource {
    match format {
        format::Format::Lqnx => ModelSource::Lqnx,
        format::Format::LqnText => ModelSource::Lqn,
        format::Format::Json => ModelSource::Json,
    }
}

/// The text as a derivation, where it is a JSON object with a `structure`.
fn derivation(format: format::Format, text: &str) -> Result<Option<Derivation>, Error> {
    #[derive(Deserialize)]
    struct Probe {
        structure: Option<serde::de::IgnoredAny>,
    }
    let is_derivation = format == format::Format::Json
        && match serde_json::from_str::<Probe>(text) {
            Ok(probe) => probe.structure.is_some(),
            // What breaks off is told by what it begins with: a model has tasks.
            Err(error) => !error.is_data() && text.contains("\"structure\"") && !text.contains("\"tasks\""),
        };
    if is_derivation { parse_json(text.as_bytes()).map(Some) } else { Ok(None) }
}

async fn derive(state: &AppState, system: SystemId, derivation: Derivation) -> Result<(StructureId, Model), Error> {
    let unknown = || Error::new(Code::UnknownReference, format!("structure: the system has no structure {}", derivation.structure));
    let id: StructureId = derivation.structure.parse().map_err(|_| unknown())?;
    let structure = state.store().load_structure(id).await?.filter(|s| s.header.system_id == system).ok_or_else(unknown)?;
    let mut model = structure.extraction.model;
    for (setting, value) in derivation.set {
        model.set(&setting, value).map_err(|e| Error::new(Code::InvalidModel, format!("set: {e}")))?;
    }
    Ok((id, validated(model, |defects| vec![None; defects.len()])?))
}

fn read_model(text: &str, format: format::Format) -> Result<Model, Error> {
    let (model, places) = format::read(text, format)
        .map_err(|error| Error::new(Code::UnreadableModel, error.to_string()).with("line", error.line).with("column", error.column))?;
    validated(model, |defects| places.of(defects, text))
}

/// The model, if it has no errors; `places_of` are lines and columns of defects, where they are known.
fn validated(model: Model, places_of: impl FnOnce(&[Defect]) -> Vec<Option<(usize, usize)>>) -> Result<Model, Error> {
    let defects: Vec<_> = model.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
    let Some(first) = defects.first() else { return Ok(model) };
    let more = if defects.len() > 1 { format!(" (and {} more)", defects.len() - 1) } else { String::new() };
    let places = places_of(&defects);
    let said = |(defect, place): (&Defect, &Option<(usize, usize)>)| {
        let mut said = serde_json::json!({ "element": defect.element, "message": defect.kind.to_string() });
        if let Some((line, column)) = *place {
            (said["line"], said["column"]) = (line.into(), column.into());
        }
        said
    };
    let errors: Vec<serde_json::Value> = defects.iter().zip(&places).map(said).collect();
    let error = Error::new(Code::InvalidModel, format!("{first}{more}")).with("errors", errors);
    Err(match places.first().copied().flatten() {
        Some((line, column)) => error.with("line", line).with("column", column),
        None => error,
    })
}

/// Lists the model versions of a system in order of creation.
#[utoipa::path(get, path = "/v1/systems/{system_id}/models", tag = "models", params(("system_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of model versions", body = PageBody<ModelHeaderBody>), ReadProblems))]
pub(super) async fn list_models(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<ModelHeaderBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    require_system(&state, system).await?;
    let page = state.store().list_models(system, page).await?;
    Ok(Json(PageBody::from_page(page, |model| model.id, ModelHeaderBody::from)))
}

/// A model version as JSON, or the model alone as LQNX.
#[utoipa::path(get, path = "/v1/models/{model_id}", tag = "models", params(("model_id" = String, Path)),
    responses(
        (status = OK, description = "The model version", content((ModelBody = "application/json"), (String = "application/xml"))),
        ReadProblems
    ))]
pub(super) async fn get_model(State(state): State<AppState>, Id(id): Id<ModelId>, headers: HeaderMap) -> Result<Response, Error> {
    let media_type = accept::choose(&headers, &["application/json", "application/xml"])?;
    let stored = state.store().load_model(id).await?.ok_or_else(|| Error::not_found("model", id))?;
    Ok(match media_type {
        "application/xml" => ([(header::CONTENT_TYPE, media_type)], lqnx::write(&stored.model)).into_response(),
        _ => Json(ModelBody::from(stored)).into_response(),
    })
}
