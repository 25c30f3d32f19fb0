//! Version 1 of Zipkin's JSON: annotations say what version 2 calls kind, times and endpoints.
//!
//! | annotation | |
//! |---|---|
//! | `cs`, `cr` | a client sent, received: the client's half, of the endpoint there |
//! | `sr`, `ss` | a server received, sent: the server's half |
//! | `ms`, `mr` | a producer sent, a consumer received |
//!
//! | binary annotation | |
//! |---|---|
//! | `sa`, `ma`, with an endpoint | whom the client, the producer addressed; alone, the span is a client's |
//! | `ca`, with an endpoint | who called the server; alone, the span is a server's |
//! | any other | an attribute of the half whose endpoint it has |
//!
//! Where a span has the times of both halves, the second is handed over as `shared`. A server's half by itself is shared too if
//! the span has no `timestamp`, as only who starts a span says when it started.

use super::{
    super::{
        json::{Entries, Place, Scalar},
        span::{Span, SpanKind},
        spans::{BadSpan, Intake, Notes},
    },
    Annotation, Endpoint, Ids, ZipkinSpan, duration_ns, note_remote, start_ns,
};

/// What one participant says.
struct Half<'a> {
    kind: SpanKind,
    start: Option<&'a Scalar<'a>>,
    end: Option<&'a Scalar<'a>>,
    local: Option<&'a Endpoint<'a>>,
    remote: Option<&'a Endpoint<'a>>,
    shared: bool,
}

/// The spans that `json` holds: one, or one for each participant.
pub(super) fn halves(json: &ZipkinSpan<'_>, ids: &Ids, intake: &mut Intake<'_>, place: Place) -> Vec<Result<Span, BadSpan>> {
    let halves = participants(json, ids);
    (0..halves.len()).map(|i| span(json, ids, &halves, i, intake, place)).collect()
}

fn participants<'a>(json: &'a ZipkinSpan<'a>, ids: &Ids) -> Vec<Half<'a>> {
    let at = |value: &str| json.annotations.0.iter().find(|annotation| &*annotation.value == value);
    let remote_at = |key: &str| json.binary_annotations.0.iter().flatten().find(|b| &*b.key == key).and_then(|b| b.endpoint.0.as_ref());
    let stamped = |timestamp: &Scalar<'_>| !matches!(timestamp, Scalar::Other | Scalar::Int(0));
    let pairs = [
        (SpanKind::Client, at("cs"), at("cr"), remote_at("sa")),
        (SpanKind::Server, at("sr"), at("ss"), remote_at("ca")),
        (SpanKind::Producer, at("ms"), None, remote_at("ma")),
        (SpanKind::Consumer, at("mr"), None, remote_at("ma")),
    ];
    let time = |annotation: Option<&'a Annotation<'a>>| annotation.map(|a| &a.timestamp).filter(|t| stamped(t));
    let mut halves: Vec<Half<'a>> = Vec::new();
    for (kind, first, last, remote) in pairs {
        let Some(any) = first.or(last) else { continue };
        let alone_and_shared = kind == SpanKind::Server && !stamped(&json.timestamp) && ids.parent.is_some();
        let shared = !halves.is_empty() || alone_and_shared;
        halves.push(Half { kind, start: time(first), end: time(last), local: any.endpoint.0.as_ref(), remote, shared });
    }
    if halves.is_empty() {
        let (kind, remote) = match (remote_at("sa"), remote_at("ca")) {
            (Some(server), _) => (SpanKind::Client, Some(server)),
            (None, Some(client)) => (SpanKind::Server, Some(client)),
            (None, None) => (SpanKind::Unspecified, None),
        };
        halves.push(Half { kind, start: None, end: None, local: someone(json), remote, shared: false });
    }
    halves
}

/// The endpoint of a span that has no annotation of a participant.
fn someone<'a>(json: &'a ZipkinSpan<'a>) -> Option<&'a Endpoint<'a>> {
    let own = json.binary_annotations.0.iter().flatten().filter(|b| !is_address(&b.key)).find_map(|b| b.endpoint.0.as_ref());
    own.or_else(|| json.annotations.0.iter().find_map(|a| a.endpoint.0.as_ref()))
}

fn is_address(key: &str) -> bool {
    matches!(key, "sa" | "ca" | "ma")
}

fn span(json: &ZipkinSpan<'_>, ids: &Ids, halves: &[Half<'_>], i: usize, intake: &mut Intake<'_>, place: Place) -> Result<Span, BadSpan> {
    let half = &halves[i];
    let mut span = ids.span(intake.name_text(&json.name));
    let own_times = i == 0 && !matches!(&json.timestamp, Scalar::Other | Scalar::Int(0));
    let first = json.annotations.0.iter().map(|a| &a.timestamp).find(|t| !matches!(t, Scalar::Other));
    let start = half.start.or(own_times.then_some(&json.timestamp)).or(half.end).or(first);
    if let Some(start) = start {
        span.start_ns = start_ns(start)?;
        span.duration_ns = match (half.start, half.end) {
            (Some(_), Some(end)) => Some(start_ns(end)?.saturating_sub(span.start_ns)),
            _ if i == 0 => duration_ns(&json.duration)?,
            _ => None,
        };
    } else {
        (span.is_timeless, span.duration_ns) = (true, Some(0));
    }
    span.kind = half.kind;
    span.shared = half.shared;
    let mut notes = Notes::default();
    for annotation in json.binary_annotations.0.iter().flatten().filter(|b| !is_address(&b.key)) {
        if whose(annotation.endpoint.0.as_ref(), halves) == i {
            notes.note(intake, &annotation.key, &annotation.value);
        }
    }
    if let Some(error) = json.annotations.0.iter().find(|a| &*a.value == "error" && whose(a.endpoint.0.as_ref(), halves) == i) {
        notes.note_error(&error.value);
    }
    if let Some(remote) = half.remote {
        note_remote(&mut notes, intake, span.kind, remote);
    }
    notes.complete(intake, &mut span);
    span.resource = match half.local {
        Some(local) => local.resource(&Entries::default(), intake, place),
        None => Endpoint::default().resource(&Entries::default(), intake, place),
    };
    Ok(span)
}

/// The half that an annotation of an endpoint belongs to: the first with the same endpoint, else of the same service, else the first.
fn whose(endpoint: Option<&Endpoint<'_>>, halves: &[Half<'_>]) -> usize {
    let Some(endpoint) = endpoint else { return 0 };
    let same_service = |half: &Half<'_>| half.local.is_some_and(|local| local.service_name == endpoint.service_name);
    let same = |half: &Half<'_>| same_service(half) && half.local.is_some_and(|local| local.address() == endpoint.address());
    halves.iter().position(same).or_else(|| halves.iter().position(same_service)).unwrap_or(0)
}
