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
mod pairs;
mod sent_on;

use std::collections::HashMap;

use self::pairs::{Rule, to_u32};
pub(super) use self::{
    gone_on::GoneOn,
    pairs::{FREE, Pairs},
    sent_on::{Pace, with_one_less},
};
use super::{
    super::erlang::coexistence,
    flow::Flow,
    linearizer::Populations,
    net::{Kin, Net, Work},
};
use crate::model::Scalar;

/// How sharply a pool's fullness takes away what its callers say.
const FULLNESS_POWER: i32 = 3;

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
    /// What goes on for customers without them, by kin and class; empty where nothing goes on after a reply.
    pub gone_on: Vec<GoneOn<S>>,
    /// `L` of nodes that can run both before and after the reply.
    after_reply: HashMap<usize, S>,
    shares: Vec<S>,
    totals: Vec<S>,
    threads: Vec<S>,
    /// The same of requests that are waited for.
    threads_of_callers: Vec<S>,
    /// Share of the threads' time that is before the reply, by task.
    before_reply: Vec<S>,
    overlaps: Vec<S>,
    /// By strands, how much likelier one that a join leaves behind is there where the other begins than at any time; 1 for others.
    at_the_beginning: Vec<S>,
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
            gone_on: if pairs.go_on() { vec![GoneOn::none(); net.kins.len() * net.classes.len()] } else { Vec::new() },
            after_reply: HashMap::new(),
            shares: vec![zero; pairs.n_shares],
            totals: vec![zero; net.entries.len()],
            threads: vec![one; net.tasks.len()],
            threads_of_callers: vec![one; net.tasks.len()],
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
            self.threads[task] = thread_factor(net, pairs, flow, populations, task, pairs.unbounded[task]);
            self.threads_of_callers[task] = match pairs.unbounded[task] {
                true if !pairs.open[task]
                    && net.tasks[task].entries.iter().all(|&entry| matches!(net.entries[entry].work, Work::Phases(_))) =>
                {
                    thread_factor(net, pairs, flow, populations, task, false)
                }
                _ => self.threads[task],
            };
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
            Rule::SameTask(task, entry) => {
                both(self.threads_of_callers[task], self.before_reply[task] * net.tasks[task].threads, of_entry(entry))
            }
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
        self.gone_on.fill(GoneOn::none());
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
                self.gone_on_by_parents((net, pairs, flow), n_classes, entry);
                for &k in &pairs.strands_of[entry] {
                    let Kin { entry: Some(_), strand: Some(node), .. } = net.kins[k] else { continue };
                    let waited_for = self.after_reply.get(&node).map_or(S::from(1.0), |&after| -after + 1.0);
                    for c in 0..n_classes {
                        self.class_shares[k * n_classes + c] = self.class_shares[entry * n_classes + c] * waited_for;
                    }
                    if !self.gone_on.is_empty() {
                        self.gone_on.copy_within(entry * n_classes..(entry + 1) * n_classes, k * n_classes);
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
fn thread_factor<S: Scalar>(
    net: &Net<S>,
    pairs: &Pairs,
    flow: &Flow<S>,
    populations: &Populations<'_, S>,
    task: usize,
    unbounded: bool,
) -> S {
    let it = &net.tasks[task];
    if it.threads.is_infinite() || it.class.is_some() {
        return S::from(1.0);
    }
    if it.threads <= 1.0 {
        return S::from(0.0);
    }
    let strands = |&caller: &usize| it.station.map_or(0.0, |station| populations.strands_at(net, caller, station));
    let sources: f64 = pairs.callers[task].iter().map(strands).sum();
    if sources.min(it.at_once) <= it.threads && !unbounded {
        return S::from(1.0);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of threads, checked when compiled")]
    coexistence(it.threads as u32, flow.busy_threads(net, task))
}
