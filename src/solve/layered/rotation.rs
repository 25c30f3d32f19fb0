//! What one turn of a replicated model does to its network.
//!
//! Copies that are wired in a circle are alike: the network with one customer of copy `i + k` less is the one with one of copy
//! `i` less, turned by `k`. So the Linearizer solves one of them for all ([`super::linearizer`]).

use std::collections::HashMap;

use super::{
    linearizer::Presence,
    net::{Net, Source},
};
use crate::{model::Scalar, solve::copies::Copies};

/// Where a turn takes the classes and the arcs.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    pub classes: Vec<usize>,
    arcs: Vec<usize>,
}

impl Rotation {
    /// The shortest turn that leaves the network of all copies as it is; none where there is none, or nothing to gain by it.
    pub fn new<S>(copies: &Copies, net: &Net<S>) -> Option<Self> {
        if net.classes.len() < 2 {
            return None;
        }
        let tasks = task_images(copies, &copies.rotation()?);
        let (mut entries, mut nodes) = (vec![0; net.entries.len()], vec![0; net.nodes.len()]);
        let mut nodes_of = vec![Vec::new(); net.tasks.len()];
        for (n, node) in net.nodes.iter().enumerate() {
            nodes_of[node.task].push(n);
        }
        for (t, &image) in tasks.iter().enumerate() {
            for (&from, &to) in net.tasks[t].entries.iter().zip(&net.tasks[image].entries) {
                entries[from] = to;
            }
            for (&from, &to) in nodes_of[t].iter().zip(&nodes_of[image]) {
                nodes[from] = to;
            }
        }
        let classes = net.classes.iter().map(|&t| net.tasks[tasks[t]].class).collect::<Option<Vec<_>>>()?;
        let turned = |source: Source| match source {
            Source::Held(n) => Source::Held(nodes[n]),
            Source::Detached(n) => Source::Detached(nodes[n]),
            Source::Open => Source::Open,
        };
        // Several arcs may say the same: the first of them goes to the first, the second to the second.
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (a, arc) in net.arcs.iter().enumerate() {
            places.entry((arc.source, arc.target, arc.via)).or_default().push(a);
        }
        let mut arcs = vec![0; net.arcs.len()];
        for ((source, target, via), from) in &places {
            let to = places.get(&(turned(*source), target.map(|e| entries[e]), via.map(|e| entries[e])))?;
            if to.len() != from.len() {
                return None;
            }
            from.iter().zip(to).for_each(|(&from, &to)| arcs[from] = to);
        }
        Some(Self { classes, arcs })
    }

    /// The presence at the arcs, turned.
    pub fn turn<S: Scalar>(&self, of: &Presence<S>) -> Presence<S> {
        let turn = |from: &[S]| {
            let mut to = from.to_vec();
            self.arcs.iter().zip(from).for_each(|(&image, &x)| to[image] = x);
            to
        };
        Presence { waiting: turn(&of.waiting), first: turn(&of.first), late: turn(&of.late), held: turn(&of.held) }
    }
}

/// Where a turn by `shifts` takes every task of the model of all copies.
fn task_images(copies: &Copies, shifts: &[u32]) -> Vec<usize> {
    let (mut images, mut first) = (Vec::new(), 0);
    for (&n, &shift) in copies.tasks.iter().zip(shifts) {
        images.extend((0..n).map(|copy| first + ((copy + shift) % n) as usize));
        first += n as usize;
    }
    images
}
