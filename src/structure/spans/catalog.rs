//! Tasks, entries, hosts and instances that spans speak of, each held once, and the label of each kind of span.
//!
//! Input: a span's resource, name, kind and attributes; output: its [`Label`], found once for each distinct combination.
//!
//! Task of a span: its service; `unknown_service` where the input does not say. Where one service is seen in two namespaces or more, it is
//! `NAMESPACE/SERVICE` of spans that say theirs. Its entry, and whom it asks: [`super::naming`].
//!
//! Bounds: [`MAX_NAMES`] texts, entries of a task ([`super::entries`]) and tasks known from their clients only as the options say. What is over them is `(other)`.

use super::{
    SpanOptions,
    entries::Entries,
    naming::Said,
    tree::{Role, Tree},
};
use crate::trace::{
    hashed::{HashMap, HashSet, IndexSet},
    names::Names,
    span::{Attribute, Resource, Span, SpanTexts},
};

/// Most texts that are held.
const MAX_NAMES: usize = 200_000;
/// Most combinations of resource, name and attributes that are remembered.
const MAX_CACHED: usize = 200_000;
/// Most namespaces of one service; spans of further ones are of the service alone.
const MAX_NAMESPACES: usize = 64;
/// Name of what is over a bound.
pub const OTHER: &str = "(other)";
/// Task of spans whose service is not said.
pub const UNKNOWN_SERVICE: &str = "unknown_service";
/// Number of the empty text, which stands for none.
pub const NONE: u32 = 0;

/// What kind of task is known only from its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerKind {
    /// A database or cache.
    Store,
    /// A queue, topic or broker.
    Queue,
    /// Anything else: a third party.
    ThirdParty,
}

impl PeerKind {
    /// The task of what is over the bound.
    fn others(self) -> &'static str {
        match self {
            Self::Store => "(other databases)",
            Self::Queue => "(other queues)",
            Self::ThirdParty => "(other third parties)",
        }
    }
}

/// How much attributes tell of a request being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// An address.
    Address,
    /// Who is asked, or what: a peer service, HTTP, RPC, a data base, a message.
    Request,
}

/// What a client span says of the one it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its task.
    pub task: u32,
    /// Name of its entry.
    pub name: u32,
    /// Its kind.
    pub kind: PeerKind,
    /// Whether attributes name it.
    pub is_named: bool,
    /// How much attributes tell of the request.
    pub told: Told,
}

/// What is to be known of a span beside its times. Numbers are of [`Catalog::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its task.
    pub task: u32,
    /// The namespace of its service, [`NONE`] where it is not said.
    pub namespace: u32,
    /// Name of the entry that it is where it is a request being served.
    pub name: u32,
    /// Whether that is a route, a method of RPC, or given by the user's rule.
    pub has_route: bool,
    /// The host, [`NONE`] where it is not said.
    pub host: u32,
    /// What its clock belongs to: the host; where it is not said, the service.
    pub clock: u32,
    /// The instance of the service (number in [`Catalog::instances`]).
    pub instance: u32,
    /// Whom it calls where it is a request being made.
    pub peer: Peer,
    /// Whether it is the tracing's own traffic.
    pub is_noise: bool,
}

/// The numbers in one catalog of what another holds, by the numbers there.
#[derive(Clone, Debug, Default)]
pub struct Renumbered {
    /// Of names.
    pub names: Vec<u32>,
    /// Of instances.
    pub instances: Vec<u32>,
    /// Of labels.
    pub labels: Vec<u32>,
    /// Of entries.
    pub entries: Vec<u32>,
}

impl Renumbered {
    /// The number of an entry; what is not numbered stays as it is.
    pub fn entry(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).copied().unwrap_or(entry)
    }
}

/// Names and labels.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Tasks, entries, hosts, instances.
    pub names: Names,
    /// Distinct labels.
    pub labels: IndexSet<Label>,
    /// Instances: task and name.
    pub instances: IndexSet<(u32, u32)>,
    /// Entries.
    pub entries: Entries,
    /// Services.
    services: HashSet<u32>,
    /// Their namespaces; of those with several the tasks of each, by service and namespace, with what clocks belong to where no host is said.
    namespaces: HashMap<u32, Vec<u32>>,
    tasks: HashMap<(u32, u32), (u32, u32)>,
    /// Tasks known from their clients only.
    peers: HashSet<u32>,
    /// Labels by what they are found from: numbers of resource and name, kind, attributes with their texts.
    cache: HashMap<Box<[u32]>, u32>,
    /// That of the span at hand.
    key: Vec<u32>,
}

impl Catalog {
    /// Nothing yet.
    pub fn new() -> Self {
        let mut catalog = Self::default();
        catalog.names.intern("");
        catalog
    }

    /// The number of a text; of [`OTHER`] once there are too many.
    ///
    /// Control characters, which would break lines of a report, are blanks.
    pub fn name(&mut self, text: &str) -> u32 {
        if text.contains(char::is_control) {
            return self.name(&text.replace(char::is_control, " "));
        }
        if self.names.len() >= MAX_NAMES && self.names.get(text).is_none() { self.names.intern(OTHER) } else { self.names.intern(text) }
    }

    /// The entry of `task` that stands for `name`, of at most `limit` ([`super::entries`]).
    pub fn entry(&mut self, task: u32, name: u32, limit: usize) -> u32 {
        self.entries.entry(task, name, limit, &mut self.names)
    }

    /// Counts a request of the task's entry `name` where `entry` is another.
    pub fn count_if_other(&mut self, entry: u32, task: u32, name: u32) {
        self.entries.count(entry, task, name, &self.names);
    }

    /// Makes entries of the names that are used most by requests of these trees, of tasks that have more than `limit`.
    pub fn make_room<'t>(&mut self, trees: impl Iterator<Item = &'t Tree>, limit: usize) {
        let mut uses: HashMap<(u32, u32), u64> = HashMap::default();
        for tree in trees {
            let mut is_served = vec![false; tree.len()];
            for i in tree.order.iter().rev().map(|i| *i as usize) {
                let label = self.label(tree.pieces[i].label);
                match tree.role[i] {
                    Role::Entry => {
                        *uses.entry((label.task, label.name)).or_default() += 1;
                        tree.parent_of(i).into_iter().for_each(|parent| is_served[parent] = true);
                    }
                    Role::Call if !is_served[i] && !self.services.contains(&label.peer.task) => {
                        *uses.entry((label.peer.task, label.peer.name)).or_default() += 1;
                    }
                    _ => {}
                }
            }
        }
        self.entries.make_room(uses, limit, &mut self.names);
    }

    /// The task that stands for `peer`, which is known from its clients only: itself, or where there are `limit` of these, the rest of its kind.
    pub fn peer_task(&mut self, peer: Peer, limit: usize) -> u32 {
        let is_known = self.services.contains(&peer.task) || self.peers.contains(&peer.task);
        if !is_known && self.peers.len() >= limit {
            return self.names.intern(peer.kind.others());
        }
        if !is_known {
            self.peers.insert(peer.task);
        }
        peer.task
    }

    /// Name of the task and of the entry.
    pub fn entry_names(&self, entry: u32) -> (&str, &str) {
        self.entries.get(entry).map_or(("", ""), |(task, name)| (self.names.name(task), self.names.name(name)))
    }

    /// The label numbered `label`.
    pub fn label(&self, label: u32) -> Label {
        let label = self.labels[label as usize];
        let Some((task, clock)) = self.tasks.get(&(label.task, label.namespace)).copied() else { return label };
        let name = self.instances.get_index(label.instance as usize).map_or(NONE, |(_, name)| *name);
        let instance = self.instances.get_index_of(&(task, name)).map_or(label.instance, |instance| instance as u32);
        Label { task, instance, clock: if label.host == NONE { clock } else { label.clock }, ..label }
    }

    /// Notes in which namespace a service, and the instance of this name, is; from the second on, each is a task.
    fn note_namespace(&mut self, service: u32, namespace: u32, instance: u32) {
        let known = self.namespaces.entry(service).or_default();
        let is_new = !known.contains(&namespace);
        if is_new && known.len() < MAX_NAMESPACES {
            known.push(namespace);
        }
        let apart = if known.len() < 2 { Vec::new() } else { known.clone() };
        for namespace in apart.into_iter().filter(|_| is_new) {
            let text = format!("{}/{}", self.names.name(namespace), self.names.name(service));
            let (task, clock) = (self.name(&text), self.name(&format!("{text} (host not said)")));
            self.services.insert(task);
            self.tasks.insert((service, namespace), (task, clock));
            let names: Vec<u32> = self.instances.iter().filter(|(of, _)| *of == service).map(|(_, name)| *name).collect();
            self.instances.extend(names.into_iter().map(|name| (task, name)));
        }
        if let Some((task, _)) = self.tasks.get(&(service, namespace)) {
            self.instances.insert((*task, instance));
        }
    }

    /// The next spans' numbers are of other texts.
    pub fn forget_texts(&mut self) {
        self.cache.clear();
    }

    /// The number of a span's label.
    pub fn label_of(&mut self, span: &Span, texts: &SpanTexts, options: &SpanOptions) -> u32 {
        self.key.clear();
        self.key.extend([span.resource, span.name, span.kind as u32]);
        self.key.extend(span.attributes.iter().filter(|(a, _)| !is_personal(*a)).flat_map(|(attribute, text)| [*attribute as u32, *text]));
        if let Some(label) = self.cache.get(self.key.as_slice()) {
            return *label;
        }
        if self.cache.len() >= MAX_CACHED {
            self.cache.clear();
        }
        let label = self.new_label(span, texts, options);
        let number = self.labels.insert_full(label).0 as u32;
        self.cache.insert(self.key.as_slice().into(), number);
        number
    }

    /// Takes all of `other` over; the numbers here of what is there.
    pub fn absorb(&mut self, other: &Self, entries_per_task: usize) -> Renumbered {
        let mut names: Vec<u32> = Vec::with_capacity(other.names.len());
        for name in other.names.iter() {
            names.push(self.name(name));
        }
        let both = |pair: &(u32, u32)| (names[pair.0 as usize], names[pair.1 as usize]);
        let instances: Vec<u32> = other.instances.iter().map(|pair| self.instances.insert_full(both(pair)).0 as u32).collect();
        let renumbered = |label: &Label| Label {
            task: names[label.task as usize],
            namespace: names[label.namespace as usize],
            name: names[label.name as usize],
            host: names[label.host as usize],
            clock: names[label.clock as usize],
            instance: instances[label.instance as usize],
            peer: Peer { task: names[label.peer.task as usize], name: names[label.peer.name as usize], ..label.peer },
            ..*label
        };
        let labels = other.labels.iter().map(|label| self.labels.insert_full(renumbered(label)).0 as u32).collect();
        let entries = other.entries.iter().map(|pair| both(&pair)).collect::<Vec<_>>();
        other.entries.fixed().for_each(|name| self.entries.fix(names[name as usize]));
        self.services.extend(other.services.iter().map(|task| names[*task as usize]));
        let mut namespaces: Vec<(u32, u32)> =
            other.namespaces.iter().flat_map(|(service, known)| known.iter().map(|namespace| (*service, *namespace))).collect();
        namespaces.sort_unstable();
        for (service, namespace) in namespaces {
            let of: Vec<u32> = other.instances.iter().filter(|(task, _)| *task == service).map(|(_, name)| *name).collect();
            of.into_iter().for_each(|name| self.note_namespace(names[service as usize], names[namespace as usize], names[name as usize]));
        }
        self.peers.extend(other.peers.iter().map(|task| names[*task as usize]));
        let mut numbers = Vec::with_capacity(entries.len());
        for (task, name) in entries {
            let number = self.entry(task, name, entries_per_task);
            self.count_if_other(number, task, name);
            numbers.push(number);
        }
        let Entries { over_bound, generalised, .. } = &mut self.entries;
        for (here, theirs) in [(over_bound, &other.entries.over_bound), (generalised, &other.entries.generalised)] {
            for (task, n) in theirs {
                *here.entry(names[*task as usize]).or_insert(0) += n;
            }
        }
        Renumbered { names, instances, labels, entries: numbers }
    }

    fn new_label(&mut self, span: &Span, texts: &SpanTexts, options: &SpanOptions) -> Label {
        let unknown = Resource::default();
        let resource = texts.resource(span.resource).unwrap_or(&unknown);
        let text = |number: Option<u32>| number.map(|n| texts.texts.name(n)).filter(|t| !t.is_empty());
        let said = Said { span, texts };
        let service = text(resource.service).unwrap_or(UNKNOWN_SERVICE);
        let instance = text(resource.instance).or_else(|| text(resource.container)).or_else(|| text(resource.host)).unwrap_or("");
        let host = text(resource.host).or_else(|| text(resource.container)).unwrap_or("");
        let (task, instance, host) = (self.name(service), self.name(instance), self.name(host));
        self.services.insert(task);
        let namespace = text(resource.namespace).map_or(NONE, |namespace| self.name(namespace));
        let number = self.instances.insert_full((task, instance)).0 as u32;
        if namespace != NONE {
            self.note_namespace(task, namespace, instance);
        }
        let clock = if host == NONE { self.name(&format!("{service} (host not said)")) } else { host };
        let name = self.name(&said.served(options));
        let peer = said.peer(service, options);
        let peer = (self.name(&peer.0), self.name(&peer.1), peer.2, peer.3);
        for name in [name, peer.1] {
            if said.get(Attribute::HttpRoute).is_some() || options.entry_rules.iter().any(|rule| rule.name == self.names.name(name)) {
                self.entries.fix(name);
            }
        }
        Label {
            task,
            namespace,
            name,
            has_route: said.has_route(options),
            host,
            clock,
            instance: number,
            peer: Peer { task: peer.0, name: peer.1, kind: peer.2, is_named: peer.3, told: said.told() },
            is_noise: said.is_noise(),
        }
    }
}

/// What differs from span to span of one kind, and says nothing about its label.
fn is_personal(attribute: Attribute) -> bool {
    matches!(
        attribute,
        Attribute::Session
            | Attribute::User
            | Attribute::ClientAddress
            | Attribute::Thread
            | Attribute::MessagingConversation
            | Attribute::HttpStatus
            | Attribute::MessagingOperation
    )
}
