//! Activity graphs with forks: when each strand starts and ends, when the entry replies, which strands overlap.
//!
//! A graph is a list of vertices, each a piece of work of one strand, in an order in which what must come first comes
//! first. Times are kept relative to the nearest vertex `d` that every way leads through (the dominator): up to `d` all
//! strands share one past, after it they are taken as independent.
//!
//! ```text
//! T_v = C_p                          start after vertex p            C_v = T_v + X_v   end
//! T_v = k-th smallest of C_p         start of a join of k ([`super::turns`])
//! first phase  = C_reply,            the rest = max over the ends of strands - C_reply
//! G_v = T_v for all - T_v            what a join v of fewer than all leaves running; with R what else ends after v, from there, the last end
//!                                    is T_v + M + q (G_v + R - M)      M = max of G_v and R, q the chance that one of the two waits for the other
//! β_w = [T(X_w (1 + ε)) - T] / (ε X_w)                               what a unit of time of w adds to an execution T
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

mod beside;

use petgraph::{algo::ford_fulkerson, graph::DiGraph};

use self::beside::{Beside, Met};
use super::{
    completion::{Moments, kth_completion},
    turns::{LONGER, Strand, completion},
};
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
    pub concurrent: Vec<Beside>,
    /// By vertex, of one that a join begins, whom those before the join may meet; none where these are all of that join.
    pub met: Vec<Vec<Met>>,
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
    Join {
        before: Vec<usize>,
        /// The activities that are joined, as the model has them.
        activities: Vec<String>,
        needed: usize,
        dominator: usize,
    },
}

impl Start {
    /// What must have ended before it.
    fn before(&self, quorums: Quorums) -> &[usize] {
        match (self, quorums) {
            (Self::First, _) => &[],
            (Self::After(p), _) => std::slice::from_ref(p),
            (Self::Join { before, needed, dominator, .. }, Quorums::Leave) if *needed < before.len() => std::slice::from_ref(dominator),
            (Self::Join { before, .. }, _) => before,
        }
    }
}

/// Times of one execution.
#[derive(Clone, Debug)]
pub(super) struct GraphTimes<S> {
    /// Until the reply (or the end, without one).
    pub first: Moments<S>,
    /// From the reply until all strands have ended.
    pub late: Moments<S>,
}

/// Start and work of every vertex; the start relative to the end of its dominator.
struct Timeline<S> {
    start: Vec<Moments<S>>,
    work: Vec<Strand<S>>,
    /// The share of what the work waits for strands that a join has left behind, or left it behind for, which is waited for the latter.
    trailing: Vec<S>,
    /// From the start of a join to the end of those for which it did not wait, and how long each of these then waits for those that begin there.
    straggling: Vec<(Moments<S>, S)>,
}

impl<S: Scalar> Timeline<S> {
    /// The work of a vertex, but for what it waits for those that begin where a join has left it behind.
    fn without_trailing(&self, v: usize) -> Moments<S> {
        self.work[v].without_left(self.trailing[v])
    }
}

impl<S> Graph<S> {
    /// The vertex, not in a loop, that is a node.
    pub fn vertex_of(&self, node: usize) -> Option<usize> {
        (0..self.vertices.len()).find(|&vertex| self.leaf(vertex) == Some(node))
    }

    /// The node of a vertex that is one.
    pub fn leaf(&self, vertex: usize) -> Option<usize> {
        if let Piece::Leaf(node) = &self.vertices[vertex].piece { Some(*node) } else { None }
    }

    /// All nodes of a vertex.
    pub fn nodes_of(&self, vertex: usize) -> Vec<usize> {
        match &self.vertices[vertex].piece {
            Piece::Leaf(node) => vec![*node],
            Piece::Empty => Vec::new(),
            Piece::Loop(_, body) => (0..body.vertices.len()).flat_map(|v| body.nodes_of(v)).collect(),
        }
    }
}

impl<S: Scalar> Graph<S> {
    /// Times of one execution, from the `elapsed` times of a node.
    pub fn times(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> GraphTimes<S> {
        let timeline = self.timeline(elapsed);
        let end = self.end(&timeline);
        let Some(reply) = self.reply else { return GraphTimes { first: end, late: Moments::zero() } };
        let first = self.end_after(&timeline, reply, None);
        // After the reply strands run that began before it: no more is known of the rest than that it is not constant.
        GraphTimes { first, late: end.after(first) }
    }

    /// By how much an execution is longer, until all strands have ended, for each unit of time that a node takes longer.
    pub fn delays(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Vec<(usize, S)> {
        let all = |times: GraphTimes<S>| times.first.mean + times.late.mean;
        let now = all(self.times(elapsed));
        let nodes = (0..self.vertices.len()).flat_map(|v| self.nodes_of(v));
        let delay = |node: usize| {
            let time = elapsed(node).time.mean;
            let longer = self.times(&|other| if other == node { elapsed(other).longer() } else { elapsed(other) });
            let delay = if time > 0.0 { (all(longer) - now) / (time * LONGER) } else { S::from(1.0) };
            (node, delay)
        };
        nodes.map(delay).collect()
    }

    /// The joins, those inside loops included, with the mean number of their executions in one of the graph and the time from the end of
    /// their dominator to each.
    pub fn joins(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Vec<(&[String], S, Moments<S>)> {
        let timeline = self.timeline(elapsed);
        let mut joins = Vec::new();
        for (vertex, &start) in self.vertices.iter().zip(&timeline.start) {
            if let Start::Join { activities, .. } = &vertex.start {
                joins.push((activities.as_slice(), S::from(1.0), start));
            }
            if let Piece::Loop(count, body) = &vertex.piece {
                joins.extend(body.joins(elapsed).into_iter().map(|(activities, times, delay)| (activities, times * *count, delay)));
            }
        }
        joins
    }

    fn timeline(&self, elapsed: &dyn Fn(usize) -> Strand<S>) -> Timeline<S> {
        let n = self.vertices.len();
        let (none, zero) = (Moments::zero(), S::from(0.0));
        let mut timeline =
            Timeline { start: vec![none; n], work: vec![Strand::none(); n], trailing: vec![zero; n], straggling: vec![(none, zero); n] };
        for (work, vertex) in timeline.work.iter_mut().zip(&self.vertices) {
            *work = match &vertex.piece {
                Piece::Leaf(node) => elapsed(*node),
                Piece::Empty => Strand::none(),
                Piece::Loop(count, body) => Strand { time: body.times(elapsed).first.repeated(*count), ..Strand::none() },
            };
        }
        self.set_trailing(&mut timeline);
        for (v, vertex) in self.vertices.iter().enumerate() {
            if let Start::Join { before, needed, .. } = &vertex.start {
                let strands: Vec<Strand<S>> = before.iter().map(|&p| self.strand(&timeline, p, v)).collect();
                timeline.start[v] = completion(*needed, &strands);
                if *needed < strands.len() {
                    let trailing = before.iter().fold(zero, |sum, &p| sum + self.trailing_to(&timeline, p, v));
                    let left = completion(strands.len(), &strands).after(timeline.start[v]);
                    timeline.straggling[v] = (left, trailing / (strands.len() - needed) as f64);
                }
            }
        }
        timeline
    }

    /// All from the end of its dominator to the end of `vertex` that a `join` is for.
    fn strand(&self, timeline: &Timeline<S>, vertex: usize, join: usize) -> Strand<S> {
        let dominator = self.dominator(join);
        // What begins after the join it does not wait for before it.
        let time = self.ways_to(vertex, dominator).fold(Moments::zero(), |sum, v| sum + timeline.start[v] + timeline.without_trailing(v));
        let mut strand = Strand { time, ..Strand::none() };
        for v in self.ways_to(vertex, dominator) {
            let work = &timeline.work[v];
            strand.contend(work.contended * self.share_within(timeline, v, join), work.servers);
            if matches!(self.vertices[v].start, Start::After(p) if Some(p) == dominator) {
                (strand.shared, strand.shared_by_chance) = (work.shared, work.shared_by_chance);
            }
        }
        strand
    }

    /// What vertices wait, on the way to one before a join, for those that begin where they are left behind.
    fn trailing_to(&self, timeline: &Timeline<S>, vertex: usize, join: usize) -> S {
        self.ways_to(vertex, self.dominator(join)).fold(S::from(0.0), |sum, v| sum + timeline.trailing[v] * timeline.work[v].left)
    }

    /// When the last vertex ends, from the start of the graph.
    fn end(&self, timeline: &Timeline<S>) -> Moments<S> {
        let joins: Vec<usize> = (0..self.vertices.len()).filter(|&v| self.not_waited_for(v).is_some()).collect();
        self.end_from(timeline, None, &joins, &self.ends)
    }

    /// When the last of `ends` ends, from the end of a vertex `from` (the start of the graph, if none), after which come `joins` that do not wait for all.
    fn end_from(&self, timeline: &Timeline<S>, from: Option<usize>, joins: &[usize], ends: &[usize]) -> Moments<S> {
        let Some((&join, later)) = joins.split_first() else { return self.latest(timeline, ends, from) };
        let left = self.not_waited_for(join).unwrap_or_default();
        let after: Vec<usize> = ends.iter().copied().filter(|end| !left.contains(end)).collect();
        let follows = |v: usize| self.ways_to(v, from).any(|way| way == join);
        let left_by_later = |end: &usize| later.iter().any(|&j| self.not_waited_for(j).is_some_and(|left| left.contains(end)));
        let work = timeline.work[join].time;
        let until = self.end_after(timeline, join, from).without(work);
        // All that is left runs beside what the join did not wait for.
        let rest = if later.iter().all(|&v| follows(v)) && after.iter().all(|end| follows(*end) || left_by_later(end)) {
            work + self.end_from(timeline, Some(join), later, &after)
        } else {
            self.end_from(timeline, from, later, &after).without(until)
        };
        let last_slices = left.iter().fold(S::from(0.0), |sum, &p| sum + timeline.work[p].last_slice) / left.len() as f64;
        let behind = after.iter().map(|&end| self.behind_left(timeline, end, join));
        let behind = behind.fold(S::from(0.0), |most, wait| if wait > most { wait } else { most });
        until + last_of_both(timeline.straggling[join], rest, behind * last_slices)
    }

    /// What is waited, from a join to the end of `vertex`, for those that it has left behind.
    fn behind_left(&self, timeline: &Timeline<S>, vertex: usize, join: usize) -> S {
        let wait = |v: usize| timeline.work[v].left * (-timeline.trailing[v] + 1.0);
        self.ways_to(vertex, Some(join)).fold(wait(join), |sum, v| sum + wait(v))
    }

    /// What a join joins, of which it does not wait for all.
    fn not_waited_for(&self, join: usize) -> Option<&[usize]> {
        match &self.vertices[join].start {
            Start::Join { before, needed, .. } if *needed < before.len() => Some(before),
            _ => None,
        }
    }

    /// When the last of `vertices` ends, from the end of `from` (the start of the graph, if none).
    fn latest(&self, timeline: &Timeline<S>, vertices: &[usize], from: Option<usize>) -> Moments<S> {
        let Some((&first, rest)) = vertices.split_first() else { return Moments::zero() };
        if rest.is_empty() {
            return self.end_after(timeline, first, from);
        }
        let dominator = rest.iter().try_fold(first, |d, &v| self.common_dominator(d, v));
        let laws: Vec<Moments<S>> = vertices.iter().map(|&v| self.end_after(timeline, v, dominator)).collect();
        let last = kth_completion(laws.len(), &laws);
        dominator.map_or(last, |d| self.end_after(timeline, d, from) + last)
    }

    /// From the end of `dominator` (the start of the graph, if none) to the end of `vertex`.
    fn end_after(&self, timeline: &Timeline<S>, vertex: usize, dominator: Option<usize>) -> Moments<S> {
        self.ways_to(vertex, dominator).fold(Moments::zero(), |total, v| total + timeline.start[v] + timeline.work[v].time)
    }

    /// The vertices that every way from `dominator` to `vertex` leads through, from `vertex` up; without `dominator` itself.
    fn ways_to(&self, vertex: usize, dominator: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(vertex), |&v| self.dominator(v)).take_while(move |&v| Some(v) != dominator)
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

    /// Whether `w` can only start after `v` has ended, what a join does not wait for taken to end with it or not. Each vertex is looked at once,
    /// however many ways lead to it.
    fn precedes(&self, v: usize, w: usize, quorums: Quorums) -> bool {
        let mut seen = vec![false; self.vertices.len()];
        let mut open = vec![w];
        while let Some(at) = open.pop() {
            for &p in self.vertices[at].start.before(quorums) {
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

    /// Settles what follows from the vertices alone: the ends and the concurrent pairs.
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
        self.concurrent = self.find_concurrent();
        self.met = (0..n).map(|join| self.find_met(join)).collect();
    }

    /// Whether `vertex` only starts once the entry has replied.
    pub fn after_reply(&self, vertex: usize) -> bool {
        self.reply.is_some_and(|r| self.precedes(r, vertex, Quorums::Close))
    }

    /// Largest number of strands at once, loops included.
    pub fn width(&self) -> f64 {
        self.widest(&|_| true, Quorums::Close)
    }

    /// Largest number of strands at once that are at one of some nodes; what runs on beside the followers of a join that did not wait for it
    /// counts beside these.
    pub fn width_of(&self, is_one: &dyn Fn(usize) -> bool) -> f64 {
        self.widest(is_one, Quorums::Leave)
    }

    /// Vertices of which none comes before another: all, but for the most that stand one behind the other (R. P. Dilworth, 1950), which is a largest flow
    /// from each vertex to one after it.
    fn widest(&self, is_one: &dyn Fn(usize) -> bool, quorums: Quorums) -> f64 {
        let mut after: DiGraph<(), f64> = DiGraph::new();
        let (begin, end) = (after.add_node(()), after.add_node(()));
        let places: Vec<_> = self.vertices.iter().map(|_| (after.add_node(()), after.add_node(()))).collect();
        let mut all = 0.0;
        for (vertex, &(comes, leaves)) in self.vertices.iter().zip(&places) {
            let strands = match &vertex.piece {
                Piece::Leaf(node) => f64::from(u8::from(is_one(*node))),
                Piece::Empty => 0.0,
                Piece::Loop(_, body) => body.widest(is_one, quorums),
            };
            all += strands;
            after.add_edge(begin, leaves, strands);
            after.add_edge(comes, end, strands);
            after.add_edge(comes, leaves, f64::MAX);
            vertex.start.before(quorums).iter().for_each(|&p| {
                after.add_edge(places[p].1, comes, f64::MAX);
            });
        }
        let (behind, _) = ford_fulkerson(&after, begin, end);
        all - behind
    }
}

/// When both have ended what a join has left, which then `trails` so long behind what follows, and the rest, which is so long `behind` what was left.
/// They are independent but where one waits for the other: then it goes on after it.
fn last_of_both<S: Scalar>((left, trails): (Moments<S>, S), rest: Moments<S>, behind: S) -> Moments<S> {
    let least = |x: S, y: S| if x < y { x } else { y };
    if left.mean <= 0.0 || rest.mean <= 0.0 {
        return kth_completion(2, &[left, rest]);
    }
    // No longer than those are left.
    let behind = least(behind, least(left.mean, rest.mean));
    let after = rest.scaled((rest.mean - behind) / rest.mean);
    let last = kth_completion(2, &[left, after]);
    let waits = least(trails / rest.mean + behind / left.mean, S::from(1.0));
    let both = left.mean + after.mean - last.mean;
    Moments { mean: last.mean + if both > 0.0 { waits * both } else { S::from(0.0) }, ..last }
}

/// Whether what a join does not wait for ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quorums {
    Close,
    Leave,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn graph(starts: Vec<Start>) -> Graph<f64> {
        let vertices = starts.into_iter().enumerate().map(|(node, start)| Vertex { start, piece: Piece::Leaf(node) }).collect();
        let mut graph = Graph { vertices, reply: None, ends: Vec::new(), concurrent: Vec::new(), met: Vec::new() };
        graph.finish();
        graph
    }

    #[test]
    fn strands_at_once_are_those_of_which_none_comes_before_another() {
        use Start::{After, First};
        // The second of two branches forks again.
        let nested = graph(vec![First, After(0), After(0), After(2), After(2)]);
        assert_eq!(nested.width(), 3.0);
        for (nodes, width) in [(&[1, 3][..], 2.0), (&[3], 1.0), (&[2, 3], 1.0), (&[0, 3, 4], 2.0), (&[], 0.0)] {
            assert_eq!(nested.width_of(&|node| nodes.contains(&node)), width, "{nodes:?}");
        }
    }

    #[test]
    fn who_was_not_waited_for_is_there_beside_what_follows() {
        let join = Start::Join { before: vec![1, 2], activities: Vec::new(), needed: 1, dominator: 0 };
        let quorum = graph(vec![Start::First, Start::After(0), Start::After(0), join]);
        assert_eq!(quorum.width(), 2.0);
        assert_eq!(quorum.width_of(&|node| node == 1 || node == 3), 2.0);
        // Exponential times: the one that is left takes its mean, and what follows as long; 1 + 1 - 1/2 from the join.
        let times = quorum.times(&|_| Strand::exponential(1.0));
        assert!((times.first.mean - (1.0 + 0.5 + 1.5)).abs() < 1e-4, "{times:?}");
    }

    #[test]
    fn a_branch_delays_an_execution_by_what_it_is_waited_for() {
        let join = Start::Join { before: vec![1, 2], activities: Vec::new(), needed: 2, dominator: 0 };
        let forked = graph(vec![Start::First, Start::After(0), Start::After(0), join]);
        // The last of two exponential times of 1 and 3 is at 4 - 3/4; its slopes are 1 - (3/4)² and 1 - (1/4)².
        let delays = forked.delays(&|node| Strand::exponential(if node == 2 { 3.0 } else { 1.0 }));
        for (node, expected) in [(0, 1.0), (1, 1.0 - 0.5625), (2, 1.0 - 0.0625), (3, 1.0)] {
            let (_, delay) = delays[node];
            assert!((delay - expected).abs() < 2e-3, "{node}: {delay}, expected {expected}");
        }
    }

    #[test]
    fn of_two_that_wait_for_each_other_one_goes_on_after_the_other() {
        let exponential = |mean: f64| Moments::new(mean, mean * mean);
        let last = |trails: f64, behind: f64| last_of_both((exponential(1.0), trails), exponential(3.0 + behind), behind).mean;
        assert!((last(0.0, 0.0) - (4.0 - 0.75)).abs() < 1e-4);
        assert!((last(3.0, 0.0) - 4.0).abs() < 1e-4 && (last(0.0, 1.0) - 4.0).abs() < 1e-4);
        assert!((last(1.5, 0.0) - (4.0 - 0.375)).abs() < 1e-4);
    }

    /// What the first join leaves has ended by the second.
    #[test]
    fn ends_are_those_after_the_last_join_that_leaves_some() {
        let join =
            |before: [usize; 2], dominator: usize| Start::Join { before: before.into(), activities: Vec::new(), needed: 1, dominator };
        let of_one = [Start::First, Start::After(0), Start::After(0), join([1, 2], 0), Start::After(3), Start::After(3), join([4, 5], 3)];
        let both = graph(of_one.into());
        // Branches of mean 1, 1 and 10, 10, and nearly nothing else.
        let times = both.times(&|node| Strand::exponential([1e-6, 1.0, 1.0, 1e-6, 10.0, 10.0, 1e-6][node]));
        assert!((times.first.mean - (0.5 + 15.0)).abs() < 0.1, "{times:?}");
    }
}
