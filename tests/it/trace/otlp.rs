//! OpenTelemetry: JSON in all its wrappings, protobuf in all its framings.

use std::{io::Write, ops::ControlFlow};

use layerfit::trace::{
    diagnostics::Diagnostics,
    otlp::{OtlpCounts, decode_otlp_json, decode_otlp_protobuf},
    span::{Attribute, Link, Span, SpanId, SpanKind, SpanStatus, SpanTexts, TraceId},
    spans::{SpanFormat, SpanFormatSeen, SpanReadOptions},
};

use super::spans::{STRICT, read, refusal, try_read};

const SHOP: &str = r#"{"resourceSpans":[{"resource":{"attributes":[
  {"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"node-1"}},
  {"key":"process.command_args","value":{"arrayValue":{"values":[{"stringValue":"./shop"}]}}}]},
 "scopeSpans":[{"scope":{"name":"http"},"spans":[
  {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"GET /cart","kind":2,
   "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000250000000","status":{},
   "attributes":[{"key":"http.route","value":{"stringValue":"/cart"}},{"key":"http.response.status_code","value":{"intValue":"200"}}]},
  {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175","parentSpanId":"eee19b7ec3c1b174","name":"SELECT","kind":3,
   "startTimeUnixNano":1700000000010000000,"endTimeUnixNano":1700000000030000000,"traceState":"ot=th:c",
   "attributes":[{"key":"db.system","value":{"stringValue":"mysql"}},{"key":"server.port","value":{"intValue":3306}}],
   "links":[{"traceId":"5b8efff798038103d269b633813fc60d","spanId":"eee19b7ec3c1b176"}],
   "status":{"code":2,"message":"lock wait timeout exceeded"}}]}]}]}"#;

#[test]
fn a_document_is_read_field_by_field() {
    let shop = read(SHOP);
    assert_eq!(shop.seen, SpanFormatSeen::OtlpJson);
    assert_eq!(shop.names(), ["GET /cart", "SELECT"]);
    assert_eq!((shop.service(0), shop.host(1)), ("shop", "node-1"));
    let (server, client) = (&shop.spans[0], &shop.spans[1]);
    assert_eq!(server.trace, TraceId(0x5b8e_fff7_9803_8103_d269_b633_813f_c60c));
    assert_eq!((server.parent, server.kind, server.status), (None, SpanKind::Server, SpanStatus::Ok));
    assert_eq!((server.start_ns, server.duration_ns), (1_700_000_000_000_000_000, Some(250_000_000)));
    assert_eq!(shop.attribute(0, Attribute::HttpRoute), Some("/cart"));
    assert_eq!(shop.attribute(0, Attribute::HttpStatus), Some("200"));
    assert_eq!((client.parent, client.kind, client.status), (Some(server.id), SpanKind::Client, SpanStatus::Timeout));
    assert_eq!(client.links, [Link { trace: TraceId(server.trace.0 + 1), span: SpanId(0xeee1_9b7e_c3c1_b176) }]);
    assert_eq!((client.adjusted_count, server.adjusted_count), (Some(4.0), None));
    assert_eq!(shop.attribute(1, Attribute::DbSystem), Some("mysql"));
    assert_eq!(shop.attribute(1, Attribute::ServerPort), Some("3306"));
    assert!(shop.diagnostics.is_empty(), "{:?}", shop.odd());
}

/// The same spans, however they are written.
fn check_same(text: &str) {
    let (expected, found) = (read(SHOP), read(text));
    assert_eq!(found.names(), expected.names(), "{text}");
    assert_eq!(found.services(), expected.services(), "{text}");
    for (found, expected) in found.spans.iter().zip(&expected.spans) {
        let ids = |span: &layerfit::trace::span::Span| {
            (span.trace, span.id, span.parent, span.kind, span.status, span.start_ns, span.duration_ns)
        };
        assert_eq!(ids(found), ids(expected), "{text}");
    }
}

#[test]
fn field_names_in_snake_case_and_names_of_kinds() {
    let snake = SHOP
        .replace("resourceSpans", "resource_spans")
        .replace("scopeSpans", "scope_spans")
        .replace("traceId", "trace_id")
        .replace("spanId", "span_id")
        .replace("parentSpanId", "parent_span_id")
        .replace("TimeUnixNano", "_time_unix_nano")
        .replace("stringValue", "string_value")
        .replace("\"kind\":2", "\"kind\":\"SPAN_KIND_SERVER\"")
        .replace("\"kind\":3", "\"kind\":\"client\"")
        .replace("\"code\":2", "\"code\":\"STATUS_CODE_ERROR\"");
    check_same(&snake);
}

#[test]
fn older_scopes_and_wrappers() {
    check_same(&SHOP.replace("scopeSpans", "instrumentationLibrarySpans"));
    check_same(&SHOP.replace("resourceSpans", "batches"));
    check_same(&format!("{{\"trace\":{},\"status\":\"COMPLETE\"}}", SHOP.replace("resourceSpans", "batches")));
    check_same(&format!("{{\"result\":{SHOP}}}"));
    check_same(&format!("[{SHOP}]"));
    check_same(&format!("{{\"resourceMetrics\":[{{}}]}}\n{SHOP}"));
}

#[test]
fn ids_in_base64() {
    let base64 = SHOP
        .replace("5b8efff798038103d269b633813fc60c", "W47/95gDgQPSabYzgT/GDA==")
        .replace("eee19b7ec3c1b174", "7uGbfsPBsXQ=")
        .replace("eee19b7ec3c1b175", "7uGbfsPBsXU=");
    check_same(&base64);
}

#[test]
fn a_resource_may_follow_its_spans() {
    let (resource, scopes) = SHOP.split_once(",\n \"scopeSpans\"").unwrap();
    let resource = resource.strip_prefix("{\"resourceSpans\":[{").unwrap();
    let scopes = scopes.strip_suffix("}]}").unwrap();
    check_same(&format!("{{\"resourceSpans\":[{{\"scopeSpans\"{scopes},{resource}}}]}}"));
}

#[test]
fn documents_one_a_line_and_one_after_another() {
    let line = SHOP.replace('\n', " ");
    assert_eq!(read(&format!("{line}\n{line}\r\n\n{line}")).spans.len(), 6);
    assert_eq!(read(&format!("{SHOP}{SHOP}\n{SHOP}")).spans.len(), 6);
}

#[test]
fn broken_lines_are_passed_over_with_their_place() {
    let line = SHOP.replace('\n', " ");
    let cut = &line[..line.find("\"spans\"").unwrap()];
    let text = format!("{line}\n{{not json\n{{\"other\":1}}\n{cut}\n{line}\n{}", &line[..line.len() - 4]);
    let reading = read(&text);
    assert_eq!(reading.spans.len(), 6);
    assert_eq!(reading.odd(), [("malformed", 2), ("unknown_document", 1), ("truncated", 1)]);
    assert_eq!(reading.example("malformed"), "traces, line 2, column 2: not JSON: expected a key in quotes");
    assert_eq!(reading.example("unknown_document"), "traces, line 3, column 1: expected \"resourceSpans\", found \"other\"");
    assert!(reading.example("truncated").starts_with("traces, line 6, column "), "{}", reading.example("truncated"));
    assert_eq!(refusal(&text), "traces, line 2, column 2: not JSON: expected a key in quotes");
}

#[test]
fn a_bad_span_is_told_with_its_place_and_the_next_is_read() {
    for (from, to, message) in [
        (
            "eee19b7ec3c1b174\",\"name",
            "0000000000000000\",\"name",
            "line 5, column 3: the span id is \"0000000000000000\": expected hexadecimal digits that are not all zero",
        ),
        ("\"kind\":2", "\"spanId\":\"1\"", "duplicate field `spanId`"),
        ("\"name\":\"GET /cart\"", "\"name\":{}", "invalid type: map, expected a text"),
        ("\"1700000000250000000\"", "\"later\"", "expected nanoseconds since 1970 as a number or a text of digits"),
        (
            "\"1700000000250000000\"",
            "\"18446744073709551615\"",
            "span 5b8efff798038103d269b633813fc60c/eee19b7ec3c1b174: the end is 18446744073709551615 ns: expected a time before the year 2262",
        ),
    ] {
        let text = SHOP.replacen(from, to, 1);
        assert_ne!(text, SHOP);
        let reading = read(&text);
        assert_eq!((reading.names(), reading.odd()), (vec!["SELECT"], vec![("bad_span", 1)]), "{to}");
        assert!(reading.example("bad_span").ends_with(message), "{}", reading.example("bad_span"));
        assert!(["traces, line 5, column ", "traces, line 6, column "].iter().any(|place| reading.example("bad_span").starts_with(place)));
        assert_eq!(refusal(&text), reading.example("bad_span"));
    }
}

#[test]
fn ids_of_other_kinds_are_hashed_and_counted() {
    let reading = read(&SHOP.replace("eee19b7ec3c1b174", "root").replace("eee19b7ec3c1b175", "child one"));
    assert_eq!(reading.spans[1].parent, Some(reading.spans[0].id));
    assert_eq!(reading.odd(), [("hashed_id", 3)]);
    assert_eq!(reading.example("hashed_id"), "traces: \"root\"");
}

#[test]
fn an_unfinished_span_has_no_duration_and_one_without_start_is_not_used() {
    let reading = read(&SHOP.replace("\"1700000000250000000\"", "\"0\"").replace("\"startTimeUnixNano\":1700000000010000000,", ""));
    assert_eq!((reading.names(), reading.spans[0].duration_ns), (vec!["GET /cart"], None));
    assert_eq!(reading.odd(), [("span_without_start", 1)]);
    let unfinished = SHOP.replace("\"1700000000250000000\"", "\"0\"");
    assert_eq!(
        refusal(&unfinished),
        "traces, line 5, column 3: 5b8efff798038103d269b633813fc60c/eee19b7ec3c1b174 \"GET /cart\" does not say when it ended: expected an end"
    );
}

#[test]
fn milliseconds_in_the_place_of_nanoseconds_are_told() {
    let reading = read(
        &SHOP
            .replace("1700000000000000000", "1700000000000")
            .replace("1700000000250000000", "1700000000250")
            .replace("1700000000010000000,\"endTimeUnixNano\":1700000000030000000", "1700000000010,\"endTimeUnixNano\":1700000000030"),
    );
    assert_eq!((reading.spans.len(), reading.spans[0].duration_ns), (2, Some(250)));
    assert_eq!(reading.odd(), [("other_time_unit", 1)]);
    assert_eq!(reading.example("other_time_unit"), "traces: all 2 start in 1970, as milliseconds in place of nanoseconds would");
}

/// [`SHOP`] with `times` for the times of both spans.
fn shop_with_times(times: &str) -> String {
    let line = |line: &str| match line.trim_start().strip_prefix("\"startTimeUnixNano\"") {
        Some(rest) => format!("{times}{}", rest.splitn(3, ',').last().unwrap()),
        None => line.to_owned(),
    };
    SHOP.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_document_in_which_no_span_has_times_is_read_without() {
    for times in [
        "",
        "\"startTimeUnixNano\":\"\",\"endTimeUnixNano\":\"\",",
        "\"startTimeUnixNano\":0,\"endTimeUnixNano\":\"0\",",
        "\"startTimeUnixNano\":null,",
    ] {
        let text = shop_with_times(times);
        let resource_after = {
            let (resource, scopes) = text.split_once(",\n \"scopeSpans\"").unwrap();
            let resource = resource.strip_prefix("{\"resourceSpans\":[{").unwrap();
            format!("{{\"resourceSpans\":[{{\"scopeSpans\"{},{resource}}}]}}", scopes.strip_suffix("}]}").unwrap())
        };
        for text in [&text, &resource_after] {
            for options in [SpanReadOptions::default(), STRICT] {
                let (expected, found) = (read(SHOP), try_read(text.as_bytes(), SpanFormat::Auto, &options).unwrap());
                assert_eq!((found.names(), found.services()), (expected.names(), expected.services()), "{times}");
                for (span, timed) in found.spans.iter().zip(&expected.spans) {
                    assert_eq!((span.is_timeless, span.start_ns, span.duration_ns), (true, 0, Some(0)));
                    assert!(!timed.is_timeless);
                    let all = |span: &Span| (span.id, span.parent, span.kind, span.status, span.links.clone(), span.adjusted_count);
                    assert_eq!(all(span), all(timed));
                }
                assert_eq!(found.odd(), [("no_times", 2)]);
                assert_eq!(found.example("no_times"), "traces: 5b8efff798038103d269b633813fc60c/eee19b7ec3c1b174 \"GET /cart\"");
            }
        }
    }
}

#[test]
fn spans_without_start_before_and_after_one_with_times_are_not_used() {
    let (timed, timeless) = (SHOP.replace('\n', " "), shop_with_times("").replace('\n', " "));
    for (text, place) in [(format!("{timeless}\n{timed}\n{timeless}"), "line 1"), (format!("{timed}\n{timeless}\n{timeless}"), "line 2")] {
        let reading = read(&text);
        assert_eq!((reading.spans.len(), reading.odd()), (2, vec![("span_without_start", 4)]));
        assert!(reading.spans.iter().all(|span| !span.is_timeless));
        assert!(reading.example("span_without_start").starts_with(&format!("traces, {place}, column ")));
        assert!(reading.example("span_without_start").ends_with(": 5b8efff798038103d269b633813fc60c/eee19b7ec3c1b174 \"GET /cart\""));
        let refused = refusal(&text);
        assert!(refused.starts_with(&format!("traces, {place}, column ")), "{refused}");
        assert!(refused.ends_with("\"GET /cart\" does not say when it started: expected a start, as other spans have"), "{refused}");
    }
}

#[test]
fn metrics_and_logs_alone_are_refused_by_name() {
    let text = "{\"resourceMetrics\":[{\"resource\":{}}]}\n{\"resourceLogs\":[]}\n{\"resourceMetrics\":[]}";
    assert_eq!(
        refusal(text),
        "traces holds no spans: only OpenTelemetry messages of other kinds (2 of metrics, 1 of logs); expected messages of traces (\"resourceSpans\")"
    );
}

#[test]
fn a_request_without_spans_is_none() {
    assert!(read("{\"resourceSpans\":[]}").spans.is_empty());
    assert!(read("{\"resourceSpans\":null}").spans.is_empty());
}

/// A length-delimited field of protobuf.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = varint(u64::from(number) << 3 | 2);
    bytes.extend(varint(content.len() as u64));
    bytes.extend(content);
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u8, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

fn fixed64(field: u8, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

fn key_value(key: &str, value: Vec<u8>) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &value)].concat()
}

fn protobuf_span(id: u64, parent: Option<u64>, name: &str, kind: u64, rest: &[u8]) -> Vec<u8> {
    let mut span = field(1, &0x5b8e_fff7_9803_8103_d269_b633_813f_c60c_u128.to_be_bytes());
    span.extend(field(2, &id.to_be_bytes()));
    span.extend(parent.map_or_else(Vec::new, |parent| field(4, &parent.to_be_bytes())));
    span.extend(field(5, name.as_bytes()));
    span.extend(number(6, kind));
    span.extend(rest);
    span
}

/// The spans of [`SHOP`], by the field numbers of `trace.proto`.
fn shop_in_protobuf() -> Vec<u8> {
    let times = |start: u64, end: u64| [fixed64(7, start), fixed64(8, end)].concat();
    let server = protobuf_span(0xeee1_9b7e_c3c1_b174, None, "GET /cart", 2, &times(1_700_000_000_000_000_000, 1_700_000_000_250_000_000));
    let status = [field(2, b"lock wait timeout exceeded"), number(3, 2)].concat();
    let mut rest = times(1_700_000_000_010_000_000, 1_700_000_000_030_000_000);
    rest.extend(field(9, &key_value("db.system", field(1, b"mysql"))));
    rest.extend(field(9, &key_value("server.port", number(3, 3306))));
    rest.extend(field(11, b"an event, which is skipped"));
    rest.extend(field(3, b"ot=th:c"));
    rest.extend(field(15, &status));
    let client = protobuf_span(0xeee1_9b7e_c3c1_b175, Some(0xeee1_9b7e_c3c1_b174), "SELECT", 3, &rest);
    let resource = field(1, &field(1, &key_value("service.name", field(1, b"shop"))));
    let scope = field(2, &[field(1, &field(1, b"http")), field(2, &server), field(2, &client)].concat());
    field(1, &[resource, scope].concat())
}

fn check_protobuf(bytes: &[u8], copies: usize) {
    let reading = try_read(bytes, SpanFormat::Auto, &STRICT).unwrap();
    assert_eq!(reading.spans.len(), 2 * copies);
    let expected = read(SHOP);
    for (i, span) in reading.spans.iter().enumerate() {
        let same = &expected.spans[i % 2];
        assert_eq!((span.trace, span.id, span.parent, span.kind), (same.trace, same.id, same.parent, same.kind));
        assert_eq!((span.start_ns, span.duration_ns, span.status), (same.start_ns, same.duration_ns, same.status));
        assert_eq!(span.adjusted_count, same.adjusted_count);
        assert_eq!((reading.name(i), reading.service(i)), (expected.name(i % 2), "shop"));
    }
    assert_eq!(reading.attribute(1, Attribute::DbSystem), Some("mysql"));
    assert_eq!(reading.attribute(1, Attribute::ServerPort), Some("3306"));
}

#[test]
fn protobuf_says_the_same_as_json() {
    let message = shop_in_protobuf();
    check_protobuf(&message, 1);
    check_protobuf(&[message.clone(), message].concat(), 2);
}

#[test]
fn protobuf_messages_with_their_lengths_before_them() {
    let message = shop_in_protobuf();
    let by_varint = [varint(message.len() as u64), message.clone()].concat();
    check_protobuf(&by_varint.repeat(3), 3);
    let fixed = |content: &[u8]| [&u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat();
    check_protobuf(&fixed(&message).repeat(3), 3);
    check_protobuf(&fixed(&zstd::encode_all(&message[..], 3).unwrap()).repeat(2), 2);
    let json = zstd::encode_all(SHOP.as_bytes(), 3).unwrap();
    assert_eq!(try_read(&fixed(&json).repeat(2), SpanFormat::Otlp, &STRICT).unwrap().spans.len(), 4);
}

#[test]
fn protobuf_that_is_cut_keeps_what_came_before() {
    let message = shop_in_protobuf();
    let cut = &message[..message.len() - 1];
    let reading = try_read(cut, SpanFormat::Auto, &SpanReadOptions::default()).unwrap();
    assert_eq!((reading.names(), reading.odd()), (vec!["GET /cart"], vec![("truncated", 1)]));
    let error = try_read(cut, SpanFormat::Auto, &STRICT).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("traces, byte ") && error.ends_with("expected as many bytes as its length says"), "{error}");
}

#[test]
fn protobuf_without_times_is_read_without() {
    let spans: Vec<u8> =
        [(1, None), (2, Some(1))].iter().flat_map(|(id, parent)| field(2, &protobuf_span(*id, *parent, "work", 2, &[]))).collect();
    let reading = try_read(&field(1, &field(2, &spans)), SpanFormat::Otlp, &STRICT).unwrap();
    assert_eq!((reading.spans.len(), reading.spans[1].parent), (2, Some(SpanId(1))));
    assert!(reading.spans.iter().all(|span| span.is_timeless));
    assert_eq!(reading.odd(), [("no_service", 1), ("no_times", 2)]);
}

#[test]
fn a_resource_in_protobuf_may_follow_its_spans_and_bad_spans_are_passed_over() {
    let times = fixed64(7, 5_000_000_000);
    let good = field(2, &protobuf_span(1, None, "good", 1, &times));
    let bad = field(2, &[field(1, b"short"), field(2, &7_u64.to_be_bytes()), times].concat());
    let resource = field(1, &field(1, &key_value("service.name", field(1, b"late"))));
    let message = field(1, &[field(2, &[bad, good].concat()), resource].concat());
    let reading = try_read(&message, SpanFormat::Auto, &SpanReadOptions::default()).unwrap();
    assert_eq!((reading.names(), reading.services(), reading.odd()), (vec!["good"], vec!["late"], vec![("bad_span", 1)]));
    assert!(reading.example("bad_span").contains("the trace id has 5 bytes or is zero: expected 16 bytes"));
}

#[test]
fn a_request_to_a_receiver_gives_its_counts() {
    let decode = |bytes: &[u8], json: bool| -> Result<OtlpCounts, String> {
        let (mut texts, mut diagnostics, options) = (SpanTexts::default(), Diagnostics::default(), SpanReadOptions::default());
        let mut sink = |_, _: &mut SpanTexts| ControlFlow::Continue(());
        let decode = if json { decode_otlp_json } else { decode_otlp_protobuf };
        decode("request body", bytes, &options, &mut texts, &mut diagnostics, &mut sink).map_err(|e| e.to_string())
    };
    assert_eq!(decode(&shop_in_protobuf(), false), Ok(OtlpCounts { n_spans: 2, n_bad_spans: 0 }));
    assert_eq!(decode(SHOP.as_bytes(), true), Ok(OtlpCounts { n_spans: 2, n_bad_spans: 0 }));
    assert_eq!(decode(b"", false), Ok(OtlpCounts::default()), "an empty message is a valid one");
    assert_eq!(decode(b"{}", false).unwrap_err(), "request body, byte 1: expected a field of wire type 0, 1, 2 or 5");
    let bad = SHOP.replacen("eee19b7ec3c1b174", "", 1);
    assert_eq!(decode(bad.as_bytes(), true), Ok(OtlpCounts { n_spans: 1, n_bad_spans: 1 }));
    let timeless = shop_with_times("");
    assert_eq!(decode(timeless.as_bytes(), true), Ok(OtlpCounts { n_spans: 0, n_bad_spans: 2 }), "a request is but a part of its stream");
}

#[test]
fn compressed_documents_read_alike() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(SHOP.as_bytes()).unwrap();
    for bytes in [gzip.finish().unwrap(), zstd::encode_all(SHOP.as_bytes(), 3).unwrap()] {
        assert_eq!(try_read(&bytes, SpanFormat::Auto, &STRICT).unwrap().spans.len(), 2);
    }
}

/// In a pod the host's name is the pod's as a rule; the machine, whose processor and clock pods share, is the node.
#[test]
fn a_pod_is_no_host() {
    let host = |name: &str, more: &str| {
        let resource = format!(
            r#"{{"key":"service.name","value":{{"stringValue":"s"}}}},{{"key":"host.name","value":{{"stringValue":"{name}"}}}},
            {{"key":"k8s.pod.name","value":{{"stringValue":"s-1"}}}}{more}"#
        );
        let span = r#"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"x","kind":2,
            "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000250000000"}"#;
        let text = format!(r#"{{"resourceSpans":[{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
        read(&text).host(0).to_owned()
    };
    let node = r#",{"key":"k8s.node.name","value":{"stringValue":"n1"}}"#;
    assert_eq!((host("s-1", node), host("s-1", ""), host("m2", node)), ("n1".to_owned(), "s-1".to_owned(), "m2".to_owned()));
}
