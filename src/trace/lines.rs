//! Lines of logs, found in the buffer where they stand.

use std::io::{self, BufRead, Read};

use memchr::memchr;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Longest line of a log, bytes.
pub(super) const LINE_LIMIT_BYTES: u64 = 1 << 20;

/// Reads the line of this number with its line end into `line`; `false` at the end of the stream.
///
/// # Errors
/// Those of the stream, and one for a line that is too long.
pub(super) fn next_line(stream: &mut dyn BufRead, line: &mut Vec<u8>, number: u64) -> io::Result<bool> {
    line.clear();
    stream.take(LINE_LIMIT_BYTES).read_until(b'\n', line)?;
    if line.len() as u64 == LINE_LIMIT_BYTES && !line.ends_with(b"\n") {
        return Err(too_long(number, LINE_LIMIT_BYTES));
    }
    Ok(!line.is_empty())
}

fn too_long(number: u64, limit_bytes: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("line {number} is longer than {limit_bytes} bytes"))
}

/// A text without the byte order mark that it may begin with.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// The lines of one log.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// What was read and not handed over is `buffer[begin..end]`.
    begin: usize,
    end: usize,
    is_over: bool,
    /// Lines handed over.
    n_lines: u64,
    /// Longest line, bytes.
    limit_bytes: usize,
}

impl<R: Read> Lines<R> {
    /// The lines of `stream`, of which none may be longer than `limit_bytes`.
    pub(super) fn new(stream: R, limit_bytes: usize) -> Self {
        Self { stream, buffer: vec![0; BUFFER_BYTES.min(limit_bytes)], begin: 0, end: 0, is_over: false, n_lines: 0, limit_bytes }
    }

    /// The next line without its line end; `None` at the end of the stream.
    ///
    /// # Errors
    /// Those of the stream, and one for a line that is too long.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut n_looked_at = 0;
        let line = loop {
            let from = self.begin + n_looked_at;
            if let Some(at) = memchr(b'\n', &self.buffer[from..self.end]) {
                break self.begin..from + at;
            }
            if self.is_over {
                if self.begin == self.end {
                    return Ok(None);
                }
                break self.begin..self.end;
            }
            n_looked_at = self.end - self.begin;
            self.fill()?;
        };
        self.begin = (line.end + 1).min(self.end);
        self.n_lines += 1;
        Ok(Some(&self.buffer[line]))
    }

    /// Reads more; what is not handed over moves to the front.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end >= self.limit_bytes {
            return Err(too_long(self.n_lines + 1, self.limit_bytes as u64));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize((2 * self.end).min(self.limit_bytes), 0);
        }
        let n_read = loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.end += n_read;
        self.is_over = n_read == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, limit_bytes: usize) -> io::Result<Vec<String>> {
        let mut lines = Lines::new(text.as_bytes(), limit_bytes);
        let mut found = Vec::new();
        while let Some(line) = lines.next()? {
            found.push(String::from_utf8(line.to_vec()).unwrap());
        }
        Ok(found)
    }

    #[test]
    fn lines_are_those_of_the_text_whatever_the_buffer() {
        let text = "one\n\ntwo and three\r\nfour";
        for limit in 20..40 {
            assert_eq!(lines(text, limit).unwrap(), ["one", "", "two and three\r", "four"]);
        }
        assert_eq!(lines("", 20).unwrap(), [""; 0]);
        assert_eq!(lines("\n", 20).unwrap(), [""]);
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error() {
        assert_eq!(lines(&"x".repeat(40), 32).unwrap_err().to_string(), "line 1 is longer than 32 bytes");
        assert_eq!(lines(&format!("a\n\n{}", "x".repeat(40)), 32).unwrap_err().to_string(), "line 3 is longer than 32 bytes");
    }
}
