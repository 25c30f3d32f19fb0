//! Numbers of threads that were only seen: kept where they explain what was seen, else none.
//!
//! ```text
//! h_e = Σ_k d_ek + Σ_a y_a r_a        busy = Σ_e x_e h_e        h = busy / Σ_e x_e
//! w(m) = min(C(m, busy) / (m − busy), (N − m)⁺ / m) h
//! any number of threads where w(m) > h / 10 and the wait seen is below w(m) / 4
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | x | requests of the task's entries at the load seen | per second |
//! | d, y, r | demands; mean synchronous requests, and what of the called is waited for; of the branches of a fork the longest | s, , s |
//! | h | time that a request holds a thread | s |
//! | m | most requests seen open at once | |
//! | C(m, busy) | probability that all of m threads are busy (Erlang): random arrivals, exponential times | |
//! | N | customers, where all requests come from these | |
//!
//! A server's span begins when a thread has taken the request, and a client's when it is sent: what lies between holds the wait for a
//! thread, and the network. As many threads as were open at once are the fewest that there can be. A task that has as many, and is as busy as
//! was seen, makes requests wait; where that is more than a tenth of what they take, and was not seen (or nothing tells), the number is what the
//! load happened to need, not what the task has. A quarter, as requests that come more regularly and take more alike wait less than random
//! ones, but seldom so much less.

use super::{Assembly, cores::requests};
use crate::{
    model::{Number, TaskScheduling},
    structure::{
        Demands,
        entries::{ArcKind, MergedArc, MergedEntry},
        interactions::{ProcessHints, SeenThreads},
    },
};

/// Waits over holding times that numbers of threads may add to what was seen.
const WAIT: f64 = 0.1;
/// Share of the wait for random arrivals that is seen at least where there is one.
const SEEN: f64 = 0.25;
/// Busy threads beyond which no wait is computed.
const MOST_BUSY: f64 = 1e6;

/// What comes to a task.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    requests: f64,
    busy: f64,
}

impl Use {
    /// The mean wait for one of `threads` threads, over the time that one is held; `customers` make all requests, where that is known.
    fn wait(&self, threads: f64, customers: Option<f64>) -> f64 {
        let random = if self.busy >= threads || self.busy > MOST_BUSY {
            f64::INFINITY
        } else {
            let mut erlang_b = 1.0;
            let mut n = 1.0;
            while n <= threads {
                erlang_b = self.busy * erlang_b / (n + self.busy * erlang_b);
                n += 1.0;
            }
            let all_busy = erlang_b / (1.0 - self.busy / threads * (1.0 - erlang_b));
            all_busy / (threads - self.busy)
        };
        customers.map_or(random, |n| random.min((n - threads).max(0.0) / threads))
    }

    /// Whether threads that were seen are fewer than there have to be.
    fn contradicts(&self, threads: f64, seen: SeenThreads, customers: Option<f64>) -> bool {
        let held_s = self.busy / self.requests;
        let wait = self.wait(threads, customers);
        wait > WAIT && seen.wait_s.is_none_or(|seen_s| seen_s < SEEN * wait * held_s)
    }
}

impl Assembly<'_> {
    /// Gives any number of threads to tasks of which those seen would make requests wait that did not.
    pub(super) fn lift_threads(&mut self, hints: &[ProcessHints]) {
        if self.load.is_empty() || self.parts.options.demands != Demands::SelfTimes {
            return;
        }
        let customers = self.all_customers();
        let uses = self.uses_of_threads(hints);
        for (at, task) in self.server_tasks.clone() {
            let Some(seen) = hints[task as usize].seen_threads else { continue };
            let task = &mut self.out.model.tasks[at];
            let (Some(of), Some(threads)) = (uses.get(at), task.multiplicity.literal()) else { continue };
            if task.scheduling == TaskScheduling::Inf || of.requests <= 0.0 || !of.contradicts(threads, seen, customers) {
                continue;
            }
            (task.scheduling, task.multiplicity) = (TaskScheduling::Inf, Number::Value(1.0));
            let report = self.out.tasks.iter_mut().find(|report| report.name == task.name);
            report.into_iter().for_each(|report| report.is_infinite = true);
            let message = "as many threads as were seen at once would make requests wait that did not, or nothing tells that they did: tasks have \
                           any number of them until somebody says how many";
            let name = task.name.clone();
            self.out.diagnostics.add("threads_not_known", message, || format!("{name}: {threads} seen, {:.2} busy", of.busy));
        }
    }

    /// Customers, where all requests come from a known number of these.
    fn all_customers(&self) -> Option<f64> {
        let of_each = self.parts.customers.iter().map(|customers| match self.rate_from_outside(customers) {
            Some(_) => None,
            None => self.population(customers).0.literal(),
        });
        of_each.sum()
    }

    /// What comes to each task of the model, by its place.
    fn uses_of_threads(&self, hints: &[ProcessHints]) -> Vec<Use> {
        let merged = &self.parts.merged.entries;
        let rates = requests(merged, &self.load, |_| true);
        let times = self.held(hints);
        let entries = self.entry_names.iter().zip(rates).zip(&times).filter(|((_, rate), _)| *rate > 0.0);
        let mut uses = vec![Use::default(); self.out.model.tasks.len()];
        for ((name, rate), [replied, rest]) in entries {
            let Some(at) = self.out.model.tasks.iter().position(|task| task.entries.iter().any(|entry| entry.name == *name)) else {
                continue;
            };
            uses[at].requests += rate;
            uses[at].busy += rate * (replied + rest);
        }
        uses
    }

    /// Times of each entry until its reply and after it, seconds, with all that is waited for in them.
    fn held(&self, hints: &[ProcessHints]) -> Vec<[f64; 2]> {
        let entries = &self.parts.merged.entries;
        let own: Vec<[f64; 2]> = entries.iter().map(|entry| self.own_demands(entry, hints)).collect();
        let mut times = own.clone();
        // Circles are cut, so that as many rounds as a chain of requests is long settle it.
        for _ in 0..entries.len() {
            let next: Vec<[f64; 2]> = entries.iter().zip(&own).map(|(entry, own)| held_by(entry, *own, &times)).collect();
            if next == times {
                break;
            }
            times = next;
        }
        times
    }

    fn own_demands(&self, entry: &MergedEntry, hints: &[ProcessHints]) -> [f64; 2] {
        let operations = &self.parts.summary.operations;
        let said = entry.operation.and_then(|o| hints[entry.task as usize].demands.get(operations.name(o))).copied();
        let [first, second] = self.demands(entry.self_times.map(|time| time.map(|t| t.mean_ticks)), said);
        [first + self.visits(entry, hints).map(|visit| visit.demand_s).sum::<f64>(), second]
    }
}

/// Times of an entry by those of what it calls.
fn held_by(entry: &MergedEntry, own: [f64; 2], times: &[[f64; 2]]) -> [f64; 2] {
    let waited = |arcs: &mut dyn Iterator<Item = &MergedArc>| -> f64 {
        arcs.filter(|arc| arc.kind != ArcKind::Async).map(|arc| arc.mean * times[arc.target][0]).sum()
    };
    let in_phase = |phase: u8| waited(&mut entry.arcs.iter().filter(|arc| arc.phase == phase));
    let mut at_once = 0.0;
    for fork in &entry.forks {
        let branches: Vec<f64> = fork.branches.iter().map(|branch| waited(&mut branch.iter())).collect();
        at_once += branches.iter().sum::<f64>() - branches.iter().copied().fold(0.0, f64::max);
    }
    [own[0] + (in_phase(1) - at_once).max(0.0), own[1] + in_phase(2)]
}
