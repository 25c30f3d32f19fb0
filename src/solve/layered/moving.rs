//! The unknowns that have a derivative, and what each weighs beside the others.
//!
//! Those without any, a third to a half of all, are left out until they have one. Times are weighed by the longest one, chances and ratios by
//! [`RATIO_WEIGHT`]; a vector of derivatives in one direction is weighed, and in the order in which they were found.

use std::ops::Range;

use crate::model::Scalar;

/// Weight of chances and ratios beside that of times over the longest one: they are many, and follow the times.
const RATIO_WEIGHT: f64 = 0.03;
/// Derivatives of ratios below this share of those of times, all weighed, are rounding.
const NEGLIGIBLE_RATIO: f64 = 1e-6;

/// An unknown with a derivative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    pub index: usize,
    /// Of a time, or of a chance or ratio.
    pub weight: f64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Time,
    Ratio,
}

/// The unknowns that have had a derivative so far, and the others.
#[derive(Debug)]
pub(super) struct Moving {
    unknowns: Vec<Unknown>,
    others: Vec<usize>,
    n_times: usize,
    of_time: f64,
}

impl Moving {
    /// None yet of `n` unknowns, of which the first `n_times` are times and weigh `of_time`.
    pub fn new(n: usize, n_times: usize, of_time: f64) -> Self {
        Self { unknowns: Vec::new(), others: (0..n).collect(), n_times, of_time }
    }

    /// In the order in which they were found.
    pub fn unknowns(&self) -> &[Unknown] {
        &self.unknowns
    }

    /// Weight of a time.
    pub fn of_time(&self) -> f64 {
        self.of_time
    }

    /// Adds the unknowns of `x` that have a derivative in some of the `lanes` for the first time; whether there are any.
    pub fn find<S: Scalar>(&mut self, x: &[S], lanes: Range<usize>) -> bool {
        let before = self.unknowns.len();
        let (unknowns, n_times, of_time) = (&mut self.unknowns, self.n_times, self.of_time);
        self.others.retain(|&index| {
            let slopes = x[index].derivatives();
            let any = |slopes: &[f64]| slopes.iter().any(|d| *d != 0.0);
            // Most of the others have none in any direction.
            let moves = any(slopes) && slopes.get(lanes.clone()).is_some_and(any);
            if moves {
                let (weight, kind) = if index < n_times { (of_time, Kind::Time) } else { (RATIO_WEIGHT, Kind::Ratio) };
                unknowns.push(Unknown { index, weight, kind });
            }
            !moves
        });
        self.unknowns.len() > before
    }

    /// The derivatives of `x` in one direction, weighed.
    pub fn weighed<S: Scalar>(&self, x: &[S], lane: usize) -> Vec<f64> {
        let mut weighed = Vec::with_capacity(self.unknowns.len());
        self.weigh(x, lane, &mut weighed);
        weighed
    }

    /// Fills `weighed` with them.
    pub fn weigh<S: Scalar>(&self, x: &[S], lane: usize, weighed: &mut Vec<f64>) {
        weighed.clear();
        weighed.extend(self.unknowns.iter().map(|u| x[u.index].derivatives().get(lane).map_or(0.0, |d| d * u.weight)));
    }

    /// Sets the derivatives of `x` in one direction from weighed ones.
    pub fn set<S: Scalar>(&self, x: &mut [S], lane: usize, values: impl Iterator<Item = f64>) {
        for (u, value) in self.unknowns.iter().zip(values) {
            if let Some(d) = x[u.index].derivatives_mut().get_mut(lane) {
                *d = value / u.weight;
            }
        }
    }

    /// Largest of some weighed values, of times and of ratios.
    pub fn largest(&self, values: &[f64]) -> Largest {
        let greater = |most: f64, v: f64| if v > most { v } else { most };
        let (mut time, mut ratio) = (0.0, 0.0);
        for (v, u) in values.iter().zip(&self.unknowns) {
            let v = v.abs();
            match u.kind {
                Kind::Time => time = greater(time, v),
                Kind::Ratio => ratio = greater(ratio, v),
            }
        }
        Largest { time, ratio }
    }
}

/// Largest values of times and of ratios.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Largest {
    pub time: f64,
    pub ratio: f64,
}

impl Largest {
    /// The larger one of these residuals over the derivatives `whole` of the same kind; a derivative of a time below `least` counts as none.
    pub fn over(self, whole: Self, least: f64) -> f64 {
        let over = |left: f64, scale: f64| if left > 0.0 { left / scale.max(f64::MIN_POSITIVE) } else { 0.0 };
        let time = whole.time.max(least);
        over(self.time, time).max(over(self.ratio, whole.ratio.max(NEGLIGIBLE_RATIO * time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tangent;

    fn row(slopes: &[[f64; 3]]) -> Vec<Tangent<3>> {
        slopes.iter().map(|&derivatives| Tangent { value: 1.0, derivatives }).collect()
    }

    #[test]
    fn an_unknown_is_found_once_and_for_some_directions_only() {
        let mut moving = Moving::new(4, 2, 0.5);
        let x = row(&[[0.0, 0.0, 7.0], [0.0; 3], [0.0, 1.0, 0.0], [0.0; 3]]);
        assert!(moving.find(&x, 0..2) && !moving.find(&x, 0..2));
        assert_eq!(moving.unknowns().iter().map(|u| u.index).collect::<Vec<_>>(), [2]);
        assert!(moving.find(&x, 2..3) && !moving.find(&x, 0..3));
        assert!(moving.find(&row(&[[1.0; 3]; 4]), 0..1));
        assert_eq!(moving.unknowns().iter().map(|u| u.index).collect::<Vec<_>>(), [2, 0, 1, 3]);
    }

    #[test]
    fn what_was_weighed_is_set_again() {
        let x = row(&[[3.0, -2.0, 0.0], [0.0; 3], [0.5, 4.0, 0.0]]);
        let mut moving = Moving::new(3, 2, 0.1);
        moving.find(&x, 0..3);
        let weighed = moving.weighed(&x, 1);
        assert_eq!(weighed, [-2.0 * 0.1, 4.0 * RATIO_WEIGHT]);
        let mut y = row(&[[9.0; 3]; 3]);
        moving.set(&mut y, 1, weighed.into_iter());
        assert_eq!(y.iter().map(|v| v.derivatives).collect::<Vec<_>>(), [[9.0, -2.0, 9.0], [9.0; 3], [9.0, 4.0, 9.0]]);
    }

    #[test]
    fn residuals_are_over_the_steepest_of_their_kind() {
        let mut moving = Moving::new(3, 2, 1.0);
        moving.find(&row(&[[1.0; 3]; 3]), 0..3);
        let whole = moving.largest(&[4.0, -8.0, 0.5]);
        assert_eq!((whole.time, whole.ratio), (8.0, 0.5));
        assert_eq!(moving.largest(&[0.0, -0.8, 0.1]).over(whole, 0.0), 0.2);
        assert_eq!(moving.largest(&[0.0, -0.8, 0.0]).over(whole, 80.0), 0.01);
        let none = moving.largest(&[0.0; 3]);
        assert_eq!(none.over(none, 0.0), 0.0);
        assert!(moving.largest(&[1e-9, 0.0, 0.0]).over(none, 0.0) > 1.0);
    }
}
