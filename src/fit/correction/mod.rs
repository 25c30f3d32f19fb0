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
//! Where the rounds settle `Jᵀ R⁻¹ (z - s) = 0` with the derivatives `J` of `h`, not of `s`. Along what the trials hardly
//! determine the two differ by as much as they are, and the fit would go anywhere. There the ratios have slopes, from simulations
//! at either side ([`slopes`]):
//!
//! ```text
//! ρ_tk(x) = ρ_tk(x̂) exp(g_tkᵀ (x - x̂))         g = ∂ ln ρ / ∂x;   with the difference: s - h + gᵀ (x - x̂)
//! ```
//!
//! | symbol | field | is |
//! |---|---|---|
//! | `h` | [`Factor::analytic`] | value of the analytic solver |
//! | `s` | [`Factor::simulated`], [`Factor::half_width`] | mean of the simulation, half-width of its confidence interval |
//! | `ρ` | [`Factor::ratio`] | their ratio; absent where the difference is added |
//! | `g` | [`Factor::slopes`] | slopes of the ratio's logarithm, or of the difference |
//! | `x̂` | [`Correction::at`] | where ratios were taken |
//!
//! Source: response correction is space mapping with an output map: J. Bandler et al., IEEE Trans. Microwave Theory Tech. 52 (2004),
//! section IV; D. Echeverría and P. Hemker, Comput. Methods Appl. Math. 5 (2005), who show that the fixed point is the fit of the fine
//! model where the ratios do not depend on `x`, and correct the slopes where they do (manifold mapping).

use indexmap::IndexMap;
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

mod noise;
mod reach;
mod refit;
mod report;
mod simulated;
mod slopes;
mod text;

pub(crate) use noise::{Fitted, OwnError};
pub use refit::{fit_corrected, fit_corrected_with};
pub(crate) use report::simulated_apart;
pub use report::{CorrectionOptions, CorrectionOutcome, CorrectionReport, CorrectionRound, PlainEstimate};
pub use simulated::{Simulated, SimulationOptions, simulated};

use crate::{
    fit::{problem::places::shares, search::solver::SolveFn},
    model::{Bindings, Measure},
    solve::Sensitivities,
};

/// What the simulation says of one measure at one operating point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Value of the analytic solver.
    pub analytic: f64,
    /// Mean of the simulation.
    pub simulated: f64,
    /// Half-width of the simulation's confidence interval; absent where there were too few batches.
    pub half_width: Option<f64>,
    /// `simulated / analytic`; absent where the value is near zero and the difference counts.
    pub ratio: Option<f64>,
    /// Derivatives by the parameters of the ratio's logarithm, or of the difference; none where the ratio is held.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub slopes: IndexMap<String, f64>,
}

/// Most that slopes change the logarithm of a ratio: a factor of two, beyond which they are not believed.
const MOST_GROWTH: f64 = std::f64::consts::LN_2;

/// A value corrected.
struct Corrected {
    value: f64,
    /// Its derivative by the value of the solver.
    by_value: f64,
    /// What a slope `g_j` is to be multiplied with to give the derivative by `x_j` beside.
    by_slope: f64,
}

impl Factor {
    /// The corrected value where the parameters have moved by this from where the factor was taken.
    fn apply(&self, value: f64, moved: &[(&str, f64)]) -> Corrected {
        let grown: f64 = moved.iter().filter_map(|(name, by)| Some(self.slopes.get(*name)? * by)).sum();
        let Some(ratio) = self.ratio else {
            return Corrected { value: value + self.simulated - self.analytic + grown, by_value: 1.0, by_slope: 1.0 };
        };
        let ratio = ratio * grown.clamp(-MOST_GROWTH, MOST_GROWTH).exp();
        let corrected = value * ratio;
        Corrected { value: corrected, by_value: ratio, by_slope: if grown.abs() < MOST_GROWTH { corrected } else { 0.0 } }
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
    /// The estimates at which the factors were taken.
    #[serde(default)]
    pub at: Bindings,
}

impl Correction {
    /// `inner` with its values and derivatives corrected; errors are its own. Measures without factors are left as they are.
    pub fn around<'a>(&'a self, inner: &'a SolveFn<'a>) -> Box<SolveFn<'a>> {
        Box::new(move |model, values, wrt, measures, options| {
            let mut solved = inner(model, values, wrt, measures, options)?;
            self.correct(values, wrt, measures, &mut solved);
            Ok(solved)
        })
    }

    fn correct(&self, values: &Bindings, wrt: &[String], measures: &[Measure], solved: &mut Sensitivities) {
        let shares = self.shares(values);
        let moved: Vec<(&str, f64)> = self.at.iter().filter_map(|(name, at)| Some((name, values.get(name)? - at))).collect();
        for (i, measure) in measures.iter().enumerate() {
            let (mut value, mut total) = (0.0, 0.0);
            let mut slopes = DVector::zeros(solved.jacobian.ncols());
            for (factor, share) in shares.iter().filter_map(|(p, share)| Some((p.factors.get(measure)?, share))) {
                let corrected = factor.apply(solved.values[i], &moved);
                value += share * corrected.value;
                total += share;
                for (j, slope) in slopes.iter_mut().enumerate() {
                    let grown = wrt.get(j).and_then(|name| factor.slopes.get(name)).map_or(0.0, |g| corrected.by_slope * g);
                    *slope += share * (corrected.by_value * solved.jacobian[(i, j)] + grown);
                }
            }
            if total > 0.0 {
                solved.values[i] = value / total;
                solved.jacobian.set_row(i, &(slopes / total).transpose());
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
    use nalgebra::DMatrix;

    use super::*;
    use crate::{
        model::Model,
        solve::{Solution, SolveOptions},
    };

    fn point(controlled: &[(&str, f64)], ratio: Option<f64>) -> CorrectedPoint {
        let factor = Factor { analytic: 1.0, simulated: ratio.unwrap_or(1.5), half_width: None, ratio, slopes: IndexMap::new() };
        CorrectedPoint {
            controlled: controlled.iter().copied().collect(),
            factors: [("throughput(T)".parse().unwrap(), factor)].into_iter().collect(),
        }
    }

    fn ratio_at(correction: &Correction, values: &[(&str, f64)]) -> f64 {
        let shares = correction.shares(&values.iter().copied().collect());
        shares.iter().map(|(p, share)| share * p.factors[0].apply(2.0, &[]).value / 2.0).sum()
    }

    #[test]
    fn ratios_are_interpolated_between_points_and_constant_beyond() {
        let points = vec![point(&[("n", 1.0), ("z", 5.0)], Some(1.0)), point(&[("n", 5.0), ("z", 5.0)], Some(2.0))];
        let correction = Correction { points, ..Correction::default() };
        for (n, expected) in [(1.0, 1.0), (3.0, 1.5), (5.0, 2.0), (0.0, 1.0), (50.0, 2.0)] {
            assert_eq!(ratio_at(&correction, &[("n", n), ("z", 5.0)]), expected);
        }
    }

    #[test]
    fn over_several_values_the_near_points_count_most() {
        let at = |n: f64, z: f64, ratio: f64| point(&[("n", n), ("z", z)], Some(ratio));
        let points = vec![at(0.0, 0.0, 1.0), at(1.0, 0.0, 2.0), at(0.0, 10.0, 3.0)];
        let correction = Correction { points, ..Correction::default() };
        assert_eq!(ratio_at(&correction, &[("n", 1.0), ("z", 0.0)]), 2.0);
        let near = ratio_at(&correction, &[("n", 0.9), ("z", 0.0)]);
        assert!((1.9..2.0).contains(&near), "{near}");
    }

    #[test]
    fn near_zero_the_difference_is_added() {
        let correction = Correction { points: vec![point(&[("n", 1.0)], None)], ..Correction::default() };
        assert_eq!(ratio_at(&correction, &[("n", 7.0)]), 1.25);
    }

    #[test]
    fn slopes_bend_values_and_derivatives_alike() {
        let mut it = point(&[("n", 1.0)], Some(1.1));
        it.factors[0].slopes.insert("d".into(), 0.5);
        let correction = Correction { points: vec![it], at: [("d", 2.0)].into_iter().collect() };
        let measures: Vec<Measure> = vec!["throughput(T)".parse().unwrap()];
        let inner = |_: &Model, v: &Bindings, _: &[String], _: &[Measure], _: &SolveOptions| {
            let d = v.get("d").unwrap();
            let (values, jacobian) = (vec![d * d], DMatrix::from_element(1, 1, 2.0 * d));
            Ok(Sensitivities { values, jacobian, solution: Solution::default(), near: None })
        };
        let at = |d: f64| {
            let values = [("n", 1.0), ("d", d)].into_iter().collect();
            let solved = correction.around(&inner)(&Model::default(), &values, &["d".into()], &measures, &SolveOptions::default()).unwrap();
            (solved.values[0], solved.jacobian[(0, 0)])
        };
        assert_eq!(at(2.0), (4.0 * 1.1, 1.1 * (4.0 + 0.5 * 4.0)));
        for d in [2.0, 2.3, 1.2, 9.0] {
            let (below, here, above) = (at(d - 1e-5), at(d), at(d + 1e-5));
            assert!(((above.0 - below.0) / 2e-5 / here.1 - 1.0).abs() < 1e-6, "{d}");
        }
        assert!((at(9.0).0 / (81.0 * 2.2) - 1.0).abs() < 1e-12, "a factor of two is the most");
    }
}
