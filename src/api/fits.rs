//! Fits: asked for by a client, done by a job.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    AppState, Code, Error,
    body::read_json,
    error::{ReadProblems, WriteProblems, chain},
    extract::{Id, PageBody, PageParams, Params, page_request},
    systems::require_system,
};
use crate::{
    fit::problem::{Estimated, Method, Prior, Transform, Weighting},
    model::Bindings,
    store::{
        FitId, JobId, ModelId, SystemId, Timestamp, TrialsId,
        fits::{FitHeader, NewFit, Options, StoredFit},
        jobs::{Failure, State as JobState},
        models::StoredModel,
        trials::StoredTrials,
    },
};

/// Finest precision that a request can ask of a simulation.
pub(super) const FINEST_PRECISION: f64 = 0.001;

/// Level of intervals and tests when the client does not say.
const CONFIDENCE_DEFAULT: f64 = 0.95;

/// A fit to be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFitBody {
    /// The version of the trials to fit to; of the same system as the model.
    #[schema(value_type = String, format = Uuid)]
    pub(super) trials: String,
    /// Parameters to be estimated, each with its start and bounds, or with its start alone.
    #[schema(value_type = BTreeMap<String, EstimateBody>, example = json!({"dbD": {"start": 0.1, "min": 0}}))]
    #[serde(deserialize_with = "crate::model::unique::map")]
    pub(super) estimate: IndexMap<String, EstimateBody>,
    /// Known constants by parameter name; they overrule the model's own definitions.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    pub(super) assumed: IndexMap<String, f64>,
    /// `auto` weighs by the standard errors or weights of the trials, else each measure by its own residual variance;
    /// `residual` always by the latter; `replicates` by the covariance of trials at one operating point; `none` is plain least squares.
    #[serde(default, deserialize_with = "super::body::null_as_default")]
    #[schema(value_type = Option<String>, example = "auto")]
    pub(super) weighting: Weighting,
    /// Level of intervals and tests, in (0, 1).
    #[schema(default = 0.95)]
    pub(super) confidence: Option<f64>,
    /// What else is asked: `loss` (`{"kind": "huber", "threshold": 1.345}`), `error_scale` (`estimated`, `known`), `intervals`
    /// (`wald`, `profile`, `sandwich`), `starts` and `bootstrap` (`{"n", "seed"}`), `leave_one_trial_out`, `correct_solver` (`{"simulation": {"precision",
    /// "seed"}}`: correct the fit for the solver's error).
    #[serde(default, deserialize_with = "super::body::null_as_default")]
    #[schema(value_type = Option<Object>)]
    pub(super) method: Method,
}

/// How a parameter is to be estimated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a start, or an object of start, min, max (numbers), prior (three numbers) and transform (\"log\"), and nothing else"
)]
pub(super) enum EstimateBody {
    /// Where the search starts.
    Start(f64),
    /// Start and bounds.
    Bounded(#[serde(deserialize_with = "crate::model::unique::object")] BoundedBody),
}

/// Start and bounds of a parameter.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BoundedBody {
    /// Where the search starts; chosen from the data when absent.
    start: Option<f64>,
    /// Lower bound.
    min: Option<f64>,
    /// Upper bound.
    max: Option<f64>,
    /// What experts expect: least, most likely, most.
    #[schema(value_type = Option<Vec<f64>>)]
    prior: Option<Prior>,
    /// `log` searches it by its logarithm.
    #[serde(default, deserialize_with = "super::body::null_as_default")]
    #[schema(value_type = Option<String>, example = "log")]
    transform: Transform,
}

/// A fit without its report.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FitHeaderBody {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    id: FitId,
    /// The system it is of.
    #[schema(value_type = String, format = Uuid)]
    system: SystemId,
    /// The model version that is fitted.
    #[schema(value_type = String, format = Uuid)]
    model: ModelId,
    /// The version of the trials that it is fitted to.
    #[schema(value_type = String, format = Uuid)]
    trials: TrialsId,
    /// What else was asked: `estimate`, `assumed`, `weighting`, `confidence`.
    #[schema(value_type = Object)]
    options: Options,
    /// Where it stands.
    #[schema(value_type = String, example = "queued")]
    state: JobState,
    /// The job that does it.
    #[schema(value_type = String, format = Uuid)]
    job: JobId,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody>,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A fit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FitBody {
    /// Its header.
    #[serde(flatten)]
    header: FitHeaderBody,
    /// The report as `layerfit fit --format json` prints it, once the fit has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    report: Option<IndexMap<String, Value>>,
}

/// Why work failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailureBody {
    /// Stable code: `extraction_failed`, `fit_failed`, `crashed`, `internal`.
    code: String,
    /// For a person.
    message: String,
}

impl From<Failure> for FailureBody {
    fn from(failure: Failure) -> Self {
        Self { code: failure.code, message: failure.message }
    }
}

impl From<FitHeader> for FitHeaderBody {
    fn from(header: FitHeader) -> Self {
        Self {
            id: header.id,
            system: header.system_id,
            model: header.model_id,
            trials: header.trials_id,
            options: header.options,
            state: header.state,
            job: header.job_id,
            error: header.failure.map(Into::into),
            created_at: header.created_at,
        }
    }
}

impl From<StoredFit> for FitBody {
    fn from(fit: StoredFit) -> Self {
        Self { header: fit.header.into(), report: fit.report }
    }
}

/// Queues a fit of this model version to a version of the trials.
#[utoipa::path(post, path = "/v1/models/{model_id}/fits", tag = "fits", params(("model_id" = String, Path)),
    request_body = NewFitBody,
    responses((status = ACCEPTED, description = "The fit, queued", body = FitHeaderBody, headers(("location" = String))), WriteProblems))]
pub(super) async fn create_fit(
    State(state): State<AppState>,
    Id(model): Id<ModelId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let asked: NewFitBody = read_json(&headers, body, &state).await?;
    let model = require_model(&state, model).await?;
    let trials = trials_of(&state, &asked.trials, model.header.system_id).await?;
    let options = options(asked, state.limits().names_max)?;
    let (system, model_id, trials_id) = (model.header.system_id, model.header.id, trials.header.id);
    let options = state.compute(move || checked(model, trials, options)).await?;
    let fit = state.store().insert_fit(NewFit { system, model: model_id, trials: trials_id, options: &options }).await?;
    state.jobs().wake();
    let location = format!("/v1/fits/{}", fit.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(FitHeaderBody::from(fit))).into_response())
}

pub(super) async fn require_model(state: &AppState, id: ModelId) -> Result<StoredModel, Error> {
    state.store().load_model(id).await?.ok_or_else(|| Error::not_found("model", id))
}

pub(super) async fn trials_of(state: &AppState, id: &str, system: SystemId) -> Result<StoredTrials, Error> {
    let unknown = || Error::new(Code::UnknownReference, format!("trials: the model's system has no trials {id}"));
    let id: TrialsId = id.parse().map_err(|_| unknown())?;
    state.store().load_trials(id).await?.filter(|t| t.header.system_id == system).ok_or_else(unknown)
}

pub(super) fn options(asked: NewFitBody, names_max: usize) -> Result<Options, Error> {
    let n_names = asked.estimate.len() + asked.assumed.len();
    if asked.estimate.is_empty() {
        return Err(Error::new(Code::InvalidFit, "estimate: there is nothing to estimate, expected at least one parameter"));
    }
    if n_names > names_max {
        let detail = format!("expected at most {names_max} parameters in estimate and assumed, not {n_names}");
        return Err(Error::new(Code::InvalidFit, detail));
    }
    if let Some(precision) = asked.method.correct_solver.map(|c| c.simulation.precision).filter(|p| *p < FINEST_PRECISION) {
        let detail = format!("method.correct_solver.simulation.precision={precision}: expected {FINEST_PRECISION} to 1");
        return Err(Error::new(Code::InvalidFit, detail));
    }
    let bare = |name: &str| name.trim_start_matches('$').to_owned();
    let estimate = asked.estimate.into_iter().map(|(name, how)| {
        let BoundedBody { start, min, max, prior, transform } = match how {
            EstimateBody::Start(start) => BoundedBody { start: Some(start), ..BoundedBody::default() },
            EstimateBody::Bounded(bounded) => bounded,
        };
        Estimated { name: bare(&name), start, min, max, prior, transform }
    });
    Ok(Options {
        estimate: estimate.collect(),
        assumed: asked.assumed.iter().map(|(name, value)| (bare(name), *value)).collect::<Bindings>(),
        weighting: asked.weighting,
        confidence: asked.confidence.unwrap_or(CONFIDENCE_DEFAULT),
        method: asked.method,
    })
}

/// The options, if the problem that they make can be fitted at all.
fn checked(model: StoredModel, trials: StoredTrials, options: Options) -> Result<Options, Error> {
    let problem = options.clone().problem(model.model, trials.trials);
    problem.check().map_err(|error| Error::new(Code::InvalidFit, chain(&error)))?;
    Ok(options)
}

/// Lists the fits of a model version in order of creation.
#[utoipa::path(get, path = "/v1/models/{model_id}/fits", tag = "fits", params(("model_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of fits", body = PageBody<FitHeaderBody>), ReadProblems))]
pub(super) async fn list_model_fits(
    State(state): State<AppState>,
    Id(model): Id<ModelId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<FitHeaderBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    let system = require_model(&state, model).await?.header.system_id;
    let page = state.store().list_fits(system, Some(model), page).await?;
    Ok(Json(PageBody::from_page(page, |fit| fit.id, FitHeaderBody::from)))
}

/// Lists the fits of a system in order of creation.
#[utoipa::path(get, path = "/v1/systems/{system_id}/fits", tag = "fits", params(("system_id" = String, Path), PageParams),
    responses((status = OK, description = "A page of fits", body = PageBody<FitHeaderBody>), ReadProblems))]
pub(super) async fn list_system_fits(
    State(state): State<AppState>,
    Id(system): Id<SystemId>,
    Params(params): Params<PageParams>,
) -> Result<Json<PageBody<FitHeaderBody>>, Error> {
    let page = page_request(&state, params.limit, params.after.as_deref())?;
    require_system(&state, system).await?;
    let page = state.store().list_fits(system, None, page).await?;
    Ok(Json(PageBody::from_page(page, |fit| fit.id, FitHeaderBody::from)))
}

/// A fit, with its report once it has succeeded.
#[utoipa::path(get, path = "/v1/fits/{fit_id}", tag = "fits", params(("fit_id" = String, Path)),
    responses((status = OK, description = "The fit", body = FitBody), ReadProblems))]
pub(super) async fn get_fit(State(state): State<AppState>, Id(id): Id<FitId>) -> Result<Json<FitBody>, Error> {
    let fit = state.store().load_fit(id).await?.ok_or_else(|| Error::not_found("fit", id))?;
    Ok(Json(fit.into()))
}
