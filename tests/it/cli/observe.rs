//! `layerfit profile` and `layerfit usage`.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fmt::Write as _, fs, path::Path};

use layerfit::structure::usage::UsageModel;
use serde_json::Value;

use super::layerfit;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bookstore/browse-products.log");

fn printed(arguments: &[&str]) -> String {
    let (code, output, errors) = layerfit(arguments);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{arguments:?}");
    output
}

/// A Kieker log of 40 users, each of whom searches twice and then buys, with pauses of 5 s.
fn shop(folder: &Path) -> String {
    let second = 1_000_000_000_u64;
    let mut log = String::new();
    for user in 0..40_u64 {
        for (step, service) in ["search", "search", "buy"].into_iter().enumerate() {
            let start = (user * 4 + step as u64 * 6) * second;
            let (end, trace) = (start + second, user * 3 + step as u64);
            let (from, to) = (start + second / 4, end - second / 4);
            let _ = writeln!(log, "$1;{to};public void shop.Db.query();S{user};{trace};{from};{to};db;1;1");
            let _ = writeln!(log, "$1;{end};public void shop.Front.{service}();S{user};{trace};{start};{end};web;0;0");
        }
    }
    fs::write(folder.join("kieker.map"), "$1=kieker.common.record.controlflow.OperationExecutionRecord\n").unwrap();
    fs::write(folder.join("kieker-1.dat"), log).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Table 1 of SAME's paper, of which the replies tell the times.
#[test]
fn a_profile_is_printed_as_a_tree() {
    let report = printed(&["profile", TRACE, "--from", "same"]);
    for line in [
        "response times of 4 executions in 1 traces of 1 kinds",
        "calls, by their part of all time",
        "└ Inventory.display_START ██████████████▍       71.59 %  n = 1  mean 2.52 ms  sd 0.00 s  median 2.52 ms  95 % 2.52 ms",
        "  ├ Book.getName_START    ██▊                   13.92 %  n = 1  mean 490 µs  sd 0.00 s  median 490 µs  95 % 490 µs",
        "  no_msg_id_fifo_assumed (8 times): without message ids, messages were paired first in, first out",
    ] {
        assert!(report.lines().any(|l| l == line), "{line}\n{report}");
    }
    let shallow = printed(&["profile", TRACE, "--from", "same", "--depth", "2", "--by", "caller"]);
    assert!(shallow.contains("  └ … and 2 smaller or deeper\n") && !shallow.contains("├ Book.getName_START    ██▊"), "{shallow}");
}

#[test]
fn a_profile_is_printed_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let log = shop(folder.path());
    let json: Value = serde_json::from_str(&printed(&["profile", &log, "--from", "kieker", "--format", "json", "--by", "caller"])).unwrap();
    assert_eq!((&json["metric"], &json["n_executions"], &json["n_traces"]), (&"response".into(), &240.into(), &120.into()));
    let levels: Vec<(&str, u64)> = json["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| (level["level"].as_str().unwrap(), level["n_contexts"].as_u64().unwrap()))
        .collect();
    assert_eq!(levels, [("operation", 3), ("caller", 4), ("stack", 4), ("trace", 4)]);
    let calls: Vec<(&str, u64, u64, f64)> = json["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let times = &call["times"];
            let (n, mean) = (times["n"].as_u64().unwrap(), times["mean_s"].as_f64().unwrap());
            (call["operation"].as_str().unwrap(), call["depth"].as_u64().unwrap(), n, mean)
        })
        .collect();
    let expected = [
        ("shop.Front.search()", 0, 80, 1.0),
        ("shop.Db.query()", 1, 80, 0.5),
        ("shop.Front.buy()", 0, 40, 1.0),
        ("shop.Db.query()", 1, 40, 0.5),
    ];
    assert_eq!(calls, expected);
    // All, three operations, four callers.
    assert_eq!(json["contexts"].as_array().unwrap().len(), 8);
    let own: Value =
        serde_json::from_str(&printed(&["profile", &log, "--from", "kieker", "--format", "json", "--metric", "self-time"])).unwrap();
    assert_eq!(own["operations"][1]["times"]["mean_s"], 0.5);
}

#[test]
fn a_usage_model_is_printed_and_planned() {
    let folder = tempfile::tempdir().unwrap();
    let log = shop(folder.path());
    let report = printed(&["usage", &log, "--from", "kieker"]);
    for line in [
        "40 sessions with 120 requests in 169.0 s: 0.2367 sessions/s",
        "requests a session: mean 3.000, sd 0.000, at most 3",
        "class all: 100.00 % of sessions (40.0), 3.000 requests in 13.00 s",
        "  think time constant 5.0000 s (distance 0.000)",
        "  web::shop.Front.search()  66.67 %     2.0000   1.0000   0.0000",
        "  web::shop.Front.search() → web::shop.Front.buy(): 0.5000 (40 times)",
        "  web::shop.Front.buy() → (exit): 1.0000 (40 times)",
    ] {
        assert!(report.lines().any(|l| l == line), "{line}\n{report}");
    }
    let plan = folder.path().join("plan.jmx");
    let usage: UsageModel =
        serde_json::from_str(&printed(&["usage", &log, "--from", "kieker", "--format", "json", "--plan", plan.to_str().unwrap()])).unwrap();
    assert_eq!((usage.n_sessions, usage.classes.len(), usage.think.unwrap().mean_s), (40, 1, 5.0));
    assert!(fs::read_to_string(plan).unwrap().contains("jmeterTestPlan"));
}

#[test]
fn reference_tasks_are_of_sessions_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let log = shop(folder.path());
    let report = printed(&["extract", &log, "--from", "kieker", "--usage", "sessions"]);
    for part in ["usage: reference tasks are of the sessions seen\n40 sessions with 120 requests", "class all: 100.00 % of sessions"] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    let json: Value =
        serde_json::from_str(&printed(&["extract", &log, "--from", "kieker", "--usage", "sessions", "--format", "json"])).unwrap();
    let task = json["model"]["tasks"].as_array().unwrap().iter().find(|task| task["scheduling"] == "ref").unwrap();
    // 40 sessions of 13 s in 169 s; three customers make their 120 requests of 1 s.
    assert_eq!(task["multiplicity"].as_f64(), Some(3.0));
    assert!((task["think_time"].as_f64().unwrap() - (3.0 * 169.0 / 120.0 - 1.0)).abs() < 1e-9, "{task}");
    assert_eq!(json["usage"]["n_sessions"], 40);
    // Customers by how many requests were open at once are those of recordings only.
    let is_closed = |json: &Value| json["diagnostics"].as_array().unwrap().iter().any(|d| d["code"] == "closed_workload");
    let recordings: Value = serde_json::from_str(&printed(&["extract", &log, "--from", "kieker", "--format", "json"])).unwrap();
    assert_eq!((is_closed(&json), is_closed(&recordings)), (false, true));
}

#[test]
fn faults_of_the_input_end_with_status_1_and_say_why() {
    let check = |arguments: &[&str], expected: &str| {
        let (code, output, errors) = layerfit(arguments);
        assert_eq!((code, output.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(errors.contains(expected), "{errors}");
    };
    check(&["usage", TRACE, "--from", "same"], "traces of the format same do not say whose session a request is of");
    check(&["profile", TRACE, "--from", "angio"], "traces of the format angio do not say how long executions take by one clock");
    check(&["profile", TRACE, "--from", "same", "--by", "nobody"], "expected one of `all`, `operation`, `caller`, `stack`, `trace`");
    check(&["profile", TRACE, "--from", "same", "--min-share", "2"], "expected a number from 0 to 1");
    check(&["extract", TRACE, "--from", "same", "--usage", "sessions"], "do not say whose session a request is of");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.json");
    let span = r#"[{"traceId":"1","id":"1","name":"get","kind":"SERVER","timestamp":1,"duration":9,"localEndpoint":{"serviceName":"web"},"tags":{"client.address":"10.0.0.1"}}]"#;
    fs::write(&path, span).unwrap();
    let spans = path.to_str().unwrap();
    check(&["usage", spans], "hint: --users address takes the requests from one address for those of one user");
    assert!(printed(&["usage", spans, "--users", "address"]).contains("1 sessions with 1 requests"));
}
