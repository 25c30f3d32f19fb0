//! Whose requests come to several servers that go on after the reply, and how long these serve them.
//!
//! Customers come as the sources of the chain, also those of several classes that call the same entries. Of threads of a pool, fewer than the customers for whom they come, an arrival finds `j` others
//! busy with chance `q(j)` ([`super::super::crowd`]), and waits as in the chain of `j + 1` sources that are never idle:
//!
//! ```text
//! W = Σ_j q(j) W(j+1),   z = (S - β (W + s₁)) / β        also for s₁, s₂ and the chance to wait
//! ```
//!
//! with `S` the time of one execution, and `β` its requests. How much longer they are away the more of them are follows from exact mean value analysis of the
//! rest of the pool's stations (the flow-equivalent server of K. M. Chandy, U. Herzog and L. Woo 1975; [`super::super::pool`], `away_from`), and is scaled so
//! that `z` is what it is in the mean.

use super::{
    super::{At, Layout, Scratch, Sweep, comes_again::ComesAgain, pool::LARGEST_POOL, second_phase::away_at_all, visit::SHORTEST_GAP},
    Servers, Stay, Times,
    threads::{Phase, Processor},
};
use crate::{
    model::Scalar,
    solve::layered::{
        linearizer::is_none,
        net::{Discipline, Work},
    },
};

/// What the chain tells of a station.
#[derive(Clone, Copy, Debug)]
pub(in super::super::super) enum Told<S> {
    /// Requests wait so long for a thread, and with such a chance.
    Threads { wait: S, chance: S },
    /// Slices of a first phase and of later ones wait so long, in units of their own where the processor is shared.
    Slices { waits: [S; 2], is_shared: bool },
}

/// Finds what chains tell of all stations.
pub(in super::super::super) fn find_after_reply<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], told: &mut [Option<Told<S>>]) {
    told.fill(None);
    for layout in layouts.iter().skip(sweep.net.n_processors) {
        let Some(Solved { stay, processor }) = (Callers { sweep, layout }).solve() else { continue };
        told[layout.station] = Some(Told::Threads { wait: stay.wait, chance: stay.chance });
        let Some((host, processor)) = processor else { continue };
        let waits = [processor.wait(0, stay.first), processor.wait(1, stay.late)];
        told[host] = Some(Told::Slices { waits, is_shared: processor.is_shared });
    }
}

/// Those who call a task.
#[derive(Clone, Copy)]
struct Callers<'a, S> {
    sweep: &'a Sweep<'a, S>,
    layout: &'a Layout,
}

/// All requests to a task: their number a unit of time, and the mean of what each takes.
#[derive(Clone, Copy, Debug)]
struct Requests<S> {
    rate: S,
    first: S,
    late: S,
    there: S,
}

/// How long requests stay, and the processor that the task has for itself, with its station.
struct Solved<S> {
    stay: Stay<S>,
    processor: Option<(usize, Processor<S>)>,
}

/// The sources of chains: how many, with what chance; and how long each is away, and how often at all (`u`).
struct Sources<S> {
    chances: Vec<(usize, S)>,
    /// `z` in the mean, and by how many are away.
    mean_away: S,
    away: Vec<S>,
    often: S,
}

impl<S: Scalar> Sources<S> {
    /// Makes `z` what it is in the mean, where it was another; whether it was.
    fn normalize(&mut self, was: S) -> bool {
        if self.away.windows(2).all(|two| two[0].value() == two[1].value()) {
            return false;
        }
        let by = self.mean_away / was;
        self.away.iter_mut().for_each(|away| *away *= by);
        true
    }

    /// The mean stay at so many servers.
    fn stay(&self, servers: usize, times: &Times<S>) -> Option<Stay<S>> {
        let zero = S::from(0.0);
        let mut mean = Stay { wait: zero, chance: zero, first: zero, late: zero, away: zero };
        for &(sources, chance) in &self.chances {
            let stay = Servers { sources, servers, away: &self.away, often: self.often, times }.stay()?;
            mean.wait += chance * stay.wait;
            mean.chance += chance * stay.chance;
            mean.first += chance * stay.first;
            mean.late += chance * stay.late;
            mean.away += chance * stay.away;
        }
        Some(mean)
    }
}

impl<S: Scalar> Callers<'_, S> {
    /// How long requests of one pool, or of customers alone, stay at a task that goes on after the reply, where their chain is small, and the processor
    /// that it has for itself.
    fn solve(&self) -> Option<Solved<S>> {
        if !self.are_taken() {
            return None;
        }
        let requests = self.requests();
        if requests.first <= 0.0 || requests.late <= 0.0 {
            return None;
        }
        let servers = self.sweep.net.stations[self.layout.station].servers;
        let mut sources = self.sources(&requests).filter(|sources| Servers::is_small(&sources.chances, servers))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few enough to be small")]
        let servers = servers as usize;
        if let Some((host, processor)) = self.processor(requests.rate) {
            let times = processor.times(servers);
            let mut stay = sources.stay(servers, &times)?;
            if sources.normalize(stay.away) {
                stay = sources.stay(servers, &times)?;
            }
            return Some(Solved { stay, processor: Some((host, processor)) });
        }
        let services = self.sweep.crowds.map_or(&[][..], |crowds| crowds.at(self.layout.station));
        let grown = |f: usize| f.checked_sub(1).and_then(|f| services.get(f)).map_or(requests.first, |&growth| requests.first * growth);
        let times = Times::new(servers, |f, _| (grown(f), requests.late));
        let stay = sources.stay(servers, &times)?;
        let is_normalized = sources.normalize(stay.away);
        let stay = if services.is_empty() && !is_normalized {
            stay
        } else {
            sources.stay(servers, &times.with_first(requests.first / stay.first))?
        };
        Some(Solved { stay, processor: None })
    }

    /// Whether they are of one pool, or customers, and the task has several threads, whose executions are phases that go on after the reply.
    fn are_taken(&self) -> bool {
        let &Self { sweep: Sweep { net, .. }, layout } = self;
        let station = &net.stations[layout.station];
        let in_phases = |&arc: &usize| net.arcs[arc].target.is_some_and(|entry| matches!(net.entries[entry].work, Work::Phases(_)));
        !layout.ends_at_reply
            && !layout.open
            && (layout.pools.len() == 1 || self.are_of_classes() && self.call_the_same())
            && (station.servers > 1.0 && station.servers.is_finite())
            && station.discipline == Discipline::Fcfs
            && layout.arcs.iter().all(in_phases)
    }

    /// Whether all of several pools call the same entries.
    fn call_the_same(&self) -> bool {
        let &Self { sweep: Sweep { net, .. }, layout } = self;
        let calls = |pool: usize, entry: Option<usize>| {
            layout.arcs.iter().zip(&layout.pool_of).any(|(&arc, &of)| of == Some(pool) && net.arcs[arc].target == entry)
        };
        layout.arcs.iter().all(|&arc| (0..layout.pools.len()).all(|pool| calls(pool, net.arcs[arc].target)))
    }

    fn are_of_classes(&self) -> bool {
        self.layout.pools.iter().all(|&pool| self.sweep.net.tasks[pool].class.is_some())
    }

    fn sources(&self, &Requests { rate, first, late, there }: &Requests<S>) -> Option<Sources<S>> {
        let &Self { sweep, layout } = self;
        let callers = ComesAgain { sweep, layout };
        let gap = |away: S| {
            let least = first * SHORTEST_GAP;
            if away > least { away } else { least }
        };
        if !self.are_of_classes() && !callers.are_customers(0) {
            let busy = self.others();
            if !busy.is_empty() {
                let (executions, service) = self.executions();
                let away = gap(service * executions / rate - there);
                let own = callers.busy_find_own(0);
                return Some(Sources {
                    chances: (1..).zip(busy.iter().copied()).collect(),
                    mean_away: away,
                    away: self.away(away, busy.len()),
                    often: away_at_all(own, away, late),
                });
            }
        }
        let sources = (0..layout.pools.len()).map(|pool| callers.sources(pool)).sum::<f64>();
        if !(1.0..=LARGEST_POOL).contains(&sources) {
            return None;
        }
        let away = gap((-(there * rate) + sources) / rate);
        let own = (0..layout.pools.len()).fold(S::from(0.0), |sum, pool| sum + callers.find_own(pool) * self.rate_of(pool)) / rate;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the largest pool")]
        let chances = vec![(sources as usize, S::from(1.0))];
        Some(Sources { away: self.away(away, chances[0].0), chances, mean_away: away, often: away_at_all(own, away, late) })
    }

    /// `z`, of a mean, by how many of so many sources are away.
    fn away(&self, mean: S, sources: usize) -> Vec<S> {
        let grown = self.sweep.crowds.map_or(&[][..], |crowds| crowds.away(self.layout.station));
        if grown.len() < sources { vec![mean; sources] } else { grown[..sources].iter().map(|&grown| mean * grown).collect() }
    }

    /// `q`; empty where it is not known.
    fn others(&self) -> &[S] {
        let station = self.layout.pools.first().and_then(|&pool| self.sweep.net.tasks[pool].station);
        station.zip(self.sweep.crowds).map_or(&[], |(station, crowds)| crowds.others(station))
    }

    /// Executions of the only pool a unit of time, and how long one takes.
    fn executions(&self) -> (S, S) {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let entries = &net.tasks[self.layout.pools[0]].entries;
        let (executions, busy) = entries.iter().fold((S::from(0.0), S::from(0.0)), |(executions, busy), &entry| {
            let rate = flow.entry_rate[entry];
            (executions + rate, busy + rate * flow.held(entry))
        });
        (executions, busy / executions)
    }

    fn rate_of(&self, pool: usize) -> S {
        let of_pool = self.layout.arcs.iter().zip(&self.layout.pool_of).filter(|(_, of)| **of == Some(pool));
        of_pool.fold(S::from(0.0), |sum, (&arc, _)| sum + self.sweep.flow.arc_rate[arc])
    }

    fn requests(&self) -> Requests<S> {
        let zero = S::from(0.0);
        let mut all = Requests { rate: zero, first: zero, late: zero, there: zero };
        for &arc in &self.layout.arcs {
            let rate = self.sweep.flow.arc_rate[arc];
            let (first, held) = self.sweep.service(arc);
            all.rate += rate;
            all.first += rate * first;
            all.late += rate * (held - first);
            all.there += rate * (self.sweep.unknowns[arc] + first);
        }
        let mean = |sum: S| if all.rate > 0.0 { sum / all.rate } else { zero };
        Requests { rate: all.rate, first: mean(all.first), late: mean(all.late), there: mean(all.there) }
    }

    /// The processor of the threads, and what they do there, where it is theirs alone, has fewer cores, and they do nothing else.
    fn processor(&self, rate: S) -> Option<(usize, Processor<S>)> {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let mut host = None;
        let mut phases = [Phase { demand: zero, slices: zero }; 2];
        for &arc in &self.layout.arcs {
            let share = self.sweep.flow.arc_rate[arc] / rate;
            for (phase, node) in net.phases(net.arcs[arc].target?).into_iter().enumerate() {
                let Some(node) = node.map(|node| &net.nodes[node]) else { continue };
                let at = node.host_arc.map(|call| net.arcs[call].station);
                if !node.calls.is_empty() || !is_none(node.think_time) || host.is_some() && at != host {
                    return None;
                }
                host = at;
                let phase = &mut phases[phase.min(1)];
                phase.demand += share * node.demand;
                phase.slices += share * node.slices;
            }
        }
        let host = host?;
        let it = &net.stations[host];
        let task = net.entries[net.arcs[*self.layout.arcs.first()?].target?].task;
        let is_own = it.arcs.iter().all(|&arc| net.arcs[arc].source.held().is_some_and(|node| net.nodes[node].task == task));
        let is_shared = it.discipline == Discipline::Sharing;
        let is_fewer = it.servers < net.stations[self.layout.station].servers;
        (is_own && is_fewer && (is_shared || it.discipline == Discipline::Fcfs))
            .then_some((host, Processor { phases, cores: it.servers, is_shared }))
    }
}

impl<S: Scalar> At<'_, S> {
    /// Waits of a station's rows as the chain has them, and the chances of them.
    pub(in super::super) fn wait_for_second_phases(&self, scratch: &mut Scratch<S>, probability: &mut [S]) {
        let Some(told) = self.sweep.after_reply.get(self.station).copied().flatten() else { return };
        let n = self.visits.len();
        for r in 0..self.layout.rows.len() {
            let wait = match told {
                Told::Threads { wait, chance } => {
                    probability[r] = chance;
                    wait
                }
                Told::Slices { waits, is_shared } => {
                    let Some(group) = self.layout.rows[r].group else { continue };
                    let wait = waits[self.sweep.net.nodes[self.layout.groups[group]].phase.min(1)];
                    if is_shared { wait * self.visits[self.layout.rows[r].arc].first } else { wait }
                }
            };
            let terms = r * n..(r + 1) * n;
            scratch.alpha[terms.clone()].fill(S::from(0.0));
            scratch.beta[terms].fill(S::from(0.0));
            scratch.own[r] = wait;
        }
    }
}
