//! Drifts and factors of the errors, by maximum likelihood of the innovations.
//!
//! The likelihood of the linearised track ([`super::linear`]) is maximised over the logarithms of the drifts `q` and of the factors `f` of the
//! standard errors that are not known, by a quasi-Newton search (Broyden, Fletcher, Goldfarb, Shanno) with differences, from two starts: almost no drift,
//! and much. A drift whose absence costs no likelihood is 0. Likelihood ratio of all drifts against none:
//!
//! ```text
//! λ = 2 (ln L(q̂, f̂) - ln L(0, f̂₀))        p = ½ P(χ²_1 > λ) for one drift, at most P(χ²_k > λ) for k
//! ```
//!
//! since 0 is the edge of a drift's range (S. Self and K. Liang, Journal of the American Statistical Association 82 (1987)).

use nalgebra::{DMatrix, DVector};

use super::linear::{LinearTrack, LinearTrial};

/// Rows of one trial before the factors of their errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Design, `(m, n)`.
    pub design: DMatrix<f64>,
    /// Values, `(m)`.
    pub values: DVector<f64>,
    /// `ln det R`.
    pub log_determinant: f64,
    /// Index of each row's factor, `(m)`; `None` where its error is known.
    pub factor_idx: Vec<Option<usize>>,
}

/// A track whose noise may be unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyTrack {
    /// Trials in order.
    pub rows: Vec<Rows>,
    /// Roots of the times between trials, `(n_trials - 1)`.
    pub root_gaps: Vec<f64>,
    /// As [`LinearTrack::prior`].
    pub prior: Vec<Option<(f64, f64)>>,
    /// Size of each component, `(n)`, > 0: what drifts are counted in.
    pub scales: Vec<f64>,
}

/// Noise of a track.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Drift of each component, `(n)`, ≥ 0, per root of time.
    pub drifts: Vec<f64>,
    /// Factors of standard errors, > 0.
    pub factors: Vec<f64>,
}

/// Noise that was estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatedNoise {
    /// The most likely noise.
    pub noise: Noise,
    /// Its `ln L`.
    pub log_likelihood: f64,
    /// `ln L` without any of the estimated drifts; `None` where none is estimated.
    pub without_drift: Option<f64>,
}

/// Smallest and largest drift and factor that are searched, relative to their scales.
const DRIFTS: (f64, f64) = (1e-6, 1e2);
const FACTORS: (f64, f64) = (1e-3, 1e3);

/// Relative drifts from which the search starts.
const STARTS: [f64; 2] = [2e-3, 1e-1];

/// Fall of `ln L` that a drift must be worth.
const WORTH: f64 = 1e-3;

/// Step of the differences and largest gradient at the end, in logarithms.
const DIFFERENCE: f64 = 1e-4;
const FLAT: f64 = 1e-4;
const MOST_STEPS: usize = 60;

impl NoisyTrack {
    /// The track with its noise.
    pub fn with(&self, noise: &Noise) -> LinearTrack {
        let drifts = DVector::from_row_slice(&noise.drifts);
        LinearTrack {
            trials: self.rows.iter().map(|rows| rows.with(&noise.factors)).collect(),
            steps: self.root_gaps.iter().map(|gap| &drifts * *gap).collect(),
            prior: self.prior.clone(),
        }
    }

    fn log_likelihood(&self, noise: &Noise) -> f64 {
        self.with(noise).log_likelihood().unwrap_or(f64::NEG_INFINITY)
    }

    /// Estimates the components of `noise` that are named by `drifts` and, with `estimate_factors`, all factors.
    pub fn estimate(&self, noise: &Noise, drifts: &[usize], factors: FactorSearch) -> EstimatedNoise {
        let mut best = self.search(noise, drifts, factors, None);
        if drifts.is_empty() {
            return EstimatedNoise { log_likelihood: self.log_likelihood(&best), noise: best, without_drift: None };
        }
        for start in STARTS {
            let found = self.search(noise, drifts, factors, Some(start));
            if self.log_likelihood(&found) > self.log_likelihood(&best) {
                best = found;
            }
        }
        // The smallest drifts first: what costs nothing is left out.
        let mut order = drifts.to_vec();
        order.sort_by(|&a, &b| (best.drifts[a] / self.scales[a]).total_cmp(&(best.drifts[b] / self.scales[b])));
        let mut left = drifts.to_vec();
        for j in order {
            let mut without = best.clone();
            without.drifts[j] = 0.0;
            let others: Vec<usize> = left.iter().copied().filter(|&k| k != j).collect();
            let refound = self.search(&without, &others, factors, None);
            if self.log_likelihood(&refound) >= self.log_likelihood(&best) - WORTH {
                (best, left) = (refound, others);
            }
        }
        let mut none = best.clone();
        drifts.iter().for_each(|&j| none.drifts[j] = 0.0);
        let none = self.search(&none, &[], factors, None);
        EstimatedNoise { log_likelihood: self.log_likelihood(&best), without_drift: Some(self.log_likelihood(&none)), noise: best }
    }

    /// Climbs from `noise`, its drifts moved to `start` of their scales where that is given.
    fn search(&self, noise: &Noise, drifts: &[usize], factors: FactorSearch, start: Option<f64>) -> Noise {
        let n_factors = if factors == FactorSearch::All { noise.factors.len() } else { 0 };
        let ln_drift = |j: usize| match start {
            Some(start) => start.ln(),
            None => (noise.drifts[j] / self.scales[j]).max(STARTS[0]).ln(),
        };
        let first: Vec<f64> = drifts.iter().map(|&j| ln_drift(j)).chain(noise.factors.iter().take(n_factors).map(|f| f.ln())).collect();
        let limit = |k: usize| if k < drifts.len() { DRIFTS } else { FACTORS };
        let at = |p: &DVector<f64>| {
            let mut moved = noise.clone();
            for (k, value) in p.iter().enumerate() {
                let (low, high) = limit(k);
                let value = value.exp().clamp(low, high);
                match drifts.get(k) {
                    Some(&j) => moved.drifts[j] = value * self.scales[j],
                    None => moved.factors[k - drifts.len()] = value,
                }
            }
            moved
        };
        if first.is_empty() {
            return noise.clone();
        }
        at(&climb(&|p| self.log_likelihood(&at(p)), DVector::from_vec(first)))
    }
}

/// Which factors of standard errors are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorSearch {
    /// All.
    All,
    /// None: they are as they stand.
    None,
}

impl Rows {
    fn with(&self, factors: &[f64]) -> LinearTrial {
        let (mut design, mut values, mut log_determinant) = (self.design.clone(), self.values.clone(), self.log_determinant);
        for (row, factor) in self.factor_idx.iter().enumerate().filter_map(|(row, f)| Some((row, factors[(*f)?]))) {
            design.row_mut(row).unscale_mut(factor);
            values[row] /= factor;
            log_determinant += 2.0 * factor.ln();
        }
        LinearTrial { design, values, log_determinant }
    }
}

/// The point at which `f` is largest, from `start`: quasi-Newton steps with differences.
fn climb(f: &dyn Fn(&DVector<f64>) -> f64, start: DVector<f64>) -> DVector<f64> {
    let n = start.len();
    let gradient = |x: &DVector<f64>| {
        DVector::from_fn(n, |k, _| {
            let moved = |by: f64| {
                let mut y = x.clone();
                y[k] += by;
                f(&y)
            };
            (moved(DIFFERENCE) - moved(-DIFFERENCE)) / (2.0 * DIFFERENCE)
        })
    };
    let (mut x, mut value) = (start.clone(), f(&start));
    let mut slope = gradient(&x);
    let mut inverse = DMatrix::<f64>::identity(n, n);
    for _ in 0..MOST_STEPS {
        if slope.iter().any(|g| !g.is_finite()) || slope.amax() <= FLAT {
            break;
        }
        let mut direction = &inverse * &slope;
        if direction.dot(&slope) <= 0.0 {
            inverse.fill_with_identity();
            direction = slope.clone();
        }
        // No step beyond a factor of e² at once.
        let longest = direction.amax();
        let mut length = if longest > 2.0 { 2.0 / longest } else { 1.0 };
        let found = loop {
            let candidate = &x + &direction * length;
            let found = f(&candidate);
            if found > value + 1e-4 * length * direction.dot(&slope) {
                break Some((candidate, found));
            }
            length *= 0.5;
            if length * direction.amax() < 1e-7 {
                break None;
            }
        };
        let Some((next, found)) = found else { break };
        let next_slope = gradient(&next);
        let (step, turn) = (&next - &x, &slope - &next_slope);
        update_inverse(&mut inverse, &step, &turn);
        (x, value, slope) = (next, found, next_slope);
    }
    x
}

/// The inverse Hessian of the negative function after a step `step` that turned its gradient by `turn`.
fn update_inverse(inverse: &mut DMatrix<f64>, step: &DVector<f64>, turn: &DVector<f64>) {
    let curvature = step.dot(turn);
    if curvature <= 1e-12 * step.norm() * turn.norm() {
        return;
    }
    let projected = DMatrix::identity(step.len(), step.len()) - step * turn.transpose() / curvature;
    *inverse = &projected * &*inverse * projected.transpose() + step * step.transpose() / curvature;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_curved_ridge() {
        let f = |p: &DVector<f64>| -(1.0 - p[0]).powi(2) - 10.0 * (p[1] - p[0] * p[0]).powi(2);
        let top = climb(&f, DVector::from_row_slice(&[-1.0, 1.0]));
        assert!((top[0] - 1.0).abs() < 1e-3 && (top[1] - 1.0).abs() < 1e-3, "{top}");
    }
}
