//! How busy each resource is, per server: what a prediction is compared with to see whether it leaves the known ground.

use indexmap::IndexMap;

use crate::{
    model::{Bindings, Measure, Model, Number, ProcessorScheduling, TaskScheduling},
    solve::Solution,
};

/// Utilization per server, 0 to 1, of every processor and called task of finite multiplicity, by `processor NAME` or
/// `task NAME`. `values` binds the parameters with which `solution` was made.
pub fn utilizations(model: &Model, values: &Bindings, solution: &Solution) -> IndexMap<String, f64> {
    let mut found = IndexMap::new();
    for p in model.processors.iter().filter(|p| p.scheduling != ProcessorScheduling::Inf) {
        if let (Some(result), Some(servers)) = (solution.processors.get(&p.name), servers(model, values, &p.multiplicity)) {
            found.insert(format!("processor {}", p.name), result.utilization / servers);
        }
    }
    for t in model.tasks.iter().filter(|t| !t.scheduling.is_reference() && t.scheduling != TaskScheduling::Inf) {
        if let (Some(result), Some(servers)) = (solution.tasks.get(&t.name), servers(model, values, &t.multiplicity)) {
            found.insert(format!("task {}", t.name), result.utilization / servers);
        }
    }
    found
}

/// The resource of a utilization measure, and its number of servers where that is finite and known.
pub fn measured_resource(model: &Model, values: &Bindings, measure: &Measure) -> Option<(String, f64)> {
    let Measure::Utilization(name) = measure else { return None };
    if let Some(task) = model.task(name.strip_prefix("task:").unwrap_or(name)) {
        let finite = !task.scheduling.is_reference() && task.scheduling != TaskScheduling::Inf;
        return finite.then(|| Some((format!("task {}", task.name), servers(model, values, &task.multiplicity)?)))?;
    }
    let processor = model.processor(name.strip_prefix("processor:").unwrap_or(name))?;
    let finite = processor.scheduling != ProcessorScheduling::Inf;
    finite.then(|| Some((format!("processor {}", processor.name), servers(model, values, &processor.multiplicity)?)))?
}

/// A multiplicity as a number; `None` where it is infinite or has no value.
fn servers(model: &Model, values: &Bindings, multiplicity: &Number) -> Option<f64> {
    let value = match multiplicity {
        Number::Value(value) => *value,
        Number::Parameter(_) => multiplicity.eval(&model.bindings(values).ok()?).ok()?,
    };
    Some(value).filter(|v| v.is_finite() && *v > 0.0)
}
