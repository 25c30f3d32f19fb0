//! Fits corrected for the solver's error.

use std::ops::ControlFlow;

use layerfit::{
    fit::{
        CompareError, Fit, FitError, FitOptions, Problem,
        compare::{CompareOptions, compare_with},
        comparison::family::{Rival, fit_family_with},
        correction::{CorrectionOptions, CorrectionOutcome, CorrectionReport, SimulationOptions},
        design::{Candidate, DesignOptions, design_with},
        fit,
        problem::ErrorScale,
        report::ParameterStatus,
    },
    model::Measure,
    predict::{PredictOptions, Scenarios, predict_with},
};

use super::{
    three_queue::{self, problem, trials},
    unequal::{self, TRUE, biased, fitted, truth},
};

fn corrected(precision: f64) -> CorrectionOptions {
    let simulation = SimulationOptions { precision, seed: 5, ..SimulationOptions::default() };
    CorrectionOptions { simulation, ..CorrectionOptions::default() }
}

fn asked(problem: &Problem, correction: CorrectionOptions) -> Problem {
    let mut asked = problem.clone();
    asked.method.correct_solver = Some(correction);
    asked
}

fn covered(fit: &Fit) -> usize {
    let holds = |(name, truth): &(&str, f64)| {
        let p = &fit.parameters[*name];
        p.lower.unwrap() < *truth && *truth < p.upper.unwrap()
    };
    TRUE.iter().filter(|t| holds(t)).count()
}

/// Where the solver is off, the plain fit is tight and wrong, the corrected one right; so are their predictions.
#[test]
fn a_corrected_fit_covers_what_a_plain_one_misses() {
    let mut data = unequal::problem(&[2, 4, 8], 0.003, 70);
    data.method.error_scale = ErrorScale::Known;
    let plain = fitted(&data).unwrap();
    assert!(covered(&plain) < 2, "{:?}", plain.parameters);
    let fit = fitted(&asked(&data, corrected(0.002))).unwrap();
    let report = fit.correction.as_ref().unwrap();
    assert_eq!(report.outcome, CorrectionOutcome::Settled, "{report:?}");
    assert!((1..=6).contains(&report.rounds.len()) && report.rounds.last().unwrap().largest_move <= 0.1);
    assert_eq!(covered(&fit), 2, "{:?}", fit.parameters);
    for (name, p) in &report.plain {
        assert_eq!(p.estimate, plain.parameters[name].estimate);
    }
    assert_eq!(report.correction.points.len(), 3);
    assert!(fit.sum_of_squares < plain.sum_of_squares, "{} {}", fit.sum_of_squares, plain.sum_of_squares);
    assert_eq!(fit.problem.trials, data.trials, "what was measured stays as it is");
    let text = fit.to_text();
    assert!(text.contains("corrected for the solver's error: settled in") && text.contains("without the correction"), "{text}");
    let measures: Vec<Measure> = vec!["throughput(c)".parse().unwrap()];
    let at = Scenarios::parse(&["users=5".to_owned()]).unwrap();
    let exact = truth(5.0, &measures)[0];
    let predicted = |fit: &Fit, measures: &[Measure]| predict_with(fit, &at, measures, &PredictOptions::new(0.95), &biased).unwrap();
    let error = (predicted(&fit, &measures).rows[0].measures[0].mean / exact - 1.0).abs();
    assert!(error < 0.01, "{error}");
    // What was not corrected is said.
    let other = predicted(&fit, &["utilization(s)".parse().unwrap()]);
    assert!(other.notes.iter().any(|n| n.contains("utilization(s) is not among the measures")), "{:?}", other.notes);
    // Stored and read again it predicts the same.
    let stored = Fit::from_json(&serde_json::to_vec(&fit).unwrap()).unwrap();
    assert_eq!(predicted(&stored, &measures), predicted(&fit, &measures));
    // Designs stand on the corrected model.
    let candidates = [2.0, 8.0].map(|n| Candidate::at([("users", n)].into_iter().collect()));
    assert!(design_with(&fit, &candidates, &DesignOptions::default(), &biased).unwrap().width_ratio.unwrap() < 1.0);
}

/// Measurements that are all but exact leave the simulation's own error: estimates by other random numbers are as far from the truth as their
/// intervals say, two from few operating points and one from many, which do not err alike; and that is said. At this precision nothing is so open that
/// slopes are simulated: those that are all noise make intervals several times too wide.
#[test]
fn the_error_of_the_simulation_is_in_the_intervals() {
    let mut two = unequal::problem(&[2, 4, 8], 1e-4, 70);
    two.method.error_scale = ErrorScale::Known;
    let mut one = unequal::problem(&[1, 2, 3, 4, 5, 6, 7, 8], 1e-4, 71);
    one.method.error_scale = ErrorScale::Known;
    one.estimate.retain(|e| e.name == "askD");
    one.assumed.set("reportD", 1.0);
    for data in [two, one] {
        let mut distances: Vec<f64> = Vec::new();
        for seed in 1..=12 {
            let options = CorrectionOptions { simulation: SimulationOptions { seed, ..corrected(0.01).simulation }, ..corrected(0.01) };
            let fit = fitted(&asked(&data, options)).unwrap();
            let CorrectionReport { plain, slopes_along, .. } = fit.correction.as_ref().unwrap();
            assert!(slopes_along.is_empty());
            for (name, truth) in TRUE.into_iter().filter(|(name, _)| fit.parameters.contains_key(*name)) {
                let (p, std_error) = (&fit.parameters[name], fit.parameters[name].std_error.unwrap());
                assert!(std_error > 5.0 * plain[name].std_error.unwrap(), "{p:?}");
                distances.push((p.estimate - truth) / std_error);
            }
            assert!(fit.notes.iter().any(|n| n.contains("own error makes intervals wider (askD ")), "{:?}", fit.notes);
        }
        let mean_square = distances.iter().map(|d| d * d).sum::<f64>() / distances.len() as f64;
        let within = distances.iter().filter(|d| d.abs() < 2.2).count();
        assert!((0.3..2.2).contains(&mean_square) && within + distances.len() / 6 >= distances.len(), "{distances:?}");
    }
}

/// A bound that only the uncorrected fit runs into has no part in the corrected one, whose slopes are then simulated from inside.
#[test]
fn a_corrected_fit_leaves_a_bound_that_only_the_solver_ran_into() {
    let mut data = unequal::problem(&[2, 4, 8], 0.03, 70);
    data.method.error_scale = ErrorScale::Known;
    (data.estimate[1].start, data.estimate[1].min) = (Some(1.0), Some(0.945));
    assert_eq!(fitted(&data).unwrap().parameters["reportD"].status, ParameterStatus::AtLowerBound);
    let fit = fitted(&asked(&data, corrected(0.005))).unwrap();
    let report = fit.correction.as_ref().unwrap();
    assert_eq!((report.outcome, fit.parameters["reportD"].status), (CorrectionOutcome::Settled, ParameterStatus::Free), "{report:?}");
    assert!(report.rounds[0].slopes && report.slopes_along.iter().any(|step| step.contains_key("reportD")), "{report:?}");
    assert_eq!(covered(&fit), 2, "{:?}", fit.parameters);
    data.estimate[1].min = None;
    let free = fitted(&asked(&data, corrected(0.005))).unwrap();
    for (name, p) in &free.parameters {
        let moved = (fit.parameters[name].estimate - p.estimate) / p.std_error.unwrap();
        assert!(moved.abs() < 0.2, "{name}: {p:?} {:?}", fit.parameters);
    }
}

/// Corrected fits have one correction between them, under which a true restriction holds.
#[test]
fn nested_fits_are_compared_under_one_correction() {
    let mut larger = unequal::problem(&[2, 4, 8], 0.003, 70);
    larger.method.error_scale = ErrorScale::Known;
    let mut smaller = larger.clone();
    smaller.estimate.retain(|e| e.name == "askD");
    smaller.assumed.set("reportD", 1.0);
    let [plain_small, plain_large] = [&smaller, &larger].map(|p| fitted(p).unwrap());
    let compare = |a: &Fit, b: &Fit| compare_with(a, b, &CompareOptions::default(), &biased);
    let plain = compare(&plain_small, &plain_large).unwrap();
    let [small, large] = [&smaller, &larger].map(|p| fitted(&asked(p, corrected(0.005))).unwrap());
    let found = compare(&small, &large).unwrap();
    assert_eq!((found.preferred_fit, found.restriction[0].value), (1, 1.0), "{found:?}");
    assert!(found.larger.sum_of_squares < found.smaller.sum_of_squares, "{found:?}");
    assert!(found.smaller.sum_of_squares < 0.6 * plain.larger.sum_of_squares, "{found:?} {plain:?}");
    assert!(found.notes.iter().any(|n| n.contains("correction for the solver's error")), "{:?}", found.notes);
    assert_eq!(compare(&plain_small, &large), Err(CompareError::DifferentCorrection));
    // A family is corrected and ranked likewise; what simulations err by is said where it may tip the scale.
    let family_at = |precision: f64| {
        let rival = |name: &str, problem: &Problem| Rival { name: name.into(), problem: asked(problem, corrected(precision)) };
        let rivals = [rival("small", &smaller), rival("large", &larger)];
        fit_family_with(&rivals, &CompareOptions::default(), &biased, &mut |_, _| ControlFlow::Continue(())).unwrap()
    };
    assert!(family_at(0.02).family.notes.iter().any(|n| n.contains("ranks may be by that")));
    let family = family_at(0.005);
    assert!(family.fits.iter().all(|(_, fit)| fit.correction.is_some()));
    assert_eq!(family.family.proposed.as_ref().map(|p| p.name.as_str()), Some("small"), "{:?}", family.family);
}

#[test]
fn the_same_seed_gives_the_same_correction() {
    let data = asked(&unequal::problem(&[2, 5], 0.01, 71), corrected(0.02));
    assert_eq!(fitted(&data), fitted(&data));
}

#[test]
fn rounds_that_run_out_are_said() {
    let once = CorrectionOptions { max_rounds: 1, settled: 1e-9, ..corrected(0.02) };
    let fit = fitted(&asked(&unequal::problem(&[2, 5], 0.01, 72), once)).unwrap();
    assert_eq!(fit.correction.as_ref().unwrap().outcome, CorrectionOutcome::NotSettled);
    assert!(fit.notes.iter().any(|n| n.contains("did not settle in 1 rounds")), "{:?}", fit.notes);
}

/// An exact solver needs no correction: the estimates stay within the noise of the simulation.
#[test]
fn an_exact_solver_is_hardly_corrected() {
    let mut data = problem(trials(10.0, 0.01, 73));
    data.trials.trials.retain(|t| ["3", "7", "10"].contains(&t.id.as_str()));
    let fitted = three_queue::fitted;
    let (plain, fit) = (fitted(&data).unwrap(), fitted(&asked(&data, corrected(0.01))).unwrap());
    for (name, p) in &fit.parameters {
        assert!((p.estimate / plain.parameters[name].estimate - 1.0).abs() < 0.02, "{name}: {p:?}");
    }
    let ratios = fit.correction.as_ref().unwrap().correction.points.iter().flat_map(|p| p.factors.values());
    for factor in ratios {
        assert!((factor.ratio.unwrap() - 1.0).abs() < 2.0 * factor.half_width.unwrap() / factor.analytic, "{factor:?}");
    }
}

#[test]
fn what_cannot_be_corrected_is_refused() {
    let bad = asked(&unequal::problem(&[2, 5], 0.01, 74), CorrectionOptions { max_rounds: 0, ..corrected(0.02) });
    assert!(fitted(&bad).unwrap_err().to_string().contains("as it stands"));
    let bad = asked(&unequal::problem(&[2, 5], 0.01, 74), corrected(0.0));
    assert!(matches!(fitted(&bad), Err(FitError::Problem(_))));
    let mut stopped = 0;
    let cancelled = fit(&asked(&unequal::problem(&[2, 5], 0.01, 75), corrected(0.02)), &FitOptions::default(), &mut |p| {
        stopped += usize::from(p.iteration > 0);
        if stopped > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(cancelled, Err(FitError::Cancelled));
}
