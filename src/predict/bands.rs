//! Predicted values with their bands.
//!
//! At controlled values `u`, with `H = dh/dx` at the estimates and `P` their covariance:
//!
//! ```text
//! C_ii = H_i P H_iᵀ
//! mean:             h_i(x, u) ± t(1 - α/2; dof) √C_ii
//! a new measurement: h_i(x, u) ± t(1 - α/2; dof) √(C_ii + mse R_ii)
//! ```
//!
//! with the degrees of freedom of the residuals; where several variances are estimated from these, with those of the band's own variance
//! ([`crate::fit::inference::variances`]).
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `H_i` | derivatives of measure `i` by the free parameters | `(n_free)` |
//! | `P` | covariance of the estimates, `mse (D'WD)⁻¹` | `(n_free, n_free)` |
//! | `mse R_ii` | error variance of one measurement of measure `i`, as the trials around had it ([`crate::fit::report`], `new_errors`) | scalar |
//!
//! What is measured is never below zero, nor are more servers busy than there are: bands end there, which the row says, as a linear band that
//! reaches beyond is a rough one. So is one within which the prediction bends ([`super::bend`]), which the row says, too.
//!
//! A band is absent, with its reason, where it would be of no width or where the covariance cannot carry it: it depends on
//! a combination of parameters that the trials do not determine, no error could be estimated, or no parameter matters.
//! Where a simulation is asked for, what the solver is off by stands apart: `δ = s - h` with the half-width `w` of the simulated mean
//! `s`. The bands with it reach from `lower + min(0, δ - w)` to `upper + max(0, δ + w)`. Values of a fit that was corrected for the
//! solver's error ([`crate::fit::correction`]) are corrected here too, by the ratios of its trials.
//!
//! Source: M. Woodside, SIPEW 2008, section 3; the second band and the solver's error are our addition.

use indexmap::{IndexMap, IndexSet};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use crate::{
    fit::{
        Fit, ParameterEstimate,
        correction::{SimulationOptions, simulated},
        new_errors::{NO_WIDTH, NewErrors},
        parameter_uses::parameter_uses,
        solver::{SolveFn, solve_point},
        utilization::measured_resource,
    },
    model::{Bindings, Measure},
    solve::{self, Sensitivities, SolveError, SolveOptions},
};

use super::scenario::Scenarios;

/// How far, per server, a utilization may exceed the largest of the trials before that is remarked.
pub(super) const UTILIZATION_MARGIN: f64 = 0.10;

/// How to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictOptions {
    /// Level of the bands, in (0, 1).
    pub confidence: f64,
    /// Options of the solver.
    pub solve: SolveOptions,
    /// Simulate every operating point too, and show what the solver is off by.
    pub simulation: Option<SimulationOptions>,
}

impl PredictOptions {
    /// Bands of level `confidence` by the analytic solver.
    pub fn new(confidence: f64) -> Self {
        Self { confidence, solve: SolveOptions::default(), simulation: None }
    }
}

/// Predictions at all operating points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// Level of the bands.
    pub confidence: f64,
    /// Predicted measures, in column order.
    pub measures: Vec<Measure>,
    /// One for each operating point, in the order of the scenarios.
    pub rows: Vec<PredictedRow>,
    /// Remarks that hold for every row.
    pub notes: Vec<String>,
}

/// Predictions at one operating point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedRow {
    /// The operating point.
    pub controlled: Bindings,
    /// Predicted values; empty where the model has no solution, with the reason in `failure`.
    pub measures: IndexMap<Measure, PredictedMeasure>,
    /// Whether the point lies outside what was measured.
    pub extrapolated: bool,
    /// Why there is no prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What a reader of this row should know.
    pub notes: Vec<String>,
}

/// A predicted value with its bands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedMeasure {
    /// The predicted mean.
    pub mean: f64,
    /// Lower end of the confidence band of the mean.
    pub lower: Option<f64>,
    /// Upper end of the confidence band of the mean.
    pub upper: Option<f64>,
    /// Lower end of the band of one new measurement, error of measurement included.
    pub new_lower: Option<f64>,
    /// Upper end of the band of one new measurement.
    pub new_upper: Option<f64>,
    /// What the solver is off by here, apart from the bands; absent where it was not asked for, or the model cannot be simulated.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub solver_error: Option<SolverError>,
    /// Why there is no band of the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_band: Option<String>,
    /// Why there is no band of a new measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_new_band: Option<String>,
}

/// What a predicted mean is off by as far as a simulation of the same model tells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolverError {
    /// Mean of the simulation.
    pub mean_simulated: f64,
    /// `mean_simulated` less the predicted mean.
    pub solver_error: f64,
    /// Half-width of the simulation's own confidence interval; absent where there were too few batches.
    pub solver_error_half_width: Option<f64>,
    /// Lower end of the band of the mean, extended by the solver's error and the simulation's half-width where they reach below.
    pub lower_with_solver_error: Option<f64>,
    /// Upper end of the band of the mean, extended likewise.
    pub upper_with_solver_error: Option<f64>,
    /// Lower end of the band of a new measurement, extended likewise.
    pub new_lower_with_solver_error: Option<f64>,
    /// Upper end of the band of a new measurement, extended likewise.
    pub new_upper_with_solver_error: Option<f64>,
}

/// Why there are no predictions.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PredictError {
    /// Confidence outside (0, 1).
    #[error("confidence {0} is not between 0 and 1")]
    Confidence(f64),
    /// A measure that the model does not have.
    #[error(transparent)]
    Measure(#[from] SolveError),
    /// A name that the model does not use.
    #[error("\"{name}\" is not a parameter of the model (it uses ${})", .available.join(", $"))]
    UnknownName {
        /// The name.
        name: String,
        /// Names that the model uses.
        available: Vec<String>,
    },
    /// A controlled value that is neither given nor the same in all trials.
    #[error("{name} must be given: the trials have it from {low} to {high}")]
    Missing {
        /// The name.
        name: String,
        /// Its smallest value in the trials.
        low: f64,
        /// Its largest.
        high: f64,
    },
}

/// Predicts `measures` (each once; those of the trials when empty) with the fitted model at `scenarios`, with bands of level
/// `confidence`.
///
/// # Errors
/// [`PredictError`]; an operating point without a solution is not an error but said in its row.
pub fn predict(fit: &Fit, scenarios: &Scenarios, measures: &[Measure], confidence: f64) -> Result<Predictions, PredictError> {
    predict_with(fit, scenarios, measures, &PredictOptions::new(confidence), &solve::sensitivities)
}

/// As [`predict`], with options and another solver.
///
/// # Errors
/// As [`predict`].
pub fn predict_with(
    fit: &Fit,
    scenarios: &Scenarios,
    measures: &[Measure],
    options: &PredictOptions,
    solver: &SolveFn<'_>,
) -> Result<Predictions, PredictError> {
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return Err(PredictError::Confidence(options.confidence));
    }
    let asked = if measures.is_empty() { &fit.problem.trials.measures } else { measures };
    let measures: Vec<Measure> = asked.iter().cloned().collect::<IndexSet<_>>().into_iter().collect();
    measures.iter().try_for_each(|m| solve::measure::check(&fit.problem.model, m))?;
    let mut ground = Ground::new(fit, scenarios, options)?;
    ground.notes.extend(uncorrected(fit, &measures));
    let corrected = fit.correction.as_ref().map(|c| c.correction.around(solver));
    let solver = corrected.as_deref().unwrap_or(solver);
    let rows = scenarios.points().into_iter().map(|point| ground.row(point, &measures, solver)).collect();
    Ok(Predictions { confidence: options.confidence, measures, rows, notes: ground.notes })
}

/// Measures that a corrected fit knows nothing of.
fn uncorrected(fit: &Fit, measures: &[Measure]) -> Option<String> {
    let correction = &fit.correction.as_ref()?.correction;
    let without: Vec<String> = measures.iter().filter(|m| !correction.covers(m)).map(ToString::to_string).collect();
    let words = "is not among the measures that the fit was corrected by: its values are the solver's own";
    (!without.is_empty()).then(|| format!("{} {words}", without.join(", ")))
}

/// What all rows have in common.
pub(super) struct Ground<'a> {
    pub(super) fit: &'a Fit,
    pub(super) options: &'a PredictOptions,
    /// Assumptions, constants of the trials and estimates; scenarios overrule them.
    pub(super) base: Bindings,
    /// Free parameters that no scenario sets: those that carry the band.
    pub(super) varied: Vec<String>,
    /// Places, among the free parameters, of those that a scenario sets and whose value in the trials is certain.
    known: Vec<usize>,
    /// Whether there are degrees of freedom for any band.
    has_bands: bool,
    errors: NewErrors,
    notes: Vec<String>,
}

impl<'a> Ground<'a> {
    fn new(fit: &'a Fit, scenarios: &Scenarios, options: &'a PredictOptions) -> Result<Self, PredictError> {
        let uses = parameter_uses(&fit.problem.model);
        let is_set = |name: &str| scenarios.axes.iter().any(|a| a.name == name);
        let defined = |name: &str| fit.problem.model.parameters.iter().any(|p| p.name == name);
        if let Some(axis) = scenarios.axes.iter().find(|a| !uses.contains_key(&a.name) && !defined(&a.name)) {
            return Err(PredictError::UnknownName { name: axis.name.clone(), available: uses.into_keys().collect() });
        }
        let mut notes = Vec::new();
        let mut base = fit.problem.assumed.clone();
        for name in fit.problem.trials.controlled_names().into_iter().filter(|name| !is_set(name)) {
            match fit.problem.trials.controlled_range(name) {
                Some((low, high)) if low == high => base.set(name, low),
                Some((low, high)) => return Err(PredictError::Missing { name: name.to_owned(), low, high }),
                None => {}
            }
        }
        fit.estimates().for_each(|(name, value)| base.set(name, value));
        let mut known = Vec::new();
        for axis in scenarios.axes.iter().filter(|axis| fit.parameters.contains_key(&axis.name)) {
            let was = match fit.identifiability.free.iter().position(|free| *free == axis.name) {
                Some(place) if is_certain(fit, &axis.name) => {
                    known.push(place);
                    "and what it was in the trials is taken as known"
                }
                _ => "as what it is to be: what is not known of it in the trials stays in the bands, by the other estimates",
            };
            notes.push(format!("{} was estimated; here it is set, {was}", axis.name));
        }
        for axis in scenarios.axes.iter().filter(|axis| fit.derived.contains_key(&axis.name)) {
            notes.push(format!("{} is tied to estimated parameters; here it is set, and follows them no longer", axis.name));
        }
        for (name, _) in fit.parameters.iter().filter(|(name, _)| !is_set(name) && !fit.identifiability.free.contains(name)) {
            notes.push(format!("{name} is at its bound and taken as known: the bands are too narrow by what is not known of it"));
        }
        let varied = fit.identifiability.free.iter().filter(|name| !is_set(name)).cloned().collect();
        let has_bands = fit.quantile(options.confidence).is_some();
        Ok(Self { fit, options, base, varied, known, has_bands, errors: NewErrors::of(fit), notes })
    }

    fn row(&self, controlled: Bindings, measures: &[Measure], solver: &SolveFn<'_>) -> PredictedRow {
        let mut values = self.base.clone();
        controlled.iter().for_each(|(name, value)| values.set(name, value));
        let label = controlled.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ");
        let model = &self.fit.problem.model;
        match solve_point(model, &values, &self.varied, measures, &self.options.solve, solver, &label) {
            Ok(solved) => self.solved_row(controlled, &values, measures, &solved, solver),
            Err(error) => {
                let notes = self.outside(&controlled);
                let extrapolated = !notes.is_empty();
                PredictedRow { controlled, measures: IndexMap::new(), extrapolated, failure: Some(error.reason()), notes }
            }
        }
    }

    fn solved_row(
        &self,
        controlled: Bindings,
        values: &Bindings,
        measures: &[Measure],
        solved: &Sensitivities,
        solver: &SolveFn<'_>,
    ) -> PredictedRow {
        let mut notes = self.outside(&controlled);
        notes.extend(self.busier(values, solved));
        let extrapolated = !notes.is_empty();
        notes.extend(solved.solution.diagnostics.iter().map(|d| format!("solver: {d}")));
        let predicted = measures.iter().enumerate().map(|(i, measure)| {
            let row: Vec<f64> = solved.jacobian.row(i).iter().copied().collect();
            (measure.clone(), self.banded(measure, values, solved.values[i], &row))
        });
        let predicted: IndexMap<Measure, PredictedMeasure> = predicted.collect();
        notes.extend(self.bends(&predicted, values, solved, solver));
        let mut row = PredictedRow { controlled, measures: predicted, extrapolated, failure: None, notes };
        self.keep_possible(&mut row, values);
        if let Some(how) = &self.options.simulation {
            self.simulate(&mut row, values, measures, how);
        }
        row
    }

    /// The largest value that can be measured.
    fn most(&self, measure: &Measure, values: &Bindings) -> f64 {
        measured_resource(&self.fit.problem.model, values, measure).map_or(f64::INFINITY, |(_, servers)| servers)
    }

    /// Ends bands at zero and at the number of servers.
    fn keep_possible(&self, row: &mut PredictedRow, values: &Bindings) {
        for (measure, predicted) in &mut row.measures {
            let most = self.most(measure, values);
            let mut keep = |what: &str, lower: &mut Option<f64>, upper: &mut Option<f64>| {
                if lower.is_some_and(|l| l < 0.0) {
                    *lower = Some(0.0);
                    row.notes.push(format!("{measure}: {what} would reach below 0, and ends there: it is a rough one"));
                }
                // A mean beyond the servers, by the solver's error, stays in its band.
                if upper.is_some_and(|u| u > most) {
                    *upper = Some(most.max(predicted.mean));
                    row.notes.push(format!("{measure}: {what} would reach above all {most}, and ends there: it is a rough one"));
                }
            };
            keep("the band of the mean", &mut predicted.lower, &mut predicted.upper);
            keep("the band of a new measurement", &mut predicted.new_lower, &mut predicted.new_upper);
        }
    }

    /// Adds what a simulation gives.
    fn simulate(&self, row: &mut PredictedRow, values: &Bindings, measures: &[Measure], how: &SimulationOptions) {
        match simulated(&self.fit.problem.model, values, measures, how, None) {
            Ok(found) => {
                for (k, (measure, predicted)) in row.measures.iter_mut().enumerate() {
                    let most = self.most(measure, values);
                    predicted.solver_error = Some(SolverError::of(predicted, found.values[k], found.half_widths[k], most));
                }
                if found.precision.is_infinite() {
                    row.notes
                        .push("simulated for too short a time to say how precisely, with all the events that a simulation may take".into());
                } else if found.precision > how.precision {
                    row.notes.push(format!(
                        "simulated to {:.2} % only, with all the events that a simulation may take",
                        100.0 * found.precision
                    ));
                }
            }
            Err(error) => row.notes.push(format!("not simulated: {error}")),
        }
    }

    fn banded(&self, measure: &Measure, values: &Bindings, mean: f64, row: &[f64]) -> PredictedMeasure {
        let mut predicted = PredictedMeasure { mean, ..PredictedMeasure::default() };
        let variance = match self.variance(mean, row) {
            Ok(variance) => variance,
            Err(NoBand { reason, is_certain }) => {
                predicted.no_band = Some(reason.clone());
                if !is_certain {
                    predicted.no_new_band = Some(reason);
                    return predicted;
                }
                0.0
            }
        };
        let (gradient, confidence) = (self.over_free(row), self.options.confidence);
        let Some(quantile) = self.fit.quantile_along(confidence, &gradient) else { return predicted };
        if predicted.no_band.is_none() {
            (predicted.lower, predicted.upper) = band(mean, quantile * variance.sqrt());
        }
        match self.errors.deviation(measure, values, mean) {
            None => {
                let why = if self.fit.problem.trials.measures.contains(measure) {
                    "it did not count in the fit"
                } else {
                    "the trials have no such measure"
                };
                predicted.no_new_band = Some(format!("{why}: the error of measuring it is not known"));
            }
            Some(deviation) => {
                let quantile = self.fit.quantile_of_new(confidence, &gradient, measure, deviation * deviation).unwrap_or(quantile);
                let half_width = quantile * (variance + deviation * deviation).sqrt();
                if mean == 0.0 && half_width == 0.0 {
                    predicted.no_new_band = Some("errors are known relative to what is measured, which is 0 here".into());
                } else if half_width <= NO_WIDTH * mean.abs() {
                    predicted.no_new_band = Some("the trials are fitted exactly: no error could be estimated".into());
                } else {
                    (predicted.new_lower, predicted.new_upper) = band(mean, half_width);
                }
            }
        }
        predicted
    }

    /// `H P Hᵀ`, or why there is none.
    fn variance(&self, mean: f64, row: &[f64]) -> Result<f64, NoBand> {
        let unknown = |reason: String| NoBand { reason, is_certain: false };
        let id = &self.fit.identifiability;
        if id.covariance.is_none() || !self.has_bands {
            return Err(unknown(id.no_covariance.clone().unwrap_or_else(|| "no error could be estimated".into())));
        }
        if row.iter().all(|h| *h == 0.0) {
            return Err(NoBand { reason: "no estimated parameter affects it here".into(), is_certain: true });
        }
        let Some(variance) = id.variance_along(&self.over_free(row)) else {
            return Err(unknown("it depends on a combination of parameters that the trials do not determine".into()));
        };
        if !(variance.is_finite() && variance.sqrt() > NO_WIDTH * mean.abs()) {
            return Err(NoBand {
                reason: "its band has no width: the trials are fitted exactly, or no parameter matters here".into(),
                is_certain: true,
            });
        }
        Ok(variance)
    }

    /// Derivatives by all free parameters, `(n_free)`; those that a scenario sets have 0, or, where their value in the trials is certain, what takes the
    /// part of the others' errors away that goes with an error of theirs: `h_k = -P_kk⁻¹ P_kr h_r`.
    pub(super) fn over_free(&self, row: &[f64]) -> Vec<f64> {
        let of = |name: &String| self.varied.iter().position(|v| v == name).map_or(0.0, |i| row[i]);
        let mut gradient: Vec<f64> = self.fit.identifiability.free.iter().map(of).collect();
        if let Some(covariance) = self.fit.identifiability.covariance.as_ref().filter(|_| !self.known.is_empty()) {
            let n = self.known.len();
            let own = DMatrix::from_fn(n, n, |a, b| covariance[self.known[a]][self.known[b]]);
            let with_others = DVector::from_fn(n, |a, _| covariance[self.known[a]].iter().zip(&gradient).map(|(p, h)| p * h).sum());
            if let Some(own) = own.cholesky() {
                let moved: DVector<f64> = own.solve(&with_others);
                self.known.iter().zip(moved.iter()).for_each(|(&k, moved)| gradient[k] = -moved);
            }
        }
        gradient
    }
}

/// Whether a whole number's neighbours are excluded.
fn is_certain(fit: &Fit, name: &str) -> bool {
    let is_whole = fit.whole_numbers.iter().any(|w| w.parameter == name);
    let within = |p: &ParameterEstimate| p.lower.zip(p.upper).is_some_and(|(l, u)| l > p.estimate - 1.0 && u < p.estimate + 1.0);
    is_whole && fit.parameters.get(name).is_some_and(within)
}

/// Why a value has no band.
struct NoBand {
    reason: String,
    /// Whether the value is certain as far as the parameters go, so that a new measurement still has a band.
    is_certain: bool,
}

impl SolverError {
    fn of(predicted: &PredictedMeasure, mean_simulated: f64, half_width: Option<f64>, most: f64) -> Self {
        let error = mean_simulated - predicted.mean;
        let own = half_width.unwrap_or(0.0);
        let (down, up) = ((error - own).min(0.0), (error + own).max(0.0));
        let most = most.max(predicted.mean).max(mean_simulated);
        Self {
            mean_simulated,
            solver_error: error,
            solver_error_half_width: half_width,
            lower_with_solver_error: predicted.lower.map(|l| (l + down).max(0.0)),
            upper_with_solver_error: predicted.upper.map(|u| (u + up).min(most)),
            new_lower_with_solver_error: predicted.new_lower.map(|l| (l + down).max(0.0)),
            new_upper_with_solver_error: predicted.new_upper.map(|u| (u + up).min(most)),
        }
    }
}

fn band(mean: f64, half_width: f64) -> (Option<f64>, Option<f64>) {
    (Some(mean - half_width), Some(mean + half_width))
}
