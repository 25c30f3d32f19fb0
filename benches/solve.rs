//! Times of the analytic solvers, each beside a baseline in the same run: fused multiply-adds over an array in cache, as many
//! as the exact recursion has lattice points × classes × stations, or a thousand for each call of a layered model.
//!
//! `cargo bench --bench solve`; with `LARGEST=100` only models up to that many tasks.
#![expect(clippy::print_stdout, reason = "benchmarks print")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use layerfit::{
    model::{Bindings, Model, Number},
    solve::{
        SolveOptions, Solver,
        amva::{Approximation, solve_approximate},
        mva::{Class, Network, Station, solve_exact},
        sensitivities, solve,
    },
};

#[path = "../tests/it/solve/draw.rs"]
#[expect(dead_code, reason = "the tests draw more kinds of models")]
mod draw;

use draw::{Kind, draw};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sizes of the drawn models, in tasks beside the customers.
const SIZES: [usize; 6] = [8, 20, 50, 100, 250, 1000];
/// Kinds of the drawn models: pools, one thread each, second phases, and forwarding.
const KINDS: [Kind; 4] = [Kind::Multi, Kind::Sync, Kind::Phase2, Kind::Forward];
/// Seeds of the drawn models of each size and kind.
const SEEDS: [u64; 3] = [11, 12, 13];
/// Longest solve that is repeated to be measured better.
const LONGEST_REPEATED: Duration = Duration::from_millis(500);
/// Multiply-adds that stand for a call in the baseline of the layered solver: what a thousand sweeps need at least.
const SWEEPS: usize = 1000;

/// `populations` customers in each of the classes, at `n_stations` single servers.
fn network(populations: &[u32], n_stations: usize) -> Network<f64> {
    Network {
        classes: populations.iter().map(|&population| Class { population, think_time: 5.0 }).collect(),
        stations: vec![Station::Servers(1); n_stations],
        demands: (0..populations.len()).map(|c| (0..n_stations).map(|k| 0.1 + 0.01 * (c + k) as f64).collect()).collect(),
    }
}

/// `n` multiply-adds.
fn baseline(n: usize, values: &mut [f64]) -> f64 {
    for i in 0..n {
        let at = i % values.len();
        values[at] = values[at].mul_add(0.999, 0.001);
    }
    values[0]
}

/// The exact recursion; its steps are the populations of the lattice. `tests/peers/line_mva.py` times the same network.
fn exact(c: &mut Criterion) {
    let mut group = c.benchmark_group("exact MVA, three classes of 20, eight stations");
    let network = network(&[20, 20, 20], 8);
    let steps = 21 * 21 * 21 - 1;
    group.throughput(Throughput::Elements(steps));
    group.bench_function("recursion", |b| b.iter(|| solve_exact(black_box(&network))));
    let mut values = vec![1.0_f64; 4096];
    group.bench_function("baseline: multiply-adds", |b| b.iter(|| black_box(baseline(steps as usize * 3 * 8, &mut values))));
    for approximation in [Approximation::Schweitzer, Approximation::Linearizer] {
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{approximation:?}"), |b| b.iter(|| solve_approximate(black_box(&network), approximation)));
    }
    group.finish();
}

fn n_calls(model: &Model) -> usize {
    let entries = model.tasks.iter().flat_map(|t| &t.entries);
    entries.flat_map(|e| &e.phases).map(|p| 1 + p.activity.calls.len()).sum()
}

fn layered(c: &mut Criterion) {
    let mut group = c.benchmark_group("layered solver by number of tasks");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let largest = std::env::var("LARGEST").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let mut values = vec![1.0_f64; 4096];
    'sizes: for n_tasks in SIZES.into_iter().filter(|n| *n <= largest) {
        for (kind, seed) in KINDS.into_iter().flat_map(|kind| SEEDS.map(|seed| (kind, seed))) {
            let model = draw(kind, n_tasks, seed);
            let start = Instant::now();
            let solved = solve(&model, &Bindings::new(), &options);
            let took = start.elapsed();
            let (calls, baseline_took) = (n_calls(&model), {
                let start = Instant::now();
                black_box(baseline(n_calls(&model) * SWEEPS, &mut values));
                start.elapsed()
            });
            let how = solved.map_or_else(|e| e.to_string(), |s| format!("{} sweeps, converged: {}", s.iterations, s.converged));
            let ratio = took.as_secs_f64() / baseline_took.as_secs_f64();
            println!(
                "{n_tasks} tasks, {kind:?}, seed {seed}, {calls} calls: once {took:.3?}, {ratio:.2} times the baseline's {baseline_took:.3?}; {how}"
            );
            if took > LONGEST_REPEATED {
                if took > 40 * LONGEST_REPEATED {
                    println!("larger models are left out");
                    break 'sizes;
                }
                continue;
            }
            group.bench_with_input(BenchmarkId::new(format!("{n_tasks} tasks, {kind:?}"), seed), &model, |b, model| {
                b.iter(|| solve(model, &Bindings::new(), &options));
            });
        }
    }
    group.finish();
}

fn derivatives(c: &mut Criterion) {
    let mut group = c.benchmark_group("sensitivities, 20 tasks");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let mut model = draw(Kind::Multi, 20, SEEDS[0]);
    let names: Vec<String> = (0..8).map(|i| format!("d{i}")).collect();
    let mut values = Bindings::new();
    for (task, name) in model.tasks.iter_mut().skip(2).zip(&names) {
        let demand = &mut task.entries[0].phases[0].activity.host_demand;
        values.set(name.clone(), demand.literal().expect("drawn models have no parameters"));
        *demand = Number::Parameter(name.clone());
    }
    group.bench_function("no parameter: a plain solve", |b| b.iter(|| solve(&model, &values, &options)));
    let measures = ["throughput(c0)".parse().expect("a measure")];
    for n in [1, 4, 8] {
        group.bench_function(format!("{n} parameters"), |b| b.iter(|| sensitivities(&model, &values, &names[..n], &measures, &options)));
    }
    group.finish();
}

criterion_group!(benches, exact, layered, derivatives);
criterion_main!(benches);
