//! What slices find of the other strands of their own thread.
//!
//! Two branches of a fork begin at a core at the same time, in either order, and then go on slice by slice, each behind the other's last one. So, as of others,
//! what a slice finds follows from what the one before it found:
//!
//! ```text
//! o_j = ½ b_j Σ_i e_i + Σ_k p_jk η [o_k M + ½ b_k Σ_i e_i]          η_x = t_x / (t_x + a_jk)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `o_jx` | strands of the own thread that a slice of `j` finds at `x` |
//! | `b_j`, `e_i` | share of the slices of `j` that are the first ones of a branch; a slice of another branch `i` of the same fork |
//! | `η`, `t` | what is still there after a gap `a`, of slices that are here for `t` |
//!
//! A join ends it. Numbers of calls that are always the same have a memory, of how many slices are left, which this has not: with these only first slices are told, and all
//! others meet strands as at any time ([`super::super::siblings`]). So do those that follow none that is known, and all of them at several servers.

use super::{
    super::{At, Scratch},
    Followed, Follows, GOES_FIRST, MOST_PASSES, SETTLED, furthest,
};
use crate::model::Scalar;

impl<S: Scalar> At<'_, S> {
    /// What the last slice before a join waits for strands that began behind it, where it ends the last of them.
    fn waits_behind(&self, follows: &Follows, room: &Followed<S>, k: usize) -> S {
        let zero = S::from(0.0);
        let r = room.slices[k].row;
        let behind = |sum: S, &other: &usize| sum + self.visits[other].first * room.first[k] * GOES_FIRST;
        if follows.before_join[r] { follows.beside[r].iter().fold(zero, behind) } else { zero }
    }

    /// `o`, as a wait.
    pub(super) fn waits_for_own(&self, follows: &Follows, room: &Followed<S>, k: usize) -> S {
        let slice = &room.slices[k];
        self.share_of_own(slice.row) * slice.wait + self.waits_behind(follows, room, k)
    }

    /// How long a slice is here.
    pub(super) fn stay_of(&self, follows: &Follows, room: &Followed<S>, k: usize) -> S {
        let slice = &room.slices[k];
        slice.wait + slice.service + self.waits_behind(follows, room, k)
    }

    /// How long a slice of a row is here, but for what it waits for other strands.
    pub(super) fn others_stay(&self, r: usize) -> S {
        let it = &self.visits[r];
        it.first + it.wait * (-self.share_of_own(r) + 1.0)
    }

    /// The share of a row's wait that is for other strands.
    fn share_of_own(&self, r: usize) -> S {
        if self.layout.siblings { self.sweep.unknowns[self.places.contention + r] } else { S::from(0.0) }
    }

    /// `o`.
    pub(super) fn find_own(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        room.own.clear();
        room.own.resize(n * n, zero);
        if !self.layout.siblings {
            return;
        }
        if !follows.tells_own {
            for r in 0..n {
                follows.beside[r].iter().for_each(|&other| room.own[r * n + other] += room.first[r] * GOES_FIRST);
                room.unknown[r] = -room.first[r] + 1.0;
            }
            return;
        }
        for _ in 0..MOST_PASSES {
            room.moved.clear();
            room.moved.resize(n * n, zero);
            for k in 0..n {
                let own = &room.own[k * n..(k + 1) * n];
                let moved = &mut room.moved[k * n..(k + 1) * n];
                for it in room.parts.iter().filter(|it| !it.is_on) {
                    let theirs = room.slices[it.before].rate;
                    if theirs > 0.0 {
                        moved[it.after] += own[it.before] * (room.slices[it.after].rate * it.part / theirs);
                    }
                }
                follows.beside[k].iter().for_each(|&other| moved[other] += room.first[k] * GOES_FIRST);
            }
            room.next_own.clear();
            room.next_own.resize(n * n, zero);
            for it in room.parts.iter().filter(|it| !it.is_on) {
                for x in 0..n {
                    // What is served while the thread is elsewhere.
                    let stays = self.others_stay(x);
                    let part = if it.gap > 0.0 { it.of_all * stays / (stays + it.gap) } else { it.of_all };
                    room.next_own[it.after * n + x] += room.moved[it.before * n + x] * part;
                }
            }
            for r in 0..n {
                follows.beside[r].iter().for_each(|&other| room.next_own[r * n + other] += room.first[r] * GOES_FIRST);
            }
            let change = furthest(&room.own, &room.next_own);
            std::mem::swap(&mut room.own, &mut room.next_own);
            if change <= SETTLED {
                break;
            }
        }
    }

    /// What a row's slices find of the other strands of their thread, at an arc, as the slices before them say; and the share of which these say nothing.
    pub(in super::super) fn own_followed(&self, r: usize, x: usize, scratch: &Scratch<S>) -> Option<(S, S)> {
        self.layout.follows.as_ref().filter(|_| self.servers == 1.0)?;
        let room = &scratch.followed;
        let n = self.visits.len();
        room.own.get(r * n + x).map(|&own| (own, room.unknown[r]))
    }
}
