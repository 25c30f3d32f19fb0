//! One span of Jaeger, and the process that made it.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess},
};

use super::super::{
    json::{OrNull, Place, Scalar, Text},
    span::{Link, Span, SpanId, SpanKind, TraceId},
    spans::{BadSpan, Intake, Notes, Part, Parts, nanoseconds_of_rfc3339, nanoseconds_of_seconds},
};

const NS_PER_US: i64 = 1_000;
const NS_PER_MS: i64 = 1_000_000;

/// A span as any of Jaeger's forms has it.
#[derive(Deserialize)]
pub(super) struct JaegerSpan<'a> {
    #[serde(borrow, default, rename = "traceID", alias = "traceId")]
    trace_id: Text<'a>,
    #[serde(borrow, default, rename = "spanID", alias = "spanId")]
    span_id: Text<'a>,
    #[serde(borrow, default, rename = "parentSpanID", alias = "parentSpanId")]
    parent_span_id: Text<'a>,
    #[serde(borrow, default, rename = "operationName")]
    operation_name: Text<'a>,
    #[serde(borrow, default)]
    references: OrNull<Vec<Reference<'a>>>,
    #[serde(borrow, default, rename = "startTime")]
    start_time: Scalar<'a>,
    #[serde(borrow, default, rename = "startTimeMillis")]
    start_time_millis: Scalar<'a>,
    #[serde(borrow, default)]
    duration: Scalar<'a>,
    #[serde(borrow, default)]
    tags: Tags<'a>,
    #[serde(borrow, default)]
    tag: Tags<'a>,
    #[serde(borrow, default, rename = "processID", alias = "processId")]
    pub(super) process_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) process: OrNull<Option<Process<'a>>>,
    #[serde(borrow, default)]
    warnings: OrNull<Vec<Scalar<'a>>>,
}

/// A process as any of Jaeger's forms has it.
#[derive(Default, Deserialize)]
pub(super) struct Process<'a> {
    #[serde(borrow, default, rename = "serviceName")]
    service_name: Text<'a>,
    #[serde(borrow, default)]
    tags: Tags<'a>,
    #[serde(borrow, default)]
    tag: Tags<'a>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(borrow, default, rename = "refType")]
    kind: Scalar<'a>,
    #[serde(borrow, default, rename = "traceID", alias = "traceId")]
    trace_id: Text<'a>,
    #[serde(borrow, default, rename = "spanID", alias = "spanId")]
    span_id: Text<'a>,
}

impl Reference<'_> {
    fn follows_from(&self) -> bool {
        match &self.kind {
            Scalar::Text(kind) => kind.eq_ignore_ascii_case("FOLLOWS_FROM"),
            kind => *kind == Scalar::Int(1),
        }
    }
}

/// The span that `json` says, without its resource.
pub(super) fn read(json: &JaegerSpan<'_>, intake: &mut Intake<'_>, place: Place) -> Result<Span, BadSpan> {
    let mut span = Span { trace: intake.trace_id(&json.trace_id)?, id: intake.span_id(&json.span_id)?, ..Span::default() };
    let of_span = |bad: BadSpan| bad.of(span.trace, span.id);
    match start_ns(json).map_err(of_span)? {
        None => (span.is_timeless, span.duration_ns) = (true, Some(0)),
        Some(start) => (span.start_ns, span.duration_ns) = (start, duration_ns(&json.duration).map_err(of_span)?),
    }
    span.name = intake.name_text(&json.operation_name);
    refer(&mut span, json, intake)?;
    let mut notes = Notes::default();
    for (key, value) in json.tags.0.iter().chain(&json.tag.0) {
        notes.note(intake, &dotted(key), value);
    }
    let was_zipkin = notes.was_zipkin;
    notes.complete(intake, &mut span);
    span.shared = was_zipkin && span.kind == SpanKind::Server && span.parent.is_some();
    if let Some(warning) = json.warnings.0.first() {
        intake.odd("jaeger_warning", "spans that Jaeger warns of", place, || warning.text().map_or_else(String::new, Cow::into_owned));
    }
    Ok(span)
}

/// The number of the resource that a process is.
pub(super) fn resource(process: &Process<'_>, intake: &mut Intake<'_>, place: Place) -> u32 {
    let mut parts = Parts::default();
    parts.set(intake, Part::Service, &process.service_name);
    for (key, value) in process.tags.0.iter().chain(&process.tag.0) {
        parts.note(intake, &dotted(key), value);
    }
    intake.resource(&parts, place)
}

fn dotted<'a>(key: &'a str) -> Cow<'a, str> {
    if key.contains('@') { Cow::Owned(key.replace('@', ".")) } else { Cow::Borrowed(key) }
}

fn start_ns(json: &JaegerSpan<'_>) -> Result<Option<i64>, BadSpan> {
    let (value, factor) = match &json.start_time {
        Scalar::Other => (&json.start_time_millis, NS_PER_MS),
        start => (start, NS_PER_US),
    };
    let read = match value {
        Scalar::Other => return Ok(None),
        Scalar::Text(text) => nanoseconds_of_rfc3339(text).or_else(|| value.whole(factor)),
        number => number.whole(factor),
    };
    read.map(Some)
        .ok_or_else(|| BadSpan::unread("the start is no time: expected microseconds since 1970 or an RFC 3339 text, before the year 2262"))
}

fn duration_ns(duration: &Scalar<'_>) -> Result<Option<i64>, BadSpan> {
    let read = match duration {
        Scalar::Other => return Ok(None),
        Scalar::Text(text) => nanoseconds_of_seconds(text).or_else(|| duration.whole(NS_PER_US)),
        number => number.whole(NS_PER_US),
    };
    read.map(Some).ok_or_else(|| BadSpan::unread("the duration is no time: expected microseconds, or seconds with an s"))
}

/// Sets parent and links.
fn refer(span: &mut Span, json: &JaegerSpan<'_>, intake: &mut Intake<'_>) -> Result<(), BadSpan> {
    for reference in &json.references.0 {
        let trace = if reference.trace_id.is_empty() || reference.trace_id == json.trace_id {
            span.trace
        } else {
            intake.trace_id(&reference.trace_id).unwrap_or(TraceId(0))
        };
        let Some(id) = intake.span_id_or_none(&reference.span_id).filter(|id| is_other(span, trace, *id)) else { continue };
        if !reference.follows_from() && trace == span.trace && span.parent.is_none() {
            span.parent = Some(id);
        } else {
            span.links.push(Link { trace, span: id });
        }
    }
    if span.parent.is_none() && json.references.0.is_empty() {
        span.parent = intake.span_id_or_none(&json.parent_span_id).filter(|id| *id != span.id);
    }
    Ok(())
}

fn is_other(span: &Span, trace: TraceId, id: SpanId) -> bool {
    trace.0 != 0 && (trace != span.trace || id != span.id)
}

/// Tags: an array of `{"key", "value"}` (or `vStr`, `vBool`, `vInt64`, `vFloat64`), or an object.
#[derive(Default)]
struct Tags<'a>(Vec<(Text<'a>, Scalar<'a>)>);

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default, alias = "vStr", alias = "vBool", alias = "vInt64", alias = "vFloat64")]
    value: Scalar<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Tags<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> de::Visitor<'de> for Visitor<'a> {
            type Value = Tags<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of tags, or an object")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tags<'a>, A::Error> {
                let mut tags = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(64));
                while let Some(Tag { key, value }) = seq.next_element()? {
                    tags.push((key, value));
                }
                Ok(Tags(tags))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tags<'a>, A::Error> {
                let mut tags = Vec::new();
                while let Some(tag) = map.next_entry()? {
                    tags.push(tag);
                }
                Ok(Tags(tags))
            }
            fn visit_unit<E>(self) -> Result<Tags<'a>, E> {
                Ok(Tags::default())
            }
        }
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}
