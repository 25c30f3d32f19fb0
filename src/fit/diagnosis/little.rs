//! Do errors of delays and throughput cancel as Little's law says, or as the weights say?
//!
//! With `N` customers and think time `Z`, measured times and throughput of one run obey `N = X (Z + Σ T_i)`, whatever the
//! parameters are. So does the model, and the direction `c` of a trial's measures along which the law is first met,
//!
//! ```text
//! c = (X for every T_i, N / X for X)          cᵀ H = 0: no parameter moves the predictions along c
//! ```
//!
//! is one that fitting leaves alone. With `A` that makes the trial's errors independent, and `q_t = A⁻ᵀ c / |A⁻ᵀ c|`, the
//! `K` numbers `q_tᵀ u_t` of the weighted residuals `u_t` are independent of all others, and
//!
//! ```text
//! F = (Σ (q_tᵀ u_t)² / K) / ((E - Σ (q_tᵀ u_t)²) / (d - K))        ~ F(K, d - K) where the weights are right
//! ```
//!
//! exactly in the linear approximation. Too small: the errors of one trial cancel, and the weights take them as independent. Too large:
//! the measured values break the law beyond their errors; they are not of the same customers, or not in the model's units.
//! With ten trials of a closed network this sees correlation that a test of any covariance against any other cannot.
//!
//! Source: J. Little, Operations Research 9 (1961), for the law; the direction is worked out here.

use nalgebra::DVector;

use super::TestResult;
use crate::{
    fit::{
        engine::least_squares::Minimum,
        inference::distribution::f_upper_tail,
        problem::Problem,
        search::weights::{Block, Weights},
    },
    model::{Bindings, Measure, Task},
};

/// Relative gap in the law at the predicted values that a converged solution may leave.
const GAP: f64 = 1e-5;

/// Relative share of a direction below which it adds nothing to those before.
const DEPENDENT: f64 = 1e-8;

/// Relative step of the parameters by which it is seen whether customers or think time hang on them.
const STEP: f64 = 0.01;

/// What the law says of one reference task's measures.
struct Law {
    /// Position of its throughput.
    throughput: usize,
    /// Positions of the times whose sum, with the think time, is its cycle.
    times: Vec<usize>,
    /// Its customers, by trial.
    customers: Vec<f64>,
}

/// The test for a fit of `problem` that ended at `minimum` with `predicted` values, `(n_trials)` of `(n_measures)`, and `dof`
/// degrees of freedom; `None` where no reference task has both throughput and times measured.
pub(super) fn little_test(
    problem: &Problem,
    weights: &Weights,
    minimum: &Minimum,
    predicted: &[Vec<f64>],
    dof: usize,
) -> Option<TestResult> {
    if !weights.factors.is_empty() {
        return None;
    }
    let laws = laws(problem, &minimum.x, predicted);
    let (mut along, mut n_directions) = (0.0, 0);
    for block in &weights.blocks {
        let values = &predicted[block.trial_idx];
        let directions: Vec<DVector<f64>> = laws.iter().filter_map(|law| direction(law, block, weights, values)).collect();
        let residuals = minimum.residuals.rows(block.rows.start, block.rows.len());
        for q in orthonormal(directions) {
            along += q.dot(&residuals).powi(2);
            n_directions += 1;
        }
    }
    let rest_dof = dof.checked_sub(n_directions).filter(|d| *d > 0 && n_directions > 0)?;
    let rest = minimum.residuals.rows(0, weights.n_residuals()).norm_squared() - along;
    if rest <= 0.0 {
        return None;
    }
    let size = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let statistic = (along / size(n_directions)) / (rest / size(rest_dof));
    let above = f_upper_tail(statistic, n_directions, rest_dof)?;
    Some(TestResult { statistic, p_value: (2.0 * above.min(1.0 - above)).clamp(0.0, 1.0), n: n_directions })
}

/// The laws that the measures of `problem` can be held to and that the predicted values obey.
fn laws(problem: &Problem, x: &[f64], predicted: &[Vec<f64>]) -> Vec<Law> {
    let reference = problem.model.tasks.iter().filter(|t| t.scheduling.is_reference());
    let law = |task: &Task| {
        let throughput = position(problem, |m| *m == Measure::Throughput(task.name.clone()))?;
        let response = position(problem, |m| *m == Measure::ResponseTime(task.name.clone()));
        let residences = || {
            let all = problem.trials.measures.iter().enumerate();
            all.filter(|(_, m)| matches!(m, Measure::ResidenceTime(_))).map(|(k, _)| k).collect::<Vec<usize>>()
        };
        let times = response.map_or_else(residences, |k| vec![k]);
        let mut law = Law { throughput, times, customers: Vec::new() };
        for (trial_idx, values) in predicted.iter().enumerate() {
            law.customers.push(law.customers_where_it_holds(problem, task, x, trial_idx, values)?);
        }
        (!law.times.is_empty()).then_some(law)
    };
    reference.filter_map(law).collect()
}

fn position(problem: &Problem, is: impl Fn(&Measure) -> bool) -> Option<usize> {
    problem.trials.measures.iter().position(is)
}

impl Law {
    /// The customers of a trial whose predicted values obey the law, where no estimated parameter moves them or their think time.
    fn customers_where_it_holds(&self, problem: &Problem, task: &Task, x: &[f64], trial_idx: usize, values: &[f64]) -> Option<f64> {
        let at = |factor: f64| {
            let mut bindings = problem.bindings_of(trial_idx);
            problem.estimate.iter().zip(x).for_each(|(e, x)| bindings.set(e.name.clone(), x * factor));
            cycle(problem, task, &bindings)
        };
        let (customers, think) = at(1.0)?;
        let found = values[self.throughput] * (think + self.times.iter().map(|&k| values[k]).sum::<f64>());
        let held = (found / customers - 1.0).abs() <= GAP && at(1.0 + STEP) == Some((customers, think));
        held.then_some(customers)
    }
}

/// Customers and think time of a reference task.
fn cycle(problem: &Problem, task: &Task, values: &Bindings) -> Option<(f64, f64)> {
    let all = problem.model.bindings(values).ok()?;
    let value = |number: &crate::model::Number| number.eval(&all).ok().filter(|v: &f64| v.is_finite());
    Some((value(&task.multiplicity)?, value(&task.think_time)?))
}

/// `A⁻ᵀ c` of a trial; `None` where a measure of the law is missing or an exact relation was left out.
fn direction(law: &Law, block: &Block, weights: &Weights, values: &[f64]) -> Option<DVector<f64>> {
    let n = block.observations.len();
    let observations = &weights.observations[block.observations.clone()];
    let row = |k: usize| observations.iter().position(|o| o.measure_idx == k);
    let throughput = values[law.throughput];
    let mut c = DVector::zeros(n);
    for &k in &law.times {
        c[row(k)?] = throughput;
    }
    c[row(law.throughput)?] = law.customers[block.trial_idx] / throughput;
    if block.rows.len() < n {
        return None;
    }
    match &block.whitening {
        Some(w) => w.matrix.transpose().lu().solve(&c),
        None => Some(DVector::from_fn(n, |i, _| c[i] / observations[i].root_weight)),
    }
}

/// The directions made orthogonal and of length one, those that add nothing left out.
fn orthonormal(directions: Vec<DVector<f64>>) -> Vec<DVector<f64>> {
    let mut found: Vec<DVector<f64>> = Vec::new();
    for mut d in directions {
        let length = d.norm();
        found.iter().for_each(|q| d -= q * q.dot(&d));
        let rest = d.norm();
        if rest > DEPENDENT * length {
            found.push(d / rest);
        }
    }
    found
}
