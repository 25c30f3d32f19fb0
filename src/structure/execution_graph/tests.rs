use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{structure::interactions::InteractionKind, trace::event_trace::EventKind};

const TASKS: [&str; 4] = ["A", "B", "C", "D"];
const KINDS: [EventKind; 9] = [
    EventKind::External,
    EventKind::Begin,
    EventKind::Activity,
    EventKind::Fork,
    EventKind::Send,
    EventKind::Receive,
    EventKind::SendAck,
    EventKind::ReceiveAck,
    EventKind::End,
];

fn event() -> impl Strategy<Value = Event<'static>> {
    let numbers = (0..3_u64, 1..4_u64, 1..9_u64);
    (numbers, 0..KINDS.len(), 0..TASKS.len(), prop::option::of(any::<bool>()), prop::option::of(0..5_u32)).prop_map(
        |((operation, thread, index), kind, task, ack, cpu)| {
            let kind = KINDS[kind];
            let is_fork = kind == EventKind::Fork;
            Event {
                operation,
                thread,
                next_thread: is_fork.then_some(index % 4 + 1),
                index,
                kind,
                task: TASKS[task],
                entry: "e",
                ack: ack.filter(|_| is_fork),
                cpu_ticks: cpu.map(f64::from),
            }
        },
    )
}

/// Threads with events 1, 2, … of any kind: they reach deeper than events without any order.
fn threads() -> impl Strategy<Value = Vec<Event<'static>>> {
    let thread = prop::collection::vec(event(), 1..25);
    prop::collection::vec(thread, 1..4).prop_map(|threads| {
        let numbered = |(number, mut events): (u64, Vec<Event<'static>>)| {
            let last = events.len() - 1;
            for (position, event) in events.iter_mut().enumerate() {
                (event.operation, event.thread, event.index) = (1, number, position as u64 + 1);
                match position {
                    0 => event.kind = if number == 1 { EventKind::External } else { EventKind::Begin },
                    _ if position == last => event.kind = EventKind::End,
                    _ => {}
                }
                event.next_thread = (event.kind == EventKind::Fork).then_some(event.next_thread.unwrap_or(2));
                event.ack = event.ack.filter(|_| event.kind == EventKind::Fork);
            }
            events
        };
        (1..).zip(threads).flat_map(numbered).collect()
    })
}

fn find(events: &[Event<'_>], options: &ExecutionGraphOptions) -> (Interactions, WorkloadReport) {
    let mut graphs = ExecutionGraphs::new(options.clone());
    let mut all = Interactions::default();
    for event in events {
        graphs.feed(event, &mut |batch| all.merge(batch));
    }
    let report = graphs.finish(&mut |batch| all.merge(batch));
    (all, report)
}

fn options() -> impl Strategy<Value = ExecutionGraphOptions> {
    (any::<bool>(), any::<bool>(), prop_oneof![Just(1 << 20), 1..20_usize]).prop_map(|(paper, counter, max_live_events)| {
        ExecutionGraphOptions {
            async_rpc: if paper { AsyncRpc::Paper } else { AsyncRpc::Asynchronous },
            cpu: if counter { CpuStamps::Counter } else { CpuStamps::Used },
            max_live_events,
            ..ExecutionGraphOptions::default()
        }
    })
}

/// Every event is accounted for, and what is found is a forest as [`Interactions`] wants it.
fn check(events: &[Event<'_>], options: &ExecutionGraphOptions) -> Result<(), TestCaseError> {
    let (all, report) = find(events, options);
    let counts = report.events;
    prop_assert_eq!(counts.fed, events.len() as u64);
    prop_assert_eq!(counts.used + counts.repeated + counts.late + counts.unreachable, counts.fed);
    prop_assert_eq!(report.operations, all.traces.len() as u64);
    let mut requested = HashSet::new();
    for interaction in &all.interactions {
        let chain: Vec<usize> = [interaction.from].iter().chain(&interaction.via).chain([&interaction.to]).copied().collect();
        let n_times = if interaction.kind == InteractionKind::Async { 1 } else { chain.len() };
        prop_assert_eq!(interaction.times.len(), n_times);
        prop_assert_eq!(interaction.via.is_empty(), interaction.kind != InteractionKind::Forward);
        prop_assert!(interaction.phase == 1 || interaction.phase == 2);
        for pair in chain.windows(2) {
            prop_assert!(pair[0] < pair[1], "a target is created after its requester");
            prop_assert!(requested.insert(pair[1]), "requested twice");
            prop_assert_eq!(all.occurrences[pair[0]].trace, all.occurrences[pair[1]].trace);
        }
    }
    for (index, occurrence) in all.occurrences.iter().enumerate() {
        prop_assert_ne!(occurrence.originator, requested.contains(&index), "either an originator or requested");
    }
    let total: u64 = report.entries.iter().map(|entry| entry.total).sum();
    prop_assert_eq!(total, all.occurrences.len() as u64);
    for class in &report.classes {
        prop_assert!(class.y > 0.0 && class.y.is_finite() && class.share > 0.0 && class.share <= 1.0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_events_are_accounted_for(events in prop::collection::vec(event(), 0..60), options in options()) {
        check(&events, &options)?;
    }

    #[test]
    fn any_threads_are_accounted_for(events in threads(), options in options()) {
        check(&events, &options)?;
    }

    /// Where no operation is whole before the end, the order and the dealing to parts do not matter, whatever the events.
    #[test]
    fn order_and_parts_of_open_operations_do_not_matter(events in prop::collection::vec(event(), 0..60), halves in prop::collection::vec(any::<bool>(), 60)) {
        let events: Vec<Event<'_>> = events.into_iter().filter(|event| event.kind != EventKind::End).collect();
        let options = ExecutionGraphOptions::default();
        let mut sink = |_: Interactions| {};
        let whole = find(&events, &options).1;
        let backwards: Vec<Event<'_>> = events.iter().rev().copied().collect();
        prop_assert_eq!(&find(&backwards, &options).1, &whole);
        let (mut one, mut other) = (ExecutionGraphs::new(options.clone()), ExecutionGraphs::new(options));
        for (event, first) in events.iter().zip(halves) {
            if first { one.feed(event, &mut sink) } else { other.feed(event, &mut sink) }
        }
        one.merge(other);
        prop_assert_eq!(one.finish(&mut sink), whole);
    }
}

/// Deep nests and wide fans take time in proportion: each would take hours if it were squared.
#[test]
fn deep_and_wide_operations_are_linear() {
    const N: u64 = 200_000;
    let event = |thread, index, kind, task, next_thread, ack| Event {
        operation: 1,
        thread,
        next_thread,
        index,
        kind,
        task,
        entry: "e",
        ack,
        cpu_ticks: None,
    };
    let kinds = [(EventKind::Send, "A"), (EventKind::Receive, "B"), (EventKind::Send, "B"), (EventKind::Receive, "A")];
    let mut deep: Vec<Event<'_>> =
        (0..N).map(|i| (i, kinds[(i % 4) as usize])).map(|(i, (kind, task))| event(1, i + 2, kind, task, None, None)).collect();
    deep.push(event(1, 1, EventKind::External, "A", None, None));
    // Replies by forks that do not say so, each thread looking ahead over all that is open, to a client that is not.
    let unsaid: Vec<Event<'_>> = (2..N / 2)
        .flat_map(|thread| {
            let (here, there) = if thread % 2 == 0 { ("A", "B") } else { ("B", "A") };
            let fork = event(thread, 2, EventKind::Fork, here, Some(thread + 1), None);
            [
                event(thread, 1, EventKind::Begin, here, None, None),
                fork,
                event(thread, 3, EventKind::SendAck, here, None, None),
                event(thread, 4, EventKind::ReceiveAck, if thread % 3 == 0 { "C" } else { there }, None, None),
            ]
        })
        .collect();
    let last = event(1, N + 2, EventKind::Fork, "A", Some(2), Some(true));
    let all = [deep, vec![last], unsaid].concat();
    let (found, report) = find(&all, &ExecutionGraphOptions::default());
    assert_eq!(report.events.fed, all.len() as u64);
    assert!(found.interactions.len() as u64 >= N / 2, "{}", found.interactions.len());
}
