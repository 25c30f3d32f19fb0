//! The element tree to a model: tasks, entries, activities and their graphs.

use std::collections::HashMap;

use super::{
    element::{Element, Result},
    read::{no_children, push_histogram, read_histogram, read_observations},
};
use crate::model::{
    Activity, Call, CallKind, CallOrder, Entry, Fan, Forwarding, Model, Observed, Phase, Post, Pre, Precedence, Reply, RwLockRole,
    SemaphoreRole, Task, TaskScheduling, Weighted,
};

const TASK_SCHEDULING: &[(&str, TaskScheduling)] = &[
    ("ref", TaskScheduling::Ref),
    ("burst", TaskScheduling::Burst),
    ("uniform", TaskScheduling::Uniform),
    ("fcfs", TaskScheduling::Fcfs),
    ("inf", TaskScheduling::Inf),
    ("hol", TaskScheduling::Hol),
    ("pri", TaskScheduling::Pri),
    ("pp", TaskScheduling::Pri),
    ("ppr", TaskScheduling::Pri),
    ("poll", TaskScheduling::Poll),
    ("rand", TaskScheduling::Rand),
    ("semaphore", TaskScheduling::Semaphore),
    ("rwlock", TaskScheduling::RwLock),
];

/// How an entry's work is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryType {
    Phases,
    Graph,
}

/// `LIST` is an old name of the stochastic order.
const CALL_ORDER: &[(&str, CallOrder)] =
    &[("STOCHASTIC", CallOrder::Stochastic), ("DETERMINISTIC", CallOrder::Deterministic), ("LIST", CallOrder::Stochastic)];

/// Reads a task with all that is in it.
pub(super) fn read_task(element: &Element<'_>, processor: &str, group: Option<String>, model: &mut Model) -> Result<()> {
    const NUMBERS: [&str; 6] = ["initially", "queue-length", "priority", "think-time", "multiplicity", "replication"];
    element.allow(&[&["name", "scheduling", "activity-graph"][..], &NUMBERS].concat())?;
    let name = element.required("name")?;
    let mut task = Task {
        group,
        scheduling: element.choice("scheduling", TASK_SCHEDULING)?.unwrap_or_default(),
        multiplicity: element.number_or("multiplicity", 1.0)?,
        replication: element.number_or("replication", 1.0)?,
        priority: element.number_or("priority", 0.0)?,
        think_time: element.number_or("think-time", 0.0)?,
        queue_length: element.number_or("queue-length", 0.0)?,
        initial_tokens: element.number("initially")?,
        ..Task::new(name, processor)
    };
    let mut graph = None;
    for child in &element.children {
        match child.name.as_ref() {
            "fan-out" => task.fan_out.push(read_fan(child, "dest")?),
            "fan-in" => task.fan_in.push(read_fan(child, "source")?),
            "service-time-distribution" => {
                push_histogram(model, Observed::Task(name.to_owned()), read_histogram(child, &[])?);
            }
            "result-observe" => read_observations(child, &Observed::Task(name.to_owned()), model)?,
            "entry" => task.entries.push(read_entry(child, model)?),
            "task-activities" if graph.is_none() => graph = Some(child),
            "task-activities" => return Err(child.error("<task-activities> stands twice")),
            _ => {
                let parts = ["fan-out", "fan-in", "entry", "task-activities", "service-time-distribution", "result-observe"];
                return Err(element.unknown_child(child, &parts));
            }
        }
    }
    if let Some(graph) = graph {
        read_graph(graph, &mut task, model)?;
    }
    model.tasks.push(task);
    Ok(())
}

fn read_fan(element: &Element<'_>, other: &str) -> Result<Fan> {
    element.allow(&[other, "value"])?;
    no_children(element)?;
    let task = element.required(other)?.to_owned();
    element.required("value")?;
    Ok(Fan { task, value: element.number_or("value", 1.0)? })
}

fn read_entry(element: &Element<'_>, model: &mut Model) -> Result<Entry> {
    element.allow(&["name", "type", "open-arrival-rate", "priority", "semaphore", "rwlock", "prob"])?;
    let name = element.required("name")?;
    let kind = element.choice("type", &[("PH1PH2", EntryType::Phases), ("NONE", EntryType::Graph)])?;
    let mut entry = Entry {
        open_arrival_rate: element.number("open-arrival-rate")?,
        priority: element.number("priority")?,
        semaphore: element.choice("semaphore", &[("signal", SemaphoreRole::Signal), ("wait", SemaphoreRole::Wait)])?,
        rwlock: element.choice(
            "rwlock",
            &[
                ("r-lock", RwLockRole::RLock),
                ("r-unlock", RwLockRole::RUnlock),
                ("w-lock", RwLockRole::WLock),
                ("w-unlock", RwLockRole::WUnlock),
            ],
        )?,
        visit_probability: element.number("prob")?,
        ..Entry::new(name)
    };
    for child in &element.children {
        match child.name.as_ref() {
            "forwarding" => entry.forwarding.push(read_forwarding(child, name, model)?),
            "entry-phase-activities" if kind == Some(EntryType::Graph) => {
                return Err(child.error(format!("entry \"{name}\" has type NONE: phases need PH1PH2")));
            }
            "entry-phase-activities" => read_phases(child, &mut entry, model)?,
            "service-time-distribution" => {
                let of = Observed::Phase { entry: name.to_owned(), phase: child.phase()? };
                push_histogram(model, of, read_histogram(child, &["phase"])?);
            }
            "result-observe" => read_observations(child, &Observed::Entry(name.to_owned()), model)?,
            _ => {
                let parts = ["forwarding", "entry-phase-activities", "service-time-distribution", "result-observe"];
                return Err(element.unknown_child(child, &parts));
            }
        }
    }
    Ok(entry)
}

fn read_forwarding(element: &Element<'_>, entry: &str, model: &mut Model) -> Result<Forwarding> {
    element.allow(&["dest", "prob"])?;
    let dest = element.required("dest")?.to_owned();
    for child in &element.children {
        match child.name.as_ref() {
            "result-observe" => {
                let of = Observed::Forwarding { entry: entry.to_owned(), dest: dest.clone() };
                read_observations(child, &of, model)?;
            }
            _ => return Err(element.unknown_child(child, &["result-call", "result-observe"])),
        }
    }
    element.required("prob")?;
    Ok(Forwarding { dest, probability: element.number_or("prob", 0.0)? })
}

fn read_phases(element: &Element<'_>, entry: &mut Entry, model: &mut Model) -> Result<()> {
    element.allow(&[])?;
    for child in &element.children {
        if child.name != "activity" {
            return Err(element.unknown_child(child, &["activity"]));
        }
        let phase = child.phase()?;
        if entry.phases.iter().any(|p| p.phase == phase) {
            return Err(child.error(format!("entry \"{}\" has phase {phase} twice", entry.name)));
        }
        let of = Observed::Phase { entry: entry.name.clone(), phase };
        let of_call = |dest: &str| Observed::PhaseCall { entry: entry.name.clone(), phase, dest: dest.to_owned() };
        let activity = read_activity(child, "phase", &of, &of_call, model)?;
        entry.phases.push(Phase { phase, activity });
    }
    entry.phases.sort_by_key(|p| p.phase);
    Ok(())
}

fn read_activity(
    element: &Element<'_>,
    place: &str,
    of: &Observed,
    of_call: &dyn Fn(&str) -> Observed,
    model: &mut Model,
) -> Result<Activity> {
    const NUMBERS: [&str; 4] = ["host-demand-mean", "host-demand-cvsq", "think-time", "max-service-time"];
    element.allow(&[&["name", place, "call-order"][..], &NUMBERS].concat())?;
    let mut activity = Activity {
        host_demand_cvsq: element.number_or("host-demand-cvsq", 1.0)?,
        think_time: element.number_or("think-time", 0.0)?,
        max_service_time: element.literal_or("max-service-time", 0.0)?.into(),
        call_order: element.choice("call-order", CALL_ORDER)?.unwrap_or_default(),
        ..Activity::new(element.required("name")?, element.number_or("host-demand-mean", 0.0)?)
    };
    for child in &element.children {
        match child.name.as_ref() {
            "service-time-distribution" => {
                let request = read_histogram(child, &[])?;
                match activity.histogram {
                    None => activity.histogram = Some(request),
                    Some(_) => push_histogram(model, of.clone(), request),
                }
            }
            "result-observe" => read_observations(child, of, model)?,
            "synch-call" => activity.calls.push(read_call(child, CallKind::Sync, of_call, model)?),
            "asynch-call" => activity.calls.push(read_call(child, CallKind::Async, of_call, model)?),
            _ => {
                let parts = ["synch-call", "asynch-call", "service-time-distribution", "result-observe"];
                return Err(element.unknown_child(child, &parts));
            }
        }
    }
    Ok(activity)
}

fn read_call(element: &Element<'_>, kind: CallKind, of: &dyn Fn(&str) -> Observed, model: &mut Model) -> Result<Call> {
    element.allow(&["dest", "calls-mean"])?;
    let dest = element.required("dest")?.to_owned();
    for child in &element.children {
        match child.name.as_ref() {
            "result-observe" => read_observations(child, &of(&dest), model)?,
            _ => return Err(element.unknown_child(child, &["result-call", "result-observe"])),
        }
    }
    element.required("calls-mean")?;
    Ok(Call { kind, dest, mean: element.number_or("calls-mean", 1.0)? })
}

fn read_graph(element: &Element<'_>, task: &mut Task, model: &mut Model) -> Result<()> {
    element.allow(&[])?;
    let entries: HashMap<String, usize> = task.entries.iter().enumerate().map(|(i, e)| (e.name.clone(), i)).collect();
    for child in &element.children {
        match child.name.as_ref() {
            "activity" => read_graph_activity(child, &entries, task, model)?,
            "precedence" => {
                let precedence = read_precedence(child, &task.name, model)?;
                task.precedences.push(precedence);
            }
            "reply-entry" => read_reply(child, task)?,
            _ => return Err(element.unknown_child(child, &["activity", "precedence", "reply-entry"])),
        }
    }
    Ok(())
}

fn read_graph_activity(element: &Element<'_>, entries: &HashMap<String, usize>, task: &mut Task, model: &mut Model) -> Result<()> {
    let name = element.required("name")?.to_owned();
    let of = Observed::Activity { task: task.name.clone(), activity: name.clone() };
    let of_call = |dest: &str| Observed::ActivityCall { task: task.name.clone(), activity: name.clone(), dest: dest.to_owned() };
    let activity = read_activity(element, "bound-to-entry", &of, &of_call, model)?;
    task.activities.push(activity);
    let Some(bound_to) = element.text_of("bound-to-entry") else {
        return Ok(());
    };
    let Some(entry) = entries.get(bound_to).and_then(|i| task.entries.get_mut(*i)) else {
        return Err(element.attribute_error("bound-to-entry", &format!("an entry of task \"{}\"", task.name)));
    };
    match entry.start_activity.replace(name) {
        None => Ok(()),
        Some(other) => Err(element.error(format!("entry \"{bound_to}\" already starts with activity \"{other}\""))),
    }
}

fn read_precedence(element: &Element<'_>, task: &str, model: &mut Model) -> Result<Precedence> {
    element.allow(&[])?;
    let mut pre = None;
    let mut post = None;
    for child in &element.children {
        let is_pre = matches!(child.name.as_ref(), "pre" | "pre-and" | "pre-or");
        let is_post = matches!(child.name.as_ref(), "post" | "post-and" | "post-or" | "post-loop");
        if is_pre && pre.is_none() {
            pre = Some(read_pre(child, task, model)?);
        } else if is_post && post.is_none() {
            post = Some(read_post(child)?);
        } else if is_pre || is_post {
            return Err(child.error("a precedence has one pre list and at most one post list"));
        } else {
            let lists = ["pre", "pre-AND", "pre-OR", "post", "post-AND", "post-OR", "post-LOOP"];
            return Err(element.unknown_child(child, &lists));
        }
    }
    let pre = pre.ok_or_else(|| element.error("<precedence> lacks a pre list"))?;
    Ok(Precedence { pre, post })
}

fn read_pre(element: &Element<'_>, task: &str, model: &mut Model) -> Result<Pre> {
    element.allow(if element.name == "pre-and" { &["quorum"] } else { &[] })?;
    let mut activities = Vec::new();
    let mut histograms = Vec::new();
    let mut observed = Vec::new();
    for child in &element.children {
        match child.name.as_ref() {
            "activity" => activities.push(activity_name(child, &[])?),
            "service-time-distribution" if element.name == "pre-and" => histograms.push(read_histogram(child, &[])?),
            "result-observe" if element.name == "pre-and" => observed.push(child),
            _ => return Err(element.unknown_child(child, &["activity"])),
        }
    }
    let first = one_of(element, &activities)?;
    let join = Observed::Join { task: task.to_owned(), activity: first.clone() };
    histograms.into_iter().for_each(|request| push_histogram(model, join.clone(), request));
    observed.into_iter().try_for_each(|child| read_observations(child, &join, model))?;
    Ok(match element.name.as_ref() {
        "pre-and" => Pre::And { activities, quorum: element.number_or("quorum", 0.0)? },
        "pre-or" => Pre::Or(activities),
        _ => Pre::Single(first),
    })
}

fn read_post(element: &Element<'_>) -> Result<Post> {
    element.allow(if element.name == "post-loop" { &["end"] } else { &[] })?;
    let weight = match element.name.as_ref() {
        "post-or" => Some("prob"),
        "post-loop" => Some("count"),
        _ => None,
    };
    let mut weighted = Vec::new();
    for child in &element.children {
        if child.name != "activity" {
            return Err(element.unknown_child(child, &["activity"]));
        }
        let activity = activity_name(child, weight.as_slice())?;
        weighted.push(Weighted { activity, value: weight.map_or(Ok(1.0.into()), |w| child.number_or(w, 1.0))? });
    }
    let names: Vec<String> = weighted.iter().map(|w| w.activity.clone()).collect();
    let first = one_of(element, &names)?;
    Ok(match element.name.as_ref() {
        "post-and" => Post::And(names),
        "post-or" => Post::Or(weighted),
        "post-loop" => Post::Loop { bodies: weighted, end: element.text_of("end").map(str::to_owned) },
        _ => Post::Single(first),
    })
}

/// The first of the activities of a list; a plain list has exactly one.
fn one_of(element: &Element<'_>, activities: &[String]) -> Result<String> {
    let is_plain = matches!(element.name.as_ref(), "pre" | "post");
    match activities {
        [first] => Ok(first.clone()),
        [first, ..] if !is_plain => Ok(first.clone()),
        [] => Err(element.error(format!("<{}> has no activity", element.name))),
        _ => Err(element.error(format!("<{}> has more than one activity", element.name))),
    }
}

fn activity_name(element: &Element<'_>, attributes: &[&str]) -> Result<String> {
    element.allow(&[&["name"], attributes].concat())?;
    no_children(element)?;
    Ok(element.required("name")?.to_owned())
}

fn read_reply(element: &Element<'_>, task: &mut Task) -> Result<()> {
    element.allow(&["name"])?;
    let entry = element.required("name")?;
    if element.children.is_empty() {
        return Err(element.error("<reply-entry> has no <reply-activity>"));
    }
    for child in &element.children {
        if child.name != "reply-activity" {
            return Err(element.unknown_child(child, &["reply-activity"]));
        }
        task.replies.push(Reply { entry: entry.to_owned(), activity: activity_name(child, &[])? });
    }
    Ok(())
}
