//! Structure: from traces to models.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod arbitrary;
mod call_path;
mod demands;
mod execution_graph;
mod models;
mod observed;
mod profile;
mod road;
mod same;
mod scenarios;
mod spans;
mod tlc;
mod usage;

use layerfit::{
    model::{CallKind, Model},
    structure::{ExtractOptions, Extraction, SecondPhase, Timing, extract, interactions::InteractionKind},
    trace::{Format, Source},
};

/// Table 1 of the paper.
pub const TABLE_1: &str = include_str!("../../../examples/bookstore/browse-products.log");

/// The options of the paper: Part B by reception, no second phases.
pub fn literal() -> ExtractOptions {
    ExtractOptions { timing: Timing::Reception, second_phase: SecondPhase::Ignore, ..ExtractOptions::default() }
}

pub fn two_point() -> ExtractOptions {
    ExtractOptions { timing: Timing::TwoPoint, ..ExtractOptions::default() }
}

/// Extracts from one log.
pub fn extract_text(text: &str, options: &ExtractOptions) -> Extraction {
    extract(&[Source { name: "log.csv", bytes: text.as_bytes() }], Format::Same, options).unwrap()
}

/// Messages (sender, receiver, time of reception) as a log.
pub fn messages(rows: &[(&str, &str, i64)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(from, to, time)| format!("{from},{to},{time}\n")).collect();
    format!("sender,receiver,time\n{}", rows.concat())
}

/// Messages (sender, receiver, sent, received) as a log.
pub fn timed_messages(rows: &[(&str, &str, i64, i64)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(from, to, sent, received)| format!("{from},{to},{sent},{received}\n")).collect();
    format!("sender,receiver,sent,received\n{}", rows.concat())
}

/// Records in a short form, sorted: `sync A.1@10 B.1@100`, `async A.1 B.1 @10`, `forward A.1@1 B.1@5 E.1@6`; `/2` marks a second phase.
pub fn records(extraction: &Extraction) -> Vec<String> {
    let mut records: Vec<String> = extraction
        .records
        .iter()
        .map(|record| {
            let phase = if record.phase == 2 { "/2" } else { "" };
            let chain = [&record.from].into_iter().chain(&record.via).chain([&record.to]);
            match record.kind {
                InteractionKind::Async => format!("async{phase} {} {} @{}", record.from, record.to, record.times[0]),
                kind => {
                    let kind = if kind == InteractionKind::Sync { "sync" } else { "forward" };
                    assert_eq!(record.times.len(), record.via.len() + 2);
                    let steps: Vec<String> = chain.zip(&record.times).map(|(name, time)| format!("{name}@{time}")).collect();
                    format!("{kind}{phase} {}", steps.join(" "))
                }
            }
        })
        .collect();
    records.sort();
    records
}

/// Checks the records of messages, in any order.
pub fn check_records(log: &str, options: &ExtractOptions, expected: &[&str]) -> Extraction {
    let extraction = extract_text(log, options);
    let mut expected: Vec<String> = expected.iter().map(|record| (*record).to_owned()).collect();
    expected.sort();
    assert_eq!(records(&extraction), expected);
    extraction
}

/// Calls in a short form, sorted: `A.1 sync 2 B.1`, `B.1 forward 1 E.1`, `B.1 sync/2 1 C.1` of a second phase.
pub fn calls(model: &Model) -> Vec<String> {
    let mut calls = Vec::new();
    for entry in model.tasks.iter().flat_map(|task| &task.entries) {
        for phase in &entry.phases {
            let mark = if phase.phase == 2 { "/2" } else { "" };
            for call in &phase.activity.calls {
                let kind = if call.kind == CallKind::Sync { "sync" } else { "async" };
                calls.push(format!("{} {kind}{mark} {} {}", entry.name, call.mean, call.dest));
            }
        }
        let forwardings = entry.forwarding.iter().map(|f| format!("{} forward {} {}", entry.name, f.probability, f.dest));
        calls.extend(forwardings);
    }
    calls.sort();
    calls
}

/// Checks the calls of a model, in any order, and that it is valid.
pub fn check_calls(extraction: &Extraction, expected: &[&str]) {
    let mut expected: Vec<String> = expected.iter().map(|call| (*call).to_owned()).collect();
    expected.sort();
    assert_eq!(calls(&extraction.model), expected);
    models::check_valid(&extraction.model);
}

/// Names of the reference tasks.
pub fn reference_tasks(model: &Model) -> Vec<&str> {
    model.tasks.iter().filter(|task| task.scheduling.is_reference()).map(|task| task.name.as_str()).collect()
}

/// How often `code` was met.
pub fn count(extraction: &Extraction, code: &str) -> u64 {
    extraction.diagnostics.iter().find(|d| d.code == code).map_or(0, |d| d.count)
}
