//! What is known before a design: the information there is, and sensitivities wherever they are asked for.

use indexmap::IndexMap;
use nalgebra::{DMatrix, DVector};

use super::{DesignError, candidate::Candidate, errors::MeasurementErrors};
use crate::{
    fit::{
        engine::least_squares::{ResidualModel, Wanted},
        inference::{
            Identification,
            distribution::{as_f64, normal_two_sided, t_two_sided, t_two_sided_at},
            identify as analyse,
            variances::{EstimatedVariances, unit},
        },
        parameter_uses::parameter_uses,
        problem::{ErrorScale, Problem, Weighting, trials::Measured},
        report::Fit,
        search::{
            run::FitOptions,
            solver::{ProblemResiduals, SolveFn, TrialSolveError, solve_point},
            weights::Weights,
            whitening::Whitening,
        },
    },
    model::{Bindings, Measure},
    solve::Sensitivities,
};

/// Relative difference of values and derivatives below which two measures are the same.
const SAME: f64 = 1e-7;

/// The parameters that are to be learnt more about, and what is known of them.
#[derive(Clone, Debug)]
pub(super) struct Ground<'a> {
    pub(super) problem: &'a Problem,
    /// Values of all estimated parameters, at which sensitivities are taken.
    pub(super) values: Vec<f64>,
    /// Positions of those that are free.
    pub(super) free: Vec<usize>,
    /// Their names.
    pub(super) names: Vec<String>,
    /// Root of the information there is: `M₀ = rowsᵀ rows`, `(n_rows, n_free)`.
    pub(super) rows: DMatrix<f64>,
    pub(super) errors: MeasurementErrors,
    /// Measures of the trials that count.
    pub(super) measures: Vec<Measure>,
    /// Degrees of freedom of the intervals; `None` where the errors are known.
    pub(super) dof: Option<DegreesOfFreedom>,
    /// Whether these count trials, not measured values.
    pub(super) is_by_trials: bool,
    /// Where several variances are estimated: whatever is told has degrees of freedom of its own.
    pub(super) variances: Option<&'a EstimatedVariances>,
    pub(super) confidence: f64,
    pub(super) options: FitOptions,
    pub(super) notes: Vec<String>,
}

impl<'a> Ground<'a> {
    /// The end of a fit; where no error could be estimated, as if its measures had a relative error `asked`.
    pub(super) fn of_fit(fit: &'a Fit, asked: Option<f64>, options: &FitOptions, solver: &SolveFn<'_>) -> Result<Self, DesignError> {
        if !fit.converged {
            return Err(DesignError::NotConverged);
        }
        let id = &fit.identifiability;
        let problem = &fit.problem;
        if id.free.is_empty() {
            return Err(DesignError::NothingFree);
        }
        let values: Vec<f64> = fit.estimates().map(|(_, v)| v).collect();
        let free: Vec<usize> = (0..values.len()).filter(|&j| id.free.contains(&problem.estimate[j].name)).collect();
        let mut errors = MeasurementErrors::of_fit(fit, asked);
        let mut notes = bound_notes(problem, &free);
        let (rows, dof) = match &id.covariance {
            Some(covariance) => {
                let of_residuals = (fit.error_scale == ErrorScale::Estimated).then_some(fit.degrees_of_freedom);
                let dof = fit.interval_degrees_of_freedom.or(of_residuals);
                (root_of_information(covariance, &id.scale, id.rank), dof.map(DegreesOfFreedom::of))
            }
            None => {
                let planned = Self::assumed(problem, values.clone(), errors.otherwise, options, solver)?;
                notes.push(format!(
                    "the fit has no error to go by: each measure is taken to have a relative error of {}",
                    crate::fit::digits::four_digits(errors.otherwise)
                ));
                errors = planned.errors;
                (planned.rows.select_columns(&free), planned.dof)
            }
        };
        let names = id.free.clone();
        let is_by_trials = fit.interval_degrees_of_freedom.is_some();
        let (confidence, options) = (fit.confidence, options.clone());
        let variances = id.estimated_variances.as_ref().filter(|_| dof.is_some());
        let counts = |m: &&Measure| fit.weighting.measures.get(*m).is_some_and(|found| found.n > 0);
        let measures = problem.trials.measures.iter().filter(counts).cloned().collect();
        Ok(Self { problem, values, free, names, rows, errors, measures, dof, is_by_trials, variances, confidence, options, notes })
    }

    /// The trials of `problem`, measured or not, at the parameters `values`, with a relative error of `share` wherever the trials
    /// give none.
    pub(super) fn assumed(
        problem: &'a Problem,
        values: Vec<f64>,
        share: f64,
        options: &FitOptions,
        solver: &SolveFn<'_>,
    ) -> Result<Self, DesignError> {
        let solved = crate::fit::search::solver::solve_trials(problem, &values, &[], &options.solve, solver)?;
        let measures = &problem.trials.measures;
        let size = |k: usize| solved.values.iter().map(|row| row[k].abs()).fold(0.0, f64::max);
        let sizes: IndexMap<Measure, f64> = measures.iter().enumerate().map(|(k, m)| (m.clone(), size(k))).collect();
        let errors = MeasurementErrors::relative(&sizes, share);
        let filled = filled(problem, &solved.values, &errors);
        let weights = Weights::of_plan(&filled)?;
        let mut residuals = ProblemResiduals::new(&filled, &weights, options, solver);
        let evaluation = residuals.evaluate(&values, Wanted::Jacobian);
        let rows = match evaluation.map(|e| e.jacobian) {
            Ok(Some(jacobian)) => jacobian,
            _ => return Err(residuals.last_error.map_or(DesignError::NothingFree, DesignError::Solution)),
        };
        let repeated = if filled.trials.have_covariances() { Vec::new() } else { repeated(&predicted(measures.len(), &weights, &rows)) };
        let kept = distinct(measures.len(), &repeated);
        let counts = |row: &usize| weights.observations.get(*row).is_none_or(|o| repeated.is_empty() || kept.contains(&o.measure_idx));
        let rows = rows.select_rows(&(0..rows.nrows()).filter(counts).collect::<Vec<_>>());
        let n_priors = problem.priors().count();
        let n_values = rows.nrows() - n_priors;
        // Of priors alone the errors are known.
        let are_known = problem.method.error_scale == ErrorScale::Known || n_values == 0 && n_priors > 0;
        let dof = (!are_known).then_some(DegreesOfFreedom { n_values, n_free: values.len() });
        let free: Vec<usize> = (0..values.len()).collect();
        let names = problem.estimated_names();
        let confidence = problem.confidence;
        Ok(Self {
            problem,
            values,
            free,
            names,
            rows,
            errors,
            measures: kept.into_iter().map(|k| measures[k].clone()).collect(),
            dof,
            is_by_trials: false,
            variances: None,
            confidence,
            options: options.clone(),
            notes: repeated.iter().map(|(k, first)| counts_once(&measures[*k], &measures[*first])).collect(),
        })
    }

    /// Half the width of an interval of what has the `gradient`, `(n_free)`, in standard errors, after `n_more` more measured values: these
    /// tell variances as those before them do.
    fn quantile(&self, gradient: &[f64], n_more: usize) -> Option<f64> {
        match self.dof {
            Some(dof) if let Some(variances) = self.variances => {
                let share = as_f64(dof.after(n_more)) / as_f64(dof.after(0).max(1));
                t_two_sided_at(self.confidence, variances.degrees_of_freedom(gradient) * share)
            }
            // More measured values are no more trials, and how many trials they are is not known here.
            Some(dof) if self.is_by_trials => t_two_sided(self.confidence, dof.after(0)),
            Some(dof) => t_two_sided(self.confidence, dof.after(n_more)),
            None => normal_two_sided(self.confidence),
        }
    }

    /// Values of the free parameters.
    pub(super) fn free_values(&self) -> Vec<f64> {
        self.free.iter().map(|&j| self.values[j]).collect()
    }

    /// Sensitivities of `measures` by the free parameters at an operating point.
    pub(super) fn at(&self, controlled: &Bindings, measures: &[Measure], solver: &SolveFn<'_>) -> Result<Sensitivities, DesignError> {
        let values = self.bindings(controlled)?;
        Ok(solve_point(&self.problem.model, &values, &self.names, measures, &self.options.solve, solver, &label(controlled))?)
    }

    /// All parameters at an operating point: assumptions, what all trials share, the estimates, and what the point sets.
    fn bindings(&self, controlled: &Bindings) -> Result<Bindings, DesignError> {
        let trials = &self.problem.trials;
        let mut values = self.problem.assumed.clone();
        for name in trials.controlled_names().into_iter().filter(|n| controlled.get(n).is_none()) {
            match trials.controlled_range(name) {
                Some((low, high)) if low == high => values.set(name, low),
                _ => return Err(DesignError::Missing { point: label(controlled), name: name.to_owned() }),
            }
        }
        self.problem.estimate.iter().zip(&self.values).for_each(|(e, v)| values.set(e.name.clone(), *v));
        controlled.iter().for_each(|(n, v)| values.set(n, v));
        Ok(values)
    }

    /// Refuses names that the model does not use, and those that are estimated.
    pub(super) fn check_names(&self, controlled: &Bindings) -> Result<(), DesignError> {
        let uses = parameter_uses(&self.problem.model);
        for (name, _) in controlled.iter() {
            if self.problem.estimate.iter().any(|e| e.name == name) {
                return Err(DesignError::Estimated { name: name.to_owned() });
            }
            if !uses.contains_key(name) && !self.problem.model.parameters.iter().any(|p| p.name == name) {
                return Err(DesignError::UnknownName { name: name.to_owned(), available: uses.into_keys().collect() });
            }
        }
        Ok(())
    }

    /// Rows that a trial which measures `measures` adds to the root of the information, `(n_rows, n_free)`.
    pub(super) fn trial_rows(
        &self,
        candidate: &Candidate,
        measures: &[Measure],
        solver: &SolveFn<'_>,
    ) -> Result<DMatrix<f64>, DesignError> {
        let solved = self.at(&candidate.controlled, measures, solver)?;
        Ok(self.rows_of(&solved, candidate, measures, &(0..measures.len()).collect::<Vec<_>>()))
    }

    /// The same where `measures` are `solved` and those at `places` are measured; measures without an error are left out.
    pub(super) fn rows_of(&self, solved: &Sensitivities, candidate: &Candidate, measures: &[Measure], places: &[usize]) -> DMatrix<f64> {
        let all = self.errors.covariance(measures, &solved.values, &candidate.controlled);
        let kept: Vec<usize> = places.iter().copied().filter(|&i| all[(i, i)] > 0.0).collect();
        let covariance = all.select_rows(&kept).select_columns(&kept);
        let whitening = Whitening::of(&covariance);
        let length = candidate.length.unwrap_or(1.0);
        whitening.matrix * solved.jacobian.select_rows(&kept) * length.sqrt()
    }

    /// What the information there is, with `more` rows, says of the parameters.
    pub(super) fn with(&self, more: &[&DMatrix<f64>]) -> Identification {
        analyse(&stacked(&self.rows, more), self.options.rank_tolerance)
    }

    /// Half-widths of the free parameters; absent where one cannot be told from others.
    pub(super) fn half_widths(&self, found: &Identification, n_more: usize) -> IndexMap<String, Option<f64>> {
        self.widths(found, &|k| self.quantile(&unit(self.names.len(), k), n_more))
    }

    /// Half-widths by the `quantile` of each parameter.
    fn widths(&self, found: &Identification, quantile: &dyn Fn(usize) -> Option<f64>) -> IndexMap<String, Option<f64>> {
        let width = |k: usize| Some(quantile(k)? * found.unscaled_covariance[(k, k)].sqrt()).filter(|_| found.is_estimable(k));
        self.names.iter().enumerate().map(|(k, n)| (n.clone(), width(k))).collect()
    }

    /// The same, as if errors were known where nothing would be left to estimate them from: for what more measured values would determine.
    pub(super) fn attainable_half_widths(&self, found: &Identification, n_more: usize) -> IndexMap<String, Option<f64>> {
        match self.dof.is_some_and(|dof| dof.after(n_more) == 0) {
            true => self.widths(found, &|_| normal_two_sided(self.confidence)),
            false => self.half_widths(found, n_more),
        }
    }

    /// Half-width of the linear combination `gradient`; absent where the information does not see it.
    pub(super) fn half_width_of(&self, found: &Identification, gradient: &[f64], n_more: usize) -> Option<f64> {
        if !found.sees(gradient) {
            return None;
        }
        let g = DVector::from_row_slice(gradient);
        Some(self.quantile(gradient, n_more)? * (g.transpose() * &found.unscaled_covariance * g)[(0, 0)].max(0.0).sqrt())
    }
}

/// The trials of `problem` with the values `predicted` in place of those measured or planned, each with its standard error or that of `errors`.
fn filled(problem: &Problem, predicted: &[Vec<f64>], errors: &MeasurementErrors) -> Problem {
    let mut filled = problem.clone();
    filled.method.error_scale = ErrorScale::Known;
    filled.weighting = Weighting::Auto;
    for (trial, row) in filled.trials.trials.iter_mut().zip(predicted) {
        let empty = trial.measured.iter().all(Option::is_none);
        for (k, (cell, value)) in trial.measured.iter_mut().zip(row).enumerate() {
            let planned = trial.planned_errors.get(k).copied().flatten();
            let known = cell.and_then(|c| c.std_error).or(planned);
            let std_error = known.unwrap_or_else(|| errors.deviation(&problem.trials.measures[k], *value, &trial.controlled));
            let counts = (empty || cell.is_some() || planned.is_some()) && std_error > 0.0;
            *cell = counts.then_some(Measured { value: *value, std_error: Some(std_error), weight: None });
        }
        if trial.measured.iter().any(Option::is_none) {
            let present: Vec<bool> = trial.measured.iter().map(Option::is_some).collect();
            trial.covariances.retain(|c| present[c.first] && present[c.second]);
        }
    }
    filled
}

/// Degrees of freedom of intervals, as they grow with measured values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DegreesOfFreedom {
    n_values: usize,
    n_free: usize,
}

impl DegreesOfFreedom {
    fn of(dof: usize) -> Self {
        Self { n_values: dof, n_free: 0 }
    }

    /// With `n_more` measured values; 0 where nothing is left to estimate an error from.
    pub(super) fn after(self, n_more: usize) -> usize {
        (self.n_values + n_more).saturating_sub(self.n_free)
    }
}

/// A predicted value of a measure, with the operating point that it is of.
pub(super) struct Predicted {
    pub(super) place: usize,
    pub(super) value: f64,
    pub(super) slopes: DVector<f64>,
}

/// The predicted values of a plan, by measure.
fn predicted(n_measures: usize, weights: &Weights, jacobian: &DMatrix<f64>) -> Vec<Vec<Predicted>> {
    let of = |k: usize| {
        let own = weights.observations.iter().enumerate().filter(move |(_, o)| o.measure_idx == k);
        let slopes = |row: usize, root_weight: f64| jacobian.row(row).transpose() / root_weight;
        own.map(|(row, o)| Predicted { place: o.trial_idx, value: o.value, slopes: slopes(row, o.root_weight) }).collect()
    };
    (0..n_measures).map(of).collect()
}

/// Measures with the predicted values and the sensitivities of an earlier one everywhere, with that one: a fit counts such values once.
pub(super) fn repeated(columns: &[Vec<Predicted>]) -> Vec<(usize, usize)> {
    let same = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    let at = |(a, b): (&Predicted, &Predicted)| a.place == b.place && same(a.value, b.value) && same_slopes(&a.slopes, &b.slopes);
    let are_same = |a: &[Predicted], b: &[Predicted]| !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(at);
    (0..columns.len()).filter_map(|k| Some((k, (0..k).find(|&first| are_same(&columns[k], &columns[first]))?))).collect()
}

/// Places of `n` measures that are not `repeated`.
pub(super) fn distinct(n: usize, repeated: &[(usize, usize)]) -> Vec<usize> {
    (0..n).filter(|k| repeated.iter().all(|(other, _)| other != k)).collect()
}

/// Whether two gradients are the same to the precision of a solution.
pub(super) fn same_slopes(a: &DVector<f64>, b: &DVector<f64>) -> bool {
    (a - b).norm() <= SAME * a.norm().max(b.norm())
}

/// That a measure says what another says.
pub(super) fn counts_once(measure: &Measure, first: &Measure) -> String {
    format!("{measure} is in the model what {first} is, whatever the parameters, and counts once, as it will in a fit")
}

/// `rows` with all of `more` below.
pub(super) fn stacked(rows: &DMatrix<f64>, more: &[&DMatrix<f64>]) -> DMatrix<f64> {
    let n = rows.nrows() + more.iter().map(|m| m.nrows()).sum::<usize>();
    let mut all = rows.clone().resize_vertically(n, 0.0);
    let mut at = rows.nrows();
    for m in more {
        all.rows_mut(at, m.nrows()).copy_from(m);
        at += m.nrows();
    }
    all
}

/// `users=10 think=5`.
pub(super) fn label(controlled: &Bindings) -> String {
    controlled.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
}

/// Rows whose products are the inverse of `covariance` on the `rank` directions that are seen, in the scale of the parameters.
fn root_of_information(covariance: &[Vec<f64>], scale: &[f64], rank: usize) -> DMatrix<f64> {
    let n = scale.len();
    let scaled = DMatrix::from_fn(n, n, |i, j| scale[i] * covariance[i][j] * scale[j]);
    let eigen = scaled.symmetric_eigen();
    let mut order: Vec<usize> = (0..n).filter(|&i| eigen.eigenvalues[i] > 0.0).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    order.truncate(rank);
    DMatrix::from_fn(order.len(), n, |i, j| eigen.eigenvectors[(j, order[i])] * scale[j] / eigen.eigenvalues[order[i]].sqrt())
}

fn bound_notes(problem: &Problem, free: &[usize]) -> Vec<String> {
    let held = (0..problem.estimate.len()).filter(|j| !free.contains(j));
    held.map(|j| format!("{} is at its bound and taken as known", problem.estimate[j].name)).collect()
}

/// The reason of a failure in words, sources included.
pub(super) fn reason(error: &DesignError) -> String {
    match error {
        DesignError::Solution(TrialSolveError::Refused { source, .. }) => source.to_string(),
        DesignError::Solution(error) => error.to_string(),
        other => other.to_string(),
    }
}
