//! Differences between the clocks of hosts, estimated from requests that both hosts saw.
//!
//! Input: for each request from a client on host A that was served on host B, the four times c₀ ≤ c₁ (sent, reply received;
//! A's clock) and s₀ ≤ s₁ (began, replied; B's clock); output: θ(A, B), how far B's clock is ahead of A's, with its bounds.
//!
//! A request is served between its sending and the reception of its reply: s₁ − c₁ ≤ θ ≤ s₀ − c₀ (as in the exchange of
//! time stamps of the network time protocol). Over the requests of a pair of hosts
//!
//! - L = 95 % quantile of s₁ − c₁, U = 5 % quantile of s₀ − c₀, over requests whose own interval is not empty (a server that
//!   works on after its reply has an empty one, or one that is too high: hence not the extremes);
//! - θ̂ = 0 where L ≤ 0 ≤ U: no correction that is not needed. Otherwise the median of the middles (s₀ − c₀ + s₁ − c₁)/2,
//!   kept within [L, U];
//! - where L > U the times cannot all be explained by one difference: θ̂ = 0 if servers do not begin before they are asked
//!   (U ≥ 0: second phases), else U.
//!
//! The quantiles are of a sample of [`SAMPLE`] requests with the smallest digests of their ids, so that they depend neither
//! on the order of the spans nor on how the input was divided, and memory is bounded ([`MAX_PAIRS`]).

use std::{
    collections::BinaryHeap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::catalog::{Catalog, NONE};
use crate::trace::hashed::HashMap;

/// Requests that are kept of one pair of hosts.
const SAMPLE: usize = 256;
/// Most pairs of hosts.
const MAX_PAIRS: usize = 4096;
/// Requests from which on an estimate is trusted.
pub const TRUSTED: u64 = 10;
/// Requests from which on an estimate is used.
const USABLE: u64 = 3;
/// The quantile of the bounds.
const QUANTILE: f64 = 0.05;

/// How far a host's clock is ahead of another's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// θ̂ in nanoseconds.
    pub offset_ns: i64,
    /// Least that fits, L.
    pub lower_ns: i64,
    /// Most that fits, U.
    pub upper_ns: i64,
    /// Requests it rests on.
    pub n_requests: u64,
}

impl Offset {
    /// Whether it rests on enough requests to tell a second phase from a wrong clock.
    pub fn is_trusted(&self) -> bool {
        self.n_requests >= TRUSTED
    }

    fn reversed(self) -> Self {
        Self { offset_ns: -self.offset_ns, lower_ns: -self.upper_ns, upper_ns: -self.lower_ns, ..self }
    }
}

#[derive(Clone, Debug, Default)]
struct Pair {
    n_requests: u64,
    /// Digest, s₁ − c₁ and s₀ − c₀.
    sample: BinaryHeap<(u64, i64, i64)>,
    estimate: Offset,
}

impl Pair {
    fn add(&mut self, request: (u64, i64, i64)) {
        if self.sample.len() < SAMPLE {
            self.sample.push(request);
        } else if self.sample.peek().is_some_and(|largest| request < *largest) {
            self.sample.pop();
            self.sample.push(request);
        }
    }

    fn estimate(&self) -> Offset {
        let fitting = || self.sample.iter().filter(|(_, lower, upper)| lower <= upper);
        let n_fitting = fitting().count();
        if n_fitting == 0 {
            let mut uppers: Vec<i64> = self.sample.iter().map(|(_, _, upper)| *upper).collect();
            uppers.sort_unstable();
            let least = uppers.first().copied().unwrap_or(0);
            return Offset { offset_ns: least.min(0), lower_ns: least.min(0), upper_ns: least, n_requests: self.n_requests };
        }
        let sorted = |of: fn(&(u64, i64, i64)) -> i64| {
            let mut values: Vec<i64> = fitting().map(of).collect();
            values.sort_unstable();
            values
        };
        let rank = ((n_fitting - 1) as f64 * QUANTILE) as usize;
        let lower_ns = sorted(|r| r.1)[n_fitting - 1 - rank];
        let upper_ns = sorted(|r| r.2)[rank];
        let middle = sorted(|r| r.1 / 2 + r.2 / 2)[n_fitting / 2];
        let offset_ns = if lower_ns <= 0 && 0 <= upper_ns {
            0
        } else if lower_ns <= upper_ns {
            middle.clamp(lower_ns, upper_ns)
        } else {
            upper_ns.min(0)
        };
        Offset { offset_ns, lower_ns, upper_ns, n_requests: self.n_requests }
    }
}

/// A request that two hosts saw.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Client's and server's host (numbers in [`Catalog::names`]).
    pub hosts: [u32; 2],
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
}

impl Skews {
    /// Learns from a request; those within a host, or where a host is not said, teach nothing.
    pub fn learn(&mut self, seen: &Seen, catalog: &Catalog) {
        let [client, server] = seen.hosts;
        if client == server || client == NONE || server == NONE {
            return;
        }
        let lower = seen.server_ns[1].saturating_sub(seen.client_ns[1]);
        let upper = seen.server_ns[0].saturating_sub(seen.client_ns[0]);
        let reversed = catalog.names.name(client) > catalog.names.name(server);
        let (key, bounds) = if reversed { ((server, client), (-upper, -lower)) } else { ((client, server), (lower, upper)) };
        if !self.pairs.contains_key(&key) && self.pairs.len() >= MAX_PAIRS {
            return;
        }
        let mut digest = DefaultHasher::new();
        seen.identity.hash(&mut digest);
        let pair = self.pairs.entry(key).or_default();
        pair.n_requests += 1;
        pair.add((digest.finish(), bounds.0, bounds.1));
        // Seldom enough that the cost does not show.
        if pair.n_requests.is_power_of_two() || pair.n_requests.is_multiple_of(1024) {
            pair.estimate = pair.estimate();
        }
    }

    /// Brings all estimates up to date.
    pub fn update(&mut self) {
        self.pairs.values_mut().for_each(|pair| pair.estimate = pair.estimate());
    }

    /// How far `server`'s clock is ahead of `client`'s, where enough requests tell.
    pub fn offset(&self, client: u32, server: u32) -> Option<Offset> {
        let found = match self.pairs.get(&(client, server)) {
            Some(pair) => Some(pair.estimate),
            None => self.pairs.get(&(server, client)).map(|pair| pair.estimate.reversed()),
        };
        found.filter(|offset| offset.n_requests >= USABLE)
    }

    /// Takes over what `other` learned; `names` are the numbers here of its hosts.
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
        self.pairs.iter().map(|(key, pair)| (*key, pair.estimate))
    }
}
