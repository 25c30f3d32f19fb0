//! A model with a value in the place of every `$name`: what was solved, when a solution is written down.

use super::{Activity, Bindings, Model, Number, Post, Pre, Precedence, Task, UnboundParameter};

impl Model {
    /// The model with every `$name` replaced by its value, and without what only served the names: definitions,
    /// observations, and the parts of the file that are kept as they stand.
    ///
    /// # Errors
    /// [`UnboundParameter`] for a `$name` that `values` does not hold.
    pub fn bound_to(&self, values: &Bindings) -> Result<Self, UnboundParameter> {
        let mut model = self.clone();
        model.parameters.clear();
        model.observations.clear();
        model.opaque.clear();
        let mut unbound = None;
        model.for_each_number_mut(&mut |number| match number.eval(values) {
            Ok(value) => *number = Number::Value(value),
            Err(error) => {
                unbound.get_or_insert(error);
            }
        });
        unbound.map_or(Ok(model), Err)
    }

    fn for_each_number_mut(&mut self, change: &mut dyn FnMut(&mut Number)) {
        let params = &mut self.solver_params;
        let hints = [&mut params.conv_val, &mut params.it_limit, &mut params.underrelax_coeff, &mut params.print_int];
        hints.into_iter().flatten().for_each(&mut *change);
        for processor in &mut self.processors {
            change(&mut processor.multiplicity);
            change(&mut processor.replication);
            change(&mut processor.speed_factor);
            change(&mut processor.quantum);
            processor.groups.iter_mut().for_each(|g| change(&mut g.share));
        }
        self.tasks.iter_mut().for_each(|task| task.for_each_number_mut(change));
    }
}

impl Task {
    fn for_each_number_mut(&mut self, change: &mut dyn FnMut(&mut Number)) {
        change(&mut self.multiplicity);
        change(&mut self.replication);
        change(&mut self.priority);
        change(&mut self.think_time);
        change(&mut self.queue_length);
        self.initial_tokens.iter_mut().for_each(&mut *change);
        self.fan_out.iter_mut().chain(&mut self.fan_in).for_each(|fan| change(&mut fan.value));
        for entry in &mut self.entries {
            let rates = [&mut entry.open_arrival_rate, &mut entry.priority, &mut entry.visit_probability];
            rates.into_iter().flatten().for_each(&mut *change);
            entry.forwarding.iter_mut().for_each(|f| change(&mut f.probability));
            entry.phases.iter_mut().for_each(|p| p.activity.for_each_number_mut(change));
        }
        self.activities.iter_mut().for_each(|a| a.for_each_number_mut(change));
        self.precedences.iter_mut().for_each(|p| p.for_each_number_mut(change));
    }
}

impl Activity {
    fn for_each_number_mut(&mut self, change: &mut dyn FnMut(&mut Number)) {
        change(&mut self.host_demand);
        change(&mut self.host_demand_cvsq);
        change(&mut self.think_time);
        change(&mut self.max_service_time);
        self.calls.iter_mut().for_each(|call| change(&mut call.mean));
    }
}

impl Precedence {
    fn for_each_number_mut(&mut self, change: &mut dyn FnMut(&mut Number)) {
        if let Pre::And { quorum, .. } = &mut self.pre {
            change(quorum);
        }
        if let Some(Post::Or(weighted) | Post::Loop { bodies: weighted, .. }) = &mut self.post {
            weighted.iter_mut().for_each(|w| change(&mut w.value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    /// A model with a `$name` wherever a number may stand.
    const EVERYWHERE: &str = r#"{
        "name": "m", "solver_params": {"conv_val": "$a", "it_limit": "$b", "underrelax_coeff": "$c", "print_int": "$d"},
        "parameters": [{"name": "a", "value": 0.5}],
        "processors": [{"name": "P", "scheduling": "cfs", "multiplicity": "$e", "replication": "$f", "speed_factor": "$g",
                        "quantum": "$h", "groups": [{"name": "G", "share": "$i"}]}],
        "tasks": [{"name": "T", "processor": "P", "multiplicity": "$j", "replication": "$k", "priority": "$l", "think_time": "$m",
            "queue_length": "$n", "initial_tokens": "$o", "fan_out": [{"task": "T", "value": "$p"}],
            "fan_in": [{"task": "T", "value": "$q"}],
            "entries": [{"name": "E", "open_arrival_rate": "$r", "priority": "$s", "visit_probability": "$t",
                "forwarding": [{"dest": "E", "probability": "$u"}],
                "phases": [{"phase": 1, "name": "w", "host_demand": "$v", "host_demand_cvsq": "$w", "think_time": "$x",
                            "max_service_time": "$y", "calls": [{"kind": "sync", "dest": "E", "mean": "$z"}]}]}],
            "activities": [{"name": "A", "host_demand": "$aa"}],
            "precedences": [{"pre": {"and": {"activities": ["A"], "quorum": "$bb"}}, "post": {"or": [{"activity": "A", "value": "$cc"}]}},
                {"pre": {"single": "A"}, "post": {"loop": {"bodies": [{"activity": "A", "value": "$dd"}]}}}]}]
    }"#;

    #[test]
    fn every_name_gets_its_value() {
        let model = json::parse(EVERYWHERE).unwrap();
        let names = model.parameter_names();
        assert_eq!(names.len(), 30);
        let values: Bindings = names.iter().zip(1..).map(|(name, value)| (name.clone(), f64::from(value))).collect();
        let bound = model.bound_to(&values).unwrap();
        let mut found = Vec::new();
        bound.for_each_number(&mut |number| found.push(number.literal().unwrap()));
        let mut expected = Vec::new();
        model.for_each_number(&mut |number| expected.push(number.eval(&values).unwrap()));
        assert_eq!(found, expected);
        assert!(bound.parameters.is_empty());
        for name in names {
            let mut fewer = values.clone();
            fewer.0.shift_remove(&name);
            assert_eq!(model.bound_to(&fewer), Err(UnboundParameter { name }));
        }
    }
}
