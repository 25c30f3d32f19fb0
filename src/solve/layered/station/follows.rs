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
//! those that are there, as of exponential services of one mean, `P(n) ∝ M!/(M - n)! (ρ/E)^n` of `M` others. Then all others are somewhere, here or
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
//! `V°` is with rests as those find them who were away for long. Looked for at processors in order of arrival: where requests fork, and where requests are sent to them, to several servers from there; and at one server of more than two
//! customers who have a thread each wherever they call. Not where something goes on after a reply, where a join leaves branches behind or what forks is
//! repeated, where threads of one source work for those of another, and where too many rows meet.

mod coming;
mod further;
mod lead;
mod own;
mod sources;
mod ways;

use smallvec::SmallVec;

pub(super) use self::ways::Follows;
use self::{
    coming::{Found, Stay},
    further::Further,
};
use super::{At, Scratch, previous::Previous};
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
    /// `F` and `V°`.
    any: Vec<S>,
    waits: Vec<S>,
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
    /// `B`.
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

/// How many of source `c`, of so many, are here with the request of a slice of row `k`, itself or as who sent it.
fn own_here<S: Scalar>(follows: &Follows, (shares, messages): (&[S], &[S]), (k, c): (usize, usize), n_sources: usize) -> S {
    let share = |row: usize| shares[row * n_sources + c];
    let senders = messages.iter().enumerate().fold(S::from(0.0), |sum, (x, &found)| sum + found * share(x) * follows.strands[x]);
    share(k) + senders * from_outside(&shares[k * n_sources..(k + 1) * n_sources])
}

impl<S: Scalar> At<'_, S> {
    /// Takes what each row waits for others from what is found at any time to what is found by who comes back at once.
    pub(super) fn follow_at_once(&self, scratch: &mut Scratch<S>) {
        let Some(follows) = &self.layout.follows else {
            self.take_off_any(scratch, |_| S::from(1.0));
            return;
        };
        let mut room = std::mem::replace(&mut scratch.followed, Followed::new(0));
        self.find_any(scratch, &mut room);
        self.find_parts(follows, &mut room);
        self.find_shares(follows, &mut room);
        self.find_sources(follows, &mut room);
        self.find_own(follows, &mut room);
        self.find_who_comes(&scratch.goes_on, &mut room);
        self.take_off_any(scratch, |r| self.share_of_any(&room, r));
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
            let ratio = num_traits::clamp(self.waited(&room, r) / any, S::from(RATIOS.0), S::from(RATIOS.1));
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
        let n = self.visits.len();
        let (zero, one) = (S::from(0.0), S::from(1.0));
        room.parts.clear();
        room.others.clear();
        room.out.clear();
        room.out.resize(n, one);
        room.first.clear();
        room.unknown.clear();
        room.kept_back.clear();
        for r in 0..n {
            let (mut others, mut first, mut unknown, mut kept_back) = (one, zero, one, zero);
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
                if way.is_some_and(Previous::is_at_once) {
                    kept_back += of_all - part;
                }
                if is_on && !follows.beside[r].is_empty() {
                    first += part;
                }
                room.parts.push(Part { row: r, before, part, of_all, gap, is_on });
                let (mine, theirs) = (self.visits[r].rate, it.rate);
                if theirs > 0.0 && follows.strands[before] > 0.0 {
                    room.out[before] -= mine * part / theirs * (follows.strands[r] / follows.strands[before]);
                }
            });
            room.others.push(if others > 0.0 { others } else { zero });
            room.first.push(first);
            room.kept_back.push(kept_back);
            room.unknown.push(if unknown > 0.0 { unknown } else { zero });
        }
        room.out.iter_mut().filter(|out| **out < 0.0).for_each(|out| *out = zero);
    }

    /// `f`.
    fn find_followed(&self, follows: &Follows, room: &mut Followed<S>, messages: &[S]) {
        let n = self.visits.len();
        let mut found = std::mem::take(&mut room.found_at[self.station]);
        if found.len() != n * n || found.iter().any(|f| !f.value().is_finite()) {
            found.clone_from(&room.any);
        }
        let there = self.number_of_others(room);
        let mut further = Further::new(self.lead(follows, room));
        for _ in 0..MOST_PASSES {
            room.moved.clear();
            room.moved.resize(n * n, S::from(0.0));
            for k in 0..n {
                self.move_on(follows, (k, &found[k * n..(k + 1) * n]), messages.get(k * n..(k + 1) * n).unwrap_or_default(), there, room);
            }
            self.gather(follows, room);
            self.hold_to_threads(&mut room.next, messages);
            let change = furthest(&found, &room.next);
            if change <= SETTLED {
                std::mem::swap(&mut found, &mut room.next);
                break;
            }
            further.go_on(&mut found, &room.next);
        }
        room.found_at[self.station] = found;
    }

    /// The share of a row's slices that find what was there as they left, of source `c`.
    fn keep(&self, room: &Followed<S>, (r, c): (usize, usize)) -> S {
        room.shares[r * room.sources.len() + c] * room.others[r] * room.sources[c].stays
    }

    /// The share of those of source `c` who leave that do so from row `k`.
    fn leave(&self, follows: &Follows, room: &Followed<S>, (k, c): (usize, usize)) -> S {
        let it = &room.sources[c];
        self.visits[k].rate * room.shares[k * room.sources.len() + c] * follows.strands[k] * room.out[k] / it.end
    }

    /// `g` of row `k`, of whose slices so much is `found`.
    fn move_on(&self, follows: &Follows, (k, found): (usize, &[S]), messages: &[S], there: (S, S), room: &mut Followed<S>) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        let own = self.waits_for_own(follows, room, k);
        let all_away = room.all_away();
        let moved = &mut room.moved[k * n..(k + 1) * n];
        let coming = &room.coming[k * n..(k + 1) * n];
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
        let time = if self.servers > 1.0 {
            self.others_stay(k) + own
        } else {
            messages.iter().zip(self.visits).fold(wait + self.visits[k].first + own, |time, (&found, v)| time + found * v.first)
        };
        let stay = Stay { time, wait, service: self.visits[k].first, found: number, there, all_away };
        let n_sources = room.sources.len();
        for (c, it) in room.sources.iter().enumerate() {
            let share = |row: usize| room.shares[row * n_sources + c];
            let (mut here, mut leave, mut of_wait) = (zero, zero, zero);
            for (x, (&found, v)) in found.iter().zip(self.visits).enumerate() {
                let of_source = found * share(x) * follows.strands[x];
                here += of_source;
                leave += of_source * room.out[x];
                of_wait += found * share(x) * v.first;
            }
            let blocked = it.blocked * (1.0 - it.number.recip()).max(0.0);
            let away = -(here + own_here(follows, (&room.shares, messages), (k, c), n_sources) + blocked) + it.number;
            let come = stay.come(it, &Found { here, wait: of_wait, away, leave }, follows.are_free);
            if come <= 0.0 {
                continue;
            }
            for (x, v) in self.visits.iter().enumerate() {
                moved[x] += come * (v.rate * share(x) * coming[x] / it.begin);
            }
        }
        // From outside they come whoever is here.
        for (x, v) in self.visits.iter().enumerate() {
            let outside = from_outside(&room.shares[x * n_sources..(x + 1) * n_sources]);
            moved[x] += time * v.rate * outside * coming[x];
        }
    }

    /// The share of slices that follow no other and are not begun for the request of a row themselves.
    fn find_who_comes(&self, goes_on: &[bool], room: &mut Followed<S>) {
        let n = self.visits.len();
        room.coming.clear();
        for k in 0..n {
            for x in 0..n {
                let others = room.others[x];
                let from_elsewhere = others - room.kept_back[x];
                let is_own = !self.layout.messages.are_none() && from_elsewhere > 0.0;
                let own = if is_own { from_elsewhere * self.own_part_of_coming(k, x, goes_on[x]) } else { S::from(0.0) };
                room.coming.push(if own < others { others - own } else { S::from(0.0) });
            }
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
            for c in (0..room.sources.len()).filter(|&c| room.sources[c].end > 0.0) {
                let stays = self.keep(room, (r, c));
                for k in 0..n {
                    let part = stays * self.leave(follows, room, (k, c));
                    for x in 0..n {
                        room.next[r * n + x] += room.moved[k * n + x] * part;
                    }
                }
            }
        }
    }

    /// Of what rows find, as many of a pool as it has threads, beside the own one and those that are found `beside`.
    pub(super) fn hold_to_threads(&self, found: &mut [S], beside: &[S]) {
        let n = self.visits.len();
        let zero = S::from(0.0);
        for (pool, &task) in self.layout.pools.iter().enumerate() {
            let threads = self.sweep.populations.strands_at(self.sweep.net, task, self.station);
            if threads.is_infinite() {
                continue;
            }
            let of_pool = |x: &usize| self.layout.pool_of[*x] == Some(pool);
            for (r, found) in found.chunks_exact_mut(n).enumerate() {
                let own = if self.layout.rows[r].pool == Some(pool) { 1.0 } else { 0.0 };
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

    /// `V` of a row.
    fn waited(&self, room: &Followed<S>, r: usize) -> S {
        let n = self.visits.len();
        let of_any = self.share_of_any(room, r);
        let found = &room.found_at[self.station][r * n..(r + 1) * n];
        let follows = found.iter().zip(&room.any[r * n..(r + 1) * n]).zip(self.visits);
        follows.fold(of_any * room.waits[r], |sum, ((&found, &any), v)| sum + (found - any * of_any) * v.first)
    }
}
