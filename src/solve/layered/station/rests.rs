//! What is left of the services that an arrival finds in progress.
//!
//! The formulas are those of [`super::super::residual`]: after a gap, where the arriving thread, or its customer ([`super::since`]), was
//! away for a while; in full, for arrivals that no number of threads bounds and for those that they find at queues in order of arrival.
//!
//! Threads that hold each other up ([`super::crowd`]) leave a full pool at the pace of the stations where they do. However little their own
//! services vary, the time until one of them leaves varies as the services there: a rest shorter than the service is `s + h (rest - s)`,
//! where `h` is the chance that none of these stations is busy with them while all threads are. A longer one stays: what makes it long is
//! not there.

use super::{
    super::{
        linearizer::is_none,
        net::Discipline,
        residual::{Other, rest_after_gap},
    },
    At, Scratch,
    visit::Visit,
};
use crate::model::Scalar;

impl<S: Scalar> At<'_, S> {
    /// From those found in service to the time that is left of their services, second phases too.
    pub(super) fn add_rests(&self, r: usize, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let row = &self.layout.rows[r];
        let me = &self.visits[row.arc];
        let shares = &*self.absent_shares(row);
        let terms = r * n..(r + 1) * n;
        let (beta, load) = (&mut scratch.beta[terms.clone()], &mut scratch.load[terms]);
        let other = self.only_other(load).map(|other| (self.at_departure(r, &other), other));
        let since = scratch.absences.of_row(r);
        let slack = self.sweep.crowds.map_or(S::from(1.0), |crowds| crowds.slack(self.station));
        for (x, it) in self.visits.iter().enumerate() {
            if is_none(it.rate) || is_none(beta[x]) && it.late <= 0.0 {
                continue;
            }
            let rest = if since.is_empty() {
                self.rest(me, it, other.as_ref())
            } else {
                self.rest_since(since, it, other.as_ref().map(|(_, other)| other))
            };
            let rest = if rest < it.first { it.first + (rest - it.first) * slack } else { rest };
            beta[x] *= rest + it.late;
            if it.late > 0.0 {
                let seen = self.sweep.seen(shares, self.layout.arcs[x]);
                let (late, overtaken) = self.late_load(row, x, seen.late);
                let late_rest = if row.pool.is_some() { it.late_rest } else { it.full_late_rest };
                beta[x] += late * late_rest;
                scratch.own[r] += overtaken * late_rest;
                load[x] += late + overtaken;
            }
        }
    }

    /// The only other that an arrival can find, by the `load` that it sees in service; none where there are more.
    fn only_other(&self, load: &[S]) -> Option<Other<S>> {
        if self.sources > 2.0 || self.servers > 1.0 {
            return None;
        }
        let (mut busy, mut number) = (S::from(0.0), S::from(0.0));
        for (&load, it) in load.iter().zip(self.visits).filter(|(load, it)| **load > 0.0 && it.first > 0.0) {
            busy += load;
            number += load / it.first;
        }
        (number > 0.0).then(|| Other::new(busy / number, busy))
    }

    /// How much likelier `other` is there when a thread of row `r` leaves, after a service of any of its calls.
    fn at_departure(&self, r: usize, other: &Other<S>) -> S {
        let me = self.layout.rows[r].arc;
        let (mut sum, mut rate) = (S::from(0.0), S::from(0.0));
        let further = self.visits.iter().zip(&self.layout.row_of).enumerate().filter(|(x, (_, row))| **row == r && *x != me);
        for (_, (it, _)) in further.filter(|(_, (it, _))| it.rate > 0.0) {
            sum += it.rate * other.at_departure(it.first);
            rate += it.rate;
        }
        let me = &self.visits[me];
        let first = other.at_departure(me.first);
        if rate > 0.0 { (sum + me.rate * first) / (rate + me.rate) } else { first }
    }

    /// The rest of a first phase in progress.
    fn rest(&self, me: &Visit<S>, it: &Visit<S>, other: Option<&(S, Other<S>)>) -> S {
        let long = match me.gap.long {
            Some(long) if !(it.from_outside && self.discipline == Discipline::Fcfs) => long,
            _ => return it.full_first_rest,
        };
        let after = |z: S| match other {
            Some((at_departure, other)) => other.rest(z, it.first_rest, *at_departure),
            None => rest_after_gap(z, it.first_rest, self.mean_service),
        };
        let rest = after(long);
        if me.gap.short_share > 0.0 { rest + me.gap.short_share * (after(me.gap.short) - rest) } else { rest }
    }
}
