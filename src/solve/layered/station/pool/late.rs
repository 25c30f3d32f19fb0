//! What second phases change of what an arrival finds of its own pool, or of the other customers.
//!
//! At one server that goes on after the reply, the chain of `n` sources, as many as there are threads or customers for them, is solved with second phases
//! ([`super::super::second_phase`]). What an arrival finds of those that wait, and of those in first phases, is `ψ` and the Linearizer's factor, and beside that
//!
//! ```text
//! a_n / Q_n - [(1 - ψ) Q_{n-1} / Q_n + ψ a'_n / Q'_n]
//! ```
//!
//! with `a` what arrivals see in the chain, `Q` the mean of it, `'` of one whose services are first and second phases in one, and `ψ` of
//! [`removal`](super::super::removal); `(n - 1)/n` for the former quotient in the first round of the Linearizer. Of more customers than threads, `a_n/Q_n - a'_n/Q'_n`
//! times the Linearizer's factor, with `H̄ = s₂/(s₂ + z)` for `H`. Where it is known how many threads are busy, `a/Q` is what their numbers say, as `ψ` of the parent
//! module: with chance `q(j)` an arrival finds what it does in the chain of `j + 1` that are never idle,
//!
//! ```text
//! a_n / Q_n = Σ_j q(j) a(j+1) / [Σ_j q(j) Q(j) + Π (Q(m) - Q(m-1))]        z = (S - β (W + s₁)) / β
//! ```
//!
//! with the gap `z` of busy threads, whose executions take `S` with `β` requests, and `H` of such; and what a customer less leaves in the first round follows from
//! it. The gaps grow by how many are away as the rest of the pool's stations say (`away_from`), scaled so that they are what they are in the mean. So a pool
//! that has a server for itself and is away for an exponential time waits as in the chain. Customers of all reference tasks that call a server alone are one
//! such pool, of which one class meets one customer less of its own.

use super::{
    super::{
        Layout, Sweep,
        comes_again::{ComesAgain, NEGLIGIBLE},
        crowd::{Busy, Crowds},
        second_phase::{Ratios, SeenOnArrival, away_at_all, gap, scale_to_mean, seen_on_arrival},
    },
    LARGEST_POOL, Left, Requests,
    alone::{Presence, Stop, away_from},
    requests_of,
};
use crate::model::Scalar;

/// What second phases change at a station.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Late<S> {
    /// Factors on those waiting and in the first phase.
    factors: Option<Factors<S>>,
    /// The factor on second phases of others.
    pub others: S,
    /// Whether it is that of all customers together.
    pub of_customers: bool,
}

/// Factors on those waiting and in the first phase, with second phases, and as they would be found otherwise: with one source less, and with one thread
/// less where each service is one with its second phase.
#[derive(Clone, Copy, Debug)]
struct Factors<S> {
    with: (S, S),
    less: (S, S),
    merged: (S, S),
    /// `(n - 1)/n`.
    guessed: f64,
    /// Whether there is a source for each customer.
    is_of_customers: bool,
}

/// What threads request at a server that goes on after the reply.
#[derive(Clone, Debug)]
pub(super) struct Requested<S> {
    /// `s₁` and `s₂`, slowed by the load of others.
    first: S,
    late: S,
    /// In one execution, and how long that is there, and waits.
    number: S,
    there: S,
    /// `H` of threads that are never idle.
    own: S,
    /// Second phases of all executions a unit of time.
    load: S,
    /// `z` over that of one that is away, by how many are; empty where it is the same.
    growth: Vec<S>,
}

/// Threads or customers that come to a station.
#[derive(Clone, Copy, Debug)]
struct Sources<'a, S> {
    n: f64,
    /// Whether there is one for each customer.
    are_customers: bool,
    growth: &'a [S],
}

/// What busy threads have at a server that goes on after the reply: those that wait, in the first phase, and second phases of others, as an arrival finds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfBusy<S> {
    pub waiting: Presence<S>,
    pub first: Presence<S>,
    late: S,
}

/// The chain, of any number of sources.
struct Chain<S> {
    first: S,
    late: S,
    gaps: Vec<S>,
    /// `u`.
    often: S,
}

impl<S: Scalar> Chain<S> {
    /// For gaps of mean `away` that grow by how many are away, of sources that are so many with these chances.
    fn new((first, late): (S, S), (away, growth): (S, &[S]), often: S, (most, sources): (usize, &[(u32, S)])) -> Self {
        if growth.len() < most {
            return Self { first, late, gaps: vec![away; most], often };
        }
        let mut chain = Self { first, late, gaps: growth[..most].iter().map(|&growth| away * growth).collect(), often };
        let mut gaps = std::mem::take(&mut chain.gaps);
        let mean_of = |gaps: &[S]| {
            let of = |n: u32| seen_on_arrival(n, (gaps, often), first, late).gap;
            Some(sources.iter().fold(S::from(0.0), |sum, &(n, chance)| sum + chance * of(n)))
        };
        chain.gaps = if scale_to_mean(&mut gaps, away, mean_of).is_some() { gaps } else { vec![away; most] };
        chain
    }

    fn seen(&self, n: u32) -> SeenOnArrival<S> {
        seen_on_arrival(n, (&self.gaps, self.often), self.first, self.late)
    }

    fn over_means(&self, n: u32, seen: &SeenOnArrival<S>) -> Ratios<S> {
        seen.over_means(f64::from(n), self.first, self.late)
    }

    /// What busy threads have there.
    fn of_busy(&self, own: S, busy: &Busy<'_, S>) -> Option<OfBusy<S>> {
        let (&full, fewer) = busy.at_any_time.split_last().filter(|(_, fewer)| fewer.len() == busy.others.len())?;
        let zero = S::from(0.0);
        let mut of = OfBusy { waiting: Presence::none(), first: Presence::none(), late: zero };
        let means = |n: u32| if n > 0 { self.over_means(n, &self.seen(n)).means } else { (zero, zero) };
        for ((n, &chance), &at_any_time) in (0..).zip(busy.others).zip(fewer) {
            if chance <= NEGLIGIBLE && at_any_time <= NEGLIGIBLE {
                continue;
            }
            // `n` others are busy.
            let (seen, there) = (self.seen(n + 1), means(n));
            of.waiting.add((seen.waiting, there.0), chance, at_any_time);
            of.first.add((seen.first, there.1), chance, at_any_time);
            of.late += chance * (seen.late - own);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most the largest pool")]
        let all = busy.others.len() as u32;
        let (before, last) = (means(all - 1), means(all));
        of.waiting.add_last(last.0, last.0 - before.0, busy.all, full);
        of.first.add_last(last.1, last.1 - before.1, busy.all, full);
        Some(of)
    }
}

impl<S: Scalar> Requested<S> {
    /// The chain of busy threads, of which one execution takes `service`; with second phases as parts of the first where they are merged.
    fn chain_of_busy(&self, busy: &Busy<'_, S>, service: S, are_merged: bool) -> Chain<S> {
        let (first, late) = (self.first, self.late);
        let away = gap((service - self.there) / self.number, first + late);
        let sources: Vec<_> = (1..).zip(busy.others.iter().copied()).filter(|(_, chance)| *chance > NEGLIGIBLE).collect();
        if are_merged {
            Chain::new((first + late, S::from(0.0)), (away, &self.growth), S::from(1.0), (busy.others.len(), &sources))
        } else {
            Chain::new((first, late), (away, &self.growth), away_at_all(self.own, away, late), (busy.others.len(), &sources))
        }
    }
}

impl<S: Scalar> Late<S> {
    pub fn none(others: S) -> Self {
        Self { factors: None, others, of_customers: false }
    }

    /// Finds it for sources with these requests to so many servers, which are as fast as so many others; `found_own` is `H`, asked where there is a source
    /// for each customer.
    fn find(
        requests: &Requests<S>,
        Sources { n, are_customers, growth }: Sources<'_, S>,
        (servers, as_fast_as): (f64, S),
        found_own: impl FnOnce() -> S,
    ) -> Self {
        let guessed = 1.0 - n.recip();
        let none = Self::none(S::from(guessed));
        let Some((first, late)) = requests.phases(as_fast_as).filter(|_| servers <= 1.0 && n >= 2.0) else { return none };
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let away = gap((-(requests.wait + requests.first) + n) / requests.number, first + late);
        // Of more customers than threads, what is known is what one thread less leaves.
        let (own, often) = if are_customers {
            let own = found_own();
            (own, away_at_all(own, away, late))
        } else {
            (late / (late + away), one)
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and the largest pool")]
        let n = n as u32;
        let chain = Chain::new((first, late), (away, growth), often, (n as usize, &[(n, one)]));
        let seen = chain.seen(n);
        let (with, less) = (chain.over_means(n, &seen), chain.over_means(n - 1, &chain.seen(n - 1)));
        let merged = Chain::new((first + late, zero), (away, growth), one, (n as usize, &[(n, one)]));
        let merged = merged.over_means(n, &merged.seen(n));
        let over = |less: S, full: S| if full > 0.0 { less / full } else { zero };
        // The own one is counted by the chance of overtaking it.
        let others = (seen.late - own) / requests.late();
        let factors = Factors {
            with: (with.waiting, with.first),
            less: (over(less.means.0, with.means.0), over(less.means.1, with.means.1)),
            merged: (merged.waiting, merged.first),
            guessed,
            is_of_customers: are_customers,
        };
        Self { factors: Some(factors), others: if others > 0.0 { others } else { zero }, of_customers: false }
    }

    /// Takes of threads what follows from how many of them are busy, with executions that take `service`, over what is there with all customers or without one;
    /// what they have there.
    pub(super) fn find_of_busy(&mut self, requested: &Requested<S>, busy: &Busy<'_, S>, service: S, of_all: bool) -> Option<OfBusy<S>> {
        let factors = self.factors.as_mut()?;
        let of = requested.chain_of_busy(busy, service, false).of_busy(requested.own, busy)?;
        let merged = requested.chain_of_busy(busy, service, true).of_busy(S::from(0.0), busy)?;
        factors.with = (of.waiting.left(of_all), of.first.left(of_all));
        factors.merged = (merged.waiting.left(of_all), merged.first.left(of_all));
        let others = of.late / requested.load;
        self.others = if others > 0.0 { others } else { S::from(0.0) };
        Some(of)
    }

    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        self.factors.is_some()
    }

    /// The factors on those waiting and in the first phase, of those without them. `remaining` is `ψ` of [`removal`](super::super::removal).
    pub fn with(&self, (waiting, first): (S, S), seen: (S, S), remaining: S, share: f64, are_known: bool) -> (S, S) {
        let Some(Factors { with, less, merged, guessed, is_of_customers }) = self.factors else { return (waiting, first) };
        if !is_of_customers {
            return (waiting + (with.0 - merged.0) * seen.0, first + (with.1 - merged.1) * seen.1);
        }
        let factor = |without: S, with: S, less: S, merged: S| {
            let less = if are_known { less } else { S::from(guessed) };
            let factor = without + (with - less - (merged - less) * remaining) * share;
            if factor > 0.0 { factor } else { S::from(0.0) }
        };
        (factor(waiting, with.0, less.0, merged.0), factor(first, with.1, less.1, merged.1))
    }
}

/// Finds it at a station for the customers of all reference tasks that call there, of whom the Linearizer takes one away: these are taken to be alike. By
/// position of the pools at the station.
pub(super) fn find_of_customers<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, left: &mut [Left<S>]) {
    if layout.ends_at_reply || layout.open {
        return;
    }
    let is_of_customers = |pool: usize| sweep.net.tasks[layout.pools[pool]].class.is_some();
    let pools = || (0..layout.pools.len()).filter(|&pool| is_of_customers(pool));
    let comes = |(&arc, &pool): (&usize, &Option<usize>)| pool.is_some_and(&is_of_customers) || sweep.flow.arc_rate[arc] <= 0.0;
    if pools().next().is_none() || !layout.arcs.iter().zip(&layout.pool_of).all(comes) {
        return;
    }
    let callers = ComesAgain { sweep, layout };
    let sources: f64 = pools().map(|pool| callers.sources(pool)).sum();
    if !(2.0..=LARGEST_POOL).contains(&sources) {
        return;
    }
    let servers = sweep.net.stations[layout.station].servers;
    let requests = requests_of(sweep, layout, is_of_customers, |_| S::from(1.0));
    let found_own = || {
        let of = |pool: usize| requests_of(sweep, layout, |other| other == pool, |_| S::from(1.0)).number;
        pools().fold(S::from(0.0), |sum, pool| sum + callers.find_own(pool) * of(pool)) / requests.number
    };
    let of_classes = Sources { n: sources, are_customers: true, growth: &[] };
    let late = Late::find(&requests, of_classes, (servers, S::from(servers)), found_own);
    let late = Late { of_customers: true, ..late };
    pools().for_each(|pool| left[pool] = Left { late, ..Left::nothing() });
}

/// Finds it at the stops of a task, of so many executions a unit of time; and how much longer its threads are away the more of them
/// are, of servers that go on after the reply.
pub(super) fn find_at_stops<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layouts: &[Layout],
    (task, executions): (usize, S),
    stops: &mut [Stop<S>],
    crowds: &mut Crowds<S>,
) {
    for place in 0..stops.len() {
        let Stop { station, requests, as_fast_as, .. } = stops[place];
        let layout = &layouts[station];
        let Some(pool) = layout.pools.iter().position(|&pool| pool == task) else { continue };
        let callers = ComesAgain { sweep, layout };
        let (n, are_customers) = (callers.sources(pool), callers.are_customers(pool));
        let servers = sweep.net.stations[station].servers;
        let growth = if requests.phases(as_fast_as).is_some() {
            away_from(stops, (place, sweep.net.n_processors), executions.recip() * n, sweep.populations.caps[task])
        } else {
            Vec::new()
        };
        // Of unlike services the mean tells too little.
        let mut targets =
            layout.arcs.iter().zip(&layout.pool_of).filter(|(_, of)| **of == Some(pool)).map(|(&arc, _)| sweep.net.arcs[arc].target);
        let first_target = targets.next();
        let is_of_one_entry = targets.all(|target| Some(target) == first_target);
        let stop = &mut stops[place];
        let sources = Sources { n, are_customers, growth: &growth };
        stop.late = Late::find(&requests, sources, (servers, as_fast_as), || callers.find_own(pool));
        if servers > 1.0 {
            crowds.set_away(station, growth);
        } else if let Some((first, late)) = requests.phases(as_fast_as).filter(|_| !are_customers && is_of_one_entry) {
            stop.requested = Some(Requested {
                first,
                late,
                number: requests.number / executions,
                there: (requests.wait + requests.first) / executions,
                own: callers.busy_find_own(pool),
                load: requests.late(),
                growth,
            });
        }
    }
}
