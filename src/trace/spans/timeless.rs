//! Spans that do not say when they started.
//!
//! In go such spans as they are read; out come all of them once the source has ended, if none of its spans has a time, else
//! none: a span without start among spans with one is a fault of what recorded it, but a source without any time was stripped
//! of them, and parents, kinds and links still tell the structure.
//!
//! | the source's spans | a span without start |
//! |---|---|
//! | none has a start | is handed over at the end with start = end = 0, marked, and counted as `no_times` |
//! | some have one | is not used and counted as `span_without_start`; in strict mode the error that ends the reading |
//!
//! A span without an end is one that did not finish. OpenTelemetry and Jaeger write spans once they have ended, so that in strict mode it is an
//! error; Zipkin's spans may have none.

use super::{
    super::span::Span,
    intake::{Intake, MOST_HELD_SPANS, Place, Stop, abridged},
};

/// Places that are remembered of spans without start.
const PLACES_KEPT: usize = 5;

/// Spans without start that wait for the end of their source.
#[derive(Debug, Default)]
pub(super) struct Timeless {
    spans: Vec<Span>,
    /// Places of the first that were met since the last were counted, with their ids and names.
    met: Vec<(Place, String)>,
}

impl Intake<'_> {
    /// Remembers where a span stands that does not say when it started.
    pub(in crate::trace) fn met(&mut self, span: &Span, place: impl Into<Place>) {
        if span.is_timeless && self.timeless.met.len() < PLACES_KEPT {
            let name = self.named(span);
            self.timeless.met.push((place.into(), name));
        }
    }

    /// As [`Self::met`], of a format whose spans say when they end: in strict mode one that does not is an error.
    pub(in crate::trace) fn met_with_end(&mut self, span: &Span, place: impl Into<Place>) -> Result<(), Stop> {
        let place = place.into();
        if span.duration_ns.is_none() {
            self.strictly(place, || format!("{} does not say when it ended: expected an end", self.named(span)))?;
        }
        self.met(span, place);
        Ok(())
    }

    /// Ids and name.
    fn named(&self, span: &Span) -> String {
        format!("{}/{} \"{}\"", span.trace, span.id, abridged(self.text_of(span.name)))
    }

    /// Holds a span without start until the source ends, unless others have one.
    pub(super) fn hold_timeless(&mut self, span: Span) -> Result<(), Stop> {
        if self.n_spans > 0 {
            return self.refuse_without_start(1);
        }
        if self.timeless.spans.len() < MOST_HELD_SPANS {
            self.timeless.spans.push(span);
            return Ok(());
        }
        self.n_bad_spans += 1;
        let place = self.timeless.met.first().map_or(Place::Byte(0), |(place, _)| *place);
        let message = format!("more than {MOST_HELD_SPANS} spans without a start, the first of them here");
        self.bad_row("too_many_held", "spans without a start, more than are held until the source ends", place, &message)
    }

    /// Refuses the spans without start that are held, as others have one or have to.
    pub(in crate::trace) fn refuse_timeless(&mut self) -> Result<(), Stop> {
        if self.timeless.spans.is_empty() {
            return Ok(());
        }
        let n = std::mem::take(&mut self.timeless.spans).len() as u64;
        self.refuse_without_start(n)
    }

    fn refuse_without_start(&mut self, n: u64) -> Result<(), Stop> {
        self.n_bad_spans += n;
        let met = std::mem::take(&mut self.timeless.met);
        if let Some((place, name)) = met.first() {
            self.first_bad(|| format!("{place}: {name} does not say when it started"));
        }
        let (place, name) = met.first().map_or((Place::Byte(0), ""), |(place, name)| (*place, name.as_str()));
        self.strictly(place, || format!("{name} does not say when it started: expected a start, as other spans have"))?;
        let source = self.name();
        let examples = met.iter().map(|(place, name)| format!("{source}, {place}: {name}"));
        self.diagnostics.add_times("span_without_start", "a span that does not say when it started: not used", n, examples);
        Ok(())
    }

    /// Hands over the spans without start of a source that has ended without any other.
    pub(super) fn hand_over_timeless(&mut self) -> Result<(), Stop> {
        let spans = std::mem::take(&mut self.timeless.spans);
        let source = self.name();
        let example = |span: &Span| format!("{source}: {}", self.named(span));
        let examples: Vec<String> = spans.iter().take(PLACES_KEPT).map(example).collect();
        let what = "spans of a source in which nothing says when a span started or ended: used for the structure only";
        self.diagnostics.add_times("no_times", what, spans.len() as u64, examples);
        spans.into_iter().try_for_each(|span| self.pass_on(span))
    }
}
