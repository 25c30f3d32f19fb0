//! Identifications: what trials will tell, before they are measured; computed when asked.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use indexmap::IndexMap;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AppState, Code, Error,
    body::read_json,
    designs::MOST_CANDIDATES,
    error::{WriteProblems, chain},
    extract::Id,
    fits::{EstimateBody, NewFitBody, options, require_model, trials_of},
    predictions::MOST_AT_ONCE,
    state::Awaited,
};
use crate::{
    fit::{
        Method, Trial, Trials, Weighting,
        design::{DesignError, IdentifyOptions, identify_with},
    },
    model::Measure,
    predict::Scenarios,
    store::ModelId,
};

/// What is to be looked at: stored trials, or a plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewIdentification {
    /// A version of the trials, of the same system as the model: its operating points, measures and standard errors.
    #[schema(value_type = Option<String>, format = Uuid)]
    trials: Option<String>,
    /// Operating points that are planned, `NAME=VALUE` or `NAME=FROM..TO[:STEP]`; ranges are crossed. Instead of `trials`.
    #[serde(default)]
    #[schema(example = json!(["users=1..20", "think=5"]))]
    at: Vec<String>,
    /// What every planned trial measures.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["response_time(User)", "throughput(User)"]))]
    measures: Vec<Measure>,
    /// Parameters to be estimated, each with the value at which sensitivities are taken (and bounds), as of a fit.
    #[schema(value_type = BTreeMap<String, EstimateBody>, example = json!({"dbD": 0.1}))]
    #[serde(deserialize_with = "crate::model::unique::map")]
    estimate: IndexMap<String, EstimateBody>,
    /// Known constants by parameter name; they overrule the model's own definitions.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    assumed: IndexMap<String, f64>,
    /// Relative error of a measured value without a standard error.
    #[schema(default = 0.05)]
    relative_error: Option<f64>,
    /// Level of the half-widths, in (0, 1).
    #[schema(default = 0.95)]
    confidence: Option<f64>,
}

/// Says what trials will tell of the parameters before any value is measured: expected half-widths, what cannot be told apart, and what
/// would settle it, as `layerfit identify --format json` prints it.
#[utoipa::path(post, path = "/v1/models/{model_id}/identifications", tag = "fits", params(("model_id" = String, Path)),
    request_body = NewIdentification, responses((status = OK, description = "What the trials will tell", body = Object), WriteProblems))]
pub(super) async fn identify_parameters(
    State(state): State<AppState>,
    Id(model): Id<ModelId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let asked: NewIdentification = read_json(&headers, body, &state).await?;
    let model = require_model(&state, model).await?;
    let names_max = state.limits().names_max;
    let trials = match (&asked.trials, asked.at.is_empty() && asked.measures.is_empty()) {
        (Some(id), true) => trials_of(&state, id, model.header.system_id).await?.trials,
        (None, false) if asked.at.len() <= names_max && asked.measures.len() <= names_max => planned(&asked.at, asked.measures)?,
        (None, false) => return Err(Error::new(Code::InvalidDesign, format!("at and measures are taken {names_max} at most"))),
        _ => return Err(Error::new(Code::InvalidDesign, "expected either trials, or a plan: at and measures")),
    };
    let NewIdentification { estimate, assumed, relative_error, confidence, .. } = asked;
    let (weighting, method) = (Weighting::Auto, Method::default());
    let fit = options(NewFitBody { trials: String::new(), estimate, assumed, weighting, confidence, method }, names_max)?;
    let is_long = trials.trials.len() > MOST_AT_ONCE;
    let problem = fit.problem(model.model, trials);
    let defaults = IdentifyOptions::default();
    let options = IdentifyOptions { relative_error: relative_error.unwrap_or(defaults.relative_error), ..defaults };
    let refuse = |error: DesignError| Error::new(Code::InvalidDesign, chain(&error));
    let compute = move |awaited: &Awaited| identify_with(&problem, &options, &awaited.solver()).map_err(refuse);
    let found = if is_long { state.compute_long_while(compute).await? } else { state.compute_while(compute).await? };
    Ok(Json(found).into_response())
}

/// Trials without values at the operating points `at`.
fn planned(at: &[String], measures: Vec<Measure>) -> Result<Trials, Error> {
    let points = Scenarios::parse(at).map_err(|e| Error::new(Code::InvalidDesign, chain(&e)))?.points();
    if points.len() > MOST_CANDIDATES {
        let detail = format!("{} operating points are more than the {MOST_CANDIDATES} that are planned at once", points.len());
        return Err(Error::new(Code::InvalidDesign, detail));
    }
    let trial = |(row, controlled): (usize, _)| Trial {
        id: (row + 1).to_string(),
        controlled,
        measured: vec![None; measures.len()],
        ..Trial::default()
    };
    let trials = points.into_iter().enumerate().map(trial).collect();
    Ok(Trials { measures, trials })
}
