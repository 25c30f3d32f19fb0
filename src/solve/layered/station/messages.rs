//! What requests find of those that they sent themselves, at processors and before the threads of tasks.
//!
//! Who sends a request and does not wait for it goes on with its slice, and then elsewhere, or to the same processor again. What it sent is there as long as
//! it takes, and so is found by the sender's next slices, by what is called next, and by what is sent next. Along the course of a request, slice by slice and
//! call by call, the number `o` of those that it has sent and that are still at a processor is
//!
//! ```text
//! o ← o τ/(τ + t) + a τ/(τ + η s)                          a slice elsewhere
//! o ← a                                                    one here, at a single server and in order of arrival: what was there goes first, what is sent is behind
//! o ← o κ s_x/(s_x + s) + a τ/(τ + η s)                    one here at several: what was there begins first, κ = (m-1)/o (1 - e^(-o/(m-1))) of it are beside
//! o ← δ o + β                                              an execution: of n slices, C a call, 1/n the chance that a slice is the last,
//! δ = δ_s/n / (1 - δ_s D),  β = β_s + n δ (D β_s + B)      D = Σ_C y_C/n δ_C,  B = Σ_C y_C/n β_C
//! ō = (o/n + D β_s + B)/(1 - D δ_s)                        before a slice of it, in the mean
//! ```
//!
//! and of those that it is sent with
//!
//! ```text
//! i = a θ/(1 + A (1 - θ)),  θ = τ/(τ + s/(1 + A))          sent before, in the same slice;  at a single server here a η
//! η                                                        who sent it, where that is here, of whom so much of a slice is left
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `τ` | how long such a request takes, also until it has a thread; for the rest of it, it is here |
//! | `s`, `t` | service in a slice, and that with its wait |
//! | `a`, `A` | such requests that are sent in a slice, and all that are |
//! | `η` | of random numbers, which are without memory, 1: as much is left as a slice takes; of numbers that are always the same 1/2 |
//! | `s_x`, `m` | service of such a request, servers |
//! | `δ`, `β` | what is left of `o` after an execution, and what is added; `_s` after a slice, `_C` after a call, of which there are `y_C` |
//!
//! Times are taken to be exponential. Where strands of a fork begin each finds what has been sent before; a join is as late as one of them, and all have sent.
//! Of numbers of calls that are always the same a slice is followed by so many times a call of the mean kind and a slice. A customer begins with what is left
//! of his last cycle, and where a request has waited for a thread with what that sent for the one before. What is found at any time of all requests has the
//! own ones with it; that part is taken off. No more of a pool are found than it has threads.
//!
//! Before the threads of a task, in order of arrival, those that are sent in the same slice wait for each other: `i`, the others are as at any time. Where a stream from outside tells how long
//! its requests wait, theirs are longer by `1/(1 - Σ α)` of that, and at several threads the less of it is told the more of what is found comes with them.
//!
//! They make wait as others do: in order of arrival for their services, of several servers those that have none to themselves; a shared processor for
//! `s s_x/(s + s_x)`, until one of the two has ended. Of several threads those that are idle take a number that is geometric, `i (1 - (i/(1 + i))^idle)`.

mod course;
mod lines;
mod step;

use self::course::{Course, left_of_slice};
pub(in super::super) use self::lines::Lines;
use super::{
    super::net::{Discipline, Net, Source, Work},
    At, Scratch, Sweep,
    layout::Layout,
};
use crate::model::Scalar;

/// What is left of a slice, or of what is sent in it, where a request of a number that is always the same is sent.
const HALF: f64 = 0.5;
/// Of two numbers one that is as good as none.
const NEGLIGIBLE: f64 = 1e-6;

/// Requests to an entry that threads send and do not wait for.
#[derive(Clone, Debug)]
struct Message {
    /// The place of their arc: of their first slices at a processor, or of the first that they come over to a queue.
    arc: usize,
    entry: usize,
}

/// Where requests come to a processor that nobody waits for, or to the queue of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    to: Vec<Message>,
    /// The row of each node that is served there; empty where there are no messages, and of a task.
    row_of_node: Vec<Option<usize>>,
    /// The place of each arc to the queue of a task; empty elsewhere.
    place_of_arc: Vec<Option<usize>>,
}

impl Messages {
    pub fn find<S>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Self {
        if station >= net.n_processors {
            return Self::at_queue(net, layout, station);
        }
        if matches!(net.stations[station].discipline, Discipline::Delay | Discipline::Groups) {
            return Self::default();
        }
        let sent = |entry: usize| calls[entry].iter().any(|&call| matches!(net.arcs[call].source, Source::Detached(_)));
        let to = layout.rows.iter().filter_map(|row| {
            let node = &net.nodes[layout.groups[row.group?]];
            let is_first = node.phase == 0 && matches!(net.entries[node.entry].work, Work::Phases(_));
            (is_first && sent(node.entry)).then_some(Message { arc: row.arc, entry: node.entry })
        });
        let to: Vec<Message> = to.collect();
        if to.is_empty() {
            return Self::default();
        }
        let mut row_of_node = vec![None; net.nodes.len()];
        layout.groups.iter().zip(&layout.row_of_group).for_each(|(&node, &row)| row_of_node[node] = Some(row));
        Self { to, row_of_node, place_of_arc: Vec::new() }
    }

    /// The same before the threads of a task.
    fn at_queue<S>(net: &Net<S>, layout: &Layout, station: usize) -> Self {
        let it = &net.stations[station];
        let mut to: Vec<Message> = Vec::new();
        for (place, &arc) in layout.arcs.iter().enumerate() {
            let Some(entry) = net.arcs[arc].target.filter(|_| matches!(net.arcs[arc].source, Source::Detached(_))) else { continue };
            if !to.iter().any(|message| message.entry == entry) {
                to.push(Message { arc: place, entry });
            }
        }
        if to.is_empty() || it.servers.is_infinite() || it.discipline != Discipline::Fcfs {
            return Self::default();
        }
        let mut place_of_arc = vec![None; net.arcs.len()];
        layout.arcs.iter().enumerate().for_each(|(place, &arc)| place_of_arc[arc] = Some(place));
        Self { to, row_of_node: Vec::new(), place_of_arc }
    }

    pub fn are_none(&self) -> bool {
        self.to.is_empty()
    }
}

impl<S: Scalar> At<'_, S> {
    /// `o` before each row's slices, of each row.
    pub(super) fn find_messages(&self, scratch: &mut Scratch<S>) {
        let Layout { messages, rows, .. } = self.layout;
        let zero = S::from(0.0);
        scratch.messages.clear();
        if messages.are_none() {
            return;
        }
        scratch.messages.resize(rows.len() * self.visits.len(), zero);
        let is_queue = self.station >= self.sweep.net.n_processors;
        for message in &messages.to {
            let v = &self.visits[message.arc];
            let after_senders = v.wait - self.waits_for_senders(message);
            let here = if after_senders > 0.0 { v.first + v.late + after_senders } else { v.first + v.late };
            let stay = if is_queue { here } else { here + self.waits_for_threads(message.entry) };
            if v.rate > 0.0 && stay > 0.0 {
                Course::new(self, message, stay, here).follow(&mut scratch.messages);
            }
        }
        self.hold_to_threads(&mut scratch.messages, &[]);
    }

    /// How long what is sent to an entry waits for a thread.
    fn waits_for_threads(&self, entry: usize) -> S {
        let Sweep { net, unknowns, .. } = self.sweep;
        let sent = |arc: usize| net.arcs[arc].target == Some(entry) && matches!(net.arcs[arc].source, Source::Detached(_));
        net.tasks[net.entries[entry].task].station.map_or(S::from(0.0), |queue| self.sweep.mean_over(queue, sent, |arc| unknowns[arc]))
    }

    /// What the first slice of a message waits for those who send it.
    fn waits_for_senders(&self, message: &Message) -> S {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let its = &self.visits[message.arc];
        let received = flow.entry_rate[message.entry];
        let mut wait = S::from(0.0);
        if received <= 0.0 || self.servers > 1.0 || self.station >= net.n_processors {
            return wait;
        }
        for (&group, &row) in self.layout.groups.iter().zip(&self.layout.row_of_group) {
            let node = &net.nodes[group];
            let service = self.visits[self.layout.rows[row].arc].first * left_of_slice(node.deterministic);
            if service <= 0.0 {
                continue;
            }
            let each = if self.is_shared() { service * its.first / (service + its.first) } else { service };
            for &send in node.sends.iter().filter(|&&send| net.arcs[send].target == Some(message.entry)) {
                wait += flow.arc_rate[send] / received * each * service / (service + self.sweep.unknowns[send]);
            }
        }
        wait
    }

    /// Takes off what is found of the own ones at any time, of which a row finds such a part. At shared processors they count first as those that are there for a whole service.
    pub(super) fn take_off_any(&self, scratch: &mut Scratch<S>, part: impl Fn(usize) -> S) {
        let n = self.visits.len();
        // Before the threads of a task only those count that come together.
        if self.station >= self.sweep.net.n_processors {
            return;
        }
        let Scratch { messages, alpha, beta, load, .. } = scratch;
        let customers = self.sweep.populations.customers;
        for (at, found) in messages.iter_mut().enumerate().filter(|(_, found)| **found > 0.0) {
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
                (if it.first > 0.0 { alpha[at] * it.wait / it.first } else { S::from(0.0) }, load[at])
            };
            let mut own = S::from(0.0);
            for (c, &n) in customers.iter().enumerate().filter(|(_, n)| **n >= 1.0) {
                let both = self.begun_for(row.arc, c) * self.begun_for(x, c);
                own += both * (waiting * (1.0 - n.recip()) + served) / n;
            }
            if let Some((lines, (mine, its))) = self.sweep.lines.zip(self.entry_of(row.arc).zip(self.entry_of(x))) {
                let of_thread = lines.own_part(mine, its) * (waiting + served);
                own = if of_thread > own { of_thread } else { own };
            }
            let left = *found - own * part(at / n);
            *found = if left > 0.0 { left } else { S::from(0.0) };
        }
    }

    /// The entry whose execution sends over an arc.
    fn entry_of(&self, x: usize) -> Option<usize> {
        let net = self.sweep.net;
        net.arcs[self.layout.arcs[x]].source.node().map(|node| net.nodes[node].entry)
    }

    /// The share of a class in the requests over an arc, whether its customers wait for them or not.
    fn begun_for(&self, x: usize, class: usize) -> S {
        let (net, exclusion, arc) = (self.sweep.net, self.sweep.exclusion, self.layout.arcs[x]);
        let waits = net.kin_of_arc(arc).map_or(S::from(0.0), |kin| exclusion.class_shares[kin * net.classes.len() + class]);
        waits + exclusion.gone_on_over(net, arc, class).met
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
        let has_priorities = self.has_priorities();
        let is_queue = self.station >= self.sweep.net.n_processors;
        for (r, row) in self.layout.rows.iter().enumerate() {
            let me = self.visits[row.arc].first;
            let terms = r * n..(r + 1) * n;
            let mut idle = load[terms.clone()].iter().fold(S::from(self.servers), |idle, &load| idle - load);
            let all = messages[terms.clone()].iter().fold(S::from(0.0), |sum, &found| sum + found);
            for (at, it) in terms.zip(self.visits) {
                let found = messages[at];
                let goes_first = !has_priorities || self.priority_of(at % n) >= row.priority;
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
