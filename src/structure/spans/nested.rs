//! Requests made inside a request of the same service: which of them is the request, and which are parts of it.
//!
//! Input: a tree with parents in order; output: of each requesting span what it is to the one around it ([`Nested`]).
//!
//! A request *tells* of itself a request (who is asked and what: a peer service, HTTP, RPC, a data base, a message), an address alone, or
//! nothing ([`super::catalog::Told`]). Of a request inside another, or inside internal spans of another, that nothing served leads to:
//!
//! | the inner one | is |
//! |---|---|
//! | tells less than the outer one, which says whom it asks or was served | part of it: names looked up, connections made |
//! | of a third party inside one of a data base or queue | part of it: what carries it |
//! | of a data base or queue inside one of another kind, both telling of requests | a request of its own |
//! | else | the request itself, where nothing is served by the outer one: two layers of instrumentation |

use super::{
    catalog::{Catalog, Peer, PeerKind, Told},
    tree::{Tree, is_serving},
};
use crate::trace::span::SpanKind;

/// What spans below requests of their own service are; all arrays have the shape `(n_pieces,)`.
#[derive(Debug)]
pub(super) struct Nested {
    /// Children that are served: of another service, or serving.
    pub n_served: Vec<u32>,
    /// Whether it is part of the request around it.
    pub is_part: Vec<bool>,
    /// Whether a request inside it is that request.
    pub is_wrapper: Vec<bool>,
}

/// What one request is to another around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inner {
    Part,
    Apart,
    Same,
}

fn inside(outer: (Told, Peer), inner: (Told, Peer)) -> Inner {
    let is_third_party = |peer: Peer| peer.kind == PeerKind::ThirdParty;
    match (outer, inner) {
        ((told, _), (less, _)) if less < told => Inner::Part,
        ((Told::Request, outer), (_, inner)) if !is_third_party(outer) && is_third_party(inner) => Inner::Part,
        ((Told::Request, outer), (_, inner)) if outer.kind != inner.kind => Inner::Apart,
        _ => Inner::Same,
    }
}

impl Nested {
    pub fn of(tree: &Tree, catalog: &Catalog) -> Self {
        let n = tree.len();
        let mut nested = Self { n_served: vec![0; n], is_part: vec![false; n], is_wrapper: vec![false; n] };
        let label = |i: usize| catalog.label(tree.pieces[i].label);
        let is_request = |i: usize| matches!(tree.pieces[i].kind, SpanKind::Client | SpanKind::Producer);
        let is_local = |i: usize, parent: usize| label(i).task == label(parent).task && !is_serving(&tree.pieces[i]);
        // Children come after their parents.
        let mut leads_to_served = vec![false; n];
        for i in tree.order.iter().rev().map(|i| *i as usize) {
            leads_to_served[i] |= nested.n_served[i] > 0;
            let Some(parent) = tree.parent_of(i) else { continue };
            let is_local = is_local(i, parent);
            nested.n_served[parent] += u32::from(!is_local);
            leads_to_served[parent] |= is_local && leads_to_served[i];
        }
        // The request that each span is in, or is.
        let mut request_around: Vec<Option<usize>> = vec![None; n];
        for i in tree.order.iter().map(|i| *i as usize) {
            request_around[i] = is_request(i).then_some(i);
            let Some(parent) = tree.parent_of(i).filter(|parent| is_local(i, *parent)) else { continue };
            let Some(around) = request_around[parent] else { continue };
            if !is_request(i) {
                request_around[i] = Some(around);
                continue;
            }
            let outer = if nested.n_served[around] > 0 { Told::Request } else { label(around).peer.told };
            let what =
                if leads_to_served[i] { Inner::Same } else { inside((outer, label(around).peer), (label(i).peer.told, label(i).peer)) };
            match what {
                Inner::Part => {
                    nested.is_part[i] = true;
                    request_around[i] = Some(around);
                }
                Inner::Same if parent == around || nested.is_part[parent] => nested.is_wrapper[around] |= nested.n_served[around] == 0,
                Inner::Same | Inner::Apart => {}
            }
        }
        nested
    }
}
