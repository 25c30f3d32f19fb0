//! Names of tasks and entries.

use std::collections::HashSet;

/// A name that measures and the LQN tools can hold: no blanks, no separators of theirs.
pub(super) fn model_name(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "_-.:/@#()".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}

/// Names in use; tasks and entries have name spaces of their own.
#[derive(Default)]
pub(super) struct TakenNames {
    tasks: HashSet<String>,
    entries: HashSet<String>,
}

impl TakenNames {
    pub(super) fn task(&mut self, wanted: &str) -> String {
        take(&mut self.tasks, model_name(wanted))
    }

    /// `TASK.OPERATION`, or `TASK.1`, `TASK.2`, … where the operation is not known.
    pub(super) fn entry(&mut self, task: &str, operation: Option<&str>, position: usize) -> String {
        match operation {
            Some(operation) => take(&mut self.entries, model_name(&format!("{task}.{operation}"))),
            None => take(&mut self.entries, format!("{task}.{}", position + 1)),
        }
    }
}

/// `name`, with a number appended where it is taken.
fn take(taken: &mut HashSet<String>, name: String) -> String {
    let mut candidate = name.clone();
    let mut n = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}#{n}");
        n += 1;
    }
    candidate
}
