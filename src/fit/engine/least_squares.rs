//! The engine: bounded nonlinear least squares by Gauss-Newton inside a trust region.
//!
//! Minimises `S(x) = |r(x)|²` over `lower ≤ x ≤ upper` for any residual function. At an iterate the Jacobian
//! `J = dr/dx` is column-scaled by `D` and factored, `J D⁻¹ = Q R`; the step solves the linear model `|c + R p|`,
//! `c = Qᵀ r`, inside a radius and the box ([`super::trust_region`]); the ratio of the fall in `S` to the expected one
//! accepts the step and sets the next radius. `JᵀJ` is never formed. A point where the function cannot be evaluated
//! shortens the step.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `x` | parameters | `(n_params)` |
//! | `r`, `J` | residuals, already weighted; their Jacobian | `(n_obs)`, `(n_obs, n_params)` |
//! | `D` | scale of each parameter: largest length of its column so far | `(n_params)` |
//! | `g` | fall of `S` that an undamped step of the linear model would bring | scalar |
//!
//! It ends at a minimum when `√(g / S)`, the length of the residuals' projection on the tangent plane relative to the
//! residuals, is below `offset_tolerance` (D. Bates and D. Watts, Technometrics 23 (1981)); or when an undamped step
//! changes no parameter by more than `step_tolerance`; or when rounding stops it closer than `precision_tolerance`; or at a perfect fit.
//!
//! Of a function that is found by iteration, `S` is known to about `2 |r| ε |z| / √n`, with `ε` the relative error of its values and `|z|` the length
//! of the observations ([`ResidualModel::error`], [`ResidualModel::magnitude`]). Where `g` is less, whether a step is good cannot be told from `S`, but still
//! from the linear model after it, since slopes that are not differences are known to more digits than those of `S`: steps are taken
//! while they leave a quarter of `g` or less, until the relative offset is below `precision_tolerance`.
//!
//! Where only minima below some sum of squares are of interest, it is broken off once the linear model leaves more than
//! that, `S - g`, before a step and after it ([`LeastSquaresOptions::beyond`]). Where the Jacobian costs much, it may be carried along a step `s` with change `y` of the residuals by
//! the secant condition `J s = y` instead of being evaluated ([`Jacobians`]; C. Broyden, Math. Comput. 19 (1965)):
//!
//! ```text
//! J₊ = J + (y - J s) (D² s)ᵀ / |D s|²
//! ```
//!
//! Source of step control: J. Moré, The Levenberg-Marquardt algorithm (1978). We differ in the box,
//! in working from singular values, and in the stopping rule.

use std::ops::ControlFlow;

use nalgebra::{DMatrix, DVector};

pub use super::terms::{
    Bounds, Evaluation, EvaluationError, Iterate, Jacobians, LeastSquaresOptions, Minimum, ResidualModel, Start, StartError, StopReason,
    Wanted,
};
use super::{finite_difference, trust_region::LinearModel};

/// Ratio of the actual to the expected fall above which a step is taken.
const ACCEPT: f64 = 1e-4;

/// Ratio below which a step from a carried Jacobian is not taken and the Jacobian evaluated.
const POOR: f64 = 0.1;

/// Share of what the linear model leaves of the sum of squares that must remain after a step for it to be believed: where the model's
/// curvature makes it, it falls with its square.
const STEADY: f64 = 0.5;

/// Radius, relative to the scaled point, below which no step changes the point.
const SMALLEST_RADIUS: f64 = 4.0 * f64::EPSILON;

/// Relative length of the residuals that is rounding.
const ROUNDING: f64 = 1e-15;

/// Share of what is left to fall that a step must leave at most for another to be tried where the sum of squares cannot tell any more.
const POLISHED: f64 = 0.25;

/// How many times what the errors of the values move the sum of squares by, a step may raise it there.
const MOST_SCATTER: f64 = 3.0;

/// Error of values that is believed where a search ends at a point that is not seen to be a minimum.
const MOST_ERROR: f64 = 1e-8;

/// Standard errors within which a point is as good as the minimum, where no step leads nearer.
const NEAR: f64 = 0.05;

/// Minimises `|r(x)|²` from `start` (moved into `bounds`), reporting every step to `progress`, which may cancel.
///
/// # Errors
/// [`StartError`] when the start cannot be evaluated. Every other end is a [`StopReason`] of the [`Minimum`].
pub fn minimise(
    model: &mut dyn ResidualModel,
    start: &[f64],
    bounds: &Bounds,
    options: &LeastSquaresOptions,
    progress: &mut dyn FnMut(&Iterate) -> ControlFlow<()>,
) -> Result<Minimum, StartError> {
    minimise_from(model, &Start { x: start, jacobian: None }, bounds, options, progress)
}

/// As [`minimise`], with what is known of the Jacobian at the start.
///
/// # Errors
/// As [`minimise`].
pub fn minimise_from(
    model: &mut dyn ResidualModel,
    start: &Start<'_>,
    bounds: &Bounds,
    options: &LeastSquaresOptions,
    progress: &mut dyn FnMut(&Iterate) -> ControlFlow<()>,
) -> Result<Minimum, StartError> {
    let mut descent = Descent::begin(model, start, bounds, options)?;
    let stop = loop {
        if let Some(stop) = descent.finished() {
            if descent.refreshed(stop) {
                continue;
            }
            break stop;
        }
        if progress(&descent.iterate()).is_break() {
            break StopReason::Cancelled;
        }
        if let Some(stop) = descent.advance()? {
            if descent.refreshed(stop) {
                continue;
            }
            break stop;
        }
    };
    Ok(descent.end(stop))
}

/// A search under way: the iterate, its linear model, and the radius within which that is trusted.
struct Descent<'a> {
    model: &'a mut dyn ResidualModel,
    bounds: &'a Bounds,
    options: &'a LeastSquaresOptions,
    x: Vec<f64>,
    residuals: DVector<f64>,
    jacobian: DMatrix<f64>,
    scale: Vec<f64>,
    linear: LinearModel,
    attainable: f64,
    radius: f64,
    iterations: usize,
    evaluations: usize,
    /// Whether the Jacobian is not that of the iterate.
    is_carried: bool,
    /// Whether the last step was taken and left about as much as the linear model before it foretold.
    is_foretold: bool,
}

impl<'a> Descent<'a> {
    fn begin(
        model: &'a mut dyn ResidualModel,
        start: &Start<'_>,
        bounds: &'a Bounds,
        options: &'a LeastSquaresOptions,
    ) -> Result<Self, StartError> {
        assert!(start.x.len() == model.n_params() && bounds.lower.len() == start.x.len() && bounds.upper.len() == start.x.len());
        let x: Vec<f64> = start.x.iter().zip(&bounds.lower).zip(&bounds.upper).map(|((&x, &low), &high)| x.min(high).max(low)).collect();
        let near = start.jacobian.filter(|_| options.jacobians != Jacobians::Evaluated);
        let wanted = if near.is_some() { Wanted::Residuals } else { Wanted::Jacobian };
        let (mut evaluation, mut evaluations) = (model.evaluate(&x, wanted)?, 1);
        let is_carried = near.is_some() && evaluation.jacobian.is_none();
        if is_carried {
            evaluation.jacobian = near.cloned();
        }
        if evaluation.jacobian.is_none() {
            evaluation.jacobian = Some(finite_difference::jacobian(model, &x, &evaluation.residuals, bounds, &mut evaluations)?);
        }
        let Some(jacobian) = evaluation.jacobian else { return Err(StartError::NotFinite) };
        let residuals = evaluation.residuals;
        if !(residuals.iter().all(|v| v.is_finite()) && jacobian.iter().all(|v| v.is_finite())) {
            return Err(StartError::NotFinite);
        }
        let n = x.len();
        let linear = LinearModel { r: DMatrix::zeros(n, n), c: DVector::zeros(n), lower: vec![0.0; n], upper: vec![0.0; n] };
        let scale = vec![0.0; n];
        let mut search = Self {
            model,
            bounds,
            options,
            x,
            residuals,
            jacobian,
            scale,
            linear,
            attainable: 0.0,
            radius: 1.0,
            iterations: 0,
            evaluations,
            is_carried,
            is_foretold: false,
        };
        search.linearise();
        let length = search.scaled_length();
        search.radius = options.initial_radius * if length > 0.0 { length } else { 1.0 };
        Ok(search)
    }

    fn sum_of_squares(&self) -> f64 {
        self.residuals.norm_squared()
    }

    fn scaled_length(&self) -> f64 {
        self.x.iter().zip(&self.scale).map(|(x, d)| (x * d).powi(2)).sum::<f64>().sqrt()
    }

    /// Factors the Jacobian at the iterate.
    fn linearise(&mut self) {
        let n = self.x.len();
        for j in 0..n {
            let length = self.jacobian.column(j).norm();
            self.scale[j] = self.scale[j].max(length);
        }
        let unit = |d: f64| if d > 0.0 { d } else { 1.0 };
        let mut scaled = self.jacobian.clone();
        for j in 0..n {
            scaled.column_mut(j).unscale_mut(unit(self.scale[j]));
        }
        let rows = scaled.nrows().max(n);
        let qr = scaled.resize_vertically(rows, 0.0).qr();
        let mut rotated = DMatrix::from_column_slice(self.residuals.len(), 1, self.residuals.as_slice()).resize_vertically(rows, 0.0);
        qr.q_tr_mul(&mut rotated);
        let gap = |bound: &[f64]| -> Vec<f64> { (0..n).map(|j| (bound[j] - self.x[j]) * unit(self.scale[j])).collect() };
        self.linear = LinearModel {
            r: qr.r().rows(0, n).into_owned(),
            c: rotated.column(0).rows(0, n).into_owned(),
            lower: gap(&self.bounds.lower),
            upper: gap(&self.bounds.upper),
        };
        self.attainable = self.linear.attainable();
    }

    /// Sum of squares that the linear model leaves.
    fn foretold(&self) -> f64 {
        self.sum_of_squares() - self.attainable
    }

    /// Relative offset of the iterate.
    fn relative_offset(&self) -> f64 {
        let squares = self.sum_of_squares();
        if squares > 0.0 { (self.attainable / squares).sqrt() } else { 0.0 }
    }

    /// Whether the iterate is a minimum or a limit is reached.
    fn finished(&self) -> Option<StopReason> {
        let options = self.options;
        if self.sum_of_squares().sqrt() <= ROUNDING * self.model.magnitude() {
            return Some(StopReason::PerfectFit);
        }
        if self.relative_offset() <= options.offset_tolerance {
            return Some(StopReason::RelativeOffset);
        }
        if self.relative_offset() <= options.precision_tolerance && self.is_out_of_sight() {
            return Some(StopReason::Precision);
        }
        if self.is_foretold && options.beyond.is_some_and(|least| self.foretold() > least) {
            return Some(StopReason::Beyond);
        }
        if self.iterations >= options.max_iterations {
            return Some(StopReason::MaxIterations);
        }
        (self.evaluations >= options.max_evaluations).then_some(StopReason::MaxEvaluations)
    }

    fn iterate(&self) -> Iterate {
        Iterate { iteration: self.iterations, evaluations: self.evaluations, x: self.x.clone(), sum_of_squares: self.sum_of_squares() }
    }

    /// Tries one step: takes it or shortens the radius.
    fn advance(&mut self) -> Result<Option<StopReason>, StartError> {
        self.iterations += 1;
        let step = self.linear.step(self.radius);
        let length = step.p.norm();
        let scaled_length = self.scaled_length();
        if !step.limited && length <= self.options.step_tolerance * scaled_length && step.predicted >= 0.0 {
            return Ok(Some(StopReason::StepSize));
        }
        if self.radius <= SMALLEST_RADIUS * scaled_length || self.radius < f64::MIN_POSITIVE {
            return Ok(Some(self.stalled()));
        }
        let candidate = self.moved(&step.p);
        if !step.limited && self.is_out_of_sight() {
            return Ok(self.polish(candidate));
        }
        let evaluation = if step.predicted > 0.0 && candidate != self.x { self.try_evaluate(&candidate, step.predicted) } else { None };
        let Some((evaluation, squares)) = evaluation else {
            if self.refresh() {
                return Ok(None);
            }
            self.radius = 0.25 * length.min(self.radius).max(f64::MIN_POSITIVE);
            return Ok((candidate == self.x).then(|| self.stalled()));
        };
        let fall = self.sum_of_squares() - squares;
        let ratio = fall / step.predicted;
        if ratio <= POOR && self.refresh() {
            return Ok(None);
        }
        if ratio <= ACCEPT && self.relative_offset() <= self.options.precision_tolerance && step.predicted <= self.noise() {
            return Ok(Some(self.stalled()));
        }
        let before = self.foretold();
        let accepted = ratio > ACCEPT && self.accept(candidate, evaluation);
        self.is_foretold = accepted && self.foretold() > STEADY * before;
        self.resize(if accepted { ratio } else { ratio.min(0.0) }, length, step.limited, squares);
        Ok(None)
    }

    /// Fall of the sum of squares that cannot be told from rounding.
    fn noise(&self) -> f64 {
        self.sum_of_squares() * 1e-10
    }

    /// What the errors of the values move the sum of squares by where each is its own.
    fn scatter(&self) -> f64 {
        2.0 * self.sum_of_squares().sqrt() * self.model.error() * self.model.magnitude() / (self.residuals.len() as f64).sqrt()
    }

    /// Whether what is left to fall cannot be seen for the error of the function.
    fn is_out_of_sight(&self) -> bool {
        self.options.jacobians == Jacobians::Evaluated && self.attainable <= self.scatter()
    }

    /// Moves to `x` if the linear model there has less left to fall; goes on if it has much less.
    fn polish(&mut self, x: Vec<f64>) -> Option<StopReason> {
        self.evaluations += 1;
        let (left, most) = (self.attainable, self.sum_of_squares() + MOST_SCATTER * self.scatter());
        let here = (self.x.clone(), self.residuals.clone(), self.jacobian.clone());
        let found = self.model.evaluate(&x, Wanted::Jacobian).ok().filter(|e| e.residuals.norm_squared() <= most);
        if !found.is_some_and(|evaluation| self.accept(x, evaluation)) {
            return Some(self.stalled());
        }
        if self.attainable > left {
            (self.x, self.residuals, self.jacobian) = here;
            self.linearise();
        }
        (self.attainable > POLISHED * left).then(|| self.stalled())
    }

    fn stalled(&self) -> StopReason {
        let (length, magnitude) = (self.sum_of_squares().sqrt(), self.model.magnitude());
        // What the residuals' own error moves the sum of squares by.
        let unseen = 2.0 * length * self.model.error().min(MOST_ERROR) * magnitude;
        if self.relative_offset() <= self.options.precision_tolerance {
            StopReason::Precision
        } else if length <= 1e-10 * magnitude {
            StopReason::PerfectFit
        } else if self.attainable <= unseen || self.is_next_to_a_minimum() {
            StopReason::Precision
        } else {
            StopReason::Stalled
        }
    }

    /// Whether the minimum that the slopes lead to is [`NEAR`] standard errors away or less: of a function with a kink, no step need lead there.
    fn is_next_to_a_minimum(&self) -> bool {
        let dof = u32::try_from(self.residuals.len().saturating_sub(self.x.len())).unwrap_or(u32::MAX);
        dof > 0 && self.attainable * f64::from(dof) <= NEAR * NEAR * self.sum_of_squares()
    }

    /// The point a scaled step away, exactly on a bound where the step ends on it.
    fn moved(&self, p: &DVector<f64>) -> Vec<f64> {
        (0..self.x.len())
            .map(|j| {
                let (low, high) = (self.bounds.lower[j], self.bounds.upper[j]);
                if p[j] <= self.linear.lower[j] {
                    return low;
                }
                if p[j] >= self.linear.upper[j] {
                    return high;
                }
                let scale = if self.scale[j] > 0.0 { self.scale[j] } else { 1.0 };
                (self.x[j] + p[j] / scale).min(high).max(low)
            })
            .collect()
    }

    /// The function at `x` with its sum of squares, which is `expected` to fall by so much; `None` where it has no finite value.
    fn try_evaluate(&mut self, x: &[f64], expected: f64) -> Option<(Evaluation, f64)> {
        self.evaluations += 1;
        // A step within rounding is rarely taken.
        let moves_on = self.options.jacobians == Jacobians::Evaluated && expected > self.noise();
        let wanted = if moves_on { Wanted::Jacobian } else { Wanted::Residuals };
        let evaluation = self.model.evaluate(x, wanted).ok()?;
        let squares = evaluation.residuals.norm_squared();
        squares.is_finite().then_some((evaluation, squares))
    }

    /// Moves to `x`; refuses it, changing nothing, where the Jacobian is missing or not finite.
    fn accept(&mut self, x: Vec<f64>, evaluation: Evaluation) -> bool {
        let is_carried = evaluation.jacobian.is_none() && self.options.jacobians != Jacobians::Evaluated;
        let jacobian = match evaluation.jacobian {
            Some(jacobian) => Some(jacobian),
            None if is_carried => Some(self.carried(&x, &evaluation.residuals)),
            None => self.evaluate_jacobian(&x, &evaluation.residuals),
        };
        match jacobian {
            Some(jacobian) if jacobian.iter().all(|v| v.is_finite()) => {
                self.is_carried = is_carried;
                (self.x, self.residuals, self.jacobian) = (x, evaluation.residuals, jacobian);
                self.linearise();
                true
            }
            _ => false,
        }
    }

    /// The Jacobian carried to `x` by the secant condition.
    fn carried(&self, x: &[f64], residuals: &DVector<f64>) -> DMatrix<f64> {
        let n = x.len();
        let step = DVector::from_fn(n, |j, _| x[j] - self.x[j]);
        let scaled = DVector::from_fn(n, |j, _| self.scale[j].powi(2) * step[j]);
        let length = scaled.dot(&step);
        if length <= 0.0 {
            return self.jacobian.clone();
        }
        let missed = residuals - &self.residuals - &self.jacobian * step;
        &self.jacobian + missed * (scaled / length).transpose()
    }

    /// Evaluates the Jacobian of the iterate where it was carried; whether it did.
    fn refresh(&mut self) -> bool {
        if !self.is_carried {
            return false;
        }
        let (x, residuals) = (self.x.clone(), self.residuals.clone());
        match self.evaluate_jacobian(&x, &residuals).filter(|j| j.iter().all(|v| v.is_finite())) {
            Some(jacobian) => {
                (self.jacobian, self.is_carried) = (jacobian, false);
                self.linearise();
                true
            }
            None => false,
        }
    }

    /// Whether the Jacobian was evaluated because `stop` rests on a carried one.
    fn refreshed(&mut self, stop: StopReason) -> bool {
        let limited = matches!(stop, StopReason::Beyond | StopReason::MaxIterations | StopReason::MaxEvaluations | StopReason::Cancelled);
        let asked = self.options.jacobians == Jacobians::Secant || stop == StopReason::Stalled;
        !limited && asked && self.refresh()
    }

    fn evaluate_jacobian(&mut self, x: &[f64], residuals: &DVector<f64>) -> Option<DMatrix<f64>> {
        self.evaluations += 1;
        match self.model.evaluate(x, Wanted::Jacobian).ok()?.jacobian {
            Some(jacobian) => Some(jacobian),
            None => finite_difference::jacobian(self.model, x, residuals, self.bounds, &mut self.evaluations).ok(),
        }
    }

    /// Sets the next radius after a step of `length` with `ratio` of actual to expected fall.
    fn resize(&mut self, ratio: f64, length: f64, limited: bool, squares: f64) {
        if ratio < 0.25 {
            let overshoot = (squares / self.sum_of_squares()).sqrt();
            let factor = if overshoot.is_finite() && overshoot > 10.0 { 0.1 } else { 0.25 };
            self.radius = factor * length.min(self.radius);
        } else if ratio > 0.75 && limited {
            self.radius *= 2.0;
        } else if ratio > 0.75 {
            self.radius = self.radius.max(2.0 * length);
        }
    }

    fn end(self, stop: StopReason) -> Minimum {
        Minimum {
            sum_of_squares: self.sum_of_squares(),
            relative_offset: self.relative_offset(),
            x: self.x,
            residuals: self.residuals,
            jacobian: self.jacobian,
            stop,
            iterations: self.iterations,
            evaluations: self.evaluations,
        }
    }
}
