//! Logs as streams, one after another or side by side.

use super::{ReadError, ReadOptions, Sink, StreamSource, Vocabulary, arrivals::Arrivals, recordings::Recordings};
use crate::trace::diagnostics::Diagnostics;

/// Reads message logs of any length, in memory bounded by [`super::Windows`] and the number of names.
#[derive(Debug)]
pub struct LogReader {
    arrivals: Arrivals,
    recordings: Recordings,
}

impl LogReader {
    /// Nothing so far.
    pub fn new(options: &ReadOptions) -> Self {
        Self { arrivals: Arrivals::new(options), recordings: Recordings::new(options) }
    }

    /// Reads sources to their ends: one after another, each with recordings of its own, or side by side by time where they
    /// are parts of one recording.
    ///
    /// # Errors
    /// [`ReadError`]: a source that is empty, cannot be decompressed, is too long or has an unusable header; with
    /// [`super::BadRows::Reject`] also the first bad row. What was read before the error has been handed over.
    pub fn read(&mut self, sources: Vec<StreamSource<'_>>, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let (arrivals, recordings) = self.parts();
        arrivals.read(sources, &mut |arrival| recordings.take(arrival, sink))
    }

    /// What reads, and what takes what arrives: in its order, on any thread.
    pub(crate) fn parts(&mut self) -> (&mut Arrivals, &mut Recordings) {
        (&mut self.arrivals, &mut self.recordings)
    }

    /// Hands over what was held back, and what was learnt: the names, and what was odd.
    pub fn finish(mut self, sink: &mut Sink<'_>) -> (Vocabulary, Diagnostics) {
        self.recordings.close_all(sink);
        let mut shared = self.recordings.shared;
        note_threads(&shared.vocabulary, &mut shared.diagnostics);
        (shared.vocabulary, shared.diagnostics)
    }
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
