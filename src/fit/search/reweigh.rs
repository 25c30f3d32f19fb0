//! What is estimated beside the parameters, anew after each minimum: variances, the weights of a loss, the share of a prior.
//!
//! | estimated | from the residuals `r` of a minimum |
//! |---|---|
//! | variances of the measures | [`Weights::update`] |
//! | factors of a loss that bounds outliers | `√w(r / σ)`, with `σ` the scale of most residuals ([`robust_scale`]) |
//! | factor of a prior against errors of unknown scale | `√(Σ r² / dof)` |

use crate::fit::{
    engine::{least_squares::Minimum, loss::median_deviation},
    problem::{ErrorScale, Problem},
    search::weights::Weights,
};

/// Re-estimates residual variances, factors of the loss and, unless it is left out by a factor of 0, that of the prior from the residuals of
/// `minimum`. Returns the largest relative change.
pub(crate) fn reweigh(problem: &Problem, weights: &mut Weights, minimum: &Minimum) -> f64 {
    let n = weights.n_residuals();
    let factor = |weights: &Weights, i: usize| weights.factors.get(i).copied().unwrap_or(1.0);
    let mut plain: Vec<f64> = (0..n).map(|i| minimum.residuals[i] / factor(weights, i)).collect();
    let mut change = 0.0_f64;
    if weights.are_estimated() {
        // No whitening where variances are estimated: rows are observations.
        let raw: Vec<f64> = plain.iter().zip(&weights.observations).map(|(r, o)| r / o.root_weight).collect();
        change = weights.update(&raw, problem);
        plain = weights.whiten(&raw).iter().copied().collect();
    }
    let loss = problem.method.loss;
    if !loss.is_squared() {
        let sigma = robust_scale(problem, weights, &plain);
        let factors: Vec<f64> = plain.iter().map(|r| loss.weight(r / sigma).sqrt()).collect();
        let moved = factors.iter().enumerate().map(|(i, f)| (f - factor(weights, i)).abs());
        change = moved.fold(change, f64::max);
        weights.factors = factors;
    }
    if weights.has_free_scale(problem) && problem.priors().next().is_some() && weights.prior_factor > 0.0 {
        let squares: f64 = plain.iter().enumerate().map(|(i, r)| (r * factor(weights, i)).powi(2)).sum();
        let dof = n.saturating_sub(problem.estimate.len()).max(1);
        let factor = (squares / f64::from(u32::try_from(dof).unwrap_or(u32::MAX))).sqrt().max(f64::MIN_POSITIVE);
        change = change.max((factor / weights.prior_factor - 1.0).abs());
        weights.prior_factor = factor;
    }
    change
}

/// Scale of the weighted residuals under a loss that bounds outliers: 1 where variances are estimated or known.
pub(crate) fn robust_scale(problem: &Problem, weights: &Weights, plain: &[f64]) -> f64 {
    if weights.are_estimated() || problem.method.error_scale == ErrorScale::Known {
        return 1.0;
    }
    let sigma = median_deviation(plain.iter().copied());
    if sigma > 0.0 { sigma } else { 1.0 }
}
