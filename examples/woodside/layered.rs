//! Table 3: the layered model with seven parameters, two of them whole numbers, and the utilizations printed beside it.

use layerfit::{
    fit::{Estimated, Fit, Method, Problem, Trials, Weighting},
    model::{Bindings, Measure, MeasureError, Model, lqn_text},
    solve::{self, SolveOptions},
};
use serde::Serialize;

use super::{
    fitted,
    queues::Interval,
    trials::{Run, System, with_relative_weights},
};

/// Names of the parameters with their values in variant S.
pub const TRUTH: [(&str, f64); 7] =
    [("dirD", 0.1), ("WSD", 0.6), ("appDph1", 0.2), ("appDph2", 0.2), ("dbD", 0.1), ("mApp", 1.0), ("wsThreads", 3.0)];

/// Numbers of calls of variant S: to the directory, and to the database in either phase.
const CALLS: [(&str, f64); 3] = [("dirCalls", 0.2), ("dbCalls1", 1.2), ("dbCalls2", 1.2)];

const DELAYS: [&str; 6] = [
    "response_time(Users)",
    "throughput(Users)",
    "response_time(appOp)",
    "response_time(dbOp)",
    "service_time(wsOp,1)",
    "service_time(appOp,2)",
];
/// Of processors only: the directory's own would give its demand away.
const UTILIZATIONS: [&str; 3] = ["utilization(WSP)", "utilization(AppP)", "utilization(DBP)"];

/// A row of table 3 as printed: name, length, estimates, half-widths, E.
struct Printed(&'static str, f64, [f64; 7], [f64; 7], f64);

const PRINTED: [Printed; 2] = [
    Printed("D1", 1e3, [0.695, 0.559, 0.192, 0.234, 0.101, 1.0, 3.0], [0.693, 0.138, 0.021, 0.232, 0.002, 0.207, 0.050], 0.5935),
    Printed("D2", 1e5, [0.378, 0.608, 0.195, 0.111, 0.100, 1.0, 3.0], [0.367, 0.059, 0.011, 0.202, 0.001, 0.140, 0.024], 0.1960),
];

/// Utilizations printed for 50 users.
const PRINTED_UTILIZATIONS: [(&str, f64); 7] =
    [("WSP", 0.88), ("AppP", 0.61), ("DBP", 0.34), ("WS", 3.0), ("App", 0.96), ("DB", 0.34), ("Dir", 0.04)];

/// One fit of table 3.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Printed experiment that it stands beside.
    pub experiment: &'static str,
    /// What was measured.
    pub measured: &'static str,
    /// Think time of the trials.
    pub think: f64,
    /// Length of each trial.
    pub length: f64,
    /// Estimates with half-widths, as [`TRUTH`].
    pub fitted: Vec<Interval>,
    /// Sum of squared relative errors.
    pub sum_of_squares: f64,
    /// Whole numbers tried, with the least sum of squares at each.
    pub tried: Vec<(String, Vec<(f64, f64)>)>,
}

/// A row of the printed table.
#[derive(Clone, Debug, Serialize)]
pub struct PrintedRow {
    /// Experiment.
    pub experiment: &'static str,
    /// Estimates with half-widths.
    pub printed: Vec<Interval>,
    /// Sum of squares.
    pub sum_of_squares: f64,
}

/// A utilization at 50 users.
#[derive(Clone, Debug, Serialize)]
pub struct Utilization {
    /// Processor or task.
    pub resource: &'static str,
    /// As printed.
    pub printed: f64,
    /// Variant L, solved.
    pub solved: f64,
    /// Variant L, simulated.
    pub simulated: f64,
}

/// The printed rows.
pub fn printed() -> Vec<PrintedRow> {
    let row = |Printed(experiment, _, estimates, half_widths, sum_of_squares): &Printed| PrintedRow {
        experiment,
        printed: estimates.iter().zip(half_widths).map(|(e, h)| Interval { estimate: *e, half_width: Some(*h) }).collect(),
        sum_of_squares: *sum_of_squares,
    };
    PRINTED.iter().map(row).collect()
}

fn parse(text: &str) -> Result<Model, String> {
    lqn_text::parse(text).map_err(|e| e.to_string())
}

fn measures(names: &[&str]) -> Result<Vec<Measure>, String> {
    names.iter().map(|m| m.parse()).collect::<Result<_, MeasureError>>().map_err(|e| e.to_string())
}

/// Trials of variant S at 5 to 50 users.
fn data(think: f64, length: f64, names: &[&str], seed: u64) -> Result<Trials, String> {
    let system = System {
        model: parse(include_str!("layered-s.lqn"))?,
        truth: TRUTH.into_iter().chain(CALLS).collect(),
        measures: measures(names)?,
    };
    let run = |k: u32| Run {
        controlled: [("users", f64::from(5 * k)), ("think", think)].into_iter().collect(),
        length,
        seed: seed + u64::from(k),
    };
    system.trials(&(1..=10).map(run).collect::<Vec<_>>()).map(with_relative_weights)
}

fn problem(trials: Trials) -> Result<Problem, String> {
    let start = |name: &str| match name {
        "mApp" => 1.0,
        "wsThreads" => 2.0,
        _ => 0.3,
    };
    Ok(Problem {
        model: parse(include_str!("layered-s.lqn"))?,
        estimate: TRUTH.iter().map(|(name, _)| Estimated::new(*name).starting_at(start(name))).collect(),
        assumed: CALLS.into_iter().collect(),
        trials,
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    })
}

fn only(trials: &Trials, names: &[&str]) -> Result<Trials, String> {
    let kept = measures(names)?;
    let positions: Vec<usize> = kept.iter().filter_map(|m| trials.measures.iter().position(|other| other == m)).collect();
    let mut found = Trials { measures: kept, trials: trials.trials.clone() };
    for trial in &mut found.trials {
        trial.measured = positions.iter().map(|&k| trial.measured[k]).collect();
    }
    Ok(found)
}

fn row(experiment: &'static str, measured: &'static str, think: f64, length: f64, fit: &Fit) -> Row {
    Row {
        experiment,
        measured,
        think,
        length,
        fitted: TRUTH.iter().map(|(name, _)| Interval::of(fit, name)).collect(),
        sum_of_squares: fit.sum_of_squares,
        tried: fit.whole_numbers.iter().map(|w| (w.parameter.clone(), w.tried.clone())).collect(),
    }
}

/// The fits of table 3: either length with delays alone and with utilizations, and the long one at another think time.
pub fn table(quick: bool) -> Result<Vec<Row>, String> {
    let both: Vec<&str> = DELAYS.into_iter().chain(UTILIZATIONS).collect();
    let mut rows = Vec::new();
    for Printed(experiment, printed_length, ..) in PRINTED {
        let length = if quick { printed_length.min(1e4) } else { printed_length };
        let trials = data(5.0, length, &both, 700)?;
        let delays = fitted(&problem(only(&trials, &DELAYS)?)?)?;
        rows.push(row(experiment, "delays", 5.0, length, &delays));
        rows.push(row(experiment, "delays and utilizations", 5.0, length, &fitted(&problem(trials)?)?));
        if experiment == "D2" {
            let longer = fitted(&problem(data(15.0, length, &both, 800)?)?)?;
            rows.push(row(experiment, "delays and utilizations", 15.0, length, &longer));
        }
    }
    Ok(rows)
}

/// The utilizations of variant L at 50 users.
pub fn utilizations(quick: bool) -> Result<Vec<Utilization>, String> {
    let model = parse(include_str!("layered-l.lqn"))?;
    let mut truth: Bindings = TRUTH.into_iter().collect();
    [("WSD", 0.4), ("users", 50.0), ("think", 5.0)].into_iter().for_each(|(name, v)| truth.set(name, v));
    let names: Vec<String> = PRINTED_UTILIZATIONS.iter().map(|(name, _)| format!("utilization({name})")).collect();
    let measures = measures(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let solved = solve::sensitivities(&model, &truth, &[], &measures, &SolveOptions::default()).map_err(|e| e.to_string())?;
    let system = System { model, truth, measures };
    let length = if quick { 1e4 } else { 1e6 };
    let simulated = system.trials(&[Run { controlled: Bindings::new(), length, seed: 50 }])?;
    let value = |k: usize| simulated.trials[0].measured[k].map_or(f64::NAN, |m| m.value);
    let of = |(k, (resource, printed)): (usize, &(&'static str, f64))| Utilization {
        resource,
        printed: *printed,
        solved: solved.values[k],
        simulated: value(k),
    };
    Ok(PRINTED_UTILIZATIONS.iter().enumerate().map(of).collect())
}
