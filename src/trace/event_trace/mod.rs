//! Event traces: events stamped with logical time, as instrumented programs write them.
//!
//! Input is CSV or JSON lines, plain or gzip, in any order; output is one [`Event`] for each row, handed over as it is
//! read. Source: Mizan & Franks, *An automatic trace based performance evaluation model building for parallel
//! distributed systems*, ICPE 2011, sections 3.1, 3.2 and 5. A stamp has no clock in it: an event is known by its
//! operation (one run, started from outside), its thread within the operation and its index within the thread.
//!
//! | field (other names) | holds | where |
//! |---|---|---|
//! | `operation` (`op`) | the run, a whole number | all |
//! | `thread` (`thread_current`) | the thread within the operation, a whole number; the first one is 1 | all |
//! | `next_thread` (`thread_next`) | the thread that was spawned | Fo |
//! | `event` (`event_index`, `index`) | the event within its thread: 1, 2, … | all |
//! | `type` (`event_type`, `kind`) | Ex Be Ac Fo Se Re Sa Ra En, or the long name | all |
//! | `task`, `entry` | where the event ran | all |
//! | `ack` | whether the spawned thread carries a reply (`true`, `false`, `yes`, `no`, 1, 0); empty where it is not said | Fo, optional |
//! | `cpu` (`cpu_time`) | a CPU time in ticks, ≥ 0 | optional |
//!
//! A CSV has a header, its columns in any order, and `,`, `;` or tabs between them; lines that start with `#` are skipped.
//! JSON lines are one object a line with these names as keys; an absent key, `null` and `""` are alike. Of other columns
//! and keys the first is counted as `unknown_column`, and refused with [`BadRows::Reject`]. `next_thread` and `ack` of
//! events other than Fo are not looked at, as some loggers fill them always.

mod columns;
mod csv_rows;
mod json_rows;
mod row;

use std::io::{self, Read};

use super::{BadRows, diagnostics::Diagnostics, input};
use crate::trace::lines::{next_line, without_mark};

/// What an event is (section 3.2 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// `Ex`: an operation starts, from outside.
    External,
    /// `Be`: the first event of a spawned thread.
    Begin,
    /// `Ac`: something that is no message.
    Activity,
    /// `Fo`: a thread is spawned.
    Fork,
    /// `Se`: a request is sent; the thread goes on where it is received.
    Send,
    /// `Re`: a request is received.
    Receive,
    /// `Sa`: a reply is sent; the thread goes on where it is received.
    SendAck,
    /// `Ra`: a reply is received.
    ReceiveAck,
    /// `En`: the thread ends.
    End,
}

impl EventKind {
    /// All kinds, with their labels and long names.
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::External, "Ex", "External"),
        (Self::Begin, "Be", "Begin"),
        (Self::Activity, "Ac", "Activity"),
        (Self::Fork, "Fo", "Fork"),
        (Self::Send, "Se", "Send"),
        (Self::Receive, "Re", "Receive"),
        (Self::SendAck, "Sa", "SendAck"),
        (Self::ReceiveAck, "Ra", "ReceiveAck"),
        (Self::End, "En", "End"),
    ];

    /// The kind of a label or long name, in any case; blanks, `_` and `-` are not looked at.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((kind, ..)) = Self::ALL.iter().find(|(_, label, _)| *label == text) {
            return Some(*kind);
        }
        let same = |name: &str| {
            let letters = text.bytes().filter(|b| !matches!(b, b' ' | b'_' | b'-'));
            letters.map(|b| b.to_ascii_lowercase()).eq(name.bytes().map(|b| b.to_ascii_lowercase()))
        };
        Self::ALL.iter().find(|(_, label, name)| same(label) || same(name)).map(|(kind, ..)| *kind)
    }

    /// The label: `Ex`, `Be`, …
    pub fn label(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, label, _)| label)
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'t> {
    /// The run that it belongs to.
    pub operation: u64,
    /// The thread within the run.
    pub thread: u64,
    /// Of [`EventKind::Fork`]: the thread that was spawned. `None` of all others.
    pub next_thread: Option<u64>,
    /// Which of the thread's events it is, from 1.
    pub index: u64,
    /// What it is.
    pub kind: EventKind,
    /// The task that it ran in.
    pub task: &'t str,
    /// The entry of the task.
    pub entry: &'t str,
    /// Of [`EventKind::Fork`]: whether the spawned thread carries a reply, where the trace says so. `None` of all others.
    pub ack: Option<bool>,
    /// CPU time in ticks, finite and ≥ 0, where the trace says it.
    pub cpu_ticks: Option<f64>,
}

/// How event traces are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// Most bytes that the trace may have after decompression.
    pub limit_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, limit_bytes: 1 << 30 }
    }
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{trace}, line {line}: {field} is {found}, expected {expected}")]
pub struct BadEvent {
    /// The source.
    pub trace: String,
    /// The line, from 1.
    pub line: u64,
    /// The field at fault, as the trace names it; `row` for the row as a whole.
    pub field: String,
    /// What was found, in quotes, or `missing`.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// An event trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EventTraceError {
    /// The bytes end in an error: broken gzip, or too long.
    #[error("{trace} cannot be read")]
    Unreadable {
        /// The source.
        trace: String,
        /// Why.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{trace} is empty: expected a CSV with a header, or JSON lines")]
    Empty {
        /// The source.
        trace: String,
    },
    /// Its header does not say what is needed.
    #[error("{trace}, line {line}: {reason}")]
    Header {
        /// The source.
        trace: String,
        /// The line, from 1.
        line: u64,
        /// What was found and what was expected.
        reason: String,
    },
    /// A row is bad and [`BadRows::Reject`] was asked for.
    #[error(transparent)]
    Row(#[from] BadEvent),
}

/// Where rows go, and how they are judged.
struct Rows<'a> {
    trace: &'a str,
    bad_rows: BadRows,
    diagnostics: &'a mut Diagnostics,
    sink: &'a mut dyn FnMut(&Event<'_>),
}

impl Rows<'_> {
    fn accept(&mut self, event: Result<Event<'_>, BadEvent>) -> Result<(), EventTraceError> {
        match event {
            Ok(event) => {
                (self.sink)(&event);
                Ok(())
            }
            Err(bad) if self.bad_rows == BadRows::Reject => Err(bad.into()),
            Err(bad) => {
                self.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
                Ok(())
            }
        }
    }

    fn unknown_column(&mut self, name: &str, line: u64) -> Result<(), EventTraceError> {
        if self.bad_rows == BadRows::Reject {
            let reason = format!("column \"{name}\" is not known; {}", columns::EXPECTED);
            return Err(EventTraceError::Header { trace: self.trace.to_owned(), line, reason });
        }
        let trace = self.trace;
        self.diagnostics.add("unknown_column", "columns that are not known were ignored", || format!("{trace}: {name}"));
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> EventTraceError {
        EventTraceError::Unreadable { trace: self.trace.to_owned(), source }
    }
}

/// Reads the event trace called `name`, handing each event to `sink` in the order of the file; rows that cannot be read
/// are counted in `diagnostics`, or an error, as `options` ask. Nothing is kept but the row at hand.
///
/// # Errors
/// [`EventTraceError`]: a trace that is empty, cannot be decompressed, is too long or has an unusable header; with
/// [`BadRows::Reject`] also the first bad row. What was handed over until then stands.
pub fn read_event_trace(
    name: &str,
    reader: impl Read,
    options: &ReadOptions,
    diagnostics: &mut Diagnostics,
    sink: &mut dyn FnMut(&Event<'_>),
) -> Result<(), EventTraceError> {
    let mut stream = input::open(reader, options.limit_bytes);
    let mut rows = Rows { trace: name, bad_rows: options.bad_rows, diagnostics, sink };
    let mut line = Vec::new();
    for number in 1.. {
        if !next_line(&mut stream, &mut line, number).map_err(|error| rows.unreadable(error))? {
            break;
        }
        let text = if number == 1 { without_mark(&line) } else { &line };
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        return if text.starts_with(b"{") {
            json_rows::read(&mut rows, stream, text.to_vec(), number)
        } else {
            csv_rows::read(&mut rows, stream, text, number)
        };
    }
    Err(EventTraceError::Empty { trace: name.to_owned() })
}
