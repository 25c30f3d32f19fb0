//! Logs as streams: through small windows and in small batches.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use proptest::prelude::*;

use super::{LogReader, ReadOptions, Recordings, Same, SameOptions, Times, Windows, arriving::arriving, forest::Forest};
use crate::{
    structure::{
        SecondPhase,
        interactions::{Interaction, InteractionKind, Interactions},
    },
    trace::{
        Source, StreamSource, Time,
        same::{Message, Step, What},
    },
};

fn options(windows: Windows, batch: usize, times: Times, second_phase: SecondPhase) -> SameOptions {
    SameOptions { read: ReadOptions { times, windows, ..ReadOptions::default() }, second_phase, batch }
}

const WHOLE: Windows = Windows { events: usize::MAX, all_events: usize::MAX, recordings: usize::MAX };

fn batches(log: &str, options: &SameOptions) -> Vec<Interactions> {
    let mut all = Vec::new();
    let mut same = Same::new(options);
    let mut found = |batch| all.push(batch);
    same.feed(vec![Source { name: "log.csv", bytes: log.as_bytes() }.stream()], &mut found).unwrap();
    same.finish(&mut found);
    all
}

fn merged(batches: Vec<Interactions>) -> Interactions {
    let mut all = Interactions::default();
    batches.into_iter().for_each(|batch| all.merge(batch));
    all
}

/// All that was found, whatever the order: occurrences, interactions, counts of oddities, recordings.
fn shown(all: &Interactions) -> [Vec<String>; 4] {
    let name = |occurrence: &usize| {
        let o = &all.occurrences[*occurrence];
        format!("{}:{}.{}", all.traces[o.trace as usize].name, all.units.names.name(o.unit), o.number)
    };
    let occurrences = all.occurrences.iter().enumerate().map(|(index, o)| {
        let operation = o.operation.map(|operation| all.operations.name(operation));
        format!("{} {operation:?} {} {:?}", name(&index), o.originator, o.self_time_ticks)
    });
    let interactions = all.interactions.iter().map(|i| {
        let chain: Vec<String> = [&i.from].into_iter().chain(&i.via).chain([&i.to]).map(name).collect();
        format!("{:?}/{} {chain:?} {:?}", i.kind, i.phase, i.times)
    });
    let oddities = all.diagnostics.clone().into_vec().into_iter().map(|d| format!("{} {}", d.code, d.count));
    let traces = all.traces.iter().filter(|t| !t.continued).map(|t| format!("{} {}", t.name, all.scenarios.name(t.scenario)));
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    [sorted(occurrences.collect()), sorted(interactions.collect()), sorted(oddities.collect()), sorted(traces.collect())]
}

/// Messages that interactions account for: 2 · Sync + Σ N(Forward) + Async.
fn n_messages(interactions: &[Interaction]) -> u64 {
    let of = |i: &Interaction| match i.kind {
        InteractionKind::Sync => 2,
        InteractionKind::Async => 1,
        InteractionKind::Forward => i.via.len() as u64 + 2,
    };
    interactions.iter().map(of).sum()
}

/// Whether every occurrence but an originator is requested once, by an earlier one, within the batch.
fn is_whole(batch: &Interactions) -> bool {
    let mut requested = vec![0; batch.occurrences.len()];
    let mut ordered = true;
    for interaction in &batch.interactions {
        let chain: Vec<usize> = [interaction.from].into_iter().chain(interaction.via.clone()).chain([interaction.to]).collect();
        ordered &= chain.is_sorted_by(|a, b| a < b);
        chain[1..].iter().for_each(|o| requested[*o] += 1);
    }
    ordered && requested.iter().zip(&batch.occurrences).all(|(n, o)| *n == i32::from(!o.originator))
}

/// A row before it is put in order: recording, sender, offset of the receiver, latency, places late, operation, local event.
type Plan = (usize, usize, usize, i64, i64, usize, bool);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let row = (0..3_usize, 0..5_usize, 1..5_usize, 0..4_i64, 0..6_i64, 0..3_usize, prop::bool::weighted(0.1));
    prop::collection::vec(row, 1..300)
}

const TASKS: [&str; 5] = ["A", "B", "C", "D", "E"];

/// Rows in the order of the places where they come too late.
fn log(header: &str, mut rows: Vec<(i64, String)>) -> String {
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().fold(format!("{header}\n"), |log, (_, row)| log + &row + "\n")
}

fn message_log(plans: &[Plan]) -> String {
    let row = |(index, (trace, sender, offset, latency, late, operation, _)): (usize, &Plan)| {
        let received = 10 * index as i64;
        let (from, to) = (TASKS[*sender], TASKS[(sender + offset) % 5]);
        let operation = ["get", "put", ""][*operation];
        (received + 10 * late, format!("t{trace},{from},{to},{},{received},{operation}", received - 10 * latency))
    };
    log("trace,sender,receiver,sent,received,operation", plans.iter().enumerate().map(row).collect())
}

fn event_log(plans: &[Plan]) -> String {
    let mut rows = Vec::new();
    for (index, (trace, sender, offset, latency, late, operation, is_local)) in plans.iter().enumerate() {
        let (received, from, to) = (10 * index as i64, TASKS[*sender], TASKS[(sender + offset) % 5]);
        let sent = received - 10 * latency;
        // Without ids, a type for each pair of tasks.
        let id = if *operation == 2 { format!("m{index}") } else { String::new() };
        let operation = format!("{}{from}{to}", ["get", "put", ""][*operation]);
        if *is_local {
            rows.push((received + 10 * late, format!("t{trace},{received},event,{from},,")));
        } else {
            rows.push((sent + 10 * late, format!("t{trace},{sent},send,{from},{operation},{id}")));
            rows.push((received + 10 * late, format!("t{trace},{received},receive,{to},{operation},{id}")));
        }
    }
    log("trace,time,kind,process,message_type,msg_id", rows)
}

fn times() -> impl Strategy<Value = Times> {
    prop_oneof![Just(Times::Auto), Just(Times::Reception), Just(Times::Both)]
}

fn second_phases() -> impl Strategy<Value = SecondPhase> {
    prop_oneof![Just(SecondPhase::Detect), Just(SecondPhase::Ignore)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is late by less than the windows hold makes no difference, nor do batches, each of which has whole trees.
    #[test]
    fn small_windows_find_what_the_whole_shows(
        plans in plans(), events in any::<bool>(), times in times(), second_phase in second_phases(), batch in 1..40_usize,
    ) {
        let log = if events { event_log(&plans) } else { message_log(&plans) };
        let windows = Windows { events: 32, all_events: 400, recordings: 3 };
        let streamed = batches(&log, &options(windows, batch, times, second_phase));
        for found in &streamed {
            prop_assert!(is_whole(found), "{:?}", found.interactions);
        }
        let whole = merged(batches(&log, &options(WHOLE, usize::MAX, times, second_phase)));
        prop_assert_eq!(shown(&merged(streamed)), shown(&whole));
    }

    /// What arrives may be taken on another thread: names of all kinds, recordings, oddities and bad rows are the same, in their order.
    #[test]
    fn arrivals_may_be_taken_elsewhere(
        rows in prop::collection::vec((0..3_usize, 0..4_usize, 0..4_usize, 0..5_usize, 0..40_i64), 1..60), n_copies in 1..100_usize,
    ) {
        let row = |(trace, kind, process, peer, time): &(usize, usize, usize, usize, i64)| {
            let kind = ["send", "receive", "event", "bad"][*kind];
            let peer = ["", "web", "db", "mail", "elsewhere"][*peer];
            format!(",s{trace},{time},{kind},{},{},{peer},op{peer},\n", TASKS[*process], trace * process)
        };
        let header = "trace,scenario,time,kind,process,thread,peer,message_type,colour\n".to_owned();
        let log = header + &rows.iter().map(row).collect::<String>().repeat(n_copies);
        let read = |apart| {
            let windows = Windows { events: 8, all_events: 20, recordings: 2 };
            let mut reader = LogReader::new(&ReadOptions { windows, ..ReadOptions::default() });
            let mut shown = Vec::new();
            let mut keep = |names: &super::Vocabulary, step: super::LogStep<'_>| shown.push(format!("{step:?} {}", names.units.names.len()));
            let (arrivals, recordings) = reader.parts();
            let sources = ["a.csv", "b.csv"].map(|name| Source { name, bytes: log.as_bytes() }.stream()).into();
            arriving(apart, |take| arrivals.read(sources, take), recordings, &mut keep).unwrap();
            let end = format!("{:?}", reader.finish(&mut keep));
            (shown, end)
        };
        prop_assert_eq!(read(true), read(false));
    }

    /// Rows in any order, through windows and bounds that are far too small: every message is found or counted as dropped.
    #[test]
    fn every_message_is_accounted_for(
        rows in prop::collection::vec((0..4_usize, 0..3_usize, 0..4_usize, 0..4_usize, 0..40_i64, -2..20_i64, 0..6_usize), 1..200),
        is_events in any::<bool>(), times in times(), second_phase in second_phases(), events in 1..6_usize, all_events in 0..12_usize,
        recordings in 1..4_usize, batch in 1..20_usize,
    ) {
        let (mut n_ends, mut n_rows) = (0, 0);
        let row = |(trace, kind, from, to, time, latency, id): &(usize, usize, usize, usize, i64, i64, usize)| {
            let (from, to) = (TASKS[*from], TASKS[*to]);
            n_rows += 1;
            n_ends += u64::from(*kind < 2);
            if is_events {
                let id = ["", "", "", "m1", "m2", "m3"][*id];
                format!("t{trace},{time},{},{from},x{to},{id}\n", ["send", "receive", "event"][*kind])
            } else {
                let sent = if *latency < 0 { String::new() } else { (time - latency + 1).to_string() };
                format!("t{trace},{from},{to},{sent},{time}\n")
            }
        };
        let text: String = rows.iter().map(row).collect();
        let header = if is_events { "trace,time,kind,process,message_type,msg_id" } else { "trace,sender,receiver,sent,received" };
        let windows = Windows { events, all_events, recordings };
        let found = batches(&format!("{header}\n{text}"), &options(windows, batch, times, second_phase));
        prop_assert!(found.iter().all(is_whole));
        let all = merged(found);
        let n_messages = n_messages(&all.interactions) + all.diagnostics.count("self_message");
        let n_unpaired = all.diagnostics.count("unpaired_send") + all.diagnostics.count("unpaired_receive");
        if is_events {
            prop_assert_eq!(n_ends, 2 * n_messages + n_unpaired + all.diagnostics.count("duplicate_message"));
        } else {
            prop_assert_eq!(n_rows, n_messages);
        }
    }
}

/// Text that is made while it is read.
struct Made<F> {
    next: F,
    left: Vec<u8>,
}

impl<F: FnMut() -> Option<String>> Read for Made<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            self.left = (self.next)().unwrap_or_default().into_bytes();
        }
        let n = self.left.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.left[..n]);
        self.left.drain(..n);
        Ok(n)
    }
}

/// Memory is bounded by windows and batches: rows that were read and not yet handed over stay few, and so do occurrences.
#[test]
fn a_million_messages_are_held_a_few_at_a_time() {
    const N_CYCLES: u64 = 1_000_000 / 4;
    let made = Arc::new(AtomicU64::new(0));
    let n_made = Arc::clone(&made);
    let next = move || {
        let cycle = n_made.fetch_add(1, Ordering::Relaxed);
        match cycle {
            0 => Some("sender,receiver,sent,received\n".to_owned()),
            1..=N_CYCLES => {
                let (t, user) = (10 * cycle, cycle % 50);
                Some(format!(
                    "u{user},web,{t},{}\nweb,db,{},{}\ndb,web,{},{}\nweb,u{user},{},{}\n",
                    t + 1,
                    t + 2,
                    t + 3,
                    t + 4,
                    t + 5,
                    t + 6,
                    t + 7
                ))
            }
            _ => None,
        }
    };
    let windows = Windows { events: 1024, ..Windows::default() };
    let mut reader = LogReader::new(&ReadOptions { windows, ..ReadOptions::default() });
    let mut recordings = Recordings::new(SecondPhase::Detect, 4096);
    let (mut n_sync, mut n_steps, mut most_held, mut most_rows) = (0, 0, 0, 0);
    let mut found = |batch: Interactions| {
        assert!(batch.occurrences.len() < 2 * 4096 && is_whole(&batch));
        n_sync += batch.count(InteractionKind::Sync);
    };
    let mut take = |names: &_, step: super::LogStep<'_>| {
        n_steps += u64::from(matches!(step.what, What::Step(Step::Receive(..))));
        recordings.take(names, step, &mut found);
        most_held = most_held.max(recordings.n_held());
        most_rows = most_rows.max((4 * made.load(Ordering::Relaxed)).saturating_sub(n_steps));
    };
    let reading = Made { next, left: Vec::new() };
    reader.read(vec![StreamSource { name: "made.csv".into(), reader: Box::new(reading) }], &mut take).unwrap();
    let (names, diagnostics) = reader.finish(&mut take);
    recordings.finish(&names, diagnostics, &mut found);
    assert_eq!((n_sync, n_steps), (2 * N_CYCLES, 4 * N_CYCLES));
    assert!(most_held < 2 * 4096 + 64, "{most_held}");
    // Beside the window, what is buffered of the text.
    assert!(most_rows < 1024 + 16_384, "{most_rows}");
}

fn message(sender: u32, receiver: u32, time: i64) -> Message {
    Message { sender, receiver, sent: Some(Time::from_ticks(time)), received: Time::from_ticks(time), operation: None }
}

/// Feeds messages to one forest in batches of 2¹⁶ occurrences: most occurrences held, and all that was handed over.
fn handed_over(messages: impl Iterator<Item = Message>) -> (usize, Interactions) {
    let mut forest = Forest::new(SecondPhase::Detect);
    let mut all = Interactions::default();
    let mut most_held = 0;
    for message in messages {
        forest.message(&message);
        if forest.may_hand_over(1 << 16) {
            forest.hand_over(0, &mut all);
        }
        most_held = most_held.max(forest.n_occurrences());
    }
    forest.end_recording();
    forest.hand_over(0, &mut all);
    (most_held, all)
}

/// A client that never waits, and a server that is asked once and works for ever: their trees never end, and are cut.
#[test]
fn endless_trees_are_cut() {
    const N: i64 = 700_000;
    let sends = (0..N).map(|time| message(0, 1 + (time % 2) as u32, time));
    let calls =
        [message(0, 1, 0)].into_iter().chain((1..N).map(|time| if time % 2 == 0 { message(2, 1, time) } else { message(1, 2, time) }));
    for all in [handed_over(sends), handed_over(calls)] {
        let (most_held, all) = all;
        assert!(most_held <= 3 << 17, "{most_held}");
        assert_eq!(n_messages(&all.interactions), N as u64);
        assert!(is_whole(&all));
    }
}

/// A chain of requests that nobody answers grows without end: what is far above is given up.
#[test]
fn deep_trees_are_given_up_above() {
    // Units 1 and 2 pass on to each other what they get; each is asked by others before it could be an answer.
    let mut forest = Forest::new(SecondPhase::Detect);
    forest.message(&message(0, 1, 0));
    let mut time = 1;
    let mut deepest = 0;
    for round in 0..20_000_u32 {
        let (here, there) = (1 + round % 2, 1 + (round + 1) % 2);
        for (from, to) in [(3, there), (here, there)] {
            forest.message(&message(from, to, time));
            time += 1;
        }
        deepest = deepest.max(forest.size().0);
        if round % 100 == 0 {
            assert_eq!(forest.broken_invariant(), None);
        }
    }
    assert!((900..1_100).contains(&deepest), "{deepest}");
    let mut all = Interactions::default();
    forest.end_recording();
    forest.hand_over(0, &mut all);
    assert_eq!(n_messages(&all.interactions), time as u64);
    assert!(is_whole(&all));
}
