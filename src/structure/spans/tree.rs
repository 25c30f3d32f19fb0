//! One group of spans as trees: duplicates out, parents found, circles cut, kinds decided, clocks corrected.
//!
//! Input: a [`Group`]; output: [`Tree`], whose spans stand in an order that does not depend on that of the input.
//!
//! | matter | rule |
//! |---|---|
//! | duplicates | of spans with the same trace, id and side (requesting; or serving, in the same instance) one stays: rather a finished one, then one with a kind, then the first by start, then the longest |
//! | shared ids | a serving span with the id of a requesting one is its server half |
//! | parent with two halves | the serving one; the requesting one for spans of its service only |
//! | messages and links | see [`super::messages`] |
//! | circles | cut above their earliest span |
//! | no kind | in another service than its parent, or a root: serving. Otherwise requesting if its only child is in another service, or it is a leaf whose attributes name another party; else internal |
//! | serving inside the same instance | in-process: internal, unless a request leads to it |
//! | serving without a route around one serving with a route inside the same instance | named by that |
//! | requesting around a request of the same service, or inside one | see [`super::nested`] |
//! | clocks | see [`super::correct`] |
//! | no times | if one span has none, all are of time 0 (`without_times`) |

use std::{
    cmp::{Ordering, Reverse},
    collections::HashMap,
};

use super::{
    catalog::{Catalog, NONE},
    live::{Group, Piece, UNFINISHED},
    nested::Nested,
    quality::Notes,
};
use crate::trace::span::{SpanId, SpanKind, TraceId};

/// No span.
pub const NOBODY: u32 = u32::MAX;

/// What a span is in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A request being served: an occurrence of an entry.
    Entry,
    /// A request being made.
    Call,
    /// Part of the occurrence around it.
    #[default]
    Fold,
    /// Not used: the tracing's own traffic.
    Dropped,
    /// Not used: a message being fetched that a span of its own handles.
    Fetch,
    /// Not used: what it hangs below is lost, and nothing tells what that was.
    Unattached,
}

impl Role {
    /// Whether it is used.
    pub fn is_used(self) -> bool {
        !matches!(self, Self::Dropped | Self::Fetch | Self::Unattached)
    }
}

/// Spans of a group with their parents, times and roles; all arrays have the shape `(n_pieces,)`.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The traces, in order.
    pub traces: Vec<TraceId>,
    /// The spans.
    pub pieces: Vec<Piece>,
    /// Index of the parent or requester, or [`NOBODY`].
    pub parent: Vec<u32>,
    /// Whether the parent is not there.
    pub is_orphan: Vec<bool>,
    /// Whether the requester is known from a link only.
    pub is_linked: Vec<bool>,
    /// Of a consumer whose requester is known from a link: the span that it lies in, or [`NOBODY`].
    pub lies_in: Vec<u32>,
    /// Whether it fetches messages that others handle, and is part of nothing.
    pub is_fetch: Vec<bool>,
    /// Of a producer: whether it was handled together with others.
    pub is_batched: Vec<bool>,
    /// Whether it has no parent, and what it links to is not there.
    pub is_lost_link: Vec<bool>,
    /// Whether its parent is not the one that it names, which is lost.
    pub is_restored: Vec<bool>,
    /// Whether its parent is lost, and its clock may be wrong and is not compared with the root's: its times tell nothing of the others.
    pub is_incomparable: Vec<bool>,
    /// Whether it is to be left out with all below it, as its parent is lost.
    pub is_unattached: Vec<bool>,
    /// Of children of a root that is lost: one of them, the same for all; else [`NOBODY`].
    pub root_of: Vec<u32>,
    /// Whether spans are lost, shape `(n_traces,)`.
    pub has_gap: Vec<bool>,
    /// Task and name of the entry that a lost root was, by the child that stands for it in `root_of`.
    pub lost_roots: HashMap<u32, (u32, u32)>,
    /// Task and name of the entry that as a rule serves a request which nothing serves here.
    pub answered: HashMap<u32, (u32, u32)>,
    /// Indices with parents before children, siblings by start.
    pub order: Vec<u32>,
    /// Role.
    pub role: Vec<Role>,
    /// Corrected start.
    pub start_ns: Vec<i64>,
    /// Corrected end.
    pub end_ns: Vec<i64>,
    /// Of a served request: by how much the bounds of the clocks leave open when, by the server's, its client had the reply (earlier, later).
    pub open_ns: Vec<[i64; 2]>,
    /// The same by what its two halves admit.
    pub admitted_ns: Vec<[i64; 2]>,
    /// Of a served request: how long its reply is under way, where clocks are the same.
    pub under_way_ns: Vec<i64>,
    /// Of a served request: whether clocks tell if it was served after its client had gone on.
    pub is_in_order: Vec<bool>,
    /// Links between pieces: from, to.
    pub links: Vec<(u32, u32)>,
    /// Whether some span has no times, so that those of the others are not used: all are 0.
    pub is_timeless: bool,
}

pub(super) fn is_serving(piece: &Piece) -> bool {
    piece.shared || matches!(piece.kind, SpanKind::Server | SpanKind::Consumer)
}

impl Tree {
    /// Makes the tree of a group; `notes` takes what is odd.
    pub fn of(mut group: Group, catalog: &Catalog, notes: &mut Notes) -> Self {
        let is_timeless = group.pieces.iter().any(|piece| piece.is_timeless);
        if is_timeless {
            group.pieces.iter_mut().for_each(|piece| (piece.start_ns, piece.duration_ns) = (0, 0));
        }
        let mut tree = Self { traces: std::mem::take(&mut group.traces), is_timeless, ..Self::default() };
        tree.take_pieces(&mut group, catalog, notes);
        tree.is_lost_link = vec![false; tree.len()];
        tree.resolve_links(&group);
        tree.find_parents(catalog, notes);
        tree.take_messages(catalog);
        tree.follow_links(notes);
        tree.cut_circles(notes);
        tree.put_in_order();
        tree.close_unfinished(notes);
        tree.decide_roles(catalog);
        tree.take_routes(catalog);
        tree
    }

    /// Puts the tree in order again after parents have changed.
    pub fn settle(&mut self, catalog: &Catalog) {
        self.put_in_order();
        self.decide_roles(catalog);
    }

    /// Whether all that was recorded of a trace hangs below one parent that was not, shape `(n_traces,)`.
    pub fn traces_of_one_orphan(&self) -> Vec<bool> {
        let mut above: Vec<Option<SpanId>> = vec![None; self.traces.len()];
        let mut is_one = vec![false; self.traces.len()];
        if !self.is_orphan.contains(&true) {
            return is_one;
        }
        for i in (0..self.len()).filter(|i| self.role[*i] != Role::Dropped) {
            let piece = &self.pieces[i];
            let trace = piece.trace as usize;
            let is_top = self.parent_of(i).is_none_or(|parent| self.pieces[parent].trace != piece.trace);
            if is_top {
                is_one[trace] = self.is_orphan[i] && above[trace].is_none_or(|parent| is_one[trace] && parent == piece.parent);
                above[trace] = Some(piece.parent);
            }
        }
        is_one
    }

    /// Counts the spans that are not used.
    pub fn count_unused(&self, notes: &mut Notes) {
        for i in 0..self.len() {
            match self.role[i] {
                Role::Dropped => notes.set_aside("tracing_itself", || self.name(i)),
                Role::Fetch => notes.set_aside("message_fetched", || self.name(i)),
                Role::Unattached => notes.set_aside("unattached", || self.name(i)),
                _ => {}
            }
        }
    }

    /// Number of spans.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The parent of a piece.
    pub fn parent_of(&self, piece: usize) -> Option<usize> {
        (self.parent[piece] != NOBODY).then(|| self.parent[piece] as usize)
    }

    /// `TRACE/SPAN`, for messages.
    pub fn name(&self, piece: usize) -> String {
        format!("{}/{}", self.traces[self.pieces[piece].trace as usize], self.pieces[piece].id)
    }

    /// Puts traces and pieces in order and leaves duplicates out.
    fn take_pieces(&mut self, group: &mut Group, catalog: &Catalog, notes: &mut Notes) {
        let mut sorted = self.traces.clone();
        sorted.sort_unstable();
        let rank = |trace: &TraceId| sorted.binary_search(trace).unwrap_or(0) as u32;
        let ranks: Vec<u32> = self.traces.iter().map(rank).collect();
        self.traces = sorted;
        let mut pieces = std::mem::take(&mut group.pieces);
        pieces.iter_mut().for_each(|p| p.trace = ranks[p.trace as usize]);
        group.links.iter_mut().for_each(|l| {
            l.trace = ranks[l.trace as usize];
            l.to_trace = ranks[l.to_trace as usize];
        });
        group.links.sort_unstable();
        let identity = |p: &Piece| (p.trace, p.id, is_serving(p));
        let quality = |p: &Piece| (p.duration_ns == UNFINISHED, p.kind == SpanKind::Unspecified);
        let times = |p: &Piece| (p.start_ns, Reverse(p.duration_ns), p.kind as u8, p.status as u8, p.has_parent, p.parent);
        let instance = |p: &Piece| if is_serving(p) { catalog.label(p.label).instance } else { NONE };
        let instance_name = |p: &Piece| catalog.instances.get_index(instance(p) as usize).map(|(_, name)| catalog.names.name(*name));
        let label = |p: &Piece| {
            let label = catalog.label(p.label);
            let name = |number: u32| (number != NONE).then(|| catalog.names.name(number));
            let instance = catalog.instances.get_index(label.instance as usize).and_then(|(_, it)| name(*it));
            let peer = (name(label.peer.task), name(label.peer.name));
            (name(label.task), name(label.name), instance, name(label.host), name(label.clock), peer)
        };
        pieces.sort_unstable_by(|a, b| {
            identity(a)
                .cmp(&identity(b))
                .then_with(|| if instance(a) == instance(b) { Ordering::Equal } else { instance_name(a).cmp(&instance_name(b)) })
                .then_with(|| quality(a).cmp(&quality(b)))
                .then_with(|| times(a).cmp(&times(b)))
                .then_with(|| label(a).cmp(&label(b)))
        });
        self.pieces.reserve(pieces.len());
        for piece in pieces {
            if self.pieces.last().is_some_and(|last| (identity(last), instance(last)) == (identity(&piece), instance(&piece))) {
                notes.set_aside("duplicate", || format!("{}/{}", self.traces[piece.trace as usize], piece.id));
            } else {
                self.pieces.push(piece);
            }
        }
        self.start_ns = self.pieces.iter().map(|p| p.start_ns).collect();
        self.end_ns = self.pieces.iter().map(|p| p.start_ns.saturating_add(p.duration_ns.max(0))).collect();
    }

    /// The pieces with this id: none, one, or both halves.
    fn find(&self, trace: u32, id: SpanId) -> std::ops::Range<usize> {
        let first = self.pieces.partition_point(|p| (p.trace, p.id) < (trace, id));
        let n = self.pieces[first..].iter().take_while(|p| (p.trace, p.id) == (trace, id)).count();
        first..first + n
    }

    fn resolve_links(&mut self, group: &Group) {
        for link in &group.links {
            let from = self.find(link.trace, link.id);
            let to = self.find(link.to_trace, link.to);
            match (from.last(), to.last()) {
                (Some(from), Some(to)) => self.links.push((from as u32, to as u32)),
                (Some(from), None) => self.is_lost_link[from] = true,
                _ => {}
            }
        }
        self.links.sort_unstable();
        self.links.dedup();
    }

    fn find_parents(&mut self, catalog: &Catalog, notes: &mut Notes) {
        let n = self.pieces.len();
        (self.parent, self.is_orphan) = (vec![NOBODY; n], vec![false; n]);
        (self.is_linked, self.is_batched) = (vec![false; n], vec![false; n]);
        (self.lies_in, self.is_fetch) = (vec![NOBODY; n], vec![false; n]);
        (self.is_restored, self.is_unattached, self.is_incomparable) = (vec![false; n], vec![false; n], vec![false; n]);
        (self.root_of, self.has_gap) = (vec![NOBODY; n], vec![false; self.traces.len()]);
        let mut first_half = 0;
        for i in 0..n {
            let piece = self.pieces[i];
            let first = &self.pieces[first_half];
            if (first.trace, first.id) != (piece.trace, piece.id) {
                first_half = i;
            }
            if first_half < i && is_serving(&piece) && !is_serving(&self.pieces[first_half]) {
                self.parent[i] = first_half as u32;
                continue;
            }
            if !piece.has_parent {
                continue;
            }
            let found = self.find(piece.trace, piece.parent);
            self.is_orphan[i] = found.is_empty();
            self.parent[i] = self.half_above(i, found, catalog);
        }
        for i in (0..n).filter(|i| self.is_orphan[*i]) {
            notes.count("missing_parent", || self.name(i));
            self.has_gap[self.pieces[i].trace as usize] = true;
        }
    }

    /// Which of the spans with a parent's id is the parent of span `i`.
    fn half_above(&self, i: usize, found: std::ops::Range<usize>, catalog: &Catalog) -> u32 {
        if found.len() < 2 {
            return found.clone().next().map_or(NOBODY, |only| only as u32);
        }
        let label = |i: usize| catalog.label(self.pieces[i].label);
        let same_instance = |half: &usize| label(*half).instance == label(i).instance;
        let same_task = |half: &usize| label(*half).task == label(i).task;
        let serving = || found.clone().filter(|half| is_serving(&self.pieces[*half]));
        let half = serving().find(same_instance).or_else(|| serving().find(same_task)).or_else(|| found.clone().find(same_task));
        half.or_else(|| serving().next()).map_or(NOBODY, |half| half as u32)
    }

    /// Cuts each circle of parents above its earliest span.
    fn cut_circles(&mut self, notes: &mut Notes) {
        const NEW: u32 = 0;
        let mut seen_in = vec![NEW; self.len()];
        for first in 0..self.len() {
            let walk = first as u32 + 1;
            let mut at = first;
            while seen_in[at] == NEW {
                seen_in[at] = walk;
                match self.parent_of(at) {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            if seen_in[at] != walk || self.parent[at] == NOBODY {
                continue;
            }
            let (mut earliest, mut next) = (at, self.parent[at] as usize);
            while next != at {
                if (self.start_ns[next], next) < (self.start_ns[earliest], earliest) {
                    earliest = next;
                }
                next = self.parent[next] as usize;
            }
            self.parent[earliest] = NOBODY;
            self.is_orphan[earliest] = true;
            notes.count("cyclic_parents", || self.name(earliest));
        }
    }

    fn put_in_order(&mut self) {
        let n = self.len();
        self.order.clear();
        let mut by_start: Vec<u32> = (0..n as u32).collect();
        by_start.sort_unstable_by_key(|i| (Reverse(self.start_ns[*i as usize]), Reverse(*i)));
        // Lists of children, earliest first.
        let (mut first_child, mut next) = (vec![NOBODY; n], vec![NOBODY; n]);
        let mut stack = Vec::new();
        for i in by_start {
            match self.parent_of(i as usize) {
                None => stack.push(i),
                Some(parent) => {
                    next[i as usize] = first_child[parent];
                    first_child[parent] = i;
                }
            }
        }
        let mut siblings = Vec::new();
        while let Some(i) = stack.pop() {
            self.order.push(i);
            let mut child = first_child[i as usize];
            while child != NOBODY {
                siblings.push(child);
                child = next[child as usize];
            }
            stack.extend(siblings.drain(..).rev());
        }
    }

    /// A span that did not finish, or ends before it starts, lasts as long as what it contains.
    fn close_unfinished(&mut self, notes: &mut Notes) {
        if self.is_timeless {
            (0..self.len()).for_each(|i| notes.count("without_times", || self.name(i)));
            return;
        }
        for i in (0..self.len()).rev().map(|k| self.order[k] as usize) {
            match self.pieces[i].duration_ns {
                UNFINISHED => notes.count("unfinished", || self.name(i)),
                ns if ns < 0 => notes.count("negative_duration", || self.name(i)),
                0 => notes.count("zero_duration", || self.name(i)),
                _ => {}
            }
            if let Some(parent) = self.parent_of(i).filter(|p| self.pieces[*p].duration_ns < 0) {
                self.end_ns[parent] = self.end_ns[parent].max(self.end_ns[i]);
                // A span without any time of its own begins with the first that it contains.
                if self.pieces[parent].duration_ns == UNFINISHED && self.pieces[parent].start_ns == 0 && self.start_ns[i] > 0 {
                    let known = self.start_ns[parent] > 0;
                    self.start_ns[parent] = if known { self.start_ns[parent].min(self.start_ns[i]) } else { self.start_ns[i] };
                }
            }
        }
    }

    /// A request served without a route, as by a proxy, is named by the one request that its instance serves below it with one.
    fn take_routes(&mut self, catalog: &Catalog) {
        let label = |piece: &Piece| catalog.label(piece.label);
        let is_below = |i: usize, parent: usize| {
            let is_pair = self.role[parent] == Role::Entry && self.role[i] == Role::Fold && is_serving(&self.pieces[i]);
            if !is_pair || self.pieces[parent].kind != self.pieces[i].kind {
                return false;
            }
            let (here, above) = (label(&self.pieces[i]), label(&self.pieces[parent]));
            let is_one = (here.instance, here.host, here.clock) == (above.instance, above.host, above.clock);
            is_one && here.has_route && !above.has_route
        };
        let pairs: Vec<(usize, usize)> =
            (0..self.len()).filter_map(|i| Some((self.parent_of(i)?, i))).filter(|(parent, i)| is_below(*i, *parent)).collect();
        let mut n_below: HashMap<usize, u32> = HashMap::new();
        pairs.iter().for_each(|(parent, _)| *n_below.entry(*parent).or_default() += 1);
        for (parent, i) in pairs.into_iter().filter(|(parent, _)| n_below[parent] == 1) {
            self.pieces[parent].label = self.pieces[i].label;
        }
    }

    fn decide_roles(&mut self, catalog: &Catalog) {
        let n = self.len();
        let (mut n_remote, mut n_local) = (vec![0_u32; n], vec![0_u32; n]);
        let label = |i: usize| catalog.label(self.pieces[i].label);
        for i in 0..n {
            let Some(parent) = self.parent_of(i) else { continue };
            let remote = label(i).task != label(parent).task;
            n_remote[parent] += u32::from(remote);
            n_local[parent] += u32::from(!remote);
        }
        let nested = Nested::of(self, catalog);
        let mut role = vec![Role::Fold; n];
        for i in self.order.iter().map(|i| *i as usize) {
            let parent = self.parent_of(i);
            let around = parent.map(|p| (role[p], label(p)));
            let here = label(i);
            let is_remote = around.is_none_or(|(_, there)| there.task != here.task);
            let in_process = around.is_some_and(|(role, there)| role != Role::Call && there.instance == here.instance);
            role[i] = if here.is_noise || matches!(around, Some((Role::Dropped, _))) {
                Role::Dropped
            } else if self.is_fetch[i] || matches!(around, Some((Role::Fetch, _))) {
                Role::Fetch
            } else if self.is_unattached[i] || matches!(around, Some((Role::Unattached, _))) {
                Role::Unattached
            } else {
                match self.pieces[i].kind {
                    SpanKind::Server | SpanKind::Consumer if in_process => Role::Fold,
                    SpanKind::Server | SpanKind::Consumer => Role::Entry,
                    SpanKind::Client | SpanKind::Producer if nested.is_part[i] => Role::Fold,
                    SpanKind::Client | SpanKind::Producer if nested.is_wrapper[i] => {
                        if is_remote && parent.is_some() {
                            Role::Entry
                        } else {
                            Role::Fold
                        }
                    }
                    SpanKind::Client | SpanKind::Producer => Role::Call,
                    SpanKind::Internal | SpanKind::Unspecified if is_remote || self.pieces[i].shared => Role::Entry,
                    SpanKind::Internal => Role::Fold,
                    SpanKind::Unspecified if n_remote[i] == 1 && n_local[i] == 0 => Role::Call,
                    SpanKind::Unspecified if n_remote[i] + n_local[i] == 0 && here.peer.is_named && here.peer.task != here.task => {
                        Role::Call
                    }
                    SpanKind::Unspecified => Role::Fold,
                }
            };
            // A requesting root around requests of its own service has nothing to be folded into.
            if role[i] == Role::Fold && parent.is_none() {
                role[i] = Role::Entry;
            }
        }
        self.role = role;
    }
}
