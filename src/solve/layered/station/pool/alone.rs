//! Exact mean value analysis of a pool alone, on its own stations: the equations of the parent module.

use super::{
    super::{
        busy::{Lost, chances_of_number},
        crowd::{Busy, Stay, ahead},
    },
    Late, Requests,
    late::Requested,
};
use crate::model::Scalar;

/// A station as a pool sees it.
pub(super) struct Stop<S> {
    pub station: usize,
    /// Its place, and the pool's there, among what is [`super::Left`].
    pub place: usize,
    pub demand: S,
    /// How much longer it is for those that no number of threads bounds: a wait that is left with one thread less.
    pub slowed: S,
    pub servers: S,
    /// How many servers there are; those that hold each other up as well.
    pub number: f64,
    /// Whether it is a processor of several servers, but fewer than there are threads.
    pub few_cores: bool,
    /// Whether its services follow from its own threads alone, or are the same however many are busy.
    pub is_alone: bool,
    /// Of such threads that hold each other up, how long a service takes while one of them is busy, two and so on, all of one execution; none elsewhere.
    pub services: Vec<S>,
    /// With which chances 0, 1 and so on are there, of one thread that is busy and more; none where that is not known.
    pub numbers: Vec<Vec<S>>,
    /// Whether nobody else comes, and nothing goes on after the reply.
    pub is_of_one_pool: bool,
    pub residence: S,
    /// By how much an execution is longer for each unit of time here.
    pub delay: S,
    pub before: (S, S),
    pub now: (S, S),
    pub others: Option<Others<S>>,
    /// What second phases change.
    pub late: Late<S>,
    /// What is requested there that goes on after the reply, of more customers than threads.
    pub requested: Option<Requested<S>>,
    pub requests: Requests<S>,
    /// Servers that do not hold each other up.
    pub as_fast_as: S,
    /// Whether nobody else comes.
    pub has_one_pool: bool,
    pub stay: Stay<S>,
}

/// What is there of a pool at a stop, of those waiting or of those in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence<S> {
    /// As an arrival finds it.
    found: S,
    /// With the arrival's own customer away, and with all customers there.
    less: S,
    full: S,
}

/// What an arrival finds of the other threads of its pool at a stop, where it is known how many of them are busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others<S> {
    pub waiting: Presence<S>,
    pub first: Presence<S>,
    /// `Π_s`, at few cores of its own.
    pub all_busy: Option<S>,
    /// Whether what is found is told over what is there with all customers ([`super::below`]), and not without the arrival's own.
    pub of_all: bool,
    /// What there is of those waiting and in service by which one customer less is told; none where others come as well.
    pub lost: Option<(Presence<S>, Presence<S>)>,
}

impl<S: Scalar> Presence<S> {
    pub fn none() -> Self {
        let zero = S::from(0.0);
        Self { found: zero, less: zero, full: zero }
    }

    /// `ψ`.
    pub fn left(&self, of_all: bool) -> S {
        let there = if of_all { self.full } else { self.less };
        if there > 0.0 { self.found / there } else { S::from(1.0) }
    }

    /// `d`, of so many customers.
    fn lost(&self, customers: f64) -> S {
        if self.full > 0.0 { (-(self.less / self.full) + 1.0) * customers } else { S::from(1.0) }
    }
}

impl<S: Scalar> Others<S> {
    /// What one of so many customers less takes away, where that is of this pool alone.
    pub fn lost(&self, customers: f64) -> Option<Lost<S>> {
        self.lost.map(|(waiting, first)| Lost { waiting: waiting.lost(customers), first: first.lost(customers) })
    }
}

/// How the queue of a pool alone is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    /// That of Seidmann et al.
    AtOne,
    /// By a binomial number of those that are there.
    Few,
    /// By the number of them that a network of the station and a delay has there.
    Own,
}

impl<S: Scalar> Stop<S> {
    /// Whether it is of several servers, cores or threads, where nobody else comes.
    fn has_several_own(&self) -> bool {
        self.is_of_one_pool && self.number > 1.0
    }

    /// How one finds the queue by which the threads are told that are busy.
    fn queue_of_busy(&self) -> Queue {
        match () {
            () if self.has_several_own() => Queue::Own,
            () if self.few_cores => Queue::Few,
            () => Queue::AtOne,
        }
    }

    /// How long one waits for so many others, of whom `length` are here in the mean, and how long it is served.
    fn wait(&self, length: S, others: f64, queue: Queue) -> (S, S) {
        let ahead = if queue == Queue::Few { ahead(length, others, self.servers.value()) } else { length };
        (self.demand * ahead / self.servers, self.demand)
    }

    /// The same, where others are there with these chances.
    fn wait_for(&self, chances: &[S]) -> (S, S) {
        let (mut wait, mut service) = (S::from(0.0), S::from(0.0));
        let full = self.services.last().copied().unwrap_or(self.demand);
        for (n, &chance) in (1_u32..).zip(chances) {
            // With the `n`th they leave at the rate of as many servers as are busy.
            let beyond = f64::from(n) - self.number;
            if beyond > 0.0 {
                wait += chance * full * (beyond / self.number);
            }
            service += chance * *self.services.get(n as usize - 1).unwrap_or(&full);
        }
        (wait, service)
    }

    /// The chance that all servers are busy.
    fn all_busy(&self, chances: &[S]) -> S {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fewer than there are threads")]
        let servers = self.number as usize;
        chances.iter().skip(servers).fold(S::from(0.0), |sum, &chance| sum + chance)
    }
}

/// Sets what is there of each stop's threads, waiting and as a pace, up to `strands`.
pub(super) fn shrink<S: Scalar>(stops: &mut [Stop<S>], strands: S, executions: S) {
    let mut alone = Alone::new(stops, executions.recip() * strands);
    let most = strands.value().ceil();
    let mut n = 1.0;
    while n <= most {
        if !alone.advance(stops, n, |stop| if stop.few_cores { Queue::Few } else { Queue::AtOne }) {
            return;
        }
        let beyond = -strands + n;
        for (stop, &now) in stops.iter_mut().zip(&alone.now) {
            let (earlier, last) = (stop.before, stop.now);
            (stop.before, stop.now) = (last, now);
            if beyond > 0.0 {
                let back = |from: (S, S), to: (S, S)| (from.0 + (to.0 - from.0) * beyond, from.1 + (to.1 - from.1) * beyond);
                (stop.before, stop.now) = (back(last, earlier), back(now, last));
            }
        }
        n += 1.0;
    }
}

/// Sets what an arrival finds of the other threads at each stop, by how many threads of the pool, whose execution takes `service`, are busy.
pub(super) fn find_others<S: Scalar>(stops: &mut [Stop<S>], busy: Busy<'_, S>, service: S, of_all: bool) {
    let Some((&full, before_full)) = busy.at_any_time.split_last().filter(|(_, fewer)| fewer.len() == busy.others.len()) else { return };
    let zero = S::from(0.0);
    stops.iter_mut().for_each(|stop| stop.numbers.clear());
    let mut alone = Alone::new(stops, service);
    let mut found = vec![(Presence::none(), Presence::none(), zero); stops.len()];
    let mut before = alone.now.clone();
    let mut n = 1.0;
    for (&chance, &at_any_time) in busy.others.iter().zip(before_full).skip(1) {
        if !alone.advance(stops, n, Stop::queue_of_busy) {
            return;
        }
        for ((((waiting, first, all_busy), stop), now), there) in found.iter_mut().zip(&mut *stops).zip(&alone.now).zip(&alone.there) {
            waiting.add((now.0, now.0), chance, at_any_time);
            first.add((now.1, now.1), chance, at_any_time);
            if stop.has_several_own() {
                *all_busy += chance * stop.all_busy(there);
                stop.numbers.push(there.clone());
            }
        }
        before.clone_from(&alone.now);
        n += 1.0;
    }
    if !alone.advance(stops, n, Stop::queue_of_busy) {
        return;
    }
    let last = alone.now.iter().zip(&alone.there).zip(before);
    for (((mut waiting, mut first, all_busy), stop), ((now, there), before)) in found.into_iter().zip(stops).zip(last) {
        // At several servers the chance to wait rests on how many threads there are at all.
        if stop.number > 1.0 && !stop.has_several_own() {
            continue;
        }
        if stop.has_several_own() {
            stop.numbers.push(there.clone());
        }
        waiting.add_last(now.0, now.0 - before.0, busy.all, full);
        first.add_last(now.1, now.1 - before.1, busy.all, full);
        let all_busy = stop.has_several_own().then_some(all_busy);
        stop.others = Some(Others { waiting, first, all_busy, of_all, lost: stop.is_of_one_pool.then_some((waiting, first)) });
    }
}

impl<S: Scalar> Presence<S> {
    /// Adds what so many busy threads have there, by the chances that an arrival finds them, and that they are there at any time.
    pub fn add(&mut self, (found, presence): (S, S), chance: S, at_any_time: S) {
        self.found += found * chance;
        self.less += presence * chance;
        self.full += presence * at_any_time;
    }

    /// Adds what all threads have, and have more than all but one: whom an arrival that finds them busy does not meet.
    pub fn add_last(&mut self, presence: S, more: S, all: S, at_any_time: S) {
        self.less += more * all;
        self.full += presence * at_any_time;
    }
}

/// How long an execution takes, `service` in the mean, while one thread is busy, two and so on; none where it takes no time.
pub(super) fn cycles<S: Scalar>(stops: &[Stop<S>], service: S, threads: f64) -> Vec<S> {
    let mut alone = Alone::new(stops, service);
    let mut cycles = Vec::new();
    let mut n = 1.0;
    while n <= threads {
        if !alone.advance(stops, n, Stop::queue_of_busy) {
            return Vec::new();
        }
        cycles.push(alone.cycle);
        n += 1.0;
    }
    cycles
}

/// How long one of so many threads, whose executions take `cycle` with what is before them, is away from a stop, by how many are away, relative to one alone.
pub(super) fn away_from<S: Scalar>(stops: &[Stop<S>], (from, n_processors): (usize, usize), cycle: S, threads: f64) -> Vec<S> {
    let mut alone = Alone { without: Some(from), ..Alone::new(stops, cycle) };
    let mut away = Vec::new();
    let mut n = 1.0;
    while n <= threads {
        if !alone.advance(stops, n, |stop| if stop.station < n_processors && stop.servers > 1.0 { Queue::Few } else { Queue::AtOne }) {
            return Vec::new();
        }
        away.push(alone.cycle);
        n += 1.0;
    }
    let of_one = away.first().copied();
    away.iter_mut().zip(of_one.into_iter().cycle()).for_each(|(time, of_one)| *time /= of_one);
    away
}

/// A pool alone.
struct Alone<S> {
    elsewhere: S,
    length: Vec<S>,
    /// Chances of how many are at a stop of its own, and the logarithm of the odds at which these were found.
    there: Vec<Vec<S>>,
    logs: Vec<Option<f64>>,
    /// Waiting, and the pace, by stop.
    now: Vec<(S, S)>,
    /// How long an execution takes.
    cycle: S,
    /// A stop that is left out.
    without: Option<usize>,
}

impl<S: Scalar> Alone<S> {
    /// Of no threads yet, each of whose executions takes, with what is before it, so long.
    fn new(stops: &[Stop<S>], cycle: S) -> Self {
        let zero = S::from(0.0);
        let elsewhere = stops.iter().fold(cycle, |left, stop| left - stop.delay * stop.residence);
        let elsewhere = if elsewhere > 0.0 { elsewhere } else { zero };
        let n = stops.len();
        Self {
            elsewhere,
            length: vec![zero; n],
            there: vec![vec![S::from(1.0)]; n],
            logs: vec![None; n],
            now: vec![(zero, zero); n],
            cycle: zero,
            without: None,
        }
    }

    /// From `n - 1` threads to `n`, with such queues at the stops; whether that takes any time.
    fn advance(&mut self, stops: &[Stop<S>], n: f64, queue: impl Fn(&Stop<S>) -> Queue) -> bool {
        let without = self.without;
        let is_visited = |k: usize| without != Some(k);
        self.cycle = self.elsewhere;
        for (k, (stop, now)) in stops.iter().zip(&mut self.now).enumerate().filter(|(k, _)| is_visited(*k)) {
            *now = match queue(stop) {
                Queue::Own => stop.wait_for(&self.there[k]),
                queue => stop.wait(self.length[k], n - 1.0, queue),
            };
            self.cycle += stop.delay * (now.0 + now.1);
        }
        if self.cycle <= 0.0 {
            return false;
        }
        let rate = self.cycle.recip() * n;
        for (k, (stop, now)) in stops.iter().zip(&mut self.now).enumerate().filter(|(k, _)| is_visited(*k)) {
            let (wait, service) = *now;
            let length = rate * wait + rate * if queue(stop) == Queue::AtOne { service / stop.servers } else { service };
            *now = (rate * (wait + stop.slowed), rate);
            self.length[k] = length;
            if queue(stop) == Queue::Own {
                chances_of_number(stop.number, (n, length), &stop.services, &mut self.logs[k], &mut self.there[k]);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: f64 = 0.5;

    /// A stop at so many servers, with the queue of few cores where these are several, of threads that do nothing else.
    fn stop(servers: f64) -> Stop<f64> {
        Stop {
            station: 0,
            place: 0,
            demand: DEMAND,
            slowed: 0.0,
            servers,
            number: servers,
            few_cores: false,
            services: Vec::new(),
            numbers: Vec::new(),
            is_alone: true,
            is_of_one_pool: true,
            residence: 2.0,
            delay: 1.0,
            before: (0.0, 0.0),
            now: (0.0, 0.0),
            others: None,
            late: Late::none(1.0),
            requested: None,
            requests: Requests { own: DEMAND, all: DEMAND, sent: 0.0, first: DEMAND, wait: 0.0, number: 1.0, delaying: 0.0 },
            as_fast_as: servers,
            has_one_pool: true,
            stay: Stay::new(DEMAND, DEMAND, 2.0 - DEMAND, servers),
        }
    }

    /// Three threads, all of which are where they are busy: `j - c` of `j` wait.
    #[test]
    fn an_arrival_finds_what_busy_threads_have_at_their_only_station() {
        let busy = Busy { others: &[0.1, 0.2, 0.7], all: 0.6, at_any_time: &[0.05, 0.15, 0.1, 0.7] };
        for (cores, waiting, first, all_busy) in
            [(1.0, [0.7, 0.7 + 0.6, 0.1 + 1.4], [0.9, 0.9, 0.95], None), (2.0, [0.0, 0.6, 0.7], [1.6, 1.6, 1.75], Some(0.7))]
        {
            let mut stops = [stop(cores)];
            find_others(&mut stops, Busy { ..busy }, 2.0, false);
            let others = stops[0].others.unwrap();
            let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
            // Paces are in services a unit of time.
            for (presence, expected, unit) in [(others.waiting, waiting, 1.0), (others.first, first, DEMAND)] {
                let found = [presence.found, presence.less, presence.full].map(|x| x * unit);
                assert!(found.iter().zip(expected).all(|(x, y)| is_near(*x, y)), "{cores}: {found:?}, not {expected:?}");
            }
            assert!(is_near(others.waiting.left(false), waiting[0] / waiting[1]), "{cores}");
            let lost = others.lost(10.0).unwrap();
            assert!(is_near(lost.waiting, 10.0 * (1.0 - waiting[1] / waiting[2])), "{cores}");
            assert!(others.all_busy.zip(all_busy).is_none_or(|(x, y)| is_near(x, y)) && others.all_busy.is_some() == all_busy.is_some());
        }
    }

    #[test]
    fn where_it_is_not_known_how_many_are_busy_nothing_is_found() {
        let mut stops = [stop(1.0)];
        find_others(&mut stops, Busy { others: &[0.3, 0.7], all: 0.0, at_any_time: &[] }, 2.0, false);
        assert!(stops[0].others.is_none());
    }
}
