//! Second phases: which of them an arrival finds in service.
//!
//! Those of other threads are there as often as their load says. The own thread's last one is there if the thread comes
//! back before it ends: the gap `T` between reply and return is shorter than an exponential time of mean `s₂`, with
//! probability `H = E e^(-T/s₂)`. The thread calls, between two calls runs a segment `z`, and between two executions is away for `O`:
//!
//! ```text
//! h_k = 1/(1 + z_k/s₂)                        a segment of an execution of node k           h_O likewise
//! H_i = h_i (σ_i + (1 - σ_i) h_O H_back)       return of node i: from inside the execution, or from one before
//! H_back = a / (1 - b h_O)                     a = Σ_k p_k σ_k h_k,  b = Σ_k p_k (1 - σ_k) h_k
//! ```
//!
//! At `m` servers, those of earlier requests may be there as well, if they last through the last one's stay, but for what that itself waits for them:
//!
//! ```text
//! E = Σ_{n<m} (H s₂ / (s₂ + B + (1 - v³) W))^n            found in all: H E
//! ```
//!
//! None are where the last request was served after them at their processor. The cube is fitted: a thread alone waits for its own second phases, of
//! which one has ended then, as the number of terms says. Where requests come from outside the chance to wait is that of many sources, too high for these
//! few, and only the last is looked for.
//!
//! | symbol | is |
//! |---|---|
//! | `σ_k` | chance of a call more in the execution, `y/(1+y)`; for exactly `y` calls, `(y-1)/y` on return and 1 before |
//! | `p_k` | share of node `k` in the executions of the pool's calling nodes |
//! | `B`, `v` | time from the first service to the reply, forwarded or not; the thread's share of all requests |
//! | `O` | `(threads - Σ time in their executions) / Σ executions` |
//!
//! For one client with a geometric number of calls and no other delay `T` is exponential and `H` exact.

use super::{At, layout::Row};
use crate::model::Scalar;

/// An execution of a node that calls the station.
struct Execution<S> {
    rate: S,
    segment: S,
    again: S,
    deterministic: bool,
    calls: S,
}

/// Second phases of the own thread's requests that it finds: of the last one, and of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken<S> {
    pub last: S,
    pub all: S,
}

/// Chances that are none.
const NEGLIGIBLE: f64 = 1e-9;

impl<S: Scalar> At<'_, S> {
    /// Second-phase load of arc `x` that a row's arrivals see: that of other threads, and the own thread's.
    pub(super) fn late_load(&self, row: &Row, x: usize, seen: S) -> (S, Overtaken<S>) {
        let it = &self.visits[x];
        let none = Overtaken { last: S::from(0.0), all: S::from(0.0) };
        let load = it.rate * it.late;
        let (Some(mine), Some(theirs), Some(group)) = (row.pool, self.layout.pool_of[x], row.group) else { return (load * seen, none) };
        if mine != theirs {
            return (load * seen, none);
        }
        let threads = self.sweep.populations.strands_at(self.sweep.net, self.layout.pools[mine], self.station);
        if threads.is_infinite() {
            return (load * seen, none);
        }
        let left = &self.left[mine];
        let others = if left.is_less() { load * left.late } else { load * (1.0 - threads.recip()).max(0.0) };
        let pool_rate = self.pool_rate(mine);
        if pool_rate <= 0.0 {
            return (others, none);
        }
        let found = self.returns_within(it.late, mine, group, threads);
        let last = it.rate / pool_rate * found;
        let own = pool_rate / self.visits.iter().fold(S::from(0.0), |sum, v| sum + v.rate) / threads;
        (others, Overtaken { last, all: last * self.earlier(x, found, own) })
    }

    /// `E`, of a thread with such a share of all requests.
    fn earlier(&self, x: usize, found: S, own: S) -> S {
        let one = S::from(1.0);
        if self.layout.late_goes_first || self.sources.is_infinite() {
            return one;
        }
        let it = &self.visits[x];
        let stay = it.first + self.forwarded(x) + it.wait * if own < 1.0 { -own.powi(3) + 1.0 } else { S::from(0.0) };
        let stays = found * it.late / (it.late + stay);
        let (mut sum, mut term, mut server) = (one, one, 1.0);
        while server < self.servers && term > NEGLIGIBLE {
            term *= stays;
            sum += term;
            server += 1.0;
        }
        sum
    }

    /// How long a request over arc `x` is at those to whom it is forwarded.
    fn forwarded(&self, x: usize) -> S {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let call = self.layout.arcs[x];
        let mut calls = net.arcs[call].source.held().into_iter().flat_map(|node| &net.nodes[node].calls);
        let legs = calls.find(|group| group.arc == call).map_or(&[][..], |group| &group.legs);
        legs.iter().fold(zero, |sum, &leg| sum + net.arcs[leg].leg_probability * (self.sweep.unknowns[leg] + self.sweep.service(leg).0))
    }

    /// `H` for a second phase of mean `late` and a return of the node of `group`.
    fn returns_within(&self, late: S, pool: usize, group: usize, threads: f64) -> S {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let executions: Vec<(usize, Execution<S>)> = (0..self.layout.groups.len())
            .filter(|&g| self.layout.pool_of[self.layout.rows[self.layout.row_of_group[g]].arc] == Some(pool))
            .map(|g| (g, self.execution(g)))
            .collect();
        let (mut rate, mut busy) = (zero, zero);
        for (g, e) in &executions {
            rate += e.rate;
            busy += e.rate * self.sweep.flow.elapsed[self.layout.groups[*g]];
        }
        if rate <= 0.0 {
            return zero;
        }
        let away = (-busy + threads) / rate;
        let away = if away > 0.0 { away } else { zero };
        let within = |z: S| late / (late + z);
        let outside = within(away);
        let (mut a, mut b) = (zero, zero);
        let mut mine = None;
        for (g, e) in &executions {
            let share = e.rate / rate;
            let h = within(e.segment);
            let calls_at_all = if e.deterministic { one } else { e.again };
            a += share * calls_at_all * h;
            b += share * (-calls_at_all + 1.0) * h;
            if *g == group {
                let again = if e.deterministic { (e.calls - 1.0) / e.calls } else { e.again };
                mine = Some((h, if again > 0.0 { again } else { zero }));
            }
        }
        let Some((h, again)) = mine else { return zero };
        let back = a / (-(b * outside) + 1.0);
        h * (again + (-again + 1.0) * outside * back)
    }

    fn execution(&self, group: usize) -> Execution<S> {
        let net = self.sweep.net;
        let node = self.layout.groups[group];
        let (mut calls, mut rate) = (S::from(0.0), S::from(0.0));
        for (i, v) in self.visits.iter().enumerate().filter(|(i, _)| self.layout.group_of[*i] == Some(group)) {
            calls += net.arcs[self.layout.arcs[i]].visits;
            rate += v.rate;
        }
        let gap = &self.visits[self.layout.rows[self.layout.row_of_group[group]].arc].gap;
        Execution {
            rate: if calls > 0.0 { rate / calls } else { S::from(0.0) },
            segment: gap.short,
            again: gap.short_share,
            deterministic: net.nodes[node].deterministic,
            calls,
        }
    }

    pub(super) fn pool_rate(&self, pool: usize) -> S {
        self.visits.iter().zip(&self.layout.pool_of).filter(|(_, p)| **p == Some(pool)).fold(S::from(0.0), |sum, (v, _)| sum + v.rate)
    }
}
