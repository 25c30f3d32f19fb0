//! Orders of service of tasks that are taken for another one, as the LQN tools do.

use crate::model::{Model, Task, TaskScheduling};

/// Says so of a task, if it is one.
pub(super) fn note(task: &Task) -> Option<String> {
    let order = match task.scheduling {
        TaskScheduling::Poll => "polling",
        TaskScheduling::Pri => "priority (\"pri\"; \"hol\" keeps priorities)",
        _ => return None,
    };
    Some(format!("task \"{}\": {order} is taken as first come, first served", task.name))
}

/// Says so of the tasks of `model`.
pub(super) fn notes(model: &Model) -> Vec<String> {
    model.tasks.iter().filter_map(note).collect()
}
