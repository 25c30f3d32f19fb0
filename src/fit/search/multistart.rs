//! Several starts: a Latin hypercube over the ranges of the parameters.
//!
//! Each range is cut into as many strata as there are starts; every start takes one stratum of each parameter, in an order
//! shuffled anew for each, at a random place inside. A range is searched by its logarithm where it is positive and spans more than
//! a factor of ten. A bound that is missing, or 0, is taken a factor of 1000 away from the best value known. Source: M. McKay,
//! R. Beckman and W. Conover, Technometrics 21 (1979).

use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::fit::{
    engine::least_squares::Minimum,
    problem::{Problem, Starts},
};

/// How far from the best value a range reaches where there is no bound.
const REACH: f64 = 1e3;

/// Ratio of the ends above which a range is searched by its logarithm.
const WIDE: f64 = 10.0;

/// Relative difference of sums of squares below which two ends are one minimum.
const SAME_MINIMUM: f64 = 1e-6;

/// Ends listed in a report, lowest first.
const MOST_LISTED: usize = 10;

/// Where one start led.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    found: Option<(Vec<f64>, f64, bool)>,
}

impl End {
    pub(super) fn of(minimum: &Minimum) -> Self {
        Self { found: Some((minimum.x.clone(), minimum.sum_of_squares, minimum.stop.converged())) }
    }

    pub(super) fn without_solution() -> Self {
        Self { found: None }
    }
}

/// What several starts found, under the first weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartsReport {
    /// Starts tried, the first among them.
    pub n: usize,
    /// Seed of the others.
    pub seed: u64,
    /// Starts that led to a minimum.
    pub converged: usize,
    /// Starts where the model has no solution.
    pub without_solution: usize,
    /// Different minima, lowest first; at most ten.
    pub minima: Vec<FoundMinimum>,
}

/// One of several minima.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundMinimum {
    /// Weighted sum of squares under the first weights.
    pub sum_of_squares: f64,
    /// Its point, in the problem's order.
    pub parameters: Vec<f64>,
    /// Starts that led there.
    pub n: usize,
}

pub(super) fn summary(starts: Starts, ends: &[End]) -> StartsReport {
    let mut minima: Vec<FoundMinimum> = Vec::new();
    for (x, squares, _) in ends.iter().filter_map(|e| e.found.as_ref()).filter(|f| f.2) {
        let same = |m: &&mut FoundMinimum| (m.sum_of_squares - squares).abs() <= SAME_MINIMUM * squares.abs().max(f64::MIN_POSITIVE);
        match minima.iter_mut().find(same) {
            Some(known) => known.n += 1,
            None => minima.push(FoundMinimum { sum_of_squares: *squares, parameters: x.clone(), n: 1 }),
        }
    }
    minima.sort_by(|a, b| a.sum_of_squares.total_cmp(&b.sum_of_squares));
    minima.truncate(MOST_LISTED);
    StartsReport {
        n: ends.len(),
        seed: starts.seed,
        converged: ends.iter().filter(|e| e.found.as_ref().is_some_and(|f| f.2)).count(),
        without_solution: ends.iter().filter(|e| e.found.is_none()).count(),
        minima,
    }
}

/// Ranges of the parameters: their bounds, and where those are missing a reach around `best`.
pub(super) fn ranges(problem: &Problem, best: &[f64]) -> Vec<(f64, f64)> {
    let range = |((low, high), x): ((f64, f64), &f64)| {
        let size = if *x == 0.0 { 1.0 } else { x.abs() };
        let high = if high.is_finite() { high } else { x.max(low.max(0.0)) + (REACH - 1.0) * size };
        let low = match low {
            l if l.is_finite() && l != 0.0 => l,
            l if l.is_finite() => (size / REACH).min(high),
            _ => x.min(high) - (REACH - 1.0) * size,
        };
        (low, high)
    };
    problem.bounds().into_iter().zip(best).map(range).collect()
}

/// Points inside `ranges`, `(starts.n, n_params)`, with whole numbers rounded.
pub(super) fn latin_hypercube(ranges: &[(f64, f64)], whole: &[bool], starts: Starts) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(starts.seed);
    let mut points = vec![vec![0.0; ranges.len()]; starts.n];
    for (j, (low, high)) in ranges.iter().enumerate() {
        let mut strata: Vec<usize> = (0..starts.n).collect();
        strata.shuffle(&mut rng);
        for (point, stratum) in points.iter_mut().zip(strata) {
            #[expect(clippy::cast_precision_loss, reason = "at most ten thousand starts")]
            let share = (stratum as f64 + rng.random::<f64>()) / starts.n as f64;
            let value = if *low > 0.0 && high / low > WIDE { low * (high / low).powf(share) } else { low + share * (high - low) };
            point[j] = if whole[j] { value.round().clamp(low.ceil(), high.floor()) } else { value.clamp(*low, *high) };
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stratum_is_taken_once() {
        let starts = Starts { n: 8, seed: 3 };
        let points = latin_hypercube(&[(0.0, 8.0), (1e-3, 1e5), (1.0, 9.0)], &[false, false, true], starts);
        let mut strata: Vec<f64> = points.iter().map(|p| p[0].floor()).collect();
        strata.sort_by(f64::total_cmp);
        assert_eq!(strata, (0..8).map(f64::from).collect::<Vec<_>>());
        let mut decades: Vec<f64> = points.iter().map(|p| p[1].log10().floor()).collect();
        decades.sort_by(f64::total_cmp);
        assert_eq!(decades, (-3..5).map(f64::from).collect::<Vec<_>>());
        assert!(points.iter().all(|p| p[2].fract() == 0.0));
        assert_eq!(points, latin_hypercube(&[(0.0, 8.0), (1e-3, 1e5), (1.0, 9.0)], &[false, false, true], starts));
    }
}
