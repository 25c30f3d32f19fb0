//! Queues by urgency: who begins where a less urgent slice has just ended, and who is begun by the slices that others wait for.
//!
//! Equations of mean values have requests come at any time. Where one is called or sent by a slice `k` at the same server, it comes when that slice is served, and nobody more urgent than `k` is
//! there then: under preemption they would be served in its place, and head of line only those can be there who came from elsewhere while it was served.
//!
//! ```text
//! f_jx ← (1 - Σ_k p_jk) f_jx + Σ_k p_jk c_kx       x more urgent than k;     c_kx = 0 preemptive, e_x λ_x s_k head of line
//! g_jx ← (1 - Σ_k p_jk) g_jx                       x less urgent than j
//! ```
//!
//! What is begun so comes with the slices that it follows, and not while others wait or are served: who waits for such a slice waits for what it begins, too, where that goes before it.
//!
//! ```text
//! s_y + b_ry for s_y,   b_ry = Σ_x p_xy λ_x/λ_y (s_x + b_rx), x more urgent than r            û_x → e_x û_x in the stretch ([`super::discipline`])
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `f_jx`, `g_jx` | requests of `x` that one of row `j` finds, and of these, those in service |
//! | `p_jk` | share of the slices of `j` that follow one of `k` at once ([`super::previous`]) |
//! | `e_x` | share of those of `x` that follow no slice here: `1 - Σ_k p_xk` |
//! | `b_ry` | what a slice of `y` begins that goes before one of row `r` |
//!
//! Looked for at processors with one server.

use super::{
    super::net::{Discipline, Net},
    At, Scratch,
    layout::Layout,
    previous::{Previous, find_followed},
};
use crate::model::Scalar;

/// Most slices that are begun one by the other.
const FURTHEST: usize = 4;
/// Most rows.
const MOST_ROWS: usize = 60;

/// A share of the slices of a row that follow those of another at once.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Begun<S> {
    row: usize,
    before: usize,
    part: S,
}

/// The slices before those of each row, at processors with one server that go by urgency; none elsewhere.
pub(super) fn find_made_way<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>]) -> Vec<Vec<Previous>> {
    let it = &net.stations[layout.station];
    let by_urgency = matches!(it.discipline, Discipline::HeadOfLine | Discipline::Preemptive) && layout.levels.len() > 1;
    if layout.station >= net.n_processors || it.servers != 1.0 || !by_urgency || layout.rows.len() > MOST_ROWS {
        return Vec::new();
    }
    let before = find_followed(net, layout, calls);
    if before.iter().flatten().any(Previous::is_at_once) { before } else { Vec::new() }
}

impl<S: Scalar> At<'_, S> {
    /// Takes what is found by requests that begin where a slice ends from what there is at any time to what there can be then.
    pub(super) fn make_way(&self, scratch: &mut Scratch<S>) {
        self.find_begun(scratch);
        let n = self.visits.len();
        let zero = S::from(0.0);
        let interrupts = self.interrupts();
        let Scratch { begun, from_elsewhere, alpha, beta, .. } = scratch;
        let left = |share: S| if share < 1.0 { -share + 1.0 } else { zero };
        for of_row in begun.chunk_by(|a, b| a.row == b.row) {
            let row = of_row[0].row;
            for (x, it) in self.visits.iter().enumerate() {
                let (mut at_once, mut made_way, mut come) = (zero, zero, zero);
                for &Begun { before, part, .. } in of_row {
                    at_once += part;
                    if self.priority_of(x) > self.layout.rows[before].priority {
                        made_way += part;
                        come += part * self.visits[self.layout.rows[before].arc].first;
                    }
                }
                let at = row * n + x;
                alpha[at] *= left(made_way);
                let is_below = self.priority_of(x) < self.layout.rows[row].priority;
                beta[at] *= left(if is_below { at_once } else { made_way });
                if !interrupts {
                    beta[at] += come * from_elsewhere[self.layout.row_of[x]] * it.rate * it.first;
                }
            }
        }
    }

    /// `p` and `e`.
    fn find_begun(&self, Scratch { begun, from_elsewhere, .. }: &mut Scratch<S>) {
        begun.clear();
        from_elsewhere.clear();
        from_elsewhere.resize(self.layout.rows.len(), S::from(1.0));
        for (row, before) in self.layout.made_way.iter().enumerate() {
            let mut ways = before.iter();
            self.courses().for_each_of(before, row, |part, slice, _, _| {
                if ways.next().is_some_and(Previous::is_at_once) && part > 0.0 {
                    begun.push(Begun { row, before: self.layout.row_of[slice], part });
                    from_elsewhere[row] -= part;
                }
            });
        }
        from_elsewhere.iter_mut().filter(|share| **share < 0.0).for_each(|share| *share = S::from(0.0));
    }

    /// `b_ry` over the service of `y`, by the level of `r` and row; none where no slice follows another.
    pub(super) fn begun_before(&self, Scratch { begun, .. }: &Scratch<S>) -> Vec<S> {
        if begun.is_empty() {
            return Vec::new();
        }
        let of_service = |level: f64, y: usize| {
            let served = self.visits[self.layout.rows[y].arc].first;
            if served > 0.0 { self.begun_by(begun, level, y, FURTHEST) / served } else { S::from(0.0) }
        };
        let of_level = |&level: &f64| (0..self.layout.rows.len()).map(move |y| of_service(level, y));
        self.layout.levels.iter().flat_map(of_level).collect()
    }

    fn begun_by(&self, begun: &[Begun<S>], level: f64, y: usize, further: usize) -> S {
        let (zero, rate_of) = (S::from(0.0), |row: usize| self.visits[self.layout.rows[row].arc].rate);
        let rate = rate_of(y);
        if further == 0 || rate <= 0.0 {
            return zero;
        }
        let followers = begun.iter().filter(|it| it.before == y && self.layout.rows[it.row].priority > level);
        followers.fold(zero, |sum, it| {
            let served = self.visits[self.layout.rows[it.row].arc].first;
            sum + it.part * rate_of(it.row) / rate * (served + self.begun_by(begun, level, it.row, further - 1))
        })
    }
}
