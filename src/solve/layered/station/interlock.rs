//! A thread and the second phase of its own request at the same queue.
//!
//! While a thread waits for the second phase of its last request to end, neither finds the other elsewhere. Of the `m` threads of a pool, from which a share
//! `q` of an entry's requests comes, each is kept waiting for `w` after such a request by the `L` of its second phase. What the one of them finds of the
//! other, at the queue of a task that both call, is
//!
//! ```text
//! 1 - q/m (1 - f)        f = (1 - w/L) / (1 - λ w)
//! ```
//!
//! times what it is at any time, with `λ` the requests of a thread to the first task a unit of time and `w = H L` ([`super::comes_again`]).

use super::{super::net::Net, Layout, Sweep, comes_again::ComesAgain};
use crate::model::Scalar;

/// An arrival and an arc of which the one is a second phase's, and the other of those who call its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interlock {
    /// The place of the two, in `rows × arcs`.
    pub at: usize,
    /// The call to the entry.
    pub call: usize,
}

/// Those at a station, of the queue of a task.
pub(super) fn find_interlocks<S: Scalar>(net: &Net<S>, layout: &Layout) -> Vec<Interlock> {
    let mut found = Vec::new();
    if layout.station < net.n_processors {
        return found;
    }
    let node_of = |row: usize| layout.rows[row].group.map(|group| layout.groups[group]);
    let call_between = |late: usize, caller: usize| {
        let (late, caller) = (&net.nodes[late], &net.nodes[caller]);
        let is_of_second_phase = late.phase > 0 && caller.phase == 0 && late.task != caller.task;
        let calls = caller.calls.iter().map(|call| call.arc);
        is_of_second_phase.then(|| calls.into_iter().find(|&call| net.arcs[call].target == Some(late.entry))).flatten()
    };
    for row in 0..layout.rows.len() {
        for (x, &other) in layout.row_of.iter().enumerate() {
            let (Some(mine), Some(other)) = (node_of(row), node_of(other)) else { continue };
            if let Some(call) = call_between(mine, other).or_else(|| call_between(other, mine)) {
                found.push(Interlock { at: row * layout.arcs.len() + x, call });
            }
        }
    }
    found
}

/// The factors of calls that stations ask for, by arc; empty where none does.
pub(in super::super) fn set_interlocks<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], factors: &mut Vec<S>) {
    factors.clear();
    if layouts.iter().all(|layout| layout.interlocks.is_empty()) {
        return;
    }
    let one = S::from(1.0);
    let mut is_asked = vec![false; sweep.net.arcs.len()];
    layouts.iter().flat_map(|layout| &layout.interlocks).for_each(|it| is_asked[it.call] = true);
    factors.resize(sweep.net.arcs.len(), one);
    for layout in layouts {
        for (x, &call) in layout.arcs.iter().enumerate().filter(|(_, call)| is_asked[**call]) {
            if let Some(factor) = factor(sweep, layout, x) {
                factors[call] = factor;
            }
        }
    }
}

fn factor<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout, x: usize) -> Option<S> {
    let call = layout.arcs[x];
    let (pool, group) = (layout.pool_of[x]?, layout.group_of[x]?);
    let received = sweep.flow.entry_rate[sweep.net.arcs[call].target?];
    let (first, held) = sweep.service(call);
    let callers = ComesAgain { sweep, layout };
    let threads = callers.sources(pool);
    if received <= 0.0 || held <= first || threads.is_infinite() {
        return None;
    }
    let own = layout.arcs.iter().zip(&layout.pool_of).filter(|(_, of)| **of == Some(pool));
    let requests = own.fold(S::from(0.0), |sum, (&arc, _)| sum + sweep.flow.arc_rate[arc]) / threads;
    let found = sweep.overtakes?.found(layout, x, group);
    let waited = found.chance * found.counted;
    let both = (-waited + 1.0) / (-(requests * waited * (held - first)) + 1.0);
    let share = sweep.flow.arc_rate[call] / received / threads;
    let factor = -(share * (-both + 1.0)) + 1.0;
    (0.0..=1.0).contains(&factor.value()).then_some(factor)
}
