//! The vectors of the specifications' mappings of spans (section 6 of SAME, TLC, Mizan–Franks and call paths).

use super::*;

/// api SERVER 0–100, CLIENT 10–60, db SERVER 20–50.
fn api_and_db(db_end: f64) -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    b.client((2, 1), "api", "read", (10.0, 60.0));
    b.server((3, 2), "db", "read", (20.0, db_end));
    b
}

#[test]
fn api_calls_db() {
    let run = api_and_db(50.0).run();
    run.check(&["Client sync api.get", "api.get sync db.read"]);
    assert_eq!(run.self_ms("api.get"), [Some(50.0), None]);
    assert_eq!(run.self_ms("db.read"), [Some(30.0), None]);
    let sync: Vec<Vec<String>> =
        run.interactions.interactions.iter().map(|i| i.times.iter().map(|t| (t.as_f64() / 1e6).round().to_string()).collect()).collect();
    assert_eq!(sync, [["0", "100"], ["20", "60"]], "reception by the server, and of the reply by the client");
    let e = run.quality.explained;
    assert_eq!((e.roots, (e.root_s * 1e3).round(), (e.self_s * 1e3).round(), (e.gap_s * 1e3).round()), (1, 100.0, 80.0, 20.0));
    assert!(e.parallel_s.abs() < 1e-9 && e.unknown_s == 0.0);
}

/// db goes on to 90 with a call of the cache after its reply at 60.
#[test]
fn db_outliving_its_client_calls_cache_in_phase_2() {
    let mut b = api_and_db(90.0);
    b.client((4, 3), "db", "get", (67.0, 80.0));
    b.server((5, 4), "cache", "get", (70.0, 78.0));
    let run = b.run();
    run.check(&["Client sync api.get", "api.get sync db.read", "db.read sync/2 cache.get"]);
    assert_eq!(run.self_ms("db.read"), [Some(40.0), Some(17.0)], "20–60, and 60–90 less 67–80");
    let model = run.model();
    let entry = model.model.entry("db.read").unwrap().1;
    assert_eq!(entry.phases.len(), 2);
}

/// PRODUCER at 30, api replies at 35, CONSUMER at 40.
#[test]
fn a_message_handled_after_the_reply_is_asynchronous_of_phase_1() {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.span((2, 1), "api", "send", SpanKind::Producer, (30.0, 31.0));
    b.span((3, 2), "worker", "handle", SpanKind::Consumer, (40.0, 60.0));
    let run = b.run();
    run.check(&["Client sync api.post", "api.post async worker.handle"]);
    assert_eq!(run.self_ms("api.post"), [Some(35.0), None], "sending is its own work");
    assert_eq!(run.self_ms("worker.handle"), [Some(20.0), None]);
}

/// Overlapping requests: what the specifications serialise is a fork with its join here.
#[test]
fn overlapping_children_are_a_fork() {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    b.request((2, 1), "api", "c", "x", (10.0, 60.0), 2.0);
    b.request((4, 1), "api", "d", "y", (12.0, 80.0), 2.0);
    let run = b.run();
    run.check(&["Client sync api.get", "api.get sync c.x [0:0]", "api.get sync d.y [0:1]"]);
    assert_eq!(run.self_ms("api.get"), [Some(30.0), None], "0–10 and 80–100: the fork counts once");
}

/// A missing parent: its own tree under the synthetic client, and said so.
#[test]
fn a_missing_parent_is_requested_by_the_client() {
    let mut b = api_and_db(50.0);
    b.server((9, 77), "billing", "bill", (30.0, 40.0));
    let run = b.run();
    run.check(&["Client sync api.get", "Client sync billing.bill", "api.get sync db.read"]);
    assert_eq!((run.count("missing_parent"), run.interactions.traces.len()), (1, 1));
    assert_eq!((run.quality.traces.complete, run.quality.traces.incomplete, run.quality.traces.without_root), (0, 1, 0));
    let names: Vec<&str> = run.interactions.scenarios.iter().collect();
    assert_eq!(names, ["api.get"]);
}

/// A trace whose root is missing is of a scenario of its own.
#[test]
fn a_trace_without_root_is_a_scenario_of_its_own() {
    let mut b = Build::default();
    b.server((2, 1), "billing", "bill", (30.0, 40.0));
    let run = b.run();
    run.check(&["Client sync billing.bill"]);
    assert_eq!(run.interactions.scenarios.iter().collect::<Vec<_>>(), ["unknown-parent"]);
    assert_eq!(run.quality.traces.without_root, 1);
}

/// Retries are sibling requests: each counts.
#[test]
fn retries_are_calls_and_failed_ones_have_no_demand() {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    for (n, status) in [(0, SpanStatus::Error), (1, SpanStatus::Timeout), (2, SpanStatus::Ok)] {
        let (id, at) = (10 + 2 * n, 10.0 + 20.0 * n as f64);
        b.client((id, 1), "api", "read", (at, at + 15.0)).status(status);
        b.server((id + 1, id), "db", "read", (at + 1.0, at + 14.0)).status(status);
    }
    let run = b.run();
    run.check(&["Client sync api.get", "api.get sync db.read", "api.get sync db.read", "api.get sync db.read"]);
    let entry = &run.quality.tasks["db"].entries["read"];
    assert_eq!((entry.occurrences, entry.errors, entry.timeouts, entry.cancelled), (3, 1, 1, 0));
    assert_eq!((entry.self_s[0].count, (entry.self_s[0].mean * 1e3).round()), (1, 13.0));
    let call = &run.quality.tasks["api"].entries["get"].calls[0];
    assert_eq!((call.calls, call.failed, call.retries, call.made_by), (3, 2, 2, 1));
    assert_eq!(mean_calls(&run.model())["api.get db.read"], 3.0);
}

/// A batch: one consumer of three messages is a call of the first; the mean is one third.
#[test]
fn a_batch_of_messages_is_one_call_of_the_first() {
    let mut b = Build::default();
    for trace in 1..=3 {
        b.server((1, 0), "api", "post", (trace as f64, 10.0)).trace(trace);
        b.span((2, 1), "api", "send", SpanKind::Producer, (5.0 + trace as f64 / 10.0, 6.0)).trace(trace);
    }
    b.span((7, 0), "worker", "handle", SpanKind::Consumer, (40.0, 60.0)).trace(9).link(1, 2).link(2, 2).link(3, 2);
    let run = b.run();
    run.check(&["Client sync api.post", "Client sync api.post", "Client sync api.post", "api.post async worker.handle"]);
    assert_eq!(run.count("batched_message"), 2);
    let mean = mean_calls(&run.model())["api.post worker.handle"];
    assert!((mean - 1.0 / 3.0).abs() < 1e-12);
}
