//! The steps of one source on threads of their own.
//!
//! Where there are fewer sources than cores, reading, finding interactions and summing them up go on at the same time, batch by
//! batch. What is read is collected to whole requests, or put in order, beside the analysis; angio events, of which that takes
//! little, beside the reading. Every step takes its batches in the order in which they were made, so that what is found is the same as
//! on one thread.

use std::{sync::mpsc::sync_channel, thread};

use super::{ExtractOptions, interactions::Interactions, summary::Summary};
use crate::trace::span::{NewTexts, Span, SpanTexts};

/// Batches that may wait between two steps: they are held in memory.
const WAITING: usize = 2;
/// Spans of a batch.
const SPANS: usize = 512;

/// Events that are handed on together.
const EVENTS: usize = 4096;

/// Whether there are threads enough for the steps of each source: two, the third step of spans having little to do.
pub(super) fn has_steps(n_sources: usize, options: &ExtractOptions) -> bool {
    options.n_threads() >= 2 * n_sources
}

/// Spans, and what their texts add to those of the batches before.
#[derive(Debug)]
pub(super) struct SpanBatch {
    /// In the order of the input.
    pub(super) spans: Vec<Span>,
    /// To be added before they are looked at.
    pub(super) texts: NewTexts,
}

/// Spans that are being read, until there are enough for a batch.
#[derive(Debug, Default)]
pub(super) struct SpanBatches {
    spans: Vec<Span>,
    n_sent: (usize, usize),
}

impl SpanBatches {
    /// Adds a span of `texts`; sends a batch when it is full.
    pub(super) fn add(&mut self, span: Span, texts: &SpanTexts, send: &mut dyn FnMut(SpanBatch)) {
        self.spans.push(span);
        if self.spans.len() >= SPANS {
            self.send(texts, send);
        }
    }

    /// Sends what there is.
    pub(super) fn send(&mut self, texts: &SpanTexts, send: &mut dyn FnMut(SpanBatch)) {
        let new = texts.since(self.n_sent);
        self.n_sent = texts.n_held();
        let spans = std::mem::replace(&mut self.spans, Vec::with_capacity(SPANS));
        send(SpanBatch { spans, texts: new });
    }
}

/// Makes batches on a thread of its own, and takes them on this one, in their order. If `take` panics, what is made after that is
/// dropped.
pub(super) fn in_steps<B: Send, R: Send>(make: impl FnOnce(&mut dyn FnMut(B)) -> R + Send, take: impl FnMut(B)) -> R {
    let (sender, receiver) = sync_channel(WAITING);
    thread::scope(|scope| {
        let maker = scope.spawn(move || make(&mut |batch| drop(sender.send(batch))));
        receiver.into_iter().for_each(take);
        maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What is handed on from the reading of a trace.
pub(super) trait Whole: Send {
    /// How many events it holds.
    fn n_events(&self) -> usize {
        1
    }
}

/// Hands what `read` makes of a trace to `take`, in its order; `apart`: to `take` on this thread, while `read` runs on one of its own.
pub(super) fn taken<W: Whole, R: Send>(apart: bool, read: impl FnOnce(&mut dyn FnMut(W)) -> R + Send, mut take: impl FnMut(W)) -> R {
    if !apart {
        return read(&mut take);
    }
    let make = |send: &mut dyn FnMut(Vec<W>)| {
        let (mut batch, mut n_held) = (Vec::new(), 0);
        let outcome = read(&mut |whole: W| {
            n_held += whole.n_events();
            batch.push(whole);
            if n_held >= EVENTS {
                n_held = 0;
                let room = batch.len();
                send(std::mem::replace(&mut batch, Vec::with_capacity(room)));
            }
        });
        send(batch);
        outcome
    };
    in_steps(make, |batch: Vec<W>| batch.into_iter().for_each(&mut take))
}

/// Sums up the interactions that `find` hands over; `apart`: on this thread, while `find` runs on one of its own.
pub(super) fn summed<R: Send>(apart: bool, summary: &mut Summary, find: impl FnOnce(&mut dyn FnMut(Interactions)) -> R + Send) -> R {
    let mut sum = |batch: Interactions| drop(summary.absorb(&batch));
    if apart { in_steps(find, sum) } else { find(&mut sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_taken_in_their_order() {
        let mut taken = Vec::new();
        let made = in_steps(
            |send| {
                (0..1000).for_each(&mut *send);
                "all"
            },
            |batch| taken.push(batch),
        );
        assert_eq!(made, "all");
        assert!(taken.into_iter().eq(0..1000));
    }

    #[test]
    fn a_panic_of_either_step_is_the_callers() {
        let making = || in_steps(|_: &mut dyn FnMut(u8)| panic!("in making"), |_| ());
        assert!(std::panic::catch_unwind(making).is_err());
        let taking = || in_steps(|send| (0..1000).for_each(send), |batch| assert!(batch < 3, "in taking"));
        assert!(std::panic::catch_unwind(taking).is_err());
    }

    /// All are taken in their order, whatever they hold.
    #[test]
    fn what_is_read_is_taken_in_its_order() {
        struct Numbered(usize);
        impl Whole for Numbered {
            fn n_events(&self) -> usize {
                if self.0.is_multiple_of(7) { 2 * EVENTS } else { self.0 }
            }
        }
        for apart in [false, true] {
            let mut taken = Vec::new();
            let read = |out: &mut dyn FnMut(Numbered)| {
                (0..1000).for_each(|n| out(Numbered(n)));
                "all"
            };
            assert_eq!(super::taken(apart, read, |whole| taken.push(whole.0)), "all");
            assert!(taken.into_iter().eq(0..1000), "apart: {apart}");
        }
    }

    #[test]
    fn texts_of_batches_have_the_same_numbers() {
        let (mut here, mut there) = (SpanTexts::default(), SpanTexts::default());
        let mut batches = SpanBatches::default();
        let mut n_spans = 0;
        let mut take = |batch: SpanBatch| {
            there.add(batch.texts);
            n_spans += batch.spans.len();
        };
        for i in 0..2 * SPANS + 7 {
            let resource = crate::trace::span::Resource { service: Some(here.text(&format!("service {}", i % 5))), ..Default::default() };
            let span = Span { name: here.text(&format!("name {}", i / 2)), resource: here.resource_number(resource), ..Span::default() };
            batches.add(span, &here, &mut take);
        }
        batches.send(&here, &mut take);
        assert_eq!(n_spans, 2 * SPANS + 7);
        assert_eq!(there.texts, here.texts);
        assert!((0..6).all(|number| there.resource(number) == here.resource(number)));
    }
}
