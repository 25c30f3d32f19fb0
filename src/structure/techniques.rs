//! From sources to summaries, by format and technique.
//!
//! Each source is read and worked on by one thread; what the threads found is merged in the order of the sources. With twice
//! as many threads as sources and more, the steps of a source have threads of their own ([`steps`](super::steps)).

use std::ops::ControlFlow;

use super::{
    ExtractError, ExtractOptions,
    call_path::CallPaths,
    cores::on_all_cores,
    execution_graph::ExecutionGraphs,
    interactions::{Hints, Interactions},
    observations::{Observations, Observed, Wanted},
    same,
    spans::{Quality, Spans},
    steps::{SpanBatch, SpanBatches, has_steps, in_steps, summed, taken},
    summary::Summary,
    tlc::Tlc,
};
use crate::trace::{
    Format, StreamSource, angio, call_path,
    diagnostics::Diagnostics,
    event_trace, kieker,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, SpanSink, read_spans},
};

/// What a technique found: sums over the interactions, and what it says beside them.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) summary: Summary,
    pub(super) quality: Option<Box<Quality>>,
    pub(super) findings: Option<serde_json::Value>,
    pub(super) observed: Observed,
}

/// What is read of the sources and summed up on one thread.
struct State<T> {
    technique: T,
    summary: Summary,
    diagnostics: Diagnostics,
}

impl<T> State<T> {
    fn new(technique: T, options: &ExtractOptions) -> Self {
        Self { technique, summary: Summary::new(options.summary()), diagnostics: Diagnostics::default() }
    }

    /// Adds what another thread summed up after this one.
    fn add(&mut self, summary: Summary, diagnostics: Diagnostics) {
        self.summary.merge(summary);
        self.diagnostics.merge(diagnostics);
    }
}

/// Message logs, by SAME.
pub(super) fn same(sources: Vec<StreamSource<'_>>, options: &ExtractOptions) -> Result<Found, ExtractError> {
    let mut summary = Summary::new(options.summary());
    same::summarize(sources, options, &mut summary)?;
    Ok(Found { summary, ..Found::default() })
}

/// Angio traces, by TLC.
pub(super) fn tlc(sources: Vec<StreamSource<'_>>, options: &ExtractOptions) -> Result<Found, ExtractError> {
    let read = angio::ReadOptions { bad_rows: options.bad_rows, limit_bytes: options.limit_bytes };
    let (apart, is_only) = (has_steps(sources.len(), options), sources.len() == 1);
    let work = |_, source: StreamSource<'_>| {
        let mut state = State::new(Tlc::new(options.tlc.clone()), options);
        let State { technique, summary, diagnostics } = &mut state;
        let (collector, analysis) = technique.parts();
        let collect = |out: &mut dyn FnMut(_)| {
            let mut feed = |event: angio::AngioEvent<'_>| collector.feed(&event, out);
            let outcome = angio::read_angio(&source.name, source.reader, &read, diagnostics, &mut feed);
            if is_only {
                collector.complete_all(out);
            }
            outcome
        };
        summed(apart, summary, |hand_over| taken(apart, collect, |recording| analysis.take(recording, hand_over)))?;
        Ok::<_, ExtractError>(state)
    };
    let merged = on_all_cores(sources, options.n_threads(), work, |state, later: State<Tlc>| {
        let State { technique, summary, .. } = state;
        technique.merge(later.technique, &mut |batch| drop(summary.absorb(&batch)));
        state.add(later.summary, later.diagnostics);
    })?;
    let State { technique, mut summary, diagnostics } = merged.ok_or(ExtractError::NoSources)?;
    let report = summed(apart, &mut summary, |hand_over| technique.finish(hand_over));
    summary.diagnostics.merge(diagnostics);
    Ok(Found { summary, findings: serde_json::to_value(report).ok(), ..Found::default() })
}

/// Event traces, by execution graphs.
pub(super) fn execution_graphs(sources: Vec<StreamSource<'_>>, options: &ExtractOptions) -> Result<Found, ExtractError> {
    let read = event_trace::ReadOptions { bad_rows: options.bad_rows, limit_bytes: options.limit_bytes };
    let (apart, is_only) = (has_steps(sources.len(), options), sources.len() == 1);
    let work = |_, source: StreamSource<'_>| {
        let mut state = State::new(ExecutionGraphs::new(options.execution_graph.clone()), options);
        let State { technique, summary, diagnostics } = &mut state;
        let (intake, operations) = technique.parts();
        let read = |out: &mut dyn FnMut(_)| {
            let mut feed = |event: &event_trace::Event<'_>| intake.feed(event, out);
            event_trace::read_event_trace(&source.name, source.reader, &read, diagnostics, &mut feed)
        };
        summed(apart, summary, |hand_over| {
            let outcome = taken(apart, read, |met| operations.take(met, hand_over));
            if is_only {
                operations.complete_all(hand_over);
            }
            outcome
        })?;
        Ok::<_, ExtractError>(state)
    };
    let merged = on_all_cores(sources, options.n_threads(), work, |state, later: State<ExecutionGraphs>| {
        state.technique.merge(later.technique);
        state.add(later.summary, later.diagnostics);
    })?;
    let State { technique, mut summary, diagnostics } = merged.ok_or(ExtractError::NoSources)?;
    let report = technique.finish(&mut |batch| drop(summary.absorb(&batch)));
    summary.diagnostics.merge(diagnostics);
    if options.resources != Hints::default() {
        report.note_resources(&options.resources, &mut summary.diagnostics);
    }
    Ok(Found { summary, findings: serde_json::to_value(report).ok(), ..Found::default() })
}

/// Call-path records and Kieker logs, by call paths. The files of a Kieker log belong together and are read by one thread.
pub(super) fn call_paths(
    sources: Vec<StreamSource<'_>>,
    format: Format,
    options: &ExtractOptions,
    wanted: &Wanted,
) -> Result<Found, ExtractError> {
    let n_logs = if format == Format::Kieker { 1 } else { sources.len() };
    let (apart, is_only) = (has_steps(n_logs, options), n_logs == 1);
    let n_parts = match format {
        Format::Kieker => kieker::n_logs(sources.iter().map(|source| source.name.as_str())),
        _ => sources.len(),
    };
    let wanted = wanted.of_parts(n_parts);
    let work = |_, sources: Vec<StreamSource<'_>>| {
        let technique = CallPaths::new(options.call_path.clone().of_parts(n_parts))?.observing(Observations::new(&wanted));
        let mut state = State::new(technique, options);
        let State { technique, summary, diagnostics } = &mut state;
        let (intake, requests) = technique.parts();
        let read = |out: &mut dyn FnMut(_)| {
            let mut feed = |texts: &call_path::Texts, event: &call_path::Event<'_>| intake.feed(texts, event, out);
            read_call_paths(sources, format, options, &mut feed)
        };
        let found = summed(apart, summary, |hand_over| {
            let outcome = taken(apart, read, |met| requests.take(met, hand_over));
            if is_only {
                requests.complete_all(hand_over);
            }
            outcome
        })?;
        diagnostics.merge(found);
        Ok::<_, ExtractError>(state)
    };
    let logs = if format == Format::Kieker { vec![sources] } else { sources.into_iter().map(|source| vec![source]).collect() };
    let merged = on_all_cores(logs, options.n_threads(), work, |state, later: State<CallPaths>| {
        let State { technique, summary, .. } = state;
        technique.merge(later.technique, &mut |batch| drop(summary.absorb(&batch)));
        state.add(later.summary, later.diagnostics);
    })?;
    let State { technique, mut summary, diagnostics } = merged.ok_or(ExtractError::NoSources)?;
    let finished = summed(apart, &mut summary, |hand_over| technique.finish(hand_over));
    summary.hints.overlay(&finished.hints);
    summary.diagnostics.merge(diagnostics);
    summary.diagnostics.merge(finished.diagnostics);
    let observed = finished.observations.finish();
    Ok(Found { summary, findings: serde_json::to_value(finished.report).ok(), observed, ..Found::default() })
}

/// Reads call-path records, or a Kieker log.
fn read_call_paths(
    sources: Vec<StreamSource<'_>>,
    format: Format,
    options: &ExtractOptions,
    sink: &mut call_path::Sink<'_>,
) -> Result<Diagnostics, ExtractError> {
    let (bad_rows, limit_bytes, time_unit) = (options.bad_rows, options.limit_bytes, options.call_path.time_unit);
    let mut texts = call_path::Texts::default();
    if format == Format::Kieker {
        let read = kieker::ReadOptions { bad_rows, limit_bytes, time_unit, ..Default::default() };
        Ok(kieker::read_streams(sources, &read, &mut texts, sink)?.diagnostics)
    } else {
        let read = call_path::ReadOptions { bad_rows, limit_bytes, time_unit: time_unit.unwrap_or_default() };
        Ok(call_path::read_streams(sources, &read, &mut texts, sink)?.diagnostics)
    }
}

/// Feeds spans as they are read.
fn feed<R>(technique: &mut Spans, read: impl FnOnce(SpanSink<'_>, &mut SpanTexts) -> R, hand_over: &mut dyn FnMut(Interactions)) -> R {
    let mut sink = |span, texts: &mut SpanTexts| {
        technique.feed(&span, texts, hand_over);
        ControlFlow::Continue(())
    };
    read(&mut sink, &mut SpanTexts::default())
}

/// The same, while the next ones are read on a thread of its own.
fn feed_in_steps<R: Send>(
    technique: &mut Spans,
    read: impl FnOnce(SpanSink<'_>, &mut SpanTexts) -> R + Send,
    hand_over: &mut dyn FnMut(Interactions),
) -> R {
    let mut known = SpanTexts::default();
    let make = |send: &mut dyn FnMut(SpanBatch)| {
        let (mut batches, mut texts) = (SpanBatches::default(), SpanTexts::default());
        let mut sink = |span, texts: &mut SpanTexts| {
            batches.add(span, texts, send);
            ControlFlow::Continue(())
        };
        let outcome = read(&mut sink, &mut texts);
        batches.send(&texts, send);
        outcome
    };
    in_steps(make, |batch: SpanBatch| {
        known.add(batch.texts);
        batch.spans.iter().for_each(|span| technique.feed(span, &known, hand_over));
    })
}

/// Spans of any format.
pub(super) fn spans(
    sources: Vec<StreamSource<'_>>,
    format: SpanFormat,
    options: &ExtractOptions,
    wanted: &Wanted,
) -> Result<Found, ExtractError> {
    let read =
        SpanReadOptions { bad_rows: options.bad_rows, limit_bytes: options.limit_bytes, session_keys: options.spans.session_keys.clone() };
    let apart = has_steps(sources.len(), options);
    let wanted = wanted.of_parts(sources.len());
    let work = |_, source: StreamSource<'_>| {
        let mut state = State::new(Spans::new(options.spans.clone()).observing(Observations::new(&wanted)), options);
        let State { technique, summary, diagnostics } = &mut state;
        let read =
            |sink: SpanSink<'_>, texts: &mut SpanTexts| read_spans(&source.name, source.reader, format, &read, texts, diagnostics, sink);
        summed(
            apart,
            summary,
            |hand_over| if apart { feed_in_steps(technique, read, hand_over) } else { feed(technique, read, hand_over) },
        )?;
        state.technique.forget_texts();
        Ok::<_, ExtractError>(state)
    };
    let merged = on_all_cores(sources, options.n_threads(), work, |state, later: State<Spans>| {
        state.technique.merge(later.technique);
        state.add(later.summary, later.diagnostics);
        let State { technique, summary, .. } = state;
        technique.complete_merged(&mut |batch| drop(summary.absorb(&batch)));
    })?;
    let State { mut technique, mut summary, diagnostics } = merged.ok_or(ExtractError::NoSources)?;
    summed(apart, &mut summary, |hand_over| technique.flush(hand_over));
    let observed = technique.take_observations().finish();
    let outcome = technique.finish(&mut |batch| drop(summary.absorb(&batch)));
    summary.hints.overlay(&outcome.hints);
    summary.diagnostics.merge(diagnostics);
    summary.diagnostics.merge(outcome.quality.diagnostics());
    Ok(Found { summary, quality: Some(Box::new(outcome.quality)), findings: None, observed })
}
