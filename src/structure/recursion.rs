//! Requests that close a circle of entries: recursion, which merging by operation makes of nested executions.
//!
//! In a forest no execution waits for itself, but entries that stand for many may: A calls B, and a later B calls a further A. A
//! layered queueing network does not allow that. Where a search in depth from the first entry on comes back to an entry that is still
//! open, the request becomes an asynchronous one to a copy of that entry, which does the same work. So every execution still loads
//! what it loaded, and rates hold (of a finite trace, less than one further execution follows on each); what is lost is that the
//! requester waited for it.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::{Accepts, ArcKind, Merged, MergedArc};

/// Cuts all circles of blocking requests between entries. Returns the copies: their index and that of the entry copied.
pub fn cut_recursion(merged: &mut Merged) -> Vec<(usize, usize)> {
    let back = back_requests(merged);
    if back.is_empty() {
        return Vec::new();
    }
    let first_copy = merged.entries.len();
    let copied: BTreeSet<usize> = back.iter().map(|(_, target)| *target).collect();
    let copies: BTreeMap<usize, usize> = copied.into_iter().enumerate().map(|(k, target)| (target, first_copy + k)).collect();
    let mut executions: BTreeMap<usize, f64> = BTreeMap::new();
    for (source, entry) in merged.entries.iter_mut().enumerate() {
        let closes = |arc: &MergedArc| arc.kind != ArcKind::Async && back.contains(&(source, arc.target));
        for arc in entry.arcs.iter().filter(|arc| closes(arc)) {
            *executions.entry(arc.target).or_default() += arc.mean * entry.n_occurrences as f64;
        }
        for fork in &mut entry.forks {
            fork.branches.iter_mut().for_each(|branch| branch.retain(|arc| !closes(arc)));
            fork.branches.retain(|branch| !branch.is_empty());
        }
        entry.forks.retain(|fork| fork.branches.len() > 1);
        let (sent, mut kept): (Vec<MergedArc>, Vec<MergedArc>) = std::mem::take(&mut entry.arcs).into_iter().partition(|arc| closes(arc));
        for arc in sent {
            let target = copies[&arc.target];
            match kept.iter_mut().find(|known| known.kind == ArcKind::Async && known.phase == arc.phase && known.target == target) {
                Some(known) => {
                    known.mean += arc.mean;
                    known.counts.clear();
                }
                None => kept.push(MergedArc { kind: ArcKind::Async, target, ..arc }),
            }
        }
        entry.arcs = kept;
    }
    for target in copies.keys() {
        let original = &mut merged.entries[*target];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of occurrences, rounded")]
        let n = (executions[target].round() as u64).min(original.n_occurrences);
        let mut copy = original.clone();
        (copy.accepts, copy.n_occurrences) = (Accepts::Async, n);
        original.n_occurrences -= n;
        merged.entries.push(copy);
    }
    copies.into_iter().map(|(target, copy)| (copy, target)).collect()
}

/// Pairs of entries with a blocking request from the first to the second that leads back to one still open.
fn back_requests(merged: &Merged) -> BTreeSet<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Closed,
    }
    let entries = &merged.entries;
    let mut seen = vec![Seen::Not; entries.len()];
    let mut back = BTreeSet::new();
    for root in 0..entries.len() {
        if seen[root] != Seen::Not {
            continue;
        }
        seen[root] = Seen::Open;
        let mut path = vec![(root, 0)];
        while let Some((source, next)) = path.last_mut() {
            let Some(arc) = entries[*source].arcs.get(*next) else {
                seen[*source] = Seen::Closed;
                path.pop();
                continue;
            };
            *next += 1;
            if arc.kind == ArcKind::Async || entries[arc.target].accepts == Accepts::Nothing {
                continue;
            }
            match seen[arc.target] {
                Seen::Open => {
                    back.insert((*source, arc.target));
                }
                Seen::Not => {
                    seen[arc.target] = Seen::Open;
                    path.push((arc.target, 0));
                }
                Seen::Closed => {}
            }
        }
    }
    back
}
