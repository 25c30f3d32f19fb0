//! Activity graphs: that they hang together, join what they fork, and reply once.
//!
//! The mean number of replies to an entry is the sum of the mean numbers of executions `v` of the activities that reply.
//! From `v = 1` at the entry's start activity they follow in topological order: after a join of all, `v` is that of a
//! branch; after a join of any, the sum over branches; an and-fork gives its `v` to every branch, an or-fork `v p`, a
//! loop `v n` to each body and `v` to its end.

use std::collections::{HashMap, HashSet};

use super::{
    DefectKind, Defects, Named, activity_name,
    calls::{Inputs, inputs},
    entry_name, task_name,
    values::{SUM_TOLERANCE, Values},
};
use crate::model::{Entry, Model, Post, Pre, Precedence, Task};

/// Checks the structure of all graphs.
pub(super) fn check(model: &Model, defects: &mut Defects) {
    let inputs = inputs(model);
    for task in model.tasks.iter().filter(|t| !t.activities.is_empty()) {
        let graph = Graph::new(task, defects);
        if graph.is_ambiguous {
            continue;
        }
        graph.check_starts(defects);
        graph.check_reachable(defects);
        match graph.topological_order() {
            Ok(_) => graph.check_joins(defects),
            Err(activity) => {
                defects.push(task_name(task), DefectKind::ActivityCycle { activity: activity.to_owned() });
            }
        }
        graph.check_replies(&inputs, defects);
    }
}

/// Checks what depends on values: or-forks, quorums, mean numbers of replies.
pub(super) fn check_values(model: &Model, values: &Values<'_>, defects: &mut Defects) {
    if model.tasks.iter().all(|t| t.activities.is_empty()) {
        return;
    }
    let inputs = inputs(model);
    for task in model.tasks.iter().filter(|t| !t.activities.is_empty()) {
        for precedence in &task.precedences {
            check_weights(task, precedence, values, defects);
        }
        let graph = Graph::new(task, &mut Defects::default());
        if graph.is_ambiguous {
            continue;
        }
        let Ok(order) = graph.topological_order() else { continue };
        for entry in &task.entries {
            let is_called = inputs.get(entry.name.as_str()).is_some_and(|input| input.sync.is_some());
            if is_called && entry.phases.is_empty() {
                graph.check_reply_count(entry, &order, values, defects);
            }
        }
    }
}

fn check_weights(task: &Task, precedence: &Precedence, values: &Values<'_>, defects: &mut Defects) {
    let before = precedence.pre.activities().first().cloned().unwrap_or_default();
    if let Pre::And { activities, quorum } = &precedence.pre
        && let Some(value) = values.of(quorum)
        && !(value >= 0.0 && value.fract() == 0.0 && value <= activities.len() as f64)
    {
        let kind = DefectKind::Quorum { activity: before.clone(), quorum: value, n_branches: activities.len() };
        defects.push(task_name(task), kind);
    }
    let (Some(Post::Or(weighted) | Post::Loop { bodies: weighted, .. }), quantity) = (&precedence.post, "loop count") else {
        return;
    };
    let quantity = if matches!(precedence.post, Some(Post::Or(_))) { "probability" } else { quantity };
    for branch in weighted {
        let element = activity_name(task, &branch.activity);
        match values.of(&branch.value) {
            Some(value) if !value.is_finite() => defects.push(element, DefectKind::NotFinite { quantity, value }),
            Some(value) if value < 0.0 => defects.push(element, DefectKind::Negative { quantity, value }),
            _ => {}
        }
    }
    let sum: Option<f64> = weighted.iter().map(|branch| values.of(&branch.value)).sum();
    if let (Some(Post::Or(_)), Some(sum)) = (&precedence.post, sum)
        && (sum.is_nan() || (sum - 1.0).abs() > SUM_TOLERANCE)
    {
        defects.push(task_name(task), DefectKind::OrForkSum { activity: before, sum });
    }
}

/// A task's graph by positions: activities by their place in the task, precedences likewise.
struct Graph<'a> {
    task: &'a Task,
    names: HashMap<&'a str, usize>,
    /// Activities of each precedence's left side.
    pre: Vec<Vec<usize>>,
    /// Activities of each precedence's right side.
    post: Vec<Vec<usize>>,
    /// The precedence that an activity leads into.
    next: Vec<Option<usize>>,
    /// The precedence that an activity follows.
    previous: Vec<Option<usize>>,
    /// Whether an activity stands in two lists of a side: then what follows what is not known.
    is_ambiguous: bool,
}

impl<'a> Graph<'a> {
    fn new(task: &'a Task, defects: &mut Defects) -> Self {
        let mut names = HashMap::new();
        for (i, activity) in task.activities.iter().enumerate() {
            names.entry(activity.name.as_str()).or_insert(i);
        }
        let place = |names: &[&str], known: &HashMap<&str, usize>| -> Vec<usize> {
            names.iter().filter_map(|name| known.get(name).copied()).collect()
        };
        let n = task.activities.len();
        let mut graph =
            Self { task, pre: Vec::new(), post: Vec::new(), next: vec![None; n], previous: vec![None; n], names, is_ambiguous: false };
        for (p, precedence) in task.precedences.iter().enumerate() {
            let pre: Vec<&str> = precedence.pre.activities().iter().map(String::as_str).collect();
            let post = precedence.post.as_ref().map(Post::activities).unwrap_or_default();
            let (pre, post) = (place(&pre, &graph.names), place(&post, &graph.names));
            for (side, activities, slots) in [("pre", &pre, &mut graph.next), ("post", &post, &mut graph.previous)] {
                for &activity in activities {
                    if slots[activity].replace(p).is_some() {
                        let element = activity_name(task, &task.activities[activity].name);
                        defects.push(element, DefectKind::RepeatedInLists { side });
                        graph.is_ambiguous = true;
                    }
                }
            }
            graph.pre.push(pre);
            graph.post.push(post);
        }
        graph
    }

    fn name(&self, activity: usize) -> &'a str {
        &self.task.activities[activity].name
    }

    fn element(&self, activity: usize) -> Named {
        activity_name(self.task, self.name(activity))
    }

    fn start_of(&self, entry: &Entry) -> Option<usize> {
        self.names.get(entry.start_activity.as_deref()?).copied()
    }

    /// The activities that may follow one.
    fn successors(&self, activity: usize) -> &[usize] {
        self.next[activity].map_or(&[], |p| &self.post[p])
    }

    /// The activities that may precede one.
    fn predecessors(&self, activity: usize) -> &[usize] {
        self.previous[activity].map_or(&[], |p| &self.pre[p])
    }

    fn check_starts(&self, defects: &mut Defects) {
        let mut started: HashMap<usize, &Entry> = HashMap::new();
        for entry in &self.task.entries {
            let Some(start) = self.start_of(entry) else { continue };
            if self.previous[start].is_some() {
                defects.push(self.element(start), DefectKind::StartInPost { entry: entry.name.clone() });
            }
            if let Some(first) = started.insert(start, entry) {
                let kind = DefectKind::SharedStart { first: first.name.clone(), second: entry.name.clone() };
                defects.push(self.element(start), kind);
            }
        }
    }

    /// All activities that the given ones lead to, themselves included.
    fn reachable(&self, from: impl IntoIterator<Item = usize>) -> HashSet<usize> {
        let mut pending: Vec<usize> = from.into_iter().collect();
        let mut seen: HashSet<usize> = pending.iter().copied().collect();
        while let Some(activity) = pending.pop() {
            pending.extend(self.successors(activity).iter().copied().filter(|next| seen.insert(*next)));
        }
        seen
    }

    fn check_reachable(&self, defects: &mut Defects) {
        let reached = self.reachable(self.task.entries.iter().filter_map(|e| self.start_of(e)));
        for activity in (0..self.task.activities.len()).filter(|a| !reached.contains(a)) {
            defects.push(self.element(activity), DefectKind::UnreachableActivity);
        }
    }

    /// The activities, each after all that precede it; or an activity on a cycle.
    fn topological_order(&self) -> Result<Vec<usize>, &'a str> {
        let n = self.task.activities.len();
        let mut n_before: Vec<usize> = (0..n).map(|a| self.predecessors(a).len()).collect();
        let mut order: Vec<usize> = (0..n).filter(|a| n_before[*a] == 0).collect();
        let mut at = 0;
        while let Some(&activity) = order.get(at) {
            at += 1;
            for &next in self.successors(activity) {
                n_before[next] = n_before[next].saturating_sub(1);
                if n_before[next] == 0 {
                    order.push(next);
                }
            }
        }
        match (0..n).find(|a| n_before[*a] > 0) {
            Some(left) => Err(self.name(left)),
            None => Ok(order),
        }
    }

    /// Checks that the branches of every join of all start at one and-fork, or at different entries.
    fn check_joins(&self, defects: &mut Defects) {
        for (precedence, joined) in self.task.precedences.iter().zip(&self.pre) {
            if !matches!(precedence.pre, Pre::And { .. }) {
                continue;
            }
            let origins: Vec<Origins> = joined.iter().map(|activity| self.origins(*activity)).collect();
            for (i, second) in origins.iter().enumerate().skip(1) {
                let apart = origins[..i].iter().position(|first| !first.may_join(second));
                if let Some(first) = apart {
                    let (first, second) = (self.name(joined[first]).to_owned(), self.name(joined[i]).to_owned());
                    defects.push(task_name(self.task), DefectKind::JoinWithoutFork { first, second });
                    break;
                }
            }
        }
    }

    /// Where an activity's executions come from.
    fn origins(&self, activity: usize) -> Origins {
        let starts: HashSet<usize> = self.task.entries.iter().filter_map(|e| self.start_of(e)).collect();
        let mut origins = Origins::default();
        let mut pending = vec![activity];
        let mut seen = HashSet::from([activity]);
        while let Some(activity) = pending.pop() {
            if starts.contains(&activity) {
                origins.starts.insert(activity);
            }
            if let Some(fork) = self.previous[activity]
                && matches!(self.task.precedences[fork].post, Some(Post::And(_)))
            {
                origins.branches.entry(fork).or_default().insert(activity);
            }
            pending.extend(self.predecessors(activity).iter().copied().filter(|before| seen.insert(*before)));
        }
        origins
    }

    /// Activities in the bodies of loops.
    fn in_loops(&self) -> HashSet<usize> {
        let bodies = self.task.precedences.iter().zip(&self.post).flat_map(|(precedence, post)| match &precedence.post {
            Some(Post::Loop { bodies, .. }) => post.get(..bodies.len()).unwrap_or_default(),
            _ => &[],
        });
        self.reachable(bodies.copied())
    }

    /// Activities on the branches of joins that do not wait for all.
    fn on_quorum_branches(&self) -> HashSet<usize> {
        let mut found = HashSet::new();
        for (precedence, joined) in self.task.precedences.iter().zip(&self.pre) {
            let is_quorum = matches!(&precedence.pre, Pre::And { activities, quorum }
                if !quorum.is(0.0) && !quorum.is(activities.len() as f64));
            let mut pending: Vec<usize> = if is_quorum { joined.clone() } else { Vec::new() };
            while let Some(activity) = pending.pop() {
                let at_fork = self.previous[activity].is_some_and(|fork| matches!(self.task.precedences[fork].post, Some(Post::And(_))));
                if found.insert(activity) && !at_fork {
                    pending.extend(self.predecessors(activity));
                }
            }
        }
        found
    }

    /// Checks where replies stand and whom they are for.
    fn check_replies(&self, inputs: &HashMap<&str, Inputs>, defects: &mut Defects) {
        if self.task.replies.is_empty() {
            return;
        }
        let (in_loops, on_branches) = (self.in_loops(), self.on_quorum_branches());
        for reply in &self.task.replies {
            let Some(&activity) = self.names.get(reply.activity.as_str()) else { continue };
            let entry = || reply.entry.clone();
            for (places, place) in [(&in_loops, "loop body"), (&on_branches, "quorum branch")] {
                if places.contains(&activity) {
                    defects.push(self.element(activity), DefectKind::ReplyPlace { entry: entry(), place });
                }
            }
            if let Some(Inputs { sync: None, send: Some(send) }) = inputs.get(reply.entry.as_str()) {
                defects.push(self.element(activity), DefectKind::ReplyToAsync { entry: entry(), send: send.clone() });
            }
        }
    }

    /// Checks that a called entry gets one reply on average.
    fn check_reply_count(&self, entry: &Entry, order: &[usize], values: &Values<'_>, defects: &mut Defects) {
        let Some(start) = self.start_of(entry) else { return };
        let replying = self.task.replies.iter().filter(|r| r.entry == entry.name);
        let replying: Vec<usize> = replying.filter_map(|r| self.names.get(r.activity.as_str()).copied()).collect();
        let expected = match self.executions(start, order, values) {
            Some(executions) => replying.iter().fold(0.0, |sum, a| sum + executions[*a]),
            None if replying.is_empty() => 0.0,
            None => return,
        };
        if f64::abs(expected - 1.0) > SUM_TOLERANCE {
            defects.push(entry_name(self.task, entry), DefectKind::Replies { expected });
        }
    }

    /// The mean number of executions of every activity in one that starts at `start`; `None` if a weight is not known.
    fn executions(&self, start: usize, order: &[usize], values: &Values<'_>) -> Option<Vec<f64>> {
        let mut executions = vec![0.0; self.task.activities.len()];
        executions[start] = 1.0;
        let mut n_left: Vec<usize> = self.pre.iter().map(Vec::len).collect();
        for &activity in order {
            let Some(p) = self.next[activity] else { continue };
            n_left[p] = n_left[p].saturating_sub(1);
            if n_left[p] > 0 {
                continue;
            }
            let before = self.pre[p].iter().map(|a| executions[*a]);
            let out: f64 = match self.task.precedences[p].pre {
                Pre::Or(_) => before.sum(),
                Pre::Single(_) | Pre::And { .. } => before.fold(0.0, f64::max),
            };
            if out > 0.0 {
                self.spread(p, out, &mut executions, values)?;
            }
        }
        Some(executions)
    }

    /// Adds what follows `out` executions of a precedence's left side.
    fn spread(&self, p: usize, out: f64, executions: &mut [f64], values: &Values<'_>) -> Option<()> {
        let weights: &[_] = match &self.task.precedences[p].post {
            Some(Post::Or(weighted) | Post::Loop { bodies: weighted, .. }) => weighted,
            _ => &[],
        };
        for (i, &activity) in self.post[p].iter().enumerate() {
            let weight = weights.get(i).map_or(Some(1.0), |w| values.of(&w.value))?;
            executions[activity] += out * weight;
        }
        Some(())
    }
}

/// Where an activity's executions come from.
#[derive(Default)]
struct Origins {
    /// And-forks before it, with the first activities of the branches that lead to it.
    branches: HashMap<usize, HashSet<usize>>,
    /// Start activities of entries before it.
    starts: HashSet<usize>,
}

impl Origins {
    /// Whether both can end together: on different branches of a fork, or for different entries.
    fn may_join(&self, other: &Self) -> bool {
        let apart = |fork: &usize, branches: &HashSet<usize>| other.branches.get(fork).is_some_and(|others| others.is_disjoint(branches));
        let forked = self.branches.iter().any(|(fork, branches)| apart(fork, branches));
        let external = !self.starts.is_empty() && !other.starts.is_empty() && self.starts.is_disjoint(&other.starts);
        forked || external
    }
}
