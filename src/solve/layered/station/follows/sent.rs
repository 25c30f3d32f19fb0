//! What slices find of the requests that their own one sent, and these of it.
//!
//! Who sends a request and does not wait for it goes on with its slice. In order of arrival the request is behind all that has come since the slice
//! did, and behind what is left of it; and the next slice of the sender is behind all that this one sent:
//!
//! ```text
//! q_j = Σ_k p_jk (q_k M + a_k) + Σ_k p_jk η i_k          a_kx = λ_x p_xk / λ_k
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `q_jx` | slices of `x` that one of `j` finds, of its own request, of those that this sent, or of who sent it |
//! | `a_kx` | requests of `x` that are sent in a slice of `k` |
//! | `η` | what is left of the sender's slice, over its mean, where `j` was sent by `k`; `i_k` a slice of `k`, and both 0 elsewhere |
//!
//! Random numbers are without memory: as much is left as a slice takes, and as many have been sent before as are in one. Of numbers that are always the same half
//! of both is on either side.

use super::{
    super::{At, Scratch},
    Followed, Follows, MOST_PASSES, SETTLED, furthest,
};
use crate::model::Scalar;

/// What is left of a slice where one of so many requests that are always sent is sent.
const HALF: f64 = 0.5;

impl<S: Scalar> At<'_, S> {
    /// `q`.
    pub(super) fn find_sent(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        room.sent.clear();
        room.sent.resize(n * n, zero);
        if !follows.are_sent || self.servers > 1.0 {
            return;
        }
        room.senders_left.clear();
        room.senders_left.resize(n, zero);
        for it in room.parts.iter().filter(|it| it.is_sent) {
            room.senders_left[it.row] += self.visits[it.before].first * it.part * self.left_of_sender(it.before);
        }
        for _ in 0..MOST_PASSES {
            room.moved.clear();
            room.moved.resize(n * n, zero);
            for it in &room.parts {
                let theirs = self.visits[it.before].rate;
                if theirs <= 0.0 {
                    continue;
                }
                let follow = self.visits[it.row].rate * it.part / theirs;
                for k in 0..n {
                    let found = room.sent[k * n + it.before];
                    room.moved[k * n + it.row] += found * follow;
                }
                if it.is_sent {
                    room.moved[it.before * n + it.row] += follow;
                }
            }
            room.next.clear();
            room.next.resize(n * n, zero);
            for it in &room.parts {
                for x in 0..n {
                    room.next[it.row * n + x] += room.moved[it.before * n + x] * it.part;
                }
                if it.is_sent {
                    room.next[it.row * n + it.before] += it.part * self.left_of_sender(it.before);
                }
            }
            self.add_left_behind_by_senders(follows, room);
            let change = furthest(&room.sent, &room.next);
            std::mem::swap(&mut room.sent, &mut room.next);
            if change <= SETTLED {
                break;
            }
        }
    }

    /// Adds what the own request's last visit sent and is still here.
    fn add_left_behind_by_senders(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let n_sources = room.sources.len();
        let all: f64 = room.sources.iter().map(|it| it.number).sum();
        let mut left = vec![S::from(0.0); n];
        for (c, it) in room.sources.iter().enumerate().filter(|(_, it)| it.end > 0.0) {
            left.fill(S::from(0.0));
            for k in 0..n {
                let leave = self.visits[k].rate * room.shares[k * n_sources + c] * follows.strands[k] * room.out[k] / it.end;
                for (x, left) in left.iter_mut().enumerate() {
                    *left += room.moved[k * n + x] * leave;
                }
            }
            for (x, left) in left.iter_mut().enumerate() {
                let v = &self.visits[x];
                let stay = v.first + v.wait - room.senders_left[x];
                let outlasts = if stay > 0.0 { stay * it.comes } else { S::from(0.0) };
                *left *= outlasts / (outlasts + 1.0);
            }
            for r in 0..n {
                let returns = room.shares[r * n_sources + c] * room.others[r];
                if returns <= 0.0 {
                    continue;
                }
                let any = self.share_of_any(room, r) / all;
                for (x, &left) in left.iter().enumerate() {
                    let more = left - room.any[r * n + x] * any;
                    if more > 0.0 {
                        room.next[r * n + x] += more * returns;
                    }
                }
            }
        }
    }

    /// `η` of the slices of a row.
    fn left_of_sender(&self, row: usize) -> f64 {
        let node = self.layout.rows[row].group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]]);
        if node.is_some_and(|node| node.deterministic) { HALF } else { 1.0 }
    }

    /// What a row's slices wait for what they find so.
    pub(super) fn waits_for_sent(&self, room: &Followed<S>, r: usize) -> S {
        let n = self.visits.len();
        let found = room.sent[r * n..(r + 1) * n].iter().zip(self.visits);
        found.fold(S::from(0.0), |sum, (&found, v)| sum + found * v.first)
    }

    /// Adds it to the parts of a row's wait.
    pub(super) fn add_sent(&self, room: &Followed<S>, r: usize, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let parts = scratch.beta[r * n..(r + 1) * n].iter_mut().zip(&room.sent[r * n..(r + 1) * n]);
        parts.zip(self.visits).for_each(|((part, &found), v)| *part += found * v.first);
    }
}
