//! Clocks that no request with both halves compares: what is assumed of them where requests were seen by their servers only.
//!
//! Input: trees as read, and what is known of the clocks; output: of pairs of hosts by how much all times of the second have to move, and
//! which spans are waited for by that assumption alone.
//!
//! A serving span is a request and its reply: whoever makes it waits for it, as long as nothing speaks against it. It lies within the span
//! that made it if the other clock is moved by δ ∈ [parent's start − start, parent's end − end]. Of hosts that are said and differ, and that
//! no trace compares, δ is what most of these spans of all traces admit, and of that the nearest to 0. Spans that it leaves outside go by the
//! clock.
//!
//! Spans are a sample of all ([`super::offsets`]). Where at least [`TRUSTED`](super::offsets::TRUSTED) of them, and half of those that no one δ
//! admits, lie on one side in time, a clock was set between: each part has its own δ.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{
    catalog::{Catalog, NONE},
    offsets::{Said, Sample, periods_of_windows},
    skew::{GROWTH, Hosts, MAX_PAIRS, Period},
    tree::{Role, Tree},
};
use crate::trace::{
    hashed::{HashMap, HashSet},
    span::SpanKind,
};

/// What is assumed of clocks in a tree.
#[derive(Debug, Default)]
pub(super) struct Assumed {
    /// How far the times of the second host have to move, by numbers of two clocks, nanoseconds.
    pub moved_ns: HashMap<[u32; 2], i64>,
    /// Spans that lie within their parents for that reason alone.
    pub spans: HashSet<usize>,
}

impl Assumed {
    /// By the windows of all traces; `clocks` are those of the time of `tree`.
    pub fn of(tree: &Tree, clocks: &Period, all: &ServedOnly, catalog: &Catalog) -> Self {
        let mut assumed = Self::default();
        let group = |clock: u32| clocks.clock(clock).map(|(group, _)| group);
        for Window { span, hosts, bounds } in windows(tree, catalog) {
            if group(hosts[0]).is_some() && group(hosts[0]) == group(hosts[1]) {
                continue;
            }
            let moved_ns = *assumed.moved_ns.entry(hosts).or_insert_with(|| all.moved_ns(hosts, tree.began_ns(), catalog));
            if !admits(bounds, 0) && admits(bounds, moved_ns) {
                assumed.spans.insert(span);
            }
        }
        assumed
    }
}

/// How far a serving span may move and lie within the span that made it.
struct Window {
    span: usize,
    /// Numbers of the clocks of the span that made it, and of its own.
    hosts: [u32; 2],
    bounds: [i64; 2],
}

fn admits([lower, upper]: [i64; 2], ns: i64) -> bool {
    lower <= ns && ns <= upper
}

/// The windows of the requests of a tree that their servers alone saw, on another host.
fn windows<'t>(tree: &'t Tree, catalog: &'t Catalog) -> impl Iterator<Item = Window> + 't {
    let served = (0..tree.len()).filter(|i| !tree.is_timeless && tree.role[*i] == Role::Entry && !tree.is_linked[*i]);
    served.filter_map(|span| {
        let parent = tree.parent_of(span)?;
        let labels = [parent, span].map(|i| catalog.label(tree.pieces[i].label));
        let hosts = labels.map(|label| label.clock);
        let are_apart = hosts[0] != hosts[1] && labels.iter().all(|label| label.host != NONE);
        let (made, served) = (&tree.pieces[parent], &tree.pieces[span]);
        let is_sync = made.kind != SpanKind::Producer && served.kind != SpanKind::Consumer;
        let is_known = made.duration_ns >= 0 && served.duration_ns >= 0;
        let is_alone = tree.role[parent].is_used() && tree.role[parent] != Role::Call;
        let lower = made.start_ns.saturating_sub(served.start_ns);
        let upper = lower.saturating_add(made.duration_ns.saturating_sub(served.duration_ns));
        (are_apart && is_sync && is_known && is_alone && lower <= upper).then_some(Window { span, hosts, bounds: [lower, upper] })
    })
}

/// Requests between two hosts that their servers alone saw.
#[derive(Clone, Debug, Default)]
struct Pair {
    n_requests: u64,
    /// Of each the bounds of how far the second host's times have to move.
    sample: Sample,
    /// Requests when this was last looked at.
    n_known: u64,
    /// By how much these times move, from each time on.
    moved_ns: Vec<(i64, i64)>,
}

impl Pair {
    fn look_at(&mut self) {
        let requests = self.sample.requests();
        let of_period = |(number, of): (usize, std::ops::Range<usize>)| {
            let bounds: Vec<[i64; 2]> = requests[of.clone()].iter().map(|request| [request.lower_ns, request.upper_ns]).collect();
            let from = requests.get(of.start).filter(|_| number > 0).map_or(i64::MIN, |first| first.at_ns);
            (from, most_admit(&bounds))
        };
        self.moved_ns = periods_of_windows(&requests).into_iter().enumerate().map(of_period).collect();
        self.n_known = self.n_requests;
    }
}

/// Requests of all traces that their servers alone saw, by pairs of hosts in order of their names.
#[derive(Clone, Debug, Default)]
pub(super) struct ServedOnly {
    pairs: HashMap<Hosts, Pair>,
    is_stale: bool,
}

impl ServedOnly {
    /// Learns from the requests of a tree.
    pub fn learn(&mut self, tree: &Tree, catalog: &Catalog) {
        for Window { span, hosts, bounds: [lower, upper] } in windows(tree, catalog) {
            let (pair, is_reversed) = in_order(hosts, catalog);
            if !self.pairs.contains_key(&pair) && self.pairs.len() >= MAX_PAIRS {
                continue;
            }
            let [lower_ns, upper_ns] = if is_reversed { [-upper, -lower] } else { [lower, upper] };
            let piece = &tree.pieces[span];
            let mut digest = DefaultHasher::new();
            (tree.traces[piece.trace as usize].0, piece.id.0).hash(&mut digest);
            let (digest, at_ns) = (digest.finish(), tree.began_ns());
            let pair = self.pairs.entry(pair).or_default();
            pair.sample.add(Said { digest, at_ns, lower_ns, upper_ns, ended_ns: lower_ns, entry: 0, is_reversed: false });
            pair.n_requests += 1;
            self.is_stale |= pair.n_requests - pair.n_known > pair.n_known / GROWTH;
        }
    }

    /// Brings up to date the pairs that have grown enough, or `all`.
    pub fn update(&mut self, all: bool) {
        if !self.is_stale && !all {
            return;
        }
        self.is_stale = false;
        let is_due = |pair: &Pair| pair.n_requests - pair.n_known > if all { 0 } else { pair.n_known / GROWTH };
        self.pairs.values_mut().filter(|pair| is_due(pair)).for_each(Pair::look_at);
    }

    /// Takes over what `other` learned; `names` are the numbers here of its hosts.
    pub fn absorb(&mut self, other: Self, names: &[u32]) {
        for ((first, second), theirs) in other.pairs {
            let pair = self.pairs.entry((names[first as usize], names[second as usize])).or_default();
            pair.n_requests += theirs.n_requests;
            pair.sample.absorb(theirs.sample);
        }
        self.is_stale = true;
    }

    /// By how much the times of the second host have to move.
    fn moved_ns(&self, hosts: [u32; 2], at_ns: i64, catalog: &Catalog) -> i64 {
        let (pair, is_reversed) = in_order(hosts, catalog);
        let of_pair = self.pairs.get(&pair).and_then(|pair| pair.moved_ns.iter().rfind(|(from, _)| *from <= at_ns));
        let moved_ns = of_pair.map_or(0, |(_, moved_ns)| *moved_ns);
        if is_reversed { -moved_ns } else { moved_ns }
    }
}

/// Two hosts in order of their names, and whether that is not theirs.
fn in_order([first, second]: [u32; 2], catalog: &Catalog) -> (Hosts, bool) {
    let is_reversed = catalog.names.name(first) > catalog.names.name(second);
    (if is_reversed { (second, first) } else { (first, second) }, is_reversed)
}

/// What most windows admit, and of that the nearest to 0.
fn most_admit(windows: &[[i64; 2]]) -> i64 {
    let mut bounds: Vec<(i64, bool)> = windows.iter().flat_map(|[lower, upper]| [(*lower, false), (*upper, true)]).collect();
    // At one place windows begin before others end.
    bounds.sort_unstable();
    let (mut n_open, mut most, mut best) = (0_usize, 0, 0_i64);
    for pair in bounds.windows(2) {
        let [(from, ends), (to, next_ends)] = [pair[0], pair[1]];
        n_open = if ends { n_open - 1 } else { n_open + 1 };
        // Where one begins and the next end follows, as many are open as anywhere near.
        if ends || !next_ends {
            continue;
        }
        let nearest = 0_i64.clamp(from, to);
        if n_open > most || (n_open == most && nearest.unsigned_abs() < best.unsigned_abs()) {
            (most, best) = (n_open, nearest);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_windows_admit_is_the_nearest_to_nothing() {
        for (bounds, expected) in [
            (vec![[-9, -2]], -2),
            (vec![[3, 8]], 3),
            (vec![[-1, 4]], 0),
            (vec![[-9, -2], [-5, -3], [4, 7]], -3),
            (vec![[-9, -2], [4, 7]], -2),
            (vec![[-9, -5], [-5, -2]], -5),
            (vec![[2, 2]], 2),
        ] {
            assert_eq!(most_admit(&bounds), expected, "{bounds:?}");
        }
    }
}
