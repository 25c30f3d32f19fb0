//! One entry of the model: phases, or an activity graph where it makes requests at once.
//!
//! Without forks an entry has a first and, where there is any work in it, a second phase. With forks it has activities:
//! the first holds the demand of phase 1 and all requests that are made one after another; then each fork with its
//! branches and its join, in turn; the last join replies, and what phase 2 holds follows the reply.

use super::{Accepts, ArcKind, Assembly, MergedArc};
use crate::{
    model::{Activity, Call, CallKind, Entry, Forwarding, Number, Phase, Post, Pre, Precedence, Reply, Task},
    structure::entries::MergedFork,
};

/// Share of an entry's invocations in which a fork has to be seen for it not to be remarked on.
const ALWAYS: f64 = 0.95;

/// What an entry is made of.
pub(super) struct EntryBody<'b> {
    pub(super) name: String,
    pub(super) accepts: Accepts,
    pub(super) arcs: &'b [MergedArc],
    pub(super) forks: &'b [MergedFork],
    /// Of phases 1 and 2, in seconds.
    pub(super) demands: [f64; 2],
}

impl Assembly<'_> {
    /// Adds the entry to `task`.
    pub(super) fn add_entry(&mut self, task: &mut Task, body: &EntryBody<'_>) {
        let name = &body.name;
        let mut first = Activity::new(format!("{name}_ph1"), body.demands[0]);
        let mut second = Activity::new(format!("{name}_ph2"), body.demands[1]);
        let mut entry = Entry::new(name.clone());
        let forwards = body.arcs.iter().any(|arc| arc.kind == ArcKind::Forward);
        let forks = if forwards { &[] } else { body.forks };
        if forwards && !body.forks.is_empty() {
            let message = "entries forward after requests that they made at once: these are taken as made one after another";
            self.out.diagnostics.add("parallel_children_serialised", message, || name.clone());
        }
        for arc in body.arcs {
            let at_once: f64 = forks.iter().flat_map(|fork| fork.branches.iter().flatten()).filter(|a| same(a, arc)).map(|a| a.mean).sum();
            let mean = if arc.phase == 1 { arc.mean - at_once } else { arc.mean };
            let calls = if arc.phase == 2 { &mut second.calls } else { &mut first.calls };
            match arc.kind {
                ArcKind::Forward => {
                    let dest = self.entry_names[arc.target].clone();
                    entry.forwarding.push(Forwarding { dest, probability: Number::Value(arc.mean) });
                }
                _ if mean > 1e-9 * arc.mean => calls.push(self.call(arc, mean)),
                _ => {}
            }
        }
        let has_second = !second.calls.is_empty() || !second.host_demand.is(0.0);
        if forks.is_empty() {
            entry.phases.push(Phase { phase: 1, activity: first });
            if has_second {
                entry.phases.push(Phase { phase: 2, activity: second });
            }
        } else {
            entry.start_activity = Some(first.name.clone());
            self.add_graph(task, body, forks, first, has_second.then_some(second));
        }
        task.entries.push(entry);
    }

    fn add_graph(&mut self, task: &mut Task, body: &EntryBody<'_>, forks: &[MergedFork], first: Activity, second: Option<Activity>) {
        let mut last = first.name.clone();
        task.activities.push(first);
        for (number, fork) in forks.iter().enumerate() {
            if (fork.mean - 1.0).abs() > 1.0 - ALWAYS {
                let message =
                    "forks are not made once in every invocation: the model has each once, with the mean requests of its branches";
                self.out.diagnostics.add("fork_not_always", message, || format!("{}: {:.3} an invocation", body.name, fork.mean));
            }
            let mut branches = Vec::with_capacity(fork.branches.len());
            for (branch, arcs) in fork.branches.iter().enumerate() {
                let mut activity = Activity::new(format!("{}_fork{}_{}", body.name, number + 1, branch + 1), 0.0);
                activity.calls = arcs.iter().map(|arc| self.call(arc, arc.mean)).collect();
                branches.push(activity.name.clone());
                task.activities.push(activity);
            }
            let join = format!("{}_join{}", body.name, number + 1);
            task.activities.push(Activity::new(join.clone(), 0.0));
            task.precedences.push(Precedence { pre: Pre::Single(last), post: Some(Post::And(branches.clone())) });
            task.precedences.push(Precedence {
                pre: Pre::And { activities: branches, quorum: Number::Value(0.0) },
                post: Some(Post::Single(join.clone())),
            });
            last = join;
        }
        if body.accepts == Accepts::Sync {
            task.replies.push(Reply { entry: body.name.clone(), activity: last.clone() });
        }
        if let Some(second) = second {
            task.precedences.push(Precedence { pre: Pre::Single(last), post: Some(Post::Single(second.name.clone())) });
            task.activities.push(second);
        }
    }

    fn call(&self, arc: &MergedArc, mean: f64) -> Call {
        let kind = if arc.kind == ArcKind::Async { CallKind::Async } else { CallKind::Sync };
        Call { kind, dest: self.entry_names[arc.target].clone(), mean: Number::Value(mean) }
    }
}

/// Whether two arcs are of one kind, in one phase, to one entry.
fn same(a: &MergedArc, b: &MergedArc) -> bool {
    (a.kind, a.phase, a.target) == (b.kind, b.phase, b.target)
}
