//! What a request finds that comes back to its processor at once: whoever was ahead of it, one slice further on, and who came meanwhile.
//!
//! A request's slice often begins where its last one here ends: a callee on the same core, the branches of a fork, what follows their join. It does not
//! find what there is at any time. In order of arrival all that it found has been served before it, and is back with its next slice, or has
//! gone; and who came behind it is all there, in full. So what slices of row `j` find follows from what the slices `k` before them found:
//!
//! ```text
//! f_j = Σ_k p_jk g_k + (1 - Σ_k p_jk) Σ_c ρ_j(c) [h_c ḡ_c + (1 - h_c) F_j]          g_kx = Σ_y f_ky M_yx + Σ_c a_kc i_cx          M_yx = λ_x p_xy / λ_y
//! a_kc = (A + L) t / (1 + t)      t = e_c [V_k + s_k + o_k - v V_k / (Σ_c E_c Σ_x w_x f_kx)]      A = N_c - ρ_k(c) - Σ_x w_x ρ_x(c) f_kx,   L = Σ_x w_x ρ_x(c) f_kx out_x
//! V_j = Σ_x (f_jx - r_j F_jx) s_x + r_j V°_j                                            r_j: the share of F_j in f_j;  V°, F: as found at any time
//! e_c = Λ_c / E_c,   E_c = N_c - Σ_x λ_x ρ_x(c) w_x (W_x + s_x + o_x)       Λ_c = Σ_x λ_x ρ_x(c) w_x (1 - Σ_k p_xk)        h_c = (N_c - E_c) / (2 N_c - E_c)
//! ```
//!
//! Who is away comes the less often in so long a time the more are there that make it long: that is the term with `v`, the variance of the number of
//! those that are there, as of exponential services of one mean, `P(n) ∝ M!/(M - n)! (ρ/E)^n` of `M` others. Then all others are somewhere, here or
//! away, and where a slice follows no other it finds what is there at any time: of services that are alike `V = V°`.
//!
//! | symbol | is |
//! |---|---|
//! | `f_jx`, `F_jx` | slices of `x` found by one of `j`, at any time |
//! | `V_j`, `V°_j` | what a slice waits for others |
//! | `p_jk` | share of the slices of `j` that follow one of `k`, times `τ/(τ + a)` after a gap `a` ([`super::previous`]) |
//! | `M`, `out` | what a slice is followed by, with which chance by none |
//! | `a_kc`, `i_c` | customers who come from elsewhere while a slice of `k` is here, and with which slice |
//! | `A`, `L` | customers who are elsewhere, and who leave meanwhile |
//! | `w_x` | customers for each slice of `x` that is here: one of `n` branches counts `1/n` |
//! | `o_k` | what a slice waits for other strands of its own thread; of the last one before a join twice as much, as it is for the last of them |
//! | `h_c`, `τ` | chance that nothing much has changed since the customer left; time in which what is here changes |
//!
//! Not looked for where threads may be wanting, where something goes on after a reply, and where a join leaves branches behind.

use super::{
    super::{
        graph::{Graph, Piece, Start},
        net::{Discipline, Net, Work},
    },
    At, Scratch,
    layout::Layout,
    previous::{Previous, find_followed},
};
use crate::model::Scalar;

/// Relative change at which `f` has settled, further passes for its derivatives, and most of all.
const SETTLED: f64 = 1e-12;
const FURTHER: usize = 6;
const MOST_PASSES: usize = 200;
/// Chance of a number that is not counted, nor those beyond it.
const NEGLIGIBLE: f64 = 1e-18;
/// Chance that, of two strands that begin at the same time, the one goes first.
const GOES_FIRST: f64 = 0.5;
/// Part of what would come by mean values alone, at least.
const LEAST_COMING: f64 = 0.2;
/// What is waited for others, as a part of what would be at any time, is between these.
const RATIOS: (f64, f64) = (0.02, 50.0);

/// What slices follow which at a processor.
#[derive(Clone, Debug)]
pub(super) struct Follows {
    /// The slices before those of each row.
    before: Vec<Vec<Previous>>,
    /// `w` of each row.
    strands: Vec<f64>,
    /// Whether what follows a row's slices is a join.
    before_join: Vec<bool>,
    /// Rows of the strands of the same fork that begin here with those of a row.
    beside: Vec<Vec<usize>>,
    /// Whether the slices of strands follow each other without memory: numbers of calls that are always the same have one.
    tells_own: bool,
    /// Tasks whose customers or threads are the sources.
    sources: Vec<usize>,
    /// The entries that lead here, callers before callees.
    entries: Vec<Led>,
    /// The place among these of each row's entry.
    entry_of: Vec<usize>,
    /// Calls that may wait for a thread on the way from a source, with the place of their caller and `w` of it.
    blocked: Vec<(usize, usize, f64)>,
}

/// An entry that leads to a station.
#[derive(Clone, Debug)]
enum Led {
    /// By threads that are sources.
    By(usize),
    /// By those that lead to its callers, by arc and place.
    Through(Vec<(usize, usize)>),
}

impl Follows {
    /// None but at processors of one server in order of arrival where requests fork.
    pub fn find<S: Scalar>(net: &Net<S>, layout: &Layout, calls: &[Vec<usize>], station: usize) -> Option<Self> {
        let it = &net.stations[station];
        let is_alone = it.discipline == Discipline::Fcfs && it.servers.is_finite() && layout.levels.len() <= 1;
        if station >= net.n_processors || !is_alone || !layout.siblings {
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
        if !before.iter().flatten().any(Previous::is_at_once) {
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
        if ways.are_nested() {
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
        Some(Self { before, strands, before_join, beside, tells_own, sources, entries, entry_of: rows, blocked })
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
    /// By entry, sources for each of its executions: of one that `n` branches call `1/n`.
    strands: Vec<f64>,
    places: Vec<Option<usize>>,
}

impl<S> Ways<'_, S> {
    /// Whether threads of one source work for those of another: while they want for threads, these are neither here nor about to come.
    fn are_nested(&self) -> bool {
        self.sources.iter().any(|&source| self.has_above(source, |task| self.sources.contains(&task)))
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
        let is_source = net.tasks[task].class.is_some() || may_wait && !self.has_above(task, |task| self.are_here[task]);
        let (led, strands) = if is_source {
            let source = self.sources.iter().position(|&source| source == task).unwrap_or_else(|| {
                self.sources.push(task);
                self.sources.len() - 1
            });
            (Led::By(source), 1.0)
        } else {
            let mut callers = Vec::new();
            let mut strands = 0.0;
            for &call in &self.calls[entry] {
                let Some(node) = net.arcs[call].source.held() else { continue };
                let place = self.lead_to(net.nodes[node].entry)?;
                let of_caller = self.strands[place] * share_of(net, node);
                strands += of_caller;
                callers.push((call, place));
                if may_wait {
                    self.blocked.push((call, place, of_caller));
                }
            }
            let strands = if callers.is_empty() { 1.0 } else { strands / callers.len() as f64 };
            (Led::Through(callers), strands)
        };
        self.entries.push(led);
        self.strands.push(strands);
        self.places[entry] = Some(self.entries.len() - 1);
        self.places[entry]
    }
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
    let place = graph.vertices.iter().position(|vertex| matches!(vertex.piece, Piece::Leaf(leaf) if leaf == node));
    place.map_or(1.0, |place| shares[place])
}

/// Room for what slices find, and what was found last at each station.
#[derive(Debug)]
pub(super) struct Followed<S> {
    /// `f`, `rows × rows`, by station.
    found_at: Vec<Vec<S>>,
    /// `F` and `V°`.
    any: Vec<S>,
    waits: Vec<S>,
    /// `p_jk`.
    parts: Vec<Part<S>>,
    /// `o`, `rows × rows`, and room for its next pass.
    own: Vec<S>,
    next_own: Vec<S>,
    /// The share of first slices of strands, by row, and of those of which it is not known where their thread was.
    first: Vec<S>,
    unknown: Vec<S>,
    /// `1 - Σ_k p_jk`, by row.
    others: Vec<S>,
    /// `out`, by row.
    out: Vec<S>,
    /// `g`, `rows × rows`.
    next: Vec<S>,
    moved: Vec<S>,
    /// `σ`, by entry that leads here and source, and then by row.
    led: Vec<S>,
    shares: Vec<S>,
    sources: Vec<OfSource<S>>,
}

/// How many of the slices of a row follow those of another.
#[derive(Clone, Copy, Debug)]
struct Part<S> {
    row: usize,
    before: usize,
    /// `p`, and the same without the gap.
    part: S,
    of_all: S,
    gap: S,
    /// Whether it is another strand that follows: after a fork or a join.
    is_on: bool,
}

/// Customers of a class, or threads of a task, beside a station.
#[derive(Clone, Copy, Debug)]
struct OfSource<S> {
    /// `N`.
    number: f64,
    /// `e`.
    comes: S,
    /// `h`.
    stays: S,
    /// `Λ`, of those who come from elsewhere a unit of time.
    begin: S,
    /// Those who leave, the same.
    end: S,
    /// `E`.
    away: S,
    /// Those who wait for threads.
    blocked: S,
}

impl<S> Followed<S> {
    pub fn new(n_processors: usize) -> Self {
        Self {
            found_at: std::iter::repeat_with(Vec::new).take(n_processors).collect(),
            any: Vec::new(),
            waits: Vec::new(),
            parts: Vec::new(),
            own: Vec::new(),
            next_own: Vec::new(),
            first: Vec::new(),
            unknown: Vec::new(),
            others: Vec::new(),
            out: Vec::new(),
            next: Vec::new(),
            moved: Vec::new(),
            led: Vec::new(),
            shares: Vec::new(),
            sources: Vec::new(),
        }
    }
}

/// The variance of the number of `others` at a station that have so much work there for each unit of time that one is away.
fn number_there<S: Scalar>(others: f64, work: S) -> S {
    let (mut weight, mut all, mut first, mut second) = (S::from(1.0), S::from(1.0), S::from(0.0), S::from(0.0));
    let mut n = 1.0;
    while n <= others {
        weight *= work * (others - n + 1.0);
        // Lest the weights of many leave all numbers.
        if weight > 1e100 {
            for sum in [&mut weight, &mut all, &mut first, &mut second] {
                *sum *= 1e-100;
            }
        }
        all += weight;
        first += weight * n;
        second += weight * (n * n);
        if weight < all * NEGLIGIBLE && work * (others - n) < 1.0 {
            break;
        }
        n += 1.0;
    }
    let mean = first / all;
    second / all - mean * mean
}

/// The largest difference of two vectors.
fn furthest<S: Scalar>(a: &[S], b: &[S]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (a, b)| most.max((a.value() - b.value()).abs()))
}

/// What no source has of a row's requests.
fn from_outside<S: Scalar>(shares: &[S]) -> S {
    let of_sources = shares.iter().fold(S::from(0.0), |sum, &share| sum + share);
    if of_sources < 1.0 { -of_sources + 1.0 } else { S::from(0.0) }
}

impl<S: Scalar> At<'_, S> {
    /// Takes what each row waits for others from what is found at any time to what is found by who comes back at once.
    pub(super) fn follow_at_once(&self, scratch: &mut Scratch<S>) {
        let Some(follows) = &self.layout.follows else { return };
        let mut room = std::mem::replace(&mut scratch.followed, Followed::new(0));
        self.find_any(scratch, &mut room);
        self.find_parts(follows, &mut room);
        self.find_shares(follows, &mut room);
        self.find_sources(follows, &mut room);
        self.find_own(follows, &mut room);
        self.find_followed(follows, &mut room);
        let n = self.visits.len();
        let busy = self.chance_of_others();
        for r in 0..n {
            let any = room.waits[r];
            if any <= 0.0 {
                continue;
            }
            let ratio = num_traits::clamp(self.waited(&room, r) / any, S::from(RATIOS.0), S::from(RATIOS.1));
            let ratio = (ratio - 1.0) * busy + 1.0;
            let terms = r * n..(r + 1) * n;
            scratch.alpha[terms.clone()].iter_mut().chain(&mut scratch.beta[terms]).for_each(|part| *part *= ratio);
        }
        scratch.followed = room;
    }

    /// How far several servers serve in order: while all but one are busy, `(ρ/m)^(m - 1)`.
    fn chance_of_others(&self) -> S {
        let load = self.visits.iter().fold(S::from(0.0), |sum, v| sum + v.rate * v.first) / self.servers;
        #[expect(clippy::cast_possible_truncation, reason = "a finite count of servers, checked when compiled")]
        let others = self.servers as i32 - 1;
        if load < 1.0 { load.powi(others) } else { S::from(1.0) }
    }

    /// `F` and `V°`.
    fn find_any(&self, scratch: &Scratch<S>, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        room.any.clear();
        room.waits.clear();
        for r in 0..n {
            let mut wait = zero;
            for (x, it) in self.visits.iter().enumerate() {
                let at = r * n + x;
                let waiting = scratch.alpha[at] * it.wait;
                wait += waiting + scratch.beta[at];
                room.any.push(if it.first > 0.0 { waiting / it.first + scratch.load[at] } else { zero });
            }
            room.waits.push(wait);
        }
    }

    /// What a slice of a row waits for its own thread's other strands, the last one before a join also for those that began behind it.
    fn waits_for_own(&self, follows: &Follows, room: &Followed<S>, r: usize) -> S {
        let own = self.sweep.unknowns[self.places.contention + r] * self.visits[r].wait;
        let behind = |sum: S, &other: &usize| sum + self.visits[other].first * room.first[r] * GOES_FIRST;
        if follows.before_join[r] { follows.beside[r].iter().fold(own, behind) } else { own }
    }

    /// How long a slice of a row is here.
    fn stay_of(&self, follows: &Follows, room: &Followed<S>, r: usize) -> S {
        let it = &self.visits[r];
        let own = self.sweep.unknowns[self.places.contention + r] * it.wait;
        it.wait + it.first + self.waits_for_own(follows, room, r) - own
    }

    /// How long a slice of a row is here, but for what it waits for other strands.
    fn others_stay(&self, r: usize) -> S {
        let it = &self.visits[r];
        it.first + it.wait * (-self.sweep.unknowns[self.places.contention + r] + 1.0)
    }

    /// `p`, `1 - Σ p` and `out`.
    fn find_parts(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let (zero, one) = (S::from(0.0), S::from(1.0));
        room.parts.clear();
        room.others.clear();
        room.out.clear();
        room.out.resize(n, one);
        room.first.clear();
        room.unknown.clear();
        for r in 0..n {
            let (mut others, mut first, mut unknown) = (one, zero, one);
            let mut ways = follows.before[r].iter();
            self.courses().for_each_of(&follows.before[r], r, |part, slice, gap, _| {
                let way = ways.next();
                let gap = way.and_then(Previous::called_over).map_or(gap, |call| gap + self.sweep.unknowns[call]);
                let is_on = way.is_some_and(Previous::is_on);
                let before = self.layout.row_of[slice];
                let it = &self.visits[before];
                let stay = it.wait + it.first;
                let of_all = part;
                let part = if gap > 0.0 { part * stay / (stay + gap) } else { part };
                others -= part;
                unknown -= of_all;
                if is_on && !follows.beside[r].is_empty() {
                    first += part;
                }
                room.parts.push(Part { row: r, before, part, of_all, gap, is_on });
                let (mine, theirs) = (self.visits[r].rate, it.rate);
                if theirs > 0.0 {
                    room.out[before] -= mine * part / theirs * (follows.strands[r] / follows.strands[before]);
                }
            });
            room.others.push(if others > 0.0 { others } else { zero });
            room.first.push(first);
            room.unknown.push(if unknown > 0.0 { unknown } else { zero });
        }
        room.out.iter_mut().filter(|out| **out < 0.0).for_each(|out| *out = zero);
    }

    /// `o` where it leads from a first guess.
    fn find_own(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        room.own.clear();
        room.own.resize(n * n, zero);
        if !follows.tells_own {
            return;
        }
        let mut left = None;
        for _ in 0..MOST_PASSES {
            room.moved.clear();
            room.moved.resize(n * n, zero);
            for k in 0..n {
                let own = &room.own[k * n..(k + 1) * n];
                let moved = &mut room.moved[k * n..(k + 1) * n];
                for it in room.parts.iter().filter(|it| !it.is_on) {
                    let theirs = self.visits[it.before].rate;
                    if theirs > 0.0 {
                        moved[it.row] += own[it.before] * (self.visits[it.row].rate * it.part / theirs);
                    }
                }
                follows.beside[k].iter().for_each(|&other| moved[other] += room.first[k] * GOES_FIRST);
            }
            room.next_own.clear();
            room.next_own.resize(n * n, zero);
            for it in room.parts.iter().filter(|it| !it.is_on) {
                for x in 0..n {
                    // What is served while the thread is elsewhere.
                    let stays = self.others_stay(x);
                    let part = if it.gap > 0.0 { it.of_all * stays / (stays + it.gap) } else { it.of_all };
                    room.next_own[it.row * n + x] += room.moved[it.before * n + x] * part;
                }
            }
            for r in 0..n {
                follows.beside[r].iter().for_each(|&other| room.next_own[r * n + other] += room.first[r] * GOES_FIRST);
            }
            let change = furthest(&room.own, &room.next_own);
            std::mem::swap(&mut room.own, &mut room.next_own);
            left = match left {
                None if change <= SETTLED => Some(FURTHER),
                left => left,
            };
            match &mut left {
                Some(0) => break,
                Some(left) => *left -= 1,
                None => {}
            }
        }
    }

    /// `σ`.
    fn find_shares(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = follows.sources.len();
        let Followed { led, shares, .. } = room;
        led.clear();
        led.resize(follows.entries.len() * n, S::from(0.0));
        let rates = &self.sweep.flow.arc_rate;
        for (at, entry) in follows.entries.iter().enumerate() {
            match entry {
                Led::By(source) => led[at * n + source] = S::from(1.0),
                Led::Through(callers) => {
                    let all = callers.iter().fold(S::from(0.0), |sum, &(call, _)| sum + rates[call]);
                    for &(call, caller) in callers.iter().filter(|_| all > 0.0) {
                        for source in 0..n {
                            let part = led[caller * n + source] * rates[call] / all;
                            led[at * n + source] += part;
                        }
                    }
                }
            }
        }
        shares.clear();
        follows.entry_of.iter().for_each(|&entry| shares.extend_from_slice(&led[entry * n..(entry + 1) * n]));
    }

    /// What is known of each source beside the station.
    fn find_sources(&self, follows: &Follows, room: &mut Followed<S>) {
        let zero = S::from(0.0);
        let n = follows.sources.len();
        room.sources.clear();
        for (source, &task) in follows.sources.iter().enumerate() {
            let number = self.sweep.populations.threads(self.sweep.net, task);
            let mut it = OfSource { number, comes: zero, stays: zero, begin: zero, end: zero, away: S::from(number), blocked: zero };
            for &(call, caller, strands) in &follows.blocked {
                it.blocked += self.sweep.flow.arc_rate[call] * self.sweep.unknowns[call] * room.led[caller * n + source] * strands;
            }
            it.away -= it.blocked;
            for (r, v) in self.visits.iter().enumerate() {
                let rate = v.rate * room.shares[r * n + source] * follows.strands[r];
                it.away -= rate * self.stay_of(follows, room, r);
                it.begin += rate * room.others[r];
                it.end += rate * room.out[r];
            }
            let least = number * f64::EPSILON;
            if it.away < least {
                it.away = S::from(least);
            }
            if number > 0.0 {
                it.comes = it.begin / it.away;
                it.stays = (-it.away + number) / (-it.away + 2.0 * number);
            }
            room.sources.push(it);
        }
    }

    /// `f`.
    fn find_followed(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let mut found = std::mem::take(&mut room.found_at[self.station]);
        if found.len() != n * n || found.iter().any(|f| !f.value().is_finite()) {
            found.clone_from(&room.any);
        }
        let variance = self.variance_there(room);
        let mut left = None;
        for _ in 0..MOST_PASSES {
            room.moved.clear();
            room.moved.resize(n * n, S::from(0.0));
            for k in 0..n {
                self.move_on(follows, (k, &found[k * n..(k + 1) * n]), variance, room);
            }
            self.gather(follows, room);
            let change = furthest(&found, &room.next);
            let most = room.next.iter().fold(0.0, |most: f64, next| most.max(next.value().abs()));
            std::mem::swap(&mut found, &mut room.next);
            left = match left {
                None if change <= SETTLED * most => Some(FURTHER),
                left => left,
            };
            match &mut left {
                Some(0) => break,
                Some(left) => *left -= 1,
                None => {}
            }
        }
        room.found_at[self.station] = found;
    }

    /// `v`.
    fn variance_there(&self, room: &Followed<S>) -> S {
        let zero = S::from(0.0);
        let number: f64 = room.sources.iter().map(|it| it.number).sum();
        let away = room.sources.iter().fold(zero, |sum, it| sum + it.away);
        let load = self.visits.iter().fold(zero, |sum, v| sum + v.rate * v.first);
        if number <= 1.0 || away <= 0.0 { zero } else { number_there(number - 1.0, load / away) }
    }

    /// `g` of row `k`, of whose slices so much is `found`.
    fn move_on(&self, follows: &Follows, (k, found): (usize, &[S]), variance: S, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        let own = self.waits_for_own(follows, room, k);
        let moved = &mut room.moved[k * n..(k + 1) * n];
        for it in &room.parts {
            let theirs = self.visits[it.before].rate;
            if theirs > 0.0 {
                moved[it.row] += found[it.before] * (self.visits[it.row].rate * it.part / theirs);
            }
        }
        let (mut wait, mut number) = (zero, zero);
        for (x, (&found, v)) in found.iter().zip(self.visits).enumerate() {
            wait += found * v.first;
            number += found * follows.strands[x];
        }
        let time = if self.servers > 1.0 { self.others_stay(k) + own } else { wait + self.visits[k].first + own };
        let n_sources = room.sources.len();
        let all_away = room.sources.iter().fold(zero, |sum, it| sum + it.away);
        for (c, it) in room.sources.iter().enumerate() {
            let share = |row: usize| room.shares[row * n_sources + c];
            let (mut here, mut leave) = (zero, zero);
            for (x, &found) in found.iter().enumerate() {
                let of_source = found * share(x) * follows.strands[x];
                here += of_source;
                leave += of_source * room.out[x];
            }
            // Who is away, and who leaves.
            let blocked = it.blocked * (1.0 - it.number.recip());
            let may_come = leave - here - share(k) - blocked + it.number;
            if may_come <= 0.0 || it.begin <= 0.0 {
                continue;
            }
            let together = if number > 0.0 { time - wait / number * variance / all_away } else { time };
            let chance = it.comes * if together > time * LEAST_COMING { together } else { time * LEAST_COMING };
            let come = may_come * chance / (chance + 1.0);
            for (x, v) in self.visits.iter().enumerate() {
                moved[x] += come * (v.rate * share(x) * room.others[x] / it.begin);
            }
        }
        // From outside they come whoever is here.
        for (x, v) in self.visits.iter().enumerate() {
            moved[x] += time * v.rate * from_outside(&room.shares[x * n_sources..(x + 1) * n_sources]) * room.others[x];
        }
    }

    /// The share of `F` in `f_j`.
    fn share_of_any(&self, room: &Followed<S>, r: usize) -> S {
        let n = room.sources.len();
        let shares = &room.shares[r * n..(r + 1) * n];
        let of_sources = shares.iter().zip(&room.sources).map(|(&share, it)| if it.end > 0.0 { share * (-it.stays + 1.0) } else { share });
        of_sources.fold(from_outside(shares), |sum, share| sum + share) * room.others[r]
    }

    /// `f` from `g`.
    fn gather(&self, follows: &Follows, room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        room.next.clear();
        room.next.resize(n * n, zero);
        for it in &room.parts {
            for x in 0..n {
                room.next[it.row * n + x] += room.moved[it.before * n + x] * it.part;
            }
        }
        for r in 0..n {
            let of_any = self.share_of_any(room, r);
            for x in 0..n {
                room.next[r * n + x] += room.any[r * n + x] * of_any;
            }
            if room.others[r] <= 0.0 {
                continue;
            }
            let n_sources = room.sources.len();
            for (c, it) in room.sources.iter().enumerate().filter(|(_, it)| it.end > 0.0) {
                let stays = room.shares[r * n_sources + c] * room.others[r] * it.stays;
                for k in 0..n {
                    let left = self.visits[k].rate * room.shares[k * n_sources + c] * follows.strands[k] * room.out[k] / it.end;
                    for x in 0..n {
                        room.next[r * n + x] += room.moved[k * n + x] * (stays * left);
                    }
                }
            }
        }
    }

    /// `V` of a row.
    fn waited(&self, room: &Followed<S>, r: usize) -> S {
        let n = self.visits.len();
        let of_any = self.share_of_any(room, r);
        let found = &room.found_at[self.station][r * n..(r + 1) * n];
        let follows = found.iter().zip(&room.any[r * n..(r + 1) * n]).zip(self.visits);
        follows.fold(of_any * room.waits[r], |sum, ((&found, &any), v)| sum + (found - any * of_any) * v.first)
    }

    /// What a row's slices find of the other strands of their thread, at an arc, as the slices before them say; and the share of which these say nothing.
    pub(super) fn own_followed(&self, r: usize, x: usize, scratch: &Scratch<S>) -> Option<(S, S)> {
        self.layout.follows.as_ref().filter(|follows| follows.tells_own)?;
        let room = &scratch.followed;
        let n = self.visits.len();
        room.own.get(r * n + x).map(|&own| (own, room.unknown[r]))
    }
}
