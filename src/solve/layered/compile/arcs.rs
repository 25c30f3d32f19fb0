//! The arcs of a node: calls, forwarded legs, visits to the processor; and open arrivals.

use super::{
    super::net::{Arc, CallGroup, Source},
    Compiler, SolveError,
};
use crate::{
    model::{CallKind, Scalar},
    solve::bind::unusable,
};

/// Forwarding chains beyond this length are refused: they can only come from a cycle.
const MAX_FORWARDING_LEGS: usize = 10_000;

impl<S: Scalar> Compiler<'_, S> {
    /// Adds the node's calls and, once their number is known, its visits to the processor.
    pub(super) fn add_calls(&mut self, node: usize, calls: &[(CallKind, String, S)]) -> Result<(), SolveError> {
        let mut n_sync = S::from(0.0);
        for (kind, dest, mean) in calls {
            let from = self.net.entries[self.net.nodes[node].entry].name.clone();
            let target = self.destination(dest, || format!("call from entry \"{from}\""))?;
            if *kind == CallKind::Async {
                let arc = self.add_arc(Source::Detached(node), target, *mean, None, S::from(1.0))?;
                self.net.nodes[node].sends.push(arc);
                continue;
            }
            n_sync += *mean;
            let arc = self.add_arc(Source::Held(node), target, *mean, None, S::from(1.0))?;
            let legs = self.forwarded_legs(node, target, *mean)?;
            self.net.nodes[node].calls.push(CallGroup { arc, legs });
        }
        // Who sends without waiting goes on with its slice.
        let slices = self.net.nodes[node].slices + n_sync;
        self.net.nodes[node].slices = slices;
        self.net.nodes[node].n_sync = n_sync;
        if self.net.nodes[node].uses_processor {
            let task = self.net.nodes[node].task;
            let station = self.net.tasks[task].processor;
            let arc = Arc {
                source: Source::Held(node),
                station,
                target: None,
                visits: slices,
                via: None,
                leg_probability: S::from(1.0),
                priority: self.net.tasks[task].priority,
                group: self.group_of(task)?,
            };
            self.net.nodes[node].host_arc = Some(self.push_arc(arc));
        }
        Ok(())
    }

    /// The group of a task on its processor, and its guaranteed share.
    fn group_of(&self, task: usize) -> Result<Option<(usize, S)>, SolveError> {
        let Some(name) = &self.model.tasks[task].group else { return Ok(None) };
        let processor = &self.model.processors[self.net.tasks[task].processor];
        let Some(index) = processor.groups.iter().position(|g| &g.name == name) else { return Ok(None) };
        Ok(Some((index, processor.groups[index].share.eval(self.values)?)))
    }

    /// The arcs by which a call of `mean` requests to `target` goes on through forwarding, probabilities multiplied.
    fn forwarded_legs(&mut self, node: usize, target: usize, mean: S) -> Result<Vec<usize>, SolveError> {
        let mut legs = Vec::new();
        let mut pending = vec![(target, S::from(1.0))];
        while let Some((entry, reached)) = pending.pop() {
            for (dest, probability) in self.forwarding[entry].clone() {
                if legs.len() >= MAX_FORWARDING_LEGS {
                    return Err(unusable(format!("entry \"{}\"", self.net.entries[target].name), "its forwarding never ends"));
                }
                let p = reached * probability;
                legs.push(self.add_arc(Source::Held(node), dest, mean * p, Some(entry), p)?);
                pending.push((dest, p));
            }
        }
        Ok(legs)
    }

    fn add_arc(&mut self, source: Source, target: usize, visits: S, via: Option<usize>, p: S) -> Result<usize, SolveError> {
        let entry = &self.net.entries[target];
        let station = self.net.tasks[entry.task]
            .station
            .ok_or_else(|| unusable(format!("entry \"{}\"", entry.name), "an entry of a reference task cannot be called"))?;
        let sender = source.node().map_or(0.0, |n| self.net.tasks[self.net.nodes[n].task].priority);
        let priority = sender + entry.priority;
        Ok(self.push_arc(Arc { source, station, target: Some(target), visits, via, leg_probability: p, priority, group: None }))
    }

    fn push_arc(&mut self, arc: Arc<S>) -> usize {
        let index = self.net.arcs.len();
        self.net.stations[arc.station].arcs.push(index);
        self.net.arcs.push(arc);
        index
    }

    pub(super) fn open_arrivals(&mut self) {
        for entry in 0..self.net.entries.len() {
            let Some(visits) = self.net.entries[entry].open_rate else { continue };
            if let Some(station) = self.net.tasks[self.net.entries[entry].task].station {
                self.push_arc(Arc {
                    source: Source::Open,
                    station,
                    target: Some(entry),
                    visits,
                    via: None,
                    leg_probability: S::from(1.0),
                    priority: self.net.entries[entry].priority,
                    group: None,
                });
            }
        }
    }
}
