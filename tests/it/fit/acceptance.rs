//! The example of M. Woodside, SIPEW 2008, section 3, on simulated trials: widths, coverage, the fourth queue, joint boxes,
//! prediction. The figures are those of 400 replicas made with scipy 1.17.1; here fewer are drawn, from fixed seeds.

use std::sync::OnceLock;

use layerfit::{
    fit::{
        Estimated, Fit, ParameterStatus, Problem, Trials, compare, engine::loss::Loss, f_test::Preferred, problem::Intervals,
        report::IntervalMethod,
    },
    predict::{Scenarios, predict},
};

use super::{
    queues::{Errors, Network, Pilot, pilot, simulated},
    three_queue::{TRUE_DEMANDS, fitted, model, problem, trials},
};

const POPULATIONS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

const THREE: Network<'static> = Network { demands: &TRUE_DEMANDS, think: 10.0, length: 1e4 };

fn three(length: f64, errors: Errors, seed: u64) -> Trials {
    static PILOT: OnceLock<Pilot> = OnceLock::new();
    simulated(&Network { length, ..THREE }, &POPULATIONS, errors, PILOT.get_or_init(|| pilot(&THREE, &POPULATIONS)), seed)
}

fn half_widths(fit: &Fit) -> Vec<f64> {
    fit.parameters.values().map(|p| p.upper.unwrap() - p.estimate).collect()
}

fn mean_half_widths(length: f64, replicas: u64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 0..replicas {
        let fit = fitted(&problem(three(length, Errors::Diagonal, seed))).unwrap();
        sums.iter_mut().zip(half_widths(&fit)).for_each(|(s, h)| *s += h / replicas as f64);
    }
    sums
}

/// Test 3: intervals as wide as expected, and narrower by √10 for ten times the data.
#[test]
fn widths_of_intervals_and_their_fall_with_the_length_of_trials() {
    let expected = [(1e3, 100, [0.109, 0.152, 0.154]), (1e4, 80, [0.035, 0.049, 0.049]), (1e5, 40, [0.0110, 0.0152, 0.0156])];
    let found = expected.map(|(length, replicas, _)| mean_half_widths(length, replicas));
    for ((length, _, expected), found) in expected.iter().zip(&found) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.10, "length {length}: {found} is not {expected}");
        }
    }
    for pair in found.windows(2) {
        for (long, short) in pair[1].iter().zip(pair[0]) {
            assert!((short / long - 3.16).abs() < 0.2, "{short} / {long}");
        }
    }
}

struct Coverage {
    each: [usize; 3],
    joint: usize,
    bonferroni: usize,
    ellipsoid: usize,
    warned: usize,
}

/// `(x - x̂)ᵀ P⁻¹ (x - x̂)` of the truth.
fn distance_squared(fit: &Fit) -> f64 {
    let rows = fit.covariance.as_ref().unwrap();
    let covariance = nalgebra::DMatrix::from_fn(3, 3, |i, j| rows[i][j].unwrap());
    let off = nalgebra::DVector::from_iterator(3, fit.parameters.values().zip(TRUE_DEMANDS).map(|(p, t)| p.estimate - t));
    off.dot(&(covariance.try_inverse().unwrap() * &off))
}

fn coverage(errors: Errors, intervals: Intervals, replicas: u64) -> Coverage {
    let mut found = Coverage { each: [0; 3], joint: 0, bonferroni: 0, ellipsoid: 0, warned: 0 };
    for seed in 0..replicas {
        let mut asked = problem(three(1e4, errors, 1000 + seed));
        if errors == Errors::Unknown {
            asked.weighting = layerfit::fit::Weighting::None;
        }
        asked.method.intervals = intervals;
        let fit = fitted(&asked).unwrap();
        let holds: Vec<bool> =
            fit.parameters.values().zip(TRUE_DEMANDS).map(|(p, t)| p.lower.unwrap() < t && t < p.upper.unwrap()).collect();
        found.each.iter_mut().zip(&holds).for_each(|(n, h)| *n += usize::from(*h));
        found.joint += usize::from(holds.iter().all(|h| *h));
        let joint = fit.joint.as_ref().unwrap();
        found.bonferroni += usize::from(joint.bonferroni.values().zip(TRUE_DEMANDS).all(|(l, t)| l.lower < t && t < l.upper));
        found.ellipsoid += usize::from(distance_squared(&fit) < joint.radius_squared);
        // Not the remark that measures are weighed as independent, which every fit without covariances has: what the residuals show.
        let says = |n: &String| n.contains("the errors are not what the weights say") || n.contains("cancel (Little's law");
        found.warned += usize::from(fit.notes.iter().any(says));
    }
    found
}

/// Tests 4 and 13: with the covariance of each trial intervals cover, one by one and jointly.
#[test]
fn full_covariances_cover_as_often_as_they_say() {
    let replicas = 150;
    let found = coverage(Errors::Full, Intervals::Wald, replicas);
    for n in found.each {
        assert!((0.93..=0.98).contains(&(n as f64 / replicas as f64)), "{:?}", found.each);
    }
    assert!(found.joint as f64 / replicas as f64 >= 0.857, "{}", found.joint);
    assert!(found.bonferroni as f64 / replicas as f64 >= 0.95, "{}", found.bonferroni);
    assert!(found.warned <= replicas as usize / 10, "{} warned", found.warned);
}

/// Test 4: weights that leave out what the errors are do not, and the fit says so.
#[test]
fn a_misspecified_covariance_is_remarked() {
    let replicas = 60;
    for errors in [Errors::Diagonal, Errors::Unknown] {
        let found = coverage(errors, Intervals::Wald, replicas);
        // Expected of ten trials with standard errors alone: 91 per cent (4,000 data sets of the linear model).
        assert!(found.warned as u64 >= replicas * 8 / 10, "{errors:?}: {} of {replicas} warned", found.warned);
        if errors == Errors::Unknown {
            // Plain least squares: the first demand's interval is far too wide, the others' too narrow.
            let share = |k: usize| found.each[k] as f64 / replicas as f64;
            assert!(share(0) > 0.98 && share(1) < 0.93 && share(2) < 0.85, "{:?}", found.each);
        }
    }
}

/// Of the same fits intervals from what the ten trials scatter by cover, one by one and jointly, whatever the weights leave out; and the remark
/// says so.
#[test]
fn intervals_by_what_trials_scatter_by_cover_under_any_weights() {
    let replicas = 150;
    for errors in [Errors::Diagonal, Errors::Unknown] {
        let found = coverage(errors, Intervals::Sandwich, replicas);
        for n in found.each {
            assert!((0.90..=0.99).contains(&(n as f64 / replicas as f64)), "{errors:?}: {:?}", found.each);
        }
        // All three at once as often as with whole covariances, .85 in the long run, less three deviations of chance.
        assert!(found.joint as f64 / replicas as f64 >= 0.76, "{errors:?}: {}", found.joint);
        assert!(found.ellipsoid as f64 / replicas as f64 >= 0.90, "{errors:?}: {}", found.ellipsoid);
        assert!(found.bonferroni as f64 / replicas as f64 >= 0.91, "{errors:?}: {}", found.bonferroni);
    }
    let mut asked = problem(three(1e4, Errors::Diagonal, 1000));
    asked.method.intervals = Intervals::Sandwich;
    let fit = fitted(&asked).unwrap();
    assert_eq!((fit.interval_method, fit.interval_degrees_of_freedom), (IntervalMethod::Sandwich, Some(7)));
    assert!(fit.notes.iter().any(|n| n.contains("from what trials scatter by allow for that")), "{:?}", fit.notes);
    assert!(!fit.notes.iter().any(|n| n.contains("not to be trusted")), "{:?}", fit.notes);
    // Three trials say nothing of three parameters.
    asked.trials.trials.truncate(3);
    let fit = fitted(&asked).unwrap();
    for p in fit.parameters.values() {
        assert!(p.status == ParameterStatus::NoDegreesOfFreedom && p.lower.is_none(), "{p:?}");
        assert!(p.explanation.as_ref().unwrap().contains("no more trials than parameters"), "{p:?}");
    }
}

/// What it does not go with is refused.
#[test]
fn sandwich_intervals_are_of_plain_least_squares() {
    let mut asked = problem(three(1e4, Errors::Diagonal, 1000));
    asked.method.intervals = Intervals::Sandwich;
    asked.method.loss = Loss::Cauchy { threshold: None };
    let refused = fitted(&asked).unwrap_err();
    assert!(format!("{refused:?}").contains("NotWithSandwich"), "{refused:?}");
    asked.method.loss = Loss::Squared;
    asked.method.correct_solver = Some(layerfit::fit::CorrectionOptions::default());
    let refused = fitted(&asked).unwrap_err();
    assert!(format!("{refused:?}").contains("a correction for the solver's error"), "{refused:?}");
}

struct FourthQueue {
    rejected: usize,
    at_bound: usize,
}

fn fourth_queue(demand: f64, length: f64, replicas: u64) -> FourthQueue {
    let mut found = FourthQueue { rejected: 0, at_bound: 0 };
    let demands = [2.0, 3.0, 4.0, demand];
    let network = Network { demands: if demand > 0.0 { &demands } else { &demands[..3] }, think: 10.0, length };
    let errors = pilot(&network, &POPULATIONS);
    for seed in 0..replicas {
        let data = simulated(&network, &POPULATIONS, Errors::Full, &errors, 5000 + seed);
        let mut four: Problem = problem(data.clone());
        four.model = model(4);
        four.estimate.push(Estimated::new("d4"));
        let (three, four) = (fitted(&problem(data)).unwrap(), fitted(&four).unwrap());
        let test = compare(&three, &four).unwrap();
        assert!(test.larger.sum_of_squares <= test.smaller.sum_of_squares * (1.0 + 1e-9), "{test:?}");
        found.rejected += usize::from(test.test.preferred == Preferred::Larger);
        found.at_bound += usize::from(four.parameters["d4"].estimate == 0.0);
    }
    found
}

/// Test 5: a fourth queue that is not there is rarely found (.015), one that is there as often as it can be.
#[test]
fn the_fourth_queue_is_found_when_it_is_there() {
    let none = fourth_queue(0.0, 1e3, 60);
    // Expected .015 · 60 = 0.9 and .58 · 60 = 35, standard deviation 3.8.
    assert!(none.rejected <= 4, "{} of 60", none.rejected);
    assert!((23..=47).contains(&none.at_bound), "{} of 60 at the bound", none.at_bound);
    let half = fourth_queue(0.5, 1e3, 40);
    // Expected .43 · 40 = 17, standard deviation 3.1.
    assert!((8..=27).contains(&half.rejected), "{} of 40", half.rejected);
    let whole = fourth_queue(1.0, 1e3, 20);
    assert!(whole.rejected >= 18, "{} of 20", whole.rejected);
    let long = fourth_queue(0.3, 1e4, 15);
    assert!(long.rejected >= 13, "{} of 15", long.rejected);
}

/// Test 12: bands widen beyond the data, and a think time given through the trials leaves the estimates alone.
#[test]
fn bands_widen_beyond_the_data_and_think_time_is_no_parameter() {
    let fit = fitted(&problem(trials(10.0, 0.01, 77))).unwrap();
    let points = Scenarios::parse(&["users=10..40:10".to_owned(), "think=10".to_owned()]).unwrap();
    let found = predict(&fit, &points, &["residence_time(q3)".parse().unwrap()], 0.95).unwrap();
    let widths: Vec<f64> = found.rows.iter().map(|r| r.measures[0].upper.unwrap() - r.measures[0].lower.unwrap()).collect();
    assert!(widths.windows(2).all(|w| w[0] < w[1]), "{widths:?}");
    let other = fitted(&problem(trials(15.0, 0.01, 77))).unwrap();
    for ((a, b), truth) in fit.parameters.values().zip(other.parameters.values()).zip(TRUE_DEMANDS) {
        assert!(b.lower.unwrap() < truth && truth < b.upper.unwrap(), "{b:?}");
        assert!((a.estimate - b.estimate).abs() < 3.0 * a.std_error.unwrap().hypot(b.std_error.unwrap()), "{a:?} {b:?}");
    }
}

/// Test 9: a misfit that no longer trials cure shows against replicates, and E does not fall with the length.
#[test]
fn bias_is_caught_by_replicates() {
    let network = Network { demands: &[2.0, 3.0, 4.0, 1.0], think: 10.0, length: 1e4 };
    let populations: Vec<usize> = POPULATIONS.iter().flat_map(|n| [*n, *n, *n]).collect();
    let errors = pilot(&network, &populations);
    let wrong = fitted(&problem(simulated(&network, &populations, Errors::Full, &errors, 9))).unwrap();
    let test = wrong.diagnosis.lack_of_fit.unwrap();
    assert_eq!((test.pure_error_dof, test.misfit_dof), (80, 37));
    assert!(test.p_value < 1e-3 && wrong.notes.iter().any(|n| n.contains("longer trials cannot help")), "{test:?}");
    let right_errors = pilot(&THREE, &populations);
    let right = simulated(&THREE, &populations, Errors::Full, &right_errors, 9);
    let test = fitted(&problem(right.clone())).unwrap().diagnosis.lack_of_fit.unwrap();
    assert!(test.p_value > 0.01, "{test:?}");
    // Replicates alone give a covariance that covers too.
    let mut pooled = problem(right);
    pooled.trials.trials.iter_mut().for_each(|t| t.covariances.clear());
    pooled.weighting = layerfit::fit::Weighting::Replicates;
    let fit = fitted(&pooled).unwrap();
    for (p, truth) in fit.parameters.values().zip(TRUE_DEMANDS) {
        assert!((p.estimate - truth).abs() < 4.0 * p.std_error.unwrap(), "{p:?}");
    }
    // In weights of one length: E of a right model falls with the length, that of a wrong one hardly.
    let fall = |demands: &[f64], errors: &Pilot| {
        let e = |length: f64| {
            let data = simulated(&Network { length, demands, think: 10.0 }, &populations, Errors::Full, errors, 10);
            fitted(&problem(data)).unwrap().sum_of_squares / length
        };
        e(1e4) / e(1e5)
    };
    let (wrong, right) = (fall(&[2.0, 3.0, 4.0, 1.0], &errors), fall(&TRUE_DEMANDS, &right_errors));
    assert!(wrong < 5.0 && right > 7.0, "{wrong} {right}");
}
