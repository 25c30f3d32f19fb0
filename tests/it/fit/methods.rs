//! What can be asked of a fit beside plain least squares.

use layerfit::{
    fit::{
        Fit, ParameterStatus, Prior, Problem, ProblemError, Transform, Trials, TrialsError, Weighting,
        engine::loss::Loss,
        problem::{Bootstrap, ErrorScale, Intervals, Resampling, Starts},
        report::IntervalMethod,
    },
    model::{Parameter, ParameterValue},
};

use super::{
    queues::{Errors, Network, pilot, simulated},
    three_queue::{TRUE_DEMANDS, estimates, fitted, problem, starting_at, trials},
};

fn with_error(error: f64, seed: u64) -> Problem {
    problem(trials(10.0, error, seed))
}

/// Within five standard errors of the truth, which one fit in a million is not.
fn check_near_truth(fit: &Fit) {
    for (p, truth) in fit.parameters.values().zip(TRUE_DEMANDS) {
        assert!((p.estimate - truth).abs() < 5.0 * p.std_error.unwrap(), "{p:?}");
    }
}

#[test]
fn a_logarithmic_scale_keeps_the_estimate_and_makes_the_interval_a_factor() {
    let plain = with_error(0.02, 41);
    let mut log = plain.clone();
    log.estimate.iter_mut().for_each(|e| e.transform = Transform::Log);
    for start in [[1.0; 3], [2e3, 3e-3, 4.0]] {
        let (a, b) = (fitted(&plain).unwrap(), fitted(&starting_at(log.clone(), &start)).unwrap());
        for (a, b) in a.parameters.values().zip(b.parameters.values()) {
            assert!((a.estimate / b.estimate - 1.0).abs() < 1e-6 && (a.std_error.unwrap() / b.std_error.unwrap() - 1.0).abs() < 1e-5);
            assert!((b.lower.unwrap() * b.upper.unwrap() / b.estimate.powi(2) - 1.0).abs() < 1e-9);
            assert_eq!(b.interval_method, Some(IntervalMethod::WaldLog));
        }
    }
}

#[test]
fn a_tied_parameter_is_reported_with_its_error() {
    let mut tied = with_error(0.02, 42);
    tied.estimate.truncate(2);
    tied.tie("d3", "$d1 * 2").unwrap();
    let fit = fitted(&tied).unwrap();
    let (d1, d3) = (&fit.parameters["d1"], &fit.derived["d3"]);
    assert!((d3.estimate - 2.0 * d1.estimate).abs() < 1e-12);
    assert!((d3.std_error.unwrap() - 2.0 * d1.std_error.unwrap()).abs() < 1e-9);
    assert!(matches!(tied.tie("d3", "[1, 2]"), Err(ProblemError::Tie { .. })));
    assert!(matches!(tied.tie("d3", "$d1 *"), Err(ProblemError::Tie { .. })));
}

#[test]
fn the_ratio_of_two_demands_can_be_estimated() {
    let mut ratio = with_error(0.02, 43);
    assert!(ratio.tie("d3", "$ratio * $d2").unwrap_err().to_string().contains("it is estimated itself"));
    ratio.estimate[2].name = "ratio".into();
    ratio.tie("d3", "$ratio * $d2").unwrap();
    for (name, expression) in [("users", "2 * $d2"), ("d3", "$d3 + 1"), ("none", "$d2")] {
        assert!(ratio.tie(name, expression).is_err(), "{name}");
    }
    let fit = fitted(&starting_at(ratio, &[1.0, 1.0, 1.0])).unwrap();
    let p = &fit.parameters["ratio"];
    assert!(p.lower.unwrap() < 4.0 / 3.0 && 4.0 / 3.0 < p.upper.unwrap(), "{p:?}");
    let separate = fitted(&with_error(0.02, 43)).unwrap();
    assert!((fit.derived["d3"].estimate / separate.parameters["d3"].estimate - 1.0).abs() < 1e-6);
    assert!((fit.derived["d3"].std_error.unwrap() / separate.parameters["d3"].std_error.unwrap() - 1.0).abs() < 1e-4);
}

#[test]
fn a_prior_is_weighed_against_the_data_and_reported_apart() {
    // One scale of all errors: the weights are known beside each other, and what is known adds up.
    let mut plain = with_error(0.02, 44);
    plain.trials.trials.iter_mut().flat_map(|t| &mut t.measured).flatten().for_each(|m| m.std_error = Some(0.02 * m.value));
    let free = fitted(&plain).unwrap();
    let p = &free.parameters["d2"];
    // Of the data's own width around another value, every other parameter known: the middle of the two.
    let mut asked = plain.clone();
    asked.estimate.truncate(2);
    asked.estimate.remove(0);
    [("d1", 2.0), ("d3", 4.0)].into_iter().for_each(|(n, v)| asked.assumed.set(n, v));
    let alone = fitted(&asked).unwrap();
    let (estimate, s) = (alone.parameters["d2"].estimate, alone.parameters["d2"].std_error.unwrap());
    let mode = estimate + 2.0 * s;
    asked.estimate[0].prior = Some(Prior { min: mode - 3.0 * s, most_likely: mode, max: mode + 3.0 * s });
    let fit = fitted(&asked).unwrap();
    let report = &fit.priors["d2"];
    assert!((fit.parameters["d2"].estimate - (estimate + s)).abs() < 0.15 * s, "{fit:?}");
    assert!((fit.parameters["d2"].std_error.unwrap() / s - 0.5_f64.sqrt()).abs() < 0.05);
    assert!((report.share.unwrap() - 0.5).abs() < 0.06 && (report.pull + 1.0).abs() < 0.2, "{report:?}");
    assert!((report.data_alone.unwrap().estimate / estimate - 1.0).abs() < 1e-3);
    assert!(p.std_error.unwrap() > 0.0);
}

/// A prior far from what precise data say, of errors that the residuals are to tell: were those of a fit that it holds away, they would be so large
/// that the data had nothing to say against it.
#[test]
fn a_prior_that_contradicts_the_data_does_not_take_over() {
    let mut asked = with_error(0.02, 44);
    let free = fitted(&asked).unwrap();
    let j = asked.estimate.iter().position(|e| e.name == "d2").unwrap();
    let estimate = free.parameters["d2"].estimate;
    asked.estimate[j].prior = Some(Prior { min: 0.4 * estimate, most_likely: 0.5 * estimate, max: 0.6 * estimate });
    let fit = fitted(&asked).unwrap();
    let (held, report) = (&fit.parameters["d2"], &fit.priors["d2"]);
    assert!(held.estimate > 0.9 * estimate, "{held:?} {report:?}");
    assert!((report.data_alone.unwrap().estimate / estimate - 1.0).abs() < 0.02 && report.share.unwrap() < 0.3, "{report:?}");
    assert!(fit.notes.iter().any(|note| note.contains("the prior of d2 and the data contradict each other")), "{:?}", fit.notes);
}

#[test]
fn a_prior_settles_what_the_data_cannot() {
    let mut sum = with_error(0.01, 45);
    sum.model.parameters.push(Parameter { name: "d1".into(), value: ParameterValue::Expression("$a + $b".into()) });
    let asked = ["a", "b", "d2", "d3"].map(|n| layerfit::fit::Estimated::new(n).starting_at(1.0));
    sum.estimate = asked.to_vec();
    sum.estimate[0].prior = Some(Prior { min: 0.2, most_likely: 0.5, max: 1.1 });
    let fit = fitted(&sum).unwrap();
    assert_eq!(fit.parameters["a"].status, ParameterStatus::Free);
    assert!((fit.parameters["a"].estimate - 0.5).abs() < 0.01, "{:?}", fit.parameters);
    assert!((fit.parameters["a"].estimate + fit.parameters["b"].estimate - 2.0).abs() < 0.1);
    assert_eq!(fit.priors["a"].data_alone, None);
    assert!(fit.notes.iter().any(|n| n.contains("rest on the prior")), "{:?}", fit.notes);
    sum.estimate[0].prior = Some(Prior { min: 1.0, most_likely: 0.5, max: 1.1 });
    assert!(fitted(&sum).unwrap_err().to_string().contains("cannot be fitted"));
}

#[test]
fn a_typing_error_is_named_and_robust_losses_are_not_moved_by_it() {
    let clean = fitted(&with_error(0.01, 46)).unwrap();
    let mut typed = with_error(0.01, 46);
    typed.trials.trials[4].measured[2].as_mut().unwrap().value *= 10.0;
    let squared = fitted(&typed).unwrap();
    let outlier = &squared.diagnosis.outliers[0];
    assert_eq!((outlier.trial.as_str(), outlier.measure.to_string().as_str()), ("5", "residence_time(q3)"));
    assert_eq!(outlier.factor, Some(10.0));
    assert!(squared.notes.iter().any(|n| n.contains("10 times too large: a typing error?")), "{:?}", squared.notes);
    let d3 =
        |fit: &Fit| (fit.parameters["d3"].estimate - clean.parameters["d3"].estimate).abs() / clean.parameters["d3"].std_error.unwrap();
    for loss in [Loss::Huber { threshold: None }, Loss::SoftL1 { threshold: None }, Loss::Cauchy { threshold: None }] {
        let mut robust = typed.clone();
        robust.method.loss = loss;
        let fit = fitted(&robust).unwrap();
        assert!(fit.converged && fit.weighting.settled, "{loss:?}");
        assert!(d3(&fit) < 1.5 && d3(&fit) <= d3(&squared) + 1.5, "{loss:?}: {} against {}", d3(&fit), d3(&squared));
        assert_eq!(fit.diagnosis.outliers[0].trial, "5");
        check_near_truth(&fit);
        let clean_robust = {
            let mut asked = with_error(0.01, 46);
            asked.method.loss = loss;
            fitted(&asked).unwrap()
        };
        let ratio = clean_robust.parameters["d3"].std_error.unwrap() / clean.parameters["d3"].std_error.unwrap();
        assert!((0.5..2.0).contains(&ratio), "{loss:?}: {ratio}");
    }
}

#[test]
fn several_starts_are_seeded_and_reported() {
    let mut asked = with_error(0.02, 47);
    asked.method.starts = Some(Starts { n: 6, seed: 5 });
    let (a, b) = (fitted(&asked).unwrap(), fitted(&asked).unwrap());
    assert_eq!(a, b);
    let report = a.starts.as_ref().unwrap();
    assert_eq!(report.n, 7);
    assert!(report.converged >= 1 && report.minima[0].n >= 1);
    check_near_truth(&a);
    let one = fitted(&with_error(0.02, 47)).unwrap();
    assert!((estimates(&a)[0] / estimates(&one)[0] - 1.0).abs() < 1e-6);
    asked.method.starts = Some(Starts { n: 0, seed: 5 });
    assert!(matches!(fitted(&asked), Err(layerfit::fit::FitError::Problem(ProblemError::Method { .. }))));
}

#[test]
fn known_errors_are_not_scaled_and_their_misfit_is_tested() {
    let network = Network { demands: &TRUE_DEMANDS, think: 10.0, length: 1e4 };
    let populations = [1, 2, 4, 7, 10];
    let data = simulated(&network, &populations, Errors::Full, &pilot(&network, &populations), 48);
    let scaled = fitted(&problem(data.clone())).unwrap();
    let mut asked = problem(data.clone());
    asked.method.error_scale = ErrorScale::Known;
    let known = fitted(&asked).unwrap();
    assert!(!known.weighting.scaled_by_mean_square_error && scaled.weighting.scaled_by_mean_square_error);
    let ratio = scaled.parameters["d1"].std_error.unwrap() / known.parameters["d1"].std_error.unwrap();
    assert!((ratio - scaled.mean_square_error.unwrap().sqrt()).abs() < 1e-6);
    let p = &known.parameters["d1"];
    assert!((p.upper.unwrap() - p.estimate - 1.959_963_984_540 * p.std_error.unwrap()).abs() < 1e-9);
    assert!(known.diagnosis.error_scale.unwrap().p_value > 0.001);
    // Standard errors ten times too small: the fit misses more than they allow.
    let mut small = data;
    for t in &mut small.trials {
        t.measured.iter_mut().flatten().for_each(|m| m.std_error = m.std_error.map(|s| s / 10.0));
        t.covariances.iter_mut().for_each(|c| c.value /= 100.0);
    }
    let mut asked = problem(small);
    asked.method.error_scale = ErrorScale::Known;
    assert!(fitted(&asked).unwrap().notes.iter().any(|n| n.contains("more than the known errors allow")));
}

#[test]
fn profiles_agree_with_wald_where_the_model_is_nearly_linear_and_say_so_at_a_bound() {
    let mut asked = with_error(0.005, 49);
    asked.weighting = Weighting::None;
    let wald = fitted(&asked).unwrap();
    asked.method.intervals = Intervals::Profile;
    let fit = fitted(&asked).unwrap();
    for (a, b) in wald.parameters.values().zip(fit.parameters.values()) {
        assert_eq!(b.interval_method, Some(IntervalMethod::Profile));
        let width = a.upper.unwrap() - a.lower.unwrap();
        assert!((a.lower.unwrap() - b.lower.unwrap()).abs() < 0.05 * width && (a.upper.unwrap() - b.upper.unwrap()).abs() < 0.05 * width);
    }
    let curve = &fit.profiles["d1"].curve;
    assert!(curve.len() > 8 && curve.windows(2).all(|w| w[0].value < w[1].value && w[0].tau <= w[1].tau), "{curve:?}");
    asked.estimate[0].max = Some(fit.parameters["d1"].estimate + 0.25 * fit.parameters["d1"].std_error.unwrap());
    let bounded = fitted(&asked).unwrap();
    let d1 = &bounded.parameters["d1"];
    assert_eq!((d1.upper, d1.status), (asked.estimate[0].max, ParameterStatus::Free));
    assert!(d1.explanation.as_ref().unwrap().contains("upper bound"), "{d1:?}");
}

#[test]
fn a_parameter_at_its_bound_gets_its_one_sided_profile() {
    let mut asked = with_error(0.02, 50);
    asked.estimate[1].max = Some(2.9);
    asked.method.intervals = Intervals::Profile;
    let fit = fitted(&asked).unwrap();
    let d2 = &fit.parameters["d2"];
    assert_eq!((d2.status, d2.upper), (ParameterStatus::AtUpperBound, Some(2.9)));
    assert!(d2.lower.unwrap() < 2.9 && d2.explanation.as_ref().unwrap().contains("the bound itself"), "{d2:?}");
}

#[test]
fn resampled_fits_have_the_spread_of_the_standard_errors_whatever_the_threads() {
    for resampling in [Resampling::Residuals, Resampling::Trials] {
        let mut asked = with_error(0.02, 51);
        asked.method.bootstrap = Some(Bootstrap { n: 120, resampling, seed: 4 });
        let fit = fitted(&asked).unwrap();
        let report = fit.bootstrap.as_ref().unwrap();
        assert_eq!((report.n, report.failed), (120, 0));
        for (name, found) in &report.parameters {
            let p = &fit.parameters[name];
            let ratio = found.std_error / p.std_error.unwrap();
            assert!((0.6..1.6).contains(&ratio), "{resampling:?} {name}: {ratio}");
            assert!(found.lower < p.estimate && p.estimate < found.upper && found.bias.abs() < p.std_error.unwrap());
        }
        assert_eq!(fitted(&asked).unwrap().bootstrap, fit.bootstrap);
    }
}

#[test]
fn leaving_out_a_trial_costs_more_than_fitting_it() {
    let mut asked = with_error(0.02, 52);
    asked.method.leave_one_trial_out = true;
    let fit = fitted(&asked).unwrap();
    let out = fit.diagnosis.leave_one_out.as_ref().unwrap();
    assert_eq!((out.n_trials, out.failed.len()), (10, 0));
    assert!(out.sum_of_squares > fit.sum_of_squares && out.sum_of_squares < 2.0 * fit.sum_of_squares, "{out:?}");
    for (measure, rms) in &out.rms_errors {
        let fitted = fit.weighting.measures[measure].rms_residual;
        assert!(*rms > 0.9 * fitted && *rms < 2.0 * fitted, "{measure}: {rms} {fitted}");
    }
}

#[test]
fn diagnosis_of_a_good_fit() {
    let fit = fitted(&with_error(0.02, 53)).unwrap();
    let d = &fit.diagnosis;
    assert!(d.normality.unwrap().p_value > 0.01 && d.error_covariance.unwrap().p_value > 0.01, "{d:?}");
    assert!(d.overall.unwrap().p_value < 1e-20 && d.outliers.is_empty() && d.lack_of_fit.is_none());
    assert_eq!((d.points.len(), d.trials.len(), d.measures.len()), (40, 10, 4));
    assert!((d.points.iter().map(|p| p.leverage).sum::<f64>() - 3.0).abs() < 1e-9);
    assert!(d.trials.windows(2).all(|w| w[0].cooks_distance >= w[1].cooks_distance));
    assert!(d.measures.values().all(|m| m.r_squared.unwrap() > 0.9));
    let information = fit.information.unwrap();
    assert!(information.aicc.unwrap() > information.aic && information.n_parameters == 7);
    let joint = fit.joint.as_ref().unwrap();
    let widths = |of: &dyn Fn(&layerfit::fit::report::JointRegion) -> f64| of(joint);
    let bonferroni = widths(&|j| j.bonferroni["d1"].upper - j.bonferroni["d1"].lower);
    let single = fit.parameters["d1"].upper.unwrap() - fit.parameters["d1"].lower.unwrap();
    assert!(bonferroni > single && joint.scheffe["d1"].upper > joint.bonferroni["d1"].upper);
    let text = serde_json::to_string(&fit).unwrap();
    assert_eq!(Fit::from_json(text.as_bytes()).unwrap().diagnosis, fit.diagnosis);
}

#[test]
fn the_smaller_of_two_structures_wins_by_information_too() {
    let data = trials(10.0, 0.02, 54);
    let (free, mut held) = (problem(data.clone()), problem(data));
    held.estimate.pop();
    held.assumed.set("d3", 3.5);
    let (free, held) = (fitted(&free).unwrap().information.unwrap(), fitted(&held).unwrap().information.unwrap());
    assert!(free.aicc.unwrap() < held.aicc.unwrap() && free.bic < held.bic, "d3 = 3.5 is wrong: {free:?} {held:?}");
}

#[test]
fn whole_numbers_refuse_fractions_and_logarithms() {
    let mut asked = with_error(0.02, 55);
    asked.model.tasks[1].multiplicity = layerfit::model::Number::Parameter("threads".into());
    asked.estimate.push(layerfit::fit::Estimated::new("threads").starting_at(1.5));
    let refusal = |asked: &Problem| match fitted(asked) {
        Err(layerfit::fit::FitError::Problem(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&asked), "parameter \"threads\" counts servers, threads or copies: its start 1.5 is not a whole number");
    asked.estimate[3].start = Some(2.0);
    asked.estimate[3].transform = Transform::Log;
    assert!(refusal(&asked).contains("cannot be searched by its logarithm"));
}

const COVARIANCES: &str = "$users,$think,residence_time(q1),stderr(residence_time(q1)),throughput(Users),stderr(throughput(Users)),\
                           covariance(residence_time(q1);throughput(Users))\n1,10,2.0,0.1,0.05,0.002,-0.0001\n2,10,2.3,0.1,0.09,0.002,\n";

#[test]
fn covariances_survive_both_forms() {
    let csv = Trials::from_csv(COVARIANCES.as_bytes()).unwrap();
    assert_eq!((csv.trials[0].covariances.len(), csv.trials[1].covariances.len()), (1, 0));
    assert_eq!(Trials::from_csv(csv.to_csv().as_bytes()).unwrap(), csv);
    assert_eq!(Trials::from_json(csv.to_json().to_string().as_bytes()).unwrap(), csv);
}

#[test]
fn impossible_covariances_are_refused() {
    let refused = |from: &str, to: &str| Trials::from_csv(COVARIANCES.replace(from, to).as_bytes()).unwrap_err();
    assert!(matches!(refused("-0.0001", "-0.0003"), TrialsError::NotACovariance { row: 1, .. }));
    assert!(matches!(refused("-0.0001", "x"), TrialsError::Cell { row: 1, .. }));
    assert!(matches!(refused("1,10,2.0,0.1,", "1,10,,,"), TrialsError::WithoutValue { row: 1, .. }));
    assert!(matches!(refused("q1);throughput(Users))", "q1);throughput(Nobody))"), TrialsError::Companionless { .. }));
    let mut asked = problem(Trials::from_csv(COVARIANCES.as_bytes()).unwrap());
    asked.trials.trials.iter_mut().for_each(|t| t.measured[1].as_mut().unwrap().std_error = None);
    assert!(matches!(fitted(&asked), Err(layerfit::fit::FitError::Problem(ProblemError::VarianceMissing { .. }))));
    let mut asked = with_error(0.02, 56);
    asked.weighting = Weighting::Replicates;
    assert!(matches!(fitted(&asked), Err(layerfit::fit::FitError::Problem(ProblemError::NoReplicates))));
}
