//! Which pairs of kin are needed, and from which others the factor of each follows: all that the structure of a network says about exclusion.

use std::collections::{HashMap, HashSet};

use super::mixer::Mixing;
use crate::{
    model::Scalar,
    solve::layered::{
        net::{Net, Source, Work},
        turns::Strand,
    },
};

/// The pair whose factor is one and that have no strands in common.
pub(in super::super) const FREE: u32 = 0;

/// What a pair's factor follows from; fixed by the structure.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub rule: Rule,
    /// Terms `share · factor` of the sum, in [`Pairs::terms`].
    from: u32,
    to: u32,
    /// Whether the two may be, or work for, two strands of one fork.
    of_strands: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Free,
    /// `f_t` alone.
    Threads(usize),
    /// The sum over parents of the entry.
    Parents(usize),
    /// The same, times `f_t`.
    SameTask(usize, usize),
    /// Nodes of one fork, in the list of overlaps: no other thread's, times `f_t`, and the own one's.
    Strands(usize, usize),
}

/// The pairs that are needed and how each follows from others.
#[derive(Clone, Debug)]
pub(in super::super) struct Pairs {
    index: HashMap<(u32, u32), u32, Mixing>,
    pub(super) pairs: Vec<Pair>,
    /// Index into the shares, and the pair.
    pub(super) terms: Vec<(u32, u32)>,
    /// By entry: parents' kin and the range of shares.
    pub(super) parents: Vec<Vec<(usize, u32)>>,
    /// The share that each arc adds to.
    pub(super) share_of_arc: Vec<Option<u32>>,
    pub(super) n_shares: usize,
    pub(super) entry_of_share: Vec<usize>,
    /// By entry, arcs that add to its shares.
    pub(super) n_sending: Vec<f64>,
    /// By entry, the arcs by which it forwards requests.
    pub(super) forwarded: Vec<Vec<usize>>,
    /// By entry, the arcs by which nodes send it requests that they do not wait for.
    pub(super) sent: Vec<Vec<usize>>,
    /// By entry, the kin of its strands.
    pub(super) strands_of: Vec<Vec<usize>>,
    /// Position in the list of overlaps of two nodes.
    pub(super) strands: HashMap<(usize, usize), usize>,
    /// By that position, whether a join leaves one of the two behind where the other begins.
    pub(super) left: Vec<bool>,
    pub(super) forked: Vec<usize>,
    /// By task, those whose threads wait for it, and whether requests come that none bounds.
    pub(super) callers: Vec<Vec<usize>>,
    pub(super) unbounded: Vec<bool>,
    /// By task, whether requests come that no waiting thread bounds.
    pub(super) open: Vec<bool>,
    /// By task, whether threads go on after the reply.
    pub(super) goes_on: Vec<bool>,
    /// Pairs whose factor follows from one of two nodes of a pool.
    pub(super) sent_on: Vec<u32>,
}

impl Pairs {
    /// The pairs of kin that meet at stations, and those from which theirs follow.
    pub fn new<S: Scalar>(net: &Net<S>) -> Self {
        let mut pairs = Self::parents_of(net);
        pairs.find_strands(net);
        let mut keys = pairs.closure(net);
        keys.sort_unstable_by_key(|&(a, b)| (place(net, a), place(net, b)));
        for key in keys {
            pairs.add(net, key);
        }
        pairs.find_sent_on(net);
        pairs
    }

    /// The pair of two kin.
    pub fn of<S>(&self, net: &Net<S>, a: usize, b: usize) -> u32 {
        self.index.get(&ordered(net, a, b)).copied().unwrap_or(FREE)
    }

    /// What the factor of a pair is summed over: positions of shares, and pairs.
    pub(super) fn terms_of(&self, pair: u32) -> &[(u32, u32)] {
        let Pair { from, to, .. } = self.pairs[pair as usize];
        &self.terms[from as usize..to as usize]
    }

    /// Tasks whose strands wait for whatever the threads of a task do; none of one that begins some of it.
    pub fn begun_by<S>(&self, net: &Net<S>, task: usize) -> Option<&[usize]> {
        let it = &net.tasks[task];
        let begins = it.class.is_some() || it.width > 1.0 || self.unbounded[task];
        (!begins).then(|| self.callers[task].as_slice())
    }

    /// Whether any strands run side by side.
    pub fn forks(&self) -> bool {
        !self.forked.is_empty()
    }

    /// Whether the two of a pair may be, or work for, two strands of one fork.
    pub fn are_of_strands(&self, pair: u32) -> bool {
        self.pairs[pair as usize].of_strands
    }

    /// The place of two nodes among the strands, if a join leaves the one behind where the other begins.
    pub fn left_behind(&self, one: usize, other: usize) -> Option<usize> {
        self.strands.get(&(one, other)).copied().filter(|&strands| self.left[strands])
    }

    /// Whether something goes on for those who do not wait for it: after a reply, or for requests that nobody waits for.
    pub fn go_on(&self) -> bool {
        self.goes_on.contains(&true) || self.sent.iter().any(|sent| !sent.is_empty())
    }

    /// Whether a join leaves some strands behind.
    pub fn leave(&self) -> bool {
        self.left.contains(&true)
    }

    fn parents_of<S>(net: &Net<S>) -> Self {
        let mut parents: Vec<Vec<(usize, u32)>> = vec![Vec::new(); net.entries.len()];
        let mut share_of_arc = vec![None; net.arcs.len()];
        let mut entry_of_share = Vec::new();
        let mut n_sending = vec![0.0; net.entries.len()];
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); net.tasks.len()];
        let mut unbounded = vec![false; net.tasks.len()];
        for arc in &net.arcs {
            let Some(task) = arc.target.map(|e| net.entries[e].task) else { continue };
            match arc.source.held() {
                Some(node) => callers[task].push(net.nodes[node].task),
                None => unbounded[task] = true,
            }
        }
        // Threads that go on after the reply are busy beyond what their callers account for.
        let goes_on: Vec<bool> = net.tasks.iter().map(|task| task.entries.iter().any(|&e| net.goes_on_after_reply(e))).collect();
        let open = unbounded.clone();
        unbounded.iter_mut().zip(&goes_on).for_each(|(unbounded, &goes_on)| *unbounded |= goes_on);
        callers.iter_mut().for_each(|list| {
            list.sort_unstable();
            list.dedup();
        });
        let mut forwarded = vec![Vec::new(); net.entries.len()];
        for (a, via) in net.arcs.iter().enumerate().filter_map(|(a, arc)| Some((a, arc.via?))) {
            forwarded[via].push(a);
        }
        let mut sent = vec![Vec::new(); net.entries.len()];
        for (a, arc) in net.arcs.iter().enumerate().filter(|(_, arc)| matches!(arc.source, Source::Detached(_))) {
            arc.target.iter().for_each(|&entry| sent[entry].push(a));
        }
        let mut strands_of = vec![Vec::new(); net.entries.len()];
        for (k, node) in net.kins.iter().enumerate().filter_map(|(k, kin)| Some((k, kin.strand?))) {
            strands_of[net.nodes[node].entry].push(k);
        }
        for (a, arc) in net.arcs.iter().enumerate() {
            let (Some(target), Some(node)) = (arc.target, arc.source.held()) else { continue };
            let kin = net.nodes[node].kin;
            let share = match parents[target].iter().find(|(k, _)| *k == kin) {
                Some(&(_, share)) => share,
                None => {
                    entry_of_share.push(target);
                    let share = to_u32(entry_of_share.len() - 1);
                    parents[target].push((kin, share));
                    share
                }
            };
            share_of_arc[a] = Some(share);
            n_sending[target] += 1.0;
        }
        Self {
            index: HashMap::default(),
            pairs: vec![Pair { rule: Rule::Free, from: 0, to: 0, of_strands: false }],
            terms: Vec::new(),
            parents,
            share_of_arc,
            n_shares: entry_of_share.len(),
            entry_of_share,
            n_sending,
            forwarded,
            strands_of,
            strands: HashMap::new(),
            left: Vec::new(),
            forked: Vec::new(),
            callers,
            unbounded,
            open,
            goes_on,
            sent,
            sent_on: Vec::new(),
        }
    }

    fn find_strands<S: Scalar>(&mut self, net: &Net<S>) {
        for (e, entry) in net.entries.iter().enumerate() {
            let Work::Graph(graph) = &entry.work else { continue };
            self.forked.push(e);
            for overlap in graph.overlaps(&|_| Strand::exponential(S::from(1.0))) {
                let next = self.strands.len();
                self.strands.insert(overlap.nodes, next);
                self.left.push(overlap.left.is_some());
            }
        }
    }

    fn strand<S>(&self, net: &Net<S>, a: usize, b: usize) -> Option<usize> {
        let (v, w) = (net.kins[a].strand?, net.kins[b].strand?);
        self.strands.get(&(v, w)).or_else(|| self.strands.get(&(w, v))).copied()
    }

    /// All keys that are needed.
    fn closure<S>(&self, net: &Net<S>) -> Vec<(usize, usize)> {
        let mut open = Vec::new();
        for station in &net.stations {
            let mut kins: Vec<usize> = station.arcs.iter().filter_map(|&a| net.kin_of_arc(a)).collect();
            // The first slice of a second phase meets what its first phase could have met.
            kins.extend(station.arcs.iter().filter_map(|&a| net.arcs[a].source.held().map(|n| net.nodes[n].entry)));
            kins.sort_unstable();
            kins.dedup();
            for (i, &a) in kins.iter().enumerate() {
                open.extend(kins[i..].iter().map(|&b| ordered(net, a, b)));
            }
        }
        let mut known: HashSet<(usize, usize), Mixing> = open.iter().map(|&(a, b)| (a as usize, b as usize)).collect();
        let mut open: Vec<(usize, usize)> = known.iter().copied().collect();
        while let Some((later, other)) = open.pop() {
            let Some(entry) = self.summed_entry(net, later, other) else { continue };
            for &(parent, _) in &self.parents[entry] {
                let (a, b) = ordered(net, parent, other);
                let key = (a as usize, b as usize);
                if known.insert(key) {
                    open.push(key);
                }
            }
        }
        known.into_iter().collect()
    }

    /// The entry over whose parents the factor of a pair is summed.
    fn summed_entry<S>(&self, net: &Net<S>, later: usize, other: usize) -> Option<usize> {
        let (i, j) = (&net.kins[later], &net.kins[other]);
        if i.task == j.task && (net.tasks[i.task].class.is_some() || i.entry.is_none() || j.entry.is_none()) {
            return None;
        }
        i.entry
    }

    fn add<S>(&mut self, net: &Net<S>, (later, other): (usize, usize)) {
        let (i, j) = (&net.kins[later], &net.kins[other]);
        let customers = net.tasks[i.task].class.is_some();
        let strand = self.strand(net, later, other);
        let from = to_u32(self.terms.len());
        let mut met = false;
        if let Some(entry) = self.summed_entry(net, later, other) {
            for &(parent, share) in &self.parents[entry] {
                let pair = self.of(net, parent, other);
                met |= pair != FREE;
                self.terms.push((share, pair));
            }
        }
        let finite = net.tasks[i.task].threads.is_finite() && !customers;
        let rule = if let (Some(strand), true) = (strand, i.task == j.task) {
            Rule::Strands(i.task, strand)
        } else if i.task == j.task {
            match self.summed_entry(net, later, other) {
                Some(entry) if finite || met => Rule::SameTask(i.task, entry),
                None if finite => Rule::Threads(i.task),
                _ => Rule::Free,
            }
        } else {
            match i.entry {
                Some(entry) if met => Rule::Parents(entry),
                _ => Rule::Free,
            }
        };
        if rule == Rule::Free {
            self.terms.truncate(from as usize);
            return;
        }
        let to = to_u32(self.terms.len());
        let follows = self.terms[from as usize..].iter().any(|&(_, pair)| self.are_of_strands(pair));
        let of_strands = follows || matches!(rule, Rule::Strands(..));
        self.index.insert((to_u32(later), to_u32(other)), to_u32(self.pairs.len()));
        self.pairs.push(Pair { rule, from, to, of_strands });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a model has fewer than 2³² arcs")]
pub(super) fn to_u32(i: usize) -> u32 {
    i as u32
}

fn place<S>(net: &Net<S>, kin: usize) -> (usize, usize) {
    (net.tasks[net.kins[kin].task].position, kin)
}

/// The later one first.
fn ordered<S>(net: &Net<S>, a: usize, b: usize) -> (u32, u32) {
    if place(net, a) >= place(net, b) { (to_u32(a), to_u32(b)) } else { (to_u32(b), to_u32(a)) }
}
