//! Requests from outside: as many customers as had one open at once.

use std::fmt::Write as _;

use layerfit::{
    model::{Model, TaskScheduling},
    structure::{ExtractOptions, Extraction, MergeKey, extract, resources::parse_resources},
    trace::{Format, Source},
};

use super::super::{count, models::check_valid};

const HEADER: &str = "time,kind,component,method,context_id,server\n";

fn extracted(files: &[(&str, &str)], options: &ExtractOptions) -> Extraction {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, bytes: text.as_bytes() }).collect();
    let extraction = extract(&sources, Format::CallPath, options).unwrap();
    check_valid(&extraction.model);
    extraction
}

fn customers(model: &Model) -> f64 {
    let task = model.tasks.iter().find(|task| task.scheduling == TaskScheduling::Ref).unwrap();
    assert!(task.think_time.is(0.0));
    task.multiplicity.literal().unwrap()
}

/// One request a millisecond, each `open` and a half of these long.
fn requests(n: usize, open: usize) -> Vec<(usize, String)> {
    let mut rows = Vec::new();
    for k in 0..n {
        rows.push((1_000_000 * k, format!("entry,A,x,c{k},s")));
        rows.push((1_000_000 * (k + open - 1) + 500_000, format!("exit,A,x,c{k},s")));
    }
    rows.sort();
    rows
}

fn csv<'r>(rows: impl IntoIterator<Item = &'r (usize, String)>) -> String {
    let mut text = HEADER.to_owned();
    rows.into_iter().for_each(|(time, row)| writeln!(text, "{time},{row}").unwrap());
    text
}

#[test]
fn there_are_as_many_customers_as_requests_were_open_at_once() {
    let options = ExtractOptions::default();
    let three = extracted(&[("l.csv", &csv(&requests(200, 3)))], &options);
    assert_eq!((customers(&three.model), count(&three, "closed_workload")), (3.0, 1));
    let outside = &three.findings.as_ref().unwrap()["outside"];
    assert_eq!((outside["requests"].as_u64(), outside["most_at_once"].as_u64()), (Some(200), Some(3)));
    assert!((outside["rate_per_s"].as_f64().unwrap() - 1000.0).abs() < 1e-6);
    // Three at once are served by more than one core: the times seen hold the waits.
    assert_eq!(count(&three, "cores_assumed"), 1);
    let one = extracted(&[("l.csv", &csv(&requests(200, 1)))], &options);
    assert_eq!((customers(&one.model), count(&one, "closed_workload")), (1.0, 0));
    assert_eq!(count(&one, "cores_assumed"), 0);
    let asked = ExtractOptions { customers: Some(7.0.into()), ..ExtractOptions::default() };
    let seven = extracted(&[("l.csv", &csv(&requests(200, 3)))], &asked);
    assert_eq!((customers(&seven.model), count(&seven, "closed_workload")), (7.0, 0));
}

/// Of a workload that is given nothing is concluded.
#[test]
fn given_workloads_are_not_told_as_seen() {
    let log = csv(&requests(200, 3));
    for given in ["customers = 5\nthink_time = 2", "rate = 2"] {
        let resources = parse_resources("r.toml", &format!("[task.Client]\n{given}\n")).unwrap();
        let options = ExtractOptions { resources, ..ExtractOptions::default() };
        let extraction = extract(&[Source { name: "l.csv", bytes: log.as_bytes() }], Format::CallPath, &options).unwrap();
        assert_eq!((count(&extraction, "closed_workload"), count(&extraction, "open_workload")), (0, 0), "{given}");
    }
}

/// Five customers that think for two seconds are far fewer requests than were seen: one core serves them.
#[test]
fn cores_are_assumed_for_the_customers_asked_for() {
    let asked = ExtractOptions { customers: Some(5.0.into()), think_time: 2.0.into(), ..ExtractOptions::default() };
    let few = extracted(&[("l.csv", &csv(&requests(200, 3)))], &asked);
    assert_eq!((count(&few, "cores_assumed"), count(&few, "closed_workload")), (0, 0));
    let asked = ExtractOptions { customers: Some(5_000.0.into()), think_time: 2.0.into(), ..ExtractOptions::default() };
    assert_eq!(count(&extracted(&[("l.csv", &csv(&requests(200, 3)))], &asked), "cores_assumed"), 1);
}

/// Sixty requests of one operation, each with another number of calls.
#[test]
fn entries_that_are_many_are_told() {
    let mut rows = Vec::new();
    for k in 0..60 {
        let at = 1_000_000 * k;
        rows.push((at, format!("entry,A,x,c{k},s")));
        for call in 0..k {
            rows.push((at + 10 * call + 1, format!("entry,B,y,c{k},s")));
            rows.push((at + 10 * call + 5, format!("exit,B,y,c{k},s")));
        }
        rows.push((at + 999_999, format!("exit,A,x,c{k},s")));
    }
    let log = csv(&rows);
    let merged = |merge| count(&extracted(&[("l.csv", &log)], &ExtractOptions { merge, ..ExtractOptions::default() }), "many_behaviours");
    assert_eq!((merged(MergeKey::Behaviour), merged(MergeKey::Operation)), (1, 0));
}

/// Messages from outside wait for nothing, and a request without an end was open for nobody knows how long.
#[test]
fn only_requests_with_an_end_count() {
    let open = format!("{HEADER}0,entry,A,x,c1,s\n10,entry,A,x,c2,s\n20,exit,A,x,c2,s\n30,entry,A,x,c3,s\n40,exit,A,x,c3,s\n");
    assert_eq!(customers(&extracted(&[("l.csv", &open)], &ExtractOptions::default()).model), 1.0);
}

/// A log in parts, by time and by request, on any number of threads.
#[test]
fn parts_of_a_log_tell_as_many_customers_as_all_of_it() {
    let rows = requests(5_000, 4);
    let whole = extracted(&[("l.csv", &csv(&rows))], &ExtractOptions::default());
    assert_eq!(customers(&whole.model), 4.0);
    let by_time = [csv(&rows[..3_333]), csv(&rows[3_333..])];
    let is_tenth = |row: &&(usize, String)| row.1.ends_with("1,s");
    let by_request = [csv(rows.iter().filter(is_tenth)), csv(rows.iter().filter(|row| !is_tenth(row)))];
    for [first, second] in [by_time, by_request] {
        for threads in [1, 2] {
            let options = ExtractOptions { threads, ..ExtractOptions::default() };
            let parts = extracted(&[("a.csv", &first), ("b.csv", &second)], &options);
            assert_eq!(customers(&parts.model), 4.0);
            assert_eq!(parts.findings.as_ref().unwrap()["outside"], whole.findings.as_ref().unwrap()["outside"]);
        }
    }
}
