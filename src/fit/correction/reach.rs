//! How far a round of a correction may go: as far as something was simulated.

use crate::fit::{
    problem::Problem,
    report::{Fit, ParameterStatus},
};

/// Keeps the search between these, by parameter.
pub(super) fn keep_within(problem: &mut Problem, reach: &[(f64, f64)]) {
    let finite = |bound: f64| Some(bound).filter(|b| b.is_finite());
    for (e, &(low, high)) in problem.estimate.iter_mut().zip(reach) {
        (e.min, e.max) = (finite(low), finite(high));
        e.start = e.start.map(|start| start.clamp(low, high));
    }
}

/// Names of the parameters that end where `reach` does and `bounds` do not.
pub(super) fn held(fit: &Fit, bounds: &[(f64, f64)], reach: &[(f64, f64)]) -> Vec<String> {
    let each = fit.parameters.iter().zip(bounds).zip(reach);
    let held = each.filter(|(((_, p), (min, max)), (low, high))| match p.status {
        ParameterStatus::AtLowerBound => low > min,
        ParameterStatus::AtUpperBound => high < max,
        _ => false,
    });
    held.map(|(((name, _), _), _)| name.clone()).collect()
}

/// Bounds of the parameters are those of the problem again, and those that are held by `reach` have no minimum.
pub(super) fn say_what_is_held(fit: &mut Fit, reach: Option<&[(f64, f64)]>) {
    let Some(reach) = reach else { return };
    let bounds = fit.problem.bounds();
    let held = held(fit, &bounds, reach);
    for ((name, p), (min, max)) in fit.parameters.iter_mut().zip(bounds) {
        (p.min, p.max) = (Some(min).filter(|b| b.is_finite()), Some(max).filter(|b| b.is_finite()));
        if held.contains(name) {
            p.status = ParameterStatus::NotConverged;
            p.explanation = Some(
                "the best value lies beyond what was simulated for the correction: there is no interval, and the others are as if it were known".into(),
            );
        }
    }
}
