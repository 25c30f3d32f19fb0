//! Activity graphs of entries that have variants: each variant has activities of its own, in the same task.

use std::collections::{HashMap, HashSet};

use crate::model::{Activity, Entry, Post, Pre, Precedence, Reply, Task, Weighted};

/// The activities of an entry that has a graph, by name; none where it shares any of them with another.
pub(super) fn activities_of<'a>(task: &'a Task, entry: &'a Entry) -> Option<HashSet<&'a str>> {
    let own = reached(task, entry.start_activity.as_deref()?);
    let are_others = |other: &Entry| {
        other.name != entry.name && other.start_activity.as_deref().is_some_and(|start| !reached(task, start).is_disjoint(&own))
    };
    // A join with what another entry started.
    let is_split = |precedence: &Precedence| {
        let before = precedence.pre.activities();
        let n_own = before.iter().filter(|activity| own.contains(activity.as_str())).count();
        n_own > 0 && n_own < before.len()
    };
    let replies_to_other = task.replies.iter().any(|reply| own.contains(reply.activity.as_str()) && reply.entry != entry.name);
    (!task.entries.iter().any(are_others) && !task.precedences.iter().any(is_split) && !replies_to_other).then_some(own)
}

/// The activities that follow one, and itself.
fn reached<'a>(task: &'a Task, start: &'a str) -> HashSet<&'a str> {
    let mut reached = HashSet::from([start]);
    let mut open = vec![start];
    while let Some(activity) = open.pop() {
        for precedence in task.precedences.iter().filter(|it| it.pre.activities().iter().any(|before| before == activity)) {
            let after = precedence.post.iter().flat_map(Post::activities);
            open.extend(after.filter(|&activity| reached.insert(activity)));
        }
    }
    reached
}

/// The graph of an entry, from which further variants of it get theirs.
pub(super) struct Graph {
    activities: Vec<Activity>,
    precedences: Vec<Precedence>,
    replies: Vec<Reply>,
}

impl Graph {
    /// What is of these activities of a task.
    pub fn of(task: &Task, own: &HashSet<&str>) -> Self {
        let is_own = |activity: &String| own.contains(activity.as_str());
        Self {
            activities: task.activities.iter().filter(|activity| is_own(&activity.name)).cloned().collect(),
            precedences: task.precedences.iter().filter(|it| it.pre.activities().iter().any(is_own)).cloned().collect(),
            replies: task.replies.iter().filter(|reply| is_own(&reply.activity)).cloned().collect(),
        }
    }

    /// Whether an activity is of it.
    pub fn has(&self, activity: &str) -> bool {
        self.activities.iter().any(|own| own.name == activity)
    }

    /// Adds a copy to `task` for the variant `entry`, by another `name` of each activity, which `redirect` sends to whom it calls. Returns what these are named after, by
    /// name.
    pub fn add(
        &self,
        task: &mut Task,
        entry: &mut Entry,
        name: impl Fn(&str) -> String,
        redirect: impl Fn(&mut Activity),
    ) -> HashMap<String, String> {
        let names = |activities: &[String]| activities.iter().map(|activity| name(activity)).collect();
        let weighted = |branches: &[Weighted]| {
            branches.iter().map(|branch| Weighted { activity: name(&branch.activity), value: branch.value.clone() }).collect()
        };
        for activity in &self.activities {
            let mut copy = Activity { name: name(&activity.name), ..activity.clone() };
            redirect(&mut copy);
            task.activities.push(copy);
        }
        for Precedence { pre, post } in &self.precedences {
            let pre = match pre {
                Pre::Single(activity) => Pre::Single(name(activity)),
                Pre::And { activities, quorum } => Pre::And { activities: names(activities), quorum: quorum.clone() },
                Pre::Or(activities) => Pre::Or(names(activities)),
            };
            let post = post.as_ref().map(|post| match post {
                Post::Single(activity) => Post::Single(name(activity)),
                Post::And(activities) => Post::And(names(activities)),
                Post::Or(branches) => Post::Or(weighted(branches)),
                Post::Loop { bodies, end } => Post::Loop { bodies: weighted(bodies), end: end.as_deref().map(&name) },
            });
            task.precedences.push(Precedence { pre, post });
        }
        let replies = self.replies.iter().map(|reply| Reply { entry: entry.name.clone(), activity: name(&reply.activity) });
        task.replies.extend(replies);
        entry.start_activity = entry.start_activity.as_deref().map(&name);
        self.activities.iter().map(|it| (name(&it.name), it.name.clone())).collect()
    }
}
