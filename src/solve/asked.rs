//! Distributions of times that a model asks for, and that only a simulation finds.

use crate::model::{Activity, Bindings, Model, Observed};

/// Says of which parts of `model` they are asked (limits, and histograms), if of any.
pub(super) fn note(model: &Model, bound: &Bindings) -> Option<String> {
    let asks = |activity: &Activity| activity.histogram.is_some() || activity.max_service_time.eval(bound).is_ok_and(|limit| limit > 0.0);
    let phases = model.tasks.iter().flat_map(|task| &task.entries).flat_map(|entry| {
        let phases = entry.phases.iter().filter(|phase| asks(&phase.activity));
        phases.map(|phase| phase_of(phase.phase, &entry.name))
    });
    let activities = model.tasks.iter().flat_map(|task| {
        let activities = task.activities.iter().filter(|activity| asks(activity));
        activities.map(|activity| activity_of(&activity.name, &task.name))
    });
    let mut asked = phases.chain(activities).chain(model.histograms.iter().filter_map(|histogram| named(&histogram.of)));
    let first = asked.next()?;
    let others = match asked.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!("the distribution of times that is asked for of {first}{others} is found by simulation only"))
}

/// What a simulation can measure, in words.
fn named(of: &Observed) -> Option<String> {
    match of {
        Observed::Phase { entry, phase } => Some(phase_of(*phase, entry)),
        Observed::Activity { task, activity } => Some(activity_of(activity, task)),
        Observed::Task(task) => Some(format!("task \"{task}\"")),
        Observed::Join { task, activity } => Some(format!("the join of activity \"{activity}\" and others of task \"{task}\"")),
        _ => None,
    }
}

fn phase_of(phase: u8, entry: &str) -> String {
    format!("phase {phase} of entry \"{entry}\"")
}

fn activity_of(activity: &str, task: &str) -> String {
    format!("activity \"{activity}\" of task \"{task}\"")
}
