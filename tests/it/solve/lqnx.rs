//! Solutions as LQNX: what the schema permits, the numbers, and that models come back.

use std::process::Command;

use layerfit::{
    model::{Bindings, Histogram, HistogramRequest, Model, Observed, Severity, json, lqnx as format},
    solve::{
        AskedTimes, SimulateOptions, Solution, SolveError, SolveOptions, Solver,
        lqnx::{LqnxOptions, write},
        simulate, solve,
    },
};
use quick_xml::{Reader, events::Event};

use super::features::{MODELS, read};

/// Attributes of every result (`ResultContentType` of the tools' `lqn-core.xsd`), and of read-write locks as the tools add.
const RESULTS: &[&str] = &[
    "open-wait-time",
    "loss-probability",
    "prob-exceed-max-service-time",
    "proc-utilization",
    "proc-waiting",
    "phase1-proc-waiting",
    "phase2-proc-waiting",
    "phase3-proc-waiting",
    "semaphore-waiting",
    "semaphore-waiting-variance",
    "semaphore-utilization",
    "rwlock-reader-holding",
    "rwlock-reader-holding-variance",
    "rwlock-reader-waiting",
    "rwlock-reader-waiting-variance",
    "rwlock-reader-utilization",
    "rwlock-writer-holding",
    "rwlock-writer-holding-variance",
    "rwlock-writer-waiting",
    "rwlock-writer-waiting-variance",
    "rwlock-writer-utilization",
    "service-time",
    "phase1-service-time",
    "phase2-service-time",
    "phase3-service-time",
    "service-time-variance",
    "phase1-service-time-variance",
    "phase2-service-time-variance",
    "phase3-service-time-variance",
    "squared-coeff-variation",
    "throughput",
    "throughput-bound",
    "utilization",
    "phase1-utilization",
    "phase2-utilization",
    "phase3-utilization",
    "waiting",
    "waiting-variance",
];

const GENERAL: &[&str] =
    &["conv-val", "valid", "iterations", "elapsed-time", "system-cpu-time", "user-cpu-time", "max-rss", "platform-info", "solver-info"];
const HISTOGRAM: &[&str] = &["min", "max", "number-bins", "phase"];

/// An element's attributes, and its children in the order of the schema.
fn schema(element: &str, parent: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match (element, parent) {
        ("lqn-model", _) => (&["name", "description", "xmlns:xsi", "xsi:noNamespaceSchemaLocation"], &["solver-params", "processor"]),
        ("solver-params", _) => (&["comment", "conv_val", "it_limit", "print_int", "underrelax_coeff"], &["result-general", "pragma"]),
        ("result-general", _) => (GENERAL, &[]),
        ("processor", _) => {
            (&["name", "multiplicity", "speed-factor", "scheduling", "replication", "quantum"], &["result-processor", "group", "task"])
        }
        ("group", _) => (&["name", "cap", "share"], &["result-group", "task"]),
        ("task", _) => (
            &["name", "multiplicity", "replication", "initially", "scheduling", "think-time", "priority", "queue-length"],
            &["result-task", "service-time-distribution", "fan-out", "fan-in", "entry", "task-activities"],
        ),
        ("entry", _) => (
            &["type", "name", "open-arrival-rate", "priority", "semaphore", "rwlock"],
            &["result-entry", "service-time-distribution", "forwarding", "entry-phase-activities"],
        ),
        ("entry-phase-activities", _) => (&[], &["activity"]),
        ("task-activities", _) => (&[], &["activity", "precedence", "reply-entry"]),
        ("activity", "entry-phase-activities" | "task-activities") => (
            &["name", "host-demand-mean", "host-demand-cvsq", "think-time", "max-service-time", "call-order", "phase", "bound-to-entry"],
            &["service-time-distribution", "result-activity", "synch-call|asynch-call"],
        ),
        ("activity", _) => (&["name", "count", "prob"], &[]),
        ("service-time-distribution", _) => (HISTOGRAM, &["underflow-bin", "histogram-bin", "overflow-bin"]),
        ("underflow-bin" | "histogram-bin" | "overflow-bin", _) => (&["begin", "end", "prob", "conf-95", "conf-99"], &[]),
        ("synch-call" | "asynch-call", _) => (&["dest", "calls-mean"], &["result-call"]),
        ("forwarding", _) => (&["dest", "prob"], &["result-call"]),
        ("precedence", _) => (&[], &["pre|pre-OR|pre-AND", "post|post-OR|post-AND|post-LOOP"]),
        ("pre-AND", _) => (&["quorum"], &["result-join-delay", "service-time-distribution", "activity"]),
        ("post-LOOP", _) => (&["end"], &["activity"]),
        ("pre" | "pre-OR" | "post" | "post-OR" | "post-AND", _) => (&[], &["activity"]),
        ("reply-entry", _) => (&["name"], &["reply-activity"]),
        ("pragma", _) => (&["param", "value"], &[]),
        ("reply-activity", _) => (&["name"], &[]),
        ("fan-in", _) => (&["source", "value"], &[]),
        ("fan-out", _) => (&["dest", "value"], &[]),
        ("result-join-delay", _) => (&["join-waiting", "join-variance"], &["result-conf-95", "result-conf-99"]),
        ("result-conf-95" | "result-conf-99", "result-join-delay") => (&["join-waiting", "join-variance"], &[]),
        ("result-conf-95" | "result-conf-99", _) => (RESULTS, &[]),
        (result, _) if result.starts_with("result-") => (RESULTS, &["result-conf-95", "result-conf-99"]),
        _ => panic!("<{element}> in <{parent}> is not in the schema"),
    }
}

/// An element with its attributes and children.
#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

impl Node {
    fn parse(text: &str) -> Self {
        let mut reader = Reader::from_str(text);
        let mut open = vec![Self::default()];
        let node = |tag: &quick_xml::events::BytesStart<'_>| Self {
            name: tag.name().into_inner().to_owned(),
            attributes: tag.attributes().map(|a| a.unwrap()).map(|a| (a.key.into_inner().to_owned(), a.value.to_string())).collect(),
            children: Vec::new(),
        };
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) => open.push(node(&tag)),
                Event::Empty(tag) => open.last_mut().unwrap().children.push(node(&tag)),
                Event::End(_) => {
                    let done = open.pop().unwrap();
                    open.last_mut().unwrap().children.push(done);
                }
                Event::Eof => return open.pop().unwrap().children.pop().unwrap(),
                _ => {}
            }
        }
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> f64 {
        let text = self.attribute(name).unwrap_or_else(|| panic!("<{}> has no {name}", self.name));
        text.parse().unwrap_or_else(|_| panic!("{name}=\"{text}\""))
    }

    /// The `result-*` element of the element `name` of this `kind`.
    fn result(&self, kind: &str, name: &str) -> &Self {
        let found = self.find(&|n| {
            n.name == kind && n.attribute(if kind.ends_with("call") || kind == "forwarding" { "dest" } else { "name" }) == Some(name)
        });
        let found = found.unwrap_or_else(|| panic!("no {kind} {name}"));
        found.children.iter().find(|c| c.name.starts_with("result-")).unwrap_or_else(|| panic!("{kind} {name} has no result"))
    }

    fn find(&self, is_it: &dyn Fn(&Self) -> bool) -> Option<&Self> {
        if is_it(self) { Some(self) } else { self.children.iter().find_map(|c| c.find(is_it)) }
    }

    /// Asserts that the schema permits the element and all in it.
    fn assert_permitted(&self, parent: &str) {
        let (attributes, order) = schema(&self.name, parent);
        for (name, value) in &self.attributes {
            assert!(attributes.contains(&name.as_str()), "{name} of <{}> in <{parent}>", self.name);
            let is_number = self.name.starts_with("result-") && !["valid", "solver-info", "elapsed-time"].contains(&name.as_str());
            assert!(!is_number || value.parse::<f64>().is_ok_and(f64::is_finite), "{name}=\"{value}\" of <{}>", self.name);
        }
        let rank = |child: &Self| {
            let found = order.iter().position(|names| names.split('|').any(|n| n == child.name));
            found.unwrap_or_else(|| panic!("<{}> in <{}>", child.name, self.name))
        };
        assert!(self.children.is_sorted_by_key(rank), "{}: {:?}", self.name, self.children.iter().map(|c| &c.name).collect::<Vec<_>>());
        let results = self.children.iter().filter(|c| c.name.starts_with("result-") && !c.name.starts_with("result-conf")).count();
        assert!(results <= 1, "<{}> has {results} results", self.name);
        self.children.iter().for_each(|c| c.assert_permitted(&self.name));
    }
}

/// Solves analytically where that is possible, else by a short simulation.
fn solve_quickly(model: &Model) -> Solution {
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    match solve(model, &Bindings::new(), &options) {
        Err(SolveError::Unsupported { .. }) => simulate_quickly(model),
        other => other.unwrap_or_else(|error| panic!("{}: {error}", model.name)),
    }
}

fn simulate_quickly(model: &Model) -> Solution {
    let options = SimulateOptions { run_time: Some(500.0), precision: None, replications: 2, ..SimulateOptions::default() };
    simulate(model, &Bindings::new(), &options).unwrap_or_else(|error| panic!("{}: {error}", model.name))
}

#[test]
fn every_feature_is_valid_and_solved_to_the_same_numbers_after_a_round_trip() {
    for (name, text) in MODELS {
        let model = read(name, text);
        let errors: Vec<_> = model.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
        assert_eq!(errors, [], "{name}");
        let solution = solve_quickly(&model);
        let from_xml = format::parse(&format::write(&model)).unwrap();
        assert_eq!(solve_quickly(&from_xml), Solution { model: from_xml.name.clone(), ..solution.clone() }, "{name}");
        let from_json = json::parse(&json::write(&model)).unwrap();
        assert_eq!((&from_json, solve_quickly(&from_json)), (&model, solution), "{name}");
    }
}

#[test]
fn results_are_what_the_schema_permits_and_the_model_comes_back() {
    for (name, text) in MODELS {
        let model = read(name, text);
        for solution in [solve_quickly(&model), simulate_quickly(&model)] {
            let document = write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap();
            let root = Node::parse(&document);
            root.assert_permitted("");
            let values = model.bindings(&Bindings::new()).unwrap();
            let back = format::parse(&document).unwrap_or_else(|error| panic!("{name}: {error}\n{document}"));
            assert_eq!(back, model.bound_to(&values).unwrap().in_file_order(), "{name}");
            for task in &model.tasks {
                assert_eq!(root.result("task", &task.name).number("throughput"), solution.tasks[&task.name].throughput, "{name}");
                for entry in &task.entries {
                    let result = root.result("entry", &entry.name);
                    assert_eq!(result.number("utilization"), solution.entries[&entry.name].utilization, "{name}");
                }
            }
        }
    }
}

/// Difference that rounding explains.
const ROUNDING: f64 = 1e-9;

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= ROUNDING * expected.abs().max(1.0), "{what}: {found}, expected {expected}");
}

#[test]
fn one_customer_waits_for_nobody() {
    let text = "P 0 p DD i p SS f R 2 p UU f -1 T 0 t cc r cc -1 DD z 2 t ss n ss vv -1 SS t uu n uu -1 UU -1
                E 0 s cc 0.1 -1 y cc ss 3 -1 y cc vv 1 -1 s ss 0.2 -1 y ss uu 0.5 -1 s vv 0.4 -1 F vv uu 0.25 -1 s uu 0.6 -1 -1";
    let model = read("one customer", text);
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let solution = solve(&model, &Bindings::new(), &options).unwrap();
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    // s: 0.2 at twice the speed and half a call of 0.6; v: 0.4 at twice the speed, then u for a quarter of the requests.
    let (s, v) = (0.1 + 0.5 * 0.6, 0.2);
    let cycle = 0.1 + 3.0 * s + v + 0.25 * 0.6;
    let rate = 1.0 / (2.0 + cycle);
    let task = root.result("task", "ss");
    assert_near(task.number("throughput"), 4.0 * rate, "throughput of s");
    assert_near(task.number("phase1-utilization"), rate * (3.0 * s + v), "phase1-utilization of s");
    assert_near(task.number("utilization"), rate * (3.0 * s + v), "utilization of s");
    assert_near(task.number("proc-utilization"), rate * (3.0 * 0.1 + 0.2), "proc-utilization of s");
    assert_near(root.result("processor", "SS").number("utilization"), rate * 0.5, "utilization of S");
    assert_near(root.result("entry", "ss").number("proc-utilization"), rate * 0.3, "proc-utilization of s");
    for (phase, time) in [("cc_ph1", cycle), ("ss_ph1", s), ("vv_ph1", v), ("uu_ph1", 0.6)] {
        let result = root.result("activity", phase);
        assert_near(result.number("service-time"), time, phase);
        assert_near(result.number("proc-waiting"), 0.0, phase);
    }
    assert_near(root.result("activity", "cc_ph1").number("utilization"), rate * cycle, "utilization of c");
    assert_near(root.result("forwarding", "uu").number("waiting"), 0.0, "forwarding");
    let general = root.find(&|n| n.name == "result-general").unwrap();
    assert_eq!((general.attribute("valid"), general.attribute("elapsed-time")), (Some("YES"), None));
}

#[test]
fn waits_at_a_processor_are_found_by_subtraction() {
    // A closed machine-repair model: the exact wait at the one processor of infinitely many threads.
    let text = "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 4 m 3 t ss i ss -1 SS -1 E 0 s cc 0 -1 y cc ss 1 -1 s ss 1 -1 -1";
    let model = read("machine repair", text);
    let solution = solve(&model, &Bindings::new(), &SolveOptions::default()).unwrap();
    assert_eq!(solution.solver, "exact");
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    // p0 = 1 / (1 + 3/4 + 6/16 + 6/64), X = 1 - p0, R = N / X - Z; of R, 1 is service.
    let rate = 1.0 - 1.0 / (1.0 + 0.75 + 0.375 + 0.093_75);
    let result = root.result("activity", "ss_ph1");
    assert_near(result.number("service-time"), 3.0 / rate - 4.0, "service time");
    assert_near(result.number("proc-waiting"), 3.0 / rate - 5.0, "proc-waiting");
}

#[test]
fn a_simulation_has_half_widths_at_both_levels() {
    let (name, text) = MODELS.iter().find(|(name, _)| *name == "a semaphore").unwrap();
    let model = read(name, text);
    let solution = simulate_quickly(&model);
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    let task = root.result("task", "ss");
    let level = |level: &str| task.children.iter().find(|c| c.name == level).unwrap();
    assert_eq!(level("result-conf-95").number("throughput"), solution.tasks["ss"].throughput_half_width.unwrap());
    let ratio = level("result-conf-99").number("throughput") / level("result-conf-95").number("throughput");
    assert!((1.29..1.45).contains(&ratio), "{ratio}");
    let holding = solution.entries["take"].holding_time.unwrap();
    assert_eq!(task.number("semaphore-waiting"), holding);
    assert_near(task.number("semaphore-utilization"), holding * solution.entries["take"].throughput, "semaphore-utilization");
}

/// A phase with a limit and two histograms, a second phase of a graph, an activity, a join and tokens with one each.
fn asking_model() -> Model {
    let text = "P 0 p DD i p SS i -1
        T 0 t cc r cc -1 DD z 1 m 2 t ss n ss -1 SS t gg n gg -1 SS t kk S take give -1 SS -1
        E 0 s cc 0 -1 f cc 1 -1 y cc ss 1 -1 y cc gg 1 -1 y cc take 1 -1 y cc give 1 -1 s ss 1 0.5 -1 M ss 2 -1 H ss 1 0:2 4 H ss 2 1:2 2
          A gg aa s take 0.1 -1 s give 0.1 -1 V take P give -1
        A gg s aa 0.1 H aa 0:1 2 M aa 0.1 s bb 0.2 s dd 0.3 s ee 0.1 : aa -> bb & dd; bb & dd -> ee; ee[gg] -1";
    let mut model = read("asking", text);
    let mut ask = |of, min, max, bins| model.histograms.push(Histogram { of, request: HistogramRequest { min, max, bins } });
    ask(Observed::Phase { entry: "ss".into(), phase: 1 }, 0.5, 2.0, 3);
    ask(Observed::Phase { entry: "gg".into(), phase: 1 }, 0.0, 1.0, 2);
    ask(Observed::Join { task: "gg".into(), activity: "bb".into() }, 0.25, 1.0, 3);
    ask(Observed::Task("kk".into()), 0.0, 2.0, 2);
    model
}

#[test]
fn limits_and_histograms_asked_for_are_answered_where_they_stand() {
    let model = asking_model();
    let solution = simulate_quickly(&model);
    let document = write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap();
    let root = Node::parse(&document);
    root.assert_permitted("");
    assert_eq!(format::parse(&document).unwrap(), model.clone().in_file_order(), "the document reads back");
    let exceeds = |name: &str, asked: &[AskedTimes]| {
        let expected = asked.iter().find_map(|a| a.exceeds).unwrap();
        let result = root.result("activity", name);
        assert_eq!(result.number("prob-exceed-max-service-time"), expected.probability, "{name}");
        let half_width = result.children.iter().find(|c| c.name == "result-conf-95").unwrap().number("prob-exceed-max-service-time");
        assert_eq!(half_width, expected.probability_half_width.unwrap(), "{name}");
    };
    exceeds("ss_ph1", &solution.entries["ss"].asked_times);
    exceeds("aa", &solution.activities["gg"]["aa"].asked_times);
    let histograms = |of: Option<&Node>| -> Vec<Node> {
        of.unwrap().children.iter().filter(|c| c.name == "service-time-distribution").cloned().collect()
    };
    let named = |kind: &str, name: &str| root.find(&|n| n.name == kind && n.attribute("name") == Some(name));
    let places = [
        (histograms(named("activity", "ss_ph1")), &solution.entries["ss"].asked_times[1..2]),
        (histograms(named("entry", "ss")), &solution.entries["ss"].asked_times[3..]),
        (histograms(named("activity", "ss_ph2")), &solution.entries["ss"].asked_times[2..3]),
        (histograms(named("entry", "gg")), &solution.entries["gg"].asked_times[..]),
        (histograms(named("activity", "aa")), &solution.activities["gg"]["aa"].asked_times[1..]),
        (histograms(root.find(&|n| n.name == "pre-AND")), &solution.joins[0].asked_times[..]),
        (histograms(named("task", "kk")), &solution.tasks["kk"].asked_times[..]),
    ];
    for (place, (found, expected)) in places.iter().enumerate() {
        assert_eq!((found.len(), expected.len()), (1, 1), "{place}");
        let bins: Vec<_> = expected[0].histogram.iter().filter(|b| b.end != Some(b.begin)).collect();
        assert_eq!(found[0].children.len(), bins.len(), "{place}");
        for (node, bin) in found[0].children.iter().zip(bins) {
            assert_eq!((node.number("begin"), node.number("end")), (bin.begin, bin.end.unwrap_or(f64::INFINITY)), "{place}");
            assert_eq!(node.number("prob"), bin.probability, "{place}");
            assert_eq!(node.attribute("conf-95").is_some(), bin.probability_half_width.is_some(), "{place}");
        }
        assert_near(found[0].children.iter().map(|bin| bin.number("prob")).sum(), 1.0, "all bins");
    }
}

#[test]
fn delays_of_joins_and_variances_of_waits_are_written() {
    let model = asking_model();
    let solution = simulate_quickly(&model);
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    let join = root.find(&|n| n.name == "result-join-delay").unwrap();
    let expected = &solution.joins[0];
    assert_eq!((expected.task.as_str(), expected.activities.as_slice()), ("gg", ["bb".to_owned(), "dd".to_owned()].as_slice()));
    assert_eq!((Some(join.number("join-waiting")), Some(join.number("join-variance"))), (expected.delay, expected.delay_variance));
    assert_eq!(join.children.iter().map(|c| c.number("join-waiting")).next(), expected.delay_half_width);
    let call = solution.calls.iter().find(|c| c.to == "ss").unwrap();
    assert_eq!(Some(root.result("synch-call", "ss").number("waiting-variance")), call.waiting_variance);
    assert_eq!(Some(root.result("task", "kk").number("semaphore-waiting-variance")), solution.entries["take"].holding_time_variance);
    let (name, text) = MODELS.iter().find(|(name, _)| *name == "a read-write lock").unwrap();
    let model = read(name, text);
    let solution = simulate_quickly(&model);
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    let lock = root.result("task", "ll");
    let [reads, writes] = ["rl", "wl"].map(|to| solution.calls.iter().find(|c| c.to == to).unwrap().waiting_variance.unwrap());
    assert_near(lock.number("rwlock-reader-waiting-variance"), reads, "readers wait");
    assert_near(lock.number("rwlock-writer-waiting-variance"), writes, "writers wait");
    assert_eq!(Some(lock.number("rwlock-writer-holding-variance")), solution.entries["wl"].holding_time_variance);
}

#[test]
fn layered_delays_of_joins_are_written() {
    let (name, text) = MODELS.iter().find(|(name, _)| *name == "a fork and a join").unwrap();
    let model = read(name, text);
    let solution = solve_quickly(&model);
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    let join = root.find(&|n| n.name == "result-join-delay").unwrap();
    assert_eq!(Some(join.number("join-waiting")), solution.joins[0].delay);
    assert_eq!(Some(join.number("join-variance")), solution.joins[0].delay_variance);
    assert!(join.children.is_empty(), "an approximation has no interval");
}

#[test]
fn asynchronous_waits_count_to_the_end_of_the_first_phase() {
    let (name, text) = MODELS.iter().find(|(name, _)| *name == "asynchronous calls").unwrap();
    let model = read(name, text);
    let solution = solve_quickly(&model);
    let root = Node::parse(&write(&model, &Bindings::new(), &solution, &LqnxOptions::default()).unwrap());
    let call = solution.calls.iter().find(|c| c.to == "uu").unwrap();
    let expected = call.waiting.unwrap() + solution.entries["uu"].service_times[0].unwrap();
    assert_near(root.result("asynch-call", "uu").number("waiting"), expected, "waiting");
}

#[test]
fn the_command_line_writes_results_under_the_values_set() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("model.lqn");
    let (_, text) = MODELS.iter().find(|(name, _)| *name == "parameters").unwrap();
    std::fs::write(&file, text).unwrap();
    let arguments = ["solve", file.to_str().unwrap(), "--solver", "layered", "--format", "lqnx", "--set", "users=6"];
    let output = Command::new(env!("CARGO_BIN_EXE_layerfit")).args(arguments).output().unwrap();
    let document = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let root = Node::parse(&document);
    root.assert_permitted("");
    assert!(root.find(&|n| n.attribute("elapsed-time").is_some()).is_some());
    let model = format::parse(&document).unwrap();
    assert_eq!((model.tasks[0].multiplicity.literal(), model.tasks[0].think_time.literal()), (Some(6.0), Some(3.0)));
    assert!(model.parameters.is_empty() && model.observations.is_empty());
}

/// Half-widths stand at 95 and 99 %, whatever the confidence asked for; files with results are called `.lqxo`.
#[test]
fn the_command_line_writes_what_it_reads() {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(of("model.lqn"), MODELS[0].1).unwrap();
    let solved = |arguments: &[&str]| {
        let simulated = ["--solver", "simulate", "--time", "200", "--format", "lqnx"];
        let output = Command::new(env!("CARGO_BIN_EXE_layerfit")).arg("solve").args(arguments).args(simulated).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let document = solved(&[&of("model.lqn")]);
    std::fs::write(of("results.lqxo"), &document).unwrap();
    let again = solved(&[&of("results.lqxo"), "--confidence", "0.8"]);
    let half_width = |text: &str| Node::parse(text).result("task", "ss").children[0].number("throughput");
    assert_near(half_width(&again) / half_width(&document), 1.0, "half-width at 95 %");
}
