//! What attributes of spans become, whichever convention their keys are of.

use layerfit::trace::span::Attribute;

use super::spans::{Reading, read};

/// A span of OpenTelemetry with a kind and attributes of texts.
fn span(kind: &str, attributes: &[(&str, &str)]) -> Reading {
    let attribute = |(key, value): &(&str, &str)| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
    let attributes: Vec<String> = attributes.iter().map(attribute).collect();
    read(&format!(
        r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"spans":[{{"traceId":"1","spanId":"2","name":"x","kind":"SPAN_KIND_{kind}","startTimeUnixNano":"5","endTimeUnixNano":"6","attributes":[{}]}}]}}]}}]}}"#,
        attributes.join(",")
    ))
}

fn peer(kind: &str, attributes: &[(&str, &str)]) -> (Option<String>, Option<String>) {
    let reading = span(kind, attributes);
    let text = |attribute| reading.attribute(0, attribute).map(str::to_owned);
    (text(Attribute::ServerAddress), text(Attribute::ServerPort))
}

fn known(address: &str, port: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(address.to_owned()), port.map(str::to_owned))
}

#[test]
fn a_socket_names_who_is_asked_where_nothing_else_does() {
    let new = [("network.peer.port", "6379"), ("network.peer.address", "10.0.0.7")];
    let old = [("net.sock.peer.addr", "10.0.0.7"), ("net.sock.peer.port", "6379")];
    for keys in [new, old] {
        assert_eq!(peer("CLIENT", &keys), known("10.0.0.7", Some("6379")));
        assert_eq!(peer("PRODUCER", &keys), known("10.0.0.7", Some("6379")));
        assert_eq!(peer("SERVER", &keys), (None, None), "there it is who asks");
    }
    let named = [("net.sock.peer.addr", "10.0.0.7"), ("net.sock.peer.name", "cache"), ("net.sock.peer.port", "6379")];
    assert_eq!(peer("CLIENT", &named), known("cache", Some("6379")));
}

#[test]
fn a_socket_says_nothing_beside_a_name() {
    let socket = [("network.peer.address", "10.0.0.7"), ("network.peer.port", "6380")];
    for (key, value, expected) in [
        ("server.address", "cache", known("cache", None)),
        ("net.peer.name", "cache", known("cache", None)),
        ("url.full", "http://cache:81/x", known("cache", Some("81"))),
    ] {
        assert_eq!(peer("CLIENT", &[socket[0], socket[1], (key, value)]), expected, "{key}: a proxy's port may be another");
    }
}
