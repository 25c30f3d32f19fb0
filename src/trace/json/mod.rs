//! JSON as a stream: containers are walked without being held, single values are lent as slices to `serde_json`.
//!
//! In goes a stream of JSON documents (one, several one after another, or one a line), out come the values that a reader asks
//! for, each with its line and column. What a reader does not ask for is skipped by its brackets and quotes alone, in constant
//! memory and without recursion, so neither the length of a document nor its nesting matters.

mod scan;
mod value;

pub use scan::{LONGEST_VALUE_BYTES, Place, ScanError, Scanner};
pub use value::{Entries, OrNull, Scalar, Text};
