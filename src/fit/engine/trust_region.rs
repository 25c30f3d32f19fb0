//! One step of bounded Gauss-Newton inside a trust region.
//!
//! In scaled variables the linear model of the residuals is `c + R p`, where `R` and `c = Qᵀ r` come from the QR
//! factorisation of the scaled Jacobian. The step minimises `|c + R p|` subject to `|p| ≤ radius` and
//! `lower ≤ p ≤ upper`: a component that would leave the box is put on its bound and the rest is solved again.
//! Without bounds the minimiser is `p(μ) = -V diag(s / (s² + μ)) Uᵀ c`, with `μ = 0` (Gauss-Newton) where that lies
//! inside, else with the `μ` for which `|p(μ)| = radius`.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `R`, `c` | triangular factor of the scaled Jacobian; rotated residuals | `(n, n)`, `(n)` |
//! | `p` | step in scaled variables | `(n)` |
//! | `μ` | Levenberg-Marquardt damping | scalar ≥ 0 |
//!
//! Source: J. Moré, The Levenberg-Marquardt algorithm (1978), for μ; J. Nocedal and S. Wright, Numerical
//! Optimization, 2nd ed., sections 10.3 and 16.7.

use nalgebra::{DMatrix, DVector};

use super::svd::svd;

/// Singular values below this times the largest are not stepped along by an undamped step.
const NEGLIGIBLE: f64 = 1e-14;

/// Relative precision of `|p(μ)| = radius`.
const RADIUS_PRECISION: f64 = 1e-2;

/// The linear model of the residuals at an iterate, in scaled variables, with the box around it.
#[derive(Clone, Debug)]
pub struct LinearModel {
    /// Triangular factor, `(n, n)`.
    pub r: DMatrix<f64>,
    /// Rotated residuals, `(n)`.
    pub c: DVector<f64>,
    /// Largest steps down, `(n)`, ≤ 0, perhaps `-∞`.
    pub lower: Vec<f64>,
    /// Largest steps up, `(n)`, ≥ 0, perhaps `+∞`.
    pub upper: Vec<f64>,
}

/// A step and what the linear model expects of it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Step in scaled variables, `(n)`.
    pub p: DVector<f64>,
    /// Expected fall of the sum of squares.
    pub predicted: f64,
    /// Whether the radius, not the model, set the length.
    pub limited: bool,
}

impl LinearModel {
    /// Variables that can move: not on a bound that the sum of squares pushes against.
    pub fn movable(&self) -> Vec<usize> {
        let gradient = self.r.transpose() * &self.c;
        (0..gradient.len())
            .filter(|&j| !(self.lower[j] >= 0.0 && gradient[j] >= 0.0 || self.upper[j] <= 0.0 && gradient[j] <= 0.0))
            .collect()
    }

    /// Fall of the sum of squares that an undamped step in the movable variables would bring.
    pub fn attainable(&self) -> f64 {
        let columns = self.r.select_columns(&self.movable());
        let d = svd(&columns);
        let rotated = d.u.transpose() * self.c.clone().resize_vertically(d.u.nrows(), 0.0);
        let cut = d.s.iter().copied().fold(0.0, f64::max) * NEGLIGIBLE;
        rotated.iter().zip(&d.s).filter(|(_, s)| **s > cut).map(|(b, _)| b * b).sum()
    }

    /// The step inside `radius` (in scaled variables) and the box.
    pub fn step(&self, radius: f64) -> Step {
        let n = self.c.len();
        let mut p = DVector::zeros(n);
        let mut free = self.movable();
        let mut limited = false;
        while !free.is_empty() {
            let spent: f64 = (0..n).filter(|j| !free.contains(j)).map(|j| p[j] * p[j]).sum();
            free.iter().for_each(|&j| p[j] = 0.0);
            let (part, at_radius) =
                damped_step(&self.r.select_columns(&free), &(&self.c + &self.r * &p), (radius * radius - spent).max(0.0).sqrt());
            free.iter().zip(&part).for_each(|(&j, &value)| p[j] = value);
            limited = at_radius;
            let before = free.len();
            free.retain(|&j| self.lower[j] <= p[j] && p[j] <= self.upper[j]);
            if free.len() == before {
                break;
            }
            for j in 0..n {
                p[j] = p[j].clamp(self.lower[j], self.upper[j]);
            }
        }
        let predicted = self.c.norm_squared() - (&self.c + &self.r * &p).norm_squared();
        Step { p, predicted, limited }
    }
}

/// Minimiser of `|b + a p|` with `|p| ≤ radius`, and whether the radius is active.
fn damped_step(a: &DMatrix<f64>, b: &DVector<f64>, radius: f64) -> (DVector<f64>, bool) {
    let d = svd(a);
    let rotated = d.u.transpose() * b.clone().resize_vertically(d.u.nrows(), 0.0);
    let cut = d.s.iter().copied().fold(0.0, f64::max) * NEGLIGIBLE;
    let coordinates = |mu: f64| {
        let factor = |s: f64| if s > cut || mu > 0.0 { s / (s * s + mu) } else { 0.0 };
        DVector::from_iterator(d.s.len(), d.s.iter().zip(&rotated).map(|(&s, &c)| if s > 0.0 { -factor(s) * c } else { 0.0 }))
    };
    let undamped = coordinates(0.0);
    if undamped.norm() <= radius {
        return (&d.v * undamped, false);
    }
    let mu = damping(&d.s, &rotated, radius);
    let mut p = coordinates(mu);
    let length = p.norm();
    if length > radius {
        p *= radius / length;
    }
    (&d.v * p, true)
}

/// The `μ` for which the damped step is as long as `radius`: Newton on `1/|p(μ)| - 1/radius`, kept in a bracket.
fn damping(s: &DVector<f64>, c: &DVector<f64>, radius: f64) -> f64 {
    let length = |mu: f64| -> (f64, f64) {
        let mut squares = 0.0;
        let mut slope = 0.0;
        for (&s, &c) in s.iter().zip(c).filter(|(s, _)| **s > 0.0) {
            let denominator = s * s + mu;
            let component = s * c / denominator;
            squares += component * component;
            slope -= component * component / denominator;
        }
        (squares.sqrt(), slope)
    };
    let gradient = s.component_mul(c).norm();
    if radius <= 0.0 || gradient == 0.0 {
        return f64::MAX.sqrt();
    }
    let (mut low, mut high) = (0.0, gradient / radius);
    let mut mu = high * 1e-3;
    for _ in 0..60 {
        let (norm, slope) = length(mu);
        if (norm - radius).abs() <= RADIUS_PRECISION * radius || high - low <= f64::EPSILON * high {
            break;
        }
        if norm > radius {
            low = mu
        } else {
            high = mu
        }
        // d|p|/dμ = slope / |p|
        let newton = mu - (norm - radius) / radius * (norm * norm / slope);
        mu = if newton > low && newton < high { newton } else { (low.max(high * 1e-3) * high).sqrt() };
    }
    mu
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(r: &[f64], c: &[f64], lower: &[f64], upper: &[f64]) -> LinearModel {
        LinearModel {
            r: DMatrix::from_row_slice(c.len(), c.len(), r),
            c: DVector::from_row_slice(c),
            lower: lower.to_vec(),
            upper: upper.to_vec(),
        }
    }
    const NO: [f64; 2] = [f64::NEG_INFINITY; 2];
    const YES: [f64; 2] = [f64::INFINITY; 2];

    #[test]
    fn inside_the_radius_the_step_is_gauss_newton() {
        let step = model(&[2.0, 1.0, 0.0, 4.0], &[-4.0, -8.0], &NO, &YES).step(100.0);
        assert!((step.p[0] - 1.0).abs() < 1e-12 && (step.p[1] - 2.0).abs() < 1e-12, "{}", step.p);
        assert!((step.predicted - 80.0).abs() < 1e-9 && !step.limited);
    }

    #[test]
    fn the_radius_limits_the_step() {
        for radius in [1.0, 1e-3, 1e-9] {
            let step = model(&[2.0, 1.0, 0.0, 4.0], &[-4.0, -8.0], &NO, &YES).step(radius);
            assert!(step.limited && step.p.norm() <= radius * 1.000_001 && step.p.norm() > 0.98 * radius, "{}", step.p);
            assert!(step.predicted > 0.0);
        }
    }

    #[test]
    fn a_bound_stops_its_variable_and_the_rest_is_solved_again() {
        let m = model(&[2.0, 1.0, 0.0, 4.0], &[-4.0, -8.0], &NO, &[f64::INFINITY, 1.0]);
        let step = m.step(100.0);
        assert_eq!(step.p[1], 1.0);
        assert!((step.p[0] - 1.5).abs() < 1e-12, "{}", step.p);
    }

    #[test]
    fn a_variable_pushed_against_its_bound_does_not_move() {
        let m = model(&[1.0, 0.0, 0.0, 1.0], &[1.0, -1.0], &[0.0, f64::NEG_INFINITY], &YES);
        assert_eq!(m.movable(), [1]);
        assert_eq!(m.step(10.0).p.as_slice(), [0.0, 1.0]);
        assert!((m.attainable() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_direction_without_effect_is_not_stepped_along() {
        let step = model(&[1.0, 1.0, 0.0, 0.0], &[-2.0, 5.0], &NO, &YES).step(100.0);
        assert!((step.p[0] - 1.0).abs() < 1e-12 && (step.p[1] - 1.0).abs() < 1e-12, "{}", step.p);
        let unseen = model(&[1.0, 0.0, 0.0, 0.0], &[-2.0, 0.0], &NO, &YES).step(100.0);
        assert_eq!(unseen.p.as_slice(), [2.0, 0.0]);
    }
}
