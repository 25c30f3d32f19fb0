//! OTLP in protobuf: requests and resources are walked by their lengths, spans decoded one at a time.
//!
//! A length says where a message ends, so a span that cannot be decoded is passed over and reading goes on. Messages are nested
//! four deep here whatever the bytes say; what is skipped is not looked into.

use std::io::{self, BufRead, BufReader, Read};

use prost::Message;

use super::{
    super::{
        diagnostics::Diagnostics,
        input,
        json::{LONGEST_VALUE_BYTES, Scanner},
        span::{Link, Span, SpanId, SpanTexts, TraceId},
        spans::{BadSpan, Framing, Held, Intake, Notes, Parts, Place, ReadError, SpanReadOptions, SpanSink, Stop},
    },
    Body,
    borrowed::{BorrowedSpan, scalar},
    complete, kind_of_number, messages, parent_of, read_json,
};

/// How many spans a request held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtlpCounts {
    /// Spans handed over.
    pub n_spans: u64,
    /// Spans that could not be read.
    pub n_bad_spans: u64,
}

/// Hands the spans of one `ExportTraceServiceRequest` in protobuf to `sink`: the body of a request to an OTLP receiver.
///
/// # Errors
/// When the body is not such a message; with [`BadRows::Reject`](super::super::BadRows::Reject) also when a span is bad.
pub fn decode_otlp_protobuf(
    name: &str,
    bytes: &[u8],
    options: &SpanReadOptions,
    texts: &mut SpanTexts,
    diagnostics: &mut Diagnostics,
    sink: SpanSink<'_>,
) -> Result<OtlpCounts, ReadError> {
    let mut intake = Intake::new(name, options, texts, diagnostics, sink);
    let mut wire = Wire::new(bytes);
    let read = request(&mut wire, &mut intake, u64::MAX).map_err(|problem| problem.into_stop(&intake, &wire));
    counts(read, &mut intake)
}

/// Hands the spans of one `ExportTraceServiceRequest` in JSON to `sink`: the body of a request to an OTLP receiver.
///
/// # Errors
/// As for [`decode_otlp_protobuf`]; broken JSON is one in [`BadRows::Reject`](super::super::BadRows::Reject) only, else it is
/// counted as `malformed` or `truncated`.
pub fn decode_otlp_json(
    name: &str,
    bytes: &[u8],
    options: &SpanReadOptions,
    texts: &mut SpanTexts,
    diagnostics: &mut Diagnostics,
    sink: SpanSink<'_>,
) -> Result<OtlpCounts, ReadError> {
    let mut intake = Intake::new(name, options, texts, diagnostics, sink);
    let read = read_json(&mut Scanner::new(bytes), &mut intake);
    counts(read, &mut intake)
}

/// What a request gave. Of a stream of requests each is a part, so that one without times is not taken for a source without.
fn counts(read: Result<(), Stop>, intake: &mut Intake<'_>) -> Result<OtlpCounts, ReadError> {
    let refused = intake.refuse_timeless();
    match read.and(refused) {
        Err(Stop::Failed(error)) => Err(error),
        Ok(()) | Err(Stop::Sink | Stop::Scan(_)) => Ok(OtlpCounts { n_spans: intake.n_spans, n_bad_spans: intake.n_bad_spans }),
    }
}

/// Reads all messages of a stream.
pub(in crate::trace) fn read_protobuf(
    reader: impl Read,
    framing: Framing,
    options: &SpanReadOptions,
    intake: &mut Intake<'_>,
) -> Result<(), Stop> {
    let mut wire = Wire::new(BufReader::with_capacity(1 << 16, reader));
    let read = match framing {
        Framing::Whole => request(&mut wire, intake, u64::MAX),
        Framing::Varint | Framing::Fixed32 => framed(&mut wire, intake, framing),
        Framing::Fixed32Compressed => compressed(&mut wire, intake, options.limit_bytes),
    };
    match read {
        Err(Problem::Stop(stop)) => Err(stop),
        Err(problem) => tolerate(problem, intake, wire.offset),
        Ok(()) => Ok(()),
    }
}

/// Counts what ends the reading of bytes, or fails in strict mode.
fn tolerate(problem: Problem, intake: &mut Intake<'_>, offset: u64) -> Result<(), Stop> {
    match problem {
        Problem::Stop(stop) => Err(stop),
        Problem::Read(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            let what = "an input that ends within a document: what came before is used";
            intake.bad_row(
                "truncated",
                what,
                Place::Byte(offset),
                "the input ends within a message: expected as many bytes as its length says",
            )
        }
        Problem::Read(source) => Err(Stop::Failed(ReadError::Read { name: intake.name().to_owned(), source })),
        Problem::Wire(message) => {
            let what = "bytes that are no protobuf message: what came before is used";
            intake.bad_row("malformed", what, Place::Byte(offset), message)
        }
    }
}

/// Why the walk cannot go on.
#[derive(Debug)]
enum Problem {
    Stop(Stop),
    Read(io::Error),
    Wire(&'static str),
}

impl Problem {
    /// For a single message, of which a part is of no use.
    fn into_stop<R>(self, intake: &Intake<'_>, wire: &Wire<R>) -> Stop {
        let message = match self {
            Self::Stop(stop) => return stop,
            Self::Wire(message) => message,
            Self::Read(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                "the message ends too early: expected as many bytes as its length says"
            }
            Self::Read(source) => return Stop::Failed(ReadError::Read { name: intake.name().to_owned(), source }),
        };
        let (name, place) = (intake.name().to_owned(), Place::Byte(wire.offset));
        Stop::Failed(ReadError::Row { name, place, message: message.to_owned() })
    }
}

impl From<Stop> for Problem {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

const LENGTH_DELIMITED: u64 = 2;

/// A stream of protobuf's wire format.
struct Wire<R> {
    reader: R,
    offset: u64,
    scratch: Vec<u8>,
}

impl<R: BufRead> Wire<R> {
    fn new(reader: R) -> Self {
        Self { reader, offset: 0, scratch: Vec::new() }
    }

    fn at_end(&mut self) -> Result<bool, Problem> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.offset += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, Problem> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Problem::Wire("expected a varint of at most ten bytes"))
    }

    fn fixed32_big_endian(&mut self) -> Result<u64, Problem> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        self.offset += 4;
        Ok(u64::from(u32::from_be_bytes(bytes)))
    }

    /// The number of the next field and, of a length-delimited one, its length, within a message that ends at `end`;
    /// other fields are passed over.
    fn field(&mut self, end: u64) -> Result<Option<(u64, u64)>, Problem> {
        loop {
            if self.offset >= end || (end == u64::MAX && self.at_end()?) {
                return Ok(None);
            }
            let key = self.varint()?;
            match key & 7 {
                0 => {
                    self.varint()?;
                }
                1 => self.skip(8, end)?,
                5 => self.skip(4, end)?,
                LENGTH_DELIMITED => {
                    let length = self.varint()?;
                    if self.offset.checked_add(length).is_none_or(|past| past > end) {
                        return Err(Problem::Wire("expected a field that ends within its message"));
                    }
                    return Ok(Some((key >> 3, length)));
                }
                _ => return Err(Problem::Wire("expected a field of wire type 0, 1, 2 or 5")),
            }
        }
    }

    fn skip(&mut self, length: u64, end: u64) -> Result<(), Problem> {
        if self.offset.checked_add(length).is_none_or(|past| past > end) {
            return Err(Problem::Wire("expected a field that ends within its message"));
        }
        let skipped = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())?;
        self.offset += skipped;
        if skipped < length { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
    }

    /// The next `length` bytes; `None` of more than [`LONGEST_VALUE_BYTES`], which are skipped.
    fn bytes(&mut self, length: u64) -> Result<Option<&[u8]>, Problem> {
        if length > LONGEST_VALUE_BYTES as u64 {
            self.skip(length, u64::MAX)?;
            return Ok(None);
        }
        self.scratch.clear();
        let n_read = self.reader.by_ref().take(length).read_to_end(&mut self.scratch)? as u64;
        self.offset += n_read;
        if n_read < length { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(Some(&self.scratch)) }
    }
}

fn framed<R: BufRead>(wire: &mut Wire<R>, intake: &mut Intake<'_>, framing: Framing) -> Result<(), Problem> {
    while !wire.at_end()? {
        let length = if framing == Framing::Varint { wire.varint()? } else { wire.fixed32_big_endian()? };
        let end = wire.offset.checked_add(length).ok_or(Problem::Wire("expected the length of a message"))?;
        request(wire, intake, end)?;
    }
    Ok(())
}

/// Messages, each compressed by itself, of protobuf or JSON.
fn compressed<R: BufRead>(wire: &mut Wire<R>, intake: &mut Intake<'_>, limit_bytes: u64) -> Result<(), Problem> {
    let mut left_bytes = limit_bytes;
    while !wire.at_end()? {
        let length = wire.fixed32_big_endian()?;
        let offset = wire.offset;
        let Some(frame) = wire.bytes(length)? else {
            intake.bad_row("malformed", "a compressed message that is too long", Place::Byte(offset), "expected at most 16 MiB")?;
            continue;
        };
        let mut counted = Counted { inner: input::open(frame, left_bytes), n_bytes: 0 };
        let is_json = matches!(counted.inner.fill_buf()?.first(), Some(b'{' | b'['));
        if is_json {
            read_json(&mut Scanner::new(&mut counted), intake)?;
        } else {
            let mut inner = Wire::new(BufReader::new(&mut counted));
            request(&mut inner, intake, u64::MAX)?;
        }
        left_bytes = left_bytes.saturating_sub(counted.n_bytes);
    }
    Ok(())
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    n_bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        self.n_bytes += n_read as u64;
        Ok(n_read)
    }
}

/// `ExportTraceServiceRequest`, which is `TracesData`: field 1 is repeated `ResourceSpans`.
fn request<R: BufRead>(wire: &mut Wire<R>, intake: &mut Intake<'_>, end: u64) -> Result<(), Problem> {
    while let Some((field, length)) = wire.field(end)? {
        if field == 1 {
            intake.n_recognised += 1;
            resource_spans(wire, intake, wire.offset + length)?;
        } else {
            wire.skip(length, end)?;
        }
    }
    Ok(())
}

/// `ResourceSpans`: field 1 is the `Resource`, field 2 repeated `ScopeSpans`, field 1000 what was that before 0.15.
fn resource_spans<R: BufRead>(wire: &mut Wire<R>, intake: &mut Intake<'_>, end: u64) -> Result<(), Problem> {
    let mut resource = None;
    let mut held = Held::default();
    let start = Place::Byte(wire.offset);
    let read = resource_fields(wire, intake, end, &mut resource, &mut held);
    if !held.is_empty() {
        let number = resource.unwrap_or_else(|| intake.resource(&Parts::default(), start));
        held.hand_over(intake, |_, _| number)?;
    }
    read
}

fn resource_fields<R: BufRead>(
    wire: &mut Wire<R>,
    intake: &mut Intake<'_>,
    end: u64,
    resource: &mut Option<u32>,
    held: &mut Held,
) -> Result<(), Problem> {
    while let Some((field, length)) = wire.field(end)? {
        match field {
            1 => *resource = read_resource(wire, intake, length)?,
            2 | 1000 => scope_spans(wire, intake, wire.offset + length, *resource, held)?,
            _ => wire.skip(length, end)?,
        }
    }
    Ok(())
}

fn read_resource<R: BufRead>(wire: &mut Wire<R>, intake: &mut Intake<'_>, length: u64) -> Result<Option<u32>, Problem> {
    let place = Place::Byte(wire.offset);
    let Some(bytes) = wire.bytes(length)? else { return Ok(None) };
    match messages::Resource::decode(bytes) {
        Ok(resource) => {
            let mut parts = Parts::default();
            for attribute in &resource.attributes {
                parts.note(intake, &attribute.key, &scalar(attribute));
            }
            Ok(Some(intake.resource(&parts, place)))
        }
        Err(error) => {
            intake.bad_row("bad_resource", "a resource that could not be read", place, &error.to_string())?;
            Ok(None)
        }
    }
}

/// `ScopeSpans`: field 2 is repeated `Span`.
fn scope_spans<R: BufRead>(
    wire: &mut Wire<R>,
    intake: &mut Intake<'_>,
    end: u64,
    resource: Option<u32>,
    held: &mut Held,
) -> Result<(), Problem> {
    while let Some((field, length)) = wire.field(end)? {
        if field != 2 {
            wire.skip(length, end)?;
            continue;
        }
        let offset = wire.offset;
        let span = match wire.bytes(length)? {
            Some(bytes) => read_span(bytes, intake),
            None => Err(BadSpan::unread("a span of more than 16 MiB")),
        };
        if let Ok(span) = &span {
            intake.met_with_end(span, Place::Byte(offset))?;
        }
        match (span, resource) {
            (Ok(mut span), Some(resource)) => {
                span.resource = resource;
                intake.hand_over(span)?;
            }
            (Ok(span), None) => held.hold(intake, span, 0, Place::Byte(offset))?,
            (Err(bad), _) => intake.bad_span(bad, Place::Byte(offset))?,
        }
    }
    Ok(())
}

fn read_span(bytes: &[u8], intake: &mut Intake<'_>) -> Result<Span, BadSpan> {
    let decoded;
    let message = match BorrowedSpan::of(bytes) {
        Some(message) => message,
        None => {
            decoded = messages::Span::decode(bytes).map_err(|error| BadSpan::unread(error.to_string()))?;
            BorrowedSpan::of_message(&decoded)
        }
    };
    let id = span_id(message.span_id)?;
    let trace = trace_id(message.trace_id)?;
    let parent = if message.parent_span_id.is_empty() { None } else { span_id(message.parent_span_id).ok() };
    let mut notes = Notes::default();
    for (key, value) in &message.attributes {
        notes.note(intake, key, value);
    }
    let link = |(trace, span): &(&[u8], &[u8])| Some(Link { trace: trace_id(trace).ok()?, span: span_id(span).ok()? });
    let body = Body {
        name: message.name,
        start_ns: Some(message.start_time_unix_nano),
        end_ns: Some(message.end_time_unix_nano),
        kind: u64::try_from(message.kind).map_or_else(|_| kind_of_number(0), kind_of_number),
        status_code: message.status_code,
        status_message: message.status_message,
        trace_state: message.trace_state,
        links: message.links.iter().filter_map(link).collect(),
    };
    complete(intake, Span { trace, id, parent: parent_of(parent, id), ..Span::default() }, notes, body)
}

fn trace_id(bytes: &[u8]) -> Result<TraceId, BadSpan> {
    match <[u8; 16]>::try_from(bytes).map(u128::from_be_bytes) {
        Ok(id) if id != 0 => Ok(TraceId(id)),
        _ => Err(BadSpan::unread(format!("the trace id has {} bytes or is zero: expected 16 bytes that are not", bytes.len()))),
    }
}

fn span_id(bytes: &[u8]) -> Result<SpanId, BadSpan> {
    match <[u8; 8]>::try_from(bytes).map(u64::from_be_bytes) {
        Ok(id) if id != 0 => Ok(SpanId(id)),
        _ => Err(BadSpan::unread(format!("the span id has {} bytes or is zero: expected 8 bytes that are not", bytes.len()))),
    }
}
