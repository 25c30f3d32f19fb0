//! How likely what a node does is over before an exponential time is: the means of `e^(-t/s)` of slices, calls and waits ([`super`]).

use super::{COIN, CallGroup, ComesAgain, Execution, Lasting, NEARLY_CONSTANT, Node, chance_of_any};
use crate::model::Scalar;

impl<S: Scalar> ComesAgain<'_, S> {
    /// An execution of a node.
    pub(super) fn execution(&self, node: usize, s: Lasting<'_, S>) -> Execution<S> {
        let it = &self.sweep.net.nodes[node];
        let (slice, after) = match it.host_arc {
            None => (S::from(1.0), S::from(1.0)),
            Some(host) => {
                let slice = self.wait_within(host, s) * gamma(it.demand / it.slices, it.cvsq, s.time);
                match s.behind.filter(|behind| behind.host == self.sweep.net.arcs[host].station) {
                    None => (slice, slice),
                    Some(behind) => (S::from(0.0), if behind.has_begun { slice * COIN } else { S::from(COIN) }),
                }
            }
        };
        let think = (it.think_time / s.time + 1.0).recip();
        let Execution { first, none, again, last } =
            if it.deterministic { self.in_turn(it, (slice, after), s) } else { self.at_random(it, (slice, after), s) };
        Execution { first: think * first, none: think * none, again, last }
    }

    /// Calls that follow each other by chance.
    fn at_random(&self, it: &Node<S>, (slice, after): (S, S), s: Lasting<'_, S>) -> Execution<S> {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let (mut here, mut elsewhere, mut calls) = (zero, zero, zero);
        for call in &it.calls {
            let (reached, passed) = self.call_within(call, s);
            let visits = self.sweep.net.arcs[call.arc].visits;
            calls += visits;
            here += visits * reached;
            elsewhere += visits * passed;
        }
        // Where activities follow each other, one slice follows another.
        let more = it.slices - calls - 1.0;
        let more = if more > 0.0 { more } else { zero };
        let steps = calls + more + 1.0;
        let (here, elsewhere, end) = (here / steps, (elsewhere + more) / steps, steps.recip());
        let round = one - slice * elsewhere;
        let (first, none) = (slice * here / round, slice * end / round);
        Execution { first, none, again: after * (here + elsewhere * first), last: after * (end + elsewhere * none) }
    }

    /// Calls that are always as many, in the order in which they are written.
    fn in_turn(&self, it: &Node<S>, (slice, after): (S, S), s: Lasting<'_, S>) -> Execution<S> {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        // Up to a first call, between all two, and since the last one.
        let (mut first, mut between, mut since) = (zero, zero, slice);
        let (mut replies, mut none) = (zero, one);
        for call in &it.calls {
            let visits = self.sweep.net.arcs[call.arc].visits;
            if visits <= 0.0 {
                continue;
            }
            let (reached, passed) = self.call_within(call, s);
            if reached <= 0.0 {
                let each = passed * slice;
                since *= if each > 0.0 { each.powd(visits) } else { zero };
                continue;
            }
            if replies > 0.0 {
                between += since * reached;
            } else {
                first = since * reached;
            }
            let others = visits - 1.0;
            between += if others > 0.0 { others * after * reached } else { zero };
            (replies, none, since) = (replies + visits, zero, after);
        }
        if replies <= 0.0 {
            return Execution { first: zero, none: since, again: zero, last: since };
        }
        Execution { first, none, again: between / replies, last: since / replies }
    }

    /// `r` and `q` of a call.
    fn call_within(&self, call: &CallGroup, s: Lasting<'_, S>) -> (S, S) {
        let net = self.sweep.net;
        let is_here = |arc: usize| net.arcs[arc].station == self.layout.station;
        if is_here(call.arc) {
            return (S::from(1.0), S::from(0.0));
        }
        let served = self.served_within(call.arc, s);
        let here = call.legs.iter().filter(|&&leg| is_here(leg)).fold(S::from(0.0), |sum, &leg| sum + net.arcs[leg].leg_probability);
        (served * here, served * self.legs_within(call, s, |leg| !is_here(leg)))
    }

    /// What forwarding adds to a call, over `these` legs or none.
    pub(super) fn legs_within(&self, call: &CallGroup, s: Lasting<'_, S>, these: impl Fn(usize) -> bool) -> S {
        let net = self.sweep.net;
        let (mut none, mut some) = (S::from(1.0), S::from(0.0));
        for &leg in &call.legs {
            let chance = net.arcs[leg].leg_probability;
            none -= chance;
            if these(leg) {
                some += chance * self.served_within(leg, s);
            }
        }
        if none > 0.0 { some + none } else { some }
    }

    /// The wait and the service of a request until the reply.
    fn served_within(&self, arc: usize, s: Lasting<'_, S>) -> S {
        let (net, flow) = (self.sweep.net, self.sweep.flow);
        let wait = self.wait_within(arc, s);
        let Some(entry) = net.arcs[arc].target else { return wait };
        let host = net.phases(entry)[0].and_then(|node| net.nodes[node].host_arc).map(|host| net.arcs[host].station);
        if s.behind.is_some_and(|behind| host == Some(behind.host)) {
            return S::from(0.0);
        }
        let (mean, variance) = (flow.phases[entry][0], flow.phase_variances[entry][0]);
        if mean > 0.0 { wait * gamma(mean, variance / (mean * mean), s.time) } else { wait }
    }

    fn wait_within(&self, arc: usize, Lasting { time: s, shared, .. }: Lasting<'_, S>) -> S {
        let station = self.sweep.net.arcs[arc].station;
        let mutual = shared.iter().find(|(at, _)| *at == station);
        let wait = mutual.map_or(self.sweep.unknowns[arc], |&(_, share)| self.sweep.unknowns[arc] * (-share + 1.0));
        if wait <= 0.0 {
            return S::from(1.0);
        }
        mixture(chance_of_any(self.sweep.unknowns[self.sweep.chance_of[arc]]), wait, s)
    }
}

/// Of a time that is none but for a chance, and then exponential.
pub(super) fn mixture<S: Scalar>(chance: S, mean: S, s: S) -> S {
    -chance + 1.0 + chance / (mean / (chance * s) + 1.0)
}

/// Of a gamma law of such a mean and squared coefficient of variation.
fn gamma<S: Scalar>(mean: S, cvsq: S, s: S) -> S {
    let time = mean / s;
    if cvsq < NEARLY_CONSTANT { (-time).exp() } else { (-((cvsq * time).ln_1p() / cvsq)).exp() }
}
