//! Spans in OpenTelemetry's protobuf: messages `TracesData`, each after its length (a varint).

use std::io::{self, Write};

use super::{Asked, Parts, requests, spans::Span};

/// A message under way (protobuf encoding, wire types 0, 1 and 2).
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn attribute(&mut self, field: u64, key: &str, text: &str) {
        let (mut value, mut pair) = (Self::default(), Self::default());
        value.bytes(1, text.as_bytes());
        pair.bytes(1, key.as_bytes());
        pair.bytes(2, &value.0);
        self.bytes(field, &pair.0);
    }
}

/// The numbers of the fields are those of opentelemetry-proto 1, `trace/v1/trace.proto`.
fn span(trace: u64, span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &u128::from(trace).to_be_bytes());
    message.bytes(2, &(span.id as u64).to_be_bytes());
    if span.parent > 0 {
        message.bytes(4, &(span.parent as u64).to_be_bytes());
    }
    message.bytes(5, format!("GET /s{}/items", span.to).as_bytes());
    message.number(6, if span.is_server { 2 } else { 3 });
    message.fixed64(7, span.start_us * 1000);
    message.fixed64(8, span.end_us * 1000);
    message.attribute(9, "http.request.method", "GET");
    message.attribute(9, "http.route", &format!("/s{}/items", span.to));
    message
}

/// One message a request.
pub(super) fn otlp(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    requests(asked, out, |out, request| {
        let mut data = Message::default();
        for (at, service) in request.path.iter().enumerate() {
            let (mut resource, mut scope, mut of_resource) = (Message::default(), Message::default(), Message::default());
            resource.attribute(1, "service.name", &format!("s{service}"));
            resource.attribute(1, "host.name", &format!("h{}", service % 10));
            for one in request.spans(at) {
                scope.bytes(2, &span(request.number, &one).0);
            }
            of_resource.bytes(1, &resource.0);
            of_resource.bytes(2, &scope.0);
            data.bytes(1, &of_resource.0);
        }
        let mut length = Message::default();
        length.varint(data.0.len() as u64);
        out.write_all(&length.0)?;
        out.write_all(&data.0)?;
        Ok(request.n_spans())
    })
}
