//! A source's bytes as a stream: plain, gzip or zstd, told by the first bytes.
//!
//! Nothing is held of the source but the decompressor's window: a source may be longer than the memory.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A zstd frame that holds no data may stand before others: `5?` `2a` `4d` `18` (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Largest window that a zstd frame may ask for, log2 bytes: 128 MiB, the default of the `zstd` tool.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Opens `reader` (a `&[u8]` is one), decompressing gzip (any number of members) or zstd (any number of frames) on the way.
///
/// The stream fails with [`io::ErrorKind::FileTooLarge`] once it has yielded more than `limit_bytes`, so that a small
/// compressed body cannot fill the memory.
pub fn open<'r>(mut reader: impl Read + 'r, limit_bytes: u64) -> Box<dyn BufRead + 'r> {
    let first = match first_bytes(&mut reader) {
        Ok(first) => first,
        Err(error) => return Box::new(BufReader::new(Failed(Some(error)))),
    };
    let kind = Compression::of(&first);
    let whole = Cursor::new(first).chain(reader);
    match kind {
        Compression::None => Box::new(BufReader::new(Bounded { inner: whole, left: limit_bytes, limit_bytes })),
        Compression::Gzip => {
            Box::new(BufReader::new(Bounded { inner: MultiGzDecoder::new(BufReader::new(whole)), left: limit_bytes, limit_bytes }))
        }
        Compression::Zstd => match zstd_decoder(whole) {
            Ok(inner) => Box::new(BufReader::new(Bounded { inner, left: limit_bytes, limit_bytes })),
            Err(error) => Box::new(BufReader::new(Failed(Some(error)))),
        },
    }
}

/// Whether the bytes are compressed in a way that [`open`] takes off.
pub fn is_compressed(bytes: &[u8]) -> bool {
    Compression::of(&bytes[..bytes.len().min(ZSTD_MAGIC.len())]) != Compression::None
}

fn zstd_decoder<'r>(reader: impl Read + 'r) -> io::Result<impl Read + 'r> {
    let mut decoder = zstd::stream::read::Decoder::new(reader)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// How a source is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn of(first: &[u8]) -> Self {
        let skippable = first.len() == 4 && first[0] & 0xf0 == 0x50 && first[1..] == ZSTD_SKIPPABLE_MAGIC;
        if first.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if first == ZSTD_MAGIC || skippable {
            Self::Zstd
        } else {
            Self::None
        }
    }
}

/// The first four bytes, fewer of a shorter source.
fn first_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(ZSTD_MAGIC.len());
    reader.take(ZSTD_MAGIC.len() as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// A source that could not be opened: its error is told when it is read.
pub(super) struct Failed(Option<io::Error>);

/// A source whose error is told when it is read.
pub(super) fn failed(error: io::Error) -> Failed {
    Failed(Some(error))
}

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
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

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).unwrap()
    }

    #[test]
    fn zstd_frames_read_alike_and_skippable_frames_are_skipped() {
        assert_eq!(read(&zstd(b"one two"), 100).unwrap(), b"one two");
        assert_eq!(read(&[zstd(b"one "), zstd(b"two")].concat(), 100).unwrap(), b"one two");
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, b'x', b'y'];
        assert_eq!(read(&[&skippable[..], &zstd(b"one")].concat(), 100).unwrap(), b"one");
    }

    #[test]
    fn a_source_may_come_byte_by_byte() {
        struct Dripping<'a>(&'a [u8]);
        impl Read for Dripping<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let n = buffer.len().min(1);
                self.0.read(&mut buffer[..n])
            }
        }
        for bytes in [b"one two".to_vec(), gzip(b"one two"), zstd(b"one two")] {
            let mut out = Vec::new();
            open(Dripping(&bytes), 100).read_to_end(&mut out).unwrap();
            assert_eq!(out, b"one two");
        }
    }

    #[test]
    fn short_sources_are_plain() {
        for text in ["", "a", "ab", "abc"] {
            assert_eq!(read(text.as_bytes(), 100).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_zstd_bomb_stops_at_the_limit_and_broken_zstd_is_an_error() {
        let bomb = zstd(&vec![0; 1 << 20]);
        assert_eq!(read(&bomb, (1 << 20) - 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let mut broken = zstd(b"one two three four five six seven eight");
        broken.truncate(20);
        assert_eq!(read(&broken, 1000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
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
    fn truncated_gzip_is_an_error() {
        let mut broken = gzip(b"one two three four five six seven eight");
        broken.truncate(20);
        assert_eq!(read(&broken, 1000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
