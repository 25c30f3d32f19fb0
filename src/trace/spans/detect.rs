//! What the first bytes of a source show.
//!
//! JSON is told by the first of its keys that only one format has, wherever it stands, so that wrappers and broken lines before
//! it, JSON or not, do not matter; protobuf by the nesting of its first message; the rest is described for the error message.

use std::fmt;

use serde_json::Value;

use super::intake::abridged;
use crate::trace::{Format, lines::without_mark};

/// Where a protobuf message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Framing {
    /// At the end of the source: it is the only one.
    Whole,
    /// After as many bytes as the varint before it says.
    Varint,
    /// After as many bytes as the 32-bit big-endian number before it says.
    Fixed32,
    /// The same, and what it holds is compressed.
    Fixed32Compressed,
}

/// What a source looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    OtlpJson,
    Protobuf(Framing),
    Jaeger,
    Zipkin,
    /// OpenTelemetry's metrics, logs or profiles come first; spans may follow.
    OtherSignals,
    /// JSON that is the answer to a query that found nothing, of whatever format.
    EmptyAnswer,
    /// JSON with these keys.
    OtherJson(Vec<String>),
    /// Something else, in words.
    Other(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtlpJson => f.write_str("OpenTelemetry spans (OTLP JSON)"),
            Self::Protobuf(_) => f.write_str("OpenTelemetry protobuf (OTLP)"),
            Self::Jaeger => f.write_str("Jaeger JSON"),
            Self::Zipkin => f.write_str("Zipkin JSON"),
            Self::OtherSignals => f.write_str("OpenTelemetry metrics, logs or profiles (OTLP JSON)"),
            Self::EmptyAnswer => f.write_str("JSON without spans"),
            Self::OtherJson(keys) if keys.is_empty() => f.write_str("JSON without keys"),
            Self::OtherJson(keys) => {
                write!(f, "JSON of no known kind of trace (keys: {}){}", keys.join(", "), to_be_asked_for(keys.iter().map(String::as_str)))
            }
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl Found {
    fn is_known(&self) -> bool {
        !matches!(self, Self::EmptyAnswer | Self::OtherJson(_) | Self::Other(_))
    }
}

/// Keys named in the description of unknown JSON.
const KEYS_NAMED: usize = 8;

/// What a source that begins with `first` looks like.
pub(super) fn detect(first: &[u8]) -> Found {
    let text = without_mark(first).trim_ascii_start();
    if text.is_empty() {
        return Found::Other("empty".to_owned());
    }
    if starts_as_json(text) {
        return detect_json(text);
    }
    match framing(first) {
        Some(framing) => Found::Protobuf(framing),
        None if matches!(text[0], b'{' | b'[') => detect_json(text),
        None => match after_bad_lines(text) {
            Some(known) if known.is_known() => known,
            _ => Found::Other(describe(text)),
        },
    }
}

/// What begins at the first line that may be a document.
fn after_bad_lines(text: &[u8]) -> Option<Found> {
    let starts = memchr::memchr_iter(b'\n', text).map(|at| &text[at + 1..]);
    starts.filter(|line| matches!(line.first(), Some(b'{' | b'['))).find(|line| starts_as_json(line)).map(detect_json)
}

fn starts_as_json(text: &[u8]) -> bool {
    let rest = text[1..].trim_ascii_start();
    match text[0] {
        b'{' => rest.is_empty() || rest[0] == b'}' || (rest[0] == b'"' && rest.get(1).is_none_or(|b| *b >= b' ')),
        b'[' => rest.is_empty() || matches!(rest[0], b'{' | b'[' | b']'),
        _ => false,
    }
}

fn detect_json(text: &[u8]) -> Found {
    let mut keys: Vec<String> = Vec::new();
    let (mut trace_id, mut id) = (false, false);
    for key in Keys(text) {
        match key {
            b"resourceSpans"
            | b"resource_spans"
            | b"batches"
            | b"scopeSpans"
            | b"scope_spans"
            | b"instrumentationLibrarySpans"
            | b"instrumentation_library_spans" => return Found::OtlpJson,
            b"resourceMetrics" | b"resource_metrics" | b"resourceLogs" | b"resource_logs" | b"resourceProfiles" | b"resource_profiles" => {
                return Found::OtherSignals;
            }
            b"traceID" | b"spanID" | b"processID" | b"processes" | b"operationName" => return Found::Jaeger,
            b"localEndpoint" | b"remoteEndpoint" | b"binaryAnnotations" => return Found::Zipkin,
            b"traceId" => trace_id = true,
            b"id" => id = true,
            _ => {}
        }
        if trace_id && id {
            return Found::Zipkin;
        }
        let known = String::from_utf8_lossy(key);
        if keys.len() < KEYS_NAMED && !keys.iter().any(|k| *k == known) {
            keys.push(abridged(&known));
        }
    }
    if keys.is_empty() && !starts_as_json(text) {
        Found::Other(describe(text))
    } else if is_empty_answer(text) {
        Found::EmptyAnswer
    } else {
        Found::OtherJson(keys)
    }
}

/// Whether JSON is an empty list, or says nothing in what holds the traces of an answer.
fn is_empty_answer(text: &[u8]) -> bool {
    fn is_empty(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(values) => values.iter().all(is_empty),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => ["data", "traces", "trace", "spans"].iter().any(|key| fields.get(*key).is_some_and(is_empty)),
        Ok(Value::Array(values)) => values.iter().all(is_empty),
        _ => false,
    }
}

/// The keys of JSON, however broken: texts in quotes that a colon follows.
struct Keys<'a>(&'a [u8]);

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let open = memchr::memchr(b'"', self.0)? + 1;
            let text = &self.0[open..];
            let mut end = 0;
            loop {
                end += memchr::memchr3(b'"', b'\\', b'\n', &text[end..])?;
                if text[end] != b'\\' {
                    break;
                }
                end += 2;
                if end >= text.len() {
                    return None;
                }
            }
            self.0 = &text[end + 1..];
            if text[end] == b'"' && self.0.trim_ascii_start().first() == Some(&b':') {
                return Some(&text[..end]);
            }
        }
    }
}

/// How the first of some messages `ExportTraceServiceRequest` is framed, if these are some. A length of 32 bits is below 2²⁴ and
/// so starts with a zero, which no message does.
fn framing(first: &[u8]) -> Option<Framing> {
    if let [0, b, c, d, rest @ ..] = first {
        let length = u32::from_be_bytes([0, *b, *c, *d]);
        let compressed = rest.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || rest.starts_with(&[0x1f, 0x8b]);
        if length > 0 && compressed {
            return Some(Framing::Fixed32Compressed);
        }
        if is_request(rest, u64::from(length)) {
            return Some(Framing::Fixed32);
        }
    }
    if is_request(first, u64::MAX) {
        return Some(Framing::Whole);
    }
    let (length, rest) = varint(first)?;
    is_request(rest, length).then_some(Framing::Varint)
}

/// Whether `bytes` begin as a message of `length` bytes whose field 1 holds messages with fields 1 and 2 that are messages.
fn is_request(bytes: &[u8], length: u64) -> bool {
    let Some((resource_spans, mut inside)) = field(bytes, &[0x0a], length) else { return false };
    let mut left = resource_spans;
    for _ in 0..2 {
        if left == 0 || inside.is_empty() {
            return true;
        }
        let Some((within, rest)) = field(inside, &[0x0a, 0x12, 0x1a], left) else { return false };
        if inside[0] != 0x0a || within == 0 || rest.is_empty() {
            return true;
        }
        (left, inside) = (within, rest);
    }
    true
}

/// The length and content of a length-delimited field with one of `tags`, if it fits into `most` bytes.
fn field<'a>(bytes: &'a [u8], tags: &[u8], most: u64) -> Option<(u64, &'a [u8])> {
    bytes.first().filter(|tag| tags.contains(tag))?;
    let (length, rest) = varint(&bytes[1..])?;
    let header = (bytes.len() - rest.len()) as u64;
    (header.checked_add(length)? <= most).then_some((length, rest))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut rest = bytes;
    prost::encoding::decode_varint(&mut rest).ok().map(|value| (value, rest))
}

/// Headings or keys that one log of events or messages has and no other: any of these, or both.
const ONLY_OF: [(Format, &[&[&str]]); 4] = [
    (Format::EventTrace, &[&["next_thread"], &["thread_next"]]),
    (Format::Angio, &[&["thread_node"], &["task_node"]]),
    (Format::CallPath, &[&["context_id", "method"], &["context_id", "component"]]),
    (Format::Same, &[&["sender", "receiver"], &["process", "message_type"], &["process", "msg_id"]]),
];

/// What to do about headings or keys that are those of a log: after a comma, or nothing.
fn to_be_asked_for<'a>(headings: impl Iterator<Item = &'a str>) -> String {
    let plain = |h: &str| h.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-'], "_");
    let headings: Vec<String> = headings.map(plain).collect();
    let has_all = |names: &&[&str]| names.iter().all(|name| headings.iter().any(|h| h == name));
    let format = ONLY_OF.iter().find(|(_, any)| any.iter().any(has_all)).map(|(format, _)| *format);
    format.map_or_else(String::new, |format| format!(", {}", asked_for(format)))
}

fn asked_for(format: Format) -> String {
    format!("which is read as {format} where that is asked for")
}

/// Whether a line is a record `$1;1378894834.5;...` of Kieker.
fn is_of_kieker(line: &str) -> bool {
    line.strip_prefix('$').and_then(|rest| rest.split_once(';')).is_some_and(|(kind, _)| kind.parse::<u32>().is_ok())
}

/// A source that is neither JSON nor protobuf, in words.
fn describe(text: &[u8]) -> String {
    let is_comment = |line: &&[u8]| line.is_empty() || line.starts_with(b"#");
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let line = lines.clone().find(|line| !is_comment(line)).or_else(|| lines.clone().next()).unwrap_or(text);
    let Ok(line) = std::str::from_utf8(line.trim_ascii()) else {
        return match text {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "text in UTF-16".to_owned(),
            _ => format!("binary data (first byte 0x{:02x})", text[0]),
        };
    };
    if line.starts_with('<') {
        return format!("XML or HTML (first line: {})", abridged(line));
    }
    let separators = [(',', "comma"), (';', "semicolon"), ('\t', "tab")];
    match separators.iter().max_by_key(|(c, _)| line.matches(*c).count()).filter(|(c, _)| line.matches(*c).count() > 0) {
        Some(_) if is_of_kieker(line) => {
            format!("text as Kieker writes it (first line: {}), {}", abridged(line), asked_for(Format::Kieker))
        }
        Some((separator, name)) if !line.contains('{') => {
            format!("{name}-separated values (first line: {}){}", abridged(line), to_be_asked_for(line.split(*separator)))
        }
        _ if line.starts_with(['{', '[']) => format!("text that is not JSON (first line: {})", abridged(line)),
        _ => format!("text of no known format (first line: {})", abridged(line)),
    }
}

#[cfg(test)]
mod tests;
