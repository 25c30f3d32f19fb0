//! Whether predictions bend within their bands.
//!
//! A band of the mean is linear in the estimates. Of all that these may be at its level, the linear prediction is furthest off at
//!
//! ```text
//! x ± δ,   δ = t P Hᵀ / √(H P Hᵀ),   H δ = t √(H P Hᵀ)
//! ```
//!
//! (the symbols are those of [`super::bands`]). Near saturation the model's own `h(x ± δ)` is elsewhere: further off on the side of more
//! load, or nowhere, where there is no steady state. Where a band is wide, the model is solved there (along the `δ` of the widest, for all
//! measures), and it is said if the two differ by more than a quarter of the half-width. Parameters keep within their bounds; whole numbers stay.

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

/// Difference from the linear prediction, in half-widths, that is remarked.
const BENT: f64 = 0.25;

impl Ground<'_> {
    /// Remarks on what was `predicted` at `values` with the derivatives of `solved`, where it bends within its band. Along the `δ` of the
    /// measure with the widest band, all are looked at: two solutions more.
    pub(super) fn bends(
        &self,
        predicted: &IndexMap<Measure, PredictedMeasure>,
        values: &Bindings,
        solved: &Sensitivities,
        solver: &SolveFn<'_>,
    ) -> Vec<String> {
        let half_width = |p: &PredictedMeasure| p.upper.map_or(0.0, |upper| upper - p.mean);
        let width = |p: &PredictedMeasure| if p.mean == 0.0 { 0.0 } else { half_width(p) / p.mean.abs() };
        let Some((place, widest)) = (0..predicted.len()).map(|i| (i, width(&predicted[i]))).max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Vec::new();
        };
        let slopes = |i: usize| solved.jacobian.row(i).iter().copied().collect::<Vec<f64>>();
        let Some(offset) = self.furthest(&slopes(place)).filter(|_| widest > WIDE) else { return Vec::new() };
        let measures: Vec<Measure> = predicted.keys().cloned().collect();
        let at = |sign: f64| {
            let moved = self.moved(values, &offset, sign);
            solve_point(&self.fit.problem.model, &moved, &[], &measures, &self.options.solve, solver, "").map(|s| s.values)
        };
        let ends = match (at(-1.0), at(1.0)) {
            (Ok(low), Ok(high)) => [low, high],
            (Err(error), _) | (_, Err(error)) => {
                return vec![format!(
                    "{}: the band is linear in the estimates, and within what they may be the model has no solution ({})",
                    measures[place],
                    error.reason()
                )];
            }
        };
        let remark = |(i, (measure, p)): (usize, (&Measure, &PredictedMeasure))| {
            let along: f64 = slopes(i).iter().zip(&offset).map(|(h, d)| h * d).sum();
            let off = (ends[0][i] - (p.mean - along)).abs().max((ends[1][i] - (p.mean + along)).abs());
            (width(p) > WIDE && off > BENT * half_width(p)).then(|| {
                format!(
                    "{measure}: the band is linear in the estimates, while the prediction goes from {} to {} within what they may be",
                    four_digits(ends[0][i].min(ends[1][i])),
                    four_digits(ends[0][i].max(ends[1][i]))
                )
            })
        };
        predicted.iter().enumerate().filter_map(remark).collect()
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
