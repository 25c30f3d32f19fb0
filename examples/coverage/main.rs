//! How often intervals cover, bands hold new trials and F-tests reject what is true.
//!
//! `cargo run --release --example coverage -- [DATA_SETS [FIRST_SEED]]` (8,000 from seed 0 unless told, some ten minutes on two cores) draws
//! data sets of the three-queue example (M. Woodside, SIPEW 2008, section 3: demands 2, 3, 4, one to ten customers, think time 10) and counts.
//! Of 2,000 data sets a share of 95 % has a deviation of chance of 0.5, so that one of twenty is outside 94 to 96 as often as not; of 8,000
//! it has 0.24.
//!
//! | case | errors | the fit is told |
//! |---|---|---|
//! | independent | normal, 2 % of each measure's mean | standard errors |
//! | simulated, full | of a simulated run of length 10⁴ | covariances within each trial, from the batches of a long pilot run |
//! | simulated, diagonal | the same | standard errors only: the correlation of measures is left out |
//!
//! In the first two 95 % intervals are to cover 94 to 96 % of the time; in the last they do not, and the fit is to say so: counted are
//! fits whose residuals show it, not those which only remark that no covariances were given. Then a fourth queue is fitted to data of
//! three and of four ([`fourth`]).

mod fourth;

#[path = "../../tests/it/fit/queues.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests")]
mod queues;
#[path = "../../tests/it/fit/three_queue.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests, which use the rest")]
mod three_queue;

use std::{ops::ControlFlow, sync::OnceLock, thread};

use layerfit::{
    fit::{Fit, FitOptions, Problem, Trials, compare, f_test::Preferred, fit, problem::Intervals},
    model::Bindings,
    predict::{Scenarios, predict},
    solve::{self, SolveOptions},
};
use queues::{Errors, Network, Pilot, pilot_of, simulated};
use three_queue::{TRUE_DEMANDS, measures, problem, trials};

/// Data sets of each case unless told.
const DATA_SETS: usize = 8000;

/// Data sets of each demand of the fourth queue, at most.
const FOURTH_DATA_SETS: usize = 2000;

/// Relative error of the independent case.
const RELATIVE_ERROR: f64 = 0.02;

/// Length of a simulated trial.
const LENGTH: f64 = 1e4;

/// Batches of the pilot run from which covariances come, and the length of each: as long as a trial, so that what hangs
/// together over thousands of time units at ten customers is in them.
const PILOT_BATCHES: usize = 8000;
const PILOT_BATCH: f64 = LENGTH;

/// Customers of the trials.
const POPULATIONS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Customers at which a new trial is predicted.
const NEW_TRIAL: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    Independent,
    Simulated(Errors),
}

#[derive(Clone, Debug, Default)]
struct Counts {
    fits: usize,
    wald: [usize; 3],
    profile: [usize; 3],
    sandwich: [usize; 3],
    /// Sum of the estimates' errors, over their standard errors.
    off: [f64; 3],
    joint: usize,
    mean_band: usize,
    new_band: usize,
    bands: usize,
    rejected: usize,
    warned: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.fits += other.fits;
        (0..3).for_each(|k| {
            self.wald[k] += other.wald[k];
            self.profile[k] += other.profile[k];
            self.sandwich[k] += other.sandwich[k];
            self.off[k] += other.off[k];
        });
        self.joint += other.joint;
        self.mean_band += other.mean_band;
        self.new_band += other.new_band;
        self.bands += other.bands;
        self.rejected += other.rejected;
        self.warned += other.warned;
    }
}

fn data(case: Case, seed: u64) -> Trials {
    match case {
        Case::Independent => {
            let mut trials = trials(10.0, RELATIVE_ERROR, seed);
            for k in 0..trials.measures.len() {
                let n = trials.trials.len() as f64;
                let mean = trials.trials.iter().filter_map(|t| t.measured[k]).map(|m| m.value).sum::<f64>() / n;
                let cells = trials.trials.iter_mut().filter_map(|t| t.measured[k].as_mut());
                cells.for_each(|m| m.std_error = Some(RELATIVE_ERROR * mean));
            }
            trials
        }
        Case::Simulated(errors) => {
            static PILOT: OnceLock<Pilot> = OnceLock::new();
            let network = Network { demands: &TRUE_DEMANDS, think: 10.0, length: LENGTH };
            let errors_of = PILOT.get_or_init(|| pilot_of(&network, &POPULATIONS, PILOT_BATCHES, PILOT_BATCH));
            simulated(&network, &POPULATIONS, errors, errors_of, seed)
        }
    }
}

fn fitted(problem: &Problem) -> Option<Fit> {
    fit(problem, &FitOptions::default(), &mut |_| ControlFlow::Continue(())).ok().filter(|f| f.converged)
}

fn covered(fit: &Fit) -> [bool; 3] {
    let mut held = [false; 3];
    for ((held, p), truth) in held.iter_mut().zip(fit.parameters.values()).zip(TRUE_DEMANDS) {
        *held = p.lower.is_some_and(|l| l < truth) && p.upper.is_some_and(|u| truth < u);
    }
    held
}

/// Whether the bands at one operating point hold the true mean and a new trial with the errors of `case`.
fn bands(fit: &Fit, case: Case, seed: u64, counts: &mut Counts) {
    let at = [format!("users={NEW_TRIAL}"), "think=10".to_owned()];
    let Ok(Ok(found)) = Scenarios::parse(&at).map(|points| predict(fit, &points, &measures(), 0.95)) else { return };
    let mut values: Bindings = [("users", NEW_TRIAL), ("think", 10.0)].into_iter().collect();
    TRUE_DEMANDS.iter().zip(1..).for_each(|(d, k)| values.set(format!("d{k}"), *d));
    let Ok(truth) = solve::sensitivities(&three_queue::model(3), &values, &[], &measures(), &SolveOptions::default()) else { return };
    let other = data(case, seed);
    let Some(new) = other.trials.iter().find(|t| t.controlled.get("users") == Some(NEW_TRIAL)) else { return };
    for (k, p) in found.rows.iter().flat_map(|r| r.measures.values()).enumerate() {
        let holds = |low: Option<f64>, high: Option<f64>, v: f64| low.is_some_and(|l| l < v) && high.is_some_and(|h| v < h);
        let measured = new.measured[k].map_or(f64::NAN, |m| m.value);
        counts.bands += 1;
        counts.mean_band += usize::from(holds(p.lower, p.upper, truth.values[k]));
        counts.new_band += usize::from(holds(p.new_lower, p.new_upper, measured));
    }
}

fn one(case: Case, seed: u64) -> Counts {
    let mut counts = Counts::default();
    let mut asked = problem(data(case, seed));
    asked.method.intervals = Intervals::Profile;
    let Some(profiled) = fitted(&asked) else { return counts };
    asked.method.intervals = Intervals::Sandwich;
    let Some(by_trials) = fitted(&asked) else { return counts };
    asked.method.intervals = Intervals::Wald;
    let Some(wald) = fitted(&asked) else { return counts };
    let mut held = asked;
    held.estimate.pop();
    held.assumed.set("d3", TRUE_DEMANDS[2]);
    let rejected = fitted(&held).and_then(|h| compare(&h, &wald).ok()).is_some_and(|c| c.test.preferred == Preferred::Larger);
    let (by_wald, by_profile, by_sandwich) = (covered(&wald), covered(&profiled), covered(&by_trials));
    counts.fits = 1;
    (0..3).for_each(|k| {
        counts.wald[k] = usize::from(by_wald[k]);
        counts.profile[k] = usize::from(by_profile[k]);
        counts.sandwich[k] = usize::from(by_sandwich[k]);
    });
    for ((off, p), truth) in counts.off.iter_mut().zip(wald.parameters.values()).zip(TRUE_DEMANDS) {
        *off = p.std_error.map_or(0.0, |s| (p.estimate - truth) / s);
    }
    counts.joint = usize::from(by_wald.iter().all(|h| *h));
    counts.rejected = usize::from(rejected);
    counts.warned =
        usize::from(wald.notes.iter().any(|n| n.contains("the errors are not what the weights say") || n.contains("cancel (Little's law")));
    bands(&wald, case, seed + 1_000_000, &mut counts);
    counts
}

/// Results of `one` for `n` seeds from `first_seed`, on all cores, in no order.
fn in_parallel<T: Send>(first_seed: u64, n: usize, one: &(impl Fn(u64) -> T + Sync)) -> Vec<T> {
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let part = move |first: usize| (first..n).step_by(n_threads).map(|k| one(first_seed + k as u64)).collect::<Vec<T>>();
    thread::scope(|scope| {
        let handles: Vec<_> = (0..n_threads).map(|first| scope.spawn(move || part(first))).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).flatten().collect()
    })
}

fn count(case: Case, first_seed: u64, n: usize) -> Counts {
    let mut total = Counts::default();
    in_parallel(first_seed, n, &|seed| one(case, seed)).iter().for_each(|counts| total.add(counts));
    total
}

#[expect(clippy::print_stdout, reason = "what the example is for")]
fn main() {
    let told = |k: usize| std::env::args().nth(k).and_then(|a| a.parse::<u32>().ok());
    let n = told(1).map_or(DATA_SETS, |n| n as usize);
    let first_seed = told(2).map_or(0, u64::from);
    let chance = 100.0 * (0.95 * 0.05 / n.max(1) as f64).sqrt();
    println!("per cent of {n} data sets; the levels are 95 % for intervals and bands, 5 % for the test (deviation of chance {chance:.2})");
    println!("bias: mean error of the estimates over their standard error");
    println!(
        "case                 t intervals          profile intervals    sandwich intervals   bias                 joint  mean  new   F rejects  remarked  fits"
    );
    let cases = [
        ("independent", Case::Independent),
        ("simulated, full", Case::Simulated(Errors::Full)),
        ("simulated, diagonal", Case::Simulated(Errors::Diagonal)),
    ];
    for (name, case) in cases {
        let c = count(case, first_seed, n);
        let share = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
        let three = |found: [usize; 3]| found.map(|n| format!("{:5.1}", share(n, c.fits))).join(" ");
        let bias = c.off.map(|o| format!("{:5.2}", o / c.fits.max(1) as f64)).join(" ");
        println!(
            "{name:20} {}    {}    {}    {bias}    {:5.1} {:5.1} {:5.1}  {:9.1}  {:8.1}  {:4}",
            three(c.wald),
            three(c.profile),
            three(c.sandwich),
            share(c.joint, c.fits),
            share(c.mean_band, c.bands),
            share(c.new_band, c.bands),
            share(c.rejected, c.fits),
            share(c.warned, c.fits),
            c.fits
        );
    }
    fourth::print(n.min(FOURTH_DATA_SETS));
}
