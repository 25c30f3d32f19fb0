//! Numbers, their sums, and replication, as far as the numbers are known.

use super::{DefectKind, Defects, Index, Named, Place, entry_name, graph, group_name, processor_name, task_name, work};
use crate::model::{Activity, Bindings, CallKind, CallOrder, Fan, Model, Number, Processor, SolverParams, Task};

/// By how much a sum of probabilities may miss 1: models are written with five or six digits.
pub(super) const SUM_TOLERANCE: f64 = 1e-5;

/// Most of what is counted, unless it is infinite.
const MOST: f64 = u32::MAX as f64;

/// What a quantity may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// ≥ 0 and finite.
    NotNegative,
    /// > 0 and finite.
    Positive,
    /// A whole number ≥ 0.
    Whole,
    /// A whole number ≥ 1.
    Count,
    /// A whole number ≥ 1, or infinite.
    CountOrInfinite,
    /// From 0 to 1.
    Probability,
    /// Above 0, up to 1.
    Share,
}

/// Values of numbers under the bindings.
pub(super) struct Values<'a>(pub(super) &'a Bindings);

impl Values<'_> {
    /// The value of a number, if it is known.
    pub(super) fn of(&self, number: &Number) -> Option<f64> {
        match number {
            Number::Value(value) => Some(*value),
            Number::Parameter(name) => self.0.get(name),
        }
    }
}

/// What is wrong with the value of a quantity.
fn defect(value: f64, quantity: &'static str, range: Range) -> Option<DefectKind> {
    if value == f64::INFINITY && range == Range::CountOrInfinite {
        return None;
    }
    if !value.is_finite() {
        return Some(DefectKind::NotFinite { quantity, value });
    }
    let is_whole = value.fract() == 0.0;
    match range {
        Range::Positive | Range::Share if value <= 0.0 => Some(DefectKind::NotPositive { quantity, value }),
        _ if value < 0.0 => Some(DefectKind::Negative { quantity, value }),
        Range::Count | Range::CountOrInfinite if value < 1.0 => Some(DefectKind::BelowOne { quantity, value }),
        Range::Count | Range::CountOrInfinite | Range::Whole if !is_whole => Some(DefectKind::NotInteger { quantity, value }),
        Range::Count | Range::CountOrInfinite if value > MOST => Some(DefectKind::TooMany { quantity, value }),
        Range::Probability | Range::Share if value > 1.0 + SUM_TOLERANCE => Some(DefectKind::AboveOne { quantity, value }),
        _ => None,
    }
}

/// The checks of one element's quantities.
struct Checker<'a> {
    values: Values<'a>,
    defects: &'a mut Defects,
}

impl Checker<'_> {
    fn number(&mut self, element: &dyn Fn() -> Named, number: &Number, quantity: &'static str, range: Range) {
        if let Some(kind) = self.values.of(number).and_then(|value| defect(value, quantity, range)) {
            self.defects.push(element(), kind);
        }
    }
}

/// Checks all values of the model.
pub(super) fn check(model: &Model, index: &Index<'_>, bindings: &Bindings, defects: &mut Defects) {
    let mut checker = Checker { values: Values(bindings), defects };
    check_solver_params(&model.solver_params, &mut checker);
    for processor in &model.processors {
        check_processor(processor, &mut checker);
    }
    for task in &model.tasks {
        check_task(task, &mut checker);
        check_entries(task, &mut checker);
        for (place, activity) in work(task) {
            check_activity(task, place, activity, &mut checker);
        }
    }
    check_replication(model, index, &mut checker);
    graph::check_values(model, &Values(bindings), defects);
}

fn check_solver_params(params: &SolverParams, checker: &mut Checker<'_>) {
    let element = Named::model;
    for (number, quantity) in [
        (&params.conv_val, "convergence value"),
        (&params.it_limit, "iteration limit"),
        (&params.underrelax_coeff, "under-relaxation coefficient"),
        (&params.print_int, "print interval"),
    ] {
        number.iter().for_each(|n| checker.number(&element, n, quantity, Range::NotNegative));
    }
}

fn check_processor(processor: &Processor, checker: &mut Checker<'_>) {
    let element = || processor_name(processor);
    checker.number(&element, &processor.multiplicity, "multiplicity", Range::CountOrInfinite);
    checker.number(&element, &processor.replication, "replication", Range::Count);
    checker.number(&element, &processor.speed_factor, "speed factor", Range::Positive);
    checker.number(&element, &processor.quantum, "quantum", Range::NotNegative);
    for group in &processor.groups {
        let element = || group_name(processor, group);
        checker.number(&element, &group.share, "share", Range::Share);
    }
}

fn check_task(task: &Task, checker: &mut Checker<'_>) {
    let element = || task_name(task);
    checker.number(&element, &task.multiplicity, "multiplicity", Range::CountOrInfinite);
    checker.number(&element, &task.replication, "replication", Range::Count);
    checker.number(&element, &task.priority, "priority", Range::Whole);
    checker.number(&element, &task.think_time, "think time", Range::NotNegative);
    checker.number(&element, &task.queue_length, "queue length", Range::Whole);
    task.initial_tokens.iter().for_each(|n| checker.number(&element, n, "initial number of tokens", Range::Whole));
    task.fan_out.iter().for_each(|fan| checker.number(&element, &fan.value, "fan-out", Range::Count));
    task.fan_in.iter().for_each(|fan| checker.number(&element, &fan.value, "fan-in", Range::Count));
    let is_infinite = checker.values.of(&task.multiplicity) == Some(f64::INFINITY);
    if is_infinite && task.scheduling.is_reference() {
        checker.defects.push(element(), DefectKind::Infinite { kind: "reference task", members: "customers" });
    }
    if is_infinite && task.scheduling.is_lock() {
        checker.defects.push(element(), DefectKind::Infinite { kind: "lock", members: "tokens" });
    }
    if let Some(think_time) = checker.values.of(&task.think_time).filter(|z| *z > 0.0 && !task.scheduling.is_reference()) {
        checker.defects.push(element(), DefectKind::ThinkingServer { think_time });
    }
}

fn check_entries(task: &Task, checker: &mut Checker<'_>) {
    for entry in &task.entries {
        let element = || entry_name(task, entry);
        let rate = entry.open_arrival_rate.iter();
        rate.for_each(|n| checker.number(&element, n, "open arrival rate", Range::NotNegative));
        entry.priority.iter().for_each(|n| checker.number(&element, n, "priority", Range::Whole));
        let visits = entry.visit_probability.iter();
        visits.for_each(|n| checker.number(&element, n, "visit probability", Range::Probability));
        for forwarding in &entry.forwarding {
            checker.number(&element, &forwarding.probability, "forwarding probability", Range::Probability);
        }
        let sum: Option<f64> = entry.forwarding.iter().map(|f| checker.values.of(&f.probability)).sum();
        if let Some(sum) = sum.filter(|sum| *sum > 1.0 + SUM_TOLERANCE) {
            checker.defects.push(element(), DefectKind::ForwardingSum { sum });
        }
    }
}

fn check_activity(task: &Task, place: Place<'_>, activity: &Activity, checker: &mut Checker<'_>) {
    let element = || place.element(task, activity);
    checker.number(&element, &activity.host_demand, "host demand", Range::NotNegative);
    checker.number(&element, &activity.host_demand_cvsq, "squared coefficient of variation", Range::NotNegative);
    checker.number(&element, &activity.think_time, "think time", Range::NotNegative);
    checker.number(&element, &activity.max_service_time, "maximum service time", Range::NotNegative);
    for call in &activity.calls {
        let quantity = match call.kind {
            CallKind::Sync => "mean number of synchronous calls",
            CallKind::Async => "mean number of asynchronous calls",
        };
        checker.number(&element, &call.mean, quantity, Range::NotNegative);
        let fractional = checker.values.of(&call.mean).filter(|mean| mean.is_finite() && mean.fract() != 0.0);
        if let Some(mean) = fractional.filter(|_| activity.call_order == CallOrder::Deterministic) {
            checker.defects.push(element(), DefectKind::FractionalCalls { dest: call.dest.clone(), mean });
        }
    }
}

/// Checks that copies can be paired: `R_s O = R_d I` between calling and called tasks, and tasks spread over processors.
fn check_replication(model: &Model, index: &Index<'_>, checker: &mut Checker<'_>) {
    for task in &model.tasks {
        check_placement(model, index, task, checker);
        let calls = work(task).flat_map(|(_, activity)| activity.calls.iter().map(|c| &c.dest));
        let forwarded = task.entries.iter().flat_map(|e| e.forwarding.iter().map(|f| &f.dest));
        let mut seen = std::collections::HashSet::new();
        for dest in calls.chain(forwarded) {
            let Some((callee, _)) = index.entry(model, dest) else { continue };
            if seen.insert(&callee.name) {
                check_pair(task, callee, checker);
            }
        }
    }
}

fn check_pair(caller: &Task, callee: &Task, checker: &mut Checker<'_>) {
    let fan = |fans: &[Fan], other: &Task| match fans.iter().find(|fan| fan.task == other.name) {
        Some(fan) => checker.values.of(&fan.value),
        None => Some(1.0),
    };
    let fans = (fan(&caller.fan_out, callee), fan(&callee.fan_in, caller));
    let copies = (checker.values.of(&caller.replication), checker.values.of(&callee.replication));
    let (((Some(fan_out), Some(fan_in)), (Some(n_callers), Some(n_callees))), true) = ((fans, copies), caller.name != callee.name) else {
        return;
    };
    #[expect(clippy::float_cmp, reason = "both are products of whole numbers")]
    if n_callers * fan_out != n_callees * fan_in {
        let callee = callee.name.clone();
        let kind = DefectKind::ReplicationMismatch { callee, n_callers, fan_out, n_callees, fan_in };
        checker.defects.push(task_name(caller), kind);
    }
}

fn check_placement(model: &Model, index: &Index<'_>, task: &Task, checker: &mut Checker<'_>) {
    let processor = index.processors.get(task.processor.as_str()).and_then(|i| model.processors.get(*i));
    let Some(processor) = processor else { return };
    let copies = (checker.values.of(&task.replication), checker.values.of(&processor.replication));
    if let (Some(n_tasks), Some(n_processors)) = copies
        && n_tasks % n_processors != 0.0
    {
        let kind = DefectKind::ProcessorReplication { processor: processor.name.clone(), n_tasks, n_processors };
        checker.defects.push(task_name(task), kind);
    }
}
