//! Agreement with another program on committed data; `tests/peers/three_queue.py` prints the figures.

use layerfit::fit::{Fit, Trials, Weighting};

use super::three_queue::{TRUE_DEMANDS, fitted, problem, starting_at};

/// Six digits, as two programs of double precision that stop at their own tolerances can agree.
const SIX_DIGITS: f64 = 5e-7;

fn check(fit: &Fit, estimates: [f64; 3], std_errors: [f64; 3], sum_of_squares: f64) {
    let agrees = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < SIX_DIGITS, "{found} is not {expected}");
    for (p, (estimate, std_error)) in fit.parameters.values().zip(estimates.into_iter().zip(std_errors)) {
        agrees(p.estimate, estimate);
        agrees(p.std_error.unwrap(), std_error);
    }
    agrees(fit.sum_of_squares, sum_of_squares);
    for (p, truth) in fit.parameters.values().zip(TRUE_DEMANDS) {
        assert!(p.lower.unwrap() < truth && truth < p.upper.unwrap(), "{p:?}");
    }
    assert_eq!(fit.degrees_of_freedom, 37);
}

fn data() -> Trials {
    Trials::from_csv(include_bytes!("three_queue.csv")).unwrap()
}

/// scipy 1.17.1, `least_squares(method="lm")`.
#[test]
fn plain_least_squares_agrees_with_scipy() {
    let mut plain = starting_at(problem(data()), &[1.0; 3]);
    plain.weighting = Weighting::None;
    check(
        &fitted(&plain).unwrap(),
        [2.003977658940, 3.006063237726, 4.018191091261],
        [1.802481963955e-2, 1.172732749863e-2, 9.107585767348e-3],
        5.476568543756e-1,
    );
}

/// scipy 1.17.1, the same with each measure divided by the root mean square of its residuals, to a fixpoint: standard errors as if these were known, and
/// with what they are off by (Kenward and Roger, in numpy).
#[test]
fn weighted_least_squares_agrees_with_scipy() {
    let fit = fitted(&problem(data())).unwrap();
    let (estimates, errors) = ([2.007175042015, 3.007296591326, 4.016061536052], [1.055307790636e-2, 1.053351582327e-2, 1.305684737933e-2]);
    check(&fit, estimates, errors, 40.0);
    let variances = fit.identifiability.estimated_variances.as_ref().unwrap();
    for (k, known) in [1.046032096566e-2, 1.029896630963e-2, 1.243308064309e-2].into_iter().enumerate() {
        let found = variances.covariance[k][k].sqrt();
        assert!((found / known - 1.0).abs() < SIX_DIGITS, "{found} is not {known}");
    }
    for (p, dof) in fit.parameters.values().zip([9.680389443, 11.739445865, 13.703858679]) {
        assert!((p.degrees_of_freedom.unwrap() / dof - 1.0).abs() < 10.0 * SIX_DIGITS, "{p:?}");
    }
}
