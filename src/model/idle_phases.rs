//! Later phases that do nothing at given values.
//!
//! The text form leaves out a second or third phase whose numbers are 0. One whose numbers are parameters stays, and as such goes back to its
//! processor's queue before it does nothing: where a parameter of 0 stands for a structure without the phase, it has to be left out, too.

use super::{Activity, Bindings, Model};

impl Model {
    /// The model without second and third phases that have, at `values`, neither demand nor think time nor calls; what cannot be evaluated
    /// counts as something.
    pub fn without_idle_phases(&self, values: &Bindings) -> Self {
        let mut model = self.clone();
        let Ok(values) = self.bindings(values) else { return model };
        let is_idle = |it: &Activity| {
            let numbers = [&it.host_demand, &it.think_time].into_iter().chain(it.calls.iter().map(|call| &call.mean));
            numbers.into_iter().all(|number| number.eval(&values).is_ok_and(|value| value == 0.0))
        };
        for entry in model.tasks.iter_mut().flat_map(|task| &mut task.entries) {
            entry.phases.retain(|it| it.phase == 1 || !is_idle(&it.activity));
        }
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Call, CallKind, Entry, Number, Phase, Processor, Task};

    #[test]
    fn phases_without_work_are_left_out() {
        let phase = |phase: u8, demand: &str| Phase { phase, activity: Activity::new("it", Number::Parameter(demand.into())) };
        let mut entry = Entry::new("get");
        entry.phases = vec![phase(1, "a"), phase(2, "b"), phase(3, "c")];
        let call = Call { kind: CallKind::Sync, dest: "read".into(), mean: Number::Value(1.0) };
        entry.phases[2].activity.calls.push(call);
        let mut task = Task::new("Web", "CPU");
        task.entries.push(entry);
        let model = Model { processors: vec![Processor::new("CPU")], tasks: vec![task], ..Model::default() };
        let left = |values: &[(&str, f64)]| -> Vec<u8> {
            let found = model.without_idle_phases(&values.iter().copied().collect());
            found.tasks[0].entries[0].phases.iter().map(|p| p.phase).collect()
        };
        assert_eq!(left(&[("a", 0.0), ("b", 0.0), ("c", 0.0)]), [1, 3], "the first stays, and one that calls");
        assert_eq!(left(&[("a", 1.0), ("b", 1e-9), ("c", 1.0)]), [1, 2, 3]);
        assert_eq!(left(&[("a", 1.0)]), [1, 2, 3], "what has no value may be something");
    }
}
