//! Designs: what to measure after a fit, computed when asked.

use axum::{Json, body::Body, extract::State, http::HeaderMap, response::IntoResponse};
use indexmap::IndexMap;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AppState, Code, Error,
    body::read_json,
    error::{WriteProblems, chain},
    extract::Id,
    predictions::require_report,
};
use crate::{
    fit::{
        Problem,
        design::{Candidate, Criterion, DesignOptions, Repeats, Target, candidate::around_the_trials, design_while},
    },
    model::{Bindings, Measure},
    predict::Scenarios,
    store::FitId,
};

/// Most operating points that one request can have judged.
pub(super) const MOST_CANDIDATES: usize = 1000;

/// Most operating points times trials to choose of them: the search takes time in proportion to it and more, and with so many it ends
/// while it is waited for.
const MOST_CHOICES: usize = 50_000;

/// What is to be chosen from, and by what.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDesign {
    /// Controlled values that could be run, `NAME=VALUE` or `NAME=FROM..TO[:STEP]`; ranges are crossed. Without these and `points`,
    /// operating points around those of the trials.
    #[serde(default)]
    #[schema(example = json!(["users=1..100:5", "think=5"]))]
    candidates: Vec<String>,
    /// Operating points that could be run, each with its cost and its length in multiples of the trials.
    #[serde(default)]
    points: Vec<PointBody>,
    /// Number of trials to choose, 1 by default; with a budget at most so many. This times the number of operating points is at most 50,000.
    choose: Option<usize>,
    /// What is to be small: `d` (the joint ellipsoid), `a` (the mean square relative error), `c` (the band of `for`).
    #[schema(example = "d")]
    criterion: Option<CriterionBody>,
    /// The prediction to design for.
    #[serde(rename = "for")]
    #[schema(value_type = Option<TargetBody>)]
    target: Option<TargetBody>,
    /// What the trials may cost together; a trial without a cost costs 1.
    budget: Option<f64>,
    /// Whether one operating point may be chosen more than once; by default it may.
    repeats: Option<bool>,
    /// What a new trial measures; as the trials by default.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    measures: Vec<Measure>,
    /// Relative error of a measure of which nothing is known; by default that of the others.
    relative_error: Option<f64>,
}

/// An operating point that could be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PointBody {
    /// Controlled values; what all trials share may be left out.
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    controlled: IndexMap<String, f64>,
    /// What a trial there costs, > 0.
    cost: Option<f64>,
    /// Its length in multiples of the trials, > 0.
    length: Option<f64>,
}

/// A prediction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetBody {
    /// The measure.
    #[schema(value_type = String, example = "response_time(User)")]
    measure: Measure,
    /// The operating point.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(deserialize_with = "crate::model::unique::by_name")]
    at: IndexMap<String, f64>,
}

/// What is to be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CriterionBody {
    /// The volume of the joint ellipsoid.
    D,
    /// The mean square relative error.
    A,
    /// The band of one prediction.
    C,
}

/// Chooses what to measure after a fit: the best trials among candidates, and what each candidate and each additional measure would
/// bring, as `layerfit design --format json` prints it.
#[utoipa::path(post, path = "/v1/fits/{fit_id}/designs", tag = "fits", params(("fit_id" = String, Path)), request_body = NewDesign,
    responses((status = OK, description = "The design", body = Object), WriteProblems))]
pub(super) async fn design_trials(
    State(state): State<AppState>,
    Id(id): Id<FitId>,
    headers: HeaderMap,
    body: Body,
) -> Result<impl IntoResponse, Error> {
    let asked: NewDesign = read_json(&headers, body, &state).await?;
    let names_max = state.limits().names_max;
    if asked.candidates.len() > names_max || asked.measures.len() > names_max {
        return Err(Error::new(Code::InvalidDesign, format!("candidates and measures are taken {names_max} at most")));
    }
    let options = asked.options()?;
    let fit = require_report(&state, id).await?;
    let found = state
        .compute_long_while(move |awaited| {
            let candidates = asked.candidates(&fit.problem)?;
            check_choices(&candidates, &options)?;
            let found = design_while(&fit, &candidates, &options, &awaited.solver(), &|| awaited.is_awaited());
            found.map_err(|error| Error::new(Code::InvalidDesign, chain(&error)))
        })
        .await?;
    Ok(Json(found))
}

/// Refuses a search that would take longer than anybody waits.
fn check_choices(candidates: &[Candidate], options: &DesignOptions) -> Result<(), Error> {
    let least = candidates.iter().map(|c| c.cost.unwrap_or(1.0)).fold(f64::INFINITY, f64::min);
    let (n, most) = (candidates.len(), options.most_chosen(least));
    if n * most <= MOST_CHOICES {
        return Ok(());
    }
    let detail = format!(
        "{most} trials to choose of {n} operating points are too many for a request: expected at most {MOST_CHOICES} trials times points; \
         choose fewer, or give fewer operating points"
    );
    Err(Error::new(Code::InvalidDesign, detail).with("limit", MOST_CHOICES))
}

fn bindings(values: &IndexMap<String, f64>) -> Bindings {
    values.iter().map(|(name, value)| (name.trim_start_matches('$').to_owned(), *value)).collect()
}

impl NewDesign {
    fn options(&self) -> Result<DesignOptions, Error> {
        let refuse = |detail: &str| Err(Error::new(Code::InvalidDesign, detail));
        let target = self.target.as_ref().map(|t| Target { measure: t.measure.clone(), at: bindings(&t.at) });
        let criterion = match (self.criterion, target) {
            (None | Some(CriterionBody::C), Some(target)) => Criterion::C(target),
            (Some(CriterionBody::C), None) => return refuse("criterion c needs for: a measure and the operating point to predict it at"),
            (Some(_), Some(_)) => return refuse("for is what criterion c is for: leave out criterion or say c"),
            (Some(CriterionBody::A), None) => Criterion::A,
            (None | Some(CriterionBody::D), None) => Criterion::D,
        };
        Ok(DesignOptions {
            criterion,
            choose: self.choose,
            budget: self.budget,
            repeats: if self.repeats.unwrap_or(true) { Repeats::Allowed } else { Repeats::Forbidden },
            measures: self.measures.clone(),
            relative_error: self.relative_error,
            ..DesignOptions::default()
        })
    }

    fn candidates(&self, problem: &Problem) -> Result<Vec<Candidate>, Error> {
        let given = self.points.iter().map(|p| Candidate { controlled: bindings(&p.controlled), cost: p.cost, length: p.length });
        let mut found: Vec<Candidate> = given.collect();
        if !self.candidates.is_empty() {
            let scenarios = Scenarios::parse(&self.candidates).map_err(|e| Error::new(Code::InvalidDesign, chain(&e)))?;
            found.extend(scenarios.points().into_iter().map(Candidate::at));
        }
        if self.points.is_empty() && self.candidates.is_empty() {
            found = around_the_trials(problem);
        }
        match found.len() > MOST_CANDIDATES {
            true => {
                let detail = format!("{} operating points are more than the {MOST_CANDIDATES} that are judged at once", found.len());
                Err(Error::new(Code::InvalidDesign, detail))
            }
            false => Ok(found),
        }
    }
}
