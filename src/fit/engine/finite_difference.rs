//! Jacobians by differences, for functions that have no derivatives of their own.
//!
//! `J_j = (r(x + h e_j) - r(x - h e_j)) / 2h` with `h = ε^(1/3) max(|x_j|, s_j)`, error `O(h²)`; next to a bound, or
//! where one side has no value, the three-point one-sided formula `(-3 r(x) + 4 r(x + h e_j) - r(x + 2h e_j)) / 2h` of
//! the same order. Source: W. Press et al., Numerical Recipes, 3rd ed., section 5.7.

use nalgebra::{DMatrix, DVector};

use super::terms::{Bounds, EvaluationError, ResidualModel, Wanted};

/// The Jacobian at `x`, `(n_obs, n_params)`, given the residuals there; adds its evaluations to `evaluations`.
///
/// # Errors
/// [`EvaluationError`] when the function has no value on either side of `x`.
pub fn jacobian(
    model: &mut dyn ResidualModel,
    x: &[f64],
    residuals: &DVector<f64>,
    bounds: &Bounds,
    evaluations: &mut usize,
) -> Result<DMatrix<f64>, EvaluationError> {
    let mut columns = DMatrix::zeros(residuals.len(), x.len());
    for j in 0..x.len() {
        let h = step(x[j]);
        let mut at = |offset: f64| {
            *evaluations += 1;
            let mut moved = x.to_vec();
            moved[j] += offset;
            model.evaluate(&moved, Wanted::Residuals).map(|e| e.residuals)
        };
        let (below, above) = (x[j] - bounds.lower[j], bounds.upper[j] - x[j]);
        let column = if below >= h && above >= h {
            central(&mut at, h).or_else(|_| one_sided(&mut at, residuals, h)).or_else(|_| one_sided(&mut at, residuals, -h))
        } else if above >= below {
            one_sided(&mut at, residuals, h.min(above / 2.0))
        } else {
            one_sided(&mut at, residuals, -h.min(below / 2.0))
        };
        columns.set_column(j, &column?);
    }
    Ok(columns)
}

/// Length of the difference at `x`: a power of two, so that `x ± h` are hit exactly.
fn step(x: f64) -> f64 {
    let size = if x == 0.0 { 1.0 } else { x.abs() };
    (f64::EPSILON.cbrt() * size).log2().round().exp2().max(f64::MIN_POSITIVE)
}

type At<'a> = dyn FnMut(f64) -> Result<DVector<f64>, EvaluationError> + 'a;

fn central(at: &mut At<'_>, h: f64) -> Result<DVector<f64>, EvaluationError> {
    Ok((at(h)? - at(-h)?) / (2.0 * h))
}

fn one_sided(at: &mut At<'_>, here: &DVector<f64>, h: f64) -> Result<DVector<f64>, EvaluationError> {
    if h == 0.0 {
        return Ok(DVector::zeros(here.len()));
    }
    Ok((at(h)? * 4.0 - here * 3.0 - at(2.0 * h)?) / (2.0 * h))
}
