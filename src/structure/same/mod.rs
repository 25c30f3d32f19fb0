//! SAME: message traces to interactions by the analysis of interaction trees.
//!
//! Input: for each trace its messages `(A, B, t)` from unit A to unit B, received at `t`, in order of time; output:
//! [`Interactions`]. Source: Israr, Lau, Franks, Woodside, *Automatic generation of layered queuing software performance
//! models from commonly available traces*, WOSP 2005, section 4.
//!
//! A forest of occurrences grows with the messages. `live[X]` is the one occurrence of unit X that may still act; `B ⇒ A`
//! says that A is a strict descendant of B, both live (what lies between may be dead already: a *zombie*).
//!
//! For a message (A, B, t), with u = `live[A]` and v = `live[B]` (Part B of section 4.3):
//!
//! 1. *Not v ⇒ u*: without u, A gets a new occurrence, the root of a tree (an originator). B gets a new occurrence, a child
//!    of u by an arc labelled t; a former v becomes a zombie.
//! 2. *v ⇒ u*: the message closes a cycle v = n₀, n₁, …, u, in which each element is labelled with the time of its outgoing
//!    arc. Two elements are a synchronous interaction; more are a request of n₀ that n₁ … forwarded and u replied to. All
//!    but n₀ become zombies, the arcs of the cycle go, and so do occurrences left without arcs. (An n₀ that was itself
//!    invoked stays live: what it sends next is still the same occurrence's.)
//! 3. *Cleanup*, until nothing changes: a zombie root, a root with several children (all arcs but that to the child whose message
//!    was sent last), and a zombie leaf give their arcs up; each such arc is an asynchronous interaction.
//!
//! At the end of the trace every arc that is left is an asynchronous interaction.
//!
//! | generalisation | rule |
//! |---|---|
//! | local event of A | A runs: messages that it has sent so far are not waited for, and cannot be the first arc of a cycle |
//! | second phase | a unit that replied or forwarded and sends before it accepts anything else goes on with its last occurrence, in phase 2 |
//! | several traces | each starts afresh; what was found is joined by the units' names |
//! | two-point mode | the sender is bound when the message is sent, which also closes a cycle; the receiver when it is received. Equal to the above where both times are equal |
//!
//! Where this differs from the paper's text: an existing live receiver is never joined by an arc unless that closes a cycle
//! (section 4.3 over 4.1); forwarding records keep the order client, forwarders, replier (Part C names the ends the other
//! way round). *Self time* of an occurrence is the sum of its gaps from a reception to the next sending.

mod forest;

use crate::{
    structure::{
        SecondPhase, Timing,
        interactions::{Hints, Interactions, Recording},
    },
    trace::{
        diagnostics::Diagnostics,
        same::{LocalEvent, Message, MessageLog, TraceLog},
    },
};
use forest::{Forest, Transit};

/// Finds the interactions of every trace of a log.
pub fn find_interactions(log: MessageLog, timing: Timing, second_phase: SecondPhase) -> Interactions {
    let MessageLog { units, operations, scenarios, traces, mut diagnostics } = log;
    let mut forest = Forest::new(&units.names, second_phase);
    for trace in &traces {
        let timing = effective_timing(trace, timing, &mut diagnostics);
        forest.begin_trace(&trace.name);
        match timing {
            Timing::TwoPoint => feed_two_point(&mut forest, trace),
            Timing::Auto | Timing::Reception => feed_by_reception(&mut forest, trace),
        }
        forest.end_trace();
    }
    let (occurrences, interactions, found) = forest.finish();
    diagnostics.merge(found);
    let traces = traces.into_iter().map(|trace| Recording::new(trace.name, trace.scenario)).collect();
    Interactions { units, operations, scenarios, traces, occurrences, interactions, diagnostics, hints: Hints::default() }
}

/// What [`Timing::Auto`] means for this trace: two points where every message has both times, in this order.
fn effective_timing(trace: &TraceLog, timing: Timing, diagnostics: &mut Diagnostics) -> Timing {
    let skewed = trace.messages.iter().find(|m| m.sent.is_some_and(|sent| sent > m.received));
    if let Some(message) = skewed {
        diagnostics.add("clock_skew", "messages were received before they were sent: the clocks of the log disagree", || {
            format!("{}: received at {}", trace.name, message.received)
        });
    }
    match timing {
        Timing::Auto if skewed.is_none() && trace.messages.iter().all(|m| m.sent.is_some()) => Timing::TwoPoint,
        Timing::Auto => Timing::Reception,
        asked => asked,
    }
}

/// Messages take effect when they are received; of a message and a local event at one time, the message is first.
fn feed_by_reception(forest: &mut Forest<'_>, trace: &TraceLog) {
    let mut local = trace.local_events.iter().peekable();
    for message in &trace.messages {
        while let Some(event) = local.next_if(|event| event.time < message.received) {
            forest.local_event(event);
        }
        forest.message(message);
    }
    local.for_each(|event| forest.local_event(event));
}

enum Step<'t> {
    Send(usize, &'t Message),
    Receive(usize, &'t Message),
    Local(&'t LocalEvent),
}

/// Sendings and receptions take effect at their own times; ties in order of the messages, then sending before reception.
fn feed_two_point(forest: &mut Forest<'_>, trace: &TraceLog) {
    let mut steps = Vec::with_capacity(2 * trace.messages.len() + trace.local_events.len());
    for (index, message) in trace.messages.iter().enumerate() {
        steps.push((message.sent.unwrap_or(message.received), index, Step::Send(index, message)));
        steps.push((message.received, index, Step::Receive(index, message)));
    }
    steps.extend(trace.local_events.iter().map(|event| (event.time, usize::MAX, Step::Local(event))));
    steps.sort_by_key(|(time, index, _)| (*time, *index));
    let mut transits: Vec<Option<Transit>> = trace.messages.iter().map(|_| None).collect();
    for (_, _, step) in steps {
        match step {
            Step::Send(index, message) => transits[index] = forest.send(message),
            Step::Local(event) => forest.local_event(event),
            Step::Receive(index, message) => {
                if let Some(transit) = transits[index].take() {
                    forest.receive(transit, message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
