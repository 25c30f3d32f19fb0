//! Where a sweep leads: waits and flows that go on while what arrivals find of each other stays.
//!
//! A sweep asks every station at the flows and waits of the last one, so that what changes at one queue is known to the task above only
//! in the next. Most of that is plain arithmetic: what the parts of a wait ([`station`](super::station)) are in proportion to. So a sweep ends with a few
//! steps in which
//!
//! ```text
//! S, λ ← means of times and rates at the waits W                                  (Flow::follow)
//! f_x = λ_x s_x / (λ_x⁰ s_x⁰)      g_x = f_x s_x / s_x⁰                           what was found at λ⁰, s⁰; of processors s is given
//! W_b ← Σ_x (α_bx f_x W_x + β_bx g_x) + own_b                                     (Parts::follow)
//! ```
//!
//! At a solution `f = g = 1` and the waits stay what they are: it is that of the sweeps without. Only there are fewer of
//! them, by a fifth to a third ([`Manner`](super::station::Manner)), for about a twentieth of what each costs.

use super::{flow::Flow, net::Net, station::Parts, structure::Structure};
use crate::model::Scalar;

/// Follows the waits at the head of `next`, whose `parts` were found at the flow `at`, for so many customers, in so many steps; `flow` is room.
pub(super) fn go_on<S: Scalar>(
    net: &Net<S>,
    structure: &Structure,
    parts: &mut [Parts<S>],
    (at, flow): (&Flow<S>, &mut Flow<S>),
    (customers, steps): (&[f64], usize),
    next: &mut [S],
) {
    flow.start_at(at);
    for _ in 0..steps {
        let waits = structure.waits(net, next);
        flow.follow(net, &waits, customers);
        let factors = |arc: usize| {
            let requests = ratio(flow.arc_rate[arc], at.arc_rate[arc]);
            let Some(entry) = net.arcs[arc].target else { return (requests, requests) };
            let service = ratio(flow.held(entry), at.held(entry));
            let work = requests * service;
            (work, work * service)
        };
        for (parts, layout) in parts.iter_mut().zip(&structure.layouts) {
            parts.follow(layout, factors, &mut next[..net.arcs.len()]);
        }
    }
}

/// How many times as much, where there is something.
fn ratio<S: Scalar>(now: S, then: S) -> S {
    if now > 0.0 && then > 0.0 { now / then } else { S::from(1.0) }
}

#[cfg(test)]
mod tests {
    use super::{super::compile::compile, *};
    use crate::model::{Bindings, lqn_text};

    /// Two classes and requests from outside; phases, think times, numbers of calls that are always the same, forwarding, messages, a fork.
    fn net() -> Net<f64> {
        let text = "P 0 p uu i p p1 f m 2 p p2 f p p3 f -1
            T 0 t c1 r e1 -1 uu z 3 m 5 t c2 r e2 -1 uu z 1 m 2 t s1 n f1 f2 f3 -1 p1 m 3 t s2 n g1 -1 p2 t s3 n h1 h2 -1 p3 m 2 -1
            E 0 s e1 0.1 -1 y e1 f1 1.5 -1 f e2 1 -1 s e2 0.2 -1 y e2 f2 2 -1 y e2 g1 1 -1
            s f1 0.2 0.3 0.1 -1 Z f1 0.4 -1 y f1 g1 1 0.5 -1 y f1 h1 0 0 2 -1 s f2 0.3 -1 F f2 h2 0.4 -1 s f3 0.1 -1 a f3 0.1
            A g1 a1 s h1 0.2 0.1 -1 z h1 f3 0.2 -1 s h2 0.3 -1 -1
            A s2 s a1 0.1 s a2 0.2 y a2 h1 1 s a3 0.3 s a4 0.1 : a1 -> a2 & a3; a2 & a3 -> a4; a4[g1] -1";
        let model = lqn_text::parse(text).unwrap_or_else(|error| panic!("{error}"));
        compile(&model, &Bindings::new()).unwrap()
    }

    fn unknowns(n: usize) -> Vec<f64> {
        (0..n).map(|i| 0.1 + 0.05 * ((i * 7) % 11) as f64).collect()
    }

    #[test]
    fn flows_followed_to_where_they_are_stay() {
        let net = net();
        let structure = Structure::new(&net);
        let x = unknowns(structure.n_unknowns);
        let (mut at, mut followed) = (Flow::new(&net), Flow::new(&net));
        let waits = structure.waits(&net, &x);
        at.update(&net, &waits, &[5.0, 2.0]);
        followed.start_at(&at);
        followed.follow(&net, &waits, &[5.0, 2.0]);
        let numbers = |flow: &Flow<f64>| {
            let phases = flow.phases.iter().flatten().copied();
            let rates = [&flow.entry_rate, &flow.arc_rate, &flow.class_rate].into_iter().flatten().copied();
            phases.chain(rates).collect::<Vec<f64>>()
        };
        let (before, after) = (numbers(&at), numbers(&followed));
        assert!(before.iter().filter(|&&number| number > 0.0).count() > 20);
        for (i, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!((after - before).abs() <= 1e-12 * before.abs(), "{i}: {before} {after}");
        }
    }

    #[test]
    fn parts_are_added_up_with_their_factors() {
        let net = net();
        let structure = Structure::new(&net);
        let mut waits = unknowns(net.arcs.len());
        let before = waits.clone();
        for layout in &structure.layouts {
            let (n, n_rows) = (layout.arcs.len(), layout.rows.len());
            let mut parts = Parts::none();
            parts.follow(layout, |_| (2.0, 3.0), &mut waits);
            parts.take(&vec![0.1; n_rows * n], &vec![0.2; n_rows * n], &vec![0.3; n_rows]);
            let alone = layout.arcs.iter().fold(0.3, |sum, &arc| sum + 0.1 * 2.0 * before[arc] + 0.2 * 3.0);
            parts.follow(layout, |_| (2.0, 3.0), &mut waits);
            for &arc in &layout.arcs {
                assert!((waits[arc] - alone).abs() < 1e-12, "{arc}: {} {alone}", waits[arc]);
            }
        }
    }
}
