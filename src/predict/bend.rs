//! Whether predictions bend within their bands.
//!
//! A band of the mean is linear in the estimates. Of all that these may be at its level, the linear prediction is furthest off at
//!
//! ```text
//! x ± δ,   δ = t P Hᵀ / √(H P Hᵀ),   H δ = t √(H P Hᵀ)
//! ```
//!
//! (the symbols are those of [`super::bands`]). Near saturation the model's own `h(x ± δ)` is elsewhere: further off on the side of more
//! load, or nowhere, where there is no steady state. Where a band is wide, the model is solved there, along its own `δ`, once for bands with the same
//! one, and it is said if the two differ by more than a quarter of the half-width. Parameters keep within their bounds; whole numbers stay.

use indexmap::IndexMap;

use super::bands::{Ground, PredictedMeasure};
use crate::{
    fit::{
        digits::four_digits,
        solver::{SolveFn, solve_point},
    },
    model::{Bindings, Measure},
    solve::Sensitivities,
};

/// Half-width of a band, relative to the value, from which the model is solved at its ends.
const WIDE: f64 = 0.1;

/// Square of the cosine from which two directions are one.
const PARALLEL: f64 = 1.0 - 1e-4;

/// Difference from the linear prediction, in half-widths, that is remarked.
const BENT: f64 = 0.25;

/// All measures at both ends of one offset; none where the model has no solution at one.
struct Looked {
    offset: Vec<f64>,
    ends: Option<[Vec<f64>; 2]>,
}

impl Ground<'_> {
    /// Remarks on what was `predicted` at `values` with the derivatives of `solved`, where it bends within its band: two solutions more for each
    /// direction in which a wide band lies, that of the widest first.
    pub(super) fn bends(
        &self,
        predicted: &IndexMap<Measure, PredictedMeasure>,
        values: &Bindings,
        solved: &Sensitivities,
        solver: &SolveFn<'_>,
    ) -> Vec<String> {
        let mut wide: Vec<usize> = (0..predicted.len()).filter(|&i| width(&predicted[i]) > WIDE).collect();
        wide.sort_by(|&a, &b| width(&predicted[b]).total_cmp(&width(&predicted[a])));
        let measures: Vec<Measure> = predicted.keys().cloned().collect();
        let slopes = |i: usize| solved.jacobian.row(i).iter().copied().collect::<Vec<f64>>();
        let mut remarks = Vec::new();
        let mut looked: Vec<Looked> = Vec::new();
        for i in wide {
            let Some(offset) = self.furthest(&slopes(i)) else { continue };
            let place = looked.iter().position(|l| are_parallel(&self.in_errors(&l.offset), &self.in_errors(&offset)));
            let place = place.unwrap_or_else(|| {
                let at = |sign: f64| {
                    let moved = self.moved(values, &offset, sign);
                    solve_point(&self.fit.problem.model, &moved, &[], &measures, &self.options.solve, solver, "").map(|s| s.values)
                };
                let ends = match (at(-1.0), at(1.0)) {
                    (Ok(low), Ok(high)) => Some([low, high]),
                    (Err(error), _) | (_, Err(error)) => {
                        remarks.push(format!(
                            "{}: the band is linear in the estimates, and within what they may be the model has no solution ({})",
                            measures[i],
                            error.reason()
                        ));
                        None
                    }
                };
                looked.push(Looked { offset, ends });
                looked.len() - 1
            });
            let Looked { offset, ends } = &looked[place];
            remarks.extend(ends.as_ref().and_then(|ends| bent(&measures[i], &predicted[i], &slopes(i), offset, [ends[0][i], ends[1][i]])));
        }
        remarks
    }

    /// An offset in standard errors, `(n_varied)`.
    fn in_errors(&self, offset: &[f64]) -> Vec<f64> {
        let error = |name: &String| self.fit.parameters.get(name).and_then(|p| p.std_error).filter(|s| *s > 0.0);
        self.varied.iter().zip(offset).map(|(name, d)| error(name).map_or(0.0, |s| d / s)).collect()
    }

    /// `δ` of the parameters that carry the band, `(n_varied)`.
    fn furthest(&self, row: &[f64]) -> Option<Vec<f64>> {
        let id = &self.fit.identifiability;
        let covariance = id.covariance.as_ref()?;
        let slopes = self.over_free(row);
        let quantile = self.fit.quantile_along(self.options.confidence, &slopes)?;
        let along: Vec<f64> = covariance.iter().map(|p| p.iter().zip(&slopes).map(|(p, h)| p * h).sum()).collect();
        let deviation = along.iter().zip(&slopes).map(|(a, h)| a * h).sum::<f64>().sqrt();
        let is_whole = |name: &String| self.fit.whole_numbers.iter().any(|w| w.parameter == *name);
        let of = |name: &String| match id.free.iter().position(|f| f == name) {
            Some(place) if !is_whole(name) => quantile * along[place] / deviation,
            _ => 0.0,
        };
        (deviation > 0.0).then(|| self.varied.iter().map(of).collect())
    }

    fn moved(&self, values: &Bindings, offset: &[f64], sign: f64) -> Bindings {
        let mut moved = values.clone();
        let bounds = self.fit.problem.bounds();
        for (name, by) in self.varied.iter().zip(offset) {
            let place = self.fit.problem.estimate.iter().position(|e| e.name == *name);
            let (low, high) = place.map_or((f64::NEG_INFINITY, f64::INFINITY), |place| bounds[place]);
            moved.set(name.as_str(), (values.get(name).unwrap_or(0.0) + sign * by).clamp(low, high));
        }
        moved
    }
}

/// Half the width of a band; 0 without one.
fn half_width(predicted: &PredictedMeasure) -> f64 {
    predicted.upper.map_or(0.0, |upper| upper - predicted.mean)
}

/// The same relative to the value.
fn width(predicted: &PredictedMeasure) -> f64 {
    if predicted.mean == 0.0 { 0.0 } else { half_width(predicted) / predicted.mean.abs() }
}

/// Whether two offsets in standard errors point the same way, or the opposite one.
fn are_parallel(a: &[f64], b: &[f64]) -> bool {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(a, b).powi(2) >= PARALLEL * product(a, a) * product(b, b)
}

/// The remark on a `measure` that at the `ends` along `offset` is not where its `slopes` lead.
fn bent(measure: &Measure, predicted: &PredictedMeasure, slopes: &[f64], offset: &[f64], ends: [f64; 2]) -> Option<String> {
    let along: f64 = slopes.iter().zip(offset).map(|(h, d)| h * d).sum();
    let off = (ends[0] - (predicted.mean - along)).abs().max((ends[1] - (predicted.mean + along)).abs());
    (off > BENT * half_width(predicted)).then(|| {
        format!(
            "{measure}: the band is linear in the estimates, while the prediction goes from {} to {} within what they may be",
            four_digits(ends[0].min(ends[1])),
            four_digits(ends[0].max(ends[1]))
        )
    })
}
