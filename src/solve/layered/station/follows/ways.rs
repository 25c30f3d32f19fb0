//! Which slices follow which at a processor, and on which ways requests come there.

use super::super::{
    super::{
        graph::{Graph, Piece, Start},
        net::{Discipline, Net, Source, Work},
    },
    layout::Layout,
    previous::{Previous, find_followed},
};
use super::in_order::InOrder;
use crate::model::Scalar;

/// Most rows: of more, slices find what there is at any time. Where as many branches begin together the sweeps go to and fro (32 that call a task each and two customers take 210).
pub(super) const MOST_ROWS: usize = 60;
/// So many customers find only one other, of whom more is known ([`super::super::rests`]).
const TOLD_APART: f64 = 2.0;

/// What slices follow which at a processor.
#[derive(Clone, Debug)]
pub(in super::super) struct Follows {
    /// The slices before those of each row.
    pub(super) before: Vec<Vec<Previous>>,
    /// The slices of each row that are told apart.
    pub(super) in_order: InOrder,
    /// `w` of each row.
    pub(super) strands: Vec<f64>,
    /// Whether what follows a row's slices is a join.
    pub(super) before_join: Vec<bool>,
    /// Rows of the strands of the same fork that begin here with those of a row.
    pub(super) beside: Vec<Vec<usize>>,
    /// Whether the slices of strands follow each other without memory: numbers of calls that are always the same have one.
    pub(super) tells_own: bool,
    /// Whether all are customers who have a thread each wherever they call, and neither fork nor send.
    pub(super) are_free: bool,
    /// Tasks whose customers or threads are the sources.
    pub(super) sources: Vec<usize>,
    /// The entries that lead here, callers before callees.
    pub(super) entries: Vec<Led>,
    /// The place among these of each row's entry.
    pub(super) entry_of: Vec<usize>,
    /// Calls that may wait for a thread on the way from a source, with the place of their caller and `w` of it.
    pub(super) blocked: Vec<(usize, usize, f64)>,
}

/// An entry that leads to a station.
#[derive(Clone, Debug)]
pub(super) enum Led {
    /// By threads that are sources.
    By(usize),
    /// By those that lead to its callers, by arc and place.
    Through(Vec<(usize, usize)>),
}

impl Follows {
    /// None but at processors in order of arrival where slices follow each other at once, and requests fork or are sent, or one server has customers with a thread each at all tasks.
    pub(in super::super) fn find<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Option<Self> {
        let it = &net.stations[station];
        let is_in_order = it.discipline == Discipline::Fcfs && it.servers.is_finite() && layout.levels.len() <= 1;
        if station >= net.n_processors || !is_in_order || layout.rows.len() > MOST_ROWS {
            return None;
        }
        let neither_forks_nor_sends = !layout.siblings && !is_sent_to(net, layout, it.servers);
        if neither_forks_nor_sends && it.servers > 1.0 {
            return None;
        }
        let nodes: Vec<usize> = layout.rows.iter().map(|row| row.group.map(|group| layout.groups[group])).collect::<Option<_>>()?;
        let is_taken = |&node: &usize| {
            let it = &net.nodes[node];
            it.phase == 0
                && match &net.entries[it.entry].work {
                    Work::Phases(phases) => phases[1..].iter().all(Option::is_none),
                    Work::Graph(graph) => is_told(graph) && !net.goes_on_after_reply(it.entry),
                }
        };
        if !nodes.iter().all(is_taken) || nodes.len() != layout.arcs.len() {
            return None;
        }
        let before = find_followed(net, layout, calls);
        if layout.messages.are_none() && !before.iter().flatten().any(Previous::is_at_once) {
            return None;
        }
        let mut are_here = vec![false; net.tasks.len()];
        nodes.iter().for_each(|&node| are_here[net.nodes[node].task] = true);
        let places = vec![None; net.entries.len()];
        let mut ways =
            Ways { net, calls, are_here, sources: Vec::new(), entries: Vec::new(), strands: Vec::new(), blocked: Vec::new(), places };
        let mut rows = Vec::new();
        for &node in &nodes {
            rows.push(ways.lead_to(net.nodes[node].entry)?);
        }
        let are_free = neither_forks_nor_sends && ways.are_of_free_customers();
        if ways.are_nested() || neither_forks_nor_sends && !are_free {
            return None;
        }
        let strands = nodes.iter().zip(&rows).map(|(&node, &entry)| ways.strands[entry] * share_of(net, node)).collect();
        let mut before_join = vec![false; nodes.len()];
        for previous in before.iter().flatten().filter(|previous| previous.is_joined()) {
            before_join[layout.row_of[previous.slice]] = true;
        }
        let begins_with = |row: usize| net.nodes[nodes[row]].begins_with;
        let beside = (0..nodes.len()).map(|row| {
            let others =
                (0..nodes.len()).filter(|&other| other != row && begins_with(row).is_some() && begins_with(other) == begins_with(row));
            others.collect()
        });
        let beside = beside.collect();
        let tells_own = it.servers == 1.0 && nodes.iter().all(|&node| !net.nodes[node].deterministic || net.nodes[node].calls.is_empty());
        let Ways { sources, entries, blocked, .. } = ways;
        Some(Self {
            in_order: InOrder::of(net, &nodes, are_free),
            are_free,
            before,
            strands,
            before_join,
            beside,
            tells_own,
            sources,
            entries,
            entry_of: rows,
            blocked,
        })
    }
}

/// The ways on which requests come.
struct Ways<'a, S> {
    net: &'a Net<S>,
    calls: &'a [Vec<usize>],
    /// Tasks that are served at the station.
    are_here: Vec<bool>,
    sources: Vec<usize>,
    entries: Vec<Led>,
    blocked: Vec<(usize, usize, f64)>,
    /// By entry, sources for each of its executions: of one that `n` branches call `1/n`, of one that no source waits for none.
    strands: Vec<f64>,
    places: Vec<Option<usize>>,
}

impl<S> Ways<'_, S> {
    /// Whether threads of one source work for those of another: while they want for threads, these are neither here nor about to come.
    fn are_nested(&self) -> bool {
        self.sources.iter().any(|&source| self.has_above(source, |task| self.sources.contains(&task)))
    }

    /// Whether all that come are customers, more than two, who wait for no thread on the way.
    fn are_of_free_customers(&self) -> bool {
        let number: f64 = self.sources.iter().map(|&source| self.net.tasks[source].threads).sum();
        number > TOLD_APART && self.blocked.is_empty() && self.sources.iter().all(|&source| self.net.tasks[source].class.is_some())
    }

    /// Whether requests are sent to a task that nobody waits for.
    fn is_sent_to(&self, task: usize) -> bool {
        let mut calls = self.net.tasks[task].entries.iter().flat_map(|&entry| &self.calls[entry]);
        calls.any(|&call| matches!(self.net.arcs[call].source, Source::Detached(_)))
    }

    /// Whether a task works for such another.
    fn has_above(&self, task: usize, is_such: impl Fn(usize) -> bool) -> bool {
        let mut seen = vec![false; self.net.tasks.len()];
        let mut open = vec![task];
        while let Some(task) = open.pop() {
            for &call in self.net.tasks[task].entries.iter().flat_map(|&entry| &self.calls[entry]) {
                let Some(caller) = self.net.arcs[call].source.held().map(|node| self.net.nodes[node].task) else { continue };
                if is_such(caller) {
                    return true;
                }
                if !std::mem::replace(&mut seen[caller], true) {
                    open.push(caller);
                }
            }
        }
        false
    }

    /// The place of an entry, with all that leads to it before; none where these call each other in a circle.
    fn lead_to(&mut self, entry: usize) -> Option<usize> {
        if let Some(place) = self.places[entry] {
            return Some(place).filter(|&place| place != usize::MAX);
        }
        self.places[entry] = Some(usize::MAX);
        let net = self.net;
        let task = net.entries[entry].task;
        let may_wait = net.tasks[task].threads < net.tasks[task].at_once;
        let is_source = net.tasks[task].class.is_some()
            || may_wait && !self.is_sent_to(task) && !self.has_above(task, |task| self.are_here[task] || self.is_sent_to(task));
        let (led, strands) = if is_source {
            let source = self.sources.iter().position(|&source| source == task).unwrap_or_else(|| {
                self.sources.push(task);
                self.sources.len() - 1
            });
            (Led::By(source), 1.0)
        } else {
            let (mut callers, mut strands, mut n_led) = (Vec::new(), 0.0, 0.0);
            for &call in &self.calls[entry] {
                let Some(node) = net.arcs[call].source.held() else { continue };
                let place = self.lead_to(net.nodes[node].entry)?;
                let of_caller = self.strands[place] * share_of(net, node);
                strands += of_caller;
                n_led += if of_caller > 0.0 { 1.0 } else { 0.0 };
                callers.push((call, place));
                if may_wait {
                    self.blocked.push((call, place, of_caller));
                }
            }
            (Led::Through(callers), if n_led > 0.0 { strands / n_led } else { 0.0 })
        };
        self.entries.push(led);
        self.strands.push(strands);
        self.places[entry] = Some(self.entries.len() - 1);
        self.places[entry]
    }
}

/// Whether requests are sent to a processor that their senders do not wait for: to one of several servers, where who sends is served there, too.
fn is_sent_to<S>(net: &Net<S>, layout: &Layout, servers: f64) -> bool {
    let is_here = |entry: usize| layout.groups.iter().any(|&node| net.nodes[node].entry == entry);
    let sends = |&node: &usize| net.nodes[node].sends.iter().any(|&arc| net.arcs[arc].target.is_some_and(is_here));
    !layout.messages.are_none() && (servers <= 1.0 || layout.groups.iter().any(sends))
}

/// Whether all joins of a graph wait for all, and nothing that forks is repeated.
fn is_told<S>(graph: &Graph<S>) -> bool {
    graph.vertices.iter().all(|vertex| {
        let waits_for_all = !matches!(&vertex.start, Start::Join { before, needed, .. } if *needed < before.len());
        waits_for_all && !matches!(vertex.piece, Piece::Loop(..))
    })
}

/// Threads for each strand of a graph that is at a node: one of `n` branches counts `1/n`.
fn share_of<S>(net: &Net<S>, node: usize) -> f64 {
    let Work::Graph(graph) = &net.entries[net.nodes[node].entry].work else { return 1.0 };
    let mut shares: Vec<f64> = Vec::with_capacity(graph.vertices.len());
    for vertex in &graph.vertices {
        let share = match &vertex.start {
            Start::First => 1.0,
            Start::After(p) => shares[*p] / graph.vertices.iter().filter(|v| matches!(v.start, Start::After(q) if q == *p)).count() as f64,
            Start::Join { before, .. } => before.iter().map(|&p| shares[p]).sum(),
        };
        shares.push(share);
    }
    graph.vertex_of(node).map_or(1.0, |vertex| shares[vertex])
}
