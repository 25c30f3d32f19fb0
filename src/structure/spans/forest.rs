//! Trees of spans to occurrences and the calls between them.
//!
//! Input: a [`Tree`]; output: [`Forest`]. An *occurrence* is made of each span that serves a request, with the internal spans
//! below it; a *call* of each span that makes a request (or, where that half is missing, of the span that serves it).
//!
//! | seen | becomes |
//! |---|---|
//! | both halves | one call with the times of the requesting half; further serving spans below one requesting span are calls of their own |
//! | serving half alone | a call with the times of the serving half |
//! | requesting half alone | a call of an occurrence of a task that attributes name ([`super::catalog`]); a batched producer calls nobody, as its consumer handles several messages at once |
//! | requesting span below a span of another service | the serving half between is missing: an occurrence without times of its own |
//! | requesting span as root | its service starts on its own: an originator |
//! | other roots | requested by the synthetic client |
//! | producer or consumer on either side, or joined by a link | asynchronous |

use crate::trace::hashed::HashMap;

use super::{
    InternalSpans, SpanOptions,
    catalog::{Catalog, NONE, PeerKind},
    live::UNFINISHED,
    messages::MessageOperation,
    quality::Notes,
    tree::{NOBODY, Role, Tree},
};
use crate::{
    structure::interactions::Branch,
    trace::span::{SpanKind, SpanStatus},
};

/// Entry of a service that is known only from the requests it made.
const IMPLIED: &str = "(implied)";

/// Where an occurrence is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A span of its own.
    Served,
    /// Its client.
    Client(PeerKind),
    /// The requests that it made.
    Implied,
    /// An internal span that is kept.
    Internal,
    /// It starts on its own.
    Originator,
}

/// One execution of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occ {
    /// Its task (number of its name).
    pub task: u32,
    /// Name of its entry.
    pub name: u32,
    /// Its entry (number in [`Catalog::entries`]).
    pub entry: u32,
    /// Its instance.
    pub instance: u32,
    /// Its host.
    pub host: u32,
    /// Start.
    pub start_ns: i64,
    /// End of its span.
    pub end_ns: i64,
    /// When it replied: the end of phase 1.
    pub reply_ns: i64,
    /// By how much clocks leave open when it replied, if its client says when (earlier, later).
    pub open_ns: [i64; 2],
    /// The same by what the two halves of its request admit.
    pub admitted_ns: [i64; 2],
    /// How long its reply is under way to its client, where clocks are the same.
    pub under_way_ns: i64,
    /// End of all its work.
    pub work_end_ns: i64,
    /// Its span.
    pub piece: u32,
    /// Where it is known from.
    pub origin: Origin,
    /// Whether its times and those of who requested it are by clocks that tell which was first.
    pub is_in_order: bool,
    /// How it ended.
    pub status: SpanStatus,
    /// Whether it ended well itself, though who requested it had given up.
    pub is_given_up: bool,
    /// Whether its times are known.
    pub is_measured: bool,
    /// Whether a half of the request for it is lost, so that its reply is not known.
    pub is_partial: bool,
    /// Whether its span is lost while those of others of its entry are not: it may have made other requests than are known.
    pub is_lost: bool,
    /// The call that requested it, or [`NOBODY`].
    pub requested_by: u32,
    /// Self time of phases 1 and 2.
    pub self_ns: [Option<f64>; 2],
    /// Whether it became part of another.
    pub is_gone: bool,
}

impl Occ {
    /// Whether it ended well, whatever its client saw.
    pub fn ended_well(&self) -> bool {
        self.status == SpanStatus::Ok || self.is_given_up
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Requester.
    pub from: u32,
    /// Target.
    pub to: u32,
    /// When it was sent.
    pub start_ns: i64,
    /// When its reply came.
    pub end_ns: i64,
    /// Whether no reply is waited for.
    pub is_async: bool,
    /// Whether the requesting half was seen.
    pub has_client: bool,
    /// Whether the serving half was seen.
    pub has_server: bool,
    /// Whether its requester is concluded from other traces.
    pub is_restored: bool,
    /// Whether it was made inside another request of the same occurrence.
    pub is_nested: bool,
    /// How its client saw it end.
    pub status: SpanStatus,
    /// Whether its end is known.
    pub is_timed: bool,
    /// Whether clocks leave open on which side of the requester's reply it lies.
    pub is_open: bool,
    /// Whether it seems to be under way at the requester's reply, but ends within the requester's span.
    pub ends_within: bool,
    /// Whether it is asynchronous as it was served after its client had gone on.
    pub is_one_way: bool,
    /// Whether it ends after the requester's span, which waits for it nevertheless.
    pub ends_late: bool,
    /// The requester's phase.
    pub phase: u8,
    /// The requester's parallel branch.
    pub branch: Option<Branch>,
    /// Its span.
    pub piece: u32,
    /// Whether it is no call any more: the reply of another.
    pub is_gone: bool,
}

impl Call {
    /// Whether it starts at this time and lasts no longer than the clock shows.
    pub fn is_at(&self, ns: i64, resolution_ns: i64) -> bool {
        self.start_ns == ns && self.end_ns.saturating_sub(ns) <= resolution_ns
    }
}

/// A tree's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its occurrence.
    pub occ: u32,
    /// Its trace (index into [`Tree::traces`]).
    pub trace: u32,
    /// Its span.
    pub piece: u32,
    /// Whether its parent is not there.
    pub is_orphan: bool,
}

/// Occurrences and calls of a group.
#[derive(Debug, Default)]
pub struct Forest {
    /// Occurrences.
    pub occs: Vec<Occ>,
    /// Calls, by requester and start.
    pub calls: Vec<Call>,
    /// Calls of occurrence `o` are `calls[starts[o]..starts[o + 1]]`.
    starts: Vec<u32>,
    /// Internal work that outlasts its occurrence's span: occurrence, start, end.
    pub late_work: Vec<(u32, i64, i64)>,
    /// What consumers do within the span of another occurrence of their service: occurrence, start, end.
    pub elsewhere: Vec<(u32, i64, i64)>,
    /// Roots, by start.
    pub roots: Vec<Root>,
}

impl Clone for Forest {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    /// Uses the room that there is.
    fn clone_from(&mut self, other: &Self) {
        let Self { occs, calls, starts, late_work, elsewhere, roots } = other;
        self.occs.clone_from(occs);
        self.calls.clone_from(calls);
        self.starts.clone_from(starts);
        self.late_work.clone_from(late_work);
        self.elsewhere.clone_from(elsewhere);
        self.roots.clone_from(roots);
    }
}

struct Builder<'b> {
    tree: &'b Tree,
    catalog: &'b mut Catalog,
    options: &'b SpanOptions,
    out: Forest,
    /// The occurrence that each span belongs to; of a request the requester.
    occ_of: Vec<u32>,
    /// The call that each requesting span is.
    call_of: Vec<u32>,
    /// Occurrences whose serving half is missing, by the span above and the task.
    implied: HashMap<(u32, u32), u32>,
}

impl Forest {
    /// Makes the forest of a tree.
    pub fn of(tree: &Tree, catalog: &mut Catalog, options: &SpanOptions, notes: &mut Notes) -> Self {
        let n = tree.len();
        let (occ_of, call_of) = (vec![NOBODY; n], vec![NOBODY; n]);
        let mut builder = Builder { tree, catalog, options, out: Self::default(), occ_of, call_of, implied: HashMap::default() };
        builder.out.occs.reserve(n);
        builder.out.calls.reserve(n);
        for i in tree.order.iter().map(|i| *i as usize) {
            match tree.role[i] {
                Role::Dropped | Role::Fetch | Role::Unattached => {}
                Role::Entry => builder.serve(i, notes),
                Role::Call => builder.request(i, notes),
                Role::Fold => builder.fold(i),
            }
        }
        builder.add_peers(notes);
        builder.set_consumers_apart();
        let mut out = builder.out;
        out.sort_calls();
        out
    }

    /// The calls of an occurrence, by start.
    pub fn calls_of(&self, occ: usize) -> std::ops::Range<usize> {
        self.starts[occ] as usize..self.starts[occ + 1] as usize
    }

    /// Puts calls in order of requester and start; has to follow each change of requesters.
    pub fn sort_calls(&mut self) {
        self.calls.retain(|call| !call.is_gone);
        self.calls.sort_by_key(|call| (call.from, call.start_ns, call.end_ns, call.piece));
        self.starts.clear();
        self.starts.resize(self.occs.len() + 1, 0);
        self.occs.iter_mut().for_each(|occ| occ.requested_by = NOBODY);
        for (index, call) in self.calls.iter().enumerate() {
            self.starts[call.from as usize + 1] += 1;
            self.occs[call.to as usize].requested_by = index as u32;
        }
        for o in 0..self.occs.len() {
            self.starts[o + 1] += self.starts[o];
        }
    }
}

impl Builder<'_> {
    fn task(&self, i: usize) -> u32 {
        self.catalog.label(self.tree.pieces[i].label).task
    }

    fn add_occ(&mut self, i: usize, task: u32, name: u32, origin: Origin) -> u32 {
        let piece = &self.tree.pieces[i];
        let label = self.catalog.label(piece.label);
        let here = task == label.task;
        let instance = if here { label.instance } else { self.catalog.instances.insert_full((task, NONE)).0 as u32 };
        let is_measured = piece.duration_ns >= 0 && origin != Origin::Implied && !self.tree.is_timeless;
        self.out.occs.push(Occ {
            task,
            name,
            entry: NOBODY,
            instance,
            host: if matches!(origin, Origin::Client(_)) { NONE } else { label.host },
            start_ns: self.tree.start_ns[i],
            end_ns: self.tree.end_ns[i],
            reply_ns: self.tree.end_ns[i],
            open_ns: self.tree.open_ns.get(i).copied().unwrap_or_default(),
            admitted_ns: self.tree.admitted_ns.get(i).copied().unwrap_or_default(),
            under_way_ns: self.tree.under_way_ns.get(i).copied().unwrap_or_default(),
            work_end_ns: self.tree.end_ns[i],
            piece: i as u32,
            origin,
            is_in_order: self.tree.is_in_order.get(i).copied().unwrap_or_default(),
            status: piece.status,
            is_given_up: false,
            is_measured,
            is_partial: origin == Origin::Implied,
            is_lost: false,
            requested_by: NOBODY,
            self_ns: [None; 2],
            is_gone: false,
        });
        self.out.occs.len() as u32 - 1
    }

    /// A call by the times of span `i`.
    fn add_call(&mut self, from: u32, to: u32, i: usize, has_client: bool) -> u32 {
        let piece = &self.tree.pieces[i];
        self.out.calls.push(Call {
            from,
            to,
            start_ns: self.tree.start_ns[i],
            end_ns: self.tree.end_ns[i],
            is_async: matches!(piece.kind, SpanKind::Producer | SpanKind::Consumer),
            has_client,
            has_server: true,
            is_restored: false,
            is_nested: false,
            status: piece.status,
            is_timed: piece.duration_ns >= 0,
            is_open: false,
            ends_within: false,
            is_one_way: false,
            ends_late: false,
            phase: 1,
            branch: None,
            piece: i as u32,
            is_gone: false,
        });
        self.out.calls.len() as u32 - 1
    }

    /// Who requests what span `i` serves, by the call made for it.
    fn link_to_requester(&mut self, i: usize, occ: u32) {
        let tree = self.tree;
        let Some(parent) = tree.parent_of(i) else {
            let piece = &tree.pieces[i];
            self.out.roots.push(Root { occ, trace: piece.trace, piece: i as u32, is_orphan: tree.is_orphan[i] });
            return;
        };
        let from = self.occ_of[parent];
        if tree.role[parent] == Role::Call && self.call_of[parent] == NOBODY {
            let call = self.add_call(from, occ, parent, true);
            self.out.calls[call as usize].is_nested = self.is_nested(parent);
            self.out.calls[call as usize].is_async |= tree.pieces[i].kind == SpanKind::Consumer || tree.is_linked[i];
            // What did not finish lasts as long as what it contains.
            self.out.calls[call as usize].is_timed |= tree.pieces[i].duration_ns >= 0;
            self.call_of[parent] = call;
        } else if let Some(last) = self.call_before(parent, i) {
            let end_ns = self.out.calls[last].end_ns;
            self.out.calls[last].end_ns = tree.start_ns[i];
            let number = self.add_call(from, occ, i, false);
            let call = &mut self.out.calls[number as usize];
            call.end_ns = end_ns.max(call.end_ns);
            self.call_of[parent] = number;
        } else {
            let number = self.add_call(from, occ, i, false);
            let call = &mut self.out.calls[number as usize];
            call.is_async |= tree.pieces[parent].kind == SpanKind::Producer || tree.is_linked[i];
            call.is_restored = tree.is_restored[i];
            if call.is_restored && !call.is_async {
                let served = &mut self.out.occs[occ as usize];
                (served.is_partial, served.is_measured) = (true, false);
            }
        }
    }

    /// Of a request that was served several times, one after the other (made again below what traces its client), the serving before
    /// span `i`: each call ends where the next begins.
    fn call_before(&self, request: usize, i: usize) -> Option<usize> {
        let tree = self.tree;
        let last = self.call_of[request];
        if tree.role[request] != Role::Call || last == NOBODY || tree.is_timeless || tree.is_linked[i] {
            return None;
        }
        let call = &self.out.calls[last as usize];
        let waits = !call.is_async && !matches!(tree.pieces[i].kind, SpanKind::Consumer | SpanKind::Producer);
        let follows = tree.start_ns[i] >= self.out.occs[call.to as usize].end_ns && tree.end_ns[i] <= call.end_ns;
        (waits && follows && tree.pieces[i].duration_ns >= 0).then_some(last as usize)
    }

    /// Whether a request of the same occurrence is under way around request `i`.
    fn is_nested(&self, i: usize) -> bool {
        self.tree.parent_of(i).is_some_and(|p| self.tree.role[p] == Role::Call && self.occ_of[p] == self.occ_of[i])
    }

    fn serve(&mut self, i: usize, notes: &mut Notes) {
        let label = self.catalog.label(self.tree.pieces[i].label);
        let occ = self.add_occ(i, label.task, label.name, Origin::Served);
        self.occ_of[i] = occ;
        let no_call = self.tree.parent_of(i).filter(|p| self.tree.role[*p] != Role::Call);
        if no_call.is_some_and(|parent| self.task(parent) != label.task) {
            notes.count("missing_client_half", || self.tree.name(i));
        }
        self.link_to_requester(i, occ);
    }

    fn request(&mut self, i: usize, notes: &mut Notes) {
        let label = self.catalog.label(self.tree.pieces[i].label);
        self.occ_of[i] = match self.tree.parent_of(i) {
            None => {
                let piece = &self.tree.pieces[i];
                let (trace, is_orphan) = (piece.trace, self.tree.is_orphan[i]);
                let root = self.tree.root_of[i];
                if let Some(occ) = self.implied.get(&(root, label.task)).copied() {
                    self.occ_of[i] = self.outlast(occ, i);
                    return;
                }
                let occ = if let Some((_, name)) = self.tree.lost_roots.get(&root) {
                    let occ = self.add_occ(i, label.task, *name, Origin::Implied);
                    self.implied.insert((root, label.task), occ);
                    occ
                } else if is_orphan {
                    let name = self.catalog.name(IMPLIED);
                    self.add_occ(i, label.task, name, Origin::Implied)
                } else {
                    self.add_occ(i, label.task, label.name, Origin::Originator)
                };
                self.out.roots.push(Root { occ, trace, piece: i as u32, is_orphan });
                occ
            }
            Some(parent) if self.task(parent) == label.task => self.occ_of[parent],
            Some(parent) => match self.implied.get(&(parent as u32, label.task)) {
                Some(occ) => self.outlast(*occ, i),
                None => {
                    notes.count("missing_server_half", || self.tree.name(i));
                    let above = self.catalog.label(self.tree.pieces[parent].label);
                    let is_call = self.tree.role[parent] == Role::Call;
                    let as_a_rule = self.tree.answered.get(&(parent as u32)).filter(|(task, _)| *task == label.task);
                    let name = match as_a_rule {
                        Some((_, name)) => *name,
                        None if is_call => above.peer.name,
                        None => self.catalog.name(IMPLIED),
                    };
                    let occ = self.add_occ(i, label.task, name, Origin::Implied);
                    self.link_to_requester(i, occ);
                    self.implied.insert((parent as u32, label.task), occ);
                    occ
                }
            },
        };
    }

    /// An occurrence without times of its own lasts at least as long as span `i`.
    fn outlast(&mut self, occ: u32, i: usize) -> u32 {
        let implied = &mut self.out.occs[occ as usize];
        let end = implied.end_ns.max(self.tree.end_ns[i]);
        (implied.end_ns, implied.reply_ns, implied.work_end_ns) = (end, end, end);
        occ
    }

    fn fold(&mut self, i: usize) {
        let Some(parent) = self.tree.parent_of(i) else { return };
        let around = self.occ_of[parent];
        let is_internal = matches!(self.tree.pieces[i].kind, SpanKind::Internal | SpanKind::Unspecified);
        if self.options.internal == InternalSpans::Keep && is_internal {
            let label = self.catalog.label(self.tree.pieces[i].label);
            let task = format!("{}(internal)", self.catalog.names.name(label.task));
            let task = self.catalog.name(&task);
            let occ = self.add_occ(i, task, label.name, Origin::Internal);
            self.occ_of[i] = occ;
            self.add_call(around, occ, i, false);
            return;
        }
        self.occ_of[i] = around;
        if self.tree.end_ns[i] > self.out.occs[around as usize].end_ns {
            self.out.late_work.push((around, self.tree.start_ns[i], self.tree.end_ns[i]));
        }
    }

    /// The time of consumers that another occurrence's span contains is theirs.
    fn set_consumers_apart(&mut self) {
        let tree = self.tree;
        for i in (0..tree.len()).filter(|i| tree.lies_in[*i] != NOBODY && tree.role[*i] == Role::Entry) {
            let around = self.occ_of[tree.lies_in[i] as usize];
            if around != NOBODY && around != self.occ_of[i] {
                self.out.elsewhere.push((around, tree.start_ns[i], tree.end_ns[i]));
            }
        }
    }

    /// Those that are known only from their clients.
    fn add_peers(&mut self, notes: &mut Notes) {
        let tree = self.tree;
        for i in tree.order.iter().map(|i| *i as usize) {
            let is_open = tree.role[i] == Role::Call && self.call_of[i] == NOBODY;
            if !is_open || tree.is_batched[i] {
                continue;
            }
            let label = self.catalog.label(tree.pieces[i].label);
            if label.peer.kind != PeerKind::Queue || tree.pieces[i].kind != SpanKind::Producer {
                notes.count("client_half_alone", || tree.name(i));
            } else {
                notes.count("message_without_consumer", || tree.name(i));
            }
            let as_a_rule = tree.answered.get(&(i as u32)).copied();
            let (task, name) = as_a_rule.unwrap_or_else(|| (self.catalog.peer_task(label.peer, self.options.peer_tasks), label.peer.name));
            if as_a_rule.is_none() && task != label.peer.task {
                notes.count("other_peers", || self.catalog.names.name(label.peer.task).to_owned());
            }
            let occ = self.add_occ(i, task, name, Origin::Client(label.peer.kind));
            let call = self.add_call(self.occ_of[i], occ, i, true);
            self.call_of[i] = call;
            let nested = self.is_nested(i);
            let call = &mut self.out.calls[call as usize];
            (call.has_server, call.is_nested) = (false, nested);
            let looks_for_messages = label.peer.kind == PeerKind::Queue && tree.pieces[i].operation == MessageOperation::Receive;
            if tree.pieces[i].duration_ns == UNFINISHED || looks_for_messages {
                self.out.occs[occ as usize].is_measured = false;
            }
        }
    }
}
