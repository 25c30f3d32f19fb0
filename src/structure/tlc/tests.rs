use std::collections::{BTreeMap, VecDeque};

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::{
    structure::interactions::{Interaction, InteractionKind},
    trace::angio::AngioKind,
};

const TASKS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
const TRACES: [&str; 4] = ["t0", "t1", "t2", "t3"];

/// Deepest nesting of requests that is written.
const DEEPEST: usize = 4;

/// A request that was made: kind, phase of the requester, tasks from requester to last server.
type Made = (InteractionKind, u8, Vec<&'static str>);

/// Writes one recording as its tasks would, by choices drawn.
#[derive(Default)]
struct Writer {
    trace: &'static str,
    choices: std::vec::IntoIter<u8>,
    events: Vec<AngioEvent<'static>>,
    nodes: BTreeMap<u64, u32>,
    made: Vec<Made>,
    /// Threads started and not yet run: thread and task.
    sent: VecDeque<(u64, usize)>,
}

/// What a task is at.
struct Service {
    task: usize,
    thread: u64,
    phase: u8,
}

impl Writer {
    fn choose(&mut self, n: u8) -> u8 {
        self.choices.next().unwrap_or(0) % n
    }

    fn write(&mut self, counters: &mut [u64], service: &Service, kind: AngioKind) {
        let node = self.nodes.entry(service.thread).or_default();
        *node += 1;
        counters[service.task] += 1;
        let mut event = AngioEvent::new("s", service.thread, *node, kind, TASKS[service.task], counters[service.task]);
        event.trace = self.trace;
        event.demand = (kind == AngioKind::Activity).then_some(f64::from(*node % 5));
        self.events.push(event);
    }

    fn fork(&mut self, counters: &mut [u64], service: &Service) -> u64 {
        let child = self.nodes.keys().next_back().map_or(1, |last| last + 1);
        self.nodes.insert(child, 0);
        self.write(counters, service, AngioKind::Fork { child_thread: child });
        child
    }

    /// A whole recording; tasks count on from `counters`.
    fn run(&mut self, counters: &mut [u64]) {
        self.nodes.insert(1, 0);
        let first = usize::from(self.choose(TASKS.len() as u8));
        self.sent.push_back((1, first));
        while let Some((thread, task)) = self.sent.pop_front() {
            let mut service = Service { task, thread, phase: 1 };
            self.write(counters, &service, AngioKind::Begin);
            self.work(counters, &mut service, &mut vec![task]);
            self.write(counters, &service, AngioKind::Activity);
            self.write(counters, &service, AngioKind::End);
        }
    }

    /// A task of those that are not in use; `None` if the choice falls on one that is.
    fn idle(&mut self, busy: &[usize]) -> Option<usize> {
        let task = usize::from(self.choose(TASKS.len() as u8));
        (!busy.contains(&task)).then_some(task)
    }

    fn work(&mut self, counters: &mut [u64], service: &mut Service, busy: &mut Vec<usize>) {
        for _ in 0..self.choose(4) {
            match self.choose(5) {
                0 => self.write(counters, service, AngioKind::Activity),
                1 => self.send(counters, service, busy),
                2 => self.ask(counters, service, busy),
                _ => self.call(counters, service, busy),
            }
        }
    }

    fn send(&mut self, counters: &mut [u64], service: &Service, busy: &[usize]) {
        if let Some(task) = self.idle(busy) {
            let child = self.fork(counters, service);
            self.sent.push_back((child, task));
            self.made.push((InteractionKind::Async, service.phase, vec![TASKS[service.task], TASKS[task]]));
        }
    }

    /// A request and its reply by messages: templates (v) and (vi).
    fn ask(&mut self, counters: &mut [u64], service: &mut Service, busy: &mut Vec<usize>) {
        let Some(task) = self.idle(busy).filter(|_| busy.len() < DEEPEST) else { return };
        self.made.push((InteractionKind::Sync, service.phase, vec![TASKS[service.task], TASKS[task]]));
        let child = self.fork(counters, service);
        self.write(counters, service, AngioKind::End);
        let mut server = Service { task, thread: child, phase: 1 };
        self.write(counters, &server, AngioKind::Begin);
        busy.push(task);
        self.work(counters, &mut server, busy);
        self.reply(counters, &mut server, service, busy);
    }

    /// A blocking request, its reply at once, with a second phase, or by another: templates (i), (iii) and (iv).
    fn call(&mut self, counters: &mut [u64], service: &mut Service, busy: &mut Vec<usize>) {
        let Some(task) = self.idle(busy).filter(|_| busy.len() < DEEPEST) else { return };
        let made = self.made.len();
        self.made.push((InteractionKind::Sync, service.phase, vec![TASKS[service.task], TASKS[task]]));
        self.write(counters, service, AngioKind::Activity);
        let mut server = Service { task, thread: service.thread, phase: 1 };
        self.write(counters, &server, AngioKind::Activity);
        busy.push(task);
        self.work(counters, &mut server, busy);
        if server.thread == service.thread && self.choose(2) == 0 {
            self.write(counters, &server, AngioKind::Activity);
            busy.pop();
            self.write(counters, service, AngioKind::Activity);
            return;
        }
        while self.choose(3) == 0 {
            let Some(next) = self.idle(busy) else { break };
            self.made[made].0 = InteractionKind::Forward;
            self.made[made].2.push(TASKS[next]);
            let child = self.fork(counters, &server);
            server.phase = 2;
            self.finish(counters, &mut server, busy);
            server = Service { task: next, thread: child, phase: 1 };
            self.write(counters, &server, AngioKind::Begin);
            busy.push(next);
            self.work(counters, &mut server, busy);
        }
        self.reply(counters, &mut server, service, busy);
    }

    /// The server replies by a message and finishes; the requester goes on in the thread of the reply.
    fn reply(&mut self, counters: &mut [u64], server: &mut Service, requester: &mut Service, busy: &mut Vec<usize>) {
        let child = self.fork(counters, server);
        server.phase = 2;
        self.finish(counters, server, busy);
        requester.thread = child;
        self.write(counters, requester, AngioKind::Begin);
    }

    fn finish(&mut self, counters: &mut [u64], server: &mut Service, busy: &mut Vec<usize>) {
        self.work(counters, server, busy);
        self.write(counters, server, AngioKind::Activity);
        self.write(counters, server, AngioKind::End);
        busy.pop();
    }
}

/// Recordings of one system, one after another.
fn recordings() -> impl Strategy<Value = Vec<(Vec<AngioEvent<'static>>, Vec<Made>)>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..160), 1..=TRACES.len()).prop_map(|choices| {
        let mut counters = [0; TASKS.len()];
        let write = |(choices, trace): (Vec<u8>, &'static str)| {
            let mut writer = Writer { trace, choices: choices.into_iter(), ..Writer::default() };
            writer.run(&mut counters);
            (writer.events, writer.made)
        };
        choices.into_iter().zip(TRACES).map(write).collect()
    })
}

/// Events as they come, of a few threads and tasks.
fn any_events() -> impl Strategy<Value = Vec<AngioEvent<'static>>> {
    let kind = prop_oneof![
        1 => Just(AngioKind::Begin),
        3 => Just(AngioKind::Activity),
        3 => (1..6_u64).prop_map(|child_thread| AngioKind::Fork { child_thread }),
        1 => Just(AngioKind::End)
    ];
    let event = (0..2_usize, 1..6_u64, 1..8_u32, kind, 0..4_usize, 1..12_u64).prop_map(|(trace, thread, node, kind, task, counter)| {
        let mut event = AngioEvent::new("s", thread, node, kind, TASKS[task], counter);
        event.trace = TRACES[trace];
        event
    });
    prop::collection::vec(event, 0..120)
}

fn options() -> impl Strategy<Value = TlcOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>(), prop_oneof![Just(5_usize), Just(1000)]).prop_map(
        |(forwarding, counters, paper, limit)| TlcOptions {
            async_forwarding: if forwarding { AsyncForwarding::Forwarded } else { AsyncForwarding::Chained },
            task_counters: if counters { TaskCounters::WithinRecording } else { TaskCounters::AsRecorded },
            unanswered: if paper { Unanswered::Unmatched } else { Unanswered::Request },
            live_events_limit: limit,
            ..TlcOptions::default()
        },
    )
}

fn run<'e>(events: impl IntoIterator<Item = &'e AngioEvent<'static>>, options: &TlcOptions) -> (Tlc, Interactions) {
    let (mut tlc, mut found) = (Tlc::new(options.clone()), Interactions::default());
    for event in events {
        tlc.feed(event, &mut |batch| found.merge(batch));
    }
    (tlc, found)
}

fn finished((tlc, mut found): (Tlc, Interactions)) -> (Interactions, TlcReport) {
    let report = tlc.finish(&mut |batch| found.merge(batch));
    (found, report)
}

fn unit_name(found: &Interactions, occurrence: usize) -> &str {
    found.units.names.name(found.occurrences[occurrence].unit)
}

fn chain(i: &Interaction) -> impl Iterator<Item = usize> + '_ {
    [i.from].into_iter().chain(i.via.iter().copied()).chain([i.to])
}

/// What was found in each recording, by its name, in words.
fn by_recording(found: &Interactions) -> BTreeMap<String, Vec<String>> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let name = |trace: u32| found.traces[trace as usize].name.clone();
    for occurrence in &found.occurrences {
        let unit = found.units.names.name(occurrence.unit);
        said.entry(name(occurrence.trace)).or_default().push(format!("{unit}.{} {:?}", occurrence.number, occurrence.self_time_ticks));
    }
    for i in &found.interactions {
        let chain: Vec<String> = chain(i).map(|o| format!("{}.{}", unit_name(found, o), found.occurrences[o].number)).collect();
        let line = format!("{:?}/{} {} {:?}", i.kind, i.phase, chain.join(" "), i.times);
        said.entry(name(found.occurrences[i.from].trace)).or_default().push(line);
    }
    said
}

fn counts(found: Interactions) -> BTreeMap<String, u64> {
    found.diagnostics.into_vec().into_iter().map(|d| (d.code, d.count)).collect()
}

/// Each occurrence but the originators is requested once, by one of its recording that was created before it.
fn is_forest(found: &Interactions) -> bool {
    let mut requested = vec![0; found.occurrences.len()];
    for i in &found.interactions {
        let steps: Vec<usize> = chain(i).collect();
        steps[1..].iter().for_each(|o| requested[*o] += 1);
        let ordered = steps.windows(2).all(|w| w[0] < w[1] && found.occurrences[w[0]].trace == found.occurrences[w[1]].trace);
        let n_times = if i.kind == InteractionKind::Async { 1 } else { steps.len() };
        if !ordered || i.times.len() != n_times || (i.kind == InteractionKind::Forward) == i.via.is_empty() {
            return false;
        }
    }
    found.occurrences.iter().zip(requested).all(|(o, n)| n == u32::from(!o.originator))
}

proptest! {
    /// What was written is found: every request with its kind, phase and tasks, and every node has its template.
    #[test]
    fn finds_what_was_done(recordings in recordings(), swap in any::<u64>()) {
        let mut events: Vec<AngioEvent<'static>> = recordings.iter().flat_map(|(events, _)| events.iter().copied()).collect();
        let n = events.len() as u64;
        for index in 0..events.len() {
            events.swap(index, (swap.wrapping_mul(index as u64 + 1) % n) as usize);
        }
        let (tlc, found) = run(&events, &TlcOptions::default());
        prop_assert_eq!(tlc.n_live_events(), 0, "all recordings are complete");
        let (found, report) = finished((tlc, found));
        prop_assert!(is_forest(&found));
        prop_assert_eq!(report.events, EventCounts { read: n, used: n, ..EventCounts::default() });
        let found_made = found.interactions.iter().filter(|i| !found.occurrences[i.from].originator);
        let mut found_made: Vec<String> =
            found_made.map(|i| format!("{:?}/{} {:?}", i.kind, i.phase, chain(i).map(|o| unit_name(&found, o)).collect::<Vec<_>>())).collect();
        let mut made: Vec<String> =
            recordings.iter().flat_map(|(_, made)| made).map(|(kind, phase, tasks)| format!("{kind:?}/{phase} {tasks:?}")).collect();
        found_made.sort();
        made.sort();
        prop_assert_eq!(found_made, made);
        let demand: f64 = events.iter().filter_map(|event| event.demand).sum();
        let self_times: f64 = found.occurrences.iter().flat_map(|o| o.self_time_ticks).flatten().sum();
        prop_assert_eq!(demand, self_times);
    }

    /// Events dealt to two halves, some lost, in the order that each has them: the halves merged are as the whole.
    #[test]
    fn merged_halves_equal_the_whole(recordings in recordings(), dealt in prop::collection::vec(any::<bool>(), 1..64), lost in prop::collection::vec(any::<Index>(), 0..4)) {
        let mut events: Vec<AngioEvent<'static>> = recordings.into_iter().flat_map(|(events, _)| events).collect();
        for index in lost {
            if !events.is_empty() {
                events.swap_remove(index.index(events.len()));
            }
        }
        let options = TlcOptions::default();
        let (whole, whole_report) = finished(run(&events, &options));
        let half = |which: bool| events.iter().zip(dealt.iter().cycle()).filter(move |(_, to)| **to == which).map(|(event, _)| event);
        let (mut first, mut found) = run(half(true), &options);
        let (second, rest) = run(half(false), &options);
        found.merge(rest);
        first.merge(second, &mut |batch| found.merge(batch));
        let (merged, merged_report) = finished((first, found));
        prop_assert_eq!(by_recording(&whole), by_recording(&merged));
        prop_assert_eq!(whole_report, merged_report);
        prop_assert_eq!(counts(whole), counts(merged));
    }

    /// Any events: no panic, a forest, and every event is accounted for; also where they are dealt to halves.
    #[test]
    fn any_events_are_accounted_for(events in any_events(), options in options(), cut in any::<Index>()) {
        let check = |(found, report): (Interactions, TlcReport)| -> Result<(), TestCaseError> {
            prop_assert!(is_forest(&found));
            prop_assert_eq!(report.events.read, events.len() as u64);
            prop_assert_eq!(report.events.read, report.events.used + report.events.unmatched + report.events.duplicate);
            let told = found.diagnostics.count("unmatched_nodes") + found.diagnostics.count("no_first_node");
            prop_assert_eq!(told > 0, report.events.unmatched > 0);
            prop_assert_eq!(found.diagnostics.count("duplicate_node"), report.events.duplicate);
            Ok(())
        };
        check(finished(run(&events, &options)))?;
        let (head, tail) = events.split_at(cut.index(events.len() + 1));
        let (mut first, mut found) = run(head, &options);
        let (second, rest) = run(tail, &options);
        found.merge(rest);
        first.merge(second, &mut |batch| found.merge(batch));
        check(finished((first, found)))?;
    }

    /// The sub-model alone takes any events, too.
    #[test]
    fn any_events_have_a_sub_model_or_none(events in any_events(), options in options()) {
        if let Some(model) = sub_model(&events, &options) {
            prop_assert_eq!(model.entries[0].kind, EntryKind::Customer);
            for (index, entry) in model.entries.iter().enumerate() {
                prop_assert!(entry.requests.iter().all(|request| request.to > index));
            }
        }
    }

    /// Averaging keeps the flow of demand, and of requests between groups.
    #[test]
    fn averaging_keeps_flows(entries in prop::collection::vec((0.1..9.0_f64, 0.0..9.0_f64, prop::collection::vec((0..6_usize, 0.0..4.0_f64), 0..4), 0..3_usize), 1..6)) {
        let (group_of, entries): (Vec<usize>, Vec<WeightedEntry>) = entries
            .into_iter()
            .map(|(frequency, demand, requests, group)| {
                let requests = requests.into_iter().map(|(target, mean)| ((1, target), mean)).collect();
                (group, WeightedEntry { frequency, demands: [demand, demand / 2.0], requests })
            })
            .unzip();
        let merged = merge_entries(&entries, &group_of);
        for (group, merged) in merged.iter().enumerate() {
            let members = || entries.iter().zip(&group_of).filter(|(_, of)| **of == group).map(|(entry, _)| entry);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            prop_assert!(close(members().map(|e| e.frequency).sum(), merged.frequency));
            prop_assert!(close(members().map(|e| e.frequency * e.demands[1]).sum(), merged.frequency * merged.demands[1]));
            for target in 0..3 {
                let is_target = |t: &usize| group_of.get(*t) == Some(&target);
                let flow = |e: &WeightedEntry| e.requests.iter().filter(|((_, t), _)| is_target(t)).map(|(_, y)| e.frequency * y).sum::<f64>();
                let mean = merged.requests.get(&(1, target)).copied().unwrap_or(0.0);
                prop_assert!(close(members().map(flow).sum(), merged.frequency * mean));
            }
        }
    }
}

/// One recording of many threads, in reverse: a long chain of forwarders that each reply, where walks back could be quadratic.
#[test]
fn long_chains_are_walked_in_bounded_steps() {
    let n = 40_000_u64;
    let mut events = vec![AngioEvent::new("s", 1, 1, AngioKind::Begin, "A", 1)];
    for level in 1..n {
        let fork = AngioKind::Fork { child_thread: level + 1 };
        let node = if level == 1 { 2 } else { 3 };
        if level > 1 {
            events.push(AngioEvent::new("s", level, 1, AngioKind::Begin, "B", 3 * level));
            events.push(AngioEvent::new("s", level, 2, AngioKind::Activity, "B", 3 * level + 1));
        }
        events.push(AngioEvent::new("s", level, node, fork, if level == 1 { "A" } else { "B" }, 3 * level + 2));
    }
    events.reverse();
    let (found, report) = finished(run(&events, &TlcOptions::default()));
    assert_eq!(report.events.read, report.events.used + report.events.unmatched);
    assert!(is_forest(&found));
}

/// A service B is asked by A, asks C, which replies by a fork and does nothing more, and hands A's request on to C: that C ends a
/// thread after its reply is not to be taken for waiting.
#[test]
fn a_task_that_replied_by_a_fork_can_be_forwarded_to_by_the_one_it_replied_to() {
    use AngioKind::{Activity, Begin, End};
    let fork = |child_thread| AngioKind::Fork { child_thread };
    let nodes = [
        (1, Begin, 0),
        (1, Activity, 0),
        (1, Activity, 1),
        (1, Activity, 1),
        (1, Activity, 2),
        (1, fork(2), 2),
        (1, End, 2),
        (2, Begin, 1),
        (2, fork(3), 1),
        (2, End, 1),
        (3, Begin, 2),
        (3, fork(4), 2),
        (3, End, 2),
        (4, Begin, 0),
        (4, End, 0),
    ];
    let (mut thread_nodes, mut task_nodes) = ([0; 5], [0; 3]);
    let event = |(thread, kind, task): (u64, AngioKind, usize)| {
        thread_nodes[thread as usize] += 1;
        task_nodes[task] += 1;
        AngioEvent::new("s", thread, thread_nodes[thread as usize], kind, TASKS[task], task_nodes[task])
    };
    let events: Vec<AngioEvent<'_>> = nodes.into_iter().map(event).collect();
    let found = sub_model(&events, &TlcOptions::default()).unwrap();
    let a = found.entries.iter().find(|entry| entry.task == "A").unwrap();
    let b = &found.entries[a.requests[0].to];
    let requests: Vec<_> = b.requests.iter().map(|r| (r.kind, r.phase, found.entries[r.to].task.as_str())).collect();
    assert_eq!((a.requests.len(), found.unmatched.len()), (1, 0));
    assert_eq!(b.task, "B");
    assert!(requests.contains(&(InteractionKind::Sync, 1, "C")) && requests.contains(&(InteractionKind::Forward, 1, "C")), "{requests:?}");
    assert_eq!(requests.len(), 2);
}

/// Buffers of finished recordings are given up: what is held is what is not complete.
#[test]
fn only_incomplete_recordings_are_held() {
    let names: Vec<String> = (0..20_000).map(|n| format!("run {n}")).collect();
    let (mut tlc, mut n_batches, mut n_recordings) = (Tlc::new(TlcOptions::default()), 0, 0);
    for name in &names {
        let begin = AngioEvent { trace: name, ..AngioEvent::new("s", 1, 1, AngioKind::Begin, "A", 1) };
        let end = AngioEvent { thread_node: 2, kind: AngioKind::End, task_node: 2, ..begin };
        for event in [begin, end] {
            tlc.feed(&event, &mut |batch| {
                n_batches += 1;
                n_recordings += batch.traces.len();
            });
        }
        assert!(tlc.n_live_events() == 0 && tlc.collector.n_ordered() < 128);
    }
    let report = tlc.finish(&mut |batch| n_recordings += batch.traces.len());
    assert_eq!((report.recordings, n_recordings), (20_000, 20_000));
    assert!(n_batches > 10);
}
