//! Rows of CSV logs: fields between delimiters, found in the buffer where they stand.
//!
//! Input: bytes after a log's header; output: one row at a time, its fields and the line that it begins on. The rules are those of
//! RFC 4180 as the `csv` crate takes them, whose core reads every row with a quote; the others are held against it by a test:
//!
//! - A row ends at a line end, or with the bytes; `\r` before it is a blank of the last field. Rows with nothing but blanks, and
//!   those that begin with `#`, are passed over.
//! - A field that begins with `"` goes on to the next `"` that no other follows, through delimiters and line ends; two of them
//!   stand for one. Elsewhere `"` is a character like others.
//! - A quote that no other closes, up to the end or for longer than a row may be, is left open: its line alone is the row, and what
//!   follows is read on.
//!
//! Rows without quotes, which nearly all are, are not copied: line ends and delimiters are found in one pass, eight bytes at a time.

use std::io::{self, Read};

use memchr::memchr;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Longest row (whose fields may hold line ends), bytes: where a quote goes on for longer, it must have been left open.
const LONGEST_ROW_BYTES: usize = 1 << 20;

/// What a row is whose quote is left open, and what was expected.
pub(super) const OPEN_AND_EXPECTED: [&str; 2] = ["open after a quote", "a quote that closes it"];

/// The bits that no byte of ASCII has.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The rows of one log.
pub(super) struct CsvRows<R> {
    stream: R,
    delimiter: u8,
    buffer: Vec<u8>,
    /// What was read and not handed over is `buffer[begin..end]`.
    begin: usize,
    end: usize,
    is_over: bool,
    /// The first quote of these; `usize::MAX` if there is none.
    quote: usize,
    next_line: u64,
    row: Row,
    /// Reads rows with quotes; to make one takes longer than a row.
    quoted: csv_core::Reader,
}

/// Where the row at hand stands.
#[derive(Default)]
struct Row {
    /// The line that it begins on, from 1.
    line: u64,
    /// Its bytes in the buffer.
    place: (usize, usize),
    /// Those without quotes, where it has any.
    unquoted: Vec<u8>,
    has_quotes: bool,
    /// Whether it has a quote that was left open.
    is_open: bool,
    /// Where each field ends; the next one begins one byte later.
    ends: Vec<usize>,
    /// The bits of its bytes, and of a few after it, one over the other.
    bits: u64,
    /// Room for its fields one after the other and where each ends.
    room: (Vec<u8>, Vec<usize>),
}

/// The fields of a row in ASCII, which are text wherever they are taken out.
#[derive(Clone, Copy)]
pub(super) struct AsciiFields<'r> {
    bytes: &'r [u8],
    ends: &'r [usize],
}

/// The fields of a row.
#[derive(Clone, Copy)]
pub(super) struct Fields<'r> {
    text: Result<&'r str, &'r [u8]>,
    ends: &'r [usize],
}

impl<R: Read> CsvRows<R> {
    /// The rows of `stream`, which begins with line `line` of its source.
    pub(super) fn new(stream: R, delimiter: u8, line: u64) -> Self {
        Self {
            stream,
            delimiter,
            buffer: vec![0; BUFFER_BYTES],
            begin: 0,
            end: 0,
            is_over: false,
            quote: usize::MAX,
            next_line: line,
            row: Row::default(),
            quoted: csv_core::ReaderBuilder::new().delimiter(delimiter).terminator(csv_core::Terminator::Any(b'\n')).build(),
        }
    }

    /// Goes on to the next row that says something; whether there is one.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        loop {
            let Some(end) = self.split_line()? else { return Ok(false) };
            let begin = self.begin;
            self.row.line = self.next_line;
            if self.buffer[self.begin] == b'#' {
                self.pass(end, 1);
                continue;
            }
            (self.row.has_quotes, self.row.is_open) = (false, false);
            if self.quote >= end || !self.read_quoted(end - self.begin)? {
                let end = self.begin + (end - begin);
                self.row.place = (self.begin, end);
                self.pass(end, 1);
            }
            if self.row.ends.len() > 1 || !self.bytes().trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The line that the row begins on, from 1.
    pub(super) fn line(&self) -> u64 {
        self.row.line
    }

    /// Whether the row has a quote that no other closes; its fields are then those between the delimiters of its line.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.row.is_open
    }

    /// The row's fields.
    #[inline]
    pub(super) fn fields(&self) -> Fields<'_> {
        let bytes = self.bytes();
        Fields { text: std::str::from_utf8(bytes).map_err(|_| bytes), ends: &self.row.ends }
    }

    /// The row's fields if it, and what comes right after it, is ASCII, which nearly all are.
    #[inline]
    pub(super) fn ascii(&self) -> Option<AsciiFields<'_>> {
        let is_ascii = !self.row.has_quotes && self.row.bits & HIGH_BITS == 0;
        is_ascii.then(|| AsciiFields { bytes: self.bytes(), ends: &self.row.ends })
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.row.has_quotes { &self.row.unquoted } else { &self.buffer[self.row.place.0..self.row.place.1] }
    }

    /// Finds the ends of the fields of the line at hand, as if it had no quotes, and says where it ends; `None` at the end of the
    /// bytes.
    fn split_line(&mut self) -> io::Result<Option<usize>> {
        let mut n_looked_at = 0;
        self.row.ends.clear();
        self.row.bits = 0;
        loop {
            let bytes = &self.buffer[self.begin..self.end];
            if let Some(n_bytes) = split_line(bytes, n_looked_at, self.delimiter, &mut self.row) {
                return Ok(Some(self.begin + n_bytes));
            }
            if self.is_over {
                self.row.ends.push(bytes.len());
                return Ok((self.begin < self.end).then_some(self.end));
            }
            n_looked_at = bytes.len();
            self.fill()?;
        }
    }

    /// Leaves what ends at `end` behind, with the line end after it.
    fn pass(&mut self, end: usize, n_lines: u64) {
        self.begin = (end + 1).min(self.end);
        self.next_line += n_lines;
        if self.quote < self.begin {
            self.quote = self.first_quote(self.begin);
        }
    }

    fn first_quote(&self, from: usize) -> usize {
        memchr(b'"', &self.buffer[from..self.end]).map_or(usize::MAX, |at| from + at)
    }

    /// Reads more; what is not handed over moves to the front.
    fn fill(&mut self) -> io::Result<()> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.quote = if self.quote == usize::MAX { usize::MAX } else { self.quote - self.begin };
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        if self.end > LONGEST_ROW_BYTES {
            let text = format!("line {}: a row is longer than {LONGEST_ROW_BYTES} bytes", self.next_line);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        let n_read = loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let from = self.end;
        self.end += n_read;
        self.is_over = n_read == 0;
        if self.quote == usize::MAX {
            self.quote = self.first_quote(from);
        }
        Ok(())
    }

    /// Reads a row whose first line has `n_bytes` and a quote by `csv-core`, line by line; `false`, and nothing is read, if a quote is left
    /// open.
    fn read_quoted(&mut self, n_bytes: usize) -> io::Result<bool> {
        self.quoted.reset();
        let mut reader = Unquoted::new(std::mem::take(&mut self.row.room));
        let (mut n_read, mut line_end) = (0, n_bytes);
        let is_whole = loop {
            let until = (self.begin + line_end + 1).min(self.end);
            n_read += reader.read(&mut self.quoted, &self.buffer[self.begin + n_read..until]);
            if reader.is_whole {
                break true;
            }
            if self.begin + line_end == self.end {
                reader.read(&mut self.quoted, b"\n");
                break reader.is_whole;
            }
            match self.line_end_after(line_end + 1)? {
                Some(end) => line_end = end,
                None => break false,
            }
        };
        if is_whole {
            reader.put(&mut self.row, self.delimiter);
            let end = self.begin + line_end;
            let n_within = memchr::memchr_iter(b'\n', &self.buffer[self.begin..end]).count() as u64;
            self.pass(end, n_within + 1);
        }
        self.row.is_open = !is_whole;
        self.row.room = reader.room;
        Ok(is_whole)
    }

    /// Where the line ends that is at byte `from` of what is not handed over; none, if nothing is there or that is too long for a row.
    fn line_end_after(&mut self, from: usize) -> io::Result<Option<usize>> {
        let mut n_looked_at = from;
        loop {
            let bytes = &self.buffer[self.begin..self.end];
            if let Some(at) = memchr(b'\n', bytes.get(n_looked_at..).unwrap_or_default()) {
                return Ok(Some(n_looked_at + at));
            }
            if self.is_over {
                return Ok((from < bytes.len()).then_some(bytes.len()));
            }
            if bytes.len() > LONGEST_ROW_BYTES {
                return Ok(None);
            }
            n_looked_at = bytes.len().max(from);
            self.fill()?;
        }
    }
}

/// A row that `csv-core` reads.
struct Unquoted {
    /// What it wrote: the fields, and where each ends.
    room: (Vec<u8>, Vec<usize>),
    n_text: usize,
    n_fields: usize,
    is_whole: bool,
}

impl Unquoted {
    /// Fewest bytes and fields for which there is room.
    const FEWEST: usize = 64;

    fn new(mut room: (Vec<u8>, Vec<usize>)) -> Self {
        room.0.resize(room.0.len().max(Self::FEWEST), 0);
        room.1.resize(room.1.len().max(Self::FEWEST), 0);
        Self { room, n_text: 0, n_fields: 0, is_whole: false }
    }

    /// Reads on, up to the end of the row or of the bytes; how many.
    fn read(&mut self, reader: &mut csv_core::Reader, bytes: &[u8]) -> usize {
        let mut n_read = 0;
        loop {
            let (text, ends) = (&mut self.room.0, &mut self.room.1);
            let (result, n_more, n_text, n_fields) =
                reader.read_record(&bytes[n_read..], &mut text[self.n_text..], &mut ends[self.n_fields..]);
            n_read += n_more;
            self.n_text += n_text;
            self.n_fields += n_fields;
            match result {
                csv_core::ReadRecordResult::OutputFull => text.resize(2 * text.len(), 0),
                csv_core::ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
                csv_core::ReadRecordResult::InputEmpty => return n_read,
                csv_core::ReadRecordResult::Record | csv_core::ReadRecordResult::End => {
                    self.is_whole = true;
                    return n_read;
                }
            }
        }
    }

    /// Makes it the row at hand, its fields with delimiters between them.
    fn put(&self, row: &mut Row, delimiter: u8) {
        row.unquoted.clear();
        row.ends.clear();
        let mut begin = 0;
        for &end in &self.room.1[..self.n_fields] {
            if !row.ends.is_empty() {
                row.unquoted.push(delimiter);
            }
            row.unquoted.extend_from_slice(&self.room.0[begin..end]);
            row.ends.push(row.unquoted.len());
            begin = end;
        }
        row.has_quotes = true;
    }
}

/// Finds where each field of a row without quotes ends.
pub(super) fn split(row: &[u8], delimiter: u8, ends: &mut Vec<usize>) {
    let pattern = u64::from_ne_bytes([delimiter; 8]);
    ends.clear();
    let (words, rest) = row.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let mut found = zeros(u64::from_le_bytes(*word) ^ pattern);
        while found != 0 {
            ends.push(8 * number + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
    }
    let from = row.len() - rest.len();
    ends.extend(rest.iter().enumerate().filter(|(_, byte)| **byte == delimiter).map(|(at, _)| from + at));
    ends.push(row.len());
}

/// Adds where fields of the row end from byte `from` on, up to the line end, which ends the last one: says where that is, if it is
/// there.
#[inline]
fn split_line(bytes: &[u8], from: usize, delimiter: u8, Row { ends, bits, .. }: &mut Row) -> Option<usize> {
    let (delimiters, line_ends) = (u64::from_ne_bytes([delimiter; 8]), u64::from_ne_bytes([b'\n'; 8]));
    let (words, rest) = bytes[from..].as_chunks::<8>();
    let mut at = from;
    for word in words {
        let word = u64::from_le_bytes(*word);
        *bits |= word;
        let line_end = zeros(word ^ line_ends);
        // What comes after a line end is of the next line.
        let mut found = zeros(word ^ delimiters) & line_end.wrapping_sub(1) & !line_end;
        while found != 0 {
            ends.push(at + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
        if line_end != 0 {
            let end = at + line_end.trailing_zeros() as usize / 8;
            ends.push(end);
            return Some(end);
        }
        at += 8;
    }
    for byte in rest {
        *bits |= u64::from(*byte);
        if *byte == delimiter || *byte == b'\n' {
            ends.push(at);
        }
        if *byte == b'\n' {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The highest bit of each byte that is 0.
#[inline]
fn zeros(word: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
}

impl<'r> AsciiFields<'r> {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field without blanks around it, empty if there is none.
    #[inline]
    pub(super) fn get(&self, position: usize) -> &'r [u8] {
        let Some(end) = self.ends.get(position) else { return &[] };
        let begin = if position == 0 { 0 } else { self.ends[position - 1] + 1 };
        trimmed(self.bytes.get(begin..*end).unwrap_or_default())
    }
}

impl<'r> Fields<'r> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field without blanks around it, empty if there is none; `Err` if it is not UTF-8 text.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Result<&'r str, &'r [u8]> {
        let Some(end) = self.ends.get(position).copied() else { return Ok("") };
        self.between(if position == 0 { 0 } else { self.ends[position - 1] + 1 }, end)
    }

    /// All of them, as [`Fields::get`] tells them.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<&'r str, &'r [u8]>> {
        let (fields, mut begin) = (*self, 0);
        fields.ends.iter().map(move |end| fields.between(std::mem::replace(&mut begin, end + 1), *end))
    }

    /// The same, if all of the row is UTF-8 text.
    #[inline]
    pub(super) fn texts(&self) -> Option<impl Iterator<Item = &'r str>> {
        let (text, mut begin) = (self.text.ok()?, 0);
        let between = move |end: &usize| trimmed_text(text.get(std::mem::replace(&mut begin, end + 1)..*end).unwrap_or_default());
        Some(self.ends.iter().map(between))
    }

    #[inline]
    fn between(&self, begin: usize, end: usize) -> Result<&'r str, &'r [u8]> {
        match self.text {
            Ok(text) => Ok(trimmed_text(text.get(begin..end).unwrap_or_default())),
            Err(bytes) => {
                let bytes = bytes[begin..end].trim_ascii();
                std::str::from_utf8(bytes).map_err(|_| bytes)
            }
        }
    }
}

#[inline]
fn trimmed(bytes: &[u8]) -> &[u8] {
    if has_blanks(bytes) { bytes.trim_ascii() } else { bytes }
}

#[inline]
fn trimmed_text(text: &str) -> &str {
    if has_blanks(text.as_bytes()) { text.trim_ascii() } else { text }
}

/// Whether there may be blanks at an end.
#[inline]
fn has_blanks(bytes: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| byte.is_some_and(|byte| *byte <= b' ');
    is_blank(bytes.first()) || is_blank(bytes.last())
}

#[cfg(test)]
mod tests;
