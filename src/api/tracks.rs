//! Tracks: parameters that drift, followed over trials in time; computed when asked.

use std::{ops::ControlFlow, time::Instant};

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
    error::{WriteProblems, chain},
    extract::Id,
    fits::{EstimateBody, NewFitBody, options, require_model, trials_of},
    state::Awaited,
};
use crate::{
    fit::{
        FitError, Method, Weighting,
        problem::ErrorScale,
        tracking::{Drift, TrackError, TrackOptions, track},
    },
    store::ModelId,
};

/// A track to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTrack {
    /// The version of the trials to follow; of the same system as the model.
    #[schema(value_type = String, format = Uuid)]
    trials: String,
    /// Parameters to be tracked, each with its start and bounds, or with its start alone, as of a fit. With `"transform": "log"` a parameter is tracked by its logarithm.
    #[schema(value_type = BTreeMap<String, EstimateBody>, example = json!({"dbD": {"start": 0.1, "transform": "log"}}))]
    #[serde(deserialize_with = "crate::model::unique::map")]
    estimate: IndexMap<String, EstimateBody>,
    /// Known constants by parameter name.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    assumed: IndexMap<String, f64>,
    /// How errors are weighed, as of a fit.
    #[serde(default, deserialize_with = "super::body::null_as_default")]
    #[schema(value_type = Option<String>, example = "auto")]
    weighting: Weighting,
    /// `known` takes standard errors and covariances of the trials as they stand; `estimated` up to a factor.
    #[serde(default, deserialize_with = "super::body::null_as_default")]
    #[schema(value_type = Option<String>, example = "estimated")]
    error_scale: ErrorScale,
    /// Level of intervals and tests, in (0, 1).
    #[schema(default = 0.95)]
    confidence: Option<f64>,
    /// Standard deviation of the walk over one unit of time (one trial where trials have no times) by parameter; `null` or absent where it is to be
    /// estimated, 0 for a parameter that stays.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Option<f64>>, example = json!({"dbD": 0.01}))]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    drift: IndexMap<String, Option<f64>>,
    /// Trials in the running window of the innovations test.
    #[schema(default = 5)]
    window: Option<usize>,
}

/// Tracks parameters that drift over a version of the trials, in the order of their times: filtered and smoothed estimates, innovations tests, changes, as
/// `layerfit track --format json` prints it.
#[utoipa::path(post, path = "/v1/models/{model_id}/tracks", tag = "fits", params(("model_id" = String, Path)), request_body = NewTrack,
    responses((status = OK, description = "The track", body = Object), WriteProblems))]
pub(super) async fn track_parameters(
    State(state): State<AppState>,
    Id(model): Id<ModelId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let asked: NewTrack = read_json(&headers, body, &state).await?;
    let model = require_model(&state, model).await?;
    let trials = trials_of(&state, &asked.trials, model.header.system_id).await?;
    let NewTrack { trials: id, estimate, assumed, weighting, error_scale, confidence, drift: drifts, window } = asked;
    let method = Method { error_scale, ..Method::default() };
    let fit = options(NewFitBody { trials: id, estimate, assumed, weighting, confidence, method }, state.limits().names_max)?;
    let problem = fit.problem(model.model, trials.trials);
    let drift =
        |(name, value): (String, Option<f64>)| (name.trim_start_matches('$').to_owned(), value.map_or(Drift::Estimated, Drift::Given));
    let defaults = TrackOptions::default();
    let options = TrackOptions { drifts: drifts.into_iter().map(drift).collect(), window: window.unwrap_or(defaults.window), ..defaults };
    let end = Instant::now() + state.limits().request_time;
    let compute = move |awaited: &Awaited| {
        // Nobody waits for an answer after the request's own time.
        let mut in_time =
            |_: &_| if Instant::now() < end && awaited.is_awaited() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        track(&problem, &options, &mut in_time).map_err(|error| match error {
            TrackError::Cancelled | TrackError::Fit(FitError::Cancelled) => {
                Error::new(Code::RequestTimeout, "the track took longer than a request may: give the drifts")
            }
            error => Error::new(Code::InvalidFit, chain(&error)),
        })
    };
    Ok(Json(state.compute_long_while(compute).await?).into_response())
}
