//! Activity graphs that fork, cut into vertices: each what one strand does between forks, joins and the reply.
//!
//! Inside a strand, sequences, choices and loops are summed in the mean, as they are in graphs without forks. A choice or a
//! loop that forks inside is kept as it is (loops), or refused by name (choices).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    super::{
        super::{activities, bind::unusable},
        graph::{Graph, Piece, Start, Vertex},
        net::{Kin, Work},
    },
    Compiler, SolveError, unsupported,
};
use crate::model::{Entry, Number, Post, Pre, Precedence, Scalar, Task};

/// Bound on the vertices of a graph, which only a circle of activities can exceed.
const MAX_VERTICES: usize = 4096;

/// How a strand's piece ended.
enum Stop<'a> {
    /// Nothing follows.
    End,
    /// The activity replied or is followed by a fork, a join or a loop that forks.
    At(&'a str),
}

/// A strand still to be cut: its start and the activities to begin with, with their mean executions.
struct Pending<'a, S> {
    start: Start,
    activities: Vec<(&'a str, S)>,
}

/// What is known of a task's graph before it is cut.
struct Outline<'a> {
    task: &'a Task,
    entry: &'a Entry,
    /// Position of an activity in an order in which it comes after all that lead to it.
    position: HashMap<&'a str, usize>,
}

impl<'a> Outline<'a> {
    fn new(task: &'a Task, entry: &'a Entry, start: &'a str) -> Self {
        let mut outline = Self { task, entry, position: HashMap::new() };
        let mut finished = Vec::new();
        let mut open: Vec<(&'a str, bool)> = vec![(start, false)];
        let mut seen = std::collections::HashSet::new();
        while let Some((name, done)) = open.pop() {
            if done {
                finished.push(name);
            } else if seen.insert(name) {
                open.push((name, true));
                let post = outline.after(name).and_then(|p| p.post.as_ref());
                open.extend(post.map(Post::activities).unwrap_or_default().into_iter().map(|n| (n, false)));
            }
        }
        outline.position = finished.iter().rev().enumerate().map(|(i, &name)| (name, i)).collect();
        outline
    }

    fn after(&self, activity: &str) -> Option<&'a Precedence> {
        self.task.precedences.iter().find(|p| p.pre.activities().iter().any(|n| n == activity))
    }

    fn replies(&self, activity: &str) -> bool {
        self.task.replies.iter().any(|r| r.entry == self.entry.name && r.activity == activity)
    }

    /// Whether an activity does not call or think before its first slice.
    fn begins_at_processor(&self, activity: &str) -> bool {
        let it = self.task.activities.iter().find(|a| a.name == activity);
        it.is_some_and(|a| !a.host_demand.is(0.0) && a.think_time.is(0.0))
    }

    /// Whether nothing that can follow `activity` forks, joins or replies.
    fn is_plain(&self, activity: &str) -> bool {
        let mut open = vec![activity];
        let mut seen = std::collections::HashSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            if self.replies(name) {
                return false;
            }
            let Some(precedence) = self.after(name) else { continue };
            if joins(precedence).is_some() || forks(precedence) {
                return false;
            }
            open.extend(precedence.post.as_ref().map(Post::activities).unwrap_or_default());
        }
        true
    }
}

/// The joined activities and the quorum, of a join of several.
fn joins(precedence: &Precedence) -> Option<(&[String], &Number)> {
    match &precedence.pre {
        Pre::And { activities, quorum } if activities.len() > 1 => Some((activities, quorum)),
        _ => None,
    }
}

fn forks(precedence: &Precedence) -> bool {
    matches!(&precedence.post, Some(Post::And(branches)) if branches.len() > 1)
}

impl<'a, S: Scalar> Compiler<'a, S> {
    pub(super) fn add_graph(&mut self, index: usize, task: &'a Task, entry: &'a Entry) -> Result<(), SolveError> {
        let Some(start) = &entry.start_activity else { return Ok(()) };
        let outline = Outline::new(task, entry, start);
        let graph = self.cut(index, &outline, start, S::from(1.0))?;
        let task_index = self.net.entries[index].task;
        let customer = self.net.tasks[task_index].class.is_some();
        for vertex in 0..graph.vertices.len() {
            let late = graph.after_reply(vertex);
            for node in graph.nodes_of(vertex) {
                let kin = self.net.kins.len();
                self.net.kins.push(Kin { task: task_index, entry: (!late && !customer).then_some(index), strand: Some(node) });
                self.net.nodes[node].phase = usize::from(late);
                self.net.nodes[node].kin = kin;
            }
        }
        self.net.tasks[task_index].width = self.net.tasks[task_index].width.max(graph.width());
        let it = &mut self.net.entries[index];
        it.n_phases = if graph.reply.is_some_and(|r| graph.ends.as_slice() != [r]) { 2 } else { 1 };
        it.work = Work::Graph(graph);
        Ok(())
    }

    /// Finds where threads of tasks that fork can have fewer strands at once than they have at all.
    pub(super) fn narrow(&mut self) {
        let mut nodes_at: BTreeMap<(usize, usize), HashSet<usize>> = BTreeMap::new();
        for arc in &self.net.arcs {
            let Some(node) = arc.source.held() else { continue };
            let task = self.net.nodes[node].task;
            if self.net.tasks[task].width > 1.0 {
                nodes_at.entry((task, arc.station)).or_default().insert(node);
            }
        }
        for ((task, station), nodes) in nodes_at {
            let widths = self.net.tasks[task].entries.iter().map(|&entry| match &self.net.entries[entry].work {
                Work::Graph(graph) => graph.width_of(&|node| nodes.contains(&node)),
                Work::Phases(_) => 1.0,
            });
            let widest = widths.fold(1.0, f64::max);
            if widest < self.net.tasks[task].width {
                self.net.narrow.insert((task, station), widest);
            }
        }
    }

    /// The graph from `start` on, executed `weight` times in one execution of the entry.
    fn cut(&mut self, entry: usize, outline: &Outline<'a>, start: &'a str, weight: S) -> Result<Graph<S>, SolveError> {
        let mut graph = Graph { vertices: Vec::new(), reply: None, ends: Vec::new(), concurrent: Vec::new(), met: Vec::new() };
        let mut joined: HashMap<*const Precedence, Vec<usize>> = HashMap::new();
        let mut pending = vec![Pending { start: Start::First, activities: vec![(start, S::from(1.0))] }];
        while let Some(strand) = pending.pop() {
            if graph.vertices.len() >= MAX_VERTICES {
                return Err(unusable(format!("task \"{}\"", outline.task.name), "its activity graph never ends"));
            }
            let (visits, stop) = self.walk(outline, &strand.activities)?;
            let piece = if visits.is_empty() {
                Piece::Empty
            } else {
                let node = self.leaf(entry, outline, &visits, weight)?;
                self.net.nodes[node].begins_at_processor = strand.activities.iter().all(|(name, _)| outline.begins_at_processor(name));
                Piece::Leaf(node)
            };
            graph.vertices.push(Vertex { start: strand.start, piece });
            let v = graph.vertices.len() - 1;
            let Stop::At(name) = stop else { continue };
            if outline.replies(name) {
                graph.reply = Some(v);
            }
            self.follow(entry, outline, name, v, weight, &mut graph, &mut joined, &mut pending)?;
        }
        let complete = joined.iter().all(|(_, before)| before.is_empty());
        if !complete {
            return Err(unsupported("a join of branches that no common fork starts", format!("task \"{}\"", outline.task.name)));
        }
        graph.finish();
        self.begin_together(&graph);
        Ok(graph)
    }

    /// Tells the strands that begin at their processor at the same time.
    fn begin_together(&mut self, graph: &Graph<S>) {
        let mut first = HashMap::new();
        for vertex in &graph.vertices {
            if let (Start::After(p), Piece::Leaf(node)) = (&vertex.start, &vertex.piece) {
                let it = &mut self.net.nodes[*node];
                it.begins_with = it.begins_at_processor.then(|| *first.entry(*p).or_insert(*node));
            }
        }
    }

    /// Puts what follows `name`, the last activity of vertex `v`, on the list.
    #[expect(clippy::too_many_arguments, reason = "the state of one cut")]
    fn follow(
        &mut self,
        entry: usize,
        outline: &Outline<'a>,
        name: &'a str,
        v: usize,
        weight: S,
        graph: &mut Graph<S>,
        joined: &mut HashMap<*const Precedence, Vec<usize>>,
        pending: &mut Vec<Pending<'a, S>>,
    ) -> Result<(), SolveError> {
        let Some(precedence) = outline.after(name) else { return Ok(()) };
        let mut start = Start::After(v);
        if let Some((activities, quorum)) = joins(precedence) {
            let before = joined.entry(std::ptr::from_ref(precedence)).or_default();
            before.push(v);
            if before.len() < activities.len() {
                return Ok(());
            }
            let before = std::mem::take(before);
            start = self.join(outline, graph, before, (activities, quorum))?;
        }
        match &precedence.post {
            None => {
                if matches!(start, Start::Join { .. }) {
                    graph.vertices.push(Vertex { start, piece: Piece::Empty });
                }
            }
            Some(Post::Single(next)) => pending.push(Pending { start, activities: vec![(next, S::from(1.0))] }),
            Some(Post::And(branches)) => {
                let from = self.meeting_point(graph, start, v);
                for branch in branches {
                    pending.push(Pending { start: Start::After(from), activities: vec![(branch, S::from(1.0))] });
                }
            }
            Some(Post::Or(branches)) => {
                let mut activities = Vec::new();
                for branch in branches {
                    activities.push((branch.activity.as_str(), branch.value.eval(self.values)?));
                }
                pending.push(Pending { start, activities });
            }
            Some(Post::Loop { bodies, end }) => {
                let mut last = self.meeting_point(graph, start, v);
                for body in bodies {
                    let count = body.value.eval(self.values)?;
                    let inside = self.cut(entry, outline, &body.activity, weight * count)?;
                    graph.vertices.push(Vertex { start: Start::After(last), piece: Piece::Loop(count, Box::new(inside)) });
                    last = graph.vertices.len() - 1;
                }
                pending.extend(end.iter().map(|e| Pending { start: Start::After(last), activities: vec![(e.as_str(), S::from(1.0))] }));
            }
        }
        Ok(())
    }

    /// The vertex after which branches start: the last one, or an empty one at a join that forks at once.
    #[expect(clippy::unused_self, reason = "reads beside its siblings")]
    fn meeting_point(&self, graph: &mut Graph<S>, start: Start, v: usize) -> usize {
        if matches!(start, Start::After(_)) {
            return v;
        }
        graph.vertices.push(Vertex { start, piece: Piece::Empty });
        graph.vertices.len() - 1
    }

    fn join(
        &self,
        outline: &Outline<'a>,
        graph: &Graph<S>,
        before: Vec<usize>,
        (activities, quorum): (&[String], &Number),
    ) -> Result<Start, SolveError> {
        let element = || format!("task \"{}\"", outline.task.name);
        let needed = quorum.eval(self.values)?.value();
        let all = before.len() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the number of branches")]
        let needed = if needed >= 1.0 && needed <= all { needed as usize } else { before.len() };
        let dominator = before[1..].iter().try_fold(before[0], |d, &v| graph.common_dominator(d, v));
        let dominator = dominator.ok_or_else(|| unsupported("a join of branches that no common fork starts", element()))?;
        Ok(Start::Join { before, activities: activities.to_vec(), needed, dominator })
    }

    fn leaf(&mut self, entry: usize, outline: &Outline<'a>, visits: &HashMap<&str, S>, weight: S) -> Result<usize, SolveError> {
        let name = outline.entry.name.clone();
        let work = activities::summed(outline.task, name, visits, self.values)?;
        let node = self.add_node(entry, &work)?;
        self.net.nodes[node].weight = weight;
        Ok(node)
    }

    /// Mean executions of the activities of one strand, until it ends, replies, forks or joins.
    fn walk(&self, outline: &Outline<'a>, from: &[(&'a str, S)]) -> Result<(HashMap<&'a str, S>, Stop<'a>), SolveError> {
        let refuse = || unsupported("a fork, join or reply in a branch of a choice", format!("task \"{}\"", outline.task.name));
        let mut visits = HashMap::new();
        let mut pending: BTreeMap<usize, (&'a str, S)> = BTreeMap::new();
        let add = |pending: &mut BTreeMap<usize, (&'a str, S)>, name: &'a str, weight: S| {
            let position = outline.position.get(name).copied().unwrap_or(usize::MAX);
            pending.entry(position).and_modify(|(_, w)| *w += weight).or_insert((name, weight));
        };
        from.iter().for_each(|&(name, weight)| add(&mut pending, name, weight));
        let mut some_ended = false;
        while let Some((_, (name, weight))) = pending.pop_first() {
            *visits.entry(name).or_insert(S::from(0.0)) += weight;
            let alone = pending.is_empty() && !some_ended;
            let precedence = outline.after(name);
            let forked_loop = matches!(precedence.and_then(|p| p.post.as_ref()),
                Some(Post::Loop { bodies, .. }) if bodies.iter().any(|b| !outline.is_plain(&b.activity)));
            if outline.replies(name) || forked_loop || precedence.is_some_and(|p| joins(p).is_some() || forks(p)) {
                return if alone { Ok((visits, Stop::At(name))) } else { Err(refuse()) };
            }
            match precedence.and_then(|p| p.post.as_ref()) {
                None => some_ended = true,
                Some(Post::Single(next)) => add(&mut pending, next, weight),
                Some(Post::And(branches)) => branches.iter().for_each(|b| add(&mut pending, b, weight)),
                Some(Post::Or(branches)) => {
                    for branch in branches {
                        add(&mut pending, &branch.activity, weight * branch.value.eval(self.values)?);
                    }
                }
                Some(Post::Loop { bodies, end }) => {
                    for body in bodies {
                        let (inside, _) = self.walk(outline, &[(&body.activity, weight * body.value.eval(self.values)?)])?;
                        inside.into_iter().for_each(|(name, v)| *visits.entry(name).or_insert(S::from(0.0)) += v);
                    }
                    end.iter().for_each(|e| add(&mut pending, e, weight));
                    some_ended |= end.is_none();
                }
            }
        }
        Ok((visits, Stop::End))
    }
}
