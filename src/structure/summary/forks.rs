//! Forks: which requests of an occurrence are made at once.
//!
//! The branches of a fork are told apart by what they request, not by which was first: branches that request the same are
//! numbered in any order. A *fork's shape* is the sorted list of its branches' shapes, a branch's shape the sorted list of
//! what it requests (kind and class, each once). Forks of one shape in different invocations of an entry are taken to be
//! one fork of the entry; how often each request is made in them is a mean, as for calls outside.

use std::collections::BTreeMap;

use super::{Request, arcs::Arc};
use crate::structure::{entries::ArcKind, interactions::Branch};

/// What a branch requests, each once.
pub(super) type BranchShape = Vec<(ArcKind, usize)>;

/// Numbers of requests.
type RequestCounts = BTreeMap<(ArcKind, usize), u64>;

/// The branches of a fork, sorted.
pub(super) type ForkShape = Vec<BranchShape>;

/// Renumbers the branches of each fork by what they request.
pub(super) fn in_canonical_order(requests: &mut [Request]) {
    if requests.iter().all(|request| request.branch.is_none()) {
        return;
    }
    let mut contents: BTreeMap<Branch, Vec<(ArcKind, u8, usize)>> = BTreeMap::new();
    for request in requests.iter() {
        if let Some(branch) = request.branch {
            let same = std::iter::repeat_n((request.kind, request.phase, request.class), request.n as usize);
            contents.entry(branch).or_default().extend(same);
        }
    }
    let mut by_fork: BTreeMap<u16, Vec<(Vec<_>, Branch)>> = BTreeMap::new();
    for (branch, mut content) in contents {
        content.sort_unstable();
        by_fork.entry(branch.fork).or_default().push((content, branch));
    }
    let mut forks: Vec<_> = by_fork.into_values().collect();
    forks.iter_mut().for_each(|branches| branches.sort());
    forks.sort();
    let mut renumbered: BTreeMap<Branch, Branch> = BTreeMap::new();
    for (fork, branches) in forks.iter().enumerate() {
        for (number, (_, branch)) in branches.iter().enumerate() {
            renumbered.insert(*branch, Branch { fork: small(fork), branch: small(number) });
        }
    }
    for request in requests {
        request.branch = request.branch.map(|branch| renumbered[&branch]);
    }
}

fn small(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// The forks of an occurrence's first phase: shape, and for each branch (in the shape's order) the number of requests.
pub(super) fn forks(arcs: &[Arc], class_of: &[usize]) -> Vec<(ForkShape, Vec<Vec<u64>>)> {
    let mut by_fork: BTreeMap<u16, BTreeMap<u16, RequestCounts>> = BTreeMap::new();
    for arc in arcs.iter().filter(|arc| arc.phase == 1) {
        if let Some(branch) = arc.branch {
            let branches = by_fork.entry(branch.fork).or_default();
            *branches.entry(branch.branch).or_default().entry((arc.kind, class_of[arc.target])).or_insert(0) += 1;
        }
    }
    let of_fork = |branches: BTreeMap<u16, RequestCounts>| {
        let mut branches: Vec<(BranchShape, Vec<u64>)> = branches.into_values().map(|requests| requests.into_iter().unzip()).collect();
        branches.sort();
        branches.into_iter().unzip()
    };
    // A fork of which only one branch requests anything is none.
    by_fork.into_values().filter(|branches| branches.len() > 1).map(of_fork).collect()
}
