//! The simulation's own error in the estimates of a corrected fit.
//!
//! Where the rounds settle `J_nᵀ R⁻¹ (z - s - e) = 0`, with an error `e` of the simulated values and derivatives `J_n = J + δ` whose
//! slopes have one, too. Derivatives that err by themselves do not lead the estimates astray, but tell less than they seem to: `E[J_nᵀ R⁻¹ J]
//! = M - N`. Estimates by instruments `J_n` have the covariance
//!
//! ```text
//! M = J_nᵀ R⁻¹ J_n      N = E[δᵀ R⁻¹ δ] = Σ_v q_v a_v a_vᵀ      S = J_nᵀ R⁻¹ E[e eᵀ] R⁻¹ J_n
//! C = (M - N)⁻¹ (σ² M + S) (M - N)⁻¹                            σ² (M)⁻¹ without error of the simulation
//! ```
//!
//! which is that of a fit whose Jacobian is `K`, `σ² (Kᵀ K)⁻¹ = C`. With `R^(-1/2) J_n D⁻¹ = U Σ Vᵀ` and `T = D⁻¹ V Σ⁻¹`,
//!
//! ```text
//! K = σ (σ² + Tᵀ S T)^(-1/2) (1 - Tᵀ N T) Σ Vᵀ D
//! ```
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `J_n` | derivatives of the corrected values, with the slopes as simulated | `(n_obs, n_params)` |
//! | `e` | error of the corrected values: batches' jackknife deviations at the estimates, and of the slopes over the way moved since | `(n_obs)` |
//! | `q_v` | weighted sum of squares of the error of the values' change along direction `v`, by unit of its length | scalar |
//! | `a_v` | derivative of the length along `v` by the parameters | `(n_params)` |
//! | `Tᵀ N T` | share of what seems to be told that is error; at most [`MOST_LOST`] counts | `(rank, rank)` |
//!
//! Where `σ²` is estimated from the residuals, these have `e` in them already, and it counts twice: by a factor of at most √2, intervals are then wider
//! than they need to be. Errors of different operating points are of different random numbers; those of a change along a direction are of
//! differences between batches that had the same.
//! Source: W. Fuller, Measurement Error Models (1987), section 1.2 and 1.4 (attenuation, instruments); jackknife: [`crate::solve::simulate`].

use indexmap::IndexMap;
use nalgebra::{DMatrix, DVector};

use super::{CorrectedPoint, Correction, Factor};
use crate::{
    fit::{
        engine::least_squares::Minimum,
        inference::{
            direction_in_words,
            unit::{UnitCoordinates, on_eigenvalues},
        },
        problem::Problem,
        report::digits::two_digits,
        search::{solver::TrialPredictions, weights::Weights},
    },
    model::{Bindings, Measure},
};

/// Largest share of what seems to be told of a direction that is taken for the simulation's error: intervals are no longer than by 1 / .05.
const MOST_LOST: f64 = 0.95;

/// Share from which that is remarked.
const REMARKED: f64 = 0.2;

/// How many times as wide intervals are from which that is remarked.
const WIDER: f64 = 1.2;

/// Deviations of the batches, `(n_batches)`: their sum of squares is the variance of the mean.
pub(super) type Deviations = Vec<f64>;

/// Factors with the deviations of the simulated values, by point, `(n_measures)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) correction: Correction,
    pub(super) deviations: Vec<Vec<Deviations>>,
}

impl Taken {
    /// A factor, and the deviations of its simulated value, by place.
    pub(super) fn factor(&self, point: usize, measure: usize) -> Option<(&Factor, &[f64])> {
        let (_, factor) = self.correction.points.get(point)?.factors.get_index(measure)?;
        Some((factor, self.deviations.get(point)?.get(measure)?))
    }

    /// The factors with what they are off by, no slopes yet.
    pub(super) fn own_error(&self) -> OwnError {
        let of_point = |(point, deviations): (&CorrectedPoint, &Vec<Deviations>)| {
            let factor = |((measure, factor), d): ((&Measure, &Factor), &Deviations)| {
                let is_ratio = factor.ratio.is_some();
                (measure.clone(), FactorError { is_ratio, value: factor.deviations(is_ratio, d), slopes: Vec::new() })
            };
            PointError { controlled: point.controlled.clone(), measures: point.factors.iter().zip(deviations).map(factor).collect() }
        };
        let at = self.correction.at.iter().map(|(_, v)| v).collect();
        OwnError { along: Vec::new(), at, points: self.correction.points.iter().zip(&self.deviations).map(of_point).collect() }
    }
}

/// Errors that a correction has from its simulations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnError {
    /// Derivatives of the length along each direction by the parameters, `(n_directions)` of `(n_params)`.
    pub(super) along: Vec<Vec<f64>>,
    /// Where the factors were taken, `(n_params)`.
    pub(super) at: Vec<f64>,
    pub(super) points: Vec<PointError>,
}

/// Errors at one operating point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PointError {
    pub(super) controlled: Bindings,
    pub(super) measures: IndexMap<Measure, FactorError>,
}

/// Errors of one factor: of the ratio's logarithm, or of the difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FactorError {
    pub(super) is_ratio: bool,
    /// Of itself.
    pub(super) value: Deviations,
    /// Of its slope along each direction, by unit of its length; empty where it has none.
    pub(super) slopes: Vec<Deviations>,
}

impl Factor {
    /// What is corrected of it: the ratio's logarithm, or the difference.
    fn size(&self, is_ratio: bool) -> f64 {
        if is_ratio { (self.simulated / self.analytic).ln() } else { self.simulated - self.analytic }
    }

    /// Deviations of that, from those of the simulated value.
    fn deviations(&self, is_ratio: bool, simulated: &[f64]) -> Deviations {
        let by = if is_ratio { self.simulated.recip() } else { 1.0 };
        simulated.iter().map(|d| by * d).collect()
    }

    /// What it changes by between two ends, and the deviations of that; none where it is not known how far off it is.
    pub(super) fn change(&self, below: (&Self, &[f64]), above: (&Self, &[f64])) -> Option<(f64, Deviations)> {
        if below.1.is_empty() || above.1.is_empty() {
            return None;
        }
        let is_ratio = self.ratio.is_some();
        let [from, to] = [below, above].map(|(factor, _)| factor.size(is_ratio));
        let [mut deviations, of_above] = [below, above].map(|(factor, simulated)| factor.deviations(is_ratio, simulated));
        match deviations.len() == of_above.len() {
            true => deviations.iter_mut().zip(of_above).for_each(|(b, a)| *b = a - *b),
            false => deviations.extend(of_above),
        }
        Some((to - from, deviations)).filter(|(change, _)| change.is_finite())
    }
}

/// The Jacobian `K` that stands for the estimates' covariance, and where slopes told little.
pub(crate) struct Purged {
    /// `K`, `(n_rows, n_free)`.
    pub(crate) jacobian: DMatrix<f64>,
    /// How many times as wide the error of the simulation makes intervals, where that is worth a remark.
    wider: Vec<(String, f64)>,
    /// The direction of which most of what seems to be told is error, in words, with the share, where that is worth a remark.
    lost: Option<(f64, String)>,
}

/// What errors of a correction do to what a fit tells.
struct Information {
    /// `S`.
    of_values: DMatrix<f64>,
    /// `N`.
    of_slopes: DMatrix<f64>,
}

impl Information {
    /// `K` of the parameters that are `free`, called `names`, from the weighted Jacobian `jacobian` of these, `(n_rows, n_free)`.
    fn purge(&self, jacobian: &DMatrix<f64>, free: &[usize], names: &[String], scale: f64, rank_tolerance: f64) -> Purged {
        let unit = UnitCoordinates::of(jacobian, rank_tolerance);
        if unit.rank() == 0 {
            return Purged { jacobian: unit.from, wider: Vec::new(), lost: None };
        }
        let (to_unit, from_unit, lengths) = (unit.to, unit.from, unit.lengths);
        let in_unit = |matrix: &DMatrix<f64>| to_unit.transpose() * matrix.select_rows(free).select_columns(free) * &to_unit;
        let shares = in_unit(&self.of_slopes).symmetric_eigen();
        let told = on_eigenvalues(&shares.eigenvectors, &shares.eigenvalues.map(|share| 1.0 - share.clamp(0.0, MOST_LOST)));
        let spread = in_unit(&self.of_values).symmetric_eigen();
        let narrower = |s: f64| if s > 0.0 && scale > 0.0 { (scale / (scale + s)).sqrt() } else { 1.0 };
        let spread = on_eigenvalues(&spread.eigenvectors, &spread.eigenvalues.map(narrower));
        let lost = Some(shares.eigenvalues.argmax()).filter(|(_, share)| *share > REMARKED).map(|(i, share)| {
            let direction = &to_unit * shares.eigenvectors.column(i);
            let scaled: Vec<f64> = direction.iter().zip(&lengths).map(|(d, length)| d * length).collect();
            (share, direction_in_words(&scaled, names, lengths.as_slice()))
        });
        let kept = spread * told;
        let wider = match kept.clone().try_inverse() {
            Some(longer) => {
                let (plain, own) = (&to_unit, &to_unit * longer);
                let times = plain.row_iter().zip(own.row_iter()).map(|(plain, own)| own.norm() / plain.norm());
                names.iter().cloned().zip(times).filter(|(_, times)| *times > WIDER).collect()
            }
            None => Vec::new(),
        };
        Purged { jacobian: kept * from_unit, wider, lost }
    }
}

impl OwnError {
    /// `K` of the parameters that are `free`, by the plain weighted Jacobian `jacobian` of all of them, `(n_rows, n_params)`, and the
    /// variance `scale` of a weighted residual.
    pub(crate) fn purge(&self, fit: &Fitted<'_>, jacobian: &DMatrix<f64>, free: &[usize], scale: f64, rank_tolerance: f64) -> Purged {
        let names: Vec<String> = free.iter().map(|&j| fit.problem.estimate[j].name.clone()).collect();
        self.information(fit, jacobian).purge(&jacobian.select_columns(free), free, &names, scale, rank_tolerance)
    }

    /// Sum of squares that the error of the simulated values adds to be expected.
    pub(crate) fn squares(&self, fit: &Fitted<'_>) -> f64 {
        self.points.iter().map(|point| fit.weighted(point, &|factor| Some(&factor.value)).norm_squared()).sum()
    }

    fn information(&self, fit: &Fitted<'_>, jacobian: &DMatrix<f64>) -> Information {
        let n = jacobian.ncols();
        let rows = jacobian.rows(0, fit.weights.n_residuals());
        let mut found = Information { of_values: DMatrix::zeros(n, n), of_slopes: DMatrix::zeros(n, n) };
        let moved: Vec<f64> =
            self.along.iter().map(|a| a.iter().zip(&fit.minimum.x).zip(&self.at).map(|((a, x), at)| a * (x - at)).sum()).collect();
        for point in &self.points {
            let of_values = fit.weighted(point, &|factor| Some(&factor.value));
            add_squares(&mut found.of_values, &(rows.transpose() * of_values));
            for (v, along) in self.along.iter().enumerate() {
                let of_slope = fit.weighted(point, &|factor| factor.slopes.get(v));
                let along = DVector::from_column_slice(along);
                found.of_slopes += &along * along.transpose() * of_slope.norm_squared();
                add_squares(&mut found.of_values, &(rows.transpose() * of_slope * moved[v]));
            }
        }
        found
    }
}

fn add_squares(sum: &mut DMatrix<f64>, columns: &DMatrix<f64>) {
    *sum += columns * columns.transpose();
}

impl Purged {
    /// What is to be said of the simulation's share, where it is large; with intervals from profiles, or from standard errors.
    pub(crate) fn notes(&self, are_profiled: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.wider.is_empty() {
            let each: Vec<String> = self.wider.iter().map(|(name, times)| format!("{name} {} times", two_digits(*times))).collect();
            notes.push(format!(
                "the simulation's own error makes intervals wider ({}): a smaller precision asked of it makes them narrower{}",
                each.join(", "),
                if are_profiled { ". This is of standard errors and bands: intervals by profile do not have it" } else { "" }
            ));
        }
        if let Some((share, direction)) = &self.lost {
            notes.push(format!(
                "{} % of what seems to tell how far {direction} goes is the simulation's own error in the slopes of the correction{}",
                two_digits(100.0 * share.min(1.0)),
                if *share > MOST_LOST { ": its intervals would be longer than they are" } else { "" }
            ));
        }
        notes
    }
}

/// A minimum with what belongs to it.
pub(crate) struct Fitted<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) weights: &'a Weights,
    pub(crate) minimum: &'a Minimum,
    /// Corrected values of all trials.
    pub(crate) solved: &'a TrialPredictions,
}

impl Fitted<'_> {
    /// Weighted errors of the predicted values from those of the factors at `point` that `of` gives, `(n_residuals, n_batches)`.
    fn weighted<'a>(&self, point: &'a PointError, of: &dyn Fn(&'a FactorError) -> Option<&'a Deviations>) -> DMatrix<f64> {
        let n_batches = point.measures.values().filter_map(of).map(Vec::len).max().unwrap_or(0);
        let observations = &self.weights.observations;
        let mut raw = DMatrix::zeros(observations.len(), n_batches);
        for (i, o) in
            observations.iter().enumerate().filter(|(_, o)| self.problem.trials.trials[o.trial_idx].controlled == point.controlled)
        {
            let factor = point.measures.get(&self.problem.trials.measures[o.measure_idx]);
            let Some((factor, deviations)) = factor.and_then(|f| Some((f, of(f)?))) else { continue };
            let size = if factor.is_ratio { self.solved.values[o.trial_idx][o.measure_idx] } else { 1.0 };
            deviations.iter().enumerate().for_each(|(b, d)| raw[(i, b)] = size * d);
        }
        self.weights.whiten_rows(&raw)
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    const N_OBS: usize = 40;
    const SIGMA: f64 = 0.1;
    const DRAWS: u32 = 4000;
    /// Error of a derivative along the direction, and of a value.
    const TAU: f64 = 0.05;
    const OF_VALUE: f64 = 0.08;

    /// Two columns that are nearly the same.
    fn jacobian() -> DMatrix<f64> {
        let along = |i: usize| (0.37 * f64::from(u32::try_from(i).unwrap())).sin();
        DMatrix::from_fn(N_OBS, 2, |i, j| 1.0 + if j == 0 { 0.1 } else { -0.1 } * along(i))
    }

    /// Covariance of estimates under drawn errors, of measurements, of derivatives along `(1, -1)` and of values, beside what is made of it.
    #[test]
    fn the_covariance_is_that_of_estimates_by_derivatives_that_err() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (exact, along) = (jacobian(), DVector::from_column_slice(&[1.0, -1.0]));
        let mut drawn = DMatrix::zeros(2, 2);
        let [mut said, mut plain] = [DVector::zeros(2), DVector::zeros(2)];
        for _ in 0..DRAWS {
            let errors = DVector::from_fn(N_OBS, |_, _| TAU * normal()) * along.transpose();
            let erring = &exact + errors;
            let error = DVector::from_fn(N_OBS, |_, _| (SIGMA * normal()) + OF_VALUE * normal());
            let found = (erring.transpose() * &exact).lu().solve(&(erring.transpose() * error)).unwrap();
            drawn += &found * found.transpose() / f64::from(DRAWS);
            let of_slopes = &along * along.transpose() * (40.0 * TAU * TAU);
            let information = Information { of_values: erring.transpose() * &erring * (OF_VALUE * OF_VALUE), of_slopes };
            let names = ["a".to_owned(), "b".to_owned()];
            let purged = information.purge(&erring, &[0, 1], &names, SIGMA * SIGMA, 1e-9);
            let of = |j: &DMatrix<f64>| (j.transpose() * j).try_inverse().unwrap().diagonal() * (SIGMA * SIGMA / f64::from(DRAWS));
            said += of(&purged.jacobian);
            plain += of(&erring);
        }
        for j in 0..2 {
            let (told, untold) = (said[j] / drawn[(j, j)], plain[j] / drawn[(j, j)]);
            assert!((0.9..1.15).contains(&told) && untold < 0.55, "{j}: {told} {untold}");
        }
    }

    #[test]
    fn without_errors_the_jacobian_tells_the_same() {
        let none = Information { of_values: DMatrix::zeros(3, 3), of_slopes: DMatrix::zeros(3, 3) };
        let given = jacobian().insert_column(1, 0.0);
        let names = ["a", "unseen", "b"].map(str::to_owned);
        let purged = none.purge(&given, &[0, 1, 2], &names, 1.0, 1e-9);
        assert!((purged.jacobian.transpose() * &purged.jacobian - given.transpose() * &given).norm() < 1e-10);
        assert_eq!(purged.notes(false), [""; 0]);
    }

    #[test]
    fn of_what_nothing_depends_on_nothing_is_seen() {
        let none = Information { of_values: DMatrix::zeros(2, 2), of_slopes: DMatrix::zeros(2, 2) };
        let purged = none.purge(&DMatrix::zeros(5, 2), &[0, 1], &["a", "b"].map(str::to_owned), 1.0, 1e-9);
        assert_eq!((purged.jacobian.shape(), purged.notes(false).len()), ((0, 2), 0));
    }

    #[test]
    fn what_is_mostly_error_is_said() {
        let of_slopes = DMatrix::from_row_slice(2, 2, &[1.0, -1.0, -1.0, 1.0]);
        let information = Information { of_values: DMatrix::zeros(2, 2), of_slopes };
        let names = ["a", "b"].map(str::to_owned);
        let purged = information.purge(&jacobian(), &[0, 1], &names, 1.0, 1e-9);
        let notes = purged.notes(false);
        assert!(notes[0].ends_with("(a 20 times, b 20 times): a smaller precision asked of it makes them narrower"), "{notes:?}");
        assert!(notes[1].starts_with("100 % of what seems to tell how far b up by 1 with a down by 0.98"), "{notes:?}");
        assert!(notes[1].contains("longer than they are"), "{notes:?}");
        assert!(purged.jacobian.iter().all(|v| v.is_finite()));
    }
}
