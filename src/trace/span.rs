//! Spans: what every distributed-tracing format says of one timed operation, in one shape.
//!
//! Texts are interned ([`SpanTexts`]), times are nanoseconds since 1970 (importers convert), and of a span's attributes only
//! those are kept that a layered model can use, under the names that [`Attribute`] lists: the semantic conventions' old and new
//! keys map to one. A reader hands spans over one at a time, in the order of its input.

use serde::{Deserialize, Serialize};

use super::{hashed::IndexSet, names::Names};

/// Identity of a trace: 128 bits; shorter ids of older formats are padded with zeros on the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u128);

/// Identity of a span within its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u64);

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 >> 64 == 0 { write!(f, "{:016x}", self.0) } else { write!(f, "{:032x}", self.0) }
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The role of a span in an interaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// The input does not say.
    #[default]
    Unspecified,
    /// Work inside a service.
    Internal,
    /// A request being served.
    Server,
    /// A request being made.
    Client,
    /// A message being sent.
    Producer,
    /// A message being handled.
    Consumer,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanStatus {
    /// Well, as far as is known.
    #[default]
    Ok,
    /// With an error.
    Error,
    /// With an error that says that time ran out (a deadline, a gateway time-out).
    Timeout,
    /// It was cancelled by its client.
    Cancelled,
}

/// What an attribute says, whatever its key was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// `peer.service`, `service.peer.name`: the name of the service called.
    PeerService,
    /// `server.address`, `net.peer.name`, `net.peer.ip`, `peer.hostname`, `peer.address`, `http.host`, Zipkin's `sa`/`remoteEndpoint`;
    /// of spans that ask and have none of these nor a URL, `net.sock.peer.name`, `network.peer.address`, `net.sock.peer.addr`.
    ServerAddress,
    /// `server.port`, `net.peer.port`, `peer.port`; with the address of a socket `network.peer.port`, `net.sock.peer.port`.
    ServerPort,
    /// `db.system`, `db.system.name`, `db.type`, `sql` components.
    DbSystem,
    /// `db.namespace`, `db.name`, `db.instance`.
    DbNamespace,
    /// `db.operation`, `db.operation.name`.
    DbOperation,
    /// `db.collection.name`, `db.sql.table`, `db.mongodb.collection`.
    DbCollection,
    /// `db.statement`, `db.query.text`, `sql.query`: cut to [`LONGEST_TEXT_BYTES`].
    DbStatement,
    /// `messaging.system`.
    MessagingSystem,
    /// `messaging.destination.template`, `messaging.destination.name`, `messaging.destination`, `kafka.topic`; `(temporary)` or
    /// `(anonymous)` of a destination that is said to be so.
    MessagingDestination,
    /// `messaging.operation.type`, `messaging.operation`.
    MessagingOperation,
    /// `messaging.message.conversation_id`, `messaging.conversation_id`: pairs a reply with its request.
    MessagingConversation,
    /// `rpc.system`, `rpc.system.name`.
    RpcSystem,
    /// `rpc.service`.
    RpcService,
    /// `rpc.method`, `grpc.method`.
    RpcMethod,
    /// `http.request.method`, `http.method`.
    HttpMethod,
    /// `http.route`, else `url.template`.
    HttpRoute,
    /// `url.path`, `http.target`, `url.full`, `http.url`, `http.path`.
    Url,
    /// `http.response.status_code`, `http.status_code`.
    HttpStatus,
    /// `faas.trigger`, `faas.invoked_name`.
    FaasName,
    /// `session.id`, `session_id`, `http.session.id`, `http.session_id`, `app.session.id`, `highlight.session_id`: a session of a user.
    Session,
    /// `enduser.id`, `enduser.pseudo.id`, `user.id`, `app.user.id`: a user, in any number of sessions.
    User,
    /// `client.address`, `http.client_ip`: where a request came from.
    ClientAddress,
    /// `thread.id`, `thread.name`.
    Thread,
}

/// Longest text that is kept of one attribute or name, bytes (cut at a character).
pub const LONGEST_TEXT_BYTES: usize = 512;

/// Most texts that are held.
pub const MOST_TEXTS: usize = 1 << 20;

/// What stands for texts beyond [`MOST_TEXTS`].
pub const OTHER_TEXT: &str = "(other)";

/// What sent the spans: a process, with what it runs on. Numbers are of [`SpanTexts::texts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// `service.name`, Jaeger's `serviceName`, Zipkin's `localEndpoint.serviceName`; `None` where the input does not say.
    pub service: Option<u32>,
    /// `service.namespace`.
    pub namespace: Option<u32>,
    /// `service.instance.id`, else the pod, container or process that tells instances of a service apart.
    pub instance: Option<u32>,
    /// `host.name` (unless it is that of the pod, and the node is said), `k8s.node.name`, `host.id`, Jaeger's `hostname`, the endpoint's address: what clocks belong to.
    pub host: Option<u32>,
    /// `k8s.pod.name`, `container.id`.
    pub container: Option<u32>,
    /// `telemetry.sdk.language` or `process.runtime.name`; for the report.
    pub runtime: Option<u32>,
}

/// A reference to a span of this or another trace that is not its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

/// One span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Itself.
    pub id: SpanId,
    /// Its parent; `None` for a root.
    pub parent: Option<SpanId>,
    /// Whether client and server share the id (Zipkin's shared spans): this is the server's half.
    pub shared: bool,
    /// Number in [`SpanTexts::resources`].
    pub resource: u32,
    /// Number in [`SpanTexts::texts`].
    pub name: u32,
    /// Its role.
    pub kind: SpanKind,
    /// Start, nanoseconds since 1970.
    pub start_ns: i64,
    /// Whether nothing says when it started or ended, as in all spans of its source: start and duration are 0.
    pub is_timeless: bool,
    /// Duration in nanoseconds; negative where the input has it so; `None` of a span that did not finish.
    pub duration_ns: Option<i64>,
    /// How it ended.
    pub status: SpanStatus,
    /// What its attributes say; numbers are of [`SpanTexts::texts`]; the first value of each attribute.
    pub attributes: Vec<(Attribute, u32)>,
    /// Further spans it follows from.
    pub links: Vec<Link>,
    /// How many spans it stands for where the input says that it was sampled: 1 / probability, ≥ 1.
    pub adjusted_count: Option<f64>,
}

impl Span {
    /// The end, nanoseconds since 1970; the start of a span that did not finish or ends before it starts.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0).max(0))
    }

    /// The number of the text of `attribute`.
    pub fn attribute(&self, attribute: Attribute) -> Option<u32> {
        self.attributes.iter().find(|(known, _)| *known == attribute).map(|(_, text)| *text)
    }
}

/// Texts and resources of spans, each held once.
#[derive(Clone, Debug, Default)]
pub struct SpanTexts {
    /// Names and attribute values.
    pub texts: Names,
    resources: IndexSet<Resource>,
}

/// Texts and resources that were added to others, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct NewTexts {
    texts: Vec<Box<str>>,
    resources: Vec<Resource>,
}

impl SpanTexts {
    /// How many texts and how many resources there are.
    pub fn n_held(&self) -> (usize, usize) {
        (self.texts.len(), self.resources.len())
    }

    /// What was added since there were so many texts and resources.
    pub fn since(&self, (n_texts, n_resources): (usize, usize)) -> NewTexts {
        NewTexts {
            texts: self.texts.iter().skip(n_texts).map(Into::into).collect(),
            resources: self.resources.iter().skip(n_resources).cloned().collect(),
        }
    }

    /// Adds what was added elsewhere to the same texts and resources as are here; it has the same numbers then.
    pub fn add(&mut self, new: NewTexts) {
        for text in new.texts {
            self.texts.intern(&text);
        }
        self.resources.extend(new.resources);
    }

    /// The number of `resource`, a new one if it was not seen before.
    ///
    /// # Panics
    /// When there are more than `u32::MAX` resources.
    pub fn resource_number(&mut self, resource: Resource) -> u32 {
        u32::try_from(self.resources.insert_full(resource).0).expect("fewer than 2^32 resources")
    }

    /// The resource numbered `number`.
    pub fn resource(&self, number: u32) -> Option<&Resource> {
        self.resources.get_index(number as usize)
    }

    /// The number of `text`, cut to [`LONGEST_TEXT_BYTES`]; beyond [`MOST_TEXTS`] new texts are all [`OTHER_TEXT`].
    pub fn text(&mut self, text: &str) -> u32 {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT_BYTES)];
        match self.texts.get(text) {
            Some(known) => known,
            None if self.texts.len() >= MOST_TEXTS => self.texts.intern(OTHER_TEXT),
            None => self.texts.intern(text),
        }
    }

    /// A span whose texts and resource are held by `from`, held here.
    pub fn adopt(&mut self, span: &Span, from: &Self) -> Span {
        let mut text = |number: u32| self.text(from.texts.name(number));
        let name = text(span.name);
        let attributes = span.attributes.iter().map(|(attribute, number)| (*attribute, text(*number))).collect();
        let resource = from.resource(span.resource).cloned().unwrap_or_default();
        let mut of_resource = |number: Option<u32>| number.map(&mut text);
        let resource = Resource {
            service: of_resource(resource.service),
            namespace: of_resource(resource.namespace),
            instance: of_resource(resource.instance),
            host: of_resource(resource.host),
            container: of_resource(resource.container),
            runtime: of_resource(resource.runtime),
        };
        Span { name, attributes, resource: self.resource_number(resource), ..span.clone() }
    }
}
