//! Traces: bytes → events, messages, spans, each with counted diagnostics; one file for each wire format.

pub mod angio;
pub mod call_path;
mod csv_rows;
pub mod diagnostics;
pub mod event_trace;
pub mod hashed;
pub mod input;
pub mod jaeger;
mod json;
pub mod kieker;
mod lines;
pub mod names;
mod number;
pub mod otlp;
mod recent;
pub mod same;
pub mod span;
pub mod spans;
mod time;
pub mod units;
pub mod zipkin;

use std::{io::Read, str::FromStr};

use serde::{Deserialize, Serialize};

pub use time::Time;

/// A trace's wire format, by the name that the command line and HTTP use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Message log: CSV, or the columns of the SAME paper's Table 1.
    Same,
    /// Angio events: CSV or JSON lines.
    Angio,
    /// Events with thread and event indices: CSV or JSON lines.
    EventTrace,
    /// Entry and exit records: CSV or JSON lines.
    CallPath,
    /// Kieker's text logs.
    Kieker,
    /// OpenTelemetry's protocol: JSON or protobuf.
    Otlp,
    /// Jaeger's JSON.
    Jaeger,
    /// Zipkin's JSON.
    Zipkin,
    /// The format of spans that the first bytes show.
    Auto,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 9] =
        [Self::Same, Self::Angio, Self::EventTrace, Self::CallPath, Self::Kieker, Self::Otlp, Self::Jaeger, Self::Zipkin, Self::Auto];

    /// Its name on the command line and over HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Angio => "angio",
            Self::EventTrace => "event-trace",
            Self::CallPath => "call-path",
            Self::Kieker => "kieker",
            Self::Otlp => "otlp",
            Self::Jaeger => "jaeger",
            Self::Zipkin => "zipkin",
            Self::Auto => "auto",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A format's name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{name}\" is not a trace format that is read here: expected same, angio, event-trace, call-path, kieker, otlp, jaeger, zipkin or auto"
)]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// A source's name without folders, compression's ending and one further ending: `browse` of `logs/browse.log.gz`.
pub fn stem_of(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let plain = [".gz", ".zst", ".xz", ".zip"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    match plain.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => plain,
    }
}

/// A named piece of input: a file, or a request body.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Name for messages: a file name, or `request body`.
    pub name: &'a str,
    /// The bytes, plain or gzip.
    pub bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// See [`stem_of`].
    pub fn stem(&self) -> &'a str {
        stem_of(self.name)
    }
}

/// A named stream of input: read once, from its beginning.
pub struct StreamSource<'a> {
    /// Name for messages: a file name, or `request body`.
    pub name: String,
    /// The bytes, plain or compressed.
    pub reader: Box<dyn Read + Send + 'a>,
}

impl<'a> Source<'a> {
    /// The same as a stream.
    pub fn stream(&self) -> StreamSource<'a> {
        StreamSource { name: self.name.to_owned(), reader: Box::new(self.bytes) }
    }
}

impl std::fmt::Debug for StreamSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamSource").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What is done with a row that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadRows {
    /// It is skipped and counted, with the first examples.
    #[default]
    Count,
    /// It is an error, and nothing is extracted (strict mode).
    Reject,
}

/// How several sources belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourcesAre {
    /// Each source is a recording of its own, of the scenario that it is named after.
    #[default]
    Scenarios,
    /// The sources are parts of one recording, as from the nodes of a distributed system.
    Parts,
}
