//! How likely a thread comes back to a station before an exponential time is over.
//!
//! That is `E e^(-T/s)` of the time `T` that it is away, and of times that follow each other the product. A wait is none or exponential, by the chance
//! that there is any; a service has a gamma law of its mean and variance; between executions a thread is not away at all if a request has waited for it.
//!
//! ```text
//! φ(W, Π) = 1 - Π + Π / (1 + W/(Π s))                  φ(m, c²) = (1 + c² m/s)^(-1/c²)
//! a_i = φ_i Σ_x p_x r_x / (1 - φ_i Σ_x p_x q_x)        b_i = φ_i p / (1 - φ_i Σ_x p_x q_x)
//! h_O = (1 - Π_O + Π_O² s / (Π_O s + O)) / (1 + D/s)
//! H_i = a_i + b_i h_O H_back                           H_back = Σ_k w_k ζ_k a_k / (1 - h_O Σ_k w_k ζ_k b_k)
//! ```
//!
//! From a reply inside an execution of node `i`: it calls the station again with `a_i`, and ends without with `b_i`. Calls that are always as many come one
//! after the other, those to one entry before those to the next; `a` and `b` are then means over the station's replies, and in `H_back` those from the beginning.
//!
//! | symbol | is |
//! |---|---|
//! | `φ_i`, `ζ_i` | a slice of node `i`, with its wait; its think time |
//! | `p_x`, `p` | chance that a slice is followed by call `x`, and by the end of the execution |
//! | `r_x`, `q_x` | call `x` until it reaches the station (1, where it is one to there), and all of one that does not |
//! | `w_k` | share of node `k` in the executions of the pool's nodes that call the station |
//! | `D`, `O` | `(threads - Σ time in these executions) / Σ executions`, what of it the threads do other things and are idle |
//! | `1 - Π_O` | chance that a request has waited for its thread |

mod within;

use smallvec::SmallVec;

use self::within::mixture;
use super::{COIN, given::Sweep, layout::Layout};
use crate::{
    model::Scalar,
    solve::layered::{
        flow::chance_of_any,
        net::{CallGroup, Discipline, Node},
    },
};

/// Chances that are none.
pub(super) const NEGLIGIBLE: f64 = 1e-9;
/// Squared coefficients of variation that are smaller count as none.
const NEARLY_CONSTANT: f64 = 1e-6;

/// A time after a reply, exponential with this mean.
#[derive(Clone, Copy, Debug)]
struct Lasting<'s, S> {
    time: S,
    /// Stations where it and the thread wait for each other, with the share of the thread's wait there that it causes.
    shared: &'s [(usize, S)],
    /// Whether only what is not behind it counts.
    behind: Option<Behind>,
}

/// A time begins at the moment of the reply with a slice at a processor in order of arrival, and what is served there later comes after this slice, but for
/// what begins at the same moment and goes first by a coin.
#[derive(Clone, Copy, Debug)]
struct Behind {
    host: usize,
    /// Whether the time is that after this slice.
    has_begun: bool,
}

/// What a node does, by the means of `e^(-t/s)`.
#[derive(Clone, Copy, Debug)]
struct Execution<S> {
    /// From its beginning to its first call to the station, and to its end where it makes none.
    first: S,
    none: S,
    /// From a reply to the next call, and to the end.
    again: S,
    last: S,
}

/// `H` of one request's second phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundOfLast<S> {
    pub chance: S,
    /// The same of threads that are never idle.
    pub of_busy: S,
    /// What is left of it, where that is not told by how long it takes.
    pub rest: Option<S>,
    /// The share of its time that is not waited for the thread itself.
    pub counted: S,
}

/// The threads that come to a station.
#[derive(Clone, Copy)]
pub(super) struct ComesAgain<'a, S> {
    pub sweep: &'a Sweep<'a, S>,
    pub layout: &'a Layout,
}

/// `H` of the second phases of all arcs, for returns of all nodes that call there, by station.
#[derive(Clone, Debug)]
pub(in super::super) struct Overtakes<S> {
    by_station: Vec<Vec<FoundOfLast<S>>>,
}

impl<S: Scalar> Overtakes<S> {
    pub fn new(n_stations: usize) -> Self {
        Self { by_station: vec![Vec::new(); n_stations] }
    }

    /// Finds them, of what the last sweep found.
    pub fn update(&mut self, sweep: &Sweep<'_, S>, layouts: &[Layout]) {
        for (found, layout) in self.by_station.iter_mut().zip(layouts) {
            found.clear();
            if layout.station < sweep.net.n_processors || layout.ends_at_reply {
                continue;
            }
            let n = layout.groups.len();
            found.resize(layout.arcs.len() * n, FoundOfLast::none());
            let callers = ComesAgain { sweep, layout };
            let mut known: SmallVec<[usize; 16]> = SmallVec::new();
            for x in 0..layout.arcs.len() {
                match known.iter().find(|&&earlier| callers.are_alike(earlier, x)) {
                    Some(earlier) => found.copy_within(earlier * n..(earlier + 1) * n, x * n),
                    None if callers.find_of_last(x, &mut found[x * n..(x + 1) * n]) == Of::All => known.push(x),
                    None => {}
                }
            }
        }
    }

    /// `H` of arc `x` at a station, for returns of the nodes of a group.
    pub(super) fn found(&self, layout: &Layout, x: usize, group: usize) -> FoundOfLast<S> {
        self.by_station[layout.station].get(x * layout.groups.len() + group).copied().unwrap_or_else(FoundOfLast::none)
    }
}

impl<S: Scalar> FoundOfLast<S> {
    pub fn none() -> Self {
        Self { chance: S::from(0.0), of_busy: S::from(0.0), rest: None, counted: S::from(1.0) }
    }
}

/// Whether what is found of one request over an arc is found of all of a pool to that entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    This,
}

/// The chance to be back, and that of a thread that is never idle.
#[derive(Clone, Copy, Debug)]
struct Back<S> {
    chance: S,
    of_busy: S,
}

/// By group of a pool.
type ByGroup<S> = SmallVec<[Back<S>; 8]>;

impl<S: Scalar> ComesAgain<'_, S> {
    /// Whether two arcs are of one pool to one entry, and none forwarded.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        let of = |x: usize| (self.layout.pool_of[x], self.sweep.net.arcs[self.layout.arcs[x]].target);
        of(one) == of(other) && self.is_never_forwarded(other)
    }

    fn is_never_forwarded(&self, x: usize) -> bool {
        self.call(x).is_none_or(|call| call.legs.is_empty())
    }

    /// The call over arc `x`, where it is waited for.
    fn call(&self, x: usize) -> Option<&CallGroup> {
        let (net, arc) = (self.sweep.net, self.layout.arcs[x]);
        net.nodes[net.arcs[arc].source.held()?].calls.iter().find(|group| group.arc == arc)
    }

    /// `H` of the second phase of an earlier request over arc `x`, by the group that returns, and what is left of it, where that is not told by how long it takes.
    fn find_of_last(&self, x: usize, found: &mut [FoundOfLast<S>]) -> Of {
        let (first, held) = self.sweep.service(self.layout.arcs[x]);
        let Some(pool) = self.layout.pool_of[x].filter(|_| held > first) else { return Of::This };
        let (shared, lost) = self.shared(x, pool);
        let (all_of_it, late) = (held - first, held - first - lost);
        if late <= all_of_it * NEGLIGIBLE || self.sources(pool).is_infinite() {
            return Of::This;
        }
        let of = if shared.is_empty() && self.is_never_forwarded(x) { Of::All } else { Of::This };
        let (counted, shared) = (late / all_of_it, shared.as_slice());
        let returns_within = |lasting: Lasting<'_, S>| {
            let replies = self.replies_within(lasting, x);
            let mut chances = self.returns_within(lasting, pool);
            for back in &mut chances {
                back.chance *= replies;
                back.of_busy *= replies;
            }
            chances
        };
        let all = returns_within(Lasting { time: late, shared, behind: None });
        found
            .iter_mut()
            .zip(&all)
            .for_each(|(found, &Back { chance, of_busy })| *found = FoundOfLast { chance, of_busy, rest: None, counted });
        let Some((host, wait, slice)) = self.first_late_slice(x) else { return of };
        // Without being behind it there.
        let before = returns_within(Lasting { time: late, shared, behind: Some(Behind { host, has_begun: false }) });
        if all.iter().zip(&before).all(|(all, before)| all.chance - before.chance <= NEGLIGIBLE) {
            return of;
        }
        let (whole, more) = (late - wait, late - wait - slice);
        let goes_on = more > slice * NEGLIGIBLE;
        let later = |behind| if goes_on { returns_within(Lasting { time: more, shared, behind }) } else { ByGroup::new() };
        let (after, after_slice) = (later(None), later(Some(Behind { host, has_begun: true })));
        for (g, found) in found.iter_mut().enumerate() {
            let zero = S::from(0.0);
            let after_it = |of: fn(&Back<S>) -> S| {
                let after = if goes_on { of(&after[g]) - of(&after_slice[g]) } else { zero };
                if after > 0.0 { after } else { zero }
            };
            let before = before[g];
            let after = after_it(|back| back.chance);
            let (chance, of_busy) = (before.chance + after, before.of_busy + after_it(|back| back.of_busy));
            // By a coin it has not begun; elsewhere it has gone on meanwhile.
            let goes_first = self.host_of(self.layout.groups[g]) == Some(host);
            let rest = goes_first.then(|| if chance > 0.0 { (before.chance * whole + after * more) / chance } else { whole });
            *found = FoundOfLast { chance, of_busy, rest, counted };
        }
        of
    }

    /// The processor of a node.
    fn host_of(&self, node: usize) -> Option<usize> {
        let net = self.sweep.net;
        net.nodes[node].host_arc.map(|host| net.arcs[host].station)
    }

    /// The slice with which the second phase after a request over arc `x` begins, at a processor of one server in order of arrival: the processor, the
    /// wait and the time.
    fn first_late_slice(&self, x: usize) -> Option<(usize, S, S)> {
        let net = self.sweep.net;
        let entry = net.arcs[self.layout.arcs[x]].target?;
        let node = &net.nodes[net.phases(entry)[1]?];
        let arc = node.host_arc.filter(|_| node.think_time.value() == 0.0)?;
        let station = &net.stations[net.arcs[arc].station];
        let in_order = station.servers <= 1.0 && station.discipline == Discipline::Fcfs;
        in_order.then(|| (net.arcs[arc].station, self.sweep.unknowns[arc], node.demand / node.slices))
    }

    /// `H` in the mean over the requests of a pool, once it is found.
    pub fn find_own(&self, pool: usize) -> S {
        self.mean_found(pool, |found| found.chance)
    }

    /// The same of threads that are never idle.
    pub fn busy_find_own(&self, pool: usize) -> S {
        self.mean_found(pool, |found| found.of_busy)
    }

    fn mean_found(&self, pool: usize, of: fn(FoundOfLast<S>) -> S) -> S {
        let (mut own, mut rate) = (S::from(0.0), S::from(0.0));
        let Some(overtakes) = self.sweep.overtakes else { return own };
        for (x, &arc) in self.layout.arcs.iter().enumerate().filter(|(x, _)| self.layout.pool_of[*x] == Some(pool)) {
            let Some(group) = self.layout.group_of[x] else { continue };
            let requests = self.sweep.flow.arc_rate[arc];
            own += requests * of(overtakes.found(self.layout, x, group));
            rate += requests;
        }
        if rate > 0.0 { own / rate } else { S::from(0.0) }
    }

    /// Threads of a pool, or the customers for whom they come, where these are fewer: what threads do for nobody is left out.
    pub fn sources(&self, pool: usize) -> f64 {
        let threads = self.sweep.populations.strands_at(self.sweep.net, self.layout.pools[pool], self.layout.station);
        self.customers(pool).map_or(threads, |customers| threads.min(customers))
    }

    /// Whether there is a thread for each customer.
    pub fn are_customers(&self, pool: usize) -> bool {
        let threads = self.sweep.populations.strands_at(self.sweep.net, self.layout.pools[pool], self.layout.station);
        self.customers(pool).is_some_and(|customers| customers <= threads)
    }

    /// The customers for whom all that a pool sends here is waited for.
    fn customers(&self, pool: usize) -> Option<f64> {
        let (net, task) = (self.sweep.net, self.layout.pools[pool]);
        let mut classes = vec![false; net.classes.len()];
        let comes = |&(x, &arc): &(usize, &usize)| self.layout.pool_of[x] == Some(pool) && self.sweep.flow.arc_rate[arc] > 0.0;
        for (_, &arc) in self.layout.arcs.iter().enumerate().filter(comes) {
            let node = net.arcs[arc].source.held();
            let entry = node.filter(|&node| net.nodes[node].phase == 0).map(|node| net.nodes[node].entry)?;
            if net.tasks[task].width > 1.0 || self.is_open(entry) {
                return None;
            }
            let shares = &self.sweep.exclusion.class_shares[entry * net.classes.len()..(entry + 1) * net.classes.len()];
            classes.iter_mut().zip(shares).for_each(|(comes, share)| *comes |= *share > 0.0);
        }
        let customers = classes.iter().zip(self.sweep.populations.customers).filter(|(comes, _)| **comes).map(|(_, n)| n).sum::<f64>();
        (customers >= 1.0).then_some(customers)
    }

    /// The stations of tasks that the second phase after a request over arc `x` calls, and the pool's threads as well; with the share of the wait of these there that
    /// the second phases of their own requests cause. And how long the second phase waits there for the thread after whose request it goes on. Who waits for the
    /// other gets no further, and so neither wait counts in who is first.
    fn shared(&self, x: usize, pool: usize) -> (SmallVec<[(usize, S); 4]>, S) {
        let (net, flow, zero) = (self.sweep.net, self.sweep.flow, S::from(0.0));
        let (mut shared, mut lost) = (SmallVec::new(), zero);
        let call = self.layout.arcs[x];
        let Some(entry) = net.arcs[call].target else { return (shared, lost) };
        let task = self.layout.pools[pool];
        let [_, later @ ..] = net.phases(entry);
        let threads = self.sources(pool);
        let received = flow.entry_rate[entry];
        for late in later.into_iter().flatten().flat_map(|node| &net.nodes[node].calls).map(|call| call.arc) {
            let station = net.arcs[late].station;
            let (mut of_all, mut of_lates, mut of_pool) = (zero, zero, zero);
            for &arc in &net.stations[station].arcs {
                let load = flow.arc_rate[arc] * self.sweep.service(arc).1;
                of_all += load;
                match net.arcs[arc].source.held().map(|node| &net.nodes[node]) {
                    Some(node) if node.entry == entry && node.phase > 0 => of_lates += load,
                    Some(node) if node.task == task => of_pool += load,
                    _ => {}
                }
            }
            if of_pool <= 0.0 || of_lates <= 0.0 || received <= 0.0 {
                continue;
            }
            let own = flow.arc_rate[call] / received / threads;
            let (others_of_thread, others_of_late) = (of_all - of_pool / threads, of_all - of_lates);
            if shared.iter().all(|(at, _)| *at != station) {
                shared.push((station, of_lates * own / others_of_thread));
            }
            lost += net.arcs[late].visits * self.sweep.unknowns[late] * (of_pool / threads / others_of_late);
        }
        (shared, lost)
    }

    /// The chance that a thread of a pool that has just had a reply in a node of each group comes back within an exponential time of mean `s`; 0 for groups of
    /// other pools.
    fn returns_within(&self, s: Lasting<'_, S>, pool: usize) -> ByGroup<S> {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let (mut rate, mut busy, mut first, mut none) = (zero, zero, zero, zero);
        let mut of_groups: SmallVec<[Option<Execution<S>>; 8]> = SmallVec::new();
        for (g, &node) in self.layout.groups.iter().enumerate() {
            if self.layout.pool_of[self.layout.rows[self.layout.row_of_group[g]].arc] != Some(pool) {
                of_groups.push(None);
                continue;
            }
            let it = self.execution(node, s);
            let executions = self.executions(node);
            rate += executions;
            busy += executions * self.sweep.flow.elapsed[node];
            first += executions * it.first;
            none += executions * it.none;
            of_groups.push(Some(it));
        }
        if rate <= 0.0 {
            return of_groups.iter().map(|_| Back { chance: zero, of_busy: zero }).collect();
        }
        let outside = self.between_executions(pool, (-busy + self.sources(pool)) / rate, rate, s.time);
        // Of those that never call again none are back.
        let back_after = |outside: S| {
            let calls = one - outside * none / rate;
            if calls > NEGLIGIBLE { first / rate / calls * outside } else { zero }
        };
        let (back, at_once) = (back_after(outside), back_after(one));
        let of_group = |it: &Option<Execution<S>>| {
            let after = |back: S| it.map_or(zero, |it| it.again + it.last * back);
            Back { chance: after(back), of_busy: after(at_once) }
        };
        of_groups.iter().map(of_group).collect()
    }

    /// The same, that a request over arc `x` is answered by those to whom it is forwarded.
    fn replies_within(&self, s: Lasting<'_, S>, x: usize) -> S {
        self.call(x).map_or(S::from(1.0), |call| self.legs_within(call, s, |_| true))
    }

    /// Whether some of an entry's requests are of no customer.
    fn is_open(&self, entry: usize) -> bool {
        let n = self.sweep.net.classes.len();
        let shares = &self.sweep.exclusion.class_shares[entry * n..(entry + 1) * n];
        shares.iter().fold(0.0, |sum, share| sum + share.value()) < 1.0 - NEGLIGIBLE
    }

    /// Executions of a node a unit of time.
    fn executions(&self, node: usize) -> S {
        let it = &self.sweep.net.nodes[node];
        self.sweep.flow.entry_rate[it.entry] * it.weight
    }

    /// `h_O`, of a mean time `away`, so many a unit of time.
    fn between_executions(&self, pool: usize, away: S, rate: S, s: S) -> S {
        let (net, zero) = (self.sweep.net, S::from(0.0));
        if away <= 0.0 {
            return S::from(1.0);
        }
        let task = self.layout.pools[pool];
        let threads = self.sweep.populations.strands_at(net, task, self.layout.station);
        let idle = if net.tasks[task].class.is_some() || self.sources(pool) < threads {
            away
        } else {
            (-self.sweep.flow.busy_threads(net, task) + threads) / rate
        };
        let idle = if idle <= 0.0 {
            zero
        } else if idle < away {
            idle
        } else {
            away
        };
        let station = net.tasks[task].station;
        let (mut rate, mut waited) = (zero, zero);
        for &arc in station.iter().flat_map(|&station| &net.stations[station].arcs) {
            rate += self.sweep.flow.arc_rate[arc];
            if self.sweep.unknowns[arc] > 0.0 {
                waited += self.sweep.flow.arc_rate[arc] * self.sweep.unknowns[self.sweep.chance_of[arc]];
            }
        }
        let free = if rate > 0.0 { -(waited / rate) + 1.0 } else { S::from(1.0) };
        mixture(chance_of_any(free), idle, s) / ((away - idle) / s + 1.0)
    }
}
