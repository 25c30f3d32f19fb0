//! What a span's name and attributes say: of the entry that it is, and of whom it asks.
//!
//! Entry of a served request, the first that there is:
//! user's rule · `METHOD route` · `rpc.service/rpc.method` · span name with ids cut out (not if it is only a method, `GET` or `HTTP GET`) ·
//! `METHOD path` with ids cut out.
//!
//! Task of a request seen only from its client, the first that there is:
//! `peer.service` · `db.system` + `/` + namespace (else server address) · messaging destination (with its system) ·
//! `rpc.service` · server address with its port · `SERVICE.peer`. Its entry: user's rule · `OPERATION collection` · verb and
//! table of the statement · `METHOD route` · `rpc.method` · span name with ids cut out · `METHOD path`.

use super::{
    SpanOptions,
    catalog::{PeerKind, Told},
    generalize, statements,
};
use crate::trace::span::{Attribute, Span, SpanKind, SpanTexts};

/// A span with its texts.
pub(super) struct Said<'s> {
    pub(super) span: &'s Span,
    pub(super) texts: &'s SpanTexts,
}

/// Parts of names and addresses that only the tracing's own traffic has.
const NOISE: &[&str] = &[
    "/v1/traces",
    "/v1/metrics",
    "/v1/logs",
    "/api/v2/spans",
    "/api/v1/spans",
    "/api/traces",
    "opentelemetry.proto.collector.",
    "jaeger.api_v2.CollectorService",
];

/// Whether a text has this path or what begins so, and no path below it.
fn ends_with_part(text: &str, part: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "/-_".contains(c);
    text.match_indices(part).any(|(at, _)| !part.starts_with('/') || !text[at + part.len()..].starts_with(goes_on))
}

const HTTP_METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "HTTP", "_OTHER"];

/// The method of a name that says nothing else: `GET`, `HTTP GET`, `HTTP`.
fn only_method(name: &str) -> Option<&str> {
    let (first, rest) = name.split_once(' ').unwrap_or(("", name));
    let is_method = HTTP_METHODS.iter().any(|method| rest.eq_ignore_ascii_case(method));
    (is_method && (first.is_empty() || first.eq_ignore_ascii_case("HTTP"))).then_some(rest)
}

impl<'s> Said<'s> {
    /// The text of an attribute, where it says anything.
    pub(super) fn get(&self, attribute: Attribute) -> Option<&'s str> {
        self.span.attribute(attribute).map(|number| self.texts.texts.name(number).trim()).filter(|text| !text.is_empty())
    }

    fn name(&self) -> &'s str {
        self.texts.texts.name(self.span.name).trim()
    }

    /// Exporters' requests: a client's, and what serves it inside the same trace.
    pub(super) fn is_noise(&self) -> bool {
        let is_request = matches!(self.span.kind, SpanKind::Client | SpanKind::Server | SpanKind::Unspecified);
        let texts = [Some(self.name()), self.get(Attribute::Url), self.get(Attribute::HttpRoute), self.get(Attribute::RpcService)];
        is_request && texts.into_iter().flatten().any(|text| NOISE.iter().any(|noise| ends_with_part(text, noise)))
    }

    fn by_rule(&self, options: &SpanOptions, attributes: &[Attribute]) -> Option<String> {
        if options.entry_rules.is_empty() {
            return None;
        }
        let texts = attributes.iter().filter_map(|a| self.get(*a)).chain([self.name()]);
        let rule = |text: &str| options.entry_rules.iter().find(|rule| rule.matches(text));
        texts.filter_map(rule).next().map(|rule| rule.name.clone())
    }

    fn with_method(&self, rest: &str) -> String {
        let by_name = || only_method(self.name()).filter(|method| !method.eq_ignore_ascii_case("HTTP"));
        let method = self.get(Attribute::HttpMethod).or_else(by_name);
        method.map_or_else(|| rest.to_owned(), |method| format!("{} {rest}", method.to_ascii_uppercase()))
    }

    fn generalised_name(&self) -> Option<String> {
        let name = self.name();
        let says_little = name.is_empty() || (only_method(name).is_some() && self.get(Attribute::Url).is_some());
        (!says_little).then(|| named(name))
    }

    fn path(&self) -> Option<String> {
        self.get(Attribute::Url).map(|url| self.with_method(&generalize::path(url)))
    }

    /// Name of the entry that it is where it is a request being served.
    pub(super) fn served(&self, options: &SpanOptions) -> String {
        let route = || self.get(Attribute::HttpRoute).map(|route| self.with_method(route));
        let rpc = || match (self.get(Attribute::RpcService), self.get(Attribute::RpcMethod)) {
            (Some(service), Some(method)) => Some(format!("{service}/{method}")),
            _ => None,
        };
        self.by_rule(options, &[Attribute::HttpRoute, Attribute::Url])
            .or_else(route)
            .or_else(rpc)
            .or_else(|| self.generalised_name())
            .or_else(|| self.path())
            .unwrap_or_else(|| "(unnamed)".to_owned())
    }

    /// Whether the entry that it is where it is served is named by more than its span and path.
    pub(super) fn has_route(&self, options: &SpanOptions) -> bool {
        let is_rpc = self.get(Attribute::RpcService).is_some() && self.get(Attribute::RpcMethod).is_some();
        is_rpc || self.get(Attribute::HttpRoute).is_some() || self.by_rule(options, &[Attribute::Url]).is_some()
    }

    /// Task and entry of the one called, its kind, and whether attributes name it.
    pub(super) fn peer(&self, service: &str, options: &SpanOptions) -> (String, String, PeerKind, bool) {
        let kind = if self.get(Attribute::DbSystem).is_some() {
            PeerKind::Store
        } else if self.get(Attribute::MessagingSystem).is_some()
            || self.get(Attribute::MessagingDestination).is_some()
            || self.span.kind == SpanKind::Producer
        {
            PeerKind::Queue
        } else {
            PeerKind::ThirdParty
        };
        let task = self.peer_task(kind);
        let is_named = task.is_some();
        (task.unwrap_or_else(|| format!("{service}.peer")), self.peer_entry(kind, options), kind, is_named)
    }

    /// How much attributes tell of the request that it makes.
    pub(super) fn told(&self) -> Told {
        const OF_REQUESTS: &[Attribute] = &[
            Attribute::PeerService,
            Attribute::DbSystem,
            Attribute::MessagingSystem,
            Attribute::MessagingDestination,
            Attribute::RpcService,
            Attribute::RpcMethod,
            Attribute::FaasName,
            Attribute::HttpMethod,
            Attribute::HttpRoute,
            Attribute::Url,
        ];
        let says_request = self.span.kind == SpanKind::Producer || OF_REQUESTS.iter().any(|attribute| self.get(*attribute).is_some());
        if says_request {
            Told::Request
        } else if self.get(Attribute::ServerAddress).is_some() {
            Told::Address
        } else {
            Told::Nothing
        }
    }

    fn peer_task(&self, kind: PeerKind) -> Option<String> {
        let address = || Some(generalize::endpoint(self.get(Attribute::ServerAddress)?, self.get(Attribute::ServerPort)));
        if let Some(peer) = self.get(Attribute::PeerService) {
            return Some(peer.to_owned());
        }
        match kind {
            PeerKind::Store => {
                let system = self.get(Attribute::DbSystem)?;
                let part = self.get(Attribute::DbNamespace).map(str::to_owned).or_else(address);
                Some(part.map_or_else(|| system.to_owned(), |part| format!("{system}/{part}")))
            }
            PeerKind::Queue => {
                let destination = self.get(Attribute::MessagingDestination).map(generalize::destination);
                match (self.get(Attribute::MessagingSystem), destination) {
                    (Some(system), Some(destination)) => Some(format!("{system}/{destination}")),
                    (None, Some(destination)) => Some(destination),
                    (system, None) => system.map(str::to_owned).or_else(address),
                }
            }
            PeerKind::ThirdParty => {
                self.get(Attribute::RpcService).or_else(|| self.get(Attribute::FaasName)).map(str::to_owned).or_else(address)
            }
        }
    }

    fn peer_entry(&self, kind: PeerKind, options: &SpanOptions) -> String {
        let rule = self.by_rule(options, &[Attribute::DbStatement, Attribute::HttpRoute, Attribute::Url]);
        let stored = || {
            let operation = match (self.get(Attribute::DbOperation), self.get(Attribute::DbCollection)) {
                (Some(operation), Some(collection)) if operation.ends_with(collection) => Some(generalize::name(operation)),
                (Some(operation), Some(collection)) => Some(format!("{operation} {}", generalize::name(collection))),
                (operation, _) => operation.map(str::to_owned),
            };
            let from_statement = || self.get(Attribute::DbStatement).and_then(statements::statement);
            match self.get(Attribute::DbCollection) {
                Some(_) => operation,
                None => from_statement().or(operation),
            }
        };
        let route = || self.get(Attribute::HttpRoute).map(|route| self.with_method(route));
        let method = || self.get(Attribute::RpcMethod).map(str::to_owned);
        let specific = if kind == PeerKind::Store { stored() } else { None };
        let named = || {
            // The bare method names of HTTP clients say less than the path.
            self.generalised_name()
        };
        rule.or(specific).or_else(route).or_else(method).or_else(named).or_else(|| self.path()).unwrap_or_else(|| "(unnamed)".to_owned())
    }
}

/// A span name; one that holds a URL is generalised as such.
fn named(name: &str) -> String {
    match name.find("://") {
        Some(_) => {
            let start = name.rfind(' ').map_or(0, |at| at + 1);
            format!("{}{}", &name[..start], generalize::path(&name[start..]))
        }
        None => statements::statement_as_name(name).unwrap_or_else(|| generalize::name(name)),
    }
}
