//! A source's bytes as a stream: plain, or gzip told by its first two bytes.

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens `bytes` for reading, decompressing gzip (any number of members) on the way.
///
/// The stream fails with [`io::ErrorKind::FileTooLarge`] once it has yielded more than `limit_bytes`, so that a small
/// compressed body cannot fill the memory.
pub fn open(bytes: &[u8], limit_bytes: u64) -> Box<dyn BufRead + '_> {
    if bytes.starts_with(&GZIP_MAGIC) {
        Box::new(BufReader::new(Bounded { inner: MultiGzDecoder::new(bytes), left: limit_bytes, limit_bytes }))
    } else {
        Box::new(BufReader::new(Bounded { inner: bytes, left: limit_bytes, limit_bytes }))
    }
}

/// A reader that refuses to yield more than a number of bytes.
pub(super) struct Bounded<R> {
    /// What is read from.
    pub(super) inner: R,
    /// Bytes that may still come.
    pub(super) left: u64,
    /// Bytes that may come in all, for the message.
    pub(super) limit_bytes: u64,
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
