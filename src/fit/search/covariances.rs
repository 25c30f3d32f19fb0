//! Covariances of the errors within a trial: as the trials give them, or pooled over trials at one operating point.

use nalgebra::DMatrix;

use crate::fit::problem::{Problem, ProblemError, trials::Trial};

/// Fewest degrees of freedom beside the number of measures for which a whole covariance of replicates is believed.
const SPARE_REPLICATES: usize = 2;

/// Scatter of replicates, relative to the size of the measure, that is rounding of their mean.
const NO_SCATTER: f64 = 1e-14;

/// How far below zero rounding takes the least eigenvalue of correlations of which some follow from others.
const EXACT_RELATION: f64 = 1e-9;

/// Error covariance of a trial's measures at given positions.
pub(super) type CovarianceOf<'a> = Box<dyn Fn(usize, &[usize]) -> DMatrix<f64> + 'a>;

/// Covariances of trials at one operating point, pooled, and their degrees of freedom; `(n_measures, n_measures)` each.
pub(super) struct Replicates {
    pooled: DMatrix<f64>,
    dof: DMatrix<f64>,
}

/// The covariances that the trials give of the measures that count, `(n_measures)`; the mean of those for trials without any.
pub(super) fn given<'a>(problem: &'a Problem, counts: &[bool], notes: &mut Vec<String>) -> Result<CovarianceOf<'a>, ProblemError> {
    let trials = &problem.trials.trials;
    let n = problem.trials.measures.len();
    let counted: Vec<usize> = (0..n).filter(|&k| counts[k]).collect();
    let among = counted.clone();
    let has_variances = move |t: &Trial| {
        let mut measured = among.iter().filter_map(|&k| t.measured[k]);
        !t.covariances.is_empty() || measured.all(|m| m.std_error.is_some())
    };
    let (mut sums, mut n_known) = (DMatrix::<f64>::zeros(n, n), DMatrix::<f64>::zeros(n, n));
    for t in trials.iter().filter(|t| has_variances(t)) {
        let present: Vec<usize> = counted.iter().copied().filter(|&k| t.measured[k].is_some()).collect();
        let missing = |k: usize| ProblemError::VarianceMissing { trial: t.id.clone(), measure: problem.trials.measures[k].clone() };
        let r = t.error_covariance(&present).map_err(missing)?;
        for (a, &i) in present.iter().enumerate() {
            for (b, &j) in present.iter().enumerate() {
                sums[(i, j)] += r[(a, b)];
                n_known[(i, j)] += 1.0;
            }
        }
    }
    let typical = sums.zip_map(&n_known, |sum, count| if count > 0.0 { sum / count } else { 0.0 });
    for t in trials.iter().filter(|t| !has_variances(t)) {
        if let Some(k) = counted.iter().copied().find(|&k| t.measured[k].is_some() && n_known[(k, k)] == 0.0) {
            return Err(ProblemError::VarianceMissing { trial: t.id.clone(), measure: problem.trials.measures[k].clone() });
        }
        notes.push(format!("trial \"{}\" has no error covariances and is given the mean of the others", t.id));
    }
    Ok(Box::new(move |trial_idx, of| {
        let t = &trials[trial_idx];
        let own = if has_variances(t) { t.error_covariance(of).ok() } else { None };
        own.unwrap_or_else(|| DMatrix::from_fn(of.len(), of.len(), |a, b| typical[(of[a], of[b])]))
    }))
}

/// Errors of measures as trials at one operating point told them.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledErrors {
    /// The measures that have one, by their places among those of the trials.
    pub measures: Vec<usize>,
    /// Their covariance, `(n, n)`.
    pub covariance: DMatrix<f64>,
    /// Its degrees of freedom, `(n, n)`.
    pub dof: DMatrix<f64>,
    /// Whether it has more than a diagonal.
    pub is_whole: bool,
}

impl PooledErrors {
    /// The covariance of measures at the places `of`; 0 of those that have none.
    pub(super) fn among(&self, of: &[usize]) -> DMatrix<f64> {
        let place = |k: usize| self.measures.iter().position(|m| *m == k);
        DMatrix::from_fn(of.len(), of.len(), |a, b| place(of[a]).zip(place(of[b])).map_or(0.0, |(i, j)| self.covariance[(i, j)]))
    }
}

/// The covariance of trials at one operating point.
pub(super) fn replicated(Replicates { pooled, dof }: &Replicates, notes: &mut Vec<String>) -> Result<PooledErrors, ProblemError> {
    let counted: Vec<usize> = (0..dof.nrows()).filter(|&k| pooled[(k, k)] > 0.0).collect();
    let n = counted.len();
    if (0..dof.nrows()).any(|k| dof[(k, k)] <= 0.0) {
        return Err(ProblemError::NoReplicates);
    }
    let of_counted = |from: &DMatrix<f64>| DMatrix::from_fn(n, n, |i, j| from[(counted[i], counted[j])]);
    let dof_of_counted = of_counted(dof);
    let fewest = dof_of_counted.lower_triangle().iter().copied().filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
    let believed = fewest >= f64::from(u32::try_from(n + SPARE_REPLICATES).unwrap_or(u32::MAX));
    let mut among = of_counted(pooled);
    let least = DMatrix::from_fn(n, n, |i, j| among[(i, j)] / (among[(i, i)] * among[(j, j)]).sqrt()).symmetric_eigenvalues().min();
    // Measures that are the same, or follow from each other, leave directions without an error, to rounding.
    let is_whole = believed && least >= -EXACT_RELATION;
    if !is_whole {
        among = DMatrix::from_diagonal(&among.diagonal());
        notes.push(format!("replicates have only {fewest} degrees of freedom for {n} measures: their covariances are taken as 0"));
    }
    Ok(PooledErrors { measures: counted, covariance: among, dof: dof_of_counted, is_whole })
}

pub(super) fn pooled_replicates(problem: &Problem) -> Replicates {
    let n = problem.trials.measures.len();
    let (mut sums, mut dof) = (DMatrix::<f64>::zeros(n, n), DMatrix::<f64>::zeros(n, n));
    for group in problem.trials.replicates() {
        for i in 0..n {
            for j in 0..=i {
                let pairs: Vec<(f64, f64)> = group
                    .iter()
                    .filter_map(|&t| {
                        let measured = &problem.trials.trials[t].measured;
                        Some((measured[i]?.value, measured[j]?.value))
                    })
                    .collect();
                let count = f64::from(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
                if pairs.len() > 1 {
                    let (a, b) = (mean(pairs.iter().map(|p| p.0)), mean(pairs.iter().map(|p| p.1)));
                    sums[(i, j)] += pairs.iter().map(|p| (p.0 - a) * (p.1 - b)).sum::<f64>();
                    dof[(i, j)] += count - 1.0;
                }
            }
        }
    }
    let mut pooled = sums.zip_map(&dof, |sum, dof| if dof > 0.0 { sum / dof } else { 0.0 });
    for k in 0..n {
        let size = root_mean_square(problem.trials.trials.iter().filter_map(|t| Some(t.measured[k]?.value)));
        if pooled[(k, k)].sqrt() <= NO_SCATTER * size {
            pooled[(k, k)] = 0.0;
        }
    }
    pooled.fill_upper_triangle_with_lower_triangle();
    Replicates { pooled, dof }
}

/// Measures that were the same in all trials at one operating point.
pub(super) fn measures_without_scatter(Replicates { pooled, dof }: &Replicates) -> Result<Vec<usize>, ProblemError> {
    let found: Vec<usize> = (0..dof.nrows()).filter(|&k| dof[(k, k)] > 0.0 && pooled[(k, k)] <= 0.0).collect();
    if found.len() == dof.nrows() { Err(ProblemError::EqualReplicates) } else { Ok(found) }
}

pub(super) fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    mean(values.map(|v| v * v)).sqrt()
}

/// Mean; 0 of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
