//! Data and problems that do not determine what is asked: each ends in its typed outcome and plain words.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        Estimated, FitError, FitOptions, Measured, ParameterStatus, Problem, ProblemError, Trials, Weighting, fit,
        least_squares::LeastSquaresOptions, least_squares::StopReason,
    },
    model::{Activity, Entry, Measure, Model, Number, Parameter, ParameterValue, Phase, Processor, Task, lqn_text},
    solve::{SolveOptions, sensitivities},
};

use super::three_queue::{TRUE_DEMANDS, estimates, fitted, model, problem, starting_at, trials};

/// What is done to a problem to spoil it.
type Change<'a> = &'a dyn Fn(&mut Problem);

fn statuses(problem: &Problem) -> Vec<ParameterStatus> {
    fitted(problem).unwrap().parameters.values().map(|p| p.status).collect()
}

/// The problem with `trials` that have only the given measure columns.
fn with_columns(mut data: Trials, columns: &[usize]) -> Problem {
    data.measures = columns.iter().map(|&c| data.measures[c].clone()).collect();
    for t in &mut data.trials {
        t.measured = columns.iter().map(|&c| t.measured[c]).collect();
    }
    problem(data)
}

/// A task with one entry on a processor of its own, called by nobody; requests may arrive from outside.
fn add_server(model: &mut Model, name: &str, demand: Number, rate: Option<Number>) {
    let mut entry = Entry::new(format!("{name}_entry"));
    entry.phases.push(Phase { phase: 1, activity: Activity::new(format!("{name}_ph1"), demand) });
    entry.open_arrival_rate = rate;
    let mut task = Task::new(name, format!("p_{name}"));
    task.entries.push(entry);
    model.processors.push(Processor::new(format!("p_{name}")));
    model.tasks.push(task);
}

#[test]
fn a_parameter_that_no_measure_sees_has_no_interval() {
    let mut unseen = problem(trials(10.0, 0.01, 11));
    // A second phase that nobody measures and, without queueing on another's account, a processor of its own.
    unseen.model.parameters.push(Parameter { name: "idle".into(), value: ParameterValue::Number(1.0) });
    add_server(&mut unseen.model, "spare", Number::Parameter("idle".into()), None);
    unseen.estimate.push(Estimated::new("idle").starting_at(1.0));
    let fit = fitted(&unseen).unwrap();
    let idle = &fit.parameters["idle"];
    assert_eq!((idle.status, idle.std_error, idle.lower), (ParameterStatus::RankDeficient, None, None));
    assert_eq!(idle.explanation.as_deref(), Some("no measured value depends on it"));
    assert_eq!(fit.identifiability.rank, 3);
    for (name, truth) in ["d1", "d2", "d3"].into_iter().zip(TRUE_DEMANDS) {
        let p = &fit.parameters[name];
        assert!(p.status == ParameterStatus::Free && p.lower.unwrap() < truth + 0.05 && truth - 0.05 < p.upper.unwrap(), "{p:?}");
    }
    assert!(fit.notes.iter().any(|n| n.contains("idle alone")), "{:?}", fit.notes);
    assert!(fit.covariance.unwrap()[3].iter().all(Option::is_none));
}

#[test]
fn two_parameters_that_appear_only_as_a_sum_name_each_other() {
    let mut sum = problem(trials(10.0, 0.01, 12));
    let total = ParameterValue::Expression("$a + $b".into());
    sum.model.parameters.push(Parameter { name: "d1".into(), value: total });
    sum.estimate = ["a", "b", "d2", "d3"].map(|n| Estimated::new(n).starting_at(1.0)).to_vec();
    let fit = fitted(&sum).unwrap();
    assert!(fit.converged);
    assert_eq!(
        fit.parameters.values().map(|p| p.status).collect::<Vec<_>>(),
        [ParameterStatus::RankDeficient, ParameterStatus::RankDeficient, ParameterStatus::Free, ParameterStatus::Free]
    );
    assert_eq!(fit.parameters["a"].explanation.as_deref(), Some("the data cannot tell it from b"));
    assert!((fit.parameters["a"].estimate + fit.parameters["b"].estimate - 2.0).abs() < 0.05);
    let words = &fit.identifiability.unidentified;
    assert!(words == &["a up by 1 with b down by 1"] || words == &["b up by 1 with a down by 1"], "{words:?}");
}

#[test]
fn a_parameter_at_its_bound_has_no_interval() {
    let mut bounded = problem(trials(10.0, 0.01, 13));
    bounded.estimate[1].max = Some(2.5);
    bounded.estimate[2].min = Some(4.5);
    assert_eq!(statuses(&bounded), [ParameterStatus::Free, ParameterStatus::AtUpperBound, ParameterStatus::AtLowerBound]);
    let fit = fitted(&bounded).unwrap();
    assert_eq!((fit.parameters["d2"].estimate, fit.parameters["d3"].estimate), (2.5, 4.5));
    assert!(fit.parameters["d2"].std_error.is_none());
    assert!(fit.parameters["d2"].explanation.as_ref().unwrap().contains("upper bound 2.5"));
}

#[test]
fn a_fourth_queue_that_is_not_there_is_at_zero_or_near_it() {
    let mut four = problem(trials(10.0, 0.01, 14));
    four.model = model(4);
    four.estimate.push(Estimated::new("d4"));
    let fit = fitted(&four).unwrap();
    let d4 = &fit.parameters["d4"];
    assert!(d4.estimate >= 0.0);
    match d4.status {
        ParameterStatus::AtLowerBound => assert_eq!(d4.estimate, 0.0),
        status => assert!(status == ParameterStatus::Free && d4.lower.unwrap() <= 0.0, "{d4:?}"),
    }
}

#[test]
fn fewer_measurements_than_parameters_are_refused() {
    let mut few = with_columns(trials(10.0, 0.01, 15), &[3]);
    few.trials.trials.truncate(2);
    let error = fitted(&few).unwrap_err();
    assert_eq!(error, FitError::Problem(ProblemError::TooFewMeasurements { n_obs: 2, n_params: 3 }));
}

#[test]
fn as_many_measurements_as_parameters_leave_no_intervals() {
    let mut exact = with_columns(trials(10.0, 0.01, 16), &[0, 1, 2]);
    exact.trials.trials.truncate(1);
    let fit = fitted(&exact).unwrap();
    assert!(fit.converged);
    assert_eq!((fit.degrees_of_freedom, fit.mean_square_error), (0, None));
    assert!(fit.parameters.values().all(|p| p.status == ParameterStatus::NoDegreesOfFreedom && p.std_error.is_none()));
    assert!(fit.covariance.is_none());
}

#[test]
fn constant_data_end_in_a_typed_outcome() {
    let mut constant = trials(10.0, 0.0, 17);
    for t in &mut constant.trials {
        t.measured.iter_mut().flatten().for_each(|m| m.value = 1.0);
    }
    let fit = fitted(&problem(constant)).unwrap();
    assert!(fit.parameters.values().all(|p| p.estimate.is_finite()));
    assert!(fit.parameters.values().all(|p| p.std_error.is_some() || p.explanation.is_some()), "{:?}", fit.parameters);
}

#[test]
fn data_of_zeros_end_in_a_typed_outcome() {
    let mut zeros = trials(10.0, 0.0, 18);
    for t in &mut zeros.trials {
        t.measured.iter_mut().flatten().for_each(|m| m.value = 0.0);
    }
    let fit = fitted(&problem(zeros)).unwrap();
    assert!(fit.parameters.values().all(|p| p.estimate.is_finite() && (p.std_error.is_some() || p.explanation.is_some())));
    assert!(!serde_json::to_string(&fit).unwrap().contains("NaN"));
}

/// Requests arrive faster than they can be served, whatever is estimated.
#[test]
fn a_model_without_a_solution_anywhere_is_an_error() {
    let mut open = problem(trials(10.0, 0.01, 24));
    add_server(&mut open.model, "open", 2.0.into(), Some(1.0.into()));
    let error = fitted(&open).unwrap_err();
    assert!(matches!(error, FitError::Start(_)), "{error}");
    let causes = std::iter::successors(std::error::Error::source(&error), |e| e.source()).map(ToString::to_string).collect::<Vec<_>>();
    assert!(causes.iter().any(|c| c.contains("p_open") || c.contains("open")), "{causes:?}");
}

#[test]
fn negative_measurements_are_remarked() {
    let mut negative = trials(10.0, 0.01, 19);
    negative.trials[3].measured[0].as_mut().unwrap().value = -1.0;
    let fit = fitted(&problem(negative)).unwrap();
    assert!(fit.notes.iter().any(|n| n == "trial \"4\": residence_time(q1) is -1, below zero"), "{:?}", fit.notes);
}

#[test]
fn a_cancelled_fit_says_so() {
    let data = starting_at(problem(trials(10.0, 0.01, 20)), &[200.0; 3]);
    let mut steps = 0;
    let error = fit(&data, &FitOptions::default(), &mut |p| {
        steps += 1;
        assert_eq!(p.parameters.len(), 3);
        if steps == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap_err();
    assert_eq!((error, steps), (FitError::Cancelled, 3));
}

#[test]
fn an_iteration_limit_is_not_a_minimum() {
    let mut data = starting_at(problem(trials(10.0, 0.01, 21)), &[200.0; 3]);
    data.weighting = Weighting::None;
    let options =
        FitOptions { least_squares: LeastSquaresOptions { max_iterations: 1, ..LeastSquaresOptions::default() }, ..FitOptions::default() };
    let fit = fit(&data, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((fit.converged, fit.stop), (false, StopReason::MaxIterations));
    assert!(fit.parameters.values().all(|p| p.status == ParameterStatus::NotConverged && p.lower.is_none()));
    assert!(fit.identifiability.no_covariance.is_some());
}

#[test]
fn one_trial_with_a_typing_error_shows_in_its_residual() {
    let mut typed = trials(10.0, 0.01, 22);
    typed.trials[4].measured[2].as_mut().unwrap().value *= 10.0;
    let fit = fitted(&problem(typed)).unwrap();
    let largest = fit.residuals.iter().flat_map(|row| row.values().flatten()).fold(0.0_f64, |m, r| m.max(r.abs()));
    assert_eq!(fit.residuals[4][2].unwrap().abs(), largest);
    assert!((estimates(&fit)[0] - 2.0).abs() < 0.2, "the other measures keep their demands: {:?}", estimates(&fit));
}

#[test]
fn wrong_problems_are_refused_with_the_name() {
    let base = problem(trials(10.0, 0.01, 23));
    let change = |f: &dyn Fn(&mut Problem)| {
        let mut changed = base.clone();
        f(&mut changed);
        match fitted(&changed) {
            Err(FitError::Problem(error)) => error,
            other => panic!("expected a refusal, found {other:?}"),
        }
    };
    let cases: [(Change<'_>, &str); 18] = [
        (&|p| p.estimate.clear(), "nothing to estimate: name at least one $parameter of the model (it uses $users, $think, $d1, $d2, $d3)"),
        (
            &|p| p.estimate[0].name = "dd".into(),
            "estimated parameter \"dd\" is not used in the model (it uses $users, $think, $d1, $d2, $d3)",
        ),
        (&|p| p.estimate[1].name = "d1".into(), "parameter \"d1\" is to be estimated twice"),
        (&|p| p.estimate[1].name = "users".into(), "parameter \"users\" is both estimated and controlled by the trials: it can be one"),
        (&|p| p.estimate[1].name = "think".into(), "parameter \"think\" is both estimated and controlled by the trials: it can be one"),
        (&|p| p.assumed.set("d1", 1.0), "parameter \"d1\" is both estimated and given a value: it can be one"),
        (&|p| p.assumed.set("think", 1.0), "parameter \"think\" is both given a value and controlled by the trials: it can be one"),
        (&|p| p.assumed.set("x", 1.0), "assumed parameter \"x\" is not used in the model (it uses $users, $think, $d1, $d2, $d3)"),
        (
            &|p| {
                p.estimate.pop();
            },
            "parameter $d3 has no value: it is neither estimated nor assumed, and the trials have no column $d3",
        ),
        (
            &|p| p.trials.trials[0].controlled.set("y", 1.0),
            "controlled parameter \"y\" is not used in the model (it uses $users, $think, $d1, $d2, $d3)",
        ),
        (
            &|p| {
                p.trials.trials[1].controlled.0.shift_remove("think");
            },
            "trial \"2\" has no value of $think, which other trials have",
        ),
        (&|p| p.estimate[0].start = Some(-1.0), "parameter \"d1\": the start -1 is not between 0 and inf"),
        (&|p| p.estimate[0].start = Some(f64::NAN), "parameter \"d1\": the start NaN is not between 0 and inf"),
        (&|p| (p.estimate[0].min, p.estimate[0].max) = (Some(3.0), Some(1.0)), "parameter \"d1\": the bounds 3 to 1 leave no room"),
        (&|p| p.confidence = 1.0, "confidence 1 is not between 0 and 1"),
        (&|p| p.trials.trials.clear(), "the trials cannot be used"),
        (&|p| p.trials.trials[1].id = "1".into(), "the trials cannot be used"),
        (
            &|p| {
                p.estimate.pop();
                p.assumed.set("d3", f64::INFINITY);
            },
            "parameter \"d3\": the value inf is not a finite number",
        ),
    ];
    for (f, expected) in cases {
        assert_eq!(change(f).to_string(), expected);
    }
    let unknown = change(&|p| p.trials.measures[0] = "throughput(nobody)".parse::<Measure>().unwrap());
    assert!(unknown.to_string().contains("nobody"), "{unknown}");
}

#[test]
fn a_trial_that_the_model_cannot_have_is_refused() {
    let mut hopeless = problem(trials(10.0, 0.01, 24));
    hopeless.trials.trials[2].controlled.set("users", 2.5);
    let error = fitted(&starting_at(hopeless, &[1.0; 3])).unwrap_err();
    assert!(matches!(&error, FitError::Problem(ProblemError::ControlledValue { row: 3, column, .. }) if column == "$users"), "{error:?}");
}

/// The utilization of a processor where nothing takes time is 0 by any parameters: zeros that were measured there are no data.
#[test]
fn zeros_of_an_idle_processor_count_for_nothing() {
    let plain = problem(trials(10.0, 0.01, 11));
    let mut with_zeros = plain.clone();
    add_server(&mut with_zeros.model, "idle", Number::Value(0.0), Some(Number::Value(0.1)));
    let without_zeros = fitted(&with_zeros).unwrap();
    with_zeros.trials.measures.push(Measure::Utilization("p_idle".into()));
    for trial in &mut with_zeros.trials.trials {
        trial.measured.push(Some(Measured { value: 0.0, std_error: None, weight: None }));
    }
    let with_zeros = fitted(&with_zeros).unwrap();
    assert_eq!(with_zeros.degrees_of_freedom, without_zeros.degrees_of_freedom);
    assert_eq!(with_zeros.information, without_zeros.information);
    for (name, parameter) in &without_zeros.parameters {
        assert_eq!((parameter.lower, parameter.upper), (with_zeros.parameters[name].lower, with_zeros.parameters[name].upper), "{name}");
    }
    assert!(with_zeros.notes.iter().any(|note| note.contains("utilization(p_idle) is 0 in the model")), "{:?}", with_zeros.notes);
}

/// Queues that only totals tell of may be exchanged: demands that start equal stay so, at a saddle of the sum of squares.
#[test]
fn demands_that_may_be_exchanged_are_told_apart() {
    let data = trials(10.0, 0.0, 11);
    let n_measures = data.measures.len();
    let totals = with_columns(data, &[n_measures - 1]);
    let mut starting_equal = totals.clone();
    starting_equal.estimate.iter_mut().for_each(|estimated| estimated.start = Some(1.0));
    for problem in [totals, starting_equal] {
        let fit = fitted(&problem).unwrap();
        let mut found: Vec<f64> = fit.parameters.values().map(|p| p.estimate).collect();
        found.sort_by(f64::total_cmp);
        for (found, truth) in found.iter().zip(TRUE_DEMANDS) {
            assert!((found - truth).abs() < 1e-3 * truth, "{found}, not {truth}: {:?}", fit.notes);
        }
    }
}

/// The data are those of three threads, two are allowed.
#[test]
fn a_whole_number_at_its_upper_bound_has_no_interval() {
    let text = "$k = 3 $n = 1 P 0 p PP i -1 T 0 t Users r use -1 PP z 1 m $n t pool n serve -1 PP m $k -1 \
                E 0 y use serve 1 -1 f use 1 -1 s serve 0.5 -1 -1";
    let model = lqn_text::parse(text).unwrap();
    let measure: Measure = "throughput(Users)".parse().unwrap();
    let throughput = |n: f64| {
        let values = [("n", n)].into_iter().collect();
        sensitivities(&model, &values, &[], std::slice::from_ref(&measure), &SolveOptions::default()).unwrap().values[0]
    };
    let trial = |n: i32| format!("{n},{}\n", throughput(f64::from(n)));
    let csv = "$n,throughput(Users)\n".to_owned() + &(1..=10).map(trial).collect::<String>();
    let k = Estimated { min: Some(1.0), max: Some(2.0), ..Estimated::new("k").starting_at(1.0) };
    let bounded = Problem { model, estimate: vec![k], ..problem(Trials::from_csv(csv.as_bytes()).unwrap()) };
    let fit = fitted(&bounded).unwrap();
    let k = &fit.parameters["k"];
    assert_eq!((k.estimate, k.status, k.lower, k.upper), (2.0, ParameterStatus::AtUpperBound, None, None));
}
