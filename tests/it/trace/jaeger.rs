//! Jaeger: the query service's documents, those of storage, and protobuf messages as JSON.

use layerfit::trace::{
    span::{Attribute, Link, SpanId, SpanKind, SpanStatus},
    spans::SpanFormatSeen,
};

use super::spans::{read, refusal};

const SPANS: &str = r#"[
 {"traceID":"4376effce3c2d72d","spanID":"1","flags":1,"operationName":"GET /dispatch","references":[],"startTime":1674578014920566,
  "duration":389644.5,"tags":[{"key":"span.kind","type":"string","value":"server"},{"key":"sampler.type","type":"string","value":"probabilistic"},
  {"key":"sampler.param","type":"float64","value":0.1},{"key":"peer.service","type":"string","value":"browser"}],"logs":[],"processID":"p1","warnings":null},
 {"traceID":"4376effce3c2d72d","spanID":"2","operationName":"SQL SELECT","references":[
   {"refType":"FOLLOWS_FROM","traceID":"4376effce3c2d72d","spanID":"9"},
   {"refType":"CHILD_OF","traceID":"4376effce3c2d72d","spanID":"1","span":{"spanID":"1","references":[{"span":{"spanID":"0"}}]}}],
  "startTime":1674578014920600,"duration":100,"tags":[{"key":"span.kind","type":"string","value":"client"},{"key":"error","type":"bool","value":true},
  {"key":"http.status_code","type":"int64","value":504},{"key":"http.url","type":"string","value":"http://db:8080/query?x=1"}],
  "processID":"p2","warnings":["clock skew"]}]"#;
const PROCESSES: &str = r#"{"p1":{"serviceName":"frontend","tags":[{"key":"hostname","type":"string","value":"node-1"}]},"p2":{"serviceName":"driver","tags":null}}"#;

fn check(text: &str) {
    let reading = read(text);
    assert_eq!(reading.seen, SpanFormatSeen::Jaeger);
    assert_eq!(reading.names(), ["GET /dispatch", "SQL SELECT"], "{text}");
    assert_eq!(reading.services(), ["frontend", "driver"], "{text}");
    assert_eq!(reading.host(0), "node-1");
    let (server, client) = (&reading.spans[0], &reading.spans[1]);
    assert_eq!((server.kind, server.parent, server.adjusted_count), (SpanKind::Server, None, Some(10.0)));
    assert_eq!((server.start_ns, server.duration_ns), (1_674_578_014_920_566_000, Some(389_644_500)));
    assert_eq!(reading.attribute(0, Attribute::PeerService), None, "of a server it is who asks");
    assert_eq!((client.kind, client.parent, client.status), (SpanKind::Client, Some(SpanId(1)), SpanStatus::Timeout));
    assert_eq!(client.links, [Link { trace: server.trace, span: SpanId(9) }]);
    assert_eq!(reading.attribute(1, Attribute::Url), Some("/query"));
    assert_eq!(reading.attribute(1, Attribute::ServerAddress), Some("db"));
    assert_eq!(reading.attribute(1, Attribute::ServerPort), Some("8080"));
    assert_eq!(reading.odd(), [("jaeger_warning", 1)]);
}

#[test]
fn processes_before_and_after_their_spans() {
    check(&format!(
        "{{\"data\":[{{\"traceID\":\"4376effce3c2d72d\",\"spans\":{SPANS},\"processes\":{PROCESSES},\"warnings\":null}}],\"total\":0}}"
    ));
    check(&format!("{{\"data\":[{{\"processes\":{PROCESSES},\"traceID\":\"4376effce3c2d72d\",\"spans\":{SPANS}}}],\"errors\":null}}"));
}

#[test]
fn a_trace_by_itself_and_an_array_of_traces() {
    let trace = format!("{{\"traceID\":\"4376effce3c2d72d\",\"spans\":{SPANS},\"processes\":{PROCESSES}}}");
    check(&trace);
    check(&format!("[{trace}]"));
    assert_eq!(read(&format!("{trace}\n{trace}")).spans.len(), 4);
}

#[test]
fn a_trace_that_is_cut_before_its_processes_is_left_out() {
    let trace = format!("{{\"traceID\":\"4376effce3c2d72d\",\"spans\":{SPANS},\"processes\":{PROCESSES}}}");
    let whole = format!("{{\"data\":[{trace},{trace}]}}");
    let cut = &whole[..whole.rfind("\"processes\"").unwrap()];
    let reading = read(cut);
    assert_eq!((reading.names(), reading.services()), (vec!["GET /dispatch", "SQL SELECT"], vec!["frontend", "driver"]));
    assert_eq!(reading.odd(), [("jaeger_warning", 2), ("cut_trace", 2), ("truncated", 1)]);
    let end = cut.lines().last().unwrap().len() + 1;
    let place = format!("traces, line {}, column {end}", cut.lines().count());
    assert_eq!(reading.example("truncated"), format!("{place}: the input ends within a document: expected its closing brackets"));
    assert_eq!(refusal(cut), reading.example("truncated"));
}

const STORED: &str = r#"{"traceID":"4376effce3c2d72d","spanID":"71582afe25d7dec2","flags":1,"operationName":"HTTP GET /customer","references":[{"refType":"CHILD_OF","traceID":"4376effce3c2d72d","spanID":"6e0702854e85deb9"}],"startTime":1674578014920566,"startTimeMillis":1674578014920,"duration":389644,"tags":[],"tag":{"http@method":"GET","http@status_code":200,"http@url":"/customer?customer=123","span@kind":"server"},"logs":[],"process":{"serviceName":"customer","tags":[],"tag":{"hostname":"1f3a6f0a927e","ip":"192.168.240.7"}}}"#;

#[test]
fn documents_of_storage() {
    for text in [
        STORED.to_owned(),
        format!("{{\"index\":{{}}}}\n{STORED}\n"),
        format!("{{\"index\":{{\"_index\":\"jaeger-span\",\"_id\":\"x\"}}}}\n{STORED}\n"),
        format!("{{\"took\":3,\"hits\":{{\"total\":1,\"hits\":[{{\"_index\":\"jaeger-span\",\"_source\":{STORED}}}]}}}}"),
        format!("{{\"_index\":\"jaeger-span\",\"_id\":\"x\",\"_source\":{STORED}}}"),
    ] {
        let reading = read(&text);
        assert_eq!((reading.names(), reading.services(), reading.host(0)), (vec!["HTTP GET /customer"], vec!["customer"], "1f3a6f0a927e"));
        assert_eq!((reading.spans[0].kind, reading.spans[0].parent), (SpanKind::Server, Some(SpanId(0x6e07_0285_4e85_deb9))));
        assert_eq!(reading.attribute(0, Attribute::Url), Some("/customer"));
        assert_eq!(reading.odd(), [], "{text}");
    }
    let by_milliseconds = read(&STORED.replace("\"startTime\":1674578014920566,", ""));
    assert_eq!(by_milliseconds.spans[0].start_ns, 1_674_578_014_920_000_000);
}

#[test]
fn protobuf_messages_as_json() {
    let line = r#"{"traceId":"AAAAAAAAAAAY0MGPz50I5Q==","spanId":"GNDBj8+dCOU=","operationName":"HTTP GET /","references":[{"traceId":"AAAAAAAAAAAY0MGPz50I5Q==","spanId":"RjxmEY9q3qY="}],"startTime":"2022-05-16T07:58:38.503123Z","duration":"0.000225s","tags":[{"key":"span.kind","vStr":"client"},{"key":"thread.id","vType":"INT64","vInt64":"7"}],"process":{"serviceName":"frontend"}}"#;
    let reading = read(&format!("{line}\n{line}"));
    let span = &reading.spans[1];
    assert_eq!((span.id, span.parent), (SpanId(0x18d0_c18f_cf9d_08e5), Some(SpanId(0x463c_6611_8f6a_dea6))));
    assert_eq!((span.start_ns, span.duration_ns, span.kind), (1_652_687_918_503_123_000, Some(225_000), SpanKind::Client));
    assert_eq!((reading.service(1), reading.attribute(1, Attribute::Thread)), ("frontend", Some("7")));
    let nobody = read(&line.replace(",\"process\":{\"serviceName\":\"frontend\"}", ""));
    assert_eq!(nobody.odd(), [("no_service", 1)]);
}

#[test]
fn references_become_parent_or_links() {
    let with = |references: &str, more: &str| {
        read(&format!("{{\"traceID\":\"a\",\"spanID\":\"5\",\"operationName\":\"x\",\"startTime\":0,\"duration\":1,\"processID\":\"p\",\"references\":{references}{more}}}"))
            .spans
            .remove(0)
    };
    let reference =
        |kind: &str, trace: &str, span: &str| format!("{{\"refType\":\"{kind}\",\"traceID\":\"{trace}\",\"spanID\":\"{span}\"}}");
    let follows = with(&format!("[{}]", reference("FOLLOWS_FROM", "a", "1")), "");
    assert_eq!((follows.parent, follows.links.len()), (None, 1));
    let two = with(&format!("[{},{}]", reference("CHILD_OF", "a", "1"), reference("CHILD_OF", "a", "2")), "");
    assert_eq!((two.parent, two.links[0].span), (Some(SpanId(1)), SpanId(2)));
    let elsewhere = with(&format!("[{}]", reference("CHILD_OF", "b", "1")), "");
    assert_eq!((elsewhere.parent, elsewhere.links[0].trace.0), (None, 0xb));
    assert_eq!(with("null", ",\"parentSpanID\":\"3\"").parent, Some(SpanId(3)));
    assert_eq!(with("[]", ",\"parentSpanID\":\"0\"").parent, None);
}

#[test]
fn parents_that_hold_their_parents_cost_no_more_than_their_length() {
    let mut parent = "{\"spanID\":\"1\"}".to_owned();
    for _ in 0..2_000 {
        parent = format!("{{\"spanID\":\"1\",\"references\":[{{\"refType\":\"CHILD_OF\",\"span\":{parent}}}]}}");
    }
    let span = format!(
        "{{\"traceID\":\"a\",\"spanID\":\"2\",\"operationName\":\"x\",\"references\":[{{\"refType\":\"CHILD_OF\",\"traceID\":\"a\",\"spanID\":\"1\",\"span\":{parent}}}],\"startTime\":1,\"duration\":1,\"processID\":\"p\"}}"
    );
    let text = format!("{{\"data\":[{{\"spans\":[{span}],\"processes\":{{\"p\":{{\"serviceName\":\"s\"}}}}}}]}}");
    let reading = read(&text);
    assert_eq!((reading.spans[0].parent, reading.services()), (Some(SpanId(1)), vec!["s"]));
}

#[test]
fn spans_that_were_zipkins_may_share_their_clients_id() {
    let span = |kind: &str| {
        format!(
            "{{\"traceID\":\"a\",\"spanID\":\"2\",\"operationName\":\"x\",\"parentSpanID\":\"1\",\"startTime\":1,\"duration\":1,\"tags\":[{{\"key\":\"internal.span.format\",\"value\":\"zipkin\"}},{{\"key\":\"span.kind\",\"value\":\"{kind}\"}}],\"process\":{{\"serviceName\":\"s\"}}}}"
        )
    };
    let reading = read(&format!("{}\n{}", span("client"), span("server")));
    assert_eq!((reading.spans[0].shared, reading.spans[1].shared), (false, true));
}

#[test]
fn what_is_not_jaeger_is_refused_in_words() {
    assert_eq!(
        refusal("a,b\n1,2\n"),
        "traces is comma-separated values (first line: a,b): expected spans of OpenTelemetry (OTLP JSON or protobuf), Jaeger JSON or Zipkin JSON, plain, gzip or zstd"
    );
    assert_eq!(
        refusal("{\"traceID\":\"0\",\"spanID\":\"1\",\"operationName\":\"x\",\"startTime\":1}"),
        "traces, line 1, column 1: the trace id is \"0\": expected hexadecimal digits that are not all zero"
    );
}

#[test]
fn a_trace_in_which_no_span_has_times_is_read_without() {
    let stripped = SPANS.replace("\"startTime\":1674578014920566,", "").replace("\"startTime\":1674578014920600,\"duration\":100,", "");
    let trace = |spans: &str| format!("{{\"traceID\":\"4376effce3c2d72d\",\"spans\":{spans},\"processes\":{PROCESSES}}}");
    let reading = read(&trace(&stripped));
    assert_eq!((reading.names(), reading.services()), (vec!["GET /dispatch", "SQL SELECT"], vec!["frontend", "driver"]));
    assert!(reading.spans.iter().all(|span| span.is_timeless && (span.start_ns, span.duration_ns) == (0, Some(0))));
    assert_eq!(reading.odd(), [("jaeger_warning", 1), ("no_times", 2)]);
    let mixed = read(&format!("{}\n{}", trace(&stripped), trace(SPANS)));
    assert_eq!((mixed.spans.len(), mixed.odd()), (2, vec![("jaeger_warning", 2), ("span_without_start", 2)]));
}
