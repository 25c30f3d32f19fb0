//! Strands of a fork: when so many of them have ended that begin together, some of which wait for each other.
//!
//! Two strands that wait for each other do so while both run, and so before the first of them ends. With `U_k` the time at which `k` of `n` have ended if none waited for
//! another, `n - k` are still at work after it, of which all but `m` wait at `m` servers; each wait is one of those that are known, `Σ c`:
//!
//! ```text
//! T_k = Σ_{l<k} (U_{l+1} - U_l) (1 + γ (n - l - m)⁺) + r [k < n]
//! γ = Σ c / Σ_l (n - l) (n - l - m)⁺ (U_{l+1} - U_l)    at most 1/m
//! r = what that leaves of Σ c, over n - 1
//! ```
//!
//! so that the mean over all strands is theirs, `Σ T_k = Σ C_p`. Of those that do nothing but take turns at one server the last has ended when all have been served, `T_n = Σ U_k`
//! (`γ = 1`), which is as late as it can be; at `m` servers of equal ones `T_n = (n - m)/m + H_m` services. All that begin at the same queue of others find the same there, and so do
//! those that meet slice by slice, as far as they meet; of unlike waits they have about the smallest in common:
//!
//! ```text
//! U_n = w + largest of (u_p - w)                    w = (Σ_p w_p^-4 / n)^(-1/4)
//! w_p = first wait + Σ other waits × b h (2 - h)    h = min(1, wait for others of the fork / service there),   b = 1 - 1/n of random numbers of slices, else 1
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `C_p`, `c_p`, `u_p` | time of a strand, how much of it is waited for others of its fork, and the rest, with the same variation |
//! | `m` | fewest servers of those where they wait for each other |
//! | `w_p` | waits of a strand for others than those of its fork: the first one at the processor where it begins, and where it meets them, unless joins leave some behind there; 0 where it does not queue |
//! | `H_m` | `1 + 1/2 + … + 1/m` |
//!
//! The variance of `T_k` is that of `U_k`, at the same variation. Laws of two moments and order statistics of independent ones are [`super::completion`]'s; the rest is ours.

use super::completion::{Moments, at_most, kth_completion, mean_completions};
use crate::model::Scalar;

/// How much slower a strand is taken to be, to see what depends on it.
pub(super) const LONGER: f64 = 1e-3;

/// The time of a strand's node, and how much of it is waited for other strands of the same graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand<S> {
    pub time: Moments<S>,
    pub contended: S,
    /// What it waits for those that a join has left behind, and for those that begin where it is left behind itself; not a part of the other.
    pub left: S,
    /// The variance of the time without that.
    pub left_variance: S,
    /// Share of its slices after which nothing is left of it.
    pub last_slice: S,
    /// Fewest servers of those that it so waits for.
    pub servers: f64,
    /// What it waits for what is no part of the graph, where all that begin at a time find the same, and where they meet.
    pub shared: Moments<S>,
    /// The same in slices of a random number, of which it may take some when the others have ended.
    pub shared_by_chance: Moments<S>,
}

impl<S: Scalar> Strand<S> {
    /// Nothing to do.
    pub fn none() -> Self {
        Self {
            time: Moments::zero(),
            contended: S::from(0.0),
            left: S::from(0.0),
            left_variance: S::from(0.0),
            last_slice: S::from(0.0),
            servers: f64::INFINITY,
            shared: Moments::zero(),
            shared_by_chance: Moments::zero(),
        }
    }

    /// Waits so long for other strands at so many servers.
    pub fn contend(&mut self, wait: S, servers: f64) {
        if wait > 0.0 {
            self.contended += wait;
            self.servers = self.servers.min(servers);
        }
    }

    /// The same, a little slower in all that it does.
    pub fn longer(self) -> Self {
        let by = S::from(1.0 + LONGER);
        Self {
            time: self.time.scaled(by),
            contended: self.contended * by,
            left: self.left * by,
            left_variance: self.left_variance * (by * by),
            shared: self.shared.scaled(by),
            shared_by_chance: self.shared_by_chance.scaled(by),
            ..self
        }
    }

    /// Its time without a share of what it waits where joins leave strands behind.
    pub fn without_left(&self, share: S) -> Moments<S> {
        let mean = self.time.mean - self.left * share;
        if self.left <= 0.0 || mean <= 0.0 {
            return self.time;
        }
        Moments { mean, variance: self.time.variance + (self.left_variance - self.time.variance) * share, ..self.time }
    }

    /// What it is without waits for other strands.
    fn alone(&self) -> Self {
        let mean = self.time.mean - self.contended;
        let share = if self.time.mean > 0.0 && mean > 0.0 { mean / self.time.mean } else { S::from(0.0) };
        Self { time: self.time.scaled(share), contended: S::from(0.0), ..*self }
    }

    /// So much of what it waits as others do.
    fn part_shared(&self, wait: S) -> Moments<S> {
        Moments::new(wait, self.shared.variance * wait / self.shared.mean)
    }

    /// An exponential time that waits for no other strand.
    pub fn exponential(mean: S) -> Self {
        Self { time: Moments::new(mean, mean * mean), ..Self::none() }
    }
}

/// When the first to the last of strands have ended that begin together.
struct Completions<S> {
    /// Of `n - k` that are still at work, how many wait for one of the servers, by `k`.
    waiting: Vec<f64>,
    /// `U`, by `k`.
    alone: Vec<S>,
    /// `γ`, and what is left of all waits for each that is not the last.
    slower: S,
    rest: S,
}

impl<S: Scalar> Completions<S> {
    fn new(strands: &[Strand<S>], alone: &[Moments<S>]) -> Self {
        let zero = S::from(0.0);
        let n = strands.len();
        let servers = strands.iter().fold(n as f64 - 1.0, |fewest, s| fewest.min(s.servers));
        let waiting = (0..n).map(|k| ((n - k) as f64 - servers).max(0.0)).collect();
        let contended = strands.iter().fold(zero, |sum, s| sum + s.contended);
        let mut all = Self { waiting, alone: mean_completions(alone), slower: zero, rest: zero };
        let waits = (0..n).fold(zero, |sum, k| sum + all.step(k) * (all.waiting[k] * (n - k) as f64));
        if waits > 0.0 {
            all.slower = at_most(contended / waits, servers.recip());
            all.rest = (contended - all.slower * waits) / (n as f64 - 1.0);
        }
        all
    }

    /// From the end of `k` strands to that of one more, if they did not wait for each other.
    fn step(&self, k: usize) -> S {
        self.alone[k] - if k > 0 { self.alone[k - 1] } else { S::from(0.0) }
    }

    /// By how much later `k` have ended than if they did not wait for each other.
    fn later(&self, k: usize) -> S {
        let waits = (0..k).fold(S::from(0.0), |sum, l| sum + self.step(l) * self.waiting[l]);
        waits * self.slower + if k < self.alone.len() { self.rest } else { S::from(0.0) }
    }
}

/// When `needed` strands have ended that begin together.
pub(super) fn completion<S: Scalar>(needed: usize, strands: &[Strand<S>]) -> Moments<S> {
    // Of memoryless numbers of slices one of so many is taken when all others have ended.
    let beside = 1.0 - (strands.len() as f64).recip();
    let told = |s: &Strand<S>| Strand { shared: s.shared + s.shared_by_chance.times(S::from(beside)), ..*s };
    let strands = &*strands.iter().map(told).collect::<Vec<_>>();
    let kth = |strands: &[Strand<S>]| {
        if needed == strands.len() {
            completion_of_all(strands)
        } else {
            kth_completion(needed, &strands.iter().map(|s| s.time).collect::<Vec<_>>())
        }
    };
    if strands.len() == 1 || strands.iter().all(|s| s.contended <= 0.0) {
        return kth(strands);
    }
    let alone: Vec<Strand<S>> = strands.iter().map(Strand::alone).collect();
    // In the queue that all have joined none waits for another.
    let shares = share_a_queue(&alone);
    let common = common_wait(alone.iter().filter(|s| shares(s)).map(|s| s.shared.mean));
    let apart = |s: &Strand<S>| if shares(s) { s.time.without(s.part_shared(common)) } else { s.time };
    let later = Completions::new(strands, &alone.iter().map(apart).collect::<Vec<_>>()).later(needed);
    let done = kth(&alone);
    if done.mean > 0.0 { done.scaled(later / done.mean + 1.0) } else { done }
}

/// Which strands begin at a queue where others of them do.
fn share_a_queue<S: Scalar>(strands: &[Strand<S>]) -> impl Fn(&Strand<S>) -> bool + use<S> {
    let n_queueing = strands.iter().filter(|s| s.shared.mean > 0.0).count();
    move |s| n_queueing > 1 && s.shared.mean > 0.0
}

/// `w`: what all of these waits, none of which is 0, have in common.
fn common_wait<S: Scalar>(waits: impl Iterator<Item = S> + Clone) -> S {
    let Some(least) = waits.clone().reduce(|least, wait| if wait < least { wait } else { least }) else { return S::from(0.0) };
    let (sum, n) = waits.fold((S::from(0.0), 0.0), |(sum, n), wait| (sum + (least / wait).powi(4), n + 1.0));
    least / (sum / n).sqrt().sqrt()
}

/// When all strands have ended that begin together, and do not wait for each other but where they begin at a queue.
fn completion_of_all<S: Scalar>(strands: &[Strand<S>]) -> Moments<S> {
    let shares = share_a_queue(strands);
    let mut together = Moments::zero();
    let (mut queueing, mut others) = (Vec::new(), Vec::new());
    let common = common_wait(strands.iter().filter(|s| shares(s)).map(|s| s.shared.mean));
    for strand in strands {
        if shares(strand) {
            let part = strand.part_shared(common);
            together = together + part;
            queueing.push(strand.time.without(part));
        } else {
            others.push(strand.time);
        }
    }
    if !queueing.is_empty() {
        let each = 1.0 / queueing.len() as f64;
        together = Moments::new(together.mean * each, together.variance * each);
        others.push(kth_completion(queueing.len(), &queueing) + together);
    }
    kth_completion(others.len(), &others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strand(mean: f64, contended: f64) -> Strand<f64> {
        let mut strand = Strand::exponential(mean);
        strand.contend(contended, 1.0);
        strand
    }

    /// One of the two waits for the other, whichever it is: both are done after the work of both.
    #[test]
    fn branches_that_need_one_server_take_turns() {
        for (one, other) in [(0.5, 0.5), (0.9, 0.1)] {
            // Either is first as often.
            let strands = [strand(one + other / 2.0, other / 2.0), strand(other + one / 2.0, one / 2.0)];
            let [first, together] = [1, 2].map(|n| completion(n, &strands));
            assert!((together.mean - (one + other)).abs() < 0.015, "{together:?}");
            assert!((first.mean - 0.5).abs() < 0.015, "{first:?}");
        }
    }

    /// `(w - m)/m + H_m` of `w` branches of mean 1 at `m` servers.
    #[test]
    fn branches_that_need_several_servers_take_rounds() {
        for (w, m, expected) in [(4, 2.0, 2.5), (6, 2.0, 3.5), (12, 3.0, 3.0 + 11.0 / 6.0), (24, 3.0, 7.0 + 11.0 / 6.0)] {
            let mut one = Strand::exponential(1.0 + (f64::from(w) - m) / 2.0 / m);
            one.contend(one.time.mean - 1.0, m);
            let all = completion(w as usize, &vec![one; w as usize]);
            assert!((all.mean / expected - 1.0).abs() < 0.03, "{w} {m}: {all:?} {expected}");
        }
    }

    #[test]
    fn branches_that_never_meet_are_independent() {
        let strands = [strand(1.0, 0.0), strand(3.0, 0.0)];
        let all = completion(2, &strands);
        assert!((all.mean - (4.0 - 0.75)).abs() < 1e-5, "{all:?}");
    }

    /// What all find before them delays them all, and once.
    #[test]
    fn a_queue_that_all_branches_join_is_waited_for_once() {
        let queue = Moments::new(4.0, 0.0);
        let behind = |mean: f64| Strand { time: queue + strand(mean, 0.0).time, shared: queue, ..Strand::none() };
        let two = completion(2, &[behind(1.0), behind(3.0)]);
        assert!((two.mean - (4.0 + 4.0 - 0.75)).abs() < 1e-5, "{two:?}");
        let with_another = completion(3, &[behind(1.0), strand(2.0, 0.0), behind(3.0)]);
        assert!(with_another.mean > two.mean && with_another.mean < two.mean + 0.3, "{with_another:?}");
    }

    /// Of unlike waits about the smallest is in common, of equal ones all, and what is left of each stays its own.
    #[test]
    fn unlike_waits_have_the_smallest_in_common() {
        let of = |waits: [f64; 2]| common_wait(waits.into_iter());
        assert!((of([2.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!(of([1.0, 4.0]) > 1.0 && of([1.0, 4.0]) < 1.2);
        let behind = |wait: f64| Strand { time: Moments::new(wait + 1.0, 1.0), shared: Moments::new(wait, 0.0), ..Strand::none() };
        let both = completion(2, &[behind(1.0), behind(4.0)]);
        assert!(both.mean > 5.0 && both.mean < 5.0 + 1.5, "{both:?}");
    }

    /// In that queue they do not wait for each other.
    #[test]
    fn branches_take_turns_once_the_queue_before_them_is_done() {
        let queue = Moments::new(4.0, 0.0);
        let behind = Strand { time: queue + strand(0.75, 0.25).time, shared: queue, ..strand(0.75, 0.25) };
        let [first, both] = [1, 2].map(|n| completion(n, &[behind, behind]));
        assert!((both.mean - 5.0).abs() < 0.03, "{both:?}");
        assert!((first.mean - 4.5).abs() < 0.15, "{first:?}");
    }
}
