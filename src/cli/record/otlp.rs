//! Spans as OpenTelemetry JSON: one `ExportTraceServiceRequest` a line, as the collector's file exporter writes; one a trace.
//!
//! A resource has `service.name`, `service.instance.id` and `host.name`. Client and producer spans name the service called in
//! `peer.service`; producers and consumers the destination in `messaging.destination.name`, their entry.

use std::io::{self, Write};

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::spans::{SpanForm, WrittenResource, WrittenSpan};
use crate::trace::span::SpanKind;

/// Writes OpenTelemetry JSON lines.
pub struct Otlp<W> {
    out: W,
}

impl<W: Write> Otlp<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Numbers of kinds in the protocol.
fn kind(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Unspecified => 0,
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn span(span: &WrittenSpan, tracestate: Option<&str>) -> Value {
    let mut attributes: Vec<Value> = span.peer.iter().map(|peer| attribute("peer.service", peer)).collect();
    if matches!(span.kind, SpanKind::Producer | SpanKind::Consumer) {
        attributes.push(attribute("messaging.system", "queue"));
        attributes.push(attribute("messaging.destination.name", &span.name));
    }
    let mut value = json!({
        "traceId": format!("{:032x}", span.trace.0),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": kind(span.kind),
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes,
        "status": {},
    });
    if let Some(parent) = span.parent {
        value["parentSpanId"] = json!(parent.to_string());
    }
    if let Some(tracestate) = tracestate {
        value["traceState"] = json!(tracestate);
    }
    if let Some((trace, id)) = span.link {
        value["links"] = json!([{"traceId": format!("{:032x}", trace.0), "spanId": id.to_string()}]);
    }
    value
}

impl<W: Write> SpanForm for Otlp<W> {
    fn trace(&mut self, spans: &[WrittenSpan], tracestate: Option<&str>) -> io::Result<()> {
        let mut resources: IndexMap<&WrittenResource, Vec<Value>> = IndexMap::new();
        for written in spans {
            resources.entry(&written.resource).or_default().push(span(written, tracestate));
        }
        let resource = |(resource, spans): (&WrittenResource, Vec<Value>)| {
            let attributes = [
                attribute("service.name", &resource.service),
                attribute("service.instance.id", &resource.instance),
                attribute("host.name", &resource.host),
            ];
            json!({"resource": {"attributes": attributes}, "scopeSpans": [{"scope": {"name": "layerfit"}, "spans": spans}]})
        };
        let request = json!({"resourceSpans": resources.into_iter().map(resource).collect::<Vec<_>>()});
        serde_json::to_writer(&mut self.out, &request)?;
        self.out.write_all(b"\n")
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
