//! Activity graphs without parallelism, reduced to phases.
//!
//! A graph of sequences, or-forks and loops does in the mean what phases do: the demand and the calls of every activity,
//! times the mean number of its executions, in phase 1 before the reply and in phase 2 after it. What this loses is the variance
//! that choice and repetition add; what it cannot do is run branches side by side, which is refused by name.

use std::collections::HashMap;

use super::{SolveError, bind::unusable};
use crate::model::{Bindings, CallKind, CallOrder, Entry, Number, Post, Pre, Scalar, Task};

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
    /// Chance that it makes no call that is waited for, and variance of their number, of activities that all are executed once.
    pub in_sequence: Option<(S, S)>,
    /// Mean number of activities with demand in one execution, each at least one slice; 1 for a phase.
    pub pieces: S,
    pub calls: Vec<(CallKind, String, S)>,
    /// The activities that it is summed over; none for a phase.
    pub parts: Vec<ActivityWork<S>>,
}

/// An activity of a graph as a part of a phase or strand.
#[derive(Clone, Debug)]
pub(super) struct ActivityWork<S> {
    pub name: String,
    /// Mean executions in one of the whole.
    pub visits: S,
    /// Demand, think time and calls of one execution.
    pub demand: S,
    pub uses_processor: bool,
    pub think_time: S,
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
                return Err(unusable(format!("task \"{}\"", self.task.name), "its activity graph never ends"));
            }
            *self.visits.entry((name, phase)).or_insert(S::from(0.0)) += weight;
            let replies = self.task.replies.iter().any(|r| r.entry == self.entry.name && r.activity == name);
            let next_phase = if replies { 1 } else { phase };
            let Some(precedence) = self.task.precedences.iter().find(|p| p.pre.activities().iter().any(|n| n == name)) else { continue };
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

    fn phase_work(&self, phase: usize) -> Result<Option<PhaseWork<S>>, SolveError> {
        let visits: HashMap<&str, S> = self.visits.iter().filter(|((_, p), _)| *p == phase).map(|((name, _), &v)| (*name, v)).collect();
        let name = format!("{}_ph{}", self.entry.name, phase + 1);
        if visits.is_empty() { Ok(None) } else { summed(self.task, name, &visits, self.values).map(Some) }
    }
}

/// The activities of `task` that are executed so many times in the mean, as one piece of work; the variation of the slices is the
/// demand-weighted mean.
pub(super) fn summed<S: Scalar>(
    task: &Task,
    name: String,
    visits: &HashMap<&str, S>,
    values: &Bindings<S>,
) -> Result<PhaseWork<S>, SolveError> {
    let zero = S::from(0.0);
    let mut work = PhaseWork {
        name,
        demand: zero,
        uses_processor: false,
        think_time: zero,
        cvsq: S::from(1.0),
        deterministic: false,
        in_sequence: None,
        pieces: zero,
        calls: Vec::new(),
        parts: Vec::new(),
    };
    let mut weighted = zero;
    let (mut no_call, mut variance) = (S::from(1.0), zero);
    for activity in &task.activities {
        let Some(&visits) = visits.get(activity.name.as_str()) else { continue };
        let mut part = ActivityWork {
            name: activity.name.clone(),
            visits,
            demand: activity.host_demand.eval(values)?,
            uses_processor: !activity.host_demand.is(0.0),
            think_time: activity.think_time.eval(values)?,
            calls: Vec::new(),
        };
        let demand = visits * part.demand;
        work.demand += demand;
        if part.uses_processor {
            work.uses_processor = true;
            work.pieces += visits;
        }
        work.deterministic = activity.call_order == CallOrder::Deterministic;
        let mut n_calls = zero;
        weighted += demand * activity.host_demand_cvsq.eval(values)?;
        work.think_time += visits * part.think_time;
        for call in activity.counted_calls().filter(|c| !c.mean.is(0.0)) {
            let each = call.mean.eval(values)?;
            if call.kind == CallKind::Sync {
                n_calls += each;
            }
            part.calls.push((call.kind, call.dest.clone(), each));
            let mean = visits * each;
            match work.calls.iter_mut().find(|(kind, dest, _)| *kind == call.kind && *dest == call.dest) {
                Some((_, _, sum)) => *sum += mean,
                None => work.calls.push((call.kind, call.dest.clone(), mean)),
            }
        }
        work.parts.push(part);
        if !work.deterministic {
            no_call /= n_calls + 1.0;
            variance += n_calls * (n_calls + 1.0);
        } else if n_calls > 0.0 {
            no_call = zero;
        }
    }
    if work.parts.iter().all(|part| part.visits == 1.0) {
        work.in_sequence = Some((no_call, variance));
    }
    if work.demand > 0.0 {
        work.cvsq = weighted / work.demand;
    }
    work.deterministic &= visits.len() == 1;
    Ok(work)
}
