//! What a model says of its structure, what one recorded run did, and what was extracted from its trace, in one form: entries
//! by how they are accepted, and their calls by kind, phase and target.
//!
//! # How far an extracted mean may be from the model's
//!
//! A mean number of calls ŷ over n invocations of an entry is the mean of n independent counts X of mean y and variance v: a
//! model without circles draws how often an entry is invoked before and apart from what it then does. Counts are
//! sub-gamma: log E exp(s(X-y)) ≤ v s² / 2(1 - c s), with scale c one more than the mean of their geometric tail. Then
//! (Boucheron, Lugosi, Massart, *Concentration Inequalities*, theorem 2.3)
//!
//! P(|ŷ - y| > sqrt(2 v t / n) + c t / n) ≤ 2 exp(-t).
//!
//! With K comparisons in all and t = ln(2 K / α), the chance that any of them fails by chance is at most α (Bonferroni).
//!
//! | symbol | is |
//! |---|---|
//! | y, v | mean and variance of the count: y and y(1+y) of a stochastic call (geometric), y and 0 of an exact one; sums add, branches mix, a loop of mean n around X has n E X, n E X² + 2 n² (E X)² as its moments |
//! | c | 1 + tail: tail y of a call, largest of a sum, largest tail + largest mean of branches, (1 + n) tail of a loop |

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use layerfit::{
    model::{Activity, CallKind, CallOrder, Entry, Model, Post, Pre, Task},
    solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind},
    structure::{Accepts, ArcKind, CallReport, Extraction},
};

/// An entry, by task and operation and by how it is accepted; all reference tasks and arrivals together are [`Node::client`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub task: String,
    pub entry: String,
    pub accepts: Accepts,
}

impl Node {
    /// What a request of a run is accepted by; customers are all one.
    pub fn of(legend: &Legend, kind: RequestKind, entry: u32) -> Self {
        let accepts = match kind {
            RequestKind::Cycle => return Self::client(),
            RequestKind::Sync | RequestKind::Forward => Accepts::Sync,
            RequestKind::Async | RequestKind::Open => Accepts::Async,
        };
        Self { task: legend.task_of(entry).name.clone(), entry: legend.entry(entry).to_owned(), accepts }
    }

    pub fn client() -> Self {
        Self { task: "clients".into(), entry: "clients".into(), accepts: Accepts::Nothing }
    }
}

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Sync,
    Async,
    Forward,
}

/// A call of an entry: kind, phase (1 or 2), target.
pub type Arc = (Kind, u8, Node);

/// Moments of a count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
    /// Mean of the geometric tail.
    pub tail: f64,
}

impl Moments {
    fn second(self) -> f64 {
        self.variance + self.mean * self.mean
    }

    pub fn plus(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance, tail: self.tail.max(other.tail) }
    }

    /// How far the mean of `n` counts may be off with log-probability `-t`.
    pub fn tolerance(self, n: f64, t: f64) -> f64 {
        (2.0 * self.variance * t / n).sqrt() + if self.variance > 0.0 { (1.0 + self.tail) * t / n } else { 0.0 }
    }
}

pub type Counts = BTreeMap<Arc, Moments>;

/// An entry with its calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Invocations that the moments are of; 0 in a model.
    pub n: f64,
    pub arcs: Counts,
}

/// Entries with their calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    pub entries: BTreeMap<Node, Calls>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// An entry that should be there is not, or the other way round.
    Missing(Node),
    Unexpected(Node),
    /// A call that the model does not have.
    UnexpectedCall(Node, Arc, f64),
    /// A mean off by more than chance: expected, found, tolerance.
    Mean(Node, Arc, [f64; 3]),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(node) => write!(f, "{}/{:?} is missing", node.entry, node.accepts),
            Self::Unexpected(node) => write!(f, "{}/{:?} is not in the model", node.entry, node.accepts),
            Self::UnexpectedCall(node, (kind, phase, to), mean) => {
                write!(f, "{}/{:?} -{kind:?}/{phase}-> {} {mean} is not in the model", node.entry, node.accepts, to.entry)
            }
            Self::Mean(node, (kind, phase, to), [expected, found, tolerance]) => {
                write!(f, "{}/{:?} -{kind:?}/{phase}-> {}: {found}, not {expected} ± {tolerance}", node.entry, node.accepts, to.entry)
            }
        }
    }
}

/// Compares what was found, over its numbers of invocations, with what is expected; `t` as in the module's header.
pub fn compare(expected: &Structure, found: &Structure, t: f64) -> Vec<Difference> {
    let mut differences: Vec<Difference> =
        found.entries.keys().filter(|node| !expected.entries.contains_key(node)).cloned().map(Difference::Unexpected).collect();
    for (node, calls) in &expected.entries {
        let Some(have) = found.entries.get(node) else {
            // An entry that may be invoked need not have been in a run of its length: that it was, only the run can say.
            if calls.n > 0.0 {
                differences.push(Difference::Missing(node.clone()));
            }
            continue;
        };
        for (arc, got) in have.arcs.iter().filter(|(arc, _)| !calls.arcs.contains_key(arc)) {
            differences.push(Difference::UnexpectedCall(node.clone(), arc.clone(), got.mean));
        }
        for (arc, want) in &calls.arcs {
            let got = have.arcs.get(arc).copied().unwrap_or_default();
            let tolerance = want.tolerance(have.n, t) + 1e-9 * (1.0 + want.mean);
            if (got.mean - want.mean).abs() > tolerance {
                differences.push(Difference::Mean(node.clone(), arc.clone(), [want.mean, got.mean, tolerance]));
            }
        }
    }
    differences
}

impl Structure {
    /// The same with the calls of all phases together.
    pub fn without_phases(&self) -> Self {
        let mut all = self.clone();
        for calls in all.entries.values_mut() {
            for ((kind, _, to), moments) in std::mem::take(&mut calls.arcs) {
                let sum = calls.arcs.entry((kind, 0, to)).or_default();
                *sum = sum.plus(moments);
            }
        }
        all
    }

    /// Number of means that are compared.
    pub fn n_arcs(&self) -> usize {
        self.entries.values().map(|calls| calls.arcs.len()).sum()
    }

    /// Calls of the clients for each of `n` cycles, however many clients a technique sees in one.
    pub fn client_by(&mut self, n: f64) {
        if let Some(client) = self.entries.get_mut(&Node::client()) {
            client.arcs.values_mut().for_each(|m| m.mean *= client.n / n);
            client.n = n;
        }
    }
}

/// What was extracted: reference tasks together, weighted by how often each was seen to start. Tasks that are `customers` of the
/// model that was run are such, though a trace that records their cycles has a client above them. What a technique calls a task is
/// called as `names` has it, if it is there.
pub fn found(extraction: &Extraction, customers: &[&str], names: &HashMap<String, String>) -> Structure {
    let mut nodes: HashMap<&str, Node> = HashMap::new();
    let mut structure = Structure::default();
    for task in &extraction.tasks {
        let name = names.get(&task.name).unwrap_or(&task.name);
        for entry in &task.entries {
            let node = match entry.accepts {
                Accepts::Nothing => Node::client(),
                _ if customers.contains(&name.as_str()) => Node::client(),
                accepts => Node { task: name.clone(), entry: entry.operation.clone().unwrap_or_default(), accepts },
            };
            nodes.insert(&entry.name, node);
        }
    }
    for entry in extraction.tasks.iter().flat_map(|task| &task.entries) {
        // What makes customers begin their cycles makes no calls itself.
        let above = !customers.is_empty() && entry.accepts == Accepts::Nothing;
        let counts = |call: &&CallReport| !(above && nodes[call.to.as_str()] == Node::client());
        if above && entry.calls.iter().filter(counts).count() == 0 {
            continue;
        }
        let calls = structure.entries.entry(nodes[entry.name.as_str()].clone()).or_default();
        // The one client of several scenarios has its calls for each run of any of them.
        let is_of_runs = entry.accepts == Accepts::Nothing && extraction.scenarios.len() > 1;
        let n = if is_of_runs { extraction.scenarios.iter().map(|s| s.traces).sum() } else { entry.occurrences } as f64;
        calls.n += n;
        for call in entry.calls.iter().filter(counts) {
            let kind = match call.kind {
                ArcKind::Sync => Kind::Sync,
                ArcKind::Async => Kind::Async,
                ArcKind::Forward => Kind::Forward,
            };
            calls.arcs.entry((kind, call.phase, nodes[call.to.as_str()].clone())).or_default().mean += n * call.mean;
        }
    }
    for calls in structure.entries.values_mut() {
        calls.arcs.values_mut().for_each(|m| m.mean /= calls.n);
    }
    structure
}

/// What a recorded run did, counted from its events. Cycles that send nothing are left out if `messages_only`.
pub fn observed(legend: &Legend, events: &[RecordedEvent], messages_only: bool) -> Structure {
    let mut node_of: HashMap<u64, Node> = HashMap::new();
    let mut sums: BTreeMap<Node, (f64, BTreeMap<Arc, f64>)> = BTreeMap::new();
    let mut silent: HashMap<u64, bool> = HashMap::new();
    for event in events {
        let Event::Sent { kind, by, entry, .. } = event.event else { continue };
        let accepts = match kind {
            RequestKind::Cycle => Accepts::Nothing,
            RequestKind::Sync | RequestKind::Forward => Accepts::Sync,
            RequestKind::Async | RequestKind::Open => Accepts::Async,
        };
        let node = if accepts == Accepts::Nothing {
            silent.insert(event.request, true);
            Node::client()
        } else {
            Node { task: legend.task_of(entry).name.clone(), entry: legend.entry(entry).to_owned(), accepts }
        };
        let sender = by.map(|by| node_of[&by.request].clone());
        if kind == RequestKind::Open {
            let client = sums.entry(Node::client()).or_default();
            client.0 += 1.0;
            *client.1.entry((Kind::Async, 1, node.clone())).or_default() += 1.0;
        }
        if let (Some(by), Some(sender)) = (by, sender) {
            silent.remove(&by.request);
            let arc = match kind {
                RequestKind::Forward => (Kind::Forward, 1, node.clone()),
                RequestKind::Sync => (Kind::Sync, phase(by.phase, sender.accepts), node.clone()),
                _ => (Kind::Async, phase(by.phase, sender.accepts), node.clone()),
            };
            *sums.entry(sender).or_default().1.entry(arc).or_default() += 1.0;
        }
        sums.entry(node.clone()).or_default().0 += 1.0;
        node_of.insert(event.request, node);
    }
    if messages_only {
        sums.entry(Node::client()).or_default().0 -= silent.len() as f64;
    }
    let moments = |mean: f64| Moments { mean, ..Moments::default() };
    let calls = |(n, arcs): (f64, BTreeMap<Arc, f64>)| Calls { n, arcs: arcs.into_iter().map(|(a, sum)| (a, moments(sum / n))).collect() };
    Structure { entries: sums.into_iter().map(|(node, sum)| (node, calls(sum))).collect() }
}

/// The phase that can be told: what nobody waits for has one only, and later phases are alike.
fn phase(phase: u8, accepts: Accepts) -> u8 {
    if accepts == Accepts::Sync { phase.min(2) } else { 1 }
}

/// What the model says. `cycles` are the shares of the scenarios among all cycles, by the name of the reference task, or
/// `open:ENTRY`; those of a cycle that sends nothing are left out where `messages_only`.
pub fn expected(model: &Model, cycles: &BTreeMap<String, f64>, messages_only: bool) -> Structure {
    let mut structure = Structure::default();
    let mut client = Counts::new();
    let mut open: Vec<Node> = Vec::new();
    for (scenario, share) in cycles {
        let mut counts = Counts::new();
        if let Some(entry) = scenario.strip_prefix("open:") {
            let node = node_of(model, entry, Accepts::Async);
            open.push(node.clone());
            counts.insert((Kind::Async, 1, node), Moments { mean: 1.0, ..Moments::default() });
        } else {
            let task = model.task(scenario).unwrap();
            counts = of_entry(model, task, &task.entries[0], Accepts::Nothing);
            if messages_only {
                condition(&mut counts, &task.entries[0].phases[0].activity);
            }
        }
        for (arc, moments) in counts {
            let sum = client.entry(arc).or_default();
            // Strata of known sizes: the variance within them only.
            *sum = sum.plus(Moments { mean: share * moments.mean, variance: share * moments.variance, tail: moments.tail });
        }
    }
    let mut todo: Vec<Node> = client.keys().map(|arc| arc.2.clone()).chain(open).collect();
    structure.entries.insert(Node::client(), Calls { n: 0.0, arcs: client });
    while let Some(node) = todo.pop() {
        if structure.entries.contains_key(&node) {
            continue;
        }
        let (task, entry) = model.entry(&node.entry).unwrap();
        let arcs = of_entry(model, task, entry, node.accepts);
        todo.extend(arcs.keys().map(|arc| arc.2.clone()));
        structure.entries.insert(node, Calls { n: 0.0, arcs });
    }
    structure
}

fn node_of(model: &Model, entry: &str, accepts: Accepts) -> Node {
    Node { task: model.entry(entry).unwrap().0.name.clone(), entry: entry.to_owned(), accepts }
}

/// Counts of a customer's cycle given that it sends something at all: of geometric counts with the sum Y, with probability
/// Y / (1+Y).
fn condition(counts: &mut Counts, work: &Activity) {
    let total: f64 = work.calls.iter().map(|c| c.mean.literal().unwrap()).sum();
    let sends = if work.call_order == CallOrder::Deterministic { 1.0 } else { total / (1.0 + total) };
    for moments in counts.values_mut() {
        let (mean, second) = (moments.mean / sends, moments.second() / sends);
        *moments = Moments { mean, variance: (second - mean * mean).max(0.0), tail: moments.tail + mean };
    }
}

/// Counts of one invocation of the entry called `entry`.
pub fn counts(model: &Model, entry: &str, accepts: Accepts) -> BTreeMap<Arc, Moments> {
    let (task, entry) = model.entry(entry).unwrap();
    of_entry(model, task, entry, accepts)
}

/// Counts of one invocation of an entry.
fn of_entry(model: &Model, task: &Task, entry: &Entry, accepts: Accepts) -> Counts {
    let mut counts = Counts::new();
    for p in &entry.phases {
        add(&mut counts, of_activity(model, &p.activity, phase(p.phase, accepts)));
    }
    if let Some(start) = &entry.start_activity {
        let walk = Walk { model, task, entry, accepts };
        walk.sequence(start, 1, &mut counts);
    }
    if accepts == Accepts::Sync {
        for f in &entry.forwarding {
            let p = f.probability.literal().unwrap();
            let moments = Moments { mean: p, variance: p * (1.0 - p), tail: 0.0 };
            counts.insert((Kind::Forward, 1, node_of(model, &f.dest, Accepts::Sync)), moments);
        }
    }
    counts
}

fn of_activity(model: &Model, work: &Activity, phase: u8) -> Counts {
    let mut counts = Counts::new();
    for call in &work.calls {
        let mean = call.mean.literal().unwrap();
        let (kind, accepts) = match call.kind {
            CallKind::Sync => (Kind::Sync, Accepts::Sync),
            CallKind::Async => (Kind::Async, Accepts::Async),
        };
        let is_exact = work.call_order == CallOrder::Deterministic;
        let variance = if is_exact { 0.0 } else { mean * (1.0 + mean) };
        add(&mut counts, Counts::from([((kind, phase, node_of(model, &call.dest, accepts)), Moments { mean, variance, tail: mean })]));
    }
    counts
}

fn add(counts: &mut Counts, more: Counts) {
    for (arc, moments) in more {
        let sum = counts.entry(arc).or_default();
        *sum = sum.plus(moments);
    }
}

/// A walk through an activity graph whose forks are closed by joins of the same kind.
struct Walk<'m> {
    model: &'m Model,
    task: &'m Task,
    entry: &'m Entry,
    accepts: Accepts,
}

impl Walk<'_> {
    /// Counts from `activity` to the end, or to the join that it arrives at, which is returned.
    fn sequence(&self, activity: &str, mut phase_now: u8, counts: &mut Counts) -> Option<usize> {
        let mut at = activity.to_owned();
        loop {
            let work = self.task.activities.iter().find(|a| a.name == at).unwrap();
            add(counts, of_activity(self.model, work, phase(phase_now, self.accepts)));
            if self.task.replies.iter().any(|r| r.entry == self.entry.name && r.activity == at) {
                phase_now = 2;
            }
            let step = self.task.precedences.iter().position(|p| p.pre.activities().contains(&at))?;
            if !matches!(self.task.precedences[step].pre, Pre::Single(_)) {
                return Some(step);
            }
            at = self.follow(step, phase_now, counts)?;
        }
    }

    /// Counts of what follows a step up to the activity in which it comes together again.
    fn follow(&self, step: usize, phase_now: u8, counts: &mut Counts) -> Option<String> {
        let join = match self.task.precedences[step].post.as_ref()? {
            Post::Single(next) => return Some(next.clone()),
            Post::And(branches) => branches.iter().map(|b| self.sequence(b, phase_now, counts)).last()?,
            Post::Or(branches) => {
                let mut join = None;
                let mut parts = Vec::new();
                for branch in branches {
                    let mut part = Counts::new();
                    join = self.sequence(&branch.activity, phase_now, &mut part);
                    parts.push((branch.value.literal().unwrap(), part));
                }
                add(counts, mixture(&parts));
                join
            }
            Post::Loop { bodies, end } => {
                for body in bodies {
                    let mut inside = Counts::new();
                    self.sequence(&body.activity, phase_now, &mut inside);
                    add(counts, repeated(body.value.literal().unwrap(), inside));
                }
                return end.clone();
            }
        };
        match self.task.precedences[join?].post.as_ref()? {
            Post::Single(next) => Some(next.clone()),
            other => panic!("{other:?} after a join"),
        }
    }
}

fn mixture(parts: &[(f64, Counts)]) -> Counts {
    let mut mixed: BTreeMap<Arc, (f64, f64, f64, f64)> = BTreeMap::new();
    for (share, part) in parts {
        for (arc, m) in part {
            let sum = mixed.entry(arc.clone()).or_default();
            *sum = (sum.0 + share * m.mean, sum.1 + share * m.second(), sum.2.max(m.tail), sum.3.max(m.mean));
        }
    }
    let moments =
        |(mean, second, tail, largest): (f64, f64, f64, f64)| Moments { mean, variance: second - mean * mean, tail: tail + largest };
    mixed.into_iter().map(|(arc, sums)| (arc, moments(sums))).collect()
}

/// Counts of a geometric number, of mean `n`, of executions.
fn repeated(n: f64, inside: Counts) -> Counts {
    let moments = |m: Moments| {
        let (mean, second) = (n * m.mean, n * m.second() + 2.0 * n * n * m.mean * m.mean);
        Moments { mean, variance: second - mean * mean, tail: (1.0 + n) * m.tail.max(m.mean) }
    };
    inside.into_iter().map(|(arc, m)| (arc, moments(m))).collect()
}
