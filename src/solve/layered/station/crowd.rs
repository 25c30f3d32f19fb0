//! Service of a pool while `n` of its threads are busy: they hold each other up at the stations that they visit, and most when
//! requests wait for one of them.
//!
//! Mean value analysis of `n` busy threads, none of them idle, what the station makes them wait for others held as it is:
//!
//! ```text
//! S(n) = Z + Σ_k [f_k + O_k + w_k(n)],   X(n) = n / S(n),   Q_k(n) = X(n) (L_k + w_k(n)),   Q_k(0) = 0
//! w_k(n) = κ_k L_k E[(N - c + 1)⁺] / c,   N binomial of n-1 with mean Q_k(n-1)              = κ_k L_k Q_k(n-1) for one server
//! W°_k = Σ_j C(m-1, j) ρʲ (1-ρ)^(m-1-j) w°_k(j+1),   κ_k = (T^-p + (W°_k / W_k)^p)^(-1/p),   O_k = W_k - κ_k W°_k
//! ```
//!
//! with `w°` from the same recursion with `O = 0` and `κ = 1`. `κ` is the lesser of `T` and `W / W°`, but without the corner
//! between them, at which a fit would get stuck; `T` leaves room for demands that vary more. What counts is `S(n)` over its mean
//! with that binomial number of other busy threads, taken to be the mean service. Requests wait for a thread at the pace of `S(m)`,
//! not of the mean service, and the chance that they must ([`super::busy`]) is that of servers which are slower the more of them work.
//!
//! | symbol | is |
//! |---|---|
//! | `m`, `ρ` | threads, and the share of them that is busy |
//! | `Z` | time of an execution elsewhere |
//! | `f_k`, `W_k` | first phases at `k` in one execution, and waits for them |
//! | `L_k`, `c` | service at `k` in one execution, later phases too, and servers there |
//! | `O_k`, `κ_k` | waits for requests of others; what is believed of those for the own ones |
//! | `W°` | waits for the other threads of the pool, if each of them is busy with chance `ρ` |
//! | `T`, `p` | most that is believed of own waits; how sharp the corner is |

use std::ops::Range;

use crate::model::Scalar;

/// Sharper corners stop fits, rounder ones make pools at one server too slow; with a higher `T` saturated servers of many pools have
/// waits that are too long.
const CORNER: Corner = Corner { most: 1.1, doublings: 3 };

/// Services of the pools over their means, by the numbers of busy threads.
#[derive(Clone, Debug)]
pub(in super::super) struct Crowds<S> {
    services: Vec<S>,
    /// Where a station's services stand; nowhere for one whose threads do not meet.
    of_station: Vec<Range<usize>>,
    room: Vec<Stay<S>>,
    /// Of numbers of other busy threads.
    chances: Vec<S>,
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
        Self { first, held, wait, servers, length: zero, own_wait: zero, others: zero, scale: S::from(1.0) }
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
        Self { services: Vec::new(), of_station: vec![0..0; n_stations], room: Vec::new(), chances: Vec::new(), corner: CORNER }
    }

    pub(super) fn clear(&mut self) {
        self.services.clear();
        self.of_station.fill(0..0);
    }

    /// `S(1)` to `S(m)` of the pool that serves at a station, over its mean service; empty where they are all the same.
    pub(super) fn at(&self, station: usize) -> &[S] {
        &self.services[self.of_station[station].clone()]
    }

    /// Adds the pool of `station`: its threads, how many of them are busy in the mean, how long one of its executions takes, and where.
    pub(super) fn add(&mut self, station: usize, threads: f64, busy: S, service: S, stays: impl Iterator<Item = Stay<S>>) {
        let zero = S::from(0.0);
        self.room.clear();
        self.room.extend(stays);
        let first = self.room.iter().fold(zero, |sum, s| sum + s.first);
        let elsewhere = self.room.iter().fold(service - first, |left, s| left - s.wait);
        let alone = first + if elsewhere > 0.0 { elsewhere } else { zero };
        if alone <= 0.0 || self.room.is_empty() {
            return;
        }
        let share = busy / threads;
        let share = if share < 1.0 { share } else { S::from(1.0) };
        self.calibrate(alone, share, threads);
        let from = self.services.len();
        let mut n = 1.0;
        while n <= threads {
            let crowded = self.advance(alone, n, |stay| stay.others);
            self.services.push(crowded);
            n += 1.0;
        }
        let grown = &mut self.services[from..];
        let mean = grown.iter().zip(&self.chances).fold(zero, |sum, (s, chance)| sum + *s * *chance);
        grown.iter_mut().for_each(|s| *s /= mean);
        self.of_station[station] = from..self.services.len();
    }

    /// `S(n)`, and from `Q(n-1)` to `Q(n)`.
    fn advance(&mut self, alone: S, n: f64, others: impl Fn(&Stay<S>) -> S) -> S {
        let mut service = alone;
        for stay in &mut self.room {
            stay.own_wait = stay.wait_for(n);
            service += stay.own_wait + others(stay);
        }
        let rate = service.recip() * n;
        for stay in &mut self.room {
            let length = rate * (stay.held + stay.own_wait);
            stay.length = if length > n { S::from(n) } else { length };
        }
        service
    }

    /// `O` and `κ`, each of the others being busy with chance `share`.
    fn calibrate(&mut self, alone: S, share: S, threads: f64) {
        let zero = S::from(0.0);
        let mut chances = std::mem::take(&mut self.chances);
        binomial(threads - 1.0, share, &mut chances);
        let mut n = 1.0;
        for &chance in &chances {
            self.advance(alone, n, |_| zero);
            self.room.iter_mut().for_each(|s| s.others += chance * s.own_wait);
            n += 1.0;
        }
        self.chances = chances;
        for stay in &mut self.room {
            let own = stay.others;
            stay.length = zero;
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
        crowds.add(0, threads, busy, service, stays.iter().copied());
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
