//! What a request finds that comes back to its processor at once: whoever was ahead of it, one slice further on, and who came meanwhile.
//!
//! A request's slice often begins where its last one here ends: a callee on the same core, the branches of a fork, what follows their join. It does not
//! find what there is at any time. In order of arrival all that it found has been served before it, and is back with its next slice, or has
//! gone; and who came behind it is all there, in full. So what slices of row `j` find follows from what the slices `k` before them found:
//!
//! ```text
//! f_j = Σ_k p_jk g_k + (1 - Σ_k p_jk) Σ_c ρ_j(c) [h_c ḡ_c + (1 - h_c) F_j]          g_kx = Σ_y f_ky M_yx + Σ_c a_kc i_cx          M_yx = λ_x p_xy / λ_y
//! a_kc = (A + L) t / (1 + t)      t = e_c [V_k + s_k + o_k - v V_k / (Σ_c E_c Σ_x w_x f_kx)]      A = N_c - ρ_k(c) - B_c (1 - 1/N_c) - Σ_x w_x ρ_x(c) f_kx,   L = Σ_x w_x ρ_x(c) f_kx out_x
//! V_j = Σ_x (f_jx - r_j F_jx) s_x + r_j V°_j                                            r_j: the share of F_j in f_j;  V°, F: as found at any time
//! e_c = Λ_c / E_c,   E_c = N_c - B_c - Σ_x λ_x ρ_x(c) w_x (W_x + s_x + o_x)       Λ_c = Σ_x λ_x ρ_x(c) w_x (1 - Σ_k p_xk)        h_c = (N_c - E_c) / (2 N_c - E_c)
//! ```
//!
//! At `m` servers as much of that is so as the others are busy, `V°_j + (V_j - V°_j) (ρ/m)^(m - 1)`.
//!
//! Who is away comes the less often in so long a time the more are there that make it long: that is the term with `v`, the variance of the number of
//! those that are there, as of exponential services of one mean, `P(n) ∝ M!/(M - n)! (ρ/E)^n` of `M` others, and the mean service of
//! those that are found; their number is taken for a tenth of the mean at any time where it is less, as of next to nobody there is no mean service. Then all others are somewhere, here or
//! away, and where a slice follows no other it finds what is there at any time: of services that are alike `V = V°`.
//!
//! Of customers who have a thread each wherever they call, and neither fork nor send, more is known: with `f = Σ_x f_kx`, `n` the mean of the number of others and `χ = (v - n)/n²`,
//!
//! ```text
//! a_kc = A h(t) + L h(η t)      h(t) = t / (1 + t)      t = e_c [V_k + s_k - (V_kc + χ f_kc V_k) / A]      η = min(1, (s_k + u) / (V_k/f + u)),  u = V_k (1 + χ)/2
//! ```
//!
//! `V_kc` and `f_kc` what is waited for those of the class, and their number. Of one class and services that are alike that is exact: `f = F` (2 to 30 customers, one of whom works .05 to .6 of the time that he is away). Who leaves comes
//! back in what is left of the time, which `η` has where services are not alike.
//!
//! | symbol | is |
//! |---|---|
//! | `f_jx`, `F_jx` | slices of `x` found by one of `j`, at any time |
//! | `V_j`, `V°_j` | what a slice waits for others |
//! | `c` | a source: customers of a class, or threads of a task that fewer threads than customers come through, where nothing above it comes here |
//! | `N_c`, `E_c`, `B_c` | how many there are, how many of these are elsewhere, and how many wait for threads of tasks further down |
//! | `ρ_x(c)` | share of the slices of `x` that are the source's |
//! | `p_jk` | share of the slices of `j` that follow one of `k`, times `(W_k + s_k)/(W_k + s_k + a)` after a gap `a` ([`super::previous`]) |
//! | `M`, `out` | what a slice is followed by, with which chance by none |
//! | `a_kc`, `i_c` | those who come from elsewhere while a slice of `k` is here, and with which slice |
//! | `A`, `L` | those who are elsewhere, and who leave meanwhile |
//! | `w_x` | of the source for each slice of `x` that is here: one of `n` branches counts `1/n`, of what nobody waits for none |
//! | `o_k` | what a slice waits for other strands of its own thread ([`own`]); of one before a join, also for those that began behind it, as it is for the last of them |
//! | `h_c`, `ḡ_c` | chance that little has changed since the source left, in the time `(N - E) E/(Λ N)` in which it does; what it left behind |
//!
//! What a slice sends without waiting for it is behind it, too, and belongs to no source; what it and its next slices find of each other is told by [`super::messages`], and adds to `o`.
//! So of those who come from elsewhere, the part that goes on for the request that is here, or is that request itself, is left out (of `N` customers as in [`super::messages`], of the threads of a pool their own), but what waited for a thread since a slice here.
//! No more of a pool are found than it has threads. Where a request that is sent from elsewhere comes from a call of a slice here, it follows that slice after a gap.
//!
//! Where a node makes always as many calls, its slices are told apart ([`in_order`]): `j`, `k`, `x` are slices then, and not rows.
//!
//! `V°` is with rests as those find them who were away for long. Looked for at processors in order of arrival: where requests fork, and where requests are sent to them, to several servers from there; and at one server of more than two
//! customers who have a thread each wherever they call. Not where something goes on after a reply, where a join leaves branches behind or what forks is
//! repeated, where threads of one source work for those of another, and where too many rows meet.

mod coming;
mod further;
mod in_order;
mod lead;
mod own;
mod sources;
mod ways;

use smallvec::SmallVec;

pub(super) use self::ways::Follows;
use self::{
    coming::{Found, Stay},
    further::Further,
    in_order::Slice,
};
use super::{At, Scratch};
use crate::model::Scalar;

/// Relative change at which `f` has settled, and its derivatives, and most passes.
const SETTLED: f64 = 1e-12;
const MOST_PASSES: usize = 200;
/// Chance that, of two strands that begin at the same time, the one goes first.
const GOES_FIRST: f64 = 0.5;
/// What is waited for others, as a part of what would be at any time, is between these.
const RATIOS: (f64, f64) = (0.02, 50.0);

/// Room for what slices find, and what was found last at each station.
#[derive(Debug)]
pub(super) struct Followed<S> {
    /// `f`, `rows × rows`, by station.
    found_at: Vec<Vec<S>>,
    /// `F` and `V°`, `rows × rows` and by row.
    any: Vec<S>,
    waits: Vec<S>,
    /// Those of all rows, in order, and the part of those of its row that are there which are of it.
    slices: Vec<Slice<S>>,
    present: Vec<S>,
    /// `p_jk`.
    parts: Vec<Part<S>>,
    /// `o`, `rows × rows`, and room for its next pass.
    own: Vec<S>,
    next_own: Vec<S>,
    /// The share of first slices of strands, by row, and of those of which it is not known what strands they find.
    first: Vec<S>,
    unknown: Vec<S>,
    /// The share of slices that would follow another at once but for a thread that they wait for, by row.
    kept_back: Vec<S>,
    /// `1 - Σ_k p_jk`, by row.
    others: Vec<S>,
    /// The share of slices that follow no other and are not begun for the request that finds them, `rows × rows`.
    coming: Vec<S>,
    /// `out`, by row.
    out: Vec<S>,
    /// `g`, `rows × rows`.
    next: Vec<S>,
    moved: Vec<S>,
    /// `ρ`, by entry that leads here and source, and then by row.
    led: Vec<S>,
    shares: Vec<S>,
    sources: Vec<OfSource<S>>,
}

/// How many of the slices of a kind follow those of another.
#[derive(Clone, Copy, Debug)]
struct Part<S> {
    after: usize,
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
    /// `B`.
    blocked: S,
}

impl<S> Followed<S> {
    pub fn new(n_processors: usize) -> Self {
        Self {
            found_at: std::iter::repeat_with(Vec::new).take(n_processors).collect(),
            any: Vec::new(),
            waits: Vec::new(),
            slices: Vec::new(),
            present: Vec::new(),
            parts: Vec::new(),
            own: Vec::new(),
            next_own: Vec::new(),
            first: Vec::new(),
            unknown: Vec::new(),
            kept_back: Vec::new(),
            coming: Vec::new(),
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

impl<S: Scalar> Followed<S> {
    /// `F` of the slices `k` and `x`.
    fn found_at_any(&self, k: usize, x: usize) -> S {
        let (mine, other) = (self.slices[k].row, self.slices[x].row);
        self.any[mine * self.waits.len() + other] * self.present[x]
    }

    /// `Σ_c E_c`.
    fn all_away(&self) -> S {
        self.sources.iter().fold(S::from(0.0), |sum, it| sum + it.away)
    }
}

/// The largest difference of two vectors over the largest number of the second, of values and of derivatives in each direction.
fn furthest<S: Scalar>(a: &[S], b: &[S]) -> f64 {
    let relative = |change: f64, most: f64| if change > 0.0 { change / most } else { 0.0 };
    let (mut change, mut most) = (0.0_f64, 0.0_f64);
    let mut slopes: SmallVec<[(f64, f64); 8]> = SmallVec::new();
    for (a, b) in a.iter().zip(b) {
        change = change.max((a.value() - b.value()).abs());
        most = most.max(b.value().abs());
        slopes.resize(b.derivatives().len(), (0.0, 0.0));
        for ((change, most), (a, b)) in slopes.iter_mut().zip(a.derivatives().iter().zip(b.derivatives())) {
            *change = change.max((a - b).abs());
            *most = most.max(b.abs());
        }
    }
    slopes.iter().fold(relative(change, most), |furthest, &(change, most)| furthest.max(relative(change, most)))
}

/// What no source has of a row's requests.
fn from_outside<S: Scalar>(shares: &[S]) -> S {
    let of_sources = shares.iter().fold(S::from(0.0), |sum, &share| sum + share);
    if of_sources < 1.0 { -of_sources + 1.0 } else { S::from(0.0) }
}

/// How many of source `c` are here with the request of slice `k`, itself or as who sent it.
fn own_here<S: Scalar>(room: &Followed<S>, messages: &[S], (k, c): (usize, usize)) -> S {
    let n_sources = room.sources.len();
    let share = |slice: usize| room.shares[slice * n_sources + c];
    let senders = messages.iter().zip(&room.slices).enumerate();
    let senders = senders.fold(S::from(0.0), |sum, (x, (&found, slice))| sum + found * share(x) * slice.strands);
    share(k) + senders * from_outside(&room.shares[k * n_sources..(k + 1) * n_sources])
}

impl<S: Scalar> At<'_, S> {
    /// Takes what each row waits for others from what is found at any time to what is found by who comes back at once.
    pub(super) fn follow_at_once(&self, scratch: &mut Scratch<S>) {
        let Some(follows) = &self.layout.follows else {
            self.take_off_any(scratch, |_| S::from(1.0));
            return;
        };
        let mut room = std::mem::replace(&mut scratch.followed, Followed::new(0));
        self.find_slices(follows, &mut room);
        self.find_any(scratch, &mut room);
        self.find_parts(follows, &mut room);
        self.find_shares(follows, &mut room);
        self.find_sources(follows, &mut room);
        self.find_own(follows, &mut room);
        self.find_who_comes(&scratch.goes_on, &mut room);
        self.take_off_any(scratch, |r| follows.in_order.mean_of_row(r, |k| share_of_any(&room, k)));
        self.find_followed(follows, &mut room, &scratch.messages);
        let n = self.visits.len();
        let busy = self.chance_of_others();
        for r in 0..n {
            let terms = r * n..(r + 1) * n;
            let parts = scratch.alpha[terms.clone()].iter().zip(&scratch.beta[terms.clone()]).zip(self.visits);
            let any = parts.fold(S::from(0.0), |sum, ((&alpha, &beta), v)| sum + alpha * v.wait + beta);
            if any <= 0.0 {
                continue;
            }
            let wait = follows.in_order.mean_of_row(r, |k| waited(&room, &room.found_at[self.station], k));
            let ratio = num_traits::clamp(wait / any, S::from(RATIOS.0), S::from(RATIOS.1));
            let ratio = (ratio - 1.0) * busy + 1.0;
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
                wait += waiting + scratch.beta[at] * self.left_for_long(r, x, scratch);
                room.any.push(if it.first > 0.0 { waiting / it.first + scratch.load[at] } else { zero });
            }
            room.waits.push(wait);
        }
    }

    /// `p`, `1 - Σ p` and `out`.
    fn find_parts(&self, follows: &Follows, room: &mut Followed<S>) {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let Followed { parts, others, out, first, unknown, kept_back, slices, .. } = room;
        parts.clear();
        for (of_slices, is) in [(&mut *others, one), (&mut *out, one), (&mut *first, zero), (&mut *unknown, one), (&mut *kept_back, zero)] {
            of_slices.clear();
            of_slices.resize(slices.len(), is);
        }
        for (r, before) in follows.before.iter().enumerate() {
            let mut ways = before.iter();
            self.courses().for_each_of(before, r, |part, slice, gap, _| {
                let Some(way) = ways.next() else { return };
                let gap = way.called_over().map_or(gap, |call| gap + self.sweep.unknowns[call]);
                let it = &self.visits[self.layout.row_of[slice]];
                let stay = it.wait + it.first;
                follows.in_order.for_each_pair(way, (r, self.layout.row_of[slice]), |after, before, share| {
                    let of_all = part * share;
                    let part = if gap > 0.0 { of_all * stay / (stay + gap) } else { of_all };
                    others[after] -= part;
                    unknown[after] -= of_all;
                    if way.is_at_once() {
                        kept_back[after] += of_all - part;
                    }
                    if way.is_on() && !follows.beside[r].is_empty() {
                        first[after] += part;
                    }
                    parts.push(Part { after, before, part, of_all, gap, is_on: way.is_on() });
                    let (mine, theirs) = (&slices[after], &slices[before]);
                    if theirs.rate > 0.0 && theirs.strands > 0.0 {
                        out[before] -= mine.rate * part / theirs.rate * (mine.strands / theirs.strands);
                    }
                });
            });
        }
        for of_slices in [others, out, unknown] {
            of_slices.iter_mut().filter(|it| **it < 0.0).for_each(|it| *it = zero);
        }
    }

    /// `f`.
    fn find_followed(&self, follows: &Follows, room: &mut Followed<S>, messages: &[S]) {
        let n = room.slices.len();
        let mut found = std::mem::take(&mut room.found_at[self.station]);
        if found.len() != n * n || found.iter().any(|f| !f.value().is_finite()) {
            found = (0..n * n).map(|at| room.found_at_any(at / n, at % n)).collect();
        }
        let there = self.number_of_others(room);
        let mut further = Further::new(self.lead(room));
        for _ in 0..MOST_PASSES {
            self.find_present(follows, room, &found);
            room.moved.clear();
            room.moved.resize(n * n, S::from(0.0));
            for k in 0..n {
                self.move_on(follows, (k, &found[k * n..(k + 1) * n]), messages.get(k * n..(k + 1) * n).unwrap_or_default(), there, room);
            }
            gather(room);
            self.hold_to_threads((n, |k| follows.in_order.row_of[k]), &mut room.next, messages);
            let change = furthest(&found, &room.next);
            if change <= SETTLED {
                std::mem::swap(&mut found, &mut room.next);
                break;
            }
            further.go_on(&mut found, &room.next);
        }
        room.found_at[self.station] = found;
    }

    /// `g` of slice `k`, by which so much is `found`.
    fn move_on(&self, follows: &Follows, (k, found): (usize, &[S]), messages: &[S], there: (S, S), room: &mut Followed<S>) {
        let n = room.slices.len();
        let zero = S::from(0.0);
        let own = self.waits_for_own(follows, room, k);
        let all_away = room.all_away();
        let n_sources = room.sources.len();
        let mut moves = std::mem::take(&mut room.moved);
        let moved = &mut moves[k * n..(k + 1) * n];
        let coming = &room.coming[k * n..(k + 1) * n];
        for it in &room.parts {
            let theirs = room.slices[it.before].rate;
            if theirs > 0.0 {
                moved[it.after] += found[it.before] * (room.slices[it.after].rate * it.part / theirs);
            }
        }
        let (mut wait, mut number) = (zero, zero);
        for (&found, slice) in found.iter().zip(&room.slices) {
            wait += found * slice.service;
            number += found * slice.strands;
        }
        let service = room.slices[k].service;
        let time = if self.servers > 1.0 {
            self.others_stay(room.slices[k].row) + own
        } else {
            messages.iter().zip(&room.slices).fold(wait + service + own, |time, (&found, slice)| time + found * slice.service)
        };
        let stay = Stay { time, wait, service, found: number, there, all_away };
        for (c, it) in room.sources.iter().enumerate() {
            let share = |slice: usize| room.shares[slice * n_sources + c];
            let (mut here, mut leave, mut of_wait) = (zero, zero, zero);
            for (x, (&found, slice)) in found.iter().zip(&room.slices).enumerate() {
                let of_source = found * share(x) * slice.strands;
                here += of_source;
                leave += of_source * room.out[x];
                of_wait += found * share(x) * slice.service;
            }
            let blocked = it.blocked * (1.0 - it.number.recip()).max(0.0);
            let away = -(here + own_here(room, messages, (k, c)) + blocked) + it.number;
            let come = stay.come(it, &Found { here, wait: of_wait, away, leave }, follows.are_free);
            if come <= 0.0 {
                continue;
            }
            for (x, slice) in room.slices.iter().enumerate() {
                moved[x] += come * (slice.rate * share(x) * coming[x] / it.begin);
            }
        }
        // From outside they come whoever is here.
        for (x, slice) in room.slices.iter().enumerate() {
            let outside = from_outside(&room.shares[x * n_sources..(x + 1) * n_sources]);
            moved[x] += time * slice.rate * outside * coming[x];
        }
        room.moved = moves;
    }

    /// The share of slices that follow no other and are not begun for the request of a slice themselves.
    fn find_who_comes(&self, goes_on: &[bool], room: &mut Followed<S>) {
        let Followed { slices, others, kept_back, coming, .. } = room;
        coming.clear();
        for mine in &*slices {
            for ((slice, &others), &kept_back) in slices.iter().zip(&*others).zip(&*kept_back) {
                let from_elsewhere = others - kept_back;
                let is_own = !self.layout.messages.are_none() && from_elsewhere > 0.0;
                let own =
                    if is_own { from_elsewhere * self.own_part_of_coming(mine.row, slice.row, goes_on[slice.row]) } else { S::from(0.0) };
                coming.push(if own < others { others - own } else { S::from(0.0) });
            }
        }
    }

    /// Of what so many slices of such rows find, as many of a pool as it has threads, beside the own one and those that are found `beside`.
    pub(super) fn hold_to_threads(&self, (n, row_of): (usize, impl Fn(usize) -> usize), found: &mut [S], beside: &[S]) {
        let zero = S::from(0.0);
        for (pool, &task) in self.layout.pools.iter().enumerate() {
            let threads = self.sweep.populations.strands_at(self.sweep.net, task, self.station);
            if threads.is_infinite() {
                continue;
            }
            let of_pool = |x: &usize| self.layout.pool_of[row_of(*x)] == Some(pool);
            for (r, found) in found.chunks_exact_mut(n).enumerate() {
                let own = if self.layout.rows[row_of(r)].pool == Some(pool) { 1.0 } else { 0.0 };
                let others = (0..n).filter(of_pool).fold(zero, |sum, x| sum + beside.get(r * n + x).copied().unwrap_or(zero));
                let most = -others + (threads - own);
                let all = (0..n).filter(of_pool).fold(zero, |sum, x| sum + found[x]);
                if all > 0.0 && all > most {
                    let part = if most > 0.0 { most / all } else { zero };
                    (0..n).filter(of_pool).for_each(|x| found[x] *= part);
                }
            }
        }
    }
}

/// `V` of slice `k`, of what is `found`.
fn waited<S: Scalar>(room: &Followed<S>, found: &[S], k: usize) -> S {
    let n = room.slices.len();
    let of_any = share_of_any(room, k);
    let follows = found[k * n..(k + 1) * n].iter().zip(&room.slices).enumerate();
    let at_any = of_any * room.waits[room.slices[k].row];
    follows.fold(at_any, |sum, (x, (&found, slice))| sum + (found - room.found_at_any(k, x) * of_any) * slice.service)
}

/// The share of `F` in what slice `k` finds.
fn share_of_any<S: Scalar>(room: &Followed<S>, k: usize) -> S {
    let n = room.sources.len();
    let shares = &room.shares[k * n..(k + 1) * n];
    let of_sources = shares.iter().zip(&room.sources).map(|(&share, it)| if it.end > 0.0 { share * (-it.stays + 1.0) } else { share });
    of_sources.fold(from_outside(shares), |sum, share| sum + share) * room.others[k]
}

/// The share of the slices `k` that find what was there as they left, of source `c`.
fn keep<S: Scalar>(room: &Followed<S>, (k, c): (usize, usize)) -> S {
    room.shares[k * room.sources.len() + c] * room.others[k] * room.sources[c].stays
}

/// The share of those of source `c` who leave that do so from slice `k`.
fn leave<S: Scalar>(room: &Followed<S>, (k, c): (usize, usize)) -> S {
    let (it, slice) = (&room.sources[c], &room.slices[k]);
    slice.rate * room.shares[k * room.sources.len() + c] * slice.strands * room.out[k] / it.end
}

/// `f` from `g`.
fn gather<S: Scalar>(room: &mut Followed<S>) {
    let n = room.slices.len();
    let mut next = std::mem::take(&mut room.next);
    next.clear();
    next.resize(n * n, S::from(0.0));
    for it in &room.parts {
        for x in 0..n {
            next[it.after * n + x] += room.moved[it.before * n + x] * it.part;
        }
    }
    for r in 0..n {
        let of_any = share_of_any(room, r);
        for x in 0..n {
            next[r * n + x] += room.found_at_any(r, x) * of_any;
        }
        if room.others[r] <= 0.0 {
            continue;
        }
        for c in (0..room.sources.len()).filter(|&c| room.sources[c].end > 0.0) {
            let stays = keep(room, (r, c));
            for k in 0..n {
                let part = stays * leave(room, (k, c));
                for x in 0..n {
                    next[r * n + x] += room.moved[k * n + x] * part;
                }
            }
        }
    }
    room.next = next;
}
