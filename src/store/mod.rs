//! Storing: systems, traces, structures, models, trials, fits and jobs in one SQLite file; the only SQL there is.
//!
//! | file | is |
//! |---|---|
//! | `database` | opening the file, migrations, the two pools, errors |
//! | `id`, `time`, `page` | ids, timestamps, keyset pages |
//! | [`systems`] … [`jobs`] | one file for each aggregate: its row types and its SQL, as methods of [`Store`] |
//!
//! Inputs and results are immutable and name what they came from; work and its result are committed together, so that a
//! reader sees all of a thing or nothing of it.

mod database;
pub mod fits;
mod id;
pub mod jobs;
pub mod models;
mod page;
pub mod receptions;
pub mod structures;
pub mod systems;
mod time;
pub mod traces;
pub mod trials;

pub use database::{Store, StoreError, Usage};
pub use id::{FitId, JobId, MalformedId, ModelId, StructureId, SystemId, TraceId, TrialsId};
pub use page::{Page, PageRequest};
pub use time::Timestamp;

use sha2::{Digest, Sha256};

/// Hex SHA-256 of a client's input, by which equal inputs are recognised.
pub fn content_hash(content: &[u8]) -> String {
    let mut hash = ContentHash::default();
    hash.update(content);
    hash.hex()
}

/// The hash of an input that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct ContentHash(Sha256);

impl ContentHash {
    /// The next piece.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// Hex SHA-256 of all pieces.
    pub fn hex(self) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn content_hash_is_sha256_in_hex() {
        // FIPS 180-4 example: the digest of "abc".
        assert_eq!(super::content_hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
