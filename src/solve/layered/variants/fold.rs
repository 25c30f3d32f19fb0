//! Results of the model of all variants in terms of the model that it is made from.
//!
//! ```text
//! X = Σ_g X_g        s = Σ_g X_g s_g / Σ_g X_g        w = Σ_g λ_g w_g / Σ_g λ_g
//! ```
//!
//! over the variants of an entry (throughput `X`, times `s` of its phases), of an activity, of a join (with the mean of the squares of its delay) and of a call (rate
//! `λ`, wait `w`). Tasks and processors have no variants.

use super::Variants;
use crate::{
    model::Scalar,
    solve::{
        ResultCallKind,
        results::{ActivityValues, CallPlaces, CallValues, EntryValues, JoinValues, Results},
    },
};

impl Variants {
    /// The results `of` the model of all variants as those of the model without.
    pub(in crate::solve::layered) fn fold<S: Scalar>(&self, of: Results<S>) -> Results<S> {
        let entries = self.entries(&of.entries);
        let calls = self.calls(of.calls, &entries);
        let (activities, joins) = (self.activities(of.activities), self.joins(of.joins));
        Results { entries, calls, activities, joins, ..of }
    }

    /// Variants of one entry stand together, that with its own name first.
    fn entries<S: Scalar>(&self, of: &[EntryValues<S>]) -> Vec<EntryValues<S>> {
        let numbered: Vec<_> = self.originals.iter().zip(of).collect();
        let of_one = numbered.chunk_by(|(one, _), (other, _)| one == other);
        of_one.filter_map(|variants| variants.iter().map(|(_, values)| (*values).clone()).reduce(merged)).collect()
    }

    fn calls<S: Scalar>(&self, of: Vec<CallValues<S>>, entries: &[EntryValues<S>]) -> Vec<CallValues<S>> {
        let mut folded: Vec<CallValues<S>> = Vec::new();
        let mut places = CallPlaces::default();
        for call in of {
            let (from, to) = (self.originals[call.from], self.originals[call.to]);
            let Some(sum) = folded.get_mut(places.next(&call, (from, to))) else {
                folded.push(CallValues { from, to, ..call });
                continue;
            };
            let total = sum.rate + call.rate;
            if total > 0.0 {
                sum.waiting = (sum.waiting * sum.rate + call.waiting * call.rate) / total;
            }
            sum.rate = total;
        }
        // A probability of forwarding is one of all variants; mean numbers of calls are the same for each.
        for call in folded.iter_mut().filter(|call| call.kind == ResultCallKind::Forward) {
            let through = entries[call.from].throughput;
            if through > 0.0 {
                call.mean = call.rate / through;
            }
        }
        folded
    }
}

impl Variants {
    /// What an activity of a task is named after.
    fn original<'a>(&'a self, task: usize, activity: &'a String) -> &'a String {
        self.activities.get(&(task, activity.clone())).unwrap_or(activity)
    }

    fn activities<S: Scalar>(&self, of: Vec<ActivityValues<S>>) -> Vec<ActivityValues<S>> {
        let mut folded = Vec::new();
        for it in of {
            ActivityValues { name: self.original(it.task, &it.name).clone(), ..it }.fold_into(&mut folded);
        }
        folded
    }

    fn joins<S: Scalar>(&self, of: Vec<JoinValues<S>>) -> Vec<JoinValues<S>> {
        let mut folded = Vec::new();
        for it in of {
            let activities = it.activities.iter().map(|activity| self.original(it.task, activity).clone()).collect();
            JoinValues { activities, ..it }.fold_into(&mut folded);
        }
        folded
    }
}

/// The values of an entry from those of its first variants, which have its name and its open arrivals, and of one more.
fn merged<S: Scalar>(mut all: EntryValues<S>, variant: EntryValues<S>) -> EntryValues<S> {
    let total = all.throughput + variant.throughput;
    if total > 0.0 {
        let times = all.service_times.iter_mut().chain(&mut all.host_times);
        for (time, other) in times.zip(variant.service_times.into_iter().chain(variant.host_times)) {
            *time = (*time * all.throughput + other * variant.throughput) / total;
        }
    }
    all.throughput = total;
    all.is_reached |= variant.is_reached;
    all
}
