//! Where a request was before it comes to its processor again: at the same one, a moment or a call ago.
//!
//! A request is at a processor slice by slice, its own and those of the tasks that it calls there. The first slice of a callee follows the caller's,
//! and the caller's next one follows the callee's last, without a moment between. After a call to another processor a slice follows the caller's
//! own. Of calls from another processor, `Y` in all to callees here, one follows another but for `1/(1 + Y)` (`1/Y` where their number is always the
//! same), after what the caller does between them. Calls that may be forwarded, and entries that go on after the reply, are left out: what
//! they end with is not one slice. So are those that fork, and what is sent and not waited for, but where slices are followed from one to the next
//! ([`super::follows`]).

use super::{
    super::{
        flow::Flow,
        graph::{Graph, Piece, Start},
        net::{Discipline, Net, Work},
    },
    At,
    layout::Layout,
};
use crate::model::Scalar;

/// A slice that may be the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    /// Its place among the station's arcs.
    pub slice: usize,
    /// The call between the two, or the later one of two.
    call: usize,
    way: Way,
}

impl Previous {
    /// Whether a join is between the two.
    pub fn is_joined(&self) -> bool {
        matches!(self.way, Way::On { of } if of > 1)
    }

    /// Whether a fork or a join is between the two, or nothing in a graph.
    pub fn is_on(&self) -> bool {
        matches!(self.way, Way::On { .. })
    }

    /// Whether nothing is done elsewhere between the two.
    pub fn is_at_once(&self) -> bool {
        matches!(self.way, Way::Called | Way::Sent | Way::Returned | Way::On { .. })
    }

    /// The call that has just ended where the slice begins, which was made after one of its own row.
    pub fn returned_from(&self) -> Option<usize> {
        matches!(self.way, Way::Returned | Way::Back).then_some(self.call)
    }

    /// Whether the call between the two, by a slice of the same row, is served elsewhere.
    pub fn is_back(&self) -> bool {
        matches!(self.way, Way::Back)
    }

    /// The call between the two, where it is one to the task that runs the latter.
    pub fn called_over(&self) -> Option<usize> {
        matches!(self.way, Way::Called | Way::Sent | Way::SentOn { .. }).then_some(self.call)
    }
}

/// How a request came from one slice to the next.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Down: it was called.
    Called,
    /// Beside: it was sent by a thread that goes on.
    Sent,
    /// Further away: it was sent by this node, which the former called.
    SentOn { call: usize, sender: usize },
    /// Up: the callee replied.
    Returned,
    /// Back, from a callee that is served elsewhere.
    Back,
    /// From this earlier call of a caller that is served elsewhere.
    Beside { earlier: usize },
    /// Of a graph, on from the strand before, or from one of so many before a join.
    On { of: usize },
}

/// The slices before those of each row of a station, by row; none but at processors in order of arrival that requests from outside use, or
/// customers alone, and at those where second phases may be found ([`super::left_behind`]).
pub(super) fn find_previous<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Vec<Vec<Previous>> {
    let in_order = net.stations[station].discipline == Discipline::Fcfs && (layout.of_customers || layout.of_classes || !net.is_closed());
    if station >= net.n_processors || !in_order && layout.left_behind.is_none() {
        return vec![Vec::new(); layout.rows.len()];
    }
    Slices { net, layout, calls, are_followed: false }.before_all()
}

/// The same, also in and after activity graphs that fork, and of requests that nobody waits for after the slice that sent them.
pub(super) fn find_followed<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>]) -> Vec<Vec<Previous>> {
    Slices { net, layout, calls, are_followed: true }.before_all()
}

/// The slices at a station.
struct Slices<'a, S> {
    net: &'a Net<S>,
    layout: &'a Layout,
    calls: &'a [Vec<usize>],
    /// Whether those of graphs count, and those that were sent.
    are_followed: bool,
}

impl<S: Scalar> Slices<'_, S> {
    /// That of a node, if it has one.
    fn of(&self, node: usize) -> Option<usize> {
        let group = self.layout.groups.iter().position(|&n| n == node)?;
        Some(self.layout.rows[self.layout.row_of_group[group]].arc)
    }

    /// The last one before the reply to a call, none where that is not one of this station.
    fn last_of(&self, call: usize) -> Option<usize> {
        let entry = self.net.arcs[call].target.filter(|&entry| !self.net.goes_on_after_reply(entry))?;
        match &self.net.entries[entry].work {
            Work::Phases(phases) => self.of(phases[0]?),
            Work::Graph(graph) if self.are_followed => self.of(graph.leaf(graph.reply?)?),
            Work::Graph(_) => None,
        }
    }

    /// Whether the entry that is called does any of its work at this station.
    fn is_served_here(&self, call: usize) -> bool {
        self.net.arcs[call].target.is_some_and(|entry| self.layout.groups.iter().any(|&node| self.net.nodes[node].entry == entry))
    }

    /// Those before the slices of each row.
    fn before_all(&self) -> Vec<Vec<Previous>> {
        let layout = self.layout;
        layout.rows.iter().map(|row| row.group.map_or_else(Vec::new, |group| self.before(layout.groups[group]))).collect()
    }

    /// Those before a slice of a node.
    fn before(&self, node: usize) -> Vec<Previous> {
        let net = self.net;
        let it = &net.nodes[node];
        let mut found = Vec::new();
        let own = self.of(node);
        for call in it.calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc) {
            if let Some(slice) = self.last_of(call) {
                found.push(Previous { slice, call, way: Way::Returned });
            } else if let Some(slice) = own.filter(|_| !self.is_served_here(call)) {
                found.push(Previous { slice, call, way: Way::Back });
            }
        }
        let mut is_first = it.phase == 0;
        if let Work::Graph(graph) = &net.entries[it.entry].work
            && self.are_followed
        {
            is_first = self.strands_before(graph, node, &mut found);
        }
        for &call in self.calls[it.entry].iter().filter(|_| is_first) {
            let Some(caller) = net.arcs[call].source.held() else {
                if let Some(sender) = net.arcs[call].source.node().filter(|_| self.are_followed) {
                    self.add_sent(call, sender, &mut found);
                }
                continue;
            };
            if let Some(slice) = self.of(caller) {
                found.push(Previous { slice, call, way: Way::Called });
                continue;
            }
            for earlier in net.nodes[caller].calls.iter().filter(|call| call.legs.is_empty()).map(|call| call.arc) {
                found.extend(self.last_of(earlier).map(|slice| Previous { slice, call, way: Way::Beside { earlier } }));
            }
        }
        found
    }
}

impl<S: Scalar> Slices<'_, S> {
    /// Adds the slice of who sends a request, or of who called that one from here.
    fn add_sent(&self, send: usize, sender: usize, found: &mut Vec<Previous>) {
        if let Some(slice) = self.of(sender) {
            found.push(Previous { slice, call: send, way: Way::Sent });
            return;
        }
        for &call in &self.calls[self.net.nodes[sender].entry] {
            let slice = self.net.arcs[call].source.held().and_then(|caller| self.of(caller));
            found.extend(slice.map(|slice| Previous { slice, call: send, way: Way::SentOn { call, sender } }));
        }
    }

    /// Adds the last slices of the strands before a node of a graph, each where it has some; returns whether there are none as it is the first.
    fn strands_before(&self, graph: &Graph<S>, node: usize, found: &mut Vec<Previous>) -> bool {
        let Some(vertex) = graph.vertex_of(node) else { return false };
        // A point where strands meet has nothing of its own.
        let mut open: Vec<(&Start, usize)> = vec![(&graph.vertices[vertex].start, 1)];
        while let Some((start, of)) = open.pop() {
            let before: &[usize] = match start {
                Start::First => return of == 1,
                Start::After(p) => std::slice::from_ref(p),
                Start::Join { before, .. } => before,
            };
            let of = of * before.len();
            for &p in before {
                match (&graph.vertices[p].piece, graph.leaf(p).and_then(|leaf| self.of(leaf))) {
                    (_, Some(slice)) => found.push(Previous { slice, call: 0, way: Way::On { of } }),
                    (Piece::Empty, None) => open.push((&graph.vertices[p].start, of)),
                    _ => {}
                }
            }
        }
        false
    }
}

/// A solved network, or one under way, at one of its stations.
#[derive(Clone, Copy)]
pub(super) struct Courses<'a, S> {
    pub net: &'a Net<S>,
    pub flow: &'a Flow<S>,
    /// Waits by arc.
    pub waits: &'a [S],
    pub layout: &'a Layout,
}

impl<S: Scalar> At<'_, S> {
    /// Where requests come from.
    pub(super) fn courses(&self) -> Courses<'_, S> {
        Courses { net: self.sweep.net, flow: self.sweep.flow, waits: self.sweep.unknowns, layout: self.layout }
    }
}

impl<S: Scalar> Courses<'_, S> {
    /// Calls `each` for every slice that may come before those of a row, with the share of these that it comes before, its place among the
    /// station's arcs, and how long the request has been away since.
    pub fn for_each_previous(&self, r: usize, mut each: impl FnMut(S, usize, S)) {
        self.for_each_way(r, |part, slice, away, _| each(part, slice, away));
    }

    /// The same, and whether it is the first slice of an execution that follows.
    pub fn for_each_way(&self, r: usize, each: impl FnMut(S, usize, S, bool)) {
        self.for_each_of(&self.layout.previous[r], r, each);
    }

    /// The same for the slices `before` those of a row, as they were found with it.
    pub fn for_each_of(&self, before: &[Previous], r: usize, mut each: impl FnMut(S, usize, S, bool)) {
        let &Self { net, flow, .. } = self;
        let Some(group) = self.layout.rows[r].group else { return };
        let node = &net.nodes[self.layout.groups[group]];
        let zero = S::from(0.0);
        // Those of one call follow each other.
        let mut later = None;
        for it in before {
            let received = flow.entry_rate[node.entry];
            let called = || if received > 0.0 { flow.arc_rate[it.call] / received } else { zero };
            let (number, away) = match it.way {
                Way::Called | Way::Sent => (called(), zero),
                Way::SentOn { call, sender } => {
                    let executions = flow.entry_rate[net.nodes[sender].entry];
                    let of_call = if executions > 0.0 { flow.arc_rate[call] / executions } else { zero };
                    (called() * of_call, self.waits[call] + flow.elapsed[sender] * 0.5)
                }
                Way::Returned => (net.arcs[it.call].visits, zero),
                Way::On { of } => (S::from((of as f64).recip()), zero),
                Way::Back => (net.arcs[it.call].visits, self.call_time(it.call)),
                Way::Beside { earlier } => {
                    let (follows, away) = match later {
                        Some((call, found)) if call == it.call => found,
                        _ => self.later_calls(it.call),
                    };
                    later = Some((it.call, (follows, away)));
                    (called() * net.arcs[earlier].visits * follows, away)
                }
            };
            each(number / node.slices, it.slice, away, matches!(it.way, Way::Called | Way::Beside { .. }));
        }
    }

    /// Of a call from a caller that is served elsewhere: with what chance it follows an earlier one to this station, over the number of these, and
    /// how long after its reply.
    pub fn later_calls(&self, call: usize) -> (S, S) {
        let (calls, between) = self.between_calls(call);
        let is_exact = self.net.arcs[call].source.held().is_some_and(|caller| self.net.nodes[caller].deterministic);
        let follows = match calls {
            // All but the first of an execution.
            calls if is_exact && calls > 1.0 => (calls - 1.0) / (calls * calls),
            _ if is_exact => S::from(0.0),
            calls => (calls + 1.0).recip(),
        };
        (follows, between)
    }

    /// How long after the reply to a call the next one to this station is made, such that an exponential time of mean `stay` outlasts it as often as the gaps that there are, `between` in the
    /// mean: of a random number of calls they are one slice of the caller, or longer by what it calls elsewhere, again and again.
    ///
    /// ```text
    /// f = h(a) (p + p' h(t) f)        h(x) = stay/(stay + x), a and t a slice and a call elsewhere, p and p' the chances that the next call is here, and elsewhere
    /// ```
    pub fn gap_for(&self, call: usize, stay: S, between: S) -> S {
        let net = self.net;
        let Some(node) = net.arcs[call].source.held().map(|caller| &net.nodes[caller]) else { return between };
        let zero = S::from(0.0);
        let (mut here, mut elsewhere, mut time) = (zero, zero, zero);
        for arc in node.calls.iter().map(|call| call.arc) {
            if self.is_made_here(arc) {
                here += net.arcs[arc].visits;
            } else {
                elsewhere += net.arcs[arc].visits;
                time += net.arcs[arc].visits * self.call_time(arc);
            }
        }
        if node.deterministic || stay <= 0.0 || here <= 0.0 || elsewhere <= 0.0 {
            return between;
        }
        let slice = node.host_arc.map_or(zero, |host| node.demand / node.slices + self.waits[host]);
        let outlasts = |gap: S| stay / (stay + gap);
        let goes_on = elsewhere / (here + elsewhere + 1.0);
        let found = outlasts(slice) * (-goes_on + 1.0) / (-(outlasts(slice) * outlasts(time / elsewhere) * goes_on) + 1.0);
        stay * (found.recip() - 1.0)
    }

    /// Whether the entry that is called is served at this station.
    fn is_made_here(&self, call: usize) -> bool {
        let net = self.net;
        let host = net.arcs[call].target.and_then(|entry| net.nodes[net.phases(entry)[0]?].host_arc);
        host.is_some_and(|host| net.arcs[host].station == self.layout.station)
    }

    /// How long a call takes.
    fn call_time(&self, call: usize) -> S {
        self.waits[call] + self.flow.first_phase(self.net, call)
    }

    /// Of a call from a node that is served elsewhere: how many calls the node makes to entries that are served here, and what it does in the mean
    /// between two of them.
    fn between_calls(&self, call: usize) -> (S, S) {
        let net = self.net;
        let (mut calls, mut inside) = (S::from(0.0), S::from(0.0));
        let Some(caller) = net.arcs[call].source.held() else { return (calls, inside) };
        for arc in net.nodes[caller].calls.iter().map(|call| call.arc) {
            if self.is_made_here(arc) {
                calls += net.arcs[arc].visits;
                inside += net.arcs[arc].visits * self.call_time(arc);
            }
        }
        let away = (self.flow.elapsed[caller] - inside) / (calls + 1.0);
        (calls, if away > 0.0 { away } else { S::from(0.0) })
    }
}
