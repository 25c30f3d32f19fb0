//! The walk through a stream of JSON documents.

use std::{
    fmt,
    io::{self, Read},
};

use memchr::{memchr, memchr_iter, memchr3, memrchr};

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 16;

/// Longest value that is lent as one slice, bytes: a span with all its events is far shorter.
pub const LONGEST_VALUE_BYTES: usize = 1 << 24;

/// Longest key that is told from others, bytes.
const LONGEST_KEY_BYTES: usize = 128;

/// Where in a text something stands, both counted from 1, the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The byte within the line.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a walk cannot go on.
#[derive(Debug)]
pub enum ScanError {
    /// The stream failed.
    Read(io::Error),
    /// Something else stands where `expected` should.
    Syntax {
        /// Where.
        place: Place,
        /// What should stand there.
        expected: &'static str,
    },
    /// The stream ended within a document.
    Ended {
        /// Where.
        place: Place,
    },
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// A walk through the JSON documents of a stream.
///
/// The caller enters containers, asks for their keys or elements, and for each value either enters, skips or captures it.
pub struct Scanner<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
    ended: bool,
    depth: u32,
    after_value: bool,
    key: Vec<u8>,
    /// Start of what is to be kept in the buffer until it is captured.
    mark: Option<usize>,
    mark_place: Place,
    captured: (usize, usize),
    /// The last byte that left the buffer and is not white.
    dropped: u8,
    /// Up to where lines are counted.
    counted: usize,
    line: u64,
    /// Bytes of the current line that have left the buffer, less the line's start in the buffer.
    column_offset: i64,
    document_line: u64,
    /// Whether each document stands on one line, so that a line that starts with `{` starts a document.
    lines: bool,
    n_documents: u64,
}

impl<'r> Scanner<'r> {
    /// A walk from the start of `reader`, past a byte order mark.
    pub fn new(reader: impl Read + 'r) -> Self {
        Self {
            reader: Box::new(reader),
            buffer: Vec::new(),
            filled: 0,
            at: 0,
            ended: false,
            depth: 0,
            after_value: false,
            key: Vec::new(),
            mark: None,
            mark_place: Place { line: 1, column: 1 },
            captured: (0, 0),
            dropped: b',',
            counted: 0,
            line: 1,
            column_offset: 0,
            document_line: 1,
            lines: false,
            n_documents: 0,
        }
    }

    /// Goes to the next document, an object or array; `false` at the end of the stream.
    pub fn next_document(&mut self) -> Result<bool, ScanError> {
        let ended_on = self.place().line;
        self.depth = 0;
        self.after_value = false;
        if self.n_documents == 0 {
            while matches!(self.byte()?, Some(0xef | 0xbb | 0xbf)) {
                self.at += 1;
            }
        }
        while let Some(byte) = self.white()? {
            if byte != 0x1e {
                break;
            }
            self.at += 1;
        }
        let Some(first) = self.byte()? else { return Ok(false) };
        let line = self.place().line;
        self.lines = if self.n_documents == 0 { false } else { self.lines || (ended_on == self.document_line && line > ended_on) };
        self.document_line = line;
        self.n_documents += 1;
        if matches!(first, b'{' | b'[') { Ok(true) } else { Err(self.syntax("an object or an array")) }
    }

    /// Goes to the start of the next line that begins with `{` or `[`, after an error; `false` at the end of the stream.
    pub fn next_line_of_json(&mut self) -> Result<bool, ScanError> {
        self.depth = 0;
        self.mark = None;
        loop {
            match memchr(b'\n', &self.buffer[self.at..self.filled]) {
                Some(i) => {
                    self.at += i + 1;
                    if matches!(self.byte()?, Some(b'{' | b'[')) {
                        return Ok(true);
                    }
                }
                None => {
                    self.at = self.filled;
                    if !self.fill()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// The first byte of the next value: `{`, `[`, `"` or that of a number, `true`, `false` or `null`.
    pub fn peek(&mut self) -> Result<u8, ScanError> {
        match self.white()? {
            Some(byte) => Ok(byte),
            None => Err(self.cut()),
        }
    }

    /// Enters the next value, which is an object or array.
    pub fn enter(&mut self) -> Result<(), ScanError> {
        if !matches!(self.peek()?, b'{' | b'[') {
            return Err(self.syntax("an object or an array"));
        }
        self.at += 1;
        self.depth += 1;
        self.after_value = false;
        Ok(())
    }

    /// Goes to the value of the next key of the object that was entered; `false` at its end.
    pub fn next_key(&mut self) -> Result<bool, ScanError> {
        if !self.next_item(b'}', "a comma or }")? {
            return Ok(false);
        }
        if self.peek()? != b'"' {
            return Err(self.syntax("a key in quotes"));
        }
        self.at += 1;
        self.read_key()?;
        if self.peek()? != b':' {
            return Err(self.syntax("a colon"));
        }
        self.at += 1;
        Ok(true)
    }

    /// The key that [`next_key`](Self::next_key) found; empty for a key that is too long or escaped to be one of ours.
    pub fn key(&self) -> &str {
        std::str::from_utf8(&self.key).unwrap_or_default()
    }

    /// Goes to the next element of the array that was entered; `false` at its end.
    pub fn next_element(&mut self) -> Result<bool, ScanError> {
        self.next_item(b']', "a comma or ]")
    }

    fn next_item(&mut self, close: u8, expected: &'static str) -> Result<bool, ScanError> {
        let mut byte = self.peek()?;
        if byte == close {
            self.at += 1;
            self.depth = self.depth.saturating_sub(1);
            self.after_value = true;
            return Ok(false);
        }
        if self.after_value {
            if byte != b',' {
                return Err(self.syntax(expected));
            }
            self.at += 1;
            byte = self.peek()?;
        }
        self.after_value = false;
        if matches!(byte, b'}' | b']' | b',') { Err(self.syntax("a value")) } else { Ok(true) }
    }

    /// Skips the next value.
    pub fn skip(&mut self) -> Result<(), ScanError> {
        match self.peek()? {
            b'{' | b'[' => {
                self.at += 1;
                self.skip_to_close()?;
            }
            b'"' => {
                self.at += 1;
                self.skip_text()?;
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'N' | b'I' => self.skip_literal()?,
            _ => return Err(self.syntax("a value")),
        }
        self.after_value = true;
        Ok(())
    }

    /// Reads the next value whole; `false` if it is longer than [`LONGEST_VALUE_BYTES`] and was skipped.
    pub fn capture(&mut self) -> Result<bool, ScanError> {
        self.peek()?;
        self.set_mark();
        self.skip()?;
        Ok(self.close_capture())
    }

    /// Starts to keep what follows, from the next value on, so that [`capture_rest`](Self::capture_rest) can lend it.
    pub fn keep(&mut self) -> Result<(), ScanError> {
        self.peek()?;
        self.set_mark();
        Ok(())
    }

    /// Stops keeping.
    pub fn let_go(&mut self) {
        self.mark = None;
    }

    /// Reads the rest of the object that was entered since [`keep`](Self::keep), from the value of its current key on;
    /// `false` if it is longer than [`LONGEST_VALUE_BYTES`].
    pub fn capture_rest(&mut self) -> Result<bool, ScanError> {
        self.skip_to_close()?;
        self.depth = self.depth.saturating_sub(1);
        self.after_value = true;
        Ok(self.close_capture())
    }

    /// What was captured last; to be asked for before the walk goes on.
    pub fn captured(&self) -> &[u8] {
        self.buffer.get(self.captured.0..self.captured.1).unwrap_or_default()
    }

    /// Where the value that was captured last starts.
    pub fn captured_place(&self) -> Place {
        self.mark_place
    }

    /// Where the walk stands.
    pub fn place(&mut self) -> Place {
        if self.at > self.counted {
            let passed = &self.buffer[self.counted..self.at];
            if let Some(last) = memrchr(b'\n', passed) {
                self.line += memchr_iter(b'\n', passed).count() as u64;
                self.column_offset = -i64::try_from(self.counted + last + 1).unwrap_or(i64::MAX);
            }
            self.counted = self.at;
        }
        let column = self.column_offset.saturating_add(i64::try_from(self.at).unwrap_or(i64::MAX)) + 1;
        Place { line: self.line, column: column.unsigned_abs() }
    }

    fn set_mark(&mut self) {
        self.mark_place = self.place();
        self.mark = Some(self.at);
    }

    fn close_capture(&mut self) -> bool {
        let start = self.mark.take();
        self.captured = (start.unwrap_or(self.at), self.at);
        start.is_some_and(|start| self.at - start <= LONGEST_VALUE_BYTES)
    }

    fn syntax(&mut self, expected: &'static str) -> ScanError {
        ScanError::Syntax { place: self.place(), expected }
    }

    fn cut(&mut self) -> ScanError {
        ScanError::Ended { place: self.place() }
    }

    /// The next byte that is not white, without going past it.
    fn white(&mut self) -> Result<Option<u8>, ScanError> {
        loop {
            match self.byte()? {
                Some(b'\n') => self.line_end()?,
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Goes past the end of a line, unless the next line shows that the document was cut: each has its own, or none of its values can begin there.
    fn line_end(&mut self) -> Result<(), ScanError> {
        if self.depth > 0 {
            if self.at + 1 == self.filled {
                self.fill()?;
            }
            let is_object = self.buffer[..self.filled].get(self.at + 1) == Some(&b'{');
            if is_object && (self.lines || !matches!(self.last_of_value(), b',' | b':' | b'[')) {
                return Err(self.syntax("the end of the object that this line holds"));
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The last byte before the walk that is not white.
    fn last_of_value(&self) -> u8 {
        self.buffer[..self.at].iter().rev().find(|byte| !byte.is_ascii_whitespace()).copied().unwrap_or(self.dropped)
    }

    fn skip_to_close(&mut self) -> Result<(), ScanError> {
        let outside = self.depth;
        self.depth = self.depth.max(1);
        let mut open: u64 = 1;
        while open > 0 {
            let Some(i) = self.buffer[self.at..self.filled].iter().position(|byte| IS_STRUCTURE[*byte as usize]) else {
                self.at = self.filled;
                if !self.fill()? {
                    return Err(self.cut());
                }
                continue;
            };
            self.at += i;
            match self.buffer[self.at] {
                b'\n' => {
                    self.line_end()?;
                    continue;
                }
                b'"' => {
                    self.at += 1;
                    self.skip_text()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                _ => open -= 1,
            }
            self.at += 1;
        }
        self.depth = outside;
        Ok(())
    }

    /// Goes past the end of the text whose opening quote was passed.
    fn skip_text(&mut self) -> Result<(), ScanError> {
        loop {
            let Some(i) = text_mark(&self.buffer[self.at..self.filled]) else {
                self.at = self.filled;
                if !self.fill()? {
                    return Err(self.cut());
                }
                continue;
            };
            self.at += i;
            match self.buffer[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\n' => return Err(self.syntax("a quote that ends the text on its line")),
                _ => {
                    self.at += 1;
                    if self.byte()?.is_none() {
                        return Err(self.cut());
                    }
                    self.at += 1;
                }
            }
        }
    }

    fn skip_literal(&mut self) -> Result<(), ScanError> {
        while let Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') = self.byte()? {
            self.at += 1;
        }
        Ok(())
    }

    fn read_key(&mut self) -> Result<(), ScanError> {
        self.key.clear();
        loop {
            let window = &self.buffer[self.at..self.filled];
            let plain = memchr3(b'"', b'\\', b'\n', window);
            let run = &window[..plain.unwrap_or(window.len())];
            if self.key.len() + run.len() <= LONGEST_KEY_BYTES {
                self.key.extend_from_slice(run);
            } else {
                self.key.clear();
            }
            match plain {
                Some(i) if window[i] == b'"' => {
                    self.at += i + 1;
                    return Ok(());
                }
                Some(_) => {
                    self.key.clear();
                    return self.skip_text();
                }
                None => {
                    self.at = self.filled;
                    if !self.fill()? {
                        return Err(self.cut());
                    }
                }
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, ScanError> {
        if self.at == self.filled && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    /// Reads more bytes, dropping those that were passed and are not kept; `false` at the end of the stream.
    fn fill(&mut self) -> Result<bool, ScanError> {
        if self.ended {
            return Ok(false);
        }
        if self.mark.is_some_and(|mark| self.filled - mark > LONGEST_VALUE_BYTES) {
            self.mark = None;
        }
        self.drop_passed();
        if self.filled == self.buffer.len() {
            self.buffer.resize((2 * self.buffer.len()).max(CHUNK_BYTES), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(n) => {
                    self.filled += n;
                    self.ended = n == 0;
                    return Ok(n > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return Err(error.into());
                }
            }
        }
    }

    fn drop_passed(&mut self) {
        self.place();
        let passed = self.mark.unwrap_or(self.at);
        if passed > 0 {
            let last = self.buffer[..passed].iter().rev().find(|byte| !byte.is_ascii_whitespace());
            self.dropped = last.copied().unwrap_or(self.dropped);
            self.buffer.copy_within(passed..self.filled, 0);
            self.filled -= passed;
            self.at -= passed;
            self.counted -= passed;
            self.column_offset = self.column_offset.saturating_add_unsigned(passed as u64);
            self.mark = self.mark.map(|_| 0);
        }
    }
}

/// The first byte of a text that ends it or needs a look; most texts are short, and a search by blocks is slow to start.
fn text_mark(window: &[u8]) -> Option<usize> {
    const SHORT: usize = 16;
    let short = window.len().min(SHORT);
    let found = window[..short].iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'));
    found.or_else(|| memchr3(b'"', b'\\', b'\n', &window[short..]).map(|i| short + i))
}

/// What matters while a container is skipped.
const IS_STRUCTURE: [bool; 256] = {
    let mut is = [false; 256];
    is[b'{' as usize] = true;
    is[b'}' as usize] = true;
    is[b'[' as usize] = true;
    is[b']' as usize] = true;
    is[b'"' as usize] = true;
    is[b'\n' as usize] = true;
    is
};

mod ahead;
#[cfg(test)]
mod tests;
