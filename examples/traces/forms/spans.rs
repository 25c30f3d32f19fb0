//! Spans in JSON: a server's span for each service on the way, and a client's for each call.

use std::io::{self, Write};

use super::{Asked, Parts, Request, requests};

/// A span to be written.
pub(super) struct Span {
    pub(super) id: usize,
    /// 0: none.
    pub(super) parent: usize,
    pub(super) is_server: bool,
    /// The service that made it, and the one that it is a request to.
    pub(super) of: u64,
    pub(super) to: u64,
    pub(super) start_us: u64,
    pub(super) end_us: u64,
}

impl Request {
    /// The spans of the service at place `at` of the path.
    pub(super) fn spans(&self, at: usize) -> impl Iterator<Item = Span> {
        let times_us = self.times_us(at);
        let of = self.path[at];
        let server = Span { id: 2 * at + 1, parent: 2 * at, is_server: true, of, to: of, start_us: times_us.0, end_us: times_us.1 };
        let client = self.path.get(at + 1).map(|to| {
            let times_us = self.times_us(at + 1);
            Span { id: 2 * at + 2, parent: 2 * at + 1, is_server: false, of, to: *to, start_us: times_us.0, end_us: times_us.1 }
        });
        std::iter::once(server).chain(client)
    }

    pub(super) fn n_spans(&self) -> u64 {
        2 * self.path.len() as u64 - 1
    }
}

/// One line a request, each service's spans under its resource.
pub(super) fn otlp(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    requests(asked, out, |out, request| {
        out.write_all(b"{\"resourceSpans\":[")?;
        for (at, service) in request.path.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(
                out,
                "{comma}{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s{service}\"}}}},\
                 {{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"h{}\"}}}}]}},\"scopeSpans\":[{{\"spans\":[",
                service % 10
            )?;
            for (index, span) in request.spans(at).enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let parent = if span.parent == 0 { String::new() } else { format!("\"parentSpanId\":\"{:016x}\",", span.parent) };
                write!(
                    out,
                    "{comma}{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\",{parent}\"name\":\"GET /s{to}/items\",\"kind\":{},\
                     \"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",\"attributes\":[{{\"key\":\"http.request.method\",\
                     \"value\":{{\"stringValue\":\"GET\"}}}},{{\"key\":\"http.route\",\"value\":{{\"stringValue\":\"/s{to}/items\"}}}}]}}",
                    request.number,
                    span.id,
                    if span.is_server { 2 } else { 3 },
                    span.start_us * 1000,
                    span.end_us * 1000,
                    to = span.to,
                )?;
            }
            out.write_all(b"]}]}")?;
        }
        out.write_all(b"]}\n")?;
        Ok(request.n_spans())
    })
}

/// One line a trace, as the query service answers.
pub(super) fn jaeger(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    requests(asked, out, |out, request| {
        let trace = format!("{:032x}", request.number);
        write!(out, "{{\"data\":[{{\"traceID\":\"{trace}\",\"spans\":[")?;
        for at in 0..request.path.len() {
            for span in request.spans(at) {
                let comma = if span.id == 1 { "" } else { "," };
                let references = match span.parent {
                    0 => String::new(),
                    parent => format!("{{\"refType\":\"CHILD_OF\",\"traceID\":\"{trace}\",\"spanID\":\"{parent:016x}\"}}"),
                };
                write!(
                    out,
                    "{comma}{{\"traceID\":\"{trace}\",\"spanID\":\"{:016x}\",\"operationName\":\"GET /s{to}/items\",\
                     \"references\":[{references}],\"startTime\":{},\"duration\":{},\"tags\":[{{\"key\":\"span.kind\",\"type\":\"string\",\
                     \"value\":\"{}\"}},{{\"key\":\"http.method\",\"type\":\"string\",\"value\":\"GET\"}},{{\"key\":\"http.route\",\
                     \"type\":\"string\",\"value\":\"/s{to}/items\"}}],\"logs\":[],\"processID\":\"p{at}\",\"warnings\":null}}",
                    span.id,
                    span.start_us,
                    span.end_us - span.start_us,
                    if span.is_server { "server" } else { "client" },
                    to = span.to,
                )?;
            }
        }
        out.write_all(b"],\"processes\":{")?;
        for (at, service) in request.path.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(
                out,
                "{comma}\"p{at}\":{{\"serviceName\":\"s{service}\",\"tags\":[{{\"key\":\"hostname\",\"type\":\"string\",\"value\":\"h{}\"}}]}}",
                service % 10
            )?;
        }
        out.write_all(b"}}]}\n")?;
        Ok(request.n_spans())
    })
}

/// One line a trace, an array of spans.
pub(super) fn zipkin(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    requests(asked, out, |out, request| {
        out.write_all(b"[")?;
        for at in 0..request.path.len() {
            for span in request.spans(at) {
                let comma = if span.id == 1 { "" } else { "," };
                let parent = if span.parent == 0 { String::new() } else { format!("\"parentId\":\"{:016x}\",", span.parent) };
                write!(
                    out,
                    "{comma}{{\"traceId\":\"{:032x}\",\"id\":\"{:016x}\",{parent}\"kind\":\"{}\",\"name\":\"get /s{to}/items\",\
                     \"timestamp\":{},\"duration\":{},\"localEndpoint\":{{\"serviceName\":\"s{of}\",\"ipv4\":\"10.0.0.{}\"}},\
                     \"tags\":{{\"http.method\":\"GET\",\"http.path\":\"/s{to}/items\"}}}}",
                    request.number,
                    span.id,
                    if span.is_server { "SERVER" } else { "CLIENT" },
                    span.start_us,
                    span.end_us - span.start_us,
                    span.of % 10,
                    of = span.of,
                    to = span.to,
                )?;
            }
        }
        out.write_all(b"]\n")?;
        Ok(request.n_spans())
    })
}
