//! Who calls whom: kinds of requests, cycles, reachability.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{DefectKind, Defects, Index, entry_name, task_name, work};
use crate::model::{CallKind, Entry, Model, RwLockRole, SemaphoreRole, Task, TaskScheduling};

/// Most cycles that are named: one is to be mended first anyway.
const MAX_CYCLES: usize = 8;

/// The requests that an entry gets: one sender of each kind, in words.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    /// A caller that waits for the reply, or an entry that forwards such a call.
    pub(super) sync: Option<String>,
    /// A caller that does not wait, or `open arrivals`.
    pub(super) send: Option<String>,
}

/// The requests of all called entries, by the entry's name.
pub(super) fn inputs(model: &Model) -> HashMap<&str, Inputs> {
    let mut inputs: HashMap<&str, Inputs> = HashMap::new();
    for task in &model.tasks {
        for entry in &task.entries {
            if entry.open_arrival_rate.is_some() {
                inputs.entry(&entry.name).or_default().send.get_or_insert_with(|| "open arrivals".into());
            }
            for forwarding in &entry.forwarding {
                let sync = &mut inputs.entry(&forwarding.dest).or_default().sync;
                sync.get_or_insert_with(|| entry_name(task, entry).text);
            }
        }
        for (place, activity) in work(task) {
            for call in &activity.calls {
                let input = inputs.entry(&call.dest).or_default();
                let slot = if call.kind == CallKind::Sync { &mut input.sync } else { &mut input.send };
                slot.get_or_insert_with(|| place.element(task, activity).text);
            }
        }
    }
    inputs
}

/// Checks all calls of the model.
pub(super) fn check(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    let inputs = inputs(model);
    for task in &model.tasks {
        for entry in &task.entries {
            if let Some(input) = inputs.get(entry.name.as_str()) {
                check_inputs(task, entry, input, defects);
            }
        }
    }
    check_cycles(model, index, defects);
    check_reachability(model, index, &inputs, defects);
}

fn check_inputs(task: &Task, entry: &Entry, input: &Inputs, defects: &mut Defects) {
    let is_open = entry.open_arrival_rate.is_some();
    if task.scheduling.is_reference() {
        let sender = input.send.as_ref().filter(|_| !is_open);
        if let Some(caller) = input.sync.as_ref().or(sender) {
            defects.push(entry_name(task, entry), DefectKind::CalledReferenceTask { caller: caller.clone() });
        }
        return;
    }
    let Some(send) = &input.send else {
        return;
    };
    if let Some(sync) = &input.sync {
        let kind = DefectKind::SyncAndAsync { sync: sync.clone(), send: send.clone() };
        defects.push(entry_name(task, entry), kind);
    }
    let takes_lock = entry.semaphore == Some(SemaphoreRole::Wait) || matches!(entry.rwlock, Some(RwLockRole::RLock | RwLockRole::WLock));
    if takes_lock {
        defects.push(entry_name(task, entry), DefectKind::AsyncToLock { send: send.clone() });
    }
    if task.scheduling == TaskScheduling::Inf {
        defects.push(entry_name(task, entry), DefectKind::UnboundedServer { send: send.clone() });
    }
}

/// The tasks that each task waits for, with the entry that is called there; each once.
fn waits_for<'a>(model: &'a Model, index: &Index<'_>) -> Vec<Vec<(usize, &'a str)>> {
    let edges = model.tasks.iter().map(|task| {
        let calls = work(task).flat_map(|(_, activity)| &activity.calls);
        let sync = calls.filter(|c| c.kind == CallKind::Sync && !c.mean.is(0.0)).map(|c| c.dest.as_str());
        let forwarded = task.entries.iter().flat_map(|e| &e.forwarding).filter(|f| !f.probability.is(0.0));
        let mut seen = HashSet::new();
        let called = sync.chain(forwarded.map(|f| f.dest.as_str()));
        called.filter_map(|dest| Some((index.entries.get(dest)?.0, dest))).filter(|(to, _)| seen.insert(*to)).collect()
    });
    edges.collect()
}

/// Names cycles of tasks that wait for one another, found by a depth-first walk (without recursion: chains are long).
fn check_cycles(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let edges = waits_for(model, index);
    let mut marks = vec![Mark::New; edges.len()];
    let mut n_cycles = 0;
    for root in 0..edges.len() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::OnPath;
        // The path: each task with the entry by which it was called, and the next of its edges.
        let mut path: Vec<(usize, &str, usize)> = vec![(root, "", 0)];
        while let Some((task, _, next)) = path.last_mut() {
            let Some(&(to, entry)) = edges[*task].get(*next) else {
                marks[*task] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::OnPath;
                    path.push((to, entry, 0));
                }
                Mark::OnPath if n_cycles < MAX_CYCLES => {
                    n_cycles += 1;
                    let start = path.iter().position(|(t, ..)| *t == to).unwrap_or(0);
                    push_cycle(model, &path[start..], to, entry, defects);
                }
                Mark::OnPath | Mark::Done => {}
            }
        }
    }
}

fn push_cycle(model: &Model, path: &[(usize, &str, usize)], to: usize, entry: &str, defects: &mut Defects) {
    let name = |task: usize| model.tasks.get(task).map(|t| t.name.clone()).unwrap_or_default();
    let called = path.iter().skip(1).map(|(task, entry, _)| (*task, *entry)).chain([(to, entry)]);
    let mut names = vec![name(to)];
    names.extend(called.map(|(task, entry)| format!("{} (\"{entry}\")", name(task))));
    let element = model.tasks.get(to).map(task_name).unwrap_or_default();
    defects.push(element, DefectKind::CallCycle { path: names });
}

/// Warns of entries that get no requests, and of those whose callers never run.
fn check_reachability(model: &Model, index: &Index<'_>, inputs: &HashMap<&str, Inputs>, defects: &mut Defects) {
    let reached = reached(model, index);
    for (i, task) in model.tasks.iter().enumerate() {
        if task.scheduling.is_reference() {
            continue;
        }
        for (j, entry) in task.entries.iter().enumerate() {
            if !inputs.contains_key(entry.name.as_str()) {
                defects.push(entry_name(task, entry), DefectKind::UncalledEntry);
            } else if !reached.contains(&(i, j)) {
                defects.push(entry_name(task, entry), DefectKind::UnreachableEntry);
            }
        }
    }
}

/// The entries that customers and open arrivals lead to. Of a task with a graph, all activities count once any of its
/// graph's entries is reached.
fn reached(model: &Model, index: &Index<'_>) -> HashSet<(usize, usize)> {
    let mut pending: VecDeque<(usize, usize)> = VecDeque::new();
    let mut graphs = HashSet::new();
    for (i, task) in model.tasks.iter().enumerate() {
        let is_root = |entry: &Entry| task.scheduling.is_reference() || entry.open_arrival_rate.is_some();
        pending.extend(task.entries.iter().enumerate().filter(|(_, e)| is_root(e)).map(|(j, _)| (i, j)));
    }
    let mut reached: HashSet<(usize, usize)> = pending.iter().copied().collect();
    while let Some((i, j)) = pending.pop_front() {
        let Some(task) = model.tasks.get(i) else { continue };
        let Some(entry) = task.entries.get(j) else { continue };
        let phases = entry.phases.iter().flat_map(|p| &p.activity.calls);
        let starts_graph = entry.start_activity.is_some() && graphs.insert(i);
        let graph = task.activities.iter().filter(|_| starts_graph).flat_map(|a| &a.calls);
        let forwarded = entry.forwarding.iter().map(|f| &f.dest);
        for dest in phases.chain(graph).map(|c| &c.dest).chain(forwarded) {
            if let Some(at) = index.entries.get(dest.as_str()).filter(|at| reached.insert(**at)) {
                pending.push_back(*at);
            }
        }
    }
    reached
}
