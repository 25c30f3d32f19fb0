//! Identifiability before any value is measured, and after a fit: what cannot be told apart, and what settles it.

use layerfit::{
    fit::{
        Estimated, FitOptions, Problem, Trials,
        design::{Cures, DesignError, ExpectedFit, IdentifyOptions, identify},
    },
    model::Bindings,
};

use super::{
    layered_model::{DELAYS, TRUE, Variant, problem, trials},
    three_queue::{self, TRUE_DEMANDS, fitted, model},
};

/// The three queues at 1 to 10 customers, nothing measured yet.
fn planned(measures: &str) -> Problem {
    let rows: Vec<String> = (1..=10).map(|n| format!("{n},10{}\n", ",".repeat(measures.split(';').count()))).collect();
    let csv = format!("$users,$think,{}\n{}", measures.replace(';', ","), rows.concat());
    let mut asked = three_queue::problem(Trials::plan_from_csv(csv.as_bytes()).unwrap());
    asked.estimate = ["d1", "d2", "d3"].iter().zip(TRUE_DEMANDS).map(|(n, d)| Estimated::new(*n).starting_at(d)).collect();
    asked
}

const FOUR: &str = "residence_time(q1);residence_time(q2);residence_time(q3);throughput(Users)";

fn expected(problem: &Problem, relative_error: f64) -> ExpectedFit {
    identify(problem, &IdentifyOptions { relative_error, ..IdentifyOptions::default() }).unwrap()
}

/// Before: the half-widths that fits to trials with such errors then have.
#[test]
fn what_is_expected_is_what_comes() {
    let mut plan = planned(FOUR);
    plan.method.error_scale = layerfit::fit::problem::ErrorScale::Known;
    let before = expected(&plan, 0.02);
    assert_eq!((before.rank, before.n_observations), (3, 40));
    // Errors that are estimated widen them, as Student's t with the 37 values more than parameters has it: 2.0262 for 1.9600.
    let estimated = expected(&planned(FOUR), 0.02);
    let wider = estimated.parameters["d1"].half_width.unwrap() / before.parameters["d1"].half_width.unwrap();
    assert!((wider - 2.0262 / 1.9600).abs() < 1e-4, "{wider}");
    let mut asked = plan;
    let noisy = three_queue::trials(10.0, 0.0, 1);
    for (trial, exact) in asked.trials.trials.iter_mut().zip(&noisy.trials) {
        trial.measured = exact.measured.clone();
        trial.measured.iter_mut().flatten().for_each(|m| m.std_error = Some(0.02 * m.value));
    }
    let fit = fitted(&asked).unwrap();
    for (name, e) in &before.parameters {
        let p = &fit.parameters[name];
        let half_width = p.upper.unwrap() - p.estimate;
        assert!((e.half_width.unwrap() / half_width - 1.0).abs() < 1e-6, "{name}: {e:?} {half_width}");
        assert!((e.relative_half_width.unwrap() - e.half_width.unwrap() / e.value).abs() < 1e-12);
    }
    for (a, b) in before.singular_values.iter().zip(&fit.identifiability.singular_values) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    let tenth = expected(&Problem { trials: planned(FOUR).trials, ..asked }, 0.002);
    let ratio = before.parameters["d2"].half_width.unwrap() / tenth.parameters["d2"].half_width.unwrap();
    assert!((ratio - 10.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn what_no_planned_value_depends_on_is_said_and_cured() {
    let mut asked = planned("throughput(Users)");
    asked.trials.trials.truncate(2);
    let before = expected(&asked, 0.05);
    assert_eq!(before.rank, 2);
    assert!(before.parameters["d1"].half_width.is_none() && before.parameters["d1"].explanation.is_some(), "{before:?}");
    let weak = &before.weak[0];
    assert_eq!(weak.condition_index, None);
    let cure = weak.measures.first().unwrap();
    assert!(cure.half_widths.values().all(Option::is_some), "{cure:?}");
    assert!(weak.points.iter().any(|c| c.half_widths.values().all(Option::is_some)), "{:?}", weak.points);
    let text = before.to_text();
    assert!(text.contains("not told apart: ") && text.contains("measure in addition:"), "{text}");
}

#[test]
fn a_start_is_asked_for() {
    let mut asked = planned(FOUR);
    asked.estimate[1].start = None;
    assert_eq!(identify(&asked, &IdentifyOptions::default()), Err(DesignError::NoStart { name: "d2".into() }));
    asked.estimate[1].prior = Some(layerfit::fit::Prior { min: 1.0, most_likely: 3.0, max: 5.0 });
    let found = identify(&asked, &IdentifyOptions::default()).unwrap();
    assert_eq!(found.parameters["d2"].value, 3.0);
    let none = IdentifyOptions { relative_error: 0.0, ..IdentifyOptions::default() };
    assert!(identify(&asked, &none).unwrap_err().to_string().contains("the relative error is 0"));
}

/// Planned trials may be empty; those of a fit may not.
#[test]
fn empty_trials_are_a_plan_and_no_data() {
    let csv = b"$users,$think,throughput(Users)\n1,10,\n2,10,\n";
    assert!(Trials::plan_from_csv(csv).is_ok());
    assert!(Trials::from_csv(csv).unwrap_err().to_string().contains("nothing was measured"));
    let empty = planned(FOUR);
    assert!(fitted(&empty).is_err());
    assert_eq!(empty.model, model(3));
}

/// Variant L of the layered example: the directory is called in the application's first phase, so that their demands look alike.
fn collinear(measures: &[&str]) -> Problem {
    let mut asked = problem(Variant::L, trials(Variant::L, measures, 0.0, 10), 3.0);
    asked.trials.trials.retain(|t| ["3", "10"].contains(&t.id.as_str()));
    asked.trials.trials.iter_mut().for_each(|t| t.measured.fill(None));
    asked.estimate.retain(|e| ["dirD", "appDph1"].contains(&e.name.as_str()));
    asked.estimate.iter_mut().for_each(|e| e.start = TRUE.iter().find(|(n, _)| *n == e.name).map(|(_, v)| *v));
    asked.assumed = Bindings::new();
    let known = TRUE.iter().filter(|(n, _)| !["dirD", "appDph1"].contains(n));
    known.for_each(|(n, v)| asked.assumed.set(*n, if *n == "WSD" { 0.4 } else { *v }));
    asked
}

#[test]
fn a_collinearity_is_named_and_what_cures_it() {
    let before = expected(&collinear(&DELAYS), 0.01);
    let weak = &before.weak[0];
    assert!(weak.condition_index.unwrap() > 30.0, "{weak:?}");
    let sum = &weak.determined[0];
    assert!(sum.combination.starts_with("appDph1 + 0.") && sum.combination.ends_with(" dirD"), "{sum:?}");
    let share: f64 = sum.combination.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((0.25..0.36).contains(&share), "{sum:?}");
    assert!(sum.half_width < 0.1 * weak.half_widths["appDph1"].unwrap(), "{sum:?} {:?}", weak.half_widths);
    let cure = &weak.measures[0];
    let measure = cure.measure.as_ref().unwrap().to_string();
    assert!(["utilization(Dir)", "service_time(dirOp,1)"].contains(&measure.as_str()), "{measure}");
    assert!(cure.half_widths["dirD"].unwrap() < 0.1 * weak.half_widths["dirD"].unwrap(), "{cure:?}");
    let text = before.to_text();
    assert!(text.contains("hardly told apart") && text.contains("is determined, the difference is not"), "{text}");
    // Measured, it is what it promised.
    let with: Vec<&str> = DELAYS.into_iter().chain([measure.as_str()]).collect();
    let cured = expected(&collinear(&with), 0.01);
    let promised = cure.half_widths["dirD"].unwrap();
    assert!((cured.parameters["dirD"].half_width.unwrap() / promised - 1.0).abs() < 1e-3, "{promised} {:?}", cured.parameters);
    assert!(cured.weak.is_empty(), "{:?}", cured.weak);
}

/// The same stands in the report of a fit.
#[test]
fn a_fit_says_what_would_settle_its_weak_directions() {
    let mut asked = collinear(&DELAYS);
    asked.trials = trials(Variant::L, &DELAYS, 0.0002, 10);
    asked.trials.trials.retain(|t| ["3", "10"].contains(&t.id.as_str()));
    let options = FitOptions { cures: Cures::Listed, ..FitOptions::default() };
    let fit = layerfit::fit::fit(&asked, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let weak = &fit.identifiability.weak[0];
    assert!(weak.condition_index.unwrap() > 30.0 && weak.determined[0].combination.starts_with("appDph1 + "), "{weak:?}");
    let best = weak.measures[0].measure.as_ref().unwrap().to_string();
    assert!(["utilization(Dir)", "service_time(dirOp,1)"].contains(&best.as_str()), "{best}");
    let json = serde_json::to_value(&fit).unwrap();
    assert!(json["identifiability"]["weak"][0]["measures"][0]["half_widths"]["dirD"].is_number());
    assert!(fit.to_text().contains("hardly told apart"), "{}", fit.to_text());
    let lean = fitted(&asked).unwrap();
    assert_eq!((lean.identifiability.weak[0].measures.len(), &lean.identifiability.weak[0].determined), (0, &weak.determined));
    let good = fitted(&three_queue::problem(three_queue::trials(10.0, 0.01, 2))).unwrap();
    assert!(good.identifiability.weak.is_empty() && !good.to_text().contains("told apart"), "{:?}", good.identifiability.weak);
}

/// Values that are predicted to be the same at equal starts are no copies: the sensitivities differ.
#[test]
fn equal_starts_leave_no_planned_measure_out() {
    let mut plan = planned("residence_time(q1);residence_time(q2);residence_time(q3)");
    plan.estimate.iter_mut().for_each(|e| e.start = Some(1.0));
    let (equal, mut apart) = (expected(&plan, 0.02), plan);
    apart.estimate.iter_mut().zip([1.0, 1.000_1, 1.000_2]).for_each(|(e, start)| e.start = Some(start));
    let apart = expected(&apart, 0.02);
    assert_eq!((equal.rank, equal.n_observations, apart.n_observations), (3, 30, 30));
    for (name, e) in &equal.parameters {
        let ratio = e.half_width.unwrap() / apart.parameters[name].half_width.unwrap();
        assert!((ratio - 1.0).abs() < 1e-3, "{name}: {ratio}");
    }
}

/// One visit a cycle: the throughput of a queue is that of its customers, and a fit will count such values once.
#[test]
fn what_is_the_same_whatever_the_parameters_counts_once() {
    let (once, twice) = (expected(&planned("throughput(Users)"), 0.02), expected(&planned("throughput(Users);throughput(q1)"), 0.02));
    assert_eq!((once.n_observations, twice.n_observations), (10, 10));
    assert_eq!(once.singular_values, twice.singular_values);
    assert!(twice.notes.iter().any(|n| n.contains("throughput(q1) is in the model what throughput(Users) is")), "{:?}", twice.notes);
}

#[test]
fn without_a_value_more_than_parameters_no_interval_is_expected() {
    let mut plan = planned("residence_time(q1);residence_time(q2);residence_time(q3)");
    plan.trials.trials.truncate(1);
    let found = expected(&plan, 0.02);
    assert_eq!((found.n_observations, found.rank), (3, 3));
    assert!(found.parameters.values().all(|p| p.half_width.is_none() && p.std_error.is_some()), "{:?}", found.parameters);
    assert!(found.notes.iter().any(|n| n.contains("nothing left to estimate it from")), "{:?}", found.notes);
    plan.method.error_scale = layerfit::fit::problem::ErrorScale::Known;
    assert!(expected(&plan, 0.02).parameters.values().all(|p| p.half_width.is_some()));
}

/// Errors may be planned before there are values; a fit refuses them.
#[test]
fn standard_errors_of_what_is_not_measured_yet_count() {
    let csv = |error: &str| {
        format!("$users,$think,throughput(Users),stderr(throughput(Users)),residence_time(q3)\n1,10,,{error},\n6,10,,{error},\n")
    };
    let of = |error: &str| {
        let mut asked = three_queue::problem(Trials::plan_from_csv(csv(error).as_bytes()).unwrap());
        asked.estimate = vec![Estimated::new("d3").starting_at(4.0)];
        asked.assumed = [("d1", 2.0), ("d2", 3.0)].into_iter().collect();
        asked.trials.measures.truncate(1);
        asked.trials.trials.iter_mut().for_each(|t| t.measured.truncate(1));
        expected(&asked, 0.05).parameters["d3"].std_error.unwrap()
    };
    assert!((of("0.004") / of("0.001") - 4.0).abs() < 1e-9);
    let refused = Trials::from_csv(csv("0.001").as_bytes()).unwrap_err().to_string();
    assert_eq!(refused, "row 1, column stderr(throughput(Users)): given although throughput(Users) is missing in this row");
}
