//! Spans of Zipkin, JSON of versions 2 and 1.
//!
//! In go arrays of spans, arrays of those (as the query service answers), or a span a line; search results of storage with
//! `hits` and `_source` too. Times are microseconds.
//!
//! | version 2 | span |
//! |---|---|
//! | `kind`, `timestamp`, `duration`, `name`, `parentId` | as they say; a span without `timestamp` starts at its first annotation |
//! | `shared: true` | the server's half of a span whose client has the same id |
//! | `localEndpoint` | the resource: service, and host by address |
//! | `remoteEndpoint` of `CLIENT`, `PRODUCER` | the peer's name, address and port; of `PRODUCER` and `CONSUMER` its name is the messaging system |
//! | `tags` | attributes; of the resource too (`host.name`, `service.instance.id`), as OpenTelemetry's exporter writes them; `error`, whatever it says but `false`, is a failure |
//!
//! Version 1 says the same by annotations (see `v1`). What version 2 calls `shared` is there one span with the times of both
//! halves: two spans are handed over.

mod v1;

use serde::Deserialize;

use super::{
    json::{Entries, OrNull, Place, Scalar, Scanner, Text},
    span::{Attribute, Span, SpanId, SpanKind, TraceId},
    spans::{BadSpan, Intake, Notes, Part, Parts, Stop, each_document, each_element, is_container, is_of_resource, kind_of_name},
};

/// Deepest nesting of wrappers and arrays around the spans.
const DEEPEST_WRAPPER: u32 = 16;

const NS_PER_US: i64 = 1_000;

/// Reads all documents of a stream.
pub(super) fn read(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
    each_document(scanner, intake, |scanner, intake| container(scanner, intake, 0))
}

fn container(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, depth: u32) -> Result<(), Stop> {
    if depth > DEEPEST_WRAPPER || !is_container(scanner)? {
        return Ok(scanner.skip()?);
    }
    if scanner.peek()? == b'[' {
        intake.n_recognised += 1;
        return each_element(scanner, |scanner| container(scanner, intake, depth + 1));
    }
    object(scanner, intake, depth)
}

fn object(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, depth: u32) -> Result<(), Stop> {
    scanner.keep()?;
    let place = scanner.place();
    scanner.enter()?;
    let (mut recognised, mut keys) = (false, Vec::new());
    while scanner.next_key()? {
        match scanner.key() {
            "traceId" | "id" | "parentId" | "timestamp" | "duration" | "kind" | "localEndpoint" | "remoteEndpoint" | "annotations"
            | "binaryAnnotations" | "tags" | "shared" | "debug"
                if !recognised =>
            {
                if let Some((json, place)) = scanner.rest_ahead() {
                    return span(&json, intake, place);
                }
                let short = scanner.capture_rest()?;
                return captured(scanner, intake, short);
            }
            "hits" | "_source" | "data" | "traces" | "spans" => {
                scanner.let_go();
                recognised = true;
                container(scanner, intake, depth + 1)?;
            }
            "index" | "create" => {
                recognised = true;
                scanner.skip()?;
            }
            key => {
                if keys.len() < 4 {
                    keys.push(key.to_owned());
                }
                scanner.skip()?;
            }
        }
    }
    scanner.let_go();
    if !recognised && !keys.is_empty() {
        let message = format!("expected a span with \"traceId\" and \"id\", found \"{}\"", keys.join("\", \""));
        intake.bad_row("unknown_document", "documents that are not Zipkin spans", place.into(), &message)?;
    }
    Ok(())
}

fn captured(scanner: &Scanner<'_>, intake: &mut Intake<'_>, short: bool) -> Result<(), Stop> {
    let place = scanner.captured_place();
    let json = if short {
        serde_json::from_slice(scanner.captured()).map_err(BadSpan::from)
    } else {
        Err(BadSpan::unread("a span of more than 16 MiB"))
    };
    match json {
        Ok(json) => span(&json, intake, place),
        Err(bad) => {
            intake.n_recognised += 1;
            intake.bad_span(bad, place.into())
        }
    }
}

fn span(json: &ZipkinSpan<'_>, intake: &mut Intake<'_>, place: Place) -> Result<(), Stop> {
    intake.n_recognised += 1;
    let ids = match Ids::read(json, intake) {
        Ok(ids) => ids,
        Err(bad) => return intake.bad_span(bad, place.into()),
    };
    if json.is_version_1() {
        for half in v1::halves(json, &ids, intake, place) {
            intake.hand_over_or_count(half.map_err(|bad| bad.of(ids.trace, ids.id)), place)?;
        }
        return Ok(());
    }
    let read = version_2(json, &ids, intake, place).map_err(|bad| bad.of(ids.trace, ids.id));
    intake.hand_over_or_count(read, place)
}

/// A span of either version.
#[derive(Deserialize)]
struct ZipkinSpan<'a> {
    #[serde(borrow, default, rename = "traceId")]
    trace_id: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default, rename = "parentId")]
    parent_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    timestamp: Scalar<'a>,
    #[serde(borrow, default)]
    duration: Scalar<'a>,
    #[serde(borrow, default)]
    shared: Scalar<'a>,
    #[serde(borrow, default, rename = "localEndpoint")]
    local: OrNull<Endpoint<'a>>,
    #[serde(borrow, default, rename = "remoteEndpoint")]
    remote: OrNull<Endpoint<'a>>,
    #[serde(borrow, default)]
    tags: OrNull<Entries<'a>>,
    #[serde(borrow, default)]
    annotations: OrNull<Vec<Annotation<'a>>>,
    #[serde(borrow, default, rename = "binaryAnnotations")]
    binary_annotations: OrNull<Option<Vec<BinaryAnnotation<'a>>>>,
}

impl ZipkinSpan<'_> {
    fn is_version_1(&self) -> bool {
        self.binary_annotations.0.is_some() || self.annotations.0.iter().any(|annotation| annotation.endpoint.0.is_some())
    }
}

#[derive(Clone, Default, Deserialize)]
struct Endpoint<'a> {
    #[serde(borrow, default, rename = "serviceName")]
    service_name: Text<'a>,
    #[serde(borrow, default)]
    ipv4: Text<'a>,
    #[serde(borrow, default)]
    ipv6: Text<'a>,
    #[serde(borrow, default)]
    port: Scalar<'a>,
}

impl Endpoint<'_> {
    fn address(&self) -> &str {
        if self.ipv4.is_empty() { &self.ipv6 } else { &self.ipv4 }
    }

    /// The number of the resource that the endpoint is, with what tags say of it.
    fn resource(&self, tags: &Entries<'_>, intake: &mut Intake<'_>, place: Place) -> u32 {
        // Names without a dot, as `ip`, are not sure to mean the sender.
        let mut said = tags.0.iter().filter(|(key, _)| is_of_resource(key) && key.contains('.')).peekable();
        let is_all = said.peek().is_none();
        if let Some(known) = is_all.then(|| intake.endpoint(&self.service_name, self.address())).flatten() {
            return known;
        }
        let mut parts = Parts::default();
        parts.set(intake, Part::Service, &self.service_name);
        parts.set(intake, Part::HostAddress, self.address());
        said.for_each(|(key, value)| parts.note(intake, key, value));
        intake.resource(&parts, place)
    }
}

#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(borrow, default)]
    timestamp: Scalar<'a>,
    #[serde(borrow, default)]
    value: Text<'a>,
    #[serde(borrow, default)]
    endpoint: OrNull<Option<Endpoint<'a>>>,
}

#[derive(Deserialize)]
struct BinaryAnnotation<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default)]
    value: Scalar<'a>,
    #[serde(borrow, default)]
    endpoint: OrNull<Option<Endpoint<'a>>>,
}

/// The ids of a span.
struct Ids {
    trace: TraceId,
    id: SpanId,
    parent: Option<SpanId>,
}

impl Ids {
    fn read(json: &ZipkinSpan<'_>, intake: &mut Intake<'_>) -> Result<Self, BadSpan> {
        let id = intake.span_id(&json.id)?;
        let parent = intake.span_id_or_none(&json.parent_id).filter(|parent| *parent != id);
        Ok(Self { trace: intake.trace_id(&json.trace_id)?, id, parent })
    }

    fn span(&self, name: u32) -> Span {
        Span { trace: self.trace, id: self.id, parent: self.parent, name, ..Span::default() }
    }
}

fn version_2(json: &ZipkinSpan<'_>, ids: &Ids, intake: &mut Intake<'_>, place: Place) -> Result<Span, BadSpan> {
    let mut span = ids.span(intake.name_text(&json.name));
    let first = json.annotations.0.iter().find(|annotation| annotation.timestamp != Scalar::Other).map(|a| &a.timestamp);
    let start = Some(&json.timestamp).filter(|timestamp| !matches!(timestamp, Scalar::Other | Scalar::Int(0))).or(first);
    match start {
        None => (span.is_timeless, span.duration_ns) = (true, Some(0)),
        Some(start) => (span.start_ns, span.duration_ns) = (start_ns(start)?, duration_ns(&json.duration)?),
    }
    span.kind = kind_of_name(&json.kind).unwrap_or_default();
    span.shared = matches!(&json.shared, Scalar::Bool(true)) || matches!(&json.shared, Scalar::Text(text) if text == "true");
    let mut notes = Notes::default();
    for (key, value) in &json.tags.0.0 {
        notes.note(intake, key, value);
    }
    note_remote(&mut notes, intake, span.kind, &json.remote.0);
    notes.complete(intake, &mut span);
    span.resource = json.local.0.resource(&json.tags.0, intake, place);
    Ok(span)
}

/// Notes the other end of a span, where that is who was asked.
fn note_remote(notes: &mut Notes, intake: &mut Intake<'_>, kind: SpanKind, remote: &Endpoint<'_>) {
    if matches!(kind, SpanKind::Producer | SpanKind::Consumer) {
        notes.set(Attribute::MessagingSystem, intake.attribute_text(&remote.service_name));
    }
    if matches!(kind, SpanKind::Client | SpanKind::Producer) {
        notes.set(Attribute::PeerService, intake.attribute_text(&remote.service_name));
        notes.set(Attribute::ServerAddress, intake.attribute_text(remote.address()));
        let port = remote.port.text().filter(|port| port != "0");
        notes.set(Attribute::ServerPort, port.and_then(|port| intake.attribute_text(&port)));
    }
}

fn start_ns(timestamp: &Scalar<'_>) -> Result<i64, BadSpan> {
    timestamp
        .whole(NS_PER_US)
        .ok_or_else(|| BadSpan::unread("the timestamp is no time: expected microseconds since 1970, before the year 2262"))
}

fn duration_ns(duration: &Scalar<'_>) -> Result<Option<i64>, BadSpan> {
    match duration {
        Scalar::Other => Ok(None),
        duration => match duration.whole(NS_PER_US) {
            Some(ns) => Ok(Some(ns)),
            None => Err(BadSpan::unread("the duration is no time: expected microseconds")),
        },
    }
}
