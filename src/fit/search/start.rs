//! Where the search starts, for parameters that nobody gave a start.
//!
//! A value that the model itself defines is taken first. The others are searched: all at one value over thirteen
//! decades (or over their bounds), then one at a time by factors of 3 and 10, twice; the least weighted sum of squares
//! wins. No derivative is needed, and points without a solution are passed over. Values that are still equal are set apart:
//! where parameters may be exchanged without any change, as the demands of two queues alike, a search that starts from equal ones
//! cannot leave them, and ends at a saddle.

use serde::{Deserialize, Serialize};

use crate::fit::{
    engine::least_squares::{ResidualModel, Wanted},
    problem::Problem,
};

/// How a parameter's start was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartOrigin {
    /// By the caller.
    Given,
    /// The model's own value of the parameter.
    Model,
    /// By searching decades for the least sum of squares.
    Searched,
}

const DECADES: std::ops::RangeInclusive<i32> = -6..=6;
const FACTORS: [f64; 4] = [0.1, 1.0 / 3.0, 3.0, 10.0];
const PASSES: usize = 2;
const SMALLEST_GRID_VALUE: f64 = 1e-6;
/// Ratio between searched values that were equal.
const APART: f64 = 1.2;

/// Starts of all estimated parameters, inside their bounds, with their origins. `None` when the model has no solution
/// at any point tried.
pub fn choose(problem: &Problem, model: &mut dyn ResidualModel) -> Option<(Vec<f64>, Vec<StartOrigin>)> {
    let bounds = problem.bounds();
    let known: Vec<Option<(f64, StartOrigin)>> = problem
        .estimate
        .iter()
        .map(|e| e.start.map(|s| (s, StartOrigin::Given)).or_else(|| problem.defined_value(&e.name).map(|v| (v, StartOrigin::Model))))
        .collect();
    let origins = known.iter().map(|k| k.map_or(StartOrigin::Searched, |(_, origin)| origin)).collect();
    let fixed: Vec<Option<f64>> = known.iter().zip(&bounds).map(|(k, b)| k.map(|(v, _)| v.clamp(b.0, b.1))).collect();
    if let Some(start) = fixed.iter().copied().collect::<Option<Vec<f64>>>() {
        return Some((nearest_solvable(start, &bounds, model)?, origins));
    }
    search(&fixed, &bounds, model).map(|start| (start, origins))
}

/// Starts found by the search for all parameters, whatever was given.
pub fn search_all(problem: &Problem, model: &mut dyn ResidualModel) -> Option<Vec<f64>> {
    search(&vec![None; problem.estimate.len()], &problem.bounds(), model)
}

fn sum_of_squares(model: &mut dyn ResidualModel, x: &[f64]) -> Option<f64> {
    let squares = model.evaluate(x, Wanted::Residuals).ok()?.residuals.norm_squared();
    squares.is_finite().then_some(squares)
}

/// The start, or the nearest multiple of it that has a solution.
fn nearest_solvable(start: Vec<f64>, bounds: &[(f64, f64)], model: &mut dyn ResidualModel) -> Option<Vec<f64>> {
    let candidates = [1.0, 0.5, 2.0, 0.1, 10.0, 0.01, 100.0, 0.001, 1000.0];
    let scaled = |factor: f64| start.iter().zip(bounds).map(|(x, b)| (x * factor).clamp(b.0, b.1)).collect::<Vec<f64>>();
    candidates.into_iter().map(scaled).find(|x| sum_of_squares(model, x).is_some())
}

fn search(fixed: &[Option<f64>], bounds: &[(f64, f64)], model: &mut dyn ResidualModel) -> Option<Vec<f64>> {
    let at = |decade: i32| -> Vec<f64> { fixed.iter().zip(bounds).map(|(f, b)| f.unwrap_or_else(|| grid_value(decade, *b))).collect() };
    let (mut best, mut least) =
        DECADES.map(at).filter_map(|x| sum_of_squares(model, &x).map(|e| (x, e))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    for _ in 0..PASSES {
        for j in (0..best.len()).filter(|&j| fixed[j].is_none()) {
            for factor in FACTORS {
                let mut x = best.clone();
                x[j] = (x[j] * factor).clamp(bounds[j].0, bounds[j].1);
                if let Some(e) = sum_of_squares(model, &x).filter(|e| *e < least) {
                    (best, least) = (x, e);
                }
            }
        }
    }
    let apart = set_apart(&best, fixed, bounds);
    Some(if sum_of_squares(model, &apart).is_some() { apart } else { best })
}

/// The same, with searched values that are equal a little apart.
fn set_apart(x: &[f64], fixed: &[Option<f64>], bounds: &[(f64, f64)]) -> Vec<f64> {
    let n_equal_before = |j: usize| (0..j).filter(|&i| fixed[i].is_none() && x[i] == x[j]).count();
    let moved = |j: usize| match (fixed[j], i32::try_from(n_equal_before(j))) {
        (None, Ok(n)) if n > 0 => (x[j] * APART.powi(n)).clamp(bounds[j].0, bounds[j].1),
        _ => x[j],
    };
    (0..x.len()).map(moved).collect()
}

/// The value for a decade: that power of ten, or as far between two positive bounds.
fn grid_value(decade: i32, (low, high): (f64, f64)) -> f64 {
    let share = f64::from(decade - DECADES.start()) / f64::from(DECADES.end() - DECADES.start());
    if low >= SMALLEST_GRID_VALUE && high.is_finite() {
        return low * (high / low).powf(share);
    }
    if low == 0.0 && high.is_finite() {
        // Between a bound of 0 and the upper one: from a millionth of the upper bound to just inside it.
        return high * 0.5 * 1e-6_f64.powf(1.0 - share);
    }
    10f64.powi(decade).clamp(low, high)
}
