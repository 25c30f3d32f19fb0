//! A model to XML: tasks, entries, activities and their graphs.

use std::collections::{HashMap, HashSet};

use super::write::Writer;
use crate::model::{
    Activity, CallKind, CallOrder, Entry, Observed, Post, Pre, Precedence, Reply, RwLockRole, SemaphoreRole, Task, TaskScheduling,
};

/// Writes a task with all that is in it.
pub(super) fn write_task(out: &mut Writer<'_>, task: &Task) {
    out.open("task").attribute("name", &task.name).attribute("scheduling", scheduling(task.scheduling));
    out.optional_number("initially", task.initial_tokens.as_ref()).number("queue-length", &task.queue_length, 0.0);
    out.number("priority", &task.priority, 0.0).number("think-time", &task.think_time, 0.0);
    out.number("multiplicity", &task.multiplicity, 1.0).number("replication", &task.replication, 1.0);
    let of = Observed::Task(task.name.clone());
    out.observations(&of);
    out.histograms(&of);
    for fan in &task.fan_out {
        out.open("fan-out").attribute("dest", &fan.task).attribute("value", &fan.value).close("fan-out");
    }
    for fan in &task.fan_in {
        out.open("fan-in").attribute("source", &fan.task).attribute("value", &fan.value).close("fan-in");
    }
    task.entries.iter().for_each(|e| write_entry(out, e));
    if !(task.activities.is_empty() && task.precedences.is_empty() && task.replies.is_empty()) {
        write_graph(out, task);
    }
    out.close("task");
}

fn scheduling(scheduling: TaskScheduling) -> &'static str {
    match scheduling {
        TaskScheduling::Ref => "ref",
        TaskScheduling::Burst => "burst",
        TaskScheduling::Uniform => "uniform",
        TaskScheduling::Fcfs => "fcfs",
        TaskScheduling::Inf => "inf",
        TaskScheduling::Hol => "hol",
        TaskScheduling::Pri => "pri",
        TaskScheduling::Poll => "poll",
        TaskScheduling::Rand => "rand",
        TaskScheduling::Semaphore => "semaphore",
        TaskScheduling::RwLock => "rwlock",
    }
}

fn write_entry(out: &mut Writer<'_>, entry: &Entry) {
    let is_graph = entry.start_activity.is_some() && entry.phases.is_empty();
    out.open("entry").attribute("name", &entry.name).attribute("type", if is_graph { "NONE" } else { "PH1PH2" });
    out.optional_number("open-arrival-rate", entry.open_arrival_rate.as_ref());
    out.optional_number("priority", entry.priority.as_ref()).optional_number("prob", entry.visit_probability.as_ref());
    if let Some(role) = entry.semaphore {
        out.attribute("semaphore", if role == SemaphoreRole::Wait { "wait" } else { "signal" });
    }
    if let Some(role) = entry.rwlock {
        let role = match role {
            RwLockRole::RLock => "r-lock",
            RwLockRole::RUnlock => "r-unlock",
            RwLockRole::WLock => "w-lock",
            RwLockRole::WUnlock => "w-unlock",
        };
        out.attribute("rwlock", role);
    }
    out.observations(&Observed::Entry(entry.name.clone()));
    (1..=3).for_each(|phase| out.histograms(&Observed::Phase { entry: entry.name.clone(), phase }));
    for forwarding in &entry.forwarding {
        out.open("forwarding").attribute("dest", &forwarding.dest).attribute("prob", &forwarding.probability);
        out.observations(&Observed::Forwarding { entry: entry.name.clone(), dest: forwarding.dest.clone() });
        out.close("forwarding");
    }
    write_phases(out, entry);
    out.close("entry");
}

fn write_phases(out: &mut Writer<'_>, entry: &Entry) {
    if entry.phases.is_empty() {
        return;
    }
    out.open("entry-phase-activities");
    for phase in &entry.phases {
        out.open("activity").attribute("name", &phase.activity.name).attribute("phase", phase.phase);
        write_numbers(out, &phase.activity);
        let of = Observed::Phase { entry: entry.name.clone(), phase: phase.phase };
        phase.activity.histogram.iter().for_each(|h| out.histogram(h, &of, None));
        out.observations(&of);
        write_calls(out, &phase.activity, &|dest| Observed::PhaseCall { entry: entry.name.clone(), phase: phase.phase, dest });
        out.close("activity");
    }
    out.close("entry-phase-activities");
}

fn write_numbers(out: &mut Writer<'_>, activity: &Activity) {
    out.attribute("host-demand-mean", &activity.host_demand).number("host-demand-cvsq", &activity.host_demand_cvsq, 1.0);
    out.number("think-time", &activity.think_time, 0.0).number("max-service-time", &activity.max_service_time, 0.0);
    if activity.call_order == CallOrder::Deterministic {
        out.attribute("call-order", "DETERMINISTIC");
    }
}

fn write_calls(out: &mut Writer<'_>, activity: &Activity, of: &dyn Fn(String) -> Observed) {
    let mut seen = HashSet::new();
    for call in &activity.calls {
        let element = if call.kind == CallKind::Sync { "synch-call" } else { "asynch-call" };
        out.open(element).attribute("dest", &call.dest).attribute("calls-mean", &call.mean);
        if seen.insert(&call.dest) {
            out.observations(&of(call.dest.clone()));
        }
        out.close(element);
    }
}

fn write_graph(out: &mut Writer<'_>, task: &Task) {
    let starts: HashMap<&String, &Entry> = task.entries.iter().filter_map(|e| Some((e.start_activity.as_ref()?, e))).collect();
    out.open("task-activities");
    for activity in &task.activities {
        let bound_to = starts.get(&activity.name);
        let of = Observed::Activity { task: task.name.clone(), activity: activity.name.clone() };
        out.open("activity").attribute("name", &activity.name);
        if let Some(entry) = bound_to {
            out.attribute("bound-to-entry", &entry.name);
        }
        write_numbers(out, activity);
        activity.histogram.iter().for_each(|h| out.histogram(h, &of, None));
        out.histograms(&of);
        out.observations(&of);
        write_calls(out, activity, &|dest| Observed::ActivityCall { task: task.name.clone(), activity: activity.name.clone(), dest });
        out.close("activity");
    }
    task.precedences.iter().for_each(|p| write_precedence(out, task, p));
    for run in task.replies.chunk_by(|a, b| a.entry == b.entry) {
        write_replies(out, run);
    }
    out.close("task-activities");
}

fn write_precedence(out: &mut Writer<'_>, task: &Task, precedence: &Precedence) {
    out.open("precedence");
    let list = match &precedence.pre {
        Pre::Single(_) => "pre",
        Pre::And { .. } => "pre-AND",
        Pre::Or(_) => "pre-OR",
    };
    out.open(list);
    if let Pre::And { activities, quorum } = &precedence.pre {
        out.number("quorum", quorum, 0.0);
        if let Some(first) = activities.first() {
            let join = Observed::Join { task: task.name.clone(), activity: first.clone() };
            out.observations(&join);
            out.histograms(&join);
        }
    }
    for activity in precedence.pre.activities() {
        out.open("activity").attribute("name", activity).close("activity");
    }
    out.close(list);
    precedence.post.iter().for_each(|post| write_post(out, post));
    out.close("precedence");
}

fn write_post(out: &mut Writer<'_>, post: &Post) {
    let (list, weight) = match post {
        Post::Single(_) => ("post", None),
        Post::And(_) => ("post-AND", None),
        Post::Or(branches) => ("post-OR", Some(("prob", branches))),
        Post::Loop { bodies, .. } => ("post-LOOP", Some(("count", bodies))),
    };
    out.open(list);
    if let Post::Loop { end: Some(end), .. } = post {
        out.attribute("end", end);
    }
    match weight {
        None => post.activities().iter().for_each(|a| out.open("activity").attribute("name", a).close("activity")),
        Some((attribute, weighted)) => {
            for branch in weighted {
                out.open("activity").attribute("name", &branch.activity).attribute(attribute, &branch.value).close("activity");
            }
        }
    }
    out.close(list);
}

fn write_replies(out: &mut Writer<'_>, replies: &[Reply]) {
    let Some(first) = replies.first() else {
        return;
    };
    out.open("reply-entry").attribute("name", &first.entry);
    for reply in replies {
        out.open("reply-activity").attribute("name", &reply.activity).close("reply-activity");
    }
    out.close("reply-entry");
}
