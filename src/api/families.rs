//! Families: fits of rival models compared, black boxes beside a fit, additions to its model; computed when asked.

use std::{ops::ControlFlow, time::Instant};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::{
    AppState, Code, Error,
    body::read_json,
    comparisons::referenced,
    error::{ReadProblems, WriteProblems, chain},
    extract::{Id, Params},
    predictions::require_report,
    state::Awaited,
};
use crate::{
    fit::{
        Fit, FitError,
        baseline::{BaselineError, BaselineOptions, baselines_with},
        compare::CompareOptions,
        comparison::family::compare_family_while,
        stepwise::{AdditionKind, StepwiseError, StepwiseOptions, proposed_model, stepwise},
    },
    store::FitId,
};

/// Fits to be compared.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFamily {
    /// Two or more fits of rival models to the same trials.
    #[schema(value_type = Vec<String>, min_items = 2)]
    fits: Vec<String>,
}

/// Compares fits of rival models to the same trials: every nested pair is tested, all are ranked, the simplest that explains the trials is proposed, as
/// `layerfit compare FIT FIT FIT --format json` prints it. Members are named by the ids of their fits. Errors of leaving a trial out are there for fits that were
/// asked for `leave_one_trial_out`.
#[utoipa::path(post, path = "/v1/families", tag = "fits", request_body = NewFamily,
    responses((status = OK, description = "The family, its members best first", body = Object), WriteProblems))]
pub(super) async fn compare_families(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<Response, Error> {
    let asked: NewFamily = read_json(&headers, body, &state).await?;
    let most = state.limits().names_max;
    if asked.fits.len() < 2 || asked.fits.len() > most {
        return Err(Error::new(Code::InvalidBody, format!("fits: expected 2 to {most} fits, not {}", asked.fits.len())));
    }
    let mut fits: Vec<(String, Fit)> = Vec::new();
    for id in asked.fits {
        let fit = referenced(&state, &id).await?;
        fits.push((id, fit));
    }
    let compute = move |awaited: &Awaited| {
        let members: Vec<(&str, &Fit)> = fits.iter().map(|(id, fit)| (id.as_str(), fit)).collect();
        let compared = compare_family_while(&members, &CompareOptions::default(), &awaited.solver(), &|| awaited.is_awaited());
        compared.map_err(|error| Error::new(Code::NotComparable, chain(&error)))
    };
    Ok(Json(state.compute_long_while(compute).await?).into_response())
}

/// How a fit is put beside black boxes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct BaselineParams {
    /// The controlled value that curves are drawn against; by default the number of customers, a rate of arrivals, or what takes the most values.
    load: Option<String>,
    /// Share of the loads, the highest, that extrapolations do not see, in [0, 1).
    #[param(default = 0.333)]
    hold_out: Option<f64>,
}

/// Puts a polynomial and the Universal Scalability Law, fitted to the same trials, beside a fit: how far off each is, on each trial predicted from the others, and
/// on the trials of the highest load.
#[utoipa::path(get, path = "/v1/fits/{fit_id}/baselines", tag = "fits", params(("fit_id" = String, Path), BaselineParams),
    responses((status = OK, description = "The fit and the curves, side by side", body = Object), ReadProblems))]
pub(super) async fn get_baselines(
    State(state): State<AppState>,
    Id(id): Id<FitId>,
    Params(params): Params<BaselineParams>,
) -> Result<Response, Error> {
    let fit = require_report(&state, id).await?;
    let defaults = BaselineOptions::default();
    let options = BaselineOptions { load: params.load, hold_out: params.hold_out.unwrap_or(defaults.hold_out), ..defaults };
    let refuse = |error: BaselineError| Error::new(Code::InvalidPrediction, chain(&error));
    let compute = move |awaited: &Awaited| baselines_with(&fit, &options, &awaited.solver()).map_err(refuse);
    Ok(Json(state.compute_long_while(compute).await?).into_response())
}

/// Which additions are to be tried.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NewAdditions {
    /// `delay`, `queue`, `second_phase`, `thread`, `server`; all when absent.
    #[schema(value_type = Option<Vec<String>>, example = json!(["delay", "queue"]))]
    kinds: Option<Vec<AdditionKind>>,
    /// Most additions that are taken.
    #[schema(default = 3, maximum = 10)]
    max_additions: Option<usize>,
    /// Whether surplus parameters are left out afterwards.
    #[schema(default = true)]
    eliminate: Option<bool>,
}

/// Most additions of one request.
const MOST_ADDITIONS: usize = 10;

/// Tries additions to the model of a fit (a delay, a queue, a second phase, a thread, a server), each with its F-test, and leaves out surplus parameters:
/// `{"report", "model", "estimates"}`, the model being the proposed one with its estimates as values.
#[utoipa::path(post, path = "/v1/fits/{fit_id}/additions", tag = "fits", params(("fit_id" = String, Path)), request_body = NewAdditions,
    responses((status = OK, description = "What was tried, and the proposed model", body = Object), WriteProblems))]
pub(super) async fn try_additions(
    State(state): State<AppState>,
    Id(id): Id<FitId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let asked: NewAdditions = read_json(&headers, body, &state).await?;
    let defaults = StepwiseOptions::default();
    let max_additions = asked.max_additions.unwrap_or(defaults.max_additions);
    if max_additions > MOST_ADDITIONS {
        return Err(Error::new(Code::InvalidBody, format!("max_additions: expected 0 to {MOST_ADDITIONS}, not {max_additions}")));
    }
    let options = StepwiseOptions {
        kinds: asked.kinds.unwrap_or_else(|| defaults.kinds.clone()),
        max_additions,
        eliminate: asked.eliminate.unwrap_or(true),
        ..defaults
    };
    let fit = require_report(&state, id).await?;
    let end = Instant::now() + state.limits().request_time;
    let compute = move |awaited: &Awaited| {
        // Nobody waits for an answer after the request's own time.
        let mut in_time =
            |_: &_| if Instant::now() < end && awaited.is_awaited() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        match stepwise(&fit.problem, &options, &mut in_time) {
            Ok(found) => {
                let estimates: serde_json::Map<_, _> = found.proposed.estimates().map(|(name, x)| (name.to_owned(), json!(x))).collect();
                Ok(json!({ "report": found.report, "model": proposed_model(&found.proposed), "estimates": estimates }))
            }
            Err(StepwiseError::Fit(FitError::Cancelled)) => {
                Err(Error::new(Code::RequestTimeout, "the search took longer than a request may: ask for fewer kinds or additions"))
            }
            Err(error) => Err(Error::new(Code::InvalidFit, chain(&error))),
        }
    };
    Ok(Json(state.compute_long_while(compute).await?).into_response())
}
