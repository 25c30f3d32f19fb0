//! One entry of the model: phases, or an activity graph where it makes requests at once.
//!
//! Without forks an entry has a first and, where there is any work in it, a second phase. With forks it has activities:
//! the first holds the demand of phase 1 and all requests that are made one after another; then each fork with its
//! branches and its join, in turn; the last join replies, and what phase 2 holds follows the reply.
//!
//! A phase, or an activity, all of whose calls were made equally often in each of [`SURE`] invocations or more, has exact numbers of
//! calls (call order deterministic); else they are means (geometric numbers). Of calls outside forks the number is what is left of all
//! those of the invocation.

use super::{Accepts, ArcKind, Assembly, MergedArc};
use crate::{
    model::{Activity, Call, CallKind, CallOrder, Entry, Forwarding, Number, Phase, Post, Pre, Precedence, Reply, Task},
    structure::entries::MergedFork,
};

/// Share of an entry's invocations in which a fork has to be seen for it not to be remarked on.
const ALWAYS: f64 = 0.95;

/// Invocations from which on a number that was always the same is taken to be exact: if one in ten differed, so many would show it in 96 of
/// 100 cases.
const SURE: u64 = 30;

/// What an entry is made of.
pub(super) struct EntryBody<'b> {
    pub(super) name: String,
    pub(super) accepts: Accepts,
    /// Invocations seen.
    pub(super) n_occurrences: u64,
    pub(super) arcs: &'b [MergedArc],
    pub(super) forks: &'b [MergedFork],
    /// Of phases 1 and 2, in seconds.
    pub(super) demands: [f64; 2],
}

impl EntryBody<'_> {
    /// How often each invocation makes the requests of `arc`, where enough of them agree.
    fn each_time(&self, arc: &MergedArc) -> Option<u64> {
        arc.each_time(self.n_occurrences).filter(|_| self.n_occurrences >= SURE)
    }

    /// How often each makes those of `arc` that are in none of `forks`.
    fn each_time_outside(&self, arc: &MergedArc, forks: &[MergedFork]) -> Option<u64> {
        let mut left = self.each_time(arc)?;
        for of_fork in in_forks(forks, arc) {
            left = left.checked_sub(self.each_time(of_fork)?)?;
        }
        Some(left)
    }
}

/// Calls of one activity: of each the mean number, and the exact one where it is known.
#[derive(Default)]
struct Calls(Vec<(Call, Option<u64>)>);

impl Calls {
    fn give_to(self, activity: &mut Activity) {
        let are_exact = !self.0.is_empty() && self.0.iter().all(|(_, exact)| exact.is_some());
        if are_exact {
            activity.call_order = CallOrder::Deterministic;
        }
        let call = |(call, exact): (Call, Option<u64>)| match exact.filter(|_| are_exact) {
            Some(n) => Call { mean: Number::Value(n as f64), ..call },
            None => call,
        };
        activity.calls = self.0.into_iter().map(call).collect();
    }
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
        let mut calls = [Calls::default(), Calls::default()];
        for arc in body.arcs {
            let mean = arc.mean - in_forks(forks, arc).map(|a| a.mean).sum::<f64>();
            let of_phase = &mut calls[usize::from(arc.phase == 2)];
            match arc.kind {
                ArcKind::Forward => {
                    let dest = self.entry_names[arc.target].clone();
                    entry.forwarding.push(Forwarding { dest, probability: Number::Value(arc.mean) });
                }
                _ if mean > 1e-9 * arc.mean => of_phase.0.push((self.call(arc, mean), body.each_time_outside(arc, forks))),
                _ => {}
            }
        }
        let [of_first, of_second] = calls;
        of_first.give_to(&mut first);
        of_second.give_to(&mut second);
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
                Calls(arcs.iter().map(|arc| (self.call(arc, arc.mean), body.each_time(arc))).collect()).give_to(&mut activity);
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

/// The requests in forks that are of one kind, in one phase, to one entry with `arc`.
fn in_forks<'f>(forks: &'f [MergedFork], arc: &MergedArc) -> impl Iterator<Item = &'f MergedArc> {
    let key = (arc.kind, arc.phase, arc.target);
    forks.iter().flat_map(|fork| fork.branches.iter().flatten()).filter(move |a| (a.kind, a.phase, a.target) == key)
}
