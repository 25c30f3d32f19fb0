//! Activity graphs with forks: when each strand starts and ends, when the entry replies, which strands overlap.
//!
//! A graph is a list of vertices, each a piece of work of one strand, in an order in which what must come first comes
//! first. Times are kept relative to the nearest vertex `d` that every way leads through (the dominator): up to `d` all
//! strands share one past, after it they are taken as independent.
//!
//! ```text
//! T_v = C_p                          start after vertex p            C_v = T_v + X_v   end
//! T_v = k-th smallest of C_p         start of a join of k            (all: the largest)
//! first phase  = C_reply,            the rest = max over the ends of strands - C_reply
//! Ω_vw = ∫ P(v runs at t) P(w runs at t) dt                          mean time in which both run
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `X_v` | duration of a vertex, mean and variance from its node's elapsed time |
//! | `T_v`, `C_v` | start and end, mean and variance, laws fitted to the two ([`super::completion`]) |
//! | `Ω_vw` | overlap: what own siblings are found at the same station ([`super::exclusion`]) |
//!
//! Sources: join delays from the first two moments of the branches: Jiang 1996, Franks 1999 §4.6; overlap: Mak & Lundstrom 1990.

use super::completion::{Moments, kth_completion, overlap};
use crate::model::Scalar;

/// The graph of an entry that forks.
#[derive(Clone, Debug)]
pub(super) struct Graph<S> {
    pub vertices: Vec<Vertex<S>>,
    /// The vertex at whose end the entry replies; none for customers, who wait for all strands.
    pub reply: Option<usize>,
    /// Vertices that nothing follows, and those whose join does not wait for all.
    pub ends: Vec<usize>,
    /// Pairs of vertices that can run at the same time.
    pub concurrent: Vec<(usize, usize)>,
}

/// A piece of one strand.
#[derive(Clone, Debug)]
pub(super) struct Vertex<S> {
    pub start: Start,
    pub piece: Piece<S>,
}

/// What a vertex does.
#[derive(Clone, Debug)]
pub(super) enum Piece<S> {
    /// A node's work.
    Leaf(usize),
    /// Nothing: a point at which strands meet.
    Empty,
    /// A body that forks and is repeated so many times in the mean.
    Loop(S, Box<Graph<S>>),
}

/// When a vertex starts.
#[derive(Clone, Debug)]
pub(super) enum Start {
    First,
    After(usize),
    Join { before: Vec<usize>, needed: usize, dominator: usize },
}

/// Times of one execution.
#[derive(Clone, Debug)]
pub(super) struct GraphTimes<S> {
    /// Until the reply (or the end, without one).
    pub first: Moments<S>,
    /// From the reply until all strands have ended.
    pub late: Moments<S>,
}

/// Two nodes that can run at the same time, and what the one finds of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap<S> {
    pub nodes: (usize, usize),
    /// `Ω / (X_v X_w)`: divided by the rate of the entry, the factor on the load of the one that the other sees.
    pub density: S,
}

/// Start and duration of every vertex; the start relative to the end of its dominator.
struct Timeline<S> {
    start: Vec<Moments<S>>,
    duration: Vec<Moments<S>>,
}

impl<S: Scalar> Graph<S> {
    /// Times of one execution, from the `elapsed` moments of a node.
    pub fn times(&self, elapsed: &dyn Fn(usize) -> Moments<S>) -> GraphTimes<S> {
        let timeline = self.timeline(elapsed);
        let end = self.latest(&timeline, &self.ends);
        let Some(reply) = self.reply else { return GraphTimes { first: end, late: Moments::zero() } };
        let first = self.end_after(&timeline, reply, None);
        let positive = |x: S| if x > 0.0 { x } else { S::from(0.0) };
        let mean = positive(end.mean - first.mean);
        // After the reply strands run that began before it: no more is known of the rest than that it is not constant.
        let variance = positive(end.variance - first.variance);
        GraphTimes { first, late: Moments { mean, variance: if variance > 0.0 { variance } else { mean * mean } } }
    }

    /// Overlap of all concurrent nodes, those inside loops included.
    pub fn overlaps(&self, elapsed: &dyn Fn(usize) -> Moments<S>) -> Vec<Overlap<S>> {
        let timeline = self.timeline(elapsed);
        let mut overlaps = Vec::new();
        for &(v, w) in &self.concurrent {
            let d = self.common_dominator(v, w);
            let run = |v: usize| {
                let end = self.end_after(&timeline, v, d);
                let own = timeline.duration[v];
                (Moments { mean: end.mean - own.mean, variance: end.variance - own.variance }, end)
            };
            let both = timeline.duration[v].mean * timeline.duration[w].mean;
            let density = if both > 0.0 { overlap(run(v), run(w)) / both } else { S::from(0.0) };
            for a in self.nodes_of(v) {
                overlaps.extend(self.nodes_of(w).into_iter().map(|b| Overlap { nodes: (a, b), density }));
            }
        }
        for vertex in &self.vertices {
            if let Piece::Loop(_, body) = &vertex.piece {
                overlaps.extend(body.overlaps(elapsed));
            }
        }
        overlaps
    }

    /// All nodes of a vertex.
    pub fn nodes_of(&self, vertex: usize) -> Vec<usize> {
        match &self.vertices[vertex].piece {
            Piece::Leaf(node) => vec![*node],
            Piece::Empty => Vec::new(),
            Piece::Loop(_, body) => (0..body.vertices.len()).flat_map(|v| body.nodes_of(v)).collect(),
        }
    }

    fn timeline(&self, elapsed: &dyn Fn(usize) -> Moments<S>) -> Timeline<S> {
        let n = self.vertices.len();
        let mut timeline = Timeline { start: vec![Moments::zero(); n], duration: vec![Moments::zero(); n] };
        for (v, vertex) in self.vertices.iter().enumerate() {
            timeline.duration[v] = match &vertex.piece {
                Piece::Leaf(node) => elapsed(*node),
                Piece::Empty => Moments::zero(),
                Piece::Loop(count, body) => body.times(elapsed).first.repeated(*count),
            };
            if let Start::Join { before, needed, dominator } = &vertex.start {
                let laws: Vec<Moments<S>> = before.iter().map(|&p| self.end_after(&timeline, p, Some(*dominator))).collect();
                timeline.start[v] = kth_completion(*needed, &laws);
            }
        }
        timeline
    }

    /// When the last of `vertices` ends, from the start of the graph.
    fn latest(&self, timeline: &Timeline<S>, vertices: &[usize]) -> Moments<S> {
        let Some((&first, rest)) = vertices.split_first() else { return Moments::zero() };
        if rest.is_empty() {
            return self.end_after(timeline, first, None);
        }
        let dominator = rest.iter().try_fold(first, |d, &v| self.common_dominator(d, v));
        let laws: Vec<Moments<S>> = vertices.iter().map(|&v| self.end_after(timeline, v, dominator)).collect();
        let last = kth_completion(laws.len(), &laws);
        dominator.map_or(last, |d| self.end_after(timeline, d, None) + last)
    }

    /// From the end of `dominator` (the start of the graph, if none) to the end of `vertex`.
    fn end_after(&self, timeline: &Timeline<S>, vertex: usize, dominator: Option<usize>) -> Moments<S> {
        let mut total = Moments::zero();
        let mut at = Some(vertex);
        while let Some(v) = at.filter(|&v| Some(v) != dominator) {
            total = total + timeline.start[v] + timeline.duration[v];
            at = self.dominator(v);
        }
        total
    }

    fn dominator(&self, vertex: usize) -> Option<usize> {
        match &self.vertices[vertex].start {
            Start::First => None,
            Start::After(p) => Some(*p),
            Start::Join { dominator, .. } => Some(*dominator),
        }
    }

    /// The last vertex that every way to either leads through (itself included).
    pub fn common_dominator(&self, v: usize, w: usize) -> Option<usize> {
        let (mut v, mut w) = (v, w);
        while v != w {
            if v > w {
                v = self.dominator(v)?;
            } else {
                w = self.dominator(w)?;
            }
        }
        Some(v)
    }

    /// Whether `w` can only start after `v` has ended. Each vertex is looked at once, however many ways lead to it.
    fn precedes(&self, v: usize, w: usize) -> bool {
        let mut seen = vec![false; self.vertices.len()];
        let mut open = vec![w];
        while let Some(at) = open.pop() {
            let before = match &self.vertices[at].start {
                Start::First => &[][..],
                Start::After(p) => std::slice::from_ref(p),
                Start::Join { before, .. } => before,
            };
            for &p in before {
                if p == v {
                    return true;
                }
                // What comes first stands first.
                if p > v && !std::mem::replace(&mut seen[p], true) {
                    open.push(p);
                }
            }
        }
        false
    }

    /// Settles what follows from the vertices alone: the ends and the concurrent pairs. What runs on beside the followers of a join
    /// that did not wait for it is short, and not counted as meeting them.
    pub fn finish(&mut self) {
        let n = self.vertices.len();
        let mut followed = vec![false; n];
        for vertex in &self.vertices {
            match &vertex.start {
                Start::First => {}
                Start::After(p) => followed[*p] = true,
                Start::Join { before, needed, .. } => {
                    before.iter().filter(|_| *needed == before.len()).for_each(|&p| followed[p] = true);
                }
            }
        }
        self.ends = (0..n).filter(|&v| !followed[v]).collect();
        self.concurrent = (0..n).flat_map(|v| (v + 1..n).map(move |w| (v, w))).filter(|&(v, w)| !self.precedes(v, w)).collect();
    }

    /// Whether `vertex` only starts once the entry has replied.
    pub fn after_reply(&self, vertex: usize) -> bool {
        self.reply.is_some_and(|r| self.precedes(r, vertex))
    }

    /// Largest number of strands at once, loops included: no more than there are ends of pairwise concurrent vertices.
    pub fn width(&self) -> usize {
        let mut widest = 1;
        for v in 0..self.vertices.len() {
            let mut group = vec![v];
            for w in v + 1..self.vertices.len() {
                if group.iter().all(|&g| self.concurrent.contains(&(g, w))) {
                    group.push(w);
                }
            }
            let inside = group
                .iter()
                .map(|&g| match &self.vertices[g].piece {
                    Piece::Leaf(_) => 1,
                    Piece::Empty => 0,
                    Piece::Loop(_, body) => body.width(),
                })
                .sum();
            widest = widest.max(inside);
        }
        widest
    }
}
