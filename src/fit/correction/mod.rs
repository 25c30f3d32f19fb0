//! The solver's error at a fitted point, and fits corrected by it.
//!
//! An analytic solution `h(x, u)` approximates what a simulation of the same model gives, `s(x, u)`. A fit of `h` to measurements `z`
//! puts the difference into the parameters. Response correction fits what the simulation would give instead:
//!
//! ```text
//! ρ_tk = s_k(x, u_t) / h_k(x, u_t)              ratio of measure k in trial t, held during the fit
//! x ← argmin Σ (z_t - ρ_t h(x, u_t))ᵀ R_t⁻¹ (z_t - ρ_t h(x, u_t))
//! ```
//!
//! which is the fit of `h` to measurements scaled by `h / s`, their errors scaled likewise. Ratios are taken anew at the new estimates,
//! with the same random numbers, until no parameter moves by more than a share of its half-width. Where a value is near zero the
//! difference `s - h` is added instead of the ratio. Between the operating points of the trials ratios are interpolated: linearly
//! along one controlled value (constant beyond its ends), by inverse squared distance over several.
//!
//! | symbol | field | is |
//! |---|---|---|
//! | `h` | [`Factor::analytic`] | value of the analytic solver |
//! | `s` | [`Factor::simulated`], [`Factor::half_width`] | mean of the simulation, half-width of its confidence interval |
//! | `ρ` | [`Factor::ratio`] | their ratio; absent where the difference is added |
//!
//! Source: response correction is space mapping with an output map: J. Bandler et al., IEEE Trans. Microwave Theory Tech. 52 (2004),
//! section IV; D. Echeverría and P. Hemker, Comput. Methods Appl. Math. 5 (2005), who show that the fixed point is the fit of the fine
//! model where the ratios do not depend on `x`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

mod refit;
mod simulated;
mod text;

pub use refit::{CorrectionOptions, CorrectionOutcome, CorrectionReport, CorrectionRound, PlainEstimate, fit_corrected};
pub use simulated::{Simulated, SimulationOptions, simulated};

use crate::{
    fit::{problem::places::shares, search::solver::SolveFn},
    model::{Bindings, Measure},
    solve::Sensitivities,
};

/// What the simulation says of one measure at one operating point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Value of the analytic solver.
    pub analytic: f64,
    /// Mean of the simulation.
    pub simulated: f64,
    /// Half-width of the simulation's confidence interval; absent where there were too few batches.
    pub half_width: Option<f64>,
    /// `simulated / analytic`; absent where the value is near zero and the difference counts.
    pub ratio: Option<f64>,
}

impl Factor {
    /// The corrected value, and its derivative by the value.
    fn apply(&self, value: f64) -> (f64, f64) {
        match self.ratio {
            Some(ratio) => (value * ratio, ratio),
            None => (value + self.simulated - self.analytic, 1.0),
        }
    }
}

/// Factors at one operating point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectedPoint {
    /// The operating point.
    pub controlled: Bindings,
    /// By measure.
    pub factors: IndexMap<Measure, Factor>,
}

/// Factors at the operating points of the trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The operating points, each once.
    pub points: Vec<CorrectedPoint>,
}

impl Correction {
    /// `inner` with its values and derivatives corrected; errors are its own. Measures without factors are left as they are.
    pub fn around<'a>(&'a self, inner: &'a SolveFn<'a>) -> Box<SolveFn<'a>> {
        Box::new(move |model, values, wrt, measures, options| {
            let mut solved = inner(model, values, wrt, measures, options)?;
            self.correct(values, measures, &mut solved);
            Ok(solved)
        })
    }

    fn correct(&self, values: &Bindings, measures: &[Measure], solved: &mut Sensitivities) {
        let shares = self.shares(values);
        for (i, measure) in measures.iter().enumerate() {
            let (mut value, mut slope, mut total) = (0.0, 0.0, 0.0);
            for (factor, share) in shares.iter().filter_map(|(p, share)| Some((p.factors.get(measure)?, share))) {
                let (corrected, derivative) = factor.apply(solved.values[i]);
                value += share * corrected;
                slope += share * derivative;
                total += share;
            }
            if total > 0.0 {
                solved.values[i] = value / total;
                solved.jacobian.row_mut(i).scale_mut(slope / total);
            }
        }
    }

    /// Whether anything is known of `measure`.
    pub fn covers(&self, measure: &Measure) -> bool {
        self.points.iter().any(|p| p.factors.contains_key(measure))
    }

    /// Shares of the points in the correction at `values`, summing to 1; none without points.
    fn shares(&self, values: &Bindings) -> Vec<(&CorrectedPoint, f64)> {
        let controlled: Vec<&Bindings> = self.points.iter().map(|p| &p.controlled).collect();
        shares(&controlled, values).into_iter().map(|(i, share)| (&self.points[i], share)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(controlled: &[(&str, f64)], ratio: Option<f64>) -> CorrectedPoint {
        let factor = Factor { analytic: 1.0, simulated: ratio.unwrap_or(1.5), half_width: None, ratio };
        CorrectedPoint {
            controlled: controlled.iter().copied().collect(),
            factors: [("throughput(T)".parse().unwrap(), factor)].into_iter().collect(),
        }
    }

    fn ratio_at(correction: &Correction, values: &[(&str, f64)]) -> f64 {
        let shares = correction.shares(&values.iter().copied().collect());
        shares.iter().map(|(p, share)| share * p.factors[0].apply(2.0).0 / 2.0).sum()
    }

    #[test]
    fn ratios_are_interpolated_between_points_and_constant_beyond() {
        let points = vec![point(&[("n", 1.0), ("z", 5.0)], Some(1.0)), point(&[("n", 5.0), ("z", 5.0)], Some(2.0))];
        let correction = Correction { points };
        for (n, expected) in [(1.0, 1.0), (3.0, 1.5), (5.0, 2.0), (0.0, 1.0), (50.0, 2.0)] {
            assert_eq!(ratio_at(&correction, &[("n", n), ("z", 5.0)]), expected);
        }
    }

    #[test]
    fn over_several_values_the_near_points_count_most() {
        let at = |n: f64, z: f64, ratio: f64| point(&[("n", n), ("z", z)], Some(ratio));
        let correction = Correction { points: vec![at(0.0, 0.0, 1.0), at(1.0, 0.0, 2.0), at(0.0, 10.0, 3.0)] };
        assert_eq!(ratio_at(&correction, &[("n", 1.0), ("z", 0.0)]), 2.0);
        let near = ratio_at(&correction, &[("n", 0.9), ("z", 0.0)]);
        assert!((1.9..2.0).contains(&near), "{near}");
    }

    #[test]
    fn near_zero_the_difference_is_added() {
        let correction = Correction { points: vec![point(&[("n", 1.0)], None)] };
        assert_eq!(ratio_at(&correction, &[("n", 7.0)]), 1.25);
    }
}
