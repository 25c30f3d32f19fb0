//! Path exclusion: which jobs can meet at all.
//!
//! A job that waits anywhere below a one-thread task holds that task's thread, so no job below another request to the
//! task can be met. `K_ij` is the factor on the load of `j` as an arrival of `i` sees it:
//!
//! ```text
//! i, j of one task t:     K_ij = f_t [1 - (1 - σ³) (1 - k)],  k = Σ_pq P_ip P_jq K_pq + 1 - ΣP_i ΣP_j,  σ = v_t m_t (1 - f_t) at most 1
//! otherwise, i the later: K_ij = Σ_p P_ip K_pj + 1 - ΣP_i
//! ```
//!
//! What a request's own thread does beside it, in other strands of a fork, is there whenever the request is: `O_ij` is the
//! factor on the load of `j` for that, by the same recursion without the ones, and for two strands of one fork
//!
//! ```text
//! O_vw = Ω_vw / (λ X_v X_w)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `P_ip` | share of `i`'s flow that a waiting thread of node `p` sends; phase 2, open and asynchronous work have none |
//! | `f_t` | `E[B(B-1)]/E[B]²` of the busy threads `B` of `t`: 0 for one thread, 1 for infinitely many, and for no more callers than threads |
//! | `σ` | how full of callers' requests a pool of `m_t` threads is: where all are busy their number says all, since they are of different callers; the power is fitted |
//! | `v_t` | share of the time of `t`'s threads that is before the reply |
//! | `ρ_i(c)` | share of `i`'s flow that customers of class `c` wait for; of a strand, of its time before the reply ([`super::graph`]) |
//! | `Ω`, `X` | overlap and durations of strands ([`super::graph`]); `λ` the rate of their entry |
//!
//! Nodes with the same parents have the same `K`, so it is kept by *kin* (`f` of a reference task is 1: the Linearizer counts
//! customers). Only pairs of kin that meet at some station, and those from which theirs follow, are kept: a list in an order
//! in which what a pair follows from comes before it. Of what is served more is known where pools are full ([`sent_on`]).

mod gone_on;
mod mixer;
mod sent_on;

use std::collections::{HashMap, HashSet};

use self::mixer::Mixing;
pub(super) use self::sent_on::{Pace, with_one_less};
use super::{
    super::erlang::coexistence,
    flow::Flow,
    linearizer::Populations,
    net::{Kin, Net, Work},
    turns::Strand,
};
use crate::model::Scalar;

/// How sharply a pool's fullness takes away what its callers say.
const FULLNESS_POWER: i32 = 3;

/// The pair whose factor is one and that have no strands in common.
pub(super) const FREE: u32 = 0;

/// What a pair's factor follows from; fixed by the structure.
#[derive(Clone, Debug)]
struct Pair {
    rule: Rule,
    /// Terms `share · factor` of the sum, in [`Pairs::terms`].
    from: u32,
    to: u32,
    /// Whether the two may be, or work for, two strands of one fork.
    of_strands: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Free,
    /// `f_t` alone.
    Threads(usize),
    /// The sum over parents of the entry.
    Parents(usize),
    /// The same, times `f_t`.
    SameTask(usize, usize),
    /// Nodes of one fork, in the list of overlaps: no other thread's, times `f_t`, and the own one's.
    Strands(usize, usize),
}

/// The pairs that are needed and how each follows from others.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    index: HashMap<(u32, u32), u32, Mixing>,
    pairs: Vec<Pair>,
    /// Index into the shares, and the pair.
    terms: Vec<(u32, u32)>,
    /// By entry: parents' kin and the range of shares.
    parents: Vec<Vec<(usize, u32)>>,
    /// The share that each arc adds to.
    share_of_arc: Vec<Option<u32>>,
    n_shares: usize,
    entry_of_share: Vec<usize>,
    /// By entry, arcs that add to its shares.
    n_sending: Vec<f64>,
    /// By entry, the kin of its strands.
    strands_of: Vec<Vec<usize>>,
    /// Position in the list of overlaps of two nodes.
    strands: HashMap<(usize, usize), usize>,
    /// By that position, whether a join leaves one of the two behind where the other begins.
    left: Vec<bool>,
    forked: Vec<usize>,
    /// By task, those whose threads wait for it, and whether requests come that none bounds.
    callers: Vec<Vec<usize>>,
    unbounded: Vec<bool>,
    /// By task, whether threads go on after the reply.
    goes_on: Vec<bool>,
    /// Pairs whose factor follows from one of two nodes of a pool.
    sent_on: Vec<u32>,
}

/// Factors between kin, and shares of classes in kin.
#[derive(Clone, Debug)]
pub(super) struct Exclusion<S> {
    /// `K`, by pair.
    pub factors: Vec<S>,
    /// `O`, by pair; empty where nothing forks.
    pub siblings: Vec<S>,
    /// The part of it that is of strands of which none begins at a join that has left the other behind; empty where no join leaves any.
    pub before_joins: Vec<S>,
    /// `ρ`, by kin and class.
    pub class_shares: Vec<S>,
    /// `κ`, by kin and class ([`gone_on`]).
    pub gone_on: Vec<S>,
    /// `L` of nodes that can run both before and after the reply.
    after_reply: HashMap<usize, S>,
    shares: Vec<S>,
    totals: Vec<S>,
    threads: Vec<S>,
    /// Share of the threads' time that is before the reply, by task.
    before_reply: Vec<S>,
    overlaps: Vec<S>,
    /// By strands, how much likelier one that a join leaves behind is there where the other begins than at any time; 1 for others.
    at_the_beginning: Vec<S>,
}

impl Pairs {
    /// The pairs of kin that meet at stations, and those from which theirs follow.
    pub fn new<S: Scalar>(net: &Net<S>) -> Self {
        let mut pairs = Self::parents_of(net);
        pairs.find_strands(net);
        let mut keys = pairs.closure(net);
        keys.sort_unstable_by_key(|&(a, b)| (place(net, a), place(net, b)));
        for key in keys {
            pairs.add(net, key);
        }
        pairs.find_sent_on(net);
        pairs
    }

    /// The pair of two kin.
    pub fn of<S>(&self, net: &Net<S>, a: usize, b: usize) -> u32 {
        self.index.get(&ordered(net, a, b)).copied().unwrap_or(FREE)
    }

    /// What the factor of a pair is summed over: positions of shares, and pairs.
    fn terms_of(&self, pair: u32) -> &[(u32, u32)] {
        let Pair { from, to, .. } = self.pairs[pair as usize];
        &self.terms[from as usize..to as usize]
    }

    /// Tasks whose strands wait for whatever the threads of a task do; none of one that begins some of it.
    pub fn begun_by<S>(&self, net: &Net<S>, task: usize) -> Option<&[usize]> {
        let it = &net.tasks[task];
        let begins = it.class.is_some() || it.width > 1.0 || self.unbounded[task];
        (!begins).then(|| self.callers[task].as_slice())
    }

    /// Whether any strands run side by side.
    pub fn forks(&self) -> bool {
        !self.forked.is_empty()
    }

    /// Whether the two of a pair may be, or work for, two strands of one fork.
    pub fn are_of_strands(&self, pair: u32) -> bool {
        self.pairs[pair as usize].of_strands
    }

    /// The place of two nodes among the strands, if a join leaves the one behind where the other begins.
    pub fn left_behind(&self, one: usize, other: usize) -> Option<usize> {
        self.strands.get(&(one, other)).copied().filter(|&strands| self.left[strands])
    }

    /// Whether a join leaves some strands behind.
    pub fn leave(&self) -> bool {
        self.left.contains(&true)
    }

    fn parents_of<S>(net: &Net<S>) -> Self {
        let mut parents: Vec<Vec<(usize, u32)>> = vec![Vec::new(); net.entries.len()];
        let mut share_of_arc = vec![None; net.arcs.len()];
        let mut entry_of_share = Vec::new();
        let mut n_sending = vec![0.0; net.entries.len()];
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); net.tasks.len()];
        let mut unbounded = vec![false; net.tasks.len()];
        for arc in &net.arcs {
            let Some(task) = arc.target.map(|e| net.entries[e].task) else { continue };
            match arc.source.held() {
                Some(node) => callers[task].push(net.nodes[node].task),
                None => unbounded[task] = true,
            }
        }
        // Threads that go on after the reply are busy beyond what their callers account for.
        let goes_on: Vec<bool> = net.tasks.iter().map(|task| task.entries.iter().any(|&e| net.goes_on_after_reply(e))).collect();
        unbounded.iter_mut().zip(&goes_on).for_each(|(unbounded, &goes_on)| *unbounded |= goes_on);
        callers.iter_mut().for_each(|list| {
            list.sort_unstable();
            list.dedup();
        });
        let mut strands_of = vec![Vec::new(); net.entries.len()];
        for (k, node) in net.kins.iter().enumerate().filter_map(|(k, kin)| Some((k, kin.strand?))) {
            strands_of[net.nodes[node].entry].push(k);
        }
        for (a, arc) in net.arcs.iter().enumerate() {
            let (Some(target), Some(node)) = (arc.target, arc.source.held()) else { continue };
            let kin = net.nodes[node].kin;
            let share = match parents[target].iter().find(|(k, _)| *k == kin) {
                Some(&(_, share)) => share,
                None => {
                    entry_of_share.push(target);
                    let share = to_u32(entry_of_share.len() - 1);
                    parents[target].push((kin, share));
                    share
                }
            };
            share_of_arc[a] = Some(share);
            n_sending[target] += 1.0;
        }
        Self {
            index: HashMap::default(),
            pairs: vec![Pair { rule: Rule::Free, from: 0, to: 0, of_strands: false }],
            terms: Vec::new(),
            parents,
            share_of_arc,
            n_shares: entry_of_share.len(),
            entry_of_share,
            n_sending,
            strands_of,
            strands: HashMap::new(),
            left: Vec::new(),
            forked: Vec::new(),
            callers,
            unbounded,
            goes_on,
            sent_on: Vec::new(),
        }
    }

    fn find_strands<S: Scalar>(&mut self, net: &Net<S>) {
        for (e, entry) in net.entries.iter().enumerate() {
            let Work::Graph(graph) = &entry.work else { continue };
            self.forked.push(e);
            for overlap in graph.overlaps(&|_| Strand::exponential(S::from(1.0))) {
                let next = self.strands.len();
                self.strands.insert(overlap.nodes, next);
                self.left.push(overlap.left.is_some());
            }
        }
    }

    fn strand<S>(&self, net: &Net<S>, a: usize, b: usize) -> Option<usize> {
        let (v, w) = (net.kins[a].strand?, net.kins[b].strand?);
        self.strands.get(&(v, w)).or_else(|| self.strands.get(&(w, v))).copied()
    }

    /// All keys that are needed.
    fn closure<S>(&self, net: &Net<S>) -> Vec<(usize, usize)> {
        let mut open = Vec::new();
        for station in &net.stations {
            let mut kins: Vec<usize> = station.arcs.iter().filter_map(|&a| net.kin_of_arc(a)).collect();
            // The first slice of a second phase meets what its first phase could have met.
            kins.extend(station.arcs.iter().filter_map(|&a| net.arcs[a].source.held().map(|n| net.nodes[n].entry)));
            kins.sort_unstable();
            kins.dedup();
            for (i, &a) in kins.iter().enumerate() {
                open.extend(kins[i..].iter().map(|&b| ordered(net, a, b)));
            }
        }
        let mut known: HashSet<(usize, usize), Mixing> = open.iter().map(|&(a, b)| (a as usize, b as usize)).collect();
        let mut open: Vec<(usize, usize)> = known.iter().copied().collect();
        while let Some((later, other)) = open.pop() {
            let Some(entry) = self.summed_entry(net, later, other) else { continue };
            for &(parent, _) in &self.parents[entry] {
                let (a, b) = ordered(net, parent, other);
                let key = (a as usize, b as usize);
                if known.insert(key) {
                    open.push(key);
                }
            }
        }
        known.into_iter().collect()
    }

    /// The entry over whose parents the factor of a pair is summed.
    fn summed_entry<S>(&self, net: &Net<S>, later: usize, other: usize) -> Option<usize> {
        let (i, j) = (&net.kins[later], &net.kins[other]);
        if i.task == j.task && (net.tasks[i.task].class.is_some() || i.entry.is_none() || j.entry.is_none()) {
            return None;
        }
        i.entry
    }

    fn add<S>(&mut self, net: &Net<S>, (later, other): (usize, usize)) {
        let (i, j) = (&net.kins[later], &net.kins[other]);
        let customers = net.tasks[i.task].class.is_some();
        let strand = self.strand(net, later, other);
        let from = to_u32(self.terms.len());
        let mut met = false;
        if let Some(entry) = self.summed_entry(net, later, other) {
            for &(parent, share) in &self.parents[entry] {
                let pair = self.of(net, parent, other);
                met |= pair != FREE;
                self.terms.push((share, pair));
            }
        }
        let finite = net.tasks[i.task].threads.is_finite() && !customers;
        let rule = if let (Some(strand), true) = (strand, i.task == j.task) {
            Rule::Strands(i.task, strand)
        } else if i.task == j.task {
            match self.summed_entry(net, later, other) {
                Some(entry) if finite || met => Rule::SameTask(i.task, entry),
                None if finite => Rule::Threads(i.task),
                _ => Rule::Free,
            }
        } else {
            match i.entry {
                Some(entry) if met => Rule::Parents(entry),
                _ => Rule::Free,
            }
        };
        if rule == Rule::Free {
            self.terms.truncate(from as usize);
            return;
        }
        let to = to_u32(self.terms.len());
        let follows = self.terms[from as usize..].iter().any(|&(_, pair)| self.are_of_strands(pair));
        let of_strands = follows || matches!(rule, Rule::Strands(..));
        self.index.insert((to_u32(later), to_u32(other)), to_u32(self.pairs.len()));
        self.pairs.push(Pair { rule, from, to, of_strands });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a model has fewer than 2³² arcs")]
fn to_u32(i: usize) -> u32 {
    i as u32
}

/// `K` of two requests at a pool, from `f` of its `threads`, how many of these wait at most for what their callers wait for, and `k` of their `callers`.
fn both<S: Scalar>(threads: S, n_threads: S, callers: S) -> S {
    if threads >= 1.0 {
        return callers;
    }
    let full = (-threads + 1.0) * n_threads;
    let full = if full < 1.0 { full } else { S::from(1.0) };
    threads * ((callers - 1.0) * (-full.powi(FULLNESS_POWER) + 1.0) + 1.0)
}

fn place<S>(net: &Net<S>, kin: usize) -> (usize, usize) {
    (net.tasks[net.kins[kin].task].position, kin)
}

/// The later one first.
fn ordered<S>(net: &Net<S>, a: usize, b: usize) -> (u32, u32) {
    if place(net, a) >= place(net, b) { (to_u32(a), to_u32(b)) } else { (to_u32(b), to_u32(a)) }
}

impl<S: Scalar> Exclusion<S> {
    /// By how much likelier one of two strands is there where the other begins than at any time of it.
    pub fn at_the_beginning(&self, strands: usize) -> S {
        self.at_the_beginning[strands]
    }

    /// `f_t`.
    pub fn of_threads(&self, task: usize) -> S {
        self.threads[task]
    }

    pub fn new(net: &Net<S>, pairs: &Pairs) -> Self {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        Self {
            factors: vec![one; pairs.pairs.len()],
            siblings: if pairs.forks() { vec![zero; pairs.pairs.len()] } else { Vec::new() },
            before_joins: if pairs.leave() { vec![zero; pairs.pairs.len()] } else { Vec::new() },
            class_shares: vec![zero; net.kins.len() * net.classes.len()],
            gone_on: vec![zero; net.kins.len() * net.classes.len()],
            after_reply: HashMap::new(),
            shares: vec![zero; pairs.n_shares],
            totals: vec![zero; net.entries.len()],
            threads: vec![one; net.tasks.len()],
            before_reply: vec![one; net.tasks.len()],
            overlaps: vec![zero; pairs.strands.len()],
            at_the_beginning: vec![one; pairs.strands.len()],
        }
    }

    /// Recomputes all for a flow.
    pub fn update(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>, populations: &Populations<'_, S>) {
        self.update_shares(pairs, flow);
        self.update_after_reply(net, pairs, flow);
        self.update_classes(net, pairs, flow, populations);
        for task in 0..net.tasks.len() {
            self.threads[task] = thread_factor(net, pairs, flow, populations, task);
            if pairs.goes_on[task] {
                self.before_reply[task] = before_reply(net, flow, task);
            }
        }
        if pairs.forks() {
            self.update_overlaps(net, pairs, flow);
        }
        for p in 1..to_u32(pairs.pairs.len()) {
            let terms = pairs.terms_of(p);
            let sum = terms.iter().fold(S::from(0.0), |sum, &(share, q)| sum + self.shares[share as usize] * self.factors[q as usize]);
            self.factors[p as usize] = self.factor(net, pairs, p, sum);
            if pairs.forks() {
                self.siblings[p as usize] = self.own_strands(pairs, p, &self.siblings, true);
            }
            if !self.before_joins.is_empty() {
                self.before_joins[p as usize] = self.own_strands(pairs, p, &self.before_joins, false);
            }
        }
    }

    /// `O` of a pair, from those in `found`, with the overlaps of those that a join has left behind or without.
    fn own_strands(&self, pairs: &Pairs, pair: u32, found: &[S], with_left: bool) -> S {
        let shares = pairs.terms_of(pair).iter().map(|&(share, q)| self.shares[share as usize] * found[q as usize]);
        let sum = || shares.fold(S::from(0.0), |sum, part| sum + part);
        match pairs.pairs[pair as usize].rule {
            Rule::Free | Rule::Threads(_) => S::from(0.0),
            Rule::Parents(_) => sum(),
            Rule::SameTask(task, _) => self.threads[task] * sum(),
            Rule::Strands(task, strand) => {
                let overlap = if with_left || !pairs.left[strand] { self.overlaps[strand] } else { S::from(0.0) };
                self.threads[task] * sum() + overlap
            }
        }
    }

    /// `K` of a pair, from the `sum` over its terms.
    fn factor(&self, net: &Net<S>, pairs: &Pairs, pair: u32, sum: S) -> S {
        let of_entry = |entry: usize| S::from(1.0) - self.totals[entry] + sum;
        match pairs.pairs[pair as usize].rule {
            Rule::Free => S::from(1.0),
            Rule::Threads(task) => self.threads[task],
            Rule::Parents(entry) => of_entry(entry),
            Rule::SameTask(task, entry) => both(self.threads[task], self.before_reply[task] * net.tasks[task].threads, of_entry(entry)),
            Rule::Strands(task, _) => match pairs.terms_of(pair) {
                [] => self.threads[task],
                [(share, _), ..] => self.threads[task] * of_entry(pairs.entry_of_share[*share as usize]),
            },
        }
    }

    fn update_shares(&mut self, pairs: &Pairs, flow: &Flow<S>) {
        let zero = S::from(0.0);
        self.shares.fill(zero);
        self.totals.fill(zero);
        for (a, share) in pairs.share_of_arc.iter().enumerate() {
            let Some(share) = *share else { continue };
            let entry = pairs.entry_of_share[share as usize];
            let rate = flow.entry_rate[entry];
            // Without flow, as it begins: from each that may send some.
            let part = if rate > 0.0 { flow.arc_rate[a] / rate } else { S::from(pairs.n_sending[entry].recip()) };
            self.shares[share as usize] += part;
            self.totals[entry] += part;
        }
    }

    fn update_classes(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>, populations: &Populations<'_, S>) {
        let n_classes = net.classes.len();
        self.gone_on.fill(S::from(0.0));
        self.class_shares.fill(S::from(0.0));
        for (k, kin) in net.kins.iter().enumerate() {
            if let Some(class) = net.tasks[kin.task].class {
                self.class_shares[k * n_classes + class] = S::from(1.0);
            }
        }
        for &task in &net.order {
            if net.tasks[task].class.is_some() {
                continue;
            }
            for &entry in &net.tasks[task].entries {
                for &(parent, share) in &pairs.parents[entry] {
                    for c in 0..n_classes {
                        let add = self.shares[share as usize] * self.class_shares[parent * n_classes + c];
                        self.class_shares[entry * n_classes + c] += add;
                    }
                }
                self.gone_on_by_parents(pairs, n_classes, entry);
                for &k in &pairs.strands_of[entry] {
                    let Kin { entry: Some(_), strand: Some(node), .. } = net.kins[k] else { continue };
                    let waited_for = self.after_reply.get(&node).map_or(S::from(1.0), |&after| -after + 1.0);
                    for c in 0..n_classes {
                        self.class_shares[k * n_classes + c] = self.class_shares[entry * n_classes + c] * waited_for;
                        self.gone_on[k * n_classes + c] = self.gone_on[entry * n_classes + c];
                    }
                }
            }
            self.gone_on_by_itself(net, pairs, flow, populations, task);
        }
    }

    fn update_after_reply(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>) {
        for &e in &pairs.forked {
            let Work::Graph(graph) = &net.entries[e].work else { continue };
            self.after_reply.extend(graph.shares_after_reply(&|node| flow.strands[node]));
        }
    }

    fn update_overlaps(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>) {
        for &e in &pairs.forked {
            let Work::Graph(graph) = &net.entries[e].work else { continue };
            let rate = flow.entry_rate[e];
            for overlap in graph.overlaps(&|node| flow.strands[node]) {
                if let Some(&strand) = pairs.strands.get(&overlap.nodes) {
                    self.overlaps[strand] = if rate > 0.0 { overlap.density / rate } else { S::from(0.0) };
                    self.at_the_beginning[strand] = overlap.left.unwrap_or(S::from(1.0));
                }
            }
        }
    }
}

/// Share of the time of a task's threads that is before the reply.
fn before_reply<S: Scalar>(net: &Net<S>, flow: &Flow<S>, task: usize) -> S {
    let (mut before, mut all) = (S::from(0.0), S::from(0.0));
    for &entry in &net.tasks[task].entries {
        before += flow.entry_rate[entry] * flow.phases[entry][0];
        all += flow.entry_rate[entry] * flow.held(entry);
    }
    if all > 0.0 { before / all } else { S::from(1.0) }
}

/// `f_t` of a task that is not a reference task.
fn thread_factor<S: Scalar>(net: &Net<S>, pairs: &Pairs, flow: &Flow<S>, populations: &Populations<'_, S>, task: usize) -> S {
    let it = &net.tasks[task];
    if it.threads.is_infinite() || it.class.is_some() {
        return S::from(1.0);
    }
    if it.threads <= 1.0 {
        return S::from(0.0);
    }
    let strands = |&caller: &usize| it.station.map_or(0.0, |station| populations.strands_at(net, caller, station));
    let sources: f64 = pairs.callers[task].iter().map(strands).sum();
    if sources.min(it.at_once) <= it.threads && !pairs.unbounded[task] {
        return S::from(1.0);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of threads, checked when compiled")]
    coexistence(it.threads as u32, flow.busy_threads(net, task))
}
