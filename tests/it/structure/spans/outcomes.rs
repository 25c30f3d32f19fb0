//! Occurrences that failed or were given up, and their self times; namespaces of services; occurrences whose spans are lost together.

use layerfit::trace::diagnostics::Diagnostic;

use super::*;

fn told(run: &Run, code: &str) -> Option<Diagnostic> {
    run.quality.diagnostics().into_vec().into_iter().find(|diagnostic| diagnostic.code == code)
}

/// Requests that fail as `status` says, of web to store, which takes 10 ms, or 2 where it failed.
fn failing(n: u32, status: impl Fn(u32) -> SpanStatus) -> Run {
    let mut b = Build::default();
    for trace in 0..n {
        let (at, status) = (100.0 * f64::from(trace), status(trace));
        let (id, end) = (u128::from(trace) + 1, at + if status == SpanStatus::Ok { 12.0 } else { 4.0 });
        b.server((1, 0), "web", "get", (at, at + 20.0)).trace(id);
        b.client((2, 1), "web", "read", (at + 1.0, end + 1.0)).trace(id).status(status);
        b.server((3, 2), "store", "read", (at + 2.0, end)).trace(id).status(status);
    }
    b.run()
}

#[test]
fn where_all_failed_their_times_are_used() {
    let run = failing(40, |_| SpanStatus::Error);
    assert_eq!(run.self_ms("store.read"), [Some(2.0), None]);
    let store = &run.quality.tasks["store"].entries["read"];
    assert_eq!((store.self_s[0].count, run.count("only_failures")), (40, 40));
    assert_eq!(told(&run, "failures_left_out"), None);
}

#[test]
fn many_failures_that_are_left_out_are_told() {
    let run = failing(40, |trace| if trace % 10 == 0 { SpanStatus::Error } else { SpanStatus::Ok });
    let store = &run.quality.tasks["store"].entries["read"];
    assert_eq!((store.self_s[0].count, (store.self_s[0].mean * 1e6).round()), (36, 10_000.0));
    assert_eq!(told(&run, "failures_left_out").map(|told| told.examples), Some(vec!["store.read: 4 of 40".to_owned()]));
    assert_eq!(run.count("only_failures"), 0);
    let run = failing(40, |trace| if trace == 0 { SpanStatus::Error } else { SpanStatus::Ok });
    assert_eq!(told(&run, "failures_left_out"), None);
}

/// A server that goes on for longer than its client waits, and ends well, has the demand of all that it does.
#[test]
fn what_was_given_up_but_ended_well_is_in_the_demand() {
    let mut b = Build::default();
    for trace in 0..20_u32 {
        let (at, id) = (100.0 * f64::from(trace), u128::from(trace) + 1);
        let (lasts, is_late) = if trace % 4 == 0 { (40.0, true) } else { (8.0, false) };
        let waits = if is_late { 20.0 } else { lasts + 1.0 };
        b.server((1, 0), "web", "get", (at, at + 50.0)).trace(id);
        let client = b.client((2, 1), "web", "read", (at + 1.0, at + 1.0 + waits)).trace(id);
        let _ = client.status(if is_late { SpanStatus::Timeout } else { SpanStatus::Ok });
        b.server((3, 2), "store", "read", (at + 1.5, at + 1.5 + lasts)).trace(id);
    }
    let run = b.run();
    let store = &run.quality.tasks["store"].entries["read"];
    assert_eq!((store.self_s[0].count, (store.self_s[0].mean * 1e6).round(), store.timeouts), (20, 16_000.0, 5));
    assert_eq!(told(&run, "failures_left_out"), None);
}

/// Web asks shop, which asks store, which asks a data base. In one of three traces all spans of shop are lost, or those of store.
fn without_batches(lost: &str) -> Run {
    let mut b = Build::default();
    for trace in 0..60_u32 {
        let (at, id) = (100.0 * f64::from(trace), u128::from(trace) + 1);
        let mut keep = |service: &str, made: &dyn Fn(&mut Build)| {
            if trace % 3 != 0 || service != lost {
                made(&mut b);
            }
        };
        keep("web", &|b| {
            let _ = b.server((1, 0), "web", "get", (at, at + 50.0)).trace(id);
        });
        keep("web", &|b| {
            let _ = b.client((2, 1), "web", "buy", (at + 1.0, at + 40.0)).trace(id);
        });
        keep("shop", &|b| {
            let _ = b.server((3, 2), "shop", "buy", (at + 2.0, at + 39.0)).trace(id);
        });
        keep("shop", &|b| {
            let _ = b.client((4, 3), "shop", "read", (at + 3.0, at + 30.0)).trace(id);
        });
        keep("store", &|b| {
            let _ = b.server((5, 4), "store", "read", (at + 4.0, at + 29.0)).trace(id);
        });
        keep("store", &|b| {
            let _ = b.client((6, 5), "store", "q", (at + 5.0, at + 9.0)).trace(id).with(Attribute::DbSystem, "mysql");
        });
    }
    b.run()
}

#[test]
fn spans_that_are_lost_together_are_no_calls_that_were_not_made() {
    for lost in ["shop", "store"] {
        let run = without_batches(lost);
        let means = mean_calls(&run.model());
        for call in ["web.get shop.buy", "shop.buy store.read", "store.read mysql.q"] {
            assert_eq!(means.get(call), Some(&1.0), "{lost}: {means:?}");
        }
        assert_eq!(run.count("requests_not_known"), 20, "{lost}");
        let call = &run.quality.tasks["shop"].entries["buy"].calls[0];
        assert_eq!((call.per_occurrence.mean, call.per_occurrence.count), (1.0, if lost == "shop" { 40 } else { 60 }));
    }
}

/// A request that was refused asked nobody: that is known.
#[test]
fn refused_requests_made_no_calls() {
    let mut b = Build::default();
    for trace in 0..60_u32 {
        let (at, id, is_refused) = (100.0 * f64::from(trace), u128::from(trace) + 1, trace % 3 == 0);
        b.server((1, 0), "web", "get", (at, at + 50.0)).trace(id);
        let client = b.client((2, 1), "web", "read", (at + 1.0, at + 40.0)).trace(id);
        let _ = client.status(if is_refused { SpanStatus::Error } else { SpanStatus::Ok });
        if !is_refused {
            b.server((3, 2), "store", "read", (at + 2.0, at + 39.0)).trace(id);
            b.client((4, 3), "store", "q", (at + 5.0, at + 9.0)).trace(id).with(Attribute::DbSystem, "mysql");
        }
    }
    let run = b.run();
    let mean = mean_calls(&run.model())["store.read mysql.q"];
    assert!((mean - 2.0 / 3.0).abs() < 1e-12, "{mean}");
    assert_eq!(run.count("requests_not_known"), 0);
}

/// Requests of one service, each second one in the second namespace.
fn in_namespaces(namespaces: [Option<&str>; 2]) -> Vec<String> {
    let mut b = Build::default();
    for trace in 0..4_usize {
        let at = 100.0 * trace as f64;
        b.server((1, 0), "web", "get", (at, at + 10.0)).trace(trace as u128 + 1);
        let namespace = namespaces[trace % 2].map(|text| b.texts.text(text));
        let span = b.spans.last_mut().unwrap();
        let known = b.texts.resource(span.resource).unwrap().clone();
        span.resource = b.texts.resource_number(Resource { namespace, ..known });
    }
    let mut tasks: Vec<String> = b.run().quality.tasks.keys().cloned().collect();
    tasks.sort();
    tasks
}

#[test]
fn a_service_in_two_namespaces_is_two_tasks() {
    assert_eq!(in_namespaces([Some("prod"), Some("test")]), ["prod/web", "test/web"]);
    assert_eq!(in_namespaces([Some("prod"), Some("prod")]), ["web"]);
    assert_eq!(in_namespaces([Some("prod"), None]), ["web"]);
}
