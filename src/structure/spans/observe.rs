//! What a recording of spans shows beside its structure: its executions as a call tree, and what a user asked for.
//!
//! Executions are the occurrences of entries, `TASK.ENTRY`, with the times of their spans. A request is what a root serves; a
//! root that itself requests stands for the user, and each reply that it waits for is a request.
//!
//! Who asked is said by the root, or else by any span of its trace: a session's key, a user's name or an address, in this
//! order. Only their digests are kept.

use super::{
    emit::{Members, Sums, entry_name},
    forest::{Forest, Occ, Origin, Root},
    tree::Tree,
};
use crate::{
    structure::{
        observations::{Asked, Completeness, UserKey},
        profile::CallTree,
    },
    trace::{
        Time,
        span::{Attribute, SpanKind},
    },
};

/// What names users, the surest first; a digest has the place in this list, from 1, in its lowest two bits.
pub const USER_ATTRIBUTES: [(Attribute, UserKey); 3] =
    [(Attribute::Session, UserKey::Session), (Attribute::User, UserKey::User), (Attribute::ClientAddress, UserKey::Address)];

/// The digest of a user's name with what it is the name of.
pub fn user_digest(digest: u32, place: usize) -> u32 {
    (digest & !3) | (place as u32 + 1)
}

/// What a user's digest is of; `None` of 0.
pub fn user_key(digest: u32) -> Option<UserKey> {
    USER_ATTRIBUTES.get((digest & 3).checked_sub(1)? as usize).map(|(_, key)| *key)
}

/// The digest that a span says of its user in each trace, shape `(n_traces,)`: the surest, and of these the first; 0 for none.
pub fn users_of_traces(tree: &Tree) -> Vec<u32> {
    let mut users = vec![0; tree.traces.len()];
    for piece in tree.order.iter().map(|i| &tree.pieces[*i as usize]) {
        let known = &mut users[piece.trace as usize];
        if piece.user != 0 && (*known == 0 || user_key(piece.user) < user_key(*known)) {
            *known = piece.user;
        }
    }
    users
}

/// Hands the executions of a recording over.
pub fn executions(forest: &Forest, members: &Members, weight: f64, complete: Completeness, sums: &mut Sums<'_>) {
    let mut tree = CallTree::with_weight(weight);
    let mut node_of: Vec<Option<usize>> = Vec::with_capacity(members.occs.len());
    for (occ, (requester, form)) in members.occs.iter().zip(&members.requested) {
        let Some(occ) = occ.map(|occ| &forest.occs[occ as usize]) else {
            node_of.push(None);
            continue;
        };
        let parent = requester.and_then(|requester| node_of.get(requester).copied().flatten());
        let times = occ.is_measured.then(|| [occ.start_ns, occ.end_ns.max(occ.start_ns)].map(Time::from_ticks));
        node_of.push(tree.push(parent, &operation(occ, sums), *form, times).ok());
    }
    sums.observations.executions(&tree, complete);
}

fn operation(occ: &Occ, sums: &Sums<'_>) -> String {
    format!("{}.{}", sums.catalog.names.name(occ.task), entry_name(occ, sums.catalog))
}

/// Hands the requests of a recording with a root and times over; `user` is the digest that its trace says.
pub fn requests(tree: &Tree, forest: &Forest, root: Root, user: u32, weight: f64, sums: &mut Sums<'_>) {
    if tree.is_timeless {
        return;
    }
    let own = tree.pieces[root.piece as usize].user;
    let user = if own != 0 && user_key(own) <= user_key(user) { own } else { user };
    let name = format!("{user:08x}");
    let user = user_key(user).map(|key| (key, name.as_str()));
    let occ = &forest.occs[root.occ as usize];
    if occ.origin != Origin::Originator {
        if occ.is_measured && tree.pieces[root.piece as usize].kind != SpanKind::Consumer {
            let times = [occ.start_ns, occ.end_ns.max(occ.start_ns)].map(Time::from_ticks);
            sums.observations.request(&Asked { user, service: &operation(occ, sums), times, weight });
        }
        return;
    }
    for call in forest.calls[forest.calls_of(root.occ as usize)].iter().filter(|call| !call.is_async && call.phase == 1) {
        let times = [call.start_ns, call.end_ns.max(call.start_ns)].map(Time::from_ticks);
        let service = operation(&forest.occs[call.to as usize], sums);
        sums.observations.request(&Asked { user, service: &service, times, weight });
    }
}
