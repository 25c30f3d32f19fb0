//! The error of one new measurement at an operating point.
//!
//! Where the trials state how well each value was measured, by standard errors, covariances or weights, `√R_ii` relative to the
//! predicted value is interpolated between their operating points ([`crate::fit::problem`]'s rule for what is known at some points):
//! that of a trial at its own point, that of the ends beyond them. Where a predicted value is not above zero, `√R_ii` itself is
//! interpolated. All are scaled by `√mse` where the fit knows the errors up to a scale. Otherwise the error is the fit's, the same
//! everywhere.

use indexmap::IndexMap;

use super::Fit;
use crate::{
    fit::{
        inference::distribution::as_f64,
        interpolated,
        problem::trials::Trial,
        search::weights::{WeightSource, same_column},
    },
    model::{Bindings, Measure},
};

/// Half-width, relative to the value, that is rounding and not a band.
pub(crate) const NO_WIDTH: f64 = 1e-10;

/// Errors of the measures of a fit's trials.
#[derive(Debug)]
pub(crate) struct NewErrors {
    by_measure: IndexMap<Measure, Known>,
}

#[derive(Clone, Debug)]
enum Known {
    Everywhere(f64),
    AtTrials(StatedErrors),
}

/// One value as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stated {
    /// Where.
    pub(crate) controlled: Bindings,
    /// Its standard deviation, up to a scale.
    pub(crate) deviation: f64,
    /// What it is predicted to be.
    pub(crate) predicted: f64,
}

/// Errors stated at some operating points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedErrors {
    points: Vec<Bindings>,
    variances: Vec<f64>,
    are_relative: bool,
}

impl StatedErrors {
    /// Of `cells`, scaled to the root mean square `typical`; `None` where none is above zero.
    pub(crate) fn of(cells: Vec<Stated>, typical: f64) -> Option<Self> {
        let square: f64 = cells.iter().map(|c| c.deviation * c.deviation).sum();
        if square <= 0.0 || !square.is_finite() {
            return None;
        }
        let scale = typical * typical / square * as_f64(cells.len());
        let are_relative = cells.iter().all(|c| c.predicted > 0.0);
        let (mut points, mut sums): (Vec<Bindings>, Vec<(f64, f64)>) = (Vec::new(), Vec::new());
        for Stated { controlled, deviation, predicted } in cells {
            let size = if are_relative { predicted } else { 1.0 };
            let variance = scale * (deviation / size).powi(2);
            match points.iter().position(|p| *p == controlled) {
                Some(i) => sums[i] = (sums[i].0 + variance, sums[i].1 + 1.0),
                None => {
                    points.push(controlled);
                    sums.push((variance, 1.0));
                }
            }
        }
        Some(Self { points, variances: sums.into_iter().map(|(sum, n)| sum / n).collect(), are_relative })
    }

    /// Standard deviation at `values` of what is predicted to be `mean` there.
    pub(crate) fn deviation(&self, values: &Bindings, mean: f64) -> f64 {
        let points: Vec<&Bindings> = self.points.iter().collect();
        let variance: f64 = interpolated(&points, values).into_iter().map(|(i, share)| share * self.variances[i]).sum();
        variance.sqrt() * if self.are_relative { mean.abs() } else { 1.0 }
    }
}

impl NewErrors {
    pub(crate) fn of(fit: &Fit) -> Self {
        let mut by_measure: IndexMap<Measure, Known> = IndexMap::new();
        for (k, (measure, found)) in fit.weighting.measures.iter().enumerate() {
            let known = match found.deviation {
                Some(deviation) => {
                    let stated = StatedErrors::of(cells(fit, k, found.weighted_by), deviation);
                    Some(stated.map_or(Known::Everywhere(deviation), Known::AtTrials))
                }
                // What does not count because it has the values of another is measured as well as that.
                None => same_column(&fit.problem, k).and_then(|same| by_measure.get(same).cloned()),
            };
            by_measure.extend(known.map(|known| (measure.clone(), known)));
        }
        Self { by_measure }
    }

    /// Standard deviation of `measure` at `values`, where its mean is predicted to be `mean`; `None` for a measure that the trials do
    /// not have.
    pub(crate) fn deviation(&self, measure: &Measure, values: &Bindings, mean: f64) -> Option<f64> {
        Some(match self.by_measure.get(measure)? {
            Known::Everywhere(deviation) => *deviation,
            Known::AtTrials(stated) => stated.deviation(values, mean),
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

/// The values of measure `k` whose errors the trials state.
fn cells(fit: &Fit, k: usize, source: WeightSource) -> Vec<Stated> {
    let trials = &fit.problem.trials;
    let cell = |(trial, predicted): (&Trial, &IndexMap<Measure, f64>)| {
        let (deviation, predicted) = (stated(trial, k, source)?, *predicted.get(&trials.measures[k])?);
        Some(Stated { controlled: trial.controlled.clone(), deviation, predicted })
    };
    trials.trials.iter().zip(&fit.predicted).filter_map(cell).collect()
}
