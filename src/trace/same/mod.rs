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
//! message type; where the rows do not name their peer (3) first in, first out for one message type. What has a `msg_id` and is
//! alike in all to something that the window held with it is skipped, and counted (`duplicate_message`).
//!
//! Logs are read as streams ([`LogReader`]): what is held of them is bounded ([`Windows`]), whatever their length.
//! [`read`] keeps all of a log.

mod arrivals;
mod columns;
mod pairing;
mod recording;
mod recordings;
mod repeats;
mod rows;
mod steps;
mod stream;
mod window;

use std::io;

use super::{BadRows, Source, SourcesAre, StreamSource, Time, diagnostics::Diagnostics, names::Names, units::Units};

pub(crate) use arrivals::{Arrival, Arrivals, Taker};
pub(crate) use recordings::Recordings;
pub use recordings::Vocabulary;
pub use steps::Step;
pub(crate) use steps::{Context, Steps};
pub use stream::LogReader;

/// Which times of a message say when it takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// Both, in recordings where every message has both and none is received before it is sent, as far as the first window
    /// shows; else that of reception.
    #[default]
    Auto,
    /// That of reception.
    Reception,
    /// Its sender sends at the one, its receiver receives at the other.
    Both,
}

/// How much is held of logs while they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Fewer ends of messages, and fewer messages, than this are held of one recording to be put in order (≥ 1); and at
    /// most so many ends that wait for the other end.
    pub events: usize,
    /// Most of all these together.
    pub all_events: usize,
    /// Most recordings at once (≥ 1).
    pub recordings: usize,
}

impl Default for Windows {
    /// Some 50 MB.
    fn default() -> Self {
        Self { events: 1 << 17, all_events: 1 << 19, recordings: 1 << 13 }
    }
}

/// How logs are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// How several sources belong together.
    pub sources_are: SourcesAre,
    /// Most bytes that one source may have after decompression.
    pub limit_bytes: u64,
    /// Which times of a message are used.
    pub times: Times,
    /// How much is held.
    pub windows: Windows,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            bad_rows: BadRows::Count,
            sources_are: SourcesAre::Scenarios,
            limit_bytes: 1 << 30,
            times: Times::default(),
            windows: Windows::default(),
        }
    }
}

/// Something in a log.
#[derive(Clone, Copy, Debug)]
pub struct LogStep<'s> {
    /// The recording: a number that is given out again when the recording has ended.
    pub recording: usize,
    /// What happens in it.
    pub what: What<'s>,
}

/// What happens in a recording.
#[derive(Clone, Copy, Debug)]
pub enum What<'s> {
    /// It begins.
    Begin {
        /// Its name.
        name: &'s str,
        /// What it is a recording of (number in [`Vocabulary::scenarios`]).
        scenario: u32,
        /// Whether its beginning was handed over, and ended, before.
        continued: bool,
    },
    /// A message or local event, in order of time.
    Step(Step<'s>),
    /// It ends.
    End,
}

/// What takes a log.
pub type Sink<'s> = dyn FnMut(&Vocabulary, LogStep<'_>) + 's;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Reads message logs and keeps all of them; a row that cannot be read is counted, or an error, as `options` ask (whose times
/// and windows are not used).
///
/// # Errors
/// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
/// [`BadRows::Reject`] also the first bad row.
pub fn read(sources: &[Source<'_>], options: &ReadOptions) -> Result<MessageLog, ReadError> {
    let windows = Windows { events: usize::MAX, all_events: usize::MAX, recordings: usize::MAX };
    let mut reader = LogReader::new(&ReadOptions { times: Times::Reception, windows, ..*options });
    let mut traces: Vec<TraceLog> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut keep = |_: &Vocabulary, step: LogStep<'_>| match step.what {
        What::Begin { name, scenario, .. } => {
            open.resize(open.len().max(step.recording + 1), 0);
            open[step.recording] = traces.len();
            traces.push(TraceLog { name: name.to_owned(), scenario, ..TraceLog::default() });
        }
        What::Step(Step::Local(event)) => traces[open[step.recording]].local_events.push(*event),
        What::Step(Step::Message(message) | Step::Receive(_, message)) => traces[open[step.recording]].messages.push(*message),
        What::Step(Step::Send(..)) | What::End => {}
    };
    reader.read(sources.iter().map(Source::stream).collect(), &mut keep)?;
    let (Vocabulary { units, operations, scenarios }, diagnostics) = reader.finish(&mut keep);
    Ok(MessageLog { units, operations, scenarios, traces, diagnostics })
}

#[cfg(test)]
mod tests;
