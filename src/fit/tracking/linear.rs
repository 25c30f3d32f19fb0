//! Linear states that walk at random, filtered and smoothed by square roots of information.
//!
//! ```text
//! x_{t+1} = x_t + S_t ε_t,  ε_t ~ N(0, I)          y_t = A_t x_t + η_t,  η_t ~ N(0, I)
//! ```
//!
//! What is known of `x_t` is a triangular system `R x = z + ν`, `ν ~ N(0, I)`; `R = 0` is nothing at all, so that a diffuse start is
//! exact. A trial adds its rows and `QR` makes the system triangular again, its remainder being the trial's share of the sum of squares; the
//! walk adds `ε` as unknowns, which `QR` eliminates:
//!
//! ```text
//! QR [ I     0  0 ]   =  [ R_ε  R_εx  z_ε ]        x_t = x_{t+1} - S ε,  ε = R_ε⁻¹ (z_ε - R_εx x_{t+1} - ν)
//!    [ -R S  R  z ]      [ 0    R'    z'  ]
//! ```
//!
//! Backwards the eliminated rows give the smoothed means, and with `G = I + S R_ε⁻¹ R_εx`, `B = S R_ε⁻¹` the covariances `P_t = G P_{t+1} Gᵀ + B Bᵀ`: the
//! smoother of Rauch, Tung and Striebel, without subtractions. The likelihood integrates all states out, with a flat density where
//! nothing is known at first:
//!
//! ```text
//! ln L = -½ ((M - n + k) ln 2π + Σ ln det R_t + E) - Σ ln |det R_ε| - ln |det R_T| - Σ ln s_prior
//! ```
//!
//! | symbol | is | shape |
//! |---|---|---|
//! | `A_t`, `y_t` | design and values of trial `t`, made independent and of unit variance | `(m_t, n)`, `(m_t)` |
//! | `S_t` | standard deviations of the walk into trial `t` | `(n)`, diagonal |
//! | `M`, `k` | values of all trials; components with a prior | |
//! | `E` | sum of squares that remains | |
//!
//! A shift `δ` of `x_t` that the walk does not allow for is seen in `r = Λ (x_t|T - x_t|t-1)`, of covariance `N = Λ - Λ P_t|T Λ`, `Λ = RᵀR` before trial `t`:
//! `δ̂_j = r_j / N_jj` with standard error `N_jj^(-1/2)` for a shift of one component, `rᵀ N⁺ r` chi-square for a shift of any.
//!
//! Sources: G. Bierman, Factorization Methods for Discrete Sequential Estimation (1977), chapters 5 and 10; P. de Jong and J. Penzer,
//! Journal of the American Statistical Association 93 (1998), for shifts; J. Durbin and S. Koopman, Time Series Analysis by State Space Methods, 2nd ed. (2012).

use nalgebra::{DMatrix, DVector};

use crate::fit::inference::{distribution::as_f64, identify};

/// Singular value of an information matrix, relative to the largest, below which a direction is not known.
const UNKNOWN: f64 = 1e-10;

/// Eigenvalue of the covariance of a shift's evidence, relative to the largest, below which there is none.
const NO_EVIDENCE: f64 = 1e-9;

/// One trial, its errors independent and of unit variance.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearTrial {
    /// `A`, `(m, n)`; `m` may be 0.
    pub design: DMatrix<f64>,
    /// `y`, `(m)`.
    pub values: DVector<f64>,
    /// `ln det` of the covariance that the errors had before they were made independent.
    pub log_determinant: f64,
}

/// Trials in order, the walk between them, what is known before the first.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearTrack {
    /// Trials, at least one.
    pub trials: Vec<LinearTrial>,
    /// Standard deviations of the walk into each trial but the first, `(n_trials - 1, n)`, ≥ 0.
    pub steps: Vec<DVector<f64>>,
    /// Mean and standard deviation of each component before the first trial, `(n)`; `None` where nothing is known.
    pub prior: Vec<Option<(f64, f64)>>,
}

/// Mean and covariance of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    /// Mean, `(n)`.
    pub mean: DVector<f64>,
    /// Covariance, `(n, n)`.
    pub covariance: DMatrix<f64>,
}

/// What the trials say of the states.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearPass {
    /// The state given the trials before; `None` while they do not determine it.
    pub predicted: Vec<Option<Gaussian>>,
    /// The state given the trials before and this one.
    pub filtered: Vec<Option<Gaussian>>,
    /// The state given all trials.
    pub smoothed: Vec<Gaussian>,
    /// Evidence of a shift into each trial; `None` for the first ones.
    pub shifts: Vec<Option<Shift>>,
    /// `ln L`.
    pub log_likelihood: f64,
}

/// Evidence of a shift of the state into one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Chi-square of a shift of any components.
    pub chi_square: f64,
    /// Its degrees of freedom, ≥ 1.
    pub dof: usize,
    /// Size of a shift of one component alone, `(n)`; 0 without evidence.
    pub sizes: Vec<f64>,
    /// Standard errors of the sizes, `(n)`; infinite without evidence.
    pub std_errors: Vec<f64>,
}

/// The trials leave a combination of the states undetermined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trials do not determine all tracked parameters")]
pub struct Undetermined;

/// What is known of a state: `root · x = rhs + ν`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Information {
    pub(super) root: DMatrix<f64>,
    pub(super) rhs: DVector<f64>,
}

/// The walk's own unknowns, eliminated.
struct Eliminated {
    root: DMatrix<f64>,
    cross: DMatrix<f64>,
    rhs: DVector<f64>,
}

fn triangular(mut matrix: DMatrix<f64>) -> DMatrix<f64> {
    let columns = matrix.ncols();
    if matrix.nrows() < columns {
        matrix = matrix.resize_vertically(columns, 0.0);
    }
    matrix.qr().unpack_r()
}

fn log_abs_determinant(triangle: &DMatrix<f64>) -> f64 {
    triangle.diagonal().iter().map(|d| d.abs().ln()).sum()
}

impl Information {
    /// What `prior` says.
    pub(super) fn of(prior: &[Option<(f64, f64)>]) -> Self {
        let n = prior.len();
        let mut found = Self { root: DMatrix::zeros(n, n), rhs: DVector::zeros(n) };
        for (j, (mean, deviation)) in prior.iter().enumerate().filter_map(|(j, p)| Some((j, (*p)?))) {
            found.root[(j, j)] = deviation.recip();
            found.rhs[j] = mean / deviation;
        }
        found
    }

    /// With a trial's rows; and the squares that remain.
    pub(super) fn updated(&self, design: &DMatrix<f64>, values: &DVector<f64>) -> (Self, f64) {
        let (n, m) = (self.rhs.len(), values.len());
        let mut stacked = DMatrix::zeros(n + m, n + 1);
        stacked.view_mut((0, 0), (n, n)).copy_from(&self.root);
        stacked.view_mut((0, n), (n, 1)).copy_from(&self.rhs);
        stacked.view_mut((n, 0), (m, n)).copy_from(design);
        stacked.view_mut((n, n), (m, 1)).copy_from(values);
        let r = triangular(stacked);
        let updated = Self { root: r.view((0, 0), (n, n)).into_owned(), rhs: r.view((0, n), (n, 1)).column(0).into_owned() };
        (updated, r[(n, n)].powi(2))
    }

    /// After a walk of standard deviations `step`.
    pub(super) fn advanced(&self, step: &DVector<f64>) -> Self {
        self.walk(step).0
    }

    fn walk(&self, step: &DVector<f64>) -> (Self, Eliminated) {
        let n = self.rhs.len();
        let mut stacked = DMatrix::zeros(2 * n, 2 * n + 1);
        stacked.view_mut((0, 0), (n, n)).fill_with_identity();
        let mut cross = -self.root.clone();
        cross.column_iter_mut().zip(step.iter()).for_each(|(mut column, s)| column *= *s);
        stacked.view_mut((n, 0), (n, n)).copy_from(&cross);
        stacked.view_mut((n, n), (n, n)).copy_from(&self.root);
        stacked.view_mut((n, 2 * n), (n, 1)).copy_from(&self.rhs);
        let r = triangular(stacked);
        let column = |row: usize| r.view((row, 2 * n), (n, 1)).column(0).into_owned();
        let eliminated =
            Eliminated { root: r.view((0, 0), (n, n)).into_owned(), cross: r.view((0, n), (n, n)).into_owned(), rhs: column(0) };
        (Self { root: r.view((n, n), (n, n)).into_owned(), rhs: column(n) }, eliminated)
    }

    /// Mean and covariance; `None` while a direction is not known.
    pub(super) fn gaussian(&self) -> Option<Gaussian> {
        let n = self.rhs.len();
        let found = identify(&self.root, UNKNOWN);
        if found.rank < n {
            return None;
        }
        let mean = self.root.solve_upper_triangular(&self.rhs)?;
        Some(Gaussian { mean, covariance: found.unscaled_covariance })
    }

    /// The same with another mean.
    pub(super) fn with_mean(&self, mean: &DVector<f64>) -> Self {
        Self { root: self.root.clone(), rhs: &self.root * mean }
    }
}

impl LinearTrack {
    /// Filters and smooths.
    ///
    /// # Errors
    /// [`Undetermined`].
    pub fn pass(&self) -> Result<LinearPass, Undetermined> {
        let forward = self.forward()?;
        let smoothed = self.backward(&forward)?;
        let predicted: Vec<Option<Gaussian>> = forward.before.iter().map(Information::gaussian).collect();
        let filtered = forward.after.iter().map(Information::gaussian).collect();
        let shifts = (0..self.trials.len()).map(|t| shift(&forward.before[t], predicted[t].as_ref()?, &smoothed[t])).collect();
        Ok(LinearPass { predicted, filtered, smoothed, shifts, log_likelihood: forward.log_likelihood })
    }

    /// `ln L` alone.
    ///
    /// # Errors
    /// [`Undetermined`].
    pub fn log_likelihood(&self) -> Result<f64, Undetermined> {
        self.forward().map(|forward| forward.log_likelihood)
    }

    fn forward(&self) -> Result<Forward, Undetermined> {
        let n = self.prior.len();
        let mut state = Information::of(&self.prior);
        let (mut before, mut after, mut eliminated) = (Vec::new(), Vec::new(), Vec::new());
        let (mut squares, mut logarithms, mut n_values) = (0.0, 0.0, 0_usize);
        for (t, trial) in self.trials.iter().enumerate() {
            if t > 0 {
                let (next, walk) = state.walk(&self.steps[t - 1]);
                logarithms += log_abs_determinant(&walk.root);
                eliminated.push(walk);
                state = next;
            }
            before.push(state.clone());
            if !trial.values.is_empty() {
                let (next, remainder) = state.updated(&trial.design, &trial.values);
                state = next;
                squares += remainder;
                n_values += trial.values.len();
            }
            logarithms += 0.5 * trial.log_determinant;
            after.push(state.clone());
        }
        if identify(&state.root, UNKNOWN).rank < n {
            return Err(Undetermined);
        }
        let known: Vec<f64> = self.prior.iter().flatten().map(|(_, deviation)| deviation.ln()).collect();
        let constants = as_f64(n_values + known.len()) - as_f64(n);
        let log_likelihood = -0.5 * (constants * std::f64::consts::TAU.ln() + squares)
            - logarithms
            - log_abs_determinant(&state.root)
            - known.iter().sum::<f64>();
        Ok(Forward { before, after, eliminated, log_likelihood })
    }

    fn backward(&self, forward: &Forward) -> Result<Vec<Gaussian>, Undetermined> {
        let last = forward.after.last().and_then(Information::gaussian).ok_or(Undetermined)?;
        let n = last.mean.len();
        let mut smoothed = vec![last];
        for (walk, step) in forward.eliminated.iter().zip(&self.steps).rev() {
            let Some(next) = smoothed.last() else { return Err(Undetermined) };
            let inverse = walk.root.solve_upper_triangular(&DMatrix::identity(n, n)).ok_or(Undetermined)?;
            let scaled = DMatrix::from_diagonal(step) * inverse;
            let gain = DMatrix::identity(n, n) + &scaled * &walk.cross;
            let mean = &gain * &next.mean - &scaled * &walk.rhs;
            let covariance = &gain * &next.covariance * gain.transpose() + &scaled * scaled.transpose();
            smoothed.push(Gaussian { mean, covariance });
        }
        smoothed.reverse();
        Ok(smoothed)
    }
}

struct Forward {
    before: Vec<Information>,
    after: Vec<Information>,
    eliminated: Vec<Eliminated>,
    log_likelihood: f64,
}

fn shift(before: &Information, predicted: &Gaussian, smoothed: &Gaussian) -> Option<Shift> {
    let information = before.root.transpose() * &before.root;
    let evidence = &information * (&smoothed.mean - &predicted.mean);
    let covariance = &information * (&predicted.covariance - &smoothed.covariance) * &information;
    let n = evidence.len();
    // In units of the information before the trial, so that components of any size compare.
    let scales: Vec<f64> = (0..n).map(|j| information[(j, j)].sqrt()).collect();
    if scales.iter().any(|s| *s <= 0.0 || !s.is_finite()) {
        return None;
    }
    let scaled = DMatrix::from_fn(n, n, |i, j| 0.5 * (covariance[(i, j)] + covariance[(j, i)]) / (scales[i] * scales[j]));
    let scaled_evidence = DVector::from_fn(n, |j, _| evidence[j] / scales[j]);
    let eigen = scaled.clone().symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let kept: Vec<usize> = (0..n).filter(|&i| largest > NO_EVIDENCE && eigen.eigenvalues[i] > NO_EVIDENCE * largest.max(1.0)).collect();
    if kept.is_empty() {
        return None;
    }
    let chi_square = kept.iter().map(|&i| eigen.eigenvectors.column(i).dot(&scaled_evidence).powi(2) / eigen.eigenvalues[i]).sum();
    let has_evidence = |j: usize| scaled[(j, j)] > NO_EVIDENCE * largest.max(1.0);
    let size = |j: usize| if has_evidence(j) { scaled_evidence[j] / scaled[(j, j)] / scales[j] } else { 0.0 };
    let std_error = |j: usize| if has_evidence(j) { (scaled[(j, j)].sqrt() * scales[j]).recip() } else { f64::INFINITY };
    Some(Shift { chi_square, dof: kept.len(), sizes: (0..n).map(size).collect(), std_errors: (0..n).map(std_error).collect() })
}
