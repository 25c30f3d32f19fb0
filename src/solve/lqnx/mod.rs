//! A solution as the LQN tools write one: the model's LQNX document with a `result-*` element in every element of the model.
//!
//! Input: the model, the values it was solved under, its [`Solution`]. Output: the text of the document, with every `$name`
//! replaced by its value. Half-widths of a simulation stand at 95 and at 99 % (`interval`).
//!
//! What a solution does not hold itself follows from what it holds. With `X` a throughput, `d` a demand, `f` the speed of the
//! processor, `S` a service time, `Z` an own think time, `y` calls of wait `W` to an entry of first phase `S1`, which forwards
//! with probability `q` to an entry of the same kind:
//!
//! | attribute | from |
//! |---|---|
//! | `phaseN-utilization` of a task, `utilization` of a phase | `X S`, summed over entries (utilization law) |
//! | `proc-utilization` | `X d / f`, summed over phases and activities |
//! | `proc-waiting` | `S - Z - d / f - sum y (W + R)`, `R = S1 + sum q (W + R)`; 0 at an infinite processor |
//! | `squared-coeff-variation` | `sum of the phases' variances / (sum of their means)^2` |
//! | `throughput`, `utilization` of an activity | visits of the graph × `X` of its entries, where not counted (`graph`); × `S` |
//! | `waiting` of an asynchronous call | `W + S1`: the tools count to the end of phase 1 |
//! | `semaphore-waiting`, `-utilization`; `rwlock-*-holding`, `-utilization` | time held `H`; `X H` |
//! | `rwlock-*-waiting`, `-waiting-variance` | mean and variance of `W` over all callers |
//! | bins of a `service-time-distribution` (`histograms`) | those of a simulation; `conf-*` in them are half-widths |
//!
//! `waiting-variance` of an asynchronous call is left out: what is known is that of `W`, not of `W + S1`.
//!
//! `valid` says whether the solver converged, `conv-val` is its residual (of a simulation, in per cent, the largest relative
//! half-width). Results are per copy of replicated elements. Meaning of the attributes: the LQN user manual (Franks et al.)
//! and the schema `lqn-core.xsd` of the LQN tools.

mod elements;
mod histograms;
mod interval;

use self::{elements::Elements, interval::Intervals};
use super::{Solution, SolveError};
use crate::model::{Bindings, Model, lqnx};

/// What a document says beside the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LqnxOptions {
    /// Confidence of the solution's half-widths, in (0, 1).
    pub confidence: f64,
    /// Wall-clock time that the solution took, in seconds.
    pub elapsed_s: Option<f64>,
}

impl Default for LqnxOptions {
    fn default() -> Self {
        Self { confidence: 0.95, elapsed_s: None }
    }
}

/// `model`, solved under `values` to `solution`, as LQNX with results.
///
/// The document reads back as the model bound to its values ([`Model::bound_to`]).
///
/// # Errors
/// [`SolveError::Unbound`] and [`SolveError::Unusable`] for parameters without a value.
pub fn write(model: &Model, values: &Bindings, solution: &Solution, options: &LqnxOptions) -> Result<String, SolveError> {
    let bound = model.bound_to(&super::bind::bindings(model, values)?)?;
    let intervals = Intervals::new(solution, options.confidence);
    let elements = Elements::new(&bound, solution, intervals).all();
    let histograms = histograms::histograms(solution, intervals);
    let results = lqnx::ResultElements { general: general(solution, options), elements, histograms };
    Ok(lqnx::write_with_results(&bound, &results))
}

/// How the solution was got.
fn general(solution: &Solution, options: &LqnxOptions) -> Vec<(&'static str, String)> {
    let residual = if solution.solver == "simulate" { 100.0 * solution.residual } else { solution.residual };
    let mut general = vec![
        ("solver-info", format!("layerfit {} {}", env!("CARGO_PKG_VERSION"), solution.solver)),
        ("valid", if solution.converged { "YES" } else { "NO" }.to_owned()),
        ("conv-val", if residual.is_finite() { format!("{residual:e}") } else { "INF".to_owned() }),
        ("iterations", solution.iterations.to_string()),
    ];
    general.extend(options.elapsed_s.map(|elapsed_s| ("elapsed-time", time_of_day(elapsed_s))));
    general
}

/// `hh:mm:ss.mmm`, at most a day.
fn time_of_day(elapsed_s: f64) -> String {
    /// Just before midnight.
    const LAST_MS: f64 = 86_399_999.0;
    let elapsed_ms = (1e3 * elapsed_s).round().clamp(0.0, LAST_MS);
    let (hours, minutes) = ((elapsed_ms / 3.6e6).floor(), (elapsed_ms / 6e4).floor() % 60.0);
    format!("{hours:02}:{minutes:02}:{:06.3}", elapsed_ms % 6e4 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_day() {
        assert_eq!(time_of_day(0.001), "00:00:00.001");
        assert_eq!(time_of_day(3723.456), "01:02:03.456");
        assert_eq!(time_of_day(59.9996), "00:01:00.000");
        assert_eq!(time_of_day(1e6), "23:59:59.999");
    }
}
