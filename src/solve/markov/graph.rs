//! The activity graph of one task: what follows each activity, and which entry and phase reach it.

use std::collections::{HashMap, HashSet};

use super::{
    compile::index,
    network::{Join, Loop, Network, Next},
    refused,
};
use crate::{
    model::{Post, Pre, Precedence, Task, Weighted},
    solve::{
        SolveError,
        bind::{Binder, unusable},
    },
};

/// What a task's graph says of its activities, in their order.
pub(super) struct Graph {
    /// What follows each.
    pub(super) next: Vec<Next>,
    /// Entries replied to at the end of each.
    pub(super) replies: Vec<Vec<u32>>,
    /// First entry that reaches each, and in which phase.
    pub(super) reached: Vec<Option<(u32, u8)>>,
}

/// Rounding that files have in probabilities.
const ROUNDING: f64 = 1e-3;

/// Reads the graph of `task`, whose activities are numbered from `first_activity` and entries from `first_entry`; forks,
/// joins and loops are added to `network`, and to the entries the activities they start.
pub(super) fn read(
    task: &Task,
    binder: &Binder,
    network: &mut Network,
    first_activity: u32,
    first_entry: u32,
) -> Result<Graph, SolveError> {
    let names = task.activities.iter().enumerate().map(|(i, a)| (a.name.as_str(), first_activity + index(i))).collect();
    let first_join = network.joins.len();
    let mut reader = Reader { task, binder, names, network, first_activity, first_entry, first_join };
    let graph = reader.read()?;
    let n_joins = network.joins.len() - first_join;
    network.joins_of_a_task = network.joins_of_a_task.max(n_joins);
    let number = network.entries[first_entry as usize].task as usize;
    network.tasks[number].n_joins = n_joins;
    Ok(graph)
}

struct Reader<'a> {
    task: &'a Task,
    binder: &'a Binder,
    names: HashMap<&'a str, u32>,
    network: &'a mut Network,
    first_activity: u32,
    first_entry: u32,
    first_join: usize,
}

impl Reader<'_> {
    fn element(&self) -> String {
        format!("task \"{}\"", self.task.name)
    }

    fn activity(&self, name: &str) -> Result<u32, SolveError> {
        self.names.get(name).copied().ok_or_else(|| unusable(self.element(), format!("it has no activity \"{name}\"")))
    }

    fn place(&self, activity: u32) -> usize {
        (activity - self.first_activity) as usize
    }

    fn read(&mut self) -> Result<Graph, SolveError> {
        let n = self.task.activities.len();
        let mut graph = Graph { next: vec![Next::End; n], replies: vec![Vec::new(); n], reached: vec![None; n] };
        for precedence in &self.task.precedences {
            self.precedence(precedence, &mut graph)?;
        }
        for reply in &self.task.replies {
            let entry = self.task.entries.iter().position(|e| e.name == reply.entry);
            let entry = entry
                .ok_or_else(|| unusable(self.element(), format!("it replies to \"{}\", which is not one of its entries", reply.entry)))?;
            graph.replies[self.place(self.activity(&reply.activity)?)].push(self.first_entry + index(entry));
        }
        self.walk(&mut graph)?;
        Ok(graph)
    }

    fn precedence(&mut self, precedence: &Precedence, graph: &mut Graph) -> Result<(), SolveError> {
        let after = self.post(precedence.post.as_ref())?;
        let (inputs, next) = match &precedence.pre {
            Pre::Single(name) => (vec![self.activity(name)?], after),
            Pre::Or(names) => (names.iter().map(|a| self.activity(a)).collect::<Result<_, _>>()?, after),
            Pre::And { activities, quorum } => {
                let inputs = activities.iter().map(|a| self.activity(a)).collect::<Result<Vec<_>, _>>()?;
                let quorum = self.binder.whole(quorum, &self.element(), "quorum", 0.0)?;
                if quorum as usize > inputs.len() || inputs.is_empty() {
                    return Err(unusable(self.element(), format!("a join of {} activities has a quorum of {quorum}", inputs.len())));
                }
                let needed = if quorum == 0 { index(inputs.len()) } else { quorum };
                let slot = index(self.network.joins.len() - self.first_join);
                self.network.joins.push(Join { inputs: inputs.clone(), slot, needed, next: after });
                (inputs, Next::Join(index(self.network.joins.len() - 1)))
            }
        };
        for input in inputs {
            let place = self.place(input);
            graph.next[place] = next.clone();
        }
        Ok(())
    }

    fn post(&mut self, post: Option<&Post>) -> Result<Next, SolveError> {
        Ok(match post {
            None => Next::End,
            Some(Post::Single(name)) => Next::Activity(self.activity(name)?),
            Some(Post::And(names)) => {
                let branches = names.iter().map(|a| self.activity(a)).collect::<Result<_, _>>()?;
                self.network.forks.push(branches);
                Next::Fork(index(self.network.forks.len() - 1))
            }
            Some(Post::Or(choices)) => {
                let mut choices = self.weighted(choices, "probability of a branch")?;
                let sum: f64 = choices.iter().map(|c| c.0).sum();
                if (sum - 1.0).abs() > ROUNDING {
                    return Err(unusable(self.element(), format!("the probabilities of an or-fork sum to {sum}, expected 1")));
                }
                choices.iter_mut().for_each(|c| c.0 /= sum);
                Next::Or(choices)
            }
            Some(Post::Loop { bodies, end }) => {
                let bodies = self.weighted(bodies, "mean count of a loop body")?;
                let end = end.as_deref().map(|name| self.activity(name)).transpose()?;
                self.network.loops.push(Loop { bodies, end });
                Next::Loop(index(self.network.loops.len() - 1))
            }
        })
    }

    fn weighted(&self, list: &[Weighted], what: &str) -> Result<Vec<(f64, u32)>, SolveError> {
        let weigh = |w: &Weighted| Ok((self.binder.amount(&w.value, &self.element(), what)?, self.activity(&w.activity)?));
        list.iter().map(weigh).collect()
    }

    /// Finds which entries reach an activity, and refuses joins of activities that no entry has in common.
    fn walk(&mut self, graph: &mut Graph) -> Result<(), SolveError> {
        let mut entries: Vec<HashSet<u32>> = vec![HashSet::new(); graph.next.len()];
        for (e, entry) in self.task.entries.iter().enumerate() {
            let Some(name) = &entry.start_activity else { continue };
            let number = self.first_entry + index(e);
            let first = self.activity(name)?;
            self.network.entries[number as usize].first = Some(first);
            let mut open = vec![(first, 1)];
            while let Some((activity, phase)) = open.pop() {
                let place = self.place(activity);
                if !entries[place].insert(number) {
                    continue;
                }
                graph.reached[place].get_or_insert((number, phase));
                let phase = if graph.replies[place].contains(&number) { 2 } else { phase };
                self.follow(&graph.next[place], &mut |next| open.push((next, phase)));
            }
        }
        let mut joins = self.network.joins[self.first_join..].iter().map(|j| j.inputs.iter().map(|&i| &entries[self.place(i)]));
        let is_external = joins.any(|inputs| {
            let inputs: Vec<_> = inputs.collect();
            inputs.iter().all(|i| !i.is_empty()) && !inputs[0].iter().any(|e| inputs.iter().all(|i| i.contains(e)))
        });
        if is_external { Err(refused("a join of activities of several entries", self.element())) } else { Ok(()) }
    }

    fn follow(&self, next: &Next, enter: &mut dyn FnMut(u32)) {
        match next {
            Next::End => {}
            Next::Activity(a) => enter(*a),
            Next::Or(choices) => choices.iter().for_each(|c| enter(c.1)),
            Next::Fork(fork) => self.network.forks[*fork as usize].iter().for_each(|&a| enter(a)),
            Next::Loop(number) => {
                let spec = &self.network.loops[*number as usize];
                spec.bodies.iter().map(|b| b.1).chain(spec.end).for_each(enter);
            }
            Next::Join(join) => self.follow(&self.network.joins[*join as usize].next, enter),
        }
    }
}
