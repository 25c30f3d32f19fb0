//! Values read straight from what is buffered, without looking for their ends first.
//!
//! In goes a walk that stands at an object, or within one that is kept; out comes what `serde_json` makes of it, and the walk
//! is past it. An object that is not all in the buffer, is not what is asked for, or spans lines where documents do not, is
//! left to [`Scanner::capture`] and [`Scanner::capture_rest`], which find the same objects, and say what is wrong with others.

use memchr::memchr;
use serde::Deserialize;

use super::{LONGEST_VALUE_BYTES, Place, ScanError, Scanner};

impl Scanner<'_> {
    /// The next value and its place, if it is an object that can be read ahead; else the walk stays where it is.
    pub fn ahead<'s, T: Deserialize<'s>>(&'s mut self) -> Result<Option<(T, Place)>, ScanError> {
        if self.peek()? != b'{' {
            return Ok(None);
        }
        let (start, place) = (self.at, self.place());
        Ok(self.parsed(start, false).map(|value| (value, place)))
    }

    /// The object that was entered since [`keep`](Self::keep), and its place, if it can be read ahead; else the walk stays
    /// where it is.
    pub fn rest_ahead<'s, T: Deserialize<'s>>(&'s mut self) -> Option<(T, Place)> {
        let (start, place) = (self.mark?, self.mark_place);
        self.parsed(start, true).map(|value| (value, place))
    }

    /// The object that starts at `start`; whether the walk is within it.
    fn parsed<'s, T: Deserialize<'s>>(&'s mut self, start: usize, is_entered: bool) -> Option<T> {
        let bytes: &'s [u8] = self.buffer.get(start..self.filled)?;
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<T>();
        let value = values.next()?.ok()?;
        let n_bytes = values.byte_offset();
        if n_bytes > LONGEST_VALUE_BYTES || (self.lines && memchr(b'\n', &bytes[..n_bytes]).is_some()) {
            return None;
        }
        self.at = start + n_bytes;
        self.after_value = true;
        if is_entered {
            self.depth = self.depth.saturating_sub(1);
            self.mark = None;
        }
        Some(value)
    }
}
