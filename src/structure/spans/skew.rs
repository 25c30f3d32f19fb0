//! Differences between the clocks of hosts, estimated from requests that both hosts saw.
//!
//! Input: for each request from a client on host A that was served on host B, the four times c₀ ≤ c₁ (sent, reply received;
//! A's clock) and s₀ ≤ s₁ (began, ended; B's clock); output: θ(A, B), how far B's clock is ahead of A's, with its bounds, and
//! from these the clocks of all hosts that requests join.
//!
//! A request is served after its sending, and its reply received after it began to be served, so that (as in the exchange of
//! time stamps of the network time protocol)
//!
//! | bound | holds |
//! |---|---|
//! | s₀ − c₁ ≤ θ ≤ s₀ − c₀ | for every request |
//! | s₁ − c₁ ≤ θ | unless the server works on after its reply: a second phase |
//!
//! Over the requests of a pair of hosts, those made from B to A with the signs turned round:
//!
//! - The bounds of the first kind are the extremes, where these leave room for any θ; else, as a clock drifts or a time is
//!   wrong, the quantiles of 5 % and 95 %.
//! - A bound of the second kind beyond the opposite one of the first kind is that of a second phase, and left out. Of the
//!   rest the quantile of 5 % or 95 % counts, as some are second phases no longer than the shortest wait.
//! - L is the largest lower bound, U the least upper one. θ̂ = 0 where L ≤ 0 ≤ U and clocks
//!   *agree*: no correction that is not needed. Otherwise the middle; where only first bounds of one direction are there (each request has a second phase), the one that waits
//!   tell, as the shortest of many is short.
//! - Clocks agree if bounds of the first kind leave room for θ = 0 in more than half of the pairs with [`TRUSTED`] requests (or
//!   there are none). Where most clocks are seen to be wrong, wide bounds around 0 do not say that these two are right.
//! - Second phases that are always shorter than the wait before them narrow the bounds wrongly: what is told of a pair are the
//!   bounds of the first kind.
//! - Where these contradict one another the times cannot be explained by one difference: θ̂ = 0 if servers do not begin before they are asked, else
//!   that of L and U that says so.
//!
//! Bounds are taken from a sample of [`SAMPLE`] requests with the smallest digests of their ids, so that they depend neither
//! on the order of the spans nor on how the input was divided, and memory is bounded ([`MAX_PAIRS`]).
//!
//! Where hosts are not said, a service is taken for one host.
//!
//! Hosts that requests join, directly or over others, have clocks relative to each other: along the pairs with the least
//! U − L, those with [`TRUSTED`] requests first (a spanning tree), so that two ways from host to host do not contradict one
//! another.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::catalog::Catalog;
use crate::trace::hashed::HashMap;

/// Requests that are kept of one pair of hosts.
const SAMPLE: usize = 256;
/// Most pairs of hosts.
const MAX_PAIRS: usize = 4096;
/// Requests from which on an estimate is trusted.
const TRUSTED: u64 = 10;
/// Requests from which on an estimate is used.
const USABLE: u64 = 3;
/// The quantile of the bounds.
const QUANTILE: f64 = 0.05;

/// How far a host's clock is ahead of another's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// θ̂ in nanoseconds.
    pub offset_ns: i64,
    /// θ̂ where clocks do not agree.
    corrected_ns: i64,
    /// Least that fits, by bounds that hold for every request.
    pub lower_ns: i64,
    /// Most that fits, by such bounds.
    pub upper_ns: i64,
    /// L and U.
    narrowed_ns: [i64; 2],
    /// Requests it rests on.
    pub n_requests: u64,
}

impl Offset {
    /// How much is left open: of bounds that contradict one another, more than of any that do not.
    fn width_ns(&self) -> u64 {
        let width = self.narrowed_ns[1].saturating_sub(self.narrowed_ns[0]);
        u64::try_from(width).unwrap_or_else(|_| (1 << 63) | width.unsigned_abs())
    }

    fn reversed(self) -> Self {
        Self {
            offset_ns: -self.offset_ns,
            corrected_ns: -self.corrected_ns,
            lower_ns: -self.upper_ns,
            upper_ns: -self.lower_ns,
            narrowed_ns: self.narrowed_ns.map(|bound| -bound),
            ..self
        }
    }
}

/// What one request says of θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    /// Decides which requests are kept.
    digest: u64,
    /// s₀ − c₀.
    asked_ns: i64,
    /// s₀ − c₁.
    answered_ns: i64,
    /// s₁ − c₁.
    ended_ns: i64,
    /// Whether it was made from the second host of the pair to the first.
    is_reversed: bool,
}

#[derive(Clone, Debug, Default)]
struct Pair {
    n_requests: u64,
    sample: BinaryHeap<Said>,
    estimate: Offset,
}

/// The value at the rank that `share` of the values are beyond, seen from the end; `None` of none.
fn at_share(mut values: Vec<i64>, share: f64, from_top: bool) -> Option<i64> {
    values.sort_unstable();
    let rank = (values.len().saturating_sub(1) as f64 * share) as usize;
    let rank = if from_top { values.len().checked_sub(rank + 1)? } else { rank };
    values.get(rank).copied()
}

impl Pair {
    fn add(&mut self, request: Said) {
        if self.sample.len() < SAMPLE {
            self.sample.push(request);
        } else if self.sample.peek().is_some_and(|largest| request < *largest) {
            self.sample.pop();
            self.sample.push(request);
        }
    }

    fn values(&self, is_reversed: bool, of: fn(&Said) -> i64) -> Vec<i64> {
        self.sample.iter().filter(|said| said.is_reversed == is_reversed).map(of).collect()
    }

    /// Bounds that hold for every request, by extremes (`share` 0) or quantiles.
    fn sure(&self, share: f64) -> [Option<i64>; 2] {
        let turned = |bound: Option<i64>| bound.map(i64::saturating_neg);
        let asked = at_share(self.values(false, |r| r.asked_ns), share, false);
        let answered = at_share(self.values(false, |r| r.answered_ns), share, true);
        let asked_back = turned(at_share(self.values(true, |r| r.asked_ns), share, false));
        let answered_back = turned(at_share(self.values(true, |r| r.answered_ns), share, true));
        let upper = [asked, answered_back].into_iter().flatten().min();
        [[asked_back, answered].into_iter().flatten().max(), upper]
    }

    fn estimate(&self) -> Offset {
        let extremes = self.sure(0.0);
        let [lower, upper] = if matches!(extremes, [Some(lower), Some(upper)] if lower > upper) { self.sure(QUANTILE) } else { extremes };
        let (Some(lower), Some(upper)) = (lower, upper) else { return Offset { n_requests: self.n_requests, ..Offset::default() } };
        let ended = self.values(false, |r| r.ended_ns).into_iter().filter(|bound| *bound <= upper).collect();
        let ended_back = self.values(true, |r| r.ended_ns).into_iter().map(i64::saturating_neg).filter(|bound| *bound >= lower).collect();
        let (ended, ended_back) = (at_share(ended, QUANTILE, true), at_share(ended_back, QUANTILE, false));
        let lower_ns = ended.map_or(lower, |bound| bound.max(lower));
        let upper_ns = ended_back.map_or(upper, |bound| bound.min(upper));
        let (is_asked, is_asked_back) = (self.sample.iter().any(|r| !r.is_reversed), self.sample.iter().any(|r| r.is_reversed));
        let corrected_ns = if lower > upper {
            // Servers begin before they are asked, by the one direction or the other.
            if is_asked && upper < 0 {
                upper
            } else if is_asked_back && lower > 0 {
                lower
            } else {
                0
            }
        } else if ended.is_some() || ended_back.is_some() || (is_asked && is_asked_back) {
            lower_ns + (upper_ns - lower_ns) / 2
        } else if is_asked {
            upper_ns
        } else {
            lower_ns
        };
        let narrowed_ns = [lower_ns, upper_ns];
        let offset_ns = if lower <= upper && lower_ns <= 0 && 0 <= upper_ns { 0 } else { corrected_ns };
        Offset { offset_ns, corrected_ns, lower_ns: lower, upper_ns: upper, narrowed_ns, n_requests: self.n_requests }
    }
}

/// A request that two hosts saw.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Client's and server's clock ([`super::catalog::Label::clock`]).
    pub clocks: [u32; 2],
    /// What identifies it.
    pub identity: (u128, u64),
    /// c₀ and c₁.
    pub client_ns: [i64; 2],
    /// s₀ and s₁.
    pub server_ns: [i64; 2],
}

/// The clocks of all pairs of hosts, each pair in order of the hosts' names.
#[derive(Clone, Debug, Default)]
pub struct Skews {
    pairs: HashMap<(u32, u32), Pair>,
    clocks: Clocks,
}

/// The clocks of hosts: the set of hosts that each is compared with, and how far it is ahead of the first of these.
#[derive(Clone, Debug, Default)]
struct Clocks {
    of_host: HashMap<u32, Clock>,
    /// Whether clocks do not agree.
    disagree: bool,
}

/// The clock of a host.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// The host that it is compared with.
    group: u32,
    /// How far it is ahead of that.
    ahead_ns: i64,
    /// The host that it is compared with by pairs with enough requests alone.
    core: u32,
}

impl Clocks {
    /// Whether most pairs refute that their clocks are the same.
    fn disagree(pairs: &HashMap<(u32, u32), Pair>) -> bool {
        let is_told = |offset: &Offset| offset.n_requests >= TRUSTED && offset.lower_ns <= offset.upper_ns;
        let told: Vec<Offset> = pairs.values().map(|pair| pair.estimate).filter(is_told).collect();
        let n_agree = told.iter().filter(|offset| offset.lower_ns <= 0 && 0 <= offset.upper_ns).count();
        !told.is_empty() && 2 * n_agree <= told.len()
    }

    /// A pair's estimate with the difference that is used.
    fn used(&self, estimate: Offset) -> Offset {
        Offset { offset_ns: if self.disagree { estimate.corrected_ns } else { estimate.offset_ns }, ..estimate }
    }

    fn of(pairs: &HashMap<(u32, u32), Pair>, catalog: &Catalog) -> Self {
        let usable = pairs.iter().map(|(hosts, pair)| (*hosts, pair.estimate)).filter(|(_, offset)| offset.n_requests >= USABLE);
        let mut usable: Vec<((u32, u32), Offset)> = usable.collect();
        let names = |(first, second): (u32, u32)| (catalog.names.name(first), catalog.names.name(second));
        let order = |offset: &Offset| (offset.n_requests < TRUSTED, offset.width_ns(), Reverse(offset.n_requests));
        usable.sort_by_key(|(hosts, offset)| (order(offset), names(*hosts)));
        let mut clocks = Self { disagree: Self::disagree(pairs), ..Self::default() };
        let mut members: HashMap<u32, Vec<u32>> = HashMap::default();
        for ((first, second), offset) in usable {
            for host in [first, second] {
                clocks.of_host.entry(host).or_insert_with(|| {
                    members.insert(host, vec![host]);
                    Clock { group: host, ahead_ns: 0, core: host }
                });
            }
            let (kept, gone) = (clocks.of_host[&first], clocks.of_host[&second]);
            if kept.group == gone.group {
                continue;
            }
            let shift = kept.ahead_ns.saturating_add(clocks.used(offset).offset_ns).saturating_sub(gone.ahead_ns);
            let is_enough = offset.n_requests >= TRUSTED;
            let moved = members.remove(&gone.group).unwrap_or_default();
            for host in &moved {
                clocks.of_host.entry(*host).and_modify(|clock| {
                    let ahead_ns = clock.ahead_ns.saturating_add(shift);
                    *clock = Clock { group: kept.group, ahead_ns, core: if is_enough { kept.core } else { clock.core } };
                });
            }
            members.entry(kept.group).or_default().extend(moved);
        }
        clocks
    }
}

impl Skews {
    /// Learns from a request; those within a host teach nothing.
    pub fn learn(&mut self, seen: &Seen, catalog: &Catalog) {
        let [client, server] = seen.clocks;
        if client == server {
            return;
        }
        let is_reversed = catalog.names.name(client) > catalog.names.name(server);
        let key = if is_reversed { (server, client) } else { (client, server) };
        if !self.pairs.contains_key(&key) && self.pairs.len() >= MAX_PAIRS {
            return;
        }
        let mut digest = DefaultHasher::new();
        seen.identity.hash(&mut digest);
        let pair = self.pairs.entry(key).or_default();
        pair.n_requests += 1;
        let after = |server: i64, client: i64| server.saturating_sub(client);
        pair.add(Said {
            digest: digest.finish(),
            asked_ns: after(seen.server_ns[0], seen.client_ns[0]),
            answered_ns: after(seen.server_ns[0], seen.client_ns[1]),
            ended_ns: after(seen.server_ns[1], seen.client_ns[1]),
            is_reversed,
        });
        // Seldom enough that the cost does not show.
        if pair.n_requests.is_power_of_two() || pair.n_requests.is_multiple_of(1024) {
            pair.estimate = pair.estimate();
            self.clocks = Clocks::of(&self.pairs, catalog);
        }
    }

    /// Brings all estimates up to date.
    pub fn update(&mut self, catalog: &Catalog) {
        self.pairs.values_mut().for_each(|pair| pair.estimate = pair.estimate());
        self.clocks = Clocks::of(&self.pairs, catalog);
    }

    /// The hosts that `host` can be compared with, by a number of their own, and how far its clock is ahead of the one that
    /// these are compared with; `None` where nothing tells.
    pub fn clock(&self, host: u32) -> Option<(u32, i64)> {
        self.clocks.of_host.get(&host).map(|clock| (clock.group, clock.ahead_ns))
    }

    /// Whether enough requests compare these clocks, directly or over others, to tell a second phase from a wrong clock, and the
    /// requests between the two do not contradict one another.
    pub fn is_trusted(&self, client: u32, server: u32) -> bool {
        let contradicts = self.offset(client, server).is_some_and(|offset| offset.lower_ns > offset.upper_ns);
        let clocks = self.clocks.of_host.get(&client).zip(self.clocks.of_host.get(&server));
        !contradicts && clocks.is_some_and(|(a, b)| a.core == b.core)
    }

    /// How far `server`'s clock is ahead of `client`'s, where enough requests tell.
    pub fn offset(&self, client: u32, server: u32) -> Option<Offset> {
        let found = match self.pairs.get(&(client, server)) {
            Some(pair) => Some(self.clocks.used(pair.estimate)),
            None => self.pairs.get(&(server, client)).map(|pair| self.clocks.used(pair.estimate).reversed()),
        };
        found.filter(|offset| offset.n_requests >= USABLE)
    }

    /// By how much the client's times may be earlier (at most 0) and later (at least 0) by the server's clock than the clocks in
    /// use say, nanoseconds; nothing where clocks agree, or nothing tells.
    pub fn left_open(&self, client: u32, server: u32) -> [i64; 2] {
        let clocks = self.clocks.of_host.get(&client).zip(self.clocks.of_host.get(&server));
        match (self.offset(client, server), clocks) {
            (Some(offset), Some((a, b))) if self.clocks.disagree && a.group == b.group && offset.lower_ns <= offset.upper_ns => {
                let used_ns = b.ahead_ns.saturating_sub(a.ahead_ns);
                [offset.lower_ns.saturating_sub(used_ns).min(0), offset.upper_ns.saturating_sub(used_ns).max(0)]
            }
            _ => [0; 2],
        }
    }

    /// Takes over what `other` learned; `names` are the numbers here of its hosts. Clocks are as before until the next update.
    pub fn absorb(&mut self, other: Self, names: &[u32]) {
        for ((client, server), theirs) in other.pairs {
            let key = (names[client as usize], names[server as usize]);
            let pair = self.pairs.entry(key).or_default();
            pair.n_requests += theirs.n_requests;
            theirs.sample.into_iter().for_each(|request| pair.add(request));
            pair.estimate = pair.estimate();
        }
    }

    /// All pairs with their estimates.
    pub fn all(&self) -> impl Iterator<Item = ((u32, u32), Offset)> {
        self.pairs.iter().map(|(key, pair)| (*key, self.clocks.used(pair.estimate)))
    }
}
