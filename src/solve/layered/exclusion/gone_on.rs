//! What still goes on for a customer when he comes back: second phases, strands for which nobody waited and requests that he sent without waiting, with all that works for
//! them.
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
//! What is sent and not waited for is taken to be there as at any time, `ψ = 1`: that it begins together with what follows is not known.
//!
//! The reverse is as likely: those that go on find of their own customer `ψ` times what is there of him at any time,
//!
//! ```text
//! G_ab -= Σ_c κ°_a(c) ρ_b(c) / N_c                     κ° = κ with 1 - ψ for ψ
//! ```
//!
//! For one customer nobody but himself makes those wait: of those waiting `1 - 1/N_c` as many count, and of him, waiting, `1/N_c` of `κ_a` as many less. The first round of the Linearizer takes nobody away.
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

/// What of a kin's work goes on for a class without its customers.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct GoneOn<S> {
    /// `κ`, which they meet when they come back, and which meets them.
    pub met: S,
    /// `κ` with `1 - ψ` for `ψ`.
    pub missed: S,
}

impl<S: Scalar> GoneOn<S> {
    pub fn none() -> Self {
        Self { met: S::from(0.0), missed: S::from(0.0) }
    }

    /// With a share of another's.
    fn plus(self, other: Self, share: S) -> Self {
        Self { met: self.met + other.met * share, missed: self.missed + other.missed * share }
    }
}

impl<S: Scalar> Exclusion<S> {
    /// Adds what works for an entry's requests from its parents.
    pub(super) fn gone_on_by_parents(&mut self, (net, pairs, flow): (&Net<S>, &Pairs, &Flow<S>), n_classes: usize, entry: usize) {
        if self.gone_on.is_empty() {
            return;
        }
        for &arc in &pairs.sent[entry] {
            if flow.entry_rate[entry] <= 0.0 {
                continue;
            }
            let share = flow.arc_rate[arc] / flow.entry_rate[entry];
            for c in 0..n_classes {
                let sum = self.gone_on[entry * n_classes + c].plus(self.gone_on_over(net, arc, c), share);
                self.gone_on[entry * n_classes + c] = sum;
            }
        }
        for &(parent, share) in &pairs.parents[entry] {
            for c in 0..n_classes {
                let sum = self.gone_on[entry * n_classes + c].plus(self.gone_on[parent * n_classes + c], self.shares[share as usize]);
                self.gone_on[entry * n_classes + c] = sum;
            }
        }
    }

    /// What goes on of the requests over an arc for a class, without its customers.
    pub fn gone_on_over(&self, net: &Net<S>, arc: usize, class: usize) -> GoneOn<S> {
        let source = net.arcs[arc].source;
        let Some(node) = source.node().filter(|_| !self.gone_on.is_empty()) else { return GoneOn::none() };
        let place = net.nodes[node].kin * net.classes.len() + class;
        match source.held() {
            Some(_) => self.gone_on[place],
            // Whoever sends and does not wait is met by what he sent.
            None => GoneOn { met: self.gone_on[place].met + self.class_shares[place], ..self.gone_on[place] },
        }
    }

    /// Adds what a task does after its replies.
    pub(super) fn gone_on_by_itself(&mut self, net: &Net<S>, pairs: &Pairs, flow: &Flow<S>, populations: &Populations<'_, S>, task: usize) {
        if !pairs.goes_on[task] {
            return;
        }
        let (zero, one, n_classes) = (S::from(0.0), S::from(1.0), net.classes.len());
        let later = net.entries.len() + task;
        let rates = |entry: usize| flow.entry_rate[entry] * (flow.held(entry) - flow.phases[entry][0]);
        let plain = |entry: &&usize| matches!(net.entries[**entry].work, Work::Phases(_));
        let all = net.tasks[task].entries.iter().filter(plain).fold(zero, |sum, &entry| sum + rates(entry));
        for &entry in &net.tasks[task].entries {
            for c in 0..n_classes {
                let begun = self.class_shares[entry * n_classes + c];
                let met = begun * self.met_again((net, pairs, flow), entry, c, populations.customers[c], n_classes);
                let (begun, inherited) = (GoneOn { met, missed: begun - met }, self.gone_on[entry * n_classes + c]);
                match net.entries[entry].work {
                    Work::Phases(_) if all > 0.0 => {
                        let sum = self.gone_on[later * n_classes + c].plus(begun.plus(inherited, one), rates(entry) / all);
                        self.gone_on[later * n_classes + c] = sum;
                    }
                    Work::Phases(_) => {}
                    Work::Graph(_) => {
                        for &kin in &pairs.strands_of[entry] {
                            let Some(node) = net.kins[kin].strand else { continue };
                            let after = if net.nodes[node].phase > 0 { Some(one) } else { self.after_reply.get(&node).copied() };
                            self.gone_on[kin * n_classes + c] = inherited.plus(begun, after.unwrap_or(zero));
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
