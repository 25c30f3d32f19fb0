//! Rows of a log: from fields to events and messages.

use std::io::BufRead;

use super::{
    BadRow, LocalEvent, Message, MessageLog, OpenTrace, ReadError, Reader, Shape, Time,
    columns::{Column, Layout, abridged},
    next_line,
    pairing::{Event, Side},
};
use crate::trace::names::Names;

/// What a row says; an empty text is a field that is absent or empty.
pub(super) struct Row<'r> {
    pub(super) trace: &'r str,
    pub(super) scenario: &'r str,
    time: Time,
    seq: u64,
    message_type: &'r str,
    message_id: &'r str,
    what: What<'r>,
}

enum What<'r> {
    End { side: Side, process: &'r str, thread: &'r str, peer: &'r str },
    Local { process: &'r str, thread: &'r str },
    Message { sender: Unit<'r>, receiver: Unit<'r>, sent: Option<Time> },
}

struct Unit<'r> {
    process: &'r str,
    thread: &'r str,
}

impl Row<'_> {
    /// Adds what the row says to its recording.
    pub(super) fn store(&self, open: &mut OpenTrace, log: &mut MessageLog, ids: &mut Names) {
        let operation = (!self.message_type.is_empty()).then(|| log.operations.intern(self.message_type));
        match &self.what {
            What::Local { process, thread } => {
                open.log.local_events.push(LocalEvent { unit: log.units.intern(process, thread), time: self.time });
            }
            What::Message { sender, receiver, sent } => {
                let sender = log.units.intern(sender.process, sender.thread);
                let receiver = log.units.intern(receiver.process, receiver.thread);
                open.log.messages.push(Message { sender, receiver, sent: *sent, received: self.time, operation });
                open.seq.push(self.seq);
            }
            What::End { side, process, thread, peer } => {
                let unit = log.units.intern(process, thread);
                let process = log.units.processes.intern(process);
                let peer = (!peer.is_empty()).then(|| log.units.processes.intern(peer));
                let id = (!self.message_id.is_empty()).then(|| ids.intern(self.message_id));
                open.events.push(Event { time: self.time, seq: self.seq, side: *side, unit, process, peer, operation, id });
            }
        }
    }
}

/// Reads the rows of one source into a [`Reader`].
pub(super) struct RowReader<'a, 'o> {
    pub(super) source: usize,
    pub(super) stem: &'a str,
    pub(super) log: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) reader: &'a mut Reader<'o>,
}

impl RowReader<'_, '_> {
    /// Reads a CSV, header included.
    pub(super) fn read_csv(&mut self, bytes: impl BufRead, delimiter: u8) -> Result<(), ReadError> {
        let mut csv = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(true)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(bytes.chain(&b"\n"[..]));
        let unreadable = |error: csv::Error| ReadError::Unreadable { log: self.log.to_owned(), source: error.into() };
        csv.byte_headers().map_err(unreadable)?;
        let mut record = csv::ByteRecord::new();
        while csv.read_byte_record(&mut record).map_err(unreadable)? {
            let lines_after = csv.position().line();
            let line = lines_after.saturating_sub(1 + record.iter().map(newlines).sum::<u64>()).max(1);
            let fields: Vec<&[u8]> = record.iter().collect();
            if fields != [b""] {
                self.row(&fields, line)?;
            }
        }
        Ok(())
    }

    /// Reads the plain form; `first` is the number of the first line that says something.
    pub(super) fn read_plain(&mut self, mut bytes: impl BufRead, first: u64) -> Result<(), ReadError> {
        for number in 1.. {
            let line = next_line(&mut bytes).map_err(|source| ReadError::Unreadable { log: self.log.to_owned(), source })?;
            let Some(line) = line else { break };
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            if line.is_empty() || line.starts_with(b"#") || (self.layout.has_header && number == first) {
                continue;
            }
            let fields: Vec<&[u8]> = if line.contains(&b'\t') {
                line.split(|b| *b == b'\t').map(<[u8]>::trim_ascii).collect()
            } else {
                line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect()
            };
            self.row(&fields, number)?;
        }
        Ok(())
    }

    fn row(&mut self, fields: &[&[u8]], line: u64) -> Result<(), ReadError> {
        let parser = RowParser { log: self.log, layout: self.layout, fields, line };
        match parser.row() {
            Ok(row) => {
                self.reader.accept(self.source, self.stem, &row);
                Ok(())
            }
            Err(bad) => self.reader.bad_row(bad),
        }
    }
}

fn newlines(field: &[u8]) -> u64 {
    field.iter().filter(|b| **b == b'\n').count() as u64
}

struct RowParser<'a, 'r> {
    log: &'a str,
    layout: &'a Layout,
    fields: &'a [&'r [u8]],
    line: u64,
}

impl<'r> RowParser<'_, 'r> {
    fn row(&self) -> Result<Row<'r>, BadRow> {
        let n_expected = self.layout.headings.len();
        let local_without_type = self.layout.delimiter.is_none() && self.fields.len() + 1 == n_expected;
        if self.fields.len() != n_expected && !local_without_type {
            return Err(self.bad(
                "row",
                format!("{} fields long", self.fields.len()),
                format!("{n_expected} fields ({})", self.layout.headings.join(", ")),
            ));
        }
        let row = Row {
            trace: self.text(Column::Trace)?,
            scenario: self.text(Column::Scenario)?,
            time: self.time(Column::Time)?,
            seq: self.seq()?,
            message_type: self.text(Column::MessageType)?,
            message_id: self.text(Column::MessageId)?,
            what: self.what()?,
        };
        let identified = !row.message_type.is_empty() || !row.message_id.is_empty();
        match row.what {
            What::End { peer, .. } if !identified && peer.is_empty() => {
                Err(self.missing(Column::MessageType, "a message type (or a msg_id or peer)"))
            }
            _ => Ok(row),
        }
    }

    fn what(&self) -> Result<What<'r>, BadRow> {
        if self.layout.shape == Shape::Messages {
            let sender = Unit { process: self.name(Column::Sender)?, thread: self.text(Column::SenderThread)? };
            let receiver = Unit { process: self.name(Column::Receiver)?, thread: self.text(Column::ReceiverThread)? };
            let sent = if self.text(Column::Sent)?.is_empty() { None } else { Some(self.time(Column::Sent)?) };
            return Ok(What::Message { sender, receiver, sent });
        }
        let (process, thread) = (self.name(Column::Process)?, self.text(Column::Thread)?);
        let kind = self.text(Column::Kind)?;
        let side = match kind.to_ascii_lowercase().as_str() {
            "send" => Side::Send,
            "receive" | "recv" => Side::Receive,
            "event" => return Ok(What::Local { process, thread }),
            _ => return Err(self.wrong(Column::Kind, kind, "send, receive or event")),
        };
        Ok(What::End { side, process, thread, peer: self.text(Column::Peer)? })
    }

    /// The field's text; empty where the log does not have the column.
    fn text(&self, column: Column) -> Result<&'r str, BadRow> {
        let bytes = self.layout.position(column).and_then(|i| self.fields.get(i)).copied().unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| self.wrong(column, &String::from_utf8_lossy(bytes), "UTF-8 text"))
    }

    fn name(&self, column: Column) -> Result<&'r str, BadRow> {
        match self.text(column)? {
            "" => Err(self.missing(column, "the name of a process")),
            name => Ok(name),
        }
    }

    fn time(&self, column: Column) -> Result<Time, BadRow> {
        let text = self.text(column)?;
        Time::parse(text).ok_or_else(|| self.wrong(column, text, "a time (a number of ticks)"))
    }

    fn seq(&self) -> Result<u64, BadRow> {
        match self.text(Column::Seq)? {
            "" => Ok(0),
            text => text.parse().map_err(|_| self.wrong(Column::Seq, text, "a whole number, 0 or more")),
        }
    }

    fn missing(&self, column: Column, expected: &str) -> BadRow {
        self.bad(self.layout.heading(column), "missing".to_owned(), expected.to_owned())
    }

    fn wrong(&self, column: Column, found: &str, expected: &str) -> BadRow {
        if found.is_empty() {
            return self.missing(column, expected);
        }
        self.bad(self.layout.heading(column), format!("\"{}\"", abridged(found)), expected.to_owned())
    }

    fn bad(&self, field: &str, found: String, expected: String) -> BadRow {
        BadRow { log: self.log.to_owned(), line: self.line, field: field.to_owned(), found, expected }
    }
}
