//! Service of a pool while `n` of its threads are busy: they hold each other up at the stations that they visit, and most when
//! requests wait for one of them.
//!
//! Mean value analysis of `n` busy threads, none of them idle, what the station makes them wait for others held as it is:
//!
//! ```text
//! S(n) = Z + Σ_k β_k [f_k + O_k + w_k(n)],   X(n) = n / S(n),   Q_k(n) = X(n) (L_k + w_k(n)),   Q_k(0) = 0
//! w_k(n) = κ_k L_k E[(N - c + 1)⁺] / c,   N binomial of n-1 with mean Q_k(n-1)              = κ_k L_k Q_k(n-1) for one server
//! W°_k = Σ_j q(j) w°_k(j+1),   κ_k = (T^-p + (W°_k / W_k)^p)^(-1/p),   O_k = W_k - κ_k W°_k
//! ```
//!
//! with `w°` from the same recursion with `O = 0` and `κ = 1`. `κ` is the lesser of `T` and `W / W°`, but without the corner
//! between them, at which a fit would get stuck; `T` leaves room for demands that vary more. What counts is `S(n)` over its mean
//! with so many other busy threads as an arrival finds, taken to be the mean service. How many these are follows from the queue of all that
//! may come to the pool, with services `S(n)` ([`super::busy`], `there`: of `m` threads and more, `m - 1` others), and these from them: the
//! first `q` is binomial, of threads each busy with chance `ρ`, and two passes are made. Of pools that go on after the reply the binomial
//! number is taken, but before many sources ([`super::pool`]). That varies less than the queue: 2, 4 and 10 threads before one core at .9 of it, 50 customers: `E[B(B-1)]/E[B]²` is
//! .56, .90 and 1.28 of the busy threads `B` (.5, .75 and .9). Requests wait for a thread at the pace of `S(m)`, not of the mean service,
//! and the chance that they must ([`super::busy`]) is that of servers which are slower the more of them work.
//!
//! Of a pool that nobody meets where it goes, down to the processors, `S(n)` is the cycle of `n` threads of that network ([`super::pool`], `alone`), and waits have no part in it. How many are busy
//! of a pool that only one other calls is told by how many are of that (`below`).
//!
//! | symbol | is |
//! |---|---|
//! | `m`, `ρ` | threads, and the share of them that is busy |
//! | `Z` | time of an execution elsewhere |
//! | `β_k` | what a unit of time at `k` adds to an execution ([`super::pool`]) |
//! | `f_k`, `W_k` | first phases at `k` in one execution, and waits for them |
//! | `L_k`, `c` | service at `k` in one execution, later phases too, and servers there; of threads that hold each other up, the share of Seidmann's queue, that is, over as many servers as are as fast all together, before one |
//! | `O_k`, `κ_k` | waits for requests of others; what is believed of those for the own ones |
//! | `q(j)` | chance that an arrival finds `j` other threads busy |
//! | `W°` | waits for these |
//! | `h = Π_k (1 - m L_k / (c S(m)))` | chance that no station is busy with a full pool ([`super::rests`]) |
//! | `T`, `p` | most that is believed of own waits; how sharp the corner is |

mod numbers;

use std::ops::Range;

pub(super) use self::numbers::{Busy, Come, HowMany, Numbers};
use super::busy::{Lost, chances_of_load, chances_of_there, lost};
use crate::model::Scalar;

/// How often the numbers of busy threads are found from services and these from them.
const PASSES: usize = 2;

/// Sharper corners stop fits, rounder ones make pools at one server too slow; with a higher `T` saturated servers of many pools have
/// waits that are too long.
const CORNER: Corner = Corner { most: 1.1, doublings: 3 };

/// Services of the pools over their means, by the numbers of busy threads.
#[derive(Clone, Debug)]
pub(in super::super) struct Crowds<S> {
    services: Vec<S>,
    /// Where a station's services stand; nowhere for one whose threads do not meet.
    of_station: Vec<Range<usize>>,
    /// By station, the mean of these where they follow from the pool alone.
    means: Vec<Option<S>>,
    /// By station, whether the threads that serve there visit no other that they could meet at.
    never_meet: Vec<bool>,
    room: Vec<Stay<S>>,
    /// Of numbers of busy threads, as an arrival finds them and at any time; none where that is not known.
    found: Vec<S>,
    at_any_time: Vec<S>,
    /// `q`.
    others: Vec<S>,
    /// The same of all pools where it is known how many come, and where a station's stand.
    kept: Vec<S>,
    kept_of: Vec<Range<usize>>,
    /// `w°`, by number of busy threads and stay.
    alone: Vec<S>,
    /// What one customer less leaves, by station, where that was asked.
    lost: Vec<Option<Lost<S>>>,
    /// `h`, by station.
    slack: Vec<S>,
    /// How much longer threads are away from a station by how many are away; empty where that was not asked.
    away: Vec<Vec<S>>,
    corner: Corner,
}

/// How far own waits are believed: `T`, and `p` as a power of two, so that squares and square roots do.
#[derive(Clone, Copy, Debug)]
struct Corner {
    most: f64,
    doublings: u32,
}

/// What one execution of a pool does at a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay<S> {
    /// `f`.
    pub first: S,
    /// `L`.
    pub held: S,
    /// `W`.
    pub wait: S,
    pub servers: f64,
    /// `β`.
    delay: S,
    /// `Q`.
    length: S,
    /// `w`.
    own_wait: S,
    /// `O`.
    others: S,
    /// `κ`.
    scale: S,
}

impl<S: Scalar> Stay<S> {
    pub(super) fn new(first: S, held: S, wait: S, servers: f64) -> Self {
        let zero = S::from(0.0);
        Self { first, held, wait, servers, delay: S::from(1.0), length: zero, own_wait: zero, others: zero, scale: S::from(1.0) }
    }

    /// The same, where an execution is so much longer for each unit of time here.
    pub(super) fn delaying(self, delay: S) -> Self {
        Self { delay, ..self }
    }

    /// How long one of `n` threads waits for the others.
    fn wait_for(&self, n: f64) -> S {
        self.scale * self.held * ahead(self.length, n - 1.0, self.servers) / self.servers
    }
}

/// `E[(N - c + 1)⁺]`: how many of so many `others`, of whom `length` are there in the mean, have to leave before one is served by one of `servers`.
pub(super) fn ahead<S: Scalar>(length: S, others: f64, servers: f64) -> S {
    let zero = S::from(0.0);
    let idle = servers - 1.0;
    if others < servers || length <= 0.0 {
        return zero;
    }
    if idle <= 0.0 || length >= others {
        return length - idle;
    }
    let there = length / others;
    let away = -there + 1.0;
    let (more, less) = (there / away, away / there);
    if length > idle && idle < 0.5 * others {
        // Those that find a server idle are the few. Elsewhere this difference may be next to nothing beside its parts, and their rounding most of it.
        let (mut chance, mut beyond, mut j) = (whole_power(away, others), length - idle, 0.0);
        while j < idle {
            beyond += chance * (idle - j);
            chance *= more * ((others - j) / (j + 1.0));
            j += 1.0;
        }
        return beyond;
    }
    // From the likelier end, so that no chance which counts is lost below the smallest number.
    let mut beyond = zero;
    if there > 0.5 {
        let (mut chance, mut j) = (whole_power(there, others), others);
        while j > idle {
            beyond += chance * (j - idle);
            chance *= less * (j / (others - j + 1.0));
            j -= 1.0;
        }
        return beyond;
    }
    let (mut chance, mut j) = (whole_power(away, others), 0.0);
    while j < others {
        chance *= more * ((others - j) / (j + 1.0));
        j += 1.0;
        if j <= idle {
            continue;
        }
        let added = chance * (j - idle);
        beyond += added;
        if added <= beyond.value() * f64::EPSILON {
            break;
        }
    }
    beyond
}

impl<S: Scalar> Crowds<S> {
    pub fn new(n_stations: usize) -> Self {
        Self {
            services: Vec::new(),
            of_station: vec![0..0; n_stations],
            means: vec![None; n_stations],
            never_meet: vec![false; n_stations],
            room: Vec::new(),
            found: Vec::new(),
            at_any_time: Vec::new(),
            others: Vec::new(),
            kept: Vec::new(),
            kept_of: vec![0..0; n_stations],
            alone: Vec::new(),
            lost: vec![None; n_stations],
            slack: vec![S::from(1.0); n_stations],
            away: vec![Vec::new(); n_stations],
            corner: CORNER,
        }
    }

    /// `h` of the pool that serves at a station.
    pub(super) fn slack(&self, station: usize) -> S {
        self.slack[station]
    }

    pub(super) fn clear(&mut self) {
        self.services.clear();
        self.of_station.fill(0..0);
        self.means.fill(None);
        self.never_meet.fill(false);
        self.kept.clear();
        self.kept_of.fill(0..0);
        self.lost.fill(None);
        self.slack.fill(S::from(1.0));
        self.away.iter_mut().for_each(Vec::clear);
    }

    /// `S(1)` to `S(m)` of the pool that serves at a station, over its mean service; empty where they are all the same.
    pub(super) fn at(&self, station: usize) -> &[S] {
        &self.services[self.of_station[station].clone()]
    }

    /// Whether the threads that serve at a station visit no other that they could meet at.
    pub(super) fn never_meet(&self, station: usize) -> bool {
        self.never_meet[station]
    }

    /// The mean of these services, where they follow from the pool alone.
    pub(super) fn mean_alone(&self, station: usize) -> Option<S> {
        self.means[station]
    }

    /// How much longer the threads of a pool are away from a station by how many are away: of the only pool that comes there; of several, of one of them.
    pub(super) fn away(&self, station: usize) -> &[S] {
        &self.away[station]
    }

    pub(super) fn set_away(&mut self, station: usize, away: Vec<S>) {
        self.away[station] = away;
    }

    /// `q` of the pool that serves at a station; empty where it is not known.
    pub(super) fn others(&self, station: usize) -> &[S] {
        &self.kept[self.kept_of[station].clone()]
    }

    /// Adds the pool of `station`, its threads, what tells how many are busy, `S(n)` of one that nobody meets where it goes, how many are busy in the mean,
    /// how long one of its executions takes, and where; whether they meet.
    pub(super) fn add(
        &mut self,
        station: usize,
        threads: f64,
        mut how_many: HowMany<'_, S>,
        of_alone: Option<Vec<S>>,
        (busy, service): (S, S),
        stays: impl Iterator<Item = Stay<S>>,
    ) -> bool {
        let zero = S::from(0.0);
        self.room.clear();
        self.room.extend(stays);
        let first = self.room.iter().fold(zero, |sum, s| sum + s.delay * s.first);
        let elsewhere = self.room.iter().fold(service - first, |left, s| left - s.delay * s.wait);
        let alone = first + if elsewhere > 0.0 { elsewhere } else { zero };
        self.never_meet[station] = self.room.is_empty();
        if alone <= 0.0 || self.room.is_empty() {
            return false;
        }
        if of_alone.is_none() {
            self.find_alone(alone, threads);
        }
        let share = busy / threads;
        binomial(threads - 1.0, if share < 1.0 { share } else { S::from(1.0) }, &mut self.others);
        self.found.clear();
        self.at_any_time.clear();
        if let HowMany::Numbers(numbers) = &how_many {
            self.others = numbers.others();
            self.found.clone_from(&numbers.found);
            self.at_any_time.clone_from(&numbers.at_any_time);
        }
        let from = self.services.len();
        for _ in 0..if matches!(how_many, HowMany::Come(_)) { PASSES } else { 1 } {
            self.services.truncate(from);
            if let Some(services) = &of_alone {
                self.services.extend_from_slice(services);
            } else {
                self.calibrate();
                self.crowd(alone, threads);
            }
            if let HowMany::Come(come) = &mut how_many {
                self.find_others(threads, come, busy, from);
            }
        }
        if !matches!(how_many, HowMany::Mean) {
            let from = self.kept.len();
            self.kept.extend_from_slice(&self.others);
            self.kept_of[station] = from..self.kept.len();
        }
        self.slack[station] = self.find_slack(threads);
        let grown = &mut self.services[from..];
        let mean = grown.iter().zip(&self.others).fold(zero, |sum, (s, chance)| sum + *s * *chance);
        grown.iter_mut().for_each(|s| *s /= mean);
        self.means[station] = of_alone.map(|_| mean);
        self.of_station[station] = from..self.services.len();
        true
    }

    /// Chances of busy threads at the services from `from` on.
    fn find_others(&mut self, threads: f64, come: &mut Come<'_, S>, busy: S, from: usize) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the threads of a pool")]
        let m = threads as u32;
        let services = &self.services[from..];
        if come.sources.is_finite() {
            let chances = (&mut self.found, &mut self.at_any_time);
            chances_of_there(m, (come.sources, come.there), services, come.found, chances);
        } else {
            chances_of_load(m, busy, services, come.found, &mut self.found);
            self.at_any_time.clone_from(&self.found);
        }
        let [fewer @ .., last, all] = &self.found[..] else { return };
        self.others.clear();
        self.others.extend_from_slice(fewer);
        self.others.push(*last + *all);
    }

    /// `h`, at the services added last.
    fn find_slack(&self, threads: f64) -> S {
        let rate = self.services.last().map_or(S::from(0.0), |s| s.recip() * threads);
        self.room.iter().fold(S::from(1.0), |left, stay| {
            let used = rate * stay.held / stay.servers;
            if used < 1.0 { left * (-used + 1.0) } else { S::from(0.0) }
        })
    }

    /// Finds what one of the sources less leaves at a station of so many servers, where so many are in the mean.
    pub(super) fn find_lost(&mut self, station: usize, servers: f64, come: Come<'_, S>) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fewer than the customers")]
        let m = servers as u32;
        let services = &self.services[self.of_station[station].clone()];
        self.lost[station] = lost(m, (come.sources, come.there), services, come.found);
    }

    /// What one source less leaves at a station that the threads of a pool visit.
    pub(super) fn set_lost(&mut self, station: usize, lost: Lost<S>) {
        self.lost[station] = Some(lost);
    }

    /// What one source less leaves at a station, where that was asked.
    pub fn lost(&self, station: usize) -> Option<Lost<S>> {
        self.lost[station]
    }

    /// How many threads of the pool that was added last are busy.
    pub(super) fn busy(&self) -> Busy<'_, S> {
        Busy { others: &self.others, all: self.found.last().copied().unwrap_or(S::from(0.0)), at_any_time: &self.at_any_time }
    }

    /// How many threads of the pool that was added last are busy, to keep; none where that is not known.
    pub(super) fn numbers(&self) -> Option<Numbers<S>> {
        let is_known = !self.at_any_time.is_empty() && self.found.len() == self.at_any_time.len();
        is_known.then(|| Numbers { found: self.found.clone(), at_any_time: self.at_any_time.clone() })
    }

    /// Services by the number of busy threads, and what these leave at the stations.
    fn crowd(&mut self, alone: S, threads: f64) {
        let mut n = 1.0;
        while n <= threads {
            let service = self.advance(alone, n, |stay| stay.others);
            self.services.push(service);
            n += 1.0;
        }
    }

    /// `S(n)`, and from `Q(n-1)` to `Q(n)`.
    fn advance(&mut self, alone: S, n: f64, others: impl Fn(&Stay<S>) -> S) -> S {
        let mut service = alone;
        for stay in &mut self.room {
            stay.own_wait = stay.wait_for(n);
            service += stay.delay * (stay.own_wait + others(stay));
        }
        let rate = service.recip() * n;
        for stay in &mut self.room {
            let length = rate * (stay.held + stay.own_wait);
            stay.length = if length > n { S::from(n) } else { length };
        }
        service
    }

    /// `w°`.
    fn find_alone(&mut self, alone: S, threads: f64) {
        self.alone.clear();
        let mut n = 1.0;
        while n <= threads {
            self.advance(alone, n, |_| S::from(0.0));
            self.alone.extend(self.room.iter().map(|s| s.own_wait));
            n += 1.0;
        }
    }

    /// `O` and `κ`, at these chances of other busy threads.
    fn calibrate(&mut self) {
        let n_stays = self.room.len();
        for (k, stay) in self.room.iter_mut().enumerate() {
            let waits = self.alone.chunks_exact(n_stays).zip(&self.others);
            let own = waits.fold(S::from(0.0), |sum, (waits, &chance)| sum + chance * waits[k]);
            stay.length = S::from(0.0);
            stay.scale = self.corner.believed(own, stay.wait);
            stay.others = stay.wait - stay.scale * own;
        }
    }
}

/// `x` to the power of a whole number.
fn whole_power<S: Scalar>(x: S, n: f64) -> S {
    #[expect(clippy::cast_possible_truncation, reason = "at most the threads of a pool")]
    x.powi(n as i32)
}

/// Chances that `0` to `many` of so many, each with chance `share`, are there.
fn binomial<S: Scalar>(many: f64, share: S, chances: &mut Vec<S>) {
    let rest = -share + 1.0;
    let reverse = share > rest;
    let (often, seldom) = if reverse { (share, rest) } else { (rest, share) };
    let odds = seldom / often;
    // From the likelier end, so that no chance which counts is lost below the smallest number.
    let mut chance = whole_power(often, many);
    chances.clear();
    let mut n = 0.0;
    while n <= many {
        chances.push(chance);
        chance *= odds * ((many - n) / (n + 1.0));
        n += 1.0;
    }
    if reverse {
        chances.reverse();
    }
}

impl Corner {
    /// `κ`.
    fn believed<S: Scalar>(self, own: S, wait: S) -> S {
        let power = |x: S| (0..self.doublings).fold(x, |x, _| x * x);
        let root = |x: S| (0..self.doublings).fold(x, |x, _| x.sqrt());
        let round = |ratio: S| root(power(ratio) + 1.0).recip();
        let most = own * self.most;
        if wait <= 0.0 {
            S::from(0.0)
        } else if most < wait {
            round(most / wait) * self.most
        } else {
            round(wait / most) * wait / own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardly rounded.
    const SHARP: Corner = Corner { most: 1.0, doublings: 17 };
    const SAME: f64 = 1e-4;

    fn times(threads: f64, busy: f64, service: f64, stays: &[Stay<f64>]) -> Vec<f64> {
        let mut crowds = Crowds { corner: SHARP, ..Crowds::new(1) };
        crowds.add(0, threads, HowMany::Mean, None, (busy, service), stays.iter().copied());
        crowds.at(0).iter().map(|s| s * service).collect()
    }

    fn assert_are(found: &[f64], expected: &[f64]) {
        let alike = found.iter().zip(expected).all(|(f, e)| (f - e).abs() < SAME);
        assert!(found.len() == expected.len() && alike, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn threads_that_share_one_server_alone_take_as_many_times_as_long() {
        assert_are(&times(3.0, 3.0, 1.5, &[Stay::new(0.5, 0.5, 1.0, 1.0)]), &[0.5, 1.0, 1.5]);
    }

    #[test]
    fn two_threads_between_a_server_and_elsewhere() {
        // Alone 1 + 2; of two, one meets the other at the server for a third of the time.
        let wait = 1.0 / 3.0;
        assert_are(&times(2.0, 2.0, 3.0 + wait, &[Stay::new(1.0, 1.0, wait, 1.0)]), &[3.0, 3.0 + wait]);
    }

    #[test]
    fn waits_for_others_do_not_depend_on_the_number_of_threads() {
        let found = times(2.0, 1e-12, 3.5, &[Stay::new(1.0, 1.0, 0.5, 1.0)]);
        assert!((found[0] - 3.5).abs() < 1e-9, "{found:?}");
        assert!(found[1] > 3.5 && found[1] < 4.0, "{found:?}");
    }

    #[test]
    fn as_many_servers_as_threads_make_nobody_wait_and_fewer_do() {
        // Where four are busy all three others are there, and one of three servers is awaited.
        let awaited = 2.0 / 3.0;
        assert_are(&times(4.0, 4.0, 2.0 + awaited, &[Stay::new(2.0, 2.0, awaited, 3.0)]), &[2.0, 2.0, 2.0, 2.0 + awaited]);
    }

    #[test]
    fn own_waits_are_believed_as_far_as_the_station_has_them() {
        // Three threads at one server would make each other wait for 1; the station makes them wait for half of that.
        assert_are(&times(3.0, 3.0, 1.0, &[Stay::new(0.5, 0.5, 0.5, 1.0)]), &[0.5, 0.75, 1.0]);
        let believed = [0.1, 0.5, 1.0, 2.0, 50.0].map(|wait| CORNER.believed(1.0, wait));
        assert!(believed.iter().zip([0.1, 0.5, 1.0, 1.1, 1.1]).all(|(b, limit)| *b <= limit && *b > 0.95 * limit), "{believed:?}");
    }

    #[test]
    fn busy_threads_are_counted_at_any_share() {
        for share in [0.0, 0.3, 0.5, 0.9, 1.0] {
            let mut chances = Vec::new();
            binomial(127.0, share, &mut chances);
            let (sum, mean) = chances.iter().zip(0u32..).fold((0.0, 0.0), |(sum, mean), (c, n)| (sum + c, mean + c * f64::from(n)));
            assert!((sum - 1.0_f64).abs() < 1e-12 && (mean - 127.0 * share).abs() < 1e-9, "{share}: {sum} {mean}");
        }
    }

    #[test]
    fn those_ahead_are_counted_to_the_last_digit_however_few() {
        // By fractions of whole numbers.
        let exact = [
            (0.5, 79.0, 20.0, 2.0105589934231335e-26),
            (2.0, 79.0, 20.0, 7.940212507512622e-15),
            (0.001, 127.0, 3.0, 1.626708956660507e-10),
            (60.0, 127.0, 100.0, 4.365798443365008e-13),
            (12.0, 30.0, 20.0, 0.0039927095703499674),
            (25.0, 30.0, 20.0, 6.002730652974618),
            (3.0, 127.0, 2.0, 2.048026557088243),
            (64.0, 127.0, 60.0, 5.575631419004547),
            (125.0, 127.0, 127.0, 0.13319842532250423),
            (126.5, 127.0, 127.0, 0.6059324044421842),
            (100.0, 127.0, 3.0, 98.0),
            (70.0, 127.0, 60.0, 11.053069519951134),
        ];
        for (length, others, servers, expected) in exact {
            let found: f64 = ahead(length, others, servers);
            assert!((found / expected - 1.0).abs() < 1e-12, "{length} of {others} before {servers}: {found}, expected {expected}");
        }
        assert_eq!([ahead(0.0, 9.0, 2.0), ahead(3.0, 9.0, 10.0), ahead(3.0, 9.0, 1.0), ahead(9.0, 9.0, 4.0)], [0.0, 0.0, 3.0, 6.0]);
    }

    #[test]
    fn threads_that_meet_nowhere_have_one_service() {
        assert!(times(4.0, 2.0, 1.0, &[]).is_empty());
    }
}
