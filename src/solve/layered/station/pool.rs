//! Threads of one pool among themselves: what one thread less changes at the stations that the pool visits.
//!
//! A saturated pool of `m` threads is a closed class of `m` customers: an arrival sees the station with `m - 1` of them. The
//! factor `f_t` of [`super::super::exclusion`] says how many other threads there are, but takes them to be as busy at the station as
//! with all `m`. What is really left there follows from exact mean value analysis of the pool alone, on its own stations:
//!
//! ```text
//! R_s(n) = L_s (1 + Q_s(n-1)),   X(n) = n / (Z + Σ R_s(n)),   Q_s(n) = X(n) R_s(n)
//! ψ_w = (Q_s(m-1) - X(m-1) L_s) / (Q_s(m) - X(m) L_s),         ψ_u = X(m-1) / X(m)
//! c = 1 + m (1 - K) (ψ m/(m-1) - 1)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `L_s` | service at `s` in one execution of the pool's entries, slowed by the load of other pools: `/(1 - u_others)`; for several servers the queueing part, a `c`-th (Seidmann et al. 1987) |
//! | `Z` | time of an execution, and before it, spent elsewhere |
//! | `ψ` | what is left with one thread less, of those waiting and in service |
//! | `c` | factor on `K` between arcs of the pool; 1 where no threads exclude each other, `ψ m/(m-1)` where they are all busy |
//!
//! At a server that goes on after the reply, the pool alone is also solved with its second phases, and with them merged into the
//! first ([`super::second_phase`]); the difference is added to `ψ`.
//!
//! With it the threads of one pool need neither [`super::removal`] nor boost: for one pool at product-form stations the wait is
//! that of exact mean value analysis.

use super::{
    super::net::Discipline,
    Layout, Sweep,
    crowd::{Crowds, Stay},
    second_phase::seen_on_arrival,
};
use crate::model::Scalar;

/// Pools of more threads are left to `f_t`, which is exact for many.
const LARGEST_POOL: f64 = 128.0;
/// Load of other pools that is believed.
const MAX_OTHERS: f64 = 0.95;

/// What one thread less leaves at the station, of those waiting and of those in service; relative to `(m-1)/m`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Left<S> {
    pub threads: f64,
    pub waiting: S,
    pub first: S,
    /// Second phases of the other threads that an arrival finds, over their load.
    pub late: S,
}

/// A station as a pool sees it.
struct Stop<S> {
    place: usize,
    demand: S,
    queue: S,
    residence: S,
    before: (S, S),
    now: (S, S),
    /// What second phases add to the three factors.
    late: (S, S, S),
    stay: Stay<S>,
}

/// Computes what is left at every station for every pool, by station and position of the pool there, and how the pools' services
/// grow with the number of their busy threads.
pub(in super::super) fn pool_factors<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layouts: &[Layout],
    first_place: &[usize],
    left: &mut [Left<S>],
    crowds: &mut Crowds<S>,
) {
    let none = Left { threads: f64::INFINITY, waiting: S::from(1.0), first: S::from(1.0), late: S::from(1.0) };
    left.fill(none);
    crowds.clear();
    for (task, it) in sweep.net.tasks.iter().enumerate() {
        let threads = sweep.populations.strands(sweep.net, task);
        if it.class.is_some() || !(2.0..=LARGEST_POOL).contains(&threads) {
            continue;
        }
        let executions = it.entries.iter().fold(S::from(0.0), |sum, &e| sum + sweep.flow.entry_rate[e]);
        if executions <= 0.0 {
            continue;
        }
        let mut stops = stops(sweep, layouts, first_place, task, threads, executions);
        // Fewer threads than there are can be busy, or strands of forks: not all of the pool's servers are at work at once.
        if let Some(station) = it.station.filter(|&s| sweep.net.stations[s].servers == threads && it.width <= 1.0) {
            let busy = it.entries.iter().fold(S::from(0.0), |sum, &e| sum + sweep.flow.entry_rate[e] * sweep.flow.held(e));
            crowds.add(station, threads, busy, busy / executions, stops.iter().map(|s| s.stay));
        }
        shrink(&mut stops, threads, executions);
        for stop in &stops {
            let scale = threads / (threads - 1.0);
            let ratio = |less: S, full: S, more: S| if full > 0.0 { (less / full + more) * scale } else { S::from(1.0) };
            left[stop.place] = Left {
                threads,
                waiting: ratio(stop.before.0, stop.now.0, stop.late.0),
                first: ratio(stop.before.1, stop.now.1, stop.late.1),
                late: stop.late.2,
            };
        }
    }
}

fn stops<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layouts: &[Layout],
    first_place: &[usize],
    task: usize,
    threads: f64,
    executions: S,
) -> Vec<Stop<S>> {
    let zero = S::from(0.0);
    let mut stops = Vec::new();
    for &station in &sweep.visited[task] {
        let (layout, it) = (&layouts[station], &sweep.net.stations[station]);
        let Some(pool) = layout.pools.iter().position(|&p| p == task) else { continue };
        if it.discipline == Discipline::Delay {
            continue;
        }
        let (mut own, mut all, mut first_time, mut wait, mut requests) = (zero, zero, zero, zero, zero);
        for (i, &a) in layout.arcs.iter().enumerate() {
            let rate = sweep.flow.arc_rate[a];
            let (first, held) = sweep.service(a);
            all += rate * held;
            if layout.pool_of[i] == Some(pool) {
                own += rate * held;
                first_time += rate * first;
                wait += rate * sweep.unknowns[a];
                requests += rate;
            }
        }
        let others = (all - own) / it.servers;
        let others = if others > MAX_OTHERS { S::from(MAX_OTHERS) } else { others };
        let demand = own / executions / (-others + 1.0);
        stops.push(Stop {
            place: first_place[station] + pool,
            demand,
            queue: demand / it.servers,
            residence: (wait + first_time) / executions,
            before: (zero, zero),
            now: (zero, zero),
            late: late_factors(threads, &Seen { requests, first: first_time, held: own, wait, slowed: -others + 1.0 }, it.servers),
            stay: Stay::new(first_time / executions, own / executions, wait / executions, it.servers),
        });
    }
    stops
}

/// A pool's requests to a station, all a unit of time: their number, their time in the first phase, in both, and waiting.
struct Seen<S> {
    requests: S,
    first: S,
    held: S,
    wait: S,
    /// Share of the server that other pools leave.
    slowed: S,
}

/// What second phases add to the factors on those waiting and in the first phase, and the factor on second phases of others.
fn late_factors<S: Scalar>(threads: f64, seen: &Seen<S>, servers: f64) -> (S, S, S) {
    let zero = S::from(0.0);
    let others = S::from(1.0 - threads.recip());
    if servers > 1.0 || seen.requests <= 0.0 || seen.held - seen.first <= 0.0 {
        return (zero, zero, others);
    }
    let away = seen.requests.recip() * threads - (seen.wait + seen.first) / seen.requests;
    let first = seen.first / seen.requests / seen.slowed;
    let late = (seen.held - seen.first) / seen.requests / seen.slowed;
    if away <= 0.0 || first <= 0.0 {
        return (zero, zero, others);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and the largest pool")]
    let n = threads as u32;
    let with = seen_on_arrival(n, away, first, late);
    let merged = seen_on_arrival(n, away, first + late, zero);
    // The own one is counted by the chance of overtaking it.
    let own = late / (late + away) / (seen.requests * (late * seen.slowed));
    let rest = with.late - own;
    (with.waiting - merged.waiting, with.first - merged.first, if rest > 0.0 { rest } else { zero })
}

/// Exact mean value analysis up to `threads`.
fn shrink<S: Scalar>(stops: &mut [Stop<S>], threads: f64, executions: S) {
    let zero = S::from(0.0);
    let mut elsewhere = executions.recip() * threads;
    for stop in stops.iter() {
        elsewhere -= stop.residence;
    }
    let elsewhere = if elsewhere > 0.0 { elsewhere } else { zero };
    let delay = stops.iter().fold(elsewhere, |sum, s| sum + s.demand - s.queue);
    let mut n = 1.0;
    let mut length = vec![zero; stops.len()];
    while n <= threads {
        let cycle = stops.iter().zip(&length).fold(delay, |sum, (s, &q)| sum + s.queue * (q + 1.0));
        if cycle <= 0.0 {
            return;
        }
        let rate = cycle.recip() * n;
        for (stop, q) in stops.iter_mut().zip(&mut length) {
            let waiting = rate * stop.queue * *q;
            *q = rate * stop.queue * (*q + 1.0);
            stop.before = stop.now;
            stop.now = (waiting, rate);
        }
        n += 1.0;
    }
}

impl<S: Scalar> Left<S> {
    /// `c` for those waiting and for those in service, at exclusion `keep`.
    pub fn factors(&self, keep: S) -> (S, S) {
        let one = S::from(1.0);
        if self.threads.is_infinite() {
            return (one, one);
        }
        let bound = (-keep + 1.0) * self.threads;
        let bound = if bound > 1.0 { one } else { bound };
        let factor = |left: S| {
            let c = bound * (left - 1.0) + 1.0;
            if c > 0.0 { c } else { S::from(0.0) }
        };
        (factor(self.waiting), factor(self.first))
    }
}
