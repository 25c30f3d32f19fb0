//! Path exclusion: which jobs can meet at all.
//!
//! A job that waits anywhere below a one-thread task holds that task's thread, so no job below another request to the
//! task can be met. `K_ij` is the factor on the load of `j` as an arrival of `i` sees it:
//!
//! ```text
//! i, j of one task t:     K_ij = f_t (Σ_pq P_ip P_jq K_pq + 1 - ΣP_i ΣP_j)
//! otherwise, i the later: K_ij = Σ_p P_ip K_pj + 1 - ΣP_i
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `P_ip` | share of `i`'s flow that a waiting thread of node `p` sends; phase 2, open and asynchronous work have none |
//! | `f_t` | `E[B(B-1)]/E[B]²` of the busy threads `B` of `t`: 0 for one thread, 1 for infinitely many |
//! | `ρ_i(c)` | share of `i`'s flow that customers of class `c` wait for |
//!
//! Nodes with the same parents have the same `K`, so it is kept by *kin*: one for the first phase of every entry, one for
//! all later phases of a task, one for all nodes of a reference task (whose `f` is 1: the Linearizer counts customers).

use super::{super::erlang::coexistence, compile::Net, flow::Flow};
use crate::model::Scalar;

/// Factors between kin, and shares of classes in kin.
#[derive(Clone, Debug)]
pub(super) struct Exclusion<S> {
    n_kin: usize,
    factors: Vec<S>,
    /// `ρ`, by kin and class.
    pub class_shares: Vec<Vec<S>>,
}

/// The kin of a node.
pub(super) fn kin_of<S>(net: &Net<S>, node: usize) -> usize {
    let node = &net.nodes[node];
    if node.phase == 0 && net.tasks[node.task].class.is_none() { node.entry } else { net.entries.len() + node.task }
}

impl<S: Scalar> Exclusion<S> {
    /// `K` between two kin.
    pub fn factor(&self, a: usize, b: usize) -> S {
        self.factors[a * self.n_kin + b]
    }

    fn set(&mut self, a: usize, b: usize, value: S) {
        self.factors[a * self.n_kin + b] = value;
        self.factors[b * self.n_kin + a] = value;
    }
}

/// Computes exclusion for a flow.
pub(super) fn exclusion<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Exclusion<S> {
    let n_kin = net.entries.len() + net.tasks.len();
    let (zero, one) = (S::from(0.0), S::from(1.0));
    let mut result = Exclusion { n_kin, factors: vec![one; n_kin * n_kin], class_shares: vec![vec![zero; net.classes.len()]; n_kin] };
    let parents = parents(net, flow);
    let mut done: Vec<usize> = Vec::with_capacity(n_kin);
    for &task in &net.order {
        let late = net.entries.len() + task;
        let coexist = thread_factor(net, flow, task);
        if let Some(class) = net.tasks[task].class {
            result.class_shares[late][class] = one;
            done.push(late);
            continue;
        }
        result.set(late, late, coexist);
        for (position, &entry) in net.tasks[task].entries.iter().enumerate() {
            let (list, total) = &parents[entry];
            for &(parent, share) in list {
                for c in 0..net.classes.len() {
                    let add = share * result.class_shares[parent][c];
                    result.class_shares[entry][c] += add;
                }
            }
            for &other in &done {
                let value = list.iter().fold(one - *total, |sum, &(p, share)| sum + share * result.factor(p, other));
                result.set(entry, other, value);
            }
            result.set(entry, late, coexist);
            for &sibling in &net.tasks[task].entries[..=position] {
                let (list, total) = &parents[sibling];
                let value = list.iter().fold(one - *total, |sum, &(p, share)| sum + share * result.factor(entry, p));
                result.set(entry, sibling, coexist * value);
            }
        }
        done.extend(&net.tasks[task].entries);
        done.push(late);
    }
    result
}

type Parents<S> = Vec<(Vec<(usize, S)>, S)>;

/// By entry: parents' kin with shares, and the sum of the shares.
fn parents<S: Scalar>(net: &Net<S>, flow: &Flow<S>) -> Parents<S> {
    let mut parents: Parents<S> = vec![(Vec::new(), S::from(0.0)); net.entries.len()];
    for (a, arc) in net.arcs.iter().enumerate() {
        let (Some(target), Some(node)) = (arc.target, arc.source.held()) else { continue };
        if flow.entry_rate[target] > 0.0 {
            let share = flow.arc_rate[a] / flow.entry_rate[target];
            let kin = kin_of(net, node);
            let (list, total) = &mut parents[target];
            match list.iter_mut().find(|(k, _)| *k == kin) {
                Some((_, s)) => *s += share,
                None => list.push((kin, share)),
            }
            *total += share;
        }
    }
    parents
}

/// `f_t` of a task that is not a reference task.
fn thread_factor<S: Scalar>(net: &Net<S>, flow: &Flow<S>, task: usize) -> S {
    let it = &net.tasks[task];
    if it.threads.is_infinite() || it.class.is_some() {
        return S::from(1.0);
    }
    if it.threads <= 1.0 {
        return S::from(0.0);
    }
    let mut load = S::from(0.0);
    for &entry in &it.entries {
        for node in net.entries[entry].phases.into_iter().flatten() {
            load += flow.entry_rate[entry] * flow.elapsed[node];
        }
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of threads, checked when compiled")]
    coexistence(it.threads as u32, load)
}
