//! Generated models: whatever is valid survives LQNX and JSON.

use layerfit::model::{
    Activity, Call, CallKind, CallOrder, Entry, Fan, Forwarding, Group, HalfWidth, Histogram, HistogramRequest, Model, Number, Observation,
    Observed, Opaque, Parameter, ParameterValue, Phase, Post, Pragma, Pre, Precedence, Processor, ProcessorScheduling, Reply, Severity,
    Task, TaskScheduling, Weighted,
};
use proptest::prelude::*;

use super::assert_survives;

/// A source of decisions; where it runs out, all are 0, the simplest.
struct Choices {
    values: Vec<u32>,
    at: usize,
}

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        let value = self.values.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        value as usize % n
    }

    fn yes(&mut self) -> bool {
        self.below(3) == 1
    }

    fn of<T: Clone>(&mut self, values: &[T]) -> T {
        let at = self.below(values.len());
        values[at].clone()
    }

    /// A number ≥ 0: a parameter, or a literal of any magnitude.
    fn number(&mut self) -> Number {
        match self.below(6) {
            0 => Number::Value(1.0),
            1 => Number::Value(self.below(1000) as f64),
            2 => Number::Value(self.below(1000) as f64 / 7.0),
            3 => Number::Value(f64::from_bits(0x3ff0_0000_0000_0000 | (self.below(1 << 30) as u64) << 17)),
            4 => Number::Value(self.of(&[0.0, 1e-300, 1e300, f64::MIN_POSITIVE, 0.1 + 0.2])),
            _ => self.parameter(),
        }
    }

    fn parameter(&mut self) -> Number {
        Number::Parameter(self.of(&["a", "users", "_x1", "0", "Name_2"]).to_owned())
    }

    /// A whole number ≥ 1, or a parameter.
    fn count(&mut self) -> Number {
        if self.yes() { self.parameter() } else { Number::Value((1 + self.below(40)) as f64) }
    }

    fn text(&mut self) -> String {
        self.of(&["", "plain", "a \"b\" 'c'", "<&>]]>", "ä€😀", " lead and trail ", "line\nbreak\ttab\rreturn", "--"]).to_owned()
    }

    fn name(&mut self, kind: &str, i: usize) -> String {
        format!("{kind}{i}{}", self.text())
    }

    fn histogram(&mut self) -> HistogramRequest {
        let min = self.below(9) as f64 / 4.0;
        HistogramRequest { min, max: min + 0.1 + self.below(9) as f64, bins: 1 + self.below(30) as u32 }
    }

    fn activity(&mut self, name: String, entries: &[String]) -> Activity {
        let is_deterministic = self.yes();
        let mut activity = Activity {
            host_demand_cvsq: self.number(),
            think_time: self.number(),
            max_service_time: Number::Value(self.below(5) as f64),
            call_order: if is_deterministic { CallOrder::Deterministic } else { CallOrder::Stochastic },
            ..Activity::new(name, self.number())
        };
        for entry in entries {
            if self.yes() {
                let mean = if is_deterministic { self.count() } else { self.number() };
                activity.calls.push(Call { kind: CallKind::Sync, dest: entry.clone(), mean });
            }
        }
        if self.yes() {
            activity.histogram = Some(self.histogram());
        }
        activity
    }

    fn parameter_value(&mut self) -> ParameterValue {
        let value = |c: &mut Self| c.below(2000) as f64 / 16.0 - 50.0;
        match self.below(7) {
            0 => ParameterValue::Number(value(self)),
            1 => ParameterValue::List((0..=self.below(4)).map(|_| value(self)).collect()),
            2 => ParameterValue::Expression(self.of(&["$a < 1 && $b > 2 ? 1 : 0", "max($a, 2) ** 3", "$v[1] % 2"]).to_owned()),
            3 => ParameterValue::Expressions(vec!["1".into(), "$a + 1".into()]),
            4 => ParameterValue::Range { from: value(self), to: 100.0, step: 0.5 },
            5 => ParameterValue::ForEach { over: "a".into(), expression: "$a * 2".into() },
            _ => ParameterValue::Text { text: self.of(&["", "a \"b\"", "<&>", "ä"]).to_owned() },
        }
    }

    /// Makes the graph of an entry: its activities come after those that are there.
    fn graph(&mut self, task: &mut Task, entry: usize, callable: &[String]) {
        let prefix = self.name("act", entry);
        let names: Vec<String> = (0..4).map(|i| format!("{prefix}{i}")).collect();
        let name = |i: usize| names[i].clone();
        for name in &names {
            let activity = self.activity(name.clone(), callable);
            task.activities.push(activity);
        }
        task.entries[entry].start_activity = Some(name(0));
        let single = |i: usize| Pre::Single(name(i));
        let and_join = |quorum: f64| Pre::And { activities: vec![name(1), name(2)], quorum: quorum.into() };
        let (fork, join) = match self.below(4) {
            0 => {
                let weights = [0.25, 0.75].map(Number::Value);
                let branches = [1, 2].into_iter().zip(weights).map(|(i, value)| Weighted { activity: name(i), value });
                (Post::Or(branches.collect()), Pre::Or(vec![name(1), name(2)]))
            }
            1 => (Post::And(vec![name(1), name(2)]), and_join(0.0)),
            2 => (Post::And(vec![name(1), name(2)]), and_join(self.below(3) as f64)),
            _ => {
                let value = self.number();
                (Post::Loop { bodies: vec![Weighted { activity: name(1), value }], end: Some(name(2)) }, single(2))
            }
        };
        task.precedences.push(Precedence { pre: single(0), post: Some(fork) });
        task.precedences.push(Precedence { pre: join, post: Some(Post::Single(name(3))) });
        if self.yes() {
            task.precedences.push(Precedence { pre: single(3), post: None });
        }
        task.replies.push(Reply { entry: task.entries[entry].name.clone(), activity: name(3) });
    }

    fn server(&mut self, i: usize, processor: String, below: &[String], is_called: bool) -> Task {
        let scheduling =
            self.of(&[TaskScheduling::Fcfs, TaskScheduling::Inf, TaskScheduling::Hol, TaskScheduling::Poll, TaskScheduling::Rand]);
        let mut task = Task {
            scheduling,
            multiplicity: if self.yes() { f64::INFINITY.into() } else { self.count() },
            priority: Number::Value(self.below(3) as f64),
            queue_length: Number::Value(self.below(3) as f64),
            ..Task::new(self.name("task", i), processor)
        };
        for j in 0..=self.below(2) {
            let mut entry = Entry { priority: self.yes().then(|| self.count()), ..Entry::new(self.name("entry", i * 10 + j)) };
            if let Some(dest) = below.first().filter(|_| self.yes()) {
                let probability = Number::Value(self.below(5) as f64 / 4.0);
                entry.forwarding.push(Forwarding { dest: dest.clone(), probability });
            }
            task.entries.push(entry);
            if is_called && self.yes() {
                self.graph(&mut task, j, below);
                continue;
            }
            for phase in 1..=(1 + self.below(3) as u8) {
                let name = self.name("phase", j);
                let activity = self.activity(name, below);
                task.entries[j].phases.push(Phase { phase, activity });
            }
        }
        task
    }

    fn customer(&mut self, i: usize, processor: String, servers: &[String], all_called: bool) -> Task {
        let mut task = Task {
            scheduling: self.of(&[TaskScheduling::Ref, TaskScheduling::Burst, TaskScheduling::Uniform]),
            multiplicity: self.count(),
            think_time: self.number(),
            ..Task::new(self.name("client", i), processor)
        };
        let name = self.text();
        let mut work = self.activity(name, &[]);
        if all_called {
            let call = |dest: &String| Call { kind: CallKind::Sync, dest: dest.clone(), mean: 1.0.into() };
            work.calls.extend(servers.iter().map(call));
        }
        task.entries.push(Entry {
            visit_probability: self.yes().then_some(Number::Value(0.5)),
            phases: vec![Phase { phase: 1, activity: work }],
            ..Entry::new(self.name("cycle", i))
        });
        task
    }

    fn processor(&mut self, i: usize) -> Processor {
        use ProcessorScheduling::{Cfs, Fcfs, Hol, Inf, Lcfs, Pri, Ps, Rand, Rr};
        let mut processor = Processor {
            scheduling: self.of(&[Fcfs, Inf, Hol, Pri, Ps, Cfs, Rand, Lcfs, Rr]),
            multiplicity: if self.yes() { f64::INFINITY.into() } else { self.count() },
            speed_factor: self.of(&[Number::Value(1.0), Number::Value(2.5), Number::Parameter("f".into())]),
            quantum: self.number(),
            ..Processor::new(self.name("proc", i))
        };
        if processor.scheduling == Cfs {
            for j in 0..=self.below(2) {
                let share = self.of(&[Number::Value(0.5), Number::Value(1.0), Number::Parameter("s".into())]);
                let name = self.name("group", i * 10 + j);
                processor.groups.push(Group { name, share, cap: self.yes() });
            }
        }
        processor
    }

    fn observe(&mut self, model: &mut Model) {
        let mut elements = vec![Observed::Solution];
        elements.extend(model.processors.iter().map(|p| Observed::Processor(p.name.clone())));
        elements.extend(model.processors.iter().flat_map(|p| &p.groups).map(|g| Observed::Group(g.name.clone())));
        for task in &model.tasks {
            let name = || task.name.clone();
            elements.push(Observed::Task(name()));
            for entry in &task.entries {
                elements.push(Observed::Entry(entry.name.clone()));
                let forwarding = |f: &Forwarding| Observed::Forwarding { entry: entry.name.clone(), dest: f.dest.clone() };
                elements.extend(entry.forwarding.iter().map(forwarding));
                for phase in &entry.phases {
                    elements.push(Observed::Phase { entry: entry.name.clone(), phase: phase.phase });
                    let call = |c: &Call| Observed::PhaseCall { entry: entry.name.clone(), phase: phase.phase, dest: c.dest.clone() };
                    elements.extend(phase.activity.calls.iter().map(call));
                }
            }
            for activity in &task.activities {
                elements.push(Observed::Activity { task: name(), activity: activity.name.clone() });
                let call = |c: &Call| Observed::ActivityCall { task: name(), activity: activity.name.clone(), dest: c.dest.clone() };
                elements.extend(activity.calls.iter().map(call));
            }
            let joins = task.precedences.iter().filter(|p| matches!(p.pre, Pre::And { .. }));
            elements.extend(joins.map(|p| Observed::Join { task: name(), activity: p.pre.activities()[0].clone() }));
        }
        for _ in 0..self.below(8) {
            let of = self.of(&elements);
            let half_width = self.yes().then(|| HalfWidth { level: self.of(&[95, 99]), variable: "w".into() });
            let measure = self.of(&["throughput", "utilization", "phase1-service-time", "waiting"]).to_owned();
            model.observations.push(Observation { of, measure, variable: self.of(&["v", "x2"]).to_owned(), half_width });
        }
        let with_histogram = |of: &&Observed| matches!(of, Observed::Task(_) | Observed::Phase { .. } | Observed::Join { .. });
        let with_histogram: Vec<Observed> = elements.iter().filter(with_histogram).cloned().collect();
        for _ in 0..self.below(4).min(with_histogram.len()) {
            let of = self.of(&with_histogram);
            let request = self.histogram();
            // The first histogram of a phase stands on the phase.
            model.histograms.push(Histogram { of, request });
        }
    }

    fn model(&mut self) -> Model {
        let mut model = Model { name: self.text(), description: self.text(), ..Model::default() };
        model.solver_params.comment = self.text();
        model.solver_params.conv_val = self.yes().then(|| self.number());
        model.solver_params.it_limit = self.yes().then(|| self.count());
        for _ in 0..self.below(3) {
            model.solver_params.pragmas.push(Pragma { param: self.text(), value: self.text() });
        }
        for i in 0..self.below(4) {
            model.parameters.push(Parameter { name: format!("p{i}"), value: self.parameter_value() });
        }
        for i in 0..=self.below(3) {
            let processor = self.processor(i);
            model.processors.push(processor);
        }
        let all_called = !self.yes();
        let mut below: Vec<String> = Vec::new();
        for i in 0..self.below(4) {
            let on = self.of(&model.processors);
            let mut task = self.server(i, on.name.clone(), &below, all_called);
            task.group = on.groups.first().map(|g| g.name.clone());
            below = task.entries.iter().map(|e| e.name.clone()).chain(below).collect();
            model.tasks.push(task);
        }
        for i in 0..=self.below(2) {
            let on = self.of(&model.processors);
            let mut task = self.customer(i, on.name.clone(), &below, all_called);
            task.group = on.groups.last().map(|g| g.name.clone());
            model.tasks.push(task);
        }
        if let [.., server, customer] = model.tasks.as_mut_slice()
            && self.yes()
        {
            customer.fan_out.push(Fan { task: server.name.clone(), value: 1.0.into() });
            server.fan_in.push(Fan { task: customer.name.clone(), value: Number::Parameter("i".into()) });
        }
        self.observe(&mut model);
        if model.parameters.is_empty() && self.yes() {
            model.opaque.push(Opaque { element: "lqx".into(), text: self.text() });
        }
        if self.yes() {
            model.opaque.push(Opaque { element: "results-collection".into(), text: "$0\n$x = $y < 2 && 1".into() });
        }
        if self.yes() {
            model.opaque.push(Opaque { element: "convergence-collection".into(), text: "$a = $b + 1".into() });
        }
        model.in_file_order()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn valid_models_survive(values in prop::collection::vec(any::<u32>(), 0..400)) {
        let model = Choices { values, at: 0 }.model();
        let errors: Vec<String> =
            model.validate().iter().filter(|d| d.kind.severity() == Severity::Error).map(ToString::to_string).collect();
        prop_assert_eq!(errors, Vec::<String>::new());
        assert_survives(&model);
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in "[-<>/=\"$a-z0-9 \\[\\]{}():;,&+*%#.!?|\n]{0,120}") {
        for format in [layerfit::model::format::Format::Lqnx, layerfit::model::format::Format::LqnText, layerfit::model::format::Format::Json] {
            let _ = layerfit::model::format::parse(&text, format);
        }
        let _ = layerfit::model::Expression::parse(&text);
        let _ = layerfit::model::ParameterValue::parse(&text);
    }
}
