//! Who handles a message, and who sent it.
//!
//! Input: a [`Tree`] with the parents that spans name; output: the same with consumers below their producers.
//!
//! What a span does with a message is what its operation says (`messaging.operation.type`), whatever its kind: clients that fetch messages are of
//! kind CLIENT by the conventions, of kind CONSUMER by older ones.
//!
//! | operation | is |
//! |---|---|
//! | process, of any kind | a consumer |
//! | receive, with spans below it that process what it fetched | these are the consumers, with its links where they have none of their own (one each in turn) and its parent; it is no part of anything (`message_fetched`), but of kind CLIENT within its service a request to the queue |
//! | receive of kind CLIENT, with other work below it, a link to a producer, or a parent in another service | a consumer |
//! | receive of kind CLIENT, else | a request to the queue: it looked for messages |
//!
//! A consumer follows the first producer that it links to, any span without a parent the first span that it links to.

use super::{
    catalog::Catalog,
    quality::Notes,
    tree::{NOBODY, Tree},
};
use crate::trace::{
    hashed::{HashMap, HashSet},
    span::SpanKind,
};

/// What a span does with a message, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageOperation {
    /// Nothing, or something else: it sends or settles.
    #[default]
    Other,
    /// It fetches messages.
    Receive,
    /// It handles one or several.
    Process,
}

impl MessageOperation {
    /// By the name that the conventions, or those before them, give it.
    pub fn of(name: &str) -> Self {
        let is = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is(&["receive", "poll"]) {
            Self::Receive
        } else if is(&["process", "deliver"]) {
            Self::Process
        } else {
            Self::Other
        }
    }
}

/// What lies below a span that fetches messages, of its own service.
#[derive(Default)]
struct Below {
    handlers: Vec<usize>,
    works: bool,
}

/// Links to producers that other spans take over.
#[derive(Default)]
struct LinkChanges {
    gone: HashSet<(u32, u32)>,
    new: Vec<(u32, u32)>,
}

impl Tree {
    /// Decides which spans that fetch or handle messages are consumers.
    pub fn take_messages(&mut self, catalog: &Catalog) {
        let mut below: HashMap<usize, Below> = HashMap::default();
        for i in 0..self.len() {
            match self.pieces[i].operation {
                MessageOperation::Process if self.pieces[i].kind == SpanKind::Client => self.pieces[i].kind = SpanKind::Consumer,
                MessageOperation::Receive if matches!(self.pieces[i].kind, SpanKind::Client | SpanKind::Consumer) => {
                    below.insert(i, Below::default());
                }
                _ => {}
            }
        }
        if below.is_empty() {
            return;
        }
        for i in 0..self.len() {
            let Some(parent) = self.parent_of(i).filter(|parent| self.is_of_one_task(i, *parent, catalog)) else { continue };
            let Some(below) = below.get_mut(&parent) else { continue };
            match (self.pieces[i].kind, self.pieces[i].operation) {
                (SpanKind::Consumer, MessageOperation::Process) => below.handlers.push(i),
                (SpanKind::Client | SpanKind::Producer, _) => {}
                _ => below.works = true,
            }
        }
        let mut fetching: Vec<(usize, Below)> = below.into_iter().collect();
        fetching.sort_unstable_by_key(|(i, _)| *i);
        let mut changes = LinkChanges::default();
        for (i, below) in fetching {
            if below.handlers.is_empty() || below.works {
                self.take_message(i, below.works, catalog);
            } else {
                self.hand_over_messages(i, &below.handlers, &mut changes, catalog);
            }
        }
        self.links.retain(|link| !changes.gone.contains(link));
        self.links.extend(changes.new);
        self.links.sort_unstable();
        self.links.dedup();
    }

    fn is_of_one_task(&self, i: usize, other: usize, catalog: &Catalog) -> bool {
        let task = |i: usize| catalog.label(self.pieces[i].label).task;
        task(i) == task(other)
    }

    /// The producers that a span links to.
    fn producers_of(&self, i: usize) -> Vec<u32> {
        let first = self.links.partition_point(|(from, _)| (*from as usize) < i);
        let links = self.links[first..].iter().take_while(|(from, _)| *from as usize == i);
        links.map(|(_, to)| *to).filter(|to| self.pieces[*to as usize].kind == SpanKind::Producer).collect()
    }

    /// A span that fetches messages, and is all that tells of their handling.
    fn take_message(&mut self, i: usize, works: bool, catalog: &Catalog) {
        let is_remote = self.parent_of(i).is_some_and(|parent| !self.is_of_one_task(i, parent, catalog));
        if works || is_remote || !self.producers_of(i).is_empty() {
            self.pieces[i].kind = SpanKind::Consumer;
        }
    }

    /// A span that fetches messages which others, `handlers`, handle.
    fn hand_over_messages(&mut self, i: usize, handlers: &[usize], changes: &mut LinkChanges, catalog: &Catalog) {
        let producers = self.producers_of(i);
        changes.gone.extend(producers.iter().map(|producer| (i as u32, *producer)));
        let unlinked: Vec<usize> = handlers.iter().copied().filter(|handler| self.producers_of(*handler).is_empty()).collect();
        if !producers.is_empty() && !unlinked.is_empty() {
            let pair = |turn: usize| (unlinked[turn % unlinked.len()] as u32, producers[turn % producers.len()]);
            changes.new.extend((0..producers.len().max(unlinked.len())).map(pair));
        }
        for handler in handlers {
            (self.parent[*handler], self.is_orphan[*handler]) = (self.parent[i], self.is_orphan[i]);
        }
        let is_within = self.parent_of(i).is_some_and(|parent| self.is_of_one_task(i, parent, catalog));
        self.is_fetch[i] = !(is_within && self.pieces[i].kind == SpanKind::Client);
    }

    /// Consumers follow their producers, spans without parents what they link to.
    pub fn follow_links(&mut self, notes: &mut Notes) {
        let links = std::mem::take(&mut self.links);
        for of_one in links.chunk_by(|a, b| a.0 == b.0) {
            let from = of_one[0].0 as usize;
            let requested = self.parent_of(from).is_some_and(|p| matches!(self.pieces[p].kind, SpanKind::Producer | SpanKind::Client));
            let is_consumer = self.pieces[from].kind == SpanKind::Consumer;
            if requested || !(is_consumer || self.parent[from] == NOBODY) {
                continue;
            }
            let is_producer = |to: &u32| self.pieces[*to as usize].kind == SpanKind::Producer;
            let targets = of_one.iter().map(|(_, to)| *to).filter(|to| *to as usize != from);
            let key = |to: &u32| (!is_producer(to), self.start_ns[*to as usize], *to);
            let mut targets: Vec<u32> = targets.filter(|to| !is_consumer || is_producer(to) || self.parent[from] == NOBODY).collect();
            targets.sort_unstable_by_key(key);
            let Some(first) = targets.first() else { continue };
            if is_consumer {
                self.lies_in[from] = self.parent[from];
            }
            self.parent[from] = *first;
            self.is_orphan[from] = false;
            self.is_linked[from] = true;
            for other in &targets[1..] {
                self.is_batched[*other as usize] = true;
                notes.count("batched_message", || self.name(*other as usize));
            }
        }
        self.links = links;
        for i in 0..self.len() {
            self.is_lost_link[i] &= self.parent[i] == NOBODY && !self.is_orphan[i] && self.pieces[i].kind == SpanKind::Consumer;
        }
    }
}
