//! Angio traces: the events of distributed operations, each with its place in a thread of causes and in its task.
//!
//! Input is a log of events, as CSV or as one JSON object a line, plain or compressed; output is every event in the order
//! of the log, one at a time. Source: Hrischuk, Woodside, Rolia, Iversen, *Trace-based load characterization for generating
//! software performance models*, IEEE Trans. Software Eng. 25 (1999), section 4, Eq 4.1: an event is `(j, k, m, l / i, v)`.
//!
//! | column | of Eq 4.1 | is |
//! |---|---|---|
//! | `scenario` | j | what was recorded: the name of the distributed operation |
//! | `thread` | k | scenario thread: a chain of causes that crosses tasks; whole number, the first thread of a recording is 1 |
//! | `thread_node` | m | which node of its thread this is, from 1 |
//! | `kind` | l | `begin`, `activity`, `fork`, `end` (or `Be`, `Ac`, `Fk`, `Ed`) |
//! | `child_thread` | k' of l | of a fork the thread that it starts; else empty |
//! | `task` | i | the sequential task that recorded the event |
//! | `task_node` | v | which node of its task this is, from 1, over all scenarios |
//! | `trace` | | which recording of the scenario this is; without it the scenario is recorded once at a time |
//! | `service` | | what the task is a thread or an instance of; without it the task itself |
//! | `operation` | | on the node that receives a request: the operation that is asked for |
//! | `activity` | | of an activity: its name, which a resource function gives a demand to |
//! | `time` | | when, in ticks of the task's clock |
//! | `demand` | | of an activity: its demand in ticks, ≥ 0 |
//! | `weight` | | how many recordings this one stands for, > 0 |
//!
//! The columns of Eq 4.1 are needed (`child_thread` only where something forks), the others are not. A CSV has a header, its
//! columns in any order, and `,`, `;` or tabs between them; lines that start with `#` are skipped. A JSON object has the
//! columns as its fields, texts and numbers alike; `null` is an absent field.
//!
//! Rows may be in any order: every event carries its place.

mod columns;
mod json;
mod rows;

use std::io::{self, BufRead, Cursor, Read};

pub use super::same::BadRow;
use super::{BadRows, Time, diagnostics::Diagnostics, input};
use crate::trace::lines::{next_line, without_mark};
use columns::Layout;

/// The label of a node: what kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AngioKind {
    /// The thread starts.
    Begin,
    /// Something that the task does; also a blocking sending, and what it leads to.
    Activity,
    /// A sending that is not waited for: it starts a thread.
    Fork {
        /// The thread that it starts.
        child_thread: u64,
    },
    /// The thread is over.
    End,
}

/// One event; texts that the log does not have are empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AngioEvent<'e> {
    /// What was recorded.
    pub scenario: &'e str,
    /// Which recording of the scenario.
    pub trace: &'e str,
    /// The scenario thread.
    pub thread: u64,
    /// Which node of its thread, from 1.
    pub thread_node: u32,
    /// Its label.
    pub kind: AngioKind,
    /// The task that recorded it.
    pub task: &'e str,
    /// Which node of its task, from 1.
    pub task_node: u64,
    /// What the task is a thread or an instance of.
    pub service: &'e str,
    /// Operation that a receiving node was asked for.
    pub operation: &'e str,
    /// Name of an activity.
    pub activity: &'e str,
    /// When, in ticks of the task's clock.
    pub time: Option<Time>,
    /// Demand in ticks, finite and ≥ 0.
    pub demand: Option<f64>,
    /// How many recordings its recording stands for, finite and > 0.
    pub weight: Option<f64>,
}

impl<'e> AngioEvent<'e> {
    /// The event `(j, k, m, l / i, v)` of Eq 4.1, with nothing else known.
    pub fn new(scenario: &'e str, thread: u64, thread_node: u32, kind: AngioKind, task: &'e str, task_node: u64) -> Self {
        Self {
            scenario,
            trace: "",
            thread,
            thread_node,
            kind,
            task,
            task_node,
            service: "",
            operation: "",
            activity: "",
            time: None,
            demand: None,
            weight: None,
        }
    }
}

/// How angio traces are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// Most bytes that the source may have after decompression.
    pub limit_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, limit_bytes: 1 << 30 }
    }
}

/// An angio trace that cannot be read.
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
    #[error("{log} is empty: {}", columns::EXPECTED)]
    Empty {
        /// The source.
        log: String,
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

/// Reads the source called `name`, plain or compressed, and hands every event to `sink`, in the order of the rows. Holds one
/// row. A row that cannot be read is counted in `diagnostics`, or an error, as `options` ask.
///
/// # Errors
/// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
/// [`BadRows::Reject`] also the first bad row. Events before the fault have been handed over by then.
pub fn read_angio(
    name: &str,
    reader: impl Read,
    options: &ReadOptions,
    diagnostics: &mut Diagnostics,
    sink: &mut dyn FnMut(AngioEvent<'_>),
) -> Result<(), ReadError> {
    let unreadable = |source| ReadError::Unreadable { log: name.to_owned(), source };
    let mut stream = input::open(reader, options.limit_bytes);
    let Some(first) = FirstLine::read(&mut stream).map_err(unreadable)? else { return Err(ReadError::Empty { log: name.to_owned() }) };
    let mut rows = Rows { log: name, bad_rows: options.bad_rows, diagnostics, sink };
    if first.text.starts_with(b"{") {
        let bytes = Cursor::new(first.with_end).chain(stream);
        return json::read(bytes, first.number, &mut rows);
    }
    let header = |reason| ReadError::Header { log: name.to_owned(), line: first.number, reason };
    let layout = Layout::detect(&first.text).map_err(header)?;
    for unknown in &layout.unknown {
        rows.unknown_column(unknown, first.number)?;
    }
    rows::read_csv(stream, &layout, first.number, &mut rows)
}

/// Where rows go, good and bad.
struct Rows<'a> {
    log: &'a str,
    bad_rows: BadRows,
    diagnostics: &'a mut Diagnostics,
    sink: &'a mut dyn FnMut(AngioEvent<'_>),
}

impl Rows<'_> {
    fn bad_row(&mut self, bad: BadRow) -> Result<(), ReadError> {
        if self.bad_rows == BadRows::Reject {
            return Err(bad.into());
        }
        self.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
        Ok(())
    }

    fn unknown_column(&mut self, column: &str, line: u64) -> Result<(), ReadError> {
        let (log, column) = (self.log, columns::abridged(column));
        if self.bad_rows == BadRows::Reject {
            let reason = format!("column \"{column}\" is not known; {}", columns::EXPECTED);
            return Err(ReadError::Header { log: log.to_owned(), line, reason });
        }
        self.diagnostics.add("unknown_column", "columns that are not known were ignored", || format!("{log}: {column}"));
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> ReadError {
        ReadError::Unreadable { log: self.log.to_owned(), source }
    }
}

/// The first line that is neither blank nor a comment.
struct FirstLine {
    /// Without blanks around it.
    text: Vec<u8>,
    with_end: Vec<u8>,
    /// From 1.
    number: u64,
}

impl FirstLine {
    fn read(stream: &mut dyn BufRead) -> io::Result<Option<Self>> {
        let mut line = Vec::new();
        for number in 1.. {
            if !next_line(stream, &mut line, number)? {
                break;
            }
            let text = without_mark(&line).trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                return Ok(Some(Self { text: text.to_vec(), with_end: text.iter().chain(b"\n").copied().collect(), number }));
            }
        }
        Ok(None)
    }
}
