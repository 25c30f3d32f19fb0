//! Distributions of times that a model asks for, and that only a simulation finds.

use crate::model::{Activity, Model, Observed};

/// Says of which parts of `model` they are asked (limits, and histograms), if of any.
pub(super) fn note(model: &Model) -> Option<String> {
    let asks = |activity: &Activity| !activity.max_service_time.is(0.0) || activity.histogram.is_some();
    let entries = model.tasks.iter().flat_map(|task| &task.entries);
    let phases = entries.flat_map(|entry| entry.phases.iter().map(move |phase| (entry, phase)));
    let phases = phases.filter(|(_, phase)| asks(&phase.activity));
    let phases = phases.map(|(entry, phase)| format!("phase {} of entry \"{}\"", phase.phase, entry.name));
    let activities = model.tasks.iter().flat_map(|task| task.activities.iter().map(move |activity| (task, activity)));
    let activities = activities.filter(|(_, activity)| asks(activity));
    let activities = activities.map(|(task, activity)| format!("activity \"{}\" of task \"{}\"", activity.name, task.name));
    let mut asked = phases.chain(activities).chain(model.histograms.iter().map(|histogram| named(&histogram.of)));
    let first = asked.next()?;
    let others = match asked.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!("the distribution of times that is asked for of {first}{others} is found by simulation only"))
}

fn named(of: &Observed) -> String {
    match of {
        Observed::Phase { entry, phase } => format!("phase {phase} of entry \"{entry}\""),
        Observed::Activity { task, activity } => format!("activity \"{activity}\" of task \"{task}\""),
        Observed::Task(task) => format!("task \"{task}\""),
        Observed::Join { task, activity } => format!("the join before activity \"{activity}\" of task \"{task}\""),
        _ => "what is not measured".into(),
    }
}
