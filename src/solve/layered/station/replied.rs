//! What requests find that are sent right after a reply.
//!
//! A task `A` calls a task `B`, and who calls `A` calls `B`, too. Each slice of `A` ends with a call or with the reply, whichever as chance has it, and so what a
//! call finds at `B` that follows the reply at once is what calls of `A` find there: both see `B` when slices of `A` end. It is not what there is at any time. While a
//! thread of `A` is at `B`, its callers wait for it and do not come to `B` themselves; when they come, those that it waited behind have gone.
//!
//! ```text
//! f_r = (1 - Σ_k w_rk) f_r + Σ_k w_rk min(1, K_rx/K_kx) f_k                w = t_k/(t_k + g) Π p,   t_k = W_k + s_k
//! ```
//!
//! Customers who call a single thread and what that calls wait there 10 to 110 % too long by what there is at any time (64 such, of 5 and 20 customers). Of what single threads find themselves there: [`gates`].
//!
//! | symbol | is |
//! |---|---|
//! | `f_r` | what requests of row `r` find at `B`, of each arc `x` |
//! | `k` | the row of calls of a task `A` whose reply comes before |
//! | `p` | of each step back in the course of a request, from call to reply or from the first slice of an execution to who calls: the share of slices before which it is |
//! | `g` | what is done meanwhile: slices of the caller, and waits for threads |
//! | `K` | path exclusion ([`super::super::exclusion`]): of those found by `A` who cannot be there with the caller |
//!
//! What is forwarded comes when a slice of the forwarder ends. Looked for before threads, in order of arrival, at several where what comes is of customers; not where something goes on after a reply, nor
//! where numbers of calls are always the same: then it is known which slice a reply ends.

mod gates;

pub(super) use self::gates::Way;
use super::{
    super::net::{Discipline, Net, Node},
    At, Scratch,
    layout::Layout,
};
use crate::model::Scalar;

/// Steps back beyond which replies are forgotten.
const FURTHEST: usize = 3;

/// A reply before requests of a row.
#[derive(Clone, Debug)]
pub(in super::super) struct Replied {
    /// The row whose requests follow it.
    row: usize,
    /// The steps back to it.
    path: Vec<Step>,
    /// The row of the calls of who replied.
    by: usize,
    /// Whether some of the row's requests are forwarded.
    is_beside_forwarded: bool,
}

/// A step back in the course of a request.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// From a slice to the reply to this call of its node.
    Reply(usize),
    /// From the first slice of an execution to this call to its entry.
    Begin(usize),
    /// From a forwarded request over the arc at such a place to the slice of who forwards it.
    Forwarded(usize),
}

/// The replies before what comes to a station.
pub(super) fn find_replied<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Vec<Replied> {
    let mut found = Vec::new();
    let it = &net.stations[station];
    if station < net.n_processors || it.discipline != Discipline::Fcfs || it.servers > 1.0 && layout.of_senders {
        return found;
    }
    for (row, group) in layout.rows.iter().enumerate().filter_map(|(row, it)| Some((row, it.group?))) {
        let has_forwarded = (0..layout.arcs.len()).any(|place| layout.row_of[place] == row && net.arcs[layout.arcs[place]].via.is_some());
        let mut back = Back { net, layout, calls, row, has_forwarded, path: Vec::new(), found: &mut found };
        back.add_before(layout.groups[group], true);
        if has_forwarded {
            back.add_forwarders();
        }
    }
    found
}

/// A way back from the requests of a row.
struct Back<'a, S> {
    net: &'a Net<S>,
    layout: &'a Layout,
    calls: &'a [Vec<usize>],
    row: usize,
    has_forwarded: bool,
    path: Vec<Step>,
    found: &'a mut Vec<Replied>,
}

impl<S: Scalar> Back<'_, S> {
    /// Adds the replies before a slice of a node, and before who called it if it `goes_up`.
    fn add_before(&mut self, node: usize, goes_up: bool) {
        let net = self.net;
        let it = &net.nodes[node];
        if it.deterministic || self.path.len() >= FURTHEST {
            return;
        }
        for call in it.calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc) {
            let Some(first) = first_phase(net, call).filter(|&first| !net.nodes[first].deterministic) else { continue };
            self.path.push(Step::Reply(call));
            match self.layout.groups.iter().position(|&group| group == first) {
                Some(group) => self.add(self.layout.row_of_group[group]),
                None => self.add_before(first, false),
            }
            self.path.pop();
        }
        if !goes_up || it.phase > 0 {
            return;
        }
        for &call in &self.calls[it.entry] {
            let Some(caller) = net.arcs[call].source.held() else { continue };
            self.path.push(Step::Begin(call));
            self.add_before(caller, true);
            self.path.pop();
        }
    }

    /// Adds the slices of forwarders whose tasks call here.
    fn add_forwarders(&mut self) {
        let &mut Self { net, layout, row, .. } = self;
        for (place, &arc) in layout.arcs.iter().enumerate().filter(|(place, _)| layout.row_of[*place] == row) {
            let Some(forwarder) = net.arcs[arc].via.map(|entry| net.entries[entry].task) else { continue };
            let calls_here = |&node: &usize| net.nodes[node].task == forwarder && net.nodes[node].phase == 0;
            if let Some(group) = layout.groups.iter().position(calls_here) {
                self.path.push(Step::Forwarded(place));
                self.add(layout.row_of_group[group]);
                self.path.pop();
            }
        }
    }

    fn add(&mut self, by: usize) {
        self.found.push(Replied { row: self.row, path: self.path.clone(), by, is_beside_forwarded: self.has_forwarded });
    }
}

/// The node that replies to a call.
fn first_phase<S>(net: &Net<S>, call: usize) -> Option<usize> {
    net.arcs[call].target.and_then(|entry| net.phases(entry)[0])
}

impl<S: Scalar> At<'_, S> {
    /// Takes what rows find to what they find after replies.
    pub(super) fn find_after_replies(&self, scratch: &mut Scratch<S>) {
        let replied = &self.layout.replied;
        if replied.is_empty() || self.late {
            return;
        }
        let mut shares = std::mem::take(&mut scratch.after_replies);
        shares.clear();
        shares.extend(replied.iter().map(|it| self.share_after(it)));
        self.weigh_gates(&shares, scratch);
        let n = self.visits.len();
        let Scratch { alpha, beta, load, keep, found_before, terms: kept, .. } = scratch;
        // Which are 0 but for rounding.
        let of_both = |(&ours, &others): (&S, &S)| if others > 0.0 && others > ours { ours / others } else { S::from(1.0) };
        kept.clear();
        for it in replied {
            kept.extend(keep[it.row * n..(it.row + 1) * n].iter().zip(&keep[it.by * n..(it.by + 1) * n]).map(of_both));
        }
        for part in [alpha, beta, load] {
            found_before.clone_from(part);
            for ((it, &share), kept) in replied.iter().zip(&shares).zip(kept.chunks_exact(n)) {
                let [mine, theirs] = [it.row, it.by].map(|row| &found_before[row * n..(row + 1) * n]);
                let found = theirs.iter().zip(kept).zip(mine).map(|((&theirs, &kept), &mine)| theirs * kept - mine);
                part[it.row * n..(it.row + 1) * n].iter_mut().zip(found).for_each(|(part, more)| *part += share * more);
            }
        }
        scratch.after_replies = shares;
    }

    /// `w`: the share of a row's requests that follow a reply.
    fn share_after(&self, it: &Replied) -> S {
        let net = self.sweep.net;
        let zero = S::from(0.0);
        let (mut share, mut gap) = (S::from(1.0), zero);
        if it.is_beside_forwarded {
            let of_row = self.visits.iter().enumerate().filter(|(place, _)| self.layout.row_of[*place] == it.row);
            let (all, called) = of_row.fold((zero, zero), |(all, called), (place, v)| {
                let is_forwarded = net.arcs[self.layout.arcs[place]].via.is_some();
                (all + v.rate, if is_forwarded { called } else { called + v.rate })
            });
            if all <= 0.0 {
                return zero;
            }
            if let &[Step::Forwarded(place)] = &it.path[..] {
                return self.visits[place].rate / all;
            }
            share = called / all;
        }
        let mut node = self.node_of(it.row);
        for step in &it.path {
            let Some(at) = node else { return zero };
            gap += at.demand / at.slices;
            if let Some(host) = at.host_arc {
                gap += self.sweep.unknowns[host];
            }
            node = match *step {
                Step::Reply(call) => {
                    share *= net.arcs[call].visits / at.slices;
                    first_phase(net, call)
                }
                Step::Begin(call) => {
                    let received = self.sweep.flow.entry_rate[at.entry];
                    share *= if received > 0.0 { self.sweep.flow.arc_rate[call] / received / at.slices } else { zero };
                    gap += self.sweep.unknowns[call];
                    net.arcs[call].source.held()
                }
                Step::Forwarded(_) => None,
            }
            .map(|node| &net.nodes[node]);
        }
        let by = &self.visits[self.layout.rows[it.by].arc];
        let stay = by.wait + by.first;
        if stay > 0.0 { share * stay / (stay + gap) } else { zero }
    }

    /// The node that sends the requests of a row.
    fn node_of(&self, row: usize) -> Option<&Node<S>> {
        self.layout.rows[row].group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]])
    }
}
