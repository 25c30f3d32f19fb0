//! What a thread finds at its processor when it comes back from a call to a task on the same one.
//!
//! The reply is sent at the end of a slice there, and the thread that sent it has left the processor at this moment, whatever it does for others
//! at other times: of the `m` threads of that task one cannot be met. With `y_c` calls `c` to entries of the task and `n` slices
//! of the caller, all that its threads send there counts for the caller
//!
//! ```text
//! F = 1 - Σ_c y_c / (n m)
//! ```
//!
//! times. A thread that goes on after the reply is still there, and is left as it is ([`super::At::first_slice`]); so are calls that may be
//! forwarded, and entries that fork. What waits for the thread and is taken up at the same moment is met by a coin ([`super::taken_up`]).

use super::{
    super::net::{Discipline, Net},
    At, COIN,
    layout::Layout,
};
use crate::model::Scalar;

/// Calls of a row's node from which it returns at the end of a slice of another task at its processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    /// Whose threads reply, by position in [`Layout::pools`].
    pool: usize,
    arc: usize,
    threads: f64,
}

/// The returns of all rows of a station, by row.
pub(super) fn find_returns<S: Scalar>(net: &Net<S>, layout: &Layout, station: usize) -> Vec<Vec<Return>> {
    if station >= net.n_processors || net.stations[station].discipline != Discipline::Fcfs {
        return vec![Vec::new(); layout.rows.len()];
    }
    let of_call = |arc: usize| {
        let entry = net.arcs[arc].target.filter(|&entry| !net.goes_on_after_reply(entry))?;
        let host = net.nodes[net.phases(entry)[0]?].host_arc?;
        let task = net.entries[entry].task;
        let threads = net.tasks[task].threads;
        let pool = layout.pools.iter().position(|&t| t == task)?;
        (net.arcs[host].station == station && threads.is_finite()).then_some(Return { pool, arc, threads })
    };
    let of_row = |group: Option<usize>| {
        let calls = group.map_or(&[][..], |g| &net.nodes[layout.groups[g]].calls);
        calls.iter().filter(|call| call.legs.is_empty()).filter_map(|call| of_call(call.arc)).collect()
    };
    layout.rows.iter().map(|row| of_row(row.group)).collect()
}

impl<S: Scalar> At<'_, S> {
    /// `F` of every pool for the arrivals of a row; empty where it is 1 for all.
    pub(super) fn set_unmet(&self, r: usize, unmet: &mut Vec<S>) {
        unmet.clear();
        let row = &self.layout.rows[r];
        let (Some(group), false) = (row.group, self.layout.returns[r].is_empty()) else { return };
        let net = self.sweep.net;
        unmet.resize(self.layout.pools.len(), S::from(1.0));
        for it in &self.layout.returns[r] {
            unmet[it.pool] -= net.arcs[it.arc].visits / (net.nodes[self.layout.groups[group]].slices * it.threads);
        }
    }

    /// On a processor: a callee's second phase starts when its caller's next slice does, and a coin decides which goes first. Of some
    /// it is told along their course ([`super::messages`]).
    pub(super) fn first_slice(&self, r: usize) -> S {
        let net = self.sweep.net;
        let zero = S::from(0.0);
        let arc = &net.arcs[self.layout.arcs[self.layout.rows[r].arc]];
        let (None, Some(node)) = (arc.target, arc.source.held()) else { return zero };
        if self.servers > 1.0 {
            return zero;
        }
        let it = &net.nodes[node];
        let mut extra = zero;
        for group in &it.calls {
            let Some(callee) = net.arcs[group.arc].target else { continue };
            let Some(late) = net.phases(callee)[1].filter(|_| !net.entries[callee].is_followed) else { continue };
            if net.nodes[late].host_arc.is_some_and(|h| net.arcs[h].station == arc.station) {
                let slice = net.nodes[late].demand / net.nodes[late].slices;
                extra += net.arcs[group.arc].visits / it.slices * slice * COIN;
            }
        }
        extra
    }
}
