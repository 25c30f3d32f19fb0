//! The engine on certified problems: NIST Statistical Reference Datasets, nonlinear regression, both starts.
//!
//! Four of them, small and hard from start 1. Derivatives are left to the engine.

use std::ops::ControlFlow;

use layerfit::fit::{
    inference::identify,
    least_squares::{Bounds, Evaluation, EvaluationError, LeastSquaresOptions, Minimum, ResidualModel, StopReason, Wanted, minimise},
};
use nalgebra::{DMatrix, DVector};

/// Digits that must agree with the certified values, which have eleven.
const SIX_DIGITS: f64 = 1e-6;

struct Curve {
    y: &'static [f64],
    x: &'static [f64],
    n_params: usize,
    f: fn(&[f64], f64) -> f64,
}

impl ResidualModel for Curve {
    fn n_obs(&self) -> usize {
        self.y.len()
    }
    fn n_params(&self) -> usize {
        self.n_params
    }
    fn evaluate(&mut self, b: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
        let residuals = DVector::from_iterator(self.y.len(), self.y.iter().zip(self.x).map(|(y, x)| y - (self.f)(b, *x)));
        match residuals.iter().all(|r| r.is_finite()) {
            true => Ok(Evaluation { residuals, jacobian: None }),
            false => Err(EvaluationError("not finite".into())),
        }
    }
}

fn run(curve: &mut Curve, start: &[f64], bounds: &Bounds) -> Minimum {
    minimise(curve, start, bounds, &LeastSquaresOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn check(mut curve: Curve, starts: [&[f64]; 2], certified: &[(f64, f64)], sum_of_squares: f64) {
    let agrees = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < SIX_DIGITS, "{found} is not {expected}");
    for start in starts {
        let minimum = run(&mut curve, start, &Bounds::unbounded(start.len()));
        assert!(minimum.stop.converged(), "{:?} from {start:?}", minimum.stop);
        let mse = minimum.sum_of_squares / f64::from(u32::try_from(curve.y.len() - start.len()).unwrap());
        let covariance = identify(&minimum.jacobian, 1e-12).unscaled_covariance * mse;
        for (k, (estimate, std_error)) in certified.iter().enumerate() {
            agrees(minimum.x[k], *estimate);
            agrees(covariance[(k, k)].sqrt(), *std_error);
        }
        agrees(minimum.sum_of_squares, sum_of_squares);
    }
}

const MISRA1A_Y: [f64; 14] = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78];
const MISRA1A_X: [f64; 14] = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0];

fn misra1a() -> Curve {
    Curve { y: &MISRA1A_Y, x: &MISRA1A_X, n_params: 2, f: |b, x| b[0] * (1.0 - (-b[1] * x).exp()) }
}

#[test]
fn misra1a_from_both_starts() {
    let certified = [(2.3894212918e2, 2.7070075241), (5.5015643181e-4, 7.2668688436e-6)];
    check(misra1a(), [&[500.0, 0.0001], &[250.0, 0.0005]], &certified, 1.2455138894e-1);
}

#[test]
fn box_bod_from_both_starts() {
    let curve = Curve {
        y: &[109.0, 149.0, 149.0, 191.0, 213.0, 224.0],
        x: &[1.0, 2.0, 3.0, 5.0, 7.0, 10.0],
        n_params: 2,
        f: |b, x| b[0] * (1.0 - (-b[1] * x).exp()),
    };
    let certified = [(2.1380940889e2, 1.2354515176e1), (5.4723748542e-1, 1.0455993237e-1)];
    check(curve, [&[1.0, 1.0], &[100.0, 0.75]], &certified, 1.1680088766e3);
}

#[test]
fn mgh09_from_both_starts() {
    let curve = Curve {
        y: &[0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246],
        x: &[4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625],
        n_params: 4,
        f: |b, x| b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3]),
    };
    let certified = [
        (1.9280693458e-1, 1.1435312227e-2),
        (1.9128232873e-1, 1.9633220911e-1),
        (1.2305650693e-1, 8.0842031232e-2),
        (1.3606233068e-1, 9.0025542308e-2),
    ];
    check(curve, [&[25.0, 39.0, 41.5, 39.0], &[0.25, 0.39, 0.415, 0.39]], &certified, 3.0750560385e-4);
}

#[test]
fn mgh10_from_both_starts() {
    let curve = Curve {
        y: &[
            34780.0, 28610.0, 23650.0, 19630.0, 16370.0, 13720.0, 11540.0, 9744.0, 8261.0, 7030.0, 6005.0, 5147.0, 4427.0, 3820.0, 3307.0,
            2872.0,
        ],
        x: &[50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 100.0, 105.0, 110.0, 115.0, 120.0, 125.0],
        n_params: 3,
        f: |b, x| b[0] * (b[1] / (x + b[2])).exp(),
    };
    let certified = [(5.6096364710e-3, 1.5687892471e-4), (6.1813463463e3, 2.3309021107e1), (3.4522363462e2, 7.8486103508e-1)];
    check(curve, [&[2.0, 400_000.0, 25_000.0], &[0.02, 4000.0, 250.0]], &certified, 8.7945855171e1);
}

#[test]
fn an_active_bound_is_met_exactly() {
    let bounds = Bounds { lower: vec![0.0, 0.0], upper: vec![200.0, 1.0] };
    for start in [[150.0, 1e-3], [10.0, 1e-2], [200.0, 0.0]] {
        let minimum = run(&mut misra1a(), &start, &bounds);
        assert!(minimum.stop.converged(), "{:?} from {start:?}", minimum.stop);
        assert_eq!(minimum.x[0], 200.0);
        // With b1 = 200 the best b2 has zero slope.
        let slope = minimum.jacobian.column(1).dot(&minimum.residuals);
        assert!(slope.abs() <= 1e-6 * minimum.jacobian.column(1).norm() * minimum.residuals.norm(), "{slope}");
    }
}

#[test]
fn points_without_a_value_shorten_the_step() {
    // y = √x has none below 0, where the first Gauss-Newton step from 100 leads.
    struct Root;
    impl ResidualModel for Root {
        fn n_obs(&self) -> usize {
            1
        }
        fn n_params(&self) -> usize {
            1
        }
        fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
            match x[0] < 0.0 {
                true => Err(EvaluationError("negative".into())),
                false => Ok(Evaluation { residuals: DVector::from_element(1, x[0].sqrt() - 0.1), jacobian: None }),
            }
        }
        fn magnitude(&self) -> f64 {
            0.1
        }
    }
    let options = LeastSquaresOptions::default();
    let minimum = minimise(&mut Root, &[100.0], &Bounds::unbounded(1), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(minimum.stop.converged() && (minimum.x[0] - 0.01).abs() < 1e-9, "{minimum:?}");
}

#[test]
fn limits_and_cancelling_end_with_the_best_point() {
    let start = [500.0, 0.0001];
    let ended = |options: &LeastSquaresOptions, keep: bool| {
        let answer = if keep { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        minimise(&mut misra1a(), &start, &Bounds::unbounded(2), options, &mut |_| answer).unwrap()
    };
    let base = LeastSquaresOptions::default();
    let first = ended(&base, false);
    assert_eq!((first.stop, first.iterations, first.x.as_slice()), (StopReason::Cancelled, 0, &start[..]));
    let limited = ended(&LeastSquaresOptions { max_iterations: 3, ..base.clone() }, true);
    assert_eq!((limited.stop, limited.iterations), (StopReason::MaxIterations, 3));
    assert!(limited.sum_of_squares < first.sum_of_squares);
    let evaluations = ended(&LeastSquaresOptions { max_evaluations: 6, ..base }, true);
    assert_eq!(evaluations.stop, StopReason::MaxEvaluations);
}

/// Residuals by their value and slope in one parameter.
struct One<F>(F, f64);

impl<F: Fn(f64) -> Vec<(f64, f64)>> ResidualModel for One<F> {
    fn n_obs(&self) -> usize {
        (self.0)(1.0).len()
    }
    fn n_params(&self) -> usize {
        1
    }
    fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
        let (values, slopes): (Vec<f64>, Vec<f64>) = (self.0)(x[0]).into_iter().unzip();
        let jacobian = Some(DMatrix::from_column_slice(slopes.len(), 1, &slopes));
        Ok(Evaluation { residuals: DVector::from_vec(values), jacobian })
    }
    fn magnitude(&self) -> f64 {
        self.1
    }
}

fn stop_of(f: impl Fn(f64) -> Vec<(f64, f64)>, magnitude: f64, start: f64) -> Minimum {
    let options = LeastSquaresOptions::default();
    minimise(&mut One(f, magnitude), &[start], &Bounds::unbounded(1), &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Values that are known to 3e-10 only, as of an iterated solution, and fitted to a thousandth.
#[test]
fn a_minimum_is_one_to_the_error_of_the_function() {
    for seed in 0..20_u64 {
        let decay = |b: f64| {
            let mut noise = b.to_bits() ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut one = |t: f64| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let error = ((noise >> 33) as f64 / f64::from(1_u32 << 31) - 0.5) * 6e-10;
                let value = (-b * t).exp();
                (value * (1.0 + error) - (-0.7 * t).exp() - 1e-3 * (5.0 * t).sin(), -t * value)
            };
            (1..=10).map(|t| one(f64::from(t) * 0.3)).collect()
        };
        let found = stop_of(decay, 1.4, 0.2);
        assert!(found.stop.converged() && (found.x[0] - 0.7).abs() < 0.01, "{found:?}");
    }
}

/// At a corner no step lowers the sum of squares, which is not a minimum of a smooth function.
#[test]
fn a_corner_is_no_minimum() {
    let found = stop_of(|x| vec![(1.0 + (x - 1.0).abs(), (x - 1.0).signum()), (0.5, 0.0)], 1.0, 1.7);
    assert!(!found.stop.converged(), "{found:?}");
}

/// The mean of ten values, with a wall so many of its standard errors below it that no step leads through.
struct Wall {
    standard_errors: f64,
}

const VALUES: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

impl ResidualModel for Wall {
    fn n_obs(&self) -> usize {
        VALUES.len()
    }
    fn n_params(&self) -> usize {
        1
    }
    fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
        let mean = 5.5;
        let std_error = (VALUES.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 9.0 / 10.0).sqrt();
        let beyond = if x[0] > mean - self.standard_errors * std_error { 100.0 } else { 0.0 };
        let residuals = DVector::from_iterator(VALUES.len(), VALUES.iter().map(|v| x[0] - v + beyond));
        Ok(Evaluation { residuals, jacobian: Some(DMatrix::from_element(VALUES.len(), 1, 1.0)) })
    }
}

/// Where no step leads nearer, a point is a minimum if it is as near to it as its error does not matter.
#[test]
fn next_to_a_minimum_is_one_if_no_step_leads_nearer() {
    let end = |standard_errors: f64| {
        let options = LeastSquaresOptions::default();
        minimise(&mut Wall { standard_errors }, &[1.0], &Bounds::unbounded(1), &options, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let (near, far) = (end(0.03), end(0.3));
    assert!((near.x[0] - 5.5).abs() < 0.05 && far.x[0] < 5.5, "{near:?} {far:?}");
    assert_eq!((near.stop, far.stop), (StopReason::Precision, StopReason::Stalled));
}

/// `y = exp(-k t)` with values of error 1e-8, another at each point, as a solver leaves that iterates; derivatives without it.
struct Rough {
    y: Vec<f64>,
    size: f64,
    evaluations: u64,
}

impl ResidualModel for Rough {
    fn n_obs(&self) -> usize {
        self.y.len()
    }
    fn n_params(&self) -> usize {
        1
    }
    fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
        self.evaluations += 1;
        let t = |i: usize| 0.05 * i as f64;
        let error = |i: usize| self.size * (1e4 * (self.evaluations as f64) + 77.0 * i as f64).sin();
        let value = |i: usize| (-x[0] * t(i)).exp();
        let residuals = DVector::from_fn(self.y.len(), |i, _| self.y[i] - value(i) * (1.0 + error(i)));
        Ok(Evaluation { residuals, jacobian: Some(DMatrix::from_fn(self.y.len(), 1, |i, _| t(i) * value(i))) })
    }
    fn magnitude(&self) -> f64 {
        self.y.iter().map(|y| y * y).sum::<f64>().sqrt()
    }
    fn error(&self) -> f64 {
        self.size
    }
}

/// Where the sum of squares cannot tell which of two points is lower, slopes do, and the search is over in a few steps.
#[test]
fn a_minimum_is_found_through_values_that_are_known_to_eight_digits() {
    let y: Vec<f64> = (0..40).map(|i| (-0.8 * 0.05 * f64::from(i)).exp() * (1.0 + 0.01 * f64::from(i * i).sin())).collect();
    let end = |size: f64| {
        let mut rough = Rough { y: y.clone(), size, evaluations: 0 };
        minimise(&mut rough, &[2.0], &Bounds::unbounded(1), &LeastSquaresOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let (smooth, rough) = (end(0.0), end(1e-8));
    let std_error = (smooth.sum_of_squares / 39.0 / smooth.jacobian.norm_squared()).sqrt();
    assert_eq!((smooth.stop, rough.stop), (StopReason::RelativeOffset, StopReason::Precision));
    assert!((rough.x[0] - smooth.x[0]).abs() < 1e-4 * std_error, "{} {} of {std_error}", rough.x[0], smooth.x[0]);
    assert!(rough.evaluations <= smooth.evaluations, "{} {}", rough.evaluations, smooth.evaluations);
}
