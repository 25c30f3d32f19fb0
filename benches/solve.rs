//! Times of the analytic solvers, beside a physical baseline in the same run: as many fused multiply-adds over an array in
//! cache as the exact recursion has lattice points × classes × stations.
//!
//! `cargo bench --bench solve`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use layerfit::{
    model::{Activity, Bindings, Call, CallKind, Entry, Model, Number, Phase, Processor, ProcessorScheduling, Task, TaskScheduling},
    solve::{
        SolveOptions, Solver,
        mva::{Class, Network, Station, solve_exact},
        sensitivities, solve,
    },
};

/// `populations` customers in each of the classes, at `n_stations` single servers.
fn network(populations: &[u32], n_stations: usize) -> Network<f64> {
    Network {
        classes: populations.iter().map(|&population| Class { population, think_time: 5.0 }).collect(),
        stations: vec![Station::Servers(1); n_stations],
        demands: (0..populations.len()).map(|c| (0..n_stations).map(|k| 0.1 + 0.01 * (c + k) as f64).collect()).collect(),
    }
}

fn exact(c: &mut Criterion) {
    let mut group = c.benchmark_group("exact MVA, three classes of 20, eight stations");
    let network = network(&[20, 20, 20], 8);
    group.bench_function("recursion", |b| b.iter(|| solve_exact(black_box(&network))));
    let steps = 21 * 21 * 21 * 3 * 8;
    let mut values = vec![1.0_f64; 4096];
    group.bench_function("baseline: multiply-adds", |b| {
        b.iter(|| {
            for i in 0..steps {
                values[i % 4096] = values[i % 4096].mul_add(0.999, 0.001);
            }
            black_box(values[0])
        });
    });
    group.finish();
}

fn call(dest: String, mean: f64) -> Call {
    Call { kind: CallKind::Sync, dest, mean: Number::Value(mean) }
}

/// Layers of tasks of two entries, each calling two entries of the layer below.
fn layered_model(n_layers: usize, width: usize) -> Model {
    let mut model = Model::default();
    let mut delay = Processor::new("delay");
    delay.scheduling = ProcessorScheduling::Inf;
    model.processors.push(delay);
    let entry = |layer: usize, task: usize, e: usize| format!("e{layer}_{task}_{e}");
    let mut users = Task::new("users", "delay");
    users.scheduling = TaskScheduling::Ref;
    users.multiplicity = Number::Value(30.0);
    users.think_time = Number::Value(10.0);
    let mut work = Activity::new("use", 0.0);
    work.calls = (0..width).map(|t| call(entry(0, t, 0), 1.0)).collect();
    let mut use_entry = Entry::new("users");
    use_entry.phases.push(Phase { phase: 1, activity: work });
    users.entries.push(use_entry);
    model.tasks.push(users);
    for layer in 0..n_layers {
        for t in 0..width {
            let name = format!("t{layer}_{t}");
            model.processors.push(Processor::new(&name));
            let mut task = Task::new(&name, &name);
            task.multiplicity = Number::Value(1.0 + (t % 3) as f64);
            for e in 0..2 {
                let mut work = Activity::new(format!("w{e}"), 0.02 + 0.005 * ((layer + t + e) % 4) as f64);
                if layer + 1 < n_layers {
                    work.calls = (0..2).map(|k| call(entry(layer + 1, (t + k) % width, (e + k) % 2), 0.7)).collect();
                }
                let mut it = Entry::new(entry(layer, t, e));
                it.phases.push(Phase { phase: 1, activity: work });
                task.entries.push(it);
            }
            model.tasks.push(task);
        }
    }
    model
}

fn layered(c: &mut Criterion) {
    let mut group = c.benchmark_group("layered solver by number of tasks");
    group.sample_size(10);
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    for (n_layers, width) in [(2, 4), (4, 5), (5, 10)] {
        let model = layered_model(n_layers, width);
        group.bench_with_input(BenchmarkId::new("solve", n_layers * width), &model, |b, model| {
            b.iter(|| solve(model, &Bindings::new(), &options));
        });
    }
    let mut model = layered_model(4, 5);
    let names: Vec<String> = (0..4).map(|i| format!("d{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        model.tasks[1 + i].entries[0].phases[0].activity.host_demand = Number::Parameter(name.clone());
    }
    let values: Bindings = names.iter().map(|n| (n.clone(), 0.03)).collect();
    let measures = ["throughput(users)".parse().expect("a measure")];
    group.bench_function("solve with four sensitivities, 20", |b| b.iter(|| sensitivities(&model, &values, &names, &measures, &options)));
    group.finish();
}

criterion_group!(benches, exact, layered);
criterion_main!(benches);
