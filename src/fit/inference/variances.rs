//! What is lost by variances that are estimated from the residuals they weigh.
//!
//! The covariance of the estimates, `C = (Σ_k N_k)⁻¹` in units of the errors, takes the variances `s_k²` of the groups of measures for known.
//! Where they are estimated from few residuals, the weights err, the estimates scatter by that, and `C` itself is uncertain:
//!
//! ```text
//! N_k = J_kᵀ J_k        B_k = C N_k C        D_k = C N_k
//! (W⁻¹)_kl = ½ (δ_kl (n_k - 2 tr D_k) + tr D_k D_l)        covariance of the relative errors of s_k² and s_l²
//! P = C + 2 Σ_kl W_kl (δ_kl B_k - D_k B_l)                 covariance of the estimates, with what they scatter by the weights
//! ν(h) = 2 (hᵀ C h)² / (gᵀ W g),  g_k = hᵀ B_k h           degrees of freedom of hᵀ P h, h a gradient
//! ```
//!
//! and of the variance of one new measurement of group `k`, `hᵀ P h + r`, likewise with `g_k + r`. For `l` parameters together,
//! `λ (x - x̂)ᵀ P⁻¹ (x - x̂) / l` is about F with `l` and `m` degrees of freedom:
//!
//! ```text
//! A₁ = Σ W_kl tr D_k tr D_l    A₂ = Σ W_kl tr D_k D_l    B = (A₁ + 6 A₂) / 2l    g = ((l+1) A₁ - (l+4) A₂) / ((l+2) A₂)
//! c₁, c₂, c₃ = (g, l - g, l + 2 - g) / (3l + 2 (1 - g))
//! E = 1 / (1 - A₂/l)    V = 2/l (1 + c₁ B) / ((1 - c₂ B)² (1 - c₃ B))    ρ = V / 2E²
//! m = 4 + (l + 2) / (l ρ - 1)    λ = m / (E (m - 2))
//! ```
//!
//! A test that these parameters have the values `x₀` by the sum of squares that they save, which has the weights for known as `C` has, takes
//!
//! ```text
//! μ F ~ F(l, m),    μ = λ (x̂ - x₀)ᵀ P⁻¹ (x̂ - x₀) / (x̂ - x₀)ᵀ C⁻¹ (x̂ - x₀)
//! ```
//!
//! With one variance for all, `P = C` and `ν = m` are the degrees of freedom of the residuals, `λ = 1`: Student's t and F as they are. No more than
//! these, and no fewer than one, are taken.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `J_k` | rows of the weighted Jacobian that belong to group `k`; those of priors belong to none, as their errors are known | `(n_k, n_free)` |
//! | `C`, `N_k`, `B_k`, `D_k` | above | `(n_free, n_free)` |
//! | `W` | above; by the information of the residuals (restricted likelihood) | `(n_groups, n_groups)` |
//!
//! Source: M. Kenward and J. Roger, Small sample inference for fixed effects from restricted maximum likelihood, Biometrics 53 (1997), 983–997, for
//! variances that the covariance is linear in; the degrees of freedom for one gradient are those of F. Satterthwaite (1946).

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::distribution::as_f64;
use crate::model::Measure;

/// Measures that share one estimated variance, or one estimated factor of given ones; or two whose covariance replicates told, each the measure nearest to
/// one of the directions whose errors are independent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VarianceGroup {
    /// The measures.
    pub measures: Vec<Measure>,
    /// Values of them that count.
    pub n: usize,
    /// Its part of the covariance, `B_k` in the parameters' units, over the free parameters.
    pub part: Vec<Vec<f64>>,
}

/// Variances, or the elements of a covariance, that were estimated, and how uncertain they make the covariance of the estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatedVariances {
    /// The groups.
    pub groups: Vec<VarianceGroup>,
    /// Covariance of the relative errors of their variances, `W`.
    pub spread: Vec<Vec<f64>>,
    /// Covariance of the estimates as if the variances were known, over the free parameters.
    pub covariance: Vec<Vec<f64>>,
    /// Degrees of freedom of the residuals: the most that anything has.
    pub most_degrees_of_freedom: usize,
}

/// Rows of a weighted Jacobian, `(n_rows, n_free)`, by whose variance weighs them.
#[derive(Clone, Debug)]
pub struct GroupedRows<'a> {
    /// The Jacobian.
    pub jacobian: &'a DMatrix<f64>,
    /// Group of each row, from 0; `None` where its error is known.
    pub group_of: &'a [Option<usize>],
    /// Measures of each group.
    pub measures: &'a [Vec<Measure>],
}

/// An element of what weighs the measures: a variance of some, or a covariance of two.
#[derive(Clone, Debug)]
pub struct Component {
    /// The measures.
    pub measures: Vec<Measure>,
    /// Values of them that count.
    pub n: usize,
    /// `N_k`, of a covariance the derivative of `Σ N` by it, `(n_free, n_free)`.
    pub information: DMatrix<f64>,
    /// The same with the element's derivative of the errors' covariance twice; `N_k` itself of a variance.
    pub squared: DMatrix<f64>,
}

/// All of them, with the covariance `W` of their relative errors.
#[derive(Clone, Debug)]
pub struct Components {
    /// The elements.
    pub all: Vec<Component>,
    /// `W`, `(n, n)`.
    pub spread: DMatrix<f64>,
}

/// Degrees of freedom of several parameters together, and what their F is times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointFreedom {
    /// `m`, ≥ 1.
    pub degrees_of_freedom: f64,
    /// `λ`, > 0; of a test `μ`.
    pub factor: f64,
}

/// Fewest degrees of freedom that anything is given.
const FEWEST: f64 = 1.0;

/// Degrees of freedom of which F has a mean.
const WITH_MEAN: f64 = 2.0;

impl EstimatedVariances {
    /// What the variances of `rows` take from estimates with the unscaled covariance `known`, `(n_free, n_free)`, of which `sharp` is that
    /// by the rows alone, all times `scale` in the parameters' units; and `P - C`, unscaled. `None` where one variance is all there is, or where the
    /// residuals of some group do not tell its variance.
    pub fn of(
        rows: &GroupedRows<'_>,
        sharp: &DMatrix<f64>,
        known: &DMatrix<f64>,
        scale: f64,
        most_degrees_of_freedom: usize,
    ) -> Option<(Self, DMatrix<f64>)> {
        let (n_groups, n_free) = (rows.measures.len(), sharp.nrows());
        if n_groups == 0 || n_free == 0 || n_groups == 1 && rows.group_of.iter().all(Option::is_some) {
            return None;
        }
        let none = |measures: &Vec<Measure>| {
            let information = DMatrix::<f64>::zeros(n_free, n_free);
            Component { measures: measures.clone(), n: 0, squared: information.clone(), information }
        };
        let mut all: Vec<Component> = rows.measures.iter().map(none).collect();
        for (row, group) in rows.jacobian.row_iter().zip(rows.group_of) {
            let Some(k) = *group else { continue };
            all[k].n += 1;
            all[k].information += row.transpose() * row;
        }
        all.iter_mut().for_each(|c| c.squared.clone_from(&c.information));
        let shares: Vec<DMatrix<f64>> = all.iter().map(|c| sharp * &c.information).collect();
        let mut of_variances = DMatrix::from_fn(n_groups, n_groups, |k, l| (&shares[k] * &shares[l]).trace());
        for k in 0..n_groups {
            of_variances[(k, k)] += as_f64(all[k].n) - 2.0 * shares[k].trace();
        }
        let spread = (0.5 * of_variances).cholesky()?.inverse();
        Self::of_components(&Components { all, spread }, sharp, known, scale, most_degrees_of_freedom)
    }

    /// The same of elements of a covariance that err as is given; the other arguments as for [`Self::of`].
    pub fn of_components(
        Components { all, spread }: &Components,
        sharp: &DMatrix<f64>,
        known: &DMatrix<f64>,
        scale: f64,
        most_degrees_of_freedom: usize,
    ) -> Option<(Self, DMatrix<f64>)> {
        let n_free = sharp.nrows();
        if all.is_empty() || n_free == 0 {
            return None;
        }
        let parts: Vec<DMatrix<f64>> = all.iter().map(|c| sharp * &c.information * sharp).collect();
        let mut more = DMatrix::zeros(n_free, n_free);
        for (k, c) in all.iter().enumerate() {
            more += 2.0 * spread[(k, k)] * sharp * &c.squared * sharp;
            for (l, part) in parts.iter().enumerate() {
                more -= 2.0 * spread[(k, l)] * sharp * &c.information * part;
            }
        }
        let more = 0.5 * (&more + more.transpose());
        if !more.iter().chain(spread.iter()).all(|v| v.is_finite()) {
            return None;
        }
        let group =
            |(c, part): (&Component, &DMatrix<f64>)| VarianceGroup { measures: c.measures.clone(), n: c.n, part: rows_of(&(scale * part)) };
        let found = Self {
            groups: all.iter().zip(&parts).map(group).collect(),
            spread: rows_of(spread),
            covariance: rows_of(&(scale * known)),
            most_degrees_of_freedom,
        };
        Some((found, more))
    }

    /// Whether all is over `n_free` parameters.
    pub(crate) fn is_over(&self, n_free: usize) -> bool {
        let is_square = |rows: &[Vec<f64>], n: usize| rows.len() == n && rows.iter().all(|row| row.len() == n);
        is_square(&self.spread, self.groups.len())
            && is_square(&self.covariance, n_free)
            && self.groups.iter().all(|g| is_square(&g.part, n_free))
    }

    /// Degrees of freedom of the variance of what has the `gradient`, `(n_free)`, at least 1.
    pub fn degrees_of_freedom(&self, gradient: &[f64]) -> f64 {
        self.satterthwaite(quadratic(&self.covariance, gradient), &self.parts_along(gradient))
    }

    /// The same of the variance of one measurement of `measure` with an error of `variance` around it.
    pub fn degrees_of_freedom_of_new(&self, gradient: &[f64], measure: &Measure, variance: f64) -> f64 {
        let mut parts = self.parts_along(gradient);
        if let Some(k) = self.groups.iter().position(|g| g.measures.contains(measure)) {
            parts[k] += variance;
        }
        self.satterthwaite(quadratic(&self.covariance, gradient) + variance, &parts)
    }

    /// Of the parameters at `places` among the free ones together; `None` where their covariance has no inverse.
    pub fn joint(&self, places: &[usize]) -> Option<JointFreedom> {
        let l = as_f64(places.len());
        let inverse = among(&self.covariance, places).cholesky()?.inverse();
        let shares: Vec<DMatrix<f64>> = self.groups.iter().map(|g| &inverse * among(&g.part, places)).collect();
        let (mut apart, mut together) = (0.0, 0.0);
        for (k, row) in self.spread.iter().enumerate() {
            for (l, w) in row.iter().enumerate() {
                apart += w * shares[k].trace() * shares[l].trace();
                together += w * (&shares[k] * &shares[l]).trace();
            }
        }
        let b = (apart + 6.0 * together) / (2.0 * l);
        let g = ((l + 1.0) * apart - (l + 4.0) * together) / ((l + 2.0) * together);
        let by = 3.0 * l + 2.0 * (1.0 - g);
        let (c1, c2, c3) = (g / by, (l - g) / by, (l + 2.0 - g) / by);
        let mean = (1.0 - together / l).recip();
        let variance = 2.0 / l * (1.0 + c1 * b) / ((1.0 - c2 * b).powi(2) * (1.0 - c3 * b));
        let rho = variance / (2.0 * mean * mean);
        let dof = (4.0 + (l + 2.0) / (l * rho - 1.0)).min(as_f64(self.most_degrees_of_freedom));
        let factor = dof / (mean * (dof - WITH_MEAN));
        let is_usable = together > 0.0 && mean > 0.0 && rho > 0.0 && dof > WITH_MEAN && factor > 0.0 && factor.is_finite();
        Some(if is_usable { JointFreedom { degrees_of_freedom: dof, factor } } else { self.least_of(places) })
    }

    /// Of the test that the parameters at `places` among the free ones are `away`, `(n_places)`, from their estimates, which have the covariance `whole`,
    /// `P`, over the free parameters; by the sum of squares. `None` where a covariance has no inverse.
    pub fn of_test(&self, whole: &[Vec<f64>], places: &[usize], away: &[f64]) -> Option<JointFreedom> {
        let away = DVector::from_column_slice(away);
        let distance = |rows: &[Vec<f64>]| Some(away.dot(&among(rows, places).cholesky()?.solve(&away)));
        let (widened, as_known) = (distance(whole)?, distance(&self.covariance)?);
        let joint = self.joint(places)?;
        // At the estimates themselves there is nothing to be told.
        let share = if as_known > 0.0 { widened / as_known } else { 1.0 };
        Some(JointFreedom { factor: joint.factor * share, ..joint })
    }

    /// The fewest degrees of freedom that any of the parameters has alone, where too few residuals tell more.
    fn least_of(&self, places: &[usize]) -> JointFreedom {
        let alone = |&k: &usize| self.degrees_of_freedom(&unit(self.covariance.len(), k));
        JointFreedom { degrees_of_freedom: places.iter().map(alone).fold(f64::INFINITY, f64::min), factor: 1.0 }
    }

    fn parts_along(&self, gradient: &[f64]) -> Vec<f64> {
        self.groups.iter().map(|g| quadratic(&g.part, gradient)).collect()
    }

    fn satterthwaite(&self, variance: f64, parts: &[f64]) -> f64 {
        let most = as_f64(self.most_degrees_of_freedom).max(FEWEST);
        let dof = 2.0 * variance * variance / quadratic(&self.spread, parts);
        if dof.is_nan() { most } else { dof.clamp(FEWEST, most) }
    }
}

/// `gᵀ A g` of a symmetric matrix `A`, by rows.
pub(crate) fn quadratic(matrix: &[Vec<f64>], g: &[f64]) -> f64 {
    matrix.iter().zip(g).map(|(row, a)| a * row.iter().zip(g).map(|(m, b)| m * b).sum::<f64>()).sum()
}

/// The gradient of parameter `k` alone, `(n)`.
pub(crate) fn unit(n: usize, k: usize) -> Vec<f64> {
    (0..n).map(|j| if j == k { 1.0 } else { 0.0 }).collect()
}

/// The rows and columns at `places`.
fn among(matrix: &[Vec<f64>], places: &[usize]) -> DMatrix<f64> {
    DMatrix::from_fn(places.len(), places.len(), |a, b| matrix[places[a]][places[b]])
}

fn rows_of(matrix: &DMatrix<f64>) -> Vec<Vec<f64>> {
    matrix.row_iter().map(|row| row.iter().copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_groups(group_of: &[Option<usize>]) -> (EstimatedVariances, DMatrix<f64>, DMatrix<f64>) {
        let jacobian = DMatrix::from_row_slice(8, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0, 2.0, 1.0]);
        let measures = [vec![Measure::Throughput("a".into())], vec![Measure::Throughput("b".into())]];
        let rows = GroupedRows { jacobian: &jacobian, group_of, measures: &measures };
        let sharp = (jacobian.transpose() * &jacobian).cholesky().unwrap().inverse();
        let (found, more) = EstimatedVariances::of(&rows, &sharp, &sharp, 1.0, 6).unwrap();
        (found, sharp, more)
    }

    const HALVES: [Option<usize>; 8] = [Some(0), Some(0), Some(0), Some(0), Some(1), Some(1), Some(1), Some(1)];

    /// Expected values: the formulas over the 8 × 8 projection `Q = 1 - J C Jᵀ`, with `W⁻¹ = ½ tr Q_kl Q_lk`, in numpy 2.
    #[test]
    fn two_variances_as_by_the_whole_projection() {
        let (found, sharp, more) = two_groups(&HALVES);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-7, "{a} {b}");
        near(found.spread[0][0], 0.780_697_56);
        near(found.spread[0][1], -0.130_912_57);
        near(found.spread[1][1], 0.815_097_95);
        let all = sharp + more;
        near(all[(0, 0)], 0.339_371_98);
        near(all[(0, 1)], -0.145_445_13);
        near(all[(1, 1)], 0.149_267_40);
        near(found.degrees_of_freedom(&[1.0, 0.0]), 4.620_309_050_8);
        near(found.degrees_of_freedom(&[1.0, 1.0]), 5.862_745_098_0);
        near(found.degrees_of_freedom_of_new(&[1.0, 0.0], &Measure::Throughput("b".into()), 1.0), 2.727_248_190_1);
        let joint = found.joint(&[0, 1]).unwrap();
        near(joint.degrees_of_freedom, 5.189_230_231_6);
        near(joint.factor, 0.966_315_548_5);
        let test = found.of_test(&rows_of(&all), &[0, 1], &[0.5, 0.25]).unwrap();
        near(test.degrees_of_freedom, joint.degrees_of_freedom);
        near(test.factor, 0.534_695_844);
        // Of one parameter alone it is as much as its interval is wider.
        let alone = found.of_test(&rows_of(&all), &[1], &[-0.1]).unwrap();
        near(alone.factor, found.covariance[1][1] / all[(1, 1)]);
        near(alone.degrees_of_freedom, found.degrees_of_freedom(&[0.0, 1.0]));
    }

    #[test]
    fn one_variance_leaves_student_and_fisher() {
        let covariance = vec![vec![2.0, 0.5], vec![0.5, 1.0]];
        let group = VarianceGroup { measures: Vec::new(), n: 9, part: covariance.clone() };
        let found = EstimatedVariances { groups: vec![group], spread: vec![vec![2.0 / 7.0]], covariance, most_degrees_of_freedom: 100 };
        assert!((found.degrees_of_freedom(&[3.0, -1.0]) - 7.0).abs() < 1e-12);
        let joint = found.joint(&[0, 1]).unwrap();
        assert!((joint.degrees_of_freedom - 7.0).abs() < 1e-9 && (joint.factor - 1.0).abs() < 1e-9, "{joint:?}");
    }

    #[test]
    fn of_one_group_alone_nothing_is_said() {
        let jacobian = DMatrix::from_row_slice(3, 1, &[1.0, 1.0, 1.0]);
        let sharp = DMatrix::from_element(1, 1, 1.0 / 3.0);
        let measures = [vec![Measure::Throughput("a".into())]];
        let rows = GroupedRows { jacobian: &jacobian, group_of: &[Some(0); 3], measures: &measures };
        assert!(EstimatedVariances::of(&rows, &sharp, &sharp, 1.0, 2).is_none());
    }

    #[test]
    fn what_knows_its_error_adds_no_uncertainty() {
        let mut half_known = HALVES;
        half_known[4..].fill(None);
        let measures = [vec![Measure::Throughput("a".into())]];
        let jacobian = DMatrix::from_row_slice(8, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0, 2.0, 1.0]);
        let rows = GroupedRows { jacobian: &jacobian, group_of: &half_known, measures: &measures };
        let sharp = (jacobian.transpose() * &jacobian).cholesky().unwrap().inverse();
        let (found, more) = EstimatedVariances::of(&rows, &sharp, &sharp, 1.0, 6).unwrap();
        assert!(found.groups.len() == 1 && more.symmetric_eigenvalues().min() > 0.0);
        // What only those tell that know their error has as many degrees of freedom as there can be.
        assert!((found.degrees_of_freedom(&[0.1, 0.2]) - 6.0).abs() < 1e-12);
    }
}
