//! Curves of one measure against the load.
//!
//! ```text
//! polynomial     y(N) = Σ_{k=0}^{degree} c_k s^k,   s = (N - centre) / half-range
//! scalability    X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)),   λ ≥ 0, 0 ≤ σ ≤ 1, κ ≥ 0
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | `N` | load | of the controlled value |
//! | `λ` | throughput of a load of one | of the throughput |
//! | `σ` | contention: share that is serial | none |
//! | `κ` | coherency: cost of each pair | none |
//!
//! The scalability law is largest at `N* = √((1 - σ) / κ)`. With think time `Z`, Little's law gives the response time `R(N) = N / X(N) - Z`. The degree is chosen
//! by [`fit_polynomial`]. Fitted by [`crate::fit::engine::least_squares`], weighted by standard errors where every value has one; the error of a new value is then
//! that of the values around, relative to what the curve says, as for the model's own bands. Source: N. Gunther, Guerrilla Capacity Planning (2007),
//! chapters 4 to 6.

use std::ops::ControlFlow;

use nalgebra::{DMatrix, DVector};

use crate::{
    fit::{
        engine::least_squares::{Bounds, Evaluation, EvaluationError, LeastSquaresOptions, ResidualModel, Wanted, minimise},
        inference::{
            Identification,
            distribution::{as_f64, t_two_sided},
            identify,
            information::{ErrorParameters, Information},
        },
        new_errors::{Stated, StatedErrors},
    },
    model::Bindings,
};

/// Highest degree of a polynomial that is tried.
const HIGHEST_DEGREE: usize = 4;

/// Loads that a polynomial must leave over; a line one.
const SPARE_LOADS: usize = 2;

/// Loads from which a line is tried.
const LOADS_OF_LINE: usize = 3;

/// Root of the sum of squares, relative to that of the values, which is rounding.
const EXACT: f64 = 1e-12;

/// Singular value below which a parameter of a curve is not determined.
const RANK_TOLERANCE: f64 = 1e-9;

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Load.
    pub load: f64,
    /// Measured value.
    pub value: f64,
    /// Its standard error, where known.
    pub std_error: Option<f64>,
}

/// The form of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A polynomial of `degree` in `(N - centre) / half_range`.
    Polynomial {
        /// Its degree.
        degree: usize,
        /// Middle of the loads that it is fitted to.
        centre: f64,
        /// Half their range; 1 where all are one.
        half_range: f64,
    },
    /// The Universal Scalability Law with parameters `λ`, `σ`, `κ`.
    Scalability,
}

impl Form {
    fn n_params(self) -> usize {
        match self {
            Self::Polynomial { degree, .. } => degree + 1,
            Self::Scalability => 3,
        }
    }

    fn bounds(self) -> Bounds {
        match self {
            Self::Polynomial { degree, .. } => Bounds::unbounded(degree + 1),
            Self::Scalability => Bounds { lower: vec![0.0; 3], upper: vec![f64::INFINITY, 1.0, f64::INFINITY] },
        }
    }

    /// Value and gradient at `load`.
    fn at(self, load: f64, p: &[f64]) -> (f64, Vec<f64>) {
        match self {
            Self::Polynomial { centre, half_range, .. } => {
                let s = (load - centre) / half_range;
                let powers: Vec<f64> = std::iter::successors(Some(1.0), |power| Some(power * s)).take(p.len()).collect();
                (powers.iter().zip(p).map(|(power, c)| power * c).sum(), powers)
            }
            Self::Scalability => {
                let (pairs, others) = (load * (load - 1.0), load - 1.0);
                let denominator = 1.0 + p[1] * others + p[2] * pairs;
                let per_lambda = load / denominator;
                let slope = -p[0] * per_lambda / denominator;
                (p[0] * per_lambda, vec![per_lambda, slope * others, slope * pairs])
            }
        }
    }

    fn start(self, points: &[LoadPoint]) -> Vec<f64> {
        match self {
            Self::Polynomial { degree, .. } => vec![0.0; degree + 1],
            Self::Scalability => {
                let largest = points.iter().filter(|p| p.load > 0.0).map(|p| p.value / p.load).fold(0.0, f64::max);
                vec![largest.max(f64::MIN_POSITIVE), 0.1, 1e-3]
            }
        }
    }
}

/// A fitted curve.
#[derive(Clone, Debug)]
pub struct CurveFit {
    /// Its form.
    pub form: Form,
    /// Its parameters: `c_0`, `c_1`, …, or `λ`, `σ`, `κ`.
    pub parameters: Vec<f64>,
    /// Weighted sum of squares.
    pub sum_of_squares: f64,
    /// Values less parameters.
    pub degrees_of_freedom: usize,
    /// AICc; `None` with too few values or at an exact fit.
    pub aicc: Option<f64>,
    /// Parameters that are not at a bound.
    free: Vec<usize>,
    found: Identification,
    /// Whether it meets every value to rounding.
    is_exact: bool,
    /// Standard errors of the values before the mean square error; all 1 where not every value has one.
    stated: Option<StatedErrors>,
}

/// A value of a curve with its bands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveValue {
    /// The value.
    pub mean: f64,
    /// Standard error of the mean; `None` without degrees of freedom.
    pub std_error: Option<f64>,
    /// Half the width of the band of one new measurement.
    pub new_half_width: Option<f64>,
}

struct CurveResiduals<'a> {
    form: Form,
    points: &'a [LoadPoint],
    weights: Vec<f64>,
}

impl ResidualModel for CurveResiduals<'_> {
    fn n_obs(&self) -> usize {
        self.points.len()
    }

    fn n_params(&self) -> usize {
        self.form.n_params()
    }

    fn evaluate(&mut self, x: &[f64], _wanted: Wanted) -> Result<Evaluation, EvaluationError> {
        let mut residuals = DVector::zeros(self.points.len());
        let mut jacobian = DMatrix::zeros(self.points.len(), x.len());
        for (i, (p, w)) in self.points.iter().zip(&self.weights).enumerate() {
            let (value, gradient) = self.form.at(p.load, x);
            residuals[i] = w * (p.value - value);
            gradient.iter().enumerate().for_each(|(j, g)| jacobian[(i, j)] = -w * g);
        }
        Ok(Evaluation { residuals, jacobian: Some(jacobian) })
    }

    fn magnitude(&self) -> f64 {
        self.points.iter().zip(&self.weights).map(|(p, w)| (p.value * w).powi(2)).sum::<f64>().sqrt()
    }
}

/// `1 / se` of every point where all have one, else 1.
fn weights(points: &[LoadPoint]) -> Vec<f64> {
    let errors: Option<Vec<f64>> = points.iter().map(|p| p.std_error).collect();
    errors.map_or(vec![1.0; points.len()], |errors| errors.iter().map(|e| e.recip()).collect())
}

fn at_load(load: f64) -> Bindings {
    [("load", load)].into_iter().collect()
}

/// The standard errors of `points`, of which a curve has `means`; `None` where not all have one.
pub(super) fn stated_errors(points: &[LoadPoint], means: &[f64]) -> Option<StatedErrors> {
    let errors = points.iter().map(|p| p.std_error).collect::<Option<Vec<f64>>>()?;
    let typical = (errors.iter().map(|e| e * e).sum::<f64>() / as_f64(errors.len())).sqrt();
    let cell =
        |((p, predicted), deviation): ((&LoadPoint, &f64), f64)| Stated { controlled: at_load(p.load), deviation, predicted: *predicted };
    StatedErrors::of(points.iter().zip(means).zip(errors).map(cell).collect(), typical)
}

/// Standard error of a value at `load` where the curve has `mean`, before the mean square error.
pub(super) fn error_at(stated: Option<&StatedErrors>, load: f64, mean: f64) -> f64 {
    stated.map_or(1.0, |stated| stated.deviation(&at_load(load), mean))
}

/// Fits a curve of `form` to `points`; `None` where they are fewer than its parameters or no minimum is found.
pub fn fit_curve(form: Form, points: &[LoadPoint]) -> Option<CurveFit> {
    if points.len() < form.n_params() {
        return None;
    }
    let weights = weights(points);
    let log_determinant = weights.iter().map(|w| -2.0 * w.ln()).sum();
    let mut model = CurveResiduals { form, points, weights };
    let (bounds, magnitude) = (form.bounds(), model.magnitude());
    let keep = &mut |_: &_| ControlFlow::Continue(());
    let found = minimise(&mut model, &form.start(points), &bounds, &LeastSquaresOptions::default(), keep).ok()?;
    if !found.stop.converged() {
        return None;
    }
    let free: Vec<usize> = (0..found.x.len()).filter(|&j| found.x[j] > bounds.lower[j] && found.x[j] < bounds.upper[j]).collect();
    let information = Information::of(found.sum_of_squares, log_determinant, points.len(), found.x.len(), ErrorParameters::Scale);
    let is_exact = found.sum_of_squares.sqrt() <= EXACT * magnitude;
    Some(CurveFit {
        form,
        sum_of_squares: found.sum_of_squares,
        degrees_of_freedom: points.len() - form.n_params(),
        aicc: information.and_then(|i| i.aicc).filter(|_| !is_exact),
        found: identify(&found.jacobian.select_columns(&free), RANK_TOLERANCE),
        stated: stated_errors(points, &points.iter().map(|p| form.at(p.load, &found.x).0).collect::<Vec<_>>()),
        parameters: found.x,
        free,
        is_exact,
    })
}

/// The polynomial that describes `points` best, of those that leave at least two loads over, or a line that leaves one.
///
/// That is the lowest degree that meets every value to rounding, if one does; else that of the least AICc. Of four values or three a constant alone has an AICc, or
/// nothing has: there constant and line are compared by the weighted squares of each value predicted from the others, since a constant by default would stand for
/// black boxes however straight the values are. With many values both criteria choose alike (M. Stone, Journal of the Royal Statistical Society B 39 (1977)).
pub fn fit_polynomial(points: &[LoadPoint]) -> Option<CurveFit> {
    let mut loads: Vec<f64> = points.iter().map(|p| p.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let (low, high) = (*loads.first()?, *loads.last()?);
    let half_range = if high > low { 0.5 * (high - low) } else { 1.0 };
    let of_line = usize::from(loads.len() >= LOADS_OF_LINE);
    let highest = loads.len().saturating_sub(1 + SPARE_LOADS).clamp(of_line, HIGHEST_DEGREE);
    let form = |degree| Form::Polynomial { degree, centre: 0.5 * (low + high), half_range };
    let mut fits: Vec<CurveFit> = (0..=highest).filter_map(|degree| fit_curve(form(degree), points)).collect();
    if let Some(exact) = fits.iter().position(|f| f.is_exact) {
        return Some(fits.swap_remove(exact));
    }
    let has_aicc = fits.get(1).is_none_or(|line| line.aicc.is_some());
    let criterion = |f: &CurveFit| if has_aicc { f.aicc.unwrap_or(f64::INFINITY) } else { predictive_squares(f.form, points) };
    let criterion: Vec<f64> = fits.iter().map(criterion).collect();
    let best = (0..fits.len()).min_by(|&a, &b| criterion[a].total_cmp(&criterion[b]))?;
    Some(fits.swap_remove(best))
}

/// Weighted sum of squares of each value predicted from the others; infinite where that fails.
fn predictive_squares(form: Form, points: &[LoadPoint]) -> f64 {
    let weights = weights(points);
    let squared = |i: usize| {
        let mut others = points.to_vec();
        let left = others.remove(i);
        let fit = fit_curve(form, &others)?;
        Some((weights[i] * (left.value - form.at(left.load, &fit.parameters).0)).powi(2))
    };
    (0..points.len()).map(squared).sum::<Option<f64>>().unwrap_or(f64::INFINITY)
}

impl CurveFit {
    /// Fitted scale of the error variances; `None` without degrees of freedom.
    pub fn mean_square_error(&self) -> Option<f64> {
        (self.degrees_of_freedom > 0).then(|| self.sum_of_squares / as_f64(self.degrees_of_freedom))
    }

    /// Standard error of parameter `j`; `None` at a bound, where it is not determined, or without degrees of freedom.
    pub fn std_error(&self, j: usize) -> Option<f64> {
        let k = self.free.iter().position(|&f| f == j).filter(|&k| self.found.is_estimable(k))?;
        Some((self.found.unscaled_covariance[(k, k)] * self.mean_square_error()?).sqrt())
    }

    /// Half the width of an interval, in standard errors.
    pub fn quantile(&self, confidence: f64) -> Option<f64> {
        t_two_sided(confidence, self.degrees_of_freedom)
    }

    /// The curve at `load`.
    pub fn at(&self, load: f64, confidence: f64) -> CurveValue {
        let (mean, gradient) = self.form.at(load, &self.parameters);
        let row: Vec<f64> = self.free.iter().map(|&j| gradient[j]).collect();
        let variance = self.mean_square_error().filter(|_| self.found.sees(&row)).map(|mse| {
            let p = &self.found.unscaled_covariance;
            let unscaled: f64 = (0..row.len()).map(|a| row[a] * (0..row.len()).map(|b| p[(a, b)] * row[b]).sum::<f64>()).sum();
            (mse * unscaled, mse * error_at(self.stated.as_ref(), load, mean).powi(2))
        });
        let new_half_width = variance.zip(self.quantile(confidence)).map(|((mean, new), q)| q * (mean + new).sqrt());
        CurveValue { mean, std_error: variance.map(|(mean, _)| mean.max(0.0).sqrt()), new_half_width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(f: impl Fn(f64) -> f64) -> Vec<LoadPoint> {
        (1..=8).map(f64::from).map(|load| LoadPoint { load, value: f(load), std_error: None }).collect()
    }

    #[test]
    fn the_law_is_recovered_from_its_own_values() {
        let law = |n: f64| 20.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.01 * n * (n - 1.0));
        let found = fit_curve(Form::Scalability, &points(law)).unwrap();
        for (found, expected) in found.parameters.iter().zip([20.0, 0.05, 0.01]) {
            assert!((found / expected - 1.0).abs() < 1e-8, "{found} is not {expected}");
        }
    }

    #[test]
    fn the_law_of_linear_scaling_ends_on_its_bounds() {
        let found = fit_curve(Form::Scalability, &points(|n| 3.0 * n)).unwrap();
        assert!(
            (found.parameters[0] - 3.0).abs() < 1e-6 && found.parameters[1] < 1e-9 && found.parameters[2] < 1e-9,
            "{:?}",
            found.parameters
        );
    }

    #[test]
    fn a_straight_line_has_the_bands_of_the_textbook() {
        // y = 1 + 2 N and errors ±0.1: slope and standard error by the closed formulas.
        let data: Vec<LoadPoint> = (1..=8)
            .map(|n| LoadPoint {
                load: f64::from(n),
                value: 1.0 + 2.0 * f64::from(n) + if n % 2 == 0 { 0.1 } else { -0.1 },
                std_error: None,
            })
            .collect();
        let form = Form::Polynomial { degree: 1, centre: 4.5, half_range: 3.5 };
        let found = fit_curve(form, &data).unwrap();
        let slope = data.iter().map(|p| (p.load - 4.5) * p.value).sum::<f64>() / 42.0;
        let mean = data.iter().map(|p| p.value).sum::<f64>() / 8.0;
        let squares: f64 = data.iter().map(|p| (p.value - mean - slope * (p.load - 4.5)).powi(2)).sum();
        let s = (squares / 6.0).sqrt();
        let at = found.at(12.0, 0.95);
        assert!((at.mean - (mean + slope * 7.5)).abs() < 1e-10);
        let error = s * (1.0 / 8.0 + 7.5 * 7.5 / 42.0_f64).sqrt();
        assert!((at.std_error.unwrap() / error - 1.0).abs() < 1e-9);
        let new = t_two_sided(0.95, 6).unwrap() * (error * error + s * s).sqrt();
        assert!((at.new_half_width.unwrap() / new - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_parabola_is_told_from_a_line() {
        let bent = points(|n| 1.0 + n - 0.3 * n * n + if n as i32 % 2 == 0 { 0.01 } else { -0.01 });
        assert!(matches!(fit_polynomial(&bent).unwrap().form, Form::Polynomial { degree: 2, .. }));
    }
}
