//! Message logs as the SAME technique reads them.
//!
//! Input is a log of events (one row for the sending and one for the reception of each message, as in Table 1 of Israr
//! et al., WOSP 2005) or of whole messages; output is, for every recorded trace, its messages in order of reception.
//!
//! | form | columns |
//! |---|---|
//! | plain | `time kind process message_type`, separated by blanks or tabs, no header |
//! | CSV, events | `time, kind, process, message_type`; optional `msg_id, peer, thread, seq, trace, scenario` |
//! | CSV, messages | `sender, receiver, time`; optional `sent, message_type, msg_id, sender_thread, receiver_thread, seq, trace, scenario` |
//!
//! A CSV has a header, its columns in any order, and `,`, `;` or tabs between them. `kind` is `send`, `receive` or
//! `event` (something that a process does on its own, which shows that it is not waiting). `time` of a message row is
//! that of its reception, i.e. of its acceptance for service; any clock will do, but one for the whole trace. Lines that
//! start with `#` are skipped. `peer` is the other process of the message, `msg_id` the same at both ends, `seq` orders
//! rows of equal time, `trace` separates recordings, `scenario` names what a recording was made of.
//!
//! A send belongs to a reception (1) by `msg_id`; without one (2) first in, first out for one sender, receiver and
//! message type; where the rows do not name their peer (3) first in, first out for one message type.

mod columns;
mod pairing;
mod rows;

use std::io::{self, BufRead, Read};

use indexmap::IndexMap;

use super::{BadRows, Source, SourcesAre, Time, diagnostics::Diagnostics, input, names::Names, units::Units};
use columns::{Layout, Shape};
use rows::{Row, RowReader};

/// Longest line of a plain log, and longest header, bytes.
const LINE_LIMIT_BYTES: u64 = 1 << 20;

/// How logs are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// How several sources belong together.
    pub sources_are: SourcesAre,
    /// Most bytes that one source may have after decompression.
    pub limit_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, sources_are: SourcesAre::Scenarios, limit_bytes: 1 << 30 }
    }
}

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub struct MessageLog {
    /// The sequential units that exchange messages.
    pub units: Units,
    /// Message types.
    pub operations: Names,
    /// Scenarios, in order of first appearance.
    pub scenarios: Names,
    /// The recordings, in order of first appearance.
    pub traces: Vec<TraceLog>,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// One recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceLog {
    /// Its name; unique within the log.
    pub name: String,
    /// What it is a recording of (number in [`MessageLog::scenarios`]).
    pub scenario: u32,
    /// Messages by time of reception; ties as in the log.
    pub messages: Vec<Message>,
    /// Events that are not messages, by time.
    pub local_events: Vec<LocalEvent>,
}

/// A message from one unit to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending unit.
    pub sender: u32,
    /// The receiving unit.
    pub receiver: u32,
    /// When it was sent, where the log says so.
    pub sent: Option<Time>,
    /// When it was received (accepted for service).
    pub received: Time,
    /// Its type (number in [`MessageLog::operations`]), where the log says so.
    pub operation: Option<u32>,
}

/// Something that a unit did on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalEvent {
    /// The unit.
    pub unit: u32,
    /// When.
    pub time: Time,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{log}, line {line}: {field} is {found}, expected {expected}")]
pub struct BadRow {
    /// The source.
    pub log: String,
    /// The line, from 1.
    pub line: u64,
    /// The column at fault, as the header names it; `row` for the row as a whole.
    pub field: String,
    /// What was found, in quotes, or `missing`.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes end in an error: broken gzip, or too long.
    #[error("{log} cannot be read")]
    Unreadable {
        /// The source.
        log: String,
        /// Why.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{log} is empty: expected rows `time kind process message_type`, or a CSV with a header")]
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

/// Reads message logs; a row that cannot be read is counted, or an error, as `options` ask.
///
/// # Errors
/// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
/// [`BadRows::Reject`] also the first bad row.
pub fn read(sources: &[Source<'_>], options: &ReadOptions) -> Result<MessageLog, ReadError> {
    let mut reader = Reader::new(options, sources.len());
    for (index, source) in sources.iter().enumerate() {
        reader.read(index, source)?;
    }
    Ok(reader.finish())
}

/// A recording while it is read.
#[derive(Debug, Default)]
struct OpenTrace {
    log: TraceLog,
    /// Order of `log.messages` among messages of equal time.
    seq: Vec<u64>,
    events: Vec<pairing::Event>,
}

/// Reads sources one after another.
struct Reader<'o> {
    options: &'o ReadOptions,
    n_sources: usize,
    log: MessageLog,
    ids: Names,
    traces: IndexMap<(usize, Box<str>), OpenTrace>,
    first_stem: String,
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReadOptions, n_sources: usize) -> Self {
        let (log, ids, traces) = Default::default();
        Self { options, n_sources, log, ids, traces, first_stem: String::new() }
    }

    fn read(&mut self, index: usize, source: &Source<'_>) -> Result<(), ReadError> {
        if index == 0 {
            source.stem().clone_into(&mut self.first_stem);
        }
        let unreadable = |error| ReadError::Unreadable { log: source.name.to_owned(), source: error };
        let mut stream = input::open(source.bytes, self.options.limit_bytes);
        let (head, first_line) = head(&mut stream).map_err(unreadable)?;
        let Some(first_line) = first_line else { return Err(ReadError::Empty { log: source.name.to_owned() }) };
        let layout = Layout::detect(&first_line).map_err(|reason| ReadError::Header {
            log: source.name.to_owned(),
            line: first_line.number,
            reason,
        })?;
        self.note_unknown_columns(source, &layout, first_line.number)?;
        let bytes = io::Cursor::new(head).chain(stream);
        let mut rows = RowReader { source: index, stem: source.stem(), log: source.name, layout: &layout, reader: self };
        match layout.delimiter {
            Some(delimiter) => rows.read_csv(bytes, delimiter),
            None => rows.read_plain(bytes, first_line.number),
        }
    }

    fn note_unknown_columns(&mut self, source: &Source<'_>, layout: &Layout, line: u64) -> Result<(), ReadError> {
        for name in &layout.unknown {
            let reason = format!("column \"{name}\" is not known; {}", columns::EXPECTED);
            if self.options.bad_rows == BadRows::Reject {
                return Err(ReadError::Header { log: source.name.to_owned(), line, reason });
            }
            self.log.diagnostics.add("unknown_column", "columns that are not known were ignored", || format!("{}: {name}", source.name));
        }
        Ok(())
    }

    fn bad_row(&mut self, bad: BadRow) -> Result<(), ReadError> {
        if self.options.bad_rows == BadRows::Reject {
            return Err(bad.into());
        }
        self.log.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
        Ok(())
    }

    fn accept(&mut self, source: usize, stem: &str, row: &Row<'_>) {
        let recording = if row.trace.is_empty() { row.scenario } else { row.trace };
        let (source, stem, prefixed) = match self.options.sources_are {
            SourcesAre::Scenarios => (source, stem, self.n_sources > 1),
            SourcesAre::Parts => (0, self.first_stem.as_str(), false),
        };
        let log = &mut self.log;
        let open = self.traces.entry((source, recording.into())).or_insert_with(|| {
            let name = match recording {
                "" => stem.to_owned(),
                _ if prefixed && recording != stem => format!("{stem}/{recording}"),
                _ => recording.to_owned(),
            };
            let scenario = log.scenarios.intern(if row.scenario.is_empty() { stem } else { row.scenario });
            OpenTrace { log: TraceLog { name, scenario, ..TraceLog::default() }, ..OpenTrace::default() }
        });
        row.store(open, &mut self.log, &mut self.ids);
    }

    fn finish(mut self) -> MessageLog {
        let mut names = Names::default();
        for (_, mut open) in std::mem::take(&mut self.traces) {
            open.log.name = unique(&mut names, open.log.name);
            pairing::pair(&mut open, &mut self.log);
            sort_messages(&mut open, &mut self.log);
            self.log.traces.push(open.log);
        }
        self.log
    }
}

/// `name`, with a number appended where it is taken.
fn unique(names: &mut Names, name: String) -> String {
    let mut candidate = name.clone();
    let mut n = 2;
    while names.get(&candidate).is_some() {
        candidate = format!("{name}#{n}");
        n += 1;
    }
    names.intern(&candidate);
    candidate
}

/// Puts messages in order of reception, and drops those that a unit sent to itself.
fn sort_messages(open: &mut OpenTrace, log: &mut MessageLog) {
    let trace = &mut open.log;
    let mut ordered: Vec<(Message, u64)> = std::mem::take(&mut trace.messages).into_iter().zip(std::mem::take(&mut open.seq)).collect();
    let (units, diagnostics) = (&log.units, &mut log.diagnostics);
    for pair in ordered.windows(2).filter(|pair| pair[1].0.received < pair[0].0.received) {
        diagnostics.add("unordered_time", "messages were not in order of their time and have been sorted", || {
            format!("{}: {} after {}", trace.name, pair[1].0.received, pair[0].0.received)
        });
    }
    ordered.sort_by_key(|(message, seq)| (message.received, *seq));
    trace.messages = ordered.into_iter().map(|(message, _)| message).collect();
    trace.messages.retain(|message| {
        let to_itself = message.sender == message.receiver;
        if to_itself {
            diagnostics.add("self_message", "messages of a task to itself were dropped", || {
                format!("{}: {} at {}", trace.name, units.names.name(message.sender), message.received)
            });
        }
        !to_itself
    });
    trace.local_events.sort_by_key(|event| event.time);
}

/// The first line that says something, with its number.
struct FirstLine {
    text: Vec<u8>,
    number: u64,
}

/// Reads up to and including the first line that is neither blank nor a comment: all bytes read, and that line.
fn head(stream: &mut dyn BufRead) -> io::Result<(Vec<u8>, Option<FirstLine>)> {
    let mut read = Vec::new();
    for number in 1.. {
        let Some(line) = next_line(stream)? else { break };
        read.extend_from_slice(&line);
        let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
        let line = line.trim_ascii();
        if !line.is_empty() && !line.starts_with(b"#") {
            return Ok((read, Some(FirstLine { text: line.to_vec(), number })));
        }
    }
    Ok((read, None))
}

/// The next line with its line end, `None` at the end of the stream.
fn next_line(stream: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    stream.take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line)?;
    if line.len() as u64 == LINE_LIMIT_BYTES && !line.ends_with(b"\n") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line is longer than {LINE_LIMIT_BYTES} bytes")));
    }
    Ok(if line.is_empty() { None } else { Some(line) })
}
