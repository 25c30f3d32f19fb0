//! What the keys of attributes and resources mean: the semantic conventions' old and new names, and those of older tracers.

use super::super::span::Attribute;

/// What an attribute of a span is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Meaning {
    /// Its text is kept.
    Keep(Attribute),
    /// Its text is kept, except of a span that serves: there the peer is who asks, not who is asked.
    Peer(Attribute),
    /// The peer by its socket: used of spans that ask where nothing else names who is asked.
    Socket(Socket),
    /// A path, or a URL of which the path is kept.
    Url,
    /// The template that a client made its URL from: used as the route where there is none.
    UrlTemplate,
    /// What the names of a message's destinations are made from.
    DestinationTemplate,
    /// Whether a message's destination is one of many that come and go: what they are called together.
    ShortLived(&'static str),
    /// The library that made the span: a data base's names its system.
    Component,
    /// The role of the span.
    Kind,
    /// Whether, or with what, the span failed.
    Error,
    /// What kind of error it failed with.
    ErrorType,
    /// `OK` or `ERROR`.
    StatusCode,
    /// The words to a status.
    StatusMessage,
    /// The status of a response of HTTP.
    HttpStatus,
    /// The status of a response of gRPC.
    GrpcStatus,
    /// How Jaeger's client sampled.
    SamplerType,
    /// With what probability, or rate.
    SamplerParameter,
    /// One in how many, or with what probability.
    SampleRate,
    /// What the span was before it was Jaeger's.
    OriginalFormat,
}

/// What a socket's other end is known by, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Socket {
    Name,
    Address,
    Port,
}

/// Keys, shorter ones first, those of one length in order.
const MEANINGS: &[(&str, Meaning)] = {
    use Attribute as A;
    use Meaning::{
        Component, DestinationTemplate, Error, ErrorType, GrpcStatus, HttpStatus, Keep, Kind, OriginalFormat, Peer, SampleRate,
        SamplerParameter, SamplerType, ShortLived, Socket as S, StatusCode, StatusMessage, Url, UrlTemplate,
    };
    &[
        ("error", Error),
        ("db.name", Keep(A::DbNamespace)),
        ("db.type", Keep(A::DbSystem)),
        ("user.id", Keep(A::User)),
        ("http.url", Url),
        ("url.full", Url),
        ("url.path", Url),
        ("component", Component),
        ("db.system", Keep(A::DbSystem)),
        ("http.host", Keep(A::ServerAddress)),
        ("http.path", Url),
        ("peer.port", Peer(A::ServerPort)),
        ("span.kind", Kind),
        ("sql.query", Keep(A::DbStatement)),
        ("thread.id", Keep(A::Thread)),
        ("SampleRate", SampleRate),
        ("enduser.id", Keep(A::User)),
        ("error.type", ErrorType),
        ("http.route", Keep(A::HttpRoute)),
        ("rpc.method", Keep(A::RpcMethod)),
        ("rpc.system", Keep(A::RpcSystem)),
        ("session.id", Keep(A::Session)),
        ("session_id", Keep(A::Session)),
        ("SampledRate", SampleRate),
        ("app.user.id", Keep(A::User)),
        ("db.instance", Keep(A::DbNamespace)),
        ("grpc.method", Keep(A::RpcMethod)),
        ("http.method", Keep(A::HttpMethod)),
        ("http.target", Url),
        ("kafka.topic", Keep(A::MessagingDestination)),
        ("net.peer.ip", Peer(A::ServerAddress)),
        ("rpc.service", Keep(A::RpcService)),
        ("sample.rate", SampleRate),
        ("sample_rate", SampleRate),
        ("server.port", Keep(A::ServerPort)),
        ("status.code", StatusCode),
        ("thread.name", Keep(A::Thread)),
        ("_sample_rate", SampleRate),
        ("db.namespace", Keep(A::DbNamespace)),
        ("db.operation", Keep(A::DbOperation)),
        ("db.sql.table", Keep(A::DbCollection)),
        ("db.statement", Keep(A::DbStatement)),
        ("faas.trigger", Keep(A::FaasName)),
        ("peer.address", Peer(A::ServerAddress)),
        ("peer.service", Peer(A::PeerService)),
        ("sampler.type", SamplerType),
        ("url.template", UrlTemplate),
        ("db.query.text", Keep(A::DbStatement)),
        ("error.message", StatusMessage),
        ("net.peer.name", Peer(A::ServerAddress)),
        ("net.peer.port", Peer(A::ServerPort)),
        ("peer.hostname", Peer(A::ServerAddress)),
        ("sampler.param", SamplerParameter),
        ("sampling.rate", SampleRate),
        ("sampling_rate", SampleRate),
        ("app.session.id", Keep(A::Session)),
        ("client.address", Keep(A::ClientAddress)),
        ("db.system.name", Keep(A::DbSystem)),
        ("http.client_ip", Keep(A::ClientAddress)),
        ("server.address", Keep(A::ServerAddress)),
        ("http.session.id", Keep(A::Session)),
        ("http.session_id", Keep(A::Session)),
        ("rpc.system.name", Keep(A::RpcSystem)),
        ("grpc.status_code", GrpcStatus),
        ("http.status_code", HttpStatus),
        ("messaging.system", Keep(A::MessagingSystem)),
        ("otel.status_code", StatusCode),
        ("db.operation.name", Keep(A::DbOperation)),
        ("enduser.pseudo.id", Keep(A::User)),
        ("faas.invoked_name", Keep(A::FaasName)),
        ("network.peer.port", S(Socket::Port)),
        ("service.peer.name", Peer(A::PeerService)),
        ("db.collection.name", Keep(A::DbCollection)),
        ("net.sock.peer.addr", S(Socket::Address)),
        ("net.sock.peer.name", S(Socket::Name)),
        ("net.sock.peer.port", S(Socket::Port)),
        ("http.request.method", Keep(A::HttpMethod)),
        ("messaging.operation", Keep(A::MessagingOperation)),
        ("highlight.session_id", Keep(A::Session)),
        ("internal.span.format", OriginalFormat),
        ("network.peer.address", S(Socket::Address)),
        ("rpc.grpc.status_code", GrpcStatus),
        ("sampling.probability", SampleRate),
        ("db.mongodb.collection", Keep(A::DbCollection)),
        ("messaging.destination", Keep(A::MessagingDestination)),
        ("otel.status_description", StatusMessage),
        ("messaging.operation.type", Keep(A::MessagingOperation)),
        ("rpc.response.status_code", GrpcStatus),
        ("http.response.status_code", HttpStatus),
        ("messaging.conversation_id", Keep(A::MessagingConversation)),
        ("messaging.destination.name", Keep(A::MessagingDestination)),
        ("messaging.temp_destination", ShortLived("(temporary)")),
        ("messaging.destination.template", DestinationTemplate),
        ("messaging.destination.anonymous", ShortLived("(anonymous)")),
        ("messaging.destination.temporary", ShortLived("(temporary)")),
        ("messaging.message.conversation_id", Keep(A::MessagingConversation)),
    ]
};

const LONGEST: usize = MEANINGS[MEANINGS.len() - 1].0.len();

/// Where the keys of each length, and of one more than the longest, begin.
const FIRSTS: [usize; LONGEST + 2] = {
    let mut firsts = [MEANINGS.len(); LONGEST + 2];
    let mut at = MEANINGS.len();
    let mut length = LONGEST + 1;
    while length > 0 {
        length -= 1;
        while at > 0 && MEANINGS[at - 1].0.len() >= length {
            at -= 1;
        }
        firsts[length] = at;
    }
    firsts
};

/// What the attribute `key` of a span is for; `None` if it is not for us.
pub(in crate::trace) fn meaning(key: &str) -> Option<Meaning> {
    let of_length = FIRSTS.get(key.len())?..FIRSTS.get(key.len() + 1)?;
    let last = key.as_bytes().last();
    let is_key = |(known, _): &&(&str, Meaning)| known.as_bytes().last() == last && *known == key;
    MEANINGS[*of_length.start..*of_length.end].iter().find(is_key).map(|(_, meaning)| *meaning)
}

/// What an attribute of a resource or process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Part {
    Service,
    Namespace,
    InstanceId,
    Pod,
    Container,
    Process,
    HostName,
    Node,
    HostId,
    HostAddress,
    Language,
    RuntimeName,
    Client,
}

/// How many parts there are.
pub(in crate::trace) const N_PARTS: usize = Part::Client as usize + 1;

/// Whether the attribute `key` says something of a resource that is for us.
pub(in crate::trace) fn is_of_resource(key: &str) -> bool {
    part(key).is_some()
}

/// What the attribute `key` of a resource is for; `None` if it is not for us.
pub(in crate::trace) fn part(key: &str) -> Option<Part> {
    Some(match key {
        "service.name" => Part::Service,
        "service.namespace" => Part::Namespace,
        "service.instance.id" => Part::InstanceId,
        "k8s.pod.name" => Part::Pod,
        "container.id" => Part::Container,
        "process.pid" => Part::Process,
        "host.name" | "hostname" => Part::HostName,
        "k8s.node.name" => Part::Node,
        "host.id" => Part::HostId,
        "ip" | "host.ip" => Part::HostAddress,
        "telemetry.sdk.language" => Part::Language,
        "process.runtime.name" | "jaeger.version" => Part::RuntimeName,
        "client-uuid" => Part::Client,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_found() {
        assert!(MEANINGS.is_sorted_by(|a, b| (a.0.len(), a.0) < (b.0.len(), b.0)));
        for (key, expected) in MEANINGS {
            assert_eq!(meaning(key), Some(*expected));
        }
        assert_eq!(meaning("http.user_agent"), None);
        assert_eq!(meaning(""), None);
    }
}
