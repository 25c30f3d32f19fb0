//! Sensitivities of simulated measures: differences between runs with the same random numbers.
//!
//! ```text
//! dz/dx  ~  (z(x + h) - z(x - h)) / 2h
//! ```
//!
//! Both runs have the same seed and length, and every task and processor draws from a stream of its own, so that most of
//! the noise of `z` is in both and cancels. `h` is [`STEP`] of the parameter, wide enough for what noise is left; the error
//! of a smooth measure is of order `STEP^2`. Multiplicities move by 1. A step that leaves the range of the parameter is
//! left out, and the difference is then to the middle.
//!
//! Source: Glasserman and Yao 1992, *Some guidelines and guarantees for common random numbers*.

use std::collections::BTreeSet;

use nalgebra::DMatrix;

use super::{SimulateOptions, measure};
use crate::{
    model::{Bindings, Measure, Model, UnboundParameter},
    solve::{Sensitivities, SolveError, multiplicity_parameters},
};

/// Half of the step, relative to the parameter.
const STEP: f64 = 0.02;

/// Simulates `model` at `values` and returns the asked measures with their derivatives with respect to the parameters
/// `wrt`, by differences.
///
/// # Errors
/// As [`super::simulate`], and [`SolveError::UnknownMeasure`].
pub fn sensitivities(
    model: &Model,
    values: &Bindings,
    wrt: &[String],
    measures: &[Measure],
    options: &SimulateOptions,
) -> Result<Sensitivities, SolveError> {
    let middle = measure(model, values, options, measures)?;
    middle.observed(measures)?;
    #[expect(clippy::cast_precision_loss, reason = "a count of replications")]
    let run_time = middle.solution.measured_time.map(|t| t / options.replications as f64);
    let options = SimulateOptions { run_time: options.run_time.or(run_time), precision: None, max_events: u64::MAX, ..options.clone() };
    let counts = multiplicity_parameters(model);
    let mut jacobian = DMatrix::zeros(measures.len(), wrt.len());
    for (j, name) in wrt.iter().enumerate() {
        let (below, above) = ends(model, values, name, &counts)?;
        let at = |value: f64| {
            let mut moved = values.clone();
            moved.set(name.as_str(), value);
            measure(model, &moved, &options, measures)?.observed(measures).map(|values| (value, values))
        };
        let (low, high) = match (at(below), at(above)) {
            (Ok(low), Ok(high)) => (low, high),
            (Ok(low), Err(_)) => (low, at(0.5 * (below + above))?),
            (Err(_), high) => (at(0.5 * (below + above))?, high?),
        };
        for i in 0..measures.len() {
            jacobian[(i, j)] = (high.1[i] - low.1[i]) / (high.0 - low.0);
        }
    }
    Ok(Sensitivities { values: middle.observed(measures)?, jacobian, solution: middle.solution, near: None })
}

/// Values between which the difference with respect to a parameter is taken.
fn ends(model: &Model, values: &Bindings, name: &str, counts: &BTreeSet<String>) -> Result<(f64, f64), SolveError> {
    let bound = crate::solve::bind::bindings(model, values)?;
    let at = bound.get(name).ok_or_else(|| UnboundParameter { name: name.to_owned() })?;
    if counts.contains(name) {
        return Ok((if at > 1.0 { at - 1.0 } else { at }, at + 1.0));
    }
    let step = if at == 0.0 { STEP } else { STEP * at.abs() };
    Ok((at - step, at + step))
}
