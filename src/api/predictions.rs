//! Predictions of a fit, computed when asked.

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use utoipa::IntoParams;

use super::{
    AppState, Code, Error, accept,
    error::{ReadProblems, chain},
    extract::{Id, Params, twice},
    fits::FINEST_PRECISION,
    state::Awaited,
};
use crate::{
    fit::{correction::SimulationOptions, report::Fit},
    model::Measure,
    predict::{PredictOptions, Scenarios, predict_with},
    store::{FitId, jobs::State as JobState},
};

/// Most operating points that one request can have simulated.
const MOST_SIMULATED: usize = 20;

/// Most events of one of them: a few seconds.
const MOST_EVENTS: u64 = 4_000_000;

/// Most operating points of a prediction that waits for short computations only.
pub(super) const MOST_AT_ONCE: usize = 200;

/// What is to be predicted. (Only documents: repeated parameters are read by [`Asked::read`].)
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "its fields stand for the query parameters in the document")]
pub(super) struct PredictionParams {
    /// A controlled value, `NAME=VALUE` or `NAME=FROM..TO[:STEP]`; may be repeated, ranges are crossed.
    #[param(required = false, example = json!(["users=1..100:5", "think=5"]))]
    at: Vec<String>,
    /// A measure; may be repeated. By default the measures of the trials.
    #[param(required = false, example = json!(["response_time(User)"]))]
    measure: Vec<String>,
    /// Level of the bands, in (0, 1); by default the fit's.
    confidence: Option<f64>,
    /// Simulate every operating point too, to this relative half-width, and show what the solver is off by apart from the bands; for 20
    /// operating points at most.
    #[param(minimum = 0.001, example = 0.01)]
    solver_error: Option<f64>,
}

/// The query, read.
#[derive(Debug, Default)]
struct Asked {
    at: Vec<String>,
    measures: Vec<Measure>,
    confidence: Option<f64>,
    solver_error: Option<f64>,
}

impl Asked {
    fn read(pairs: Vec<(String, String)>, names_max: usize) -> Result<Self, Error> {
        let refuse = |detail: String| Err(Error::new(Code::InvalidQuery, detail));
        let mut asked = Self::default();
        for (name, value) in pairs {
            match (name.as_str(), value.parse::<f64>()) {
                ("at", _) => asked.at.push(value),
                ("measure", _) => match value.parse() {
                    Ok(measure) => asked.measures.push(measure),
                    Err(error) => return refuse(format!("measure: {error}")),
                },
                ("confidence", _) if asked.confidence.is_some() => return Err(twice("confidence")),
                ("solver_error", _) if asked.solver_error.is_some() => return Err(twice("solver_error")),
                ("confidence", Ok(level)) if level > 0.0 && level < 1.0 => asked.confidence = Some(level),
                ("confidence", _) => return refuse(format!("confidence={value}: expected a number between 0 and 1")),
                ("solver_error", Ok(precision)) if (FINEST_PRECISION..1.0).contains(&precision) => asked.solver_error = Some(precision),
                ("solver_error", _) => return refuse(format!("solver_error={value}: expected a number from {FINEST_PRECISION} to 1")),
                _ => return refuse(format!("{name}: expected at, measure, confidence or solver_error")),
            }
        }
        if asked.at.len() > names_max || asked.measures.len() > names_max {
            return refuse(format!("at and measure are taken {names_max} times at most"));
        }
        Ok(asked)
    }
}

/// Predicts with a fit: for every combination of controlled values the measures, each with its confidence band.
#[utoipa::path(get, path = "/v1/fits/{fit_id}/predictions", tag = "fits", params(("fit_id" = String, Path), PredictionParams),
    responses(
        (status = OK, description = "A row for each operating point", content((Object = "application/json"), (String = "text/csv"))),
        ReadProblems
    ))]
pub(super) async fn get_predictions(
    State(state): State<AppState>,
    Id(id): Id<FitId>,
    Params(pairs): Params<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let asked = Asked::read(pairs, state.limits().names_max)?;
    let media_type = accept::choose(&headers, &["application/json", "text/csv"])?;
    let fit = require_report(&state, id).await?;
    let scenarios = Scenarios::parse(&asked.at).map_err(|e| refuse(&e))?;
    let n_points = scenarios.n_points();
    if asked.solver_error.is_some() && n_points > MOST_SIMULATED {
        let detail = format!("solver_error is taken for {MOST_SIMULATED} operating points at most");
        return Err(Error::new(Code::InvalidPrediction, detail));
    }
    let is_long = asked.solver_error.is_some() || n_points > MOST_AT_ONCE;
    let compute = move |awaited: &Awaited| {
        let measures = if asked.measures.is_empty() { &fit.problem.trials.measures } else { &asked.measures };
        let confidence = asked.confidence.unwrap_or(fit.problem.confidence);
        let simulation = asked.solver_error.map(|precision| SimulationOptions {
            precision,
            confidence,
            max_events: MOST_EVENTS,
            ..SimulationOptions::default()
        });
        let options = PredictOptions { simulation, ..PredictOptions::new(confidence) };
        let predictions = predict_with(&fit, &scenarios, measures, &options, &awaited.solver()).map_err(|e| refuse(&e))?;
        // A sweep is long as a text, too.
        match media_type {
            "text/csv" => Ok(predictions.to_csv().into_bytes()),
            _ => serde_json::to_vec(&predictions).map_err(Error::internal),
        }
    };
    let content = if is_long { state.compute_long_while(compute).await? } else { state.compute_while(compute).await? };
    Ok(([(header::CONTENT_TYPE, media_type)], content).into_response())
}

fn refuse(error: &dyn std::error::Error) -> Error {
    Error::new(Code::InvalidPrediction, chain(error))
}

/// The report of a fit.
///
/// # Errors
/// [`Code::NotFound`] when there is no such fit, [`Code::FitNotReady`] when it has no report.
pub(super) async fn require_report(state: &AppState, id: FitId) -> Result<Fit, Error> {
    let (job_state, report) = state.store().load_report(id).await?.ok_or_else(|| Error::not_found("fit", id))?;
    report.ok_or_else(|| {
        let detail = match job_state {
            JobState::Queued | JobState::Running => format!("fit {id} is {}: wait for its job to end", job_state.name()),
            _ => format!("fit {id} has no report: its job is {}", job_state.name()),
        };
        Error::new(Code::FitNotReady, detail).with("state", job_state.name())
    })
}
