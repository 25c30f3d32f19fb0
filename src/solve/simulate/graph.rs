//! The activity graph of one task, with activities by number and every join matched to its fork.
//!
//! A walk from the activity that an entry starts carries along the scopes that it is inside of: the branches of and-forks
//! and the bodies of loops. A join belongs to the innermost fork that all its inputs are inside of; it closes the fork
//! when it takes all of its branches. A join of inputs that share no fork joins activities of several entries.

use std::collections::HashMap;

use super::bind::{Binder, unusable};
use crate::{
    model::{Post, Pre, Task, Weighted},
    solve::SolveError,
};

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
    inputs: Vec<usize>,
    /// Arrivals it waits for.
    pub(super) needed: usize,
    /// What follows.
    pub(super) next: Step,
    /// The fork whose branches it joins.
    pub(super) fork: Option<usize>,
    /// Whether it takes all branches of that fork.
    pub(super) closes: bool,
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
    /// And-joins.
    pub(super) joins: Vec<JoinStep>,
    /// First entry (number in the task) that reaches each activity, and in which phase.
    pub(super) reached: Vec<Option<(usize, u8)>>,
    /// First activity of each entry.
    pub(super) first: Vec<Option<usize>>,
}

/// What an activity is inside of.
#[derive(Clone, Debug, PartialEq)]
enum Scope {
    Fork { fork: usize, branches: Vec<usize> },
    Loop(usize),
}

/// Place of a walk.
type Context = Vec<Scope>;

impl Graph {
    /// The graph of `task`.
    ///
    /// # Errors
    /// [`SolveError::Unusable`] for names that do not exist, weights that cannot be used and joins without a fork.
    pub(super) fn new(task: &Task, binder: &Binder) -> Result<Self, SolveError> {
        let names: HashMap<&str, usize> = task.activities.iter().enumerate().map(|(i, a)| (a.name.as_str(), i)).collect();
        let builder = Builder { task, binder, names };
        let mut graph = builder.build()?;
        graph.walk(task)?;
        Ok(graph)
    }

    /// Whether the graph joins activities of several entries.
    pub(super) fn is_synchronizing(&self) -> bool {
        self.joins.iter().any(|j| j.fork.is_none() && j.inputs.iter().all(|&i| self.reached[i].is_some()))
    }

    fn walk(&mut self, task: &Task) -> Result<(), SolveError> {
        let mut contexts: Vec<Option<Context>> = vec![None; self.next.len()];
        let mut open: Vec<(usize, Context, usize, u8)> = Vec::new();
        for (entry, first) in self.first.iter().enumerate().rev() {
            open.extend(first.map(|first| (first, Context::new(), entry, 1)));
        }
        while let Some((activity, context, entry, phase)) = open.pop() {
            if contexts[activity].is_some() {
                continue;
            }
            self.reached[activity] = Some((entry, phase));
            contexts[activity] = Some(context.clone());
            let phase = if self.replies[activity].contains(&entry) { 2 } else { phase };
            let step = self.next[activity].clone();
            self.follow(task, activity, &step, &context, &contexts, &mut |next, context| open.push((next, context, entry, phase)))?;
        }
        Ok(())
    }

    /// Calls `enter` with every activity that `step` leads to and the scopes it is then inside of.
    fn follow(
        &mut self,
        task: &Task,
        owner: usize,
        step: &Step,
        context: &Context,
        contexts: &[Option<Context>],
        enter: &mut dyn FnMut(usize, Context),
    ) -> Result<(), SolveError> {
        let inside = |scope: Scope| {
            let mut inner = context.clone();
            inner.push(scope);
            inner
        };
        match step {
            Step::End => {
                let fork = context.iter().rposition(|s| matches!(s, Scope::Fork { .. }));
                if fork.is_some_and(|f| context[..f].iter().any(|s| matches!(s, Scope::Loop(_)))) {
                    let name = &task.activities[owner].name;
                    return Err(unusable(
                        format!("activity \"{name}\" of task \"{}\"", task.name),
                        "a branch of an and-fork inside a loop body ends without a join, expected all branches of the fork to be joined",
                    ));
                }
            }
            Step::Activity(next) => enter(*next, context.clone()),
            Step::Or(choices) => choices.iter().for_each(|&(_, next)| enter(next, context.clone())),
            Step::Fork(fork) => {
                for (branch, &next) in self.forks[*fork].iter().enumerate() {
                    enter(next, inside(Scope::Fork { fork: *fork, branches: vec![branch] }));
                }
            }
            Step::Loop(bodies, end) => {
                bodies.iter().for_each(|&(_, body)| enter(body, inside(Scope::Loop(owner))));
                end.iter().for_each(|&end| enter(end, context.clone()));
            }
            Step::Join(join) => {
                let inputs: Option<Vec<&Context>> = self.joins[*join].inputs.iter().map(|&i| contexts[i].as_ref()).collect();
                let Some(inputs) = inputs else { return Ok(()) };
                let after = self.match_join(task, *join, &inputs)?;
                let next = self.joins[*join].next.clone();
                self.follow(task, owner, &next, &after, contexts, enter)?;
            }
        }
        Ok(())
    }

    /// Matches a join to its fork; what follows it is inside of the returned scopes.
    fn match_join(&mut self, task: &Task, join: usize, inputs: &[&Context]) -> Result<Context, SolveError> {
        let common = |depth: usize| {
            let fork_at = |c: &Context| match c.get(depth) {
                Some(Scope::Fork { fork, .. }) => Some((true, *fork)),
                Some(Scope::Loop(owner)) => Some((false, *owner)),
                None => None,
            };
            let first = inputs.first().and_then(|c| fork_at(c));
            if inputs.iter().all(|c| fork_at(c) == first) { first } else { None }
        };
        let depth = (0..).take_while(|&d| common(d).is_some()).last();
        let Some(depth) = depth else {
            return self.match_external(task, join).map(|()| Context::new());
        };
        let Some((true, fork)) = common(depth) else {
            return Err(unusable(format!("task \"{}\"", task.name), "an and-join in a loop body joins activities without a common and-fork"));
        };
        let mut branches: Vec<usize> = Vec::new();
        for context in inputs {
            if let Some(Scope::Fork { branches: own, .. }) = context.get(depth) {
                branches.extend(own);
            }
        }
        branches.sort_unstable();
        branches.dedup();
        let mut after: Context = inputs[0][..depth].to_vec();
        let closes = branches.len() == self.forks[fork].len();
        if !closes {
            after.push(Scope::Fork { fork, branches });
        }
        self.joins[join].fork = Some(fork);
        self.joins[join].closes = closes;
        Ok(after)
    }

    /// Checks a join of activities of several entries.
    fn match_external(&self, task: &Task, join: usize) -> Result<(), SolveError> {
        let spec = &self.joins[join];
        let mut entries: Vec<usize> = spec.inputs.iter().filter_map(|&i| self.reached[i].map(|(entry, _)| entry)).collect();
        entries.sort_unstable();
        entries.dedup();
        if entries.len() < spec.inputs.len() {
            return Err(unusable(format!("task \"{}\"", task.name), "an and-join joins activities of one entry that have no common and-fork"));
        }
        if spec.needed < spec.inputs.len() {
            return Err(unusable(format!("task \"{}\"", task.name), "a quorum join of activities of several entries has no meaning"));
        }
        Ok(())
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
                    inputs.iter().for_each(|&i| graph.next[i] = Step::Join(graph.joins.len()));
                    let needed = if quorum == 0 { inputs.len() } else { quorum };
                    graph.joins.push(JoinStep { inputs, needed, next: after, fork: None, closes: false });
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
