//! The input of spans: limits, streams, formats asked for, and who is told what.

use std::{
    io::{self, Read},
    ops::ControlFlow,
};

use layerfit::trace::{
    diagnostics::Diagnostics,
    span::SpanTexts,
    spans::{ReadError, SpanFormat, SpanFormatSeen, SpanReadOptions, read_spans},
};

use super::spans::{STRICT, try_read};

const ZIPKIN: &str = r#"[{"traceId":"1","id":"2","name":"x","timestamp":5,"localEndpoint":{"serviceName":"s"}}]"#;

fn refused(bytes: &[u8], format: SpanFormat) -> String {
    try_read(bytes, format, &SpanReadOptions::default()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_format_asked_for_must_be_the_one_there() {
    assert_eq!(try_read(ZIPKIN.as_bytes(), SpanFormat::Zipkin, &STRICT).unwrap().seen, SpanFormatSeen::Zipkin);
    assert_eq!(
        refused(ZIPKIN.as_bytes(), SpanFormat::Jaeger),
        "traces is Zipkin JSON: expected Jaeger spans (JSON with \"data\", \"traceID\", \"spans\", \"operationName\")"
    );
    assert_eq!(
        refused(b"{\"a\":1,\"b\":[{\"c\":2}]}", SpanFormat::Auto),
        "traces is JSON of no known kind of trace (keys: a, b, c): expected spans of OpenTelemetry (OTLP JSON or protobuf), Jaeger JSON or Zipkin JSON, plain, gzip or zstd"
    );
    assert_eq!(refused(b"{\"a\":1}", SpanFormat::Zipkin), "traces holds no spans: none of its documents is of the format");
    for answer in ["[]", "{\"data\":[],\"total\":0}"] {
        let expected = "traces holds no spans: it is the answer to a query that found nothing";
        assert_eq!(refused(answer.as_bytes(), SpanFormat::Auto), expected);
    }
    assert!(try_read(b"{\"data\":[]}", SpanFormat::Jaeger, &SpanReadOptions::default()).is_ok(), "beside others it is no fault");
    assert_eq!(
        refused(b"", SpanFormat::Otlp),
        "traces is empty: expected OpenTelemetry spans (OTLP, JSON with \"resourceSpans\", or protobuf)"
    );
}

#[test]
fn formats_have_names() {
    for (name, format) in
        [("otlp", SpanFormat::Otlp), ("jaeger", SpanFormat::Jaeger), ("zipkin", SpanFormat::Zipkin), ("auto", SpanFormat::Auto)]
    {
        assert_eq!(name.parse(), Ok(format));
    }
    assert!("kieker".parse::<SpanFormat>().is_err());
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let bomb = zstd::encode_all(&[b"[".as_slice(), &vec![b' '; 1 << 20], &ZIPKIN.as_bytes()[1..]].concat()[..], 3).unwrap();
    let limited = |limit_bytes| try_read(&bomb, SpanFormat::Zipkin, &SpanReadOptions { limit_bytes, ..SpanReadOptions::default() });
    assert_eq!(limited(1 << 21).unwrap().spans.len(), 1);
    let Err(ReadError::Read { source, .. }) = limited(1 << 20) else { panic!("was read") };
    assert_eq!(
        (source.kind(), source.to_string()),
        (io::ErrorKind::FileTooLarge, "longer than 1048576 bytes when decompressed".to_owned())
    );
}

#[test]
fn a_compressed_source_that_is_cut_gives_the_spans_before() {
    let text = ZIPKIN.repeat(100_000);
    let mut bytes = zstd::encode_all(text.as_bytes(), 1).unwrap();
    bytes.truncate(bytes.len() - 8);
    let reading = try_read(&bytes, SpanFormat::Auto, &SpanReadOptions::default()).unwrap();
    assert!(reading.spans.len() > 1_000 && reading.spans.len() < 100_000, "{}", reading.spans.len());
    assert!(reading.odd().iter().any(|(code, _)| *code == "truncated"));
    assert!(try_read(&bytes, SpanFormat::Auto, &STRICT).is_err());
}

/// One OTLP document of `n` spans that is never in memory as a whole.
struct Endless {
    n_left: u64,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            self.at = 0;
            self.piece = if self.n_left > 0 {
                self.n_left -= 1;
                let comma = if self.n_left > 0 { "," } else { "" };
                format!(
                    "{{\"traceId\":\"{:x}\",\"spanId\":\"1\",\"name\":\"x\",\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"6\"}}{comma}",
                    self.n_left + 1
                )
                .into_bytes()
            } else if self.ended {
                Vec::new()
            } else {
                self.ended = true;
                b"]}]}]}".to_vec()
            };
        }
        let n = (&self.piece[self.at..]).read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

#[test]
fn one_long_document_is_a_stream_and_the_sink_may_end_it() {
    let endless = |n_left| {
        let start = b"{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"spans\":[".to_vec();
        Endless { n_left, piece: start, at: 0, ended: false }
    };
    let (mut texts, mut diagnostics, mut n_spans) = (SpanTexts::default(), Diagnostics::default(), 0_u64);
    let options = SpanReadOptions { limit_bytes: u64::MAX, ..STRICT };
    let mut read = |reader: Endless, most: u64| {
        n_spans = 0;
        let seen = read_spans("long", reader, SpanFormat::Auto, &options, &mut texts, &mut diagnostics, &mut |_, _| {
            n_spans += 1;
            if n_spans < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(seen.unwrap(), SpanFormatSeen::OtlpJson);
        n_spans
    };
    assert_eq!(read(endless(50_000), u64::MAX), 50_000);
    assert_eq!(read(endless(u64::MAX), 1_000), 1_000, "a document without end is read as far as is asked");
    assert_eq!(texts.texts.len(), 1);
}

/// One document a line, as exporters write them.
fn lines_of(format: SpanFormat) -> Vec<String> {
    let line = |n: u64| match format {
        SpanFormat::Otlp => format!(
            r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"spans":[{{"traceId":"{n:x}","spanId":"1","name":"x","startTimeUnixNano":"5","endTimeUnixNano":"6"}}]}}]}}]}}"#
        ),
        SpanFormat::Jaeger => {
            format!(r#"{{"traceID":"{n:x}","spanID":"1","operationName":"x","startTime":5,"duration":1,"process":{{"serviceName":"s"}}}}"#)
        }
        _ => format!(r#"{{"traceId":"{n:x}","id":"1","name":"x","timestamp":5,"localEndpoint":{{"serviceName":"s"}}}}"#),
    };
    (1..=20).map(line).collect()
}

#[test]
fn one_bad_line_is_counted_wherever_it_stands() {
    for format in [SpanFormat::Otlp, SpanFormat::Jaeger, SpanFormat::Zipkin] {
        let good = lines_of(format);
        let at = |text: &str| good[0].find(text).unwrap();
        let cuts = [at("\"1\"") + 3, at("ime"), at("5") + 1].map(|length| good[0][..length].to_owned());
        let others = ["exporter started", "42", "\0"].map(str::to_owned);
        let bad = [cuts, others].concat();
        for bad in &bad {
            for place in [0, 10] {
                let mut lines = good.clone();
                lines.insert(place, bad.clone());
                let text = format!("{}\n", lines.join("\n"));
                for asked in [format, SpanFormat::Auto] {
                    let reading = try_read(text.as_bytes(), asked, &SpanReadOptions::default()).unwrap_or_else(|e| panic!("{bad}: {e}"));
                    assert_eq!(reading.spans.len(), 20, "{format:?} {place} {bad}: {:?}", reading.odd());
                    assert_eq!(reading.odd().iter().filter(|(code, _)| *code == "malformed").map(|(_, n)| n).sum::<u64>(), 1);
                    assert!(reading.example("malformed").starts_with(&format!("traces, line {}", place + 1)));
                    let refusal = try_read(text.as_bytes(), asked, &STRICT).map(|_| ()).unwrap_err().to_string();
                    assert!(refusal.starts_with(&format!("traces, line {}", place + 1)), "{refusal}");
                }
            }
        }
    }
}
