//! Self times of a run, three ways: by the events of the run, by what was extracted from its trace, and by the model's demands.
//!
//! The self time of an execution is what spans show: of phase 1 the time from acceptance to reply (to the end where nobody waits
//! for one) during which it waits for no call, of phase 2 the same from reply to end. It holds the wait for the processor. Of
//! what runs on a processor without limit and does not fork, it is the demand.
//!
//! A demand of mean D is at most as spread as an exponential time (sums of Erlang slices, in a geometric number of slices with
//! stochastic calls): an exponential time is the limit of a geometric number of nanoseconds. So the expected demand, with the
//! variance and tail that bound how far means may be off (see `structure`), is had from a model in which each activity calls
//! for its nanoseconds one by one.

use std::collections::{BTreeMap, HashMap};

use layerfit::{
    model::{Activity, Call, CallKind, CallOrder, Entry, Model, Post, Processor, ProcessorScheduling, Task},
    solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind},
    structure::{Accepts, ArcKind, Extraction},
};

use super::structure::{self, Moments, Node};

/// Mean self time of an entry in a phase, over `n` executions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTime {
    pub n: f64,
    pub mean_s: f64,
    /// Mean number of calls waited for.
    pub waits: f64,
}

/// By entry (customers by the name of their task) and phase, 1 or 2.
pub type SelfTimes = BTreeMap<(Node, u8), SelfTime>;

/// An execution under way.
struct Execution {
    node: Node,
    accepted: f64,
    replied: Option<f64>,
    /// Calls waited for: phase, from, to.
    waits: Vec<(u8, f64, f64)>,
}

/// Length of a union of intervals.
fn union(mut intervals: Vec<(f64, f64)>) -> f64 {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in intervals {
        covered += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    covered
}

impl Execution {
    /// Self times of both phases and numbers of waits, at its end.
    fn self_times(&self, ended: f64) -> [(f64, f64); 2] {
        let reply = self.replied.unwrap_or(ended);
        [(1, self.accepted, reply), (2, reply, ended)].map(|(phase, from, to)| {
            let waits: Vec<(f64, f64)> = self.waits.iter().filter(|w| w.0 == phase).map(|w| (w.1, w.2)).collect();
            let n = waits.len() as f64;
            (to - from - union(waits), n)
        })
    }
}

/// The executions of a run, in order of their ends, with these.
fn executions(legend: &Legend, events: &[RecordedEvent]) -> Vec<(u64, Execution, f64)> {
    let mut open: HashMap<u64, Execution> = HashMap::new();
    let mut calls: HashMap<u64, (u64, u8, f64)> = HashMap::new();
    let mut ended = Vec::new();
    for event in events {
        match event.event {
            Event::Sent { kind, by, chain, entry, .. } => {
                let node = Node { task: legend.task_of(entry).name.clone(), entry: legend.entry(entry).to_owned(), accepts: accepts(kind) };
                open.insert(event.request, Execution { node, accepted: event.time, replied: None, waits: Vec::new() });
                if let (RequestKind::Sync, Some(by)) = (kind, by) {
                    let phase = if open[&by.request].node.accepts == Accepts::Sync { by.phase.min(2) } else { 1 };
                    calls.insert(chain, (by.request, phase, event.time));
                }
            }
            Event::Accepted { .. } => open.get_mut(&event.request).unwrap().accepted = event.time,
            Event::Replied { chain, .. } => {
                open.get_mut(&event.request).unwrap().replied = Some(event.time);
                let (caller, phase, sent) = calls.remove(&chain).unwrap();
                open.get_mut(&caller).unwrap().waits.push((phase, sent, event.time));
            }
            Event::Ended => ended.push((event.request, open.remove(&event.request).unwrap(), event.time)),
            _ => {}
        }
    }
    ended
}

/// Self times of both phases of each execution (by its request), and how long it lasted, seconds.
pub fn self_times_of_executions(legend: &Legend, events: &[RecordedEvent]) -> Vec<(u64, Node, [f64; 2], f64)> {
    let times = |(number, execution, ended): (u64, Execution, f64)| {
        (number, execution.node.clone(), execution.self_times(ended).map(|phase| phase.0), ended - execution.accepted)
    };
    executions(legend, events).into_iter().map(times).collect()
}

/// What the run shows.
pub fn recorded(legend: &Legend, events: &[RecordedEvent]) -> SelfTimes {
    let mut sums: BTreeMap<Node, (f64, [(f64, f64); 2])> = BTreeMap::new();
    for (_, execution, ended) in executions(legend, events) {
        let sum = sums.entry(execution.node.clone()).or_default();
        sum.0 += 1.0;
        for (sum, (time, waits)) in sum.1.iter_mut().zip(execution.self_times(ended)) {
            *sum = (sum.0 + time, sum.1 + waits);
        }
    }
    let means = |(node, (n, phases)): (Node, (f64, [(f64, f64); 2]))| {
        let mean = move |(time, waits): (f64, f64)| SelfTime { n, mean_s: time / n, waits: waits / n };
        [((node.clone(), 1), mean(phases[0])), ((node, 2), mean(phases[1]))]
    };
    sums.into_iter().flat_map(means).collect()
}

fn accepts(kind: RequestKind) -> Accepts {
    match kind {
        RequestKind::Cycle => Accepts::Nothing,
        RequestKind::Sync | RequestKind::Forward => Accepts::Sync,
        RequestKind::Async | RequestKind::Open => Accepts::Async,
    }
}

/// What was extracted.
pub fn extracted(extraction: &Extraction, customers: &[&str]) -> SelfTimes {
    let mut times = SelfTimes::new();
    for task in &extraction.tasks {
        for entry in task.entries.iter().filter(|entry| entry.accepts != Accepts::Nothing) {
            let accepts = if customers.contains(&task.name.as_str()) { Accepts::Nothing } else { entry.accepts };
            let node = Node { task: task.name.clone(), entry: entry.operation.clone().unwrap_or_default(), accepts };
            for (phase, mean_s) in (1..).zip(&entry.self_times) {
                if let Some(mean_s) = mean_s {
                    let waits = entry.calls.iter().filter(|call| call.kind == ArcKind::Sync && call.phase == phase).map(|call| call.mean);
                    let time = SelfTime { n: entry.occurrences as f64, mean_s: *mean_s, waits: waits.sum() };
                    times.insert((node.clone(), phase), time);
                }
            }
        }
    }
    times
}

/// Differences of what was extracted from what the run shows, beyond what a clock that shows multiples of `resolution_s` can do:
/// each end of the execution and of each wait is off by less than one of them. Replies may be off by the `slack` of an entry, seconds.
pub fn differences(did: &SelfTimes, found: &SelfTimes, resolution_s: f64, slack: &dyn Fn(&Node) -> f64) -> Vec<String> {
    let mut differences = Vec::new();
    for ((node, phase), want) in did {
        let tolerance = resolution_s * (2.0 + 2.0 * want.waits) + 1e-9 * want.mean_s + slack(node);
        let Some(got) = found.get(&(node.clone(), *phase)) else {
            if *phase == 1 || want.mean_s > tolerance {
                differences.push(format!("{}/{:?} self time of phase {phase} is missing", node.entry, node.accepts));
            }
            continue;
        };
        if (got.mean_s - want.mean_s).abs() > tolerance {
            let [got, want] = [got.mean_s, want.mean_s].map(|s| s * 1e3);
            differences.push(format!("{}/{:?} self time of phase {phase}: {got} ms, not {want} ms", node.entry, node.accepts));
        }
    }
    let unexpected = found.keys().filter(|key| !did.contains_key(key));
    differences.extend(unexpected.map(|(node, phase)| format!("{}/{:?} has a self time of phase {phase}", node.entry, node.accepts)));
    differences
}

/// Task and entry that nanoseconds are asked of.
const CLOCK: &str = "nanoseconds";

/// The model in which each activity asks for the nanoseconds of its demand instead of all else.
fn asking_for_time(model: &Model) -> Model {
    let asks = |work: &mut Activity| {
        let mean = work.host_demand.literal().unwrap() * 1e9;
        work.calls = vec![Call { kind: CallKind::Sync, dest: CLOCK.into(), mean: mean.into() }];
        work.call_order = CallOrder::Stochastic;
    };
    let mut model = model.clone();
    for task in &mut model.tasks {
        task.activities.iter_mut().for_each(asks);
        task.entries.iter_mut().flat_map(|e| &mut e.phases).for_each(|phase| asks(&mut phase.activity));
        task.entries.iter_mut().for_each(|entry| entry.forwarding.clear());
    }
    model.processors.push(Processor::new(CLOCK));
    model.tasks.push(Task { entries: vec![Entry::new(CLOCK)], ..Task::new(CLOCK, CLOCK) });
    model
}

/// Demands of the entries whose self times they are, in nanoseconds.
pub fn demands(model: &Model) -> BTreeMap<(Node, u8), Moments> {
    let asking = asking_for_time(model);
    let mut demands = BTreeMap::new();
    for task in &model.tasks {
        let processor = model.processors.iter().find(|p| p.name == task.processor).unwrap();
        let forks = task.precedences.iter().any(|p| matches!(p.post, Some(Post::And(_))));
        if processor.scheduling != ProcessorScheduling::Inf || forks {
            continue;
        }
        let ways: &[Accepts] = if task.scheduling.is_reference() { &[Accepts::Nothing] } else { &[Accepts::Sync, Accepts::Async] };
        for entry in &task.entries {
            for accepts in ways {
                for ((_, phase, _), moments) in structure::counts(&asking, &entry.name, *accepts) {
                    demands.insert((Node { task: task.name.clone(), entry: entry.name.clone(), accepts: *accepts }, phase), moments);
                }
            }
        }
    }
    demands
}

/// Differences of what was extracted from the demands of the model, over its executions; `t` as in `structure`.
pub fn differences_from_demands(model: &Model, found: &SelfTimes, resolution_s: f64, t: f64, slack: &dyn Fn(&Node) -> f64) -> Vec<String> {
    let mut differences = Vec::new();
    for ((node, phase), want) in demands(model) {
        let Some(got) = found.get(&(node.clone(), phase)) else { continue };
        let tolerance = want.tolerance(got.n, t) + 1e9 * (resolution_s * (2.0 + 2.0 * got.waits) + slack(&node));
        if (got.mean_s * 1e9 - want.mean).abs() > tolerance {
            let [got, want, tolerance] = [got.mean_s * 1e3, want.mean * 1e-6, tolerance * 1e-6];
            differences
                .push(format!("{}/{:?} self time of phase {phase}: {got} ms, not {want} ± {tolerance} ms", node.entry, node.accepts));
        }
    }
    differences
}
