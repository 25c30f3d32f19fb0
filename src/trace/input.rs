//! A source's bytes as a stream: plain, or gzip told by its first two bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens `reader` (a `&[u8]` is one), decompressing gzip (any number of members) on the way.
///
/// The stream fails with [`io::ErrorKind::FileTooLarge`] once it has yielded more than `limit_bytes`, so that a small
/// compressed body cannot fill the memory.
pub fn open<'r>(mut reader: impl Read + 'r, limit_bytes: u64) -> Box<dyn BufRead + 'r> {
    let mut first = Vec::with_capacity(GZIP_MAGIC.len());
    if let Err(error) = reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut first) {
        return Box::new(BufReader::new(Failed(Some(error))));
    }
    let is_gzip = first == GZIP_MAGIC;
    let whole = Cursor::new(first).chain(reader);
    if is_gzip {
        Box::new(BufReader::new(Bounded { inner: MultiGzDecoder::new(whole), left: limit_bytes, limit_bytes }))
    } else {
        Box::new(BufReader::new(Bounded { inner: whole, left: limit_bytes, limit_bytes }))
    }
}

/// A source that could not be opened: its error is told when it is read.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// A reader that refuses to yield more than a number of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    limit_bytes: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        match self.left.checked_sub(n_read as u64) {
            Some(left) => {
                self.left = left;
                Ok(n_read)
            }
            None => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} bytes when decompressed", self.limit_bytes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8], limit_bytes: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        open(bytes, limit_bytes).read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn plain_and_gzip_and_several_members_read_alike() {
        assert_eq!(read(b"one two", 100).unwrap(), b"one two");
        assert_eq!(read(&gzip(b"one two"), 100).unwrap(), b"one two");
        assert_eq!(read(&[gzip(b"one "), gzip(b"two")].concat(), 100).unwrap(), b"one two");
    }

    #[test]
    fn stops_at_the_limit_exactly() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert_eq!(read(&bomb, 1 << 20).unwrap().len(), 1 << 20);
        let error = read(&bomb, (1 << 20) - 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "longer than 1048575 bytes when decompressed");
    }

    #[test]
    fn broken_gzip_is_an_error() {
        let mut broken = gzip(b"one two three four five six seven eight");
        broken.truncate(20);
        assert!(read(&broken, 1000).is_err());
    }
}
