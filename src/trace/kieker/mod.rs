//! Kieker monitoring logs: text records, to call-path events.
//!
//! A log is a directory: `kieker.map` says which class of record each `$ID` is, the other files hold records, one a line, with `;`
//! between the fields: `$1;1283156545581511026;bookstoreTracing.Catalog.getBook(boolean);N/A;6488…;…`. Files may be plain, gzip,
//! xz or deflate (`.df`), or a zip of the whole directory. Sources are grouped by their folders; the files of a folder are
//! read in order of their names.
//!
//! | record (by the last part of its class name) | event |
//! |---|---|
//! | `OperationExecutionRecord` (`operation, session, trace, tin, tout, host, eoi, ess`; before Kieker 1.3 with an experiment id in front, and operations without parameters) | [`Kind::Execution`] |
//! | `TraceMetadata`, `ApplicationTraceMetadata`, `Trace` | [`Kind::Begin`] |
//! | `BeforeReceivedRemoteEvent` | [`Kind::Begin`] of a call path that another waits for |
//! | `Before…Event` of operations and constructors, all object and interface variants | [`Kind::Entry`] |
//! | `After…Event`, `After…FailedEvent` of the same | [`Kind::Exit`] |
//! | `CallOperation…Event`, `CallConstructor…Event` | [`Kind::Call`] without a return |
//! | `KiekerMetadataRecord` | none: the unit of the times, and the host where no other record says it |
//! | anything else | none: counted by type |
//!
//! The context of an event is its trace, the ordering key its order index. A log may hold an execution twice, as an execution and
//! as operation events, in traces with other ids: [`Records::Auto`] then takes the events, as these have an order also where
//! clocks are coarse, and counts the executions ([`twice`]). The class of an event (which may be a subclass) is the component;
//! of an execution, that of its signature. Of events without a class (Kieker 1.4) the signature names it, with the parameters: else the
//! record was cut off, and is a bad row.

mod archive;
mod records;
mod signature;
mod twice;

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Cursor, Read},
};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use super::call_path::{BadRow, ReadError, Sink, Texts};
use super::{BadRows, Source, StreamSource, call_path::TimeUnit, diagnostics::Diagnostics};
use crate::trace::lines::{next_line, without_mark};
use archive::Part;
use records::{RecordType, Records as RecordParser};

/// Which records are read of a log that has both executions and operation events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Records {
    /// All; of what is recorded in both forms the events.
    #[default]
    Auto,
    /// Operation events only.
    Events,
    /// Executions only.
    Executions,
    /// All: what is recorded in both forms is then counted twice.
    Both,
}

/// How logs are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is done with a record that cannot be read.
    pub bad_rows: BadRows,
    /// Most bytes that one file may have after decompression.
    pub limit_bytes: u64,
    /// Most memory that decompression may use, bytes.
    pub limit_memory_bytes: u64,
    /// Which records are read.
    pub records: Records,
    /// The unit of times; by default what `KiekerMetadataRecord` says, else nanoseconds.
    pub time_unit: Option<TimeUnit>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bad_rows: BadRows::Count, limit_bytes: 1 << 32, limit_memory_bytes: 128 << 20, records: Records::Auto, time_unit: None }
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Records, good or bad, known or not.
    pub n_records: u64,
    /// Events handed to the sink.
    pub n_events: u64,
    /// Records of each class, by its name.
    pub records_by_type: IndexMap<String, u64>,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Most classes of records that are counted apart.
const MOST_TYPES: usize = 4096;

impl ReadReport {
    fn count(&mut self, class: &str, n: u64) {
        let known = self.records_by_type.contains_key(class) || self.records_by_type.len() < MOST_TYPES;
        *self.records_by_type.entry(if known { class } else { "(other)" }.to_owned()).or_insert(0) += n;
    }
}

const EXPECTED: &str = "Kieker records `$ID;…` and a kieker.map";

/// Reads Kieker logs into `sink`: the files of one or several log directories, archives among them.
///
/// # Errors
/// [`ReadError`]: a file that cannot be decompressed or is too long, no records at all; with [`BadRows::Reject`] also the
/// first bad or unknown record. Events before the error have been handed over.
pub fn read(sources: &[Source<'_>], options: &ReadOptions, texts: &mut Texts, sink: &mut Sink<'_>) -> Result<ReadReport, ReadError> {
    read_streams(sources.iter().map(Source::stream).collect(), options, texts, sink)
}

/// How many logs files of these names are: those of one folder are one, an archive is one of its own.
pub fn n_logs<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    let log = |name: &'n str| if archive::is_of_log(name) { archive::folder(name) } else { name };
    names.map(log).collect::<BTreeSet<&str>>().len()
}

/// As [`read`], of streams: zips and maps are held whole, of all else a row at a time. The files of a log directory are read
/// in order of their names, each directory by the map in it.
///
/// # Errors
/// As of [`read`].
pub fn read_streams(
    sources: Vec<StreamSource<'_>>,
    options: &ReadOptions,
    texts: &mut Texts,
    sink: &mut Sink<'_>,
) -> Result<ReadReport, ReadError> {
    let mut held = Vec::new();
    let mut streams = Vec::new();
    for StreamSource { name, mut reader } in sources {
        let mut first = Vec::new();
        if !archive::is_of_log(&name) {
            let looked = reader.by_ref().take(archive::ZIP_MAGIC.len() as u64).read_to_end(&mut first);
            looked.map_err(|error| unreadable(&name, error))?;
        }
        let is_zip = first == archive::ZIP_MAGIC;
        let reader: Box<dyn Read + Send> = Box::new(Cursor::new(first).chain(reader));
        if is_zip || archive::is_map(&name) {
            let mut bytes = Vec::new();
            reader.take(options.limit_bytes).read_to_end(&mut bytes).map_err(|error| unreadable(&name, error))?;
            held.push((name, bytes));
        } else {
            streams.push(StreamSource { name, reader });
        }
    }
    let held: Vec<Source<'_>> = held.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let mut report = ReadReport::default();
    let mut folders: IndexMap<String, Vec<Part<'_>>> = IndexMap::new();
    for source in &held {
        for part in archive::parts(source).map_err(|error| unreadable(source.name, error))? {
            folders.entry(part.folder().to_owned()).or_default().push(part);
        }
    }
    let types = map_types(&folders, options, &mut report.diagnostics)?;
    let types_of = |folder: &str| types.get(folder).or_else(|| types.first().map(|(_, types)| types).filter(|_| types.len() == 1)).cloned();
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    let first = streams.first().map(|s| s.name.clone()).or_else(|| held.first().map(|s| s.name.to_owned()));
    let mut of_folder: Option<(String, RecordParser<'_>)> = None;
    for StreamSource { name, reader } in streams {
        let folder = archive::folder(&name).to_owned();
        let (_, records) = match of_folder.take().filter(|(known, _)| *known == folder) {
            Some(known) => of_folder.insert(known),
            None => {
                let records = RecordParser::new(types_of(&folder).unwrap_or_default(), options);
                of_folder.insert((folder, records))
            }
        };
        records.read(&name, archive::open_plain(&name, reader, options), texts, sink, &mut report)?;
    }
    for (folder, mut parts) in folders {
        parts.retain(|part| !part.is_map());
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut records = RecordParser::new(types_of(&folder).unwrap_or_default(), options);
        for part in &parts {
            records.read(&part.name, part.open(options), texts, sink, &mut report)?;
        }
    }
    match first {
        Some(first) if report.n_records == 0 => Err(ReadError::Empty { log: first, expected: EXPECTED }),
        _ => Ok(report),
    }
}

fn unreadable(log: &str, source: io::Error) -> ReadError {
    ReadError::Unreadable { log: log.to_owned(), source }
}

/// `$ID` → type of record.
type Types = super::hashed::IndexMap<String, RecordType>;

/// The types of records that each folder's `kieker.map` names.
fn map_types(
    folders: &IndexMap<String, Vec<Part<'_>>>,
    options: &ReadOptions,
    diagnostics: &mut Diagnostics,
) -> Result<IndexMap<String, Types>, ReadError> {
    let mut found = IndexMap::new();
    for (folder, parts) in folders {
        for part in parts.iter().filter(|part| part.is_map()) {
            let mut stream = part.open(options);
            let types: &mut Types = found.entry(folder.clone()).or_default();
            read_map(&part.name, &mut stream, options, types, diagnostics)?;
        }
    }
    Ok(found)
}

fn read_map(
    log: &str,
    stream: &mut dyn BufRead,
    options: &ReadOptions,
    types: &mut Types,
    diagnostics: &mut Diagnostics,
) -> Result<(), ReadError> {
    let mut line = Vec::new();
    for number in 1.. {
        if !next_line(stream, &mut line, number).map_err(|error| unreadable(log, error))? {
            break;
        }
        let text = if number == 1 { without_mark(&line) } else { &line };
        let text = String::from_utf8_lossy(text.trim_ascii());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // Besides classes, a map may hold texts that records name by numbers without `$`.
        match text.split_once('=') {
            Some((id, class)) => _ = types.insert(id.trim().to_owned(), RecordType::of_class(class.trim())),
            None => {
                let bad = BadRow {
                    log: log.to_owned(),
                    line: number,
                    field: "row".to_owned(),
                    found: super::call_path::quoted(&text),
                    expected: "$ID=CLASS".to_owned(),
                };
                if options.bad_rows == BadRows::Reject {
                    return Err(bad.into());
                }
                diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
            }
        }
    }
    Ok(())
}
