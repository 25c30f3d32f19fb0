//! The questions that model and black boxes are asked.

use indexmap::IndexMap;

use super::{
    curve::{CurveFit, Form, LoadPoint, error_at, fit_curve, fit_polynomial, stated_errors},
    report::{
        BaselineMethod, CurvePoint, Extrapolation, IntervalEstimate, MeasureBaselines, MeasuredPoint, MethodScore, PolynomialReport,
        ScalabilityReport,
    },
};
use crate::{
    fit::{
        diagnosis::leave_out::LeaveOneOut,
        new_errors::{NO_WIDTH, NewErrors},
        problem::parameter_uses::{Role, parameter_uses},
        report::Fit,
        search::{
            run::FitOptions,
            solver::{SolveFn, solve_point},
        },
    },
    model::{Bindings, Measure, Model, Task},
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

/// Loads of a drawn curve.
const DRAWN: u32 = 48;

/// The fits of the model, and what they are asked.
pub(super) struct Questions<'a> {
    /// The fit of all trials.
    pub(super) fit: &'a Fit,
    /// Each trial predicted from the others.
    pub(super) left_out: Option<&'a LeaveOneOut>,
    /// The fit whose curve is drawn: without the trials held out, or that of all.
    pub(super) shown: &'a Fit,
    /// The errors of a new measurement by that.
    pub(super) errors: NewErrors,
    /// Whether `shown` is without the trials held out.
    pub(super) is_extrapolated: bool,
    /// Positions of the trials held out.
    pub(super) held_out: &'a [usize],
    pub(super) load: &'a str,
    pub(super) options: &'a BaselineOptions,
    /// The solver of `shown`.
    pub(super) solver: &'a SolveFn<'a>,
}

/// A measured value with the position of its trial.
#[derive(Clone, Copy)]
struct TrialPoint {
    trial: usize,
    point: LoadPoint,
}

/// Where a value is predicted: at a load, all else as in a trial.
#[derive(Clone, Copy)]
struct Place {
    trial: usize,
    load: f64,
}

impl TrialPoint {
    fn place(&self) -> Place {
        Place { trial: self.trial, load: self.point.load }
    }
}

/// A prediction with its band of a new measurement.
#[derive(Clone, Copy)]
struct Predicted {
    mean: f64,
    half_width: Option<f64>,
}

/// A method fitted to some points: from place to prediction.
type Predictor<'a> = Box<dyn Fn(Place) -> Predicted + 'a>;

/// A curve fitted to some points, with the number of its parameters.
type Made<'a> = Option<(usize, Predictor<'a>)>;

impl Questions<'_> {
    fn confidence(&self) -> f64 {
        self.fit.problem.confidence
    }

    fn is_held(&self, trial: usize) -> bool {
        self.held_out.contains(&trial)
    }

    /// Loads and values of measure `k`.
    fn points(&self, k: usize) -> Vec<TrialPoint> {
        let trials = self.fit.problem.trials.trials.iter().enumerate();
        let of = |(trial, t): (usize, &crate::fit::Trial)| {
            let m = t.measured[k]?;
            Some(TrialPoint { trial, point: LoadPoint { load: t.controlled.get(self.load)?, value: m.value, std_error: m.std_error } })
        };
        trials.filter_map(of).collect()
    }

    pub(super) fn measure(&self, k: usize, measure: &Measure) -> MeasureBaselines {
        let points = self.points(k);
        let measured = |p: &TrialPoint| MeasuredPoint { load: p.point.load, value: p.point.value, held_out: self.is_held(p.trial) };
        let mut found = MeasureBaselines {
            methods: vec![self.model_score(k, measure, &points)],
            points: points.iter().map(measured).collect(),
            curves: IndexMap::new(),
            polynomial: None,
            extrapolated_polynomial: None,
            scalability: None,
        };
        found.curves.insert(BaselineMethod::Model, self.model_curve(measure));
        let polynomial = |points: &[TrialPoint]| -> Made<'_> {
            let fit = fit_polynomial(&without_trials(points))?;
            Some((fit.parameters.len(), predictor(fit, self.confidence())))
        };
        self.add(&mut found, BaselineMethod::Polynomial, &points, &polynomial);
        let report = |points: &[TrialPoint]| fit_polynomial(&without_trials(points)).and_then(|f| polynomial_report(&f, self.confidence()));
        found.polynomial = report(&points);
        found.extrapolated_polynomial = (!self.held_out.is_empty()).then(|| report(&self.known(&points))).flatten();
        match measure {
            Measure::Throughput(_) => {
                let law = |points: &[TrialPoint]| -> Made<'_> {
                    Some((3, predictor(fit_curve(Form::Scalability, &without_trials(points))?, self.confidence())))
                };
                self.add(&mut found, BaselineMethod::ScalabilityLaw, &points, &law);
                found.scalability =
                    fit_curve(Form::Scalability, &without_trials(&points)).map(|f| scalability_report(&f, self.confidence()));
            }
            Measure::ResponseTime(task) => {
                let law = |points: &[TrialPoint]| self.by_little(task, points);
                self.add(&mut found, BaselineMethod::ScalabilityLaw, &points, &law);
            }
            _ => {}
        }
        found.curves.retain(|_, points| !points.is_empty());
        found
    }

    /// Those of `points` that are not held out.
    fn known(&self, points: &[TrialPoint]) -> Vec<TrialPoint> {
        points.iter().filter(|p| !self.is_held(p.trial)).copied().collect()
    }

    /// Asks a curve all questions.
    fn add<'a>(
        &'a self,
        found: &mut MeasureBaselines,
        method: BaselineMethod,
        points: &[TrialPoint],
        make: &dyn Fn(&[TrialPoint]) -> Made<'a>,
    ) {
        let Some((n_parameters, whole)) = make(points) else { return };
        let error = |p: &TrialPoint, f: &Predictor<'_>| p.point.value - f(p.place()).mean;
        let errors: Vec<f64> = points.iter().map(|p| error(p, &whole)).collect();
        let without = |i: usize| {
            let mut others = points.to_vec();
            let left = others.remove(i);
            make(&others).map(|(_, f)| error(&left, &f))
        };
        let left_out: Option<Vec<f64>> = (0..points.len()).map(without).collect();
        let rest = (!self.held_out.is_empty()).then(|| make(&self.known(points))).flatten().map(|(_, f)| f);
        let extrapolation = rest.as_ref().and_then(|f| {
            let held = points.iter().filter(|p| self.is_held(p.trial));
            let pairs: Vec<(f64, Predicted)> = held.map(|p| (p.point.value, f(p.place()))).collect();
            extrapolation(&pairs)
        });
        let leave_one_out_rms_error = left_out.map(|e| rms(&e));
        found.methods.push(MethodScore { method, n_parameters, rms_error: rms(&errors), leave_one_out_rms_error, extrapolation });
        let drawn = rest.unwrap_or(whole);
        let curve = self.grid().into_iter().map(|load| point(load, drawn(Place { trial: 0, load })));
        let curve = curve.filter(|p| p.mean.is_finite()).collect();
        found.curves.insert(method, curve);
    }

    fn model_score(&self, k: usize, measure: &Measure, points: &[TrialPoint]) -> MethodScore {
        let errors: Vec<f64> = points.iter().filter_map(|p| self.fit.residuals.get(p.trial)?.get(measure).copied().flatten()).collect();
        let held = self.held_out.iter().filter(|_| self.is_extrapolated);
        let pairs = held.filter_map(|&t| {
            let trial = &self.fit.problem.trials.trials[t];
            Some((trial.measured[k]?.value, self.predict(&trial.controlled, measure)?))
        });
        let pairs: Vec<(f64, Predicted)> = pairs.collect();
        MethodScore {
            method: BaselineMethod::Model,
            n_parameters: self.fit.parameters.len(),
            rms_error: rms(&errors),
            leave_one_out_rms_error: self.left_out.and_then(|o| o.rms_errors.get(measure).copied()),
            extrapolation: extrapolation(&pairs),
        }
    }

    fn model_curve(&self, measure: &Measure) -> Vec<CurvePoint> {
        let Some(first) = self.fit.problem.trials.trials.first() else { return Vec::new() };
        let at = |load: f64| {
            let mut controlled = first.controlled.clone();
            controlled.set(self.load, load);
            Some(point(load, self.predict(&controlled, measure)?))
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

    /// `measure` by the model that is shown, with the band of a new measurement where there is one.
    fn predict(&self, controlled: &Bindings, measure: &Measure) -> Option<Predicted> {
        let fit = self.shown;
        let mut values = fit.problem.assumed.clone();
        controlled.iter().chain(fit.estimates()).for_each(|(name, value)| values.set(name, value));
        let free = &fit.identifiability.free;
        let options = &self.options.fit.solve;
        let wanted = std::slice::from_ref(measure);
        let solved = solve_point(&fit.problem.model, &values, free, wanted, options, self.solver, "held out").ok()?;
        let row: Vec<f64> = solved.jacobian.row(0).iter().copied().collect();
        let mean = solved.values[0];
        let deviation = self.errors.deviation(measure, &values, mean);
        let variance = fit.identifiability.variance_along(&row);
        let half_width = variance.zip(deviation).and_then(|(v, d)| {
            let quantile = fit.quantile_of_new(fit.confidence, &row, measure, d * d)?;
            with_width(quantile * (v + d * d).sqrt(), mean)
        });
        Some(Predicted { mean, half_width })
    }

    /// Response times of the customers `task` from the law of their throughput in the same trials, by Little's law with each trial's think time;
    /// `points` are the response times. Their scatter about it is a factor of their standard errors where all have one.
    fn by_little(&self, task: &str, points: &[TrialPoint]) -> Made<'_> {
        let problem = &self.fit.problem;
        let customers = problem.model.task(task).filter(|t| t.scheduling.is_reference())?;
        if customers.multiplicity.parameter() != Some(self.load) {
            return None;
        }
        let throughput = problem.trials.measures.iter().position(|m| *m == Measure::Throughput(task.to_owned()))?;
        let mut rates = self.points(throughput);
        rates.retain(|rate| points.iter().any(|p| p.trial == rate.trial));
        let law = fit_curve(Form::Scalability, &without_trials(&rates))?;
        let confidence = self.confidence();
        let time = move |place: Place| {
            let x = law.at(place.load, confidence);
            let std_error = x.std_error.map(|s| place.load / (x.mean * x.mean) * s);
            let think = self.think_time(&problem.model, customers, place)?;
            Some((place.load / x.mean - think, std_error, law.quantile(confidence)))
        };
        let means: Vec<f64> = points.iter().map(|p| Some(time(p.place())?.0)).collect::<Option<_>>()?;
        let loads = without_trials(points);
        let stated = stated_errors(&loads, &means);
        let scaled = |(p, mean): (&LoadPoint, &f64)| (p.value - mean) / p.std_error.filter(|_| stated.is_some()).unwrap_or(1.0);
        let scatter = rms(&loads.iter().zip(&means).map(scaled).collect::<Vec<_>>());
        let predict = move |place: Place| {
            let Some((mean, std_error, quantile)) = time(place) else { return Predicted { mean: f64::NAN, half_width: None } };
            let error = scatter * error_at(stated.as_ref(), place.load, mean);
            let half_width = std_error.zip(quantile).and_then(|(s, q)| with_width(q * s.hypot(error), mean));
            Predicted { mean, half_width }
        };
        Some((3, Box::new(predict)))
    }

    /// Think time of `customers` at `place`.
    fn think_time(&self, model: &Model, customers: &Task, place: Place) -> Option<f64> {
        let mut values = self.fit.problem.bindings_of(place.trial);
        values.set(self.load, place.load);
        customers.think_time.eval(&model.bindings(&values).ok()?).ok()
    }
}

fn without_trials(points: &[TrialPoint]) -> Vec<LoadPoint> {
    points.iter().map(|p| p.point).collect()
}

/// A band has a width or is not there: an exact fit says nothing of the error.
fn with_width(half_width: f64, mean: f64) -> Option<f64> {
    Some(half_width).filter(|w| *w > NO_WIDTH * mean.abs())
}

fn predictor(fit: CurveFit, confidence: f64) -> Predictor<'static> {
    Box::new(move |place| {
        let at = fit.at(place.load, confidence);
        Predicted { mean: at.mean, half_width: at.new_half_width.and_then(|w| with_width(w, at.mean)) }
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
