//! Producers, consumers and links; requests over one queue with the reply over another.

use super::*;

const PRODUCER: SpanKind = SpanKind::Producer;
const CONSUMER: SpanKind = SpanKind::Consumer;

#[test]
fn a_link_joins_traces() {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.span((2, 1), "api", "send", PRODUCER, (30.0, 31.0));
    b.span((3, 0), "worker", "handle", CONSUMER, (400.0, 460.0)).trace(2).link(1, 2);
    let run = b.run();
    run.check(&["Client sync api.post", "api.post async worker.handle"]);
    assert_eq!(run.interactions.traces.len(), 1, "one recording");
    assert_eq!(run.count("message_without_consumer"), 0);
}

/// The consumer's trace may come first.
#[test]
fn a_link_ahead_joins_traces() {
    let mut b = Build::default();
    b.span((3, 0), "worker", "handle", CONSUMER, (400.0, 460.0)).trace(2).link(1, 2);
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.span((2, 1), "api", "send", PRODUCER, (30.0, 31.0));
    b.run().check(&["Client sync api.post", "api.post async worker.handle"]);
}

#[test]
fn a_linked_root_follows_asynchronously_what_it_links_to() {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.server((3, 0), "batch", "start", (400.0, 460.0)).trace(2).link(1, 1);
    let run = b.run();
    run.check(&["Client sync api.post", "api.post async batch.start"]);
}

#[test]
fn a_message_that_nobody_received_goes_to_its_queue() {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.span((2, 1), "api", "orders publish", PRODUCER, (30.0, 31.0))
        .with(Attribute::MessagingSystem, "kafka")
        .with(Attribute::MessagingDestination, "orders");
    let run = b.run();
    run.check(&["Client sync api.post", "api.post async kafka/orders.orders publish"]);
    assert!(run.hints.processes["kafka/orders"].infinite);
    assert_eq!(run.count("message_without_consumer"), 1);
}

#[test]
fn a_consumer_whose_producer_is_not_there_starts_a_recording() {
    let mut b = Build::default();
    b.span((3, 0), "worker", "handle", CONSUMER, (40.0, 60.0)).link(5, 6);
    b.run().check(&["Client async worker.handle"]);
}

/// The client of a request over queues, until `waits` ms.
fn over_queues(waits: f64) -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, waits));
    b.span((2, 1), "api", "ask", PRODUCER, (10.0, 11.0));
    b.span((3, 2), "worker", "handle", CONSUMER, (20.0, 60.0));
    b.span((4, 3), "worker", "answer", PRODUCER, (50.0, 51.0));
    b.span((5, 4), "api", "take", CONSUMER, (70.0, 80.0));
    b
}

#[test]
fn a_reply_over_a_second_queue_is_a_synchronous_call() {
    let run = over_queues(100.0).run();
    run.check(&["Client sync api.post", "api.post sync worker.handle"]);
    assert_eq!(run.self_ms("api.post"), [Some(40.0), None], "0–10 and 70–100");
    assert_eq!(run.self_ms("worker.handle"), [Some(31.0), Some(9.0)], "the reply left at 51");
    assert_eq!(run.count("reply_over_queue"), 1);
}

#[test]
fn a_message_back_to_one_who_does_not_wait_is_no_reply() {
    over_queues(60.0).run().check(&["Client sync api.post", "api.post async worker.handle", "worker.handle async api.take"]);
}

#[test]
fn conversation_ids_decide_what_is_a_reply() {
    for (answer, is_reply) in [("c-1", true), ("c-2", false)] {
        let mut b = over_queues(100.0);
        // Busy with something else: only a conversation id can tell.
        b.request((8, 1), "api", "store", "read", (30.0, 40.0), 1.0);
        let texts = ["c-1", answer].map(|id| b.texts.text(id));
        for (span, text) in [(1, texts[0]), (3, texts[1])] {
            b.spans[span].attributes.push((Attribute::MessagingConversation, text));
        }
        assert_eq!(b.run().count("reply_over_queue"), u64::from(is_reply), "{answer}");
    }
}

#[test]
fn one_who_works_on_does_not_wait_for_a_reply() {
    let mut b = over_queues(100.0);
    b.request((8, 1), "api", "store", "read", (30.0, 40.0), 1.0);
    assert_eq!(b.run().count("reply_over_queue"), 0);
    let mut linked = b.clone();
    linked.spans[4].links.push(Link { trace: TraceId(1), span: SpanId(2) });
    assert_eq!(linked.run().count("reply_over_queue"), 1, "the consumer links back to the request");
}

/// The reply is consumed in a trace of its own.
#[test]
fn a_reply_may_be_of_another_trace() {
    let mut b = over_queues(100.0);
    let reply = &mut b.spans[4];
    (reply.trace, reply.parent) = (TraceId(2), None);
    reply.links.push(Link { trace: TraceId(1), span: SpanId(4) });
    b.run().check(&["Client sync api.post", "api.post sync worker.handle"]);
}

/// A post that sends a message in trace 1, as span 2.
fn post() -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "post", (0.0, 35.0));
    b.span((2, 1), "api", "send", PRODUCER, (30.0, 31.0));
    b
}

const CLIENT: SpanKind = SpanKind::Client;
const OPERATION: Attribute = Attribute::MessagingOperation;

#[test]
fn what_fetches_a_message_and_works_on_it_is_a_consumer_whatever_its_kind() {
    for kind in [CLIENT, CONSUMER] {
        let mut b = post();
        b.span((3, 0), "worker", "orders receive", kind, (400.0, 460.0)).trace(2).link(1, 2).with(OPERATION, "receive");
        b.span((4, 3), "worker", "work", SpanKind::Internal, (410.0, 450.0)).trace(2);
        b.client((5, 4), "worker", "q", (420.0, 430.0)).trace(2).with(Attribute::DbSystem, "mysql");
        b.run().check(&["Client sync api.post", "api.post async worker.orders receive", "worker.orders receive sync mysql.q"]);
    }
    let mut b = post();
    b.client((3, 2), "worker", "orders process", (400.0, 460.0)).with(OPERATION, "process");
    b.run().check(&["Client sync api.post", "api.post async worker.orders process"]);
}

#[test]
fn what_fetched_a_message_that_another_span_handles_is_no_work() {
    for kind in [CLIENT, CONSUMER] {
        for is_linked_itself in [false, true] {
            let mut b = post();
            b.span((3, 0), "worker", "orders receive", kind, (100.0, 400.0)).trace(2).link(1, 2).with(OPERATION, "receive");
            let handler = b.span((4, 3), "worker", "orders process", CONSUMER, (401.0, 421.0)).trace(2).with(OPERATION, "process");
            if is_linked_itself {
                handler.link(1, 2);
            }
            let run = b.run();
            run.check(&["Client sync api.post", "api.post async worker.orders process"]);
            assert_eq!(run.self_ms("worker.orders process"), [Some(20.0), None]);
            assert_eq!(run.count("message_fetched"), 1);
        }
    }
}

#[test]
fn messages_that_were_fetched_together_are_handled_one_by_one() {
    let mut b = post();
    b.span((5, 1), "api", "send", PRODUCER, (32.0, 33.0));
    b.client((3, 0), "worker", "orders receive", (100.0, 400.0)).trace(2).link(1, 2).link(1, 5).with(OPERATION, "receive");
    for (id, start) in [(6, 401.0), (7, 421.0)] {
        b.span((id, 3), "worker", "orders process", CONSUMER, (start, start + 10.0)).trace(2).with(OPERATION, "process");
    }
    let run = b.run();
    run.check(&["Client sync api.post", "api.post async worker.orders process", "api.post async worker.orders process"]);
    assert_eq!(run.count("batched_message"), 0);
}

#[test]
fn looking_for_messages_is_a_request_to_the_queue() {
    let mut b = Build::default();
    b.server((1, 0), "worker", "tick", (0.0, 100.0));
    b.client((2, 1), "worker", "orders receive", (10.0, 60.0))
        .with(OPERATION, "receive")
        .with(Attribute::MessagingSystem, "kafka")
        .with(Attribute::MessagingDestination, "orders");
    let run = b.run();
    run.check(&["Client sync worker.tick", "worker.tick sync kafka/orders.orders receive"]);
    assert_eq!(run.self_ms("worker.tick"), [Some(50.0), None]);
    // What it fetched is handled in the same request.
    b.span((3, 2), "worker", "orders process", CONSUMER, (61.0, 81.0)).with(OPERATION, "process");
    let run = b.run();
    run.check(&["Client sync worker.tick", "worker.tick sync kafka/orders.orders receive"]);
    assert_eq!(run.self_ms("worker.tick"), [Some(50.0), None]);
}

/// Who sends messages and waits until the broker has them waits for the broker; who looks for messages waits for these.
#[test]
fn what_a_client_waits_for_its_broker_is_the_brokers_time() {
    for (operation, broker) in [("send", Some(4.0)), ("receive", None)] {
        let mut b = Build::default();
        b.server((1, 0), "api", "post", (0.0, 10.0));
        b.client((2, 1), "api", "ev", (2.0, 6.0))
            .with(OPERATION, operation)
            .with(Attribute::MessagingSystem, "servicebus")
            .with(Attribute::MessagingDestination, "ev");
        let run = b.run();
        run.check(&["Client sync api.post", "api.post sync servicebus/ev.ev"]);
        assert_eq!(run.self_ms("api.post"), [Some(6.0), None]);
        assert_eq!(run.self_ms("servicebus/ev.ev"), [broker, None], "{operation}");
        assert!(run.hints.processes["servicebus/ev"].infinite);
    }
}

/// The loop around a consumer does not do again what the consumer does.
#[test]
fn a_linked_consumer_inside_a_local_span_is_counted_once() {
    let mut b = post();
    b.span((3, 0), "worker", "loop", SpanKind::Internal, (300.0, 500.0)).trace(2);
    b.span((4, 3), "worker", "handle", CONSUMER, (400.0, 460.0)).trace(2).link(1, 2);
    let run = b.run();
    run.check(&["Client sync api.post", "Client sync worker.loop", "api.post async worker.handle"]);
    assert_eq!(run.self_ms("worker.handle"), [Some(60.0), None]);
    assert_eq!(run.self_ms("worker.loop"), [Some(140.0), None]);
}
