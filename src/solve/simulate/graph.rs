//! The activity graph of one task, with activities by number and every join classified.
//!
//! A walk from the activity that each entry starts finds which entries reach an activity, in which phase, and inside of
//! which loops. A join all of whose inputs are reached by one entry counts the arrivals of one request (of one turn of the
//! innermost loop); a join of inputs that no entry has in common joins activities of several entries.

use std::collections::{HashMap, HashSet};

use crate::{
    model::{Post, Pre, Task, Weighted},
    solve::{
        SolveError,
        bind::{Binder, unusable},
    },
};

/// Most steps of the search for the joins of forks: in larger graphs the delays of joins are not measured.
const LONGEST_SEARCH: usize = 100_000_000;

/// What follows an activity, by the numbers of this graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// The branch ends.
    End,
    /// One activity.
    Activity(usize),
    /// A fork.
    Fork(usize),
    /// One of these, with probabilities.
    Or(Vec<(f64, usize)>),
    /// Bodies with mean counts, then the end.
    Loop(Vec<(f64, usize)>, Option<usize>),
    /// A join.
    Join(usize),
}

/// An and-join.
#[derive(Debug)]
pub(super) struct JoinStep {
    /// The joined activities.
    pub(super) inputs: Vec<usize>,
    /// Arrivals it waits for.
    pub(super) needed: usize,
    /// What follows.
    pub(super) next: Step,
    /// Whether it joins activities of several entries.
    pub(super) is_external: bool,
}

/// The graph of one task.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// What follows each activity.
    pub(super) next: Vec<Step>,
    /// Entries (numbers in the task) replied to at the end of each activity.
    pub(super) replies: Vec<Vec<usize>>,
    /// Branches of each and-fork.
    pub(super) forks: Vec<Vec<usize>>,
    /// The joins of the branches of each and-fork.
    pub(super) joined: Vec<Vec<usize>>,
    /// And-joins.
    pub(super) joins: Vec<JoinStep>,
    /// First entry (number in the task) that reaches each activity, and in which phase.
    pub(super) reached: Vec<Option<(usize, u8)>>,
    /// First activity of each entry.
    pub(super) first: Vec<Option<usize>>,
}

/// The loops that an activity is inside of, by the activity before each.
type Loops = Vec<usize>;

/// An activity that a walk comes to.
struct Visit {
    activity: usize,
    loops: Loops,
    phase: u8,
}

impl Graph {
    /// The graph of `task`.
    ///
    /// # Errors
    /// [`SolveError::Unusable`] for names that do not exist, weights that cannot be used, joins of several entries with a
    /// quorum, and loop bodies in which forks are not joined.
    pub(super) fn new(task: &Task, binder: &Binder) -> Result<Self, SolveError> {
        let names: HashMap<&str, usize> = task.activities.iter().enumerate().map(|(i, a)| (a.name.as_str(), i)).collect();
        let builder = Builder { task, binder, names };
        let mut graph = builder.build()?;
        graph.walk(task)?;
        graph.joined = graph.forks.iter().map(|branches| graph.joins_of(branches)).collect();
        Ok(graph)
    }

    /// Whether the graph joins activities of several entries.
    pub(super) fn is_synchronizing(&self) -> bool {
        self.joins.iter().any(|j| j.is_external)
    }

    fn walk(&mut self, task: &Task) -> Result<(), SolveError> {
        let mut loops: Vec<Loops> = vec![Loops::new(); self.next.len()];
        let mut entries: Vec<HashSet<usize>> = vec![HashSet::new(); self.next.len()];
        for (entry, first) in self.first.clone().into_iter().enumerate() {
            let mut open: Vec<Visit> = first.map(|activity| Visit { activity, loops: Loops::new(), phase: 1 }).into_iter().collect();
            while let Some(visit) = open.pop() {
                if !entries[visit.activity].insert(entry) {
                    continue;
                }
                self.reached[visit.activity].get_or_insert((entry, visit.phase));
                loops[visit.activity].clone_from(&visit.loops);
                let phase = if self.replies[visit.activity].contains(&entry) { 2 } else { visit.phase };
                self.follow(visit.activity, &self.next[visit.activity], &visit.loops, &mut |activity, loops| {
                    open.push(Visit { activity, loops, phase });
                });
            }
        }
        self.classify_joins(task, &entries)?;
        self.check_loops(task, &loops)
    }

    /// The joins that all of whose activities these branches of a fork lead to, and no single one of them does.
    fn joins_of(&self, branches: &[usize]) -> Vec<usize> {
        if self.joins.is_empty() || self.next.len() * self.forks.len() * branches.len() > LONGEST_SEARCH {
            return Vec::new();
        }
        let reached: Vec<Vec<bool>> = branches.iter().map(|&branch| self.reached_from(branch)).collect();
        let is_its_fork = |join: &JoinStep| {
            let is_led_to = |&input: &usize| reached.iter().any(|r| r[input]);
            !join.is_external && join.inputs.iter().all(is_led_to) && !reached.iter().any(|r| join.inputs.iter().all(|&input| r[input]))
        };
        (0..self.joins.len()).filter(|&j| is_its_fork(&self.joins[j])).collect()
    }

    /// By activity, whether `first` is or leads to it.
    fn reached_from(&self, first: usize) -> Vec<bool> {
        let mut reached = vec![false; self.next.len()];
        let mut open = vec![first];
        while let Some(activity) = open.pop() {
            if !std::mem::replace(&mut reached[activity], true) {
                self.follow(activity, &self.next[activity], &Loops::new(), &mut |next, _| open.push(next));
            }
        }
        reached
    }

    /// Calls `enter` with every activity that `step` leads to and the loops it is then inside of.
    fn follow(&self, owner: usize, step: &Step, loops: &Loops, enter: &mut dyn FnMut(usize, Loops)) {
        match step {
            Step::End => {}
            Step::Activity(next) => enter(*next, loops.clone()),
            Step::Or(choices) => choices.iter().for_each(|&(_, next)| enter(next, loops.clone())),
            Step::Fork(fork) => self.forks[*fork].iter().for_each(|&next| enter(next, loops.clone())),
            Step::Loop(bodies, end) => {
                let inside: Loops = loops.iter().copied().chain([owner]).collect();
                bodies.iter().for_each(|&(_, body)| enter(body, inside.clone()));
                end.iter().for_each(|&end| enter(end, loops.clone()));
            }
            Step::Join(join) => self.follow(owner, &self.joins[*join].next, loops, enter),
        }
    }

    /// Finds the joins of several entries.
    fn classify_joins(&mut self, task: &Task, entries: &[HashSet<usize>]) -> Result<(), SolveError> {
        for join in &mut self.joins {
            let is_reached = join.inputs.iter().all(|&i| !entries[i].is_empty());
            let has_common = (0..self.first.len()).any(|entry| join.inputs.iter().all(|&i| entries[i].contains(&entry)));
            join.is_external = is_reached && !has_common;
            if join.is_external && join.needed < join.inputs.len() {
                let reason = "a join of activities of several entries has a quorum, expected it to wait for all";
                return Err(unusable(format!("task \"{}\"", task.name), reason));
            }
        }
        Ok(())
    }

    /// Checks that in every loop body as many branches are joined as are forked.
    fn check_loops(&self, task: &Task, loops: &[Loops]) -> Result<(), SolveError> {
        let mut forked: HashMap<&Loops, isize> = HashMap::new();
        let mut seen = HashSet::new();
        let mut fork = |step: &Step, inside| match step {
            Step::Fork(f) if seen.insert(*f) => *forked.entry(inside).or_insert(0) += self.forks[*f].len().cast_signed() - 1,
            _ => {}
        };
        for (activity, step) in self.next.iter().enumerate().filter(|(a, _)| self.reached[*a].is_some()) {
            fork(step, &loops[activity]);
        }
        for join in self.joins.iter().filter(|j| j.inputs.iter().all(|&i| self.reached[i].is_some())) {
            fork(&join.next, &loops[join.inputs[0]]);
        }
        for join in self.joins.iter().filter(|j| j.inputs.iter().all(|&i| self.reached[i].is_some())) {
            *forked.entry(&loops[join.inputs[0]]).or_insert(0) -= join.inputs.len().cast_signed() - 1;
        }
        let unbalanced = forked.into_iter().find(|(inside, open)| !inside.is_empty() && *open != 0);
        let Some(owner) = unbalanced.and_then(|(inside, _)| inside.last()) else { return Ok(()) };
        let name = &task.activities[*owner].name;
        Err(unusable(
            format!("task \"{}\"", task.name),
            format!("the loop after activity \"{name}\" forks branches that it does not join, expected all of them to be joined"),
        ))
    }
}

/// The parts that a graph is built from.
struct Builder<'a> {
    task: &'a Task,
    binder: &'a Binder,
    names: HashMap<&'a str, usize>,
}

impl Builder<'_> {
    fn element(&self) -> String {
        format!("task \"{}\"", self.task.name)
    }

    fn activity(&self, name: &str) -> Result<usize, SolveError> {
        self.names.get(name).copied().ok_or_else(|| unusable(self.element(), format!("it has no activity \"{name}\"")))
    }

    fn entry(&self, name: &str) -> Result<usize, SolveError> {
        let position = self.task.entries.iter().position(|e| e.name == name);
        position.ok_or_else(|| unusable(self.element(), format!("it replies to \"{name}\", which is not one of its entries")))
    }

    fn build(&self) -> Result<Graph, SolveError> {
        let n = self.task.activities.len();
        let mut graph = Graph { next: vec![Step::End; n], replies: vec![Vec::new(); n], reached: vec![None; n], ..Graph::default() };
        for precedence in &self.task.precedences {
            let after = self.post(precedence.post.as_ref(), &mut graph.forks)?;
            match &precedence.pre {
                Pre::Single(name) => graph.next[self.activity(name)?] = after,
                Pre::Or(names) => {
                    for name in names {
                        graph.next[self.activity(name)?] = after.clone();
                    }
                }
                Pre::And { activities, quorum } => {
                    let inputs = activities.iter().map(|a| self.activity(a)).collect::<Result<Vec<_>, _>>()?;
                    let quorum = self.binder.whole(quorum, &self.element(), "quorum", 0.0)? as usize;
                    if quorum > inputs.len() {
                        return Err(unusable(self.element(), format!("a join of {} activities has a quorum of {quorum}", inputs.len())));
                    }
                    if inputs.is_empty() {
                        return Err(unusable(self.element(), "an and-join joins no activities"));
                    }
                    inputs.iter().for_each(|&i| graph.next[i] = Step::Join(graph.joins.len()));
                    let needed = if quorum == 0 { inputs.len() } else { quorum };
                    graph.joins.push(JoinStep { inputs, needed, next: after, is_external: false });
                }
            }
        }
        for reply in &self.task.replies {
            graph.replies[self.activity(&reply.activity)?].push(self.entry(&reply.entry)?);
        }
        for entry in &self.task.entries {
            graph.first.push(entry.start_activity.as_deref().map(|name| self.activity(name)).transpose()?);
        }
        Ok(graph)
    }

    fn post(&self, post: Option<&Post>, forks: &mut Vec<Vec<usize>>) -> Result<Step, SolveError> {
        Ok(match post {
            None => Step::End,
            Some(Post::Single(name)) => Step::Activity(self.activity(name)?),
            Some(Post::And(names)) => {
                forks.push(names.iter().map(|name| self.activity(name)).collect::<Result<_, _>>()?);
                Step::Fork(forks.len() - 1)
            }
            Some(Post::Or(choices)) => Step::Or(self.probabilities(choices)?),
            Some(Post::Loop { bodies, end }) => {
                let end = end.as_deref().map(|name| self.activity(name)).transpose()?;
                Step::Loop(self.weighted(bodies, "mean count of a loop body")?, end)
            }
        })
    }

    fn weighted(&self, list: &[Weighted], what: &str) -> Result<Vec<(f64, usize)>, SolveError> {
        let weigh = |w: &Weighted| Ok((self.binder.amount(&w.value, &self.element(), what)?, self.activity(&w.activity)?));
        list.iter().map(weigh).collect()
    }

    fn probabilities(&self, list: &[Weighted]) -> Result<Vec<(f64, usize)>, SolveError> {
        /// Rounding that files have in probabilities.
        const ROUNDING: f64 = 1e-3;
        let mut choices = self.weighted(list, "probability of a branch")?;
        let sum: f64 = choices.iter().map(|c| c.0).sum();
        if (sum - 1.0).abs() > ROUNDING {
            return Err(unusable(self.element(), format!("the probabilities of an or-fork sum to {sum}, expected 1")));
        }
        choices.iter_mut().for_each(|c| c.0 /= sum);
        Ok(choices)
    }
}
