//! The error of one new measurement at an operating point.
//!
//! Where the trials state how well each value was measured, by standard errors, covariances or weights, `√R_ii` relative to the
//! predicted value is interpolated between their operating points ([`crate::fit::problem`]'s rule for what is known at some points):
//! that of a trial at its own point, that of the ends beyond them. Where a predicted value is not above zero, `√R_ii` itself is
//! interpolated. All are scaled by `√mse` where the fit knows the errors up to a scale. Otherwise the error is the fit's, the same
//! everywhere.

use indexmap::IndexMap;

use crate::{
    fit::{
        Fit, Trial, interpolated,
        weights::{WeightSource, same_column},
    },
    model::{Bindings, Measure},
};

/// Errors of the measures of a fit's trials.
#[derive(Debug)]
pub(super) struct NewErrors {
    by_measure: IndexMap<Measure, Known>,
}

#[derive(Clone, Debug)]
enum Known {
    Everywhere(f64),
    AtTrials { points: Vec<Bindings>, variances: Vec<f64>, are_relative: bool },
}

impl NewErrors {
    pub(super) fn of(fit: &Fit) -> Self {
        let mut by_measure: IndexMap<Measure, Known> = IndexMap::new();
        for (k, (measure, found)) in fit.weighting.measures.iter().enumerate() {
            let known = match found.deviation {
                Some(deviation) => Some(at_trials(fit, k, found.weighted_by, deviation).unwrap_or(Known::Everywhere(deviation))),
                // What does not count because it has the values of another is measured as well as that.
                None => same_column(&fit.problem, k).and_then(|same| by_measure.get(same).cloned()),
            };
            by_measure.extend(known.map(|known| (measure.clone(), known)));
        }
        Self { by_measure }
    }

    /// Standard deviation of `measure` at `values`, where its mean is predicted to be `mean`; `None` for a measure that the trials do
    /// not have.
    pub(super) fn deviation(&self, measure: &Measure, values: &Bindings, mean: f64) -> Option<f64> {
        Some(match self.by_measure.get(measure)? {
            Known::Everywhere(deviation) => *deviation,
            Known::AtTrials { points, variances, are_relative } => {
                let points: Vec<&Bindings> = points.iter().collect();
                let variance: f64 = interpolated(&points, values).into_iter().map(|(i, share)| share * variances[i]).sum();
                variance.sqrt() * if *are_relative { mean.abs() } else { 1.0 }
            }
        })
    }
}

/// What trial `trial` says of the deviation of measure `k`, up to a scale.
fn stated(trial: &Trial, k: usize, source: WeightSource) -> Option<f64> {
    let measured = trial.measured.get(k).copied().flatten()?;
    match source {
        WeightSource::StandardErrors => measured.std_error,
        WeightSource::Covariances => Some(trial.error_covariance(&[k]).ok()?[(0, 0)].sqrt()),
        WeightSource::Weights => measured.weight.filter(|w| *w > 0.0).map(|w| w.sqrt().recip()),
        _ => None,
    }
}

fn at_trials(fit: &Fit, k: usize, source: WeightSource, deviation: f64) -> Option<Known> {
    let trials = &fit.problem.trials.trials;
    let measure = &fit.problem.trials.measures[k];
    let cells: Vec<(&Bindings, f64, f64)> = (trials.iter().zip(&fit.predicted))
        .filter_map(|(trial, predicted)| Some((&trial.controlled, stated(trial, k, source)?, *predicted.get(measure)?)))
        .collect();
    let square: f64 = cells.iter().map(|(_, s, _)| s * s).sum();
    if square <= 0.0 || !square.is_finite() {
        return None;
    }
    let scale = deviation * deviation / square * cells.len() as f64;
    let are_relative = cells.iter().all(|(_, _, predicted)| *predicted > 0.0);
    let (mut points, mut sums): (Vec<Bindings>, Vec<(f64, f64)>) = (Vec::new(), Vec::new());
    for (controlled, deviation, predicted) in cells {
        let size = if are_relative { predicted } else { 1.0 };
        let variance = scale * (deviation / size).powi(2);
        match points.iter().position(|p| p == controlled) {
            Some(i) => sums[i] = (sums[i].0 + variance, sums[i].1 + 1.0),
            None => {
                points.push(controlled.clone());
                sums.push((variance, 1.0));
            }
        }
    }
    Some(Known::AtTrials { points, variances: sums.into_iter().map(|(sum, n)| sum / n).collect(), are_relative })
}
