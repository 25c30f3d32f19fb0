//! Rounds of fits and tests.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::candidates::{Addition, AdditionKind, additions};
use crate::{
    fit::{
        comparison::{
            compare::{CompareOptions, compare_with, weights_of},
            f_test::Preferred,
        },
        digits::four_digits,
        inference::distribution::f_upper_tail,
        problem::{Method, Problem},
        report::{Fit, ParameterStatus},
        search::{
            run::{FitError, FitOptions, Progress, fit_with, minimise_weighted},
            solver::{SolveFn, solve_point},
        },
    },
    model::{Model, Parameter, ParameterValue},
    solve::{self, Solver},
};

/// What to try, and how long.
#[derive(Clone, Debug, PartialEq)]
pub struct StepwiseOptions {
    /// Additions to try.
    pub kinds: Vec<AdditionKind>,
    /// Most additions taken.
    pub max_additions: usize,
    /// Whether surplus parameters are left out afterwards.
    pub eliminate: bool,
    /// Options of the fits.
    pub fit: FitOptions,
}

impl Default for StepwiseOptions {
    fn default() -> Self {
        use AdditionKind::{Delay, Queue, SecondPhase, Server, Thread};
        Self { kinds: vec![Delay, Queue, SecondPhase, Thread, Server], max_additions: 3, eliminate: true, fit: FitOptions::default() }
    }
}

/// Why there is no stepwise search.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepwiseError {
    /// The model as given could not be fitted.
    #[error("the model as given could not be fitted")]
    Fit(#[from] FitError),
    /// Its fit found no minimum.
    #[error("the fit of the model as given found no minimum: give other starts or bounds")]
    NotConverged,
}

/// The result of a stepwise search with the fit of the proposed model.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepwise {
    /// What was tried and what came of it.
    pub report: StepwiseReport,
    /// The fit of the model as given.
    pub base: Fit,
    /// The fit of the proposed model; its problem has the model.
    pub proposed: Fit,
}

/// What was tried and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepwiseReport {
    /// Level of the tests.
    pub confidence: f64,
    /// Rounds of additions; the last one took none, unless the limit was reached.
    pub additions: Vec<Round>,
    /// Rounds of eliminations.
    pub eliminations: Vec<Elimination>,
    /// What the proposed model adds, in words.
    pub added: Vec<String>,
    /// Parameters that it leaves out.
    pub left_out: Vec<String>,
    /// Estimated parameters of the proposed model.
    pub parameters: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One round of additions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Candidates, the most significant first.
    pub candidates: Vec<Attempt>,
    /// The description of the one that was taken.
    pub taken: Option<String>,
}

/// One addition, fitted and tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// What is added.
    pub kind: AdditionKind,
    /// The same in words.
    pub description: String,
    /// The new parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Its unit.
    pub unit: String,
    /// Its estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// Half the width of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// Weighted sums of squares without and with it, under the weights of the larger fit.
    pub sums_of_squares: Option<(f64, f64)>,
    /// The statistic; as if a whole number were a real parameter.
    pub f: Option<f64>,
    /// Its probability without the addition.
    pub p_value: Option<f64>,
    /// The same corrected for the number of candidates, by Holm.
    pub corrected_p_value: Option<f64>,
    /// Change of AICc, the addition counted as a parameter; negative is better.
    pub aicc_change: Option<f64>,
    /// Whether both structures were compared under the layered solver, since only one of them has an exact solution.
    #[serde(default)]
    pub layered: bool,
    /// Why there is no test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// One surplus parameter, tried without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elimination {
    /// The parameter.
    pub parameter: String,
    /// Why it looked surplus, in words.
    pub because: String,
    /// Probability of as much loss if it is 0; absent where the model could not be fitted without it.
    pub p_value: Option<f64>,
    /// Whether it was left out.
    pub left_out: bool,
}

struct Search<'a> {
    options: &'a StepwiseOptions,
    solver: &'a SolveFn<'a>,
    progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    confidence: f64,
    notes: Vec<String>,
}

/// Adds to the model of `problem` what its trials ask for, and leaves out what they do not.
///
/// # Errors
/// [`StepwiseError`]; a candidate that cannot be fitted is not an error but said in its attempt.
pub fn stepwise(
    problem: &Problem,
    options: &StepwiseOptions,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Stepwise, StepwiseError> {
    stepwise_with(problem, options, &solve::sensitivities, progress)
}

/// As [`stepwise`], with another solver.
///
/// # Errors
/// As [`stepwise`].
pub fn stepwise_with(
    problem: &Problem,
    options: &StepwiseOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Stepwise, StepwiseError> {
    let mut problem = problem.clone();
    let corrected = problem.method.correct_solver.is_some();
    // What a comparison does not need is left to a fit of what it finds.
    problem.method = Method { loss: problem.method.loss, error_scale: problem.method.error_scale, ..Method::default() };
    let mut search = Search { options, solver, progress, confidence: problem.confidence, notes: Vec::new() };
    let base = search.fit(&problem, &options.fit)?;
    if !base.converged {
        return Err(StepwiseError::NotConverged);
    }
    let (mut current, mut rounds, mut added) = (base.clone(), Vec::new(), Vec::new());
    while added.len() < options.max_additions {
        let (round, next) = search.forward(&current)?;
        let taken = round.taken.clone();
        rounds.push(round);
        let (Some(description), Some(next)) = (taken, next) else { break };
        added.push(description);
        current = next;
    }
    let mut eliminations = Vec::new();
    if options.eliminate {
        while let Some(next) = search.backward(&current, &mut eliminations)? {
            current = next;
        }
    }
    let left_out = eliminations.iter().filter(|e| e.left_out).map(|e| e.parameter.clone()).collect();
    let mut notes = std::mem::take(&mut search.notes);
    if !added.is_empty() {
        notes
            .push("the structure was chosen by the trials that it is fitted to: confirm it on others before trusting its intervals".into());
    }
    if corrected {
        notes.push("the fits that are compared are not corrected for the solver's error: correct a fit of what is proposed".into());
    }
    let parameters = current.parameters.keys().cloned().collect();
    let report = StepwiseReport { confidence: search.confidence, additions: rounds, eliminations, added, left_out, parameters, notes };
    Ok(Stepwise { report, base, proposed: current })
}

impl Search<'_> {
    fn fit(&mut self, problem: &Problem, options: &FitOptions) -> Result<Fit, FitError> {
        fit_with(problem, options, self.solver, &mut *self.progress)
    }

    /// One round of additions: what was tried, and the fit of the one that was taken.
    fn forward(&mut self, current: &Fit) -> Result<(Round, Option<Fit>), FitError> {
        let mut problem = current.problem.clone();
        problem.estimate.iter_mut().zip(current.estimates()).for_each(|(e, (_, x))| e.start = Some(x));
        let mut layered_base = None;
        let mut tried: Vec<(Attempt, Option<Fit>)> = Vec::new();
        for addition in additions(&problem, &self.options.kinds) {
            tried.push(self.attempt(current, &addition, &mut layered_base)?);
        }
        correct(&mut tried);
        let key = |a: &Attempt| a.p_value.unwrap_or(f64::INFINITY);
        tried.sort_by(|a, b| key(&a.0).total_cmp(&key(&b.0)));
        let alpha = 1.0 - self.confidence;
        let asked_for = |a: &Attempt| {
            a.corrected_p_value.is_some_and(|p| p < alpha) && (a.parameter.is_some() || a.aicc_change.is_none_or(|change| change < 0.0))
        };
        let taken = tried.iter().position(|(a, fit)| fit.is_some() && asked_for(a));
        let next = taken.and_then(|i| tried[i].1.take());
        let description = taken.map(|i| tried[i].0.description.clone());
        Ok((Round { candidates: tried.into_iter().map(|(a, _)| a).collect(), taken: description }, next))
    }

    fn attempt(&mut self, current: &Fit, addition: &Addition, layered_base: &mut Option<Fit>) -> Result<(Attempt, Option<Fit>), FitError> {
        let mut attempt = Attempt {
            kind: addition.kind,
            description: addition.description.clone(),
            parameter: addition.parameter.clone(),
            unit: addition.unit.to_owned(),
            estimate: None,
            half_width: None,
            sums_of_squares: None,
            f: None,
            p_value: None,
            corrected_p_value: None,
            aicc_change: None,
            layered: self.loses_exactness(current, addition),
            failure: None,
        };
        match self.tested(current, addition, layered_base, &mut attempt) {
            Ok(fit) => Ok((attempt, Some(fit))),
            Err(Failure::Cancelled) => Err(FitError::Cancelled),
            Err(Failure::Reason(reason)) => {
                attempt.failure = Some(reason);
                Ok((attempt, None))
            }
        }
    }

    /// Fits `addition` and fills the tests of `attempt`.
    fn tested(
        &mut self,
        current: &Fit,
        addition: &Addition,
        layered_base: &mut Option<Fit>,
        attempt: &mut Attempt,
    ) -> Result<Fit, Failure> {
        let options = if attempt.layered { layered(&self.options.fit) } else { self.options.fit.clone() };
        let fit = self.fitted(addition, &options)?;
        if let Some(p) = attempt.parameter.as_ref().and_then(|name| fit.parameters.get(name)) {
            attempt.estimate = Some(p.estimate);
            attempt.half_width = p.upper.map(|upper| upper - p.estimate);
        }
        if attempt.layered && layered_base.is_none() {
            *layered_base = Some(self.fit(&current.problem, &options)?);
        }
        let base = layered_base.as_ref().filter(|_| attempt.layered).unwrap_or(current);
        match &attempt.parameter {
            Some(_) => self.nested(base, &fit, &options, attempt)?,
            None => self.one_more(base, &fit, &options, attempt)?,
        }
        Ok(fit)
    }

    /// The fit of `addition` from 0, or where that finds no minimum from a searched value of the new parameter.
    fn fitted(&mut self, addition: &Addition, options: &FitOptions) -> Result<Fit, Failure> {
        let first = self.fit(&addition.problem, options)?;
        if first.converged {
            return Ok(first);
        }
        let mut problem = addition.problem.clone();
        problem.estimate.iter_mut().filter(|e| addition.parameter.as_ref() == Some(&e.name)).for_each(|e| e.start = None);
        let second = self.fit(&problem, options)?;
        if second.converged { Ok(second) } else { Err(Failure::Reason("its fit found no minimum".into())) }
    }

    fn nested(&self, base: &Fit, fit: &Fit, options: &FitOptions, attempt: &mut Attempt) -> Result<(), Failure> {
        let compare = CompareOptions { fit: options.clone(), ..CompareOptions::default() };
        let found = compare_with(base, fit, &compare, self.solver).map_err(|e| Failure::of(&e))?;
        attempt.sums_of_squares = Some((found.smaller.sum_of_squares, found.larger.sum_of_squares));
        (attempt.f, attempt.p_value) = (Some(found.test.f), Some(found.test.p_value));
        attempt.aicc_change = aicc(fit, 0).zip(aicc(base, 0)).map(|(larger, smaller)| larger - smaller);
        Ok(())
    }

    /// The same number of parameters: both sums under the weights of the new fit.
    fn one_more(&self, base: &Fit, fit: &Fit, options: &FitOptions, attempt: &mut Attempt) -> Result<(), Failure> {
        let weights = weights_of(fit).map_err(|e| Failure::of(&e))?;
        let start: Vec<f64> = base.estimates().map(|(_, x)| x).collect();
        let minimum = |problem: &Problem, start: &[f64]| {
            let found = minimise_weighted(problem, &weights, start, options, self.solver).map_err(Failure::from)?;
            Ok::<f64, Failure>(found.residuals.rows(0, weights.n_residuals()).norm_squared())
        };
        let without = minimum(&base.problem, &start)?;
        let with = minimum(&fit.problem, &fit.estimates().map(|(_, x)| x).collect::<Vec<_>>())?;
        attempt.sums_of_squares = Some((without, with));
        let dof = fit.degrees_of_freedom.saturating_sub(1);
        if dof > 0 && with > 0.0 {
            let f = (without - with).max(0.0) / (with / f64::from(u32::try_from(dof).unwrap_or(u32::MAX)));
            (attempt.f, attempt.p_value) = (Some(f), f_upper_tail(f, 1, dof));
        }
        attempt.aicc_change = aicc(fit, 1).zip(aicc(base, 0)).map(|(larger, smaller)| larger - smaller);
        Ok(())
    }

    /// Whether the model had an exact solution and has none with the addition.
    fn loses_exactness(&self, current: &Fit, addition: &Addition) -> bool {
        let solver_of = |problem: &Problem, x: &[f64]| {
            let mut values = problem.bindings_of(0);
            problem.estimate.iter().zip(x).for_each(|(e, x)| values.set(e.name.clone(), *x));
            solve_point(&problem.model, &values, &[], &problem.trials.measures, &self.options.fit.solve, self.solver, "1")
                .ok()
                .map(|s| s.solution.solver)
        };
        let mut x: Vec<f64> = current.estimates().map(|(_, x)| x).collect();
        let before = solver_of(&current.problem, &x);
        x.resize(addition.problem.estimate.len(), 0.0);
        let after = solver_of(&addition.problem, &x);
        self.options.fit.solve.solver == Solver::Auto && after.is_some() && before != after
    }

    /// The fit without the parameter that is missed least; `None` where all are needed.
    fn backward(&mut self, current: &Fit, tried: &mut Vec<Elimination>) -> Result<Option<Fit>, FitError> {
        if current.parameters.len() < 2 {
            return Ok(None);
        }
        let mut best: Option<(usize, f64, Fit)> = None;
        let from = tried.len();
        for (name, because) in surplus(current) {
            if tried[..from].iter().any(|e| e.parameter == name) {
                continue;
            }
            let found = self.without(current, &name)?;
            let p_value = found.as_ref().map(|(p, _)| *p);
            tried.push(Elimination { parameter: name, because, p_value, left_out: false });
            if let Some((p, fit)) = found.filter(|(p, _)| *p >= 1.0 - self.confidence)
                && best.as_ref().is_none_or(|(_, least, _)| p > *least)
            {
                best = Some((tried.len() - 1, p, fit));
            }
        }
        Ok(best.map(|(index, _, fit)| {
            tried[index].left_out = true;
            fit
        }))
    }

    /// Probability of what is lost by holding `name` at 0, and the fit without it.
    fn without(&mut self, current: &Fit, name: &str) -> Result<Option<(f64, Fit)>, FitError> {
        let mut problem = current.problem.clone();
        problem.estimate.iter_mut().zip(current.estimates()).for_each(|(e, (_, x))| e.start = Some(x));
        problem.estimate.retain(|e| e.name != name);
        problem.assumed.set(name, 0.0);
        let options = self.options.fit.clone();
        let fit = match self.fit(&problem, &options) {
            Ok(fit) if fit.converged => fit,
            Err(FitError::Cancelled) => return Err(FitError::Cancelled),
            _ => return Ok(None),
        };
        let compare = CompareOptions { fit: options, ..CompareOptions::default() };
        let Ok(found) = compare_with(&fit, current, &compare, self.solver) else { return Ok(None) };
        let kept = found.test.preferred == Preferred::Larger;
        Ok((!kept).then_some((found.test.p_value, fit)))
    }
}

enum Failure {
    Cancelled,
    Reason(String),
}

impl Failure {
    fn of(error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |e| e.source());
        Self::Reason(causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        if error == FitError::Cancelled { Self::Cancelled } else { Self::of(&error) }
    }
}

fn layered(options: &FitOptions) -> FitOptions {
    let mut options = options.clone();
    options.solve.solver = Solver::Layered;
    options
}

/// AICc with `more` parameters counted beside those of the fit.
fn aicc(fit: &Fit, more: usize) -> Option<f64> {
    let information = fit.information?;
    let as_f64 = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let (n, k) = (as_f64(fit.degrees_of_freedom + fit.parameters.len()), as_f64(information.n_parameters + more));
    (n > k + 1.0).then(|| 2.0 * k - 2.0 * information.log_likelihood + 2.0 * k * (k + 1.0) / (n - k - 1.0))
}

/// Holm's correction over the candidates that have a probability.
fn correct(tried: &mut [(Attempt, Option<Fit>)]) {
    let mut order: Vec<usize> = (0..tried.len()).filter(|&i| tried[i].0.p_value.is_some()).collect();
    order.sort_by(|&a, &b| tried[a].0.p_value.unwrap_or(1.0).total_cmp(&tried[b].0.p_value.unwrap_or(1.0)));
    let corrected = holm(&order.iter().filter_map(|&i| tried[i].0.p_value).collect::<Vec<_>>());
    for (i, p) in order.into_iter().zip(corrected) {
        tried[i].0.corrected_p_value = Some(p);
    }
}

/// Holm's corrected probabilities of ascending ones.
fn holm(ascending: &[f64]) -> Vec<f64> {
    let m = ascending.len();
    let mut largest = 0.0_f64;
    let corrected = |(i, p): (usize, &f64)| {
        largest = largest.max((p * f64::from(u32::try_from(m - i).unwrap_or(u32::MAX))).min(1.0));
        largest
    };
    ascending.iter().enumerate().map(corrected).collect()
}

/// Parameters that the data do not show to be needed, with the reason in words.
fn surplus(fit: &Fit) -> Vec<(String, String)> {
    let whole = fit.problem.whole_numbers();
    let of = |(j, (name, p)): (usize, (&String, &crate::fit::ParameterEstimate))| {
        if whole[j] || p.min.is_some_and(|min| min > 0.0) || p.max.is_some_and(|max| max < 0.0) {
            return None;
        }
        let half_width = p.upper.map(|upper| upper - p.estimate);
        let because = match (p.status, half_width) {
            (ParameterStatus::AtLowerBound, _) => "its best value is the lower bound".to_owned(),
            (ParameterStatus::Free, Some(h)) if h > p.estimate.abs() => {
                format!("its half-width {} is above its value {}", four_digits(h), four_digits(p.estimate))
            }
            _ => return None,
        };
        Some((name.clone(), because))
    };
    fit.parameters.iter().enumerate().filter_map(of).collect()
}

/// The model of `fit` with its estimates and known constants as the values of its parameters, so that it stands by itself.
pub fn proposed_model(fit: &Fit) -> Model {
    let mut model = fit.problem.model.clone();
    let known: Vec<(String, f64)> =
        fit.problem.assumed.iter().chain(fit.estimates()).map(|(name, value)| (name.to_owned(), value)).collect();
    for (name, value) in known.into_iter().rev() {
        let value = ParameterValue::Number(value);
        match model.parameters.iter_mut().find(|p| p.name == name) {
            Some(definition) => definition.value = value,
            // Before the definitions that may use it.
            None => model.parameters.insert(0, Parameter { name, value }),
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_steps_down() {
        // A worked case: 4 tests; 0.01 · 4, 0.02 · 3, 0.03 · 2 = 0.06 again, 0.6.
        let found = holm(&[0.01, 0.02, 0.03, 0.6]);
        for (found, expected) in found.iter().zip([0.04, 0.06, 0.06, 0.6]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }
}
