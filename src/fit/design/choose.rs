//! The next trial, or the best set.

use indexmap::IndexMap;
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::{
    DesignError,
    candidate::Candidate,
    criterion::Objective,
    exchange::{Choice, Found},
    ground::{Ground, Predicted, counts_once, distinct, reason, repeated},
    identify::{IdentifyOptions, values},
    report::{Chosen, Design, RankChange, RankedMeasure, RankedPoint, Search, TargetReport, WidthChange},
    weak::Remedies,
};
use crate::{
    fit::{
        inference::{Identification, direction_in_words},
        problem::{Problem, trials::Trial},
        report::Fit,
        search::{run::FitOptions, solver::SolveFn},
    },
    model::{Bindings, Measure},
    solve::{self, Sensitivities},
};

/// Information added to every direction where a criterion would not exist without it, relative to the largest.
const RIDGE: f64 = 1e-12;

/// Most trials that are chosen at once.
pub const MOST_CHOSEN: usize = 1000;

/// What is to be small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// The volume of the joint confidence ellipsoid of all parameters.
    #[default]
    D,
    /// The mean square relative error of the parameters.
    A,
    /// The variance of one prediction.
    C(Target),
}

/// A prediction: a measure at an operating point, whether or not it can be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The measure.
    pub measure: Measure,
    /// The operating point; what all trials share may be left out.
    #[serde(default)]
    pub at: Bindings,
}

/// Whether one operating point may be chosen more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// It may.
    #[default]
    Allowed,
    /// At most once.
    Forbidden,
}

/// How to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesignOptions {
    /// What is to be small.
    pub criterion: Criterion,
    /// Number of trials, 1 to [`MOST_CHOSEN`]; with a budget at most so many. `None` for one, or with a budget for as many as it pays.
    pub choose: Option<usize>,
    /// What the trials may cost together, > 0; a candidate without a cost costs 1.
    pub budget: Option<f64>,
    /// Whether one operating point may be chosen more than once.
    pub repeats: Repeats,
    /// What a new trial measures; as the trials there are when empty.
    pub measures: Vec<Measure>,
    /// Relative error of a measure of which nothing is known; `None` for that of the others.
    pub relative_error: Option<f64>,
    /// Options of the solver, the derivatives and the rank.
    pub fit: FitOptions,
}

/// What to measure after `fit`: which of `candidates`, and which additional measures.
///
/// # Errors
/// [`DesignError`]; a candidate without a solution is not an error but said in its place.
pub fn design(fit: &Fit, candidates: &[Candidate], options: &DesignOptions) -> Result<Design, DesignError> {
    design_with(fit, candidates, options, &solve::sensitivities)
}

/// As [`design`], with another solver.
///
/// # Errors
/// As [`design`].
pub fn design_with(fit: &Fit, candidates: &[Candidate], options: &DesignOptions, solver: &SolveFn<'_>) -> Result<Design, DesignError> {
    design_while(fit, candidates, options, solver, &|| true)
}

/// As [`design_with`], as long as `keep` says so: it is asked between the steps of the search.
///
/// # Errors
/// As [`design`], and [`DesignError::Abandoned`].
pub fn design_while(
    fit: &Fit,
    candidates: &[Candidate],
    options: &DesignOptions,
    solver: &SolveFn<'_>,
    keep: &dyn Fn() -> bool,
) -> Result<Design, DesignError> {
    options.check()?;
    let corrected = fit.correction.as_ref().map(|c| c.correction.around(solver));
    let solver = corrected.as_deref().unwrap_or(solver);
    let ground = Ground::of_fit(fit, options.relative_error, &options.fit, solver)?;
    choose(&ground, candidates, options, solver, keep)
}

/// What to measure for `problem` before anything is fitted, on top of its trials if it has any: at the starts, with relative errors
/// where the trials state none.
///
/// # Errors
/// As [`design`].
pub fn plan(problem: &Problem, candidates: &[Candidate], options: &DesignOptions) -> Result<Design, DesignError> {
    options.check()?;
    with_candidates(problem, candidates).check_plan()?;
    let share = options.relative_error.unwrap_or(IdentifyOptions::default().relative_error);
    let ground = Ground::assumed(problem, values(problem)?, share, &options.fit, &solve::sensitivities)?;
    choose(&ground, candidates, options, &solve::sensitivities, &|| true)
}

/// The problem with the candidates as its trials, where it has none: they say what is controlled.
fn with_candidates(problem: &Problem, candidates: &[Candidate]) -> Problem {
    let mut planned = problem.clone();
    if planned.trials.trials.is_empty() {
        let n = planned.trials.measures.len();
        let trial = |(i, c): (usize, &Candidate)| Trial {
            id: i.to_string(),
            controlled: c.controlled.clone(),
            measured: vec![None; n],
            ..Trial::default()
        };
        planned.trials.trials = candidates.iter().enumerate().map(trial).collect();
    }
    planned
}

impl DesignOptions {
    /// Most trials that can be chosen of candidates of which the cheapest costs `least`.
    pub fn most_chosen(&self, least: f64) -> usize {
        let affordable = self.budget.map_or(1, |budget| (budget / least * (1.0 + 1e-12)) as usize);
        self.choose.unwrap_or(affordable).min(MOST_CHOSEN)
    }

    fn check(&self) -> Result<(), DesignError> {
        let number = |what, value: f64, expected| Err(DesignError::Option { what, value, expected });
        match (self.choose, self.budget, self.relative_error) {
            (Some(k), ..) if !(1..=MOST_CHOSEN).contains(&k) => number("the number of trials to choose", k as f64, "1 to 1000"),
            (_, Some(b), _) if !(b.is_finite() && b > 0.0) => number("the budget", b, "a number above 0"),
            (.., Some(e)) if !(e.is_finite() && e > 0.0) => number("the relative error", e, "a number above 0"),
            _ => Ok(()),
        }
    }
}

/// Values of a criterion where it exists, with and without more rows.
pub(super) struct Scorer {
    /// Scale of each parameter.
    pub(super) scale: Vec<f64>,
    pub(super) objective: Objective,
    /// Scaled information there is, with the ridge.
    pub(super) start: DMatrix<f64>,
    base: f64,
}

impl Scorer {
    /// A criterion on the information of `ground` and what `every` could add; `objective` is told the scale.
    pub(super) fn new(ground: &Ground<'_>, every: &[&DMatrix<f64>], objective: impl Fn(&[f64]) -> Objective) -> Self {
        let n = ground.free.len();
        let square = |k: usize| {
            let of = |rows: &DMatrix<f64>| rows.column(k).norm_squared();
            of(&ground.rows) + every.iter().map(|rows| of(rows)).fold(0.0, f64::max)
        };
        let scale: Vec<f64> = (0..n).map(|k| square(k).sqrt()).map(|s| if s > 0.0 { s } else { 1.0 }).collect();
        let start = scaled_information(&ground.rows, &scale) + DMatrix::identity(n, n) * RIDGE;
        let objective = objective(&scale);
        let base = objective.value(&start);
        Self { scale, objective, start, base }
    }

    /// Gain of adding `more` rows.
    pub(super) fn gain(&self, more: &[&DMatrix<f64>]) -> f64 {
        let mut s = self.start.clone();
        more.iter().for_each(|rows| s += scaled_information(rows, &self.scale));
        self.objective.value(&s) - self.base
    }
}

/// `D⁻¹ rowsᵀ rows D⁻¹`.
fn scaled_information(rows: &DMatrix<f64>, scale: &[f64]) -> DMatrix<f64> {
    let mut scaled = rows.clone();
    scaled.column_iter_mut().zip(scale).for_each(|(mut c, s)| c.unscale_mut(*s));
    scaled.transpose() * scaled
}

/// The prediction designed for, with its gradient.
struct Aim {
    target: Target,
    value: f64,
    gradient: Vec<f64>,
}

struct Task<'t, 'a> {
    ground: &'t Ground<'a>,
    options: &'t DesignOptions,
    measures: Vec<Measure>,
    aim: Option<Aim>,
    now: Identification,
    /// Whether the criterion exists as things are.
    exists: bool,
    /// What is said of measures that are the same as others.
    repeated_notes: Vec<String>,
}

fn choose(
    ground: &Ground<'_>,
    candidates: &[Candidate],
    options: &DesignOptions,
    solver: &SolveFn<'_>,
    keep: &dyn Fn() -> bool,
) -> Result<Design, DesignError> {
    let mut task = Task::new(ground, options, solver)?;
    let rows = task.rows(candidates, solver)?;
    let more = Remedies::measures(ground, solver);
    let every: Vec<&DMatrix<f64>> = rows.iter().flatten().chain(more.iter().map(|m| &m.1)).collect();
    let scorer = Scorer::new(ground, &every, |scale| task.objective(scale));
    let usable: Vec<usize> = (0..rows.len()).filter(|&j| rows[j].is_ok()).collect();
    if let (true, Some(Err(reason))) = (usable.is_empty(), rows.first()) {
        return Err(DesignError::NoCandidate(reason.clone()));
    }
    let found = task.search(candidates, &rows, &usable, &scorer, keep)?;
    if !keep() {
        return Err(DesignError::Abandoned);
    }
    Ok(task.report(candidates, &rows, &found, &more, &scorer))
}

/// What is predicted where there is a solution, by measure.
fn predicted(n_measures: usize, all: &[Result<Sensitivities, String>]) -> Vec<Vec<Predicted>> {
    let at = |k: usize, (place, s): (usize, &Sensitivities)| Predicted { place, value: s.values[k], slopes: s.jacobian.row(k).transpose() };
    (0..n_measures).map(|k| all.iter().flatten().enumerate().map(|solved| at(k, solved)).collect()).collect()
}

type CandidateRows = Vec<Result<DMatrix<f64>, String>>;

/// A chosen set over all candidates.
struct ChosenSet {
    counts: Vec<usize>,
    search: Search,
    efficiency: Option<f64>,
}

impl<'t, 'a> Task<'t, 'a> {
    fn new(ground: &'t Ground<'a>, options: &'t DesignOptions, solver: &SolveFn<'_>) -> Result<Self, DesignError> {
        let measures = match options.measures.is_empty() {
            true => ground.measures.clone(),
            false => options.measures.clone(),
        };
        if measures.is_empty() {
            return Err(DesignError::NoMeasures);
        }
        measures.iter().try_for_each(|m| solve::measure::check(&ground.problem.model, m))?;
        let aim = match &options.criterion {
            Criterion::C(target) => Some(aim(ground, target, solver)?),
            _ => None,
        };
        let now = ground.with(&[]);
        let exists = aim.as_ref().map_or(now.rank == ground.free.len(), |a| now.sees(&a.gradient) && now.rank > 0);
        Ok(Self { ground, options, measures, aim, now, exists, repeated_notes: Vec::new() })
    }

    fn objective(&self, scale: &[f64]) -> Objective {
        let n = scale.len();
        let values = self.ground.free_values();
        match (&self.options.criterion, &self.aim) {
            (Criterion::A, _) => Objective::Variances(DVector::from_fn(n, |k, _| {
                let size = if values[k] == 0.0 { 1.0 } else { values[k].abs() };
                (scale[k] * size).powi(-2)
            })),
            (_, Some(aim)) => Objective::Combination(DVector::from_fn(n, |k, _| aim.gradient[k] / scale[k])),
            _ => Objective::Determinant,
        }
    }

    /// Rows of each candidate, or why there are none. Of measures that are the same at all of them, whatever the parameters, the first is measured.
    fn rows(&mut self, candidates: &[Candidate], solver: &SolveFn<'_>) -> Result<CandidateRows, DesignError> {
        let mut all: Vec<Result<Sensitivities, String>> = Vec::new();
        for candidate in candidates {
            self.ground.check_names(&candidate.controlled)?;
            let positive = |v: Option<f64>| v.is_none_or(|v| v.is_finite() && v > 0.0);
            if let Some(cost) = candidate.cost.filter(|c| !positive(Some(*c))) {
                return Err(DesignError::Option { what: "a cost", value: cost, expected: "a number above 0" });
            }
            if let Some(length) = candidate.length.filter(|l| !positive(Some(*l))) {
                return Err(DesignError::Option { what: "a length", value: length, expected: "a number above 0" });
            }
            all.push(match self.ground.at(&candidate.controlled, &self.measures, solver) {
                Ok(solved) => Ok(solved),
                Err(error @ DesignError::Solution(_)) => Err(reason(&error)),
                Err(other) => return Err(other),
            });
        }
        let repeated = if self.ground.errors.are_correlated() { Vec::new() } else { repeated(&predicted(self.measures.len(), &all)) };
        let places = distinct(self.measures.len(), &repeated);
        let rows = |(solved, candidate): (Result<Sensitivities, String>, &Candidate)| {
            solved.map(|solved| self.ground.rows_of(&solved, candidate, &self.measures, &places))
        };
        let rows = all.into_iter().zip(candidates).map(rows).collect();
        self.repeated_notes = repeated.iter().map(|(k, first)| counts_once(&self.measures[*k], &self.measures[*first])).collect();
        self.measures = places.iter().map(|&k| self.measures[k].clone()).collect();
        Ok(rows)
    }

    fn search(
        &self,
        candidates: &[Candidate],
        rows: &CandidateRows,
        usable: &[usize],
        scorer: &Scorer,
        keep: &dyn Fn() -> bool,
    ) -> Result<ChosenSet, DesignError> {
        let mut counts = vec![0; candidates.len()];
        if usable.is_empty() {
            return Ok(ChosenSet { counts, search: Search::Exhaustive, efficiency: None });
        }
        let has_costs = candidates.iter().any(|c| c.cost.is_some()) || self.options.budget.is_some();
        let costs: Vec<f64> = usable.iter().map(|&j| candidates[j].cost.unwrap_or(1.0)).collect();
        let information: Vec<DMatrix<f64>> =
            usable.iter().filter_map(|&j| rows[j].as_ref().ok()).map(|r| scaled_information(r, &scorer.scale)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        if let Some(budget) = self.options.budget.filter(|b| *b < least) {
            return Err(DesignError::Budget { budget, least });
        }
        let most = self.options.most_chosen(least);
        let most_of_one = if self.options.repeats == Repeats::Allowed { most } else { 1 };
        let choice = Choice {
            objective: &scorer.objective,
            start: scorer.start.clone(),
            information: &information,
            costs: has_costs.then_some(costs.as_slice()),
            most: most.min(most_of_one * usable.len()),
            budget: self.options.budget,
            most_of_one,
            keep,
        };
        let Found { counts: found, exhaustive } = choice.best().ok_or(DesignError::Abandoned)?;
        let efficiency = if exhaustive { Some(1.0) } else { choice.efficiency(&found) };
        usable.iter().zip(&found).for_each(|(&j, &n)| counts[j] = n);
        let search = if exhaustive { Search::Exhaustive } else { Search::Exchange };
        Ok(ChosenSet { counts, search, efficiency })
    }

    fn ratio(&self, gain: f64) -> Option<f64> {
        self.exists.then(|| (-0.5 * gain).exp())
    }

    fn target_half_width(&self, found: &Identification, n_more: usize) -> Option<f64> {
        self.ground.half_width_of(found, &self.aim.as_ref()?.gradient, n_more)
    }

    fn report(
        &self,
        candidates: &[Candidate],
        rows: &CandidateRows,
        set: &ChosenSet,
        more: &[(Measure, DMatrix<f64>)],
        scorer: &Scorer,
    ) -> Design {
        let taken: Vec<&DMatrix<f64>> =
            rows.iter().zip(&set.counts).filter_map(|(r, &n)| Some((r.as_ref().ok()?, n))).flat_map(|(r, n)| vec![r; n]).collect();
        let n_more = taken.iter().map(|r| r.nrows()).sum();
        let after = self.ground.with(&taken);
        let (now_widths, after_widths) = (self.ground.half_widths(&self.now, 0), self.ground.half_widths(&after, n_more));
        let values = self.ground.free_values();
        let parameters = now_widths.iter().enumerate().map(|(k, (name, now))| {
            (name.clone(), WidthChange { estimate: values[k], half_width_now: *now, half_width_after: after_widths[k] })
        });
        let words = |found: &Identification| {
            let of = |d: &DVector<f64>| direction_in_words(d.as_slice(), &self.ground.names, &found.scale);
            found.null_directions.iter().map(of).collect::<Vec<String>>()
        };
        let has_costs = candidates.iter().any(|c| c.cost.is_some());
        let cost: f64 = candidates.iter().zip(&set.counts).map(|(c, &n)| n as f64 * c.cost.unwrap_or(1.0)).sum();
        let chosen = candidates.iter().zip(&set.counts).filter(|(_, n)| **n > 0);
        Design {
            criterion: self.options.criterion.clone(),
            measures: self.measures.clone(),
            confidence: self.ground.confidence,
            chosen: chosen.map(|(c, &times)| Chosen { candidate: c.clone(), times }).collect(),
            total_cost: has_costs.then_some(cost),
            width_ratio: self.ratio(scorer.gain(&taken)).filter(|_| !taken.is_empty()),
            efficiency: set.efficiency.filter(|_| !taken.is_empty() && after.rank == self.ground.free.len()),
            search: set.search,
            rank: RankChange { now: self.now.rank, after: after.rank, of: self.ground.free.len() },
            unidentified_now: words(&self.now),
            unidentified_after: words(&after),
            parameters: parameters.collect(),
            target: self.aim.as_ref().map(|aim| TargetReport {
                measure: aim.target.measure.clone(),
                at: aim.target.at.clone(),
                value: aim.value,
                half_width_now: self.target_half_width(&self.now, 0),
                half_width_after: self.target_half_width(&after, n_more),
            }),
            candidates: self.ranked_points(candidates, rows, scorer),
            additional_measures: self.ranked_measures(more, scorer),
            notes: self.notes(more, set.counts.iter().sum(), n_more),
        }
    }

    fn ranked_points(&self, candidates: &[Candidate], rows: &CandidateRows, scorer: &Scorer) -> Vec<RankedPoint> {
        let mut ranked: Vec<(f64, RankedPoint)> = candidates
            .iter()
            .zip(rows)
            .map(|(candidate, rows)| {
                let candidate = candidate.clone();
                let Ok(rows) = rows else {
                    let (failure, half_widths) = (rows.as_ref().err().cloned(), IndexMap::new());
                    let unusable =
                        RankedPoint { candidate, width_ratio: None, rank: self.now.rank, half_widths, target_half_width: None, failure };
                    return (f64::NEG_INFINITY, unusable);
                };
                let (gain, found) = (scorer.gain(&[rows]), self.ground.with(&[rows]));
                let point = RankedPoint {
                    width_ratio: self.ratio(gain),
                    rank: found.rank,
                    half_widths: self.ground.half_widths(&found, rows.nrows()),
                    target_half_width: self.target_half_width(&found, rows.nrows()),
                    failure: None,
                    candidate,
                };
                (gain / point.candidate.cost.unwrap_or(1.0), point)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().map(|(_, point)| point).collect()
    }

    fn ranked_measures(&self, more: &[(Measure, DMatrix<f64>)], scorer: &Scorer) -> Vec<RankedMeasure> {
        let judged = |(measure, rows): &(Measure, DMatrix<f64>)| {
            let (gain, found) = (scorer.gain(&[rows]), self.ground.with(&[rows]));
            let ranked = RankedMeasure {
                measure: measure.clone(),
                width_ratio: self.ratio(gain),
                rank: found.rank,
                half_widths: self.ground.half_widths(&found, rows.nrows()),
                target_half_width: self.target_half_width(&found, rows.nrows()),
            };
            (gain, ranked)
        };
        let mut ranked: Vec<(f64, RankedMeasure)> = more.iter().map(judged).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().map(|(_, measure)| measure).collect()
    }

    fn notes(&self, more: &[(Measure, DMatrix<f64>)], n_chosen: usize, n_more: usize) -> Vec<String> {
        let mut notes = self.ground.notes.clone();
        notes.extend(self.repeated_notes.iter().filter(|note| !self.ground.notes.contains(note)).cloned());
        if n_chosen > 0 && self.ground.dof.is_some_and(|dof| dof.after(n_more) == 0) {
            notes.push("no more values than parameters then: a fit has nothing left to estimate its errors from, and no intervals".into());
        }
        if let Some(asked) = self.options.choose.filter(|asked| n_chosen > 0 && n_chosen < *asked) {
            notes.push(format!(
                "{n_chosen} operating points are chosen of the {asked} asked for: there are no more to choose without repeats"
            ));
        }
        let unknown = self.measures.iter().chain(more.iter().map(|m| &m.0)).any(|m| !self.ground.errors.knows(m));
        if unknown {
            let percent = crate::fit::digits::four_digits(100.0 * self.ground.errors.otherwise);
            notes.push(format!("a measure that the trials do not have is taken to be measured with a relative error of {percent} %"));
        }
        if self.now.rank < self.ground.free.len() {
            notes.push("the information there is does not determine all parameters: what cures that comes first".into());
        }
        notes
    }
}

fn aim(ground: &Ground<'_>, target: &Target, solver: &SolveFn<'_>) -> Result<Aim, DesignError> {
    ground.check_names(&target.at)?;
    solve::measure::check(&ground.problem.model, &target.measure)?;
    let solved = ground.at(&target.at, std::slice::from_ref(&target.measure), solver)?;
    let gradient: Vec<f64> = solved.jacobian.row(0).iter().copied().collect();
    if gradient.iter().all(|g| *g == 0.0) {
        return Err(DesignError::Certain(target.measure.clone()));
    }
    Ok(Aim { target: target.clone(), value: solved.values[0], gradient })
}
