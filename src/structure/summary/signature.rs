//! What tells classes of occurrences apart.

use super::{arcs::Arc, forks};
use crate::structure::{
    entries::{Accepts, ArcKind},
    interactions::Branch,
};

/// Places for the classes that were found last; a power of two.
pub(super) const N_RECENT: usize = 1024;

/// Requests that are alike, of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) kind: ArcKind,
    pub(super) phase: u8,
    pub(super) branch: Option<Branch>,
    pub(super) class: usize,
    pub(super) n: u64,
}

/// What tells classes apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    pub(super) task: u32,
    pub(super) accepts: Accepts,
    pub(super) operation: Option<u32>,
    /// Sorted; `None` where behaviour is not part of the key.
    pub(super) requests: Option<Vec<Request>>,
}

/// A signature that is looked for; it is not made where it is that of a class that was found just before.
pub(super) struct Look<'r> {
    pub(super) task: u32,
    pub(super) accepts: Accepts,
    pub(super) operation: Option<u32>,
    pub(super) requests: Option<&'r [Request]>,
}

impl Look<'_> {
    /// Which of [`N_RECENT`] places is that of its like.
    pub(super) fn place(&self) -> usize {
        let requested = self.requests.and_then(<[Request]>::first).map_or(0, |request| request.class + 1);
        let operation = self.operation.map_or(0, |operation| operation as usize + 1);
        (self.task as usize + 31 * operation + 37 * requested) % N_RECENT
    }

    /// Whether it is this one.
    pub(super) fn is(&self, signature: &Signature) -> bool {
        let Signature { task, accepts, operation, ref requests } = *signature;
        (task, accepts, operation) == (self.task, self.accepts, self.operation) && requests.as_deref() == self.requests
    }

    /// The signature itself.
    pub(super) fn signature(&self) -> Signature {
        let Self { task, accepts, operation, requests } = *self;
        Signature { task, accepts, operation, requests: requests.map(<[Request]>::to_vec) }
    }
}

/// Puts the multiset of an occurrence's requests in place of others; branches of a fork are numbered by what they request.
pub(super) fn put_requests(requests: &mut Vec<Request>, arcs: &[Arc], class_of: &[usize]) {
    let request = |arc: &Arc| Request { kind: arc.kind, phase: arc.phase, branch: arc.branch, class: class_of[arc.target], n: 1 };
    requests.clear();
    requests.extend(arcs.iter().map(request));
    debug_assert!(requests.iter().all(|r| r.class != usize::MAX), "targets are created after their requesters");
    put_in_order(requests);
}

/// The requests of a signature of another summary, whose classes have other numbers.
pub(super) fn renamed_requests(mut requests: Vec<Request>, class_of: &[usize]) -> Vec<Request> {
    for request in &mut requests {
        request.class = class_of[request.class];
    }
    put_in_order(&mut requests);
    requests
}

/// Puts requests in the order of signatures, and joins those that are alike.
fn put_in_order(requests: &mut Vec<Request>) {
    forks::in_canonical_order(requests);
    requests.sort_unstable();
    requests.dedup_by(|next, kept| {
        let same = (next.kind, next.phase, next.branch, next.class) == (kept.kind, kept.phase, kept.branch, kept.class);
        kept.n += if same { next.n } else { 0 };
        same
    });
}
