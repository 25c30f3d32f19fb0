//! Whatever comes: no panic, every span accounted for, forests all the same.

use proptest::prelude::*;

use super::*;

const KINDS: [SpanKind; 6] =
    [SpanKind::Unspecified, SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
const STATUSES: [SpanStatus; 4] = [SpanStatus::Ok, SpanStatus::Error, SpanStatus::Timeout, SpanStatus::Cancelled];
const ATTRIBUTES: [Attribute; 4] =
    [Attribute::DbSystem, Attribute::MessagingConversation, Attribute::Session, Attribute::MessagingDestination];

#[derive(Clone, Debug)]
struct Any {
    ids: (u8, u8, u8),
    has_parent: bool,
    shared: bool,
    resource: (u8, u8),
    kind: u8,
    start: i64,
    duration: Option<i64>,
    status: u8,
    link: Option<(u8, u8)>,
    attribute: Option<(u8, u8)>,
}

fn spans(extreme: bool) -> impl Strategy<Value = Vec<Any>> {
    let time = if extreme { prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), 0..1000_i64].boxed() } else { (0..1000_i64).boxed() };
    let duration = if extreme { prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()].boxed() } else { (-5..300_i64).boxed() };
    let one = (
        (0..4_u8, 0..12_u8, 0..14_u8),
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.1),
        (0..4_u8, 0..3_u8),
        0..6_u8,
        time,
        prop::option::weighted(0.9, duration),
        0..8_u8,
        prop::option::weighted(0.2, (0..5_u8, 0..12_u8)),
        prop::option::weighted(0.3, (0..4_u8, 0..3_u8)),
    );
    let any = one.prop_map(|(ids, has_parent, shared, resource, kind, start, duration, status, link, attribute)| Any {
        ids,
        has_parent,
        shared,
        resource,
        kind,
        start,
        duration,
        status,
        link,
        attribute,
    });
    prop::collection::vec(any, 1..60)
}

fn build(spans: &[Any]) -> Build {
    let mut b = Build::default();
    for s in spans {
        let service = b.texts.text(["a", "b", "c", ""][s.resource.0 as usize]);
        let host = b.texts.text(["h1", "h2", "h3"][s.resource.1 as usize]);
        let resource = b.texts.resource_number(Resource { service: Some(service), host: Some(host), ..Resource::default() });
        let attributes = s.attribute.map(|(a, t)| (ATTRIBUTES[a as usize], b.texts.text(["x", "y", "z"][t as usize])));
        let name = b.texts.text("op");
        b.spans.push(Span {
            trace: TraceId(u128::from(s.ids.0)),
            id: SpanId(u64::from(s.ids.1)),
            parent: s.has_parent.then_some(SpanId(u64::from(s.ids.2))),
            shared: s.shared,
            resource,
            name,
            kind: KINDS[s.kind as usize],
            start_ns: s.start,
            is_timeless: s.start % 16 == 0,
            duration_ns: s.duration,
            status: STATUSES[s.status.saturating_sub(4) as usize],
            attributes: attributes.into_iter().collect(),
            links: s.link.map(|(t, i)| Link { trace: TraceId(u128::from(t)), span: SpanId(u64::from(i)) }).into_iter().collect(),
            adjusted_count: None,
        });
    }
    b
}

fn options() -> impl Strategy<Value = SpanOptions> {
    let keep = prop::bool::ANY.prop_map(|keep| {
        use layerfit::structure::spans::InternalSpans::{Fold, Keep};
        if keep { Keep } else { Fold }
    });
    (keep, 1..4_usize, 0..40_usize, 1..40_usize, 1..30_usize, 0..3_usize).prop_map(|(internal, entries, hold, open, large, remembered)| {
        SpanOptions {
            internal,
            entries_per_task: entries,
            peer_tasks: entries,
            hold_spans: hold,
            max_open_spans: open,
            max_trace_spans: large,
            completed_remembered: remembered,
            idle_timeout_ns: 100,
            ..SpanOptions::default()
        }
    })
}

/// Every span that is used as an occurrence is one once: occurrences are no more than spans, originators and implied ones.
fn check(run: &Run) {
    let q = &run.quality;
    assert_eq!(q.spans.read, q.spans.used + q.n_set_aside());
    assert!(!q.text().is_empty());
    assert!(run.hints.processes.values().filter_map(|p| p.threads).all(|n| n < 1000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_spans_make_a_forest(spans in spans(false)) {
        check(&build(&spans).run());
    }

    #[test]
    fn any_spans_make_a_forest_under_any_bounds(spans in spans(false), options in options()) {
        check(&build(&spans).run_with(&options));
    }

    #[test]
    fn extreme_times_do_no_harm(spans in spans(true), options in options()) {
        check(&build(&spans).run_with(&options));
    }

    #[test]
    fn any_order_is_alike(spans in spans(false)) {
        let b = build(&spans);
        let mut reversed = b.clone();
        reversed.spans.reverse();
        let (mut one, mut two) = (b.run(), reversed.run());
        for run in [&mut one, &mut two] {
            run.quality.tasks.sort_unstable_keys();
        }
        prop_assert_eq!(one.canonical().0, two.canonical().0);
        prop_assert_eq!(one.canonical().2, two.canonical().2);
    }

    #[test]
    fn a_model_can_be_made(spans in spans(false)) {
        let run = build(&spans).run();
        if !run.interactions.interactions.is_empty() {
            let extraction = run.model();
            prop_assert!(!extraction.tasks.is_empty());
        }
    }
}

/// A chain of parents as long as a trace may be: no recursion.
#[test]
fn a_long_chain_is_no_harm() {
    let mut b = Build::default();
    for id in 1..=50_000_u64 {
        b.server((id, id - 1), if id % 2 == 0 { "a" } else { "b" }, "x", (id as f64 * 0.001, 1000.0 - id as f64 * 0.001));
    }
    let run = b.run();
    assert_eq!(run.quality.spans.used, 50_000);
    assert_eq!(run.interactions.occurrences.len(), 50_001);
}
