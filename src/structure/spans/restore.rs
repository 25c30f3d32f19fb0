//! Lost spans: what is left of them put where it belongs, as the other traces show it.
//!
//! Input: a [`Tree`] with corrected clocks, some of whose spans name parents that are not there, and [`Habits`]; output: the
//! tree with these spans below other parents, or left out.
//!
//! Spans that name the same missing parent are children of one lost span.
//!
//! | children | the lost span is | their parent becomes |
//! |---|---|---|
//! | requests made | the serving half of a request, by an entry that makes all of these | the request that this entry serves as a rule, that nothing serves here, and that was sent last before the first child |
//! | requests made | a root, by the one entry that makes all of these, starts traces and is called by nobody (of a trace of which nothing else was recorded, however few traces show it) | none: the root is restored without times |
//! | a served request | the requesting half of a request, by an entry that makes it as a rule | that entry's occurrence at work when the request began; of messages, the last one begun before. Where occurrences of several entries are, the one that does not wait for another request; none where one more of another entry may be lost itself |
//!
//! Where such spans have parents in other traces, but these are too few to be a habit, or none or several answers fit, what
//! hangs below is left out (`unattached`): it is as good as never recorded, and counted. Without times, or with those of a clock that
//! nothing compares with the root's where clocks are wrong, requests that different entries serve are several answers. Where no trace shows
//! what such spans hang below, or it is all that was recorded of a trace and such requests often are, the parent was never
//! recorded (a caller without instrumentation), and the client of the trace requests it (`missing_parent`).
//!
//! Occurrences with a lost half are *partial*: their reply is not known, so they have no self times, and their calls are of
//! the phase that these calls are of as a rule.

use std::collections::HashSet;

use super::{
    catalog::Catalog,
    habits::{EntryName, Habits, asked},
    quality::Notes,
    tree::{NOBODY, Role, Tree},
};
use crate::trace::span::SpanKind;

/// Most lost spans of one tree whose children are restored, the first by start.
const MAX_RESTORED: usize = 1000;

/// Where the children of a lost span go.
enum Place {
    /// Below this span.
    Below(usize),
    /// Below a root of this entry.
    Root(EntryName),
    /// Left out.
    Nowhere,
    /// As read: nothing is known of such spans.
    Unknown,
}

struct Restorer<'r> {
    tree: &'r Tree,
    catalog: &'r Catalog,
    habits: &'r Habits,
    /// Requests that nothing serves.
    open: Vec<usize>,
    /// Requests by the occurrence that makes them, as `(occurrence, request)`, sorted.
    waits: Vec<(usize, usize)>,
    /// [`Tree::traces_of_one_orphan`].
    is_alone: Vec<bool>,
}

/// Puts what lost spans left behind where it belongs; whether that made anything of the tree other than it was.
pub fn restore(tree: &mut Tree, habits: &Habits, catalog: &Catalog, notes: &mut Notes) -> bool {
    let is_lost = |i: &usize| (tree.is_orphan[*i] || tree.is_lost_link[*i]) && tree.role[*i] != Role::Dropped;
    let mut orphans: Vec<usize> = (0..tree.len()).filter(is_lost).collect();
    answer_requests(tree, habits, catalog);
    if orphans.is_empty() {
        return !tree.answered.is_empty();
    }
    // What follows a lost message by a link has no parent's id.
    let key = |i: &usize| {
        let piece = &tree.pieces[*i];
        (piece.trace, if piece.has_parent { piece.parent } else { piece.id })
    };
    orphans.sort_by_key(|i| (key(i), tree.start_ns[*i], *i));
    let mut groups: Vec<Vec<usize>> = orphans.chunk_by(|a, b| key(a) == key(b)).map(<[usize]>::to_vec).collect();
    groups.sort_by_key(|group| (tree.start_ns[group[0]], group[0]));
    groups.truncate(MAX_RESTORED);
    let restorer = Restorer::of(tree, habits, catalog);
    let mut taken = HashSet::new();
    let mut places = Vec::new();
    for group in groups {
        let place = restorer.place(&group, &taken);
        if let Place::Below(at) = place {
            taken.insert(at);
        }
        places.push((group, place));
    }
    for (group, place) in places {
        tree.put(&group, place, notes);
    }
    tree.settle(catalog);
    true
}

/// Says of requests that nothing serves here which entry does as a rule.
fn answer_requests(tree: &mut Tree, habits: &Habits, catalog: &Catalog) {
    let mut is_answered = vec![false; tree.len()];
    (0..tree.len()).filter_map(|i| tree.parent_of(i)).for_each(|parent| is_answered[parent] = true);
    let open: Vec<usize> = (0..tree.len()).filter(|i| tree.role[*i] == Role::Call && !is_answered[*i]).collect();
    for i in open {
        if let Some(entry) = habits.server(asked(tree, catalog, i)) {
            tree.answered.insert(i as u32, entry);
        }
    }
}

impl<'r> Restorer<'r> {
    fn of(tree: &'r Tree, habits: &'r Habits, catalog: &'r Catalog) -> Self {
        let mut open: Vec<usize> = tree.answered.keys().map(|i| *i as usize).filter(|i| !tree.is_batched[*i]).collect();
        open.sort_unstable();
        let mut waits: Vec<(usize, usize)> = Vec::new();
        // The span of the occurrence that each span is part of.
        let mut part_of: Vec<usize> = (0..tree.len()).collect();
        for i in tree.order.iter().map(|i| *i as usize) {
            let Some(parent) = tree.parent_of(i).filter(|_| tree.role[i] != Role::Entry) else { continue };
            part_of[i] = part_of[parent];
            if tree.role[i] == Role::Call && tree.pieces[i].kind != SpanKind::Producer {
                waits.push((part_of[i], i));
            }
        }
        waits.sort_unstable();
        Self { tree, catalog, habits, open, waits, is_alone: tree.traces_of_one_orphan() }
    }

    /// Whether all that was recorded of a span's trace hangs below the one parent that it lacks.
    fn is_alone(&self, i: usize) -> bool {
        self.tree.is_orphan[i] && self.is_alone[self.tree.pieces[i].trace as usize]
    }

    fn entry(&self, i: usize) -> EntryName {
        let label = self.catalog.label(self.tree.pieces[i].label);
        (label.task, label.name)
    }

    fn place(&self, group: &[usize], taken: &HashSet<usize>) -> Place {
        let role = |role: Role| group.iter().all(|i| self.tree.role[*i] == role);
        if role(Role::Call) {
            self.place_requests(group, taken)
        } else if let ([served], true) = (group, role(Role::Entry)) {
            self.place_served(*served)
        } else {
            Place::Unknown
        }
    }

    /// The serving half of these requests' maker is lost.
    fn place_requests(&self, group: &[usize], taken: &HashSet<usize>) -> Place {
        let asked = |i: &usize| asked(self.tree, self.catalog, *i);
        let both = |known: Vec<EntryName>, more: Vec<EntryName>| known.into_iter().filter(|entry| more.contains(entry)).collect();
        let Some(makers) = group.iter().filter_map(|i| self.habits.makers(asked(i))).reduce(both) else { return Place::Unknown };
        if self.is_alone(group[0]) && group.iter().all(|i| self.habits.is_made_outside(asked(i))) {
            return Place::Unknown;
        }
        let only_root = self.habits.only_root(asked(&group[0]));
        if let (true, true, Some(root)) = (makers.is_empty(), self.is_alone(group[0]), only_root) {
            return if group.iter().all(|i| self.habits.only_root(asked(i)) == only_root) { Place::Root(root) } else { Place::Nowhere };
        }
        let first = group.iter().map(|i| self.tree.start_ns[*i]).min().unwrap_or(0);
        let same_group = |c: &usize| self.tree.pieces[*c].trace == self.tree.pieces[group[0]].trace;
        let serves = |c: &usize| self.tree.answered.get(&(*c as u32)).is_some_and(|entry| makers.contains(entry));
        let is_timed = self.is_timed(group[0]);
        let fits = |c: &usize| !taken.contains(c) && same_group(c) && serves(c) && (!is_timed || self.tree.start_ns[*c] <= first);
        let answered = |c: &usize| self.tree.answered.get(&(*c as u32));
        let mut fitting = self.open.iter().filter(|c| fits(c));
        if !is_timed && fitting.next().is_some_and(|first| fitting.any(|c| answered(c) != answered(first))) {
            return Place::Nowhere;
        }
        if let Some(request) = self.open.iter().copied().filter(fits).max_by_key(|c| (self.tree.start_ns[*c], *c)) {
            return Place::Below(request);
        }
        let mut roots = makers.iter().filter(|entry| self.habits.is_root(**entry));
        match (roots.next(), roots.next()) {
            (Some(entry), None) => Place::Root(*entry),
            _ => Place::Nowhere,
        }
    }

    /// The requesting half of this request is lost.
    fn place_served(&self, served: usize) -> Place {
        let entry = self.entry(served);
        let Some(callers) = self.habits.callers(entry) else { return Place::Unknown };
        if self.is_alone(served) && self.habits.is_requested_from_outside(entry) {
            return Place::Unknown;
        }
        let tree = self.tree;
        let is_message = tree.pieces[served].kind == SpanKind::Consumer;
        let at = tree.start_ns[served];
        let is_timed = self.is_timed(served);
        let is_then = |i: usize| !is_timed || (tree.start_ns[i] <= at && (is_message || at <= tree.end_ns[i]));
        let is_caller = |i: &usize| tree.role[*i] == Role::Entry && callers.contains(&self.entry(*i)) && is_then(*i);
        let mut candidates: Vec<usize> = (0..tree.len()).filter(is_caller).filter(|i| *i != served).collect();
        let differ = |candidates: &[usize]| candidates.iter().any(|i| self.entry(*i) != self.entry(candidates[0]));
        if is_timed && !is_message && differ(&candidates) {
            candidates.retain(|i| !self.is_waiting(*i, at));
        }
        // A caller of another entry, whose own span is lost.
        let is_lost_caller = |request: &usize, known: EntryName| {
            let answer = tree.answered.get(&(*request as u32));
            is_then(*request) && answer.is_some_and(|entry| *entry != known && callers.contains(entry))
        };
        let is_open = |known: EntryName| self.open.iter().any(|request| is_lost_caller(request, known));
        if candidates.is_empty() || differ(&candidates) || is_open(self.entry(candidates[0])) {
            return Place::Nowhere;
        }
        candidates.into_iter().max_by_key(|i| (tree.start_ns[*i], *i)).map_or(Place::Nowhere, Place::Below)
    }

    /// Whether its times are by a clock that can be compared with the others.
    fn is_timed(&self, i: usize) -> bool {
        !self.tree.is_timeless && !self.tree.is_incomparable[i]
    }

    /// Whether an occurrence waits for a reply at a time.
    fn is_waiting(&self, occurrence: usize, at: i64) -> bool {
        let first = self.waits.partition_point(|(of, _)| *of < occurrence);
        let waits = self.waits[first..].iter().take_while(|(of, _)| *of == occurrence);
        waits.into_iter().any(|(_, request)| self.tree.start_ns[*request] <= at && at < self.tree.end_ns[*request])
    }
}

impl Tree {
    /// The topmost span above a span.
    fn top_of(&self, piece: usize) -> usize {
        let mut at = piece;
        while let Some(parent) = self.parent_of(at) {
            at = parent;
        }
        at
    }

    /// Puts the children of a lost span where they belong; where that is below themselves, as for what calls itself over others,
    /// nowhere.
    fn put(&mut self, group: &[usize], place: Place, notes: &mut Notes) {
        let place = match place {
            Place::Below(parent) if group.contains(&self.top_of(parent)) => Place::Nowhere,
            place => place,
        };
        for i in group {
            match place {
                Place::Below(parent) => {
                    self.parent[*i] = parent as u32;
                    self.is_linked[*i] |= self.is_lost_link[*i];
                    (self.is_orphan[*i], self.is_restored[*i]) = (false, true);
                    notes.count("parent_restored", || self.name(*i));
                }
                Place::Root(entry) => {
                    (self.is_orphan[*i], self.root_of[*i]) = (false, group[0] as u32);
                    self.lost_roots.insert(group[0] as u32, entry);
                    notes.count("root_restored", || self.name(*i));
                }
                Place::Nowhere => self.is_unattached[*i] = true,
                Place::Unknown => {}
            }
        }
        debug_assert!(group.iter().all(|i| self.parent[*i] == NOBODY || !self.is_orphan[*i]));
    }
}
