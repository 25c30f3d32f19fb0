//! Traces: bytes → events, messages, spans, each with counted diagnostics; one file for each wire format.

pub mod call_path;
pub mod diagnostics;
pub mod input;
pub mod kieker;
pub mod names;
pub mod same;
pub mod span;
mod time;
pub mod units;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use time::Time;

/// A trace's wire format, by the name that the command line and HTTP use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Message log: CSV, or the columns of the SAME paper's Table 1.
    Same,
}

/// A format's name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is not a trace format that is read here: expected same")]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "same" => Ok(Self::Same),
            _ => Err(UnknownFormat { name: name.to_owned() }),
        }
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
    /// The name without folders, `.gz` and one further extension: `browse` of `logs/browse.log.gz`.
    pub fn stem(&self) -> &'a str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(self.name);
        let plain = file.strip_suffix(".gz").unwrap_or(file);
        match plain.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => plain,
        }
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
