//! Requests that are served after their clients have gone on: nobody waits for them.

use super::*;

/// Traces of web, which asks log and goes on at once; log takes the request `late` milliseconds later, and works for 5 ms.
fn one_way(n: u32, hosts: [&str; 2], mut late: impl FnMut(u32) -> f64) -> Build {
    let mut b = Build::default();
    for trace in 0..n {
        let at = 100.0 * f64::from(trace);
        let start = at + 1.1 + late(trace);
        let id = u128::from(trace) + 1;
        b.server((1, 0), "web", "get", (at, at + 10.0)).trace(id).on(hosts[0], "w");
        b.client((2, 1), "web", "put", (at + 1.0, at + 1.1)).trace(id).on(hosts[0], "w");
        b.server((3, 2), "log", "put", (start, start + 5.0)).trace(id).on(hosts[1], "l");
    }
    b
}

/// From 0.1 to 5 ms, in no order.
fn scattered(trace: u32) -> f64 {
    0.1 + f64::from(trace * 37 % 101) * 0.05
}

#[test]
fn what_is_served_after_its_client_went_on_is_asynchronous() {
    // By one clock; by two that agree, as delays in no order say; with few and many of these.
    for (n, hosts, late) in [(3, ["h", "h"], scattered as fn(u32) -> f64), (100, ["h", "h"], |_| 0.5), (300, ["h1", "h2"], scattered)] {
        let run = one_way(n, hosts, late).run();
        let mut expected = vec!["Client sync web.get"; n as usize];
        expected.extend(vec!["web.get async log.put"; n as usize]);
        run.check(&expected);
        assert_eq!((run.count("served_after_client"), run.count("outlives_caller")), (u64::from(n), 0));
        assert_eq!(run.self_ms("log.put"), [Some(5.0), None]);
        assert_eq!(run.self_ms("web.get"), [Some(10.0), None], "sending is the sender's own time");
        assert!(!run.quality.text().contains("as it changed"), "{}", run.quality.text());
    }
}

/// A clock that goes ever further ahead shows the same, but in order of time: the requests are waited for.
#[test]
fn a_clock_that_drifts_is_no_one_way_request() {
    let run = one_way(300, ["h1", "h2"], |trace| f64::from(trace) * 0.1).run();
    assert_eq!(run.count("served_after_client"), 0);
}

/// A client that gave up before its request was taken had waited for it.
#[test]
fn a_client_that_gave_up_had_waited() {
    let mut b = one_way(20, ["h", "h"], |_| 0.5);
    b.spans.iter_mut().filter(|span| span.id == SpanId(2)).for_each(|span| span.status = SpanStatus::Timeout);
    let run = b.run();
    assert!(run.calls().iter().all(|call| call.contains(" sync ")), "{:?}", run.calls());
}

/// One in a hundred that is out of order among those that are waited for is an error of the clock.
#[test]
fn what_is_waited_for_as_a_rule_stays_so() {
    let run = one_way(200, ["h", "h"], |trace| if trace == 150 { 0.01 } else { -0.05 }).run();
    assert_eq!(run.count("served_after_client"), 0);
}
