//! Waits at one station (step 4 of the sweep).
//!
//! One FCFS server; `a` the arrival, `b` an arc whose requests it may meet:
//!
//! ```text
//! W_a = Σ_b R_ib (E_ab + O_ab) q_b h_b + Σ_b [E_ab u_b1 ρ_ab + O_ab u_b1 r_b + E_ab u_b2 r_b2]        E_ab = K_ab G_ab B_ib
//! with h_b and ρ_ab times P_ab F_ab
//! q_b = ℓ_b W_b,  u_b = ℓ_b s_b,  h_b = s_b1 + s_b2,  r_b = s_b1 (1 + c_b²)/2 + s_b2,  r_b2 = s_b2 (1 + c_b2²)/2
//! ```
//!
//! Several servers: `W_a = [Σ_b E R q h + Π(û) r̄]/m` with `û`, `r̄` the load and mean rest seen in service and `Π` the
//! probability that all servers are busy ([`busy`], [`servers`]); times `S(m)/s` where the servers are threads that hold each other
//! up ([`crowd`]). Processor sharing: `W_a = s_a Σ_b E (u_b + R q_b)`. Unlimited servers: none.
//! What requests find of what goes on for them without them: [`messages`]. Priorities, groups with shares: [`discipline`]; what threads find of requests from outside: [`outside`].
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `K`, `O` | [`super::exclusion`] | path exclusion, own strands; of those in service with what full pools send on |
//! | `F` | [`returns`] | threads that have just replied, at their processor |
//! | `G`, `P` | [`super::linearizer`], [`spared`] | population correction; services while the arrival waits, and so is not where they wait |
//! | `R` | [`removal`] | those waiting, without whom the arrival's own thread made wait |
//! | `B` | [`removal`] | `1/(1 - φ)`: how much faster the other pool circulates without that thread |
//! | `ρ` | [`super::residual`] | rest of a service after a gap, relative to the mean exponential service |
//! | `u_b2` | `late_load` | load in second phases: the own thread's share is replaced by the chance of overtaking it |
//!
//! No station serves more than it has servers for, which an approximation of the waits does not ensure by itself: where the
//! load would exceed the servers, its arcs wait longer ([`excess`]), by the least delay for which `Σ ℓ h ≤ m`. They wait
//! in the queue that others see: were that left out, others would wait for less, and the load could grow with the delay.

mod after_reply;
mod bounded;
mod busy;
mod comes_again;
mod crowd;
mod customers;
mod discipline;
mod excess;
mod first_guess;
mod follows;
mod given;
mod interlock;
mod kinds;
mod layout;
mod left_behind;
mod makes_way;
mod messages;
mod origins;
mod outside;
mod overtaking;
mod parts;
mod pool;
mod previous;
mod removal;
mod replied;
mod rests;
mod returns;
mod scarce;
mod scratch;
mod second_phase;
mod servers;
mod siblings;
mod since;
mod spared;
mod taken_up;
mod unlike;
mod visit;

use std::borrow::Cow;

pub(super) use self::{
    after_reply::{ToldAfterReply, find_after_reply},
    comes_again::Overtakes,
    crowd::Crowds,
    first_guess::find_lost,
    given::{Capacity, Manner, Sweep},
    interlock::set_interlocks,
    kinds::{Classes, Corrections, Told, Unlike},
    layout::{Callers, Contention, Layout},
    messages::{Behind, Lines},
    parts::Parts,
    pool::{Left, Pools},
    scratch::Scratch,
    spared::{Spared, Sparing},
};
use self::{
    excess::held_up,
    interlock::Interlock,
    layout::{Places, Row},
    scarce::weigh_rests,
    visit::{Visit, set_gaps, visit},
};
use super::{
    exclusion::GoneOn,
    linearizer::{Seen, is_none},
    net::Discipline,
};
use crate::model::Scalar;

/// The chance that, of a reply's receiver and the replier's second phase on one processor, the one goes first.
const COIN: f64 = 0.5;

/// Solves one station for the arrivals that the last sweep's unknowns imply, into `next`.
pub(super) fn station_waits<S: Scalar>(
    sweep: &Sweep<'_, S>,
    station: usize,
    layout: &Layout,
    place: usize,
    scratch: &mut Scratch<S>,
    next: &mut [S],
) {
    let it = &sweep.net.stations[station];
    let places = layout.places();
    let sources = layout.sources(sweep);
    let mut visits = std::mem::take(&mut scratch.visits);
    visits.clear();
    visits.extend(layout.arcs.iter().map(|&a| visit(sweep, a, sweep.unknowns[a])));
    let held_up = if sweep.manner.capacity == Capacity::Free { Vec::new() } else { held_up(sweep, layout, it.servers, it.discipline) };
    let late = visits.iter().any(|v| v.late > 0.0);
    if it.servers.is_infinite() || sources <= it.servers && !late {
        if let Some(kept) = scratch.caused_at.get_mut(station) {
            kept.clear();
        }
        scratch.parts_at[station].clear();
        layout.arcs.iter().for_each(|&a| next[a] = S::from(0.0));
        next[places.probability..places.end].copy_from_slice(&sweep.unknowns[places.probability..places.end]);
        next[places.excess] = S::from(0.0);
        scratch.visits = visits;
        return;
    }
    let in_order = it.servers == 1.0 && it.discipline == Discipline::Fcfs;
    if station >= sweep.net.n_processors && sources.is_finite() && !in_order {
        weigh_rests(sources, layout.tells_variation, &mut visits);
    }
    set_gaps(sweep, layout, &mut visits, &mut scratch.groups);
    let (mut rate, mut load, mut first) = (S::from(0.0), S::from(0.0), S::from(0.0));
    for v in &visits {
        rate += v.rate;
        load += v.rate * (v.first + v.late);
        first += v.rate * v.first;
    }
    let mean_service = if rate > 0.0 { first / rate } else { S::from(0.0) };
    let left = &sweep.left[place..place + layout.pools.len()];
    let services = sweep.crowds.map_or(&[][..], |crowds| crowds.at(station));
    let mut at = At {
        station,
        sweep,
        layout,
        places,
        left,
        services,
        servers: it.servers,
        discipline: it.discipline,
        visits: &visits,
        held_up: &held_up,
        mean_service,
        sources,
        late,
        told: sweep.populations.changes.told.iter().find(|told| told.station == station),
        has_kinds: false,
    };
    at.has_kinds = !sweep.populations.changes.unlike.is_empty()
        && match it.discipline {
            Discipline::Fcfs => layout.pools.len() == 1 || at.has_other_sources() || at.kinds().is_some(),
            Discipline::Sharing => layout.are_nowhere_else,
            _ => false,
        };
    at.run(load, scratch, next);
    scratch.visits = visits;
}

/// A station in a sweep.
struct At<'a, S> {
    station: usize,
    sweep: &'a Sweep<'a, S>,
    layout: &'a Layout,
    places: Places,
    left: &'a [Left<S>],
    /// Services while one server is busy, two, and so on, over the mean; none where they are all the same.
    services: &'a [S],
    servers: f64,
    discipline: Discipline,
    visits: &'a [Visit<S>],
    /// Share of the excess wait that each arc has; none where all have all.
    held_up: &'a [S],
    /// Mean first phase.
    mean_service: S,
    /// Sources that can be at the station together.
    sources: f64,
    /// Whether some service goes on after the reply.
    late: bool,
    /// Whether rows have factors of waits for services of unlike length ([`kinds`]).
    has_kinds: bool,
    /// How long requests wait, where a stream from outside tells it.
    told: Option<&'a Told<S>>,
}

impl<S: Scalar> At<'_, S> {
    fn run(&self, load: S, scratch: &mut Scratch<S>, next: &mut [S]) {
        let (n, n_rows) = (self.visits.len(), self.layout.rows.len());
        let zero = S::from(0.0);
        let sharing = self.is_shared();
        self.keep_factors(&mut scratch.keep, &mut scratch.served);
        for part in [&mut scratch.alpha, &mut scratch.beta, &mut scratch.load] {
            part.resize(n_rows * n, zero);
        }
        for part in [&mut scratch.alpha_own, &mut scratch.beta_own] {
            part.clear();
            part.resize(if self.layout.siblings { n_rows * n } else { 0 }, zero);
        }
        for part in [&mut scratch.own, &mut scratch.late] {
            part.clear();
            part.resize(n_rows, zero);
        }
        self.find_absences(&mut scratch.absences);
        for row in 0..n_rows {
            self.decompose(row, scratch);
        }
        if !sharing {
            self.find_scarcity(&scratch.load, &mut scratch.scarcity);
        }
        for row in 0..n_rows {
            if !sharing {
                self.add_rests(row, scratch);
            }
        }
        self.find_after_replies(scratch);
        self.make_way(scratch);
        self.find_messages(scratch);
        self.follow_at_once(scratch);
        for row in 0..n_rows {
            // What comes back at once has found what has come since ([`follows`]).
            if self.discipline == Discipline::Fcfs && self.layout.follows.is_none() {
                self.limit_outside(row, scratch);
            }
            if self.layout.siblings {
                self.add_siblings(row, sharing, scratch);
            }
        }
        self.add_messages(scratch);
        self.add_left_behind(scratch);
        self.add_met(scratch);
        self.serve(scratch, &mut next[self.places.probability..self.places.removal]);
        scratch.own.iter_mut().zip(&scratch.messages_wait).for_each(|(own, &wait)| *own += wait);
        self.wait_for_second_phases(scratch, &mut next[self.places.probability..self.places.removal]);
        self.add_up(scratch);
        if let Some(kept) = scratch.caused_at.get_mut(self.station) {
            kept.clone_from(&scratch.caused);
        }
        self.find_ratios(scratch, next);
        let (before, after) = next.split_at_mut(self.places.left);
        let left = &mut after[..self.places.end - self.places.left];
        self.update_contention(scratch, &mut before[self.places.contention..], left);
        let excess = if self.sweep.manner.capacity == Capacity::Free { zero } else { self.next_excess(load) };
        next[self.places.excess] = excess;
        for (i, &a) in self.layout.arcs.iter().enumerate() {
            next[a] = scratch.wait[self.layout.row_of[i]] + self.held_up.get(i).map_or(excess, |&share| excess * share);
        }
        scratch.parts_at[self.station].take(&scratch.alpha, &scratch.beta, &scratch.own);
    }

    /// `R` and `φ`, or those of the last sweep where they are held.
    fn find_ratios(&self, scratch: &mut Scratch<S>, next: &mut [S]) {
        let Places { removal, boost, contention, .. } = self.places;
        let Manner { capacity, keeps_removal, .. } = self.sweep.manner;
        let held = self.sweep.manner.held(&self.places);
        next[held.clone()].copy_from_slice(&self.sweep.unknowns[held]);
        if !keeps_removal {
            self.find_apart(&scratch.keep, &mut scratch.apart);
            self.update_removal(scratch, &mut next[removal..boost]);
        }
        if capacity == Capacity::Free {
            let (before, after) = next.split_at_mut(boost);
            self.update_boost(scratch, &before[removal..], &mut after[..contention - boost]);
        }
    }

    /// Whether all requests are served together.
    fn is_shared(&self) -> bool {
        matches!(self.discipline, Discipline::Sharing | Discipline::Groups)
    }

    /// The waits of the rows, and what causes them.
    fn add_up(&self, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        scratch.wait.clone_from(&scratch.own);
        scratch.caused.resize(scratch.alpha.len(), S::from(0.0));
        for (row, wait) in scratch.wait.iter_mut().enumerate() {
            let terms = row * n..(row + 1) * n;
            let parts = scratch.alpha[terms.clone()].iter().zip(&scratch.beta[terms.clone()]).zip(self.visits);
            for (caused, ((&alpha, &beta), v)) in scratch.caused[terms].iter_mut().zip(parts) {
                *caused = alpha * v.wait + beta;
                *wait += *caused;
            }
        }
    }

    /// `K` between rows and arcs, and that of those in service.
    fn keep_factors(&self, keep: &mut Vec<S>, served: &mut Vec<S>) {
        let Layout { pairs, late_pairs, early_pairs, rows, row_of, sent_on, .. } = self.layout;
        let n = self.visits.len();
        let factors = &self.sweep.exclusion.factors;
        keep.clear();
        keep.extend(pairs.iter().map(|&pair| factors[pair as usize]));
        // What an arrival that begins a second phase finds instead.
        let found_late = |factors: &[S], at: usize| {
            let found = factors[late_pairs[at] as usize];
            // In order of arrival what was there before the own first phase has gone: these began while it was there.
            match early_pairs[at].filter(|_| self.is_in_order()).zip(self.late_share(row_of[at % n])) {
                Some((early, share)) => found + (factors[early as usize] - found) * share,
                None => found,
            }
        };
        for r in (0..rows.len()).filter(|_| !late_pairs.is_empty()) {
            let Some(late) = self.late_share(r) else { continue };
            for at in r * n..(r + 1) * n {
                keep[at] = keep[at] + (found_late(factors, at) - keep[at]) * late;
            }
        }
        for &Interlock { at, call } in &self.layout.interlocks {
            keep[at] *= self.sweep.interlocks.get(call).copied().unwrap_or(S::from(1.0));
        }
        served.clone_from(keep);
        for &at in sent_on {
            let factor = self.sweep.served[pairs[at] as usize];
            let late = if late_pairs.is_empty() { None } else { self.late_share(at / n) };
            served[at] = late.map_or(factor, |share| factor + (found_late(self.sweep.served, at) - factor) * share);
        }
    }

    /// The share of a row's requests that begin a second phase.
    fn late_share(&self, r: usize) -> Option<S> {
        let row = &self.layout.rows[r];
        let group = row.group.filter(|_| row.follows_reply)?;
        Some(self.sweep.net.nodes[self.layout.groups[group]].slices.recip())
    }

    /// Fills the row: what its arrivals find waiting and in service, at one server and in order of arrival.
    fn decompose(&self, r: usize, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let row = &self.layout.rows[r];
        let shares = &*self.absent_shares(row);
        let me = &self.visits[row.arc];
        let sharing = self.is_shared();
        let zero = S::from(0.0);
        let remaining = self.remaining(row);
        let gone_on = self.gone_on(row);
        self.set_boosts(row.group, remaining, &mut scratch.boosts);
        self.set_unmet(r, &mut scratch.unmet);
        let terms = r * n..(r + 1) * n;
        let (keep, served) = (&scratch.keep[terms.clone()], &scratch.served[terms.clone()]);
        let (alpha, beta) = (&mut scratch.alpha[terms.clone()], &mut scratch.beta[terms.clone()]);
        let load = &mut scratch.load[terms];
        let (arcs, row_of, pool_of) = (&self.layout.arcs[..n], &self.layout.row_of[..n], &self.layout.pool_of[..n]);
        for (x, it) in self.visits.iter().enumerate() {
            let (keep, served) = (keep[x], served[x]);
            if keep == 0.0 && it.late <= 0.0 || is_none(it.rate) {
                (alpha[x], beta[x], load[x]) = (zero, zero, zero);
                continue;
            }
            let seen = self.sweep.seen(shares, arcs[x]);
            let seen = self.without_own_second_phases(self.class_shares(row.kin), row_of[x], seen);
            let seen = gone_on.map_or(seen, |gone_on| self.without_own_customer(gone_on, arcs[x], seen));
            let (mut of_waiting, mut of_first) = self.own_pool(row, row_of[x], pool_of[x], (keep, served, remaining), &scratch.boosts);
            if let Some(&unmet) = pool_of[x].and_then(|pool| scratch.unmet.get(pool)) {
                of_waiting *= unmet;
                of_first *= unmet;
            }
            let seen = match pool_of[x].filter(|&pool| row.pool == Some(pool)).map(|pool| self.left[pool].of_all()) {
                Some(told) if told > 0.0 => {
                    let with_all = |seen: S| seen + (-seen + 1.0) * told;
                    Seen { waiting: with_all(seen.waiting), first: with_all(seen.first), ..seen }
                }
                _ => seen,
            };
            let (mut of_waiting, mut of_first) = (of_waiting * seen.waiting, of_first * seen.first);
            if let Some(late) = self.late_of(row, pool_of[x]) {
                let are_known = self.sweep.populations.changes.are_known;
                let share = self.share_of_others(row, pool_of[x]);
                (of_waiting, of_first) =
                    late.with((of_waiting, of_first), (seen.waiting, seen.first), self.share_of_thread(row), share, are_known);
            }
            let (waiting, first) = (of_waiting * it.rate, of_first * it.rate * it.first);
            if sharing {
                let busy = first + served * seen.late * it.rate * it.late;
                alpha[x] = waiting * me.first;
                beta[x] = busy * me.first;
                load[x] = busy;
                continue;
            }
            // Services of threads that hold each other up are told by how many of them are busy.
            let pace = match self.sweep.spared {
                _ if !self.services.is_empty() => S::from(1.0),
                Some((sparing, spared)) => {
                    let spares = (-sparing.left(self.station, r * n + x, spared) + 1.0) * remaining;
                    seen.pace * (-spares + 1.0)
                }
                None => seen.pace,
            };
            alpha[x] = waiting * (it.first + it.late) * pace;
            beta[x] = first * pace;
            load[x] = first;
        }
    }

    /// What of a row's requests goes on for customers without them, by class; none where they are told by nothing yet, or nothing goes on.
    fn gone_on(&self, row: &Row) -> Option<&[GoneOn<S>]> {
        let n = self.sweep.net.classes.len();
        let kin = row.kin.filter(|_| self.sweep.populations.changes.are_known)?;
        let gone_on = self.sweep.exclusion.gone_on.get(kin * n..(kin + 1) * n)?;
        gone_on.iter().any(|it| !is_none(it.met) || !is_none(it.missed)).then_some(gone_on)
    }

    /// What such requests find over an arc without those that they find less, of the customer for whom they go on, than at any time
    /// ([`super::exclusion`], `gone_on`).
    fn without_own_customer(&self, gone_on: &[GoneOn<S>], arc: usize, seen: Seen<S>) -> Seen<S> {
        let zero = S::from(0.0);
        let (mut waiting, mut first) = (zero, zero);
        let customers = self.sweep.populations.customers;
        for ((it, &customers), &share) in gone_on.iter().zip(customers).zip(self.class_shares(self.sweep.net.kin_of_arc(arc))) {
            if customers >= 1.0 {
                let own = share / customers;
                first += it.missed * own;
                waiting += (it.missed + it.met / customers) * own;
            }
        }
        let less = |all: S, own: S| if own < all { all - own } else { zero };
        Seen { waiting: less(seen.waiting, waiting), first: less(seen.first, first), ..seen }
    }

    /// Factors on those waiting and in service over an arc of `other` row and `pool`: exclusion, and what the own thread's absence
    /// changes.
    fn own_pool(&self, row: &Row, other: usize, pool: Option<usize>, (keep, served, remaining): (S, S, S), boosts: &[S]) -> (S, S) {
        if let (true, Some(pool)) = (row.pool == pool, pool) {
            let left = &self.left[pool];
            if left.is_less() {
                let (waiting, first) = left.factors(keep);
                return (keep * waiting * self.removal_within(row.group, other), served * first);
            }
        }
        let boost = pool.map_or(S::from(1.0), |p| boosts[p]);
        let removed = (-self.removal_ratio(row.group, other) + 1.0) * remaining;
        (keep * boost * (-removed + 1.0), served * boost)
    }

    /// Shares of the classes whose customers a row's arrivals do not find. The one whose request begins a second phase has its reply just then.
    fn absent_shares(&self, row: &Row) -> Cow<'_, [S]> {
        let begun = row.group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]]);
        match begun.filter(|node| row.follows_reply && node.phase == 1) {
            Some(node) => self.class_shares(Some(node.entry)).iter().map(|&share| share / node.slices).collect(),
            None => self.class_shares(row.kin).into(),
        }
    }

    /// Shares of the classes in the requests of a kin; none for requests from outside.
    fn class_shares(&self, kin: Option<usize>) -> &[S] {
        let n = self.sweep.net.classes.len();
        kin.map_or(&[], |k| &self.sweep.exclusion.class_shares[k * n..(k + 1) * n])
    }
}
