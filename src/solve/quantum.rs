//! What the analytic solvers leave out of round robin: the length of its quantum.
//!
//! They take a processor that shares by time slices for an ideal one, the limit of a quantum of 0. With a quantum that is not short beside
//! the slices of work between calls, `D / (1 + Σ calls)` of an activity, it is between that and first come, first served.

use crate::model::{Activity, Bindings, Model, ProcessorScheduling};

/// A quantum below this part of the shortest slice is as good as 0.
const SHORT: f64 = 0.1;

/// A note for every processor of `model` whose quantum is too long for what the analytic solvers make of it.
pub(super) fn notes(model: &Model, bound: &Bindings) -> Vec<String> {
    let mut notes = Vec::new();
    for processor in &model.processors {
        let quantum = processor.quantum.eval(bound).unwrap_or(0.0);
        if quantum <= 0.0 || !matches!(processor.scheduling, ProcessorScheduling::Ps | ProcessorScheduling::Rr) {
            continue;
        }
        let slices = activities_on(model, &processor.name).filter_map(|activity| slice(activity, bound));
        let shortest = slices.filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
        if shortest.is_finite() && quantum > SHORT * shortest {
            notes.push(format!(
                "processor \"{}\": its quantum of {quantum} is not short beside slices of down to {shortest:.4}, and is taken as 0: \
                 the simulator takes it as it is",
                processor.name
            ));
        }
    }
    notes
}

fn activities_on<'a>(model: &'a Model, processor: &'a str) -> impl Iterator<Item = &'a Activity> {
    let tasks = model.tasks.iter().filter(move |task| task.processor == processor);
    tasks.flat_map(|task| task.entries.iter().flat_map(|entry| entry.phases.iter().map(|phase| &phase.activity)).chain(&task.activities))
}

/// Mean work of an activity between two of its calls.
fn slice(activity: &Activity, bound: &Bindings) -> Option<f64> {
    let calls = activity.counted_calls().map(|call| call.mean.eval(bound).ok()).sum::<Option<f64>>()?;
    Some(activity.host_demand.eval(bound).ok()? / (1.0 + calls))
}
