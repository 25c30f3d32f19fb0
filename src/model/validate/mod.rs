//! What makes a model unusable, or doubtful, named element by element.
//!
//! The rules are those of the LQN tools (5.32). Two kinds: of *structure*, decided once for a model, and of *values*,
//! decided for the numbers that are literals or bound to a value.
//!
//! | file | rules on |
//! |---|---|
//! | `defect` | (the list of all that can be wrong) |
//! | `names` | names, references, texts, parameters |
//! | `elements` | processors, groups, tasks, entries, phases: what fits together |
//! | `calls` | who calls whom, and how: cycles, inputs, reachability |
//! | `graph` | activity graphs |
//! | `values` | numbers, their sums, replication |

mod calls;
mod defect;
mod elements;
mod graph;
mod names;
mod values;

use std::collections::HashMap;

pub use defect::{Defect, DefectKind, Severity};

use super::{Activity, Bindings, Declared, Entry, Group, Model, Processor, Task};

impl Model {
    /// All defects of the model, errors and warnings, by subject and there in file order. A `$name` is not judged: see
    /// [`Model::validate_bound`].
    pub fn validate(&self) -> Vec<Defect> {
        let mut defects = Defects::default();
        let index = Index::new(self);
        names::check(self, &index, &mut defects);
        elements::check(self, &index, &mut defects);
        calls::check(self, &index, &mut defects);
        graph::check(self, &mut defects);
        values::check(self, &index, &Bindings::new(), &mut defects);
        defects.0
    }

    /// The defects of the model's values with its `$names` bound: negative, non-finite or fractional where they may not
    /// be, sums that miss 1, replications that do not match. A `$name` that `bindings` leaves out is not judged.
    /// What [`Model::validate`] says of the structure is not repeated.
    pub fn validate_bound(&self, bindings: &Bindings) -> Vec<Defect> {
        let mut defects = Defects::default();
        values::check(self, &Index::new(self), bindings, &mut defects);
        defects.0
    }

    /// The model itself, or its errors (warnings do not count).
    ///
    /// # Errors
    /// Every [`Defect`] of [`Severity::Error`].
    pub fn validated(self) -> Result<Self, Vec<Defect>> {
        let errors: Vec<Defect> = self.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }
}

/// The defects found so far.
#[derive(Default)]
struct Defects(Vec<Defect>);

impl Defects {
    fn push(&mut self, element: impl Into<Named>, kind: DefectKind) {
        let Named { text, declared } = element.into();
        self.0.push(Defect { element: text, declared, kind });
    }
}

/// Elements by name; of several with one name, the first.
struct Index<'a> {
    processors: HashMap<&'a str, usize>,
    tasks: HashMap<&'a str, usize>,
    /// Task, then entry in it.
    entries: HashMap<&'a str, (usize, usize)>,
}

impl<'a> Index<'a> {
    fn new(model: &'a Model) -> Self {
        let mut index = Self { processors: HashMap::new(), tasks: HashMap::new(), entries: HashMap::new() };
        for (i, processor) in model.processors.iter().enumerate() {
            index.processors.entry(&processor.name).or_insert(i);
        }
        for (i, task) in model.tasks.iter().enumerate() {
            index.tasks.entry(&task.name).or_insert(i);
            for (j, entry) in task.entries.iter().enumerate() {
                index.entries.entry(&entry.name).or_insert((i, j));
            }
        }
        index
    }

    /// The entry of that name with its task.
    fn entry(&self, model: &'a Model, name: &str) -> Option<(&'a Task, &'a Entry)> {
        let (i, j) = *self.entries.get(name)?;
        let task = model.tasks.get(i)?;
        Some((task, task.entries.get(j)?))
    }
}

/// An element as a person would say it, and what to look for in a file.
#[derive(Clone, Debug, Default)]
struct Named {
    text: String,
    declared: Option<Declared>,
}

impl Named {
    fn new(text: String, declared: Declared) -> Self {
        Self { text, declared: Some(declared) }
    }

    /// What no file is looked through for.
    fn unplaced(text: impl Into<String>) -> Self {
        Self { text: text.into(), declared: None }
    }

    fn model() -> Self {
        Self::unplaced("model")
    }
}

impl From<&Self> for Named {
    fn from(named: &Self) -> Self {
        named.clone()
    }
}

/// `processor "P1"`.
fn processor_name(processor: &Processor) -> Named {
    Named::new(format!("processor \"{}\"", processor.name), Declared::Processor(processor.name.clone()))
}

/// `group "G1" of processor "P1"`.
fn group_name(processor: &Processor, group: &Group) -> Named {
    Named::new(format!("group \"{}\" of processor \"{}\"", group.name, processor.name), Declared::Group(group.name.clone()))
}

/// `task "Web"`.
fn task_name(task: &Task) -> Named {
    Named::new(format!("task \"{}\"", task.name), Declared::Task(task.name.clone()))
}

/// `entry "get" of task "Web"`.
fn entry_name(task: &Task, entry: &Entry) -> Named {
    Named::new(format!("entry \"{}\" of task \"{}\"", entry.name, task.name), Declared::Entry(entry.name.clone()))
}

/// `phase 1 of entry "get" of task "Web"`.
fn phase_name(task: &Task, entry: &Entry, phase: u8) -> Named {
    let text = format!("phase {phase} of entry \"{}\" of task \"{}\"", entry.name, task.name);
    Named::new(text, Declared::Phase(entry.name.clone(), phase))
}

/// `activity "in" of task "Web"`.
fn activity_name(task: &Task, activity: &str) -> Named {
    let text = format!("activity \"{activity}\" of task \"{}\"", task.name);
    Named::new(text, Declared::Activity { task: task.name.clone(), activity: activity.to_owned() })
}

/// Where a piece of work stands.
#[derive(Clone, Copy)]
enum Place<'a> {
    Phase(&'a Entry, u8),
    Graph,
}

impl Place<'_> {
    fn element(self, task: &Task, activity: &Activity) -> Named {
        match self {
            Self::Phase(entry, phase) => phase_name(task, entry, phase),
            Self::Graph => activity_name(task, &activity.name),
        }
    }
}

/// Every phase and activity of a task.
fn work(task: &Task) -> impl Iterator<Item = (Place<'_>, &Activity)> {
    let phases = task.entries.iter().flat_map(|e| e.phases.iter().map(move |phase| (Place::Phase(e, phase.phase), &phase.activity)));
    phases.chain(task.activities.iter().map(|activity| (Place::Graph, activity)))
}
