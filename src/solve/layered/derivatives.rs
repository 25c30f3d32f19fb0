//! The derivatives of a settled fixed point: a linear system, solved with least residuals over sweeps of dual numbers.
//!
//! In: the unknowns `x` at which `x = T(x, p)` holds, with a first guess of their derivatives. Out: their derivatives `v` in the
//! directions of `p`, for which `v = J v + b` with `J = ∂T/∂x` and `b = ∂T/∂p p'`.
//!
//! A sweep over dual numbers turns any `v` into `J v + b`: branches and values are the same in every sweep, so that the map is exactly
//! linear. With the residual `r = b - A v`, `A = 1 - J`, and the first guess `v_0`, one sweep at `v_0 + z` yields `A z`:
//!
//! ```text
//! r_0 = T'(v_0) - v_0
//! z   = r/‖r‖,    w = A z = r_0 - (T'(v_0 + z) - (v_0 + z))          one sweep, for the residuals of all directions at once
//! w   = Σ_i R_ik q_i                                                   Gram-Schmidt
//! r   ← r - ⟨q, r⟩ q
//! v   = v_0 + Z R⁻¹ c                                                  c = ⟨q, r_0⟩, once, at the end
//! ```
//!
//! The stages of a solution differ by a customer, and so do their `A` little. The first pairs `p = Z R⁻¹`, `q` of the stage before
//! are kept, and `z = r + Σ ⟨q, r⟩ (p - q)` is taken instead of `r`: what they say wrongly costs a sweep and no exactness.
//!
//! [`SHARING`] directions have `Z`, `Q` and `R` in common, so that each profits from the others' sweeps. All vectors are weighed, and of the
//! unknowns that have had a derivative ([`super::moving`]). The residual that ends the iteration is that of the linear system, over the
//! steepest derivative of its kind.
//!
//! Sources: generalized conjugate residuals Eisenstat, Elman & Schultz 1983; several right sides at once O'Leary 1980; pairs kept
//! from system to system Parks et al. 2006.

use std::ops::Range;

use super::{
    moving::{Largest, Moving},
    vectors::{add_times, add_times_dot, dot, norm},
};
use crate::model::Scalar;

/// A change that the others explain but for this share is one of rounding.
const NOVEL: f64 = 1e-9;
/// Pairs beyond which the solution so far becomes the first guess.
const MOST_PAIRS: usize = 160;

/// Directions that share their pairs: a sweep more is saved, the square of the pairs is paid.
const SHARING: usize = 4;
/// Pairs kept from stage to stage, by all directions of a family together.
const MOST_KEPT: usize = 12;

/// `q` and `p - q` of a step.
type KeptPair = (Vec<f64>, Vec<f64>);

/// What a family has of the stage before.
#[derive(Debug)]
struct Kept {
    moving: Moving,
    pairs: Vec<KeptPair>,
}

/// What a stage's derivatives leave for those of the next.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    families: Vec<Kept>,
}

/// A step `z` and its place `q` among the orthonormal changes.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// `R`: the change of the step by this and all earlier `q`.
    parts: Vec<f64>,
}

/// One direction on its way to the solution.
struct Direction {
    /// Which it is.
    lane: usize,
    /// `v_0`, weighed.
    first: Vec<f64>,
    /// `r_0`.
    first_residual: Vec<f64>,
    residual: Vec<f64>,
    /// The step whose image is awaited.
    asked: Option<Vec<f64>>,
    /// `c`.
    along: Vec<f64>,
    /// Largest derivatives, as far as known; and whether they are those of the solution.
    scale: Largest,
    scaled: bool,
    /// Derivative of a time, weighed, that counts as none.
    least: f64,
    done: bool,
}

/// Directions that share their pairs.
struct Family {
    moving: Moving,
    kept: Vec<KeptPair>,
    directions: Vec<Direction>,
    /// Zero for unknowns found after them.
    pairs: Vec<Pair>,
    begun: bool,
}

/// The derivatives in all directions.
pub(super) struct Derivatives {
    of_time: f64,
    families: Vec<Family>,
}

impl Derivatives {
    /// Starts at the derivatives of `x`, of which the first `n_times` are times; the image of `x` is awaited.
    /// Times below `negligible` count as none.
    pub fn new<S: Scalar>(x: &[S], n_times: usize, negligible: f64, legacy: Legacy) -> Self {
        let longest = x[..n_times].iter().fold(negligible, |m, w| m.max(w.value().abs()));
        let of_longest = if longest > 0.0 { longest.recip() } else { 1.0 };
        let of_time = legacy.families.first().map_or(of_longest, |kept| kept.moving.of_time());
        let n_lanes = x.first().map_or(0, |v| v.derivatives().len());
        let mut kept = legacy.families.into_iter();
        let families = (0..n_lanes).step_by(SHARING).map(|from| {
            let directions = (from..(from + SHARING).min(n_lanes)).map(|lane| Direction::new(lane, 0.0)).collect();
            let nothing = || Kept { moving: Moving::new(x.len(), n_times, of_time), pairs: Vec::new() };
            Family::begin(directions, kept.next().unwrap_or_else(nothing), x)
        });
        Self { of_time, families: families.collect() }
    }

    /// Derivatives of times below `least`, by direction, count as none.
    pub fn expect_no_less(&mut self, least: &[f64]) {
        for direction in self.families.iter_mut().flat_map(|family| &mut family.directions) {
            direction.least = least.get(direction.lane).copied().unwrap_or(0.0) * self.of_time;
        }
    }

    /// Takes in the image of the point last asked for; returns the largest residual that is left.
    pub fn take<S: Scalar>(&mut self, image: &[S], enough: f64) -> f64 {
        let mut most = 0.0_f64;
        for family in &mut self.families {
            family.find(image);
            family.take(image);
            most = most.max(family.left(enough));
        }
        most
    }

    /// Sets the derivatives of `x` to the next point whose image is wanted.
    pub fn ask<S: Scalar>(&mut self, x: &mut [S]) {
        let families = std::mem::take(&mut self.families).into_iter().map(|mut family| {
            if family.pairs.len() + family.directions.len() > MOST_PAIRS {
                let again: Vec<Direction> = family.directions.iter().map(|d| Direction::new(d.lane, d.least)).collect();
                return Family::begin(again, family.finish(x), x);
            }
            family.ask(x);
            family
        });
        self.families = families.collect();
    }

    /// Sets the derivatives of `x` to the solution, and leaves what the next stage can use.
    pub fn finish<S: Scalar>(self, x: &mut [S]) -> Legacy {
        Legacy { families: self.families.into_iter().map(|family| family.finish(x)).collect() }
    }
}

impl Family {
    /// At the derivatives of `x`.
    fn begin<S: Scalar>(directions: Vec<Direction>, kept: Kept, x: &[S]) -> Self {
        let Kept { moving, pairs: kept } = kept;
        let mut family = Self { moving, kept, directions, pairs: Vec::new(), begun: false };
        family.find(x);
        for direction in &mut family.directions {
            direction.first = family.moving.weighed(x, direction.lane);
        }
        family
    }

    fn lanes(&self) -> Range<usize> {
        let from = self.directions.first().map_or(0, |d| d.lane);
        from..from + self.directions.len()
    }

    /// Adds the unknowns of `x` that have a derivative for the first time.
    fn find<S: Scalar>(&mut self, x: &[S]) {
        if !self.moving.find(x, self.lanes()) {
            return;
        }
        let n = self.moving.unknowns().len();
        let of_pairs = self.pairs.iter_mut().flat_map(|p| [&mut p.step, &mut p.change]);
        let of_kept = self.kept.iter_mut().flat_map(|(q, more)| [q, more]);
        of_pairs.chain(of_kept).for_each(|v| v.resize(n, 0.0));
        for direction in &mut self.directions {
            for v in [&mut direction.first, &mut direction.first_residual, &mut direction.residual].into_iter().chain(&mut direction.asked)
            {
                v.resize(n, 0.0);
            }
        }
    }

    fn take<S: Scalar>(&mut self, image: &[S]) {
        if !self.begun {
            self.begun = true;
            for direction in &mut self.directions {
                let mut residual = self.moving.weighed(image, direction.lane);
                direction.scale = self.moving.largest(&residual);
                add_times(&mut residual, -1.0, &direction.first);
                direction.first_residual.clone_from(&residual);
                direction.residual = residual;
            }
            return;
        }
        for d in 0..self.directions.len() {
            let direction = &mut self.directions[d];
            let Some(step) = direction.asked.take() else { continue };
            let mut change = self.moving.weighed(image, direction.lane);
            let first = direction.first.iter().zip(&direction.first_residual);
            for ((w, z), (v, r)) in change.iter_mut().zip(&step).zip(first) {
                *w = r + v + z - *w;
            }
            self.add(step, change);
        }
    }

    /// The largest residual that is left; directions that have less than `enough` are done.
    fn left(&mut self, enough: f64) -> f64 {
        let mut most = 0.0_f64;
        for direction in &mut self.directions {
            let mut left = direction.left(&self.moving);
            if left <= enough && !direction.scaled {
                direction.scale = self.moving.largest(&direction.solution(&self.pairs));
                direction.scaled = true;
                left = direction.left(&self.moving);
            }
            direction.done = left <= enough;
            most = most.max(left);
        }
        most
    }

    /// Adds a step and takes what its change explains out of all residuals.
    fn add(&mut self, step: Vec<f64>, mut change: Vec<f64>) {
        let whole = norm(&change);
        let mut parts = Vec::with_capacity(self.pairs.len() + 1);
        let mut part = self.pairs.first().map_or(0.0, |first| dot(&first.change, &change));
        for (k, pair) in self.pairs.iter().enumerate() {
            parts.push(part);
            match self.pairs.get(k + 1) {
                Some(next) => part = add_times_dot(&mut change, -part, &pair.change, &next.change),
                None => add_times(&mut change, -part, &pair.change),
            }
        }
        let left = norm(&change);
        if !(left > NOVEL * whole && left.is_finite()) {
            return;
        }
        parts.push(left);
        change.iter_mut().for_each(|w| *w /= left);
        for direction in &mut self.directions {
            let along = dot(&change, &direction.residual);
            add_times(&mut direction.residual, -along, &change);
            direction.along.push(along);
        }
        self.pairs.push(Pair { step, change, parts });
    }

    fn ask<S: Scalar>(&mut self, x: &mut [S]) {
        for it in self.directions.iter_mut().filter(|d| !d.done) {
            let mut step = it.residual.clone();
            for (change, more) in &self.kept {
                add_times(&mut step, dot(change, &it.residual), more);
            }
            let length = norm(&step);
            if length > 0.0 {
                step.iter_mut().for_each(|z| *z /= length);
                self.moving.set(x, it.lane, it.first.iter().zip(&step).map(|(v, z)| v + z));
                it.asked = Some(step);
            }
        }
    }

    fn finish<S: Scalar>(self, x: &mut [S]) -> Kept {
        let moving = self.moving;
        for direction in &self.directions {
            moving.set(x, direction.lane, direction.solution(&self.pairs).into_iter());
        }
        let mut kept: Vec<KeptPair> = Vec::new();
        for pair in self.pairs.into_iter().take(MOST_KEPT / self.directions.len().max(1)) {
            let Pair { mut step, change, parts } = pair;
            for ((earlier, more), part) in kept.iter().zip(&parts) {
                add_times(&mut step, -part, earlier);
                add_times(&mut step, -part, more);
            }
            let last = parts.last().map_or(1.0, |r| r.recip());
            step.iter_mut().zip(&change).for_each(|(p, q)| *p = *p * last - q);
            kept.push((change, step));
        }
        Kept { moving, pairs: kept }
    }
}

impl Direction {
    fn new(lane: usize, least: f64) -> Self {
        let (first, first_residual, residual, along) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { lane, first, first_residual, residual, asked: None, along, scale: Largest::default(), scaled: false, least, done: false }
    }

    /// `v_0 + Z R⁻¹ c`.
    fn solution(&self, pairs: &[Pair]) -> Vec<f64> {
        let mut by_step = self.along.clone();
        let mut at = self.first.clone();
        for (k, pair) in pairs.iter().enumerate().rev() {
            by_step[k] /= pair.parts[k];
            let factor = by_step[k];
            add_times(&mut by_step[..k], -factor, &pair.parts);
            add_times(&mut at, factor, &pair.step);
        }
        at
    }

    /// Largest residual of a time and of a ratio, over the largest derivative of its kind.
    fn left(&self, moving: &Moving) -> f64 {
        moving.largest(&self.residual).over(self.scale, self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tangent;

    /// Iterates `v = J v + b` over `N` directions, of which the last has no `b`; returns the sweeps and the solution.
    fn solved<const N: usize>(n: usize, entry: impl Fn(usize, usize) -> f64, legacy: Legacy) -> (usize, Vec<Tangent<N>>, Legacy) {
        let mut x = vec![Tangent::<N>::from(1.0); n];
        let mut derivatives = Derivatives::new(&x, n / 2, 0.0, legacy);
        for sweep in 1..1000 {
            let image: Vec<Tangent<N>> = (0..n)
                .map(|i| {
                    let mut sum = Tangent::from(1.0);
                    for d in 0..N {
                        let b = if i == d && d + 1 < N { 1.0 } else { 0.0 };
                        sum.derivatives[d] = b + (0..n).map(|j| entry(i, j) * x[j].derivatives[d]).sum::<f64>();
                    }
                    sum
                })
                .collect();
            if derivatives.take(&image, 1e-10) <= 1e-10 {
                let legacy = derivatives.finish(&mut x);
                return (sweep, x, legacy);
            }
            derivatives.ask(&mut x);
        }
        panic!("not reached");
    }

    fn check<const N: usize>(x: &[Tangent<N>], entry: impl Fn(usize, usize) -> f64) {
        let n = x.len();
        let a = nalgebra::DMatrix::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 } - entry(i, j)).lu();
        for d in 0..N {
            let b = nalgebra::DVector::from_fn(n, |i, _| if i == d && d + 1 < N { 1.0 } else { 0.0 });
            let exact = a.solve(&b).expect("regular");
            let largest = exact.amax();
            for i in 0..n {
                assert!((x[i].derivatives[d] - exact[i]).abs() <= 1e-8 * largest, "{d} {i}: {} {}", x[i].derivatives[d], exact[i]);
            }
        }
    }

    /// An iteration of this map expands: `J` has eigenvalues below -1 and above 1.
    fn wild(i: usize, j: usize) -> f64 {
        (if i == j && i < 3 { -4.0 } else { 0.0 }) + ((i * 7 + j * 13) % 11) as f64 / 60.0 - 0.05
    }

    #[test]
    fn what_an_iteration_would_not_reach_is_solved() {
        let (sweeps, x, _) = solved::<6>(30, wild, Legacy::default());
        check(&x, wild);
        assert!(x.iter().all(|v| v.derivatives[5] == 0.0), "a direction without effect has none");
        assert!(sweeps <= 31, "{sweeps}");
    }

    #[test]
    fn pairs_of_a_like_system_save_sweeps() {
        let like = |i: usize, j: usize| wild(i, j) * 1.001;
        let (_, _, legacy) = solved::<2>(30, wild, Legacy::default());
        let (without, _, _) = solved::<2>(30, like, Legacy::default());
        let (with, x, _) = solved::<2>(30, like, legacy);
        check(&x, like);
        assert!(with < without, "{with} {without}");
    }

    #[test]
    fn what_counts_as_none_is_kept_where_the_space_begins_anew() {
        let n = MOST_PAIRS + 40;
        let mut x = vec![Tangent::<1>::from(1.0); n];
        let mut derivatives = Derivatives::new(&x, n, 0.0, Legacy::default());
        derivatives.expect_no_less(&[7.0]);
        loop {
            let slope = |i: usize| if i == 0 { 1.0 } else { 0.97 * x[i - 1].derivatives[0] };
            let image: Vec<_> = (0..n).map(|i| Tangent { value: 1.0, derivatives: [slope(i)] }).collect();
            derivatives.take(&image, 0.0);
            let n_pairs = derivatives.families[0].pairs.len();
            derivatives.ask(&mut x);
            if derivatives.families[0].pairs.len() < n_pairs {
                assert_eq!(n_pairs, MOST_PAIRS);
                break;
            }
        }
        assert_eq!(derivatives.families[0].directions[0].least, 7.0);
    }

    /// Every sweep reaches one unknown more, and there are more of them than pairs are kept.
    #[test]
    fn a_long_chain_is_followed_to_its_end() {
        let chain = |i: usize, j: usize| if i == j + 1 { 0.97 } else { 0.0 };
        let (sweeps, x, _) = solved::<2>(MOST_PAIRS + 40, chain, Legacy::default());
        check(&x, chain);
        assert!(sweeps > MOST_PAIRS, "{sweeps}");
    }
}
