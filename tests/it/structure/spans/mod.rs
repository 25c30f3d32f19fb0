//! Spans to layers: each rule of the extraction from spans, shown on spans built here.

mod changes;
mod clocks;
mod exact;
mod forks;
mod hostile;
mod load;
mod lost;
mod names;
mod one_way;
mod outcomes;
mod paced;
mod pairs;
mod phases;
mod queues;
mod report;
mod stream;
mod timeless;
mod vectors;

use std::collections::HashMap;

use layerfit::{
    structure::{
        Demands, ExtractOptions, Extraction, MergeKey,
        interactions::{Hints, InteractionKind, Interactions},
        spans::{Quality, SpanOptions, Spans},
        to_model,
    },
    trace::span::{Attribute, Link, Resource, Span, SpanId, SpanKind, SpanStatus, SpanTexts, TraceId},
};

pub const MS: i64 = 1_000_000;

/// Spans under construction; times are in milliseconds and a few nanoseconds, so that the clock's resolution is 1 ns.
#[derive(Clone, Default)]
pub struct Build {
    pub texts: SpanTexts,
    pub spans: Vec<Span>,
}

/// A span that can be refined.
pub struct Made<'b> {
    build: &'b mut Build,
}

impl Build {
    /// A span of trace 1: id, parent (0 for none), service, name, kind, start and end in milliseconds.
    pub fn span(&mut self, ids: (u64, u64), service: &str, name: &str, kind: SpanKind, times: (f64, f64)) -> Made<'_> {
        let service = self.texts.text(service);
        let resource = self.texts.resource_number(Resource { service: Some(service), ..Resource::default() });
        let name = self.texts.text(name);
        let ns = |ms: f64| (ms * MS as f64) as i64 + 1;
        self.spans.push(Span {
            trace: TraceId(1),
            id: SpanId(ids.0),
            parent: (ids.1 > 0).then_some(SpanId(ids.1)),
            resource,
            name,
            kind,
            start_ns: ns(times.0),
            duration_ns: Some(ns(times.1) - ns(times.0)),
            ..Span::default()
        });
        Made { build: self }
    }

    pub fn server(&mut self, ids: (u64, u64), service: &str, name: &str, times: (f64, f64)) -> Made<'_> {
        self.span(ids, service, name, SpanKind::Server, times)
    }

    pub fn client(&mut self, ids: (u64, u64), service: &str, name: &str, times: (f64, f64)) -> Made<'_> {
        self.span(ids, service, name, SpanKind::Client, times)
    }

    /// A request with both halves: ids `id` (client) and `id + 1` (server), the server within the client by `margin` each side.
    pub fn request(&mut self, ids: (u64, u64), from: &str, to: &str, name: &str, times: (f64, f64), margin: f64) -> &mut Self {
        self.client(ids, from, name, times);
        self.server((ids.0 + 1, ids.0), to, name, (times.0 + margin, times.1 - margin));
        self
    }

    /// The same spans again as another trace, later by `shift_ms`.
    pub fn repeat(&mut self, trace: u128, shift_ms: f64) -> &mut Self {
        let again: Vec<Span> = self.spans.iter().filter(|s| s.trace == TraceId(1)).cloned().collect();
        self.spans.extend(again.into_iter().map(|mut span| {
            span.trace = TraceId(trace);
            span.start_ns += (shift_ms * MS as f64) as i64;
            span.links.iter_mut().for_each(|link| link.trace = TraceId(trace));
            span
        }));
        self
    }

    pub fn run(&self) -> Run {
        self.run_with(&SpanOptions::default())
    }

    pub fn run_with(&self, options: &SpanOptions) -> Run {
        options.check().unwrap();
        let mut spans = Spans::new(options.clone());
        let mut all = Interactions::default();

        let mut sink = |batch: Interactions| {
            check_batch(&batch);
            all.merge(batch);
        };
        for span in &self.spans {
            spans.feed(span, &self.texts, &mut sink);
        }
        let outcome = spans.finish(&mut sink);
        let quality = outcome.quality;
        assert_eq!(quality.spans.read, quality.spans.used + quality.n_set_aside(), "every span is accounted for");
        Run { interactions: all, quality, hints: outcome.hints }
    }
}

/// A batch is a forest: targets come after requesters, each requested once, within its trace.
pub fn check_batch(batch: &Interactions) {
    let mut requested = vec![0; batch.occurrences.len()];
    for interaction in &batch.interactions {
        assert!(interaction.from < interaction.to && interaction.via.is_empty());
        assert_eq!(batch.occurrences[interaction.from].trace, batch.occurrences[interaction.to].trace);
        assert_eq!(interaction.times.len(), if interaction.kind == InteractionKind::Async { 1 } else { 2 });
        assert!((1..=2).contains(&interaction.phase));
        requested[interaction.to] += 1;
    }
    for (occurrence, n) in batch.occurrences.iter().zip(requested) {
        assert_eq!(n, usize::from(!occurrence.originator));
        assert!((occurrence.trace as usize) < batch.traces.len());
        assert!(occurrence.self_time_ticks.iter().flatten().all(|ticks| ticks.is_finite() && *ticks >= 0.0), "{occurrence:?}");
    }
}

impl Made<'_> {
    fn last(&mut self) -> &mut Span {
        self.build.spans.last_mut().unwrap()
    }

    pub fn trace(mut self, trace: u128) -> Self {
        self.last().trace = TraceId(trace);
        self
    }

    pub fn shared(mut self) -> Self {
        self.last().shared = true;
        self
    }

    pub fn status(mut self, status: SpanStatus) -> Self {
        self.last().status = status;
        self
    }

    pub fn weight(mut self, weight: f64) -> Self {
        self.last().adjusted_count = Some(weight);
        self
    }

    pub fn unfinished(mut self) -> Self {
        self.last().duration_ns = None;
        self
    }

    pub fn with(mut self, attribute: Attribute, text: &str) -> Self {
        let text = self.build.texts.text(text);
        self.last().attributes.push((attribute, text));
        self
    }

    pub fn link(mut self, trace: u128, span: u64) -> Self {
        self.last().links.push(Link { trace: TraceId(trace), span: SpanId(span) });
        self
    }

    pub fn on(mut self, host: &str, instance: &str) -> Self {
        let (host, instance) = (Some(self.build.texts.text(host)), Some(self.build.texts.text(instance)));
        let known = self.build.texts.resource(self.build.spans.last().unwrap().resource).unwrap().clone();
        let resource = self.build.texts.resource_number(Resource { host, instance, ..known });
        self.last().resource = resource;
        self
    }
}

/// What became of spans.
pub struct Run {
    pub interactions: Interactions,
    pub quality: Quality,
    pub hints: Hints,
}

impl Run {
    fn full_name(&self, occurrence: usize) -> String {
        let (all, occurrence) = (&self.interactions, &self.interactions.occurrences[occurrence]);
        let task = all.units.processes.name(all.units.process_of[occurrence.unit as usize]);
        occurrence.operation.map_or_else(|| task.to_owned(), |operation| format!("{task}.{}", all.operations.name(operation)))
    }

    /// Interactions in a short form, sorted: `A.get sync B.read`; `/2` marks a second phase, `[fork:branch]` a fork.
    pub fn calls(&self) -> Vec<String> {
        let kind = |kind| if kind == InteractionKind::Sync { "sync" } else { "async" };
        let phase = |phase| if phase == 2 { "/2" } else { "" };
        let mut calls: Vec<String> = self
            .interactions
            .interactions
            .iter()
            .map(|i| {
                let branch = i.branch.map_or_else(String::new, |b| format!(" [{}:{}]", b.fork, b.branch));
                format!("{} {}{} {}{branch}", self.full_name(i.from), kind(i.kind), phase(i.phase), self.full_name(i.to))
            })
            .collect();
        calls.sort();
        calls
    }

    /// Checks the calls, in any order.
    pub fn check(&self, expected: &[&str]) -> &Self {
        let mut expected: Vec<String> = expected.iter().map(|call| (*call).to_owned()).collect();
        expected.sort();
        assert_eq!(self.calls(), expected);
        self
    }

    /// Self times in milliseconds of the first occurrence of `TASK.ENTRY`, by phase.
    pub fn self_ms(&self, name: &str) -> [Option<f64>; 2] {
        let found = (0..self.interactions.occurrences.len()).find(|o| self.full_name(*o) == name);
        let occurrence = &self.interactions.occurrences[found.unwrap_or_else(|| panic!("no {name} in {:?}", self.calls()))];
        occurrence.self_time_ticks.map(|ticks| ticks.map(|t| (t / MS as f64 * 1e3).round() / 1e3))
    }

    /// How often a remark was made, or spans were set aside for a reason.
    pub fn count(&self, code: &str) -> u64 {
        let spans = &self.quality.spans;
        spans.set_aside.get(code).or_else(|| spans.remarks.get(code)).map_or(0, |reason| reason.count)
    }

    /// The model by operation, with mean calls as `A.get sync 1 B.read`.
    pub fn model(&self) -> Extraction {
        let options =
            ExtractOptions { merge: MergeKey::Operation, demands: Demands::SelfTimes, seconds_per_tick: 1e-9, ..ExtractOptions::default() };
        to_model("spans", self.interactions.clone(), &options).unwrap()
    }

    /// All that a result consists of, in an order that does not depend on that of batches.
    pub fn canonical(&self) -> (Vec<String>, Quality, Vec<String>) {
        let all = &self.interactions;
        let mut occurrences: Vec<String> = (0..all.occurrences.len())
            .map(|o| {
                let occurrence = &all.occurrences[o];
                format!("{} {} {:?}", all.traces[occurrence.trace as usize].name, self.full_name(o), occurrence.self_time_ticks)
            })
            .collect();
        occurrences.sort();
        let mut hints: Vec<String> = self.hints.processes.iter().map(|(name, hints)| format!("{name} {hints:?}")).collect();
        hints.sort();
        occurrences.extend(self.calls());
        (occurrences, self.quality.clone(), hints)
    }
}

/// A web shop of three layers, with a queue and a database: used where any trace will do.
pub fn shop() -> Build {
    let mut b = Build::default();
    b.server((1, 0), "web", "GET /cart", (0.0, 100.0)).on("h1", "web-1");
    b.client((2, 1), "web", "cart/Get", (10.0, 50.0)).on("h1", "web-1");
    b.server((3, 2), "cart", "cart/Get", (15.0, 45.0)).on("h2", "cart-1");
    b.client((4, 3), "cart", "SELECT", (20.0, 30.0)).on("h2", "cart-1").with(Attribute::DbSystem, "postgresql");
    b.span((5, 3), "cart", "publish", SpanKind::Producer, (40.0, 41.0)).on("h2", "cart-1");
    b.span((6, 5), "mail", "process", SpanKind::Consumer, (120.0, 140.0)).on("h3", "mail-1");
    b.span((7, 1), "web", "render", SpanKind::Internal, (60.0, 90.0)).on("h1", "web-1");
    b
}

/// Numbers of the calls of a model, by `FROM TO`.
pub fn mean_calls(extraction: &Extraction) -> HashMap<String, f64> {
    let mut means = HashMap::new();
    for entry in extraction.model.tasks.iter().flat_map(|task| &task.entries) {
        for call in entry.phases.iter().flat_map(|phase| &phase.activity.calls) {
            *means.entry(format!("{} {}", entry.name, call.dest)).or_insert(0.0) += call.mean.literal().unwrap();
        }
    }
    means
}
