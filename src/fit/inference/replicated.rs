//! What is lost by variances and covariances that replicates told, as [`super::variances`] has it for those that the residuals told.
//!
//! Trials at one operating point tell the covariance `S` of `m` measures with `ν_ij` degrees of freedom: Wishart's, so that what is left of it once
//! whitened by itself, `T = A S Aᵀ`, errs in each element alone. A fit scales all by the mean square error of `d` degrees of freedom, of which
//! `d - Σ ν_ii` are of the misfit between operating points; by so much, `φ` of the whole, one error of all variances is taken out again:
//!
//! ```text
//! U_t = (A_t A⁺)ᵀ J_t        G_t = (A_t A⁺)ᵀ (A_t A⁺)                          1 where trial t has all measures
//! N_ii = Σ_t u_i u_iᵀ        N_ij = Σ_t u_i u_jᵀ + u_j u_iᵀ                    rows u of U_t
//! N²_ii = Σ_t G_ii u_i u_iᵀ  N²_ij = Σ_t G_jj u_i u_iᵀ + G_ij (u_i u_jᵀ + u_j u_iᵀ) + G_ii u_j u_jᵀ
//! W_ij,ij = 1 / ν_ij         W_ii,kk = δ_ik 2 / ν_ii - (2 φ - φ²) 2 / Σ ν + 2 φ² / (d - Σ ν)
//! P = C + 2 C (Σ_a W_aa N²_a - Σ_ab W_ab N_a C N_b) C
//! ```
//!
//! With one measure that leaves `W = 2 / d` and `P = C`: the residuals tell its variance.
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `J_t`, `A_t` | weighted rows of trial `t`, and what makes its errors independent | `(r_t, n_free)`, `(r_t, m_t)` |
//! | `A⁺` | the right inverse of `A`, at the measures that the trial has | `(m_t, r)` |
//! | `a`, `b` | elements of `T`: the diagonal ones, and where the whole covariance is believed the others, too | |
//!
//! Source: M. Kenward and J. Roger, Biometrics 53 (1997), section 2, for a covariance that is linear in what is estimated; the part that the mean square
//! error takes back is ours, and exact for one measure.

use nalgebra::DMatrix;

use super::{
    distribution::as_f64,
    variances::{Component, Components},
};
use crate::model::Measure;

/// The weighted rows of one trial.
#[derive(Clone, Debug)]
pub struct TrialRows {
    /// `U_t`.
    pub rows: DMatrix<f64>,
    /// `G_t`.
    pub overlap: DMatrix<f64>,
}

impl TrialRows {
    /// Of the weighted `jacobian`, `(r_t, n_free)`, of which `back` is `A_t A⁺`, `(r_t, r)`.
    pub fn of(jacobian: &DMatrix<f64>, back: &DMatrix<f64>) -> Self {
        Self { rows: back.transpose() * jacobian, overlap: back.transpose() * back }
    }
}

/// What replicates told of the errors of `measures`, of which directions are told apart.
#[derive(Clone, Debug)]
pub struct Told<'a> {
    /// The measure nearest to each direction, `(r)`.
    pub measures: &'a [Measure],
    /// Degrees of freedom by pairs of directions, `(r, r)`.
    pub dof: &'a DMatrix<f64>,
    /// Whether directions are told to be independent, beside how large their errors are.
    pub is_whole: bool,
    /// `d`, degrees of freedom of the residuals, > 0.
    pub of_residuals: usize,
}

/// The elements of the covariance, of which each errs alone but for what the mean square error has of all.
pub fn components(trials: &[TrialRows], told: &Told<'_>) -> Components {
    let r = told.measures.len();
    let diagonal = (0..r).map(|i| (i, i));
    let beside = (0..r).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|_| told.is_whole);
    let places: Vec<(usize, usize)> = diagonal.chain(beside).collect();
    let all = components_at(trials, told.measures, &places);
    let pure: f64 = (0..r).map(|i| told.dof[(i, i)]).sum();
    let d = as_f64(told.of_residuals);
    let misfit = (d - pure).max(0.0);
    let share = misfit / d;
    let common = if misfit > 0.0 { 2.0 * share * share / misfit } else { 0.0 } - (2.0 * share - share * share) * 2.0 / pure;
    let spread = DMatrix::from_fn(places.len(), places.len(), |a, b| match (places[a], places[b]) {
        ((i, j), (k, l)) if i == j && k == l => common + if i == k { 2.0 / told.dof[(i, i)] } else { 0.0 },
        ((i, j), other) if (i, j) == other => 1.0 / told.dof[(i, j)],
        _ => 0.0,
    });
    Components { all, spread }
}

fn components_at(trials: &[TrialRows], measures: &[Measure], places: &[(usize, usize)]) -> Vec<Component> {
    let n_free = trials.first().map_or(0, |t| t.rows.ncols());
    let product = |t: &TrialRows, i: usize, j: usize| t.rows.row(i).transpose() * t.rows.row(j);
    let sum = |of: &dyn Fn(&TrialRows) -> DMatrix<f64>| trials.iter().fold(DMatrix::zeros(n_free, n_free), |sum, t| sum + of(t));
    let at = |&(i, j): &(usize, usize)| {
        if i == j {
            return Component {
                measures: vec![measures[i].clone()],
                n: trials.iter().filter(|t| t.overlap[(i, i)] > 0.0).count(),
                information: sum(&|t| product(t, i, i)),
                squared: sum(&|t| t.overlap[(i, i)] * product(t, i, i)),
            };
        }
        let both = |t: &TrialRows| product(t, i, j) + product(t, j, i);
        let squared =
            |t: &TrialRows| t.overlap[(j, j)] * product(t, i, i) + t.overlap[(i, j)] * both(t) + t.overlap[(i, i)] * product(t, j, j);
        Component {
            measures: vec![measures[i].clone(), measures[j].clone()],
            n: trials.iter().filter(|t| t.overlap[(i, i)] > 0.0 && t.overlap[(j, j)] > 0.0).count(),
            information: sum(&both),
            squared: sum(&squared),
        }
    };
    places.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::inference::variances::EstimatedVariances;

    fn measures(names: &[&str]) -> Vec<Measure> {
        names.iter().map(|name| Measure::Throughput((*name).into())).collect()
    }

    /// Expected values: the formulas over the whole covariance of eight values, `(8, 8)`, and its derivatives, in numpy 2: four trials of two measures with the
    /// covariance 4, 1, 2, six degrees of freedom, of 14 of the residuals.
    #[test]
    fn a_whole_covariance_as_by_all_values_at_once() {
        let rows = [
            [0.525_821_037_819, -0.135_841_980_999, -0.096_054_785_935, 0.743_623_243_065],
            [0.389_979_056_820, 0.661_663_018_819, 0.647_568_457_131, -0.839_678_029_000],
            [0.254_137_075_820, 0.915_800_094_639, 1.391_191_700_196, 0.551_513_671_196],
            [0.389_979_056_820, 1.441_621_132_458, 0.647_568_457_131, 0.455_458_885_262],
        ];
        let trials: Vec<TrialRows> =
            rows.iter().map(|r| TrialRows::of(&DMatrix::from_row_slice(2, 2, r), &DMatrix::identity(2, 2))).collect();
        let c = DMatrix::from_row_slice(2, 2, &[0.329_842_93, -0.091_623_04, -0.091_623_04, 0.219_895_29]);
        let (names, dof) = (measures(&["a", "b"]), DMatrix::from_element(2, 2, 6.0));
        let told = Told { measures: &names, dof: &dof, is_whole: true, of_residuals: 14 };
        let (found, more) = EstimatedVariances::of_components(&components(&trials, &told), &c, &c, 1.0, 14).unwrap();
        for (got, expected) in more.iter().zip([0.102_612_98, -0.039_398_17, -0.039_398_17, 0.103_330_94]) {
            assert!((got - expected).abs() < 1e-7, "{more}");
        }
        assert!((found.degrees_of_freedom(&[1.0, 0.0]) - 8.342_809).abs() < 1e-5);
        assert_eq!(found.groups.iter().map(|g| (g.measures.len(), g.n)).collect::<Vec<_>>(), [(1, 4), (1, 4), (2, 4)]);
    }

    #[test]
    fn the_residuals_tell_the_variance_of_one_measure() {
        let trials: Vec<TrialRows> =
            (1..=7).map(|k| TrialRows::of(&DMatrix::from_row_slice(1, 2, &[1.0, f64::from(k)]), &DMatrix::identity(1, 1))).collect();
        let c = trials.iter().fold(DMatrix::zeros(2, 2), |sum, t| sum + t.rows.transpose() * &t.rows).cholesky().unwrap().inverse();
        let (names, dof) = (measures(&["a"]), DMatrix::from_element(1, 1, 3.0));
        let told = Told { measures: &names, dof: &dof, is_whole: true, of_residuals: 5 };
        let (found, more) = EstimatedVariances::of_components(&components(&trials, &told), &c, &c, 1.0, 100).unwrap();
        assert!(more.norm() < 1e-12, "{more}");
        assert!((found.degrees_of_freedom(&[1.0, -0.3]) - 5.0).abs() < 1e-9);
    }

    /// A trial without the second measure has nothing of what only that tells.
    #[test]
    fn a_trial_without_a_measure_tells_of_the_others() {
        let whole = TrialRows::of(&DMatrix::from_row_slice(2, 1, &[1.0, 2.0]), &DMatrix::identity(2, 2));
        let part = TrialRows::of(&DMatrix::from_row_slice(1, 1, &[3.0]), &DMatrix::from_row_slice(1, 2, &[1.0, 0.0]));
        let (names, dof) = (measures(&["a", "b"]), DMatrix::from_element(2, 2, 4.0));
        let told = Told { measures: &names, dof: &dof, is_whole: false, of_residuals: 8 };
        let found = components(&[whole, part], &told).all;
        let of = |c: &Component| (c.n, c.information[(0, 0)], c.squared[(0, 0)]);
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [(2, 10.0, 10.0), (1, 4.0, 4.0)]);
    }
}
