//! Where a model uses its `$parameters`, and what that says about their range.

use indexmap::IndexMap;

use crate::model::{Activity, Model, Number, Post, Pre};

/// The part that a parameter plays in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A demand, think time or quantum: ≥ 0.
    Time,
    /// A mean number of calls or iterations, a priority, a coefficient of variation: ≥ 0.
    Amount,
    /// A rate of arrivals: ≥ 0.
    Rate,
    /// Servers, threads, customers or copies: ≥ 1.
    Count,
    /// A probability or share: 0 to 1.
    Probability,
    /// A speed factor: > 0 (the bound itself has no solution).
    Speed,
    /// Inside an expression that defines another parameter: any value.
    Expression,
}

impl Role {
    /// The range that the part allows.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::Time | Self::Amount | Self::Rate | Self::Speed => (0.0, f64::INFINITY),
            Self::Count => (1.0, f64::INFINITY),
            Self::Probability => (0.0, 1.0),
            Self::Expression => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

/// Every `$parameter` that `model` uses, with its parts, in order of first use.
///
/// A parameter that the model defines by an expression lends its parts to nothing: what the expression uses has the
/// part [`Role::Expression`].
pub fn parameter_uses(model: &Model) -> IndexMap<String, Vec<Role>> {
    let mut uses = Uses::default();
    uses.structure(model);
    for parameter in &model.parameters {
        // Every form of definition keeps its expressions as text.
        let text = serde_json::to_string(&parameter.value).unwrap_or_default();
        names_in(&text).for_each(|name| uses.note(name, Role::Expression));
    }
    uses.0
}

#[derive(Default)]
struct Uses(IndexMap<String, Vec<Role>>);

impl Uses {
    fn note(&mut self, name: &str, role: Role) {
        let roles = self.0.entry(name.to_owned()).or_default();
        if !roles.contains(&role) {
            roles.push(role);
        }
    }

    fn number(&mut self, number: &Number, role: Role) {
        if let Some(name) = number.parameter() {
            self.note(name, role);
        }
    }

    fn numbers<'a>(&mut self, numbers: impl IntoIterator<Item = (&'a Number, Role)>) {
        numbers.into_iter().for_each(|(number, role)| self.number(number, role));
    }

    fn structure(&mut self, model: &Model) {
        for p in &model.processors {
            self.numbers([
                (&p.multiplicity, Role::Count),
                (&p.replication, Role::Count),
                (&p.speed_factor, Role::Speed),
                (&p.quantum, Role::Time),
            ]);
            self.numbers(p.groups.iter().map(|g| (&g.share, Role::Probability)));
        }
        for t in &model.tasks {
            self.numbers([
                (&t.multiplicity, Role::Count),
                (&t.replication, Role::Count),
                (&t.priority, Role::Amount),
                (&t.think_time, Role::Time),
                (&t.queue_length, Role::Amount),
            ]);
            self.numbers(t.initial_tokens.iter().map(|n| (n, Role::Amount)));
            self.numbers(t.fan_out.iter().chain(&t.fan_in).map(|f| (&f.value, Role::Count)));
            for e in &t.entries {
                self.numbers(e.open_arrival_rate.iter().map(|n| (n, Role::Rate)));
                self.numbers(e.priority.iter().map(|n| (n, Role::Amount)));
                self.numbers(e.visit_probability.iter().map(|n| (n, Role::Probability)));
                self.numbers(e.forwarding.iter().map(|f| (&f.probability, Role::Probability)));
                e.phases.iter().for_each(|p| self.activity(&p.activity));
            }
            t.activities.iter().for_each(|a| self.activity(a));
            for precedence in &t.precedences {
                if let Pre::And { quorum, .. } = &precedence.pre {
                    self.number(quorum, Role::Amount);
                }
                match &precedence.post {
                    Some(Post::Or(branches)) => self.numbers(branches.iter().map(|b| (&b.value, Role::Probability))),
                    Some(Post::Loop { bodies, .. }) => self.numbers(bodies.iter().map(|b| (&b.value, Role::Amount))),
                    _ => {}
                }
            }
        }
    }

    fn activity(&mut self, a: &Activity) {
        self.numbers([
            (&a.host_demand, Role::Time),
            (&a.host_demand_cvsq, Role::Amount),
            (&a.think_time, Role::Time),
            (&a.max_service_time, Role::Time),
        ]);
        self.numbers(a.calls.iter().map(|c| (&c.mean, Role::Amount)));
    }
}

/// The `$names` in the text of an expression, without the `$`.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Entry, Parameter, ParameterValue, Phase, Task};

    #[test]
    fn parts_are_found_wherever_a_number_stands() {
        let mut task = Task::new("t", "p");
        task.multiplicity = Number::Parameter("threads".into());
        let mut entry = Entry::new("e");
        entry.phases.push(Phase { phase: 1, activity: Activity::new("e_ph1", Number::Parameter("d".into())) });
        entry.visit_probability = Some(Number::Parameter("d".into()));
        task.entries.push(entry);
        let value = ParameterValue::Expression("2 * $a+$b_1/($a)".into());
        let model = Model { tasks: vec![task], parameters: vec![Parameter { name: "d".into(), value }], ..Model::default() };
        let uses = parameter_uses(&model);
        assert_eq!(uses["threads"], [Role::Count]);
        assert_eq!(uses["d"], [Role::Probability, Role::Time]);
        assert_eq!((&uses["a"], &uses["b_1"]), (&vec![Role::Expression], &vec![Role::Expression]));
        assert_eq!(uses.len(), 4);
    }
}
