//! Forests to recordings: what is handed over.
//!
//! A recording is made of each root (with those of its trace whose parents are missing); its scenario is the root's entry.
//! Above a root stands an originator: the synthetic client, or, where the root is a request being made, its service. Units
//! are lanes of a task: an occurrence takes the lane that has been free for longest, a new one where none is; without times, the
//! lane after those of its task that wait for it.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    SpanOptions,
    account::Account,
    catalog::Catalog,
    forest::{Call, Forest, Occ, Origin, Root},
    load::Load,
    observe,
    quality::EXAMPLES_KEPT,
    tree::{NOBODY, Tree},
};
use crate::{
    structure::{
        interactions::{Interaction, InteractionKind, Interactions, Occurrence, Recording},
        observations::{Completeness, Observations, UserKey},
        profile::CallForm,
    },
    trace::{Time, hashed::HashMap, span::SpanKind},
};

/// Occurrences from which on a batch is handed over.
const BATCH: usize = 8192;
/// Scenario of recordings whose root is missing.
pub const UNKNOWN_PARENT: &str = "unknown-parent";

/// Interactions of several recordings, until they are handed over.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    out: Interactions,
    units: HashMap<(u32, u32), u32>,
    operations: HashMap<u32, u32>,
    scenarios: HashMap<u32, u32>,
}

/// What a recording is added to.
#[derive(Debug)]
pub struct Sums<'s> {
    /// Names.
    pub catalog: &'s mut Catalog,
    /// Quality.
    pub account: &'s mut Account,
    /// Concurrency and workload.
    pub load: &'s mut Load,
    /// Options.
    pub options: &'s SpanOptions,
    /// What is observed beside.
    pub observations: &'s mut Observations,
}

/// Members of a recording: its occurrences in the order handed over, `None` for the synthetic client.
#[derive(Debug)]
pub struct Members {
    /// Their occurrences.
    pub occs: Vec<Option<u32>>,
    /// Which member requested each, and how.
    pub requested: Vec<(Option<usize>, CallForm)>,
    /// Whether all that leads to it is synchronous and of phase 1.
    pub on_path: Vec<bool>,
}

impl Members {
    fn with_room(n: usize) -> Self {
        Self { occs: Vec::with_capacity(n), requested: Vec::with_capacity(n), on_path: Vec::with_capacity(n) }
    }

    fn add(&mut self, occ: Option<u32>, requested: (Option<usize>, CallForm), on_path: bool) {
        self.occs.push(occ);
        self.requested.push(requested);
        self.on_path.push(on_path);
    }
}

impl Batch {
    /// What there is.
    pub fn take(&mut self) -> Interactions {
        std::mem::take(self).out
    }

    /// Hands over what there is if it is large enough, or `all` of it.
    pub fn hand_over(&mut self, all: bool, sink: &mut dyn FnMut(Interactions)) {
        if self.out.occurrences.len() >= BATCH || (all && !self.out.traces.is_empty()) {
            sink(std::mem::take(self).out);
        }
    }

    /// Adds the recordings of a group; `continued` if a part of it was handed over before.
    pub fn add(&mut self, tree: &Tree, forest: &Forest, continued: bool, sums: &mut Sums<'_>) {
        let mut recordings: Vec<Vec<Root>> = Vec::new();
        let mut of_trace: HashMap<u32, usize> = HashMap::default();
        for root in forest.roots.iter().filter(|root| !root.is_orphan && !forest.occs[root.occ as usize].is_gone) {
            of_trace.entry(root.trace).or_insert(recordings.len());
            recordings.push(vec![*root]);
        }
        for root in forest.roots.iter().filter(|root| root.is_orphan) {
            let n = recordings.len();
            let recording = *of_trace.entry(root.trace).or_insert(n);
            if recording == n {
                recordings.push(Vec::new());
            }
            recordings[recording].push(*root);
        }
        let users = if sums.observations.wants_requests() { observe::users_of_traces(tree) } else { Vec::new() };
        let mut n_of_trace: HashMap<u32, u32> = HashMap::default();
        let of_others = weights_of_gaps(tree);
        for roots in recordings {
            let trace = tree.traces[roots[0].trace as usize];
            let number = n_of_trace.entry(roots[0].trace).or_insert(0);
            *number += 1;
            let name = if *number == 1 { trace.to_string() } else { format!("{trace}.{number}") };
            let weight = weight_of(tree, roots[0], &of_others, sums);
            self.add_recording(tree, forest, &roots, (name, weight, continued), sums);
            if let Some(user) = users.get(roots[0].trace as usize).filter(|_| !roots[0].is_orphan && !continued) {
                observe::requests(tree, forest, roots[0], *user, weight, sums);
            }
        }
    }

    fn add_recording(
        &mut self,
        tree: &Tree,
        forest: &Forest,
        roots: &[Root],
        (name, weight, continued): (String, f64, bool),
        sums: &mut Sums<'_>,
    ) {
        let first = roots[0];
        let is_rooted = !first.is_orphan;
        count_trace(is_rooted, tree.has_gap[first.trace as usize], weight, continued, sums);
        let trace = self.out.traces.len() as u32;
        let scenario = self.scenario(forest, first, sums.catalog);
        self.out.traces.push(Recording { weight, continued, ..Recording::new(name, scenario) });
        let base = self.out.occurrences.len();
        let starts_itself = forest.occs[first.occ as usize].origin == Origin::Originator;
        let above = starts_itself.then_some(first.occ);
        let mut members = Members::with_room(forest.occs.len() + 1);
        members.add(above, (None, CallForm::Sync), true);
        for root in roots.iter().filter(|root| !(starts_itself && root.occ == first.occ)) {
            let is_async = tree.pieces[root.piece as usize].kind == SpanKind::Consumer;
            let occ = &forest.occs[root.occ as usize];
            let kind = if is_async { InteractionKind::Async } else { InteractionKind::Sync };
            let at = members.occs.len();
            let form = if is_async { CallForm::Async } else { CallForm::Sync };
            members.add(Some(root.occ), (None, form), !is_async && is_rooted && root.occ == first.occ);
            let times = if is_async { vec![occ.start_ns] } else { vec![occ.start_ns, occ.reply_ns] };
            self.interaction(kind, 1, (base, base + at), None, &times);
        }
        self.follow_calls(forest, base, &mut members);
        self.place(tree, forest, &members, trace, sums);
        if is_rooted {
            sums.account.explained.explain(forest, &members, first);
        }
        // A recording without its root is asked for by the same client.
        if !continued && !tree.is_timeless {
            let occ = &forest.occs[first.occ as usize];
            let process = if starts_itself { occ.task } else { sums.catalog.name(&sums.options.client) };
            let user = tree.pieces[first.piece as usize].user;
            // Many users may have one address.
            let user = if observe::user_key(user) == Some(UserKey::Address) { 0 } else { user };
            sums.load.root(process, user, occ.start_ns, occ.is_measured.then_some(occ.end_ns), weight);
        }
        if sums.observations.wants_executions() {
            let is_whole = is_rooted && !continued && !roots.iter().any(|root| root.is_orphan);
            let complete = if is_whole { Completeness::Whole } else { Completeness::Partial };
            observe::executions(forest, &members, weight, complete, sums);
        }
        let example = tree.traces[first.trace as usize];
        for occ in members.occs.iter().flatten() {
            sums.account.occurrence(forest, *occ as usize, example);
        }
    }

    fn scenario(&mut self, forest: &Forest, root: Root, catalog: &Catalog) -> u32 {
        let occ = &forest.occs[root.occ as usize];
        let key = if root.is_orphan { NOBODY } else { occ.entry };
        let starts_itself = occ.origin == Origin::Originator;
        if let Some(known) = self.scenarios.get(&key).filter(|_| !starts_itself) {
            return *known;
        }
        let scenario = if root.is_orphan {
            self.out.scenarios.intern(UNKNOWN_PARENT)
        } else {
            self.out.scenarios.intern(&format!("{}.{}", catalog.names.name(occ.task), entry_name(occ, catalog)))
        };
        if !starts_itself {
            self.scenarios.insert(key, scenario);
        }
        scenario
    }

    fn interaction(&mut self, kind: InteractionKind, phase: u8, ends: (usize, usize), call: Option<&Call>, times: &[i64]) {
        self.out.interactions.push(Interaction {
            kind,
            phase,
            from: ends.0,
            via: Vec::new(),
            to: ends.1,
            branch: call.and_then(|call| call.branch),
            times: times.iter().map(|ns| Time::from_ticks(*ns)).collect(),
        });
    }

    /// All that the members request, in order of requesters.
    fn follow_calls(&mut self, forest: &Forest, base: usize, members: &mut Members) {
        let mut at = 0;
        while at < members.occs.len() {
            let Some(occ) = members.occs[at] else {
                at += 1;
                continue;
            };
            for call in &forest.calls[forest.calls_of(occ as usize)] {
                let (target, to) = (&forest.occs[call.to as usize], members.occs.len());
                let form = if call.is_async { CallForm::Async } else { CallForm::Sync };
                members.add(Some(call.to), (Some(at), form), members.on_path[at] && !call.is_async && call.phase == 1);
                let ends = (base + at, base + to);
                if call.is_async {
                    self.interaction(InteractionKind::Async, call.phase, ends, Some(call), &[target.start_ns]);
                } else {
                    self.interaction(InteractionKind::Sync, call.phase, ends, Some(call), &[target.start_ns, call.end_ns]);
                }
            }
            at += 1;
        }
    }

    /// Gives members their units, and counts them.
    fn place(&mut self, tree: &Tree, forest: &Forest, members: &Members, trace: u32, sums: &mut Sums<'_>) {
        let client = sums.catalog.name(&sums.options.client);
        let task = |o: &Option<u32>| o.map_or(client, |o| forest.occs[o as usize].task);
        let start = |o: &Option<u32>| o.map_or(i64::MIN, |o| forest.occs[o as usize].start_ns);
        let mut order: Vec<usize> = (0..members.occs.len()).collect();
        order.sort_by_key(|m| (task(&members.occs[*m]), start(&members.occs[*m])));
        let nested = tree.is_timeless.then(|| nested_lanes(members, task));
        let mut placed = vec![(0, 0); members.occs.len()];
        // Lanes of the task at hand: when each is free, and its number of occurrences.
        let mut free: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
        let mut n_occurrences: Vec<u32> = Vec::new();
        let mut task_at_hand = None;
        for m in order {
            let of = &members.occs[m];
            if task_at_hand != Some(task(of)) {
                task_at_hand = Some(task(of));
                free.clear();
                n_occurrences.clear();
            }
            let end = of.map_or(i64::MAX, |o| forest.occs[o as usize].work_end_ns);
            let lane = match (&nested, free.peek()) {
                (Some(nested), _) => nested[m],
                (None, Some(Reverse((time, lane)))) if *time <= start(of) => *lane,
                _ => n_occurrences.len() as u32,
            };
            if lane as usize == n_occurrences.len() {
                n_occurrences.push(0);
            } else {
                free.pop();
            }
            free.push(Reverse((end, lane)));
            n_occurrences[lane as usize] += 1;
            placed[m] = (self.unit(task(of), lane, sums.catalog), n_occurrences[lane as usize]);
        }
        for (m, of) in members.occs.iter().enumerate() {
            let (unit, number) = placed[m];
            let occ = of.map(|o| &forest.occs[o as usize]);
            let operation = occ.filter(|occ| occ.entry != NOBODY).map(|occ| self.operation(occ.entry, sums.catalog));
            let self_time_ticks = occ.map_or([Some(0.0), None], |occ| occ.self_ns);
            if occ.is_some_and(|occ| occ.is_lost) {
                self.out.partial.push(self.out.occurrences.len());
            }
            self.out.occurrences.push(Occurrence { unit, number, trace, operation, originator: m == 0, self_time_ticks });
            if let Some(occ) = occ.filter(|occ| occ.entry != NOBODY) {
                if tree.is_timeless {
                    sums.load.instance(occ.instance);
                } else {
                    sums.load.occurrence(occ.instance, occ.entry, occ.start_ns, occ.work_end_ns);
                }
            }
        }
    }

    fn unit(&mut self, task: u32, lane: u32, catalog: &Catalog) -> u32 {
        *self.units.entry((task, lane)).or_insert_with(|| {
            let thread = if lane == 0 { String::new() } else { (lane + 1).to_string() };
            self.out.units.intern(catalog.names.name(task), &thread)
        })
    }

    fn operation(&mut self, entry: u32, catalog: &Catalog) -> u32 {
        *self.operations.entry(entry).or_insert_with(|| self.out.operations.intern(catalog.entry_names(entry).1))
    }
}

/// Lanes where nothing says when occurrences were, shape `(n_members,)`: of each the number of those of its task that wait for it.
fn nested_lanes(members: &Members, task: impl Fn(&Option<u32>) -> u32) -> Vec<u32> {
    let n = members.occs.len();
    let mut waited_for: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut stack: Vec<(usize, bool)> = Vec::new();
    for (m, (requester, form)) in members.requested.iter().enumerate() {
        match requester {
            Some(requester) if *form == CallForm::Sync => waited_for[*requester].push(m),
            _ => stack.push((m, false)),
        }
    }
    let mut lanes = vec![0; n];
    let mut open: HashMap<u32, u32> = HashMap::default();
    while let Some((m, is_left)) = stack.pop() {
        let n_open = open.entry(task(&members.occs[m])).or_default();
        if is_left {
            *n_open -= 1;
            continue;
        }
        lanes[m] = *n_open;
        *n_open += 1;
        stack.push((m, true));
        stack.extend(waited_for[m].iter().map(|called| (*called, false)));
    }
    lanes
}

/// The name of the entry that an occurrence is of.
pub fn entry_name<'c>(occ: &Occ, catalog: &'c Catalog) -> &'c str {
    if occ.entry == NOBODY { catalog.names.name(occ.name) } else { catalog.entry_names(occ.entry).1 }
}

/// Of traces that lack spans, the least that a span which says so stands for; else 0; shape `(n_traces,)`.
fn weights_of_gaps(tree: &Tree) -> Vec<f32> {
    let mut weights = vec![0.0; tree.traces.len()];
    if tree.has_gap.contains(&true) {
        for piece in tree.pieces.iter().filter(|piece| piece.weight > 0.0 && tree.has_gap[piece.trace as usize]) {
            let least = &mut weights[piece.trace as usize];
            *least = if *least > 0.0 { piece.weight.min(*least) } else { piece.weight };
        }
    }
    weights
}

/// What a recording stands for: what its root says; where spans are lost, the root may be one of them, and the others tell.
fn weight_of(tree: &Tree, root: Root, of_others: &[f32], sums: &mut Sums<'_>) -> f64 {
    let piece = &tree.pieces[root.piece as usize];
    let said = f64::from(if piece.weight > 0.0 { piece.weight } else { of_others[piece.trace as usize] });
    if said > 0.0 {
        sums.account.sampling.said += 1;
        said
    } else {
        if sums.account.unsaid.len() < EXAMPLES_KEPT {
            sums.account.unsaid.push(tree.traces[root.trace as usize].to_string());
        }
        sums.options.sampling_rate.map_or(1.0, |rate| 1.0 / rate)
    }
}

fn count_trace(is_rooted: bool, has_gap: bool, weight: f64, continued: bool, sums: &mut Sums<'_>) {
    let Account { traces, sampling, .. } = sums.account;
    traces.complete += u64::from(is_rooted && !has_gap && !continued);
    traces.incomplete += u64::from(has_gap && !continued);
    traces.without_root += u64::from(!is_rooted && !continued);
    traces.late += u64::from(continued);
    sampling.recordings += 1;
    sampling.stand_for += weight;
}
