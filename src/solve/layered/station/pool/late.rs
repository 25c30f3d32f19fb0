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
//! times the Linearizer's factor, with `H̄ = s₂/(s₂ + z)` for `H` (the published layered example, of three threads, was 3 % fast at five users otherwise). So a pool
//! that has a server for itself and is away for an exponential time waits as in the chain. Customers of all reference tasks that call a server alone are one
//! such pool, of which one class meets one customer less of its own.

use super::{
    super::{
        Layout, Sweep,
        comes_again::ComesAgain,
        crowd::Busy,
        second_phase::{SeenOnArrival, away_at_all, seen_on_arrival},
        visit::SHORTEST_GAP,
    },
    LARGEST_POOL, Left, Requests,
    alone::Presence,
    believed, requests_of,
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

/// Requests of one execution at a server that goes on after the reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested<S> {
    /// `s₁` and `s₂`, slowed by the load of others.
    first: S,
    late: S,
    number: S,
    /// How long it is there, and waits.
    there: S,
    /// Second phases of all executions a unit of time.
    load: S,
}

/// Threads or customers that come to a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources {
    pub n: f64,
    /// Whether there is one for each customer.
    pub are_customers: bool,
}

/// What busy threads have at a server that goes on after the reply: those that wait, in the first phase, and second phases of others, as an arrival finds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfBusy<S> {
    pub waiting: Presence<S>,
    pub first: Presence<S>,
    late: S,
}

impl<S: Scalar> Requested<S> {
    /// By how many threads are busy, each of them for `service` in one execution; with second phases as parts of the first where they are merged.
    fn of_busy(&self, busy: &Busy<'_, S>, service: S, are_merged: bool) -> Option<OfBusy<S>> {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let (&full, fewer) = busy.at_any_time.split_last().filter(|(_, fewer)| fewer.len() == busy.others.len())?;
        let least = (self.first + self.late) * SHORTEST_GAP;
        let away = (service - self.there) / self.number;
        let away = if away > least { away } else { least };
        let (first, late) = if are_merged { (self.first + self.late, zero) } else { (self.first, self.late) };
        let own = late / (late + away);
        let mut of = OfBusy { waiting: Presence::none(), first: Presence::none(), late: zero };
        let mut before = (zero, zero);
        let mut n = 0;
        for (&chance, &at_any_time) in busy.others.iter().zip(fewer) {
            // Of `n` that are busy, and with the arrival itself.
            let seen = seen_on_arrival(n + 1, (away, one), first, late);
            let now = seen.over_means(f64::from(n + 1), away, first, late).means;
            of.waiting.add((seen.waiting, before.0), chance, at_any_time);
            of.first.add((seen.first, before.1), chance, at_any_time);
            of.late += chance * (seen.late - own);
            if n + 1 == busy.others.len() as u32 {
                of.waiting.add_last(now.0, now.0 - before.0, busy.all, full);
                of.first.add_last(now.1, now.1 - before.1, busy.all, full);
            }
            before = now;
            n += 1;
        }
        Some(of)
    }
}

impl<S: Scalar> Late<S> {
    pub fn none(others: S) -> Self {
        Self { factors: None, others, of_customers: false }
    }

    /// Finds it for `sources` with these requests to so many servers, which are as fast as so many others; `found_own` is `H`, asked where there is a source
    /// for each customer.
    pub(super) fn find(
        requests: &Requests<S>,
        Sources { n, are_customers }: Sources,
        (servers, as_fast_as): (f64, S),
        executions: S,
        found_own: impl FnOnce() -> S,
    ) -> (Self, Option<Requested<S>>) {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let guessed = 1.0 - n.recip();
        let none = Self::none(S::from(guessed));
        if n < 2.0 || servers > 1.0 || requests.number <= 0.0 || requests.own - requests.first <= 0.0 {
            return (none, None);
        }
        // Others slow the server.
        let of_server = requests.number * (-believed((requests.all - requests.own) / as_fast_as) + 1.0);
        let (first, late) = (requests.first / of_server, (requests.own - requests.first) / of_server);
        if first <= 0.0 {
            return (none, None);
        }
        let least = (first + late) * SHORTEST_GAP;
        let away = (-(requests.wait + requests.first) + n) / requests.number;
        let away = if away > least { away } else { least };
        // Of more customers than threads, what is known is what one thread less leaves.
        let (own, often) = if are_customers {
            let own = found_own();
            (own, away_at_all(own, away, late))
        } else {
            (late / (late + away), one)
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and the largest pool")]
        let of = |n: f64| seen_on_arrival(n as u32, (away, often), first, late);
        let over_means = |n: f64, seen: &SeenOnArrival<S>| seen.over_means(n, away, first, late);
        let seen = of(n);
        let (with, less) = (over_means(n, &seen), over_means(n - 1.0, &of(n - 1.0)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and the largest pool")]
        let merged = seen_on_arrival(n as u32, (away, one), first + late, zero).over_means(n, away, first + late, zero);
        let over = |less: S, full: S| if full > 0.0 { less / full } else { zero };
        // The own one is counted by the chance of overtaking it.
        let rest = (seen.late - own) / (requests.own - requests.first);
        let factors = Factors {
            with: (with.waiting, with.first),
            less: (over(less.means.0, with.means.0), over(less.means.1, with.means.1)),
            merged: (merged.waiting, merged.first),
            guessed,
            is_of_customers: are_customers,
        };
        let requested = Requested {
            first,
            late,
            number: requests.number / executions,
            there: (requests.wait + requests.first) / executions,
            load: requests.own - requests.first,
        };
        (
            Self { factors: Some(factors), others: if rest > 0.0 { rest } else { zero }, of_customers: false },
            (!are_customers).then_some(requested),
        )
    }

    /// Takes of threads what follows from how many of them are busy, with executions that take `service`; what they have there.
    pub(super) fn find_of_busy(&mut self, requested: &Requested<S>, busy: &Busy<'_, S>, service: S) -> Option<OfBusy<S>> {
        let factors = self.factors.as_mut()?;
        let of = requested.of_busy(busy, service, false)?;
        let merged = requested.of_busy(busy, service, true)?;
        factors.with = (of.waiting.left(), of.first.left());
        factors.merged = (merged.waiting.left(), merged.first.left());
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
    let (late, _) =
        Late::find(&requests, Sources { n: sources, are_customers: true }, (servers, S::from(servers)), S::from(1.0), found_own);
    let late = Late { of_customers: true, ..late };
    pools().for_each(|pool| left[pool] = Left { late, ..Left::nothing() });
}
