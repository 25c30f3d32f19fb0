//! Call-path records: entries into and exits from software building blocks, as CSV or JSON lines.
//!
//! Input is one record for each entry or exit (Brosig, Huber, Kounev, ASE 2011, section II.A); output is a stream of [`Event`]s
//! in the order of the input, handed to a sink one at a time. Kieker logs ([`crate::trace::kieker`]) end in the same events.
//!
//! | field | is | also called |
//! |---|---|---|
//! | `record_id` | whole number that orders the records of a server | `seq`, `order` |
//! | `time` | nanoseconds, or what [`ReadOptions::time_unit`] says | `timestamp`, `time_ns` |
//! | `kind` | `entry`, `exit`; `call`, `return` around a call, in the caller; `send`, `receive` of a message | `event`, `type` |
//! | `component` | class of the building block; of `call` and `send` that of the other side | `class` |
//! | `method` | method of it; component and method are a *service* | `operation` |
//! | `context_id` | the same for all that one system request caused | `context`, `trace_id` |
//! | `transaction_id` | tells call paths inside one context apart; optional | `transaction` |
//! | `server`, `thread` | where; optional | `host`, `thread_id` |
//! | `params` | of an entry: `name=value` with `\|` between them, or a JSON object; optional | `parameters` |
//! | `action` | of an entry: `internal`, `branch(I)`, `loop`, `iteration`; optional | `marker` |
//! | `message_id` | of `send` and `receive`: the same at both ends; optional | `msg_id` |
//! | `session_id` | the user's session that the system request is of; optional | `session` |
//!
//! A CSV has a header, its columns in any order, and `,`, `;` or tabs between them; lines that start with `#` are skipped. JSON
//! lines are told by their first character, `{`.

mod columns;
mod rows;
mod texts;

use std::io::{self, BufRead, Read};

pub use super::same::BadRow;
pub(in crate::trace) use columns::quoted;
pub use texts::{Boundaries, Texts};

use super::{BadRows, Source, StreamSource, diagnostics::Diagnostics, input, number};
use crate::trace::lines::{next_line, without_mark};
use columns::Layout;
use rows::RowReader;
use serde::{Deserialize, Serialize};

/// Identity of a context, a transaction or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'r> {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(&'r str),
}

impl<'r> Key<'r> {
    /// The key that `text` writes: a number where that is written as numbers are, so that both spellings are one key.
    pub fn of(text: &'r str) -> Self {
        if let (Some(number), false) = (number::digits(text.as_bytes()), text.starts_with('0'))
            && let Ok(number) = i64::try_from(number)
        {
            return Self::Number(number);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let canonical = !digits.is_empty() && digits.len() < 20 && (digits == text && digits == "0" || !digits.starts_with('0'));
        match text.parse() {
            Ok(number) if canonical && !text.starts_with('+') => Self::Number(number),
            _ => Self::Text(text),
        }
    }
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// What an entry is in the control flow of its service, where the instrumentation says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// An internal action.
    Internal,
    /// A branch action, by the index of the transition taken.
    Branch(u32),
    /// A loop as a whole.
    Loop,
    /// One iteration of a loop.
    Iteration,
}

/// Where a call path was begun by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent<'r> {
    /// The context of the other.
    pub context: Key<'r>,
    /// The record of it that the beginning follows.
    pub order: u64,
    /// Whether the other waits for it: a call of another process.
    pub waits: bool,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind<'r> {
    /// A building block is entered.
    Entry {
        /// The service (number in [`Texts`]).
        location: u32,
        /// Its part in the control flow.
        action: Option<Action>,
        /// Names and renderings of its parameters.
        params: &'r [(String, String)],
    },
    /// A building block is left.
    Exit {
        /// The service.
        location: u32,
    },
    /// Another service is about to be called.
    Call {
        /// The service called.
        location: u32,
        /// Whether a [`Kind::Return`] follows.
        returns: bool,
    },
    /// A called service has come back.
    Return {
        /// The service called.
        location: u32,
    },
    /// A message is sent.
    Send {
        /// The service that it is sent to.
        location: u32,
        /// The message.
        message: Option<Key<'r>>,
    },
    /// A message is received, which starts this transaction.
    Receive {
        /// The service that it was sent to.
        location: u32,
        /// The message.
        message: Option<Key<'r>>,
    },
    /// A whole execution, from the record's time to `until_ns`.
    Execution {
        /// The service.
        location: u32,
        /// When it ended.
        until_ns: i64,
        /// Execution order index: its rank among the executions of the transaction, by entry, from 0.
        order_index: u32,
        /// Execution stack size: how many executions it is nested in.
        depth: u32,
        /// Whether other records tell it, too: only its place among the executions of its transaction counts.
        is_elsewhere: bool,
    },
    /// A call path begins, or what is known of it is told: its server, its thread, its parent.
    Begin {
        /// What began it.
        parent: Option<Parent<'r>>,
    },
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'r> {
    /// The system request.
    pub context: Key<'r>,
    /// The call path in it.
    pub transaction: Option<Key<'r>>,
    /// The ordering key.
    pub order: Option<u64>,
    /// When, in nanoseconds.
    pub time_ns: i64,
    /// The server (number in [`Texts::names`]).
    pub server: Option<u32>,
    /// The thread (number in [`Texts::names`]).
    pub thread: Option<u32>,
    /// The session of the user who made the system request.
    pub session: Option<&'r str>,
    /// What.
    pub kind: Kind<'r>,
}

/// What is done with each event; the texts are those that its numbers are of.
pub type Sink<'s> = dyn FnMut(&Texts, &Event<'_>) + 's;

/// The unit of a log's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// 10⁻⁹ s.
    #[default]
    Nanoseconds,
    /// 10⁻⁶ s.
    Microseconds,
    /// 10⁻³ s.
    Milliseconds,
    /// 1 s.
    Seconds,
}

impl TimeUnit {
    /// What its units are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
        }
    }

    /// Nanoseconds of one unit.
    pub fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }
}

/// How records are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// Most bytes that one source may have after decompression.
    pub limit_bytes: u64,
    /// The unit of `time`.
    pub time_unit: TimeUnit,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, limit_bytes: 1 << 30, time_unit: TimeUnit::default() }
    }
}

/// Records that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes end in an error: broken compression, or too long.
    #[error("{log} cannot be read")]
    Unreadable {
        /// The source.
        log: String,
        /// Why.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{log} is empty: expected {expected}")]
    Empty {
        /// The source.
        log: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Its header does not say what is needed.
    #[error("{log}, line {line}: {reason}")]
    Header {
        /// The source.
        log: String,
        /// The line, from 1.
        line: u64,
        /// What was found and what was expected.
        reason: String,
    },
    /// A row is bad and [`BadRows::Reject`] was asked for.
    #[error(transparent)]
    Row(#[from] BadRow),
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Rows that say something, good or bad.
    pub n_rows: u64,
    /// Events handed to the sink.
    pub n_events: u64,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Reads call-path records of any number of sources, one after another, into `sink`.
///
/// # Errors
/// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
/// [`BadRows::Reject`] also the first bad row. Events before the error have been handed over.
pub fn read(sources: &[Source<'_>], options: &ReadOptions, texts: &mut Texts, sink: &mut Sink<'_>) -> Result<ReadReport, ReadError> {
    read_streams(sources.iter().map(Source::stream), options, texts, sink)
}

/// As [`read`], of streams: a row at a time is held.
///
/// # Errors
/// As of [`read`].
pub fn read_streams<'s>(
    sources: impl IntoIterator<Item = StreamSource<'s>>,
    options: &ReadOptions,
    texts: &mut Texts,
    sink: &mut Sink<'_>,
) -> Result<ReadReport, ReadError> {
    let mut report = ReadReport::default();
    for source in sources {
        read_source(source, options, texts, sink, &mut report)?;
    }
    Ok(report)
}

fn read_source(
    source: StreamSource<'_>,
    options: &ReadOptions,
    texts: &mut Texts,
    sink: &mut Sink<'_>,
    report: &mut ReadReport,
) -> Result<(), ReadError> {
    let log = source.name.as_str();
    let mut stream = input::open(source.reader, options.limit_bytes);
    let (head, first) = head(&mut stream).map_err(|error| ReadError::Unreadable { log: log.to_owned(), source: error })?;
    let Some((first, line)) = first else {
        return Err(ReadError::Empty { log: log.to_owned(), expected: "call-path records as a CSV with a header, or JSON lines" });
    };
    let (recent, recent_names) = Default::default();
    let mut reader = RowReader { log, options, texts, sink, report, recent, recent_names };
    if first.starts_with(b"{") {
        return reader.read_json(io::Cursor::new(head).chain(stream));
    }
    let layout = Layout::detect(&first).map_err(|reason| ReadError::Header { log: log.to_owned(), line, reason })?;
    for name in &layout.unknown {
        let reason = format!("column \"{name}\" is not known; expected {}", columns::FIELDS);
        if options.bad_rows == BadRows::Reject {
            return Err(ReadError::Header { log: log.to_owned(), line, reason });
        }
        reader.note_unknown(name);
    }
    reader.read_csv(stream, &layout, line)
}

/// A text with its line number.
type NumberedLine = (Vec<u8>, u64);

/// Reads up to and including the first line that is neither blank nor a comment: all bytes read, and that line.
fn head(stream: &mut dyn BufRead) -> io::Result<(Vec<u8>, Option<NumberedLine>)> {
    let mut read = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        if !next_line(stream, &mut line, number)? {
            break;
        }
        // A byte order mark is dropped; the line keeps its number.
        let text = if number == 1 { without_mark(&line) } else { &line };
        read.extend_from_slice(text);
        let text = text.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            return Ok((read, Some((text.to_vec(), number))));
        }
    }
    Ok((read, None))
}
