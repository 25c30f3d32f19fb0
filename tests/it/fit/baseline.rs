//! The model beside black boxes.

use layerfit::{
    fit::{
        Measured, Problem, Trials,
        baseline::{BaselineError, BaselineOptions, Baselines, baselines, report::BaselineMethod},
    },
    model::Measure,
    predict::chart::{baseline_panels, chart},
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
