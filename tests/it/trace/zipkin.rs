//! Zipkin: JSON of versions 2 and 1.

use layerfit::trace::{
    span::{Attribute, SpanId, SpanKind, SpanStatus},
    spans::SpanFormatSeen,
};

use super::spans::{read, refusal};

const CLIENT: &str = r#"{"traceId":"1e223ff1f80f1c69","parentId":"bf396325699c84bf","id":"74280ae0c10d8062","kind":"CLIENT","name":"post","timestamp":1470150004074202,"duration":94539,"localEndpoint":{"serviceName":"front","ipv4":"127.0.0.1"},"remoteEndpoint":{"serviceName":"back","ipv4":"192.168.0.10","port":8080},"tags":{"error":"Read timed out","http.method":"POST","http.path":"/orders"}}"#;
const SERVER: &str = r#"{"traceId":"1e223ff1f80f1c69","parentId":"bf396325699c84bf","id":"74280ae0c10d8062","kind":"SERVER","name":"post","timestamp":1470150004074761,"duration":93577,"localEndpoint":{"serviceName":"back"},"remoteEndpoint":{"serviceName":"front"},"shared":true}"#;

fn check(text: &str) {
    let reading = read(text);
    assert_eq!(reading.seen, SpanFormatSeen::Zipkin);
    assert_eq!(reading.services(), ["front", "back"], "{text}");
    let (client, server) = (&reading.spans[0], &reading.spans[1]);
    assert_eq!((client.kind, client.shared, client.status), (SpanKind::Client, false, SpanStatus::Timeout));
    assert_eq!((server.kind, server.shared, server.status), (SpanKind::Server, true, SpanStatus::Ok));
    assert_eq!((client.id, client.parent), (server.id, Some(SpanId(0xbf39_6325_699c_84bf))));
    assert_eq!((client.start_ns, client.duration_ns), (1_470_150_004_074_202_000, Some(94_539_000)));
    assert_eq!(reading.host(0), "127.0.0.1");
    for (attribute, expected) in [
        (Attribute::PeerService, "back"),
        (Attribute::ServerAddress, "192.168.0.10"),
        (Attribute::ServerPort, "8080"),
        (Attribute::HttpMethod, "POST"),
        (Attribute::Url, "/orders"),
    ] {
        assert_eq!(reading.attribute(0, attribute), Some(expected));
    }
    assert_eq!(reading.attribute(1, Attribute::PeerService), None, "of a server it is who asks");
    assert_eq!(reading.odd(), []);
}

#[test]
fn version_2_in_arrays_arrays_of_arrays_and_lines() {
    check(&format!("[{CLIENT},{SERVER}]"));
    check(&format!("[[{CLIENT}],[{SERVER}]]"));
    check(&format!("{CLIENT}\n{SERVER}\n"));
    check(&format!("[{CLIENT}]\n[{SERVER}]"));
    check(&format!("{{\"hits\":{{\"hits\":[{{\"_source\":{CLIENT}}},{{\"_source\":{SERVER}}}]}}}}"));
}

#[test]
fn messages_name_their_broker() {
    let producer = CLIENT.replace("CLIENT", "PRODUCER").replace("\"back\"", "\"kafka\"");
    let consumer = producer.replace("PRODUCER", "CONSUMER");
    let reading = read(&format!("[{producer},{consumer}]"));
    for i in [0, 1] {
        assert_eq!(reading.attribute(i, Attribute::MessagingSystem), Some("kafka"));
    }
    assert_eq!((reading.spans[0].kind, reading.spans[1].kind), (SpanKind::Producer, SpanKind::Consumer));
    assert_eq!(reading.attribute(1, Attribute::PeerService), None);
}

#[test]
fn a_span_without_timestamp_starts_at_its_first_annotation_or_is_not_used() {
    let without = CLIENT.replace("\"timestamp\":1470150004074202,", "");
    let annotated = without.replace("\"tags\"", "\"annotations\":[{\"timestamp\":1470150004000000,\"value\":\"retry\"}],\"tags\"");
    assert_eq!(read(&format!("[{annotated}]")).spans[0].start_ns, 1_470_150_004_000_000_000);
    let reading = read(&format!("[{without},{SERVER}]"));
    assert_eq!((reading.spans.len(), reading.odd()), (1, vec![("span_without_start", 1)]));
    assert_eq!(reading.example("span_without_start"), "traces, line 1, column 2: 1e223ff1f80f1c69/74280ae0c10d8062 \"post\"");
    assert_eq!(
        refusal(&format!("[{without},{SERVER}]")),
        "traces, line 1, column 2: 1e223ff1f80f1c69/74280ae0c10d8062 \"post\" does not say when it started: expected a start, as other spans have"
    );
    let reading = read(&format!("[{without}]"));
    assert_eq!((reading.spans[0].is_timeless, reading.spans[0].duration_ns, reading.odd()), (true, Some(0), vec![("no_times", 1)]));
}

/// Version 1: both halves of one call, and a call of a data base.
const VERSION_1: &str = r#"[{"traceId":"ee8edc7e09345ce3","id":"d1f63ae8034b94a4","name":"http:/verify","parentId":"ee8edc7e09345ce3",
 "timestamp":1516255246600000,"duration":50000,
 "annotations":[
  {"timestamp":1516255246600000,"value":"cs","endpoint":{"serviceName":"cancel","ipv4":"172.19.0.67","port":18885}},
  {"timestamp":1516255246610000,"value":"sr","endpoint":{"serviceName":"login","ipv4":"172.19.0.24","port":12342}},
  {"timestamp":1516255246640000,"value":"ss","endpoint":{"serviceName":"login","ipv4":"172.19.0.24","port":12342}},
  {"timestamp":1516255246650000,"value":"cr","endpoint":{"serviceName":"cancel","ipv4":"172.19.0.67","port":18885}}],
 "binaryAnnotations":[
  {"key":"http.url","value":"http://login:12342/verify","endpoint":{"serviceName":"cancel","ipv4":"172.19.0.67","port":18885}},
  {"key":"http.status_code","value":"500","endpoint":{"serviceName":"login","ipv4":"172.19.0.24","port":12342}},
  {"key":"sa","value":true,"endpoint":{"serviceName":"login","ipv4":"172.19.0.24","port":12342}}]},
 {"traceId":"ee8edc7e09345ce3","id":"2","name":"find","parentId":"d1f63ae8034b94a4","timestamp":1516255246620000,"duration":1000,"annotations":[],
 "binaryAnnotations":[{"key":"lc","value":"mongo","endpoint":{"serviceName":"login"}},{"key":"sa","value":true,"endpoint":{"serviceName":"mongodb"}}]}]"#;

#[test]
fn version_1_gives_both_halves() {
    let reading = read(VERSION_1);
    assert_eq!(reading.services(), ["cancel", "login", "login"]);
    let [client, server, find] = &reading.spans[..] else { panic!("{} spans", reading.spans.len()) };
    assert_eq!((client.kind, client.shared, server.kind, server.shared), (SpanKind::Client, false, SpanKind::Server, true));
    assert_eq!((client.id, client.parent), (server.id, server.parent));
    assert_eq!((client.start_ns, client.duration_ns), (1_516_255_246_600_000_000, Some(50_000_000)));
    assert_eq!((server.start_ns, server.duration_ns), (1_516_255_246_610_000_000, Some(30_000_000)));
    assert_eq!((client.status, server.status), (SpanStatus::Ok, SpanStatus::Error));
    assert_eq!((reading.attribute(0, Attribute::Url), reading.attribute(1, Attribute::Url)), (Some("/verify"), None));
    assert_eq!(reading.attribute(0, Attribute::PeerService), Some("login"));
    assert_eq!((reading.host(0), reading.host(1)), ("172.19.0.67", "172.19.0.24"));
    assert_eq!((find.kind, reading.attribute(2, Attribute::PeerService)), (SpanKind::Client, Some("mongodb")));
    assert_eq!(reading.odd(), []);
}

#[test]
fn a_server_of_version_1_that_did_not_start_the_span_shares_it() {
    let server = r#"[{"traceId":"1","id":"2","parentId":"1","name":"x","annotations":[{"timestamp":5,"value":"sr","endpoint":{"serviceName":"s"}},{"timestamp":9,"value":"ss","endpoint":{"serviceName":"s"}}]}]"#;
    let reading = read(server);
    assert_eq!((reading.spans[0].shared, reading.spans[0].start_ns, reading.spans[0].duration_ns), (true, 5_000, Some(4_000)));
    assert!(!read(&server.replace("\"name\"", "\"timestamp\":5,\"name\"")).spans[0].shared);
}

#[test]
fn messages_of_version_1() {
    let text = r#"[{"traceId":"1","id":"2","name":"x","annotations":[{"timestamp":5,"value":"ms","endpoint":{"serviceName":"a"}},{"timestamp":9,"value":"mr","endpoint":{"serviceName":"b"}}],"binaryAnnotations":[{"key":"ma","value":true,"endpoint":{"serviceName":"kafka"}}]}]"#;
    let reading = read(text);
    assert_eq!(reading.services(), ["a", "b"]);
    assert_eq!((reading.spans[0].kind, reading.spans[1].kind), (SpanKind::Producer, SpanKind::Consumer));
    assert_eq!(reading.attribute(1, Attribute::MessagingSystem), Some("kafka"));
}

#[test]
fn what_is_not_a_span_is_told() {
    let reading = read(&format!("[{CLIENT},{{\"other\":1}}]"));
    assert_eq!(
        reading.example("unknown_document"),
        format!("traces, line 1, column {}: expected a span with \"traceId\" and \"id\", found \"other\"", CLIENT.len() + 3)
    );
    assert_eq!(
        refusal(&format!("[{}]", CLIENT.replace("74280ae0c10d8062", "0"))),
        "traces, line 1, column 2: the span id is \"0\": expected hexadecimal digits that are not all zero"
    );
}
