//! Clocks that disagree: estimated over many requests, corrected, and never the reason of an asynchronous call.

use super::*;

/// `n` requests of web on h1 to store on h2, whose clock is ahead by `ahead` ms; they take 2 to 3 ms each way.
fn skewed(n: u128, ahead: f64, served: f64) -> Build {
    let mut b = Build::default();
    for trace in 0..n {
        let at = trace as f64 * 200.0;
        let delay = 2.0 + (trace % 11) as f64 / 10.0;
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 10.0, at + 10.0 + 2.0 * delay + served)).trace(trace + 1).on("h1", "w");
        let start = at + 10.0 + delay + ahead;
        b.server((3, 2), "store", "read", (start, start + served)).trace(trace + 1).on("h2", "s");
        b.client((4, 3), "store", "load", (start + 1.0, start + 4.0)).trace(trace + 1).on("h2", "s").with(Attribute::DbSystem, "redis");
    }
    b
}

#[test]
fn skew_is_corrected_and_its_size_told() {
    for ahead in [-5000.0, -40.0, 40.0, 70_000.0] {
        let run = skewed(50, ahead, 20.0).run();
        let calls = run.calls();
        assert!(calls.iter().all(|call| call.contains(" sync ")), "{calls:?}");
        let clock = &run.quality.clocks[0];
        assert_eq!((clock.hosts.clone(), clock.requests), (["h1".to_owned(), "h2".to_owned()], 50));
        // Known to half of the least time that a request is under way, both ways.
        assert!((clock.offset_s * 1e3 - ahead).abs() <= 2.0, "{clock:?}");
        assert!(clock.bounds_s[0] * 1e3 <= ahead && ahead <= clock.bounds_s[1] * 1e3, "{clock:?}");
        let entry = &run.quality.tasks["web"].entries["get"];
        assert!((entry.calls[0].queueing_s.mean * 1e3 - 2.5).abs() <= 2.0, "{:?}", entry.calls[0].queueing_s);
        assert!((entry.self_s[0].mean * 1e3 - 75.0).abs() < 0.2, "{:?}", entry.self_s[0]);
    }
}

#[test]
fn clocks_that_agree_are_left_alone() {
    let run = skewed(50, 0.0, 20.0).run();
    assert_eq!(run.quality.clocks[0].offset_s, 0.0);
    assert_eq!(run.count("clock_residual"), 0);
}

/// One request alone: the server's half moves into the client's by the mean of both ends, with all below it.
#[test]
fn a_single_request_is_nested() {
    let run = skewed(1, 3000.0, 20.0).run();
    run.check(&["Client sync web.get", "store.read sync redis.load", "web.get sync store.read"]);
    let store = run.interactions.interactions.iter().find(|i| i.times.len() == 2 && i.phase == 1 && i.from == 1).unwrap();
    assert!((store.times[0].as_f64() / 1e6 - 12.0).abs() < 0.01, "{:?}", store.times);
    assert_eq!(run.count("clock_residual"), 1);
}

/// Where many requests show that the clocks agree, a server that ends after its client is in its second phase.
#[test]
fn a_second_phase_is_not_taken_for_skew_once_the_clocks_are_known() {
    let mut b = skewed(50, 0.0, 20.0);
    b.server((1, 0), "web", "get", (20_000.0, 20_100.0)).trace(99).on("h1", "w");
    b.client((2, 1), "web", "read", (20_010.0, 20_050.0)).trace(99).on("h1", "w");
    b.server((3, 2), "store", "read", (20_020.0, 20_058.0)).trace(99).on("h2", "s");
    let run = b.run();
    let entry = &run.quality.tasks["store"].entries["read"];
    assert_eq!((entry.self_s[1].count, (entry.self_s[1].mean * 1e3).round()), (1, 8.0));
}

/// Second phases in every request: not one clock difference explains them.
#[test]
fn second_phases_of_every_request_are_seen() {
    let mut b = Build::default();
    for trace in 0..40_u128 {
        let at = trace as f64 * 200.0;
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 10.0, at + 30.0)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "store", "read", (at + 12.0, at + 60.0 + (trace % 7) as f64)).trace(trace + 1).on("h2", "s");
    }
    let run = b.run();
    assert_eq!(run.quality.clocks[0].offset_s, 0.0);
    assert_eq!(run.quality.tasks["store"].entries["read"].self_s[1].count, 40);
    assert!((run.quality.tasks["store"].entries["read"].self_s[0].mean * 1e3 - 18.0).abs() < 1e-6);
}

/// A chain of hosts: differences add up along the way.
#[test]
fn differences_add_up_along_a_chain() {
    let mut b = Build::default();
    for trace in 0..30_u128 {
        let at = trace as f64 * 200.0;
        let (two, three) = (at + 500.0, at - 900.0);
        b.server((1, 0), "a", "x", (at, at + 100.0)).trace(trace + 1).on("h1", "1");
        b.client((2, 1), "a", "x", (at + 10.0, at + 90.0)).trace(trace + 1).on("h1", "1");
        b.server((3, 2), "b", "y", (two + 15.0, two + 85.0)).trace(trace + 1).on("h2", "2");
        b.client((4, 3), "b", "y", (two + 30.0, two + 70.0)).trace(trace + 1).on("h2", "2");
        b.server((5, 4), "c", "z", (three + 35.0, three + 65.0)).trace(trace + 1).on("h3", "3");
    }
    let run = b.run();
    let offset = |hosts: [&str; 2]| run.quality.clocks.iter().find(|c| c.hosts == hosts).unwrap().offset_s;
    assert!((offset(["h1", "h2"]) - 0.5).abs() < 1e-6 && (offset(["h2", "h3"]) + 1.4).abs() < 1e-6);
    assert!(run.calls().iter().all(|call| call.contains(" sync ")));
    assert_eq!(run.count("clock_residual"), 0);
}

/// `store`'s clock is ahead by 40 ms, as requests tell; `log`'s by 5 ms, but it always works on after its reply, and is asked at
/// least `wait` ms before it begins, so that it may as well be right. Its client sees its reply 15 ms after sending.
fn wide_bounds_among_wrong_clocks(wait: f64, log_calls: &[(f64, f64)]) -> Build {
    let mut b = skewed(50, 40.0, 20.0);
    for trace in 0..50_u128 {
        let at = trace as f64 * 200.0;
        let start = at + 55.0 + wait + (trace % 11) as f64 / 10.0;
        b.client((5, 1), "web", "write", (at + 50.0, at + 65.0)).trace(trace + 1).on("h1", "w");
        b.server((6, 5), "log", "write", (start, at + 95.0)).trace(trace + 1).on("h3", "l");
        for (n, (from, to)) in log_calls.iter().enumerate() {
            let id = 7 + n as u64;
            b.client((id, 6), "log", "load", (at + from, at + to)).trace(trace + 1).on("h3", "l").with(Attribute::DbSystem, "mysql");
        }
    }
    b
}

#[test]
fn a_clock_that_may_be_right_is_corrected_where_most_are_wrong() {
    let run = wide_bounds_among_wrong_clocks(0.0, &[(67.0, 68.0), (71.0, 72.0)]).run();
    let clock = run.quality.clocks.iter().find(|clock| clock.hosts == ["h1", "h3"]).unwrap();
    assert!(clock.bounds_s[0] < 0.0 && (clock.offset_s - 5e-3).abs() < 1e-9, "{clock:?}");
    // Replied at 70 ms by its own clock, at 65 ms by the other.
    let calls = run.calls();
    let of_log = |kind: &str| calls.iter().filter(|call| **call == format!("log.write {kind} mysql.load")).count();
    assert_eq!((of_log("sync"), of_log("sync/2")), (50, 50), "{calls:?}");
}

#[test]
fn a_call_at_a_reply_that_clocks_leave_open_is_waited_for() {
    // The shortest wait of 1 ms puts the reply, sent at 70 ms, at 71 ms.
    let run = wide_bounds_among_wrong_clocks(1.0, &[(70.5, 76.0)]).run();
    let calls = run.calls();
    assert_eq!(calls.iter().filter(|call| *call == "log.write sync/2 mysql.load").count(), 50, "{calls:?}");
    assert_eq!((run.count("clock_leaves_phase_open"), run.count("outlives_caller")), (50, 0));
}

#[test]
fn a_call_around_all_that_clocks_leave_open_is_not_waited_for() {
    // The reply is at 57 ms at the earliest: a server begins before its client has the reply.
    let mut b = wide_bounds_among_wrong_clocks(1.0, &[]);
    b.client((7, 6), "log", "load", (56.2, 80.0)).trace(1).on("h3", "l").with(Attribute::DbSystem, "mysql");
    let run = b.run();
    assert!(run.calls().iter().any(|call| call == "log.write async mysql.load"), "{:?}", run.calls());
    assert_eq!((run.count("clock_leaves_phase_open"), run.count("outlives_caller")), (0, 0));
}

/// Two recordings a day apart; in the second the clock of `store`'s host stands otherwise. Each alone leaves room for one difference,
/// both together for none.
fn recordings_a_day_apart(first: f64, second: f64) -> Build {
    let mut b = skewed(40, first, 20.0);
    let mut later = skewed(40, second, 20.0);
    for span in &mut later.spans {
        span.trace.0 += 1000;
        span.start_ns += 86_400_000 * MS;
    }
    b.spans.append(&mut later.spans);
    b
}

#[test]
fn clocks_that_change_within_an_input_are_corrected_in_each_period() {
    // By 40 ms bounds of the first kind tell; by 5 ms, which they leave room for, those of the second kind do.
    for (first, second) in [(40.0, -40.0), (0.0, -3000.0), (5.0, 0.0), (-1.0, 6.0)] {
        let run = recordings_a_day_apart(first, second).run();
        let calls = run.calls();
        assert!(calls.iter().all(|call| call.contains(" sync ")), "{first} {second}: {calls:?}");
        assert_eq!((run.count("clock_residual"), run.count("outlives_caller")), (0, 0), "{first} {second}");
        let periods = &run.quality.clocks[0].periods;
        assert_eq!(periods.len(), 2, "{first} {second}: {periods:?}");
        for (period, ahead) in periods.iter().zip([first, second]) {
            assert!((period.offset_s * 1e3 - ahead).abs() <= 2.0, "{period:?}");
            assert!(period.bounds_s[0] * 1e3 <= ahead && ahead <= period.bounds_s[1] * 1e3, "{period:?}");
        }
        let from_ns = periods[1].from_ns.unwrap();
        assert!(periods[0].from_ns.is_none() && (8_000 * MS..=86_400_000 * MS + MS).contains(&from_ns), "{from_ns}");
        assert!(run.quality.text().contains("It changed: at first by"));
    }
}

/// A clock that gains 0.25 ms in each of 600 requests, 150 ms in all where requests take 20 ms: it is divided into periods, and no call
/// becomes asynchronous.
#[test]
fn a_clock_that_drifts_is_followed() {
    let mut b = skewed(600, 0.0, 20.0);
    for span in b.spans.iter_mut().filter(|span| [SpanId(3), SpanId(4)].contains(&span.id)) {
        span.start_ns += span.trace.0 as i64 * MS / 4;
    }
    let run = b.run();
    assert!(run.calls().iter().all(|call| call.contains(" sync ")));
    assert_eq!(run.count("outlives_caller"), 0);
    assert!(run.quality.clocks[0].periods.len() > 4, "{:?}", run.quality.clocks[0].periods);
}

/// A clock that gains 24 in a million: within what requests take together it gains more than they are under way for. Replies, seen half a
/// millisecond late or early, would make what ended just before them asynchronous.
#[test]
fn a_clock_that_drifts_slowly_is_followed() {
    let mut b = Build::default();
    for trace in 0..500_u128 {
        let at = trace as f64 * 500.0;
        let [asked, answered] = [1.3, 20.3].map(|ms| at + ms + at * 24e-6);
        let [served, answer, second] = [37, 61, 53].map(|step| (trace * step % 100) as f64 / 20.0);
        b.server((1, 0), "web", "get", (at, at + 60.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 1.0, at + 3.6 + served)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "shop", "read", (asked, asked + 2.0 + served)).trace(trace + 1).on("h2", "s");
        b.client((4, 1), "web", "buy", (at + 20.0, at + 30.6 + answer)).trace(trace + 1).on("h1", "w");
        let reply = answered + 10.0 + answer;
        b.server((5, 4), "shop", "buy", (answered, reply + 4.0 + second)).trace(trace + 1).on("h2", "s");
        b.client((6, 5), "shop", "pay", (answered + 2.0, reply - 0.05)).trace(trace + 1).on("h2", "s").with(Attribute::DbSystem, "mysql");
    }
    let run = b.run();
    let calls = run.calls();
    assert_eq!(calls.iter().filter(|call| *call == "shop.buy sync mysql.pay").count(), 500, "{:?}", run.quality.clocks);
    assert!(run.quality.clocks[0].periods.iter().all(|period| period.bounds_s[0] <= period.bounds_s[1]));
}

/// Second phases that are always shorter than the wait before them are told from a clock that is ahead by their lengths.
#[test]
fn second_phases_shorter_than_every_wait_do_not_move_clocks() {
    let mut b = Build::default();
    for trace in 0..60_u128 {
        let at = trace as f64 * 200.0;
        // Most are short, and few long.
        let second = 0.2 + 4.0 * ((trace % 10) as f64 / 10.0).powi(3);
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 10.0, at + 30.0)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "store", "read", (at + 15.0 + (trace % 7) as f64, at + 30.0 + second)).trace(trace + 1).on("h2", "s");
    }
    let run = b.run();
    assert_eq!(run.quality.clocks[0].offset_s, 0.0);
    assert_eq!(run.quality.tasks["store"].entries["read"].self_s[1].count, 60);
}

/// A set of hosts that others join is moved only as far as all requests between the two admit.
#[test]
fn requests_over_other_hosts_bound_a_difference() {
    let mut b = Build::default();
    for trace in 0..40_u128 {
        let at = trace as f64 * 200.0;
        let jitter = (trace % 7) as f64 / 10.0;
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        // The clocks of h2 and h3 are 30 ms behind, those of both joined by narrow bounds.
        b.client((2, 1), "web", "a", (at + 10.0, at + 20.0)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "a", "a", (at - 18.0 + jitter, at - 12.0)).trace(trace + 1).on("h2", "a");
        b.client((4, 3), "a", "b", (at - 17.0 + jitter, at - 13.0)).trace(trace + 1).on("h2", "a");
        b.server((5, 4), "b", "b", (at - 16.9 + jitter, at - 13.1)).trace(trace + 1).on("h3", "b");
        // Seldom asked at once: alone it would be 20 ms behind at the least.
        b.client((6, 1), "web", "b", (at + 40.0, at + 90.0)).trace(trace + 1).on("h1", "w");
        b.server((7, 6), "b", "b2", (at + 20.0 + jitter, at + 65.0)).trace(trace + 1).on("h3", "b");
    }
    let run = b.run();
    let offset = |hosts: [&str; 2]| run.quality.clocks.iter().find(|c| c.hosts == hosts).unwrap().offset_s * 1e3;
    assert!((offset(["h1", "h3"]) - offset(["h1", "h2"]) - offset(["h2", "h3"])).abs() < 1e-6);
    assert!(run.quality.clocks.iter().all(|c| c.bounds_s[0] <= c.offset_s && c.offset_s <= c.bounds_s[1]));
    assert!((offset(["h1", "h3"]) + 30.0).abs() < 3.0);
    assert!(run.calls().iter().all(|call| call.contains(" sync ")));
}

/// Requests that all wait for a busy server with a second phase, and are answered soon after it turned to them: the shortest wait tells
/// less than the replies.
#[test]
fn where_every_request_waits_replies_tell_the_clock() {
    let mut b = Build::default();
    for trace in 0..100_u128 {
        let at = trace as f64 * 2000.0;
        let (wait, answer) = (20.0 + (trace * 37 % 100) as f64 * 8.0, 0.1 + (trace * 61 % 100) as f64 / 50.0);
        let start = at + 10.0 + wait + 5.0;
        b.server((1, 0), "web", "get", (at, at + 1000.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 10.0, at + 10.0 + wait + answer)).trace(trace + 1).on("h1", "w");
        b.server((3, 2), "store", "read", (start, start + answer + 70.0)).trace(trace + 1).on("h2", "s");
    }
    let clocks = b.run().quality.clocks;
    assert!((clocks[0].offset_s * 1e3 - 5.0).abs() < 3.0, "{clocks:?}");
    assert!(clocks[0].bounds_s[0] * 1e3 <= 5.0 && 5.0 <= clocks[0].bounds_s[1] * 1e3, "{clocks:?}");
}

/// What is told of clocks at the end rests on all requests, whether traces were completed on the way, with the clocks as they were
/// known then, or all at once: a clock that is set meanwhile, and a host that is asked seldom.
#[test]
fn clocks_are_told_the_same_however_long_spans_were_held() {
    let mut b = Build::default();
    for trace in 0..3000_u128 {
        let (at, delay) = (trace as f64 * 200.0, 2.0 + (trace % 11) as f64 / 10.0);
        b.server((1, 0), "web", "get", (at, at + 100.0)).trace(trace + 1).on("h1", "w");
        let mut call = |id: u64, task: &str, host: &str, sent: f64, ahead: f64| {
            b.client((id, 1), "web", "read", (sent, sent + 2.0 * delay + 10.0)).trace(trace + 1).on("h1", "w");
            let start = sent + delay + ahead;
            b.server((id + 1, id), task, "read", (start, start + 10.0)).trace(trace + 1).on(host, task);
        };
        call(2, "store", "h2", at + 10.0, if trace < 1500 { 40.0 } else { 90.0 });
        if trace % 50 == 0 {
            call(4, "mail", "h3", at + 50.0, -30.0);
        }
    }
    let whole = b.run();
    let on_the_way = b.run_with(&SpanOptions { hold_spans: 0, idle_timeout_ns: 1_000_000_000, ..SpanOptions::default() });
    assert_eq!(on_the_way.quality.clocks, whole.quality.clocks);
    let clock = |host: &str| whole.quality.clocks.iter().find(|clock| clock.hosts == ["h1".to_owned(), host.to_owned()]).unwrap();
    let offsets_ms: Vec<f64> = clock("h2").periods.iter().map(|period| period.offset_s * 1e3).collect();
    assert!(matches!(offsets_ms[..], [first, second] if (first - 40.0).abs() < 2.0 && (second - 90.0).abs() < 2.0), "{offsets_ms:?}");
    assert!((clock("h3").offset_s * 1e3 + 30.0).abs() < 2.0, "{:?}", clock("h3"));
}

/// 100 requests that are under way for 0.5 to 1.5 ms each way, by a clock that is ahead by 2 ms, with a second phase of `second` ms at the mean.
fn requests_with_symmetric_delays(seed: u64, second: f64) -> Build {
    let mut state = seed * 7919 + 12_345;
    let mut share = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut b = Build::default();
    for trace in 0..100_u128 {
        let at = trace as f64 * 400.0;
        let (sent, answered) = (0.5 + share(), 0.5 + share());
        let served = 5.0 - 15.0 * (1.0 - share()).ln();
        let second = -second * (1.0 - share()).ln();
        b.server((1, 0), "web", "get", (at, at + 300.0)).trace(trace + 1).on("h1", "w");
        b.client((2, 1), "web", "read", (at + 10.0, at + 10.0 + sent + served + answered)).trace(trace + 1).on("h1", "w");
        let start = at + 10.0 + sent + 2.0;
        b.server((3, 2), "store", "read", (start, start + served + second)).trace(trace + 1).on("h2", "s");
    }
    b
}

/// Bounds that hold for every request leave room for clocks that are the same, by which all requests would be served beyond their replies.
#[test]
fn delays_without_a_tail_are_no_second_phases() {
    for seed in 0..20 {
        let run = requests_with_symmetric_delays(seed, 0.0).run();
        assert_eq!(run.quality.tasks["store"].entries["read"].self_s[1].count, 0, "{seed}");
        assert!((run.quality.clocks[0].offset_s * 1e3 - 2.0).abs() < 1.0, "{seed}: {:?}", run.quality.clocks);
        let run = requests_with_symmetric_delays(seed, 5.0).run();
        assert!(run.quality.tasks["store"].entries["read"].self_s[1].count > 60, "{seed}: second phases have a tail");
    }
}

/// A request of web on h1 of 20 ms in a trace of its own, with calls of the given times by the clock of store on h2, which alone saw them; that is
/// ahead by `ahead` ms.
fn served_only_in(b: &mut Build, trace: u128, ahead: f64, calls: &[(f64, f64)], hosts: [&str; 2]) {
    let at = trace as f64 * 200.0;
    b.server((1, 0), "web", "get", (at, at + 20.0)).trace(trace + 1).on(hosts[0], "w");
    for (k, (start, end)) in calls.iter().enumerate() {
        let times = (at + start + ahead, at + end + ahead);
        b.server((2 + k as u64, 1), "store", "read", times).trace(trace + 1).on(hosts[1], "s");
    }
}

/// As [`served_only_in`], in `n` traces.
fn served_only(n: u128, ahead: f64, calls: &[(f64, f64)], hosts: [&str; 2]) -> Run {
    let mut b = Build::default();
    (0..n).for_each(|trace| served_only_in(&mut b, trace, ahead, calls, hosts));
    b.run()
}

#[test]
fn clocks_that_nothing_compares_make_no_call_asynchronous() {
    for ahead in [-40.0, -5.0, 0.0, 5.0, 9.0, 40.0, 3.6e6] {
        let run = served_only(10, ahead, &[(3.0, 13.0)], ["h1", "h2"]);
        assert!(run.calls().iter().all(|call| call.contains(" sync ")), "{ahead}: {:?}", run.calls());
        let assumed = if ahead == 0.0 || ahead == 5.0 { 0 } else { 10 };
        assert_eq!((run.self_ms("web.get"), run.count("clocks_not_compared")), ([Some(10.0), None], assumed), "{ahead}");
    }
}

/// All calls of one host move together, so that none overlap that did not.
#[test]
fn calls_that_follow_one_another_stay_apart_where_clocks_are_assumed() {
    for ahead in [-9.0, 9.0] {
        let run = served_only(10, ahead, &[(1.0, 6.0), (7.0, 12.0), (13.0, 18.0)], ["h1", "h2"]);
        assert!(run.calls().iter().all(|call| call.ends_with("web.get") || call == "web.get sync store.read"), "{:?}", run.calls());
        assert_eq!(run.self_ms("web.get"), [Some(5.0), None]);
    }
}

/// One clock for both, a call that does not fit, or others that no difference brings inside with it: the clock decides.
#[test]
fn what_does_not_speak_for_a_wrong_clock_goes_by_the_clock() {
    assert_eq!(n_async(&served_only(10, 0.0, &[(12.0, 22.0)], ["h1", "h1"])), 10);
    assert_eq!(n_async(&served_only(10, 0.0, &[(5.0, 30.0)], ["h1", "h2"])), 10);
    let run = served_only(10, 0.0, &[(0.0, 8.0), (9.0, 19.0), (18.0, 36.0)], ["h1", "h2"]);
    assert_eq!((n_async(&run), run.count("clocks_not_compared")), (10, 0));
}

fn n_async(run: &Run) -> usize {
    run.calls().iter().filter(|call| *call == "web.get async store.read").count()
}

/// A clock is that of all traces: one call that ends late is asynchronous if the others say that the clock is right, or by how much it is wrong.
#[test]
fn one_trace_alone_moves_no_clock() {
    for (ahead, n_assumed) in [(0.0, 0), (9.0, 40), (-9.0, 40)] {
        for hosts in [["h1", "h2"], ["h2", "h1"]] {
            let mut b = Build::default();
            (0..40).for_each(|trace| served_only_in(&mut b, trace, ahead, &[(1.0, 19.0)], hosts));
            served_only_in(&mut b, 40, ahead, &[(15.0, 25.0)], hosts);
            for run in [b.run(), b.run_with(&SpanOptions { hold_spans: 0, idle_timeout_ns: 1_000_000_000, ..SpanOptions::default() })] {
                assert_eq!((n_async(&run), run.count("clocks_not_compared")), (1, n_assumed), "{ahead} {hosts:?}");
                assert_eq!(run.self_ms("web.get"), [Some(2.0), None], "{ahead} {hosts:?}");
            }
            let examples = b.run().quality.spans.remarks.get("clocks_not_compared").map(|reason| reason.examples[0].clone());
            let expected = (n_assumed > 0).then(|| format!("0000000000000001/0000000000000002 ({} to {})", hosts[0], hosts[1]));
            assert_eq!(examples, expected);
        }
    }
}

/// A clock that is set between recordings is another clock after that.
#[test]
fn a_clock_that_nothing_compares_may_be_set() {
    let mut b = Build::default();
    (0..30).for_each(|trace| served_only_in(&mut b, trace, 9.0, &[(3.0, 13.0)], ["h1", "h2"]));
    (30..60).for_each(|trace| served_only_in(&mut b, trace, -9.0, &[(3.0, 13.0)], ["h1", "h2"]));
    let run = b.run();
    assert_eq!((n_async(&run), run.count("clocks_not_compared")), (0, 60));
}

/// Parts of an input, merged, know what all of them say.
#[test]
fn parts_judge_clocks_together() {
    let part = |traces: std::ops::Range<u128>, calls: &[(f64, f64)]| {
        let mut b = Build::default();
        // Hosts are met in another order in each.
        b.server((1, 0), "other", "x", (0.0, 1.0)).trace(9000 + traces.start).on(if traces.start == 0 { "h1" } else { "h2" }, "o");
        traces.for_each(|trace| served_only_in(&mut b, trace, 9.0, calls, ["h1", "h2"]));
        let mut spans = Spans::new(SpanOptions::default());
        b.spans.iter().for_each(|span| spans.feed(span, &b.texts, &mut |_| {}));
        spans
    };
    let mut whole = part(0..3, &[(15.0, 25.0)]);
    whole.merge(part(10..50, &[(1.0, 19.0)]));
    let mut all = Interactions::default();
    let outcome = whole.finish(&mut |batch| all.merge(batch));
    let run = Run { interactions: all, quality: outcome.quality, hints: outcome.hints };
    assert_eq!((n_async(&run), run.count("clocks_not_compared")), (3, 40));
}
