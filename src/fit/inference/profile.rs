//! Intervals from the profile of the sum of squares.
//!
//! With parameter `k` held at `v` and the others refitted, `E(v) = min E(x | x_k = v)`; at the minimum `Ê`, with the scale
//! `σ²` of the errors (the mean square error, or 1 where they are known):
//!
//! ```text
//! τ(v) = sign(v - x̂_k) √((E(v) - Ê) / σ²)          interval: |τ(v)| ≤ q,   q² = F(1 - α; 1, d) = t²
//! ```
//!
//! For a model that is linear in its parameters `τ` is `(v - x̂_k) / s_k` and the interval is Wald's; elsewhere it keeps its
//! level where Wald's does not. Where several variances are estimated, `q` is that of the parameter's own degrees of freedom, times the root of what its
//! variance grows by for weights that err ([`super::variances`]). The interval may be open or end at a bound, which is said. The ends are found by stepping outwards
//! and the secant method on `τ`, each point started from the last. Source: D. Bates and D. Watts, Nonlinear Regression
//! Analysis and Its Applications (1988), section 6.1.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::fit::engine::{
    least_squares::{Bounds, Iterate, LeastSquaresOptions, Minimum, ResidualModel, StopReason},
    view::{Coordinates, minimise_in},
};

/// Steps from the estimate to the quantile, for a linear model.
const STEPS: f64 = 4.0;

/// Most points on one side.
const MOST_POINTS: usize = 40;

/// Relative precision of an end.
const PRECISION: f64 = 1e-9;

/// Fall below the minimum, relative to it, that shows a lower minimum.
const LOWER: f64 = 1e-6;

/// A point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilePoint {
    /// Value of the parameter.
    pub value: f64,
    /// Signed root of the scaled rise of the sum of squares.
    pub tau: f64,
    /// Least weighted sum of squares at that value.
    pub sum_of_squares: f64,
}

/// How an interval ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileEnd {
    /// Where the profile has risen to the quantile.
    Quantile,
    /// At the bound of the parameter, before the profile has risen.
    Bound,
    /// Nowhere: the profile does not rise that far, or the model has no solution further out.
    Open,
}

/// The profile of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Lower end of the interval; absent where it is open.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// How the lower side ends.
    pub lower_end: ProfileEnd,
    /// How the upper side ends.
    pub upper_end: ProfileEnd,
    /// The curve, ascending in value, the estimate included.
    pub curve: Vec<ProfilePoint>,
    /// Whether a lower sum of squares than the fit's was met on the way: its minimum is not the lowest.
    pub lower_minimum: bool,
}

/// What a profile is taken of.
#[derive(Clone, Copy, Debug)]
pub struct ProfileTask<'a> {
    /// The minimum.
    pub minimum: &'a Minimum,
    /// Parameters that move, each on its scale; the others are held where they are.
    pub coordinates: &'a Coordinates,
    /// The box.
    pub bounds: &'a Bounds,
    /// `σ²`, > 0.
    pub scale: f64,
    /// `q`, > 0.
    pub quantile: f64,
    /// Options of the searches.
    pub options: &'a LeastSquaresOptions,
}

/// The profile of parameter `k`, whose standard error is `std_error`. `keep` is asked at every step of every search and may break the
/// profile off; what is returned then is not one.
pub fn profile(
    model: &mut dyn ResidualModel,
    task: &ProfileTask<'_>,
    k: usize,
    std_error: f64,
    keep: &mut dyn FnMut(&Iterate) -> ControlFlow<()>,
) -> Profile {
    let estimate = task.minimum.x[k];
    let here = ProfilePoint { value: estimate, tau: 0.0, sum_of_squares: task.minimum.sum_of_squares };
    let held = task.coordinates.holding(k);
    let mut side = |direction: f64| {
        Side { model, task, held: &held, k, direction, last: task.minimum.x.clone(), points: vec![here], keep }.walk(std_error)
    };
    let (lower, lower_end, mut below) = side(-1.0);
    let (upper, upper_end, above) = side(1.0);
    below.reverse();
    below.extend(above.into_iter().skip(1));
    let floor = task.minimum.sum_of_squares * (1.0 - LOWER) - LOWER * task.scale;
    let lower_minimum = below.iter().any(|p| p.sum_of_squares < floor);
    Profile { lower, upper, lower_end, upper_end, curve: below, lower_minimum }
}

struct Side<'a> {
    model: &'a mut dyn ResidualModel,
    task: &'a ProfileTask<'a>,
    held: &'a Coordinates,
    k: usize,
    direction: f64,
    /// The other parameters at the last point.
    last: Vec<f64>,
    points: Vec<ProfilePoint>,
    keep: &'a mut dyn FnMut(&Iterate) -> ControlFlow<()>,
}

impl Side<'_> {
    fn walk(mut self, std_error: f64) -> (Option<f64>, ProfileEnd, Vec<ProfilePoint>) {
        let quantile = self.task.quantile;
        let bound = if self.direction < 0.0 { self.task.bounds.lower[self.k] } else { self.task.bounds.upper[self.k] };
        let mut step = quantile * std_error / STEPS;
        while self.points.len() < MOST_POINTS {
            let from = self.points[self.points.len() - 1];
            let target = from.value + self.direction * step;
            let beyond = (target - bound) * self.direction >= 0.0;
            let value = if beyond { bound } else { target };
            let Some(point) = self.at(value) else { break };
            let risen = point.tau.abs() >= quantile;
            // Steps are lengthened where the profile is flatter than its start promised.
            step = if point.tau.abs() - from.tau.abs() < 0.5 * quantile / STEPS { 2.0 * step } else { step };
            self.points.push(point);
            if risen {
                let end = self.secant(from, point);
                self.points.sort_by(|a, b| (a.value * self.direction).total_cmp(&(b.value * self.direction)));
                return (Some(end), ProfileEnd::Quantile, self.points);
            }
            if beyond {
                return (Some(bound), ProfileEnd::Bound, self.points);
            }
        }
        (None, ProfileEnd::Open, self.points)
    }

    /// The value between two points at which `|τ|` is the quantile.
    fn secant(&mut self, inside: ProfilePoint, outside: ProfilePoint) -> f64 {
        let excess = |p: &ProfilePoint| p.tau.abs() - self.task.quantile;
        let (mut low, mut high) = ((inside.value, excess(&inside)), (outside.value, excess(&outside)));
        for _ in 0..MOST_POINTS {
            let mut value = low.0 - low.1 * (high.0 - low.0) / (high.1 - low.1);
            let inside = (value - low.0) * (value - high.0) < 0.0;
            if !inside {
                value = 0.5 * (low.0 + high.0);
            }
            let Some(point) = self.at(value) else { return low.0 };
            let gap = excess(&point);
            self.points.push(point);
            if gap.abs() <= PRECISION * self.task.quantile || (high.0 - low.0).abs() <= PRECISION * value.abs() {
                return value;
            }
            // Illinois: the end that stays is halved, so that both ends close in.
            if gap < 0.0 {
                low = (value, gap);
                high.1 *= 0.5;
            } else {
                high = (value, gap);
                low.1 *= 0.5;
            }
        }
        0.5 * (low.0 + high.0)
    }

    fn at(&mut self, value: f64) -> Option<ProfilePoint> {
        let mut start = self.last.clone();
        start[self.k] = value;
        let found = minimise_in(self.model, self.held, &start, self.task.bounds, self.task.options, self.keep).ok()?;
        if found.stop == StopReason::Cancelled {
            return None;
        }
        let rise = (found.sum_of_squares - self.task.minimum.sum_of_squares) / self.task.scale;
        self.last = found.x;
        Some(ProfilePoint { value, tau: self.direction * rise.max(0.0).sqrt(), sum_of_squares: found.sum_of_squares })
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::{DMatrix, DVector};

    use super::*;
    use crate::fit::engine::least_squares::{Evaluation, EvaluationError, Wanted, minimise};

    /// `y = a + b t` at t = 0, 1, 2, 3.
    struct Line;

    impl ResidualModel for Line {
        fn n_obs(&self) -> usize {
            4
        }
        fn n_params(&self) -> usize {
            2
        }
        fn evaluate(&mut self, x: &[f64], _: Wanted) -> Result<Evaluation, EvaluationError> {
            let (t, y) = ([0.0, 1.0, 2.0, 3.0], [1.1, 2.9, 5.2, 6.8]);
            let residuals = DVector::from_fn(4, |i, _| x[0] + x[1] * t[i] - y[i]);
            Ok(Evaluation { residuals, jacobian: Some(DMatrix::from_fn(4, 2, |i, j| if j == 0 { 1.0 } else { t[i] })) })
        }
    }

    fn found(bounds: &Bounds) -> (Minimum, Profile) {
        let options = LeastSquaresOptions::default();
        let minimum = minimise(&mut Line, &[0.0, 1.0], bounds, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let coordinates = Coordinates::natural(2);
        let task = ProfileTask { minimum: &minimum, coordinates: &coordinates, bounds, scale: 0.04, quantile: 3.0, options: &options };
        // (JᵀJ)⁻¹ has 0.2 for the slope.
        let profile = profile(&mut Line, &task, 1, (0.2_f64 * 0.04).sqrt(), &mut |_| ControlFlow::Continue(()));
        (minimum, profile)
    }

    #[test]
    fn of_a_straight_line_it_is_the_interval_of_the_standard_error() {
        let (minimum, profile) = found(&Bounds::unbounded(2));
        let half = 3.0 * (0.2_f64 * 0.04).sqrt();
        assert!((profile.upper.unwrap() - minimum.x[1] - half).abs() < 1e-7 && (minimum.x[1] - profile.lower.unwrap() - half).abs() < 1e-7);
        assert!(profile.curve.windows(2).all(|w| w[0].value <= w[1].value && w[0].tau <= w[1].tau), "{:?}", profile.curve);
        assert!(!profile.lower_minimum);
    }

    #[test]
    fn a_bound_ends_it() {
        let (_, profile) = found(&Bounds { lower: vec![-9.0, 0.0], upper: vec![9.0, 2.0] });
        assert_eq!((profile.upper, profile.upper_end), (Some(2.0), ProfileEnd::Bound));
        assert_eq!(profile.lower_end, ProfileEnd::Quantile);
    }
}
