//! Rows of a log: from bytes to fields, one row at a time.

use std::io::{self, BufRead, Read};

use super::{
    BadRow, ReadError, Time,
    columns::{Column, Layout, N_COLUMNS, Shape, abridged},
    pairing::Side,
};
use crate::trace::{
    csv_rows::{self, CsvRows, OPEN_AND_EXPECTED},
    input,
    lines::{next_line, without_mark},
    number,
};

/// What a row says, in bytes that are UTF-8 text; no bytes are a field that is absent or empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    pub(super) trace: &'r [u8],
    pub(super) scenario: &'r [u8],
    pub(super) time: Time,
    pub(super) seq: u64,
    pub(super) message_type: &'r [u8],
    pub(super) message_id: &'r [u8],
    pub(super) what: What<'r>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What<'r> {
    /// One end of a message, or a local event.
    Event { side: Side, unit: Unit<'r>, peer: &'r [u8] },
    /// A whole message.
    Message { sender: Unit<'r>, receiver: Unit<'r>, sent: Option<Time> },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Unit<'r> {
    pub(super) process: &'r [u8],
    pub(super) thread: &'r [u8],
}

/// The rows of one log.
pub(super) struct Rows<'s> {
    log: String,
    layout: Layout,
    form: Form<'s>,
    n_rows: u64,
}

enum Form<'s> {
    Csv(Box<CsvRows<Box<dyn BufRead + 's>>>),
    Plain(Plain<'s>),
}

struct Plain<'s> {
    bytes: Box<dyn BufRead + 's>,
    line: Vec<u8>,
    /// Of `line`, from 1.
    number: u64,
    /// Begin and end of the fields in `line`.
    fields: Vec<(usize, usize)>,
}

impl<'s> Rows<'s> {
    /// Opens a log: reads as far as its first line that says something.
    pub(super) fn open(log: &str, reader: impl Read + 's, limit_bytes: u64) -> Result<Self, ReadError> {
        let unreadable = |source| ReadError::Unreadable { log: log.to_owned(), source };
        let mut stream = input::open(reader, limit_bytes);
        let Some(first_line) = first_line(&mut stream).map_err(unreadable)? else {
            return Err(ReadError::Empty { log: log.to_owned() });
        };
        let header_error = |reason| ReadError::Header { log: log.to_owned(), line: first_line.number, reason };
        let layout = Layout::detect(&first_line).map_err(header_error)?;
        let n_lines_before = first_line.number - 1;
        let form = match layout.delimiter {
            Some(delimiter) => Form::Csv(Box::new(CsvRows::new(stream, delimiter, first_line.number + 1))),
            None => {
                let bytes = Box::new(io::Cursor::new(first_line.text).chain(stream));
                let mut plain = Plain { bytes, line: Vec::new(), number: n_lines_before, fields: Vec::new() };
                if layout.has_header {
                    plain.next_line().map_err(unreadable)?;
                }
                Form::Plain(plain)
            }
        };
        Ok(Self { log: log.to_owned(), layout, form, n_rows: 0 })
    }

    /// Columns that are not known, each with the error that it is where such are rejected.
    pub(super) fn unknown_columns(&self) -> impl Iterator<Item = (&str, ReadError)> {
        self.layout.unknown.iter().map(|name| {
            let reason = format!("column \"{name}\" is not known; {}", super::columns::EXPECTED);
            (name.as_str(), ReadError::Header { log: self.log.clone(), line: self.layout.line, reason })
        })
    }

    /// Goes on to the next row that says something; whether there is one.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        let found = match &mut self.form {
            Form::Csv(csv) => csv.advance(),
            Form::Plain(plain) => plain.next_row(),
        };
        self.n_rows += 1;
        found.map_err(|source| ReadError::Unreadable { log: self.log.clone(), source })
    }

    /// The number of the row, from 1.
    pub(super) fn number(&self) -> u64 {
        self.n_rows
    }

    /// The time of the row, where it can be read.
    pub(super) fn time(&self) -> Option<Time> {
        let position = self.layout.position(Column::Time)?;
        Time::parse(self.found().get(position).ok()?)
    }

    /// What the row says.
    #[inline]
    pub(super) fn row<'r>(&'r self) -> Result<Row<'r>, BadRow> {
        let ascii = match &self.form {
            Form::Csv(csv) if csv.is_open() => {
                let [found, expected] = OPEN_AND_EXPECTED.map(str::to_owned);
                return Err(self.bad("row", found, expected));
            }
            Form::Csv(csv) => csv.ascii(),
            Form::Plain(_) => None,
        };
        let said = match ascii {
            Some(fields) if fields.len() == self.layout.headings.len() => {
                self.said(|column| self.layout.position(column).map_or(&[], |position| fields.get(position)))
            }
            _ => {
                let texts = self.texts()?;
                self.said(|column| texts[column as usize].as_bytes())
            }
        };
        said.map_err(|fault| self.at_fault(fault))
    }

    /// What the row says whose fields are `text`.
    #[inline]
    fn said<'r>(&self, text: impl Fn(Column) -> &'r [u8]) -> Result<Row<'r>, Fault<'r>> {
        let row = Row {
            trace: text(Column::Trace),
            scenario: text(Column::Scenario),
            time: time(&text, Column::Time)?,
            seq: seq(&text)?,
            message_type: text(Column::MessageType),
            message_id: text(Column::MessageId),
            what: if self.layout.shape == Shape::Messages { message(&text)? } else { event(&text)? },
        };
        let identified = !row.message_type.is_empty() || !row.message_id.is_empty();
        match row.what {
            What::Event { side: Side::Send | Side::Receive, peer, .. } if !identified && peer.is_empty() => {
                Err(Fault { column: Column::MessageType, found: b"", expected: "a message type (or a msg_id or peer)" })
            }
            _ => Ok(row),
        }
    }

    /// The texts of a row that may have too few or too many fields, not all of them text.
    fn texts(&self) -> Result<Texts<'_>, BadRow> {
        let found = self.found();
        let Layout { headings, delimiter, .. } = &self.layout;
        let (n_fields, n_expected) = (found.len(), headings.len());
        let local_without_type = delimiter.is_none() && n_fields + 1 == n_expected;
        if n_fields != n_expected && !local_without_type {
            let expected = format!("{n_expected} fields ({})", headings.join(", "));
            return Err(self.bad("row", format!("{n_fields} fields long"), expected));
        }
        let mut texts = [""; N_COLUMNS + 1];
        match &found {
            Found::Csv(fields) => self.put(&mut texts, fields.iter())?,
            Found::Plain(plain) => self.put(&mut texts, plain.iter())?,
        }
        Ok(texts)
    }

    /// Puts fields that may not be text in their places.
    fn put<'r>(&self, texts: &mut Texts<'r>, fields: impl Iterator<Item = Result<&'r str, &'r [u8]>>) -> Result<(), BadRow> {
        for (position, (column, field)) in self.layout.columns.iter().zip(fields).enumerate() {
            texts[*column] = match field {
                Ok(text) => text,
                Err(_) if *column == N_COLUMNS => continue,
                Err(bytes) => {
                    let found = format!("\"{}\"", abridged(&String::from_utf8_lossy(bytes)));
                    return Err(self.bad(&self.layout.headings[position], found, "UTF-8 text".to_owned()));
                }
            };
        }
        Ok(())
    }

    fn found(&self) -> Found<'_> {
        match &self.form {
            Form::Csv(csv) => Found::Csv(csv.fields()),
            Form::Plain(plain) => Found::Plain(plain),
        }
    }

    #[cold]
    fn at_fault(&self, Fault { column, found, expected }: Fault<'_>) -> BadRow {
        let found = if found.is_empty() { "missing".to_owned() } else { format!("\"{}\"", abridged(&String::from_utf8_lossy(found))) };
        self.bad(self.layout.heading(column), found, expected.to_owned())
    }

    fn bad(&self, field: &str, found: String, expected: String) -> BadRow {
        BadRow { log: self.log.clone(), line: self.line(), field: field.to_owned(), found, expected }
    }

    /// The line that the row begins on, from 1.
    fn line(&self) -> u64 {
        match &self.form {
            Form::Csv(csv) => csv.line(),
            Form::Plain(plain) => plain.number,
        }
    }
}

/// A field that does not say what it should.
#[derive(Clone, Copy, Debug)]
struct Fault<'r> {
    column: Column,
    /// Empty if it is missing.
    found: &'r [u8],
    expected: &'static str,
}

#[inline]
fn message<'r>(text: &impl Fn(Column) -> &'r [u8]) -> Result<What<'r>, Fault<'r>> {
    let sender = Unit { process: name(text, Column::Sender)?, thread: text(Column::SenderThread) };
    let receiver = Unit { process: name(text, Column::Receiver)?, thread: text(Column::ReceiverThread) };
    let sent = if text(Column::Sent).is_empty() { None } else { Some(time(text, Column::Sent)?) };
    Ok(What::Message { sender, receiver, sent })
}

#[inline]
fn event<'r>(text: &impl Fn(Column) -> &'r [u8]) -> Result<What<'r>, Fault<'r>> {
    let unit = Unit { process: name(text, Column::Process)?, thread: text(Column::Thread) };
    let kind = text(Column::Kind);
    let is = |word: &[u8]| kind.eq_ignore_ascii_case(word);
    let side = if is(b"send") {
        Side::Send
    } else if is(b"receive") || is(b"recv") {
        Side::Receive
    } else if is(b"event") {
        return Ok(What::Event { side: Side::Local, unit, peer: b"" });
    } else {
        return Err(Fault { column: Column::Kind, found: kind, expected: "send, receive or event" });
    };
    Ok(What::Event { side, unit, peer: text(Column::Peer) })
}

#[inline]
fn name<'r>(text: &impl Fn(Column) -> &'r [u8], column: Column) -> Result<&'r [u8], Fault<'r>> {
    match text(column) {
        b"" => Err(Fault { column, found: b"", expected: "the name of a process" }),
        name => Ok(name),
    }
}

#[inline]
fn time<'r>(text: &impl Fn(Column) -> &'r [u8], column: Column) -> Result<Time, Fault<'r>> {
    let found = text(column);
    Time::parse_bytes(found).ok_or(Fault { column, found, expected: "a time (a number of ticks)" })
}

#[inline]
fn seq<'r>(text: &impl Fn(Column) -> &'r [u8]) -> Result<u64, Fault<'r>> {
    match text(Column::Seq) {
        b"" => Ok(0),
        found => number::unsigned_bytes(found).ok_or(Fault { column: Column::Seq, found, expected: "a whole number, 0 or more" }),
    }
}

/// The texts of a row by [`Column`]; empty where the log does not have them. The last is of any column that means nothing.
type Texts<'r> = [&'r str; N_COLUMNS + 1];

/// The fields of a row.
enum Found<'r> {
    Csv(csv_rows::Fields<'r>),
    Plain(&'r Plain<'r>),
}

impl<'r> Found<'r> {
    fn len(&self) -> usize {
        match self {
            Self::Csv(fields) => fields.len(),
            Self::Plain(plain) => plain.fields.len(),
        }
    }

    /// A field without blanks around it, empty if there is none; `Err` if it is not UTF-8 text.
    #[inline]
    fn get(&self, position: usize) -> Result<&'r str, &'r [u8]> {
        match self {
            Self::Csv(fields) => fields.get(position),
            Self::Plain(plain) => plain.iter().nth(position).unwrap_or(Ok("")),
        }
    }
}

impl Plain<'_> {
    /// The fields of the line; `Err` if one is not UTF-8 text.
    fn iter(&self) -> impl Iterator<Item = Result<&str, &[u8]>> {
        self.fields.iter().map(|(begin, end)| {
            let bytes = &self.line[*begin..*end];
            std::str::from_utf8(bytes).map_err(|_| bytes)
        })
    }

    fn next_line(&mut self) -> io::Result<bool> {
        self.number += 1;
        next_line(&mut self.bytes, &mut self.line, self.number)
    }

    /// Goes on to the next line that is neither blank nor a comment, and finds its fields.
    fn next_row(&mut self) -> io::Result<bool> {
        while self.next_line()? {
            let text = self.line.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let begin = self.line.len() - self.line.trim_ascii_start().len();
            let by_tabs = text.contains(&b'\t');
            let is_separator = |b: &u8| if by_tabs { *b == b'\t' } else { b.is_ascii_whitespace() };
            self.fields.clear();
            let mut at = begin;
            for field in text.split(is_separator) {
                let from = at + (field.len() - field.trim_ascii_start().len());
                let trimmed = field.trim_ascii();
                if by_tabs || !trimmed.is_empty() {
                    self.fields.push((from, from + trimmed.len()));
                }
                at += field.len() + 1;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// The first line that says something, with its number from 1.
pub(super) struct FirstLine {
    /// Without blanks around it, but with a line end.
    pub(super) text: Vec<u8>,
    pub(super) number: u64,
}

/// Reads up to and including the first line that is neither blank nor a comment.
fn first_line(stream: &mut dyn BufRead) -> io::Result<Option<FirstLine>> {
    let mut line = Vec::new();
    for number in 1.. {
        if !next_line(stream, &mut line, number)? {
            break;
        }
        let text = if number == 1 { without_mark(&line) } else { &line };
        let text = text.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            return Ok(Some(FirstLine { text: [text, b"\n"].concat(), number }));
        }
    }
    Ok(None)
}
