//! What is fixed about a model whatever its numbers: who meets whom at which station, and where its unknowns stand ([`super::fixed_point`]).

use super::{
    exclusion::Pairs,
    flow::Waits,
    net::Net,
    station::{Callers, Contention, Layout, Manner, Sparing},
};
use crate::model::Scalar;

/// What the sweeps of a model need to know of its structure, whatever its numbers.
#[derive(Debug)]
pub(super) struct Structure {
    pub pairs: Pairs,
    /// Of each station.
    pub layouts: Vec<Layout>,
    pub sparing: Sparing,
    /// Length of the row of unknowns.
    pub n_unknowns: usize,
    /// By arc, where the chance to wait stands.
    pub probability_of: Vec<usize>,
    /// By arc, where the share of its wait stands that other strands of its fork cause, if they meet.
    contention_of: Vec<Option<Contention>>,
    /// Stations that the threads of a task visit.
    pub visited: Vec<Vec<usize>>,
    /// Where what one thread less leaves at a station begins, and the number of all.
    pub first_left: Vec<usize>,
    pub n_left: usize,
}

impl Structure {
    pub fn new<S: Scalar>(net: &Net<S>) -> Self {
        let pairs = Pairs::new(net);
        let mut layouts: Vec<Layout> = Vec::with_capacity(net.stations.len());
        let mut offset = net.arcs.len() + net.stations.len();
        let mut probability_of = vec![0; net.arcs.len()];
        let mut contention_of = vec![None; net.arcs.len()];
        let mut visited = vec![Vec::new(); net.tasks.len()];
        let mut bounding = vec![None; net.stations.len()];
        for task in &net.tasks {
            task.station.iter().for_each(|&station| bounding[station] = Some(task.bounded_by));
        }
        let mut first_left = Vec::with_capacity(net.stations.len());
        let mut n_left = 0;
        let callers = Callers::new(net);
        for station in 0..net.stations.len() {
            let layout = Layout::new(net, &pairs, &callers, station, offset);
            for (i, &a) in layout.arcs.iter().enumerate() {
                probability_of[a] = offset + layout.row_of[i];
                contention_of[a] = layout.contention_of(i);
            }
            offset = layout.places().end;
            // Nobody waits at a task that its caller bounds: its stations are the caller's.
            layout.pools.iter().filter(|&&task| bounding[station] != Some(task)).for_each(|&task| visited[task].push(station));
            first_left.push(n_left);
            n_left += layout.pools.len();
            layouts.push(layout);
        }
        let sparing = Sparing::new(net, &pairs, &layouts);
        if contention_of.iter().all(Option::is_none) {
            contention_of.clear();
        }
        Self { pairs, layouts, sparing, n_unknowns: offset, probability_of, contention_of, visited, first_left, n_left }
    }

    /// Places of the unknowns that sweeps of such a manner hold as they are.
    pub fn held(&self, manner: Manner) -> impl Iterator<Item = usize> {
        self.layouts.iter().flat_map(move |layout| manner.held(&layout.places()))
    }

    /// What stands of waits in a row of unknowns.
    pub fn waits<'a, S>(&'a self, net: &Net<S>, x: &'a [S]) -> Waits<'a, S> {
        Waits { wait: &x[..net.arcs.len()], row: &self.probability_of, contention: &self.contention_of, ratios: x, leaves_out: false }
    }
}
