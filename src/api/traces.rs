//! Traces: uploaded whole, extracted from by a job.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState, Code, Error,
    body::{Bound, read_file},
    error::{ReadProblems, WriteProblems},
    extract::{Id, PageBody, PageParams, Params, page_request, twice},
    fits::FailureBody,
    systems::require_system,
};
use crate::{
    model::objects::Objects,
    store::{
        JobId, StructureId, SystemId, Timestamp, TraceId,
        jobs::State as JobState,
        traces::{NewTrace, Trace, compress},
    },
    structure::{ExtractError, ExtractOptions, Technique},
    trace,
};

/// How a trace is to be read. (Only documents: options of the extraction are read by [`Asked::read`].)
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "its fields stand for the query parameters in the document")]
pub(super) struct UploadParams {
    /// Its wire format.
    #[param(example = "same")]
    format: String,
    /// The technique that extracts from it; by default the one that fits the format.
    #[param(example = "same")]
    technique: Option<String>,
    /// Every other option of an extraction, by its name; objects as JSON.
    #[param(style = Form, explode, value_type = Option<Object>, example = json!({"default_demand": 0.001}))]
    options: Option<String>,
}

/// The query, read.
#[derive(Debug)]
struct Asked {
    format: String,
    options: ExtractOptions,
}

impl Asked {
    fn read(pairs: Vec<(String, String)>, limit_bytes: usize) -> Result<Self, Error> {
        let mut options = Map::new();
        let mut format = None;
        for (name, value) in pairs {
            match name.as_str() {
                "format" if format.is_some() => return Err(twice("format")),
                "format" => format = Some(value),
                // The service's own bound, see `Limits`.
                "limit_bytes" => return Err(Error::new(Code::InvalidQuery, "limit_bytes: not for a client to say")),
                // What is no JSON is text: `technique=same`.
                _ => {
                    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
                    if options.insert(name.clone(), value).is_some() {
                        return Err(twice(&name));
                    }
                }
            }
        }
        let format = format.ok_or_else(|| Error::new(Code::InvalidQuery, "format: expected the trace's format, as in format=same"))?;
        let wire: trace::Format = format.parse().map_err(|e: trace::UnknownFormat| Error::new(Code::UnknownFormat, e.to_string()))?;
        options.insert("limit_bytes".into(), limit_bytes.into());
        let refuse = |error: &dyn std::fmt::Display| Error::new(Code::InvalidQuery, error.to_string());
        let options: ExtractOptions = serde_path_to_error::deserialize(Objects(Value::Object(options))).map_err(|e| refuse(&e))?;
        options.check().map_err(|e| refuse(&e))?;
        if let Some(technique) = options.technique.filter(|technique| *technique != Technique::for_format(wire)) {
            return Err(refuse(&ExtractError::Unfit { technique, format: wire }));
        }
        Ok(Self { format, options })
    }
}

/// A trace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TraceBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: TraceId,
    /// The system it is of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// Its wire format.
    format: String,
    /// How the structure is extracted.
    #[schema(value_type = Object)]
    options: ExtractOptions,
    /// Its size after decompression, bytes.
    bytes: i64,
    /// SHA-256 of it, hexadecimal.
    sha256: String,
    /// Where the extraction stands.
    #[schema(value_type = String, example = "queued")]
    state: JobState,
    /// The job that extracts from it.
    #[schema(value_type = String, format = Uuid)]
    job: JobId,
    /// Why the extraction failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody>,
    /// The structure that was extracted, once the job has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    structure: Option<StructureId>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Trace> for TraceBody {
    fn from(trace: Trace) -> Self {
        Self {
            id: trace.id,
            system: trace.system_id,
            format: trace.format,
            options: trace.options,
            bytes: trace.content_bytes,
            sha256: trace.sha256,
            state: trace.state,
            job: trace.job_id,
            error: trace.failure.map(Into::into),
            structure: trace.structure_id,
            created_at: trace.created_at,
        }
    }
}

/// Uploads a trace and queues the extraction of a structure from it. The body is the trace as its format has it; gzip is
/// taken as `Content-Encoding` or as a file, zstd as a file.
#[utoipa::path(post, path = "/v1/systems/{system_id}/traces", tag = "traces",
    params(("system_id" = String, Path), UploadParams),
    request_body(content = String, content_type = "application/octet-stream"),
    responses(
        (status = ACCEPTED, description = "The trace, stored; its extraction is queued", body = TraceBody, headers(("location" = String))),
        WriteProblems
    ))]
pub(super) async fn upload_trace(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(pairs): Params<Vec<(String, String)>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let asked = Asked::read(pairs, state.limits().trace_bytes)?;
    require_system(&state, system).await?;
    let bound = Bound { sent_bytes: state.limits().trace_sent_bytes, decompressed_bytes: state.limits().trace_bytes };
    let bytes = read_file(&headers, body, bound, &state).await?;
    let content = state.compute(move || compress(&bytes).map_err(Error::internal)).await?;
    let new = NewTrace { system, format: &asked.format, options: &asked.options, content: &content };
    let trace = state.store().insert_trace(new).await?;
    state.jobs().wake();
    let location = format!("/v1/traces/{}", trace.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(TraceBody::from(trace))).into_response())
}

/// Lists the traces of a system in order of arrival.
#[utoipa::path(get, path = "/v1/systems/{system_id}/traces", tag = "traces", params(("system_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of traces", body = PageBody<TraceBody>), ReadProblems))]
pub(super) async fn list_traces(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<TraceBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    require_system(&state, system).await?;
    let page = state.store().list_traces(system, page).await?;
    Ok(Json(PageBody::from_page(page, |trace| trace.id, TraceBody::from)))
}

/// A trace: what it is, and what became of it.
#[utoipa::path(get, path = "/v1/traces/{trace_id}", tag = "traces", params(("trace_id" = String, Path)),
    responses((status = OK, description = "The trace", body = TraceBody), ReadProblems))]
pub(super) async fn get_trace(State(state): State<AppState>, Id(id): Id<TraceId>) -> Result<Json<TraceBody>, Error> {
    let trace = state.store().load_trace(id).await?.ok_or_else(|| Error::not_found("trace", id))?;
    Ok(Json(trace.into()))
}
