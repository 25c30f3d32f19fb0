//! Curves of one measure against the load.

use layerfit::fit::baseline::curve::{Form, LoadPoint, fit_curve, fit_polynomial};

fn points(f: impl Fn(f64) -> f64) -> Vec<LoadPoint> {
    (1..=8).map(f64::from).map(|load| LoadPoint { load, value: f(load), std_error: None }).collect()
}

#[test]
fn the_error_of_a_new_value_is_that_of_the_values_around() {
    let off = |n: f64| if n as i32 % 2 == 0 { 1.02 } else { 0.98 };
    let data: Vec<LoadPoint> =
        points(|n| 10.0 * n * off(n)).into_iter().map(|p| LoadPoint { std_error: Some(0.02 * p.value), ..p }).collect();
    let found = fit_curve(Form::Polynomial { degree: 1, centre: 4.5, half_range: 3.5 }, &data).unwrap();
    let error = |load: f64| {
        let at = found.at(load, 0.95);
        let new = (at.new_half_width.unwrap() / found.quantile(0.95).unwrap()).powi(2) - at.std_error.unwrap().powi(2);
        (new / found.mean_square_error().unwrap()).sqrt()
    };
    for p in &data {
        assert!((error(p.load) / p.std_error.unwrap() - 1.0).abs() < 1e-6, "{p:?}: {}", error(p.load));
    }
    // Beyond the last load as large relative to the value as there.
    let relative = |load: f64| error(load) / found.at(load, 0.95).mean;
    assert!((relative(40.0) / relative(8.0) - 1.0).abs() < 1e-6);
}

#[test]
fn an_exact_fit_wins() {
    // Seven decimal fractions on a line, and four: no degree but 0 has an AICc of four values.
    for n in [7, 4] {
        let line: Vec<LoadPoint> = points(|n| 0.125 * n)[..n].to_vec();
        let found = fit_polynomial(&line).unwrap();
        assert!(matches!(found.form, Form::Polynomial { degree: 1, .. }) && found.aicc.is_none(), "{found:?}");
    }
}

#[test]
fn few_values_are_no_reason_for_a_constant() {
    let steps = [0.2, -0.1, -0.2, 0.1];
    let line: Vec<LoadPoint> = points(|n| 5.0 * n + steps[n as usize % 4])[..4].to_vec();
    assert!(matches!(fit_polynomial(&line).unwrap().form, Form::Polynomial { degree: 1, .. }));
    assert!(matches!(fit_polynomial(&line[..3]).unwrap().form, Form::Polynomial { degree: 1, .. }));
    // Where the values say nothing of a slope, none is taken.
    let level: Vec<LoadPoint> = points(|n| if n as i32 % 2 == 0 { 5.1 } else { 4.9 })[..4].to_vec();
    assert!(matches!(fit_polynomial(&level).unwrap().form, Form::Polynomial { degree: 0, .. }));
}
