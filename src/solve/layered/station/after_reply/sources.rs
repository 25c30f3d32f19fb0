//! Whose requests come to several servers that go on after the reply, and how long these serve them.
//!
//! Customers come as the sources of the chain. Of several classes that ask for the same, each meets all customers but one of its own, and the chain that it sees has
//! as many sources that are away as long as these are in the mean. Of threads of a pool, fewer than the customers for whom they come, an arrival finds `j` others
//! busy with chance `q(j)` ([`super::super::crowd`]), and waits as in the chain of `j + 1` sources that are never idle:
//!
//! ```text
//! W = Σ_j q(j) W(j+1),   z = (S - β (W + s₁)) / β        also for s₁, s₂ and the chance to wait
//! ```
//!
//! with `S` the time of one execution, and `β` its requests. How much longer they are away the more of them are follows from exact mean value analysis of the
//! other stations of the pool (the flow-equivalent server of K. M. Chandy, U. Herzog and L. Woo 1975; [`super::super::pool`], `away_from`), and is scaled so
//! that `z` is what it is in the mean.
//!
//! Where the threads have a processor for themselves ([`super::threads`]), waits are those of the chain with it, as far as they are there and nowhere else: by the
//! 16th power of that share of their time, and for the rest those of the chain whose phases take what they take. It is 1 where they do nothing
//! else; with calls of a tenth of their time .2. What they call keeps slices from each other in ways that the chain does not have (drawn ones 1.3 % off, 2.6 if it is taken for all).

use super::{
    super::{
        At, Layout, Scratch, Sweep,
        comes_again::{ComesAgain, NEGLIGIBLE},
        second_phase::{away_at_all, gap, scale_to_mean},
        visit::SHORTEST_GAP,
    },
    Servers, Stay, Times,
    threads::{Phase, Processor},
};
use crate::{
    model::Scalar,
    solve::layered::net::{Discipline, Work},
};

/// Sources that are too few for a chain at a processor.
const FEW: usize = 1;
/// Sources that are too many for any chain.
const MOST_SOURCES: f64 = 1e6;
/// How fast the chain at a processor is believed less the more threads are elsewhere.
const BELIEF: i32 = 16;

/// What the chain tells of a station.
#[derive(Clone, Debug)]
pub(in super::super::super) enum Told<S> {
    /// Requests of each pool wait so long for a thread, and with such a chance.
    Threads(Vec<(S, S)>),
    /// Slices of a first phase and of later ones wait so long, in units of their own where the processor is shared; and the share of it that is taken for so.
    Slices { waits: [S; 2], is_shared: bool, share: S },
}

/// Finds what chains tell of all stations.
pub(in super::super::super) fn find_after_reply<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], told: &mut [Option<Told<S>>]) {
    told.fill(None);
    for layout in layouts.iter().skip(sweep.net.n_processors) {
        let Some(Solved { waits, processor }) = (Callers { sweep, layout }).solve() else { continue };
        told[layout.station] = Some(Told::Threads(waits));
        let Some((host, Processor { is_shared, .. }, waits, share)) = processor else { continue };
        told[host] = Some(Told::Slices { waits, is_shared, share });
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

/// How long requests of each pool wait, and with what chance; the processor that the task has for itself, how long slices of either phase wait there, and how far
/// that is believed.
struct Solved<S> {
    waits: Vec<(S, S)>,
    processor: Option<(usize, Processor<S>, [S; 2], S)>,
}

/// The sources of chains: how many, with what chance; and how long each is away, and how often at all (`u`).
struct Sources<S> {
    chances: Vec<(usize, S)>,
    /// `z` in the mean, and over that of one that is away by how many are.
    away: S,
    growth: Vec<S>,
    often: S,
}

impl<S: Scalar> Sources<S> {
    /// The mean stay at so many servers, where first phases take as long as asked, if that is asked.
    fn stay(&self, servers: usize, times: &Times<S>, first: Option<S>) -> Option<Stay<S>> {
        let most = self.chances.iter().map(|(n, _)| *n).max()?;
        let mut away = vec![self.away; most];
        if self.growth.len() >= most {
            away.iter_mut().zip(&self.growth).for_each(|(away, growth)| *away *= *growth);
            let mean_of = |away: &[S]| Some(self.mean(away, servers, times)?.away);
            scale_to_mean(&mut away, self.away, mean_of)?;
        }
        let stay = self.mean(&away, servers, times)?;
        match first {
            Some(first) => self.mean(&away, servers, &times.clone().with_first(first / stay.first)),
            None => Some(stay),
        }
    }

    fn mean(&self, away: &[S], servers: usize, times: &Times<S>) -> Option<Stay<S>> {
        let zero = S::from(0.0);
        let mut mean = Stay { wait: zero, chance: zero, first: zero, late: zero, away: zero };
        for &(sources, chance) in &self.chances {
            let stay = Servers { sources, servers, away, often: self.often, times }.stay()?;
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
    /// How long requests of one pool, or of customers alone, stay at a task that goes on after the reply, where their chain is small.
    fn solve(&self) -> Option<Solved<S>> {
        if !self.are_taken() {
            return None;
        }
        let mut requests = self.requests(|_| true);
        if requests.late <= 0.0 {
            return None;
        }
        // Who replies at once has a first phase, too, if one of next to no time.
        let least = requests.late * SHORTEST_GAP;
        if requests.first < least {
            requests.first = least;
        }
        let processor = self.processor(&requests);
        let servers = self.sweep.net.stations[self.layout.station].servers;
        let services = self.sweep.crowds.map_or(&[][..], |crowds| crowds.at(self.layout.station));
        let grown = |f: usize| f.checked_sub(1).and_then(|f| services.get(f)).map_or(requests.first, |&growth| requests.first * growth);
        let mut waits = Vec::new();
        let mut at_processor = (S::from(0.0), S::from(0.0));
        for pool in 0..self.layout.pools.len() {
            let sources = self.sources(pool, &requests)?;
            // A slice of the only customer is behind his own, and not beside it.
            if processor.is_some() && sources.chances.iter().all(|(n, _)| *n <= FEW) {
                return None;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few enough to be small")]
            let servers = servers as usize;
            let of_others = Times::new(servers, |f, _| (grown(f), requests.late));
            let stay_apart = || sources.stay(servers, &of_others, Some(requests.first).filter(|_| !services.is_empty()));
            let Some((_, processor, share)) = &processor else {
                let stay = stay_apart()?;
                waits.push((stay.wait, stay.chance));
                continue;
            };
            let stay = sources.stay(servers, &processor.times(servers).at_least(least), None)?;
            let rate = self.rate_of(pool) / requests.rate;
            at_processor.0 += rate * stay.first;
            at_processor.1 += rate * stay.late;
            let (mut wait, mut chance) = (stay.wait, stay.chance);
            if *share < 1.0 - NEGLIGIBLE {
                let apart = stay_apart()?;
                wait = apart.wait + (wait - apart.wait) * *share;
                chance = apart.chance + (chance - apart.chance) * *share;
            }
            waits.push((wait, chance));
        }
        let processor = processor.map(|(host, processor, share)| {
            let waits = [processor.wait(0, at_processor.0), processor.wait(1, at_processor.1)];
            (host, processor, waits, share)
        });
        Some(Solved { waits, processor })
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

    /// Whether all of several pools call the same entries, or such as do the same for each of them ([`variants`](crate::solve::layered::variants)).
    fn call_the_same(&self) -> bool {
        let &Self { sweep: Sweep { net, .. }, layout } = self;
        let work = |arc: usize| {
            let phases = net.arcs[arc].target.map(|entry| net.phases(entry));
            let of_node = |node: usize| {
                let it = &net.nodes[node];
                (it.phase, it.demand.value(), it.slices.value(), it.think_time.value(), it.calls.len())
            };
            phases.map(|phases| phases.map(|node| node.map(of_node)))
        };
        let calls = |pool: usize, arc: usize| {
            layout.arcs.iter().zip(&layout.pool_of).any(|(&other, &of)| of == Some(pool) && work(other) == work(arc))
        };
        layout.arcs.iter().all(|&arc| (0..layout.pools.len()).all(|pool| calls(pool, arc)))
    }

    fn are_of_classes(&self) -> bool {
        self.layout.pools.iter().all(|&pool| self.sweep.net.tasks[pool].class.is_some())
    }

    /// The sources of the chain as requests of a pool find it; none where it is too much to solve.
    fn sources(&self, pool: usize, &Requests { rate, first, late, there }: &Requests<S>) -> Option<Sources<S>> {
        let &Self { sweep, layout } = self;
        let callers = ComesAgain { sweep, layout };
        let servers = sweep.net.stations[layout.station].servers;
        if !self.are_of_classes() && !callers.are_customers(pool) {
            let chances: Vec<_> = (1..).zip(self.others().iter().copied()).filter(|(_, chance)| *chance > NEGLIGIBLE).collect();
            if !chances.is_empty() && Servers::is_small((&chances, true), servers) {
                let (executions, service) = sweep.executions(layout.pools[pool]);
                let away = gap(service * executions / rate - there, first);
                let often = away_at_all(callers.busy_find_own(pool), away, late);
                return Some(Sources { chances, away, growth: self.growth(), often });
            }
        }
        let sources = (0..layout.pools.len()).map(|pool| callers.sources(pool)).sum::<f64>();
        if !(1.0..MOST_SOURCES).contains(&sources) {
            return None;
        }
        // Whom a customer meets are all but one of his class.
        let own = self.requests(|of| of == pool);
        let of_one = callers.sources(pool).recip();
        let (others, rate_of_others) = (sources - 1.0, rate - own.rate * of_one);
        let away = if others > 0.0 && layout.pools.len() > 1 {
            (-(there * rate - own.there * own.rate * of_one) + others) / rate_of_others
        } else {
            (-(there * rate) + sources) / rate
        };
        let away = gap(away, first);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the most")]
        let chances = vec![(sources as usize, S::from(1.0))];
        let often = away_at_all(callers.find_own(pool), away, late);
        Servers::is_small((&chances, false), servers).then(|| Sources { chances, away, growth: self.growth(), often })
    }

    /// How `z` grows by how many are away.
    fn growth(&self) -> Vec<S> {
        let growth = self.sweep.crowds.filter(|_| self.layout.pools.len() == 1).map_or(&[][..], |crowds| crowds.away(self.layout.station));
        growth.to_vec()
    }

    /// `q`; empty where it is not known.
    fn others(&self) -> &[S] {
        let station = self.layout.pools.first().and_then(|&pool| self.sweep.net.tasks[pool].station);
        station.zip(self.sweep.crowds).map_or(&[], |(station, crowds)| crowds.others(station))
    }

    fn rate_of(&self, pool: usize) -> S {
        let of_pool = self.layout.arcs.iter().zip(&self.layout.pool_of).filter(|(_, of)| **of == Some(pool));
        of_pool.fold(S::from(0.0), |sum, (&arc, _)| sum + self.sweep.flow.arc_rate[arc])
    }

    /// Those of some pools.
    fn requests(&self, are_asked: impl Fn(usize) -> bool) -> Requests<S> {
        let zero = S::from(0.0);
        let mut all = Requests { rate: zero, first: zero, late: zero, there: zero };
        for (&arc, _) in self.layout.arcs.iter().zip(&self.layout.pool_of).filter(|(_, pool)| pool.is_some_and(&are_asked)) {
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

    /// The processor of the threads, and what they do there, where it is theirs alone and has fewer cores; and how far that tells how long they take, as the
    /// share says of their time that they are there.
    fn processor(&self, requests: &Requests<S>) -> Option<(usize, Processor<S>, S)> {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let mut host = None;
        let mut phases = [Phase { demand: zero, slices: zero }; 2];
        let mut there = zero;
        for &arc in &self.layout.arcs {
            let share = self.sweep.flow.arc_rate[arc] / requests.rate;
            for (phase, node) in net.phases(net.arcs[arc].target?).into_iter().enumerate() {
                let Some((node, call)) = node.and_then(|node| Some((&net.nodes[node], net.nodes[node].host_arc?))) else { continue };
                if *host.get_or_insert(net.arcs[call].station) != net.arcs[call].station {
                    return None;
                }
                let phase = &mut phases[phase.min(1)];
                phase.demand += share * node.demand;
                phase.slices += share * node.slices;
                there += share * (node.demand + node.slices * self.sweep.unknowns[call]);
            }
        }
        let host = host?;
        let it = &net.stations[host];
        let task = net.entries[net.arcs[*self.layout.arcs.first()?].target?].task;
        let is_own = it.arcs.iter().all(|&arc| net.arcs[arc].source.held().is_some_and(|node| net.nodes[node].task == task));
        let is_shared = it.discipline == Discipline::Sharing;
        if !is_own || it.servers >= net.stations[self.layout.station].servers || !is_shared && it.discipline != Discipline::Fcfs {
            return None;
        }
        let share = there / (requests.first + requests.late);
        let share = if share < 1.0 { share.powi(BELIEF) } else { S::from(1.0) };
        (share > NEGLIGIBLE).then_some((host, Processor { phases, cores: it.servers, is_shared }, share))
    }
}

impl<S: Scalar> At<'_, S> {
    /// Waits of a station's rows as the chain has them; of requests for threads, the chances to wait, too.
    pub(in super::super) fn wait_for_second_phases(&self, scratch: &mut Scratch<S>, probability: &mut [S]) {
        let Some(told) = self.sweep.after_reply.get(self.station).and_then(Option::as_ref) else { return };
        let n = self.visits.len();
        for (r, row) in self.layout.rows.iter().enumerate() {
            let (wait, share) = match told {
                Told::Threads(waits) => {
                    let Some(&(wait, chance)) = row.pool.and_then(|pool| waits.get(pool)) else { continue };
                    probability[r] = chance;
                    (wait, S::from(1.0))
                }
                Told::Slices { waits, is_shared, share } => {
                    let Some(group) = row.group else { continue };
                    let wait = waits[self.sweep.net.nodes[self.layout.groups[group]].phase.min(1)];
                    (if *is_shared { wait * self.visits[row.arc].first } else { wait }, *share)
                }
            };
            let rest = -share + 1.0;
            for term in r * n..(r + 1) * n {
                scratch.alpha[term] *= rest;
                scratch.beta[term] *= rest;
            }
            scratch.own[r] = scratch.own[r] * rest + wait * share;
        }
    }
}
