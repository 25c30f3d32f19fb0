//! The models that extraction hands over are valid, whatever the trace.

use std::collections::{HashMap, HashSet};

use layerfit::{
    model::{Bindings, CallKind, Model, ProcessorScheduling},
    solve::{SolveOptions, solve},
    structure::{ExtractOptions, Extraction, MergeKey, SecondPhase, Timing, extract},
    trace::{Format, Source},
};
use proptest::prelude::*;

use super::{TABLE_1, calls, extract_text, literal, messages, reference_tasks};

/// Checks what a layered queueing network must be: names, destinations, kinds of acceptance, reference tasks, no circle of
/// blocking calls, every entry reachable.
pub fn check_valid(model: &Model) {
    let defects: Vec<String> = model.validate().iter().map(ToString::to_string).collect();
    assert!(defects.is_empty(), "{defects:?}");
    let task_of: HashMap<&str, &str> =
        model.tasks.iter().flat_map(|t| t.entries.iter().map(|e| (e.name.as_str(), t.name.as_str()))).collect();
    assert_eq!(task_of.len(), model.tasks.iter().map(|t| t.entries.len()).sum::<usize>(), "entry names are unique");
    let tasks: HashSet<&str> = model.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(tasks.len(), model.tasks.len(), "task names are unique");
    let references: HashSet<&str> = reference_tasks(model).into_iter().collect();
    assert!(!references.is_empty());
    for task in &model.tasks {
        let processor = model.processor(&task.processor).unwrap();
        assert_eq!(processor.scheduling == ProcessorScheduling::Inf, references.contains(task.name.as_str()));
        assert!(!task.entries.is_empty());
    }
    let mut blocking: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut kinds: HashMap<&str, HashSet<CallKind>> = HashMap::new();
    let mut sources: HashMap<&str, Vec<&str>> = HashMap::new();
    for entry in model.tasks.iter().flat_map(|t| &t.entries) {
        assert!(entry.forwarding.iter().map(|f| f.probability.literal().unwrap()).sum::<f64>() <= 1.0 + 1e-12);
        let called = entry.phases.iter().flat_map(|p| &p.activity.calls).map(|c| (c.kind, c.dest.as_str(), &c.mean));
        let forwarded = entry.forwarding.iter().map(|f| (CallKind::Sync, f.dest.as_str(), &f.probability));
        for (kind, dest, mean) in called.chain(forwarded) {
            assert!(mean.literal().is_some_and(|mean| mean > 0.0 && mean.is_finite()));
            assert!(!references.contains(task_of[dest]), "{dest} is of a reference task");
            kinds.entry(dest).or_default().insert(kind);
            sources.entry(dest).or_default().push(&entry.name);
            if kind == CallKind::Sync {
                blocking.entry(task_of[entry.name.as_str()]).or_default().insert(task_of[dest]);
            }
        }
    }
    assert!(kinds.values().all(|kinds| kinds.len() == 1), "an entry accepts one kind");
    assert!(task_of.iter().all(|(entry, task)| references.contains(task) || sources.contains_key(entry)), "every entry is called");
    assert!(!has_circle(&blocking), "{blocking:?}");
}

/// Takes away tasks that call none that is left; what cannot be taken away is in a circle or above one.
fn has_circle(blocking: &HashMap<&str, HashSet<&str>>) -> bool {
    let mut left: HashSet<&str> = blocking.keys().copied().collect();
    loop {
        let n = left.len();
        let still: HashSet<&str> = left.iter().copied().filter(|task| blocking[task].iter().any(|to| left.contains(to))).collect();
        left = still;
        if left.len() == n {
            return n > 0;
        }
    }
}

fn random_logs() -> impl Strategy<Value = String> {
    let row = (0..5_usize, 1..5_usize, 0..4_i64, 0..6_i64, 0..3_usize);
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        let tasks = ["A", "B", "C", "D", "E"];
        let mut time = 0;
        let rows = rows.into_iter().map(|(sender, offset, gap, latency, operation)| {
            time += gap;
            let receiver = tasks[(sender + offset) % 5];
            format!("{},{receiver},{},{time},{}\n", tasks[sender], time - latency, ["get", "put", ""][operation])
        });
        format!("sender,receiver,sent,received,operation\n{}", rows.collect::<String>())
    })
}

fn options() -> impl Strategy<Value = ExtractOptions> {
    let timing = prop_oneof![Just(Timing::Reception), Just(Timing::TwoPoint)];
    let second_phase = prop_oneof![Just(SecondPhase::Detect), Just(SecondPhase::Ignore)];
    let merge = prop_oneof![Just(MergeKey::Behaviour), Just(MergeKey::BehaviourOnly)];
    (timing, second_phase, merge).prop_map(|(timing, second_phase, merge)| ExtractOptions {
        timing,
        second_phase,
        merge,
        ..ExtractOptions::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Arbitrary messages make a valid model, and the report is read back as it was written.
    #[test]
    fn any_trace_makes_a_valid_model(log in random_logs(), options in options()) {
        let found = extract_text(&log, &options);
        check_valid(&found.model);
        let json = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(serde_json::from_str::<Extraction>(&json).unwrap(), found);
    }

    /// Two scenarios under one client make a valid model, too.
    #[test]
    fn any_two_traces_combine(first in random_logs(), second in random_logs(), weight in 0.01..100.0_f64, options in options()) {
        let sources = [Source { name: "first.csv", bytes: first.as_bytes() }, Source { name: "second.csv", bytes: second.as_bytes() }];
        let mut options = options;
        options.usage_profile.insert("first".into(), weight);
        options.usage_profile.insert("second".into(), 1.0);
        let found = extract(&sources, Format::Same, &options).unwrap();
        check_valid(&found.model);
        prop_assert_eq!(reference_tasks(&found.model), ["Client"]);
    }
}

/// Tasks that call one another through different operations are taken apart, on one processor.
#[test]
fn circles_of_blocking_calls_are_taken_apart() {
    let log =
        messages(&[("U", "A", 1), ("A", "B", 2), ("B", "A", 3), ("A", "U", 4), ("V", "B", 5), ("B", "A", 6), ("A", "B", 7), ("B", "V", 8)]);
    let found = extract_text(&log, &literal());
    check_valid(&found.model);
    assert_eq!(calls(&found.model), ["A.1 sync 1 B#2.1", "B.1 sync 1 A#2.1", "U.1 sync 1 A.1", "V.1 sync 1 B.1"]);
    assert_eq!(found.model.task("A#2").unwrap().processor, found.model.task("A").unwrap().processor);
    assert_eq!(found.model.processors.len(), 4);
    let cyclic = found.diagnostics.iter().find(|d| d.code == "cyclic_calls").unwrap();
    assert_eq!(cyclic.examples, ["B#2", "A#2"]);
}

#[test]
fn defaults_are_one_millisecond_one_customer_no_think_time() {
    let found = extract_text(TABLE_1, &ExtractOptions::default());
    for task in &found.model.tasks {
        assert!(task.multiplicity.is(1.0) && task.think_time.is(0.0));
        assert!(task.entries.iter().all(|e| e.phase(1).unwrap().host_demand.is(0.001) && e.phases.len() == 1));
    }
    assert_eq!(found.model.name, "log");
    assert_eq!(found.model.task("Server").unwrap().processor, "Server_cpu");
}

/// Extracted models are taken by the solver. One customer never queues, so that its cycle is the sum of the demands it visits.
pub fn check_cycle(model: &Model, customers: &str, cycle: f64) {
    let solution = solve(model, &Bindings::new(), &SolveOptions::default()).unwrap();
    assert!(solution.converged, "{:?}", solution.diagnostics);
    let throughput = solution.tasks[customers].throughput;
    assert!((throughput * cycle - 1.0).abs() < 1e-6, "{throughput}");
}

/// Five entries of 1 ms, each visited once.
#[test]
fn bookstore_solves_to_five_milliseconds() {
    check_cycle(&extract_text(TABLE_1, &ExtractOptions::default()).model, "Client", 0.005);
}

#[test]
fn customers_and_think_time_may_be_parameters() {
    let mut options = ExtractOptions { customers: Some("$users".parse_number()), ..ExtractOptions::default() };
    options.think_time = "$think".parse_number();
    options.default_demand = 0.5;
    let model = extract_text(TABLE_1, &options).model;
    let client = model.task("Client").unwrap();
    assert_eq!((client.multiplicity.parameter(), client.think_time.parameter()), (Some("users"), Some("think")));
    assert!(model.task("Book").unwrap().entries[0].phase(1).unwrap().host_demand.is(0.5));
}

trait ParseNumber {
    fn parse_number(&self) -> layerfit::model::Number;
}
impl ParseNumber for str {
    fn parse_number(&self) -> layerfit::model::Number {
        layerfit::model::Number::parse(self).unwrap()
    }
}

/// Names that measures and model files could not hold are changed, and stay unique.
#[test]
fn names_are_made_fit_for_measures() {
    let log = "sender,receiver,time,operation\nweb app,db,1,\"get(a, b)->c\"\ndb,web app,2,\nweb app,db,3,get(a__b)-_c\ndb,web app,4,\n";
    let model = extract_text(log, &ExtractOptions::default()).model;
    check_valid(&model);
    let names: Vec<&str> = model.tasks.iter().flat_map(|t| t.entries.iter().map(|e| e.name.as_str()).chain([t.name.as_str()])).collect();
    assert_eq!(names, ["web_app.1", "web_app", "db.get(a__b)-_c", "db.get(a__b)-_c#2", "db"]);
}
