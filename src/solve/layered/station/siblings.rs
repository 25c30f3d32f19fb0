//! What a request finds of its own thread's other strands.
//!
//! At any time these are there with the factor `O` of [`super::super::exclusion`] on their load. But those that begin at one server at the same time, as branches of a
//! fork do at their processor, meet there for sure, in a random order, or share it until the shorter first slice has ended:
//!
//! ```text
//! w_vw = [s_w b + (n_v - 1) (1 - b / n_w) w°_vw] / n_v        b = 1/2, of shared processors s_v / (s_v + s_w)
//! ```
//!
//! Where it is known which slice follows which, what they find is told by that instead ([`super::follows`]).
//!
//! | symbol | is |
//! |---|---|
//! | `w_vw` | what a slice of `v` waits for `w` in the mean, `w°` as at any time |
//! | `s`, `n` | slices of a strand, their mean and their number |
//! | `b` | chance that the first slice of `w` goes first, or ends first, and is not met again |

use super::{At, Discipline, Row, Scratch, layout::Left};
use crate::model::Scalar;

/// What a slice waits for a strand that began with its own, and what is left of what it would wait at any time.
struct Together<S> {
    wait: S,
    left: S,
}

impl<S: Scalar> At<'_, S> {
    /// Adds what a row's arrivals find of their own thread's other strands.
    pub(super) fn add_siblings(&self, r: usize, sharing: bool, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let row = &self.layout.rows[r];
        let me = &self.visits[row.arc];
        for (x, it) in self.visits.iter().enumerate() {
            let at = r * n + x;
            let sibling = self.sweep.exclusion.siblings[self.layout.pairs[at] as usize];
            let (work, rest) = if sharing { (me.first, me.first) } else { (it.first + it.late, it.first_rest + it.late) };
            let removal = self.removal_ratio(row.group, self.layout.row_of[x]) * it.rate;
            scratch.alpha_own[at] = sibling * removal * work;
            scratch.beta_own[at] = sibling * it.rate * it.first * rest;
            let first = if sharing { S::from(1.0) } else { self.of_first_slices(row, x, at) };
            scratch.alpha_own[at] *= first;
            scratch.beta_own[at] *= first;
            if let Some(together) = self.begins_with(row, x, sharing).filter(|_| self.own_followed(r, x, scratch).is_none()) {
                scratch.alpha_own[at] *= together.left;
                scratch.beta_own[at] = scratch.beta_own[at] * together.left + together.wait;
            }
            if let Some((found, others)) = self.own_followed(r, x, scratch) {
                scratch.alpha_own[at] *= others;
                scratch.beta_own[at] = scratch.beta_own[at] * others + found * work;
            }
            scratch.alpha[at] += scratch.alpha_own[at];
            scratch.beta[at] += scratch.beta_own[at];
            scratch.load[at] += sibling * it.rate * it.first;
        }
    }

    /// What the first slices of strands change in order of arrival: those of one that a join leaves behind come before the others begin, and these find it as it
    /// then is; where that was its last slice they do not meet it again.
    fn of_first_slices(&self, row: &Row, x: usize, at: usize) -> S {
        let one = S::from(1.0);
        let left = self.layout.left_strands.get(at).copied().flatten();
        let (Some(left), Some(mine), Some(other)) = (left, row.group, self.layout.group_of[x]) else { return one };
        let [mine, other] = [mine, other].map(|group| &self.sweep.net.nodes[self.layout.groups[group]]);
        if !mine.begins_at_processor {
            return one;
        }
        let first = mine.slices.recip();
        let later = -first + 1.0;
        match left {
            Left::Behind => later,
            Left::Ahead(strands) => first * self.sweep.exclusion.at_the_beginning(strands) + later * (-other.slices.recip() + 1.0),
        }
    }

    /// What is known of a row's wait for another arc's strand that begins here at the same time.
    fn begins_with(&self, row: &Row, x: usize, sharing: bool) -> Option<Together<S>> {
        let (mine, other) = (row.group?, self.layout.group_of[x]?);
        let node = |group: usize| &self.sweep.net.nodes[self.layout.groups[group]];
        let (me, it) = (node(mine), node(other));
        let begin_together = mine != other && me.begins_with.is_some() && me.begins_with == it.begins_with;
        let is_plain = self.servers <= 1.0 && matches!(self.discipline, Discipline::Fcfs | Discipline::Sharing);
        let (my_first, its_first) = (self.visits[row.arc].first, self.visits[x].first);
        if !begin_together || !is_plain || self.station >= self.sweep.net.n_processors || my_first <= 0.0 {
            return None;
        }
        let before = if sharing { my_first / (my_first + its_first) } else { S::from(0.5) };
        let (mine, its) = (me.slices.recip(), it.slices.recip());
        let wait = if sharing { before * its_first } else { its_first * 0.5 };
        Some(Together { wait: wait * mine, left: (-mine + 1.0) * (-(its * before) + 1.0) })
    }

    /// The share of each row's wait that its own thread's other strands cause, before a join leaves it behind, or them, and after.
    pub(super) fn update_contention(&self, scratch: &Scratch<S>, next: &mut [S], left: &mut [S]) {
        let n = self.visits.len();
        for (row, share) in next.iter_mut().enumerate() {
            let terms = row * n..(row + 1) * n;
            let parts = scratch.alpha_own[terms.clone()].iter().zip(&scratch.beta_own[terms]).zip(self.visits);
            let (mut own, mut before) = (S::from(0.0), S::from(0.0));
            for (x, ((&alpha, &beta), v)) in parts.enumerate() {
                let wait = alpha * v.wait + beta;
                own += wait;
                before += if left.is_empty() { wait } else { wait * self.before_joins(row * n + x) };
            }
            let of_all = |part: S| if part > 0.0 && scratch.wait[row] > 0.0 { part / scratch.wait[row] } else { S::from(0.0) };
            *share = of_all(before);
            if let Some(left) = left.get_mut(row) {
                *left = of_all(own - before);
            }
        }
    }

    /// Of what a row waits for its own thread's strands of an arc, the share before joins that leave any behind.
    fn before_joins(&self, at: usize) -> S {
        let pair = self.layout.pairs[at] as usize;
        let exclusion = self.sweep.exclusion;
        match exclusion.before_joins.get(pair) {
            Some(&before) if exclusion.siblings[pair] > 0.0 => before / exclusion.siblings[pair],
            _ => S::from(1.0),
        }
    }
}
