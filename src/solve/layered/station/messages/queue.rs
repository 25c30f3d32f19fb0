//! What is sent to the threads of a task: found by what the same request sends there with it, and by its calls there after it.
//!
//! It is in the queue and with its thread once, for `W + s_x`. At one thread all of it that a call finds has gone when that has its turn; at several `κ` of it is in service beside the call, and outlasts a service of
//! `s` with the chance `s_x/(s_x + s)`. Along the course ([`super`]) only calls change it so, and a thread of `m` begins with what it sent before:
//!
//! ```text
//! o → π o + (1 - π) E(τ) o        τ = (m/λ - t)/(1 - π)
//! ```
//!
//! All that a thread sends is its own, whether it was idle since or not: of what calls find at any time over each arc `1/m` is taken off, or what is of the same customer, where that is more.
//!
//! | symbol | is |
//! |---|---|
//! | `κ`, `E` | as in [`super`] |
//! | `π`, `τ` | chance that a thread takes up the next request at once, and how long it is idle otherwise |
//! | `λ`, `t` | executions of the task a unit of time, and how long one takes |

use smallvec::SmallVec;

use super::{
    super::{
        super::net::{CallGroup, Discipline, Net, Source},
        At, Scratch,
        layout::Layout,
    },
    Message, Messages, NEGLIGIBLE,
    course::Course,
    outline::Errand,
    presence::{Presence, Slices},
    reach::Reach,
    step::{Kept, There},
};
use crate::model::Scalar;

impl Messages {
    /// What is sent to the threads of a task.
    pub(super) fn at_queue<S: Scalar>(net: &Net<S>, layout: &Layout, reach: &Reach, station: usize) -> Self {
        let it = &net.stations[station];
        if it.servers.is_infinite() || it.discipline != Discipline::Fcfs {
            return Self::default();
        }
        let comes = reach.comes_to_queue(net, layout);
        let mut to: Vec<Message> = Vec::new();
        for (place, &arc) in layout.arcs.iter().enumerate() {
            let Some(entry) = net.arcs[arc].target.filter(|_| matches!(net.arcs[arc].source, Source::Detached(_))) else { continue };
            let errand = Errand::Sent(entry);
            if !to.iter().any(|message| message.errand == errand) {
                to.push(Message { errand, first: Some(place), path: reach.path(net, errand, &comes) });
            }
        }
        Self { to, ..Self::default() }
    }
}

impl<S: Scalar> At<'_, S> {
    /// How something is in a queue and with the thread.
    pub(super) fn presence_in_queue(&self, x: usize) -> Option<Presence<S>> {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let v = &self.visits[x];
        let here = v.first + v.late + v.wait;
        (v.rate > 0.0 && here > 0.0).then(|| Presence {
            slices: vec![Slices { arc: x, share: one, of_pool: one, threads: f64::INFINITY }],
            service: v.first,
            here,
            away: zero,
            on: zero,
            leaves: zero,
            returns: zero,
            begins_here: one,
        })
    }

    /// Takes off what calls find of the own ones at any time. Of those that are sent only what comes together counts.
    pub(super) fn take_off_any_in_queue(&self, scratch: &mut Scratch<S>) {
        let (net, Layout { arcs, rows, messages, .. }) = (self.sweep.net, self.layout);
        let n = self.visits.len();
        let zero = S::from(0.0);
        for (r, row) in rows.iter().enumerate().filter(|(_, row)| net.arcs[arcs[row.arc]].source.held().is_some()) {
            for message in &messages.to {
                let Some(first) = message.first.filter(|first| scratch.messages[r * n + first] > 0.0) else { continue };
                let comes = |x: &usize| {
                    let arc = &net.arcs[arcs[*x]];
                    arc.target == Some(message.errand.entry()) && matches!(arc.source, Source::Detached(_))
                };
                let (mut own, mut all) = (zero, zero);
                for x in (0..n).filter(comes) {
                    let it = &self.visits[x];
                    let waiting = if it.first > 0.0 { scratch.alpha[r * n + x] * it.wait / it.first } else { zero };
                    let served = scratch.load[r * n + x];
                    own += self.own_at_any(row.arc, x, (waiting, served));
                    all += waiting + served;
                }
                let more = scratch.messages[r * n + first] - own;
                scratch.messages[r * n + first] = if more > 0.0 { more } else { zero };
                if more < 0.0 && all > 0.0 && self.servers <= 1.0 {
                    let left = more / all + 1.0;
                    let left = if left > 0.0 { left } else { zero };
                    for x in (0..n).filter(comes) {
                        let Scratch { alpha, beta, load, .. } = scratch;
                        [alpha, beta, load].into_iter().for_each(|part| part[r * n + x] *= left);
                    }
                }
            }
        }
    }
}

impl<S: Scalar> Course<'_, '_, S> {
    /// So many are found over an arc, if that leads to the queue at hand: a part of what its row finds.
    pub(super) fn come_to_queue(&self, arc: usize, number: S, found: &mut [S]) {
        if self.at.sweep.net.arcs[arc].station != self.at.station {
            return;
        }
        let Layout { row_of, arcs, .. } = self.at.layout;
        let Some((place, first)) = arcs.iter().position(|&it| it == arc).zip(self.message.first) else { return };
        let rates = &self.at.sweep.flow.arc_rate;
        let row = row_of[place];
        let of_row = arcs.iter().zip(row_of).filter(|(_, of)| **of == row);
        let all = of_row.fold(S::from(0.0), |sum, (&arc, _)| sum + rates[arc]);
        if all > 0.0 {
            found[row * arcs.len() + first] += number * rates[arc] / all;
        }
    }

    /// What a call that begins with so many, and what is forwarded of it, find in the queue at hand.
    pub(super) fn come_with_call(&self, call: &CallGroup, begins: There<S>, found: &mut [S]) {
        if !self.at.is_queue() {
            return;
        }
        let mut forwarded: SmallVec<[(usize, There<S>); 4]> = SmallVec::new();
        for arc in call.arcs() {
            let it = &self.at.sweep.net.arcs[arc];
            let forwards = it.via.and_then(|via| forwarded.iter().rev().find(|(entry, _)| *entry == via));
            let before = forwards.map_or(begins, |(_, left)| *left);
            self.come_to_queue(arc, before.here, found);
            if let Some(target) = it.target.filter(|_| !call.legs.is_empty()) {
                forwarded.push((target, self.past(arc).of(before)));
            }
        }
    }

    /// What is left after what forwarding adds to a call, where a queue is at hand.
    pub(super) fn past_legs(&self, legs: &[usize]) -> Kept<S> {
        legs.iter().filter(|_| self.at.is_queue()).fold(Kept::all(), |kept, &leg| {
            let part = self.at.sweep.net.arcs[leg].leg_probability;
            kept.then(self.past(leg).times(part).plus(Kept::all().times(-part + 1.0)))
        })
    }

    /// What is left after a wait for a thread and the service until the reply, or what is forwarded.
    fn past(&self, arc: usize) -> Kept<S> {
        let sweep = self.at.sweep;
        let (service, _) = sweep.service(arc);
        self.passed_in_queue(arc, service)
            .map_or_else(|| self.it.after(sweep.unknowns[arc]).then(self.it.after(service)), |(_, served)| served)
    }

    /// What is left where a thread of a task begins an execution of what was there as it ended the last one: all where the next has waited for it; else none that counts at a processor, and at a queue
    /// what outlasts the time for which the thread is idle.
    pub(super) fn kept_between(&self, task: usize) -> Kept<S> {
        let sweep = self.at.sweep;
        let taken_up = sweep.taken_up_at_once(task);
        let at_once = Kept::all().times(taken_up);
        let idle = -taken_up + 1.0;
        let threads = sweep.net.tasks[task].threads;
        if !self.at.is_queue() || threads.is_infinite() || idle <= NEGLIGIBLE {
            return at_once;
        }
        let (rate, busy) = sweep.executions(task);
        let time = (rate.recip() * threads - busy) / idle;
        at_once.plus(self.it.after(time).times(idle))
    }

    /// What becomes of them until a call has its thread, where it is one to the queue at hand, and then in a service of so long.
    pub(super) fn passed_in_queue(&self, call: usize, service: S) -> Option<(Kept<S>, Kept<S>)> {
        let (net, Layout { row_of, arcs, .. }) = (self.at.sweep.net, self.at.layout);
        if net.arcs[call].station != self.at.station {
            return None;
        }
        let place = arcs.iter().position(|&it| it == call)?;
        if self.at.servers <= 1.0 {
            return Some((Kept::none(), Kept::none()));
        }
        let kept = |here: S| Kept { here: There { here, ..There::none() }, ..Kept::none() };
        let beside = self.room.held[row_of[place]];
        let outlasts = self.it.service / (self.it.service + service);
        Some((kept(beside), kept(beside * outlasts)))
    }
}
