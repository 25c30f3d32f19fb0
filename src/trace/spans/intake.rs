//! Where the spans of all formats come together: texts, ids and diagnostics, then the sink.

use std::{fmt, ops::ControlFlow};

use super::{
    super::{
        BadRows,
        diagnostics::Diagnostics,
        json::{self, Scalar, ScanError},
        recent::Recent,
        span::{Attribute, LONGEST_TEXT_BYTES, Resource, Span, SpanId, SpanTexts, TraceId},
    },
    ReadError, SpanFormatSeen, SpanReadOptions, SpanSink,
    ids::{self, Id},
    keys::{self, Meaning, N_PARTS, Part},
    timeless::Timeless,
    unit_of_time::Starts,
};

/// Most distinct texts that are held: attributes past it are dropped, names past it are all [`FURTHER_NAMES`].
const MOST_TEXTS: usize = 1 << 20;

/// Most spans of one trace or resource that are held until the input says who sent them.
pub(super) const MOST_HELD_SPANS: usize = 1 << 19;

/// Stands for names past [`MOST_TEXTS`].
const FURTHER_NAMES: &str = "(further names)";

/// Where in its source something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a text.
    Text(json::Place),
    /// In bytes, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(place) => place.fmt(f),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

impl From<json::Place> for Place {
    fn from(place: json::Place) -> Self {
        Self::Text(place)
    }
}

/// Why reading ends before the input does.
#[derive(Debug)]
pub(in crate::trace) enum Stop {
    /// The sink has enough.
    Sink,
    /// The input is of no use.
    Failed(ReadError),
    /// The walk through JSON cannot go on here.
    Scan(ScanError),
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Self::Scan(error)
    }
}

/// What takes in what a reader finds.
pub(in crate::trace) struct Intake<'a> {
    name: &'a str,
    options: &'a SpanReadOptions,
    texts: &'a mut SpanTexts,
    pub(super) diagnostics: &'a mut Diagnostics,
    sink: SpanSink<'a>,
    pub(super) timeless: Timeless,
    starts: Starts,
    pub(in crate::trace) n_spans: u64,
    pub(in crate::trace) n_bad_spans: u64,
    /// Documents, or parts of one, that are of the format, with spans or without.
    pub(in crate::trace) n_recognised: u64,
    n_other_signals: [u64; 3],
    /// Resources of which service and address are known, by these.
    endpoints: Recent,
    /// Why the first span that is not used is not.
    first_bad: Option<String>,
}

/// What OpenTelemetry's messages hold beside spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Signal {
    Metrics,
    Logs,
    Profiles,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Metrics, Self::Logs, Self::Profiles];

    fn words(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Profiles => "profiles",
        }
    }
}

impl<'a> Intake<'a> {
    pub(in crate::trace) fn new(
        name: &'a str,
        options: &'a SpanReadOptions,
        texts: &'a mut SpanTexts,
        diagnostics: &'a mut Diagnostics,
        sink: SpanSink<'a>,
    ) -> Self {
        Self {
            name,
            options,
            texts,
            diagnostics,
            sink,
            timeless: Timeless::default(),
            starts: Starts::default(),
            n_spans: 0,
            n_bad_spans: 0,
            n_recognised: 0,
            n_other_signals: [0; 3],
            endpoints: Recent::default(),
            first_bad: None,
        }
    }

    /// What the attribute `key` of a span is for; `None` if it is not for us.
    pub(in crate::trace) fn meaning(&self, key: &str) -> Option<Meaning> {
        if self.options.session_keys.iter().any(|named| named == key) {
            return Some(Meaning::Keep(Attribute::Session));
        }
        keys::meaning(key)
    }

    /// Counts a message of another signal.
    pub(in crate::trace) fn other_signal(&mut self, signal: Signal, place: impl Into<Place>) {
        self.n_other_signals[signal as usize] += 1;
        self.odd("other_signals", "OpenTelemetry messages of metrics, logs or profiles: skipped", place, || signal.words().to_owned());
    }

    /// Why the first span that is not used is not.
    pub(super) fn why_bad(&self) -> &str {
        self.first_bad.as_deref().unwrap_or_default()
    }

    /// Remembers why a span is not used, if it is the first.
    pub(super) fn first_bad(&mut self, why: impl FnOnce() -> String) {
        self.first_bad.get_or_insert_with(why);
    }

    /// The messages of other signals, in words; empty if there were none.
    pub(super) fn other_signals(&self) -> String {
        let counted = Signal::ALL.iter().filter(|signal| self.n_other_signals[**signal as usize] > 0);
        let words: Vec<String> =
            counted.map(|signal| format!("{} of {}", self.n_other_signals[*signal as usize], signal.words())).collect();
        words.join(", ")
    }

    /// Hands over one span; one that does not say when it started only if none of its source does, at the end.
    pub(in crate::trace) fn hand_over(&mut self, span: Span) -> Result<(), Stop> {
        if span.is_timeless {
            return self.hold_timeless(span);
        }
        self.refuse_timeless()?;
        self.pass_on(span)
    }

    /// Gives one span to the sink.
    pub(super) fn pass_on(&mut self, span: Span) -> Result<(), Stop> {
        self.n_spans += 1;
        if !span.is_timeless {
            self.starts.note(span.start_ns);
        }
        match (self.sink)(span, self.texts) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Sink),
        }
    }

    /// Hands over a span that could be made, or says why it could not.
    pub(in crate::trace) fn hand_over_or_count(&mut self, span: Result<Span, BadSpan>, place: impl Into<Place>) -> Result<(), Stop> {
        let place = place.into();
        match span {
            Ok(span) => {
                self.met(&span, place);
                self.hand_over(span)
            }
            Err(bad) => self.bad_span(bad, place),
        }
    }

    /// Says why a span cannot be read: counts it, or fails.
    pub(in crate::trace) fn bad_span(&mut self, bad: BadSpan, place: Place) -> Result<(), Stop> {
        self.n_bad_spans += 1;
        let BadSpan { message, offset } = bad;
        let place = moved(place, offset);
        self.first_bad(|| format!("{place}: {message}"));
        self.bad_row("bad_span", "a span that could not be read", place, &message)
    }

    /// Counts something that could not be read, or fails in strict mode.
    pub(in crate::trace) fn bad_row(&mut self, code: &'static str, what: &'static str, place: Place, message: &str) -> Result<(), Stop> {
        self.strictly(place, || message.to_owned())?;
        let source = self.name;
        self.diagnostics.add(code, what, || format!("{source}, {place}: {message}"));
        Ok(())
    }

    /// Fails in strict mode.
    pub(super) fn strictly(&self, place: Place, message: impl FnOnce() -> String) -> Result<(), Stop> {
        match self.options.bad_rows {
            BadRows::Reject => Err(Stop::Failed(ReadError::Row { name: self.name.to_owned(), place, message: message() })),
            BadRows::Count => Ok(()),
        }
    }

    /// Counts something odd that hinders nothing.
    pub(in crate::trace) fn odd(
        &mut self,
        code: &'static str,
        what: &'static str,
        place: impl Into<Place>,
        example: impl FnOnce() -> String,
    ) {
        let (source, place) = (self.name, place.into());
        self.diagnostics.add(code, what, || format!("{source}, {place}: {}", example()));
    }

    /// Says that a walk through JSON cannot go on: `Ok` when the next line may be tried.
    pub(in crate::trace) fn broken(&mut self, error: ScanError) -> Result<(), Stop> {
        match error {
            ScanError::Read(source) => Err(Stop::Failed(ReadError::Read { name: self.name.to_owned(), source })),
            ScanError::Syntax { place, expected } => {
                let message = format!("not JSON: expected {expected}");
                self.bad_row("malformed", "text that is not JSON: skipped to the next line that starts a document", place.into(), &message)
            }
            ScanError::Ended { place } => {
                let message = "the input ends within a document: expected its closing brackets";
                self.bad_row("truncated", "an input that ends within a document: what came before is used", place.into(), message)
            }
        }
    }

    /// Records that the bytes of the source end too early.
    pub(super) fn cut(&mut self, error: std::io::Error) -> Result<(), Stop> {
        match self.options.bad_rows {
            BadRows::Reject => Err(Stop::Failed(ReadError::Read { name: self.name.to_owned(), source: error })),
            BadRows::Count => {
                let source = self.name;
                let what = "an input that ends within a document: what came before is used";
                self.diagnostics.add("truncated", what, || format!("{source}: {error}"));
                Ok(())
            }
        }
    }

    /// Says so where the times of all spans seem to be in another unit than the format's.
    pub(super) fn doubt_unit(&mut self, seen: SpanFormatSeen) {
        let (source, n_spans) = (self.name, self.n_spans);
        if let Some((other, own)) = self.starts.other_unit(seen) {
            let example = format!("{source}: all {n_spans} start in 1970, as {other} in place of {own} would");
            self.diagnostics.add(
                "other_time_unit",
                "inputs whose times seem to be in another unit than their format's: they are read as they are",
                || example,
            );
        }
    }

    /// The name of the source.
    pub(in crate::trace) fn name(&self) -> &'a str {
        self.name
    }

    /// The number of a name.
    pub(in crate::trace) fn name_text(&mut self, text: &str) -> u32 {
        self.known_or_new(text).unwrap_or_else(|| self.texts.text(FURTHER_NAMES))
    }

    /// The number of the text of an attribute; `None` of an empty one, and of a new one when there are too many.
    pub(in crate::trace) fn attribute_text(&mut self, text: &str) -> Option<u32> {
        if text.is_empty() { None } else { self.known_or_new(text) }
    }

    fn known_or_new(&mut self, text: &str) -> Option<u32> {
        if self.texts.texts.len() < MOST_TEXTS {
            return Some(self.texts.text(text));
        }
        let known = self.texts.texts.get(&text[..text.floor_char_boundary(LONGEST_TEXT_BYTES)]);
        if known.is_none() {
            let source = self.name;
            let what = "more distinct names and attributes than are held: further ones are not told apart";
            self.diagnostics.add("too_many_texts", what, || format!("{source}: more than {MOST_TEXTS}"));
        }
        known
    }

    /// The text numbered `number`.
    pub(in crate::trace) fn text_of(&self, number: u32) -> &str {
        self.texts.texts.name(number)
    }

    /// The number of a resource.
    pub(in crate::trace) fn resource(&mut self, parts: &Parts, place: impl Into<Place>) -> u32 {
        if parts.0[Part::Service as usize].is_none() {
            self.odd("no_service", "senders that do not name their service", place, || "expected service.name or serviceName".to_owned());
        }
        self.texts.resource_number(parts.resource())
    }

    /// The number of the resource of a service at an address of which nothing else is known, without looking up its parts; `None`
    /// where something of it is to be remarked on.
    pub(in crate::trace) fn endpoint(&mut self, service: &str, address: &str) -> Option<u32> {
        if service.is_empty() || self.texts.texts.len() >= MOST_TEXTS {
            return None;
        }
        let texts = &mut *self.texts;
        Some(self.endpoints.number(service, address, || {
            let mut text = |text: &str| (!text.is_empty()).then(|| texts.text(text));
            let resource = Resource { service: text(service), host: text(address), ..Resource::default() };
            texts.resource_number(resource)
        }))
    }

    /// The number of the resource of which nothing is known.
    pub(in crate::trace) fn nobody(&mut self) -> u32 {
        self.texts.resource_number(Resource::default())
    }

    /// Counts a span whose process its trace does not name.
    pub(in crate::trace) fn unknown_process(&mut self, id: &str) {
        let source = self.name;
        self.diagnostics.add("unknown_process", "processes that spans name and their trace does not", || format!("{source}: \"{id}\""));
    }

    /// The id of a trace.
    pub(in crate::trace) fn trace_id(&mut self, text: &str) -> Result<TraceId, BadSpan> {
        match ids::trace_id(text) {
            Id::Read(id) => Ok(TraceId(id)),
            Id::Hashed(id) => {
                self.hashed(text);
                Ok(TraceId(id))
            }
            Id::None => Err(BadSpan::unread(format!("the trace id is \"{text}\": expected hexadecimal digits that are not all zero"))),
        }
    }

    /// The id of a span; `None` where the text is empty or zero.
    pub(in crate::trace) fn span_id_or_none(&mut self, text: &str) -> Option<SpanId> {
        match ids::span_id(text) {
            Id::Read(id) => Some(SpanId(id)),
            Id::Hashed(id) => {
                self.hashed(text);
                Some(SpanId(id))
            }
            Id::None => None,
        }
    }

    /// The id of a span.
    pub(in crate::trace) fn span_id(&mut self, text: &str) -> Result<SpanId, BadSpan> {
        self.span_id_or_none(text)
            .ok_or_else(|| BadSpan::unread(format!("the span id is \"{text}\": expected hexadecimal digits that are not all zero")))
    }

    fn hashed(&mut self, text: &str) {
        let source = self.name;
        self.diagnostics.add("hashed_id", "ids that are neither hexadecimal nor base64 of the right length: hashed", || {
            format!("{source}: \"{}\"", abridged(text))
        });
    }
}

/// A span that cannot be read: what was expected, and how far into the span.
#[derive(Debug)]
pub(in crate::trace) struct BadSpan {
    pub(in crate::trace) message: String,
    pub(in crate::trace) offset: Option<json::Place>,
}

impl BadSpan {
    /// A span that cannot be read, as `message` says.
    pub(in crate::trace) fn unread(message: impl Into<String>) -> Self {
        Self { message: message.into(), offset: None }
    }

    /// The same, said of the span with these ids.
    pub(in crate::trace) fn of(self, trace: TraceId, id: SpanId) -> Self {
        Self { message: format!("span {trace}/{id}: {}", self.message), ..self }
    }
}

impl From<serde_json::Error> for BadSpan {
    fn from(error: serde_json::Error) -> Self {
        let place = json::Place { line: error.line() as u64, column: error.column() as u64 };
        let message = error.to_string();
        let words = message.rsplit_once(" at line ").map_or(message.as_str(), |(words, _)| words);
        Self { message: words.to_owned(), offset: Some(place) }
    }
}

/// `offset` within a value, from the value's own place.
pub(in crate::trace) fn moved(place: Place, offset: Option<json::Place>) -> Place {
    match (place, offset) {
        (Place::Text(start), Some(offset)) if offset.line <= 1 => {
            Place::Text(json::Place { line: start.line, column: start.column + offset.column.saturating_sub(1) })
        }
        (Place::Text(start), Some(offset)) => Place::Text(json::Place { line: start.line + offset.line - 1, column: offset.column }),
        (place, _) => place,
    }
}

/// At most 60 characters of a text.
pub(in crate::trace) fn abridged(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// What was said of a resource.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct Parts([Option<u32>; N_PARTS]);

impl Parts {
    /// Notes an attribute of the resource, unless it is not for us; the first of each kind counts.
    pub(in crate::trace) fn note(&mut self, intake: &mut Intake<'_>, key: &str, value: &Scalar<'_>) {
        if let Some(part) = keys::part(key)
            && let Some(text) = value.text()
        {
            self.set(intake, part, &text);
        }
    }

    /// Notes a part of the resource.
    pub(in crate::trace) fn set(&mut self, intake: &mut Intake<'_>, part: Part, text: &str) {
        let slot = &mut self.0[part as usize];
        if slot.is_none() {
            *slot = intake.attribute_text(text);
        }
    }

    fn resource(&self) -> Resource {
        use Part::{
            Client, Container, HostAddress, HostId, HostName, InstanceId, Language, Namespace, Node, Pod, Process, RuntimeName, Service,
        };
        let first = |parts: &[Part]| parts.iter().find_map(|part| self.0[*part as usize]);
        // Inside a pod, the name of the host is that of the pod as a rule.
        let is_pod = self.0[HostName as usize].is_some() && self.0[HostName as usize] == self.0[Pod as usize];
        Resource {
            service: first(&[Service]),
            namespace: first(&[Namespace]),
            instance: first(&[InstanceId, Pod, Container, Client, Process]),
            host: self.0[Node as usize].filter(|_| is_pod).or_else(|| first(&[HostName, Node, HostId, HostAddress])),
            container: first(&[Pod, Container]),
            runtime: first(&[Language, RuntimeName]),
        }
    }
}

/// Spans that wait until the input says who sent them, each with the number of a text that names its sender.
#[derive(Debug, Default)]
pub(in crate::trace) struct Held(Vec<(Span, u32)>);

impl Held {
    /// Holds one more, unless there are too many.
    pub(in crate::trace) fn hold(&mut self, intake: &mut Intake<'_>, span: Span, sender: u32, place: impl Into<Place>) -> Result<(), Stop> {
        if self.0.len() < MOST_HELD_SPANS {
            self.0.push((span, sender));
            return Ok(());
        }
        let message = format!("more than {MOST_HELD_SPANS} spans before the input says who sent them");
        intake.n_bad_spans += 1;
        intake.bad_row("too_many_held", "spans of a trace that is too long to be held until its senders are named", place.into(), &message)
    }

    /// Leaves all out: the input ends before it says who sent them.
    pub(in crate::trace) fn leave_out(&mut self, intake: &mut Intake<'_>) {
        let spans = std::mem::take(&mut self.0);
        intake.n_bad_spans += spans.len() as u64;
        if spans.is_empty() {
            return;
        }
        intake.first_bad(|| "the end of the input, which does not say who sent its spans".to_owned());
        let message = "spans of traces that are cut off before it is said who sent them: left out";
        let examples = spans.iter().map(|(span, _)| format!("{}: {}/{}", intake.name, span.trace, span.id));
        intake.diagnostics.add_times("cut_trace", message, spans.len() as u64, examples);
    }

    /// Whether none is held.
    pub(in crate::trace) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands all over, with the resource that `of` knows for the sender.
    pub(in crate::trace) fn hand_over(
        &mut self,
        intake: &mut Intake<'_>,
        mut of: impl FnMut(&mut Intake<'_>, u32) -> u32,
    ) -> Result<(), Stop> {
        for (mut span, sender) in std::mem::take(&mut self.0) {
            span.resource = of(intake, sender);
            intake.hand_over(span)?;
        }
        Ok(())
    }
}
