//! What holds in every solution, whatever the solver.

use std::collections::HashMap;

use layerfit::{
    model::{Model, Number, ProcessorScheduling},
    solve::{ResultCallKind, Solution},
};

fn literal(number: &Number) -> f64 {
    number.literal().expect("a model bound to values")
}

/// What is wrong with `solution` of `model`, beyond the relative `tolerance`. Activities of graphs belong to the entry whose name
/// theirs begins with, and each of them is executed once.
pub fn violations(model: &Model, solution: &Solution, tolerance: f64) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: String, left: f64, right: f64| {
        if (left - right).abs() > tolerance * left.abs().max(right.abs()).max(1e-9) || !(left - right).is_finite() {
            found.push(format!("{what}: {left} and {right}"));
        }
    };
    let mut arriving: HashMap<&str, f64> = HashMap::new();
    for call in &solution.calls {
        *arriving.entry(&call.to).or_default() += call.mean * solution.entries[&call.from].throughput;
    }
    let mut busy: HashMap<&str, f64> = HashMap::new();
    for task in &model.tasks {
        let result = &solution.tasks[&task.name];
        let entries = || task.entries.iter().map(|e| (e, &solution.entries[&e.name]));
        if task.scheduling.is_reference() {
            let cycle = entries().map(|(_, r)| r.throughput * r.service_times.iter().flatten().sum::<f64>()).sum::<f64>();
            let customers = literal(&task.multiplicity);
            check(format!("Little's law of the customers {}", task.name), customers, cycle + result.throughput * literal(&task.think_time));
        }
        let held: f64 = entries().map(|(_, r)| r.throughput * r.service_times.iter().flatten().sum::<f64>()).sum();
        check(format!("utilization law of task {}", task.name), result.utilization, held);
        check(format!("throughput of task {}", task.name), result.throughput, entries().map(|(_, r)| r.throughput).sum());
        let speed = literal(&model.processor(&task.processor).expect("a processor").speed_factor);
        for (entry, r) in entries() {
            if !task.scheduling.is_reference() {
                let rate = entry.open_arrival_rate.as_ref().map_or(0.0, literal) + arriving.get(entry.name.as_str()).unwrap_or(&0.0);
                check(format!("flow into entry {}", entry.name), r.throughput, rate);
            }
            let activities = task.activities.iter().filter(|a| a.name.starts_with(&format!("{}_", entry.name)));
            let work = entry.phases.iter().map(|p| &p.activity).chain(activities);
            let demand: f64 = work.map(|a| literal(&a.host_demand)).sum();
            *busy.entry(&task.processor).or_default() += r.throughput * demand / speed;
        }
    }
    for processor in &model.processors {
        let utilization = solution.processors[&processor.name].utilization;
        check(
            format!("utilization law of processor {}", processor.name),
            utilization,
            busy.get(processor.name.as_str()).copied().unwrap_or(0.0),
        );
        let is_bounded = processor.scheduling != ProcessorScheduling::Inf;
        let servers = literal(&processor.multiplicity);
        if is_bounded && utilization > servers * (1.0 + tolerance) {
            check(format!("capacity of processor {}", processor.name), utilization, servers);
        }
    }
    for task in model.tasks.iter().filter(|t| t.scheduling != layerfit::model::TaskScheduling::Inf) {
        let (utilization, threads) = (solution.tasks[&task.name].utilization, literal(&task.multiplicity));
        if utilization > threads * (1.0 + tolerance) {
            check(format!("capacity of task {}", task.name), utilization, threads);
        }
    }
    for call in &solution.calls {
        if !call.waiting.is_none_or(|wait| wait >= 0.0 && wait.is_finite()) {
            check(
                format!("wait of {} at {} ({})", call.from, call.to, if call.kind == ResultCallKind::Sync { "sync" } else { "other" }),
                call.waiting.unwrap_or(f64::NAN),
                0.0,
            );
        }
    }
    found
}
