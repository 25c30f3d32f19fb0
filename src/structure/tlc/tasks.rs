//! The tasks of all recordings: their names, services, and counters.

use crate::trace::{angio::AngioEvent, diagnostics::Diagnostics, names::Names};

/// Counters of a task that were seen.
#[derive(Clone, Copy, Debug)]
struct Counters {
    n_nodes: u64,
    first: u64,
    last: u64,
}

/// Tasks by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    names: Names,
    /// Services; a task without one is its own.
    pub(super) processes: Names,
    process_of: Vec<u32>,
    /// Whether the task is a thread or an instance of its process.
    is_part: Vec<bool>,
    counters: Vec<Counters>,
}

impl Tasks {
    /// The number of an event's task, and whether the event tells something new of it.
    pub(super) fn intern(&mut self, event: &AngioEvent<'_>) -> (u32, bool) {
        let (task, is_news) = self.add(event.task, event.service);
        let counters = &mut self.counters[task as usize];
        counters.n_nodes += 1;
        counters.first = counters.first.min(event.task_node);
        counters.last = counters.last.max(event.task_node);
        (task, is_news)
    }

    /// The number of a task, and whether it or its service is new.
    pub(super) fn add(&mut self, name: &str, service: &str) -> (u32, bool) {
        let task = self.names.intern(name);
        if task as usize == self.process_of.len() {
            let is_part = !service.is_empty() && service != name;
            self.process_of.push(self.processes.intern(if is_part { service } else { name }));
            self.is_part.push(is_part);
            self.counters.push(Counters { n_nodes: 0, first: u64::MAX, last: 0 });
        } else if !self.is_part[task as usize] && !service.is_empty() && service != name {
            self.process_of[task as usize] = self.processes.intern(service);
            self.is_part[task as usize] = true;
        } else {
            return (task, false);
        }
        (task, true)
    }

    /// Joins the tasks of `other`; the number here of each of them, and of each of its processes.
    pub(super) fn merge(&mut self, other: &Self) -> (Vec<u32>, Vec<u32>) {
        let mut tasks = Vec::with_capacity(other.names.len());
        for (index, name) in other.names.iter().enumerate() {
            let service = if other.is_part[index] { other.processes.name(other.process_of[index]) } else { "" };
            let (task, _) = self.add(name, service);
            let (counters, more) = (&mut self.counters[task as usize], other.counters[index]);
            counters.n_nodes += more.n_nodes;
            counters.first = counters.first.min(more.first);
            counters.last = counters.last.max(more.last);
            tasks.push(task);
        }
        let processes = other.processes.iter().map(|name| self.processes.intern(name)).collect();
        (tasks, processes)
    }

    pub(super) fn name(&self, task: u32) -> &str {
        self.names.name(task)
    }

    /// The number of a task's process.
    pub(super) fn process(&self, task: u32) -> u32 {
        self.process_of[task as usize]
    }

    /// Process and thread of a task.
    pub(super) fn unit(&self, task: u32) -> (&str, &str) {
        let thread = if self.is_part[task as usize] { self.name(task) } else { "" };
        (self.processes.name(self.process(task)), thread)
    }

    /// Tells which tasks recorded events that are missing.
    pub(super) fn check(&self, diagnostics: &mut Diagnostics) {
        for (name, counters) in self.names.iter().zip(&self.counters).filter(|(_, counters)| counters.n_nodes > 0) {
            let n_expected = (counters.last - counters.first).saturating_add(1);
            if n_expected != counters.n_nodes {
                let message = "counters of tasks have gaps: what the task did for other scenarios was not recorded, or events are missing";
                diagnostics.add("task_counter_gap", message, || {
                    format!("{name}: {} of {n_expected} nodes from {} to {}", counters.n_nodes, counters.first, counters.last)
                });
            }
        }
    }
}
