//! What is left of the services that an arrival finds in progress.
//!
//! The formulas are those of [`super::super::residual`]: after a gap, where the arriving thread, or its customer ([`super::since`]), was
//! away for a while; in full, for arrivals that no number of threads bounds and for those that they find at queues in order of arrival.
//!
//! Threads that hold each other up ([`super::crowd`]) leave a full pool at the pace of the stations where they do. However little their own
//! services vary, the time until one of them leaves varies as the services there: the rest of one that varies less than an exponential one
//! is `r + h (rest - r)`, with `r` that of an exponential one and `h` the chance that none of these stations is busy with them while all threads
//! are. One that varies more stays: what makes its rest long is not there.

use super::{
    super::{
        linearizer::is_none,
        net::Discipline,
        residual::{AtDeparture, Away, Law, Other, rest_after_gap},
    },
    At, Scratch,
    kinds::{Told, Wait},
    overtaking::Overtaken,
    scarce::Services,
    since::{Since, mean_since},
    visit::{Gap, Visit},
};
use crate::model::Scalar;

/// The only other that can be at a station, as the arrivals of a row find it.
pub(super) struct OnlyOther<S> {
    pub other: Other<S>,
    /// When their thread left.
    at_departure: AtDeparture<S>,
    /// The mean of `f_exp` over their gaps.
    exponential_rest: S,
}

impl<S: Scalar> OnlyOther<S> {
    /// The rest of a service of which `f` is `found` in the mean.
    pub fn relative(&self, found: S) -> S {
        found * self.other.service() / self.exponential_rest
    }
}

impl<S: Scalar> At<'_, S> {
    /// From those found in service to the time that is left of their services, second phases too.
    pub(super) fn add_rests(&self, r: usize, scratch: &mut Scratch<S>) {
        let n = self.visits.len();
        let row = &self.layout.rows[r];
        let me = &self.visits[row.arc];
        let shares = &*self.absent_shares(row);
        let terms = r * n..(r + 1) * n;
        let (beta, load) = (&mut scratch.beta[terms.clone()], &mut scratch.load[terms.clone()]);
        let since = scratch.absences.of_row(r);
        let other = self.only_other(load).and_then(|other| self.as_found(other, r, since));
        let slack = self.sweep.crowds.map_or(S::from(1.0), |crowds| crowds.slack(self.station));
        let mean = self.mean_in_the_way(row.priority);
        let is_told = matches!(self.told, Some(Told { wait: Wait::Times(_), .. }));
        for (x, it) in self.visits.iter().enumerate() {
            if is_none(it.rate) || is_none(beta[x]) && it.late <= 0.0 {
                continue;
            }
            let of_law = |it: &Visit<S>| {
                if since.is_empty() { self.rest(me, it, other.as_ref(), mean) } else { self.rest_since(since, it, other.as_ref(), mean) }
            };
            let rest = if is_told { mean } else { of_law(it) };
            let rest = if !is_told && slack < 1.0 && it.first_rest < it.first {
                let exponential = of_law(&Visit { first_rest: it.first, full_first_rest: it.first, ..*it });
                exponential + (rest - exponential) * slack
            } else {
                rest
            };
            let scarcity = scratch.scarcity.get(self.layout.row_of[x]).copied().unwrap_or(S::from(1.0));
            beta[x] *= (rest + it.late) * scarcity;
            if it.late > 0.0 {
                let seen = self.sweep.seen(shares, self.layout.arcs[x]);
                let (late, overtaken) = self.late_load(row, x, seen.late);
                let (of_others, own) =
                    if row.pool.is_some() { self.late_rests(me, it, &overtaken) } else { (it.full_late_rest, it.full_late_rest) };
                beta[x] += late * of_others * scarcity;
                scratch.own[r] += overtaken.all * own;
                load[x] += late + overtaken.all;
                scratch.late[r] += late + overtaken.all;
            }
        }
        if self.servers == 1.0 {
            self.lengthen(r, scratch);
        }
    }

    /// How much more is left of services over an arc as those of a row find it who were away for long, than as all of it do.
    pub(super) fn left_for_long(&self, r: usize, x: usize, scratch: &Scratch<S>) -> S {
        let row = &self.layout.rows[r];
        let (me, it) = (&self.visits[row.arc], &self.visits[x]);
        let mean = self.mean_in_the_way(row.priority);
        let (all, long) = match scratch.absences.of_row(r) {
            [] => {
                let gap = Gap { short_share: S::from(0.0), ..me.gap };
                (self.rest(me, it, None, mean), self.rest(&Visit { gap, ..*me }, it, None, mean))
            }
            since @ [.., last] => (self.rest_since(since, it, None, mean), self.rest_since(&[last.alone()], it, None, mean)),
        };
        if all > 0.0 { long / all } else { S::from(1.0) }
    }

    /// The rests of second phases, of other threads' requests and of the own thread's last one, which it overtakes with such chance.
    fn late_rests(&self, me: &Visit<S>, it: &Visit<S>, overtaken: &Overtaken<S>) -> (S, S) {
        let late = (it.late, it.late_rest);
        let of_others = match me.gap.long {
            Some(long) if self.is_in_order() => me.gap.mean(long, |z| rest_after_gap(z, late, it.late)),
            _ => it.late_rest,
        };
        if let Some(rest) = overtaken.rest {
            return (of_others, rest);
        }
        let (chance, counted) = (overtaken.chance, overtaken.counted);
        if !self.is_in_order() || chance <= 0.0 {
            return (of_others, it.late_rest * counted);
        }
        // It began when the thread left: `R` after the gap that an exponential one outlasts with that chance.
        if chance >= 1.0 {
            return (of_others, it.late * counted);
        }
        let left = Law::new(it.late_rest / it.late).left(chance / (-chance + 1.0));
        (of_others, it.late * left / chance * counted)
    }

    /// The only other that an arrival can find, by the `load` that it sees in service; none where there are more.
    fn only_other(&self, load: &[S]) -> Option<Other<S>> {
        if self.sources > 2.0 || self.servers > 1.0 {
            return None;
        }
        let zero = S::from(0.0);
        let (service, law) = Services::until_reply(load, self.visits).law()?;
        let (mut busy, mut number, mut shorts) = (zero, zero, zero);
        let (mut short, mut long) = (zero, zero);
        for (&load, it) in load.iter().zip(self.visits).filter(|(load, it)| **load >= 0.0 && it.first > 0.0) {
            // At processors that customers share the gaps of the threads are not theirs.
            let share = if self.layout.of_customers { zero } else { it.gap.short_share };
            let n = load / it.first;
            busy += load;
            number += n;
            shorts += n * share;
            short += n * share * it.gap.short;
            long += n * (-share + 1.0) * it.gap.long?;
        }
        let longs = number - shorts;
        if longs <= 0.0 {
            return None;
        }
        let short = if shorts > 0.0 { short / shorts } else { short };
        Some(Other::new(service, law, busy, Away { short_share: shorts / number, short, long: long / longs }))
    }

    /// How the arrivals of row `r` find `other`; none where they were away for no known time.
    fn as_found(&self, other: Other<S>, r: usize, since: &[Since<S>]) -> Option<OnlyOther<S>> {
        let exponential_rest = if since.is_empty() {
            let gap = &self.visits[self.layout.rows[r].arc].gap;
            gap.mean(gap.long?, |z| other.exponential_rest(z))
        } else {
            mean_since(since, |before| other.exponential_rest(before.gap))
        };
        Some(OnlyOther { at_departure: self.at_departure(r, &other), exponential_rest, other })
    }

    /// Whether `other` is there when a thread of row `r` leaves, after a service of any of its calls.
    fn at_departure(&self, r: usize, other: &Other<S>) -> AtDeparture<S> {
        let mut rate = S::from(0.0);
        let mut sum = AtDeparture { short: rate, long: rate };
        for (it, _) in self.visits.iter().zip(&self.layout.row_of).filter(|(it, row)| **row == r && it.rate > 0.0) {
            let after = other.at_departure(it.first, it.first_rest);
            sum.short += it.rate * after.short;
            sum.long += it.rate * after.long;
            rate += it.rate;
        }
        if rate > 0.0 { AtDeparture { short: sum.short / rate, long: sum.long / rate } } else { sum }
    }

    /// Mean service of those whom requests of such a priority do not interrupt.
    fn mean_in_the_way(&self, priority: f64) -> S {
        if self.discipline != Discipline::Preemptive || self.layout.levels.first() == Some(&priority) {
            return self.mean_service;
        }
        let zero = S::from(0.0);
        let as_urgent = self.visits.iter().enumerate().filter(|(x, _)| self.priority_of(*x) >= priority);
        let (rate, first) = as_urgent.fold((zero, zero), |(rate, first), (_, v)| (rate + v.rate, first + v.rate * v.first));
        if rate > 0.0 { first / rate } else { self.mean_service }
    }

    /// The rest of a first phase in progress, `mean` the mean service of all that are in the way.
    fn rest(&self, me: &Visit<S>, it: &Visit<S>, other: Option<&OnlyOther<S>>, mean: S) -> S {
        let long = match me.gap.long {
            Some(long) if !(it.from_outside && self.discipline == Discipline::Fcfs) => long,
            _ => return it.full_first_rest,
        };
        let service = (it.first, it.first_rest);
        let rest = match other {
            Some(found) => found.relative(me.gap.mean(long, |z| found.other.rest(z, service, &found.at_departure))),
            None => me.gap.mean(long, |z| rest_after_gap(z, service, mean)),
        };
        if self.discipline == Discipline::Fcfs { rest + (it.full_first_rest - rest) * it.as_from_outside } else { rest }
    }

    /// The same, where it is known how the requests of the row were here last.
    fn rest_since(&self, since: &[Since<S>], it: &Visit<S>, other: Option<&OnlyOther<S>>, mean: S) -> S {
        let service = (it.first, it.first_rest);
        let Some(found) = other else {
            return mean_since(since, |before| rest_after_gap(before.gap, service, mean));
        };
        let other = &found.other;
        found.relative(mean_since(since, |before| other.rest(before.gap, service, &other.at_departure(before.served, before.rest))))
    }
}
