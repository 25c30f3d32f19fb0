//! Whether predictions bend within their bands.
//!
//! A band of the mean is linear in the estimates. Of all that these may be at its level, the linear prediction is furthest off at
//!
//! ```text
//! x ± δ,   δ = t P Hᵀ / √(H P Hᵀ),   H δ = t √(H P Hᵀ)
//! ```
//!
//! (the symbols are those of [`super::bands`]). Near saturation the model's own `h(x ± δ)` is elsewhere: further off on the side of more
//! load, or nowhere, where there is no steady state. Where a band is wide, the model is solved there, and it is said if the two differ by
//! more than a quarter of the half-width. Parameters keep within their bounds; whole numbers stay.

use super::bands::{Ground, PredictedMeasure};
use crate::{
    fit::{
        digits::four_digits,
        solver::{SolveFn, solve_point},
    },
    model::{Bindings, Measure},
};

/// Half-width of a band, relative to the value, from which the model is solved at its ends.
const WIDE: f64 = 0.1;

/// Difference from the linear prediction, in half-widths, that is remarked.
const BENT: f64 = 0.25;

impl Ground<'_> {
    /// Remarks on a measure predicted with derivatives `row` at `values`, where it bends within its band.
    pub(super) fn bend(
        &self,
        measure: &Measure,
        predicted: &PredictedMeasure,
        values: &Bindings,
        row: &[f64],
        solver: &SolveFn<'_>,
    ) -> Option<String> {
        let half_width = predicted.upper? - predicted.mean;
        if half_width <= WIDE * predicted.mean.abs() {
            return None;
        }
        let offset = self.furthest(row)?;
        let measures = std::slice::from_ref(measure);
        let at = |sign: f64| {
            let moved = self.moved(values, &offset, sign);
            solve_point(&self.fit.problem.model, &moved, &[], measures, &self.options.solve, solver, "").map(|s| s.values[0])
        };
        match (at(-1.0), at(1.0)) {
            (Ok(low), Ok(high)) => {
                let off = |value: f64, linear: f64| (value - linear).abs() > BENT * half_width;
                let is_bent = off(low, predicted.mean - half_width) || off(high, predicted.mean + half_width);
                is_bent.then(|| {
                    format!(
                        "{measure}: the band is linear in the estimates, while the prediction goes from {} to {} within what they may be",
                        four_digits(low.min(high)),
                        four_digits(low.max(high))
                    )
                })
            }
            (Err(error), _) | (_, Err(error)) => Some(format!(
                "{measure}: the band is linear in the estimates, and within what they may be the model has no solution ({})",
                error.reason()
            )),
        }
    }

    /// `δ` of the parameters that carry the band, `(n_varied)`.
    fn furthest(&self, row: &[f64]) -> Option<Vec<f64>> {
        let (id, quantile) = (&self.fit.identifiability, self.quantile?);
        let covariance = id.covariance.as_ref()?;
        let slope = |name: &String| self.varied.iter().position(|v| v == name).map_or(0.0, |i| row[i]);
        let slopes: Vec<f64> = id.free.iter().map(slope).collect();
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
