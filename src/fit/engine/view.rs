//! A residual function seen through other coordinates: some parameters held, others on a logarithmic scale.
//!
//! With `x_j = exp(θ_j)` for a parameter on the logarithmic scale and `x_j = θ_j` otherwise, `dr/dθ_j = dr/dx_j · dx_j/dθ_j`;
//! held parameters have no `θ`. Points, bounds and Jacobians that come in or go out are those of `x`.

use std::ops::ControlFlow;

use nalgebra::DMatrix;

use super::least_squares::{
    Bounds, Evaluation, EvaluationError, Iterate, LeastSquaresOptions, Minimum, ResidualModel, Start, StartError, StopReason, Wanted,
    minimise_from,
};

/// Scale on which a parameter is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Its own.
    #[default]
    Natural,
    /// Its logarithm; for parameters above 0.
    Log,
}

impl Scale {
    pub(crate) fn to(self, x: f64) -> f64 {
        match self {
            Self::Natural => x,
            Self::Log => x.max(f64::MIN_POSITIVE).ln(),
        }
    }

    pub(crate) fn bound(self, x: f64) -> f64 {
        match self {
            Self::Log if x <= 0.0 => f64::NEG_INFINITY,
            _ => self.to(x),
        }
    }

    pub(crate) fn from(self, theta: f64) -> f64 {
        match self {
            Self::Natural => theta,
            Self::Log => theta.exp(),
        }
    }

    /// `dx/dθ` at `x`.
    pub(crate) fn slope(self, x: f64) -> f64 {
        match self {
            Self::Natural => 1.0,
            Self::Log => x,
        }
    }
}

/// Which parameters are searched, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// Indices of the parameters that move, ascending.
    pub free: Vec<usize>,
    /// Scale of every parameter, held ones included, `(n_params)`.
    pub scales: Vec<Scale>,
}

impl Coordinates {
    /// All `n_params` parameters on their own scale.
    pub fn natural(n_params: usize) -> Self {
        Self { free: (0..n_params).collect(), scales: vec![Scale::Natural; n_params] }
    }

    /// The same with parameter `index` held.
    #[must_use]
    pub fn holding(&self, index: usize) -> Self {
        Self { free: self.free.iter().copied().filter(|&j| j != index).collect(), scales: self.scales.clone() }
    }

    fn is_natural(&self) -> bool {
        self.free.len() == self.scales.len() && self.scales.iter().all(|s| *s == Scale::Natural)
    }
}

struct View<'a> {
    inner: &'a mut dyn ResidualModel,
    coordinates: &'a Coordinates,
    point: Vec<f64>,
    bounds: &'a Bounds,
}

impl View<'_> {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        let mut x = self.point.clone();
        for (&j, t) in self.coordinates.free.iter().zip(theta) {
            // Rounding of the exponential may leave the box by an ulp.
            x[j] = self.coordinates.scales[j].from(*t).min(self.bounds.upper[j]).max(self.bounds.lower[j]);
        }
        x
    }
}

impl ResidualModel for View<'_> {
    fn n_obs(&self) -> usize {
        self.inner.n_obs()
    }

    fn n_params(&self) -> usize {
        self.coordinates.free.len()
    }

    fn evaluate(&mut self, theta: &[f64], wanted: Wanted) -> Result<Evaluation, EvaluationError> {
        let x = self.natural(theta);
        let found = self.inner.evaluate(&x, wanted)?;
        let Coordinates { free, scales } = self.coordinates;
        let jacobian = found.jacobian.map(|full| on_scales(&full, free, scales, &x));
        Ok(Evaluation { residuals: found.residuals, jacobian })
    }

    fn magnitude(&self) -> f64 {
        self.inner.magnitude()
    }

    fn error(&self) -> f64 {
        self.inner.error()
    }
}

/// As [`minimise`], moving only the free parameters of `coordinates`, each on its scale. The columns of held parameters in
/// the Jacobian of the [`Minimum`] are zero.
///
/// # Errors
/// As [`minimise`].
pub fn minimise_in(
    model: &mut dyn ResidualModel,
    coordinates: &Coordinates,
    start: &[f64],
    bounds: &Bounds,
    options: &LeastSquaresOptions,
    progress: &mut dyn FnMut(&Iterate) -> ControlFlow<()>,
) -> Result<Minimum, StartError> {
    minimise_in_from(model, coordinates, &Start { x: start, jacobian: None }, bounds, options, progress)
}

/// As [`minimise_in`], with what is known of the Jacobian, by all parameters, at the start.
///
/// # Errors
/// As [`minimise_in`].
pub fn minimise_in_from(
    model: &mut dyn ResidualModel,
    coordinates: &Coordinates,
    from: &Start<'_>,
    bounds: &Bounds,
    options: &LeastSquaresOptions,
    progress: &mut dyn FnMut(&Iterate) -> ControlFlow<()>,
) -> Result<Minimum, StartError> {
    let start = from.x;
    let all: Vec<usize> = (0..start.len()).collect();
    if coordinates.is_natural() {
        model.set_free(&all);
        return minimise_from(model, from, bounds, options, progress);
    }
    let Coordinates { free, scales } = coordinates;
    model.set_free(free);
    if free.is_empty() {
        return nothing_to_move(model, start);
    }
    let within = Bounds {
        lower: free.iter().map(|&j| scales[j].bound(bounds.lower[j])).collect(),
        upper: free.iter().map(|&j| scales[j].bound(bounds.upper[j])).collect(),
    };
    let theta: Vec<f64> = free.iter().map(|&j| scales[j].to(start[j])).collect();
    let mut view = View { inner: model, coordinates, point: start.to_vec(), bounds };
    let point = start.to_vec();
    let natural = |theta: &[f64]| {
        let mut x = point.clone();
        free.iter().zip(theta).for_each(|(&j, t)| x[j] = scales[j].from(*t).min(bounds.upper[j]).max(bounds.lower[j]));
        x
    };
    let mut report = |i: &Iterate| progress(&Iterate { x: natural(&i.x), ..i.clone() });
    let known = from.jacobian.map(|jacobian| on_scales(jacobian, free, scales, start));
    let found = minimise_from(&mut view, &Start { x: &theta, jacobian: known.as_ref() }, &within, options, &mut report);
    model.set_free(&all);
    let found = found?;
    let x = natural(&found.x);
    let mut jacobian = DMatrix::zeros(found.jacobian.nrows(), start.len());
    for (column, &j) in found.jacobian.column_iter().zip(free) {
        jacobian.set_column(j, &(column / scales[j].slope(x[j])));
    }
    Ok(Minimum { x, jacobian, ..found })
}

/// The columns of the free parameters, by the scale on which each is searched.
fn on_scales(jacobian: &DMatrix<f64>, free: &[usize], scales: &[Scale], x: &[f64]) -> DMatrix<f64> {
    let mut columns = jacobian.select_columns(free);
    for (mut column, &j) in columns.column_iter_mut().zip(free) {
        column *= scales[j].slope(x[j]);
    }
    columns
}

/// The one point there is.
fn nothing_to_move(model: &mut dyn ResidualModel, start: &[f64]) -> Result<Minimum, StartError> {
    let residuals = model.evaluate(start, Wanted::Residuals)?.residuals;
    if !residuals.iter().all(|r| r.is_finite()) {
        return Err(StartError::NotFinite);
    }
    Ok(Minimum {
        x: start.to_vec(),
        jacobian: DMatrix::zeros(residuals.len(), start.len()),
        sum_of_squares: residuals.norm_squared(),
        residuals,
        relative_offset: 0.0,
        stop: StopReason::RelativeOffset,
        iterations: 0,
        evaluations: 1,
    })
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;

    use super::*;
    use crate::fit::engine::least_squares::Jacobians;

    /// Residuals `a e^(b t) - y` at t = 0, 1, 2, 3 with a = 2, b = -0.5.
    struct Decay;

    impl ResidualModel for Decay {
        fn n_obs(&self) -> usize {
            4
        }
        fn n_params(&self) -> usize {
            2
        }
        fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
            let at = |i: usize| f64::from(u8::try_from(i).unwrap_or(0));
            let residuals = DVector::from_fn(4, |i, _| x[0] * (x[1] * at(i)).exp() - 2.0 * (-0.5 * at(i)).exp());
            let jacobian = DMatrix::from_fn(4, 2, |i, j| (x[1] * at(i)).exp() * if j == 0 { 1.0 } else { x[0] * at(i) });
            Ok(Evaluation { residuals, jacobian: Some(jacobian) })
        }
    }

    /// [`Decay`] with Jacobians only where they are asked for, counted.
    struct Counted {
        jacobians: usize,
    }

    impl ResidualModel for Counted {
        fn n_obs(&self) -> usize {
            4
        }
        fn n_params(&self) -> usize {
            2
        }
        fn evaluate(&mut self, x: &[f64], wanted: Wanted) -> Result<Evaluation, EvaluationError> {
            let mut found = Decay.evaluate(x, wanted)?;
            // A misfit that no parameter removes, so that the end is no perfect fit.
            found.residuals[0] += 0.1;
            match wanted {
                Wanted::Jacobian => self.jacobians += 1,
                Wanted::Residuals => found.jacobian = None,
            }
            Ok(found)
        }
    }

    fn counted(jacobians: Jacobians, offset_tolerance: f64, from: &Start<'_>) -> (Minimum, usize) {
        let options = LeastSquaresOptions { jacobians, offset_tolerance, ..LeastSquaresOptions::default() };
        let bounds = Bounds { lower: vec![0.0, -10.0], upper: vec![1e6, 10.0] };
        let mut model = Counted { jacobians: 0 };
        let keep = &mut |_: &Iterate| ControlFlow::Continue(());
        let found = minimise_in_from(&mut model, &Coordinates::natural(2), from, &bounds, &options, keep).unwrap();
        (found, model.jacobians)
    }

    #[test]
    fn carried_jacobians_end_at_the_same_minimum_with_fewer_evaluations() {
        let start = Start { x: &[1.0, 0.0], jacobian: None };
        let (evaluated, most) = counted(Jacobians::Evaluated, 1e-9, &start);
        let (carried, fewer) = counted(Jacobians::Secant, 1e-9, &start);
        assert!(evaluated.stop.converged() && carried.stop.converged() && fewer < most, "{fewer} {most}");
        for j in 0..2 {
            assert!((evaluated.x[j] - carried.x[j]).abs() < 1e-7, "{:?} {:?}", evaluated.x, carried.x);
        }
        assert!((&evaluated.jacobian - &carried.jacobian).norm() < 1e-6, "the Jacobian at the end is evaluated");
        let near = Start { x: &[1.9, -0.4], jacobian: Some(&carried.jacobian) };
        let (again, few) = counted(Jacobians::Secant, 1e-9, &near);
        assert!(few < fewer && (again.x[0] - evaluated.x[0]).abs() < 1e-7, "{few} {fewer}");
        let (rough, none) = counted(Jacobians::SecantToTheEnd, 1e-2, &near);
        assert!(none == 0 && (rough.sum_of_squares / evaluated.sum_of_squares - 1.0).abs() < 1e-3, "{none} {rough:?}");
    }

    #[test]
    fn a_search_that_will_end_too_high_is_broken_off_and_no_other() {
        let start = Start { x: &[1.0, 0.0], jacobian: None };
        let (whole, _) = counted(Jacobians::Evaluated, 1e-9, &start);
        let until = |beyond: f64| {
            let options = LeastSquaresOptions { beyond: Some(beyond), ..LeastSquaresOptions::default() };
            let bounds = Bounds { lower: vec![0.0, -10.0], upper: vec![1e6, 10.0] };
            let keep = &mut |_: &Iterate| ControlFlow::Continue(());
            minimise_in_from(&mut Counted { jacobians: 0 }, &Coordinates::natural(2), &start, &bounds, &options, keep).unwrap()
        };
        let broken_off = until(0.5 * whole.sum_of_squares);
        assert!(broken_off.stop == StopReason::Beyond && broken_off.evaluations < whole.evaluations, "{broken_off:?}");
        assert!(!broken_off.stop.converged());
        let least = broken_off.sum_of_squares * (1.0 - broken_off.relative_offset.powi(2));
        assert!((least / whole.sum_of_squares - 1.0).abs() < 0.5, "{least}, not {}", whole.sum_of_squares);
        assert_eq!(until(2.0 * whole.sum_of_squares).x, whole.x);
        // On the way to a perfect fit only curvature leaves something.
        let options = LeastSquaresOptions { beyond: Some(1e-20), ..LeastSquaresOptions::default() };
        let keep = &mut |_: &Iterate| ControlFlow::Continue(());
        let perfect = minimise_in_from(&mut Decay, &Coordinates::natural(2), &start, &Bounds::unbounded(2), &options, keep).unwrap();
        assert!(perfect.stop.converged() && perfect.sum_of_squares < 1e-20, "{perfect:?}");
    }

    fn run(coordinates: &Coordinates, start: [f64; 2]) -> Minimum {
        let bounds = Bounds { lower: vec![0.0, -10.0], upper: vec![1e6, 10.0] };
        let keep = &mut |_: &Iterate| ControlFlow::Continue(());
        minimise_in(&mut Decay, coordinates, &start, &bounds, &LeastSquaresOptions::default(), keep).unwrap()
    }

    #[test]
    fn a_logarithmic_scale_ends_at_the_same_minimum_with_the_same_jacobian() {
        let log = Coordinates { free: vec![0, 1], scales: vec![Scale::Log, Scale::Natural] };
        let (a, b) = (run(&Coordinates::natural(2), [1.0, 0.0]), run(&log, [1.0, 0.0]));
        for j in 0..2 {
            assert!((a.x[j] - b.x[j]).abs() < 1e-7, "{:?} {:?}", a.x, b.x);
        }
        assert!((a.jacobian - b.jacobian).norm() < 1e-6);
    }

    #[test]
    fn a_held_parameter_stays_where_it_is() {
        let held = Coordinates::natural(2).holding(1);
        let found = run(&held, [1.0, -0.25]);
        assert_eq!(found.x[1], -0.25);
        assert_eq!(found.jacobian.column(1).norm(), 0.0);
        assert!(found.stop.converged() && found.x[0] < 2.0);
    }
}
