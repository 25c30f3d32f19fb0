//! Spans without times: the structure of parents, kinds and links, and nothing that time alone tells.

use layerfit::model::Number;

use super::*;

/// The same spans without their times.
fn without_times(mut build: Build) -> Build {
    for span in &mut build.spans {
        (span.is_timeless, span.start_ns, span.duration_ns) = (true, 0, Some(0));
    }
    build
}

/// One request that makes two at once, which overlap, and one that goes on after the reply; and a message.
fn busy() -> Build {
    let mut b = Build::default();
    b.client((1, 0), "user", "order", (0.0, 50.0));
    b.server((2, 1), "web", "order", (1.0, 90.0));
    b.request((3, 2), "web", "stock", "get", (5.0, 30.0), 1.0);
    b.request((5, 2), "web", "price", "get", (6.0, 31.0), 1.0);
    b.request((7, 2), "web", "log", "put", (60.0, 80.0), 1.0);
    b.span((9, 2), "web", "sent", SpanKind::Producer, (40.0, 41.0));
    b.span((10, 9), "mail", "sent", SpanKind::Consumer, (45.0, 49.0));
    b
}

#[test]
fn the_structure_is_that_of_parents_and_kinds() {
    let timed = busy().run();
    timed.check(&[
        "user sync web.order",
        "web.order sync stock.get [0:0]",
        "web.order sync price.get [0:1]",
        "web.order sync/2 log.put",
        "web.order async mail.sent",
    ]);
    let run = without_times(busy()).run();
    run.check(&[
        "user sync web.order",
        "web.order sync stock.get",
        "web.order sync price.get",
        "web.order sync log.put",
        "web.order async mail.sent",
    ]);
    assert_eq!((run.count("without_times"), run.count("zero_duration"), run.count("clock_residual")), (10, 0, 0));
    assert_eq!(run.quality.spans.remarks["without_times"].examples[0], "0000000000000001/0000000000000001");
    assert_eq!((run.quality.spans.read, run.quality.spans.used), (10, 10));
}

#[test]
fn nothing_that_needs_time_is_concluded() {
    let mut b = busy();
    for trace in 2..=40 {
        b.repeat(trace, 100.0 * trace as f64);
    }
    assert!(b.run().hints.processes.values().any(|hints| hints.workload.is_some()), "with times there is a workload");
    let run = without_times(b).run();
    assert!(run.interactions.occurrences.iter().all(|occurrence| occurrence.self_time_ticks == [None; 2]));
    assert!(run.hints.processes.values().all(|hints| hints.workload.is_none() && hints.threads.is_none()));
    let quality = &run.quality;
    assert_eq!((quality.explained.roots, quality.clocks.len(), quality.overlaps.len()), (0, 0, 0));
    let web = &quality.tasks["web"];
    assert_eq!((web.instances, web.concurrency, web.entries["order"].occurrences), (1, 0, 40));
    assert!(web.entries["order"].load.count == 0 && web.entries["order"].calls.iter().all(|call| call.queueing_s.count == 0));
    let text = quality.text();
    assert!(
        text.contains("400 without_times: spans without times") && text.contains("only the structure is known; self times, demands"),
        "{text}"
    );
    assert!(text.contains("web: 1 instances, 0 hosts, not known how many at once"), "{text}");
    assert!(text.contains("order: 40 occurrences; self time unknown (as in"), "{text}");
}

#[test]
fn demands_are_the_default_and_a_task_has_a_thread_for_each_that_waits() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.request((2, 1), "web", "auth", "check", (10.0, 90.0), 1.0);
    b.request((4, 3), "auth", "web", "key", (20.0, 80.0), 1.0);
    b.request((6, 1), "web", "auth", "leave", (92.0, 95.0), 1.0);
    let run = without_times(b).run();
    run.check(&["Client sync web.get", "web.get sync auth.check", "auth.check sync web.key", "web.get sync auth.leave"]);
    let units = &run.interactions.units;
    let n_of = |task: &str| units.process_of.iter().filter(|process| units.processes.name(**process) == task).count();
    assert_eq!((n_of("web"), n_of("auth")), (2, 1), "web.get waits while web.key runs; the calls of auth follow one another");
    let model = run.model().model;
    let served = model.tasks.iter().filter(|task| task.name != "Client");
    let demands: Vec<Number> = served.flat_map(|task| &task.entries).map(|entry| entry.phases[0].activity.host_demand.clone()).collect();
    assert_eq!(demands, vec![Number::Value(ExtractOptions::default().default_demand); 4]);
}

#[test]
fn messages_there_and_back_are_not_joined_without_times() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 100.0));
    b.span((2, 1), "web", "ask", SpanKind::Producer, (10.0, 11.0)).with(Attribute::MessagingConversation, "c");
    b.span((3, 2), "worker", "ask", SpanKind::Consumer, (15.0, 40.0));
    b.span((4, 3), "worker", "answer", SpanKind::Producer, (38.0, 39.0)).with(Attribute::MessagingConversation, "c");
    b.span((5, 4), "web", "answer", SpanKind::Consumer, (45.0, 50.0));
    assert_eq!(b.run().count("reply_over_queue"), 1);
    let run = without_times(b).run();
    assert_eq!(run.count("reply_over_queue"), 0);
    run.check(&["Client sync web.get", "web.get async worker.ask", "worker.ask async web.answer"]);
}

#[test]
fn a_trace_with_some_times_is_one_without_and_teaches_the_others_nothing() {
    let mut b = busy();
    for trace in 2..=20 {
        b.repeat(trace, 100.0 * trace as f64);
    }
    let whole = b.run();
    let mut stripped = busy();
    stripped.spans.iter_mut().for_each(|span| span.trace = TraceId(99));
    (stripped.spans[4].is_timeless, stripped.spans[4].start_ns, stripped.spans[4].duration_ns) = (true, 0, Some(0));
    b.spans.extend(stripped.spans);
    let run = b.run();
    assert_eq!((run.count("without_times"), run.quality.traces.complete), (10, 21));
    assert_eq!(run.quality.overlaps, whole.quality.overlaps);
    assert_eq!(run.hints.processes["user"].workload, whole.hints.processes["user"].workload);
    assert_eq!(run.quality.tasks["web"].entries["order"].self_s, whole.quality.tasks["web"].entries["order"].self_s);
    assert_eq!(run.quality.clocks, whole.quality.clocks);
}
