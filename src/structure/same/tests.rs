use proptest::prelude::*;

use super::{find_interactions, forest::Forest};
use crate::{
    structure::{
        SecondPhase, Timing,
        interactions::{Interaction, InteractionKind, Interactions},
    },
    trace::{
        Time,
        names::Names,
        same::{LocalEvent, Message, MessageLog, TraceLog},
        units::Units,
    },
};

const N_UNITS: u32 = 6;

fn units() -> Units {
    let mut units = Units::default();
    for unit in 0..N_UNITS {
        units.intern(&format!("U{unit}"), "");
    }
    units
}

fn message(sender: u32, receiver: u32, sent: i64, received: i64) -> Message {
    Message { sender, receiver, sent: Some(Time::from_ticks(sent)), received: Time::from_ticks(received), operation: None }
}

/// A random trace: messages with ascending times of reception and the given latencies, and a few local events.
fn traces(max_latency: i64) -> impl Strategy<Value = TraceLog> {
    let row = (0..N_UNITS, 1..N_UNITS, 0..3_i64, 0..=max_latency);
    let local = (0..N_UNITS, 0..100_i64);
    (prop::collection::vec(row, 1..80), prop::collection::vec(local, 0..4)).prop_map(|(rows, local)| {
        let mut received = 0;
        let messages = rows.into_iter().map(|(sender, offset, gap, latency)| {
            received += gap;
            message(sender, (sender + offset) % N_UNITS, received - latency, received)
        });
        let mut local_events: Vec<LocalEvent> =
            local.into_iter().map(|(unit, time)| LocalEvent { unit, time: Time::from_ticks(time) }).collect();
        local_events.sort_by_key(|event| event.time);
        TraceLog { name: "t".into(), scenario: 0, messages: messages.collect(), local_events }
    })
}

fn second_phases() -> impl Strategy<Value = SecondPhase> {
    prop_oneof![Just(SecondPhase::Detect), Just(SecondPhase::Ignore)]
}

fn found(trace: TraceLog, timing: Timing, second_phase: SecondPhase) -> Interactions {
    let mut scenarios = Names::default();
    scenarios.intern("s");
    let log = MessageLog { units: units(), scenarios, traces: vec![trace], ..MessageLog::default() };
    find_interactions(log, timing, second_phase)
}

/// Messages that interactions account for: 2 · Sync + Σ N(Forward) + Async.
fn n_messages(interactions: &[Interaction]) -> usize {
    let of = |i: &Interaction| match i.kind {
        InteractionKind::Sync => 2,
        InteractionKind::Async => 1,
        InteractionKind::Forward => i.via.len() + 2,
    };
    interactions.iter().map(of).sum()
}

fn in_degrees(found: &Interactions) -> Vec<usize> {
    let mut degrees = vec![0; found.occurrences.len()];
    for interaction in &found.interactions {
        interaction.via.iter().chain([&interaction.to]).for_each(|o| degrees[*o] += 1);
    }
    degrees
}

fn is_forest(found: &Interactions) -> bool {
    let degrees = in_degrees(found);
    let single = degrees.iter().zip(&found.occurrences).all(|(degree, o)| *degree == usize::from(!o.originator));
    let ordered = |i: &Interaction| [&i.from].into_iter().chain(&i.via).chain([&i.to]).is_sorted_by(|a, b| a < b);
    single && found.interactions.iter().all(ordered)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// After every step: no zombie root, no zombie leaf, every root has at most one child, `live` marks what is live.
    #[test]
    fn forest_is_proper_after_every_message(trace in traces(0), second_phase in second_phases()) {
        let mut forest = Forest::new(second_phase);
        for message in &trace.messages {
            forest.message(message);
            prop_assert_eq!(forest.broken_invariant(), None);
        }
    }

    /// Every message is accounted for exactly once, every occurrence is requested at most once.
    #[test]
    fn messages_are_conserved_by_reception(trace in traces(0), second_phase in second_phases()) {
        let n = trace.messages.len();
        let found = found(trace, Timing::Reception, second_phase);
        prop_assert_eq!(n_messages(&found.interactions), n);
        prop_assert!(is_forest(&found));
    }

    /// The same with messages under way for up to ten ticks.
    #[test]
    fn messages_are_conserved_with_latency(trace in traces(10), second_phase in second_phases()) {
        let n = trace.messages.len();
        let found = found(trace, Timing::TwoPoint, second_phase);
        prop_assert_eq!(n_messages(&found.interactions), n);
        prop_assert!(is_forest(&found));
    }

    /// The two-point mode is Part B where messages take no time.
    #[test]
    fn two_point_is_part_b_without_latency(trace in traces(0), second_phase in second_phases()) {
        let by_reception = found(trace.clone(), Timing::Reception, second_phase);
        let two_point = found(trace, Timing::TwoPoint, second_phase);
        prop_assert_eq!(by_reception.interactions, two_point.interactions);
        prop_assert_eq!(by_reception.occurrences, two_point.occurrences);
    }

    /// Traces analysed apart and merged are as when analysed together.
    #[test]
    fn merged_summaries_equal_one_whole(first in traces(5), second in traces(5)) {
        let log = |traces: Vec<TraceLog>| {
            let mut scenarios = Names::default();
            scenarios.intern("s");
            MessageLog { units: units(), scenarios, traces, ..MessageLog::default() }
        };
        let find = |traces| find_interactions(log(traces), Timing::TwoPoint, SecondPhase::Detect);
        let whole = find(vec![first.clone(), second.clone()]);
        let mut merged = find(vec![first]);
        merged.merge(find(vec![second]));
        prop_assert_eq!(&whole.units, &merged.units);
        prop_assert_eq!(&whole.traces, &merged.traces);
        prop_assert_eq!(&whole.occurrences, &merged.occurrences);
        prop_assert_eq!(&whole.interactions, &merged.interactions);
        prop_assert_eq!(whole.diagnostics.into_vec(), merged.diagnostics.into_vec());
    }
}

/// Merging joins units, operations and scenarios by name, whatever their numbers were.
#[test]
fn merging_renumbers_names() {
    let of = |names: [&str; 2], scenario: &str, operation: &str| {
        let mut log = MessageLog::default();
        let sender = log.units.intern(names[0], "7");
        let receiver = log.units.intern(names[1], "");
        let operation = Some(log.operations.intern(operation));
        let scenario = log.scenarios.intern(scenario);
        let request = Message { operation, ..message(sender, receiver, 1, 2) };
        let messages = vec![request, message(receiver, sender, 3, 4)];
        log.traces.push(TraceLog { name: scenario.to_string(), scenario, messages, local_events: Vec::new() });
        find_interactions(log, Timing::Auto, SecondPhase::Detect)
    };
    let mut all = of(["A", "B"], "one", "get");
    all.merge(of(["C", "B"], "two", "put"));
    assert_eq!(all.units.names.iter().collect::<Vec<_>>(), ["A@7", "B", "C@7"]);
    assert_eq!(all.units.processes.iter().collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(all.scenarios.iter().collect::<Vec<_>>(), ["one", "two"]);
    let last = &all.occurrences[3];
    assert_eq!((last.unit, last.trace, last.operation.map(|o| all.operations.name(o))), (1, 1, Some("put")));
    assert_eq!((all.interactions[1].from, all.interactions[1].to), (2, 3));
    assert_eq!(all.traces[1].scenario, 1);
}

/// Memory is bounded by what is live: a million messages of one client and one server use three slots.
#[test]
fn slots_are_reused() {
    let mut forest = Forest::new(SecondPhase::Detect);
    for cycle in 0..10_000 {
        forest.message(&message(0, 1, cycle, cycle));
        forest.message(&message(1, 2, cycle, cycle));
        forest.message(&message(2, 1, cycle, cycle));
        forest.message(&message(1, 0, cycle, cycle));
    }
    let (in_use, slots) = forest.size();
    assert!(in_use <= 3 && slots <= 3, "{in_use} of {slots}");
    assert_eq!(forest.found().len(), 20_000);
}

/// Numbers start anew in each trace, and what is live does not leak from one to the next.
#[test]
fn each_trace_starts_afresh() {
    let open = TraceLog { name: "open".into(), messages: vec![message(0, 1, 1, 1)], ..TraceLog::default() };
    let reply = TraceLog { name: "reply".into(), messages: vec![message(1, 0, 2, 2)], ..TraceLog::default() };
    for timing in [Timing::Reception, Timing::TwoPoint] {
        let mut scenarios = Names::default();
        scenarios.intern("s");
        let log = MessageLog { units: units(), scenarios, traces: vec![open.clone(), reply.clone()], ..MessageLog::default() };
        let all = find_interactions(log, timing, SecondPhase::Detect);
        assert!(all.interactions.iter().all(|i| i.kind == InteractionKind::Async));
        assert_eq!(
            all.occurrences.iter().map(|o| (o.unit, o.number, o.trace)).collect::<Vec<_>>(),
            [(0, 1, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1)]
        );
    }
}
