//! From sources to summaries, by format and technique.
//!
//! Each source is read and worked on by one thread; what the threads found is merged in the order of the sources.

use super::{
    ExtractError, ExtractOptions,
    cores::on_all_cores,
    same,
    spans::Spans,
    summary::Summary,
};
use crate::trace::{
    Source, StreamSource,
    diagnostics::Diagnostics,
    same as same_log,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, read_spans},
};

/// What a technique found: sums over the interactions, and what it says beside them.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) summary: Summary,
    pub(super) quality: Option<serde_json::Value>,
    pub(super) findings: Option<serde_json::Value>,
}

/// What is read of the sources and summed up on one thread.
struct State<T> {
    technique: T,
    summary: Summary,
    diagnostics: Diagnostics,
}

/// Message logs, by SAME.
pub(super) fn same(sources: Vec<StreamSource<'_>>, options: &ExtractOptions) -> Result<Found, ExtractError> {
    let mut contents = Vec::with_capacity(sources.len());
    for mut source in sources {
        let mut bytes = Vec::new();
        source.reader.read_to_end(&mut bytes).map_err(|error| same_log::ReadError::Unreadable { log: source.name.clone(), source: error })?;
        contents.push((source.name, bytes));
    }
    let sources: Vec<Source<'_>> = contents.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let read =
        same_log::ReadOptions { bad_rows: options.bad_rows, sources_are: options.sources_are, limit_bytes: options.limit_bytes };
    let interactions = same::find_interactions(same_log::read(&sources, &read)?, options.timing, options.second_phase);
    Ok(Found { summary: Summary::of(&interactions, options.summary()), quality: None, findings: None })
}

/// Spans of any format.
pub(super) fn spans(sources: Vec<StreamSource<'_>>, format: SpanFormat, options: &ExtractOptions) -> Result<Found, ExtractError> {
    let read = SpanReadOptions { bad_rows: options.bad_rows, limit_bytes: options.limit_bytes };
    let work = |_, source: StreamSource<'_>| {
        let mut state = State {
            technique: Spans::new(options.spans.clone()),
            summary: Summary::new(options.summary()),
            diagnostics: Diagnostics::default(),
        };
        let State { technique, summary, diagnostics } = &mut state;
        let mut sink = |span, texts: &mut SpanTexts| {
            technique.feed(&span, texts, &mut |batch| drop(summary.absorb(&batch)));
            std::ops::ControlFlow::Continue(())
        };
        read_spans(&source.name, source.reader, format, &read, &mut SpanTexts::default(), diagnostics, &mut sink)?;
        state.technique.forget_texts();
        Ok::<_, ExtractError>(state)
    };
    let merged = on_all_cores(sources, options.n_threads(), work, |state, later: State<Spans>| {
        state.technique.merge(later.technique);
        state.summary.merge(later.summary);
        state.diagnostics.merge(later.diagnostics);
    })?;
    let Some(State { technique, mut summary, diagnostics }) = merged else { return Err(ExtractError::NoSources) };
    let outcome = technique.finish(&mut |batch| drop(summary.absorb(&batch)));
    summary.hints.overlay(&outcome.hints);
    summary.diagnostics.merge(diagnostics);
    summary.diagnostics.merge(outcome.quality.diagnostics());
    Ok(Found { summary, quality: serde_json::to_value(outcome.quality).ok(), findings: None })
}
