//! The clocks of hosts relative to each other, period by period, estimated from requests that two hosts saw.
//!
//! Input: requests with their times on both hosts ([`Seen`]); output: of each period of time how far the clock of each host is ahead of
//! those that it can be compared with ([`Period`]).
//!
//! - Of each pair of hosts requests are kept, and divided into periods in which one difference explains them ([`super::offsets`]).
//!   Each change of a pair lies between two of its requests; the fewest times that lie between all of these divide the
//!   time of all pairs, at most [`MAX_CHANGES`].
//! - Of each pair and such period the estimate is that of its requests then; if these are fewer than twice [`TRUSTED`], of those of its own
//!   period around.
//! - Hosts that requests join, directly or over others, have clocks relative to each other: along the pairs with the least
//!   gaps, of equal ones with the least U − L, those with [`TRUSTED`] requests first (a spanning tree), so that two ways from host to host do not contradict one
//!   another. Where a pair joins two sets of hosts, the bounds of the first kind of all pairs between the two bound the difference,
//!   each unless it contradicts those of pairs before it (with more requests).
//! - Clocks *agree* if bounds of the first kind leave room for θ = 0 in more than half of the pairs with [`TRUSTED`] requests (or
//!   there are none). Then a pair that leaves room for 0 is not corrected. Where most clocks are seen to be wrong, wide bounds around 0 do
//!   not say that these two are right.
//!
//! While traces are completed, pairs are looked at again at powers of two of their requests and every [`LOOK_AGAIN`], where requests are beyond
//! the bounds known, and together with these what has grown by one in [`GROWTH`]; all that have grown at the end, so that what is told does not
//! depend on when.
//!
//! What is told of a pair is the difference that is used, and the bounds of the first kind, which nothing narrows wrongly.
//!
//! Memory is bounded by [`MAX_PAIRS`]. Where hosts are not said, a service is taken for one host.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use super::{
    assume::ServedOnly,
    catalog::Catalog,
    offsets::{Offset, Said, Sample, TRUSTED, USABLE, estimate, periods},
};
use crate::trace::hashed::HashMap;

/// Most pairs of hosts.
pub(super) const MAX_PAIRS: usize = 2048;
/// Most changes of clocks that are told apart.
const MAX_CHANGES: usize = 63;
/// Requests beyond the bounds known so far from which on it is looked whether a clock changed.
const SURPRISES: u64 = 8;
/// Requests of a pair after which it is looked at again.
const LOOK_AGAIN: u64 = 1024;
/// Part of the requests of a pair, one in so many, that makes it worth while to look at it again with others.
pub(super) const GROWTH: u64 = 16;

/// Numbers of two hosts, in order of their names.
pub(super) type Hosts = (u32, u32);

#[derive(Clone, Debug, Default)]
struct Pair {
    n_requests: u64,
    /// Requests beyond the bounds that were known then.
    n_surprises: u64,
    sample: Sample,
    /// Whether it is to be looked at again.
    is_stale: bool,
    known: Known,
}

/// What was found of a pair when it was last looked at.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Requests by then.
    n_requests: u64,
    /// Times that its changes lie between.
    gaps: Vec<(i64, i64)>,
    /// Of each period of all pairs.
    offsets: Vec<Offset>,
}

impl Pair {
    /// Whether it is to be looked at again: it is stale, or its requests have grown by more than one in [`GROWTH`], or by any if all count.
    fn is_due(&self, all: bool) -> bool {
        let n_new = self.n_requests - self.known.n_requests;
        self.is_stale || n_new > if all { 0 } else { self.known.n_requests / GROWTH }
    }

    /// The requests in order of time, and their periods.
    fn divided(&mut self) -> Divided {
        let requests = self.sample.requests();
        let periods = periods(&requests);
        let gaps = periods.windows(2).map(|two| (requests[two[0].end - 1].at_ns, requests[two[1].start].at_ns)).collect();
        self.known = Known { n_requests: self.n_requests, gaps, offsets: Vec::new() };
        self.is_stale = false;
        Divided { requests, periods }
    }
}

/// The requests of a pair, divided into periods.
struct Divided {
    requests: Vec<Said>,
    periods: Vec<Range<usize>>,
}

impl Divided {
    /// The offset in each of the periods of all pairs, which begin at `starts`; `n_all` requests rest on it in all.
    fn offsets(&self, starts: &[i64], n_all: u64) -> Vec<Offset> {
        let Self { requests, periods } = self;
        let ends = starts.iter().skip(1).copied().chain([i64::MAX]);
        let of_period = |(start, end): (i64, i64)| {
            let own = periods.iter().rfind(|own| requests[(*own).clone()].first().is_some_and(|first| first.at_ns < end));
            let own = own.or(periods.first()).cloned().unwrap_or_default();
            let within = requests.partition_point(|r| r.at_ns < start)..requests.partition_point(|r| r.at_ns < end);
            // Of few, too few are of any one entry.
            let is_enough = within.len() as u64 >= 2 * TRUSTED;
            let (of, is_all) = if is_enough { (within, starts.len() == 1) } else { (own, periods.len() == 1) };
            let n_requests = if is_all { n_all } else { of.len() as u64 };
            estimate(&requests[of], n_requests)
        };
        starts.iter().copied().zip(ends).map(of_period).collect()
    }
}

/// A request that two hosts saw.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Client's and server's clock ([`super::catalog::Label::clock`]).
    pub clocks: [u32; 2],
    /// Label of its serving half.
    pub label: u32,
    /// What identifies it.
    pub identity: (u128, u64),
    /// When its trace began.
    pub at_ns: i64,
    /// c₀ and c₁.
    pub client_ns: [i64; 2],
    /// s₀ and s₁.
    pub server_ns: [i64; 2],
}

/// The clocks of all pairs of hosts.
#[derive(Clone, Debug)]
pub struct Skews {
    pairs: HashMap<Hosts, Pair>,
    /// By the time from which on each holds.
    periods: BTreeMap<i64, Period>,
    /// Whether more is known than the periods say.
    is_stale: bool,
    /// Requests that compare no clocks.
    pub(super) served_only: ServedOnly,
}

impl Default for Skews {
    fn default() -> Self {
        Self {
            pairs: HashMap::default(),
            periods: BTreeMap::from([(i64::MIN, Period::default())]),
            is_stale: false,
            served_only: ServedOnly::default(),
        }
    }
}

/// The clocks of hosts while they stay the same.
#[derive(Clone, Debug, Default)]
pub struct Period {
    /// Whether the clocks are not all the same.
    pub disagree: bool,
    /// The set of hosts that each is compared with, and how far it is ahead of the first of these.
    of_host: HashMap<u32, Clock>,
    offsets: HashMap<Hosts, Offset>,
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

/// Sets of hosts while they are being joined.
struct Joining<'j> {
    period: &'j mut Period,
    members: HashMap<u32, Vec<u32>>,
    /// The pairs that each host is of.
    pairs_of: HashMap<u32, Vec<Hosts>>,
}

impl Joining<'_> {
    /// Joins the sets of two hosts by the difference `ahead_ns` between them.
    fn join(&mut self, hosts: Hosts, offset: Offset, ahead_ns: i64) {
        let of_host = &mut self.period.of_host;
        let (first, second) = (of_host[&hosts.0], of_host[&hosts.1]);
        let size = |clock: Clock| self.members.get(&clock.group).map_or(0, Vec::len);
        let (kept, gone, sign) = if size(first) < size(second) { (second, first, -1) } else { (first, second, 1) };
        if kept.group == gone.group {
            return;
        }
        let moved = self.members.remove(&gone.group).unwrap_or_default();
        let shift = kept.ahead_ns.saturating_add(sign * ahead_ns).saturating_sub(gone.ahead_ns);
        let own = [offset.lower_ns, offset.upper_ns].map(|bound| bound.saturating_sub(ahead_ns).saturating_mul(sign).saturating_add(shift));
        let own = [own[0].min(own[1]), own[0].max(own[1])];
        let shift = if offset.contradicts() { shift } else { self.bounded(shift, own, kept.group, &moved) };
        let is_enough = offset.n_requests >= TRUSTED;
        for host in &moved {
            self.period.of_host.entry(*host).and_modify(|clock| {
                let ahead_ns = clock.ahead_ns.saturating_add(shift);
                *clock = Clock { group: kept.group, ahead_ns, core: if is_enough { kept.core } else { clock.core } };
            });
        }
        self.members.entry(kept.group).or_default().extend(moved);
    }

    /// `shift` of the hosts `moved`, within what all pairs between them and the set `kept` admit, `own` first.
    fn bounded(&self, shift: i64, own: [i64; 2], kept: u32, moved: &[u32]) -> i64 {
        let of_host = &self.period.of_host;
        let mut bounds: Vec<(Reverse<u64>, [i64; 2])> = Vec::new();
        for host in moved {
            for hosts in self.pairs_of.get(host).into_iter().flatten() {
                let (a, b) = (of_host[&hosts.0], of_host[&hosts.1]);
                let offset = self.period.offsets[hosts];
                let between = a.ahead_ns.saturating_sub(b.ahead_ns);
                let [lower, upper] = [offset.lower_ns, offset.upper_ns].map(|bound| bound.saturating_add(between));
                if offset.contradicts() || (a.group == kept) == (b.group == kept) {
                    continue;
                }
                let of_shift = if a.group == kept { [lower, upper] } else { [upper.saturating_neg(), lower.saturating_neg()] };
                bounds.push((Reverse(offset.n_requests), of_shift));
            }
        }
        bounds.sort_unstable();
        let narrower = |[lower, upper]: [i64; 2], (_, bound): (Reverse<u64>, [i64; 2])| {
            let both = [lower.max(bound[0]), upper.min(bound[1])];
            if both[0] <= both[1] { both } else { [lower, upper] }
        };
        let [lower, upper] = bounds.into_iter().fold(own, narrower);
        shift.clamp(lower, upper)
    }
}

impl Period {
    /// Whether most pairs refute that their clocks are the same.
    fn disagree(offsets: &HashMap<Hosts, Offset>) -> bool {
        let told: Vec<&Offset> = offsets.values().filter(|offset| offset.n_requests >= TRUSTED && !offset.contradicts()).collect();
        let n_agree = told.iter().filter(|offset| offset.lower_ns <= 0 && 0 <= offset.upper_ns).count();
        !told.is_empty() && 2 * n_agree <= told.len()
    }

    fn of(offsets: HashMap<Hosts, Offset>, catalog: &Catalog) -> Self {
        let disagree = Self::disagree(&offsets);
        let mut period = Self { disagree, of_host: HashMap::default(), offsets };
        let usable = period.offsets.iter().map(|(hosts, offset)| (*hosts, *offset)).filter(|(_, offset)| offset.n_requests >= USABLE);
        let mut usable: Vec<(Hosts, Offset)> = usable.collect();
        let names = |(first, second): Hosts| (catalog.names.name(first), catalog.names.name(second));
        let order = |offset: &Offset| (offset.n_requests < TRUSTED, offset.is_open_by(), Reverse(offset.n_requests));
        usable.sort_by_key(|(hosts, offset)| (order(offset), names(*hosts)));
        let (mut members, mut pairs_of) = (HashMap::default(), HashMap::default());
        for (hosts, _) in &usable {
            for host in [hosts.0, hosts.1] {
                period.of_host.insert(host, Clock { group: host, ahead_ns: 0, core: host });
                members.insert(host, vec![host]);
                pairs_of.entry(host).or_insert_with(Vec::new).push(*hosts);
            }
        }
        let mut joining = Joining { period: &mut period, members, pairs_of };
        for (hosts, offset) in &usable {
            joining.join(*hosts, *offset, if disagree { offset.corrected_ns } else { offset.offset_ns });
        }
        for (hosts, _) in usable {
            let (a, b) = (period.of_host[&hosts.0], period.of_host[&hosts.1]);
            let used_ns = b.ahead_ns.saturating_sub(a.ahead_ns);
            period.offsets.entry(hosts).and_modify(|offset| offset.offset_ns = used_ns);
        }
        period
    }

    /// The hosts that `host` can be compared with, by a number of their own, and how far its clock is ahead of the one that
    /// these are compared with; `None` where nothing tells.
    pub fn clock(&self, host: u32) -> Option<(u32, i64)> {
        self.of_host.get(&host).map(|clock| (clock.group, clock.ahead_ns))
    }

    /// Whether enough requests compare these clocks, directly or over others, to tell a second phase from a wrong clock, and the
    /// requests between the two do not contradict one another.
    pub fn is_trusted(&self, client: u32, server: u32) -> bool {
        let contradicts = self.offset(client, server).is_some_and(|offset| offset.contradicts());
        let clocks = self.of_host.get(&client).zip(self.of_host.get(&server));
        !contradicts && clocks.is_some_and(|(a, b)| a.core == b.core)
    }

    /// Whether these clocks tell that a request was served after its client had gone on: they are trusted, or agree but for requests that
    /// nobody waits for.
    pub fn tells_order(&self, client: u32, server: u32) -> bool {
        let agree = |offset: Offset| offset.has_one_way && offset.offset_ns == 0;
        self.is_trusted(client, server) || self.offset(client, server).is_some_and(agree)
    }

    /// How far `server`'s clock is ahead of `client`'s, where enough requests tell.
    pub fn offset(&self, client: u32, server: u32) -> Option<Offset> {
        let found = match self.offsets.get(&(client, server)) {
            Some(offset) => Some(*offset),
            None => self.offsets.get(&(server, client)).map(|offset| offset.reversed()),
        };
        found.filter(|offset| offset.n_requests >= USABLE)
    }

    /// By how much the client's times may be earlier (at most 0) and later (at least 0) by the server's clock than the clocks in
    /// use say, nanoseconds: as the bounds of the first kind say, or up to both of these where they contradict one another;
    /// nothing where these clocks are taken for the same, or nothing tells.
    pub fn left_open(&self, client: u32, server: u32) -> [i64; 2] {
        match self.offset(client, server) {
            Some(offset) if offset.offset_ns != 0 || offset.contradicts() => {
                let (lower, upper) = (offset.lower_ns.min(offset.upper_ns), offset.lower_ns.max(offset.upper_ns));
                [lower.saturating_sub(offset.offset_ns).min(0), upper.saturating_sub(offset.offset_ns).max(0)]
            }
            _ => [0; 2],
        }
    }

    /// How long a reply is under way from `server` to `client`, as far as is known: where their clocks are taken for the same, as long as the
    /// quickest of enough requests was.
    pub fn under_way(&self, client: u32, server: u32) -> i64 {
        let is_told = |offset: &Offset| offset.offset_ns == 0 && offset.n_requests >= TRUSTED && !offset.contradicts();
        self.offset(client, server).filter(is_told).map_or(0, |offset| offset.upper_ns.max(0))
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
        let hosts = if is_reversed { (server, client) } else { (client, server) };
        if !self.pairs.contains_key(&hosts) && self.pairs.len() >= MAX_PAIRS {
            return;
        }
        let (mut digest, mut entry) = (DefaultHasher::new(), DefaultHasher::new());
        seen.identity.hash(&mut digest);
        let label = catalog.label(seen.label);
        [label.task, label.name].map(|name| catalog.names.name(name)).hash(&mut entry);
        let sign = if is_reversed { -1 } else { 1 };
        let after = |server: i64, client: i64| server.saturating_sub(client).saturating_mul(sign);
        let (asked, answered) = (after(seen.server_ns[0], seen.client_ns[0]), after(seen.server_ns[0], seen.client_ns[1]));
        let said = Said {
            digest: digest.finish(),
            at_ns: seen.at_ns,
            lower_ns: asked.min(answered),
            upper_ns: asked.max(answered),
            ended_ns: after(seen.server_ns[1], seen.client_ns[1]),
            entry: entry.finish() as u32,
            is_reversed,
        };
        let known = self.period(seen.at_ns).offsets.get(&hosts).copied();
        let pair = self.pairs.entry(hosts).or_default();
        pair.n_requests += 1;
        pair.sample.add(said);
        if known.is_none_or(|known| said.lower_ns > known.upper_ns || said.upper_ns < known.lower_ns) {
            pair.n_surprises += 1;
            pair.is_stale |= pair.n_surprises >= SURPRISES && pair.n_surprises.is_power_of_two();
        }
        pair.is_stale |= pair.n_requests.is_power_of_two() || pair.n_requests.is_multiple_of(LOOK_AGAIN);
        self.is_stale |= pair.is_stale;
    }

    /// Brings the periods up to date, if it is time: looks at the pairs that have changed.
    pub fn update_if_stale(&mut self, catalog: &Catalog) {
        if self.is_stale {
            self.look_at(false, catalog);
        }
        self.served_only.update(false);
    }

    /// Brings the periods up to date with all requests.
    pub fn update(&mut self, catalog: &Catalog) {
        self.look_at(true, catalog);
        self.served_only.update(true);
    }

    /// Looks at the pairs that are due, and at all where the periods change.
    fn look_at(&mut self, all: bool, catalog: &Catalog) {
        self.is_stale = false;
        let due = self.pairs.iter_mut().filter(|(_, pair)| pair.is_due(all));
        let mut looked_at: HashMap<Hosts, Divided> = due.map(|(hosts, pair)| (*hosts, pair.divided())).collect();
        let gaps = self.pairs.values().flat_map(|pair| pair.known.gaps.iter().copied()).collect();
        let starts: Vec<i64> = [i64::MIN].into_iter().chain(changes(gaps)).collect();
        let are_as_before = self.periods.keys().eq(&starts);
        for (hosts, pair) in &mut self.pairs {
            let divided = match looked_at.remove(hosts) {
                Some(divided) => divided,
                None if are_as_before => continue,
                None => pair.divided(),
            };
            pair.known.offsets = divided.offsets(&starts, pair.n_requests);
        }
        self.periods.clear();
        for (k, start) in starts.into_iter().enumerate() {
            let offsets = self.pairs.iter().filter_map(|(hosts, pair)| Some((*hosts, *pair.known.offsets.get(k)?))).collect();
            self.periods.insert(start, Period::of(offsets, catalog));
        }
    }

    /// The clocks at a time.
    pub fn period(&self, at_ns: i64) -> &Period {
        static NOTHING_KNOWN: std::sync::LazyLock<Period> = std::sync::LazyLock::new(Period::default);
        self.periods.range(..=at_ns).next_back().map_or(&NOTHING_KNOWN, |(_, period)| period)
    }

    /// Takes over what `other` learned; `names` are the numbers here of its hosts. Clocks are as before until the next update.
    pub fn absorb(&mut self, other: Self, names: &[u32]) {
        for ((client, server), theirs) in other.pairs {
            let pair = self.pairs.entry((names[client as usize], names[server as usize])).or_default();
            pair.n_requests += theirs.n_requests;
            pair.n_surprises += theirs.n_surprises;
            pair.sample.absorb(theirs.sample);
            pair.is_stale = true;
        }
        self.is_stale = true;
        self.served_only.absorb(other.served_only, names);
    }

    /// All pairs with the requests that both saw, and what is known of them in each period that differs from the one before, by its start
    /// (`i64::MIN` of the first).
    pub fn all(&self) -> impl Iterator<Item = (Hosts, u64, Vec<(i64, Offset)>)> {
        self.pairs.iter().map(|(hosts, pair)| {
            let known = self.periods.iter().filter_map(|(start, period)| Some((*start, *period.offsets.get(hosts)?)));
            let mut periods: Vec<(i64, Offset)> = known.collect();
            periods.dedup_by(|later, earlier| later.1 == earlier.1);
            (*hosts, pair.n_requests, periods)
        })
    }
}

/// The fewest times such that one lies in each gap (after its first time, not after its second), or [`MAX_CHANGES`] of these.
fn changes(mut gaps: Vec<(i64, i64)>) -> Vec<i64> {
    gaps.sort_unstable_by_key(|(_, until)| *until);
    let mut changes: Vec<i64> = Vec::new();
    for (after, until) in gaps {
        if changes.last().is_none_or(|last| *last <= after) {
            changes.push(until);
        }
    }
    let n = changes.len();
    if n > MAX_CHANGES {
        changes = (0..MAX_CHANGES).map(|k| changes[k * n / MAX_CHANGES]).collect();
    }
    changes
}
