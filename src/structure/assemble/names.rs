//! Names of tasks and entries.

use std::collections::HashMap;

/// A name that measures and the LQN tools can hold: no blanks, no separators of theirs.
pub(super) fn model_name(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "_-.:/@#()".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}

/// Names in use, each with the number that was last appended to it.
type Taken = HashMap<String, u64>;

/// Names in use; tasks and entries have name spaces of their own.
#[derive(Default)]
pub(super) struct TakenNames {
    tasks: Taken,
    entries: Taken,
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
fn take(taken: &mut Taken, name: String) -> String {
    let Some(last) = taken.get(&name) else {
        taken.insert(name.clone(), 1);
        return name;
    };
    let mut n = last + 1;
    let mut candidate = format!("{name}#{n}");
    while taken.contains_key(&candidate) {
        n += 1;
        candidate = format!("{name}#{n}");
    }
    taken.insert(name, n);
    taken.insert(candidate.clone(), 1);
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_the_next_number() {
        let mut names = TakenNames::default();
        let taken = ["a", "a", "a#3", "a", "a", "a#3", "b"].map(|name| names.task(name));
        assert_eq!(taken, ["a", "a#2", "a#3", "a#4", "a#5", "a#3#2", "b"]);
        assert_eq!(names.entry("a", None, 0), "a.1");
    }
}
