//! What was found, for people and for what an LQN cannot say.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    Finished,
    delays::{DelayReport, delays},
    demand::{self, DemandEstimate, ObservedAction},
    dependencies::DependencyReport,
    flow::{CallKind, FlowKey, FlowNode, Label, Naming, flow_tree},
    hints::hints,
    live::NONE,
    options::CallPathOptions,
    outside::OutsideReport,
    places::Places,
    summary::{PathCounts, RecordCounts, Summary},
};
use crate::trace::{
    diagnostics::{Diagnostic, Diagnostics},
    hashed,
};

/// Fewer executions than this are few.
const FEW_SAMPLES: u64 = 30;
/// Replicas are unbalanced if one has this much more to do than another.
const UNBALANCED_RATIO: u64 = 2;
/// Most classes of call paths that are reported.
const MOST_CLASSES: usize = 1000;

/// What was found in call paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallPathReport {
    /// Where the records went.
    pub records: RecordCounts,
    /// What became of the requests.
    pub paths: PathCounts,
    /// Requests from outside that wait for a reply, where there are any with times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideReport>,
    /// Component instances, by name.
    pub components: Vec<ComponentReport>,
    /// Connections between services, by caller and callee.
    pub connections: Vec<ConnectionReport>,
    /// Services, by component and method.
    pub services: Vec<ServiceReport>,
    /// Kinds of call paths, the most frequent first.
    pub classes: Vec<PathClass>,
    /// Parametric dependencies.
    pub dependencies: Vec<DependencyReport>,
    /// Demands.
    pub demands: Vec<DemandEstimate>,
    /// What connections add to response times, where what they take is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connection_delays: Vec<DelayReport>,
    /// What was odd, and what a reader of the model should know.
    pub diagnostics: Vec<Diagnostic>,
}

/// A component instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentReport {
    /// The process: `SERVER::COMPONENT`, or the component where no server is known.
    pub name: String,
    /// The component.
    pub component: String,
    /// The server, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Executions of its services.
    pub executions: u64,
    /// Methods that are called from outside of it.
    pub provides: Vec<String>,
    /// Services of others that it calls, `COMPONENT.METHOD`.
    pub requires: Vec<String>,
}

/// Calls from one service to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// The calling process; `None` for the world outside.
    pub from: Option<String>,
    /// Its service.
    pub from_method: Option<String>,
    /// The process called.
    pub to: String,
    /// Its service.
    pub to_method: String,
    /// Whether no reply is waited for.
    pub asynchronous: bool,
    /// Number of calls.
    pub calls: u64,
    /// Mean time between call and return that is not the callee's, nanoseconds, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_network_ns: Option<f64>,
}

/// Mean calls of one service by another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    /// The component called.
    pub component: String,
    /// The method called.
    pub method: String,
    /// Whether no reply is waited for.
    pub asynchronous: bool,
    /// Mean number for each execution.
    pub mean: f64,
}

/// A sequence of external calls and actions that was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequenceReport {
    /// Services called and actions, in order.
    pub steps: Vec<String>,
    /// How often.
    pub n: u64,
}

/// A service of a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// The component.
    pub component: String,
    /// The method.
    pub method: String,
    /// Executions of the method, also from inside of its component.
    pub frames: u64,
    /// Complete executions as a service.
    pub executions: u64,
    /// Incomplete ones.
    pub truncated: u64,
    /// Mean time from entry to exit, nanoseconds, where it is known.
    pub mean_duration_ns: Option<f64>,
    /// Mean time of it without calls of other components, nanoseconds.
    pub mean_self_ns: Option<f64>,
    /// Mean calls.
    pub calls: Vec<CallReport>,
    /// S_x: sequences of external calls, the most frequent first, while there are few.
    pub sequences: Vec<SequenceReport>,
    /// Performance-relevant control flow.
    pub flow: Vec<FlowNode>,
    /// Whether loops or branches of it were inferred.
    pub inferred: bool,
}

/// Call paths with the same frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathClass {
    /// How many.
    pub n: u64,
    /// Frames of each.
    pub frames: u64,
    /// Deepest nesting, from 0.
    pub depth: u32,
    /// Its frames in order of entry: `SERVER::COMPONENT.METHOD`, indented by their depth.
    pub steps: Vec<String>,
}

/// Puts together what is known at the end.
pub(super) fn finished(summary: &Summary, places: &Places, options: &CallPathOptions, mut diagnostics: Diagnostics) -> Finished {
    let services = services(summary, places, &mut diagnostics);
    let components = components(summary, places, &mut diagnostics);
    let actions = observed_actions(summary, places);
    let estimate = |(at, resource)| {
        let actions = demand::without_others(at, &options.resources, &actions);
        demand::estimate(resource, &actions, &mut diagnostics)
    };
    let demands: Vec<Vec<DemandEstimate>> = options.resources.iter().enumerate().map(estimate).collect();
    let dependencies: Vec<DependencyReport> = options
        .dependencies
        .iter()
        .zip(&summary.dependencies)
        .map(|(spec, sums)| DependencyReport::of(spec, sums, options.binning))
        .collect();
    for report in dependencies.iter().filter(|report| report.n < FEW_SAMPLES) {
        few_samples(&mut diagnostics, || format!("{} on {}", report.dependency.service, report.dependency.parameter), report.n);
    }
    if summary.n_unclassed > 0 {
        diagnostics.add("unclassed_paths", "call paths are too long or too many to be told apart", || summary.n_unclassed.to_string());
    }
    let hints = hints(summary, places, options, &demands, &mut diagnostics);
    let report = CallPathReport {
        records: summary.records,
        paths: summary.paths,
        outside: summary.outside.report(),
        components,
        connections: connections(summary, places),
        services,
        classes: classes(summary, places),
        dependencies,
        demands: demands.into_iter().flatten().collect(),
        connection_delays: options
            .connection_delay
            .as_ref()
            .map_or_else(Vec::new, |delay| delays(delay, options.load_per_s, summary, places)),
        diagnostics: diagnostics.clone().into_vec(),
    };
    Finished { report, hints, diagnostics, ..Finished::default() }
}

fn few_samples(diagnostics: &mut Diagnostics, what: impl FnOnce() -> String, n: u64) {
    diagnostics.add("few_samples", "statistics rest on fewer than 30 samples", || format!("{}: {n}", what()));
}

fn mean(sum: i128, n: u64) -> Option<f64> {
    (n > 0).then(|| sum as f64 / n as f64)
}

fn services(summary: &Summary, places: &Places, diagnostics: &mut Diagnostics) -> Vec<ServiceReport> {
    let seen = |location: &u32| {
        let sums = &summary.services[*location as usize];
        sums.frames + sums.n + sums.truncated > 0
    };
    let mut found: Vec<u32> = (0..summary.services.len() as u32).filter(seen).collect();
    found.sort_by_key(|location| places.service(*location));
    found.into_iter().map(|location| service(location, summary, places, diagnostics)).collect()
}

fn service(location: u32, summary: &Summary, places: &Places, diagnostics: &mut Diagnostics) -> ServiceReport {
    let sums = summary.services[location as usize];
    let (component, method) = places.service(location);
    let tree = flow_tree(&summary.flows, FlowKey::Service(location), places);
    let stats = summary.flows.get(&FlowKey::Service(location)).map(|(_, stats)| stats);
    let name = || format!("{component}.{method}");
    let n = stats.map_or(0, |stats| stats.n);
    if n > 0 && n < FEW_SAMPLES {
        few_samples(diagnostics, name, n);
    }
    if tree.inferred {
        diagnostics.add("inferred_flow", "loops and branches were inferred, as no actions are marked", name);
    }
    if tree.n_left_out > 0 {
        let message = "executions with too long or too many sequences of calls are not in the flows";
        diagnostics.add("flow_cut", message, || format!("{}: {}", name(), tree.n_left_out));
    }
    note_loops(&tree.nodes, &name, diagnostics);
    let mut calls: Vec<CallReport> = stats
        .into_iter()
        .flat_map(|stats| stats.calls.iter().map(|((called, kind), n_calls)| (*called, *kind, *n_calls as f64 / stats.n as f64)))
        .map(|(called, kind, mean)| {
            let (component, method) = places.service(called);
            CallReport { component: component.to_owned(), method: method.to_owned(), asynchronous: kind == CallKind::Async, mean }
        })
        .collect();
    calls.sort_by(|a, b| (&a.component, &a.method, a.asynchronous).cmp(&(&b.component, &b.method, b.asynchronous)));
    ServiceReport {
        component: component.to_owned(),
        method: method.to_owned(),
        frames: sums.frames,
        executions: sums.n,
        truncated: sums.truncated,
        mean_duration_ns: mean(sums.duration_ns, sums.measured),
        mean_self_ns: mean(sums.self_ns, sums.measured),
        calls,
        sequences: stats.map_or_else(Vec::new, |stats| sequences(&stats.sequences, summary, places)),
        flow: tree.nodes,
        inferred: tree.inferred,
    }
}

fn sequences(observed: &hashed::IndexMap<Box<[u32]>, u64>, summary: &Summary, places: &Places) -> Vec<SequenceReport> {
    let step = |label: &u32| match summary.flows.labels.get(*label) {
        Some(Label::Call { location, .. }) => {
            let (component, method) = places.service(*location);
            format!("{component}.{method}")
        }
        Some(Label::Sub { location, .. }) => places.service(*location).1.to_owned(),
        _ => String::new(),
    };
    let mut sequences: Vec<SequenceReport> =
        observed.iter().map(|(steps, n)| SequenceReport { steps: steps.iter().map(step).collect(), n: *n }).collect();
    sequences.sort_by(|a, b| b.n.cmp(&a.n).then_with(|| a.steps.cmp(&b.steps)));
    sequences
}

/// Loops whose counts vary: an LQN has their means only.
fn note_loops(nodes: &[FlowNode], service: &dyn Fn() -> String, diagnostics: &mut Diagnostics) {
    for node in nodes {
        match node {
            FlowNode::Loop { count, body, .. } => {
                if count.coefficient_of_variation > 0.0 {
                    let message = "loop counts vary, but a model has their means only";
                    diagnostics.add("pmf_collapsed", message, || {
                        format!("{}: mean {}, coefficient of variation {:.3}", service(), count.mean, count.coefficient_of_variation)
                    });
                }
                note_loops(body, service, diagnostics);
            }
            FlowNode::Branch { alternatives, .. } => {
                alternatives.iter().for_each(|alternative| note_loops(&alternative.body, service, diagnostics));
            }
            FlowNode::Internal { .. } | FlowNode::Call { .. } => {}
        }
    }
}

fn components(summary: &Summary, places: &Places, diagnostics: &mut Diagnostics) -> Vec<ComponentReport> {
    let mut reports: IndexMap<u32, ComponentReport> = IndexMap::new();
    for ((instance, location), n) in summary.by_instance() {
        let (component, _) = places.instances.get_index(instance as usize).copied().unwrap_or((0, NONE));
        let report = reports.entry(instance).or_insert_with(|| ComponentReport {
            name: places.process(instance),
            component: places.components.name(component).to_owned(),
            server: places.server(instance),
            executions: 0,
            provides: Vec::new(),
            requires: Vec::new(),
        });
        report.executions += n;
        report.provides.push(places.service(location).1.to_owned());
    }
    for ((from, _), (_, called), _) in summary.connections.keys() {
        let (component, method) = places.service(*called);
        reports.get_mut(from).into_iter().for_each(|report| report.requires.push(format!("{component}.{method}")));
    }
    let mut reports: Vec<ComponentReport> = reports.into_values().collect();
    for report in &mut reports {
        for names in [&mut report.provides, &mut report.requires] {
            names.sort();
            names.dedup();
        }
    }
    reports.sort_by(|a, b| a.name.cmp(&b.name));
    note_unbalanced(&reports, diagnostics);
    reports
}

fn note_unbalanced(reports: &[ComponentReport], diagnostics: &mut Diagnostics) {
    let mut replicas: IndexMap<&str, Vec<u64>> = IndexMap::new();
    for report in reports.iter().filter(|report| report.server.is_some()) {
        replicas.entry(&report.component).or_default().push(report.executions);
    }
    for (component, executions) in replicas.iter().filter(|(_, executions)| executions.len() > 1) {
        let (least, most) = (executions.iter().min().copied().unwrap_or(0), executions.iter().max().copied().unwrap_or(0));
        if most > UNBALANCED_RATIO * least {
            let message = "replicas of a component have unequal work: calls are not spread evenly over them";
            diagnostics.add("unbalanced_replicas", message, || format!("{component}: {least} to {most} executions"));
        }
    }
}

fn connections(summary: &Summary, places: &Places) -> Vec<ConnectionReport> {
    let report = |(((from, from_service), (to, service), waits), sums): (&super::summary::Connection, &super::summary::ConnectionSums)| {
        let inside = *from != NONE;
        ConnectionReport {
            from: inside.then(|| places.process(*from)),
            from_method: inside.then(|| places.service(*from_service).1.to_owned()),
            to: places.process(*to),
            to_method: places.service(*service).1.to_owned(),
            asynchronous: !waits,
            calls: sums.n,
            mean_network_ns: mean(sums.network_ns, sums.n_network),
        }
    };
    let mut reports: Vec<ConnectionReport> = summary.connections.iter().map(report).collect();
    reports.sort_by(|a, b| {
        (&a.from, &a.from_method, &a.to, &a.to_method, a.asynchronous).cmp(&(&b.from, &b.from_method, &b.to, &b.to_method, b.asynchronous))
    });
    reports
}

fn classes(summary: &Summary, places: &Places) -> Vec<PathClass> {
    let class = |(key, n): (&[u32], u64)| {
        let frames = key.chunks_exact(3).map(|frame| (frame[0], frame[1], frame[2]));
        let step = |(depth, location, server): (u32, u32, u32)| {
            let (component, method) = places.service(location);
            let at = places.texts.names.name(server);
            let separator = if at.is_empty() { "" } else { "::" };
            format!("{}{at}{separator}{component}.{method}", "  ".repeat(depth.min(64) as usize))
        };
        let depth = frames.clone().map(|(depth, ..)| depth).max().unwrap_or(0);
        PathClass { n, frames: (key.len() / 3) as u64, depth, steps: frames.map(step).collect() }
    };
    let mut classes: Vec<(&[u32], u64)> = summary.classes.iter().map(|(key, n)| (&**key, *n)).collect();
    classes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let mut classes: Vec<PathClass> = classes.into_iter().take(MOST_CLASSES).map(class).collect();
    classes.sort_by(|a, b| b.n.cmp(&a.n).then_with(|| a.steps.cmp(&b.steps)));
    classes
}

/// The actions of each process; those of a service have the throughput of its share of the executions.
fn observed_actions(summary: &Summary, places: &Places) -> Vec<ObservedAction> {
    let span_s = summary.span_s();
    let by_instance = summary.by_instance();
    let mut all = vec![0_u64; summary.services.len()];
    by_instance.iter().for_each(|((_, location), n)| all[*location as usize] += n);
    let action = |((instance, location), n): (&(u32, u32), &u64)| {
        let sums = summary.services.get(*location as usize)?;
        let self_ns = mean(sums.self_ns, sums.measured)?;
        let share = *n as f64 / all[*location as usize] as f64;
        let (component, method) = places.service(*location);
        Some(ObservedAction {
            name: format!("{component}.{method}"),
            component: component.to_owned(),
            process: places.process(*instance),
            server: places.server(*instance),
            self_time_s: self_ns / 1e9,
            throughput_per_s: if span_s > 0.0 { sums.weight * share / span_s } else { 0.0 },
        })
    };
    let mut actions: Vec<ObservedAction> = by_instance.iter().filter_map(action).collect();
    actions.sort_by(|a, b| (&a.name, &a.process).cmp(&(&b.name, &b.process)));
    actions
}
