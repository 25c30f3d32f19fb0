//! The slices of nodes whose number of calls is always the same, each for itself.
//!
//! Such a node makes all its calls to the first entry that it calls, then those to the next, and a slice is between each two: its first one follows whoever called it, every other one what was
//! called before, and only the last is followed by the caller's. The slices of other nodes are all alike, and are taken for one. What a row's slices find is the mean over its own; and of those of
//! a row that others find at any time as many are of each as it is here for longer:
//!
//! ```text
//! F_jk = F_jx (V_k + s_k) / Σ_x (V + s)          k of row x
//! ```
//!
//! Looked for where customers have a thread each ([`super`]), of so many slices at most as there may be rows.

use std::ops::Range;

use super::{
    super::{
        super::net::{CallGroup, Net},
        At,
        previous::Previous,
    },
    Followed, Follows, waited,
    ways::MOST_ROWS,
};
use crate::model::Scalar;

/// A slice of a row, of those that are told apart, or any of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<S> {
    pub row: usize,
    pub rate: S,
    pub service: S,
    pub wait: S,
    /// `w`.
    pub strands: f64,
}

/// The slices of rows.
#[derive(Clone, Debug)]
pub(in super::super) struct InOrder {
    /// Those of each row, in order, where the number of its calls is always the same; else one for all.
    slices_of: Vec<Range<usize>>,
    /// The row of each.
    pub(super) row_of: Vec<usize>,
    /// Of calls of rows whose slices are told apart, the slices after which they are made.
    made_after: Vec<(usize, Range<usize>)>,
}

impl InOrder {
    /// Of the rows of such `nodes`, if they are asked for and not too many: one slice, then all calls of the first kind with one after each, then those of the next.
    pub(super) fn of<S: Scalar>(net: &Net<S>, nodes: &[usize], are_told: bool) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number, as a deterministic one has to be, and no large one"
        )]
        let number = |call: &CallGroup| net.arcs[call.arc].visits.value().round().clamp(0.0, MOST_ROWS as f64) as usize;
        let is_told =
            |node: usize| are_told && net.nodes[node].deterministic && net.nodes[node].calls.iter().all(|call| call.legs.is_empty());
        let of_node = |node: usize| 1 + if is_told(node) { net.nodes[node].calls.iter().map(number).sum() } else { 0 };
        if are_told && nodes.iter().map(|&node| of_node(node)).sum::<usize>() > MOST_ROWS {
            return Self::of(net, nodes, false);
        }
        let mut found = Self { slices_of: Vec::new(), row_of: Vec::new(), made_after: Vec::new() };
        for (row, &node) in nodes.iter().enumerate() {
            let first = found.row_of.len();
            found.slices_of.push(first..first + of_node(node));
            found.row_of.resize(first + of_node(node), row);
            let mut after = first;
            for call in net.nodes[node].calls.iter().filter(|_| is_told(node)) {
                found.made_after.push((call.arc, after..after + number(call)));
                after += number(call);
            }
        }
        found
    }

    /// Calls `each` with the slices that may follow each other on a `way` between two rows, and the share of a slice of the former, over that of its row in the mean.
    pub(super) fn for_each_pair(&self, way: &Previous, (row, before): (usize, usize), mut each: impl FnMut(usize, usize, f64)) {
        let (of_row, of_before) = (&self.slices_of[row], &self.slices_of[before]);
        let made_after = |call: Option<usize>| self.made_after.iter().find(|(of, _)| Some(*of) == call).map(|(_, after)| after.clone());
        let n = of_row.len() as f64;
        if let Some(after) = made_after(way.returned_from()) {
            let share = n / after.len() as f64;
            after.for_each(|k| each(k + 1, if way.is_back() { k } else { of_before.end - 1 }, share));
        } else if let Some(callers) = made_after(way.called_over()) {
            let share = n / callers.len() as f64;
            callers.for_each(|k| each(of_row.start, k, share));
        } else {
            each(of_row.start, of_before.end - 1, n);
        }
    }

    /// The mean over the slices of a row.
    pub(super) fn mean_of_row<S: Scalar>(&self, r: usize, of_slice: impl Fn(usize) -> S) -> S {
        let of_row = self.slices_of[r].clone();
        let share = (of_row.len() as f64).recip();
        of_row.map(of_slice).fold(S::from(0.0), |sum, it| sum + it) * share
    }
}

impl<S: Scalar> At<'_, S> {
    /// The slices of all rows.
    pub(super) fn find_slices(&self, follows: &Follows, room: &mut Followed<S>) {
        room.slices.clear();
        room.present.clear();
        for (r, (of_row, it)) in follows.in_order.slices_of.iter().zip(self.visits).enumerate() {
            let share = (of_row.len() as f64).recip();
            let slice = Slice { row: r, rate: it.rate * share, service: it.first, wait: it.wait, strands: follows.strands[r] };
            room.slices.extend(of_row.clone().map(|_| slice));
            room.present.extend(of_row.clone().map(|_| S::from(share)));
        }
    }

    /// The part of the slices of a row that are there which are of each, by how long these are.
    pub(super) fn find_present(&self, follows: &Follows, room: &mut Followed<S>, found: &[S]) {
        if room.slices.len() == self.visits.len() {
            return;
        }
        let stays: Vec<S> = room.slices.iter().enumerate().map(|(k, slice)| waited(room, found, k) + slice.service).collect();
        for of_row in follows.in_order.slices_of.iter().filter(|of_row| of_row.len() > 1) {
            let all = stays[of_row.clone()].iter().fold(S::from(0.0), |sum, &stay| sum + stay);
            for k in of_row.clone().filter(|_| all > 0.0) {
                room.present[k] = stays[k] / all;
            }
        }
    }
}
