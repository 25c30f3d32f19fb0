//! How much sooner a thread is done while one that waits for it keeps away from the processors below.
//!
//! A service has the waits of its execution in it, and those as they are in the mean. While node `i`'s thread waits for a thread that serves
//! `b`, that thread does not meet what only `i`'s thread sends to its processors: it is done sooner by
//!
//! ```text
//! D_ib = Σ_n w_n [ y_h Σ_y (1 - K_iy) (α_hy W_y + β_hy) + Σ_c y_c D_i,target(c) ]          P ← P (1 - D_ib / s_b)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `n`, `w_n` | phases of `b`, and how often they are executed |
//! | `h`, `y_h` | their visits to their processor; `y` the arcs that they wait behind there |
//! | `c`, `y_c` | their calls, forwarded legs too, and how many |
//! | `K`, `α W + β` | path exclusion and what is caused ([`super`]) |
//! | `P` | the pace that the Linearizer has of customers ([`super::super::linearizer`]) |
//!
//! Entries that fork are left as they are.

use std::{collections::HashMap, ops::Range};

use super::{
    super::{
        exclusion::{Exclusion, FREE, Pairs},
        flow::Flow,
        net::Net,
    },
    layout::Layout,
};
use crate::model::Scalar;

/// No step.
const NONE: u32 = u32::MAX;
/// What is left of a service at least.
const LEAST_LEFT: f64 = 0.1;

/// `D` of a pair of kin and entry.
#[derive(Debug)]
struct Step {
    entry: usize,
    hosts: Range<usize>,
    /// Weight by node, arc and step of the called entry.
    calls: Range<usize>,
}

/// Visits of a phase to its processor.
#[derive(Debug)]
struct Host {
    processor: usize,
    row: usize,
    arc: usize,
    node: usize,
    /// Positions of arcs that may keep away, and their pairs.
    meets: Range<usize>,
}

/// Which services are spared what; fixed by the structure.
#[derive(Debug)]
pub(in super::super) struct Sparing {
    /// Callees before callers.
    steps: Vec<Step>,
    hosts: Vec<Host>,
    meets: Vec<(usize, u32)>,
    calls: Vec<(usize, usize, u32)>,
    /// By station of a task: `rows × arcs`.
    of_station: Vec<Vec<u32>>,
}

impl Sparing {
    pub fn new<S: Scalar>(net: &Net<S>, pairs: &Pairs, layouts: &[Layout]) -> Self {
        let mut sparing = Self { steps: Vec::new(), hosts: Vec::new(), meets: Vec::new(), calls: Vec::new(), of_station: Vec::new() };
        let mut known = HashMap::new();
        for (station, layout) in layouts.iter().enumerate() {
            let mut of_terms = Vec::new();
            if station >= net.n_processors {
                for row in &layout.rows {
                    let step = |&a: &usize| match (row.kin, net.arcs[a].target) {
                        (Some(kin), Some(entry)) => sparing.step(net, pairs, layouts, (kin, entry), &mut known),
                        _ => NONE,
                    };
                    of_terms.extend(layout.arcs.iter().map(step).collect::<Vec<_>>());
                }
            }
            sparing.of_station.push(of_terms);
        }
        sparing
    }

    /// The step of a kin and an entry; none where nothing is spared.
    fn step<S: Scalar>(
        &mut self,
        net: &Net<S>,
        pairs: &Pairs,
        layouts: &[Layout],
        key: (usize, usize),
        known: &mut HashMap<(usize, usize), u32>,
    ) -> u32 {
        if let Some(&step) = known.get(&key) {
            return step;
        }
        let (kin, entry) = key;
        let nodes = || net.phases(entry).into_iter().flatten();
        let mut calls = Vec::new();
        for node in nodes() {
            for arc in net.nodes[node].calls.iter().flat_map(|group| std::iter::once(group.arc).chain(group.legs.iter().copied())) {
                let Some(target) = net.arcs[arc].target else { continue };
                let step = self.step(net, pairs, layouts, (kin, target), known);
                if step != NONE {
                    calls.push((node, arc, step));
                }
            }
        }
        let first_host = self.hosts.len();
        for node in nodes() {
            let Some(arc) = net.nodes[node].host_arc else { continue };
            let processor = net.arcs[arc].station;
            let layout = &layouts[processor];
            let Some(position) = layout.arcs.iter().position(|&a| a == arc) else { continue };
            let first = self.meets.len();
            let pair_of = |&a: &usize| net.kin_of_arc(a).map_or(FREE, |other| pairs.of(net, kin, other));
            self.meets.extend(layout.arcs.iter().map(pair_of).enumerate().filter(|(_, pair)| *pair != FREE));
            if self.meets.len() > first {
                let meets = first..self.meets.len();
                self.hosts.push(Host { processor, row: layout.row_of[position], arc, node, meets });
            }
        }
        if calls.is_empty() && self.hosts.len() == first_host {
            known.insert(key, NONE);
            return NONE;
        }
        let first_call = self.calls.len();
        self.calls.extend(calls);
        self.steps.push(Step { entry, hosts: first_host..self.hosts.len(), calls: first_call..self.calls.len() });
        #[expect(clippy::cast_possible_truncation, reason = "fewer than pairs, which are numbered in 32 bits")]
        let step = (self.steps.len() - 1) as u32;
        known.insert(key, step);
        step
    }

    /// Sets `left` to what is left of the services, `1 - D/s` by step. `caused` are the parts of the waits by processor, `rows × arcs`.
    pub fn update<S: Scalar>(&self, net: &Net<S>, flow: &Flow<S>, exclusion: &Exclusion<S>, caused: &[Vec<S>], room: &mut Spared<S>) {
        let zero = S::from(0.0);
        room.time.clear();
        room.left.clear();
        for step in &self.steps {
            let mut time = zero;
            for host in &self.hosts[step.hosts.clone()] {
                let caused = &caused[host.processor];
                if caused.is_empty() {
                    continue;
                }
                let n = net.stations[host.processor].arcs.len();
                let row = &caused[host.row * n..(host.row + 1) * n];
                let kept_away = |sum: S, &(y, pair): &(usize, u32)| sum + (-exclusion.factors[pair as usize] + 1.0) * row[y];
                let behind = self.meets[host.meets.clone()].iter().fold(zero, kept_away);
                time += behind * net.arcs[host.arc].visits * net.nodes[host.node].weight;
            }
            for &(node, arc, callee) in &self.calls[step.calls.clone()] {
                time += room.time[callee as usize] * net.arcs[arc].visits * net.nodes[node].weight;
            }
            let held = flow.held(step.entry);
            let left = if held > 0.0 { -(time / held) + 1.0 } else { S::from(1.0) };
            room.time.push(time);
            room.left.push(if left < LEAST_LEFT { S::from(LEAST_LEFT) } else { left });
        }
    }

    /// What is left for the arrivals of a row of the service over an arc, by position.
    pub(super) fn left<S: Scalar>(&self, station: usize, term: usize, room: &Spared<S>) -> S {
        match self.of_station[station].get(term) {
            Some(&step) if step != NONE => room.left[step as usize],
            _ => S::from(1.0),
        }
    }
}

/// What is spared, by step: time and what is left of the service.
#[derive(Debug)]
pub(in super::super) struct Spared<S> {
    time: Vec<S>,
    left: Vec<S>,
}

impl<S> Spared<S> {
    pub fn new() -> Self {
        Self { time: Vec::new(), left: Vec::new() }
    }
}
