//! The certified nonlinear problems of NIST (StRD), through the engine that fits models.
//!
//! `cargo run --release --example nist -- DIR [--format text|json]` reads every `.dat` of `DIR`, fits each problem from both
//! starts and prints how many digits agree with the certified estimates, standard errors and residual sum of squares
//! (at most eleven, as many as are certified).
//!
//! A problem's model is an expression of the model language; its derivatives are taken by dual numbers. Where the
//! residuals at the minimum are so small beside the measured values that rounding takes their digits, the same engine
//! minimises once more over small steps from there, with residuals evaluated in twice double precision.

mod dataset;
mod double_double;

use std::{ops::ControlFlow, path::Path, process::ExitCode};

use dataset::Dataset;
use double_double::DoubleDouble;
use layerfit::{
    fit::{
        inference::identify,
        least_squares::{Bounds, Evaluation, EvaluationError, LeastSquaresOptions, Minimum, ResidualModel, Wanted, minimise},
    },
    model::{Bindings, Scalar},
};
use nalgebra::{DMatrix, DVector};
use num_dual::{DualNum, DualSVec64};

/// Most parameters of a problem.
const MOST_PARAMETERS: usize = 9;

/// Digits to which values are certified.
const CERTIFIED_DIGITS: f64 = 11.0;

/// Residuals, relative to the measured values, of which double precision leaves fewer than eight digits.
const TOO_SMALL: f64 = 1e-8;

/// Relative offset at which a minimum counts as found: a tenth of the default, for digits of ill-conditioned problems.
const OFFSET_TOLERANCE: f64 = 1e-10;

/// Singular value, relative to the largest, below which a direction counts as unseen.
const RANK_TOLERANCE: f64 = 1e-14;

/// A problem as a residual function of steps from `base`.
struct Curve<'a> {
    data: &'a Dataset,
    responses: Vec<DoubleDouble>,
    base: Vec<f64>,
    precise: bool,
}

impl<'a> Curve<'a> {
    fn new(data: &'a Dataset) -> Self {
        let response = |row: &Vec<DoubleDouble>| if data.response_is_log { row[0].ln() } else { row[0] };
        let base = vec![0.0; data.estimates.len()];
        Self { data, responses: data.rows.iter().map(response).collect(), base, precise: false }
    }

    fn values<S: Scalar>(&self, parameters: &[S], predictor: impl Fn(DoubleDouble) -> S) -> Result<Vec<S>, EvaluationError> {
        let mut bindings: Bindings<S> = Bindings::new();
        bindings.set("pi", S::from(std::f64::consts::PI));
        parameters.iter().zip(1..).for_each(|(b, k)| bindings.set(format!("b{k}"), *b));
        let at_row = |row: &Vec<DoubleDouble>| {
            self.data.predictors.iter().zip(&row[1..]).for_each(|(name, x)| bindings.set(name.clone(), predictor(*x)));
            self.data.model.eval(&bindings).map_err(|e| EvaluationError(e.to_string()))
        };
        self.data.rows.iter().map(at_row).collect()
    }
}

impl ResidualModel for Curve<'_> {
    fn n_obs(&self) -> usize {
        self.responses.len()
    }

    fn n_params(&self) -> usize {
        self.base.len()
    }

    fn evaluate(&mut self, step: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
        let x: Vec<DoubleDouble> = self.base.iter().zip(step).map(|(b, d)| DoubleDouble::from(*b) + DoubleDouble::from(*d)).collect();
        let dual = |(j, b): (usize, &DoubleDouble)| DualSVec64::<MOST_PARAMETERS>::from_re(b.to_f64()).derivative(j);
        let duals: Vec<_> = x.iter().enumerate().map(dual).collect();
        let found = self.values(&duals, |p| DualSVec64::from_re(p.to_f64()))?;
        let residuals: Vec<f64> = if self.precise {
            let values = self.values(&x, |p| p)?;
            self.responses.iter().zip(values).map(|(y, f)| (*y - f).to_f64()).collect()
        } else {
            self.responses.iter().zip(&found).map(|(y, f)| y.to_f64() - f.re).collect()
        };
        let jacobian = DMatrix::from_fn(found.len(), x.len(), |i, j| -found[i].derivatives().get(j).copied().unwrap_or(0.0));
        match residuals.iter().chain(jacobian.iter()).all(|v| v.is_finite()) {
            true => Ok(Evaluation { residuals: DVector::from_vec(residuals), jacobian: Some(jacobian) }),
            false => Err(EvaluationError("a value or derivative is not finite".into())),
        }
    }

    fn magnitude(&self) -> f64 {
        self.responses.iter().map(|y| y.to_f64().powi(2)).sum::<f64>().sqrt()
    }
}

/// How well one problem was solved from one start.
#[derive(serde::Serialize)]
struct Outcome {
    problem: String,
    start: usize,
    converged: bool,
    estimate_digits: f64,
    std_error_digits: f64,
    rss_digits: f64,
    #[serde(skip)]
    iterations: usize,
    #[serde(skip)]
    evaluations: usize,
}

fn solve(data: &Dataset, start: &[f64]) -> Result<(Vec<f64>, Minimum, usize, usize), String> {
    let mut curve = Curve::new(data);
    let bounds = Bounds::unbounded(start.len());
    let options = LeastSquaresOptions { offset_tolerance: OFFSET_TOLERANCE, ..LeastSquaresOptions::default() };
    let run = |curve: &mut Curve<'_>, from: &[f64]| {
        let ended = minimise(curve, from, &bounds, &options, &mut |_| ControlFlow::Continue(()));
        ended.map_err(|e| e.to_string())
    };
    let first = run(&mut curve, start)?;
    let (iterations, evaluations) = (first.iterations, first.evaluations);
    if first.sum_of_squares.sqrt() > TOO_SMALL * curve.magnitude() {
        return Ok((first.x.clone(), first, iterations, evaluations));
    }
    curve.base = first.x;
    curve.precise = true;
    let second = run(&mut curve, &vec![0.0; start.len()])?;
    let x = curve.base.iter().zip(&second.x).map(|(b, d)| b + d).collect();
    let totals = (iterations + second.iterations, evaluations + second.evaluations);
    Ok((x, second, totals.0, totals.1))
}

fn outcome(data: &Dataset, start: usize) -> Outcome {
    let failed = Outcome {
        problem: data.name.clone(),
        start,
        converged: false,
        estimate_digits: 0.0,
        std_error_digits: 0.0,
        rss_digits: 0.0,
        iterations: 0,
        evaluations: 0,
    };
    let Ok((x, minimum, iterations, evaluations)) = solve(data, &data.starts[start - 1]) else { return failed };
    let dof = data.rows.len() - x.len();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred observations")]
    let mse = minimum.sum_of_squares / dof as f64;
    let covariance = identify(&minimum.jacobian, RANK_TOLERANCE).unscaled_covariance * mse;
    let std_errors: Vec<f64> = (0..x.len()).map(|k| covariance[(k, k)].sqrt()).collect();
    let fewest =
        |found: &[f64], certified: &[f64]| found.iter().zip(certified).map(|(f, c)| digits(*f, *c)).fold(CERTIFIED_DIGITS, f64::min);
    Outcome {
        converged: minimum.stop.converged(),
        estimate_digits: fewest(&x, &data.estimates),
        std_error_digits: fewest(&std_errors, &data.std_errors),
        rss_digits: digits(minimum.sum_of_squares, data.sum_of_squares),
        iterations,
        evaluations,
        ..failed
    }
}

/// Digits of `found` that agree with `certified`: `-log₁₀` of the relative error, 0 to [`CERTIFIED_DIGITS`].
fn digits(found: f64, certified: f64) -> f64 {
    let error = ((found - certified) / certified).abs();
    let digits = if error > 0.0 { -error.log10() } else { CERTIFIED_DIGITS };
    if digits.is_nan() { 0.0 } else { (10.0 * digits.clamp(0.0, CERTIFIED_DIGITS)).round() / 10.0 }
}

fn datasets(folder: &Path) -> Result<Vec<Dataset>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<_> =
        entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "dat")).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Dataset::read(&name, &String::from_utf8_lossy(&text)).map_err(|e| format!("{}: {e}", path.display()))
    };
    let found: Vec<Dataset> = paths.iter().map(read).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(format!("{}: no .dat files", folder.display())) } else { Ok(found) }
}

#[expect(clippy::print_stdout, reason = "what the example is for")]
fn print(outcomes: &[Outcome], json: bool) -> Result<(), String> {
    if json {
        println!("{}", serde_json::to_string_pretty(outcomes).map_err(|e| e.to_string())?);
        return Ok(());
    }
    println!(
        "{:10} {:>5} {:>9} {:>9} {:>9} {:>5} {:>10}  ended",
        "problem", "start", "estimate", "std error", "rss", "steps", "evaluations"
    );
    for o in outcomes {
        let ended = if o.converged { "at a minimum" } else { "without a minimum" };
        println!(
            "{:10} {:>5} {:>9.1} {:>9.1} {:>9.1} {:>5} {:>10}  {ended}",
            o.problem, o.start, o.estimate_digits, o.std_error_digits, o.rss_digits, o.iterations, o.evaluations
        );
    }
    Ok(())
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "expected DIR [--format text|json]";
    let (folder, json) = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [folder] | [folder, "--format", "text"] | ["--format", "text", folder] => (folder.to_string(), false),
        [folder, "--format", "json"] | ["--format", "json", folder] => (folder.to_string(), true),
        _ => return Err(usage.into()),
    };
    let data = datasets(Path::new(&folder))?;
    let outcomes: Vec<Outcome> = data.iter().flat_map(|d| [1, 2].map(|start| outcome(d, start))).collect();
    print(&outcomes, json)
}

#[expect(clippy::print_stderr, reason = "errors go to standard error")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
