//! From one server to several: what of those that an arrival finds it has to wait for.
//!
//! ```text
//! W_a = [Σ_b R_ab E_ab q_b h_b + Π Σ_b (..) / û] S(m)/(m s)
//! ```
//!
//! Those waiting leave `m` times faster, at the pace of servers that are all busy, and what is in service matters only when all are ([`super::busy`]); who may
//! keep them busy is told by pools where these are not alike ([`unlike`]). At cores that one pool has for itself `Π` follows from how many of
//! its threads are busy ([`super::pool`]).
//!
//! | symbol | is |
//! |---|---|
//! | `û`, `Π` | load in service that the arrival sees, chance that all servers are busy |
//! | `m`, `S(m)/s` | servers, service while all are busy over the mean one |

use smallvec::{SmallVec, smallvec};

use super::{
    At, Scratch,
    busy::{MANY, MANY_A_SERVER, Sources, all_busy},
    unlike::{self, Pool},
};
use crate::model::Scalar;

/// Services of a source at the same time, at least, where they go on after the reply.
const PHASES_OF_A_SOURCE: f64 = 2.0;
/// Fewer sources than this are none.
const NEARLY_NONE: f64 = 1e-9;

impl<S: Scalar> At<'_, S> {
    /// Takes what a row finds, of so many sources with the arrival's own and with so much in service, from one server to all of them; returns the chance to wait.
    pub(super) fn scale_to_servers(&self, r: usize, (busy, sources): (S, f64), scratch: &mut Scratch<S>) -> S {
        let one = S::from(1.0);
        if self.servers <= 1.0 {
            return if busy > 1.0 { one } else { busy };
        }
        let mut coming = std::mem::take(&mut scratch.coming);
        self.find_coming(r, sources, scratch, &mut coming);
        let found = &mut scratch.last_found[self.places.probability + r];
        let mut otherwise = || self.chance_of_all_busy((busy, sources), &coming, found);
        let all_busy = match self.layout.rows[r].pool {
            Some(pool) => self.left[pool].all_busy(otherwise),
            None => otherwise(),
        };
        scratch.coming = coming;
        // Requests leave a full pool at its slowest.
        let each = self.services.last().copied().filter(|slowest| *slowest > 1.0).unwrap_or(one) / self.servers;
        let share = if busy > 0.0 { all_busy / busy * each } else { S::from(0.0) };
        let n = self.visits.len();
        let terms = r * n..(r + 1) * n;
        scratch.alpha[terms.clone()].iter_mut().for_each(|x| *x *= each);
        scratch.beta[terms.clone()].iter_mut().for_each(|x| *x *= share);
        if self.layout.siblings {
            scratch.alpha_own[terms.clone()].iter_mut().for_each(|x| *x *= each);
            scratch.beta_own[terms].iter_mut().for_each(|x| *x *= share);
        }
        scratch.own[r] *= share;
        all_busy
    }

    /// `Π`: chance that an arrival finds all servers busy, at the load it sees and with so many sources, itself among them, of which so many are `coming`
    /// ([`unlike`]); `found` is where it was found last.
    pub(super) fn chance_of_all_busy(&self, (busy, sources): (S, f64), coming: &[S], found: &mut Option<f64>) -> S {
        let number = match coming.len() {
            0 if self.late => self.most_late_sources(sources),
            0 => sources - 1.0,
            n => n as f64,
        };
        let sources = Sources { number, coming };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of servers, checked when compiled")]
        all_busy(self.servers as u32, sources, busy, self.services, found)
    }

    /// How many services there can be beside the arrival's at most, of so many sources, where some go on after the reply: also those that its own thread
    /// has left.
    fn most_late_sources(&self, sources: f64) -> f64 {
        if self.layout.late_goes_first { sources * PHASES_OF_A_SOURCE - 1.0 } else { sources * PHASES_OF_A_SOURCE.max(self.servers) }
    }

    /// How many requests wait for each unit of what a row is to wait for them at one server, by arc: of shared processors, times the row's own service.
    /// None where nobody asks.
    pub(super) fn find_queues(&self, queues: &mut Vec<S>) {
        queues.clear();
        if !self.layout.unlike {
            return;
        }
        let sharing = self.is_shared();
        queues.extend(self.visits.iter().map(|it| match it.first + it.late {
            _ if sharing => it.wait,
            each if each > 0.0 => it.wait / each,
            _ => S::from(0.0),
        }));
    }

    /// `c_n` for a row, of so many sources with the arrival's own; none where they are alike.
    fn find_coming(&self, r: usize, sources: f64, scratch: &mut Scratch<S>, found: &mut Vec<S>) {
        found.clear();
        if self.late {
            // As many more than the other sources as the share of second phases in what is found says.
            let terms = r * self.visits.len()..(r + 1) * self.visits.len();
            let found_load = scratch.load[terms].iter().fold(S::from(0.0), |sum, &load| sum + load);
            let share = if found_load > scratch.late[r] { scratch.late[r] / found_load } else { S::from(1.0) };
            let number = share * (self.most_late_sources(sources) - (sources - 1.0)) + (sources - 1.0);
            if number <= MANY_A_SERVER * self.servers + MANY {
                found.extend((0_u32..).map(|n| number - f64::from(n)).take_while(|coming| *coming > NEARLY_NONE));
            }
            return;
        }
        // More urgent requests alone have sources of their own.
        if !self.layout.unlike || sources < self.sources {
            return;
        }
        let n = self.visits.len();
        let row = &self.layout.rows[r];
        // What each pool has in service and waiting.
        let mut found_of: SmallVec<[(S, S); 8]> = smallvec![(S::from(0.0), S::from(0.0)); self.layout.pools.len()];
        let terms = r * n..(r + 1) * n;
        let parts = scratch.load[terms.clone()].iter().zip(&scratch.alpha[terms]).zip(&scratch.queues).zip(&self.layout.pool_of);
        for (((&load, &alpha), &queue), pool) in parts {
            let Some((served, waiting)) = pool.and_then(|pool| found_of.get_mut(pool)) else { continue };
            *served += load;
            *waiting += alpha * queue;
        }
        let own = self.visits[row.arc].first;
        let mut pools: SmallVec<[Pool<S>; 8]> = SmallVec::new();
        for (pool, (&task, (served, waiting))) in self.layout.pools.iter().zip(found_of).enumerate() {
            let threads =
                self.sweep.populations.strands_at(self.sweep.net, task, self.station) - if row.pool == Some(pool) { 1.0 } else { 0.0 };
            if threads < 1.0 {
                continue;
            }
            // Of shared processors, times the own service.
            let waiting = match self.is_shared() {
                true if own > 0.0 => waiting / own,
                true => S::from(0.0),
                false => waiting,
            };
            pools.push(Pool::new(threads, served, waiting));
        }
        unlike::coming(&pools, sources - 1.0, found, &mut scratch.terms);
    }
}
