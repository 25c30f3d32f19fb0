//! Resources that were measured: whose they are.

use std::fmt::Write as _;

use layerfit::{
    model::Model,
    structure::{ExtractOptions, Extraction, extract, option_file::parse_options},
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
        assert_eq!(count(&found, "resource_of_replicas"), 0);
    }
    // Throughputs of the records: 1 a second there, 2 in all, but for the ends of the log.
    let of_records = |server: &str| {
        let found = extracted(&log, &[&format!("name = \"cpu\"\n{server}intervals = [{{ utilization = 0.2 }}]")]);
        (demand(&found.model, "S0::A.x"), count(&found, "resource_of_replicas"))
    };
    let (one, not_said) = of_records("server = \"S0\"\n");
    let (all, said) = of_records("");
    assert!((one - 0.2).abs() < 0.001 && (all - 0.1).abs() < 0.001, "{one} {all}");
    assert_eq!((not_said, said), (0, 1));
}
