//! Waits at one station (step 4 of the sweep).
//!
//! One FCFS server; `a` the arrival, `b` an arc whose requests it may meet:
//!
//! ```text
//! W_a = Σ_b E_ab [R_ib q_b h_b + u_b r_ab]        E_ab = K_ab G_ab B_ib
//! q_b = ℓ_b W_b,  u_b = ℓ_b s_b,  h_b = s_b1 + s_b2,  r_ab = κ̂_ab s_b1 (1 + c_b²)/2 + s_b2
//! ```
//!
//! Several servers: `W_a = [Σ_b E R q h + Π(û) r̄]/m` with `û`, `r̄` the load and mean rest seen in service and `Π` the
//! probability that all servers are busy. Processor sharing: `W_a = s_a Σ_b E (u_b + R q_b)`. Unlimited servers: none.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `K` | [`super::exclusion`] | path exclusion |
//! | `G` | `Seen` | population correction: `Σ_c ρ_a(c) (1 - ρ_b(c)/N_c + F_bc) + 1 - Σρ_a` |
//! | `R` | `removal` | those waiting, without whom the arrival's own thread made wait |
//! | `B` | `boost` | `1/(1 - φ)`: how much faster the other pool circulates without that thread |
//! | `κ̂` | [`super::residual`] | rest of a service after a gap, relative to the mean exponential service |
//! | `u_b2` | `late` | load in second phases: the own thread's share is replaced by the chance of overtaking it |
//!
//! `R` and `B` come from the decomposition `W_b = Σ_x (α_bx W_x + β_bx)` of the last sweep: without the thread of node `i`,
//! `w_b = Σ_x K_ix (α_bx w_x + β_bx)` and `R_ib = w_b / W_b`; `φ = Σ_{b of the pool} ℓ_b Σ_x (α_bx W_x + β_bx)(1 - K_ix) / m`.
//! Together they are exact for two customers of equal service.
//!
//! No station serves more than it has servers for, which an approximation of the waits does not ensure by itself: where the
//! load would exceed the servers, every arc waits `e` longer, the least delay for which `Σ ℓ h ≤ m`. It is the multiplier of
//! that bound, zero elsewhere, and no part of the queue that others see.

use super::{
    super::erlang::erlang_c,
    compile::{Discipline, Net},
    exclusion::Exclusion,
    flow::{Flow, Waits},
    linear::solve_fixed_point,
    linearizer::Populations,
    residual::gap_factor,
    visit::{Visit, keep_factors, set_gaps, visit},
};
use crate::model::Scalar;

/// Bound on `φ`, beyond which the boost is not believed.
const MAX_BOOST_SHARE: f64 = 0.9;
/// Gauss-Seidel passes over a large removal system in a sweep; its state is kept, so that the passes go on where they stopped.
const REMOVAL_PASSES: usize = 4;
/// Removal systems up to this size are solved directly.
const LARGEST_DIRECT_SYSTEM: usize = 24;
/// Services by which a sweep raises the excess wait of a station for a load of twice its servers.
const EXCESS_GAIN: f64 = 4.0;
/// The chance that, of a reply's receiver and the replier's second phase on one processor, the one goes first.
const COIN: f64 = 0.5;
/// With fewer sources than this many times the servers, `(û/m)^m` is the better chance of finding all servers busy.
const FEW_SOURCES: f64 = 4.0;

/// Which arcs meet at a station, grouped by who sends them.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Distinct sending tasks whose threads are held.
    pub pools: Vec<usize>,
    /// Position in `pools` of each arc's sender.
    pub pool_of: Vec<Option<usize>>,
    /// Distinct held nodes.
    pub groups: Vec<usize>,
    /// Position in `groups` of each arc's node.
    pub group_of: Vec<Option<usize>>,
}

impl Layout {
    pub fn new<S>(net: &Net<S>, station: usize) -> Self {
        let mut layout = Self { pools: Vec::new(), pool_of: Vec::new(), groups: Vec::new(), group_of: Vec::new() };
        let place = |list: &mut Vec<usize>, item: usize| {
            list.iter().position(|&x| x == item).unwrap_or_else(|| {
                list.push(item);
                list.len() - 1
            })
        };
        for &a in &net.stations[station].arcs {
            let held = net.arcs[a].source.held();
            layout.pool_of.push(held.map(|node| place(&mut layout.pools, net.nodes[node].task)));
            layout.group_of.push(held.map(|node| place(&mut layout.groups, node)));
        }
        layout
    }
}

/// Whether loads may exceed the servers by the error of the approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capacity {
    /// They may; so are intermediate stages solved.
    Free,
    /// They may not.
    Kept,
}

/// What a station keeps from sweep to sweep besides the waits.
#[derive(Clone, Debug)]
pub(super) struct StationState<S> {
    /// `R`, in [0, 1], `groups × arcs`.
    pub removal: Vec<S>,
    /// `φ`, `groups × pools`.
    pub boost: Vec<S>,
    /// `e ≥ 0`: wait added to every arc so that the load does not exceed the servers.
    pub excess: S,
}

impl<S: Scalar> StationState<S> {
    pub fn new(layout: &Layout) -> Self {
        Self {
            removal: vec![S::from(1.0); layout.groups.len() * layout.group_of.len()],
            boost: vec![S::from(0.0); layout.groups.len() * layout.pools.len()],
            excess: S::from(0.0),
        }
    }
}

/// All that a station's waits depend on.
pub(super) struct Sweep<'a, S> {
    pub net: &'a Net<S>,
    pub flow: &'a Flow<S>,
    pub exclusion: &'a Exclusion<S>,
    pub waits: &'a Waits<S>,
    pub populations: &'a Populations<'a, S>,
}

/// Where the waits of a station come from: `W_b = Σ_x (α_bx W_x + β_bx) + own_b`.
struct Parts<S> {
    /// Coefficient of `W_x`, by row `b`.
    alpha: Vec<S>,
    /// Work of arc `x` found in service, by row `b`.
    beta: Vec<S>,
    /// Second phases that the arrival's own thread left behind.
    own: Vec<S>,
}

/// New waits, their probabilities and the state of a station.
pub(super) struct NewWaits<S> {
    pub wait: Vec<S>,
    pub probability: Vec<S>,
    pub state: StationState<S>,
}

/// Solves one station for the arrivals that the last sweep's waits imply.
pub(super) fn station_waits<S: Scalar>(
    sweep: &Sweep<'_, S>,
    station: usize,
    layout: &Layout,
    state: &StationState<S>,
    capacity: Capacity,
) -> NewWaits<S> {
    StationSweep::new(sweep, station, layout, state).run(capacity)
}

struct StationSweep<'a, S> {
    sweep: &'a Sweep<'a, S>,
    layout: &'a Layout,
    state: &'a StationState<S>,
    servers: f64,
    discipline: Discipline,
    visits: Vec<Visit<S>>,
    mean_service: S,
    /// Sources that can be at the station together.
    sources: f64,
    /// `K` between an arc's node and every arc, `arcs × arcs`.
    keep: Vec<S>,
}

impl<'a, S: Scalar> StationSweep<'a, S> {
    fn new(sweep: &'a Sweep<'a, S>, station: usize, layout: &'a Layout, state: &'a StationState<S>) -> Self {
        let it = &sweep.net.stations[station];
        let mut visits: Vec<Visit<S>> = it.arcs.iter().map(|&a| visit(sweep, a)).collect();
        set_gaps(sweep, layout, &mut visits);
        visits.iter_mut().for_each(|v| v.wait = if v.wait > state.excess { v.wait - state.excess } else { S::from(0.0) });
        let (mut rate, mut load) = (S::from(0.0), S::from(0.0));
        for v in &visits {
            rate += v.rate;
            load += v.rate * (v.first + v.late);
        }
        let mean_service = if rate > 0.0 { load / rate } else { S::from(0.0) };
        let open = layout.pool_of.iter().any(Option::is_none);
        let sources = if open { f64::INFINITY } else { layout.pools.iter().map(|&t| sweep.populations.cap(sweep.net, t)).sum() };
        let keep = keep_factors(sweep, &visits);
        Self { sweep, layout, state, servers: it.servers, discipline: it.discipline, visits, mean_service, sources, keep }
    }

    fn run(&self, capacity: Capacity) -> NewWaits<S> {
        let n = self.visits.len();
        let zero = S::from(0.0);
        let mut new = NewWaits { wait: vec![zero; n], probability: vec![zero; n], state: self.state.clone() };
        if self.servers.is_infinite() || self.sources <= self.servers && !self.has_late_work() {
            return new;
        }
        let mut parts = Parts { alpha: vec![zero; n * n], beta: vec![zero; n * n], own: vec![zero; n] };
        for b in 0..n {
            new.probability[b] = self.decompose(b, &mut parts);
            new.wait[b] = (0..n).fold(parts.own[b], |sum, x| sum + parts.alpha[b * n + x] * self.visits[x].wait + parts.beta[b * n + x]);
        }
        self.update_removal(&mut new.state, &parts, &new.wait);
        self.update_boost(&mut new.state, &parts);
        if capacity == Capacity::Kept {
            new.state.excess = self.next_excess();
        }
        new.wait.iter_mut().for_each(|w| *w += new.state.excess);
        new
    }

    /// Raises `e` while the load exceeds the servers.
    fn next_excess(&self) -> S {
        let zero = S::from(0.0);
        let (mut rate, mut load) = (zero, zero);
        for v in &self.visits {
            rate += v.rate;
            load += v.rate * (v.first + v.late);
        }
        if !self.sources.is_finite() || rate <= 0.0 {
            return zero;
        }
        let next = self.state.excess + (load / self.servers - 1.0) * self.mean_service * EXCESS_GAIN;
        if next > 0.0 { next } else { zero }
    }

    fn has_late_work(&self) -> bool {
        self.visits.iter().any(|v| v.late > 0.0)
    }

    /// Fills the row of arc `a` and returns the probability that it waits.
    fn decompose(&self, a: usize, parts: &mut Parts<S>) -> S {
        let zero = S::from(0.0);
        let me = &self.visits[a];
        let n = self.visits.len();
        let (alpha, beta) = (&mut parts.alpha[a * n..(a + 1) * n], &mut parts.beta[a * n..(a + 1) * n]);
        let own = &mut parts.own[a];
        let mut busy = zero;
        for x in 0..n {
            let it = &self.visits[x];
            if it.rate <= 0.0 && it.rate.derivatives().is_empty() {
                continue;
            }
            let seen = self.sweep.populations.seen(self.sweep.net, self.sweep.exclusion, me.arc, it.arc);
            let boost = self.boost(a, x);
            let keep = self.keep[a * n + x] * boost;
            let queue = keep * seen.waiting * self.removal_ratio(a, x) * it.rate;
            let first = keep * seen.first * it.rate * it.first;
            let (late, overtaken) = self.late_load(a, x, seen.late);
            if self.discipline == Discipline::Sharing {
                busy += first + late;
                alpha[x] = queue * me.first;
                beta[x] = (first + late) * me.first;
                continue;
            }
            let rest_first = self.rest_ratio(a, x) * it.first * (it.first_cvsq + 1.0) * 0.5 + it.late;
            let rest_late = it.late * (it.late_cvsq + 1.0) * 0.5;
            busy += first + late + overtaken;
            alpha[x] = queue * (it.first + it.late);
            beta[x] = first * rest_first + late * rest_late;
            *own += overtaken * rest_late;
        }
        let probability = self.scale_to_servers(alpha, beta, own, busy);
        *own += self.first_slice(a);
        probability
    }

    /// From one server to `m`: those waiting leave `m` times faster, and what is in service matters only when all are busy.
    fn scale_to_servers(&self, alpha: &mut [S], beta: &mut [S], own: &mut S, busy: S) -> S {
        let one = S::from(1.0);
        if self.servers <= 1.0 {
            return if busy > 1.0 { one } else { busy };
        }
        let all_busy = self.all_busy(busy);
        let share = if busy > 0.0 { all_busy / busy } else { S::from(0.0) };
        alpha.iter_mut().for_each(|x| *x /= self.servers);
        beta.iter_mut().for_each(|x| *x *= share / self.servers);
        *own *= share / self.servers;
        all_busy
    }

    /// `Π`: chance that an arrival finds all servers busy, at the load it sees.
    fn all_busy(&self, busy: S) -> S {
        let m = self.servers;
        if self.sources - 1.0 < m && !self.has_late_work() {
            return S::from(0.0);
        }
        if self.sources < FEW_SOURCES * m {
            return if busy >= m { S::from(1.0) } else { (busy / m).powf(m) };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of servers, checked when compiled")]
        erlang_c(m as u32, busy)
    }

    /// `κ̂`.
    fn rest_ratio(&self, a: usize, x: usize) -> S {
        let (gap, it) = (&self.visits[a].gap, &self.visits[x]);
        let one = S::from(1.0);
        let relative = |z: S| gap_factor(z, it.first, it.first_cvsq) / gap_factor(z, self.mean_service, one);
        if !gap.long.value().is_finite() && gap.short_share <= 0.0 {
            return one;
        }
        let mut ratio = (one - gap.short_share) * relative(gap.long);
        if gap.short_share > 0.0 {
            ratio += gap.short_share * relative(gap.short);
        }
        ratio
    }

    /// Second-phase load of arc `x` that arc `a` sees: that of other threads, and the own thread's, overtaken.
    fn late_load(&self, a: usize, x: usize, seen: S) -> (S, S) {
        let (me, it) = (&self.visits[a], &self.visits[x]);
        let zero = S::from(0.0);
        if it.late <= 0.0 {
            return (zero, zero);
        }
        let load = it.rate * it.late;
        let (Some(mine), Some(theirs)) = (self.layout.pool_of[a], self.layout.pool_of[x]) else { return (load * seen, zero) };
        if mine != theirs {
            return (load * seen, zero);
        }
        let threads = self.sweep.populations.cap(self.sweep.net, self.layout.pools[mine]);
        if threads.is_infinite() {
            return (load * seen, zero);
        }
        let others = load * (1.0 - threads.recip());
        let pool_rate = self.pool_rate(mine);
        if pool_rate <= 0.0 {
            return (others, zero);
        }
        let gap = &me.gap;
        let within = |z: S| it.late / (it.late + z);
        let mut overtaking = gap.short_share * within(gap.short);
        if gap.long.value().is_finite() {
            overtaking += (S::from(1.0) - gap.short_share) * within(gap.long);
        }
        (others, it.rate / pool_rate * overtaking)
    }

    fn pool_rate(&self, pool: usize) -> S {
        self.visits.iter().zip(&self.layout.pool_of).filter(|(_, p)| **p == Some(pool)).fold(S::from(0.0), |sum, (v, _)| sum + v.rate)
    }

    /// On a processor: a callee's second phase starts when its caller's next slice does, and a coin decides which goes first.
    fn first_slice(&self, a: usize) -> S {
        let net = self.sweep.net;
        let zero = S::from(0.0);
        let arc = &net.arcs[self.visits[a].arc];
        let (None, Some(node)) = (arc.target, arc.source.held()) else { return zero };
        if !self.servers.is_finite() || self.servers > 1.0 {
            return zero;
        }
        let it = &net.nodes[node];
        let mut extra = zero;
        for group in &it.calls {
            let Some(callee) = net.arcs[group.arc].target else { continue };
            let Some(late) = net.entries[callee].phases[1] else { continue };
            if net.nodes[late].host_arc.is_some_and(|h| net.arcs[h].station == arc.station) {
                let slice = net.nodes[late].demand / net.nodes[late].slices;
                extra += net.arcs[group.arc].visits / it.slices * slice * COIN;
            }
        }
        extra
    }

    fn removal_ratio(&self, a: usize, x: usize) -> S {
        self.layout.group_of[a].map_or(S::from(1.0), |group| self.state.removal[group * self.visits.len() + x])
    }

    fn boost(&self, a: usize, x: usize) -> S {
        let (Some(group), Some(pool)) = (self.layout.group_of[a], self.layout.pool_of[x]) else { return S::from(1.0) };
        (S::from(1.0) - self.state.boost[group * self.layout.pools.len() + pool]).recip()
    }

    /// The first arc of each group: its row of `keep` is the group's.
    fn group_rows(&self) -> Vec<usize> {
        (0..self.layout.groups.len()).map(|g| self.layout.group_of.iter().position(|&x| x == Some(g)).unwrap_or(0)).collect()
    }

    /// Solves `w_b = Σ_x K_ix (α_bx w_x + β_bx) + own_b` for every group `i` and keeps `R = w / W`.
    fn update_removal(&self, state: &mut StationState<S>, parts: &Parts<S>, wait: &[S]) {
        let n = self.visits.len();
        let (zero, one) = (S::from(0.0), S::from(1.0));
        for (group, row) in self.group_rows().into_iter().enumerate() {
            let keep = &self.keep[row * n..(row + 1) * n];
            let ratio = &mut state.removal[group * n..(group + 1) * n];
            if keep.iter().all(|k| *k == 1.0) {
                ratio.fill(one);
                continue;
            }
            let constant: Vec<S> = (0..n).map(|b| (0..n).fold(parts.own[b], |sum, x| sum + keep[x] * parts.beta[b * n + x])).collect();
            let coefficient = |b: usize, x: usize| keep[x] * parts.alpha[b * n + x];
            let direct = if n <= LARGEST_DIRECT_SYSTEM { solve_fixed_point(n, coefficient, &constant) } else { None };
            let w = direct.unwrap_or_else(|| {
                let mut w: Vec<S> = wait.iter().zip(ratio.iter()).map(|(&w, &r)| w * r).collect();
                for _ in 0..REMOVAL_PASSES {
                    for b in 0..n {
                        w[b] = (0..n).fold(constant[b], |sum, x| sum + coefficient(b, x) * w[x]);
                    }
                }
                w
            });
            for b in 0..n {
                let r = if wait[b] > 0.0 { w[b] / wait[b] } else { one };
                ratio[b] = if r > 1.0 {
                    one
                } else if r < 0.0 {
                    zero
                } else {
                    r
                };
            }
        }
    }

    fn update_boost(&self, state: &mut StationState<S>, parts: &Parts<S>) {
        let n = self.visits.len();
        let n_pools = self.layout.pools.len();
        for (group, row) in self.group_rows().into_iter().enumerate() {
            let keep = &self.keep[row * n..(row + 1) * n];
            let phi = &mut state.boost[group * n_pools..(group + 1) * n_pools];
            phi.fill(S::from(0.0));
            for b in 0..n {
                let Some(pool) = self.layout.pool_of[b] else { continue };
                let threads = self.sweep.populations.threads(self.sweep.net, self.layout.pools[pool]);
                if threads.is_infinite() || threads <= 0.0 {
                    continue;
                }
                let caused = (0..n).fold(S::from(0.0), |sum, x| {
                    sum + (parts.alpha[b * n + x] * self.visits[x].wait + parts.beta[b * n + x]) * (S::from(1.0) - keep[x])
                });
                phi[pool] += self.visits[b].rate * caused / threads;
            }
            for share in phi.iter_mut().filter(|share| **share > MAX_BOOST_SHARE) {
                *share = S::from(MAX_BOOST_SHARE);
            }
        }
    }
}
