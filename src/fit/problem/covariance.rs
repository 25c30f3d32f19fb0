//! Covariances between the errors of one trial's measures.

use indexmap::IndexMap;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::trials::{Trial, Trials, TrialsError};

/// Share by which a covariance may exceed what its variances allow, for rounding.
const ROUNDING: f64 = 1e-9;

/// Covariance of the errors of two measures in one trial; a variance where both are one. Symmetric: one of the pair is enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorCovariance {
    /// Position of one measure among [`Trials::measures`].
    pub first: usize,
    /// Position of the other.
    pub second: usize,
    /// The covariance, in the product of their units.
    pub value: f64,
}

impl Trial {
    /// Error covariance of the measures at positions `of`, `(n, n)`: the variances are the covariances of a measure with
    /// itself, or the squares of standard errors; what is not given between two measures is 0. The error is the position
    /// of a measure without a variance.
    pub fn error_covariance(&self, of: &[usize]) -> Result<DMatrix<f64>, usize> {
        let given = |i: usize, j: usize| {
            let found = self.covariances.iter().find(|c| (c.first, c.second) == (i, j) || (c.second, c.first) == (i, j));
            found.map(|c| c.value)
        };
        let mut matrix = DMatrix::zeros(of.len(), of.len());
        for (a, &i) in of.iter().enumerate() {
            let std_error = self.measured.get(i).copied().flatten().and_then(|m| m.std_error);
            matrix[(a, a)] = given(i, i).or(std_error.map(|s| s * s)).ok_or(i)?;
            for (b, &j) in of.iter().enumerate().skip(a + 1) {
                let value = given(i, j).unwrap_or(0.0);
                (matrix[(a, b)], matrix[(b, a)]) = (value, value);
            }
        }
        Ok(matrix)
    }
}

impl Trials {
    /// Whether any trial has covariances.
    pub fn have_covariances(&self) -> bool {
        self.trials.iter().any(|t| !t.covariances.is_empty())
    }

    /// Groups of trials at one operating point, by their positions; only groups of two and more.
    pub fn replicates(&self) -> Vec<Vec<usize>> {
        let mut groups: IndexMap<Vec<(&str, u64)>, Vec<usize>> = IndexMap::new();
        for (index, trial) in self.trials.iter().enumerate() {
            // Adding 0 makes one zero of both.
            let mut point: Vec<(&str, u64)> = trial.controlled.iter().map(|(name, value)| (name, (value + 0.0).to_bits())).collect();
            point.sort_unstable();
            groups.entry(point).or_default().push(index);
        }
        groups.into_values().filter(|group| group.len() > 1).collect()
    }

    /// Checks the covariances of one trial.
    pub(super) fn check_covariances(&self, row: usize, trial: &Trial) -> Result<(), TrialsError> {
        if trial.covariances.is_empty() {
            return Ok(());
        }
        let n = self.measures.len();
        for c in &trial.covariances {
            let name = |i: usize| self.measures.get(i).map_or_else(|| format!("measure {i}"), ToString::to_string);
            let column = format!("covariance({};{})", name(c.first), name(c.second));
            let is_variance = c.first == c.second;
            if c.first >= n || c.second >= n || !c.value.is_finite() || (is_variance && c.value <= 0.0) {
                let expected = if is_variance { super::trials::POSITIVE } else { super::trials::FINITE };
                return Err(TrialsError::Cell { row, column, cell: c.value.to_string(), expected });
            }
            for measure in [c.first, c.second] {
                if trial.measured.get(measure).copied().flatten().is_none() {
                    return Err(TrialsError::WithoutValue { row, column, measure: self.measures[measure].clone() });
                }
            }
        }
        let present: Vec<usize> = (0..n).filter(|&i| trial.measured[i].is_some()).collect();
        // A measure without a variance is refused, or weighed otherwise, where the weights are made.
        let Ok(matrix) = trial.error_covariance(&present) else { return Ok(()) };
        let deviations: Vec<f64> = matrix.diagonal().iter().map(|v| v.sqrt()).collect();
        let scaled = DMatrix::from_fn(present.len(), present.len(), |i, j| matrix[(i, j)] / (deviations[i] * deviations[j]));
        let least = scaled.symmetric_eigenvalues().min();
        if least < -ROUNDING * present.len() as f64 { Err(TrialsError::NotACovariance { row, least }) } else { Ok(()) }
    }
}
