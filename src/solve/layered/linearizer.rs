//! The Linearizer over customers: what an arrival of class `c` sees is the network with one customer of `c` less.
//!
//! ```text
//! G_ab = Σ_c ρ_a(c) g_b(c) + 1                        g_b(c) = F_bc - ρ_b(c)/N_c
//! F_bc = Q_b(N - 1_c) / Q_b(N) - (1 - ρ_b(c)/N_c)
//! P_ab = Σ_c ρ_a(c) S_b(N - 1_c) / S_b(N)
//! ```
//!
//! separately for `Q` the requests waiting, in first-phase service and in second-phase service. The network is solved at `N`
//! with `P = 1` and `F = 0` (Schweitzer), or where more can be told at once `F = (1 - d_b) ρ_b(c)/N_c` ([`super::station`], `first_guess`),
//! then at every `N - 1_c`, with `R` ([`super::station`], `removal`) as it is at `N`, then again at `N`; `F` is assumed equal at `N` and
//! `N - 1_c`. Where services of unlike length meet, it is solved at `N` once more before, with what follows from these.
//!
//! `P` is of layers: a thread's service has waits inside it. While an arrival waits for those that it finds, it makes them wait
//! nowhere, so that they go on as in the network without it. For two customers that is exact; of servers whose services
//! hold no waits it is 1.

use super::{
    exclusion::Exclusion,
    net::Net,
    station::{Told, Unlike},
};
use crate::model::Scalar;

/// Waits below this fraction of the longest service, and those that wait below this fraction of those that are served, count as none.
pub(super) const NEGLIGIBLE_WAIT: f64 = 1e-7;

/// `F` of the three kinds of presence at an arc, by arc and class.
#[derive(Clone, Debug)]
pub(super) struct Changes<S> {
    n_classes: usize,
    /// Whether they are known.
    pub are_known: bool,
    pub waiting: Vec<S>,
    pub first: Vec<S>,
    pub late: Vec<S>,
    /// `S_b(N - 1_c) / S_b(N) - 1`, of services in all.
    pub pace: Vec<S>,
    /// By arc, how much longer its requests wait than equations of mean values say, since others have shorter or longer services; empty where all
    /// are as long ([`super::station`], `kinds`).
    pub unlike: Vec<S>,
    /// How long requests wait at stations before such from outside.
    pub told: Vec<Told<S>>,
}

/// Mean presence at the arcs of a solved network.
#[derive(Clone, Debug)]
pub(super) struct Presence<S> {
    pub waiting: Vec<S>,
    pub first: Vec<S>,
    pub late: Vec<S>,
    /// How long a request is served in all.
    pub held: Vec<S>,
}

/// The customers of a solution, and what an arrival sees of them.
#[derive(Clone, Debug)]
pub(super) struct Populations<'a, S> {
    pub customers: &'a [f64],
    pub changes: &'a Changes<S>,
    /// Largest number of busy threads of each task, at these customers.
    pub caps: &'a [f64],
}

/// The factors on what waits, is in first-phase and in second-phase service, and `P` on how long each is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<S> {
    pub waiting: S,
    pub first: S,
    pub late: S,
    pub pace: S,
}

/// `g`, by arc and class: what one customer of the class less changes in each presence.
#[derive(Clone, Debug)]
pub(super) struct Absence<S> {
    n_classes: usize,
    of: Vec<Seen<S>>,
}

impl<S: Scalar> Changes<S> {
    /// Without derivatives.
    pub fn values(&self) -> Changes<f64> {
        let values = |table: &[S]| table.iter().map(Scalar::value).collect();
        let [waiting, first, late, pace, unlike] =
            [&self.waiting, &self.first, &self.late, &self.pace, &self.unlike].map(|table| values(table));
        Changes {
            n_classes: self.n_classes,
            are_known: self.are_known,
            waiting,
            first,
            late,
            pace,
            unlike,
            told: self.told.iter().map(Told::value).collect(),
        }
    }

    pub fn none(n_arcs: usize, n_classes: usize) -> Self {
        let table = vec![S::from(0.0); n_arcs * n_classes];
        Self {
            n_classes,
            are_known: false,
            waiting: table.clone(),
            first: table.clone(),
            pace: table.clone(),
            late: table,
            unlike: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Takes `ψ` of arcs, and what else was found `of` a network.
    pub fn take(&mut self, of: &Unlike<S>, by_arc: Vec<S>) {
        self.unlike = by_arc;
        self.told.clone_from(&of.told);
    }

    /// Sets the changes of class `c` from the network at full population and at one customer of `c` less.
    pub fn set(&mut self, net: &Net<S>, class_shares: &[S], c: usize, population: f64, full: &Presence<S>, less: &Presence<S>) {
        self.are_known = true;
        for a in 0..net.arcs.len() {
            let i = a * self.n_classes + c;
            let expected = S::from(1.0) - class_share(net, class_shares, a, c) / population;
            let change = |full: S, less: S, expected: S| if full > 0.0 { less / full - expected } else { S::from(0.0) };
            // Waits that are none but for rounding change by nothing.
            let least = (full.first[a] + full.late[a]) * NEGLIGIBLE_WAIT;
            self.waiting[i] = if full.waiting[a] > least { change(full.waiting[a], less.waiting[a], expected) } else { S::from(0.0) };
            self.first[i] = change(full.first[a], less.first[a], expected);
            self.late[i] = change(full.late[a], less.late[a], S::from(1.0));
            self.pace[i] = change(full.held[a], less.held[a], S::from(1.0));
        }
    }
}

fn class_share<S: Scalar>(net: &Net<S>, class_shares: &[S], arc: usize, class: usize) -> S {
    net.kin_of_arc(arc).map_or(S::from(0.0), |kin| class_shares[kin * net.classes.len() + class])
}

impl<S: Scalar> Populations<'_, S> {
    /// Threads of a task, or customers of a reference task.
    pub fn threads(&self, net: &Net<S>, task: usize) -> f64 {
        net.tasks[task].class.map_or(net.tasks[task].threads, |c| self.customers[c])
    }

    /// Largest number of busy threads of a task, and of strands that these can have.
    pub fn strands(&self, net: &Net<S>, task: usize) -> f64 {
        self.caps[task] * net.tasks[task].width
    }

    /// The same, of strands at a station.
    pub fn strands_at(&self, net: &Net<S>, task: usize, station: usize) -> f64 {
        self.caps[task] * net.width_at(task, station)
    }
}

impl<S: Scalar> Seen<S> {
    /// All of it.
    pub fn all() -> Self {
        let one = S::from(1.0);
        Self { waiting: one, first: one, late: one, pace: one }
    }
}

impl<S: Scalar> Absence<S> {
    pub fn new(net: &Net<S>) -> Self {
        let none = Seen { waiting: S::from(0.0), first: S::from(0.0), late: S::from(0.0), pace: S::from(0.0) };
        Self { n_classes: net.classes.len(), of: vec![none; net.arcs.len() * net.classes.len()] }
    }

    /// `lost` is `d` of those waiting and in service, by station, where it is known.
    pub fn update(
        &mut self,
        net: &Net<S>,
        exclusion: &Exclusion<S>,
        populations: &Populations<'_, S>,
        lost: impl Fn(usize) -> Option<(S, S)>,
    ) {
        for a in 0..net.arcs.len() {
            let lost = lost(net.arcs[a].station);
            let not_left_behind = populations.changes.are_known.then(|| net.not_left_behind(a));
            for c in 0..self.n_classes {
                let i = a * self.n_classes + c;
                let customers = populations.customers[c];
                let zero = S::from(0.0);
                if customers <= 0.0 {
                    self.of[i] = Seen { waiting: zero, first: zero, late: zero, pace: zero };
                    continue;
                }
                let own = class_share(net, &exclusion.class_shares, a, c) / customers;
                let changes = populations.changes;
                let (waiting, first) = lost.map_or((own, own), |(waiting, first)| (own * waiting, own * first));
                // What the customer began goes on without him.
                let goes_on = not_left_behind.map_or(zero, |share| exclusion.gone_on_over(net, a, c).met * share / customers);
                self.of[i] = Seen {
                    waiting: changes.waiting[i] - waiting + goes_on * (1.0 - customers.recip()).max(0.0),
                    first: changes.first[i] - first + goes_on,
                    late: changes.late[i],
                    pace: changes.pace[i],
                };
            }
        }
    }

    /// `G` of an arrival with class `shares` on the presence of arc `b`.
    pub fn seen(&self, shares: &[S], b: usize) -> Seen<S> {
        let one = S::from(1.0);
        let mut seen = Seen { waiting: one, first: one, late: one, pace: one };
        for (&share, g) in shares.iter().zip(&self.of[b * self.n_classes..]).filter(|(share, _)| !is_none(**share)) {
            seen.waiting += share * g.waiting;
            seen.first += share * g.first;
            seen.late += share * g.late;
            seen.pace += share * g.pace;
        }
        let positive = |x: S| if x > 0.0 { x } else { S::from(0.0) };
        Seen { waiting: positive(seen.waiting), first: positive(seen.first), late: positive(seen.late), pace: positive(seen.pace) }
    }
}

/// Whether a number is 0 whatever the parameters.
pub(super) fn is_none<S: Scalar>(x: S) -> bool {
    x.value() == 0.0 && x.derivatives().iter().all(|slope| *slope == 0.0)
}
