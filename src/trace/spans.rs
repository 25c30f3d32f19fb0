//! Spans of OpenTelemetry, Jaeger and Zipkin: bytes in, [`Span`]s out, one at a time.
//!
//! [`read_spans`] decompresses, finds out which format a source has, and hands every span to a sink as soon as it is read.
//! Memory does not grow with the source: containers (documents, arrays of traces, resources, scopes) are walked, and only one
//! span, resource or process is held as text. The exception is a trace or resource whose sender is named after its spans, as
//! Jaeger's `processes` may be: its spans wait, up to 2¹⁹ of them.
//!
//! | rule | |
//! |---|---|
//! | ids | see `ids`: hexadecimal of any width, base64, a hash of other texts; a span or trace id of zero is a bad span |
//! | attributes | see `keys`; the first value of each, the semantic conventions' names before peers' and URLs' |
//! | status | what the span says; else codes of HTTP and gRPC; time-outs and cancellations by codes and words |
//! | sampling | `tracestate` (see `sampling`), else a rate attribute, else Jaeger's probabilistic sampler |
//! | peers | of a serving span, `peer.*` and `net.peer.*` say who asked, so they are not kept |
//! | times | a source whose spans all lack them is read without, see `timeless`; whether their unit is the format's, see `unit_of_time` |
//! | URLs | the path is kept; where nothing else names the server, the URL's host does |
//!
//! A span that cannot be read is counted, with line and column, and reading goes on after it; in strict mode it is the error
//! that ends the reading. After text that is not JSON, reading goes on at the next line that starts with `{` or `[`.

mod detect;
mod documents;
mod ids;
mod instant;
mod intake;
mod keys;
mod notes;
mod sampling;
mod timeless;
mod unit_of_time;

use std::{
    io::{self, Read},
    ops::ControlFlow,
    str::FromStr,
};

use serde::{Deserialize, Serialize};

pub(super) use {
    detect::Framing,
    documents::{each_document, each_element, is_container},
    instant::{nanoseconds_of_rfc3339, nanoseconds_of_seconds},
    intake::{BadSpan, Held, Intake, Parts, Signal, Stop, moved},
    keys::{Part, is_of_resource},
    notes::{Notes, Said, kind_of_name},
    sampling::adjusted_count_of_tracestate,
};
pub use {intake::Place, sampling::LARGEST_COUNT};

use super::{
    BadRows,
    diagnostics::Diagnostics,
    input, jaeger,
    json::Scanner,
    otlp,
    span::{Span, SpanTexts},
    zipkin,
};
use detect::Found;

/// Bytes that are looked at to find out the format.
const LOOKED_AT_BYTES: u64 = 1 << 16;

/// Takes spans in the order of the input; `Break` ends the reading.
pub type SpanSink<'a> = &'a mut dyn FnMut(Span, &mut SpanTexts) -> ControlFlow<()>;

/// The format that spans are to be read in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanFormat {
    /// OpenTelemetry's protocol, JSON or protobuf.
    Otlp,
    /// Jaeger's JSON: of the query service, of storage, or of protobuf messages.
    Jaeger,
    /// Zipkin's JSON, version 2 or 1.
    Zipkin,
    /// The one that the first bytes show.
    #[default]
    Auto,
}

impl FromStr for SpanFormat {
    type Err = super::UnknownFormat;

    fn from_str(name: &str) -> Result<Self, super::UnknownFormat> {
        match name {
            "otlp" => Ok(Self::Otlp),
            "jaeger" => Ok(Self::Jaeger),
            "zipkin" => Ok(Self::Zipkin),
            "auto" => Ok(Self::Auto),
            _ => Err(super::UnknownFormat { name: name.to_owned() }),
        }
    }
}

/// The format that spans were read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanFormatSeen {
    /// OpenTelemetry's protocol in JSON.
    OtlpJson,
    /// OpenTelemetry's protocol in protobuf.
    OtlpProtobuf,
    /// Jaeger's JSON.
    Jaeger,
    /// Zipkin's JSON.
    Zipkin,
}

/// How spans are read.
#[derive(Clone, Debug)]
pub struct SpanReadOptions {
    /// What is done with a span or document that cannot be read.
    pub bad_rows: BadRows,
    /// Most bytes that a source may have after decompression.
    pub limit_bytes: u64,
    /// Attributes of spans that name the session of a request, beside those of the conventions.
    pub session_keys: Vec<String>,
}

impl Default for SpanReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, limit_bytes: 1 << 34, session_keys: Vec::new() }
    }
}

/// Why a source gives no spans.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its bytes cannot be read, or are too many.
    #[error("{name} cannot be read")]
    Read {
        /// The source.
        name: String,
        /// What failed.
        source: io::Error,
    },
    /// It is something else than asked for.
    #[error("{name} is {seen}: expected {expected}")]
    NotRecognised {
        /// The source.
        name: String,
        /// What it looks like.
        seen: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// It is of the format, but there is nothing in it for us.
    #[error("{name} holds no spans: {reason}")]
    NoSpans {
        /// The source.
        name: String,
        /// What it holds instead.
        reason: String,
    },
    /// A part of it cannot be read (strict mode).
    #[error("{name}, {place}: {message}")]
    Row {
        /// The source.
        name: String,
        /// Where.
        place: Place,
        /// What was found and expected.
        message: String,
    },
}

/// Reads the spans of a source, which may be compressed with gzip or zstd, and hands each to `sink`.
///
/// `name` is the source's name in messages. What was odd is counted in `diagnostics`.
///
/// # Errors
/// When the bytes cannot be read or are more than `options.limit_bytes`, when the source is of no known format or not of
/// `format`, when it holds only metrics, logs, documents of other kinds or spans of no use, and, in strict mode, at the first span or document
/// that cannot be read. Spans that were handed over before stay handed over.
pub fn read_spans(
    name: &str,
    reader: impl Read,
    format: SpanFormat,
    options: &SpanReadOptions,
    texts: &mut SpanTexts,
    diagnostics: &mut Diagnostics,
    sink: SpanSink<'_>,
) -> Result<SpanFormatSeen, ReadError> {
    let mut intake = Intake::new(name, options, texts, diagnostics, sink);
    let mut stream = Forgiving { inner: input::open(reader, options.limit_bytes), cut: None };
    let seen = read_stream(&mut stream, format, options, &mut intake)?;
    if let Some(error) = stream.cut.take() {
        match intake.cut(error) {
            Err(Stop::Failed(error)) => return Err(error),
            _ => return Ok(seen),
        }
    }
    Ok(seen)
}

fn read_stream(
    stream: &mut dyn Read,
    format: SpanFormat,
    options: &SpanReadOptions,
    intake: &mut Intake<'_>,
) -> Result<SpanFormatSeen, ReadError> {
    let mut first = Vec::new();
    let failed = |source| ReadError::Read { name: intake.name().to_owned(), source };
    stream.take(LOOKED_AT_BYTES).read_to_end(&mut first).map_err(failed)?;
    let found = detect::detect(&first);
    let seen = choose(&found, format, intake.name())?;
    let whole = io::Cursor::new(first).chain(stream);
    let outcome = match (seen, &found) {
        (SpanFormatSeen::OtlpProtobuf, Found::Protobuf(framing)) => otlp::read_protobuf(whole, *framing, options, intake),
        (SpanFormatSeen::Jaeger, _) => jaeger::read(&mut Scanner::new(whole), intake),
        (SpanFormatSeen::Zipkin, _) => zipkin::read(&mut Scanner::new(whole), intake),
        (SpanFormatSeen::OtlpJson | SpanFormatSeen::OtlpProtobuf, _) => otlp::read_json(&mut Scanner::new(whole), intake),
    };
    match outcome {
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Sink) => Ok(seen),
        Ok(()) | Err(Stop::Scan(_)) => match intake.hand_over_timeless() {
            Err(Stop::Failed(error)) => Err(error),
            _ => {
                intake.doubt_unit(seen);
                something_read(seen, intake)
            }
        },
    }
}

/// Which reader is to be used.
fn choose(found: &Found, format: SpanFormat, name: &str) -> Result<SpanFormatSeen, ReadError> {
    use SpanFormat::{Auto, Jaeger, Otlp, Zipkin};
    let not = |expected| ReadError::NotRecognised { name: name.to_owned(), seen: found.to_string(), expected };
    match (format, found) {
        (Otlp | Auto, Found::Protobuf(_)) => Ok(SpanFormatSeen::OtlpProtobuf),
        (Otlp | Auto, Found::OtlpJson | Found::OtherSignals) | (Otlp, Found::OtherJson(_) | Found::EmptyAnswer) => {
            Ok(SpanFormatSeen::OtlpJson)
        }
        (Jaeger | Auto, Found::Jaeger) | (Jaeger, Found::OtherJson(_) | Found::EmptyAnswer) => Ok(SpanFormatSeen::Jaeger),
        (Zipkin | Auto, Found::Zipkin) | (Zipkin, Found::OtherJson(_) | Found::EmptyAnswer) => Ok(SpanFormatSeen::Zipkin),
        (Auto, Found::EmptyAnswer) => {
            Err(ReadError::NoSpans { name: name.to_owned(), reason: "it is the answer to a query that found nothing".to_owned() })
        }
        (Otlp, _) => Err(not("OpenTelemetry spans (OTLP, JSON with \"resourceSpans\", or protobuf)")),
        (Jaeger, _) => Err(not("Jaeger spans (JSON with \"data\", \"traceID\", \"spans\", \"operationName\")")),
        (Zipkin, _) => Err(not("Zipkin spans (JSON arrays of spans with \"traceId\", \"id\", \"localEndpoint\")")),
        (Auto, _) => Err(not("spans of OpenTelemetry (OTLP JSON or protobuf), Jaeger JSON or Zipkin JSON, plain, gzip or zstd")),
    }
}

/// An input with spans, or with none of them for a reason that is no fault.
fn something_read(seen: SpanFormatSeen, intake: &Intake<'_>) -> Result<SpanFormatSeen, ReadError> {
    if intake.n_spans > 0 {
        return Ok(seen);
    }
    let others = intake.other_signals();
    let reason = if !others.is_empty() {
        format!("only OpenTelemetry messages of other kinds ({others}); expected messages of traces (\"resourceSpans\")")
    } else if intake.n_bad_spans > 0 {
        let doubt = if seen == SpanFormatSeen::OtlpProtobuf { ", so these may be metrics or logs" } else { "" };
        format!("none of {} can be used{doubt}; the first at {}", intake.n_bad_spans, intake.why_bad())
    } else if intake.n_recognised == 0 {
        "none of its documents is of the format".to_owned()
    } else {
        return Ok(seen);
    };
    Err(ReadError::NoSpans { name: intake.name().to_owned(), reason })
}

/// A stream whose bytes may end too early: that is its end, and is remembered.
struct Forgiving<R> {
    inner: R,
    cut: Option<io::Error>,
}

impl<R: Read> Read for Forgiving<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut.is_some() {
            return Ok(0);
        }
        match self.inner.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut = Some(error);
                Ok(0)
            }
            other => other,
        }
    }
}
