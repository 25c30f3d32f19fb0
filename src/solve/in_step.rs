//! Models in which nothing is left to chance: their requests run in step, where the analytic solvers expect chance to bring them together.

use crate::model::{Activity, Bindings, CallOrder, Entry, Model, Number, Post, ProcessorScheduling, Task};

/// Says so of `model`, if it has several customers and no time, number of calls or way in it varies.
pub(super) fn note(model: &Model, bound: &Bindings) -> Option<String> {
    let references = model.tasks.iter().filter(|task| task.scheduling.is_reference());
    let customers: f64 = references.map(|task| value(&task.multiplicity, bound) * value(&task.replication, bound)).sum();
    let picks = model.processors.iter().any(|processor| processor.scheduling == ProcessorScheduling::Rand);
    if customers <= 1.0 || picks || model.tasks.iter().any(|task| varies(task, bound)) {
        return None;
    }
    Some(
        "no time and no number of calls varies: requests run in step, where queueing formulas expect chance; a simulation follows them"
            .into(),
    )
}

/// The value of a number; none where it has no value, which others say.
fn value(number: &Number, bound: &Bindings) -> f64 {
    number.eval(bound).unwrap_or(f64::NAN)
}

/// Whether something that a task does is left to chance.
fn varies(task: &Task, bound: &Bindings) -> bool {
    let is_thought = task.scheduling.is_reference() && value(&task.think_time, bound) != 0.0;
    let branches = task.precedences.iter().any(|precedence| matches!(precedence.post, Some(Post::Or(_) | Post::Loop { .. })));
    let chooses = task.scheduling.is_reference() && task.entries.len() > 1;
    let phases = task.entries.iter().flat_map(|entry| &entry.phases).map(|phase| &phase.activity);
    let forwards = |entry: &Entry| entry.forwarding.iter().any(|forwarded| value(&forwarded.probability, bound).fract() != 0.0);
    let is_entered = |entry: &Entry| entry.open_arrival_rate.is_some() || forwards(entry);
    is_thought
        || branches
        || chooses
        || task.entries.iter().any(is_entered)
        || phases.chain(&task.activities).any(|activity| is_varied(activity, bound))
}

/// Whether an execution of an activity is not as long as another, or calls as often.
fn is_varied(activity: &Activity, bound: &Bindings) -> bool {
    let demand = value(&activity.host_demand, bound) != 0.0 && value(&activity.host_demand_cvsq, bound) != 0.0;
    let calls = activity.call_order == CallOrder::Stochastic && activity.calls.iter().any(|call| value(&call.mean, bound) != 0.0);
    demand || calls || value(&activity.think_time, bound) != 0.0
}
