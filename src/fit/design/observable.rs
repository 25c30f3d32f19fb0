//! Everything of a model that could be measured.

use crate::model::{CallKind, Measure, Model, ProcessorScheduling, TaskScheduling};

/// The measures that `model` has, in the rising order of what they cost to get: utilizations of processors and tasks, throughputs,
/// response times, service times by phase, waiting times by call. What is constant by itself (the utilization of an infinite server
/// is its load, and is kept) is not looked for here: sensitivities say it.
pub fn observables(model: &Model) -> Vec<Measure> {
    let mut found: Vec<Measure> = Vec::new();
    let mut add = |measure: Measure| {
        if !found.contains(&measure) {
            found.push(measure);
        }
    };
    let both = |name: &str| model.task(name).is_some() && model.processor(name).is_some();
    for p in model.processors.iter().filter(|p| p.scheduling != ProcessorScheduling::Inf) {
        add(Measure::Utilization(if both(&p.name) { format!("processor:{}", p.name) } else { p.name.clone() }));
    }
    for t in model.tasks.iter().filter(|t| !t.scheduling.is_reference() && t.scheduling != TaskScheduling::Inf) {
        add(Measure::Utilization(if both(&t.name) { format!("task:{}", t.name) } else { t.name.clone() }));
    }
    for t in &model.tasks {
        add(Measure::Throughput(t.name.clone()));
    }
    for t in model.tasks.iter().filter(|t| t.scheduling.is_reference()) {
        add(Measure::ResponseTime(t.name.clone()));
    }
    let served = || model.tasks.iter().filter(|t| !t.scheduling.is_reference()).flat_map(|t| &t.entries);
    served().for_each(|e| add(Measure::ResponseTime(e.name.clone())));
    for e in served() {
        // An entry without phases does its work in an activity graph, whose first phase has a service time too.
        let phases = e.phases.iter().map(|p| p.phase).max().unwrap_or(1);
        (1..=phases).for_each(|phase| add(Measure::ServiceTime { entry: e.name.clone(), phase }));
    }
    for (e, p) in model.tasks.iter().flat_map(|t| &t.entries).flat_map(|e| e.phases.iter().map(move |p| (e, p))) {
        for call in p.activity.counted_calls().filter(|c| c.kind == CallKind::Sync) {
            add(Measure::Waiting { from: e.name.clone(), to: call.dest.clone(), phase: p.phase });
        }
    }
    found
}
