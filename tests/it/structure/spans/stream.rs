//! Streams: time-outs, bounds, late spans, interleaving, parts that are merged.

use layerfit::structure::interactions::Workload;
use proptest::prelude::*;

use super::*;

fn feed_all(spans: &mut Spans, build: &Build, range: std::ops::Range<usize>) -> Vec<Interactions> {
    let mut batches = Vec::new();
    for span in &build.spans[range] {
        spans.feed(span, &build.texts, &mut |batch| batches.push(batch));
    }
    batches
}

/// Many shops, one every second.
fn shops(n: u128) -> Build {
    let mut b = shop();
    for trace in 2..=n {
        b.repeat(trace, 1000.0 * trace as f64);
    }
    b
}

#[test]
fn traces_are_handed_over_after_the_time_out() {
    let b = shops(5000);
    let mut spans = Spans::new(SpanOptions { hold_spans: 0, idle_timeout_ns: 10_000 * MS, ..SpanOptions::default() });
    let batches = feed_all(&mut spans, &b, 0..b.spans.len());
    assert!(batches.len() > 2, "batches are handed over on the way");
    assert!(spans.n_held() < 100, "{} spans held of traces of the last ten seconds", spans.n_held());
    let mut n: usize = batches.iter().map(|batch| batch.traces.len()).sum();
    let quality = spans.finish(&mut |batch| n += batch.traces.len()).quality;
    assert_eq!((n, quality.traces.complete, quality.traces.early), (5000, 5000, 0));
}

#[test]
fn a_small_input_is_seen_as_a_whole() {
    let b = shops(100);
    let mut spans = Spans::default();
    assert!(feed_all(&mut spans, &b, 0..b.spans.len()).is_empty());
    assert_eq!(spans.n_held(), b.spans.len());
}

#[test]
fn late_spans_go_on_with_their_trace() {
    let mut b = shops(300);
    let options = SpanOptions { hold_spans: 0, idle_timeout_ns: 1000 * MS, ..SpanOptions::default() };
    b.server((90, 1), "late", "x", (50.0, 60.0));
    let run = b.run_with(&options);
    assert_eq!((run.count("late_span"), run.quality.traces.late), (1, 1));
    let continued: Vec<&str> = run.interactions.traces.iter().filter(|t| t.continued).map(|t| t.name.as_str()).collect();
    assert_eq!(continued, ["0000000000000001"]);
    // What came late is in the model, as often as it was seen.
    let extraction = run.model();
    let calls = extraction.model.tasks.iter().flat_map(|task| &task.entries).flat_map(|entry| &entry.phases);
    let means: Vec<(&str, f64)> =
        calls.flat_map(|phase| &phase.activity.calls).map(|call| (call.dest.as_str(), call.mean.literal().unwrap())).collect();
    assert!(means.iter().all(|(_, mean)| mean.is_finite() && *mean > 0.0), "{means:?}");
    let late: f64 = means.iter().filter(|(dest, _)| dest.starts_with("late.")).map(|(_, mean)| mean).sum();
    assert!((late - 1.0 / 300.0).abs() < 1e-9, "{means:?}");
}

/// A stream tells at any time what it would tell at its end: threads, instances and the rate of arrivals.
#[test]
fn a_stream_that_goes_on_has_a_workload() {
    let b = shops(300);
    let mut spans = Spans::new(SpanOptions { hold_spans: 0, idle_timeout_ns: 1000 * MS, ..SpanOptions::default() });
    feed_all(&mut spans, &b, 0..b.spans.len());
    let (hints, quality) = (spans.hints(), spans.quality());
    let outcome = spans.finish(&mut |_| {});
    let rate = |hints: &Hints| match hints.processes["Client"].workload {
        Some(Workload::Open { rate }) => rate,
        other => panic!("{other:?}"),
    };
    assert!((rate(&hints) - 1.0).abs() < 0.02 && (rate(&outcome.hints) - 1.0).abs() < 0.02, "{hints:?}");
    assert_eq!((hints.processes["web"].threads, quality.tasks["web"].concurrency), (Some(1), 1));
}

#[test]
fn a_bound_completes_the_oldest_early() {
    let mut b = Build::default();
    for trace in 1..=2000_u128 {
        b.server((1, 0), "web", "get", (0.001 * trace as f64, 10_000.0)).trace(trace).unfinished();
    }
    let mut spans = Spans::new(SpanOptions { max_open_spans: 100, ..SpanOptions::default() });
    for span in &b.spans {
        spans.feed(span, &b.texts, &mut |_| {});
        assert!(spans.n_held() <= 100);
    }
    let quality = spans.finish(&mut |_| {}).quality;
    // A trace of one span counts as three.
    assert_eq!((quality.traces.early, quality.spans.used), (1967, 2000));
}

#[test]
fn one_endless_trace_is_bounded() {
    let mut b = Build::default();
    for id in 1..=5000_u64 {
        b.server((id, id - 1), if id % 2 == 0 { "a" } else { "b" }, "x", (id as f64 * 0.01, 1000.0));
    }
    let options = SpanOptions { max_trace_spans: 1000, ..SpanOptions::default() };
    let run = b.run_with(&options);
    assert_eq!(run.quality.traces.early, 5);
    assert_eq!(run.quality.spans.used, 5000);
}

/// One span of the far future does not complete everything else.
#[test]
fn a_single_wrong_clock_does_not_end_all_traces() {
    let mut b = shop();
    b.spans.truncate(2);
    b.server((77, 0), "odd", "x", (1e9, 1e9 + 1.0)).trace(5);
    b.spans.extend(shop().spans.split_off(2));
    let run = b.run_with(&SpanOptions { hold_spans: 0, ..SpanOptions::default() });
    assert_eq!((run.quality.traces.late, run.quality.traces.complete), (0, 2));
}

#[test]
fn texts_may_be_replaced() {
    let b = shop();
    let mut spans = Spans::default();
    let mut n = 0;
    feed_all(&mut spans, &b, 0..b.spans.len());
    spans.forget_texts();
    let mut other = Build::default();
    other.server((1, 0), "elsewhere", "y", (0.0, 1.0)).trace(9);
    feed_all(&mut spans, &other, 0..1);
    let quality = spans.finish(&mut |batch| n += batch.occurrences.len()).quality;
    assert!(quality.tasks.contains_key("elsewhere") && quality.tasks.contains_key("mail"));
    assert!(n > 0);
}

fn merged(b: &Build, is_first: impl Fn(usize) -> bool) -> Run {
    let mut halves = [Spans::default(), Spans::default()];
    for (index, span) in b.spans.iter().enumerate() {
        // Each half has texts of its own, numbered in its own order.
        let half = usize::from(!is_first(index));
        halves[half].feed(span, &b.texts, &mut |_| panic!("held"));
    }
    let [mut first, second] = halves;
    first.merge(second);
    let mut interactions = Interactions::default();
    let outcome = first.finish(&mut |batch| interactions.merge(batch));
    Run { interactions, quality: outcome.quality, hints: outcome.hints }
}

/// Parts that each hold as much as one stream may are no more than that together, and lose nothing.
#[test]
fn what_is_merged_is_bounded_as_one_stream_is() {
    let mut b = Build::default();
    for n in 0..2000_u64 {
        let (start, trace) = (n as f64 * 1000.0, u128::from(n) + 1);
        b.server((3 * n + 1, 0), "web", "get", (start, start + 5.0)).trace(trace);
        b.client((3 * n + 2, 3 * n + 1), "web", "row", (start + 1.0, start + 4.0)).trace(trace);
        b.server((3 * n + 3, 3 * n + 2), "db", "row", (start + 1.5, start + 3.5)).trace(trace);
    }
    let options = SpanOptions { hold_spans: 500, ..SpanOptions::default() };
    let mut parts: Vec<Spans> = (0..5).map(|_| Spans::new(options.clone())).collect();
    for span in &b.spans {
        // A trace is whole in its part.
        parts[(span.trace.0 % 5) as usize].feed(span, &b.texts, &mut |_| {});
    }
    assert!(parts.iter().map(Spans::n_held).sum::<usize>() > 2000);
    let merged = parts.into_iter().reduce(|mut all, part| {
        all.merge(part);
        all.complete_merged(&mut |_| {});
        assert!(all.n_held() <= 500, "{}", all.n_held());
        all
    });
    let quality = merged.unwrap().finish(&mut |_| {}).quality;
    assert_eq!((quality.traces.early, quality.traces.late, quality.traces.complete), (0, 0, 2000));
    assert_eq!(quality.spans.used, b.spans.len() as u64);
}

/// While no part has completed anything, traces may be divided among them, and are whole up to the bound of memory.
#[test]
fn traces_divided_among_small_parts_are_whole() {
    let b = system();
    let whole = |max_open_spans: usize| {
        let options = SpanOptions { hold_spans: b.spans.len() / 2 + 1, max_open_spans, ..SpanOptions::default() };
        let mut parts: Vec<Spans> = (0..3).map(|_| Spans::new(options.clone())).collect();
        for (index, span) in b.spans.iter().enumerate() {
            parts[index % 3].feed(span, &b.texts, &mut |_| panic!("held"));
        }
        let mut interactions = Interactions::default();
        let merged = parts.into_iter().reduce(|mut all, part| {
            all.merge(part);
            all.complete_merged(&mut |batch| interactions.merge(batch));
            assert!(all.n_held() <= max_open_spans);
            all
        });
        let outcome = merged.unwrap().finish(&mut |batch| interactions.merge(batch));
        Run { interactions, quality: outcome.quality, hints: outcome.hints }
    };
    assert_eq!(sorted(whole(b.spans.len())), sorted(b.run()));
    assert!(whole(b.spans.len() * 3 / 4).quality.traces.early > 0);
}

/// A few hundred spans of several traces, skewed and overlapping.
fn system() -> Build {
    let mut b = shop();
    b.request((30, 1), "web", "ads", "show", (12.0, 49.0), 3.0);
    b.server((31, 77), "lost", "x", (3.0, 4.0));
    for trace in 2..=30 {
        b.repeat(trace, 77.7 * trace as f64);
    }
    b.span((3, 0), "worker", "batch", SpanKind::Consumer, (5000.0, 5010.0)).trace(99).link(1, 5).link(2, 5);
    b
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_order_of_spans_does_not_matter(seed in any::<u64>()) {
        let b = system();
        let mut shuffled = b.clone();
        let mut state = seed | 1;
        for i in (1..shuffled.spans.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.spans.swap(i, (state >> 33) as usize % (i + 1));
        }
        prop_assert_eq!(sorted(b.run()), sorted(shuffled.run()));
    }

    #[test]
    fn two_halves_merged_are_the_whole(pattern in any::<u64>()) {
        let b = system();
        let parts = merged(&b, |index| (pattern >> (index % 64)) & 1 == 0);
        prop_assert_eq!(sorted(b.run()), sorted(parts));
    }
}

/// Results with maps in order of their keys.
fn sorted(run: Run) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut quality, hints) = run.canonical();
    quality.tasks.sort_unstable_keys();
    for task in quality.tasks.values_mut() {
        task.entries.sort_unstable_keys();
        for entry in task.entries.values_mut() {
            entry.calls.sort_by(|a, b| (&a.to, &a.kind, a.phase).cmp(&(&b.to, &b.kind, b.phase)));
        }
    }
    quality.spans.remarks.sort_unstable_keys();
    quality.spans.set_aside.sort_unstable_keys();
    lines.extend(serde_json::to_string_pretty(&quality).unwrap().lines().map(str::to_owned));
    (lines, hints)
}

/// One message that very many traces link to: those beyond the bound are not known to follow from it, which is said.
#[test]
fn links_beyond_what_is_joined_are_counted() {
    let mut b = Build::default();
    b.span((1, 0), "api", "send", SpanKind::Producer, (0.0, 1.0));
    for trace in 2..=1100 {
        b.span((1, 0), "worker", "handle", SpanKind::Consumer, (2.0, 3.0)).trace(trace).link(1, 1);
    }
    let run = b.run();
    assert_eq!(run.count("link_not_joined"), 100);
    let reason = &run.quality.spans.remarks["link_not_joined"];
    assert!(reason.examples[0].ends_with("to 0000000000000001/0000000000000001"), "{:?}", reason.examples);
    assert_eq!(run.calls().iter().filter(|call| *call == "Client async worker.handle").count(), 100);
}

#[test]
fn links_to_completed_traces_are_counted() {
    let mut b = Build::default();
    b.span((1, 0), "api", "send", SpanKind::Producer, (0.0, 1.0));
    b.server((2, 0), "api", "get", (100_000.0, 100_001.0)).trace(2);
    b.server((3, 0), "api", "get", (100_002.0, 100_003.0)).trace(3);
    b.span((4, 0), "worker", "handle", SpanKind::Consumer, (100_004.0, 100_005.0)).trace(4).link(1, 1);
    let run = b.run_with(&SpanOptions { hold_spans: 0, ..SpanOptions::default() });
    assert_eq!((run.count("late_link"), run.count("link_not_joined")), (1, 0));
}

const LOWER: u128 = 0x9e37_79b9_7f4a_7c15;
const WHOLE: u128 = (7 << 64) | LOWER;

/// A trace whose id `web` gives whole and `cart`, or the exporter of `mail`, by its lower half.
fn mixed_ids() -> Build {
    let mut b = shop();
    for span in &mut b.spans {
        span.trace = TraceId(if [1, 2, 5, 7].contains(&span.id.0) { WHOLE } else { LOWER });
    }
    b
}

#[test]
fn the_lower_half_of_an_id_is_the_same_trace() {
    let expected = shop().run();
    let mut b = mixed_ids();
    for _ in 0..b.spans.len() {
        b.spans.rotate_left(1);
        let run = b.run();
        assert_eq!(run.calls(), expected.calls());
        assert_eq!((run.count("short_trace_id"), run.count("missing_parent"), run.quality.traces.complete), (1, 0, 1));
        assert_eq!(run.interactions.traces[0].name, "00000000000000079e3779b97f4a7c15");
    }
}

#[test]
fn the_lower_half_of_an_id_is_the_same_trace_in_another_file_and_in_links() {
    let b = mixed_ids();
    for whole_first in [true, false] {
        let [mut first, second] = [whole_first, !whole_first].map(|is_whole| {
            let mut spans = Spans::new(SpanOptions::default());
            b.spans.iter().filter(|span| (span.trace.0 >> 64 > 0) == is_whole).for_each(|span| spans.feed(span, &b.texts, &mut |_| {}));
            spans
        });
        first.merge(second);
        let mut n_traces = 0;
        let quality = first.finish(&mut |batch| n_traces += batch.traces.len()).quality;
        assert_eq!((quality.traces.complete, n_traces), (1, 1));
    }
    let mut b = Build::default();
    b.span((1, 0), "api", "send", SpanKind::Producer, (0.0, 1.0)).trace(WHOLE);
    b.span((3, 0), "worker", "handle", SpanKind::Consumer, (2.0, 3.0)).trace(2).link(LOWER, 1);
    for _ in 0..2 {
        b.run().check(&["api async worker.handle"]);
        b.spans.reverse();
    }
}

/// Two whole ids are two traces, whatever their lower halves.
#[test]
fn whole_ids_that_differ_are_different_traces() {
    let mut b = Build::default();
    for upper in 1..=3_u128 {
        b.server((1, 0), "web", "get", (0.0, 1.0)).trace((upper << 64) | LOWER);
        // Numbers that were counted: the first of them with an upper half of zeros.
        b.server((1, 0), "web", "get", (0.0, 1.0)).trace(((upper - 1) << 64) | 1);
    }
    let run = b.run();
    assert_eq!((run.interactions.traces.len(), run.count("duplicate"), run.count("short_trace_id")), (6, 0, 0));
}
