//! Fits that must find what the data were made from.

use layerfit::{
    fit::{FitOptions, ParameterStatus, fit, solver::Derivatives},
    model::Bindings,
    solve::{self, SolveOptions},
};

use super::three_queue::{TRUE_DEMANDS, estimates, fitted, measures, problem, starting_at, trials, truth};

/// How closely exact data give back their parameters.
const EXACT: f64 = 1e-6;

/// Sensitivities printed for experiment B5 (M. Woodside, SIPEW 2008, section 3.2), rows T1, T2, T3, f; there the upper
/// block stands transposed.
const GOLDEN: [[f64; 3]; 4] =
    [[2.9219, -0.1388, -0.4019], [-0.3164, 5.6991, -1.7367], [-1.8522, -3.5126, 10.3132], [-0.0044, -0.0119, -0.0474]];

#[test]
fn sensitivities_are_those_of_the_paper() {
    let values: Bindings = [("users", 10.0), ("think", 10.0), ("d1", 1.854), ("d2", 2.798), ("d3", 3.980)].into_iter().collect();
    let wrt = ["d1", "d2", "d3"].map(String::from);
    let at = |values: &Bindings| {
        solve::sensitivities(&super::three_queue::model(3), values, &wrt, &measures(), &SolveOptions::default()).unwrap()
    };
    let found = at(&values);
    for (i, row) in GOLDEN.iter().enumerate() {
        for (j, expected) in row.iter().enumerate() {
            let h = found.jacobian[(i, j)];
            assert!((h - expected).abs() < 1e-3, "dy{i}/dx{j}: {h} is not {expected}");
            let mut moved = values.clone();
            moved.set(wrt[j].clone(), values.get(&wrt[j]).unwrap() * (1.0 + 1e-5));
            let difference = (at(&moved).values[i] - found.values[i]) / (values.get(&wrt[j]).unwrap() * 1e-5);
            assert!((difference - h).abs() <= 1e-2 * h.abs().max(1e-3), "dy{i}/dx{j}: {h}, by differences {difference}");
        }
    }
}

#[test]
fn reference_values_of_the_example() {
    for (users, think, expected) in [
        (1.0, 0.0, [2.0, 3.0, 4.0, 0.11111]),
        (4.0, 0.0, [3.0807, 5.8737, 10.0070, 0.21095]),
        (10.0, 10.0, [3.6383, 8.5154, 20.0950, 0.23669]),
        (20.0, 10.0, [3.9781, 11.5130, 54.7300, 0.24931]),
    ] {
        for (found, expected) in truth(users, think, &measures()).iter().zip(expected) {
            assert!((found - expected).abs() < 6e-5, "N={users} Z={think}: {found} is not {expected}");
        }
    }
}

#[test]
fn exact_data_give_back_their_parameters() {
    for think in [0.0, 10.0] {
        let fit = fitted(&starting_at(problem(trials(think, 0.0, 1)), &[1.0; 3])).unwrap();
        assert!(fit.converged, "{:?}", fit.stop);
        for (found, truth) in estimates(&fit).iter().zip(TRUE_DEMANDS) {
            assert!((found - truth).abs() < EXACT, "{found} is not {truth}");
        }
        assert!(fit.mean_square_error.unwrap() < 1e-6);
    }
}

#[test]
fn noisy_data_give_intervals_that_hold_the_truth() {
    let fit = fitted(&problem(trials(10.0, 0.01, 2008))).unwrap();
    assert!(fit.converged);
    for ((name, p), truth) in fit.parameters.iter().zip(TRUE_DEMANDS) {
        assert_eq!(p.status, ParameterStatus::Free);
        assert!(p.lower.unwrap() < truth && truth < p.upper.unwrap(), "{name}: {p:?}");
        assert!(p.upper.unwrap() - p.lower.unwrap() < 0.1, "{name}: {p:?}");
    }
    assert_eq!((fit.n_observations, fit.degrees_of_freedom), (40, 37));
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    // 60 data sets of three intervals: fewer than 90 % would be four standard deviations off.
    let covered: usize = (0..60)
        .map(|seed| {
            let fit = fitted(&problem(trials(10.0, 0.02, seed))).unwrap();
            let holds = |(p, truth): (&layerfit::fit::ParameterEstimate, f64)| p.lower.unwrap() < truth && truth < p.upper.unwrap();
            fit.parameters.values().zip(TRUE_DEMANDS).filter(|pair| holds(*pair)).count()
        })
        .sum();
    assert!((162..=180).contains(&covered), "{covered} of 180");
}

#[test]
fn a_start_three_orders_of_magnitude_off_ends_at_the_same_minimum() {
    let data = problem(trials(10.0, 0.01, 3));
    let good = fitted(&data).unwrap();
    for start in [[2e3, 3e3, 4e3], [2e-3, 3e-3, 4e-3], [2e3, 3e-3, 4.0], [2e-3, 3.0, 4e3], [0.0, 0.0, 0.0]] {
        let fit = fitted(&starting_at(data.clone(), &start)).unwrap();
        assert!(fit.converged, "{start:?}: {:?}", fit.stop);
        for (a, b) in estimates(&fit).iter().zip(estimates(&good)) {
            assert!((a / b - 1.0).abs() < 1e-7, "from {start:?}: {a} is not {b}");
        }
    }
}

#[test]
fn throughput_alone_survives_bad_starts() {
    let mut data = trials(10.0, 0.005, 4);
    data.measures.truncate(1);
    data.measures[0] = "throughput(Users)".parse().unwrap();
    data.trials.iter_mut().for_each(|t| t.measured = t.measured.split_off(3));
    let mut data = problem(data);
    data.estimate.truncate(1);
    [("d2", 3.0), ("d3", 4.0)].into_iter().for_each(|(name, value)| data.assumed.set(name, value));
    let good = fitted(&data).unwrap();
    assert!((estimates(&good)[0] - 2.0).abs() < 0.2, "{:?}", good.parameters);
    for start in [2e3, 2e-3, 0.0] {
        let fit = fitted(&starting_at(data.clone(), &[start])).unwrap();
        assert!(fit.converged && (estimates(&fit)[0] / estimates(&good)[0] - 1.0).abs() < 1e-6, "from {start}: {:?}", fit.parameters);
    }
}

#[test]
fn differences_end_where_derivatives_do() {
    let data = problem(trials(10.0, 0.01, 5));
    let options = FitOptions { derivatives: Derivatives::Differences, ..FitOptions::default() };
    let by_differences = fit(&data, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    for (a, b) in by_differences.parameters.values().zip(fitted(&data).unwrap().parameters.values()) {
        assert!((a.estimate / b.estimate - 1.0).abs() < 1e-8);
        assert!((a.std_error.unwrap() / b.std_error.unwrap() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn missing_values_are_left_out() {
    let mut data = trials(10.0, 0.01, 6);
    data.trials[2].measured[0] = None;
    data.trials[7].measured[3] = None;
    let fit = fitted(&problem(data)).unwrap();
    assert_eq!(fit.n_observations, 38);
    assert!(fit.residuals[2][0].is_none() && fit.predicted[2][0] > 0.0);
    assert!((estimates(&fit)[2] - 4.0).abs() < 0.05);
}

#[test]
fn a_model_value_is_the_start_and_the_search_finds_others() {
    let mut data = problem(trials(10.0, 0.01, 7));
    data.model.parameters.push(layerfit::model::Parameter { name: "d1".into(), value: layerfit::model::ParameterValue::Number(1.5) });
    let fit = fitted(&data).unwrap();
    use layerfit::fit::start::StartOrigin::{Model, Searched};
    let origins: Vec<_> = fit.parameters.values().map(|p| p.start_from).collect();
    assert_eq!(origins, [Model, Searched, Searched]);
    assert_eq!(fit.parameters["d1"].start, 1.5);
}
