//! The forms that Kieker's writers leave files in: plain, gzip, xz, deflate, and a zip of a directory.
//!
//! Every stream is bounded: in its length by [`ReadOptions::limit_bytes`], in the memory that decompression takes (the
//! dictionary of xz) by [`ReadOptions::limit_memory_bytes`], so that a small file cannot fill the memory. The
//! directory of a zip is read by the crate `zip`, its files by `flate2`; xz by `lzma-rust2`, which is pure Rust, streams, and bounds its dictionary.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::ReadOptions;
use crate::trace::{
    Source,
    input::{self, Bounded},
};

/// First bytes of a zip.
pub(super) const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\x00";
const MAP: &str = "kieker.map";

const BUFFER_BYTES: usize = 1 << 16;

/// Most files of a zip.
const MOST_FILES: usize = 1 << 16;

/// How a file is packed inside its zip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Deflate,
}

/// A file of a log.
#[derive(Clone, Debug)]
pub(super) struct Part<'s> {
    /// Its name, with that of the zip that it is in.
    pub(super) name: String,
    bytes: &'s [u8],
    packing: Packing,
}

/// The files of a source: itself, or those of a zip. Of a zip, files that are neither records nor a map are left out.
pub(super) fn parts<'s>(source: &Source<'s>) -> io::Result<Vec<Part<'s>>> {
    if !source.bytes.starts_with(ZIP_MAGIC) {
        return Ok(vec![Part { name: source.name.to_owned(), bytes: source.bytes, packing: Packing::None }]);
    }
    let mut zip = zip::ZipArchive::new(Cursor::new(source.bytes))?;
    if zip.len() > MOST_FILES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("a zip of more than {MOST_FILES} files")));
    }
    let mut parts = Vec::new();
    for index in 0..zip.len() {
        let file = zip.by_index_raw(index)?;
        let name = file.name()?.into_owned();
        if !is_of_log(&name) {
            continue;
        }
        let packing = match file.compression() {
            zip::CompressionMethod::Stored => Packing::None,
            zip::CompressionMethod::Deflated => Packing::Deflate,
            other => return Err(invalid(format!("{name} is packed by {other}: expected deflate or none"))),
        };
        if file.encrypted() {
            return Err(invalid(format!("{name} is encrypted")));
        }
        let range = file.data_start().and_then(|start| {
            let start = usize::try_from(start).ok()?;
            Some(start..start.checked_add(usize::try_from(file.compressed_size()).ok()?)?)
        });
        let bytes = range.and_then(|range| source.bytes.get(range)).ok_or_else(|| invalid(format!("{name} lies outside of the zip")))?;
        parts.push(Part { name: format!("{}/{name}", source.name), bytes, packing });
    }
    Ok(parts)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Whether a file of this name is one of a log, and no archive of them.
pub(super) fn is_of_log(name: &str) -> bool {
    let plain = [".gz", ".xz", ".df"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    plain.ends_with(".dat") || plain.ends_with(MAP)
}

/// What a name says before its last `/`.
pub(super) fn folder(name: &str) -> &str {
    name.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
}

/// Whether a file of this name says what the types of records are.
pub(super) fn is_map(name: &str) -> bool {
    name.rsplit(['/', '\\']).next().is_some_and(|file| file.starts_with(MAP))
}

impl<'s> Part<'s> {
    /// What the name says before its last `/`.
    pub(super) fn folder(&self) -> &str {
        folder(&self.name)
    }

    /// Whether it says what the types of records are.
    pub(super) fn is_map(&self) -> bool {
        is_map(&self.name)
    }

    /// Opens it for reading.
    pub(super) fn open(&self, options: &ReadOptions) -> Box<dyn BufRead + 's> {
        let limit_bytes = options.limit_bytes;
        match self.packing {
            Packing::Deflate => bounded(DeflateDecoder::new(self.bytes), limit_bytes),
            Packing::None => open_plain(&self.name, self.bytes, options),
        }
    }
}

/// Opens a file that is in no zip.
pub(super) fn open_plain<'s>(name: &str, mut reader: impl Read + 's, options: &ReadOptions) -> Box<dyn BufRead + 's> {
    let limit_bytes = options.limit_bytes;
    let mut first = Vec::with_capacity(XZ_MAGIC.len());
    let began = reader.by_ref().take(XZ_MAGIC.len() as u64).read_to_end(&mut first);
    let is_xz = first == XZ_MAGIC;
    let whole = Cursor::new(first).chain(reader);
    if let Err(error) = began {
        return Box::new(BufReader::new(input::failed(error)));
    }
    if is_xz {
        let limit_kib = u32::try_from(options.limit_memory_bytes >> 10).unwrap_or(u32::MAX - 1);
        bounded(lzma_rust2::XzReader::new_mem_limit(whole, true, limit_kib), limit_bytes)
    } else if name.ends_with(".df") {
        bounded(ZlibDecoder::new(whole), limit_bytes)
    } else {
        input::open(whole, limit_bytes)
    }
}

fn bounded<'s>(inner: impl Read + 's, limit_bytes: u64) -> Box<dyn BufRead + 's> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, Bounded { inner, left: limit_bytes, limit_bytes }))
}
