//! What the time of a root consists of.
//!
//! Input: a recording; output: sums over roots ([`Explained`]). Time on the way is that of the root and of all that is waited for from
//! there, each call of phase 1. Of an occurrence whose requester waits until w, and that for another until w', at most min(w, w')
//! counts: what it does later, as its client gave up or did not wait to the end, is told apart.

use super::{
    emit::Members,
    forest::{Call, Forest, Occ, Origin, Root},
    quality::Explained,
    timing::union_ns,
    tree::NOBODY,
};

impl Explained {
    /// Adds the time of a recording's root.
    pub fn explain(&mut self, forest: &Forest, members: &Members, root: Root) {
        let whole = &forest.occs[root.occ as usize];
        let total = whole.reply_ns.saturating_sub(whole.start_ns);
        let is_path = members.on_path.get(1).copied().unwrap_or(false) || whole.origin == Origin::Originator;
        if total <= 0 || !is_path {
            return;
        }
        let (mut own, mut gaps, mut unknown, mut after) = (0.0, 0.0, 0.0, 0.0);
        let mut until = vec![whole.reply_ns; members.occs.len()];
        for (m, of) in members.occs.iter().enumerate().filter(|(m, _)| members.on_path[*m]) {
            let Some(o) = of.map(|o| o as usize) else { continue };
            let occ = &forest.occs[o];
            if let (Some(requester), true) = (members.requested[m].0, occ.requested_by != NOBODY) {
                until[m] = until[requester].min(forest.calls[occ.requested_by as usize].end_ns);
            }
            let calls = &forest.calls[forest.calls_of(o)];
            let waits = || calls.iter().filter(|call| !call.is_async && call.phase == 1);
            match occ.self_ns[0] {
                Some(ns) => {
                    own += ns;
                    after += self_time_after(occ, waits(), until[m]).min(ns);
                }
                None if occ.origin != Origin::Originator => {
                    let end = occ.reply_ns.min(until[m]);
                    let wait = |call: &Call| call.end_ns.min(end).saturating_sub(call.start_ns).max(0);
                    let waited: i64 = waits().fold(0, |sum, call| sum.saturating_add(wait(call)));
                    unknown += end.saturating_sub(occ.start_ns).saturating_sub(waited).max(0) as f64;
                }
                None => {}
            }
            for call in waits().filter(|call| call.has_client && call.has_server) {
                let served = &forest.occs[call.to as usize];
                let wait = call.end_ns.saturating_sub(call.start_ns);
                gaps += wait.saturating_sub(served.reply_ns.saturating_sub(served.start_ns)).max(0) as f64;
            }
        }
        self.roots += 1;
        self.root_s += total as f64 * 1e-9;
        self.self_s += own * 1e-9;
        self.gap_s += gaps * 1e-9;
        self.unknown_s += unknown * 1e-9;
        self.after_s += after * 1e-9;
        self.parallel_s += (own + gaps + unknown - after - total as f64).max(0.0) * 1e-9;
    }
}

/// Self time of phase 1 after `until`, nanoseconds.
fn self_time_after<'c>(occ: &Occ, waits: impl Iterator<Item = &'c Call>, until: i64) -> f64 {
    let (from, to) = (occ.start_ns.max(until), occ.reply_ns);
    if from >= to {
        return 0.0;
    }
    let mut waits: Vec<(i64, i64)> = waits.map(|call| (call.start_ns.clamp(from, to), call.end_ns.clamp(from, to))).collect();
    to.saturating_sub(from).saturating_sub(union_ns(&mut waits)) as f64
}
