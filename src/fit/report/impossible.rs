//! Measured values that cannot be.

use crate::{
    fit::{problem::Problem, report::utilization::measured_resource},
    model::Measure,
};

/// Utilization per server from which a measurement is remarked: what is not error of measurement.
const FULL: f64 = 1.05;

/// One remark for each value below zero or time of zero, and for each measure of which values are beyond its servers.
pub(super) fn impossible_values(problem: &Problem) -> Vec<String> {
    let mut notes = not_above_zero(problem);
    notes.extend(problem.trials.measures.iter().enumerate().filter_map(|(k, measure)| beyond_servers(problem, k, measure)));
    notes
}

fn not_above_zero(problem: &Problem) -> Vec<String> {
    let trials = &problem.trials;
    let cells = trials.trials.iter().flat_map(|t| trials.measures.iter().zip(&t.measured).map(move |(m, cell)| (t, m, cell)));
    let is_time = |m: &Measure| matches!(m, Measure::ResponseTime(_) | Measure::ServiceTime { .. });
    let cannot_be = |m: &Measure, value: f64| value < 0.0 || value == 0.0 && is_time(m);
    let found = cells.filter_map(|(t, m, cell)| Some((t, m, cell.as_ref().filter(|c| cannot_be(m, c.value))?.value)));
    found
        .map(|(t, m, value)| {
            if value < 0.0 {
                format!("trial \"{}\": {m} is {value}, below zero", t.id)
            } else {
                format!("trial \"{}\": {m} is 0, as if nothing was served", t.id)
            }
        })
        .collect()
}

fn beyond_servers(problem: &Problem, k: usize, measure: &Measure) -> Option<String> {
    let beyond: Vec<(&str, f64, f64)> = problem
        .trials
        .trials
        .iter()
        .enumerate()
        .filter_map(|(index, trial)| {
            let value = trial.measured[k].as_ref()?.value;
            let (_, servers) = measured_resource(&problem.model, &problem.bindings_of(index), measure)?;
            (value > FULL * servers).then_some((trial.id.as_str(), value, servers))
        })
        .collect();
    let (trial, value, servers) = beyond.iter().copied().max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))?;
    let more = if beyond.len() > 1 { format!(", and {} more trials likewise", beyond.len() - 1) } else { String::new() };
    let percent = if value > 2.0 * servers { ": expected the mean number that are busy, not a percentage" } else { "" };
    Some(format!("trial \"{trial}\": {measure} is {value} with {servers} to be busy{more}{percent}"))
}
