//! Spans as Jaeger JSON: `{"data": [trace, …]}` as its UI exports and its query service answers.
//!
//! A process is a service with the tags `hostname` and `instance`. The kind is the tag `span.kind`. The parent is a
//! `CHILD_OF`, the link a `FOLLOWS_FROM` reference. Where spans were sampled, the tag `w3c.tracestate` says so. Times are
//! whole microseconds.

use std::io::{self, Write};

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use super::spans::{SpanForm, WrittenResource, WrittenSpan};
use crate::trace::span::SpanKind;

/// Writes a Jaeger document.
pub struct Jaeger<W> {
    out: W,
    n_traces: u64,
}

impl<W: Write> Jaeger<W> {
    /// Begins the document.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"data\":[")?;
        Ok(Self { out, n_traces: 0 })
    }
}

/// The value of the tag `span.kind`.
pub(super) fn kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Unspecified | SpanKind::Internal => "internal",
        SpanKind::Server => "server",
        SpanKind::Client => "client",
        SpanKind::Producer => "producer",
        SpanKind::Consumer => "consumer",
    }
}

fn tag(key: &str, value: &str) -> Value {
    json!({"key": key, "type": "string", "value": value})
}

fn span(span: &WrittenSpan, process: usize, tracestate: Option<&str>) -> Value {
    let trace = format!("{:032x}", span.trace.0);
    let mut references = Vec::new();
    references.extend(span.parent.map(|parent| json!({"refType": "CHILD_OF", "traceID": trace, "spanID": parent.to_string()})));
    let follows = span.link.filter(|(_, id)| Some(*id) != span.parent);
    references
        .extend(follows.map(|(t, id)| json!({"refType": "FOLLOWS_FROM", "traceID": format!("{:032x}", t.0), "spanID": id.to_string()})));
    let mut tags = vec![tag("span.kind", kind(span.kind))];
    tags.extend(span.peer.iter().map(|peer| tag("peer.service", peer)));
    if matches!(span.kind, SpanKind::Producer | SpanKind::Consumer) {
        tags.push(tag("messaging.destination.name", &span.name));
    }
    tags.extend(tracestate.map(|state| tag("w3c.tracestate", state)));
    let start_us = span.start_ns.div_euclid(1000);
    json!({
        "traceID": trace,
        "spanID": span.id.to_string(),
        "operationName": span.name,
        "references": references,
        "startTime": start_us,
        "duration": span.end_ns.div_euclid(1000) - start_us,
        "tags": tags,
        "logs": [],
        "processID": format!("p{}", process + 1),
        "warnings": null,
    })
}

impl<W: Write> SpanForm for Jaeger<W> {
    fn trace(&mut self, spans: &[WrittenSpan], tracestate: Option<&str>) -> io::Result<()> {
        if self.n_traces > 0 {
            self.out.write_all(b",\n")?;
        }
        self.n_traces += 1;
        let mut processes: IndexSet<&WrittenResource> = IndexSet::new();
        let written: Vec<Value> = spans.iter().map(|s| span(s, processes.insert_full(&s.resource).0, tracestate)).collect();
        let process = |(number, process): (usize, &&WrittenResource)| {
            let tags = [tag("hostname", &process.host), tag("instance", &process.instance)];
            (format!("p{}", number + 1), json!({"serviceName": process.service, "tags": tags}))
        };
        let processes: Map<String, Value> = processes.iter().enumerate().map(process).collect();
        let trace = spans.first().map_or(String::new(), |s| format!("{:032x}", s.trace.0));
        let data = json!({"traceID": trace, "spans": written, "processes": processes, "warnings": null});
        Ok(serde_json::to_writer(&mut self.out, &data)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"],\"total\":0,\"limit\":0,\"offset\":0,\"errors\":null}\n")?;
        self.out.flush()
    }
}
