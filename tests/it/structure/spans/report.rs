//! Quality: what was used, what was not and why; sampling; workload.

use layerfit::structure::{
    interactions::Workload,
    spans::quality::{ClockPeriod, ClockQuality, TraceCounts},
};

use super::*;

#[test]
fn spans_are_counted_by_reason_with_examples() {
    let mut b = shop();
    let again = b.spans[2].clone();
    b.spans.push(again);
    b.server((20, 21), "a", "x", (0.0, 1.0)).trace(2);
    b.server((21, 20), "b", "x", (0.5, 1.0)).trace(2);
    b.server((1, 0), "web", "x", (5.0, 4.0)).trace(3);
    b.server((1, 0), "web", "x", (5.0, 5.0)).trace(4);
    b.server((1, 0), "web", "x", (5.0, 9.0)).trace(5).unfinished();
    b.server((2, 9), "web", "x", (5.0, 9.0)).trace(6);
    let run = b.run();
    for code in ["duplicate", "cyclic_parents", "negative_duration", "zero_duration", "unfinished", "missing_parent"] {
        assert_eq!(run.count(code), 1, "{code}");
    }
    assert_eq!((run.quality.spans.read, run.quality.spans.used), (14, 13));
    assert_eq!(run.quality.spans.remarks["unfinished"].examples, ["0000000000000005/0000000000000001"]);
    let codes: Vec<String> = run.quality.diagnostics().into_vec().into_iter().map(|d| d.code).collect();
    assert!(codes.contains(&"missing_parent".to_owned()));
}

#[test]
fn an_element_built_on_three_spans_is_visibly_weak() {
    let mut b = Build::default();
    b.server((1, 0), "web", "often", (0.0, 10.0));
    b.server((1, 0), "web", "seldom", (20.0, 30.0)).trace(50);
    b.server((1, 0), "web", "seldom", (40.0, 50.0)).trace(51);
    b.server((1, 0), "web", "seldom", (60.0, 70.0)).trace(52);
    for trace in 2..=40 {
        b.repeat(trace, 100.0 * trace as f64);
    }
    let text = b.run().quality.text();
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("seldom").contains("3 occurrences only: HARDLY SUPPORTED"), "{text}");
    assert!(line("often").contains("40 occurrences;") && !line("often").contains("WEAK"), "{text}");
    assert!(line("seldom").contains("0000000000000032"), "an example to look at: {text}");
}

#[test]
fn the_report_survives_json() {
    let quality = shop().run().quality;
    let json = serde_json::to_string(&quality).unwrap();
    assert_eq!(serde_json::from_str::<Quality>(&json).unwrap(), quality);
    assert!(quality.text().contains("Spans: 7 read, 7 used, 0 set aside."), "{}", quality.text());
}

/// Reports of two parts, added, are the report of both but for what needs both at once (concurrency).
#[test]
fn reports_of_parts_add_up() {
    let mut first = shop();
    let mut second = Build::default();
    second.server((1, 0), "web", "GET /cart", (0.0, 30.0)).trace(7).on("h1", "web-1");
    second.client((2, 1), "web", "find", (10.0, 20.0)).trace(7).with(Attribute::DbSystem, "mongodb");
    let mut sum = first.run().quality;
    sum.merge(second.run().quality);
    let remap = |s: &Span, b: &mut Build| {
        let name = second.texts.texts.name(s.name);
        let name = b.texts.text(name);
        let attributes = s.attributes.iter().map(|(a, t)| (*a, b.texts.text(second.texts.texts.name(*t)))).collect();
        let resource = if s.kind == SpanKind::Server { b.spans[0].resource } else { s.resource };
        Span { name, attributes, resource, ..s.clone() }
    };
    for (index, span) in second.spans.iter().enumerate() {
        let mut moved = remap(span, &mut first);
        if index == 1 {
            let service = first.texts.text("web");
            moved.resource = first.texts.resource_number(Resource { service: Some(service), ..Resource::default() });
        }
        first.spans.push(moved);
    }
    let whole = first.run().quality;
    assert_eq!(sum.spans, whole.spans);
    assert_eq!(sum.traces, whole.traces);
    let (a, b) = (&sum.tasks["web"].entries["GET /cart"], &whole.tasks["web"].entries["GET /cart"]);
    assert_eq!((a.occurrences, a.calls.len()), (b.occurrences, b.calls.len()));
    for call in &a.calls {
        let other = b.calls.iter().find(|other| other.to == call.to).unwrap();
        assert_eq!(call.per_occurrence.count, other.per_occurrence.count);
        assert!((call.per_occurrence.mean - other.per_occurrence.mean).abs() < 1e-12);
        assert!((call.per_occurrence.sum_of_squares - other.per_occurrence.sum_of_squares).abs() < 1e-12);
    }
}

#[test]
fn sampled_traces_stand_for_many() {
    let mut b = Build::default();
    for trace in 0..10_u128 {
        b.server((1, 0), "web", "get", (100.0 * trace as f64, 100.0 * trace as f64 + 10.0)).trace(trace + 1).weight(4.0);
    }
    let run = b.run();
    assert!(run.interactions.traces.iter().all(|t| t.weight == 4.0));
    assert_eq!((run.quality.sampling.recordings, run.quality.sampling.stand_for, run.quality.sampling.said), (10, 40.0, 10));
    let Some(Workload::Open { rate }) = run.hints.processes["Client"].workload else { panic!("{:?}", run.hints) };
    assert!((rate - 40.0).abs() < 1e-9, "ten a second recorded, each for four");
    b.spans.iter_mut().for_each(|span| span.adjusted_count = None);
    let run = b.run_with(&SpanOptions { sampling_rate: Some(0.1), ..SpanOptions::default() });
    assert!(run.interactions.traces.iter().all(|t| t.weight == 10.0));
    let check = |rate| SpanOptions { sampling_rate: Some(rate), ..SpanOptions::default() }.check().map_err(|error| error.to_string());
    assert!(check(1.0).is_ok() && check(2_f64.powi(-56)).is_ok());
    // One in more than any sampler could say: their number would be none.
    for rate in [0.0, 1e-310, 1e-17, -0.5, 1.5, f64::NAN] {
        assert!(check(rate).unwrap_err().starts_with(&format!("sampling_rate is {rate}, expected a share above 0")), "{rate}");
    }
}

/// Jaeger's clients write it into root spans only, others into all.
#[test]
fn what_a_lost_root_said_of_the_sampling_its_other_spans_tell() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 10.0)).weight(8.0);
    b.client((2, 1), "web", "q", (1.0, 2.0));
    // Lost root: others tell the least.
    b.server((3, 9), "web", "get", (100.0, 110.0)).trace(2);
    b.client((4, 3), "web", "q", (101.0, 102.0)).trace(2).weight(16.0);
    b.client((5, 3), "web", "q", (103.0, 104.0)).trace(2).weight(8.0);
    // Nothing lost: the root was not sampled.
    b.server((6, 0), "web", "get", (200.0, 210.0)).trace(3);
    b.client((7, 6), "web", "q", (201.0, 202.0)).trace(3).weight(8.0);
    let run = b.run();
    let weights: Vec<f64> = run.interactions.traces.iter().map(|t| t.weight).collect();
    assert_eq!(weights, [8.0, 8.0, 1.0]);
    assert_eq!(run.count("sampling_not_said"), 1);
    assert_eq!(run.quality.spans.remarks["sampling_not_said"].examples, ["0000000000000003"]);
    let told = b.run_with(&SpanOptions { sampling_rate: Some(0.5), ..SpanOptions::default() });
    assert_eq!((told.interactions.traces[2].weight, told.count("sampling_not_said")), (2.0, 0));
}

/// Requests whose caller was not recorded, and those that did not end, arrive as all others do.
#[test]
fn roots_without_caller_or_end_count_as_arrivals() {
    for odd in ["caller", "end"] {
        let mut b = Build::default();
        for trace in 0..20_u128 {
            let at = 1000.0 * trace as f64;
            let parent = if odd == "caller" && trace % 2 == 0 { 77 } else { 0 };
            let made = b.server((1, parent), "web", "get", (at, at + 10.0)).trace(trace + 1);
            if odd == "end" && trace % 2 == 0 {
                made.unfinished();
            }
        }
        let Some(Workload::Open { rate }) = b.run().hints.processes["Client"].workload else { panic!() };
        assert!((rate - 1.0).abs() < 1e-9, "{odd}: {rate}");
    }
}

/// Three users who think 20 ms after each reply of 30 ms.
fn users(session: bool) -> Build {
    let mut b = Build::default();
    for n in 0..150_u64 {
        let (user, at) = (n % 3, (n / 3) as f64 * 50.0 + (n % 3) as f64 * 17.0);
        let made = b.server((1, 0), "web", "get", (at, at + 30.0)).trace(u128::from(n) + 1);
        if session {
            made.with(Attribute::Session, &format!("user {user}"));
        }
    }
    b
}

#[test]
fn sessions_tell_customers_and_think_time() {
    let Some(Workload::Closed { customers, think_time }) = users(true).run().hints.processes["Client"].workload else { panic!() };
    assert_eq!(customers, 3.0);
    // With it three make the 149 requests that came after the first in 2.484 s.
    assert!((think_time - (3.0 * 2.484 / 149.0 - 0.03)).abs() < 1e-6, "{think_time}");
}

#[test]
fn a_steady_number_of_requests_is_a_closed_population() {
    let Some(Workload::Closed { customers, think_time }) = users(false).run().hints.processes["Client"].workload else { panic!() };
    assert!((2.0..=4.0).contains(&customers), "{customers}");
    assert!(think_time < 0.04, "{think_time}");
}

/// Arrivals as those of a Poisson process (by a fixed linear congruence).
#[test]
fn random_arrivals_are_open() {
    let mut b = Build::default();
    let (mut state, mut at) = (12345_u64, 0.0);
    for trace in 0..2000_u128 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at += -20.0 * (((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).ln();
        b.server((1, 0), "web", "get", (at, at + 30.0)).trace(trace + 1);
    }
    let Some(Workload::Open { rate }) = b.run().hints.processes["Client"].workload else { panic!() };
    assert!((rate - 50.0).abs() < 5.0, "{rate}");
}

#[test]
fn the_mix_is_the_scenarios() {
    let mut b = Build::default();
    b.server((1, 0), "web", "browse", (0.0, 10.0)).trace(1);
    b.server((1, 0), "web", "browse", (20.0, 30.0)).trace(2);
    b.server((1, 0), "web", "buy", (40.0, 50.0)).trace(3);
    let model = b.run().model();
    let shares: Vec<(&str, u64)> = model.scenarios.iter().map(|s| (s.name.as_str(), s.traces)).collect();
    assert_eq!(shares, [("web.browse", 2), ("web.buy", 1)]);
}

/// What a server does after its client gave up is no part of the root's time, nor parallel to any.
#[test]
fn work_after_the_client_gave_up_is_told() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 50.0));
    b.client((2, 1), "web", "read", (10.0, 40.0)).status(SpanStatus::Timeout);
    b.server((3, 2), "store", "read", (10.0, 90.0));
    b.client((4, 3), "store", "q", (20.0, 80.0)).with(Attribute::DbSystem, "mysql");
    let run = b.run();
    let explained = run.quality.explained;
    let ms = |s: f64| (s * 1e6).round() / 1e3;
    assert_eq!([explained.self_s, explained.after_s, explained.unknown_s, explained.parallel_s].map(ms), [100.0, 50.0, 0.0, 0.0]);
    let line = "200.0 % self times, 0.0 % between clients and servers, 0.0 % of these parallel, 100.0 % of these after their clients had gone on, 0.0 % not known.";
    assert!(run.quality.text().contains(line), "{}", run.quality.text());
}

#[test]
fn why_the_time_of_roots_is_not_known_is_told() {
    let mut b = Build::default();
    b.server((2, 1), "web", "get", (0.0, 50.0));
    assert!(b.run().quality.text().contains("\nTime of root spans: not known, as no trace has its root.\n"));
    b.spans.iter_mut().for_each(|span| (span.is_timeless, span.parent) = (true, None));
    assert!(b.run().quality.text().contains("\nTime of root spans: not known, as spans have no times.\n"));
    let mut b = Build::default();
    b.span((1, 0), "web", "take", SpanKind::Consumer, (0.0, 50.0));
    assert!(b.run().quality.text().contains("\nTime of root spans: not known, as no root is waited for, or its end is not known.\n"));
}

#[test]
fn a_clock_that_changed_is_told_with_its_differences() {
    let period = |from_ns, offset_s| ClockPeriod { from_ns, requests: 5, offset_s, bounds_s: [offset_s - 1e-3, offset_s + 1e-3] };
    let periods = vec![period(None, 0.0), period(Some(2_500_000_000), 0.03)];
    let clock = ClockQuality { hosts: ["A".to_owned(), "B".to_owned()], requests: 10, periods, ..ClockQuality::default() };
    let text = Quality { clocks: vec![clock], traces: TraceCounts::default(), ..Quality::default() }.text();
    let expected = "Clock of B is ahead of A's by 0.000 to 30.000 ms, as it changed (10 requests).\n  \
        It changed: at first by 0.000 ms (between -1.000 and 1.000; 5 requests looked at).\n  \
        It changed: from 2.500 s by 30.000 ms (between 29.000 and 31.000; 5 requests looked at).\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_clock_that_is_the_same_in_all_periods_did_not_change() {
    let period = |from_ns, upper_s| ClockPeriod { from_ns, requests: 5, offset_s: 0.0, bounds_s: [-1e-3, upper_s] };
    let periods = vec![period(None, 1e-3), period(Some(2_500_000_000), 2e-3)];
    let clock = ClockQuality { hosts: ["A".to_owned(), "B".to_owned()], requests: 10, periods, ..ClockQuality::default() };
    let text = Quality { clocks: vec![clock], ..Quality::default() }.text();
    assert!(text.ends_with("Clock of B is ahead of A's by 0.000 ms in all 2 periods (10 requests).\n"), "{text}");
}

#[test]
fn names_do_not_break_the_lines_of_a_report() {
    let mut b = Build::default();
    b.server((1, 0), "we\nb", "get\r\nall\tof\u{1b}[1m it", (0.0, 50.0));
    let text = b.run().quality.text();
    assert!(text.contains("\nwe b: 1 instances") && text.contains("\n  get  all of [1m it: 1 occurrences"), "{text:?}");
}
