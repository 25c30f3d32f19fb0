//! OTLP in JSON.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess},
};

use super::{
    super::{
        json::{self, OrNull, Scalar, Scanner, Text},
        span::{Link, Span, SpanKind},
        spans::{BadSpan, Held, Intake, Notes, Parts, Place, Signal, Stop, each_document, each_element, is_container, kind_of_name, moved},
    },
    Body, complete, kind_of_number, parent_of,
};

/// Deepest nesting of wrappers and arrays around the resources.
const DEEPEST_WRAPPER: u32 = 16;

/// Reads all documents of a stream.
pub(in crate::trace) fn read_json(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
    each_document(scanner, intake, |scanner, intake| container(scanner, intake, 0))
}

/// What a key of a document leads to.
enum Role {
    Resources,
    Wrapper,
    OtherSignal(Signal),
    Other,
}

fn role(key: &str) -> Role {
    match key {
        "resourceSpans" | "resource_spans" | "batches" => Role::Resources,
        "trace" | "traces" | "result" | "results" | "data" => Role::Wrapper,
        "resourceMetrics" | "resource_metrics" => Role::OtherSignal(Signal::Metrics),
        "resourceLogs" | "resource_logs" => Role::OtherSignal(Signal::Logs),
        "resourceProfiles" | "resource_profiles" => Role::OtherSignal(Signal::Profiles),
        _ => Role::Other,
    }
}

fn container(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, depth: u32) -> Result<(), Stop> {
    if depth > DEEPEST_WRAPPER || !is_container(scanner)? {
        return Ok(scanner.skip()?);
    }
    if scanner.peek()? == b'[' {
        return each_element(scanner, |scanner| container(scanner, intake, depth + 1));
    }
    let place = scanner.place();
    scanner.enter()?;
    let (mut recognised, mut keys) = (false, Vec::new());
    while scanner.next_key()? {
        let role = role(scanner.key());
        recognised |= !matches!(role, Role::Other);
        match role {
            Role::Resources => {
                intake.n_recognised += 1;
                if is_array(scanner, intake, "an array of resources with spans")? {
                    each_element(scanner, |scanner| resource_spans(scanner, intake))?;
                }
            }
            Role::Wrapper => container(scanner, intake, depth + 1)?,
            Role::OtherSignal(signal) => {
                let place = scanner.place();
                intake.other_signal(signal, place);
                scanner.skip()?;
            }
            Role::Other => {
                if keys.len() < 4 {
                    keys.push(scanner.key().to_owned());
                }
                scanner.skip()?;
            }
        }
    }
    if !recognised && !keys.is_empty() {
        let message = format!("expected \"resourceSpans\", found \"{}\"", keys.join("\", \""));
        intake.bad_row("unknown_document", "documents that are not OpenTelemetry spans", place.into(), &message)?;
    }
    Ok(())
}

fn resource_spans(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
    let mut resource = None;
    let mut held = Held::default();
    let place = scanner.place();
    let read = resource_fields(scanner, intake, &mut resource, &mut held);
    if !held.is_empty() {
        let number = resource.unwrap_or_else(|| intake.resource(&Parts::default(), place));
        held.hand_over(intake, |_, _| number)?;
    }
    read
}

/// Whether an array comes next, as `expected`; `null`, which is nothing, and what is something else are passed over.
fn is_array(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, expected: &str) -> Result<bool, Stop> {
    match scanner.peek()? {
        b'[' => return Ok(true),
        b'n' => scanner.skip()?,
        _ => passed_over(scanner, intake, expected)?,
    }
    Ok(false)
}

/// Passes over what is not as `expected`, and says so.
fn passed_over(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, expected: &str) -> Result<(), Stop> {
    let place = scanner.place();
    scanner.skip()?;
    intake.bad_row("bad_resource", "a resource that could not be read", place.into(), &format!("expected {expected}"))
}

fn resource_fields(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, resource: &mut Option<u32>, held: &mut Held) -> Result<(), Stop> {
    if scanner.peek()? != b'{' {
        return passed_over(scanner, intake, "an object with \"scopeSpans\"");
    }
    scanner.enter()?;
    while scanner.next_key()? {
        match scanner.key() {
            "resource" => {
                *resource = read_resource(scanner, intake)?;
                if let Some(number) = *resource {
                    held.hand_over(intake, |_, _| number)?;
                }
            }
            "scopeSpans" | "scope_spans" | "instrumentationLibrarySpans" | "instrumentation_library_spans" => {
                if is_array(scanner, intake, "an array of scopes with spans")? {
                    each_element(scanner, |scanner| scope_spans(scanner, intake, *resource, held))?;
                }
            }
            _ => scanner.skip()?,
        }
    }
    Ok(())
}

fn read_resource(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<Option<u32>, Stop> {
    if let Some((resource, place)) = scanner.ahead()? {
        return Ok(Some(number_of(&resource, intake, place)));
    }
    if !scanner.capture()? {
        return Ok(None);
    }
    let place = scanner.captured_place();
    match serde_json::from_slice::<OrNull<JsonResource<'_>>>(scanner.captured()) {
        Ok(OrNull(resource)) => Ok(Some(number_of(&resource, intake, place))),
        Err(error) => {
            let BadSpan { message, offset } = error.into();
            intake.bad_row("bad_resource", "a resource that could not be read", moved(Place::Text(place), offset), &message)?;
            Ok(None)
        }
    }
}

fn number_of(resource: &JsonResource<'_>, intake: &mut Intake<'_>, place: json::Place) -> u32 {
    let mut parts = Parts::default();
    for KeyValue { key, value } in &resource.attributes.0 {
        parts.note(intake, key, &value.0);
    }
    intake.resource(&parts, place)
}

fn scope_spans(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, resource: Option<u32>, held: &mut Held) -> Result<(), Stop> {
    if scanner.peek()? != b'{' {
        return passed_over(scanner, intake, "an object with \"spans\"");
    }
    scanner.enter()?;
    while scanner.next_key()? {
        if scanner.key() == "spans" {
            if is_array(scanner, intake, "an array of spans")? {
                each_element(scanner, |scanner| span(scanner, intake, resource, held))?;
            }
        } else {
            scanner.skip()?;
        }
    }
    Ok(())
}

fn span(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, resource: Option<u32>, held: &mut Held) -> Result<(), Stop> {
    let (span, place) = match scanner.ahead()? {
        Some((json, place)) => (read_span(&json, intake), place),
        None => {
            let short = scanner.capture()?;
            (
                if short { read_captured(scanner.captured(), intake) } else { Err(BadSpan::unread("a span of more than 16 MiB")) },
                scanner.captured_place(),
            )
        }
    };
    if let Ok(span) = &span {
        intake.met_with_end(span, place)?;
    }
    match (span, resource) {
        (Ok(mut span), Some(resource)) => {
            span.resource = resource;
            intake.hand_over(span)
        }
        (Ok(span), None) => held.hold(intake, span, 0, place),
        (Err(bad), _) => intake.bad_span(bad, place.into()),
    }
}

fn read_captured(bytes: &[u8], intake: &mut Intake<'_>) -> Result<Span, BadSpan> {
    read_span(&serde_json::from_slice(bytes)?, intake)
}

fn read_span(json: &JsonSpan<'_>, intake: &mut Intake<'_>) -> Result<Span, BadSpan> {
    let id = intake.span_id(&json.span_id)?;
    let parent = intake.span_id_or_none(&json.parent_span_id);
    let span = Span { trace: intake.trace_id(&json.trace_id)?, id, parent: parent_of(parent, id), ..Span::default() };
    let mut notes = Notes::default();
    for KeyValue { key, value } in &json.attributes.0 {
        notes.note(intake, key, &value.0);
    }
    let mut links = Vec::new();
    for link in &json.links.0 {
        if let (Ok(trace), Some(span)) = (intake.trace_id(&link.trace_id), intake.span_id_or_none(&link.span_id)) {
            links.push(Link { trace, span });
        }
    }
    let status = &json.status.0;
    let body = Body {
        name: &json.name,
        start_ns: json.start.0,
        end_ns: json.end.0,
        kind: json.kind.0,
        status_code: status.code.0,
        status_message: &status.message,
        trace_state: &json.trace_state,
        links,
    };
    complete(intake, span, notes, body)
}

#[derive(Deserialize)]
struct JsonSpan<'a> {
    #[serde(borrow, default, rename = "traceId", alias = "trace_id")]
    trace_id: Text<'a>,
    #[serde(borrow, default, rename = "spanId", alias = "span_id")]
    span_id: Text<'a>,
    #[serde(borrow, default, rename = "parentSpanId", alias = "parent_span_id")]
    parent_span_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(default)]
    kind: Kind,
    #[serde(default, rename = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start: Nanoseconds,
    #[serde(default, rename = "endTimeUnixNano", alias = "end_time_unix_nano")]
    end: Nanoseconds,
    #[serde(borrow, default)]
    attributes: OrNull<Vec<KeyValue<'a>>>,
    #[serde(borrow, default)]
    status: OrNull<Status<'a>>,
    #[serde(borrow, default, rename = "traceState", alias = "trace_state")]
    trace_state: Text<'a>,
    #[serde(borrow, default)]
    links: OrNull<Vec<JsonLink<'a>>>,
}

#[derive(Default, Deserialize)]
struct JsonResource<'a> {
    #[serde(borrow, default)]
    attributes: OrNull<Vec<KeyValue<'a>>>,
}

#[derive(Deserialize)]
struct JsonLink<'a> {
    #[serde(borrow, default, rename = "traceId", alias = "trace_id")]
    trace_id: Text<'a>,
    #[serde(borrow, default, rename = "spanId", alias = "span_id")]
    span_id: Text<'a>,
}

#[derive(Default, Deserialize)]
struct Status<'a> {
    #[serde(default)]
    code: StatusCode,
    #[serde(borrow, default)]
    message: Text<'a>,
}

#[derive(Deserialize)]
struct KeyValue<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default)]
    value: AnyValue<'a>,
}

/// `{"stringValue": "…"}` and the like; arrays and maps are passed over.
#[derive(Default)]
struct AnyValue<'a>(Scalar<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for AnyValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = AnyValue<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object such as {\"stringValue\": \"…\"}")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyValue<'de>, A::Error> {
                let mut value = Scalar::Other;
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "stringValue" | "string_value" | "intValue" | "int_value" | "boolValue" | "bool_value" | "doubleValue"
                        | "double_value" => value = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(AnyValue(value))
            }
            fn visit_unit<E>(self) -> Result<AnyValue<'de>, E> {
                Ok(AnyValue::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A kind by number or name.
#[derive(Default)]
struct Kind(SpanKind);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scalar = Scalar::deserialize(deserializer)?;
        Ok(Self(match &scalar {
            Scalar::Text(name) => kind_of_name(name).unwrap_or_else(|| name.parse().map_or(SpanKind::Unspecified, kind_of_number)),
            Scalar::Int(number) => u64::try_from(*number).map_or(SpanKind::Unspecified, kind_of_number),
            _ => SpanKind::Unspecified,
        }))
    }
}

/// A status code by number or name.
#[derive(Default)]
struct StatusCode(i32);

impl<'de> Deserialize<'de> for StatusCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Int(1) => 1,
            Scalar::Int(2) => 2,
            Scalar::Text(name) => match Cow::as_ref(&name) {
                "1" | "STATUS_CODE_OK" | "OK" | "Ok" => 1,
                "2" | "STATUS_CODE_ERROR" | "ERROR" | "Error" => 2,
                _ => 0,
            },
            _ => 0,
        }))
    }
}

/// Nanoseconds since 1970, as a text or a number.
#[derive(Default)]
struct Nanoseconds(Option<u64>);

impl<'de> Deserialize<'de> for Nanoseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scalar = Scalar::deserialize(deserializer)?;
        match &scalar {
            Scalar::Other => Ok(Self(None)),
            Scalar::Text(text) if text.is_empty() => Ok(Self(None)),
            Scalar::Large(number) => Ok(Self(Some(*number))),
            Scalar::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => match text.parse() {
                Ok(number) => Ok(Self(Some(number))),
                Err(_) => Err(de::Error::custom("expected nanoseconds since 1970 of at most 64 bits")),
            },
            scalar => match scalar.whole(1).and_then(|ns| u64::try_from(ns).ok()) {
                Some(ns) => Ok(Self(Some(ns))),
                None => Err(de::Error::custom("expected nanoseconds since 1970 as a number or a text of digits")),
            },
        }
    }
}
