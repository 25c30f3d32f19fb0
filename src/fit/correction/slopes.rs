//! Slopes of the ratios along what the trials hardly determine.
//!
//! ```text
//! D = diag max(|x̂_j|, √C_jj),   D⁻¹ C D⁻¹ = Σ_v λ_v v vᵀ,   step_v = a D √λ_v v
//! γ_v = [ln ρ(x̂ + step_v) - ln ρ(x̂ - step_v)] / 2a √λ_v,   g = D⁻¹ Σ_v γ_v v          over v with √λ_v > 0.02
//! ```
//!
//! A step is a standard error long, and shorter (`a < 1`) where a parameter would change by more than three tenths of `D`. Where a
//! bound is nearer on one side, the ratios are taken from further inside (`x̂` moves along the direction until the step has room on
//! either side, and is shortened where it has none): slopes to one side of a bound say little of what is a step away from it. A change
//! within the half-width of the difference counts as none, and is as uncertain as any; what that takes from the estimates is in their
//! intervals ([`super::noise`]). Other directions are determined so well that ratios do not change on the way. No parameter
//! goes farther in a round than three steps along the directions, or three tenths of `D`, from where the factors were taken ([`reach`]): beyond,
//! nothing was simulated.
//!
//! | symbol | is |
//! |---|---|
//! | `C` | covariance of the estimates `x̂`, as if no bound held them; with the error of the simulations so far |
//! | `ρ` | ratio of simulation to solver, at the same random numbers; where differences count, these |

use indexmap::IndexMap;
use nalgebra::DMatrix;

use super::{
    Correction,
    noise::{Deviations, OwnError, Taken},
};
use crate::fit::report::{Fit, assemble::OptionalMatrix};

/// Standard error along a direction, relative to the parameters, from which it is looked at.
const WEAK: f64 = 0.02;
/// Largest change of a parameter in a step, of its size.
const LONGEST: f64 = 0.3;
/// Share of the way to a bound that a step may go.
const WITHIN_BOUNDS: f64 = 0.9;
/// How many steps, beyond which slopes are not believed, a round may go.
const FARTHEST: f64 = 3.0;

/// A direction of a standard error in which the trials leave the parameters open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Direction {
    /// By parameter, relative to its size: of unit length.
    relative: Vec<f64>,
    /// Sizes of the parameters, or their standard errors where these are larger.
    sizes: Vec<f64>,
    /// How far to go on either side, in units of `relative`.
    below: f64,
    above: f64,
}

/// The directions in which the parameters are open, and from where to look along them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Open {
    /// Between the ends of all directions.
    pub(super) centre: Vec<f64>,
    /// Least determined first.
    pub(super) directions: Vec<Direction>,
}

impl Open {
    /// Along `directions` from near `x`, with room on either side of the centre where `bounds` leave any; directions without are left out.
    fn within(bounds: &[(f64, f64)], x: &[f64], mut directions: Vec<Direction>) -> Self {
        let mut centre = x.to_vec();
        for direction in &directions {
            let [below, above] = direction.rooms(&centre, bounds);
            let length = direction.below.min(0.5 * (below + above));
            direction.go((length - below).max(0.0) - (length - above).max(0.0), &mut centre);
        }
        directions.retain_mut(|direction| {
            let [below, above] = direction.rooms(&centre, bounds);
            direction.below = direction.below.min(below);
            direction.above = direction.above.min(above);
            direction.below + direction.above > 0.0
        });
        Self { centre, directions }
    }
}

impl Direction {
    /// Moves `x` along it by this in units of `relative`.
    fn go(&self, length: f64, x: &mut [f64]) {
        x.iter_mut().zip(&self.relative).zip(&self.sizes).for_each(|((x, v), size)| *x += length * v * size);
    }

    /// How far it may go from `x` on either side, in units of `relative`.
    fn rooms(&self, x: &[f64], bounds: &[(f64, f64)]) -> [f64; 2] {
        [-1.0, 1.0].map(|sign| {
            let to_bound = (0..x.len()).filter(|&j| self.relative[j] != 0.0).map(|j| {
                let step = sign * self.relative[j] * self.sizes[j];
                let bound = if step > 0.0 { bounds[j].1 } else { bounds[j].0 };
                ((bound - x[j]) / step).max(0.0)
            });
            to_bound.fold(f64::INFINITY, f64::min) * WITHIN_BOUNDS
        })
    }

    /// Parameters at either end, from `x`.
    pub(super) fn ends(&self, x: &[f64]) -> [Vec<f64>; 2] {
        [-self.below, self.above].map(|length| {
            let mut end = x.to_vec();
            self.go(length, &mut end);
            end
        })
    }

    /// The step upwards by parameter, those left out that it moves by less than a hundredth of the most.
    pub(super) fn step(&self, names: &[String]) -> IndexMap<String, f64> {
        let most = self.relative.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let moved = names.iter().zip(&self.relative).zip(&self.sizes).filter(|((_, v), _)| v.abs() >= 0.01 * most);
        moved.map(|((name, v), size)| (name.clone(), self.above * v * size)).collect()
    }

    /// Derivatives of the length along it by the parameters.
    fn along(&self) -> Vec<f64> {
        self.relative.iter().zip(&self.sizes).map(|(v, size)| v / size).collect()
    }

    /// Adds the slopes between what was found at the ends to those of `to`, and their errors to `own`; changes within `quantile` standard
    /// errors are none.
    pub(super) fn add(&self, names: &[String], [below, above]: &[Taken; 2], quantile: f64, to: &mut Correction, own: &mut OwnError) {
        let (along, length) = (self.along(), self.below + self.above);
        for (p, point) in to.points.iter_mut().enumerate() {
            for (k, (measure, factor)) in point.factors.iter_mut().enumerate() {
                let mut slope_error = Deviations::new();
                let change = below.factor(p, k).zip(above.factor(p, k)).and_then(|(below, above)| factor.change(below, above));
                if let Some((change, deviations)) = change {
                    // A slope that is not seen is known no better than one that is.
                    slope_error = deviations.iter().map(|d| d / length).collect();
                    if change.abs() > quantile * length_of(&deviations) {
                        for (name, by) in names.iter().zip(&along).filter(|(_, by)| **by != 0.0) {
                            *factor.slopes.entry(name.clone()).or_insert(0.0) += change / length * by;
                        }
                    }
                }
                if let Some(error) = own.points.get_mut(p).and_then(|p| p.measures.get_mut(measure)) {
                    error.slopes.push(slope_error);
                }
            }
        }
        own.along.push(along);
    }
}

/// How far from where the factors were taken each parameter may go: as far as their slopes along `directions` are believed, and as far
/// as a step may be long; any way for one that is in none of them, as whole numbers are.
pub(super) fn reach(directions: &[&Direction], n_params: usize) -> Vec<f64> {
    let of = |j: usize| {
        let with = || directions.iter().filter(|d| d.relative[j] != 0.0);
        let believed: f64 = with().map(|d| FARTHEST * d.below.max(d.above) * (d.relative[j] * d.sizes[j]).abs()).sum();
        with().map(|d| LONGEST * d.sizes[j]).reduce(f64::max).map_or(f64::INFINITY, |least| believed.max(least))
    };
    (0..n_params).map(of).collect()
}

fn length_of(deviations: &[f64]) -> f64 {
    deviations.iter().map(|d| d * d).sum::<f64>().sqrt()
}

/// The directions in which the estimates of `fit` are open, least determined first; none without a covariance. Whole numbers and
/// parameters without a variance are in none.
pub(super) fn open_directions(fit: &Fit, covariance: &OptionalMatrix, bounds: &[(f64, f64)]) -> Open {
    let x: Vec<f64> = fit.estimates().map(|(_, v)| v).collect();
    let Some(covariance) = covariance else { return Open { centre: x, directions: Vec::new() } };
    let real: Vec<bool> = fit.parameters.keys().map(|name| fit.whole_numbers.iter().all(|w| w.parameter != *name)).collect();
    Open::within(bounds, &x, open_in(covariance, &x, &real))
}

/// As [`open_directions`], without bounds, from the covariance of the estimates `x`, of which those that are `real` count.
fn open_in(covariance: &[Vec<Option<f64>>], x: &[f64], real: &[bool]) -> Vec<Direction> {
    let free: Vec<usize> = (0..x.len()).filter(|&j| real[j] && covariance[j][j].is_some_and(|c| c > 0.0)).collect();
    let deviation = |j: usize| covariance[j][j].map_or(0.0, f64::sqrt);
    let sizes: Vec<f64> = (0..x.len()).map(|j| x[j].abs().max(deviation(j)).max(f64::MIN_POSITIVE)).collect();
    let relative = DMatrix::from_fn(free.len(), free.len(), |i, j| {
        let (i, j) = (free[i], free[j]);
        covariance[i][j].unwrap_or(0.0) / (sizes[i] * sizes[j])
    });
    if relative.is_empty() || relative.iter().any(|c| !c.is_finite()) {
        return Vec::new();
    }
    let eigen = relative.symmetric_eigen();
    let mut found: Vec<(f64, Direction)> = Vec::new();
    for (&variance, v) in eigen.eigenvalues.iter().zip(eigen.eigenvectors.column_iter()) {
        let error = variance.max(0.0).sqrt();
        if error > WEAK {
            let mut relative = vec![0.0; x.len()];
            free.iter().zip(v.iter()).for_each(|(&j, v)| relative[j] = *v);
            let length = error.min(LONGEST / v.amax());
            found.push((error, Direction { relative, sizes: sizes.clone(), below: length, above: length }));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, direction)| direction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fit::correction::{CorrectedPoint, Factor},
        model::{Bindings, Measure},
    };

    const NAMES: [&str; 3] = ["a", "b", "n"];

    fn names() -> Vec<String> {
        NAMES.map(str::to_owned).into()
    }

    /// Of a simulation that is `exp(0.4 a - 0.1 b)` times the solver, and more by `0.3 a` where the difference counts.
    fn taken(x: &[f64], std_error: f64) -> Taken {
        let simulated = (0.4 * x[0] - 0.1 * x[1]).exp() * 2.0;
        let ratio = Factor { analytic: 2.0, simulated, half_width: None, ratio: Some(simulated / 2.0), slopes: IndexMap::new() };
        let difference = Factor { analytic: 0.0, simulated: 0.3 * x[0], half_width: None, ratio: None, slopes: IndexMap::new() };
        let measures: [Measure; 2] = ["throughput(T)", "utilization(T)"].map(|m| m.parse().unwrap());
        let factors = measures.into_iter().zip([ratio, difference]).collect();
        let correction = Correction { points: vec![CorrectedPoint { controlled: Bindings::new(), factors }], ..Correction::default() };
        // As by chance, so that the ends have nothing in common.
        let sign = if x[0] > X[0] { -1.0 } else { 1.0 };
        Taken { correction, deviations: vec![vec![vec![std_error * 0.6, sign * std_error * 0.8]; 2]] }
    }

    fn slopes_with_error(directions: &[Direction], x: &[f64], std_error: f64) -> (Correction, OwnError) {
        let here = taken(x, std_error);
        let (mut found, mut own) = (here.correction.clone(), here.own_error());
        for direction in directions {
            let ends = direction.ends(x).map(|end| taken(&end, std_error));
            direction.add(&names(), &ends, 1.96, &mut found, &mut own);
        }
        (found, own)
    }

    fn slopes(directions: &[Direction], x: &[f64], std_error: f64) -> Correction {
        slopes_with_error(directions, x, std_error).0
    }

    const X: [f64; 3] = [1.0, 0.5, 3.0];

    /// Standard errors of a fifth and of a thousandth, along and across `a + 2 b`; the third parameter is whole, or has no error.
    fn open(bounds: &[(f64, f64)]) -> Open {
        let covariance = |open: f64, known: f64| {
            let (o, k) = (0.5 * open * open, 0.5 * known * known);
            let of = |i: usize, j: usize| (i < 2 && j < 2).then(|| (if i == j { o + k } else { k - o }) * X[i] * X[j]);
            (0..3).map(|i| (0..3).map(|j| of(i, j)).collect()).collect::<Vec<Vec<Option<f64>>>>()
        };
        Open::within(bounds, &X, open_in(&covariance(0.2, 0.001), &X, &[true, true, false]))
    }

    #[test]
    fn only_what_is_open_is_looked_at() {
        let found = open(&[(0.0, f64::INFINITY); 3]);
        assert_eq!((found.directions.len(), found.centre.as_slice()), (1, &X[..]));
        let step = found.directions[0].step(&names());
        assert_eq!(step.keys().collect::<Vec<_>>(), ["a", "b"]);
        let half = 0.2 / 2.0_f64.sqrt();
        assert!((step["a"].abs() - half).abs() < 1e-12 && (step["a"] + 2.0 * step["b"]).abs() < 1e-12, "{step:?}");
    }

    #[test]
    fn slopes_are_those_along_the_direction() {
        let found = slopes(&open(&[(0.0, f64::INFINITY); 3]).directions, &X, 1e-9);
        for (factor, along) in found.points[0].factors.values().zip([0.4 + 0.1 * 0.5, 0.3]) {
            let slope = factor.slopes["a"] - 0.5 * factor.slopes["b"];
            assert!((slope - along).abs() < 1e-9, "{factor:?}");
            assert_eq!(factor.slopes.get("n"), None);
        }
    }

    #[test]
    fn steps_end_before_bounds_and_have_room_on_either_side() {
        let it = open(&[(0.95, 1.02), (0.0, 9.0), (0.0, 9.0)]);
        let [direction] = it.directions.as_slice() else { panic!("{it:?}") };
        let mut ends = direction.ends(&it.centre).map(|end| end[0]);
        ends.sort_by(f64::total_cmp);
        assert!(ends[0] > 0.95 && ends[1] < 1.02 && ends[1] - ends[0] > 0.055, "{ends:?}");
        assert!((direction.below - direction.above).abs() < 0.1 * direction.below, "{direction:?}");
        let found = slopes(std::slice::from_ref(direction), &it.centre, 1e-9);
        let slopes = &found.points[0].factors[0].slopes;
        assert!((slopes["a"] - 0.5 * slopes["b"] - 0.45).abs() < 1e-9);
    }

    #[test]
    fn a_step_from_a_bound_is_taken_from_inside() {
        let it = open(&[(X[0], f64::INFINITY), (0.0, f64::INFINITY), (0.0, f64::INFINITY)]);
        let half = 0.2 / 2.0_f64.sqrt();
        let [direction] = it.directions.as_slice() else { panic!("{it:?}") };
        assert!((it.centre[0] - X[0] - half).abs() < 1e-12 && (it.centre[0] + 2.0 * it.centre[1] - 2.0).abs() < 1e-12, "{it:?}");
        let mut ends = direction.ends(&it.centre).map(|end| end[0] - X[0]);
        ends.sort_by(f64::total_cmp);
        assert!((ends[0] - 0.1 * half).abs() < 1e-12 && (ends[1] - 2.0 * half).abs() < 1e-12, "{ends:?}");
    }

    #[test]
    fn reach_is_three_steps_or_a_step_and_without_end_for_whole_numbers() {
        let open = open(&[(0.0, f64::INFINITY); 3]);
        let found = reach(&open.directions.iter().collect::<Vec<_>>(), 3);
        let half = 0.2 / 2.0_f64.sqrt();
        assert!((found[0] - 3.0 * half).abs() < 1e-12 && (found[1] - 1.5 * half).abs() < 1e-12, "{found:?}");
        assert_eq!(found[2], f64::INFINITY);
        assert_eq!(reach(&[], 2), [f64::INFINITY; 2]);
    }

    #[test]
    fn changes_within_the_error_of_the_simulation_are_none() {
        let found = slopes(&open(&[(0.0, f64::INFINITY); 3]).directions, &X, 0.3);
        assert!(found.points[0].factors.values().all(|f| f.slopes.is_empty()), "{found:?}");
    }

    #[test]
    fn slopes_are_off_by_what_the_difference_is() {
        let open = open(&[(0.0, f64::INFINITY); 3]);
        let (_, own) = slopes_with_error(&open.directions, &X, 1e-3);
        let of_difference = &own.points[0].measures[1];
        // The ends' first batches are alike, their second ones are opposites.
        let between = open.directions[0].below + open.directions[0].above;
        assert!((length_of(&of_difference.slopes[0]) - 1.6e-3 / between).abs() < 1e-12, "{of_difference:?}");
        assert!((length_of(&of_difference.value) - 1e-3).abs() < 1e-15);
        let along: f64 = own.along[0].iter().zip(open.directions[0].step(&names()).values()).map(|(a, s)| a * s).sum();
        assert!((along - open.directions[0].above).abs() < 1e-12, "{along}");
    }
}
