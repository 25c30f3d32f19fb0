//! Parameters that drift.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        Estimated, Problem, Transform, Trials,
        problem::ErrorScale,
        tracking::{
            Drift, Track, TrackError, TrackOptions,
            linear::{LinearTrack, LinearTrial},
            report::Change,
            track,
        },
    },
    solve::{self, SolveOptions},
};
use nalgebra::{DMatrix, DVector};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::three_queue::{fitted, problem, trials};

/// Annual flow of the Nile at Aswan, 1871 to 1970 (G. Cobb, Biometrika 65 (1978)), 10^8 m³.
const NILE: [f64; 100] = [
    1120.0, 1160.0, 963.0, 1210.0, 1160.0, 1160.0, 813.0, 1230.0, 1370.0, 1140.0, 995.0, 935.0, 1110.0, 994.0, 1020.0, 960.0, 1180.0,
    799.0, 958.0, 1140.0, 1100.0, 1210.0, 1150.0, 1250.0, 1260.0, 1220.0, 1030.0, 1100.0, 774.0, 840.0, 874.0, 694.0, 940.0, 833.0, 701.0,
    916.0, 692.0, 1020.0, 1050.0, 969.0, 831.0, 726.0, 456.0, 824.0, 702.0, 1120.0, 1100.0, 832.0, 764.0, 821.0, 768.0, 845.0, 864.0,
    862.0, 698.0, 845.0, 744.0, 796.0, 1040.0, 759.0, 781.0, 865.0, 845.0, 944.0, 984.0, 897.0, 822.0, 1010.0, 771.0, 676.0, 649.0, 846.0,
    812.0, 742.0, 801.0, 1040.0, 860.0, 874.0, 848.0, 890.0, 744.0, 749.0, 838.0, 1050.0, 918.0, 986.0, 797.0, 923.0, 975.0, 815.0, 1020.0,
    906.0, 901.0, 1170.0, 912.0, 746.0, 919.0, 718.0, 714.0, 740.0,
];

/// The local level of the Nile with variances 15099 and 1469.1 (J. Durbin and S. Koopman, 2012, section 2.2).
fn nile(prior: Option<(f64, f64)>) -> LinearTrack {
    let error = 15099.0_f64;
    let trial = |flow: &f64| LinearTrial {
        design: DMatrix::from_element(1, 1, error.sqrt().recip()),
        values: DVector::from_element(1, flow / error.sqrt()),
        log_determinant: error.ln(),
    };
    LinearTrack {
        trials: NILE.iter().map(trial).collect(),
        steps: vec![DVector::from_element(1, 1469.1_f64.sqrt()); NILE.len() - 1],
        prior: vec![prior],
    }
}

/// The textbook's recursions, in covariances: predicted mean and variance, filtered, smoothed, `ln L` of all but the first value and of the first.
struct Textbook {
    filtered: Vec<(f64, f64)>,
    smoothed: Vec<(f64, f64)>,
    log_likelihood: f64,
}

fn textbook(values: &[f64], error: f64, walk: f64, first: (f64, f64)) -> Textbook {
    let (mut predicted, mut filtered) = (Vec::new(), Vec::new());
    let (mut mean, mut variance, mut log_likelihood) = (first.0, first.1, 0.0);
    for z in values {
        predicted.push((mean, variance));
        let total = variance + error;
        log_likelihood -= 0.5 * ((std::f64::consts::TAU * total).ln() + (z - mean).powi(2) / total);
        let gain = variance / total;
        mean += gain * (z - mean);
        variance *= 1.0 - gain;
        filtered.push((mean, variance));
        variance += walk;
    }
    let mut smoothed = vec![filtered[values.len() - 1]];
    for t in (0..values.len() - 1).rev() {
        let next = smoothed[smoothed.len() - 1];
        let gain = filtered[t].1 / predicted[t + 1].1;
        smoothed.push((filtered[t].0 + gain * (next.0 - predicted[t + 1].0), filtered[t].1 + gain * gain * (next.1 - predicted[t + 1].1)));
    }
    smoothed.reverse();
    Textbook { filtered, smoothed, log_likelihood }
}

#[test]
fn the_nile_is_the_textbooks() {
    let prior = (0.0, 1e7_f64);
    let found = nile(Some((prior.0, prior.1.sqrt()))).pass().unwrap();
    let expected = textbook(&NILE, 15099.0, 1469.1, prior);
    // Known from several packages for these variances and a start of variance 10^7.
    assert!((expected.log_likelihood + 641.5856).abs() < 1e-3, "{}", expected.log_likelihood);
    assert!((found.log_likelihood - expected.log_likelihood).abs() < 1e-8);
    for t in 0..NILE.len() {
        let (f, s) = (found.filtered[t].as_ref().unwrap(), &found.smoothed[t]);
        for (found, expected) in [
            (f.mean[0], expected.filtered[t].0),
            (f.covariance[(0, 0)], expected.filtered[t].1),
            (s.mean[0], expected.smoothed[t].0),
            (s.covariance[(0, 0)], expected.smoothed[t].1),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-9, "{t}: {found} is not {expected}");
        }
    }
}

#[test]
fn a_diffuse_start_is_the_limit_of_vague_ones() {
    let diffuse = nile(None).pass().unwrap();
    assert!(diffuse.predicted[0].is_none() && diffuse.predicted[1].is_some());
    // The first value starts the filter: all others have the likelihood of the textbook's recursion from there.
    let after = textbook(&NILE[1..], 15099.0, 1469.1, (NILE[0], 15099.0 + 1469.1));
    assert!((diffuse.log_likelihood - after.log_likelihood).abs() < 1e-8);
    for t in 1..NILE.len() {
        let f = diffuse.filtered[t].as_ref().unwrap();
        assert!((f.mean[0] / after.filtered[t - 1].0 - 1.0).abs() < 1e-10);
    }
    assert!((diffuse.smoothed[99].covariance[(0, 0)].sqrt() - 63.5).abs() < 0.1, "the steady state of the book is 4032");
}

#[test]
fn the_niles_fall_is_dated_to_1899() {
    // A level that hardly walks: the dam of Aswan shows as a shift into 1899 (the 29th year).
    let mut still = nile(None);
    still.steps.iter_mut().for_each(|s| s.fill(1.0));
    let pass = still.pass().unwrap();
    let strongest =
        (0..NILE.len()).filter_map(|t| Some((t, pass.shifts[t].as_ref()?.chi_square))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(strongest.0 + 1871, 1899);
    let shift = pass.shifts[strongest.0].as_ref().unwrap();
    // Generalised least squares of the same innovations on a step into 1899, computed apart: size, standard error, chi-square.
    for (found, expected) in [(shift.sizes[0], -248.612_925), (shift.std_errors[0], 27.959_542), (shift.chi_square, 79.065_550)] {
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} is not {expected}");
    }
}

fn tracked(problem: &Problem, options: &TrackOptions) -> Result<Track, TrackError> {
    track(problem, options, &mut |_| ControlFlow::Continue(()))
}

fn given(names: &[&str], drift: f64) -> TrackOptions {
    TrackOptions { drifts: names.iter().map(|n| ((*n).to_owned(), Drift::Given(drift))).collect(), ..TrackOptions::default() }
}

/// The errors of the trials written into them.
fn with_std_errors(mut trials: Trials, relative: f64) -> Trials {
    let size = |k: usize, t: &Trials| t.trials.iter().filter_map(|t| Some(t.measured[k]?.value)).sum::<f64>() / t.trials.len() as f64;
    let sizes: Vec<f64> = (0..trials.measures.len()).map(|k| size(k, &trials)).collect();
    for t in &mut trials.trials {
        t.measured.iter_mut().zip(&sizes).for_each(|(m, size)| m.as_mut().unwrap().std_error = Some(relative * size));
    }
    trials
}

#[test]
fn without_drift_the_track_is_the_fit() {
    let mut asked = problem(with_std_errors(trials(10.0, 0.02, 71), 0.02));
    asked.method.error_scale = ErrorScale::Known;
    // A missing value is only one value less.
    asked.trials.trials[4].measured[1] = None;
    let fit = fitted(&asked).unwrap();
    let found = tracked(&asked, &given(&["d1", "d2", "d3"], 0.0)).unwrap();
    assert!(found.converged && found.drift_test.is_none());
    for trial in &found.trials {
        for (name, e) in &trial.smoothed {
            let p = &fit.parameters[name];
            assert!((e.estimate / p.estimate - 1.0).abs() < 1e-6, "{name}: {} is not {}", e.estimate, p.estimate);
            assert!((e.std_error.unwrap() / p.std_error.unwrap() - 1.0).abs() < 1e-6, "{name}");
        }
    }
    let last = found.trials.last().unwrap();
    // The filter ends where the smoother does, but for the points at which it was linearised.
    assert!((last.filtered["d3"].estimate / last.smoothed["d3"].estimate - 1.0).abs() < 0.01);
    assert!(found.changes.is_empty() && found.consistency.unwrap().consistent, "{:?} {:?}", found.changes, found.consistency);
}

/// Forty trials of the three queues at 6 customers, `d3` given by trial, with known errors.
fn history(d3: &[f64], relative: f64, seed: u64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let base = trials(10.0, 0.0, 1);
    let pattern = base.trials[5].clone();
    let model = super::three_queue::model(3);
    let solve_at = |d3: f64| {
        let values = [("users", 6.0), ("think", 10.0), ("d1", 2.0), ("d2", 3.0), ("d3", d3)].into_iter().collect();
        solve::sensitivities(&model, &values, &[], &base.measures, &SolveOptions::default()).unwrap().values
    };
    let one = |(t, d3): (usize, &f64)| {
        let mut trial = pattern.clone();
        trial.id = format!("t{}", t + 1);
        for (cell, value) in trial.measured.iter_mut().zip(solve_at(*d3)) {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let std_error = relative * value;
            *cell = Some(layerfit::fit::Measured { value: value + std_error * noise, std_error: Some(std_error), weight: None });
        }
        trial
    };
    let trials = Trials { measures: base.measures.clone(), trials: d3.iter().enumerate().map(one).collect() };
    let mut asked = problem(trials);
    asked.method.error_scale = ErrorScale::Known;
    asked
}

fn only_d3() -> TrackOptions {
    let mut options = given(&["d1", "d2"], 0.0);
    options.drifts.insert("d3".into(), Drift::Estimated);
    options
}

#[test]
fn a_jump_is_found_and_named() {
    let d3: Vec<f64> = (0..30).map(|t| if t < 18 { 4.0 } else { 5.0 }).collect();
    let asked = history(&d3, 0.03, 72);
    for options in [only_d3(), given(&["d1", "d2", "d3"], 0.0)] {
        let found = tracked(&asked, &options).unwrap();
        let jump = found.changes.iter().find_map(|c| match c {
            Change::Jump { trial, parameter, size, .. } => Some((trial.clone(), parameter.clone(), *size)),
            _ => None,
        });
        let (trial, parameter, size) = jump.unwrap_or_else(|| panic!("{:?}", found.changes));
        assert_eq!((trial.as_str(), parameter.as_str()), ("t19", "d3"));
        assert!((0.7..1.3).contains(&size), "{size}");
        assert!(found.to_text().contains("d3 jumped by"), "{}", found.to_text());
    }
    // Held constant, the filter's innovations leave their band, and the sums say since when.
    let still = tracked(&asked, &given(&["d1", "d2", "d3"], 0.0)).unwrap();
    let place = |id: &str| id[1..].parse::<usize>().unwrap();
    let moved: Vec<(usize, usize)> = still
        .changes
        .iter()
        .filter_map(|c| match c {
            Change::Moved { from_trial, noticed_at, .. } => Some((place(from_trial), place(noticed_at))),
            _ => None,
        })
        .collect();
    // The sums begin to rise at the jump or, by chance, a few trials before; none crosses its limit before it.
    assert!(!moved.is_empty() && moved.iter().all(|(from, noticed)| (12..=22).contains(from) && *noticed >= 19), "{moved:?}");
    assert!(!still.consistency.unwrap().consistent);
}

#[test]
fn a_drift_is_estimated_and_followed() {
    let mut rng = ChaCha8Rng::seed_from_u64(73);
    let (mut inside, mut total, mut drifts) = (0, 0, Vec::new());
    for seed in 0..4 {
        let mut level = 4.0;
        let path: Vec<f64> = (0..40)
            .map(|_| {
                let step: f64 = StandardNormal.sample(&mut rng);
                level += 0.15 * step;
                level
            })
            .collect();
        let found = tracked(&history(&path, 0.03, 100 + seed), &only_d3()).unwrap();
        drifts.push(found.parameters["d3"].drift);
        for (truth, trial) in path.iter().zip(&found.trials) {
            let e = trial.smoothed["d3"];
            inside += usize::from(e.lower.unwrap() <= *truth && *truth <= e.upper.unwrap());
            total += 1;
        }
        assert!(found.drift_test.unwrap().p_value < 1e-3, "{:?}", found.drift_test);
    }
    let mean = drifts.iter().sum::<f64>() / drifts.len() as f64;
    assert!((0.09..0.24).contains(&mean), "{drifts:?}");
    // 160 correlated values: 95 % within four of their standard errors.
    let share = inside as f64 / total as f64;
    assert!((0.86..=1.0).contains(&share), "{share}");
}

#[test]
fn constant_parameters_show_no_drift() {
    let found = tracked(&history(&[4.0; 30], 0.03, 74), &only_d3()).unwrap();
    assert!(found.parameters["d3"].drift < 0.05, "{}", found.parameters["d3"].drift);
    assert!(found.drift_test.unwrap().p_value > 0.01);
    assert!(found.consistency.unwrap().consistent && found.whiteness.len() == 4);
    let widths: Vec<f64> = found.trials.iter().map(|t| t.smoothed["d1"].upper.unwrap() - t.smoothed["d1"].lower.unwrap()).collect();
    assert!(widths.iter().all(|w| (w / widths[0] - 1.0).abs() < 1e-6), "d1 does not drift");
}

/// One trial of two values, and two parameters: nothing is left to tell the errors by.
#[test]
fn without_an_error_there_is_no_interval() {
    let mut asked = history(&[4.0], 0.03, 79);
    asked.estimate.remove(0);
    asked.assumed.set("d1", 2.0);
    asked.method.error_scale = ErrorScale::default();
    for measured in &mut asked.trials.trials[0].measured {
        measured.as_mut().unwrap().std_error = None;
    }
    let all = asked.trials.trials[0].measured.clone();
    asked.trials.trials[0].measured[2..].fill(None);
    let found = tracked(&asked, &TrackOptions::default()).unwrap();
    let reason = found.no_interval.as_deref().unwrap();
    assert!(reason.contains("2 measured values for 2 parameters") && found.notes.iter().any(|n| n == reason), "{found:?}");
    let trial = &found.trials[0];
    for e in trial.smoothed.values().chain(trial.filtered.values()) {
        assert_eq!((e.std_error, e.lower, e.upper), (None, None, None));
    }
    assert!(found.changes.is_empty() && found.consistency.is_none() && found.drift_test.is_none() && trial.innovation.is_none());
    assert!(found.to_text().contains(reason) && !found.to_text().contains(" .. "), "{}", found.to_text());
    let csv = found.to_csv();
    let cells = csv.lines().nth(1).unwrap().split(',').filter(|cell| !cell.is_empty()).count();
    assert_eq!(cells, 5, "the trial, two smoothed and two filtered estimates: {csv}");
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Track>(&json).unwrap(), found);

    // A third value leaves one degree of freedom; errors that are known need none.
    asked.trials.trials[0].measured[2] = all[2];
    let third = tracked(&asked, &TrackOptions::default()).unwrap();
    assert!(third.no_interval.is_none() && third.trials[0].smoothed["d3"].upper.is_some(), "{third:?}");
    let mut known = history(&[4.0], 0.03, 79);
    known.trials.trials[0].measured[3] = None;
    let known = tracked(&known, &TrackOptions::default()).unwrap();
    assert!(known.no_interval.is_none() && known.trials[0].smoothed["d3"].upper.is_some(), "{known:?}");
}

/// Jumps that are said to explain the trials better than drift, and their trials.
fn instead_of_drift(found: &Track) -> Option<String> {
    found.changes.iter().find_map(|c| match c {
        Change::Jump { trial, instead_of_drift: true, .. } => Some(trial.clone()),
        _ => None,
    })
}

/// Walks of little more than the errors have a largest step, too. Counted over many more in docs/CALIBRATION.md.
#[test]
fn the_largest_step_of_a_walk_is_no_jump() {
    let mut rng = ChaCha8Rng::seed_from_u64(80);
    let n_walks = 40;
    let said = (0..n_walks).filter(|seed| {
        let mut level = 4.0;
        let mut step = |_| {
            let step: f64 = StandardNormal.sample(&mut rng);
            level += 0.05 * step;
            level
        };
        let path: Vec<f64> = (0..20).map(&mut step).collect();
        instead_of_drift(&tracked(&history(&path, 0.03, 200 + seed), &only_d3()).unwrap()).is_some()
    });
    // One in twenty is two; five or more of forty are one in twenty times.
    let said = said.count();
    assert!(said <= 4, "{said} of {n_walks}");
}

#[test]
fn a_real_jump_is_told_from_drift() {
    let d3: Vec<f64> = (0..20).map(|t| if t < 8 { 4.0 } else { 5.2 }).collect();
    for seed in 0..5 {
        let found = tracked(&history(&d3, 0.03, 300 + seed), &only_d3()).unwrap();
        assert_eq!(instead_of_drift(&found).as_deref(), Some("t9"), "{:?}", found.changes);
    }
    // So much evidence that its probability is 0 at other trials, too.
    let found = tracked(&history(&d3, 0.003, 305), &only_d3()).unwrap();
    assert_eq!(instead_of_drift(&found).as_deref(), Some("t9"), "{:?}", found.changes);
}

#[test]
fn times_order_the_trials_and_scale_the_walk() {
    let path: Vec<f64> = (0..12).map(|t| 4.0 + 0.05 * f64::from(t)).collect();
    let in_order = history(&path, 0.03, 75);
    let mut options = given(&["d1", "d2"], 0.0);
    options.drifts.insert("d3".into(), Drift::Given(0.1));
    let expected = tracked(&in_order, &options).unwrap();
    let mut shuffled = in_order.clone();
    // Four units of time between trials, and half the drift: the same walk. The rows stand in reverse order.
    (0..12).for_each(|t| shuffled.trials.trials[t].time = Some(4.0 * t as f64));
    shuffled.trials.trials.reverse();
    options.drifts.insert("d3".into(), Drift::Given(0.05));
    let found = tracked(&shuffled, &options).unwrap();
    assert!(found.timed && !expected.timed);
    for (a, b) in expected.trials.iter().zip(&found.trials) {
        assert_eq!(a.trial, b.trial);
        assert!((a.smoothed["d3"].estimate / b.smoothed["d3"].estimate - 1.0).abs() < 1e-7);
        assert!((a.smoothed["d3"].upper.unwrap() / b.smoothed["d3"].upper.unwrap() - 1.0).abs() < 1e-7);
    }
    shuffled.trials.trials[3].time = None;
    assert!(matches!(tracked(&shuffled, &options), Err(TrackError::TimeMissing { trial }) if trial == "t9"));
}

#[test]
fn a_logarithm_keeps_a_parameter_above_zero() {
    let path: Vec<f64> = (0..20).map(|t| 4.0 * (-0.25 * f64::from(t)).exp()).collect();
    let mut asked = history(&path, 0.05, 76);
    asked.estimate[2].transform = Transform::Log;
    let found = tracked(&asked, &only_d3()).unwrap();
    assert!(found.parameters["d3"].logarithmic);
    for (t, truth) in found.trials.iter().zip(&path) {
        let e = t.smoothed["d3"];
        assert!(e.lower.unwrap() > 0.0 && (e.estimate / truth - 1.0).abs() < 0.5, "{e:?} {truth}");
    }
}

#[test]
fn the_jump_of_a_logarithm_is_a_factor() {
    let d3: Vec<f64> = (0..20).map(|t| if t < 8 { 4.0 } else { 5.2 }).collect();
    let mut asked = history(&d3, 0.03, 81);
    let by = |found: &Track| {
        let jump = found.changes.iter().find(|c| matches!(c, Change::Jump { .. })).unwrap().clone();
        let Change::Jump { size, std_error, lower, upper, logarithmic, .. } = jump.clone() else { unreachable!() };
        (size, std_error, lower.unwrap(), upper.unwrap(), logarithmic, jump.in_words())
    };
    let (size, std_error, lower, upper, logarithmic, words) = by(&tracked(&asked, &only_d3()).unwrap());
    assert!(!logarithmic && words.contains("jumped by 1.") && words.contains("standard error"), "{words}");
    assert!(((upper - lower) / (2.0 * 1.959_964 * std_error) - 1.0).abs() < 1e-6 && lower < size && size < upper);
    asked.estimate[2].transform = Transform::Log;
    let (size, std_error, lower, upper, logarithmic, words) = by(&tracked(&asked, &only_d3()).unwrap());
    assert!(logarithmic && (size / 1.3 - 1.0).abs() < 0.05, "{size}");
    assert!(((upper / size).ln() / (1.959_964 * std_error) - 1.0).abs() < 1e-6);
    assert!(((size / lower).ln() / (1.959_964 * std_error) - 1.0).abs() < 1e-6);
    assert!(
        words.contains("d3 jumped by a factor of 1.") && words.contains("(interval 1.") && !words.contains("standard error"),
        "{words}"
    );
}

#[test]
fn tracks_are_written_and_read() {
    let found = tracked(&history(&[4.0; 12], 0.03, 77), &only_d3()).unwrap();
    let csv = found.to_csv();
    assert_eq!(csv.lines().count(), 13);
    assert!(csv.starts_with("trial,time,smoothed(d1),smoothed_lower(d1),smoothed_upper(d1),filtered(d1)"), "{csv}");
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Track>(&json).unwrap(), found);
    assert!(found.to_text().contains("log-likelihood of the innovations"));
}

#[test]
fn what_cannot_be_tracked_is_refused() {
    let asked = history(&[4.0; 8], 0.03, 78);
    let refused = |problem: &Problem, options: &TrackOptions| tracked(problem, options).unwrap_err();
    assert!(matches!(refused(&asked, &given(&["d9"], 0.0)), TrackError::NotEstimated { name, .. } if name == "d9"));
    assert!(matches!(refused(&asked, &given(&["d1"], -1.0)), TrackError::Drift { .. }));
    assert!(matches!(refused(&asked, &given(&["d1"], f64::NAN)), TrackError::Drift { .. }));
    assert_eq!(refused(&asked, &TrackOptions { window: 0, ..TrackOptions::default() }), TrackError::Window);
    let mut counted = asked.clone();
    counted.trials.trials.iter_mut().for_each(|t| {
        t.controlled.0.shift_remove("users");
    });
    counted.estimate.push(Estimated::new("users").starting_at(6.0));
    assert!(matches!(refused(&counted, &TrackOptions::default()), TrackError::WholeNumber { name } if name == "users"));
    // Only the throughput is measured, at one population: three demands cannot be told apart.
    let mut unseen = asked;
    for t in &mut unseen.trials.trials {
        t.measured[..3].fill(None);
    }
    assert!(matches!(refused(&unseen, &only_d3()), TrackError::Undetermined { .. }));
}
