//! The layered example on simulated trials: what the solver gets wrong is in the data then.
//!
//! `layered_s.csv` and `layered_l.csv` hold what `layerfit simulate examples/woodside/layered-s.lqn --trials users=5..50:5 --time 1e5
//! --seed 2008` and the same of `layered-l.lqn` measured at think time 5 with the true parameters (one web request to the application, 0.2
//! to the directory and 1.2 to the database in either phase in variant S), to six digits.

use layerfit::fit::{
    Fit, Problem, Trials,
    correction::{CorrectionOptions, CorrectionOutcome, SimulationOptions},
};

use super::{
    layered_model::{TRUE, Variant, problem},
    three_queue::fitted,
};

const PROCESSORS: [&str; 3] = ["utilization(WSP)", "utilization(AppP)", "utilization(DBP)"];

/// The trials of a file with its delays and those `utilizations`, weighed by relative error, at think time 5.
fn trials(csv: &[u8], utilizations: &[&str]) -> Trials {
    let mut found = Trials::from_csv(csv).unwrap();
    let kept = |m: &str| !m.starts_with("utilization") || utilizations.contains(&m);
    let positions: Vec<usize> = (0..found.measures.len()).filter(|&k| kept(&found.measures[k].to_string())).collect();
    found.measures = positions.iter().map(|&k| found.measures[k].clone()).collect();
    for trial in &mut found.trials {
        trial.controlled.set("think", 5.0);
        trial.measured = positions.iter().map(|&k| trial.measured[k]).collect();
        trial.measured.iter_mut().flatten().for_each(|m| m.std_error = Some(m.value));
    }
    found
}

fn simulated_s(utilizations: &[&str], threads: f64) -> Problem {
    problem(Variant::S, trials(include_bytes!("layered_s.csv"), utilizations), threads)
}

fn half_width(fit: &Fit, name: &str) -> f64 {
    let p = &fit.parameters[name];
    p.upper.unwrap_or_else(|| panic!("{name}: {:?}, {:?}", fit.stop, fit.parameters)) - p.estimate
}

fn least_at(fit: &Fit, name: &str, value: f64) -> f64 {
    let tried = &fit.whole_numbers.iter().find(|w| w.parameter == name).unwrap().tried;
    tried.iter().find(|t| t.0 == value).unwrap_or_else(|| panic!("{name} {value}: {tried:?}")).1
}

/// Half-widths of another solver's fit to other runs of the same kind: lqns 5.32, overtaking left out, as [`TRUE`].
const PUBLISHED: [f64; 7] = [0.131, 0.006, 0.011, 0.015, 0.001, 0.025, 0.024];

/// Every estimate is within .7 of its half-width of the truth, and that like the published one or, where the solver fits the trials better, down
/// to an eighth of it.
fn check_recovery(fit: &Fit) {
    assert!(fit.converged, "{:?}", fit.stop);
    for ((name, truth), published) in TRUE.iter().zip(PUBLISHED) {
        let p = &fit.parameters[*name];
        assert!((p.estimate - truth).abs() <= 0.7 * half_width(fit, name), "{name}: {p:?}");
        let ratio = half_width(fit, name) / published;
        assert!((0.125..1.5).contains(&ratio), "{name}: {ratio} of {published}");
    }
}

fn hold_whole_numbers(asked: &mut Problem) {
    asked.estimate.retain(|e| !["mApp", "wsThreads"].contains(&e.name.as_str()));
    [("mApp", 1.0), ("wsThreads", 3.0)].into_iter().for_each(|(n, v)| asked.assumed.set(n, v));
}

/// Test 8, the demands: from simulated delays and utilizations. With the whole numbers known the intervals are narrower than what is
/// left of the solver's error, 3 to 5 % of the response times at five to fifteen users, which moves what the application's processor does.
#[test]
fn five_demands_are_recovered_from_simulated_trials() {
    let mut asked = simulated_s(&PROCESSORS, 3.0);
    hold_whole_numbers(&mut asked);
    let fit = fitted(&asked).unwrap();
    assert!(fit.converged, "{:?}", fit.stop);
    let allowed = [("dirD", 0.06), ("appDph1", 0.01)];
    for (name, truth) in TRUE.iter().filter(|(name, _)| fit.parameters.contains_key(*name)) {
        let allowed = allowed.iter().find(|a| a.0 == *name).map_or_else(|| half_width(&fit, name), |a| a.1);
        assert!((fit.parameters[*name].estimate - truth).abs() <= allowed, "{name}: {:?}", fit.parameters);
    }
}

/// Tests 8 and 11: all seven, from threads on either side.
#[test]
fn seven_parameters_are_recovered_from_simulated_trials() {
    for threads in [2.0, 4.0] {
        let fit = fitted(&simulated_s(&PROCESSORS, threads)).unwrap();
        check_recovery(&fit);
        assert_eq!((fit.parameters["mApp"].estimate, fit.parameters["wsThreads"].estimate), (1.0, 3.0));
        // The other solver's sums of squares were 2.73, .018 and 1.51 with 2, 3 and 4 threads, and 1.20 with two copies of the application.
        let least = fit.sum_of_squares;
        assert!(
            least_at(&fit, "wsThreads", 2.0) > 20.0 * least && least_at(&fit, "wsThreads", 4.0) > 10.0 * least,
            "{:?}",
            fit.whole_numbers
        );
        assert!(least_at(&fit, "mApp", 2.0) > 10.0 * least, "{:?}", fit.whole_numbers);
    }
}

/// Test 8: delays alone leave the directory's demand open, as in the published table: its interval and that of the web server's, which trades
/// with it, have the truth and are wide. The application's first phase is 2.3 % off, by what is left of the solver's error.
#[test]
fn delays_alone_say_little_of_the_directory() {
    let mut asked = simulated_s(&[], 3.0);
    hold_whole_numbers(&mut asked);
    let fit = fitted(&asked).unwrap();
    let truth = |name: &str| TRUE.iter().find(|t| t.0 == name).unwrap().1;
    let off = |name: &str| (fit.parameters[name].estimate - truth(name)).abs();
    assert!(["dirD", "WSD", "appDph2", "dbD"].iter().all(|name| off(name) <= half_width(&fit, name)), "{:?}", fit.parameters);
    assert!(off("appDph1") <= 0.025 * truth("appDph1"), "{:?}", fit.parameters);
    let relative = |name: &str| half_width(&fit, name) / truth(name);
    let others = ["WSD", "appDph1", "appDph2", "dbD"].map(relative);
    assert!(relative("dirD") > 0.7 && others.iter().all(|other| *other < 0.5 * relative("dirD")), "{:?}", fit.parameters);
}

/// The fit corrected by simulations of `precision`, once that settles.
fn corrected(mut asked: Problem, precision: f64) -> Fit {
    let simulation = SimulationOptions { precision, max_events: 400_000_000, ..SimulationOptions::default() };
    asked.method.correct_solver = Some(CorrectionOptions { simulation, ..CorrectionOptions::default() });
    let fit = fitted(&asked).unwrap();
    let report = fit.correction.as_ref().unwrap();
    assert_eq!(report.outcome, CorrectionOutcome::Settled, "{:?}", report.rounds);
    fit
}

/// Test 8: corrected for the solver's error, and for how that changes along what the trials hardly determine, delays alone give all
/// five demands, the directory's more closely than the published ±.5.
#[test]
#[ignore = "simulates for minutes"]
fn delays_alone_give_all_demands_once_the_solver_is_corrected() {
    let mut asked = simulated_s(&[], 3.0);
    hold_whole_numbers(&mut asked);
    let fit = corrected(asked, 0.003);
    let report = fit.correction.as_ref().unwrap();
    assert!(report.rounds.iter().any(|r| r.slopes) && !report.slopes_along.is_empty());
    for (name, truth) in TRUE.iter().filter(|(name, _)| fit.parameters.contains_key(*name)) {
        assert!((fit.parameters[*name].estimate - truth).abs() <= half_width(&fit, name), "{name}: {:?}", fit.parameters);
    }
    assert!(half_width(&fit, "dirD") < 0.5 && half_width(&fit, "appDph2") < 0.14, "{:?}", fit.parameters);
}

/// Test 10: where the application calls the directory, their demands trade for each other at the rate of its calls, and only what they take together is
/// found, to a hundredth: what is known of one tells the other, and fits the trials about as well.
#[test]
fn collinear_demands_trade_in_simulated_trials() {
    let mut asked = problem(Variant::L, trials(include_bytes!("layered_l.csv"), &[]), 3.0);
    hold_whole_numbers(&mut asked);
    let fit = fitted(&asked).unwrap();
    asked.estimate.retain(|e| e.name != "dirD");
    asked.assumed.set("dirD", 0.1);
    let told = fitted(&asked).unwrap();
    let of = |fit: &Fit, name: &str| fit.parameters[name].estimate;
    let rate = (of(&fit, "appDph1") - of(&told, "appDph1")) / (0.1 - of(&fit, "dirD"));
    assert!((rate - 0.28).abs() < 0.03, "{rate}");
    assert!(told.sum_of_squares < 1.5 * fit.sum_of_squares, "{} {}", told.sum_of_squares, fit.sum_of_squares);
    for (application, directory) in [(of(&fit, "appDph1"), of(&fit, "dirD")), (of(&told, "appDph1"), 0.1)] {
        let (found, truth) = (application + 0.28 * directory, 0.2 + 0.28 * 0.1);
        assert!((found / truth - 1.0).abs() < 0.01, "{found} {truth}");
    }
}

/// Test 10: corrected for the solver's error, the published sum of the collinear demands is right to the published .001, neither alone is known,
/// and their intervals, which have the simulation's own error, hold the truth.
#[test]
#[ignore = "simulates for a quarter of an hour"]
fn the_sum_of_collinear_demands_is_right_once_the_solver_is_corrected() {
    let mut asked = problem(Variant::L, trials(include_bytes!("layered_l.csv"), &[]), 3.0);
    hold_whole_numbers(&mut asked);
    let open = ["dirD", "appDph1"];
    asked.estimate.retain(|e| open.contains(&e.name.as_str()));
    for (name, truth) in TRUE.iter().filter(|(name, _)| !open.contains(name)) {
        asked.assumed.set(*name, if *name == "WSD" { 0.4 } else { *truth });
    }
    let fit = corrected(asked, 0.002);
    // Along what the data leave open the demands trade 1 for .293; the directory's calls, .28, are not quite that.
    let sum = fit.parameters["appDph1"].estimate + 0.3 * fit.parameters["dirD"].estimate;
    assert!((sum - 0.23).abs() < 0.001, "{sum}: {:?}", fit.parameters);
    for name in open {
        let truth = TRUE.iter().find(|t| t.0 == name).unwrap().1;
        assert!((fit.parameters[name].estimate - truth).abs() < half_width(&fit, name), "{name}: {:?}", fit.parameters);
    }
    assert!(half_width(&fit, "dirD") > 0.1 && half_width(&fit, "appDph1") > 0.03, "{:?}", fit.parameters);
}
