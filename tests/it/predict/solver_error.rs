//! What the solver is off by, shown apart from the bands.

use layerfit::{
    fit::{Fit, correction::SimulationOptions},
    model::Measure,
    predict::{PredictOptions, PredictedMeasure, Predictions, Scenarios, predict_with},
};

use crate::fit::unequal::{self, biased, fitted, truth};

fn at(fit: &Fit, users: &str, precision: f64) -> Predictions {
    let simulation = Some(SimulationOptions { precision, seed: 3, ..SimulationOptions::default() });
    let options = PredictOptions { simulation, ..PredictOptions::new(0.95) };
    let scenarios = Scenarios::parse(&[users.to_owned()]).unwrap();
    predict_with(fit, &scenarios, &[], &options, &biased).unwrap()
}

fn plain(fit: &Fit, users: &str) -> Predictions {
    predict_with(fit, &Scenarios::parse(&[users.to_owned()]).unwrap(), &[], &PredictOptions::new(0.95), &biased).unwrap()
}

/// A fit by a solver that is some per cent off.
fn by_biased() -> Fit {
    fitted(&unequal::problem(&[1, 2, 4], 0.01, 90)).unwrap()
}

#[test]
fn the_solver_error_stands_apart_and_extends_the_bands() {
    let fit = by_biased();
    let (found, plain) = (at(&fit, "users=4", 0.005), plain(&fit, "users=4"));
    for (p, q) in found.rows[0].measures.values().zip(plain.rows[0].measures.values()) {
        assert_eq!((p.mean, p.lower, p.new_upper), (q.mean, q.lower, q.new_upper), "the bands stay as they were");
        let e = p.solver_error.unwrap();
        let own = e.solver_error_half_width.unwrap();
        assert!(own > 0.0 && own <= 0.005 * e.mean_simulated, "{e:?}");
        assert!((e.solver_error - (e.mean_simulated - p.mean)).abs() < 1e-12);
        let (low, high) = (p.lower.unwrap() + (e.solver_error - own).min(0.0), p.upper.unwrap() + (e.solver_error + own).max(0.0));
        assert_eq!((e.lower_with_solver_error, e.upper_with_solver_error), (Some(low), Some(high)));
        assert!(q.solver_error.is_none());
    }
}

/// With the true demands the simulated mean is the exact one, and the analytic one is not.
#[test]
fn the_simulated_mean_is_the_exact_one() {
    let fit = by_biased();
    let measures: Vec<Measure> = fit.problem.trials.measures.clone();
    let scenarios = Scenarios::parse(&["users=12".into(), "askD=0.2".into(), "reportD=1".into()]).unwrap();
    let simulation = Some(SimulationOptions { precision: 0.003, seed: 4, ..SimulationOptions::default() });
    let options = PredictOptions { simulation, ..PredictOptions::new(0.95) };
    let found = predict_with(&fit, &scenarios, &measures, &options, &biased).unwrap();
    for (p, exact) in found.rows[0].measures.values().zip(truth(12.0, &measures)) {
        let e = p.solver_error.unwrap();
        assert!((e.mean_simulated - exact).abs() < 2.0 * e.solver_error_half_width.unwrap(), "{e:?} {exact}");
        assert!((p.mean / exact - 1.0).abs() > 0.005, "{} {exact}", p.mean);
    }
}

#[test]
fn columns_of_the_solver_error_come_only_where_it_was_asked_for() {
    let fit = by_biased();
    let found = at(&fit, "users=2", 0.02);
    let csv = found.to_csv();
    let header = csv.lines().next().unwrap();
    for column in ["mean_simulated", "solver_error", "solver_error_half_width", "lower_with_solver_error", "upper_with_solver_error"] {
        assert!(header.contains(&format!("{column}(throughput(c))")), "{header}");
    }
    let json = serde_json::to_value(&found).unwrap();
    let cell = &json["rows"][0]["measures"]["throughput(c)"];
    assert!(cell["mean_simulated"].is_number() && cell["solver_error"].is_number(), "{cell}");
    let back: PredictedMeasure = serde_json::from_value(cell.clone()).unwrap();
    assert_eq!(back, found.rows[0].measures[0]);
    assert!(found.to_text().contains("solver error") && found.to_text().contains("band with it"), "{}", found.to_text());
    let plain = plain(&fit, "users=2");
    assert!(!plain.to_csv().contains("simulated") && !serde_json::to_string(&plain).unwrap().contains("solver_error"));
}

#[test]
fn too_few_events_are_remarked() {
    let simulation = Some(SimulationOptions { precision: 1e-4, max_events: 20_000, ..SimulationOptions::default() });
    let options = PredictOptions { simulation, ..PredictOptions::new(0.95) };
    let scenarios = Scenarios::parse(&["users=2".to_owned()]).unwrap();
    let found = predict_with(&by_biased(), &scenarios, &[], &options, &biased).unwrap();
    assert!(found.rows[0].notes.iter().any(|n| n.contains("simulated")), "{:?}", found.rows[0].notes);
}
