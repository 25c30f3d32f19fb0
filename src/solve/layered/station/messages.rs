//! What requests find of what goes on for them without them: requests that they sent, and what is done after replies to them, at processors; of what they sent
//! also before the threads of tasks.
//!
//! Who sends a request and does not wait for it goes on with its slice, and then elsewhere, or to the same processor again. What it sent is there as long as
//! it takes, and so is found by the sender's next slices, by what is called next, and by what is sent next; and so is a second phase. Either, an *errand*, is at a processor slice by slice, its own and
//! those of what it calls, and elsewhere by turns ([`presence`]). Along the course of a request, slice by slice and call by call, the numbers `o = (H, A)` of errands of one kind that it
//! has begun, and that are here and elsewhere, are
//!
//! ```text
//! o ← E(t) o + a E(η s) b                                  a slice elsewhere, or a wait: E(t) what is left after t ([`presence`])
//! H → p H here, r H away for (s + t)/2;  A: away for t;  a b added       one here, at a single server and in order of arrival: who was here goes first, by one slice, and who comes is behind
//! H → c H + (1 - c)(p here, r away for s),  c = κ s_x/(s_x + s)          one here at several: what was there begins first, κ = (m-1)/H (1 - e^(-H/(m-1))) of it are beside
//! H → 0 here, r/(1 - p) H away;  A: away for t             one here before which all of these go, at a single server that goes by urgency; head of line who comes in s is here, and a b added, preemptive b as such an H
//! H → H;  A: away for t;  a b added                        one here that goes before all of these, the same
//! o ← δ o + β                                              an execution: of n slices, C a call, 1/n the chance that a slice is the last,
//! δ = G δ_s/n,  β = G (δ_s B + β_s),  G = (1 - δ_s D)⁻¹    D = Σ_C y_C/n δ_C E(W_C),  B = Σ_C y_C/n β_C
//! ō = (1 - D δ_s)⁻¹ (o/n + D β_s + B)                      before a slice of it, in the mean
//! ```
//!
//! and of those that it is sent with
//!
//! ```text
//! i = a θ/(1 + A (1 - θ)),  θ = Σ E(s/(1 + A)) b           sent before, in the same slice;  at a single server here a η
//! η                                                        who sent it, where that is here, of whom so much of a slice is left
//! ```
//!
//! A second phase begins with the reply: `b` is in the `β_C` of its call. Where the caller's next slice is at the same processor, in order of arrival, a coin decides which goes first: half of it is found by
//! that slice, and half is behind it.
//!
//! | symbol | is |
//! |---|---|
//! | `b` | one that begins, here or elsewhere |
//! | `s`, `t` | service in a slice, and that with its wait |
//! | `a`, `A` | such requests that are sent in a slice, and all that are |
//! | `η` | of random numbers, which are without memory, 1: as much is left as a slice takes; of numbers that are always the same 1/2 |
//! | `s_x`, `m` | service of a slice of the errand, servers |
//! | `p`, `r` | chance that a slice of the errand is followed by another at once, or by a time elsewhere |
//! | `δ`, `β` | what is left of `o` after an execution, and what is added; `_s` after a slice, `_C` after a call, of which there are `y_C` and which waits `W_C` |
//!
//! Times are taken to be exponential. What an errand leaves behind in turn is a part of it, after it. What it waits for the request itself is left out of how long it is here, as the course has that: the slice of the
//! sender, or else as much as is found of it at any time. Where strands of a fork begin each finds what has been sent before; a join is as late as one of them, and all have sent.
//! Of numbers of calls that are always the same a slice is followed by so many times a call of the mean kind and a slice. A customer begins with what is left
//! of his last cycle, and where a request has waited for a thread with what that sent for the one before. What is found at any time of all requests has the
//! own ones with it, of customers `μ/(N - ν)` of it, `μ` of an errand that is found as one customer's (`exclusion`, `gone_on`) and `ν` what is left out of it; that part is taken off, at one server also where it is more than what is told. No more of a pool are found than it has
//! threads; where errands have to wait for one of `k` again and again, `h (1 - (h/(1 + h))^k)` of `h` have it. Executions that neither come here nor begin an errand count as one time.
//!
//! By urgency a slice finds `H/(1 - p)` slices of those that go before it, under preemption also of those that it sends; of those that let it pass, head of line, one in service with the chance `H/(1 + H)`, where no slice
//! has ended just then ([`super::makes_way`]).
//!
//! Before the threads of a task, in order of arrival, those that are sent in the same slice wait for each other: `i`, the others are as at any time; and a call to the task finds what the same request, and
//! its thread before, has sent there ([`queue`]). Where a stream from outside tells how long its requests wait, theirs are longer by `1/(1 - Σ α)` of that, and at several threads the less of it is told the more
//! of what is found comes with them.
//!
//! They make wait as others do: in order of arrival for their services, of several servers those that have none to themselves; a shared processor for
//! `s s_x/(s + s_x)`, until one of the two has ended. Of several threads those that are idle take a number that is geometric, `i (1 - (i/(1 + i))^idle)`.

mod behind;
mod course;
mod lines;
mod outline;
mod presence;
mod queue;
mod reach;
mod step;

pub(in super::super) use self::{behind::Behind, lines::Lines};
pub(super) use self::{course::Room, outline::Outlines, reach::Reach};
use self::{
    course::{Course, left_of_slice},
    outline::Errand,
};
use super::{
    super::{
        exclusion::GoneOn,
        net::{Discipline, Net, Source},
    },
    At, Scratch, Sweep,
    layout::{Layout, Row},
};
use crate::model::Scalar;

/// What is left of a slice, or of what is sent in it, where a request of a number that is always the same is sent.
const HALF: f64 = 0.5;
/// Of two numbers one that is as good as none.
const NEGLIGIBLE: f64 = 1e-6;

/// Something that goes on for a request without it, and comes to a station.
#[derive(Clone, Debug)]
struct Message {
    errand: Errand,
    /// The place of its own first slice, or of the first arc over which it comes to a queue; none where it does not begin here.
    first: Option<usize>,
    /// Entries in whose executions it begins or may be met, callers before callees, and whether it may be met there.
    path: Vec<(usize, bool)>,
}

/// What is found for the same customer, of his requests and of what goes on without him: that of which an arrival finds what goes on, that where what goes on finds the request itself, and all.
struct OwnShares<S> {
    gone_on: S,
    itself: S,
    all: S,
}

impl<S: Scalar> OwnShares<S> {
    /// What is found of one of so many customers, of so much waiting and in service.
    fn of_one(&self, customers: f64, waiting: S, served: S) -> S {
        let absent = self.all - self.gone_on - self.itself;
        (waiting * (1.0 - customers.recip()) + served) / (-absent + customers)
    }
}

/// What goes on for requests without them and comes to a processor, or is sent to the queue of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    to: Vec<Message>,
    /// Entries that come to a processor, themselves or with what they call, callers before callees; empty where there are no messages, and of a task.
    coming: Vec<usize>,
    /// The nodes that are served there, in order, and their rows; the same.
    rows: Vec<(usize, usize)>,
}

impl Messages {
    pub fn find<S: Scalar>(net: &Net<S>, layout: &Layout, reach: &Reach, station: usize) -> Self {
        if reach.errands().is_empty() {
            return Self::default();
        }
        if station >= net.n_processors {
            return Self::at_queue(net, layout, reach, station);
        }
        if matches!(net.stations[station].discipline, Discipline::Delay | Discipline::Groups) {
            return Self::default();
        }
        let mut rows: Vec<(usize, usize)> = layout.groups.iter().copied().zip(layout.row_of_group.iter().copied()).collect();
        rows.sort_unstable();
        let mut messages = Self { to: Vec::new(), coming: Vec::new(), rows };
        let comes = reach.comes(net, layout);
        for &errand in reach.errands() {
            let phases = net.phases(errand.entry());
            let (does_come, first) = match errand {
                Errand::Sent(entry) => (comes[entry], phases[0].and_then(|node| messages.row_of(node))),
                Errand::AfterReply(_) => {
                    let comes = |&node: &usize| messages.row_of(node).is_some() || net.called_by(node).any(|target| comes[target]);
                    (phases[1..].iter().flatten().any(comes), None)
                }
            };
            if does_come {
                let first = first.map(|row| layout.rows[row].arc);
                messages.to.push(Message { errand, first, path: reach.path(net, errand, &comes) });
            }
        }
        if messages.to.is_empty() {
            return Self::default();
        }
        messages.coming = reach.in_order(&comes);
        messages
    }

    pub fn are_none(&self) -> bool {
        self.to.is_empty()
    }

    /// The row of a node's slices, if they are here.
    fn row_of(&self, node: usize) -> Option<usize> {
        self.rows.binary_search_by_key(&node, |(node, _)| *node).ok().map(|at| self.rows[at].1)
    }
}

impl<S: Scalar> At<'_, S> {
    /// `o` before each row's slices, of each row.
    pub(super) fn find_messages(&self, scratch: &mut Scratch<S>) {
        let Layout { messages, rows, .. } = self.layout;
        let zero = S::from(0.0);
        scratch.messages.clear();
        scratch.goes_on.clear();
        scratch.goes_on.resize(self.visits.len(), false);
        if messages.are_none() {
            return;
        }
        scratch.messages.resize(rows.len() * self.visits.len(), zero);
        let at_processor = !self.is_queue();
        let for_itself = if at_processor && self.servers <= 1.0 { self.waits_for_itself(scratch) } else { Vec::new() };
        let (mut room, mut outlines) = (std::mem::take(&mut scratch.course), std::mem::take(&mut scratch.outlines));
        if at_processor {
            self.find_outlines(&mut outlines);
        }
        for message in &messages.to {
            let presence = if at_processor {
                self.presence(message.errand, &mut outlines, &for_itself)
            } else {
                message.first.and_then(|first| self.presence_in_queue(first))
            };
            if let Some(presence) = presence {
                presence.slices.iter().for_each(|it| scratch.goes_on[it.arc] = true);
                Course::new(self, message, &presence, &scratch.from_elsewhere, &mut room).follow(&mut scratch.messages);
            }
        }
        outlines.forget(&messages.coming);
        (scratch.course, scratch.outlines) = (room, outlines);
        self.hold_to_threads((self.visits.len(), |row| row), &mut scratch.messages, &[]);
    }

    /// What those slices of each row that go on for a request wait for the request itself.
    fn waits_for_itself(&self, Scratch { alpha, beta, .. }: &Scratch<S>) -> Vec<S> {
        let Sweep { net, exclusion, populations, .. } = self.sweep;
        let n = self.visits.len();
        let of_row = |(r, row): (usize, &Row)| {
            let (mut wait, mut goes_on) = (S::from(0.0), S::from(0.0));
            for (c, &number) in populations.customers.iter().enumerate().filter(|(_, n)| **n >= 1.0) {
                let GoneOn { met, missed } = exclusion.gone_on_over(net, self.layout.arcs[row.arc], c);
                goes_on += met + missed;
                for (x, it) in self.visits.iter().enumerate().filter(|_| met > 0.0) {
                    let shares = self.own_shares(row.arc, x, c);
                    let (waiting, served) = (alpha[r * n + x] * it.wait, beta[r * n + x]);
                    wait += shares.itself * shares.of_one(number, waiting, served);
                }
            }
            if goes_on > 0.0 { wait / goes_on } else { wait }
        };
        self.layout.rows.iter().enumerate().map(of_row).collect()
    }

    /// How long what is sent to an entry waits for a thread.
    fn waits_for_threads(&self, entry: usize) -> S {
        let Sweep { net, unknowns, .. } = self.sweep;
        let sent = |arc: usize| net.arcs[arc].target == Some(entry) && matches!(net.arcs[arc].source, Source::Detached(_));
        net.tasks[net.entries[entry].task].station.map_or(S::from(0.0), |queue| self.sweep.mean_over(queue, sent, |arc| unknowns[arc]))
    }

    /// What the first slice of a message waits for those who send it.
    fn waits_for_senders(&self, entry: usize) -> S {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let mut wait = S::from(0.0);
        let Some(first) = net.phases(entry)[0].and_then(|node| self.layout.messages.row_of(node)) else { return wait };
        let its = &self.visits[self.layout.rows[first].arc];
        let received = flow.entry_rate[entry];
        if received <= 0.0 || self.servers > 1.0 {
            return wait;
        }
        for (&group, &row) in self.layout.groups.iter().zip(&self.layout.row_of_group) {
            let node = &net.nodes[group];
            let service = self.visits[self.layout.rows[row].arc].first * left_of_slice(node.deterministic);
            let interrupts = self.interrupts() && self.layout.rows[row].priority < self.layout.rows[first].priority;
            if service <= 0.0 || interrupts {
                continue;
            }
            let each = if self.is_shared() { service * its.first / (service + its.first) } else { service };
            for &send in node.sends.iter().filter(|&&send| net.arcs[send].target == Some(entry)) {
                wait += flow.arc_rate[send] / received * each * service / (service + self.sweep.unknowns[send]);
            }
        }
        wait
    }

    /// Takes off what is found of the own ones at any time, of which a row finds such a part, at one server also where it finds fewer of them than that. At shared processors they count first as those that
    /// are there for a whole service.
    pub(super) fn take_off_any(&self, scratch: &mut Scratch<S>, part: impl Fn(usize) -> S) {
        let n = self.visits.len();
        if self.is_queue() {
            self.take_off_any_in_queue(scratch);
            return;
        }
        let Scratch { messages, goes_on, alpha, beta, load, .. } = scratch;
        let zero = S::from(0.0);
        for (at, found) in messages.iter_mut().enumerate().filter(|(at, found)| goes_on[at % n] || **found > 0.0) {
            let (row, x) = (&self.layout.rows[at / n], at % n);
            let it = &self.visits[x];
            let (waiting, served) = if self.is_shared() {
                let me = self.visits[row.arc].first;
                if me <= 0.0 {
                    continue;
                }
                *found *= it.first / (me + it.first);
                (alpha[at] * it.wait / me, beta[at] / me)
            } else {
                (if it.first > 0.0 { alpha[at] * it.wait / it.first } else { zero }, load[at])
            };
            let more = *found - self.own_at_any(row.arc, x, (waiting, served)) * part(at / n);
            *found = if more > 0.0 { more } else { zero };
            if more < 0.0 && waiting + served > 0.0 && self.servers <= 1.0 {
                let left = more / (waiting + served) + 1.0;
                let left = if left > 0.0 { left } else { zero };
                [&mut alpha[at], &mut beta[at], &mut load[at]].into_iter().for_each(|part| *part *= left);
            }
        }
    }

    /// What of so much waiting and in service, over another arc, goes on for requests over one that find it, as their customer's or as what their thread has begun.
    fn own_at_any(&self, mine: usize, its: usize, (waiting, served): (S, S)) -> S {
        let customers = self.sweep.populations.customers.iter().enumerate().filter(|(_, n)| **n >= 1.0);
        let of_customers = customers.fold(S::from(0.0), |own, (c, &n)| {
            let shares = self.own_shares(mine, its, c);
            own + (shares.gone_on + shares.itself) * shares.of_one(n, waiting, served)
        });
        let of_thread = self.own_part_of_thread(mine, its) * (waiting + served);
        if of_thread > of_customers { of_thread } else { of_customers }
    }

    /// The entry whose execution sends over an arc.
    fn entry_of(&self, x: usize) -> Option<usize> {
        let net = self.sweep.net;
        net.arcs[self.layout.arcs[x]].source.node().map(|node| net.nodes[node].entry)
    }

    /// What requests over one arc find over another for the same customer of a class, as shares of all that is found of such were there one of them.
    fn own_shares(&self, mine: usize, its: usize, class: usize) -> OwnShares<S> {
        let (net, exclusion) = (self.sweep.net, self.sweep.exclusion);
        let of = |x: usize| {
            let arc = self.layout.arcs[x];
            let waits = net.kin_of_arc(arc).map_or(S::from(0.0), |kin| exclusion.class_shares[kin * net.classes.len() + class]);
            (waits, exclusion.gone_on_over(net, arc, class))
        };
        let ((mine, on), (its, beside)) = (of(mine), of(its));
        let all = (mine + on.met + on.missed) * (its + beside.met + beside.missed);
        OwnShares { gone_on: (mine + on.met) * beside.met, itself: on.met * its, all }
    }

    /// The part of what comes over an arc from elsewhere while a row's request is there that is of that request itself, or goes on for it, where the arc is one of such.
    pub(super) fn own_part_of_coming(&self, row: usize, x: usize, goes_on: bool) -> S {
        let arc = self.layout.rows[row].arc;
        let customers = self.sweep.populations.customers.iter().enumerate().filter(|(_, n)| **n >= 1.0);
        let of_customers = customers.fold(S::from(0.0), |sum, (c, &n)| {
            let OwnShares { gone_on, itself, .. } = self.own_shares(arc, x, c);
            let own = if goes_on { gone_on + itself } else { itself };
            sum + own / n
        });
        let of_thread = if goes_on { self.own_part_of_thread(arc, x) } else { S::from(0.0) };
        if of_thread > of_customers { of_thread } else { of_customers }
    }

    /// The part of what requests over one arc find of what comes over another that their own thread has begun: where it counts what was begun before an idle time, all of the thread's.
    fn own_part_of_thread(&self, mine: usize, its: usize) -> S {
        let Some((lines, (mine, its))) = self.sweep.lines.zip(self.entry_of(mine).zip(self.entry_of(its))) else { return S::from(0.0) };
        lines.own_part(mine, its, |task| {
            if self.is_queue() { S::from(self.sweep.net.tasks[task].threads.recip()) } else { lines.taken_up_part(task) }
        })
    }

    /// Whether requests wait here for threads of a task, and not for a processor.
    fn is_queue(&self) -> bool {
        self.station >= self.sweep.net.n_processors
    }

    /// Adds them to the parts of the waits.
    pub(super) fn add_messages(&self, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let Scratch { messages, messages_wait, beta, load, .. } = scratch;
        messages_wait.clear();
        if messages.is_empty() {
            return;
        }
        messages_wait.resize(self.layout.rows.len(), S::from(0.0));
        let interrupts = self.interrupts();
        let is_queue = self.is_queue();
        for (r, row) in self.layout.rows.iter().enumerate() {
            let me = self.visits[row.arc].first;
            let terms = r * n..(r + 1) * n;
            let mut idle = load[terms.clone()].iter().fold(S::from(self.servers), |idle, &load| idle - load);
            let all = messages[terms.clone()].iter().fold(S::from(0.0), |sum, &found| sum + found);
            for (at, it) in terms.zip(self.visits) {
                let found = messages[at];
                let goes_first = !interrupts || self.priority_of(at % n) >= row.priority;
                if found <= 0.0 || it.first <= 0.0 || !goes_first {
                    continue;
                }
                if self.is_shared() {
                    beta[at] += found * me;
                    load[at] += found;
                } else if self.servers <= 1.0 && is_queue {
                    messages_wait[r] += found * (it.first + it.late);
                } else if self.servers <= 1.0 {
                    beta[at] += found * it.first;
                } else {
                    let served = match is_queue {
                        true if idle > 0.0 => found * (-at_least(all, idle) + 1.0),
                        false if found < idle => found,
                        false if idle > 0.0 => idle,
                        _ => S::from(0.0),
                    };
                    idle -= if is_queue { S::from(0.0) } else { served };
                    beta[at] += served * (it.first + it.late);
                    load[at] += served;
                    messages_wait[r] += (found - served) * (it.first + it.late) / self.servers;
                }
            }
        }
    }
}

/// The chance that there are so many more of a number that is geometric, of such a mean.
fn at_least<S: Scalar>(mean: S, number: S) -> S {
    (mean / (mean + 1.0)).powd(number)
}
