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
        completion::{Moments, overlap, runs_at},
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
    /// Whether the other only begins at a join that has left the one behind, and then by how much likelier the one is there at the beginning of the
    /// other than at any time of it.
    pub left: Option<S>,
}

/// A vertex before a join, and one that it can meet.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Met {
    vertex: usize,
    other: usize,
    /// Whether the other is before the join, too.
    is_within: bool,
}

/// When something starts, and how long it takes.
#[derive(Clone, Copy, Debug)]
struct Run<S> {
    start: Moments<S>,
    work: Moments<S>,
}

impl<S: Scalar> Run<S> {
    fn end(&self) -> Moments<S> {
        self.start + self.work
    }

    fn bounds(&self) -> (Moments<S>, Moments<S>) {
        (self.start, self.end())
    }
}

/// By how much likelier `one` runs when `other` begins than while that runs, which is `both` of the time of `other`.
fn at_the_beginning<S: Scalar>(one: Run<S>, other: Run<S>, both: S) -> S {
    if both > 0.0 { runs_at(one.bounds(), other.start) * other.work.mean / both } else { S::from(1.0) }
}

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
        let both = self.concurrent.iter().filter(|it| it.left.is_none()).flat_map(|it| [(it.one, it.other), (it.other, it.one)]);
        let of_join = both.filter(|&(vertex, _)| is_of_join[vertex]);
        let met: Vec<Met> = of_join.map(|(vertex, other)| Met { vertex, other, is_within: is_of_join[other] }).collect();
        if met.iter().all(|it| it.is_within) { Vec::new() } else { met }
    }

    /// The share of what a vertex before a join waits for other strands that it waits for such before the join, by how long these may meet it
    /// and how long it then waits for them, if they began together and were exponential.
    pub(super) fn share_within(&self, timeline: &Timeline<S>, vertex: usize, join: usize) -> S {
        let zero = S::from(0.0);
        let own = timeline.work[vertex].time.mean;
        let (mut within, mut all) = (zero, zero);
        for it in self.met[join].iter().filter(|it| it.vertex == vertex) {
            let other = &timeline.work[it.other];
            let time = other.time.mean;
            if other.contended > 0.0 {
                let met = time * time / (own + time);
                all += met;
                within += if it.is_within { met } else { zero };
            }
        }
        if all > 0.0 { within / all } else { S::from(1.0) }
    }

    /// Splits what vertices wait for those that joins leave behind, or leave them behind for, as [`Self::share_within`] does.
    pub(super) fn set_trailing(&self, timeline: &mut Timeline<S>) {
        let zero = S::from(0.0);
        let mut parts = vec![(zero, zero); self.vertices.len()];
        for it in self.concurrent.iter().filter(|it| it.left.is_some()) {
            let (one, other) = (&timeline.work[it.one], &timeline.work[it.other]);
            if one.left > 0.0 && other.left > 0.0 {
                let both = one.time.mean + other.time.mean;
                parts[it.one].0 += other.time.mean * other.time.mean / both;
                parts[it.other].1 += one.time.mean * one.time.mean / both;
            }
        }
        for (trailing, (behind, ahead)) in timeline.trailing.iter_mut().zip(parts) {
            *trailing = if behind > 0.0 { behind / (behind + ahead) } else { zero };
        }
    }

    /// Overlap of all concurrent nodes, those inside loops included.
    pub fn overlaps(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Vec<Overlap<S>> {
        let timeline = self.timeline(elapsed);
        let mut overlaps = Vec::new();
        for beside in &self.concurrent {
            let (one, other) = self.runs(&timeline, beside);
            let times = one.work.mean * other.work.mean;
            let both = overlap(one.bounds(), other.bounds());
            let density = if times > 0.0 { both / times } else { S::from(0.0) };
            let left = beside.left.is_some().then(|| at_the_beginning(one, other, both));
            for a in self.nodes_of(beside.one) {
                overlaps.extend(self.nodes_of(beside.other).into_iter().map(|b| Overlap { nodes: (a, b), density, left }));
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
            let (vertex, run, until) = if beside.one == reply { (beside.other, other, one.end()) } else { (beside.one, one, other.end()) };
            let time = run.work.mean;
            let before = if time > 0.0 { overlap(run.bounds(), (Moments::zero(), until)) / time } else { S::from(1.0) };
            let after = if before < 1.0 { -before + 1.0 } else { S::from(0.0) };
            shares.extend(self.nodes_of(vertex).into_iter().map(|node| (node, after)));
        }
        shares
    }

    /// When both run, from the last vertex that both follow; what a join that need not wait for the one lets begin, given that it has not.
    fn runs(&self, timeline: &Timeline<S>, beside: &Beside) -> (Run<S>, Run<S>) {
        let &Beside { one, other, ref left } = beside;
        let Some(Left { join, others }) = left else {
            let d = self.common_dominator(one, other);
            return (self.run_after(timeline, one, d), self.run_after(timeline, other, d));
        };
        let Start::Join { needed, dominator, .. } = &self.vertices[*join].start else { unreachable!("only joins leave strands behind") };
        let strands: Vec<Strand<S>> = others.iter().map(|&p| self.strand(timeline, p, *join)).collect();
        let start = completion(*needed, &strands) + if other == *join { Moments::zero() } else { timeline.work[*join].time };
        let on_the_way = self.run_after(timeline, other, Some(*join));
        let start = if other == *join { start } else { start + on_the_way.start };
        // While it waits for the other it does not come to where that is.
        let mut left = self.run_after(timeline, one, Some(*dominator));
        left.work = timeline.without_trailing(one);
        (left, Run { start, work: timeline.work[other].time })
    }

    /// When a vertex runs, from the end of `dominator`, one of its own (the start of the graph, if none).
    fn run_after(&self, timeline: &Timeline<S>, vertex: usize, dominator: Option<usize>) -> Run<S> {
        let before = match self.dominator(vertex) {
            d if d == dominator => Moments::zero(),
            Some(d) if Some(vertex) != dominator => self.end_after(timeline, d, dominator),
            _ => Moments::zero(),
        };
        Run { start: before + timeline.start[vertex], work: timeline.work[vertex].time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::layered::graph::tests::graph;

    /// One of two branches is waited for, then the reply.
    fn quorum() -> Graph<f64> {
        let join = Start::Join { before: vec![1, 2], activities: Vec::new(), needed: 1, dominator: 0 };
        let mut graph = graph(vec![Start::First, Start::After(0), Start::After(0), join]);
        graph.reply = Some(3);
        graph
    }

    /// All of exponential times of mean 1: a branch is left in one of two cases, for 1 more, of which half is beside what follows.
    #[test]
    fn a_strand_left_behind_runs_beside_what_follows() {
        let quorum = quorum();
        let overlaps = quorum.overlaps(&|_| Strand::exponential(1.0));
        assert_eq!(overlaps.iter().map(|it| it.nodes).collect::<Vec<_>>(), [(1, 2), (1, 3), (2, 3)]);
        assert!((overlaps[0].density - 0.5).abs() < 1e-4 && overlaps[0].left.is_none(), "{:?}", overlaps[0]);
        for it in &overlaps[1..] {
            assert!((it.density - 0.25).abs() < 1e-3, "{it:?}");
            // It is there with chance 1/2 where the other begins, and with 1/4 at any time of that.
            assert!((it.left.unwrap() - 2.0).abs() < 0.01, "{it:?}");
        }
        for (_, share) in quorum.shares_after_reply(&|_| Strand::exponential(1.0)) {
            assert!((share - 0.25).abs() < 1e-3, "{share}");
        }
    }

    /// What begins where it is left behind it does not wait for before.
    #[test]
    fn waits_behind_a_join_do_not_delay_it() {
        let waiting = |node: usize| match node {
            3 => Strand { left: 0.1, left_variance: 1.0, ..Strand::exponential(1.1) },
            0 => Strand::exponential(1.0),
            _ => Strand { left: 0.5, left_variance: 1.0, ..Strand { time: Moments::new(1.5, 2.0), ..Strand::none() } },
        };
        let mut quorum = quorum();
        quorum.reply = None;
        let joins = quorum.joins(&waiting);
        assert!((joins[0].2.mean - 0.5).abs() < 1e-3, "{joins:?}");
        quorum.reply = Some(0);
        // After the join: what is left of mean 1 and what follows, 1.1, are later than 3/2 together, since the one waits for the other.
        let rest = quorum.times(&waiting).late.mean - 0.5;
        assert!(rest > 1.55 && rest < 2.1, "{rest}");
    }

    /// The inner of two joins, whose branches wait for each other and as long for one that the outer joins.
    #[test]
    fn waits_for_others_than_those_of_a_join_are_told_from_theirs() {
        let join =
            |before: &[usize], dominator: usize| Start::Join { before: before.to_vec(), activities: Vec::new(), needed: 2, dominator };
        let first = vec![Start::First, Start::After(0), Start::After(0), Start::After(1), Start::After(1)];
        let nested = graph(first.into_iter().chain([join(&[3, 4], 1), join(&[5, 2], 0)]).collect());
        let timeline = nested.timeline(&|_| Strand { contended: 0.4, servers: 1.0, ..Strand::exponential(1.0) });
        assert!((nested.share_within(&timeline, 3, 5) - 0.5).abs() < 1e-9);
        assert_eq!(nested.share_within(&timeline, 2, 6), 1.0);
    }
}
