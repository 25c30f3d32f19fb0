//! What is made from a finished fit: likelihood, tied parameters, what priors did, diagnosis, profiles, resampling.

use std::{collections::BTreeSet, ops::ControlFlow};

use indexmap::IndexMap;
use num_dual::DualSVec64;

use super::{
    DataAlone, DerivedEstimate, Fit, IntervalMethod, ParameterStatus, PriorReport, digits::four_digits, intervals::estimated_variances,
};
use crate::{
    fit::{
        design::weak,
        diagnosis::{
            diagnose,
            leave_out::{LeaveOneOut, LeaveOutTask, leave_one_out},
            leverages,
        },
        engine::least_squares::{Bounds, Iterate, Minimum},
        inference::{
            bootstrap::{self, Resampled},
            identify,
            information::{ErrorParameters, Information},
            profile::{Profile, ProfileEnd, ProfileTask, profile},
            variances::unit,
        },
        problem::{ErrorScale, Intervals, Problem},
        search::{
            reweigh::robust_scale,
            run::{FitError, FitOptions, coordinates, minimise_weighted},
            solver::{ProblemResiduals, SolveFn},
            weights::{WeightSource, Weights},
        },
    },
    model::{Bindings, Parameter, ParameterValue, Scalar},
};

/// Parameters whose derivatives are carried in one pass over dual numbers.
const LANES: usize = 4;

/// Standard deviations between a prior and the data from which they contradict each other.
const CONTRADICTION: f64 = 3.0;

/// Trials below which resampled intervals are remarked.
const FEW_RESAMPLED: usize = 10;

/// Variances that everything else is scaled by.
pub(crate) struct Scales {
    /// Factor of `(JᵀJ)⁻¹` in the covariance of the estimates; absent where no error could be estimated.
    pub(crate) covariance: Option<f64>,
    /// Variance of a weighted residual.
    pub(crate) error: Option<f64>,
    /// Whether they are known, not estimated.
    pub(crate) is_known: bool,
}

pub(crate) fn scales(problem: &Problem, weights: &Weights, minimum: &Minimum, mean_square_error: Option<f64>) -> Scales {
    let loss = problem.method.loss;
    let is_known = !weights.has_free_scale(problem);
    if loss.is_squared() {
        let scale = if is_known { Some(1.0) } else { mean_square_error };
        return Scales { covariance: scale, error: scale, is_known };
    }
    let factor = |i: usize| weights.factors.get(i).copied().unwrap_or(1.0);
    let plain: Vec<f64> = (0..weights.n_residuals()).map(|i| minimum.residuals[i] / factor(i)).collect();
    let sigma = robust_scale(problem, weights, &plain);
    let standardised: Vec<f64> = plain.iter().map(|r| r / sigma).collect();
    let covariance = loss.covariance_factor(&standardised, sigma, problem.estimate.len());
    Scales { covariance, error: mean_square_error.map(|_| sigma * sigma), is_known: false }
}

/// Asked at every step of what is computed after the search: whether to go on.
pub(crate) type Keep<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// The rest of the report.
///
/// # Errors
/// [`FitError::Cancelled`] when `keep` breaks off.
pub(crate) fn add(
    mut fit: Fit,
    weights: &Weights,
    minimum: &Minimum,
    options: &FitOptions,
    solver: &SolveFn<'_>,
    keep: &mut Keep<'_>,
) -> Result<Fit, FitError> {
    let problem = fit.problem.clone();
    let free: Vec<usize> = (0..problem.estimate.len()).filter(|&j| fit.identifiability.free.contains(&problem.estimate[j].name)).collect();
    let scale = scales(&problem, weights, minimum, fit.mean_square_error).error;
    let after = After { problem: &problem, weights, minimum, options, solver };
    fit.identifiability.weak = weak::of_fit(&fit, options, solver);
    fit.information = after.information(&fit);
    fit.derived = derived(&fit);
    fit.priors = after.priors(&fit);
    fit.diagnosis = diagnose(&fit, weights, minimum, &free, scale, options.rank_tolerance);
    if fit.converged {
        after.profiles(&mut fit, keep)?;
        fit.bootstrap = after.bootstrap(&free, keep)?;
        fit.diagnosis.leave_one_out = after.leave_one_out(keep)?;
    }
    let mut notes = fit.diagnosis.notes(&problem);
    notes.extend(after.notes(&fit));
    fit.notes.extend(notes);
    Ok(fit)
}

struct After<'a> {
    problem: &'a Problem,
    weights: &'a Weights,
    minimum: &'a Minimum,
    options: &'a FitOptions,
    solver: &'a SolveFn<'a>,
}

impl<'a> After<'a> {
    fn residuals(&self) -> ProblemResiduals<'a> {
        ProblemResiduals::new(self.problem, self.weights, self.options, self.solver)
    }

    fn bounds(&self) -> Bounds {
        let (lower, upper) = self.problem.bounds().into_iter().unzip();
        Bounds { lower, upper }
    }

    fn information(&self, fit: &Fit) -> Option<Information> {
        if !(fit.converged && self.problem.method.loss.is_squared()) {
            return None;
        }
        let from = |source: WeightSource| -> BTreeSet<usize> {
            self.weights.observations.iter().map(|o| o.measure_idx).filter(|&k| self.weights.sources[k] == source).collect()
        };
        let own = from(WeightSource::ResidualVariance);
        let shared = !from(WeightSource::SharedResidualVariance).is_empty();
        let errors = match (self.weights.are_estimated(), fit.error_scale) {
            (true, _) => {
                let given = self.weights.given_factor != 1.0;
                ErrorParameters::Variances(own.len() + usize::from(shared) + usize::from(given))
            }
            (false, ErrorScale::Estimated) => ErrorParameters::Scale,
            (false, ErrorScale::Known) => ErrorParameters::None,
        };
        let n = self.weights.n_residuals();
        Information::of(fit.sum_of_squares, self.weights.log_determinant(), n, self.problem.estimate.len(), errors)
    }

    fn priors(&self, fit: &Fit) -> IndexMap<String, PriorReport> {
        let mut alone = self.problem.clone();
        alone.estimate.iter_mut().for_each(|e| e.prior = None);
        if self.problem.priors().next().is_none() {
            return IndexMap::new();
        }
        let scale = scales(self.problem, self.weights, self.minimum, fit.mean_square_error).covariance;
        let found = minimise_weighted(&alone, self.weights, &self.minimum.x, self.options, self.solver).ok().filter(|m| m.stop.converged());
        let seen = found.as_ref().map(|m| {
            let mut seen = identify(&m.jacobian, self.options.rank_tolerance);
            let of = |scale: f64| estimated_variances(&alone, self.weights, &m.jacobian, &seen, scale, self.options.rank_tolerance);
            if let Some((_, more)) = scale.and_then(of) {
                seen.unscaled_covariance += more;
            }
            seen
        });
        // Beside intervals with what trials scatter by, or a simulation's error, one by the weights alone would seem sharp.
        let by_weights = fit.interval_degrees_of_freedom.is_none() && self.problem.method.correct_solver.is_none();
        let report = |(j, prior): (usize, crate::fit::problem::Prior)| {
            let name = &self.problem.estimate[j].name;
            let x = self.minimum.x[j];
            let data_alone = match (&found, &seen) {
                (Some(m), Some(seen)) if seen.is_estimable(j) => {
                    let std_error = scale.filter(|_| by_weights).map(|s| (s * seen.unscaled_covariance[(j, j)]).sqrt());
                    Some(DataAlone { estimate: m.x[j], std_error })
                }
                _ => None,
            };
            let deviation = prior.deviation(x);
            let share = fit.parameters[name].std_error.map(|s| (s / deviation).powi(2).min(1.0));
            (name.clone(), PriorReport { prior, deviation, pull: (x - prior.most_likely) / deviation, share, data_alone })
        };
        self.problem.priors().map(report).collect()
    }

    fn profiles(&self, fit: &mut Fit, keep: &mut Keep<'_>) -> Result<(), FitError> {
        let scale = scales(self.problem, self.weights, self.minimum, fit.mean_square_error).covariance;
        let Some(scale) = scale.filter(|s| *s > 0.0 && fit.quantile(fit.confidence).is_some()) else { return Ok(()) };
        if self.problem.method.intervals != Intervals::Profile || !self.problem.method.loss.is_squared() {
            return Ok(());
        }
        let (bounds, coordinates) = (self.bounds(), coordinates(self.problem, &self.problem.whole_numbers()));
        let options = &self.options.least_squares;
        // Standard errors as if nothing were at a bound: the lengths of the first steps.
        let seen = identify(&self.minimum.jacobian, self.options.rank_tolerance);
        for &j in &coordinates.free {
            let std_error = (scale * seen.unscaled_covariance[(j, j)]).sqrt();
            if !(seen.is_estimable(j) && std_error > 0.0 && std_error.is_finite()) {
                continue;
            }
            let Some(quantile) = profile_quantile(fit, &self.problem.estimate[j].name) else { continue };
            let task = ProfileTask { minimum: self.minimum, coordinates: &coordinates, bounds: &bounds, scale, quantile, options };
            let mut broken_off = false;
            let mut keep_on = |_: &Iterate| {
                let answer = keep();
                broken_off |= answer.is_break();
                answer
            };
            let found = profile(&mut self.residuals(), &task, j, std_error, &mut keep_on);
            if broken_off {
                return Err(FitError::Cancelled);
            }
            let name = self.problem.estimate[j].name.clone();
            if let Some(parameter) = fit.parameters.get_mut(&name) {
                (parameter.lower, parameter.upper) = (found.lower, found.upper);
                parameter.interval_method = Some(IntervalMethod::Profile);
                // What was said of the other interval is not true of this one.
                parameter.explanation = ends_in_words(&found, parameter.status);
            }
            fit.profiles.insert(name, found);
        }
        fit.interval_method = IntervalMethod::Profile;
        Ok(())
    }

    fn bootstrap(&self, free: &[usize], keep: &mut Keep<'_>) -> Result<Option<bootstrap::BootstrapReport>, FitError> {
        let Some(asked) = self.problem.method.bootstrap else { return Ok(None) };
        let n_rows = self.weights.n_residuals();
        let (bounds, coordinates) = (self.bounds(), coordinates(self.problem, &self.problem.whole_numbers()));
        let leverages = leverages(self.minimum, free, n_rows, self.options.rank_tolerance);
        let blocks: Vec<std::ops::Range<usize>> = self.weights.blocks.iter().map(|b| b.rows.clone()).collect();
        let strata: Vec<usize> = self.weights.blocks.iter().flat_map(|b| self.strata(b)).collect();
        let task = Resampled {
            minimum: self.minimum,
            blocks: &blocks,
            leverages: leverages.as_slice(),
            strata: &strata,
            coordinates: &coordinates,
            bounds: &bounds,
            options: &self.options.least_squares,
        };
        let make = || self.residuals();
        let found = bootstrap::replicates(&task, asked, &make, keep).ok_or(FitError::Cancelled)?;
        let names = self.problem.estimated_names();
        Ok(bootstrap::summary(&found, &self.minimum.x, &names, &coordinates.free, self.problem.confidence, asked))
    }

    /// Rows of a block whose errors are alike over trials: those of one measure, or of what is left of exact relations.
    fn strata(&self, block: &crate::fit::search::weights::Block) -> Vec<usize> {
        if block.rows.len() == block.observations.len() {
            return self.weights.observations[block.observations.clone()].iter().map(|o| o.measure_idx).collect();
        }
        vec![self.weights.sources.len(); block.rows.len()]
    }

    fn leave_one_out(&self, keep: &mut Keep<'_>) -> Result<Option<LeaveOneOut>, FitError> {
        if !self.problem.method.leave_one_trial_out {
            return Ok(None);
        }
        let (bounds, coordinates) = (self.bounds(), coordinates(self.problem, &self.problem.whole_numbers()));
        let task = LeaveOutTask {
            weights: self.weights,
            minimum: self.minimum,
            coordinates: &coordinates,
            bounds: &bounds,
            options: &self.options.least_squares,
            ids: self.problem.trials.trials.iter().map(|t| t.id.as_str()).collect(),
            measures: &self.problem.trials.measures,
        };
        leave_one_out(&task, &|| self.residuals(), keep).ok_or(FitError::Cancelled).map(Some)
    }

    fn notes(&self, fit: &Fit) -> Vec<String> {
        let mut notes = Vec::new();
        let method = &self.problem.method;
        if method.intervals == Intervals::Profile && !method.loss.is_squared() {
            notes.push(
                "profiles are of sums of squares: under a loss that bounds outliers the intervals are those of standard errors".into(),
            );
        }
        if !fit.profiles.is_empty() && !fit.whole_numbers.is_empty() {
            let held: Vec<&str> = fit.whole_numbers.iter().map(|w| w.parameter.as_str()).collect();
            notes.push(format!(
                "profiles hold {} where it is: with a neighbour that is not excluded the intervals of the others are too narrow",
                held.join(", ")
            ));
        }
        if let Some(lower) = fit.profiles.iter().find(|(_, p)| p.lower_minimum).map(|(name, _)| name) {
            notes.push(format!("the profile of {lower} met a lower sum of squares than the fit: fit again with more starts"));
        }
        let n_trials = self.weights.blocks.len();
        if fit.bootstrap.is_some() && n_trials < FEW_RESAMPLED {
            notes.push(format!("of {n_trials} trials resampling says little: its intervals are too narrow"));
        }
        if let Some(report) = fit.bootstrap.as_ref().filter(|b| b.failed > 0) {
            notes.push(format!("{} of {} resampled fits found no minimum and are left out", report.failed, report.n));
        }
        if let Some(starts) = fit.starts.as_ref().filter(|s| s.minima.len() > 1) {
            notes.push(format!("{} starts led to {} different minima; the lowest is reported", starts.n, starts.minima.len()));
        }
        notes.extend(fit.priors.iter().filter_map(|(name, prior)| of_prior(name, prior)));
        notes
    }
}

/// What a prior decides, or contradicts.
fn of_prior(name: &str, prior: &PriorReport) -> Option<String> {
    let Some(data) = prior.data_alone else {
        return Some(format!("the data alone do not determine {name}: its estimate and interval rest on the prior"));
    };
    let apart = (data.estimate - prior.prior.most_likely).abs() / prior.deviation.hypot(data.std_error.unwrap_or(0.0));
    (apart > CONTRADICTION).then(|| {
        format!(
            "the prior of {name} and the data contradict each other: the data alone say {}, {} standard deviations from what the prior has for most likely",
            four_digits(data.estimate),
            four_digits(apart)
        )
    })
}

/// What the profile of a parameter rises to at the ends of its interval: the quantile of its own degrees of freedom, and by as much more as its variance
/// is larger for weights that are estimated.
fn profile_quantile(fit: &Fit, name: &str) -> Option<f64> {
    let id = &fit.identifiability;
    let (Some(variances), Some(k)) = (&id.estimated_variances, id.free.iter().position(|f| f == name)) else {
        return fit.quantile(fit.confidence);
    };
    let more = id.covariance.as_ref()?[k][k] / variances.covariance[k][k];
    let quantile = fit.quantile_along(fit.confidence, &unit(id.free.len(), k))?;
    Some(if more >= 1.0 && more.is_finite() { quantile * more.sqrt() } else { quantile })
}

fn ends_in_words(found: &Profile, status: ParameterStatus) -> Option<String> {
    let side = |end: ProfileEnd, which: &str| match end {
        ProfileEnd::Quantile => None,
        ProfileEnd::Bound if status == ParameterStatus::AtLowerBound && which == "lower" => None,
        ProfileEnd::Bound if status == ParameterStatus::AtUpperBound && which == "upper" => None,
        ProfileEnd::Bound => Some(format!("the interval ends at the {which} bound, where the data do not exclude it yet")),
        ProfileEnd::Open => Some(format!("the interval has no {which} end: the data do not exclude any value on that side")),
    };
    let at_bound = match status {
        ParameterStatus::AtLowerBound | ParameterStatus::AtUpperBound => Some("the best value is the bound itself".to_owned()),
        _ => None,
    };
    let sides: Vec<String> = [at_bound, side(found.lower_end, "lower"), side(found.upper_end, "upper")].into_iter().flatten().collect();
    (!sides.is_empty()).then(|| sides.join("; "))
}

/// Values and standard errors of parameters that the model ties to estimated ones.
fn derived(fit: &Fit) -> IndexMap<String, DerivedEstimate> {
    let problem = &fit.problem;
    let is_tied = |v: &ParameterValue| matches!(v, ParameterValue::Expression(_));
    // `_1` stands for an expression in the place of a number.
    let is_nameless = |name: &str| name.strip_prefix('_').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let is_asked_for = |p: &&Parameter| is_tied(&p.value) && !fit.parameters.contains_key(&p.name) && !is_nameless(&p.name);
    let tied = problem.model.parameters.iter().filter(is_asked_for);
    let names: Vec<&String> = tied.map(|p| &p.name).collect();
    let mut found = IndexMap::new();
    if names.is_empty() {
        return found;
    }
    let free = &fit.identifiability.free;
    let mut gradients: IndexMap<&String, Vec<f64>> = names.iter().map(|n| (*n, vec![0.0; free.len()])).collect();
    let Some(first) = tied_values(fit, 0, &[]) else { return found };
    let last = tied_values(fit, problem.trials.trials.len().saturating_sub(1), &[]);
    for lanes in (0..free.len()).collect::<Vec<_>>().chunks(LANES) {
        let wanted: Vec<&String> = lanes.iter().map(|&k| &free[k]).collect();
        let Some(values) = tied_values(fit, 0, &wanted) else { return found };
        for (name, gradient) in &mut gradients {
            let Some(value) = values.get(name) else { continue };
            for (lane, &k) in lanes.iter().enumerate() {
                gradient[k] = value.derivatives().get(lane).copied().unwrap_or(0.0);
            }
        }
    }
    for (name, gradient) in gradients {
        let value = first.get(name).map(|v| v.value());
        let Some(estimate) = value.filter(|v| last.as_ref().and_then(|l| l.get(name)).is_some_and(|l| l.value() == *v)) else { continue };
        if gradient.iter().any(|g| *g != 0.0) {
            found.insert(name.clone(), derived_estimate(fit, estimate, &gradient));
        }
    }
    found
}

fn tied_values(fit: &Fit, trial: usize, wanted: &[&String]) -> Option<Bindings<DualSVec64<LANES>>> {
    let problem = &fit.problem;
    let mut values: Bindings<DualSVec64<LANES>> = problem.bindings_of(trial).iter().map(|(n, v)| (n, DualSVec64::from_re(v))).collect();
    for (name, x) in fit.estimates() {
        let lane = wanted.iter().position(|w| *w == name);
        let plain = DualSVec64::from_re(x);
        values.set(name, lane.map_or(plain, |lane| plain.derivative(lane)));
    }
    problem.model.bindings(&values).ok()
}

fn derived_estimate(fit: &Fit, estimate: f64, gradient: &[f64]) -> DerivedEstimate {
    let id = &fit.identifiability;
    let std_error = id.variance_along(gradient).filter(|v| *v >= 0.0).map(f64::sqrt);
    let half_width = std_error.and_then(|s| Some(s * fit.quantile_along(fit.confidence, gradient)?));
    DerivedEstimate { estimate, std_error, lower: half_width.map(|h| estimate - h), upper: half_width.map(|h| estimate + h) }
}
