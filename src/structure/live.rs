//! A stream of spans that does not end: spans in, at any time the model of what has been seen.
//!
//! Traces are complete when the stream has gone on for a while after their last span ([`SpanOptions::idle_timeout_ns`]), or
//! when they are said to be ([`Live::end_traces`]); until then no more spans are held than the options allow. What is kept of
//! complete ones is a [`Summary`], and of the requests of users a [`UsageSummary`] with the sessions that are open.

use super::{
    ExtractOptions, Extraction, Technique, UsageFrom, model_of,
    observations::{Observations, Wanted},
    spans::{SpanOptions, Spans},
    summary::Summary,
    usage::UsageSummary,
    usage_model,
};
use crate::trace::span::{Span, SpanTexts};

/// Texts beyond which they are forgotten at the next occasion: names of requests change for ever.
const MOST_TEXTS: usize = 1 << 16;

/// Most spans held of a stream.
const MAX_OPEN_SPANS: usize = 200_000;

/// Most whole sessions kept as a sample of a stream, and most that are open.
const MAX_SESSIONS: usize = 2_000;
const MAX_OPEN_SESSIONS: usize = 20_000;

/// What has been seen of a stream.
#[derive(Clone, Debug)]
pub struct Live {
    options: ExtractOptions,
    texts: SpanTexts,
    spans: Spans,
    summary: Summary,
}

impl Live {
    /// Nothing so far.
    pub fn new(options: &ExtractOptions) -> Self {
        let spans = SpanOptions {
            // A stream is not to be seen as a whole: what is complete is used.
            hold_spans: 0,
            max_open_spans: options.spans.max_open_spans.min(MAX_OPEN_SPANS),
            ..options.spans.clone()
        };
        let options = options.resolved(Technique::Spans);
        let mut users = options.users_by_ticks();
        users.summary.max_sessions = users.summary.max_sessions.min(MAX_SESSIONS);
        users.sessions.max_open = users.sessions.max_open.min(MAX_OPEN_SESSIONS);
        let observations = Observations::new(&Wanted { profile: None, users: Some(users) });
        let spans = Spans::new(spans).observing(observations);
        Self { spans, summary: Summary::new(options.summary()), texts: SpanTexts::default(), options }
    }

    /// Takes a span whose texts `texts` holds.
    pub fn feed(&mut self, span: &Span, texts: &SpanTexts) {
        if self.texts.texts.len() > MOST_TEXTS {
            self.texts = SpanTexts::default();
            self.spans.forget_texts();
        }
        let span = self.texts.adopt(span, texts);
        let summary = &mut self.summary;
        self.spans.feed(&span, &self.texts, &mut |batch| {
            summary.absorb(&batch);
        });
    }

    /// Every trace is complete as it is.
    pub fn end_traces(&mut self) {
        let summary = &mut self.summary;
        self.spans.flush(&mut |batch| {
            summary.absorb(&batch);
        });
    }

    /// Interactions found so far.
    pub fn n_interactions(&self) -> u64 {
        self.summary.n_interactions()
    }

    /// The model of what has been seen, with its quality; `None` of nothing.
    pub fn extraction(&self) -> Option<Extraction> {
        if self.summary.n_interactions() == 0 {
            return None;
        }
        let mut summary = self.summary.clone();
        let quality = self.spans.quality();
        summary.hints.overlay(&self.spans.hints());
        summary.hints.overlay(&self.options.resources);
        summary.diagnostics.merge(quality.diagnostics());
        let sessions = if self.options.usage == UsageFrom::Sessions { self.sessions() } else { None };
        let usage = sessions.and_then(|sessions| usage_model(&sessions, &self.options, &mut summary.diagnostics));
        let extraction = model_of("received", summary, usage, &self.options).ok()?;
        Some(Extraction { quality: Some(Box::new(quality)), ..extraction })
    }

    /// The sessions of users in the traces that are complete, those still open as if they ended now.
    pub fn sessions(&self) -> Option<Box<UsageSummary>> {
        self.spans.observations().clone().finish().usage
    }
}
