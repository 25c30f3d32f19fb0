//! What of a graph runs beside what, and how much of it once the entry has replied.
//!
//! ```text
//! Ω_vw = ∫ P(v runs at t) P(w runs at t) dt                          mean time in which both run
//! L_v = 1 - ∫ P(v runs at t) P(C_r > t) dt / X_v                     share of a vertex after the reply at the end of vertex r
//! ```
//!
//! Times are from the last vertex that both follow. A join of `k` that `v` comes before, and `w` after, may not have waited for `v`: while `v` runs `w` has begun
//! if `k` of the other strands have ended, so that the time of the `k`-th of those stands for that of the join.

use super::{Graph, Piece, Quorums, Start, Timeline};
use crate::{
    model::Scalar,
    solve::layered::{
        completion::{Moments, overlap},
        turns::{Strand, completion},
    },
};

/// Two vertices that can run at the same time.
#[derive(Clone, Debug)]
pub(in super::super) struct Beside {
    one: usize,
    other: usize,
    left: Option<Left>,
}

/// A join between the one and the other, and what it joins that does not come after the one.
#[derive(Clone, Debug)]
struct Left {
    join: usize,
    others: Vec<usize>,
}

/// Two nodes that can run at the same time, and what the one finds of the other.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Overlap<S> {
    pub nodes: (usize, usize),
    /// `Ω / (X_v X_w)`: divided by the rate of the entry, the factor on the load of the one that the other sees.
    pub density: S,
}

/// A vertex before a join, and one that it can meet.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Met {
    vertex: usize,
    other: usize,
    /// Whether the other is before the join, too.
    is_within: bool,
    /// How likely a join between the two leaves the one behind.
    chance: f64,
}

/// When something starts and ends.
type Run<S> = (Moments<S>, Moments<S>);

impl<S: Scalar> Graph<S> {
    pub(super) fn find_concurrent(&self) -> Vec<Beside> {
        let n = self.vertices.len();
        let pairs = (0..n).flat_map(|v| (v + 1..n).map(move |w| (v, w)));
        let both = pairs.filter_map(|(one, other)| {
            if !self.precedes(one, other, Quorums::Close) {
                return Some(Beside { one, other, left: None });
            }
            let left = if self.precedes(one, other, Quorums::Leave) { None } else { self.left(one, other) };
            left.map(|left| Beside { one, other, left: Some(left) })
        });
        both.collect()
    }

    /// The first join on the way to `w` that need not wait for `v`.
    fn left(&self, v: usize, w: usize) -> Option<Left> {
        let joins = self.ways_to(w, None).filter_map(|join| match &self.vertices[join].start {
            Start::Join { before, needed, dominator, .. } if *needed < before.len() && self.precedes(*dominator, v, Quorums::Close) => {
                let others: Vec<usize> = before.iter().copied().filter(|&p| p != v && !self.precedes(v, p, Quorums::Close)).collect();
                (others.len() >= *needed && others.len() < before.len()).then_some(Left { join, others })
            }
            _ => None,
        });
        joins.last()
    }

    /// Whom the vertices before a join can meet, if not only each other.
    pub(super) fn find_met(&self, join: usize) -> Vec<Met> {
        let Start::Join { before, dominator, .. } = &self.vertices[join].start else { return Vec::new() };
        let comes_before = |v: usize| before.iter().any(|&p| p == v || self.precedes(v, p, Quorums::Close));
        let is_of_join: Vec<bool> =
            (0..self.vertices.len()).map(|v| comes_before(v) && self.precedes(*dominator, v, Quorums::Close)).collect();
        let chance = |beside: &Beside| {
            beside.left.as_ref().map_or(1.0, |left| match &self.vertices[left.join].start {
                Start::Join { before, needed, .. } => 1.0 - *needed as f64 / before.len() as f64,
                Start::First | Start::After(_) => 0.0,
            })
        };
        let both = self.concurrent.iter().flat_map(|it| [(it.one, it.other, it), (it.other, it.one, it)]);
        let of_join = both.filter(|&(vertex, _, _)| is_of_join[vertex]);
        let met: Vec<Met> =
            of_join.map(|(vertex, other, it)| Met { vertex, other, is_within: is_of_join[other], chance: chance(it) }).collect();
        if met.iter().all(|it| it.is_within) { Vec::new() } else { met }
    }

    /// The share of what a vertex before a join waits for other strands that it waits for such before the join, by how long they and the
    /// vertex may meet and how much of that they wait themselves.
    pub(super) fn share_within(&self, timeline: &Timeline<S>, vertex: usize, join: usize) -> S {
        let zero = S::from(0.0);
        let own = timeline.work[vertex].time.mean;
        let (mut within, mut all) = (zero, zero);
        for it in self.met[join].iter().filter(|it| it.vertex == vertex) {
            let other = &timeline.work[it.other];
            if own + other.time.mean > 0.0 {
                let met = other.contended / (own + other.time.mean) * it.chance;
                all += met;
                within += if it.is_within { met } else { zero };
            }
        }
        if all > 0.0 { within / all } else { S::from(1.0) }
    }

    /// Overlap of all concurrent nodes, those inside loops included.
    pub fn overlaps(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Vec<Overlap<S>> {
        let timeline = self.timeline(elapsed);
        let mut overlaps = Vec::new();
        for beside in &self.concurrent {
            let (one, other) = self.runs(&timeline, beside);
            let both = timeline.work[beside.one].time.mean * timeline.work[beside.other].time.mean;
            let density = if both > 0.0 { overlap(one, other) / both } else { S::from(0.0) };
            for a in self.nodes_of(beside.one) {
                overlaps.extend(self.nodes_of(beside.other).into_iter().map(|b| Overlap { nodes: (a, b), density }));
            }
        }
        for vertex in &self.vertices {
            if let Piece::Loop(_, body) = &vertex.piece {
                overlaps.extend(body.overlaps(elapsed));
            }
        }
        overlaps
    }

    /// The share of their time that nodes run after the reply, of those that can run both before and after it.
    pub fn shares_after_reply(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Vec<(usize, S)> {
        let Some(reply) = self.reply else { return Vec::new() };
        let around: Vec<&Beside> = self.concurrent.iter().filter(|it| it.one == reply || it.other == reply).collect();
        if around.is_empty() {
            return Vec::new();
        }
        let timeline = self.timeline(elapsed);
        let mut shares = Vec::new();
        for beside in around {
            let (one, other) = self.runs(&timeline, beside);
            let (vertex, run, until) = if beside.one == reply { (beside.other, other, one.1) } else { (beside.one, one, other.1) };
            let time = timeline.work[vertex].time.mean;
            let before = if time > 0.0 { overlap(run, (Moments::zero(), until)) / time } else { S::from(1.0) };
            let after = if before < 1.0 { -before + 1.0 } else { S::from(0.0) };
            shares.extend(self.nodes_of(vertex).into_iter().map(|node| (node, after)));
        }
        shares
    }

    /// When both run, from the last vertex that both follow; what a join that need not wait for the one lets begin, given that it has not.
    fn runs(&self, timeline: &Timeline<S>, beside: &Beside) -> (Run<S>, Run<S>) {
        let &Beside { one, other, ref left } = beside;
        let work = |v: usize| timeline.work[v].time;
        let begins = |v: usize, end: Moments<S>| Moments::new(end.mean - work(v).mean, end.variance - work(v).variance);
        let run_after = |v: usize, d: Option<usize>| {
            let end = self.end_after(timeline, v, d);
            (begins(v, end), end)
        };
        let Some(Left { join, others }) = left else {
            let d = self.common_dominator(one, other);
            return (run_after(one, d), run_after(other, d));
        };
        let Start::Join { needed, dominator, .. } = &self.vertices[*join].start else { unreachable!("only joins leave strands behind") };
        let strands: Vec<Strand<S>> = others.iter().map(|&p| self.strand(timeline, p, *join)).collect();
        let end = completion(*needed, &strands) + work(*join) + self.end_after(timeline, other, Some(*join));
        (run_after(one, Some(*dominator)), (begins(other, end), end))
    }
}
