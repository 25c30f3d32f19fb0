//! Logs as streams, one after another or side by side.

use std::collections::BTreeSet;

use super::{
    BadRow, BadRows, ReadError, ReadOptions, Sink, Source, SourcesAre, StreamSource, Vocabulary,
    recordings::{Label, Recordings},
    rows::Rows,
};
use crate::trace::{diagnostics::Diagnostics, names::Names};

/// Rows of one source; the place of a row is that of its source, times this, plus its number.
const MOST_ROWS: u64 = 1 << 44;

/// Reads message logs of any length, in memory bounded by [`super::Windows`] and the number of names.
#[derive(Debug)]
pub struct LogReader {
    options: ReadOptions,
    recordings: Recordings,
}

impl LogReader {
    /// Nothing so far.
    pub fn new(options: &ReadOptions) -> Self {
        Self { options: *options, recordings: Recordings::new(options) }
    }

    /// Reads sources to their ends: one after another, each with recordings of its own, or side by side by time where they
    /// are parts of one recording.
    ///
    /// # Errors
    /// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
    /// [`BadRows::Reject`] also the first bad row. What was read before the error has been handed over.
    pub fn read(&mut self, sources: Vec<StreamSource<'_>>, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let labels = labels(&names);
        match self.options.sources_are {
            SourcesAre::Parts => {
                let label = labels.into_iter().next().map(|label| Label { is_one_of_several: false, ..label });
                label.map_or(Ok(()), |label| self.read_parts(sources, &label, sink))
            }
            SourcesAre::Scenarios => {
                sources.into_iter().zip(&labels).try_for_each(|(source, label)| self.read_scenario(source, label, sink))
            }
        }
    }

    /// Reads source number `index` of those called `names`, as [`LogReader::read`] does.
    ///
    /// # Errors
    /// As of [`LogReader::read`].
    pub fn read_one(&mut self, source: StreamSource<'_>, names: &[&str], index: usize, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        match labels(names).get(index) {
            Some(label) => self.read_scenario(source, label, sink),
            None => Ok(()),
        }
    }

    /// Hands over what was held back, and what was learnt: the names, and what was odd.
    pub fn finish(mut self, sink: &mut Sink<'_>) -> (Vocabulary, Diagnostics) {
        self.recordings.close_all(sink);
        let mut shared = self.recordings.shared;
        note_threads(&shared.vocabulary, &mut shared.diagnostics);
        (shared.vocabulary, shared.diagnostics)
    }

    fn read_scenario(&mut self, source: StreamSource<'_>, label: &Label, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut rows = self.open(source)?;
        while rows.advance()? {
            self.take(&rows, label, rows.number(), sink)?;
        }
        self.recordings.close_all(sink);
        Ok(())
    }

    /// Of the rows that the sources have next, takes the earliest; of equal ones that of the first source.
    fn read_parts(&mut self, sources: Vec<StreamSource<'_>>, label: &Label, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut parts = Vec::with_capacity(sources.len());
        let mut next = BTreeSet::new();
        for (index, source) in sources.into_iter().enumerate() {
            let mut rows = self.open(source)?;
            if rows.advance()? {
                next.insert((rows.time(), index));
            }
            parts.push(rows);
        }
        while let Some((_, index)) = next.pop_first() {
            let rows = &mut parts[index];
            self.take(rows, label, index as u64 * MOST_ROWS + rows.number(), sink)?;
            if rows.advance()? {
                next.insert((rows.time(), index));
            }
        }
        self.recordings.close_all(sink);
        Ok(())
    }

    fn open<'s>(&mut self, source: StreamSource<'s>) -> Result<Rows<'s>, ReadError> {
        let rows = Rows::open(&source.name, source.reader, self.options.limit_bytes)?;
        for (column, error) in rows.unknown_columns() {
            if self.options.bad_rows == BadRows::Reject {
                return Err(error);
            }
            let text = "columns that are not known were ignored";
            self.recordings.shared.diagnostics.add("unknown_column", text, || format!("{}: {column}", source.name));
        }
        Ok(rows)
    }

    fn take(&mut self, rows: &Rows<'_>, label: &Label, place: u64, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        match rows.row() {
            Ok(row) => self.recordings.row(label, &row, place, sink),
            Err(bad) => self.bad_row(bad)?,
        }
        Ok(())
    }

    fn bad_row(&mut self, bad: BadRow) -> Result<(), BadRow> {
        if self.options.bad_rows == BadRows::Reject {
            return Err(bad);
        }
        self.recordings.shared.diagnostics.add("bad_row", "rows that cannot be read were skipped", || bad.to_string());
        Ok(())
    }
}

/// What the recordings of each source are called.
fn labels(names: &[&str]) -> Vec<Label> {
    let mut taken = Names::default();
    let label = |name: &&str| {
        let stem = Source { name, bytes: &[] }.stem();
        let mut unique = stem.to_owned();
        for n in 2.. {
            if taken.get(&unique).is_none() {
                break;
            }
            unique = format!("{stem}#{n}");
        }
        taken.intern(&unique);
        Label { stem: stem.to_owned(), unique, is_one_of_several: names.len() > 1 }
    };
    names.iter().map(label).collect()
}

/// Where some rows of a process name a thread, all should: a unit is to be sequential.
fn note_threads(vocabulary: &Vocabulary, diagnostics: &mut Diagnostics) {
    let units = &vocabulary.units;
    let mut has_threads = vec![false; units.processes.len()];
    for (name, process) in units.names.iter().zip(&units.process_of) {
        has_threads[*process as usize] |= name.len() > units.processes.name(*process).len();
    }
    for (name, process) in units.names.iter().zip(&units.process_of) {
        if has_threads[*process as usize] && name.len() == units.processes.name(*process).len() {
            let text = "some rows of a process name its thread and some do not: the latter were taken for a further thread";
            diagnostics.add("thread_missing", text, || name.to_owned());
        }
    }
}
