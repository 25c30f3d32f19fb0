//! The questions that model and black boxes are asked.

use std::ops::ControlFlow;

use indexmap::IndexMap;

use super::{
    curve::{CurveFit, Form, LoadPoint, fit_curve, fit_polynomial},
    report::{
        BaselineMethod, Baselines, CurvePoint, Extrapolation, IntervalEstimate, MeasureBaselines, MeasuredPoint, MethodScore,
        PolynomialReport, ScalabilityReport,
    },
};
use crate::{
    fit::{
        problem::{
            Method, Problem,
            parameter_uses::{Role, parameter_uses},
        },
        report::Fit,
        search::{
            run::{FitError, FitOptions, fit_with},
            solver::{SolveFn, solve_point},
        },
    },
    model::{Bindings, Measure},
    solve,
};

/// How to compare with black boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineOptions {
    /// The controlled value that curves are drawn against; chosen where `None`: the number of customers, a rate of arrivals, or what takes the most values.
    pub load: Option<String>,
    /// Share of the loads, the highest ones, that extrapolations do not see, in [0, 1); 0 for none.
    pub hold_out: f64,
    /// Options of the fits.
    pub fit: FitOptions,
}

impl Default for BaselineOptions {
    fn default() -> Self {
        Self { load: None, hold_out: 1.0 / 3.0, fit: FitOptions::default() }
    }
}

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// No controlled value, or not that one.
    #[error("no controlled value{} takes at least two values in the trials", .0.as_ref().map_or_else(String::new, |name| format!(" \"{name}\"")))]
    Load(Option<String>),
    /// A share outside [0, 1).
    #[error("the share of loads to hold out is {0}: expected 0 or more and less than 1")]
    HoldOut(f64),
    /// The fit to the comparison found no minimum.
    #[error("the fit found no minimum: there is nothing to compare")]
    NotConverged,
    /// The model could not be fitted again with trials left out in turn.
    #[error("the model could not be fitted again with each trial left out")]
    Fit(#[from] FitError),
}

/// Fewest loads that an extrapolation is fitted to.
const FEWEST_LOADS: usize = 3;

/// Loads of a drawn curve.
const DRAWN: u32 = 48;

/// Compares `fit` with black boxes on its own trials.
///
/// # Errors
/// [`BaselineError`]; a curve that cannot be fitted is left out.
pub fn baselines(fit: &Fit, options: &BaselineOptions) -> Result<Baselines, BaselineError> {
    baselines_with(fit, options, &solve::sensitivities)
}

/// As [`baselines`], with another solver.
///
/// # Errors
/// As [`baselines`].
pub fn baselines_with(fit: &Fit, options: &BaselineOptions, solver: &SolveFn<'_>) -> Result<Baselines, BaselineError> {
    if !(0.0..1.0).contains(&options.hold_out) {
        return Err(BaselineError::HoldOut(options.hold_out));
    }
    if !fit.converged {
        return Err(BaselineError::NotConverged);
    }
    let load = load_of(&fit.problem, options.load.as_deref())?;
    let mut notes = Vec::new();
    let whole = match fit.diagnosis.leave_one_out {
        Some(_) => fit.clone(),
        None => refitted(&fit.problem, fit, true, options, solver)?,
    };
    let split = split(&fit.problem, &load, options.hold_out);
    let rest = split.as_ref().and_then(|split| match refitted(&split.problem, fit, false, options, solver) {
        Ok(rest) if rest.converged => Some(rest),
        _ => {
            notes.push("the model could not be fitted without the trials held out".to_owned());
            None
        }
    });
    if split.is_none() && options.hold_out > 0.0 {
        notes.push(format!("too few values of {load} to hold some out: at least {} are needed", FEWEST_LOADS + 1));
    }
    let others: Vec<&str> = fit.problem.trials.controlled_names().into_iter().filter(|n| *n != load && varies(&fit.problem, n)).collect();
    if !others.is_empty() {
        notes.push(format!("the curves know nothing of {}, which varied too", others.join(", ")));
    }
    let questions = Questions { fit: &whole, rest: rest.as_ref(), split: split.as_ref(), load: &load, options, solver };
    let measures = fit.problem.trials.measures.iter().enumerate().map(|(k, m)| (m.clone(), questions.measure(k, m))).collect();
    Ok(Baselines {
        confidence: fit.problem.confidence,
        fitted_up_to: split.as_ref().map(|s| s.up_to),
        held_out: split.as_ref().map(|s| s.held_out.iter().map(|&t| fit.problem.trials.trials[t].id.clone()).collect()).unwrap_or_default(),
        load,
        measures,
        notes,
    })
}

fn varies(problem: &Problem, name: &str) -> bool {
    problem.trials.controlled_range(name).is_some_and(|(low, high)| low < high)
}

fn load_of(problem: &Problem, asked: Option<&str>) -> Result<String, BaselineError> {
    if let Some(asked) = asked {
        return if varies(problem, asked) { Ok(asked.to_owned()) } else { Err(BaselineError::Load(Some(asked.to_owned()))) };
    }
    let uses = parameter_uses(&problem.model);
    let customers: Vec<&str> =
        problem.model.tasks.iter().filter(|t| t.scheduling.is_reference()).filter_map(|t| t.multiplicity.parameter()).collect();
    let rank = |name: &str| match () {
        () if customers.contains(&name) => 2,
        () if uses.get(name).is_some_and(|roles| roles.contains(&Role::Rate)) => 1,
        () => 0,
    };
    let n_values = |name: &str| {
        let mut values: Vec<f64> = problem.trials.trials.iter().filter_map(|t| t.controlled.get(name)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    let names = problem.trials.controlled_names().into_iter().filter(|n| varies(problem, n));
    names.max_by_key(|n| (rank(n), n_values(n))).map(str::to_owned).ok_or(BaselineError::Load(None))
}

/// `problem` fitted from the estimates of `fit`.
fn refitted(problem: &Problem, fit: &Fit, leave_out: bool, options: &BaselineOptions, solver: &SolveFn<'_>) -> Result<Fit, FitError> {
    let mut problem = problem.clone();
    let method = problem.method;
    problem.method = Method { loss: method.loss, error_scale: method.error_scale, leave_one_trial_out: leave_out, ..Method::default() };
    problem.estimate.iter_mut().zip(fit.estimates()).for_each(|(e, (_, x))| e.start = Some(x));
    fit_with(&problem, &options.fit, solver, &mut |_| ControlFlow::Continue(()))
}

/// Trials held out, and the problem of the others.
struct Split {
    problem: Problem,
    held_out: Vec<usize>,
    up_to: f64,
}

fn split(problem: &Problem, load: &str, share: f64) -> Option<Split> {
    let mut loads: Vec<f64> = problem.trials.trials.iter().filter_map(|t| t.controlled.get(load)).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a number of loads")]
    #[expect(clippy::cast_precision_loss, reason = "numbers of loads are far below 2^53")]
    let n_held = ((share * loads.len() as f64).round() as usize).max(1).min(loads.len().checked_sub(FEWEST_LOADS)?);
    if n_held == 0 || share == 0.0 {
        return None;
    }
    let up_to = loads[loads.len() - n_held - 1];
    let is_held = |t: &crate::fit::Trial| t.controlled.get(load).is_some_and(|v| v > up_to);
    let mut rest = problem.clone();
    rest.trials.trials.retain(|t| !is_held(t));
    let held_out = (0..problem.trials.trials.len()).filter(|&t| is_held(&problem.trials.trials[t])).collect();
    Some(Split { problem: rest, held_out, up_to })
}

struct Questions<'a> {
    fit: &'a Fit,
    rest: Option<&'a Fit>,
    split: Option<&'a Split>,
    load: &'a str,
    options: &'a BaselineOptions,
    solver: &'a SolveFn<'a>,
}

/// A prediction with its band of a new measurement.
#[derive(Clone, Copy)]
struct Predicted {
    mean: f64,
    half_width: Option<f64>,
}

/// A curve fitted to some points, with the number of its parameters.
type Made = Option<(usize, Predictor<'static>)>;

/// A method fitted to some points: from load to prediction.
type Predictor<'a> = Box<dyn Fn(f64) -> Predicted + 'a>;

impl Questions<'_> {
    fn confidence(&self) -> f64 {
        self.fit.problem.confidence
    }

    fn is_held(&self, trial: usize) -> bool {
        self.split.is_some_and(|s| s.held_out.contains(&trial))
    }

    /// Loads and values of measure `k`, with the positions of their trials.
    fn points(&self, k: usize) -> Vec<(usize, LoadPoint)> {
        let trials = self.fit.problem.trials.trials.iter().enumerate();
        let of = |(t, trial): (usize, &crate::fit::Trial)| {
            let m = trial.measured[k]?;
            Some((t, LoadPoint { load: trial.controlled.get(self.load)?, value: m.value, std_error: m.std_error }))
        };
        trials.filter_map(of).collect()
    }

    fn measure(&self, k: usize, measure: &Measure) -> MeasureBaselines {
        let points = self.points(k);
        let all: Vec<LoadPoint> = points.iter().map(|(_, p)| *p).collect();
        let known: Vec<LoadPoint> = points.iter().filter(|(t, _)| !self.is_held(*t)).map(|(_, p)| *p).collect();
        let mut found = MeasureBaselines {
            methods: vec![self.model_score(k, measure, &points)],
            points: points.iter().map(|(t, p)| MeasuredPoint { load: p.load, value: p.value, held_out: self.is_held(*t) }).collect(),
            curves: IndexMap::new(),
            polynomial: None,
            scalability: None,
        };
        found.curves.insert(BaselineMethod::Model, self.model_curve(measure));
        let polynomial = |points: &[LoadPoint]| -> Made {
            let fit = fit_polynomial(points)?;
            Some((fit.parameters.len(), predictor(fit, self.confidence())))
        };
        self.add(&mut found, BaselineMethod::Polynomial, &points, &known, &polynomial);
        found.polynomial = fit_polynomial(&all).and_then(|f| polynomial_report(&f, self.confidence()));
        match measure {
            Measure::Throughput(_) => {
                let law = |points: &[LoadPoint]| -> Made { Some((3, predictor(fit_curve(Form::Scalability, points)?, self.confidence()))) };
                self.add(&mut found, BaselineMethod::ScalabilityLaw, &points, &known, &law);
                found.scalability = fit_curve(Form::Scalability, &all).map(|f| scalability_report(&f, self.confidence()));
            }
            Measure::ResponseTime(task) => {
                let law = |points: &[LoadPoint]| self.by_little(task, points);
                self.add(&mut found, BaselineMethod::ScalabilityLaw, &points, &known, &law);
            }
            _ => {}
        }
        found.curves.retain(|_, points| !points.is_empty());
        found
    }

    /// Asks a curve all questions.
    fn add(
        &self,
        found: &mut MeasureBaselines,
        method: BaselineMethod,
        points: &[(usize, LoadPoint)],
        known: &[LoadPoint],
        make: &dyn Fn(&[LoadPoint]) -> Made,
    ) {
        let all: Vec<LoadPoint> = points.iter().map(|(_, p)| *p).collect();
        let Some((n_parameters, whole)) = make(&all) else { return };
        let errors: Vec<f64> = all.iter().map(|p| p.value - whole(p.load).mean).collect();
        let without = |i: usize| {
            let mut others = all.clone();
            let left = others.remove(i);
            make(&others).map(|(_, f)| left.value - f(left.load).mean)
        };
        let left_out: Option<Vec<f64>> = (0..all.len()).map(without).collect();
        let rest = self.split.and_then(|_| make(known)).map(|(_, f)| f);
        let held: Vec<LoadPoint> = points.iter().filter(|(t, _)| self.is_held(*t)).map(|(_, p)| *p).collect();
        let extrapolation = rest.as_ref().and_then(|f| {
            let pairs: Vec<(f64, Predicted)> = held.iter().map(|p| (p.value, f(p.load))).collect();
            extrapolation(&pairs)
        });
        let leave_one_out_rms_error = left_out.map(|e| rms(&e));
        found.methods.push(MethodScore { method, n_parameters, rms_error: rms(&errors), leave_one_out_rms_error, extrapolation });
        let drawn = rest.unwrap_or(whole);
        let curve = self.grid().into_iter().map(|load| point(load, drawn(load))).collect();
        found.curves.insert(method, curve);
    }

    fn model_score(&self, k: usize, measure: &Measure, points: &[(usize, LoadPoint)]) -> MethodScore {
        let errors: Vec<f64> = points.iter().filter_map(|(t, _)| self.fit.residuals.get(*t)?.get(measure).copied().flatten()).collect();
        let left_out = self.fit.diagnosis.leave_one_out.as_ref().filter(|o| o.failed.is_empty());
        let held = self.split.map(|s| s.held_out.as_slice()).unwrap_or_default();
        let pairs = held.iter().filter_map(|&t| {
            let trial = &self.fit.problem.trials.trials[t];
            Some((trial.measured[k]?.value, self.predict(self.rest?, &trial.controlled, measure)?))
        });
        let pairs: Vec<(f64, Predicted)> = pairs.collect();
        MethodScore {
            method: BaselineMethod::Model,
            n_parameters: self.fit.parameters.len(),
            rms_error: rms(&errors),
            leave_one_out_rms_error: left_out.and_then(|o| o.rms_errors.get(measure).copied()),
            extrapolation: extrapolation(&pairs),
        }
    }

    fn model_curve(&self, measure: &Measure) -> Vec<CurvePoint> {
        let fit = self.rest.unwrap_or(self.fit);
        let Some(first) = self.fit.problem.trials.trials.first() else { return Vec::new() };
        let at = |load: f64| {
            let mut controlled = first.controlled.clone();
            controlled.set(self.load, load);
            Some(point(load, self.predict(fit, &controlled, measure)?))
        };
        self.grid().into_iter().filter_map(at).collect()
    }

    /// Loads of a drawn curve; whole ones where the load is a number of customers.
    fn grid(&self) -> Vec<f64> {
        let Some((low, high)) = self.fit.problem.trials.controlled_range(self.load) else { return Vec::new() };
        let uses = parameter_uses(&self.fit.problem.model);
        let is_whole = uses.get(self.load).is_some_and(|roles| roles.contains(&Role::Count));
        let mut loads: Vec<f64> = (0..=DRAWN).map(|i| low + (high - low) * f64::from(i) / f64::from(DRAWN)).collect();
        if is_whole {
            loads.iter_mut().for_each(|l| *l = l.round());
            loads.dedup();
        }
        loads
    }

    /// `measure` by the model of `fit`, with the band of a new measurement where there is one.
    fn predict(&self, fit: &Fit, controlled: &Bindings, measure: &Measure) -> Option<Predicted> {
        let mut values = fit.problem.assumed.clone();
        controlled.iter().chain(fit.estimates()).for_each(|(name, value)| values.set(name, value));
        let free = &fit.identifiability.free;
        let options = &self.options.fit.solve;
        let wanted = std::slice::from_ref(measure);
        let solved = solve_point(&fit.problem.model, &values, free, wanted, options, self.solver, "held out").ok()?;
        let row: Vec<f64> = solved.jacobian.row(0).iter().copied().collect();
        let deviation = fit.weighting.measures.get(measure).and_then(|m| m.deviation);
        let variance = fit.identifiability.variance_along(&row);
        let half_width = variance.zip(deviation).and_then(|(v, d)| {
            let quantile = fit.quantile_of_new(fit.confidence, &row, measure, d * d)?;
            Some(quantile * (v + d * d).sqrt()).filter(|w| *w > 0.0)
        });
        Some(Predicted { mean: solved.values[0], half_width })
    }

    /// Response times of the customers `task` from the law of their throughput, by Little's law; `points` are the response times.
    fn by_little(&self, task: &str, points: &[LoadPoint]) -> Made {
        let problem = &self.fit.problem;
        let customers = problem.model.task(task).filter(|t| t.scheduling.is_reference())?;
        if customers.multiplicity.parameter() != Some(self.load) {
            return None;
        }
        let throughput = problem.trials.measures.iter().position(|m| *m == Measure::Throughput(task.to_owned()))?;
        // The trials behind the points, by their loads.
        let all = self.points(throughput).into_iter().map(|(_, p)| p);
        let rates: Vec<LoadPoint> = all.filter(|p| points.iter().any(|q| q.load == p.load)).collect();
        let law = fit_curve(Form::Scalability, &rates)?;
        let values = problem.model.bindings(&problem.bindings_of(0)).ok();
        let think = customers.think_time.eval(values.as_ref()?).ok()?;
        let confidence = self.confidence();
        let time = move |load: f64| {
            let x = law.at(load, confidence);
            let std_error = x.std_error.map(|s| load / (x.mean * x.mean) * s);
            (load / x.mean - think, std_error, law.quantile(confidence))
        };
        let errors: Vec<f64> = points.iter().map(|p| p.value - time(p.load).0).collect();
        let scatter = rms(&errors);
        let predict = move |load: f64| {
            let (mean, std_error, quantile) = time(load);
            Predicted { mean, half_width: std_error.zip(quantile).map(|(s, q)| q * (s * s + scatter * scatter).sqrt()) }
        };
        Some((3, Box::new(predict)))
    }
}

fn predictor(fit: CurveFit, confidence: f64) -> Predictor<'static> {
    Box::new(move |load| {
        let at = fit.at(load, confidence);
        // An exact fit says nothing of the error: a band has a width or is not there.
        Predicted { mean: at.mean, half_width: at.new_half_width.filter(|w| *w > 0.0) }
    })
}

fn point(load: f64, predicted: Predicted) -> CurvePoint {
    let end = |sign: f64| predicted.half_width.map(|w| predicted.mean + sign * w);
    CurvePoint { load, mean: predicted.mean, new_lower: end(-1.0), new_upper: end(1.0) }
}

fn extrapolation(pairs: &[(f64, Predicted)]) -> Option<Extrapolation> {
    if pairs.is_empty() || pairs.iter().any(|(_, p)| !p.mean.is_finite()) {
        return None;
    }
    let errors: Vec<f64> = pairs.iter().map(|(value, p)| value - p.mean).collect();
    let size = rms(&pairs.iter().map(|(value, _)| *value).collect::<Vec<_>>());
    let widths: Option<Vec<f64>> = pairs.iter().map(|(_, p)| p.half_width).collect();
    let covered = widths.as_ref().map(|widths| errors.iter().zip(widths).filter(|(e, w)| e.abs() <= **w).count());
    let mean = |widths: Vec<f64>| widths.iter().sum::<f64>() / f64::from(u32::try_from(widths.len()).unwrap_or(u32::MAX));
    let rms_error = rms(&errors);
    Some(Extrapolation {
        n: pairs.len(),
        rms_error,
        relative_error: if size > 0.0 { rms_error / size } else { 0.0 },
        covered,
        mean_half_width: widths.map(mean),
    })
}

fn rms(values: &[f64]) -> f64 {
    let n = f64::from(u32::try_from(values.len().max(1)).unwrap_or(u32::MAX));
    (values.iter().map(|v| v * v).sum::<f64>() / n).sqrt()
}

fn interval(fit: &CurveFit, j: usize, confidence: f64) -> IntervalEstimate {
    let (estimate, std_error) = (fit.parameters[j], fit.std_error(j));
    let half_width = std_error.zip(fit.quantile(confidence)).map(|(s, q)| s * q);
    IntervalEstimate { estimate, std_error, lower: half_width.map(|h| estimate - h), upper: half_width.map(|h| estimate + h) }
}

fn polynomial_report(fit: &CurveFit, confidence: f64) -> Option<PolynomialReport> {
    let Form::Polynomial { centre, half_range, .. } = fit.form else { return None };
    let coefficients = (0..fit.parameters.len()).map(|j| interval(fit, j, confidence)).collect();
    Some(PolynomialReport { coefficients, centre, half_range, aicc: fit.aicc })
}

fn scalability_report(fit: &CurveFit, confidence: f64) -> ScalabilityReport {
    let (sigma, kappa) = (fit.parameters[1], fit.parameters[2]);
    let peak_load = (kappa > 0.0).then(|| ((1.0 - sigma) / kappa).sqrt()).filter(|n| n.is_finite());
    ScalabilityReport {
        lambda: interval(fit, 0, confidence),
        sigma: interval(fit, 1, confidence),
        kappa: interval(fit, 2, confidence),
        peak_load,
        aicc: fit.aicc,
    }
}
