//! What still goes on for a customer when he comes back: second phases, and strands for which nobody waited, with all that works for them.
//!
//! The Linearizer takes the customer of an arrival away, and with him all that he began, also what goes on without him. Of that an arrival finds, in the mean
//! over his next request,
//!
//! ```text
//! G_ab += Σ_c ρ_a(c) κ_b(c) / N_c
//! κ_b(c) = Σ_e (share of b's flow that works for what e does after the reply) ρ_e(c) ψ_e(c)
//! ψ_e(c) = 1 / (1 + (C - B) B / (C L))
//! ```
//!
//! For what takes `L` after each reply, requests that are answered after `B` and begun `C - B` after the reply before, `L` and `B` and `C - B` exponential, `ψ` is how
//! many are there during a request over those at any time, `L / C`.
//!
//! | symbol | is |
//! |---|---|
//! | `C` | `N_c / (λ_e ρ_e(c))`: from one reply of entry `e` to a customer of `c` to the next |
//! | `B`, `L` | first phase of `e` with what it forwards to, and its later phases |
//!
//! For one customer nobody but himself makes those wait: of those waiting `1 - 1/N_c` as many count. The first round of the Linearizer takes nobody away.
//!
//! The first slice of a second phase at its processor is told more closely, by when who comes there was away ([`super::super::station`], `left_behind`).

use super::{Exclusion, Pairs};
use crate::{
    model::Scalar,
    solve::layered::{
        flow::Flow,
        linearizer::Populations,
        net::{Net, Work},
    },
};

impl<S: Scalar> Exclusion<S> {
    /// Adds `κ` of what waits for an entry: from its parents.
    pub(super) fn gone_on_by_parents(&mut self, pairs: &Pairs, n_classes: usize, entry: usize) {
        for &(parent, share) in &pairs.parents[entry] {
            for c in 0..n_classes {
                let add = self.shares[share as usize] * self.gone_on[parent * n_classes + c];
                self.gone_on[entry * n_classes + c] += add;
            }
        }
    }

    /// Adds `κ` of what a task does after its replies.
    pub(super) fn gone_on_by_itself(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>, populations: &Populations<'_, S>, task: usize) {
        if !pairs.goes_on[task] {
            return;
        }
        let (zero, n_classes) = (S::from(0.0), net.classes.len());
        let later = net.entries.len() + task;
        let rates = |entry: usize| flow.entry_rate[entry] * (flow.held(entry) - flow.phases[entry][0]);
        let plain = |entry: &&usize| matches!(net.entries[**entry].work, Work::Phases(_));
        let all = net.tasks[task].entries.iter().filter(plain).fold(zero, |sum, &entry| sum + rates(entry));
        for &entry in &net.tasks[task].entries {
            for c in 0..n_classes {
                let found = self.class_shares[entry * n_classes + c]
                    * self.met_again((net, pairs, flow), entry, c, populations.customers[c], n_classes);
                match net.entries[entry].work {
                    Work::Phases(_) if all > 0.0 => {
                        let inherited = self.gone_on[entry * n_classes + c];
                        self.gone_on[later * n_classes + c] += (found + inherited) * rates(entry) / all;
                    }
                    Work::Phases(_) => {}
                    Work::Graph(_) => {
                        for &kin in &pairs.strands_of[entry] {
                            let Some(node) = net.kins[kin].strand else { continue };
                            let after = if net.nodes[node].phase > 0 { Some(S::from(1.0)) } else { self.after_reply.get(&node).copied() };
                            let Some(after) = after else { continue };
                            self.gone_on[kin * n_classes + c] = self.gone_on[entry * n_classes + c] + found * after;
                        }
                    }
                }
            }
        }
    }

    /// `ψ` of an entry and a class of so many customers.
    fn met_again(
        &self,
        (net, pairs, flow): (&Net<S>, &Pairs, &Flow<S>),
        entry: usize,
        class: usize,
        customers: f64,
        n_classes: usize,
    ) -> S {
        let one = S::from(1.0);
        let replies = flow.entry_rate[entry] * self.class_shares[entry * n_classes + class];
        let late = flow.held(entry) - flow.phases[entry][0];
        let first = flow.phases[entry][0] + forwarded((net, pairs, flow), entry);
        if replies <= 0.0 || late <= 0.0 || customers <= 0.0 {
            return one;
        }
        let away = -(first * replies / customers) + 1.0;
        if away > 0.0 { (away * first / late + 1.0).recip() } else { one }
    }
}

/// How long those to whom a request to an entry is forwarded serve it until they reply, in the mean.
fn forwarded<S: Scalar>((net, pairs, flow): (&Net<S>, &Pairs, &Flow<S>), entry: usize) -> S {
    let received = flow.entry_rate[entry];
    let time = |&arc: &usize| {
        let target = net.arcs[arc].target.filter(|_| received > 0.0);
        target.map_or(S::from(0.0), |to| flow.arc_rate[arc] / received * (flow.phases[to][0] + forwarded((net, pairs, flow), to)))
    };
    pairs.forwarded[entry].iter().fold(S::from(0.0), |sum, arc| sum + time(arc))
}
