//! Activity graphs without parallelism, reduced to phases.
//!
//! A graph of sequences, or-forks and loops does in the mean what phases do: the demand and the calls of every activity,
//! times the mean number of its executions, in phase 1 before the reply and in phase 2 after it. What this loses is the variance
//! that choice and repetition add; what it cannot do is run branches side by side, which is refused by name.

use std::collections::HashMap;

use super::SolveError;
use crate::model::{Bindings, CallKind, Entry, Number, Post, Pre, Scalar, Task};

/// The work of one phase of an entry.
#[derive(Clone, Debug)]
pub(super) struct PhaseWork<S> {
    pub name: String,
    pub demand: S,
    /// Whether some of the demand is not written as 0.
    pub uses_processor: bool,
    pub think_time: S,
    pub cvsq: S,
    /// Whether the numbers of calls are exact.
    pub deterministic: bool,
    pub calls: Vec<(CallKind, String, S)>,
}

/// Bound on steps through a graph; only a cycle can need more.
const MAX_STEPS: usize = 100_000;

/// The work of `entry` of `task` by phase (0 before the reply, 1 after it).
pub(super) fn as_phases<S: Scalar>(
    task: &Task,
    entry: &Entry,
    values: &Bindings<S>,
    solver: &'static str,
) -> Result<Vec<(usize, PhaseWork<S>)>, SolveError> {
    let Some(start) = &entry.start_activity else { return Ok(Vec::new()) };
    let mut walk = Walk { task, entry, values, solver, visits: HashMap::new(), steps: 0 };
    walk.run(start)?;
    let mut phases = Vec::new();
    for phase in 0..2 {
        if let Some(work) = walk.phase_work(phase)? {
            phases.push((phase, work));
        }
    }
    Ok(phases)
}

struct Walk<'a, S> {
    task: &'a Task,
    entry: &'a Entry,
    values: &'a Bindings<S>,
    solver: &'static str,
    /// Mean executions by activity and phase.
    visits: HashMap<(&'a str, usize), S>,
    steps: usize,
}

impl<'a, S: Scalar> Walk<'a, S> {
    fn unsupported(&self, construct: &'static str) -> SolveError {
        SolveError::Unsupported { solver: self.solver, construct, element: format!("task \"{}\"", self.task.name) }
    }

    fn number(&self, number: &Number) -> Result<S, SolveError> {
        Ok(number.eval(self.values)?)
    }

    fn run(&mut self, start: &'a str) -> Result<(), SolveError> {
        let mut pending = vec![(start, S::from(1.0), 0)];
        while let Some((name, weight, phase)) = pending.pop() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(SolveError::Unusable {
                    element: format!("task \"{}\"", self.task.name),
                    reason: "its activity graph never ends".into(),
                });
            }
            *self.visits.entry((name, phase)).or_insert(S::from(0.0)) += weight;
            let replies = self.task.replies.iter().any(|r| r.entry == self.entry.name && r.activity == name);
            let next_phase = if replies { 1 } else { phase };
            let Some(precedence) = self.task.precedences.iter().find(|p| before(&p.pre).iter().any(|n| n == name)) else { continue };
            if matches!(&precedence.pre, Pre::And { activities, .. } if activities.len() > 1) {
                return Err(self.unsupported("an and-join"));
            }
            match &precedence.post {
                None => {}
                Some(Post::Single(next)) => pending.push((next, weight, next_phase)),
                Some(Post::And(branches)) if branches.len() > 1 => return Err(self.unsupported("an and-fork")),
                Some(Post::And(branches)) => pending.extend(branches.iter().map(|b| (b.as_str(), weight, next_phase))),
                Some(Post::Or(branches)) => {
                    for branch in branches {
                        pending.push((&branch.activity, weight * self.number(&branch.value)?, next_phase));
                    }
                }
                Some(Post::Loop { bodies, end }) => {
                    for body in bodies {
                        pending.push((&body.activity, weight * self.number(&body.value)?, next_phase));
                    }
                    pending.extend(end.iter().map(|e| (e.as_str(), weight, next_phase)));
                }
            }
        }
        Ok(())
    }

    /// Sums the activities of a phase; the variation of the slices is the demand-weighted mean.
    fn phase_work(&self, phase: usize) -> Result<Option<PhaseWork<S>>, SolveError> {
        let zero = S::from(0.0);
        let mut work = PhaseWork {
            name: format!("{}_ph{}", self.entry.name, phase + 1),
            demand: zero,
            uses_processor: false,
            think_time: zero,
            cvsq: S::from(1.0),
            deterministic: false,
            calls: Vec::new(),
        };
        let (mut weighted, mut found) = (zero, false);
        for activity in &self.task.activities {
            let Some(&visits) = self.visits.get(&(activity.name.as_str(), phase)) else { continue };
            found = true;
            let demand = visits * self.number(&activity.host_demand)?;
            work.demand += demand;
            work.uses_processor |= !activity.host_demand.is(0.0);
            weighted += demand * self.number(&activity.host_demand_cvsq)?;
            work.think_time += visits * self.number(&activity.think_time)?;
            for call in activity.calls.iter().filter(|c| !c.mean.is(0.0)) {
                let mean = visits * self.number(&call.mean)?;
                match work.calls.iter_mut().find(|(kind, dest, _)| *kind == call.kind && *dest == call.dest) {
                    Some((_, _, sum)) => *sum += mean,
                    None => work.calls.push((call.kind, call.dest.clone(), mean)),
                }
            }
        }
        if work.demand > 0.0 {
            work.cvsq = weighted / work.demand;
        }
        Ok(found.then_some(work))
    }
}

/// The activities on the left side of a precedence.
fn before(pre: &Pre) -> &[String] {
    match pre {
        Pre::Single(name) => std::slice::from_ref(name),
        Pre::And { activities, .. } => activities,
        Pre::Or(names) => names,
    }
}
