//! Second phases, and what is not waited for.

use super::*;

#[test]
fn an_internal_span_after_the_reply_is_the_second_phase() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 50.0));
    b.span((2, 1), "web", "log", SpanKind::Internal, (40.0, 90.0));
    b.request((3, 2), "web", "store", "write", (60.0, 70.0), 1.0);
    let run = b.run();
    run.check(&["Client sync web.get", "web.get sync/2 store.write"]);
    assert_eq!(run.self_ms("web.get"), [Some(50.0), Some(30.0)], "50–90 less 60–70");
}

#[test]
fn time_between_the_reply_and_late_work_is_idle() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 50.0));
    b.span((2, 1), "web", "log", SpanKind::Internal, (70.0, 90.0));
    assert_eq!(b.run().self_ms("web.get"), [Some(50.0), Some(20.0)]);
}

#[test]
fn a_remote_child_that_outlives_its_parent_is_asynchronous() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 50.0));
    b.client((2, 1), "web", "notify", (30.0, 80.0));
    b.server((3, 2), "push", "notify", (35.0, 75.0));
    b.server((4, 1), "audit", "note", (40.0, 90.0));
    let run = b.run();
    run.check(&["Client sync web.get", "web.get async push.notify", "web.get async audit.note"]);
    assert_eq!(run.self_ms("web.get"), [Some(50.0), None]);
    assert_eq!(run.count("outlives_caller"), 2);
}

#[test]
fn a_request_that_its_client_gave_up_has_no_second_phase() {
    for status in [SpanStatus::Timeout, SpanStatus::Cancelled, SpanStatus::Error] {
        let mut b = Build::default();
        b.server((1, 0), "web", "get", (0.0, 100.0));
        b.client((2, 1), "web", "read", (10.0, 40.0)).status(status);
        b.server((3, 2), "store", "read", (12.0, 90.0));
        let run = b.run();
        run.check(&["Client sync web.get", "web.get sync store.read"]);
        assert_eq!(run.self_ms("store.read"), [Some(78.0), None]);
        assert_eq!(run.quality.tasks["store"].entries["read"].timeouts, u64::from(status == SpanStatus::Timeout));
    }
}

/// A client that failed on what the server answered in time has waited for all of it.
#[test]
fn a_request_that_failed_after_its_reply_has_its_self_time() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.client((2, 1), "web", "read", (10.0, 40.0)).status(SpanStatus::Error);
    b.server((3, 2), "store", "read", (12.0, 39.0));
    assert_eq!(b.run().self_ms("store.read"), [Some(27.0), None]);
}

#[test]
fn repeated_children_are_a_mean() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    for n in 0..4_u64 {
        b.request((10 + 2 * n, 1), "web", "store", "read", (10.0 + 20.0 * n as f64, 20.0 + 20.0 * n as f64), 1.0);
    }
    b.server((1, 0), "web", "get", (200.0, 300.0)).trace(2);
    let run = b.run();
    let call = &run.quality.tasks["web"].entries["get"].calls[0];
    assert_eq!((call.calls, call.made_by, call.per_occurrence.count, call.per_occurrence.mean), (4, 1, 2, 2.0));
    assert_eq!(call.per_occurrence.variance(), Some(8.0));
    assert_eq!(mean_calls(&run.model())["web.get store.read"], 2.0);
}

#[test]
fn load_and_queueing_are_told() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.request((2, 1), "web", "store", "read", (10.0, 60.0), 7.0);
    b.repeat(2, 50.0).repeat(3, 500.0);
    let run = b.run();
    let entry = &run.quality.tasks["web"].entries["get"];
    assert_eq!((entry.load.count, (entry.load.mean * 3.0).round()), (3, 4.0), "loads 1, 2 and 1");
    assert!((entry.calls[0].queueing_s.mean - 7e-3).abs() < 1e-9);
    assert_eq!(run.quality.tasks["web"].concurrency, 2);
    assert_eq!(run.hints.processes["web"].threads, Some(2));
}

/// Ten requests of `web`, each with a query from 5 ms on; some of them end late, by that much.
fn queries(late_ms: &[f64]) -> Run {
    let mut b = Build::default();
    for trace in 0..10_u128 {
        let (at, late) = (100.0 * trace as f64, late_ms.get(trace as usize));
        b.server((1, 0), "web", "get", (at, at + 20.0)).trace(trace + 1);
        let end = late.map_or(19.5, |late| 20.0 + late);
        b.client((2, 1), "web", "query", (at + 5.0, at + end)).trace(trace + 1).with(Attribute::DbSystem, "mysql");
    }
    b.run()
}

#[test]
fn a_call_that_seldom_ends_just_after_its_caller_is_waited_for() {
    let run = queries(&[0.3, 0.3, 0.7]);
    assert!(run.calls().iter().all(|call| call.contains(" sync ")), "{:?}", run.calls());
    assert_eq!((run.count("ends_after_caller"), run.self_ms("web.get")), (3, [Some(5.0), None]));
}

/// One that ends much later is not; nor is any of which as many end late as not.
#[test]
fn work_that_is_left_to_itself_is_not_waited_for() {
    for (late, n_async, n_late) in [([3.0, 3.0, 0.3].as_slice(), 2, 1), (&[0.3; 5], 5, 0), (&[40.0, 30.0, 20.0, 0.3, 50.0, 60.0], 6, 0)] {
        let run = queries(late);
        let found = run.calls().iter().filter(|call| call.contains(" async ")).count();
        assert_eq!((found, run.count("ends_after_caller")), (n_async, n_late), "{late:?}");
    }
}

/// Twenty requests that take 0.3 ms each way, to a server whose clock is behind by `behind` ms. It replies after 2 to 4 ms, and from 0.05 ms later
/// on makes a request `writes_ms` long, and ends with it.
fn written_after_the_reply(behind: f64, writes_ms: impl Fn(u128) -> f64) -> Run {
    let mut b = Build::default();
    for trace in 0..20_u128 {
        let (at, served) = (trace as f64 * 200.0, 2.0 + (trace % 5) as f64 / 2.0);
        let (start, reply) = (at + 1.3 - behind, at + 1.3 - behind + served);
        let end = reply + 0.05 + writes_ms(trace);
        b.server((1, 0), "web", "get", (at, at + 50.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 1.0, at + 1.6 + served)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "store", "read", (start, end + 0.02)).trace(trace + 1).on("h2", "s");
        b.client((4, 3), "store", "write", (reply + 0.05, end)).trace(trace + 1).on("h2", "s").with(Attribute::DbSystem, "mysql");
    }
    b.run()
}

/// The client has the reply only after these began, and one even ends before that.
#[test]
fn requests_that_begin_while_the_reply_is_under_way_are_of_the_second_phase() {
    for behind in [0.0, 0.1, 0.2, 0.25] {
        let run = written_after_the_reply(behind, |trace| if trace == 7 && behind == 0.0 { 0.2 } else { 1.0 + (trace % 7) as f64 });
        let calls = run.calls();
        assert_eq!(run.quality.clocks[0].offset_s, 0.0);
        assert_eq!(calls.iter().filter(|call| *call == "store.read sync/2 mysql.write").count(), 20, "{behind}: {calls:?}");
        assert_eq!((run.count("outlives_caller"), run.count("clock_leaves_phase_open")), (0, 20), "{behind}");
        let [first, second] = run.quality.tasks["store"].entries["read"].self_s;
        assert!((first.mean * 1e3 - 3.0).abs() < 0.6 && second.mean * 1e3 < 0.1, "{behind}: {first:?} {second:?}");
    }
}

/// What is begun before the reply and outlasts the span now and then is not waited for, nor is a message, whenever it ends.
#[test]
fn work_that_is_begun_before_a_reply_and_left_to_itself_is_asynchronous() {
    let mut b = Build::default();
    for trace in 0..20_u128 {
        let at = trace as f64 * 200.0;
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 1.0, at + 21.6)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "store", "read", (at + 1.3, at + 50.0)).trace(trace + 1).on("h2", "s");
        let end = if trace % 4 == 0 { 70.0 } else { 40.0 };
        b.client((4, 3), "store", "write", (at + 10.0, at + end)).trace(trace + 1).on("h2", "s").with(Attribute::DbSystem, "mysql");
        b.span((5, 3), "store", "send", SpanKind::Producer, (at + 21.4, at + 22.0)).trace(trace + 1).on("h2", "s");
        b.span((6, 5), "mail", "send", SpanKind::Consumer, (at + 22.0, at + 45.0)).trace(trace + 1).on("h3", "m");
    }
    let calls = b.run().calls();
    let n_async = |to: &str| calls.iter().filter(|call| **call == format!("store.read async {to}")).count();
    assert_eq!([n_async("mysql.write"), n_async("mail.send")], [20, 20], "{calls:?}");
}
