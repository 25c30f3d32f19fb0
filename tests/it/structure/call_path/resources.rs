//! Resources that were measured: whose they are, what is a call to them, and their cores.

use std::fmt::Write as _;

use layerfit::{
    model::{CallOrder, Model, ProcessorScheduling, TaskScheduling},
    structure::{ExtractOptions, Extraction, extract, option_file::parse_options, resources::parse_resources},
    trace::{Format, Source},
};

use super::super::{count, models::check_valid};

/// Executions of `COMPONENT.METHOD` on servers, one after another, each 30 ms long and half a second after the one before.
fn log(executions: &[(&str, &str, &str)], rounds: usize) -> String {
    let mut log = "time,kind,component,method,context_id,server\n".to_owned();
    for (number, (component, method, server)) in executions.iter().cycle().take(rounds * executions.len()).enumerate() {
        let start_ms = 500 * number;
        for (time_ms, kind) in [(start_ms, "entry"), (start_ms + 30, "exit")] {
            writeln!(log, "{time_ms}000000,{kind},{component},{method},c{number},{server}").unwrap();
        }
    }
    log
}

fn with(options: ExtractOptions, log: &str) -> Extraction {
    let extraction = extract(&[Source { name: "l.csv", bytes: log.as_bytes() }], Format::CallPath, &options).unwrap();
    check_valid(&extraction.model);
    extraction
}

fn extracted(log: &str, resources: &[&str]) -> Extraction {
    let text: String = resources.iter().map(|resource| format!("[[call_path.resources]]\n{resource}\n")).collect();
    with(ExtractOptions::default().asking(parse_options("o.toml", &text).unwrap()), log)
}

fn demand(model: &Model, entry: &str) -> f64 {
    let mut entries = model.tasks.iter().flat_map(|task| &task.entries);
    let found = entries.find(|known| known.name == entry).unwrap_or_else(|| panic!("no {entry}"));
    found.phases[0].activity.host_demand.literal().unwrap()
}

fn check_demand(model: &Model, entry: &str, expected: f64) {
    let found = demand(model, entry);
    assert!((found - expected).abs() < 1e-9, "{entry}: {found} is not {expected}");
}

fn cores(model: &Model, processor: &str) -> Option<f64> {
    model.processor(processor)?.multiplicity.literal()
}

/// Two replicas take turns, one execution a second each; a CPU that is a fiftieth busy with its one takes 20 ms.
#[test]
fn a_resource_of_one_replica_tells_of_that_alone() {
    let log = log(&[("A", "x", "S0"), ("A", "x", "S1")], 500);
    let measured = "intervals = [{ utilization = 0.3, throughputs_per_s = { \"A.x\" = 15 } }]";
    for whose in ["server = \"S0\"", "components = [\"S0::A\"]"] {
        let found = extracted(&log, &[&format!("name = \"S0 cpu\"\ncores = 2\n{whose}\n{measured}")]);
        check_demand(&found.model, "S0::A.x", 0.04);
        check_demand(&found.model, "S1::A.x", 0.03);
        assert_eq!(found.findings.as_ref().unwrap()["demands"][0]["processes"], serde_json::json!(["S0::A"]));
        assert_eq!((cores(&found.model, "S0"), count(&found, "resource_of_replicas")), (Some(2.0), 0));
    }
    // Throughputs of the records: 1 a second there, 2 in all, but for the ends of the log.
    let of_records = |server: &str| {
        let found = extracted(&log, &[&format!("name = \"cpu\"\n{server}intervals = [{{ utilization = 0.2 }}]")]);
        (demand(&found.model, "S0::A.x"), cores(&found.model, "S0"), count(&found, "resource_of_replicas"))
    };
    let (one, of_one, not_said) = of_records("server = \"S0\"\n");
    let (all, of_all, said) = of_records("");
    assert!((one - 0.2).abs() < 0.001 && (all - 0.1).abs() < 0.001, "{one} {all}");
    assert_eq!((of_one, not_said, of_all, said), (Some(1.0), 0, Some(1.0), 1));
}

const CPU: &str = "name = \"cpu\"\nresponse_times_s = { \"A.a\" = 0.02, \"A.b\" = 0.02 }\n\
                   intervals = [{ utilization = 0.6, throughputs_per_s = { \"A.a\" = 20, \"A.b\" = 10 } }]";
const DB: &str = "name = \"db\"\ncores = 3\nresponse_times_s = { \"A.a\" = 0.01, \"A.b\" = 0.04 }\n\
                  intervals = [{ utilization = 0.3, throughputs_per_s = { \"A.a\" = 20, \"A.b\" = 10 } }]";

/// Shares of .6 by 20 · 20 and 10 · 20 ms, and of .9 by 20 · 10 and 10 · 40 ms.
#[test]
fn demands_at_other_resources_are_calls_to_these() {
    let log = log(&[("A", "a", "S"), ("A", "b", "S")], 50);
    let (first, second) = (extracted(&log, &[CPU, DB]), extracted(&log, &[DB, CPU]));
    assert_eq!((&first.model, &first.tasks), (&second.model, &second.tasks));
    let model = &first.model;
    for (entry, expected) in [("S::A.a", 0.02), ("S::A.b", 0.02), ("db.S::A.a", 0.015), ("db.S::A.b", 0.06)] {
        check_demand(model, entry, expected);
    }
    let task = model.tasks.iter().find(|task| task.name == "db").unwrap();
    assert_eq!((task.scheduling, task.processor.as_str()), (TaskScheduling::Inf, "db"));
    let processor = model.processor("db").unwrap();
    assert_eq!((processor.scheduling, cores(model, "db"), cores(model, "S")), (ProcessorScheduling::Fcfs, Some(3.0), Some(1.0)));
    let caller = &model.tasks.iter().find(|task| task.name == "S::A").unwrap().entries[0].phases[0].activity;
    assert_eq!((caller.call_order, caller.calls.len(), caller.calls[0].dest.as_str()), (CallOrder::Deterministic, 1, "db.S::A.a"));
    assert!(caller.calls[0].mean.is(1.0));
    let report = |name: &str| first.tasks.iter().find(|task| task.name == name).unwrap();
    assert!(report("db").is_infinite && report("db").entries.len() == 2);
    assert_eq!((report("S::A").entries[0].calls[0].to.as_str(), report("S::A").entries[0].calls[0].occurrences), ("db.S::A.a", 50));
    assert_eq!((count(&first, "resource_visited"), count(&first, "host_resource_assumed")), (2, 1));
}

/// Times of its own make a resource one that is visited; without, one that is said to be on the server is the host.
#[test]
fn the_host_is_the_resource_whose_times_are_self_times() {
    let log = log(&[("A", "a", "S"), ("A", "b", "S")], 50);
    let without_times = |name: &str, rest: &str| {
        let intervals = CPU.lines().last().unwrap();
        format!("name = \"{name}\"\n{rest}{intervals}")
    };
    let tasks = |found: &Extraction| found.model.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>();
    let by_times = extracted(&log, &[DB, &without_times("zcpu", "")]);
    assert_eq!((tasks(&by_times)[2].as_str(), count(&by_times, "host_resource_assumed")), ("db", 0));
    // 20 ms of A.a are left, and none of A.b: 30 less 40.
    check_demand(&by_times.model, "S::A.a", 0.03);
    check_demand(&by_times.model, "S::A.b", 0.0);
    let by_server = extracted(&log, &[&without_times("disk", ""), &without_times("zcpu", "server = \"S\"\n")]);
    assert_eq!((tasks(&by_server)[2].as_str(), count(&by_server, "host_resource_assumed")), ("disk", 0));
}

/// .6 of eight cores at 20, 10 and 5 a second: 40 ms each of response times that are alike make 4.8 / 35 s.
#[test]
fn a_processor_has_the_cores_of_its_resource() {
    let resource = |cores: &str| {
        format!(
            "name = \"my cpu\"\ncores = {cores}\nintervals = [{{ utilization = 0.6, throughputs_per_s = {{ \"A.a\" = 20, \"A.b\" = 15 }} }}]"
        )
    };
    for (server, processor) in [("S", "S"), ("", "my_cpu")] {
        let log = log(&[("A", "a", server), ("A", "b", server)], 20);
        let found = extracted(&log, &[&resource("8")]);
        let task = found.model.tasks.iter().find(|task| task.scheduling != TaskScheduling::Ref).unwrap();
        assert_eq!((task.processor.as_str(), cores(&found.model, processor)), (processor, Some(8.0)));
        check_demand(&found.model, &task.entries[0].name, 4.8 / 35.0);
        let broken = extracted(&log, &[&resource("2.5")]);
        assert_eq!((cores(&broken.model, processor), count(&broken, "cores_not_whole")), (Some(1.0), 1));
        // What a resource file says is said by whoever asks.
        let mut options = ExtractOptions::default();
        options = options.asking(parse_options("o.toml", &format!("[[call_path.resources]]\n{}\n", resource("8"))).unwrap());
        let name = if server.is_empty() { "my cpu" } else { server };
        options.resources = parse_resources("r.toml", &format!("[processor.\"{name}\"]\ncores = 4\n")).unwrap();
        assert_eq!(cores(&with(options, &log).model, processor), Some(4.0));
    }
}
