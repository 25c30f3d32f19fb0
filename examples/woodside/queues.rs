//! Tables 1 and 2: the three queues, and a fourth that is not there.

use layerfit::{
    fit::{Estimated, Fit, Method, Problem, Trials, Weighting, compare},
    model::{Bindings, lqn_text},
};
use serde::Serialize;

use super::{
    fitted,
    trials::{Run, System, with_covariances},
};

/// Independent runs from which an error covariance is taken.
const PILOT_RUNS: usize = 200;

/// Longest pilot run; covariances of longer trials are scaled from it.
const LONGEST_PILOT: f64 = 1e4;

/// Seeds of trials, by think time and length, so that a table is the same every time.
const SEED: u64 = 2008;

/// An experiment of table 1 as printed: name, think time, replicates of each population, length, estimates, half-widths.
struct Printed(&'static str, f64, usize, f64, [f64; 3], [f64; 3]);

const PRINTED: [Printed; 10] = [
    Printed("A1", 0.0, 1, 1e6, [2.003, 3.005, 4.005], [0.0109, 0.0108, 0.0087]),
    Printed("A2", 0.0, 1, 1e5, [1.992, 2.989, 4.011], [0.0223, 0.0222, 0.0178]),
    Printed("A3", 0.0, 10, 1e4, [2.011, 3.077, 4.044], [0.039, 0.038, 0.031]),
    Printed("A4", 0.0, 1, 1e4, [2.018, 2.994, 4.004], [0.018, 0.018, 0.014]),
    Printed("A5", 0.0, 1, 1e3, [2.182, 2.967, 3.848], [0.204, 0.217, 0.181]),
    Printed("B1", 10.0, 1, 1e6, [2.005, 2.994, 4.009], [0.0089, 0.0097, 0.0081]),
    Printed("B2", 10.0, 1, 1e5, [2.003, 3.010, 4.036], [0.0215, 0.0234, 0.0194]),
    Printed("B3", 10.0, 10, 1e4, [2.001, 2.999, 3.941], [0.025, 0.027, 0.023]),
    Printed("B4", 10.0, 1, 1e4, [1.939, 2.944, 3.925], [0.072, 0.078, 0.065]),
    Printed("B5", 10.0, 1, 1e3, [1.854, 2.798, 3.980], [0.221, 0.247, 0.188]),
];

/// Table 2 as printed: name, its experiment of table 1, estimates, half-widths, E with four queues and with three, statistic.
struct PrintedFourth(&'static str, &'static str, [f64; 4], [f64; 4], [f64; 2], f64);

const PRINTED_FOURTH: [PrintedFourth; 2] = [
    PrintedFourth("C1", "B1", [2.005, 2.994, 4.010, 0.005], [0.009, 0.010, 0.009, 0.201], [2.577, 2.579], 0.014),
    PrintedFourth("C5", "B5", [1.858, 2.808, 4.006, 0.470], [0.231, 0.263, 0.203, 4.127], [1482.0, 1481.0], -0.024),
];

/// An estimate with the half-width of its 95 % interval; absent where it has none.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// Estimate.
    pub estimate: f64,
    /// Half-width.
    pub half_width: Option<f64>,
}

impl Interval {
    /// Of parameter `name` of a fit.
    pub fn of(fit: &Fit, name: &str) -> Self {
        let p = &fit.parameters[name];
        Self { estimate: p.estimate, half_width: p.upper.map(|u| u - p.estimate) }
    }

    /// Whether it covers `truth`; `None` without an interval.
    pub fn covers(&self, truth: f64) -> Option<bool> {
        self.half_width.map(|h| (self.estimate - truth).abs() <= h)
    }
}

/// A row of table 1 beside the printed one.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Think time.
    pub think: f64,
    /// Trials.
    pub trials: usize,
    /// Length of each.
    pub length: f64,
    /// As printed.
    pub printed: Vec<Interval>,
    /// As fitted here.
    pub fitted: Vec<Interval>,
    /// Weighted sum of squares.
    pub sum_of_squares: f64,
    /// Degrees of freedom.
    pub degrees_of_freedom: usize,
}

/// A row of table 2 beside the printed one.
#[derive(Clone, Debug, Serialize)]
pub struct FourthRow {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// The experiment of table 1 whose data these are.
    pub data_of: &'static str,
    /// As printed.
    pub printed: Vec<Interval>,
    /// As fitted here.
    pub fitted: Vec<Interval>,
    /// Sums of squares with four and three queues, as printed.
    pub printed_sums_of_squares: [f64; 2],
    /// As fitted here.
    pub sums_of_squares: [f64; 2],
    /// The printed statistic, whose denominator is that of three queues.
    pub printed_f: f64,
    /// Statistic.
    pub f: f64,
    /// Critical value.
    pub critical_value: f64,
    /// Probability of one as large.
    pub p_value: f64,
}

/// The true demands.
pub const TRUTH: [f64; 3] = [2.0, 3.0, 4.0];

fn system(think: f64) -> Result<System, String> {
    let model = lqn_text::parse(include_str!("queues-3.lqn")).map_err(|e| e.to_string())?;
    let truth: Bindings = [("d1", 2.0), ("d2", 3.0), ("d3", 4.0)].into_iter().collect();
    // Without think time N = f (T1 + T2 + T3) in the data and the model alike: the throughput says nothing that the times do not.
    let names = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"];
    let kept = if think == 0.0 { &names[..3] } else { &names[..] };
    let measures = kept.iter().map(|m| m.parse()).collect::<Result<_, _>>().map_err(|e: layerfit::model::MeasureError| e.to_string())?;
    Ok(System { model, truth, measures })
}

fn runs(think: f64, replicates: usize, length: f64, seed: u64) -> Vec<Run> {
    let populations = (0..replicates).flat_map(|_| 1..=10_u32);
    let run = |(i, n): (usize, u32)| Run {
        controlled: [("users", f64::from(n)), ("think", think)].into_iter().collect(),
        length,
        seed: seed + i as u64,
    };
    populations.enumerate().map(run).collect()
}

fn problem(model: &str, n: usize, trials: Trials) -> Result<Problem, String> {
    Ok(Problem {
        model: lqn_text::parse(model).map_err(|e| e.to_string())?,
        estimate: (1..=n).map(|k| Estimated::new(format!("d{k}")).starting_at(1.0)).collect(),
        assumed: Bindings::new(),
        trials,
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    })
}

/// Covariances of the errors at one to ten users, for trials of `length`.
fn covariances(system: &System, think: f64, length: f64, pilot_runs: usize) -> Result<Vec<nalgebra::DMatrix<f64>>, String> {
    let pilot_length = length.min(LONGEST_PILOT);
    let found = system.pilot(&runs(think, 1, pilot_length, SEED + 500_000), pilot_runs)?;
    Ok(found.into_iter().map(|r| r * (pilot_length / length)).collect())
}

/// Trials of one experiment with the covariances of their errors.
fn experiment(printed: &Printed, quick: bool) -> Result<Trials, String> {
    let Printed(name, think, replicates, length, ..) = printed;
    let system = system(*think)?;
    let seed = SEED + 1000 * name.bytes().map(u64::from).sum::<u64>();
    let data = system.trials(&runs(*think, *replicates, *length, seed))?;
    let once = covariances(&system, *think, *length, if quick { PILOT_RUNS / 4 } else { PILOT_RUNS })?;
    let each: Vec<_> = (0..*replicates).flat_map(|_| once.iter().cloned()).collect();
    Ok(with_covariances(data, &each))
}

fn intervals(estimates: &[f64], half_widths: &[f64]) -> Vec<Interval> {
    estimates.iter().zip(half_widths).map(|(e, h)| Interval { estimate: *e, half_width: Some(*h) }).collect()
}

fn names(n: usize) -> impl Iterator<Item = String> {
    (1..=n).map(|k| format!("d{k}"))
}

/// Tables 1 and 2; the longest trials are left out where it should be quick.
pub fn tables(quick: bool) -> Result<(Vec<Row>, Vec<FourthRow>), String> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for printed in PRINTED.iter().filter(|p| !quick || p.3 < 1e5) {
        let Printed(name, think, replicates, length, estimates, half_widths) = printed;
        let data = experiment(printed, quick)?;
        let three = fitted(&problem(include_str!("queues-3.lqn"), 3, data.clone())?)?;
        first.push(Row {
            experiment: name,
            think: *think,
            trials: 10 * replicates,
            length: *length,
            printed: intervals(estimates, half_widths),
            fitted: names(3).map(|d| Interval::of(&three, &d)).collect(),
            sum_of_squares: three.sum_of_squares,
            degrees_of_freedom: three.degrees_of_freedom,
        });
        for p in PRINTED_FOURTH.iter().filter(|p| p.1 == *name) {
            second.push(fourth(p, &three, data.clone())?);
        }
    }
    Ok((first, second))
}

fn fourth(printed: &PrintedFourth, three: &Fit, data: Trials) -> Result<FourthRow, String> {
    let PrintedFourth(experiment, data_of, estimates, half_widths, sums, f) = printed;
    let four = fitted(&problem(include_str!("queues-4.lqn"), 4, data)?)?;
    let found = compare(three, &four).map_err(|e| e.to_string())?;
    Ok(FourthRow {
        experiment,
        data_of,
        printed: intervals(estimates, half_widths),
        fitted: names(4).map(|d| Interval::of(&four, &d)).collect(),
        printed_sums_of_squares: *sums,
        sums_of_squares: [found.larger.sum_of_squares, found.smaller.sum_of_squares],
        printed_f: *f,
        f: found.test.f,
        critical_value: found.test.critical_value,
        p_value: found.test.p_value,
    })
}
