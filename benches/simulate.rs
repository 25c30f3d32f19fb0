//! Events of the simulator a second, on one core and on all, beside physical baselines in the same run: as many exponential
//! times drawn and timers put in and taken out of a binary heap, which any event-driven simulation does at the least, and
//! the same on every core.
//!
//! `cargo bench --bench simulate`

use std::{cmp::Reverse, collections::BinaryHeap, hint::black_box, num::NonZero, thread};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use layerfit::{
    model::{Activity, Bindings, Call, CallKind, Entry, Model, Number, Phase, Processor, ProcessorScheduling, Reply, Task, TaskScheduling},
    solve::{SimulateOptions, simulate},
};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::{Distribution, Exp1};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of one measurement and core.
const EVENTS: u64 = 600_000;

fn call(dest: &str, mean: f64) -> Call {
    Call { kind: CallKind::Sync, dest: dest.into(), mean: Number::Value(mean) }
}

/// `02-sanity` of the LQN tools' regression suite: one customer and one server, each a graph of one activity of demand 1.
/// Three events in two units of time.
fn sanity() -> Model {
    let task = |name: &str, calls: Vec<Call>| {
        let mut task = Task::new(name, name);
        task.entries.push(Entry { start_activity: Some(name.into()), ..Entry::new(name) });
        task.activities.push(Activity { calls, ..Activity::new(name, 1.0) });
        task
    };
    let mut client = task("client", vec![call("server", 1.0)]);
    client.scheduling = TaskScheduling::Ref;
    let mut server = task("server", Vec::new());
    server.replies.push(Reply { entry: "server".into(), activity: "server".into() });
    let processors = vec![Processor::new("client"), Processor::new("server")];
    Model { name: "sanity".into(), processors, tasks: vec![client, server], ..Model::default() }
}

/// Fifty customers over three layers of four tasks each, two of every three on a shared processor.
fn layers() -> Model {
    let mut model = Model { name: "layers".into(), ..Model::default() };
    let mut delay = Processor::new("delay");
    delay.scheduling = ProcessorScheduling::Inf;
    model.processors.push(delay);
    let entry = |name: String, activity: Activity| Entry { phases: vec![Phase { phase: 1, activity }], ..Entry::new(name) };
    let mut users = Task::new("users", "delay");
    users.scheduling = TaskScheduling::Ref;
    users.multiplicity = Number::Value(50.0);
    users.think_time = Number::Value(5.0);
    let mut cycle = Activity::new("cycle", 0.0);
    cycle.calls = (0..4).map(|t| call(&format!("e0_{t}"), 1.0)).collect();
    users.entries.push(entry("use".into(), cycle));
    model.tasks.push(users);
    for layer in 0..3 {
        for t in 0..4 {
            let processor = format!("p{layer}_{}", t / 2);
            if !model.processors.iter().any(|p| p.name == processor) {
                model.processors.push(Processor::new(&processor));
            }
            let mut task = Task::new(format!("t{layer}_{t}"), &processor);
            task.multiplicity = Number::Value(3.0);
            let mut work = Activity::new("work", 0.02);
            if layer < 2 {
                work.calls = (0..2).map(|k| call(&format!("e{}_{}", layer + 1, (t + k) % 4), 0.8)).collect();
            }
            task.entries.push(entry(format!("e{layer}_{t}"), work));
            model.tasks.push(task);
        }
    }
    model
}

fn run(model: &Model, replications: usize) {
    let options = SimulateOptions {
        precision: Some(f64::MIN_POSITIVE),
        max_events: EVENTS * replications as u64,
        replications,
        ..SimulateOptions::default()
    };
    black_box(simulate(black_box(model), &Bindings::new(), &options)).expect("the models of this file have a steady state");
}

/// Draws and heap operations of `EVENTS` events with `pending` timers.
fn heap(pending: u64) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(pending);
    let mut draw = || -> f64 { Exp1.sample(&mut stream) };
    // Positive floats order as their bits do.
    let mut timers: BinaryHeap<Reverse<(u64, u64)>> = (0..pending).map(|i| Reverse((draw().to_bits(), i))).collect();
    for _ in 0..EVENTS {
        if let Some(Reverse((time, timer))) = timers.pop() {
            timers.push(Reverse(((f64::from_bits(time) + draw()).to_bits(), timer)));
        }
    }
    black_box(timers);
}

fn events(c: &mut Criterion) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    for (model, pending) in [(sanity(), 1), (layers(), 50)] {
        let mut group = c.benchmark_group(format!("simulator, {}", model.name));
        group.sample_size(10);
        group.throughput(Throughput::Elements(EVENTS));
        group.bench_function("one core", |b| b.iter(|| run(&model, 1)));
        group.bench_function("baseline: draws and heap, one core", |b| b.iter(|| heap(pending)));
        group.throughput(Throughput::Elements(EVENTS * cores as u64));
        group.bench_function("all cores", |b| b.iter(|| run(&model, cores)));
        group.bench_function("baseline: draws and heap, all cores", |b| {
            b.iter(|| {
                thread::scope(|scope| {
                    for _ in 0..cores {
                        scope.spawn(|| heap(pending));
                    }
                });
            });
        });
        group.finish();
    }
}

criterion_group!(benches, events);
criterion_main!(benches);
