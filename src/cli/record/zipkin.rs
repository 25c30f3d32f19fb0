//! Spans as Zipkin v2 JSON: one array of spans.
//!
//! Halves of a call have ids of their own (not shared); an internal span has no kind. The host is the tag `host.name`, the
//! instance `service.instance.id`. Links are not in the form: what handles a message in a linked trace begins a trace that
//! nothing joins to its sender's. Times are whole microseconds, and durations at least 1.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{
    jaeger::kind,
    spans::{SpanForm, WrittenSpan},
};
use crate::trace::span::SpanKind;

/// Writes a Zipkin document.
pub struct Zipkin<W> {
    out: W,
    n_spans: u64,
}

impl<W: Write> Zipkin<W> {
    /// Begins the document.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"[")?;
        Ok(Self { out, n_spans: 0 })
    }
}

fn span(span: &WrittenSpan, tracestate: Option<&str>) -> Value {
    let start_us = span.start_ns.div_euclid(1000);
    let mut tags = json!({"host.name": span.resource.host, "service.instance.id": span.resource.instance});
    if let Some(peer) = &span.peer {
        tags["peer.service"] = json!(peer);
    }
    if matches!(span.kind, SpanKind::Producer | SpanKind::Consumer) {
        tags["messaging.destination.name"] = json!(span.name);
    }
    if let Some(tracestate) = tracestate {
        tags["w3c.tracestate"] = json!(tracestate);
    }
    let mut value = json!({
        "traceId": format!("{:032x}", span.trace.0),
        "id": span.id.to_string(),
        "name": span.name,
        "timestamp": start_us,
        "duration": (span.end_ns.div_euclid(1000) - start_us).max(1),
        "localEndpoint": {"serviceName": span.resource.service},
        "tags": tags,
    });
    if let Some(parent) = span.parent {
        value["parentId"] = json!(parent.to_string());
    }
    if !matches!(span.kind, SpanKind::Internal | SpanKind::Unspecified) {
        value["kind"] = json!(kind(span.kind).to_uppercase());
    }
    value
}

impl<W: Write> SpanForm for Zipkin<W> {
    fn trace(&mut self, spans: &[WrittenSpan], tracestate: Option<&str>) -> io::Result<()> {
        for written in spans {
            if self.n_spans > 0 {
                self.out.write_all(b",\n")?;
            }
            self.n_spans += 1;
            serde_json::to_writer(&mut self.out, &span(written, tracestate))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"]\n")?;
        self.out.flush()
    }
}
