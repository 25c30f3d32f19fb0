//! What the keys of attributes and resources mean: the semantic conventions' old and new names, and those of older tracers.

use super::super::span::Attribute;

/// What an attribute of a span is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Meaning {
    /// Its text is kept.
    Keep(Attribute),
    /// Its text is kept, except of a span that serves: there the peer is who asks, not who is asked.
    Peer(Attribute),
    /// A path, or a URL of which the path is kept.
    Url,
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

/// Keys in order, for binary search.
const MEANINGS: &[(&str, Meaning)] = {
    use Attribute as A;
    use Meaning::{
        Component, Error, ErrorType, GrpcStatus, HttpStatus, Keep, Kind, OriginalFormat, Peer, SampleRate, SamplerParameter, SamplerType,
        StatusCode, StatusMessage, Url,
    };
    &[
        ("SampleRate", SampleRate),
        ("SampledRate", SampleRate),
        ("_sample_rate", SampleRate),
        ("app.session.id", Keep(A::Session)),
        ("app.user.id", Keep(A::User)),
        ("client.address", Keep(A::ClientAddress)),
        ("component", Component),
        ("db.collection.name", Keep(A::DbCollection)),
        ("db.instance", Keep(A::DbNamespace)),
        ("db.mongodb.collection", Keep(A::DbCollection)),
        ("db.name", Keep(A::DbNamespace)),
        ("db.namespace", Keep(A::DbNamespace)),
        ("db.operation", Keep(A::DbOperation)),
        ("db.operation.name", Keep(A::DbOperation)),
        ("db.query.text", Keep(A::DbStatement)),
        ("db.sql.table", Keep(A::DbCollection)),
        ("db.statement", Keep(A::DbStatement)),
        ("db.system", Keep(A::DbSystem)),
        ("db.system.name", Keep(A::DbSystem)),
        ("db.type", Keep(A::DbSystem)),
        ("enduser.id", Keep(A::User)),
        ("enduser.pseudo.id", Keep(A::User)),
        ("error", Error),
        ("error.message", StatusMessage),
        ("error.type", ErrorType),
        ("faas.invoked_name", Keep(A::FaasName)),
        ("faas.trigger", Keep(A::FaasName)),
        ("grpc.method", Keep(A::RpcMethod)),
        ("grpc.status_code", GrpcStatus),
        ("highlight.session_id", Keep(A::Session)),
        ("http.client_ip", Keep(A::ClientAddress)),
        ("http.host", Keep(A::ServerAddress)),
        ("http.method", Keep(A::HttpMethod)),
        ("http.path", Url),
        ("http.request.method", Keep(A::HttpMethod)),
        ("http.response.status_code", HttpStatus),
        ("http.route", Keep(A::HttpRoute)),
        ("http.session.id", Keep(A::Session)),
        ("http.session_id", Keep(A::Session)),
        ("http.status_code", HttpStatus),
        ("http.target", Url),
        ("http.url", Url),
        ("internal.span.format", OriginalFormat),
        ("kafka.topic", Keep(A::MessagingDestination)),
        ("messaging.conversation_id", Keep(A::MessagingConversation)),
        ("messaging.destination", Keep(A::MessagingDestination)),
        ("messaging.destination.name", Keep(A::MessagingDestination)),
        ("messaging.message.conversation_id", Keep(A::MessagingConversation)),
        ("messaging.operation", Keep(A::MessagingOperation)),
        ("messaging.operation.type", Keep(A::MessagingOperation)),
        ("messaging.system", Keep(A::MessagingSystem)),
        ("net.peer.ip", Peer(A::ServerAddress)),
        ("net.peer.name", Peer(A::ServerAddress)),
        ("net.peer.port", Peer(A::ServerPort)),
        ("otel.status_code", StatusCode),
        ("otel.status_description", StatusMessage),
        ("peer.address", Peer(A::ServerAddress)),
        ("peer.hostname", Peer(A::ServerAddress)),
        ("peer.port", Peer(A::ServerPort)),
        ("peer.service", Peer(A::PeerService)),
        ("rpc.grpc.status_code", GrpcStatus),
        ("rpc.method", Keep(A::RpcMethod)),
        ("rpc.response.status_code", GrpcStatus),
        ("rpc.service", Keep(A::RpcService)),
        ("rpc.system", Keep(A::RpcSystem)),
        ("rpc.system.name", Keep(A::RpcSystem)),
        ("sample.rate", SampleRate),
        ("sample_rate", SampleRate),
        ("sampler.param", SamplerParameter),
        ("sampler.type", SamplerType),
        ("sampling.probability", SampleRate),
        ("sampling.rate", SampleRate),
        ("sampling_rate", SampleRate),
        ("server.address", Keep(A::ServerAddress)),
        ("server.port", Keep(A::ServerPort)),
        ("service.peer.name", Peer(A::PeerService)),
        ("session.id", Keep(A::Session)),
        ("session_id", Keep(A::Session)),
        ("span.kind", Kind),
        ("sql.query", Keep(A::DbStatement)),
        ("status.code", StatusCode),
        ("thread.id", Keep(A::Thread)),
        ("thread.name", Keep(A::Thread)),
        ("url.full", Url),
        ("url.path", Url),
        ("user.id", Keep(A::User)),
    ]
};

/// What the attribute `key` of a span is for; `None` if it is not for us.
pub(in crate::trace) fn meaning(key: &str) -> Option<Meaning> {
    MEANINGS.binary_search_by(|(known, _)| (*known).cmp(key)).ok().map(|i| MEANINGS[i].1)
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
        assert!(MEANINGS.is_sorted_by(|a, b| a.0 < b.0));
        for (key, expected) in MEANINGS {
            assert_eq!(meaning(key), Some(*expected));
        }
        assert_eq!(meaning("http.user_agent"), None);
        assert_eq!(meaning(""), None);
    }
}
