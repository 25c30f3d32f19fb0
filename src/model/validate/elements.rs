//! What fits together within processors, tasks and entries.

use std::collections::HashSet;

use super::{DefectKind, Defects, Index, Named, entry_name, group_name, phase_name, processor_name, task_name, work};
use crate::model::{Entry, Model, Number, Processor, ProcessorScheduling, RwLockRole, SemaphoreRole, Task, TaskScheduling};

/// Checks all processors and tasks.
pub(super) fn check(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    if model.processors.is_empty() {
        defects.push(Named::model(), DefectKind::Empty("it has no processors"));
    }
    if model.tasks.is_empty() {
        defects.push(Named::model(), DefectKind::Empty("it has no tasks"));
    }
    let has_load = |task: &Task| task.scheduling.is_reference() || task.entries.iter().any(|e| e.open_arrival_rate.is_some());
    if !model.tasks.is_empty() && !model.tasks.iter().any(has_load) {
        defects.push(Named::model(), DefectKind::Empty("it has no reference task and no open arrivals"));
    }
    let used: HashSet<&str> = model.tasks.iter().map(|t| t.processor.as_str()).collect();
    let used_groups: HashSet<&str> = model.tasks.iter().filter_map(|t| t.group.as_deref()).collect();
    for processor in &model.processors {
        check_processor(processor, &used, &used_groups, defects);
    }
    for task in &model.tasks {
        let processor = index.processors.get(task.processor.as_str()).and_then(|i| model.processors.get(*i));
        check_task(task, processor, defects);
        task.entries.iter().for_each(|entry| check_entry(task, entry, defects));
        check_work(task, defects);
    }
}

fn check_processor(processor: &Processor, used: &HashSet<&str>, used_groups: &HashSet<&str>, defects: &mut Defects) {
    let element = processor_name(processor);
    if !used.contains(processor.name.as_str()) {
        defects.push(&element, DefectKind::Unused);
    }
    for group in processor.groups.iter().filter(|g| !used_groups.contains(g.name.as_str())) {
        defects.push(group_name(processor, group), DefectKind::Unused);
    }
    if !processor.groups.is_empty() && processor.scheduling != ProcessorScheduling::Cfs {
        defects.push(&element, DefectKind::GroupsIgnored);
    }
    let slices = matches!(processor.scheduling, ProcessorScheduling::Ps | ProcessorScheduling::Cfs | ProcessorScheduling::Rr);
    if !slices && !processor.quantum.is(0.0) {
        defects.push(&element, DefectKind::QuantumIgnored);
    }
    if processor.scheduling == ProcessorScheduling::Inf && has_multiplicity(&processor.multiplicity) {
        defects.push(&element, DefectKind::MultiplicityIgnored);
    }
}

fn has_multiplicity(multiplicity: &Number) -> bool {
    !multiplicity.is(1.0) && !multiplicity.is(f64::INFINITY)
}

fn check_task(task: &Task, processor: Option<&Processor>, defects: &mut Defects) {
    let element = task_name(task);
    if task.entries.is_empty() {
        defects.push(&element, DefectKind::NoEntries);
    }
    if task.scheduling.is_reference() && task.entries.len() > 1 {
        defects.push(&element, DefectKind::SeveralCustomerEntries);
    }
    if task.scheduling == TaskScheduling::Inf && has_multiplicity(&task.multiplicity) {
        defects.push(&element, DefectKind::MultiplicityIgnored);
    }
    if let Some(processor) = processor {
        let without_priority = match processor.scheduling {
            ProcessorScheduling::Fcfs => Some("fcfs"),
            ProcessorScheduling::Ps => Some("ps"),
            ProcessorScheduling::Rand => Some("rand"),
            _ => None,
        };
        if let Some(scheduling) = without_priority.filter(|_| !task.priority.is(0.0)) {
            defects.push(&element, DefectKind::PriorityIgnored { scheduling });
        }
        if processor.scheduling == ProcessorScheduling::Cfs && task.group.is_none() {
            defects.push(&element, DefectKind::NoGroup { processor: processor.name.clone() });
        }
    }
    check_lock(task, defects);
}

/// Checks that locks have exactly their entries, and that other tasks have none of them.
fn check_lock(task: &Task, defects: &mut Defects) {
    let (is_semaphore, is_rwlock) = (task.scheduling == TaskScheduling::Semaphore, task.scheduling == TaskScheduling::RwLock);
    for entry in &task.entries {
        if entry.semaphore.is_some() && !is_semaphore {
            defects.push(entry_name(task, entry), DefectKind::LockRole { kind: "semaphore" });
        }
        if entry.rwlock.is_some() && !is_rwlock {
            defects.push(entry_name(task, entry), DefectKind::LockRole { kind: "read-write lock" });
        }
    }
    let holds = |role: SemaphoreRole| task.entries.iter().filter(|e| e.semaphore == Some(role)).count() == 1;
    if is_semaphore && !(task.entries.len() == 2 && holds(SemaphoreRole::Wait) && holds(SemaphoreRole::Signal)) {
        let (kind, expected) = ("semaphore", "a wait and a signal entry");
        defects.push(task_name(task), DefectKind::LockEntries { kind, expected });
    }
    let roles = [RwLockRole::RLock, RwLockRole::RUnlock, RwLockRole::WLock, RwLockRole::WUnlock];
    let holds = |role: &RwLockRole| task.entries.iter().filter(|e| e.rwlock == Some(*role)).count() == 1;
    if is_rwlock && !(task.entries.len() == roles.len() && roles.iter().all(holds)) {
        let (kind, expected) = ("read-write lock", "an r-lock, an r-unlock, a w-lock and a w-unlock entry");
        defects.push(task_name(task), DefectKind::LockEntries { kind, expected });
    }
}

fn check_entry(task: &Task, entry: &Entry, defects: &mut Defects) {
    let element = || entry_name(task, entry);
    match (entry.phases.is_empty(), &entry.start_activity) {
        (true, None) => defects.push(element(), DefectKind::NoActivities),
        (false, Some(_)) => defects.push(element(), DefectKind::PhasesAndActivities),
        _ => {}
    }
    for phase in entry.phases.iter().filter(|p| !(1..=3).contains(&p.phase)) {
        defects.push(element(), DefectKind::PhaseNumber(phase.phase));
    }
    for (first, second) in entry.phases.iter().zip(entry.phases.iter().skip(1)).filter(|(a, b)| a.phase >= b.phase) {
        defects.push(element(), DefectKind::PhaseOrder(second.phase, first.phase));
    }
    if task.scheduling.is_reference() {
        let reply = task.replies.iter().any(|r| r.entry == entry.name);
        for (has, what) in
            [(!entry.forwarding.is_empty(), "forwarding"), (entry.open_arrival_rate.is_some(), "open arrivals"), (reply, "replies")]
        {
            if has {
                defects.push(element(), DefectKind::ReferenceTaskEntry { what });
            }
        }
    }
    let scheduling = match task.scheduling {
        TaskScheduling::Fcfs => "fcfs",
        TaskScheduling::Rand => "rand",
        _ => return,
    };
    if entry.priority.as_ref().is_some_and(|p| !p.is(0.0)) {
        defects.push(element(), DefectKind::PriorityIgnored { scheduling });
    }
}

fn check_work(task: &Task, defects: &mut Defects) {
    for (place, activity) in work(task) {
        let mut called = HashSet::new();
        for call in &activity.calls {
            if !called.insert(&call.dest) {
                defects.push(place.element(task, activity), DefectKind::RepeatedDestination { dest: call.dest.clone() });
            }
            if call.mean.is(0.0) {
                defects.push(place.element(task, activity), DefectKind::ZeroCalls { dest: call.dest.clone() });
            }
        }
        if let Some(parameter) = activity.max_service_time.parameter() {
            let (quantity, parameter) = ("maximum service time", parameter.to_owned());
            defects.push(place.element(task, activity), DefectKind::ParameterNotAllowed { quantity, parameter });
        }
    }
    for entry in &task.entries {
        for phase in &entry.phases {
            let activity = &phase.activity;
            if activity.host_demand.is(0.0) && activity.think_time.is(0.0) && activity.calls.is_empty() {
                defects.push(phase_name(task, entry, phase.phase), DefectKind::NoWork);
            }
        }
    }
}
