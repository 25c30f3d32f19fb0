//! From what an arrival finds to what it waits, by discipline and number of servers.
//!
//! With priorities, what is found is counted by urgency, and the service of more urgent requests that come meanwhile
//! stretches it. An arrival `x`'s own thread cannot come again meanwhile, so the stretch is that of the load which `x` itself would see:
//!
//! ```text
//! head of line:  W_a = Σ_{x ≥ a} α_x W_x σ_x + Σ_x β_x σ_x             σ_x = 1/(1 - Σ_{y > a} û_xy)
//! preemptive:    W_a = Σ_{x ≥ a} (α_x W_x + β_x) σ_x + f_a s_a (σ_a - 1)
//! ```
//!
//! Of `m` servers under preemption, an arrival finds all busy with requests that it may not interrupt, `Π_≥`, by the load and the sources
//! of these; and it is interrupted only where all are needed. `f` is 1 of one server; it makes M/M/m with any number of levels
//! exact, where the requests of a level and those above it are an M/M/m of their own:
//!
//! ```text
//! f_a = (Π_≥ - Π_>) / (û_≥ - û_>)
//! ```
//!
//! At one server of a processor, who comes as a slice ends is told apart, and services that are waited for are longer by what they begin ([`super::makes_way`]).
//!
//! Who waits makes the urgent gather before it; by how much waits are shorter than these for that is told by a chain ([`super::kinds`]).
//!
//! Under preemption a thread leaves only when nothing more urgent is there; how much of it is there again when the thread comes
//! back after a gap `z` follows from the time `τ` in which presence relaxes:
//!
//! ```text
//! present = z / (z + τ) of the mean          τ = (W + s)(1 - share of its time that the other thread spends there)
//! ```
//!
//! With groups of guaranteed shares `f`, requests share their group's part, and other groups take theirs while they have work:
//!
//! ```text
//! W_a = s_a [(1 + Σ_{x in g} (û + q̂)) Φ - 1]      Φ = 1 + Σ_{h ≠ g} (f_h / f_g) (1 - (1 - L_h/N_h)^N_h)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `x ≥ a`, `y > a` | requests at least as urgent, more urgent |
//! | `Π_≥`, `Π_>`, `û_≥`, `û_>` | chance that all servers are busy with requests at least as urgent, more urgent, and the load of these |
//! | `û_xy` | load of `y` in service as an arrival of `x` sees it, over the servers |
//! | `L_h`, `N_h` | mean requests present of group `h`, and how many there can be |
//!
//! Sources: Cobham 1954; Bryant, Krzesinski, Lakshmi & Chandy 1984 (the MVA priority approximation); the shares follow from
//! the fluid limit of generalized processor sharing (Parekh & Gallager 1993).

use super::{super::net::Discipline, At, Scratch, removal::bounded, visit::Visit};
use crate::model::Scalar;

/// Load of more urgent requests beyond which the stretch is not believed.
const MAX_URGENT_LOAD: f64 = 0.999;
/// Load of an arrival's own urgency below which it counts as so much.
const LEAST_OWN_LOAD: f64 = 1e-3;
/// A group that uses less of what it is entitled to than this is the fourth power of goes first all the same.
const LEAST_CLAIM: f64 = 1e-4;
const CLAIM_POWER: i32 = 8;
/// Of a processor, least that other groups leave.
const LEAST_LEFT: f64 = 1e-3;

impl<S: Scalar> At<'_, S> {
    /// Turns what is found into parts of the waits, and sets the chance to wait of each row.
    pub(super) fn serve(&self, scratch: &mut Scratch<S>, probability: &mut [S]) {
        let n = self.visits.len();
        let has_priorities = self.has_priorities();
        let stretch = has_priorities.then(|| {
            self.hold_to_servers(scratch);
            self.stretches(scratch)
        });
        let begun_before = self.begun_before(scratch);
        let interrupts = self.interrupts();
        self.find_queues(&mut scratch.queues);
        for r in 0..self.layout.rows.len() {
            // Who may be interrupted is not in the way.
            let level = if interrupts { self.layout.rows[r].priority } else { f64::NEG_INFINITY };
            let loads = scratch.load[r * n..(r + 1) * n].iter().enumerate();
            let met = loads.filter(|(x, _)| !interrupts || self.priority_of(*x) >= level);
            let busy = met.fold(S::from(0.0), |sum, (_, &load)| sum + load);
            let sources = if interrupts && self.servers > 1.0 { self.sources_from(level) } else { self.sources };
            probability[r] = self.scale_to_servers(r, (busy, sources), scratch);
            if self.servers > 1.0 || self.is_shared() {
                self.lengthen(r, scratch);
            }
            if let Some(stretch) = &stretch {
                let interrupted = self.interrupted(r, (busy, probability[r]), scratch);
                self.by_urgency(r, (stretch, interrupted), &begun_before, scratch);
                self.lengthen_by_urgency(r, scratch);
            }
            if self.discipline == Discipline::Groups {
                self.by_groups(r, scratch);
            }
            let extra = self.first_slice(r);
            scratch.own[r] += extra;
            self.take_told(r, scratch);
        }
    }

    /// Whether some requests go before others.
    pub(super) fn has_priorities(&self) -> bool {
        matches!(self.discipline, Discipline::HeadOfLine | Discipline::Preemptive) && self.layout.levels.len() > 1
    }

    /// Whether more urgent requests interrupt others.
    pub(super) fn interrupts(&self) -> bool {
        self.discipline == Discipline::Preemptive && self.has_priorities()
    }

    pub(super) fn priority_of(&self, x: usize) -> f64 {
        self.layout.rows[self.layout.row_of[x]].priority
    }

    /// Sources of requests at least as urgent as `level` that can be at the station together.
    fn sources_from(&self, level: f64) -> f64 {
        let n = self.visits.len();
        if (0..n).any(|x| self.layout.pool_of[x].is_none() && self.priority_of(x) >= level) {
            return f64::INFINITY;
        }
        let sends = |pool: usize| (0..n).any(|x| self.layout.pool_of[x] == Some(pool) && self.priority_of(x) >= level);
        let pools = self.layout.pools.iter().enumerate().filter(|(pool, _)| sends(*pool));
        pools.map(|(_, &task)| self.sweep.populations.strands_at(self.sweep.net, task, self.station)).sum::<f64>().min(self.sources)
    }

    /// `f` of a row, whose arrivals find so many servers with requests at least as urgent, and all of them with that chance.
    fn interrupted(&self, r: usize, (busy, all_busy): (S, S), scratch: &Scratch<S>) -> S {
        let one = S::from(1.0);
        if self.discipline != Discipline::Preemptive || self.servers <= 1.0 {
            return one;
        }
        let n = self.visits.len();
        let mine = self.layout.rows[r].priority;
        let Some(&next) = self.layout.levels.iter().filter(|&&level| level > mine).min_by(|a, b| a.total_cmp(b)) else { return one };
        let more_urgent = (0..n).filter(|&x| self.priority_of(x) > mine).fold(S::from(0.0), |sum, x| sum + scratch.load[r * n + x]);
        let without = self.chance_of_all_busy((more_urgent, self.sources_from(next) + 1.0), &[], &mut None);
        let with = |load: S| self.chance_of_all_busy((load, self.sources_from(mine)), &[], &mut None);
        share_interrupted((more_urgent, busy - more_urgent), (without, all_busy), with)
    }

    /// No more is found in service than there are servers: the less urgent have what the others leave.
    fn hold_to_servers(&self, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let one = S::from(1.0);
        for r in 0..self.layout.rows.len() {
            let mine = self.layout.rows[r].priority;
            let is_urgent = |x: usize| self.layout.rows[self.layout.row_of[x]].priority >= mine;
            let (mut urgent, mut other) = (S::from(0.0), S::from(0.0));
            for x in 0..n {
                if is_urgent(x) { urgent += scratch.load[r * n + x] } else { other += scratch.load[r * n + x] }
            }
            if urgent + other <= self.servers {
                continue;
            }
            let of_urgent = if urgent > self.servers { urgent.recip() * self.servers } else { one };
            let of_other = if urgent < self.servers { (-urgent + self.servers) / other } else { S::from(0.0) };
            for x in 0..n {
                let share = if is_urgent(x) { of_urgent } else { of_other };
                scratch.load[r * n + x] *= share;
                scratch.beta[r * n + x] *= share;
                if self.layout.siblings {
                    scratch.beta_own[r * n + x] *= share;
                }
            }
            scratch.own[r] *= of_urgent;
        }
    }

    /// `σ`, by level and row.
    fn stretches(&self, scratch: &Scratch<S>) -> Vec<S> {
        let n = self.visits.len();
        let mut stretches = Vec::with_capacity(self.layout.levels.len() * self.layout.rows.len());
        for &level in &self.layout.levels {
            for r in 0..self.layout.rows.len() {
                let mut load = S::from(0.0);
                for x in 0..n {
                    if self.layout.rows[self.layout.row_of[x]].priority > level {
                        load += scratch.load[r * n + x] / self.servers * scratch.from_elsewhere[self.layout.row_of[x]];
                    }
                }
                stretches.push(stretch(load));
            }
        }
        stretches
    }

    /// Share of the mean presence of a more urgent arc `x` that has come back when an interrupted thread does.
    pub(super) fn regained(&self, me: &Visit<S>, it: &Visit<S>, x: usize) -> S {
        let one = S::from(1.0);
        let Some(long) = me.gap.long else { return one };
        let threads = self.layout.pool_of[x]
            .map_or(f64::INFINITY, |p| self.sweep.populations.strands_at(self.sweep.net, self.layout.pools[p], self.station));
        let stay = it.wait + it.first;
        let share = if threads > 0.0 { it.rate * stay / threads } else { S::from(0.0) };
        let share = if share > 1.0 { one } else { share };
        let relaxes = stay * (-share + 1.0);
        let after = |z: S| z / (z + relaxes);
        if relaxes <= 0.0 || it.rate <= 0.0 {
            one
        } else {
            me.gap.short_share * after(me.gap.short) + (-me.gap.short_share + 1.0) * after(long)
        }
    }

    fn by_urgency(&self, r: usize, (stretches, interrupted): (&[S], S), begun_before: &[S], scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let n_rows = self.layout.rows.len();
        let mine = self.layout.rows[r].priority;
        let level = self.layout.levels.iter().position(|&l| l == mine).unwrap_or(0);
        let stretch = &stretches[level * n_rows..(level + 1) * n_rows];
        let preemptive = self.discipline == Discipline::Preemptive;
        for x in 0..n {
            let row = self.layout.row_of[x];
            let at = r * n + x;
            let as_urgent = self.layout.rows[row].priority >= mine;
            let stretch = if preemptive && self.layout.rows[row].priority > mine {
                stretch[row] * self.regained(&self.visits[self.layout.rows[r].arc], &self.visits[x], x)
            } else {
                stretch[row]
            };
            let stretch = begun_before.get(level * n_rows + row).map_or(stretch, |&begun| stretch * (begun + 1.0));
            let of_waiting = if as_urgent { stretch } else { S::from(0.0) };
            let in_service = if as_urgent || !preemptive { stretch } else { S::from(0.0) };
            scratch.alpha[at] *= of_waiting;
            scratch.beta[at] *= in_service;
            if self.layout.siblings {
                scratch.alpha_own[at] *= of_waiting;
                scratch.beta_own[at] *= in_service;
            }
        }
        if preemptive {
            let service = self.visits[self.layout.rows[r].arc].first;
            scratch.own[r] += service * (stretch[r] - 1.0) * interrupted;
        }
    }

    /// Shares (`lqn.md` 4.3): a group `g` with fewer requests than it may have served goes first, and what none of them is entitled to is spread
    /// evenly. With its entitlement `e = share + spare / groups`, its load `u`, the probability `t` that it has a request there, and by how far it
    /// uses up what it may have, `1 - q = (1 - (u / e)^8) (1 - t^8)`, 0 from `u = e` on, a group that is found with probability `p` takes
    /// `p e q_mine / (e_mine q)` of what mine gets, at most its load over what the others leave mine, over `1 - q`: what it takes where it always
    /// goes first for one far below its entitlement, and no bound for one at it.
    fn by_groups(&self, r: usize, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let net = self.sweep.net;
        let group_at = |x: usize| net.arcs[self.layout.arcs[x]].group;
        let me = &self.visits[self.layout.rows[r].arc];
        let Some((mine, _)) = group_at(self.layout.rows[r].arc) else { return };
        let mut groups: Vec<Presence<S>> = Vec::new();
        for x in 0..n {
            let Some((group, share)) = group_at(x) else { continue };
            let place = groups.iter().position(|g| g.group == group).unwrap_or_else(|| {
                groups.push(Presence { group, share, load: S::from(0.0), present: S::from(0.0), there: S::from(0.0), sources: 0.0 });
                groups.len() - 1
            });
            let (it, at) = (&self.visits[x], r * n + x);
            groups[place].load += it.rate * it.first / self.servers;
            groups[place].there += it.rate * (it.wait + it.first);
            groups[place].sources +=
                self.layout.pool_of[x].map_or(1.0, |p| self.sweep.populations.strands_at(net, self.layout.pools[p], self.station));
            if group == mine {
                continue;
            }
            // The parts hold the arrival's own service as a factor.
            if me.first > 0.0 {
                groups[place].present += (scratch.alpha[at] * it.wait + scratch.beta[at]) / me.first;
            }
            scratch.alpha[at] = S::from(0.0);
            scratch.beta[at] = S::from(0.0);
        }
        let given = groups.iter().fold(S::from(0.0), |sum, g| sum + g.share);
        let spare = if given < 1.0 { (-given + 1.0) / groups.len() as f64 } else { S::from(0.0) };
        let Some([_, own]) = groups.iter().find(|g| g.group == mine).map(|g| g.claim(spare)) else { return };
        let others = || groups.iter().filter(|g| g.group != mine);
        let left = -others().fold(S::from(0.0), |sum, g| sum + g.load) + 1.0;
        let left = if left > LEAST_LEFT { left } else { S::from(LEAST_LEFT) };
        let mut slowdown = S::from(1.0);
        for other in others() {
            let [full, claim] = other.claim(spare);
            let taken = other.chance_of_any(other.present) * own / claim;
            let most = other.load / left / (-full + (1.0 + f64::EPSILON));
            slowdown += if taken < most { taken } else { most };
        }
        for at in r * n..(r + 1) * n {
            scratch.alpha[at] *= slowdown;
            scratch.beta[at] *= slowdown;
        }
        scratch.own[r] += me.first * (slowdown - 1.0);
    }
}

/// `σ`, of so much load of more urgent requests to a server.
pub(super) fn stretch<S: Scalar>(load: S) -> S {
    let load = if load > MAX_URGENT_LOAD { S::from(MAX_URGENT_LOAD) } else { load };
    (-load + 1.0).recip()
}

/// `f`, of such loads of more urgent requests and of as urgent ones, and the chances that all servers are busy with the former and with both; `with` such a load
/// it is found where there are next to none as urgent.
pub(super) fn share_interrupted<S: Scalar>((urgent, own): (S, S), (without, all_busy): (S, S), with: impl Fn(S) -> S) -> S {
    let share = if own > LEAST_OWN_LOAD { (all_busy - without) / own } else { (with(urgent + LEAST_OWN_LOAD) - without) / LEAST_OWN_LOAD };
    bounded(share)
}

/// A group of a processor as an arrival of another finds it.
struct Presence<S> {
    group: usize,
    share: S,
    /// Of the processor.
    load: S,
    /// Requests that are there, of so many sources: as the arrival finds them, and at any time.
    present: S,
    there: S,
    sources: f64,
}

impl<S: Scalar> Presence<S> {
    /// `q`, and `q / e`.
    fn claim(&self, spare: S) -> [S; 2] {
        let entitled = self.share + spare;
        let (used, there) = (self.load / entitled, self.chance_of_any(self.there));
        let claim = match () {
            () if used < 1.0 => -(-used.powi(CLAIM_POWER) + 1.0) * (-there.powi(CLAIM_POWER) + 1.0) + 1.0,
            () => S::from(1.0),
        };
        let claim = if claim > LEAST_CLAIM { claim } else { S::from(LEAST_CLAIM) };
        [claim, claim / entitled]
    }

    /// Probability that there are any where so many are there in the mean.
    fn chance_of_any(&self, number: S) -> S {
        let sources = if self.sources.is_finite() && self.sources >= 1.0 { self.sources } else { 1.0 };
        let idle = -(number / sources) + 1.0;
        -(if idle > 0.0 { idle.powf(sources) } else { S::from(0.0) }) + 1.0
    }
}
