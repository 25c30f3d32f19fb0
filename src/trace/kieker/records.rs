//! Lines of a log: from fields to events.

use std::{borrow::Cow, io::BufRead};

use super::{
    BadRow, BadRows, ReadError, ReadOptions, ReadReport, Records as Wanted, Sink, Texts, Types, signature::Signature, twice::Twice,
    unreadable,
};
use crate::trace::{
    call_path::{Event, Key, Kind, Parent, TimeUnit, quoted},
    csv_rows,
    hashed::IndexMap,
    lines::{LINE_LIMIT_BYTES, Lines, without_mark},
    number,
    recent::Recent,
};

/// Most fields of a record that are looked at.
const MOST_FIELDS: usize = 16;

/// Stands for a pair of signature and class that names no operation.
const NO_SERVICE: u32 = u32::MAX;

/// What is said of executions that are not used.
const TWICE: &str = "executions that are also recorded as events were skipped";

/// What a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordType {
    /// Its class.
    class: String,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Metadata,
    Execution,
    Trace,
    Remote,
    Before,
    After,
    Call,
    Other,
}

impl RecordType {
    /// The type that a class name says.
    pub(super) fn of_class(class: &str) -> Self {
        let name = class.rsplit('.').next().unwrap_or(class);
        let operation = name.contains("Operation") || name.contains("Constructor");
        let form = match name {
            "KiekerMetadataRecord" => Form::Metadata,
            "OperationExecutionRecord" | "KiekerExecutionRecord" => Form::Execution,
            "TraceMetadata" | "ApplicationTraceMetadata" | "Trace" => Form::Trace,
            "BeforeReceivedRemoteEvent" => Form::Remote,
            _ if !name.ends_with("Event") || !operation => Form::Other,
            _ if name.starts_with("Before") => Form::Before,
            _ if name.starts_with("After") => Form::After,
            _ if name.starts_with("CallOperation") || name.starts_with("CallConstructor") => Form::Call,
            _ => Form::Other,
        };
        Self { class: class.to_owned(), form }
    }
}

/// Reads the files of one log.
pub(super) struct Records<'o> {
    types: Types,
    options: &'o ReadOptions,
    unit_ns: i64,
    /// The host that the metadata names.
    host: Option<u32>,
    executions: bool,
    events: bool,
    /// What events tell, where executions may tell the same.
    twice: Option<Twice>,
    /// Services of pairs of signature and class.
    services: Recent,
    seen: IndexMap<Box<str>, Seen>,
    /// The place in `seen` of the last record's type.
    last: usize,
    /// Where the fields of the line at hand end.
    ends: Vec<usize>,
}

/// Records of a type.
struct Seen {
    form: Form,
    /// Whether the map names the type; without a map, records may name their classes themselves.
    is_named: bool,
    n: u64,
}

/// The fields of a line.
struct Fields<'l> {
    log: &'l str,
    line: u64,
    of: [&'l str; MOST_FIELDS],
    n: usize,
}

impl<'o> Records<'o> {
    pub(super) fn new(types: Types, options: &'o ReadOptions) -> Self {
        let names = |forms: &[Form]| types.values().any(|kind| forms.contains(&kind.form));
        let both = types.is_empty() || names(&[Form::Execution]) && names(&[Form::Before, Form::After]);
        let (executions, events) = (options.records != Wanted::Events, options.records != Wanted::Executions);
        let twice = (both && options.records == Wanted::Auto).then(Twice::default);
        let unit_ns = options.time_unit.unwrap_or_default().nanoseconds();
        let (services, seen, last, ends) = Default::default();
        Self { types, options, unit_ns, host: None, executions, events, twice, services, seen, last, ends }
    }

    /// Reads one file.
    pub(super) fn read(
        &mut self,
        log: &str,
        stream: Box<dyn BufRead + '_>,
        texts: &mut Texts,
        sink: &mut Sink<'_>,
        report: &mut ReadReport,
    ) -> Result<(), ReadError> {
        let mut lines = Lines::new(stream, LINE_LIMIT_BYTES as usize);
        let mut result = Ok(());
        for number in 1.. {
            let Some(line) = lines.next().map_err(|error| unreadable(log, error))? else { break };
            let text = if number == 1 { without_mark(line) } else { line }.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            report.n_records += 1;
            let read = match std::str::from_utf8(text) {
                Ok(text) => self.record(log, number, text, texts, sink, report),
                Err(_) => Err(bad(log, number, "row", &String::from_utf8_lossy(text), "UTF-8 text")),
            };
            let Err(bad) = read else { continue };
            if self.options.bad_rows == BadRows::Reject {
                result = Err(bad.into());
                break;
            }
            report.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
        }
        for (id, seen) in self.seen.drain(..) {
            let class = self.types.get(&*id).map_or(&*id, |kind| kind.class.as_str());
            report.count(class, seen.n);
        }
        result
    }

    fn record(
        &mut self,
        log: &str,
        line: u64,
        text: &str,
        texts: &mut Texts,
        sink: &mut Sink<'_>,
        report: &mut ReadReport,
    ) -> Result<(), BadRow> {
        let mut decoded = Vec::new();
        let fields = Fields::of(log, line, text, &mut decoded, &mut self.ends);
        let id = fields.of[0];
        let (form, is_named) = self.form_of(id);
        let mut own_context = String::new();
        let event = match form {
            Form::Other if is_named => {
                report.diagnostics.add("unknown_record", "records of types that are not used were skipped", || {
                    format!("{log}, line {line}: {}", self.types.get(id).map_or(id, |kind| kind.class.as_str()))
                });
                return Ok(());
            }
            Form::Other if self.types.is_empty() => {
                return Err(
                    fields.bad(0, "the name of a type of records, or the ID that a kieker.map beside the log has for one: there was none")
                );
            }
            Form::Other => return Err(fields.bad(0, "the ID of a type that kieker.map names")),
            Form::Metadata => return self.metadata(&fields, texts),
            Form::Execution if !self.executions => {
                report.diagnostics.add("recorded_twice", TWICE, || format!("{log}, line {line}"));
                return Ok(());
            }
            Form::Trace | Form::Remote | Form::Before | Form::After | Form::Call if !self.events => {
                let message = "events beside executions were skipped, as was asked for";
                report.diagnostics.add("events_skipped", message, || format!("{log}, line {line}"));
                return Ok(());
            }
            Form::Execution => self.execution(&fields, &mut own_context, texts, report)?,
            Form::Trace => trace(&fields, texts, self.unit_ns)?,
            Form::Remote => remote(&fields, self.unit_ns)?,
            Form::Before | Form::After | Form::Call => self.operation(&fields, form, texts)?,
        };
        report.n_events += 1;
        sink(texts, &event);
        Ok(())
    }

    /// The form of a record by the ID of its type, and whether the map names that; the record is counted.
    fn form_of(&mut self, id: &str) -> (Form, bool) {
        if let Some((last, seen)) = self.seen.get_index_mut(self.last)
            && **last == *id
        {
            seen.n += 1;
            return (seen.form, seen.is_named);
        }
        let named = self.types.get(id).map(|kind| kind.form);
        let (form, is_named) = (named.unwrap_or_else(|| RecordType::of_class(id).form), named.is_some());
        if let Some((place, _, seen)) = self.seen.get_full_mut(id) {
            seen.n += 1;
            self.last = place;
        } else if self.seen.len() < super::MOST_TYPES {
            self.last = self.seen.insert_full(id.into(), Seen { form, is_named, n: 1 }).0;
        }
        (form, is_named)
    }

    /// `version; controller; host; experiment; debug; offset; unit; records`, after the time that newer logs have.
    fn metadata(&mut self, fields: &Fields<'_>, texts: &mut Texts) -> Result<(), BadRow> {
        let units = [
            ("NANOSECONDS", TimeUnit::Nanoseconds),
            ("MICROSECONDS", TimeUnit::Microseconds),
            ("MILLISECONDS", TimeUnit::Milliseconds),
            ("SECONDS", TimeUnit::Seconds),
        ];
        let all = &fields.of[..fields.n];
        let found =
            all.iter().enumerate().find_map(|(at, field)| units.iter().find(|(name, _)| name == field).map(|(_, unit)| (at, *unit)));
        let Some((at, unit)) = found else { return Err(fields.bad(fields.n.min(8), "a unit of time")) };
        if self.options.time_unit.is_none() {
            self.unit_ns = unit.nanoseconds();
        }
        self.host = at.checked_sub(4).and_then(|at| all.get(at)).filter(|host| !host.is_empty()).map(|host| texts.names.intern(host));
        Ok(())
    }

    /// Without order index and stack size an execution is a request of its own, with `own_context`.
    fn execution<'l>(
        &mut self,
        fields: &Fields<'l>,
        own_context: &'l mut String,
        texts: &mut Texts,
        report: &mut ReadReport,
    ) -> Result<Event<'l>, BadRow> {
        // Counted from the end, as older versions have an experiment id in front.
        let first = match fields.n {
            10 => 2,
            11 => 3,
            _ => return Err(fields.wrong_length("10 fields (or 11, with an experiment id)")),
        };
        let (tin, tout) = (fields.time(first + 3, self.unit_ns)?, fields.time(first + 4, self.unit_ns)?);
        let place = fields.place(first + 6)?;
        if tout < tin {
            return Err(fields.bad(first + 4, "a time of exit that is not before that of entry"));
        }
        let host = fields.of[first + 5];
        let server = if host.is_empty() { self.host } else { Some(texts.names.intern(host)) };
        let location = self.location(fields, first, "", texts)?;
        if server.is_none() && texts.service(location).0.is_empty() {
            return Err(fields.bad(first, "an operation with its class, as no host is named"));
        }
        let shown = || format!("{}, line {}", fields.log, fields.line);
        let is_elsewhere = self.twice.as_mut().is_some_and(|twice| twice.finds(fields.of[first], (tin, tout)));
        if is_elsewhere {
            report.diagnostics.add("recorded_twice", TWICE, shown);
        }
        let context = if place.is_some() {
            Key::of(fields.of[first + 2])
        } else {
            let message = "executions that do not say where in their trace they belong were taken as requests of their own";
            report.diagnostics.add("execution_without_place", message, shown);
            *own_context = shown();
            Key::Text(own_context)
        };
        let (order_index, depth) = place.unwrap_or((0, 0));
        Ok(Event {
            context,
            transaction: None,
            order: None,
            time_ns: tin,
            server,
            thread: None,
            session: session(fields.of[first + 1]),
            kind: Kind::Execution { location, until_ns: tout, order_index, depth, is_elsewhere },
        })
    }

    /// `time; trace; order; operation; class` and, of a call, `operation; class` of the callee.
    fn operation<'l>(&mut self, fields: &Fields<'l>, form: Form, texts: &mut Texts) -> Result<Event<'l>, BadRow> {
        // Kieker 1.4 had no classes.
        let (at, has_class) = match (form, fields.n) {
            (Form::Call, 8..) => (7, fields.n > 8),
            (Form::Call, 7) => (6, false),
            (Form::Call, _) => return Err(fields.wrong_length("caller and callee")),
            (_, 6..) => (5, fields.n > 6),
            _ => return Err(fields.wrong_length("time, trace, order index, operation and class")),
        };
        let signature = fields.of[at];
        let class = if has_class { fields.of[at + 1] } else { "" };
        if class.is_empty() && !signature.contains(')') {
            return Err(fields.bad(at + 1, "the class of the operation, whose parameters are missing, too"));
        }
        let location = self.location(fields, at, class, texts)?;
        if texts.service(location).0.is_empty() {
            return Err(fields.bad(at + 1, "the class of the operation"));
        }
        let kind = match form {
            Form::Before => Kind::Entry { location, action: None, params: &[] },
            Form::After => Kind::Exit { location },
            _ => Kind::Call { location, returns: false },
        };
        let (context, time_ns) = (fields.trace(3)?, fields.time(2, self.unit_ns)?);
        let order = Some(fields.number(4, "an order index, 0 or more")?);
        match (&mut self.twice, form) {
            (Some(twice), Form::Before) => twice.enter(signature, context, time_ns),
            (Some(twice), Form::After) => twice.exit(signature, context, time_ns),
            _ => {}
        }
        Ok(Event { context, transaction: None, order, time_ns, server: None, thread: None, session: None, kind })
    }

    /// The service of the operation of field `at`.
    fn location(&mut self, fields: &Fields<'_>, at: usize, class: &str, texts: &mut Texts) -> Result<u32, BadRow> {
        let signature = fields.of[at];
        let number = self.services.number(signature, class, || {
            let taken = Signature::of(signature);
            let class = if class.is_empty() { taken.class } else { class };
            if taken.names_operation() && taken.may_be_of(class) { texts.location(class, &taken.method) } else { NO_SERVICE }
        });
        match number {
            NO_SERVICE if class.is_empty() || !Signature::of(signature).names_operation() => {
                Err(fields.bad(at, "the signature of an operation"))
            }
            NO_SERVICE => Err(fields.bad(at + 1, "a class that may have the operation")),
            number => Ok(number),
        }
    }
}

/// The session that a field names; `<no-session-id>` and its like name none.
fn session(field: &str) -> Option<&str> {
    let none = field.is_empty() || field.starts_with('<') || ["N/A", "null", "NULL", "-1"].contains(&field);
    (!none).then_some(field)
}

/// `trace; thread; session; host; parent trace; parent order`, and an application's name.
fn trace<'l>(fields: &Fields<'l>, texts: &mut Texts, unit_ns: i64) -> Result<Event<'l>, BadRow> {
    if fields.n < 8 {
        return Err(fields.wrong_length("trace, thread, session, host, parent trace and parent order"));
    }
    let context = fields.trace(2)?;
    let parent = fields.trace(6)?;
    let order = fields.of[7].parse::<i64>().map_err(|_| fields.bad(7, "an order index, or -1"))?;
    let parent = u64::try_from(order).ok().filter(|_| parent != context && parent != Key::Number(-1));
    let parent = parent.map(|order| Parent { context: Key::of(fields.of[6]), order, waits: false });
    let name = |at: usize, texts: &mut Texts| (!fields.of[at].is_empty()).then(|| texts.names.intern(fields.of[at]));
    Ok(Event {
        context,
        transaction: None,
        order: None,
        time_ns: fields.time(1, unit_ns)?,
        server: name(5, texts),
        thread: name(3, texts),
        session: session(fields.of[4]),
        kind: Kind::Begin { parent },
    })
}

/// `time; caller trace; caller order; trace; order`.
fn remote<'l>(fields: &Fields<'l>, unit_ns: i64) -> Result<Event<'l>, BadRow> {
    if fields.n < 7 {
        return Err(fields.wrong_length("time, caller's trace and order, trace and order"));
    }
    let parent = Parent { context: fields.trace(3)?, order: fields.number(4, "an order index, 0 or more")?, waits: true };
    Ok(Event {
        context: fields.trace(5)?,
        transaction: None,
        order: None,
        time_ns: fields.time(2, unit_ns)?,
        server: None,
        thread: None,
        session: None,
        kind: Kind::Begin { parent: Some(parent) },
    })
}

impl<'l> Fields<'l> {
    /// Fields of a line; in texts `\;` stands for `;`.
    fn of(log: &'l str, line: u64, text: &'l str, decoded: &'l mut Vec<String>, ends: &mut Vec<usize>) -> Self {
        let mut of = [""; MOST_FIELDS];
        let mut n = 0;
        if memchr::memchr(b'\\', text.as_bytes()).is_some() && text.contains("\\;") {
            *decoded = split_escaped(text);
            for (slot, field) in of.iter_mut().zip(decoded.iter()) {
                *slot = field;
                n += 1;
            }
        } else {
            let mut begin = 0;
            csv_rows::split(text.as_bytes(), b';', ends);
            for (slot, end) in of.iter_mut().zip(ends) {
                *slot = &text[begin..*end];
                begin = *end + 1;
                n += 1;
            }
        }
        Self { log, line, of, n }
    }

    fn number<T: std::str::FromStr>(&self, at: usize, expected: &str) -> Result<T, BadRow> {
        self.of[at].parse().map_err(|_| self.bad(at, expected))
    }

    /// Order index and stack size of an execution, where it has them: -1 is none.
    fn place(&self, at: usize) -> Result<Option<(u32, u32)>, BadRow> {
        if self.of[at..=at + 1].contains(&"-1") {
            return Ok(None);
        }
        let order_index = self.number(at, "an execution order index, 0 or more, or -1")?;
        Ok(Some((order_index, self.number(at + 1, "an execution stack size, 0 or more, or -1")?)))
    }

    fn time(&self, at: usize, unit_ns: i64) -> Result<i64, BadRow> {
        number::whole(self.of[at]).and_then(|time| time.checked_mul(unit_ns)).ok_or_else(|| self.bad(at, "a whole number of time units"))
    }

    fn trace(&self, at: usize) -> Result<Key<'l>, BadRow> {
        match self.of[at] {
            "" => Err(self.bad(at, "the ID of a trace")),
            id => Ok(Key::of(id)),
        }
    }

    fn wrong_length(&self, expected: &str) -> BadRow {
        bad(self.log, self.line, "row", &format!("{} fields long", self.n), expected)
    }

    fn bad(&self, at: usize, expected: &str) -> BadRow {
        let field = format!("field {} of {}", at + 1, self.of[0]);
        let found: Cow<'_, str> = self.of.get(at).copied().unwrap_or_default().into();
        bad(self.log, self.line, &field, &found, expected)
    }
}

fn split_escaped(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, fields.last_mut()) {
            ('\\', Some(field)) if rest.peek() == Some(&';') => {
                rest.next();
                field.push(';');
            }
            (';', _) => fields.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

fn bad(log: &str, line: u64, field: &str, found: &str, expected: &str) -> BadRow {
    let found = if found.is_empty() { "missing".to_owned() } else { quoted(found) };
    BadRow { log: log.to_owned(), line, field: field.to_owned(), found, expected: expected.to_owned() }
}
