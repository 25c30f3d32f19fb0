//! What a request finds at its processor of what its customer left behind there: second phases.
//!
//! The Linearizer takes the customer of an arrival away, with the second phases that work on for it. They are there all the same, and the sooner the customer
//! comes back the surer. Of the arrivals of row `r`, a share `p_rj` follows the reply after which the second phase `k` began, at once or after a gap `a_rj`
//! in which its caller does something elsewhere; the others were away for as long as the class is in the mean:
//!
//! ```text
//! found_rk = Σ_j p_rj h_k(a_rj) + (1 - Σ_j p_rj) Σ_c ρ_r(c) e_kc / A_c h_k(z_c)                  h_k(a) = v_k / (v_k + a),   v_k = W_k + s_k
//! A_c = Σ_r λ_r ρ_r(c) (1 - Σ_j p_rj)         z_c = [N_c - Σ_r λ_r ρ_r(c) (W_r + s_r + Σ_j p_rj a_rj)] / A_c
//! W_r += Σ_k found_rk s_k
//! shared processors   W_r += Σ_k found_rk m_rk,   W_k += Σ_r λ_r/λ_k found_rk [m_rk + 2 m_kk s_k/(s_k + s_r)]          m_rk = s_r s_k/(s_r + s_k)
//! ```
//!
//! Where they share, either takes from the other the lesser of what is left of both, `m` in the mean of exponential times, and what is not done when the next request is has its second phase beside itself.
//! There all this holds before the Linearizer's first round, too, where of second phases an arrival finds those of other customers.
//!
//! In order of arrival it is served before whatever finds it, so that one arrival alone does. A call that waits for its task comes later: with chance
//! `w = W/(W + s/m)` after a gap longer by `W + s/m`, as at one server. What begins at the same moment goes first by a coin: the caller's next
//! slice where that runs on the same processor ([`At::first_slice`]; what then has lost is found by the slice after the next), and a next call that its caller makes without any time between
//! (what has lost to that is found by who comes later).
//! While one of a task's `m` threads is at it, no more than the others can be met: all else of that task counts `1 - found_rk / m` times (at shared processors less than that by the share of the threads that is idle). Nor does a thread of
//! `m`, as a caller on the processor itself, meet others' where it began them: of a share `σ` that its task begins, `1 - σ/m` are left.
//!
//! Where the requests of a row are all calls of one task, whose `m` threads are no more than the customers that these are for, its threads stand for the
//! customers: a thread that returns finds what it began itself, `N_c` is `m` and `ρ` is 1, and of what others began `1 - σ_k/m` are there, `σ_k` the task's
//! share of the requests after which `k` goes on.
//!
//! | symbol | is |
//! |---|---|
//! | `e_kc` | replies to class `c` after which `k` goes on, but for those that an arrival counted under `p` follows |
//! | `ρ_r(c)`, `N_c` | share of the class in a row's requests, and its customers |
//! | `λ_r`, `W_r`, `s_r` | slices of the row a unit of time, the wait for one, and how long it is served |
//!
//! A second phase counts as one stay of the length of its slice. Later phases, and those of activity graphs, are not looked for, and what is followed along its course ([`super::messages`]) is told there.

use super::{
    super::{
        linearizer::Seen,
        net::{CallGroup, Discipline, Net},
    },
    At, COIN, Scratch,
    layout::Layout,
};
use crate::model::Scalar;

/// How second phases at a station may be found by the next request of the customer for whom they go on.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LeftBehind {
    lates: Vec<Late>,
    /// By row, the earlier calls after whose replies its requests are called.
    next: Vec<Vec<Next>>,
    /// By row, the calls that return to it from entries on the same processor.
    returned: Vec<Vec<Returned>>,
    /// By row, the same of all entries of its task.
    own: Vec<Vec<Returned>>,
    /// Tasks that alone call the entries of some rows.
    callers: Vec<usize>,
    /// By row, the one of them that calls its entry.
    caller_of: Vec<Option<usize>>,
    /// Their calls after whose replies a second phase begins: by caller.
    begun: Vec<Vec<Returned>>,
}

/// A second phase.
#[derive(Clone, Copy, Debug)]
struct Late {
    row: usize,
    entry: usize,
    task: usize,
}

/// A call from a caller that is served elsewhere, after an earlier one whose reply let a second phase begin.
#[derive(Clone, Copy, Debug)]
struct Next {
    late: usize,
    call: usize,
    earlier: usize,
    /// Whether the caller does nothing between its calls.
    is_at_once: bool,
}

#[derive(Clone, Copy, Debug)]
struct Returned {
    late: usize,
    call: usize,
}

impl LeftBehind {
    /// None but at processors that are shared or serve in order of arrival.
    pub fn find<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Self {
        let is_taken = station < net.n_processors && matches!(net.stations[station].discipline, Discipline::Fcfs | Discipline::Sharing);
        let node_of = |row: &super::layout::Row| row.group.map(|group| layout.groups[group]);
        let mut lates = Vec::new();
        for (row, it) in layout.rows.iter().enumerate().filter(|(_, it)| is_taken && it.follows_reply) {
            let Some(node) = node_of(it).filter(|&node| net.nodes[node].phase == 1 && !net.entries[net.nodes[node].entry].is_followed)
            else {
                continue;
            };
            lates.push(Late { row, entry: net.nodes[node].entry, task: net.nodes[node].task });
        }
        if lates.is_empty() {
            return Self::default();
        }
        let is_here = |node: usize| layout.groups.contains(&node);
        let after = |call: usize| lates.iter().position(|late| net.arcs[call].target == Some(late.entry));
        let (mut next, mut returned, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for row in &layout.rows {
            let (mut called, mut returns, mut begun) = (Vec::new(), Vec::new(), Vec::new());
            if let Some(node) = node_of(row).filter(|_| !row.follows_reply) {
                let it = &net.nodes[node];
                let back = it.calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc);
                returns.extend(back.filter_map(|call| after(call).map(|late| Returned { late, call })));
                let of_task = |call: usize| net.arcs[call].source.held().is_some_and(|caller| net.nodes[caller].task == it.task);
                for (late, of) in lates.iter().enumerate().filter(|_| net.tasks[it.task].class.is_none()) {
                    begun.extend(calls[of.entry].iter().filter(|&&call| of_task(call)).map(|&call| Returned { late, call }));
                }
                for &call in calls[it.entry].iter().filter(|_| it.phase == 0) {
                    let Some(caller) = net.arcs[call].source.held().filter(|&caller| !is_here(caller)) else { continue };
                    let is_at_once = does_nothing_else(net, caller, station);
                    let earlier = net.nodes[caller].calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc);
                    called.extend(earlier.filter_map(|earlier| after(earlier).map(|late| Next { late, call, earlier, is_at_once })));
                }
            }
            next.push(called);
            returned.push(returns);
            own.push(begun);
        }
        let mut it = Self { lates, next, returned, own, ..Self::default() };
        it.find_callers(net, layout, calls);
        it
    }

    /// Which tasks alone call the entries of rows, and after which of their calls second phases begin.
    fn find_callers<S>(&mut self, net: &Net<S>, layout: &Layout, calls: &[Vec<usize>]) {
        let mut is_forwarded_to = vec![false; net.entries.len()];
        net.arcs.iter().filter(|arc| arc.via.is_some()).filter_map(|arc| arc.target).for_each(|entry| is_forwarded_to[entry] = true);
        let task_of = |call: usize| net.arcs[call].source.held().map(|node| net.nodes[node].task);
        for row in &layout.rows {
            let node =
                row.group.map(|group| &net.nodes[layout.groups[group]]).filter(|node| node.phase == 0 && !is_forwarded_to[node.entry]);
            let only = node.and_then(|node| {
                let (&first, others) = calls[node.entry].split_first()?;
                let task = task_of(first).filter(|&task| task != node.task && net.tasks[task].class.is_none())?;
                others.iter().all(|&call| task_of(call) == Some(task)).then_some(task)
            });
            let place = only.map(|task| {
                self.callers.iter().position(|&other| other == task).unwrap_or_else(|| {
                    self.callers.push(task);
                    self.callers.len() - 1
                })
            });
            self.caller_of.push(place);
        }
        for &caller in &self.callers {
            let by_caller = |call: &&usize| task_of(**call) == Some(caller);
            let after = |(late, of): (usize, &Late)| {
                calls[of.entry].iter().filter(by_caller).map(|&call| Returned { late, call }).collect::<Vec<_>>()
            };
            self.begun.push(self.lates.iter().enumerate().flat_map(after).collect());
        }
    }

    pub fn is_none(&self) -> bool {
        self.lates.is_empty()
    }
}

/// Whether a node does nothing but call entries that are served at a station.
fn does_nothing_else<S: Scalar>(net: &Net<S>, node: usize, station: usize) -> bool {
    let it = &net.nodes[node];
    let is_served_here = |call: &CallGroup| {
        let host = net.arcs[call.arc].target.and_then(|entry| net.nodes[net.phases(entry)[0]?].host_arc);
        call.legs.is_empty() && host.is_some_and(|host| net.arcs[host].station == station)
    };
    !it.uses_processor && it.think_time.value() == 0.0 && it.calls.iter().all(is_served_here)
}

/// Room to find them.
#[derive(Debug)]
pub(super) struct Found<S> {
    /// `found`, by row and second phase.
    found: Vec<S>,
    /// `1 - Σ_j p_rj`, by row.
    others: Vec<S>,
    /// `e_kc`, by second phase and class, and then caller.
    ends: Vec<S>,
    /// `z_c` and `A_c`, by class, and then caller.
    away: Vec<(S, S)>,
    /// `σ_k`, by caller and second phase.
    begun: Vec<S>,
}

impl<S> Found<S> {
    pub fn new() -> Self {
        Self { found: Vec::new(), others: Vec::new(), ends: Vec::new(), away: Vec::new(), begun: Vec::new() }
    }
}

impl<S: Scalar> At<'_, S> {
    /// Adds what the arrivals of all rows find of what their customers left behind.
    pub(super) fn add_left_behind(&self, scratch: &mut Scratch<S>) {
        // In order of arrival the Linearizer takes nobody away before its first round.
        if self.layout.left_behind.is_none() || !self.sweep.populations.changes.are_known && !self.is_shared() {
            return;
        }
        let n_lates = self.layout.left_behind.lates.len();
        let mut room = std::mem::replace(&mut scratch.found, Found::new());
        self.clear_found(&mut room);
        for r in (0..self.layout.rows.len()).filter(|&r| self.is_waited_for(r)) {
            self.find_soon(r, &mut room);
        }
        for (away, arrivals) in &mut room.away {
            *away = if *away > 0.0 && *arrivals > 0.0 { *away / *arrivals } else { S::from(0.0) };
        }
        for r in (0..self.layout.rows.len()).filter(|&r| self.is_waited_for(r)) {
            self.find_later(r, &mut room);
            self.leave_own_thread(r, scratch);
            self.leave_own_caller(r, &room.begun, scratch);
            self.add_found(r, &room.found[r * n_lates..(r + 1) * n_lates], scratch);
        }
        scratch.found = room;
    }

    /// What an arrival of such class `shares`, none of one that begins a second phase itself, finds of a row: of second phases at a shared processor, before the Linearizer's first round tells it,
    /// those of other customers.
    pub(super) fn without_own_second_phases(&self, shares: &[S], row: usize, seen: Seen<S>) -> Seen<S> {
        let late = self.layout.left_behind.lates.iter().find(|late| late.row == row);
        let Some(late) = late.filter(|_| self.is_shared() && !self.sweep.populations.changes.are_known) else { return seen };
        let of_late = shares.iter().zip(self.class_shares(Some(late.entry))).zip(self.sweep.populations.customers);
        let own = of_late.filter(|(_, n)| **n > 0.0).fold(S::from(0.0), |sum, ((&mine, &theirs), &n)| sum + mine * theirs / n);
        Seen { waiting: seen.waiting * (-own + 1.0), first: seen.first * (-own + 1.0), ..seen }
    }

    /// Whether customers may wait for a row's requests.
    fn is_waited_for(&self, r: usize) -> bool {
        let row = &self.layout.rows[r];
        row.group.is_some() && !row.follows_reply
    }

    fn clear_found(&self, room: &mut Found<S>) {
        let zero = S::from(0.0);
        let lates = &self.layout.left_behind.lates;
        let n_rows = self.layout.rows.len();
        let LeftBehind { callers, begun: calls, .. } = &self.layout.left_behind;
        let Found { found, others, ends, away, begun } = room;
        found.clear();
        found.resize(n_rows * lates.len(), zero);
        others.clear();
        others.resize(n_rows, S::from(1.0));
        away.clear();
        away.extend(self.sweep.populations.customers.iter().map(|&n| (S::from(n), zero)));
        let strands = callers.iter().map(|&task| self.sweep.populations.strands(self.sweep.net, task));
        away.extend(strands.map(|n| (S::from(n), zero)));
        begun.clear();
        begun.resize(callers.len() * lates.len(), zero);
        for (caller, calls) in calls.iter().enumerate() {
            calls.iter().for_each(|call| begun[caller * lates.len() + call.late] += self.sweep.flow.arc_rate[call.call]);
        }
        ends.clear();
        for (k, late) in lates.iter().enumerate() {
            let rate = self.sweep.flow.entry_rate[late.entry];
            ends.extend(self.class_shares(Some(late.entry)).iter().map(|&share| rate * share));
            ends.extend((0..callers.len()).map(|caller| begun[caller * lates.len() + k]));
            for caller in 0..callers.len() {
                let share = &mut begun[caller * lates.len() + k];
                *share = if rate > 0.0 { *share / rate } else { zero };
            }
        }
    }

    /// Those who bring a row's requests, each with its share: its classes, and the one caller after these.
    fn for_each_bringer(&self, r: usize, mut visit: impl FnMut(usize, S)) {
        let shares = self.class_shares(self.layout.rows[r].kin);
        shares.iter().enumerate().for_each(|(c, &share)| visit(c, share));
        self.layout.left_behind.caller_of[r].iter().for_each(|caller| visit(self.n_classes() + caller, S::from(1.0)));
    }

    fn n_classes(&self) -> usize {
        self.sweep.net.classes.len()
    }

    /// The one caller of a row, with its threads, if these are no more than the customers of the row's classes, all of them.
    fn standing_in(&self, r: usize) -> Option<(usize, f64)> {
        let net = self.sweep.net;
        let caller = self.layout.left_behind.caller_of[r]?;
        let threads = self.sweep.populations.strands(net, self.layout.left_behind.callers[caller]);
        let of_row = net.classes.iter().zip(self.class_shares(self.layout.rows[r].kin)).filter(|(_, share)| **share > 0.0);
        let customers: f64 = of_row.map(|(&task, _)| net.tasks[task].threads * net.tasks[task].width).sum();
        // Nobody waits for what second phases call.
        (threads.is_finite() && (customers == 0.0 || threads <= customers)).then_some((caller, threads))
    }

    /// The first sum of a row's `found`, and what the row is of `e`, `A` and `z`.
    fn find_soon(&self, r: usize, room: &mut Found<S>) {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let LeftBehind { lates, next, returned, .. } = &self.layout.left_behind;
        let Found { found, others, ends, away, .. } = room;
        let (found, others) = (&mut found[r * lates.len()..(r + 1) * lates.len()], &mut others[r]);
        let row = &self.layout.rows[r];
        let Some(node) = row.group.map(|group| &net.nodes[self.layout.groups[group]]) else { return };
        let me = &self.visits[row.arc];
        let mut time = me.wait + me.first;
        let n_bringers = away.len();
        let mut follow = |late: usize, part: S, chance: S| {
            found[late] += part * chance;
            self.for_each_bringer(r, |c, share| ends[late * n_bringers + c] -= me.rate * share * part);
        };
        self.courses().for_each_previous(r, |part, slice, gap| {
            *others -= part;
            time += part * gap;
            let before = self.layout.row_of[slice];
            for back in &returned[before] {
                let lost = self.share_returning(before, back.call) * (1.0 - COIN);
                let late = lates[back.late];
                let is_there = if self.may_be_served(node.task, late) { self.is_still_there(late, gap) } else { S::from(0.0) };
                follow(back.late, part * lost, is_there);
            }
            for it in &next[before] {
                let late = lates[it.late];
                let lost = self.share_at_once(before, it) * self.share_before(it);
                let is_there = if self.may_be_served(node.task, late) { self.is_still_there(late, gap) } else { S::from(0.0) };
                follow(it.late, part * lost, is_there);
            }
        });
        let received = flow.entry_rate[node.entry];
        // Those of one call follow each other.
        let mut known = None;
        for it in next[r].iter().filter(|_| received > 0.0) {
            let (follows, between) = match known {
                Some((call, found)) if call == it.call => found,
                _ => self.courses().later_calls(it.call),
            };
            known = Some((it.call, (follows, between)));
            let (gap, seen_gap) = if it.is_at_once {
                (S::from(0.0), S::from(0.0))
            } else {
                (between, self.courses().gap_for(it.call, self.stay(lates[it.late]), between))
            };
            let part = flow.arc_rate[it.call] / received * net.arcs[it.earlier].visits * follows / node.slices;
            *others -= part;
            time += part * (gap + self.sweep.unknowns[it.call]);
            let late = lates[it.late];
            let chance = if self.may_be_served(node.task, late) { self.is_found_by_call(late, it, seen_gap) } else { S::from(0.0) };
            // What then has lost is still there for those who come later.
            let counted = -self.share_before(it) + 1.0;
            follow(it.late, part * counted, if counted > 0.0 { chance / counted } else { chance });
        }
        for back in &returned[r] {
            let part = self.share_returning(r, back.call);
            *others -= part;
            // What wins the coin is counted there.
            follow(back.late, part * COIN, S::from(0.0));
        }
        if *others < 0.0 {
            *others = S::from(0.0);
        }
        self.for_each_bringer(r, |c, share| {
            let (away, arrivals) = &mut away[c];
            *away -= me.rate * share * time;
            *arrivals += me.rate * share * *others;
        });
    }

    /// The second sum of a row's `found`.
    fn find_later(&self, r: usize, room: &mut Found<S>) {
        let lates = &self.layout.left_behind.lates;
        let Found { found, others, ends, away, .. } = room;
        let row = &self.layout.rows[r];
        let Some(node) = row.group.map(|group| &self.sweep.net.nodes[self.layout.groups[group]]) else { return };
        let n_bringers = away.len();
        let stands_in = self.standing_in(r).map(|(caller, _)| self.n_classes() + caller);
        self.for_each_bringer(r, |c, share| {
            let (away, arrivals) = away[c];
            if stands_in.map_or(c >= self.n_classes(), |caller| c != caller) || arrivals <= 0.0 {
                return;
            }
            for (k, &late) in lates.iter().enumerate().filter(|(_, late)| self.may_be_served(node.task, **late)) {
                let end = ends[k * n_bringers + c];
                if end > 0.0 {
                    found[r * lates.len() + k] += others[r] * share * end / arrivals * self.is_still_there(late, away);
                }
            }
        });
    }

    /// Of the second phases that a row's one caller lets begin, those of the arrival's own thread of it are no others'.
    fn leave_own_caller(&self, r: usize, begun: &[S], scratch: &mut Scratch<S>) {
        let Some((caller, threads)) = self.standing_in(r) else { return };
        let lates = &self.layout.left_behind.lates;
        let shares = &*self.absent_shares(&self.layout.rows[r]);
        for (late, &own) in lates.iter().zip(&begun[caller * lates.len()..]).filter(|(_, own)| **own > 0.0) {
            let arc = self.layout.rows[late.row].arc;
            // The Linearizer has left out those of the arrival's customer.
            let seen = self.sweep.seen(shares, self.layout.arcs[arc]).first;
            let others = -(own / threads) + 1.0;
            let others = if others > 0.0 { others } else { S::from(0.0) };
            if others < seen {
                let x = r * self.visits.len() + arc;
                for part in [&mut scratch.alpha, &mut scratch.beta, &mut scratch.load] {
                    part[x] *= others / seen;
                }
            }
        }
    }

    /// Of the second phases that the threads of a row's task begin, those of the arrival's own thread are no others'.
    fn leave_own_thread(&self, r: usize, scratch: &mut Scratch<S>) {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let n = self.visits.len();
        let LeftBehind { lates, own, .. } = &self.layout.left_behind;
        let Some(node) = self.layout.rows[r].group.map(|group| &net.nodes[self.layout.groups[group]]) else { return };
        let threads = net.tasks[node.task].threads;
        for (k, late) in lates.iter().enumerate().filter(|_| threads.is_finite()) {
            let begun = flow.entry_rate[late.entry];
            let rate = own[r].iter().filter(|own| own.late == k).fold(S::from(0.0), |sum, own| sum + flow.arc_rate[own.call]);
            if rate > 0.0 && begun > 0.0 {
                let others = -(rate / begun / threads) + 1.0;
                let x = r * n + self.layout.rows[late.row].arc;
                for part in [&mut scratch.alpha, &mut scratch.beta, &mut scratch.load] {
                    part[x] *= others;
                }
            }
        }
    }

    /// Adds what a row finds to its wait, and lets it find less of what the same threads do else.
    fn add_found(&self, r: usize, found: &[S], scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let me = &self.visits[self.layout.rows[r].arc];
        for (late, &found) in self.layout.left_behind.lates.iter().zip(found).filter(|(_, found)| **found > 0.0) {
            let row = &self.layout.rows[late.row];
            let threads = row.pool.map_or(f64::INFINITY, |pool| self.sweep.populations.caps[self.layout.pools[pool]]);
            if threads.is_finite() {
                // Where they share, as far as it is its threads that bound how many are met.
                let busy = self.sweep.flow.busy_threads(self.sweep.net, late.task) / threads;
                let busy = if self.is_shared() { busy } else { S::from(1.0) };
                let at_most_one = |x: S| if x > 1.0 { S::from(1.0) } else { x };
                let less = -(at_most_one(found) * at_most_one(busy) / threads) + 1.0;
                for x in (0..n).filter(|&x| self.layout.pool_of[x] == row.pool) {
                    for part in [&mut scratch.alpha, &mut scratch.beta, &mut scratch.load] {
                        part[r * n + x] *= less;
                    }
                }
            }
            let it = &self.visits[row.arc];
            if self.discipline == Discipline::Sharing {
                let beside = |other: S| it.first * other / (it.first + other);
                scratch.own[r] += found * beside(me.first);
                // It waits as long for who comes, and, where it is not done when that is, shares with the next one.
                scratch.own[late.row] +=
                    found * (beside(me.first) + it.first * beside(it.first) * 2.0 / (it.first + me.first)) * me.rate / it.rate;
            } else {
                scratch.own[r] += found * it.first;
            }
            scratch.load[r * n + row.arc] += found * it.first / (it.wait + it.first);
        }
    }

    /// Share of a row's slices that follow the reply to a call of its node.
    fn share_returning(&self, r: usize, call: usize) -> S {
        let net = self.sweep.net;
        let slices = self.layout.rows[r].group.map(|group| net.nodes[self.layout.groups[group]].slices);
        slices.map_or(S::from(0.0), |slices| net.arcs[call].visits / slices)
    }

    /// Share of a row's slices with which its requests begin after such an earlier one.
    fn share_at_once(&self, r: usize, it: &Next) -> S {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let Some(node) = self.layout.rows[r].group.map(|group| &net.nodes[self.layout.groups[group]]) else { return S::from(0.0) };
        let received = flow.entry_rate[node.entry];
        if received <= 0.0 {
            return S::from(0.0);
        }
        let (follows, _) = self.courses().later_calls(it.call);
        flow.arc_rate[it.call] / received * net.arcs[it.earlier].visits * follows / node.slices
    }

    /// Chance that a call begins at the same moment as the second phase after the reply before it, and goes first.
    fn share_before(&self, it: &Next) -> S {
        if !it.is_at_once || self.discipline != Discipline::Fcfs {
            return S::from(0.0);
        }
        let net = self.sweep.net;
        let (wait, (_, served)) = (self.sweep.unknowns[it.call], self.sweep.service(it.call));
        let each = served / net.stations[net.arcs[it.call].station].servers;
        let waits = if wait > 0.0 { wait / (wait + each) } else { S::from(0.0) };
        (-waits + 1.0) * (1.0 - COIN)
    }

    /// Whether requests to a task can reach the processor while that second phase goes on.
    fn may_be_served(&self, task: usize, late: Late) -> bool {
        task != late.task || self.sweep.net.tasks[task].threads > 1.0
    }

    /// `v`.
    fn stay(&self, late: Late) -> S {
        let it = &self.visits[self.layout.rows[late.row].arc];
        it.wait + it.first
    }

    /// `h` after a gap.
    fn is_still_there(&self, late: Late, gap: S) -> S {
        let stay = self.stay(late);
        if stay > 0.0 { stay / (stay + gap) } else { S::from(0.0) }
    }

    /// `h` for a call a gap after the reply.
    fn is_found_by_call(&self, late: Late, &Next { call, is_at_once, .. }: &Next, gap: S) -> S {
        let net = self.sweep.net;
        let (wait, (_, served)) = (self.sweep.unknowns[call], self.sweep.service(call));
        let goes_first = if is_at_once && self.discipline == Discipline::Fcfs { COIN } else { 1.0 };
        let soon = self.is_still_there(late, gap) * goes_first;
        if wait <= 0.0 {
            return soon;
        }
        let each = served / net.stations[net.arcs[call].station].servers;
        soon + wait / (wait + each) * (self.is_still_there(late, gap + wait + each) - soon)
    }
}
