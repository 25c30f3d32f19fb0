//! What the data say about the parameters.
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | rank, covariance, what cannot be told apart |
//! | [`distribution`] | quantiles and tails |
//! | [`profile`] | intervals and curves from the profile of the sum of squares |
//! | [`bootstrap`] | intervals from refits to resampled data |
//! | [`regions`] | joint ellipsoids and boxes |
//! | [`sandwich`], `unit` | covariance by what trials scatter; coordinates for that |
//! | [`variances`] | what is lost by variances that are estimated from the residuals |
//! | [`replicated`] | the same of what replicates told |
//! | [`information`] | likelihood, AIC, AICc, BIC |
//!
//! Covariance, intervals, and what they cannot tell.
//!
//! At a minimum with weighted Jacobian `J = W^(1/2) H`, `(n_obs, n_free)`, and `mse = E / (n_obs - n)`:
//!
//! ```text
//! J D⁻¹ = U diag(s) Vᵀ          D_j = |J_j|, columns of length one
//! P = mse D⁻¹ V diag(s⁻²) Vᵀ D⁻¹     = mse (Jᵀ J)⁻¹
//! x_k ± t(1 - α/2; n_obs - n) √P_kk
//! ```
//!
//! Directions with `s_i ≤ rank_tolerance s_1` cannot be told from zero: `P` then lives on the others, and a parameter
//! has a variance only where its unit vector is free of those directions (is *estimable*).
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `J`, `D` | weighted Jacobian of the parameters that are free, the lengths of its columns | `(n_obs, n_free)`, `(n_free)` |
//! | `E`, `mse` | weighted sum of squares; fitted scale of the error covariance | scalars |
//! | `P` | covariance of the estimates | `(n_free, n_free)` |
//!
//! Source: M. Woodside, SIPEW 2008, sections 2 and 3; estimable functions: S. Searle, Linear Models (1971), 5.4.

use nalgebra::{DMatrix, DVector};

pub mod bootstrap;
pub mod distribution;
pub mod information;
pub mod profile;
pub mod regions;
pub mod replicated;
pub mod sandwich;
pub(crate) mod unit;
pub mod variances;

use crate::fit::{
    digits::four_digits,
    engine::svd::{Svd, svd},
};

/// Share of an unseen direction in a parameter's unit vector above which the parameter is involved in it.
const INVOLVED: f64 = 1e-4;

/// Share of a parameter in a direction below which the words leave it out.
const WORTH_NAMING: f64 = 0.05;

/// What a Jacobian says about its parameters.
#[derive(Clone, Debug)]
pub struct Identification {
    /// Numerical rank, ≤ `n_free`.
    pub rank: usize,
    /// Singular values of the column-scaled Jacobian, descending, `(n_free)`.
    pub singular_values: Vec<f64>,
    /// Largest over smallest singular value; `None` when the smallest is zero.
    pub condition_number: Option<f64>,
    /// `(JᵀJ)⁺` restricted to what is seen, `(n_free, n_free)`, not yet times `mse`.
    pub unscaled_covariance: DMatrix<f64>,
    /// Directions in parameter space that the residuals do not see, as relative (column-scaled) steps.
    pub null_directions: Vec<DVector<f64>>,
    /// The least seen direction, in column-scaled coordinates, `(n_free)`.
    pub weakest: DVector<f64>,
    /// All directions in the order of `singular_values`, in column-scaled coordinates, one a column, `(n_free, n_free)`.
    pub directions: DMatrix<f64>,
    /// Lengths of the columns of the Jacobian, `(n_free)`; 1 for a column of zeros.
    pub scale: Vec<f64>,
    /// Columns that are zero: no residual depends on the parameter.
    pub unseen: Vec<bool>,
}

/// Analyses the weighted Jacobian `jacobian`, `(n_obs, n_free)`.
pub fn identify(jacobian: &DMatrix<f64>, rank_tolerance: f64) -> Identification {
    let n = jacobian.ncols();
    let lengths: Vec<f64> = jacobian.column_iter().map(|column| column.norm()).collect();
    let scale: Vec<f64> = lengths.iter().map(|&d| if d > 0.0 { d } else { 1.0 }).collect();
    let mut scaled = jacobian.clone();
    scaled.column_iter_mut().zip(&scale).for_each(|(mut column, length)| column.unscale_mut(*length));
    let decomposition = svd(&scaled);
    let largest = decomposition.s.iter().copied().fold(0.0, f64::max);
    let rank = decomposition.s.iter().filter(|&&s| s > rank_tolerance * largest).count();
    let smallest = decomposition.s.iter().copied().fold(f64::INFINITY, f64::min);
    Identification {
        rank,
        condition_number: (n > 0 && smallest > 0.0).then(|| largest / smallest),
        unscaled_covariance: covariance(&decomposition, &scale, rank),
        null_directions: (rank..n).map(|i| decomposition.v.column(i).into_owned()).collect(),
        weakest: if n > 0 { decomposition.v.column(n - 1).into_owned() } else { DVector::zeros(0) },
        singular_values: decomposition.s.iter().copied().collect(),
        directions: decomposition.v,
        scale,
        unseen: lengths.iter().map(|&d| d == 0.0).collect(),
    }
}

fn covariance(decomposition: &Svd, scale: &[f64], rank: usize) -> DMatrix<f64> {
    let n = scale.len();
    let root = DMatrix::from_fn(n, rank, |k, i| decomposition.v[(k, i)] / (decomposition.s[i] * scale[k]));
    &root * root.transpose()
}

impl Identification {
    /// Whether parameter `k` of the free ones can be estimated: no unseen direction involves it.
    pub fn is_estimable(&self, k: usize) -> bool {
        self.null_directions.iter().all(|direction| direction[k].abs() <= INVOLVED)
    }

    /// Whether the linear function with gradient `row`, `(n_free)`, is seen by the data although single parameters of
    /// it may not be.
    pub fn sees(&self, row: &[f64]) -> bool {
        sees(row, &self.scale, self.null_directions.iter().map(|d| d.as_slice()))
    }

    /// Parameters that unseen direction `i` involves.
    pub fn involved(&self, i: usize) -> Vec<usize> {
        let direction = &self.null_directions[i];
        (0..direction.len()).filter(|&k| direction[k].abs() > INVOLVED).collect()
    }

    /// All parameters that share an unseen direction with parameter `k`, itself left out.
    pub fn companions(&self, k: usize) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.null_directions.len())
            .map(|i| self.involved(i))
            .filter(|group| group.contains(&k))
            .flatten()
            .filter(|&j| j != k)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Whether a gradient `row` has no share in the unseen `directions`, all in the coordinates that `scale` makes unitless.
pub fn sees<'a>(row: &[f64], scale: &[f64], directions: impl Iterator<Item = &'a [f64]>) -> bool {
    let scaled: Vec<f64> = row.iter().zip(scale).map(|(h, d)| h / d).collect();
    let length = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut directions = directions;
    directions.all(|direction| scaled.iter().zip(direction).map(|(h, v)| h * v).sum::<f64>().abs() <= INVOLVED * length)
}

/// A direction of parameters in words: `d1 up by 1 with d2 down by 0.5`, for parameters `names` with column lengths
/// `scale`, normalised to its largest share.
pub fn direction_in_words(direction: &[f64], names: &[String], scale: &[f64]) -> String {
    let largest_share = direction.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let mut shares: Vec<usize> = (0..direction.len()).filter(|&k| direction[k].abs() >= WORTH_NAMING * largest_share).collect();
    shares.sort_by(|&a, &b| direction[b].abs().total_cmp(&direction[a].abs()));
    let Some(&lead) = shares.first() else { return String::new() };
    let steps: Vec<f64> = direction.iter().zip(scale).map(|(v, d)| v / d).collect();
    let part = |k: usize| {
        let step = steps[k] / steps[lead].abs() * steps[lead].signum();
        format!("{} {} by {}", names[k], if step >= 0.0 { "up" } else { "down" }, four_digits(step.abs()))
    };
    match shares.len() {
        1 => format!("{} alone", names[lead]),
        _ => shares.iter().map(|&k| part(k)).collect::<Vec<_>>().join(" with "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANK_TOLERANCE: f64 = 1e-10;

    fn names(n: usize) -> Vec<String> {
        (1..=n).map(|k| format!("d{k}")).collect()
    }

    #[test]
    fn the_covariance_of_a_straight_line() {
        // y = a + b t at t = 0, 1, 2, 3: (JᵀJ)⁻¹ = [[14, -6], [-6, 4]] / 20.
        let j = DMatrix::from_row_slice(4, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0]);
        let found = identify(&j, RANK_TOLERANCE);
        let expected = DMatrix::from_row_slice(2, 2, &[0.7, -0.3, -0.3, 0.2]);
        assert!((&found.unscaled_covariance - expected).norm() < 1e-14);
        assert_eq!(found.rank, 2);
        assert!(found.null_directions.is_empty() && found.is_estimable(0));
    }

    #[test]
    fn units_do_not_change_the_condition_number() {
        let j = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let micro = j.clone() * DMatrix::from_diagonal(&DVector::from_row_slice(&[1e6, 1e-6]));
        let (a, b) = (identify(&j, RANK_TOLERANCE).condition_number.unwrap(), identify(&micro, RANK_TOLERANCE).condition_number.unwrap());
        assert!((a / b - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_sum_is_seen_although_its_terms_are_not() {
        // Residuals see 2 x0 + x1 and x2.
        let j = DMatrix::from_row_slice(4, 3, &[2.0, 1.0, 0.0, 4.0, 2.0, 0.0, 0.0, 0.0, 1.0, 2.0, 1.0, 1.0]);
        let found = identify(&j, RANK_TOLERANCE);
        assert_eq!(found.rank, 2);
        assert_eq!((0..3).map(|k| found.is_estimable(k)).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(found.companions(0), [1]);
        assert!(found.sees(&[2.0, 1.0, 5.0]) && !found.sees(&[1.0, 0.0, 0.0]));
        let words = direction_in_words(found.null_directions[0].as_slice(), &names(3), &found.scale);
        assert!(words == "d1 up by 1 with d2 down by 2" || words == "d2 up by 1 with d1 down by 0.5", "{words}");
    }

    #[test]
    fn an_unseen_parameter_stands_alone() {
        let j = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        let found = identify(&j, RANK_TOLERANCE);
        assert_eq!((found.rank, found.unseen.clone(), found.condition_number), (1, vec![false, true], None));
        assert_eq!(direction_in_words(found.null_directions[0].as_slice(), &names(2), &found.scale), "d2 alone");
        assert!((found.unscaled_covariance[(0, 0)] - 1.0 / 14.0).abs() < 1e-15);
    }
}
