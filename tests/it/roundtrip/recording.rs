//! What is recorded of a run keeps the rules of the simulator.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
};

use layerfit::{
    model::{Bindings, TaskScheduling},
    solve::simulate::record::{Event, RecordOptions, Recording, RequestKind, record},
};

use super::{Features, Ran, draw};

#[test]
fn events_are_in_order_and_every_request_is_sent_accepted_and_ended_once() {
    for seed in 0..20 {
        let ran = Ran::new(Features::ALL, seed, 100);
        assert!(ran.events.windows(2).all(|pair| pair[0].time <= pair[1].time));
        let (mut sent, mut accepted, mut ended, mut waiting) = (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
        for event in &ran.events {
            match event.event {
                Event::Sent { kind, by, chain, .. } => {
                    assert!(sent.insert(event.request));
                    assert!(by.is_none_or(|by| accepted.contains(&by.request) && !ended.contains(&by.request)));
                    assert_eq!(chain == event.request, kind != RequestKind::Forward);
                    if kind == RequestKind::Sync {
                        waiting.insert(chain);
                    }
                }
                Event::Accepted { .. } => assert!(sent.contains(&event.request) && accepted.insert(event.request)),
                Event::Replied { chain, .. } => assert!(waiting.remove(&chain)),
                Event::Ended => assert!(accepted.contains(&event.request) && ended.insert(event.request)),
                _ => assert!(accepted.contains(&event.request) && !ended.contains(&event.request)),
            }
        }
        assert_eq!((sent.len(), sent.len(), 0), (accepted.len(), ended.len(), waiting.len()));
    }
}

#[test]
fn a_thread_serves_one_request_at_a_time_and_there_are_no_more_than_the_task_has() {
    for seed in 0..20 {
        let ran = Ran::new(Features::ALL, seed, 100);
        let (mut task_of, mut held, mut thread_of) = (HashMap::new(), HashSet::new(), HashMap::new());
        for event in &ran.events {
            match event.event {
                Event::Sent { entry, .. } => {
                    task_of.insert(event.request, ran.legend.entries[entry as usize].1);
                }
                Event::Accepted { thread } => {
                    let task = ran.model.task(&ran.legend.tasks[task_of[&event.request] as usize].name).unwrap();
                    if task.scheduling != TaskScheduling::Inf {
                        assert!(f64::from(thread) < task.multiplicity.literal().unwrap(), "{} thread {thread}", task.name);
                    }
                    thread_of.insert(event.request, thread);
                    assert!(held.insert((task_of[&event.request], thread)), "{} thread {thread} is held", task.name);
                }
                Event::Ended => assert!(held.remove(&(task_of[&event.request], thread_of[&event.request]))),
                _ => {}
            }
        }
        assert!(held.is_empty());
    }
}

#[test]
fn what_forks_joins_and_replies_say_when_they_end_it() {
    for seed in 0..20 {
        let ran = Ran::new(Features::ALL, seed, 100);
        let mut open: HashMap<u64, HashSet<u32>> = HashMap::new();
        let mut said: HashMap<u64, (f64, bool)> = HashMap::new();
        for event in &ran.events {
            match event.event {
                Event::BranchBegan { branch, from, .. } => {
                    let branches = open.entry(event.request).or_default();
                    assert!(from == 0 || branches.contains(&from));
                    assert!(branches.insert(branch));
                }
                Event::BranchEnded { branch } => assert!(open.get_mut(&event.request).unwrap().remove(&branch)),
                Event::Joined { branch } => assert_eq!((branch, open[&event.request].len()), (0, 0)),
                Event::Replied { ends, .. } => {
                    said.insert(event.request, (event.time, ends));
                }
                Event::Sent { kind: RequestKind::Forward, by, ends, .. } => {
                    said.insert(by.unwrap().request, (event.time, ends));
                }
                Event::Ended => {
                    if let Some((time, ends)) = said.remove(&event.request) {
                        assert_eq!(ends, time >= event.time, "request {}", event.request);
                    }
                }
                _ => {}
            }
        }
        assert!(open.values().all(HashSet::is_empty));
    }
}

#[test]
fn a_recording_repeats_and_stops_where_it_is_told_to() {
    let model = draw::draw(Features::ALL, 3);
    let run = |options: RecordOptions| record(&model, &Bindings::default(), options).unwrap();
    let timed = RecordOptions { run_time: Some(20.0), ..RecordOptions::default() };
    let (_, events, recorded) = run(timed.clone());
    assert!(recorded.is_complete && recorded.cycles > 10, "{recorded:?}");
    assert_eq!(run(timed.clone()).1, events);
    assert!(events.iter().all(|e| e.time <= 20.0 || !matches!(e.event, Event::Sent { by: None, .. })));
    let (_, cut, short) = run(RecordOptions { max_events: 100, ..timed.clone() });
    assert!(!short.is_complete);
    assert_eq!(cut, events[..100]);
    let mut n = 0;
    let broken = Recording::new(&model, &Bindings::default(), timed).unwrap().run(&mut |_| {
        n += 1;
        if n == 50 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(!broken.unwrap().is_complete && n == 50);
    assert!(Recording::new(&model, &Bindings::default(), RecordOptions::default()).is_err());
}
