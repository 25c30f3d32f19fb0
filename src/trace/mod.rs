//! Traces: bytes → events, messages, spans, each with counted diagnostics; one file for each wire format.

pub mod diagnostics;
pub mod same;

use std::str::FromStr;

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
    /// The bytes, decompressed.
    pub bytes: &'a [u8],
}
