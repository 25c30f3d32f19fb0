//! Versions of a system's trials.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    AppState, Code, Error, accept,
    body::{media_type, read_text},
    error::{ReadProblems, WriteProblems, chain},
    extract::{Id, PageBody, PageParams, Params, page_request},
    systems::require_system,
};
use crate::{
    fit::trials::{AsSent, Bounds, Trials, TrialsError},
    store::{
        SystemId, Timestamp, TrialsId,
        trials::{NewTrials, TrialsHeader, TrialsSource},
    },
};

/// A version of the trials without the trials.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrialsHeaderBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: TrialsId,
    /// The system they are of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// 1, 2, 3 … within the system.
    version: i64,
    /// What was sent: `csv` or `json`.
    source: &'static str,
    /// Number of operating points.
    count: i64,
    /// SHA-256 of what was sent, hexadecimal.
    sha256: String,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A version of the trials: its header, and `trials` as they can be sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrialsBody<'a> {
    /// Its header.
    #[serde(flatten)]
    header: TrialsHeaderBody,
    /// Controlled parameters, without `$`.
    controlled: Vec<String>,
    /// Measures, in column order.
    measures: Vec<String>,
    /// The trials.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    trials: AsSent<'a>,
}

impl From<TrialsHeader> for TrialsHeaderBody {
    fn from(header: TrialsHeader) -> Self {
        Self {
            id: header.id,
            system: header.system_id,
            version: header.version,
            source: match header.source {
                TrialsSource::Csv => "csv",
                TrialsSource::Json => "json",
            },
            count: header.n_trials,
            sha256: header.sha256,
            created_at: header.created_at,
        }
    }
}

impl<'a> TrialsBody<'a> {
    fn new(header: TrialsHeader, trials: &'a Trials) -> Self {
        Self {
            header: header.into(),
            controlled: trials.controlled_names().iter().map(ToString::to_string).collect(),
            measures: trials.measures.iter().map(ToString::to_string).collect(),
            trials: trials.as_sent(),
        }
    }
}

/// Stores the next version of a system's trials: CSV with one row a trial, or
/// `{"trials": [{"controlled": {"users": 10}, "measured": {"throughput(User)": 1.2}}]}`. At most 100,000 trials, 1000 columns (controlled
/// values, measures, their standard errors, weights and covariances), and 1,000,000 cells (trials times columns).
#[utoipa::path(post, path = "/v1/systems/{system_id}/trials", tag = "trials", params(("system_id" = String, Path)),
    request_body(content((String = "text/csv"), (Object = "application/json"))),
    responses(
        (status = CREATED, description = "The trials, stored", body = TrialsBody<'_>, headers(("location" = String))),
        WriteProblems
    ))]
pub(super) async fn create_trials(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let named = named_source(&headers)?;
    require_system(&state, system).await?;
    let text = read_text(&headers, body, state.limits().trials_bytes, &state).await?;
    let source = named.unwrap_or_else(|| if text.trim_start().starts_with('{') { TrialsSource::Json } else { TrialsSource::Csv });
    let bounds = state.limits().trials;
    let (text, trials) = state.compute(move || read_trials(&text, source, &bounds).map(|trials| (text, trials))).await?;
    let header = state.store().insert_trials(NewTrials { system, source, content: &text, trials: &trials }).await?;
    let location = format!("/v1/trials/{}", header.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(TrialsBody::new(header, &trials))).into_response())
}

fn named_source(headers: &HeaderMap) -> Result<Option<TrialsSource>, Error> {
    match media_type(headers).as_deref() {
        Some("text/csv") => Ok(Some(TrialsSource::Csv)),
        Some("application/json") => Ok(Some(TrialsSource::Json)),
        // The types that clients send when they are not told one: the text itself decides.
        None | Some("text/plain" | "application/octet-stream" | "application/x-www-form-urlencoded") => Ok(None),
        Some(other) => Err(Error::new(Code::UnsupportedMediaType, format!("trials are text/csv or application/json, not {other}"))),
    }
}

fn read_trials(text: &str, source: TrialsSource, bounds: &Bounds) -> Result<Trials, Error> {
    let trials = match source {
        TrialsSource::Csv => Trials::from_csv_within(text.as_bytes(), bounds),
        TrialsSource::Json => Trials::from_json_within(text.as_bytes(), bounds),
    };
    trials.map_err(|error| {
        let told = Error::new(Code::InvalidTrials, chain(&error));
        if let TrialsError::TooMany { most, .. } = error { told.with("limit", most) } else { told }
    })
}

/// Lists the versions of a system's trials in order of creation.
#[utoipa::path(get, path = "/v1/systems/{system_id}/trials", tag = "trials", params(("system_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of versions of the trials", body = PageBody<TrialsHeaderBody>), ReadProblems))]
pub(super) async fn list_trials(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<TrialsHeaderBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    require_system(&state, system).await?;
    let page = state.store().list_trials(system, page).await?;
    Ok(Json(PageBody::from_page(page, |trials| trials.id, TrialsHeaderBody::from)))
}

/// A version of the trials as JSON, or the trials alone as CSV.
#[utoipa::path(get, path = "/v1/trials/{trials_id}", tag = "trials", params(("trials_id" = String, Path)),
    responses(
        (status = OK, description = "The version of the trials", content((TrialsBody<'_> = "application/json"), (String = "text/csv"))),
        ReadProblems
    ))]
pub(super) async fn get_trials(State(state): State<AppState>, Id(id): Id<TrialsId>, headers: HeaderMap) -> Result<Response, Error> {
    let media_type = accept::choose(&headers, &["application/json", "text/csv"])?;
    let stored = state.store().load_trials(id).await?.ok_or_else(|| Error::not_found("set of trials", id))?;
    Ok(match media_type {
        "text/csv" => ([(header::CONTENT_TYPE, media_type)], stored.trials.to_csv()).into_response(),
        _ => Json(TrialsBody::new(stored.header, &stored.trials)).into_response(),
    })
}
