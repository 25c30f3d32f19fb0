//! How often a fourth queue is found, with the whole covariance of each trial: the power of the F-test.

use layerfit::fit::{Estimated, Problem, compare, f_test::Preferred};

use super::{
    LENGTH, PILOT_BATCH, POPULATIONS, fitted, in_parallel,
    queues::{Errors, Network, pilot_of, simulated},
    three_queue::{model, problem},
};

/// Batches of a pilot run; fewer than for coverage, since each demand has its own.
const PILOT_BATCHES: usize = 200;

/// Seed of the first data set.
const FIRST_SEED: u64 = 50_000;

/// Demand of the fourth queue, length of a trial, and how often it was found in data simulated and fitted with scipy 1.17.1.
const CASES: [(f64, f64, f64); 7] = [
    (0.0, 1e3, 0.015),
    (0.3, 1e3, 0.13),
    (0.5, 1e3, 0.43),
    (1.0, 1e3, 0.995),
    (0.1, LENGTH, 0.26),
    (0.3, LENGTH, 0.97),
    (0.5, LENGTH, 1.0),
];

#[derive(Clone, Copy, Default)]
struct Found {
    fits: usize,
    rejected: usize,
    at_bound: usize,
    worse: usize,
}

/// Prints the share of `n` data sets of each case in which the fourth queue is found.
#[expect(clippy::print_stdout, reason = "what the example is for")]
pub fn print(n: usize) {
    println!("\nfourth queue, per cent of {n} data sets: found (expected); estimate on its bound of 0; fitted worse than three");
    for (demand, length, expected) in CASES {
        let all = [2.0, 3.0, 4.0, demand];
        let network = Network { demands: if demand > 0.0 { &all } else { &all[..3] }, think: 10.0, length };
        let errors = pilot_of(&network, &POPULATIONS, PILOT_BATCHES, PILOT_BATCH);
        let one = |seed: u64| {
            let data = simulated(&network, &POPULATIONS, Errors::Full, &errors, seed);
            let mut larger: Problem = problem(data.clone());
            larger.model = model(4);
            larger.estimate.push(Estimated::new("d4"));
            let (Some(three), Some(four)) = (fitted(&problem(data)), fitted(&larger)) else { return Found::default() };
            let Ok(test) = compare(&three, &four) else { return Found::default() };
            Found {
                fits: 1,
                rejected: usize::from(test.test.preferred == Preferred::Larger),
                at_bound: usize::from(four.parameters["d4"].estimate == 0.0),
                worse: usize::from(test.larger.sum_of_squares > test.smaller.sum_of_squares * (1.0 + 1e-9)),
            }
        };
        let sum = |a: Found, b: Found| Found {
            fits: a.fits + b.fits,
            rejected: a.rejected + b.rejected,
            at_bound: a.at_bound + b.at_bound,
            worse: a.worse + b.worse,
        };
        let found = in_parallel(FIRST_SEED, n, &one).into_iter().fold(Found::default(), sum);
        let share = |k: usize| 100.0 * k as f64 / found.fits.max(1) as f64;
        println!(
            "demand {demand:3}, length {length:6}: {:5.1} ({:5.1})   {:5.1}   {:5.1}   {} fits",
            share(found.rejected),
            100.0 * expected,
            share(found.at_bound),
            share(found.worse),
            found.fits
        );
    }
}
