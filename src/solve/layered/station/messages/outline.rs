//! How slices at a station follow each other in what goes on.
//!
//! ```text
//! n = Σ_x n_x        T = n h + a_all        runs = n - j        away = runs - e + 1 - b        p = j/n    r = (runs - e)/n    q = (runs - b)/away    a = a_all/away
//! j_node = Σ_C y_C [j_C + b_C φ_C + e_C]      φ_C = (W + s)/(W + s + W_C)                                  of a node with slices here, else Σ_C y_C j_C
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `n_x`, `j` | slices of each row, and how many follow another at once |
//! | `b`, `e` | chance that it begins with one, and that it ends with one |
//! | `T` | how long it takes |
//! | `y_C`, `W_C` | calls that are waited for, and their wait for a thread |

use super::{
    super::{
        super::{graph::Start, net::Work},
        At,
        layout::Layout,
    },
    NEGLIGIBLE,
    behind::Behind,
    presence::{Presence, Slices},
};
use crate::model::Scalar;

/// What goes on for a request without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// An entry that is sent a request that nobody waits for.
    Sent(usize),
    /// An entry after its reply.
    AfterReply(usize),
}

impl Errand {
    pub fn entry(self) -> usize {
        match self {
            Self::Sent(entry) | Self::AfterReply(entry) => entry,
        }
    }
}

/// Outlines of the entries that come to a station, and room; of others there is nothing.
#[derive(Debug)]
pub(in super::super) struct Outlines<S> {
    of: Vec<Outline<S>>,
    comes: Vec<bool>,
    /// How often each is called.
    visits: Vec<S>,
}

impl<S> Default for Outlines<S> {
    fn default() -> Self {
        Self { of: Vec::new(), comes: Vec::new(), visits: Vec::new() }
    }
}

impl<S: Scalar> Outlines<S> {
    /// Forgets those of a station.
    pub(super) fn forget(&mut self, coming: &[usize]) {
        for &entry in coming {
            (self.of[entry], self.comes[entry]) = (Outline::nothing(), false);
        }
    }
}

/// `n`, `j`, `b` and `e`; and of what is left behind in turn `n` and `j`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<S> {
    slices: S,
    joined: S,
    begins: S,
    ends: S,
    left: Left<S>,
}

#[derive(Clone, Copy, Debug)]
struct Left<S> {
    slices: S,
    joined: S,
}

impl<S: Scalar> Left<S> {
    fn plus(self, other: Self, times: S) -> Self {
        Self { slices: self.slices + other.slices * times, joined: self.joined + other.joined * times }
    }
}

impl<S: Scalar> Outline<S> {
    fn nothing() -> Self {
        let zero = S::from(0.0);
        Self { slices: zero, joined: zero, begins: zero, ends: zero, left: Left { slices: zero, joined: zero } }
    }

    fn then(self, next: Self) -> Self {
        Self {
            slices: self.slices + next.slices,
            joined: self.joined + next.joined + self.ends * next.begins,
            begins: self.begins,
            ends: next.ends,
            left: self.left.plus(next.left, S::from(1.0)),
        }
    }

    /// As something that is left behind.
    fn as_left(self) -> Left<S> {
        Left { slices: self.slices, joined: self.joined }.plus(self.left, S::from(1.0))
    }
}

impl<S: Scalar> At<'_, S> {
    /// Finds how slices at the station follow each other in executions until the reply, by entry, for outlines that know nothing.
    pub(super) fn find_outlines(&self, of: &mut Outlines<S>) {
        let net = self.sweep.net;
        of.of.resize(net.entries.len(), Outline::nothing());
        of.comes.resize(net.entries.len(), false);
        of.visits.resize(net.entries.len(), S::from(0.0));
        for &entry in self.layout.messages.coming.iter().rev() {
            of.comes[entry] = true;
            of.of[entry] = match &net.entries[entry].work {
                Work::Phases([Some(node), ..]) => {
                    let first = self.outline_of(*node, of);
                    match self.outline_after_reply(entry, of).filter(|_| net.entries[entry].is_followed) {
                        Some(late) => {
                            let Left { slices, joined } = late.as_left();
                            let late = Left { slices, joined: joined + first.ends * late.begins };
                            Outline { left: first.left.plus(late, S::from(1.0)), ..first }
                        }
                        None => first,
                    }
                }
                Work::Phases(_) => Outline::nothing(),
                Work::Graph(graph) => {
                    let mut vertices: Vec<Outline<S>> = Vec::with_capacity(graph.vertices.len());
                    for (v, vertex) in graph.vertices.iter().enumerate() {
                        let own = graph.leaf(v).map_or(Outline::nothing(), |node| self.outline_of(node, of));
                        let joined = match &vertex.start {
                            Start::After(before) => vertices[*before].ends * own.begins,
                            _ => S::from(0.0),
                        };
                        vertices.push(Outline { joined: own.joined + joined, ..own });
                    }
                    let sum = |part: fn(&Outline<S>) -> S| vertices.iter().fold(S::from(0.0), |sum, it| sum + part(it));
                    Outline {
                        slices: sum(|it| it.slices),
                        joined: sum(|it| it.joined),
                        begins: vertices.first().map_or(S::from(0.0), |it| it.begins),
                        left: vertices.iter().fold(Outline::nothing().left, |left, it| left.plus(it.left, S::from(1.0))),
                        ends: graph.reply.and_then(|reply| vertices.get(reply)).or(vertices.last()).map_or(S::from(0.0), |it| it.ends),
                    }
                }
            };
        }
    }

    fn outline_of(&self, node: usize, of: &Outlines<S>) -> Outline<S> {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let it = &net.nodes[node];
        let row = self.layout.messages.row_of(node);
        let mut sum = if row.is_some() {
            Outline { slices: it.slices, begins: S::from(1.0), ends: S::from(1.0), ..Outline::nothing() }
        } else {
            Outline::nothing()
        };
        let stay = row.map_or(zero, |row| {
            let v = &self.visits[self.layout.rows[row].arc];
            v.wait + v.first
        });
        for call in it.calls.iter().map(|call| call.arc) {
            let Some(target) = net.arcs[call].target else { continue };
            let (called, number) = (of.of[target], net.arcs[call].visits);
            sum.slices += called.slices * number;
            let wait = self.sweep.unknowns[call];
            let at_once = if stay > 0.0 { called.begins * stay / (stay + wait) + called.ends } else { zero };
            sum.joined += (called.joined + at_once) * number;
            sum.left = sum.left.plus(called.left, number);
        }
        for &send in &it.sends {
            let Some(target) = net.arcs[send].target else { continue };
            sum.left = sum.left.plus(of.of[target].as_left(), net.arcs[send].visits);
        }
        sum
    }

    /// Of what an entry does after its reply, if it does anything.
    fn outline_after_reply(&self, entry: usize, of: &Outlines<S>) -> Option<Outline<S>> {
        let phases = self.sweep.net.phases(entry);
        let late = phases[1..].iter().flatten().map(|&node| self.outline_of(node, of));
        late.reduce(Outline::then)
    }

    /// How an errand is here and elsewhere; none where it never is.
    pub(super) fn presence(&self, errand: Errand, of: &mut Outlines<S>, for_itself: &[S]) -> Option<Presence<S>> {
        let (net, flow, zero) = (self.sweep.net, self.sweep.flow, S::from(0.0));
        let entry = errand.entry();
        let left_behind = |of: fn(&Behind<S>, usize) -> S| self.sweep.behind.map_or(zero, |behind| of(behind, entry));
        let (nodes, outline, time) = match errand {
            Errand::Sent(_) => (self.nodes_of(entry), of.of[entry], flow.phases[entry][0] + left_behind(Behind::execution)),
            Errand::AfterReply(_) => {
                let late: Vec<usize> = net.phases(entry)[1..].iter().copied().flatten().collect();
                (late, self.outline_after_reply(entry, of)?, flow.late(entry) + left_behind(Behind::after_reply))
            }
        };
        let slices = self.slices_under(&nodes, of);
        let n = slices.iter().fold(zero, |sum, (_, n)| sum + *n);
        if n <= 0.0 || time <= 0.0 {
            return None;
        }
        let (mut service, mut here, mut for_own) = (zero, zero, zero);
        for &(x, number) in &slices {
            let v = &self.visits[x];
            service += v.first * (number / n);
            here += (v.first + v.wait) * (number / n);
            for_own += for_itself.get(self.layout.row_of[x]).copied().unwrap_or(zero) * (number / n);
        }
        if here <= 0.0 {
            return None;
        }
        let elsewhere = time - here * n;
        // What it waits for the request itself is told along the course of that.
        let for_sender = if let Errand::Sent(_) = errand { self.waits_for_senders(entry) / n } else { zero };
        let for_own = if for_sender > 0.0 { for_sender } else { for_own };
        if here - for_own > service {
            here -= for_own;
        }
        // Who waits for a thread comes as soon as it has one.
        let for_threads = if let Errand::Sent(_) = errand { self.waits_for_threads(entry) / n } else { zero };
        let is_here = here / (here + for_threads);
        let joined = outline.joined + outline.left.joined;
        let runs = n - joined;
        let times = runs - outline.ends - outline.begins + 1.0;
        let is_away = times > NEGLIGIBLE && elsewhere > 0.0;
        Some(Presence {
            slices: self.shares_of(&slices, n / is_here, net.entries[entry].task),
            service,
            here: here + for_threads,
            away: if is_away { elsewhere / times } else { zero },
            on: joined / n,
            leaves: (runs - outline.ends) / n,
            returns: if times > NEGLIGIBLE { (runs - outline.begins) / times } else { S::from(1.0) },
            begins_here: outline.begins,
        })
    }

    /// The share of each of so many slices; threads of one task are had from the beginning.
    fn shares_of(&self, slices: &[(usize, S)], all: S, had: usize) -> Vec<Slices<S>> {
        let Layout { pool_of, pools, .. } = self.layout;
        let of_pool =
            |pool: Option<usize>| slices.iter().filter(|(x, _)| pool_of[*x] == pool).fold(S::from(0.0), |sum, (_, n)| sum + *n / all);
        let threads = |pool: Option<usize>| {
            let task = pool.map(|pool| pools[pool]).filter(|&task| task != had);
            task.map_or(f64::INFINITY, |task| self.sweep.populations.strands_at(self.sweep.net, task, self.station))
        };
        let share = |&(arc, n): &(usize, S)| Slices { arc, share: n / all, of_pool: of_pool(pool_of[arc]), threads: threads(pool_of[arc]) };
        slices.iter().map(share).collect()
    }

    fn nodes_of(&self, entry: usize) -> Vec<usize> {
        match &self.sweep.net.entries[entry].work {
            Work::Phases(phases) if self.sweep.net.entries[entry].is_followed => phases.iter().copied().flatten().collect(),
            Work::Phases(phases) => phases[0].into_iter().collect(),
            Work::Graph(graph) => (0..graph.vertices.len()).filter_map(|v| graph.leaf(v)).collect(),
        }
    }

    /// How many slices there are here of some nodes and all that they call, by place.
    fn slices_under(&self, nodes: &[usize], outlines: &mut Outlines<S>) -> Vec<(usize, S)> {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        let mut number = vec![zero; self.layout.rows.len()];
        let Outlines { comes, visits, .. } = outlines;
        let mut pass = |node: usize, times: S, visits: &mut [S]| {
            let it = &net.nodes[node];
            if let Some(row) = self.layout.messages.row_of(node) {
                number[row] += times * it.slices;
            }
            for arc in it.calls.iter().flat_map(|call| call.arcs()).chain(it.sends.iter().copied()) {
                if let Some(target) = net.arcs[arc].target.filter(|&target| comes[target]) {
                    visits[target] += times * net.arcs[arc].visits;
                }
            }
        };
        nodes.iter().for_each(|&node| pass(node, net.nodes[node].weight, visits));
        for &entry in &self.layout.messages.coming {
            let times = visits[entry];
            if times > 0.0 {
                self.nodes_of(entry).iter().for_each(|&node| pass(node, times * net.nodes[node].weight, visits));
            }
        }
        self.layout.messages.coming.iter().for_each(|&entry| visits[entry] = zero);
        let rows = number.into_iter().zip(&self.layout.rows).filter(|(number, _)| *number > 0.0);
        rows.map(|(number, row)| (row.arc, number)).collect()
    }
}
