//! Whatever the bytes: no panic, and no more spans than the bytes can hold.

use std::ops::ControlFlow;

use layerfit::trace::{
    BadRows,
    diagnostics::Diagnostics,
    otlp::decode_otlp_protobuf,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, read_spans},
};
use proptest::prelude::*;

const SAMPLES: &[&str] = &[
    r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"","name":"a","kind":2,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000250000000","attributes":[{"key":"http.url","value":{"stringValue":"http://u:p@[::1]:80?x"}}],"links":[{"traceId":"1","spanId":"2"}],"traceState":"ot=th:fff;p:62","status":{"code":2,"message":"timeout"}}]}]}]}"#,
    r#"{"data":[{"traceID":"a","spans":[{"traceID":"a","spanID":"1","operationName":"x","references":[{"refType":"CHILD_OF","traceID":"a","spanID":"2","span":{}}],"startTime":1674578014920566,"duration":3.5,"tags":[{"key":"span.kind","type":"string","value":"server"}],"processID":"p1","warnings":["w"]}],"processes":{"p1":{"serviceName":"s","tags":[]}}}]}"#,
    "{\"index\":{}}\n{\"traceID\":\"a\",\"spanID\":\"1\",\"operationName\":\"x\",\"startTimeMillis\":5,\"duration\":\"0.5s\",\"tag\":{\"http@url\":\"x\"},\"process\":{\"serviceName\":\"s\"}}\n{\"traceId\":\"AAAAAAAAAAAY0MGPz50I5Q==\",\"spanId\":\"GNDBj8+dCOU=\",\"startTime\":\"2022-05-16T07:58:38.503123Z\",\"duration\":\"-1.5s\"}",
    r#"[[{"traceId":"1","id":"2","parentId":"3","kind":"CLIENT","timestamp":5,"duration":6,"shared":true,"localEndpoint":{"serviceName":"s","ipv4":"1.2.3.4"},"remoteEndpoint":{"port":80},"tags":{"error":""}}],[{"traceId":"1","id":"2","annotations":[{"timestamp":1,"value":"cs","endpoint":{"serviceName":"a"}},{"timestamp":2,"value":"sr","endpoint":{"serviceName":"b"}}],"binaryAnnotations":[{"key":"sa","value":true,"endpoint":{}}]}]]"#,
    "\n\u{1}\u{2}\n\u{2}\n\u{0}\u{12}\u{4}\u{12}\u{2}\u{a}\u{0}\n",
];

/// Reads `bytes` in every way: each must end, and give no more spans than two for every eight bytes.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    for format in [SpanFormat::Auto, SpanFormat::Otlp, SpanFormat::Jaeger, SpanFormat::Zipkin] {
        for bad_rows in [BadRows::Count, BadRows::Reject] {
            let (mut texts, mut diagnostics, mut n_spans) = (SpanTexts::default(), Diagnostics::default(), 0);
            let options = SpanReadOptions { bad_rows, limit_bytes: 1 << 20, ..SpanReadOptions::default() };
            let mut sink = |span: layerfit::trace::span::Span, texts: &mut SpanTexts| {
                assert!(texts.resource(span.resource).is_some(), "every span has a resource");
                assert!((span.name as usize) < texts.texts.len(), "every span has a name");
                assert!(span.adjusted_count.is_none_or(|count| count >= 1.0 && count.is_finite()));
                n_spans += 1;
                ControlFlow::Continue(())
            };
            let read = read_spans("hostile", bytes, format, &options, &mut texts, &mut diagnostics, &mut sink);
            if bad_rows == BadRows::Reject && read.is_ok() {
                prop_assert_eq!(diagnostics.count("malformed") + diagnostics.count("truncated") + diagnostics.count("bad_span"), 0);
            }
            decode_otlp_protobuf("hostile", bytes, &options, &mut texts, &mut diagnostics, &mut sink).ok();
            prop_assert!(n_spans <= 2 + bytes.len() / 4, "{} spans of {} bytes", n_spans, bytes.len());
            prop_assert!(texts.texts.iter().all(|text| text.len() <= layerfit::trace::span::LONGEST_TEXT_BYTES));
        }
    }
    Ok(())
}

fn sample() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(SAMPLES).prop_map(|sample| sample.as_bytes().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        check(&bytes)?;
    }

    #[test]
    fn arbitrary_json_like_text(text in "[\\[\\]{}\",:0-9a-z\\\\ \n]{0,200}") {
        check(text.as_bytes())?;
    }

    #[test]
    fn samples_with_bytes_changed_and_cut(mut bytes in sample(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), end in any::<prop::sample::Index>()) {
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let end = end.index(2 * bytes.len()).min(bytes.len());
        check(&bytes[..end])?;
    }

    #[test]
    fn samples_spliced(a in sample(), b in sample(), at in any::<prop::sample::Index>(), from in any::<prop::sample::Index>()) {
        let (at, from) = (at.index(a.len()), from.index(b.len()));
        check(&[&a[..at], &b[from..]].concat())?;
        check(&[&a[..at], &b[..], &a[at..]].concat())?;
    }
}

#[test]
fn samples_are_read() {
    for sample in &SAMPLES[..4] {
        let (mut texts, mut diagnostics, mut n_spans) = (SpanTexts::default(), Diagnostics::default(), 0);
        let options = SpanReadOptions { bad_rows: BadRows::Reject, limit_bytes: 1 << 20, ..SpanReadOptions::default() };
        let sink = &mut |_, _: &mut SpanTexts| {
            n_spans += 1;
            ControlFlow::Continue(())
        };
        read_spans("sample", sample.as_bytes(), SpanFormat::Auto, &options, &mut texts, &mut diagnostics, sink).unwrap();
        assert!(n_spans > 0);
    }
}

#[test]
fn deep_nesting_in_a_span_is_no_recursion() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let text = format!(
        r#"[{{"traceId":"1","id":"2","timestamp":5,"localEndpoint":{{"serviceName":"s"}},"unknown":{deep},"tags":{{"a":{deep}}}}}]"#
    );
    check(text.as_bytes()).unwrap();
    let wrapped = format!("{}{}", "{\"data\":[".repeat(50_000), "]}".repeat(50_000));
    check(wrapped.as_bytes()).unwrap();
}
