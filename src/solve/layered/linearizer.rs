//! The Linearizer over customers: what an arrival of class `c` sees is the network with one customer of `c` less.
//!
//! ```text
//! G_ab = Σ_c ρ_a(c) (1 - ρ_b(c)/N_c + F_bc) + 1 - Σ_c ρ_a(c)
//! F_bc = Q_b(N - 1_c) / Q_b(N) - (1 - ρ_b(c)/N_c)
//! ```
//!
//! separately for `Q` the requests waiting, in first-phase service and in second-phase service. The network is solved at `N`
//! with `F = 0` (Schweitzer), then at every `N - 1_c`, then again at `N`; `F` is assumed equal at `N` and `N - 1_c`.

use super::{
    compile::Net,
    exclusion::{Exclusion, kin_of},
};
use crate::model::Scalar;

/// `F` of the three kinds of presence at an arc, by arc and class.
#[derive(Clone, Debug)]
pub(super) struct Changes<S> {
    pub waiting: Vec<Vec<S>>,
    pub first: Vec<Vec<S>>,
    pub late: Vec<Vec<S>>,
}

/// Mean presence at the arcs of a solved network.
#[derive(Clone, Debug)]
pub(super) struct Presence<S> {
    pub waiting: Vec<S>,
    pub first: Vec<S>,
    pub late: Vec<S>,
}

/// The customers of a solution, and what an arrival sees of them.
#[derive(Clone, Debug)]
pub(super) struct Populations<'a, S> {
    pub customers: &'a [f64],
    pub changes: &'a Changes<S>,
    /// Largest number of busy threads of each task, at these customers.
    pub caps: &'a [f64],
}

/// The factors on what waits, is in first-phase and in second-phase service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<S> {
    pub waiting: S,
    pub first: S,
    pub late: S,
}

impl<S: Scalar> Changes<S> {
    pub fn none(n_arcs: usize, n_classes: usize) -> Self {
        let table = vec![vec![S::from(0.0); n_classes]; n_arcs];
        Self { waiting: table.clone(), first: table.clone(), late: table }
    }

    /// Sets the changes of class `c` from the network at full population and at one customer of `c` less.
    pub fn set(&mut self, net: &Net<S>, exclusion: &Exclusion<S>, c: usize, population: f64, full: &Presence<S>, less: &Presence<S>) {
        for a in 0..net.arcs.len() {
            let expected = S::from(1.0) - class_share(net, exclusion, a, c) / population;
            let change = |full: S, less: S, expected: S| if full > 0.0 { less / full - expected } else { S::from(0.0) };
            self.waiting[a][c] = change(full.waiting[a], less.waiting[a], expected);
            self.first[a][c] = change(full.first[a], less.first[a], expected);
            self.late[a][c] = change(full.late[a], less.late[a], S::from(1.0));
        }
    }
}

fn class_share<S: Scalar>(net: &Net<S>, exclusion: &Exclusion<S>, arc: usize, class: usize) -> S {
    net.arcs[arc].source.held().map_or(S::from(0.0), |node| exclusion.class_shares[kin_of(net, node)][class])
}

impl<S: Scalar> Populations<'_, S> {
    /// Threads of a task, or customers of a reference task.
    pub fn threads(&self, net: &Net<S>, task: usize) -> f64 {
        net.tasks[task].class.map_or(net.tasks[task].threads, |c| self.customers[c])
    }

    /// Largest number of busy threads of a task.
    pub fn cap(&self, _net: &Net<S>, task: usize) -> f64 {
        self.caps[task]
    }

    /// `G` of an arrival of arc `a` on the presence of arc `b`.
    pub fn seen(&self, net: &Net<S>, exclusion: &Exclusion<S>, a: usize, b: usize) -> Seen<S> {
        let one = S::from(1.0);
        let mut seen = Seen { waiting: one, first: one, late: one };
        let Some(node) = net.arcs[a].source.held() else { return seen };
        let shares = &exclusion.class_shares[kin_of(net, node)];
        for (c, &share) in shares.iter().enumerate() {
            if share <= 0.0 || self.customers[c] <= 0.0 {
                continue;
            }
            let own = class_share(net, exclusion, b, c) / self.customers[c];
            seen.waiting += share * (self.changes.waiting[b][c] - own);
            seen.first += share * (self.changes.first[b][c] - own);
            seen.late += share * self.changes.late[b][c];
        }
        let positive = |x: S| if x > 0.0 { x } else { S::from(0.0) };
        Seen { waiting: positive(seen.waiting), first: positive(seen.first), late: positive(seen.late) }
    }
}
