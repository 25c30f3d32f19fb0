//! What attributes of spans become, whichever convention their keys are of.

use layerfit::trace::span::Attribute;

use super::spans::{Reading, read};

/// A span of OpenTelemetry with its name, kind and attributes as they are written.
fn written(name: &str, kind: &str, attributes: &str) -> Reading {
    read(&format!(
        r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"spans":[{{"traceId":"1","spanId":"2","name":"{name}","kind":"SPAN_KIND_{kind}","startTimeUnixNano":"5","endTimeUnixNano":"6","attributes":[{attributes}]}}]}}]}}]}}"#
    ))
}

/// One with a kind and attributes of texts.
fn span(kind: &str, attributes: &[(&str, &str)]) -> Reading {
    let attribute = |(key, value): &(&str, &str)| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
    let attributes: Vec<String> = attributes.iter().map(attribute).collect();
    written("x", kind, &attributes.join(","))
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

#[test]
fn a_destination_that_comes_and_goes_has_the_name_of_all() {
    let name = ("messaging.destination.name", "reply.8f3c");
    for (key, value, expected) in [
        ("messaging.destination.template", "reply.{client}", "reply.{client}"),
        ("messaging.destination.temporary", "true", "(temporary)"),
        ("messaging.temp_destination", "true", "(temporary)"),
        ("messaging.destination.anonymous", "true", "(anonymous)"),
        ("messaging.destination.temporary", "false", "reply.8f3c"),
    ] {
        let reading = span("PRODUCER", &[name, (key, value)]);
        assert_eq!(reading.attribute(0, Attribute::MessagingDestination), Some(expected), "{key}");
        assert_eq!(reading.name(0), "x");
    }
    let flag = written("reply.8f3c publish", "PRODUCER", r#"{"key":"messaging.destination.anonymous","value":{"boolValue":true}}"#);
    assert_eq!(flag.attribute(0, Attribute::MessagingDestination), Some("(anonymous)"));
    let named = written(
        "reply.8f3c publish",
        "PRODUCER",
        r#"{"key":"messaging.destination.anonymous","value":{"boolValue":true}},{"key":"messaging.destination.name","value":{"stringValue":"reply.8f3c"}}"#,
    );
    assert_eq!(named.name(0), "(anonymous) publish");
}

#[test]
fn the_template_of_a_url_is_its_route() {
    let template = ("url.template", "/users/{id}");
    assert_eq!(span("CLIENT", &[template]).attribute(0, Attribute::HttpRoute), Some("/users/{id}"));
    assert_eq!(span("CLIENT", &[template, ("http.route", "/u")]).attribute(0, Attribute::HttpRoute), Some("/u"));
}
