//! Requests from outside to a pool whose threads hold each other up at what they use: cores, and threads of other pools.
//!
//! Long requests do twice what others wait for: they keep threads busy, and make all threads slower. A queue at the pool comes from long ones that are there
//! together, and such that call nothing are the shortest of all: half of the requests that make one call in the mean (a geometric number) make none. So the pool is the stream of
//! two kinds ([`super::stream`]) whose services end as often as a closed network of just those threads says (P. J. Courtois, *Decomposability*, 1977; K. M. Chandy, U. Herzog and
//! L. Woo, IBM J. Res. Dev. 19 (1975), for the network in place of a server):
//!
//! ```text
//! X_a(a, b), X_b(a, b)      executions that end, of a short and b long ones that go between the stations k at which they meet      ([`lattice`])
//! ℓ = Z + Σ_k h_k² w_k      how much of an execution counts: what it does elsewhere, and at each station more than it lasts there
//! ℓ_a, ℓ_b, q               two lengths that have the moments of ℓ over all requests, and the share of the short ones
//! w_k(ℓ_c) = w̄_k + (ℓ_c - ℓ̄) Cov(w_k, ℓ)/Var ℓ                     so the visits v_k and Z
//! ```
//!
//! with `w_k` what an execution is served at a station in all its visits, and `h_k` how much longer it stays there while all threads are busy, in a network of mean executions. It keeps
//! its thread busy `h` times as long, and others from going on for as much again: `h²` is chosen (responses of drawn systems of two
//! classes 1.1, 1.6 and 1.8 % off in the mean, by `h` 1.4, 1.6 and 2.3). Where nobody meets, `ℓ` is the service and the kinds are those of [`super::open`].
//! What one kind would do less than nothing of, the other does alone, so that both do in the mean what all do. Moments are those of random numbers of calls ([`requests`]).
//!
//! A pool of fewer threads is a station of its own: its service is one execution that meets nobody, and `α(n)` of its threads work as fast as `X(n)/X(1)` of the same network says. What
//! others keep busy of a station (`ρ` of it) makes services there `1/(1 - ρ)` times as long, which is chosen, not derived.
//!
//! Where executions come to a station on several ways, directly and by way of a pool, or of two, either way has the other as what others do there: a rate of its own, which does not grow with the number
//! of busy threads, so that all of them are faster than that station can be (46 a unit of time for 38, of eight). There the numbers are taken at the rate at which as many threads are busy in the mean as in this network.
//!
//! The chain takes the network to be in its steady state whenever a request begins or ends, and two kinds for all. Drawn systems of two to four tiers beside our simulator at .5 %: SOLVER.md.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `w_k`, `v_k` | `time`, `visits` | time of service in one execution at a station, and visits |
//! | `Z` | `elsewhere` | time where threads do not meet, waits for others there included |
//! | `h_k` | [`lattice::longer`] | time at a station over service there, while all threads are busy |
//! | `α(n)` | `paces` | how much faster `n` are served together than one |

mod forks;
mod lattice;
mod requests;

use std::collections::HashMap;

use self::{
    lattice::{longer, throughputs},
    requests::{Search, Sums, third_cumulant},
};
use super::{
    coming::Coming,
    open::Services,
    sources::{count, number},
    stream::Stream,
};
use crate::{
    model::Scalar,
    solve::layered::{flow::Flow, net::Net},
};

/// Most threads of a pool that a chain tells.
const MOST_THREADS: f64 = 16.0;

/// How long requests wait for a thread.
pub(super) struct Found<S> {
    pub wait: S,
    /// By how much what they do varies more than exponential times of one length, over the square of the mean.
    pub excess: S,
    /// Whether threads meet at others than their own cores.
    pub is_elsewhere: bool,
}

/// A station at which threads meet.
#[derive(Clone, Debug)]
struct Met<S> {
    station: usize,
    /// `α`, by the number less one; of more it is the last.
    paces: Vec<S>,
    /// Whether all there are served together.
    shared: bool,
    /// What is left in the mean of a service that is found; none where it is not waited for.
    rest: Option<S>,
    /// How much longer others make services.
    slower: S,
    /// `h²`.
    weight: S,
    /// Of a pool, the service to each entry that is known, where nobody is met.
    alone: Vec<Option<Served<S>>>,
    /// Of a pool, the stations at which its threads meet.
    below: Vec<usize>,
}

/// How long something is served: mean, variance and third cumulant, and what of the mean is after the reply.
#[derive(Clone, Copy, Debug)]
struct Served<S> {
    mean: S,
    variance: S,
    third: S,
    late: S,
}

/// What requests of one length do.
#[derive(Clone, Debug)]
struct Kind<S> {
    at: Vec<Work<S>>,
    elsewhere: S,
}

/// What one execution does at a station.
#[derive(Clone, Copy, Debug)]
struct Work<S> {
    time: S,
    visits: S,
    /// What of the time is after replies.
    late: S,
}

impl<S: Scalar> Work<S> {
    /// One service.
    fn service(&self) -> S {
        if self.visits > 0.0 { self.time / self.visits } else { S::from(0.0) }
    }
}

/// What goes on in a pool.
#[derive(Clone, Debug)]
struct Inside<S> {
    met: Vec<Met<S>>,
    /// Of each entry that is reached, with every `h` as 1.
    by_entry: Vec<Option<Sums<S>>>,
    /// Of all requests.
    all: Sums<S>,
    /// `ℓ` of all requests.
    lengths: Services<S>,
}

/// Pools as stations, by station; none for one of which too little is known.
type Known<S> = HashMap<usize, Option<Met<S>>>;

/// A network with flow and waits.
#[derive(Clone, Copy)]
struct Solved<'a, S> {
    net: &'a Net<S>,
    flow: &'a Flow<S>,
    waits: &'a [S],
}

/// Finds how long requests from outside wait for a thread of a task's pool, which come to it so; nothing where its threads do not meet, at more threads than a chain tells, where all are as long, and
/// before queues with priorities.
pub(super) fn of_pool<S: Scalar>(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), task: usize, come: &Coming<S>) -> Option<Found<S>> {
    let pool = &net.stations[net.tasks[task].station?];
    if pool.servers > MOST_THREADS {
        return None;
    }
    let threads = number(pool.servers);
    let inside = Inside::find(Solved { net, flow, waits }, task, threads, &mut Known::new())?;
    if inside.met.is_empty() {
        return None;
    }
    let lengths = inside.lengths.nearer_to_exponential(come.at_once);
    let (services, short) = lengths.lengths()?;
    let kinds = inside.all.kinds(services, short);
    let ends = throughputs(&inside.met, &kinds, short, threads);
    let rate = lengths.rate;
    let stream = Stream { rate, services, short, leaves: S::from(1.0), servers: threads, paces: &[], ends: &ends };
    let there = come.places.unwrap_or(threads);
    let found = if inside.meets_on_several_ways() {
        stream.beyond_while_busy(flow.busy_threads(net, task), there)?
    } else {
        stream.beyond(there)?
    };
    let wait = come.places.map_or(found.places, |_| found.servers) / rate;
    let is_elsewhere = inside.met.iter().any(|met| met.station != net.tasks[task].processor);
    Some(Found { wait, excess: lengths.excess(), is_elsewhere })
}

impl<S: Scalar> Search<'_, S> {
    /// Finds what others do where so many threads meet, to which requests that do `all` in the mean come at such a rate; of strands that executions do not wait for, those of the
    /// other threads. None where they leave nothing.
    fn meet_others(&mut self, all: &Sums<S>, rate: S, threads: usize) -> Option<()> {
        let solved = self.solved;
        for (place, met) in self.met.iter_mut().enumerate() {
            let (own, load) = (all.work(place).time, all.load(place));
            met.meet_others(solved, (own + (load - own) / count(threads)) * rate)?;
        }
        Some(())
    }
}

impl<S: Scalar> Inside<S> {
    fn find(solved: Solved<'_, S>, task: usize, threads: usize, known: &mut Known<S>) -> Option<Self> {
        let mut search = Search::new(solved);
        let reached = search.reach(task, threads, known)?;
        let by_entry = search.by_entry(task, &reached);
        let (mut all, mut lengths) = search.of_all(task, &by_entry)?;
        search.meet_others(&all, lengths.rate, threads)?;
        if !search.met.is_empty() {
            let longer = longer(&search.met, &all.mean_kind(), threads);
            search.met.iter_mut().zip(longer).for_each(|(met, longer)| met.weight = longer * longer);
            (all, lengths) = search.of_all(task, &search.by_entry(task, &reached))?;
            // Which strands of forks are waited for, and so are no others', follows from what counts.
            search.meet_others(&all, lengths.rate, threads)?;
        }
        Some(Self { met: search.met, by_entry, all, lengths })
    }

    /// Whether executions come to a station at which they meet on several ways, and not only directly or by way of one pool.
    fn meets_on_several_ways(&self) -> bool {
        let mut stations: Vec<usize> = self.met.iter().flat_map(|met| met.below.iter().copied().chain([met.station])).collect();
        stations.sort_unstable();
        stations.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// `α` of so many threads.
    fn paces(&self, threads: usize) -> Vec<S> {
        if self.met.is_empty() {
            return (1..=threads).map(|n| S::from(count(n))).collect();
        }
        let kind = self.all.mean_kind();
        let ends = throughputs(&self.met, &[kind.clone(), kind], S::from(1.0), threads);
        (1..=threads).map(|n| ends[n][0][0] / ends[1][0][0]).collect()
    }
}

impl<S: Scalar> Met<S> {
    /// A pool of a task; none where what its threads do is not known.
    fn of_pool(solved: Solved<'_, S>, (station, task): (usize, usize), threads: usize, known: &mut Known<S>) -> Option<Self> {
        let inside = Inside::find(solved, task, threads, known)?;
        let alone = inside.by_entry.iter().map(|it| it.as_ref().map(Sums::whole)).collect();
        let below = inside.met.iter().flat_map(|met| met.below.iter().copied().chain([met.station])).collect();
        Some(Self { alone, below, ..Self::of_cores(station, inside.paces(threads)) })
    }

    fn of_cores(station: usize, paces: Vec<S>) -> Self {
        Self { station, paces, shared: false, rest: None, slower: S::from(1.0), weight: S::from(1.0), alone: Vec::new(), below: Vec::new() }
    }

    /// `α(n)`.
    fn pace(&self, n: usize) -> S {
        self.paces[n.min(self.paces.len()) - 1]
    }

    /// With so many others there, how long one is served over its service, and how long it waits before, over services as long.
    fn beside_and_before(&self, others: usize) -> (S, S) {
        let served = (others + 1).min(self.paces.len());
        let each = self.pace(served).recip();
        (each * count(served), each * count(others + 1 - served))
    }

    /// What is served of the requests over an arc.
    fn served(&self, solved: Solved<'_, S>, arc: usize) -> Option<Served<S>> {
        let (net, flow) = (solved.net, solved.flow);
        let it = &net.arcs[arc];
        let of = |mean: S, variance: S, late: S| Served { mean, variance, third: third_cumulant(mean, variance), late };
        if let Some(entry) = it.target {
            let alone = self.alone.get(entry).copied().flatten();
            return Some(alone.unwrap_or_else(|| {
                let variance = flow.phase_variances[entry].iter().fold(S::from(0.0), |sum, &variance| sum + variance);
                of(flow.held(entry), variance, flow.held(entry) - flow.phases[entry][0])
            }));
        }
        let node = &net.nodes[it.source.node()?];
        let slice = node.demand / node.slices;
        Some(of(slice, slice * slice * node.cvsq, S::from(0.0)))
    }

    /// Finds what others do, beside so much service a unit of time for the own threads, and what is left of services; none where others leave nothing.
    fn meet_others(&mut self, solved: Solved<'_, S>, own: S) -> Option<()> {
        let zero = S::from(0.0);
        let (mut time, mut left) = (zero, zero);
        for &arc in &solved.net.stations[self.station].arcs {
            if let Some(Served { mean, variance, .. }) = self.served(solved, arc) {
                let rate = solved.flow.arc_rate[arc];
                time += rate * mean;
                left += rate * (mean * mean + variance) * 0.5;
            }
        }
        let others = (time - own) / *self.paces.last()?;
        if others >= 1.0 {
            return None;
        }
        self.slower = if others > 0.0 { (-others + 1.0).recip() } else { S::from(1.0) };
        if time > 0.0 && !self.shared {
            self.rest = Some(left / time);
        }
        Some(())
    }
}
