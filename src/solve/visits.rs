//! Mean executions of the activities of a graph in one execution of an entry, by phase.
//!
//! Every branch of an and-fork is executed, an or-fork's with its probability, a loop's body its count of times. A join of `k`
//! activities is executed once for `k` arrivals, so that each arrival counts for `1 / k` of what follows.

use std::collections::HashMap;

use crate::model::{Entry, Post, Pre, Scalar, Task};

/// Mean executions by activity and phase (0 before the reply, 1 after it).
pub(super) type Visits<'a> = HashMap<(&'a str, usize), f64>;

/// An activity in a phase.
type Node<'a> = (&'a str, usize);

/// What part of the cycles of customers goes to each of their entries, where this is `given` of them: those of which nothing is said share
/// what the others leave, or all; what is given counts in proportion. None where all are 0.
pub(super) fn entry_shares<S: Scalar>(given: &[Option<S>]) -> Option<Vec<S>> {
    let n_absent = given.iter().filter(|share| share.is_none()).count();
    let left = given.iter().flatten().fold(S::from(1.0), |left, &share| left - share);
    let rest = match () {
        () if n_absent == given.len() => S::from(1.0),
        () if left > 0.0 => left / n_absent.max(1) as f64,
        () => S::from(0.0),
    };
    let shares: Vec<S> = given.iter().map(|share| share.unwrap_or(rest)).collect();
    let sum = shares.iter().fold(S::from(0.0), |sum, &share| sum + share);
    (sum > 0.0).then(|| shares.iter().map(|&share| share / sum).collect())
}

/// The visits of `entry` to the activities of `task`; none for an entry of phases.
pub(super) fn visits<'a>(task: &'a Task, entry: &'a Entry) -> Visits<'a> {
    let Some(start) = entry.start_activity.as_deref() else { return Visits::new() };
    let graph = Graph { task, entry };
    let mut visits = Visits::from([((start, 0), 1.0)]);
    for node in graph.in_order((start, 0)) {
        let executions = visits.get(&node).copied().unwrap_or(0.0);
        for (next, weight) in graph.next(node) {
            *visits.entry(next).or_insert(0.0) += executions * weight;
        }
    }
    visits
}

struct Graph<'a> {
    task: &'a Task,
    entry: &'a Entry,
}

impl<'a> Graph<'a> {
    /// What follows an activity, with weights.
    fn next(&self, (name, phase): Node<'a>) -> Vec<(Node<'a>, f64)> {
        let replies = self.task.replies.iter().any(|r| r.entry == self.entry.name && r.activity == name);
        let phase = if replies { 1 } else { phase };
        let Some(precedence) = self.task.precedences.iter().find(|p| p.pre.activities().iter().any(|a| a == name)) else {
            return Vec::new();
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of branches")]
        let share = if let Pre::And { activities, .. } = &precedence.pre { 1.0 / activities.len() as f64 } else { 1.0 };
        let weigh = |activity: &'a str, weight: f64| ((activity, phase), weight * share);
        match &precedence.post {
            None => Vec::new(),
            Some(Post::Single(next)) => vec![weigh(next, 1.0)],
            Some(Post::And(branches)) => branches.iter().map(|b| weigh(b, 1.0)).collect(),
            Some(Post::Or(branches)) => branches.iter().map(|b| weigh(&b.activity, b.value.literal().unwrap_or(0.0))).collect(),
            Some(Post::Loop { bodies, end }) => {
                let bodies = bodies.iter().map(|b| weigh(&b.activity, b.value.literal().unwrap_or(0.0)));
                bodies.chain(end.as_deref().map(|end| weigh(end, 1.0))).collect()
            }
        }
    }

    /// Everything that follows `start`, each after all that lead to it.
    fn in_order(&self, start: Node<'a>) -> Vec<Node<'a>> {
        let mut order = Vec::new();
        let mut entered = HashMap::from([(start, ())]);
        let mut open = vec![(start, self.next(start))];
        while let Some((node, rest)) = open.last_mut() {
            match rest.pop() {
                Some((next, _)) => {
                    if entered.insert(next, ()).is_none() {
                        open.push((next, self.next(next)));
                    }
                }
                None => {
                    order.push(*node);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, json};

    const TASK: &str = r#"{"processors": [], "tasks": [{"name": "T", "processor": "P",
        "entries": [{"name": "E", "start_activity": "a"}],
        "activities": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e"}, {"name": "f"}, {"name": "g"}],
        "precedences": [
            {"pre": {"single": "a"}, "post": {"and": ["b", "c"]}},
            {"pre": {"and": {"activities": ["b", "c"]}}, "post": {"or": [{"activity": "d", "value": 0.25}, {"activity": "e", "value": 0.75}]}},
            {"pre": {"or": ["d", "e"]}, "post": {"loop": {"bodies": [{"activity": "f", "value": 3}], "end": "g"}}}],
        "replies": [{"entry": "E", "activity": "d"}, {"entry": "E", "activity": "e"}]}]}"#;

    #[test]
    fn forks_choices_and_loops_are_counted() {
        let model: Model = json::parse(TASK).unwrap();
        let visits = visits(&model.tasks[0], &model.tasks[0].entries[0]);
        let expected = [("a", 0, 1.0), ("b", 0, 1.0), ("c", 0, 1.0), ("d", 0, 0.25), ("e", 0, 0.75), ("f", 1, 3.0), ("g", 1, 1.0)];
        assert_eq!(visits.len(), expected.len(), "{visits:?}");
        for (name, phase, mean) in expected {
            assert!((visits[&(name, phase)] - mean).abs() < 1e-12, "{name} {visits:?}");
        }
    }
}
