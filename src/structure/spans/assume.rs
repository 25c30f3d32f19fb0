//! Clocks that no request with both halves compares: what is assumed of them where requests were seen by their servers only.
//!
//! Input: a tree as read, and what is known of the clocks; output: of pairs of hosts by how much all times of the second have to move, and
//! which spans are waited for by that assumption alone.
//!
//! A serving span is a request and its reply: whoever makes it waits for it, as long as nothing speaks against it. It lies within the span
//! that made it if the other clock is moved by δ ∈ [parent's start − start, parent's end − end]. Of hosts that are said and differ,
//! where some such span of a trace does not lie within its parent but would fit, δ is what most of these spans of the trace admit, and of that
//! the nearest to 0. Spans that it leaves outside go by the clock.

use super::{
    catalog::{Catalog, NONE},
    skew::Period,
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

/// How far a serving span may move and lie within the span that made it.
struct Window {
    span: usize,
    bounds: [i64; 2],
    has_client: bool,
}

impl Window {
    fn admits(&self, ns: i64) -> bool {
        self.bounds[0] <= ns && ns <= self.bounds[1]
    }
}

impl Assumed {
    pub fn of(tree: &Tree, clocks: &Period, catalog: &Catalog) -> Self {
        let mut assumed = Self::default();
        for (hosts, windows) in windows(tree, clocks, catalog) {
            if windows.iter().all(|window| window.has_client || window.admits(0)) {
                continue;
            }
            let moved_ns = most_admit(&windows);
            assumed.moved_ns.insert(hosts, moved_ns);
            let by_assumption = windows.iter().filter(|window| !window.has_client && !window.admits(0) && window.admits(moved_ns));
            assumed.spans.extend(by_assumption.map(|window| window.span));
        }
        assumed
    }
}

/// The windows of all requests between hosts that nothing compares.
fn windows(tree: &Tree, clocks: &Period, catalog: &Catalog) -> HashMap<[u32; 2], Vec<Window>> {
    let mut windows: HashMap<[u32; 2], Vec<Window>> = HashMap::default();
    let group = |clock: u32| clocks.clock(clock).map(|(group, _)| group);
    for i in (0..tree.len()).filter(|i| tree.role[*i] == Role::Entry && !tree.is_linked[*i]) {
        let Some(parent) = tree.parent_of(i) else { continue };
        let labels = [parent, i].map(|i| catalog.label(tree.pieces[i].label));
        let hosts = labels.map(|label| label.clock);
        if hosts[0] == hosts[1] || labels.iter().any(|label| label.host == NONE) {
            continue;
        }
        let (made, served) = (&tree.pieces[parent], &tree.pieces[i]);
        let is_sync = made.kind != SpanKind::Producer && served.kind != SpanKind::Consumer;
        let is_known = made.duration_ns >= 0 && served.duration_ns >= 0 && tree.role[parent].is_used();
        let is_compared = || group(hosts[0]).is_some() && group(hosts[0]) == group(hosts[1]);
        let lower = made.start_ns.saturating_sub(served.start_ns);
        let upper = lower.saturating_add(made.duration_ns.saturating_sub(served.duration_ns));
        if is_sync && is_known && lower <= upper && !is_compared() {
            let window = Window { span: i, bounds: [lower, upper], has_client: tree.role[parent] == Role::Call };
            windows.entry(hosts).or_default().push(window);
        }
    }
    windows
}

/// What most windows admit, and of that the nearest to 0.
fn most_admit(windows: &[Window]) -> i64 {
    let mut bounds: Vec<(i64, bool)> = windows.iter().flat_map(|window| [(window.bounds[0], false), (window.bounds[1], true)]).collect();
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
            let windows: Vec<Window> = bounds.iter().map(|bounds| Window { span: 0, bounds: *bounds, has_client: false }).collect();
            assert_eq!(most_admit(&windows), expected, "{bounds:?}");
        }
    }
}
