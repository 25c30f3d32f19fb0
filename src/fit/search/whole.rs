//! Parameters that are whole numbers: servers, threads, customers, copies.
//!
//! With the whole numbers held at `k`, the engine minimises over the others: `E(k) = min_x E(x, k)`. From the start, each
//! whole number is moved up and down by one, then by doubled steps while `E` falls; when no single move lowers `E`, pairs
//! and triples of moves by one are tried; when none of them does either, and `E` is much the same beside `k` ([`FLAT`]: as with more
//! threads than there are users), halves of it down to the bound, and doubles. When nothing lowers `E`, `k` is the end. The derivative by a whole number is the
//! difference over the neighbours, `(h(k + 1) - h(k - 1)) / 2`, one-sided at a bound.
//!
//! Each refit starts from the best point and its Jacobian and carries that along ([`crate::fit::engine::least_squares::Jacobians`]): a whole number tried costs a few
//! solutions and rarely a derivative. It is broken off where `E` settles at more than [`BEYOND`] times the least so far, or will clearly
//! ([`FAR_BEYOND`]); where it settles nearer, by derivatives evaluated there, at more than [`ABOVE`] times: `E` is then
//! known to a few per cent. The end is minimised to the full precision. Source: M. Woodside, SIPEW 2008,
//! section 2 and appendix; rounding inside each step, which it suggests, sometimes stalls at the start.

use nalgebra::DVector;
use serde::{Deserialize, Serialize};

use super::{
    run::{Effort, FitError, Search},
    weights::Weights,
};
use crate::fit::engine::least_squares::{Bounds, EvaluationError, Minimum, ResidualModel, Start, StopReason, Wanted};

/// Relative fall of the sum of squares that counts as one.
const FALL: f64 = 1e-6;

/// How many times the least sum of squares a refit must settle at to be broken off: carried derivatives are approximate.
const BEYOND: f64 = 4.0;

/// The same where it has not settled yet, but the linear model foretells its fall.
const FAR_BEYOND: f64 = 16.0;

/// The same for one that settles by derivatives evaluated at its end, where `E` is known to about one in a hundred.
pub(in crate::fit) const ABOVE: f64 = 1.25;

/// How many times the least sum of squares a neighbour may have for the search to look further away.
const FLAT: f64 = 1.25;

/// How often a whole number is halved to look further away: to 1, from a thousand.
const MOST_HALVINGS: i32 = 10;

/// How often it is doubled.
const DOUBLINGS: i32 = 3;

/// Most whole numbers for which moves of several at a time are tried.
const MOST_TOGETHER: usize = 3;

/// Moves after which the search gives up.
const MOST_MOVES: usize = 1000;

/// What is known around the best value of one whole number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeNumber {
    /// The parameter.
    pub parameter: String,
    /// Its best value.
    pub value: f64,
    /// Values tried, ascending, with the least weighted sum of squares at each, the others refitted. Of those that are more than
    /// a quarter above the least of all it is known to a few per cent; of those far above, what the linear model foretells.
    pub tried: Vec<(f64, f64)>,
}

impl WholeNumber {
    /// Least sum of squares so far from the best value; absent where that was not tried.
    pub(in crate::fit) fn at(&self, offset: f64) -> Option<f64> {
        self.tried.iter().find(|(value, _)| *value == self.value + offset).map(|(_, e)| *e)
    }
}

struct Tried {
    whole: Vec<f64>,
    sum_of_squares: f64,
}

struct WholeSearch<'s, 'a> {
    search: &'s mut Search<'a>,
    weights: &'s Weights,
    positions: Vec<usize>,
    bounds: Vec<(f64, f64)>,
    tried: Vec<Tried>,
    best: Minimum,
    /// Whether the best is known closely enough to be compared.
    is_close: bool,
}

/// Minimises over all parameters of the search, from `start` with its whole numbers rounded.
///
/// # Errors
/// As the search, at the start; a neighbour without a solution is passed over.
pub(super) fn minimise(search: &mut Search<'_>, weights: &Weights, start: &[f64]) -> Result<Minimum, FitError> {
    let bounds = search.problem.bounds();
    let positions: Vec<usize> = (0..start.len()).filter(|&j| search.whole[j]).collect();
    let mut rounded = start.to_vec();
    positions.iter().for_each(|&j| rounded[j] = rounded[j].round().clamp(bounds[j].0.ceil(), bounds[j].1.floor()));
    let best = search.minimise_with(weights, &Start { x: &rounded, jacobian: None }, Effort::Checking)?;
    let mut tried = WholeSearch { search, weights, positions, bounds, tried: Vec::new(), best, is_close: false };
    tried.note(&tried.best.x.clone(), tried.best.sum_of_squares);
    for _ in 0..MOST_MOVES {
        if !(tried.move_one()? || tried.move_several()? || tried.move_far()?) {
            break;
        }
    }
    tried.finish()
}

impl WholeSearch<'_, '_> {
    fn note(&mut self, x: &[f64], sum_of_squares: f64) {
        let whole = self.positions.iter().map(|&j| x[j]).collect();
        self.tried.push(Tried { whole, sum_of_squares });
    }

    /// Refits with the whole numbers of `x`; whether that is lower than the best, which it then becomes.
    fn attempt(&mut self, x: &[f64]) -> Result<bool, FitError> {
        let whole: Vec<f64> = self.positions.iter().map(|&j| x[j]).collect();
        let outside = self.positions.iter().any(|&j| x[j] < self.bounds[j].0 || x[j] > self.bounds[j].1);
        if outside || self.tried.iter().any(|t| t.whole == whole) {
            return Ok(false);
        }
        let (found, is_close) = match self.refit(x) {
            Ok(found) => found,
            Err(FitError::Start(_) | FitError::StartNotFinite) => {
                self.note(x, f64::INFINITY);
                return Ok(false);
            }
            Err(other) => return Err(other),
        };
        self.note(x, found.sum_of_squares * (1.0 - found.relative_offset.powi(2)));
        if self.lowers(&found) && found.sum_of_squares * ABOVE > self.best.sum_of_squares {
            self.come_close()?;
        }
        let lower = self.lowers(&found);
        if lower {
            (self.best, self.is_close) = (found, is_close);
        }
        Ok(lower)
    }

    fn lowers(&self, found: &Minimum) -> bool {
        found.sum_of_squares < self.best.sum_of_squares * (1.0 - FALL)
    }

    /// The least sum of squares with the whole numbers of `x`, and whether it is known closely: it is where it may be the least
    /// of all and is not clearly so.
    fn refit(&mut self, x: &[f64]) -> Result<(Minimum, bool), FitError> {
        let near = self.best.jacobian.clone();
        let least = self.best.sum_of_squares;
        let from = Start { x, jacobian: Some(&near) };
        let mut found = self.search.minimise_with(self.weights, &from, Effort::Screening(FAR_BEYOND * least))?;
        for (effort, above) in [(Effort::Checking, BEYOND), (Effort::Coarse, ABOVE)] {
            let is_above = found.stop.converged() && found.sum_of_squares > above * least;
            if found.stop == StopReason::Beyond || is_above || found.sum_of_squares * ABOVE < least {
                return Ok((found, false));
            }
            let jacobian = Some(&found.jacobian).filter(|_| effort == Effort::Coarse);
            found = self.search.minimise_with(self.weights, &Start { x: &found.x, jacobian }, effort)?;
        }
        Ok((found, true))
    }

    /// Minimises the best more closely.
    fn come_close(&mut self) -> Result<(), FitError> {
        if !self.is_close {
            let from = Start { x: &self.best.x, jacobian: None };
            self.best = self.search.minimise_with(self.weights, &from, Effort::Coarse)?;
            self.is_close = true;
            self.note_best();
        }
        Ok(())
    }

    /// Notes the best anew, which is known more closely now.
    fn note_best(&mut self) {
        let whole: Vec<f64> = self.positions.iter().map(|&j| self.best.x[j]).collect();
        let least = self.best.sum_of_squares;
        self.tried.iter_mut().filter(|t| t.whole == whole).for_each(|t| t.sum_of_squares = least);
    }

    fn move_one(&mut self) -> Result<bool, FitError> {
        let mut moved = false;
        for j in self.positions.clone() {
            for direction in [1.0, -1.0] {
                let mut step = direction;
                loop {
                    let mut x = self.best.x.clone();
                    x[j] += step;
                    if !self.attempt(&x)? {
                        break;
                    }
                    moved = true;
                    step *= 2.0;
                }
            }
        }
        Ok(moved)
    }

    /// Moves two or three whole numbers by one each, in every combination of directions.
    fn move_several(&mut self) -> Result<bool, FitError> {
        let n = self.positions.len();
        if !(2..=MOST_TOGETHER).contains(&n) {
            return Ok(false);
        }
        let here = self.best.x.clone();
        for code in 0..3_usize.pow(u32::try_from(n).unwrap_or(0)) {
            let mut x = here.clone();
            for (place, &j) in self.positions.iter().enumerate() {
                let digit = code / 3_usize.pow(u32::try_from(place).unwrap_or(0)) % 3;
                x[j] += [0.0, 1.0, -1.0][digit];
            }
            if self.attempt(&x)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Halves and doubles each whole number whose neighbours do little to the sum of squares.
    fn move_far(&mut self) -> Result<bool, FitError> {
        for (place, &j) in self.positions.clone().iter().enumerate() {
            if !self.is_flat(place) {
                continue;
            }
            let here = self.best.x[j];
            let halves = (1..=MOST_HALVINGS).map(|n| (here * 0.5_f64.powi(n)).floor().max(self.bounds[j].0.ceil()));
            let doubles = (1..=DOUBLINGS).map(|n| (here * 2.0_f64.powi(n)).min(self.bounds[j].1.floor()));
            for value in halves.chain(doubles).collect::<Vec<f64>>() {
                let mut x = self.best.x.clone();
                x[j] = value;
                if self.attempt(&x)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether the sum of squares is much the same one beside the whole number at `place`.
    fn is_flat(&self, place: usize) -> bool {
        let best: Vec<f64> = self.positions.iter().map(|&j| self.best.x[j]).collect();
        let is_beside =
            |whole: &[f64]| whole.iter().zip(&best).enumerate().all(|(p, (w, b))| if p == place { (w - b).abs() == 1.0 } else { w == b });
        self.tried.iter().any(|t| is_beside(&t.whole) && t.sum_of_squares < FLAT * self.best.sum_of_squares)
    }

    /// Minimises at the best whole numbers to the full precision.
    fn finish(mut self) -> Result<Minimum, FitError> {
        self.come_close()?;
        let from = Start { x: &self.best.x, jacobian: Some(&self.best.jacobian) };
        self.best = self.search.minimise_with(self.weights, &from, Effort::Full)?;
        self.note_best();
        let whole = |place: usize, j: usize| {
            let mut tried: Vec<(f64, f64)> = Vec::new();
            for t in self.tried.iter().filter(|t| t.sum_of_squares.is_finite()) {
                match tried.iter_mut().find(|(value, _)| *value == t.whole[place]) {
                    Some((_, least)) => *least = least.min(t.sum_of_squares),
                    None => tried.push((t.whole[place], t.sum_of_squares)),
                }
            }
            tried.sort_by(|a, b| a.0.total_cmp(&b.0));
            WholeNumber { parameter: self.search.problem.estimate[j].name.clone(), value: self.best.x[j], tried }
        };
        let found = self.positions.iter().enumerate().map(|(place, &j)| whole(place, j)).collect();
        self.search.whole_found = found;
        Ok(self.best)
    }
}

/// Difference of the residuals over the neighbours of whole number `j` of a minimum, per unit.
///
/// # Errors
/// [`EvaluationError`] where a neighbour has no solution.
pub(super) fn difference(
    model: &mut dyn ResidualModel,
    minimum: &Minimum,
    j: usize,
    bounds: &Bounds,
) -> Result<DVector<f64>, EvaluationError> {
    let x = &minimum.x;
    let mut at = |value: f64| {
        if value == x[j] {
            return Ok(minimum.residuals.clone());
        }
        let mut moved = x.clone();
        moved[j] = value;
        model.evaluate(&moved, Wanted::Residuals).map(|e| e.residuals)
    };
    let (below, above) = ((x[j] - 1.0).max(bounds.lower[j]), (x[j] + 1.0).min(bounds.upper[j]));
    if above <= below {
        return Ok(&minimum.residuals * 0.0);
    }
    Ok((at(above)? - at(below)?) / (above - below))
}
