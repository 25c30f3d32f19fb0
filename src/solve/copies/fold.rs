//! Results of the model of all copies in terms of the model with one copy of each element.
//!
//! ```text
//! utilization, throughput:   the mean over the copies of the element
//! service time:              Σ_copies X_j s_j / Σ_copies X_j
//! delay of a join:           Σ_copies X_j d_j / Σ_copies X_j, its variance from the mean of the squares
//! wait of a call:            Σ_connections λ_a w_a / Σ_connections λ_a
//! ```
//!
//! `X_j` the throughput of copy `j`, `λ_a` the rate of requests over connection `a`.

use super::Copies;
use crate::{
    model::Scalar,
    solve::results::{ActivityValues, CallPlaces, CallValues, EntryValues, JoinValues, Results},
};

impl Copies {
    /// The results `of` the model [`Copies::all`] as those of [`Copies::single`].
    pub(in crate::solve) fn fold<S: Scalar>(&self, of: Results<S>) -> Results<S> {
        let entries = self.single.tasks.iter().map(|t| t.entries.len()).collect::<Vec<_>>();
        Results {
            processor_utilization: means(&self.processors, &of.processor_utilization),
            task_throughput: means(&self.tasks, &of.task_throughput),
            task_utilization: means(&self.tasks, &of.task_utilization),
            entries: self.entries(&entries, &of.entries),
            calls: self.calls(&entries, &of.calls),
            activities: self.activities(&of.activities),
            joins: self.joins(&of.joins),
            copies: self.has_several().then(|| self.tasks.clone()),
            ..of
        }
    }

    fn entries<S: Scalar>(&self, n_entries: &[usize], of: &[EntryValues<S>]) -> Vec<EntryValues<S>> {
        let (mut folded, mut first) = (Vec::new(), 0);
        for (&n, &copies) in n_entries.iter().zip(&self.tasks) {
            let after = first + n * copies as usize;
            folded.extend((first..first + n).map(|e| mean_entry(&(e..after).step_by(n).map(|e| &of[e]).collect::<Vec<_>>())));
            first = after;
        }
        folded
    }

    /// By task of the model of all copies, which it is a copy of.
    fn owners(&self) -> Vec<usize> {
        self.tasks.iter().enumerate().flat_map(|(t, &n)| (0..n).map(move |_| t)).collect()
    }

    fn joins<S: Scalar>(&self, of: &[JoinValues<S>]) -> Vec<JoinValues<S>> {
        let owners = self.owners();
        let mut folded = Vec::new();
        for join in of {
            let task = owners[join.task];
            JoinValues { task, throughput: self.share(task, join.throughput), ..join.clone() }.fold_into(&mut folded);
        }
        folded
    }

    fn activities<S: Scalar>(&self, of: &[ActivityValues<S>]) -> Vec<ActivityValues<S>> {
        let owners = self.owners();
        let mut folded = Vec::new();
        for activity in of {
            let task = owners[activity.task];
            ActivityValues { task, throughput: self.share(task, activity.throughput), ..activity.clone() }.fold_into(&mut folded);
        }
        folded
    }

    /// The part of a rate of all copies of a task that is each one's.
    fn share<S: Scalar>(&self, task: usize, rate: S) -> S {
        rate / S::from(f64::from(self.tasks[task]))
    }

    fn calls<S: Scalar>(&self, n_entries: &[usize], of: &[CallValues<S>]) -> Vec<CallValues<S>> {
        // By entry of the model of all copies: its number in the model of single ones, and its task.
        let (mut numbers, mut first) = (Vec::new(), 0);
        for (t, (&n, &copies)) in n_entries.iter().zip(&self.tasks).enumerate() {
            numbers.extend((0..n * copies as usize).map(|i| (first + i % n, t)));
            first += n;
        }
        let (mut folded, mut senders): (Vec<CallValues<S>>, Vec<S>) = (Vec::new(), Vec::new());
        let mut places = CallPlaces::default();
        for call in of {
            let ((from, caller), (to, called)) = (numbers[call.from], numbers[call.to]);
            let place = places.next(call, (from, to));
            if place == folded.len() {
                let fan_out = self.fan_out(caller, called);
                let zero = S::from(0.0);
                // The first connection stands for so many calls of each activity.
                let times = S::from(f64::from(fan_out.div_ceil(self.tasks[called])));
                let activities = call.activities.iter().map(|(name, mean)| (name.clone(), *mean / times)).collect();
                let (phase, kind) = (call.phase, call.kind);
                folded.push(CallValues { from, to, phase, kind, fan_out, mean: zero, activities, waiting: zero, rate: zero });
                senders.push(S::from(f64::from(self.tasks[caller])));
            }
            let sum = &mut folded[place];
            sum.mean += call.mean;
            sum.waiting += call.waiting * call.rate;
            sum.rate += call.rate;
        }
        for (call, senders) in folded.iter_mut().zip(senders) {
            call.mean /= senders * S::from(f64::from(call.fan_out));
            if call.rate > 0.0 {
                call.waiting /= call.rate;
            }
        }
        folded
    }
}

/// The mean of each element over its copies.
fn means<S: Scalar>(copies: &[u32], of: &[S]) -> Vec<S> {
    let mut rest = of;
    let mut mean = |&n: &u32| {
        let (mine, others) = rest.split_at(n as usize);
        rest = others;
        mine.iter().fold(S::from(0.0), |sum, &x| sum + x) / S::from(f64::from(n))
    };
    copies.iter().map(&mut mean).collect()
}

/// The mean of the copies of an entry; of times over its invocations.
fn mean_entry<S: Scalar>(copies: &[&EntryValues<S>]) -> EntryValues<S> {
    let zero = S::from(0.0);
    let total = copies.iter().fold(zero, |sum, e| sum + e.throughput);
    #[expect(clippy::cast_precision_loss, reason = "a count of copies")]
    let n = S::from(copies.len() as f64);
    let time = |of: &dyn Fn(&EntryValues<S>) -> S| {
        let sum = copies.iter().fold(zero, |sum, e| sum + of(e) * if total > 0.0 { e.throughput } else { S::from(1.0) });
        if total > 0.0 { sum / total } else { sum / n }
    };
    let first = copies[0];
    EntryValues {
        name: first.name.clone(),
        throughput: total / n,
        service_times: (0..first.service_times.len()).map(|p| time(&|e| e.service_times[p])).collect(),
        host_times: (0..first.host_times.len()).map(|p| time(&|e| e.host_times[p])).collect(),
        open_wait_time: first.open_wait_time.map(|_| time(&|e| e.open_wait_time.unwrap_or(zero))),
        is_reached: copies.iter().any(|copy| copy.is_reached),
    }
}
