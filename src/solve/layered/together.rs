//! The values of a stage and their derivatives, found in the same sweeps.
//!
//! Once the values are near, sweeps are of dual numbers: the image of `(x, v)` is `T(x)` with `J v + b`, `J` and `b` at `x`
//! ([`super::derivatives`]). The values go on as they would alone; the derivatives of each direction follow by
//!
//! ```text
//! r   = J v + b - v
//! γ   = argmin ‖ w (r - Σ γ_i q_i) ‖₂                   q_i = A p_i, A = 1 - J, of steps p_i
//! v   ← v + r + Σ γ_i (p_i - q_i)
//! ```
//!
//! The steps are the last ones of the values, for which `q = -ΔF` of the acceleration ([`super::anderson`]), and those of the derivatives in all
//! directions, for which `q = -Δr`. As the values move, neither is exact: what a pair has beyond those after it is used if it is
//! more than the share [`NOVEL`]. After the values are settled they stay, and the map is linear; the derivatives are reached when
//! what `Σ γ q` leaves of `r`, which is that of a sweep at these values, is small.
//!
//! | symbol | field |
//! |---|---|
//! | `v`, `J v + b`, `r` | `Direction::{at, image, residual}` |
//! | `q`, `p - q` | `Pair::{change, more}` |
//! | `w` | [`super::moving`] |
//!
//! All are weighed, and of the unknowns that have had a derivative.

use smallvec::SmallVec;

use super::{
    anderson::{Anderson, DEPTH},
    fixed_point::{Course, Stage, Sweeper, likewise},
    linearizer::Populations,
    moving::Moving,
    station::Manner,
    vectors::{add_all, dot},
};
use crate::model::Scalar;

/// Change of a sweep below which derivatives begin.
pub(super) const NEAR: f64 = 5e-3;
/// Sweeps after which the derivatives are sought after the values instead.
const MOST_SWEEPS: usize = 30;
/// A pair that the newer ones explain but for this share may be explained by their errors.
const NOVEL: f64 = 0.03;
/// Steps of derivatives that are kept, and how many of a sweep, by the directions in turn: those of the values say most.
const OF_DERIVATIVES: usize = 4;
const OF_SWEEP: usize = 2;
const PAIRS: usize = DEPTH + OF_DERIVATIVES;

impl<S: Scalar> Sweeper<'_, S> {
    /// Goes on from values that are near to those and their derivatives, which begin at those of `like`, until the values change by less
    /// than `tolerance` and the derivatives by less than `enough` of the steepest of their kind; none, where that takes long. The values, the
    /// `course` and the `memory` of the sweeps are those of the iteration in plain numbers, to the last bit.
    pub fn together(
        &mut self,
        course: &mut Course<f64>,
        memory: &mut Vec<Option<f64>>,
        like: Option<&[S]>,
        (populations, manner): (&Populations<'_, S>, Manner),
        (tolerance, enough): (f64, f64),
    ) -> Option<Stage<S>> {
        self.memory().clone_from(memory);
        course.go_on();
        let mut x: Vec<S> = match like {
            Some(like) => likewise(like, &course.x),
            None => course.x.iter().map(|&value| S::from(value)).collect(),
        };
        let mut image = x.clone();
        let n_times = self.net.arcs.len() + self.net.stations.len();
        let mut company = Company::new(&x, n_times);
        let mut is_settled = false;
        for sweep in 0..MOST_SWEEPS {
            self.sweep(&x, populations, manner, &mut image);
            let change = self.distance(&x, &image);
            self.record.sweeps += 1;
            self.record.residual = change;
            if !change.is_finite() {
                return None;
            }
            if sweep == 0 {
                company.expect_no_less(&self.steepest_services());
            }
            company.take(&image);
            if !is_settled {
                memory.clone_from(self.memory());
                course.image.iter_mut().zip(&image).for_each(|(value, image)| *value = image.value());
                course.change = change;
                course.n_sweeps += 1;
                is_settled = course.is_settled(tolerance);
            }
            if !is_settled {
                course.go_on();
                x.iter_mut().zip(&course.x).for_each(|(x, &value)| *x = S::from(value));
            }
            company.learn(&course.acceleration);
            company.explain();
            if is_settled && company.left() <= enough {
                image.iter_mut().zip(&course.image).for_each(|(image, &value)| *image = S::from(value));
                company.go_on(&mut image);
                return Some(self.settled(image, populations, true).stage);
            }
            company.go_on(&mut x);
        }
        None
    }
}

/// A step and what it changes.
#[derive(Clone, Debug, Default)]
struct Pair {
    change: Vec<f64>,
    more: Vec<f64>,
    /// When it was put; 0 if it was not.
    number: usize,
}

/// The last steps: [`DEPTH`] places for those of values, then those for derivatives.
struct Pairs {
    places: Vec<Pair>,
    products: [[f64; PAIRS]; PAIRS],
    n_put: usize,
}

/// One direction on its way.
#[derive(Clone, Debug, Default)]
struct Direction {
    at: Vec<f64>,
    image: Vec<f64>,
    last_image: Vec<f64>,
    residual: Vec<f64>,
    last_residual: Vec<f64>,
    /// The pairs that explain the residual, with their `γ`.
    along: Vec<(f64, usize)>,
    /// Derivative of a time, weighed, that counts as none.
    least: f64,
}

/// The derivatives in all directions, in company of the values.
struct Company {
    moving: Moving,
    directions: Vec<Direction>,
    pairs: Pairs,
    n_images: usize,
    /// Steps of the values that were learned, and the next place of one.
    n_learned: usize,
    next_of_values: usize,
    /// The next place of a step of derivatives, and whose it is.
    next_of_derivatives: usize,
    next_direction: usize,
}

impl Company {
    fn new<S: Scalar>(x: &[S], n_times: usize) -> Self {
        let longest = x[..n_times].iter().fold(0.0_f64, |m, w| m.max(w.value().abs()));
        let n = x.first().map_or(0, |v| v.derivatives().len());
        let mut company = Self {
            moving: Moving::new(x.len(), n_times, if longest > 0.0 { longest.recip() } else { 1.0 }),
            directions: vec![Direction::default(); n],
            pairs: Pairs { places: vec![Pair::default(); PAIRS], products: [[0.0; PAIRS]; PAIRS], n_put: 0 },
            n_images: 0,
            n_learned: 0,
            next_of_values: 0,
            next_of_derivatives: 0,
            next_direction: 0,
        };
        company.find(x);
        for (lane, direction) in company.directions.iter_mut().enumerate() {
            company.moving.weigh(x, lane, &mut direction.at);
        }
        company
    }

    /// Derivatives of times below `least`, by direction, count as none.
    fn expect_no_less(&mut self, least: &[f64]) {
        for (direction, least) in self.directions.iter_mut().zip(least) {
            direction.least = least * self.moving.of_time();
        }
    }

    /// Adds the unknowns of `x` that have a derivative for the first time: without one so far.
    fn find<S: Scalar>(&mut self, x: &[S]) {
        if !self.moving.find(x, 0..self.directions.len()) {
            return;
        }
        let n = self.moving.unknowns().len();
        // The steps of the values are read again, with the new unknowns.
        self.n_learned = 0;
        let (of_values, of_derivatives) = self.pairs.places.split_at_mut(DEPTH);
        of_values.iter_mut().for_each(|pair| pair.number = 0);
        for pair in of_derivatives {
            pair.change.resize(n, 0.0);
            pair.more.resize(n, 0.0);
        }
        for direction in &mut self.directions {
            direction.at.resize(n, 0.0);
            direction.image.resize(n, 0.0);
            direction.residual.resize(n, 0.0);
        }
    }

    /// Takes in the image.
    fn take<S: Scalar>(&mut self, image: &[S]) {
        self.find(image);
        self.n_images += 1;
        for (lane, it) in self.directions.iter_mut().enumerate() {
            std::mem::swap(&mut it.image, &mut it.last_image);
            std::mem::swap(&mut it.residual, &mut it.last_residual);
            self.moving.weigh(image, lane, &mut it.image);
            it.residual.clear();
            it.residual.extend(it.image.iter().zip(&it.at).map(|(image, at)| image - at));
        }
    }

    /// Explains the residuals by the pairs.
    fn explain(&mut self) {
        let factor = self.pairs.factor();
        for it in &mut self.directions {
            factor.solve(&self.pairs, &it.residual, &mut it.along);
        }
    }

    /// The largest residual that the pairs leave, over the steepest derivative of its kind.
    fn left(&self) -> f64 {
        let left = |it: &Direction| {
            let mut left = it.residual.clone();
            let changes: SmallVec<[_; PAIRS]> =
                it.along.iter().map(|&(along, place)| (-along, &*self.pairs.places[place].change)).collect();
            add_all(&mut left, &changes);
            if left.iter().any(|r| !r.is_finite()) {
                return f64::INFINITY;
            }
            self.moving.largest(&left).over(self.moving.largest(&it.image), it.least)
        };
        self.directions.iter().map(left).fold(0.0, f64::max)
    }

    /// Learns from the last steps of the values and of the derivatives.
    fn learn(&mut self, acceleration: &Anderson<f64>) {
        let (n_learned, differences) = acceleration.learned();
        let held = self.pairs.places[..DEPTH].iter().filter(|pair| pair.number > 0).count();
        if differences.len() < held {
            self.pairs.places[..DEPTH].iter_mut().for_each(|pair| pair.number = 0);
        }
        let n_new = n_learned.saturating_sub(self.n_learned).min(differences.len());
        self.n_learned = n_learned;
        let unknowns = self.moving.unknowns();
        for (df, dg) in differences.range(differences.len() - n_new..) {
            self.pairs.put(self.next_of_values, |pair| {
                pair.change.extend(unknowns.iter().map(|u| -df[u.index] * u.weight));
                pair.more.extend(unknowns.iter().map(|u| dg[u.index] * u.weight));
            });
            self.next_of_values = (self.next_of_values + 1) % DEPTH;
        }
        if self.n_images < 2 {
            return;
        }
        for _ in 0..self.directions.len().min(OF_SWEEP) {
            let it = &self.directions[self.next_direction];
            self.pairs.put(DEPTH + self.next_of_derivatives, |pair| {
                pair.change.extend(it.last_residual.iter().zip(&it.residual).map(|(before, now)| before - now));
                pair.more.extend(it.image.iter().zip(&it.last_image).map(|(now, before)| now - before));
            });
            self.next_direction = (self.next_direction + 1) % self.directions.len();
            self.next_of_derivatives = (self.next_of_derivatives + 1) % OF_DERIVATIVES;
        }
    }

    /// Sets the derivatives of `x` to the next ones.
    fn go_on<S: Scalar>(&mut self, x: &mut [S]) {
        for (lane, it) in self.directions.iter_mut().enumerate() {
            it.at.copy_from_slice(&it.image);
            let steps: SmallVec<[_; PAIRS]> = it.along.iter().map(|&(along, place)| (along, &*self.pairs.places[place].more)).collect();
            add_all(&mut it.at, &steps);
            self.moving.set(x, lane, it.at.iter().copied());
        }
    }
}

impl Pairs {
    /// Puts a pair, whose empty vectors `fill` fills, in a place, and multiplies it with the others.
    fn put(&mut self, place: usize, fill: impl FnOnce(&mut Pair)) {
        self.n_put += 1;
        let mut pair = std::mem::take(&mut self.places[place]);
        pair.change.clear();
        pair.more.clear();
        fill(&mut pair);
        pair.number = self.n_put;
        self.places[place] = pair;
        let change = &self.places[place].change;
        for (other, pair) in self.places.iter().enumerate().filter(|(_, pair)| pair.number > 0) {
            let product = dot(change, &pair.change);
            self.products[place][other] = product;
            self.products[other][place] = product;
        }
    }

    /// Cholesky's factor of the products, newer pairs before older ones and those of values before the others, without what is
    /// not [`NOVEL`].
    fn factor(&self) -> Factor {
        let mut order: Vec<usize> = (0..self.places.len()).filter(|&place| self.places[place].number > 0).collect();
        order.sort_by_key(|&place| (place >= DEPTH, std::cmp::Reverse(self.places[place].number)));
        let mut factor = Factor { places: Vec::with_capacity(order.len()), rows: [[0.0; PAIRS]; PAIRS] };
        for place in order {
            let products = &self.products[place];
            let n = factor.places.len();
            let mut row = [0.0; PAIRS];
            for (j, &other) in factor.places.iter().enumerate() {
                let sum = (0..j).fold(products[other], |sum, l| sum - row[l] * factor.rows[j][l]);
                row[j] = sum / factor.rows[j][j];
            }
            let whole = products[place];
            let left = row[..n].iter().fold(whole, |left, part| left - part * part);
            if left > NOVEL * NOVEL * whole && left.is_finite() {
                row[n] = left.sqrt();
                factor.rows[n] = row;
                factor.places.push(place);
            }
        }
        factor
    }
}

/// A lower triangular factor of the products of some pairs.
struct Factor {
    /// Of the pairs.
    places: Vec<usize>,
    rows: [[f64; PAIRS]; PAIRS],
}

impl Factor {
    /// `γ` of the pairs for a residual, with their places.
    fn solve(&self, pairs: &Pairs, residual: &[f64], found: &mut Vec<(f64, usize)>) {
        let n = self.places.len();
        let mut along = [0.0; PAIRS];
        for (i, &place) in self.places.iter().enumerate() {
            let right = dot(&pairs.places[place].change, residual);
            along[i] = (0..i).fold(right, |sum, l| sum - self.rows[i][l] * along[l]) / self.rows[i][i];
        }
        for i in (0..n).rev() {
            along[i] = (i + 1..n).fold(along[i], |sum, l| sum - self.rows[l][i] * along[l]) / self.rows[i][i];
        }
        found.clear();
        found.extend(along.into_iter().zip(self.places.iter().copied()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tangent;

    /// `T_i(x) = p_i + Σ_j J_ij x_j + x_i²/100`, of times and ratios, with `p_1` to `p_N` as parameters.
    fn image<const N: usize>(x: &[Tangent<N>], entry: impl Fn(usize, usize) -> f64) -> Vec<Tangent<N>> {
        let sum = |i: usize| x.iter().enumerate().fold(x[i] * x[i] * 0.01, |sum, (j, &v)| sum + v * entry(i, j));
        (0..x.len()).map(|i| Tangent::variable(1.0, i) * 0.3 + sum(i)).collect()
    }

    /// Goes on from 1 as [`Sweeper::together`] does; returns the sweeps and the solution.
    fn solved<const N: usize>(n: usize, entry: impl Fn(usize, usize) -> f64 + Copy) -> (usize, Vec<Tangent<N>>) {
        let mut x = vec![Tangent::<N>::from(1.0); n];
        let mut company = Company::new(&x, n / 2);
        let mut acceleration = Anderson::<f64>::new(n, 0..0, 0, 1.0);
        let mut is_settled = false;
        for sweep in 1..200 {
            let mut image = image(&x, entry);
            company.take(&image);
            let change = x.iter().zip(&image).map(|(x, image)| (image.value - x.value).abs()).fold(0.0, f64::max);
            is_settled |= change < 1e-11;
            if !is_settled {
                let [at, next]: [Vec<f64>; 2] = [&x, &image].map(|x| x.iter().map(|v| v.value).collect());
                let mut to = next.clone();
                acceleration.next(&at, &next, change, &mut to);
                x = to.into_iter().map(Tangent::from).collect();
            }
            company.learn(&acceleration);
            company.explain();
            if is_settled && company.left() <= 1e-9 {
                company.go_on(&mut image);
                return (sweep, image);
            }
            company.go_on(&mut x);
        }
        panic!("not reached");
    }

    fn check<const N: usize>(x: &[Tangent<N>], entry: impl Fn(usize, usize) -> f64) {
        let n = x.len();
        let one = |i: usize, j: usize| if i == j { 1.0 - 0.02 * x[i].value } else { 0.0 };
        let a = nalgebra::DMatrix::from_fn(n, n, |i, j| one(i, j) - entry(i, j)).lu();
        for d in 0..N {
            let b = nalgebra::DVector::from_fn(n, |i, _| if i == d { 0.3 } else { 0.0 });
            let exact = a.solve(&b).expect("regular");
            for i in 0..n {
                let got = x[i].derivatives[d];
                assert!((got - exact[i]).abs() <= 1e-8 * exact.amax(), "{d} {i}: {got} {}", exact[i]);
            }
        }
    }

    /// Plain iteration of this map takes hundreds of steps.
    fn slow(i: usize, j: usize) -> f64 {
        (if i == j && i.is_multiple_of(5) { 0.5 } else { 0.0 }) + ((i * 7 + j * 13) % 11) as f64 / 400.0
    }

    #[test]
    fn derivatives_come_with_the_values() {
        let (sweeps, x) = solved::<1>(30, slow);
        check(&x, slow);
        assert!(sweeps <= 25, "{sweeps}");
        let (sweeps, x) = solved::<8>(30, slow);
        check(&x, slow);
        assert!(sweeps <= 25, "{sweeps}");
    }

    /// Each sweep reaches one unknown more; those that are never reached have none.
    #[test]
    fn unknowns_are_found_as_derivatives_reach_them() {
        let chain = |i: usize, j: usize| if i == j + 1 && i != 20 { 0.8 } else { 0.0 };
        let (_, x) = solved::<2>(30, chain);
        check(&x, chain);
        assert!(x[19].derivatives[0] != 0.0 && x[20..].iter().all(|v| v.derivatives == [0.0; 2]));
    }

    #[test]
    fn what_newer_pairs_explain_is_left_out() {
        let mut pairs = Pairs { places: vec![Pair::default(); PAIRS], products: [[0.0; PAIRS]; PAIRS], n_put: 0 };
        let mut put = |place: usize, change: [f64; 3]| pairs.put(place, |pair| pair.change.extend(change));
        put(0, [1.0, 1.0, 0.0]);
        put(DEPTH, [3.0, 0.0, 0.0]);
        put(1, [1.0, 0.0, 1e-3]);
        put(2, [1.0, 0.0, 0.0]);
        let factor = pairs.factor();
        assert_eq!(factor.places, [2, 0], "the others are explained but for a thousandth");
        let mut along = Vec::new();
        factor.solve(&pairs, &[5.0, 2.0, 7.0], &mut along);
        assert!((along[0].0 - 3.0).abs() < 1e-12 && (along[1].0 - 2.0).abs() < 1e-12, "{along:?}");
        assert_eq!([along[0].1, along[1].1], [2, 0]);
    }
}
