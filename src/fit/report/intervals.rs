//! What the end of a search says of the parameters: intervals, covariance, what cannot be told apart.

use indexmap::IndexMap;
use nalgebra::DMatrix;

use super::{
    Identifiability, IntervalMethod, JointRegion, ParameterEstimate, ParameterStatus,
    assemble::{Ending, OptionalMatrix, stop_in_words},
    digits::{four_digits, two_digits},
    extras::Scales,
};
use crate::{
    fit::{
        engine::least_squares::Minimum,
        inference::{
            Identification, direction_in_words,
            distribution::{normal_two_sided, t_two_sided, t_two_sided_at},
            identify,
            regions::{CovarianceKnown, Estimate, Limits, joint_region},
            replicated::{Told, TrialRows, components},
            sandwich::sandwich,
            variances::{Components, EstimatedVariances, GroupedRows, unit},
        },
        problem::{Intervals, Problem, Transform},
        search::{
            weights::{Block, PooledErrors, Weights},
            whitening::Whitening,
            whole::{ABOVE, WholeNumber},
        },
    },
    model::Measure,
};

/// Singular value of a Jacobian that has only what is seen, relative to the largest, below which it is rounding.
pub(super) const SEEN_ALREADY: f64 = 1e-13;

/// What the end of a search says of the parameters.
pub(super) struct Inference<'a> {
    problem: &'a Problem,
    ending: &'a Ending<'a>,
    bounds: Vec<(f64, f64)>,
    /// Parameters that are not at a bound.
    free: Vec<usize>,
    names: Vec<String>,
    found: Identification,
    /// Factor of `(JᵀJ)⁻¹` in the covariance; absent without degrees of freedom.
    scale: Option<f64>,
    /// Degrees of freedom of the intervals; absent where the errors are known.
    interval_dof: Option<usize>,
    /// Quantile of Student's t, or of the normal distribution; absent without degrees of freedom.
    quantile: Option<f64>,
    /// Variances that are estimated, and so make `found` uncertain, which has what the estimates scatter by that.
    variances: Option<EstimatedVariances>,
    /// Degrees of freedom of intervals that go by what trials scatter by; absent where they go by the weights.
    pub(super) by_trials: Option<usize>,
    /// Why there are none of these, if they were asked for.
    not_by_trials: Option<String>,
    /// What the error of a correction takes from the estimates, where that is much.
    pub(super) lost_in_simulation: Vec<String>,
}

impl<'a> Inference<'a> {
    /// Of `ending`, with errors on the given scales, of which residuals tell with `dof` degrees of freedom.
    pub(super) fn new(problem: &'a Problem, ending: &'a Ending<'a>, scales: &Scales, dof: usize) -> Self {
        let bounds = problem.bounds();
        let (x, jacobian) = (&ending.minimum.x, &plain_jacobian(ending.weights, ending.minimum));
        // The least of a whole number, 1 of something, is a value like any other; other bounds of it stop the search.
        let whole = problem.whole_numbers();
        let is_least = |j: usize| whole[j] && bounds[j].0 <= 1.0;
        let at_bound = |j: usize| (x[j] == bounds[j].0 && !is_least(j) || x[j] == bounds[j].1) && jacobian.column(j).norm() > 0.0;
        let free: Vec<usize> = (0..x.len()).filter(|&j| !at_bound(j)).collect();
        let names = free.iter().map(|&j| problem.estimate[j].name.clone()).collect();
        let plain = jacobian.select_columns(&free);
        let own_error = ending.own_error.filter(|_| !free.is_empty()).zip(scales.covariance);
        let purged = own_error.map(|(own, scale)| own.purge(&ending.fitted(problem), jacobian, &free, scale, ending.rank_tolerance));
        let by_trials = (problem.method.intervals == Intervals::Sandwich && !free.is_empty())
            .then(|| by_trials(problem, ending, &plain, scales.covariance))
            .transpose();
        let (by_trials, not_by_trials) = by_trials.map_or_else(|why| (None, Some(why)), |found| (found, None));
        let mut found = match (&by_trials, &purged) {
            // What is not seen is not in these.
            (Some((jacobian, _)), _) => identify(jacobian, SEEN_ALREADY),
            (None, Some(purged)) => identify(&purged.jacobian, SEEN_ALREADY),
            (None, None) => identify(&plain, ending.rank_tolerance),
        };
        let by_trials = by_trials.map(|(_, dof)| dof);
        let lost_in_simulation = purged.map_or_else(Vec::new, |p| p.notes(problem.method.intervals == Intervals::Profile));
        let interval_dof = by_trials.or_else(|| (!scales.is_known).then_some(dof));
        let quantile = interval_dof.map_or_else(|| normal_two_sided(problem.confidence), |d| t_two_sided(problem.confidence, d));
        let scale = scales.covariance.filter(|_| not_by_trials.is_none());
        let variances = scale.filter(|_| by_trials.is_none() && !scales.is_known).and_then(|scale| {
            let (variances, more) = estimated_variances(problem, ending.weights, &plain, &found, scale, ending.rank_tolerance)?;
            found.unscaled_covariance += more;
            Some(variances)
        });
        Self {
            problem,
            ending,
            bounds,
            free,
            names,
            found,
            scale,
            interval_dof,
            quantile,
            variances,
            by_trials,
            not_by_trials,
            lost_in_simulation,
        }
    }

    /// Degrees of freedom of the free parameter at `k`, where it has its own.
    fn degrees_of_freedom(&self, k: usize) -> Option<f64> {
        Some(self.variances.as_ref()?.degrees_of_freedom(&unit(self.free.len(), k)))
    }

    /// Half the width of an interval of the free parameter at `k`, in standard errors.
    fn quantile_of(&self, k: usize) -> Option<f64> {
        self.degrees_of_freedom(k).map_or(self.quantile, |dof| t_two_sided_at(self.problem.confidence, dof))
    }

    /// Why no parameter has an interval, if none has.
    fn nothing(&self) -> Option<(ParameterStatus, String)> {
        match self.ending.minimum.stop {
            stop if !stop.converged() => Some((ParameterStatus::NotConverged, stop_in_words(stop).into())),
            _ if self.scale.is_none() => Some((
                ParameterStatus::NoDegreesOfFreedom,
                self.not_by_trials
                    .clone()
                    .unwrap_or_else(|| "as many parameters as measurements: nothing is left to estimate the error".into()),
            )),
            _ => None,
        }
    }

    /// The estimates with their intervals.
    pub(super) fn parameters(&self) -> IndexMap<String, ParameterEstimate> {
        (0..self.problem.estimate.len()).map(|j| (self.problem.estimate[j].name.clone(), self.parameter(j))).collect()
    }

    fn parameter(&self, j: usize) -> ParameterEstimate {
        let estimate = self.ending.minimum.x[j];
        let (min, max) = self.bounds[j];
        let (status, mut explanation) = self.status(j);
        let position = self.free.iter().position(|&f| f == j).filter(|_| status == ParameterStatus::Free);
        let std_error = position.and_then(|k| Some((self.found.unscaled_covariance[(k, k)] * self.scale?).sqrt()));
        let transform = self.problem.estimate[j].transform;
        let quantile = position.and_then(|k| self.quantile_of(k));
        let mut limits = std_error.and_then(|s| Some(Limits::around(estimate, s, quantile?, transform)));
        let whole = self.ending.whole.iter().find(|w| w.parameter == self.problem.estimate[j].name);
        if let Some(l) = limits.filter(|l| l.lower < min && whole.is_none()) {
            explanation = Some(format!(
                "the interval (half-width {}) reaches below the bound {min}: the data do not show that the parameter is needed",
                four_digits(estimate - l.lower)
            ));
        }
        if let (Some(whole), Some(l)) = (whole, &mut limits) {
            let is_excluded = |offset: f64| whole.at(offset).is_none_or(|e| self.is_excluded(e, quantile));
            let beside = [-1.0, 1.0].map(is_excluded);
            // The linear difference may be steeper than what the sum of squares rises by to one side.
            if !beside[0] {
                l.lower = l.lower.min(estimate - 1.0);
            }
            if !beside[1] {
                l.upper = l.upper.max(estimate + 1.0);
            }
            let left = [-1.0, 1.0].map(|offset| (estimate + offset).clamp(min, max)).into_iter();
            let left = left.filter(|v| *v != estimate && l.lower <= *v && *v <= l.upper).collect::<Vec<f64>>();
            explanation = Some(whole_in_words(whole, &left, explanation.as_deref()));
        }
        ParameterEstimate {
            estimate,
            std_error,
            degrees_of_freedom: position.filter(|_| std_error.is_some()).and_then(|k| self.degrees_of_freedom(k)),
            lower: limits.map(|l| l.lower),
            upper: limits.map(|l| l.upper),
            interval_method: limits.map(|_| match (self.by_trials, transform) {
                (None, Transform::None) => IntervalMethod::Wald,
                (None, Transform::Log) => IntervalMethod::WaldLog,
                (Some(_), Transform::None) => IntervalMethod::Sandwich,
                (Some(_), Transform::Log) => IntervalMethod::SandwichLog,
            }),
            start: self.ending.start[j],
            start_from: self.ending.origins[j],
            min: Some(min).filter(|b| b.is_finite()),
            max: Some(max).filter(|b| b.is_finite()),
            status,
            explanation,
        }
    }

    /// Whether a sum of squares is so far above the least that one parameter more does not explain it.
    fn is_excluded(&self, sum_of_squares: f64, quantile: Option<f64>) -> bool {
        let rise = sum_of_squares - self.ending.minimum.sum_of_squares;
        let most = quantile.or(self.quantile).zip(self.scale).map(|(q, s)| q * q * s);
        most.is_some_and(|most| rise > most)
    }

    fn status(&self, j: usize) -> (ParameterStatus, Option<String>) {
        if let Some((status, text)) = self.nothing() {
            return (status, Some(text));
        }
        let Some(k) = self.free.iter().position(|&f| f == j) else { return self.bound_status(j) };
        if self.found.is_estimable(k) {
            return (ParameterStatus::Free, None);
        }
        let companions: Vec<&str> = self.found.companions(k).iter().map(|&c| self.names[c].as_str()).collect();
        let text = match companions.is_empty() || self.found.unseen[k] {
            true => "no measured value depends on it".to_owned(),
            false => format!("the data cannot tell it from {}", companions.join(", ")),
        };
        (ParameterStatus::RankDeficient, Some(text))
    }

    fn bound_status(&self, j: usize) -> (ParameterStatus, Option<String>) {
        let (min, max) = self.bounds[j];
        let (status, which, bound) = match self.ending.minimum.x[j] == min {
            true => (ParameterStatus::AtLowerBound, "lower", min),
            false => (ParameterStatus::AtUpperBound, "upper", max),
        };
        (status, Some(format!("the best value is the {which} bound {bound}: there is no interval, and the others are as if it were known")))
    }

    /// Covariance and correlation over all parameters.
    pub(super) fn matrices(&self, parameters: &IndexMap<String, ParameterEstimate>) -> (OptionalMatrix, OptionalMatrix) {
        let position = |j: usize| self.free.iter().position(|&f| f == j).filter(|_| parameters[j].std_error.is_some());
        let n = parameters.len();
        let Some(scale) = self.scale.filter(|_| (0..n).any(|j| position(j).is_some())) else { return (None, None) };
        let unscaled = &self.found.unscaled_covariance;
        let matrix = |entry: &dyn Fn(usize, usize) -> f64| -> OptionalMatrix {
            let row = |i: usize| (0..n).map(|j| Some(entry(position(i)?, position(j)?))).collect();
            Some((0..n).map(row).collect())
        };
        let covariance = matrix(&|a, b| scale * unscaled[(a, b)]);
        let correlation = matrix(&|a, b| unscaled[(a, b)] / (unscaled[(a, a)] * unscaled[(b, b)]).sqrt());
        (covariance, correlation)
    }

    /// Joint regions of the parameters that have an interval.
    pub(super) fn joint(&self) -> Option<JointRegion> {
        let usable: Vec<usize> = (0..self.free.len()).filter(|&k| self.found.is_estimable(k)).collect();
        if self.nothing().is_some() {
            return None;
        }
        let unscaled = &self.found.unscaled_covariance;
        let estimate = |&k: &usize| {
            let e = &self.problem.estimate[self.free[k]];
            let std_error = (unscaled[(k, k)] * self.scale?).sqrt();
            let (value, degrees_of_freedom) = (self.ending.minimum.x[self.free[k]], self.degrees_of_freedom(k));
            Some(Estimate { name: e.name.clone(), value, std_error, transform: e.transform, degrees_of_freedom })
        };
        let estimates: Vec<Estimate> = usable.iter().filter_map(estimate).collect();
        let correlation = DMatrix::from_fn(usable.len(), usable.len(), |a, b| {
            let (a, b) = (usable[a], usable[b]);
            unscaled[(a, b)] / (unscaled[(a, a)] * unscaled[(b, b)]).sqrt()
        });
        let together = self.variances.as_ref().and_then(|v| v.joint(&usable));
        let known = match (self.by_trials, self.interval_dof) {
            _ if let Some(together) = together => CovarianceKnown::UpToVariances(together),
            (Some(dof), _) => CovarianceKnown::FromScatter(dof),
            (None, Some(dof)) => CovarianceKnown::UpToScale(dof),
            (None, None) => CovarianceKnown::Whole,
        };
        joint_region(&estimates, &correlation, known, self.problem.confidence)
    }

    /// What the data tell apart.
    pub(super) fn identifiability(&self) -> Identifiability {
        let found = &self.found;
        let words = |direction: &[f64]| direction_in_words(direction, &self.names, &found.scale);
        let nothing = self.nothing();
        let covariance = self.scale.filter(|_| nothing.is_none()).map(|scale| rows(&(scale * &found.unscaled_covariance)));
        Identifiability {
            rank: found.rank,
            free: self.names.clone(),
            singular_values: found.singular_values.clone(),
            condition_number: found.condition_number.filter(|c| c.is_finite()),
            weakest_direction: (!self.free.is_empty()).then(|| words(found.weakest.as_slice())),
            unidentified: found.null_directions.iter().map(|d| words(d.as_slice())).collect(),
            null_directions: found.null_directions.iter().map(|d| d.iter().copied().collect()).collect(),
            scale: found.scale.clone(),
            estimated_variances: self.variances.clone().filter(|_| covariance.is_some()),
            covariance,
            weak: Vec::new(),
            no_covariance: nothing.map(|(_, text)| text),
        }
    }
}

/// What variances that are estimated from the residuals take from estimates with the weighted `jacobian`, `(n_rows, n_free)`, and the covariance
/// `found`, times `scale`; with what is to be added to that.
pub(super) fn estimated_variances(
    problem: &Problem,
    weights: &Weights,
    jacobian: &DMatrix<f64>,
    found: &Identification,
    scale: f64,
    rank_tolerance: f64,
) -> Option<(EstimatedVariances, DMatrix<f64>)> {
    let n_residuals = weights.n_residuals();
    let sharp = || identify(jacobian, rank_tolerance).unscaled_covariance;
    let most = n_residuals.saturating_sub(problem.estimate.len());
    if let Some(told) = weights.replicates.as_ref().filter(|_| problem.method.loss.is_squared()) {
        let components = told_by_replicates(problem, weights, told, jacobian, most);
        return EstimatedVariances::of_components(&components, &sharp(), &found.unscaled_covariance, scale, most);
    }
    if !(problem.method.loss.is_squared() && weights.are_estimated() && n_residuals == weights.observations.len()) {
        return None;
    }
    let groups: Vec<Vec<usize>> = weights.variance_groups(problem);
    let group_of = |row: usize| {
        let measure = weights.observations.get(row)?.measure_idx;
        groups.iter().position(|group| group.contains(&measure))
    };
    let names = |group: &Vec<usize>| group.iter().map(|&k| problem.trials.measures[k].clone()).collect();
    let rows = GroupedRows {
        jacobian,
        group_of: &(0..jacobian.nrows()).map(group_of).collect::<Vec<_>>(),
        measures: &groups.iter().map(names).collect::<Vec<_>>(),
    };
    EstimatedVariances::of(&rows, &sharp(), &found.unscaled_covariance, scale, most)
}

/// The elements of the covariance that replicates told, seen from the weighted `jacobian`, `(n_rows, n_free)`.
fn told_by_replicates(
    problem: &Problem,
    weights: &Weights,
    told: &PooledErrors,
    jacobian: &DMatrix<f64>,
    of_residuals: usize,
) -> Components {
    let back = Whitening::of(&told.covariance).inverse(&told.covariance);
    let place = |measure: usize| told.measures.iter().position(|k| *k == measure);
    let trial = |block: &Block| {
        let here: Vec<usize> = weights.observations[block.observations.clone()].iter().filter_map(|o| place(o.measure_idx)).collect();
        let own = block.whitening.as_ref()?;
        let rows = jacobian.rows(block.rows.start, block.rows.len()).into_owned();
        Some(TrialRows::of(&rows, &(&own.matrix * back.select_rows(&here))))
    };
    let trials: Vec<TrialRows> = weights.blocks.iter().filter_map(trial).collect();
    let nearest: Vec<usize> = back.column_iter().map(|direction| direction.icamax()).collect();
    let measures: Vec<Measure> = nearest.iter().map(|&i| problem.trials.measures[told.measures[i]].clone()).collect();
    let dof = DMatrix::from_fn(nearest.len(), nearest.len(), |a, b| told.dof[(nearest[a], nearest[b])]);
    components(&trials, &Told { measures: &measures, dof: &dof, is_whole: told.is_whole, of_residuals })
}

/// The Jacobian that stands for what trials scatter by, and degrees of freedom; or why there is none.
fn by_trials(problem: &Problem, ending: &Ending<'_>, jacobian: &DMatrix<f64>, scale: Option<f64>) -> Result<(DMatrix<f64>, usize), String> {
    let blocks: Vec<_> = ending.weights.blocks.iter().filter(|b| !b.rows.is_empty()).collect();
    let dof = blocks.len().saturating_sub(problem.estimate.len());
    if dof == 0 {
        return Err("no more trials than parameters: what trials scatter by does not tell the error".into());
    }
    let rows: Vec<_> = blocks.iter().map(|b| b.rows.clone()).collect();
    // Of a perfect fit nothing scatters.
    let Some(scale) = scale.filter(|s| *s > 0.0) else { return Ok((jacobian.clone(), dof)) };
    let found = sandwich(jacobian, &ending.minimum.residuals, &rows, scale, ending.rank_tolerance).map_err(|alone| {
        let trial = &problem.trials.trials[blocks[alone.place].trial_idx].id;
        format!("without trial \"{trial}\" the others do not determine the parameters: what trials scatter by does not tell the error")
    })?;
    Ok((found, dof))
}

/// The weighted Jacobian without the factors of a loss.
pub(super) fn plain_jacobian(weights: &Weights, minimum: &Minimum) -> DMatrix<f64> {
    let mut jacobian = minimum.jacobian.clone();
    jacobian.row_iter_mut().zip(&weights.factors).for_each(|(mut row, factor)| row /= *factor);
    jacobian
}

/// What is known of a whole number, of whose neighbours those `left` are not excluded.
fn whole_in_words(whole: &WholeNumber, left: &[f64], also: Option<&str>) -> String {
    let at = |offset: f64| whole.at(offset);
    let least = at(0.0).unwrap_or_default();
    let digits = |e: f64| if e > ABOVE * least { format!("about {}", two_digits(e)) } else { four_digits(e) };
    let side = |offset: f64| at(offset).map(|e| format!("{} with {}", digits(e), whole.value + offset));
    let beside: Vec<String> = [side(-1.0), side(1.0)].into_iter().flatten().collect();
    let mut text = format!(
        "a whole number: the sum of squares is {} here{}{}; {}",
        four_digits(least),
        if beside.is_empty() { "" } else { ", " },
        beside.join(" and "),
        match left {
            [] => "its neighbours are excluded".to_owned(),
            [one] => format!("{one} is not excluded"),
            _ => "its neighbours are not excluded".to_owned(),
        }
    );
    if let Some(also) = also {
        text.push_str("; ");
        text.push_str(also);
    }
    text
}

fn rows(matrix: &DMatrix<f64>) -> Vec<Vec<f64>> {
    matrix.row_iter().map(|row| row.iter().copied().collect()).collect()
}
