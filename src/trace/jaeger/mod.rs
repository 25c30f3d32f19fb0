//! Spans of Jaeger, in all the JSON that Jaeger writes.
//!
//! | form | looks like |
//! |---|---|
//! | query service, export of the user interface | `{"data": [{"traceID", "spans": […], "processes": {"p1": …}}]}`, a trace by itself, an array of traces |
//! | storage (Elasticsearch, `OpenSearch`) | a document a line: `{"traceID", "spanID", …, "process": {…}}`, with or without the bulk interface's lines between them, or search results with `hits` and `_source` |
//! | protobuf messages as JSON | a span a line: `{"traceId": "base64", "spanId": "base64", "startTime": "RFC 3339", "duration": "0.000225s"}` |
//!
//! Times are microseconds. The first `CHILD_OF` reference into the span's own trace is its parent (`parentSpanID` in old
//! documents); further references, those into other traces and all `FOLLOWS_FROM` become links. The spans that a reference may
//! hold in whole are skipped. Tags are an array of `{"key", "value"}`, or an object whose keys have `@` for a dot.
//!
//! `processes` may stand after `spans`: then the spans of that one trace wait for it. Of a trace that the input's end cuts off before, nothing says who
//! sent its spans: it is left out (`cut_trace`).

mod span;

use super::{
    hashed::HashMap,
    json::{self, OrNull, Scanner},
    spans::{BadSpan, Held, Intake, Parts, Place, Stop, each_document, each_element, is_container, moved},
};
use span::{JaegerSpan, Process};

/// Deepest nesting of wrappers and arrays around the spans.
const DEEPEST_WRAPPER: u32 = 16;

/// Most processes of one trace.
const MOST_PROCESSES: usize = 1 << 16;

/// Reads all documents of a stream.
pub(super) fn read(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
    each_document(scanner, intake, |scanner, intake| container(scanner, intake, 0))
}

/// What a key of an object shows the object to be.
enum Role {
    /// A trace, of which these are the spans.
    Spans,
    /// A trace, of which these are the processes.
    Processes,
    /// Something around what we look for.
    Wrapper,
    /// A line of the bulk interface.
    Action,
    /// A span.
    Span,
    /// Either.
    Other,
}

fn role(key: &str) -> Role {
    match key {
        "spans" => Role::Spans,
        "processes" => Role::Processes,
        "data" | "traces" | "trace" | "result" | "hits" | "_source" => Role::Wrapper,
        "index" | "create" => Role::Action,
        "spanID" | "spanId" | "operationName" | "references" | "parentSpanID" | "startTime" | "startTimeMillis" | "duration" | "tags"
        | "tag" | "logs" | "process" | "processID" => Role::Span,
        _ => Role::Other,
    }
}

/// One trace, as far as it was read.
#[derive(Default)]
struct Trace {
    /// Numbers of the resources of the processes, by the number of the process's text.
    processes: HashMap<u32, u32>,
    known: bool,
    held: Held,
}

fn container(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, depth: u32) -> Result<(), Stop> {
    if depth > DEEPEST_WRAPPER || !is_container(scanner)? {
        return Ok(scanner.skip()?);
    }
    if scanner.peek()? == b'[' {
        return each_element(scanner, |scanner| container(scanner, intake, depth + 1));
    }
    let mut trace = Trace::default();
    let read = object(scanner, intake, depth, &mut trace);
    if read.is_err() && !trace.known {
        trace.held.leave_out(intake);
    }
    let flushed = trace.flush(intake);
    read.and(flushed)
}

fn object(scanner: &mut Scanner<'_>, intake: &mut Intake<'_>, depth: u32, trace: &mut Trace) -> Result<(), Stop> {
    scanner.keep()?;
    let place = scanner.place();
    scanner.enter()?;
    let (mut recognised, mut keys) = (false, Vec::new());
    while scanner.next_key()? {
        let role = role(scanner.key());
        if matches!(role, Role::Spans | Role::Processes | Role::Wrapper | Role::Action) {
            scanner.let_go();
            recognised = true;
        }
        match role {
            Role::Spans => {
                intake.n_recognised += 1;
                each_element(scanner, |scanner| trace.span(scanner, intake))?;
            }
            Role::Processes => trace.read_processes(scanner, intake)?,
            Role::Wrapper => {
                intake.n_recognised += 1;
                container(scanner, intake, depth + 1)?;
            }
            Role::Span if !recognised => {
                if let Some((json, place)) = scanner.rest_ahead() {
                    return trace.take_span(&json, intake, place);
                }
                let short = scanner.capture_rest()?;
                return trace.take_captured(scanner, intake, short);
            }
            Role::Action => scanner.skip()?,
            Role::Span | Role::Other => {
                if keys.len() < 4 {
                    keys.push(scanner.key().to_owned());
                }
                scanner.skip()?;
            }
        }
    }
    scanner.let_go();
    if !recognised && depth == 0 && !keys.is_empty() {
        let message = format!("expected \"data\", \"spans\" or a span's fields, found \"{}\"", keys.join("\", \""));
        intake.bad_row("unknown_document", "documents that are not Jaeger traces", place.into(), &message)?;
    }
    Ok(())
}

impl Trace {
    fn span(&mut self, scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
        if let Some((json, place)) = scanner.ahead()? {
            return self.take_span(&json, intake, place);
        }
        let short = scanner.capture()?;
        self.take_captured(scanner, intake, short)
    }

    fn take_captured(&mut self, scanner: &Scanner<'_>, intake: &mut Intake<'_>, short: bool) -> Result<(), Stop> {
        let place = scanner.captured_place();
        let json = if short {
            serde_json::from_slice::<JaegerSpan<'_>>(scanner.captured()).map_err(BadSpan::from)
        } else {
            Err(BadSpan::unread("a span of more than 16 MiB"))
        };
        match json {
            Ok(json) => self.take_span(&json, intake, place),
            Err(bad) => {
                intake.n_recognised += 1;
                intake.bad_span(bad, place.into())
            }
        }
    }

    fn take_span(&mut self, json: &JaegerSpan<'_>, intake: &mut Intake<'_>, place: json::Place) -> Result<(), Stop> {
        intake.n_recognised += 1;
        let mut span = match span::read(json, intake, place) {
            Ok(span) => span,
            Err(bad) => return intake.bad_span(bad, place.into()),
        };
        intake.met_with_end(&span, place)?;
        if let OrNull(Some(process)) = &json.process {
            span.resource = span::resource(process, intake, place);
            return intake.hand_over(span);
        }
        if json.process_id.is_empty() {
            span.resource = intake.resource(&Parts::default(), place);
            return intake.hand_over(span);
        }
        let sender = intake.name_text(&json.process_id);
        if self.known {
            span.resource = self.resource(intake, sender);
            return intake.hand_over(span);
        }
        self.held.hold(intake, span, sender, place)
    }

    fn read_processes(&mut self, scanner: &mut Scanner<'_>, intake: &mut Intake<'_>) -> Result<(), Stop> {
        if scanner.peek()? != b'{' {
            return Ok(scanner.skip()?);
        }
        scanner.enter()?;
        while scanner.next_key()? {
            let id = intake.name_text(scanner.key());
            if self.processes.len() < MOST_PROCESSES
                && let Some((process, place)) = scanner.ahead::<Process<'_>>()?
            {
                let number = span::resource(&process, intake, place);
                self.processes.entry(id).or_insert(number);
                continue;
            }
            let short = scanner.capture()?;
            let place = scanner.captured_place();
            if !short || self.processes.len() >= MOST_PROCESSES {
                intake.bad_row("bad_process", "a process that could not be read", place.into(), "expected fewer or shorter processes")?;
                continue;
            }
            match serde_json::from_slice::<OrNull<Process<'_>>>(scanner.captured()) {
                Ok(OrNull(process)) => {
                    let number = span::resource(&process, intake, place);
                    self.processes.entry(id).or_insert(number);
                }
                Err(error) => {
                    let BadSpan { message, offset } = error.into();
                    let place = moved(Place::Text(place), offset);
                    intake.bad_row("bad_process", "a process that could not be read", place, &message)?;
                }
            }
        }
        self.known = true;
        self.flush(intake)
    }

    fn flush(&mut self, intake: &mut Intake<'_>) -> Result<(), Stop> {
        let mut held = std::mem::take(&mut self.held);
        held.hand_over(intake, |intake, sender| self.resource(intake, sender))
    }

    /// The number of the resource of a process; of nobody where the trace does not name the process.
    fn resource(&mut self, intake: &mut Intake<'_>, sender: u32) -> u32 {
        if let Some(number) = self.processes.get(&sender) {
            return *number;
        }
        let id = intake.text_of(sender).to_owned();
        intake.unknown_process(&id);
        let number = intake.nobody();
        if self.processes.len() < MOST_PROCESSES {
            self.processes.insert(sender, number);
        }
        number
    }
}
