//! The model beside black boxes.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        FitOptions, Measured, Problem, Trial, Trials,
        baseline::{
            BaselineError, BaselineOptions, Baselines, baselines,
            curve::{Form, LoadPoint, fit_curve},
            report::BaselineMethod,
        },
        correction::{CorrectedPoint, Correction, CorrectionOutcome, CorrectionReport, Factor},
        fit_with,
    },
    model::Measure,
    predict::{
        Scenarios,
        chart::{baseline_panels, chart},
        predict,
    },
    solve,
};

use super::three_queue::{fitted, problem, trials, truth};

fn compared(problem: &Problem, options: &BaselineOptions) -> Baselines {
    baselines(&fitted(problem).unwrap(), options).unwrap()
}

fn score(found: &Baselines, measure: &str, method: BaselineMethod) -> layerfit::fit::baseline::report::MethodScore {
    let measure: Measure = measure.parse().unwrap();
    *found.measures[&measure].methods.iter().find(|m| m.method == method).unwrap_or_else(|| panic!("{method:?}"))
}

#[test]
fn structure_buys_extrapolation() {
    let found = compared(&problem(trials(10.0, 0.01, 61)), &BaselineOptions::default());
    assert_eq!((found.load.as_str(), found.fitted_up_to, found.held_out.len()), ("users", Some(7.0), 3));
    let law: Measure = "throughput(Users)".parse().unwrap();
    assert!(found.measures[&law].scalability.is_some());
    for measure in ["residence_time(q2)", "residence_time(q3)", "throughput(Users)"] {
        let (model, polynomial) = (score(&found, measure, BaselineMethod::Model), score(&found, measure, BaselineMethod::Polynomial));
        let (m, p) = (model.extrapolation.unwrap(), polynomial.extrapolation.unwrap());
        assert!(m.rms_error < p.rms_error && m.relative_error < 0.05, "{measure}: {m:?} {p:?}");
        assert!(m.covered.unwrap() >= 2 && m.mean_half_width.unwrap() < p.mean_half_width.unwrap(), "{measure}: {m:?} {p:?}");
        assert!(model.leave_one_out_rms_error.unwrap() >= 0.5 * model.rms_error);
        // A polynomial predicts left-out trials worse than those that it was fitted to.
        assert!(polynomial.leave_one_out_rms_error.unwrap() > polynomial.rms_error);
    }
    let text = found.to_text();
    assert!(text.contains("scalability law") && text.contains("3 trials above"), "{text}");
    let svg = chart(&baseline_panels(&found)).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("polynomial") && svg.contains("held out"));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Baselines>(&json).unwrap(), found);
}

/// Exact throughputs and response times of the three queues.
fn both() -> Trials {
    let measures: Vec<Measure> = ["throughput(Users)", "response_time(Users)"].map(|m| m.parse().unwrap()).to_vec();
    let mut data = trials(10.0, 0.0, 1);
    for t in &mut data.trials {
        let values = truth(t.controlled.get("users").unwrap(), 10.0, &measures);
        let error = if t.id.len() % 2 == 0 { 1.0 } else { 0.999 };
        t.measured = values.iter().map(|v| Some(Measured { value: v * error, std_error: None, weight: None })).collect();
    }
    Trials { measures, ..data }
}

#[test]
fn response_times_follow_from_the_law_by_littles() {
    let found = compared(&problem(both()), &BaselineOptions { hold_out: 0.0, ..BaselineOptions::default() });
    assert!(found.held_out.is_empty() && found.fitted_up_to.is_none());
    let measure: Measure = "response_time(Users)".parse().unwrap();
    let curve = &found.measures[&measure].curves[&BaselineMethod::ScalabilityLaw];
    let law = found.measures[&"throughput(Users)".parse::<Measure>().unwrap()].scalability.clone().unwrap();
    for p in curve {
        let n = p.load;
        let x = law.lambda.estimate * n / (1.0 + law.sigma.estimate * (n - 1.0) + law.kappa.estimate * n * (n - 1.0));
        assert!((p.mean - (n / x - 10.0)).abs() < 1e-9 * n, "{p:?}");
        assert!(p.new_upper.unwrap() > p.mean);
    }
    assert_eq!(curve.first().map(|p| p.load), Some(1.0));
    assert!(curve.iter().all(|p| p.load.fract() == 0.0), "customers are whole");
}

/// Response times and throughputs at 1 to 6 customers, each twice, with other think times and errors.
fn replicated() -> Trials {
    let measures: Vec<Measure> = ["throughput(Users)", "response_time(Users)"].map(|m| m.parse().unwrap()).to_vec();
    let base = trials(10.0, 0.0, 1);
    let one = |k: usize| {
        let (users, think) = (1.0 + (k % 6) as f64, 6.0 + (k % 5) as f64);
        let error = |by: usize| 1.0 + 0.02 * (((3 * k + by) % 7) as f64 - 3.0) / 3.0;
        let values = truth(users, think, &measures);
        let measured = values.iter().zip([0, 4]).map(|(v, by)| Some(Measured { value: v * error(by), std_error: None, weight: None }));
        let controlled = [("users", users), ("think", think)].into_iter().collect();
        Trial { id: format!("t{k}"), controlled, measured: measured.collect(), ..base.trials[0].clone() }
    };
    let trials = (0..12).map(one).collect();
    Trials { measures, trials }
}

/// `R = N / X - Z` with the think time of the trial, and a law of the throughputs of the other trials where it is left out.
#[test]
fn a_left_out_response_time_is_predicted_by_other_trials_alone() {
    let data = replicated();
    let value = |t: &Trial, k: usize| t.measured[k].unwrap().value;
    let rate = |t: &Trial| LoadPoint { load: t.controlled.get("users").unwrap(), value: value(t, 0), std_error: None };
    let rms = |out: &dyn Fn(usize, usize) -> bool| {
        let squares = data.trials.iter().enumerate().map(|(i, t)| {
            let known: Vec<LoadPoint> = data.trials.iter().enumerate().filter(|(j, _)| !out(i, *j)).map(|(_, t)| rate(t)).collect();
            let law = fit_curve(Form::Scalability, &known).unwrap();
            let users = t.controlled.get("users").unwrap();
            (value(t, 1) - (users / law.at(users, 0.95).mean - t.controlled.get("think").unwrap())).powi(2)
        });
        (squares.sum::<f64>() / 12.0).sqrt()
    };
    let (fitted_to, left_out) = (rms(&|_, _| false), rms(&|i, j| i == j));
    assert!(left_out > 1.05 * fitted_to, "{left_out} {fitted_to}");
    let mut reversed = data.clone();
    reversed.trials.reverse();
    for trials in [data.clone(), reversed] {
        let mut asked = problem(trials);
        asked.estimate.drain(..2);
        asked.assumed = [("d1", 2.0), ("d2", 3.0)].into_iter().collect();
        let found = score(&compared(&asked, &BaselineOptions::default()), "response_time(Users)", BaselineMethod::ScalabilityLaw);
        assert!((found.rms_error / fitted_to - 1.0).abs() < 1e-6, "{found:?} {fitted_to}");
        assert!((found.leave_one_out_rms_error.unwrap() / left_out - 1.0).abs() < 1e-6, "{found:?} {left_out}");
    }
}

/// Trials with the same relative standard error of every value.
fn with_relative_errors(mut data: Trials, relative: f64) -> Trials {
    data.trials.iter_mut().flat_map(|t| &mut t.measured).flatten().for_each(|m| m.std_error = Some(relative * m.value));
    data
}

#[test]
fn bands_are_those_that_are_predicted() {
    let data = with_relative_errors(trials(10.0, 0.02, 64), 0.03);
    let found = compared(&problem(data.clone()), &BaselineOptions::default());
    let mut known = data.clone();
    known.trials.truncate(7);
    let scenarios = Scenarios::parse(&["users=8..10:1".to_owned()]).unwrap();
    let bands = predict(&fitted(&problem(known)).unwrap(), &scenarios, &[], 0.95).unwrap();
    for (k, measure) in data.measures.iter().enumerate() {
        let (mut widths, mut covered) = (0.0, 0);
        for (row, trial) in bands.rows.iter().zip(&data.trials[7..]) {
            let p = &row.measures[measure];
            let (lower, upper) = (p.new_lower.unwrap(), p.new_upper.unwrap());
            widths += 0.5 * (upper - lower) / 3.0;
            covered += usize::from((lower..=upper).contains(&trial.measured[k].unwrap().value));
        }
        let score = score(&found, &measure.to_string(), BaselineMethod::Model).extrapolation.unwrap();
        assert!((score.mean_half_width.unwrap() / widths - 1.0).abs() < 1e-6, "{measure}: {score:?} {widths}");
        assert_eq!(score.covered, Some(covered), "{measure}");
    }
}

#[test]
fn the_polynomial_that_is_scored_is_reported() {
    let mut data = trials(30.0, 0.003, 65);
    data.trials.truncate(6);
    let found = compared(&problem(data), &BaselineOptions::default());
    assert_eq!(found.fitted_up_to, Some(4.0));
    let of = &found.measures[&"throughput(Users)".parse::<Measure>().unwrap()];
    let scored = of.extrapolated_polynomial.as_ref().unwrap();
    // Four throughputs far below saturation: hardly more than a line, and no constant.
    assert!(scored.degree() >= 1, "{scored:?}");
    for p in &of.curves[&BaselineMethod::Polynomial] {
        let s = (p.load - scored.centre) / scored.half_range;
        let value: f64 = scored.coefficients.iter().rev().fold(0.0, |sum, c| sum * s + c.estimate);
        assert!((value / p.mean - 1.0).abs() < 1e-9, "{p:?} {value}");
    }
    let mut text = found.clone();
    text.measures[0].extrapolated_polynomial.as_mut().unwrap().coefficients.truncate(1);
    assert!(text.to_text().contains("of degree 0 where it is extrapolated"), "{}", text.to_text());
}

/// A system of which the solver has throughputs 20 % too low and waits 10 % too long at every population.
#[test]
fn a_corrected_model_stays_corrected() {
    let mut data = trials(10.0, 0.005, 66);
    let ratio = |measure: &Measure| if matches!(measure, Measure::Throughput(_)) { 1.2 } else { 0.9 };
    for trial in &mut data.trials {
        trial.measured.iter_mut().flatten().zip(&data.measures).for_each(|(m, measure)| m.value *= ratio(measure));
    }
    let factor =
        |m: &Measure| Factor { analytic: 1.0, simulated: ratio(m), half_width: None, ratio: Some(ratio(m)), slopes: Default::default() };
    let factors = || data.measures.iter().map(|m| (m.clone(), factor(m))).collect();
    let points = data.trials.iter().map(|t| CorrectedPoint { controlled: t.controlled.clone(), factors: factors() }).collect();
    let correction = Correction { points, ..Correction::default() };
    let asked = problem(data.clone());
    let solver = correction.around(&solve::sensitivities);
    let mut fit = fit_with(&asked, &FitOptions::default(), &*solver, &mut |_| ControlFlow::Continue(())).unwrap();
    fit.correction = Some(CorrectionReport {
        outcome: CorrectionOutcome::Settled,
        rounds: Vec::new(),
        plain: Default::default(),
        seed: 0,
        precision: None,
        own_squares: None,
        slopes_along: Vec::new(),
        correction: correction.clone(),
    });
    let found = baselines(&fit, &BaselineOptions::default()).unwrap();
    assert!(found.notes.iter().any(|n| n.contains("corrected for the solver's error")), "{:?}", found.notes);
    for measure in &data.measures {
        let score = score(&found, &measure.to_string(), BaselineMethod::Model);
        let whole = fit.residuals.iter().map(|row| row[measure].unwrap().powi(2)).sum::<f64>();
        assert!((score.rms_error / (whole / 10.0).sqrt() - 1.0).abs() < 1e-9, "{measure}");
        // An uncorrected model is off by tens of per cent, as the ratios contradict each other.
        assert!(score.extrapolation.unwrap().relative_error < 0.02, "{measure}: {score:?}");
        assert!(score.leave_one_out_rms_error.unwrap() < 2.0 * score.rms_error, "{measure}: {score:?}");
    }
}

#[test]
fn few_loads_leave_nothing_to_hold_out() {
    let mut data = trials(10.0, 0.01, 62);
    data.trials.truncate(3);
    let found = compared(&problem(data), &BaselineOptions::default());
    assert!(found.held_out.is_empty() && found.notes.iter().any(|n| n.contains("too few values of users")), "{:?}", found.notes);
    assert!(score(&found, "throughput(Users)", BaselineMethod::Model).extrapolation.is_none());
}

#[test]
fn bad_questions_are_refused() {
    let fit = fitted(&problem(trials(10.0, 0.01, 63))).unwrap();
    let refused = |options: BaselineOptions| baselines(&fit, &options).unwrap_err();
    assert_eq!(refused(BaselineOptions { hold_out: 1.0, ..BaselineOptions::default() }), BaselineError::HoldOut(1.0));
    let nan = refused(BaselineOptions { hold_out: f64::NAN, ..BaselineOptions::default() });
    assert!(matches!(nan, BaselineError::HoldOut(_)));
    let think = refused(BaselineOptions { load: Some("think".into()), ..BaselineOptions::default() });
    assert_eq!(think, BaselineError::Load(Some("think".into())), "it does not vary");
    let mut ended = fit.clone();
    ended.converged = false;
    assert_eq!(baselines(&ended, &BaselineOptions::default()).unwrap_err(), BaselineError::NotConverged);
}
