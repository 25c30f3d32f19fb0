//! What nothing comes to.
//!
//! Calls of an entry that neither customers nor requests from outside ever lead to are never made, yet its task counted among those that may be at what it calls, and
//! where one of them never is, mean values were not corrected for what is known of the others. So nothing of it is left but its name. What leads to an entry
//! is written in the model: a number of calls that is a parameter does, even at 0, so that solutions are continuous there.

use super::{super::net::reached, Compiler};
use crate::model::Scalar;

impl<S: Scalar> Compiler<'_, S> {
    /// Finds to which tasks customers lead, and takes entries that nothing comes to from their tasks, and all that they do.
    pub(super) fn find_who_comes(&mut self) {
        let called = self.called();
        let reached = |open: Vec<usize>| reached(called.len(), open, |entry, open| open.extend(&called[entry]));
        for class in 0..self.net.classes.len() {
            let of_class = reached(self.net.tasks[self.net.classes[class]].entries.clone());
            for task in self.net.tasks.iter_mut().filter(|task| task.entries.iter().any(|&entry| of_class[entry])) {
                task.of_classes.push(class);
            }
        }
        let net = &self.net;
        let begins = |&entry: &usize| net.tasks[net.entries[entry].task].class.is_some() || net.entries[entry].open_rate.is_some();
        let reached = reached((0..net.entries.len()).filter(begins).collect());
        if reached.iter().all(|&is_reached| is_reached) {
            return;
        }
        let net = &mut self.net;
        let is_kept: Vec<bool> = net.arcs.iter().map(|arc| arc.source.node().is_none_or(|node| reached[net.nodes[node].entry])).collect();
        let moved: Vec<usize> = is_kept.iter().scan(0, |next, &kept| Some(std::mem::replace(next, *next + usize::from(kept)))).collect();
        let mut kept = is_kept.iter();
        net.arcs.retain(|_| kept.next().is_none_or(|kept| *kept));
        for station in &mut net.stations {
            station.arcs.retain(|&arc| is_kept[arc]);
            station.arcs.iter_mut().for_each(|arc| *arc = moved[*arc]);
        }
        for node in &mut net.nodes {
            if !reached[node.entry] {
                let (zero, one) = (S::from(0.0), S::from(1.0));
                (node.host_arc, node.uses_processor) = (None, false);
                (node.demand, node.think_time) = (zero, zero);
                (node.slices, node.n_sync, node.no_sync, node.n_sync_variance) = (one, zero, one, zero);
                node.calls.clear();
                node.sends.clear();
                node.parts.clear();
            }
            let calls = node.calls.iter_mut().flat_map(|call| std::iter::once(&mut call.arc).chain(&mut call.legs));
            calls.chain(&mut node.sends).chain(&mut node.host_arc).for_each(|arc| *arc = moved[*arc]);
        }
        net.tasks.iter_mut().for_each(|task| task.entries.retain(|&entry| reached[entry]));
        net.entries.iter_mut().zip(reached).for_each(|(entry, is_reached)| entry.is_reached = is_reached);
    }

    /// The entries to which the requests of each lead.
    fn called(&self) -> Vec<Vec<usize>> {
        let net = &self.net;
        let mut called = vec![Vec::new(); net.entries.len()];
        for arc in &net.arcs {
            if let (Some(node), Some(target)) = (arc.source.node(), arc.target) {
                called[net.nodes[node].entry].push(target);
            }
        }
        called
    }
}
