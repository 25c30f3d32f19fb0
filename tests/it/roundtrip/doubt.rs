//! How many calls a trace leaves in doubt: those that the clock shows at the very time of a reply, those that lost spans
//! were part of, second phases where too few requests tell the clocks, and the phases of calls so near a reply as what is told of the clocks
//! leaves open. What was extracted may be off by so many calls, and no more.

use std::collections::{BTreeMap, HashMap, HashSet};

use layerfit::{
    cli::record::{
        Dirt,
        spans::{call_span, execution_span},
    },
    solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind},
};

use super::{
    structure::{Arc, Difference, Kind, Node, Structure},
    times::{SelfTime, SelfTimes, self_times_of_executions},
};

/// Calls in doubt.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    /// By caller, kind and called entry.
    calls: BTreeMap<(Node, Kind, Node), f64>,
    /// Calls of which only the phase is in doubt.
    phases: BTreeMap<(Node, Kind, Node), f64>,
    /// Executions of entries, and cycles of customers.
    executions: BTreeMap<Node, f64>,
    /// Entries whose self times are in doubt.
    times: HashSet<Node>,
    /// Calls and executions that may be missing anywhere: the spans that are said to be left out.
    anywhere: f64,
}

/// A request of a run.
#[derive(Clone, Debug)]
struct Request {
    kind: RequestKind,
    node: Node,
    host: String,
    by: Option<u64>,
    sent: f64,
    replied: Option<f64>,
}

fn requests(legend: &Legend, events: &[RecordedEvent]) -> HashMap<u64, Request> {
    let mut requests: HashMap<u64, Request> = HashMap::new();
    for event in events {
        match event.event {
            Event::Sent { kind, by, entry, .. } => {
                let node = Node::of(legend, kind, entry);
                let by = by.map(|by| by.request);
                let host = legend.task_of(entry).processor.clone();
                requests.insert(event.request, Request { kind, node, host, by, sent: event.time, replied: None });
            }
            Event::Replied { .. } => requests.get_mut(&event.request).unwrap().replied = Some(event.time),
            _ => {}
        }
    }
    requests
}

impl Request {
    /// The call that it is of its sender.
    fn call(&self, requests: &HashMap<u64, Request>) -> Option<(Node, Kind, Node)> {
        let kind = match self.kind {
            RequestKind::Sync => Kind::Sync,
            RequestKind::Async => Kind::Async,
            RequestKind::Forward => Kind::Forward,
            _ => return None,
        };
        Some((requests[&self.by?].node.clone(), kind, self.node.clone()))
    }
}

impl Doubt {
    /// Calls sent within `resolution_s` of their sender's reply: the clock does not tell which was first.
    pub fn of_clock(legend: &Legend, events: &[RecordedEvent], resolution_s: f64) -> Self {
        let requests = requests(legend, events);
        let mut doubt = Self::default();
        for request in requests.values() {
            let replied = request.by.and_then(|by| requests[&by].replied);
            if replied.is_some_and(|replied| (replied - request.sent).abs() < resolution_s) {
                *doubt.calls.entry(request.call(&requests).unwrap()).or_default() += 1.0;
            }
        }
        doubt
    }

    /// Calls of which a half is lost or the execution that makes them, and executions of which a half is lost; besides, as many of
    /// anything as spans are said to be left out.
    pub fn of_losses(legend: &Legend, events: &[RecordedEvent], dirt: &Dirt, n_left_out: u64) -> Self {
        let requests = requests(legend, events);
        let mut doubt = Self { anywhere: n_left_out as f64, ..Self::default() };
        for (number, request) in &requests {
            let is_touched = touched(dirt, *number);
            if is_touched {
                *doubt.executions.entry(request.node.clone()).or_default() += 1.0;
            }
            let by_touched = request.by.is_some_and(|by| touched(dirt, by));
            if let Some(call) = request.call(&requests).filter(|_| is_touched || by_touched) {
                *doubt.calls.entry(call).or_default() += 1.0;
            }
        }
        doubt
    }

    /// Calls of the second phases that cannot be told from clocks that disagree: of the executions for requests between two hosts
    /// that no more than `n_few` requests join.
    pub fn of_few_requests(legend: &Legend, events: &[RecordedEvent], n_few: u64) -> Self {
        let requests = requests(legend, events);
        let hosts = |request: &Request| {
            let by = request.by.filter(|_| request.kind == RequestKind::Sync)?;
            let mut hosts = [requests[&by].host.clone(), request.host.clone()];
            hosts.sort();
            Some(hosts)
        };
        let mut n_of_hosts: HashMap<[String; 2], u64> = HashMap::new();
        requests.values().filter_map(hosts).for_each(|hosts| *n_of_hosts.entry(hosts).or_default() += 1);
        let is_one_of_few = |request: &Request| hosts(request).is_some_and(|hosts| n_of_hosts[&hosts] <= n_few);
        let mut doubt = Self::default();
        for request in requests.values() {
            if is_one_of_few(request) {
                doubt.times.insert(request.node.clone());
            }
            if request.by.is_some_and(|by| is_one_of_few(&requests[&by])) {
                *doubt.calls.entry(request.call(&requests).unwrap()).or_default() += 1.0;
            }
        }
        doubt
    }

    /// Phases of calls near the reply of an execution that a client on another host asked for: `shifts_s` tells, of client's and
    /// server's host, by how much the reply may seem to be earlier (at most 0) and later.
    pub fn of_clocks(legend: &Legend, events: &[RecordedEvent], shifts_s: &dyn Fn(&str, &str) -> [f64; 2]) -> Self {
        let requests = requests(legend, events);
        let mut doubt = Self::default();
        for request in requests.values() {
            let Some(by) = request.by.map(|by| &requests[&by]).filter(|by| by.kind == RequestKind::Sync) else { continue };
            let (Some(reply), Some(client)) = (by.replied, by.by.map(|client| &requests[&client])) else { continue };
            let [earlier, later] = shifts_s(&client.host, &by.host);
            let end = request.replied.filter(|_| request.kind == RequestKind::Sync).unwrap_or(request.sent);
            let is_open = if end <= reply { end >= reply + earlier } else { request.sent <= reply + later };
            if is_open {
                *doubt.phases.entry(request.call(&requests).unwrap()).or_default() += 1.0;
            }
        }
        doubt
    }

    /// The same but for what is in doubt of phases.
    pub fn but_phases(&self) -> Self {
        Self { phases: BTreeMap::new(), ..self.clone() }
    }

    fn n_calls(&self, node: &Node, arc: &Arc) -> f64 {
        let key = (node.clone(), arc.0, arc.2.clone());
        [&self.calls, &self.phases].iter().filter_map(|calls| calls.get(&key)).sum()
    }

    /// Whether self times of an entry are in doubt.
    pub fn leaves_open(&self, (node, _): &(Node, u8)) -> bool {
        self.times.contains(node)
    }

    /// Both doubts.
    pub fn and(mut self, other: Self) -> Self {
        other.calls.into_iter().for_each(|(call, n)| *self.calls.entry(call).or_default() += n);
        other.phases.into_iter().for_each(|(call, n)| *self.phases.entry(call).or_default() += n);
        other.executions.into_iter().for_each(|(node, n)| *self.executions.entry(node).or_default() += n);
        self.anywhere += other.anywhere;
        self.times.extend(other.times);
        self
    }

    /// The differences that doubt does not explain. A mean is a ratio of calls to executions, both of which may be in doubt.
    pub fn unexplained(&self, differences: Vec<Difference>, found: &Structure) -> Vec<Difference> {
        let is_explained = |difference: &Difference| match difference {
            Difference::Missing(node) => self.executions.get(node).copied().unwrap_or(0.0) + self.anywhere >= 1.0,
            Difference::Unexpected(_) => false,
            Difference::UnexpectedCall(node, arc, mean) => mean * found.entries[node].n <= self.n_calls(node, arc) + 1e-6,
            Difference::Mean(node, arc, [want, got, tolerance]) => {
                let calls = self.n_calls(node, arc) + self.anywhere;
                let executions = self.executions.get(node).copied().unwrap_or(0.0) + self.anywhere;
                let n = found.entries[node].n;
                // Of want n' calls in n' executions, n' within doubt of n.
                ((got - want).abs() - tolerance) * n <= calls + want * executions + 1e-6
            }
        };
        differences.into_iter().filter(|difference| !is_explained(difference)).collect()
    }

    /// Differences of numbers of executions that doubt does not explain.
    pub fn unexplained_numbers(&self, did: &Structure, found: &Structure) -> Vec<String> {
        let differs = |node: &Node| {
            let (did, found) = (did.entries[node].n, found.entries.get(node).map_or(0.0, |f| f.n));
            let allowed = self.executions.get(node).copied().unwrap_or(0.0) + self.anywhere;
            ((did - found).abs() > allowed + 0.5).then(|| format!("{} was executed {found} times, not {did} ± {allowed}", node.entry))
        };
        did.entries.keys().filter(|node| **node != Node::client()).filter_map(differs).collect()
    }
}

/// Whether the span of an execution, or that of the request for it, is lost.
fn touched(dirt: &Dirt, request: u64) -> bool {
    dirt.loses(execution_span(request).0) || dirt.loses(call_span(request).0)
}

/// Bounds of the mean self times where spans are lost: executions that a loss touches (or one of whose calls it touches) may
/// count or not, with any time up to all that they last, and `n_left_out` of the others may be missing.
pub fn self_time_bounds(legend: &Legend, events: &[RecordedEvent], dirt: &Dirt, n_left_out: u64) -> BTreeMap<(Node, u8), [f64; 2]> {
    let requests = requests(legend, events);
    let mut in_doubt: HashSet<u64> = HashSet::new();
    for (number, request) in &requests {
        if touched(dirt, *number) {
            in_doubt.insert(*number);
            in_doubt.extend(request.by);
        }
    }
    let mut sums: BTreeMap<(Node, u8), (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (number, node, phases, lasted) in self_times_of_executions(legend, events) {
        for (phase, time) in (1..).zip(phases) {
            let sum = sums.entry((node.clone(), phase)).or_default();
            if in_doubt.contains(&number) { sum.1.push(lasted) } else { sum.0.push(time) }
        }
    }
    let bounds = |(known, lasted): (Vec<f64>, Vec<f64>)| {
        let mut known = known;
        known.sort_by(f64::total_cmp);
        let left = known.len().saturating_sub(n_left_out as usize).max(1).min(known.len());
        let sum = |times: &[f64]| times.iter().sum::<f64>();
        let n_doubt = lasted.len() as f64;
        let (least, most) = (&known[..left], &known[known.len() - left..]);
        [sum(least) / (least.len() as f64 + n_doubt).max(1.0), (sum(most) + sum(&lasted)) / (most.len() as f64).max(1.0)]
    };
    sums.into_iter().map(|(key, sums)| (key, bounds(sums))).collect()
}

/// Self times beyond their bounds by more than the clock and `slack` leave open.
pub fn beyond(bounds: &BTreeMap<(Node, u8), [f64; 2]>, found: &SelfTimes, resolution_s: f64, slack: &dyn Fn(&Node) -> f64) -> Vec<String> {
    let text = |(node, phase): &(Node, u8), got: &SelfTime, [least, most]: [f64; 2]| {
        let slack = resolution_s * (2.0 + 2.0 * got.waits) + 1e-9 * most + slack(node);
        let is_within = least - slack <= got.mean_s && got.mean_s <= most + slack;
        (!is_within)
            .then(|| format!("{}/{:?} self time of phase {phase}: {} s, not {least} to {most} s", node.entry, node.accepts, got.mean_s))
    };
    found.iter().filter_map(|(key, got)| text(key, got, bounds.get(key).copied().unwrap_or_default())).collect()
}
