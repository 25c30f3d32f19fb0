//! Times of whole fits: the three-queue example, and the layered model with seven parameters, two of them whole numbers.
//!
//! `cargo bench --bench fit`; `python3 tests/peers/fit_speed.py` runs it between fits of the first problem by scipy and prints the ratio.

use std::{hint::black_box, ops::ControlFlow};

use criterion::{Criterion, criterion_group, criterion_main};
use layerfit::fit::{FitOptions, Problem, Trials, Weighting, fit};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "../tests/it/fit/layered_model.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests, which use the rest")]
mod layered_model;
#[path = "../tests/it/fit/three_queue.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests, which use the rest")]
mod three_queue;

fn run(problem: &Problem) -> f64 {
    let found = fit(problem, &FitOptions::default(), &mut |_| ControlFlow::Continue(())).expect("a fit");
    assert!(found.converged);
    found.sum_of_squares
}

fn fits(c: &mut Criterion) {
    let data = Trials::from_csv(include_bytes!("../tests/it/fit/three_queue.csv")).expect("trials");
    let mut plain = three_queue::starting_at(three_queue::problem(data), &[1.0; 3]);
    plain.weighting = Weighting::None;
    let weighted = Problem { weighting: Weighting::Auto, ..plain.clone() };
    c.bench_function("three queues, plain", |b| b.iter(|| run(black_box(&plain))));
    c.bench_function("three queues, residual variances estimated", |b| b.iter(|| run(black_box(&weighted))));
    let mut group = c.benchmark_group("layered");
    group.sample_size(10);
    let seven = layered_model::seven_parameters();
    group.bench_function("seven parameters, two whole numbers", |b| b.iter(|| run(black_box(&seven))));
    group.finish();
}

criterion_group!(benches, fits);
criterion_main!(benches);
