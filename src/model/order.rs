//! The order in which LQNX holds a model's elements: tasks stand inside their processors and groups.

use std::collections::{HashMap, HashSet};

use super::{Model, Observed, Opaque, Pre, Task};

/// Elements that are kept as they stand, in their order in the file.
pub(super) const OPAQUE_ELEMENTS: [&str; 3] = ["lqx", "results-collection", "convergence-collection"];

impl Model {
    /// The model with its tasks in the order of their processors and groups, and observations, histograms and opaque
    /// parts in the order of their elements: the order that an LQNX file holds. Equal orders stay as they are.
    #[must_use]
    pub fn in_file_order(mut self) -> Self {
        let place = self.task_places();
        self.tasks.sort_by_cached_key(|task| place(task));
        let order = observed_order(&self);
        let rank = |of: &Observed| order.get(of).copied().unwrap_or(usize::MAX);
        self.observations.sort_by_key(|o| rank(&o.of));
        self.histograms.sort_by_key(|h| rank(&h.of));
        self.opaque.sort_by_key(opaque_rank);
        self
    }

    /// A task's processor and group by position; tasks of unknown ones come last.
    fn task_places(&self) -> impl Fn(&Task) -> (usize, usize) + use<> {
        let mut places = HashMap::new();
        for (i, processor) in self.processors.iter().enumerate() {
            places.entry((processor.name.clone(), None)).or_insert((i, processor.groups.len()));
            for (j, group) in processor.groups.iter().enumerate() {
                places.entry((processor.name.clone(), Some(group.name.clone()))).or_insert((i, j));
            }
        }
        move |task| {
            let of = |group: Option<String>| places.get(&(task.processor.clone(), group)).copied();
            of(task.group.clone()).or_else(|| of(None)).unwrap_or((usize::MAX, 0))
        }
    }
}

fn opaque_rank(part: &Opaque) -> usize {
    OPAQUE_ELEMENTS.iter().position(|e| *e == part.element).unwrap_or(OPAQUE_ELEMENTS.len())
}

/// Position of every element that can be observed, in file order.
fn observed_order(model: &Model) -> HashMap<Observed, usize> {
    let mut order = HashMap::new();
    let mut add = |of: Observed| {
        let next = order.len();
        order.entry(of).or_insert(next);
    };
    if model.observations.is_empty() && model.histograms.is_empty() {
        return order;
    }
    add(Observed::Solution);
    let tasks = TasksByPlace::new(model);
    for processor in &model.processors {
        add(Observed::Processor(processor.name.clone()));
        for group in &processor.groups {
            add(Observed::Group(group.name.clone()));
            tasks.of(&processor.name, Some(&group.name)).iter().for_each(|t| add_task(t, &mut add));
        }
        tasks.of(&processor.name, None).iter().for_each(|t| add_task(t, &mut add));
    }
    order
}

/// Tasks by the processor and group they stand in, in their order in the model.
pub(super) struct TasksByPlace<'a>(HashMap<(&'a str, Option<&'a str>), Vec<&'a Task>>);

impl<'a> TasksByPlace<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let groups: HashSet<(&str, &str)> =
            model.processors.iter().flat_map(|p| p.groups.iter().map(|g| (p.name.as_str(), g.name.as_str()))).collect();
        let mut tasks: HashMap<_, Vec<_>> = HashMap::new();
        for task in &model.tasks {
            let processor = task.processor.as_str();
            let group = task.group.as_deref().filter(|g| groups.contains(&(processor, *g)));
            tasks.entry((processor, group)).or_default().push(task);
        }
        Self(tasks)
    }

    /// The tasks of a group, or those of a processor that are in none of its groups.
    pub(super) fn of<'s>(&'s self, processor: &'s str, group: Option<&'s str>) -> &'s [&'a Task] {
        self.0.get(&(processor, group)).map_or(&[], Vec::as_slice)
    }
}

fn add_task(task: &Task, add: &mut impl FnMut(Observed)) {
    add(Observed::Task(task.name.clone()));
    for entry in &task.entries {
        let name = || entry.name.clone();
        add(Observed::Entry(name()));
        for forwarding in &entry.forwarding {
            add(Observed::Forwarding { entry: name(), dest: forwarding.dest.clone() });
        }
        for phase in &entry.phases {
            add(Observed::Phase { entry: name(), phase: phase.phase });
            for call in &phase.activity.calls {
                add(Observed::PhaseCall { entry: name(), phase: phase.phase, dest: call.dest.clone() });
            }
        }
        for phase in 1..=3 {
            add(Observed::Phase { entry: name(), phase });
        }
    }
    for activity in &task.activities {
        add(Observed::Activity { task: task.name.clone(), activity: activity.name.clone() });
        for call in &activity.calls {
            let (task, activity) = (task.name.clone(), activity.name.clone());
            add(Observed::ActivityCall { task, activity, dest: call.dest.clone() });
        }
    }
    for precedence in &task.precedences {
        if let (Pre::And { .. }, Some(first)) = (&precedence.pre, precedence.pre.activities().first()) {
            add(Observed::Join { task: task.name.clone(), activity: first.clone() });
        }
    }
}
