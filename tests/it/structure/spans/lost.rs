//! Lost spans: each row of the table in the documentation, on six whole traces and one of which spans are lost.

use super::*;

/// Ids of the spans of a trace.
const ROOT: u64 = 1;
const ASKED: u64 = 2;
const SERVED: u64 = 3;
const STORED: u64 = 4;
const STORE: u64 = 5;
const LOGGED: u64 = 6;
const LOG: u64 = 7;
const SENT: u64 = 8;
const MAIL: u64 = 9;

/// Seven traces of a customer who asks a shop, which asks a store, replies, then writes a log and sends a mail. Of the last one the
/// spans `lost` are missing.
fn shop_without(lost: &[u64]) -> Build {
    let mut b = Build::default();
    for trace in 1..=7_u128 {
        let at = trace as f64 * 300.0;
        let missing: &[u64] = if trace == 7 { lost } else { &[] };
        let mut spans = |id: u64, parent: u64, service: &str, name: &str, kind: SpanKind, times: (f64, f64)| {
            if !missing.contains(&id) {
                let _ = b.span((id, parent), service, name, kind, (at + times.0, at + times.1)).trace(trace).on(service, "1");
            }
        };
        spans(ROOT, 0, "user", "cycle", SpanKind::Internal, (0.0, 200.0));
        spans(ASKED, ROOT, "user", "buy", SpanKind::Client, (10.0, 60.0));
        spans(SERVED, ASKED, "shop", "buy", SpanKind::Server, (11.0, 120.0));
        spans(STORED, SERVED, "shop", "read", SpanKind::Client, (20.0, 50.0));
        spans(STORE, STORED, "store", "read", SpanKind::Server, (21.0, 49.0));
        spans(LOGGED, SERVED, "shop", "write", SpanKind::Client, (70.0, 90.0));
        spans(LOG, LOGGED, "log", "write", SpanKind::Server, (71.0, 89.0));
        spans(SENT, SERVED, "shop", "send", SpanKind::Producer, (100.0, 101.0));
        spans(MAIL, SENT, "mail", "send", SpanKind::Consumer, (130.0, 140.0));
    }
    b
}

/// The calls that the traces show.
const CALLS: [&str; 5] = [
    "Client sync user.cycle",
    "shop.buy async/2 mail.send",
    "shop.buy sync store.read",
    "shop.buy sync/2 log.write",
    "user.cycle sync shop.buy",
];

/// Runs without some spans; all calls are those of the whole traces, seven times each but `fewer`.
fn check(lost: &[u64], fewer: &[&str]) -> Run {
    let run = shop_without(lost).run();
    let mut counts: HashMap<String, u64> = HashMap::new();
    run.calls().into_iter().for_each(|call| *counts.entry(call).or_default() += 1);
    for call in CALLS {
        let n = 7 - u64::from(fewer.contains(&call));
        assert_eq!(counts.remove(call), Some(n), "{call} without {lost:?}");
    }
    assert!(counts.is_empty(), "{counts:?} without {lost:?}");
    run
}

#[test]
fn whole_traces_need_nothing() {
    let run = check(&[], &[]);
    assert_eq!([run.count("parent_restored"), run.count("missing_parent"), run.quality.traces.incomplete], [0; 3]);
}

#[test]
fn a_lost_serving_half_is_the_entry_that_serves_such_requests() {
    let run = check(&[SERVED], &[]);
    assert_eq!([run.count("parent_restored"), run.count("missing_parent"), run.quality.traces.incomplete], [3, 3, 1]);
    let shop = &run.quality.tasks["shop"].entries["buy"];
    assert_eq!((shop.occurrences, shop.served, shop.self_s[0].count), (7, 6, 6));
}

#[test]
fn a_lost_serving_half_without_requests_of_its_own_is_an_occurrence() {
    let run = check(&[STORE], &[]);
    let store = &run.quality.tasks["store"].entries["read"];
    assert_eq!((store.occurrences, store.served, store.self_s[0].count), (7, 6, 6));
    assert_eq!(run.count("client_half_alone"), 1);
}

#[test]
fn a_lost_requesting_half_is_a_call_of_whoever_makes_it_and_leaves_the_reply_open() {
    let run = check(&[ASKED], &[]);
    let shop = &run.quality.tasks["shop"].entries["buy"];
    assert_eq!((shop.occurrences, shop.self_s[0].count, shop.self_s[1].count), (7, 6, 6));
    check(&[STORED], &[]);
    check(&[LOGGED], &[]);
}

#[test]
fn messages_find_their_sender_and_their_handling() {
    check(&[SENT], &[]);
    let run = check(&[MAIL], &[]);
    assert_eq!(run.count("message_without_consumer"), 1);
}

#[test]
fn a_lost_root_is_the_one_that_starts_such_traces() {
    let run = check(&[ROOT], &[]);
    assert_eq!([run.count("root_restored"), run.quality.traces.without_root, run.quality.traces.incomplete], [1, 0, 1]);
}

/// What its first request asks for is lost, too: the request still is one for that, and not for the root.
#[test]
fn a_lost_root_is_not_what_its_first_request_asks_for() {
    let mut b = Build::default();
    for trace in 1..=7_u128 {
        let at = trace as f64 * 300.0;
        if trace < 7 {
            b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace);
            b.server((3, 2), "cart", "list", (at + 11.0, at + 39.0)).trace(trace);
        }
        b.client((2, 1), "web", "list", (at + 10.0, at + 40.0)).trace(trace);
        b.client((4, 1), "web", "read", (at + 50.0, at + 90.0)).trace(trace);
        b.server((5, 4), "store", "read", (at + 51.0, at + 89.0)).trace(trace);
    }
    let run = b.run();
    let calls = run.calls();
    let count = |call: &str| calls.iter().filter(|c| *c == call).count();
    let expected = ["Client sync web.get", "web.get sync cart.list", "web.get sync store.read"];
    assert_eq!((expected.map(count), calls.len()), ([7; 3], 21), "{calls:?}");
    assert_eq!(run.count("root_restored"), 2);
}

#[test]
fn what_hangs_below_two_lost_spans_is_left_out_and_told() {
    let run = check(
        &[ASKED, SERVED],
        &["user.cycle sync shop.buy", "shop.buy sync store.read", "shop.buy sync/2 log.write", "shop.buy async/2 mail.send"],
    );
    assert_eq!(run.count("unattached"), 6);
    assert_eq!(run.quality.spans.used + 6, run.quality.spans.read);
    let run = check(&[STORED, STORE], &["shop.buy sync store.read"]);
    assert_eq!(run.count("unattached"), 0);
}

/// Where no whole trace shows who asks, whoever asks has no tracing: the client of the trace.
#[test]
fn parents_that_were_never_there_are_the_client() {
    let mut b = Build::default();
    for trace in 1..=20_u128 {
        b.server((1, 99), "web", "get", (trace as f64 * 100.0, trace as f64 * 100.0 + 50.0)).trace(trace);
    }
    let run = b.run();
    assert_eq!(run.calls(), vec!["Client sync web.get"; 20]);
    assert_eq!([run.count("unattached"), run.count("missing_parent")], [0, 20]);
}

/// Entries that call one another: neither of two that lost their callers at the same time can hang below the other that hangs
/// below it.
#[test]
fn lost_callers_of_one_another_make_no_circle() {
    let mut b = Build::default();
    for trace in 1..=6_u128 {
        let at = trace as f64 * 300.0;
        b.server((1, 0), "user", "start", (at, at + 200.0)).trace(trace);
        b.client((2, 1), "user", "ping", (at + 1.0, at + 199.0)).trace(trace);
        b.server((3, 2), "a", "ping", (at + 2.0, at + 198.0)).trace(trace);
        b.client((4, 3), "a", "pong", (at + 3.0, at + 197.0)).trace(trace);
        b.server((5, 4), "b", "pong", (at + 4.0, at + 196.0)).trace(trace);
        b.client((6, 5), "b", "ping", (at + 5.0, at + 195.0)).trace(trace);
        b.server((7, 6), "a", "ping", (at + 6.0, at + 194.0)).trace(trace);
    }
    b.server((1, 0), "user", "other", (3000.0, 3200.0)).trace(9);
    b.server((5, 98), "b", "pong", (3010.0, 3100.0)).trace(9);
    b.server((7, 99), "a", "ping", (3010.0, 3100.0)).trace(9);
    let run = b.run();
    let calls = run.calls();
    let count = |call: &str| calls.iter().filter(|c| *c == call).count() as u64;
    assert_eq!(count("a.ping sync b.pong") + count("b.pong sync a.ping") + count("user.start sync a.ping"), 18);
    assert_eq!([run.count("missing_parent"), run.count("unattached")], [2, 2]);
}

/// Two entries ask the store, one within the other: the one that does not wait for the other is it.
#[test]
fn of_several_that_may_have_asked_it_is_the_one_that_does_not_wait() {
    let mut b = Build::default();
    for trace in 1..=7_u128 {
        let at = trace as f64 * 300.0;
        b.server((1, 0), "web", "get", (at, at + 200.0)).trace(trace);
        b.client((2, 1), "web", "cart", (at + 10.0, at + 100.0)).trace(trace);
        b.server((3, 2), "cart", "list", (at + 11.0, at + 99.0)).trace(trace);
        if trace < 7 {
            b.client((4, 3), "cart", "read", (at + 20.0, at + 40.0)).trace(trace);
            b.client((6, 1), "web", "read", (at + 120.0, at + 140.0)).trace(trace);
        }
        b.server((5, 4), "store", "read", (at + 21.0, at + 39.0)).trace(trace);
        b.server((7, 6), "store", "read", (at + 121.0, at + 139.0)).trace(trace);
    }
    let calls = b.run().calls();
    let count = |call: &str| calls.iter().filter(|c| *c == call).count();
    assert_eq!([count("cart.list sync store.read"), count("web.get sync store.read"), calls.len()], [7, 7, 28]);
}

/// A caller that two whole traces show is no habit, and no caller without tracing: what it asked for is left out where it is lost.
#[test]
fn what_few_whole_traces_show_is_left_out() {
    let mut b = Build::default();
    for trace in 1..=3_u128 {
        let at = trace as f64 * 300.0;
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace);
        if trace < 3 {
            b.client((2, 1), "web", "read", (at + 10.0, at + 50.0)).trace(trace);
        }
        b.server((3, 2), "store", "read", (at + 11.0, at + 49.0)).trace(trace);
    }
    let run = b.run();
    let mut calls = run.calls();
    calls.sort();
    assert_eq!(calls, ["Client sync web.get"; 3].into_iter().chain(["web.get sync store.read"; 2]).collect::<Vec<_>>());
    assert_eq!([run.count("missing_parent"), run.count("unattached")], [1, 1]);
}

/// An entry that others ask for in their traces, and callers without tracing in traces of which nothing else was recorded: often, these
/// are the client's; seldom, they are what is left where two spans are lost.
#[test]
fn requests_from_callers_without_tracing_are_the_clients_where_they_are_often() {
    let from_outside = |n: u128| {
        let mut b = Build::default();
        for trace in 1..=60_u128 {
            let at = trace as f64 * 300.0;
            b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace);
            b.client((2, 1), "web", "read", (at + 10.0, at + 50.0)).trace(trace);
            b.server((3, 2), "store", "read", (at + 11.0, at + 49.0)).trace(trace);
        }
        for trace in 100..100 + n {
            let at = trace as f64 * 300.0;
            b.server((3, 77), "store", "read", (at, at + 40.0)).trace(trace);
            b.client((4, 3), "store", "load", (at + 5.0, at + 20.0)).trace(trace).with(Attribute::DbSystem, "redis");
        }
        b.run()
    };
    let often = from_outside(20);
    assert_eq!(often.calls().iter().filter(|call| *call == "Client sync store.read").count(), 20);
    assert_eq!([often.count("missing_parent"), often.count("unattached")], [20, 0]);
    let seldom = from_outside(2);
    assert_eq!(seldom.calls().iter().filter(|call| *call == "Client sync store.read").count(), 0);
    assert_eq!([seldom.count("missing_parent"), seldom.count("unattached")], [2, 4]);
}

/// Two entries send the mail. Where the sending is lost, and one of them with it, the other is not the one that sent it.
#[test]
fn the_only_sender_that_is_left_need_not_be_it() {
    let mut b = Build::default();
    for trace in 1..=7_u128 {
        let at = trace as f64 * 400.0;
        let is_whole = trace < 7;
        b.server((1, 0), "web", "get", (at, at + 200.0)).trace(trace);
        if is_whole {
            b.span((2, 1), "web", "send", SpanKind::Producer, (at + 10.0, at + 11.0)).trace(trace);
            b.span((3, 2), "mail", "send", SpanKind::Consumer, (at + 20.0, at + 30.0)).trace(trace);
        }
        b.client((4, 1), "web", "order", (at + 40.0, at + 120.0)).trace(trace);
        if is_whole {
            b.server((5, 4), "shop", "order", (at + 41.0, at + 119.0)).trace(trace);
            b.span((6, 5), "shop", "send", SpanKind::Producer, (at + 50.0, at + 51.0)).trace(trace);
        }
        b.span((7, 6), "mail", "send", SpanKind::Consumer, (at + 60.0, at + 70.0)).trace(trace);
    }
    let run = b.run();
    let calls = run.calls();
    let count = |call: &str| calls.iter().filter(|c| *c == call).count();
    assert_eq!([count("web.get async mail.send"), count("shop.order async mail.send"), count("web.get sync shop.order")], [6, 6, 7]);
    assert_eq!([run.count("missing_parent"), run.count("unattached")], [1, 1]);
}
